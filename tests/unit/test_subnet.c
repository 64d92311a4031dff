/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>
#include <errno.h>

#include "subnet.h"

static const uint8_t some_path[IB_PATH_LEN] = {0, 1, 5, 6};

static struct node_info info_of(uint8_t type, uint64_t guid, uint8_t ports, uint8_t local)
{
	return (struct node_info){
		.node_type = type, .num_ports = ports, .node_guid = guid,
		.port_guid = type == NODE_SWITCH ? guid : guid + local, .local_port = local};
}

static struct ib_node *add(struct subnet *s, uint8_t type, uint64_t guid, uint8_t ports,
			   uint8_t local)
{
	struct node_info ni = info_of(type, guid, ports, local);
	bool is_new;

	return subnet_node(s, &ni, 3, some_path, &is_new);
}

static void link_ports(struct ib_node *a, unsigned pa, struct ib_node *b, unsigned pb)
{
	physp_link(&a->slots[pa], &b->slots[pb]);
}

/* ---- nodes ---- */

static void a_switch_has_all_its_ports(void **state)
{
	struct node_info ni = info_of(NODE_SWITCH, 0x100, 36, 7);
	struct subnet *s = subnet_new();
	struct ib_node *n;
	bool is_new = false;
	uint8_t hops;

	(void)state;
	n = subnet_node(s, &ni, 3, some_path, &is_new);
	assert_true(is_new && node_is_switch(n));
	for (unsigned i = 0; i <= 36; i++) {
		struct physp *p = node_physp(n, i);

		assert_non_null(p);
		assert_int_equal(physp_guid(p), 0x100);
		assert_int_equal(physp_num(p), i);
		assert_ptr_equal(physp_node(p), n);
		assert_memory_equal(physp_path(p, &hops), some_path, 4);
		assert_int_equal(hops, 3);
	}
	assert_null(node_physp(n, 37));
	assert_null(node_physp(n, 1000));
	assert_ptr_equal(node_main_port(n), &n->slots[0]);
	assert_ptr_equal(subnet_node_by_guid(s, 0x100), n);
	assert_null(subnet_node_by_guid(s, 0x101));
	/* Again: the same object, and what is known of it stays. */
	n->slots[4].info.lid = 9;
	ni.local_port = 9;
	assert_ptr_equal(subnet_node(s, &ni, 1, some_path, &is_new), n);
	assert_false(is_new);
	assert_int_equal(n->slots[4].info.lid, 9);
	assert_int_equal(n->info.local_port, 9);
	(void)physp_path(&n->slots[0], &hops);
	assert_int_equal(hops, 3);
	assert_null(subnet_free(s));
}

static void ports_of_a_ca_come_one_at_a_time(void **state)
{
	static const uint8_t types[] = {NODE_CA, NODE_ROUTER};

	(void)state;
	for (size_t t = 0; t < ARRAY_LEN(types); t++) {
		struct subnet *s = subnet_new();
		struct ib_node *n = add(s, types[t], 0x100, 2, 2);

		assert_false(node_is_switch(n));
		assert_null(node_physp(n, 0));
		assert_null(node_physp(n, 1));
		assert_int_equal(physp_guid(node_physp(n, 2)), 0x102);
		assert_int_equal(node_physp(n, 2)->hops, 3);
		assert_ptr_equal(node_main_port(n), &n->slots[2]);
		assert_ptr_equal(add(s, types[t], 0x100, 2, 1), n);
		assert_int_equal(physp_guid(node_physp(n, 1)), 0x101);
		assert_ptr_equal(node_main_port(n), &n->slots[1]);
		/* One that answers again keeps what is known of it. */
		n->slots[2].info.lid = 9;
		n->slots[2].need_update = 0;
		assert_ptr_equal(add(s, types[t], 0x100, 2, 2), n);
		assert_int_equal(n->slots[2].info.lid, 9);
		assert_int_equal(n->slots[2].need_update, 0);
		/* Nothing comes in by port 0 of a CA. */
		assert_ptr_equal(add(s, types[t], 0x100, 2, 0), n);
		assert_null(node_physp(n, 0));
		(void)add(s, types[t], 0x200, 2, 0);
		assert_null(node_main_port(subnet_node_by_guid(s, 0x200)));
		subnet_free(s);
	}
}

