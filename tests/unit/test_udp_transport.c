/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two transports in one process, over 127.0.0.1 and ::1. Real time, but nothing here
 * depends on being fast: what must come is waited for, what must not come is caught by
 * an order of events, not by a short wait.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "fabric.h"
#include "log.h"
#include "udp_transport.h"

#define PATIENCE (20 * NSEC_PER_SEC)
#define TX_ID 0x1111
#define RX_ID 0x2222
#define EPOCH 0x77

/* One side: a transport with what it reported. */
struct side {
	struct udp_transport *t;
	uint64_t events[EP__MAX];
	struct ep_event last[EP__MAX];
	uint64_t order[EP__MAX]; /* when the last one of a type came */
	uint64_t drops[DROP__MAX];
};

static struct loop *loop;
static struct loop_source *timer, *look;
static struct side tx, rx;
static uint64_t n_events;
static bool (*wanted)(void);
static bool timed_out;
static void (*event_hook)(const struct ep_event *ev);
static bool auto_verbs; /* go on to heartbeats as a connection would */

static void check_wanted(void)
{
	if (wanted && wanted())
		loop_stop(loop);
}

static void on_event(void *user, const struct ep_event *ev)
{
	struct side *s = user;

	assert_in_range(ev->type, 0, EP__MAX - 1);
	s->events[ev->type]++;
	s->order[ev->type] = ++n_events;
	s->last[ev->type] = *ev;
	if (auto_verbs && ev->type == EP_UP)
		udp_ep_probe(s->t, ev->conn_id, ev->epoch);
	if (auto_verbs && ev->type == EP_PROBES_DONE)
		udp_ep_heartbeat(s->t, ev->conn_id, ev->epoch);
	if (event_hook)
		event_hook(ev);
	check_wanted();
}

static void on_drop(void *user, enum drop reason, const struct addr *from)
{
	struct side *s = user;

	assert_true(addr_is_set(from));
	s->drops[reason]++;
	check_wanted();
}

static void on_timeout(void *user, struct mono now)
{
	(void)user;
	(void)now;
	timed_out = true;
	loop_stop(loop);
}

/* Not everything that is waited for comes as an event. */
static void on_look(void *user, struct mono now)
{
	(void)user;
	loop_timer_at(look, mono_add(now, 10 * NSEC_PER_MSEC));
	check_wanted();
}

static void wait_until(bool (*f)(void))
{
	wanted = f;
	timed_out = false;
	loop_timer_at(timer, mono_add(clock_now(), PATIENCE));
	loop_timer_at(look, clock_now());
	if (!f())
		assert_int_equal(loop_run(loop), 0);
	wanted = NULL;
	loop_timer_at(timer, MONO_NEVER);
	loop_timer_at(look, MONO_NEVER);
	assert_false(timed_out);
}

static int setup(void **state)
{
	static const struct udp_callbacks cb = {on_event, on_drop};

	(void)state;
	log_open("test", LOG_ERR);
	loop = loop_new();
	timer = loop_timer(loop, on_timeout, NULL);
	look = loop_timer(loop, on_look, NULL);
	memset(&tx, 0, sizeof(tx));
	memset(&rx, 0, sizeof(rx));
	tx.t = udp_transport_new(loop, &cb, &tx);
	rx.t = udp_transport_new(loop, &cb, &rx);
	auto_verbs = true;
	event_hook = NULL;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	udp_transport_free(tx.t);
	udp_transport_free(rx.t);
	loop_source_free(timer);
	loop_source_free(look);
	loop_free(loop);
	return 0;
}

static struct addr loopback(uint8_t family, uint16_t port)
{
	if (family == 4)
		return (struct addr){.family = 4, .port = port, .ip = {127, 0, 0, 1}};
	return (struct addr){.family = 6, .port = port, .ip = {[15] = 1}};
}

static struct ep_start params(enum conn_role role, uint8_t family)
{
	return (struct ep_start){
		.conn_id = role == ROLE_TX ? TX_ID : RX_ID,
		.peer_conn_id = role == ROLE_TX ? RX_ID : TX_ID,
		.epoch = EPOCH,
		.role = (uint8_t)role,
		.transport = TRANSPORT_UDP,
		.multiplier = 3,
		.heartbeat_us = 20000,
		.local = loopback(family, 0),
		.remote = loopback(family, 0),
		.probe_small = 8,
		.probe_large = 1,
		.connect_timeout_ms = 60000,
	};
}

