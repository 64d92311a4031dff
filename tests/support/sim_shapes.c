/* SPDX-License-Identifier: BSD-2-Clause */
/* Fabrics of the usual shapes. */
#include "sim_fabric.h"

#include <stdlib.h>

static void finish(struct sim *s, struct sim_node *root)
{
	s->root = root;
	s->root_port = root->type == NODE_SWITCH ? 0 : 1;
	sim_lids(s);
}

static uint8_t free_port(const struct sim_node *m)
{
	for (unsigned i = 1; i <= m->n_ports; i++)
		if (!m->ports[i].to)
			return (uint8_t)i;
	return 0;
}

static bool cable_any(struct sim_node *a, struct sim_node *b)
{
	uint8_t i = free_port(a), j = free_port(b);

	if (!i || !j || (a == b && i == j))
		return false;
	sim_cable(a, i, b, j);
	return true;
}

static struct sim_node *add_hosts(struct sim *s, struct sim_node *sw, unsigned n)
{
	struct sim_node *first = NULL;

	for (unsigned i = 0; i < n; i++) {
		struct sim_node *h = sim_add(s, NODE_CA, 1);

		(void)cable_any(h, sw);
		first = first ? first : h;
	}
	return first;
}

void sim_fat_tree2(struct sim *s, unsigned leaves, unsigned hosts, unsigned spines,
		   unsigned links)
{
	struct sim_node **leaf = xcalloc(leaves, sizeof(*leaf)), *root = NULL;

	for (unsigned l = 0; l < leaves; l++) {
		struct sim_node *first;

		leaf[l] = sim_add(s, NODE_SWITCH, (uint8_t)(hosts + spines * links));
		first = add_hosts(s, leaf[l], hosts);
		root = root ? root : first;
	}
	for (unsigned p = 0; p < spines; p++) {
		struct sim_node *spine =
			sim_add(s, NODE_SWITCH, (uint8_t)(leaves * links));

		for (unsigned l = 0; l < leaves; l++)
			for (unsigned k = 0; k < links; k++)
				(void)cable_any(leaf[l], spine);
	}
	free(leaf);
	finish(s, root);
}

/* k pods of k/2 edge and k/2 aggregation switches, (k/2)^2 cores, k^3/4 hosts. */
void sim_fat_tree3(struct sim *s, unsigned k)
{
	unsigned half = k / 2;
	struct sim_node **core = xcalloc(half * half, sizeof(*core)), *root = NULL;

	for (unsigned c = 0; c < half * half; c++)
		core[c] = sim_add(s, NODE_SWITCH, (uint8_t)k);
	for (unsigned pod = 0; pod < k; pod++) {
		struct sim_node *agg[SIM_PORTS_MAX];

		for (unsigned a = 0; a < half; a++) {
			agg[a] = sim_add(s, NODE_SWITCH, (uint8_t)k);
			for (unsigned c = 0; c < half; c++)
				(void)cable_any(agg[a], core[a * half + c]);
		}
		for (unsigned e = 0; e < half; e++) {
			struct sim_node *edge = sim_add(s, NODE_SWITCH, (uint8_t)k),
					*first;

			first = add_hosts(s, edge, half);
			root = root ? root : first;
			for (unsigned a = 0; a < half; a++)
				(void)cable_any(edge, agg[a]);
		}
	}
	free(core);
	finish(s, root);
}

void sim_torus(struct sim *s, unsigned x, unsigned y, unsigned z, unsigned hosts)
{
	unsigned n = x * y * z;
	struct sim_node **sw = xcalloc(n, sizeof(*sw)), *root = NULL;

	for (unsigned i = 0; i < n; i++) {
		struct sim_node *first;

		sw[i] = sim_add(s, NODE_SWITCH, (uint8_t)(6 + hosts));
		first = add_hosts(s, sw[i], hosts);
		root = root ? root : first;
	}
	for (unsigned i = 0; i < n; i++) {
		unsigned a = i % x, b = i / x % y, c = i / x / y;

		(void)cable_any(sw[i], sw[(a + 1) % x + b * x + c * x * y]);
		(void)cable_any(sw[i], sw[a + (b + 1) % y * x + c * x * y]);
		(void)cable_any(sw[i], sw[a + b * x + (c + 1) % z * x * y]);
	}
	free(sw);
	finish(s, root ? root : s->nodes[0]);
}

void sim_mixed(struct sim *s, unsigned switches, unsigned hosts)
{
	struct sim_node *root;

	for (unsigned i = 0; i < switches; i++) {
		uint8_t ports = (uint8_t)(8 + sim_draw(s) % 3 * 14);
		struct sim_node *sw = sim_add(s, NODE_SWITCH, ports);

		if (i) /* all hang together */
			(void)cable_any(sw, s->nodes[sim_draw(s) % i]);
	}
	for (unsigned i = 0; i < 2 * switches; i++)
		(void)cable_any(s->nodes[sim_draw(s) % switches],
				s->nodes[sim_draw(s) % switches]);
	for (unsigned i = 0; i < hosts; i++) {
		uint8_t ports = (uint8_t)(1 + sim_draw(s) % 3 / 2);
		enum node_type type = sim_draw(s) % 16 ? NODE_CA : NODE_ROUTER;
		struct sim_node *h = sim_add(s, type, ports);

		for (unsigned p = 0; p < ports; p++)
			(void)cable_any(h, s->nodes[sim_draw(s) % switches]);
		for (unsigned p = 1; p <= ports; p++)
			h->ports[p].width = sim_draw(s) % 4 ? 2 : 1;
	}
	root = sim_add(s, NODE_CA, 2);
	for (unsigned p = 0; p < 2; p++)
		for (unsigned i = 0; i < switches && !root->ports[p + 1].to; i++)
			if (free_port(s->nodes[i]))
				sim_cable(root, (uint8_t)(p + 1), s->nodes[i],
					  free_port(s->nodes[i]));
	finish(s, root);
}
