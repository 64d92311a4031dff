/* SPDX-License-Identifier: BSD-2-Clause */
#include "rto.h"

#include <stdlib.h>

void rto_sample(struct rto *r, int64_t ns)
{
	int64_t us = MIN(MAX(ns / NSEC_PER_USEC, INT64_C(1)), INT64_C(1) << 31);
	int64_t srtt = r->srtt_us, var = r->var_us;

	if (!srtt) {
		srtt = us;
		var = us / 2;
	} else {
		var = (3 * var + llabs(srtt - us)) / 4;
		srtt = (7 * srtt + us) / 8;
	}
	r->srtt_us = (uint32_t)MAX(srtt, INT64_C(1));
	r->var_us = (uint32_t)var;
}

int64_t rto_wait(const struct rto *r, int64_t first, unsigned tries, int64_t min,
		 int64_t max)
{
	int64_t wait = r->srtt_us ? (r->srtt_us + 4 * (int64_t)r->var_us) * NSEC_PER_USEC
				  : first;

	wait = MAX(wait, min);
	for (; tries && wait < max; tries--)
		wait *= 2;
	return MIN(wait, MAX(max, min));
}
