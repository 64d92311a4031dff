/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which attribute to ask next. Across links first, as far as their level may, since
 * they lead on; then readers in turn, each up to its bound.
 */
#include "sweep_int.h"

/* ---- rings ---- */

#define RING_ADD(ring, k, next_, prev_)                                                \
	do {                                                                           \
		struct work *first_ = (ring)->first;                                   \
		(k)->next_ = first_ ? first_ : (k);                                    \
		(k)->prev_ = first_ ? first_->prev_ : (k);                             \
		(k)->prev_->next_ = (k)->next_->prev_ = (k);                           \
		if (!first_)                                                           \
			(ring)->first = (k);                                           \
	} while (0)
#define RING_REMOVE(ring, k, next_, prev_)                                             \
	do {                                                                           \
		(k)->next_->prev_ = (k)->prev_;                                        \
		(k)->prev_->next_ = (k)->next_;                                        \
		if ((ring)->first == (k))                                              \
			(ring)->first = (k)->next_ == (k) ? NULL : (k)->next_;         \
		(k)->next_ = (k)->prev_ = NULL;                                        \
	} while (0)

static bool may_ask(const struct work *k)
{
	return !k->suspect && !(k->flags & WORK_GONE);
}

/* How the ports of a switch are to be asked is in the CapabilityMask of port 0, which
 * is asked before them. */
static bool waits_for_main(const struct work *k)
{
	return node_is_switch(k->node) && k->slots[0].flags & SLOT_READ_OUT &&
	       !k->node->slots[0].info_full;
}

static bool wants_reading(const struct work *k)
{
	return (k->to_read && !waits_for_main(k)) || k->to_table ||
	       k->flags & (WORK_SWITCH_INFO | WORK_DESC);
}

/* Whether links of farther levels should wait: it may still ask across a link. Of what
 * is late nobody knows how long it takes. */
static bool is_waited_for(const struct sweep *w, const struct work *k)
{
	return may_ask(k) && !k->late && (node_is_switch(k->node) || k == w->root) &&
	       (k->read_open || k->to_cross || k->cross_out > k->cross_late);
}

void ask_settle(struct sweep *w, struct work *k)
{
	bool reads = wants_reading(k) && may_ask(k) && k->out < w->opt.per_target;
	bool crosses = k->to_cross && may_ask(k);
	bool busy = is_waited_for(w, k);

	if (reads && !k->read_next)
		RING_ADD(&w->readers, k, read_next, read_prev);
	else if (!reads && k->read_next)
		RING_REMOVE(&w->readers, k, read_next, read_prev);
	if (crosses && !k->cross_next)
		RING_ADD(&w->levels[k->level], k, cross_next, cross_prev);
	else if (!crosses && k->cross_next)
		RING_REMOVE(&w->levels[k->level], k, cross_next, cross_prev);
	if (busy != k->busy)
		w->busy[k->level] += busy ? 1 : UINT32_MAX;
	k->busy = busy;
}

void ask_level(struct sweep *w, struct work *k, uint8_t level)
{
	if (k->level == level)
		return;
	if (k->cross_next)
		RING_REMOVE(&w->levels[k->level], k, cross_next, cross_prev);
	if (k->busy)
		w->busy[k->level]--;
	k->busy = false;
	k->level = level;
	ask_settle(w, k);
}

/* ---- marks ---- */

bool port_is_up(const struct physp *p)
{
	return p->info.state > IB_DOWN || p->info.phys_state == IB_PHYS_LINK_UP;
}

bool ask_can_cross(const struct sweep *w, const struct work *k, unsigned port)
{
	const struct physp *p =
		port && port <= k->n_ports ? node_physp(k->node, port) : NULL;

	return p && p->hops < IB_HOPS_MAX &&
	       (node_is_switch(k->node) || (k == w->root && port == w->port));
}

void ask_read(struct sweep *w, struct work *k, unsigned port)
{
	struct slot *t = &k->slots[port];

	if (t->flags & (SLOT_READ | SLOT_READ_OUT) || k->flags & WORK_GONE ||
	    k->node->slots[port].seen_sweep == w->now.number)
		return;
	t->flags |= SLOT_READ;
	k->to_read++;
	k->read_open++;
	w->n_marks++;
}

/* Silent by intention. Of a CA one port may be so and another not: then the node is
 * not, but what is across that link. */
