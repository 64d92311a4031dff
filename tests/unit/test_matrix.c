/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>

#include "matrix.h"

static const struct matrix_cell *cell(const struct matrix *m, const char *row,
				      const char *column)
{
	for (int r = 0; r < m->n_rows; r++)
		for (int c = 0; c < m->n_columns; c++)
			if (!strcmp(m->rows[r].name, row) &&
			    !strcmp(m->columns[c], column))
				return &m->rows[r].cells[c];
	fail_msg("no cell %s %s", row, column);
	return NULL;
}

static void add(struct matrix *m, const char *row, const char *column, uint64_t sent,
		uint64_t lost, enum verdict v, bool held)
{
	matrix_add(m, &(struct matrix_sample){.row = row,
					      .column = column,
					      .sent = sent,
					      .lost = lost,
					      .verdict = v,
					      .severity = (int)v,
					      .held = held});
}

static void cells_add_up(void **state)
{
	struct matrix m = {0};

	(void)state;
	add(&m, "same-leaf", "rail0", 60, 0, VERDICT_OK, false);
	add(&m, "same-leaf", "rail0", 60, 15, VERDICT_DEGRADED, false);
	add(&m, "other-leaf", "rail2", 60, 60, VERDICT_RDMA_BROKEN, false);
	add(&m, "other-leaf", "rail0", 60, 90, VERDICT_OK, false); /* cannot be */
	assert_int_equal(m.n_rows, 2);
	assert_int_equal(m.n_columns, 2);
	assert_int_equal(cell(&m, "same-leaf", "rail0")->connections, 2);
	assert_int_equal(cell(&m, "same-leaf", "rail0")->sent, 120);
	assert_int_equal(cell(&m, "same-leaf", "rail0")->lost, 15);
	assert_int_equal(cell(&m, "same-leaf", "rail0")->verdict, VERDICT_DEGRADED);
	assert_int_equal(cell(&m, "same-leaf", "rail2")->connections, 0);
	assert_int_equal(cell(&m, "other-leaf", "rail0")->lost, 60);
	assert_int_equal(matrix_row_verdict(&m, &m.rows[0]), VERDICT_DEGRADED);
	assert_int_equal(matrix_row_verdict(&m, &m.rows[1]), VERDICT_RDMA_BROKEN);
	matrix_done(&m);
	assert_null(m.rows);
	matrix_done(&m);
}

static void held_ones_add_nothing(void **state)
{
	struct matrix m = {0};
	const struct matrix_cell *c;

	(void)state;
	add(&m, "a", "rail3", 60, 60, VERDICT_HELD, true);
	add(&m, "a", "rail3", 60, 60, VERDICT_LOCAL_PORT, true);
	c = cell(&m, "a", "rail3");
	assert_int_equal(c->connections, 2);
	assert_int_equal(c->held, 2);
	assert_true(!c->sent && !c->lost && !matrix_cell_p99(c));
	add(&m, "a", "rail3", 60, 6, VERDICT_OK, false);
	assert_int_equal(c->held, 2);
	assert_int_equal(c->sent, 60);
	assert_int_equal(c->lost, 6);
	matrix_done(&m);
}

/* The slow one of two is a hundredth of all: neither's p99 is that of both. */
static void round_trips_are_merged(void **state)
{
	struct hist fast = {0}, slow = {0};
	struct matrix m = {0};
	struct matrix_sample s = {.row = "a", .column = "rail0", .rtt = &fast};
	uint64_t p99;

	(void)state;
	for (int i = 0; i < 9999; i++)
		hist_add(&fast, 10000);
	hist_add(&slow, 1000000);
	matrix_add(&m, &s);
	s.rtt = &slow;
	matrix_add(&m, &s);
	p99 = matrix_cell_p99(cell(&m, "a", "rail0"));
	assert_in_range(p99, 9300, 10700);
	s.rtt = NULL; /* one that has had none yet */
	matrix_add(&m, &s);
	assert_int_equal(matrix_cell_p99(cell(&m, "a", "rail0")), p99);
	assert_int_equal(matrix_cell_p99(&(struct matrix_cell){0}), 0);
	/* Cells go with their histograms when they are put in order. */
	s.column = "rail";
	matrix_add(&m, &s);
	matrix_sort(&m);
	assert_int_equal(matrix_cell_p99(cell(&m, "a", "rail0")), p99);
	assert_int_equal(matrix_cell_p99(cell(&m, "a", "rail")), 0);
	matrix_done(&m);
	hist_done(&fast);
	hist_done(&slow);
}

