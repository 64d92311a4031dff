/* SPDX-License-Identifier: BSD-2-Clause */
#include "table.h"

#include <stdarg.h>
#include <stdlib.h>

#include "clean.h"

#define BLOCK_LABEL 12
#define MARK_LABEL  9

struct cell {
	char *text; /* owned */
	enum tint tint;
};

struct table {
	const struct column *columns;
	int n_columns;
	struct cell *cells; /* owned */
	size_t n_cells, allocated;
};

struct table *table_new(const struct column *columns, int n)
{
	struct table *t = xcalloc(1, sizeof(*t));

	t->columns = columns;
	t->n_columns = n;
	return t;
}

struct table *table_free(struct table *t)
{
	if (!t)
		return NULL;
	for (size_t i = 0; i < t->n_cells; i++)
		free(t->cells[i].text);
	free(t->cells);
	free(t);
	return NULL;
}

static char *vtext(const char *fmt, va_list ap) PRINTF_LIKE(1, 0);

static char *vtext(const char *fmt, va_list ap)
{
	char *s = NULL;

	if (vasprintf(&s, fmt, ap) < 0)
		abort();
	return s;
}

void table_cell(struct table *t, enum tint tint, const char *fmt, ...)
{
	va_list ap;

	if (t->n_cells == t->allocated) {
		t->allocated = t->allocated ? t->allocated * 2 : 64;
		t->cells = xrealloc(t->cells, t->allocated, sizeof(*t->cells));
	}
	va_start(ap, fmt);
	t->cells[t->n_cells++] = (struct cell){vtext(fmt, ap), tint};
	va_end(ap);
}

int table_rows(const struct table *t)
{
	return (int)(t->n_cells / (size_t)t->n_columns);
}

const char *tint_on(const struct layout *l, enum tint t)
{
	static const char *const codes[] = {
		[TINT_NONE] = "",
		[TINT_GOOD] = "\033[32m",
		[TINT_WARN] = "\033[33m",
		[TINT_BAD] = "\033[1;31m",
	};

	return l->color ? codes[t] : "";
}

const char *tint_off(const struct layout *l, enum tint t)
{
	return l->color && t != TINT_NONE ? "\033[0m" : "";
}

static int sum_widths(const struct table *t, const int *widths, int gap)
{
	int sum = gap * (t->n_columns - 1);

	for (int c = 0; c < t->n_columns; c++)
		sum += widths[c];
	return sum;
}

/* Content decides; two blanks between columns where they fit, else one; then the
 * columns that may be cut give way, from the right. */
static int table_measure(const struct table *t, int *widths, int width)
{
	int gap = 2, over;

	for (int c = 0; c < t->n_columns; c++)
		widths[c] = text_width(t->columns[c].title);
	for (size_t i = 0; i < t->n_cells; i++) {
		int *w = &widths[i % (size_t)t->n_columns];

		*w = MAX(*w, text_width(t->cells[i].text));
	}
	if (sum_widths(t, widths, gap) > width)
		gap = 1;
	over = sum_widths(t, widths, gap) - width;
	for (int c = t->n_columns - 1; c >= 0 && over > 0; c--) {
		int least = MAX(t->columns[c].cut_to, text_width(t->columns[c].title));
		int give = t->columns[c].cut_to ? MIN(over, widths[c] - least) : 0;

		if (give > 0) {
			widths[c] -= give;
			over -= give;
		}
	}
	return gap;
}

/* Blanks are written before the next text only: no line ends in blanks. */
static void put_cell(const struct layout *l, const struct column *col, const char *text,
		     enum tint tint, int width, bool last, int *pending)
{
	_cleanup_(freep) char *cut = NULL;
	int pad;

	if (col->cut_to) {
		cut = text_cut(text, width);
		text = cut;
	}
	pad = MAX(width - text_width(text), 0);
	if (!*text) {
		*pending += pad;
		return;
	}
	(void)fprintf(l->out, "%*s%s%s%s", *pending + (col->right ? pad : 0), "",
		      tint_on(l, tint), text, tint_off(l, tint));
	*pending = col->right || last ? 0 : pad;
}

void table_print(const struct table *t, const struct layout *l)
{
	int n = t->n_columns, gap;
	_cleanup_(freep) int *widths = xcalloc((size_t)n, sizeof(*widths));

	if (!table_rows(t))
		return;
	gap = table_measure(t, widths, l->width);
	for (int row = -1; row < table_rows(t); row++) {
		int pending = 0;

		for (int c = 0; c < n; c++) {
			const struct cell *cell =
				row < 0 ? NULL : &t->cells[(size_t)(row * n + c)];

			put_cell(l, &t->columns[c],
				 cell ? cell->text : t->columns[c].title,
				 cell ? cell->tint : TINT_NONE, widths[c], c == n - 1,
				 &pending);
			pending += gap;
		}
		(void)fputc('\n', l->out);
	}
}

/* Print words of @text; @column is where the cursor stands. */
static void put_words(const struct layout *l, const char *text, int hang, int column)
{
	bool first = true;

	while (*text) {
		size_t len = strcspn(text, " ");
		_cleanup_(freep) char *word = xasprintf("%.*s", (int)len, text);
		int w = text_width(word);

		if (!first && column + 1 + w > l->width) {
			(void)fprintf(l->out, "\n%*s", hang, "");
			column = hang;
		} else if (!first) {
			(void)fputc(' ', l->out);
			column++;
		}
		(void)fputs(word, l->out);
		column += w;
		first = false;
		text += len;
		if (*text == ' ')
			text++;
	}
	(void)fputc('\n', l->out);
}

void block_line(const struct layout *l, const char *label, const char *fmt, ...)
{
	_cleanup_(freep) char *text = NULL;
	va_list ap;

	va_start(ap, fmt);
	text = vtext(fmt, ap);
	va_end(ap);
	(void)fprintf(l->out, "  %-*s ", BLOCK_LABEL, label);
	put_words(l, text, BLOCK_LABEL + 3, BLOCK_LABEL + 3);
}

void mark_line(const struct layout *l, enum tint tint, const char *mark, const char *label,
	       const char *text)
{
	int pad = *text ? MARK_LABEL - text_width(label) : 0;

	(void)fprintf(l->out, " %s%s%s%*s %s%*s", tint_on(l, tint), mark, tint_off(l, tint),
		      MAX(3 - text_width(mark), 0), "", label, MAX(pad, 0), "");
	if (*text) {
		(void)fputc(' ', l->out);
		put_words(l, text, MARK_LABEL + 6, MARK_LABEL + 6);
	} else {
		(void)fputc('\n', l->out);
	}
}

void wrapped_line(const struct layout *l, const char *text, int hang)
{
	put_words(l, text, hang, 0);
}

void head_line(const struct layout *l, const char *name, enum tint tint,
	       const char *word, const char *text, int hang)
{
	(void)fprintf(l->out, "%s %s%s%s ", name, tint_on(l, tint), word,
		      tint_off(l, tint));
	put_words(l, text, hang, text_width(name) + text_width(word) + 2);
}
