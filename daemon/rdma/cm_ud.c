/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cm_ud.c - ud endpoints. tx looks its peer up (SIDR) and is told address and number of
 * the peer's queue pair; rx answers, as often as it is asked, and learns the way back
 * from the first message. When something may have changed while an endpoint is up, tx
 * looks up again beside the running messages, and rx takes the next message's way.
 */
#include <errno.h>

#include "cm.h"
#include "log.h"

#define SETTLE	       (100 * NSEC_PER_MSEC) /* changes come in bursts */
#define REFRESHING_MAX 32		     /* at a time */
#define TRIES_MAX      6
#define RESOLVE_SLACK  NSEC_PER_SEC

static void join_port(struct endpoint *ep, struct ud_port *p)
{
	ep->ud = p;
	p->users++;
	ep->slot_size = p->mtu;
}

void ud_leave(struct cm *cm, struct endpoint *ep)
{
	struct ud_port *p = ep->ud;

	if (!p)
		return;
	ah_put(cm, ep->ah);
	ep->ah = NULL;
	ep->ud = NULL;
	ud_port_left(cm, p);
}

static void attach(struct cm *cm, struct endpoint *ep)
{
	ep->attached = true;
	cm_order_hot(cm, &(struct hot_order){.type = HOT_ATTACH, .ep = ep});
}

static void request_of(const struct endpoint *ep, uint8_t data[CMDATA_REQUEST_LEN],
		       struct rdma_conn_param *ret)
{
	cmdata_request_encode(
		&(struct cmdata_request){.dst_conn_id = ep->start.peer_conn_id,
					 .src_conn_id = ep->start.conn_id,
					 .epoch = ep->start.epoch},
		data);
	*ret = (struct rdma_conn_param){
		.private_data = data,
		.private_data_len = CMDATA_REQUEST_LEN,
		.qp_num = ep->ud->qp->qp_num,
	};
}

/* ---- tx ---- */

void ud_route_resolved(struct cm *cm, struct endpoint *ep, struct mono now)
{
	uint8_t data[CMDATA_REQUEST_LEN];
	struct rdma_conn_param param;
	struct ud_port *p;
	const char *call;
	int r = ud_port_get(cm, ep->id, &p, &call);

	if (r < 0) {
		cm_fail_call(cm, ep, call, r);
		return;
	}
	join_port(ep, p);
	request_of(ep, data, &param);
	ep->state = EPS_CONNECT;
	cm_arm(cm, ep, mono_add(now, ep->start.connect_timeout_ms * NSEC_PER_MSEC));
	cm_stage(cm, ep, STAGE_CONNECT);
	r = CM_CALL(cm, rdma_connect, ep->id, &param);
	if (r < 0)
		cm_fail_call(cm, ep, "rdma_connect", r);
}

void ud_established(struct cm *cm, struct endpoint *ep, const struct seen *s)
{
	struct ibv_ah_attr attr = s->ah_attr;
	struct ep_path path;

	(void)addr_from_sockaddr(rdma_get_local_addr(ep->id),
				 sizeof(struct sockaddr_storage), &ep->local);
	(void)addr_from_sockaddr(rdma_get_peer_addr(ep->id),
				 sizeof(struct sockaddr_storage), &ep->remote);
	ah_adjust(ep, &attr);
	ep->ah = ah_get(cm, ep->ud, &attr);
	if (!ep->ah) {
		cm_fail_call(cm, ep, "ibv_create_ah", errno ? -errno : -EIO);
		return;
	}
	/* hot's from here on. */
	ep->dest = (struct ud_dest){.ah = ep->ah, .qpn = s->qpn, .qkey = s->qkey};
	path_of_ud(cm, ep, &attr, s->qpn, &path);
	attach(cm, ep);
	cm_up(cm, ep, &path);
}

/* ---- rx ---- */

static int accept_id(struct cm *cm, struct endpoint *ep, struct rdma_cm_id *id)
{
	struct rdma_conn_param param = {.qp_num = ep->ud->qp->qp_num};

	return CM_CALL(cm, rdma_accept, id, &param);
}

static int first_request(struct cm *cm, struct endpoint *ep, struct rdma_cm_id *id,
			 const char **ret_call)
{
	struct ud_port *p;
	int r = cm_check_device(cm, id, &ep->start.local, ret_call);

	if (!r)
		r = ud_port_get(cm, id, &p, ret_call);
	if (r < 0)
		return r;
	join_port(ep, p);
	cm_stage(cm, ep, STAGE_CONNECT);
	/* Before the answer: a message may come right after it. */
	attach(cm, ep);
	*ret_call = "rdma_accept";
	return accept_id(cm, ep, id);
}

