/* SPDX-License-Identifier: BSD-2-Clause */
#include "conn.h"

#include <stdio.h>
#include <stdlib.h>

#include "conn_turn.h"

#define DESTROY_MAX (5 * NSEC_PER_SEC)
#define DROPPED_KEEP (1 * NSEC_PER_SEC)
#define ASK_AGAIN   (60 * NSEC_PER_SEC) /* a start grant that does not come */
#define MULTIPLIER_MAX 100
#define PROVEN	    (10 * NSEC_PER_SEC) /* connected so long: a loss is not flapping */

const char *conn_key_format(const struct conn_key *k, char buf[CONN_KEY_MAX])
{
	char ip[ADDR_TEXT_MAX];

	(void)snprintf(buf, CONN_KEY_MAX, "%s/%s:%s:%s:%s>%s#%u", k->peer, k->rail,
		       enum_name(&role_names, (int)k->role),
		       enum_name(&transport_names, (int)k->transport), k->port_name,
		       addr_format(&k->remote, ip), (unsigned)k->flow);
	return buf;
}

uint64_t turn_random(struct conn_turn *t)
{
	t->rnd = mix64(t->rnd);
	return t->rnd ? t->rnd : 1;
}

_Static_assert(offsetof(struct ctl_msg, rails) >= sizeof(struct ep_start) &&
		       offsetof(struct ctl_msg, rails) >= sizeof(struct conn_history),
	       "an action is zero but for the rails of its message");

struct conn_action *turn_emit(struct conn_turn *t, enum conn_action_type type)
{
	struct conn_action *a = &t->out->a[t->out->n];

	assert(t->out->n < CONN_ACTIONS_MAX);
	t->out->n++;
	/* The list of rails is long, and whoever adds to it counts what is there. */
	memset(a, 0, offsetof(struct conn_action, msg.rails));
	a->type = type;
	return a;
}

static struct mono state_deadline(const struct conn *c, struct mono now)
{
	struct mono keep;

	switch (c->state) {
	case CONN_IDLE:
	case CONN_RESET_DONE:
		if (c->key.role == ROLE_TX)
			return MONO_NEVER;
		/* A probe that was dropped stays only as long as that may be repeated; a
		 * stopped peer stays visible until its own deadline. */
		if (c->stop_cause == CAUSE_CONFIG)
			return mono_add(now, DROPPED_KEEP);
		keep = mono_add(now, c->params.rx_keep);
		return c->stop_until.ns > keep.ns ? c->stop_until : keep;
	case CONN_SEND_RESET:
	case CONN_CONNECTED:
	case CONN_CONNECTED_PING:
		return MONO_NEVER;
	case CONN_WAIT_FOR_START:
	case CONN_FABRIC_START:
	case CONN_FABRIC_PROBE:
	case CONN_FABRIC_TX_PROBE_ACKS:
		/* rx waits longer: tx shall see for itself what failed and where. */
		if (c->key.role == ROLE_RX)
			return mono_add(now, c->params.attempt_timeout * 3 / 2);
		return mono_add(now, c->params.attempt_timeout);
	case CONN_SEND_PROTOCOL_VERSION:
	case CONN_RESETTING:
	case CONN_FABRIC_RESET:
		return mono_add(now, c->params.attempt_timeout);
	case CONN_DESTROY:
		return mono_add(now, MIN(c->params.attempt_timeout, DESTROY_MAX));
	case CONN__MAX:
		break;
	}
	return MONO_NEVER;
}

static int64_t ping_wait(struct conn_turn *t)
{
	int64_t i = t->c->params.ping_interval;

	return i - (int64_t)(turn_random(t) % (uint64_t)(i / 10 + 1));
}

/* A ping that is answered, every ten seconds, would wash out what mattered. */
static bool is_ping(const struct conn_history *h)
{
	return (h->from == CONN_CONNECTED && h->to == CONN_CONNECTED_PING) ||
	       (h->from == CONN_CONNECTED_PING && h->to == CONN_CONNECTED);
}

