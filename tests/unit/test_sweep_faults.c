/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What goes wrong: dead targets, loss, protection, GUIDs twice, loops, limits; and the
 * window and the budget that all of it goes through.
 */
#include "sweep_rig.h"

#include <stdio.h>
#include <stdlib.h>

#define SEQUENCE_MS 750 /* 50 + 100 + 200 + 400 */

static int by_route(const void *pa, const void *pb)
{
	const struct sweep_error *a = *(const struct sweep_error *const *)pa;
	const struct sweep_error *b = *(const struct sweep_error *const *)pb;

	return a->hops != b->hops ? a->hops - b->hops
				  : memcmp(a->path, b->path, a->hops + 1);
}

/* No two errors of one route. */
static void check_once_each(const struct rig *g)
{
	int n = sweep_n_errors(g->w);
	const struct sweep_error **e = xcalloc((size_t)n, sizeof(struct sweep_error *));

	for (int i = 0; i < n; i++)
		e[i] = sweep_error_at(g->w, i);
	qsort(e, (size_t)n, sizeof(struct sweep_error *), by_route);
	for (int i = 1; i < n; i++) {
		if (by_route(&e[i - 1], &e[i]) != 0)
			continue;
		print_message("# %s %s: %s\n",
			      enum_name(&sweep_problem_names, e[i - 1]->problem),
			      e[i - 1]->desc, e[i - 1]->why);
		fail_msg("%s %s: %s", enum_name(&sweep_problem_names, e[i]->problem),
			 e[i]->desc, e[i]->why);
	}
	free(e);
}

static double took_ms(const struct rig *g)
{
	const struct sweep_result *r = sweep_last(g->w);

	return (double)mono_sub(r->ended, r->began) / NSEC_PER_MSEC;
}

/* Kill that many nodes, but not the host and its leaf. */
static void kill(struct sim *s, uint32_t n)
{
	while (n) {
		struct sim_node *m = s->nodes[sim_draw(s) % s->n];

		if (m->dead || m == s->root || m == s->root->ports[1].to)
			continue;
		m->dead = true;
		n--;
	}
}

static void dead_targets(unsigned permille, unsigned seed)
{
	struct rig g;
	uint32_t ends, n;
	double healthy;

	rig_new(&g);
	g.sim->rnd = seed;
	sim_fat_tree2(g.sim, 75, 24, 24, 1);
	rig_start(&g);
	rig_full(&g);
	healthy = took_ms(&g);
	n = g.sim->n * permille / 1000;
	kill(g.sim, n);
	ends = sim_dead_ends(g.sim);
	sim_forget(g.sim);
	assert_true(sim_sweep(g.sim, g.w, SWEEP_FULL, true));
	rig_equal(&g);
	check_once_each(&g);
	print_message(
		"# %u of 1,899 nodes dead, %u links lead to them: %.1f ms, healthy "
		"%.1f ms + one sequence %d ms; %d errors, at most %u out\n",
		n, ends, took_ms(&g), healthy, SEQUENCE_MS, sweep_n_errors(g.w),
		sweep_last(g.w)->window_worst);
	assert_int_equal(sweep_n_errors(g.w), ends);
	for (int i = 0; i < sweep_n_errors(g.w); i++) {
		assert_int_equal(sweep_error_at(g.w, i)->problem, PROBLEM_TIMEOUT);
		assert_non_null(strstr(sweep_error_at(g.w, i)->why,
				       "no answer to 4 tries in 750 ms"));
	}
	assert_true(took_ms(&g) <= healthy + SEQUENCE_MS);
	rig_free(&g);
}

static void test_dead(void **state)
{
	(void)state;
	for (unsigned seed = 1; seed <= 6; seed++) {
		dead_targets(10, seed);
		dead_targets(100, seed);
	}
}

/* Known nodes that died since: in an incremental sweep too they wait side by side, and
 * those that are known to be silent cost one try each. */
static void test_dead_later(void **state)
{
	struct rig g;
	double worst = 0;

	(void)state;
	rig_new(&g);
	sim_fat_tree2(g.sim, 36, 18, 18, 1);
	rig_start(&g);
	rig_full(&g);
	for (uint32_t i = 20; i < g.sim->n; i += 9)
		g.sim->nodes[i]->dead = g.sim->nodes[i]->type == NODE_CA;
	for (int i = 0; i < 25; i++) {
		rig_later(&g);
		check_once_each(&g);
		worst = MAX(worst, took_ms(&g));
	}
	rig_equal(&g);
	assert_int_equal(sweep_n_errors(g.w), sim_dead_ends(g.sim));
	print_message(
		"# %u dead hosts, 25 incremental sweeps: the longest %.1f ms, the last "
		"%lu MADs\n",
		sim_dead_ends(g.sim), worst, (unsigned long)sweep_last(g.w)->mads);
	assert_true(worst <= 2 * SEQUENCE_MS + 100);
	rig_free(&g);
}

