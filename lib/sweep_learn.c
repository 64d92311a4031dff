/* SPDX-License-Identifier: BSD-2-Clause */
/* What answers mean: nodes that are seen, ports, tables. */
#include "sweep_int.h"

#include <errno.h>

/* ---- nodes ---- */

static bool is_in_full(const struct sweep *w, const struct work *k)
{
	return w->now.kind == SWEEP_FULL || k->flags & WORK_FULL;
}

static void routed(struct sweep *w, struct mono now, struct work *k, unsigned port,
		   uint8_t hops, const uint8_t *path)
{
	struct physp *p = node_physp(k->node, port);
	bool same = p->hops == hops && !memcmp(p->path, path, (size_t)hops + 1);

	k->flags |= WORK_REACHED;
	if (k == w->root && port == w->port && hops)
		return; /* round a loop to this host: the route that it has is shorter
			 */
	if (!same)
		physp_set_path(p, hops, path);
	if (k != w->root)
		ask_level(w, k, hops);
	/* What was read in this sweep came over a route that is lost. */
	if (!same && w->now.kind == SWEEP_LATER && node_is_switch(k->node))
		later_anew(w, now, k);
}

void learn_seen(struct sweep *w, struct mono now, struct work *k, unsigned port,
		uint8_t hops, const uint8_t *path)
{
	struct ib_node *n = k->node;
	/* A port of it that is left alone stands for seen, and has told nothing. */
	bool unseen = w->now.kind == SWEEP_FULL ? !n->discovery_count
						: n->seen_sweep != w->now.number;
	bool first = unseen || k->flags & WORK_GONE || !(k->flags & WORK_REACHED);
	/* What was to be asked while it was silent was not. */
	bool back = w->now.kind == SWEEP_LATER &&
		    (n->flags & NODE_PROTECTED || k->flags & WORK_GONE);

	n->seen_sweep = w->now.number;
	n->discovery_count++;
	n->flags &= (uint8_t) ~(NODE_SUSPECT | NODE_PROTECTED);
	k->flags &= (uint8_t)~WORK_GONE;
	if (back)
		later_anew(w, now, k);
	if (!node_is_switch(n)) {
		routed(w, now, k, port, hops, path);
		if (is_in_full(w, k))
			ask_read(w, k, port);
		if (is_in_full(w, k) && first)
			ask_node(w, k, WORK_DESC);
	} else if (first && is_in_full(w, k)) {
		routed(w, now, k, port, hops, path);
		ask_node(w, k, WORK_SWITCH_INFO);
		for (unsigned i = 0; i <= k->n_ports; i++)
			ask_read(w, k, i);
		ask_node(w, k, WORK_DESC);
	} else if (!(k->flags & WORK_REACHED))
		routed(w, now, k, port, hops, path);
	ask_settle(w, k);
}

void learn_protected(struct sweep *w, struct mono now, struct work *k, unsigned port)
{
	unsigned key = node_is_switch(k->node) ? 0 : port;
	struct sweep_error *e;

	if (k->node->seen_sweep == w->now.number && k->error)
		return;
	k->node->seen_sweep = w->now.number;
	if (!k->error) {
		e = error_add(w, now, PROBLEM_PROTECTED, k, key);
		k->error = w->n_errors;
		str_append(e->why, sizeof(e->why),
			   "M_Key protection %u; asked each %u sweeps",
			   node_physp(k->node, key)->info.m_key_protect,
			   w->opt.rolling);
	}
	if (w->now.kind != SWEEP_FULL)
		return;
	for (unsigned i = 1; i <= k->n_ports; i++) {
		const struct physp *p = node_physp(k->node, i);

		if (p && port_is_up(p))
			ask_across(w, now, k, i);
	}
}

static void learn_start(struct sweep *w, struct mono now, const struct node_info *ni)
{
	static const uint8_t path[IB_PATH_LEN];
	bool is_new, is_switch = ni->node_type == NODE_SWITCH;
	struct ib_node *n;
	struct work *k;

	if (is_switch ? w->port : ni->local_port != w->port) {
		struct sweep_error *e = error_add(w, now, PROBLEM_BAD_ANSWER, NULL, 0);

		e->attr = SWEEP_NODE_INFO;
		str_append(e->why, sizeof(e->why), "port %u says that it is port %u",
			   w->port, ni->local_port);
		return;
	}
	n = subnet_node(w->s, ni, 0, path, &is_new);
	k = work_make(w, n);
	w->now.changed += is_new;
	w->seen_root = true;
	w->links_changed |= w->root != k;
	w->root = k;
	(void)subnet_port(w->s, node_physp(n, w->port));
	if (is_new && w->now.kind == SWEEP_LATER) /* another device in its place */
		later_in_full(w, now, k);
	learn_seen(w, now, k, w->port, 0, path);
}

static void learn_switch(struct sweep *w, struct mono now, struct work *k,
			 const struct switch_info *sw)
{
	struct ib_node *n = k->node;
	/* Who never sees an edge (nobody clears it) learns nothing from it. */
	bool hint = sw->port_state_change && n->sw_known && !n->sw.port_state_change;

	n->sw = *sw;
	n->sw_known = true;
	if (hint && w->now.kind == SWEEP_LATER)
		later_in_full(w, now, k);
}

/* ---- ports ---- */

static bool link_differs(const struct port_info *a, const struct port_info *b)
{
	return a->state != b->state || a->phys_state != b->phys_state ||
	       a->width_active != b->width_active ||
	       a->speed_active != b->speed_active || a->ext_active != b->ext_active ||
	       a->ext_active2 != b->ext_active2;
}

