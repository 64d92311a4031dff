/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * usual.h - what the 99th percentile of a connection's round trips usually is, and
 * whether it has been far above that for a while. Learnt only while the connection is
 * well and not slow: a slow path does not become usual by staying slow. Sixteen bytes a
 * connection. Pure.
 */
#pragma once

#include "mono.h"
#include "util.h"

struct usual {
	float p99;	 /* ns, a mean that forgets; 0 = nothing learnt */
	uint32_t learnt; /* seconds in which it was well */
	uint32_t slow;	 /* seconds in which it was far above without a break */
	uint32_t at;	 /* of the last look, in seconds; 0 = none */
};

struct usual_params {
	int64_t learn; /* ns: usual after so long, and how fast it forgets; 0 = never */
	double factor; /* slow from p99 * factor on */
};
/* And by as much at least, ns: a few microseconds more are no news. */
#define USUAL_LEAST 100000.0

/* One look at a p99 (ns, 0 = none). @well: connected, not late, nothing lost just now.
 * Looks within a second are one; what lies between two looks counts for a minute at
 * most. */
void usual_step(struct usual *u, const struct usual_params *p, bool well, double p99,
		struct mono now);
/* What is usual; 0 = it is not known yet. */
double usual_p99(const struct usual *u, const struct usual_params *p);
/* Far above it for a fifth of the time it takes to learn. */
bool usual_slower(const struct usual *u, const struct usual_params *p);
