/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Pings on demand, over the endpoints that the connections have: a connection that is
 * down is reported as it is, with its verdict, and is not brought up for it. A run is
 * one call of a client, with a target for each connection; the endpoints send, count and
 * tell (lib/ping.h), here it is put together and passed on. A client that goes away ends
 * its run.
 */
#include <stdio.h>
#include <stdlib.h>

#include "manager.h"

#define RUNS_MAX	16
#define RUNS_QUERY_MAX	8   /* of them by the query socket */
#define TARGETS_MAX	128 /* of a run */
#define QUERY_PER_SEC	1000 /* messages of all runs by the query socket together */
#define TELL_NS		(100 * NSEC_PER_MSEC)
#define TELL_MANY_NS	NSEC_PER_SEC /* of more than MANY targets */
#define MANY		16
/* Of a connection that goes down, the verdict takes a moment. */
#define JUDGE_NS (500 * NSEC_PER_MSEC)
#define SLACK_NS (10 * NSEC_PER_SEC)

struct target {
	uint64_t conn_id;
	uint32_t id; /* of its ping; 0: none runs */
	bool done;
	struct mono judged_at; /* set: it is down, and is done then */
	struct conn_key key; /* its texts are owned */
	struct addr local;
	uint32_t size;
	struct ep_stats stats;
	enum verdict verdict;
	char why[160];
};

struct run {
	struct run *next;
	struct api_ticket ticket;
	struct ep_ping order;
	bool admin;
	double per_sec; /* messages */
	struct mono tell_at, give_up_at;
	bool news;
	int n;
	struct target targets[];
};

struct pings {
	struct manager *m; /* borrowed */
	struct run *runs;  /* owned */
	struct loop_source *timer;
	uint32_t last_id;
	/* Up to here is spent what the query socket may begin: the first message of each
	 * target goes at once, however long the interval. */
	struct mono spent;
};

/* ---- what is told ---- */

static json_t *results(const struct run *r)
{
	json_t *a = json_array();

	for (int i = 0; i < r->n; i++) {
		const struct target *t = &r->targets[i];
		const struct ping_view v = {
			.key = &t->key,
			.local = t->local.family ? &t->local : NULL,
			.size = t->size,
			.count = r->order.count,
			.done = t->done,
			.stats = t->stats,
			.verdict = t->verdict,
			.why = t->why,
		};

		(void)json_array_append_new(a, render_ping(&v));
	}
	return json_pack("{s:o}", "pings", a);
}

static void answer(const struct run *r, bool continues)
{
	r->ticket.answer(r->ticket.server, r->ticket.id, NULL, results(r), continues);
}

static void refuse(const struct api_ticket *t, const char *error, json_t *parameters)
{
	t->answer(t->server, t->id, error, parameters, false);
}

/* ---- targets ---- */

static uint32_t mtu_of(const struct conn_entry *e)
{
	return conn_endpoint(e->c)->path.mtu;
}

/* The last word about it: what its connection says now, unless @why is known. */
static void finish(struct pings *p, struct run *r, struct target *t, const char *why)
{
	const struct conn_entry *e = conn_by_id(p->m, t->conn_id);

	t->done = true;
	t->id = 0;
	t->judged_at = MONO_NEVER;
	r->news = true;
	t->verdict = e ? e->verdict : VERDICT_UNKNOWN;
	if (!why || !why[0])
		why = !e ? "the connection is gone"
		      : t->verdict == VERDICT_OK ? "" : e->why;
	if (!why[0] && !t->stats.received && e && mtu_of(e) && t->size > mtu_of(e))
		(void)snprintf(t->why, sizeof(t->why), "longer than the path MTU %u",
			       mtu_of(e));
	else
		(void)str_copy(t->why, sizeof(t->why), why);
}

/* It sends no more, and what was out is lost. */
static void go_down(struct pings *p, struct target *t)
{
	t->id = 0;
	t->stats.lost = t->stats.sent - t->stats.received;
	t->judged_at = mono_add(loop_now(p->m->loop), JUDGE_NS);
}

static struct target *find(struct pings *p, uint32_t id, struct run **ret)
{
	for (struct run *r = p->runs; r; r = r->next)
		for (int i = 0; i < r->n; i++)
			if (id && r->targets[i].id == id) {
				*ret = r;
				return &r->targets[i];
			}
	return NULL;
}

static bool is_pinged(const struct pings *p, uint64_t conn_id)
{
	for (const struct run *r = p->runs; r; r = r->next)
		for (int i = 0; i < r->n; i++)
			if (r->targets[i].id && r->targets[i].conn_id == conn_id)
				return true;
	return false;
}

