/* SPDX-License-Identifier: BSD-2-Clause */
/* Life of a sweep: options, start, end, results. */
#include "sweep_int.h"

#include <errno.h>
#include <stdlib.h>

#define TABLE(a)                                                                       \
	{                                                                              \
		.names = a, .n = (int)ARRAY_LEN(a)                                     \
	}

static const char *const statuses[] = {
	[SWEEP_OK] = "ok",
	[SWEEP_TIMEOUT] = "timeout",
	[SWEEP_BAD_STATUS] = "bad_status",
	[SWEEP_BAD_ANSWER] = "bad_answer",
	[SWEEP_SEND_FAILED] = "send_failed",
};
const struct enum_names sweep_status_names = TABLE(statuses);

static const char *const kinds[] = {
	[SWEEP_NONE] = "none",
	[SWEEP_FULL] = "full",
	[SWEEP_LATER] = "incremental",
};
const struct enum_names sweep_kind_names = TABLE(kinds);

static const char *const problems[] = {
	[PROBLEM_TIMEOUT] = "timeout",
	[PROBLEM_BAD_STATUS] = "bad_status",
	[PROBLEM_BAD_ANSWER] = "bad_answer",
	[PROBLEM_SEND_FAILED] = "send_failed",
	[PROBLEM_PROTECTED] = "protected",
	[PROBLEM_DUPLICATE_GUID] = "duplicate_guid",
	[PROBLEM_DUPLICATE_LID] = "duplicate_lid",
	[PROBLEM_MOVED] = "moved",
	[PROBLEM_VANISHED] = "vanished",
	[PROBLEM_LOOPED] = "looped",
	[PROBLEM_LIMIT] = "limit",
};
const struct enum_names sweep_problem_names = TABLE(problems);

void sweep_options_default(struct sweep_options *o)
{
	*o = (struct sweep_options){
		.window_min = 4,
		.window_max = 64,
		.per_target = 8,
		.suspect_max = 1024,
		.timeout_ms = {50, 100, 200, 400},
		.rolling = 20,
		.least = 300,
		.max_nodes = 65536,
	};
}

void sweep_set_options(struct sweep *w, const struct sweep_options *o)
{
	struct sweep_options *t = &w->opt;

	*t = *o;
	t->window_min = MAX(t->window_min, 1);
	t->window_max = MAX(t->window_max, t->window_min);
	t->per_target = MAX(t->per_target, 1);
	t->suspect_max = MAX(t->suspect_max, 1);
	t->rolling = MAX(t->rolling, 1);
	t->least = MAX(t->least, 1);
	w->turns = t->rolling;
	w->tries = 0;
	while (w->tries < TRIES_MAX && t->timeout_ms[w->tries])
		w->tries++;
	if (!w->tries) {
		t->timeout_ms[0] = 50;
		w->tries = 1;
	}
	w->window = MIN(MAX(w->window, t->window_min), t->window_max);
}

struct sweep *sweep_new(struct subnet *s, uint8_t port, const struct sweep_options *o)
{
	struct sweep *w = xcalloc(1, sizeof(*w));

	w->s = s;
	w->port = port;
	sweep_set_options(w, o);
	return w;
}

struct sweep *sweep_free(struct sweep *w)
{
	if (!w)
		return NULL;
	for (struct ib_node *n = subnet_next(w->s, NULL); n; n = subnet_next(w->s, n))
		work_free(w, work_of(n));
	free(w->pool);
	free(w->conflicts);
	free(w->errors);
	free(w);
	return NULL;
}

/* ---- what belongs to a node ---- */

struct work *work_of(const struct ib_node *n)
{
	return n->sweep;
}

struct work *work_make(struct sweep *w, struct ib_node *n)
{
	struct work *k = n->sweep;

	if (!k) {
		k = n->sweep = xcalloc(1, sizeof(*k));
		k->node = n;
		k->since = w->now.number;
		w->n_nodes++;
	}
	if (!k->slots || k->n_ports != n->info.num_ports) {
		ask_nothing(w, k);
		free(k->slots);
		k->n_ports = n->info.num_ports;
		k->slots = xcalloc((size_t)k->n_ports + 1, sizeof(*k->slots));
		k->read_at = k->cross_at = k->table_at = 0;
		k->read_open = 0; /* what is out is of slots that are no more */
	}
	return k;
}

void work_free(struct sweep *w, struct work *k)
{
	if (!k)
		return;
	ask_nothing(w, k);
	if (w->root == k)
		w->root = NULL;
	k->node->sweep = NULL;
	free(k->slots);
	free(k);
	w->n_nodes--;
}

/* ---- start and end ---- */

static void forget_all(struct sweep *w)
{
	struct ib_node *n;

	while ((n = subnet_next(w->s, NULL))) {
		work_free(w, work_of(n));
		subnet_drop(w->s, n);
	}
}

/* What is left of the sweep before, of a node: only how long links were silent, how it
 * is to be asked, and what somebody asked for. */