static bool rx_ready(void)
{
	return rx.events[EP_READY];
}
static bool both_probed(void)
{
	return tx.events[EP_PROBES_DONE] && rx.events[EP_PROBES_DONE];
}
static bool both_have_stats(void)
{
	return tx.events[EP_STATS] && rx.events[EP_STATS];
}
static bool rx_late(void) /* now; a loaded machine may have been late before */
{
	return rx.events[EP_LATE] > rx.events[EP_ALIVE];
}
static bool tx_failed(void)
{
	return tx.events[EP_ERROR];
}
static bool rx_failed(void)
{
	return rx.events[EP_ERROR];
}
static bool tx_reset_done(void)
{
	return tx.events[EP_RESET_DONE];
}
static bool rx_reset_done(void)
{
	return rx.events[EP_RESET_DONE];
}

/* Bring both up; @change may alter what they are started with. */
static void connect_both(uint8_t family, void (*change)(struct ep_start *s))
{
	struct ep_start r = params(ROLE_RX, family), t = params(ROLE_TX, family);

	if (change) {
		change(&r);
		change(&t);
	}
	udp_ep_start(rx.t, &r);
	wait_until(rx_ready);
	assert_true(rx.last[EP_READY].addr.port != 0);
	t.remote = rx.last[EP_READY].addr;
	udp_ep_start(tx.t, &t);
}

static void probe_and_beat(uint8_t family)
{
	connect_both(family, NULL);
	wait_until(both_probed);
	rx.events[EP_STATS] = tx.events[EP_STATS] = 0; /* those of a slow beginning */
	wait_until(both_have_stats);
	assert_int_equal(tx.events[EP_ERROR] + rx.events[EP_ERROR], 0);
	assert_true(tx.order[EP_UP] < tx.order[EP_PROBING]);
	assert_true(rx.order[EP_READY] < rx.order[EP_UP]);
	assert_true(rx.order[EP_UP] < rx.order[EP_PROBING]);
	assert_true(addr_equal(&rx.last[EP_UP].remote, &tx.last[EP_UP].addr));
	/* Loopback's MTU: the large probe went through. */
	assert_true(tx.last[EP_UP].path.mtu > 1472);
	assert_true(tx.last[EP_STATS].stats.received >= 9);
	assert_true(rx.last[EP_STATS].stats.received >= 9);
	assert_true(tx.last[EP_STATS].stats.rtt_p50 > 0);
	assert_true(tx.last[EP_STATS].stats.net_p50 > 0);
	assert_true(tx.last[EP_STATS].stats.host_p50 > 0);
	assert_true(tx.last[EP_STATS].stats.peer_p50 > 0);
	/* Linux stamps what leaves on any interface, loopback too. */
	assert_int_equal(tx.last[EP_STATS].stats.clock, EP_CLOCK_KERNEL);
	assert_true(tx.last[EP_STATS].stats.net_p50 < tx.last[EP_STATS].stats.rtt_max);
	/* On a loaded machine a probe goes twice and so does its echo: nothing else. */
	for (int i = 0; i < DROP__MAX; i++)
		if (i != DROP_REPLAY)
			assert_int_equal(tx.drops[i] + rx.drops[i], 0);
}

static void probes_and_heartbeats_v4(void **state)
{
	(void)state;
	probe_and_beat(4);
}

static bool have_ipv6(void)
{
	struct sockaddr_storage sa;
	struct addr a = loopback(6, 0);
	int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	bool ok = fd >= 0 && !bind(fd, (struct sockaddr *)&sa, addr_to_sockaddr(&a, &sa));

	if (fd >= 0)
		(void)close(fd);
	return ok;
}

static void probes_and_heartbeats_v6(void **state)
{
	(void)state;
	if (!have_ipv6()) {
		print_message("skipped: no ::1 here\n");
		skip();
	}
	probe_and_beat(6);
}

static void set_key(struct ep_start *s)
{
	s->has_key = 1;
	memset(s->key, 7, sizeof(s->key));
}

