/* SPDX-License-Identifier: BSD-2-Clause */
#include "conn_rig.h"

static void keys_print_as_stated(void **state)
{
	char buf[CONN_KEY_MAX];
	struct rig g;

	(void)state;
	rig_init(&g, ROLE_TX);
	assert_string_equal(conn_key_format(&g.c->key, buf),
			    "gpu0033/2:tx:rc:mlx5_2/1>10.2.0.33#0");
	conn_set_port_name(g.c, "mlx5_9/1");
	assert_string_equal(conn_key_format(&g.c->key, buf),
			    "gpu0033/2:tx:rc:mlx5_9/1>10.2.0.33#0");
	rig_done(&g);
}

static void tx_takes_what_the_ack_says(void **state)
{
	const struct ep_start *s;
	struct rig g;

	(void)state;
	tx_to_send_reset(&g);
	assert_int_equal(g.out.a[1].type, CA_SEND);
	assert_int_equal(sent(&g, CTL_RESET)->dst_id, 0);
	assert_true(sent(&g, CTL_RESET)->has_cookie);
	hear(&g, CTL_RESET_ACK);
	assert_int_equal(sent(&g, CTL_PROTOCOL_VERSION)->dst_id, 77);
	assert_int_equal(sent(&g, CTL_PROTOCOL_VERSION)->heartbeat_us, 1000000);
	hear(&g, CTL_PROTOCOL_VERSION_ACK);
	s = &find(&g, CA_EP_START)->start;
	assert_int_equal(s->heartbeat_us, 2000000); /* the larger of both */
	assert_int_equal(s->peer_conn_id, 77);
	assert_int_equal(s->epoch, g.c->epoch);
	assert_int_equal(s->remote.port, 4791);
	assert_int_equal(s->probe_small, 8);
	rig_done(&g);
}

/* As BFD has it: the sender's wish, but no faster than the receiver takes it, and silence
 * is judged by the sender's multiplier. */
static void rx_takes_what_tx_offers(void **state)
{
	const struct ep_start *s;
	const struct ctl_msg *m;
	struct rig g;

	(void)state;
	rx_to_reset_done(&g);
	hear(&g, CTL_PROTOCOL_VERSION);
	s = &find(&g, CA_EP_START)->start;
	assert_int_equal(s->heartbeat_us, 2000000);
	assert_int_equal(s->probe_small, 3);
	assert_int_equal(s->remote.port, 0);
	assert_null(sent(&g, CTL_PROTOCOL_VERSION_ACK)); /* not before it is ready */
	hear(&g, CTL_PROTOCOL_VERSION);
	assert_int_equal(g.out.n, 0);
	hear(&g, CTL_RESET); /* a late copy: answered, the version keeps waiting */
	assert_non_null(sent(&g, CTL_RESET_ACK));
	ep_event(&g, EP_READY);
	m = sent(&g, CTL_PROTOCOL_VERSION_ACK);
	assert_int_equal(m->ack_seq, g.peer_seq - 1); /* the newer of the two */
	assert_int_equal(m->rdma_addr.port, 1234);
	assert_int_equal(m->version_min, 1);
	assert_int_equal(m->heartbeat_us, 2000000);
	hear(&g, CTL_PROTOCOL_VERSION); /* its answer was lost */
	assert_int_equal(sent(&g, CTL_PROTOCOL_VERSION_ACK)->rdma_addr.port, 1234);
	assert_int_equal(g.c->state, CONN_WAIT_FOR_START);
	rig_done(&g);
}

static void resends_have_fresh_numbers_and_any_is_acked(void **state)
{
	uint64_t first, seq;
	struct ctl_msg ack;
	struct rig g;

	(void)state;
	tx_to_send_reset(&g);
	first = seq = g.c->out->seq;
	for (int i = 0; i < 200; i++) { /* for ever, never faster than the first wait */
		struct mono before = g.now;

		tick(&g);
		assert_true(sent(&g, CTL_RESET)->seq > seq);
		assert_true(mono_sub(g.now, before) >= 200 * MS);
		assert_true(mono_sub(g.now, before) <= 60 * SEC);
		seq = g.c->out->seq;
	}
	ack = from_peer(&g, CTL_RESET_ACK);
	ack.ack_seq = seq + 1;
	feed_msg(&g, &ack);
	assert_int_equal(g.r, -(1 + DROP_STATE));
	ack.ack_seq = first - 1;
	feed_msg(&g, &ack);
	assert_int_equal(g.c->state, CONN_SEND_RESET);
	ack.ack_seq = first;
	feed_msg(&g, &ack);
	assert_int_equal(g.c->state, CONN_SEND_PROTOCOL_VERSION);
	rig_done(&g);
}

