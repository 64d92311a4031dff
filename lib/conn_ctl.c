/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The control half of a connection: which messages count, what is told to the state
 * machine, and how commands are sent, sent again and acknowledged.
 */
#include <stdlib.h>

#include "conn_turn.h"

#define STOP_TRIES	  4
#define STOP_RETRY	  (125 * NSEC_PER_MSEC)
#define STOP_DEADLINE_MAX 3600 /* s: a dead host must not pass for a stopped one */
#define COOKIE_ANSWERS	  3
#define RTO_MIN		  (200 * NSEC_PER_MSEC)
#define HEARTBEAT_MIN_US  10000u
#define HEARTBEAT_MAX_US  3600000000u

/* ---- sending ---- */

/* RFC 6298; its least of a second is for a network of strangers. */
static int64_t first_wait(const struct conn *c)
{
	int64_t first = c->params.ack_timeout;

	return rto_wait(&c->ctl_rto, first, 0, MIN(first, RTO_MIN),
			MAX(first, c->params.backoff_max));
}

static int64_t retry_after(struct conn_turn *t)
{
	struct conn *c = t->c;
	int64_t wait = first_wait(c);

	switch (c->out->cmd) {
	case CTL_RESET:
		return backoff_next(&c->out->wait, turn_random(t));
	case CTL_STOP:
		return STOP_RETRY;
	case CTL_PING:
		if (c->out->tries > c->params.ack_retries)
			return c->params.ping_interval;
		break;
	default:
		break;
	}
	for (int i = 1; i < c->out->tries && wait < c->params.backoff_max; i++)
		wait *= 2;
	wait = MIN(wait, MAX(c->params.backoff_max, first_wait(c)));
	return wait - (int64_t)(turn_random(t) % (uint64_t)(wait / 10 + 1));
}

bool conn_ctl_retries_left(const struct conn *c)
{
	if (!c->out)
		return true;
	if (c->out->cmd == CTL_STOP)
		return c->out->tries < STOP_TRIES;
	return c->out->tries <= c->params.ack_retries;
}

static uint32_t heartbeat_us(int64_t ns)
{
	return (uint32_t)MAX((int64_t)HEARTBEAT_MIN_US,
			     MIN(ns / NSEC_PER_USEC, (int64_t)HEARTBEAT_MAX_US));
}

static uint32_t min_rx_us(const struct conn *c)
{
	return c->params.min_receive ? heartbeat_us(c->params.min_receive) : 0;
}

/* The epoch of a new attempt, of one's own or of the peer's Reset. */
void conn_ctl_epoch(struct conn *c, uint64_t epoch)
{
	if (c->epoch)
		conn_ring_add(&c->old_epochs, c->epoch, CONN_EPOCHS - 1);
	c->epoch = epoch;
	c->attempts++;
}

/* What the command that waits says, beside its head. */
static void fill_command(const struct conn *c, struct ctl_msg *m)
{
	const struct conn_out *o = c->out;

	switch (m->cmd) {
	case CTL_PROTOCOL_VERSION:
		m->version_min = CTL_VERSION_MIN;
		m->version_max = CTL_VERSION_MAX;
		m->heartbeat_us = heartbeat_us(c->params.heartbeat);
		m->multiplier = c->params.multiplier;
		m->min_rx_us = min_rx_us(c);
		m->probe_small = c->params.probe_small;
		m->probe_large = c->params.probe_large;
		m->probe_size = c->params.probe_size;
		break;
	case CTL_RESET:
		m->has_cookie = true;
		memcpy(m->cookie, o->cookie, sizeof(m->cookie)); /* zero: none yet */
		break;
	case CTL_RESTART:
		m->cause = o->cause;
		return;
	case CTL_STOP:
		m->cause = o->cause;
		m->deadline_sec = o->deadline_sec;
		return;
	default:
		return;
	}
	m->transport = (uint8_t)c->key.transport;
	m->flow = c->key.flow;
}

/* Each copy has a fresh number, or the receiver's replay window would drop it; its
 * acknowledgement may name any number it was sent under. */
static void send_out(struct conn_turn *t)
{
	struct conn *c = t->c;
	struct conn_out *o = c->out;
	struct ctl_msg *m = &turn_emit(t, CA_SEND)->msg;

	o->sent = t->now;
	o->seq = c->next_seq++;
	if (!o->first)
		o->first = o->seq;
	if (!mono_is_set(c->ctl_unanswered_since))
		c->ctl_unanswered_since = t->now;
	m->cmd = o->cmd;
	m->src_id = c->id;
	m->dst_id = o->dst_id;
	m->epoch = o->epoch;
	m->seq = o->seq;
	fill_command(c, m);
}

