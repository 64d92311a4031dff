/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Full sweeps of generated fabrics: the subnet is the model, exactly; how many MADs
 * that takes beside ibnetdiscover, how much time and memory.
 */
#include "sweep_rig.h"

#include <errno.h>

#define BYTES_EACH_MAX 3072

/* A cold sweep that finds all, and its figures. Returns the MADs. */
static uint64_t sweep_all(struct rig *g, const char *what)
{
	const struct sweep_result *r;
	struct subnet_counts c;
	uint64_t theirs = sim_ibnetdiscover_mads(g->sim);
	double ms, bytes;

	sim_forget(g->sim);
	assert_true(sim_sweep(g->sim, g->w, SWEEP_FULL, true));
	rig_equal(g);
	r = sweep_last(g->w);
	assert_int_equal(r->kind, SWEEP_FULL);
	assert_int_equal(r->mads, g->sim->asked);
	assert_int_equal(r->answers, r->mads);
	assert_int_equal(sweep_n_errors(g->w), 0);
	assert_int_equal(g->sim->set_bit31, 0);
	subnet_count(g->sub, &c);
	ms = (double)mono_sub(r->ended, r->began) / NSEC_PER_MSEC;
	bytes = (double)(c.bytes + sweep_bytes(g->w)) / sim_n_ports(g->sim);
	print_message(
		"# %-16s %5u nodes %6u ports %6u links: %6lu MADs, ibnetdiscover "
		"%6lu (%.3f), %.1f ms simulated, %.0f bytes a port, at most %u out\n",
		what, c.nodes, c.ports, c.links, (unsigned long)r->mads,
		(unsigned long)theirs, (double)r->mads / (double)theirs, ms, bytes,
		r->window_worst);
	assert_true(bytes <= BYTES_EACH_MAX || sim_n_ports(g->sim) < 10);
	return r->mads;
}

/* The fewest that can be: each link between switches is asked across once. */
static uint64_t fewest(const struct sim *s)
{
	uint32_t switches = 0;

	for (uint32_t i = 0; i < s->n; i++)
		switches += s->nodes[i]->type == NODE_SWITCH;
	return sim_ibnetdiscover_mads(s) - sim_switch_links(s) +
	       (switches ? switches - 1 : 0);
}

static void check_shape(const char *what, void (*shape)(struct sim *s),
			double ratio_max, unsigned twice_max)
{
	struct rig g;
	uint64_t mads;

	rig_new(&g);
	shape(g.sim);
	rig_start(&g);
	mads = sweep_all(&g, what);
	assert_true((double)mads <= ratio_max * (double)sim_ibnetdiscover_mads(g.sim));
	print_message("#   %lu links were asked from both sides\n",
		      (unsigned long)(mads - fewest(g.sim)));
	assert_true(mads >= fewest(g.sim));
	assert_true(mads - fewest(g.sim) <= twice_max);
	/* Not cold: the same, and nothing changes. */
	assert_true(sim_sweep(g.sim, g.w, SWEEP_FULL, false));
	rig_equal(&g);
	assert_true((double)sweep_last(g.w)->mads <= 1.01 * (double)mads);
	assert_int_equal(sweep_last(g.w)->changed, 0);
	rig_free(&g);
}

static void tree_100(struct sim *s)
{
	sim_fat_tree2(s, 8, 12, 4, 3);
}
static void tree_700(struct sim *s)
{
	sim_fat_tree2(s, 36, 18, 18, 1);
}
static void tree_1900(struct sim *s)
{
	sim_fat_tree2(s, 75, 24, 24, 1);
}
static void tree3_1900(struct sim *s)
{
	sim_fat_tree3(s, 18);
}
static void torus_even(struct sim *s)
{
	sim_torus(s, 6, 6, 4, 4);
}
static void torus_odd(struct sim *s)
{
	sim_torus(s, 5, 5, 3, 4);
}
static void mixed(struct sim *s)
{
	sim_mixed(s, 40, 300);
}
static void two_hosts(struct sim *s)
{
	struct sim_node *a = sim_add(s, NODE_CA, 1), *b = sim_add(s, NODE_CA, 2);

	sim_cable(a, 1, b, 2);
	s->root = a;
	s->root_port = 1;
	sim_lids(s);
}
static void from_switch(struct sim *s)
{
	sim_fat_tree2(s, 4, 6, 2, 2);
	s->root = s->nodes[0];
	s->root_port = 0;
}

