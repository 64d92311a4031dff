/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

#include "rtt.h"

static int compare(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return x < y ? -1 : x > y;
}

static void assert_near(uint64_t got, int64_t want)
{
	assert_in_range(got, want - want / HIST_ERROR, want + want / HIST_ERROR);
}

/* Within 10^-digits. */
static void assert_close(uint64_t got, int64_t want, int digits)
{
	int64_t off = want;

	while (digits--)
		off /= 10;
	assert_in_range(got, want > off ? want - off - 1 : 0, want + off + 1);
}

static void quantiles_are_near_the_truth(void **state)
{
	static const int counts[] = {1, 3, 60, 280, 5000};
	static int64_t v[5000];
	uint64_t rnd = 3;

	(void)state;
	for (unsigned k = 0; k < ARRAY_LEN(counts); k++) {
		struct rtt *r = rtt_new();
		struct rtt_summary s;
		int n = counts[k];
		int64_t sum = 0;

		for (int i = 0; i < n; i++) {
			rnd = mix64(rnd);
			v[i] = (int64_t)(rnd >> (24 + rnd % 34)) + 1;
			sum += v[i];
			rtt_add(r, v[i], (struct mono){NSEC_PER_SEC});
		}
		rtt_summary(r, (struct mono){2 * NSEC_PER_SEC}, &s);
		assert_close(s.last, v[n - 1], 6);
		qsort(v, (size_t)n, sizeof(v[0]), compare);
		assert_int_equal(s.samples, n);
		assert_close(s.min, v[0], 6);
		assert_close(s.max, v[n - 1], 6);
		assert_close(s.mean, sum / n, 3);
		assert_near(s.p50, v[(n + 1) / 2 - 1]);
		assert_near(s.p99, v[(n * 99 + 99) / 100 - 1]);
		r = rtt_free(r);
		assert_null(r);
	}
}

static void the_window_slides(void **state)
{
	struct rtt *r = rtt_new();
	struct rtt_summary s;

	(void)state;
	rtt_add(r, 1000, (struct mono){5 * NSEC_PER_SEC});
	rtt_add(r, 2000, (struct mono){55 * NSEC_PER_SEC});
	rtt_summary(r, (struct mono){59 * NSEC_PER_SEC}, &s);
	assert_int_equal(s.samples, 2);
	rtt_summary(r, (struct mono){60 * NSEC_PER_SEC}, &s);
	assert_int_equal(s.samples, 1);
	assert_int_equal(s.min, 2000);
	rtt_add(r, 3000,
		(struct mono){65 * NSEC_PER_SEC}); /* takes the first's slice */
	rtt_summary(r, (struct mono){65 * NSEC_PER_SEC}, &s);
	assert_int_equal(s.samples, 2);
	rtt_summary(r, (struct mono){1000 * NSEC_PER_SEC}, &s);
	assert_int_equal(s.samples, 0);
	assert_int_equal(s.last, 0);
	rtt_clear(r);
	rtt_summary(r, (struct mono){65 * NSEC_PER_SEC}, &s);
	assert_int_equal(s.samples, 0);
	rtt_free(r);
}

static void clamps_and_counts_on(void **state)
{
	struct rtt *r = rtt_new();
	struct rtt_summary s;

	(void)state;
	rtt_add(r, -5, (struct mono){1});
	rtt_add(r, INT64_MAX, (struct mono){1});
	rtt_summary(r, (struct mono){1}, &s);
	assert_int_equal(s.min, 1);
	assert_close(s.max, (INT64_C(1) << 40) - 1, 6);
	for (int i = 0; i < 70000; i++) /* more than a cell counts */
		rtt_add(r, 100, (struct mono){1});
	rtt_summary(r, (struct mono){1}, &s);
	assert_int_equal(s.samples, 70002);
	assert_near(s.p50, 100);
	rtt_all_summary(r, &s);
	assert_int_equal(s.samples, 70002);
	assert_near(s.p99, 100);
	rtt_free(r);
	assert_null(rtt_free(NULL));
}

static void since_the_start(void **state)
{
	struct rtt *r = rtt_new();
	struct rtt_summary s;

	(void)state;
	rtt_all_summary(r, &s);
	assert_int_equal(s.samples, 0);
	assert_int_equal(s.p50 + s.p99 + s.min + s.max + s.mean, 0);
	for (int i = 0; i < 1000; i++) /* slow for the first 500 s, then fast */
		rtt_add(r, i < 500 ? 900000 : 1000, (struct mono){(i + 1) * NSEC_PER_SEC});
	rtt_summary(r, (struct mono){1000 * NSEC_PER_SEC}, &s);
	assert_int_equal(s.max, 1000);
	assert_in_range(s.samples, 50, 60);
	rtt_all_summary(r, &s);
	assert_int_equal(s.samples, 1000);
	assert_near(s.p50, 1000);
	assert_near(s.p99, 900000);
	assert_int_equal(s.min, 1000);
	assert_int_equal(s.max, 900000);
	assert_close(s.mean, 450500, 3);
	rtt_free(r);
}

/* Returns when the last one came. */
static struct mono fill(struct rtt *a, struct rtt *b, struct rtt *both, uint64_t rnd, int n)
{
	struct mono t = {rnd % (300 * NSEC_PER_SEC) + 1};

	for (int i = 0; i < n; i++) {
		int64_t v;

		rnd = mix64(rnd);
		v = (int64_t)(rnd >> (20 + rnd % 40));
		t.ns += (int64_t)(rnd % (120 * NSEC_PER_SEC / (uint64_t)n));
		rtt_add(rnd % 3 ? a : b, v, t);
		rtt_add(both, v, t);
	}
	return t;
}

static void assert_same(const struct hist *x, const struct hist *y)
{
	assert_int_equal(x->n, y->n);
	if (x->n)
		assert_memory_equal(x->cells, y->cells, x->n * sizeof(*x->cells));
	assert_true(x->min == y->min && x->max == y->max);
	assert_close((uint64_t)x->sum, (int64_t)y->sum, 3);
}

/* The windows of two merge into what the one of both would be. */
static void windows_merge(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 60; seed++) {
		struct rtt *a = rtt_new(), *b = rtt_new(), *both = rtt_new();
		struct hist x, y, z;
		struct mono at;

		at = fill(a, b, both, mix64(seed), seed % 4 ? (int)(seed * 5) : 20000);
		for (int i = 0; i <= RTT_SLICES; i++, at.ns += RTT_SLICE_NS) {
			rtt_window(a, at, &x);
			rtt_window(b, at, &y);
			rtt_window(both, at, &z);
			hist_merge(&x, &y);
			assert_same(&x, &z);
			hist_done(&x);
			hist_done(&y);
			hist_done(&z);
		}
		rtt_free(a);
		rtt_free(b);
		rtt_free(both);
	}
}

static void gives_room_back(void **state)
{
	struct rtt *r = rtt_new();
	size_t busy;

	(void)state;
	for (int i = 0; i < 50000; i++)
		rtt_add(r, (int64_t)mix64((uint64_t)i) >> 30, (struct mono){1});
	busy = rtt_memory(r);
	for (int i = 0; i < 600; i++)
		rtt_add(r, 1000, (struct mono){(i + 1) * NSEC_PER_SEC});
	assert_true(rtt_memory(r) < busy);
	rtt_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(quantiles_are_near_the_truth),
		cmocka_unit_test(the_window_slides),
		cmocka_unit_test(clamps_and_counts_on),
		cmocka_unit_test(since_the_start),
		cmocka_unit_test(windows_merge),
		cmocka_unit_test(gives_room_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
