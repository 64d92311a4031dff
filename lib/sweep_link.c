/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What an answer across a link means: the link, a node that is new, one that has moved,
 * or one with the GUID of another.
 */
#include "sweep_int.h"

/* ---- links that go ---- */

static void remember(struct sweep *w, const struct physp *p, const struct physp *was)
{
	struct slot *t = &work_of(p->node)->slots[p->num];

	t->lost_in = w->now.number;
	t->was_guid = was->node->info.node_guid;
	t->was_port = was->num;
}

void link_lost(struct sweep *w, struct physp *p)
{
	struct physp *r = p->remote;

	if (!r)
		return;
	if (w->now.kind == SWEEP_LATER) {
		remember(w, p, r);
		remember(w, r, p);
	}
	physp_unlink(p);
	work_of(p->node)->slots[p->num].flags &= (uint8_t)~SLOT_SETTLED;
	work_of(r->node)->slots[r->num].flags &= (uint8_t)~SLOT_SETTLED;
	w->now.changed++;
	w->links_changed = true;
	/* It may have been what made another seem to have its GUID. */
	w->need_full |= w->now.kind == SWEEP_LATER &&
			(p->node->flags | r->node->flags) & NODE_DUPLICATE;
	/* A full sweep finds its routes as it goes. */
	if (w->now.kind == SWEEP_LATER)
		w->lost_route = true;
}

/* Of a switch routes lead astray only if links before it do, and then it is read anew
 * for that; what was read of a CA came over this link. */
static void look_round(struct sweep *w, struct mono now, struct work *k)
{
	if (node_is_switch(k->node))
		later_in_full(w, now, k);
	else
		later_anew(w, now, k);
}

/* An end whose far end is linked to another now. A full sweep comes to it, or came. */
static void left_alone(struct sweep *w, struct mono now, struct physp *p)
{
	struct work *k = work_of(p->node);

	if (w->now.kind == SWEEP_FULL && p->seen_sweep != w->now.number)
		return;
	k->slots[p->num].flags &= (uint8_t)~SLOT_SETTLED;
	if (w->now.kind == SWEEP_LATER) {
		w->lost_route = w->misled = true;
		look_round(w, now, k);
	}
	if (port_is_up(p))
		ask_across(w, now, k, p->num);
}

/* ---- links that come ---- */

static bool is_another(const struct ib_node *n, const struct node_info *ni)
{
	const struct physp *q = node_physp(n, ni->local_port);

	return n->info.node_type != ni->node_type ||
	       n->info.num_ports != ni->num_ports || (q && q->guid != ni->port_guid);
}

static void name_loop(struct sweep *w, struct mono now, struct work *k,
		      const struct physp *p, const struct physp *q)
{
	struct sweep_error *e = error_add(w, now, PROBLEM_LOOPED, k, p->num);

	e->port = p->num;
	if (p == q)
		str_append(e->why, sizeof(e->why), "linked to itself");
	else
		str_append(e->why, sizeof(e->why), "linked to port %u of the same node",
			   q->num);
}

static void name_port_guid(struct sweep *w, struct mono now, struct work *k,
			   const struct physp *q)
{
	const struct ib_port *other = subnet_port_by_guid(w->s, q->guid);
	struct sweep_error *e = error_add(w, now, PROBLEM_DUPLICATE_GUID, k, q->num);
	char where[100];

	str_append(e->why, sizeof(e->why), "its port GUID is also that of %s",
		   other ? error_place(other->physp->node, other->physp->num, where,
				       sizeof(where))
			 : "another");
}

/* Where the end of a link that is new was until this sweep, if elsewhere. */
static const struct physp *was_at(const struct sweep *w, const struct physp *p)
{
	const struct slot *t = &work_of(p->node)->slots[p->num];
	const struct ib_node *n;

	if (t->lost_in != w->now.number || w->now.kind != SWEEP_LATER)
		return NULL;
	n = subnet_node_by_guid(w->s, t->was_guid);
	return n ? node_physp(n, t->was_port) : NULL;
}

