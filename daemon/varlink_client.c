/* SPDX-License-Identifier: BSD-2-Clause */
#include "varlink_client.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define READ_CHUNK   (16 * 1024)
#define REQUEST_COST 2048 /* what a request costs besides its length */
#define NS_A_BYTE    64	  /* work that takes long and says little counts as well */

/* ---- buffers ---- */

void buffer_put(struct buffer *b, const void *data, size_t len)
{
	if (b->off > 0) {
		memmove(b->data, b->data + b->off, b->len - b->off);
		b->len -= b->off;
		b->off = 0;
	}
	if (b->size - b->len < len) {
		b->size = MAX(b->len + len, 2 * b->size);
		b->data = xrealloc(b->data, b->size, 1);
	}
	memcpy(b->data + b->len, data, len);
	b->len += len;
}

void buffer_done(struct buffer *b)
{
	free(b->data);
	*b = (struct buffer){0};
}

static size_t waiting(const struct client *c)
{
	return c->out.len - c->out.off;
}

/* ---- output ---- */

static void queue(struct client *c, const char *text, size_t len)
{
	buffer_put(&c->out, text, len);
	server_spend(c->server, len);
}

static void queue_text(struct client *c, char *text)
{
	if (!c->work.oneway) {
		queue(c, text, strlen(text));
		queue(c, &c->work.end, 1);
	}
	free(text);
}

