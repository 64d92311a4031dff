/* SPDX-License-Identifier: BSD-2-Clause */
/* What the model says of itself, and whether a subnet says the same. */
#include "sim_fabric.h"

#include <stdio.h>
#include <stdlib.h>

static bool is_up(const struct sim_node *m, unsigned i)
{
	const struct sim_port *p = &m->ports[i];

	return i && p->to && !p->disabled && !p->to->ports[p->to_port].disabled;
}

/* Whether a directed route may leave the node by that port. */
static bool leads_on(const struct sim *s, const struct sim_node *m, unsigned i)
{
	return !m->dead && is_up(m, i) &&
	       (m->type == NODE_SWITCH || (m == s->root && i == s->root_port));
}

uint32_t sim_reached(const struct sim *s, uint8_t *ret)
{
	struct sim_node **queue = xcalloc(s->n, sizeof(*queue));
	uint32_t n = 0;

	memset(ret, 0, s->n);
	queue[n++] = s->root;
	ret[s->root->index] = 1;
	for (uint32_t at = 0; at < n; at++) {
		for (unsigned i = 1; i <= queue[at]->n_ports; i++) {
			struct sim_node *to = queue[at]->ports[i].to;

			if (!leads_on(s, queue[at], i) || to->dead || ret[to->index])
				continue;
			ret[to->index] = 1;
			queue[n++] = to;
		}
	}
	free(queue);
	return n;
}

uint32_t sim_n_ports(const struct sim *s)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < s->n; i++)
		n += s->nodes[i]->n_ports;
	return n;
}

uint32_t sim_switch_links(const struct sim *s)
{
	uint32_t n = 0;

	for (uint32_t k = 0; k < s->n; k++)
		for (unsigned i = 1; i <= s->nodes[k]->n_ports; i++)
			n += s->nodes[k]->type == NODE_SWITCH &&
			     is_up(s->nodes[k], i) &&
			     s->nodes[k]->ports[i].to->type == NODE_SWITCH;
	return n / 2;
}

uint32_t sim_dead_ends(const struct sim *s)
{
	uint8_t *reached = xcalloc(s->n, 1);
	uint32_t n = 0;

	(void)sim_reached(s, reached);
	for (uint32_t k = 0; k < s->n; k++)
		for (unsigned i = 1; reached[k] && i <= s->nodes[k]->n_ports; i++)
			n += leads_on(s, s->nodes[k], i) &&
			     s->nodes[k]->ports[i].to->dead;
	free(reached);
	return n;
}

/* A port of a CA is seen only through a switch, or if it is the own one. */
static bool is_seen(const struct sim *s, const uint8_t *reached,
		    const struct sim_node *m, unsigned i)
{
	if (m->type == NODE_SWITCH)
		return true;
	if (m == s->root && i == s->root_port)
		return true;
	return is_up(m, i) && reached[m->ports[i].to->index] &&
	       leads_on(s, m->ports[i].to, m->ports[i].to_port);
}

/* As libibnetdisc of rdma-core does it: of each node NodeDescription; of a switch
 * SwitchInfo, PortInfo of each port, and NodeInfo across each port that is up but the
 * one it was found by; of a CA PortInfo of each port that was found. */
uint64_t sim_ibnetdiscover_mads(const struct sim *s)
{
	uint8_t *reached = xcalloc(s->n, 1);
	uint64_t n = 1; /* the own NodeInfo */

	(void)sim_reached(s, reached);
	for (uint32_t k = 0; k < s->n; k++) {
		const struct sim_node *m = s->nodes[k];

		if (!reached[k])
			continue;
		n++;
		if (m->type == NODE_SWITCH)
			n += m->n_ports + 2u - (m != s->root);
		for (unsigned i = 1; i <= m->n_ports; i++) {
			if (m->type != NODE_SWITCH)
				n += is_seen(s, reached, m, i);
			n += leads_on(s, m, i);
		}
	}
	free(reached);
	return n;
}

/* ---- compared ---- */

#define DIFFERS(...)                                                                   \
	do {                                                                           \
		(void)snprintf(why, size, __VA_ARGS__);                                \
		return false;                                                          \
	} while (0)

static bool same_route(const struct sim *s, const struct sim_node *m, unsigned port,
		       const struct physp *p)
{
	const struct sim_node *at = s->root;
	unsigned in = s->root_port;

	for (unsigned h = 1; h <= p->hops; h++) {
		if (!leads_on(s, at, p->path[h]))
			return false;
		in = at->ports[p->path[h]].to_port;
		at = at->ports[p->path[h]].to;
	}
	return at == m && (m->type == NODE_SWITCH || in == port);
}

