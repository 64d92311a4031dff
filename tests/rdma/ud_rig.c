/* SPDX-License-Identifier: BSD-2-Clause */
#include "ud_rig.h"

#include <stdlib.h>
#include <unistd.h>

const struct addr ud_here = {.family = 4, .port = 18777, .ip = {10, 0, 0, 1}};
const struct addr ud_there = {.family = 4, .port = 18777, .ip = {10, 0, 0, 2}};

struct ud_rig *ud_rig_new(void)
{
	struct ud_rig *r = xcalloc(1, sizeof(*r));
	struct wm_init init = {.device = "fake0", .max_endpoints = 4};

	fake_reset();
	fake_ud_reset();
	wm_header(&init, WM_INIT, sizeof(init), 1);
	worker_init(&r->w, &init);
	r->w.device_index = 3;
	atomic_store(&r->w.device_state, DEVICE_READY);
	(void)addr_to_sockaddr(&ud_there, &fake.request_from);
	cm_init(&r->cm, &r->w);
	hot_init(&r->hot, &r->w, 42);
	return r;
}

static void count(struct ud_rig *r, const struct ep_event *e)
{
	r->ready += e->type == EP_READY;
	r->resets += e->type == EP_RESET_DONE;
	r->probing += e->type == EP_PROBING;
	r->probes_done += e->type == EP_PROBES_DONE;
	switch (e->type) {
	case EP_UP:
		r->up++;
		r->last_up = *e;
		break;
	case EP_PATH:
		r->paths++;
		r->last_path = *e;
		break;
	case EP_PONG:
		r->pongs++;
		r->last_pong = *e;
		break;
	case EP_ERROR:
		r->errors++;
		r->error = *e;
		assert_true(e->text[0]);
		break;
	default:
		break;
	}
}

static void take_messages(struct ud_rig *r)
{
	union cm_message m;
	struct wm_ep_event h;
	char why[128];

	while (ring_pop(&r->w.hot_out, &h)) {
		assert_int_equal(wm_check(&h, sizeof(h), false, why, sizeof(why)), 0);
		count(r, &h.event);
	}
	while (ring_pop(&r->w.cm_out, &m)) {
		assert_int_equal(wm_check(&m, m.h.length, false, why, sizeof(why)), 0);
		if (m.h.type == WM_LISTENING) {
			r->listening++;
			r->listen_error = m.listening.error;
		} else if (m.h.type == WM_GOODBYE) {
			r->goodbyes++;
		} else {
			count(r, &m.event.event);
		}
	}
}

void ud_settle(struct ud_rig *r)
{
	for (int i = 0; i < 4; i++) {
		wake(r->w.wake_cm);
		cm_turn(&r->cm);
		wake(r->w.wake_hot);
		hot_turn(&r->hot);
		for (unsigned p = r->hot.n_ports; p-- > 0;)
			ud_poll(&r->hot, r->hot.ports[p]);
	}
	take_messages(r);
}

void ud_later(struct ud_rig *r, int64_t ns)
{
	cm_timers(&r->cm, mono_add(clock_now(), ns));
	ud_settle(r);
}

void ud_rig_free(struct ud_rig *r)
{
	struct ring *rings[] = {&r->w.ctl_to_cm, &r->w.ctl_to_hot, &r->w.cm_to_hot,
				&r->w.hot_to_cm, &r->w.facts_out,  &r->w.cm_out,
				&r->w.hot_out, &r->w.rounds_out};
	int fds[] = {r->w.wake_ctl, r->w.wake_facts, r->w.wake_cm, r->w.wake_hot};

	cm_unlisten_all(&r->cm);
	assert_int_equal(fake.ids, 0);
	assert_int_equal(fake.unacked, 0);
	cm_done(&r->cm);
	hot_done(&r->hot);
	fake_ud_check_balance();
	fake_check_balance(0);
	assert_int_equal(fake.pds + fake.comp_channels + fake.channels, 0);
	for (size_t i = 0; i < ARRAY_LEN(rings); i++)
		ring_done(rings[i]);
	for (size_t i = 0; i < ARRAY_LEN(fds); i++)
		(void)close(fds[i]);
	free(r);
}

void ud_command(struct ud_rig *r, uint16_t type, const struct ep_start *s)
{
	struct cm_command c = {.type = type, .addr = ud_here};

	if (s)
		c.start = *s;
	c.start.transport = TRANSPORT_UD;
	assert_true(ring_push(&r->w.ctl_to_cm, &c));
	ud_settle(r);
}

