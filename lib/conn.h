/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * conn.h - one connection: one direction of probing to one peer over one rail and one
 * transport. Consumes an input at a given time, gives actions back; conn_set_state()
 * in conn.c alone writes the state. Pure: the caller sends, runs endpoints, keeps time.
 */
#pragma once

#include "backoff.h"
#include "ctlmsg.h"
#include "endpoint.h"
#include "probe_fsm.h"
#include "replay.h"
#include "rto.h"

#define CONN_KEY_MAX 320
#define CONN_HISTORY 32
#define CONN_EPOCHS 16 /* epochs remembered: a Reset of one of them is old */
#define CONN_RETIRED 8 /* ids of the peer before its present one, likewise */

/* Fixed for the life of a connection but for port_name (a device may be renamed). Whoever
 * fills one owns the texts; a connection has copies of its own, each cut to
 * CTL_NAME_MAX - 1 bytes. */
struct conn_key {
	const char *peer;
	const char *rail;      /* Rail= label, else the place of the address */
	const char *port_name; /* DEV/PORT, "-" while no device owns the source */
	enum conn_role role;
	enum transport transport;
	struct addr remote; /* port 0 */
	uint16_t flow;
};
/* gpu0033/2:tx:ud:mlx5_2/1>10.2.0.33#0 */
const char *conn_key_format(const struct conn_key *k, char buf[CONN_KEY_MAX]);

/* Tunables, from the config; all times ns. */
struct conn_params {
	int64_t heartbeat;	 /* tx: wanted interval */
	int64_t min_receive;	 /* rx: shortest one that it takes; 0 = any */
	uint8_t multiplier;	 /* 1..100; rx takes tx's */
	int64_t ping_interval;	 /* between control pings while connected */
	int64_t ack_timeout;	 /* first wait for an acknowledgement; doubles per retry
				    up to backoff_max; follows the control round trip */
	int ack_retries;	 /* for acked commands but Reset, which repeats for ever */
	int64_t attempt_timeout; /* a state of an attempt that lasts longer is an error */
	int64_t backoff_min, backoff_max;
	int64_t rx_keep;	 /* rx without a Reset for so long is destroyed */
	uint16_t probe_small, probe_large;
	uint32_t probe_size;
};

struct conn_up {
	struct addr addr, remote;
	uint8_t port; /* of the device */
	struct ep_path path;
};

struct conn_history {
	struct mono at;
	enum conn_state from, to;
	enum probe_event event;
	int row;
};

/* A command that waits for its acknowledgement. */
struct conn_out {
	enum ctl_cmd cmd;
	int tries;
	uint64_t dst_id, epoch; /* as they were when it was made */
	uint64_t first, seq;	/* numbers of its first copy and its last: each has a
				   fresh one, any may be acknowledged */
	struct mono sent, retry_at;
	struct backoff wait; /* Reset: between two of them */
	uint32_t deadline_sec; /* Stop */
	uint8_t cause;	       /* Stop, Restart: enum cause */
	bool has_cookie;       /* Reset */
	uint8_t cookie[CTL_COOKIE_LEN];
	int cookie_answers; /* since the last timed Reset */
};

/* rx: what of a Reset or ProtocolVersion is needed until its acknowledgement is sent,
 * which waits for an event. */
struct conn_request {
	enum ctl_cmd cmd;
	uint64_t src_id, epoch, seq;
	struct addr rdma_addr;
	uint32_t heartbeat_us;
	uint8_t multiplier;
	uint32_t probe_small, probe_large, probe_size;
	uint8_t version_max;
};

/* The last few of a row of numbers; takes room as they come. */
struct conn_ring {
	uint64_t *v; /* owned */
	uint8_t n, room, next;
};

/* Read by everyone, written by lib/conn*.c alone. There may be tens of thousands: what a
 * connection that is up and well does not need is behind pointers that are NULL then,
 * and has functions to read it (below). */
struct conn {
	uint64_t id; /* ours, random, never 0 */
	struct conn_key key;
	char *key_text; /* owned: the texts of the key */
	struct conn_params params;
	struct mono state_since, created;

	/* the attempt */
	uint64_t epoch, peer_id;
	uint64_t next_seq;
	struct replay rx_window; /* of window_id; kept over epochs */
	uint64_t window_id;	 /* the last peer_id that was not 0 */
	struct conn_ring old_epochs, retired_ids;
	struct conn_out *out;	    /* owned; NULL: no command waits */
	struct conn_request *asked; /* owned; NULL: none waits */
	struct mono deadline, ping_at, start_at;
	struct backoff backoff; /* between attempts */
	uint64_t ep_epoch;	/* of the endpoint, which may be of an older attempt */
	struct addr ep_addr; /* tx: where the ack said to connect; rx: where tx may */
	int64_t heartbeat;   /* negotiated, ns */
	struct rto ctl_rto;  /* of the control interface */
	enum conn_state state;
	enum ep_stage stage;
	struct probe_facts facts;
	uint8_t version;   /* negotiated, 0 = not yet */
	uint8_t multiplier; /* in force */
	bool start_wanted;
	bool quick;	   /* the next start follows a loss or a command: soon */
	bool port_down;	   /* no starts until CI_PORT_UP */
	bool ep_open;	   /* started, not reset yet */
	bool ep_reset_out; /* CA_EP_RESET without its RESET_DONE yet */
	bool refused;	   /* by this attempt's peer */

	/* what the peer told */
	char *peer_text;	     /* owned; NULL: nothing. conn_peer_node() ... */
	uint8_t told_port, told_device;
	uint32_t told_lateness_us;
	uint32_t peer_heartbeat_us; /* rx: what tx wants */

