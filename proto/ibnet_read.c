/* SPDX-License-Identifier: BSD-2-Clause */
/* The reader: lines become records of nodes and ports. */
#include "ibnet_internal.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define LINE_MAX_LEN 1024
/* Where ibsim begins to count, for nodes without a GUID of their own. */
#define IBSIM_CA_GUID	  0x100000
#define IBSIM_SWITCH_GUID 0x200000
/* Those of a node's ports are counted from its own, and 0 is none. */
#define GUID_MAX (UINT64_MAX - UINT8_MAX)

int ibnet_bad(struct ibnet_reader *r, int line, const char *fmt, ...)
{
	char text[256];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	(void)snprintf(r->why, r->why_size, "%d: %s", line, text);
	return -EINVAL;
}

/* ---- words of a line ---- */

static void skip_blanks(const char **p)
{
	while (isblank((unsigned char)**p))
		(*p)++;
}

static bool take_text(const char **p, const char *text)
{
	size_t n = strlen(text);

	if (strncmp(*p, text, n))
		return false;
	*p += n;
	return true;
}

static bool take_number(const char **p, int base, uint64_t max, uint64_t *ret)
{
	char *end;

	if (!isxdigit((unsigned char)**p))
		return false;
	errno = 0;
	*ret = strtoull(*p, &end, base);
	if (errno || end == *p || *ret > max)
		return false;
	*p = end;
	return true;
}

/* "NAME", as it stands in quotes. */
static bool take_name(const char **p, char ret[IBNET_NAME_MAX + 1])
{
	const char *end;

	if (**p != '"')
		return false;
	end = strchr(*p + 1, '"');
	if (!end || end == *p + 1 || end - *p - 1 > IBNET_NAME_MAX)
		return false;
	memcpy(ret, *p + 1, (size_t)(end - *p - 1));
	ret[end - *p - 1] = '\0';
	*p = end + 1;
	return true;
}

/* "[N]", and ibnetdiscover's "[ext N]" for the number on the outside of a chassis. */
static bool take_port(const char **p, uint64_t *ret)
{
	uint64_t ext;

	if (!take_text(p, "[") || !take_number(p, 10, 255, ret) || !take_text(p, "]"))
		return false;
	if (take_text(p, "[ext "))
		return take_number(p, 10, UINT32_MAX, &ext) && take_text(p, "]");
	return true;
}

/* "(GUID)", where there may be none; blanks before it. */
static bool take_guid(const char **p, uint64_t *ret)
{
	skip_blanks(p);
	if (!take_text(p, "("))
		return true;
	return take_number(p, 16, UINT64_MAX, ret) && take_text(p, ")");
}

/* A description may have quotes in it: it ends at the last one of the line. Behind it:
 * *ret_rest. */
static bool take_desc(const char *p, char ret[IBNET_NAME_MAX + 1],
		      const char **ret_rest)
{
	const char *end = strrchr(p, '"');

	skip_blanks(&p);
	if (*p != '"' || end == p)
		return false;
	p++;
	memcpy(ret, p, MIN((size_t)(end - p), IBNET_NAME_MAX));
	ret[MIN((size_t)(end - p), IBNET_NAME_MAX)] = '\0';
	*ret_rest = end + 1;
	return true;
}

static bool take_lid(const char **p, uint16_t *ret)
{
	uint64_t v;

	skip_blanks(p);
	if (!take_text(p, "lid ") || !take_number(p, 10, IB_LID_UNICAST_MAX, &v))
		return false;
	*ret = (uint16_t)v;
	return true;
}

static bool take_lmc(const char **p, uint8_t *ret)
{
	uint64_t v;

	skip_blanks(p);
	if (!take_text(p, "lmc ") || !take_number(p, 10, 7, &v))
		return false;
	*ret = (uint8_t)v;
	return true;
}

/* ---- lines ---- */

/* "4xHDR" */
static bool take_rate(const char **p, struct ibnet_port *port)
{
	/* clang-format off */
	static const struct { const char *name; uint8_t code; } widths[] = {
		{"1x", 1}, {"4x", 2}, {"8x", 4}, {"12x", 8}, {"2x", 16}, {"??", 0},
	};
	static const struct { const char *name; uint8_t speed, ext, ext2; } speeds[] = {
		{"SDR", 1, 0, 0}, {"DDR", 2, 0, 0}, {"QDR", 4, 0, 0}, {"FDR10", 4, 0, 0},
		{"FDR", 4, 1, 0}, {"EDR", 4, 2, 0}, {"HDR", 4, 4, 0}, {"NDR", 4, 8, 0},
		{"XDR", 4, 0, 1}, {"???", 0, 0, 0},
	};
	/* clang-format on */
	bool width = false;

	skip_blanks(p);
	for (size_t i = 0; !width && i < ARRAY_LEN(widths); i++) {
		width = take_text(p, widths[i].name);
		port->width = width ? widths[i].code : 0;
	}
	for (size_t i = 0; width && i < ARRAY_LEN(speeds); i++) {
		if (!take_text(p, speeds[i].name))
			continue;
		port->speed = speeds[i].speed;
		port->ext = speeds[i].ext;
		port->ext2 = speeds[i].ext2;
		return true;
	}
	return false;
}