void ud_request(struct cm *cm, struct endpoint *ep, struct rdma_cm_id *id)
{
	struct ep_path path;
	const char *call;
	int r;

	if (ep->state == EPS_UP) { /* our answer was lost, or the path is looked up */
		(void)accept_id(cm, ep, id);
		cm_destroy_id(cm, id);
		return;
	}
	r = first_request(cm, ep, id, &call);
	if (r < 0) {
		cm_reject(cm, id, CMREJ_LOCAL);
		cm_fail_call(cm, ep, call, r);
	} else {
		(void)addr_from_sockaddr(rdma_get_peer_addr(id),
					 sizeof(struct sockaddr_storage), &ep->remote);
		path_of_ud(cm, ep, NULL, 0, &path);
		cm_up(cm, ep, &path);
	}
	/* What it was for is said; a lost answer leads to another request. */
	cm_destroy_id(cm, id);
}

/* ---- the path may have changed ---- */

static void suspect_one(struct cm *cm, struct endpoint *e, struct mono now)
{
	if (!e->ud || e->state != EPS_UP)
		return;
	e->again.wanted = true;
	e->again.tries = 0;
	cm->refresh_at = mono_first(cm->refresh_at, mono_add(now, SETTLE));
}

void ud_suspect(struct cm *cm, struct endpoint *ep, struct mono now)
{
	cm->ah_epoch++;
	if (ep)
		suspect_one(cm, ep, now);
	for (uint32_t i = 0; !ep && i < cm->table.n; i++)
		if (cm->table.slots[i])
			suspect_one(cm, cm->table.slots[i], now);
}

void ud_again_end(struct cm *cm, struct endpoint *ep)
{
	ep->again.wanted = false;
	if (!ep->again.id)
		return;
	cm_destroy_id(cm, ep->again.id);
	ep->again.id = NULL;
	cm->refreshing--;
}

/* What there is goes on; if it leads nowhere, the heartbeats tell. */
static void again_failed(struct cm *cm, struct endpoint *ep, const char *what, int r,
			 struct mono now)
{
	char a[ADDR_TEXT_MAX];

	ud_again_end(cm, ep);
	log_debug("path to %s not looked up again: %s: %s", addr_format(&ep->remote, a),
		  what, strerror(r < 0 ? -r : r));
	cm_arm(cm, ep,
	       ++ep->again.tries < TRIES_MAX
		       ? mono_add(now, NSEC_PER_SEC << (ep->again.tries - 1))
		       : MONO_NEVER);
}

static void again_start(struct cm *cm, struct endpoint *ep, struct mono now)
{
	int timeout = (int)ep->start.resolve_timeout_ms, r;
	struct sockaddr_storage src, dst;
	struct addr local = ep->start.local;

	ep->again.wanted = false;
	/* Messages that cannot go out are worse than none (park.c). */
	if (!cm_can_send(cm, ep->ud->num, &ep->local, &ep->remote)) {
		again_failed(cm, ep, "link", -ENETDOWN, now);
		return;
	}
	local.port = 0;
	(void)addr_to_sockaddr(&local, &src);
	(void)addr_to_sockaddr(&ep->start.remote, &dst);
	r = CM_CALL(cm, rdma_create_id, cm->channel, &ep->again.id,
		    (void *)(uintptr_t)ep->handle, RDMA_PS_UDP);
	if (r < 0) {
		ep->again.id = NULL;
		again_failed(cm, ep, "rdma_create_id", r, now);
		return;
	}
	cm->refreshing++;
	cm_set_tos(cm, ep, ep->again.id);
	ep->again.state = EPS_RESOLVE_ADDR;
	cm_arm(cm, ep, mono_add(now, timeout * NSEC_PER_MSEC + RESOLVE_SLACK));
	r = CM_CALL(cm, rdma_resolve_addr, ep->again.id, (struct sockaddr *)&src,
		    (struct sockaddr *)&dst, timeout);
	if (r < 0)
		again_failed(cm, ep, "rdma_resolve_addr", r, now);
}