static void test_fat_trees(void **state)
{
	(void)state;
	check_shape("tree of 100", tree_100, 0.90, 0);
	check_shape("tree of 700", tree_700, 0.90, 0);
	check_shape("tree of 1,900", tree_1900, 0.90, 0);
	check_shape("3 levels", tree3_1900, 0.90, 0);
}

static void test_other_shapes(void **state)
{
	(void)state;
	check_shape("torus 6x6x4", torus_even, 1, 0);
	check_shape("torus 5x5x3", torus_odd, 1, 60);
	check_shape("mixed", mixed, 1, 60);
	check_shape("two hosts", two_hosts, 1, 0);
	check_shape("from a switch", from_switch, 1, 0);
}

/* Wall time of the sweep's own functions, the least of some runs since others use the
 * machine too; printed, and far from what it must never be. */
static void test_cpu(void **state)
{
	struct rig g;
	int64_t least = INT64_MAX, least_later = INT64_MAX;
	uint64_t later = 0;

	(void)state;
	rig_new(&g);
	tree_1900(g.sim);
	rig_start(&g);
	for (int i = 0; i < 7; i++) {
		sim_forget(g.sim);
		assert_true(sim_sweep(g.sim, g.w, SWEEP_FULL, i < 4));
		least = MIN(least, g.sim->cpu_ns / (int64_t)sweep_last(g.w)->answers);
		sim_forget(g.sim);
		assert_true(sim_sweep(g.sim, g.w, SWEEP_LATER, false));
		later = sweep_last(g.w)->answers;
		least_later = MIN(least_later, g.sim->cpu_ns);
	}
	print_message(
		"# %ld ns an answer of a full sweep; %.2f ms for %lu answers of an "
		"incremental one, what it marks included\n",
		(long)least, (double)least_later / NSEC_PER_MSEC, (unsigned long)later);
	assert_true(least < 100 * NSEC_PER_USEC);
	rig_free(&g);
}

static void test_alone(void **state)
{
	struct rig g;

	(void)state;
	rig_new(&g);
	g.sim->root = sim_add(g.sim, NODE_CA, 2);
	g.sim->root_port = 2;
	rig_start(&g);
	assert_int_equal(sweep_progress(g.w), 0);
	/* NodeInfo, PortInfo, NodeDescription. */
	assert_int_equal(sweep_all(&g, "alone, down"), 3);
	assert_int_equal(sweep_progress(g.w), 1);
	rig_free(&g);
}

/* The same inputs, the same requests at the same times. */
static void test_same_again(void **state)
{
	uint64_t hash[2];

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct rig g;

		rig_new(&g);
		g.sim->loss_permille = 10;
		mixed(g.sim);
		rig_start(&g);
		assert_true(sim_sweep(g.sim, g.w, SWEEP_FULL, true));
		assert_true(sim_sweep(g.sim, g.w, SWEEP_LATER, false));
		hash[i] = g.sim->hash;
		rig_free(&g);
	}
	assert_true(hash[0] == hash[1]);
}

