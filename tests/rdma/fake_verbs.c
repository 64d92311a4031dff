/* SPDX-License-Identifier: BSD-2-Clause */
/* libibverbs, played by a script. */
#include "fake_verbs.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#undef ibv_query_port
#undef ibv_reg_mr

/* librdmacm's context of the device: opened behind our back, never closed. */
static struct context cm_context;
static struct ibv_device device;

static int poll_cq(struct ibv_cq *cq, int n, struct ibv_wc *wc);
static int req_notify(struct ibv_cq *cq, int solicited_only);

static void set_up(struct context *x)
{
	x->c.device = &x->device;
	x->device.transport_type = fk.transport;
	x->device.node_type = fk.node_type;
	(void)str_copy(x->device.name, sizeof(x->device.name), fk.name);
	(void)str_copy(x->device.dev_name, sizeof(x->device.dev_name), "uverbs0");
	x->c.async_fd = fk_bell_new();
	x->c.ops.post_recv = fk_post_recv;
	x->c.ops.post_send = fk_post_send;
	x->c.ops.poll_cq = poll_cq;
	x->c.ops.req_notify_cq = req_notify;
}

void fk_verbs_reset(void)
{
	if (cm_context.c.async_fd > 0)
		(void)close(cm_context.c.async_fd);
	memset(&cm_context, 0, sizeof(cm_context));
	set_up(&cm_context);
	fk.verbs = &cm_context.c;
}

void fk_verbs_free(struct fk_object *o)
{
	if (o->kind == FK_CONTEXT)
		(void)close(((struct context *)o)->c.async_fd);
	if (o->kind == FK_CQ)
		free(((struct fk_cq *)o)->queue);
	if (o->kind == FK_COMP) {
		free(((struct comp *)o)->notes);
		(void)close(((struct comp *)o)->c.fd);
	}
	if (o->kind != FK_QP)
		return;
	free(((struct fk_qp *)o)->recv);
	free(((struct fk_qp *)o)->send);
	for (uint32_t i = 0; i < fk_n_qps; i++)
		if (fk_qps[i] == (struct fk_qp *)o) {
			fk_qps[i] = fk_qps[--fk_n_qps];
			break;
		}
}

/* ---- devices */

static struct ibv_device *list[2];

struct ibv_device **ibv_get_device_list(int *n)
{
	fk.calls++;
	if (fk_fails_p("ibv_get_device_list"))
		return NULL;
	(void)str_copy(device.name, sizeof(device.name), fk.name);
	device.transport_type = fk.transport;
	device.node_type = fk.node_type;
	list[0] = fk.no_device ? NULL : &device;
	*n = !fk.no_device;
	return list;
}

void ibv_free_device_list(struct ibv_device **l)
{
	if (l != list)
		fk_wrong("ibv_free_device_list: another list");
}

struct ibv_context *ibv_open_device(struct ibv_device *d)
{
	struct context *x;

	(void)d;
	fk.calls++;
	if (fk_fails_p("ibv_open_device"))
		return NULL;
	x = fk_make(FK_CONTEXT, sizeof(*x), NULL);
	set_up(x);
	return &x->c;
}

int ibv_close_device(struct ibv_context *c)
{
	(void)close(c->async_fd);
	fk_destroy(&CONTEXT_OF(c)->o, FK_CONTEXT, "ibv_close_device");
	return 0;
}

int ibv_get_device_index(struct ibv_device *d)
{
	(void)d;
	return fk.index;
}

const char *ibv_get_device_name(struct ibv_device *d)
{
	return d->name;
}

int ibv_query_device(struct ibv_context *c, struct ibv_device_attr *a)
{
	int r;

	(void)c;
	memset(a, 0, sizeof(*a));
	a->max_qp_rd_atom = 16;
	a->node_guid = fk.node_guid;
	a->phys_port_cnt = fk.n_ports;
	(void)str_copy(a->fw_ver, sizeof(a->fw_ver), "1.0");
	return fk_fails("ibv_query_device", INT_MAX, &r) ? r : 0;
}

int ibv_query_port(struct ibv_context *c, uint8_t port,
		   struct _compat_ibv_port_attr *attr)
{
	int r;