	/* evidence */
	bool connected, ever_connected;
	bool late; /* heard nothing in time; until it is heard again or connected anew */
	bool told_lost; /* tx: rx told so of itself, before this side knew of anything; until
			   an error of this side or connected anew */
	uint8_t lost_by; /* enum probe_event of the last loss */
	struct mono connected_at, lost_at, last_ctl_rx, last_fabric_rx;
	struct mono ctl_unanswered_since; /* first command of the present silence */
	uint32_t connects, losses, attempts, ignored;
	enum ep_error error; /* of the last failed attempt */
	enum ep_stage error_stage;
	int32_t error_status;
	char *error_text; /* owned; NULL: none. conn_error_text() */
	struct mono error_at;
	enum cause restart_cause; /* rx told us, or what we told */
	enum cause stop_cause;
	struct mono stop_at, stop_until; /* peer stopped on purpose */
	enum refusal refusal;
	struct mono refused_at;
	struct mono unknown_at; /* peer said it knows no such connection */
	struct ep_stats *stats; /* owned; as told last; NULL: not told. conn_stats() */
	struct conn_up *up;	/* owned; NULL: never up. conn_endpoint() */

	uint64_t *history;  /* owned, packed. conn_history_get() */
	uint32_t n_history; /* ever */
	uint8_t history_room;
};

/* What it keeps, for those who read. Never NULL; "" or all zero where there is nothing. */
const char *conn_error_text(const struct conn *c);
const char *conn_peer_node(const struct conn *c); /* NodeName of the peer */
const char *conn_peer_rail(const struct conn *c); /* its own label of the rail */
const char *conn_peer_port(const struct conn *c); /* DEV/PORT over there or "-" */
const struct ep_stats *conn_stats(const struct conn *c);
/* Of the endpoint that is up, or was last. */
const struct conn_up *conn_endpoint(const struct conn *c);
/* Transitions that are remembered, at most CONN_HISTORY, and the @i-th of them, oldest
 * first; its time to the millisecond. */
unsigned conn_history_count(const struct conn *c);
struct conn_history conn_history_get(const struct conn *c, unsigned i);

/* @rnd: fresh randomness; the id and all later draws come from such arguments. tx
 * begins in idle and asks for its start at once; rx waits for its Reset. */
struct conn *conn_new(const struct conn_key *key, const struct conn_params *p,
		      struct mono now, uint64_t rnd);
struct conn *conn_free(struct conn *c); /* NULL-safe, returns NULL */

enum conn_input_type {
	CI_START, /* the budget agreed to CA_WANT_START */
	CI_TIMER, /* conn_deadline() has come */
	CI_CTL,	  /* a control message to this connection: decoded, authenticated as far
		     as demanded, from the right address. Epoch, ids and replay are
		     checked here. A Reset must have passed the challenge. */
	CI_EP,	  /* an endpoint event; of another epoch than the endpoint's: ignored.
		     RESET_DONE carries the epoch that CA_EP_RESET had */
	CI_PORT_DOWN, /* the port or the source address is gone: error, text */
	CI_PORT_UP,
	CI_OPERATOR, /* cause */
	CI_STOP	     /* cause, deadline_sec; CAUSE_NONE: destroy without a word */
};

struct conn_input {
	enum conn_input_type type;
	const struct ctl_msg *ctl;   /* CI_CTL; borrowed */
	const struct ep_event *ep;   /* CI_EP; borrowed */
	enum cause cause;	     /* CI_OPERATOR, CI_STOP */
	uint32_t deadline_sec;	     /* CI_STOP */
	enum ep_error error;	     /* CI_PORT_DOWN */
	const char *text;	     /* CI_PORT_DOWN; may be NULL */
};

enum conn_action_type {
	CA_WANT_START,	 /* put me in the queue for the start budget, once; answer CI_START.
			    Asked again after a minute or more without an answer */
	CA_SEND,	 /* msg, to key.remote. The caller fills node, rail, port_name,
			    rails, told_port, told_lateness and rdma_addr of a Reset and
			    a ProtocolVersion; all else is set */
	CA_EP_START,	 /* start: ids, epoch, role, transport, remote, intervals, counts
			    set; the caller fills local, port, netdev, tos, key, timeouts */
	CA_EP_PROBE,	 /* epoch of the endpoint in start.epoch, also for the next two */
	CA_EP_HEARTBEAT,
	CA_EP_RESET,
	CA_STATE,	 /* state changed: from, to, event; row */
	CA_CONNECTED,	 /* connected became true or false: c->connected */
	CA_GONE		 /* remove and free me after this call */
};

struct conn_action {
	enum conn_action_type type;
	union {
		struct ctl_msg msg;
		struct ep_start start;
		struct conn_history state;
	};
};

#define CONN_ACTIONS_MAX 16
struct conn_actions {
	int n;
	struct conn_action a[CONN_ACTIONS_MAX];
};

/* Feed one input. Appends to @out (the caller clears it). 0; or the drop reason of a
 * refused CI_CTL as -(1 + enum drop): epoch, replay, state. */
int conn_handle(struct conn *c, const struct conn_input *in, struct mono now, uint64_t rnd,
		struct conn_actions *out);
/* When CI_TIMER is due; MONO_NEVER: not at all. One call of CI_TIMER does one thing that
 * is due: the deadline stays in the past while there is more. Established, rx has no
 * deadline: its endpoint watches. */
struct mono conn_deadline(const struct conn *c);
/* New tunables (reload): take effect at the next attempt, ping interval at once. */
void conn_set_params(struct conn *c, const struct conn_params *p);
/* The last loss was no stop, restart or move on purpose, here or there: one more flap. */
bool conn_loss_is_flap(const struct conn *c);
/* The device was renamed. */
void conn_set_port_name(struct conn *c, const char *name);
