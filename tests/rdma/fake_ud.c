/* SPDX-License-Identifier: BSD-2-Clause */
#include "fake_ud.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

struct fake_ah {
	struct ibv_ah ah;
	struct ibv_ah_attr attr;
};

struct fake_ud fake_ud;

static _Noreturn void wrong(const char *what)
{
	fprintf(stderr, "fake_ud: %s\n", what);
	abort();
}

static struct fake_ud_qp *of_qp(struct ibv_qp *qp)
{
	for (int i = 0; i < FAKE_UD_QPS; i++)
		if (fake_ud.qp[i].used && &fake_ud.qp[i].qp == qp)
			return &fake_ud.qp[i];
	return NULL;
}

struct fake_ud_qp *fake_ud_qp(void)
{
	for (int i = 0; i < FAKE_UD_QPS; i++)
		if (fake_ud.qp[i].used)
			return &fake_ud.qp[i];
	return NULL;
}

/* ---- posting and polling ---- */

static int post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct fake_ud_qp *q = of_qp(qp);

	if (fake_fails("ibv_post_recv")) {
		*bad = wr;
		return errno;
	}
	if (!q)
		return 0; /* rc: nothing is kept of it */
	if (q->state == IBV_QPS_RESET)
		wrong("a receive is posted to a queue pair in RESET");
	for (; wr; wr = wr->next) {
		if (q->n_recvs == (int)qp->handle) {
			*bad = wr;
			return ENOMEM;
		}
		for (int i = 0; i < q->n_recvs; i++)
			if (q->recvs[i].addr == wr->sg_list->addr)
				wrong("a receive slot is posted twice");
		q->recvs[q->n_recvs++] = (struct fake_ud_post){
			.wr_id = wr->wr_id,
			.addr = wr->sg_list->addr,
			.length = wr->sg_list->length};
	}
	return 0;
}

static int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	struct fake_ud_qp *q = of_qp(qp);
	struct fake_ud_post *p;

	*bad = wr;
	if (!q)
		wrong("a send on a queue pair that is not ud");
	if (q->state != IBV_QPS_RTS)
		wrong("a send is posted to a queue pair that does not send");
	if (q->n_sends == FAKE_UD_POSTS)
		return ENOMEM;
	if (!(wr->send_flags & IBV_SEND_SIGNALED))
		wrong("a ud send that does not tell when its handle is free");
	if (wr->wr.ud.remote_qkey != RDMA_UDP_QKEY || !wr->wr.ud.remote_qpn)
		wrong("a ud send to no queue pair, or with another key");
	p = &q->sends[q->n_sends++];
	*p = (struct fake_ud_post){.wr_id = wr->wr_id,
				   .addr = wr->sg_list->addr,
				   .length = wr->sg_list->length,
				   .ah = wr->wr.ud.ah,
				   .qpn = wr->wr.ud.remote_qpn,
				   .qkey = wr->wr.ud.remote_qkey,
				   .is_inline = wr->send_flags & IBV_SEND_INLINE};
	memcpy(p->head, (const void *)(uintptr_t)p->addr,
	       MIN(p->length, (uint32_t)sizeof(p->head)));
	return 0;
}

static int take(struct ibv_wc *from, int *have, struct ibv_wc *to, int n)
{
	int given = MIN(n, *have);

	memcpy(to, from, (size_t)given * sizeof(*to));
	*have -= given;
	memmove(from, from + given, (size_t)*have * sizeof(*to));
	return given;
}

static int poll_cq(struct ibv_cq *cq, int n, struct ibv_wc *wc)
{
	for (int i = 0; i < FAKE_UD_QPS; i++) {
		struct fake_ud_qp *q = &fake_ud.qp[i];

		if (q->used && q->qp.recv_cq == cq)
			return take(q->recv_wc, &q->n_recv_wc, wc, n);
		if (q->used && q->qp.send_cq == cq)
			return take(q->send_wc, &q->n_send_wc, wc, n);
	}
	return 0;
}

static int req_notify(struct ibv_cq *cq, int solicited_only)
{
	(void)solicited_only;
	for (int i = 0; i < FAKE_UD_QPS; i++)
		if (fake_ud.qp[i].used && fake_ud.qp[i].qp.recv_cq == cq)
			fake_ud.qp[i].arms++;
	return 0;
}

void fake_ud_reset(void)
{
	memset(&fake_ud, 0, sizeof(fake_ud));
	fake_ud.gid_index = 3;
	fake.verbs.ops.poll_cq = poll_cq;
	fake.verbs.ops.req_notify_cq = req_notify;
	fake.verbs.ops.post_recv = post_recv;
	fake.verbs.ops.post_send = post_send;
}

/* ---- what happens ---- */

void fake_ud_established(struct rdma_cm_id *id, const struct ibv_ah_attr *attr,
			 uint32_t qpn)
{
	struct rdma_cm_event *ev = fake_event(id, RDMA_CM_EVENT_ESTABLISHED, 0);

	ev->param.ud.ah_attr = *attr;
	ev->param.ud.qp_num = qpn;
	ev->param.ud.qkey = RDMA_UDP_QKEY;
}

