/* SPDX-License-Identifier: BSD-2-Clause */
/* fabctl fabric: the subnet in a few lines; what did not answer; what the SA says; and
 * a sweep on demand. */
#include <arpa/inet.h>
#include <inttypes.h>
#include <stdio.h>

#include "clean.h"
#include "cli.h"
#include "fields.h"
#include "json_out.h"
#include "physp.h"
#include "progress.h"
#include "units.h"

/* ---- summary ---- */

static const char *plural(int64_t n)
{
	return n == 1 ? "" : "s";
}

/* "incremental 41: 12s ago in 0.3s, 610 MADs, 2 timeouts, 3 changes" */
static void put_sweep(const struct cli *c, const char *label, const json_t *s)
{
	int64_t timeouts = get_count(s, "timeouts"), changed = get_count(s, "changed");
	double sec = get_sec(s, "sec");
	char text[160] = "";

	if (!s)
		return;
	if (timeouts)
		str_append(text, sizeof(text), ", %" PRId64 " timeout%s", timeouts,
			   plural(timeouts));
	/* Where nothing was known before, all that there is counts as changed. */
	if (changed && changed != get_count(s, "nodes") + get_count(s, "links"))
		str_append(text, sizeof(text), ", %" PRId64 " change%s", changed,
			   plural(changed));
	block_line(&c->layout, label, "%s %" PRId64 ", %s, in %s, %" PRId64 " MADs%s",
		   unit_word(get_text(s, "kind")), get_count(s, "number"),
		   unit_ago(get_sec(s, "age_sec")),
		   unit_ns(sec < 0 ? -1 : (int64_t)(sec * 1e9)), get_count(s, "mads"),
		   text);
}

static bool same_sweep(const json_t *a, const json_t *b)
{
	return a && b && get_count(a, "number") == get_count(b, "number");
}

static void put_sm(const struct cli *c, const json_t *f)
{
	const json_t *sm = get_object(f, "sm");

	if (!sm) {
		block_line(&c->layout, "sm", "-");
		return;
	}
	block_line(&c->layout, "sm",
		   "lid %" PRId64 " guid %s, priority %" PRId64 ", %s",
		   get_count(sm, "lid"), get_shown(sm, "guid"),
		   get_count(sm, "priority"), unit_word(get_text(sm, "state")));
}

/* "own 41, near 2, subnet 14640; most to leaf07: 410" */
static void put_mads(const struct cli *c, const json_t *f)
{
	const json_t *mads = get_object(f, "mads"), *v;
	const char *key, *worst = get_text(f, "mads_worst_node");
	char text[256] = "";

	json_object_foreach ((json_t *)mads, key, v)
		str_append(text, sizeof(text), "%s%s %" JSON_INTEGER_FORMAT,
			   *text ? ", " : "", key, json_integer_value(v));
	if (worst)
		str_append(text, sizeof(text), "; most to %s: %" PRId64, worst,
			   get_count(f, "mads_worst"));
	block_line(&c->layout, "mads", "%s", *text ? text : "-");
}

static void put_links(const struct cli *c, const json_t *f)
{
	int64_t links = get_count(f, "links"),
		degraded = get_count(f, "links_degraded");
	char text[64] = "";

	if (degraded)
		str_append(text, sizeof(text),
			   ", %" PRId64 " degraded: fabctl fabric links --not-ok",
			   degraded);
	block_line(&c->layout, "links", "%" PRId64 ": %" PRId64 " ok%s", links,
		   links - degraded, text);
}

static void put_problems(const struct cli *c, const json_t *f)
{
	int64_t errors = get_count(f, "errors"),
		duplicates = get_count(f, "duplicates");
	int64_t moved = get_count(f, "moved"), notices = get_count(f, "notices");

	block_line(&c->layout, "errors",
		   "%" PRId64 "; duplicates %" PRId64 "; moved %" PRId64 "%s", errors,
		   duplicates, moved, errors ? ": fabctl fabric errors" : "");
	if (get_true(f, "subscribed") || notices)
		block_line(&c->layout, "notices", "%" PRId64 "; %s", notices,
			   get_true(f, "subscribed") ? "subscribed" : "not subscribed");
}

static const char *verdict_of(const json_t *f, enum tint *ret_tint)
{
	bool known = get_count(f, "nodes") > 0;
	bool bad = get_count(f, "links_degraded") || get_count(f, "errors") ||
		   get_count(f, "duplicates");

	*ret_tint = !known ? TINT_NONE : bad ? TINT_WARN : TINT_GOOD;
	return !known ? "unknown" : bad ? "DEGRADED" : "ok";
}