/* Behind '#': a switch's "desc" lid 5 4xEDR, a CA's with its own "lid 4 lmc 0" first.
 * Anything else is a remark. */
static void read_port_remark(const char *p, bool is_switch, struct ibnet_port *port)
{
	struct ibnet_port got = *port;
	char desc[IBNET_NAME_MAX + 1];
	uint16_t lid;

	if (!is_switch && (!take_lid(&p, &got.lid) || !take_lmc(&p, &got.lmc)))
		return;
	if (take_desc(p, desc, &p) && take_lid(&p, &lid) && take_rate(&p, &got))
		*port = got;
}

static int read_port(struct ibnet_reader *r, const char *p)
{
	struct ibnet_node *n = r->n_nodes ? &r->nodes[r->n_nodes - 1] : NULL;
	struct ibnet_port port = {.line = r->line, .remote_num = 1};
	uint64_t num, remote = 1;

	if (!n)
		return ibnet_bad(r, r->line, "a port before any node");
	if (!take_port(&p, &num) || !take_guid(&p, &port.guid))
		return ibnet_bad(r, r->line, "not a port");
	if (num < 1 || num > n->info.num_ports)
		return ibnet_bad(r, r->line, "port %" PRIu64 " of a node with %d", num,
				 n->info.num_ports);
	skip_blanks(&p);
	if (!take_name(&p, port.remote))
		return ibnet_bad(r, r->line, "no far end, or its name is too long");
	if (*p == '[' && (!take_port(&p, &remote) || remote < 1 || remote > 254))
		return ibnet_bad(r, r->line, "no port of the far end");
	for (size_t i = 0; i < n->n; i++)
		if (r->ports[n->first + i].num == num)
			return ibnet_bad(r, r->line, "port %" PRIu64 " is there twice",
					 num);
	port.num = (uint8_t)num;
	port.remote_num = (uint8_t)remote;
	p = strchr(p, '#');
	if (p)
		read_port_remark(p + 1, n->info.node_type == NODE_SWITCH, &port);
	if (r->n_ports == r->ports_size) {
		r->ports_size = r->ports_size ? r->ports_size * 2 : 64;
		r->ports = xrealloc(r->ports, r->ports_size, sizeof(*r->ports));
	}
	r->ports[r->n_ports++] = port;
	n->n++;
	return 0;
}

/* "switchguid=0x200001(200001)"; "caguid+0x10" counts from the last one with '='. */
static int read_guid(struct ibnet_reader *r, const char *p, uint8_t type)
{
	uint64_t guid;

	if (!take_text(&p, "=") || !take_number(&p, 16, UINT64_MAX, &guid) || !guid)
		return ibnet_bad(r, r->line, "not a GUID");
	r->given.port_guid = 0;
	if (!take_guid(&p, &r->given.port_guid))
		return ibnet_bad(r, r->line, "not a port GUID");
	r->next_guid[type] = guid;
	return 0;
}

static int read_id(struct ibnet_reader *r, const char *p, uint64_t max, uint64_t *ret)
{
	if (!take_text(&p, "=") || !take_number(&p, 16, max, ret))
		return ibnet_bad(r, r->line, "not a number, or too large");
	r->ids_given = true;
	return 0;
}

static void read_node_remark(const char *p, struct ibnet_node *n)
{
	const char *rest;
	uint16_t lid;
	uint8_t lmc;

	if (!take_desc(p, n->desc, &rest) || n->info.node_type != NODE_SWITCH)
		return;
	skip_blanks(&rest);
	n->enhanced = take_text(&rest, "enhanced port 0");
	if ((n->enhanced || take_text(&rest, "base port 0")) && take_lid(&rest, &lid) &&
	    take_lmc(&rest, &lmc)) {
		n->port0_known = true;
		n->lid = lid;
		n->lmc = lmc;
	}
}

static int read_node(struct ibnet_reader *r, const char *p, uint8_t type)
{
	struct ibnet_node n = {.line = r->line, .info = r->given, .first = r->n_ports};
	uint64_t ports;

	skip_blanks(&p);
	if (!take_number(&p, 10, 254, &ports) || !ports)
		return ibnet_bad(r, r->line, "not a number of ports, 1 to 254");
	skip_blanks(&p);
	if (!take_name(&p, n.id))
		return ibnet_bad(r, r->line, "no name, or a name that is too long");
	if (r->n_nodes == IBNET_NODES_MAX)
		return ibnet_bad(r, r->line, "more than %d nodes", IBNET_NODES_MAX);
	(void)str_copy(n.desc, sizeof(n.desc), n.id);
	n.info.node_type = type;
	n.info.num_ports = (uint8_t)ports;
	n.info.base_version = n.info.class_version = 1;
	n.info.partition_cap = 1;
	n.info.node_guid = r->next_guid[type];
	if (n.info.node_guid > GUID_MAX)
		return ibnet_bad(r, r->line, "no GUIDs are left for its ports");
	if (type == NODE_SWITCH && !n.info.port_guid)
		n.info.port_guid = n.info.node_guid;
	if (!r->ids_given)
		n.info.sys_guid = n.info.node_guid;
	r->next_guid[type] += type == NODE_SWITCH ? 1 : ports + 1;
	r->given = (struct node_info){0};
	r->ids_given = false;
	p = strchr(p, '#');
	if (p)
		read_node_remark(p + 1, &n);
	if (r->n_nodes == r->nodes_size) {
		r->nodes_size = r->nodes_size ? r->nodes_size * 2 : 64;
		r->nodes = xrealloc(r->nodes, r->nodes_size, sizeof(*r->nodes));
	}
	r->nodes[r->n_nodes++] = n;
	return 0;
}

