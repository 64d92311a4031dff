/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>

#include "hist.h"

#define VALUES 20000

static int compare(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return x < y ? -1 : x > y;
}

/* Distributions of all sorts of shapes, from one seed. */
static int64_t draw(unsigned shape, uint64_t *rnd)
{
	uint64_t r = *rnd = mix64(*rnd);

	switch (shape) {
	case 0: /* even */
		return (int64_t)(r % 1000000) + 1;
	case 1: /* the same over all powers of two */
		return (int64_t)((r >> 24) >> (r % 40)) + 1;
	case 2: /* narrow, and a few far out */
		return r % 50 ? 30000 + (int64_t)(r >> 8) % 2000
			      : 5000000 + (int64_t)((r >> 8) % 900000000);
	case 3: /* two humps */
		return (r & 1 ? 8000 : 120000) + (int64_t)((r >> 8) % 4000);
	case 4: /* small numbers, where buckets are single values */
		return (int64_t)(r % 40) + 1;
	default: /* one value */
		return 777777;
	}
}

static void quantiles_keep_the_stated_error(void **state)
{
	static const unsigned permilles[] = {0, 1, 10, 100, 500, 900, 950, 990, 999, 1000};
	static int64_t v[VALUES];
	uint64_t rnd = 11;

	(void)state;
	for (unsigned round = 0; round < 120; round++) {
		unsigned n = round % 3 ? 1 + round * 7 : VALUES;
		struct hist h = {0};

		for (unsigned i = 0; i < n; i++) {
			v[i] = draw(round % 6, &rnd);
			hist_add(&h, v[i]);
		}
		qsort(v, n, sizeof(v[0]), compare);
		assert_int_equal(hist_samples(&h), n);
		for (unsigned i = 0; i < ARRAY_LEN(permilles); i++) {
			uint64_t rank = MAX(((uint64_t)n * permilles[i] + 999) / 1000,
					    UINT64_C(1));
			int64_t exact = v[rank - 1];
			int64_t got = (int64_t)hist_quantile(&h, permilles[i]);

			assert_true(llabs(got - exact) * HIST_ERROR <= exact);
		}
		hist_done(&h);
	}
}

static void every_value_is_in_its_bucket(void **state)
{
	uint64_t rnd = 3;
	unsigned last = 0;

	(void)state;
	for (uint64_t v = 1; v < 100000; v++) {
		unsigned b = hist_bucket(v);

		assert_true(b == last || b == last + 1);
		last = b;
	}
	for (int i = 0; i < 100000; i++) {
		int64_t v = draw(1, &rnd);
		int64_t middle = (int64_t)hist_bucket_value(hist_bucket((uint64_t)v));

		assert_true(llabs(middle - v) * HIST_ERROR <= v);
	}
	assert_int_equal(hist_bucket(hist_clamp(INT64_MAX)), HIST_BUCKETS - 1);
	assert_int_equal(hist_clamp(0), 1);
	assert_int_equal(hist_clamp(-1), 1);
}

static void assert_same(const struct hist *a, const struct hist *b)
{
	assert_int_equal(a->n, b->n);
	assert_memory_equal(a->cells, b->cells, a->n * sizeof(*a->cells));
	assert_true(a->min == b->min && a->max == b->max);
}

static void merge_is_the_union(void **state)
{
	uint64_t rnd = 17;

	(void)state;
	for (unsigned round = 0; round < 60; round++) {
		struct hist part[3] = {0}, all = {0}, sum = {0};

		for (unsigned i = 0; i < 1 + round * 40; i++) {
			int64_t v = draw(round % 6, &rnd);

			hist_add(&part[rnd % 3], v);
			hist_add(&all, v);
		}
		for (unsigned i = 0; i < 3; i++) {
			hist_merge(&sum, &part[i]);
			hist_done(&part[i]);
		}
		assert_same(&sum, &all);
		assert_true(llabs((int64_t)hist_mean(&sum) - (int64_t)hist_mean(&all)) < 2);
		hist_done(&sum);
		hist_done(&all);
	}
}

/* More than a cell holds: the next cell of the same bucket, and the same in any order. */
static void large_counts(void **state)
{
	struct hist a = {0}, b = {0};
	const uint64_t many = (1u << 23) - 1;

	(void)state;
	hist_add(&a, 500);
	hist_add(&a, 5000);
	hist_add_bucket(&a, hist_bucket(500), 3 * many);
	assert_int_equal(hist_samples(&a), 3 * many + 2);
	assert_int_equal(a.n, 5);
	hist_add(&b, 5000);
	hist_add_bucket(&b, hist_bucket(500), many / 2);
	hist_add(&b, 500);
	hist_add_bucket(&b, hist_bucket(500), 3 * many - many / 2);
	assert_same(&a, &b);
	assert_true(llabs((int64_t)hist_quantile(&a, 999) - 500) <= 500 / HIST_ERROR);
	assert_true(llabs((int64_t)hist_quantile(&a, 1000) - 5000) <= 5000 / HIST_ERROR);
	hist_done(&a);
	hist_done(&b);
}

static void travels_as_bytes(void **state)
{
	uint8_t buf[HIST_HEAD_LEN + 4 * HIST_BUCKETS];
	struct hist h = {0}, got;
	uint64_t rnd = 23;
	int len;

	(void)state;
	assert_int_equal(hist_export(&h, buf, sizeof(buf)), HIST_HEAD_LEN);
	assert_int_equal(hist_import(&got, buf, sizeof(buf)), HIST_HEAD_LEN);
	assert_int_equal(hist_samples(&got), 0);
	for (int i = 0; i < 5000; i++)
		hist_add(&h, draw(2, &rnd));
	len = hist_export(&h, buf, sizeof(buf));
	assert_int_equal(len, hist_export_len(&h));
	assert_int_equal(hist_export(&h, buf, (size_t)len - 1), -ENOSPC);
	assert_int_equal(hist_import(&got, buf, sizeof(buf)), len);
	assert_same(&got, &h);
	assert_int_equal(hist_mean(&got), hist_mean(&h));
	hist_done(&got);
	for (int cut = 0; cut < len; cut++) {
		assert_int_equal(hist_import(&got, buf, (size_t)cut), -EBADMSG);
		assert_int_equal(hist_samples(&got), 0);
	}
	buf[HIST_HEAD_LEN] ^= 0x80; /* out of order */
	assert_int_equal(hist_import(&got, buf, (size_t)len), -EBADMSG);
	buf[HIST_HEAD_LEN] ^= 0x80;
	memset(buf + 8, 0xff, 4); /* no number */
	assert_int_equal(hist_import(&got, buf, (size_t)len), -EBADMSG);
	hist_done(&h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(quantiles_keep_the_stated_error),
		cmocka_unit_test(every_value_is_in_its_bucket),
		cmocka_unit_test(merge_is_the_union),
		cmocka_unit_test(large_counts),
		cmocka_unit_test(travels_as_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