static void conn_set_state(struct conn_turn *t, const struct probe_step *step)
{
	struct conn *c = t->c;
	struct conn_history h = {.at = t->now,
				 .from = c->state,
				 .to = step->next,
				 .event = t->event,
				 .row = step->row};

	if (!is_ping(&h))
		conn_keep_history(c, &h);
	c->state = step->next;
	c->state_since = t->now;
	c->deadline = state_deadline(c, t->now);
	c->start_wanted = false;
	c->start_at = c->ping_at = MONO_NEVER;
	if (c->state == CONN_CONNECTED && c->key.role == ROLE_TX)
		c->ping_at = mono_add(t->now, ping_wait(t));
	turn_emit(t, CA_STATE)->state = h;
}

/* ---- the actions of the table ---- */

static void want_start(struct conn_turn *t)
{
	struct conn *c = t->c;
	uint64_t rnd = turn_random(t);
	int64_t wait;

	if (c->refused)
		wait = c->params.backoff_max / 2 +
		       (int64_t)(rnd % (uint64_t)(c->params.backoff_max / 2 + 1));
	else if (c->quick)
		wait = c->params.backoff_min / 2 +
		       (int64_t)(rnd % (uint64_t)(c->params.backoff_min / 2 + 1));
	else
		wait = backoff_next(&c->backoff, rnd);
	c->quick = false;
	c->start_at = mono_add(t->now, MAX(wait, 1));
}

static void new_epoch(struct conn_turn *t)
{
	struct conn *c = t->c;

	conn_ctl_epoch(c, turn_random(t));
	c->peer_id = 0;
	c->version = 0;
	c->refused = false;
	c->stage = STAGE_NONE;
	c->facts = (struct probe_facts){0};
	conn_ctl_settled(c);
}

static struct ep_start *emit_verb(struct conn_turn *t, enum conn_action_type type)
{
	struct ep_start *s = &turn_emit(t, type)->start;

	s->conn_id = t->c->id;
	s->peer_conn_id = t->c->peer_id;
	s->epoch = t->c->ep_epoch;
	s->role = (uint8_t)t->c->key.role;
	s->transport = (uint8_t)t->c->key.transport;
	return s;
}

/* rx: what tx asked for, within what fits. */
static void take_version(struct conn *c)
{
	const struct conn_request *m = conn_ctl_asked(c);
	int64_t wanted = m->heartbeat_us * NSEC_PER_USEC;

	c->version = MIN(m->version_max, (uint8_t)CTL_VERSION_MAX);
	c->peer_heartbeat_us = m->heartbeat_us;
	c->heartbeat = MAX(c->params.min_receive, MIN(wanted, 3600 * NSEC_PER_SEC));
	c->multiplier = MAX(MIN(m->multiplier, (uint8_t)MULTIPLIER_MAX), (uint8_t)1);
	c->facts.version_taken = true;
}

static void ep_start(struct conn_turn *t)
{
	struct conn *c = t->c;
	struct ep_start *s;

	if (c->key.role == ROLE_RX)
		take_version(c);
	else
		c->multiplier = MAX(c->params.multiplier, (uint8_t)1);
	c->ep_epoch = c->epoch;
	c->ep_open = true;
	c->ep_reset_out = false;
	c->stage = STAGE_NONE;
	conn_forget_stats(c);
	s = emit_verb(t, CA_EP_START);
	s->multiplier = c->multiplier;
	s->heartbeat_us = (uint32_t)(c->heartbeat / NSEC_PER_USEC);
	s->flow = c->key.flow;
	if (c->key.role == ROLE_TX) {
		s->remote = c->ep_addr;
		s->probe_small = c->params.probe_small;
		s->probe_large = c->params.probe_large;
		s->probe_size = c->params.probe_size;
	} else {
		const struct conn_request *m = conn_ctl_asked(c);

		s->remote = addr_is_set(&m->rdma_addr) ? m->rdma_addr : c->key.remote;
		s->remote.port = 0;
		s->probe_small = (uint16_t)MIN(m->probe_small, (uint32_t)UINT16_MAX);
		s->probe_large = (uint16_t)MIN(m->probe_large, (uint32_t)UINT16_MAX);
		s->probe_size = m->probe_size;
	}
}

