/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ring.h - a bounded queue of elements of one size from one thread to one other,
 * without locks, so that neither can hold up the other. The owner keeps the two threads
 * apart; waking the reader is the writer's business. Memory is taken at init only.
 */
#pragma once

#include <stdatomic.h>

#include "util.h"

struct ring {
	size_t elem, count;  /* count: a power of two */
	uint8_t *slots;	     /* owned */
	_Atomic size_t head; /* written by the reader */
	_Atomic size_t tail; /* written by the writer */
};

void ring_init(struct ring *r, size_t elem, size_t count);
void ring_done(struct ring *r);
/* Copy @elem in; false: the ring is full, nothing was done. Writer only. */
bool ring_push(struct ring *r, const void *elem);
/* Copy the oldest out; false: empty. Reader only. */
bool ring_pop(struct ring *r, void *elem);
size_t ring_used(const struct ring *r);
