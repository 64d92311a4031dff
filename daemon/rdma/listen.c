/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "cm.h"
#include "log.h"

#define BACKLOG	  128
#define RNR_RETRY 6 /* as in cm_start.c: finite */

static void listening(struct cm *cm, const struct addr *a, bool ud, const char *call,
		      int r)
{
	union cm_message m;
	struct reason why;

	memset(&m, 0, sizeof(m));
	wm_header(&m, WM_LISTENING, sizeof(m.listening), cm->w->generation);
	m.listening.addr = *a;
	m.listening.transport = ud ? TRANSPORT_UD : TRANSPORT_RC;
	m.listening.error = -r;
	if (r < 0) {
		reason_call(call, r, &why);
		(void)str_copy(m.listening.text, sizeof(m.listening.text), why.text);
	}
	cm_post(cm, &m);
}

static struct listener *find(const struct cm *cm, const struct addr *a, bool ud)
{
	for (struct listener *l = cm->listeners; l; l = l->next)
		if (l->ud == ud && addr_same_ip(&l->addr, a) && (!a->port || l->addr.port == a->port))
			return l;
	return NULL;
}

const struct listener *cm_find_listener(const struct cm *cm, const struct addr *a, bool ud)
{
	return find(cm, a, ud);
}

/* One listener on this very address: a wildcard would take requests for other devices,
 * and the library would open those here. */
static int bind_and_listen(struct cm *cm, struct rdma_cm_id *id, const struct addr *a,
			   const char **ret_call)
{
	struct sockaddr_storage sa;
	int r;

	(void)addr_to_sockaddr(a, &sa);
	*ret_call = "rdma_bind_addr";
	r = CM_CALL(cm, rdma_bind_addr, id, (struct sockaddr *)&sa);
	if (r < 0)
		return r;
	r = cm_check_device(cm, id, a, ret_call);
	if (r < 0)
		return r;
	*ret_call = "rdma_listen";
	return CM_CALL(cm, rdma_listen, id, BACKLOG);
}

void cm_listen(struct cm *cm, const struct addr *a, bool ud)
{
	const char *call = cm->w->why_facts_only;
	struct rdma_cm_id *id = NULL;
	struct listener *l;
	int r = -EOPNOTSUPP;

	if (cm->exiting)
		return;
	if (find(cm, a, ud)) {
		listening(cm, a, ud, "", 0);
		return;
	}
	if (ud && cm->w->iwarp) {
		call = "ud on an iWARP device";
	} else if (atomic_load(&cm->w->device_state) == DEVICE_READY) {
		call = "opening /dev/infiniband/rdma_cm";
		r = cm_channel_open(cm);
	}
	if (!r) {
		call = "rdma_create_id";
		r = CM_CALL(cm, rdma_create_id, cm->channel, &id, NULL,
			    ud ? RDMA_PS_UDP : RDMA_PS_TCP);
	}
	if (!r) {
		r = bind_and_listen(cm, id, a, &call);
		if (r < 0)
			cm_destroy_id(cm, id);
	}
	if (!r) {
		l = xcalloc(1, sizeof(*l));
		l->id = id;
		l->addr = *a;
		l->ud = ud;
		l->next = cm->listeners;
		cm->listeners = l;
		atomic_fetch_add(&cm->w->listeners, 1);
	}
	listening(cm, a, ud, call, r);
}

static void remove_listener(struct cm *cm, struct listener **at)
{
	struct listener *l = *at;

	*at = l->next;
	cm_destroy_id(cm, l->id);
	free(l);
	atomic_fetch_sub(&cm->w->listeners, 1);
}

void cm_unlisten(struct cm *cm, const struct addr *a, bool ud)
{
	for (struct listener **l = &cm->listeners; *l; l = &(*l)->next)
		if ((*l)->ud == ud && addr_equal(&(*l)->addr, a)) {
			remove_listener(cm, l);
			return;
		}
}

void cm_unlisten_all(struct cm *cm)
{
	while (cm->listeners)
		remove_listener(cm, &cm->listeners);
}

/* ---- requests ---- */

static bool is_ud(const struct rdma_cm_id *id)
{
	return id->ps == RDMA_PS_UDP;
}