static void version_gives_up_after_its_retries(void **state)
{
	struct rig g;
	int n = 1;

	(void)state;
	tx_to_send_reset(&g);
	hear(&g, CTL_RESET_ACK);
	for (tick(&g); g.c->state == CONN_SEND_PROTOCOL_VERSION; tick(&g))
		n += sent(&g, CTL_PROTOCOL_VERSION) != NULL;
	assert_int_equal(n, 5);
	assert_int_equal(g.c->state, CONN_FABRIC_RESET);
	rig_done(&g);
}

static void challenges_are_answered_at_once_but_not_for_ever(void **state)
{
	struct ctl_msg ch;
	uint64_t epoch;
	struct rig g;
	int answers = 0;

	(void)state;
	tx_to_send_reset(&g);
	epoch = g.c->epoch;
	ch = from_peer(&g, CTL_CHALLENGE);
	ch.src_id = ch.seq = 0;
	ch.has_cookie = true;
	ch.cookie[0] = 9;
	feed_msg(&g, &ch);
	assert_int_equal(sent(&g, CTL_RESET)->cookie[0], 9);
	assert_int_equal(sent(&g, CTL_RESET)->epoch, epoch);
	feed_msg(&g, &ch); /* a copy */
	assert_null(sent(&g, CTL_RESET));
	for (int i = 0; i < 50; i++) { /* a peer that never is content */
		ch.cookie[0]++;
		ch.ack_seq = g.c->out->seq;
		feed_msg(&g, &ch);
		answers += sent(&g, CTL_RESET) != NULL;
	}
	assert_int_equal(answers, 2);
	tick(&g);
	assert_int_equal(sent(&g, CTL_RESET)->cookie[0], ch.cookie[0]);
	ch.cookie[0]++;
	ch.epoch++;
	feed_msg(&g, &ch);
	assert_int_equal(g.r, -(1 + DROP_EPOCH));
	rig_done(&g);
}

static void reset_is_idempotent_and_old_ones_are_nothing(void **state)
{
	struct ctl_msg old, m;
	struct rig g;

	(void)state;
	rig_init(&g, ROLE_RX);
	old = from_peer(&g, CTL_RESET);
	feed_msg(&g, &old);
	hear(&g, CTL_RESET); /* the same epoch while tearing down */
	assert_int_equal(g.out.n, 0);
	ep_event(&g, EP_RESET_DONE);
	assert_int_equal(sent(&g, CTL_RESET_ACK)->ack_seq, g.peer_seq);
	hear(&g, CTL_RESET);
	assert_int_equal(g.out.n, 1); /* answered, nothing torn down */
	hear(&g, CTL_PROTOCOL_VERSION);
	ep_event(&g, EP_READY);
	m = from_peer(&g, CTL_RESET); /* of an epoch that is overtaken below */
	m.epoch = 1500;
	g.epoch = 2000;
	hear(&g, CTL_RESET); /* a new attempt */
	assert_int_equal(g.c->state, CONN_RESETTING);
	assert_int_equal(find(&g, CA_EP_RESET)->start.epoch, 1000);
	ep_event(&g, EP_RESET_DONE);
	feed_msg(&g, &old); /* played back */
	assert_true(g.r < 0 && g.c->epoch == 2000);
	old.seq = ++g.peer_seq; /* old epoch, fresh number */
	feed_msg(&g, &old);
	assert_int_equal(g.r, -(1 + DROP_EPOCH));
	feed_msg(&g, &m); /* delayed: never seen, but older than what is */
	assert_int_equal(g.r, -(1 + DROP_EPOCH));
	assert_int_equal(g.c->state, CONN_RESET_DONE);
	g.peer_id = 78; /* the peer was restarted */
	g.epoch = 3000;
	g.peer_seq = 0;
	hear(&g, CTL_RESET);
	assert_int_equal(g.c->peer_id, 78);
	m.seq = 1000; /* the old self once more */
	m.epoch = 4000;
	feed_msg(&g, &m);
	assert_int_equal(g.r, -(1 + DROP_REPLAY));
	assert_int_equal(g.c->epoch, 3000);
	rig_done(&g);
}

