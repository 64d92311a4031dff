/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fabctl matrix: connections as rows by columns of rails, so that what failing ones have
 * in common is seen: a peer, a leaf, a rail.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "clean.h"
#include "cli.h"
#include "fields.h"
#include "json_out.h"
#include "matrix.h"
#include "units.h"

#define MANY_ROWS  40 /* of peers: then only those that are not well */
#define CELL_WIDTH 5

struct view {
	const struct cli *cli; /* borrowed */
	json_t *rows;
	bool p99;
	char *columns[MATRIX_COLUMNS_MAX]; /* owned, in order */
	int n_columns;
	int label_width;
};

/* ---- rows ---- */

static bool cell_is_held(const json_t *cell)
{
	return get_count(cell, "held") >= get_count(cell, "connections");
}

/* What another fault explains is told there. */
static bool row_is_well(const json_t *row)
{
	json_t *cell;
	size_t i;

	json_array_foreach (get_array(row, "cells"), i, cell)
		if (!cell_is_held(cell) && !str_eq(get_text(cell, "verdict"), "ok"))
			return false;
	return true;
}

static size_t drop_well(json_t *rows)
{
	size_t dropped = 0;

	for (size_t i = json_array_size(rows); i-- > 0;)
		if (row_is_well(json_array_get(rows, i))) {
			(void)json_array_remove(rows, i);
			dropped++;
		}
	return dropped;
}

/* ---- columns: those of all rows together ---- */

static void add_column(struct view *v, const char *name)
{
	int at = 0;

	for (int i = 0; i < v->n_columns; i++)
		if (str_eq(v->columns[i], name))
			return;
	if (v->n_columns == MATRIX_COLUMNS_MAX)
		return;
	while (at < v->n_columns && str_compare_natural(v->columns[at], name) < 0)
		at++;
	memmove(&v->columns[at + 1], &v->columns[at],
		(size_t)(v->n_columns - at) * sizeof(v->columns[0]));
	v->columns[at] = xstrdup(name);
	v->n_columns++;
}

static void find_columns(struct view *v)
{
	json_t *row, *cell;
	size_t i, j;

	json_array_foreach (v->rows, i, row) {
		v->label_width = MAX(v->label_width, text_width(get_shown(row, "name")));
		json_array_foreach (get_array(row, "cells"), j, cell)
			add_column(v, get_shown(cell, "column"));
	}
}

static const json_t *cell_at(const json_t *row, const char *column)
{
	json_t *cell;
	size_t i;

	json_array_foreach (get_array(row, "cells"), i, cell)
		if (str_eq(get_text(cell, "column"), column))
			return cell;
	return NULL;
}

/* ---- cells ---- */

static void loss_text(char *buf, size_t size, const json_t *cell)
{
	double loss = json_number_value(json_object_get(cell, "loss_percent"));

	if (!json_is_number(json_object_get(cell, "loss_percent")))
		(void)str_copy(buf, size, "-");
	else if (loss <= 0)
		(void)str_copy(buf, size, "0");
	else if (loss < 0.05)
		(void)str_copy(buf, size, "<0.1");
	else if (loss >= 100)
		(void)str_copy(buf, size, "100");
	else
		str_append(buf, size, "%.1f", MIN(loss, 99.9));
}

static void p99_text(char *buf, size_t size, const json_t *cell)
{
	int64_t ns;

	(void)str_copy(buf, size, get_int(cell, "p99_ns", &ns) ? unit_ns(ns) : "-");
}

static void put_cell(const struct view *v, const json_t *cell, int width)
{
	const struct layout *l = &v->cli->layout;
	enum tint tint = TINT_NONE;
	char text[32] = "";

	if (!cell) {
		(void)str_copy(text, sizeof(text), "-");
	} else if (cell_is_held(cell)) {
		(void)str_copy(text, sizeof(text), "held");
	} else {
		(v->p99 ? p99_text : loss_text)(text, sizeof(text), cell);
		tint = verdict_tint(get_text(cell, "verdict"));
	}
	if (tint == TINT_GOOD)
		tint = TINT_NONE; /* what stands out is what is not well */
	(void)fprintf(l->out, " %*s%s%s%s", width - text_width(text), "", tint_on(l, tint),
		      text, tint_off(l, tint));
}

