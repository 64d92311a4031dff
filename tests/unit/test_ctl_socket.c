/* SPDX-License-Identifier: BSD-2-Clause */
/* Control sockets over loopback; what must come is waited for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "ctl_socket.h"
#include "log.h"

#define PATIENCE (20 * NSEC_PER_SEC)

static struct loop *loop;
static struct loop_source *timer;
static struct {
	int datagrams, unreachable;
	uint8_t buf[2048];
	size_t len;
	bool truncated;
	struct addr from, local, to;
	enum ep_error error;
} got;

static void on_datagram(void *user, const uint8_t *buf, size_t len, bool truncated,
			const struct addr *from, const struct addr *local)
{
	(void)user;
	assert_true(len <= sizeof(got.buf));
	got.datagrams++;
	memcpy(got.buf, buf, len);
	got.len = len;
	got.truncated = truncated;
	got.from = *from;
	got.local = *local;
	loop_stop(loop);
}

static void on_unreachable(void *user, const struct addr *to, enum ep_error error)
{
	(void)user;
	got.unreachable++;
	got.to = *to;
	got.error = error;
	loop_stop(loop);
}

static void on_dropped(void *user, enum drop reason, uint64_t count)
{
	(void)user;
	fail_msg("dropped %d: %lu", (int)reason, (unsigned long)count);
}

static const struct ctl_socket_callbacks callbacks = {on_datagram, on_unreachable, on_dropped};

static void on_timeout(void *user, struct mono now)
{
	(void)user;
	(void)now;
	fail_msg("nothing came");
}

static void wait_once(void)
{
	loop_timer_at(timer, mono_add(clock_now(), PATIENCE));
	assert_int_equal(loop_run(loop), 0);
}

static int setup(void **state)
{
	(void)state;
	log_open("test", LOG_EMERG);
	loop = loop_new();
	timer = loop_timer(loop, on_timeout, NULL);
	memset(&got, 0, sizeof(got));
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	loop_source_free(timer);
	loop_free(loop);
	return 0;
}

/* A plain socket on @a, whose port is then known. */
static int plain_socket(struct addr *a)
{
	struct sockaddr_storage sa;
	socklen_t len = addr_to_sockaddr(a, &sa);
	int fd = socket(a->family == 4 ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&sa, len), 0);
	len = sizeof(sa);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&sa, &len), 0);
	assert_int_equal(addr_from_sockaddr((struct sockaddr *)&sa, len, a), 0);
	return fd;
}

static void send_plain(int fd, const struct addr *to, const void *buf, size_t n)
{
	struct sockaddr_storage sa;
	socklen_t len = addr_to_sockaddr(to, &sa);

	assert_int_equal(sendto(fd, buf, n, 0, (struct sockaddr *)&sa, len), (ssize_t)n);
}

static struct addr v4(uint8_t last, uint16_t port)
{
	return (struct addr){.family = 4, .port = port, .ip = {127, 0, 0, last}};
}

/* A port that nobody has: bind, look, close. Two programs may race for it, so the
 * caller tries again with another. */
static uint16_t free_port(const struct addr *a)
{
	struct addr b = *a;
	int fd = plain_socket(&b);

	(void)close(fd);
	return b.port;
}

static struct ctl_socket *open_on(struct addr any, uint16_t *ret_port)
{
	for (int tries = 0; tries < 50; tries++) {
		struct ctl_socket *s;

		*ret_port = free_port(&any);
		s = ctl_socket_new(loop, &any, 1, *ret_port, &callbacks, NULL);
		if (ctl_socket_bound(s))
			return s;
		ctl_socket_free(s);
	}
	fail_msg("no port could be bound");
	return NULL;
}

/* Bound to any address: the answer leaves from the one that was asked. */
static void answers_leave_from_where_asked(void **state)
{
	struct addr me = v4(1, 0), to, from;
	uint16_t port;
	struct ctl_socket *s = open_on((struct addr){.family = 4}, &port);
	struct sockaddr_storage sa;
	socklen_t len = sizeof(sa);
	int fd = plain_socket(&me);
	char buf[8];

	(void)state;
	to = v4(3, port); /* not the address that routing would choose */
	send_plain(fd, &to, "hello", 5);
	wait_once();
	assert_int_equal(got.len, 5);
	assert_memory_equal(got.buf, "hello", 5);
	assert_false(got.truncated);
	assert_true(addr_equal(&got.from, &me));
	assert_true(addr_equal(&got.local, &to));
	assert_int_equal(ctl_socket_send(s, &got.local, &got.from, "ok", 2), 0);
	assert_int_equal(recvfrom(fd, buf, sizeof(buf), 0, (struct sockaddr *)&sa, &len), 2);
	assert_int_equal(addr_from_sockaddr((struct sockaddr *)&sa, len, &from), 0);
	assert_true(addr_equal(&from, &to));
	(void)close(fd);
	ctl_socket_free(s);
}

