/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "rto.h"

#define MS NSEC_PER_MSEC

/* The numbers of RFC 6298, section 2. */
static void as_the_rfc_has_it(void **state)
{
	struct rto r = {0};

	(void)state;
	assert_int_equal(rto_wait(&r, 500 * MS, 0, MS, 1000 * MS), 500 * MS);
	rto_sample(&r, 100 * MS); /* SRTT = R, RTTVAR = R / 2 */
	assert_int_equal(rto_wait(&r, 0, 0, MS, 1000 * MS), 300 * MS);
	rto_sample(&r, 140 * MS); /* RTTVAR = 3/4 * 50 + 1/4 * 40, SRTT = 105 */
	assert_int_equal(r.var_us, 47500);
	assert_int_equal(r.srtt_us, 105000);
	for (int i = 0; i < 100; i++)
		rto_sample(&r, 20 * MS);
	assert_in_range(rto_wait(&r, 0, 0, MS, 1000 * MS), 20 * MS, 21 * MS);
}

static void doubles_and_stays_within(void **state)
{
	struct rto r = {0};

	(void)state;
	rto_sample(&r, 1000);
	assert_int_equal(rto_wait(&r, 0, 0, 20 * MS, 500 * MS), 20 * MS);
	assert_int_equal(rto_wait(&r, 0, 2, 20 * MS, 500 * MS), 80 * MS);
	assert_int_equal(rto_wait(&r, 0, 5, 20 * MS, 500 * MS), 500 * MS);
	assert_int_equal(rto_wait(&r, 0, 255, 20 * MS, 500 * MS), 500 * MS);
	rto_sample(&r, INT64_MAX);
	assert_int_equal(rto_wait(&r, 0, 0, 20 * MS, 500 * MS), 500 * MS);
	rto_sample(&r, -5);
	assert_true(r.srtt_us > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(as_the_rfc_has_it),
		cmocka_unit_test(doubles_and_stays_within),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
