/* SPDX-License-Identifier: BSD-2-Clause */
/* What a round trip usually is, and a host that slept. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "conn.h"
#include "suspend.h"
#include "usual.h"

#define US 1000.0

static const struct usual_params params = {.learn = 600 * NSEC_PER_SEC, .factor = 3};

static int64_t clock_sec = 100;

static struct mono later(int sec)
{
	clock_sec += sec;
	return (struct mono){clock_sec * NSEC_PER_SEC};
}

/* A look each five seconds; the first look of all has no time before it. */
static void looks(struct usual *u, double p99, int sec)
{
	if (!u->at)
		usual_step(u, &params, true, p99, later(0));
	for (int i = 0; i < sec; i += 5)
		usual_step(u, &params, true, p99, later(5));
}

static void learns_before_it_speaks(void **state)
{
	struct usual u = {0};

	(void)state;
	looks(&u, 70 * US, 595);
	assert_true(usual_p99(&u, &params) == 0);
	looks(&u, 7000 * US, 1); /* still learning: nothing is slow yet */
	assert_false(usual_slower(&u, &params));
	assert_true(usual_p99(&u, &params) > 70 * US);
}

static void slow_for_a_while(void **state)
{
	struct usual u = {0};

	(void)state;
	looks(&u, 70 * US, 600);
	assert_true(usual_p99(&u, &params) > 69 * US && usual_p99(&u, &params) < 71 * US);
	looks(&u, 231 * US, 115);
	assert_false(usual_slower(&u, &params));
	looks(&u, 231 * US, 5);
	assert_true(usual_slower(&u, &params));
	/* staying slow makes it neither usual nor well */
	looks(&u, 231 * US, 86400);
	assert_true(usual_slower(&u, &params));
	assert_true(usual_p99(&u, &params) < 71 * US);
	looks(&u, 80 * US, 1);
	assert_false(usual_slower(&u, &params));
}

static void a_break_begins_anew(void **state)
{
	struct usual u = {0};

	(void)state;
	looks(&u, 70 * US, 600);
	looks(&u, 231 * US, 115);
	usual_step(&u, &params, false, 231 * US, later(5)); /* lost meanwhile */
	looks(&u, 231 * US, 115);
	assert_false(usual_slower(&u, &params));
	assert_true(usual_p99(&u, &params) > 0); /* what was learnt stays */
}

static void small_is_no_news(void **state)
{
	struct usual u = {0};

	(void)state;
	looks(&u, 10 * US, 600);
	looks(&u, 105 * US, 600); /* ten times, and not 100 us more */
	assert_false(usual_slower(&u, &params));
	/* and it follows */
	looks(&u, 105 * US, 6000);
	assert_true(usual_p99(&u, &params) > 100 * US);
}

/* Many looks in a second count as one, and a long gap as a minute. */
static void how_often_it_is_looked_at(void **state)
{
	struct usual u = {0};

	(void)state;
	for (int i = 0; i < 10000; i++)
		usual_step(&u, &params, true, 70 * US, later(0));
	assert_int_equal(u.learnt, 0);
	usual_step(&u, &params, true, 70 * US, later(3600));
	assert_int_equal(u.learnt, 60);
}

static void switched_off(void **state)
{
	const struct usual_params off = {.learn = 0, .factor = 3};
	struct usual u = {0};

	(void)state;
	for (int i = 0; i < 1000; i++)
		usual_step(&u, &off, true, i < 500 ? 1 : 1e9, later(5));
	assert_true(usual_p99(&u, &off) == 0);
	assert_false(usual_slower(&u, &off));
}

/* Whatever comes: no number that is none, and slow only with something to compare. */
static void any_course(void **state)
{
	struct usual u = {0};
	uint64_t rnd = 7;

	(void)state;
	for (int i = 0; i < 200000; i++) {
		rnd = mix64(rnd);
		usual_step(&u, &params, rnd % 4 != 0, (double)(rnd % 1000000),
			   later((int)(rnd >> 60)));
		assert_true(u.p99 >= 0 && u.p99 < 1e6F);
		if (usual_slower(&u, &params))
			assert_true(usual_p99(&u, &params) > 0);
	}
}

/* What was done on purpose, here or there, and what a port counts itself, is no flap. */
static void losses_that_are_flaps(void **state)
{
	static const struct {
		enum probe_event by;
		enum cause cause;
		bool flap;
	} cases[] = {
		{PE_EP_LATE, CAUSE_NONE, true},
		{PE_ERROR, CAUSE_NONE, true},
		{PE_TIMEOUT, CAUSE_NONE, true},
		{PE_UNKNOWN, CAUSE_NONE, true},
		{PE_PORT_DOWN, CAUSE_PORT_DOWN, true}, /* who else counts it is asked later */
		{PE_PEER_STOP, CAUSE_NONE, false},
		{PE_STOP, CAUSE_NONE, false},
		{PE_OPERATOR, CAUSE_OPERATOR, false},
		{PE_OPERATOR, CAUSE_PORT_DOWN, false}, /* another address */
		{PE_RESET, CAUSE_NONE, false},
		{PE_RESTART, CAUSE_HEARTBEAT_LOST, true},
		{PE_RESTART, CAUSE_TIMEOUT, true},
		{PE_RESTART, CAUSE_ENDPOINT_ERROR, true},
		{PE_RESTART, CAUSE_ENDPOINT_RESTART, true},
		{PE_RESTART, CAUSE_PORT_DOWN, false}, /* that port counts it */
		{PE_RESTART, CAUSE_OPERATOR, false},
		{PE_RESTART, CAUSE_CONFIG, false},
		{PE_RESTART, CAUSE_RESTART, false},
		{PE_RESTART, CAUSE_SHUTDOWN, false},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		const struct conn c = {.lost_by = (uint8_t)cases[i].by,
				       .restart_cause = cases[i].cause};

		assert_int_equal(conn_loss_is_flap(&c), cases[i].flap);
	}
}

static int64_t look(struct suspend *s, int64_t mono, int64_t boot, int64_t took)
{
	return suspend_look(s, (struct mono){mono}, boot, (struct mono){mono + took});
}

static void a_host_that_slept(void **state)
{
	const int64_t ms = NSEC_PER_MSEC, sec = NSEC_PER_SEC;
	struct suspend s = {0};

	(void)state;
	/* boottime may be ahead from the start */
	assert_int_equal(look(&s, sec, 3601 * sec, 1000), 0);
	assert_int_equal(look(&s, 2 * sec, 3602 * sec + 200, 1000), 0);
	/* interrupted between the readings: no sleep, and nothing is learnt of it */
	assert_int_equal(look(&s, 3 * sec, 3603 * sec + 400 * ms, 401 * ms), 0);
	assert_int_equal(look(&s, 4 * sec, 3604 * sec, 1000), 0);
	/* suspended for five seconds: once */
	assert_int_equal(look(&s, 5 * sec, 3610 * sec, 1000), 5 * sec);
	assert_int_equal(look(&s, 6 * sec, 3611 * sec, 1000), 0);
	/* shorter than counts */
	assert_int_equal(look(&s, 7 * sec, 3612 * sec + 49 * ms, 1000), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(learns_before_it_speaks), cmocka_unit_test(slow_for_a_while),
		cmocka_unit_test(a_break_begins_anew),	   cmocka_unit_test(small_is_no_news),
		cmocka_unit_test(how_often_it_is_looked_at), cmocka_unit_test(switched_off),		   cmocka_unit_test(any_course),
		cmocka_unit_test(a_host_that_slept),
		cmocka_unit_test(losses_that_are_flaps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