static void the_order_is_natural(void **state)
{
	static const char *const rows[] = {"gpu2", "gpu10", "gpu1"};
	static const char *const columns[] = {"rail10", "rail2", "storage", "rail0"};
	struct matrix m = {0};

	(void)state;
	for (size_t r = 0; r < ARRAY_LEN(rows); r++)
		for (size_t c = r; c < ARRAY_LEN(columns); c++)
			add(&m, rows[r], columns[c], 100 * r + c + 1, 0, VERDICT_OK, false);
	matrix_sort(&m);
	assert_string_equal(m.rows[0].name, "gpu1");
	assert_string_equal(m.rows[1].name, "gpu2");
	assert_string_equal(m.rows[2].name, "gpu10");
	assert_string_equal(m.columns[0], "rail0");
	assert_string_equal(m.columns[1], "rail2");
	assert_string_equal(m.columns[2], "rail10");
	assert_string_equal(m.columns[3], "storage");
	/* Each cell went with its row and its column. */
	for (size_t r = 0; r < ARRAY_LEN(rows); r++)
		for (size_t c = 0; c < ARRAY_LEN(columns); c++)
			assert_int_equal(cell(&m, rows[r], columns[c])->sent,
					 c >= r ? 100 * r + c + 1 : 0);
	matrix_done(&m);
}

static void sizes_are_bounded(void **state)
{
	struct matrix m = {0};
	char name[200];

	(void)state;
	for (int i = 0; i < 3 * MATRIX_COLUMNS_MAX; i++) {
		(void)snprintf(name, sizeof(name), "rail%d", i);
		add(&m, "a", name, 1, 0, VERDICT_OK, false);
	}
	assert_int_equal(m.n_columns, MATRIX_COLUMNS_MAX);
	assert_int_equal(cell(&m, "a", "others")->sent, 2 * MATRIX_COLUMNS_MAX + 1);
	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	add(&m, name, "rail0", 1, 0, VERDICT_OK, false);
	add(&m, name, "rail0", 1, 0, VERDICT_OK, false); /* found again though cut */
	assert_int_equal(m.n_rows, 2);
	matrix_done(&m);
}

static void an_empty_one_can_be_sorted(void **state)
{
	struct matrix m = {0};

	(void)state;
	matrix_sort(&m);
	assert_int_equal(m.n_rows + m.n_columns, 0);
	matrix_done(&m);
}

static void what_is_down_has_missed_its_turns(void **state)
{
	const struct mono now = {1000 * NSEC_PER_SEC}, ago = {990 * NSEC_PER_SEC};
	const int64_t window = 60 * NSEC_PER_SEC, each = NSEC_PER_SEC;

	(void)state;
	assert_int_equal(matrix_missed(ago, each, window, now), 10);
	assert_int_equal(matrix_missed(ago, each / 10, window, now), 100);
	assert_int_equal(matrix_missed((struct mono){1}, each, window, now), 60);
	assert_int_equal(matrix_missed(MONO_NEVER, each, window, now), 60);
	assert_int_equal(matrix_missed(now, each, window, now), 0);
	assert_int_equal(matrix_missed(mono_add(now, 5), each, window, now), 0);
	assert_int_equal(matrix_missed(ago, 0, window, now), 0);
}

static void all_have_names(void **state)
{
	(void)state;
	assert_int_equal(matrix_by_names.n, MATRIX_BY__MAX);
	assert_int_equal(matrix_show_names.n, MATRIX_SHOW__MAX);
	for (int i = 0; i < MATRIX_BY__MAX; i++)
		assert_non_null(enum_name(&matrix_by_names, i));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cells_add_up),
		cmocka_unit_test(held_ones_add_nothing),
		cmocka_unit_test(round_trips_are_merged),
		cmocka_unit_test(the_order_is_natural),
		cmocka_unit_test(sizes_are_bounded),
		cmocka_unit_test(an_empty_one_can_be_sorted),
		cmocka_unit_test(what_is_down_has_missed_its_turns),
		cmocka_unit_test(all_have_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
