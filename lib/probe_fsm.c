/* SPDX-License-Identifier: BSD-2-Clause */
#include "probe_fsm.h"

#include <errno.h>
#include <stdio.h>

/* clang-format off */
static const char *const event_names[] = {
	[PE_START] = "start", [PE_TIMEOUT] = "timeout", [PE_RETRY] = "retry",
	[PE_PING_DUE] = "ping_due", [PE_CHALLENGE] = "challenge", [PE_RESET] = "reset",
	[PE_RESET_ACK] = "reset_ack", [PE_VERSION] = "version",
	[PE_VERSION_BAD] = "version_bad", [PE_VERSION_ACK] = "version_ack",
	[PE_PEER_CONNECTED] = "peer_connected", [PE_CONNECTED_ACK] = "connected_ack",
	[PE_PING] = "ping", [PE_PING_ACK] = "ping_ack", [PE_RESTART] = "restart",
	[PE_RESTART_ACK] = "restart_ack", [PE_UNKNOWN] = "unknown",
	[PE_REFUSED] = "refused", [PE_PEER_STOP] = "peer_stop", [PE_STOP_ACK] = "stop_ack",
	[PE_EP_READY] = "ep_ready", [PE_EP_UP] = "ep_up", [PE_EP_PROBING] = "ep_probing",
	[PE_EP_PROBES_DONE] = "ep_probes_done", [PE_EP_LATE] = "ep_late",
	[PE_EP_ALIVE] = "ep_alive", [PE_ERROR] = "error", [PE_RESET_DONE] = "reset_done",
	[PE_PORT_DOWN] = "port_down", [PE_PORT_UP] = "port_up",
	[PE_OPERATOR] = "operator", [PE_STOP] = "stop",
};
const struct enum_names probe_event_names = { event_names, PE__MAX };

static const char *const action_names[] = {
	[PA_NONE] = "none", [PA_WANT_START] = "want_start", [PA_NEW_EPOCH] = "new_epoch",
	[PA_ADOPT_EPOCH] = "adopt_epoch", [PA_SEND_RESET] = "send_reset",
	[PA_ACK_RESET] = "ack_reset", [PA_SEND_VERSION] = "send_version",
	[PA_ACK_VERSION] = "ack_version", [PA_REFUSE] = "refuse",
	[PA_SEND_CONNECTED] = "send_connected", [PA_ACK_CONNECTED] = "ack_connected",
	[PA_SEND_PING] = "send_ping", [PA_ACK_PING] = "ack_ping",
	[PA_SEND_RESTART] = "send_restart", [PA_ACK_RESTART] = "ack_restart",
	[PA_SEND_STOP] = "send_stop", [PA_ACK_STOP] = "ack_stop", [PA_RESEND] = "resend",
	[PA_SETTLED] = "settled", [PA_EP_RESET] = "ep_reset", [PA_EP_START] = "ep_start",
	[PA_EP_PROBE] = "ep_probe", [PA_EP_HEARTBEAT] = "ep_heartbeat", [PA_UP] = "up",
	[PA_DOWN] = "down", [PA_HASTEN] = "hasten", [PA_COUNT_IGNORED] = "count_ignored",
	[PA_GONE] = "gone",
};
const struct enum_names probe_action_names = { action_names, PA__MAX };

typedef bool guard_fn(const struct probe_facts *f);

