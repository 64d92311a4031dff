/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * attack: what a hostile program on the network sends to a fabd, as fast as it is told.
 *
 *   attack watch NETDEV SECONDS FILE        keep the UDP datagrams that come in
 *   attack flood FILE TARGET KIND COUNT RATE [control|fabric]
 *                                           send them again, or what is made of them,
 * with the addresses that they had; RATE a second, 0: as fast as can be. Prints how
 * many were sent. attack join SOURCE TARGET               ask for a connection, answer
 * the challenge; prints the commands that came back
 *
 * Kinds: garbage (random bytes), replay (as it was), reset (a Reset of nobody's, with
 * no cookie or a wrong one), wrong-key (right ids, a fresh number, another key).
 */
#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <netinet/ip.h>
#include <netinet/udp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "control.h"
#include "fabric.h"
#include "mono.h"

#define CONTROL_PORT 18777
#define DATA_MAX     1472
#define KEPT_MAX     200000
#define BATCH	     64

struct kept {
	struct in_addr src, dst;
	uint16_t sport, dport, len;
	uint8_t data[DATA_MAX];
};

static struct kept *kept;
static size_t n_kept;
static uint64_t seed = 1;

static _Noreturn void die(const char *what)
{
	perror(what);
	exit(1);
}

static struct mono now(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_MONOTONIC, &ts);
	return (struct mono){ts.tv_sec * NSEC_PER_SEC + ts.tv_nsec};
}

static uint64_t rnd(void)
{
	return seed = mix64(seed + 1);
}

/* ---- what passes */

static bool parse(const uint8_t *p, size_t len, struct kept *k)
{
	struct iphdr ip;
	struct udphdr udp;
	size_t head;

	if (len < sizeof(ip))
		return false;
	memcpy(&ip, p, sizeof(ip));
	head = (size_t)ip.ihl * 4;
	if (ip.protocol != IPPROTO_UDP || (ntohs(ip.frag_off) & 0x3fff) ||
	    len < head + sizeof(udp))
		return false;
	memcpy(&udp, p + head, sizeof(udp));
	*k = (struct kept){.src.s_addr = ip.saddr,
			   .dst.s_addr = ip.daddr,
			   .sport = ntohs(udp.source),
			   .dport = ntohs(udp.dest)};
	k->len = (uint16_t)(ntohs(udp.len) - sizeof(udp));
	if (k->len > DATA_MAX || head + sizeof(udp) + k->len > len)
		return false;
	memcpy(k->data, p + head + sizeof(udp), k->len);
	return true;
}

static void put(FILE *f, const struct kept *k)
{
	if (fwrite(k, offsetof(struct kept, data) + k->len, 1, f) != 1)
		die("fwrite");
}

static int watch(const char *netdev, double seconds, const char *path)
{
	struct sockaddr_ll at = {.sll_family = AF_PACKET,
				 .sll_protocol = htons(ETH_P_IP),
				 .sll_ifindex = (int)if_nametoindex(netdev)};
	int fd = socket(AF_PACKET, SOCK_DGRAM | SOCK_CLOEXEC, htons(ETH_P_IP));
	struct mono end = mono_add(now(), (int64_t)(seconds * 1e9));
	int room = 64 << 20;
	size_t n = 0;
	FILE *f = fopen(path, "w");

	if (fd < 0 || !f || bind(fd, (struct sockaddr *)&at, sizeof(at)) < 0)
		die("watch");
	(void)setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof(room));
	puts("watching");
	(void)fflush(stdout);
	for (int64_t left; n < KEPT_MAX && (left = mono_sub(end, now())) > 0;) {
		struct pollfd p = {.fd = fd, .events = POLLIN};
		uint8_t buf[2048];
		struct kept k;
		ssize_t len;

		if (poll(&p, 1, (int)(left / NSEC_PER_MSEC) + 1) <= 0)
			continue;
		len = recv(fd, buf, sizeof(buf), MSG_DONTWAIT);
		if (len > 0 && parse(buf, (size_t)len, &k)) {
			put(f, &k);
			n++;
		}
	}
	if (fclose(f))
		die(path);
	return 0;
}

static void load(const char *path, struct in_addr target, const char *only)
{
	FILE *f = fopen(path, "r");
	struct kept k;

	if (!f)
		die(path);
	kept = xcalloc(KEPT_MAX, sizeof(*kept));
	while (fread(&k, offsetof(struct kept, data), 1, f) == 1) {
		bool control;

		if (k.len > DATA_MAX || (k.len && fread(k.data, k.len, 1, f) != 1))
			break;
		control = k.dport == CONTROL_PORT;
		if (k.dst.s_addr == target.s_addr && n_kept < KEPT_MAX &&
		    (!only || control == str_eq(only, "control")))
			kept[n_kept++] = k;
	}
	(void)fclose(f);
	if (!n_kept) {
		fprintf(stderr, "%s has nothing that went to the target\n", path);
		exit(1);
	}
}