static bool is_left_alone(const struct slot *near, const struct physp *far)
{
	return is_protected(far->node, far->num) &&
	       (far->node->flags & NODE_PROTECTED ||
		(near->silent && !node_is_switch(far->node)));
}

void ask_across(struct sweep *w, struct mono now, struct work *k, unsigned port)
{
	const uint8_t on_its_way = SLOT_ACROSS | SLOT_ACROSS_OUT;
	struct slot *t = &k->slots[port];
	struct physp *r;

	if (!ask_can_cross(w, k, port) || k->flags & WORK_GONE ||
	    t->flags & (on_its_way | SLOT_SETTLED))
		return;
	r = k->node->slots[port].remote;
	if (r && is_left_alone(t, r) && !later_knock(w, work_of(r->node))) {
		learn_protected(w, now, work_of(r->node), r->num);
		return;
	}
	t->flags |= SLOT_ACROSS;
	k->to_cross++;
	w->n_marks++;
	ask_settle(w, k);
}

void ask_node(struct sweep *w, struct work *k, enum work_flag what)
{
	if (k->flags & (what | WORK_GONE))
		return;
	k->flags |= (uint8_t)what;
	w->n_marks++;
}

void ask_tables(struct sweep *w, struct work *k, unsigned port)
{
	struct slot *t = &k->slots[port];

	if (t->flags & SLOT_TABLES || k->flags & WORK_GONE)
		return;
	t->flags |= SLOT_TABLES;
	t->step = 0;
	k->to_table++;
	w->n_marks++;
}

void ask_no_across(struct sweep *w, struct work *k, unsigned port)
{
	struct slot *t = &k->slots[port];

	if (!(t->flags & SLOT_ACROSS))
		return;
	t->flags &= (uint8_t)~SLOT_ACROSS;
	k->to_cross--;
	w->n_marks--;
	ask_settle(w, k);
}

static void take_node(struct sweep *w, struct work *k, enum work_flag what)
{
	if (!(k->flags & what))
		return;
	k->flags &= (uint8_t)~what;
	w->n_marks--;
}

static void take_read(struct sweep *w, struct work *k, struct slot *t)
{
	t->flags &= (uint8_t)~SLOT_READ;
	k->to_read--;
	w->n_marks--;
}

static void take_tables(struct sweep *w, struct work *k, struct slot *t)
{
	t->flags &= (uint8_t)~SLOT_TABLES;
	k->to_table--;
	w->n_marks--;
}

void ask_nothing(struct sweep *w, struct work *k)
{
	take_node(w, k, WORK_SWITCH_INFO);
	take_node(w, k, WORK_DESC);
	for (unsigned i = 0; k->slots && i <= k->n_ports; i++) {
		struct slot *t = &k->slots[i];

		if (t->flags & SLOT_READ) {
			take_read(w, k, t);
			k->read_open--;
		}
		if (t->flags & SLOT_TABLES)
			take_tables(w, k, t);
		ask_no_across(w, k, i);
	}
	ask_settle(w, k);
}

/* ---- tables: which of them a port has, a step each ---- */

static unsigned n_blocks(const struct physp *p)
{
	return (physp_pkey_capacity(p) + IB_PKEYS_EACH - 1) / IB_PKEYS_EACH;
}

/* Input ports for which the port has a table of virtual lanes. A base switch port 0 has
 * VL15 alone. */
static unsigned n_slvls(const struct physp *p)
{
	const struct physp *main = node_main_port(p->node);

	if (!main || !(main->info.cap_mask & IB_CAP_SL_MAPPING))
		return 0;
	if (!node_is_switch(p->node))
		return 1;
	return p->num || p->node->sw.enhanced_port0 ? p->node->info.num_ports + 1u : 0;
}

static bool has_vlarb(const struct physp *p, unsigned block)
{
	unsigned cap = block <= 2 ? p->info.vl_arb_low_cap : p->info.vl_arb_high_cap;

	return cap > (block % 2 ? 0 : IB_VLARB_EACH);
}

/* False: that was the last. */
static bool table_at(const struct physp *p, unsigned step, uint16_t *ret_attr,
		     uint32_t *ret_mod)
{
	uint32_t port = node_is_switch(p->node) ? p->num : 0;

	if (step < n_blocks(p)) {
		*ret_attr = SWEEP_PKEYS;
		*ret_mod = port << 16 | step;
		return true;
	}
	step -= n_blocks(p);
	if (step < n_slvls(p)) {
		*ret_attr = SWEEP_SLVL;
		*ret_mod = node_is_switch(p->node) ? step << 8 | port : 0;
		return true;
	}
	step -= n_slvls(p);
	for (unsigned block = 1; block <= 4; block++) {
		if (!has_vlarb(p, block))
			continue;
		if (!step--) {
			*ret_attr = SWEEP_VLARB;
			*ret_mod = block << 16 | port;
			return true;
		}
	}
	return false;
}

