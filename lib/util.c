/* SPDX-License-Identifier: BSD-2-Clause */
#include "util.h"

#include <inttypes.h>

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <ctype.h>

void freep(void *p)
{
	free(*(void **)p);
}

void *xcalloc(size_t n, size_t size)
{
	void *p = calloc(n ? n : 1, size ? size : 1);

	if (!p)
		abort();
	return p;
}

void *xrealloc(void *p, size_t n, size_t size)
{
	p = reallocarray(p, n ? n : 1, size ? size : 1);
	if (!p)
		abort();
	return p;
}

char *xstrdup(const char *s)
{
	char *p = strdup(s);

	if (!p)
		abort();
	return p;
}

char *xasprintf(const char *fmt, ...)
{
	char *p = NULL;
	va_list ap;

	va_start(ap, fmt);
	if (vasprintf(&p, fmt, ap) < 0)
		abort();
	va_end(ap);
	return p;
}

bool str_copy(char *dst, size_t size, const char *src)
{
	size_t n = strlen(src);

	if (!size)
		return false;
	memcpy(dst, src, MIN(n, size - 1));
	dst[MIN(n, size - 1)] = '\0';
	return n < size;
}

void str_append(char *dst, size_t size, const char *fmt, ...)
{
	size_t n = strnlen(dst, size);
	va_list ap;

	if (n >= size)
		return;
	va_start(ap, fmt);
	(void)vsnprintf(dst + n, size - n, fmt, ap);
	va_end(ap);
}

void str_append_age(char *dst, size_t size, double sec)
{
	int64_t s;

	if (!(sec >= 0 && sec <= 1e12)) {
		str_append(dst, size, "-");
		return;
	}
	/* Between 0.95 and 1 round up, else down: an age is never older than told. */
	s = sec < 1 ? 1 : (int64_t)sec;
	if (sec < 0.05)
		str_append(dst, size, "0s");
	else if (sec < 0.95)
		str_append(dst, size, "%.1fs", sec);
	else if (s < 60)
		str_append(dst, size, "%" PRId64 "s", s);
	else if (s < 3600)
		str_append(dst, size, "%" PRId64 "m%02" PRId64 "s", s / 60, s % 60);
	else if (s < 86400)
		str_append(dst, size, "%" PRId64 "h%02" PRId64 "m", s / 3600, s % 3600 / 60);
	else
		str_append(dst, size, "%" PRId64 "d", s / 86400);
}

bool str_eq(const char *a, const char *b)
{
	if (!a || !b)
		return a == b;
	return !strcmp(a, b);
}

/* Digits without leading zeros: the longer number is the larger one. */
static int compare_numbers(const char **a, const char **b)
{
	size_t x, y;
	int c;

	*a += strspn(*a, "0");
	*b += strspn(*b, "0");
	x = strspn(*a, "0123456789");
	y = strspn(*b, "0123456789");
	c = x != y ? (x < y ? -1 : 1) : strncmp(*a, *b, x);
	*a += x;
	*b += y;
	return c;
}

int str_compare_natural(const char *a, const char *b)
{
	const char *whole_a = a, *whole_b = b;

	while (*a && *b) {
		if (isdigit((unsigned char)*a) && isdigit((unsigned char)*b)) {
			int c = compare_numbers(&a, &b);

			if (c)
				return c;
		} else if (*a != *b) {
			break;
		} else {
			a++;
			b++;
		}
	}
	if (*a || *b)
		return (unsigned char)*a - (unsigned char)*b;
	return strcmp(whole_a, whole_b);
}

void text_clean(char *dst, size_t size, const void *src, size_t n)
{
	const unsigned char *s = src;
	size_t i;

	if (!size)
		return;
	for (i = 0; i < n && i < size - 1 && s[i]; i++)
		dst[i] = (s[i] >= 0x20 && s[i] < 0x7f) ? (char)s[i] : '?';
	while (i > 0 && dst[i - 1] == ' ')
		i--;
	dst[i] = '\0';
}

size_t str_distance(const char *a, const char *b)
{
	size_t la = strlen(a), lb = strlen(b), row[65];

	if (la > 64 || lb > 64)
		return SIZE_MAX;
	for (size_t j = 0; j <= lb; j++)
		row[j] = j;
	for (size_t i = 1; i <= la; i++) {
		size_t diag = row[0];

		row[0] = i;
		for (size_t j = 1; j <= lb; j++) {
			size_t up = row[j];
			size_t swap = diag + (tolower((unsigned char)a[i - 1]) !=
					      tolower((unsigned char)b[j - 1]));

			row[j] = MIN(MIN(row[j - 1] + 1, up + 1), swap);
			diag = up;
		}
	}
	return row[lb];
}

const char *enum_name(const struct enum_names *t, int value)
{
	if (value < 0 || value >= t->n || !t->names[value])
		return "unknown";
	return t->names[value];
}

const char *enum_text(const struct enum_names *t, int value)
{
	static char ring[8][48];
	static unsigned next;
	char *s = ring[next++ % ARRAY_LEN(ring)];

	(void)str_copy(s, sizeof(ring[0]), enum_name(t, value));
	for (char *p = s; *p; p++)
		if (*p == '_')
			*p = '-';
	return s;
}

static int enum_char(char c)
{
	return c == '-' ? '_' : tolower((unsigned char)c);
}

int enum_find(const struct enum_names *t, const char *name)
{
	for (int i = 0; i < t->n; i++) {
		const char *a = t->names[i], *b = name;

		if (!a)
			continue;
		while (*a && enum_char(*a) == enum_char(*b)) {
			a++;
			b++;
		}
		if (!*a && !*b)
			return i;
	}
	return -1;
}

uint64_t mix64(uint64_t seed)
{
	uint64_t z = seed + UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}