static void a_port_with_another_guid_is_another(void **state)
{
	struct subnet *s = subnet_new();
	struct ib_node *ca = add(s, NODE_CA, 0x100, 2, 1);
	struct ib_node *sw = add(s, NODE_SWITCH, 0x200, 4, 1);
	struct node_info ni = ca->info;
	bool is_new;

	(void)state;
	link_ports(ca, 1, sw, 1);
	assert_non_null(subnet_port(s, &ca->slots[1]));
	ni.port_guid = 0x177;
	assert_ptr_equal(subnet_node(s, &ni, 1, some_path, &is_new), ca);
	assert_null(sw->slots[1].remote);
	assert_null(subnet_port_by_guid(s, 0x101));
	assert_int_equal(ca->slots[1].guid, 0x177);
	assert_int_equal(ca->slots[1].need_update, 2);
	assert_int_equal(ca->slots[1].hops, 1);
	subnet_free(s);
}

/* What identifies a node changed: only its place and its object stay. */
static void a_changed_node_is_made_anew(void **state)
{
	static const struct node_info changes[] = {
		{.node_type = NODE_SWITCH, .num_ports = 6, .port_guid = 0x100},
		{.node_type = NODE_SWITCH, .num_ports = 2, .port_guid = 0x100},
		{.node_type = NODE_CA, .num_ports = 4, .port_guid = 0x100, .local_port = 2},
		{.node_type = NODE_SWITCH, .num_ports = 4, .port_guid = 0x107},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(changes); i++) {
		struct subnet *s = subnet_new();
		struct ib_node *n = add(s, NODE_SWITCH, 0x100, 4, 1);
		struct ib_node *far = add(s, NODE_SWITCH, 0x200, 4, 1);
		struct node_info ni = changes[i];
		bool is_new;

		link_ports(n, 3, far, 4);
		n->desc_known = n->sw_known = true;
		n->slots[0].info.lid = 5;
		assert_int_equal(subnet_lids_changed(s, subnet_port(s, &n->slots[0])), 0);
		ni.node_guid = 0x100;
		assert_ptr_equal(subnet_node(s, &ni, 1, some_path, &is_new), n);
		assert_false(is_new || n->desc_known || n->sw_known);
		assert_null(far->slots[4].remote);
		assert_null(subnet_port_by_guid(s, 0x100));
		assert_null(subnet_port_by_lid(s, 5));
		assert_int_equal(n->serial, 1);
		assert_int_equal(n->info.num_ports, changes[i].num_ports);
		assert_int_equal(node_main_port(n)->need_update, 2);
		assert_int_equal(node_main_port(n)->guid, changes[i].port_guid);
		assert_int_equal(node_main_port(n)->hops, 1);
		subnet_free(s);
	}
}

static void a_dropped_node_leaves_nothing(void **state)
{
	struct subnet *s = subnet_new();
	struct ib_node *sw = add(s, NODE_SWITCH, 0x100, 4, 1);
	struct ib_node *ca = add(s, NODE_CA, 0x200, 2, 1);
	struct ib_node *sw2 = add(s, NODE_SWITCH, 0x300, 4, 1);

	(void)state;
	link_ports(sw, 1, ca, 1);
	link_ports(sw, 2, sw2, 3);
	link_ports(sw, 3, sw, 3);
	link_ports(sw2, 4, ca, 2); /* which nobody asked yet: it is not valid */
	sw->slots[0].info.lid = 4;
	assert_int_equal(subnet_lids_changed(s, subnet_port(s, &sw->slots[0])), 0);
	assert_int_equal(ib_port_add_mlid(subnet_port(s, &sw->slots[0]), 0xc001), 0);
	subnet_drop(s, sw);
	assert_null(ca->slots[1].remote);
	assert_null(sw2->slots[3].remote);
	assert_null(subnet_node_by_guid(s, 0x100));
	assert_null(subnet_port_by_guid(s, 0x100));
	assert_null(subnet_port_by_lid(s, 4));
	assert_ptr_equal(subnet_next(s, NULL), ca);
	assert_ptr_equal(subnet_next(s, ca), sw2);
	assert_null(subnet_next(s, sw2));
	subnet_drop(s, ca);
	assert_null(sw2->slots[4].remote);
	assert_ptr_equal(subnet_next(s, NULL), sw2);
	ca = add(s, NODE_CA, 0x400, 2, 1);
	subnet_drop(s, ca);
	assert_null(subnet_next(s, sw2));
	subnet_drop(s, sw2);
	assert_null(subnet_next(s, NULL));
	subnet_free(s);
	assert_null(subnet_free(NULL));
}

