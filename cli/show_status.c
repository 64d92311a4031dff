/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fabctl status: whose fault it is, in the first line; then ports, peers and fabd
 * itself in a line each. More lines come only where something is wrong, or with -v.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "clean.h"
#include "cli.h"
#include "fields.h"
#include "json_out.h"
#include "names.h"
#include "units.h"

/* A refusal older than this is history, shown with -v only. */
#define REFUSED_RECENT_SEC 600
/* Ports with an override that are named in the line of ports. */
#define OVERRIDDEN_TOLD 2

/* A line under construction. */
struct line {
	FILE *f;
	char *text; /* owned */
	size_t size;
	int parts;
};

static void line_begin(struct line *l)
{
	*l = (struct line){0};
	l->f = open_memstream(&l->text, &l->size);
	if (!l->f)
		abort();
}

/* Separator before the next part. */
static const char *part(struct line *l)
{
	return l->parts++ ? ", " : " ";
}

static void line_end(struct line *l)
{
	if (fclose(l->f))
		abort();
}

static void put_verdict(const struct cli *c, const json_t *s)
{
	const char *health = get_text(s, "health"), *summary = get_text(s, "summary");
	_cleanup_(freep) char *text = NULL;

	text = xasprintf("%s%s%s", unit_age(get_sec(s, "age_sec")),
			 summary && *summary ? ": " : "", summary ? summary : "");
	head_line(&c->layout, get_shown(s, "node"), health_tint(health),
		  unit_health(health), text, 2);
}

/* The reason that all the @value ones give, NULL if they differ. */
static const char *shared_why(const json_t *list, const char *key, const char *value)
{
	const char *why = NULL;
	size_t i;
	json_t *o;

	json_array_foreach (list, i, o) {
		const char *own = get_text(o, "why");

		if (!str_eq(get_text(o, key), value))
			continue;
		if (!own || !*own || (why && !str_eq(own, why)))
			return NULL;
		why = own;
	}
	return why;
}

/* "mlx5_4/1", or of a peer with several rails "gpu0033/2": where it is worst. */
static void put_name(struct line *l, const json_t *o)
{
	const char *rail = get_text(o, "worst_rail");
	bool one = json_array_size(get_array(o, "rails")) < 2;

	(void)fprintf(l->f, "%s%s%s", get_text(o, "name"), rail && !one ? "/" : "",
		      rail && !one ? rail : "");
}

/* " (mlx5_4/1, mlx5_5/1)": the names of a few in a bad way, unless the first line names
 * it already; " (mlx5_3/1 DOWN)": what many have in common. */
static void put_names(struct line *l, const json_t *list, const char *key,
		      const char *value, const char *summary)
{
	const json_t *first[2] = {NULL, NULL};
	const char *why;
	size_t i, n = 0;
	json_t *o;

	json_array_foreach (list, i, o) {
		if (!get_text(o, "name") || !str_eq(get_text(o, key), value))
			continue;
		if (n < ARRAY_LEN(first))
			first[n] = o;
		n++;
	}
	why = n > 2 ? shared_why(list, key, value) : NULL;
	if (n == 0 || (n == 1 && summary && strstr(summary, get_text(first[0], "name"))))
		return;
	(void)fputs(" (", l->f);
	if (why)
		(void)fputs(why, l->f);
	else
		put_name(l, first[0]);
	if (!why && n == 2) {
		(void)fputs(", ", l->f);
		put_name(l, first[1]);
	}
	(void)(!why && n > 2 ? fprintf(l->f, " and %zu more)", n - 1) : fputc(')', l->f));
}

static bool all_well(const json_t *counts)
{
	return get_count(counts, "total") ==
	       get_count(counts, "ok") + get_count(counts, "unused");
}

static void put_count(struct line *l, int64_t n, const char *word)
{
	if (n)
		(void)fprintf(l->f, "%s%" PRId64 " %s", part(l), n, word);
}