/* A switch dies in the middle of a sweep, earlier or later. */
struct death {
	struct sim_node *who;
	uint64_t at;
};
static void die_soon(struct sim *s, void *arg)
{
	const struct death *d = arg;

	if (s->asked == d->at)
		d->who->dead = true;
}

static void test_dies_in_the_middle(void **state)
{
	int noticed = 0;

	(void)state;
	for (uint64_t at = 40; at < 900; at += 60) {
		struct death d = {.at = at};
		struct rig g;

		rig_new(&g);
		sim_fat_tree2(g.sim, 12, 10, 5, 2);
		rig_start(&g);
		rig_full(&g);
		d.who = g.sim->nodes[12 * 11 + 1]; /* a spine */
		g.sim->hook = die_soon;
		g.sim->hook_arg = &d;
		sim_forget(g.sim);
		rig_full(&g);
		check_once_each(&g);
		g.sim->hook = NULL;
		if (sweep_n_errors(g.w) > 0) {
			noticed++;
			assert_null(rig_node(&g, d.who));
			assert_true(took_ms(&g) >= SEQUENCE_MS);
			assert_true(took_ms(&g) <= 2 * SEQUENCE_MS + 10);
		}
		rig_later(&g);
		rig_equal(&g);
		rig_free(&g);
	}
	print_message("# %d of 15 noticed in the same sweep\n", noticed);
	assert_true(noticed >= 3);
}

/* ---- the window and the budget ---- */

static void test_loss(void **state)
{
	struct rig g;

	(void)state;
	rig_new(&g);
	sim_fat_tree2(g.sim, 12, 10, 5, 2);
	rig_start(&g);
	g.sim->loss_permille = 20;
	rig_full(&g);
	print_message("# 2 %% lost: %lu MADs, %lu timeouts, %.1f ms, %d errors\n",
		      (unsigned long)sweep_last(g.w)->mads,
		      (unsigned long)sweep_last(g.w)->timeouts, took_ms(&g),
		      sweep_n_errors(g.w));
	assert_int_equal(sweep_n_errors(g.w), 0);
	rig_equal(&g);
	rig_free(&g);
}

struct look {
	struct sweep *w;
	uint32_t worst_early, worst_late, from;
};
static void look_at_window(struct sim *s, void *arg)
{
	struct look *l = arg;

	if (s->asked < 20)
		l->worst_early = MAX(l->worst_early, s->out);
	else if (s->asked > l->from)
		l->worst_late = MAX(l->worst_late, s->out);
}

/* Grows with answers; shrinks when what is there does not answer. */
static void test_window(void **state)
{
	struct look l = {.from = 500};
	struct rig g;

	(void)state;
	rig_new(&g);
	sim_fat_tree2(g.sim, 12, 10, 5, 2);
	rig_start(&g);
	l.w = g.w;
	g.sim->hook = look_at_window;
	g.sim->hook_arg = &l;
	rig_full(&g);
	print_message("# window: %u in the beginning, then %u\n", l.worst_early,
		      l.worst_late);
	assert_true(l.worst_early <= 20);
	assert_true(l.worst_late >= 40 && l.worst_late <= 2 * g.o.window_max);

	/* With much loss there is less out that is fresh. */
	sim_forget(g.sim);
	l = (struct look){.from = 500};
	g.sim->loss_permille = 300;
	g.o.suspect_max = 16;
	sweep_set_options(g.w, &g.o);
	rig_full(&g);
	print_message("# window at 30 %% loss: %u\n", l.worst_late);
	assert_true(l.worst_late <= 44);
	rig_free(&g);
}

/* Everything pauses for a while: no flood of requests meanwhile, nor after. */
static void pause_soon(struct sim *s, void *arg)
{
	(void)arg;
	if (s->asked % 300 == 200)
		s->pause = mono_add(s->now, 20 * NSEC_PER_MSEC);
}

