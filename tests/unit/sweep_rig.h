/* SPDX-License-Identifier: BSD-2-Clause */
/* sweep_rig.h - a fabric, what is known of it, and the sweep: what tests begin with. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "sim_fabric.h"

struct rig {
	struct sim *sim;
	struct subnet *sub;
	struct sweep_options o;
	struct sweep *w; /* made by rig_start(), when the fabric is there */
};

static inline void rig_new(struct rig *g)
{
	*g = (struct rig){.sim = sim_new(1), .sub = subnet_new()};
	sweep_options_default(&g->o);
}

static inline void rig_start(struct rig *g)
{
	g->w = sweep_new(g->sub, g->sim->root_port, &g->o);
}

static inline void rig_free(struct rig *g)
{
	sweep_free(g->w);
	subnet_free(g->sub);
	sim_free(g->sim);
}

static inline void rig_print_errors(const struct rig *g, int most)
{
	for (int i = 0; i < sweep_n_errors(g->w) && i < most; i++) {
		const struct sweep_error *e = sweep_error_at(g->w, i);

		print_message("#   %s %s: %s\n",
			      enum_name(&sweep_problem_names, e->problem), e->desc,
			      e->why);
	}
}

/* The subnet is the model. */
static inline void rig_equal(const struct rig *g)
{
	char why[200] = "";

	if (!sim_equal(g->sim, g->sub, why, sizeof(why))) {
		rig_print_errors(g, 10);
		fail_msg("%s", why);
	}
}

static inline void rig_full(struct rig *g)
{
	assert_true(sim_sweep(g->sim, g->w, SWEEP_FULL, false));
}

static inline void rig_later(struct rig *g)
{
	assert_true(sim_sweep(g->sim, g->w, SWEEP_LATER, false));
	assert_int_equal(sweep_last(g->w)->kind, SWEEP_LATER);
}

/* The first error of that kind, or NULL; *ret_n: how many. */
static inline const struct sweep_error *rig_error(const struct rig *g,
						  enum sweep_problem what, int *ret_n)
{
	const struct sweep_error *found = NULL;
	int n = 0;

	for (int i = 0; i < sweep_n_errors(g->w); i++) {
		const struct sweep_error *e = sweep_error_at(g->w, i);

		if (e->problem != what)
			continue;
		found = found ? found : e;
		n++;
	}
	if (ret_n)
		*ret_n = n;
	return found;
}

static inline struct ib_node *rig_node(const struct rig *g, const struct sim_node *m)
{
	return subnet_node_by_guid(g->sub, m->guid);
}
