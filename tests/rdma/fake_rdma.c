/* SPDX-License-Identifier: BSD-2-Clause */
#include "fake_rdma.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "cm.h"
#include "fake_ud.h"

#undef ibv_query_port
#undef ibv_reg_mr

#define EVENTS_MAX 64

struct fake_id {
	struct rdma_cm_id id;
	int unacked;
	bool listens;
};

struct fake_event {
	struct rdma_cm_event ev;
	struct rdma_cm_id *account; /* whose destroy waits for the acknowledgement */
	uint8_t data[256];
};

struct fake fake;
static struct fake_event *queue[EVENTS_MAX];
static int n_queue;
static struct ibv_async_event async[EVENTS_MAX];
static int n_async;

static _Noreturn void wrong(const char *what)
{
	fprintf(stderr, "fake_rdma: %s\n", what);
	abort();
}

bool fake_fails(const char *call)
{
	if (!fake.fail_in || --fake.fail_in)
		return false;
	fake.failed_call = call;
	errno = fake.fail_errno;
	return true;
}

static int post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr,
		     struct ibv_recv_wr **bad)
{
	(void)qp;
	(void)wr;
	(void)bad;
	return fake_fails("ibv_post_recv") ? errno : 0;
}

void fake_reset(void)
{
	if (n_queue || fake.unacked)
		wrong("events are left over");
	if (fake.verbs.async_fd)
		(void)close(fake.verbs.async_fd);
	memset(&fake, 0, sizeof(fake));
	n_async = 0;
	fake.index = 3;
	fake.port_state = IBV_PORT_ACTIVE;
	fake.verbs.device = &fake.device;
	fake.verbs.async_fd = eventfd(0, EFD_NONBLOCK);
	fake.verbs.ops.post_recv = post_recv;
	fake.device.transport_type = IBV_TRANSPORT_IB;
	(void)str_copy(fake.device.name, sizeof(fake.device.name), "fake0");
}

static struct fake_event *enqueue(struct rdma_cm_id *id, enum rdma_cm_event_type type)
{
	struct fake_event *e = xcalloc(1, sizeof(*e));

	if (n_queue == EVENTS_MAX)
		wrong("the test queues too many events");
	e->ev.id = id;
	e->ev.event = type;
	e->account = id;
	queue[n_queue++] = e;
	return e;
}

struct rdma_cm_event *fake_event(struct rdma_cm_id *id, enum rdma_cm_event_type type,
				 int status)
{
	struct rdma_cm_event *ev = &enqueue(id, type)->ev;

	ev->status = status;
	return ev;
}

static void attach_data(struct fake_event *e, const void *data, size_t len)
{
	memcpy(e->data, data, len);
	e->ev.param.conn.private_data = e->data;
	/* Zeros up to the wire maximum, as on InfiniBand. */
	e->ev.param.conn.private_data_len = 148;
}

void fake_rejected(struct rdma_cm_id *id, int status, const void *data, size_t len)
{
	struct fake_event *e = enqueue(id, RDMA_CM_EVENT_REJECTED);

	e->ev.status = status;
	attach_data(e, data, len);
}

static struct rdma_cm_id *new_id(void *context)
{
	struct fake_id *f = xcalloc(1, sizeof(*f));

	f->id.context = context;
	fake.ids++;
	fake.last_id = &f->id;
	return &f->id;
}

struct rdma_cm_id *fake_request(struct rdma_cm_id *listener, const void *data,
				size_t len)
{
	struct rdma_cm_id *id = new_id(listener->context);
	struct fake_event *e = enqueue(id, RDMA_CM_EVENT_CONNECT_REQUEST);

	id->verbs = &fake.verbs;
	id->port_num = 1;
	id->ps = listener->ps;
	memcpy(&id->route.addr.dst_storage, &fake.request_from,
	       sizeof(fake.request_from));
	e->ev.listen_id = listener;
	e->account = listener;
	attach_data(e, data, len);
	return id;
}

void fake_async(const struct ibv_async_event *ev)
{
	async[n_async++] = *ev;
}

void fake_qp_event(struct rdma_cm_id *id, enum ibv_event_type type)
{
	async[n_async].event_type = type;
	async[n_async].element.qp = id->qp;
	n_async++;
}

