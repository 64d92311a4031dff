/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The cm thread's work against scripted libraries: after whatever sequence of events
 * and failures, a reset is answered once, an attempt fails at most once, every event is
 * acknowledged and every object destroyed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "cm.h"
#include "fake_ud.h"

#define OURS   UINT64_C(0x1111)
#define THEIRS UINT64_C(0x2222)
#define EPOCH  UINT64_C(77)

struct rig {
	struct worker w;
	struct cm cm;
	/* what the worker said, counted */
	int stages, ready, up, errors, resets, listening, goodbyes;
	struct ep_event error;
	int listen_error;
	enum wm_goodbye_why goodbye;
	bool hold_hot; /* hot does not answer */
};

static const struct addr here = {.family = 4, .port = 18777, .ip = {10, 0, 0, 1}};
static const struct addr there = {.family = 4, .port = 18777, .ip = {10, 0, 0, 2}};

static struct rig *rig_new(void)
{
	struct rig *r = xcalloc(1, sizeof(*r));
	struct wm_init init = {.device = "fake0", .max_endpoints = 4};

	fake_reset();
	wm_header(&init, WM_INIT, sizeof(init), 1);
	worker_init(&r->w, &init);
	r->w.device_index = 3;
	atomic_store(&r->w.device_state, DEVICE_READY);
	(void)addr_to_sockaddr(&there, &fake.request_from);
	cm_init(&r->cm, &r->w);
	return r;
}

/* Take the place of ctl and hot until all is quiet. */
static void settle(struct rig *r)
{
	union cm_message m;
	struct hot_order o;

	for (int i = 0; i < 4; i++) {
		wake(r->w.wake_cm);
		cm_turn(&r->cm);
		while (!r->hold_hot && ring_pop(&r->w.cm_to_hot, &o))
			if (o.type == HOT_DETACH)
				assert_true(ring_push(
					&r->w.hot_to_cm,
					&(struct hot_note){.type = HOT_DETACHED,
							   .handle = o.ep->handle}));
	}
	while (ring_pop(&r->w.cm_out, &m)) {
		char why[128];

		assert_int_equal(wm_check(&m, m.h.length, false, why, sizeof(why)), 0);
		if (m.h.type == WM_LISTENING) {
			r->listening++;
			r->listen_error = m.listening.error;
		} else if (m.h.type == WM_GOODBYE) {
			r->goodbyes++;
			r->goodbye = (enum wm_goodbye_why)m.goodbye.why;
		} else {
			const struct ep_event *e = &m.event.event;

			r->stages += e->type == EP_STAGE;
			r->ready += e->type == EP_READY;
			r->up += e->type == EP_UP;
			r->resets += e->type == EP_RESET_DONE;
			if (e->type == EP_ERROR) {
				r->errors++;
				r->error = *e;
				assert_true(e->text[0]);
			}
		}
	}
}

static void rig_free(struct rig *r)
{
	struct ring *rings[] = {&r->w.ctl_to_cm, &r->w.ctl_to_hot, &r->w.cm_to_hot,
				&r->w.hot_to_cm, &r->w.facts_out,  &r->w.cm_out,
				&r->w.hot_out, &r->w.rounds_out};

	cm_unlisten_all(&r->cm);
	fake_check_balance(0);
	cm_done(&r->cm);
	assert_int_equal(fake.pds + fake.comp_channels + fake.channels, 0);
	for (size_t i = 0; i < ARRAY_LEN(rings); i++)
		ring_done(rings[i]);
	(void)close(r->w.wake_ctl);
	(void)close(r->w.wake_facts);
	(void)close(r->w.wake_cm);
	(void)close(r->w.wake_hot);
	free(r);
}

static void command(struct rig *r, uint16_t type, const struct ep_start *s)
{
	struct cm_command c = {.type = type, .addr = here};

	if (s)
		c.start = *s;
	assert_true(ring_push(&r->w.ctl_to_cm, &c));
	settle(r);
}