#define MODEL_NODES 24
#define MODEL_PORTS 5

/* What the subnet should hold: nodes in order, and partners of ports, -1 = none. */
struct model {
	uint64_t order[MODEL_NODES];
	int n;
	int partner[MODEL_NODES][MODEL_PORTS + 1];
};

static int at_of(const struct model *m, uint64_t guid)
{
	for (int i = 0; i < m->n; i++)
		if (m->order[i] == guid)
			return i;
	return -1;
}

static int *partner_of(struct model *m, int coded)
{
	return &m->partner[coded / 8][coded % 8];
}

static void model_unlink(struct model *m, int coded)
{
	int other = *partner_of(m, coded);

	*partner_of(m, coded) = -1;
	if (other >= 0)
		*partner_of(m, other) = -1;
}

static void model_drop(struct model *m, uint64_t guid)
{
	int at = at_of(m, guid);

	for (int p = 0; p <= MODEL_PORTS; p++)
		model_unlink(m, (int)guid * 8 + p);
	m->n--;
	for (int i = at; i < m->n; i++)
		m->order[i] = m->order[i + 1];
}

static void same_as_model(struct subnet *s, struct model *m)
{
	bool used[MODEL_NODES + 1] = {false};
	struct ib_node *n = NULL;

	for (int i = 0; i < m->n; i++) {
		n = subnet_next(s, n);
		assert_int_equal(n->info.node_guid, m->order[i] + 1);
		assert_ptr_equal(subnet_node_by_guid(s, m->order[i] + 1), n);
		assert_in_range(n->serial, 1, MODEL_NODES);
		assert_false(used[n->serial]);
		used[n->serial] = true;
		for (int p = 0; p <= MODEL_PORTS; p++) {
			int other = m->partner[m->order[i]][p];
			struct physp *far = n->slots[p].remote;

			if (other < 0)
				assert_null(far);
			else
				assert_true(far->num == other % 8 &&
					    (int)far->node->info.node_guid ==
						    other / 8 + 1 &&
					    far->remote == &n->slots[p]);
		}
	}
	assert_null(n ? subnet_next(s, n) : subnet_next(s, NULL));
}

static void nodes_and_links_are_as_in_a_model(void **state)
{
	struct subnet *s = subnet_new();
	struct model m = {0};
	uint64_t rnd = 5;

	(void)state;
	memset(m.partner, -1, sizeof(m.partner));
	for (int step = 0; step < 20000; step++) {
		uint64_t g, h;
		int pa, pb;

		rnd = mix64(rnd);
		g = rnd % MODEL_NODES;
		h = (rnd >> 8) % MODEL_NODES;
		pa = 1 + (int)((rnd >> 16) % MODEL_PORTS);
		pb = 1 + (int)((rnd >> 24) % MODEL_PORTS);
		if (at_of(&m, g) < 0) {
			(void)add(s, NODE_SWITCH, g + 1, MODEL_PORTS, 1);
			m.order[m.n++] = g;
		} else if ((rnd >> 32) % 8 == 0) {
			subnet_drop(s, subnet_node_by_guid(s, g + 1));
			model_drop(&m, g);
		} else if (at_of(&m, h) >= 0) {
			model_unlink(&m, (int)g * 8 + pa);
			model_unlink(&m, (int)h * 8 + pb);
			*partner_of(&m, (int)g * 8 + pa) = (int)h * 8 + pb;
			*partner_of(&m, (int)h * 8 + pb) = (int)g * 8 + pa;
			link_ports(subnet_node_by_guid(s, g + 1), (unsigned)pa,
				   subnet_node_by_guid(s, h + 1), (unsigned)pb);
		}
		same_as_model(s, &m);
		assert_true(subnet_serials(s) <= MODEL_NODES + 1);
	}
	subnet_free(s);
}

