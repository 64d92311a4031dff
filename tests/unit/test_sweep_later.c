/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Incremental sweeps: what they cost, that all is read again in @rolling of them, and
 * how soon they see what changed, with and without the hint of a switch.
 */
#include "sweep_rig.h"

static void tree_known(struct rig *g)
{
	rig_new(g);
	sim_fat_tree2(g->sim, 12, 10, 5, 2);
	g->o.least = 1; /* as of a large one: each thing in its turn */
	rig_start(g);
	rig_full(g);
	rig_equal(g);
}

/* Incremental sweeps until the subnet is the model; their number, 0: never. */
static int sweeps_until_equal(struct rig *g, int most)
{
	char why[200];

	for (int i = 1; i <= most; i++) {
		rig_later(g);
		if (sim_equal(g->sim, g->sub, why, sizeof(why)))
			return i;
	}
	rig_print_errors(g, 10);
	print_message("%s\n", why);
	return 0;
}

/* The sweep of an unchanged fabric of 1,900 nodes asks a tenth of a full one or less.
 */
static void test_cost(void **state)
{
	uint64_t full, worst = 0, sum = 0;
	struct rig g;

	(void)state;
	rig_new(&g);
	sim_fat_tree2(g.sim, 75, 24, 24, 1);
	rig_start(&g);
	rig_full(&g);
	full = sweep_last(g.w)->mads;
	for (int i = 0; i < 20; i++) {
		sim_forget(g.sim);
		rig_later(&g);
		assert_int_equal(sweep_last(g.w)->changed, 0);
		assert_int_equal(sweep_n_errors(g.w), 0);
		assert_int_equal(g.sim->by_attr[SWEEP_SWITCH_INFO], 99);
		worst = MAX(worst, sweep_last(g.w)->mads);
		sum += sweep_last(g.w)->mads;
	}
	print_message(
		"# 1,899 nodes: full %lu MADs, incremental %.1f on average (%.4f), at "
		"most %lu (%.4f)\n",
		(unsigned long)full, (double)sum / 20, (double)sum / 20 / (double)full,
		(unsigned long)worst, (double)worst / (double)full);
	assert_true((double)worst <= 0.1 * (double)full);
	rig_equal(&g);
	rig_free(&g);
}

/* Small switches: SwitchInfo of all would be too much of it. */
static void test_cost_torus(void **state)
{
	uint64_t full, worst = 0;
	struct rig g;

	(void)state;
	rig_new(&g);
	sim_torus(g.sim, 8, 8, 8, 0);
	rig_start(&g);
	rig_full(&g);
	full = sweep_last(g.w)->mads;
	for (int i = 0; i < 20; i++) {
		rig_later(&g);
		worst = MAX(worst, sweep_last(g.w)->mads);
	}
	print_message("# torus of 512 switches: full %lu MADs, incremental at most %lu "
		      "(%.4f)\n",
		      (unsigned long)full, (unsigned long)worst,
		      (double)worst / (double)full);
	assert_true((double)worst <= 0.1 * (double)full);
	rig_free(&g);
}

/* Twenty of them read the PortInfo of every port, and every link, once. */
static void test_all_in_twenty(void **state)
{
	struct rig g;
	uint32_t before;

	(void)state;
	tree_known(&g);
	before = sweep_last(g.w)->number;
	sim_forget(g.sim);
	for (uint32_t i = 0; i < g.o.rolling; i++)
		rig_later(&g);
	for (struct ib_node *n = subnet_next(g.sub, NULL); n; n = subnet_next(g.sub, n))
		for (unsigned i = 0; i <= n->info.num_ports; i++)
			if (node_physp(n, i))
				assert_true(node_physp(n, i)->seen_sweep > before);
	/* Each of 240 links once; the own node in each. */
	assert_int_equal(g.sim->by_attr[SWEEP_NODE_INFO], 12 * 10 + 12 * 5 * 2 + 20);
	assert_int_equal(g.sim->by_attr[SWEEP_NODE_DESC], g.sim->n);
	rig_free(&g);
}

