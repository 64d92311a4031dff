/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Requests that are out. A request is fresh for a few round trips and counts against
 * the window; after that it is late, and only their number is bounded. One that timed
 * out is sent again at once, with a longer timeout, unless its target is suspect
 * because of another: then it is held until that one is through.
 */
#include "sweep_int.h"

#include <stdlib.h>

#define LATE_MIN   (20 * NSEC_PER_USEC)
#define BELT	   NSEC_PER_SEC /* after the timeout that the caller was given */
#define FLIGHT_MAX ((UINT32_C(1) << FLIGHT_BITS) - 1)

/* ---- lists of the pool ---- */

static struct flight *at(const struct sweep *w, uint32_t i)
{
	return &w->pool[i - 1];
}

static uint32_t index_of(const struct sweep *w, const struct flight *f)
{
	return (uint32_t)(f - w->pool) + 1;
}

static void list_add(struct sweep *w, struct flight_list *l, struct flight *f)
{
	uint32_t i = index_of(w, f);

	f->next = 0;
	f->prev = l->last;
	if (l->last)
		at(w, l->last)->next = i;
	else
		l->first = i;
	l->last = i;
}

static void list_remove(struct sweep *w, struct flight_list *l, struct flight *f)
{
	if (f->prev)
		at(w, f->prev)->next = f->next;
	else
		l->first = f->next;
	if (f->next)
		at(w, f->next)->prev = f->prev;
	else
		l->last = f->prev;
}

static void pool_grow(struct sweep *w)
{
	uint32_t n = w->pool_size ? 2 * w->pool_size : 128;

	w->pool = xrealloc(w->pool, n, sizeof(*w->pool));
	for (uint32_t i = n; i > w->pool_size; i--) {
		w->pool[i - 1] = (struct flight){.next = w->pool_free};
		w->pool_free = i;
	}
	w->pool_size = n;
}

static struct flight *flight_new(struct sweep *w, const struct flight *from)
{
	struct flight *f;
	uint32_t i;

	if (!w->pool_free)
		pool_grow(w);
	i = w->pool_free;
	f = at(w, i);
	w->pool_free = f->next;
	*f = *from;
	f->id = ++w->serial << FLIGHT_BITS | i;
	w->n_flights++;
	return f;
}

/* What was held because of one request goes on. */
static void release_held(struct sweep *w, struct work *k)
{
	k->suspect = 0;
	while (k->held.first) {
		struct flight *f = at(w, k->held.first);

		list_remove(w, &k->held, f);
		list_add(w, &w->again, f);
	}
}

static void flight_free(struct sweep *w, struct flight *f)
{
	struct work *k = f->work;

	ask_done(f);
	if (k && k->suspect == f->id)
		release_held(w, k);
	if (k && f->kind == ASK_NODE) {
		k->out--;
		k->late -= f->late;
	} else if (k) {
		k->cross_out--;
		k->cross_late -= f->late;
	}
	*f = (struct flight){.next = w->pool_free};
	w->pool_free = index_of(w, f);
	w->n_flights--;
}

static struct flight *flight_find(const struct sweep *w, uint64_t id)
{
	uint32_t i = (uint32_t)(id & FLIGHT_MAX);

	return i && i <= w->pool_size && at(w, i)->id == id ? at(w, i) : NULL;
}

/* ---- fresh and late ---- */

static int64_t late_after(const struct sweep *w)
{
	int64_t timeout = w->opt.timeout_ms[0] * NSEC_PER_MSEC;

	if (!w->srtt)
		return timeout;
	return MIN(MAX(w->srtt + 4 * w->rttvar, LATE_MIN),
		   timeout); /* as RFC 6298, 2 */
}

static void make_late(struct sweep *w, struct flight *f)
{
	struct work *k = f->work;

	f->late = true;
	w->n_fresh--;
	w->n_late++;
	if (!k)
		return;
	if (f->kind == ASK_NODE)
		k->late++;
	else
		k->cross_late++;
	ask_settle(w, k);
}

/* Late is what younger ones have overtaken: when nobody answers at all, the host or the
 * whole fabric pauses, and then more requests are no help. */
static struct mono late_at(const struct sweep *w, const struct flight *f)
{
	int64_t after = late_after(w);

