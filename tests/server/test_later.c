/* SPDX-License-Identifier: BSD-2-Clause */
/* Answers that come later: to whom, how many, and what happens when nobody waits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "fake_api.h"
#include "idl.h"
#include "varlink.h"
#include "varlink_server.h"

#include "client.h"

#define ASK_PORT                                                                           \
	"{\"method\":\"io.fabd.GetFabricPort\",\"parameters\":{\"port\":\"leaf07/1\"}}\n"
#define SWEEP "{\"method\":\"io.fabd.SweepFabric\",\"more\":true}\n"
#define WAITING_MAX 32

static const struct api_ticket *held(uint64_t not)
{
	struct mono until = mono_add(clock_now(), DEADLINE_NS);

	while (!fake_held(w.fake) || fake_held(w.fake)->id == not) {
		assert_true(mono_sub(clock_now(), until) < 0);
		turn();
	}
	return fake_held(w.fake);
}

static void tell(const struct api_ticket *t, const char *error, json_t *parameters,
		 bool continues)
{
	t->answer(t->server, t->id, error, parameters, continues);
}

static json_t *number(int n)
{
	return json_pack("{s:i}", "n", n);
}

static void assert_number(json_t *reply, int n, bool continues)
{
	json_t *parameters = json_object_get(reply, "parameters");

	assert_int_equal(json_integer_value(json_object_get(parameters, "n")), n);
	assert_int_equal(json_is_true(json_object_get(reply, "continues")), continues);
	json_decref(reply);
}

/* ---- tests ---- */

static void an_answer_at_once_is_one(void **state)
{
	int q = dial(w.query), a = dial(w.admin);
	json_t *r = ask(q, "{\"method\":\"io.fabd.GetFabricPort\","
			   "\"parameters\":{\"port\":\"leaf07/1\"}}");

	(void)state;
	assert_reply(r, "GetFabricPort");
	json_decref(r);
	assert_error(ask(q, "{\"method\":\"io.fabd.GetFabricPort\","
			    "\"parameters\":{\"port\":\"nobody/1\"}}"),
		     "io.fabd.NoSuchNode", "node", "nobody");
	assert_error(ask(q, "{\"method\":\"io.fabd.SweepFabric\",\"more\":true}"),
		     "io.fabd.NotAllowed", "method", "io.fabd.SweepFabric");
	assert_error(ask(a, "{\"method\":\"io.fabd.SweepFabric\"}"), "io.fabd.ExpectedMore",
		     NULL, NULL);
	r = ask(a, "{\"method\":\"io.fabd.SweepFabric\",\"more\":true}");
	assert_reply(r, "SweepFabric");
	json_decref(r);
	(void)close(q);
	(void)close(a);
}

static json_t *ask_ping(int fd, const char *more)
{
	_cleanup_(freep) char *text =
		xasprintf("{\"method\":\"io.fabd.Ping\",\"more\":true,"
			  "\"parameters\":{\"peer\":\"gpu0033\"%s}}",
			  more);

	return ask(fd, text);
}

static void assert_pinged(json_t *reply, int count, int size)
{
	json_t *p = json_array_get(
		json_object_get(json_object_get(reply, "parameters"), "pings"), 0);

	assert_reply(reply, "Ping");
	assert_int_equal(json_integer_value(json_object_get(p, "count")), count);
	assert_int_equal(json_integer_value(json_object_get(p, "size")), size);
	json_decref(reply);
}

/* On the query socket within limits that load nobody. */
static void pings_are_modest_but_the_admins(void **state)
{
	int q = dial(w.query), a = dial(w.admin);

	(void)state;
	assert_pinged(ask_ping(q, ""), 10, 64);
	assert_pinged(ask_ping(q, ",\"interval_ms\":10,\"count\":1000,\"size\":0"), 1000, 0);
	assert_error(ask_ping(q, ",\"interval_ms\":9.99"), "io.fabd.NotAllowed", "method",
		     "io.fabd.Ping");
	assert_error(ask_ping(q, ",\"interval_ms\":0"), "io.fabd.NotAllowed", "method",
		     "io.fabd.Ping");
	assert_error(ask_ping(q, ",\"count\":1001"), "io.fabd.NotAllowed", "method",
		     "io.fabd.Ping");
	assert_pinged(ask_ping(a, ",\"interval_ms\":0,\"count\":1000000"), 1000000, 64);
	assert_error(ask_ping(a, ",\"size\":63"), "org.varlink.service.InvalidParameter",
		     "parameter", "size");
	assert_error(ask_ping(a, ",\"count\":1000001"),
		     "org.varlink.service.InvalidParameter", "parameter", "count");
	assert_error(ask_ping(a, ",\"transport\":[]"),
		     "org.varlink.service.InvalidParameter", "parameter", "transport");
	assert_error(ask(q, "{\"method\":\"io.fabd.Ping\",\"parameters\":"
			    "{\"peer\":\"gpu0033\"}}"),
		     "io.fabd.ExpectedMore", NULL, NULL);
	assert_error(ask(q, "{\"method\":\"io.fabd.Ping\",\"more\":true,"
			    "\"parameters\":{\"peer\":\"nobody\"}}"),
		     "io.fabd.NoSuchPeer", "peer", "nobody");
	(void)close(q);
	(void)close(a);
}

