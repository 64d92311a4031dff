/* SPDX-License-Identifier: BSD-2-Clause */
/* The socket server on a real socket, with a fake host behind it, in one thread: the
 * test is the client and turns the loop. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "fake_api.h"
#include "idl.h"
#include "varlink.h"
#include "varlink_server.h"

#include "client.h"

/* ---- methods ---- */

static void every_method_answers(void **state)
{
	static const struct {
		const char *method, *parameters;
		bool admin;
	} calls[] = {
		{"GetStatus", "{}", false},
		{"ListDevices", "{}", false},
		{"ListPorts", "{}", false},
		{"ListPorts", "{\"device\":\"mlx5_3\"}", false},
		{"ListPorts", "{\"device\":\"nobody\"}", false},
		{"GetPort", "{\"port\":\"mlx5_3/1\"}", false},
		{"GetPort", "{\"port\":\"mlx5_3:1\"}", true},
		{"GetPortCounters", "{\"port\":\"mlx5_4/1\"}", false},
		{"GetPortCounters", "{\"port\":\"mlx5_4:1\",\"since_sec\":60}", true},
		{"ListPeers", "{}", false},
		{"ListConnections", "{\"peer\":null}", false},
		{"ListConnections", "{\"peer\":\"gpu0033\"}", false},
		{"GetConnection", "{\"connection\":\"gpu0034/2\"}", false},
		{"Explain", "{\"peer\":\"gpu0033\"}", false},
		{"Explain", "{\"peer\":\"gpu0033\",\"rail\":\"2\",\"transport\":\"rc\"}", true},
		{"Check", "{}", false},
		{"ListHistory", "{}", false},
		{"ListHistory", "{\"since_sec\":900,\"name\":\"mlx5_3/1\"}", false},
		{"GetFabric", "{}", false},
		{"ListFabricNodes", "{}", false},
		{"ListFabricLinks", "{}", true},
		{"ListFabricErrors", "{}", false},
		{"GetFabricSa", "{}", false},
		{"GetFabricRoute", "{\"from\":\"gpu0417 mlx5_0\",\"to\":\"spine02\"}", false},
		{"GetMatrix", "{\"by\":\"leaf\",\"show\":\"loss\"}", false},
		{"GetMatrix", "{\"by\":\"peer\",\"show\":\"p99\"}", true},
		{"ResetConnection", "{\"connection\":\"gpu0034/2\"}", true},
		{"SetPortHealth",
		 "{\"port\":\"mlx5_3/1\",\"health\":\"ok\",\"for_sec\":60}", true},
		{"SetPortHealth", "{\"port\":\"mlx5_3/1\",\"health\":\"auto\"}", true},
	};
	int q = dial(w.query), a = dial(w.admin);

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(calls); i++) {
		_cleanup_(freep) char *text =
			xasprintf("{\"method\":\"io.fabd.%s\",\"parameters\":%s}",
				  calls[i].method, calls[i].parameters);
		json_t *reply = ask(calls[i].admin ? a : q, text);

		assert_reply(reply, calls[i].method);
		assert_null(json_object_get(reply, "continues"));
		json_decref(reply);
	}
	assert_non_null(strstr(fake_who(w.fake), "uid "));
	(void)close(q);
	(void)close(a);
	await_clients(0);
}

