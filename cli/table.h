/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * table.h - text laid out in columns. Widths come from the content, so columns always
 * align; where a line would be too long, columns that may be cut give way first. Texts
 * must be safe (clean.h).
 */
#pragma once

#include <stdio.h>

#include "util.h"

enum tint { TINT_NONE, TINT_GOOD, TINT_WARN, TINT_BAD };

struct layout {
	FILE *out;
	int width;  /* wanted, in columns */
	bool color; /* tints are shown */
};

struct column {
	const char *title;
	bool right; /* align right */
	int cut_to; /* may be cut down to so many columns; 0 = never cut */
};

struct table;
/* @columns: borrowed for the life of the table. */
struct table *table_new(const struct column *columns, int n);
struct table *table_free(struct table *t);
/* The next cell, row by row. Empty text stays empty. */
void table_cell(struct table *t, enum tint tint, const char *fmt, ...)
	PRINTF_LIKE(3, 4);
int table_rows(const struct table *t);
/* Titles and rows; nothing if there is no row. */
void table_print(const struct table *t, const struct layout *l);

/* "  label     text", the text wrapped at blanks and indented under its first line. */
void block_line(const struct layout *l, const char *label, const char *fmt, ...)
	PRINTF_LIKE(3, 4);
/* " MRK label     text", wrapped as above. */
void mark_line(const struct layout *l, enum tint tint, const char *mark, const char *label,
	       const char *text);
/* @text wrapped at blanks; lines after the first are indented by @hang. */
void wrapped_line(const struct layout *l, const char *text, int hang);
/* "NAME WORD TEXT": what it is about and how it is; wrapped as above. */
void head_line(const struct layout *l, const char *name, enum tint tint,
	       const char *word, const char *text, int hang);
/* Start or end a tint. */
const char *tint_on(const struct layout *l, enum tint t);
const char *tint_off(const struct layout *l, enum tint t);
