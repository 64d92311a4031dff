/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What is done to many connections at once, a slice a turn: tens of thousands hold up no
 * turn of the loop, and few are done at once.
 */
#include <stdlib.h>

#include "manager.h"

#define REBIND_BAD_NS	 (500 * NSEC_PER_MSEC)
#define REBIND_ALWAYS_NS (15 * NSEC_PER_SEC)
#define POSTED_PER_TURN	 512

/* ---- queues of ids ---- */

void id_queue_push(struct id_queue *q, uint64_t id)
{
	if (q->n == q->size) {
		uint32_t size = q->size ? 2 * q->size : 64;
		uint64_t *ids = xcalloc(size, sizeof(*ids));

		for (uint32_t i = 0; i < q->n; i++)
			ids[i] = q->ids[(q->first + i) % q->size];
		free(q->ids);
		*q = (struct id_queue){.ids = ids, .n = q->n, .size = size};
	}
	q->ids[(q->first + q->n++) % q->size] = id;
}

bool id_queue_pop(struct id_queue *q, uint64_t *ret)
{
	if (!q->n) {
		free(q->ids); /* a storm is over */
		*q = (struct id_queue){0};
		return false;
	}
	*ret = q->ids[q->first];
	q->first = (q->first + 1) % q->size;
	q->n--;
	return true;
}

/* ---- a share of every turn ---- */

/* Is there room for one more in this turn? */
bool take_share(struct manager *m, struct share *s, unsigned most)
{
	uint64_t turn = loop_turn(m->loop);

	if (s->turn != turn)
		*s = (struct share){.turn = turn};
	if (s->taken < most) {
		s->taken++;
		return true;
	}
	loop_timer_at(m->more, loop_now(m->loop));
	return false;
}

/* ---- events of our own ---- */

void conns_post(struct manager *m, const struct ep_event *ev)
{
	if (m->n_posted == m->posted_size) {
		m->posted_size = m->posted_size ? m->posted_size * 2 : 16;
		m->posted = xrealloc(m->posted, (size_t)m->posted_size, sizeof(*m->posted));
	}
	m->posted[m->n_posted++] = *ev;
	loop_defer_arm(m->post);
}

/* Handling one may post more: those come after it. */
void conns_on_post(void *user)
{
	struct manager *m = user;

	while (m->posted_at < m->n_posted && take_share(m, &m->post_share, POSTED_PER_TURN)) {
		struct ep_event ev = m->posted[m->posted_at++];

		conns_ep_event(m, &ev);
	}
	if (m->posted_at < m->n_posted)
		return;
	free(m->posted);
	m->posted = NULL;
	m->n_posted = m->posted_at = m->posted_size = 0;
}

void conns_worker_lost(struct manager *m, const char *device)
{
	for (int i = 0; i < m->n_conns; i++) {
		struct conn_entry *e = m->conns[i];

		if (e->has_endpoint && !strcmp(e->worker_device, device))
			conn_endpoint_lost(m, e, "the device's worker ended");
	}
}

/* ---- orders ---- */

void conn_order(struct manager *m, struct conn_entry *e, enum conn_input_type type,
		enum cause cause, uint32_t deadline_sec)
{
	struct conn_input in = {.type = type, .cause = cause, .deadline_sec = deadline_sec};

	assert(type == CI_STOP || type == CI_OPERATOR);
	if (!m->orders.n && take_share(m, &m->order_share, CONNS_PER_TURN)) {
		conn_feed(m, e, &in);
		return;
	}
	if (e->order.type == CI_STOP && type != CI_STOP)
		return; /* it goes, whatever else is wanted of it */
	id_queue_push(&m->orders, e->id);
	e->order = (struct conn_order){(uint8_t)type, (uint8_t)cause, (uint16_t)deadline_sec};
}

static void run_orders(struct manager *m)
{
	uint64_t id = 0;

	while (m->orders.n && take_share(m, &m->order_share, CONNS_PER_TURN)) {
		struct conn_entry *e;
		struct conn_input in;

		(void)id_queue_pop(&m->orders, &id);
		e = conn_by_id(m, id);
		if (!e || e->order.type == CI_START)
			continue;
		in = (struct conn_input){.type = (enum conn_input_type)e->order.type,
					 .cause = (enum cause)e->order.cause,
					 .deadline_sec = e->order.deadline_sec};
		e->order = (struct conn_order){0};
		conn_feed(m, e, &in);
	}
	if (!m->orders.n)
		(void)id_queue_pop(&m->orders, &id);
}

void conns_rekey(struct manager *m)
{
	for (int i = m->n_conns - 1; i >= 0; i--) {
		struct conn_entry *e = m->conns[i];
		const struct auth_keys *keys = control_keys(m, e);

		if (e->session && (!keys || !auth_keys_have(keys, e->session)))
			conn_order(m, e, CI_OPERATOR, CAUSE_CONFIG, 0);
	}
}