static void ep_reset(struct conn_turn *t)
{
	struct conn *c = t->c;

	if (!c->ep_open && !c->ep_reset_out)
		c->ep_epoch = c->epoch;
	c->ep_reset_out = true;
	c->stage = STAGE_TEARDOWN;
	(void)emit_verb(t, CA_EP_RESET);
}

void conn_forget_error(struct conn *c)
{
	c->error = EPERR_NONE;
	c->error_stage = STAGE_NONE;
	c->error_status = 0;
	conn_keep_error_text(c, NULL);
	c->told_lost = false;
}

static void up(struct conn_turn *t)
{
	struct conn *c = t->c;

	c->connected = c->ever_connected = true;
	c->connects++;
	c->connected_at = t->now;
	c->late = false;
	conn_forget_error(c);
	c->refusal = REFUSE_NONE;
	c->restart_cause = c->stop_cause = CAUSE_NONE;
	c->stop_until = c->unknown_at = MONO_NEVER;
	free(c->asked); /* answered, and its answer has arrived */
	c->asked = NULL;
	(void)turn_emit(t, CA_CONNECTED);
}

/* A connection that held is tried again soon; one that flaps keeps its back-off. */
static void down(struct conn_turn *t)
{
	struct conn *c = t->c;

	if (!c->connected)
		return;
	c->connected = false;
	c->lost_by = (uint8_t)t->event;
	c->losses++;
	c->lost_at = t->now;
	if (mono_sub(t->now, c->connected_at) >= MIN(c->params.backoff_max, PROVEN)) {
		backoff_reset(&c->backoff);
		c->quick = t->event != PE_PEER_STOP;
	}
	(void)turn_emit(t, CA_CONNECTED);
}

static void hasten(struct conn_turn *t)
{
	struct conn *c = t->c;
	uint64_t spread = (uint64_t)(c->params.backoff_min / 4 + 1);
	struct mono soon = mono_add(t->now, 1 + (int64_t)(turn_random(t) % spread));

	if (c->state == CONN_SEND_RESET && c->out) {
		c->out->retry_at = mono_first(c->out->retry_at, soon);
		backoff_reset(&c->out->wait);
	} else if (!c->start_wanted) {
		c->start_at = mono_first(c->start_at, soon);
		backoff_reset(&c->backoff);
	}
}

/* What an acknowledgement answers: the message at hand (NULL), else the one that waited. */
static const struct conn_request *answered(const struct conn_turn *t, enum ctl_cmd cmd)
{
	return t->msg && t->msg->cmd == cmd ? NULL : conn_ctl_asked(t->c);
}

static void ack_reset(struct conn_turn *t)
{
	struct conn *c = t->c;

	c->facts.reset_pending = false;
	if (c->state == CONN_RESET_DONE)
		c->deadline = state_deadline(c, t->now);
	conn_ctl_ack(t, CTL_RESET_ACK, answered(t, CTL_RESET));
}

static void ack_version(struct conn_turn *t)
{
	t->c->facts.version_acked = true;
	conn_ctl_ack(t, CTL_PROTOCOL_VERSION_ACK, answered(t, CTL_PROTOCOL_VERSION));
}

static void settled(struct conn_turn *t)
{
	conn_ctl_settled(t->c);
}

static void ep_probe(struct conn_turn *t)
{
	(void)emit_verb(t, CA_EP_PROBE);
}

static void ep_heartbeat(struct conn_turn *t)
{
	(void)emit_verb(t, CA_EP_HEARTBEAT);
}

static void count_ignored(struct conn_turn *t)
{
	t->c->ignored++;
	t->ignored = true;
}

static void gone(struct conn_turn *t)
{
	(void)turn_emit(t, CA_GONE);
}

