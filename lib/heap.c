/* SPDX-License-Identifier: BSD-2-Clause */
#include "heap.h"

#include <stdlib.h>

static void place(struct heap *h, size_t i, struct heap_node *node)
{
	h->nodes[i - 1] = node;
	node->index = i;
}

static bool before(const struct heap *h, size_t a, size_t b)
{
	return h->nodes[a - 1]->at.ns < h->nodes[b - 1]->at.ns;
}

static void swap(struct heap *h, size_t a, size_t b)
{
	struct heap_node *na = h->nodes[a - 1], *nb = h->nodes[b - 1];

	place(h, a, nb);
	place(h, b, na);
}

static void settle(struct heap *h, size_t i)
{
	while (i > 1 && before(h, i, i / 2)) {
		swap(h, i, i / 2);
		i /= 2;
	}
	for (;;) {
		size_t least = i;

		for (size_t c = 2 * i; c <= 2 * i + 1 && c <= h->n; c++)
			if (before(h, c, least))
				least = c;
		if (least == i)
			return;
		swap(h, i, least);
		i = least;
	}
}

static void take_out(struct heap *h, struct heap_node *node)
{
	size_t i = node->index;
	struct heap_node *last = h->nodes[--h->n];

	node->index = 0;
	if (last == node)
		return;
	place(h, i, last);
	settle(h, i);
}

void heap_set(struct heap *h, struct heap_node *node, struct mono at)
{
	node->at = at;
	if (!mono_is_set(at)) {
		if (node->index)
			take_out(h, node);
		return;
	}
	if (!node->index) {
		if (h->n == h->size) {
			h->size = h->size ? h->size * 2 : 16;
			h->nodes = xrealloc(h->nodes, h->size, sizeof(struct heap_node *));
		}
		h->n++;
		place(h, h->n, node);
	}
	settle(h, node->index);
}

struct heap_node *heap_first(const struct heap *h)
{
	return h->n ? h->nodes[0] : NULL;
}

void heap_done(struct heap *h)
{
	free(h->nodes);
	*h = (struct heap){0};
}