void fake_ud_refused(struct rdma_cm_id *id, int status, const void *data, size_t len)
{
	static uint8_t copy[136]; /* the wire maximum, padded with zeros */
	struct rdma_cm_event *ev = fake_event(id, RDMA_CM_EVENT_UNREACHABLE, status);

	memset(copy, 0, sizeof(copy));
	if (len)
		memcpy(copy, data, len);
	ev->param.ud.private_data = copy;
	ev->param.ud.private_data_len = sizeof(copy);
}

void fake_ud_arrives(struct fake_ud_qp *q, const uint8_t *grh, const void *data,
		     size_t len, uint32_t src_qp, uint16_t slid)
{
	struct fake_ud_post p;
	uint8_t *to;

	if (!q->n_recvs)
		return; /* nobody hears of it */
	p = q->recvs[0];
	memmove(q->recvs, q->recvs + 1, (size_t)--q->n_recvs * sizeof(p));
	if (p.length < 40 + len)
		wrong("a receive is shorter than a header and a message");
	to = (uint8_t *)(uintptr_t)p.addr;
	if (grh && grh[0] >> 4 == 6)
		memcpy(to, grh, 40);
	else if (grh)
		memcpy(to + 20, grh + 20, 20);
	memcpy(to + 40, data, len);
	q->recv_wc[q->n_recv_wc++] = (struct ibv_wc){.wr_id = p.wr_id,
						     .byte_len = (uint32_t)(40 + len),
						     .src_qp = src_qp,
						     .slid = slid,
						     .wc_flags = grh ? IBV_WC_GRH : 0,
						     .opcode = (enum ibv_wc_opcode)0x7f};
}

void fake_ud_sent(struct fake_ud_qp *q, int n, enum ibv_wc_status status)
{
	if (n > q->n_sends)
		wrong("the test completes sends that were not posted");
	for (int i = 0; i < n; i++)
		q->send_wc[q->n_send_wc++] = (struct ibv_wc){
			.wr_id = q->sends[i].wr_id, .status = status};
	q->n_sends -= n;
	memmove(q->sends, q->sends + n, (size_t)q->n_sends * sizeof(*q->sends));
}

void fake_ud_breaks(struct fake_ud_qp *q, enum ibv_qp_state state)
{
	q->state = state;
	fake_ud_sent(q, q->n_sends, IBV_WC_WR_FLUSH_ERR);
	if (state != IBV_QPS_ERR)
		return;
	for (int i = 0; i < q->n_recvs; i++)
		q->recv_wc[q->n_recv_wc++] = (struct ibv_wc){
			.wr_id = q->recvs[i].wr_id, .status = IBV_WC_WR_FLUSH_ERR};
	q->n_recvs = 0;
}

void fake_ud_async(struct fake_ud_qp *q, enum ibv_event_type type)
{
	struct ibv_async_event ev = {.event_type = type};

	if (type == IBV_EVENT_CQ_ERR)
		ev.element.cq = q->qp.recv_cq;
	else
		ev.element.qp = &q->qp;
	fake_async(&ev);
}

void fake_ud_ipv4(uint8_t grh[40], const uint8_t src[4], const uint8_t dst[4])
{
	memset(grh, 0, 40);
	grh[20] = 0x45;
	memcpy(grh + 32, src, 4);
	memcpy(grh + 36, dst, 4);
}

void fake_ud_check_balance(void)
{
	if (fake_ud.ahs)
		wrong("an address handle is left");
	if (fake_ud_qp())
		wrong("a ud queue pair is left");
}

/* ---- libibverbs ---- */

struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	struct fake_ud_qp *q = NULL;

	if (fake_fails("ibv_create_qp"))
		return NULL;
	if (attr->qp_type != IBV_QPT_UD)
		wrong("rc queue pairs are made by the connection manager");
	if (fake_ud.no_inline && attr->cap.max_inline_data) {
		errno = EINVAL;
		return NULL;
	}
	for (int i = FAKE_UD_QPS - 1; i >= 0; i--)
		if (!fake_ud.qp[i].used)
			q = &fake_ud.qp[i];
	if (!q)
		wrong("too many ud queue pairs");
	memset(q, 0, sizeof(*q));
	q->used = true;
	q->qp.context = pd->context;
	q->qp.qp_context = attr->qp_context;
	q->qp.pd = pd;
	q->qp.send_cq = attr->send_cq;
	q->qp.recv_cq = attr->recv_cq;
	q->qp.qp_type = IBV_QPT_UD;
	q->qp.qp_num = ++fake_ud.last_qpn + 100;
	q->qp.handle = attr->cap.max_recv_wr; /* of no other use here */
	fake.qps++;
	return &q->qp;
}

int ibv_destroy_qp(struct ibv_qp *qp)
{
	struct fake_ud_qp *q = of_qp(qp);

	if (!q)
		wrong("destroys what is no ud queue pair");
	q->used = false;
	fake.qps--;
	return 0;
}