/* An action sends a command, answers the message at hand, or does what it says. */
static void run_action(struct conn_turn *t, enum probe_action a)
{
	static const enum ctl_cmd commands[PA__MAX] = {
		[PA_SEND_RESET] = CTL_RESET,
		[PA_SEND_VERSION] = CTL_PROTOCOL_VERSION,
		[PA_SEND_CONNECTED] = CTL_CONNECTED,
		[PA_SEND_PING] = CTL_PING,
		[PA_SEND_RESTART] = CTL_RESTART,
		[PA_SEND_STOP] = CTL_STOP,
	};
	static const enum ctl_cmd answers[PA__MAX] = {
		[PA_REFUSE] = CTL_REFUSED,    [PA_ACK_CONNECTED] = CTL_CONNECTED_ACK,
		[PA_ACK_PING] = CTL_PING_ACK, [PA_ACK_RESTART] = CTL_RESTART_ACK,
		[PA_ACK_STOP] = CTL_STOP_ACK,
	};
	static void (*const others[PA__MAX])(struct conn_turn * t) = {
		[PA_WANT_START] = want_start,
		[PA_NEW_EPOCH] = new_epoch,
		[PA_ADOPT_EPOCH] = conn_ctl_adopt,
		[PA_ACK_RESET] = ack_reset,
		[PA_ACK_VERSION] = ack_version,
		[PA_RESEND] = conn_ctl_resend,
		[PA_SETTLED] = settled,
		[PA_EP_RESET] = ep_reset,
		[PA_EP_START] = ep_start,
		[PA_EP_PROBE] = ep_probe,
		[PA_EP_HEARTBEAT] = ep_heartbeat,
		[PA_UP] = up,
		[PA_DOWN] = down,
		[PA_HASTEN] = hasten,
		[PA_COUNT_IGNORED] = count_ignored,
		[PA_GONE] = gone,
	};

	if (commands[a])
		conn_ctl_command(t, commands[a]);
	else if (answers[a])
		conn_ctl_ack(t, answers[a], NULL);
	else if (others[a])
		others[a](t);
	else
		assert(a == PA_NONE);
}

/* What rx tells tx of its own failure. */
static void note_own_cause(struct conn *c, enum probe_event e)
{
	if (c->key.role != ROLE_RX)
		return;
	if (e == PE_TIMEOUT || e == PE_RETRY)
		c->restart_cause = CAUSE_TIMEOUT;
	else if (e == PE_EP_LATE)
		c->restart_cause = CAUSE_HEARTBEAT_LOST;
	else if (e == PE_RESET_DONE || (e == PE_ERROR && c->error == EPERR_WORKER_DIED))
		c->restart_cause = CAUSE_ENDPOINT_RESTART;
	else if (e == PE_ERROR)
		c->restart_cause = CAUSE_ENDPOINT_ERROR;
}

void conn_step(struct conn_turn *t, enum probe_event e)
{
	struct conn *c = t->c;
	struct probe_step step;

	c->facts.role = c->key.role;
	c->facts.retries_left = conn_ctl_retries_left(c);
	c->facts.ep_busy = c->ep_reset_out;
	c->facts.cmd_out = c->out != NULL;
	t->event = e;
	step = probe_fsm_step(c->state, e, &c->facts);
	if (step.next != c->state) {
		if (step.next == CONN_FABRIC_RESET)
			note_own_cause(c, e);
		conn_set_state(t, &step);
	} else if (e == PE_TIMEOUT) {
		c->deadline = state_deadline(c, t->now);
	}
	for (int i = 0; i < PROBE_ACTIONS_MAX; i++)
		run_action(t, step.actions[i]);
}

/* ---- inputs ---- */

static void note_error(struct conn *c, enum ep_error error, int32_t status,
		       const char *text, struct mono now)
{
	c->error = error;
	c->error_stage = c->stage;
	c->error_status = status;
	c->error_at = now;
	c->told_lost = false;
	conn_keep_error_text(c, text);
}

static void state_timed_out(struct conn_turn *t)
{
	struct conn *c = t->c;
	char text[EP_TEXT_MAX] = "";
	int64_t took = mono_sub(t->now, c->state_since);

	c->deadline = MONO_NEVER;
	if (c->state >= CONN_WAIT_FOR_START && c->state <= CONN_FABRIC_TX_PROBE_ACKS) {
		str_append(text, sizeof(text), "%s: nothing happened for %.1f s",
			   enum_text(&conn_state_names, (int)c->state),
			   (double)took / (double)NSEC_PER_SEC);
		note_error(c, EPERR_CM_TIMEOUT, 0, text, t->now);
	}
	conn_step(t, PE_TIMEOUT);
}

