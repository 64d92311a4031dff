/* SPDX-License-Identifier: BSD-2-Clause */
#include "channel.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

struct message {
	struct message *next;
	size_t size;
	uint8_t data[];
};

struct channel {
	int fd;
	struct message *first, **last; /* owned */
	int n;
	bool overflow;
};

struct channel *channel_new(int fd)
{
	struct channel *c = xcalloc(1, sizeof(*c));
	int flags = fcntl(fd, F_GETFL);

	(void)fcntl(fd, F_SETFL, flags | O_NONBLOCK);
	(void)fcntl(fd, F_SETFD, FD_CLOEXEC);
	c->fd = fd;
	c->last = &c->first;
	return c;
}

struct channel *channel_free(struct channel *c)
{
	struct message *m;

	if (!c)
		return NULL;
	(void)channel_flush(c);
	while ((m = c->first)) {
		c->first = m->next;
		free(m);
	}
	(void)close(c->fd);
	free(c);
	return NULL;
}

int channel_fd(const struct channel *c)
{
	return c->fd;
}

bool channel_wants_write(const struct channel *c)
{
	return c->first != NULL;
}

void channel_send(struct channel *c, const void *msg, size_t size)
{
	struct message *m;

	if (c->overflow || c->n >= CHANNEL_QUEUE_MAX) {
		c->overflow = true;
		return;
	}
	m = xcalloc(1, sizeof(*m) + size);
	m->size = size;
	memcpy(m->data, msg, size);
	*c->last = m;
	c->last = &m->next;
	c->n++;
}

int channel_flush(struct channel *c)
{
	if (c->overflow)
		return -ENOBUFS;
	while (c->first) {
		struct message *m = c->first;

		if (send(c->fd, m->data, m->size, MSG_NOSIGNAL | MSG_DONTWAIT) < 0) {
			if (errno == EINTR)
				continue;
			if (errno == EAGAIN)
				return 0;
			return errno == EPIPE ? -ECONNRESET : -errno;
		}
		c->first = m->next;
		if (!c->first)
			c->last = &c->first;
		c->n--;
		free(m);
	}
	return 0;
}

int channel_recv(struct channel *c, uint8_t buf[WM_MAX], char *why, size_t why_size)
{
	ssize_t n;
	int r;

	do
		/* MSG_TRUNC: the true length of a message that is too long. */
		n = recv(c->fd, buf, WM_MAX, MSG_DONTWAIT | MSG_TRUNC);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return errno == EAGAIN ? 0 : -ECONNRESET;
	if (n == 0)
		return -ECONNRESET;
	if (n > WM_MAX) {
		(void)snprintf(why, why_size, "message of %zd bytes", n);
		return -EPROTO;
	}
	r = wm_check(buf, (size_t)n, true, why, why_size);
	return r ? r : (int)n;
}