static void begin_command(struct conn_turn *t, enum ctl_cmd cmd)
{
	struct conn *c = t->c;
	struct conn_out *o = c->out ? c->out : xcalloc(1, sizeof(*o));

	*o = (struct conn_out){.cmd = cmd,
			       .tries = 1,
			       .dst_id = c->peer_id,
			       .epoch = c->epoch,
			       .cause = (uint8_t)c->restart_cause};
	if (cmd == CTL_RESET) {
		o->dst_id = 0; /* whoever is there now */
		o->wait = (struct backoff){
			.min = c->stop_cause ? c->params.backoff_min : first_wait(c),
			.max = MAX(c->params.backoff_max, first_wait(c)),
		};
	} else if (cmd == CTL_STOP) {
		o->cause = (uint8_t)t->cause;
		o->deadline_sec = t->deadline_sec;
	}
	c->out = o;
}

void conn_ctl_command(struct conn_turn *t, enum ctl_cmd cmd)
{
	struct conn *c = t->c;

	if (cmd == CTL_RESET && c->out && c->out->cmd == CTL_RESET) {
		/* Challenged: the timer goes on as if this were the first of the pair. */
		c->out->tries++;
		c->out->cookie_answers++;
		c->out->retry_at =
			mono_add(t->now, MAX(first_wait(c), c->out->wait.last));
	} else {
		begin_command(t, cmd);
		c->out->retry_at = mono_add(t->now, retry_after(t));
	}
	send_out(t);
}

void conn_ctl_resend(struct conn_turn *t)
{
	struct conn_out *o = t->c->out;

	if (!o)
		return;
	o->tries++;
	o->cookie_answers = 0;
	o->retry_at = mono_add(t->now, retry_after(t));
	send_out(t);
}

void conn_ctl_settled(struct conn *c)
{
	free(c->out);
	c->out = NULL;
}

const struct conn_request *conn_ctl_asked(const struct conn *c)
{
	static const struct conn_request none;

	return c->asked ? c->asked : &none;
}

void conn_ctl_ack(struct conn_turn *t, enum ctl_cmd cmd, const struct conn_request *of)
{
	struct conn *c = t->c;
	struct ctl_msg *m = &turn_emit(t, CA_SEND)->msg;

	m->cmd = cmd;
	m->src_id = c->id;
	m->dst_id = of ? of->src_id : t->msg->src_id;
	m->epoch = of ? of->epoch : t->msg->epoch;
	m->seq = c->next_seq++;
	m->ack_seq = of ? of->seq : t->msg->seq;
	if (cmd == CTL_REFUSED)
		m->refusal = (uint8_t)t->refusal;
	if (cmd != CTL_PROTOCOL_VERSION_ACK)
		return;
	m->version_min = m->version_max = c->version;
	m->heartbeat_us = heartbeat_us(c->heartbeat);
	m->multiplier = c->params.multiplier;
	m->min_rx_us = min_rx_us(c);
	m->rdma_addr = c->ep_addr;
}

/* ---- receiving ---- */

static int dropped(enum drop why)
{
	return -(1 + (int)why);
}

static bool is_retired(const struct conn *c, uint64_t id)
{
	return conn_ring_has(&c->retired_ids, id);
}

static bool epoch_seen(const struct conn *c, uint64_t epoch)
{
	return (c->epoch && epoch == c->epoch) || conn_ring_has(&c->old_epochs, epoch);
}

/* The peer shows under another id: the one before never comes back. */
static void set_peer(struct conn *c, uint64_t id)
{
	c->peer_id = id;
	if (c->window_id)
		conn_ring_add(&c->retired_ids, c->window_id, CONN_RETIRED);
	c->window_id = id;
	c->rx_window = (struct replay){0};
}

static void keep_request(struct conn *c, const struct ctl_msg *m)
{
	if (!c->asked)
		c->asked = xcalloc(1, sizeof(*c->asked));
	*c->asked = (struct conn_request){.cmd = m->cmd,
					  .src_id = m->src_id,
					  .epoch = m->epoch,
					  .seq = m->seq,
					  .rdma_addr = m->rdma_addr,
					  .heartbeat_us = m->heartbeat_us,
					  .multiplier = m->multiplier,
					  .probe_small = m->probe_small,
					  .probe_large = m->probe_large,
					  .probe_size = m->probe_size,
					  .version_max = m->version_max};
}

