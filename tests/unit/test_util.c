/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "names.h"

static void copy_cuts_and_says_so(void **state)
{
	char b[4];

	(void)state;
	assert_true(str_copy(b, sizeof(b), "abc"));
	assert_false(str_copy(b, sizeof(b), "abcd"));
	assert_string_equal(b, "abc");
	str_append(b, sizeof(b), "%d", 5);
	assert_string_equal(b, "abc");
}

static void clean_replaces_and_trims(void **state)
{
	char b[16];

	(void)state;
	text_clean(b, sizeof(b), "a\x01" "b  \0x", 7);
	assert_string_equal(b, "a?b");
	text_clean(b, 3, "abcdef", 6);
	assert_string_equal(b, "ab");
}

static void distance(void **state)
{
	(void)state;
	assert_int_equal(str_distance("HeartbeatSec", "HartbeatSec"), 1);
	assert_int_equal(str_distance("", "abc"), 3);
	assert_int_equal(str_distance("abc", "ABC"), 0);
}

static void enums_both_ways(void **state)
{
	(void)state;
	assert_int_equal(enum_find(&verdict_names, "local-port"), VERDICT_LOCAL_PORT);
	assert_int_equal(enum_find(&verdict_names, "LOCAL_PORT"), VERDICT_LOCAL_PORT);
	assert_int_equal(enum_find(&verdict_names, "local-por"), -1);
	assert_string_equal(enum_name(&verdict_names, 99), "unknown");
	assert_string_equal(enum_text(&conn_state_names, CONN_CONNECTED_PING), "connected-ping");
}

static void every_enum_has_its_names(void **state)
{
	static const struct {
		const struct enum_names *t;
		int n;
	} all[] = {
		{&role_names, ROLE__MAX},	  {&transport_names, TRANSPORT__MAX},
		{&conn_state_names, CONN__MAX},	  {&verdict_names, VERDICT__MAX},
		{&health_names, HEALTH__MAX},	  {&override_names, OVERRIDE__MAX},
		{&worker_state_names, WORKER__MAX}, {&worker_kind_names, WORKER_KIND__MAX},
		{&unavailable_names, WHY__MAX},	  {&source_names, SOURCE__MAX},
		{&ctl_cmd_names, CTL__MAX},	  {&cause_names, CAUSE__MAX},
		{&refusal_names, REFUSE__MAX},	  {&ep_stage_names, STAGE__MAX},
		{&ep_error_names, EPERR__MAX},	  {&drop_names, DROP__MAX},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(all); i++) {
		assert_int_equal(all[i].t->n, all[i].n);
		for (int v = 0; v < all[i].n; v++)
			assert_non_null(all[i].t->names[v]);
	}
}

static int sign(int v)
{
	return (v > 0) - (v < 0);
}

static void compare_natural(void **state)
{
	/* In order. */
	static const char *const names[] = {"",	      "1",     "02",	"2",	 "10",
					    "a",      "a1",    "a2",	"a2b",	 "a10",
					    "a10b1",  "a10b2", "a10b10", "aa",	 "b",
					    "b99999999999999999999998",
					    "b99999999999999999999999"};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		for (size_t k = 0; k < ARRAY_LEN(names); k++)
			assert_int_equal(sign(str_compare_natural(names[i], names[k])),
					 (i > k) - (i < k));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(compare_natural),
		cmocka_unit_test(copy_cuts_and_says_so),
		cmocka_unit_test(clean_replaces_and_trims),
		cmocka_unit_test(distance),
		cmocka_unit_test(enums_both_ways),
		cmocka_unit_test(every_enum_has_its_names),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