/* 0, or -errno: the client is gone. */
static int flush(struct client *c)
{
	while (waiting(c) > 0) {
		ssize_t n = send(c->fd, c->out.data + c->out.off, waiting(c),
				 MSG_DONTWAIT | MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno == EAGAIN ? 0 : -errno;
		c->out.off += (size_t)n;
		c->progress = loop_now(c->server->loop);
	}
	/* Nobody's memory is held by who only listens. */
	buffer_done(&c->out);
	c->server->list_bytes -= c->list_bytes;
	c->list_bytes = 0;
	return 0;
}

/* ---- work: one step of the request that is being answered ---- */

static void work_done(struct client *c)
{
	struct work *w = &c->work;
	const struct api *api = c->server->api;

	if (w->ticket) {
		c->server->n_waiting--;
		if (w->active && w->answer.kind == ANSWER_LATER)
			api->dropped(api->user, w->ticket);
	}
	c->server->list_bytes -= w->counted;
	buffer_done(&w->text);
	json_decref(w->held);
	answer_done(&w->answer);
	*w = (struct work){0};
	c->behind = 0;
}

static void finish_error(struct client *c, enum reject why, const char *error,
			 json_t *parameters)
{
	c->server->counts[why]++;
	queue_text(c, varlink_error_text(error, parameters));
	work_done(c);
}

static json_t *list_next(struct client *c)
{
	const struct api *api = c->server->api;
	struct answer *a = &c->work.answer;

	return api->next(api->user, a->list, a->arg, &a->cursor);
}

/* With more: an object a reply. The last one must say that it is, so one is held. */
static void list_step_more(struct client *c)
{
	struct work *w = &c->work;
	const char *key = method_list_key(w->answer.list);
	json_t *next = list_next(c);

	if (w->held)
		queue_text(c, varlink_reply_text(json_pack("{s:[o]}", key, w->held),
						 next));
	else if (!next)
		queue_text(c, varlink_reply_text(json_pack("{s:[]}", key), false));
	w->held = next;
	if (!next)
		work_done(c);
}

/* The reply is whole. Its bytes count as a list's until they have left. */
static void list_send(struct client *c)
{
	struct work *w = &c->work;

	c->list_bytes += w->text.len;
	c->server->list_bytes += w->text.len - w->counted;
	w->counted = 0;
	if (waiting(c)) {
		buffer_put(&c->out, w->text.data, w->text.len);
	} else {
		buffer_done(&c->out);
		c->out = w->text;
		w->text = (struct buffer){0};
	}
	work_done(c);
}

/* All in one reply: its text grows object by object, over as many turns as it takes. */
static void list_step_one(struct client *c)
{
	struct work *w = &c->work;
	struct varlink_server *s = c->server;
	json_t *next = list_next(c);
	const char *key = method_list_key(w->answer.list);
	char *text;

	if (!w->text.len) {
		buffer_put(&w->text, "{\"parameters\":{\"", 16);
		buffer_put(&w->text, key, strlen(key));
		buffer_put(&w->text, "\":[", 3);
	} else if (next) {
		buffer_put(&w->text, ",", 1);
	}
	if (!next) {
		buffer_put(&w->text, "]}}", 3);
		buffer_put(&w->text, &w->end, 1);
		list_send(c);
		return;
	}
	text = json_dumps(next, JSON_COMPACT | JSON_REAL_PRECISION(15));
	json_decref(next);
	if (!text)
		abort();
	buffer_put(&w->text, text, strlen(text));
	free(text);
	server_spend(s, w->text.len - w->counted);
	s->list_bytes += w->text.len - w->counted;
	w->counted = w->text.len;
	if (w->text.len > LIST_REPLY_MAX)
		finish_error(c, REJECT_TOO_LARGE, "io.fabd.ExpectedMore", NULL);
	else if (s->list_bytes > SERVER_LISTS_MAX)
		finish_error(
			c, REJECT_TOO_LARGE, "io.fabd.Busy",
			json_pack("{s:s}", "why", "too many long lists at a time"));
}

/* false: nothing new to tell. */
static bool monitor_step(struct client *c)
{
	struct answer *a = &c->work.answer;
	json_t *event;

	if (a->parameters) {
		queue_text(c, varlink_reply_text(a->parameters, true));
		a->parameters = NULL;
		return true;
	}
	event = monitor_next(c->server->monitor, &a->cursor, clock_wall_ns(),
			     loop_now(c->server->loop));
	if (event)
		queue_text(c, varlink_reply_text(json_pack("{s:o}", "event", event),
						 true));
	return event;
}

/* false: nobody has answered yet. */
static bool later_step(struct client *c)
{
	struct work *w = &c->work;
	json_t *parameters = w->answer.parameters;

	if (!w->ready)
		return false;
	w->ready = false;
	w->answer.parameters = NULL;
	if (w->continues) {
		queue_text(c, varlink_reply_text(parameters, true));
		return true;
	}
	/* Whoever had the ticket has answered: nobody is to be told that it is void. */
	w->answer.kind = w->answer.error ? ANSWER_ERROR : ANSWER_REPLY;
	if (w->answer.error) {
		finish_error(c, REJECT_INVALID_PARAMETER, w->answer.error, parameters);
	} else {
		queue_text(c, varlink_reply_text(parameters, false));
		work_done(c);
	}
	return true;
}

bool client_answer(struct client *c, uint64_t ticket, const char *error, json_t *parameters,
		   bool continues)
{
	struct work *w = &c->work;

	if (!w->ticket || w->ticket != ticket || (w->ready && !w->continues))
		return false;
	json_decref(w->answer.parameters);
	w->answer.parameters = parameters;
	w->answer.error = error;
	w->continues = continues;
	w->ready = true;
	return true;
}

static bool work_step(struct client *c)
{
	struct answer *a = &c->work.answer;
	json_t *parameters = a->parameters;

	/* Who wants no reply has had what there is to have. */
	if (c->work.oneway) {
		work_done(c);
		return true;
	}
	switch (a->kind) {
	case ANSWER_REPLY:
		a->parameters = NULL;
		queue_text(c, varlink_reply_text(parameters, false));
		work_done(c);
		return true;
	case ANSWER_ERROR:
		a->parameters = NULL;
		finish_error(c, a->reject, a->error, parameters);
		return true;
	case ANSWER_LIST:
		if (c->work.more)
			list_step_more(c);
		else
			list_step_one(c);
		return true;
	case ANSWER_MONITOR:
		return monitor_step(c);
	case ANSWER_LATER:
		return later_step(c);
	}
	return false;
}

/* ---- requests ---- */

static void refuse_input(struct client *c, enum reject why, const char *text)
{
	c->server->counts[why]++;
	queue_text(c, varlink_error_text("io.fabd.BadRequest",
					 json_pack("{s:s%}", "why", text,
						   strnlen(text, sizeof(c->bad_why)))));
	c->closing = true;
}

/* Take the next whole request. false: there is none. */
static bool request_take(struct client *c)
{
	struct varlink_server *s = c->server;
	const struct api_ticket ticket = {.id = ++s->last_ticket, .server = s,
					  .answer = server_answer};
	const struct method_env env = {
		.ticket = s->n_waiting < SERVER_WAITING_MAX ? &ticket : NULL,
		.api = s->api,
		.monitor = s->monitor,
		.admin = c->admin,
		.uid = c->uid,
		.admin_path = server_admin_path(s),
	};
	struct varlink_request r;
	char *text;
	size_t len;

	if (!varlink_frame_next(c->frame, &text, &len, &c->work.end)) {
		if (!c->bad)
			return false;
		c->work.end = '\0';
		refuse_input(c, c->bad, c->bad_why);
		return true;
	}
	server_spend(s, len + REQUEST_COST);
	if (varlink_request_parse(text, len, &r, c->bad_why, sizeof(c->bad_why)) < 0) {
		refuse_input(c, REJECT_MALFORMED, c->bad_why);
		return true;
	}
	c->work.active = true;
	c->work.more = r.more;
	c->work.oneway = r.oneway;
	c->work.ticket = ticket.id; /* the answer may come at once */
	method_call(&env, &r, &c->work.answer);
	if (c->work.answer.kind == ANSWER_LATER)
		s->n_waiting++;
	else
		c->work.ticket = 0;
	varlink_request_done(&r);
	return true;
}

static bool monitoring(const struct client *c)
{
	return c->work.active && c->work.answer.kind == ANSWER_MONITOR;
}

static bool waits_long(const struct client *c)
{
	return monitoring(c) || (c->work.active && c->work.answer.kind == ANSWER_LATER);
}

/* false: the client is to be closed. */
static bool client_read(struct client *c)
{
	char chunk[READ_CHUNK];
	ssize_t n = recv(c->fd, chunk, sizeof(chunk), MSG_DONTWAIT);
	int r;

	if (n < 0)
		return errno == EAGAIN || errno == EINTR;
	if (n == 0) {
		c->eof = true;
		varlink_frame_eof(c->frame);
		return true;
	}
	if (waits_long(c)) {
		/* A Monitor never ends, so what comes behind it is never answered. */
		c->behind += (size_t)n;
		if (monitoring(c) && c->behind > VARLINK_REQUEST_MAX) {
			c->server->counts[REJECT_FLOOD]++;
			return false;
		}
	}
	r = varlink_frame_put(c->frame, chunk, (size_t)n);
	if (r == -EMSGSIZE) {
		c->bad = REJECT_OVERSIZED;
		(void)str_copy(c->bad_why, sizeof(c->bad_why),
			       "the request is longer than 65536 bytes");
	} else if (r < 0) {
		c->bad = REJECT_MALFORMED;
		(void)str_copy(c->bad_why, sizeof(c->bad_why),
			       "the request is nested deeper than 16");
	}
	return true;
}

/* ---- the client ---- */

/* Do what there is to do, within the limits of a turn. true: more is left, and the
 * client could take it. */
static bool client_work(struct client *c)
{
	int64_t limit = c->server->budget - CLIENT_TURN_BYTES;

	c->passed_over = false;
	for (bool worked = false;; worked = true) {
		struct mono begun;
		bool went;

		if (c->closing || waiting(c) >= CLIENT_OUT_LOW)
			return false;
		if (c->server->budget <= MAX(limit, 0)) {
			c->passed_over = !worked;
			return true;
		}
		if (!worked)
			c->served = ++c->server->n_served;
		begun = clock_now();
		went = c->work.active ? work_step(c) : request_take(c);
		server_spend(c->server,
			     (size_t)(MAX(mono_sub(clock_now(), begun), 0) / NS_A_BYTE));
		if (!went)
			return false;
	}
}

/* Input is taken while there is nothing to answer; during a Monitor, or until an answer
 * that comes later, it only tells whether the client is still there. */
static bool wants_input(const struct client *c, bool more)
{
	return !c->eof && !c->bad && !c->closing && !more &&
	       (monitoring(c) || (waits_long(c) && c->behind < READ_CHUNK) ||
		(!c->work.active && waiting(c) < CLIENT_OUT_LOW));
}

void client_run(struct client *c)
{
	bool more = client_work(c), full = waiting(c) >= CLIENT_OUT_LOW;
	unsigned events;

	if (flush(c) < 0) {
		client_free(c);
		return;
	}
	/* What was held up by output that is gone now goes on in the next turn. */
	more |= full && waiting(c) < CLIENT_OUT_LOW && !c->closing;
	if (!waiting(c) && (c->closing || (c->eof && !c->work.active && !more))) {
		client_free(c);
		return;
	}
	events = (wants_input(c, more) ? LOOP_READ : 0) |
		 (more || waiting(c) ? LOOP_WRITE : 0);
	if ((events & LOOP_WRITE) && !(c->events & LOOP_WRITE))
		c->progress = loop_now(c->server->loop);
	if (events != c->events)
		loop_fd_set(c->source, events);
	c->events = events;
	if (client_needs_tick(c))
		server_want_tick(c->server);
}

static struct client *longest_passed_over(const struct varlink_server *s)
{
	struct client *first = NULL;

	for (struct client *c = s->clients; c; c = c->next)
		if (c->passed_over && (!first || c->served < first->served))
			first = c;
	return first;
}

/* The kernel tells of clients in an order of its own, in which the same ones would have
 * the whole budget of every turn. @c: is about to be served. */
static void serve_passed_over(struct varlink_server *s, const struct client *c)
{
	while (s->turn_begins && s->budget > 0) {
		struct client *next = longest_passed_over(s);

		if (next == c)
			return; /* the others with the next event */
		s->turn_begins = next;
		if (next)
			client_run(next);
	}
}

static void on_client(void *user, int fd, unsigned events)
{
	struct client *c = user;

	(void)fd;
	serve_passed_over(c->server, c);
	if (events & LOOP_WRITE)
		c->progress = loop_now(c->server->loop);
	if ((events & LOOP_READ) && !client_read(c)) {
		client_free(c);
		return;
	}
	client_run(c);
}

bool client_needs_tick(const struct client *c)
{
	return (c->events & LOOP_WRITE) || (c->eof && waits_long(c));
}

static short poll_now(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLOUT};

	return poll(&p, 1, 0) == 1 ? p.revents : 0;
}

