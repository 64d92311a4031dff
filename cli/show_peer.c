/* SPDX-License-Identifier: BSD-2-Clause */
/* fabctl peer: a line for each way to each peer, or everything about one peer. */
#include <inttypes.h>
#include <stdlib.h>

#include "cli.h"
#include "fields.h"
#include "json_out.h"
#include "units.h"

/* So many lines that tell the same local fault are told as one. */
#define FOLD_LEAST 3

static bool is_well(const json_t *o)
{
	return str_eq(get_text(o, "verdict"), "ok");
}

/* Verdicts that lie on this side: their peers are not to blame and are many. */
static bool is_local(const char *verdict)
{
	static const char *const local[] = {"held",	    "local_port", "local_stall",
					    "device_stuck", "no_sm",	  "no_route"};

	for (size_t i = 0; verdict && i < ARRAY_LEN(local); i++)
		if (str_eq(verdict, local[i]))
			return true;
	return false;
}

/* The fault that explains @o; NULL: none, or a fabd that does not say. */
static const char *held_by(const json_t *o)
{
	return str_eq(get_text(o, "verdict"), "held") ? get_text(o, "held_by") : NULL;
}

/* Held by its peer: another connection of it tells of the same. */
static bool is_held_by_peer(const json_t *o)
{
	return str_eq(held_by(o), get_text(o, "peer"));
}

static bool same_fault(const json_t *a, const json_t *b)
{
	if (held_by(a) || held_by(b))
		return str_eq(held_by(a), held_by(b)) &&
		       str_eq(get_text(a, "rail"), get_text(b, "rail"));
	return str_eq(get_text(a, "verdict"), get_text(b, "verdict")) &&
	       str_eq(get_text(a, "rail"), get_text(b, "rail")) &&
	       str_eq(get_text(a, "why"), get_text(b, "why"));
}

/* Peers that share a rail's fault, each counted once. */
static size_t count_peers(const json_t *group)
{
	size_t i, j, n = 0;
	json_t *a, *b;

	json_array_foreach (group, i, a) {
		bool seen = false;

		json_array_foreach (group, j, b) {
			if (j >= i || seen)
				break;
			seen = str_eq(get_text(a, "peer"), get_text(b, "peer"));
		}
		n += !seen;
	}
	return n;
}

/* Take all connections with the fault of @first out of @conns. */
static json_t *take_group(json_t *conns, const json_t *first)
{
	json_t *group = json_array();

	for (size_t i = 0; i < json_array_size(conns);) {
		json_t *x = json_array_get(conns, i);

		if (same_fault(x, first)) {
			(void)json_array_append(group, x);
			(void)json_array_remove(conns, i);
		} else {
			i++;
		}
	}
	return group;
}

static size_t count_fault(const json_t *conns, const json_t *first)
{
	size_t i, n = 0;
	json_t *x;

	json_array_foreach (conns, i, x)
		n += same_fault(x, first);
	return n;
}

/* What one connection of a peer explains is counted in that one's line. */
static void fold_peers(json_t *conns)
{
	for (size_t i = 0; i < json_array_size(conns); i++) {
		json_t *told = json_array_get(conns, i);
		const char *peer = get_text(told, "peer");
		int64_t n = 0;

		if (held_by(told) || is_local(get_text(told, "verdict")))
			continue;
		for (size_t j = 0; j < json_array_size(conns);) {
			json_t *x = json_array_get(conns, j);

			if (!is_held_by_peer(x) || !str_eq(get_text(x, "peer"), peer) ||
			    !str_eq(get_text(x, "own_verdict"), get_text(told, "verdict"))) {
				j++;
				continue;
			}
			n++;
			(void)json_array_remove(conns, j);
			i -= j < i;
		}
		if (n)
			(void)json_object_set_new(told, "held_too", json_integer(n));
	}
}

/* What one fault explains becomes one line, kept in @notes. */
static void fold_local(json_t *conns, json_t *notes)
{
	for (size_t i = 0; i < json_array_size(conns);) {
		json_t *x = json_incref(json_array_get(conns, i)), *group;
		const char *verdict = get_text(x, "verdict"), *why = get_text(x, "why");
		bool held = str_eq(verdict, "held");
		_cleanup_(freep) char *note = NULL;

		if (!is_local(verdict) ||
		    (!held && count_fault(conns, x) < FOLD_LEAST)) {
			json_decref(x);
			i++;
			continue;
		}
		group = take_group(conns, x);
		note = xasprintf("(%zu on rail %s %s%s%s; --all shows them)",
				 count_peers(group), get_shown(x, "rail"),
				 unit_word(verdict), why && *why ? ": " : "",
				 why ? why : "");
		(void)json_array_append_new(notes, json_string(note));
		json_decref(group);
		json_decref(x);
	}
}