static bool is_tx(const struct probe_facts *f) { return f->role == ROLE_TX; }
static bool is_rx(const struct probe_facts *f) { return f->role == ROLE_RX; }
static bool probes_done(const struct probe_facts *f) { return is_tx(f) && f->probes_done; }
static bool peer_connected(const struct probe_facts *f) { return is_tx(f) && f->peer_connected; }
static bool retries_left(const struct probe_facts *f) { return f->retries_left; }
static bool version_new(const struct probe_facts *f) { return is_rx(f) && !f->version_taken; }
static bool version_acked(const struct probe_facts *f) { return is_rx(f) && f->version_acked; }
static bool epoch_spent(const struct probe_facts *f) { return is_rx(f) && f->version_taken; }
static bool reset_pending(const struct probe_facts *f) { return is_rx(f) && f->reset_pending; }
static bool rx_same_epoch(const struct probe_facts *f) { return is_rx(f) && f->same_epoch; }
static bool cookie_news(const struct probe_facts *f) { return is_tx(f) && f->cookie_news; }
static bool tell_peer(const struct probe_facts *f) { return f->tell_peer; }
static bool ep_idle(const struct probe_facts *f) { return !f->ep_busy; }
static bool nothing_out(const struct probe_facts *f) { return !f->cmd_out; }

/* For the generated table: guards have names there. */
static const struct { guard_fn *fn; const char *name; } guard_names[] = {
	{ is_tx, "tx" }, { is_rx, "rx" }, { probes_done, "tx, probes done" },
	{ peer_connected, "tx, Connected came" }, { retries_left, "retries left" },
	{ version_new, "rx, version not taken" },
	{ version_acked, "rx, version acked" }, { epoch_spent, "rx, version taken" },
	{ reset_pending, "rx, Reset pending" }, { rx_same_epoch, "rx, same epoch" },
	{ cookie_news, "tx, new cookie" }, { tell_peer, "tell peer" },
	{ ep_idle, "endpoint torn down" }, { nothing_out, "nothing to tell" },
};

#define S(x) (1u << CONN_##x)
#define ALL ((1u << CONN__MAX) - 1)
#define STAY CONN__MAX
#define IDLE S(IDLE)
#define SR S(SEND_RESET)
#define SPV S(SEND_PROTOCOL_VERSION)
#define RS S(RESETTING)
#define RD S(RESET_DONE)
#define WS S(WAIT_FOR_START)
#define FS S(FABRIC_START)
#define FP S(FABRIC_PROBE)
#define FA S(FABRIC_TX_PROBE_ACKS)
#define UPS (S(CONNECTED) | S(CONNECTED_PING)) /* connected */
#define FR S(FABRIC_RESET)
#define DY S(DESTROY)
#define ATTEMPT (WS | FS | FP | FA)	    /* an endpoint is coming up */
#define LIVE (ATTEMPT | UPS)		    /* there is an endpoint */
#define TEARDOWN (RS | FR)
#define BUT(x) (ALL & ~(x))