/* ---- what is made of it */

static const struct auth_key wrong = {
	.id = 0x11223344, .secret = "not the key of these two hosts", .len = 30};

static void garbage(struct kept *k)
{
	k->len = (uint16_t)(rnd() % 200);
	for (uint16_t i = 0; i < k->len; i++)
		k->data[i] = (uint8_t)rnd();
}

static void replay(struct kept *k)
{
	(void)k;
}

/* From any port: a cookie is bound to it. */
static void reset(struct kept *k)
{
	struct ctl_msg m = {.cmd = CTL_RESET,
			    .src_id = rnd() | 1,
			    .epoch = rnd() | 1,
			    .seq = 1 + rnd() % 1000,
			    .transport = TRANSPORT_UDP,
			    .probe_tag = rnd(),
			    .has_cookie = true};
	uint8_t buf[CTL_DATAGRAM_MAX];

	if (rnd() % 8)
		for (size_t i = 0; i < sizeof(m.cookie); i++)
			m.cookie[i] = (uint8_t)rnd();
	(void)str_copy(m.node, sizeof(m.node), "nobody");
	(void)str_copy(m.rail, sizeof(m.rail), "0");
	(void)str_copy(m.port_name, sizeof(m.port_name), "-");
	k->len = (uint16_t)ctl_encode(&m, NULL, buf);
	memcpy(k->data, buf, k->len);
	k->dport = CONTROL_PORT;
	k->sport = (uint16_t)(1024 + rnd() % 60000);
}

static const enum ctl_cmd worst[] = {CTL_RESET, CTL_STOP, CTL_RESTART,
				     CTL_PROTOCOL_VERSION};

static void wrong_key(struct kept *k)
{
	uint8_t key[EP_KEY_LEN] = {7};
	uint8_t buf[CTL_DATAGRAM_MAX];
	struct ctl_auth auth;
	struct fabric_msg f;
	struct ctl_msg m;

	if (k->dport != CONTROL_PORT) {
		if (fabric_decode(k->data, k->len, &f))
			return;
		f.seq += 1 + rnd() % 1000;
		fabric_encode(&f, key, k->data);
		return;
	}
	if (ctl_decode(k->data, k->len, &m, &auth))
		return;
	m.seq += 1 + rnd() % 1000000;
	if (rnd() % 2) {
		m.cmd = worst[rnd() % ARRAY_LEN(worst)];
		m.cause = CAUSE_SHUTDOWN;
		m.transport = TRANSPORT_UDP;
		m.version_min = m.version_max = 1;
		m.heartbeat_us = 1000000;
		m.multiplier = 3;
		m.rdma_addr =
			(struct addr){.family = 4, .port = 1, .ip = {10, 99, 0, 9}};
	}
	k->len = (uint16_t)ctl_encode(&m, &wrong, buf);
	memcpy(k->data, buf, k->len);
}

static const struct {
	const char *name;
	void (*make)(struct kept *k);
} kinds[] = {{"garbage", garbage},
	     {"replay", replay},
	     {"reset", reset},
	     {"wrong-key", wrong_key}};

/* ---- sending */

struct packet {
	struct iphdr ip;
	struct udphdr udp;
	uint8_t data[DATA_MAX];
} __attribute__((packed));

/* A UDP checksum of 0 is none; the kernel fills in that of IP. */
static size_t wrap(const struct kept *k, struct packet *p)
{
	p->ip = (struct iphdr){.version = 4,
			       .ihl = 5,
			       .ttl = 64,
			       .protocol = IPPROTO_UDP,
			       .saddr = k->src.s_addr,
			       .daddr = k->dst.s_addr};
	p->udp = (struct udphdr){.source = htons(k->sport),
				 .dest = htons(k->dport),
				 .len = htons((uint16_t)(sizeof(p->udp) + k->len))};
	memcpy(p->data, k->data, k->len);
	return sizeof(p->ip) + sizeof(p->udp) + k->len;
}

static void pace(struct mono start, uint64_t sent, uint64_t rate)
{
	int64_t due, ahead;

	if (!rate)
		return;
	due = (int64_t)(sent * NSEC_PER_SEC / rate);
	ahead = due - mono_sub(now(), start);
	if (ahead > NSEC_PER_MSEC) {
		struct timespec ts = {ahead / NSEC_PER_SEC, ahead % NSEC_PER_SEC};

		(void)nanosleep(&ts, NULL);
	}
}

