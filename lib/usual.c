/* SPDX-License-Identifier: BSD-2-Clause */
#include "usual.h"

#define GAP_SEC 60

static double learn_sec(const struct usual_params *p)
{
	return MAX((double)p->learn / (double)NSEC_PER_SEC, 1.0);
}

double usual_p99(const struct usual *u, const struct usual_params *p)
{
	return p->learn > 0 && u->learnt >= learn_sec(p) ? (double)u->p99 : 0;
}

bool usual_slower(const struct usual *u, const struct usual_params *p)
{
	return usual_p99(u, p) > 0 && u->slow * 5.0 >= learn_sec(p);
}

static bool is_slow(const struct usual *u, const struct usual_params *p, double p99)
{
	double usual = usual_p99(u, p);

	return usual > 0 && p99 >= usual * p->factor && p99 >= usual + USUAL_LEAST;
}

void usual_step(struct usual *u, const struct usual_params *p, bool well, double p99,
		struct mono now)
{
	uint32_t at = (uint32_t)MAX(now.ns / NSEC_PER_SEC, 1), sec;
	double share;

	if (p->learn <= 0) {
		*u = (struct usual){0};
		return;
	}
	sec = u->at && at > u->at ? MIN(at - u->at, (uint32_t)GAP_SEC) : 0;
	if (u->at && !sec)
		return;
	u->at = at;
	if (!well || p99 <= 0) {
		u->slow = 0;
		return;
	}
	if (is_slow(u, p, p99)) {
		u->slow = (uint32_t)MIN((uint64_t)u->slow + sec, UINT32_MAX);
		return;
	}
	u->slow = 0;
	/* In the beginning all looks count alike, then the newer ones more. */
	u->learnt = (uint32_t)MIN((uint64_t)u->learnt + sec, UINT32_MAX);
	if (!u->learnt)
		u->p99 = (float)p99;
	share = MIN((double)sec / MIN((double)MAX(u->learnt, 1U), learn_sec(p)), 1.0);
	u->p99 = (float)((double)u->p99 + ((p99 - (double)u->p99) * share));
}