int conns_reset(struct manager *m, const char *name, enum cause cause)
{
	bool is_key = strchr(name, '>') != NULL;
	int n = 0;

	for (int i = m->n_conns - 1; i >= 0; i--) {
		struct conn_entry *e = m->conns[i];

		if (is_key ? !conn_key_matches(e, name) : !conn_peer_rail_matches(e, name))
			continue;
		n++;
		damping_forget(e);
		conn_order(m, e, CI_OPERATOR, cause, 0);
	}
	return n ? n : -ENOENT;
}

void conns_stop(struct manager *m, enum cause cause, uint32_t deadline_sec)
{
	for (int i = m->n_conns - 1; i >= 0; i--)
		conn_order(m, m->conns[i], CI_STOP, cause, deadline_sec);
}

/* ---- passes over all ---- */

/* The next one of a pass, from the newest down; NULL: it is over. Feeding one may remove
 * it, never another, and new ones need no pass. */
static struct conn_entry *pass_next(const struct manager *m, uint64_t *below)
{
	int i = *below ? conns_after(m, *below - 1) - 1 : -1;

	*below = i >= 0 ? m->conns[i]->serial : 0;
	return i >= 0 ? m->conns[i] : NULL;
}

static void run_rebind(struct manager *m)
{
	while (m->rebind_below && take_share(m, &m->bind_share, CONNS_PER_TURN)) {
		struct conn_entry *e = pass_next(m, &m->rebind_below);

		if (e) {
			conn_bind(m, e);
		} else if (m->rebind_again) {
			m->rebind_again = false;
			m->rebind_below = UINT64_MAX;
		} else {
			peers_sync(m); /* who belongs elsewhere now is replaced */
		}
	}
}

void conns_rebind(struct manager *m)
{
	m->rebind_wanted = false;
	workers_unlisten(m);
	m->rebind_again = m->rebind_below != 0;
	if (m->rebind_again)
		return;
	m->rebind_below = UINT64_MAX;
	run_rebind(m);
}

/* The kernel tells of a new address before it has its routes, and of routes not at all:
 * look again at those that found no way. */
static void rebind_bad(struct manager *m, struct mono now)
{
	int n = 0;

	if (!m->bad_below && m->n_bad_binds && mono_sub(now, m->rebind_bad_at) >= REBIND_BAD_NS) {
		m->rebind_bad_at = now;
		m->bad_below = UINT64_MAX;
	}
	while (m->bad_below && n < CONNS_PER_TURN) {
		struct conn_entry *e = pass_next(m, &m->bad_below);
		int bad = m->n_bad_binds;

		if (!e || !e->bind->error)
			continue;
		n++;
		conn_bind(m, e);
		if (m->n_bad_binds < bad)
			m->rebind_wanted = true; /* others of its peer as well */
	}
}

/* And now and then at all of them, for what nobody told of. */
static void rebind_always(struct manager *m, struct mono now)
{
	int64_t passed = MIN(mono_sub(now, m->rebind_some_at), NSEC_PER_SEC);
	int n = (int)((int64_t)m->n_conns * passed / REBIND_ALWAYS_NS) + 1;

	m->rebind_some_at = now;
	if (!m->some_below && mono_sub(now, m->rebound_at) < REBIND_ALWAYS_NS)
		return;
	if (!m->some_below) {
		m->rebound_at = now;
		m->some_below = UINT64_MAX;
	}
	while (m->some_below && n-- > 0) {
		struct conn_entry *e = pass_next(m, &m->some_below);

		if (e)
			conn_bind(m, e);
		else
			peers_sync(m);
	}
}

void conns_look_again(struct manager *m, struct mono now)
{
	rebind_bad(m, now);
	rebind_always(m, now);
}

/* Connections for all addresses. */
static void run_sync(struct manager *m)
{
	bool some = m->sync_next != NULL;

	while (m->sync_next && take_share(m, &m->sync_share, CONNS_PER_TURN)) {
		struct peer *p = m->sync_next;
		int before = m->n_conns;

		m->sync_next = p->hh.next;
		peer_sync(m, p);
		/* New ones are what takes time, and one peer may have hundreds. */
		m->sync_share.taken += (unsigned)MAX(m->n_conns - before, 0);
	}
	if (some && !m->sync_next)
		peers_tell_plain(m);
}

void peers_sync(struct manager *m)
{
	m->sync_next = m->peers;
	run_sync(m);
}

void conns_on_more(void *user, struct mono now)
{
	struct manager *m = user;

	run_orders(m);
	if (m->stopping)
		m->rebind_below = 0;
	run_rebind(m);
	run_sync(m);
	rails_on_more(m, now);
	loop_defer_arm(m->post);
	loop_defer_arm(m->judge);
}

void many_free(struct manager *m)
{
	free(m->starts.ids);
	free(m->dirty.ids);
	free(m->orders.ids);
	m->starts = m->dirty = m->orders = (struct id_queue){0};
	free(m->posted);
	m->posted = NULL;
}