static void wrong_ids_epochs_and_replays_change_nothing(void **state)
{
	static const enum ctl_cmd cmds[] = {
		CTL_PROTOCOL_VERSION, CTL_CONNECTED, CTL_PING,
		CTL_RESTART,	      CTL_STOP,	     CTL_UNKNOWN,
		CTL_PING_ACK,	      CTL_RESET_ACK, CTL_REFUSED,
		CTL_CHALLENGE};
	struct ctl_msg m;
	struct rig g;

	(void)state;
	for (int role = 0; role < 2; role++) {
		if (role == ROLE_TX)
			tx_to_connected(&g);
		else
			rx_to_connected(&g);
		for (unsigned i = 0; i < ARRAY_LEN(cmds); i++)
			for (int k = 0; k < 4; k++) {
				m = from_peer(&g, cmds[i]);
				if (k == 0)
					m.dst_id++;
				else if (k == 1)
					m.epoch++;
				else if (k == 2)
					m.src_id++;
				else
					m.seq = 1; /* long seen */
				if (m.cmd == CTL_UNKNOWN && k > 1)
					m.ack_seq = 0;
				feed_msg(&g, &m);
				assert_true(g.r < 0);
				assert_int_equal(g.c->state, CONN_CONNECTED);
				assert_null(find(&g, CA_SEND));
			}
		rig_done(&g);
	}
}

static void connected_is_repeated_until_acked(void **state)
{
	struct rig g;

	(void)state;
	rx_to_connected(&g);
	tick(&g);
	assert_non_null(sent(&g, CTL_CONNECTED));
	hear(&g, CTL_CONNECTED_ACK);
	assert_false(g.c->out);
	assert_false(mono_is_set(conn_deadline(g.c))); /* the endpoint watches now */
	hear(&g, CTL_PING);
	assert_int_equal(sent(&g, CTL_PING_ACK)->ack_seq, g.peer_seq);
	rig_done(&g);

	tx_to_connected(&g);
	hear(&g, CTL_CONNECTED);
	assert_non_null(sent(&g, CTL_CONNECTED_ACK)); /* re-acked */
	assert_int_equal(g.c->state, CONN_CONNECTED);
	rig_done(&g);
}

static void connected_may_overtake_the_endpoint(void **state)
{
	struct rig g;

	(void)state;
	tx_to_send_reset(&g);
	hear(&g, CTL_RESET_ACK);
	hear(&g, CTL_PROTOCOL_VERSION_ACK);
	ep_event(&g, EP_UP);
	hear(&g, CTL_CONNECTED); /* before PROBING is told */
	assert_int_equal(g.c->state, CONN_FABRIC_TX_PROBE_ACKS);
	ep_event(&g, EP_PROBING);
	assert_false(g.c->connected);
	ep_event(&g, EP_PROBES_DONE);
	assert_true(g.c->connected);
	rig_done(&g);
}

static void pings_are_for_the_connected(void **state)
{
	struct rig g;

	(void)state;
	rx_to_reset_done(&g);
	hear(&g, CTL_PING);
	assert_int_equal(g.r, -(1 + DROP_STATE));
	assert_null(find(&g, CA_SEND));
	rig_done(&g);

	rx_to_connected(&g); /* it failed: who still pings is told again */
	ep_event(&g, EP_LATE);
	assert_int_equal(sent(&g, CTL_RESTART)->cause, CAUSE_HEARTBEAT_LOST);
	ep_event(&g, EP_RESET_DONE);
	hear(&g, CTL_RESTART_ACK);
	hear(&g, CTL_PING);
	assert_int_equal(sent(&g, CTL_RESTART)->cause, CAUSE_HEARTBEAT_LOST);
	rig_done(&g);
}

static void answered_pings_leave_no_history(void **state)
{
	struct rig g;
	unsigned n;

	(void)state;
	tx_to_connected(&g);
	n = g.c->n_history;
	tick(&g);
	assert_int_equal(g.c->state, CONN_CONNECTED_PING);
	assert_non_null(find(&g, CA_STATE));
	hear(&g, CTL_PING_ACK);
	assert_int_equal(g.c->state, CONN_CONNECTED);
	assert_int_equal(g.c->n_history, n);
	tick(&g);
	ep_event(&g, EP_LATE);
	assert_int_equal(g.c->n_history, n + 1);
	assert_int_equal(conn_history_get(g.c, conn_history_count(g.c) - 1).to, CONN_FABRIC_RESET);
	rig_done(&g);
}

