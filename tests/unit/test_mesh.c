/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>

#include "mesh.h"

#define RAILS_MAX 40

static struct addr addrs[4 * RAILS_MAX];
static int n_addrs;

/* "0=10.0.0.1 0=fd00::1 1=!10.0.0.2": ! is one that must not be probed. */
static int rails(const char *text, struct mesh_addr *ret, char labels[][16])
{
	char word[64];
	int n = 0, used;

	while (sscanf(text, "%63s%n", word, &used) == 1) {
		char *ip = strchr(word, '=') + 1;
		bool unfit = *ip == '!';

		ip[-1] = '\0';
		(void)str_copy(labels[n], 16, word);
		assert_int_equal(addr_parse(ip + unfit, &addrs[n_addrs], NULL), 0);
		ret[n] = (struct mesh_addr){labels[n], &addrs[n_addrs++], unfit};
		n++;
		text += used;
	}
	return n;
}

/* @probes: "10.0.0.1>10.0.0.2 ->10.0.0.3". @want: the pairs, likewise. */
static void check(enum mesh_mode mode, const char *own, const char *told, const char *probes,
		  const char *want)
{
	struct mesh_addr o[RAILS_MAX], t[RAILS_MAX];
	char lo[RAILS_MAX][16], lt[RAILS_MAX][16], got[4096] = "", word[128];
	struct mesh_pair pairs[MESH_PAIRS_MAX];
	struct mesh_probe p[8];
	int n_own, n_told, n_probes = 0, used, n;

	n_addrs = 0;
	n_own = rails(own, o, lo);
	n_told = rails(told, t, lt);
	while (sscanf(probes, "%127s%n", word, &used) == 1) {
		char *to = strchr(word, '>') + 1;

		to[-1] = '\0';
		p[n_probes] = (struct mesh_probe){0};
		if (word[0] != '-')
			assert_int_equal(addr_parse(word, &p[n_probes].own, NULL), 0);
		assert_int_equal(addr_parse(to, &p[n_probes++].remote, NULL), 0);
		probes += used;
	}
	n = mesh_pairs(mode, o, n_own, t, n_told, p, n_probes, pairs);
	for (int i = 0; i < n; i++) {
		char a[ADDR_TEXT_MAX], b[ADDR_TEXT_MAX];

		str_append(got, sizeof(got), "%s%s>%s", i ? " " : "",
			   addr_format(o[pairs[i].own].addr, a),
			   addr_format(t[pairs[i].told].addr, b));
	}
	assert_string_equal(got, want);
}

#define OWN  "0=10.0.0.1 1=10.1.0.1 2=10.2.0.1"
#define TOLD "0=10.0.0.2 1=10.1.0.2 2=10.2.0.2"

static void rail_to_rail(void **state)
{
	(void)state;
	check(MESH_RAIL, OWN, TOLD, "", "10.0.0.1>10.0.0.2 10.1.0.1>10.1.0.2 10.2.0.1>10.2.0.2");
	/* what the config probes is not probed again, from wherever */
	check(MESH_RAIL, OWN, TOLD, "10.0.0.1>10.0.0.2", "10.1.0.1>10.1.0.2 10.2.0.1>10.2.0.2");
	check(MESH_RAIL, OWN, TOLD, "->10.2.0.2 10.0.0.1>10.1.0.2", "10.0.0.1>10.0.0.2");
	/* an address that is not told covers none */
	check(MESH_RAIL, "a=10.0.0.1", "a=10.0.0.2", "192.0.2.1>192.0.2.2",
	      "10.0.0.1>10.0.0.2");
	check(MESH_RAIL, "b=10.1.0.1 a=10.0.0.1", "a=10.0.0.2 b=10.1.0.2", "",
	      "10.0.0.1>10.0.0.2 10.1.0.1>10.1.0.2");
	/* a rail that only one of them has */
	check(MESH_RAIL, "a=10.0.0.1 b=10.1.0.1", "b=10.1.0.2 c=10.2.0.2", "",
	      "10.1.0.1>10.1.0.2");
}