/* In a small subnet the old link may be found lost before the new one is found. */
static void test_moved_among_few(void **state)
{
	const struct sweep_error *e;
	struct sim_node *host, *to;
	struct rig g;
	int n;

	(void)state;
	for (unsigned leaf = 0; leaf < 2; leaf++) { /* from the first, from the last */
		rig_new(&g);
		sim_fat_tree2(g.sim, 3, 2, 2, 1);
		rig_start(&g);
		rig_full(&g);
		host = g.sim->nodes[leaf ? 8 : 2];
		to = g.sim->nodes[leaf ? 0 : 6];
		assert_int_equal(host->type, NODE_CA);
		assert_int_equal(to->type, NODE_SWITCH);
		sim_uncable(g.sim->nodes[leaf ? 2 : 8], 1); /* makes room */
		sim_uncable(host, 1);
		for (n = 1; to->ports[n].to; n++)
			;
		sim_cable(host, 1, to, (uint8_t)n);
		rig_later(&g);
		rig_equal(&g);
		e = rig_error(&g, PROBLEM_MOVED, &n);
		assert_int_equal(n, 1);
		assert_int_equal(e->node_guid, host->guid);
		rig_free(&g);
	}
}

/* Few nodes are read whole each time, but for what hides by intention. */
static void test_few_nodes(void **state)
{
	struct rig g;
	uint32_t before;

	(void)state;
	rig_new(&g);
	sim_fat_tree2(g.sim, 4, 2, 3, 1);
	rig_start(&g);
	rig_full(&g);
	before = sweep_last(g.w)->number;
	rig_later(&g);
	for (struct ib_node *n = subnet_next(g.sub, NULL); n; n = subnet_next(g.sub, n))
		for (unsigned i = 0; i <= n->info.num_ports; i++)
			if (node_physp(n, i))
				assert_true(node_physp(n, i)->seen_sweep > before);
	assert_true(sweep_last(g.w)->mads <= g.o.least);
	rig_free(&g);
}

/* A host's cable moves to a free port of another leaf. */
static void move_host(struct rig *g, bool cleared)
{
	struct sim_node *host = g->sim->nodes[5], *from = host->ports[1].to;
	struct sim_node *to = g->sim->nodes[4 * 11];

	assert_int_equal(to->type, NODE_SWITCH);
	sim_uncable(g->sim->nodes[4 * 11 + 3], 1); /* makes room */
	sim_uncable(host, 1);
	sim_cable(host, 1, to, 3);
	sim_changed(from, cleared);
	sim_changed(to, cleared);
}

static void test_moved_with_hint(void **state)
{
	struct rig g;

	(void)state;
	tree_known(&g);
	move_host(&g, false);
	assert_int_equal(sweeps_until_equal(&g, 20), 1);
	rig_free(&g);
}

static void test_moved_and_cleared(void **state)
{
	int worst = 0;

	(void)state;
	for (int wait = 0; wait < 20; wait++) {
		struct rig g;
		int n;

		tree_known(&g);
		for (int i = 0; i < wait; i++)
			rig_later(&g);
		move_host(&g, true);
		n = sweeps_until_equal(&g, 20);
		assert_true(n > 0);
		worst = MAX(worst, n);
		rig_free(&g);
	}
	print_message("# moved, PortStateChange cleared: seen within %d sweeps\n",
		      worst);
}

