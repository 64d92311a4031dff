/* SPDX-License-Identifier: BSD-2-Clause */
/* fabctl port: a line a port, or everything about one. */
#include <inttypes.h>
#include <stdlib.h>

#include "cli.h"
#include "fields.h"
#include "json_out.h"
#include "port.h"
#include "units.h"

/* Facts are read every second; what is older than this is said to be stale. */
#define STALE_SEC 10

static bool is_well(const json_t *p)
{
	const char *h = get_text(p, "health");

	return str_eq(h, "ok") || str_eq(h, "unused");
}

/* "leaf08/22"; "(leaf07/22)" where it was when the link was last up. */
static char *remote_text(const json_t *p)
{
	const json_t *r = get_object(p, "remote"),
		     *exists = json_object_get(p, "link_exists");
	const char *desc = get_text(r, "node_desc"), *last = get_text(p, "last_remote");
	const char *far = get_text(p, "far_name");
	bool gone = str_eq(get_text(p, "state"), "DOWN") || json_is_false(exists);
	char name[128], port[24];

	if (!desc || !*desc)
		desc = get_text(r, "node_guid");
	if (!desc && far && *far)
		return xstrdup(far);
	if (!desc)
		return last ? xasprintf("(%s)", last) : xstrdup("-");
	return xasprintf("%s%s/%s%s", gone ? "(" : "",
			 node_desc_short(desc, name, sizeof(name)),
			 get_number(r, "port", port), gone ? ")" : "");
}

static char *rate_text(const json_t *p)
{
	const char *width = get_text(p, "width_active");
	int64_t mbps;

	if (str_eq(get_text(p, "state"), "DOWN") || !get_int(p, "rate_mbps", &mbps))
		return xstrdup("-");
	return xasprintf("%s%s%s", unit_rate(mbps), width ? " " : "",
			 width ? width : "");
}

/* The reason, then what the reader must know to trust it. */
static char *why_text(const json_t *p)
{
	const char *why = get_text(p, "health_why"),
		   *override = get_text(p, "override");
	const char *until = get_text(p, "override_until"),
		   *by = get_text(p, "override_by");
	double age = get_sec(p, "read_age_sec");
	char text[1024] = "";

	/* The operator's word is told with its end, not twice. */
	if (why && (!override || str_eq(override, "auto") || strncmp(why, "set ", 4)))
		str_append(text, sizeof(text), "%s", why);
	if (override && !str_eq(override, "auto"))
		str_append(text, sizeof(text), "%sset %s%s%s%s%s", *text ? "; " : "",
			   override, by ? " by " : "", by ? by : "",
			   until ? " until " : "", until ? until : "");
	if (age > STALE_SEC)
		str_append(text, sizeof(text), "%sdata %s old", *text ? "; " : "",
			   unit_age(age));
	return xstrdup(text);
}

static void put_table(const struct cli *c, const json_t *ports)
{
	/* clang-format off */
	static const struct column columns[] = {
		{"PORT", false, 0}, {"RAIL", false, 0}, {"STATE", false, 0},
		{"PHYS", false, 12}, {"RATE", false, 0}, {"NETDEV", false, 0},
		{"REMOTE", false, 16}, {"HEALTH", false, 0}, {"FOR", false, 0},
		{"WHY", false, 0},
	};
	/* clang-format on */
	struct table *t = table_new(columns, ARRAY_LEN(columns));
	size_t i;
	json_t *p;

	json_array_foreach (ports, i, p) {
		_cleanup_(freep) char *rate = rate_text(p), *remote = remote_text(p);
		_cleanup_(freep) char *why = why_text(p);
		const char *health = get_text(p, "health");

		table_cell(t, TINT_NONE, "%s", get_shown(p, "name"));
		table_cell(t, TINT_NONE, "%s", get_shown(p, "rail"));
		table_cell(t, TINT_NONE, "%s", get_shown(p, "state"));
		table_cell(t, TINT_NONE, "%s", get_shown(p, "physical_state"));
		table_cell(t, TINT_NONE, "%s", rate);
		table_cell(t, TINT_NONE, "%s", get_shown(p, "netdev"));
		table_cell(t, TINT_NONE, "%s", remote);
		table_cell(t, health_tint(health), "%s", unit_health(health));
		table_cell(t, TINT_NONE, "%s", unit_age(get_sec(p, "age_sec")));
		table_cell(t, TINT_NONE, "%s", why);
	}
	table_print(t, &c->layout);
	(void)table_free(t);
}

