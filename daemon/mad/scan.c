/* SPDX-License-Identifier: BSD-2-Clause */
/* A simulator's preload library catches open(), read() and opendir() by their plain
 * names only; with 64-bit offsets, which these small files do not need, the compiler
 * would call open64(). */
#undef _FILE_OFFSET_BITS
#include "scan.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define CLASS_MAD	"/sys/class/infiniband_mad"
#define CLASS_IB	"/sys/class/infiniband"
#define CAP_SM_DISABLED (UINT32_C(1) << 10)
#define LINE_LEN	256

/* First line of a file, cleaned. 0, or -errno. */
static int read_line(char line[LINE_LEN], const char *fmt, ...) PRINTF_LIKE(2, 3);
static int read_line(char line[LINE_LEN], const char *fmt, ...)
{
	char path[512], raw[LINE_LEN];
	ssize_t n;
	va_list ap;
	int fd;

	va_start(ap, fmt);
	(void)vsnprintf(path, sizeof(path), fmt, ap);
	va_end(ap);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	n = read(fd, raw, sizeof(raw) - 1);
	if (n < 0)
		n = errno ? -errno : -EIO;
	(void)close(fd);
	if (n < 0)
		return (int)n;
	raw[n] = '\0';
	raw[strcspn(raw, "\n")] = '\0';
	text_clean(line, LINE_LEN, raw, strlen(raw));
	return 0;
}

/* A number at the start of the line ("4: ACTIVE" is 4). */
static int parse_number(const char *line, int base, uint64_t max, uint64_t *ret)
{
	unsigned long long v;
	char *end;

	errno = 0;
	v = strtoull(line, &end, base);
	if (errno || end == line || line[0] == '-' || v > max)
		return -EINVAL;
	*ret = v;
	return 0;
}

/* "fe80:0000:...": @n groups of four hexadecimal digits. */
static int parse_groups(const char *line, int n, uint8_t *ret)
{
	for (int i = 0; i < n; i++) {
		uint64_t v;

		if (strspn(line, "0123456789abcdefABCDEF") != 4 ||
		    parse_number(line, 16, UINT16_MAX, &v))
			return -EINVAL;
		be16_put(ret + 2 * i, (uint16_t)v);
		line += 4;
		if (*line++ != (i + 1 < n ? ':' : '\0'))
			return -EINVAL;
	}
	return 0;
}

/* ---- what there is ---- */

static int compare_ids(const void *a, const void *b)
{
	const struct scan_id *x = a, *y = b;
	int c = strcmp(x->device, y->device);

	return c ? c : x->port - y->port;
}

static bool read_id(const char *root, const char *node, struct scan_id *ret)
{
	char line[LINE_LEN];
	uint64_t port;

	*ret = (struct scan_id){0};
	if (read_line(line, "%s" CLASS_MAD "/%.32s/ibdev", root, node) || !line[0] ||
	    strchr(line, '/') || !str_copy(ret->device, sizeof(ret->device), line))
		return false;
	if (read_line(line, "%s" CLASS_MAD "/%.32s/port", root, node) ||
	    parse_number(line, 10, 254, &port) || !port)
		return false;
	ret->port = (uint8_t)port;
	return true;
}

int scan_ports(const char *root, struct scan_id ret[SCAN_PORTS_MAX])
{
	char path[512];
	struct dirent *e;
	int n = 0;
	DIR *d;

	(void)snprintf(path, sizeof(path), "%s" CLASS_MAD, root);
	d = opendir(path);
	if (!d)
		return 0;
	/* The issmN beside them set IsSM when they are opened: never to be touched. */
	while (n < SCAN_PORTS_MAX && (e = readdir(d)))
		if (!strncmp(e->d_name, "umad", 4) && read_id(root, e->d_name, &ret[n]))
			n++;
	(void)closedir(d);
	qsort(ret, (size_t)n, sizeof(*ret), compare_ids);
	return n;
}

/* ---- device ---- */

static enum unavailable why_of(int r)
{
	return r == -EACCES || r == -EPERM ? WHY_NO_PERMISSION : WHY_UNREADABLE;
}

