/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * matrix.h - many connections as a few cells: rows (a peer, same or other leaf, an own
 * rail) by columns (a rail), with what was lost and how slow it was. Pure: the caller
 * says of each connection where it belongs and what it has seen.
 *
 * Loss counts what was sent and what could not be: a connection that is down for a
 * fault that is not explained by another has lost what it would have sent meanwhile.
 * Those that another fault explains (held) add nothing: their cell says so when there
 * is nothing else in it.
 *
 * p99: no more than 1 % of all round trips of the cell were slower.
 */
#pragma once

#include "hist.h"
#include "mono.h"
#include "names.h"

#define MATRIX_NAME_MAX	   64
#define MATRIX_COLUMNS_MAX 64 /* more rails go into the last one, "others" */

enum matrix_by { MATRIX_PEER, MATRIX_LEAF, MATRIX_RAIL, MATRIX_BY__MAX };
extern const struct enum_names matrix_by_names;
enum matrix_show { MATRIX_LOSS, MATRIX_P99, MATRIX_SHOW__MAX };
extern const struct enum_names matrix_show_names;

/* What one connection brings. */
struct matrix_sample {
	const char *row, *column; /* borrowed */
	uint64_t sent, lost;	  /* in the window */
	const struct hist *rtt;	  /* round trips in the window; NULL: none */
	enum verdict verdict;
	int severity; /* of the verdict: the worst of a cell is shown */
	bool held;
};

struct matrix_cell {
	int connections, held; /* held: of them */
	uint64_t sent, lost;
	struct hist rtt;      /* owned */
	enum verdict verdict; /* the worst; valid with connections */
	int severity;
};

struct matrix_row {
	char name[MATRIX_NAME_MAX];
	struct matrix_cell *cells; /* owned, one a column */
};

struct matrix {
	char (*columns)[MATRIX_NAME_MAX]; /* owned */
	int n_columns;
	struct matrix_row *rows; /* owned */
	int n_rows, rows_size;
};

void matrix_add(struct matrix *m, const struct matrix_sample *s);
/* Columns and rows in their natural order: rail2 before rail10. */
void matrix_sort(struct matrix *m);
void matrix_done(struct matrix *m); /* empty again, nothing owned */

uint64_t matrix_cell_p99(const struct matrix_cell *c); /* ns, 0 = no round trips */
/* The worst verdict of the row. */
enum verdict matrix_row_verdict(const struct matrix *m, const struct matrix_row *r);

/* What a connection that is down would have sent since @down_at in a window of @window
 * ns that ends at @now: one each @interval ns. */
uint64_t matrix_missed(struct mono down_at, int64_t interval, int64_t window,
		       struct mono now);
