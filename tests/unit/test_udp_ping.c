/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Pings of the udp transport: two transports in one process, over 127.0.0.1. Real time;
 * what must come is waited for.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fabric.h"
#include "log.h"
#include "udp_transport.h"

#define PATIENCE (20 * NSEC_PER_SEC)
#define TX_ID 0x1111
#define RX_ID 0x2222
#define EPOCH 0x77

struct side {
	struct udp_transport *t;
	uint64_t events[EP__MAX], drops[DROP__MAX];
	struct ep_event last[EP__MAX];
	uint64_t ended; /* pings */
};

static struct loop *loop;
static struct loop_source *timer;
static struct side tx, rx;
static bool (*wanted)(void);
static bool timed_out;
static bool beats; /* go on from the probes to heartbeats */
static bool order_ended; /* RESET_DONE came, and no PONG after it */

static void on_event(void *user, const struct ep_event *ev)
{
	struct side *s = user;

	s->events[ev->type]++;
	s->last[ev->type] = *ev;
	if (ev->type == EP_UP)
		udp_ep_probe(s->t, ev->conn_id, ev->epoch);
	if (ev->type == EP_PROBES_DONE && beats)
		udp_ep_heartbeat(s->t, ev->conn_id, ev->epoch);
	if (ev->type == EP_PONG)
		s->ended += ev->ping_done;
	if (s == &tx)
		order_ended = ev->type == EP_RESET_DONE ||
			      (order_ended && ev->type != EP_PONG);
	if (wanted && wanted())
		loop_stop(loop);
}

static void on_drop(void *user, enum drop reason, const struct addr *from)
{
	struct side *s = user;

	(void)from;
	s->drops[reason]++;
}

static void on_timeout(void *user, struct mono now)
{
	(void)user;
	(void)now;
	timed_out = true;
	loop_stop(loop);
}

static void wait_until(bool (*f)(void))
{
	wanted = f;
	timed_out = false;
	loop_timer_at(timer, mono_add(clock_now(), PATIENCE));
	if (!f())
		assert_int_equal(loop_run(loop), 0);
	wanted = NULL;
	loop_timer_at(timer, MONO_NEVER);
	assert_false(timed_out);
}

static int setup(void **state)
{
	static const struct udp_callbacks cb = {on_event, on_drop};

	(void)state;
	log_open("test", LOG_ERR);
	loop = loop_new();
	timer = loop_timer(loop, on_timeout, NULL);
	tx = rx = (struct side){0};
	beats = true;
	tx.t = udp_transport_new(loop, &cb, &tx);
	rx.t = udp_transport_new(loop, &cb, &rx);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	udp_transport_free(tx.t);
	udp_transport_free(rx.t);
	loop_source_free(timer);
	loop_free(loop);
	return 0;
}

static struct ep_start params(enum conn_role role)
{
	const struct addr lo = {.family = 4, .ip = {127, 0, 0, 1}};

