/* SPDX-License-Identifier: BSD-2-Clause */
#include "matrix.h"

#include <stdlib.h>

static const char *const bys[] = {
	[MATRIX_PEER] = "peer",
	[MATRIX_LEAF] = "leaf",
	[MATRIX_RAIL] = "rail",
};
const struct enum_names matrix_by_names = {bys, (int)ARRAY_LEN(bys)};

static const char *const shows[] = {
	[MATRIX_LOSS] = "loss",
	[MATRIX_P99] = "p99",
};
const struct enum_names matrix_show_names = {shows, (int)ARRAY_LEN(shows)};

static int column_of(struct matrix *m, const char *name)
{
	char cut[MATRIX_NAME_MAX]; /* as it will be kept */
	int i;

	(void)str_copy(cut, sizeof(cut), name);
	for (i = 0; i < m->n_columns; i++)
		if (!strcmp(m->columns[i], cut))
			return i;
	if (i == MATRIX_COLUMNS_MAX)
		return i - 1;
	if (i == MATRIX_COLUMNS_MAX - 1)
		(void)str_copy(cut, sizeof(cut), "others");
	m->columns = xrealloc(m->columns, (size_t)i + 1, sizeof(*m->columns));
	memcpy(m->columns[i], cut, sizeof(cut));
	m->n_columns++;
	for (int r = 0; r < m->n_rows; r++) {
		struct matrix_row *row = &m->rows[r];

		row->cells = xrealloc(row->cells, (size_t)i + 1, sizeof(*row->cells));
		row->cells[i] = (struct matrix_cell){0};
	}
	return i;
}

static struct matrix_row *row_of(struct matrix *m, const char *name)
{
	char cut[MATRIX_NAME_MAX];
	struct matrix_row *r;

	(void)str_copy(cut, sizeof(cut), name);
	/* Samples of a row come together, or the rows are few. */
	for (int i = m->n_rows; i-- > 0;)
		if (!strcmp(m->rows[i].name, cut))
			return &m->rows[i];
	if (m->n_rows == m->rows_size) {
		m->rows_size = MAX(2 * m->rows_size, 4);
		m->rows = xrealloc(m->rows, (size_t)m->rows_size, sizeof(*m->rows));
	}
	r = &m->rows[m->n_rows++];
	memcpy(r->name, cut, sizeof(cut));
	r->cells = xcalloc((size_t)MAX(m->n_columns, 1), sizeof(*r->cells));
	return r;
}

void matrix_add(struct matrix *m, const struct matrix_sample *s)
{
	int column = column_of(m, s->column);
	struct matrix_cell *c = &row_of(m, s->row)->cells[column];

	if (!c->connections || s->severity > c->severity) {
		c->verdict = s->verdict;
		c->severity = s->severity;
	}
	c->connections++;
	c->held += s->held;
	if (s->held)
		return;
	c->sent += s->sent;
	c->lost += MIN(s->lost, s->sent);
	if (s->rtt)
		hist_merge(&c->rtt, s->rtt);
}

static int compare_rows(const void *a, const void *b)
{
	return str_compare_natural(((const struct matrix_row *)a)->name,
				   ((const struct matrix_row *)b)->name);
}

/* By insertion: columns are few, and each row's cells go with them. */
static void sort_columns(struct matrix *m)
{
	for (int i = 1; i < m->n_columns; i++)
		for (int j = i; j > 0; j--) {
			char name[MATRIX_NAME_MAX];

			if (str_compare_natural(m->columns[j - 1], m->columns[j]) <= 0)
				break;
			memcpy(name, m->columns[j], sizeof(name));
			memcpy(m->columns[j], m->columns[j - 1], sizeof(name));
			memcpy(m->columns[j - 1], name, sizeof(name));
			for (int r = 0; r < m->n_rows; r++) {
				struct matrix_cell *c = m->rows[r].cells;
				struct matrix_cell cell = c[j];

				c[j] = c[j - 1];
				c[j - 1] = cell;
			}
		}
}

void matrix_sort(struct matrix *m)
{
	sort_columns(m);
	if (m->n_rows)
		qsort(m->rows, (size_t)m->n_rows, sizeof(*m->rows), compare_rows);
}

void matrix_done(struct matrix *m)
{
	for (int i = 0; i < m->n_rows; i++) {
		for (int c = 0; c < m->n_columns; c++)
			hist_done(&m->rows[i].cells[c].rtt);
		free(m->rows[i].cells);
	}
	free(m->rows);
	free(m->columns);
	*m = (struct matrix){0};
}

uint64_t matrix_cell_p99(const struct matrix_cell *c)
{
	return hist_quantile(&c->rtt, 990);
}

enum verdict matrix_row_verdict(const struct matrix *m, const struct matrix_row *r)
{
	const struct matrix_cell *worst = NULL;

	for (int i = 0; i < m->n_columns; i++)
		if (r->cells[i].connections &&
		    (!worst || r->cells[i].severity > worst->severity))
			worst = &r->cells[i];
	return worst ? worst->verdict : VERDICT_UNKNOWN;
}

uint64_t matrix_missed(struct mono down_at, int64_t interval, int64_t window,
		       struct mono now)
{
	int64_t down = mono_is_set(down_at) ? mono_sub(now, down_at) : window;

	if (interval <= 0 || down <= 0)
		return 0;
	return (uint64_t)(MIN(down, window) / interval);
}