static struct ep_start start_of(enum conn_role role)
{
	return (struct ep_start){
		.conn_id = OURS,
		.peer_conn_id = THEIRS,
		.epoch = EPOCH,
		.role = (uint8_t)role,
		.transport = TRANSPORT_RC,
		.tos = 0x20,
		.sl = EP_SL_ANY,
		.ack_timeout = 14,
		.retry_count = 3,
		.multiplier = 3,
		.local = here,
		.remote = there,
		.heartbeat_us = 100000,
		.resolve_timeout_ms = 2000,
		.connect_timeout_ms = 5000,
		.probe_small = 8,
	};
}

static void reset(struct rig *r)
{
	struct ep_start s = start_of(ROLE_TX);

	command(r, WM_EP_RESET, &s);
}

/* The peer's word, or our own timer, ends the wait of a reset. */
static void finish_reset(struct rig *r)
{
	if (!r->resets && !r->hold_hot) {
		cm_timers(&r->cm, mono_add(clock_now(), NSEC_PER_SEC));
		settle(r);
	}
}

static struct rdma_cm_id *id_of(struct rig *r)
{
	struct endpoint *ep = endpoint_by_conn(&r->cm.table, OURS);

	return ep ? ep->id : NULL;
}

static void event(struct rig *r, enum rdma_cm_event_type type, int status)
{
	struct rdma_cm_id *id = id_of(r);

	if (!id)
		return;
	fake_event(id, type, status);
	settle(r);
}

enum step { STEP_RESOLVE_ADDR, STEP_RESOLVE_ROUTE, STEP_CONNECT, STEP_UP, STEP__MAX };