static void introspection(void **state)
{
	int q = dial(w.query);
	json_t *r = ask(q, "{\"method\":\"org.varlink.service.GetInfo\"}"), *p,
	       *service;
	char why[256];

	(void)state;
	service = idl_parse(varlink_idl_service);
	p = json_object_get(r, "parameters");
	assert_int_equal(
		idl_check(service,
			  json_object_get(idl_method(service, "GetInfo"), "out"), p,
			  why, sizeof(why)),
		0);
	assert_string_equal(json_string_value(json_object_get(p, "version")),
			    FABD_VERSION);
	json_decref(r);
	json_decref(service);
	r = ask(q, "{\"method\":\"org.varlink.service.GetInterfaceDescription\","
		   "\"parameters\":{\"interface\":\"io.fabd\"}}");
	assert_string_equal(json_string_value(json_object_get(
				    json_object_get(r, "parameters"), "description")),
			    varlink_idl_fabd);
	json_decref(r);
	assert_error(ask(q,
			 "{\"method\":\"org.varlink.service.GetInterfaceDescription\","
			 "\"parameters\":{\"interface\":\"io.fab\"}}"),
		     "org.varlink.service.InterfaceNotFound", "interface", "io.fab");
	(void)close(q);
}

static void errors_have_their_names(void **state)
{
	static const struct {
		const char *request, *error, *key, *value;
	} cases[] = {
		{"{\"method\":\"io.fabd.Nope\"}", "org.varlink.service.MethodNotFound",
		 "method", "io.fabd.Nope"},
		{"{\"method\":\"Nope\"}", "org.varlink.service.MethodNotFound",
		 "method", "Nope"},
		{"{\"method\":\"io.fab.GetPort\"}",
		 "org.varlink.service.InterfaceNotFound", "interface", "io.fab"},
		{"{\"method\":\"io.fabd.GetPort\"}",
		 "org.varlink.service.InvalidParameter", "parameter", "port"},
		{"{\"method\":\"io.fabd.GetStatus\",\"parameters\":{\"x\":1}}",
		 "org.varlink.service.InvalidParameter", "parameter", "x"},
		{"{\"method\":\"io.fabd.GetStatus\",\"upgrade\":true}",
		 "org.varlink.service.InvalidParameter", "parameter", "upgrade"},
		{"{\"method\":\"io.fabd.GetPortCounters\",\"parameters\":{\"port\":\"x/1\"}}",
		 "io.fabd.NoSuchPort", "port", "x/1"},
		{"{\"method\":\"io.fabd.GetPortCounters\",\"parameters\":"
		 "{\"port\":\"mlx5_4/1\",\"since_sec\":86401}}",
		 "org.varlink.service.InvalidParameter", "parameter", "since_sec"},
		{"{\"method\":\"io.fabd.ListHistory\",\"parameters\":{\"since_sec\":-1}}",
		 "org.varlink.service.InvalidParameter", "parameter", "since_sec"},
		{"{\"method\":\"io.fabd.GetPort\",\"parameters\":{\"port\":\"x/1\"}}",
		 "io.fabd.NoSuchPort", "port", "x/1"},
		{"{\"method\":\"io.fabd.GetConnection\","
		 "\"parameters\":{\"connection\":\"gpu0033/2\"}}",
		 "io.fabd.NoSuchConnection", "connection", "gpu0033/2"},
		{"{\"method\":\"io.fabd.Monitor\"}", "io.fabd.ExpectedMore", NULL,
		 NULL},
		{"{\"method\":\"io.fabd.ResetConnection\","
		 "\"parameters\":{\"connection\":\"gpu0034/2\"}}",
		 "io.fabd.NotAllowed", "method", "io.fabd.ResetConnection"},
		{"{\"method\":\"io.fabd.SetPortHealth\"}", "io.fabd.NotAllowed",
		 "method", "io.fabd.SetPortHealth"},
	};
	int q = dial(w.query), a = dial(w.admin);
	json_t *r;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		assert_error(ask(q, cases[i].request), cases[i].error, cases[i].key,
			     cases[i].value);
	assert_int_equal(count("unknown_method"), 3);
	assert_int_equal(count("not_allowed"), 2);
	assert_int_equal(count("expected_more"), 1);
	assert_int_equal(count("invalid_parameter"), 8);
	r = ask(q, cases[ARRAY_LEN(cases) - 2].request);
	assert_non_null(strstr(json_string_value(json_object_get(
				       json_object_get(r, "parameters"), "why")),
			       w.admin));
	json_decref(r);
	assert_error(ask(a, "{\"method\":\"io.fabd.ResetConnection\","
			    "\"parameters\":{\"connection\":\"x/0\"}}"),
		     "io.fabd.NoSuchConnection", "connection", "x/0");
	assert_error(ask(a, "{\"method\":\"io.fabd.SetPortHealth\","
			    "\"parameters\":{\"port\":\"x/0\",\"health\":\"ok\"}}"),
		     "io.fabd.NoSuchPort", "port", "x/0");
	(void)close(q);
	(void)close(a);
}

