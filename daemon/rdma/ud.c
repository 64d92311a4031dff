/* SPDX-License-Identifier: BSD-2-Clause */
#include "ud.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "log.h"

#define RECV_BATCH    32
#define GRH_IPV4_AT   20 /* of the header of RoCE v2 over IPv4 in the 40 bytes */
#define GRH_SOURCE_AT 8
#define IPV4_SRC_AT   (GRH_IPV4_AT + 12)

/* ---- addresses ---- */

void ud_gid_of_addr(const struct addr *a, uint8_t gid[16])
{
	memset(gid, 0, 16);
	if (a->family == 6) {
		memcpy(gid, a->ip, 16);
		return;
	}
	gid[10] = gid[11] = 0xff;
	memcpy(gid + 12, a->ip, 4);
}

/* The first 20 bytes before an IPv4 packet are undefined: they may look like anything. */
static bool is_ipv4(const uint8_t *ip)
{
	uint32_t sum = 0;

	if (ip[0] != 0x45)
		return false;
	for (int i = 0; i < 20; i += 2)
		sum += be16_get(ip + i);
	return sum % 0xffff == 0;
}

void ud_source_read(const uint8_t grh[UD_GRH], const struct ibv_wc *wc,
		    struct ud_source *ret)
{
	*ret = (struct ud_source){.qpn = wc->src_qp, .lid = wc->slid};
	if (!(wc->wc_flags & IBV_WC_GRH))
		return;
	if (grh[0] >> 4 == 6 && !is_ipv4(grh + GRH_IPV4_AT)) {
		memcpy(ret->gid, grh + GRH_SOURCE_AT, 16);
	} else if (grh[GRH_IPV4_AT] >> 4 == 4) {
		ret->gid[10] = ret->gid[11] = 0xff;
		memcpy(ret->gid + 12, grh + IPV4_SRC_AT, 4);
	}
}

bool ud_source_equal(const struct ud_source *a, const struct ud_source *b)
{
	return a->qpn == b->qpn && a->lid == b->lid && !memcmp(a->gid, b->gid, 16);
}

static uint64_t hash_addr(const struct addr *a)
{
	uint8_t gid[16];

	ud_gid_of_addr(a, gid);
	return mix64(be64_get(gid) ^ mix64(be64_get(gid + 8)));
}

/* Devices make the source port of the low 14 bits, with the high six mixed in: so the
 * flows of a pair differ in the low ones, and have the high ones in common. */
uint32_t ud_flow_label(const struct addr *a, const struct addr *b, uint16_t flow)
{
	uint64_t h = hash_addr(a) + hash_addr(b);
	uint32_t low = (uint32_t)(h + flow * UINT64_C(0x1f5)) & 0x3fff;

	return (uint32_t)(h >> 20 & 0x3f) << 14 | low | (low ? 0 : 1u << 14);
}

/* ---- queue pair ---- */

int ud_post_recvs(struct ud_port *p, const uint16_t *slots, unsigned n)
{
	struct ibv_recv_wr wr[RECV_BATCH], *bad;
	struct ibv_sge sge[RECV_BATCH];

	for (unsigned done = 0; done < n;) {
		unsigned k = MIN(n - done, (unsigned)RECV_BATCH);
		int r;

		for (unsigned i = 0; i < k; i++) {
			uint16_t slot = slots[done + i];
			uint8_t *buf = ud_recv_buf(p, slot);

			/* What the header of an IPv4 packet does not overwrite must not
			 * look like one of IPv6. */
			memset(buf, 0, GRH_IPV4_AT);
			sge[i] = (struct ibv_sge){.addr = (uintptr_t)buf,
						  .length = (uint32_t)p->slot_size,
						  .lkey = p->mr->lkey};
			wr[i] = (struct ibv_recv_wr){
				.wr_id = (uint64_t)p->recv_gen << 32 | WR_RECV | slot,
				.next = i + 1 < k ? &wr[i + 1] : NULL,
				.sg_list = &sge[i],
				.num_sge = 1};
		}
		r = ibv_post_recv(p->qp, wr, &bad);
		if (r)
			return r;
		done += k;
	}
	return 0;
}

static int post_all(struct ud_port *p)
{
	uint16_t slots[UD_RECVS];

	p->recv_gen++;
	for (uint16_t i = 0; i < p->n_recv; i++)
		slots[i] = i;
	return ud_post_recvs(p, slots, p->n_recv);
}

static int to_init(struct ud_port *p)
{
	struct ibv_qp_attr a = {
		.qp_state = IBV_QPS_INIT,
		.pkey_index = p->pkey_index,
		.port_num = p->num,
		.qkey = RDMA_UDP_QKEY,
	};

	return ibv_modify_qp(p->qp, &a,
			     IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				     IBV_QP_QKEY);
}

static int to_state(struct ud_port *p, enum ibv_qp_state state)
{
	struct ibv_qp_attr a = {.qp_state = state};

	return ibv_modify_qp(p->qp, &a,
			     state == IBV_QPS_RTS ? IBV_QP_STATE | IBV_QP_SQ_PSN
						  : IBV_QP_STATE);
}

/* From RESET until it sends. 0 or errno. */
static int bring_up(struct ud_port *p, const char **ret_call)
{
	int r;

	*ret_call = "ibv_modify_qp";
	r = to_init(p);
	if (r)
		return r;
	*ret_call = "ibv_post_recv";
	r = post_all(p);
	if (r)
		return r;
	*ret_call = "ibv_modify_qp";
	r = to_state(p, IBV_QPS_RTR);
	return r ? r : to_state(p, IBV_QPS_RTS);
}

