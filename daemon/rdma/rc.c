/* SPDX-License-Identifier: BSD-2-Clause */
#include "rc.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "log.h"

#define SOFT_ROCE_VENDOR  0xffffff
#define HANDLE_INDEX_BITS 20
#define HANDLE_INDEX_MASK ((UINT64_C(1) << HANDLE_INDEX_BITS) - 1)

void endpoint_table_init(struct endpoint_table *t, uint32_t max_rc, uint32_t max_ud)
{
	assert(max_rc + max_ud <= HANDLE_INDEX_MASK);
	*t = (struct endpoint_table){.max_rc = max_rc, .max_ud = max_ud};
}

void endpoint_table_done(struct endpoint_table *t)
{
	assert(!t->used);
	free(t->slots);
	t->slots = NULL;
	t->n = t->first_free = 0;
}

/* How many of the transport of @s there are, and may be. */
static uint32_t *count_of(struct endpoint_table *t, const struct ep_start *s,
			  uint32_t *ret_max)
{
	bool ud = s->transport == TRANSPORT_UD;

	*ret_max = ud ? t->max_ud : t->max_rc;
	return ud ? &t->n_ud : &t->n_rc;
}

static uint32_t free_slot(struct endpoint_table *t)
{
	uint32_t i = t->first_free;

	while (i < t->n && t->slots[i])
		i++;
	if (i == t->n) {
		uint32_t n = MAX(2 * t->n, UINT32_C(16));

		t->slots = xrealloc(t->slots, n, sizeof(struct endpoint *));
		memset(t->slots + t->n, 0, (n - t->n) * sizeof(struct endpoint *));
		t->n = n;
	}
	t->first_free = i + 1;
	return i;
}

struct endpoint *endpoint_new(struct endpoint_table *t, const struct ep_start *s)
{
	uint32_t max, *count = count_of(t, s, &max), i;
	struct endpoint *ep;

	if (*count == max)
		return NULL;
	i = free_slot(t);
	ep = xcalloc(1, sizeof(*ep));
	ep->handle = (++t->generation << HANDLE_INDEX_BITS) | i;
	ep->start = *s;
	hb_init(&ep->hb, s);
	t->slots[i] = ep;
	t->used++;
	++*count;
	HASH_ADD(hh_conn, t->by_conn, start.conn_id, sizeof(ep->start.conn_id), ep);
	return ep;
}

void endpoint_free(struct endpoint_table *t, struct endpoint *ep)
{
	uint32_t i = (uint32_t)(ep->handle & HANDLE_INDEX_MASK), max;

	--*count_of(t, &ep->start, &max);
	HASH_DELETE(hh_conn, t->by_conn, ep);
	t->slots[i] = NULL;
	t->first_free = MIN(t->first_free, i);
	t->used--;
	hb_done(&ep->hb);
	free(ep);
}

struct endpoint *endpoint_by_handle(const struct endpoint_table *t, uint64_t handle)
{
	uint64_t i = handle & HANDLE_INDEX_MASK;

	return i < t->n && t->slots[i] && t->slots[i]->handle == handle ? t->slots[i]
									: NULL;
}

struct endpoint *endpoint_by_conn(const struct endpoint_table *t, uint64_t conn_id)
{
	struct endpoint *ep;

	HASH_FIND(hh_conn, t->by_conn, &conn_id, sizeof(conn_id), ep);
	return ep;
}

int rdma_ctx_open(struct rdma_ctx *c, struct ibv_context *verbs, const char **ret_call)
{
	struct ibv_device_attr_ex ex;
	const struct ibv_device_attr *attr = &ex.orig_attr;
	int r;

	*ret_call = "ibv_query_device";
	memset(&ex, 0, sizeof(ex));
	r = ibv_query_device_ex(verbs, NULL, &ex);
	if (r)
		return -r;
	*ret_call = "ibv_alloc_pd";
	c->pd = ibv_alloc_pd(verbs);
	if (!c->pd)
		return -errno;
	*ret_call = "ibv_create_comp_channel";
	c->channel = ibv_create_comp_channel(verbs);
	if (!c->channel) {
		r = -errno;
		(void)ibv_dealloc_pd(c->pd);
		c->pd = NULL;
		return r;
	}
	c->rd_atomic = (uint8_t)MIN(attr->max_qp_rd_atom, 1);
	c->iwarp = verbs->device->transport_type == IBV_TRANSPORT_IWARP;
	c->soft_roce = !c->iwarp && attr->vendor_id == SOFT_ROCE_VENDOR;
	c->max_qp_wr = (uint32_t)MAX(attr->max_qp_wr, 0);
	(void)dev_clock_open(&c->clock, verbs, &ex);
	c->verbs = verbs;
	return 0;
}

