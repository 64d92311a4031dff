/* SPDX-License-Identifier: BSD-2-Clause */
#include "rtt.h"

#include <stdlib.h>

/* The window's cells are of 16 bits: bucket << 7 | count, and a bucket with more has
 * more of them, all full but the last. Those of all slices lie in one block, the oldest
 * slice first, each sorted by bucket. */
#define COUNT_BITS 7
#define COUNT_MAX  ((1u << COUNT_BITS) - 1)
#define CELLS_MAX  60000u
#define ROOM_STEP  16u
#define NEWEST	   (RTT_SLICES - 1)

_Static_assert(HIST_BUCKETS <= 1u << (16 - COUNT_BITS), "a cell holds any bucket");

struct rtt {
	struct hist all;
	uint16_t *cells; /* owned */
	uint32_t newest; /* number of the last slice: time / RTT_SLICE_NS */
	uint16_t room;
	uint16_t ends[RTT_SLICES]; /* where the cells of each end; oldest first */
	float last;
	float min[RTT_SLICES], max[RTT_SLICES], sum[RTT_SLICES];
};

struct rtt *rtt_new(void)
{
	return xcalloc(1, sizeof(struct rtt));
}

void rtt_clear(struct rtt *r)
{
	hist_done(&r->all);
	free(r->cells);
	*r = (struct rtt){0};
}

struct rtt *rtt_free(struct rtt *r)
{
	if (r)
		rtt_clear(r);
	free(r);
	return NULL;
}

size_t rtt_memory(const struct rtt *r)
{
	return sizeof(*r) + r->room * sizeof(*r->cells) +
	       r->all.room * sizeof(*r->all.cells);
}

static uint32_t slice_number(struct mono t)
{
	return (uint32_t)(t.ns / RTT_SLICE_NS);
}

static unsigned begin_of(const struct rtt *r, unsigned slice)
{
	return slice ? r->ends[slice - 1] : 0;
}

static void resize(struct rtt *r, unsigned room)
{
	r->room = (uint16_t)room;
	r->cells = xrealloc(r->cells, room, sizeof(*r->cells));
}

/* Make @number the newest slice: what is too old goes. */
static void advance(struct rtt *r, uint32_t number)
{
	unsigned by, gone, n;

	if (number <= r->newest)
		return;
	by = MIN(number - r->newest, (uint32_t)RTT_SLICES);
	gone = r->ends[by - 1];
	n = r->ends[NEWEST] - gone;
	if (gone && n)
		memmove(r->cells, r->cells + gone, n * sizeof(*r->cells));
	for (unsigned i = 0; i < RTT_SLICES; i++) {
		bool kept = i + by < RTT_SLICES;

		r->ends[i] = (uint16_t)(kept ? r->ends[i + by] - gone : n);
		r->min[i] = kept ? r->min[i + by] : 0;
		r->max[i] = kept ? r->max[i + by] : 0;
		r->sum[i] = kept ? r->sum[i + by] : 0;
	}
	r->newest = number;
	if (r->room > 4 * ROOM_STEP && n < r->room / 4)
		resize(r, r->room / 2);
}

