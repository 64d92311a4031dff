/* SPDX-License-Identifier: BSD-2-Clause */
#include "varlink_server.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "log.h"
#include "varlink_client.h"

#define PATIENCE_NS	 (10 * NSEC_PER_SEC)
#define ACCEPTS_PER_TURN 16
#define BACKLOG		 128

/* ---- budget and timers ---- */

void server_spend(struct varlink_server *s, size_t bytes)
{
	s->budget -= (int64_t)bytes;
	loop_defer_arm(s->turn_end);
}

static void on_turn_end(void *user)
{
	struct varlink_server *s = user;

	s->budget = SERVER_TURN_BYTES;
	s->turn_begins = true;
}

static void on_posted(void *user)
{
	struct varlink_server *s = user;
	struct client *next;

	for (struct client *c = s->clients; c; c = next) {
		next = c->next;
		if (c->work.active && (c->work.ready || c->work.answer.kind == ANSWER_MONITOR))
			client_run(c);
	}
}

/* Clients are served after the turn in which something happened, not inside of the code
 * that made it happen. */
static void on_monitor_post(void *user)
{
	struct varlink_server *s = user;

	loop_defer_arm(s->posted);
}

void server_answer(void *server, uint64_t ticket, const char *error, json_t *parameters,
		   bool continues)
{
	struct varlink_server *s = server;

	for (struct client *c = s->clients; c; c = c->next)
		if (client_answer(c, ticket, error, parameters, continues)) {
			loop_defer_arm(s->posted);
			return;
		}
	json_decref(parameters);
}

void server_want_tick(struct varlink_server *s)
{
	if (s->tick_armed)
		return;
	s->tick_armed = true;
	loop_timer_at(s->tick, mono_add(clock_now(),
					MIN(NSEC_PER_SEC, MAX(s->patience / 4, 1))));
}

static void accept_pause(struct varlink_server *s, bool pause)
{
	for (int i = 0; i < s->n_listeners; i++)
		loop_fd_set(s->listeners[i]->source, pause ? 0 : LOOP_READ);
	s->accept_paused = pause;
}

static void on_tick(void *user, struct mono now)
{
	struct varlink_server *s = user;
	struct client *next;

	s->tick_armed = false;
	if (s->accept_paused)
		accept_pause(s, false);
	for (struct client *c = s->clients; c; c = next) {
		next = c->next;
		client_tick(c, now);
	}
	for (struct client *c = s->clients; c; c = c->next)
		if (client_needs_tick(c))
			server_want_tick(s);
}

/* ---- accept ---- */

static void turn_away(struct varlink_server *s, int fd, enum reject why)
{
	_cleanup_(freep) char *text = varlink_error_text(
		"io.fabd.Busy", json_pack("{s:s}", "why",
					  why == REJECT_TOO_MANY_CLIENTS
						  ? "too many clients"
						  : "too many clients of this user"));

	s->counts[why]++;
	(void)!send(fd, text, strlen(text) + 1, MSG_DONTWAIT | MSG_NOSIGNAL);
	(void)close(fd);
}

static unsigned clients_of(const struct varlink_server *s, uid_t uid)
{
	unsigned n = 0;

	for (const struct client *c = s->clients; c; c = c->next)
		n += c->uid == uid;
	return n;
}

static void welcome(struct listener *l, int fd)
{
	struct varlink_server *s = l->server;
	struct ucred cred = {.uid = (uid_t)-1};
	socklen_t len = sizeof(cred);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) < 0) {
		(void)close(fd);
		return;
	}
	if (s->n_clients >= s->max_clients)
		turn_away(s, fd, REJECT_TOO_MANY_CLIENTS);
	else if (cred.uid != 0 &&
		 clients_of(s, cred.uid) >= MAX(s->max_clients / 2, 1u))
		turn_away(s, fd, REJECT_TOO_MANY_OF_USER);
	else
		(void)client_new(s, fd, cred.uid, l->admin);
}

static void on_listen(void *user, int fd, unsigned events)
{
	struct listener *l = user;
	static struct log_limit limit;

	(void)events;
	for (int i = 0; i < ACCEPTS_PER_TURN; i++) {
		int r = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

		if (r >= 0) {
			welcome(l, r);
			continue;
		}
		if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS ||
		    errno == ENOMEM) {
			/* The client stays in the queue; asking again at once would
			 * spin. */
			l->server->counts[REJECT_NO_DESCRIPTORS]++;
			log_limited(&limit, LOG_WARNING, "cannot take a client: %s",
				    strerror(errno));
			accept_pause(l->server, true);
			server_want_tick(l->server);
		}
		if (errno != EINTR && errno != ECONNABORTED)
			return;
	}
}

/* ---- listen ---- */

/* Is anybody behind the socket at this path? */
static bool path_alive(const struct sockaddr_un *sa)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	bool alive;

	if (fd < 0)
		return true;
	/* A full queue or a closed door has an owner, too. */
	alive = connect(fd, (const struct sockaddr *)sa, sizeof(*sa)) == 0 ||
		(errno != ECONNREFUSED && errno != ENOENT);
	(void)close(fd);
	return alive;
}