static int read_remark(struct ibnet_reader *r, const char *p)
{
	uint64_t node, port;

	if (take_text(&p, "# Initiated from node ") &&
	    take_number(&p, 16, UINT64_MAX, &node) && take_text(&p, " port ") &&
	    take_number(&p, 16, UINT64_MAX, &port)) {
		r->from_guid = node;
		r->from_port_guid = port;
	}
	return 0;
}

static int read_vendor(struct ibnet_reader *r, const char *p)
{
	uint64_t v = 0;
	int e = read_id(r, p, 0xffffff, &v);

	r->given.vendor_id = (uint32_t)v;
	return e;
}

static int read_device(struct ibnet_reader *r, const char *p)
{
	uint64_t v = 0;
	int e = read_id(r, p, 0xffff, &v);

	r->given.device_id = (uint16_t)v;
	return e;
}

static int read_line(struct ibnet_reader *r, const char *p)
{
	/* What the file has that says nothing of the topology. */
	static const char *const idle[] = {
		"width",  "speed",    "extspeed",  "do ",
		"pdebug", "Chassis ", "Hostname:", "Non-Chassis Nodes"};
	static const char *const not_read[] = {"include", "module", "@"};

	if (!*p || *p == '#')
		return read_remark(r, p);
	if (*p == '[')
		return read_port(r, p);
	if (take_text(&p, "vendid"))
		return read_vendor(r, p);
	if (take_text(&p, "devid"))
		return read_device(r, p);
	if (take_text(&p, "sysimgguid"))
		return read_id(r, p, UINT64_MAX, &r->given.sys_guid);
	if (take_text(&p, "switchguid"))
		return read_guid(r, p, NODE_SWITCH);
	if (take_text(&p, "caguid") || take_text(&p, "hcaguids"))
		return read_guid(r, p, NODE_CA);
	if (take_text(&p, "rtguid"))
		return read_guid(r, p, NODE_ROUTER);
	if (take_text(&p, "Switch"))
		return read_node(r, p, NODE_SWITCH);
	if (take_text(&p, "Ca") || take_text(&p, "Hca"))
		return read_node(r, p, NODE_CA);
	if (take_text(&p, "Rt"))
		return read_node(r, p, NODE_ROUTER);
	for (size_t i = 0; i < ARRAY_LEN(idle); i++)
		if (take_text(&p, idle[i]))
			return 0;
	for (size_t i = 0; i < ARRAY_LEN(not_read); i++)
		if (take_text(&p, not_read[i]))
			return ibnet_bad(r, r->line, "%s is not understood",
					 not_read[i]);
	return ibnet_bad(r, r->line, "not a line of a topology file: %.40s", p);
}

static int read_lines(struct ibnet_reader *r, const char *text, size_t len)
{
	char line[LINE_MAX_LEN + 1];

	for (size_t at = 0; at < len;) {
		const char *end = memchr(text + at, '\n', len - at);
		size_t n = end ? (size_t)(end - text) - at : len - at;
		int e;

		r->line++;
		if (n > LINE_MAX_LEN)
			return ibnet_bad(r, r->line, "over %d characters",
					 LINE_MAX_LEN);
		memcpy(line, text + at, n);
		at += n + 1;
		while (n && isspace((unsigned char)line[n - 1]))
			n--;
		line[n] = '\0';
		if (strlen(line) != n)
			return ibnet_bad(r, r->line, "a zero byte");
		e = read_line(r, line);
		if (e)
			return e;
	}
	return r->n_nodes ? 0 : ibnet_bad(r, r->line, "no node in it");
}

int ibnet_read(const char *text, size_t len, struct subnet *ret, char *why,
	       size_t why_size)
{
	struct ibnet_reader r = {
		.why = why,
		.why_size = why_size,
		.next_guid = {[NODE_CA] = IBSIM_CA_GUID,
			      [NODE_SWITCH] = IBSIM_SWITCH_GUID,
			      [NODE_ROUTER] = IBSIM_CA_GUID * 4},
	};
	int e = read_lines(&r, text, len);

	if (!e)
		e = ibnet_build(&r, ret);
	free(r.nodes);
	free(r.ports);
	free(r.by_id);
	return e;
}
