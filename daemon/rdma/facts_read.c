/* SPDX-License-Identifier: BSD-2-Clause */
#include <endian.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "facts.h"

#define GIDS_ROOM 8192 /* entries of all ports together */

/* Speeds of XDR and up do not fit the old 8-bit field; later headers have a wider one.
 */
static uint32_t active_speed(const struct ibv_port_attr *a)
{
#ifdef HAVE_ACTIVE_SPEED_EX
	return a->active_speed_ex ? a->active_speed_ex : a->active_speed;
#else
	return a->active_speed;
#endif
}

static const char *node_type(enum ibv_node_type t)
{
	switch (t) {
	case IBV_NODE_CA:
		return "ca";
	case IBV_NODE_SWITCH:
		return "switch";
	case IBV_NODE_ROUTER:
		return "router";
	case IBV_NODE_RNIC:
		return "rnic";
	default:
		return "unknown";
	}
}

static const char *transport_type(enum ibv_transport_type t)
{
	return t == IBV_TRANSPORT_IB	  ? "infiniband"
	       : t == IBV_TRANSPORT_IWARP ? "iwarp"
					  : "unspecified";
}

static void set_number(struct device_facts *d, int field, uint64_t v)
{
	(void)field_set_u64(&device_table, d, field, v);
}

static void set_text(struct device_facts *d, int field, const char *raw, size_t n)
{
	char buf[128];

	text_clean(buf, sizeof(buf), raw, n);
	if (buf[0])
		(void)field_set_text(&device_table, d, field, buf);
	else
		(void)field_set_missing(&device_table, d, field, WHY_NOT_SUPPORTED);
}

void facts_read_device(struct facts *f, struct wm_device *ret)
{
	struct device_facts *d = &ret->facts;
	char name[DEVICE_NAME_MAX], path[PATH_MAX], desc[65];
	struct ibv_device_attr a;
	int r;

	memset(ret, 0, sizeof(*ret));
	wm_header(ret, WM_DEVICE, sizeof(*ret), f->w->generation);
	ret->device_index = f->w->device_index;
	ret->has_verbs = 1;
	(void)str_copy(ret->name, sizeof(ret->name), f->w->device);
	field_all_missing(&device_table, d, WHY_NOT_READ);
	set_text(d, DF_NODE_TYPE, node_type(f->verbs->device->node_type), 16);
	set_text(d, DF_TRANSPORT, transport_type(f->verbs->device->transport_type), 16);
	sysfs_device_name(f->w, name);
	(void)snprintf(path, sizeof(path), "/sys/class/infiniband/%s/node_desc", name);
	if (!sysfs_read(path, desc, sizeof(desc)))
		set_text(d, DF_NODE_DESC, desc, sizeof(desc));
	else
		(void)field_set_missing(&device_table, d, DF_NODE_DESC, WHY_UNREADABLE);
	sysfs_read_pci(name, d);
	busy_enter(&f->w->facts_busy, "ibv_query_device", false);
	r = ibv_query_device(f->verbs, &a);
	busy_leave(&f->w->facts_busy);
	if (r) {
		for (int i = 0; i < DF__MAX; i++)
			if (field_why(&device_table, d, i) == WHY_NOT_READ)
				(void)field_set_missing(&device_table, d, i,
							WHY_UNREADABLE);
		return;
	}
	set_number(d, DF_NODE_GUID, be64toh(a.node_guid));
	set_number(d, DF_SYS_IMAGE_GUID, be64toh(a.sys_image_guid));
	set_text(d, DF_FW, a.fw_ver, sizeof(a.fw_ver));
	set_number(d, DF_VENDOR_ID, a.vendor_id);
	set_number(d, DF_PART_ID, a.vendor_part_id);
	set_number(d, DF_HW_VER, a.hw_ver);
	set_number(d, DF_NUM_PORTS, a.phys_port_cnt);
}

static void read_netdev(struct facts *f, int num, struct wm_port *ret)
{
	busy_enter(&f->w->facts_busy, "port over netlink", false);
	if (netdev_of_port(f->w->device_index, (uint32_t)num, &ret->netdev_index,
			   ret->netdev))
		ret->missing |= 1u << WMP_NETDEV;
	busy_leave(&f->w->facts_busy);
}

static void read_guid(struct facts *f, int num, struct wm_port *ret)
{
	union ibv_gid gid;
	int r;

	busy_enter(&f->w->facts_busy, "ibv_query_gid", false);
	r = ibv_query_gid(f->verbs, (uint8_t)num, 0, &gid);
	busy_leave(&f->w->facts_busy);
	if (!r)
		ret->port_guid = be64toh(gid.global.interface_id);
	else
		ret->missing |= 1u << WMP_GUID;
}

