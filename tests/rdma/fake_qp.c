/* SPDX-License-Identifier: BSD-2-Clause */
/* Queue pairs of libibverbs, played by a script: what is posted, and how it ends. */
#include "fake_verbs.h"

#include <errno.h>
#include <stdlib.h>

struct fk_qp *fk_qps[1 << 15];
uint32_t fk_n_qps;
static uint32_t next_qpn = 0x100;

static struct fk_qp *qp_new(struct ibv_context *c, struct ibv_pd *pd,
			    struct ibv_qp_init_attr *attr)
{
	struct fk_qp *q;

	fk_alive(&OF(pd, pd, pd)->o, FK_PD, "creating a QP");
	fk_alive(&CQ_OF(attr->send_cq)->o, FK_CQ, "creating a QP");
	fk_alive(&CQ_OF(attr->recv_cq)->o, FK_CQ, "creating a QP");
	assert(fk_n_qps < ARRAY_LEN(fk_qps));
	attr->cap.max_inline_data = MIN(attr->cap.max_inline_data, fk.max_inline);
	q = fk_make(FK_QP, sizeof(*q), &OF(pd, pd, pd)->o);
	q->send_cq = CQ_OF(attr->send_cq);
	q->recv_cq = CQ_OF(attr->recv_cq);
	q->send_cq->o.children++;
	q->recv_cq->o.children++;
	q->max_send = attr->cap.max_send_wr;
	q->all_signalled = attr->sq_sig_all;
	q->max_recv = attr->cap.max_recv_wr;
	q->recv = xcalloc(q->max_recv, sizeof(*q->recv));
	q->send = xcalloc(q->max_send, sizeof(*q->send));
	q->qp = (struct ibv_qp){.context = c,
				.qp_context = attr->qp_context,
				.pd = pd,
				.send_cq = attr->send_cq,
				.recv_cq = attr->recv_cq,
				.qp_num = next_qpn++,
				.qp_type = attr->qp_type,
				.state = attr->qp_type == IBV_QPT_UD ? IBV_QPS_RESET
								     : IBV_QPS_INIT};
	fk_qps[fk_n_qps++] = q;
	return q;
}

void fk_qp_of_id(struct rdma_cm_id *id, struct ibv_pd *pd,
		 struct ibv_qp_init_attr *attr)
{
	fk_lock();
	id->qp = &qp_new(id->verbs, pd, attr)->qp;
	fk_unlock();
}

struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	fk.calls++;
	if (fk_fails_p("ibv_create_qp"))
		return NULL;
	return &qp_new(pd->context, pd, attr)->qp;
}

void fk_qp_gone(struct ibv_qp *qp, const char *call)
{
	struct fk_qp *q = QP_OF(qp);
	struct fk_cq *cqs[2] = {q->send_cq, q->recv_cq};

	fk_lock();
	fk_alive(&q->o, FK_QP, call);
	if (q->async_unacked)
		fk_wrong("%s would wait for ever: an event is not acknowledged", call);
	/* Completions of it that nobody took go with it. */
	for (int c = 0; c < 2; c++) {
		int kept = 0;

		for (int i = 0; i < cqs[c]->n; i++)
			if (cqs[c]->queue[i].qp != q)
				cqs[c]->queue[kept++] = cqs[c]->queue[i];
			else
				cqs[c]->n_extra -= cqs[c]->queue[i].extra;
		cqs[c]->n = kept;
		cqs[c]->o.children--;
	}
	fk_purge_async(qp->context, qp);
	for (uint32_t i = 0; i < fk_n_qps; i++)
		if (fk_qps[i] == q) {
			fk_qps[i] = fk_qps[--fk_n_qps];
			break;
		}
	free(q->recv);
	free(q->send);
	q->recv = q->send = NULL;
	q->n_recv = q->n_send = 0;
	fk_destroy(&q->o, FK_QP, call);
	fk_unlock();
}