static void conn_row(struct table *t, const json_t *x)
{
	const char *verdict = get_text(x, "verdict"), *why = get_text(x, "why");

	table_cell(t, TINT_NONE, "%s/%s", get_shown(x, "peer"), get_shown(x, "rail"));
	table_cell(t, TINT_NONE, "%s", get_shown(x, "transport"));
	table_cell(t, verdict_tint(verdict), "%s", unit_word(verdict));
	table_cell(t, TINT_NONE, "%s", unit_age(get_sec(x, "age_sec")));
	table_cell(t, TINT_NONE, "%s", connection_loss(x));
	table_cell(t, TINT_NONE, "%s", connection_rtt(x));
	if (get_count(x, "held_too"))
		table_cell(t, TINT_NONE, "%s; %" PRId64 " more held", why ? why : "",
			   get_count(x, "held_too"));
	else
		table_cell(t, TINT_NONE, "%s", why && !is_well(x) ? why : "");
}

/* A peer to which there is no connection at all. */
static void bare_row(struct table *t, const json_t *p)
{
	const char *verdict = get_text(p, "verdict"), *why = get_text(p, "why");
	const char *error = get_text(p, "resolve_error");

	table_cell(t, TINT_NONE, "%s", get_shown(p, "name"));
	table_cell(t, TINT_NONE, "-");
	table_cell(t, verdict_tint(verdict), "%s", unit_word(verdict));
	table_cell(t, TINT_NONE, "%s", unit_age(get_sec(p, "age_sec")));
	table_cell(t, TINT_NONE, "-");
	table_cell(t, TINT_NONE, "-");
	table_cell(t, TINT_NONE, "%s", why && *why ? why : error ? error : "");
}

static void put_table(const struct cli *c, const json_t *peers, const json_t *conns)
{
	/* clang-format off */
	static const struct column columns[] = {
		{"PEER/RAIL", false, 0}, {"TRANS", false, 0}, {"VERDICT", false, 0},
		{"FOR", false, 0}, {"LOSS", true, 0}, {"RTT p50/p99", false, 0},
		{"WHY", false, 0},
	};
	/* clang-format on */
	struct table *t = table_new(columns, ARRAY_LEN(columns));
	size_t i;
	json_t *o;

	json_array_foreach (conns, i, o)
		conn_row(t, o);
	json_array_foreach (peers, i, o)
		if (!json_array_size(get_array(o, "connections")) &&
		    !(c->not_ok && is_well(o)))
			bare_row(t, o);
	table_print(t, &c->layout);
	(void)table_free(t);
}

/* The probing of this host only: what peers send us is shown by fabctl connection. */
static void keep_tx(json_t *conns)
{
	for (size_t i = json_array_size(conns); i-- > 0;)
		if (!str_eq(get_text(json_array_get(conns, i), "direction"), "tx"))
			(void)json_array_remove(conns, i);
}

static void keep_not_ok(json_t *list)
{
	for (size_t i = json_array_size(list); i-- > 0;)
		if (is_well(json_array_get(list, i)))
			(void)json_array_remove(list, i);
}

static void keep_rail(json_t *conns, const char *rail)
{
	for (size_t i = json_array_size(conns); i-- > 0;)
		if (!str_eq(get_text(json_array_get(conns, i), "rail"), rail))
			(void)json_array_remove(conns, i);
}

static void put_list(const struct cli *c, const json_t *peers, json_t *conns)
{
	size_t total = json_array_size(peers), bad = 0, i;
	json_t *notes = json_array(), *o;

	keep_tx(conns);
	if (c->not_ok)
		keep_not_ok(conns);
	json_array_foreach (peers, i, o)
		bad += !is_well(o);
	if (c->not_ok && !c->all) {
		fold_peers(conns);
		fold_local(conns, notes);
	}
	put_table(c, peers, conns);
	json_array_foreach (notes, i, o)
		wrapped_line(&c->layout, json_string_value(o), 1);
	if (!total)
		(void)fputs("no peers configured\n", c->layout.out);
	else if (c->not_ok && !bad && !json_array_size(conns) &&
		 !json_array_size(notes))
		cli_all_are(c, total, "peer", "ok");
	json_decref(notes);
}