static void bring_tx(struct rig *r, enum step to)
{
	struct ep_start s = start_of(ROLE_TX);

	command(r, WM_EP_START, &s);
	if (to >= STEP_RESOLVE_ROUTE)
		event(r, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	if (to >= STEP_CONNECT)
		event(r, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
	if (to >= STEP_UP)
		event(r, RDMA_CM_EVENT_ESTABLISHED, 0);
}

static struct rdma_cm_id *request(struct rig *r, uint64_t dst, uint64_t src,
				  uint64_t epoch)
{
	struct cmdata_request q = {
		.dst_conn_id = dst, .src_conn_id = src, .epoch = epoch};
	uint8_t data[CMDATA_REQUEST_LEN];
	struct rdma_cm_id *id;

	cmdata_request_encode(&q, data);
	id = fake_request(r->cm.listeners->id, data, sizeof(data));
	settle(r);
	return id;
}

/* ---- */

static void prober_comes_up_and_goes(void **state)
{
	struct rig *r = rig_new();

	(void)state;
	bring_tx(r, STEP_UP);
	assert_int_equal(r->stages, 3);
	assert_int_equal(r->up, 1);
	assert_int_equal(fake.connects, 1);
	reset(r);
	assert_int_equal(fake.disconnects, 1);
	assert_int_equal(r->resets, 0); /* the peer has not answered yet */
	event(r, RDMA_CM_EVENT_DISCONNECTED, 0);
	assert_int_equal(r->resets, 1);
	assert_int_equal(r->errors, 0);
	reset(r); /* no such endpoint: answered all the same */
	assert_int_equal(r->resets, 2);
	rig_free(r);
}

/* Nothing is said to the peer while nothing can be sent: soft-RoCE does not survive the
 * attempt. The reset is answered all the same. */
static void no_goodbye_where_none_can_be_sent(void **state)
{
	struct rig *r = rig_new();

	(void)state;
	for (int i = 0; i < 2; i++) {
		int resets = r->resets;

		fake.port_state = IBV_PORT_ACTIVE;
		bring_tx(r, i ? STEP_CONNECT : STEP_UP);
		if (i)
			fake.no_path = true;
		else
			fake.port_state = IBV_PORT_DOWN;
		reset(r);
		assert_int_equal(r->resets, resets + 1);
		assert_int_equal(fake.disconnects, 0);
		assert_int_equal(fake.qps + fake.cqs + fake.mrs, 0);
		assert_int_equal(fake.ids, 1);
		cm_timers(&r->cm, mono_add(clock_now(), 5 * NSEC_PER_SEC));
		assert_int_equal(fake.ids, 1); /* not yet */
		if (i) {
			fake.no_path = false;
			cm_timers(&r->cm, mono_add(clock_now(), 10 * NSEC_PER_SEC));
		} else {
			fake.port_state = IBV_PORT_ACTIVE;
			fake_port_event(IBV_EVENT_PORT_ACTIVE);
			settle(r);
		}
		fake_check_balance(0);
	}
	/* iWARP has no such messages, and where an id is not bound there are none. */
	fake.port_state = IBV_PORT_DOWN;
	bring_tx(r, STEP_RESOLVE_ADDR);
	reset(r);
	fake_check_balance(0);
	rig_free(r);
}

static void responder_comes_up_and_goes(void **state)
{
	struct rig *r = rig_new();
	struct ep_start s = start_of(ROLE_RX);

	(void)state;
	command(r, WM_LISTEN, NULL);
	assert_int_equal(r->listening, 1);
	assert_int_equal(r->listen_error, 0);
	command(r, WM_EP_START, &s);
	assert_int_equal(r->ready, 1);
	(void)request(r, OURS, THEIRS, EPOCH);
	assert_int_equal(fake.accepts, 1);
	event(r, RDMA_CM_EVENT_ESTABLISHED, 0);
	assert_int_equal(r->up, 1);
	/* Another one for the same connection is turned away. */
	(void)request(r, OURS, THEIRS, EPOCH);
	assert_int_equal(fake.rejects, 1);
	assert_int_equal(cmdata_reject_decode(fake.reject_data, fake.reject_len),
			 CMREJ_STATE);
	event(r, RDMA_CM_EVENT_DISCONNECTED, 0);
	assert_int_equal(r->errors, 1);
	assert_int_equal(r->error.error, EPERR_DISCONNECTED);
	reset(r);
	assert_int_equal(r->resets, 1);
	command(r, WM_UNLISTEN, NULL);
	fake_check_balance(0);
	rig_free(r);
}

static void disconnected_may_come_before_established(void **state)
{
	struct rig *r = rig_new();
	struct ep_start s = start_of(ROLE_RX);

	(void)state;
	command(r, WM_LISTEN, NULL);
	command(r, WM_EP_START, &s);
	(void)request(r, OURS, THEIRS, EPOCH);
	event(r, RDMA_CM_EVENT_DISCONNECTED, 0);
	event(r, RDMA_CM_EVENT_ESTABLISHED, 0);
	assert_int_equal(r->up, 0);
	assert_int_equal(r->errors, 1);
	reset(r);
	assert_int_equal(r->resets, 1);
	rig_free(r);
}

static void strangers_are_rejected_and_forgotten(void **state)
{
	static const struct addr stranger = {.family = 4, .ip = {10, 0, 0, 3}};
	static const struct {
		uint64_t dst, src, epoch;
		bool from_elsewhere;
		enum cmdata_code code;
		enum drop drop;
	} rows[] = {
		{OURS + 1, THEIRS, EPOCH, false, CMREJ_UNKNOWN, DROP_UNKNOWN},
		{OURS, THEIRS + 1, EPOCH, false, CMREJ_UNKNOWN, DROP_UNKNOWN},
		{OURS, THEIRS, EPOCH + 1, false, CMREJ_UNKNOWN, DROP_EPOCH},
		{OURS, THEIRS, EPOCH, true, CMREJ_SOURCE, DROP_SOURCE},
	};
	struct rig *r = rig_new();
	struct ep_start s = start_of(ROLE_RX);
	uint8_t zeros[56] = {0};

	(void)state;
	command(r, WM_LISTEN, NULL);
	command(r, WM_EP_START, &s);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		(void)addr_to_sockaddr(rows[i].from_elsewhere ? &stranger : &there,
				       &fake.request_from);
		(void)request(r, rows[i].dst, rows[i].src, rows[i].epoch);
		assert_int_equal(fake.rejects, (int)i + 1);
		assert_int_equal(
			cmdata_reject_decode(fake.reject_data, fake.reject_len),
			rows[i].code);
		assert_true(atomic_load(&r->w.drops[rows[i].drop]) > 0);
		fake_check_balance(1);
	}
	(void)addr_to_sockaddr(&there, &fake.request_from);
	(void)fake_request(r->cm.listeners->id, zeros, sizeof(zeros));
	settle(r);
	assert_int_equal(atomic_load(&r->w.drops[DROP_MAGIC]), 1);
	/* The requester that gave up makes the reject fail: destroyed all the same. */
	fake.fail_in = 1;
	fake.fail_errno = EINVAL;
	(void)fake_request(r->cm.listeners->id, zeros, sizeof(zeros));
	settle(r);
	assert_string_equal(fake.failed_call, "rdma_reject");
	fake_check_balance(1);
	(void)request(r, OURS, THEIRS, EPOCH); /* the right one still gets in */
	assert_int_equal(fake.accepts, 1);
	reset(r);
	finish_reset(r);
	rig_free(r);
}

static void many_requests_at_once(void **state)
{
	struct rig *r = rig_new();
	struct cmdata_request q = {.dst_conn_id = 1};
	uint8_t data[CMDATA_REQUEST_LEN];

	(void)state;
	command(r, WM_LISTEN, NULL);
	cmdata_request_encode(&q, data);
	for (int i = 0; i < 60; i++)
		(void)fake_request(r->cm.listeners->id, data, sizeof(data));
	settle(r);
	assert_int_equal(fake.rejects, 60);
	fake_check_balance(1);
	rig_free(r);
}

/* Every event at every step, then a reset. */
static void any_event_at_any_time(void **state)
{
	static const int statuses[] = {0, -ETIMEDOUT, -1, 10, 8};

	(void)state;
	for (int step = 0; step < STEP__MAX; step++)
		for (int type = 0; type <= RDMA_CM_EVENT_TIMEWAIT_EXIT + 3; type++)
			for (size_t i = 0; i < ARRAY_LEN(statuses); i++) {
				struct rig *r;

				if (type == RDMA_CM_EVENT_CONNECT_REQUEST ||
				    type == RDMA_CM_EVENT_DEVICE_REMOVAL)
					continue;
				r = rig_new();
				bring_tx(r, (enum step)step);
				event(r, (enum rdma_cm_event_type)type, statuses[i]);
				assert_true(r->errors <= 1);
				reset(r);
				finish_reset(r);
				assert_int_equal(r->resets, 1);
				fake_check_balance(0);
				rig_free(r);
			}
}

static void hot_fails(struct rig *r)
{
	struct endpoint *ep = endpoint_by_conn(&r->cm.table, OURS);
	struct hot_note n = {
		.type = HOT_FAILED, .wc_status = IBV_WC_RETRY_EXC_ERR, .sending = true};

	if (!ep)
		return;
	n.handle = ep->handle;
	assert_true(ring_push(&r->w.hot_to_cm, &n));
	settle(r);
}

static void some_end(struct rig *r, int which)
{
	switch (which) {
	case 0:
		event(r, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT);
		break;
	case 1:
		event(r, RDMA_CM_EVENT_DISCONNECTED, 0);
		break;
	case 2:
		event(r, RDMA_CM_EVENT_CONNECT_ERROR, -EINVAL);
		break;
	case 3:
		hot_fails(r);
		break;
	case 4:
		if (id_of(r) && id_of(r)->qp) {
			fake_qp_event(id_of(r), IBV_EVENT_QP_FATAL);
			settle(r);
		}
		break;
	default:
		reset(r);
		break;
	}
}

/* Two or three ends of one connection, in any order: told once, reset once. */
static void ends_are_told_once(void **state)
{
	(void)state;
	for (int step = STEP_CONNECT; step < STEP__MAX; step++)
		for (int n = 0; n < 6 * 6 * 6; n++) {
			struct rig *r = rig_new();

			bring_tx(r, (enum step)step);
			some_end(r, n % 6);
			some_end(r, n / 6 % 6);
			some_end(r, n / 36);
			assert_true(r->errors <= 1);
			if (!endpoint_by_conn(&r->cm.table, OURS))
				assert_true(r->resets > 0);
			reset(r);
			finish_reset(r);
			assert_null(endpoint_by_conn(&r->cm.table, OURS));
			fake_check_balance(0);
			rig_free(r);
		}
}

/* Let each call of a whole life fail once. */
static void any_call_may_fail(void **state)
{
	bool all = false;
	int seen = 0;

	(void)state;
	for (int n = 1; !all; n++) {
		struct rig *r = rig_new();

		fake.fail_in = n;
		fake.fail_errno = ENOMEM;
		bring_tx(r, STEP_UP);
		reset(r);
		finish_reset(r);
		all = fake.fail_in > 0; /* no call was left to fail */
		seen += !all;
		if (!r->up && !all)
			assert_int_equal(r->errors, 1);
		assert_int_equal(r->resets, 1);
		fake_check_balance(0);
		rig_free(r);
	}
	assert_true(seen > 20);
}

static void any_call_may_fail_to_accept(void **state)
{
	bool all = false;

	(void)state;
	for (int n = 1; !all; n++) {
		struct rig *r = rig_new();
		struct ep_start s = start_of(ROLE_RX);

		command(r, WM_LISTEN, NULL);
		command(r, WM_EP_START, &s);
		fake.fail_in = n;
		fake.fail_errno = ENOMEM;
		(void)request(r, OURS, THEIRS, EPOCH);
		all = fake.fail_in > 0;
		reset(r);
		finish_reset(r);
		assert_int_equal(r->resets, 1);
		fake_check_balance(1);
		rig_free(r);
	}
}

static void a_listener_that_fails_is_told_and_freed(void **state)
{
	static const char *const calls[] = {"rdma_create_event_channel",
					    "rdma_create_id",
					    "rdma_bind_addr",
					    NULL /* the device's */,
					    NULL,
					    NULL,
					    "rdma_listen"};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(calls); i++) {
		struct rig *r = rig_new();

		fake.fail_in = (int)i + 1;
		fake.fail_errno = EADDRNOTAVAIL;
		command(r, WM_LISTEN, NULL);
		if (calls[i])
			assert_string_equal(fake.failed_call, calls[i]);
		assert_int_equal(r->listening, 1);
		assert_int_equal(r->listen_error, EADDRNOTAVAIL);
		fake_check_balance(0);
		command(r, WM_LISTEN, NULL);
		assert_int_equal(r->listen_error, 0);
		rig_free(r);
	}
}