static void name_moved(struct sweep *w, struct mono now, const struct physp *q,
		       const struct physp *was)
{
	struct sweep_error *e =
		error_add(w, now, PROBLEM_MOVED, work_of(q->node), q->num);
	char where[100];

	e->port = q->num;
	str_append(e->why, sizeof(e->why), "was at %s",
		   error_place(was->node, was->num, where, sizeof(where)));
}

/* The old link may have been found lost before the new one was found. */
static void see_move(struct sweep *w, struct mono now, const struct physp *p,
		     const struct physp *q)
{
	const struct physp *p_was = was_at(w, p), *q_was = was_at(w, q);

	if ((p->node->flags | q->node->flags) & NODE_DUPLICATE)
		return;
	if (q_was && q_was != p)
		name_moved(w, now, q, q_was);
	else if (p_was && p_was != q)
		name_moved(w, now, p, p_was);
}

static void make_link(struct sweep *w, struct mono now, struct physp *p,
		      struct physp *q)
{
	struct physp *op = p->remote, *oq = q->remote;

	see_move(w, now, p, q);
	physp_link(p, q);
	w->now.changed++;
	w->links_changed = true;
	if (w->now.kind == SWEEP_LATER) {
		later_in_full(w, now, work_of(p->node));
		look_round(w, now, work_of(q->node));
	}
	if (op && op != p)
		left_alone(w, now, op);
	if (oq && oq != q)
		left_alone(w, now, oq);
}

static void confirm(struct sweep *w, struct physp *p)
{
	struct work *k = work_of(p->node);

	k->slots[p->num].flags =
		(uint8_t)((k->slots[p->num].flags | SLOT_SETTLED) & ~SLOT_TWIN);
	k->slots[p->num].silent = 0;
	ask_no_across(w, k, p->num);
}

/* Other hardware answers with the GUID: nothing that was asked of the old one counts.
 */
static void remade(struct sweep *w, struct work *k)
{
	ask_nothing(w, k);
	k->flags &= (uint8_t) ~(WORK_FULL | WORK_REACHED | WORK_PLAIN);
	for (unsigned i = 0; i <= k->n_ports; i++)
		k->slots[i].flags &= (uint8_t)~SLOT_SETTLED;
	w->links_changed = true;
	w->now.changed++;
}

static void join(struct sweep *w, struct mono now, struct work *a, unsigned i,
		 const struct node_info *ni)
{
	const struct physp *way = node_physp(a->node, i);
	const struct ib_node *known = subnet_node_by_guid(w->s, ni->node_guid);
	bool another = known && is_another(known, ni), is_new, named;
	uint8_t hops = way->hops, path[IB_PATH_LEN];
	struct physp *p, *q;
	struct ib_node *n;
	struct work *k;

	memcpy(path, way->path, sizeof(path));
	path[++hops] = (uint8_t)i;
	n = subnet_node(w->s, ni, hops, path, &is_new);
	k = work_make(w, n);
	if (another)
		remade(w, k);
	p = node_physp(a->node, i);
	q = node_physp(n, ni->local_port);
	if (!p || !q)
		return;
	w->now.changed += is_new;
	if (!physp_link_exists(p, q))
		make_link(w, now, p, q);
	named = a->slots[i].flags & SLOT_SETTLED; /* from the other end */
	confirm(w, p);
	confirm(w, q);
	if (!subnet_port(w->s, node_is_switch(n) ? node_physp(n, 0) : q))
		name_port_guid(w, now, k, q);
	if (n == a->node && !named)
		name_loop(w, now, a, p, q);
	learn_seen(w, now, k, ni->local_port, hops, path);
}

/* ---- one node in two places ---- */

/* A full sweep trusts only the links that it has seen itself. */
static bool speaks(const struct sweep *w, const struct physp *q)
{
	return q && q->remote &&
	       (w->now.kind == SWEEP_LATER ||
		work_of(q->node)->slots[q->num].flags & SLOT_SETTLED);
}

