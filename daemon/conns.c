/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The table of connections: timers, the queue for the start budget, and the actions that
 * a connection asks for. The connection decides (lib/conn.c); here it is done.
 */
#include <stdlib.h>

#include "manager.h"

#define STARTS_PER_TURN 64

/* ---- making ---- */

void conn_params_from(const struct config_probe *p, struct conn_params *ret)
{
	*ret = (struct conn_params){
		.heartbeat = p->heartbeat,
		.min_receive = p->min_receive ? p->min_receive
			       : p->allow_fast ? 10 * NSEC_PER_MSEC
					       : 100 * NSEC_PER_MSEC,
		.multiplier = (uint8_t)p->multiplier,
		.ping_interval = p->ping,
		.ack_timeout = 500 * NSEC_PER_MSEC,
		.ack_retries = 5,
		.attempt_timeout = p->attempt_timeout,
		.backoff_min = p->backoff_min,
		.backoff_max = p->backoff_max,
		.rx_keep = 120 * NSEC_PER_SEC,
		.probe_small = (uint16_t)p->probe_small,
		.probe_large = (uint16_t)p->probe_large,
		.probe_size = p->probe_size,
	};
}

const struct config_probe *conn_probe(const struct manager *m, const struct conn_entry *e)
{
	if (e->peer)
		return e->peer->cfg->probe;
	return e->left ? e->left : m->config->probe;
}

void conn_set_bind(struct manager *m, struct conn_entry *e, const struct binding *b)
{
	const struct binding *before = e->bind; /* @b may be it */

	m->n_bad_binds += (b->error != EPERR_NONE) - (before->error != EPERR_NONE);
	e->bind = pool_get(&m->shared, b, sizeof(*b));
	pool_put(&m->shared, before);
}

void conn_set_worker(struct manager *m, struct conn_entry *e, const char *device)
{
	const char *before = e->worker_device;

	e->worker_device = pool_text(&m->shared, device);
	pool_put(&m->shared, before);
}

struct conn_entry *conn_entry_new(struct manager *m, const struct conn_key *key,
				  struct peer *p, const struct config_probe *probe)
{
	static const struct binding nowhere = {.port_name = "-"};
	struct conn_entry *e = xcalloc(1, sizeof(*e));
	struct conn_params params;

	conn_params_from(probe, &params);
	do {
		conn_free(e->c);
		e->c = conn_new(key, &params, loop_now(m->loop), random_u64());
	} while (conn_by_id(m, e->c->id));
	e->id = e->c->id;
	e->serial = ++m->next_serial;
	e->peer = p;
	e->verdict_since = loop_now(m->loop);
	e->verdict = VERDICT_UNKNOWN;
	e->why = e->worker_device = pool_text(&m->shared, "");
	e->bind = pool_get(&m->shared, &nowhere, sizeof(nowhere));
	idtable_add(&m->by_id, e);
	m->n_rx += key->role == ROLE_RX;
	heap_set(&m->judge_at, &e->judge_at, loop_now(m->loop));
	if (m->n_conns == m->conns_size) {
		m->conns_size = m->conns_size ? m->conns_size * 2 : 16;
		m->conns = xrealloc(m->conns, (size_t)m->conns_size,
				    sizeof(struct conn_entry *));
	}
	m->conns[m->n_conns++] = e;
	return e;
}

void conn_leave_peer(struct conn_entry *e)
{
	struct peer *p = e->peer;

	if (p)
		peer_unlink_tx(p, e);
	if (p && !e->left)
		e->left = config_probe_ref(p->cfg->probe);
	e->peer = NULL;
}

/* Heartbeats a second of all tx together, for the cost that is shown. */
static void count_beats(struct manager *m, struct conn_entry *e, bool connected)
{
	const struct conn *c = e->c;

	m->beats_mhz -= e->beats_mhz;
	e->beats_mhz = connected && c->key.role == ROLE_TX
			       ? (uint32_t)(1000 * NSEC_PER_SEC /
					    MAX(c->heartbeat, NSEC_PER_MSEC))
			       : 0;
	m->beats_mhz += e->beats_mhz;
}

