/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hist.h - a log-linear histogram of times that takes only the room it needs: 4 bytes
 * for each bucket that was ever hit. 8 steps per power of two: whatever it says of a
 * quantile is wrong by at most 1/16 (6.25 %) of the exact quantile of the same rank.
 * Counts are exact, and so the merge of two is the histogram of both. Range 1 ns to
 * 2^40 ns (18 minutes); outside is clamped. Pure.
 */
#pragma once

#include "util.h"

#define HIST_STEP_BITS 3
#define HIST_STEPS     (1u << HIST_STEP_BITS)
#define HIST_MAX_BITS  40
#define HIST_BUCKETS   ((HIST_MAX_BITS - HIST_STEP_BITS + 1) * HIST_STEPS)
#define HIST_ERROR     (2 * HIST_STEPS) /* 1/HIST_ERROR is the largest relative error */

/* All zero is an empty one. */
struct hist {
	uint32_t *cells; /* owned; by bucket: bucket << 23 | count */
	uint16_t n, room;
	float min, max; /* exact up to 2^24 ns, then to 1e-7 */
	double sum;
};

unsigned hist_bucket(uint64_t ns);	     /* of a value in the range */
uint64_t hist_bucket_value(unsigned bucket); /* its middle */
uint64_t hist_clamp(int64_t ns);

void hist_done(struct hist *h); /* empty again, nothing owned */
void hist_add(struct hist *h, int64_t ns);
void hist_add_bucket(struct hist *h, unsigned bucket, uint64_t count); /* counts only */
void hist_merge(struct hist *into, const struct hist *from);
uint64_t hist_samples(const struct hist *h);
/* The value of rank ceil(samples * permille / 1000), 1 at least; 0 when it is empty. */
uint64_t hist_quantile(const struct hist *h, unsigned permille);
uint64_t hist_mean(const struct hist *h);

/* As bytes: big-endian, HIST_HEAD_LEN and 4 for each cell.
 * export: the length, or -ENOSPC; hist_export_len() says how much it takes.
 * import: the length that was read, or -EBADMSG and an empty one. */
#define HIST_HEAD_LEN 20
size_t hist_export_len(const struct hist *h);
int hist_export(const struct hist *h, uint8_t *buf, size_t size);
int hist_import(struct hist *ret, const uint8_t *buf, size_t len);
