/* SPDX-License-Identifier: BSD-2-Clause */
#include "port.h"

#include <inttypes.h>
#include <stdio.h>

#define ROW(type, name, kind)                                                          \
	{#name, FIELD_##kind, (uint16_t)offsetof(struct type, name),                   \
	 (uint16_t)sizeof(((struct type *)0)->name)},
#define DEVICE_ROW(id, name, kind, type, dim) ROW(device_facts, name, kind)
#define PORT_ROW(id, name, kind, type, dim)   ROW(port_facts, name, kind)
#define REMOTE_ROW(id, name, kind, type, dim) ROW(remote_facts, name, kind)

static const struct field device_rows[] = {DEVICE_FIELDS(DEVICE_ROW)};
static const struct field port_rows[] = {PORT_FIELDS(PORT_ROW)};
static const struct field remote_rows[] = {REMOTE_FIELDS(REMOTE_ROW)};

const struct field_table device_table = {device_rows, DF__MAX,
					 offsetof(struct device_facts, why)};
const struct field_table port_table = {port_rows, PF__MAX,
				       offsetof(struct port_facts, why)};
const struct field_table remote_table = {remote_rows, RF__MAX,
					 offsetof(struct remote_facts, why)};

static const struct field *row_at(const struct field_table *t, int field)
{
	assert(field >= 0 && field < t->n);
	return &t->fields[field];
}

static uint8_t *why_at(const struct field_table *t, void *facts, int field)
{
	return (uint8_t *)facts + t->why_offset + field;
}

/* Set the reason; true if it was another. */
static bool set_why(const struct field_table *t, void *facts, int field,
		    enum unavailable why)
{
	uint8_t *w = why_at(t, facts, field);
	bool changed = *w != why;

	*w = (uint8_t)why;
	return changed;
}

int field_hex_digits(enum field_kind kind)
{
	switch (kind) {
	case FIELD_HEX:
		return 8;
	case FIELD_OUI:
		return 6;
	case FIELD_ID:
		return 4;
	default:
		return 0;
	}
}

bool field_set_u64(const struct field_table *t, void *facts, int field, uint64_t v)
{
	const struct field *f = row_at(t, field);
	uint8_t *p = (uint8_t *)facts + f->offset;
	uint32_t v32 = (uint32_t)v;
	uint8_t v8 = v != 0;
	const void *from = &v;
	bool changed;

	switch (f->kind) {
	case FIELD_U64:
	case FIELD_GUID:
		break;
	case FIELD_U32:
	case FIELD_HEX:
	case FIELD_OUI:
	case FIELD_ID:
		assert(v <= UINT32_MAX);
		from = &v32;
		break;
	case FIELD_BOOL:
		from = &v8;
		break;
	case FIELD_TEXT:
		assert(!"a number for a text");
		return false;
	}
	changed = memcmp(p, from, f->size) != 0;
	memcpy(p, from, f->size);
	return set_why(t, facts, field, WHY_NONE) || changed;
}

bool field_set_text(const struct field_table *t, void *facts, int field, const char *s)
{
	const struct field *f = row_at(t, field);
	char *p = (char *)facts + f->offset;
	bool changed;

	assert(f->kind == FIELD_TEXT);
	/* Compare what would be stored: a text that is cut is not new each time. */
	changed = strncmp(p, s, f->size - 1U) != 0;
	if (changed) {
		memset(p, 0, f->size);
		(void)str_copy(p, f->size, s);
	}
	return set_why(t, facts, field, WHY_NONE) || changed;
}

bool field_set_missing(const struct field_table *t, void *facts, int field,
		       enum unavailable why)
{
	const struct field *f = row_at(t, field);

	assert(why != WHY_NONE && why < WHY__MAX);
	memset((uint8_t *)facts + f->offset, 0, f->size);
	return set_why(t, facts, field, why);
}

void field_all_missing(const struct field_table *t, void *facts, enum unavailable why)
{
	for (int i = 0; i < t->n; i++)
		(void)field_set_missing(t, facts, i, why);
}

enum unavailable field_why(const struct field_table *t, const void *facts, int field)
{
	(void)row_at(t, field);
	return (enum unavailable)(
		(const uint8_t *)facts)[t->why_offset + (size_t)field];
}

const char *field_text(const struct field_table *t, const void *facts, int field,
		       char *buf, size_t size)
{
	const struct field *f = row_at(t, field);
	const uint8_t *p = (const uint8_t *)facts + f->offset;
	uint64_t v = 0;
	uint32_t v32 = 0;

	if (field_why(t, facts, field) != WHY_NONE) {
		(void)str_copy(buf, size, "-");
		return buf;
	}
	switch (f->kind) {
	case FIELD_U64:
	case FIELD_GUID:
		memcpy(&v, p, sizeof(v));
		(void)snprintf(buf, size,
			       f->kind == FIELD_GUID ? "0x%016" PRIx64 : "%" PRIu64, v);
		break;
	case FIELD_U32:
		memcpy(&v32, p, sizeof(v32));
		(void)snprintf(buf, size, "%u", v32);
		break;
	case FIELD_HEX:
	case FIELD_OUI:
	case FIELD_ID:
		memcpy(&v32, p, sizeof(v32));
		(void)snprintf(buf, size, "0x%0*x", field_hex_digits(f->kind), v32);
		break;
	case FIELD_TEXT:
		(void)str_copy(buf, size, (const char *)p);
		break;
	case FIELD_BOOL:
		(void)str_copy(buf, size, *p ? "true" : "false");
		break;
	}
	return buf;
}

const char *gid_type_name(uint8_t type)
{
	static const char *const names[] = {"ib", "roce_v1", "roce_v2"};

	return type < ARRAY_LEN(names) ? names[type] : "unknown";
}

const char *gid_text(const uint8_t gid[16], char buf[48])
{
	buf[0] = '\0';
	for (int i = 0; i < 16; i += 2)
		str_append(buf, 48, "%s%04x", i ? ":" : "", be16_get(gid + i));
	return buf;
}