int ibv_destroy_qp(struct ibv_qp *qp)
{
	fk.calls++;
	fk_qp_gone(qp, "ibv_destroy_qp");
	return 0;
}

int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	int r;

	fk.calls++;
	fk_alive(&QP_OF(qp)->o, FK_QP, "ibv_modify_qp");
	if (fk_fails("ibv_modify_qp", INT_MAX, &r))
		return r;
	if (!(mask & IBV_QP_STATE))
		return 0;
	qp->state = attr->qp_state;
	if (attr->qp_state == IBV_QPS_RESET) { /* completions stay in their queues */
		QP_OF(qp)->n_recv = QP_OF(qp)->n_send = 0;
		QP_OF(qp)->in_error = false;
	}
	if (attr->qp_state == IBV_QPS_ERR)
		fk_flush(qp);
	return 0;
}

int ibv_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask,
		 struct ibv_qp_init_attr *init)
{
	(void)mask;
	(void)init;
	fk_alive(&QP_OF(qp)->o, FK_QP, "ibv_query_qp");
	memset(attr, 0, sizeof(*attr));
	attr->qp_state = qp->state;
	attr->path_mtu = IBV_MTU_2048;
	return 0;
}

static int one_recv(struct fk_qp *q, const struct ibv_recv_wr *wr)
{
	uint8_t *buf = (uint8_t *)(uintptr_t)wr->sg_list->addr;
	int r;

	if (fk_fails("ibv_post_recv", INT_MAX, &r))
		return r;
	if (q->qp.state == IBV_QPS_RESET)
		fk_wrong("ibv_post_recv: the queue pair is in RESET");
	for (uint32_t i = 0; i < q->n_recv; i++)
		if (q->recv[i].buf == buf)
			fk_wrong("ibv_post_recv: slot 0x%" PRIx64 " is posted already",
				 wr->wr_id);
	if (q->n_recv == q->max_recv)
		return ENOMEM;
	q->recv[q->n_recv++] = (struct work){
		.wr_id = wr->wr_id, .buf = buf, .len = wr->sg_list->length};
	q->posted++;
	return 0;
}

int fk_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct fk_qp *q = QP_OF(qp);
	int r = 0;

	fk.calls++;
	fk_lock();
	fk_alive(&q->o, FK_QP, "ibv_post_recv");
	for (; wr && !r; wr = wr->next) {
		*bad = wr;
		r = one_recv(q, wr);
	}
	if (q->in_error) /* allowed, and comes back at once */
		fk_flush(qp);
	fk_unlock();
	return r;
}

static void check_ud_send(const struct fk_qp *q, const struct ibv_send_wr *wr)
{
	/* After an error that its user has not seen yet it is flushed. */
	if (q->qp.state != IBV_QPS_RTS && q->qp.state != IBV_QPS_SQE &&
	    q->qp.state != IBV_QPS_ERR)
		fk_wrong("ibv_post_send: the queue pair does not send");
	fk_alive(&OF(ah, ah, wr->wr.ud.ah)->o, FK_AH, "ibv_post_send");
	if (!(wr->send_flags & IBV_SEND_SIGNALED))
		fk_wrong("ibv_post_send: nothing would tell when the handle is free");
	if (wr->wr.ud.remote_qkey != RDMA_UDP_QKEY || !wr->wr.ud.remote_qpn)
		fk_wrong("ibv_post_send: to no queue pair, or with another key");
}