static void the_answer_tells_the_peers_names(void **state)
{
	struct ctl_msg m;
	struct rig g;

	(void)state;
	tx_to_send_reset(&g);
	hear(&g, CTL_RESET_ACK);
	m = from_peer(&g, CTL_PROTOCOL_VERSION_ACK);
	(void)str_copy(m.node, sizeof(m.node), "node33");
	(void)str_copy(m.port_name, sizeof(m.port_name), "mlx5_9/1");
	feed_msg(&g, &m);
	assert_int_equal(g.c->state, CONN_WAIT_FOR_START);
	assert_string_equal(conn_peer_node(g.c), "node33");
	assert_string_equal(conn_peer_port(g.c), "mlx5_9/1");
	rig_done(&g);
}

static void blocked_control_is_no_failure_but_late_is(void **state)
{
	struct rig g;
	struct mono begin;
	int pings = 0;

	(void)state;
	tx_to_connected(&g);
	tick(&g);
	assert_int_equal(g.c->state, CONN_CONNECTED_PING);
	begin = g.now;
	while (mono_sub(g.now, begin) < 300 * SEC) {
		tick(&g);
		pings += sent(&g, CTL_PING) != NULL;
		assert_int_equal(g.c->state, CONN_CONNECTED_PING);
	}
	assert_in_range(pings, 28, 45);
	assert_true(g.c->connected && mono_is_set(g.c->ctl_unanswered_since));
	ep_event(&g, EP_LATE);
	assert_int_equal(g.c->state, CONN_FABRIC_RESET);
	assert_false(g.c->connected);
	assert_true(g.c->late);
	ep_event(&g, EP_ALIVE); /* too late */
	assert_int_equal(g.c->state, CONN_FABRIC_RESET);
	assert_true(g.c->late);
	ep_event(&g, EP_RESET_DONE);
	assert_int_equal(g.c->state, CONN_RESET_DONE);
	rig_done(&g);
}

static int64_t wait_for_start(struct rig *g)
{
	struct mono from = g->now;

	do
		tick(g);
	while (!find(g, CA_WANT_START));
	return mono_sub(g->now, from);
}

static void first_retry_is_quick_unless_it_flaps(void **state)
{
	struct rig g;
	int64_t wait;

	(void)state;
	tx_to_connected(&g);
	g.now = mono_add(g.now, 20 * SEC);
	ep_event(&g, EP_ERROR);
	ep_event(&g, EP_RESET_DONE);
	assert_in_range(wait_for_start(&g), 500 * MS, 999 * MS);
	assert_int_equal(g.c->losses, 1);
	rig_done(&g);

	tx_to_connected(&g); /* lost again and again right after it came up */
	for (int i = 0; i < 12; i++) {
		ep_event(&g, EP_ERROR);
		ep_event(&g, EP_RESET_DONE);
		wait = wait_for_start(&g);
		assert_in_range(wait, 1 * SEC, 60 * SEC);
		feed(&g, (struct conn_input){.type = CI_START});
		hear(&g, CTL_RESET_ACK);
		hear(&g, CTL_PROTOCOL_VERSION_ACK);
		ep_event(&g, EP_UP);
		ep_event(&g, EP_PROBING);
		ep_event(&g, EP_PROBES_DONE);
		hear(&g, CTL_CONNECTED);
		assert_true(g.c->connected);
	}
	assert_true(g.c->backoff.last > 2 * SEC);
	rig_done(&g);
}

