/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rtt.h - round-trip statistics: histograms (hist.h, with its error of at most 1/16) over
 * a sliding window of 60 s in 6 slices of 10 s, and since the start; and the last value.
 * Pure. Made for ten thousand of them: at one sample a second about 400 bytes, 2 for each
 * bucket that a slice hits and 4 for each that was ever hit.
 */
#pragma once

#include "hist.h"
#include "mono.h"

#define RTT_SLICES 6
#define RTT_SLICE_NS (10 * NSEC_PER_SEC)

struct rtt; /* opaque, owned by the caller */
struct rtt *rtt_new(void);
struct rtt *rtt_free(struct rtt *r); /* NULL-safe, returns NULL */
void rtt_clear(struct rtt *r);
void rtt_add(struct rtt *r, int64_t ns, struct mono now); /* ns <= 0 counts as 1 */
size_t rtt_memory(const struct rtt *r);			  /* bytes, all of it */

/* All zero when there is nothing. ns. min, max and last are exact up to 2^24 ns and else
 * to 1e-7; mean to 0.5 % or better. */
struct rtt_summary {
	uint32_t samples;
	uint64_t min, mean, p50, p99, max, last;
};
void rtt_summary(const struct rtt *r, struct mono now, struct rtt_summary *ret);
/* Since the start. */
void rtt_all_summary(const struct rtt *r, struct rtt_summary *ret);
/* The same as histograms: @ret is the caller's to hist_done(); borrowed. */
void rtt_window(const struct rtt *r, struct mono now, struct hist *ret);
const struct hist *rtt_all(const struct rtt *r);
