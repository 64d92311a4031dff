/* SPDX-License-Identifier: BSD-2-Clause */
/* What an incremental sweep asks: a rolling part of all, and what is odd. */
#include "sweep_int.h"

/* Things of a node that have their turns, beside the PortInfo of its ports. */
#define TURN_LINK    7 /* added to the number of the port */
#define TURN_TABLES  11
#define TURN_DESC    13
#define TURN_SWITCH  17
#define SILENT_TRIES 3	/* sweeps in which a silent link is asked again each time */
#define SMALL_PART   10 /* an incremental sweep asks at most that part of a full one */

bool later_turn(const struct sweep *w, const struct work *k, unsigned thing)
{
	return (k->node->serial + thing) % w->turns == w->now.number % w->turns;
}

bool later_knock(const struct sweep *w, const struct work *k)
{
	return k->node->serial % w->opt.rolling == w->now.number % w->opt.rolling;
}

/* The end that asks for both: the nearer one, and never a CA but this host's own. */
static bool asks_for_both(const struct sweep *w, const struct work *k,
			  const struct physp *p)
{
	const struct physp *r = p->remote;
	const struct work *far = work_of(r->node);

	if (!ask_can_cross(w, k, p->num))
		return false;
	if (!ask_can_cross(w, far, r->num))
		return true;
	if (k->level != far->level)
		return k->level < far->level;
	if (k != far)
		return k->node->serial < far->node->serial;
	return p->num <= r->num;
}

/* Whether it is what its route leads to, which only NodeInfo tells. */
static void check_route(struct sweep *w, struct mono now, struct work *k)
{
	const struct physp *main = node_physp(k->node, 0);

	for (unsigned i = 1; main && i <= k->n_ports; i++) {
		const struct physp *p = node_physp(k->node, i),
				   *r = p ? p->remote : NULL;

		if (r && r->hops + 1 == main->hops &&
		    r->num == main->path[main->hops] &&
		    !memcmp(r->path, main->path, (size_t)r->hops + 1))
			ask_across(w, now, work_of(r->node), r->num);
	}
}

void later_in_full(struct sweep *w, struct mono now, struct work *k)
{
	if (k->flags & WORK_FULL || k->node->flags & NODE_PROTECTED)
		return;
	k->flags |= WORK_FULL;
	if (node_is_switch(k->node)) {
		ask_node(w, k, WORK_SWITCH_INFO);
		check_route(w, now, k);
	}
	if (!k->node->desc_known || w->now.kind == SWEEP_FULL)
		ask_node(w, k, WORK_DESC);
	for (unsigned i = 0; i <= k->n_ports; i++) {
		const struct physp *p = node_physp(k->node, i);

		if (!p)
			continue;
		if (p->seen_sweep == w->now.number) {
			if (port_is_up(p)) /* its answer came before this was known */
				ask_across(w, now, k, i);
		} else if (node_is_switch(k->node) || p->remote || k == w->root)
			ask_read(w, k, i);
		if (p->remote && !ask_can_cross(w, k, i))
			ask_across(w, now, work_of(p->remote->node), p->remote->num);
	}
	ask_settle(w, k);
}

void later_anew(struct sweep *w, struct mono now, struct work *k)
{
	for (unsigned i = 0; i <= k->n_ports; i++) {
		struct physp *p = &k->node->slots[i];

		if (p->seen_sweep != w->now.number)
			continue;
		p->seen_sweep--;
		p->info.m_key_protect = 0; /* it may be another's, and this one dead */
	}
	k->flags &= (uint8_t)~WORK_FULL;
	later_in_full(w, now, k);
	ask_node(w, k, WORK_DESC);
	ask_settle(w, k);
}

/* ---- the rolling part ---- */

void later_link(struct sweep *w, struct mono now, struct work *k, const struct physp *p)
{
	const struct slot *t = &k->slots[p->num];
	bool turn = later_turn(w, k, p->num + TURN_LINK);

	if (p->remote ? turn && asks_for_both(w, k, p)
		      : port_is_up(p) && (turn || (t->silent < SILENT_TRIES &&
						   !(t->flags & SLOT_TWIN))))
		ask_across(w, now, k, p->num);
}

