/* SPDX-License-Identifier: BSD-2-Clause */
/* fabctl fabric links, nodes, port, route: the subnet piece by piece. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "clean.h"
#include "cli.h"
#include "fields.h"
#include "json_out.h"
#include "physp.h"
#include "units.h"

/* Is it the node that the user named: by description, its short form, or GUID? */
static bool is_named(const json_t *o, const char *word)
{
	const char *desc = get_text(o, "node_desc"), *guid = get_text(o, "node_guid");
	char name[128];

	if (desc && (str_eq(desc, word) ||
		     str_eq(node_desc_short(desc, name, sizeof(name)), word)))
		return true;
	return guid && !strncmp(word, "0x", 2) &&
	       strtoull(guid, NULL, 16) == strtoull(word, NULL, 16);
}

static const char *name_of(const json_t *o, char buf[128])
{
	const char *desc = get_text(o, "node_desc");

	if (!desc || !*desc)
		(void)str_copy(buf, 128, get_shown(o, "node_guid"));
	else
		(void)node_desc_short(desc, buf, 128);
	return buf;
}

/* "200G 4x" */
static char *rate_text(const json_t *o, const char *width_key)
{
	const char *width = get_text(o, width_key);
	int64_t mbps;

	if (!get_int(o, "rate_mbps", &mbps))
		return xstrdup(width ? width : "-");
	return xasprintf("%s%s%s", unit_rate(mbps), width ? " " : "",
			 width ? width : "");
}

/* ---- links ---- */

/* The end whose name comes first is the left one. */
static void link_ends(const json_t *link, char **ret_a, char **ret_b)
{
	char *a = get_end(get_object(link, "a")), *b = get_end(get_object(link, "b"));
	bool turned = str_compare_natural(a, b) > 0;

	*ret_a = turned ? b : a;
	*ret_b = turned ? a : b;
}

static int by_ends(const json_t *x, const json_t *y)
{
	_cleanup_(freep) char *xa = NULL, *xb = NULL, *ya = NULL, *yb = NULL;
	int c;

	link_ends(x, &xa, &xb);
	link_ends(y, &ya, &yb);
	c = str_compare_natural(xa, ya);
	return c ? c : str_compare_natural(xb, yb);
}

static void put_links(const struct cli *c, const json_t *links)
{
	/* clang-format off */
	static const struct column columns[] = {
		{"PORT", false, 16}, {"PORT", false, 16}, {"RATE", false, 0},
		{"SPEED", false, 0}, {"MTU", true, 0}, {"VLS", true, 0},
		{"HEALTH", false, 0}, {"WHY", false, 0},
	};
	/* clang-format on */
	struct table *t = table_new(columns, ARRAY_LEN(columns));
	size_t i;
	json_t *l;

	json_array_foreach (links, i, l) {
		_cleanup_(freep) char *a = NULL, *b = NULL,
				      *rate = rate_text(l, "width");
		const char *health = get_text(l, "health"), *why = get_text(l, "why");
		char mtu[24], vls[24];

		link_ends(l, &a, &b);
		table_cell(t, TINT_NONE, "%s", a);
		table_cell(t, TINT_NONE, "%s", b);
		table_cell(t, TINT_NONE, "%s", rate);
		table_cell(t, TINT_NONE, "%s", get_shown(l, "speed"));
		table_cell(t, TINT_NONE, "%s", get_number(l, "link_mtu", mtu));
		table_cell(t, TINT_NONE, "%s", get_number(l, "link_vls", vls));
		table_cell(t, health_tint(health), "%s", unit_health(health));
		table_cell(t, TINT_NONE, "%s", why ? why : "");
	}
	table_print(t, &c->layout);
	(void)table_free(t);
}

static bool is_well(const json_t *o)
{
	return str_eq(get_text(o, "health"), "ok");
}

int fabric_links(struct cli *c)
{
	const char *word;
	json_t *links;
	size_t total;
	int r = EXIT_OK;

	if (!cli_one_word(c, &word))
		return EXIT_USAGE;
	links = cli_list(c, "io.fabd.ListFabricLinks", NULL, "links");
	if (!links)
		return EXIT_ERROR;
	for (size_t i = json_array_size(links); word && i-- > 0;) {
		const json_t *l = json_array_get(links, i);

		if (!is_named(get_object(l, "a"), word) &&
		    !is_named(get_object(l, "b"), word))
			(void)json_array_remove(links, i);
	}
	total = json_array_size(links);
	for (size_t i = total; c->not_ok && i-- > 0;)
		if (is_well(json_array_get(links, i)))
			(void)json_array_remove(links, i);
	json_sort(links, by_ends);
	if (word && !total)
		r = fabric_no_node(c, "link of a node", word);
	else if (!cli_is_text(c))
		r = json_out(c, links);
	else if (!total)
		fabric_empty(c, "no link is known: see fabctl fabric");
	else if (!json_array_size(links))
		cli_all_are(c, total, "link", "ok");
	else
		put_links(c, links);
	json_decref(links);
	return r;
}