static void device_text(const char *root, const char *device, const char *file,
			struct device_facts *f, int field)
{
	char line[LINE_LEN];
	int r = read_line(line, "%s" CLASS_IB "/%s/%s", root, device, file);

	if (!r)
		(void)field_set_text(&device_table, f, field, line);
	else
		(void)field_set_missing(&device_table, f, field, why_of(r));
}

static void device_guid(const char *root, const char *device, const char *file,
			struct device_facts *f, int field)
{
	char line[LINE_LEN];
	uint8_t guid[8];
	int r = read_line(line, "%s" CLASS_IB "/%s/%s", root, device, file);

	if (!r)
		r = parse_groups(line, 4, guid);
	if (!r)
		(void)field_set_u64(&device_table, f, field, be64_get(guid));
	else
		(void)field_set_missing(&device_table, f, field, why_of(r));
}

static void device_type(const char *root, const char *device, struct device_facts *f)
{
	char line[LINE_LEN];
	uint64_t v;

	if (read_line(line, "%s" CLASS_IB "/%s/node_type", root, device) ||
	    parse_number(line, 10, UINT8_MAX, &v)) {
		(void)field_set_missing(&device_table, f, DF_NODE_TYPE, WHY_UNREADABLE);
		(void)field_set_missing(&device_table, f, DF_TRANSPORT, WHY_UNREADABLE);
		return;
	}
	(void)field_set_text(&device_table, f, DF_NODE_TYPE,
			     node_type_name((uint32_t)v));
	(void)field_set_text(&device_table, f, DF_TRANSPORT,
			     v >= NODE_CA && v <= NODE_ROUTER ? "infiniband"
							      : "unspecified");
}

void scan_device(const char *root, const char *device, struct wm_device *ret)
{
	struct device_facts *f = &ret->facts;
	char line[LINE_LEN];
	uint64_t v;

	memset(ret, 0, sizeof(*ret));
	(void)str_copy(ret->name, sizeof(ret->name), device);
	field_all_missing(&device_table, f, WHY_NO_VERBS);
	device_type(root, device, f);
	device_guid(root, device, "node_guid", f, DF_NODE_GUID);
	device_guid(root, device, "sys_image_guid", f, DF_SYS_IMAGE_GUID);
	device_text(root, device, "fw_ver", f, DF_FW);
	/* A simulator has none; main learns it by MAD. */
	device_text(root, device, "node_desc", f, DF_NODE_DESC);
	if (!read_line(line, "%s" CLASS_IB "/%s/hw_rev", root, device) &&
	    !parse_number(line, 16, UINT32_MAX, &v))
		(void)field_set_u64(&device_table, f, DF_HW_VER, v);
}

/* ---- port ---- */

enum port_file { PORT_U8, PORT_U32, PORT_LINK_LAYER };

/* clang-format off */
#define M(member) offsetof(struct wm_port, member)
static const struct port_row {
	const char *file;
	enum port_file kind;
	int base;
	size_t member;
	uint32_t max;
	enum wm_port_bit bit;
} port_rows[] = {
	{ "state",          PORT_U8,  10, M(state),      15,         WMP_STATE },
	{ "phys_state",     PORT_U8,  10, M(phys_state), 15,         WMP_STATE },
	{ "lid",            PORT_U32, 16, M(lid),        UINT16_MAX, WMP_LID },
	{ "lid_mask_count", PORT_U8,  10, M(lmc),        7,          WMP_LID },
	{ "sm_lid",         PORT_U32, 16, M(sm_lid),     UINT16_MAX, WMP_SM },
	{ "sm_sl",          PORT_U8,  10, M(sm_sl),      15,         WMP_SM },
	{ "cap_mask",       PORT_U32, 16, M(cap_mask),   UINT32_MAX, WMP_CAPS },
};
/* clang-format on */

static void read_row(const char *root, const struct port_row *row, struct wm_port *m)
{
	char line[LINE_LEN];
	uint64_t v;
	int r = read_line(line, "%s" CLASS_IB "/%s/ports/%u/%s", root, m->device,
			  m->port, row->file);

	if (!r)
		r = parse_number(line, row->base, row->max, &v);
	if (r) {
		m->missing |= UINT32_C(1) << row->bit;
		m->missing_why = (uint8_t)why_of(r);
	} else if (row->kind == PORT_U8) {
		((uint8_t *)m)[row->member] = (uint8_t)v;
	} else {
		uint32_t v32 = (uint32_t)v;

		memcpy((uint8_t *)m + row->member, &v32, sizeof(v32));
	}
}

