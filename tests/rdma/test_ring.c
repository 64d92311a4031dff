/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <pthread.h>
#include <sched.h>

#include "ring.h"

#define MANY 200000

static void full_and_empty_are_told(void **state)
{
	struct ring r;
	int v;

	(void)state;
	ring_init(&r, sizeof(int), 4);
	assert_false(ring_pop(&r, &v));
	for (int round = 0; round < 10; round++) { /* past the end of the memory */
		for (int i = 0; i < 4; i++)
			assert_true(ring_push(&r, &i));
		assert_false(ring_push(&r, &round));
		assert_int_equal(ring_used(&r), 4);
		for (int i = 0; i < 4; i++) {
			assert_true(ring_pop(&r, &v));
			assert_int_equal(v, i);
		}
		assert_int_equal(ring_used(&r), 0);
	}
	ring_done(&r);
}

struct element {
	uint64_t a, b;
};

static void *write_many(void *arg)
{
	for (uint64_t i = 1; i <= MANY; i++) {
		struct element e = {i, ~i};

		while (!ring_push(arg, &e))
			(void)sched_yield();
	}
	return NULL;
}

static void two_threads_lose_nothing(void **state)
{
	struct element e;
	struct ring r;
	pthread_t t;

	(void)state;
	ring_init(&r, sizeof(e), 64);
	assert_int_equal(pthread_create(&t, NULL, write_many, &r), 0);
	for (uint64_t i = 1; i <= MANY; i++) {
		while (!ring_pop(&r, &e))
			(void)sched_yield();
		if (e.a != i || e.b != ~i)
			fail_msg("element %lu is torn or out of order", i);
	}
	assert_int_equal(pthread_join(t, NULL), 0);
	assert_false(ring_pop(&r, &e));
	ring_done(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(full_and_empty_are_told),
		cmocka_unit_test(two_threads_lose_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
