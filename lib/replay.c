/* SPDX-License-Identifier: BSD-2-Clause */
#include "replay.h"

bool replay_accept(struct replay *r, uint64_t seq)
{
	uint64_t ahead, behind;

	if (seq > r->highest) {
		ahead = seq - r->highest;
		if (r->highest && ahead > REPLAY_JUMP_MAX)
			return false;
		r->bits = ahead < 64 ? r->bits << ahead : 0;
		r->bits |= 1;
		r->highest = seq;
		return true;
	}
	behind = r->highest - seq;
	if (!seq || behind >= 64 || (r->bits >> behind) & 1)
		return false;
	r->bits |= UINT64_C(1) << behind;
	return true;
}