static void others_are_served_meanwhile(void **state)
{
	int q = dial(w.query), other = dial(w.query);
	const struct api_ticket *t;
	json_t *r;

	(void)state;
	fake_hold(w.fake);
	say(q, ASK_PORT "{\"method\":\"io.fabd.GetFabric\"}\n");
	t = held(0);
	r = ask(other, "{\"method\":\"io.fabd.GetFabric\"}");
	assert_reply(r, "GetFabric");
	json_decref(r);
	tell(t, NULL, number(1), false);
	assert_number(hear_json(q, '\n'), 1, false);
	/* What was asked behind it comes behind it. */
	r = hear_json(q, '\n');
	assert_reply(r, "GetFabric");
	json_decref(r);
	assert_int_equal(fake_dropped(w.fake), 0);
	/* A ticket is good for one end. */
	tell(t, NULL, number(2), false);
	r = ask(q, "{\"method\":\"io.fabd.GetFabric\"}");
	assert_reply(r, "GetFabric");
	json_decref(r);
	(void)close(q);
	(void)close(other);
}

static void progress_comes_before_the_end(void **state)
{
	int a = dial(w.admin);
	const struct api_ticket *t;

	(void)state;
	fake_hold(w.fake);
	say(a, SWEEP);
	t = held(0);
	tell(t, NULL, number(1), true);
	assert_number(hear_json(a, '\n'), 1, true);
	/* Of two in one turn the later counts. */
	tell(t, NULL, number(2), true);
	tell(t, NULL, number(3), true);
	assert_number(hear_json(a, '\n'), 3, true);
	tell(t, NULL, number(4), true);
	tell(t, "io.fabd.Unavailable", json_pack("{s:s, s:s}", "what", "fabric", "why", "x"),
	     false);
	tell(t, NULL, number(5), true); /* too late */
	assert_error(hear_json(a, '\n'), "io.fabd.Unavailable", "what", "fabric");
	(void)close(a);
}

static void who_goes_is_dropped(void **state)
{
	int q = dial(w.query);
	const struct api_ticket *t;
	uint64_t id;

	(void)state;
	fake_hold(w.fake);
	say(q, ASK_PORT);
	t = held(0);
	id = t->id;
	(void)close(q);
	await_clients(0);
	assert_int_equal(fake_dropped(w.fake), id);
	tell(t, NULL, number(1), false); /* to nobody */
	turn();
}

static void a_half_closed_client_gets_its_answer(void **state)
{
	int q = dial(w.query);
	const struct api_ticket *t;

	(void)state;
	fake_hold(w.fake);
	say(q, ASK_PORT);
	t = held(0);
	(void)shutdown(q, SHUT_WR);
	for (int i = 0; i < 5; i++)
		turn();
	assert_int_equal(fake_dropped(w.fake), 0);
	tell(t, NULL, number(1), false);
	assert_number(hear_json(q, '\n'), 1, false);
	assert_true(closed(q));
	(void)close(q);
}

static void too_many_are_told_so(void **state)
{
	int q[WAITING_MAX + 1];
	uint64_t last = 0;

	(void)state;
	fake_hold(w.fake);
	for (int i = 0; i < WAITING_MAX; i++) {
		q[i] = dial(w.query);
		say(q[i], ASK_PORT);
		last = held(last)->id;
	}
	q[WAITING_MAX] = dial(w.query);
	say(q[WAITING_MAX], ASK_PORT);
	assert_error(hear_json(q[WAITING_MAX], '\n'), "io.fabd.Busy", NULL, NULL);
	assert_int_equal(count("too_many_waiting"), 1);
	/* The place of one that is answered is free again. */
	tell(fake_held(w.fake), NULL, number(1), false);
	assert_number(hear_json(q[WAITING_MAX - 1], '\n'), 1, false);
	say(q[WAITING_MAX], ASK_PORT);
	assert_true(held(last)->id > last);
	for (int i = 0; i <= WAITING_MAX; i++)
		(void)close(q[i]);
	await_clients(0);
}

static void input_behind_a_wait_is_bounded(void **state)
{
	static char blanks[64 * 1024];
	int q = dial(w.query);
	ssize_t sent = 0, n;

	(void)state;
	fake_hold(w.fake);
	say(q, ASK_PORT);
	(void)held(0);
	memset(blanks, '\n', sizeof(blanks));
	/* The kernel's buffers fill, as the server takes no more. */
	for (int i = 0; i < 2000 && sent < 64 * 1024 * 1024; i++) {
		n = send(q, blanks, sizeof(blanks), MSG_DONTWAIT | MSG_NOSIGNAL);
		sent += MAX(n, 0);
		turn();
	}
	assert_true(sent < 8 * 1024 * 1024);
	tell(fake_held(w.fake), NULL, number(1), false);
	assert_number(hear_json(q, '\n'), 1, false);
	(void)close(q);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
int main(void)
{
	const struct CMUnitTest tests[] = {
		T(an_answer_at_once_is_one),
		T(pings_are_modest_but_the_admins),
		T(others_are_served_meanwhile),
		T(progress_comes_before_the_end),
		T(who_goes_is_dropped),
		T(a_half_closed_client_gets_its_answer),
		T(too_many_are_told_so),
		T(input_behind_a_wait_is_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
