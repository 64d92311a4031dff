/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * suspend.h - whether the host was suspended: then the clock that goes on (boottime)
 * has got ahead of the one that stood still (monotonic), and no timer was late. Pure.
 */
#pragma once

#include "mono.h"

struct suspend {
	int64_t ahead; /* of boottime before monotonic, ns */
	bool known;
};

/* Boottime and monotonic as they were read between @before and @after (both monotonic).
 * How long the host was suspended since the last look, ns; 0: not, or for less than
 * SUSPEND_LEAST, or the three readings lie too far apart to tell. */
#define SUSPEND_LEAST (50 * NSEC_PER_MSEC)
int64_t suspend_look(struct suspend *s, struct mono before, int64_t boot_ns,
		     struct mono after);