/* Two hosts change places: no port changes its state. */
static void test_swapped(void **state)
{
	int worst = 0;

	(void)state;
	for (int wait = 0; wait < 20; wait++) {
		struct rig g;
		struct sim_node *a, *b, *la, *lb;
		uint8_t pa, pb;
		int n, moves = 0;

		tree_known(&g);
		for (int i = 0; i < wait; i++)
			rig_later(&g);
		a = g.sim->nodes[7];
		b = g.sim->nodes[5 * 11 + 4];
		la = a->ports[1].to;
		lb = b->ports[1].to;
		pa = a->ports[1].to_port;
		pb = b->ports[1].to_port;
		sim_uncable(a, 1);
		sim_uncable(b, 1);
		sim_cable(a, 1, lb, pb);
		sim_cable(b, 1, la, pa);
		n = sweeps_until_equal(&g, 20);
		assert_true(n > 0);
		(void)rig_error(&g, PROBLEM_MOVED, &moves);
		assert_int_equal(moves, 2); /* both are elsewhere */
		worst = MAX(worst, n);
		rig_free(&g);
	}
	print_message("# two hosts swapped, no port changed: seen within %d sweeps\n",
		      worst);
}

/* Uplinks of two leaves are swapped. */
static void test_uplinks_swapped(void **state)
{
	struct rig g;
	struct sim_node *a, *b, *sa, *sb;
	uint8_t pa, pb;
	int n;

	(void)state;
	tree_known(&g);
	a = g.sim->nodes[2 * 11];
	b = g.sim->nodes[3 * 11];
	sa = a->ports[11].to;
	pa = a->ports[11].to_port;
	sb = b->ports[14].to;
	pb = b->ports[14].to_port;
	sim_uncable(a, 11);
	sim_uncable(b, 14);
	sim_cable(a, 11, sb, pb);
	sim_cable(b, 14, sa, pa);
	n = sweeps_until_equal(&g, 20);
	print_message("# two uplinks swapped: seen within %d sweeps\n", n);
	assert_true(n > 0);
	rig_free(&g);
}

static void test_gone_and_back(void **state)
{
	const struct sweep_error *e;
	struct sim_node *host;
	struct rig g;

	(void)state;
	tree_known(&g);
	host = g.sim->nodes[30];
	host->ports[1].disabled = true;
	sim_changed(host->ports[1].to, false);
	assert_int_equal(sweeps_until_equal(&g, 1), 1);
	e = rig_error(&g, PROBLEM_VANISHED, NULL);
	assert_non_null(e);
	assert_string_equal(e->desc, host->desc);
	assert_true(e->hops > 0);
	assert_null(rig_node(&g, host));
	host->ports[1].disabled = false;
	/* The hint was never cleared, so it says nothing now: the rolling part finds
	 * it. */
	assert_true(sweeps_until_equal(&g, 20) > 0);
	rig_free(&g);
}

/* A leaf's switch dies: its hosts go with it, and come back with it. */
static void test_leaf_dies(void **state)
{
	struct sim_node *leaf;
	struct rig g;
	int n;

	(void)state;
	tree_known(&g);
	leaf = g.sim->nodes[6 * 11];
	leaf->dead = true;
	assert_int_equal(sweeps_until_equal(&g, 20), 1); /* its SwitchInfo */
	(void)rig_error(&g, PROBLEM_VANISHED, &n);
	assert_int_equal(n, 11);
	leaf->dead = false;
	n = sweeps_until_equal(&g, 20);
	print_message("# a leaf switch that answers again: known within %d sweeps\n",
		      n);
	assert_int_equal(n, 1);
	rig_free(&g);
}

/* What goes is what the root's switch leads to by one way only. */
static void test_spine_dies(void **state)
{
	struct sim_node *spine;
	struct rig g;

	(void)state;
	tree_known(&g);
	spine = g.sim->nodes[12 * 11];
	assert_int_equal(spine->n_ports, 24);
	spine->dead = true;
	/* Routes through it are lost while the sweep runs, and others are taken. */
	assert_true(sweeps_until_equal(&g, 2) > 0);
	spine->dead = false;
	assert_true(sweeps_until_equal(&g, 2) > 0);
	rig_free(&g);
}

