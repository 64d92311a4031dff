/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <locale.h>
#include <stdlib.h>

#include "table.h"

static const struct column columns[] = {
	{"NAME", false, 0},
	{"N", true, 0},
	{"REMOTE", false, 8},
	{"WHY", false, 0},
};

struct page {
	struct layout l;
	char *text; /* owned once closed */
	size_t size;
};

static void page_begin(struct page *p, int width, bool color)
{
	p->l = (struct layout){open_memstream(&p->text, &p->size), width, color};
	assert_non_null(p->l.out);
}

static void page_expect(struct page *p, const char *text)
{
	assert_int_equal(fclose(p->l.out), 0);
	assert_string_equal(p->text, text);
	free(p->text);
}

static void row(struct table *t, const char *name, int n, const char *remote,
		const char *why)
{
	table_cell(t, TINT_NONE, "%s", name);
	table_cell(t, TINT_BAD, "%d", n);
	table_cell(t, TINT_NONE, "%s", remote);
	table_cell(t, TINT_NONE, "%s", why);
}

static void content_makes_the_widths(void **state)
{
	struct table *t = table_new(columns, ARRAY_LEN(columns));
	struct page p;

	(void)state;
	row(t, "a", 7, "leaf", "");
	row(t, "longer", 12345, "\xe6\x9d\xb1", "x");
	assert_int_equal(table_rows(t), 2);
	page_begin(&p, 80, false);
	table_print(t, &p.l);
	page_expect(&p, "NAME        N  REMOTE  WHY\n"
			"a           7  leaf\n"
			"longer  12345  \xe6\x9d\xb1      x\n");
	page_begin(&p, 24, false);
	table_print(t, &p.l);
	page_expect(&p, "NAME       N REMOTE WHY\n"
			"a          7 leaf\n"
			"longer 12345 \xe6\x9d\xb1     x\n");
	(void)table_free(t);
}

static void only_what_may_be_cut_is_cut(void **state)
{
	struct table *t = table_new(columns, ARRAY_LEN(columns));
	struct page p;

	(void)state;
	row(t, "long-name-that-stays", 1, "a-long-remote-name", "why");
	row(t, "b", 2, "short", "why");
	page_begin(&p, 40, false);
	table_print(t, &p.l);
	page_expect(&p, "NAME                 N REMOTE        WHY\n"
			"long-name-that-stays 1 a-long-remot~ why\n"
			"b                    2 short         why\n");
	page_begin(&p, 10, false);
	table_print(t, &p.l);
	page_expect(&p, "NAME                 N REMOTE   WHY\n"
			"long-name-that-stays 1 a-long-~ why\n"
			"b                    2 short    why\n");
	(void)table_free(t);
}

static void tints_do_not_count(void **state)
{
	struct table *t = table_new(columns, ARRAY_LEN(columns));
	struct page p;

	(void)state;
	row(t, "a", 7, "leaf", "y");
	row(t, "b", 77, "leaf", "y");
	page_begin(&p, 80, true);
	table_print(t, &p.l);
	page_expect(&p, "NAME   N  REMOTE  WHY\n"
			"a      \033[1;31m7\033[0m  leaf    y\n"
			"b     \033[1;31m77\033[0m  leaf    y\n");
	(void)table_free(t);
}

static void nothing_without_rows(void **state)
{
	struct table *t = table_new(columns, ARRAY_LEN(columns));
	struct page p;

	(void)state;
	page_begin(&p, 80, false);
	table_print(t, &p.l);
	page_expect(&p, "");
	(void)table_free(t);
}

static void text_wraps_at_blanks(void **state)
{
	struct page p;

	(void)state;
	page_begin(&p, 30, false);
	block_line(&p.l, "speed", "%s", "SDR DDR QDR FDR10 FDR EDR");
	block_line(&p.l, "", "%s", "a-word-longer-than-the-line x");
	wrapped_line(&p.l, "one two three four five six seven", 2);
	wrapped_line(&p.l, "", 2);
	page_expect(&p, "  speed        SDR DDR QDR\n"
			"               FDR10 FDR EDR\n"
			"               a-word-longer-than-the-line\n"
			"               x\n"
			"one two three four five six\n"
			"  seven\n"
			"\n");
}

static int use_utf8(void **state)
{
	(void)state;
	return setlocale(LC_CTYPE, "C.UTF-8") ? 0 : -1;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(content_makes_the_widths),
		cmocka_unit_test(only_what_may_be_cut_is_cut),
		cmocka_unit_test(tints_do_not_count),
		cmocka_unit_test(nothing_without_rows),
		cmocka_unit_test(text_wraps_at_blanks),
	};
	return cmocka_run_group_tests(tests, use_utf8, NULL);
}
