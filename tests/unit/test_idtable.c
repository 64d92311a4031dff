/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "idtable.h"

struct thing {
	int number;
	uint64_t id;
	bool in;
};

#define THINGS 3000

static void empty(void **state)
{
	struct idtable t = IDTABLE_INIT(thing, id);
	struct thing x = {.id = 5};
	uint32_t at = 0;

	(void)state;
	assert_null(idtable_find(&t, 0));
	assert_null(idtable_next(&t, &at));
	idtable_remove(&t, &x);
	idtable_done(&t);
}

/* Against a plain array, with ids that collide as often as not. */
static void as_an_array_would(void **state)
{
	static struct thing things[THINGS];
	struct idtable t = IDTABLE_INIT(thing, id);
	uint64_t rnd = 7;
	uint32_t n = 0;

	(void)state;
	for (int i = 0; i < THINGS; i++)
		things[i] = (struct thing){.number = i, .id = (uint64_t)i * 3};
	for (int round = 0; round < 60000; round++) {
		/* Fuller in the first half than in the second, so that it shrinks. */
		bool grow = (rnd >> 32) % 100 < (round < 30000 ? 70 : 20);
		struct thing *x = &things[rnd % THINGS];

		rnd = mix64(rnd);
		if (grow && !x->in) {
			idtable_add(&t, x);
			x->in = true;
			n++;
		} else if (!grow) {
			idtable_remove(&t, x);
			n -= x->in;
			x->in = false;
		}
		assert_int_equal(t.n, n);
		x = &things[rnd % THINGS];
		assert_ptr_equal(idtable_find(&t, x->id), x->in ? x : NULL);
	}
	for (int i = 0; i < THINGS; i++)
		assert_ptr_equal(idtable_find(&t, things[i].id),
				 things[i].in ? &things[i] : NULL);
	assert_null(idtable_find(&t, 1));
	idtable_done(&t);
}

static void walks_over_all_and_stays_small(void **state)
{
	static struct thing things[THINGS];
	struct idtable t = IDTABLE_INIT(thing, id);
	struct thing *x;
	uint32_t at = 0, seen = 0;

	(void)state;
	for (int i = 0; i < THINGS; i++) {
		things[i].id = mix64((uint64_t)i);
		idtable_add(&t, &things[i]);
	}
	assert_true(t.size <= 4096);
	while ((x = idtable_next(&t, &at))) {
		assert_false(x->in);
		x->in = true;
		seen++;
	}
	assert_int_equal(seen, THINGS);
	for (int i = 0; i < THINGS; i++)
		idtable_remove(&t, &things[i]);
	assert_int_equal(t.n, 0);
	assert_true(t.size <= 16);
	idtable_done(&t);
}

static void twins_go_as_themselves(void **state)
{
	struct thing a = {.id = 4}, b = {.id = 4};
	struct idtable t = IDTABLE_INIT(thing, id);

	(void)state;
	idtable_add(&t, &a);
	idtable_add(&t, &b);
	idtable_remove(&t, &a);
	assert_ptr_equal(idtable_find(&t, 4), &b);
	idtable_remove(&t, &a);
	assert_int_equal(t.n, 1);
	idtable_remove(&t, &b);
	assert_null(idtable_find(&t, 4));
	idtable_done(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(empty),
		cmocka_unit_test(twins_go_as_themselves),
		cmocka_unit_test(as_an_array_would),
		cmocka_unit_test(walks_over_all_and_stays_small),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