static void keyed(void **state)
{
	(void)state;
	connect_both(4, set_key);
	wait_until(both_probed);
	assert_int_equal(rx.drops[DROP_BAD_AUTH], 0);
}

static bool rx_noticed(void)
{
	return rx_late() || rx_failed();
}

/* The peer goes without a word; the other side notices: by silence, or by the ICMP
 * error that the echo of a last heartbeat met. */
static void silence_makes_late(void **state)
{
	(void)state;
	connect_both(4, NULL);
	wait_until(both_have_stats);
	udp_ep_reset(tx.t, TX_ID, EPOCH);
	wait_until(tx_reset_done);
	wait_until(rx_noticed);
	if (rx_failed())
		assert_int_equal(rx.last[EP_ERROR].error, EPERR_PORT_UNREACHABLE);
	else
		assert_true(rx.last[EP_LATE].stats.received > 0);
}

/* With the responder gone, its port is closed: ICMP tells at once, before any timer. */
static void port_unreachable_is_an_error(void **state)
{
	(void)state;
	connect_both(4, NULL);
	wait_until(both_probed);
	udp_ep_reset(rx.t, RX_ID, EPOCH);
	wait_until(tx_failed);
	assert_int_equal(tx.last[EP_ERROR].error, EPERR_PORT_UNREACHABLE);
	assert_int_equal(tx.last[EP_ERROR].status, -ECONNREFUSED);
	assert_non_null(strstr(tx.last[EP_ERROR].text, "port unreachable"));
	assert_int_equal(tx.events[EP_ERROR], 1);
	/* A new attempt is not hurt by what is left of the old one. */
	udp_ep_reset(tx.t, TX_ID, EPOCH);
	wait_until(tx_reset_done);
	memset(rx.events, 0, sizeof(rx.events));
	memset(tx.events, 0, sizeof(tx.events));
	connect_both(4, NULL);
	wait_until(both_probed);
}

static bool late_and_alive(void)
{
	return tx.events[EP_LATE] && tx.events[EP_ALIVE] &&
	       tx.order[EP_ALIVE] > tx.order[EP_LATE];
}

static void on_interface(struct ep_start *s)
{
	(void)str_copy(s->netdev, sizeof(s->netdev), "lo");
}

static void bound_to_the_interface(void **state)
{
	(void)state;
	connect_both(4, on_interface);
	wait_until(both_probed);
	assert_int_equal(tx.events[EP_ERROR] + rx.events[EP_ERROR], 0);
}

/* A responder of our own that can fall silent: a plain socket. */
struct fake {
	int fd;
	struct addr addr, peer;
	struct loop_source *source;
	unsigned seen, answer_from, silent_from, silent_to;
};

static void fake_answer(void *user, int fd, unsigned events)
{
	struct fake *f = user;
	static uint8_t buf[FABRIC_MESSAGE_MAX];
	struct sockaddr_storage sa;
	socklen_t len = sizeof(sa);
	ssize_t n = recvfrom(fd, buf, sizeof(buf), MSG_DONTWAIT, (struct sockaddr *)&sa, &len);
	struct fabric_msg m;

	(void)events;
	if (n < 0)
		return;
	assert_int_equal(addr_from_sockaddr((struct sockaddr *)&sa, len, &f->peer), 0);
	assert_int_equal(fabric_decode(buf, (size_t)n, &m), 0);
	f->seen++;
	if (f->seen < f->answer_from || (f->seen >= f->silent_from && f->seen < f->silent_to))
		return;
	m.type++;
	m.conn_id = TX_ID;
	fabric_encode(&m, NULL, buf);
	(void)sendto(fd, buf, (size_t)n, 0, (struct sockaddr *)&sa, len);
}

static void fake_open(struct fake *f)
{
	struct sockaddr_storage sa;
	struct addr a = loopback(4, 0);
	socklen_t len = addr_to_sockaddr(&a, &sa);

	f->fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	assert_true(f->fd >= 0);
	assert_int_equal(bind(f->fd, (struct sockaddr *)&sa, len), 0);
	assert_int_equal(getsockname(f->fd, (struct sockaddr *)&sa, &len), 0);
	assert_int_equal(addr_from_sockaddr((struct sockaddr *)&sa, len, &f->addr), 0);
	f->source = loop_fd(loop, f->fd, LOOP_READ, fake_answer, f);
}

