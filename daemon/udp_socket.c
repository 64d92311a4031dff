/* SPDX-License-Identifier: BSD-2-Clause */
#include "udp_socket.h"

#include <errno.h>
#include <linux/errqueue.h>
#include <linux/net_tstamp.h>
#include <netinet/icmp6.h>
#include <netinet/ip.h>
#include <netinet/ip_icmp.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define RX_CONTROL_LEN 256
#define RCVBUF (1 << 20)
#define SOFT_ERRORS_MAX 4 /* pending ICMP errors that one call of ours may meet */
#define HEADERS_4 28	  /* IP and UDP */
#define HEADERS_6 48

static int set_int(int fd, int level, int name, int value)
{
	return setsockopt(fd, level, name, &value, sizeof(value)) ? -errno : 0;
}

static bool is_any(const struct addr *a)
{
	static const uint8_t zero[16];

	return !memcmp(a->ip, zero, a->family == 4 ? 4 : 16);
}

static int bind_netdev(int fd, const struct udp_open *o, bool *ret_unbound)
{
	if (!o->netdev || !o->netdev[0] ||
	    !setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, o->netdev,
			(socklen_t)strlen(o->netdev)))
		return 0;
	if (errno != EPERM || is_any(&o->local))
		return -errno;
	*ret_unbound = true;
	return 0;
}

static int set_options_4(int fd, const struct udp_open *o)
{
	int r = set_int(fd, IPPROTO_IP, IP_RECVERR, 1);

	if (!r && o->pktinfo)
		r = set_int(fd, IPPROTO_IP, IP_PKTINFO, 1);
	if (!r && o->dont_fragment)
		r = set_int(fd, IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_DO);
	return r;
}

static int set_options_6(int fd, const struct udp_open *o)
{
	int r = set_int(fd, IPPROTO_IPV6, IPV6_V6ONLY, 1);

	if (!r)
		r = set_int(fd, IPPROTO_IPV6, IPV6_RECVERR, 1);
	if (!r && o->pktinfo)
		r = set_int(fd, IPPROTO_IPV6, IPV6_RECVPKTINFO, 1);
	if (!r && o->dont_fragment)
		r = set_int(fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_DO);
	return r;
}

/* Stamps at the wire. Sends are stamped one by one (udp_put_stamp), without a copy of the
 * datagram. A card stamps only if somebody has told it to: that is not ours to change.
 * Where the kernel refuses this there is at least the older time of receipt. */
static void want_stamps(int fd)
{
	int flags = SOF_TIMESTAMPING_SOFTWARE | SOF_TIMESTAMPING_RX_SOFTWARE |
		    SOF_TIMESTAMPING_RAW_HARDWARE | SOF_TIMESTAMPING_RX_HARDWARE |
		    SOF_TIMESTAMPING_OPT_ID | SOF_TIMESTAMPING_OPT_TSONLY |
		    SOF_TIMESTAMPING_OPT_TX_SWHW;

	if (set_int(fd, SOL_SOCKET, SO_TIMESTAMPING, flags) < 0)
		(void)set_int(fd, SOL_SOCKET, SO_TIMESTAMPNS, 1);
}

static int configure(int fd, const struct udp_open *o, const char **ret_step,
		     bool *ret_unbound)
{
	struct sockaddr_storage sa;
	socklen_t len = addr_to_sockaddr(&o->local, &sa);
	int r;

	*ret_step = "setsockopt";
	r = o->local.family == 4 ? set_options_4(fd, o) : set_options_6(fd, o);
	if (r < 0)
		return r;
	/* More room helps against bursts; less is no failure. */
	if (set_int(fd, SOL_SOCKET, SO_RCVBUFFORCE, RCVBUF) < 0)
		(void)set_int(fd, SOL_SOCKET, SO_RCVBUF, RCVBUF);
	(void)set_int(fd, SOL_SOCKET, SO_RXQ_OVFL, 1);
	if (o->stamps)
		want_stamps(fd);
	if (!r && o->tos)
		r = o->local.family == 4 ? set_int(fd, IPPROTO_IP, IP_TOS, o->tos)
					 : set_int(fd, IPPROTO_IPV6, IPV6_TCLASS, o->tos);
	if (r < 0)
		return r;
	/* After the traffic class, which sets it too. From 7 on it takes a right. */
	if (o->priority)
		(void)set_int(fd, SOL_SOCKET, SO_PRIORITY, o->priority - 1);
	*ret_step = "bind to the interface";
	r = bind_netdev(fd, o, ret_unbound);
	if (r < 0)
		return r;
	*ret_step = "bind";
	return bind(fd, (struct sockaddr *)&sa, len) ? -errno : 0;
}