	(void)c;
	(void)port;
	fk.calls++;
	if (fk.query_port_errno)
		return fk.query_port_errno;
	if (fk_fails("ibv_query_port", INT_MAX, &r))
		return r;
	memcpy(attr, &fk.port, sizeof(fk.port));
	return 0;
}

int ibv_query_gid(struct ibv_context *c, uint8_t port, int index, union ibv_gid *gid)
{
	(void)c;
	(void)port;
	memset(gid, 0, sizeof(*gid));
	for (int i = 0; i < fk.n_gids; i++)
		if ((int)fk.gids[i].gid_index == index)
			*gid = fk.gids[i].gid;
	return 0;
}

ssize_t _ibv_query_gid_table(struct ibv_context *c, struct ibv_gid_entry *entries,
			     size_t max, uint32_t flags, size_t entry_size)
{
	int r;

	(void)c;
	(void)flags;
	fk.calls++;
	if (fk_fails("ibv_query_gid_table", -EIO, &r))
		return r;
	assert(entry_size == sizeof(*entries));
	r = (int)MIN((size_t)fk.n_gids, max);
	memcpy(entries, fk.gids, (size_t)r * sizeof(*entries));
	return r;
}

int _ibv_query_gid_ex(struct ibv_context *c, uint32_t port, uint32_t index,
		      struct ibv_gid_entry *entry, uint32_t flags, size_t entry_size)
{
	(void)c;
	(void)port;
	(void)flags;
	(void)entry_size;
	for (int i = 0; i < fk.n_gids; i++)
		if (fk.gids[i].gid_index == index) {
			*entry = fk.gids[i];
			return 0;
		}
	return ENODATA;
}

int ibv_query_pkey(struct ibv_context *c, uint8_t port, int index, __be16 *pkey)
{
	(void)c;
	(void)port;
	*pkey = htobe16((uint16_t)(0xffff - index));
	return 0;
}

int ibv_rate_to_mbps(enum ibv_rate rate)
{
	return rate == IBV_RATE_100_GBPS ? 103125 : -1;
}

int ibv_init_ah_from_wc(struct ibv_context *c, uint8_t port, struct ibv_wc *wc,
			struct ibv_grh *grh, struct ibv_ah_attr *attr)
{
	const uint8_t *h = (const uint8_t *)grh;

	(void)c;
	*attr = (struct ibv_ah_attr){.dlid = wc->slid, .sl = wc->sl, .port_num = port};
	if (!(wc->wc_flags & IBV_WC_GRH))
		return 0;
	attr->is_global = 1;
	if (h[0] >> 4 == 6) {
		memcpy(attr->grh.dgid.raw, h + 8, 16);
	} else {
		attr->grh.dgid.raw[10] = attr->grh.dgid.raw[11] = 0xff;
		memcpy(attr->grh.dgid.raw + 12, h + 32, 4);
	}
	return 0;
}

/* ---- asynchronous events */

static void queue_async(struct ibv_context *c, struct ibv_async_event ev)
{
	struct context *x = CONTEXT_OF(c);

	fk_lock();
	assert(x->n < ASYNC_MAX);
	x->queue[x->n++] = ev;
	fk_unlock();
	if (!x->dead)
		fk_bell_ring(c->async_fd);
}

void fk_async_qp(struct ibv_qp *qp, enum ibv_event_type type)
{
	fk_alive(&QP_OF(qp)->o, FK_QP, "queueing an event");
	queue_async(qp->context,
		    (struct ibv_async_event){.event_type = type, .element.qp = qp});
}

void fk_async_cq(struct ibv_cq *cq, enum ibv_event_type type)
{
	fk_alive(&CQ_OF(cq)->o, FK_CQ, "queueing an event");
	queue_async(cq->context,
		    (struct ibv_async_event){.event_type = type, .element.cq = cq});
}

void fk_async_port(struct ibv_context *c, enum ibv_event_type type, int port)
{
	queue_async(c, (struct ibv_async_event){.event_type = type,
						.element.port_num = port});
}

int fk_async_queued(const struct ibv_context *c)
{
	return CONTEXT_OF(c)->n;
}

void fk_kill_async(struct ibv_context *c, int err)
{
	CONTEXT_OF(c)->dead = err;
	fk_bell_kill(c->async_fd);
}

