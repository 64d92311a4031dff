/* SPDX-License-Identifier: BSD-2-Clause */
/* The fabric as JSON. What is not known is null. */
#include "render_subnet.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- plain values ---- */

static void int_or_null(json_t *o, const char *key, uint64_t value)
{
	if (value)
		render_int(o, key, value);
	else
		render_set(o, key, json_null());
}

static void hex(json_t *o, const char *key, uint64_t value, int digits)
{
	char buf[24];

	(void)snprintf(buf, sizeof(buf), "0x%0*llx", digits, (unsigned long long)value);
	render_text(o, key, buf);
}

static void text_or_null(json_t *o, const char *key, const char *text)
{
	render_text(o, key, text[0] ? text : NULL);
}

/* As route_text() has it: 0, then the egress ports. */
static json_t *path_array(const uint8_t *path, uint8_t hops)
{
	json_t *a = json_array();

	for (int i = 0; i <= hops; i++)
		(void)json_array_append_new(a, json_integer(i ? path[i] : 0));
	return a;
}

json_t *render_fabric_end(const struct physp *p)
{
	const struct ib_node *n = p->node;
	json_t *o = json_object();

	hex(o, "node_guid", n->info.node_guid, 16);
	text_or_null(o, "node_desc", n->desc_known ? n->desc : "");
	render_int(o, "port", p->num);
	return o;
}

/* ---- ports ---- */

