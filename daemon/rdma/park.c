/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * park.c - connections that cannot say goodbye. The end of a connection's id makes the
 * kernel send a message to the peer. Where nothing can be sent (link down, address or
 * route gone), soft-RoCE takes the failed message for an error of the queue pair that
 * carries such messages for the whole device, and from then on receives none of them:
 * no connection would come up again until the device is made anew. So there the id
 * alone is kept, without its queue pair and its memory, until a message can go out.
 */
#include <stdlib.h>

#include "cm.h"
#include "log.h"

#define TRY_EVERY NSEC_PER_SEC

bool cm_can_send(struct cm *cm, uint8_t port, const struct addr *local,
		 const struct addr *remote)
{
	struct ibv_port_attr attr;
	int r;

	if (cm->ctx.iwarp || !cm->ctx.verbs)
		return true;
	busy_enter(&cm->w->cm_busy, "ibv_query_port", false);
	r = ibv_query_port(cm->ctx.verbs, port, &attr);
	busy_leave(&cm->w->cm_busy);
	if (r || attr.link_layer != IBV_LINK_LAYER_ETHERNET)
		return true;
	return attr.state == IBV_PORT_ACTIVE && path_works(local, remote);
}

bool cm_must_park(struct cm *cm, const struct endpoint *ep)
{
	/* With the queue pair came the first message to the peer. */
	return ep->id && ep->qp &&
	       !cm_can_send(cm, ep->id->port_num, &ep->local, &ep->remote);
}

void cm_park(struct cm *cm, struct endpoint *ep)
{
	struct parked *p = xcalloc(1, sizeof(*p));
	char a[ADDR_TEXT_MAX];

	if (ep->qp) {
		sl_show_qp(ep);
		busy_enter(&cm->w->cm_busy, "rdma_destroy_qp", true);
		rdma_destroy_qp(ep->id);
		busy_leave(&cm->w->cm_busy);
		ep->qp = NULL;
	}
	log_debug("the connection to %s ends when its link is back",
		  addr_format(&ep->remote, a));
	p->id = ep->id;
	p->local = ep->local;
	p->remote = ep->remote;
	p->next = cm->parked;
	cm->parked = p;
	cm->parked_at = mono_add(clock_now(), TRY_EVERY);
	ep->id = NULL;
}

void cm_unpark(struct cm *cm, struct mono now, bool all)
{
	struct parked **at = &cm->parked;

	while (*at) {
		struct parked *p = *at;

		if (!all && !cm_can_send(cm, p->id->port_num, &p->local, &p->remote)) {
			at = &p->next;
			continue;
		}
		*at = p->next;
		cm_destroy_id(cm, p->id);
		free(p);
	}
	cm->parked_at = cm->parked ? mono_add(now, TRY_EVERY) : MONO_NEVER;
}
