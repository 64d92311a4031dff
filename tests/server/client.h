/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * client.h - the world of a test of the server (loop, fake host, server), and the client's
 * side: dial, say, hear, and what replies must be. Each test includes it once.
 */
#pragma once

#define DEADLINE_NS (60 * NSEC_PER_SEC)
#define HEARD_MAX   (16 * 1024 * 1024)
#define PEEK	    4096

static struct world {
	char dir[64], query[96], admin[96];
	struct loop *loop;
	struct loop_source *stop;
	struct monitor *monitor;
	struct fake *fake;
	struct varlink_server *server;
	json_t *idl;
} w;

/* ---- the loop, and a client on it ---- */

static inline void on_stop(void *user, struct mono now)
{
	(void)user;
	(void)now;
	loop_stop(w.loop);
}

/* One turn. */
static inline void turn(void)
{
	loop_timer_at(w.stop, clock_now());
	(void)loop_run(w.loop);
}

static inline int dial_only(const char *path)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	(void)str_copy(sa.sun_path, sizeof(sa.sun_path), path);
	if (connect(fd, (struct sockaddr *)&sa, sizeof(sa)) < 0) {
		(void)close(fd);
		return -errno;
	}
	return fd;
}

static inline int dial(const char *path)
{
	int fd = dial_only(path);

	assert_true(fd >= 0);
	return fd;
}

static inline void say_bytes(int fd, const char *text, size_t len)
{
	struct mono until = mono_add(clock_now(), DEADLINE_NS);

	while (len > 0) {
		ssize_t n = send(fd, text, len, MSG_NOSIGNAL);

		if (n > 0) {
			text += n;
			len -= (size_t)n;
		} else if (errno != EAGAIN) {
			return; /* the server has closed: what it said is still there */
		}
		turn();
		assert_true(mono_sub(clock_now(), until) < 0);
	}
}

static inline void say(int fd, const char *text)
{
	say_bytes(fd, text, strlen(text));
}

/* What is heard until @end, or until the end of the stream (then *ret_eof). */
static inline char *hear(int fd, char end, bool *ret_eof)
{
	struct mono until = mono_add(clock_now(), DEADLINE_NS);
	char *buf = NULL;
	size_t len = 0;

	*ret_eof = false;
	while (len < HEARD_MAX) {
		ssize_t n;
		char *stop;

		buf = xrealloc(buf, len + PEEK + 1, 1);
		buf[len] = '\0';
		n = recv(fd, buf + len, PEEK, MSG_DONTWAIT | MSG_PEEK);
		stop = n > 0 ? memchr(buf + len, end, (size_t)n) : NULL;
		if (n > 0) {
			/* Take no more than up to the end. */
			size_t taken =
				stop ? (size_t)(stop + 1 - (buf + len)) : (size_t)n;

			(void)!recv(fd, buf + len, taken, MSG_DONTWAIT);
			len += taken;
			buf[stop ? len - 1 : len] = '\0';
			if (!stop)
				continue;
			return buf;
		}
		if (n == 0 || errno != EAGAIN) {
			*ret_eof = true;
			return buf;
		}
		if (mono_sub(clock_now(), until) > 0)
			fail_msg("nothing heard; so far: %.200s", buf);
		turn();
	}
	fail_msg("too much heard");
	return buf;
}

static inline json_t *hear_json(int fd, char end)
{
	bool eof;
	char *text = hear(fd, end, &eof);
	json_t *o;

	if (eof)
		fail_msg("closed; before: %.200s", text);
	o = json_loads(text, 0, NULL);
	if (!o)
		fail_msg("no JSON: %.200s", text);
	free(text);
	return o;
}

static inline bool closed(int fd)
{
	bool eof;
	char *text = hear(fd, '\0', &eof);
	bool empty = eof && !text[0];

	free(text);
	return empty;
}

static inline json_t *ask(int fd, const char *request)
{
	say(fd, request);
	say(fd, "\n");
	return hear_json(fd, '\n');
}

/* ---- what is expected ---- */

static inline void assert_error(json_t *reply, const char *error, const char *key,
			 const char *value)
{
	json_t *parameters = json_object_get(reply, "parameters");
	const char *got = json_string_value(json_object_get(reply, "error"));

	if (!str_eq(got, error))
		fail_msg("%s instead of %s", got ? got : "no error", error);
	if (key)
		assert_string_equal(json_string_value(json_object_get(parameters, key)),
				    value);
	json_decref(reply);
}

/* @reply fits what the IDL says of @method. */
static inline void assert_reply(json_t *reply, const char *method)
{
	json_t *out = json_object_get(idl_method(w.idl, method), "out");
	char why[256];

	if (json_object_get(reply, "error"))
		fail_msg("%s: %s", method,
			 json_string_value(json_object_get(reply, "error")));
	if (idl_check(w.idl, out, json_object_get(reply, "parameters"), why,
		      sizeof(why)))
		fail_msg("%s: %s", method, why);
}

static inline json_t *event(json_t *reply)
{
	json_t *e = json_object_get(json_object_get(reply, "parameters"), "event");

	assert_reply(reply, "Monitor");
	assert_true(json_is_true(json_object_get(reply, "continues")));
	json_incref(e);
	json_decref(reply);
	return e;
}

/* The next event is @seq, with so many lost before it. */
static inline void assert_event(int fd, int64_t seq, int64_t lost)
{
	json_t *e = event(hear_json(fd, '\n'));

	assert_int_equal(json_integer_value(json_object_get(e, "seq")), seq);
	assert_int_equal(json_integer_value(json_object_get(e, "lost")), lost);
	json_decref(e);
}

static inline int64_t count(const char *reason)
{
	json_t *counts = varlink_server_counts(w.server);
	int64_t n = json_integer_value(json_object_get(counts, reason));

	assert_non_null(json_object_get(counts, reason));
	json_decref(counts);
	return n;
}

/* Turn until the server has so many clients. */
static inline void await_clients(int n)
{
	struct mono until = mono_add(clock_now(), DEADLINE_NS);

	while (varlink_server_clients(w.server) != n) {
		assert_true(mono_sub(clock_now(), until) < 0);
		turn();
	}
}

/* ---- life ---- */

static int setup(void **state)
{
	const struct varlink_listen query = {.path = w.query, .fd = -1, .mode = 0666};
	const struct varlink_listen admin = {
		.path = w.admin, .fd = -1, .admin = true, .mode = 0660};

	(void)state;
	(void)str_copy(w.dir, sizeof(w.dir), "/tmp/fabd-server-XXXXXX");
	if (!mkdtemp(w.dir) || chmod(w.dir, 0755) < 0)
		return -1;
	(void)snprintf(w.query, sizeof(w.query), "%s/q", w.dir);
	(void)snprintf(w.admin, sizeof(w.admin), "%s/a", w.dir);
	w.loop = loop_new();
	w.stop = loop_timer(w.loop, on_stop, NULL);
	w.monitor = monitor_new(UINT64_C(0xfeed));
	w.fake = fake_new(w.monitor);
	w.server = varlink_server_new(w.loop, fake_api(w.fake), w.monitor, 64);
	w.idl = idl_parse(varlink_idl_fabd);
	if (varlink_server_listen(w.server, &query) < 0 ||
	    varlink_server_listen(w.server, &admin) < 0)
		return -1;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	varlink_server_free(w.server);
	turn();
	loop_source_free(w.stop);
	fake_free(w.fake);
	monitor_free(w.monitor);
	loop_free(w.loop);
	json_decref(w.idl);
	/* Fails if a socket was left in it. */
	return rmdir(w.dir);
}
