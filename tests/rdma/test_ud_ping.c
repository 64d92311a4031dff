/* SPDX-License-Identifier: BSD-2-Clause */
/* Pings over ud, on scripted libraries. */
#include "ud_rig.h"

#include <stdlib.h>

#define ID 9

static const struct ep_ping order = {.conn_id = OURS,
				     .epoch = EPOCH,
				     .id = ID,
				     .count = 3,
				     .size = 64,
				     .timeout_us = 60000000};

static struct ud_rig *probing(struct ep_start *s)
{
	struct ud_rig *r = ud_rig_new();

	if (s->role == ROLE_TX)
		ud_up_tx(r, s);
	else
		ud_up_rx(r, s);
	ud_hot_command(r, WM_EP_PROBE, OURS);
	return r;
}

/* Until so many sends wait: two are some time apart. */
static void await_sends(struct ud_rig *r, int n)
{
	while (fake_ud_qp()->n_sends < n)
		ud_settle(r);
	assert_int_equal(fake_ud_qp()->n_sends, n);
}

static void each_goes_when_the_one_before_is_answered(void **state)
{
	struct ep_start s = ud_start(ROLE_TX);
	struct ud_rig *r = probing(&s);
	uint64_t next = ud_ep(r, OURS)->hb.next_seq;

	(void)state;
	fake_ud_sent(fake_ud_qp(), 1, IBV_WC_SUCCESS); /* the probe */
	ud_ping(r, &order);
	for (uint32_t n = 1; n <= order.count; n++) {
		struct fabric_msg m;

		await_sends(r, 1);
		m = ud_sent_message(0);
		assert_int_equal(m.type, FABRIC_PING);
		assert_int_equal(m.conn_id, THEIRS);
		assert_true(m.seq == ((uint64_t)ID << 32 | n));
		fake_ud_sent(fake_ud_qp(), 1, IBV_WC_SUCCESS);
		ud_message(r, &s, FABRIC_PING_ECHO, m.seq, NULL);
	}
	assert_true(r->pongs >= 1);
	assert_true(r->last_pong.ping_done);
	assert_int_equal(r->last_pong.status, ID);
	assert_int_equal(r->last_pong.stats.received, 3);
	assert_int_equal(r->last_pong.stats.lost, 0);
	assert_true(r->last_pong.stats.rtt_min > 0);
	assert_int_equal(r->last_pong.stats.clock, EP_CLOCK_HOST);
	/* None of them is a heartbeat or an answer to one. */
	assert_int_equal(ud_ep(r, OURS)->hb.next_seq, next);
	assert_int_equal(ud_ep(r, OURS)->hb.stats.received, 0);
	assert_int_equal(r->probes_done, 0);
	ud_reset(r, OURS);
	ud_rig_free(r);
}

static void a_reset_ends_it_with_a_word(void **state)
{
	struct ep_start s = ud_start(ROLE_TX);
	struct ud_rig *r = probing(&s);

	(void)state;
	ud_ping(r, &order);
	fake_ud_sent(fake_ud_qp(), 2, IBV_WC_SUCCESS); /* the probe's and its own */
	ud_reset(r, OURS);
	assert_int_equal(r->resets, 1);
	assert_int_equal(r->last_pong.stats.sent, 1);
	assert_true(r->last_pong.ping_done);
	assert_string_equal(r->last_pong.text, "the connection is being reset");
	assert_int_equal(r->last_pong.stats.lost, r->last_pong.stats.sent);
	ud_rig_free(r);
}

static void it_is_echoed_and_forgotten(void **state)
{
	struct ep_start s = ud_start(ROLE_RX);
	struct ud_rig *r = ud_rig_new();
	struct fabric_msg m;

	(void)state;
	ud_up_rx(r, &s);
	ud_message(r, &s, FABRIC_PING, 1, NULL); /* not probing yet */
	assert_int_equal(fake_ud_qp()->n_sends, 0);
	ud_hot_command(r, WM_EP_PROBE, OURS);
	ud_message(r, &s, FABRIC_PING, UINT64_C(1) << 32 | 1, NULL);
	assert_int_equal(fake_ud_qp()->n_sends, 1);
	m = ud_sent_message(0);
	assert_int_equal(m.type, FABRIC_PING_ECHO);
	assert_int_equal(m.conn_id, THEIRS);
	assert_true(m.t2 > 0 && m.t3 >= m.t2);
	/* The same again is echoed again: nothing is remembered. */
	ud_message(r, &s, FABRIC_PING, UINT64_C(1) << 32 | 1, NULL);
	assert_int_equal(fake_ud_qp()->n_sends, 2);
	assert_int_equal(r->probes_done, 0);
	assert_int_equal(ud_ep(r, OURS)->hb.stats.received, 0);
	fake_ud_sent(fake_ud_qp(), 2, IBV_WC_SUCCESS);
	/* Beyond the limit it is dropped, and a heartbeat is not. */
	ud_ep(r, OURS)->echoes.paid = clock_now().ns + 3600 * NSEC_PER_SEC;
	ud_message(r, &s, FABRIC_PING, 3, NULL);
	assert_int_equal(fake_ud_qp()->n_sends, 0);
	assert_int_equal(atomic_load(&r->w.drops[DROP_LIMIT]), 1);
	ud_message(r, &s, FABRIC_PROBE, 1, NULL);
	assert_int_equal(fake_ud_qp()->n_sends, 1);
	assert_int_equal(fake_ud_qp()->n_recvs, UD_RECVS);
	fake_ud_sent(fake_ud_qp(), 1, IBV_WC_SUCCESS);
	ud_reset(r, OURS);
	ud_rig_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_goes_when_the_one_before_is_answered),
		cmocka_unit_test(a_reset_ends_it_with_a_word),
		cmocka_unit_test(it_is_echoed_and_forgotten),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
