/* SPDX-License-Identifier: BSD-2-Clause */
/* replay.h - sliding window over packet numbers (as RFC 4303 section 3.4.3). Pure. */
#pragma once

#include "util.h"

struct replay {
	uint64_t highest; /* 0 = nothing seen */
	uint64_t bits;	  /* bit n: highest - n seen */
};
/* A sender counts by ones: a number so far ahead of the highest was not counted, and if it
 * were taken, every honest one after it would be old. */
#define REPLAY_JUMP_MAX (UINT64_C(1) << 20)
/* true: @seq is new (and is remembered). 0, seen ones, those 64 or more behind the
 * highest, and (but for the first) those over REPLAY_JUMP_MAX ahead are not. */
bool replay_accept(struct replay *r, uint64_t seq);