/* The line, and the subnet manager at its right end. */
static void put_with_sm(const struct layout *l, const char *text, const json_t *s)
{
	_cleanup_(freep) char *sm = NULL, *both = NULL;
	int64_t lid;
	int room;

	if (!get_int(s, "sm_lid", &lid)) {
		wrapped_line(l, text, 2);
		return;
	}
	sm = get_sec(s, "sm_age_sec") >= 0
		     ? xasprintf("sm: lid %" PRId64 ", %s", lid,
				 unit_ago(get_sec(s, "sm_age_sec")))
		     : xasprintf("sm: lid %" PRId64, lid);
	room = MIN(l->width, 80) - text_width(text) - text_width(sm);
	if (room >= 2) {
		(void)fprintf(l->out, "%s%*s%s\n", text, room, "", sm);
		return;
	}
	both = xasprintf("%s; %s", text, sm);
	wrapped_line(l, both, 2);
}

/* ", 2 set by hand (mlx5_3/1 ok, mlx5_4/1 bad)". */
static void put_overridden(struct line *l, const json_t *overridden)
{
	int64_t n = (int64_t)json_object_size(overridden), told = 0;
	const char *port;
	json_t *health;

	put_count(l, n, "set by hand");
	json_object_foreach ((json_t *)overridden, port, health) {
		if (told == OVERRIDDEN_TOLD)
			break;
		(void)fprintf(l->f, "%s%s %s", told++ ? ", " : " (", port,
			      json_is_string(health) ? json_string_value(health) : "?");
	}
	if (told)
		(void)fprintf(l->f, "%s)", n > told ? ", ..." : "");
}

/* false: the list of ports could not be had, told. */
static bool put_ports(struct cli *c, const json_t *s)
{
	const char *summary = get_text(s, "summary");
	const json_t *counts = get_object(s, "ports");
	int64_t total = get_count(counts, "total"), ok = get_count(counts, "ok");
	int64_t bad = get_count(counts, "bad"), down = get_count(counts, "down");
	int64_t degraded = get_count(counts, "degraded");
	int64_t unknown = get_count(counts, "unknown"),
		unused = get_count(counts, "unused");
	bool well = all_well(counts);
	json_t *ports = well ? NULL : cli_list(c, "io.fabd.ListPorts", NULL, "ports");
	struct line l;

	/* Bad ports whose link is down are counted apart. */
	if (ok + degraded + bad + down + unknown + unused > total)
		bad -= MIN(bad, down);
	line_begin(&l);
	(void)fprintf(l.f, "ports %" PRId64 ":%s", total,
		      total ? "" : " none on this host");
	put_count(&l, ok, "ok");
	put_count(&l, down, "down");
	put_count(&l, bad, "failed");
	put_names(&l, ports, "health", "bad", summary);
	put_count(&l, degraded, "degraded");
	put_names(&l, ports, "health", "degraded", summary);
	put_count(&l, unknown, "unknown");
	put_names(&l, ports, "health", "unknown", summary);
	put_count(&l, unused, "unused");
	put_overridden(&l, get_object(s, "overridden"));
	line_end(&l);
	put_with_sm(&c->layout, l.text, s);
	free(l.text);
	json_decref(ports);
	return well || ports;
}

/* "16 held by mlx5_3/1": peers by what explains them, in the order of the list. */
static void put_held(struct line *l, const json_t *peers)
{
	size_t i, j;
	json_t *p, *q;

	json_array_foreach (peers, i, p) {
		const char *by = get_text(p, "held_by");
		int64_t n = 0;

		if (!by || !str_eq(get_text(p, "verdict"), "held"))
			continue;
		json_array_foreach (peers, j, q) {
			if (!str_eq(get_text(q, "held_by"), by) ||
			    !str_eq(get_text(q, "verdict"), "held"))
				continue;
			if (j < i)
				break; /* counted */
			n++;
		}
		if (n)
			(void)fprintf(l->f, "%s%" PRId64 " held by %s", part(l), n, by);
	}
}

/* Held by something that has a name. */
static bool says_holder(const json_t *p)
{
	return str_eq(get_text(p, "verdict"), "held") && get_text(p, "held_by");
}