/* The place after the last cell of @bucket in @slice and those before it. */
static unsigned place_after(const struct rtt *r, unsigned slice, unsigned bucket)
{
	unsigned lo = begin_of(r, slice), hi = r->ends[slice];

	while (lo < hi) {
		unsigned mid = (lo + hi) / 2;

		if (r->cells[mid] >> COUNT_BITS <= bucket)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static void insert(struct rtt *r, unsigned slice, unsigned at, uint16_t cell)
{
	unsigned n = r->ends[NEWEST];

	if (n == r->room)
		resize(r, MIN(n + MAX(n / 8, ROOM_STEP), CELLS_MAX));
	memmove(r->cells + at + 1, r->cells + at, (n - at) * sizeof(*r->cells));
	r->cells[at] = cell;
	for (unsigned i = slice; i < RTT_SLICES; i++)
		r->ends[i]++;
}

static void count(struct rtt *r, unsigned slice, unsigned bucket, unsigned n)
{
	unsigned at = place_after(r, slice, bucket);

	if (at > begin_of(r, slice) && r->cells[at - 1] >> COUNT_BITS == bucket) {
		uint16_t *cell = &r->cells[at - 1];
		unsigned add = MIN(n, COUNT_MAX - (*cell & COUNT_MAX));

		*cell = (uint16_t)(*cell + add);
		n -= add;
	}
	while (n && r->ends[NEWEST] < CELLS_MAX) {
		unsigned add = MIN(n, COUNT_MAX);

		insert(r, slice, at++, (uint16_t)(bucket << COUNT_BITS | add));
		n -= add;
	}
}

void rtt_add(struct rtt *r, int64_t ns, struct mono now)
{
	uint64_t v = hist_clamp(ns);
	bool first;

	advance(r, slice_number(now));
	first = begin_of(r, NEWEST) == r->ends[NEWEST];
	r->min[NEWEST] = first ? (float)v : MIN(r->min[NEWEST], (float)v);
	r->max[NEWEST] = MAX(r->max[NEWEST], (float)v);
	r->sum[NEWEST] += (float)v;
	r->last = (float)v;
	count(r, NEWEST, hist_bucket(v), 1);
	hist_add(&r->all, ns);
}

/* The first slice that is in the window at @now. */
static unsigned first_slice(const struct rtt *r, struct mono now)
{
	uint32_t number = slice_number(now);

	return number <= r->newest ? 0 : MIN(number - r->newest, (uint32_t)RTT_SLICES);
}

static uint64_t quantile(const uint32_t counts[HIST_BUCKETS], uint64_t total,
			 unsigned percent)
{
	uint64_t rank = (total * percent + 99) / 100, seen = 0;

	for (unsigned b = 0; b < HIST_BUCKETS; b++) {
		seen += counts[b];
		if (seen >= rank)
			return hist_bucket_value(b);
	}
	return 0;
}

void rtt_summary(const struct rtt *r, struct mono now, struct rtt_summary *ret)
{
	uint32_t counts[HIST_BUCKETS] = {0};
	float min = 0, max = 0, sum = 0;
	uint64_t total = 0;

	*ret = (struct rtt_summary){0};
	for (unsigned s = first_slice(r, now); s < RTT_SLICES; s++) {
		if (begin_of(r, s) == r->ends[s])
			continue;
		min = total ? MIN(min, r->min[s]) : r->min[s];
		max = MAX(max, r->max[s]);
		sum += r->sum[s];
		for (unsigned i = begin_of(r, s); i < r->ends[s]; i++) {
			counts[r->cells[i] >> COUNT_BITS] += r->cells[i] & COUNT_MAX;
			total += r->cells[i] & COUNT_MAX;
		}
	}
	if (!total)
		return;
	ret->samples = (uint32_t)MIN(total, UINT32_MAX);
	ret->min = (uint64_t)min;
	ret->max = (uint64_t)max;
	ret->mean = (uint64_t)(sum / (float)total);
	ret->last = (uint64_t)r->last;
	ret->p50 = MAX(ret->min, MIN(ret->max, quantile(counts, total, 50)));
	ret->p99 = MAX(ret->min, MIN(ret->max, quantile(counts, total, 99)));
}

void rtt_all_summary(const struct rtt *r, struct rtt_summary *ret)
{
	*ret = (struct rtt_summary){
		.samples = (uint32_t)MIN(hist_samples(&r->all), UINT32_MAX),
		.min = (uint64_t)r->all.min,
		.mean = hist_mean(&r->all),
		.p50 = hist_quantile(&r->all, 500),
		.p99 = hist_quantile(&r->all, 990),
		.max = (uint64_t)r->all.max,
		.last = (uint64_t)r->last,
	};
}

void rtt_window(const struct rtt *r, struct mono now, struct hist *ret)
{
	*ret = (struct hist){0};
	for (unsigned s = first_slice(r, now); s < RTT_SLICES; s++) {
		if (begin_of(r, s) == r->ends[s])
			continue;
		ret->min = ret->n ? MIN(ret->min, r->min[s]) : r->min[s];
		ret->max = MAX(ret->max, r->max[s]);
		ret->sum += (double)r->sum[s];
		for (unsigned i = begin_of(r, s); i < r->ends[s]; i++)
			hist_add_bucket(ret, r->cells[i] >> COUNT_BITS,
					r->cells[i] & COUNT_MAX);
	}
}

const struct hist *rtt_all(const struct rtt *r)
{
	return &r->all;
}