/* ---- by name ---- */

static void describe(struct ib_node *n, const char *desc)
{
	(void)str_copy(n->desc, sizeof(n->desc), desc);
	n->desc_known = true;
}

static void nodes_by_any_name(void **state)
{
	struct subnet *s = subnet_new();
	struct ib_node *leaf = add(s, NODE_SWITCH, 0x10, 4, 1);
	struct ib_node *ca = add(s, NODE_CA, 0x2c9030000000001, 2, 1);
	struct ib_node *twin = add(s, NODE_CA, 0x300, 1, 1);
	struct ib_node *other = add(s, NODE_CA, 0x400, 1, 1);
	bool ambiguous;

	(void)state;
	describe(leaf, "MF0;leaf08:MQM8700/U1");
	describe(ca, "gpu1 mlx5_0");
	describe(twin, "twin");
	describe(other, "twin");
	ca->slots[1].info.lid = 0x10;
	ca->slots[1].info.lmc = 2;
	assert_int_equal(subnet_lids_changed(s, subnet_port(s, &ca->slots[1])), 0);

	assert_ptr_equal(subnet_find(s, "0x02c9030000000001", &ambiguous), ca);
	assert_ptr_equal(subnet_find(s, "0X2C9030000000002", &ambiguous), ca); /* port */
	assert_ptr_equal(subnet_find(s, "gpu1 mlx5_0", &ambiguous), ca);
	assert_ptr_equal(subnet_find(s, "16", &ambiguous), ca);
	assert_ptr_equal(subnet_find(s, "19", &ambiguous), ca);
	assert_ptr_equal(subnet_find(s, "0x13", &ambiguous), ca);
	assert_ptr_equal(subnet_find(s, "0x10", &ambiguous), leaf); /* a GUID goes first */
	assert_ptr_equal(subnet_find(s, "leaf08", &ambiguous), leaf);
	assert_ptr_equal(subnet_find(s, "MF0;leaf08:MQM8700/U1", &ambiguous), leaf);
	assert_false(ambiguous);
	assert_null(subnet_find(s, "twin", &ambiguous));
	assert_true(ambiguous);

	static const char *const none[] = {"20", "0x14", "0", "", "0x", "leaf", "x16", "16x",
					   "0x12345678901234567", "65552", "0xfffff",
					   "99999999999999999999"};

	for (size_t i = 0; i < ARRAY_LEN(none); i++) {
		assert_null(subnet_find(s, none[i], &ambiguous));
		assert_false(ambiguous);
	}
	/* A whole description goes before a short name, a number that is none is a name. */
	describe(other, "leaf08");
	describe(twin, "777");
	assert_ptr_equal(subnet_find(s, "leaf08", &ambiguous), other);
	assert_ptr_equal(subnet_find(s, "777", &ambiguous), twin);
	other->desc_known = false;
	assert_ptr_equal(subnet_find(s, "leaf08", &ambiguous), leaf);
	subnet_free(s);
}

/* ---- logical ports ---- */

static void one_port_per_guid(void **state)
{
	struct subnet *s = subnet_new();
	struct ib_node *sw = add(s, NODE_SWITCH, 0x100, 4, 1);
	struct ib_node *ca = add(s, NODE_CA, 0x200, 2, 1);
	struct ib_port *p = subnet_port(s, &sw->slots[3]);

	(void)state;
	assert_ptr_equal(p->physp, &sw->slots[0]);
	assert_int_equal(p->guid, 0x100);
	assert_true(p->is_new);
	assert_ptr_equal(subnet_port(s, &sw->slots[0]), p);
	assert_ptr_equal(subnet_port_by_guid(s, 0x100), p);
	assert_null(subnet_port(s, &ca->slots[0]));
	assert_null(subnet_port(s, &ca->slots[2]));
	assert_ptr_equal(subnet_port(s, &ca->slots[1])->physp, &ca->slots[1]);
	subnet_age(s);
	assert_false(p->is_new || subnet_port(s, &ca->slots[1])->is_new);
	subnet_port_drop(s, 0x100);
	subnet_port_drop(s, 0x100);
	subnet_port_drop(s, 0);
	assert_null(subnet_port_by_guid(s, 0x100));
	assert_true(subnet_port(s, &sw->slots[0])->is_new);
	subnet_free(s);
}

