/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * path.c - what is known of the path that an endpoint's messages take: from its queue
 * pair (rc), its address handle (ud), the port's tables, and the connection manager.
 */
#include "cm.h"

#define SPORT_MIN   0xc000 /* of RoCE v2; and 14 bits */
#define LABEL_MASK  UINT32_C(0xfffff)
#define GOLDEN_32   UINT32_C(0x61c88647)

/* What a device does for a label of 0: it makes one of the two numbers. */
static uint32_t label_of_numbers(uint32_t qpn, uint32_t remote_qpn)
{
	uint64_t v = (uint64_t)qpn * remote_qpn;

	v ^= v >> 20;
	v ^= v >> 40;
	return (uint32_t)(v & LABEL_MASK);
}

uint16_t path_sport_of_label(uint32_t flow_label, uint32_t qpn, uint32_t remote_qpn)
{
	uint32_t l = flow_label ? flow_label : label_of_numbers(qpn, remote_qpn);

	return (uint16_t)(SPORT_MIN | ((l ^ l >> 14) & 0x3fff));
}

/* Soft-RoCE takes no heed of the label of an address handle: a hash of the number. */
uint16_t path_sport_of_soft_roce(uint32_t qpn)
{
	return (uint16_t)(SPORT_MIN + (qpn * GOLDEN_32 >> 18));
}

static void set_gids(struct cm *cm, const struct ibv_ah_attr *a, struct ep_path *p)
{
	struct ibv_gid_entry e;

	p->sgid_index = a->grh.sgid_index;
	if (!ibv_query_gid_ex(cm->ctx.verbs, a->port_num, a->grh.sgid_index, &e, 0)) {
		memcpy(p->sgid, e.gid.raw, sizeof(p->sgid));
		p->gid_type = e.gid_type == IBV_GID_TYPE_ROCE_V2   ? EP_GID_ROCE_V2
			      : e.gid_type == IBV_GID_TYPE_ROCE_V1 ? EP_GID_ROCE_V1
								   : EP_GID_IB;
		p->known |= EP_PATH_SGID;
	}
	memcpy(p->dgid, a->grh.dgid.raw, sizeof(p->dgid));
	p->hop_limit = a->grh.hop_limit;
	p->traffic_class = a->grh.traffic_class;
	p->flow_label = a->grh.flow_label & LABEL_MASK;
	p->known |= EP_PATH_DGID | EP_PATH_HOPS | EP_PATH_CLASS | EP_PATH_FLOW_LABEL;
}

static void set_rate(const struct ibv_ah_attr *a, const struct rdma_cm_id *id,
		     struct ep_path *p)
{
	int mbps = a->static_rate ? ibv_rate_to_mbps(a->static_rate) : -1;

	/* The handle says it only where it is to be slowed down. */
	if (mbps <= 0 && id && id->route.num_paths > 0 && id->route.path_rec)
		mbps = ibv_rate_to_mbps((enum ibv_rate)id->route.path_rec->rate);
	if (mbps <= 0)
		return;
	p->rate_mbps = (uint32_t)mbps;
	p->known |= EP_PATH_RATE;
}

static void set_pkey(struct cm *cm, uint8_t port, uint16_t index, struct ep_path *p)
{
	uint16_t pkey;

	p->pkey_index = index;
	if (ibv_query_pkey(cm->ctx.verbs, port, index, &pkey))
		return;
	p->pkey = be16toh(pkey);
	p->known |= EP_PATH_PKEY;
}

static void set_lids(const struct ibv_port_attr *port, const struct ibv_ah_attr *a,
		     struct ep_path *p)
{
	if (port->link_layer == IBV_LINK_LAYER_ETHERNET || !port->lid)
		return;
	p->slid = (uint16_t)(port->lid | a->src_path_bits);
	p->dlid = a->dlid;
	p->known |= EP_PATH_LIDS;
}