	if (f->id >> FLIGHT_BITS >= w->heard)
		after = MAX(after, w->opt.timeout_ms[0] * NSEC_PER_MSEC / 2);
	return mono_add(f->sent, after + 1);
}

static void grow_old(struct sweep *w, struct mono now)
{
	while (w->fresh && mono_due(late_at(w, at(w, w->fresh)), now)) {
		struct flight *f = at(w, w->fresh);

		w->fresh = f->next;
		make_late(w, f);
	}
}

/* Out of the list of its try; late from here on if it is kept. */
static void take_in(struct sweep *w, struct flight *f)
{
	if (!f->late) {
		if (w->fresh == index_of(w, f))
			w->fresh = f->next;
		w->n_fresh--;
	} else
		w->n_late--;
	list_remove(w, &w->out[f->tries - 1], f);
	w->n_out--;
}

/* ---- the window and the budget ---- */

static void shrink(struct sweep *w, uint64_t id)
{
	if (id >> FLIGHT_BITS <= w->shrunk_at)
		return; /* sent before the last shrinking: it says nothing new */
	w->window = MAX(w->window / 2, w->opt.window_min);
	w->shrunk_at = w->serial;
}

static void grow(struct sweep *w)
{
	w->window += w->shrunk_at ? 1 / w->window : 1;
	w->window = MIN(w->window, w->opt.window_max);
}

static void refill(struct sweep *w, struct mono now)
{
	double gained;

	if (w->opt.mads_per_sec <= 0)
		return;
	gained = (double)mono_sub(now, w->tokens_at) * w->opt.mads_per_sec /
		 NSEC_PER_SEC;
	w->tokens = MIN(w->tokens + gained, MAX(w->opt.mads_per_sec, 1));
	w->tokens_at = now;
}

static bool budget_left(const struct sweep *w)
{
	return w->opt.mads_per_sec <= 0 || w->tokens >= 1;
}

void window_reset(struct sweep *w, struct mono now)
{
	if (!mono_is_set(
		    w->tokens_at)) { /* the first sweep begins with a full bucket */
		w->tokens = MAX(w->opt.mads_per_sec, 1);
		w->tokens_at = now;
	}
	w->shrunk_at = 0;
}

/* ---- sending ---- */

/* Each try has its own id: an answer to the one before is a stray. */
static void renumber(struct sweep *w, struct flight *f)
{
	uint64_t id = ++w->serial << FLIGHT_BITS | index_of(w, f);

	if (f->work && f->work->suspect == f->id)
		f->work->suspect = id;
	f->id = id;
}

static uint32_t way_of(uint8_t hops, const uint8_t *path)
{
	uint32_t h = hops;

	for (unsigned i = 1; i <= hops; i++)
		h = h * 131 + path[i];
	return h;
}

/* The answer of a node names nobody: if the route has changed, it may be another's. */
static bool is_astray(const struct sweep *w, const struct flight *f)
{
	uint8_t hops, path[IB_PATH_LEN];

	return f->kind == ASK_NODE &&
	       (!ask_route(w, f, &hops, path) || way_of(hops, path) != f->way);
}

static bool send(struct sweep *w, struct mono now, struct flight *f,
		 struct sweep_request *ret)
{
	uint32_t tries = f->tries;

	if ((f->work && f->work->flags & WORK_GONE && f->kind != ASK_AGAIN) ||
	    !ask_route(w, f, &ret->hops, ret->path))
		return false;
	if (tries)
		renumber(w, f);
	list_add(w, &w->out[f->tries++], f);
	f->way = way_of(ret->hops, ret->path);
	f->sent = now;
	if (!tries && !w->fresh)
		w->fresh = index_of(w, f);
	if (tries)
		w->n_late++;
	else
		w->n_fresh++;
	w->n_out++;
	w->now.window_worst =
		(uint16_t)MIN(MAX(w->now.window_worst, w->n_out), UINT16_MAX);
	w->now.mads++;
	if (w->opt.mads_per_sec > 0)
		w->tokens--;
	if (f->work && f->kind == ASK_NODE)
		f->work->node->mads++;
	ret->id = f->id;
	ret->attr = f->attr;
	ret->mod = f->mod;
	ret->timeout_ms = w->opt.timeout_ms[tries];
	return true;
}

