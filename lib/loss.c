/* SPDX-License-Identifier: BSD-2-Clause */
#include "loss.h"

#define PAST (LOSS_SLICES - 1)

static uint16_t cut(uint32_t v)
{
	return (uint16_t)MIN(v, (uint32_t)UINT16_MAX);
}

void loss_note(struct loss *l, uint64_t sent, uint64_t lost, struct mono now)
{
	uint32_t more_sent = (uint32_t)sent - l->sent;
	uint32_t more_lost = (uint32_t)lost - l->lost;

	/* A new endpoint counts from 0. */
	if (!mono_is_set(l->since) || more_sent > INT32_MAX || more_lost > INT32_MAX) {
		*l = (struct loss){.sent = (uint32_t)sent,
				   .lost = (uint32_t)lost,
				   .since = now};
		return;
	}
	if (mono_sub(now, l->since) < LOSS_SLICE_NS)
		return;
	l->past[l->next] = (struct loss_slice){cut(more_sent), cut(more_lost)};
	l->next = (uint8_t)((l->next + 1) % PAST);
	l->full = (uint8_t)MIN(l->full + 1, PAST);
	l->sent = (uint32_t)sent;
	l->lost = (uint32_t)lost;
	l->since = now;
}

void loss_lately(const struct loss *l, uint64_t sent, uint64_t lost, uint64_t *ret_sent,
		 uint64_t *ret_lost)
{
	uint32_t more_sent = (uint32_t)sent - l->sent, more_lost = (uint32_t)lost - l->lost;

	*ret_sent = *ret_lost = 0;
	/* A new endpoint, not noted yet, counts from 0. */
	if (!mono_is_set(l->since) || more_sent > INT32_MAX || more_lost > INT32_MAX)
		return;
	*ret_sent = more_sent;
	*ret_lost = more_lost;
	for (unsigned i = 0; i < l->full; i++) {
		*ret_sent += l->past[i].sent;
		*ret_lost += l->past[i].lost;
	}
}