static void lists_stream_with_more(void **state)
{
	static const char *const lists[] = {"devices", "ports", "peers", "connections",
					    "changes"};
	static const char *const methods[] = {"ListDevices", "ListPorts", "ListPeers",
					      "ListConnections", "ListHistory"};
	int q = dial(w.query);
	json_t *empty;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
		_cleanup_(freep) char *one =
			xasprintf("{\"method\":\"io.fabd.%s\"}", methods[i]);
		_cleanup_(freep) char *many = xasprintf(
			"{\"method\":\"io.fabd.%s\",\"more\":true}\n", methods[i]);
		json_t *all = ask(q, one), *streamed = json_array(), *r;
		json_t *list =
			json_object_get(json_object_get(all, "parameters"), lists[i]);
		bool more = true;

		say(q, many);
		while (more) {
			r = hear_json(q, '\n');
			assert_reply(r, methods[i]);
			more = json_is_true(json_object_get(r, "continues"));
			(void)json_array_extend(
				streamed,
				json_object_get(json_object_get(r, "parameters"),
						lists[i]));
			json_decref(r);
		}
		assert_true(json_array_size(list) > 1);
		assert_true(json_equal(list, streamed));
		json_decref(streamed);
		json_decref(all);
	}
	/* An empty list is one empty reply. */
	empty = ask(q, "{\"method\":\"io.fabd.ListPorts\",\"more\":true,"
		       "\"parameters\":{\"device\":\"nobody\"}}");
	assert_reply(empty, "ListPorts");
	assert_null(json_object_get(empty, "continues"));
	json_decref(empty);
	(void)close(q);
}

static void long_lists(void **state)
{
	int q = dial(w.query);
	json_t *r;
	size_t n = 0;

	(void)state;
	fake_bulk(w.fake, 1500);
	r = ask(q, "{\"method\":\"io.fabd.ListConnections\"}");
	assert_int_equal(json_array_size(json_object_get(
				 json_object_get(r, "parameters"), "connections")),
			 1508);
	json_decref(r);
	/* Over 8 MiB only a stream will do. */
	fake_bulk(w.fake, 3500);
	assert_error(ask(q, "{\"method\":\"io.fabd.ListConnections\"}"),
		     "io.fabd.ExpectedMore", NULL, NULL);
	say(q, "{\"method\":\"io.fabd.ListConnections\",\"more\":true}\n");
	do {
		r = hear_json(q, '\n');
		n++;
	} while (json_is_true(json_object_get(r, "continues")) &&
		 (json_decref(r), true));
	json_decref(r);
	assert_int_equal(n, 5008);
	assert_int_equal(count("too_large"), 1);
	(void)close(q);
}

/* ---- requests in every shape ---- */

