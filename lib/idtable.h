/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * idtable.h - objects by a random 64-bit id that they hold themselves: 8 bytes a slot,
 * half to three quarters of the slots in use. Pure. The table borrows the objects; an id
 * must not change while its object is in, and 0 is an id as any other.
 */
#pragma once

#include "util.h"

struct idtable {
	void **slots; /* owned array of borrowed objects; NULL = free */
	uint32_t n, size;
	size_t id_at; /* offset of the uint64_t in the object */
};
#define IDTABLE_INIT(type, field)                                                      \
	{                                                                              \
		.id_at = offsetof(struct type, field)                                  \
	}

void idtable_done(struct idtable *t); /* frees the array only */
/* Of several with one id any is found, and each goes as itself. */
void idtable_add(struct idtable *t, void *object);
void *idtable_find(const struct idtable *t, uint64_t id);
void idtable_remove(struct idtable *t, const void *object); /* not in: nothing */
/* All objects, in no order, while none is added or removed: @at from 0; NULL: no more. */
void *idtable_next(const struct idtable *t, uint32_t *at);