/* ---- nodes ---- */

struct port_counts {
	int up, bad;
};

static struct port_counts count_ports(const json_t *node)
{
	struct port_counts n = {0};
	const json_t *p;
	size_t i;

	json_array_foreach (get_array(node, "ports"), i, p) {
		const char *health = get_text(p, "health");

		if (get_count(p, "port") == 0)
			continue;
		n.up += get_object(p, "remote") != NULL;
		n.bad += str_eq(health, "degraded") || str_eq(health, "bad");
	}
	return n;
}

static bool node_is_well(const json_t *node)
{
	return !json_array_size(get_array(node, "flags")) && !count_ports(node).bad;
}

/* Switches first, the highest level at the top; then by name. */
static int by_level(const json_t *a, const json_t *b)
{
	int64_t x = -1, y = -1;
	char p[128], q[128];

	(void)get_int(a, "level", &x);
	(void)get_int(b, "level", &y);
	if (x != y)
		return x > y ? -1 : 1;
	return str_compare_natural(name_of(a, p), name_of(b, q));
}

static void put_nodes(const struct cli *c, const json_t *nodes)
{
	/* clang-format off */
	static const struct column columns[] = {
		{"NODE", false, 16}, {"TYPE", false, 0}, {"LEVEL", true, 0},
		{"LID", true, 0}, {"LINKS", true, 0}, {"PORTS", true, 0},
		{"NOT OK", true, 0}, {"GUID", false, 0}, {"FLAGS", false, 0},
	};
	/* clang-format on */
	struct table *t = table_new(columns, ARRAY_LEN(columns));
	size_t i;
	json_t *n;

	json_array_foreach (nodes, i, n) {
		_cleanup_(freep) char *flags = get_joined(n, "flags", " ");
		struct port_counts ports = count_ports(n);
		char name[128], level[24], lid[24], num[24];

		table_cell(t, TINT_NONE, "%s", name_of(n, name));
		table_cell(t, TINT_NONE, "%s", get_shown(n, "node_type"));
		table_cell(t, TINT_NONE, "%s", get_number(n, "level", level));
		table_cell(t, TINT_NONE, "%s", get_number(n, "lid", lid));
		table_cell(t, TINT_NONE, "%d", ports.up);
		table_cell(t, TINT_NONE, "%s", get_number(n, "num_ports", num));
		table_cell(t, ports.bad ? TINT_WARN : TINT_NONE, "%d", ports.bad);
		table_cell(t, TINT_NONE, "%s", get_shown(n, "node_guid"));
		table_cell(t, TINT_WARN, "%s", str_eq(flags, "-") ? "" : flags);
	}
	table_print(t, &c->layout);
	(void)table_free(t);
}

static void put_node_ports(const struct cli *c, const json_t *node)
{
	/* clang-format off */
	static const struct column columns[] = {
		{"  PORT", true, 0}, {"LID", true, 0}, {"STATE", false, 0},
		{"PHYS", false, 0}, {"RATE", false, 0}, {"SPEED", false, 0},
		{"REMOTE", false, 16}, {"HEALTH", false, 0}, {"WHY", false, 0},
	};
	/* clang-format on */
	struct table *t = table_new(columns, ARRAY_LEN(columns));
	size_t i;
	json_t *p;

	json_array_foreach (get_array(node, "ports"), i, p) {
		_cleanup_(freep) char *rate = rate_text(p, "width_active");
		_cleanup_(freep) char *remote = get_end(get_object(p, "remote"));
		const char *health = get_text(p, "health"), *why = get_text(p, "why");
		char lid[24];

		table_cell(t, TINT_NONE, "%" PRId64, get_count(p, "port"));
		table_cell(t, TINT_NONE, "%s", get_number(p, "lid", lid));
		table_cell(t, TINT_NONE, "%s", get_shown(p, "state"));
		table_cell(t, TINT_NONE, "%s", get_shown(p, "physical_state"));
		table_cell(t, TINT_NONE, "%s", rate);
		table_cell(t, TINT_NONE, "%s", get_shown(p, "speed_active"));
		table_cell(t, TINT_NONE, "%s", remote);
		table_cell(t, health_tint(health), "%s", unit_health(health));
		table_cell(t, TINT_NONE, "%s", why ? why : "");
	}
	table_print(t, &c->layout);
	(void)table_free(t);
}

