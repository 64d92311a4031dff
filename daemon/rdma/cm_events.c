/* SPDX-License-Identifier: BSD-2-Clause */
#include "cm.h"

#include <errno.h>

#include "log.h"

#define EVENTS_PER_TURN 64

static void copy_data(struct seen *s, const void *data, size_t len)
{
	if (!data)
		return;
	s->data_len = MIN(len, sizeof(s->data));
	memcpy(s->data, data, s->data_len);
}

static void copy(const struct rdma_cm_event *ev, int lib_errno, struct seen *s)
{
	*s = (struct seen){
		.type = ev->event,
		.status = ev->status,
		.lib_errno = lib_errno,
		.id = ev->id,
		.handle = (uint64_t)(uintptr_t)ev->id->context,
	};
	switch (ev->event) {
	case RDMA_CM_EVENT_CONNECT_REQUEST:
	case RDMA_CM_EVENT_REJECTED:
	case RDMA_CM_EVENT_UNREACHABLE:
	case RDMA_CM_EVENT_ESTABLISHED:
		break;
	default:
		return;
	}
	if (ev->id->ps != RDMA_PS_UDP) {
		copy_data(s, ev->param.conn.private_data,
			  ev->param.conn.private_data_len);
		return;
	}
	copy_data(s, ev->param.ud.private_data, ev->param.ud.private_data_len);
	s->ah_attr = ev->param.ud.ah_attr;
	s->qpn = ev->param.ud.qp_num;
	s->qkey = ev->param.ud.qkey;
}

static void fail_by_event(struct cm *cm, struct endpoint *ep, const struct seen *s)
{
	enum cmdata_code code = CMREJ_NONE;
	struct reason why;

	if (s->type == RDMA_CM_EVENT_REJECTED || s->type == RDMA_CM_EVENT_UNREACHABLE)
		code = cmdata_reject_decode(s->data, s->data_len);
	if (s->type == RDMA_CM_EVENT_UNREACHABLE &&
	    ep->start.transport == TRANSPORT_UD)
		reason_sidr(s->status, ep->start.remote.port, code, &why);
	else
		reason_cm_event(s->type, s->status, s->lib_errno, code, &why);
	cm_fail(cm, ep, &why, s->status);
}

/* In state UP this is a hint: the neighbour changed or could not be found. The queue
 * pair often goes on; if it does not, the heartbeats find out. ud looks the path up. */
static void unreachable(struct cm *cm, struct endpoint *ep, const struct seen *s,
			struct mono now)
{
	char a[ADDR_TEXT_MAX];

	if (ep->state != EPS_UP) {
		fail_by_event(cm, ep, s);
		return;
	}
	log_info("path to %s is suspect: the neighbour changed or does not answer",
		 addr_format(&ep->remote, a));
	ud_suspect(cm, ep, now);
}

static void disconnected(struct cm *cm, struct endpoint *ep, const struct seen *s,
			 struct mono now)
{
	cm_disconnect(cm, ep);
	ep->disconnected = true;
	if (ep->state == EPS_CLOSING)
		cm_close_step(cm, ep, now);
	else
		fail_by_event(cm, ep, s);
}

static void of_endpoint(struct cm *cm, struct endpoint *ep, const struct seen *s,
			struct mono now)
{
	switch (s->type) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		if (ep->state == EPS_RESOLVE_ADDR)
			cm_addr_resolved(cm, ep, now);
		break;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		if (ep->state != EPS_RESOLVE_ROUTE)
			break;
		if (ep->start.transport == TRANSPORT_UD)
			ud_route_resolved(cm, ep, now);
		else
			cm_route_resolved(cm, ep, now);
		break;
	case RDMA_CM_EVENT_ESTABLISHED:
		if (ep->state != EPS_CONNECT && ep->state != EPS_ACCEPT)
			break;
		if (ep->start.transport == TRANSPORT_UD)
			ud_established(cm, ep, s);
		else
			cm_established(cm, ep);
		break;
	case RDMA_CM_EVENT_CONNECT_RESPONSE:
		if (ep->state == EPS_CONNECT && ep->qp && sl_wanted(cm, ep))
			sl_response(cm, ep);
		break;
	case RDMA_CM_EVENT_UNREACHABLE:
		unreachable(cm, ep, s, now);
		break;
	case RDMA_CM_EVENT_ADDR_ERROR:
	case RDMA_CM_EVENT_ROUTE_ERROR:
	case RDMA_CM_EVENT_CONNECT_ERROR:
	case RDMA_CM_EVENT_REJECTED:
		fail_by_event(cm, ep, s);
		break;
	case RDMA_CM_EVENT_DISCONNECTED:
		disconnected(cm, ep, s, now);
		break;
	case RDMA_CM_EVENT_ADDR_CHANGE: /* bonding moved; nothing is torn down by it */
		ud_suspect(cm, ep, now);
		break;
	case RDMA_CM_EVENT_TIMEWAIT_EXIT:
		log_debug("%s", rdma_event_str(s->type));
		break;
	default: /* multicast was never asked for */
		log_info("connection manager event %d (%s) not expected", (int)s->type,
			 rdma_event_str(s->type));
		break;
	}
}