int fk_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	struct fk_qp *q = QP_OF(qp);
	uint8_t *buf = (uint8_t *)(uintptr_t)wr->sg_list->addr;
	bool ud = qp->qp_type == IBV_QPT_UD;
	bool is_inline = wr->send_flags & IBV_SEND_INLINE;
	int r;

	fk.calls++;
	fk_lock();
	fk_alive(&q->o, FK_QP, "ibv_post_send");
	*bad = wr;
	if (fk_fails("ibv_post_send", INT_MAX, &r)) {
		fk_unlock();
		return r;
	}
	if (ud)
		check_ud_send(q, wr);
	if (is_inline && wr->sg_list->length > fk.max_inline)
		fk_wrong("ibv_post_send: %u bytes do not go inline",
			 wr->sg_list->length);
	for (uint32_t i = 0; i < q->n_recv && !is_inline; i++)
		if (q->recv[i].buf == buf)
			fk_wrong("ibv_post_send: the buffer is posted to receive");
	if (q->n_send == q->max_send) {
		fk_unlock();
		return ENOMEM;
	}
	q->send[q->n_send++] = (struct work){
		.wr_id = wr->wr_id,
		.buf = is_inline ? NULL : buf,
		.len = wr->sg_list->length,
		.ah = ud ? wr->wr.ud.ah : NULL,
		.silent = !q->all_signalled && !(wr->send_flags & IBV_SEND_SIGNALED)};
	if (q->in_error)
		fk_flush(qp);
	else if (qp->state == IBV_QPS_SQE)
		fk_sqe(qp);
	fk_unlock();
	if (fk.on_send && !q->in_error && qp->state != IBV_QPS_SQE)
		fk.on_send(qp, wr->wr_id, buf, wr->sg_list->length);
	return 0;
}

/* Of an error only wr_id, status, qp_num and vendor_err are valid: the rest is there to
 * mislead whoever looks. */
static struct ibv_wc of_work(const struct fk_qp *q, const struct work *w,
			     enum ibv_wc_status status, bool recv)
{
	struct ibv_wc wc = {.wr_id = w->wr_id,
			    .status = status,
			    .qp_num = q->qp.qp_num,
			    .opcode = recv ? IBV_WC_RECV : IBV_WC_SEND,
			    .byte_len = w->len};

	if (status == IBV_WC_SUCCESS)
		return wc;
	wc.opcode =
		(enum ibv_wc_opcode)(recv ? IBV_WC_SEND : IBV_WC_RECV_RDMA_WITH_IMM);
	wc.byte_len = 0xdeadbeef;
	wc.wc_flags = 0xffff;
	wc.imm_data = 0xdeadbeef;
	wc.src_qp = 0xdeadbeef;
	wc.vendor_err = 0x77;
	return wc;
}

void fk_wc(struct ibv_qp *qp, const struct ibv_wc *wc)
{
	struct fk_qp *q = QP_OF(qp);

	fk_lock();
	fk_alive(&q->o, FK_QP, "a completion");
	fk_cq_complete(q->recv_cq, q, wc, true);
	fk_unlock();
}

static struct work take(struct work *queue, uint32_t *n)
{
	struct work w = queue[0];

	memmove(queue, queue + 1, --*n * sizeof(*queue));
	return w;
}

/* The receive that a message goes into; false: there is none. */
static bool take_receive(struct fk_qp *q, struct work *ret)
{
	fk_alive(&q->o, FK_QP, "a message");
	if (!q->n_recv || q->in_error)
		return false;
	*ret = take(q->recv, &q->n_recv);
	q->returned++;
	return true;
}

bool fk_deliver(struct ibv_qp *qp, const void *buf, uint32_t len)
{
	struct fk_qp *q = QP_OF(qp);
	struct ibv_wc wc;
	struct work w;

	fk_lock();
	if (!take_receive(q, &w)) {
		fk_unlock();
		return false;
	}
	assert(len <= w.len);
	memcpy(w.buf, buf, len);
	w.len = len;
	wc = of_work(q, &w, IBV_WC_SUCCESS, true);
	fk_cq_complete(q->recv_cq, q, &wc, false);
	fk_unlock();
	return true;
}