static int column_width(const struct view *v, int i)
{
	return MAX(text_width(v->columns[i]), v->p99 ? CELL_WIDTH + 1 : CELL_WIDTH);
}

/* The columns from @from on that fit into a line; the next one. */
static int put_block(const struct view *v, int from)
{
	const struct layout *l = &v->cli->layout;
	int to = from, used = v->label_width + 1;
	json_t *row;
	size_t i;

	while (to < v->n_columns &&
	       (to == from || used + 1 + column_width(v, to) <= l->width))
		used += 1 + column_width(v, to++);
	(void)fprintf(l->out, "%-*s ", v->label_width, v->p99 ? "p99 60s" : "loss% 60s");
	for (int c = from; c < to; c++)
		(void)fprintf(l->out, " %*s%s",
			      column_width(v, c) - text_width(v->columns[c]), "",
			      v->columns[c]);
	(void)fputc('\n', l->out);
	json_array_foreach (v->rows, i, row) {
		const char *name = get_shown(row, "name");

		(void)fprintf(l->out, "%s%*s ", name, v->label_width - text_width(name), "");
		for (int c = from; c < to; c++)
			put_cell(v, cell_at(row, v->columns[c]), column_width(v, c));
		(void)fputc('\n', l->out);
	}
	return to;
}

static void put_matrix(struct view *v)
{
	v->label_width = text_width(v->p99 ? "p99 60s" : "loss% 60s");
	find_columns(v);
	for (int from = 0; from < v->n_columns;) {
		if (from)
			(void)fputc('\n', v->cli->layout.out);
		from = put_block(v, from);
	}
	for (int i = 0; i < v->n_columns; i++)
		free(v->columns[i]);
}

/* Of many peers those that are not well; what is left out is said. */
static void put_rows(struct cli *c, json_t *rows, bool by_peer, bool p99)
{
	struct view v = {.cli = c, .rows = rows, .p99 = p99};
	size_t total = json_array_size(rows), dropped = 0;

	if (!total) {
		(void)fputs("no connections: fabctl peer\n", c->layout.out);
		return;
	}
	if (c->not_ok || (by_peer && total > MANY_ROWS && !c->all))
		dropped = drop_well(rows);
	put_matrix(&v);
	if (dropped)
		(void)fprintf(c->layout.out, "(%zu of %zu rows are well or held%s)\n", dropped, total,
			      c->not_ok ? "" : "; --all shows them");
}

static bool check_word(const char *option, const char *word, const struct enum_names *names,
		       const char *takes)
{
	if (enum_find(names, word) >= 0)
		return true;
	(void)cli_usage("%s is %s, not '%s'", option, takes, word);
	return false;
}

int matrix(struct cli *c)
{
	const char *by = c->by ? c->by : "peer", *show = c->show ? c->show : "loss";
	json_t *rows;

	if (c->argc)
		return cli_usage("matrix takes no name, and '%s' is one", c->argv[0]);
	if (!check_word("--by", by, &matrix_by_names, "peer, leaf or rail") ||
	    !check_word("--show", show, &matrix_show_names, "loss or p99"))
		return EXIT_USAGE;
	rows = cli_list(c, "io.fabd.GetMatrix", json_pack("{s:s, s:s}", "by", by, "show", show),
			"rows");
	if (!rows)
		return EXIT_ERROR;
	if (cli_is_text(c)) {
		put_rows(c, rows, str_eq(by, "peer"), str_eq(show, "p99"));
	} else {
		if (c->not_ok)
			(void)drop_well(rows);
		(void)json_out(c, rows);
	}
	json_decref(rows);
	return EXIT_OK;
}