static void pipelined_in_order_and_half_closed(void **state)
{
	int q = dial(w.query);
	json_t *r;

	(void)state;
	say(q,
	    "{\"method\":\"io.fabd.GetPort\",\"parameters\":{\"port\":\"mlx5_1/1\"}}\n"
	    "{\"method\":\"io.fabd.ListPorts\",\"more\":true}\n"
	    "{\"method\":\"io.fabd.GetPort\",\"oneway\":true,"
	    "\"parameters\":{\"port\":\"mlx5_1/1\"}}\n"
	    "{\"method\":\"io.fabd.Nope\",\"oneway\":true}\n"
	    "{\"method\":\"io.fabd.GetStatus\"}\n"
	    "{\"method\":\"io.fabd.Nope\"}");
	assert_int_equal(shutdown(q, SHUT_WR), 0);
	r = hear_json(q, '\n');
	assert_reply(r, "GetPort");
	json_decref(r);
	for (int i = 0; i < 9; i++) {
		r = hear_json(q, '\n');
		assert_reply(r, "ListPorts");
		json_decref(r);
	}
	r = hear_json(q, '\n');
	assert_reply(r, "GetStatus");
	json_decref(r);
	assert_error(hear_json(q, '\n'), "org.varlink.service.MethodNotFound", NULL,
		     NULL);
	assert_true(closed(q));
	await_clients(0);
	(void)close(q);
}

static void replies_end_as_requests_do(void **state)
{
	static const char pretty[] = "{\n \"method\": \"io.fabd.GetStatus\"\n}";
	int q = dial(w.query);

	(void)state;
	for (int i = 0; i < 4; i++) {
		json_t *r;

		if (i % 2)
			say(q, "{\"method\":\"io.fabd.GetStatus\"}\n");
		else
			say_bytes(q, pretty, sizeof(pretty));
		r = hear_json(q, i % 2 ? '\n' : '\0');
		assert_reply(r, "GetStatus");
		json_decref(r);
	}
	(void)close(q);
}

static void byte_by_byte(void **state)
{
	static const char text[] = "{\"method\":\"io.fabd.GetStatus\"}\n";
	int q = dial(w.query);
	json_t *r;

	(void)state;
	for (size_t i = 0; text[i]; i++)
		say_bytes(q, &text[i], 1);
	r = hear_json(q, '\n');
	assert_reply(r, "GetStatus");
	json_decref(r);
	(void)close(q);
}

static void garbage_gets_an_error_and_is_closed(void **state)
{
	static const struct {
		const char *request;
		char end;
	} cases[] = {
		{"GET / HTTP/1.1\r\n\r\n", '\n'},
		{"{}\n", '\n'},
		{"{\"method\":1}\n{\"method\":\"io.fabd.GetStatus\"}\n", '\n'},
		{"[[[[[[[[[[[[[[[[[[[[[[[[[", '\0'},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		int q = dial(w.query);

		say(q, cases[i].request);
		assert_error(hear_json(q, cases[i].end), "io.fabd.BadRequest", NULL,
			     NULL);
		assert_true(closed(q));
		(void)close(q);
	}
	assert_int_equal(count("malformed"), 4);
	await_clients(0);
}

static void oversized_is_closed_after_what_came_before(void **state)
{
	_cleanup_(freep) char *big = xcalloc(1, 2 * VARLINK_REQUEST_MAX);
	int q = dial(w.query);
	json_t *r;

	(void)state;
	memset(big, 'x', 2 * VARLINK_REQUEST_MAX - 1);
	say(q, "{\"method\":\"io.fabd.GetStatus\"}\n");
	say(q, big);
	r = hear_json(q, '\n');
	assert_reply(r, "GetStatus");
	json_decref(r);
	assert_error(hear_json(q, '\0'), "io.fabd.BadRequest", NULL, NULL);
	assert_true(closed(q));
	assert_int_equal(count("oversized"), 1);
	(void)close(q);
}

/* ---- Monitor ---- */

static void monitor_streams(void **state)
{
	int q = dial(w.query);
	json_t *e;

	(void)state;
	say(q, "{\"method\":\"io.fabd.Monitor\",\"more\":true}\n");
	e = event(hear_json(q, '\n'));
	assert_string_equal(json_string_value(json_object_get(e, "kind")), "start");
	assert_string_equal(json_string_value(json_object_get(e, "instance")),
			    "000000000000feed");
	assert_int_equal(json_integer_value(json_object_get(e, "seq")), 3);
	json_decref(e);
	fake_flap(w.fake);
	fake_flap(w.fake);
	assert_event(q, 4, 0);
	assert_event(q, 5, 0);
	(void)close(q);
	await_clients(0);
}

