/* SPDX-License-Identifier: BSD-2-Clause */
#include "render.h"

static json_t *render_cell(const char *column, const struct matrix_cell *c,
			   enum matrix_show show)
{
	json_t *o = json_object();
	bool loss = show == MATRIX_LOSS, p99 = show == MATRIX_P99 && matrix_cell_p99(c);

	render_text(o, "column", column);
	render_int(o, "connections", (uint64_t)c->connections);
	render_int(o, "held", (uint64_t)c->held);
	render_int(o, "sent", c->sent);
	render_int(o, "lost", c->lost);
	render_percent(o, "loss_percent", c->lost, loss ? c->sent : 0);
	render_set(o, "p99_ns", p99 ? json_integer((json_int_t)matrix_cell_p99(c)) : json_null());
	render_text(o, "verdict", enum_name(&verdict_names, (int)c->verdict));
	return o;
}

json_t *render_matrix_row(const struct matrix *m, int row, enum matrix_show show)
{
	const struct matrix_row *r = &m->rows[row];
	json_t *o = json_object(), *cells = json_array();

	for (int i = 0; i < m->n_columns; i++)
		if (r->cells[i].connections)
			(void)json_array_append_new(
				cells, render_cell(m->columns[i], &r->cells[i], show));
	render_text(o, "name", r->name);
	render_text(o, "verdict", enum_name(&verdict_names, (int)matrix_row_verdict(m, r)));
	render_set(o, "cells", cells);
	return o;
}