/* Peers by verdict: those behind a fault that is told, then the worst first. */
static void put_verdicts(struct line *l, const json_t *peers, const char *summary)
{
	put_held(l, peers);
	for (int v = verdict_names.n - 1; v >= 0; v--) {
		const char *name = verdict_names.names[v];
		int64_t n = 0;
		size_t i;
		json_t *p;

		if (v == VERDICT_OK)
			continue;
		json_array_foreach (peers, i, p)
			n += str_eq(get_text(p, "verdict"), name) && !says_holder(p);
		if (!n)
			continue;
		put_count(l, n, unit_word(name));
		put_names(l, peers, "verdict", name, summary);
	}
}

/* false: the list of peers could not be had, told; then there are only their counts. */
static bool put_peers(struct cli *c, const json_t *s)
{
	const json_t *counts = get_object(s, "peers");
	int64_t total = get_count(counts, "total");
	bool well = all_well(counts);
	json_t *peers = well ? NULL : cli_list(c, "io.fabd.ListPeers", NULL, "peers");
	struct line l;

	line_begin(&l);
	(void)fprintf(l.f, "peers %" PRId64 ":%s", total,
		      total ? "" : " none configured");
	put_count(&l, get_count(counts, "ok"), "ok");
	if (peers) {
		put_verdicts(&l, peers, get_text(s, "summary"));
	} else {
		put_count(&l, get_count(counts, "bad") + get_count(counts, "down"),
			  "failed");
		put_count(&l, get_count(counts, "degraded"), "degraded");
		put_count(&l, get_count(counts, "unknown"), "unknown");
	}
	line_end(&l);
	wrapped_line(&c->layout, l.text, 2);
	free(l.text);
	json_decref(peers);
	return well || peers;
}

static int64_t sum_of(const json_t *numbers)
{
	const char *key;
	int64_t sum = 0;
	json_t *v;

	json_object_foreach ((json_t *)numbers, key, v)
		sum += json_integer_value(v);
	return sum;
}

static void put_self(const struct cli *c, const json_t *s)
{
	const json_t *cost = get_object(s, "cost");
	int64_t drops =
		sum_of(get_object(s, "drops")) + sum_of(get_object(s, "fabric_drops"));
	_cleanup_(freep) char *text = xasprintf(
		"fabd %s up %s, %.0f hb/s, cpu %.1f %%, late p99 %s, dropped %" PRId64,
		get_shown(s, "version"), unit_age(get_sec(s, "uptime_sec")),
		MAX(get_sec(cost, "heartbeats_per_sec"), 0),
		MAX(get_sec(cost, "cpu_percent"), 0),
		unit_ns(get_count(cost, "late_p99_ns")), drops);

	wrapped_line(&c->layout, text, 2);
}

/* What fabd itself cannot see or keep. That a host has no lldpd, say, is no trouble: -v. */
static void put_blind(const struct cli *c, const json_t *s)
{
	static const char *const senses[] = {"netlink", "uevents", "state_directory"};

	for (size_t i = 0; i < ARRAY_LEN(senses); i++) {
		const char *why = get_text(get_object(s, "unavailable"), senses[i]);
		_cleanup_(freep) char *text = NULL;

		if (!why)
			continue;
		text = xasprintf("no %s: %s", unit_word(senses[i]), why);
		wrapped_line(&c->layout, text, 2);
	}
}

static void put_not_seen(const struct cli *c, const json_t *s)
{
	const char *key, *label = "unavailable";
	json_t *why;

	json_object_foreach ((json_t *)get_object(s, "unavailable"), key, why) {
		block_line(&c->layout, label, "%s: %s", unit_word(key),
			   json_is_string(why) ? json_string_value(why) : "?");
		label = "";
	}
}