static void test_pause(void **state)
{
	struct rig g;

	(void)state;
	rig_new(&g);
	sim_fat_tree2(g.sim, 36, 18, 18, 1);
	rig_start(&g);
	g.sim->hook = pause_soon;
	rig_full(&g);
	rig_equal(&g);
	print_message("# pauses of 20 ms: at most %u out, %lu timeouts, %.1f ms\n",
		      sweep_last(g.w)->window_worst,
		      (unsigned long)sweep_last(g.w)->timeouts, took_ms(&g));
	assert_true(sweep_last(g.w)->window_worst <= 3 * g.o.window_max);
	assert_int_equal(sweep_last(g.w)->timeouts, 0);
	rig_free(&g);
}

static void test_budget(void **state)
{
	struct rig g;
	double first;

	(void)state;
	rig_new(&g);
	g.o.mads_per_sec = 500;
	sim_fat_tree2(g.sim, 12, 10, 5, 2);
	rig_start(&g);
	rig_full(&g);
	rig_equal(&g);
	first = took_ms(&g);
	/* A second's worth at once, the rest at its pace. */
	print_message("# %lu MADs at 500/s: %.1f ms\n",
		      (unsigned long)sweep_last(g.w)->mads, first);
	assert_true(first >= ((double)sweep_last(g.w)->mads - 500) * 2 - 10);
	assert_true(first <= ((double)sweep_last(g.w)->mads - 500) * 2 + 50);
	rig_free(&g);
}

/* The caller never comes back with an answer: the second belt. */
static void test_second_belt(void **state)
{
	struct sweep_request q;
	struct mono now = {NSEC_PER_SEC};
	struct rig g;
	int asked = 0;

	(void)state;
	rig_new(&g);
	sim_fat_tree2(g.sim, 2, 2, 1, 1);
	rig_start(&g);
	assert_int_equal(sweep_start(g.w, SWEEP_FULL, false, now), 0);
	while (sweep_running(g.w)) {
		while (sweep_next(g.w, now, &q))
			asked++;
		if (!sweep_running(g.w))
			break;
		assert_true(sweep_deadline(g.w).ns > now.ns);
		now = sweep_deadline(g.w);
		sweep_tick(g.w, now);
	}
	assert_int_equal(asked, 4);
	assert_int_equal(now.ns, NSEC_PER_SEC + 4 * NSEC_PER_SEC + 750 * NSEC_PER_MSEC);
	assert_int_equal(sweep_n_errors(g.w), 1);
	assert_int_equal(sweep_error_at(g.w, 0)->hops, 0);
	rig_free(&g);
}

/* ---- oddities ---- */

static void test_protected(void **state)
{
	struct sim_node *host;
	const struct sweep_error *e;
	struct rig g;
	int n, knocks;

	(void)state;
	rig_new(&g);
	sim_fat_tree2(g.sim, 12, 10, 5, 2);
	rig_start(&g);
	host = g.sim->nodes[25];
	host->protect = 2;
	rig_full(&g);
	rig_equal(&g);
	host->keyed = true;
	rig_full(&g);
	e = rig_error(&g, PROBLEM_PROTECTED, &n);
	assert_int_equal(n, 1);
	assert_string_equal(e->desc, host->desc);
	assert_int_equal(sweep_n_errors(g.w), 1);
	/* It stays, and is left alone but for one NodeInfo in 20 sweeps. */
	rig_equal(&g);
	sim_forget(g.sim);
	knocks = 0;
	for (int i = 0; i < 20; i++) {
		uint64_t before = sweep_last(g.w)->timeouts;

		assert_true(
			sim_sweep(g.sim, g.w, i % 4 ? SWEEP_LATER : SWEEP_FULL, false));
		(void)rig_error(&g, PROBLEM_PROTECTED, &n);
		assert_int_equal(n, 1);
		assert_int_equal(sweep_n_errors(g.w), 1);
		assert_true(rig_node(&g, host)->flags & NODE_PROTECTED);
		knocks += sweep_last(g.w)->timeouts > 0;
		(void)before;
	}
	print_message("# protected host: knocked at in %d of 20 sweeps\n", knocks);
	assert_int_equal(knocks, 1);
	host->keyed = false;
	for (int i = 0; i < 20; i++)
		rig_later(&g);
	assert_false(rig_node(&g, host)->flags & NODE_PROTECTED);
	assert_int_equal(sweep_n_errors(g.w), 0);
	rig_free(&g);
}

