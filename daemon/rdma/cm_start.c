/* SPDX-License-Identifier: BSD-2-Clause */
#include "cm.h"

#include <errno.h>
#include <stdio.h>

#include "log.h"

/* 7 would be for ever. The receiver's timer of 655 ms makes 6 about 4 s: longer than a
 * stall that supervision lets pass. */
#define RNR_RETRY 6
/* The library's own timers get this much before ours decides. */
#define RESOLVE_SLACK NSEC_PER_SEC

static void refuse(struct cm *cm, const struct ep_start *s, enum ep_error error,
		   int status, const char *text)
{
	struct ep_event ev = {
		.conn_id = s->conn_id,
		.epoch = s->epoch,
		.type = EP_ERROR,
		.error = (uint8_t)error,
		.status = status,
	};

	(void)str_copy(ev.text, sizeof(ev.text), text);
	cm_event(cm, &ev);
}

static void start_rx(struct cm *cm, struct endpoint *ep, struct mono now)
{
	bool ud = ep->start.transport == TRANSPORT_UD;
	const struct listener *l = cm_find_listener(cm, &ep->start.local, ud);
	struct reason why = {.error = EPERR_NO_ADDRESS};
	char a[ADDR_TEXT_MAX];

	ep->state = EPS_EXPECT;
	ep->local = ep->start.local;
	ep->remote = ep->start.remote;
	if (!l) {
		(void)snprintf(why.text, sizeof(why.text), "no listener on %s",
			       addr_format(&ep->start.local, a));
		cm_fail(cm, ep, &why, -EADDRNOTAVAIL);
		return;
	}
	ep->local = l->addr;
	cm_arm(cm, ep, mono_add(now, ep->start.connect_timeout_ms * NSEC_PER_MSEC));
	cm_stage(cm, ep, STAGE_LISTEN);
	cm_event(cm, &(struct ep_event){.conn_id = ep->start.conn_id,
					.epoch = ep->start.epoch,
					.type = EP_READY,
					.stage = STAGE_LISTEN,
					.addr = l->addr});
}

/* A connection without it is better than none. */
static void not_set(int r, const char *what)
{
	static struct log_limit limit;

	log_limited(&limit, LOG_WARNING, "%s not set: %s", what, strerror(-r));
}

void cm_set_tos(struct cm *cm, const struct endpoint *ep, struct rdma_cm_id *id)
{
	uint8_t tos = ep->start.tos;
	int r;

	if (!tos)
		return;
	r = CM_CALL(cm, rdma_set_option, id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &tos,
		    sizeof(tos));
	if (r < 0)
		not_set(r, "traffic class");
}

static void start_tx(struct cm *cm, struct endpoint *ep, struct mono now)
{
	struct sockaddr_storage src, dst;
	struct addr local = ep->start.local;
	int timeout = (int)ep->start.resolve_timeout_ms, r;

	ep->state = EPS_RESOLVE_ADDR;
	ep->local = local;
	ep->remote = ep->start.remote;
	cm_stage(cm, ep, STAGE_RESOLVE_ADDR);
	/* A fixed source port would be in use at the second attempt. */
	local.port = 0;
	(void)addr_to_sockaddr(&local, &src);
	(void)addr_to_sockaddr(&ep->start.remote, &dst);
	r = CM_CALL(cm, rdma_create_id, cm->channel, &ep->id,
		    (void *)(uintptr_t)ep->handle,
		    ep->start.transport == TRANSPORT_UD ? RDMA_PS_UDP : RDMA_PS_TCP);
	if (r < 0) {
		ep->id = NULL;
		cm_fail_call(cm, ep, "rdma_create_id", r);
		return;
	}
	cm_set_tos(cm, ep, ep->id);
	cm_arm(cm, ep, mono_add(now, timeout * NSEC_PER_MSEC + RESOLVE_SLACK));
	r = CM_CALL(cm, rdma_resolve_addr, ep->id, (struct sockaddr *)&src,
		    (struct sockaddr *)&dst, timeout);
	if (r < 0)
		cm_fail_call(cm, ep, "rdma_resolve_addr", r);
}

/* NULL: it can be tried. */
static const char *impossible(const struct cm *cm, const struct ep_start *s)
{
	if (s->transport != TRANSPORT_RC && s->transport != TRANSPORT_UD)
		return "this worker carries rc and ud only";
	if (s->transport == TRANSPORT_UD && cm->w->iwarp)
		return "an iWARP device has no ud: take rc";
	return s->local.family != s->remote.family
		       ? "source and peer differ in IP version"
		       : NULL;
}