static void ask_for_start(struct conn_turn *t)
{
	struct conn *c = t->c;

	if (c->port_down) {
		c->start_at = mono_add(t->now, MAX(c->params.backoff_max, 1));
		return;
	}
	c->start_wanted = true;
	c->start_at = mono_add(t->now, MAX(ASK_AGAIN, c->params.backoff_max));
	(void)turn_emit(t, CA_WANT_START);
}

static void timer(struct conn_turn *t)
{
	struct conn *c = t->c;

	if (mono_due(c->deadline, t->now))
		state_timed_out(t);
	else if (c->out && mono_due(c->out->retry_at, t->now))
		conn_step(t, PE_RETRY);
	else if (mono_due(c->start_at, t->now))
		ask_for_start(t);
	else if (mono_due(c->ping_at, t->now)) {
		c->ping_at = MONO_NEVER;
		conn_step(t, PE_PING_DUE);
	}
}

static void start_granted(struct conn_turn *t)
{
	struct conn *c = t->c;

	if (!c->start_wanted)
		return; /* the attempt went another way meanwhile */
	c->start_wanted = false;
	if (c->port_down)
		ask_for_start(t);
	else
		conn_step(t, PE_START);
}

static void note_stats(struct conn_turn *t, const struct ep_event *e)
{
	if (e->stats.received > conn_stats(t->c)->received)
		t->c->last_fabric_rx = t->now;
	conn_keep_stats(t->c, &e->stats);
}

static void endpoint_event(struct conn_turn *t, const struct ep_event *e)
{
	static const enum probe_event events[EP__MAX] = {
		[EP_READY] = PE_EP_READY,     [EP_UP] = PE_EP_UP,
		[EP_PROBING] = PE_EP_PROBING, [EP_PROBES_DONE] = PE_EP_PROBES_DONE,
		[EP_LATE] = PE_EP_LATE,	      [EP_ALIVE] = PE_EP_ALIVE,
		[EP_ERROR] = PE_ERROR,	      [EP_RESET_DONE] = PE_RESET_DONE,
	};
	struct conn *c = t->c;

	if (e->conn_id != c->id || e->epoch != c->ep_epoch || e->type >= EP__MAX ||
	    (e->type == EP_RESET_DONE ? !c->ep_reset_out && !c->ep_open : !c->ep_open))
		return;
	if (e->stage > STAGE_NONE && e->stage < STAGE__MAX && !c->ep_reset_out)
		c->stage = (enum ep_stage)e->stage;
	switch ((enum ep_event_type)e->type) {
	case EP_STAGE:
		return;
	case EP_STATS:
		note_stats(t, e);
		return;
	case EP_PATH:
		if (c->up)
			c->up->path = e->path;
		return;
	case EP_PONG: /* whoever ordered the ping looks at it */
		return;
	case EP_READY:
		if (c->key.role == ROLE_RX)
			c->ep_addr = e->addr;
		break;
	case EP_UP:
		conn_keep_endpoint(c, &(struct conn_up){e->addr, e->remote, e->port,
							e->path});
		c->last_fabric_rx = t->now;
		break;
	case EP_PROBES_DONE:
		c->facts.probes_done = true;
		c->last_fabric_rx = t->now;
		break;
	case EP_LATE:
		c->late = true;
		note_stats(t, e);
		break;
	case EP_ALIVE:
		c->late =
			c->late && c->ep_reset_out; /* too late: it stays the reason */
		note_stats(t, e);
		break;
	case EP_ERROR:
		if (!c->ep_reset_out)
			note_error(c,
				   e->error < EPERR__MAX ? (enum ep_error)e->error
							 : EPERR_LOCAL,
				   e->status, e->text, t->now);
		break;
	case EP_RESET_DONE:
		c->ep_reset_out = c->ep_open = false;
		c->stage = STAGE_NONE;
		break;
	case EP_PROBING:
	case EP__MAX:
		break;
	}
	conn_step(t, events[e->type]);
}

static void port_down(struct conn_turn *t, const struct conn_input *in)
{
	struct conn *c = t->c;

	c->port_down = true;
	note_error(c, in->error, 0, in->text, t->now);
	c->restart_cause = CAUSE_PORT_DOWN;
	conn_step(t, PE_PORT_DOWN);
}

