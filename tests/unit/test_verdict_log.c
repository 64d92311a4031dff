/* SPDX-License-Identifier: BSD-2-Clause */
/* What of many verdict changes reaches the journal; the log is replaced. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>

#include "log.h"
#include "verdict_log.h"

static int lines, level_of_last;
static char last[512], fields_of_last[512];

void log_fields(int level, const char *const *fields, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(last, sizeof(last), fmt, ap);
	va_end(ap);
	fields_of_last[0] = '\0';
	for (; *fields; fields++)
		str_append(fields_of_last, sizeof(fields_of_last), "%s;", *fields);
	level_of_last = level;
	lines++;
}

static struct mono at(double sec)
{
	return (struct mono){(int64_t)(sec * 1e9) + 1};
}

static int setup(void **state)
{
	*state = verdict_log_new();
	lines = 0;
	return 0;
}

static int teardown(void **state)
{
	verdict_log_free(*state);
	return 0;
}

static void add(struct verdict_log *l, double sec, int n, enum verdict to)
{
	char key[32];

	for (int i = 0; i < n; i++) {
		struct verdict_change c = {.key = key, .peer = "p", .why = "because",
					   .from = VERDICT_OK, .to = to, .loud = i == 0};
		uint32_t place = 0;

		(void)snprintf(key, sizeof(key), "p%d/0:tx", i);
		verdict_log_add(l, at(sec), &c, &place);
	}
}

static void one(struct verdict_log *l, const char *key, enum verdict from, enum verdict to,
		uint32_t *place)
{
	struct verdict_change c = {.key = key, .peer = "p", .why = "", .from = from, .to = to};

	verdict_log_add(l, at(1), &c, place);
}

static void seven_are_seven_lines(void **state)
{
	add(*state, 1, 7, VERDICT_NETWORK);
	verdict_log_tick(*state, at(2.9));
	assert_int_equal(lines, 0);
	verdict_log_tick(*state, at(3));
	assert_int_equal(lines, 7);
	assert_string_equal(last, "p6/0:tx: ok -> network: because");
	assert_string_equal(fields_of_last,
			    "CONNECTION=p6/0:tx;PEER=p;VERDICT_OLD=ok;VERDICT=network;");
	verdict_log_tick(*state, at(9));
	assert_int_equal(lines, 7);
}

static void eight_are_one(void **state)
{
	add(*state, 1, 5, VERDICT_NETWORK);
	add(*state, 2, 3000, VERDICT_NETWORK);
	verdict_log_tick(*state, at(3));
	assert_int_equal(lines, 1);
	assert_int_equal(level_of_last, LOG_WARNING);
	assert_string_equal(last, "3005 connections: ok -> network, the first of them "
				  "p0/0:tx: because");
	assert_string_equal(fields_of_last,
			    "VERDICT_OLD=ok;VERDICT=network;CONNECTIONS=3005;");
}

static void only_alike_ones_fold(void **state)
{
	add(*state, 1, 7, VERDICT_NETWORK);
	add(*state, 1.5, 7, VERDICT_LOCAL_PORT);
	verdict_log_tick(*state, at(3.2));
	assert_int_equal(lines, 7);
	verdict_log_tick(*state, at(3.5));
	assert_int_equal(lines, 14);
}

/* What became of a connection is told in the order in which it did, whatever others do. */
static void in_order(void **state)
{
	struct verdict_log *l = *state;
	uint32_t a = 0, b = 0;

	one(l, "a", VERDICT_UNKNOWN, VERDICT_OK, &a);
	one(l, "b", VERDICT_OK, VERDICT_UNKNOWN, &b);
	one(l, "b", VERDICT_UNKNOWN, VERDICT_OK, &b);
	verdict_log_tick(l, at(9));
	assert_int_equal(lines, 3);
	assert_string_equal(last, "b: unknown -> ok: ");
}

/* Each of many goes through the same changes: still one line for each of these. */
static void many_in_order_fold(void **state)
{
	struct verdict_log *l = *state;
	char key[32];

	for (int i = 0; i < 1000; i++) {
		uint32_t place = 0;

		(void)snprintf(key, sizeof(key), "p%d", i);
		one(l, key, VERDICT_PEER_DOWN, VERDICT_UNKNOWN, &place);
		one(l, key, VERDICT_UNKNOWN, VERDICT_OK, &place);
	}
	verdict_log_tick(l, at(9));
	assert_int_equal(lines, 2);
	assert_string_equal(last, "1000 connections: unknown -> ok, the first of them p0: ");
}

static void the_end_writes_what_waits(void **state)
{
	add(*state, 1, 2, VERDICT_NETWORK);
	*state = verdict_log_free(*state);
	assert_int_equal(lines, 2);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(seven_are_seven_lines),
		T(eight_are_one),
		T(only_alike_ones_fold),
		T(in_order),
		T(many_in_order_fold),
		T(the_end_writes_what_waits),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
