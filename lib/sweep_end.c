/* SPDX-License-Identifier: BSD-2-Clause */
/* Errors, routes, and what is dropped when a sweep ends. */
#include "sweep_int.h"

#include <inttypes.h>

/* ---- the list of errors ---- */

const char *error_place(const struct ib_node *n, unsigned port, char *buf, size_t size)
{
	buf[0] = '\0';
	if (n->desc_known)
		str_append(buf, size, "%s", n->desc);
	else
		str_append(buf, size, "0x%016" PRIx64, n->info.node_guid);
	if (port)
		str_append(buf, size, " port %u", port);
	return buf;
}

struct sweep_error *error_add(struct sweep *w, struct mono now, enum sweep_problem what,
			      const struct work *k, unsigned port)
{
	const struct physp *p = k ? node_physp(k->node, port) : NULL;
	struct sweep_error *e;

	if (w->n_errors == w->errors_size) {
		w->errors_size = MAX(16, 2 * w->errors_size);
		w->errors =
			xrealloc(w->errors, (size_t)w->errors_size, sizeof(*w->errors));
	}
	e = &w->errors[w->n_errors++];
	*e = (struct sweep_error){.problem = what, .at = now};
	if (!k)
		return e;
	e->node_guid = k->node->info.node_guid;
	str_copy(e->desc, sizeof(e->desc), k->node->desc);
	if (!p)
		p = node_main_port(k->node);
	else if (port && !node_is_switch(k->node))
		e->port = (uint8_t)port;
	if (p) {
		e->hops = p->hops;
		memcpy(e->path, p->path, sizeof(e->path));
	}
	return e;
}

struct sweep_error *error_across(struct sweep *w, struct mono now,
				 enum sweep_problem what, const struct work *k,
				 unsigned port)
{
	struct sweep_error *e = error_add(w, now, what, k, port);
	char where[100];

	e->node_guid = 0;
	e->desc[0] = '\0';
	e->port = 0;
	e->attr = SWEEP_NODE_INFO;
	if (e->hops < IB_HOPS_MAX)
		e->path[++e->hops] = (uint8_t)port;
	str_append(e->why, sizeof(e->why),
		   "across %s: ", error_place(k->node, port, where, sizeof(where)));
	return e;
}

static enum sweep_problem problem_of(enum sweep_status status)
{
	switch (status) {
	case SWEEP_BAD_STATUS:
		return PROBLEM_BAD_STATUS;
	case SWEEP_SEND_FAILED:
		return PROBLEM_SEND_FAILED;
	case SWEEP_OK:
	case SWEEP_BAD_ANSWER:
		return PROBLEM_BAD_ANSWER;
	case SWEEP_TIMEOUT:
	case SWEEP_STATUS__MAX:
		break;
	}
	return PROBLEM_TIMEOUT;
}

static void say_why(const struct sweep *w, struct sweep_error *e,
		    const struct flight *f, const struct sweep_answer *a)
{
	unsigned ms = 0;

	for (unsigned t = 0; t < f->tries; t++)
		ms += w->opt.timeout_ms[t];
	switch (e->problem) {
	case PROBLEM_TIMEOUT:
	case PROBLEM_PROTECTED:
		str_append(e->why, sizeof(e->why), "no answer to %u %s in %u ms",
			   f->tries, f->tries == 1 ? "try" : "tries", ms);
		break;
	case PROBLEM_BAD_STATUS:
		str_append(e->why, sizeof(e->why), "answered with status 0x%x",
			   a->mad_status);
		break;
	case PROBLEM_SEND_FAILED:
		str_append(e->why, sizeof(e->why), "could not be sent");
		break;
	default:
		str_append(e->why, sizeof(e->why), "answer makes no sense");
		break;
	}
}

/* ---- what was given up ---- */

bool is_protected(const struct ib_node *n, unsigned port)
{
	const struct physp *p = node_physp(n, node_is_switch(n) ? 0 : port);

	if (!p)
		p = node_main_port(n);
	return p && p->info.m_key_protect >= 2;
}

/* Once per target. */
static void error_of_node(struct sweep *w, struct mono now, struct work *k,
			  unsigned port, const struct flight *f,
			  const struct sweep_answer *a)
{
	enum sweep_problem what = problem_of(a->status);
	struct sweep_error *e;

	if (a->status == SWEEP_TIMEOUT && k->node->flags & NODE_PROTECTED)
		what = PROBLEM_PROTECTED;
	if (k->error)
		return;
	e = error_add(w, now, what, k, port);
	k->error = w->n_errors;
	e->attr = f->attr;
	e->mod = f->mod;
	if (f->attr == SWEEP_PORT_INFO)
		e->port = (uint8_t)port;
	say_why(w, e, f, a);
}

