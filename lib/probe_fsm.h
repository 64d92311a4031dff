/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * probe_fsm.h - the state machine of a connection as a table of rows
 * {set of states, event, guard, next state, actions}. The first row that matches wins;
 * the self-test demands exactly one unguarded row per state and event, so that nothing
 * is forgotten: what changes nothing is stated. Both roles share the table; where they
 * differ a guard tells them apart. Pure; only lib/conn.c calls it outside tests.
 */
#pragma once

#include "names.h"

enum probe_event {
	PE_START,	  /* verb start: the back-off has passed and the budget agrees */
	PE_TIMEOUT,	  /* the state's deadline passed */
	PE_RETRY,	  /* the outstanding command was not acknowledged in time */
	PE_PING_DUE,	  /* connected: time for a control ping */
	PE_CHALLENGE,	  /* control commands, of the right epoch and connection */
	PE_RESET,	  /* of a new epoch */
	PE_RESET_ACK,
	PE_VERSION,	  /* ProtocolVersion, acceptable */
	PE_VERSION_BAD,	  /* ProtocolVersion, no common version or transport */
	PE_VERSION_ACK,
	PE_PEER_CONNECTED,
	PE_CONNECTED_ACK,
	PE_PING,
	PE_PING_ACK,
	PE_RESTART,
	PE_RESTART_ACK,
	PE_UNKNOWN,	  /* the peer knows no such connection */
	PE_REFUSED,
	PE_PEER_STOP,
	PE_STOP_ACK,
	PE_EP_READY,	  /* endpoint events, see lib/endpoint.h */
	PE_EP_UP,
	PE_EP_PROBING,
	PE_EP_PROBES_DONE,
	PE_EP_LATE,
	PE_EP_ALIVE,
	PE_ERROR,	  /* verb error: the endpoint failed */
	PE_RESET_DONE,	  /* verb reset-done */
	PE_PORT_DOWN,	  /* the local port or address went away */
	PE_PORT_UP,	  /* ... and came back: try soon */
	PE_OPERATOR,	  /* verb reset, by the operator or a config change */
	PE_STOP,	  /* verb stop: tell the peer and go */
	PE__MAX
};
extern const struct enum_names probe_event_names;

enum probe_action {
	PA_NONE,
	PA_WANT_START,	   /* arm the back-off, then ask for the budget */
	PA_NEW_EPOCH,	   /* tx: draw an epoch, forget the attempt before */
	PA_ADOPT_EPOCH,	   /* rx: take the epoch of the Reset, renew its facts */
	PA_SEND_RESET,
	PA_ACK_RESET,
	PA_SEND_VERSION,
	PA_ACK_VERSION,
	PA_REFUSE,	   /* answer Refused, cause in facts */
	PA_SEND_CONNECTED,
	PA_ACK_CONNECTED,
	PA_SEND_PING,
	PA_ACK_PING,
	PA_SEND_RESTART,
	PA_ACK_RESTART,
	PA_SEND_STOP,
	PA_ACK_STOP,
	PA_RESEND,	   /* the outstanding command again, with a fresh seq */
	PA_SETTLED,	   /* the outstanding command is over: acknowledged or dropped */
	PA_EP_RESET,
	PA_EP_START,
	PA_EP_PROBE,
	PA_EP_HEARTBEAT,
	PA_UP,		   /* mark connected: counts, back-off reset */
	PA_DOWN,	   /* mark not connected: counts, keeps the reason; arms nothing */
	PA_HASTEN,	   /* shorten the wait that is running */
	PA_COUNT_IGNORED,  /* drop reason state */
	PA_GONE,	   /* may be freed */
	PA__MAX
};
extern const struct enum_names probe_action_names;

#define PROBE_ACTIONS_MAX 5

/*
 * fabric_reset holds while the teardown after a failure runs; resetting while it runs
 * because the peer asked for it, or because the first order was not answered in time.
 */

/* What guards look at; filled by lib/conn.c before each step. */
struct probe_facts {
	enum conn_role role;
	bool probes_done;    /* tx: PROBES_DONE came before Connected */
	bool peer_connected; /* tx: Connected came */
	bool retries_left;   /* the outstanding command may be sent again */
	bool version_taken;  /* rx: ProtocolVersion of this epoch has been accepted */
	bool version_acked;  /* rx: ... and answered: the endpoint was ready */
	bool reset_pending;  /* rx: a Reset waits for its acknowledgement */
	bool same_epoch;     /* PE_RESET: a repeat of the attempt that is under way */
	bool cookie_news;    /* PE_CHALLENGE: worth an answer at once, not a repeat */
	bool tell_peer;	     /* PE_STOP: there is a cause and a peer to tell */
	bool ep_busy;	     /* a reset of the endpoint has not been answered yet */
	bool cmd_out;	     /* a command waits for its acknowledgement */
};

struct probe_step {
	enum conn_state next; /* may be the same */
	enum probe_action actions[PROBE_ACTIONS_MAX];
	int row; /* for the log */
};
struct probe_step probe_fsm_step(enum conn_state s, enum probe_event e,
				 const struct probe_facts *f);

/* 0, or -EPROTO with the first hole or duplicate described in @why. */
int probe_fsm_selftest(char *why, size_t size);
/* One row as Markdown, for docs/probe-fsm.md; false past the end. */
bool probe_fsm_row_text(int row, char *buf, size_t size);