static void count_new(struct sweep *w, struct work *k, const struct flight *f)
{
	if (!k)
		return;
	if (f->kind == ASK_NODE)
		k->out++;
	else
		k->cross_out++;
	ask_settle(w, k);
}

/* It cannot be asked any more: whoever waits for it learns that there is no answer. If
 * the node is found again by another route or the same one, its turn is over, and so
 * the next sweep makes up for it. */
static void lose(struct sweep *w, struct mono now, struct flight *f)
{
	struct flight copy = *f;

	flight_free(w, f);
	if (copy.kind == ASK_AGAIN)
		link_conflict_answer(w, now, &copy, NULL);
	else if (copy.work && w->now.kind == SWEEP_LATER)
		copy.work->flags |= WORK_NEXT_FULL;
	if (copy.work)
		ask_settle(w, copy.work);
}

static bool send_again(struct sweep *w, struct mono now, struct sweep_request *ret)
{
	while (w->again.first) {
		struct flight *f = at(w, w->again.first);

		list_remove(w, &w->again, f);
		if (send(w, now, f, ret))
			return true;
		lose(w, now, f);
	}
	return false;
}

static bool send_new(struct sweep *w, struct mono now, struct sweep_request *ret)
{
	struct flight next = {0};

	while (w->n_fresh < (uint32_t)w->window && w->n_late < w->opt.suspect_max &&
	       w->n_flights < FLIGHT_MAX && ask_next(w, &next)) {
		struct flight *f = flight_new(w, &next);

		count_new(w, f->work, f);
		if (send(w, now, f, ret))
			return true;
		lose(w, now, f);
		next = (struct flight){0};
	}
	return false;
}

static void end_if_through(struct sweep *w, struct mono now)
{
	if (w->running && !w->n_flights && !w->n_marks)
		end_sweep(w, now);
}

bool sweep_next(struct sweep *w, struct mono now, struct sweep_request *ret)
{
	if (!w->running)
		return false;
	grow_old(w, now);
	refill(w, now);
	if (w->lost_route)
		end_routes(w, now);
	if (budget_left(w) && (send_again(w, now, ret) || send_new(w, now, ret)))
		return true;
	end_if_through(w, now);
	return false;
}

/* ---- answers ---- */

static void measure(struct sweep *w, int64_t rtt)
{
	int64_t off = rtt - w->srtt;

	if (!w->srtt) {
		w->srtt = MAX(rtt, 1);
		w->rttvar = rtt / 2;
		return;
	}
	w->rttvar += ((off < 0 ? -off : off) - w->rttvar) / 4;
	w->srtt = MAX(w->srtt + off / 8, 1);
}

static void answered(struct sweep *w, struct flight *f, const struct sweep_answer *a,
		     struct mono now)
{
	struct work *k = f->work;
	int64_t rtt = a->rtt_ns > 0 ? a->rtt_ns : mono_sub(now, f->sent);

	w->now.answers++;
	w->heard = MAX(w->heard, f->id >> FLIGHT_BITS);
	if (f->tries > 1)
		shrink(w, f->id); /* something was lost on the way */
	else {
		measure(w, rtt);
		grow(w);
	}
	if (!k || f->kind != ASK_NODE)
		return;
	k->flags = (uint8_t)((k->flags | WORK_ANSWERED) & ~WORK_GONE);
	k->node->flags &= (uint8_t) ~(NODE_SUSPECT | NODE_PROTECTED);
	release_held(w, k);
}

/* True: it will be tried again. */
static bool try_again(struct sweep *w, struct flight *f)
{
	struct work *k = f->work;

	if (f->once || f->tries >= w->tries || (k && k->flags & WORK_GONE))
		return false;
	if (!f->late && k && f->kind == ASK_NODE)
		k->late++;
	else if (!f->late && k)
		k->cross_late++;
	f->late = true;
	if (k && f->kind == ASK_NODE) {
		if (k->flags & WORK_ANSWERED)
			shrink(w, f->id);
		if (!k->suspect)
			k->suspect = f->id;
		k->node->flags |= NODE_SUSPECT;
	}
	list_add(w, k && k->suspect && k->suspect != f->id ? &k->held : &w->again, f);
	if (k)
		ask_settle(w, k);
	return true;
}