static const struct row {
	unsigned from;
	enum probe_event event;
	guard_fn *guard;
	enum conn_state to;
	enum probe_action actions[PROBE_ACTIONS_MAX];
} rows[] = {
	/* from, event, guard, to, actions in order */
	{ IDLE | RD, PE_START, is_tx, CONN_SEND_RESET, { PA_NEW_EPOCH, PA_SEND_RESET } },
	{ ALL, PE_START, NULL, STAY, { PA_NONE } },

	/* A state of an attempt lasts too long. */
	{ IDLE | RD, PE_TIMEOUT, is_rx, CONN_DESTROY, { PA_SETTLED, PA_EP_RESET } },
	{ IDLE | RD | SR | UPS, PE_TIMEOUT, NULL, STAY, { PA_NONE } },
	{ SPV | ATTEMPT, PE_TIMEOUT, is_rx, CONN_FABRIC_RESET,
	  { PA_SETTLED, PA_DOWN, PA_EP_RESET, PA_SEND_RESTART } },
	{ SPV | ATTEMPT, PE_TIMEOUT, NULL, CONN_FABRIC_RESET,
	  { PA_SETTLED, PA_DOWN, PA_EP_RESET } },
	{ TEARDOWN, PE_TIMEOUT, NULL, CONN_RESETTING, { PA_EP_RESET } },
	{ DY, PE_TIMEOUT, NULL, STAY, { PA_GONE } },

	/* An acknowledgement did not come in time. A ping is asked for ever: while the
	 * fabric is alive, control being blocked is a verdict and no failure. */
	{ SR | S(CONNECTED_PING), PE_RETRY, NULL, STAY, { PA_RESEND } },
	{ SPV | S(CONNECTED), PE_RETRY, retries_left, STAY, { PA_RESEND } },
	{ SPV, PE_RETRY, NULL, CONN_FABRIC_RESET, { PA_SETTLED, PA_DOWN, PA_EP_RESET } },
	{ S(CONNECTED), PE_RETRY, NULL, CONN_FABRIC_RESET,
	  { PA_SETTLED, PA_DOWN, PA_EP_RESET, PA_SEND_RESTART } },
	{ TEARDOWN | RD, PE_RETRY, retries_left, STAY, { PA_RESEND } },
	{ TEARDOWN | RD, PE_RETRY, NULL, STAY, { PA_SETTLED } },
	{ DY, PE_RETRY, retries_left, STAY, { PA_RESEND } },
	{ DY, PE_RETRY, ep_idle, STAY, { PA_SETTLED, PA_GONE } },
	{ DY, PE_RETRY, NULL, STAY, { PA_SETTLED } },
	{ IDLE | ATTEMPT, PE_RETRY, NULL, STAY, { PA_SETTLED } },

	{ S(CONNECTED), PE_PING_DUE, is_tx, CONN_CONNECTED_PING, { PA_SEND_PING } },
	{ ALL, PE_PING_DUE, NULL, STAY, { PA_NONE } },

	{ SR, PE_CHALLENGE, cookie_news, STAY, { PA_SEND_RESET } },
	{ ALL, PE_CHALLENGE, NULL, STAY, { PA_COUNT_IGNORED } },

	/* A repeat of this attempt's Reset is answered, never obeyed twice. */
	{ RD | LIVE, PE_RESET, rx_same_epoch, STAY, { PA_ACK_RESET } },
	{ BUT(RD | LIVE), PE_RESET, rx_same_epoch, STAY, { PA_NONE } },
	{ BUT(DY), PE_RESET, is_rx, CONN_RESETTING, { PA_DOWN, PA_ADOPT_EPOCH, PA_EP_RESET } },
	{ ALL, PE_RESET, NULL, STAY, { PA_COUNT_IGNORED } },

	{ SR, PE_RESET_ACK, is_tx, CONN_SEND_PROTOCOL_VERSION, { PA_SETTLED, PA_SEND_VERSION } },
	{ ALL, PE_RESET_ACK, NULL, STAY, { PA_COUNT_IGNORED } },

	/* One endpoint per epoch: after a failure the epoch is spent. */
	{ RD, PE_VERSION, version_new, CONN_WAIT_FOR_START, { PA_SETTLED, PA_EP_START } },
	{ LIVE, PE_VERSION, version_acked, STAY, { PA_ACK_VERSION } },
	{ LIVE, PE_VERSION, is_rx, STAY, { PA_NONE } },
	{ ALL, PE_VERSION, NULL, STAY, { PA_COUNT_IGNORED } },
	{ RD, PE_VERSION_BAD, version_new, STAY, { PA_REFUSE } },
	{ ALL, PE_VERSION_BAD, NULL, STAY, { PA_COUNT_IGNORED } },
	{ SPV, PE_VERSION_ACK, is_tx, CONN_WAIT_FOR_START, { PA_SETTLED, PA_EP_START } },
	{ ALL, PE_VERSION_ACK, NULL, STAY, { PA_COUNT_IGNORED } },

	/* Connected may overtake the event that tells of the probing, or of its end. */
	{ FP, PE_PEER_CONNECTED, probes_done, CONN_CONNECTED,
	  { PA_ACK_CONNECTED, PA_EP_HEARTBEAT, PA_UP } },
	{ FS | FP, PE_PEER_CONNECTED, is_tx, CONN_FABRIC_TX_PROBE_ACKS, { PA_ACK_CONNECTED } },
	{ FA | UPS, PE_PEER_CONNECTED, is_tx, STAY, { PA_ACK_CONNECTED } },
	{ ALL, PE_PEER_CONNECTED, NULL, STAY, { PA_COUNT_IGNORED } },
	{ S(CONNECTED), PE_CONNECTED_ACK, is_rx, STAY, { PA_SETTLED } },
	{ ALL, PE_CONNECTED_ACK, NULL, STAY, { PA_COUNT_IGNORED } },

	{ S(CONNECTED), PE_PING, is_rx, STAY, { PA_ACK_PING } },
	{ RD, PE_PING, epoch_spent, STAY, { PA_SEND_RESTART } },
	{ ALL, PE_PING, NULL, STAY, { PA_COUNT_IGNORED } },
	{ S(CONNECTED_PING), PE_PING_ACK, NULL, CONN_CONNECTED, { PA_SETTLED } },
	{ BUT(S(CONNECTED_PING)), PE_PING_ACK, NULL, STAY, { PA_COUNT_IGNORED } },

	{ SPV | LIVE, PE_RESTART, is_tx, CONN_FABRIC_RESET,
	  { PA_ACK_RESTART, PA_SETTLED, PA_DOWN, PA_EP_RESET } },
	{ BUT(SPV | LIVE), PE_RESTART, is_tx, STAY, { PA_ACK_RESTART } },
	{ ALL, PE_RESTART, NULL, STAY, { PA_COUNT_IGNORED } },
	{ TEARDOWN | RD, PE_RESTART_ACK, is_rx, STAY, { PA_SETTLED } },
	{ ALL, PE_RESTART_ACK, NULL, STAY, { PA_COUNT_IGNORED } },

	{ SPV | LIVE, PE_UNKNOWN, NULL, CONN_FABRIC_RESET,
	  { PA_SETTLED, PA_DOWN, PA_EP_RESET } },
	{ TEARDOWN | RD, PE_UNKNOWN, NULL, STAY, { PA_SETTLED } },
	{ DY, PE_UNKNOWN, ep_idle, STAY, { PA_SETTLED, PA_GONE } },
	{ DY, PE_UNKNOWN, NULL, STAY, { PA_SETTLED } },
	{ IDLE | SR, PE_UNKNOWN, NULL, STAY, { PA_COUNT_IGNORED } },

	{ SR | SPV, PE_REFUSED, is_tx, CONN_RESET_DONE, { PA_SETTLED, PA_DOWN, PA_WANT_START } },
	{ ATTEMPT, PE_REFUSED, is_tx, CONN_FABRIC_RESET, { PA_SETTLED, PA_DOWN, PA_EP_RESET } },
	{ ALL, PE_REFUSED, NULL, STAY, { PA_COUNT_IGNORED } },

	{ SPV | LIVE, PE_PEER_STOP, NULL, CONN_FABRIC_RESET,
	  { PA_ACK_STOP, PA_SETTLED, PA_DOWN, PA_EP_RESET } },
	{ BUT(SPV | LIVE), PE_PEER_STOP, NULL, STAY, { PA_ACK_STOP } },
	{ DY, PE_STOP_ACK, ep_idle, STAY, { PA_SETTLED, PA_GONE } },
	{ DY, PE_STOP_ACK, NULL, STAY, { PA_SETTLED } },
	{ BUT(DY), PE_STOP_ACK, NULL, STAY, { PA_COUNT_IGNORED } },

	{ WS, PE_EP_READY, is_rx, STAY, { PA_ACK_VERSION } },
	{ ALL, PE_EP_READY, NULL, STAY, { PA_NONE } },
	{ WS, PE_EP_UP, NULL, CONN_FABRIC_START, { PA_EP_PROBE } },
	{ BUT(WS), PE_EP_UP, NULL, STAY, { PA_NONE } },
	{ FS, PE_EP_PROBING, NULL, CONN_FABRIC_PROBE, { PA_NONE } },
	{ BUT(FS), PE_EP_PROBING, NULL, STAY, { PA_NONE } },
	{ FS | FP, PE_EP_PROBES_DONE, is_rx, CONN_CONNECTED,
	  { PA_EP_HEARTBEAT, PA_UP, PA_SEND_CONNECTED } },
	{ FS | FP | FA, PE_EP_PROBES_DONE, peer_connected, CONN_CONNECTED,
	  { PA_EP_HEARTBEAT, PA_UP } },
	{ ALL, PE_EP_PROBES_DONE, NULL, STAY, { PA_NONE } },

	{ UPS, PE_EP_LATE, is_rx, CONN_FABRIC_RESET,
	  { PA_SETTLED, PA_DOWN, PA_EP_RESET, PA_SEND_RESTART } },
	{ UPS, PE_EP_LATE, NULL, CONN_FABRIC_RESET, { PA_SETTLED, PA_DOWN, PA_EP_RESET } },
	{ BUT(UPS), PE_EP_LATE, NULL, STAY, { PA_NONE } },
	{ ALL, PE_EP_ALIVE, NULL, STAY, { PA_NONE } },

	{ LIVE, PE_ERROR, is_rx, CONN_FABRIC_RESET,
	  { PA_SETTLED, PA_DOWN, PA_EP_RESET, PA_SEND_RESTART } },
	{ LIVE, PE_ERROR, NULL, CONN_FABRIC_RESET, { PA_SETTLED, PA_DOWN, PA_EP_RESET } },
	{ BUT(LIVE), PE_ERROR, NULL, STAY, { PA_NONE } },

	{ RS, PE_RESET_DONE, reset_pending, CONN_RESET_DONE, { PA_ACK_RESET } },
	{ TEARDOWN, PE_RESET_DONE, is_tx, CONN_RESET_DONE, { PA_WANT_START } },
	{ TEARDOWN, PE_RESET_DONE, NULL, CONN_RESET_DONE, { PA_NONE } },
	/* The provider lost it without a word. */
	{ LIVE, PE_RESET_DONE, is_rx, CONN_FABRIC_RESET,
	  { PA_SETTLED, PA_DOWN, PA_EP_RESET, PA_SEND_RESTART } },
	{ LIVE, PE_RESET_DONE, NULL, CONN_FABRIC_RESET, { PA_SETTLED, PA_DOWN, PA_EP_RESET } },
	{ DY, PE_RESET_DONE, nothing_out, STAY, { PA_GONE } },
	{ BUT(TEARDOWN | LIVE), PE_RESET_DONE, NULL, STAY, { PA_NONE } },

	{ LIVE, PE_PORT_DOWN, is_rx, CONN_FABRIC_RESET,
	  { PA_SETTLED, PA_DOWN, PA_EP_RESET, PA_SEND_RESTART } },
	{ SR | SPV | LIVE, PE_PORT_DOWN, NULL, CONN_FABRIC_RESET,
	  { PA_SETTLED, PA_DOWN, PA_EP_RESET } },
	{ BUT(SR | SPV | LIVE), PE_PORT_DOWN, NULL, STAY, { PA_NONE } },
	{ IDLE | RD | SR, PE_PORT_UP, is_tx, STAY, { PA_HASTEN } },
	{ ALL, PE_PORT_UP, NULL, STAY, { PA_NONE } },
	{ LIVE, PE_OPERATOR, is_rx, CONN_FABRIC_RESET,
	  { PA_SETTLED, PA_DOWN, PA_EP_RESET, PA_SEND_RESTART } },
	{ SPV | LIVE, PE_OPERATOR, NULL, CONN_FABRIC_RESET, { PA_SETTLED, PA_DOWN, PA_EP_RESET } },
	{ IDLE | RD | SR, PE_OPERATOR, is_tx, STAY, { PA_HASTEN } },
	{ BUT(SPV | LIVE), PE_OPERATOR, NULL, STAY, { PA_NONE } },

	{ BUT(DY), PE_STOP, tell_peer, CONN_DESTROY,
	  { PA_SETTLED, PA_DOWN, PA_EP_RESET, PA_SEND_STOP } },
	{ BUT(DY), PE_STOP, NULL, CONN_DESTROY, { PA_SETTLED, PA_DOWN, PA_EP_RESET } },
	{ DY, PE_STOP, NULL, STAY, { PA_NONE } },
};
/* clang-format on */