static void our_own_timers_end_a_step(void **state)
{
	static const enum ep_error want[] = {
		[STEP_RESOLVE_ADDR] = EPERR_NO_NEIGHBOUR,
		[STEP_RESOLVE_ROUTE] = EPERR_NO_PATH,
		[STEP_CONNECT] = EPERR_CM_TIMEOUT,
	};

	(void)state;
	for (int step = 0; step < STEP_UP; step++) {
		struct rig *r = rig_new();

		bring_tx(r, (enum step)step);
		cm_timers(&r->cm, mono_add(clock_now(), NSEC_PER_SEC));
		settle(r);
		assert_int_equal(r->errors, 0);
		cm_timers(&r->cm, mono_add(clock_now(), 10 * NSEC_PER_SEC));
		settle(r);
		assert_int_equal(r->errors, 1);
		assert_int_equal(r->error.error, want[step]);
		reset(r);
		assert_int_equal(r->resets, 1);
		rig_free(r);
	}
}

static void nothing_is_freed_while_hot_has_it(void **state)
{
	struct rig *r = rig_new();
	struct endpoint *ep;

	(void)state;
	bring_tx(r, STEP_UP);
	r->hold_hot = true;
	reset(r);
	event(r, RDMA_CM_EVENT_DISCONNECTED, 0);
	cm_timers(&r->cm, mono_add(clock_now(), 10 * NSEC_PER_SEC));
	settle(r);
	ep = endpoint_by_conn(&r->cm.table, OURS);
	assert_non_null(ep);
	assert_int_equal(fake.qps, 1);
	assert_int_equal(r->resets, 0);
	r->hold_hot = false;
	settle(r);
	assert_int_equal(r->resets, 1);
	fake_check_balance(0);
	rig_free(r);
}