static void again_connect(struct cm *cm, struct endpoint *ep, struct mono now)
{
	struct reason why = {.error = EPERR_LOCAL, .text = "the P_Key has moved"};
	uint8_t data[CMDATA_REQUEST_LEN];
	struct rdma_conn_param param;
	struct ud_port *p;
	const char *call;
	int r = ud_port_get(cm, ep->again.id, &p, &call);

	if (r < 0) {
		again_failed(cm, ep, call, r, now);
		return;
	}
	if (p != ep->ud) { /* its queue pair is not the right one any more */
		cm_fail(cm, ep, &why, 0);
		return;
	}
	request_of(ep, data, &param);
	ep->again.state = EPS_CONNECT;
	cm_arm(cm, ep, mono_add(now, ep->start.connect_timeout_ms * NSEC_PER_MSEC));
	r = CM_CALL(cm, rdma_connect, ep->again.id, &param);
	if (r < 0)
		again_failed(cm, ep, "rdma_connect", r, now);
}

/* The new id tells of what happens on the new path from now on. */
static void again_done(struct cm *cm, struct endpoint *ep, const struct seen *s,
		       struct mono now)
{
	struct ibv_ah_attr attr = s->ah_attr;
	struct ep_path path;
	struct ud_ah *ah;

	ah_adjust(ep, &attr);
	ah = ah_get(cm, ep->ud, &attr);
	if (!ah) {
		again_failed(cm, ep, "ibv_create_ah", errno ? -errno : -EIO, now);
		return;
	}
	cm_arm(cm, ep, MONO_NEVER);
	if (ep->id)
		cm_destroy_id(cm, ep->id);
	ep->id = ep->again.id;
	ep->again.id = NULL;
	cm->refreshing--;
	path_of_ud(cm, ep, &attr, s->qpn, &path);
	ah_give(cm, ep, ah, s->qpn, s->qkey);
	cm_path(cm, ep, &path);
}

void ud_again_event(struct cm *cm, struct endpoint *ep, const struct seen *s,
		    struct mono now)
{
	int timeout = (int)ep->start.resolve_timeout_ms, r;
	const char *call;

	if (s->type == RDMA_CM_EVENT_ADDR_RESOLVED &&
	    ep->again.state == EPS_RESOLVE_ADDR) {
		/* The address may be another device's by now. */
		r = cm_check_device(cm, ep->again.id, &ep->start.local, &call);
		if (r < 0) {
			again_failed(cm, ep, call, r, now);
			return;
		}
		ep->again.state = EPS_RESOLVE_ROUTE;
		cm_arm(cm, ep, mono_add(now, timeout * NSEC_PER_MSEC + RESOLVE_SLACK));
		r = CM_CALL(cm, rdma_resolve_route, ep->again.id, timeout);
		if (r < 0)
			again_failed(cm, ep, "rdma_resolve_route", r, now);
	} else if (s->type == RDMA_CM_EVENT_ROUTE_RESOLVED &&
		   ep->again.state == EPS_RESOLVE_ROUTE) {
		again_connect(cm, ep, now);
	} else if (s->type == RDMA_CM_EVENT_ESTABLISHED &&
		   ep->again.state == EPS_CONNECT) {
		again_done(cm, ep, s, now);
	} else if (s->type != RDMA_CM_EVENT_ADDR_CHANGE) {
		again_failed(cm, ep, rdma_event_str(s->type), s->status, now);
	}
}

/* A step takes too long, or it is time to try once more. */
void ud_again_timer(struct cm *cm, struct endpoint *ep, struct mono now)
{
	if (ep->again.id) {
		again_failed(cm, ep, "no answer", -ETIMEDOUT, now);
		return;
	}
	ep->again.wanted = true;
	cm->refresh_at = mono_first(cm->refresh_at, now);
}

static void refresh_one(struct cm *cm, struct endpoint *ep, struct mono now)
{
	if (ep->start.role == ROLE_RX) {
		ep->again.wanted = false;
		if (ep->attached && !ep->detaching)
			cm_order_hot(cm, &(struct hot_order){.type = HOT_AH_STALE,
							     .ep = ep});
		return;
	}
	if (ep->again.id) { /* of before the change */
		ud_again_end(cm, ep);
		ep->again.wanted = true;
	}
	if (cm->refreshing < REFRESHING_MAX)
		again_start(cm, ep, now);
	else
		cm->refresh_at = mono_first(cm->refresh_at, mono_add(now, SETTLE));
}

void ud_refresh(struct cm *cm, struct mono now)
{
	cm->refresh_at = MONO_NEVER;
	for (uint32_t i = 0; i < cm->table.n && !cm->gone; i++) {
		struct endpoint *ep = cm->table.slots[i];

		if (ep && ep->again.wanted && ep->state == EPS_UP && ep->ud)
			refresh_one(cm, ep, now);
	}
}