/* What PortInfo told may have been another's, whose LID it is: whichever of the two. */
static void test_protected_in_doubt(void **state)
{
	struct sim_node *hosts[2];
	struct rig g;
	int n;

	(void)state;
	for (int dies = 0; dies < 2; dies++) {
		rig_new(&g);
		sim_fat_tree2(g.sim, 12, 10, 5, 2);
		rig_start(&g);
		hosts[0] = g.sim->nodes[25];
		hosts[1] = g.sim->nodes[60];
		hosts[0]->protect = hosts[1]->protect = 2;
		hosts[0]->ports[1].lid = hosts[1]->ports[1].lid;
		rig_full(&g);
		(void)rig_error(&g, PROBLEM_DUPLICATE_LID, &n);
		assert_int_equal(n, 1);
		hosts[dies]->dead = true;
		rig_full(&g);
		(void)rig_error(&g, PROBLEM_PROTECTED, &n);
		assert_int_equal(n, 0);
		assert_null(rig_node(&g, hosts[dies]));
		rig_free(&g);
	}
}

/* A switch has the GUID of a host for a while: when that is over, each has its own
 * after as many sweeps as all is read again in, whoever has its turn first. */
static void test_duplicate_ends(void **state)
{
	char why[200];
	int worst = 0;

	(void)state;
	for (uint32_t i = 0; i < 120; i++) {
		struct sim_node *sw, *host;
		uint64_t guid;
		struct rig g;
		int n = 0;

		rig_new(&g);
		sim_fat_tree2(g.sim, 12, 10, 5, 2);
		rig_start(&g);
		host = g.sim->nodes[g.sim->n - 1 - i];
		sw = g.sim->nodes[7];
		for (uint32_t k = 0; k < g.sim->n; k++)
			if (g.sim->nodes[k]->type == NODE_SWITCH && k % 12 == i % 12)
				sw = g.sim->nodes[k];
		if (host->type != NODE_CA || sw->type != NODE_SWITCH ||
		    host == g.sim->root) {
			rig_free(&g);
			continue;
		}
		guid = sw->guid;
		sw->guid = host->guid;
		rig_full(&g);
		sw->guid = guid;
		while (n < 21 && !sim_equal(g.sim, g.sub, why, sizeof(why))) {
			assert_true(sim_sweep(g.sim, g.w, SWEEP_LATER, false));
			n++;
		}
		rig_equal(&g);
		worst = MAX(worst, n);
		rig_free(&g);
	}
	print_message("# a GUID that was there twice: right after %d sweeps\n", worst);
}

/* Two hosts of one GUID: the first stays, the second is named. */
static void test_duplicate(void **state)
{
	struct sim_node *a, *b;
	const struct sweep_error *e;
	struct ib_node *n;
	struct rig g;
	int many;

	(void)state;
	rig_new(&g);
	sim_fat_tree2(g.sim, 12, 10, 5, 2);
	rig_start(&g);
	a = g.sim->nodes[25];
	b = g.sim->nodes[60];
	b->guid = a->guid;
	rig_full(&g);
	rig_print_errors(&g, 5);
	e = rig_error(&g, PROBLEM_DUPLICATE_GUID, &many);
	assert_int_equal(many, 1);
	assert_int_equal(e->node_guid, a->guid);
	n = rig_node(&g, a);
	assert_true(n->flags & NODE_DUPLICATE);
	assert_int_equal(sweep_last(g.w)->mads, sweep_last(g.w)->answers);
	for (int i = 0; i < 20; i++) {
		rig_later(&g);
		(void)rig_error(&g, PROBLEM_DUPLICATE_GUID, &many);
		assert_int_equal(many, 1);
		assert_ptr_equal(rig_node(&g, a), n);
		(void)rig_error(&g, PROBLEM_MOVED, &many);
		assert_int_equal(many, 0);
	}
	/* One of them is repaired. */
	b->guid = 0x1234500;
	for (int i = 0; i < 20; i++)
		rig_later(&g);
	rig_equal(&g);
	assert_int_equal(sweep_n_errors(g.w), 0);
	rig_free(&g);
}

/* The same with switches, of which the second has other links. */
static void test_duplicate_switch(void **state)
{
	struct rig g;
	int many;

	(void)state;
	rig_new(&g);
	sim_fat_tree2(g.sim, 6, 4, 3, 1);
	rig_start(&g);
	g.sim->nodes[5 * 4]->guid = g.sim->nodes[5 * 2]->guid;
	rig_full(&g);
	rig_print_errors(&g, 5);
	(void)rig_error(&g, PROBLEM_DUPLICATE_GUID, &many);
	assert_true(many >= 1);
	assert_true(rig_node(&g, g.sim->nodes[10])->flags & NODE_DUPLICATE);
	rig_free(&g);
}

