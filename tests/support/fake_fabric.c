/* SPDX-License-Identifier: BSD-2-Clause */
#include "fake_fabric.h"

#include <stdio.h>
#include <stdlib.h>

#include "render_subnet.h"
#include "route.h"
#include "util.h"

#define LEAVES	       2
#define SPINES	       2
#define HOSTS	       4
#define LEAF_PORTS     8
#define NOW_NS	       (INT64_C(4000000) * NSEC_PER_SEC)
#define WALL_NS	       INT64_C(1796071267118000000) /* 2026-11-30T20:41:07.118Z */
#define GUID(kind, n)  (UINT64_C(0x0002c90300000000) | (uint64_t)(kind) << 16 | (uint64_t)(n) << 8)

struct fake_fabric {
	struct subnet *s;
	struct ib_node *leaf[LEAVES], *spine[SPINES], *host[HOSTS];
	struct sweep_result full, last;
	struct sweep_error error;
	struct render_time t;
};

/* ---- the objects ---- */

static struct ib_node *add_node(struct fake_fabric *f, uint8_t type, uint64_t guid,
				uint8_t ports, const char *desc, uint8_t hops,
				const uint8_t *path)
{
	const struct node_info ni = {
		.base_version = 1, .class_version = 1, .node_type = type, .num_ports = ports,
		.sys_guid = guid + 3, .node_guid = guid,
		.port_guid = type == NODE_SWITCH ? guid : guid + 1, .partition_cap = 8,
		.device_id = type == NODE_SWITCH ? 0xd2f2 : 0x1021, .local_port = 1,
		.vendor_id = 0x2c9};
	bool is_new;
	struct ib_node *n = subnet_node(f->s, &ni, hops, path, &is_new);

	(void)str_copy(n->desc, sizeof(n->desc), desc);
	n->desc_known = true;
	n->sw_known = type == NODE_SWITCH;
	n->sw.enhanced_port0 = 1;
	n->mads = 10 + ports;
	n->read_at = mono_add(f->t.now, -12500 * NSEC_PER_MSEC);
	return n;
}

static void set_port(struct physp *p, uint16_t lid, uint8_t state, uint8_t width)
{
	struct port_info pi = {
		.gid_prefix = UINT64_C(0xfe80000000000000), .lid = lid, .sm_lid = 1,
		.cap_mask = IB_CAP_EXTENDED_SPEEDS, .local_port = p->num,
		.width_enabled = 0x13, .width_supported = 0x13, .width_active = width,
		.speed_supported = 7, .speed_enabled = 7, .speed_active = 4, .state = state,
		.phys_state = state == IB_DOWN ? IB_PHYS_POLLING : IB_PHYS_LINK_UP,
		.neighbor_mtu = 5, .mtu_cap = 5, .vl_cap = 3, .op_vls = 3,
		.vl_arb_low_cap = 8, .vl_arb_high_cap = 8,
		.ext_active = 8, .ext_supported = 15, .ext_enabled = 15};

	physp_set_info(p, &pi);
}

static void set_switch(struct fake_fabric *f, struct ib_node *n, uint16_t lid)
{
	set_port(node_physp(n, 0), lid, IB_ACTIVE, 2);
	(void)subnet_lids_changed(f->s, subnet_port(f->s, node_physp(n, 0)));
	for (unsigned i = 1; i <= n->info.num_ports; i++)
		set_port(node_physp(n, i), 0, IB_DOWN, 0);
}

static void link_up(struct ib_node *a, unsigned pa, struct ib_node *b, unsigned pb, uint8_t width)
{
	struct physp *x = node_physp(a, pa), *y = node_physp(b, pb);

	set_port(x, x->info.lid, IB_ACTIVE, width);
	set_port(y, y->info.lid, IB_ACTIVE, width);
	physp_link(x, y);
}