static void note_answer(struct conn_turn *t, const struct ctl_msg *m)
{
	struct conn *c = t->c;

	c->last_ctl_rx = t->now;
	c->ctl_unanswered_since = MONO_NEVER;
	if (m->told_port != TOLD_PORT_UNKNOWN)
		c->told_port = m->told_port;
	if (m->told_device != TOLD_DEVICE_UNKNOWN)
		c->told_device = m->told_device;
	c->told_lateness_us = m->told_lateness_us;
}

static void note_stop(struct conn_turn *t, const struct ctl_msg *m)
{
	struct conn *c = t->c;

	c->stop_cause = m->cause > CAUSE_NONE && m->cause < CAUSE__MAX
				? (enum cause)m->cause
				: CAUSE_SHUTDOWN;
	c->stop_at = t->now;
	c->stop_until =
		mono_add(t->now, MIN(m->deadline_sec, (uint32_t)STOP_DEADLINE_MAX) *
					 NSEC_PER_SEC);
}

static int finish(struct conn_turn *t, const struct ctl_msg *m, enum probe_event e)
{
	note_answer(t, m);
	t->ignored = false;
	conn_step(t, e);
	return t->ignored ? dropped(DROP_STATE) : 0;
}

static bool ack_matches(const struct conn *c, enum ctl_cmd of, uint64_t ack_seq)
{
	return c->out && c->out->cmd == of && ack_seq >= c->out->first &&
	       ack_seq <= c->out->seq;
}

static void note_round_trip(struct conn_turn *t, uint64_t ack_seq)
{
	struct conn *c = t->c;
	int64_t rtt = mono_sub(t->now, c->out->sent);

	if (ack_seq == c->out->seq)
		rto_sample(&c->ctl_rto, rtt);
}

/* What the stop brought with it is over, and no sign of anything else. */
static void came_back(struct conn *c)
{
	if (c->stop_cause != CAUSE_NONE)
		conn_forget_error(c);
	c->stop_cause = CAUSE_NONE;
	c->stop_until = MONO_NEVER;
}

void conn_ctl_adopt(struct conn_turn *t)
{
	struct conn *c = t->c;
	const struct conn_request *m = conn_ctl_asked(c);

	if (c->window_id != m->src_id) {
		set_peer(c, m->src_id);
		(void)replay_accept(&c->rx_window, m->seq);
	}
	conn_ctl_epoch(c, m->epoch);
	c->version = 0;
	came_back(c);
	c->facts = (struct probe_facts){.reset_pending = true};
	conn_ctl_settled(c);
}

static int handle_reset(struct conn_turn *t, const struct ctl_msg *m)
{
	struct conn *c = t->c;
	bool same = m->epoch == c->epoch;

	if (c->key.role != ROLE_RX)
		return dropped(DROP_STATE);
	if (!m->src_id || !m->epoch || (same && m->src_id != c->peer_id))
		return dropped(DROP_EPOCH);
	if (is_retired(c, m->src_id) || !m->seq)
		return dropped(DROP_REPLAY);
	if (!same && epoch_seen(c, m->epoch))
		return dropped(DROP_EPOCH);
	if (m->src_id == c->window_id) {
		/* Overtaken by a later attempt: a new epoch has the highest number. */
		if (!same && m->seq <= c->rx_window.highest)
			return dropped(DROP_EPOCH);
		if (!replay_accept(&c->rx_window, m->seq))
			return dropped(DROP_REPLAY);
	}
	c->facts.same_epoch = same;
	/* The newest copy of a Reset that waits for the teardown; not over a waiting
	 * ProtocolVersion, which a late copy of its Reset may follow. */
	if (c->state != CONN_DESTROY && (!same || c->facts.reset_pending)) {
		keep_request(c, m);
		conn_keep_peer_names(c, m);
	}
	return finish(t, m, PE_RESET);
}

/* Challenge, Unknown, Refused: the peer may have no connection to speak for, so there
 * is no number to check. Each must answer the command that is out: a recorded one is
 * old as soon as that command is settled. */