/* clang-format off */
#define INFO(field) \
	{ #field, offsetof(struct port_info, field), sizeof(((struct port_info *)0)->field) }
static const struct {
	const char *name;
	size_t offset, size;
} info_keys[] = {
	INFO(width_enabled), INFO(width_supported), INFO(width_active), INFO(speed_enabled),
	INFO(speed_supported), INFO(speed_active), INFO(ext_enabled), INFO(ext_supported),
	INFO(ext_active), INFO(ext_enabled2), INFO(ext_supported2), INFO(ext_active2),
	INFO(neighbor_mtu), INFO(mtu_cap), INFO(vl_cap), INFO(op_vls), INFO(state),
	INFO(phys_state), INFO(m_key_protect), INFO(sm_sl), INFO(sm_lid), INFO(cap_mask),
	INFO(cap_mask2),
};
#undef INFO
/* clang-format on */

static json_t *info_object(const struct port_info *pi)
{
	json_t *o = json_object();

	for (size_t i = 0; i < ARRAY_LEN(info_keys); i++) {
		const uint8_t *at = (const uint8_t *)pi + info_keys[i].offset;
		uint32_t u32 = 0;
		uint16_t u16 = 0;

		if (info_keys[i].size == 1) {
			u32 = *at;
		} else if (info_keys[i].size == 2) {
			memcpy(&u16, at, sizeof(u16));
			u32 = u16;
		} else {
			memcpy(&u32, at, sizeof(u32));
		}
		render_int(o, info_keys[i].name, u32);
	}
	return o;
}

static bool is_switch_port0(const struct physp *p)
{
	return p->num == 0 && node_is_switch(p->node);
}

/* What a port says while its link is up; else the fields mean nothing (C14-24-2.1). */
static bool is_up(const struct physp *p)
{
	return p->info_full && physp_state(p) > IB_DOWN && !is_switch_port0(p);
}

enum health render_fabric_health(const struct physp *p, char why[128])
{
	uint8_t state = physp_state(p);

	why[0] = '\0';
	if (!physp_is_healthy(p)) {
		(void)snprintf(why, 128, "marked bad");
		return HEALTH_BAD;
	}
	if (is_switch_port0(p))
		return p->info_full ? HEALTH_OK : HEALTH_UNKNOWN;
	if (!state) {
		(void)snprintf(why, 128, "not read");
		return HEALTH_UNKNOWN;
	}
	if (state == IB_DOWN)
		return HEALTH_UNUSED;
	if (state < IB_ACTIVE) {
		(void)snprintf(why, 128, "state %s", link_state_name(state));
		return HEALTH_BAD;
	}
	return physp_is_degraded(p, why) ? HEALTH_DEGRADED : HEALTH_OK;
}

static void set_active(json_t *o, const struct physp *p)
{
	enum link_speed speed = is_up(p) ? physp_speed(p) : SPEED_UNKNOWN;
	uint8_t width = is_up(p) ? p->info.width_active : 0;
	char buf[24];

	render_text(o, "width_active", width ? link_width_text(width, buf) : NULL);
	render_text(o, "speed_active", speed ? link_speed_name(speed) : NULL);
	int_or_null(o, "rate_mbps", link_rate_mbps(width, speed));
}

static void set_can(json_t *o, const struct physp *p)
{
	const struct port_info *pi = &p->info;
	bool known = p->info_full;
	uint32_t enabled = link_speeds_from_portinfo(pi->speed_enabled, pi->ext_enabled,
						     pi->ext_enabled2);
	uint32_t supported = link_speeds_from_portinfo(
		pi->speed_supported, pi->ext_supported, pi->ext_supported2);
	char buf[96];

	render_text(o, "width_enabled",
		    known && pi->width_enabled
			    ? link_widths_text(pi->width_enabled, buf)
			    : NULL);
	render_text(o, "width_supported",
		    known && pi->width_supported
			    ? link_widths_text(pi->width_supported, buf)
			    : NULL);
	render_text(o, "speed_enabled",
		    known && enabled ? link_speeds_text(enabled, buf) : NULL);
	render_text(o, "speed_supported",
		    known && supported ? link_speeds_text(supported, buf) : NULL);
}

static void set_link(json_t *o, const struct physp *p)
{
	bool linked = physp_has_link(p) && is_up(p);

	int_or_null(o, "link_mtu", linked ? link_mtu_bytes(physp_link_mtu(p)) : 0);
	int_or_null(o, "link_vls", linked ? link_vls(physp_link_vls(p, 0)) : 0);
}

json_t *render_fabric_physp(const struct physp *p)
{
	json_t *o = json_object();
	uint16_t lid = physp_base_lid(p);
	char why[128];
	enum health health = render_fabric_health(p, why);

	render_int(o, "port", p->num);
	hex(o, "port_guid", physp_guid(p), 16);
	int_or_null(o, "lid", lid);
	if (lid)
		render_int(o, "lmc", physp_lmc(p));
	else
		render_set(o, "lmc", json_null());
	render_text(o, "state", link_state_name(physp_state(p)));
	render_text(o, "physical_state", link_phys_state_name(p->info.phys_state));
	set_active(o, p);
	set_can(o, p);
	set_link(o, p);
	render_text(o, "health", enum_name(&health_names, (int)health));
	text_or_null(o, "why", why);
	render_set(o, "remote",
		   physp_has_link(p) ? render_fabric_end(physp_remote(p))
				     : json_null());
	render_set(o, "info", info_object(&p->info));
	return o;
}

/* ---- nodes ---- */

static json_t *node_flags(uint8_t flags)
{
	static const struct {
		enum node_flag flag;
		const char *name;
	} names[] = {
		{NODE_DUPLICATE, "duplicate"},
		{NODE_SUSPECT, "suspect"},
		{NODE_PROTECTED, "protected"},
	};
	json_t *a = json_array();

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (flags & names[i].flag)
			(void)json_array_append_new(a, json_string(names[i].name));
	return a;
}

static json_t *node_ports(const struct ib_node *n)
{
	json_t *a = json_array();

	for (unsigned i = 0; i <= n->info.num_ports; i++) {
		const struct physp *p = node_physp(n, i);

		if (p)
			(void)json_array_append_new(a, render_fabric_physp(p));
	}
	return a;
}

json_t *render_fabric_node(const struct ib_node *n, uint8_t level,
			   const struct render_time *t)
{
	const struct physp *main_port = node_main_port(n);
	uint16_t lid = main_port ? physp_base_lid(main_port) : 0;
	json_t *o = json_object();
	uint8_t hops = 0;
	const uint8_t *path = main_port ? physp_path(main_port, &hops) : NULL;

	hex(o, "node_guid", n->info.node_guid, 16);
	hex(o, "sys_image_guid", n->info.sys_guid, 16);
	hex(o, "port_guid", main_port ? physp_guid(main_port) : n->info.port_guid, 16);
	render_text(o, "node_type", node_type_name(n->info.node_type));
	text_or_null(o, "node_desc", n->desc_known ? n->desc : "");
	render_int(o, "num_ports", n->info.num_ports);
	hex(o, "vendor_id", n->info.vendor_id, 6);
	hex(o, "device_id", n->info.device_id, 4);
	int_or_null(o, "lid", lid);
	render_set(o, "lmc", lid ? json_integer(physp_lmc(main_port)) : json_null());
	render_set(o, "level",
		   level != LEVEL_NONE && node_is_switch(n) ? json_integer(level)
							    : json_null());
	render_set(o, "path", path ? path_array(path, hops) : json_array());
	render_set(o, "enhanced_port0",
		   n->sw_known && node_is_switch(n) ? json_boolean(n->sw.enhanced_port0)
						    : json_null());
	render_set(o, "flags", node_flags(n->flags));
	render_set(o, "ports", node_ports(n));
	render_age(o, "age_sec", n->read_at, t);
	return o;
}

/* ---- links ---- */

/* Of the two ends one lists the link: the lower GUID, of one node the lower port. */
static bool lists_link(const struct physp *a, const struct physp *b)
{
	uint64_t x = a->node->info.node_guid, y = b->node->info.node_guid;

	return x != y ? x < y : a->num <= b->num;
}

json_t *render_fabric_link(const struct physp *p)
{
	const struct physp *r = physp_remote(p);
	char why[128], buf[24];
	enum link_speed speed;
	enum health health;
	uint8_t width;
	json_t *o;

	if (!physp_has_link(p) || !lists_link(p, r))
		return NULL;
	o = json_object();
	health = render_fabric_health(p, why);
	if (health == HEALTH_OK)
		health = render_fabric_health(r, why);
	speed = is_up(p) ? physp_speed(p) : SPEED_UNKNOWN;
	width = is_up(p) ? p->info.width_active : 0;
	render_set(o, "a", render_fabric_end(p));
	render_set(o, "b", render_fabric_end(r));
	render_text(o, "width", width ? link_width_text(width, buf) : NULL);
	render_text(o, "speed", speed ? link_speed_name(speed) : NULL);
	int_or_null(o, "rate_mbps", link_rate_mbps(width, speed));
	set_link(o, p);
	render_text(o, "health", enum_name(&health_names, (int)health));
	text_or_null(o, "why", why);
	return o;
}

/* ---- sweeps ---- */

static const char *attr_name(uint16_t attr)
{
	switch (attr) {
	case SWEEP_NODE_DESC:
		return "NodeDescription";
	case SWEEP_NODE_INFO:
		return "NodeInfo";
	case SWEEP_SWITCH_INFO:
		return "SwitchInfo";
	case SWEEP_PORT_INFO:
		return "PortInfo";
	case SWEEP_PKEYS:
		return "P_KeyTable";
	case SWEEP_SLVL:
		return "SLtoVLMappingTable";
	case SWEEP_VLARB:
		return "VLArbitrationTable";
	default:
		return NULL;
	}
}

json_t *render_sweep_error(const struct sweep_error *e, const struct render_time *t)
{
	json_t *o = json_object();

	render_text(o, "problem", enum_name(&sweep_problem_names, (int)e->problem));
	if (e->node_guid)
		hex(o, "node_guid", e->node_guid, 16);
	else
		render_set(o, "node_guid", json_null());
	text_or_null(o, "node_desc", e->desc);
	int_or_null(o, "port", e->port);
	render_text(o, "attribute", attr_name(e->attr));
	render_set(o, "path", path_array(e->path, e->hops));
	render_text(o, "why", e->why);
	render_since(o, e->at, t);
	return o;
}

json_t *render_sweep(const struct sweep_result *r, const struct subnet_counts *c,
		     int errors, size_t bytes, const struct render_time *t)
{
	struct mono end = mono_is_set(r->ended) ? r->ended : t->now;
	json_t *o = json_object();

	render_text(o, "kind", enum_name(&sweep_kind_names, (int)r->kind));
	render_int(o, "number", r->number);
	render_instant(o, "began", mono_is_set(r->began) ? r->began : t->now, t);
	render_seconds(o, "age_sec",
		       mono_is_set(r->began) ? mono_sub(t->now, r->began) : 0);
	render_set(o, "sec",
		   json_real(mono_is_set(r->began)
				     ? (double)mono_sub(end, r->began) / 1e9
				     : 0.0));
	render_int(o, "mads", r->mads);
	render_int(o, "answers", r->answers);
	render_int(o, "timeouts", r->timeouts);
	render_int(o, "nodes", c->nodes);
	render_int(o, "switches", c->switches);
	render_int(o, "ports", c->ports);
	render_int(o, "links", c->links);
	render_int(o, "errors", (uint64_t)errors);
	render_int(o, "changed", r->changed);
	render_int(o, "bytes", bytes);
	render_set(o, "bytes_per_port",
		   json_real(c->ports ? (double)bytes / c->ports : 0.0));
	render_int(o, "window", r->window_worst);
	return o;
}

/* ---- tables ---- */

json_t *render_sl2vl(const struct physp *p)
{
	json_t *a = NULL;
	unsigned n = node_is_switch(p->node) ? p->node->info.num_ports + 1u : 1;

	for (unsigned in = 0; in < n; in++) {
		const struct slvl *t = physp_get_slvl(p, in);
		json_t *vls;

		if (!t)
			continue;
		vls = json_array();
		for (int sl = 0; sl < IB_SLS; sl++)
			(void)json_array_append_new(vls, json_integer(t->vl[sl]));
		if (!a)
			a = json_array();
		(void)json_array_append_new(
			a, json_pack("{s:i, s:o}", "in_port", (int)in, "vls", vls));
	}
	return a;
}

/* Entries of weight 0 are skipped by the port (IBA 14.2.5.9). */
static json_t *vlarb_list(const struct physp *p, unsigned first, unsigned cap)
{
	json_t *a = json_array();

	for (unsigned i = 0; i < cap; i++) {
		const struct vlarb_block *b =
			physp_get_vlarb(p, first + i / IB_VLARB_EACH);
		unsigned k = i % IB_VLARB_EACH;

		if (b)
			(void)json_array_append_new(a, json_pack("{s:i, s:i}", "vl",
								 b->e[k].vl, "weight",
								 b->e[k].weight));
	}
	return a;
}

json_t *render_vlarb(const struct physp *p)
{
	bool any = false;

	for (unsigned b = 1; b <= 4; b++)
		any |= physp_get_vlarb(p, b) != NULL;
	if (!any)
		return NULL;
	return json_pack("{s:o, s:o}", "low", vlarb_list(p, 1, p->info.vl_arb_low_cap),
			 "high", vlarb_list(p, 3, p->info.vl_arb_high_cap));
}

static json_t *pkey_list(const struct physp *p)
{
	json_t *a;
	unsigned used = 0, room;
	char buf[8];

	if (!p->pkeys)
		return json_null();
	room = MIN((unsigned)p->pkeys->capacity,
		   p->pkeys->n_blocks * (unsigned)IB_PKEYS_EACH);
	for (unsigned i = 0; i < room; i++)
		if (p->pkeys->blocks[i / IB_PKEYS_EACH].pkey[i % IB_PKEYS_EACH])
			used = i + 1;
	a = json_array();
	for (unsigned i = 0; i < used; i++) {
		(void)snprintf(
			buf, sizeof(buf), "0x%04x",
			p->pkeys->blocks[i / IB_PKEYS_EACH].pkey[i % IB_PKEYS_EACH]);
		(void)json_array_append_new(a, json_string(buf));
	}
	return a;
}

static json_t *counter_map(const struct counter_reading *r)
{
	json_t *o;

	if (!r)
		return json_null();
	o = json_object();
	for (int c = 0; c < CTR__MAX; c++)
		if (!r->why[c])
			render_int(o, counter_rows[c].name,
				   r->value[c] * counter_rows[c].scale);
	return o;
}

json_t *render_fabric_port(const struct physp *p, const struct counter_reading *r)
{
	const struct ib_node *n = p->node;
	json_t *o = json_object(), *slvl = render_sl2vl(p), *vlarb = render_vlarb(p);
	char name[96];

	if (n->desc_known && n->desc[0])
		(void)snprintf(name, sizeof(name), "%s/%u", n->desc, p->num);
	else
		(void)snprintf(name, sizeof(name), "0x%016llx/%u",
			       (unsigned long long)n->info.node_guid, p->num);
	render_text(o, "name", name);
	render_set(o, "node", render_fabric_end(p));
	render_set(o, "port", render_fabric_physp(p));
	render_set(o, "pkeys", pkey_list(p));
	render_set(o, "sl2vl", slvl ? slvl : json_null());
	render_set(o, "vlarb", vlarb ? vlarb : json_null());
	render_set(o, "counters", counter_map(r));
	render_set(o, "unavailable", json_object());
	return o;
}
