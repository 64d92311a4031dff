/* SPDX-License-Identifier: BSD-2-Clause */
#include "clean.h"
#include "progress.h"

#include <langinfo.h>
#include <stdio.h>
#include <stdlib.h>
#include <wchar.h>

/* Length of the first character of @s and its code point; 0xfffd for a stray byte. */
static size_t utf8_next(const char *s, uint32_t *ret_cp)
{
	const unsigned char *p = (const unsigned char *)s;
	size_t n = *p < 0x80   ? 1
		   : *p < 0xc2 ? 0
		   : *p < 0xe0 ? 2
		   : *p < 0xf0 ? 3
		   : *p < 0xf5 ? 4
			       : 0;
	uint32_t cp = n == 1 ? *p : n == 2 ? *p & 0x1f : n == 3 ? *p & 0x0f : *p & 0x07;

	for (size_t i = 1; i < n; i++) {
		if ((p[i] & 0xc0) != 0x80) {
			n = 0;
			break;
		}
		cp = cp << 6 | (p[i] & 0x3f);
	}
	*ret_cp = n ? cp : 0xfffd;
	return n ? n : 1;
}

/* Columns of a character, 0 if it must not reach the terminal: controls (C0, DEL, C1),
 * direction marks, joiners and other characters without width, unknown ones. */
static int char_width(uint32_t cp, size_t len)
{
	int w;

	if (cp < 0x20 || (cp >= 0x7f && cp < 0xa0))
		return 0;
	if (cp < 0x7f)
		return 1;
	if (len < 2 || !str_eq(nl_langinfo(CODESET), "UTF-8"))
		return 0;
	w = wcwidth((wchar_t)cp);
	return w > 0 ? w : 0;
}

char *text_safe(const char *s)
{
	char *dst = xcalloc(strlen(s) + 1, 1), *d = dst;
	uint32_t cp;

	while (*s) {
		size_t n = utf8_next(s, &cp);

		if (char_width(cp, n)) {
			memcpy(d, s, n);
			d += n;
		} else {
			*d++ = '?';
		}
		s += n;
	}
	return dst;
}

int text_width(const char *s)
{
	uint32_t cp;
	int w = 0;

	while (*s) {
		size_t n = utf8_next(s, &cp);

		w += char_width(cp, n);
		s += n;
	}
	return w;
}

char *text_cut(const char *s, int width)
{
	const char *p = s;
	uint32_t cp;
	int w = 0;

	if (text_width(s) <= width)
		return xstrdup(s);
	while (*p) {
		size_t n = utf8_next(p, &cp);

		if (w + char_width(cp, n) > width - 1)
			break;
		w += char_width(cp, n);
		p += n;
	}
	return xasprintf("%.*s~", (int)(p - s), s);
}

/* Printable ASCII is safe everywhere, and nearly all there is. */
static bool is_plain(const char *s)
{
	while (*s >= 0x20 && *s < 0x7f)
		s++;
	return !*s;
}

static void object_safe(json_t *o)
{
	const char *key;
	json_t *v;
	void *next;

	json_object_foreach_safe(o, next, key, v)
	{
		_cleanup_(freep) char *safe = NULL;

		json_safe(v);
		if (is_plain(key))
			continue;
		safe = text_safe(key);
		if (str_eq(safe, key))
			continue;
		json_object_set(o, safe, v);
		json_object_del(o, key);
	}
}

void json_safe(json_t *v)
{
	size_t i;
	json_t *e;

	if (json_is_object(v)) {
		object_safe(v);
	} else if (json_is_array(v)) {
		json_array_foreach (v, i, e)
			json_safe(e);
	} else if (json_is_string(v) && !is_plain(json_string_value(v))) {
		_cleanup_(freep) char *safe = text_safe(json_string_value(v));

		json_string_set(v, safe);
	}
}

static bool holding;
static char held[512];

void tell_hold(bool hold)
{
	holding = hold;
	if (hold)
		held[0] = '\0';
}

const char *tell_held(void)
{
	return held;
}

void tell_args(const char *fmt, va_list ap)
{
	_cleanup_(freep) char *text = NULL, *safe = NULL;

	if (vasprintf(&text, fmt, ap) < 0)
		abort();
	safe = text_safe(text);
	if (holding) {
		(void)str_copy(held, sizeof(held), safe);
		return;
	}
	(void)fflush(stdout);
	progress_clear();
	(void)fprintf(stderr, "fabctl: %s\n", safe);
}

void tell(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	tell_args(fmt, ap);
	va_end(ap);
}
