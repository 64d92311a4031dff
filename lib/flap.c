/* SPDX-License-Identifier: BSD-2-Clause */
#include "flap.h"

#include <math.h>

void flap_params_default(struct flap_params *p)
{
	*p = (struct flap_params){
		.penalty = 1000,
		.suppress = 2500,
		.reuse = 750,
		.ceiling = 8000,
		.half_life = 15 * 60 * NSEC_PER_SEC,
	};
}

double flap_penalty(const struct flap *f, const struct flap_params *p, struct mono now)
{
	int64_t age = mono_sub(now, f->at);

	if (f->penalty <= 0 || age <= 0)
		return f->penalty;
	if (p->half_life <= 0)
		return 0;
	return f->penalty * exp2(-(double)age / (double)p->half_life);
}

bool flap_update(struct flap *f, const struct flap_params *p, struct mono now)
{
	bool was = f->damped;

	f->penalty = flap_penalty(f, p, now);
	f->at = now;
	if (f->damped)
		f->damped = f->penalty > p->reuse && p->suppress > 0;
	else
		f->damped = f->penalty >= p->suppress && p->suppress > 0;
	if (f->damped && !was)
		f->damped_since = now;
	return f->damped != was;
}

void flap_add(struct flap *f, const struct flap_params *p, struct mono now)
{
	f->penalty = flap_penalty(f, p, now) + p->penalty;
	if (f->penalty > p->ceiling)
		f->penalty = p->ceiling;
	f->at = f->last = now;
	f->count++;
	(void)flap_update(f, p, now);
}

struct mono flap_release(const struct flap *f, const struct flap_params *p)
{
	double halves;

	if (!f->damped)
		return MONO_NEVER;
	if (f->penalty <= p->reuse || p->half_life <= 0 || p->reuse <= 0)
		return f->at;
	halves = log2(f->penalty / p->reuse);
	/* A nanosecond more: rounding must not wake somebody too early. */
	return mono_add(f->at, (int64_t)ceil(halves * (double)p->half_life) + 1);
}
