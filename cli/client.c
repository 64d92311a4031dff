/* SPDX-License-Identifier: BSD-2-Clause */
#include "client.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "clean.h"
#include "progress.h"
#include "units.h"
#include "varlink.h"

/* A reply longer than this is not fabd's; a list streams an object a reply. */
#define REPLY_MAX (64 * 1024 * 1024)

struct client {
	int fd;
	const char *path;
	bool admin, safe;
	int timeout_ms;
	struct varlink_frame *frame; /* owned */
	const char *doing;	     /* for the progress line; borrowed */
	size_t got;		     /* objects so far */
	bool inside; /* the last bytes read were not the end of a reply */
};

static int64_t now_ms(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

static void tell_connect(const struct client *c, int error)
{
	switch (error) {
	case ENOENT:
	case ENOTDIR:
		tell("fabd is not running (no %s): systemctl start fabd", c->path);
		break;
	case ECONNREFUSED:
		tell("fabd is not running (nobody listens on %s): systemctl start fabd",
		     c->path);
		break;
	case EACCES:
	case EPERM:
		if (c->admin)
			tell("no permission for %s: be root or a member of group fabd-admin",
			     c->path);
		else
			tell("no permission for %s: it should have mode 0666", c->path);
		break;
	case EAGAIN:
	case ETIMEDOUT:
		tell("fabd takes no connection on %s: it is overloaded or hangs, "
		     "see systemctl status fabd",
		     c->path);
		break;
	default:
		tell("cannot connect to %s: %s", c->path, strerror(error));
	}
}

struct client *client_open(const char *path, bool admin, int timeout_ms, bool safe)
{
	struct client *c = xcalloc(1, sizeof(*c));
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	struct timeval tv = {timeout_ms / 1000, timeout_ms % 1000 * 1000};

	*c = (struct client){.fd = -1,
			     .path = path,
			     .admin = admin,
			     .safe = safe,
			     .timeout_ms = timeout_ms};
	if (!str_copy(sa.sun_path, sizeof(sa.sun_path), path)) {
		tell("the socket's path is longer than %zu characters: %s",
		     sizeof(sa.sun_path) - 1, path);
		return client_free(c);
	}
	c->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	/* The send time limit also ends a connect that waits for a full backlog. */
	if (c->fd < 0 ||
	    setsockopt(c->fd, SOL_SOCKET, SO_SNDTIMEO, &tv, sizeof(tv)) < 0) {
		tell("cannot make a socket: %s", strerror(errno));
		return client_free(c);
	}
	if (connect(c->fd, (struct sockaddr *)&sa, sizeof(sa)) < 0) {
		tell_connect(c, errno);
		return client_free(c);
	}
	c->frame = varlink_frame_new(REPLY_MAX);
	return c;
}

struct client *client_free(struct client *c)
{
	if (!c)
		return NULL;
	if (c->fd >= 0)
		(void)close(c->fd);
	if (c->frame)
		(void)varlink_frame_free(c->frame);
	free(c);
	return NULL;
}

static int client_send(struct client *c, const char *method, json_t *parameters,
		       bool more)
{
	_cleanup_(freep) char *text = varlink_call_text(method, parameters, more);
	size_t len = strlen(text) + 1, done = 0; /* with its NUL */

	while (done < len) {
		ssize_t n = send(c->fd, text + done, len - done, MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN) {
			tell("fabd does not read its socket %s: it hangs, "
			     "see systemctl status fabd",
			     c->path);
			return -1;
		}
		if (n < 0) {
			tell("fabd closed the connection: try again, or see "
			     "journalctl -u fabd");
			return -1;
		}
		done += (size_t)n;
	}
	return 0;
}

/* Read what there is. 1 got some, 0 end of file, -1 failed and told. */
static int client_read(struct client *c)
{
	char buf[16384];
	ssize_t n = recv(c->fd, buf, sizeof(buf), 0);
	int r;

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return 1;
	if (n == 0 || (n < 0 && errno == ECONNRESET))
		return 0;
	if (n < 0) {
		tell("cannot read from %s: %s", c->path, strerror(errno));
		return -1;
	}
	c->inside = buf[n - 1] != '\0';
	r = varlink_frame_put(c->frame, buf, (size_t)n);
	if (r < 0) {
		tell("what answers on %s is not fabd: its reply is too %s", c->path,
		     r == -EMSGSIZE ? "long" : "deep");
		return -1;
	}
	return 1;
}

static void show_progress(const struct client *c)
{
	if (c->got)
		progress_line("%s: %zu so far", c->doing, c->got);
	else
		progress_line("%s: waiting for the answer", c->doing);
}

/* Wait for bytes until @deadline (-1: for ever). 1 ready, 0 too late, -1 stdout has no
 * reader any more (only watched in streams). */
static int client_wait(struct client *c, int64_t deadline, bool watch_stdout)
{
	for (;;) {
		struct pollfd p[2] = {
			{.fd = c->fd, .events = POLLIN},
			{.fd = watch_stdout ? STDOUT_FILENO : -1},
		};
		int64_t left = deadline < 0 ? -1 : MAX(deadline - now_ms(), 0);
		int tick = c->doing ? progress_wait_ms() : -1, n;
		bool ticks = tick >= 0 && (left < 0 || tick < left);

		n = poll(p, 2, ticks ? tick : (int)left);
		if (n < 0 && errno != EINTR)
			return 0;
		if (n == 0 && ticks) {
			show_progress(c);
			continue;
		}
		if (n > 0 && p[1].revents & POLLERR)
			return -1;
		if (n > 0 && p[0].revents)
			return 1;
		if (n == 0)
			return 0;
	}
}

/* One whole reply, or NULL: told, or the end of a stream (*ret_quiet). */
static json_t *client_reply(struct client *c, bool in_time, bool stream,
			    bool *ret_quiet)
{
	int64_t deadline = in_time ? now_ms() + c->timeout_ms : -1;
	char *text, end;
	json_error_t error;
	json_t *reply;
	size_t len;
	int r;

	while (!varlink_frame_next(c->frame, &text, &len, &end)) {
		r = client_wait(c, deadline, stream);
		if (r < 0) {
			*ret_quiet = true;
			return NULL;
		}
		if (r == 0) {
			tell("fabd did not answer in %s: it hangs, see systemctl status fabd",
			     unit_interval((int64_t)c->timeout_ms * 1000000));
			return NULL;
		}
		r = client_read(c);
		if (r == 0)
			tell("fabd closed the connection%s: see journalctl -u fabd",
			     c->inside ? " in the middle of a reply"
			     : !in_time
				     ? " (it was stopped, or this reader was too slow)"
				     : " without an answer");
		if (r <= 0)
			return NULL;
	}
	reply = json_loadb(text, len, 0, &error);
	if (!json_is_object(reply)) {
		tell("what answers on %s is not fabd: its reply is not a JSON object (%s)",
		     c->path, reply ? "other type" : error.text);
		json_decref(reply);
		return NULL;
	}
	if (c->safe)
		json_safe(reply);
	return reply;
}

static const char *parameter(json_t *reply, const char *name)
{
	json_t *v = json_object_get(json_object_get(reply, "parameters"), name);

	return json_is_string(v) ? json_string_value(v) : "?";
}

/* clang-format off */
/* @error with what its row's parameters say; "%s" in the text for each. */
static const struct {
	const char *error, *parameters[2], *text;
} error_texts[] = {
	{"io.fabd.NoSuchPort", {"port"}, "no port %s: fabctl port lists them"},
	{"io.fabd.NoSuchPeer", {"peer"}, "no peer %s: fabctl peer lists them"},
	{"io.fabd.NoSuchConnection", {"connection"},
	 "no connection %s, or more than one is meant: fabctl connection lists them"},
	{"io.fabd.NotAllowed", {"why"}, "not allowed: %s"},
	{"io.fabd.Busy", {"why"}, "fabd is busy, try again: %s"},
	{"io.fabd.BadRequest", {"why"}, "fabd could not read the request: %s"},
	{"io.fabd.NoSuchNode", {"node", "why"}, "%s: %s: fabctl fabric nodes lists them"},
	{"io.fabd.NoRoute", {"why"}, "no route: %s"},
	{"io.fabd.Unavailable", {"what", "why"}, "%s cannot be had: %s"},
	{"org.varlink.service.MethodNotFound", {"method"},
	 "this fabd is older than fabctl " FABD_VERSION " (it has no %s): upgrade fabd and "
	 "restart it"},
	{"org.varlink.service.InterfaceNotFound", {"interface"},
	 "what answers there is not this fabctl's fabd (it has no interface %s)"},
	{"org.varlink.service.MethodNotImplemented", {"method"},
	 "this fabd was built without %s"},
	{"org.varlink.service.InvalidParameter", {"parameter"},
	 "fabd does not take this %s: wrong value, or fabd is older than fabctl "
	 FABD_VERSION},
};
/* clang-format on */

/* @text with each "%s" replaced by the next of the reply's @parameters. */
static void tell_filled(json_t *reply, const char *text,
			const char *const parameters[2])
{
	char line[1024] = "";
	const char *at;

	for (int i = 0; i < 2 && (at = strstr(text, "%s")); i++) {
		str_append(line, sizeof(line), "%.*s%s", (int)(at - text), text,
			   parameter(reply, parameters[i]));
		text = at + 2;
	}
	tell("%s%s", line, text);
}

/* true if @reply is an error, which is told. */
static bool reply_is_error(json_t *reply)
{
	const char *error = json_string_value(json_object_get(reply, "error"));

	if (!json_object_get(reply, "error"))
		return false;
	for (size_t i = 0; error && i < ARRAY_LEN(error_texts); i++) {
		if (!str_eq(error, error_texts[i].error))
			continue;
		tell_filled(reply, error_texts[i].text, error_texts[i].parameters);
		return true;
	}
	if (error)
		tell("fabd answered with the error %s", error);
	else
		tell("fabd answered with an error that has no name");
	return true;
}

/* The reply's parameters as a new reference, an empty object if it has none. */
static json_t *reply_parameters(json_t *reply)
{
	json_t *p = json_object_get(reply, "parameters");

	return json_is_object(p) ? json_incref(p) : json_object();
}

/* @doing: what comes; borrowed until end_progress(). */
static void begin_progress(struct client *c, const char *doing)
{
	c->doing = doing;
	c->got = 0;
	progress_begin();
}

static void end_progress(struct client *c)
{
	c->doing = NULL;
	progress_clear();
}

json_t *client_call(struct client *c, const char *method, json_t *parameters)
{
	json_t *reply, *result = NULL;
	bool quiet = false;

	if (client_send(c, method, parameters, false) < 0)
		return NULL;
	begin_progress(c, "fabd");
	reply = client_reply(c, true, false, &quiet);
	end_progress(c);
	if (reply && !reply_is_error(reply))
		result = reply_parameters(reply);
	json_decref(reply);
	return result;
}

/* Append the objects of the array @key of @parameters. false: there is none, or it
 * holds something else. */
static bool take_objects(json_t *all, const json_t *parameters, const char *key)
{
	json_t *array = json_object_get(parameters, key), *o;
	size_t i;

	if (!json_is_array(array))
		return false;
	json_array_foreach (array, i, o)
		if (!json_is_object(o))
			return false;
	return json_array_extend(all, array) == 0;
}

/* All replies of a list into @all. false: failed, told. */
static bool take_list(struct client *c, const char *method, const char *key,
		      json_t *all)
{
	bool goes_on = true, quiet = false, ok;
	json_t *reply;

	while (goes_on) {
		reply = client_reply(c, true, false, &quiet);
		ok = reply && !reply_is_error(reply);
		if (ok &&
		    !take_objects(all, json_object_get(reply, "parameters"), key)) {
			tell("the answer to %s has no list of %s: is this fabd?",
			     method, key);
			ok = false;
		}
		goes_on = json_is_true(json_object_get(reply, "continues"));
		json_decref(reply);
		if (!ok)
			return false;
		c->got = json_array_size(all);
		if (goes_on)
			show_progress(c);
	}
	return true;
}

json_t *client_list(struct client *c, const char *method, json_t *parameters,
		    const char *key)
{
	json_t *all = json_array();
	bool ok;

	if (client_send(c, method, parameters, true) < 0) {
		json_decref(all);
		return NULL;
	}
	begin_progress(c, key);
	ok = take_list(c, method, key, all);
	end_progress(c);
	if (ok)
		return all;
	json_decref(all);
	return NULL;
}

int client_stream(struct client *c, const char *method, json_t *parameters,
		  client_stream_fn *fn, void *user)
{
	bool goes_on = true, first = true, quiet = false;

	if (client_send(c, method, parameters, true) < 0)
		return -1;
	while (goes_on) {
		json_t *reply = client_reply(c, first, true, &quiet), *p;

		if (!reply)
			return quiet ? 0 : -1;
		if (reply_is_error(reply)) {
			json_decref(reply);
			return -1;
		}
		p = reply_parameters(reply);
		goes_on = fn(user, p) &&
			  json_is_true(json_object_get(reply, "continues"));
		first = false;
		json_decref(p);
		json_decref(reply);
	}
	return 0;
}