static void fake_close(struct fake *f)
{
	loop_source_free(f->source);
	(void)close(f->fd);
}

static struct ep_start hurt;
#define OTHER_ID 0x3333
#define MUTE_ID	 0x5555

/* The probe has left and its ICMP error waits to be read: change to the next epoch. */
static void renew_when_probing(const struct ep_event *ev)
{
	if (ev->type != EP_PROBING || ev->conn_id != TX_ID)
		return;
	udp_ep_reset(tx.t, TX_ID, EPOCH);
	hurt.epoch = EPOCH + 1;
	udp_ep_start(tx.t, &hurt);
	udp_ep_probe(tx.t, OTHER_ID, EPOCH);
}

static bool three_up(void)
{
	return tx.events[EP_UP] == 3;
}
static bool mute_is_asked(void)
{
	return tx.events[EP_PROBING] && tx.last[EP_PROBING].conn_id == MUTE_ID;
}

/* An ICMP error for what the attempt before has sent does not end the present one. */
static void old_icmp_errors_are_not_ours(void **state)
{
	struct fake gone = {0}, silent = {.answer_from = UINT32_MAX};
	struct ep_start other = params(ROLE_TX, 4), mute = params(ROLE_TX, 4);

	(void)state;
	auto_verbs = false;
	fake_open(&gone); /* a port, which is then closed */
	fake_close(&gone);
	hurt = params(ROLE_TX, 4);
	other.conn_id = OTHER_ID; /* keeps the shared socket open */
	other.peer_conn_id = 0x4444;
	hurt.remote = other.remote = gone.addr;
	/* While its request is the one that is followed, errors wait for the next turn. */
	fake_open(&silent);
	mute.conn_id = MUTE_ID;
	mute.peer_conn_id = 0x6666;
	mute.remote = silent.addr;
	udp_ep_start(tx.t, &hurt);
	udp_ep_start(tx.t, &other);
	udp_ep_start(tx.t, &mute);
	wait_until(three_up);
	udp_ep_probe(tx.t, MUTE_ID, EPOCH);
	wait_until(mute_is_asked);
	event_hook = renew_when_probing;
	udp_ep_probe(tx.t, TX_ID, EPOCH);
	wait_until(tx_failed);
	assert_true(tx.last[EP_UP].epoch == EPOCH + 1);
	assert_int_equal(tx.events[EP_ERROR], 1);
	assert_true(tx.last[EP_ERROR].conn_id == OTHER_ID);
	fake_close(&silent);
}

static void lost_probes_go_again_and_silence_ends(void **state)
{
	/* The first two probes are lost; then 30 heartbeats without an answer. */
	struct fake f = {.answer_from = 3, .silent_from = 30, .silent_to = 60};
	struct ep_start s = params(ROLE_TX, 4);

	(void)state;
	fake_open(&f);
	s.remote = f.addr;
	udp_ep_start(tx.t, &s);
	wait_until(late_and_alive);
	assert_int_equal(tx.events[EP_PROBES_DONE], 1);
	assert_true(tx.last[EP_LATE].stats.consecutive_lost > 0);
	assert_true(tx.last[EP_ALIVE].stats.lost > 2);
	fake_close(&f);
}

static bool tx_probing(void)
{
	return tx.events[EP_PROBING];
}

/* The traffic class is on the datagram. */
static void traffic_class(void **state)
{
	struct ep_start s = params(ROLE_TX, 4);
	struct fake f = {0};
	const struct timeval patience = {20, 0};
	const int on = 1;
	uint8_t buf[FABRIC_LEN], control[64] __attribute__((aligned(8)));
	struct iovec iov = {buf, sizeof(buf)};
	struct msghdr h = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = control,
			   .msg_controllen = sizeof(control)};

	(void)state;
	fake_open(&f);
	loop_fd_set(f.source, 0); /* it is read here */
	assert_int_equal(setsockopt(f.fd, IPPROTO_IP, IP_RECVTOS, &on, sizeof(on)), 0);
	assert_int_equal(setsockopt(f.fd, SOL_SOCKET, SO_RCVTIMEO, &patience,
				    sizeof(patience)), 0);
	s.remote = f.addr;
	s.tos = 0x28;
	udp_ep_start(tx.t, &s);
	wait_until(tx_probing);
	assert_int_equal(recvmsg(f.fd, &h, 0), FABRIC_LEN);
	assert_non_null(CMSG_FIRSTHDR(&h));
	assert_int_equal(CMSG_FIRSTHDR(&h)->cmsg_type, IP_TOS);
	assert_int_equal(*CMSG_DATA(CMSG_FIRSTHDR(&h)), 0x28);
	fake_close(&f);
}