int udp_open(const struct udp_open *o, const char **ret_step, bool *ret_unbound)
{
	int fd, r;

	*ret_unbound = false;
	*ret_step = "socket";
	if (o->local.family != 4 && o->local.family != 6)
		return -EAFNOSUPPORT;
	fd = socket(o->local.family == 4 ? AF_INET : AF_INET6,
		    SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	r = configure(fd, o, ret_step, ret_unbound);
	if (r < 0) {
		(void)close(fd);
		return r;
	}
	return fd;
}

int udp_local(int fd, struct addr *ret)
{
	struct sockaddr_storage sa;
	socklen_t len = sizeof(sa);

	if (getsockname(fd, (struct sockaddr *)&sa, &len))
		return -errno;
	return addr_from_sockaddr((struct sockaddr *)&sa, len, ret);
}

struct udp_rx {
	size_t head;
	uint8_t *heads, *tail;
	int n;
	struct udp_datagram got[UDP_BATCH];
	struct mmsghdr msg[UDP_BATCH];
	struct iovec iov[UDP_BATCH][2];
	struct sockaddr_storage from[UDP_BATCH];
	uint8_t control[UDP_BATCH][RX_CONTROL_LEN] __attribute__((aligned(8)));
};

struct udp_rx *udp_rx_new(size_t head, size_t tail)
{
	struct udp_rx *rx = xcalloc(1, sizeof(*rx));

	rx->head = head;
	rx->heads = xcalloc(UDP_BATCH, head);
	rx->tail = xcalloc(1, tail);
	for (int i = 0; i < UDP_BATCH; i++) {
		rx->iov[i][0] = (struct iovec){rx->heads + (size_t)i * head, head};
		rx->iov[i][1] = (struct iovec){rx->tail, tail};
	}
	return rx;
}

struct udp_rx *udp_rx_free(struct udp_rx *rx)
{
	if (!rx)
		return NULL;
	free(rx->heads);
	free(rx->tail);
	free(rx);
	return NULL;
}

static void arm_batch(struct udp_rx *rx)
{
	for (int i = 0; i < UDP_BATCH; i++)
		rx->msg[i].msg_hdr = (struct msghdr){
			.msg_name = &rx->from[i],
			.msg_namelen = sizeof(rx->from[i]),
			.msg_iov = rx->iov[i],
			.msg_iovlen = 2,
			.msg_control = rx->control[i],
			.msg_controllen = RX_CONTROL_LEN,
		};
}

static void note_pktinfo_4(const struct cmsghdr *c, struct udp_datagram *d)
{
	struct in_pktinfo info;

	memcpy(&info, CMSG_DATA(c), sizeof(info));
	d->local = (struct addr){.family = 4};
	memcpy(d->local.ip, &info.ipi_addr, 4);
}

static void note_pktinfo_6(const struct cmsghdr *c, struct udp_datagram *d)
{
	struct in6_pktinfo info;

	memcpy(&info, CMSG_DATA(c), sizeof(info));
	d->local = (struct addr){.family = 6};
	memcpy(d->local.ip, &info.ipi6_addr, 16);
	if (addr_is_link_local(&d->local))
		d->local.zone = info.ipi6_ifindex;
}

static int64_t timespec_ns(const struct timespec *t)
{
	return (int64_t)t->tv_sec * 1000000000 + t->tv_nsec;
}

static void read_stamps(const struct cmsghdr *c, int64_t *ret_kernel, int64_t *ret_device)
{
	struct scm_timestamping t;

	memcpy(&t, CMSG_DATA(c), sizeof(t));
	*ret_kernel = timespec_ns(&t.ts[0]);
	*ret_device = timespec_ns(&t.ts[2]);
}

/* @lost: written when the kernel told its count. */
static void read_notes(struct msghdr *h, struct udp_datagram *d, uint32_t *lost)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(h); c; c = CMSG_NXTHDR(h, c)) {
		if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_PKTINFO) {
			note_pktinfo_4(c, d);
		} else if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_PKTINFO) {
			note_pktinfo_6(c, d);
		} else if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SO_RXQ_OVFL) {
			memcpy(lost, CMSG_DATA(c), sizeof(*lost));
		} else if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SO_TIMESTAMPNS) {
			struct timespec ts;

			memcpy(&ts, CMSG_DATA(c), sizeof(ts));
			d->stamp_ns = timespec_ns(&ts);
		} else if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SO_TIMESTAMPING) {
			read_stamps(c, &d->stamp_ns, &d->device_ns);
		}
	}
}

