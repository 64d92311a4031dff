/* SPDX-License-Identifier: BSD-2-Clause */
#include "hist.h"

#include <errno.h>
#include <stdlib.h>

#define COUNT_BITS 23
#define COUNT_MAX  ((1u << COUNT_BITS) - 1)
#define ROOM_STEP  8u
#define CELLS_MAX  UINT16_MAX

_Static_assert(HIST_BUCKETS <= 1u << (32 - COUNT_BITS), "a cell holds any bucket");

/* Values below 8 have a bucket each, above there are 8 per power of two. */
unsigned hist_bucket(uint64_t v)
{
	unsigned top;

	if (v < HIST_STEPS)
		return (unsigned)v;
	top = 63 - (unsigned)__builtin_clzll(v);
	return (top - HIST_STEP_BITS + 1) * HIST_STEPS +
	       (unsigned)((v >> (top - HIST_STEP_BITS)) & (HIST_STEPS - 1));
}

/* Half its width is at most 1/16 of any value in it. */
uint64_t hist_bucket_value(unsigned b)
{
	unsigned shift;

	if (b < 2 * HIST_STEPS)
		return b;
	shift = b / HIST_STEPS - 1;
	return ((uint64_t)(HIST_STEPS + b % HIST_STEPS) << shift) +
	       (UINT64_C(1) << (shift - 1));
}

uint64_t hist_clamp(int64_t ns)
{
	return ns <= 0 ? 1 : MIN((uint64_t)ns, (UINT64_C(1) << HIST_MAX_BITS) - 1);
}

void hist_done(struct hist *h)
{
	free(h->cells);
	*h = (struct hist){0};
}

static unsigned bucket_at(const struct hist *h, unsigned i)
{
	return h->cells[i] >> COUNT_BITS;
}