static bool is_qp_event(enum ibv_event_type t)
{
	return t == IBV_EVENT_QP_FATAL || t == IBV_EVENT_QP_REQ_ERR ||
	       t == IBV_EVENT_QP_ACCESS_ERR || t == IBV_EVENT_COMM_EST ||
	       t == IBV_EVENT_SQ_DRAINED || t == IBV_EVENT_PATH_MIG ||
	       t == IBV_EVENT_PATH_MIG_ERR || t == IBV_EVENT_QP_LAST_WQE_REACHED;
}

static int *async_account(const struct ibv_async_event *ev)
{
	if (is_qp_event(ev->event_type)) {
		fk_alive(&QP_OF(ev->element.qp)->o, FK_QP, "asynchronous event");
		return &QP_OF(ev->element.qp)->async_unacked;
	}
	if (ev->event_type == IBV_EVENT_CQ_ERR) {
		fk_alive(&CQ_OF(ev->element.cq)->o, FK_CQ, "asynchronous event");
		return &CQ_OF(ev->element.cq)->async_unacked;
	}
	return NULL;
}

int ibv_get_async_event(struct ibv_context *c, struct ibv_async_event *event)
{
	struct context *x = CONTEXT_OF(c);
	int *account;

	fk.calls++;
	fk.get_async++;
	if (x->dead)
		return errno = x->dead, -1;
	fk_lock();
	if (!x->n) {
		fk_unlock();
		return errno = EAGAIN, -1;
	}
	*event = x->queue[0];
	memmove(x->queue, x->queue + 1, (size_t)--x->n * sizeof(*x->queue));
	fk_bell_take(c->async_fd);
	fk.got[FK_ASYNC_EVENT]++;
	account = async_account(event);
	if (account)
		(*account)++;
	fk_unlock();
	return 0;
}

void ibv_ack_async_event(struct ibv_async_event *event)
{
	int *account;

	fk_lock();
	account = async_account(event);
	if (account && --*account < 0)
		fk_wrong("ibv_ack_async_event: acknowledged twice");
	if (++fk.acked[FK_ASYNC_EVENT] > fk.got[FK_ASYNC_EVENT])
		fk_wrong("ibv_ack_async_event: more than were got");
	fk_unlock();
}

/* The kernel forgets what was not fetched of an object that goes. */
void fk_purge_async(struct ibv_context *c, const void *element)
{
	struct context *x = CONTEXT_OF(c);
	int kept = 0;

	for (int i = 0; i < x->n; i++)
		if (x->queue[i].element.qp != element)
			x->queue[kept++] = x->queue[i];
		else if (!x->dead)
			fk_bell_take(c->async_fd);
	x->n = kept;
}

/* ---- protection domains, memory, address handles */

struct ibv_pd *ibv_alloc_pd(struct ibv_context *c)
{
	struct pd *p;

	fk.calls++;
	if (fk_fails_p("ibv_alloc_pd"))
		return NULL;
	p = fk_make(FK_PD, sizeof(*p), NULL);
	p->pd.context = c;
	return &p->pd;
}

int ibv_dealloc_pd(struct ibv_pd *pd)
{
	fk_destroy(&OF(pd, pd, pd)->o, FK_PD, "ibv_dealloc_pd");
	return 0;
}

struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access)
{
	struct mr *m;

	(void)access;
	fk.calls++;
	fk_alive(&OF(pd, pd, pd)->o, FK_PD, "ibv_reg_mr");
	if (fk_fails_p("ibv_reg_mr"))
		return NULL;
	m = fk_make(FK_MR, sizeof(*m), &OF(pd, pd, pd)->o);
	m->mr = (struct ibv_mr){
		.context = pd->context, .pd = pd, .addr = addr, .length = length};
	return &m->mr;
}

struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length,
				uint64_t iova, unsigned int access)
{
	(void)iova;
	return ibv_reg_mr(pd, addr, length, (int)access);
}

/* No queue pair may still hold a buffer that lies in it. */
static void check_unused(const struct ibv_mr *mr, const struct work *w, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (w[i].buf >= (uint8_t *)mr->addr &&
		    w[i].buf < (uint8_t *)mr->addr + mr->length)
			fk_wrong("ibv_dereg_mr: a queue pair has a buffer in it");
}