static uint64_t drops_wanted[DROP__MAX];
static bool drops_seen(void)
{
	for (int i = 0; i < DROP__MAX; i++)
		if (tx.drops[i] < drops_wanted[i])
			return false;
	return true;
}

static void send_raw(const struct fake *f, const void *buf, size_t len)
{
	struct sockaddr_storage sa;
	socklen_t n = addr_to_sockaddr(&f->peer, &sa);

	assert_int_equal(sendto(f->fd, buf, len, 0, (struct sockaddr *)&sa, n), len);
}

static void send_msg(const struct fake *f, struct fabric_msg m, const uint8_t *key)
{
	uint8_t buf[FABRIC_LEN];

	fabric_encode(&m, key, buf);
	send_raw(f, buf, sizeof(buf));
}

/* Garbage and forgeries are counted by reason and change nothing. */
static void bad_messages_are_counted(void **state)
{
	struct fake f = {.answer_from = UINT32_MAX}, stranger = {.answer_from = UINT32_MAX};
	struct ep_start s = params(ROLE_TX, 4);
	struct fabric_msg good = {.type = FABRIC_PROBE_ECHO, .length = FABRIC_LEN,
				  .conn_id = TX_ID, .epoch = EPOCH, .seq = 1}, m;
	uint8_t wrong_key[EP_KEY_LEN] = {1}, garbage[200];

	(void)state;
	fake_open(&f);
	fake_open(&stranger);
	set_key(&s);
	s.remote = f.addr;
	udp_ep_start(tx.t, &s);
	wait_until(tx_probing);
	f.peer = tx.last[EP_UP].addr;
	stranger.peer = f.peer;
	memset(garbage, 0x5a, sizeof(garbage));
	send_raw(&f, garbage, sizeof(garbage));
	send_raw(&f, garbage, 10);
	send_raw(&f, garbage, 0);
	send_msg(&f, good, wrong_key);
	send_msg(&f, good, NULL);
	send_msg(&stranger, good, s.key);
	m = good, m.epoch++;
	send_msg(&f, m, s.key);
	m = good, m.conn_id++;
	send_msg(&f, m, s.key);
	m = good, m.type = FABRIC_HEARTBEAT;
	send_msg(&f, m, s.key);
	m = good, m.seq = 1000;
	send_msg(&f, m, s.key);
	memset(drops_wanted, 0, sizeof(drops_wanted));
	drops_wanted[DROP_SHORT] = 2;
	drops_wanted[DROP_MAGIC] = drops_wanted[DROP_BAD_AUTH] = 1;
	drops_wanted[DROP_UNAUTHENTICATED] = drops_wanted[DROP_SOURCE] = 1;
	drops_wanted[DROP_EPOCH] = drops_wanted[DROP_UNKNOWN] = 1;
	drops_wanted[DROP_STATE] = drops_wanted[DROP_REPLAY] = 1;
	wait_until(drops_seen);
	assert_memory_equal(tx.drops, drops_wanted, sizeof(drops_wanted));
	assert_int_equal(tx.events[EP_PROBES_DONE], 0);
	fake_close(&f);
	fake_close(&stranger);
}

static bool rx_saw_stranger(void)
{
	return rx.drops[DROP_SOURCE] > 0;
}