static void put_state(const struct cli *c, const json_t *f)
{
	double progress = get_sec(f, "progress"), next = get_sec(f, "next_sweep_sec");
	char text[96] = "";

	if (progress >= 0)
		str_append(text, sizeof(text), ", %.0f %% done", progress * 100);
	else if (next >= 0)
		str_append(text, sizeof(text), ", next sweep in %s", unit_age(next));
	block_line(&c->layout, "sweep", "%s from %s (Sweep=%s)%s",
		   unit_word(get_text(f, "state")), get_shown(f, "port"),
		   get_shown(f, "mode"), text);
}

/* "112 nodes: 12 switches, 100 CAs; 640 ports" */
static char *nodes_text(const json_t *f)
{
	int64_t switches = get_count(f, "switches"), cas = get_count(f, "cas");
	int64_t routers = get_count(f, "routers");
	const char *why = get_text(f, "why");
	char text[512] = "";

	str_append(text, sizeof(text),
		   "%" PRId64 " nodes: %" PRId64 " switch%s, %" PRId64 " CA%s",
		   get_count(f, "nodes"), switches, switches == 1 ? "" : "es", cas,
		   plural(cas));
	if (routers)
		str_append(text, sizeof(text), ", %" PRId64 " router%s", routers,
			   plural(routers));
	str_append(text, sizeof(text), "; %" PRId64 " ports%s%s", get_count(f, "ports"),
		   why && *why ? "; " : "", why && *why ? why : "");
	return xstrdup(text);
}

static int put_fabric(const struct cli *c, const json_t *f)
{
	int64_t nodes = get_count(f, "nodes");
	const json_t *last = get_object(f, "last_sweep"),
		     *full = get_object(f, "last_full");
	const char *why = get_text(f, "why"), *word;
	_cleanup_(freep) char *text = NULL;
	enum tint tint;

	word = verdict_of(f, &tint);
	if (nodes)
		text = nodes_text(f);
	else
		text = xasprintf("no fabric to show: %s",
				 why && *why ? why : "no sweep has ended yet");
	if (!nodes) {
		wrapped_line(&c->layout, text, 2);
	} else {
		head_line(&c->layout, "fabric", tint, word, text, 2);
		put_links(c, f);
		put_problems(c, f);
	}
	put_state(c, f);
	put_sweep(c, "present", get_object(f, "present_sweep"));
	put_sweep(c, "last", last);
	if (!same_sweep(last, full))
		put_sweep(c, "last full", full);
	put_sm(c, f);
	put_mads(c, f);
	return EXIT_OK;
}

int show_fabric(struct cli *c)
{
	json_t *f;
	int r;

	if (c->argc)
		return cli_usage("fabric show takes no name, and '%s' is one",
				 c->argv[0]);
	f = cli_get(c, "io.fabd.GetFabric", NULL, "fabric");
	if (!f)
		return EXIT_ERROR;
	r = cli_is_text(c) ? put_fabric(c, f) : json_out(c, f);
	json_decref(f);
	return r;
}

/* Why there is none; NULL if there is one, or if fabd does not say. Owned by caller. */
static char *why_none(struct cli *c)
{
	json_t *f = cli_get(c, "io.fabd.GetFabric", NULL, "fabric");
	const char *why = get_text(f, "why");
	char *text = NULL;

	if (f && !get_count(f, "nodes"))
		text = xstrdup(why && *why ? why : "no sweep has ended yet");
	json_decref(f);
	return text;
}

void fabric_empty(struct cli *c, const char *otherwise)
{
	_cleanup_(freep) char *why = why_none(c);

	(void)fprintf(c->layout.out, "%s%s\n", why ? "no fabric is known: " : otherwise,
		      why ? why : "");
}

int fabric_no_node(struct cli *c, const char *noun, const char *word)
{
	_cleanup_(freep) char *why = why_none(c);

	if (why)
		return cli_error("no fabric is known: %s", why);
	return cli_error("no %s %s: fabctl fabric nodes lists them", noun, word);
}

/* ---- sweep ---- */

struct sweep_view {
	const struct cli *cli; /* borrowed */
	json_t *last;	       /* owned */
};