static int conn_place(const struct manager *m, const struct conn_entry *e)
{
	int i = conns_after(m, e->serial) - 1;

	assert(i >= 0 && m->conns[i] == e);
	return i;
}

static void entry_free(struct manager *m, struct conn_entry *e)
{
	int i = conn_place(m, e);

	pings_conn_down(m->pings, e);
	conn_leave_peer(e);
	idtable_remove(&m->by_id, e); /* and so from the queues of ids */
	conn_forget_src(m, e);
	heap_set(&m->timers, &e->timer, MONO_NEVER);
	heap_set(&m->judge_at, &e->judge_at, MONO_NEVER);
	memmove(&m->conns[i], &m->conns[i + 1],
		(size_t)(m->n_conns - i - 1) * sizeof(struct conn_entry *));
	m->n_conns--;
	m->n_rx -= e->c->key.role == ROLE_RX;
	config_probe_unref(e->left);
	count_beats(m, e, false);
	conn_endpoint_done(e);
	m->n_bad_binds -= e->bind->error != EPERR_NONE;
	pool_put(&m->shared, e->bind);
	pool_put(&m->shared, e->why);
	pool_put(&m->shared, e->worker_device);
	damping_free(e);
	conn_free(e->c);
	free(e);
}

/* ---- starts ---- */

/* Bounded per turn, as timers are. */
static void run_starts(struct manager *m)
{
	struct mono now = loop_now(m->loop), at = now;
	uint64_t id = 0;

	for (int i = 0; m->starts.n && i < STARTS_PER_TURN; i++) {
		struct conn_input in = {.type = CI_START};
		struct conn_entry *e = conn_by_id(m, m->starts.ids[m->starts.first]);

		/* One that is gone takes no token. */
		if (e && !budget_take(&m->budget, now, &at))
			break;
		(void)id_queue_pop(&m->starts, &id);
		if (!e)
			continue;
		e->in_start_queue = false;
		conn_feed(m, e, &in);
	}
	if (m->starts.n)
		loop_timer_at(m->start_timer, at);
	else
		(void)id_queue_pop(&m->starts, &id); /* gives its memory back */
}

void conns_on_start_timer(void *user, struct mono now)
{
	(void)now;
	run_starts(user);
}

static void want_start(struct manager *m, struct conn_entry *e)
{
	if (e->in_start_queue)
		return;
	e->in_start_queue = true;
	id_queue_push(&m->starts, e->id);
	loop_timer_at(m->start_timer, loop_now(m->loop));
}

/* ---- actions ---- */

static void tell_state(struct manager *m, struct conn_entry *e, const struct conn_history *h)
{
	char key[CONN_KEY_MAX];

	(void)conn_key_format(&e->c->key, key);
	log_debug("%s: %s -> %s on %s (row %d)", key, enum_text(&conn_state_names, h->from),
		  enum_text(&conn_state_names, h->to),
		  enum_name(&probe_event_names, h->event), h->row);
	monitor_post(m->monitor, loop_now(m->loop), "connection", key, "state",
		     enum_name(&conn_state_names, h->from), enum_name(&conn_state_names, h->to),
		     enum_name(&probe_event_names, h->event));
	verdict_mark(m, e);
}

static void run_action(struct manager *m, struct conn_entry *e, struct conn_action *a)
{
	switch (a->type) {
	case CA_WANT_START:
		want_start(m, e);
		break;
	case CA_SEND:
		control_send(m, e, &a->msg);
		break;
	case CA_EP_START:
		conn_endpoint_start(m, e, &a->start);
		break;
	case CA_EP_PROBE:
		if (e->worker_device[0])
			conn_endpoint_tell(m, e, WM_EP_PROBE, a->start.epoch);
		else
			udp_ep_probe(m->udp, e->c->id, a->start.epoch);
		break;
	case CA_EP_HEARTBEAT:
		if (e->worker_device[0])
			conn_endpoint_tell(m, e, WM_EP_HEARTBEAT, a->start.epoch);
		else
			udp_ep_heartbeat(m->udp, e->c->id, a->start.epoch);
		break;
	case CA_EP_RESET:
		conn_endpoint_reset(m, e, a->start.epoch);
		break;
	case CA_STATE:
		tell_state(m, e, &a->state);
		break;
	case CA_CONNECTED:
		count_beats(m, e, e->c->connected);
		if (!e->c->connected)
			damping_lost(m, e, loop_now(m->loop));
		verdict_mark(m, e);
		break;
	case CA_GONE:
		e->going = true;
		break;
	}
}

