/* SPDX-License-Identifier: BSD-2-Clause */
/* What the loop says of stalls. Deadlines in the past stand for a loop that could not
 * run: nothing sleeps. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "loop.h"

static struct loop *loop;
static int fired;

static void on_timer(void *user, struct mono now)
{
	int *last = user;

	(void)now;
	if (++fired == *last)
		loop_stop(loop);
}

/* Timers that are late by @ms, all after one stall; the loop's account of it. */
static struct loop_stats stall(const int *ms, int n)
{
	struct loop_source *timers[8];
	struct mono now = clock_now();
	struct loop_stats stats;

	fired = 0;
	for (int i = 0; i < n; i++) {
		timers[i] = loop_timer(loop, on_timer, &n);
		loop_timer_at(timers[i], mono_add(now, -ms[i] * NSEC_PER_MSEC));
	}
	assert_int_equal(loop_run(loop), 0);
	loop_stats(loop, &stats);
	for (int i = 0; i < n; i++)
		loop_source_free(timers[i]);
	return stats;
}

static int setup(void **state)
{
	(void)state;
	loop = loop_new();
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	loop = loop_free(loop);
	return 0;
}

/* The whole stall, whichever of its timers is the last to be called. */
static void test_one_stall(void **state)
{
	static const int orders[][3] = {{4000, 500, 60}, {60, 500, 4000}, {500, 4000, 60}};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(orders); i++) {
		struct loop_stats s = stall(orders[i], 3);

		assert_true(s.stalled_ns >= 4000 * NSEC_PER_MSEC);
		assert_true(s.stalled_ns < 30 * NSEC_PER_SEC);
		assert_true(mono_sub(clock_now(), s.stalled_at) < 20 * NSEC_PER_SEC);
	}
}

/* A little late is no stall. */
static void test_short(void **state)
{
	static const int late[] = {1};
	struct loop_stats s;

	(void)state;
	s = stall(late, 1);
	if (s.late_worst_ns < 50 * NSEC_PER_MSEC) /* else this machine stood still */
		assert_false(mono_is_set(s.stalled_at));
}

static uint64_t seen[2];

static void on_deferred(void *user)
{
	(void)user;
	seen[1] = loop_turn(loop);
	loop_stop(loop);
}

static void on_first(void *user, struct mono now)
{
	(void)now;
	seen[0] = loop_turn(loop);
	loop_defer_arm(user);
}

/* What is put off to the end of a turn runs in the turn of that number. */
static void test_turn(void **state)
{
	struct loop_source *defer = loop_defer(loop, on_deferred, NULL);
	struct loop_source *timer = loop_timer(loop, on_first, defer);

	(void)state;
	for (int i = 0; i < 3; i++) {
		uint64_t before = seen[0];

		loop_timer_at(timer, clock_now());
		assert_int_equal(loop_run(loop), 0);
		assert_true(seen[0] > before);
		assert_true(seen[0] == seen[1]);
	}
	loop_source_free(timer);
	loop_source_free(defer);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_one_stall, setup, teardown),
		cmocka_unit_test_setup_teardown(test_short, setup, teardown),
		cmocka_unit_test_setup_teardown(test_turn, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