static bool row_matches(const struct row *r, enum conn_state s, enum probe_event e,
			const struct probe_facts *f)
{
	return (r->from >> s) & 1 && r->event == e && (!r->guard || r->guard(f));
}

struct probe_step probe_fsm_step(enum conn_state s, enum probe_event e,
				 const struct probe_facts *f)
{
	struct probe_step step = {.next = s, .row = -1};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		if (!row_matches(&rows[i], s, e, f))
			continue;
		if (rows[i].to != STAY)
			step.next = rows[i].to;
		memcpy(step.actions, rows[i].actions, sizeof(step.actions));
		step.row = (int)i;
		break;
	}
	assert(step.row >= 0);
	return step;
}

/* A row after the unguarded one of its state and event can never match. */
static int check_pair(enum conn_state s, enum probe_event e, char *why, size_t size)
{
	int plain = -1;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		if (!((rows[i].from >> s) & 1) || rows[i].event != e)
			continue;
		if (plain >= 0) {
			(void)snprintf(why, size, "%s x %s: row %zu after plain row %d",
				       enum_name(&conn_state_names, (int)s),
				       enum_name(&probe_event_names, (int)e), i, plain);
			return -EPROTO;
		}
		if (!rows[i].guard)
			plain = (int)i;
	}
	if (plain >= 0)
		return 0;
	(void)snprintf(why, size, "%s x %s: no plain row",
		       enum_name(&conn_state_names, (int)s),
		       enum_name(&probe_event_names, (int)e));
	return -EPROTO;
}