static void work_renew(struct sweep *w, struct work *k, bool full)
{
	k->flags &= WORK_REACHED | WORK_PLAIN | (full ? 0 : WORK_NEXT_FULL);
	k->error = k->lost = 0;
	k->level = 0;
	for (unsigned i = 0; i <= k->n_ports; i++) {
		bool wish = k->slots[i].flags & SLOT_WISH;

		k->slots[i].flags &= SLOT_TWIN;
		if (wish && node_physp(k->node, i))
			ask_tables(w, k, i);
	}
	if (full) {
		k->node->discovery_count = 0;
		k->node->flags &= (uint8_t)~NODE_DUPLICATE;
	}
}

/* Cables that change ends in the middle of a sweep make hundreds of both, which is
 * rare: that memory is not kept. */
static void lists_drop(struct sweep *w)
{
	free(w->conflicts);
	free(w->errors);
	w->conflicts = NULL;
	w->errors = NULL;
	w->n_conflicts = w->conflict_at = w->conflicts_size = 0;
	w->n_errors = w->errors_size = 0;
}

int sweep_start(struct sweep *w, enum sweep_kind kind, bool cold, struct mono now)
{
	if (w->running)
		return -EBUSY;
	if (kind == SWEEP_NONE)
		return -EINVAL;
	if (cold)
		forget_all(w);
	if (!w->root || w->need_full)
		kind = SWEEP_FULL;
	w->need_full = false;
	w->running = true;
	w->seen_root = w->limit_named = false;
	if (kind ==
	    SWEEP_FULL) /* else routes that were lost in one broken off still are */
		w->misled = w->lost_route = false;
	w->now = (struct sweep_result){
		.kind = kind, .number = w->last.number + 1, .began = now};
	w->done = w->n_marks = 0;
	lists_drop(w);
	window_reset(w, now);
	for (struct ib_node *n = subnet_next(w->s, NULL); n; n = subnet_next(w->s, n)) {
		struct work *k = work_make(w, n);

		ask_nothing(w, k);
		work_renew(w, k, kind == SWEEP_FULL);
	}
	w->start_wanted = true;
	w->n_marks++;
	if (kind == SWEEP_LATER)
		later_mark(w, now);
	return 0;
}

void sweep_abort(struct sweep *w, struct mono now)
{
	if (!w->running)
		return;
	flights_drop_all(w);
	for (struct ib_node *n = subnet_next(w->s, NULL); n; n = subnet_next(w->s, n)) {
		struct work *k = work_of(n);

		if (!k)
			continue;
		ask_nothing(w, k);
		if (k->flags & WORK_FULL) /* why may not be seen a second time */
			k->flags |= WORK_NEXT_FULL;
	}
	w->running = w->start_wanted = false;
	w->now.ended = now;
	w->last = w->now;
}

bool sweep_running(const struct sweep *w)
{
	return w->running;
}

/* ---- wishes ---- */

void sweep_want_tables(struct sweep *w, struct physp *p)
{
	struct work *k = p->node ? work_of(p->node) : NULL;

	if (!k || !physp_is_valid(p) || p->num > k->n_ports)
		return;
	if (w->running) {
		ask_tables(w, k, p->num);
		ask_settle(w, k);
	} else
		k->slots[p->num].flags |= SLOT_WISH;
}

void sweep_suspect_node(struct sweep *w, uint64_t node_guid)
{
	struct ib_node *n = subnet_node_by_guid(w->s, node_guid);

	if (n && work_of(n))
		work_of(n)->flags |= WORK_NEXT_FULL;
}

/* ---- results ---- */

const struct sweep_result *sweep_last(const struct sweep *w)
{
	return &w->last;
}

const struct sweep_result *sweep_present(const struct sweep *w)
{
	return w->running ? &w->now : &w->last;
}

double sweep_progress(const struct sweep *w)
{
	uint64_t all = w->done + w->n_marks + w->n_flights;

	if (!w->running)
		return w->last.number ? 1 : 0;
	if (w->now.kind == SWEEP_FULL)
		all = MAX(all, w->done_before);
	return all ? (double)w->done / (double)all : 0;
}

int sweep_n_errors(const struct sweep *w)
{
	return w->n_errors;
}

const struct sweep_error *sweep_error_at(const struct sweep *w, int i)
{
	return i >= 0 && i < w->n_errors ? &w->errors[i] : NULL;
}

size_t sweep_bytes(const struct sweep *w)
{
	size_t n = sizeof(*w) + w->pool_size * sizeof(*w->pool) +
		   w->conflicts_size * sizeof(*w->conflicts) +
		   (size_t)w->errors_size * sizeof(*w->errors);

	for (const struct ib_node *i = subnet_next(w->s, NULL); i;
	     i = subnet_next(w->s, i)) {
		const struct work *k = work_of(i);

		if (k)
			n += sizeof(*k) + ((size_t)k->n_ports + 1) * sizeof(*k->slots);
	}
	return n;
}
