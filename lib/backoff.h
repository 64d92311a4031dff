/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * backoff.h - when to try again: decorrelated jitter per connection, and a token bucket
 * for the starts of the whole host. Pure.
 */
#pragma once

#include "mono.h"
#include "util.h"

struct backoff {
	int64_t min, max; /* ns */
	int64_t last;	  /* 0 = none yet */
};
/* The next wait: uniform in [min, max(min, 3 * last)], capped at max. */
int64_t backoff_next(struct backoff *b, uint64_t rnd);
void backoff_reset(struct backoff *b);

struct budget {
	double per_sec; /* > 0 */
	double burst;	/* tokens at most, >= 1 */
	double tokens;
	struct mono at;
};
/* So that no second, wherever it begins, sees more than @per_sec taken (rounded up). The
 * waker may be late by a fiftieth of a second without losing anything. */
void budget_init_strict(struct budget *b, double per_sec, struct mono now);
void budget_init(struct budget *b, double per_sec, double burst, struct mono now);
/* Take one token. false: none; *ret_at (may be NULL) = when there will be one. */
bool budget_take(struct budget *b, struct mono now, struct mono *ret_at);