static int handle_stateless(struct conn_turn *t, const struct ctl_msg *m)
{
	struct conn *c = t->c;
	bool fits;

	if (m->dst_id != c->id || m->epoch != c->epoch || !c->epoch ||
	    (m->src_id && c->peer_id && m->src_id != c->peer_id))
		return dropped(DROP_EPOCH);
	if (!c->out || !ack_matches(c, c->out->cmd, m->ack_seq))
		return dropped(DROP_STATE);
	if (m->src_id && m->src_id == c->window_id &&
	    !replay_accept(&c->rx_window, m->seq))
		return dropped(DROP_REPLAY);
	switch (m->cmd) {
	case CTL_CHALLENGE:
		fits = m->has_cookie &&
		       (!c->out->has_cookie ||
			memcmp(c->out->cookie, m->cookie, sizeof(c->out->cookie)));
		c->facts.cookie_news = fits && c->out->cookie_answers < COOKIE_ANSWERS;
		if (fits) {
			memcpy(c->out->cookie, m->cookie, sizeof(c->out->cookie));
			c->out->has_cookie = true;
		}
		return finish(t, m, PE_CHALLENGE);
	case CTL_UNKNOWN:
		c->unknown_at = t->now;
		return finish(t, m, PE_UNKNOWN);
	default:
		fits = c->key.role == ROLE_TX && c->state >= CONN_SEND_RESET &&
		       c->state <= CONN_FABRIC_TX_PROBE_ACKS &&
		       c->state != CONN_RESETTING && c->state != CONN_RESET_DONE;
		if (fits) {
			if (!m->unproven)
				came_back(c); /* who is stopping answers nothing */
			c->refused = true;
			c->refused_at = t->now;
			c->refusal =
				m->refusal > REFUSE_NONE && m->refusal < REFUSE__MAX
					? (enum refusal)m->refusal
					: REFUSE_NOT_ALLOWED;
		}
		return finish(t, m, PE_REFUSED);
	}
}

static int handle_reset_ack(struct conn_turn *t, const struct ctl_msg *m)
{
	struct conn *c = t->c;

	if (c->key.role != ROLE_TX || c->state != CONN_SEND_RESET ||
	    !ack_matches(c, CTL_RESET, m->ack_seq))
		return dropped(DROP_STATE);
	if (m->dst_id != c->id || m->epoch != c->epoch || !m->src_id)
		return dropped(DROP_EPOCH);
	if (is_retired(c, m->src_id))
		return dropped(DROP_REPLAY);
	if (m->src_id == c->window_id && !replay_accept(&c->rx_window, m->seq))
		return dropped(DROP_REPLAY);
	if (m->src_id != c->window_id) {
		set_peer(c, m->src_id);
		(void)replay_accept(&c->rx_window, m->seq);
	}
	c->peer_id = m->src_id;
	came_back(c);
	return finish(t, m, PE_RESET_ACK);
}

static enum refusal judge_version(const struct conn *c, const struct ctl_msg *m)
{
	if (m->version_min > m->version_max || m->version_min > CTL_VERSION_MAX ||
	    m->version_max < CTL_VERSION_MIN)
		return REFUSE_VERSION;
	if (m->transport != c->key.transport)
		return REFUSE_TRANSPORT;
	return REFUSE_NONE;
}

static int handle_version(struct conn_turn *t, const struct ctl_msg *m)
{
	struct conn *c = t->c;

	t->refusal = judge_version(c, m);
	if (t->refusal != REFUSE_NONE)
		return finish(t, m, PE_VERSION_BAD);
	/* The answer goes to the newest copy: its number is the least likely to be old.
	 */
	if (c->key.role == ROLE_RX && c->facts.version_taken && c->asked)
		c->asked->seq = MAX(c->asked->seq, m->seq);
	else if (c->key.role == ROLE_RX && c->state == CONN_RESET_DONE)
		keep_request(c, m);
	return finish(t, m, PE_VERSION);
}

static int handle_version_ack(struct conn_turn *t, const struct ctl_msg *m)
{
	struct conn *c = t->c;

	if (m->version_min != m->version_max || m->version_min < CTL_VERSION_MIN ||
	    m->version_max > CTL_VERSION_MAX) {
		c->refused = true;
		c->refused_at = t->now;
		c->refusal = REFUSE_VERSION;
		return finish(t, m, PE_REFUSED);
	}
	if (!addr_is_set(&m->rdma_addr))
		return dropped(DROP_MALFORMED);
	c->version = m->version_min;
	c->heartbeat =
		MAX(c->params.heartbeat,
		    heartbeat_us(MAX(m->heartbeat_us, m->min_rx_us) * NSEC_PER_USEC) *
			    NSEC_PER_USEC);
	c->ep_addr = m->rdma_addr;
	c->refusal = REFUSE_NONE;
	conn_keep_peer_names(c, m);
	return finish(t, m, PE_VERSION_ACK);
}

