/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * FabricNode objects made a subnet again. The numbers of a PortInfo come from the
 * port's "info", named as the fields of struct port_info; what is not in it is taken
 * from the texts, so that an older or newer fabd is understood as far as its texts go.
 */
#include "render_subnet.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "link.h"

static int bad(char *why, size_t size, const char *fmt, ...) PRINTF_LIKE(3, 4);
static int bad(char *why, size_t size, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(why, size, fmt, ap);
	va_end(ap);
	return -EBADMSG;
}

static const char *text_of(const json_t *o, const char *key)
{
	const char *s = json_string_value(json_object_get(o, key));

	return s ? s : "";
}

/* A number that fits, or @otherwise. */
static uint64_t number_of(const json_t *o, const char *key, uint64_t max,
			  uint64_t otherwise)
{
	json_t *v = json_object_get(o, key);
	json_int_t n = json_integer_value(v);

	return json_is_integer(v) && n >= 0 && (uint64_t)n <= max ? (uint64_t)n
								  : otherwise;
}

/* "0x0002c903..." as text; 0: none. */
static uint64_t hex_of(const json_t *o, const char *key, uint64_t max)
{
	const char *s = text_of(o, key);
	uint64_t v;
	char *end;

	if (strncmp(s, "0x", 2))
		return 0;
	errno = 0;
	v = strtoull(s, &end, 16);
	return errno || *end || v > max ? 0 : v;
}

/* ---- PortInfo ---- */

static uint8_t state_of(const char *name, const char *(*name_of)(uint32_t), uint8_t max)
{
	for (uint8_t i = 1; i <= max; i++)
		if (str_eq(name, name_of(i)))
			return i;
	return 0;
}

/* Width codes of "1x 4x". */
static uint8_t widths_of(const char *text)
{
	static const struct {
		const char *name;
		uint8_t code;
	} widths[] = {{"1x", 1}, {"4x", 2}, {"8x", 4}, {"12x", 8}, {"2x", 16}};
	uint8_t set = 0;

	while (*text) {
		size_t n = strcspn(text, " ");

		for (size_t i = 0; i < ARRAY_LEN(widths); i++)
			if (n == strlen(widths[i].name) &&
			    !strncmp(text, widths[i].name, n))
				set |= widths[i].code;
		text += n + strspn(text + n, " ");
	}
	return set;
}

/* Speed masks of "SDR DDR EDR", each where PortInfo has it. */
static void speeds_of(const char *text, uint8_t *mask, uint8_t *ext, uint8_t *ext2)
{
	static const struct {
		const char *name;
		uint8_t mask, ext, ext2;
	} speeds[] = {{"SDR", 1, 0, 0}, {"DDR", 2, 0, 0}, {"QDR", 4, 0, 0},
		      {"FDR", 0, 1, 0}, {"EDR", 0, 2, 0}, {"HDR", 0, 4, 0},
		      {"NDR", 0, 8, 0}, {"XDR", 0, 0, 1}};

	while (*text) {
		size_t n = strcspn(text, " ");

		for (size_t i = 0; i < ARRAY_LEN(speeds); i++) {
			if (n != 3 || strncmp(text, speeds[i].name, 3))
				continue;
			*mask |= speeds[i].mask;
			*ext |= speeds[i].ext;
			*ext2 |= speeds[i].ext2;
		}
		text += n + strspn(text + n, " ");
	}
}

static uint8_t mtu_code(uint64_t bytes)
{
	for (uint8_t code = 1; code <= 5; code++)
		if (link_mtu_bytes(code) == bytes)
			return code;
	return 0;
}

static uint8_t vls_code(uint64_t vls)
{
	for (uint8_t code = 1; code <= 5; code++)
		if (link_vls(code) == vls)
			return code;
	return 0;
}

static void info_from_texts(const json_t *o, struct port_info *pi)
{
	uint64_t mtu = number_of(o, "link_mtu", UINT32_MAX, 0);
	uint64_t vls = number_of(o, "link_vls", UINT32_MAX, 0);

	pi->width_active = widths_of(text_of(o, "width_active"));
	pi->width_enabled = widths_of(text_of(o, "width_enabled"));
	pi->width_supported = widths_of(text_of(o, "width_supported"));
	speeds_of(text_of(o, "speed_active"), &pi->speed_active, &pi->ext_active,
		  &pi->ext_active2);
	speeds_of(text_of(o, "speed_enabled"), &pi->speed_enabled, &pi->ext_enabled,
		  &pi->ext_enabled2);
	speeds_of(text_of(o, "speed_supported"), &pi->speed_supported,
		  &pi->ext_supported, &pi->ext_supported2);
	if (pi->ext_active || pi->ext_active2) {
		pi->speed_active = 4; /* as hardware says beside an extended speed */
		pi->cap_mask = IB_CAP_EXTENDED_SPEEDS;
	}
	pi->mtu_cap = pi->neighbor_mtu = mtu_code(mtu);
	pi->vl_cap = pi->op_vls = vls_code(vls);
}