static char *joined_numbers(const json_t *array)
{
	char text[512] = "";
	const json_t *v;
	size_t i;

	json_array_foreach (array, i, v)
		str_append(text, sizeof(text), "%s%" JSON_INTEGER_FORMAT, i ? "," : "",
			   json_integer_value(v));
	return xstrdup(*text ? text : "-");
}

static const char *port0_text(const json_t *node)
{
	const json_t *v = json_object_get(node, "enhanced_port0");

	return json_is_true(v)	  ? ", enhanced port 0"
	       : json_is_false(v) ? ", base port 0"
				  : "";
}

static void put_node_block(const struct cli *c, const json_t *n)
{
	_cleanup_(freep) char *flags = get_joined(n, "flags", " ");
	_cleanup_(freep) char *path = joined_numbers(get_array(n, "path"));
	const struct layout *l = &c->layout;
	char name[128], a[24], b[24], d[24];

	(void)fprintf(l->out, "%s\n", name_of(n, name));
	block_line(l, "type", "%s, %s ports%s; level %s", get_shown(n, "node_type"),
		   get_number(n, "num_ports", a), port0_text(n),
		   get_number(n, "level", b));
	block_line(l, "description", "%s", get_shown(n, "node_desc"));
	block_line(l, "guid", "%s; port guid %s; system image %s",
		   get_shown(n, "node_guid"), get_shown(n, "port_guid"),
		   get_shown(n, "sys_image_guid"));
	block_line(l, "hardware", "vendor %s device %s", get_shown(n, "vendor_id"),
		   get_shown(n, "device_id"));
	block_line(l, "lid", "%s; lmc %s", get_number(n, "lid", a),
		   get_number(n, "lmc", d));
	block_line(l, "path", "%s", path);
	block_line(l, "flags", "%s; read %s", flags, unit_ago(get_sec(n, "age_sec")));
	put_node_ports(c, n);
}

static void put_node_blocks(const struct cli *c, const json_t *nodes)
{
	size_t i;
	json_t *n;

	json_array_foreach (nodes, i, n) {
		if (i)
			(void)fputc('\n', c->layout.out);
		put_node_block(c, n);
	}
}

static void keep_nodes(json_t *nodes, const char *word, bool not_ok)
{
	for (size_t i = json_array_size(nodes); i-- > 0;) {
		const json_t *n = json_array_get(nodes, i);

		if ((word && !is_named(n, word)) || (not_ok && node_is_well(n)))
			(void)json_array_remove(nodes, i);
	}
}

int fabric_nodes(struct cli *c)
{
	const char *word;
	json_t *nodes;
	size_t total;
	int r = EXIT_OK;

	if (!cli_one_word(c, &word))
		return EXIT_USAGE;
	nodes = cli_list(c, "io.fabd.ListFabricNodes", NULL, "nodes");
	if (!nodes)
		return EXIT_ERROR;
	keep_nodes(nodes, word, false);
	total = json_array_size(nodes);
	keep_nodes(nodes, NULL, c->not_ok);
	json_sort(nodes, by_level);
	if (word && !total)
		r = fabric_no_node(c, "node", word);
	else if (!cli_is_text(c))
		r = json_out(c, nodes);
	else if (!total)
		fabric_empty(c, "no node is known: see fabctl fabric");
	else if (!json_array_size(nodes))
		cli_all_are(c, total, "node", "ok");
	else if (c->verbose || word)
		put_node_blocks(c, nodes);
	else
		put_nodes(c, nodes);
	json_decref(nodes);
	return r;
}

/* ---- one port ---- */

static void put_port_facts(const struct cli *c, const json_t *p)
{
	_cleanup_(freep) char *remote = get_end(get_object(p, "remote"));
	_cleanup_(freep) char *rate = rate_text(p, "width_active");
	const struct layout *l = &c->layout;
	char a[24], b[24];

	block_line(l, "state", "%s, %s", get_shown(p, "state"),
		   get_shown(p, "physical_state"));
	block_line(l, "rate", "%s %s", rate, get_shown(p, "speed_active"));
	block_line(l, "width", "%s; enabled %s; supported %s",
		   get_shown(p, "width_active"), get_shown(p, "width_enabled"),
		   get_shown(p, "width_supported"));
	block_line(l, "speed", "%s; enabled %s; supported %s",
		   get_shown(p, "speed_active"), get_shown(p, "speed_enabled"),
		   get_shown(p, "speed_supported"));
	block_line(l, "both ends", "mtu %s; data vls %s", get_number(p, "link_mtu", a),
		   get_number(p, "link_vls", b));
	block_line(l, "lid", "%s; lmc %s", get_number(p, "lid", a),
		   get_number(p, "lmc", b));
	block_line(l, "guid", "%s", get_shown(p, "port_guid"));
	block_line(l, "remote", "%s", remote);
}

