/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
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

static void fill(struct rtt *a, struct rtt *b, struct rtt *both, uint64_t rnd, int n)
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
}

static void assert_same(const struct hist *x, const struct hist *y)
{
	assert_int_equal(x->n, y->n);
	if (x->n)
		assert_memory_equal(x->cells, y->cells, x->n * sizeof(*x->cells));
	assert_true(x->min == y->min && x->max == y->max);
	assert_close((uint64_t)x->sum, (int64_t)y->sum, 3);
}

/* The merge of two is what one would be that saw it all. */
static void merge_is_the_union(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 60; seed++) {
		struct rtt *a = rtt_new(), *b = rtt_new(), *both = rtt_new();
		struct hist x, y;
		struct mono last;

		fill(a, b, both, mix64(seed), seed % 4 ? (int)(seed * 5) : 20000);
		rtt_merge(a, b);
		assert_same(rtt_all(a), rtt_all(both));
		for (last.ns = 0; last.ns < 500 * NSEC_PER_SEC; last.ns += RTT_SLICE_NS) {
			rtt_window(a, last, &x);
			rtt_window(both, last, &y);
			assert_same(&x, &y);
			hist_done(&x);
			hist_done(&y);
		}
		rtt_free(a);
		rtt_free(b);
		rtt_free(both);
	}
}

static void travels_as_bytes(void **state)
{
	uint64_t rnd = 5;

	(void)state;
	for (int n = 0; n < 3000; n = n * 2 + 1) {
		struct rtt *a = rtt_new(), *b = rtt_new(), *both = rtt_new(), *got;
		size_t len;
		uint8_t *buf, *again;
		int r;

		if (n)
			fill(a, b, both, (uint64_t)n, n);
		len = rtt_export_len(both);
		buf = xcalloc(1, len);
		again = xcalloc(1, len);
		assert_int_equal(rtt_export(both, buf, len - 1), -ENOSPC);
		assert_int_equal(rtt_export(both, buf, len), len);
		got = rtt_import(buf, len);
		assert_non_null(got);
		assert_int_equal(rtt_export(got, again, len), len);
		assert_memory_equal(buf, again, len);
		got = rtt_free(got);
		for (size_t cut = 0; cut < len; cut += 1 + cut / 8)
			assert_null(rtt_import(buf, cut));
		/* What is altered is refused, or is a histogram all the same. */
		for (int i = 0; i < 300; i++) {
			rnd = mix64(rnd);
			memcpy(again, buf, len);
			again[rnd % len] ^= (uint8_t)(1u << (rnd >> 32) % 8);
			got = rtt_import(again, len);
			if (got) {
				struct rtt_summary s;

				rtt_all_summary(got, &s);
				assert_true(s.min <= s.p50 && s.p50 <= s.p99);
				rtt_add(got, 5, (struct mono){NSEC_PER_SEC});
			}
			got = rtt_free(got);
		}
		r = rtt_import(buf, 0) != NULL;
		assert_int_equal(r, 0);
		free(buf);
		free(again);
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
		cmocka_unit_test(merge_is_the_union),
		cmocka_unit_test(travels_as_bytes),
		cmocka_unit_test(gives_room_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