static void port_up(struct conn_turn *t)
{
	struct conn *c = t->c;

	if (c->port_down) /* what it said is no longer so */
		note_error(c, EPERR_NONE, 0, "", t->now);
	c->port_down = false;
	conn_step(t, PE_PORT_UP);
}

static void operator_reset(struct conn_turn *t, const struct conn_input *in)
{
	struct conn *c = t->c;

	c->restart_cause = in->cause ? in->cause : CAUSE_OPERATOR;
	c->quick = true;
	conn_step(t, PE_OPERATOR);
}

static void local_stop(struct conn_turn *t, const struct conn_input *in)
{
	struct conn *c = t->c;

	t->cause = in->cause;
	t->deadline_sec = in->deadline_sec;
	c->facts.tell_peer = in->cause != CAUSE_NONE && c->peer_id;
	conn_step(t, PE_STOP);
}

int conn_handle(struct conn *c, const struct conn_input *in, struct mono now,
		uint64_t rnd, struct conn_actions *out)
{
	struct conn_turn t = {.c = c, .now = now, .rnd = rnd, .out = out};

	switch (in->type) {
	case CI_START:
		start_granted(&t);
		break;
	case CI_TIMER:
		timer(&t);
		break;
	case CI_CTL:
		return conn_ctl_handle(&t, in->ctl);
	case CI_EP:
		endpoint_event(&t, in->ep);
		break;
	case CI_PORT_DOWN:
		port_down(&t, in);
		break;
	case CI_PORT_UP:
		port_up(&t);
		break;
	case CI_OPERATOR:
		operator_reset(&t, in);
		break;
	case CI_STOP:
		local_stop(&t, in);
		break;
	}
	return 0;
}

/* ---- life ---- */

struct conn *conn_new(const struct conn_key *key, const struct conn_params *p,
		      struct mono now, uint64_t rnd)
{
	struct conn *c = xcalloc(1, sizeof(*c));

	c->id = mix64(rnd);
	c->id += !c->id;
	conn_keep_key(c, key);
	c->params = *p;
	c->state = CONN_IDLE;
	c->state_since = c->created = now;
	c->next_seq = 1;
	c->heartbeat = p->heartbeat;
	c->multiplier = p->multiplier;
	c->backoff = (struct backoff){.min = p->backoff_min, .max = p->backoff_max};
	c->facts.role = key->role;
	c->deadline = state_deadline(c, now);
	if (key->role == ROLE_TX)
		c->start_at = now;
	return c;
}

struct mono conn_deadline(const struct conn *c)
{
	struct mono d = mono_first(c->deadline, mono_first(c->start_at, c->ping_at));

	return c->out ? mono_first(d, c->out->retry_at) : d;
}

void conn_set_params(struct conn *c, const struct conn_params *p)
{
	int64_t shift = p->ping_interval - c->params.ping_interval;

	if (mono_is_set(c->ping_at)) /* in the past is fine, "never" is not */
		c->ping_at.ns = MAX(c->ping_at.ns + shift, INT64_C(1));
	c->params = *p;
	c->backoff.min = p->backoff_min;
	c->backoff.max = p->backoff_max;
}

bool conn_loss_is_flap(const struct conn *c)
{
	switch ((enum probe_event)c->lost_by) {
	case PE_PEER_STOP:
	case PE_STOP:
	case PE_OPERATOR: /* the operator, the config, or another address */
	case PE_RESET:	  /* rx: tx knows why it begins anew */
		return false;
	case PE_RESTART:
		return c->restart_cause != CAUSE_OPERATOR &&
		       c->restart_cause != CAUSE_CONFIG &&
		       c->restart_cause != CAUSE_RESTART &&
		       c->restart_cause != CAUSE_SHUTDOWN &&
		       c->restart_cause != CAUSE_PORT_DOWN; /* that port counts it */
	default:
		return true;
	}
}

void conn_set_port_name(struct conn *c, const char *name)
{
	struct conn_key key = c->key;

	key.port_name = name;
	conn_keep_key(c, &key);
}