/* A link that got slower, a LID, a description, a node that somebody suspects. */
static void test_small_changes(void **state)
{
	struct sim_node *host, *leaf;
	struct rig g;

	(void)state;
	tree_known(&g);
	host = g.sim->nodes[40];
	leaf = host->ports[1].to;
	host->ports[1].width = 1;
	leaf->ports[host->ports[1].to_port].width = 1;
	sweep_suspect_node(g.w, host->guid);
	sweep_suspect_node(g.w, leaf->guid);
	sweep_suspect_node(g.w, 12345); /* nobody */
	assert_int_equal(sweeps_until_equal(&g, 1), 1);
	host->ports[1].lid = 900;
	str_copy(host->desc, sizeof(host->desc), "renamed");
	assert_true(sweeps_until_equal(&g, 20) > 0);
	assert_int_equal(subnet_port_by_lid(g.sub, 900)->physp->node->info.node_guid,
			 host->guid);
	rig_free(&g);
}

/* A second port of a CA appears and goes. */
static void test_second_port(void **state)
{
	struct sim_node *host, *leaf;
	struct ib_node *n;
	struct rig g;

	(void)state;
	rig_new(&g);
	sim_fat_tree2(g.sim, 4, 6, 2, 2);
	host = sim_add(g.sim, NODE_CA, 2);
	leaf = g.sim->nodes[7];
	sim_uncable(g.sim->nodes[8], 1);
	sim_uncable(g.sim->nodes[15], 1);
	sim_cable(host, 1, leaf, 1);
	sim_lids(g.sim);
	rig_start(&g);
	rig_full(&g);
	rig_equal(&g);
	n = rig_node(&g, host);
	assert_non_null(node_physp(n, 1));
	assert_null(node_physp(n, 2));
	sim_cable(host, 2, g.sim->nodes[14], 1);
	assert_true(sweeps_until_equal(&g, 20) > 0);
	assert_ptr_equal(rig_node(&g, host), n);
	assert_int_equal(node_physp(n, 2)->guid, host->guid + 2);
	sim_uncable(host, 1);
	assert_true(sweeps_until_equal(&g, 20) > 0);
	assert_ptr_equal(rig_node(&g, host), n);
	assert_null(node_physp(n, 1));
	rig_free(&g);
}

/* Full, then 20 incremental ones. Returns the MADs. */
static uint64_t swept_extended(struct rig *g, bool ext, unsigned refusing)
{
	uint64_t mads;

	rig_new(g);
	sim_fat_tree2(g->sim, 12, 10, 5, 2);
	for (uint32_t i = 0; i < g->sim->n; i++) {
		g->sim->nodes[i]->ext = ext;
		g->sim->nodes[i]->refuses = refusing && i % refusing == 0;
	}
	rig_start(g);
	rig_full(g);
	mads = g->sim->asked;
	for (int i = 0; i < 20; i++) {
		rig_later(g);
		assert_int_equal(sweep_last(g->w)->changed, 0);
		assert_int_equal(sweep_n_errors(g->w), 0);
		mads += sweep_last(g->w)->mads;
	}
	rig_equal(g);
	assert_int_equal(g->sim->asked, mads);
	return mads;
}

static void check_extended(const struct rig *g)
{
	for (uint32_t i = 0; i < g->sim->n; i++) {
		const struct sim_node *m = g->sim->nodes[i];
		const struct ib_node *n = rig_node(g, m);

		for (unsigned k = 1; k <= m->n_ports; k++)
			if (m->ports[k].to)
				assert_int_equal(node_physp(n, k)->info.ext_active2,
						 m->refuses ? 0 : SIM_EXT2);
	}
}

/* Extended speeds are asked of whom says that he has them, with not one MAD more; who
 * refuses that all the same is asked as before. */