static void build(struct fake_fabric *f)
{
	char desc[65];

	for (int i = 0; i < LEAVES; i++) {
		const uint8_t path[] = {0, 1, 5, (uint8_t)(i + 1)};

		(void)snprintf(desc, sizeof(desc), "MF0;leaf%02d:MQM9700/U1", 7 + i);
		f->leaf[i] = add_node(f, NODE_SWITCH, GUID(1, i), LEAF_PORTS, desc, i ? 3 : 1, path);
		set_switch(f, f->leaf[i], (uint16_t)(11 + i));
	}
	for (int i = 0; i < SPINES; i++) {
		const uint8_t path[] = {0, 1, (uint8_t)(5 + i)};

		(void)snprintf(desc, sizeof(desc), "MF0;spine%02d:MQM9700/U1", 1 + i);
		f->spine[i] = add_node(f, NODE_SWITCH, GUID(2, i), 4, desc, 2, path);
		set_switch(f, f->spine[i], (uint16_t)(21 + i));
	}
	for (int i = 0; i < HOSTS; i++) {
		const uint8_t path[] = {0, 1, 5, 2, (uint8_t)(1 + i % 2)};
		const uint8_t near_path[] = {0, 1, (uint8_t)(1 + i % 2)};

		(void)snprintf(desc, sizeof(desc), "gpu%04d mlx5_0", 417 + i);
		f->host[i] = add_node(f, NODE_CA, GUID(3, i), 1, desc,
				      i == 0 ? 0 : i < 2 ? 2 : 4, i < 2 ? near_path : path);
		set_port(node_physp(f->host[i], 1), (uint16_t)(410 + i), IB_ACTIVE, 2);
		(void)subnet_lids_changed(f->s,
					  subnet_port(f->s, node_physp(f->host[i], 1)));
		link_up(f->host[i], 1, f->leaf[i / 2], (unsigned)(1 + i % 2), 2);
	}
	for (int i = 0; i < LEAVES; i++)
		for (int k = 0; k < SPINES; k++)
			link_up(f->leaf[i], (unsigned)(5 + k), f->spine[k], (unsigned)(1 + i),
				i == 1 && k == 1 ? 16 : 2); /* 2x of 4x */
}

struct fake_fabric *fake_fabric_new(void)
{
	struct fake_fabric *f = xcalloc(1, sizeof(*f));

	f->t = (struct render_time){{NOW_NS}, WALL_NS};
	f->s = subnet_new();
	build(f);
	f->full = (struct sweep_result){
		.kind = SWEEP_FULL, .number = 1,
		.began = mono_add(f->t.now, -600 * NSEC_PER_SEC),
		.ended = mono_add(f->t.now, -600 * NSEC_PER_SEC + 41 * NSEC_PER_MSEC),
		.mads = 74, .answers = 70, .timeouts = 4, .changed = 8, .window_worst = 24};
	f->last = (struct sweep_result){
		.kind = SWEEP_LATER, .number = 11,
		.began = mono_add(f->t.now, -12500 * NSEC_PER_MSEC),
		.ended = mono_add(f->t.now, -12495 * NSEC_PER_MSEC),
		.mads = 7, .answers = 7, .window_worst = 4};
	f->error = (struct sweep_error){
		.problem = PROBLEM_TIMEOUT, .attr = SWEEP_NODE_INFO, .node_guid = GUID(1, 0),
		.desc = "MF0;leaf07:MQM9700/U1", .port = 3, .hops = 2, .path = {0, 1, 3},
		.why = "no answer to 4 tries in 750 ms",
		.at = mono_add(f->t.now, -600 * NSEC_PER_SEC)};
	return f;
}

struct fake_fabric *fake_fabric_free(struct fake_fabric *f)
{
	if (f)
		subnet_free(f->s);
	free(f);
	return NULL;
}

/* ---- shown ---- */

json_t *fake_fabric_summary(const struct fake_fabric *f)
{
	struct subnet_counts c;
	json_t *o;

	subnet_count(f->s, &c);
	o = json_pack(
		"{s:s, s:s, s:s, s:n, s:n, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i}",
		"mode", "subnet", "state", "idle", "port", "mlx5_0/1", "progress", "why",
		"nodes", (int)c.nodes, "switches", (int)c.switches, "cas", (int)c.cas,
		"routers", (int)c.routers, "ports", (int)c.ports, "links", (int)c.links,
		"links_degraded", (int)c.links_degraded, "errors", 1, "duplicates",
		(int)c.duplicates, "moved", 0);
	json_object_set_new(o, "last_sweep", render_sweep(&f->last, &c, 1, 20480, &f->t));
	json_object_set_new(o, "present_sweep", json_null());
	json_object_set_new(o, "last_full", render_sweep(&f->full, &c, 1, 20480, &f->t));
	json_object_set_new(o, "sm", json_pack("{s:i, s:s, s:i, s:s}", "lid", 1, "guid",
					       "0x0002c90300040001", "priority", 14, "state",
					       "master"));
	(void)json_object_update_new(
		o, json_pack("{s:f, s:{s:i, s:i, s:i, s:i, s:i}, s:s, s:i, s:i, s:b}",
			     "next_sweep_sec", 47.5, "mads", "own", 4000, "near", 200, "subnet",
			     144, "pma", 9, "sa", 2, "mads_worst_node", "MF0;leaf07:MQM9700/U1",
			     "mads_worst", 18, "notices", 0, "subscribed", 0));
	return o;
}

json_t *fake_fabric_sa(void)
{
	return json_pack("{s:[{s:i, s:s, s:i, s:s}], s:[{s:s, s:i, s:s, s:s, s:i}], s:f, s:{}}",
			 "sms", "lid", 1, "guid", "0x0002c90300040001", "priority", 14, "state",
			 "master", "members", "mgid",
			 "ff12:401b:ffff:0000:0000:0000:ffff:ffff", "mlid", 0xc000, "port_gid",
			 "fe80:0000:0000:0000:0002:c903:0003:0001", "pkey", "0xffff",
			 "join_state", 1, "age_sec", 599.5, "unavailable");
}