void ud_hot_command(struct ud_rig *r, uint16_t type, uint64_t conn_id)
{
	struct hot_command c = {.type = type, .conn_id = conn_id, .epoch = EPOCH};

	assert_true(ring_push(&r->w.ctl_to_hot, &c));
	ud_settle(r);
}

void ud_ping(struct ud_rig *r, const struct ep_ping *order)
{
	struct hot_command c = {.type = WM_EP_PING,
				.conn_id = order->conn_id,
				.epoch = order->epoch,
				.ping = xcalloc(1, sizeof(*order))};

	*c.ping = *order;
	assert_true(ring_push(&r->w.ctl_to_hot, &c));
	ud_settle(r);
}

struct ep_start ud_start(enum conn_role role)
{
	return (struct ep_start){
		.conn_id = OURS,
		.peer_conn_id = THEIRS,
		.epoch = EPOCH,
		.role = (uint8_t)role,
		.transport = TRANSPORT_UD,
		.sl = EP_SL_ANY,
		.multiplier = 3,
		.local = ud_here,
		.remote = ud_there,
		.heartbeat_us = 60000000,
		.resolve_timeout_ms = 2000,
		.connect_timeout_ms = 5000,
		.probe_small = 1,
	};
}

struct endpoint *ud_ep(struct ud_rig *r, uint64_t conn_id)
{
	return endpoint_by_conn(&r->cm.table, conn_id);
}

struct ibv_ah_attr ud_attr(void)
{
	struct ibv_ah_attr a = {.is_global = 1, .port_num = 1, .static_rate = 0};

	a.grh.sgid_index = 3;
	a.grh.hop_limit = 64;
	ud_gid_of_addr(&ud_there, a.grh.dgid.raw);
	return a;
}

void ud_up_tx(struct ud_rig *r, const struct ep_start *s)
{
	struct ibv_ah_attr attr = ud_attr();

	ud_command(r, WM_EP_START, s);
	fake_event(ud_ep(r, s->conn_id)->id, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	ud_settle(r);
	fake_event(ud_ep(r, s->conn_id)->id, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
	ud_settle(r);
	fake_ud_established(ud_ep(r, s->conn_id)->id, &attr, PEER_QPN);
	ud_settle(r);
}

struct rdma_cm_id *ud_request_comes(struct ud_rig *r, const struct ep_start *s)
{
	struct cmdata_request q = {.dst_conn_id = s->conn_id,
				   .src_conn_id = s->peer_conn_id,
				   .epoch = s->epoch};
	uint8_t data[CMDATA_REQUEST_LEN];
	struct rdma_cm_id *id;

	cmdata_request_encode(&q, data);
	id = fake_request(r->cm.listeners->id, data, sizeof(data));
	ud_settle(r);
	return id;
}

void ud_up_rx(struct ud_rig *r, const struct ep_start *s)
{
	if (!r->cm.listeners)
		ud_command(r, WM_LISTEN, NULL);
	ud_command(r, WM_EP_START, s);
	(void)ud_request_comes(r, s);
}

void ud_reset(struct ud_rig *r, uint64_t conn_id)
{
	struct ep_start s = {.conn_id = conn_id, .epoch = EPOCH};

	ud_command(r, WM_EP_RESET, &s);
}

void ud_message(struct ud_rig *r, const struct ep_start *s, enum fabric_type type,
		uint64_t seq, const uint8_t *key)
{
	struct fabric_msg m = {.type = (uint8_t)type,
			       .length = FABRIC_LEN,
			       .conn_id = s->conn_id,
			       .epoch = s->epoch,
			       .seq = seq,
			       .t1 = clock_now().ns};
	uint8_t buf[FABRIC_LEN], grh[40];

	fabric_encode(&m, key, buf);
	fake_ud_ipv4(grh, s->remote.ip, s->local.ip);
	fake_ud_arrives(fake_ud_qp(), grh, buf, sizeof(buf), PEER_QPN, 0);
	ud_settle(r);
}

struct fabric_msg ud_sent_message(int index)
{
	struct fake_ud_post *p = &fake_ud_qp()->sends[index];
	struct fabric_msg m;

	assert_true(index < fake_ud_qp()->n_sends);
	assert_int_equal(fabric_decode(p->head, sizeof(p->head), &m), 0);
	return m;
}
