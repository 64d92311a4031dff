/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <locale.h>

#include "clean.h"

static const struct {
	const char *raw, *utf8, *c; /* in a UTF-8 locale, in the C locale */
	int width;		    /* of utf8 */
} rows[] = {
	{"plain ~", "plain ~", "plain ~", 7},
	{"\x1b[31m", "?[31m", "?[31m", 5},
	{"a\n\t\r\x7f", "a????", "a????", 5},
	{"\xc2\x9b"
	 "31m",
	 "?31m", "?31m", 4}, /* C1: CSI */
	{"\xe2\x80\xae"
	 "x",
	 "?x", "?x", 2},	       /* right-to-left override */
	{"\xe2\x80\x8b", "?", "?", 1}, /* zero width space */
	{"gr\xc3\xb6\xc3\x9f"
	 "e",
	 "gr\xc3\xb6\xc3\x9f"
	 "e",
	 "gr??e", 5},
	{"\xe6\x9d\xb1", "\xe6\x9d\xb1", "?", 2}, /* wide */
	{"\xff\xc3", "??", "??", 2},		  /* stray bytes */
	{"\xc0\xaf", "??", "??", 2},		  /* overlong */
	{"\xe2\x80", "??", "??", 2},		  /* cut off */
	{"", "", "", 0},
};

static void in_utf8(void **state)
{
	(void)state;
	if (!setlocale(LC_CTYPE, "C.UTF-8"))
		fail_msg("no locale C.UTF-8");
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		_cleanup_(freep) char *safe = text_safe(rows[i].raw);

		assert_string_equal(safe, rows[i].utf8);
		assert_int_equal(text_width(safe), rows[i].width);
	}
}

static void in_c(void **state)
{
	(void)state;
	assert_non_null(setlocale(LC_CTYPE, "C"));
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		_cleanup_(freep) char *safe = text_safe(rows[i].raw);

		assert_string_equal(safe, rows[i].c);
	}
}

static void cuts_at_columns(void **state)
{
	static const struct {
		const char *text;
		int width;
		const char *cut;
	} cuts[] = {
		{"leaf08", 6, "leaf08"},
		{"leaf08", 5, "leaf~"},
		{"leaf08", 1, "~"},
		{"\xe6\x9d\xb1\xe4\xba\xac", 4, "\xe6\x9d\xb1\xe4\xba\xac"},
		{"\xe6\x9d\xb1\xe4\xba\xac", 3, "\xe6\x9d\xb1~"},
		{"\xe6\x9d\xb1\xe4\xba\xac", 2, "~"}, /* half a wide one does not fit */
	};

	(void)state;
	assert_non_null(setlocale(LC_CTYPE, "C.UTF-8"));
	for (size_t i = 0; i < ARRAY_LEN(cuts); i++) {
		_cleanup_(freep) char *cut = text_cut(cuts[i].text, cuts[i].width);

		assert_string_equal(cut, cuts[i].cut);
	}
}

static void json_with_its_keys(void **state)
{
	json_t *v = json_pack("{s:[s,{s:s}], s:i}", "a\nb", "\x1b", "\x07", "x\x01y",
			      "n", 3);
	json_t *want = json_pack("{s:[s,{s:s}], s:i}", "a?b", "?", "?", "x?y", "n", 3);

	(void)state;
	json_safe(v);
	assert_true(json_equal(v, want));
	json_decref(v);
	json_decref(want);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(in_utf8),
		cmocka_unit_test(in_c),
		cmocka_unit_test(cuts_at_columns),
		cmocka_unit_test(json_with_its_keys),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
