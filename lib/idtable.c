/* SPDX-License-Identifier: BSD-2-Clause */
#include "idtable.h"

#include <stdlib.h>

#define SIZE_MIN 16

/* Linear probing; a removed object's followers move up, so that there are no marks. */

static uint64_t id_of(const struct idtable *t, const void *object)
{
	uint64_t id;

	memcpy(&id, (const char *)object + t->id_at, sizeof(id));
	return id;
}

static uint32_t home(const struct idtable *t, uint64_t id)
{
	return (uint32_t)mix64(id) & (t->size - 1);
}

static void put(struct idtable *t, void *object)
{
	uint32_t i = home(t, id_of(t, object));

	while (t->slots[i])
		i = (i + 1) & (t->size - 1);
	t->slots[i] = object;
}

static void resize(struct idtable *t, uint32_t size)
{
	void **old = t->slots;
	uint32_t old_size = t->size;

	t->slots = xcalloc(size, sizeof(*t->slots));
	t->size = size;
	for (uint32_t i = 0; i < old_size; i++)
		if (old[i])
			put(t, old[i]);
	free(old);
}

void idtable_done(struct idtable *t)
{
	free(t->slots);
	t->slots = NULL;
	t->n = t->size = 0;
}

void idtable_add(struct idtable *t, void *object)
{
	if (4 * (t->n + 1) > 3 * t->size)
		resize(t, MAX(2 * t->size, (uint32_t)SIZE_MIN));
	put(t, object);
	t->n++;
}

static uint32_t slot_of(const struct idtable *t, uint64_t id)
{
	uint32_t i = home(t, id);

	while (t->slots[i] && id_of(t, t->slots[i]) != id)
		i = (i + 1) & (t->size - 1);
	return i;
}

void *idtable_find(const struct idtable *t, uint64_t id)
{
	return t->n ? t->slots[slot_of(t, id)] : NULL;
}

/* May the object at @i stand at @hole, which comes before it? Not before its home. */
static bool may_move(const struct idtable *t, uint32_t i, uint32_t hole)
{
	uint32_t h = home(t, id_of(t, t->slots[i]));

	return ((i - h) & (t->size - 1)) >= ((i - hole) & (t->size - 1));
}

void idtable_remove(struct idtable *t, const void *object)
{
	uint32_t hole;

	if (!t->n)
		return;
	hole = home(t, id_of(t, object));
	while (t->slots[hole] && t->slots[hole] != object)
		hole = (hole + 1) & (t->size - 1);
	if (!t->slots[hole])
		return;
	t->n--;
	for (uint32_t i = (hole + 1) & (t->size - 1); t->slots[i];
	     i = (i + 1) & (t->size - 1)) {
		if (!may_move(t, i, hole))
			continue;
		t->slots[hole] = t->slots[i];
		hole = i;
	}
	t->slots[hole] = NULL;
	if (t->size > SIZE_MIN && 8 * t->n < t->size)
		resize(t, t->size / 2);
}

void *idtable_next(const struct idtable *t, uint32_t *at)
{
	while (*at < t->size) {
		void *object = t->slots[(*at)++];

		if (object)
			return object;
	}
	return NULL;
}