static int handle_ack(struct conn_turn *t, const struct ctl_msg *m, enum ctl_cmd of,
		      enum probe_event e)
{
	if (!ack_matches(t->c, of, m->ack_seq)) {
		note_answer(t, m);
		return dropped(DROP_STATE);
	}
	if (e == PE_VERSION_ACK)
		return handle_version_ack(t, m);
	note_round_trip(t, m->ack_seq);
	return finish(t, m, e);
}

/* A Stop or Restart of an attempt that is over: the peer still waits for its answer,
 * and that it stopped is news. The state does not care. */
static int handle_old_epoch(struct conn_turn *t, const struct ctl_msg *m)
{
	struct conn *c = t->c;

	if (m->dst_id != c->id || !m->src_id || m->src_id != c->window_id ||
	    !epoch_seen(c, m->epoch) || (m->cmd != CTL_STOP && m->cmd != CTL_RESTART))
		return dropped(DROP_EPOCH);
	if (!replay_accept(&c->rx_window, m->seq))
		return dropped(DROP_REPLAY);
	note_answer(t, m);
	if (m->cmd == CTL_STOP)
		note_stop(t, m);
	conn_ctl_ack(t, m->cmd == CTL_STOP ? CTL_STOP_ACK : CTL_RESTART_ACK, NULL);
	return 0;
}

/* rx may notice first that nothing comes through, and its Restart takes this side's own
 * detection away. A failed endpoint says so only of an attempt: later it may be that this
 * host's device or worker went, which is still to be heard of. */
static void note_restart(struct conn *c, const struct ctl_msg *m)
{
	bool attempt = c->state >= CONN_WAIT_FOR_START &&
		       c->state <= CONN_FABRIC_TX_PROBE_ACKS;

	if (c->key.role != ROLE_TX || m->cause >= CAUSE__MAX)
		return;
	c->restart_cause = (enum cause)m->cause;
	if (!c->connected && !attempt)
		return;
	if (m->cause == CAUSE_HEARTBEAT_LOST || m->cause == CAUSE_TIMEOUT ||
	    (m->cause == CAUSE_ENDPOINT_ERROR && attempt))
		c->told_lost = true;
}

static int handle_in_epoch(struct conn_turn *t, const struct ctl_msg *m)
{
	struct conn *c = t->c;

	switch (m->cmd) {
	case CTL_PROTOCOL_VERSION:
		return handle_version(t, m);
	case CTL_PROTOCOL_VERSION_ACK:
		return handle_ack(t, m, CTL_PROTOCOL_VERSION, PE_VERSION_ACK);
	case CTL_CONNECTED:
		c->facts.peer_connected = c->key.role == ROLE_TX;
		return finish(t, m, PE_PEER_CONNECTED);
	case CTL_CONNECTED_ACK:
		return handle_ack(t, m, CTL_CONNECTED, PE_CONNECTED_ACK);
	case CTL_PING:
		return finish(t, m, PE_PING);
	case CTL_PING_ACK:
		return handle_ack(t, m, CTL_PING, PE_PING_ACK);
	case CTL_RESTART:
		note_restart(c, m);
		return finish(t, m, PE_RESTART);
	case CTL_RESTART_ACK:
		return handle_ack(t, m, CTL_RESTART, PE_RESTART_ACK);
	case CTL_STOP:
		note_stop(t, m);
		return finish(t, m, PE_PEER_STOP);
	case CTL_STOP_ACK:
		return handle_ack(t, m, CTL_STOP, PE_STOP_ACK);
	default:
		return dropped(DROP_MALFORMED);
	}
}

int conn_ctl_handle(struct conn_turn *t, const struct ctl_msg *m)
{
	struct conn *c = t->c;

	t->msg = m;
	switch (m->cmd) {
	case CTL_RESET:
		return handle_reset(t, m);
	case CTL_RESET_ACK:
		return handle_reset_ack(t, m);
	case CTL_CHALLENGE:
	case CTL_UNKNOWN:
	case CTL_REFUSED:
		return handle_stateless(t, m);
	default:
		break;
	}
	if (!c->peer_id || m->src_id != c->peer_id || m->dst_id != c->id ||
	    m->epoch != c->epoch)
		return handle_old_epoch(t, m);
	if (!replay_accept(&c->rx_window, m->seq))
		return dropped(DROP_REPLAY);
	return handle_in_epoch(t, m);
}