void client_tick(struct client *c, struct mono now)
{
	/* A half-closed client is still told what changes; whether it is there at all
	 * only a look tells. */
	if (c->eof && waits_long(c) && (poll_now(c->fd) & (POLLHUP | POLLERR))) {
		client_free(c);
		return;
	}
	if (!(c->events & LOOP_WRITE) ||
	    mono_sub(now, c->progress) < c->server->patience)
		return;
	/* If this process was the one that was late, the client is well: its turn
	 * comes. */
	if (poll_now(c->fd) & POLLOUT)
		return;
	c->server->counts[REJECT_SLOW_READER]++;
	client_free(c);
}

struct client *client_new(struct varlink_server *s, int fd, uid_t uid, bool admin)
{
	struct client *c = xcalloc(1, sizeof(*c));

	c->server = s;
	c->fd = fd;
	c->uid = uid;
	c->admin = admin;
	c->frame = varlink_frame_new(VARLINK_REQUEST_MAX);
	c->events = LOOP_READ;
	c->served = ++s->n_served;
	c->source = loop_fd(s->loop, fd, c->events, on_client, c);
	c->next = s->clients;
	c->prev = &s->clients;
	if (c->next)
		c->next->prev = &c->next;
	s->clients = c;
	s->n_clients++;
	return c;
}

struct client *client_free(struct client *c)
{
	char rest[READ_CHUNK];

	if (!c)
		return NULL;
	*c->prev = c->next;
	if (c->next)
		c->next->prev = c->prev;
	c->server->n_clients--;
	work_done(c);
	buffer_done(&c->out);
	c->server->list_bytes -= c->list_bytes;
	varlink_frame_free(c->frame);
	loop_source_free(c->source);
	/* Input that nobody read would make the kernel reset the connection. */
	(void)!recv(c->fd, rest, sizeof(rest), MSG_DONTWAIT);
	(void)close(c->fd);
	free(c);
	return NULL;
}
