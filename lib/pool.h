/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pool.h - values that many objects have in common (a place on this host, a line of
 * text): one copy of each, counted. Pure. A value is bytes; a struct must have no byte
 * that was not written.
 */
#pragma once

#include "idtable.h"

struct pool {
	struct idtable values; /* owned, by the hash of their bytes */
};
#define POOL_INIT                                                                      \
	{                                                                              \
		.values = { .id_at = 0 }                                               \
	}

/* A reference to the one copy of @len bytes, good until it is put. */
const void *pool_get(struct pool *p, const void *data, size_t len);
/* The same for a text; "" is never NULL and costs nothing. */
const char *pool_text(struct pool *p, const char *text);
void pool_put(struct pool *p, const void *value); /* NULL: nothing */
/* Another reference to what pool_get() gave. */
const void *pool_ref(const void *value);
size_t pool_count(const struct pool *p); /* different values */
void pool_done(struct pool *p); /* all must have been put */