static void refusals_wait_long(void **state)
{
	struct rig g;
	struct ctl_msg m;

	(void)state;
	tx_to_send_reset(&g);
	m = from_peer(&g, CTL_REFUSED);
	m.src_id = m.seq = 0;
	m.refusal = REFUSE_LIMIT;
	feed_msg(&g, &m);
	assert_int_equal(g.c->state, CONN_RESET_DONE);
	assert_int_equal(g.c->refusal, REFUSE_LIMIT);
	assert_in_range(wait_for_start(&g), 30 * SEC, 60 * SEC);
	rig_done(&g);

	rx_to_reset_done(&g);
	m = from_peer(&g, CTL_PROTOCOL_VERSION);
	m.version_min = m.version_max = 2;
	feed_msg(&g, &m);
	assert_int_equal(sent(&g, CTL_REFUSED)->refusal, REFUSE_VERSION);
	assert_int_equal(sent(&g, CTL_REFUSED)->ack_seq, m.seq);
	m = from_peer(&g, CTL_PROTOCOL_VERSION);
	m.transport = TRANSPORT_UDP;
	feed_msg(&g, &m);
	assert_int_equal(sent(&g, CTL_REFUSED)->refusal, REFUSE_TRANSPORT);
	hear(&g, CTL_PROTOCOL_VERSION); /* upgraded meanwhile */
	assert_int_equal(g.c->state, CONN_WAIT_FOR_START);
	rig_done(&g);
}

static void unknown_and_restart_begin_anew(void **state)
{
	struct rig g;
	struct ctl_msg m;

	(void)state;
	tx_to_connected(&g);
	m = from_peer(&g, CTL_UNKNOWN); /* answers nothing that is out */
	feed_msg(&g, &m);
	assert_int_equal(g.c->state, CONN_CONNECTED);
	tick(&g); /* ping */
	hear(&g, CTL_UNKNOWN);
	assert_int_equal(g.c->state, CONN_FABRIC_RESET);
	assert_true(mono_is_set(g.c->unknown_at));
	rig_done(&g);

	tx_to_connected(&g);
	m = from_peer(&g, CTL_RESTART);
	m.cause = CAUSE_ENDPOINT_RESTART;
	feed_msg(&g, &m);
	assert_non_null(sent(&g, CTL_RESTART_ACK));
	assert_int_equal(g.c->state, CONN_FABRIC_RESET);
	assert_int_equal(g.c->restart_cause, CAUSE_ENDPOINT_RESTART);
	m.seq = ++g.peer_seq; /* our answer was lost */
	feed_msg(&g, &m);
	assert_non_null(sent(&g, CTL_RESTART_ACK));
	ep_event(&g, EP_RESET_DONE);
	wait_for_start(&g);
	feed(&g, (struct conn_input){.type = CI_START});
	m.seq = ++g.peer_seq; /* of the attempt before: answered, no more */
	feed_msg(&g, &m);
	assert_non_null(sent(&g, CTL_RESTART_ACK));
	assert_int_equal(g.c->state, CONN_SEND_RESET);
	rig_done(&g);
}

static void restarted(struct rig *g, enum cause cause)
{
	struct ctl_msg m = from_peer(g, CTL_RESTART);

	m.cause = (uint8_t)cause;
	feed_msg(g, &m);
	assert_non_null(sent(g, CTL_RESTART_ACK));
	assert_int_equal(g->c->restart_cause, cause);
}

static void a_loss_that_the_peer_told_is_known(void **state)
{
	static const enum cause lost[] = {CAUSE_HEARTBEAT_LOST, CAUSE_TIMEOUT};
	static const enum cause other[] = {CAUSE_ENDPOINT_ERROR, CAUSE_ENDPOINT_RESTART,
					   CAUSE_PORT_DOWN, CAUSE_OPERATOR};
	struct rig g;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(lost); i++) {
		tx_to_connected(&g);
		restarted(&g, lost[i]);
		assert_true(g.c->told_lost && !g.c->late && conn_loss_is_flap(g.c));
		rig_done(&g);
	}
	for (size_t i = 0; i < ARRAY_LEN(other); i++) {
		tx_to_connected(&g);
		restarted(&g, other[i]);
		assert_false(g.c->told_lost);
		rig_done(&g);
	}

	tx_to_connected(&g); /* what this side saw first says more */
	ep_error(&g, EPERR_SEND_FAILED);
	restarted(&g, CAUSE_HEARTBEAT_LOST);
	assert_false(g.c->told_lost);
	rig_done(&g);
}

static void a_failed_attempt_that_the_peer_told_is_known(void **state)
{
	struct rig g;

	(void)state;
	tx_to_probe(&g);
	restarted(&g, CAUSE_ENDPOINT_ERROR);
	assert_int_equal(g.c->state, CONN_FABRIC_RESET);
	assert_true(g.c->told_lost);
	ep_event(&g, EP_RESET_DONE);
	feed(&g, (struct conn_input){.type = CI_PORT_DOWN, .error = EPERR_DEVICE_GONE});
	assert_false(g.c->told_lost); /* an own fault explains it */
	rig_done(&g);
}