static void set_way(struct cm *cm, const struct ibv_port_attr *port,
		    const struct ibv_ah_attr *a, const struct rdma_cm_id *id,
		    struct ep_path *p)
{
	p->sl = a->sl;
	p->known |= EP_PATH_SL;
	if (a->is_global)
		set_gids(cm, a, p);
	set_lids(port, a, p);
	set_rate(a, id, p);
}

static bool is_roce_v2(const struct ep_path *p)
{
	return p->known & EP_PATH_SGID && p->gid_type == EP_GID_ROCE_V2;
}

void path_of_rc(struct cm *cm, const struct endpoint *ep, struct ep_path *ret)
{
	struct ibv_qp_init_attr init;
	struct ibv_port_attr port;
	struct ibv_qp_attr a;
	bool has_port, has_qp;

	memset(ret, 0, sizeof(*ret));
	memset(&a, 0, sizeof(a));
	busy_enter(&cm->w->cm_busy, "ibv_query_port", false);
	has_port = !ibv_query_port(cm->ctx.verbs, ep->id->port_num, &port);
	busy_enter(&cm->w->cm_busy, "ibv_query_qp", false);
	has_qp = !cm->ctx.iwarp &&
		 !ibv_query_qp(ep->qp, &a,
			       IBV_QP_PATH_MTU | IBV_QP_AV | IBV_QP_PKEY_INDEX |
				       IBV_QP_DEST_QPN,
			       &init);
	if (has_qp && has_port && a.ah_attr.port_num) {
		set_way(cm, &port, &a.ah_attr, ep->id, ret);
		set_pkey(cm, ep->id->port_num, a.pkey_index, ret);
	}
	busy_leave(&cm->w->cm_busy);
	if (has_qp)
		ret->mtu = link_mtu_bytes(a.path_mtu);
	if (!ret->mtu && has_port)
		ret->mtu = link_mtu_bytes(port.active_mtu);
	if (has_qp && a.dest_qp_num) {
		ret->qpn = ep->qp->qp_num;
		ret->remote_qpn = a.dest_qp_num;
		ret->known |= EP_PATH_QPS;
	}
	if (is_roce_v2(ret) && ret->known & EP_PATH_QPS) {
		ret->sport = path_sport_of_label(ret->flow_label, ret->qpn,
						 ret->remote_qpn);
		ret->known |= EP_PATH_SPORT;
	}
}

static uint32_t ud_mtu(const struct endpoint *ep)
{
	const struct rdma_cm_id *id = ep->again.id ? ep->again.id : ep->id;
	uint32_t mtu = ep->ud->mtu, path = 0;

	if (id && id->route.num_paths > 0 && id->route.path_rec)
		path = link_mtu_bytes(id->route.path_rec->mtu);
	return path ? MIN(path, mtu) : mtu;
}

void path_of_ud(struct cm *cm, const struct endpoint *ep, const struct ibv_ah_attr *attr,
		uint32_t remote_qpn, struct ep_path *ret)
{
	struct ibv_port_attr port;

	memset(ret, 0, sizeof(*ret));
	ret->mtu = ud_mtu(ep);
	busy_enter(&cm->w->cm_busy, "ibv_query_port", false);
	set_pkey(cm, ep->ud->num, ep->ud->pkey_index, ret);
	if (attr && !ibv_query_port(cm->ctx.verbs, ep->ud->num, &port))
		set_way(cm, &port, attr, ep->id, ret);
	busy_leave(&cm->w->cm_busy);
	ret->qpn = ep->ud->qp->qp_num;
	if (!remote_qpn)
		return; /* rx: not before the first message */
	ret->remote_qpn = remote_qpn;
	ret->known |= EP_PATH_QPS;
	if (!is_roce_v2(ret))
		return;
	ret->sport = cm->ctx.soft_roce
			     ? path_sport_of_soft_roce(ret->qpn)
			     : path_sport_of_label(ret->flow_label, ret->qpn, remote_qpn);
	ret->known |= EP_PATH_SPORT;
}
