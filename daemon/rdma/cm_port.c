/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cm_port.c - the life of the queue pairs that ud endpoints share. One that has an error
 * (a send to a place that is gone is enough, on some devices) is put back to work with
 * its number, so that no peer notices and nobody is told. Only one that cannot be, or
 * that the device gave up, is destroyed; then all on it are told, once, and begin anew
 * on another.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "cm.h"
#include "log.h"

/* A place that breaks it again and again does so at its heartbeats; between two repairs
 * the others have their turn. */
#define REPAIR_GAP (20 * NSEC_PER_MSEC)

static struct ud_port *find(struct cm *cm, uint8_t num, uint16_t pkey_index)
{
	for (int i = 0; i < UD_PORTS; i++) {
		struct ud_port *p = cm->ports[i];

		if (p && !p->fatal && p->num == num && p->pkey_index == pkey_index)
			return p;
	}
	return NULL;
}

static void destroy(struct cm *cm, struct ud_port *p)
{
	bool ok = ud_port_close(p, &cm->w->cm_busy);

	for (int i = 0; i < UD_PORTS; i++)
		if (cm->ports[i] == p)
			cm->ports[i] = NULL;
	if (ok) /* else events of what is left may still name it */
		free(p);
}

static void stop(struct cm *cm, struct ud_port *p)
{
	/* Also when it has failed: hot may still be in the turn that told so. */
	if (p->stopping || p->stopped)
		return;
	p->stopping = true;
	cm_order_hot(cm, &(struct hot_order){.type = HOT_UD_STOP, .port = p});
}

/* Nobody uses it, and nobody will: it is out of order, or its place is needed. */
static void retire(struct cm *cm, struct ud_port *p)
{
	if (p->users)
		return;
	p->fatal = true;
	p->broken = false;
	if (p->stopped)
		destroy(cm, p);
	else
		stop(cm, p);
}

static struct ud_port **free_place(struct cm *cm)
{
	for (int i = 0; i < UD_PORTS; i++)
		if (!cm->ports[i])
			return &cm->ports[i];
	/* P_Keys come and go: the place of one that is not used is free in a moment. */
	for (int i = 0; i < UD_PORTS; i++)
		if (!cm->ports[i]->users && !cm->ports[i]->stopping)
			retire(cm, cm->ports[i]);
	for (int i = 0; i < UD_PORTS; i++)
		if (!cm->ports[i])
			return &cm->ports[i];
	return NULL;
}

static void give_to_hot(struct cm *cm, struct ud_port *p)
{
	p->with_hot = true;
	cm_order_hot(cm, &(struct hot_order){.type = HOT_UD_LIVE, .port = p});
}

static int open_port(struct cm *cm, uint8_t num, uint16_t pkey_index,
		     struct ud_port **ret, const char **ret_call)
{
	struct ud_port **place = free_place(cm), *p;
	int r;

	*ret_call = "a queue pair for another P_Key";
	if (!place)
		return -EAGAIN;
	p = xcalloc(1, sizeof(*p));
	busy_enter(&cm->w->cm_busy, "creating a queue pair", false);
	r = ud_port_open(p, &cm->ctx, num, pkey_index, ret_call);
	busy_leave(&cm->w->cm_busy);
	if (r < 0) {
		if (ud_port_close(p, &cm->w->cm_busy))
			free(p);
		return r;
	}
	*place = *ret = p;
	give_to_hot(cm, p);
	return 0;
}

int ud_port_get(struct cm *cm, struct rdma_cm_id *id, struct ud_port **ret,
		const char **ret_call)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT};
	int mask = 0, r;

	*ret_call = "rdma_init_qp_attr";
	r = CM_CALL(cm, rdma_init_qp_attr, id, &attr, &mask);
	if (r < 0)
		return r;
	*ret = find(cm, id->port_num, attr.pkey_index);
	if (*ret)
		return 0;
	return open_port(cm, id->port_num, attr.pkey_index, ret, ret_call);
}

void ud_port_stopped(struct cm *cm, struct ud_port *p)
{
	p->with_hot = p->stopping = false;
	p->stopped = true;
	if (p->fatal && !p->users)
		destroy(cm, p);
}

void ud_port_left(struct cm *cm, struct ud_port *p)
{
	p->users--;
	if (p->fatal)
		retire(cm, p);
}

void ud_port_fatal(struct cm *cm, struct ud_port *p, const char *why)
{
	struct reason reason = {.error = EPERR_LOCAL};

	if (p->fatal)
		return;
	p->fatal = true;
	p->broken = false;
	log_warn("ud queue pair of port %u: %s; it is made anew", p->num, why);
	(void)snprintf(reason.text, sizeof(reason.text), "ud queue pair: %s", why);
	stop(cm, p);
	for (uint32_t i = 0; i < cm->table.n; i++)
		if (cm->table.slots[i] && cm->table.slots[i]->ud == p)
			cm_fail(cm, cm->table.slots[i], &reason, 0);
	retire(cm, p);
}

static void repair(struct cm *cm, struct ud_port *p, struct mono now)
{
	char why[EP_TEXT_MAX];
	const char *call;
	int r;

	p->broken = false;
	p->repaired_at = now;
	p->repairs++;
	busy_enter(&cm->w->cm_busy, "repairing a queue pair", false);
	r = ud_port_repair(p, &call);
	busy_leave(&cm->w->cm_busy);
	if (!r) {
		give_to_hot(cm, p);
		return;
	}
	(void)snprintf(why, sizeof(why), "%s: %s", call, strerror(-r));
	ud_port_fatal(cm, p, why);
}

void ud_port_failed(struct cm *cm, const struct hot_note *n, struct mono now)
{
	struct endpoint *ep = endpoint_by_handle(&cm->table, n->handle);
	static struct log_limit limit;
	struct ud_port *p = n->port;

	/* It was asked to stop when it had failed already: that is answered, too. */
	p->with_hot = p->stopping;
	if (p->fatal)
		return;
	log_limited(&limit, LOG_INFO, "ud queue pair of port %u: %s, vendor 0x%x", p->num,
		    ibv_wc_status_str((enum ibv_wc_status)n->wc_status), n->vendor_err);
	p->broken = true;
	p->repair_at = mono_is_set(p->repaired_at) ? mono_add(p->repaired_at, REPAIR_GAP)
						   : now;
	cm->ports_at = mono_first(cm->ports_at, p->repair_at);
	if (ep)
		ud_suspect(cm, ep, now);
	if (mono_due(p->repair_at, now))
		repair(cm, p, now);
}

void ud_ports_timer(struct cm *cm, struct mono now)
{
	cm->ports_at = MONO_NEVER;
	for (int i = 0; i < UD_PORTS; i++) {
		struct ud_port *p = cm->ports[i];

		if (!p || !p->broken)
			continue;
		if (mono_due(p->repair_at, now))
			repair(cm, p, now);
		else
			cm->ports_at = mono_first(cm->ports_at, p->repair_at);
	}
	ah_sweep(cm, false);
}

/* hot is not there any more, or has nothing of it. */
void ud_ports_close(struct cm *cm)
{
	for (int i = 0; i < UD_PORTS; i++) {
		if (!cm->ports[i])
			continue;
		(void)ud_port_close(cm->ports[i], &cm->w->cm_busy);
		free(cm->ports[i]);
		cm->ports[i] = NULL;
	}
}