static const struct ib_node *nth_node(const struct fake_fabric *f, uint64_t n)
{
	const struct ib_node *node = subnet_next(f->s, NULL);

	while (node && n--)
		node = subnet_next(f->s, node);
	return node;
}

static json_t *node_json(const struct fake_fabric *f, const struct ib_node *n)
{
	uint32_t size = subnet_serials(f->s);
	uint8_t *levels = xcalloc(size, 1);
	json_t *o;

	subnet_levels(f->s, levels, size);
	o = render_fabric_node(n, levels[n->serial], &f->t);
	free(levels);
	return o;
}

json_t *fake_fabric_next(const struct fake_fabric *f, enum api_list list, uint64_t *cursor)
{
	const struct ib_node *n;

	if (list == API_FABRIC_ERRORS)
		return (*cursor)++ ? NULL : render_sweep_error(&f->error, &f->t);
	if (list == API_FABRIC_NODES) {
		n = nth_node(f, *cursor);
		++*cursor;
		return n ? node_json(f, n) : NULL;
	}
	while ((n = nth_node(f, *cursor / 256))) {
		const struct physp *p = node_physp(n, (unsigned)(*cursor % 256));
		json_t *link = p ? render_fabric_link(p) : NULL;

		++*cursor;
		if (link)
			return link;
	}
	return NULL;
}

static const struct physp *end_of(const struct fake_fabric *f, const char *name, json_t **ret)
{
	bool ambiguous;
	const struct ib_node *n = subnet_find(f->s, name, &ambiguous);

	if (!n)
		*ret = json_pack("{s:s, s:s}", "node", name, "why",
				 "no node has that description, GUID or LID");
	return n ? node_main_port(n) : NULL;
}

static json_t *route_json(const struct physp *from, const struct physp *to,
			  const struct dr_path *path)
{
	json_t *hops = json_array(), *ports = json_pack("[i]", 0);
	const struct physp *p = from;

	for (int i = 1; i <= path->hops; i++) {
		const struct physp *out = node_physp(p->node, path->port[i]);

		p = physp_remote(out);
		json_array_append_new(ports, json_integer(path->port[i]));
		json_array_append_new(hops, render_fabric_end(out));
		json_array_append_new(hops, render_fabric_end(p));
	}
	return json_pack("{s:o, s:o, s:o, s:o}", "from", render_fabric_end(from), "to",
			 render_fabric_end(to), "hops", hops, "path", ports);
}

const char *fake_fabric_route(const struct fake_fabric *f, const char *from, const char *to,
			      json_t **ret)
{
	const struct physp *a = end_of(f, from, ret), *b = a ? end_of(f, to, ret) : NULL;
	struct dr_path path, other;

	if (!b)
		return "io.fabd.NoSuchNode";
	if (route_shortest(f->s, a, b, false, &path) < 0) {
		*ret = json_pack("{s:s}", "why", "no way over links that are known and up");
		return "io.fabd.NoRoute";
	}
	*ret = json_pack("{s:o, s:o}", "route", route_json(a, b, &path), "alternate",
			 route_avoiding(f->s, a, b, &path, &other) < 0
				 ? json_null()
				 : route_json(a, b, &other));
	return NULL;
}

const char *fake_fabric_port(const struct fake_fabric *f, const char *name, json_t **ret)
{
	const char *slash = strrchr(name, '/');
	struct slvl slvl = {{0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 15}};
	struct vlarb_block vlarb = {.e = {{0, 64}, {1, 64}}};
	struct pkey_block pkeys = {{0xffff, 0x8001}};
	struct counter_reading r;
	struct physp *p = NULL;
	char node[96];

	(void)str_copy(node, sizeof(node), name);
	if (slash) {
		const struct physp *end;

		node[slash - name] = '\0';
		end = end_of(f, node, ret);
		if (!end)
			return "io.fabd.NoSuchNode";
		p = node_physp(end->node, (unsigned)atoi(slash + 1));
	}
	if (!p) {
		*ret = json_pack("{s:s, s:s}", "node", name, "why", "NODE/PORT is wanted");
		return "io.fabd.NoSuchNode";
	}
	(void)physp_set_slvl(p, 0, &slvl);
	(void)physp_set_vlarb(p, 1, &vlarb);
	(void)physp_set_pkeys(p, 0, &pkeys);
	counter_reading_init(&r, WHY_NOT_SUPPORTED);
	r.value[CTR_SYMBOL_ERROR] = 12;
	r.value[CTR_PORT_XMIT_DATA] = 1000;
	r.why[CTR_SYMBOL_ERROR] = r.why[CTR_PORT_XMIT_DATA] = WHY_NONE;
	*ret = json_pack("{s:o}", "port", render_fabric_port(p, &r));
	return NULL;
}