static int feed(struct manager *m, struct conn_entry *e, const struct conn_input *in)
{
	struct conn_actions acts;
	char key[CONN_KEY_MAX];
	int r;

	acts.n = 0;
	r = conn_handle(e->c, in, loop_now(m->loop), random_u64(), &acts);
	for (int i = 0; i < acts.n; i++)
		run_action(m, e, &acts.a[i]);
	if (e->going) {
		monitor_post(m->monitor, loop_now(m->loop), "connection",
			     conn_key_format(&e->c->key, key), "removed", NULL, NULL, NULL);
		entry_free(m, e);
		return r;
	}
	heap_set(&m->timers, &e->timer, conn_deadline(e->c));
	if (heap_first(&m->timers))
		loop_timer_at(m->conn_timer, heap_first(&m->timers)->at);
	return r;
}

void conn_feed(struct manager *m, struct conn_entry *e, const struct conn_input *in)
{
	(void)feed(m, e, in);
}

int conn_feed_ctl(struct manager *m, struct conn_entry *e, const struct ctl_msg *msg)
{
	struct conn_input in = {.type = CI_CTL, .ctl = msg};

	verdict_mark(m, e);
	return feed(m, e, &in);
}

void conns_ep_event(struct manager *m, const struct ep_event *ev)
{
	struct conn_entry *e = conn_by_id(m, ev->conn_id);
	struct conn_input in = {.type = CI_EP, .ep = ev};

	if (!e)
		return;
	if (ev->type == EP_PONG) { /* no sign of life, and no evidence */
		pings_on_pong(m->pings, ev);
		return;
	}
	if (ev->type == EP_ERROR || ev->type == EP_RESET_DONE)
		pings_conn_down(m->pings, e);
	if (ev->type == EP_RESET_DONE && ev->epoch == e->ep_epoch)
		e->has_endpoint = false;
	if (ev->type != EP_STATS)
		verdict_mark(m, e);
	conn_feed(m, e, &in);
}

/* Endpoints of udp tell their figures seldom; whoever shows them has them as of now. */
void conn_refresh(struct manager *m, struct conn_entry *e)
{
	struct ep_event ev = {
		.conn_id = e->c->id, .epoch = e->ep_epoch, .type = EP_STATS, .stage = STAGE_UP};

	if (e->has_endpoint && !e->worker_device[0] &&
	    udp_ep_stats(m->udp, ev.conn_id, ev.epoch, &ev.stats))
		conns_ep_event(m, &ev);
}

void conns_on_timer(void *user, struct mono now)
{
	struct manager *m = user;
	struct heap_node *first;

	/* Bounded per turn, so that thousands that are due at once stall nobody. */
	for (int i = 0; i < CONNS_PER_TURN; i++) {
		struct conn_input in = {.type = CI_TIMER};

		first = heap_first(&m->timers);
		if (!first || !mono_due(first->at, now))
			break;
		conn_feed(m, container_of(first, struct conn_entry, timer), &in);
	}
	first = heap_first(&m->timers);
	if (first)
		loop_timer_at(m->conn_timer, first->at);
}

/* ---- the end ---- */

void conn_drop(struct manager *m, struct conn_entry *e)
{
	struct conn_input in = {.type = CI_STOP, .cause = CAUSE_NONE};

	conn_forget_src(m, e); /* its place is free for another at once */
	conn_leave_peer(e);
	conn_feed(m, e, &in);
}

void conns_free(struct manager *m)
{
	while (m->n_conns)
		entry_free(m, m->conns[m->n_conns - 1]);
	free(m->conns);
	m->conns = NULL;
	heap_done(&m->timers);
	heap_done(&m->judge_at);
	idtable_done(&m->by_id);
	idtable_done(&m->by_src);
	idtable_done(&m->by_probe);
	many_free(m);
}