static void test_duplicate_lid(void **state)
{
	const struct sweep_error *e;
	struct rig g;
	int many;

	(void)state;
	rig_new(&g);
	sim_fat_tree2(g.sim, 3, 4, 2, 1);
	g.sim->nodes[3]->ports[1].lid = g.sim->nodes[8]->ports[1].lid;
	rig_start(&g);
	rig_full(&g);
	e = rig_error(&g, PROBLEM_DUPLICATE_LID, &many);
	assert_int_equal(many, 1);
	assert_non_null(strstr(e->why, g.sim->nodes[3]->desc));
	rig_free(&g);
}

/* A plug in a port, and a cable between two ports of one switch. */
static void test_loops(void **state)
{
	struct sim_node *sw;
	struct physp *p;
	struct rig g;
	int many;

	(void)state;
	rig_new(&g);
	sim_fat_tree2(g.sim, 3, 4, 2, 2);
	sw = g.sim->nodes[5];
	for (uint8_t i = 1; i <= 3; i++)
		sim_uncable(sw, i);
	sw->ports[1].to = sw;
	sw->ports[1].to_port = 1;
	sim_cable(sw, 2, sw, 3);
	rig_start(&g);
	for (int i = 0; i < 2; i++) {
		rig_full(&g);
		rig_equal(&g);
		(void)rig_error(&g, PROBLEM_LOOPED, &many);
		assert_int_equal(many, 2);
		p = node_physp(rig_node(&g, sw), 1);
		assert_ptr_equal(p->remote, p);
	}
	sim_uncable(sw, 1);
	sim_changed(sw, false);
	rig_later(&g);
	rig_equal(&g);
	rig_free(&g);
}

static void test_limit(void **state)
{
	struct subnet_counts c;
	struct rig g;
	int many;

	(void)state;
	rig_new(&g);
	g.o.max_nodes = 20;
	sim_fat_tree2(g.sim, 6, 4, 3, 1);
	rig_start(&g);
	rig_full(&g);
	subnet_count(g.sub, &c);
	assert_int_equal(c.nodes, 20);
	(void)rig_error(&g, PROBLEM_LIMIT, &many);
	assert_int_equal(many, 1);
	rig_free(&g);
}

/* A chain of switches, longer than a directed route. */
static void test_long_chain(void **state)
{
	struct sim_node *last = NULL;
	struct subnet_counts c;
	struct rig g;

	(void)state;
	rig_new(&g);
	for (int i = 0; i < 70; i++) {
		struct sim_node *sw = sim_add(g.sim, NODE_SWITCH, 2);

		if (last)
			sim_cable(last, 2, sw, 1);
		last = sw;
	}
	g.sim->root = g.sim->nodes[0];
	g.sim->root_port = 0;
	sim_lids(g.sim);
	rig_start(&g);
	rig_full(&g);
	subnet_count(g.sub, &c);
	assert_int_equal(c.nodes, IB_HOPS_MAX + 1);
	rig_later(&g);
	subnet_count(g.sub, &c);
	assert_int_equal(c.nodes, IB_HOPS_MAX + 1);
	rig_free(&g);
}

/* Hardware with fewer ports answers with the GUID while the tables of its many are read. */
static void test_fewer_ports(void **state)
{
	struct sim_node *leaf;
	struct rig g;

	(void)state;
	rig_new(&g);
	g.o.tables = true;
	sim_fat_tree2(g.sim, 3, 2, 2, 1);
	leaf = g.sim->root->ports[1].to->ports[4].to->ports[3].to;
	leaf->n_ports = 60;
	rig_start(&g);
	rig_full(&g);
	rig_equal(&g);
	leaf->n_ports = 4;
	rig_full(&g);
	rig_full(&g);
	rig_equal(&g);
	rig_free(&g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_dead),
		cmocka_unit_test(test_dead_later),
		cmocka_unit_test(test_dies_in_the_middle),
		cmocka_unit_test(test_loss),
		cmocka_unit_test(test_window),
		cmocka_unit_test(test_pause),
		cmocka_unit_test(test_budget),
		cmocka_unit_test(test_second_belt),
		cmocka_unit_test(test_protected),
		cmocka_unit_test(test_protected_in_doubt),
		cmocka_unit_test(test_duplicate_ends),
		cmocka_unit_test(test_duplicate),
		cmocka_unit_test(test_duplicate_switch),
		cmocka_unit_test(test_duplicate_lid),
		cmocka_unit_test(test_loops),
		cmocka_unit_test(test_limit),
		cmocka_unit_test(test_long_chain),
		cmocka_unit_test(test_fewer_ports),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