/* Workers that do not run, and a config that is not the one in the file. */
static void put_troubles(const struct cli *c, const json_t *s)
{
	const json_t *config = get_object(s, "config"), *w;
	const char *source = get_text(config, "source");
	int64_t errors = get_count(config, "errors");
	size_t i;

	json_array_foreach (get_array(s, "workers"), i, w) {
		const char *state = get_text(w, "state"), *why = get_text(w, "why");
		_cleanup_(freep) char *text = NULL;

		if (str_eq(state, "running"))
			continue;
		text = xasprintf("worker %s: %s %s%s%s", get_shown(w, "name"),
				 unit_word(state), unit_age(get_sec(w, "age_sec")),
				 why && *why ? ": " : "", why ? why : "");
		wrapped_line(&c->layout, text, 2);
	}
	if (errors || (source && !str_eq(source, "file"))) {
		json_t *first = json_array_get(get_array(config, "problems"), 0);
		_cleanup_(freep) char *text = xasprintf(
			"config %s: %" PRId64 " error%s%s%s%s",
			get_shown(config, "file"), errors, errors == 1 ? "" : "s",
			str_eq(source, "last_good") ? ", the last good copy runs"
			: str_eq(source, "partial") ? ", only its valid lines run"
						    : "",
			first ? ": " : "", first ? json_string_value(first) : "");

		wrapped_line(&c->layout, text, 2);
	}
}

static void put_refused(const struct cli *c, const json_t *s)
{
	const json_t *refused = get_array(s, "refused"), *r, *last = NULL;
	int64_t addresses = 0;
	_cleanup_(freep) char *text = NULL;
	size_t i;

	json_array_foreach (refused, i, r) {
		double age = get_sec(r, "age_sec");

		if (age < 0 || age > REFUSED_RECENT_SEC)
			continue;
		addresses++;
		if (!last || age < get_sec(last, "age_sec"))
			last = r;
	}
	if (!last)
		return;
	text = xasprintf("refused %" PRId64 " address%s, last %s %s (%s, %" PRId64
			 " times)",
			 addresses, addresses == 1 ? "" : "es",
			 get_shown(last, "address"), unit_ago(get_sec(last, "age_sec")),
			 unit_word(get_text(last, "reason")), get_count(last, "count"));
	wrapped_line(&c->layout, text, 2);
}

/* "12 replay, 3 stranger", without zeros. */
static void put_counts(const struct cli *c, const char *label, const json_t *numbers)
{
	const char *key;
	struct line l;
	json_t *v;

	line_begin(&l);
	json_object_foreach ((json_t *)numbers, key, v)
		if (json_integer_value(v))
			(void)fprintf(l.f, "%s%" JSON_INTEGER_FORMAT " %s",
				      l.parts++ ? ", " : "", json_integer_value(v),
				      unit_word(key));
	if (!l.parts)
		(void)fprintf(l.f, "none");
	line_end(&l);
	block_line(&c->layout, label, "%s", l.text);
	free(l.text);
}

static void put_workers(const struct cli *c, const json_t *s)
{
	/* clang-format off */
	static const struct column columns[] = {
		{"WORKER", false, 0}, {"STATE", false, 0}, {"FOR", false, 0},
		{"PID", true, 0}, {"STARTS", true, 0}, {"SILENT", true, 0},
		{"HOT", true, 0}, {"ENDPOINTS", true, 0}, {"WHY", false, 0},
	};
	/* clang-format on */
	struct table *t = table_new(columns, ARRAY_LEN(columns));
	size_t i;
	json_t *w;

	json_array_foreach (get_array(s, "workers"), i, w) {
		const char *state = get_text(w, "state"), *why = get_text(w, "why");
		char pid[24];
		int64_t ms;

		table_cell(t, TINT_NONE, "%s", get_shown(w, "name"));
		table_cell(t, str_eq(state, "running") ? TINT_GOOD : TINT_BAD, "%s",
			   unit_word(state));
		table_cell(t, TINT_NONE, "%s", unit_age(get_sec(w, "age_sec")));
		table_cell(t, TINT_NONE, "%s", get_number(w, "pid", pid));
		table_cell(t, TINT_NONE, "%" PRId64, get_count(w, "starts"));
		table_cell(t, TINT_NONE, "%s",
			   get_int(w, "silent_ms", &ms) ? unit_ns(ms * 1000000) : "-");
		table_cell(t, TINT_NONE, "%s",
			   get_int(w, "hot_age_ms", &ms) ? unit_ns(ms * 1000000) : "-");
		table_cell(t, TINT_NONE, "%" PRId64, get_count(w, "endpoints"));
		table_cell(t, TINT_NONE, "%s", why ? why : "");
	}
	table_print(t, &c->layout);
	(void)table_free(t);
}