/* Loopback may hand a datagram over a little later. */
static void read_one(struct ctl_socket *s)
{
	struct mono until = mono_add(clock_now(), 20 * NSEC_PER_SEC);

	while (!got.datagrams && !mono_due(until, clock_now()))
		ctl_socket_read(s);
}

/* What has come is had without the loop's word. */
static void reads_at_once(void **state)
{
	struct addr me = v4(1, 0), to;
	uint16_t port;
	struct ctl_socket *s = open_on((struct addr){.family = 4}, &port);
	int fd = plain_socket(&me);

	(void)state;
	to = v4(3, port);
	ctl_socket_read(s);
	assert_int_equal(got.datagrams, 0);
	send_plain(fd, &to, "stop", 4);
	read_one(s);
	assert_int_equal(got.datagrams, 1);
	assert_memory_equal(got.buf, "stop", 4);
	(void)close(fd);
	ctl_socket_free(s);
}

static void ipv6_too(void **state)
{
	struct addr me = {.family = 6, .ip = {[15] = 1}}, to, from;
	struct sockaddr_storage sa;
	socklen_t len = addr_to_sockaddr(&me, &sa);
	struct ctl_socket *s;
	uint16_t port;
	char buf[8];
	int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	bool missing = fd < 0 || bind(fd, (struct sockaddr *)&sa, len);

	(void)state;
	if (fd >= 0)
		(void)close(fd);
	if (missing) {
		print_message("skipped: no ::1 here\n");
		skip();
	}
	s = open_on((struct addr){.family = 6}, &port);
	fd = plain_socket(&me);
	to = me;
	to.port = port;
	send_plain(fd, &to, "", 0);
	wait_once();
	assert_int_equal(got.len, 0);
	assert_true(addr_equal(&got.local, &to));
	assert_int_equal(ctl_socket_send(s, &got.local, &got.from, "ok", 2), 0);
	len = sizeof(sa);
	assert_int_equal(recvfrom(fd, buf, sizeof(buf), 0, (struct sockaddr *)&sa, &len), 2);
	assert_int_equal(addr_from_sockaddr((struct sockaddr *)&sa, len, &from), 0);
	assert_true(addr_equal(&from, &to));
	/* No socket of that family. */
	assert_int_equal(ctl_socket_send(s, &(struct addr){0}, &got.to, "", 0), -ENOTCONN);
	(void)close(fd);
	ctl_socket_free(s);
}

static void too_long_is_told(void **state)
{
	static const uint8_t big[3000];
	struct addr me = v4(1, 0), to;
	uint16_t port;
	struct ctl_socket *s = open_on(v4(1, 0), &port);
	int fd = plain_socket(&me);

	(void)state;
	to = v4(1, port);
	send_plain(fd, &to, big, 2048);
	wait_once();
	assert_int_equal(got.len, 2048);
	assert_false(got.truncated);
	send_plain(fd, &to, big, 2049);
	wait_once();
	assert_int_equal(got.len, 2048);
	assert_true(got.truncated);
	send_plain(fd, &to, big, 3000);
	wait_once();
	assert_true(got.truncated);
	(void)close(fd);
	ctl_socket_free(s);
}

/* ICMP tells who cannot be reached, and the next send is not hurt by it. */
static void unreachable_is_told(void **state)
{
	struct addr any = v4(1, 0), gone = v4(1, 0), me = v4(1, 0), from = {0};
	uint16_t port;
	struct ctl_socket *s = open_on(any, &port);
	int fd;

	(void)state;
	gone.port = free_port(&any);
	assert_int_equal(ctl_socket_send(s, &from, &gone, "x", 1), 0);
	fd = plain_socket(&me);
	assert_int_equal(ctl_socket_send(s, &from, &me, "y", 1), 0);
	wait_once();
	assert_int_equal(got.unreachable, 1);
	assert_true(addr_equal(&got.to, &gone));
	assert_int_equal(got.error, EPERR_PORT_UNREACHABLE);
	assert_int_equal(recv(fd, got.buf, sizeof(got.buf), 0), 1);
	(void)close(fd);
	ctl_socket_free(s);
}

/* An address that is not there (yet) does not keep the others from working. */
static void a_missing_address_is_not_fatal(void **state)
{
	const struct addr both[] = {{.family = 4, .ip = {198, 51, 100, 1}}, v4(1, 0)};
	struct ctl_socket *s;

	(void)state;
	s = ctl_socket_new(loop, both, 1, 0, &callbacks, NULL);
	assert_false(ctl_socket_bound(s));
	assert_int_equal(ctl_socket_send(s, &both[0], &both[1], "", 0), -ENOTCONN);
	ctl_socket_free(s);
	s = ctl_socket_new(loop, both, 2, 0, &callbacks, NULL);
	assert_true(ctl_socket_bound(s));
	ctl_socket_free(s);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(answers_leave_from_where_asked),
		T(reads_at_once),
		T(ipv6_too),
		T(too_long_is_told),
		T(unreachable_is_told),
		T(a_missing_address_is_not_fatal),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