static void two_nodes_claim_a_guid(void **state)
{
	struct subnet *s = subnet_new();
	struct ib_node *a = add(s, NODE_CA, 0x100, 2, 1);
	struct node_info ni = info_of(NODE_CA, 0x500, 2, 1);
	struct subnet_counts c;
	struct ib_node *b;
	bool is_new;

	(void)state;
	ni.port_guid = 0x101;
	b = subnet_node(s, &ni, 1, some_path, &is_new);
	assert_non_null(subnet_port(s, &a->slots[1]));
	assert_null(subnet_port(s, &b->slots[1]));
	assert_true((a->flags & NODE_DUPLICATE) && (b->flags & NODE_DUPLICATE));
	subnet_count(s, &c);
	assert_int_equal(c.duplicates, 2);
	/* The one that goes takes nothing with it that is not its own. */
	subnet_drop(s, b);
	assert_ptr_equal(subnet_port_by_guid(s, 0x101)->physp, &a->slots[1]);
	subnet_free(s);
}

static void set_lid(struct ib_port *p, uint16_t lid, uint8_t lmc)
{
	p->physp->info.lid = lid;
	p->physp->info.lmc = lmc;
}

static void lids_of_a_range(void **state)
{
	struct subnet *s = subnet_new();
	struct ib_node *ca = add(s, NODE_CA, 0x100, 2, 1);
	struct ib_port *p = subnet_port(s, &ca->slots[1]);
	uint16_t first = 7, last = 7;

	(void)state;
	assert_false(ib_port_lid_range(p, &first, &last));
	assert_int_equal(first, 7);
	set_lid(p, 0x40, 3);
	assert_null(subnet_port_by_lid(s, 0x40)); /* not told yet */
	assert_int_equal(subnet_lids_changed(s, p), 0);
	assert_true(ib_port_lid_range(p, &first, &last));
	assert_true(first == 0x40 && last == 0x47);
	assert_int_equal(ib_port_base_lid(p), 0x40);
	assert_int_equal(ib_port_lmc(p), 3);
	for (uint32_t lid = 0; lid <= UINT16_MAX; lid++)
		assert_ptr_equal(subnet_port_by_lid(s, (uint16_t)lid),
				 lid >= 0x40 && lid <= 0x47 ? p : NULL);
	/* The last that there may be, and what is over it. */
	set_lid(p, 0xbff8, 3);
	assert_int_equal(subnet_lids_changed(s, p), 0);
	assert_ptr_equal(subnet_port_by_lid(s, 0xbfff), p);
	assert_null(subnet_port_by_lid(s, 0xc000));
	assert_null(subnet_port_by_lid(s, 0x40));
	set_lid(p, 0xfff8, 3);
	assert_int_equal(subnet_lids_changed(s, p), 0);
	assert_null(subnet_port_by_lid(s, 0xbfff));
	assert_null(subnet_port_by_lid(s, 0xfff8));
	set_lid(p, 0, 3);
	assert_int_equal(subnet_lids_changed(s, p), 0);
	for (uint32_t lid = 0; lid <= UINT16_MAX; lid++)
		assert_null(subnet_port_by_lid(s, (uint16_t)lid));
	subnet_free(s);
}