static void enter_reset(struct fake_ud_qp *q)
{
	q->n_recvs = q->n_sends = 0; /* completions stay in their queues */
}

int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	struct fake_ud_qp *q = of_qp(qp);
	enum ibv_qp_state from, to = attr->qp_state;

	if (fake_fails("ibv_modify_qp"))
		return errno;
	if (!q) { /* of rc: its steps are made by hand where a service level is wanted */
		if (to == IBV_QPS_RTR)
			fake_ud.rc_sl = attr->ah_attr.sl;
		fake_ud.rc_steps++;
		return 0;
	}
	if (!(mask & IBV_QP_STATE))
		wrong("ibv_modify_qp of what, to what?");
	from = q->state;
	if (to == IBV_QPS_INIT) {
		if (from != IBV_QPS_RESET ||
		    mask != (IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY))
			wrong("to INIT");
		q->qkey = attr->qkey;
		q->port = attr->port_num;
		q->pkey_index = attr->pkey_index;
	} else if (to == IBV_QPS_RTR) {
		if (from != IBV_QPS_INIT)
			wrong("to RTR");
	} else if (to == IBV_QPS_RTS) {
		if (from != IBV_QPS_SQE &&
		    (from != IBV_QPS_RTR || !(mask & IBV_QP_SQ_PSN)))
			wrong("to RTS");
	} else if (to == IBV_QPS_RESET) {
		enter_reset(q);
	}
	q->state = to;
	return 0;
}

bool fake_ud_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr)
{
	struct fake_ud_qp *q = of_qp(qp);

	if (q)
		attr->qp_state = q->state;
	return q != NULL;
}

struct ibv_ah *ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
	struct fake_ah *a;

	if (fake_fails("ibv_create_ah"))
		return NULL;
	a = xcalloc(1, sizeof(*a));
	a->ah.context = pd->context;
	a->ah.pd = pd;
	a->attr = fake_ud.last_ah = *attr;
	fake_ud.ahs++;
	fake_ud.ahs_made++;
	return &a->ah;
}

int ibv_destroy_ah(struct ibv_ah *ah)
{
	for (int i = 0; i < FAKE_UD_QPS; i++)
		for (int j = 0; fake_ud.qp[i].used && j < fake_ud.qp[i].n_sends; j++)
			if (fake_ud.qp[i].sends[j].ah == ah)
				wrong("a handle goes while a send with it is under way");
	free(ah);
	fake_ud.ahs--;
	return 0;
}

int ibv_init_ah_from_wc(struct ibv_context *context, uint8_t port, struct ibv_wc *wc,
			struct ibv_grh *grh, struct ibv_ah_attr *attr)
{
	const uint8_t *h = (const uint8_t *)grh;

	(void)context;
	*attr = (struct ibv_ah_attr){.dlid = wc->slid, .sl = wc->sl, .port_num = port};
	if (!(wc->wc_flags & IBV_WC_GRH))
		return 0;
	if (fake_ud.grh_unclear) {
		errno = EPROTONOSUPPORT;
		return -1;
	}
	attr->is_global = 1;
	attr->grh.sgid_index = (uint8_t)fake_ud.gid_index;
	if (h[0] >> 4 == 6) {
		memcpy(attr->grh.dgid.raw, h + 8, 16);
	} else {
		attr->grh.dgid.raw[10] = attr->grh.dgid.raw[11] = 0xff;
		memcpy(attr->grh.dgid.raw + 12, h + 32, 4);
	}
	return 0;
}

int _ibv_query_gid_ex(struct ibv_context *context, uint32_t port_num, uint32_t gid_index,
		      struct ibv_gid_entry *entry, uint32_t flags, size_t entry_size)
{
	static const uint8_t gid[16] = {[10] = 0xff, [11] = 0xff, [12] = 10, [15] = 1};

	(void)context;
	(void)flags;
	(void)entry_size;
	if (fake_ud.gid_index < 0 || gid_index != (uint32_t)fake_ud.gid_index)
		return ENODATA;
	*entry = (struct ibv_gid_entry){.gid_index = gid_index,
					.port_num = port_num,
					.gid_type = IBV_GID_TYPE_ROCE_V2};
	memcpy(entry->gid.raw, gid, sizeof(gid));
	return 0;
}

int ibv_query_pkey(struct ibv_context *context, uint8_t port, int index, __be16 *pkey)
{
	(void)context;
	(void)port;
	*pkey = htobe16((uint16_t)(0xffff - index));
	return 0;
}

int ibv_rate_to_mbps(enum ibv_rate rate)
{
	return rate == IBV_RATE_100_GBPS ? 103125 : -1;
}

/* ---- librdmacm ---- */

int rdma_init_qp_attr(struct rdma_cm_id *id, struct ibv_qp_attr *attr, int *mask)
{
	if (!id->verbs)
		wrong("rdma_init_qp_attr of an id without device");
	if (fake_fails("rdma_init_qp_attr"))
		return -1;
	*mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY;
	attr->pkey_index = fake_ud.pkey_index;
	attr->port_num = id->port_num;
	attr->qkey = RDMA_UDP_QKEY;
	return 0;
}
