/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <math.h>

#include "units.h"

static void ages(void **state)
{
	static const struct {
		double sec;
		const char *text;
	} rows[] = {
		{0, "0s"},	  {0.04, "0s"},
		{0.4, "0.4s"},	  {0.94, "0.9s"},
		{0.96, "1s"},	  {1.9, "1s"},
		{59.99, "59s"},	  {60, "1m00s"},
		{192.4, "3m12s"}, {544, "9m04s"},
		{3599, "59m59s"}, {3600, "1h00m"},
		{7500, "2h05m"},  {86399, "23h59m"},
		{86400, "1d"},	  {41 * 86400.0, "41d"},
		{-1, "-"},	  {NAN, "-"},
		{INFINITY, "-"},  {1e300, "-"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		assert_string_equal(unit_age(rows[i].sec), rows[i].text);
	assert_string_equal(unit_ago(12), "12s ago");
	assert_string_equal(unit_ago(-1), "never");
}

static void rates(void **state)
{
	(void)state;
	assert_string_equal(unit_rate(400000), "400G");
	assert_string_equal(unit_rate(2500), "2.5G");
	assert_string_equal(unit_rate(100), "100M");
	assert_string_equal(unit_rate(0), "-");
	assert_string_equal(unit_rate(-5), "-");
	assert_string_equal(unit_rate(2400000), "2400G");
}

static void round_trips(void **state)
{
	(void)state;
	assert_string_equal(unit_ns(38000), "38us");
	assert_string_equal(unit_ns(3400), "3.4us");
	assert_string_equal(unit_ns(9949), "9.9us");
	assert_string_equal(unit_ns(9951), "10us");
	assert_string_equal(unit_ns(999499), "999us");
	assert_string_equal(unit_ns(999500), "1.0ms");
	assert_string_equal(unit_ns(999500000), "1.0s");
	assert_string_equal(unit_ns(0), "0");
	assert_string_equal(unit_ns(-1), "-");
	assert_string_equal(unit_ns_pair(38000, 71000), "38/71us");
	assert_string_equal(unit_ns_pair(38000, 7100000), "38us/7.1ms");
	assert_string_equal(unit_ns_pair(1200000, 8400000), "1.2/8.4ms");
	assert_string_equal(unit_ns_pair(-1, 5), "-");
	assert_string_equal(unit_interval(1000000000), "1s");
	assert_string_equal(unit_interval(1500000000), "1.5s");
	assert_string_equal(unit_interval(100000000), "100ms");
	assert_string_equal(unit_interval(0), "-");
}

static void percents_do_not_round_to_the_ends(void **state)
{
	(void)state;
	assert_string_equal(unit_percent(0, 100), "0%");
	assert_string_equal(unit_percent(1, 1000000), "<0.1%");
	assert_string_equal(unit_percent(125, 1000), "12.5%");
	assert_string_equal(unit_percent(999999, 1000000), "99.9%");
	assert_string_equal(unit_percent(100, 100), "100%");
	assert_string_equal(unit_percent(0, 0), "-");
	assert_string_equal(unit_percent(-1, 5), "-");
}

static void sizes_and_words(void **state)
{
	(void)state;
	assert_string_equal(unit_kib(512), "512K");
	assert_string_equal(unit_kib(12595), "12.3M");
	assert_string_equal(unit_kib(3 * 1024 * 1024), "3.0G");
	assert_string_equal(unit_clock("2026-11-30T20:41:07.118Z"), "20:41:07.118Z");
	assert_string_equal(unit_clock("soon"), "soon");
	assert_string_equal(unit_clock("T"), "T");
	assert_string_equal(unit_clock(NULL), "-");
	assert_string_equal(unit_word("local_port"), "local-port");
	assert_string_equal(unit_word(NULL), "-");
	assert_string_equal(unit_health("bad"), "FAILED");
	assert_string_equal(unit_health("degraded"), "DEGRADED");
	assert_string_equal(unit_health("ok"), "ok");
	assert_string_equal(unit_health(NULL), "-");
}

static void durations(void **state)
{
	static const struct {
		const char *text;
		int r;
		int64_t ms;
	} rows[] = {
		{"2h", 0, 7200000},
		{"90m", 0, 5400000},
		{"1h30m", 0, 5400000},
		{"300ms", 0, 300},
		{"45", 0, 45000},
		{"2s", 0, 2000},
		{"1d", 0, 86400000},
		{"5min", 0, 300000},
		{"0s", 0, 0},
		{"", -EINVAL, 0},
		{"h", -EINVAL, 0},
		{"1h30", -EINVAL, 0},
		{"1 h", -EINVAL, 0},
		{"-1h", -EINVAL, 0},
		{"1y", -EINVAL, 0},
		{"1.5h", -EINVAL, 0},
		{"3650d", 0, INT64_C(315360000000)},
		{"3651d", -ERANGE, 0},
		{"3650d1s", -ERANGE, 0},
		{"99999999999999999999999h", -ERANGE, 0},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		int64_t ms = -7;

		assert_int_equal(unit_duration_parse(rows[i].text, &ms), rows[i].r);
		assert_int_equal(ms, rows[i].r ? -7 : rows[i].ms);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ages),
		cmocka_unit_test(rates),
		cmocka_unit_test(round_trips),
		cmocka_unit_test(percents_do_not_round_to_the_ends),
		cmocka_unit_test(sizes_and_words),
		cmocka_unit_test(durations),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