static int flood(const char *target, const char *kind, uint64_t count, uint64_t rate)
{
	static struct packet packets[BATCH];
	int fd = socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_RAW), room = 4 << 20;
	struct sockaddr_in to = {.sin_family = AF_INET};
	struct mmsghdr msgs[BATCH];
	struct iovec iov[BATCH];
	struct mono start = now();
	uint64_t sent = 0;
	void (*make)(struct kept *) = NULL;

	for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
		if (str_eq(kind, kinds[i].name))
			make = kinds[i].make;
	if (!make || fd < 0 || inet_pton(AF_INET, target, &to.sin_addr) != 1)
		die("flood");
	(void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &room, sizeof(room));
	while (sent < count) {
		int n = (int)MIN(count - sent, (uint64_t)BATCH), r;

		for (int i = 0; i < n; i++) {
			struct kept k = kept[rnd() % n_kept];

			make(&k);
			iov[i] = (struct iovec){&packets[i], wrap(&k, &packets[i])};
			msgs[i] =
				(struct mmsghdr){.msg_hdr = {.msg_name = &to,
							     .msg_namelen = sizeof(to),
							     .msg_iov = &iov[i],
							     .msg_iovlen = 1}};
		}
		r = sendmmsg(fd, msgs, (unsigned)n, 0);
		if (r < 0 && errno != ENOBUFS && errno != EAGAIN)
			die("sendmmsg");
		sent += (uint64_t)MAX(r, 0);
		pace(start, sent, rate);
	}
	printf("%" PRIu64 "\n", sent);
	return 0;
}

/* ---- who answers the challenge */

static int receive(int fd, struct ctl_msg *m)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	uint8_t buf[CTL_DATAGRAM_MAX];
	struct ctl_auth auth;
	ssize_t n;

	if (poll(&p, 1, 1000) <= 0)
		return -ETIMEDOUT;
	n = recv(fd, buf, sizeof(buf), 0);
	if (n < 0)
		return -errno;
	return ctl_decode(buf, (size_t)n, m, &auth) ? -EBADMSG : 0;
}

static int join(const char *source, const char *target)
{
	struct sockaddr_in from = {.sin_family = AF_INET};
	struct sockaddr_in to = {.sin_family = AF_INET,
				 .sin_port = htons(CONTROL_PORT)};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ctl_msg m = {.cmd = CTL_RESET,
			    .src_id = rnd() | 1,
			    .epoch = rnd() | 1,
			    .seq = 1,
			    .transport = TRANSPORT_UDP,
			    .has_cookie = true};
	struct ctl_msg answer;
	uint8_t buf[CTL_DATAGRAM_MAX];

	(void)str_copy(m.node, sizeof(m.node), "joiner");
	(void)str_copy(m.rail, sizeof(m.rail), "0");
	(void)str_copy(m.port_name, sizeof(m.port_name), "-");
	if (fd < 0 || inet_pton(AF_INET, source, &from.sin_addr) != 1 ||
	    inet_pton(AF_INET, target, &to.sin_addr) != 1 ||
	    bind(fd, (struct sockaddr *)&from, sizeof(from)) < 0 ||
	    connect(fd, (struct sockaddr *)&to, sizeof(to)) < 0)
		die("join");
	for (int i = 0; i < 2; i++) {
		size_t len = ctl_encode(&m, NULL, buf);

		if (send(fd, buf, len, 0) < 0)
			die("send");
		if (receive(fd, &answer)) {
			puts("nothing");
			return 0;
		}
		puts(enum_name(&ctl_cmd_names, answer.cmd));
		if (answer.cmd != CTL_CHALLENGE)
			return 0;
		memcpy(m.cookie, answer.cookie, sizeof(m.cookie));
		m.seq++;
	}
	return 0;
}

int main(int argc, char *argv[])
{
	const char *what = argc > 1 ? argv[1] : "";
	struct in_addr target;

	seed = (uint64_t)now().ns;
	if (str_eq(what, "watch") && argc == 5)
		return watch(argv[2], strtod(argv[3], NULL), argv[4]);
	if (str_eq(what, "flood") && argc >= 7 &&
	    inet_pton(AF_INET, argv[3], &target) == 1) {
		load(argv[2], target, argc > 7 ? argv[7] : NULL);
		return flood(argv[3], argv[4], strtoull(argv[5], NULL, 10),
			     strtoull(argv[6], NULL, 10));
	}
	if (str_eq(what, "join") && argc == 4)
		return join(argv[2], argv[3]);
	fprintf(stderr, "usage: see the top of attack.c\n");
	return 2;
}