/* rx learns the port from the first good message; another port is then a stranger. */
static void the_port_is_learnt_once(void **state)
{
	struct fake other = {.answer_from = UINT32_MAX};
	struct fabric_msg m = {.type = FABRIC_HEARTBEAT, .length = FABRIC_LEN,
			       .conn_id = RX_ID, .epoch = EPOCH, .seq = 500};

	(void)state;
	connect_both(4, NULL);
	wait_until(both_probed);
	fake_open(&other);
	other.peer = rx.last[EP_READY].addr;
	send_msg(&other, m, NULL);
	wait_until(rx_saw_stranger);
	assert_int_equal(rx.drops[DROP_SOURCE], 1);
	fake_close(&other);
}

static void wrong_keys_never_connect(void **state)
{
	struct ep_start r = params(ROLE_RX, 4), t = params(ROLE_TX, 4);

	(void)state;
	set_key(&r);
	set_key(&t);
	t.key[0] ^= 1;
	r.connect_timeout_ms = 3000;
	udp_ep_start(rx.t, &r);
	wait_until(rx_ready);
	t.remote = rx.last[EP_READY].addr;
	udp_ep_start(tx.t, &t);
	wait_until(rx_failed);
	assert_int_equal(rx.last[EP_ERROR].error, EPERR_CM_TIMEOUT);
	assert_int_equal(rx.last[EP_ERROR].stage, STAGE_LISTEN);
	assert_true(rx.drops[DROP_BAD_AUTH] > 0);
	assert_int_equal(rx.events[EP_UP] + tx.events[EP_PROBES_DONE], 0);
}

/* Reset is answered whatever there is, and verbs of another epoch mean nothing. */
static void reset_is_always_answered(void **state)
{
	(void)state;
	udp_ep_reset(tx.t, 12345, 6);
	wait_until(tx_reset_done);
	assert_true(tx.last[EP_RESET_DONE].conn_id == 12345);
	connect_both(4, NULL);
	wait_until(both_probed);
	udp_ep_reset(rx.t, RX_ID, EPOCH + 1);
	wait_until(rx_reset_done);
	assert_true(rx.last[EP_RESET_DONE].epoch == EPOCH + 1);
	rx.events[EP_STATS] = tx.events[EP_STATS] = 0;
	wait_until(both_have_stats); /* it lives */
	assert_int_equal(tx.events[EP_ERROR], 0);
}

static void expect_error(struct ep_start *s, enum ep_error error)
{
	tx.events[EP_ERROR] = 0;
	udp_ep_start(tx.t, s);
	wait_until(tx_failed);
	assert_int_equal(tx.last[EP_ERROR].error, error);
	assert_true(tx.last[EP_ERROR].text[0] != '\0');
	udp_ep_reset(tx.t, s->conn_id, s->epoch);
	tx.events[EP_RESET_DONE] = 0;
	wait_until(tx_reset_done);
}

static void what_cannot_be_is_said(void **state)
{
	struct ep_start s;

	(void)state;
	s = params(ROLE_TX, 4); /* no port */
	expect_error(&s, EPERR_NO_ADDRESS);
	s = params(ROLE_TX, 4);
	s.remote.port = 9;
	s.local.ip[0] = 198; /* 198.0.0.1 is not of this host */
	expect_error(&s, EPERR_NO_ADDRESS);
	s = params(ROLE_TX, 4);
	s.remote.port = 9;
	(void)str_copy(s.netdev, sizeof(s.netdev), "nosuchdev0");
	expect_error(&s, EPERR_NO_ADDRESS);
	s = params(ROLE_TX, 4);
	s.remote = loopback(6, 9);
	expect_error(&s, EPERR_NO_ADDRESS);
	s = params(ROLE_TX, 4);
	s.transport = TRANSPORT_RC;
	expect_error(&s, EPERR_NOT_SUPPORTED);
}

static unsigned open_fds(void)
{
	unsigned n = 0;

	for (int fd = 0; fd < 1024; fd++) {
		struct sockaddr_storage sa;
		socklen_t len = sizeof(sa);

		n += !getsockname(fd, (struct sockaddr *)&sa, &len);
	}
	return n;
}

#define MANY 500
static bool many_ready(void)
{
	return rx.events[EP_READY] == MANY;
}
static bool many_probed(void)
{
	return tx.events[EP_PROBES_DONE] == MANY && rx.events[EP_PROBES_DONE] == MANY;
}
static bool many_reset(void)
{
	return tx.events[EP_RESET_DONE] == MANY && rx.events[EP_RESET_DONE] == MANY;
}