	return (struct ep_start){
		.conn_id = role == ROLE_TX ? TX_ID : RX_ID,
		.peer_conn_id = role == ROLE_TX ? RX_ID : TX_ID,
		.epoch = EPOCH,
		.role = (uint8_t)role,
		.transport = TRANSPORT_UDP,
		.multiplier = 3,
		.heartbeat_us = 20000,
		.local = lo,
		.remote = lo,
		.probe_small = 2,
		.probe_large = 1,
		.connect_timeout_ms = 60000,
		.has_key = 1,
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
static bool one_ended(void)
{
	return tx.ended == 1;
}
static bool pong_came(void)
{
	return tx.events[EP_PONG];
}
static bool tx_reset_done(void)
{
	return tx.events[EP_RESET_DONE];
}
static void bring_up(void)
{
	struct ep_start r = params(ROLE_RX), t = params(ROLE_TX);

	udp_ep_start(rx.t, &r);
	wait_until(rx_ready);
	t.remote = rx.last[EP_READY].addr;
	udp_ep_start(tx.t, &t);
	wait_until(both_probed);
}

static void ping(uint32_t id, uint32_t count, uint32_t size, uint32_t interval_us)
{
	const struct ep_ping p = {.conn_id = TX_ID, .epoch = EPOCH, .id = id,
				  .count = count, .size = size,
				  .interval_us = interval_us, .timeout_us = 2000000};

	udp_ep_ping(tx.t, &p);
}

static struct ep_stats stats_of(const struct side *side, uint64_t id)
{
	struct ep_stats s;

	assert_true(udp_ep_stats(side->t, id, EPOCH, &s));
	return s;
}

static const struct ep_stats *pong(void)
{
	return &tx.last[EP_PONG].stats;
}

static void back_to_back(void **state)
{
	(void)state;
	bring_up();
	ping(5, 200, 64, 0);
	wait_until(one_ended);
	assert_int_equal(tx.last[EP_PONG].status, 5);
	assert_int_equal(pong()->sent, 200);
	assert_int_equal(pong()->received, 200);
	assert_int_equal(pong()->lost, 0);
	assert_true(pong()->rtt_min > 0 && pong()->rtt_min <= pong()->rtt_p50);
	assert_true(pong()->rtt_p50 <= pong()->rtt_p99 && pong()->rtt_p99 <= pong()->rtt_max);
	assert_true(pong()->net_p50 > 0 && pong()->host_p50 > 0);
	assert_string_equal(tx.last[EP_PONG].text, "");
}

/* Heartbeats do not notice: none counted twice, none lost, nothing dropped. */
static void heartbeats_go_on_beside_it(void **state)
{
	struct ep_stats t, r;

	(void)state;
	bring_up();
	t = stats_of(&tx, TX_ID);
	r = stats_of(&rx, RX_ID);
	ping(1, 5000, 64, 100);
	wait_until(one_ended);
	assert_int_equal(pong()->received, 5000);
	/* Some 50 a second, as without the ping: far from its number. */
	assert_in_range(stats_of(&tx, TX_ID).sent - t.sent, 1, 2000);
	assert_in_range(stats_of(&rx, RX_ID).received - r.received, 1, 2000);
	assert_int_equal(stats_of(&rx, RX_ID).dropped, 0);
	assert_int_equal(rx.drops[DROP_LIMIT] + rx.drops[DROP_REPLAY], 0);
}

static void the_first_probes_are_enough(void **state)
{
	(void)state;
	beats = false;
	bring_up();
	ping(1, 5, 0, 1000);
	wait_until(one_ended);
	assert_int_equal(pong()->received, 5);
}

static void a_size_that_is_none(void **state)
{
	(void)state;
	bring_up();
	ping(1, 5, 65500, 1000);
	wait_until(one_ended);
	assert_int_equal(pong()->sent, 0);
	assert_string_equal(tx.last[EP_PONG].text, "no datagram is so long");
}

static void a_second_one_ends_the_first(void **state)
{
	(void)state;
	bring_up();
	ping(1, 1000000, 64, 100);
	wait_until(pong_came);
	assert_int_equal(tx.last[EP_PONG].status, 1);
	ping(2, 10, 1024, 1000);
	wait_until(one_ended);
	assert_int_equal(tx.last[EP_PONG].status, 2);
	assert_int_equal(pong()->received, 10);
	/* Count 0 ends one without a word. */
	ping(3, 1000000, 64, 100);
	ping(4, 0, 0, 0);
	ping(5, 1, 64, 0);
	tx.ended = 0;
	wait_until(one_ended);
	assert_int_equal(tx.last[EP_PONG].status, 5);
}

static void a_reset_is_told_before_it_is_done(void **state)
{
	(void)state;
	bring_up();
	ping(1, 1000000, 64, 100);
	wait_until(pong_came);
	udp_ep_reset(tx.t, TX_ID, EPOCH);
	wait_until(tx_reset_done);
	assert_int_equal(tx.ended, 1);
	assert_true(order_ended);
	assert_true(pong()->sent == pong()->received + pong()->lost);
	assert_string_equal(tx.last[EP_PONG].text, "the connection is being reset");
	/* And one of no endpoint is of nobody. */
	ping(2, 1, 64, 0);
	udp_ep_reset(tx.t, TX_ID, EPOCH);
	tx.events[EP_RESET_DONE] = 0;
	wait_until(tx_reset_done);
	assert_int_equal(tx.ended, 1);
}

/* From another port it is not even looked at. */
static void strangers_get_no_echo(void **state)
{
	static const uint8_t no_key[EP_KEY_LEN];
	struct fabric_msg m = {.type = FABRIC_PING, .length = FABRIC_LEN, .conn_id = RX_ID,
			       .epoch = EPOCH, .seq = 1};
	struct addr to;
	struct sockaddr_storage sa;
	uint8_t buf[FABRIC_LEN];
	socklen_t len;
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	(void)state;
	bring_up();
	to = rx.last[EP_READY].addr;
	len = addr_to_sockaddr(&to, &sa);
	fabric_encode(&m, no_key, buf);
	assert_int_equal(sendto(fd, buf, sizeof(buf), 0, (struct sockaddr *)&sa, len),
			 sizeof(buf));
	ping(1, 1, 64, 0);
	wait_until(one_ended);
	assert_int_equal(rx.drops[DROP_SOURCE], 1);
	(void)close(fd);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(back_to_back),
		T(heartbeats_go_on_beside_it),
		T(the_first_probes_are_enough),
		T(a_size_that_is_none),
		T(a_second_one_ends_the_first),
		T(a_reset_is_told_before_it_is_done),
		T(strangers_get_no_echo),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
