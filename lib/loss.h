/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * loss.h - what was sent and lost in the last minute, from counts that only grow: a few
 * differences instead of as many pairs of counts. Pure.
 */
#pragma once

#include "mono.h"
#include "util.h"

#define LOSS_SLICES 6
#define LOSS_SLICE_NS (10 * NSEC_PER_SEC)

struct loss_slice {
	uint16_t sent, lost; /* 65535: or more */
};
struct loss {
	uint32_t sent, lost; /* the counts, cut, when the present slice began */
	struct mono since;   /* when that was; unset: nothing was noted yet */
	struct loss_slice past[LOSS_SLICES - 1];
	uint8_t next; /* of past to be written */
	uint8_t full; /* of past that count */
};

/* The counts are now @sent and @lost. Counts that went back begin anew. */
void loss_note(struct loss *l, uint64_t sent, uint64_t lost, struct mono now);
/* Both together: of the slices that are remembered and of the present one. */
void loss_lately(const struct loss *l, uint64_t sent, uint64_t lost, uint64_t *ret_sent,
		 uint64_t *ret_lost);