static bool same_link(const struct sim *s, const uint8_t *reached,
		      const struct sim_node *m, unsigned i, const struct physp *p)
{
	const struct sim_port *c = &m->ports[i];
	bool linked = is_up(m, i) && !c->to->dead && reached[c->to->index] &&
		      (leads_on(s, m, i) || leads_on(s, c->to, c->to_port));

	if (!linked)
		return !p->remote;
	return p->remote && p->remote->node->info.node_guid == c->to->guid &&
	       p->remote->num == c->to_port && physp_link_exists(p, p->remote);
}

static bool same_port(const struct sim *s, const struct subnet *sub,
		      const uint8_t *reached, const struct sim_node *m,
		      const struct ib_node *n, unsigned i, char *why, size_t size)
{
	const struct physp *p = node_physp(n, i);
	bool seen = is_seen(s, reached, m, i) && (i || m->type == NODE_SWITCH);
	const struct ib_port *by_lid;
	struct port_info pi;

	if (!p || !seen) {
		if (!p != !seen)
			DIFFERS("%s port %u: valid %d", m->desc, i, p != NULL);
		return true;
	}
	sim_port_info(m, i, &pi);
	if (p->info.state != pi.state || p->info.phys_state != pi.phys_state)
		DIFFERS("%s port %u: state %u, is %u", m->desc, i, p->info.state,
			pi.state);
	if (pi.state != IB_DOWN &&
	    (p->info.lid != pi.lid || p->info.width_active != pi.width_active ||
	     p->info.speed_active != pi.speed_active))
		DIFFERS("%s port %u: lid %u width %u", m->desc, i, p->info.lid,
			p->info.width_active);
	if (!same_link(s, reached, m, i, p))
		DIFFERS("%s port %u: link (to %s)", m->desc, i,
			p->remote ? p->remote->node->desc : "nothing");
	if (!same_route(s, m, i, p))
		DIFFERS("%s port %u: route of %u hops", m->desc, i, p->hops);
	if (pi.lid && pi.state != IB_DOWN) {
		by_lid = subnet_port_by_lid(sub, pi.lid);
		if (!by_lid || by_lid->physp != p)
			DIFFERS("%s port %u: not found by LID", m->desc, i);
	}
	return true;
}

static bool same_node(const struct sim *s, const struct subnet *sub,
		      const uint8_t *reached, const struct sim_node *m, char *why,
		      size_t size)
{
	const struct ib_node *n = subnet_node_by_guid(sub, m->guid);

	if (!n)
		DIFFERS("%s is missing", m->desc);
	if (n->info.node_type != m->type || n->info.num_ports != m->n_ports)
		DIFFERS("%s: type or number of ports", m->desc);
	/* What is left alone keeps what was read, perhaps of one that had its GUID. */
	if ((!n->desc_known || !str_eq(n->desc, m->desc)) &&
	    !(m->protect && n->flags & NODE_PROTECTED))
		DIFFERS("%s: described as \"%s\"", m->desc, n->desc);
	if (m->type == NODE_SWITCH && (!n->sw_known || n->sw.linear_cap != 49152))
		DIFFERS("%s: SwitchInfo", m->desc);
	for (unsigned i = 0; i <= m->n_ports; i++)
		if (!same_port(s, sub, reached, m, n, i, why, size))
			return false;
	return true;
}

bool sim_equal(const struct sim *s, const struct subnet *sub, char *why, size_t size)
{
	uint8_t *reached = xcalloc(s->n, 1);
	uint32_t n = sim_reached(s, reached), have = 0;
	bool same = true;

	for (uint32_t i = 0; same && i < s->n; i++)
		if (reached[i])
			same = same_node(s, sub, reached, s->nodes[i], why, size);
	free(reached);
	for (struct ib_node *i = subnet_next(sub, NULL); i; i = subnet_next(sub, i))
		have++;
	if (same && have != n)
		DIFFERS("%u nodes, not %u", have, n);
	return same;
}

bool sim_tables_equal(const struct sim_node *m, const struct physp *p)
{
	bool sw = m->type == NODE_SWITCH;
	unsigned port = sw ? p->num : 0, capacity = physp_pkey_capacity(p);

	if (!p->pkeys || !p->qos || capacity != (sw ? 32 : 64))
		return false;
	for (unsigned i = 0; i < capacity; i++)
		if (p->pkeys->blocks[i / 32].pkey[i % 32] != sim_pkey(m, port, i))
			return false;
	for (unsigned in = 0; in <= (sw ? m->n_ports : 0u); in++) {
		const struct slvl *t = physp_get_slvl(p, in);

		for (unsigned i = 0; i < IB_SLS; i++)
			if (!t || t->vl[i] != (port + (sw ? in : 0) + i) % 8)
				return false;
	}
	for (unsigned b = 1; b <= 4; b++) {
		const struct vlarb_block *v = physp_get_vlarb(p, b);

		if (b != 2 && (!v || v->e[5].vl != b || v->e[5].weight != port + 5))
			return false;
	}
	return true;
}