static void mark_ports(struct sweep *w, struct mono now, struct work *k)
{
	for (unsigned i = 0; i <= k->n_ports; i++) {
		struct physp *p = node_physp(k->node, i);

		if (!p)
			continue;
		if (later_turn(w, k, i) || (k == w->root && i == w->port))
			ask_read(w, k, i);
		if (w->opt.tables && later_turn(w, k, i + TURN_TABLES))
			ask_tables(w, k, i);
		/* What is to be read first may turn out to be down. */
		if (i && !(k->slots[i].flags & SLOT_READ))
			later_link(w, now, k, p);
	}
}

static void name_silent(struct sweep *w, struct mono now, struct work *k, unsigned port)
{
	bool twin = k->slots[port].flags & SLOT_TWIN;
	struct sweep_error *e;

	e = error_across(w, now, twin ? PROBLEM_DUPLICATE_GUID : PROBLEM_TIMEOUT, k,
			 port);
	str_append(e->why, sizeof(e->why),
		   twin ? "a node with the GUID of another; asked each %u sweeps"
			: "silent for long; asked each %u sweeps",
		   w->turns);
}

void later_name_silent(struct sweep *w, struct mono now)
{
	for (struct ib_node *n = subnet_next(w->s, NULL); n; n = subnet_next(w->s, n)) {
		struct work *k = work_of(n);

		for (unsigned i = 1; i <= k->n_ports; i++) {
			const struct physp *p = node_physp(n, i);

			if (p && !p->remote && port_is_up(p) &&
			    ask_can_cross(w, k, i) &&
			    !(k->slots[i].flags & SLOT_SETTLED) &&
			    !(k->flags & WORK_GONE))
				name_silent(w, now, k, i);
		}
	}
}

/* Silent by intention: one NodeInfo when it has its turn, else it is only named. Ports
 * of a CA that have told no protection are asked, as of any node that fell silent. */
static void mark_protected(struct sweep *w, struct mono now, struct work *k)
{
	bool knocked = false;

	for (unsigned i = 1; i <= k->n_ports; i++) {
		const struct physp *p = node_physp(k->node, i);
		bool locked = is_protected(k->node, i);

		if (!p || !p->remote || (locked && knocked))
			continue;
		knocked |= locked;
		ask_across(w, now, work_of(p->remote->node),
			   p->remote->num); /* names it */
	}
}

/* ---- how much of all is asked each time ---- */

/* Of few nodes all is read each time. And SwitchInfo of all switches, if that is a small
 * part of a full sweep: 1: of each in each sweep; n: of each in every n-th. */
static uint32_t plan_turns(struct sweep *w)
{
	uint64_t all = 0, switches = 0, fit;

	for (struct ib_node *n = subnet_next(w->s, NULL); n; n = subnet_next(w->s, n)) {
		bool sw = node_is_switch(n);

		all += sw ? n->info.num_ports + 3u : 3;
		switches += sw;
	}
	w->turns = w->opt.rolling;
	if (all <= (uint64_t)w->opt.least * SMALL_PART)
		w->turns = (uint32_t)MIN(MAX((all + w->opt.least - 1) / w->opt.least, 1),
					 w->opt.rolling);
	fit = all / SMALL_PART;
	fit = fit > all / w->turns ? fit - all / w->turns : 0;
	if (!fit)
		return w->turns;
	return (uint32_t)MIN((switches + fit - 1) / fit, w->turns);
}

static void mark_node(struct sweep *w, struct mono now, struct work *k, uint32_t every)
{
	if (k->flags & WORK_NEXT_FULL) {
		k->flags &= (uint8_t)~WORK_NEXT_FULL;
		later_in_full(w, now, k);
	}
	if (node_is_switch(k->node) &&
	    (k->node->serial + TURN_SWITCH) % every == w->now.number % every)
		ask_node(w, k, WORK_SWITCH_INFO);
	if (!k->node->desc_known || later_turn(w, k, TURN_DESC))
		ask_node(w, k, WORK_DESC);
	mark_ports(w, now, k);
	ask_settle(w, k);
}

void later_mark(struct sweep *w, struct mono now)
{
	uint32_t every = plan_turns(w);

	for (struct ib_node *n = subnet_next(w->s, NULL); n; n = subnet_next(w->s, n)) {
		const struct physp *p = node_main_port(n);

		ask_level(w, work_of(n), p ? p->hops : 0);
	}
	for (struct ib_node *n = subnet_next(w->s, NULL); n; n = subnet_next(w->s, n)) {
		if (n->flags & NODE_PROTECTED)
			mark_protected(w, now, work_of(n));
		else
			mark_node(w, now, work_of(n), every);
	}
}