/* It answers with an error: what is left of that table is not asked either. */
void ask_no_table(struct sweep *w, struct work *k, unsigned port, uint16_t attr)
{
	const struct physp *p = node_physp(k->node, port);
	struct slot *t = &k->slots[port];
	uint16_t next;
	uint32_t mod;

	if (!p || !(t->flags & SLOT_TABLES))
		return;
	while (table_at(p, t->step, &next, &mod) && next == attr)
		t->step++;
	if (!table_at(p, t->step, &next, &mod))
		take_tables(w, k, t);
}

/* ---- the next one ---- */

static unsigned next_marked(const struct work *k, uint16_t *cursor, enum slot_flag flag)
{
	while (!(k->slots[*cursor].flags & flag))
		*cursor = *cursor < k->n_ports ? *cursor + 1 : 0;
	return *cursor;
}

static bool table_next(struct sweep *w, struct work *k, struct flight *ret)
{
	while (k->to_table) {
		unsigned port = next_marked(k, &k->table_at, SLOT_TABLES);
		const struct physp *p = node_physp(k->node, port);
		struct slot *t = &k->slots[port];

		ret->port = (uint8_t)port;
		if (p && table_at(p, t->step, &ret->attr, &ret->mod)) {
			t->step++;
			return true;
		}
		take_tables(w, k, t);
	}
	return false;
}

static uint32_t port_modifier(const struct work *k, unsigned port)
{
	const struct physp *p = node_physp(k->node, node_is_switch(k->node) ? 0 : port);
	bool extended = p && p->info_full && !(k->flags & WORK_PLAIN) &&
			p->info.cap_mask & IB_CAP_EXTENDED_SPEEDS;

	return port | (extended ? IB_PORT_INFO_EXTENDED : 0);
}

static void read_port(struct sweep *w, struct work *k, struct flight *ret)
{
	if (k->slots[0].flags & SLOT_READ)
		k->read_at = 0;
	ret->port = (uint8_t)next_marked(k, &k->read_at, SLOT_READ);
	take_read(w, k, &k->slots[ret->port]);
	k->slots[ret->port].flags |= SLOT_READ_OUT;
	ret->attr = SWEEP_PORT_INFO;
	ret->mod = port_modifier(k, ret->port);
}

static bool read_next(struct sweep *w, struct work *k, struct flight *ret)
{
	ret->kind = ASK_NODE;
	ret->work = k;
	if (k->flags & WORK_SWITCH_INFO) {
		take_node(w, k, WORK_SWITCH_INFO);
		ret->attr = SWEEP_SWITCH_INFO;
	} else if (k->to_read && !waits_for_main(k)) {
		read_port(w, k, ret);
	} else if (k->flags & WORK_DESC) {
		take_node(w, k, WORK_DESC);
		ret->attr = SWEEP_NODE_DESC;
	} else
		return table_next(w, k, ret);
	return true;
}

static void cross_next(struct sweep *w, struct work *k, struct flight *ret)
{
	struct slot *t = &k->slots[next_marked(k, &k->cross_at, SLOT_ACROSS)];

	ret->kind = ASK_ACROSS;
	ret->work = k;
	ret->attr = SWEEP_NODE_INFO;
	ret->port = (uint8_t)(t - k->slots);
	/* Silent for long, and nothing else: one try tells whether that is over. */
	ret->once = t->silent > 0 && w->now.kind == SWEEP_LATER;
	t->flags = (uint8_t)((t->flags & ~SLOT_ACROSS) | SLOT_ACROSS_OUT);
	k->to_cross--;
	w->n_marks--;
}

/* The nearest level with links to ask across, unless a nearer one is not through. */
static struct work *cross_first(const struct sweep *w)
{
	for (unsigned l = 0; l < IB_PATH_LEN; l++) {
		if (w->levels[l].first)
			return w->levels[l].first;
		if (w->busy[l] && w->n_flights)
			return NULL;
	}
	return NULL;
}