static void put_block(const struct cli *c, const json_t *p)
{
	_cleanup_(freep) char *addresses = get_joined(p, "addresses", " ");
	_cleanup_(freep) char *rails = get_joined(p, "rails", " ");
	const char *verdict = get_text(p, "verdict"), *why = get_text(p, "why");
	const char *error = get_text(p, "resolve_error");
	const struct layout *l = &c->layout;
	_cleanup_(freep) char *text =
		xasprintf("%s%s%s", unit_age(get_sec(p, "age_sec")),
			  why && *why ? ": " : "", why ? why : "");

	head_line(l, get_shown(p, "name"), verdict_tint(verdict), unit_word(verdict),
		  text, 2);
	block_line(l, "node", "%s", get_shown(p, "node"));
	block_line(l, "addresses", "%s", addresses);
	block_line(l, "rails", "%s", rails);
	if (error)
		block_line(l, "resolving", "%s", error);
	block_line(l, "since", "%s", get_shown(p, "since"));
}

static bool conn_is_of(const json_t *x, const json_t *p)
{
	return str_eq(get_text(x, "peer"), get_text(p, "name"));
}

/* Peers in blocks, each with its own table. */
static void put_blocks(const struct cli *c, const json_t *peers, json_t *conns)
{
	size_t i, j;
	json_t *p, *x;

	keep_tx(conns);
	json_array_foreach (peers, i, p) {
		json_t *own = json_array(), *none = json_array();

		json_array_foreach (conns, j, x)
			if (conn_is_of(x, p))
				(void)json_array_append(own, x);
		if (i)
			(void)fputc('\n', c->layout.out);
		put_block(c, p);
		put_table(c, none, own);
		json_decref(own);
		json_decref(none);
	}
}

static void keep_name(json_t *peers, const char *name)
{
	for (size_t i = json_array_size(peers); i-- > 0;)
		if (!str_eq(get_text(json_array_get(peers, i), "name"), name))
			(void)json_array_remove(peers, i);
}

/* The keys of those of a peer that are on this rail; false: there is none. */
static bool keep_connections_of(const json_t *peer, const char *rail)
{
	_cleanup_(freep) char *head = xasprintf("%s/%s:", get_shown(peer, "name"), rail);
	json_t *keys = json_object_get(peer, "connections");

	for (size_t i = json_array_size(keys); i-- > 0;) {
		const char *key = json_string_value(json_array_get(keys, i));

		if (!key || strncmp(key, head, strlen(head)))
			(void)json_array_remove(keys, i);
	}
	return json_array_size(keys) > 0;
}

static int no_connection(const char *name, const char *rail)
{
	return cli_error("peer %s has no connection on rail %s: fabctl peer %s", name, rail,
			 name);
}

static int show(struct cli *c, json_t *peers, const char *name, const char *rail)
{
	json_t *parameters = name ? json_pack("{s:s}", "peer", name) : NULL;
	json_t *conns =
		cli_list(c, "io.fabd.ListConnections", parameters, "connections");
	int r = EXIT_OK;

	if (!conns)
		return EXIT_ERROR;
	if (rail)
		keep_rail(conns, rail);
	if (rail && !json_array_size(conns)) {
		r = no_connection(name, rail);
	} else if ((c->verbose && json_array_size(peers)) || name) {
		size_t total = json_array_size(peers);

		if (c->not_ok)
			keep_not_ok(peers);
		if (!json_array_size(peers))
			cli_all_are(c, total, "peer", "ok");
		put_blocks(c, peers, conns);
	} else {
		put_list(c, peers, conns);
	}
	json_decref(conns);
	return r;
}

int show_peer(struct cli *c)
{
	_cleanup_(freep) char *name = NULL;
	const char *word, *rail = NULL;
	char *slash;
	int r;
	json_t *peers;

	if (!cli_one_word(c, &word))
		return EXIT_USAGE;
	if (word) {
		name = cli_name(word);
		slash = strchr(name, '/');
		if (slash) {
			*slash = '\0';
			rail = slash + 1;
		}
	}
	peers = cli_list(c, "io.fabd.ListPeers", NULL, "peers");
	if (!peers)
		return EXIT_ERROR;
	if (name)
		keep_name(peers, name);
	if (name && !json_array_size(peers)) {
		r = cli_error("no peer %s: fabctl peer lists them", name);
	} else if (cli_is_text(c)) {
		r = show(c, peers, name, rail);
	} else if (rail && !keep_connections_of(json_array_get(peers, 0), rail)) {
		r = no_connection(name, rail);
	} else {
		if (c->not_ok)
			keep_not_ok(peers);
		r = json_out(c, peers);
	}
	json_decref(peers);
	return r;
}
