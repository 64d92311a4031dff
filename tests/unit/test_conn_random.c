/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A million random inputs over one connection of each role, most of them plausible,
 * many not; after each one what must always hold is checked.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#include "conn.h"

#define MS    NSEC_PER_MSEC
#define SEC   NSEC_PER_SEC
#define STEPS 500000 /* of each role */

static const struct conn_params params = {
	.heartbeat = 100 * MS,
	.multiplier = 3,
	.ping_interval = 2 * SEC,
	.ack_timeout = 100 * MS,
	.ack_retries = 4,
	.attempt_timeout = 3 * SEC,
	.backoff_min = 200 * MS,
	.backoff_max = 5 * SEC,
	.rx_keep = 10 * SEC,
	.probe_small = 2,
};

/* What the provider of the endpoint knows. */
struct endpoint {
	bool open, up, probed, beats, reset_out;
	uint64_t epoch, reset_epoch;
};

struct rig {
	struct conn *c;
	enum conn_role role;
	struct mono now;
	uint64_t rnd, peer_id, peer_seq, peer_epoch, last_seq, last_start_epoch;
	struct endpoint ep;
	struct ctl_msg last; /* of ours */
	enum conn_state state;
	bool connected, gone, start_asked;
	bool port_down;
	long ups, starts, goners;
	int step;
};

static uint64_t draw(struct rig *g)
{
	g->rnd = mix64(g->rnd);
	return g->rnd >> 16;
}

static bool chance(struct rig *g, unsigned permille)
{
	return draw(g) % 1000 < permille;
}

static void renew(struct rig *g)
{
	struct conn_key k = {.peer = "p",
			     .rail = "0",
			     .role = g->role,
			     .transport = TRANSPORT_UDP,
			     .port_name = "-",
			     .remote = {.family = 4, .ip = {10, 0, 0, 1}}};

	conn_free(g->c);
	g->c = conn_new(&k, &params, g->now, draw(g));
	g->ep = (struct endpoint){0};
	g->last_seq = g->last_start_epoch = 0;
	g->state = CONN_IDLE;
	g->connected = g->gone = g->start_asked = g->port_down = false;
}

static void check_action(struct rig *g, const struct conn_action *a)
{
	struct endpoint *ep = &g->ep;

	assert_false(g->gone); /* nothing comes after GONE */
	switch (a->type) {
	case CA_WANT_START:
		assert_int_equal(g->role, ROLE_TX);
		assert_false(g->port_down);
		g->start_asked = true;
		break;
	case CA_SEND:
		assert_true(a->msg.seq > g->last_seq);
		assert_true(a->msg.src_id == g->c->id && a->msg.cmd && a->msg.epoch);
		g->last_seq = a->msg.seq;
		g->last = a->msg;
		break;
	case CA_EP_START:
		assert_false(ep->open || ep->reset_out);
		assert_true(a->start.epoch && a->start.epoch != g->last_start_epoch);
		*ep = (struct endpoint){.open = true, .epoch = a->start.epoch};
		g->last_start_epoch = a->start.epoch;
		g->starts++;
		break;
	case CA_EP_PROBE:
		assert_true(ep->open && ep->up && a->start.epoch == ep->epoch);
		break;
	case CA_EP_HEARTBEAT:
		assert_true(ep->open && ep->probed && a->start.epoch == ep->epoch);
		ep->beats = true;
		break;
	case CA_EP_RESET:
		assert_true(!ep->open || a->start.epoch == ep->epoch);
		ep->open = false;
		ep->reset_out = true;
		ep->reset_epoch = a->start.epoch;
		break;
	case CA_STATE:
		assert_int_equal(a->state.from, g->state);
		assert_int_not_equal(a->state.to, g->state);
		g->state = a->state.to;
		break;
	case CA_CONNECTED:
		g->connected = !g->connected;
		g->ups += g->connected;
		break;
	case CA_GONE:
		assert_int_equal(g->c->state, CONN_DESTROY);
		g->gone = true;
		g->goners++;
		break;
	}
}