static void target_begin(struct pings *p, struct run *r, struct target *t,
			 const struct conn_entry *e)
{
	struct ep_ping order = r->order;

	t->conn_id = e->c->id;
	t->key = e->c->key;
	/* The connection may go while its ping is told of. */
	t->key.peer = xstrdup(e->c->key.peer);
	t->key.rail = xstrdup(e->c->key.rail);
	t->key.port_name = xstrdup(e->c->key.port_name);
	t->local = e->bind->local;
	t->size = order.size ? order.size : mtu_of(e);
	t->verdict = e->verdict;
	p->last_id = p->last_id % INT32_MAX + 1;
	order.id = p->last_id;
	if (e->c->connected && conn_ping(p->m, e, &order))
		t->id = order.id;
	else
		finish(p, r, t, e->why);
}

static void target_done(struct target *t)
{
	free((char *)t->key.peer);
	free((char *)t->key.rail);
	free((char *)t->key.port_name);
}

/* ---- runs ---- */

static void run_free(struct pings *p, struct run *r)
{
	struct run **at = &p->runs;

	while (*at != r)
		at = &(*at)->next;
	*at = r->next;
	for (int i = 0; i < r->n; i++) {
		struct ep_ping end = {.id = r->targets[i].id, .timeout_us = 1000};
		const struct conn_entry *e =
			end.id ? conn_by_id(p->m, r->targets[i].conn_id) : NULL;

		if (e)
			(void)conn_ping(p->m, e, &end);
		target_done(&r->targets[i]);
	}
	free(r);
}

static bool is_over(const struct run *r)
{
	for (int i = 0; i < r->n; i++)
		if (!r->targets[i].done)
			return false;
	return true;
}

static void run_step(struct pings *p, struct run *r, struct mono now)
{
	for (int i = 0; i < r->n; i++) {
		struct target *t = &r->targets[i];

		if (mono_due(t->judged_at, now))
			finish(p, r, t, NULL);
		else if (!t->done && mono_due(r->give_up_at, now))
			finish(p, r, t, "no word of its endpoint");
	}
	if (is_over(r)) {
		answer(r, false);
		run_free(p, r);
	} else if (r->news && mono_due(r->tell_at, now)) {
		r->news = false;
		r->tell_at = mono_add(now, r->n > MANY ? TELL_MANY_NS : TELL_NS);
		answer(r, true);
	}
}

static struct mono run_deadline(const struct run *r)
{
	struct mono d = mono_first(r->give_up_at, r->news ? r->tell_at : MONO_NEVER);

	for (int i = 0; i < r->n; i++)
		d = mono_first(d, r->targets[i].judged_at);
	return is_over(r) ? r->tell_at : d;
}

static void arm(struct pings *p)
{
	struct mono d = MONO_NEVER;

	for (const struct run *r = p->runs; r; r = r->next)
		d = mono_first(d, run_deadline(r));
	loop_timer_at(p->timer, d);
}

static void on_timer(void *user, struct mono now)
{
	struct pings *p = user;
	struct run *next;

	for (struct run *r = p->runs; r; r = next) {
		next = r->next;
		run_step(p, r, now);
	}
	arm(p);
}

/* ---- events ---- */

void pings_on_pong(struct pings *p, const struct ep_event *ev)
{
	struct run *r;
	struct target *t = find(p, (uint32_t)ev->status, &r);

	if (!t || t->conn_id != ev->conn_id)
		return; /* of one that is over */
	t->stats = ev->stats;
	r->news = true;
	if (ev->ping_done && ev->text[0] && ev->stats.sent)
		go_down(p, t);
	else if (ev->ping_done)
		finish(p, r, t, ev->text);
	if (is_over(r))
		r->tell_at = loop_now(p->m->loop);
	arm(p);
}

void pings_conn_down(struct pings *p, const struct conn_entry *e)
{
	if (!p || !p->runs)
		return;
	for (struct run *r = p->runs; r; r = r->next)
		for (int i = 0; i < r->n; i++)
			if (r->targets[i].id && r->targets[i].conn_id == e->c->id)
				go_down(p, &r->targets[i]);
	arm(p);
}

void pings_dropped(struct pings *p, uint64_t ticket)
{
	for (struct run *r = p->runs; r; r = r->next)
		if (r->ticket.id == ticket) {
			run_free(p, r);
			arm(p);
			return;
		}
}

/* ---- who may, and what ---- */

static bool fits(const struct conn_entry *e, const struct api_ping *what)
{
	return (!what->rail || !strcmp(what->rail, e->c->key.rail)) &&
	       (what->transports & (1u << e->c->key.transport)) &&
	       (what->flow < 0 || what->flow == e->c->key.flow);
}

static int count_targets(const struct peer *peer, const struct api_ping *what)
{
	int n = 0;

	PEER_EACH_TX(peer, e)
		n += fits(e, what);
	return n;
}