static void info_from_numbers(const json_t *info, struct port_info *pi)
{
	/* clang-format off */
#define BYTE(field) { #field, offsetof(struct port_info, field) }
	static const struct {
		const char *key;
		size_t at;
	} bytes[] = {
		BYTE(width_enabled), BYTE(width_supported), BYTE(width_active),
		BYTE(speed_enabled), BYTE(speed_supported), BYTE(speed_active),
		BYTE(ext_enabled), BYTE(ext_supported), BYTE(ext_active),
		BYTE(ext_enabled2), BYTE(ext_supported2), BYTE(ext_active2),
		BYTE(neighbor_mtu), BYTE(mtu_cap), BYTE(vl_cap), BYTE(op_vls),
		BYTE(state), BYTE(phys_state), BYTE(m_key_protect), BYTE(sm_sl),
	};
#undef BYTE
	/* clang-format on */

	for (size_t i = 0; i < ARRAY_LEN(bytes); i++) {
		uint8_t *field = (uint8_t *)pi + bytes[i].at;

		*field = (uint8_t)number_of(info, bytes[i].key, UINT8_MAX, *field);
	}
	pi->cap_mask = (uint32_t)number_of(info, "cap_mask", UINT32_MAX, pi->cap_mask);
	pi->cap_mask2 =
		(uint16_t)number_of(info, "cap_mask2", UINT16_MAX, pi->cap_mask2);
	pi->sm_lid = (uint16_t)number_of(info, "sm_lid", UINT16_MAX, pi->sm_lid);
}

static struct port_info info_of(const json_t *o)
{
	struct port_info pi = {
		.state = state_of(text_of(o, "state"), link_state_name, 5),
		.phys_state =
			state_of(text_of(o, "physical_state"), link_phys_state_name, 7),
		.lid = (uint16_t)number_of(o, "lid", IB_LID_UNICAST_MAX, 0),
		.lmc = (uint8_t)number_of(o, "lmc", 7, 0),
	};

	info_from_texts(o, &pi);
	info_from_numbers(json_object_get(o, "info"), &pi);
	return pi;
}

/* ---- nodes ---- */

static uint8_t type_of(const json_t *node)
{
	const char *type = text_of(node, "node_type");

	return str_eq(type, "ca")	? NODE_CA
	       : str_eq(type, "switch") ? NODE_SWITCH
	       : str_eq(type, "router") ? NODE_ROUTER
					: NODE_UNKNOWN;
}

/* Hops of the route in @path; what is no route is none. */
static uint8_t path_of(const json_t *node, uint8_t path[IB_PATH_LEN])
{
	const json_t *array = json_object_get(node, "path");
	size_t n = json_array_size(array);

	memset(path, 0, IB_PATH_LEN);
	if (n < 1 || n > IB_PATH_LEN)
		return 0;
	for (size_t i = 0; i < n; i++) {
		json_int_t v = json_integer_value(json_array_get(array, i));

		if (v < 0 || v > UINT8_MAX || (i == 0 && v))
			return 0;
		path[i] = (uint8_t)v;
	}
	return (uint8_t)(n - 1);
}

static uint8_t flags_of(const json_t *node)
{
	static const char *const names[] = {"duplicate", "suspect", "protected"};
	const json_t *flags = json_object_get(node, "flags"), *v;
	uint8_t set = 0;
	size_t i;

	json_array_foreach (flags, i, v)
		for (size_t k = 0; k < ARRAY_LEN(names); k++)
			if (str_eq(json_string_value(v), names[k]))
				set |= (uint8_t)(1u << k);
	return set;
}

/* A switch has all its ports at once, a CA's come with the NodeInfo that each gave. */
static struct ib_node *node_with(struct subnet *s, const json_t *node,
				 const struct node_info *ni)
{
	uint8_t path[IB_PATH_LEN], hops = path_of(node, path);
	bool is_new;

	return subnet_node(s, ni, hops, path, &is_new);
}