void fake_port_event(enum ibv_event_type type)
{
	async[n_async].event_type = type;
	async[n_async].element.port_num = 1;
	n_async++;
}

void fake_check_balance(int listeners)
{
	if (fake.ids != listeners)
		wrong("ids are left or were destroyed twice");
	if (fake.qps || fake.cqs || fake.mrs)
		wrong("a QP, CQ or MR is left");
	if (fake.unacked)
		wrong("an event was not acknowledged");
}

/* ---- librdmacm ---- */

struct rdma_event_channel *rdma_create_event_channel(void)
{
	struct rdma_event_channel *c;

	if (fake_fails("rdma_create_event_channel"))
		return NULL;
	c = xcalloc(1, sizeof(*c));
	c->fd = eventfd(0, EFD_NONBLOCK);
	fake.channels++;
	return c;
}

void rdma_destroy_event_channel(struct rdma_event_channel *c)
{
	if (fake.ids)
		wrong("the event channel goes before its ids");
	(void)close(c->fd);
	free(c);
	fake.channels--;
}

int rdma_create_id(struct rdma_event_channel *c, struct rdma_cm_id **id, void *context,
		   enum rdma_port_space ps)
{
	if (fake_fails("rdma_create_id"))
		return -1;
	*id = new_id(context);
	(*id)->channel = c;
	(*id)->ps = ps;
	return 0;
}

int rdma_destroy_id(struct rdma_cm_id *id)
{
	struct fake_id *f = (struct fake_id *)id;
	int kept = 0;

	if (f->unacked)
		wrong("rdma_destroy_id would wait for ever: an event is not acknowledged");
	if (id->qp)
		wrong("the id goes before its QP");
	for (int i = 0; i < n_queue; i++) { /* the kernel purges what was not fetched */
		if (queue[i]->ev.id == id)
			free(queue[i]);
		else
			queue[kept++] = queue[i];
	}
	n_queue = kept;
	fake.listeners -= f->listens;
	free(f);
	fake.ids--;
	return 0;
}

static int bind_device(struct rdma_cm_id *id)
{
	id->verbs = &fake.verbs;
	id->port_num = 1;
	return 0;
}

int rdma_bind_addr(struct rdma_cm_id *id, struct sockaddr *addr)
{
	(void)addr;
	return fake_fails("rdma_bind_addr") ? -1 : bind_device(id);
}

int rdma_listen(struct rdma_cm_id *id, int backlog)
{
	(void)backlog;
	if (fake_fails("rdma_listen"))
		return -1;
	((struct fake_id *)id)->listens = true;
	fake.listeners++;
	return 0;
}

int rdma_resolve_addr(struct rdma_cm_id *id, struct sockaddr *src, struct sockaddr *dst,
		      int timeout_ms)
{
	(void)dst;
	if (!src || timeout_ms <= 0)
		wrong("rdma_resolve_addr without source or timeout");
	if (fake_fails("rdma_resolve_addr"))
		return -1;
	return bind_device(id);
}

int rdma_resolve_route(struct rdma_cm_id *id, int timeout_ms)
{
	(void)id;
	if (timeout_ms <= 0)
		wrong("rdma_resolve_route without timeout");
	return fake_fails("rdma_resolve_route") ? -1 : 0;
}

int rdma_create_qp(struct rdma_cm_id *id, struct ibv_pd *pd,
		   struct ibv_qp_init_attr *attr)
{
	if (fake_fails("rdma_create_qp"))
		return -1;
	if (pd->context != id->verbs || attr->send_cq->context != id->verbs)
		wrong("PD or CQ of another context");
	id->qp = xcalloc(1, sizeof(*id->qp));
	id->qp->context = id->verbs;
	id->qp->qp_context = attr->qp_context;
	id->qp->qp_num = 17;
	fake.qps++;
	return 0;
}

void rdma_destroy_qp(struct rdma_cm_id *id)
{
	if (!id->qp)
		wrong("rdma_destroy_qp of an id without one");
	free(id->qp);
	id->qp = NULL;
	fake.qps--;
}

