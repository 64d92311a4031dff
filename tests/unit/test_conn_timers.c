/* SPDX-License-Identifier: BSD-2-Clause */
#include "conn_rig.h"

static void intervals_are_negotiated(void **state)
{
	static const struct {
		uint32_t wanted_us;
		int64_t min_receive;
		uint32_t want_us;
	} rows[] = {
		{10000, 10 * MS, 10000},   {10000, 100 * MS, 100000},
		{50000, 10 * MS, 50000},   {2000000, 100 * MS, 2000000},
		{10000, 0, 10000},
	};
	struct rig g;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct ctl_msg *ack;
		const struct ep_start *s;
		struct conn_params p;
		struct ctl_msg m;

		rx_to_reset_done(&g);
		p = g.c->params;
		p.min_receive = rows[i].min_receive;
		p.heartbeat = 7 * SEC; /* what this side would send itself: no matter */
		conn_set_params(g.c, &p);
		m = from_peer(&g, CTL_PROTOCOL_VERSION);
		m.heartbeat_us = rows[i].wanted_us;
		m.multiplier = 200; /* more than anybody may configure */
		feed_msg(&g, &m);
		s = &find(&g, CA_EP_START)->start;
		assert_int_equal(s->heartbeat_us, rows[i].want_us);
		assert_int_equal(s->multiplier, 100);
		ep_event(&g, EP_READY);
		ack = sent(&g, CTL_PROTOCOL_VERSION_ACK);
		assert_int_equal(ack->heartbeat_us, rows[i].want_us);
		assert_int_equal(ack->min_rx_us, rows[i].min_receive / 1000);
		rig_done(&g);
	}
}

static void tx_keeps_to_what_rx_takes(void **state)
{
	static const struct {
		uint32_t acked_us, min_rx_us, want_us;
	} rows[] = {
		{1000000, 0, 1000000}, /* an old one does not say */
		{1000000, 100000, 1000000},
		{1500000, 1500000, 1500000},
		{1000000, 3000000, 3000000}, /* it contradicts itself */
		{10000, 10000, 1000000},     /* never faster than one's own wish */
	};
	struct rig g;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct ep_start *s;
		struct ctl_msg m;

		tx_to_send_reset(&g);
		hear(&g, CTL_RESET_ACK);
		m = from_peer(&g, CTL_PROTOCOL_VERSION_ACK);
		m.heartbeat_us = rows[i].acked_us;
		m.min_rx_us = rows[i].min_rx_us;
		m.multiplier = 9; /* its own affair */
		feed_msg(&g, &m);
		s = &find(&g, CA_EP_START)->start;
		assert_int_equal(s->heartbeat_us, rows[i].want_us);
		assert_int_equal(s->multiplier, 3);
		assert_int_equal(g.c->heartbeat, rows[i].want_us * 1000LL);
		rig_done(&g);
	}
}

/* The wait for an acknowledgement follows the round trip, between the first guess and
 * what a busy machine takes. */
static void retries_follow_the_round_trip(void **state)
{
	struct conn_params p;
	struct rig g;
	int64_t wait;

	(void)state;
	tx_to_connected(&g);
	p = g.c->params;
	p.ack_timeout = 500 * MS;
	conn_set_params(g.c, &p);
	tick(&g); /* a ping */
	assert_non_null(sent(&g, CTL_PING));
	wait = mono_sub(conn_deadline(g.c), g.now);
	assert_in_range(wait, 450 * MS, 500 * MS);
	g.now = mono_add(g.now, 3 * MS);
	hear(&g, CTL_PING_ACK);
	tick(&g);
	assert_non_null(sent(&g, CTL_PING));
	wait = mono_sub(conn_deadline(g.c), g.now);
	assert_in_range(wait, 180 * MS, 200 * MS);
	g.now = mono_add(g.now, 150 * MS); /* the path has become a long one */
	hear(&g, CTL_PING_ACK);
	tick(&g);
	wait = mono_sub(conn_deadline(g.c), g.now);
	assert_in_range(wait, 150 * MS, 500 * MS);
	rig_done(&g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(intervals_are_negotiated),
		cmocka_unit_test(tx_keeps_to_what_rx_takes),
		cmocka_unit_test(retries_follow_the_round_trip),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