static void monitor_resumes(void **state)
{
	int q[3];

	(void)state;
	for (int i = 0; i < 3; i++)
		q[i] = dial(w.query);
	/* The same instance, no instance, and one from before a restart. */
	say(q[0], "{\"method\":\"io.fabd.Monitor\",\"more\":true,\"parameters\":"
		  "{\"since\":1,\"instance\":\"000000000000feed\"}}\n");
	assert_event(q[0], 1, 0);
	assert_event(q[0], 2, 0);
	assert_event(q[0], 3, 0);
	say(q[1], "{\"method\":\"io.fabd.Monitor\",\"more\":true,\"parameters\":"
		  "{\"since\":2}}\n");
	assert_event(q[1], 2, 0);
	assert_event(q[1], 3, 0);
	say(q[2], "{\"method\":\"io.fabd.Monitor\",\"more\":true,\"parameters\":"
		  "{\"since\":99,\"instance\":\"00000000deadbeef\"}}\n");
	assert_event(q[2], 0, 0);
	assert_event(q[2], 1, 0);
	for (int i = 0; i < 3; i++)
		(void)close(q[i]);
	q[0] = dial(w.query);
	assert_error(ask(q[0], "{\"method\":\"io.fabd.Monitor\",\"more\":true,"
			       "\"parameters\":{\"since\":99,"
			       "\"instance\":\"000000000000feed\"}}"),
		     "org.varlink.service.InvalidParameter", "parameter", "since");
	(void)close(q[0]);
	/* What the ring no longer has is lost, and said so. */
	for (int i = 0; i < MONITOR_EVENTS + 7; i++)
		fake_flap(w.fake);
	q[0] = dial(w.query);
	say(q[0], "{\"method\":\"io.fabd.Monitor\",\"more\":true,\"parameters\":"
		  "{\"since\":3}}\n");
	assert_event(q[0], 10, 7);
	assert_event(q[0], 11, 0);
	(void)close(q[0]);
}

static void monitor_tells_a_slow_client_what_it_lost(void **state)
{
	int q = dial(w.query);
	int64_t seq = 3, lost = 0, last = 3 + 4 * MONITOR_EVENTS;

	(void)state;
	say(q, "{\"method\":\"io.fabd.Monitor\",\"more\":true}\n");
	assert_event(q, 3, 0);
	/* More than socket, output and ring can hold. */
	for (int i = 0; i < 4 * MONITOR_EVENTS; i++) {
		fake_flap(w.fake);
		if (i % 64 == 0)
			turn();
	}
	while (seq < last) {
		json_t *e = event(hear_json(q, '\n'));
		int64_t n = json_integer_value(json_object_get(e, "lost"));

		seq += n + 1;
		lost += n;
		assert_int_equal(json_integer_value(json_object_get(e, "seq")), seq);
		json_decref(e);
	}
	assert_true(lost > 0);
	(void)close(q);
}

/* Whatever the lengths, what is kept is whole and in order, and the rest is lost. */
static void monitor_keeps_what_fits(void **state)
{
	struct monitor *m = monitor_new(1);
	char name[3000], why[3000];
	uint64_t posted = 0, rnd = 1;

	(void)state;
	for (int round = 0; round < 40; round++) {
		uint64_t seq = 0, kept = 0;
		json_t *e;

		for (int i = 0; i < 1000; i++) {
			size_t max = round % 4 == 0 ? 2999 : 40, n, k;

			rnd = mix64(rnd);
			n = rnd % max;
			k = (rnd >> 32) % max;
			posted++;
			memset(name, 'a' + (int)(posted % 26), n);
			memset(why, 'A' + (int)(posted % 26), k);
			name[n] = why[k] = '\0';
			monitor_post(m, (struct mono){(int64_t)posted}, "port", name,
				     "facts", NULL, "x", why);
		}
		while ((e = monitor_next(m, &seq, 0, (struct mono){1}))) {
			const char *t = json_string_value(json_object_get(e, "name"));
			const char *u = json_string_value(json_object_get(e, "why"));

			kept++;
			assert_true(strlen(t) <= 1024 && strlen(u) <= 1024);
			for (; *t; t++)
				assert_int_equal(*t, 'a' + (int)(seq % 26));
			for (; *u; u++)
				assert_int_equal(*u, 'A' + (int)(seq % 26));
			json_decref(e);
		}
		assert_int_equal(seq, posted);
		assert_int_equal(kept + monitor_lost(m, 0), posted);
		assert_true(kept >= 200 && kept <= MONITOR_EVENTS);
	}
	monitor_free(m);
}

