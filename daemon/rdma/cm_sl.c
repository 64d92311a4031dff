/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cm_sl.c - the service level of rc. The connection manager takes it from the path and
 * knows no wish for another; it is the queue pair's, though, and until that is ready to
 * receive it can be set. So with a wish the steps that the library makes are made here:
 * it leaves them to its user for an id without queue pair, which is what it gets to see
 * meanwhile.
 */
#include <errno.h>

#include "cm.h"

/* Bits of RoCE that old kernels set and ibv_modify_qp does not know. */
#define MASK_KNOWN (~0xe00000)

static int to_state(struct cm *cm, struct endpoint *ep, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = {.qp_state = state};
	int mask = 0, r;

	r = CM_CALL(cm, rdma_init_qp_attr, ep->id, &attr, &mask);
	if (r < 0)
		return r;
	if (state == IBV_QPS_RTR)
		attr.ah_attr.sl = ep->start.sl;
	busy_enter(&cm->w->cm_busy, "ibv_modify_qp", false);
	r = ibv_modify_qp(ep->qp, &attr, mask & MASK_KNOWN);
	busy_leave(&cm->w->cm_busy);
	return -r;
}

static int ready(struct cm *cm, struct endpoint *ep)
{
	int r = to_state(cm, ep, IBV_QPS_INIT);

	if (!r)
		r = to_state(cm, ep, IBV_QPS_RTR);
	return r ? r : to_state(cm, ep, IBV_QPS_RTS);
}

bool sl_wanted(const struct cm *cm, const struct endpoint *ep)
{
	return ep->start.sl != EP_SL_ANY && !cm->ctx.iwarp;
}

void sl_hide_qp(struct endpoint *ep, struct rdma_conn_param *param)
{
	param->qp_num = ep->qp->qp_num;
	ep->id->qp = NULL;
}

void sl_show_qp(struct endpoint *ep)
{
	if (ep->id && ep->qp)
		ep->id->qp = ep->qp;
}

void sl_response(struct cm *cm, struct endpoint *ep)
{
	int r = ready(cm, ep);

	if (!r)
		r = CM_CALL(cm, rdma_establish, ep->id);
	sl_show_qp(ep);
	if (r < 0)
		cm_fail_call(cm, ep, "rdma_establish", r);
	else
		cm_established(cm, ep);
}

int sl_accept(struct cm *cm, struct endpoint *ep, struct rdma_conn_param *param)
{
	int r = ready(cm, ep);

	if (r)
		return r;
	sl_hide_qp(ep, param);
	r = CM_CALL(cm, rdma_accept, ep->id, param);
	sl_show_qp(ep);
	return r;
}