static void put_refused_all(const struct cli *c, const json_t *s)
{
	/* clang-format off */
	static const struct column columns[] = {
		{"REFUSED", false, 0}, {"REASON", false, 0}, {"COUNT", true, 0},
		{"LAST", false, 0},
	};
	/* clang-format on */
	struct table *t = table_new(columns, ARRAY_LEN(columns));
	size_t i;
	json_t *r;

	json_array_foreach (get_array(s, "refused"), i, r) {
		table_cell(t, TINT_NONE, "%s", get_shown(r, "address"));
		table_cell(t, TINT_NONE, "%s", unit_word(get_text(r, "reason")));
		table_cell(t, TINT_NONE, "%" PRId64, get_count(r, "count"));
		table_cell(t, TINT_NONE, "%s", unit_ago(get_sec(r, "age_sec")));
	}
	table_print(t, &c->layout);
	(void)table_free(t);
}

static void put_all(const struct cli *c, const json_t *s)
{
	const struct layout *l = &c->layout;
	const json_t *cost = get_object(s, "cost"), *config = get_object(s, "config");
	const char *source = get_text(config, "source");
	size_t i;
	json_t *p;

	block_line(l, "fabd",
		   "pid %" PRId64 ", instance %s, schema %" PRId64 ", clients %" PRId64
		   ", last change %" PRId64,
		   get_count(s, "pid"), get_shown(s, "instance"),
		   get_count(s, "schema"), get_count(s, "clients"),
		   get_count(s, "seq"));
	block_line(l, "cost",
		   "cpu %.2f %%, %.0f packets/s, rss %s + workers %s, %.1f MADs/s",
		   MAX(get_sec(cost, "cpu_percent"), 0),
		   MAX(get_sec(cost, "packets_per_sec"), 0),
		   unit_kib(get_count(cost, "rss_kib")),
		   unit_kib(get_count(cost, "rss_workers_kib")),
		   MAX(get_sec(cost, "mads_per_sec"), 0));
	block_line(l, "budget", "cpu 1 %%, 600 packets/s, rss 40M");
	block_line(
		l, "loop", "%" PRId64 " turns, worst %s of cpu; late p99 %s, worst %s",
		get_count(cost, "turns"), unit_ns(get_count(cost, "turn_cpu_worst_ns")),
		unit_ns(get_count(cost, "late_p99_ns")),
		unit_ns(get_count(cost, "late_worst_ns")));
	block_line(l, "connections", "%" PRId64, get_count(s, "connections"));
	put_counts(c, "verdicts", get_object(s, "verdicts"));
	put_counts(c, "drops", get_object(s, "drops"));
	put_counts(c, "fabric drops", get_object(s, "fabric_drops"));
	block_line(l, "config",
		   "%s (%s), read %s, errors %" PRId64 ", warnings %" PRId64,
		   get_shown(config, "file"),
		   str_eq(source, "file") ? "as it is" : unit_word(source),
		   unit_ago(get_sec(config, "age_sec")), get_count(config, "errors"),
		   get_count(config, "warnings"));
	json_array_foreach (get_array(config, "problems"), i, p)
		block_line(l, "", "%s", json_is_string(p) ? json_string_value(p) : "?");
	put_not_seen(c, s);
	put_workers(c, s);
	put_refused_all(c, s);
}

int show_status(struct cli *c)
{
	int r = EXIT_OK;
	json_t *s;

	if (c->argc)
		return cli_usage("status takes no name, and '%s' is one", c->argv[0]);
	s = cli_get(c, "io.fabd.GetStatus", NULL, "status");
	if (!s)
		return EXIT_ERROR;
	if (cli_is_text(c)) {
		put_verdict(c, s);
		if (!put_ports(c, s))
			r = EXIT_ERROR;
		if (!put_peers(c, s))
			r = EXIT_ERROR;
		put_self(c, s);
		put_troubles(c, s);
		put_blind(c, s);
		if (c->verbose)
			put_all(c, s);
		else
			put_refused(c, s);
	} else {
		r = json_out(c, s);
	}
	json_decref(s);
	return r;
}
