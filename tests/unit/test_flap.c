/* SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "flap.h"
#include "util.h"

#define MINUTE (60 * NSEC_PER_SEC)

static struct flap_params params;

static struct mono at(int64_t ns)
{
	return (struct mono){NSEC_PER_SEC + ns};
}

static int defaults(void **state)
{
	(void)state;
	flap_params_default(&params);
	return 0;
}

static void the_penalty_halves(void **state)
{
	struct flap f = {0};

	(void)state;
	assert_true(flap_penalty(&f, &params, at(0)) == 0);
	flap_add(&f, &params, at(0));
	assert_true(flap_penalty(&f, &params, at(0)) == 1000);
	assert_true(fabs(flap_penalty(&f, &params, at(15 * MINUTE)) - 500) < 1e-6);
	assert_true(fabs(flap_penalty(&f, &params, at(30 * MINUTE)) - 250) < 1e-6);
	/* Brought up in steps it is the same. */
	for (int i = 1; i <= 30; i++)
		assert_false(flap_update(&f, &params, at(i * MINUTE)));
	assert_true(fabs(f.penalty - 250) < 1e-6);
	assert_int_equal(f.count, 1);
	assert_true(f.last.ns == at(0).ns);
	assert_false(mono_is_set(flap_release(&f, &params)));
}

static void the_third_damps_and_time_releases(void **state)
{
	struct flap f = {0};
	struct mono release;

	(void)state;
	for (int i = 0; i < 3; i++) {
		assert_false(f.damped);
		flap_add(&f, &params, at(i * MINUTE));
	}
	assert_true(f.damped);
	assert_true(f.damped_since.ns == at(2 * MINUTE).ns);
	release = flap_release(&f, &params);
	assert_true(release.ns > at(25 * MINUTE).ns && release.ns < at(35 * MINUTE).ns);
	/* Not a moment earlier, and then by itself. */
	assert_false(flap_update(&f, &params, mono_add(release, -NSEC_PER_SEC)));
	assert_true(f.damped);
	assert_true(flap_update(&f, &params, release));
	assert_false(f.damped);
	assert_false(mono_is_set(flap_release(&f, &params)));
	assert_false(flap_update(&f, &params, mono_add(release, MINUTE)));
}

static void slow_flaps_do_not_damp(void **state)
{
	struct flap f = {0};

	(void)state;
	for (int i = 0; i < 100; i++)
		flap_add(&f, &params, at(i * 20 * MINUTE));
	assert_false(f.damped);
	assert_int_equal(f.count, 100);
}

static void it_is_bounded(void **state)
{
	struct flap f = {0};
	struct mono release;

	(void)state;
	for (int i = 0; i < 10000; i++)
		flap_add(&f, &params, at(i * NSEC_PER_SEC));
	assert_true(f.penalty <= params.ceiling);
	release = flap_release(&f, &params);
	assert_true(mono_sub(release, f.last) < 60 * MINUTE);
	assert_true(flap_update(&f, &params, release));
	assert_false(f.damped);
}

static void it_can_be_switched_off(void **state)
{
	struct flap f = {0};

	(void)state;
	params.suppress = 0;
	for (int i = 0; i < 10; i++)
		flap_add(&f, &params, at(i));
	assert_false(f.damped);
	assert_int_equal(f.count, 10);
	/* And while it is damped. */
	f.damped = true;
	assert_true(flap_update(&f, &params, at(11)));
	assert_false(f.damped);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(the_penalty_halves, defaults),
		cmocka_unit_test_setup(the_third_damps_and_time_releases, defaults),
		cmocka_unit_test_setup(slow_flaps_do_not_damp, defaults),
		cmocka_unit_test_setup(it_is_bounded, defaults),
		cmocka_unit_test_setup(it_can_be_switched_off, defaults),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
