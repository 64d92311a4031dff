/* SPDX-License-Identifier: BSD-2-Clause */
/* conn_rig.h - one connection, the peer's messages to it and what it does: what tests of
 * connections begin with. Not every test uses all. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#include "conn.h"

#pragma GCC diagnostic ignored "-Wunused-function"

#define MS  NSEC_PER_MSEC
#define SEC NSEC_PER_SEC

static const struct conn_params params = {
	.heartbeat = 1 * SEC,
	.multiplier = 3,
	.ping_interval = 10 * SEC,
	.ack_timeout = 200 * MS,
	.ack_retries = 4,
	.attempt_timeout = 5 * SEC,
	.backoff_min = 1 * SEC,
	.backoff_max = 60 * SEC,
	.rx_keep = 30 * SEC,
	.probe_small = 8,
	.probe_large = 1,
	.probe_size = 4000,
};

/* One connection, its peer played by the test. */
struct rig {
	struct conn *c;
	struct mono now;
	uint64_t rnd;
	uint64_t peer_id, peer_seq, epoch;
	struct conn_actions out;
	int r; /* of the last input */
};

static struct addr peer_addr(uint16_t port)
{
	return (struct addr){.family = 4, .ip = {10, 2, 0, 33}, .port = port};
}

static void rig_init(struct rig *g, enum conn_role role)
{
	struct conn_key k = {.peer = "gpu0033",
			     .rail = "2",
			     .role = role,
			     .transport = TRANSPORT_RC,
			     .port_name = "mlx5_2/1",
			     .remote = peer_addr(0)};

	*g = (struct rig){.now = {SEC}, .rnd = 11, .peer_id = 77, .epoch = 1000};
	g->c = conn_new(&k, &params, g->now, 5);
}

static void rig_done(struct rig *g)
{
	g->c = conn_free(g->c);
}

static void feed(struct rig *g, struct conn_input in)
{
	g->out.n = 0;
	g->rnd = mix64(g->rnd);
	g->r = conn_handle(g->c, &in, g->now, g->rnd, &g->out);
}

static struct ctl_msg from_peer(struct rig *g, enum ctl_cmd cmd)
{
	struct ctl_msg m = {.cmd = cmd,
			    .src_id = g->peer_id,
			    .dst_id = g->c->id,
			    .epoch = g->c->key.role == ROLE_TX ? g->c->epoch : g->epoch,
			    .seq = ++g->peer_seq,
			    .ack_seq = g->c->out ? g->c->out->seq : 0,
			    .transport = TRANSPORT_RC,
			    .version_min = 1,
			    .version_max = 1,
			    .heartbeat_us = 2000000,
			    .probe_small = 3,
			    .rdma_addr = peer_addr(4791)};

	if (cmd == CTL_RESET)
		m.dst_id = 0;
	return m;
}

static void feed_msg(struct rig *g, const struct ctl_msg *m)
{
	feed(g, (struct conn_input){.type = CI_CTL, .ctl = m});
}

static void hear(struct rig *g, enum ctl_cmd cmd)
{
	struct ctl_msg m = from_peer(g, cmd);

	feed_msg(g, &m);
}

static void ep_event(struct rig *g, enum ep_event_type type)
{
	struct ep_event e = {.conn_id = g->c->id,
			     .epoch = g->c->ep_epoch,
			     .type = (uint8_t)type,
			     .addr = peer_addr(1234)};

	feed(g, (struct conn_input){.type = CI_EP, .ep = &e});
}

static void ep_error(struct rig *g, enum ep_error error)
{
	struct ep_event e = {.conn_id = g->c->id,
			     .epoch = g->c->ep_epoch,
			     .type = EP_ERROR,
			     .error = (uint8_t)error};

	feed(g, (struct conn_input){.type = CI_EP, .ep = &e});
}

/* Let the next timer fire. */
static void tick(struct rig *g)
{
	struct mono d = conn_deadline(g->c);

	assert_true(mono_is_set(d));
	g->now.ns = MAX(g->now.ns, d.ns);
	feed(g, (struct conn_input){.type = CI_TIMER});
}

static const struct conn_action *find(const struct rig *g, enum conn_action_type type)
{
	for (int i = 0; i < g->out.n; i++)
		if (g->out.a[i].type == type)
			return &g->out.a[i];
	return NULL;
}

static const struct ctl_msg *sent(const struct rig *g, enum ctl_cmd cmd)
{
	for (int i = 0; i < g->out.n; i++)
		if (g->out.a[i].type == CA_SEND && g->out.a[i].msg.cmd == cmd)
			return &g->out.a[i].msg;
	return NULL;
}

static void tx_to_send_reset(struct rig *g)
{
	rig_init(g, ROLE_TX);
	tick(g);
	assert_non_null(find(g, CA_WANT_START));
	feed(g, (struct conn_input){.type = CI_START});
	assert_int_equal(g->c->state, CONN_SEND_RESET);
	assert_non_null(sent(g, CTL_RESET));
}

static void tx_to_probe(struct rig *g)
{
	tx_to_send_reset(g);
	hear(g, CTL_RESET_ACK);
	assert_non_null(sent(g, CTL_PROTOCOL_VERSION));
	hear(g, CTL_PROTOCOL_VERSION_ACK);
	assert_int_equal(g->c->state, CONN_WAIT_FOR_START);
	ep_event(g, EP_UP);
	assert_non_null(find(g, CA_EP_PROBE));
	ep_event(g, EP_PROBING);
	assert_int_equal(g->c->state, CONN_FABRIC_PROBE);
}

static void tx_to_connected(struct rig *g)
{
	tx_to_probe(g);
	ep_event(g, EP_PROBES_DONE);
	hear(g, CTL_CONNECTED);
	assert_int_equal(g->c->state, CONN_CONNECTED);
	assert_non_null(sent(g, CTL_CONNECTED_ACK));
	assert_non_null(find(g, CA_EP_HEARTBEAT));
	assert_true(g->c->connected);
}

static void rx_to_reset_done(struct rig *g)
{
	rig_init(g, ROLE_RX);
	hear(g, CTL_RESET);
	assert_int_equal(g->c->state, CONN_RESETTING);
	assert_non_null(find(g, CA_EP_RESET));
	ep_event(g, EP_RESET_DONE);
	assert_int_equal(g->c->state, CONN_RESET_DONE);
	assert_int_equal(sent(g, CTL_RESET_ACK)->ack_seq, g->peer_seq);
}

static void rx_to_connected(struct rig *g)
{
	rx_to_reset_done(g);
	hear(g, CTL_PROTOCOL_VERSION);
	assert_int_equal(g->c->state, CONN_WAIT_FOR_START);
	ep_event(g, EP_READY);
	assert_int_equal(sent(g, CTL_PROTOCOL_VERSION_ACK)->ack_seq, g->peer_seq);
	ep_event(g, EP_UP);
	ep_event(g, EP_PROBING);
	ep_event(g, EP_PROBES_DONE);
	assert_int_equal(g->c->state, CONN_CONNECTED);
	assert_non_null(sent(g, CTL_CONNECTED));
}
