/* SPDX-License-Identifier: BSD-2-Clause */
#include "backoff.h"

int64_t backoff_next(struct backoff *b, uint64_t rnd)
{
	int64_t top = b->last > b->max / 3 ? b->max : MAX(b->min, 3 * b->last);
	int64_t wait = b->min;

	if (top > b->min)
		wait += (int64_t)(rnd % (uint64_t)(top - b->min + 1));
	b->last = MIN(wait, b->max);
	return b->last;
}

void backoff_reset(struct backoff *b)
{
	b->last = 0;
}

void budget_init(struct budget *b, double per_sec, double burst, struct mono now)
{
	*b = (struct budget){
		.per_sec = per_sec, .burst = burst, .tokens = burst, .at = now};
}

void budget_init_strict(struct budget *b, double per_sec, struct mono now)
{
	double spare = per_sec / 50;

	/* What has been saved up and what comes in a second are one more together. */
	budget_init(b, per_sec - spare, 1 + spare, now);
}

bool budget_take(struct budget *b, struct mono now, struct mono *ret_at)
{
	int64_t passed = mono_sub(now, b->at);

	if (passed > 0) {
		b->tokens += (double)passed / (double)NSEC_PER_SEC * b->per_sec;
		b->tokens = MIN(b->tokens, b->burst);
		b->at = now;
	}
	/* The waker comes back at ret_at to the nanosecond: rounding must not send it
	 * away again. */
	if (b->tokens >= 1.0 - 1e-9) {
		b->tokens = MAX(b->tokens - 1.0, 0.0);
		return true;
	}
	if (ret_at)
		*ret_at = mono_add(now, 1 + (int64_t)((1.0 - b->tokens) / b->per_sec *
						      (double)NSEC_PER_SEC));
	return false;
}