static void put_head(const struct cli *c, const json_t *p)
{
	const char *health = get_text(p, "health");
	_cleanup_(freep) char *why = why_text(p), *text = NULL;

	text = xasprintf("%s%s%s", unit_age(get_sec(p, "age_sec")), *why ? ": " : "",
			 why);
	head_line(&c->layout, get_shown(p, "name"), health_tint(health),
		  unit_health(health), text, 2);
}

static void put_link(const struct cli *c, const json_t *p)
{
	const struct layout *l = &c->layout;
	char a[24], b[24], d[24];
	int64_t mbps = 0;

	block_line(l, "state", "%s, %s, %s", get_shown(p, "state"),
		   get_shown(p, "physical_state"), get_shown(p, "link_layer"));
	(void)get_int(p, "rate_mbps", &mbps);
	block_line(l, "rate", "%s", unit_rate(mbps));
	block_line(l, "width", "%s; enabled %s; supported %s",
		   get_shown(p, "width_active"), get_shown(p, "width_enabled"),
		   get_shown(p, "width_supported"));
	block_line(l, "speed", "%s; enabled %s; supported %s",
		   get_shown(p, "speed_active"), get_shown(p, "speed_enabled"),
		   get_shown(p, "speed_supported"));
	block_line(l, "mtu", "%s; most here %s; both ends %s",
		   get_number(p, "active_mtu", a), get_number(p, "max_mtu", b),
		   get_number(p, "link_mtu", d));
	block_line(l, "data vls", "%s; most here %s; both ends %s",
		   get_number(p, "operational_vls", a), get_number(p, "vl_cap", b),
		   get_number(p, "link_vls", d));
}

static void put_address(const struct cli *c, const json_t *p)
{
	_cleanup_(freep) char *addresses = get_joined(p, "addresses", " ");
	_cleanup_(freep) char *caps = get_joined(p, "caps", " ");
	_cleanup_(freep) char *pkeys = get_joined(p, "pkeys", " ");
	const struct layout *l = &c->layout;
	char a[24], b[24], d[24], e[24];
	int64_t first;

	if (get_int(p, "lid_first", &first))
		block_line(l, "lid", "%s; lmc %s; %s to %s", get_number(p, "lid", a),
			   get_number(p, "lmc", b), get_number(p, "lid_first", d),
			   get_number(p, "lid_last", e));
	else
		block_line(l, "lid", "%s; lmc %s", get_number(p, "lid", a),
			   get_number(p, "lmc", b));
	block_line(l, "sm", "lid %s; sl %s; subnet %s", get_number(p, "sm_lid", a),
		   get_number(p, "sm_sl", b), get_shown(p, "subnet_prefix"));
	block_line(l, "guid", "%s", get_shown(p, "port_guid"));
	block_line(l, "netdev", "%s; index %s", get_shown(p, "netdev"),
		   get_number(p, "netdev_index", a));
	block_line(l, "addresses", "%s", addresses);
	block_line(l, "caps", "%s%s%s", get_shown(p, "cap_mask"),
		   str_eq(caps, "-") ? "" : " ", str_eq(caps, "-") ? "" : caps);
	block_line(l, "pkeys", "%s", pkeys);
}

static void put_gids(const struct cli *c, const json_t *p)
{
	const json_t *gids = get_array(p, "gids"), *g;
	size_t i;

	if (!json_array_size(gids))
		block_line(&c->layout, "gids", "-");
	json_array_foreach (gids, i, g) {
		const char *netdev = get_text(g, "netdev");

		block_line(&c->layout, i ? "" : "gids", "%" PRId64 " %s %s%s%s",
			   get_count(g, "index"), get_shown(g, "gid"),
			   unit_word(get_text(g, "type")), netdev ? " " : "",
			   netdev ? netdev : "");
	}
}

static const char *yes_no(const json_t *o, const char *key)
{
	json_t *v = json_object_get(o, key);

	return json_is_true(v) ? "yes" : json_is_false(v) ? "no" : "-";
}