static void half_closed_monitor(void **state)
{
	int q = dial(w.query);

	(void)state;
	varlink_server_set_patience(w.server, 20 * NSEC_PER_MSEC);
	say(q, "{\"method\":\"io.fabd.Monitor\",\"more\":true}\n");
	assert_int_equal(shutdown(q, SHUT_WR), 0);
	assert_event(q, 3, 0);
	fake_flap(w.fake);
	assert_event(q, 4, 0);
	assert_int_equal(varlink_server_clients(w.server), 1);
	/* Nothing happens any more, and yet it is noticed that nobody is there. */
	(void)close(q);
	await_clients(0);
}

static void flood_behind_a_monitor(void **state)
{
	_cleanup_(freep) char *big = xcalloc(1, 2 * VARLINK_REQUEST_MAX);
	int q = dial(w.query);
	struct mono until = mono_add(clock_now(), DEADLINE_NS);

	(void)state;
	memset(big, '\n', 2 * VARLINK_REQUEST_MAX - 1);
	say(q, "{\"method\":\"io.fabd.Monitor\",\"more\":true}\n");
	assert_event(q, 3, 0);
	say(q, big);
	while (!count("flood")) {
		assert_true(mono_sub(clock_now(), until) < 0);
		turn();
	}
	await_clients(0);
	(void)close(q);
}

/* ---- clients that do harm ---- */

static void slow_reader_is_closed_idle_one_is_not(void **state)
{
	int slow = dial(w.query), idle = dial(w.query), good = dial(w.query);
	json_t *r;

	(void)state;
	fake_bulk(w.fake, 2000);
	varlink_server_set_patience(w.server, 50 * NSEC_PER_MSEC);
	say(slow, "{\"method\":\"io.fabd.ListConnections\",\"more\":true}\n");
	/* Others are served all the while. */
	while (!count("slow_reader")) {
		r = ask(good, "{\"method\":\"io.fabd.GetStatus\"}");
		assert_reply(r, "GetStatus");
		json_decref(r);
	}
	await_clients(2);
	r = ask(idle, "{\"method\":\"io.fabd.GetStatus\"}");
	assert_reply(r, "GetStatus");
	json_decref(r);
	(void)close(slow);
	(void)close(idle);
	(void)close(good);
}

static void a_thousand_connects(void **state)
{
	int fds[80], n = 0;

	(void)state;
	for (int i = 0; i < 1000; i++) {
		int q = dial(w.query);

		say(q, i % 3 ? "{\"method\":" : "{\"method\":\"io.fabd.GetStatus\"}\n");
		(void)close(q);
	}
	await_clients(0);
	for (; n < 80; n++) {
		fds[n] = dial(w.query);
		turn();
	}
	await_clients(64);
	/* The ones above the limit are told why. */
	for (int i = 64; i < 80; i++) {
		assert_error(hear_json(fds[i], '\0'), "io.fabd.Busy", "why",
			     "too many clients");
		assert_true(closed(fds[i]));
	}
	assert_int_equal(count("too_many_clients"), 16);
	for (int i = 0; i < 80; i++)
		(void)close(fds[i]);
	await_clients(0);
}