static void by_place_where_labels_differ(void **state)
{
	(void)state;
	check(MESH_RAIL, "mlx5_2/1=10.0.0.1 mlx5_10/1=10.1.0.1",
	      "rocep1/1=10.0.0.2 rocep2/1=10.1.0.2 rocep3/1=10.2.0.2", "",
	      "10.0.0.1>10.0.0.2 10.1.0.1>10.1.0.2");
}

static void full(void **state)
{
	(void)state;
	check(MESH_FULL, "a=10.0.0.1 b=10.1.0.1", "a=10.0.0.2 c=10.2.0.2", "",
	      "10.0.0.1>10.0.0.2 10.1.0.1>10.0.0.2 10.0.0.1>10.2.0.2 10.1.0.1>10.2.0.2");
	check(MESH_FULL, "a=10.0.0.1 b=10.1.0.1", "a=10.0.0.2 c=10.2.0.2",
	      "10.1.0.1>10.0.0.2", "10.0.0.1>10.0.0.2 10.0.0.1>10.2.0.2 10.1.0.1>10.2.0.2");
	/* from where is not known: it may be any */
	check(MESH_FULL, "a=10.0.0.1", "a=10.0.0.2", "->10.0.0.2", "10.0.0.1>10.0.0.2");
}

static void none(void **state)
{
	(void)state;
	check(MESH_NONE, OWN, TOLD, "", "");
	check(MESH_RAIL, "", TOLD, "", "");
	check(MESH_FULL, OWN, "", "", "");
}

static void families(void **state)
{
	(void)state;
	check(MESH_RAIL, "0=fd00::1 0=10.0.0.1", "0=fd00::2 0=10.0.0.2", "", "10.0.0.1>10.0.0.2");
	check(MESH_RAIL, "0=fd00::1 0=10.0.0.1", "0=fd00::2", "", "fd00::1>fd00::2");
	check(MESH_RAIL, "0=10.0.0.1", "0=fd00::2", "", "");
	/* by whichever address the config probes the rail */
	check(MESH_RAIL, "0=fd00::1 0=10.0.0.1", "0=fd00::2 0=10.0.0.2", "->fd00::2", "");
}

static void unfit_addresses_are_left(void **state)
{
	(void)state;
	check(MESH_RAIL, "0=10.0.0.1 1=10.1.0.1", "0=!10.0.0.2 0=10.0.0.3 1=!10.1.0.2", "",
	      "10.0.0.1>10.0.0.3");
	check(MESH_FULL, "0=10.0.0.1 1=10.1.0.1", "0=!10.0.0.2", "", "");
}

static void pairs_end_somewhere(void **state)
{
	static struct mesh_addr own[RAILS_MAX], told[RAILS_MAX];
	static char labels[RAILS_MAX][8];
	struct mesh_pair pairs[MESH_PAIRS_MAX];
	static struct addr a = {.family = 4, .ip = {10}};

	(void)state;
	for (int i = 0; i < RAILS_MAX; i++) {
		(void)snprintf(labels[i], sizeof(labels[i]), "%d", i);
		own[i] = told[i] = (struct mesh_addr){labels[i], &a, false};
	}
	assert_int_equal(mesh_pairs(MESH_FULL, own, RAILS_MAX, told, RAILS_MAX, NULL, 0, pairs),
			 MESH_PAIRS_MAX);
	assert_int_equal(mesh_pairs(MESH_RAIL, own, RAILS_MAX, told, RAILS_MAX, NULL, 0, pairs),
			 RAILS_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rail_to_rail),
		cmocka_unit_test(by_place_where_labels_differ),
		cmocka_unit_test(full),
		cmocka_unit_test(none),
		cmocka_unit_test(families),
		cmocka_unit_test(unfit_addresses_are_left),
		cmocka_unit_test(pairs_end_somewhere),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
