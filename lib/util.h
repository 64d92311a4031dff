/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * util.h - what every room needs: sizes, string tables, memory that cannot fail, bytes.
 * Pure: no I/O, no clock, no logging.
 */
#pragma once

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))
#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))
#define PRINTF_LIKE(f, a) __attribute__((format(printf, f, a)))

/* A local that frees itself: `_cleanup_(freep) char *s = NULL;` */
#define _cleanup_(f) __attribute__((cleanup(f)))
void freep(void *p);

/* Allocation that aborts the process when memory is out or a size overflows: the
 * daemon's state is read again from the hardware after a restart. The caller owns the
 * result and frees it with free(). xcalloc zeroes. */
void *xcalloc(size_t n, size_t size);
void *xrealloc(void *p, size_t n, size_t size);
char *xstrdup(const char *s);
char *xasprintf(const char *fmt, ...) PRINTF_LIKE(1, 2);

/* Copy @src to @dst of @size bytes, always ending in NUL, cutting what does not fit.
 * Returns false if it was cut. */
bool str_copy(char *dst, size_t size, const char *src);
/* printf to the end of the string in @dst; cuts what does not fit. */
void str_append(char *dst, size_t size, const char *fmt, ...) PRINTF_LIKE(3, 4);
/* How long, as people say it: "0.4s" "12s" "3m12s" "2h05m" "41d"; "-" if negative or not a
 * number. */
void str_append_age(char *dst, size_t size, double sec);
bool str_eq(const char *a, const char *b); /* NULL equals NULL only */
/* As strcmp(), but numbers in the texts count as numbers: leaf2 before leaf10. */
int str_compare_natural(const char *a, const char *b);

/* Copy text that came from a wire or a device: at most @n bytes up to the first NUL;
 * bytes that are not printable ASCII become '?'; trailing blanks go. @dst ends in NUL. */
void text_clean(char *dst, size_t size, const void *src, size_t n);

/* Levenshtein distance, for "did you mean". Both at most 64 characters, else SIZE_MAX. */
size_t str_distance(const char *a, const char *b);

/*
 * Names of an enum. @names has @n entries, index = value; snake_case (JSON, IDL).
 * enum_name: the name or "unknown" for a value out of range. enum_find: the value or
 * -1; '-' and '_' count as the same, case does not.
 * enum_text: the name as text prints it, '_' as '-', in a static ring of 8 buffers.
 */
struct enum_names {
	const char *const *names;
	int n;
};
const char *enum_name(const struct enum_names *t, int value);
const char *enum_text(const struct enum_names *t, int value);
int enum_find(const struct enum_names *t, const char *name);

/* Big-endian fields of a wire buffer. The caller has checked the length. */
static inline uint16_t be16_get(const uint8_t *p)
{
	return (uint16_t)((p[0] << 8) | p[1]);
}
static inline uint32_t be32_get(const uint8_t *p)
{
	return ((uint32_t)be16_get(p) << 16) | be16_get(p + 2);
}
static inline uint64_t be64_get(const uint8_t *p)
{
	return ((uint64_t)be32_get(p) << 32) | be32_get(p + 4);
}
static inline void be16_put(uint8_t *p, uint16_t v)
{
	p[0] = (uint8_t)(v >> 8);
	p[1] = (uint8_t)v;
}
static inline void be32_put(uint8_t *p, uint32_t v)
{
	be16_put(p, (uint16_t)(v >> 16));
	be16_put(p + 2, (uint16_t)v);
}
static inline void be64_put(uint8_t *p, uint64_t v)
{
	be32_put(p, (uint32_t)(v >> 32));
	be32_put(p + 4, (uint32_t)v);
}

/* A well-mixed 64-bit value from @seed (splitmix64): one random argument, many draws. */
uint64_t mix64(uint64_t seed);