static bool is_up(enum conn_state s)
{
	return s == CONN_CONNECTED || s == CONN_CONNECTED_PING;
}

static void check_conn(struct rig *g)
{
	const struct conn *c = g->c;
	struct mono d = conn_deadline(c);

	assert_int_equal(c->state, g->state); /* each change was told */
	assert_int_equal(c->connected, g->connected);
	assert_int_equal(c->connected, is_up(c->state));
	if (c->connected)
		assert_true(g->ep.open && g->ep.up && g->ep.probed && g->ep.beats);
	assert_true(c->connects - c->losses == (c->connected ? 1 : 0));
	assert_int_equal(c->connects > 0, c->ever_connected);
	if (g->gone)
		return;
	/* No timer is lost: only an established rx leaves it to its endpoint. */
	if (mono_is_set(d))
		assert_true(mono_sub(d, g->now) <= 3600 * SEC);
	else
		assert_true(g->role == ROLE_RX && c->connected && !c->out);
}

static int feed(struct rig *g, struct conn_input in)
{
	static struct conn_actions out;
	enum conn_state before = g->c->state;
	int r;

	out.n = 0;
	r = conn_handle(g->c, &in, g->now, draw(g), &out);
	for (int i = 0; i < out.n; i++)
		check_action(g, &out.a[i]);
	if (r < 0)
		assert_true(in.type == CI_CTL && g->c->state == before);
	check_conn(g);
	if (g->gone)
		renew(g);
	return r;
}

/* To the deadline, or some way towards it. */
static void random_timer(struct rig *g)
{
	struct mono d = conn_deadline(g->c);
	int64_t most = chance(g, 50) ? INT64_MAX : 300 * MS;

	if (mono_is_set(d) && d.ns > g->now.ns)
		g->now.ns += MIN(d.ns - g->now.ns, most);
	feed(g, (struct conn_input){.type = CI_TIMER});
}

/* What a peer of good will would say now. */
static enum ctl_cmd helpful(struct rig *g)
{
	const struct conn *c = g->c;

	if (c->out && c->out->cmd < CTL_STOP && chance(g, 800))
		return (enum ctl_cmd)(c->out->cmd + 1);
	if (g->role == ROLE_TX)
		return c->state >= CONN_FABRIC_START ? CTL_CONNECTED : CTL_RESET_ACK;
	if (c->state == CONN_IDLE)
		return CTL_RESET;
	return c->state == CONN_RESET_DONE ? CTL_PROTOCOL_VERSION : CTL_PING;
}

static void random_message(struct rig *g)
{
	const struct conn *c = g->c;
	struct ctl_msg m = {.cmd = (enum ctl_cmd)(draw(g) % CTL__MAX),
			    .src_id = g->peer_id,
			    .dst_id = c->id,
			    .epoch = c->epoch,
			    .seq = ++g->peer_seq,
			    .transport = TRANSPORT_UDP,
			    .version_min = 1,
			    .version_max = 1,
			    .heartbeat_us = (uint32_t)draw(g),
			    .cause = (uint8_t)(draw(g) % 12),
			    .deadline_sec = (uint32_t)draw(g),
			    .refusal = (uint8_t)(draw(g) % 9),
			    .rdma_addr = {.family = 4, .ip = {10, 0, 0, 1}, .port = 7}};

	if (c->out && chance(g, 700)) /* an answer that fits */
		m.ack_seq = chance(g, 500) ? c->out->seq : c->out->first;
	if (chance(g, 930))
		m.cmd = helpful(g);
	if (m.cmd == CTL_RESET && (!c->epoch || chance(g, 500)))
		m.epoch = ++g->peer_epoch;
	m.has_cookie = m.cmd == CTL_CHALLENGE;
	m.cookie[0] = (uint8_t)draw(g);
	if (chance(g, 30))
		m.version_min = 5;
	if (chance(g, 30))
		m.src_id = chance(g, 500) ? 0 : ++g->peer_id;
	if (chance(g, 30))
		m.seq = draw(g) % (g->peer_seq + 2);
	if (chance(g, 20))
		m.epoch = draw(g) % 3;
	if (chance(g, 20))
		m.dst_id++;
	feed(g, (struct conn_input){.type = CI_CTL, .ctl = &m});
}