/* The link that speaks against it: of that port of the node, or of any if the answer
 * comes from other hardware. Returns the node's end. */
static struct physp *known_link(const struct sweep *w, const struct ib_node *n,
				const struct node_info *ni, const struct physp *p)
{
	struct physp *q = node_physp(n, ni->local_port);
	bool another = is_another(n, ni);

	for (unsigned i = 1; another && !speaks(w, q) && i <= n->info.num_ports; i++)
		q = node_physp(n, i);
	return speaks(w, q) && q->remote != p ? q : NULL;
}

static void conflict_add(struct sweep *w, const struct conflict *c)
{
	if (w->n_conflicts == w->conflicts_size) {
		w->conflicts_size = MAX(8, 2 * w->conflicts_size);
		w->conflicts = xrealloc(w->conflicts, w->conflicts_size,
					sizeof(*w->conflicts));
	}
	w->conflicts[w->n_conflicts++] = *c;
	w->n_marks += !c->moved;
}

/* A full sweep comes to a port whose link of old it has not come to: the cable was
 * moved, if it finds nothing else until its end. */
static void perhaps_moved(struct sweep *w, struct mono now, struct work *a, unsigned i,
			  const struct node_info *ni)
{
	const struct ib_node *n = subnet_node_by_guid(w->s, ni->node_guid);
	struct physp *q =
		n && !is_another(n, ni) ? node_physp(n, ni->local_port) : NULL;
	struct physp *was = q ? q->remote : NULL;

	if (!was || (was->node == a->node && was->num == i))
		return;
	conflict_add(w, &(struct conflict){.a = a,
					   .i = (uint8_t)i,
					   .old = work_of(was->node),
					   .old_port = was->num,
					   .ni = *ni,
					   .moved = true});
	link_lost(w, q);
	/* It may have been passed over, for what seemed to be there and is protected. */
	left_alone(w, now, was);
}

static void conflict_open(struct sweep *w, struct work *a, unsigned i,
			  const struct physp *q, const struct node_info *ni)
{
	const struct physp *ask = q->remote, *expect = q;

	if (!ask_can_cross(w, work_of(ask->node),
			   ask->num)) { /* a CA: from the node's */
		ask = q;
		expect = q->remote;
	}
	conflict_add(w, &(struct conflict){.a = a,
					   .i = (uint8_t)i,
					   .old = work_of(ask->node),
					   .old_port = ask->num,
					   .ni = *ni,
					   .expect_guid = expect->node->info.node_guid,
					   .expect_port = expect->num});
}

static void name_twin(struct sweep *w, struct mono now, const struct conflict *c)
{
	struct ib_node *n = subnet_node_by_guid(w->s, c->ni.node_guid);
	const struct physp *q = n ? known_link(w, n, &c->ni, NULL) : NULL;
	struct physp *p = node_physp(c->a->node, c->i);
	struct slot *t = &c->a->slots[c->i];
	struct sweep_error *e;
	char where[100];

	if ((t->flags & SLOT_TWIN) && (t->flags & SLOT_SETTLED))
		return; /* named in this sweep: it was asked twice */
	/* Routes may be what is wrong; a full sweep believes none of them. */
	w->need_full |= w->now.kind == SWEEP_LATER && !(t->flags & SLOT_TWIN);
	e = error_across(w, now, PROBLEM_DUPLICATE_GUID, c->a, c->i);
	e->node_guid = c->ni.node_guid;
	e->port = c->ni.local_port;
	if (n)
		n->flags |= NODE_DUPLICATE;
	if (q)
		str_append(e->why, sizeof(e->why), "the same GUID as at %s",
			   error_place(q->remote->node, q->remote->num, where,
				       sizeof(where)));
	if (p)
		link_lost(w, p);
	t->flags |= SLOT_TWIN | SLOT_SETTLED;
}