/* Make way at @sa for a new socket: only for what a dead process left. */
static int path_clear(const struct sockaddr_un *sa)
{
	struct stat st;

	if (lstat(sa->sun_path, &st) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (!S_ISSOCK(st.st_mode))
		return -EEXIST;
	if (path_alive(sa))
		return -EADDRINUSE;
	return unlink(sa->sun_path) < 0 && errno != ENOENT ? -errno : 0;
}

static int path_own(const char *path, const struct varlink_listen *what)
{
	const struct group *g = what->group ? getgrnam(what->group) : NULL;

	if (what->group && !g)
		log_warn("%s: no group %s, the socket stays with its own", path,
			 what->group);
	if (g && chown(path, (uid_t)-1, g->gr_gid) < 0)
		(void)log_errno(LOG_WARNING, -errno, "%s: group %s", path, what->group);
	return chmod(path, what->mode) < 0 ? -errno : 0;
}

static int bind_path(struct listener *l, const struct varlink_listen *what)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	struct stat st;
	int r;

	if (!str_copy(sa.sun_path, sizeof(sa.sun_path), what->path))
		return -ENAMETOOLONG;
	r = path_clear(&sa);
	if (r < 0)
		return r;
	l->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (l->fd < 0)
		return -errno;
	/* Closed to all until it has its owner: bind() takes the mode of the socket. */
	if (fchmod(l->fd, 0600) < 0 ||
	    bind(l->fd, (const struct sockaddr *)&sa, sizeof(sa)) < 0 ||
	    stat(what->path, &st) < 0)
		return -errno;
	l->path = xstrdup(what->path);
	l->bound = true;
	l->dev = st.st_dev;
	l->ino = st.st_ino;
	r = path_own(what->path, what);
	if (r < 0)
		return r;
	return listen(l->fd, BACKLOG) < 0 ? -errno : 0;
}

/* A listening socket of systemd. */
static int take_fd(struct listener *l, int fd)
{
	struct sockaddr_un sa = {0};
	socklen_t len = sizeof(sa) - 1;
	int flags, listening = 0;
	socklen_t size = sizeof(listening);

	l->fd = fd;
	if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listening, &size) < 0)
		return -errno;
	if (!listening || getsockname(fd, (struct sockaddr *)&sa, &len) < 0 ||
	    sa.sun_family != AF_UNIX)
		return -EINVAL;
	if (sa.sun_path[0] == '/')
		l->path = xstrdup(sa.sun_path);
	flags = fcntl(fd, F_GETFL);
	if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0 ||
	    fcntl(fd, F_SETFD, FD_CLOEXEC) < 0)
		return -errno;
	return 0;
}

static struct listener *listener_free(struct listener *l)
{
	struct stat st;

	loop_source_free(l->source);
	/* Only what is still ours: another daemon may have taken the place. */
	if (l->bound && stat(l->path, &st) == 0 && st.st_dev == l->dev &&
	    st.st_ino == l->ino)
		(void)unlink(l->path);
	if (l->fd >= 0)
		(void)close(l->fd);
	free(l->path);
	free(l);
	return NULL;
}

int varlink_server_listen(struct varlink_server *s, const struct varlink_listen *what)
{
	struct listener *l;
	int r;

	assert(s->n_listeners < (int)ARRAY_LEN(s->listeners));
	l = xcalloc(1, sizeof(*l));
	l->server = s;
	l->admin = what->admin;
	l->fd = -1;
	r = what->fd >= 0 ? take_fd(l, what->fd) : bind_path(l, what);
	if (r < 0) {
		listener_free(l);
		if (r == -EADDRINUSE)
			log_err("cannot listen on %s: another fabd does", what->path);
		else if (r == -ENOENT)
			log_err("cannot listen on %s: there is no such directory",
				what->path);
		else
			(void)log_errno(LOG_ERR, r, "cannot listen on %s",
					what->path ? what->path : "the socket of systemd");
		return r;
	}
	l->source =
		loop_fd(s->loop, l->fd, s->accept_paused ? 0 : LOOP_READ, on_listen, l);
	s->listeners[s->n_listeners++] = l;
	return 0;
}

const char *server_admin_path(const struct varlink_server *s)
{
	for (int i = 0; i < s->n_listeners; i++)
		if (s->listeners[i]->admin)
			return s->listeners[i]->path;
	return NULL;
}

/* ---- the server ---- */

struct varlink_server *varlink_server_new(struct loop *l, const struct api *api,
					  struct monitor *m, unsigned max_clients)
{
	struct varlink_server *s = xcalloc(1, sizeof(*s));

	s->loop = l;
	s->api = api;
	s->monitor = m;
	s->max_clients = max_clients;
	s->patience = PATIENCE_NS;
	s->budget = SERVER_TURN_BYTES;
	s->tick = loop_timer(l, on_tick, s);
	s->turn_end = loop_defer(l, on_turn_end, s);
	s->posted = loop_defer(l, on_posted, s);
	monitor_on_post(m, on_monitor_post, s);
	return s;
}

struct varlink_server *varlink_server_free(struct varlink_server *s)
{
	if (!s)
		return NULL;
	monitor_on_post(s->monitor, NULL, NULL);
	while (s->clients)
		client_free(s->clients);
	for (int i = 0; i < s->n_listeners; i++)
		listener_free(s->listeners[i]);
	loop_source_free(s->tick);
	loop_source_free(s->turn_end);
	loop_source_free(s->posted);
	free(s);
	return NULL;
}

void varlink_server_set_patience(struct varlink_server *s, int64_t ns)
{
	s->patience = ns;
}

int varlink_server_clients(const struct varlink_server *s)
{
	return (int)s->n_clients;
}

json_t *varlink_server_counts(const struct varlink_server *s)
{
	json_t *o = json_object();

	for (int i = REJECT_NONE + 1; i < REJECT__MAX; i++)
		(void)json_object_set_new(o, enum_name(&reject_names, i),
					  json_integer((json_int_t)s->counts[i]));
	return o;
}