static bool on_sweep(void *user, json_t *parameters)
{
	struct sweep_view *v = user;
	json_t *f = get_object(parameters, "fabric");
	const json_t *present = get_object(f, "present_sweep");
	double progress = get_sec(f, "progress");

	if (!f)
		return true;
	json_decref(v->last);
	v->last = json_incref(f);
	if (progress >= 0)
		progress_line("sweep: %.0f %%, %" PRId64 " nodes, %" PRId64 " MADs",
			      MAX(progress, 0) * 100, get_count(present, "nodes"),
			      get_count(present, "mads"));
	return true;
}

int fabric_sweep(struct cli *c)
{
	struct sweep_view v = {.cli = c};
	struct client *client;
	int r = EXIT_ERROR;

	if (c->argc)
		return cli_usage("fabric sweep takes no name, and '%s' is one",
				 c->argv[0]);
	cli_be_patient(c);
	client = cli_client(c, true);
	if (!client)
		return EXIT_ERROR;
	progress_begin();
	if (client_stream(client, "io.fabd.SweepFabric",
			  c->cold ? json_pack("{s:b}", "cold", 1) : NULL, on_sweep,
			  &v) < 0)
		r = EXIT_ERROR;
	else if (!v.last)
		r = cli_error("the answer to SweepFabric has no fabric: is this fabd?");
	else
		r = EXIT_OK;
	progress_clear();
	if (r == EXIT_OK)
		r = cli_is_text(c) ? put_fabric(c, v.last) : json_out(c, v.last);
	json_decref(v.last);
	return r;
}

/* ---- errors ---- */

static char *path_text(const json_t *o)
{
	const json_t *path = get_array(o, "path"), *v;
	char text[512] = "";
	size_t i;

	json_array_foreach (path, i, v)
		str_append(text, sizeof(text), "%s%" JSON_INTEGER_FORMAT, i ? "," : "",
			   json_integer_value(v));
	return xstrdup(*text ? text : "-");
}

/* "leaf07/22"; "leaf07" where no port is told. */
static char *where_text(const json_t *e)
{
	const char *desc = get_text(e, "node_desc"), *guid = get_text(e, "node_guid");
	char name[128];
	int64_t port;

	if (desc && *desc)
		(void)node_desc_short(desc, name, sizeof(name));
	else
		(void)str_copy(name, sizeof(name), guid ? guid : "-");
	if (get_int(e, "port", &port) && port)
		return xasprintf("%s/%" PRId64, name, port);
	return xstrdup(name);
}

static void put_errors(const struct cli *c, const json_t *errors)
{
	/* clang-format off */
	static const struct column columns[] = {
		{"WHERE", false, 16}, {"PROBLEM", false, 0}, {"ATTRIBUTE", false, 0},
		{"PATH", false, 10}, {"FOR", false, 0}, {"WHY", false, 0},
	};
	/* clang-format on */
	struct table *t = table_new(columns, ARRAY_LEN(columns));
	size_t i;
	json_t *e;

	json_array_foreach (errors, i, e) {
		_cleanup_(freep) char *where = where_text(e), *path = path_text(e);

		table_cell(t, TINT_NONE, "%s", where);
		table_cell(t, TINT_BAD, "%s", unit_word(get_text(e, "problem")));
		table_cell(t, TINT_NONE, "%s", unit_word(get_text(e, "attribute")));
		table_cell(t, TINT_NONE, "%s", path);
		table_cell(t, TINT_NONE, "%s", unit_age(get_sec(e, "age_sec")));
		table_cell(t, TINT_NONE, "%s", get_shown(e, "why"));
	}
	table_print(t, &c->layout);
	(void)table_free(t);
}

int fabric_errors(struct cli *c)
{
	json_t *errors;
	int r = EXIT_OK;

	if (c->argc)
		return cli_usage("fabric errors takes no name, and '%s' is one",
				 c->argv[0]);
	errors = cli_list(c, "io.fabd.ListFabricErrors", NULL, "errors");
	if (!errors)
		return EXIT_ERROR;
	if (!cli_is_text(c))
		r = json_out(c, errors);
	else if (json_array_size(errors))
		put_errors(c, errors);
	else
		fabric_empty(c, "no error in what was swept");
	json_decref(errors);
	return r;
}

/* ---- what the SA says ---- */

