/* SPDX-License-Identifier: BSD-2-Clause */
#include "ring.h"

#include <stdlib.h>

void ring_init(struct ring *r, size_t elem, size_t count)
{
	assert(elem && count && !(count & (count - 1)));
	r->elem = elem;
	r->count = count;
	r->slots = xcalloc(count, elem);
	/* Have the pages now: a ring that is used bit by bit looks like a leak. */
	memset(r->slots, 0, count * elem);
	atomic_init(&r->head, 0);
	atomic_init(&r->tail, 0);
}

void ring_done(struct ring *r)
{
	free(r->slots);
	r->slots = NULL;
}

bool ring_push(struct ring *r, const void *elem)
{
	size_t tail = atomic_load_explicit(&r->tail, memory_order_relaxed);

	if (tail - atomic_load_explicit(&r->head, memory_order_acquire) == r->count)
		return false;
	memcpy(r->slots + (tail & (r->count - 1)) * r->elem, elem, r->elem);
	atomic_store_explicit(&r->tail, tail + 1, memory_order_release);
	return true;
}

bool ring_pop(struct ring *r, void *elem)
{
	size_t head = atomic_load_explicit(&r->head, memory_order_relaxed);

	if (atomic_load_explicit(&r->tail, memory_order_acquire) == head)
		return false;
	memcpy(elem, r->slots + (head & (r->count - 1)) * r->elem, r->elem);
	atomic_store_explicit(&r->head, head + 1, memory_order_release);
	return true;
}

size_t ring_used(const struct ring *r)
{
	return atomic_load_explicit(&r->tail, memory_order_acquire) -
	       atomic_load_explicit(&r->head, memory_order_acquire);
}