static void handle(struct cm *cm, const struct seen *s, struct mono now)
{
	struct endpoint *ep;

	if (s->type == RDMA_CM_EVENT_DEVICE_REMOVAL) {
		/* The removal waits until this process has closed the device. */
		cm_goodbye(cm, GOODBYE_DEVICE_GONE, "the device is being removed");
		return;
	}
	if (s->type == RDMA_CM_EVENT_CONNECT_REQUEST) {
		cm_connect_request(cm, s->id, s->data, s->data_len, now);
		return;
	}
	ep = endpoint_by_handle(&cm->table, s->handle);
	if (ep && ep->id == s->id)
		of_endpoint(cm, ep, s, now);
	else if (ep && ep->again.id == s->id)
		ud_again_event(cm, ep, s, now);
	else if (s->handle)
		log_debug("late %s of an endpoint that is gone",
			  rdma_event_str(s->type));
	else
		log_info("listener: %s, status %d", rdma_event_str(s->type), s->status);
}

void cm_drain_events(struct cm *cm, struct mono now)
{
	for (int i = 0; i < EVENTS_PER_TURN && !cm->gone; i++) {
		struct rdma_cm_event *ev;
		struct seen s;
		int r, e;

		busy_enter(&cm->w->cm_busy, "rdma_get_cm_event", false);
		errno = 0;
		r = rdma_get_cm_event(cm->channel, &ev);
		e = errno;
		busy_leave(&cm->w->cm_busy);
		if (r) {
			if (e != EAGAIN && e != EINTR) {
				log_errno(LOG_ERR, -e, "rdma_get_cm_event");
				cm->channel_dead = true;
			}
			return;
		}
		copy(ev, e, &s);
		(void)rdma_ack_cm_event(ev);
		handle(cm, &s, now);
	}
}

static void qp_event(struct cm *cm, enum ibv_event_type type, uint64_t handle_of_qp)
{
	struct endpoint *ep = endpoint_by_handle(&cm->table, handle_of_qp);
	struct reason why = {.error = EPERR_LOCAL};

	if (!ep)
		return;
	if (type == IBV_EVENT_COMM_EST) {
		/* Data came before the last message of the handshake: that one may be
		 * lost, and this stands for it. */
		if (ep->id)
			(void)CM_CALL(cm, rdma_notify, ep->id, type);
		return;
	}
	(void)str_copy(why.text, sizeof(why.text), ibv_event_type_str(type));
	cm_fail(cm, ep, &why, (int)type);
}

/* Whose object it is; @ev is not acknowledged yet, so the object is there. */
struct subject {
	uint64_t handle;      /* of an endpoint, 0 = none */
	struct ud_port *port; /* or of this */
};

static void subject_of(const struct ibv_async_event *ev, struct subject *ret)
{
	const struct wcq *q;

	*ret = (struct subject){0};
	switch (ev->event_type) {
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
	case IBV_EVENT_COMM_EST:
		if (ev->element.qp->qp_type == IBV_QPT_UD)
			ret->port = ev->element.qp->qp_context;
		else
			ret->handle = (uint64_t)(uintptr_t)ev->element.qp->qp_context;
		break;
	case IBV_EVENT_CQ_ERR:
		q = ev->element.cq->cq_context;
		if (!q) /* of a queue that could not be destroyed */
			break;
		if (q->kind == WCQ_UD_SEND || q->kind == WCQ_UD_RECV)
			ret->port = q->owner;
		else
			ret->handle = ((const struct endpoint *)q->owner)->handle;
		break;
	default:
		break;
	}
}

/* Ports are the business of facts, which reads its own context's events; but one that
 * comes back lets parked ids go, and whatever changes may change where ud leads to. */
static void port_event(struct cm *cm, enum ibv_event_type type, struct mono now)
{
	switch (type) {
	case IBV_EVENT_PORT_ACTIVE:
	case IBV_EVENT_GID_CHANGE:
		cm_unpark(cm, now, false);
		ud_suspect(cm, NULL, now);
		break;
	case IBV_EVENT_LID_CHANGE:
	case IBV_EVENT_PKEY_CHANGE:
	case IBV_EVENT_SM_CHANGE:
	case IBV_EVENT_CLIENT_REREGISTER:
		ud_suspect(cm, NULL, now);
		break;
	case IBV_EVENT_DEVICE_FATAL:
		cm_goodbye(cm, GOODBYE_DEVICE_GONE, "the device reports a fatal error");
		break;
	default:
		break;
	}
}

void cm_drain_async(struct cm *cm, struct mono now)
{
	for (int i = 0; i < EVENTS_PER_TURN && !cm->gone; i++) {
		struct ibv_async_event ev;
		struct subject of;

		if (ibv_get_async_event(cm->ctx.verbs, &ev)) {
			if (errno != EAGAIN && errno != EINTR)
				cm->async_dead = true;
			return;
		}
		subject_of(&ev, &of);
		/* Copied; from here on the object may be destroyed. */
		ibv_ack_async_event(&ev);
		if (of.handle)
			qp_event(cm, ev.event_type, of.handle);
		else if (!of.port)
			port_event(cm, ev.event_type, now);
		else if (ev.event_type != IBV_EVENT_COMM_EST)
			ud_port_fatal(cm, of.port, ibv_event_type_str(ev.event_type));
	}
}