static void a_lid_belongs_to_the_first(void **state)
{
	struct subnet *s = subnet_new();
	struct ib_port *p[3];

	(void)state;
	for (uint64_t i = 0; i < 3; i++) {
		struct ib_node *ca = add(s, NODE_CA, 0x100 * (i + 1), 1, 1);

		p[i] = subnet_port(s, &ca->slots[1]);
	}
	set_lid(p[0], 9, 0);
	set_lid(p[1], 8, 1);
	set_lid(p[2], 8, 2);
	assert_int_equal(subnet_lids_changed(s, p[0]), 0);
	assert_int_equal(subnet_lids_changed(s, p[1]), -EEXIST);
	assert_int_equal(subnet_lids_changed(s, p[2]), -EEXIST);
	assert_ptr_equal(subnet_port_by_lid(s, 8), p[1]);
	assert_ptr_equal(subnet_port_by_lid(s, 9), p[0]);
	assert_ptr_equal(subnet_port_by_lid(s, 11), p[2]);
	assert_int_equal(subnet_lids_changed(s, p[1]), -EEXIST); /* as long as it lasts */
	subnet_port_drop(s, p[0]->guid);
	assert_ptr_equal(subnet_port_by_lid(s, 9), p[1]);
	assert_int_equal(subnet_lids_changed(s, p[1]), 0);
	assert_int_equal(subnet_lids_changed(s, p[2]), -EEXIST);
	subnet_drop(s, p[1]->physp->node);
	for (uint16_t lid = 8; lid < 12; lid++)
		assert_ptr_equal(subnet_port_by_lid(s, lid), p[2]);
	assert_int_equal(subnet_lids_changed(s, p[2]), 0);
	subnet_free(s);
}

#define CLAIMANTS 10

struct claim {
	struct ib_port *port; /* NULL: dropped */
	uint16_t first, last; /* 0: none */
	int since;
};

static struct ib_port *naive_owner(const struct claim *c, uint32_t lid)
{
	const struct claim *best = NULL;

	for (int i = 0; i < CLAIMANTS; i++)
		if (c[i].port && c[i].first && lid >= c[i].first && lid <= c[i].last &&
		    (!best || c[i].since < best->since))
			best = &c[i];
	return best ? best->port : NULL;
}

static bool naive_contested(const struct claim *c, const struct claim *mine)
{
	for (uint32_t lid = mine->first; lid && lid <= mine->last; lid++)
		if (naive_owner(c, lid) != mine->port)
			return true;
	return false;
}

static void lids_are_as_in_a_naive_model(void **state)
{
	struct claim c[CLAIMANTS] = {0};
	struct subnet *s = subnet_new();
	uint64_t rnd = 17;

	(void)state;
	for (uint64_t i = 0; i < CLAIMANTS; i++)
		(void)add(s, NODE_CA, (i + 1) * 16, 1, 1);
	for (int step = 1; step < 40000; step++) {
		int i = (int)((rnd = mix64(rnd)) % CLAIMANTS);
		struct physp *p = node_main_port(
			subnet_node_by_guid(s, ((uint64_t)i + 1) * 16));
		uint8_t lmc = (uint8_t)((rnd >> 8) % 4);
		uint16_t lid = (uint16_t)((rnd >> 16) % 41), first = 0, last = 0;

		if ((rnd >> 40) % 6 == 0) {
			subnet_port_drop(s, p->guid);
			c[i] = (struct claim){0};
		} else {
			if (!c[i].port)
				c[i].port = subnet_port(s, p);
			if ((rnd >> 40) % 6 < 4)
				lid &= (uint16_t)~((1U << lmc) - 1);
			set_lid(c[i].port, lid, lmc);
			if (lid && lid % (1U << lmc) == 0) {
				first = lid;
				last = (uint16_t)(lid + (1U << lmc) - 1);
			}
			if (c[i].first != first || c[i].last != last)
				c[i] = (struct claim){c[i].port, first, last, step};
			assert_int_equal(subnet_lids_changed(s, c[i].port),
					 naive_contested(c, &c[i]) ? -EEXIST : 0);
		}
		for (uint32_t l = 0; l < 64; l++)
			assert_ptr_equal(subnet_port_by_lid(s, (uint16_t)l),
					 naive_owner(c, l));
	}
	subnet_free(s);
}

