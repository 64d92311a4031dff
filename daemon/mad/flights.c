/* SPDX-License-Identifier: BSD-2-Clause */
#include "flights.h"

#include <stdlib.h>

/* A transaction is the lane, a running number, and the slot: found in one step, and
 * late answers of a slot's former flights do not match. */
#define SLOT_BITS   10
#define NUMBER_MASK 0x1fffff

static_assert(SMP_OUT_MAX == 1 << SLOT_BITS, "a slot fits into a transaction");

void lane_init(struct lane *l, uint32_t tid_bit, int window)
{
	*l = (struct lane){.tid_bit = tid_bit, .window = window};
	l->last = &l->first;
	for (int i = 0; i < SMP_OUT_MAX; i++)
		l->free_slot[i] = (uint16_t)(SMP_OUT_MAX - 1 - i);
}

void lane_done(struct lane *l)
{
	struct flight *f;

	while ((f = lane_any(l))) {
		lane_land(l, f);
		flight_give(l, f);
	}
	while ((f = lane_pop(l)))
		flight_give(l, f);
	while ((f = l->spare)) {
		l->spare = f->next;
		free(f);
	}
}

/* ---- flights ---- */

struct flight *flight_new(struct lane *l)
{
	struct flight *f = l->spare;

	if (!f)
		return xcalloc(1, sizeof(*f));
	l->spare = f->next;
	f->next = NULL;
	return f;
}

void flight_give(struct lane *l, struct flight *f)
{
	free(f->send);
	*f = (struct flight){.next = l->spare};
	l->spare = f;
}

bool lane_is_full(const struct lane *l)
{
	return l->n_waiting >= SMP_QUEUE_MAX;
}

void lane_queue(struct lane *l, struct flight *f)
{
	f->next = NULL;
	*l->last = f;
	l->last = &f->next;
	l->n_waiting++;
}

struct flight *lane_pop(struct lane *l)
{
	struct flight *f = l->first;

	if (!f)
		return NULL;
	l->first = f->next;
	if (!l->first)
		l->last = &l->first;
	l->n_waiting--;
	return f;
}

/* ---- the window ---- */

static void grow_old(struct lane *l, struct flight *f)
{
	if (!f->young)
		return;
	f->young = false;
	l->n_young--;
	if (f->older)
		f->older->younger = f->younger;
	else
		l->oldest = f->younger;
	if (f->younger)
		f->younger->older = f->older;
	else
		l->youngest = f->older;
	f->older = f->younger = NULL;
}

struct flight *lane_next(struct lane *l, struct mono now)
{
	if (!l->first || l->n_out == SMP_OUT_MAX)
		return NULL;
	while (l->oldest && mono_sub(now, l->oldest->since) >= SMP_YOUNG_NS)
		grow_old(l, l->oldest);
	return l->n_young < l->window ? lane_pop(l) : NULL;
}

void lane_depart(struct lane *l, struct flight *f, struct mono now)
{
	static uint32_t number;
	uint16_t slot = l->free_slot[SMP_OUT_MAX - 1 - l->n_out];

	/* 0 looks like a MAD that nobody filled in. */
	number = (number + 1) & NUMBER_MASK;
	number += !number;
	f->tid = l->tid_bit | number << SLOT_BITS | slot;
	l->slot[slot] = f;
	l->n_out++;
	f->since = now;
	f->young = true;
	l->n_young++;
	f->older = l->youngest;
	if (l->youngest)
		l->youngest->younger = f;
	else
		l->oldest = f;
	l->youngest = f;
	l->check_at = mono_first(l->check_at, f->deadline);
}

struct flight *lane_find(const struct lane *l, uint32_t tid)
{
	struct flight *f = l->slot[tid % SMP_OUT_MAX];

	return f && f->tid == tid ? f : NULL;
}

void lane_land(struct lane *l, struct flight *f)
{
	uint16_t slot = f->tid % SMP_OUT_MAX;

	grow_old(l, f);
	l->slot[slot] = NULL;
	l->n_out--;
	l->free_slot[SMP_OUT_MAX - 1 - l->n_out] = slot;
	f->tid = 0;
	if (!l->n_out)
		l->check_at = MONO_NEVER;
}

struct flight *lane_any(const struct lane *l)
{
	for (int i = 0; l->n_out && i < SMP_OUT_MAX; i++)
		if (l->slot[i])
			return l->slot[i];
	return NULL;
}

/* ---- deadlines ---- */

struct flight *lane_overdue(struct lane *l, struct mono now)
{
	struct mono first = MONO_NEVER;

	if (!mono_due(l->check_at, now))
		return NULL;
	for (int i = 0; i < SMP_OUT_MAX; i++) {
		struct flight *f = l->slot[i];

		if (!f)
			continue;
		if (mono_due(f->deadline, now))
			return f;
		first = mono_first(first, f->deadline);
	}
	/* Until now it was that of the last look, and may have gone with its flight. */
	l->check_at = first;
	return NULL;
}

struct mono lane_deadline(const struct lane *l)
{
	struct mono at = l->check_at;

	if (l->first && l->oldest && l->n_young >= l->window)
		at = mono_first(at, mono_add(l->oldest->since, SMP_YOUNG_NS));
	return at;
}