static bool is_silence(const struct sweep_answer *a)
{
	return a->status == SWEEP_TIMEOUT || a->status == SWEEP_SEND_FAILED;
}

/* A node that is known does not answer: nothing else of it is asked in this sweep. */
static void node_silent(struct sweep *w, struct work *k, unsigned port)
{
	k->flags |= WORK_GONE;
	k->node->flags |= is_protected(k->node, port) ? NODE_PROTECTED : NODE_SUSPECT;
	ask_nothing(w, k);
	if (w->now.kind != SWEEP_LATER)
		return;
	for (unsigned i = 1; i <= k->n_ports; i++) { /* perhaps its links are down */
		const struct physp *p = node_physp(k->node, i);

		if (!p || !p->remote || p->remote->node == k->node)
			continue;
		ask_read(w, work_of(p->remote->node), p->remote->num);
		ask_settle(w, work_of(p->remote->node));
	}
}

static void across_failed(struct sweep *w, struct mono now, const struct flight *f,
			  const struct sweep_answer *a)
{
	struct work *k = f->work, *far;
	struct physp *p = node_physp(k->node, f->port), *r;

	if (!p || k->flags & WORK_GONE || k->suspect)
		return; /* the way there is what failed: named of its own */
	if (k->slots[f->port].silent < UINT8_MAX)
		k->slots[f->port].silent++;
	r = p->remote;
	if (!r || (w->now.kind == SWEEP_FULL && r->node->seen_sweep != w->now.number &&
		   !is_protected(r->node, r->num))) {
		struct sweep_error *e =
			error_across(w, now, problem_of(a->status), k, f->port);

		say_why(w, e, f, a);
		if (r && !work_of(r->node)->lost)
			work_of(r->node)->lost = w->n_errors;
		link_lost(w, p); /* what it was linked to is perhaps found elsewhere */
		k->slots[f->port].flags |= SLOT_SETTLED;
		return;
	}
	far = work_of(r->node);
	if (is_silence(a) && is_protected(r->node, r->num)) {
		r->node->flags |= NODE_PROTECTED;
		error_of_node(w, now, far, r->num, f, a);
		learn_protected(w, now, far, r->num);
		return;
	}
	error_of_node(w, now, far, r->num, f, a);
	link_lost(w, p);
	k->slots[f->port].flags |= SLOT_SETTLED;
	if (w->now.kind != SWEEP_LATER)
		return;
	later_in_full(w, now, k);
	if (node_is_switch(r->node))
		later_in_full(w, now, far);
}

void error_request(struct sweep *w, struct mono now, const struct flight *f,
		   const struct sweep_answer *a)
{
	struct work *k = f->work;

	if (f->kind == ASK_START) {
		struct sweep_error *e =
			error_add(w, now, problem_of(a->status), NULL, 0);

		e->attr = f->attr;
		say_why(w, e, f, a);
	} else if (f->kind != ASK_NODE)
		across_failed(w, now, f, a);
	else if (!is_silence(a)) {
		error_of_node(w, now, k, f->port, f, a);
		ask_no_table(w, k, f->port, f->attr);
		/* What it has answered before it refuses: is it the same one? */
		if (f->attr == SWEEP_SWITCH_INFO && k->node->sw_known &&
		    w->now.kind == SWEEP_LATER)
			later_in_full(w, now, k);
	} else if (!(k->flags & WORK_GONE)) {
		node_silent(w, k, f->port);
		error_of_node(w, now, k, f->port, f, a);
	}
}

/* ---- routes ---- */

/* What was read over a route that led elsewhere was another's: it is read anew. */
static void route_to(struct sweep *w, struct mono now, struct physp *p, uint8_t hops,
		     const uint8_t *path)
{
	if (p->hops == hops && !memcmp(p->path, path, (size_t)hops + 1))
		return;
	physp_set_path(p, hops, path);
	if (w->misled && w->running)
		later_anew(w, now, work_of(p->node));
}

/* Across one link, breadth first: returns the switch that is reached for the first
 * time. */
static struct work *route_across(struct sweep *w, struct mono now,
				 const struct physp *p)
{
	struct physp *r = p->remote;
	struct work *far = work_of(r->node);
	uint8_t path[IB_PATH_LEN], hops = p->hops;
	bool first = !(far->flags & WORK_REACHED);

	if ((far == w->root && r->num == w->port) ||
	    (node_is_switch(r->node) && !first))
		return NULL;
	memcpy(path, p->path, sizeof(path));
	path[++hops] = p->num;
	far->flags |= WORK_REACHED;
	route_to(w, now, r, hops, path);
	return node_is_switch(r->node) ? far : NULL;
}