/* A look-up (ud) carries more, and names a queue pair of ours. */
static void check_param(const struct rdma_cm_id *id, const struct rdma_conn_param *p,
			size_t most)
{
	bool ud = id->ps == RDMA_PS_UDP;

	if (p->private_data_len > (ud ? most : 56))
		wrong("more private data than InfiniBand carries");
	if (ud && !p->qp_num)
		wrong("a look-up without the number of a queue pair");
	if (!ud && !id->qp && !p->qp_num)
		wrong("connect or accept without QP");
	if (p->rnr_retry_count >= 7 || p->retry_count > 7)
		wrong("would retry for ever");
}

int rdma_connect(struct rdma_cm_id *id, struct rdma_conn_param *p)
{
	check_param(id, p, 180);
	if (fake_fails("rdma_connect"))
		return -1;
	fake.connects++;
	return 0;
}

int rdma_accept(struct rdma_cm_id *id, struct rdma_conn_param *p)
{
	check_param(id, p, 136);
	if (fake_fails("rdma_accept"))
		return -1;
	fake.accepts++;
	return 0;
}

int rdma_establish(struct rdma_cm_id *id)
{
	if (id->qp)
		wrong("rdma_establish of an id with a QP");
	return fake_fails("rdma_establish") ? -1 : 0;
}

int rdma_reject(struct rdma_cm_id *id, const void *data, uint8_t len)
{
	(void)id;
	memcpy(fake.reject_data, data, len);
	fake.reject_len = len;
	fake.rejects++;
	return fake_fails("rdma_reject") ? -1 : 0;
}

int rdma_disconnect(struct rdma_cm_id *id)
{
	(void)id;
	fake.disconnects++;
	return fake_fails("rdma_disconnect") ? -1 : 0;
}

int rdma_notify(struct rdma_cm_id *id, enum ibv_event_type event)
{
	(void)id;
	(void)event;
	fake.notifies++;
	return 0;
}

int rdma_set_option(struct rdma_cm_id *id, int level, int name, void *value, size_t len)
{
	(void)id;
	(void)level;
	(void)name;
	(void)value;
	if (len != 1)
		wrong("these options are one byte");
	return fake_fails("rdma_set_option") ? -1 : 0;
}

int rdma_get_cm_event(struct rdma_event_channel *c, struct rdma_cm_event **ret)
{
	struct fake_event *e;

	(void)c;
	if (fake.unacked)
		wrong("events are fetched one at a time");
	if (!n_queue) {
		errno = EAGAIN;
		return -1;
	}
	e = queue[0];
	memmove(queue, queue + 1, (size_t)--n_queue * sizeof(*queue));
	((struct fake_id *)e->account)->unacked++;
	fake.unacked++;
	*ret = &e->ev;
	return 0;
}

int rdma_ack_cm_event(struct rdma_cm_event *ev)
{
	struct fake_event *e = (struct fake_event *)ev;
	struct fake_id *f = (struct fake_id *)e->account;

	if (--f->unacked < 0 || --fake.unacked < 0)
		wrong("acknowledged twice");
	memset(e, 0xa5, sizeof(*e)); /* nobody may look at it any more */
	free(e);
	return 0;
}

const char *rdma_event_str(enum rdma_cm_event_type event)
{
	return event == RDMA_CM_EVENT_ESTABLISHED ? "established" : "event";
}

/* ---- libibverbs ---- */

int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *a)
{
	(void)context;
	memset(a, 0, sizeof(*a));
	a->max_qp_rd_atom = 16;
	a->max_qp_wr = fake_ud.max_wr;
	return fake_fails("ibv_query_device") ? errno : 0;
}

int ibv_query_port(struct ibv_context *context, uint8_t port,
		   struct _compat_ibv_port_attr *attr)
{
	(void)context;
	(void)port;
	memset(attr, 0, sizeof(struct ibv_port_attr));
	((struct ibv_port_attr *)attr)->active_mtu = IBV_MTU_1024;
	((struct ibv_port_attr *)attr)->link_layer = IBV_LINK_LAYER_ETHERNET;
	((struct ibv_port_attr *)attr)->state = fake.port_state;
	return 0;
}

bool path_works(const struct addr *local, const struct addr *remote)
{
	(void)local;
	(void)remote;
	return !fake.no_path;
}

int ibv_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask,
		 struct ibv_qp_init_attr *init)
{
	(void)mask;
	(void)init;
	memset(attr, 0, sizeof(*attr));
	attr->path_mtu = IBV_MTU_2048;
	(void)fake_ud_query_qp(qp, attr);
	return 0;
}

