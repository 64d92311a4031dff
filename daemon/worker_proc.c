/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One worker process: spawn with a fresh environment, socket, bounded queue. Policy
 * (when, why, again) is workers.c's.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "manager.h"
#include "clean_spawn.h"

#define WORKER_FD 3
#define SOCKET_BUFFER (512 * 1024)

static int spawn_with(const char *path, int child_fd, pid_t *ret_pid)
{
	char *argv[] = {(char *)(uintptr_t)path, (char *)(uintptr_t)"--fd",
			(char *)(uintptr_t)"3", NULL};
	posix_spawn_file_actions_t actions;
	/* Objects of a device that went away can be destroyed (libibverbs). */
	struct spawn_options o = {.actions = &actions,
				  .extra_env = "RDMAV_ALLOW_DISASSOC_DESTROY=1"};
	int r;

	(void)posix_spawn_file_actions_init(&actions);
	/* dup2 to the same number would keep close-on-exec: the pair is moved up before. */
	(void)posix_spawn_file_actions_adddup2(&actions, child_fd, WORKER_FD);
	r = spawn_clean(path, argv, &o, ret_pid);
	(void)posix_spawn_file_actions_destroy(&actions);
	return r;
}

static void drain_queue(struct worker *w)
{
	while (w->queue) {
		struct worker_message *q = w->queue;
		ssize_t n = send(w->fd, q->data, q->len, MSG_DONTWAIT | MSG_NOSIGNAL);

		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			break;
		if (n < 0) {
			worker_lost(w);
			return;
		}
		w->queue = q->next;
		if (!w->queue)
			w->queue_end = &w->queue;
		w->queued--;
		free(q);
	}
	loop_fd_set(w->io, LOOP_READ | (w->queue ? LOOP_WRITE : 0));
}

static void on_io(void *user, int fd, unsigned events)
{
	struct worker *w = user;
	static uint8_t buf[WM_MAX + 1];

	if (events & LOOP_WRITE) {
		drain_queue(w);
		if (w->fd < 0)
			return;
	}
	for (int i = 0; i < 128 && (events & LOOP_READ); i++) {
		ssize_t n = recv(fd, buf, sizeof(buf), MSG_DONTWAIT);

		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (n <= 0) {
			worker_lost(w);
			return;
		}
		worker_received(w, buf, (size_t)n);
		if (w->fd != fd)
			return; /* closed by what it said */
	}
}

static void attach(struct worker *w, int fd)
{
	int size = SOCKET_BUFFER;

	(void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
	(void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
	w->fd = fd;
	w->queue_end = &w->queue;
	w->io = loop_fd(w->m->loop, fd, LOOP_READ, on_io, w);
}

int worker_spawn(struct worker *w, const char *path)
{
	int pair[2], high, r;

	if (access(path, X_OK) < 0)
		return -errno;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	high = fcntl(pair[1], F_DUPFD_CLOEXEC, WORKER_FD + 1);
	(void)close(pair[1]);
	if (high < 0) {
		r = -errno;
		(void)close(pair[0]);
		return r;
	}
	r = spawn_with(path, high, &w->pid);
	(void)close(high);
	if (r < 0) {
		w->pid = 0;
		(void)close(pair[0]);
		return r;
	}
	(void)fcntl(pair[0], F_SETFL, O_NONBLOCK);
	attach(w, pair[0]);
	return 0;
}

int worker_connect(struct worker *w, const char *socket_path)
{
	struct sockaddr_un sun = {.sun_family = AF_UNIX};
	int fd, r;

	if (!str_copy(sun.sun_path, sizeof(sun.sun_path), socket_path))
		return -ENAMETOOLONG;
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	if (connect(fd, (struct sockaddr *)&sun, sizeof(sun)) < 0) {
		r = -errno;
		(void)close(fd);
		return r;
	}
	attach(w, fd);
	return 0;
}

void worker_close(struct worker *w)
{
	w->io = loop_source_free(w->io);
	if (w->fd >= 0)
		(void)close(w->fd);
	w->fd = -1;
	while (w->queue) {
		struct worker_message *q = w->queue;

		w->queue = q->next;
		free(q);
	}
	w->queue_end = &w->queue;
	w->queued = 0;
}

int worker_send(struct worker *w, const void *msg, size_t len)
{
	struct worker_message *q;

	if (w->fd < 0)
		return -ENOTCONN;
	if (!w->queue) {
		ssize_t n = send(w->fd, msg, len, MSG_DONTWAIT | MSG_NOSIGNAL);

		if (n >= 0)
			return 0;
		if (errno != EAGAIN && errno != EINTR && errno != ENOBUFS)
			return -ENOTCONN; /* on_io() sees the end of file */
	}
	if (w->queued >= WORKER_QUEUE_MAX) {
		worker_fail(w, "its queue of %d messages is full", WORKER_QUEUE_MAX);
		return -ENOBUFS;
	}
	q = malloc(sizeof(*q) + len);
	if (!q)
		abort();
	q->next = NULL;
	q->len = len;
	memcpy(q->data, msg, len);
	*w->queue_end = q;
	w->queue_end = &q->next;
	w->queued++;
	loop_fd_set(w->io, LOOP_READ | LOOP_WRITE);
	return 0;
}