static bool many_have_beaten(void)
{
	struct ep_stats st;

	return udp_ep_stats(tx.t, MANY, EPOCH, &st) && st.received > 10;
}

/* Between its STATS an endpoint can be asked, and while it is well it is small. */
static void asked_and_small(void)
{
	struct ep_stats st;

	assert_false(udp_ep_stats(tx.t, MANY + 1, EPOCH, &st));
	assert_false(udp_ep_stats(tx.t, MANY, EPOCH + 1, &st));
	assert_true(udp_ep_stats(rx.t, MANY, EPOCH, &st));
	assert_true(st.received > 9);
	assert_in_range(udp_ep_memory(tx.t, MANY), 1, 700);
	assert_in_range(udp_ep_memory(rx.t, MANY), 1, 350);
	assert_int_equal(udp_ep_memory(tx.t, MANY + 1), 0);
}

/* Many endpoints share one socket a side, which goes with the last of them. */
static void sockets_are_shared(void **state)
{
	unsigned before = open_fds();

	(void)state;
	for (uint64_t i = 1; i <= MANY; i++) {
		struct ep_start s = params(ROLE_RX, 4);

		s.conn_id = i;
		s.peer_conn_id = i;
		s.heartbeat_us = 1000000;
		s.probe_size = 1400;
		udp_ep_start(rx.t, &s);
	}
	wait_until(many_ready);
	for (uint64_t i = 1; i <= MANY; i++) {
		struct ep_start s = params(ROLE_TX, 4);

		s.conn_id = i;
		s.peer_conn_id = i;
		s.heartbeat_us = 1000000;
		s.probe_size = 1400;
		s.remote = rx.last[EP_READY].addr;
		udp_ep_start(tx.t, &s);
	}
	wait_until(many_probed);
	assert_int_equal(open_fds(), before + 2);
	wait_until(many_have_beaten);
	asked_and_small();
	for (uint64_t i = 1; i <= MANY; i++) {
		udp_ep_reset(tx.t, i, EPOCH);
		udp_ep_reset(rx.t, i, EPOCH);
	}
	wait_until(many_reset);
	assert_int_equal(open_fds(), before);
}

static void stall(int64_t ns)
{
	struct mono end = mono_add(clock_now(), ns);

	while (!mono_due(end, clock_now()))
		;
}

static uint64_t received_before;

static uint64_t received_now(void)
{
	struct ep_stats st;

	return udp_ep_stats(tx.t, TX_ID, EPOCH, &st) ? st.received : 0;
}

static bool tx_received_more(void)
{
	return received_now() > received_before + 3;
}

/* This process does not run for ten detection times while its peer (the fake, whose
 * answers are written before the stall) has done nothing wrong. */
static void a_local_stall_is_nobody_elses_fault(void **state)
{
	struct ep_start s = params(ROLE_TX, 4);
	struct fake f = {.silent_from = UINT32_MAX, .silent_to = UINT32_MAX};

	(void)state;
	fake_open(&f);
	s.remote = f.addr;
	s.heartbeat_us = 100000; /* a loaded machine has its own stalls: room for them */
	udp_ep_start(tx.t, &s);
	wait_until(tx_probing);
	for (int i = 0; i < 3; i++) {
		stall(600 * NSEC_PER_MSEC);
		received_before = received_now();
		wait_until(tx_received_more);
	}
	assert_int_equal(tx.events[EP_LATE], 0);
	fake_close(&f);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(probes_and_heartbeats_v4),
		T(probes_and_heartbeats_v6),
		T(keyed),
		T(bound_to_the_interface),
		T(traffic_class),
		T(silence_makes_late),
		T(port_unreachable_is_an_error),
		T(old_icmp_errors_are_not_ours),
		T(lost_probes_go_again_and_silence_ends),
		T(bad_messages_are_counted),
		T(the_port_is_learnt_once),
		T(wrong_keys_never_connect),
		T(reset_is_always_answered),
		T(what_cannot_be_is_said),
		T(sockets_are_shared),
		T(a_local_stall_is_nobody_elses_fault),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
