/* SPDX-License-Identifier: BSD-2-Clause */
/* Life and facts of a physical port. */
#include "physp.h"

#include <stdio.h>
#include <stdlib.h>

const char *node_type_name(uint32_t type)
{
	static const char *const names[] = {"unknown", "ca", "switch", "router",
					    "rnic"};

	return type < ARRAY_LEN(names) ? names[type] : names[0];
}

const char *node_desc_short(const char *desc, char *buf, size_t size)
{
	const char *start = strchr(desc, ';');
	int len = (int)strlen(desc);

	if (start && start[1] && strchr(start, ':')) {
		desc = start + 1;
		len = (int)strcspn(desc, ":");
	}
	(void)snprintf(buf, size, "%.*s", len, desc);
	return buf;
}

/* ---- life ---- */

void physp_construct(struct physp *p)
{
	*p = (struct physp){0};
}

static void route_set(struct physp *p, uint8_t hops, const uint8_t *path)
{
	memset(p->path, 0, sizeof(p->path));
	p->hops = 0;
	if (!path || hops > IB_HOPS_MAX)
		return;
	p->hops = hops;
	memcpy(p->path, path, (size_t)hops + 1);
}

void physp_init(struct physp *p, uint64_t guid, uint8_t num, struct ib_node *node,
		uint8_t hops, const uint8_t *path)
{
	physp_construct(p);
	p->guid = guid;
	p->num = num;
	p->node = node;
	p->healthy = true;
	p->need_update = 2;
	route_set(p, hops, path);
}

void physp_destroy(struct physp *p)
{
	if (!physp_is_valid(p))
		return;
	physp_unlink(p);
	if (p->pkeys)
		free(p->pkeys->blocks);
	free(p->pkeys);
	if (p->qos) {
		free(p->qos->slvl);
		free(p->qos->slvl_set);
	}
	free(p->qos);
	physp_construct(p);
}

bool physp_is_valid(const struct physp *p)
{
	return p->guid != 0;
}

/* ---- facts ---- */

bool physp_is_healthy(const struct physp *p)
{
	return p->healthy;
}

void physp_set_health(struct physp *p, bool healthy)
{
	p->healthy = healthy;
}

static bool of_switch(const struct physp *p)
{
	return p->node && p->node->info.node_type == NODE_SWITCH;
}

/* The state of a base switch port 0 is not used (IBA 14.2.5.6, PortState). */
static bool has_state(const struct physp *p)
{
	return !of_switch(p) || p->num != 0 || p->node->sw.enhanced_port0;
}

void physp_set_info(struct physp *p, const struct port_info *pi)
{
	bool stateless = !has_state(p);

	/* C14-24.2.1: of a port that is down only the states mean anything. */
	if (pi->state == IB_DOWN && !stateless) {
		p->info.state = pi->state;
		p->info.phys_state = pi->phys_state;
		p->need_update = 0;
		return;
	}
	p->info = *pi;
	p->info_full = true;
	p->need_update = p->need_update > 1 || pi->state == IB_INIT;
}

uint64_t physp_guid(const struct physp *p)
{
	return p->guid;
}

uint8_t physp_num(const struct physp *p)
{
	return p->num;
}

struct ib_node *physp_node(const struct physp *p)
{
	return p->node;
}

uint8_t physp_state(const struct physp *p)
{
	return p->info.state;
}

/* Where the facts are that all ports of a switch share. */
static const struct port_info *shared_info(const struct physp *p)
{
	return of_switch(p) && p->node->slots ? &p->node->slots[0].info : &p->info;
}

uint16_t physp_base_lid(const struct physp *p)
{
	return shared_info(p)->lid;
}

uint8_t physp_lmc(const struct physp *p)
{
	return shared_info(p)->lmc;
}

uint64_t physp_subnet_prefix(const struct physp *p)
{
	return shared_info(p)->gid_prefix;
}

const uint8_t *physp_path(const struct physp *p, uint8_t *ret_hops)
{
	*ret_hops = p->hops;
	return p->path;
}

void physp_set_path(struct physp *p, uint8_t hops, const uint8_t *path)
{
	if (!of_switch(p) || !p->node->slots) {
		route_set(p, hops, path);
		return;
	}
	for (unsigned i = 0; i <= p->node->info.num_ports; i++)
		route_set(&p->node->slots[i], hops, path);
}

bool lid_range(uint16_t lid, uint8_t lmc, uint16_t *ret_first, uint16_t *ret_last)
{
	uint32_t n = UINT32_C(1) << (lmc & 7);

	if (lmc > 7 || !lid || lid % n || lid + n - 1 > IB_LID_UNICAST_MAX)
		return false;
	*ret_first = lid;
	*ret_last = (uint16_t)(lid + n - 1);
	return true;
}