int probe_fsm_selftest(char *why, size_t size)
{
	int r;

	for (int s = 0; s < CONN__MAX; s++)
		for (int e = 0; e < PE__MAX; e++) {
			r = check_pair((enum conn_state)s, (enum probe_event)e, why,
				       size);
			if (r < 0)
				return r;
		}
	return 0;
}

static void append_states(unsigned from, char *buf, size_t size)
{
	const char *sep = "";

	if (__builtin_popcount(from) > CONN__MAX / 2) {
		str_append(buf, size, from == ALL ? "all" : "all but ");
		from = ~from;
	}
	for (int s = 0; s < CONN__MAX; s++) {
		if (!((from >> s) & 1))
			continue;
		str_append(buf, size, "%s%s", sep, enum_text(&conn_state_names, s));
		sep = ", ";
	}
}

static const char *guard_name(guard_fn *fn)
{
	for (size_t i = 0; i < ARRAY_LEN(guard_names); i++)
		if (guard_names[i].fn == fn)
			return guard_names[i].name;
	return fn ? "?" : "-";
}

bool probe_fsm_row_text(int row, char *buf, size_t size)
{
	const struct row *r;
	const char *sep = "";

	if (row < 0 || (size_t)row >= ARRAY_LEN(rows) || !size)
		return false;
	r = &rows[row];
	buf[0] = '\0';
	str_append(buf, size, "| %d | ", row);
	append_states(r->from, buf, size);
	str_append(buf, size, " | %s | %s | %s | ",
		   enum_text(&probe_event_names, (int)r->event), guard_name(r->guard),
		   r->to == STAY ? "-" : enum_text(&conn_state_names, (int)r->to));
	for (int i = 0; i < PROBE_ACTIONS_MAX && r->actions[i] != PA_NONE; i++) {
		str_append(buf, size, "%s%s", sep,
			   enum_text(&probe_action_names, (int)r->actions[i]));
		sep = ", ";
	}
	str_append(buf, size, "%s |", *sep ? "" : "-");
	return true;
}
