/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The least that a prober over udp can cost: datagrams that are sent evenly spread, sent
 * back, and received, in batches, and nothing else.
 *
 *   udp_echo serve ADDRESS PORT
 *   udp_echo send ADDRESS PORT RATE SIZE EVERY LARGE
 *
 * serve echoes what comes. send sends RATE datagrams a second of SIZE bytes, each EVERY-th
 * of LARGE bytes (0: none), wakes once a millisecond for those that are due, and takes in
 * the echoes. Both run until SIGTERM and then print "SENT RECEIVED". The flow that one
 * belongs to is its number; there is one socket, as a prober of many peers has it.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define BATCH	 64
#define DATAGRAM_MAX 2048
#define TICK_NS	 1000000
#define RCVBUF	 (1 << 20)

static volatile sig_atomic_t ended;

struct batch {
	struct mmsghdr msg[BATCH];
	struct iovec iov[BATCH];
	struct sockaddr_in from[BATCH];
	uint8_t data[BATCH][DATAGRAM_MAX];
};

struct plan {
	uint64_t rate;
	unsigned size, every, large;
	struct sockaddr_in to;
};

static void on_term(int number)
{
	(void)number;
	ended = 1;
}

static int64_t now_ns(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

static void arm(struct batch *b)
{
	for (int i = 0; i < BATCH; i++) {
		b->iov[i] = (struct iovec){b->data[i], DATAGRAM_MAX};
		b->msg[i].msg_hdr = (struct msghdr){.msg_name = &b->from[i],
						    .msg_namelen = sizeof(b->from[i]),
						    .msg_iov = &b->iov[i],
						    .msg_iovlen = 1};
	}
}

static int receive(int fd, struct batch *b)
{
	int n;

	arm(b);
	n = recvmmsg(fd, b->msg, BATCH, MSG_DONTWAIT, NULL);
	return n > 0 ? n : 0;
}

static int send_all(int fd, struct batch *b, int n)
{
	int done = 0;

	while (done < n) {
		int r = sendmmsg(fd, b->msg + done, (unsigned)(n - done), MSG_DONTWAIT);

		if (r <= 0)
			break;
		done += r;
	}
	return done;
}

static void serve(int fd, struct batch *b, uint64_t *sent, uint64_t *received)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	while (!ended) {
		int n;

		if (poll(&p, 1, -1) <= 0)
			continue;
		while ((n = receive(fd, b)) > 0) {
			*received += (uint64_t)n;
			for (int i = 0; i < n; i++)
				b->iov[i].iov_len = b->msg[i].msg_len;
			*sent += (uint64_t)send_all(fd, b, n);
		}
	}
}

static int fill(struct batch *b, const struct plan *plan, uint64_t first, uint64_t end)
{
	int n = (int)(end - first < BATCH ? end - first : BATCH);

	arm(b);
	for (int i = 0; i < n; i++) {
		uint64_t number = first + (uint64_t)i;
		bool large = plan->every && number % plan->every == 0;

		memcpy(b->data[i], &number, sizeof(number));
		b->from[i] = plan->to;
		b->iov[i].iov_len = large ? plan->large : plan->size;
	}
	return n;
}

static void send_evenly(int fd, struct batch *b, const struct plan *plan, uint64_t *sent,
			uint64_t *received)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	int64_t begin = now_ns(), next = begin;
	uint64_t done = 0;

	while (!ended) {
		int64_t wait = next - now_ns();
		struct timespec ts = {.tv_nsec = wait > 0 ? wait : 0};

		if (wait > 0 && ppoll(&p, 1, &ts, NULL) > 0) {
			int n;

			while ((n = receive(fd, b)) > 0)
				*received += (uint64_t)n;
			continue;
		}
		if (wait > 0)
			continue;
		for (uint64_t due = (uint64_t)(next - begin) * plan->rate / 1000000000;
		     done < due;) {
			int n = fill(b, plan, done, due);

			*sent += (uint64_t)send_all(fd, b, n);
			done += (uint64_t)n;
		}
		next += TICK_NS;
	}
}

/* What was on its way when it was told to end. */
static void receive_rest(int fd, struct batch *b, uint64_t sent, uint64_t *received)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	int64_t until = now_ns() + 1000000000;
	int n;

	while (*received < sent && now_ns() < until)
		if (poll(&p, 1, 10) > 0)
			while ((n = receive(fd, b)) > 0)
				*received += (uint64_t)n;
}

static int open_socket(const struct sockaddr_in *at)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), size = RCVBUF;

	if (fd < 0)
		return -1;
	(void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
	if (at && bind(fd, (const struct sockaddr *)at, sizeof(*at))) {
		(void)close(fd);
		return -1;
	}
	return fd;
}

int main(int argc, char **argv)
{
	static struct batch b;
	bool serves = argc == 4 && !strcmp(argv[1], "serve");
	bool sends = argc == 8 && !strcmp(argv[1], "send");
	struct sigaction sa = {.sa_handler = on_term};
	uint64_t sent = 0, received = 0;
	struct plan plan = {.to = {.sin_family = AF_INET}};
	int fd;

	if ((!serves && !sends) || inet_pton(AF_INET, argv[2], &plan.to.sin_addr) != 1) {
		(void)fprintf(stderr, "udp_echo serve ADDRESS PORT | "
				      "send ADDRESS PORT RATE SIZE EVERY LARGE\n");
		return 2;
	}
	plan.to.sin_port = htons((uint16_t)strtoul(argv[3], NULL, 10));
	fd = open_socket(serves ? &plan.to : NULL);
	if (fd < 0) {
		perror("udp_echo");
		return 1;
	}
	(void)sigaction(SIGTERM, &sa, NULL);
	if (serves) {
		serve(fd, &b, &sent, &received);
	} else {
		plan.rate = strtoull(argv[4], NULL, 10);
		plan.size = (unsigned)strtoul(argv[5], NULL, 10);
		plan.every = (unsigned)strtoul(argv[6], NULL, 10);
		plan.large = (unsigned)strtoul(argv[7], NULL, 10);
		if (plan.size < sizeof(uint64_t) || plan.size > DATAGRAM_MAX ||
		    plan.large > DATAGRAM_MAX)
			return 2;
		send_evenly(fd, &b, &plan, &sent, &received);
		receive_rest(fd, &b, sent, &received);
	}
	(void)printf("%llu %llu\n", (unsigned long long)sent, (unsigned long long)received);
	return 0;
}