static int create_qp(struct ud_port *p)
{
	struct ibv_qp_init_attr attr = {
		.qp_context = p,
		.send_cq = p->send.cq,
		.recv_cq = p->recv.cq,
		.cap = {.max_send_wr = p->n_send,
			.max_recv_wr = p->n_recv,
			.max_send_sge = 1,
			.max_recv_sge = 1,
			.max_inline_data = HB_SMALL},
		.qp_type = IBV_QPT_UD,
		/* Each tells: an address handle may go only after the last send that
		 * uses it. Nobody is woken by it. */
		.sq_sig_all = 1,
	};

	p->qp = ibv_create_qp(p->ctx->pd, &attr);
	if (!p->qp) {
		attr.cap.max_inline_data = 0;
		p->qp = errno == EINVAL ? ibv_create_qp(p->ctx->pd, &attr) : NULL;
	}
	if (!p->qp)
		return -errno;
	p->max_inline = attr.cap.max_inline_data;
	return 0;
}

/* Pages of their own, as rc.c does. */
static int map_buffer(struct ud_port *p)
{
	void *b;

	/* Whatever the port's MTU becomes: longer than this no message can be. */
	p->slot_size = ((size_t)UD_GRH + MAX(p->mtu, (uint32_t)EP_SLOT_MIN) + 63) / 64 * 64;
	p->buf_size = (p->n_recv + UD_BUFS) * p->slot_size;
	b = mmap(NULL, p->buf_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		 -1, 0);
	if (b == MAP_FAILED)
		return -errno;
	p->buf = b;
	return 0;
}

static int query_port(struct ud_port *p)
{
	struct ibv_port_attr attr;
	int r = ibv_query_port(p->ctx->verbs, p->num, &attr);

	if (r)
		return -r;
	p->ethernet = attr.link_layer == IBV_LINK_LAYER_ETHERNET;
	p->mtu = link_mtu_bytes(attr.active_mtu);
	return p->mtu ? 0 : -EOPNOTSUPP;
}

static uint16_t depth(const struct rdma_ctx *c, uint16_t want)
{
	return (uint16_t)(c->max_qp_wr ? MIN(c->max_qp_wr, (uint32_t)want) : want);
}

int ud_port_open(struct ud_port *p, struct rdma_ctx *c, uint8_t num, uint16_t pkey_index,
		 const char **ret_call)
{
	int r;

	*p = (struct ud_port){.num = num,
			      .pkey_index = pkey_index,
			      .ctx = c,
			      .n_recv = depth(c, UD_RECVS),
			      .n_send = depth(c, UD_SENDS),
			      .repair_at = MONO_NEVER,
			      .repaired_at = MONO_NEVER};
	*ret_call = "ibv_query_port";
	r = query_port(p);
	if (r < 0)
		return r;
	*ret_call = "mmap";
	r = map_buffer(p);
	if (r < 0)
		return r;
	*ret_call = "ibv_reg_mr";
	p->mr = ibv_reg_mr(c->pd, p->buf, p->buf_size, IBV_ACCESS_LOCAL_WRITE);
	if (!p->mr)
		return -errno;
	*ret_call = "ibv_create_cq";
	r = wcq_create(&p->send, c, p->n_send, WCQ_UD_SEND, p);
	if (!r)
		r = wcq_create(&p->recv, c, p->n_recv, WCQ_UD_RECV, p);
	if (r < 0)
		return r;
	*ret_call = "ibv_create_qp";
	r = create_qp(p);
	if (r < 0)
		return r;
	return -bring_up(p, ret_call);
}

bool ud_port_close(struct ud_port *p, struct busy *busy)
{
	bool ok = true;

	if (p->qp) {
		busy_enter(busy, "ibv_destroy_qp", true);
		ok = freed(ibv_destroy_qp(p->qp), "ibv_destroy_qp");
		p->qp = NULL;
	}
	busy_enter(busy, "ibv_destroy_cq", true);
	ok = freed(wcq_destroy(&p->recv), "ibv_destroy_cq") && ok;
	ok = freed(wcq_destroy(&p->send), "ibv_destroy_cq") && ok;
	if (p->mr) {
		busy_enter(busy, "ibv_dereg_mr", true);
		ok = freed(ibv_dereg_mr(p->mr), "ibv_dereg_mr") && ok;
		p->mr = NULL;
	}
	/* A buffer that the device may still know is kept. */
	if (p->buf && ok)
		(void)munmap(p->buf, p->buf_size);
	p->buf = NULL;
	busy_leave(busy);
	return ok;
}

int ud_port_repair(struct ud_port *p, const char **ret_call)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_UNKNOWN};
	int r;

	*ret_call = "ibv_query_qp";
	r = ibv_query_qp(p->qp, &attr, IBV_QP_STATE, &init);
	if (r)
		return -r;
	if (attr.qp_state == IBV_QPS_RTS)
		return 0;
	*ret_call = "ibv_modify_qp";
	/* A send failed, nothing else did: what is posted to receive stays. */
	if (attr.qp_state == IBV_QPS_SQE) {
		attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS};
		if (!ibv_modify_qp(p->qp, &attr, IBV_QP_STATE))
			return 0;
	}
	r = to_state(p, IBV_QPS_RESET);
	return r ? -r : -bring_up(p, ret_call);
}