static void test_extended(void **state)
{
	uint64_t plain, mads;
	struct rig g;

	(void)state;
	plain = swept_extended(&g, false, 0);
	assert_int_equal(g.sim->set_bit31, 0);
	rig_free(&g);
	mads = swept_extended(&g, true, 0);
	check_extended(&g);
	assert_int_equal(mads, plain);
	rig_free(&g);
	mads = swept_extended(&g, true, 5);
	check_extended(&g);
	print_message("# %lu MADs, %lu where each fifth node refuses the modifier\n",
		      (unsigned long)plain, (unsigned long)mads);
	assert_in_range(mads, plain + 1, plain + plain / 20);
	rig_free(&g);
}

/* Which ports of a switch are asked so is known before the second of them is asked. */
static void test_extended_at_once(void **state)
{
	struct rig g;

	(void)state;
	rig_new(&g);
	sim_fat_tree2(g.sim, 12, 10, 5, 2);
	for (uint32_t i = 0; i < g.sim->n; i++)
		g.sim->nodes[i]->ext = g.sim->nodes[i]->type == NODE_SWITCH;
	rig_start(&g);
	rig_full(&g);
	for (uint32_t i = 0; i < g.sim->n; i++)
		for (unsigned k = 1;
		     g.sim->nodes[i]->ext && k <= g.sim->nodes[i]->n_ports; k++)
			assert_int_equal(rig_node(&g, g.sim->nodes[i])
						 ->slots[k]
						 .info.ext_active2,
					 SIM_EXT2);
	assert_int_equal(g.sim->bad_bit31, 0);
	rig_free(&g);
}

/* The switch that this host is at. */
static struct sim_node *rig_from(const struct rig *g)
{
	return g->sim->root->ports[g->sim->root_port].to;
}

/* Broken off after so many answers. */
struct cut {
	struct sweep *w;
	int left;
};

static void break_off(struct sim *s, void *arg)
{
	struct cut *c = arg;

	if (--c->left == 0)
		sweep_abort(c->w, s->now);
}

/* A link is lost in a sweep that is broken off, at any point of it: the next one does
 * not ask over the routes of before. */
static void test_broken_off(void **state)
{
	(void)state;
	for (int left = 1; left < 120; left++) {
		struct sim_node *leaf;
		struct rig g;
		struct cut cut;
		int n;

		rig_new(&g);
		sim_fat_tree2(g.sim, 6, 2, 2, 1);
		rig_start(&g);
		rig_full(&g);
		leaf = rig_from(&g);
		for (unsigned i = 1; i <= leaf->n_ports; i++)
			if (leaf->ports[i].to && leaf->ports[i].to->type == NODE_SWITCH) {
				sim_uncable(leaf, (uint8_t)i);
				break;
			}
		sim_changed(leaf, false);
		cut = (struct cut){g.w, left};
		g.sim->heard = break_off;
		g.sim->heard_arg = &cut;
		(void)sim_sweep(g.sim, g.w, SWEEP_LATER, false);
		g.sim->heard = NULL;
		rig_later(&g);
		(void)rig_error(&g, PROBLEM_VANISHED, &n);
		assert_int_equal(n, 0);
		(void)rig_error(&g, PROBLEM_TIMEOUT, &n);
		assert_int_equal(n, 0);
		rig_equal(&g);
		rig_free(&g);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cost),
		cmocka_unit_test(test_cost_torus),
		cmocka_unit_test(test_all_in_twenty),
		cmocka_unit_test(test_few_nodes),
		cmocka_unit_test(test_moved_among_few),
		cmocka_unit_test(test_moved_with_hint),
		cmocka_unit_test(test_moved_and_cleared),
		cmocka_unit_test(test_swapped),
		cmocka_unit_test(test_uplinks_swapped),
		cmocka_unit_test(test_gone_and_back),
		cmocka_unit_test(test_leaf_dies),
		cmocka_unit_test(test_spine_dies),
		cmocka_unit_test(test_small_changes),
		cmocka_unit_test(test_second_port),
		cmocka_unit_test(test_extended),
		cmocka_unit_test(test_extended_at_once),
		cmocka_unit_test(test_broken_off),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
