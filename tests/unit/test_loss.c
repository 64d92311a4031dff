/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "loss.h"

static struct mono at(int64_t sec)
{
	return (struct mono){(1000 + sec) * NSEC_PER_SEC};
}

static void expect(const struct loss *l, uint64_t sent, uint64_t lost, uint64_t want_sent,
		   uint64_t want_lost)
{
	uint64_t s, n;

	loss_lately(l, sent, lost, &s, &n);
	assert_int_equal(s, want_sent);
	assert_int_equal(n, want_lost);
}

static void a_minute(void **state)
{
	struct loss l = {0};

	(void)state;
	expect(&l, 7, 1, 0, 0);
	/* One a second, and of the first ten five are lost. */
	for (int i = 0; i <= 200; i++) {
		loss_note(&l, (uint64_t)i, (uint64_t)MIN(i, 5), at(i));
		if (i == 9)
			expect(&l, 9, 5, 9, 5);
		else if (i == 55)
			expect(&l, 55, 5, 55, 5);
		else if (i >= 60)
			expect(&l, (uint64_t)i, 5, 50 + (uint64_t)i % 10, 0);
	}
}

static void counts_that_go_back(void **state)
{
	struct loss l = {0};

	(void)state;
	loss_note(&l, 500, 20, at(0));
	loss_note(&l, 510, 30, at(10));
	expect(&l, 511, 31, 11, 11);
	loss_note(&l, 3, 0, at(11));
	expect(&l, 4, 1, 1, 1);
	/* Past 2^32 they go on. */
	l = (struct loss){0};
	loss_note(&l, UINT32_MAX - 1, 0, at(0));
	loss_note(&l, UINT64_C(1) + UINT32_MAX, 2, at(10));
	expect(&l, UINT64_C(1) + UINT32_MAX, 2, 2, 2);
}

static void many(void **state)
{
	struct loss l = {0};

	(void)state;
	loss_note(&l, 0, 0, at(0));
	loss_note(&l, 1000000, 70000, at(10));
	expect(&l, 1000000, 70000, UINT16_MAX, UINT16_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_minute),
		cmocka_unit_test(counts_that_go_back),
		cmocka_unit_test(many),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
