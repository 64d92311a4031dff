/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * flap.h - a penalty for flapping that decays by half each half-life, as route flap
 * damping does (RFC 2439, 4.2). Pure.
 */
#pragma once

#include "mono.h"

struct flap_params {
	double penalty;	     /* of a flap, 1000 */
	double suppress;     /* damped from here on, 2500: the third in a short time */
	double reuse;	     /* until it has decayed to this, 750 */
	double ceiling;	     /* never more, so that it ends: 8000 */
	int64_t half_life;   /* ns, 15 min */
};
void flap_params_default(struct flap_params *p);

struct flap {
	double penalty;
	struct mono at; /* of that value */
	uint32_t count; /* flaps ever */
	bool damped;
	struct mono damped_since, last;
};
/* One more at @now. */
void flap_add(struct flap *f, const struct flap_params *p, struct mono now);
/* Bring it up to @now; true if damped changed. */
bool flap_update(struct flap *f, const struct flap_params *p, struct mono now);
double flap_penalty(const struct flap *f, const struct flap_params *p, struct mono now);
/* When it will be released; never if it is not damped. */
struct mono flap_release(const struct flap *f, const struct flap_params *p);
