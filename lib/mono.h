/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mono.h - monotonic time as a type of its own, so that it cannot be mixed with wall
 * clock, seconds or milliseconds. CLOCK_MONOTONIC nanoseconds; 0 means "never".
 * Pure: nobody here reads a clock.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct mono {
	int64_t ns;
};

#define NSEC_PER_USEC INT64_C(1000)
#define NSEC_PER_MSEC INT64_C(1000000)
#define NSEC_PER_SEC INT64_C(1000000000)
#define MONO_NEVER ((struct mono){0})

static inline bool mono_is_set(struct mono t)
{
	return t.ns != 0;
}
static inline struct mono mono_add(struct mono t, int64_t ns)
{
	return (struct mono){t.ns + ns};
}
/* @a - @b in nanoseconds. */
static inline int64_t mono_sub(struct mono a, struct mono b)
{
	return a.ns - b.ns;
}
/* True when @t is set and not after @now. */
static inline bool mono_due(struct mono t, struct mono now)
{
	return t.ns != 0 && t.ns <= now.ns;
}
/* The earlier of two deadlines; "never" loses. */
static inline struct mono mono_first(struct mono a, struct mono b)
{
	if (!a.ns)
		return b;
	if (!b.ns)
		return a;
	return a.ns < b.ns ? a : b;
}