static void put_remote(const struct cli *c, const json_t *p)
{
	const json_t *r = get_object(p, "remote");
	const char *why = get_why(p, "remote"), *last = get_text(p, "last_remote");
	const char *far = get_text(p, "far_name"), *source = get_text(p, "far_source");
	const struct layout *l = &c->layout;
	char a[24], b[24], d[24];

	block_line(l, "link", "exists %s; healthy %s", yes_no(p, "link_exists"),
		   yes_no(p, "link_healthy"));
	if (far && !r)
		block_line(l, "far end", "%s%s%s", far, source ? ", by " : "",
			   source ? unit_word(source) : "");
	if (!r) {
		block_line(l, "remote", "-%s%s%s%s", why ? " " : "", why ? why : "",
			   last ? "; last seen " : "", last ? last : "");
		return;
	}
	block_line(l, "remote", "%s port %s, %s, lid %s, read %s",
		   get_shown(r, "node_desc"), get_number(r, "port", a),
		   get_shown(r, "node_type"), get_number(r, "lid", b),
		   unit_ago(get_sec(r, "read_age_sec")));
	block_line(l, "", "guid %s; port guid %s", get_shown(r, "node_guid"),
		   get_shown(r, "port_guid"));
	block_line(l, "", "%s, %s; vendor %s device %s", get_shown(r, "state"),
		   get_shown(r, "physical_state"), get_shown(r, "vendor_id"),
		   get_shown(r, "device_id"));
	block_line(l, "", "width %s; supported %s", get_shown(r, "width_active"),
		   get_shown(r, "width_supported"));
	block_line(l, "", "speed %s; supported %s", get_shown(r, "speed_active"),
		   get_shown(r, "speed_supported"));
	block_line(l, "", "mtu at most %s; data vls %s of %s",
		   get_number(r, "max_mtu", a), get_number(r, "operational_vls", b),
		   get_number(r, "vl_cap", d));
	put_unavailable(&c->layout, "not told", r);
}

static void put_block(const struct cli *c, const json_t *p)
{
	_cleanup_(freep) char *flags = get_joined(p, "flags", " ");
	const struct layout *l = &c->layout;
	const char *until = get_text(p, "override_until"),
		   *by = get_text(p, "override_by");

	put_head(c, p);
	block_line(l, "rail", "%s; expected %s", get_shown(p, "rail"),
		   yes_no(p, "expected"));
	block_line(l, "health", "%s since %s; override %s%s%s%s%s",
		   unit_word(get_text(p, "health")), get_shown(p, "since"),
		   get_shown(p, "override"), by ? " by " : "", by ? by : "",
		   until ? " until " : "", until ? until : "");
	put_port_reasons(l, p);
	put_port_baseline(l, p);
	put_port_history(l, p);
	put_link(c, p);
	put_address(c, p);
	put_gids(c, p);
	put_qos(l, p);
	put_remote(c, p);
	block_line(l, "source", "%s, read %s; %" PRId64 " changes that no event told",
		   unit_word(get_text(p, "source")),
		   unit_ago(get_sec(p, "read_age_sec")), get_count(p, "missed_events"));
	block_line(l, "flags", "%s", flags);
	put_unavailable(&c->layout, "unavailable", p);
}

static void put_blocks(const struct cli *c, const json_t *ports)
{
	size_t i;
	json_t *p;

	json_array_foreach (ports, i, p) {
		if (i)
			(void)fputc('\n', c->layout.out);
		put_block(c, p);
	}
}

/* Drop what is well; says so if nothing is left. */
static void keep_not_ok(const struct cli *c, json_t *ports)
{
	size_t total = json_array_size(ports);

	for (size_t i = total; i-- > 0;)
		if (is_well(json_array_get(ports, i)))
			(void)json_array_remove(ports, i);
	if (total && !json_array_size(ports) && cli_is_text(c))
		cli_all_are(c, total, "port", "ok or unused");
}

static int show_list(struct cli *c, const char *device)
{
	json_t *parameters = device ? json_pack("{s:s}", "device", device) : NULL;
	json_t *ports = cli_list(c, "io.fabd.ListPorts", parameters, "ports");
	int r = EXIT_OK;

	if (!ports)
		return EXIT_ERROR;
	if (device && !json_array_size(ports)) {
		r = cli_error("no port of a device %s: fabctl port lists them", device);
	} else {
		if (!json_array_size(ports) && cli_is_text(c))
			(void)fputs("no RDMA port on this host\n", c->layout.out);
		if (c->not_ok)
			keep_not_ok(c, ports);
		if (!cli_is_text(c))
			r = json_out(c, ports);
		else if (c->verbose || (device && json_array_size(ports) == 1))
			put_blocks(c, ports);
		else
			put_table(c, ports);
	}
	json_decref(ports);
	return r;
}

int show_port(struct cli *c)
{
	_cleanup_(freep) char *name = NULL;
	const char *word;
	int r = EXIT_OK;
	json_t *p;

	if (!cli_one_word(c, &word))
		return EXIT_USAGE;
	if (!word)
		return show_list(c, NULL);
	name = cli_name(word);
	if (!strchr(name, '/'))
		return show_list(c, name);
	if (c->not_ok)
		return cli_usage("--not-ok is for lists, not for the one port %s",
				 name);
	p = cli_get(c, "io.fabd.GetPort", json_pack("{s:s}", "port", name), "port");
	if (!p)
		return EXIT_ERROR;
	if (!cli_is_text(c))
		r = json_out(c, p);
	else
		put_block(c, p);
	json_decref(p);
	return r;
}
