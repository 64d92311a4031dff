/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * heap.h - deadlines in order: a binary heap of nodes that are embedded in the objects
 * they belong to. Pure. A node is in at most one heap.
 */
#pragma once

#include "mono.h"
#include "util.h"

struct heap_node {
	struct mono at;
	size_t index; /* 1.. while in the heap, 0 = out */
};
struct heap {
	struct heap_node **nodes; /* owned array of borrowed nodes */
	size_t n, size;
};
void heap_done(struct heap *h); /* frees the array only */
/* Put in, move, or (MONO_NEVER) take out. */
void heap_set(struct heap *h, struct heap_node *node, struct mono at);
struct heap_node *heap_first(const struct heap *h); /* NULL: empty */

#define container_of(ptr, type, member) \
	((type *)(void *)((char *)(ptr) - offsetof(type, member)))
