/* SPDX-License-Identifier: BSD-2-Clause */
/* What follows from the nodes of a subnet: counts, and the levels of its switches. */
#include "subnet_internal.h"

/* ---- counts ---- */

static size_t tables_bytes(const struct physp *p)
{
	size_t n = 0;

	if (p->pkeys)
		n += sizeof(*p->pkeys) + p->pkeys->n_blocks * sizeof(*p->pkeys->blocks);
	if (p->qos)
		n += sizeof(*p->qos) + p->qos->n_slvl * (sizeof(*p->qos->slvl) +
							 sizeof(*p->qos->slvl_set));
	return n;
}

static size_t bytes_besides_nodes(const struct subnet *s)
{
	size_t n = sizeof(*s) + s->free_size * sizeof(*s->free_serials) +
		   s->lids_size * sizeof(*s->lids);

	/* HASH_OVERHEAD counts the handles too, which are in the entries. */
	if (s->by_guid)
		n += HASH_OVERHEAD(hh, s->by_guid) -
		     HASH_COUNT(s->by_guid) * sizeof(UT_hash_handle);
	if (s->ports)
		n += HASH_OVERHEAD(hh, s->ports) -
		     HASH_COUNT(s->ports) * sizeof(UT_hash_handle);
	for (const struct port_entry *e = s->ports; e; e = e->hh.next)
		n += sizeof(*e) + (size_t)e->port.mlids_size * sizeof(*e->port.mlids);
	return n;
}

static void count_port(const struct physp *p, struct subnet_counts *c)
{
	const struct physp *far = p->remote;
	char why[128];

	c->bytes += tables_bytes(p);
	if (!physp_is_valid(p) || (p->num == 0 && node_is_switch(p->node)))
		return;
	if (p->info.state == IB_DOWN)
		c->links_down_ends++;
	/* Once, at the end with the lower address. */
	if (!far || far < p || !physp_link_exists(p, far))
		return;
	c->links++;
	if (physp_is_degraded(p, why) || physp_is_degraded(far, why))
		c->links_degraded++;
}

static void count_node(const struct ib_node *n, struct subnet_counts *c)
{
	c->nodes++;
	c->switches += n->info.node_type == NODE_SWITCH;
	c->cas += n->info.node_type == NODE_CA;
	c->routers += n->info.node_type == NODE_ROUTER;
	c->ports += n->info.num_ports;
	c->duplicates += !!(n->flags & NODE_DUPLICATE);
	c->bytes += sizeof(struct node_entry) +
		    ((size_t)n->info.num_ports + 1) * sizeof(*n->slots);
	for (unsigned i = 0; i <= n->info.num_ports; i++)
		count_port(&n->slots[i], c);
}

void subnet_count(const struct subnet *s, struct subnet_counts *ret)
{
	*ret = (struct subnet_counts){.bytes = bytes_besides_nodes(s)};
	for (const struct ib_node *n = subnet_next(s, NULL); n; n = n->next)
		count_node(n, ret);
}

/* ---- levels ---- */

static bool has_host(const struct ib_node *n)
{
	for (unsigned i = 1; i <= n->info.num_ports; i++) {
		const struct physp *far = n->slots[i].remote;

		if (far && !node_is_switch(far->node))
			return true;
	}
	return false;
}

/* The switches next to @n that have no level yet come one above it. */
static uint32_t level_up(const struct ib_node *n, uint8_t *levels,
			 const struct ib_node **queue, uint32_t tail)
{
	uint8_t up = (uint8_t)MIN(levels[n->serial] + 1, LEVEL_NONE - 1);

	for (unsigned i = 1; i <= n->info.num_ports; i++) {
		const struct physp *far = n->slots[i].remote;

		if (!far || !node_is_switch(far->node) ||
		    levels[far->node->serial] != LEVEL_NONE)
			continue;
		levels[far->node->serial] = up;
		queue[tail++] = far->node;
	}
	return tail;
}

void subnet_levels(const struct subnet *s, uint8_t *ret, uint32_t n)
{
	const struct ib_node **queue = xcalloc(n, sizeof(*queue));
	uint32_t head = 0, tail = 0;

	assert(n >= subnet_serials(s));
	memset(ret, LEVEL_NONE, n);
	for (const struct ib_node *sw = subnet_next(s, NULL); sw; sw = sw->next) {
		if (!node_is_switch(sw) || !has_host(sw))
			continue;
		ret[sw->serial] = 0;
		queue[tail++] = sw;
	}
	while (head < tail) {
		const struct ib_node *sw = queue[head++];

		tail = level_up(sw, ret, queue, tail);
	}
	free(queue);
}
