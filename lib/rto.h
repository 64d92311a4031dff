/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rto.h - how long to wait for an answer before asking again: RFC 6298, with the round
 * trips as samples. 8 bytes, so that every connection can have one. Pure.
 */
#pragma once

#include "mono.h"
#include "util.h"

/* All zero: nothing measured yet. */
struct rto {
	uint32_t srtt_us, var_us;
};
/* A round trip. The answer must be known to be of that very message (Karn). */
void rto_sample(struct rto *r, int64_t ns);
/* SRTT + 4 * RTTVAR within @min..@max; @first while nothing is measured; doubled for each
 * of @tries that had no answer. ns. */
int64_t rto_wait(const struct rto *r, int64_t first, unsigned tries, int64_t min,
		 int64_t max);