/* A port that is down has what is known from when it was up. */
static void set_info(struct physp *p, const struct port_info *pi)
{
	struct port_info up = *pi;

	if (pi->state == IB_DOWN && (pi->width_active || pi->lid)) {
		up.state = IB_INIT;
		physp_set_info(p, &up);
	}
	physp_set_info(p, pi);
}

static int add_port(struct subnet *s, const json_t *node, struct node_info ni,
		    const json_t *o, char *why, size_t why_size)
{
	uint64_t num = number_of(o, "port", ni.num_ports, UINT64_MAX);
	uint64_t guid = hex_of(o, "port_guid", UINT64_MAX);
	bool is_switch = ni.node_type == NODE_SWITCH;
	struct port_info pi = info_of(o);
	struct ib_node *n;
	struct physp *p;
	struct ib_port *port;

	if (num == UINT64_MAX || (!is_switch && (num == 0 || !guid)))
		return bad(why, why_size, "a port of node %s has no number or no GUID",
			   text_of(node, "node_guid"));
	if (!is_switch) {
		ni.local_port = (uint8_t)num;
		ni.port_guid = guid;
	}
	n = node_with(s, node, &ni);
	p = node_physp(n, (unsigned)num);
	pi.local_port = (uint8_t)num;
	if (is_switch && num)
		pi.lid = pi.lmc = 0;
	/* A fact with no numbers behind it. */
	if (is_switch && num && pi.cap_mask & IB_CAP_EXTENDED_SPEEDS &&
	    !json_object_get(o, "info"))
		n->slots[0].info.cap_mask |= IB_CAP_EXTENDED_SPEEDS;
	set_info(p, &pi);
	if (is_switch && num)
		return 0;
	port = subnet_port(s, p);
	if (port)
		(void)subnet_lids_changed(s, port);
	return 0;
}

int subnet_json_node(struct subnet *s, const json_t *node, char *why, size_t why_size)
{
	const json_t *ports = json_object_get(node, "ports"), *o;
	struct node_info ni = {
		.base_version = 1,
		.class_version = 1,
		.partition_cap = 1,
		.node_type = type_of(node),
		.num_ports = (uint8_t)number_of(node, "num_ports", 254, 0),
		.node_guid = hex_of(node, "node_guid", UINT64_MAX),
		.port_guid = hex_of(node, "port_guid", UINT64_MAX),
		.sys_guid = hex_of(node, "sys_image_guid", UINT64_MAX),
		.vendor_id = (uint32_t)hex_of(node, "vendor_id", 0xffffff),
		.device_id = (uint16_t)hex_of(node, "device_id", 0xffff),
	};
	struct ib_node *n;
	size_t i;

	if (!ni.node_guid || ni.node_type == NODE_UNKNOWN || !ni.num_ports)
		return bad(why, why_size,
			   "node %s has no GUID, type or number of ports",
			   text_of(node, "node_guid"));
	if (subnet_node_by_guid(s, ni.node_guid))
		return bad(why, why_size, "node %s is there twice",
			   text_of(node, "node_guid"));
	if (ni.node_type == NODE_SWITCH && !ni.port_guid)
		ni.port_guid = ni.node_guid;
	n = node_with(s, node, &ni);
	(void)str_copy(n->desc, sizeof(n->desc), text_of(node, "node_desc"));
	n->desc_known = *n->desc;
	n->sw_known = json_is_boolean(json_object_get(node, "enhanced_port0"));
	n->sw.enhanced_port0 = json_is_true(json_object_get(node, "enhanced_port0"));
	n->flags = flags_of(node);
	json_array_foreach (ports, i, o) {
		int e = add_port(s, node, ni, o, why, why_size);

		if (e)
			return e;
	}
	n->info.port_guid = ni.port_guid;
	return 0;
}

/* ---- links ---- */

static struct physp *end_of(const struct subnet *s, const json_t *guid_of,
			    const json_t *port)
{
	const struct ib_node *n =
		subnet_node_by_guid(s, hex_of(guid_of, "node_guid", UINT64_MAX));

	return n ? node_physp(n,
			      (unsigned)number_of(port, "port", UINT8_MAX, UINT8_MAX))
		 : NULL;
}

void subnet_json_link(struct subnet *s, const json_t *nodes)
{
	const json_t *node, *port;
	size_t i, k;

	json_array_foreach (nodes, i, node)
		json_array_foreach (json_object_get(node, "ports"), k, port) {
			const json_t *remote = json_object_get(port, "remote");
			struct physp *a = end_of(s, node, port);
			struct physp *b = end_of(s, remote, remote);

			if (a && b && !physp_has_link(a) && !physp_has_link(b))
				physp_link(a, b);
		}
}
