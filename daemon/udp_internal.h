/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * udp_internal.h - the objects of the udp transport, shared by its files:
 * udp_transport.c (verbs, events, life of endpoints and sockets), udp_turn.c
 * (deadlines, sending, receiving), udp_reports.c (what comes back for what was sent: ICMP
 * errors, and when it left) and udp_ping.c (pings on demand).
 *
 * The turn of the transport: sockets are drained, due endpoints stepped, the timer set
 * (udp_turn). What that and the verbs want to send or tell is collected and goes out in
 * one deferred callback at the end of the loop's turn.
 */
#pragma once

#include <utlist.h>

#include "fabric.h"
#include "heartbeat.h"
#include "idtable.h"
#include "log.h"
#include "ping.h"
#include "udp_socket.h"
#include "udp_transport.h"

#define NOT_IN_HEAP UINT32_MAX

struct sock;

enum ep_state {
	EPS_READY,   /* rx: nothing came yet */
	EPS_UP,	     /* waits for the verb probe */
	EPS_PROBING,
	EPS_BEATING,
	EPS_FAILED   /* waits for reset */
};

/* rx: a message that came before the verb probe. */
struct held {
	struct fabric_msg m;
	struct mono at;
};

/* There may be ten thousand: what only the start needs is not kept. */
struct ep {
	uint64_t conn_id; /* key of the table */
	uint64_t peer_conn_id, epoch;
	struct sock *sock;  /* shared; NULL: failed before it had one */
	struct addr remote; /* rx: port 0 until the first message */
	struct mono due;    /* EPS_READY: until when the first message may come */
	struct held *held;  /* owned, or NULL */
	uint8_t *key;	    /* owned, EP_KEY_LEN bytes; NULL: without authentication */
	uint32_t heap_at;
	uint32_t path_mtu;
	uint8_t role;  /* enum conn_role */
	uint8_t state; /* enum ep_state */
	uint8_t stage; /* enum ep_stage */
	uint8_t tos;
	struct hb hb;
	union {
		struct ping *ping; /* tx: owned, the one that runs, or NULL */
		struct ping_limit echoes; /* rx */
	};
};

struct due { /* of the heap; its time beside it, so that only it is looked at */
	struct mono at;
	struct ep *ep;
};

/* A message to send: written at the flush, so that its stamps are of that time. */
struct out {
	struct ep *ep;
	struct fabric_msg m;
	struct addr to;
};

struct sock_key {
	uint8_t role;
	uint8_t tos, priority; /* tx: of all that is sent there, see struct udp_open */
	uint16_t flow;
	struct addr local;
	char netdev[EP_IF_MAX];
};

#define UDP_PORTS_KEPT 256
struct kept_port { /* of a socket that is closed */
	struct sock_key key;
	uint16_t port; /* 0 = none */
};

/* tx: one request at a time is followed with the stamps of the wire. */
struct sample {
	bool out;
	uint64_t conn_id, seq;
	uint32_t id;	/* of its stamp */
	struct mono at; /* when it was sent */
	int64_t k1, d1; /* when it left, as far as told */
};

struct sock {
	struct udp_transport *t;
	struct sock_key key;
	int fd;
	struct loop_source *source;
	struct addr local; /* with its port */
	uint32_t n_eps;
	uint32_t lost; /* the kernel's count */
	uint64_t drained; /* turn in which it was drained last */
	struct hb_shared shared;
	struct sample sample;
	uint32_t stamp_id;   /* of the next send that asks for its stamp */
	bool device_stamps; /* the network card stamps what comes */
	int n_out;
	struct out out[UDP_BATCH];
	struct sock *prev, *next;
};

enum verb_type { VERB_START, VERB_PROBE, VERB_HEARTBEAT, VERB_PING, VERB_RESET };
struct verb {
	enum verb_type type;
	struct ep_start s; /* all but START: conn_id and epoch */
	struct ep_ping ping;
};

struct udp_transport {
	struct loop *loop;
	struct udp_callbacks cb;
	void *user;
	struct loop_source *timer, *turn_end;
	struct mono armed, turn_at, stalled_until;
	uint64_t turn, rnd, sent, received;
	int64_t wall_offset; /* realtime - monotonic when last looked at */
	struct idtable eps;	/* by conn_id; owns them */
	struct idtable by_peer; /* the same by peer_conn_id: whom an ICMP error means */
	int64_t shortest; /* interval of any of them, 0 = there were none */
	struct sock *socks;  /* owned */
	struct due *heap;    /* owned */
	uint32_t n_heap, heap_room;
	struct verb *verbs;
	size_t n_verbs, verbs_room;
	struct ep_event *events;
	size_t n_events, events_room;
	struct udp_rx *rx;
	struct kept_port ports[UDP_PORTS_KEPT];
	unsigned next_port;
	uint8_t *zeros;
	struct log_limit unbound_log;
};

/* udp_transport.c */
struct ep_event *udp_emit(struct udp_transport *t, const struct ep *ep,
			  enum ep_event_type type, enum ep_stage stage);
void udp_emit_up(struct udp_transport *t, struct ep *ep, const struct addr *local);
/* Report the error and wait for reset; once per endpoint. */
void udp_fail(struct udp_transport *t, struct ep *ep, enum ep_error error, int status,
	      const char *text);

/* udp_turn.c */
void udp_set_due(struct udp_transport *t, struct ep *ep, struct mono due);
void udp_run_due(struct udp_transport *t); /* step what is due by now */
void udp_arm(struct udp_transport *t); /* the timer, for the first deadline */
void udp_flush(struct sock *s);
/* To the peer of @ep, at the end of the turn at the latest. */
void udp_queue(struct ep *ep, const struct fabric_msg *m);
/* The same head with the responder's stamps. */
void udp_send_echo(struct ep *ep, const struct fabric_msg *request, struct mono when);
void udp_stats(const struct ep *ep, struct mono now, struct ep_stats *ret);
/* rx, from the verb probe on: count a message and echo it. */
bool udp_take_request(struct ep *ep, const struct fabric_msg *m, struct mono when);
void udp_on_timer(void *user, struct mono now);
void udp_on_readable(void *user, int fd, unsigned events);

/* udp_reports.c */
/* Is this request to be followed? Then it is, from @now on. */
bool udp_sample(struct sock *s, const struct ep *ep, uint64_t seq, struct mono now);
/* The echo of a request has come: if it is the one, split the round trip. */
void udp_sample_echo(struct sock *s, const struct ep *ep, const struct fabric_msg *m,
		     const struct udp_datagram *d, struct mono now);
void udp_read_reports(struct sock *s);

/* udp_ping.c */
void udp_ping_begin(struct udp_transport *t, struct ep *ep, const struct ep_ping *order);
/* What is due of it by now. */
void udp_ping_step(struct udp_transport *t, struct ep *ep, struct mono now);
struct mono udp_ping_deadline(const struct ep *ep); /* MONO_NEVER: none runs */
bool udp_ping_is_losing(const struct ep *ep, struct mono now);
void udp_ping_done(struct ep *ep); /* without a word */
/* A ping (rx) or its echo (tx). 0, or -(1 + reason): dropped. */
int udp_ping_take(struct ep *ep, const struct fabric_msg *m, struct mono when);
void udp_ping_stalled(struct ep *ep, int64_t ns, struct mono now);
/* The endpoint has failed, and why: the last word about the ping. */
void udp_ping_fail(struct udp_transport *t, struct ep *ep, const char *why);