static void no_such(const struct api_ping *what, const struct api_ticket *t)
{
	char name[256] = "";

	str_append(name, sizeof(name), "%s%s%s", what->peer, what->rail ? "/" : "",
		   what->rail ? what->rail : "");
	for (int i = 0; i < TRANSPORT__MAX && what->transports != (1u << TRANSPORT__MAX) - 1;
	     i++)
		if (what->transports & (1u << i))
			str_append(name, sizeof(name), " %s", enum_name(&transport_names, i));
	if (what->flow >= 0)
		str_append(name, sizeof(name), " flow %d", what->flow);
	refuse(t, "io.fabd.NoSuchConnection", json_pack("{s:s}", "connection", name));
}

/* An interval of 0 is the admin's, whose rate is the path's own affair. */
static double rate_of(const struct api_ping *what, int n)
{
	return what->interval_us ? 1e6 * n / what->interval_us : 0;
}

/* Why not now: text of the caller's, or NULL. */
static const char *busy(const struct pings *p, const struct peer *peer,
			const struct api_ping *what, int n, char *buf, size_t size)
{
	double per_sec = 0;
	int runs = 0, query = 0;

	for (const struct run *r = p->runs; r; r = r->next) {
		runs++;
		query += !r->admin;
		per_sec += r->admin ? 0 : r->per_sec;
	}
	if (runs >= RUNS_MAX || (!what->admin && query >= RUNS_QUERY_MAX))
		return "too many pings run already";
	if (n > TARGETS_MAX) {
		(void)snprintf(buf, size,
			       "%d connections are meant, and %d can be pinged at once: name "
			       "a rail, a transport or a flow",
			       n, TARGETS_MAX);
		return buf;
	}
	if (!what->admin && per_sec + rate_of(what, n) > QUERY_PER_SEC + 0.5) {
		(void)snprintf(buf, size,
			       "%.0f messages a second over %d connections, and %.0f are left "
			       "of %d: name fewer, take a longer interval, or ask on the admin "
			       "socket",
			       rate_of(what, n), n, QUERY_PER_SEC - per_sec, QUERY_PER_SEC);
		return buf;
	}
	if (!what->admin && mono_sub(p->spent, loop_now(p->m->loop)) > 0)
		return "too many pings were begun just now";
	PEER_EACH_TX(peer, e)
		if (fits(e, what) && is_pinged(p, e->c->id))
			return "somebody is pinging this already";
	return NULL;
}

/* When the endpoints must have told the end. */
static int64_t lasts_ns(const struct ep_ping *o)
{
	int64_t each = MAX(o->interval_us ? o->interval_us : o->timeout_us, 50u);

	return (each * o->count + o->timeout_us) * NSEC_PER_USEC + SLACK_NS;
}

void pings_begin(struct pings *p, const struct api_ping *what, const struct api_ticket *t)
{
	struct peer *peer = peer_find(p->m, what->peer);
	int n = peer ? count_targets(peer, what) : 0;
	const char *why;
	struct mono now = loop_now(p->m->loop);
	struct run *r;
	char buf[200];

	if (!peer) {
		refuse(t, "io.fabd.NoSuchPeer", json_pack("{s:s}", "peer", what->peer));
		return;
	}
	if (!n) {
		no_such(what, t);
		return;
	}
	why = busy(p, peer, what, n, buf, sizeof(buf));
	if (why) {
		refuse(t, "io.fabd.Busy", json_pack("{s:s}", "why", why));
		return;
	}
	r = xcalloc(1, sizeof(*r) + (size_t)n * sizeof(r->targets[0]));
	r->ticket = *t;
	r->admin = what->admin;
	r->per_sec = rate_of(what, n);
	r->order = (struct ep_ping){.count = what->count, .size = what->size,
				    .interval_us = what->interval_us,
				    .timeout_us = what->timeout_us};
	if (!what->admin)
		p->spent = mono_add(mono_sub(p->spent, now) > -NSEC_PER_SEC
					    ? p->spent
					    : mono_add(now, -NSEC_PER_SEC),
				    n * (NSEC_PER_SEC / QUERY_PER_SEC));
	r->tell_at = mono_add(now, TELL_NS);
	r->give_up_at = mono_add(now, lasts_ns(&r->order));
	r->next = p->runs;
	p->runs = r;
	PEER_EACH_TX(peer, e)
		if (fits(e, what))
			target_begin(p, r, &r->targets[r->n++], e);
	if (is_over(r))
		r->tell_at = now;
	arm(p);
}

struct pings *pings_new(struct manager *m)
{
	struct pings *p = xcalloc(1, sizeof(*p));

	p->m = m;
	p->timer = loop_timer(m->loop, on_timer, p);
	p->last_id = (uint32_t)random_u64() & INT32_MAX;
	return p;
}

struct pings *pings_free(struct pings *p)
{
	if (!p)
		return NULL;
	while (p->runs)
		run_free(p, p->runs);
	loop_source_free(p->timer);
	free(p);
	return NULL;
}