int ibv_dereg_mr(struct ibv_mr *mr)
{
	int r;

	fk.calls++;
	fk_lock();
	for (uint32_t i = 0; i < fk_n_qps; i++) {
		check_unused(mr, fk_qps[i]->recv, fk_qps[i]->n_recv);
		check_unused(mr, fk_qps[i]->send, fk_qps[i]->n_send);
	}
	if (fk_fails("ibv_dereg_mr", INT_MAX, &r)) {
		fk_unlock();
		return r;
	}
	fk_destroy(&OF(mr, mr, mr)->o, FK_MR, "ibv_dereg_mr");
	fk_unlock();
	return 0;
}

struct ibv_ah *ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
	struct ah *a;

	(void)attr;
	fk.calls++;
	if (fk_fails_p("ibv_create_ah"))
		return NULL;
	a = fk_make(FK_AH, sizeof(*a), &OF(pd, pd, pd)->o);
	a->ah.context = pd->context;
	a->ah.pd = pd;
	return &a->ah;
}

int ibv_destroy_ah(struct ibv_ah *ah)
{
	for (uint32_t i = 0; i < fk_n_qps; i++)
		for (uint32_t k = 0; k < fk_qps[i]->n_send; k++)
			if (fk_qps[i]->send[k].ah == ah)
				fk_wrong("ibv_destroy_ah: a send with it is out");
	fk_destroy(&OF(ah, ah, ah)->o, FK_AH, "ibv_destroy_ah");
	return 0;
}

/* ---- completion channels and queues */

struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *c)
{
	struct comp *x;

	fk.calls++;
	if (fk_fails_p("ibv_create_comp_channel"))
		return NULL;
	x = fk_make(FK_COMP, sizeof(*x), NULL);
	x->c.context = c;
	x->c.fd = fk_bell_new();
	return &x->c;
}

int ibv_destroy_comp_channel(struct ibv_comp_channel *c)
{
	struct comp *x = OF(comp, c, c);

	fk_alive(&x->o, FK_COMP, "ibv_destroy_comp_channel");
	(void)close(c->fd);
	free(x->notes);
	x->notes = NULL;
	fk_destroy(&x->o, FK_COMP, "ibv_destroy_comp_channel");
	return 0;
}

void fk_kill_comp(struct ibv_comp_channel *c, int err)
{
	OF(comp, c, c)->dead = err;
	fk_bell_kill(c->fd);
}

static void notify(struct fk_cq *q)
{
	struct comp *x = OF(comp, c, q->cq.channel);

	if (x->n == x->room) {
		x->room = MAX(64, 2 * x->room);
		x->notes = realloc(x->notes, (size_t)x->room * sizeof(struct fk_cq *));
		assert(x->notes);
	}
	x->notes[x->n++] = q;
	if (!x->dead)
		fk_bell_ring(x->c.fd);
}

void fk_spurious(struct ibv_cq *cq)
{
	notify(CQ_OF(cq));
}

int fk_notifications(const struct ibv_comp_channel *c)
{
	return OF(comp, c, c)->n;
}

struct ibv_cq *ibv_create_cq(struct ibv_context *c, int cqe, void *cq_context,
			     struct ibv_comp_channel *channel, int comp_vector)
{
	struct fk_cq *q;

	(void)comp_vector;
	fk.calls++;
	if (fk_fails_p("ibv_create_cq"))
		return NULL;
	q = fk_make(FK_CQ, sizeof(*q), &OF(comp, c, channel)->o);
	q->cq = (struct ibv_cq){
		.context = c, .channel = channel, .cq_context = cq_context, .cqe = cqe};
	q->queue = xcalloc((size_t)cqe + EXTRA_MAX, sizeof(*q->queue));
	return &q->cq;
}

static void wait_for_acks(const struct fk_cq *q)
{
	for (int i = 0; fk.two_threads && i < 10000 && q->reported != q->acked; i++) {
		fk_unlock();
		(void)usleep(100);
		fk_lock();
	}
}