static void the_last_message_of_the_handshake_may_be_lost(void **state)
{
	struct rig *r = rig_new();
	struct ep_start s = start_of(ROLE_RX);

	(void)state;
	command(r, WM_LISTEN, NULL);
	command(r, WM_EP_START, &s);
	(void)request(r, OURS, THEIRS, EPOCH);
	fake_qp_event(id_of(r), IBV_EVENT_COMM_EST);
	settle(r);
	assert_int_equal(fake.notifies, 1);
	assert_int_equal(r->errors, 0);
	reset(r);
	finish_reset(r);
	rig_free(r);
}

static void a_reject_of_ours_is_read(void **state)
{
	struct rig *r = rig_new();
	uint8_t data[CMDATA_REJECT_LEN];

	(void)state;
	bring_tx(r, STEP_CONNECT);
	cmdata_reject_encode(CMREJ_SOURCE, data);
	fake_rejected(id_of(r), 28, data, sizeof(data));
	settle(r);
	assert_int_equal(r->error.error, EPERR_CM_REJECTED);
	assert_non_null(strstr(r->error.text, "another address"));
	reset(r);
	rig_free(r);
}

static void limits_and_impossible_starts_are_told(void **state)
{
	struct rig *r = rig_new();
	struct ep_start s = start_of(ROLE_TX);

	(void)state;
	for (uint64_t i = 0; i < 4; i++) {
		s.conn_id = 100 + i;
		command(r, WM_EP_START, &s);
	}
	assert_int_equal(r->errors, 0);
	s.conn_id = 100; /* again without a reset */
	command(r, WM_EP_START, &s);
	assert_int_equal(r->errors, 1);
	s.conn_id = 200;
	command(r, WM_EP_START, &s);
	assert_int_equal(r->error.error, EPERR_LIMIT);
	s.transport = TRANSPORT_UDP;
	command(r, WM_EP_START, &s);
	assert_int_equal(r->error.error, EPERR_NOT_SUPPORTED);
	command(r, WM_EXIT, NULL);
	assert_int_equal(r->goodbyes, 1);
	assert_int_equal(r->goodbye, GOODBYE_ASKED);
	assert_int_equal(r->resets, 4);
	rig_free(r);
}