/* Which connection waits for this request: all that was installed must match. */
static struct endpoint *match(struct cm *cm, struct rdma_cm_id *id, const uint8_t *data,
			      size_t len, enum cmdata_code *ret_code,
			      enum drop *ret_drop)
{
	struct cmdata_request q;
	struct endpoint *ep;
	struct addr from;
	int r = cmdata_request_decode(data, len, &q);

	if (r < 0) {
		*ret_code = r == -EPROTONOSUPPORT ? CMREJ_VERSION : CMREJ_MALFORMED;
		*ret_drop = r == -EPROTONOSUPPORT ? DROP_VERSION
			    : r == -ENOMSG	  ? DROP_MAGIC
						  : DROP_MALFORMED;
		return NULL;
	}
	*ret_code = CMREJ_UNKNOWN;
	*ret_drop = DROP_UNKNOWN;
	ep = endpoint_by_conn(&cm->table, q.dst_conn_id);
	if (!ep || (ep->start.transport == TRANSPORT_UD) != is_ud(id) ||
	    ep->start.role != ROLE_RX || ep->start.peer_conn_id != q.src_conn_id)
		return NULL;
	if (ep->start.epoch != q.epoch) {
		*ret_drop = DROP_EPOCH;
		return NULL;
	}
	if (addr_from_sockaddr(rdma_get_peer_addr(id), sizeof(struct sockaddr_storage),
			       &from) ||
	    !addr_same_ip(&from, &ep->start.remote)) {
		*ret_code = CMREJ_SOURCE;
		*ret_drop = DROP_SOURCE;
		return NULL;
	}
	/* ud: the answer may be lost, and the question comes again. */
	if (ep->state != EPS_EXPECT && !(is_ud(id) && ep->state == EPS_UP)) {
		*ret_code = CMREJ_STATE;
		*ret_drop = DROP_STATE;
		return NULL;
	}
	return ep;
}

void cm_reject(struct cm *cm, struct rdma_cm_id *id, enum cmdata_code code)
{
	uint8_t data[CMDATA_REJECT_LEN];

	cmdata_reject_encode(code, data);
	(void)CM_CALL(cm, rdma_reject, id, data, sizeof(data));
}

static void accept_request(struct cm *cm, struct endpoint *ep, struct rdma_cm_id *id,
			   struct mono now)
{
	struct rdma_conn_param param = {
		.responder_resources = cm->ctx.rd_atomic,
		.initiator_depth = cm->ctx.rd_atomic,
		.retry_count = ep->start.retry_count,
		.rnr_retry_count = RNR_RETRY,
	};
	const char *call;
	int r;

	ep->id = id;
	id->context = (void *)(uintptr_t)ep->handle;
	r = cm_check_device(cm, id, &ep->start.local, &call);
	if (!r) {
		cm_set_ack_timeout(cm, ep);
		r = cm_prepare(cm, ep, &call);
	}
	if (r < 0) {
		cm_reject(cm, id, CMREJ_LOCAL);
		cm_fail_call(cm, ep, call, r);
		return;
	}
	ep->state = EPS_ACCEPT;
	cm_arm(cm, ep, mono_add(now, ep->start.connect_timeout_ms * NSEC_PER_MSEC));
	cm_stage(cm, ep, STAGE_CONNECT);
	r = sl_wanted(cm, ep) ? sl_accept(cm, ep, &param)
			      : CM_CALL(cm, rdma_accept, id, &param);
	if (r < 0)
		cm_fail_call(cm, ep, "rdma_accept", r);
	else
		ep->connected = true;
}

void cm_connect_request(struct cm *cm, struct rdma_cm_id *id, const uint8_t *data,
			size_t len, struct mono now)
{
	static struct log_limit limit;
	enum cmdata_code code;
	char a[ADDR_TEXT_MAX];
	struct endpoint *ep;
	struct addr from;
	enum drop why;

	ep = match(cm, id, data, len, &code, &why);
	if (ep && is_ud(id)) {
		ud_request(cm, ep, id);
		return;
	}
	if (ep) {
		accept_request(cm, ep, id, now);
		return;
	}
	count_drop(cm->w, why);
	if (addr_from_sockaddr(rdma_get_peer_addr(id), sizeof(struct sockaddr_storage),
			       &from))
		from = (struct addr){0};
	log_limited(&limit, LOG_INFO, "request from %s rejected: %s",
		    addr_format(&from, a), enum_name(&cmdata_code_names, code));
	cm_reject(cm, id, code);
	cm_destroy_id(cm, id);
}