static void multicast_groups(void **state)
{
	struct subnet *s = subnet_new();
	struct ib_port *p = subnet_port(s, &add(s, NODE_SWITCH, 1, 1, 1)->slots[0]);

	(void)state;
	ib_port_remove_mlid(p, 0xc000);
	ib_port_remove_all_mlids(p);
	assert_int_equal(ib_port_add_mlid(p, 0xbfff), -ERANGE);
	assert_int_equal(ib_port_add_mlid(p, 0xffff), -ERANGE);
	assert_int_equal(ib_port_add_mlid(p, 0), -ERANGE);
	assert_int_equal(p->n_mlids, 0);
	for (uint16_t round = 0; round < 2; round++)
		for (uint16_t i = 0; i < 100; i++)
			assert_int_equal(ib_port_add_mlid(p, (uint16_t)(0xfffe - i)), 0);
	assert_int_equal(p->n_mlids, 100);
	assert_int_equal(ib_port_add_mlid(p, 0xc000), 0);
	ib_port_remove_mlid(p, 0xfffe); /* the first, one within, the last */
	ib_port_remove_mlid(p, 0xfff0);
	ib_port_remove_mlid(p, 0xc000);
	ib_port_remove_mlid(p, 0xc000);
	assert_int_equal(p->n_mlids, 98);
	for (int i = 0, at = 0; i < 100; i++)
		if (i != 0 && i != 14)
			assert_int_equal(p->mlids[at++], 0xfffe - i);
	ib_port_remove_all_mlids(p);
	assert_int_equal(p->n_mlids, 0);
	assert_int_equal(ib_port_add_mlid(p, 0xc005), 0);
	assert_int_equal(p->mlids[0], 0xc005);
	subnet_free(s);
}

/* ---- counts and levels ---- */

static void counts_of_a_small_fabric(void **state)
{
	struct subnet *s = subnet_new();
	struct ib_node *sw = add(s, NODE_SWITCH, 0x100, 8, 1);
	struct ib_node *sw2 = add(s, NODE_SWITCH, 0x200, 8, 1);
	struct ib_node *ca = add(s, NODE_CA, 0x300, 2, 1);
	struct ib_node *rt = add(s, NODE_ROUTER, 0x400, 2, 2);
	struct port_info pi = {.state = IB_ACTIVE, .width_supported = 3,
			       .width_enabled = 3, .width_active = 2};
	struct subnet_counts c;
	size_t bytes;

	(void)state;
	for (unsigned i = 0; i <= 8; i++)
		physp_set_info(&sw2->slots[i], &pi);
	link_ports(sw, 1, sw2, 1);
	link_ports(sw, 2, sw2, 2);
	link_ports(sw, 3, ca, 1);
	link_ports(rt, 2, sw2, 3);
	link_ports(sw, 8, sw, 8);
	pi.width_active = 1;
	physp_set_info(&sw2->slots[2], &pi); /* degraded at one end */
	pi.state = IB_DOWN;
	physp_set_info(&sw2->slots[7], &pi);
	physp_set_info(&sw2->slots[0], &pi); /* no link there */
	subnet_count(s, &c);
	assert_int_equal(c.nodes, 4);
	assert_int_equal(c.switches, 2);
	assert_int_equal(c.cas, 1);
	assert_int_equal(c.routers, 1);
	assert_int_equal(c.ports, 20);
	assert_int_equal(c.links, 5);
	assert_int_equal(c.links_degraded, 1);
	assert_int_equal(c.links_down_ends, 1);
	assert_int_equal(c.duplicates, 0);
	bytes = c.bytes;
	/* Tables count, by what they take. */
	sw->info.partition_cap = 64;
	assert_int_equal(physp_set_pkeys(&sw->slots[0], 1, &(struct pkey_block){0}), 0);
	assert_int_equal(physp_set_slvl(&sw->slots[1], 0, &(struct slvl){0}), 0);
	subnet_count(s, &c);
	assert_int_equal(c.bytes - bytes,
			 sizeof(struct pkey_table) + 2 * sizeof(struct pkey_block) +
				 sizeof(struct qos_tables) + 9 * (sizeof(struct slvl) + 1));
	subnet_free(s);
}

