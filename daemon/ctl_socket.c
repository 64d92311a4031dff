/* SPDX-License-Identifier: BSD-2-Clause */
#include "ctl_socket.h"

#include <stdlib.h>
#include <unistd.h>

#include "log.h"
#include "udp_socket.h"

#define BUF_LEN 2048   /* longer is told as truncated */
#define BATCHES_MAX 4  /* of one call: a flood must not hold up the loop */
#define ICMP_MAX 64
#define RETRY_NS (5 * NSEC_PER_SEC)

struct bound {
	struct ctl_socket *owner;
	struct addr addr; /* wanted, with port */
	struct addr at;	  /* what it is bound to: port 0 of @addr is resolved */
	int fd;		  /* -1: not bound yet */
	struct loop_source *source;
	uint32_t lost;
	int last_error; /* said already */
};

struct ctl_socket {
	struct loop *loop;
	struct ctl_socket_callbacks cb;
	void *user;
	struct loop_source *retry;
	struct udp_rx *rx;
	int n;
	struct bound *socks; /* n; owned */
};

static void read_datagrams(struct bound *b)
{
	struct ctl_socket *s = b->owner;
	bool full = true;

	for (int batch = 0; full && batch < BATCHES_MAX; batch++) {
		uint32_t lost;
		int n = udp_rx_read(s->rx, b->fd, &b->lost, &lost, &full);

		if (lost)
			s->cb.dropped(s->user, DROP_KERNEL, lost);
		for (int i = 0; i < n; i++) {
			const struct udp_datagram *d = udp_rx_get(s->rx, i);
			struct addr local = d->local;

			local.port = b->at.port;
			s->cb.datagram(s->user, d->buf, MIN(d->len, (size_t)BUF_LEN),
				       d->truncated || d->len > BUF_LEN, &d->from, &local);
		}
	}
}

static void on_readable(void *user, int fd, unsigned events)
{
	struct bound *b = user;
	struct ctl_socket *s = b->owner;
	struct udp_report report;

	(void)events;
	read_datagrams(b);
	for (int i = 0; i < ICMP_MAX && udp_report_read(fd, &report); i++)
		if (report.kind != EPERR_NONE)
			s->cb.unreachable(s->user, &report.to, report.kind);
}

/* A bind that fails is said once, until it fails in another way. */
static void try_bind(struct bound *b)
{
	struct udp_open o = {.local = b->addr, .pktinfo = true};
	char text[ADDR_TEXT_MAX];
	const char *step;
	bool unbound;
	int fd = udp_open(&o, &step, &unbound);

	if (fd >= 0) {
		b->fd = fd;
		if (udp_local(fd, &b->at) < 0)
			b->at = b->addr;
		b->source = loop_fd(b->owner->loop, fd, LOOP_READ, on_readable, b);
		log_info("control: listening on %s", addr_format_port(&b->at, text));
	} else if (fd != b->last_error) {
		b->last_error = fd;
		log_errno(LOG_WARNING, fd, "control: %s %s, trying again every 5 s", step,
			  addr_format_port(&b->addr, text));
	}
}

static void try_all(void *user, struct mono now)
{
	struct ctl_socket *s = user;
	bool missing = false;

	for (int i = 0; i < s->n; i++) {
		if (s->socks[i].fd < 0)
			try_bind(&s->socks[i]);
		missing |= s->socks[i].fd < 0;
	}
	loop_timer_at(s->retry, missing ? mono_add(now, RETRY_NS) : MONO_NEVER);
}

struct ctl_socket *ctl_socket_new(struct loop *l, const struct addr *addrs, int n,
				  uint16_t port, const struct ctl_socket_callbacks *cb,
				  void *user)
{
	struct ctl_socket *s = xcalloc(1, sizeof(*s));

	s->loop = l;
	s->cb = *cb;
	s->user = user;
	s->retry = loop_timer(l, try_all, s);
	s->rx = udp_rx_new(BUF_LEN, 1);
	s->n = n;
	s->socks = xcalloc((size_t)n, sizeof(*s->socks));
	for (int i = 0; i < n; i++) {
		s->socks[i] = (struct bound){.owner = s, .addr = addrs[i], .fd = -1};
		if (!addrs[i].port)
			s->socks[i].addr.port = port;
	}
	try_all(s, clock_now());
	return s;
}

struct ctl_socket *ctl_socket_free(struct ctl_socket *s)
{
	if (!s)
		return NULL;
	for (int i = 0; i < s->n; i++) {
		loop_source_free(s->socks[i].source);
		if (s->socks[i].fd >= 0)
			(void)close(s->socks[i].fd);
	}
	loop_source_free(s->retry);
	udp_rx_free(s->rx);
	free(s->socks);
	free(s);
	return NULL;
}

static bool is_any(const struct addr *a)
{
	struct addr any = {.family = a->family};

	return addr_same_ip(a, &any);
}

/* The socket bound to @from itself, else one that is bound to any address. */
static struct bound *find(struct ctl_socket *s, const struct addr *from,
			  const struct addr *to)
{
	struct bound *any = NULL;

	for (int i = 0; i < s->n; i++) {
		struct bound *b = &s->socks[i];

		if (b->fd < 0 || b->at.family != to->family)
			continue;
		if (addr_is_set(from) && addr_same_ip(&b->at, from))
			return b;
		if (!any && (is_any(&b->at) || !addr_is_set(from)))
			any = b;
	}
	return any;
}

static void note_error(void *user, int i, int error)
{
	(void)i;
	*(int *)user = -error;
}

int ctl_socket_send(struct ctl_socket *s, const struct addr *from, const struct addr *to,
		    const void *buf, size_t len)
{
	uint8_t control[UDP_CONTROL_LEN] __attribute__((aligned(8))) = {0};
	struct sockaddr_storage sa;
	struct addr dest = *to;
	struct iovec iov = {(void *)(uintptr_t)buf, len};
	struct mmsghdr msg = {.msg_hdr = {.msg_name = &sa,
					  .msg_iov = &iov,
					  .msg_iovlen = 1,
					  .msg_control = control}};
	struct bound *b = find(s, from, to);
	int r = -EAGAIN;

	if (!b || (addr_is_set(from) && from->family != to->family))
		return -ENOTCONN;
	/* The zone of a link-local peer is where we are asked, if it is not known. */
	if (addr_is_link_local(&dest) && !dest.zone)
		dest.zone = from->zone ? from->zone : b->at.zone;
	msg.msg_hdr.msg_namelen = addr_to_sockaddr(&dest, &sa);
	if (addr_is_set(from))
		udp_put_source(&msg.msg_hdr, from);
	else
		msg.msg_hdr.msg_control = NULL;
	return udp_send(b->fd, &msg, 1, note_error, &r) == 1 ? 0 : r;
}

void ctl_socket_read(struct ctl_socket *s)
{
	for (int i = 0; i < s->n; i++)
		if (s->socks[i].fd >= 0)
			read_datagrams(&s->socks[i]);
}

bool ctl_socket_bound(const struct ctl_socket *s)
{
	for (int i = 0; i < s->n; i++)
		if (s->socks[i].fd >= 0)
			return true;
	return false;
}