static void stop_is_told_and_ends_in_time(void **state)
{
	struct rig g;
	struct mono begin;
	int stops = 1;

	(void)state;
	tx_to_connected(&g);
	begin = g.now;
	feed(&g, (struct conn_input){.type = CI_STOP,
				     .cause = CAUSE_SHUTDOWN,
				     .deadline_sec = 900});
	assert_int_equal(sent(&g, CTL_STOP)->cause, CAUSE_SHUTDOWN);
	assert_int_equal(sent(&g, CTL_STOP)->deadline_sec, 900);
	assert_non_null(find(&g, CA_EP_RESET));
	ep_event(&g, EP_RESET_DONE);
	assert_null(find(&g, CA_GONE)); /* not told yet */
	for (tick(&g); !find(&g, CA_GONE); tick(&g))
		stops += sent(&g, CTL_STOP) != NULL;
	assert_int_equal(stops, 4);
	assert_true(mono_sub(g.now, begin) <= 500 * MS);
	rig_done(&g);

	tx_to_connected(&g);
	feed(&g, (struct conn_input){.type = CI_STOP, .cause = CAUSE_RESTART});
	hear(&g, CTL_STOP_ACK);
	assert_null(find(&g, CA_GONE)); /* the endpoint is still there */
	ep_event(&g, EP_RESET_DONE);
	assert_non_null(find(&g, CA_GONE));
	rig_done(&g);

	tx_to_connected(&g); /* without a word, and the endpoint never answers */
	begin = g.now;
	feed(&g, (struct conn_input){.type = CI_STOP});
	assert_null(find(&g, CA_SEND));
	tick(&g);
	assert_non_null(find(&g, CA_GONE));
	assert_int_equal(mono_sub(g.now, begin), 5 * SEC);
	rig_done(&g);
}

static void peer_stop_is_kept_until_its_deadline(void **state)
{
	struct rig g;
	struct ctl_msg m;

	(void)state;
	rx_to_connected(&g);
	m = from_peer(&g, CTL_STOP);
	m.cause = CAUSE_SHUTDOWN;
	m.deadline_sec = 900;
	feed_msg(&g, &m);
	assert_non_null(sent(&g, CTL_STOP_ACK));
	assert_null(sent(&g, CTL_RESTART));
	assert_int_equal(g.c->stop_cause, CAUSE_SHUTDOWN);
	ep_event(&g, EP_RESET_DONE);
	assert_int_equal(g.c->state, CONN_RESET_DONE);
	assert_int_equal(mono_sub(conn_deadline(g.c), g.now), 900 * SEC);
	tick(&g);
	assert_int_equal(g.c->state, CONN_DESTROY);
	rig_done(&g);

	rx_to_connected(&g);
	m = from_peer(&g, CTL_STOP);
	m.cause = CAUSE_CONFIG; /* it will not come back */
	feed_msg(&g, &m);
	ep_event(&g, EP_RESET_DONE);
	assert_int_equal(mono_sub(conn_deadline(g.c), g.now), 1 * SEC);
	tick(&g);
	assert_int_equal(g.c->state, CONN_DESTROY);
	rig_done(&g);

	tx_to_connected(&g);
	ep_error(&g, EPERR_DISCONNECTED); /* its endpoint is closed first, as it may be */
	m = from_peer(&g, CTL_STOP);
	m.cause = CAUSE_RESTART;
	m.deadline_sec = UINT32_MAX; /* nobody hides behind a stop for ever */
	feed_msg(&g, &m);
	assert_true(mono_sub(g.c->stop_until, g.now) <= 3600 * SEC);
	ep_event(&g, EP_RESET_DONE);
	wait_for_start(&g);
	feed(&g, (struct conn_input){.type = CI_START});
	assert_true(mono_sub(g.c->out->retry_at, g.now) >= 1 * SEC); /* slowly */
	assert_int_equal(g.c->error, EPERR_DISCONNECTED);
	hear(&g, CTL_RESET_ACK);
	assert_int_equal(g.c->stop_cause, CAUSE_NONE); /* back */
	assert_int_equal(g.c->error, EPERR_NONE); /* and no word of RDMA that broke */
	rig_done(&g);

	tx_to_connected(&g);
	m = from_peer(&g, CTL_STOP);
	m.cause = CAUSE_RESTART;
	m.deadline_sec = 60;
	feed_msg(&g, &m);
	ep_event(&g, EP_RESET_DONE);
	wait_for_start(&g);
	feed(&g, (struct conn_input){.type = CI_START});
	m = from_peer(&g, CTL_REFUSED); /* anybody may have sent that */
	m.dst_id = g.c->id;
	m.epoch = g.c->epoch;
	m.ack_seq = g.c->out->seq;
	m.refusal = REFUSE_VERSION;
	m.unproven = true;
	feed_msg(&g, &m);
	assert_int_equal(g.c->stop_cause, CAUSE_RESTART);
	wait_for_start(&g);
	feed(&g, (struct conn_input){.type = CI_START});
	m = from_peer(&g, CTL_REFUSED); /* back, as another one */
	m.dst_id = g.c->id;
	m.epoch = g.c->epoch;
	m.ack_seq = g.c->out->seq;
	m.refusal = REFUSE_VERSION;
	feed_msg(&g, &m);
	assert_int_equal(g.c->stop_cause, CAUSE_NONE);
	assert_int_equal(g.c->refusal, REFUSE_VERSION);
	rig_done(&g);
}