/* The library leaves the steps to whoever has no queue pair on the id. */
static void a_service_level_is_set_by_hand(void **state)
{
	(void)state;
	for (int i = 0; i < 2; i++) {
		struct rig *r = rig_new();
		struct ep_start s = start_of(ROLE_TX);
		struct ep_start rx = start_of(ROLE_RX);

		fake_ud_reset();
		s.sl = rx.sl = 5;
		if (i) {
			command(r, WM_LISTEN, NULL);
			command(r, WM_EP_START, &rx);
			(void)request(r, OURS, THEIRS, EPOCH);
			assert_int_equal(fake.accepts, 1);
			event(r, RDMA_CM_EVENT_ESTABLISHED, 0);
		} else {
			command(r, WM_EP_START, &s);
			event(r, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
			event(r, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
			assert_null(id_of(r)->qp);
			event(r, RDMA_CM_EVENT_CONNECT_RESPONSE, 0);
		}
		assert_int_equal(r->up, 1);
		assert_int_equal(fake_ud.rc_steps, 3);
		assert_int_equal(fake_ud.rc_sl, 5);
		assert_non_null(id_of(r)->qp);
		reset(r);
		finish_reset(r);
		assert_int_equal(r->resets, 1);
		fake_check_balance(i);
		rig_free(r);
	}
}

/* Whatever fails meanwhile: the queue pair out of sight is destroyed, too. */
static void with_a_service_level_any_call_may_fail(void **state)
{
	bool all = false;

	(void)state;
	for (int n = 1; !all; n++) {
		struct rig *r = rig_new();
		struct ep_start s = start_of(ROLE_TX);

		s.sl = 5;
		fake.fail_in = n;
		fake.fail_errno = ENOMEM;
		command(r, WM_EP_START, &s);
		event(r, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
		event(r, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
		event(r, RDMA_CM_EVENT_CONNECT_RESPONSE, 0);
		all = fake.fail_in > 0;
		if (!r->up)
			assert_int_equal(r->errors, 1);
		reset(r);
		finish_reset(r);
		assert_int_equal(r->resets, 1);
		fake_check_balance(0);
		rig_free(r);
	}
}

static void a_device_that_is_not_safe_is_not_used(void **state)
{
	struct rig *r = rig_new();
	struct ep_start s = start_of(ROLE_TX);

	(void)state;
	(void)str_copy(r->w.why_facts_only, sizeof(r->w.why_facts_only), "zero GUID");
	atomic_store(&r->w.device_state, DEVICE_FACTS_ONLY);
	command(r, WM_EP_START, &s);
	assert_int_equal(r->error.error, EPERR_NOT_SUPPORTED);
	assert_string_equal(r->error.text, "zero GUID");
	command(r, WM_LISTEN, NULL);
	assert_int_equal(r->listen_error, EOPNOTSUPP);
	assert_int_equal(fake.channels, 0);
	reset(r);
	assert_int_equal(r->resets, 1);
	rig_free(r);
}

static void another_device_or_none_ends_the_worker(void **state)
{
	struct rig *r = rig_new();

	(void)state;
	bring_tx(r, STEP_RESOLVE_ADDR);
	fake.index = 4;
	event(r, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	assert_int_equal(r->goodbyes, 1);
	assert_int_equal(r->goodbye, GOODBYE_WRONG_DEVICE);
	r->cm.gone = false; /* the process would have ended: clean up for the balance */
	reset(r);
	rig_free(r);

	r = rig_new();
	bring_tx(r, STEP_UP);
	event(r, RDMA_CM_EVENT_DEVICE_REMOVAL, 0);
	assert_int_equal(r->goodbye, GOODBYE_DEVICE_GONE);
	r->cm.gone = false;
	reset(r);
	finish_reset(r);
	rig_free(r);
}

static void late_events_of_a_recycled_slot_do_nothing(void **state)
{
	struct rig *r = rig_new();
	struct hot_note n = {.type = HOT_FAILED, .wc_status = IBV_WC_RETRY_EXC_ERR};

	(void)state;
	bring_tx(r, STEP_UP);
	n.handle = endpoint_by_conn(&r->cm.table, OURS)->handle;
	reset(r);
	finish_reset(r);
	bring_tx(r, STEP_UP); /* the same slot, another generation */
	assert_true(ring_push(&r->w.hot_to_cm, &n));
	n.type = HOT_DETACHED;
	assert_true(ring_push(&r->w.hot_to_cm, &n));
	settle(r);
	assert_int_equal(r->errors, 0);
	assert_true(endpoint_by_conn(&r->cm.table, OURS)->attached);
	r->resets = 0;
	reset(r);
	finish_reset(r);
	assert_int_equal(r->resets, 1);
	rig_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(prober_comes_up_and_goes),
		cmocka_unit_test(no_goodbye_where_none_can_be_sent),
		cmocka_unit_test(responder_comes_up_and_goes),
		cmocka_unit_test(disconnected_may_come_before_established),
		cmocka_unit_test(strangers_are_rejected_and_forgotten),
		cmocka_unit_test(many_requests_at_once),
		cmocka_unit_test(any_event_at_any_time),
		cmocka_unit_test(ends_are_told_once),
		cmocka_unit_test(any_call_may_fail),
		cmocka_unit_test(any_call_may_fail_to_accept),
		cmocka_unit_test(a_listener_that_fails_is_told_and_freed),
		cmocka_unit_test(our_own_timers_end_a_step),
		cmocka_unit_test(nothing_is_freed_while_hot_has_it),
		cmocka_unit_test(the_last_message_of_the_handshake_may_be_lost),
		cmocka_unit_test(a_reject_of_ours_is_read),
		cmocka_unit_test(limits_and_impossible_starts_are_told),
		cmocka_unit_test(a_service_level_is_set_by_hand),
		cmocka_unit_test(with_a_service_level_any_call_may_fail),
		cmocka_unit_test(a_device_that_is_not_safe_is_not_used),
		cmocka_unit_test(another_device_or_none_ends_the_worker),
		cmocka_unit_test(late_events_of_a_recycled_slot_do_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
