/* SPDX-License-Identifier: BSD-2-Clause */
#include "suspend.h"

int64_t suspend_look(struct suspend *s, struct mono before, int64_t boot_ns,
		     struct mono after)
{
	int64_t ahead = boot_ns - before.ns, slept = ahead - s->ahead;

	/* Interrupted between the readings: the clocks seem apart and are not. */
	if (mono_sub(after, before) >= SUSPEND_LEAST / 2)
		return 0;
	if (s->known && slept > 0 && slept < SUSPEND_LEAST)
		return 0;
	slept = s->known && slept > 0 ? slept : 0;
	s->known = true;
	s->ahead = ahead;
	return slept;
}