void cm_start(struct cm *cm, const struct ep_start *s, struct mono now)
{
	struct endpoint *ep;
	const char *why;
	int r;

	if (cm->exiting)
		return;
	if (atomic_load(&cm->w->device_state) != DEVICE_READY) {
		refuse(cm, s, EPERR_NOT_SUPPORTED, -EOPNOTSUPP, cm->w->why_facts_only);
		return;
	}
	why = impossible(cm, s);
	if (why) {
		refuse(cm, s, EPERR_NOT_SUPPORTED, -EOPNOTSUPP, why);
		return;
	}
	if (endpoint_by_conn(&cm->table, s->conn_id)) {
		refuse(cm, s, EPERR_LOCAL, -EBUSY, "started twice without a reset");
		return;
	}
	r = cm_channel_open(cm);
	if (r < 0) {
		struct reason reason;

		reason_call("opening /dev/infiniband/rdma_cm", r, &reason);
		refuse(cm, s, EPERR_LOCAL, r, reason.text);
		return;
	}
	ep = endpoint_new(&cm->table, s);
	if (!ep) {
		refuse(cm, s, EPERR_LIMIT, -ENOSPC,
		       s->transport == TRANSPORT_UD
			       ? "too many ud connections on this device"
			       : "too many rc connections on this device");
		return;
	}
	atomic_store(&cm->w->endpoints, cm->table.used);
	if (s->role == ROLE_RX)
		start_rx(cm, ep, now);
	else
		start_tx(cm, ep, now);
}

/* A short one on both sides is what notices a dead peer; the default is 20 s and more.
 * It must be set before the queue pair is ready to send. */
void cm_set_ack_timeout(struct cm *cm, struct endpoint *ep)
{
	uint8_t t = ep->start.ack_timeout;
	int r;

	if (!t || cm->ctx.iwarp)
		return;
	r = CM_CALL(cm, rdma_set_option, ep->id, RDMA_OPTION_ID,
		    RDMA_OPTION_ID_ACK_TIMEOUT, &t, sizeof(t));
	if (r < 0)
		not_set(r, "ack timeout");
}

static bool right_port(struct cm *cm, struct endpoint *ep)
{
	struct reason why = {.error = EPERR_NO_ADDRESS};
	char a[ADDR_TEXT_MAX];

	if (!ep->start.port || ep->id->port_num == ep->start.port)
		return true;
	(void)snprintf(why.text, sizeof(why.text), "%s is on port %u, not on port %u",
		       addr_format(&ep->start.local, a), ep->id->port_num,
		       ep->start.port);
	cm_fail(cm, ep, &why, -EADDRNOTAVAIL);
	return false;
}

void cm_addr_resolved(struct cm *cm, struct endpoint *ep, struct mono now)
{
	int timeout = (int)ep->start.resolve_timeout_ms, r;
	const char *call;

	r = cm_check_device(cm, ep->id, &ep->start.local, &call);
	if (r < 0) {
		cm_fail_call(cm, ep, call, r);
		return;
	}
	if (!right_port(cm, ep))
		return;
	if (ep->start.transport == TRANSPORT_RC)
		cm_set_ack_timeout(cm, ep);
	ep->state = EPS_RESOLVE_ROUTE;
	cm_arm(cm, ep, mono_add(now, timeout * NSEC_PER_MSEC + RESOLVE_SLACK));
	cm_stage(cm, ep, STAGE_RESOLVE_ROUTE);
	r = CM_CALL(cm, rdma_resolve_route, ep->id, timeout);
	if (r < 0)
		cm_fail_call(cm, ep, "rdma_resolve_route", r);
}

int cm_prepare(struct cm *cm, struct endpoint *ep, const char **ret_call)
{
	int r;

	busy_enter(&cm->w->cm_busy, "creating a queue pair", false);
	r = endpoint_open(ep, &cm->ctx, ret_call);
	busy_leave(&cm->w->cm_busy);
	if (r < 0)
		return r;
	/* Before the connection stands: on the accepting side data may come first. */
	ep->attached = true;
	cm_order_hot(cm, &(struct hot_order){.type = HOT_ATTACH, .ep = ep});
	return 0;
}

void cm_route_resolved(struct cm *cm, struct endpoint *ep, struct mono now)
{
	uint8_t data[CMDATA_REQUEST_LEN];
	struct rdma_conn_param param = {
		.private_data = data,
		.private_data_len = sizeof(data),
		.responder_resources = cm->ctx.rd_atomic,
		.initiator_depth = cm->ctx.rd_atomic,
		.retry_count = ep->start.retry_count,
		.rnr_retry_count = RNR_RETRY,
	};
	const char *call;
	int r = cm_prepare(cm, ep, &call);

	if (r < 0) {
		cm_fail_call(cm, ep, call, r);
		return;
	}
	cmdata_request_encode(
		&(struct cmdata_request){.dst_conn_id = ep->start.peer_conn_id,
					 .src_conn_id = ep->start.conn_id,
					 .epoch = ep->start.epoch},
		data);
	ep->state = EPS_CONNECT;
	cm_arm(cm, ep, mono_add(now, ep->start.connect_timeout_ms * NSEC_PER_MSEC));
	cm_stage(cm, ep, STAGE_CONNECT);
	if (sl_wanted(cm, ep))
		sl_hide_qp(ep, &param);
	cm_connect(cm, ep, &param);
}

void cm_established(struct cm *cm, struct endpoint *ep)
{
	struct ep_path path;

	(void)addr_from_sockaddr(rdma_get_local_addr(ep->id),
				 sizeof(struct sockaddr_storage), &ep->local);
	(void)addr_from_sockaddr(rdma_get_peer_addr(ep->id),
				 sizeof(struct sockaddr_storage), &ep->remote);
	path_of_rc(cm, ep, &path);
	ep->connected = true;
	cm_up(cm, ep, &path);
}