static bool is_retried(const struct sweep_answer *a)
{
	return a->status == SWEEP_TIMEOUT || a->status == SWEEP_SEND_FAILED ||
	       (a->status == SWEEP_BAD_STATUS &&
		(a->mad_status & 0x7fff) == 1); /* busy */
}

static void give_up(struct sweep *w, struct mono now, const struct flight *f,
		    const struct sweep_answer *a)
{
	if (f->kind == ASK_AGAIN)
		link_conflict_answer(w, now, f, NULL);
	else
		error_request(w, now, f, a);
}

uint16_t sweep_attr(const struct sweep *w, uint64_t id)
{
	const struct flight *f = flight_find(w, id);

	return f ? f->attr : 0;
}

bool sweep_answer(struct sweep *w, struct mono now, const struct sweep_answer *a)
{
	struct flight *f = flight_find(w, a->id), copy;

	if (!f || !w->running)
		return false;
	/* In a list of what is held or to be sent again: its answer comes late. */
	if (!f->tries || !f->sent.ns)
		return false;
	take_in(w, f);
	w->now.ended = now;
	w->now.timeouts += a->status == SWEEP_TIMEOUT;
	if (is_retried(a) && try_again(w, f)) {
		f->sent = MONO_NEVER;
		return true;
	}
	if (a->status != SWEEP_TIMEOUT && a->status != SWEEP_SEND_FAILED)
		answered(w, f, a, now);
	copy = *f;
	flight_free(w, f);
	w->done++;
	if (is_astray(w, &copy))
		ask_same(w, &copy);
	else if (a->status == SWEEP_OK)
		learn(w, now, &copy, a->data);
	else if (!ask_plainly(w, &copy, a))
		give_up(w, now, &copy, a);
	if (copy.work)
		ask_settle(w, copy.work);
	end_if_through(w, now);
	return true;
}

void flights_drop_all(struct sweep *w)
{
	/* The lists first: what is freed must not be let go of by another. */
	for (struct ib_node *n = subnet_next(w->s, NULL); n; n = subnet_next(w->s, n)) {
		struct work *k = work_of(n);

		if (!k)
			continue;
		k->held = (struct flight_list){0};
		k->suspect = 0;
	}
	memset(w->out, 0, sizeof(w->out));
	w->again = (struct flight_list){0};
	for (uint32_t i = 1; i <= w->pool_size; i++)
		if (at(w, i)->id)
			flight_free(w, at(w, i));
	w->fresh = w->n_out = w->n_fresh = w->n_late = 0;
}

/* ---- time ---- */

void sweep_tick(struct sweep *w, struct mono now)
{
	if (!w->running)
		return;
	for (int t = 0; t < TRIES_MAX; t++) {
		int64_t limit = w->opt.timeout_ms[t] * NSEC_PER_MSEC + BELT;

		while (w->running && w->out[t].first &&
		       mono_sub(now, at(w, w->out[t].first)->sent) >= limit) {
			struct sweep_answer a = {.id = at(w, w->out[t].first)->id,
						 .status = SWEEP_TIMEOUT};

			sweep_answer(w, now, &a);
		}
	}
	grow_old(w, now);
}

struct mono sweep_deadline(const struct sweep *w)
{
	struct mono first = MONO_NEVER;

	if (!w->running)
		return first;
	for (int t = 0; t < TRIES_MAX; t++)
		if (w->out[t].first)
			first = mono_first(
				first,
				mono_add(at(w, w->out[t].first)->sent,
					 w->opt.timeout_ms[t] * NSEC_PER_MSEC + BELT));
	if (w->fresh && w->n_marks) /* then there is room, or a level is through */
		first = mono_first(first, late_at(w, at(w, w->fresh)));
	if (!budget_left(w) && (w->n_marks || w->again.first)) {
		double ns = (1 - w->tokens) * NSEC_PER_SEC / w->opt.mads_per_sec;

		first = mono_first(first, mono_add(w->tokens_at, (int64_t)ns + 1));
	}
	return first;
}