bool ask_next(struct sweep *w, struct flight *ret)
{
	struct work *k;

	if (w->start_wanted) {
		w->start_wanted = false;
		w->n_marks--;
		ret->kind = ASK_START;
		ret->attr = SWEEP_NODE_INFO;
		return true;
	}
	while (w->conflict_at < w->n_conflicts && w->conflicts[w->conflict_at].moved)
		w->conflict_at++;
	if (w->conflict_at < w->n_conflicts) {
		const struct conflict *c = &w->conflicts[w->conflict_at++];

		w->n_marks--;
		ret->kind = ASK_AGAIN;
		ret->attr = SWEEP_NODE_INFO;
		ret->conflict = w->conflict_at;
		ret->work = c->old_lives ? c->a : c->old;
		ret->port = c->old_lives ? c->i : c->old_port;
		return true;
	}
	k = cross_first(w);
	if (k) {
		cross_next(w, k, ret);
		return true;
	}
	while ((k = w->readers.first)) {
		w->readers.first = k->read_next;
		if (read_next(w, k, ret))
			return true;
		ask_settle(w, k);
	}
	return false;
}

void ask_done(const struct flight *f)
{
	struct work *k = f->work;
	struct slot *t = k && f->port <= k->n_ports ? &k->slots[f->port] : NULL;

	if (!t)
		return;
	if (f->kind == ASK_ACROSS)
		t->flags &= (uint8_t)~SLOT_ACROSS_OUT;
	if (f->kind == ASK_NODE && f->attr == SWEEP_PORT_INFO &&
	    t->flags & SLOT_READ_OUT) {
		t->flags &= (uint8_t)~SLOT_READ_OUT;
		k->read_open--;
	}
}

void ask_same(struct sweep *w, const struct flight *f)
{
	struct work *k = f->work;

	if (f->port > k->n_ports)
		return;
	switch ((enum sweep_attr)f->attr) {
	case SWEEP_SWITCH_INFO:
		ask_node(w, k, WORK_SWITCH_INFO);
		break;
	case SWEEP_NODE_DESC:
		ask_node(w, k, WORK_DESC);
		break;
	case SWEEP_PORT_INFO:
		ask_read(w, k, f->port);
		break;
	case SWEEP_PKEYS:
	case SWEEP_SLVL:
	case SWEEP_VLARB:
		ask_tables(w, k, f->port);
		k->slots[f->port].step = 0;
		break;
	case SWEEP_NODE_INFO:
		break;
	}
}

bool ask_plainly(struct sweep *w, const struct flight *f, const struct sweep_answer *a)
{
	if (f->attr != SWEEP_PORT_INFO || !(f->mod & IB_PORT_INFO_EXTENDED) ||
	    (a->status != SWEEP_BAD_STATUS && a->status != SWEEP_BAD_ANSWER))
		return false;
	f->work->flags |= WORK_PLAIN;
	ask_same(w, f);
	return true;
}

/* ---- routes ---- */

/* A full sweep trusts only the links that it has seen itself. */
static bool leads_there(const struct sweep *w, const struct work *k,
			const struct physp *p)
{
	return p && p->remote &&
	       (w->now.kind == SWEEP_LATER || k->slots[p->num].flags & SLOT_SETTLED);
}

/* The slot whose route leads to a node's answer about @port: of a CA its own, or else
 * any that is linked. */
static const struct physp *way_to(const struct sweep *w, const struct work *k,
				  unsigned port)
{
	const struct physp *p;

	if (node_is_switch(k->node))
		return node_physp(k->node, 0);
	if (k == w->root)
		return node_physp(k->node, w->port);
	p = node_physp(k->node, port);
	for (unsigned i = 1; i <= k->n_ports && !leads_there(w, k, p); i++)
		p = node_physp(k->node, i);
	return leads_there(w, k, p) ? p : NULL;
}

bool ask_route(const struct sweep *w, const struct flight *f, uint8_t *ret_hops,
	       uint8_t *path)
{
	const struct work *k = f->work;
	const struct physp *p;

	path[0] = 0;
	*ret_hops = 0;
	if (f->kind == ASK_START)
		return true;
	p = k->flags & WORK_REACHED ? way_to(w, k, f->port) : NULL;
	if (!p)
		return false;
	memcpy(path, p->path, (size_t)p->hops + 1);
	*ret_hops = p->hops;
	if (f->kind == ASK_NODE)
		return true;
	if (p->hops >= IB_HOPS_MAX)
		return false;
	path[++*ret_hops] = f->port;
	return true;
}