int ibv_destroy_cq(struct ibv_cq *cq)
{
	struct fk_cq *q = CQ_OF(cq);
	struct comp *x = OF(comp, c, cq->channel);
	int kept = 0, r;

	fk.calls++;
	fk_lock();
	fk_alive(&q->o, FK_CQ, "ibv_destroy_cq");
	wait_for_acks(q);
	if (q->reported != q->acked || q->async_unacked)
		fk_wrong("ibv_destroy_cq would wait for ever: %d got, %d acknowledged",
			 q->reported + q->async_unacked, q->acked);
	if (fk_fails("ibv_destroy_cq", INT_MAX, &r)) {
		fk_unlock();
		return r;
	}
	for (int i = 0; i < x->n; i++)
		if (x->notes[i] != q)
			x->notes[kept++] = x->notes[i];
		else if (!x->dead)
			fk_bell_take(x->c.fd);
	x->n = kept;
	fk_purge_async(cq->context, cq);
	free(q->queue);
	q->queue = NULL;
	fk_destroy(&q->o, FK_CQ, "ibv_destroy_cq");
	fk_unlock();
	return 0;
}

int ibv_get_cq_event(struct ibv_comp_channel *c, struct ibv_cq **cq, void **context)
{
	struct comp *x = OF(comp, c, c);
	struct fk_cq *q;

	fk.calls++;
	fk.get_cq++;
	if (x->dead)
		return errno = x->dead, -1;
	fk_lock();
	if (!x->n) {
		fk_unlock();
		return errno = EAGAIN, -1;
	}
	q = x->notes[0];
	memmove(x->notes, x->notes + 1, (size_t)--x->n * sizeof(struct fk_cq *));
	fk_bell_take(c->fd);
	q->reported++;
	fk.got[FK_CQ_EVENT]++;
	fk_unlock();
	*cq = &q->cq;
	*context = q->cq.cq_context;
	return 0;
}

void ibv_ack_cq_events(struct ibv_cq *cq, unsigned int n)
{
	struct fk_cq *q = CQ_OF(cq);

	fk_lock();
	fk_alive(&q->o, FK_CQ, "ibv_ack_cq_events");
	q->acked += (int)n;
	if (q->acked > q->reported)
		fk_wrong("ibv_ack_cq_events: %d acknowledged of a queue that had %d",
			 q->acked, q->reported);
	fk.acked[FK_CQ_EVENT] += n;
	fk_unlock();
}

static int poll_cq(struct ibv_cq *cq, int n, struct ibv_wc *wc)
{
	struct fk_cq *q = CQ_OF(cq);

	fk.calls++;
	fk_lock();
	fk_alive(&q->o, FK_CQ, "ibv_poll_cq");
	n = MIN(n, q->n);
	for (int i = 0; i < n; i++) {
		wc[i] = q->queue[i].wc;
		q->n_extra -= q->queue[i].extra;
	}
	q->n -= n;
	memmove(q->queue, q->queue + n, (size_t)q->n * sizeof(*q->queue));
	fk_unlock();
	return n;
}

static int req_notify(struct ibv_cq *cq, int solicited_only)
{
	struct fk_cq *q = CQ_OF(cq);

	(void)solicited_only;
	fk.calls++;
	fk_alive(&q->o, FK_CQ, "ibv_req_notify_cq");
	/* What came before raises no event any more. */
	if (fk.on_arm)
		fk.on_arm(cq);
	fk_lock();
	q->armed = true;
	fk_unlock();
	return 0;
}

void fk_cq_complete(struct fk_cq *q, struct fk_qp *qp, const struct ibv_wc *wc,
		    bool extra)
{
	assert(q->n_extra < EXTRA_MAX);
	if (!extra && q->n - q->n_extra == q->cq.cqe)
		fk_wrong("a completion queue of %d is overrun", q->cq.cqe);
	q->queue[q->n].wc = *wc;
	q->queue[q->n].extra = extra;
	q->queue[q->n++].qp = qp;
	q->n_extra += extra;
	if (!q->armed)
		return;
	q->armed = false;
	notify(q);
}

int fk_cq_queued(const struct ibv_cq *cq)
{
	return CQ_OF(cq)->n;
}

bool fk_cq_armed(const struct ibv_cq *cq)
{
	return CQ_OF(cq)->armed;
}