/* The place after the last cell of @bucket and those before it. */
static unsigned place_after(const struct hist *h, unsigned bucket)
{
	unsigned lo = 0, hi = h->n;

	while (lo < hi) {
		unsigned mid = (lo + hi) / 2;

		if (bucket_at(h, mid) <= bucket)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

/* All cells of a bucket but the last are full: the same counts are the same cells. */
void hist_add_bucket(struct hist *h, unsigned bucket, uint64_t count)
{
	unsigned at = place_after(h, bucket);

	if (at && bucket_at(h, at - 1) == bucket) {
		uint32_t *cell = &h->cells[at - 1];
		uint32_t add = (uint32_t)MIN(count, COUNT_MAX - (*cell & COUNT_MAX));

		*cell += add;
		count -= add;
	}
	while (count && h->n < CELLS_MAX) {
		uint32_t add = (uint32_t)MIN(count, COUNT_MAX);

		if (h->n == h->room) {
			h->room = (uint16_t)MIN(h->room + ROOM_STEP, CELLS_MAX);
			h->cells = xrealloc(h->cells, h->room, sizeof(*h->cells));
		}
		memmove(h->cells + at + 1, h->cells + at,
			(h->n - at) * sizeof(*h->cells));
		h->cells[at++] = (uint32_t)bucket << COUNT_BITS | add;
		h->n++;
		count -= add;
	}
}

void hist_add(struct hist *h, int64_t ns)
{
	uint64_t v = hist_clamp(ns);

	h->min = h->n ? MIN(h->min, (float)v) : (float)v;
	h->max = MAX(h->max, (float)v);
	h->sum += (double)v;
	hist_add_bucket(h, hist_bucket(v), 1);
}

void hist_merge(struct hist *into, const struct hist *from)
{
	if (!from->n)
		return;
	into->min = into->n ? MIN(into->min, from->min) : from->min;
	into->max = MAX(into->max, from->max);
	into->sum += from->sum;
	for (unsigned i = 0; i < from->n; i++)
		hist_add_bucket(into, bucket_at(from, i), from->cells[i] & COUNT_MAX);
}

uint64_t hist_samples(const struct hist *h)
{
	uint64_t n = 0;

	for (unsigned i = 0; i < h->n; i++)
		n += h->cells[i] & COUNT_MAX;
	return n;
}

uint64_t hist_quantile(const struct hist *h, unsigned permille)
{
	uint64_t total = hist_samples(h), seen = 0;
	uint64_t rank = MAX((total * permille + 999) / 1000, UINT64_C(1));

	for (unsigned i = 0; i < h->n; i++) {
		seen += h->cells[i] & COUNT_MAX;
		if (seen >= rank)
			return MAX((uint64_t)h->min,
				   MIN((uint64_t)h->max,
				       hist_bucket_value(bucket_at(h, i))));
	}
	return 0;
}

uint64_t hist_mean(const struct hist *h)
{
	uint64_t n = hist_samples(h);

	return n ? (uint64_t)(h->sum / (double)n) : 0;
}

/* --- bytes: number of cells 2, reserved 2, min 4 and max 4 as IEEE floats, sum 8 as an
 * IEEE double, cells 4 each ------------------------------------------------------- */

size_t hist_export_len(const struct hist *h)
{
	return HIST_HEAD_LEN + 4 * (size_t)h->n;
}

static void float_put(uint8_t *p, float f)
{
	uint32_t v;

	memcpy(&v, &f, sizeof(v));
	be32_put(p, v);
}

static float float_get(const uint8_t *p)
{
	uint32_t v = be32_get(p);
	float f;

	memcpy(&f, &v, sizeof(f));
	return f;
}

int hist_export(const struct hist *h, uint8_t *buf, size_t size)
{
	uint64_t sum;

	if (size < hist_export_len(h))
		return -ENOSPC;
	memcpy(&sum, &h->sum, sizeof(sum));
	be16_put(buf, h->n);
	be16_put(buf + 2, 0);
	float_put(buf + 4, h->min);
	float_put(buf + 8, h->max);
	be64_put(buf + 12, sum);
	for (unsigned i = 0; i < h->n; i++)
		be32_put(buf + HIST_HEAD_LEN + 4 * i, h->cells[i]);
	return (int)hist_export_len(h);
}

/* It may come from another process: what cannot be of an export is refused. */
static bool is_sound(const struct hist *h)
{
	double sum_max = (double)h->max * (double)hist_samples(h) * 1.001;

	for (unsigned i = 0; i < h->n; i++) {
		if (bucket_at(h, i) >= HIST_BUCKETS || !(h->cells[i] & COUNT_MAX))
			return false;
		if (i && bucket_at(h, i) < bucket_at(h, i - 1))
			return false;
		if (i && bucket_at(h, i) == bucket_at(h, i - 1) &&
		    (h->cells[i - 1] & COUNT_MAX) != COUNT_MAX)
			return false;
	}
	if (!h->n)
		return h->min == 0 && h->max == 0 && h->sum == 0;
	/* Written so that a NaN is refused. */
	return h->min >= 1 && h->min <= h->max &&
	       h->max <= (float)(UINT64_C(1) << HIST_MAX_BITS) && h->sum > 0 &&
	       h->sum <= sum_max;
}

int hist_import(struct hist *ret, const uint8_t *buf, size_t len)
{
	struct hist h = {0};
	uint64_t sum;

	*ret = h;
	if (len < HIST_HEAD_LEN)
		return -EBADMSG;
	h.n = h.room = be16_get(buf);
	if (len < hist_export_len(&h))
		return -EBADMSG;
	h.min = float_get(buf + 4);
	h.max = float_get(buf + 8);
	sum = be64_get(buf + 12);
	memcpy(&h.sum, &sum, sizeof(h.sum));
	if (h.n)
		h.cells = xcalloc(h.n, sizeof(*h.cells));
	for (unsigned i = 0; i < h.n; i++)
		h.cells[i] = be32_get(buf + HIST_HEAD_LEN + 4 * i);
	if (!is_sound(&h)) {
		hist_done(&h);
		return -EBADMSG;
	}
	*ret = h;
	return (int)hist_export_len(ret);
}