static void port_down_rests(void **state)
{
	struct conn_input in = {.type = CI_PORT_DOWN,
				.error = EPERR_NO_ADDRESS,
				.text = "address gone"};
	struct rig g;
	struct mono until;

	(void)state;
	tx_to_connected(&g);
	g.now = mono_add(g.now, 20 * SEC);
	feed(&g, in);
	assert_int_equal(g.c->state, CONN_FABRIC_RESET);
	assert_string_equal(conn_error_text(g.c), "address gone");
	ep_event(&g, EP_RESET_DONE);
	until = mono_add(g.now, 3600 * SEC);
	while (g.now.ns < until.ns) {
		tick(&g);
		assert_null(find(&g, CA_WANT_START));
	}
	feed(&g, (struct conn_input){.type = CI_PORT_UP});
	assert_int_equal(g.c->error, EPERR_NONE);
	assert_true(wait_for_start(&g) < 300 * MS);
	rig_done(&g);

	rx_to_connected(&g);
	feed(&g, in);
	assert_int_equal(sent(&g, CTL_RESTART)->cause, CAUSE_PORT_DOWN);
	rig_done(&g);
}

static void attempts_end_and_say_where(void **state)
{
	struct rig g;

	(void)state;
	tx_to_probe(&g);
	tick(&g);
	assert_int_equal(g.c->state, CONN_FABRIC_RESET);
	assert_int_equal(g.c->error, EPERR_CM_TIMEOUT);
	assert_string_equal(conn_error_text(g.c),
			    "fabric-probe: nothing happened for 5.0 s");
	tick(&g); /* the teardown hangs: ordered again, nothing is started meanwhile */
	assert_int_equal(g.c->state, CONN_RESETTING);
	assert_non_null(find(&g, CA_EP_RESET));
	tick(&g);
	assert_non_null(find(&g, CA_EP_RESET));
	assert_null(find(&g, CA_WANT_START));
	ep_event(&g, EP_RESET_DONE);
	assert_int_equal(g.c->state, CONN_RESET_DONE);
	ep_event(&g, EP_RESET_DONE); /* the second answer */
	assert_int_equal(g.out.n, 0);
	rig_done(&g);

	rx_to_reset_done(&g);
	tick(&g);
	assert_int_equal(g.c->state, CONN_DESTROY);
	ep_event(&g, EP_RESET_DONE);
	assert_non_null(find(&g, CA_GONE));
	rig_done(&g);
}