static void half_of_the_clients_for_one_user(void **state)
{
	int fds[33], root;
	json_t *r;

	(void)state;
	if (getuid() != 0)
		skip();
	/* The kernel notes who connects at that moment. */
	assert_int_equal(seteuid(65534), 0);
	for (int i = 0; i < 33; i++)
		fds[i] = dial(w.query);
	assert_int_equal(seteuid(0), 0);
	await_clients(32);
	assert_error(hear_json(fds[32], '\0'), "io.fabd.Busy", "why",
		     "too many clients of this user");
	assert_int_equal(count("too_many_of_user"), 1);
	root = dial(w.admin);
	r = ask(root, "{\"method\":\"io.fabd.GetStatus\"}");
	assert_reply(r, "GetStatus");
	json_decref(r);
	for (int i = 0; i < 33; i++)
		(void)close(fds[i]);
	(void)close(root);
}

static void no_descriptors_left(void **state)
{
	struct rlimit old, low;
	const char *preload = getenv("LD_PRELOAD");
	int q = dial_only(w.query), lowest;
	struct loop_stats stats;
	uint64_t turns;
	json_t *r;

	(void)state;
	/* valgrind keeps the limit itself, and closes what the kernel had accepted. */
	if (preload && strstr(preload, "vgpreload"))
		skip();
	varlink_server_set_patience(w.server, 40 * NSEC_PER_MSEC);
	lowest = dup(q);
	(void)close(lowest);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
	low = old;
	low.rlim_cur = (rlim_t)lowest;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
	while (!count("no_descriptors"))
		turn();
	assert_int_equal(varlink_server_clients(w.server), 0);
	/* It does not ask again at once: turns are those of the test's own timer. */
	loop_stats(w.loop, &stats);
	turns = stats.turns;
	loop_timer_at(w.stop, mono_add(clock_now(), 100 * NSEC_PER_MSEC));
	(void)loop_run(w.loop);
	loop_stats(w.loop, &stats);
	assert_true(stats.turns - turns < 30);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
	await_clients(1);
	r = ask(q, "{\"method\":\"io.fabd.GetStatus\"}");
	assert_reply(r, "GetStatus");
	json_decref(r);
	(void)close(q);
}

static void many_at_once_share_the_turns(void **state)
{
	int fds[60];
	struct loop_stats stats;

	(void)state;
	/* The test is the slow one: it listens to one after the other. */
	varlink_server_set_patience(w.server, 10000 * NSEC_PER_SEC);
	fake_bulk(w.fake, 500);
	for (int i = 0; i < 60; i++) {
		fds[i] = dial(w.query);
		say(fds[i], "{\"method\":\"io.fabd.ListConnections\",\"more\":true}\n");
	}
	for (int i = 0; i < 60; i++) {
		bool more = true;
		int n = 0;

		for (; more; n++) {
			json_t *r = hear_json(fds[i], '\n');

			more = json_is_true(json_object_get(r, "continues"));
			json_decref(r);
		}
		assert_int_equal(n, 508);
	}
	loop_stats(w.loop, &stats);
	print_message("worst turn: %.2f ms of CPU\n",
		      (double)stats.turn_cpu_worst_ns / 1e6);
	for (int i = 0; i < 60; i++)
		(void)close(fds[i]);
}

/* Those whose long lists fill every turn do not keep a small question waiting. */
static void a_small_question_among_long_lists(void **state)
{
	int fds[12], q, turns = 0;
	char c;

	(void)state;
	varlink_server_set_patience(w.server, 10000 * NSEC_PER_SEC);
	fake_bulk(w.fake, 1000);
	for (int i = 0; i < 12; i++) {
		fds[i] = dial(w.query);
		say(fds[i], "{\"method\":\"io.fabd.ListConnections\"}\n");
	}
	q = dial(w.query);
	say(q, "{\"method\":\"io.fabd.GetStatus\"}\n");
	for (; recv(q, &c, 1, MSG_PEEK) < 0; turns++)
		turn();
	assert_true(turns < 10);
	for (int i = 0; i < 12; i++)
		assert_int_equal(recv(fds[i], &c, 1, MSG_PEEK), -1);
	for (int i = 0; i < 12; i++) {
		json_decref(hear_json(fds[i], '\n'));
		(void)close(fds[i]);
	}
	(void)close(q);
}