static void random_ep_event(struct rig *g)
{
	struct endpoint *ep = &g->ep;
	struct ep_event e = {.conn_id = g->c->id,
			     .epoch = ep->epoch,
			     .type = (uint8_t)(draw(g) % (EP__MAX + 1)),
			     .error = (uint8_t)(draw(g) % (EPERR__MAX + 1)),
			     .stage = (uint8_t)(draw(g) % (STAGE__MAX + 1)),
			     .addr = {.family = 4, .port = 9}};

	if (ep->reset_out && chance(g, 500))
		e.type = EP_RESET_DONE;
	else if (ep->open && chance(g, 800)) /* the way it goes */
		e.type = (uint8_t)(!ep->up	 ? EP_UP
				   : !ep->probed ? EP_PROBES_DONE
						 : EP_STATS);
	if (e.type == EP_RESET_DONE) {
		e.epoch = ep->reset_out ? ep->reset_epoch : ep->epoch;
		ep->reset_out = ep->open = false;
	} else if (chance(g, 50)) {
		e.epoch = draw(g);
	} else if (!ep->open) {
		/* out of order: what was on its way when it was closed */
	} else if (e.type == EP_UP) {
		ep->up = true;
	} else if (e.type == EP_PROBES_DONE) {
		if (g->c->state < CONN_FABRIC_START || !ep->up)
			return; /* probes are not done before they are ordered */
		ep->probed = true;
	}
	feed(g, (struct conn_input){.type = CI_EP, .ep = &e});
}

static void random_rest(struct rig *g)
{
	struct conn_input in = {.type = CI_OPERATOR, .error = EPERR_DEVICE_GONE};

	switch (draw(g) % 8) {
	case 0:
		in.type = CI_PORT_DOWN;
		g->port_down = true;
		break;
	case 1:
	case 2:
	case 3:
		in.type = CI_PORT_UP;
		g->port_down = false;
		break;
	case 4:
		in.type = CI_STOP;
		in.cause = chance(g, 700) ? CAUSE_SHUTDOWN : CAUSE_NONE;
		break;
	case 5:
		conn_set_params(g->c, &params);
		return;
	default:
		break;
	}
	feed(g, in);
}

static void random_step(struct rig *g)
{
	unsigned what = (unsigned)(draw(g) % 100);

	g->now.ns += (int64_t)(draw(g) % (20 * MS));
	if (g->start_asked && chance(g, 500)) {
		g->start_asked = false;
		feed(g, (struct conn_input){.type = CI_START});
	} else if (what < 45) {
		random_message(g);
	} else if (what < 75) {
		random_ep_event(g);
	} else if (what < 97) {
		random_timer(g);
	} else if (what < 98) {
		feed(g,
		     (struct conn_input){.type = CI_START}); /* nobody may have asked */
	} else if (chance(g, 200)) {
		random_rest(g);
	}
}

static void walk(enum conn_role role)
{
	struct rig g = {.role = role,
			.now = {SEC},
			.rnd = 17 + role,
			.peer_id = 1,
			.peer_epoch = 10};

	renew(&g);
	for (g.step = 0; g.step < STEPS; g.step++)
		random_step(&g);
	print_message("%s: %ld starts, %ld times connected, %ld ends\n",
		      enum_name(&role_names, (int)role), g.starts, g.ups, g.goners);
	assert_true(g.starts > 3000 && g.ups > 2000 && g.goners > 100);
	conn_free(g.c);
}

static void tx_holds(void **state)
{
	(void)state;
	walk(ROLE_TX);
}

static void rx_holds(void **state)
{
	(void)state;
	walk(ROLE_RX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tx_holds),
		cmocka_unit_test(rx_holds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
