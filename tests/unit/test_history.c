/* SPDX-License-Identifier: BSD-2-Clause */
/* The last changes: kept, counted when alike, found by name and by age. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>

#include "history.h"
#include "idl.h"
#include "render.h"
#include "varlink.h"

#define SEC NSEC_PER_SEC

static const struct render_time now = {.now = {10000 * SEC},
				       .wall_ns = INT64_C(1796071267118000000)};

static struct mono at(double sec)
{
	return (struct mono){(int64_t)(sec * 1e9)};
}

static const char *text(const json_t *o, const char *key)
{
	return json_string_value(json_object_get(o, key));
}

static int number(const json_t *o, const char *key)
{
	return (int)json_integer_value(json_object_get(o, key));
}

static void assert_fits(const json_t *o)
{
	json_t *idl = idl_parse(varlink_idl_fabd);
	char why[256];

	assert_non_null(idl);
	if (idl_check(idl, idl_type(idl, "Change"), o, why, sizeof(why)) < 0)
		fail_msg("Change: %s", why);
	json_decref(idl);
}

static int setup(void **state)
{
	*state = history_new();
	return 0;
}

static int teardown(void **state)
{
	history_free(*state);
	return 0;
}

static void add_conns(struct history *h, double sec, int first, int n, const char *to,
		      const char *held_by)
{
	char key[80];

	for (int i = first; i < first + n; i++) {
		(void)snprintf(key, sizeof(key), "p%d/3:tx:udp:mlx5_3/1>10.0.0.%d#0", i, i % 250);
		history_add(h, at(sec), "connection", key, "ok", to, held_by, "because");
	}
}

/* All that is asked for; how many. The first is left in @ret. */
static int all(const struct history *h, int64_t since, const char *name, json_t **ret)
{
	uint64_t cursor = 0, before = 0;
	json_t *o;
	int n = 0;

	*ret = NULL;
	while ((o = history_next(h, since, name, &cursor, &now))) {
		assert_true(cursor > before);
		before = cursor;
		if (n++)
			json_decref(o);
		else
			*ret = o;
	}
	return n;
}

static void newest_first(void **state)
{
	struct history *h = *state;
	json_t *o;

	assert_int_equal(all(h, 0, NULL, &o), 0);
	history_add(h, at(9900), "port", "mlx5_3/1", "ok", "bad", NULL, "link DOWN");
	history_add(h, at(9901), "worker", "rdma:mlx5_3", "running", "backoff", "", "");
	assert_int_equal(all(h, 0, NULL, &o), 2);
	assert_fits(o);
	assert_string_equal(text(o, "name"), "rdma:mlx5_3");
	assert_null(text(o, "held_by"));
	assert_null(text(o, "why"));
	assert_true(json_real_value(json_object_get(o, "age_sec")) == 99);
	json_decref(o);
	/* by age */
	assert_int_equal(all(h, 99 * SEC, NULL, &o), 1);
	json_decref(o);
	assert_int_equal(all(h, 98 * SEC, NULL, &o), 0);
}

static void by_name(void **state)
{
	static const struct {
		const char *name;
		int n;
	} cases[] = {
		{"mlx5_3/1", 4}, /* itself, and what it holds */
		{"p1", 1}, {"p1/3", 1}, {"p1/4", 0}, {"p", 0}, {"p11", 1}, {"p1/", 0},
		{"p2/3:tx:udp:mlx5_3/1>10.0.0.2#0", 1}, {"rdma:mlx5_3", 0},
	};
	struct history *h = *state;
	json_t *o;

	history_add(h, at(1), "port", "mlx5_3/1", "ok", "bad", NULL, "link DOWN");
	add_conns(h, 1, 1, 2, "held", "mlx5_3/1");
	add_conns(h, 1, 11, 1, "held", "mlx5_3/1");
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		assert_int_equal(all(h, 0, cases[i].name, &o), cases[i].n);
		json_decref(o);
	}
}

/* Ten thousand that go at once take the place of 64, and are counted. */
static void many_alike(void **state)
{
	struct history *h = *state;
	json_t *o;
	int before;

	history_add(h, at(1), "port", "mlx5_0/1", "ok", "degraded", NULL, "an old story");
	add_conns(h, 100, 0, 10000, "held", "mlx5_3/1");
	assert_int_equal(all(h, 0, NULL, &o), HISTORY_ALIKE + 1);
	assert_int_equal(number(o, "more"), 10000 - HISTORY_ALIKE);
	json_decref(o);
	/* others at the same time are others; later is later */
	add_conns(h, 100, 0, 3, "network", NULL);
	add_conns(h, 102.1, 0, 3, "held", "mlx5_3/1");
	before = all(h, 0, NULL, &o);
	assert_int_equal(before, HISTORY_ALIKE + 1 + 6);
	assert_int_equal(number(o, "more"), 0);
	json_decref(o);
	assert_int_equal(all(h, 0, "mlx5_0/1", &o), 1);
	json_decref(o);
}

/* The ring forgets the oldest, and what forgot is not counted where something else is. */
static void the_ring_turns(void **state)
{
	struct history *h = *state;
	char name[32];
	json_t *o;
	int n;

	for (int i = 0; i < 3 * HISTORY_EVENTS; i++) {
		(void)snprintf(name, sizeof(name), "mlx5_%d/1", i);
		history_add(h, at(i * 3.0 / 10), "port", name, i % 2 ? "ok" : "bad",
			    i % 2 ? "bad" : "ok", NULL, "up and down");
	}
	n = all(h, 0, NULL, &o);
	assert_true(n > 1000 && n <= HISTORY_EVENTS);
	(void)snprintf(name, sizeof(name), "mlx5_%d/1", 3 * HISTORY_EVENTS - 1);
	assert_string_equal(text(o, "name"), name);
	assert_int_equal(number(o, "more"), 0);
	json_decref(o);
}

static void any_course(void **state)
{
	static const char *const words[] = {"ok", "held", "network", NULL};
	struct history *h = *state;
	uint64_t rnd = 11;
	char name[600];
	json_t *o;

	for (int i = 0; i < 30000; i++) {
		rnd = mix64(rnd);
		(void)snprintf(name, sizeof(name), "p%d/0:%0*d", (int)(rnd % 100),
			       (int)(rnd >> 20) % 400, 1);
		history_add(h, at(i / 100.0), rnd & 1 ? "connection" : "port", name,
			    words[rnd >> 8 & 3], words[rnd >> 10 & 3], words[rnd >> 12 & 3], name);
		if (rnd % 97)
			continue;
		(void)all(h, 0, rnd & 2 ? "p7" : NULL, &o);
		if (o)
			assert_true(json_is_string(json_object_get(o, "name")));
		json_decref(o);
	}
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(newest_first), T(by_name), T(many_alike), T(the_ring_turns), T(any_course),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
