/* SPDX-License-Identifier: BSD-2-Clause */
#include "script.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "fabric.h"

#define TURNS_MAX 10000

static const struct addr here = {.family = 4, .port = 18777, .ip = {10, 0, 0, 1}};
static const struct addr there = {.family = 4, .port = 18777, .ip = {10, 0, 0, 2}};

const char *const where_names[AT__MAX] = {
	[AT_NONE] = "none",
	[AT_RESOLVE_ADDR] = "resolving the address",
	[AT_RESOLVE_ROUTE] = "resolving the route",
	[AT_CONNECT] = "connecting",
	[AT_EXPECT] = "expecting",
	[AT_ACCEPT] = "accepted",
	[AT_UP_TX] = "up, tx",
	[AT_UP_RX] = "up, rx",
	[AT_PROBING] = "probing",
	[AT_BEATING] = "beating",
	[AT_FAILED] = "failed",
	[AT_CLOSING] = "closing",
};

static struct rig *the_rig; /* whose far end the hooks play */

/* What asks the kernel for a route; the fakes have their own answer. */
bool path_works(const struct addr *local, const struct addr *remote)
{
	(void)local;
	(void)remote;
	return !fk.no_path;
}

/* The device node of the connection manager, which a build machine need not have. */
int access(const char *path, int mode)
{
	(void)path;
	(void)mode;
	return 0;
}

/* ---- the far end, when it behaves */

#define FAR_QPN 0x777

/* The 40 bytes before a datagram of RoCE v2 over IPv4. */
static const uint8_t far_grh[40] = {
	[20] = 0x45, [32] = 10, [35] = 2, [36] = 10, [39] = 1};

static void established(struct rdma_cm_id *id)
{
	struct ibv_ah_attr attr = {
		.is_global = 1,
		.port_num = 1,
		.grh.dgid.raw = {[10] = 0xff, [11] = 0xff, [12] = 10, [15] = 2}};

	if (id->ps == RDMA_PS_UDP)
		fk_event_ud(id, &attr, FAR_QPN);
	else
		fk_event(id, RDMA_CM_EVENT_ESTABLISHED, 0);
}

