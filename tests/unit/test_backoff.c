/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "backoff.h"

static void waits_stay_in_bounds(void **state)
{
	struct backoff b = {.min = NSEC_PER_SEC, .max = 60 * NSEC_PER_SEC};
	int64_t last, wait;
	uint64_t rnd = 7;
	bool reached_half = false, fell = false;

	(void)state;
	assert_int_equal(backoff_next(&b, 12345), NSEC_PER_SEC);
	for (int i = 0; i < 10000; i++) {
		last = b.last;
		rnd = mix64(rnd);
		wait = backoff_next(&b, rnd);
		assert_in_range(wait, b.min, b.max);
		assert_true(wait <= 3 * last);
		reached_half |= wait > b.max / 2;
		fell |= wait < last;
	}
	assert_true(reached_half && fell);
	backoff_reset(&b);
	assert_int_equal(backoff_next(&b, rnd), b.min);
}

static void odd_bounds_do_no_harm(void **state)
{
	struct backoff b = {.min = 5, .max = 3}, huge = {.min = 1, .max = INT64_MAX};

	(void)state;
	assert_int_equal(backoff_next(&b, 99), 3);
	for (int i = 0; i < 200; i++)
		assert_true(backoff_next(&huge, UINT64_MAX - 7) > 0);
}

static void bucket_holds_the_rate(void **state)
{
	struct mono now = {NSEC_PER_SEC}, at;
	struct budget b;
	int taken = 0;

	(void)state;
	budget_init(&b, 20, 5, now);
	while (budget_take(&b, now, &at))
		taken++;
	assert_int_equal(taken, 5);
	for (; now.ns < 11 * NSEC_PER_SEC; taken++) {
		assert_true(at.ns > now.ns);
		now = at; /* coming back when told always gets one */
		assert_true(budget_take(&b, now, NULL));
		assert_false(budget_take(&b, now, &at));
	}
	assert_in_range(taken, 5 + 199, 5 + 202);
	now = mono_add(now, 3600 * NSEC_PER_SEC);
	for (taken = 0; budget_take(&b, now, NULL); taken++)
		;
	assert_int_equal(taken, 5); /* an idle hour saves no more than the burst */
}

/* Whoever comes as often as there is a token, on time or late, in no second gets more
 * than the budget, and in the long run nearly all of it. */
static void strict_in_every_second(void **state)
{
	static const double rates[] = {0.1, 1, 20, 200, 2000};
	static struct mono taken[32 * 2000];

	(void)state;
	for (size_t r = 0; r < ARRAY_LEN(rates); r++) {
		struct mono now = {NSEC_PER_SEC}, end = mono_add(now, 30 * NSEC_PER_SEC), at;
		uint64_t most = (uint64_t)(rates[r] < 1 ? 1 : rates[r]);
		struct budget b;
		size_t n = 0, first = 0;

		budget_init_strict(&b, rates[r], now);
		for (uint64_t i = 0; now.ns < end.ns; i++) {
			while (budget_take(&b, now, &at)) {
				taken[n++] = now;
				while (mono_sub(now, taken[first]) >= NSEC_PER_SEC - 1000)
					first++; /* to the microsecond */
				assert_true(n - first <= most);
			}
			/* The waker is late, now and then by some turns. */
			now = mono_add(at, (int64_t)(mix64(i) % (i % 50 ? 1000000 : 18000000)));
		}
		if (rates[r] >= 20)
			assert_true((double)n > 28 * rates[r]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(waits_stay_in_bounds),
		cmocka_unit_test(odd_bounds_do_no_harm),
		cmocka_unit_test(bucket_holds_the_rate),
		cmocka_unit_test(strict_in_every_second),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