/* Tables of all ports, and of one port that somebody wants. */
static void test_tables(void **state)
{
	struct physp *p;
	struct rig g;

	(void)state;
	rig_new(&g);
	tree_100(g.sim);
	rig_start(&g);
	(void)sweep_all(&g, "no tables");
	for (uint32_t i = 0; i < g.sim->n; i++)
		assert_null(subnet_node_by_guid(g.sub, g.sim->nodes[i]->guid)
				    ->slots[1]
				    .qos);

	p = node_physp(subnet_node_by_guid(g.sub, g.sim->nodes[0]->guid), 5);
	sweep_want_tables(g.w, p);
	sim_forget(g.sim);
	assert_true(sim_sweep(g.sim, g.w, SWEEP_LATER, false));
	assert_true(sim_tables_equal(g.sim->nodes[0], p));
	assert_int_equal(g.sim->by_attr[SWEEP_PKEYS], 1);
	assert_int_equal(g.sim->by_attr[SWEEP_SLVL], g.sim->nodes[0]->n_ports + 1);
	assert_int_equal(g.sim->by_attr[SWEEP_VLARB], 3);
	sim_forget(g.sim);
	assert_true(sim_sweep(g.sim, g.w, SWEEP_LATER, false));
	assert_int_equal(g.sim->by_attr[SWEEP_PKEYS], 0);

	g.o.tables = true;
	sweep_set_options(g.w, &g.o);
	g.sim->nodes[1]->no_tables = true;
	assert_true(sim_sweep(g.sim, g.w, SWEEP_FULL, false));
	for (uint32_t i = 0; i < g.sim->n; i++) {
		const struct ib_node *n =
			subnet_node_by_guid(g.sub, g.sim->nodes[i]->guid);

		for (unsigned k = 0; k <= n->info.num_ports; k++)
			if (node_physp(n, k) && i != 1)
				assert_true(sim_tables_equal(g.sim->nodes[i],
							     &n->slots[k]));
	}
	/* A node that answers them with an error is named once, and all else is known.
	 */
	assert_int_equal(sweep_n_errors(g.w), 1);
	assert_int_equal(sweep_error_at(g.w, 0)->problem, PROBLEM_BAD_STATUS);
	assert_string_equal(sweep_error_at(g.w, 0)->desc, g.sim->nodes[1]->desc);
	rig_equal(&g);
	rig_free(&g);
}

/* One agent answers one after the other, and is given few at a time. */
static void look_at_targets(struct sim *s, void *arg)
{
	int *busiest = arg;

	for (uint32_t i = 0; i < s->n; i++) {
		int64_t ahead = mono_sub(s->nodes[i]->busy, s->now) / s->serve_ns;

		*busiest = MAX(*busiest, (int)ahead);
	}
}

static void test_targets(void **state)
{
	int busiest = 0;
	struct rig g;

	(void)state;
	rig_new(&g);
	tree_100(g.sim);
	rig_start(&g);
	g.sim->hook = look_at_targets;
	g.sim->hook_arg = &busiest;
	(void)sweep_all(&g, "queues");
	print_message("# at most %d requests at one agent\n", busiest);
	assert_true(busiest >= 4);
	/* Its own attributes, and NodeInfo from its neighbours. */
	assert_true(busiest <= g.o.per_target + 12);
	rig_free(&g);
}

static void test_life(void **state)
{
	struct sweep_request q;
	struct sweep_answer a = {.status = SWEEP_TIMEOUT};
	struct rig g;

	(void)state;
	rig_new(&g);
	tree_100(g.sim);
	rig_start(&g);
	assert_false(sweep_running(g.w));
	assert_false(sweep_next(g.w, g.sim->now, &q));
	assert_false(mono_is_set(sweep_deadline(g.w)));
	assert_int_equal(sweep_start(g.w, SWEEP_NONE, false, g.sim->now), -EINVAL);
	assert_int_equal(sweep_start(g.w, SWEEP_LATER, false, g.sim->now), 0);
	assert_int_equal(sweep_present(g.w)->kind, SWEEP_FULL); /* nothing is known */
	assert_int_equal(sweep_start(g.w, SWEEP_FULL, false, g.sim->now), -EBUSY);
	assert_true(sweep_next(g.w, g.sim->now, &q));
	assert_int_equal(q.attr, SWEEP_NODE_INFO);
	assert_int_equal(q.hops, 0);
	assert_false(sweep_next(g.w, g.sim->now, &q));
	assert_true(mono_is_set(sweep_deadline(g.w)));
	sweep_abort(g.w, g.sim->now);
	assert_false(sweep_running(g.w));
	a.id = q.id;
	assert_false(sweep_answer(g.w, g.sim->now, &a));
	(void)sweep_all(&g, "after an abort");
	assert_null(sweep_free(NULL));
	rig_free(&g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fat_trees),  cmocka_unit_test(test_other_shapes),
		cmocka_unit_test(test_cpu),	   cmocka_unit_test(test_alone),
		cmocka_unit_test(test_same_again), cmocka_unit_test(test_tables),
		cmocka_unit_test(test_targets),	   cmocka_unit_test(test_life),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