static void far_cm(const char *call, struct rdma_cm_id *id)
{
	if (!the_rig->answer)
		return;
	if (id->ps == RDMA_PS_UDP && str_eq(call, "rdma_accept"))
		return; /* nobody hears of it here */
	if (id->ps == RDMA_PS_UDP && str_eq(call, "rdma_connect")) {
		established(id);
		return;
	}
	if (str_eq(call, "rdma_resolve_addr"))
		fk_event(id, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	else if (str_eq(call, "rdma_resolve_route"))
		fk_event(id, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
	else if (str_eq(call, "rdma_connect") || str_eq(call, "rdma_accept"))
		fk_event(id, RDMA_CM_EVENT_ESTABLISHED, 0);
	else if (str_eq(call, "rdma_disconnect"))
		fk_event(id, RDMA_CM_EVENT_DISCONNECTED, 0);
}

static void far_message(struct ibv_qp *qp, uint64_t wr_id, void *buf, uint32_t len)
{
	uint8_t copy[EP_SLOT_MIN];
	struct fabric_msg m;

	(void)wr_id;
	/* A datagram is sent when it is on the wire, whoever hears it. */
	if (qp->qp_type == IBV_QPT_UD)
		(void)fk_complete_send(qp, IBV_WC_SUCCESS);
	if (!the_rig->answer)
		return;
	if (fabric_decode(buf, len, &m))
		fk_wrong("a message that cannot be read was sent");
	if (qp->qp_type != IBV_QPT_UD)
		(void)fk_complete_send(qp, IBV_WC_SUCCESS);
	if (m.type != FABRIC_PROBE && m.type != FABRIC_HEARTBEAT)
		return;
	memcpy(copy, buf, len);
	m.type = m.type == FABRIC_PROBE ? FABRIC_PROBE_ECHO : FABRIC_HEARTBEAT_ECHO;
	m.conn_id -= RIG_PEER;
	m.t2 = m.t3 = m.t1;
	fabric_encode(&m, NULL, copy);
	if (qp->qp_type == IBV_QPT_UD)
		(void)fk_deliver_ud(qp, far_grh, copy, len, FAR_QPN);
	else
		(void)fk_deliver(qp, copy, len);
}

/* ---- life */

struct rig *rig_new(uint32_t conns)
{
	struct rig *r = xcalloc(1, sizeof(*r));
	struct wm_init init = {.device = "fake0", .max_endpoints = conns};

	fk_begin();
	fk.on_call = far_cm;
	fk.on_send = far_message;
	the_rig = r;
	r->transport = TRANSPORT_RC;
	wm_header(&init, WM_INIT, sizeof(init), 1);
	worker_init(&r->w, &init);
	r->w.device_index = 3;
	atomic_store(&r->w.device_state, DEVICE_READY);
	(void)addr_to_sockaddr(&there, &fk.request_from);
	cm_init(&r->cm, &r->w);
	hot_init(&r->hot, &r->w, 42);
	return r;
}

void rig_free(struct rig *r)
{
	struct ring *rings[] = {&r->w.ctl_to_cm, &r->w.ctl_to_hot, &r->w.cm_to_hot,
				&r->w.hot_to_cm, &r->w.facts_out,  &r->w.cm_out,
				&r->w.hot_out, &r->w.rounds_out};
	int fds[] = {r->w.wake_ctl, r->w.wake_facts, r->w.wake_cm, r->w.wake_hot};

	assert_int_equal(HASH_COUNT(r->hot.eps), 0);
	hot_done(&r->hot);
	cm_unlisten_all(&r->cm);
	cm_done(&r->cm);
	fk_end();
	for (size_t i = 0; i < ARRAY_LEN(rings); i++)
		ring_done(rings[i]);
	for (size_t i = 0; i < ARRAY_LEN(fds); i++)
		(void)close(fds[i]);
	the_rig = NULL;
	free(r);
}

/* ---- turns */

static void hear(struct rig *r, const struct ep_event *e)
{
	struct said *s;

	assert_true(e->conn_id < RIG_CONNS);
	s = &r->said[e->conn_id];
	if (s->reset_epoch == e->epoch && e->type != EP_RESET_DONE)
		s->after_reset++;
	s->by_type[e->type]++;
	s->last = *e;
	if (e->type == EP_UP)
		s->last_up = *e;
	if (e->type == EP_RESET_DONE)
		s->reset_epoch = e->epoch;
	if (e->type == EP_ERROR) {
		s->error = *e;
		assert_true(e->text[0]);
	}
}

static void checked(const void *m, size_t len)
{
	char why[128];

	if (wm_check(m, len, false, why, sizeof(why)) != 0)
		fail_msg("main would not take this: %s", why);
}

/* As ctl does: what hot said comes before what cm said after it. */
void rig_take_messages(struct rig *r)
{
	size_t of_cm = ring_used(&r->w.cm_out);
	struct wm_ep_event e;
	union cm_message m;

	while (ring_pop(&r->w.hot_out, &e)) {
		checked(&e, sizeof(e));
		hear(r, &e.event);
	}
	while (of_cm-- && ring_pop(&r->w.cm_out, &m)) {
		checked(&m, m.h.length);
		if (m.h.type == WM_LISTENING) {
			r->listening++;
			r->listen_error = m.listening.error;
		} else if (m.h.type == WM_GOODBYE) {
			r->goodbyes++;
			r->goodbye = (enum wm_goodbye_why)m.goodbye.why;
		} else {
			hear(r, &m.event.event);
		}
	}
}

static bool cm_has_work(const struct rig *r)
{
	const struct worker *w = &r->w;

	if (r->hold_cm || r->cm.gone)
		return false;
	return ring_used(&w->ctl_to_cm) || ring_used(&w->hot_to_cm) ||
	       (r->cm.channel && !r->cm.channel_dead && fk_cm_queued()) ||
	       (r->cm.ctx.verbs && !r->cm.async_dead &&
		fk_async_queued(r->cm.ctx.verbs)) ||
	       mono_due(cm_deadline(&r->cm), fk.now);
}

static struct mono hot_deadline(const struct rig *r)
{
	const struct heap_node *first = heap_first(&r->hot.timers);

	return first ? first->at : MONO_NEVER;
}

static bool hot_has_work(const struct rig *r)
{
	const struct worker *w = &r->w;
	const struct rdma_ctx *ctx = r->hot.ctx;

	if (r->hold_hot)
		return false;
	for (unsigned i = 0; i < r->hot.n_ports; i++) {
		const struct ud_port *p = r->hot.ports[i];

		if (p->more || fk_cq_queued(p->send.cq))
			return true;
	}
	return r->hot.more || r->hot.backlog || ring_used(&w->ctl_to_hot) ||
	       ring_used(&w->cm_to_hot) ||
	       (ctx && !r->hot.channel_dead && fk_notifications(ctx->channel)) ||
	       mono_due(hot_deadline(r), fk.now);
}

void rig_settle(struct rig *r)
{
	uint64_t turns = 0;
	bool cm, hot;

	do {
		cm = cm_has_work(r);
		hot = hot_has_work(r);
		if (cm)
			cm_turn(&r->cm);
		if (hot)
			hot_turn(&r->hot);
		rig_take_messages(r);
		if (++turns > TURNS_MAX)
			fk_wrong("the worker turns for ever");
	} while (cm || hot);
	r->max_turns = MAX(r->max_turns, turns);
}

/* Let the time pass while hot waits, as it would notice if it passed while it works. */
static void sleep_until(struct rig *r, struct mono t)
{
	fk.until = t;
	for (int i = 0; !r->hold_hot && i < TURNS_MAX && fk.now.ns < t.ns; i++)
		hot_turn(&r->hot);
	fk.until = MONO_NEVER;
	fk.now.ns = MAX(fk.now.ns, t.ns);
}

void rig_pass(struct rig *r, int64_t ns)
{
	struct mono end = mono_add(fk.now, ns);

	for (;;) {
		struct mono next;

		rig_settle(r);
		next = mono_first(r->hold_cm ? MONO_NEVER : cm_deadline(&r->cm),
				  r->hold_hot ? MONO_NEVER : hot_deadline(r));
		if (!mono_is_set(next) || next.ns >= end.ns)
			break;
		sleep_until(r, next);
	}
	sleep_until(r, end);
	rig_settle(r);
}

/* ---- commands */

struct ep_start rig_start_of(enum conn_role role, uint64_t conn)
{
	return (struct ep_start){
		.conn_id = conn,
		.peer_conn_id = RIG_PEER + conn,
		.epoch = RIG_EPOCH,
		.role = (uint8_t)role,
		.transport = (uint8_t)(the_rig ? the_rig->transport : TRANSPORT_RC),
		.sl = EP_SL_ANY,
		.tos = 0x20,
		.ack_timeout = 14,
		.retry_count = 3,
		.multiplier = 3,
		.local = here,
		.remote = there,
		.heartbeat_us = 100000,
		.resolve_timeout_ms = 2000,
		.connect_timeout_ms = 5000,
		.probe_small = 2,
	};
}

void rig_command(struct rig *r, uint16_t type, const struct ep_start *s)
{
	struct cm_command c = {.type = type, .addr = here};

	if (s)
		c.start = *s;
	else
		c.start.transport = (uint8_t)r->transport;
	assert_true(ring_push(&r->w.ctl_to_cm, &c));
	rig_settle(r);
}

void rig_start(struct rig *r, enum conn_role role, uint64_t conn)
{
	struct ep_start s = rig_start_of(role, conn);

	r->said[conn].reset_epoch = 0;
	rig_command(r, WM_EP_START, &s);
}

void rig_listen(struct rig *r)
{
	rig_command(r, WM_LISTEN, NULL);
}

void rig_unlisten(struct rig *r)
{
	rig_command(r, WM_UNLISTEN, NULL);
}

void rig_reset(struct rig *r, uint64_t conn)
{
	struct ep_start s = rig_start_of(ROLE_TX, conn);

	rig_command(r, WM_EP_RESET, &s);
}

void rig_hot(struct rig *r, uint16_t type, uint64_t conn)
{
	struct hot_command c = {.type = type, .conn_id = conn, .epoch = RIG_EPOCH};

	assert_true(ring_push(&r->w.ctl_to_hot, &c));
	rig_settle(r);
}

struct endpoint *rig_ep(struct rig *r, uint64_t conn)
{
	return endpoint_by_conn(&r->cm.table, conn);
}

struct rdma_cm_id *rig_id(struct rig *r, uint64_t conn)
{
	struct endpoint *ep = rig_ep(r, conn);

	return ep ? ep->id : NULL;
}

void rig_event(struct rig *r, uint64_t conn, enum rdma_cm_event_type type, int status)
{
	struct rdma_cm_id *id = rig_id(r, conn);

	if (!id)
		return;
	if (type == RDMA_CM_EVENT_ESTABLISHED && !status)
		established(id);
	else
		fk_event(id, type, status);
	rig_settle(r);
}

struct rdma_cm_id *rig_request(struct rig *r, uint64_t conn)
{
	struct cmdata_request q = {.dst_conn_id = conn,
				   .src_conn_id = RIG_PEER + conn,
				   .epoch = RIG_EPOCH};
	uint8_t data[CMDATA_REQUEST_LEN];
	struct rdma_cm_id *id;

	cmdata_request_encode(&q, data);
	id = fk_request(r->cm.listeners->id, data, sizeof(data));
	rig_settle(r);
	return id;
}

/* ---- ways */

static void bring_rx(struct rig *r, uint64_t conn, enum where to)
{
	if (!r->cm.listeners)
		rig_listen(r);
	rig_start(r, ROLE_RX, conn);
	if (to == AT_EXPECT)
		return;
	(void)rig_request(r, conn);
	if (to == AT_UP_RX)
		rig_event(r, conn, RDMA_CM_EVENT_ESTABLISHED, 0);
}

void rig_bring(struct rig *r, uint64_t conn, enum where to)
{
	bool answer = r->answer;

	if (to == AT_NONE)
		return;
	r->answer = false;
	if (to == AT_EXPECT || to == AT_ACCEPT || to == AT_UP_RX) {
		bring_rx(r, conn, to);
		r->answer = answer;
		return;
	}
	rig_start(r, ROLE_TX, conn);
	if (to >= AT_RESOLVE_ROUTE)
		rig_event(r, conn, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	if (to >= AT_CONNECT)
		rig_event(r, conn, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
	if (to >= AT_UP_TX)
		rig_event(r, conn, RDMA_CM_EVENT_ESTABLISHED, 0);
	if (to == AT_PROBING)
		rig_hot(r, WM_EP_PROBE, conn);
	if (to == AT_BEATING) {
		r->answer = true;
		rig_hot(r, WM_EP_PROBE, conn);
		rig_hot(r, WM_EP_HEARTBEAT, conn);
	}
	r->answer = answer;
	if (to == AT_FAILED)
		rig_event(r, conn, RDMA_CM_EVENT_CONNECT_ERROR, -EINVAL);
	if (to == AT_CLOSING)
		rig_reset(r, conn);
}

int rig_ud_ports(const struct rig *r)
{
	int n = 0;

	for (size_t i = 0; i < ARRAY_LEN(r->cm.ports); i++)
		n += r->cm.ports[i] != NULL;
	return n;
}

void rig_finish(struct rig *r, uint64_t conn)
{
	int listeners = 0;

	if (rig_ep(r, conn) || !r->said[conn].by_type[EP_RESET_DONE])
		rig_reset(r, conn);
	rig_pass(r, 300 * NSEC_PER_MSEC);
	if (rig_ep(r, conn))
		fail_msg("endpoint %" PRIu64 " outlives its reset", conn);
	assert_true(r->said[conn].by_type[EP_RESET_DONE] > 0);
	assert_int_equal(r->said[conn].after_reset, 0);
	for (const struct listener *l = r->cm.listeners; l; l = l->next)
		listeners++;
	if (!r->cm.table.used)
		fk_balanced(listeners, r->cm.ctx.pd ? 1 : 0, rig_ud_ports(r));
}
