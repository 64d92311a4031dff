/* SPDX-License-Identifier: BSD-2-Clause */
#include "pool.h"

#include <stdlib.h>

struct value {
	uint64_t hash; /* what the table is by: first */
	uint32_t refs, len;
	_Alignas(16) char data[];
};
_Static_assert(offsetof(struct value, hash) == 0, "POOL_INIT says so");

static const char empty[1] = "";

static uint64_t hash_of(const void *data, size_t len)
{
	const char *p = data;
	uint64_t h = len;

	for (; len; len -= MIN(len, sizeof(h)), p += sizeof(h)) {
		uint64_t part = 0;

		memcpy(&part, p, MIN(len, sizeof(part)));
		h = mix64(h ^ part);
	}
	return h;
}

static struct value *value_of(const void *data)
{
	return (struct value *)(void *)((char *)(uintptr_t)data -
					offsetof(struct value, data));
}

const void *pool_get(struct pool *p, const void *data, size_t len)
{
	uint64_t hash = hash_of(data, len);
	struct value *v = idtable_find(&p->values, hash);
	bool taken = v != NULL; /* by another value, if it is not this one */

	if (v && v->len == len && !memcmp(v->data, data, len)) {
		v->refs++;
		return v->data;
	}
	v = xcalloc(1, sizeof(*v) + len);
	v->hash = hash;
	v->refs = 1;
	v->len = (uint32_t)len;
	memcpy(v->data, data, len);
	if (!taken) /* else it is not shared */
		idtable_add(&p->values, v);
	return v->data;
}

const char *pool_text(struct pool *p, const char *text)
{
	return text && text[0] ? pool_get(p, text, strlen(text) + 1) : empty;
}

const void *pool_ref(const void *value)
{
	if (value && value != empty)
		value_of(value)->refs++;
	return value;
}

void pool_put(struct pool *p, const void *value)
{
	struct value *v;

	if (!value || value == empty)
		return;
	v = value_of(value);
	assert(v->refs);
	if (--v->refs)
		return;
	idtable_remove(&p->values, v);
	free(v);
}

size_t pool_count(const struct pool *p)
{
	return p->values.n;
}

void pool_done(struct pool *p)
{
	assert(!p->values.n);
	idtable_done(&p->values);
}
