/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Records become nodes, names become links that both ends tell of. The file says
 * nothing of states: a port with a link counts as active, one without as down.
 */
#include "ibnet_internal.h"

#include <errno.h>
#include <stdlib.h>

/* ---- links ---- */

static int compare_ids(const void *a, const void *b)
{
	const struct ibnet_node *const *x = a, *const *y = b;

	return strcmp((*x)->id, (*y)->id);
}

static const struct ibnet_node *find_id(const struct ibnet_reader *r, const char *id)
{
	struct ibnet_node key;
	const struct ibnet_node *k = &key;
	const struct ibnet_node **found;

	(void)str_copy(key.id, sizeof(key.id), id);
	found = bsearch(&k, r->by_id, r->n_nodes, sizeof(*r->by_id), compare_ids);
	return found ? *found : NULL;
}

static int index_ids(struct ibnet_reader *r)
{
	r->by_id = xcalloc(r->n_nodes, sizeof(*r->by_id));
	for (size_t i = 0; i < r->n_nodes; i++)
		r->by_id[i] = &r->nodes[i];
	qsort(r->by_id, r->n_nodes, sizeof(*r->by_id), compare_ids);
	for (size_t i = 1; i < r->n_nodes; i++) {
		const struct ibnet_node *a = r->by_id[i - 1], *b = r->by_id[i];

		if (str_eq(a->id, b->id))
			return ibnet_bad(r, MAX(a->line, b->line), "a second node %s",
					 a->id);
	}
	return 0;
}

struct ibnet_port *ibnet_find_port(const struct ibnet_reader *r,
				   const struct ibnet_node *n, uint8_t num)
{
	for (size_t i = 0; i < n->n; i++)
		if (r->ports[n->first + i].num == num)
			return &r->ports[n->first + i];
	return NULL;
}

/* The other end of @p, which must say the same. NULL: told. */
static struct ibnet_port *far_end(struct ibnet_reader *r, const struct ibnet_node *n,
				  const struct ibnet_port *p)
{
	const struct ibnet_node *other = find_id(r, p->remote);
	struct ibnet_port *end;

	if (!other) {
		(void)ibnet_bad(r, p->line, "no node %s", p->remote);
		return NULL;
	}
	end = ibnet_find_port(r, other, p->remote_num);
	if (end && str_eq(end->remote, n->id) && end->remote_num == p->num)
		return end;
	(void)ibnet_bad(r, p->line,
			"%s port %d does not say that it is linked to %s port %d",
			p->remote, p->remote_num, n->id, p->num);
	return NULL;
}

/* ---- the subnet ---- */

static struct port_info info_of(const struct ibnet_port *p)
{
	return (struct port_info){
		.lid = p->lid,
		.lmc = p->lmc,
		.state = IB_ACTIVE,
		.phys_state = IB_PHYS_LINK_UP,
		.local_port = p->num,
		.width_active = p->width,
		.speed_active = p->speed,
		.ext_active = p->ext,
		.ext_active2 = p->ext2,
		.cap_mask = p->ext || p->ext2 ? IB_CAP_EXTENDED_SPEEDS : 0,
	};
}

static void register_port(struct subnet *s, struct physp *p)
{
	struct ib_port *port = subnet_port(s, p);

	if (port)
		(void)subnet_lids_changed(s, port);
}

static void set_down(struct physp *p)
{
	const struct port_info down = {.state = IB_DOWN, .phys_state = IB_PHYS_POLLING};

	physp_set_info(p, &down);
}

