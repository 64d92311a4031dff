/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cm_ah.c - address handles of ud. Endpoints that go the same way share one. A handle
 * holds what was true when it was made (the neighbour's hardware address, the place of
 * the source in the GID table, LIDs), so those of before a change are shared no more, and
 * each endpoint gets another one when its path was looked up again. One goes when no
 * endpoint has it and no send is under way with it.
 */
#include <errno.h>
#include <stdlib.h>

#include "cm.h"
#include "log.h"

#define SWEEP_AGAIN (20 * NSEC_PER_MSEC)

/* The same to the last bit that counts: the structure has holes. */
static bool same_way(const struct ibv_ah_attr *a, const struct ibv_ah_attr *b)
{
	if (a->dlid != b->dlid || a->sl != b->sl || a->src_path_bits != b->src_path_bits ||
	    a->static_rate != b->static_rate || a->is_global != b->is_global ||
	    a->port_num != b->port_num)
		return false;
	return !a->is_global ||
	       (!memcmp(a->grh.dgid.raw, b->grh.dgid.raw, 16) &&
		a->grh.flow_label == b->grh.flow_label &&
		a->grh.sgid_index == b->grh.sgid_index &&
		a->grh.hop_limit == b->grh.hop_limit &&
		a->grh.traffic_class == b->grh.traffic_class);
}

void ah_adjust(const struct endpoint *ep, struct ibv_ah_attr *attr)
{
	if (ep->start.sl != EP_SL_ANY)
		attr->sl = ep->start.sl;
	if (!attr->is_global)
		return;
	if (ep->start.tos)
		attr->grh.traffic_class = ep->start.tos;
	attr->grh.flow_label =
		ud_flow_label(&ep->start.local, &ep->start.remote, ep->start.flow);
}

struct ud_ah *ah_get(struct cm *cm, struct ud_port *p, const struct ibv_ah_attr *attr)
{
	struct ibv_ah_attr copy = *attr;
	struct ibv_ah *made;
	struct ud_ah *a;

	for (a = cm->ahs; a; a = a->next)
		if (a->refs && a->epoch == cm->ah_epoch && same_way(&a->attr, attr)) {
			a->refs++;
			return a;
		}
	/* On RoCE this asks for the neighbour, and waits. */
	busy_enter(&cm->w->cm_busy, "ibv_create_ah", false);
	made = ibv_create_ah(p->ctx->pd, &copy);
	busy_leave(&cm->w->cm_busy);
	if (!made)
		return NULL;
	a = xcalloc(1, sizeof(*a));
	a->ah = made;
	a->attr = *attr;
	a->epoch = cm->ah_epoch;
	a->refs = 1;
	a->next = cm->ahs;
	cm->ahs = a;
	return a;
}

void ah_sweep(struct cm *cm, bool all)
{
	struct ud_ah **at = &cm->ahs;

	while (*at) {
		struct ud_ah *a = *at;

		if (a->refs ||
		    (!all && atomic_load_explicit(&a->out, memory_order_acquire))) {
			if (!a->refs)
				cm->ports_at =
					mono_first(cm->ports_at,
						   mono_add(clock_now(), SWEEP_AGAIN));
			at = &a->next;
			continue;
		}
		*at = a->next;
		busy_enter(&cm->w->cm_busy, "ibv_destroy_ah", true);
		(void)freed(ibv_destroy_ah(a->ah), "ibv_destroy_ah");
		busy_leave(&cm->w->cm_busy);
		free(a);
	}
}

void ah_put(struct cm *cm, struct ud_ah *ah)
{
	if (!ah)
		return;
	assert(ah->refs);
	if (!--ah->refs)
		ah_sweep(cm, false);
}

void ah_give(struct cm *cm, struct endpoint *ep, struct ud_ah *ah, uint32_t qpn,
	     uint32_t qkey)
{
	struct ud_ah *old = ep->ah;

	ep->ah = ah;
	cm_order_hot(cm, &(struct hot_order){.type = HOT_AH,
					     .ep = ep,
					     .ah = ah,
					     .old = old,
					     .qpn = qpn,
					     .qkey = qkey});
}

/* The library finds out what a global header is by the sum of its bytes, which some
 * devices leave zero. On RoCE all that is needed is known without it. */
static int attr_by_address(struct cm *cm, const struct endpoint *ep,
			   struct ibv_ah_attr *ret)
{
	uint8_t gid[16], own[16];
	struct ibv_gid_entry e;

	*ret = (struct ibv_ah_attr){.is_global = 1, .port_num = ep->ud->num};
	ud_gid_of_addr(&ep->start.remote, gid);
	ud_gid_of_addr(&ep->start.local, own);
	memcpy(ret->grh.dgid.raw, gid, 16);
	ret->grh.hop_limit = 0xff;
	for (uint32_t i = 0; i < PORT_GIDS_MAX; i++) {
		if (ibv_query_gid_ex(cm->ctx.verbs, ep->ud->num, i, &e, 0) ||
		    e.gid_type != IBV_GID_TYPE_ROCE_V2 || memcmp(e.gid.raw, own, 16))
			continue;
		ret->grh.sgid_index = (uint8_t)i;
		return 0;
	}
	return -EADDRNOTAVAIL;
}

static int attr_of_message(struct cm *cm, const struct endpoint *ep,
			   const struct hot_note *n, struct ibv_ah_attr *ret)
{
	struct ibv_wc wc = {
		.src_qp = n->wc_src_qp,
		.wc_flags = n->wc_flags,
		.slid = n->wc_slid,
		.sl = n->wc_sl,
		.dlid_path_bits = n->wc_path_bits,
	};
	struct ibv_grh grh;
	int r;

	memcpy(&grh, n->grh, sizeof(grh));
	memset(ret, 0, sizeof(*ret));
	busy_enter(&cm->w->cm_busy, "ibv_init_ah_from_wc", false);
	r = ibv_init_ah_from_wc(cm->ctx.verbs, ep->ud->num, &wc, &grh, ret);
	if (r && ep->ud->ethernet)
		r = attr_by_address(cm, ep, ret);
	busy_leave(&cm->w->cm_busy);
	return r ? -EADDRNOTAVAIL : 0;
}

void ah_wanted(struct cm *cm, struct endpoint *ep, const struct hot_note *n)
{
	static struct log_limit limit;
	struct ibv_ah_attr attr;
	struct ud_ah *ah = NULL;
	char a[ADDR_TEXT_MAX];
	struct ep_path path;

	if (!ep->ud || ep->state != EPS_UP || !ep->attached || ep->detaching)
		return;
	if (!attr_of_message(cm, ep, n, &attr)) {
		ah_adjust(ep, &attr);
		ah = ah_get(cm, ep->ud, &attr);
	}
	if (!ah) {
		log_limited(&limit, LOG_INFO, "no address handle to answer %s: %m",
			    addr_format(&ep->remote, a));
		return;
	}
	path_of_ud(cm, ep, &attr, n->wc_src_qp, &path);
	ah_give(cm, ep, ah, n->wc_src_qp, RDMA_UDP_QKEY);
	cm_path(cm, ep, &path);
}