struct ibv_pd *ibv_alloc_pd(struct ibv_context *context)
{
	struct ibv_pd *pd;

	if (fake_fails("ibv_alloc_pd"))
		return NULL;
	pd = xcalloc(1, sizeof(*pd));
	pd->context = context;
	fake.pds++;
	return pd;
}

int ibv_dealloc_pd(struct ibv_pd *pd)
{
	if (fake.qps || fake.mrs)
		wrong("the PD goes before what is in it");
	free(pd);
	fake.pds--;
	return 0;
}

struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access)
{
	struct ibv_mr *mr;

	(void)access;
	if (fake_fails("ibv_reg_mr"))
		return NULL;
	mr = xcalloc(1, sizeof(*mr));
	mr->pd = pd;
	mr->addr = addr;
	mr->length = length;
	fake.mrs++;
	return mr;
}

struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length,
				uint64_t iova, unsigned int access)
{
	(void)iova;
	return ibv_reg_mr(pd, addr, length, (int)access);
}

int ibv_dereg_mr(struct ibv_mr *mr)
{
	if (fake.qps > fake.mrs - 1)
		wrong("memory goes before the QP that uses it");
	free(mr);
	fake.mrs--;
	return 0;
}

struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *context)
{
	struct ibv_comp_channel *c;

	if (fake_fails("ibv_create_comp_channel"))
		return NULL;
	c = xcalloc(1, sizeof(*c));
	c->context = context;
	c->fd = eventfd(0, EFD_NONBLOCK);
	fake.comp_channels++;
	return c;
}

int ibv_destroy_comp_channel(struct ibv_comp_channel *c)
{
	if (fake.cqs)
		wrong("the channel goes before its CQs");
	(void)close(c->fd);
	free(c);
	fake.comp_channels--;
	return 0;
}

struct ibv_cq *ibv_create_cq(struct ibv_context *context, int cqe, void *cq_context,
			     struct ibv_comp_channel *channel, int comp_vector)
{
	struct ibv_cq *cq;

	(void)comp_vector;
	if (fake_fails("ibv_create_cq"))
		return NULL;
	cq = xcalloc(1, sizeof(*cq));
	cq->context = context;
	cq->channel = channel;
	cq->cq_context = cq_context;
	cq->cqe = cqe;
	fake.cqs++;
	fake.last_cq = cq;
	return cq;
}

int ibv_destroy_cq(struct ibv_cq *cq)
{
	if (fake.qps > fake.cqs - 1)
		wrong("the CQ goes before its QP");
	if (fake.cq_unacked)
		wrong("ibv_destroy_cq would wait for ever: an event is not acknowledged");
	free(cq);
	fake.cqs--;
	return 0;
}

int ibv_get_async_event(struct ibv_context *context, struct ibv_async_event *event)
{
	(void)context;
	if (!n_async) {
		errno = EAGAIN;
		return -1;
	}
	*event = async[0];
	memmove(async, async + 1, (size_t)--n_async * sizeof(*async));
	fake.unacked++;
	return 0;
}

void ibv_ack_async_event(struct ibv_async_event *event)
{
	(void)event;
	if (--fake.unacked < 0)
		wrong("an asynchronous event was acknowledged twice");
}

int ibv_get_cq_event(struct ibv_comp_channel *c, struct ibv_cq **cq, void **context)
{
	(void)c;
	if (!fake.cq_events) {
		errno = EAGAIN;
		return -1;
	}
	fake.cq_events--;
	fake.cq_unacked++;
	*cq = fake.last_cq;
	*context = fake.last_cq->cq_context;
	return 0;
}

void ibv_ack_cq_events(struct ibv_cq *cq, unsigned int n)
{
	(void)cq;
	fake.cq_unacked -= (int)n;
	if (fake.cq_unacked < 0)
		wrong("more CQ events acknowledged than there were");
}

int ibv_get_device_index(struct ibv_device *device)
{
	(void)device;
	return fake.index;
}

const char *ibv_get_device_name(struct ibv_device *device)
{
	return device->name;
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

/* The device node of the connection manager, which a build machine need not have. */
int access(const char *path, int mode)
{
	(void)path;
	(void)mode;
	return 0;
}