/* A fabric of 1,728 hosts on 24-port leaves takes little memory. */
static void memory_per_port_is_small(void **state)
{
	struct subnet *s = subnet_new();
	struct subnet_counts c;

	(void)state;
	for (uint64_t sw = 0; sw < 216; sw++)
		(void)subnet_port(s, &add(s, NODE_SWITCH, 0x1000 + sw, 24, 1)->slots[0]);
	for (uint16_t i = 0; i < 1728; i++) {
		struct ib_node *ca = add(s, NODE_CA, 0x100000 + 16U * i, 1, 1);

		set_lid(subnet_port(s, &ca->slots[1]), (uint16_t)(i + 1), 0);
		(void)subnet_lids_changed(s, subnet_port(s, &ca->slots[1]));
	}
	subnet_count(s, &c);
	assert_int_equal(c.ports, 216 * 24 + 1728);
	assert_in_range(c.bytes / c.ports, 100, 600);
	subnet_free(s);
}

static void levels_as_by_relaxation(void **state)
{
	enum { SWITCHES = 14, PORTS = 6 };
	uint64_t rnd = 23;

	(void)state;
	for (int round = 0; round < 300; round++) {
		struct ib_node *sw[SWITCHES], *ca = NULL;
		int want[SWITCHES], hosts;
		struct subnet *s = subnet_new();
		uint8_t *got;

		for (int i = 0; i < SWITCHES; i++) {
			sw[i] = add(s, NODE_SWITCH, 0x100U + (unsigned)i, PORTS, 1);
			want[i] = 255;
		}
		hosts = (int)((rnd = mix64(rnd)) % 3);
		for (int i = 0; i < hosts; i++) {
			int at = (int)((rnd = mix64(rnd)) % SWITCHES);

			ca = add(s, i ? NODE_CA : NODE_ROUTER, 0x1000U + 16U * (unsigned)i, 1, 1);
			link_ports(sw[at], PORTS, ca, 1);
		}
		for (int i = 0; i < 20; i++) {
			rnd = mix64(rnd);
			link_ports(sw[rnd % SWITCHES], 1 + (rnd >> 8) % (PORTS - 1),
				   sw[(rnd >> 16) % SWITCHES], 1 + (rnd >> 24) % (PORTS - 1));
		}
		for (int pass = 0; pass < SWITCHES + 1; pass++)
			for (int i = 0; i < SWITCHES; i++)
				for (int p = 1; p <= PORTS; p++) {
					struct physp *far = sw[i]->slots[p].remote;

					if (far && !node_is_switch(far->node))
						want[i] = 0;
					else if (far)
						want[i] = MIN(want[i],
							      want[far->node->info.node_guid -
								   0x100] + 1);
				}
		got = calloc(subnet_serials(s), 1);
		subnet_levels(s, got, subnet_serials(s));
		for (int i = 0; i < SWITCHES; i++)
			assert_int_equal(got[sw[i]->serial], MIN(want[i], 255));
		if (ca)
			assert_int_equal(got[ca->serial], 255);
		free(got);
		subnet_free(s);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_switch_has_all_its_ports),
		cmocka_unit_test(ports_of_a_ca_come_one_at_a_time),
		cmocka_unit_test(a_port_with_another_guid_is_another),
		cmocka_unit_test(a_changed_node_is_made_anew),
		cmocka_unit_test(a_dropped_node_leaves_nothing),
		cmocka_unit_test(nodes_and_links_are_as_in_a_model),
		cmocka_unit_test(nodes_by_any_name),
		cmocka_unit_test(one_port_per_guid),
		cmocka_unit_test(two_nodes_claim_a_guid),
		cmocka_unit_test(lids_of_a_range),
		cmocka_unit_test(a_lid_belongs_to_the_first),
		cmocka_unit_test(lids_are_as_in_a_naive_model),
		cmocka_unit_test(multicast_groups),
		cmocka_unit_test(counts_of_a_small_fabric),
		cmocka_unit_test(memory_per_port_is_small),
		cmocka_unit_test(levels_as_by_relaxation),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