static void what_the_peer_tells_is_kept(void **state)
{
	struct ctl_msg m;
	struct rig g;

	(void)state;
	tx_to_connected(&g);
	tick(&g);
	m = from_peer(&g, CTL_PING_ACK);
	m.told_port = TOLD_PORT_DOWN;
	m.told_device = TOLD_DEVICE_STUCK;
	m.told_lateness_us = 412000;
	g.now = mono_add(g.now, 3 * MS);
	feed_msg(&g, &m);
	assert_int_equal(g.c->told_port, TOLD_PORT_DOWN);
	assert_int_equal(g.c->told_device, TOLD_DEVICE_STUCK);
	assert_int_equal(g.c->told_lateness_us, 412000);
	assert_int_equal(g.c->last_ctl_rx.ns, g.now.ns);
	assert_int_equal(g.c->ctl_rto.srtt_us, 3000);
	tick(&g);
	hear(&g, CTL_PING_ACK); /* one that does not say leaves it */
	assert_int_equal(g.c->told_port, TOLD_PORT_DOWN);
	assert_int_equal(g.c->told_device, TOLD_DEVICE_STUCK);
	rig_done(&g);

	tx_to_send_reset(&g); /* an ack that says nowhere to connect to is no ack */
	hear(&g, CTL_RESET_ACK);
	m = from_peer(&g, CTL_PROTOCOL_VERSION_ACK);
	m.rdma_addr = (struct addr){0};
	feed_msg(&g, &m);
	assert_int_equal(g.r, -(1 + DROP_MALFORMED));
	assert_int_equal(g.c->state, CONN_SEND_PROTOCOL_VERSION);
	rig_done(&g);
}

static void operator_reset_and_new_params(void **state)
{
	struct conn_params p = params;
	struct rig g;

	(void)state;
	tx_to_connected(&g);
	p.ping_interval = 1 * SEC;
	conn_set_params(g.c, &p);
	assert_true(mono_sub(conn_deadline(g.c), g.now) <= 1 * SEC);
	feed(&g, (struct conn_input){.type = CI_OPERATOR});
	assert_int_equal(g.c->restart_cause, CAUSE_OPERATOR);
	assert_true(g.c->losses == 1 && !conn_loss_is_flap(g.c));
	ep_event(&g, EP_RESET_DONE);
	assert_true(wait_for_start(&g) <= 1 * SEC);
	rig_done(&g);

	tx_to_send_reset(&g);
	for (int i = 0; i < 30; i++)
		tick(&g);
	feed(&g, (struct conn_input){.type = CI_OPERATOR});
	assert_true(mono_sub(conn_deadline(g.c), g.now) < 300 * MS);
	rig_done(&g);
}

static void start_grants_are_asked_for_again(void **state)
{
	struct rig g;

	(void)state;
	rig_init(&g, ROLE_TX);
	feed(&g, (struct conn_input){.type = CI_START}); /* nobody asked */
	assert_int_equal(g.c->state, CONN_IDLE);
	assert_int_equal(wait_for_start(&g), 0);
	assert_in_range(wait_for_start(&g), 60 * SEC, 120 * SEC);
	rig_done(&g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keys_print_as_stated),
		cmocka_unit_test(tx_takes_what_the_ack_says),
		cmocka_unit_test(rx_takes_what_tx_offers),
		cmocka_unit_test(resends_have_fresh_numbers_and_any_is_acked),
		cmocka_unit_test(version_gives_up_after_its_retries),
		cmocka_unit_test(challenges_are_answered_at_once_but_not_for_ever),
		cmocka_unit_test(reset_is_idempotent_and_old_ones_are_nothing),
		cmocka_unit_test(wrong_ids_epochs_and_replays_change_nothing),
		cmocka_unit_test(connected_is_repeated_until_acked),
		cmocka_unit_test(connected_may_overtake_the_endpoint),
		cmocka_unit_test(pings_are_for_the_connected),
		cmocka_unit_test(answered_pings_leave_no_history),
		cmocka_unit_test(the_answer_tells_the_peers_names),
		cmocka_unit_test(blocked_control_is_no_failure_but_late_is),
		cmocka_unit_test(first_retry_is_quick_unless_it_flaps),
		cmocka_unit_test(refusals_wait_long),
		cmocka_unit_test(unknown_and_restart_begin_anew),
		cmocka_unit_test(a_loss_that_the_peer_told_is_known),
		cmocka_unit_test(a_failed_attempt_that_the_peer_told_is_known),
		cmocka_unit_test(stop_is_told_and_ends_in_time),
		cmocka_unit_test(peer_stop_is_kept_until_its_deadline),
		cmocka_unit_test(port_down_rests),
		cmocka_unit_test(attempts_end_and_say_where),
		cmocka_unit_test(what_the_peer_tells_is_kept),
		cmocka_unit_test(operator_reset_and_new_params),
		cmocka_unit_test(start_grants_are_asked_for_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