/* recvmmsg() that is not stopped by errors of earlier sends: each is told once and is
 * in the error queue as well. */
static int receive(int fd, struct mmsghdr *msg)
{
	int r = -1;

	for (int i = 0; r < 0 && i < SOFT_ERRORS_MAX; i++) {
		r = recvmmsg(fd, msg, UDP_BATCH, MSG_DONTWAIT | MSG_TRUNC, NULL);
		if (r < 0 && errno == EAGAIN)
			break;
	}
	return MAX(r, 0);
}

int udp_rx_read(struct udp_rx *rx, int fd, uint32_t *lost, uint32_t *ret_lost,
		bool *ret_full)
{
	uint32_t count = *lost;
	int n;

	arm_batch(rx);
	n = receive(fd, rx->msg);
	rx->n = 0;
	for (int i = 0; i < n; i++) {
		struct udp_datagram *d = &rx->got[rx->n];
		struct msghdr *h = &rx->msg[i].msg_hdr;

		*d = (struct udp_datagram){.buf = rx->iov[i][0].iov_base,
					   .len = rx->msg[i].msg_len,
					   .truncated = h->msg_flags & MSG_TRUNC};
		if (addr_from_sockaddr(h->msg_name, h->msg_namelen, &d->from) < 0)
			continue;
		read_notes(h, d, &count);
		rx->n++;
	}
	*ret_lost = count - *lost;
	*lost = count;
	*ret_full = n == UDP_BATCH;
	return rx->n;
}

const struct udp_datagram *udp_rx_get(const struct udp_rx *rx, int i)
{
	return &rx->got[i];
}

static enum ep_error kind_of(int error)
{
	switch (error) {
	case ECONNREFUSED:
		return EPERR_PORT_UNREACHABLE;
	case EHOSTUNREACH:
	case ENETUNREACH:
	case EHOSTDOWN:
	case ENONET:
	case ENOPROTOOPT:
	case EACCES: /* administratively prohibited, by a router */
		return EPERR_HOST_UNREACHABLE;
	default:
		return EPERR_NONE;
	}
}

/* @ret->to is read already, if there was one. */
static bool read_extended(struct msghdr *h, struct udp_report *ret)
{
	bool found = false;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(h); c; c = CMSG_NXTHDR(h, c)) {
		struct sock_extended_err e;

		if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SO_TIMESTAMPING)
			read_stamps(c, &ret->stamp_ns, &ret->device_ns);
		if (!(c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_RECVERR) &&
		    !(c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_RECVERR))
			continue;
		memcpy(&e, CMSG_DATA(c), sizeof(e));
		ret->is_stamp = e.ee_origin == SO_EE_ORIGIN_TIMESTAMPING;
		ret->id = e.ee_data;
		ret->error = (int)e.ee_errno;
		ret->kind = kind_of(ret->error);
		found = ret->is_stamp || addr_is_set(&ret->to);
	}
	return found;
}

bool udp_report_read(int fd, struct udp_report *ret)
{
	uint8_t control[RX_CONTROL_LEN] __attribute__((aligned(8)));
	struct sockaddr_storage to;
	struct iovec iov = {ret->quoted, sizeof(ret->quoted)};
	struct msghdr h;
	ssize_t n;

	for (;;) {
		h = (struct msghdr){.msg_name = &to,
				    .msg_namelen = sizeof(to),
				    .msg_iov = &iov,
				    .msg_iovlen = 1,
				    .msg_control = control,
				    .msg_controllen = sizeof(control)};
		n = recvmsg(fd, &h, MSG_ERRQUEUE | MSG_DONTWAIT);
		if (n < 0)
			return false;
		ret->quoted_len = (size_t)n;
		ret->stamp_ns = ret->device_ns = 0;
		if (!h.msg_namelen ||
		    addr_from_sockaddr((struct sockaddr *)&to, h.msg_namelen, &ret->to) < 0)
			ret->to = (struct addr){0};
		if (read_extended(&h, ret))
			return true;
	}
}