bool fk_deliver_ud(struct ibv_qp *qp, const uint8_t *grh, const void *buf, uint32_t len,
		   uint32_t src_qp)
{
	struct fk_qp *q = QP_OF(qp);
	struct ibv_wc wc;
	struct work w;

	fk_lock();
	if (!take_receive(q, &w)) {
		fk_unlock();
		return false;
	}
	assert(len + 40 <= w.len);
	/* RoCE v2 over IPv4 writes the last 20 bytes of the 40 only. */
	if (grh && grh[0] >> 4 == 6)
		memcpy(w.buf, grh, 40);
	else if (grh)
		memcpy(w.buf + 20, grh + 20, 20);
	memcpy(w.buf + 40, buf, len);
	w.len = len + 40;
	wc = of_work(q, &w, IBV_WC_SUCCESS, true);
	wc.src_qp = src_qp;
	wc.wc_flags = grh ? IBV_WC_GRH : 0;
	fk_cq_complete(q->recv_cq, q, &wc, false);
	fk_unlock();
	return true;
}

bool fk_complete_send(struct ibv_qp *qp, enum ibv_wc_status status)
{
	struct fk_qp *q = QP_OF(qp);
	struct ibv_wc wc;
	struct work w;

	fk_lock();
	fk_alive(&q->o, FK_QP, "a completion");
	if (!q->n_send) {
		fk_unlock();
		return false;
	}
	w = take(q->send, &q->n_send);
	wc = of_work(q, &w, status, false);
	if (!w.silent || status != IBV_WC_SUCCESS)
		fk_cq_complete(q->send_cq, q, &wc, false);
	fk_unlock();
	return true;
}

void fk_flush(struct ibv_qp *qp)
{
	struct fk_qp *q = QP_OF(qp);

	fk_lock();
	fk_alive(&q->o, FK_QP, "flushing");
	q->in_error = true;
	qp->state = IBV_QPS_ERR;
	while (q->n_send)
		(void)fk_complete_send(qp, IBV_WC_WR_FLUSH_ERR);
	while (q->n_recv) {
		struct work w = take(q->recv, &q->n_recv);
		struct ibv_wc wc = of_work(q, &w, IBV_WC_WR_FLUSH_ERR, true);

		q->returned++;
		fk_cq_complete(q->recv_cq, q, &wc, false);
	}
	fk_unlock();
}

void fk_break(struct ibv_qp *qp, enum ibv_wc_status status)
{
	struct fk_qp *q = QP_OF(qp);

	fk_lock();
	fk_alive(&q->o, FK_QP, "breaking");
	if (!fk_complete_send(qp, status) && q->n_recv) {
		struct work w = take(q->recv, &q->n_recv);
		struct ibv_wc wc = of_work(q, &w, status, true);

		q->returned++;
		fk_cq_complete(q->recv_cq, q, &wc, false);
	}
	fk_flush(qp);
	fk_unlock();
}

void fk_sqe(struct ibv_qp *qp)
{
	qp->state = IBV_QPS_SQE;
	while (fk_complete_send(qp, IBV_WC_WR_FLUSH_ERR))
		;
}

struct ibv_qp *fk_ud_qp(void)
{
	for (uint32_t i = 0; i < fk_n_qps; i++)
		if (fk_qps[i]->qp.qp_type == IBV_QPT_UD)
			return &fk_qps[i]->qp;
	return NULL;
}

struct fk_qp_view fk_qp_view(const struct ibv_qp *qp)
{
	const struct fk_qp *q = QP_OF(qp);

	return (struct fk_qp_view){.recv_posted = (int)q->n_recv,
				   .sends_out = (int)q->n_send,
				   .posted = q->posted,
				   .returned = q->returned,
				   .in_error = q->in_error};
}

const char *ibv_event_type_str(enum ibv_event_type event)
{
	return event == IBV_EVENT_QP_FATAL ? "local work queue catastrophic error"
					   : "event";
}

const char *ibv_wc_status_str(enum ibv_wc_status status)
{
	return status == IBV_WC_RETRY_EXC_ERR ? "transport retry counter exceeded"
					      : "error";
}