int endpoint_post_recv(struct endpoint *ep, unsigned i)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)endpoint_recv_buf(ep, i),
		.length = (uint32_t)ep->slot_size,
		.lkey = ep->mr->lkey,
	};
	struct ibv_recv_wr wr = {.wr_id = WR_RECV | i, .sg_list = &sge, .num_sge = 1},
			   *bad;

	return ibv_post_recv(ep->qp, &wr, &bad);
}

/* Pages of their own: what the device can write to shares no page with anything else,
 * and fork() cannot tear it apart. */
static int map_buffer(struct endpoint *ep, size_t *ret_size)
{
	size_t slots = ep->start.role == ROLE_TX ? 2 * EP_SLOTS : EP_SLOTS;
	size_t want = MAX((size_t)ep->start.probe_size, (size_t)EP_SLOT_MIN);
	void *p;

	ep->slot_size = (want + 63) / 64 * 64;
	*ret_size = slots * ep->slot_size;
	p = mmap(NULL, *ret_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		 -1, 0);
	if (p == MAP_FAILED)
		return -errno;
	ep->buf = p;
	return 0;
}

/* Small messages go with the request itself where the device lets them. */
static int create_qp(struct endpoint *ep, struct rdma_ctx *c)
{
	struct ibv_qp_init_attr attr = {
		.qp_context = (void *)(uintptr_t)ep->handle,
		.send_cq = ep->send.cq,
		.recv_cq = ep->recv.cq,
		.cap = {.max_send_wr = 2 * EP_SLOTS,
			.max_recv_wr = EP_SLOTS,
			.max_send_sge = 1,
			.max_recv_sge = 1,
			.max_inline_data = HB_SMALL},
		.qp_type = IBV_QPT_RC,
	};

	if (rdma_create_qp(ep->id, c->pd, &attr)) {
		attr.cap.max_inline_data = 0;
		if (errno != EINVAL || rdma_create_qp(ep->id, c->pd, &attr))
			return -errno;
	}
	ep->qp = ep->id->qp;
	ep->max_inline = attr.cap.max_inline_data;
	return 0;
}

int endpoint_open(struct endpoint *ep, struct rdma_ctx *c, const char **ret_call)
{
	size_t size;
	int r;

	ep->iwarp = c->iwarp;
	*ret_call = "mmap";
	r = map_buffer(ep, &size);
	if (r < 0)
		return r;
	*ret_call = "ibv_reg_mr";
	ep->mr = ibv_reg_mr(c->pd, ep->buf, size, IBV_ACCESS_LOCAL_WRITE);
	if (!ep->mr)
		return -errno;
	/* Two, as a send that completes wakes nobody who does not want to know. */
	*ret_call = "ibv_create_cq";
	r = wcq_create(&ep->send, c, 2 * EP_SLOTS, WCQ_RC_SEND, ep);
	if (!r)
		r = wcq_create(&ep->recv, c, 2 * EP_SLOTS, WCQ_RC_RECV, ep);
	if (r < 0)
		return r;
	*ret_call = "rdma_create_qp";
	r = create_qp(ep, c);
	if (r < 0)
		return r;
	*ret_call = "ibv_post_recv";
	for (unsigned i = 0; i < EP_SLOTS; i++) {
		r = endpoint_post_recv(ep, i);
		if (r)
			return -r;
	}
	return 0;
}

bool freed(int r, const char *call)
{
	if (!r)
		return true;
	log_err("%s failed (%s): the object is leaked", call,
		strerror(r < 0 ? errno : r));
	return false;
}

bool endpoint_close(struct endpoint *ep, struct busy *busy)
{
	size_t slots = ep->start.role == ROLE_TX ? 2 * EP_SLOTS : EP_SLOTS;
	bool ok = true;

	if (ep->qp) {
		ep->id->qp = ep->qp; /* it may have been out of sight */
		busy_enter(busy, "rdma_destroy_qp", true);
		rdma_destroy_qp(ep->id);
		ep->qp = NULL;
	}
	if (ep->id) {
		busy_enter(busy, "rdma_destroy_id", true);
		ok = freed(rdma_destroy_id(ep->id), "rdma_destroy_id");
		ep->id = NULL;
	}
	busy_enter(busy, "ibv_destroy_cq", true);
	ok = freed(wcq_destroy(&ep->recv), "ibv_destroy_cq") && ok;
	ok = freed(wcq_destroy(&ep->send), "ibv_destroy_cq") && ok;
	if (ep->mr) {
		busy_enter(busy, "ibv_dereg_mr", true);
		ok = freed(ibv_dereg_mr(ep->mr), "ibv_dereg_mr") && ok;
		ep->mr = NULL;
	}
	/* A buffer that the device may still know is kept. */
	if (ep->buf && ok)
		(void)munmap(ep->buf, slots * ep->slot_size);
	ep->buf = NULL;
	busy_leave(busy);
	return ok;
}