/* Append ancillary data; h->msg_control has UDP_CONTROL_LEN zeroed bytes. */
static void put_note(struct msghdr *h, int level, int type, const void *data, size_t n)
{
	struct cmsghdr *c = (struct cmsghdr *)(void *)((uint8_t *)h->msg_control +
						       h->msg_controllen);

	assert(h->msg_controllen + CMSG_SPACE(n) <= UDP_CONTROL_LEN);
	c->cmsg_level = level;
	c->cmsg_type = type;
	c->cmsg_len = CMSG_LEN(n);
	memcpy(CMSG_DATA(c), data, n);
	h->msg_controllen += CMSG_SPACE(n);
}

void udp_put_tos(struct msghdr *h, uint8_t family, uint8_t tos)
{
	int value = tos;

	if (family == 4)
		put_note(h, IPPROTO_IP, IP_TOS, &value, sizeof(value));
	else
		put_note(h, IPPROTO_IPV6, IPV6_TCLASS, &value, sizeof(value));
}

void udp_put_source(struct msghdr *h, const struct addr *from)
{
	if (from->family == 4) {
		struct in_pktinfo info = {0};

		memcpy(&info.ipi_spec_dst, from->ip, 4);
		put_note(h, IPPROTO_IP, IP_PKTINFO, &info, sizeof(info));
	} else {
		struct in6_pktinfo info = {.ipi6_ifindex = from->zone};

		memcpy(&info.ipi6_addr, from->ip, 16);
		put_note(h, IPPROTO_IPV6, IPV6_PKTINFO, &info, sizeof(info));
	}
}

void udp_put_stamp(struct msghdr *h, bool device)
{
	uint32_t flags = SOF_TIMESTAMPING_TX_SOFTWARE |
			 (device ? SOF_TIMESTAMPING_TX_HARDWARE : 0);

	put_note(h, SOL_SOCKET, SO_TIMESTAMPING, &flags, sizeof(flags));
}

int udp_send(int fd, struct mmsghdr *msgs, int n, udp_failed_fn *failed, void *user)
{
	int sent = 0, tries = 0;

	for (int i = 0; i < n;) {
		int r = sendmmsg(fd, msgs + i, (unsigned)(n - i), MSG_DONTWAIT);

		if (r > 0) {
			i += r;
			sent += r;
			tries = 0;
		} else if (errno == EAGAIN || errno == ENOBUFS || errno == ENOMEM) {
			break;
		} else if (++tries == SOFT_ERRORS_MAX) {
			/* The tries before may have met errors of earlier datagrams. */
			failed(user, i, errno);
			i++;
			tries = 0;
		}
	}
	return sent;
}

static int route_mtu(int fd, const struct addr *remote, uint32_t *ret_payload)
{
	bool v4 = remote->family == 4;
	int mtu = 0, headers = v4 ? HEADERS_4 : HEADERS_6;
	socklen_t len = sizeof(mtu);

	if (getsockopt(fd, v4 ? IPPROTO_IP : IPPROTO_IPV6, v4 ? IP_MTU : IPV6_MTU, &mtu,
		       &len))
		return -errno;
	*ret_payload = mtu > headers ? (uint32_t)(mtu - headers) : 0;
	return 0;
}

int udp_route(const struct addr *local, const struct addr *remote, const char *netdev,
	      struct addr *ret_local, uint32_t *ret_payload)
{
	struct udp_open o = {.local = *local, .netdev = netdev};
	struct sockaddr_storage sa;
	const char *step;
	bool unbound;
	int fd, r;

	o.local.port = 0;
	if (!addr_is_set(local))
		o.local = (struct addr){.family = remote->family};
	fd = udp_open(&o, &step, &unbound);
	if (fd < 0)
		return fd;
	/* Sends nothing: it looks the route up. */
	r = connect(fd, (struct sockaddr *)&sa, addr_to_sockaddr(remote, &sa)) ? -errno : 0;
	if (!r)
		r = udp_local(fd, ret_local);
	if (!r)
		r = route_mtu(fd, remote, ret_payload);
	(void)close(fd);
	return r;
}