/* ---- paths ---- */

static void paths(void **state)
{
	struct varlink_listen l = {.path = w.query, .fd = -1, .mode = 0666};
	struct varlink_server *other =
		varlink_server_new(w.loop, fake_api(w.fake), w.monitor, 4);
	char path[128];
	struct stat st;
	int fd;
	struct sockaddr_un sa = {.sun_family = AF_UNIX};

	(void)state;
	assert_int_equal(stat(w.query, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0666);
	assert_int_equal(stat(w.admin, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0660);
	/* A living daemon keeps its place. */
	assert_int_equal(varlink_server_listen(other, &l), -EADDRINUSE);
	/* A file is no socket. */
	(void)snprintf(path, sizeof(path), "%s/file", w.dir);
	fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	(void)close(fd);
	l.path = path;
	assert_int_equal(varlink_server_listen(other, &l), -EEXIST);
	assert_int_equal(unlink(path), 0);
	/* What a dead one left is replaced. */
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	(void)str_copy(sa.sun_path, sizeof(sa.sun_path), path);
	assert_int_equal(bind(fd, (struct sockaddr *)&sa, sizeof(sa)), 0);
	(void)close(fd);
	assert_int_equal(varlink_server_listen(other, &l), 0);
	fd = dial(path);
	(void)close(fd);
	/* A socket of systemd is taken; what does not listen is not. */
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	l = (struct varlink_listen){.fd = fd};
	assert_int_equal(varlink_server_listen(other, &l), -EINVAL);
	varlink_server_free(other);
	assert_int_equal(stat(path, &st), -1);
}

static void taken_descriptor(void **state)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), q;
	struct varlink_listen l = {.fd = fd, .admin = true};
	json_t *r;

	(void)state;
	(void)snprintf(sa.sun_path, sizeof(sa.sun_path), "%s/s", w.dir);
	assert_int_equal(bind(fd, (struct sockaddr *)&sa, sizeof(sa)), 0);
	assert_int_equal(listen(fd, 5), 0);
	assert_int_equal(varlink_server_listen(w.server, &l), 0);
	q = dial(sa.sun_path);
	r = ask(q, "{\"method\":\"io.fabd.ResetConnection\","
		   "\"parameters\":{\"connection\":\"gpu0034/2\"}}");
	assert_reply(r, "ResetConnection");
	json_decref(r);
	(void)close(q);
	/* systemd's socket stays when the service ends. */
	assert_int_equal(unlink(sa.sun_path), 0);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(every_method_answers),
		T(introspection),
		T(errors_have_their_names),
		T(lists_stream_with_more),
		T(long_lists),
		T(pipelined_in_order_and_half_closed),
		T(replies_end_as_requests_do),
		T(byte_by_byte),
		T(garbage_gets_an_error_and_is_closed),
		T(oversized_is_closed_after_what_came_before),
		T(monitor_streams),
		T(monitor_resumes),
		T(monitor_tells_a_slow_client_what_it_lost),
		T(monitor_keeps_what_fits),
		T(half_closed_monitor),
		T(flood_behind_a_monitor),
		T(slow_reader_is_closed_idle_one_is_not),
		T(a_thousand_connects),
		T(half_of_the_clients_for_one_user),
		T(no_descriptors_left),
		T(many_at_once_share_the_turns),
		T(a_small_question_among_long_lists),
		T(paths),
		T(taken_descriptor),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