void facts_read_port(struct facts *f, int num, struct wm_port *ret)
{
	struct ibv_port_attr a;
	int r;

	memset(ret, 0, sizeof(*ret));
	wm_header(ret, WM_PORT, sizeof(*ret), f->w->generation);
	(void)str_copy(ret->device, sizeof(ret->device), f->w->device);
	ret->device_index = f->w->device_index;
	ret->port = (uint8_t)num;
	ret->has_verbs = 1;
	memset(&a, 0, sizeof(a));
	busy_enter(&f->w->facts_busy, "ibv_query_port", false);
	r = ibv_query_port(f->verbs, (uint8_t)num, &a);
	busy_leave(&f->w->facts_busy);
	if (r) {
		ret->missing = (1u << WMP__MAX) - 1;
		ret->missing_why = r == EACCES ? WHY_NO_PERMISSION : WHY_UNREADABLE;
		return;
	}
	ret->link_layer = a.link_layer <= IBV_LINK_LAYER_ETHERNET ? a.link_layer : 0;
	if (f->iwarp && ret->link_layer == 0)
		ret->link_layer = IBV_LINK_LAYER_ETHERNET;
	ret->state = (uint8_t)a.state;
	ret->phys_state = a.phys_state;
	ret->max_mtu = (uint8_t)a.max_mtu;
	ret->active_mtu = (uint8_t)a.active_mtu;
	ret->width = a.active_width;
	ret->speed = active_speed(&a);
	ret->cap_mask = a.port_cap_flags;
	ret->vl_code = a.max_vl_num;
	read_guid(f, num, ret);
	read_netdev(f, num, ret);
	if (ret->link_layer == IBV_LINK_LAYER_INFINIBAND) {
		ret->lid = a.lid;
		ret->lmc = a.lmc & 7;
		ret->sm_lid = a.sm_lid;
		ret->sm_sl = a.sm_sl & 15;
	} else {
		ret->missing |= 1u << WMP_LID | 1u << WMP_SM;
	}
	if (ret->missing)
		ret->missing_why = ret->link_layer == IBV_LINK_LAYER_INFINIBAND
					   ? WHY_NO_NETDEV
					   : WHY_NOT_INFINIBAND;
}

static uint8_t gid_type(uint32_t type)
{
	return type == IBV_GID_TYPE_IB	      ? 0
	       : type == IBV_GID_TYPE_ROCE_V1 ? 1
	       : type == IBV_GID_TYPE_ROCE_V2 ? 2
					      : 255;
}

/* One call gives the valid entries of all ports. */
enum unavailable facts_read_gids(struct facts *f, int num, struct port_gid **ret,
				 int *ret_n)
{
	_cleanup_(freep) struct ibv_gid_entry *table = NULL;
	size_t room = MIN(PORT_GIDS_MAX * (size_t)f->n_ports, (size_t)GIDS_ROOM);
	struct port_gid *g;
	ssize_t n;

	*ret = NULL;
	*ret_n = 0;
	table = xcalloc(room, sizeof(*table));
	busy_enter(&f->w->facts_busy, "ibv_query_gid_table", false);
	n = ibv_query_gid_table(f->verbs, table, room, 0);
	busy_leave(&f->w->facts_busy);
	if (n < 0)
		return n == -EOPNOTSUPP ? WHY_NOT_SUPPORTED : WHY_UNREADABLE;
	g = xcalloc((size_t)n + 1, sizeof(*g));
	for (ssize_t i = 0; i < n && *ret_n < PORT_GIDS_MAX; i++) {
		if (table[i].port_num != (uint32_t)num)
			continue;
		g[*ret_n].index = (uint16_t)table[i].gid_index;
		g[*ret_n].type = gid_type(table[i].gid_type);
		g[*ret_n].netdev_index = table[i].ndev_ifindex;
		memcpy(g[*ret_n].gid, table[i].gid.raw, 16);
		(*ret_n)++;
	}
	*ret = g;
	return WHY_NONE;
}

/* From sysfs: the library does the same, but under the name that the device had when it
 * was opened. A table with a hole is told as far as the hole. */
enum unavailable facts_read_pkeys(struct facts *f, int num, uint16_t **ret, int *ret_n)
{
	char name[DEVICE_NAME_MAX], path[PATH_MAX], buf[16];
	uint16_t *keys;
	int r = 0;

	*ret = NULL;
	*ret_n = 0;
	if (f->iwarp)
		return WHY_NOT_INFINIBAND;
	sysfs_device_name(f->w, name);
	keys = xcalloc(PORT_PKEYS_MAX, sizeof(*keys));
	busy_enter(&f->w->facts_busy, "reading P_Keys", false);
	for (int i = 0; i < PORT_PKEYS_MAX; i++) {
		(void)snprintf(path, sizeof(path),
			       "/sys/class/infiniband/%s/ports/%d/pkeys/%d", name, num,
			       i);
		r = sysfs_read(path, buf, sizeof(buf));
		if (r < 0)
			break;
		keys[(*ret_n)++] = (uint16_t)strtoul(buf, NULL, 16);
	}
	busy_leave(&f->w->facts_busy);
	*ret = keys;
	if (*ret_n)
		return WHY_NONE;
	return r == -ENOENT ? WHY_NOT_SUPPORTED : WHY_UNREADABLE;
}