static int make_switch(struct ibnet_reader *r, struct subnet *s,
		       const struct ibnet_node *rec)
{
	struct port_info p0 = {.state = IB_ACTIVE, .phys_state = IB_PHYS_LINK_UP};
	bool is_new;
	struct ib_node *n = subnet_node(s, &rec->info, 0, NULL, &is_new);

	if (!is_new)
		return ibnet_bad(r, rec->line, "a second node with this GUID");
	(void)str_copy(n->desc, sizeof(n->desc), rec->desc);
	n->desc_known = true;
	n->sw_known = rec->port0_known;
	n->sw.enhanced_port0 = rec->enhanced;
	p0.lid = rec->lid;
	p0.lmc = rec->lmc;
	for (unsigned i = 1; i <= rec->info.num_ports; i++) {
		struct physp *p = node_physp(n, i);
		struct ibnet_port *rp = ibnet_find_port(r, rec, (uint8_t)i);
		struct port_info pi;

		if (!rp) {
			set_down(p);
			continue;
		}
		pi = info_of(rp);
		pi.lid = pi.lmc = 0;
		p0.cap_mask |= pi.cap_mask;
		pi.cap_mask = 0;
		physp_set_info(p, &pi);
		rp->physp = p;
	}
	physp_set_info(node_physp(n, 0), &p0);
	register_port(s, node_physp(n, 0));
	return 0;
}

static int make_ca_port(struct ibnet_reader *r, struct subnet *s,
			const struct ibnet_node *rec, struct ibnet_port *rp, bool first)
{
	struct node_info ni = rec->info;
	bool is_new;
	struct ib_node *n;
	struct port_info pi;

	ni.local_port = rp ? rp->num : 1;
	ni.port_guid = rp && rp->guid ? rp->guid : ni.node_guid + ni.local_port;
	n = subnet_node(s, &ni, 0, NULL, &is_new);
	if (is_new != first)
		return ibnet_bad(r, rec->line, "a second node with this GUID");
	(void)str_copy(n->desc, sizeof(n->desc), rec->desc);
	n->desc_known = true;
	if (!rp) {
		set_down(node_physp(n, 1));
		return 0;
	}
	rp->physp = node_physp(n, rp->num);
	pi = info_of(rp);
	physp_set_info(rp->physp, &pi);
	register_port(s, rp->physp);
	return 0;
}

/* The port that the file was made from goes first: it is the node's own. */
static int make_ca(struct ibnet_reader *r, struct subnet *s,
		   const struct ibnet_node *rec)
{
	struct ibnet_port *ports;
	struct ib_node *n;
	size_t from = 0;

	if (!rec->n)
		return make_ca_port(r, s, rec, NULL, true);
	ports = &r->ports[rec->first];
	for (size_t i = 0; i < rec->n; i++)
		if (rec->info.node_guid == r->from_guid &&
		    ports[i].guid == r->from_port_guid)
			from = i;
	for (size_t k = 0; k < rec->n; k++) {
		size_t i = k == 0 ? from : k <= from ? k - 1 : k;
		int e = make_ca_port(r, s, rec, &ports[i], k == 0);

		if (e)
			return e;
	}
	n = subnet_node_by_guid(s, rec->info.node_guid);
	n->info.port_guid = ports[from].physp->guid;
	n->info.local_port = ports[from].num;
	return 0;
}

static int make_node(struct ibnet_reader *r, struct subnet *s,
		     const struct ibnet_node *rec)
{
	return rec->info.node_type == NODE_SWITCH ? make_switch(r, s, rec)
						  : make_ca(r, s, rec);
}

static int make_subnet(struct ibnet_reader *r, struct subnet *s)
{
	const struct ibnet_node *from = NULL;
	int e = 0;

	for (size_t i = 0; i < r->n_nodes && !from; i++)
		if (r->from_guid && r->nodes[i].info.node_guid == r->from_guid)
			from = &r->nodes[i];
	if (from)
		e = make_node(r, s, from);
	for (size_t i = r->n_nodes; i-- > 0 && !e;)
		if (&r->nodes[i] != from)
			e = make_node(r, s, &r->nodes[i]);
	return e;
}

static int link_all(struct ibnet_reader *r)
{
	for (size_t i = 0; i < r->n_nodes; i++) {
		const struct ibnet_node *n = &r->nodes[i];

		for (size_t k = 0; k < n->n; k++) {
			struct ibnet_port *p = &r->ports[n->first + k];
			struct ibnet_port *end = far_end(r, n, p);

			if (!end)
				return -EINVAL;
			if (p->physp && end->physp)
				physp_link(p->physp, end->physp);
		}
	}
	return 0;
}

int ibnet_build(struct ibnet_reader *r, struct subnet *s)
{
	int e = index_ids(r);

	if (!e)
		e = make_subnet(r, s);
	return e ? e : link_all(r);
}