static void read_link_layer(const char *root, struct wm_port *m)
{
	char line[LINE_LEN];
	int r = read_line(line, "%s" CLASS_IB "/%s/ports/%u/link_layer", root,
			  m->device, m->port);

	/* Kernels from before RoCE, and simulators, have no such file. */
	if (r == -ENOENT || (!r && str_eq(line, "InfiniBand")))
		m->link_layer = 1;
	else if (!r && str_eq(line, "Ethernet"))
		m->link_layer = 2;
}

static void read_guid(const char *root, struct wm_port *m)
{
	char line[LINE_LEN];
	uint8_t gid[16];

	if (read_line(line, "%s" CLASS_IB "/%s/ports/%u/gids/0", root, m->device,
		      m->port) ||
	    parse_groups(line, 8, gid)) {
		m->missing |= 1U << WMP_GUID;
		m->missing_why = WHY_UNREADABLE;
		return;
	}
	m->port_guid = be64_get(gid + 8);
}

void scan_port(const char *root, const char *device, uint8_t port, struct wm_port *ret)
{
	memset(ret, 0, sizeof(*ret));
	(void)str_copy(ret->device, sizeof(ret->device), device);
	ret->port = port;
	/* For these sysfs has no file, or one that cannot be trusted (rate). */
	ret->missing = 1U << WMP_MTU | 1U << WMP_WIDTH | 1U << WMP_SPEED |
		       1U << WMP_NETDEV | 1U << WMP_VLS;
	ret->missing_why = WHY_NO_VERBS;
	for (size_t i = 0; i < ARRAY_LEN(port_rows); i++)
		read_row(root, &port_rows[i], ret);
	read_link_layer(root, ret);
	read_guid(root, ret);
	ret->has_smi = ret->link_layer == 1 && !(ret->cap_mask & CAP_SM_DISABLED);
}

int scan_pkeys(const char *root, const char *device, uint8_t port,
	       uint16_t ret[PORT_PKEYS_MAX])
{
	char line[LINE_LEN];
	uint64_t v;
	int n = 0, r = 0;

	for (; n < PORT_PKEYS_MAX; n++) {
		r = read_line(line, "%s" CLASS_IB "/%s/ports/%u/pkeys/%d", root, device,
			      port, n);
		if (!r)
			r = parse_number(line, 16, UINT16_MAX, &v);
		if (r)
			break;
		ret[n] = (uint16_t)v;
	}
	return n || !r ? n : r;
}

static uint8_t gid_type(const char *root, const char *device, uint8_t port, int index,
			uint8_t link_layer)
{
	char line[LINE_LEN];

	if (read_line(line, "%s" CLASS_IB "/%s/ports/%u/gid_attrs/types/%d", root,
		      device, port, index))
		return 0;
	if (str_eq(line, "RoCE v2"))
		return 2;
	/* One word for two kinds. */
	if (str_eq(line, "IB/RoCE v1"))
		return link_layer == 2;
	return UINT8_MAX;
}

int scan_gids(const char *root, const char *device, uint8_t port, uint8_t link_layer,
	      struct port_gid ret[PORT_GIDS_MAX])
{
	static const uint8_t zero[16];
	char line[LINE_LEN];
	int n = 0, r = 0;

	for (int i = 0; i < PORT_GIDS_MAX; i++) {
		struct port_gid g = {.index = (uint16_t)i};

		r = read_line(line, "%s" CLASS_IB "/%s/ports/%u/gids/%d", root, device,
			      port, i);
		if (!r)
			r = parse_groups(line, 8, g.gid);
		if (r)
			return i ? n : r;
		if (!memcmp(g.gid, zero, sizeof(zero)))
			continue;
		g.type = gid_type(root, device, port, i, link_layer);
		ret[n++] = g;
	}
	return n;
}