void link_name_moved(struct sweep *w, struct mono now)
{
	for (uint32_t i = 0; i < w->n_conflicts; i++) {
		const struct conflict *c = &w->conflicts[i];
		const struct ib_node *n = subnet_node_by_guid(w->s, c->ni.node_guid);
		const struct physp *q = n ? node_physp(n, c->ni.local_port) : NULL;
		const struct physp *was = node_physp(c->old->node, c->old_port);

		if (c->moved && q && was && !(n->flags & NODE_DUPLICATE) && q->remote &&
		    q->remote == node_physp(c->a->node, c->i))
			name_moved(w, now, q, was);
	}
}

static void moved(struct sweep *w, struct mono now, const struct conflict *c,
		  const struct node_info *ni)
{
	struct flight across_old = {.work = c->old, .port = c->old_port};
	struct ib_node *n = subnet_node_by_guid(w->s, c->ni.node_guid);
	struct physp *p = node_physp(c->a->node, c->i);
	struct physp *q = n && p ? known_link(w, n, &c->ni, p) : NULL;

	if (q) {
		struct physp *was = q->remote;

		if (w->now.kind == SWEEP_FULL) /* else the new link tells */
			name_moved(w, now, q, was);
		link_lost(w, q);
		left_alone(w, now, was);
	}
	if (p)
		join(w, now, c->a, c->i, &c->ni);
	if (ni)
		link_across(w, now, &across_old, ni);
}

/* Still: the link may have been found right meanwhile. */
static bool contradicts(const struct sweep *w, const struct conflict *c)
{
	const struct ib_node *n = subnet_node_by_guid(w->s, c->ni.node_guid);

	return n && known_link(w, n, &c->ni, node_physp(c->a->node, c->i));
}

void link_conflict_answer(struct sweep *w, struct mono now, const struct flight *f,
			  const struct node_info *ni)
{
	struct conflict c = w->conflicts[f->conflict - 1];

	if (!node_physp(c.a->node, c.i))
		return; /* that node has become another */
	if (!c.old_lives) {
		if (!ni || ni->node_guid != c.expect_guid ||
		    ni->local_port != c.expect_port) {
			moved(w, now, &c, ni);
			return;
		}
		c.old_lives = true;
		conflict_add(w, &c);
	} else if (ni && ni->node_guid == c.ni.node_guid &&
		   ni->local_port == c.ni.local_port && contradicts(w, &c))
		name_twin(w, now, &c);
	else if (ni)
		link_across(w, now, f, ni);
	else
		error_request(w, now, f,
			      &(struct sweep_answer){.status = SWEEP_TIMEOUT});
}

/* ---- the answer ---- */

static void name_limit(struct sweep *w, struct mono now, struct work *a, unsigned i)
{
	struct sweep_error *e;

	a->slots[i].flags |= SLOT_SETTLED;
	if (w->limit_named)
		return;
	w->limit_named = true;
	e = error_across(w, now, PROBLEM_LIMIT, a, i);
	str_append(e->why, sizeof(e->why), ": more than %u nodes are not taken in",
		   w->opt.max_nodes);
}

void link_across(struct sweep *w, struct mono now, const struct flight *f,
		 const struct node_info *ni)
{
	struct work *a = f->work;
	struct physp *p = node_physp(a->node, f->port), *q;
	struct ib_node *n = subnet_node_by_guid(w->s, ni->node_guid);

	if (!p)
		return;
	if (!n && w->n_nodes >= w->opt.max_nodes) {
		name_limit(w, now, a, f->port);
		return;
	}
	q = n ? known_link(w, n, ni, p) : NULL;
	if (q)
		conflict_open(w, a, f->port, q, ni);
	else if (n && is_another(n, ni) && (n == a->node || work_of(n) == w->root))
		name_twin(w, now, &(struct conflict){.a = a, .i = f->port, .ni = *ni});
	else {
		perhaps_moved(w, now, a, f->port, ni);
		join(w, now, a, f->port, ni);
	}
}
