/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "pool.h"

static void one_copy_of_each(void **state)
{
	struct pool p = POOL_INIT;
	const char *a = pool_text(&p, "connected"), *b, *c;

	(void)state;
	b = pool_text(&p, "connected");
	c = pool_text(&p, "connecteD");
	assert_ptr_equal(a, b);
	assert_ptr_not_equal(a, c);
	assert_string_equal(c, "connecteD");
	assert_int_equal(pool_count(&p), 2);
	pool_put(&p, a);
	assert_string_equal(b, "connected");
	pool_put(&p, b);
	assert_int_equal(pool_count(&p), 1);
	assert_ptr_equal(pool_ref(c), c);
	pool_put(&p, c);
	assert_int_equal(pool_count(&p), 1);
	pool_put(&p, c);
	assert_int_equal(pool_count(&p), 0);
	pool_done(&p);
}

static void nothing_costs_nothing(void **state)
{
	struct pool p = POOL_INIT;
	const char *a = pool_text(&p, "");

	(void)state;
	assert_string_equal(a, "");
	assert_ptr_equal(pool_text(&p, NULL), a);
	assert_ptr_equal(pool_ref(a), a);
	assert_null(pool_ref(NULL));
	pool_put(&p, a);
	pool_put(&p, NULL);
	assert_int_equal(pool_count(&p), 0);
	pool_done(&p);
}

/* Of every length, also such as differ in their last byte or in their length alone. */
static void bytes(void **state)
{
	static const uint8_t zero[64], other[64] = {[63] = 1};
	struct pool p = POOL_INIT;
	const void *got[65];

	(void)state;
	for (size_t len = 1; len <= 64; len++)
		got[len] = pool_get(&p, zero, len);
	assert_int_equal(pool_count(&p), 64);
	for (size_t len = 1; len <= 64; len++) {
		assert_ptr_equal(pool_get(&p, zero, len), got[len]);
		assert_int_equal((uintptr_t)got[len] % 16, 0);
	}
	got[0] = pool_get(&p, other, 64);
	assert_ptr_not_equal(got[0], got[64]);
	assert_memory_equal(got[0], other, 64);
	for (size_t len = 1; len <= 64; len++) {
		pool_put(&p, got[len]);
		pool_put(&p, got[len]);
	}
	pool_put(&p, got[0]);
	pool_done(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_copy_of_each),
		cmocka_unit_test(nothing_costs_nothing),
		cmocka_unit_test(bytes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