static void routes_from_root(struct sweep *w, struct mono now)
{
	struct work *last = w->root;

	w->root->flags |= WORK_REACHED;
	w->root->bfs_next = NULL;
	for (struct work *k = w->root; k; k = k->bfs_next) {
		for (unsigned i = 1; i <= k->n_ports; i++) {
			const struct physp *p = node_physp(k->node, i);
			struct work *far = NULL;

			if (p && p->remote && ask_can_cross(w, k, i))
				far = route_across(w, now, p);
			if (!far)
				continue;
			far->bfs_next = NULL;
			last->bfs_next = far;
			last = far;
		}
	}
}

void end_routes(struct sweep *w, struct mono now)
{
	w->lost_route = false;
	if (!w->root)
		return;
	for (struct ib_node *n = subnet_next(w->s, NULL); n; n = subnet_next(w->s, n))
		work_of(n)->flags &= (uint8_t)~WORK_REACHED;
	routes_from_root(w, now);
	w->misled = false;
}

/* ---- the end ---- */

/* By the error that it or the link to it has already, so that nothing is named twice.
 */
static void name_vanished(struct sweep *w, struct mono now, const struct work *k,
			  const char *why)
{
	int known = k->error ? k->error : k->lost;
	struct sweep_error *e;

	if (!known) {
		e = error_add(w, now, PROBLEM_VANISHED, k, 0);
		str_append(e->why, sizeof(e->why), "%s", why);
	} else if (k->since < w->now.number) {
		e = &w->errors[known - 1];
		e->problem = PROBLEM_VANISHED;
		e->node_guid = k->node->info.node_guid;
		str_copy(e->desc, sizeof(e->desc), k->node->desc);
	}
}

static void drop(struct sweep *w, struct mono now, struct work *k, const char *why)
{
	struct ib_node *n = k->node;

	name_vanished(w, now, k, why);
	w->now.changed++;
	w->links_changed = true;
	work_free(w, k);
	subnet_drop(w->s, n);
}

static bool is_gone(const struct sweep *w, const struct work *k)
{
	if (k->node->flags & NODE_PROTECTED || k == w->root)
		return false;
	return k->flags & WORK_GONE ||
	       (w->now.kind == SWEEP_FULL && k->node->seen_sweep != w->now.number);
}

/* Of a CA: ports that no link leads to any more. */
static void drop_ports(struct sweep *w, struct mono now, struct work *k)
{
	for (unsigned i = 1; i <= k->n_ports; i++) {
		struct physp *p = node_physp(k->node, i);
		struct sweep_error *e;

		if (!p || p->remote || (k == w->root && i == w->port))
			continue;
		e = error_add(w, now, PROBLEM_VANISHED, k, i);
		str_append(e->why, sizeof(e->why), "the port's link is gone");
		w->now.changed++;
		subnet_port_drop(w->s, p->guid);
		physp_destroy(p);
	}
}

static void drop_gone(struct sweep *w, struct mono now)
{
	struct ib_node *n, *next;

	for (n = subnet_next(w->s, NULL); n; n = next) {
		next = subnet_next(w->s, n);
		if (is_gone(w, work_of(n)))
			drop(w, now, work_of(n), "not found any more");
	}
	if (!w->links_changed)
		return;
	end_routes(w, now);
	for (n = subnet_next(w->s, NULL); n; n = next) {
		next = subnet_next(w->s, n);
		if (!(work_of(n)->flags & WORK_REACHED))
			drop(w, now, work_of(n), "no link leads to it any more");
	}
	for (n = subnet_next(w->s, NULL); n; n = subnet_next(w->s, n))
		if (!node_is_switch(n))
			drop_ports(w, now, work_of(n));
	w->links_changed = false;
}

/* Some were named before their description was read. */
static void describe_errors(struct sweep *w)
{
	for (int i = 0; i < w->n_errors; i++) {
		struct sweep_error *e = &w->errors[i];
		const struct ib_node *n = NULL;

		if (e->node_guid && !e->desc[0])
			n = subnet_node_by_guid(w->s, e->node_guid);
		if (n)
			str_copy(e->desc, sizeof(e->desc), n->desc);
	}
}

void end_sweep(struct sweep *w, struct mono now)
{
	w->running = false;
	if (w->now.kind == SWEEP_LATER)
		later_name_silent(w, now);
	link_name_moved(w, now);
	describe_errors(w);
	if (w->seen_root)
		drop_gone(w, now);
	if (!mono_is_set(w->now.ended))
		w->now.ended = now;
	if (w->now.kind == SWEEP_FULL)
		w->done_before = w->done;
	w->last = w->now;
}