static bool self_differs(const struct port_info *a, const struct port_info *b)
{
	return a->lid != b->lid || a->lmc != b->lmc || a->gid_prefix != b->gid_prefix ||
	       a->sm_lid != b->sm_lid || a->cap_mask != b->cap_mask ||
	       a->mtu_cap != b->mtu_cap || a->neighbor_mtu != b->neighbor_mtu ||
	       a->vl_cap != b->vl_cap || a->op_vls != b->op_vls ||
	       a->width_enabled != b->width_enabled ||
	       a->speed_enabled != b->speed_enabled || a->ext_enabled != b->ext_enabled;
}

static void learn_lids(struct sweep *w, struct mono now, struct work *k,
		       struct physp *p)
{
	struct ib_port *port = subnet_port(w->s, p), *other;
	char where[100];
	struct sweep_error *e;

	if (!port || subnet_lids_changed(w->s, port) != -EEXIST)
		return;
	other = subnet_port_by_lid(w->s, ib_port_base_lid(port));
	e = error_add(w, now, PROBLEM_DUPLICATE_LID, k, p->num);
	e->attr = SWEEP_PORT_INFO;
	str_append(e->why, sizeof(e->why), "LID %u is also that of %s",
		   ib_port_base_lid(port),
		   other ? error_place(other->physp->node, other->physp->num, where,
				       sizeof(where))
			 : "another");
	/* One may have come over a route that led to the other: if it falls silent,
	 * that is not its intention. */
	p->info.m_key_protect = 0;
	if (other)
		other->physp->info.m_key_protect = 0;
}

/* What was known of the port and is so no more: look around. */
static void port_differs(struct sweep *w, struct mono now, struct work *k,
			 struct physp *p, const struct port_info *before)
{
	bool link = link_differs(before, &p->info);

	if (link) {
		k->slots[p->num].silent = 0;
		k->slots[p->num].flags &= (uint8_t)~SLOT_TWIN;
	}
	if (w->now.kind != SWEEP_LATER || (!link && !self_differs(before, &p->info)))
		return;
	later_in_full(w, now, k);
	if (link && p->remote)
		later_in_full(w, now, work_of(p->remote->node));
}

/* Speeds that it tells only to those who know them are no change of the link. */
static void hide_speeds(struct port_info *before, const struct port_info *now)
{
	before->speed_active = now->speed_active;
	before->speed_enabled = now->speed_enabled;
	before->ext_active = now->ext_active;
	before->ext_enabled = now->ext_enabled;
	before->ext_active2 = now->ext_active2;
}

static void learn_port(struct sweep *w, struct mono now, const struct flight *f,
		       const struct port_info *pi)
{
	bool known, extended = f->mod & IB_PORT_INFO_EXTENDED;
	struct work *k = f->work;
	unsigned num = f->port;
	struct physp *p = node_physp(k->node, num);
	struct port_info before;

	if (!p)
		return;
	before = p->info;
	known = p->seen_sweep != 0;
	physp_set_info(p, pi);
	if (k->slots[num].extended != extended)
		hide_speeds(&before, &p->info);
	k->slots[num].extended = extended;
	p->seen_sweep = w->now.number;
	p->read_at = k->node->read_at = now;
	w->now.changed += known && before.state != p->info.state;
	if (!num || !node_is_switch(k->node))
		learn_lids(w, now, k, p);
	if (known)
		port_differs(w, now, k, p, &before);
	if (w->opt.tables && is_in_full(w, k))
		ask_tables(w, k, num);
	if (!num)
		return;
	if (!port_is_up(p)) {
		ask_no_across(w, k, num);
		link_lost(w, p);
	} else if (is_in_full(w, k))
		ask_across(w, now, k, num);
	else
		later_link(w, now, k, p);
}

/* ---- any ---- */

static void learn_table(struct work *k, const struct flight *f,
			const union sweep_data *d)
{
	struct physp *p = node_physp(k->node, f->port);

	if (!p)
		return;
	if (f->attr == SWEEP_PKEYS)
		(void)physp_set_pkeys(p, f->mod & 0xffff, &d->pkeys);
	else if (f->attr == SWEEP_SLVL)
		(void)physp_set_slvl(p, f->mod >> 8, &d->slvl);
	else
		(void)physp_set_vlarb(p, f->mod >> 16, &d->vlarb);
}

static void learn_node(struct sweep *w, struct mono now, const struct flight *f,
		       const struct node_info *ni)
{
	if (f->kind == ASK_START)
		learn_start(w, now, ni);
	else if (f->kind == ASK_AGAIN)
		link_conflict_answer(w, now, f, ni);
	else
		link_across(w, now, f, ni);
}

void learn(struct sweep *w, struct mono now, const struct flight *f,
	   const union sweep_data *d)
{
	struct work *k = f->work;

	switch ((enum sweep_attr)f->attr) {
	case SWEEP_NODE_INFO:
		learn_node(w, now, f, &d->node);
		break;
	case SWEEP_NODE_DESC:
		memcpy(k->node->desc, d->desc, sizeof(k->node->desc));
		k->node->desc_known = true;
		break;
	case SWEEP_SWITCH_INFO:
		learn_switch(w, now, k, &d->sw);
		break;
	case SWEEP_PORT_INFO:
		learn_port(w, now, f, &d->port);
		break;
	case SWEEP_PKEYS:
	case SWEEP_SLVL:
	case SWEEP_VLARB:
		learn_table(k, f, d);
		break;
	}
}
