/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * clean.h - text from the wire, or typed, made safe for a terminal: control characters,
 * what cannot be shown in this locale and what has no width become '?'. Widths are
 * terminal columns. setlocale(LC_CTYPE, "") must have been called for non-ASCII to be
 * kept.
 */
#pragma once

#include <stdarg.h>

#include <jansson.h>

#include "util.h"

/* A safe copy; the caller frees it. */
char *text_safe(const char *s);
/* Columns of a safe text. */
int text_width(const char *s);
/* A safe text cut to @width columns, its last one '~' if anything was cut. Owned by the
 * caller. */
char *text_cut(const char *s, int width);
/* All strings and keys in @v, in place. */
void json_safe(json_t *v);

/* "fabctl: ..." as one safe line on stderr, after what is already on its way to stdout.
 */
void tell(const char *fmt, ...) PRINTF_LIKE(1, 2);
void tell_args(const char *fmt, va_list ap) PRINTF_LIKE(1, 0);
/* Keep to yourself what is told from now on, or no more. */
void tell_hold(bool hold);
/* The last that was held, "" if none; valid until the next is told. */
const char *tell_held(void);