static void put_port_counters(const struct cli *c, const json_t *counters)
{
	const struct layout *l = &c->layout;
	const char *key;
	bool first = true;
	json_t *v;

	json_object_foreach ((json_t *)counters, key, v) {
		if (!json_integer_value(v))
			continue;
		block_line(l, first ? "counters" : "", "%s %" JSON_INTEGER_FORMAT, key,
			   json_integer_value(v));
		first = false;
	}
	if (first)
		block_line(l, "counters", counters ? "all 0" : "-");
}

static int put_port_detail(const struct cli *c, const json_t *d)
{
	const json_t *p = get_object(d, "port");
	const char *health = get_text(p, "health"), *why = get_text(p, "why");
	_cleanup_(freep) char *pkeys = get_joined(d, "pkeys", " "), *text = NULL;
	_cleanup_(freep) char *remote = get_end(get_object(p, "remote"));

	text = why && *why ? xstrdup(why) : xasprintf("linked to %s", remote);
	head_line(&c->layout, get_shown(d, "name"), health_tint(health),
		  unit_health(health), text, 2);
	put_port_facts(c, p);
	block_line(&c->layout, "pkeys", "%s", pkeys);
	put_qos(&c->layout, d);
	put_port_counters(c, get_object(d, "counters"));
	put_unavailable(&c->layout, "unavailable", d);
	return EXIT_OK;
}

int fabric_port(struct cli *c)
{
	_cleanup_(freep) char *name = NULL;
	json_t *d;
	int r;

	if (c->argc != 1)
		return cli_usage("usage: fabctl fabric port NODE/PORT");
	name = cli_name(c->argv[0]);
	d = cli_get_slow(c, "io.fabd.GetFabricPort", json_pack("{s:s}", "port", name),
			 "port");
	if (!d)
		return EXIT_ERROR;
	r = cli_is_text(c) ? put_port_detail(c, d) : json_out(c, d);
	json_decref(d);
	return r;
}

/* ---- routes ---- */

/* Ports come in pairs: out of a node, into the next. */
static void put_route(const struct cli *c, const char *title, const json_t *route)
{
	/* clang-format off */
	static const struct column columns[] = {
		{"HOP", true, 0}, {"OUT OF", false, 24}, {"INTO", false, 24},
	};
	/* clang-format on */
	_cleanup_(freep) char *path = joined_numbers(get_array(route, "path"));
	const json_t *hops = get_array(route, "hops");
	size_t n = json_array_size(hops);
	struct table *t;

	(void)fprintf(c->layout.out, "%s: %zu hop%s, directed route %s\n", title, n / 2,
		      n / 2 == 1 ? "" : "s", path);
	t = table_new(columns, ARRAY_LEN(columns));
	for (size_t i = 0; i + 1 < n; i += 2) {
		_cleanup_(freep) char *out = get_end(json_array_get(hops, i));
		_cleanup_(freep) char *into = get_end(json_array_get(hops, i + 1));

		table_cell(t, TINT_NONE, "%zu", i / 2 + 1);
		table_cell(t, TINT_NONE, "%s", out);
		table_cell(t, TINT_NONE, "%s", into);
	}
	table_print(t, &c->layout);
	(void)table_free(t);
}

/* The whole reply: it has two objects. */
static json_t *ask_route(struct cli *c, const char *from, const char *to)
{
	struct client *client = cli_client(c, false);
	json_t *reply;

	if (!client)
		return NULL;
	reply = client_call(client, "io.fabd.GetFabricRoute",
			    json_pack("{s:s, s:s}", "from", from, "to", to));
	if (reply && !get_object(reply, "route")) {
		(void)cli_error("the answer to GetFabricRoute has no route: is this "
				"fabd?");
		json_decref(reply);
		reply = NULL;
	}
	return reply;
}

int fabric_route(struct cli *c)
{
	const json_t *alternate;
	json_t *reply;
	int r = EXIT_OK;

	if (c->argc != 2)
		return cli_usage("usage: fabctl fabric route NODE NODE");
	reply = ask_route(c, c->argv[0], c->argv[1]);
	if (!reply)
		return EXIT_ERROR;
	alternate = get_object(reply, "alternate");
	if (!cli_is_text(c)) {
		r = json_out(c, reply);
	} else {
		put_route(c, "shortest", get_object(reply, "route"));
		if (alternate)
			put_route(c, "alternate", alternate);
		else
			(void)fputs(
				"alternate: none that avoids the links of this one\n",
				c->layout.out);
	}
	json_decref(reply);
	return r;
}