static void put_sms(const struct cli *c, const json_t *sa)
{
	/* clang-format off */
	static const struct column columns[] = {
		{"SM LID", true, 0}, {"GUID", false, 0}, {"PRIORITY", true, 0},
		{"STATE", false, 0},
	};
	/* clang-format on */
	struct table *t = table_new(columns, ARRAY_LEN(columns));
	size_t i;
	json_t *sm;

	json_array_foreach (get_array(sa, "sms"), i, sm) {
		table_cell(t, TINT_NONE, "%" PRId64, get_count(sm, "lid"));
		table_cell(t, TINT_NONE, "%s", get_shown(sm, "guid"));
		table_cell(t, TINT_NONE, "%" PRId64, get_count(sm, "priority"));
		table_cell(t, TINT_NONE, "%s", unit_word(get_text(sm, "state")));
	}
	table_print(t, &c->layout);
	(void)table_free(t);
}

/* "full", "non-member", "send-only": bits of JoinState (IBA 15.2.5.17). */
static const char *join_text(int64_t state, char buf[48])
{
	static const char *const bits[] = {"full", "non-member", "send-only",
					   "send-only-full"};

	buf[0] = '\0';
	for (size_t i = 0; i < ARRAY_LEN(bits); i++)
		if (state & (1 << i))
			str_append(buf, 48, "%s%s", *buf ? " " : "", bits[i]);
	return *buf ? buf : "-";
}

/* A GID as short as IPv6 addresses are written. */
static const char *gid_text(const json_t *o, const char *key,
			    char buf[INET6_ADDRSTRLEN])
{
	const char *gid = get_shown(o, key);
	struct in6_addr a;

	if (inet_pton(AF_INET6, gid, &a) != 1 ||
	    !inet_ntop(AF_INET6, &a, buf, INET6_ADDRSTRLEN))
		return gid;
	return buf;
}

static int by_group(const json_t *a, const json_t *b)
{
	int c = str_compare_natural(get_shown(a, "mgid"), get_shown(b, "mgid"));

	return c ? c
		 : str_compare_natural(get_shown(a, "port_gid"),
				       get_shown(b, "port_gid"));
}

static void put_members(const struct cli *c, const json_t *sa)
{
	/* clang-format off */
	static const struct column columns[] = {
		{"GROUP", false, 20}, {"MLID", false, 0}, {"MEMBER", false, 20},
		{"PKEY", false, 0}, {"JOINED", false, 0},
	};
	/* clang-format on */
	struct table *t = table_new(columns, ARRAY_LEN(columns));
	json_t *members = get_array(sa, "members"), *m;
	size_t i;

	if (members)
		json_sort(members, by_group);
	json_array_foreach (members, i, m) {
		char join[48], mgid[INET6_ADDRSTRLEN], gid[INET6_ADDRSTRLEN];

		table_cell(t, TINT_NONE, "%s", gid_text(m, "mgid", mgid));
		table_cell(t, TINT_NONE, "0x%" PRIx64, get_count(m, "mlid"));
		table_cell(t, TINT_NONE, "%s", gid_text(m, "port_gid", gid));
		table_cell(t, TINT_NONE, "%s", get_shown(m, "pkey"));
		table_cell(t, TINT_NONE, "%s",
			   join_text(get_count(m, "join_state"), join));
	}
	table_print(t, &c->layout);
	(void)table_free(t);
}

static bool sa_is_known(const json_t *sa)
{
	return get_sec(sa, "age_sec") >= 0 || json_array_size(get_array(sa, "sms")) ||
	       json_array_size(get_array(sa, "members"));
}

int fabric_sa(struct cli *c)
{
	_cleanup_(freep) char *why = NULL;
	json_t *sa;
	int r = EXIT_OK;

	if (c->argc)
		return cli_usage("fabric sa takes no name, and '%s' is one",
				 c->argv[0]);
	sa = cli_get_slow(c, "io.fabd.GetFabricSa", NULL, "sa");
	if (!sa)
		return EXIT_ERROR;
	if (!cli_is_text(c)) {
		r = json_out(c, sa);
	} else if (!sa_is_known(sa) && (why = why_none(c))) {
		(void)fprintf(c->layout.out, "no fabric is known: %s\n", why);
	} else {
		(void)fprintf(c->layout.out, "subnet administration, asked %s\n",
			      unit_ago(get_sec(sa, "age_sec")));
		put_sms(c, sa);
		put_members(c, sa);
		put_unavailable(&c->layout, "not told", sa);
	}
	json_decref(sa);
	return r;
}
