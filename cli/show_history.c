/* SPDX-License-Identifier: BSD-2-Clause */
/* fabctl history: what became of what, newest first; many alike are one line. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "clean.h"
#include "cli.h"
#include "fields.h"
#include "json_out.h"
#include "units.h"

/* So many peers that changed alike within so many seconds are told as one. */
#define FOLD_LEAST 3
#define FOLD_SEC   2.0

struct row { /* of the output; texts owned */
	char *at, *name, *change, *why;
};

struct view {
	const struct cli *cli;
	struct row *rows;
	size_t n;
	int name_width, change_width;
};

/* PEER and RAIL of a connection's key, in buffers of the caller. */
static void split_key(const char *key, char peer[128], char rail[128])
{
	const char *slash = key ? strchr(key, '/') : NULL;
	const char *colon = slash ? strchr(slash, ':') : NULL;

	peer[0] = rail[0] = '\0';
	if (!colon)
		return;
	(void)snprintf(peer, 128, "%.*s", (int)(slash - key), key);
	(void)snprintf(rail, 128, "%.*s", (int)(colon - slash - 1), slash + 1);
}

static bool is_connection(const json_t *x)
{
	return str_eq(get_text(x, "kind"), "connection");
}

static bool is_held(const json_t *x)
{
	return str_eq(get_text(x, "to"), "held");
}

/* Held by its own peer: another way to it tells of the same. */
static bool held_by_peer(const json_t *x)
{
	char peer[128], rail[128];

	split_key(get_text(x, "name"), peer, rail);
	return is_held(x) && *peer && str_eq(get_text(x, "held_by"), peer);
}

static bool alike(const json_t *a, const json_t *b)
{
	char peer_a[128], rail_a[128], peer_b[128], rail_b[128];

	if (!is_connection(b) || !str_eq(get_text(a, "to"), get_text(b, "to")) ||
	    !str_eq(get_text(a, "held_by"), get_text(b, "held_by")) ||
	    (!is_held(a) && !str_eq(get_text(a, "from"), get_text(b, "from"))) ||
	    get_sec(b, "age_sec") - get_sec(a, "age_sec") > FOLD_SEC)
		return false;
	split_key(get_text(a, "name"), peer_a, rail_a);
	split_key(get_text(b, "name"), peer_b, rail_b);
	return held_by_peer(a) ? str_eq(peer_a, peer_b) : str_eq(rail_a, rail_b);
}

/* All that are like the first of @list. */
static json_t *find_alike(const json_t *list)
{
	const json_t *first = json_array_get(list, 0);
	json_t *group = json_array(), *x;
	size_t i;

	json_array_foreach (list, i, x) {
		if (get_sec(x, "age_sec") - get_sec(first, "age_sec") > FOLD_SEC)
			break; /* the list is in the order of time */
		if (alike(first, x))
			(void)json_array_append(group, x);
	}
	return group;
}

static void take_out(json_t *list, const json_t *group)
{
	size_t i = 0, j;
	json_t *x;

	json_array_foreach (group, j, x) { /* in the order of the list */
		while (json_array_get(list, i) != x)
			i++;
		(void)json_array_remove(list, i);
	}
}

/* How many peers, each counted once; those that fabd counted only are others. */
static int64_t count_peers(const json_t *group)
{
	char peer[128], rail[128], other[128];
	int64_t n = 0;
	size_t i, j;
	json_t *a, *b;

	json_array_foreach (group, i, a) {
		bool seen = false;

		split_key(get_text(a, "name"), peer, rail);
		n += get_count(a, "more");
		json_array_foreach (group, j, b) {
			if (j >= i || seen)
				break;
			split_key(get_text(b, "name"), other, rail);
			seen = str_eq(peer, other);
		}
		n += !seen;
	}
	return n;
}

static void add_row(struct view *v, const char *at, char *name, char *change, char *why)
{
	v->rows = xrealloc(v->rows, v->n + 1, sizeof(*v->rows));
	v->rows[v->n++] = (struct row){xstrdup(at ? at : "-"), name, change, why};
	v->name_width = MAX(v->name_width, text_width(name));
	v->change_width = MAX(v->change_width, text_width(change));
}

static const char *word(const json_t *x, const char *key)
{
	return str_eq(get_text(x, "kind"), "port") ? unit_health(get_text(x, key))
						   : unit_word(get_text(x, key));
}

static char *change_text(const json_t *x)
{
	if (!get_text(x, "from"))
		return xstrdup(word(x, "to"));
	return xasprintf("%s > %s", word(x, "from"), word(x, "to"));
}

static void add_group(struct view *v, const json_t *group, int64_t peers)
{
	const json_t *x = json_array_get(group, 0);
	const char *why = get_text(x, "why"), *by = get_text(x, "held_by");
	char peer[128], rail[128], *name, *change;

	split_key(get_text(x, "name"), peer, rail);
	if (held_by_peer(x)) {
		name = xstrdup(peer);
		change = xasprintf("%zu connections held", json_array_size(group));
	} else {
		_cleanup_(freep) char *each = change_text(x);

		name = xasprintf("rail %s", rail);
		change = xasprintf("%" PRId64 " peers %s", peers,
				   is_held(x) ? "held" : each);
	}
	add_row(v, get_text(x, "at"), name, change,
		by ? xasprintf("cause %s", by) : xstrdup(why ? why : ""));
}

static void add_one(struct view *v, const json_t *x)
{
	const char *name = get_shown(x, "name"), *why = get_text(x, "why");
	int64_t more = get_count(x, "more");
	char peer[128], rail[128];
	char *shown, *text;

	split_key(is_connection(x) ? name : NULL, peer, rail);
	if (*peer && !v->cli->verbose) { /* PEER/RAIL and the transport */
		const char *after = strchr(name, ':');
		const char *t = after ? strchr(after + 1, ':') : NULL;
		int n = t ? (int)strcspn(t + 1, ":") : 0;

		shown = xasprintf("%s/%s%s%.*s", peer, rail, n ? " " : "", n,
				  t ? t + 1 : "");
	} else {
		shown = xstrdup(name);
	}
	text = more ? xasprintf("%s (and %" PRId64 " more)", why ? why : "", more)
		    : xstrdup(why ? why : "");
	add_row(v, get_text(x, "at"), shown, change_text(x), text);
}

static void fold(struct view *v, json_t *list)
{
	while (json_array_size(list)) {
		json_t *x = json_array_get(list, 0), *group = NULL;
		int64_t peers = 0;

		if (is_connection(x) && !v->cli->all) {
			group = find_alike(list);
			peers = count_peers(group);
		}
		if (peers >= FOLD_LEAST ||
		    (group && is_held(x) && json_array_size(group) > 1)) {
			add_group(v, group, peers);
			take_out(list, group);
		} else {
			add_one(v, x);
			(void)json_array_remove(list, 0);
		}
		json_decref(group);
	}
}

static void put_rows(const struct view *v)
{
	FILE *out = v->cli->layout.out;
	char day[16] = "";

	for (size_t i = 0; i < v->n; i++) {
		const struct row *r = &v->rows[i];
		_cleanup_(freep) char *line = NULL;

		if (strlen(r->at) > 10 && strncmp(r->at, day, 10)) {
			(void)snprintf(day, sizeof(day), "%.10s", r->at);
			(void)fprintf(out, "-- %s\n", day);
		}
		line = xasprintf("%s %s%*s %s%*s%s%s", unit_clock(r->at), r->name,
				 v->name_width - text_width(r->name), "", r->change,
				 *r->why ? v->change_width - text_width(r->change) : 0, "",
				 *r->why ? " " : "", r->why);
		wrapped_line(&v->cli->layout, line, text_width(unit_clock(r->at)) + 1);
	}
}

static void view_done(struct view *v)
{
	for (size_t i = 0; i < v->n; i++) {
		free(v->rows[i].at);
		free(v->rows[i].name);
		free(v->rows[i].change);
		free(v->rows[i].why);
	}
	free(v->rows);
}

int show_history(struct cli *c)
{
	struct view v = {.cli = c};
	json_t *parameters = json_object(), *list;
	_cleanup_(freep) char *name = NULL;
	const char *one;
	int r = EXIT_OK;

	if (!cli_one_word(c, &one)) {
		json_decref(parameters);
		return EXIT_USAGE;
	}
	if (one) {
		name = cli_name(one);
		(void)json_object_set_new(parameters, "name", json_string(name));
	}
	if (c->since > 0)
		(void)json_object_set_new(parameters, "since_sec",
					  json_integer(c->since));
	list = cli_list(c, "io.fabd.ListHistory", parameters, "changes");
	if (!list)
		return EXIT_ERROR;
	if (!cli_is_text(c)) {
		r = json_out(c, list);
	} else if (!json_array_size(list)) {
		(void)fprintf(c->layout.out, "no change%s%s%s\n", name ? " of " : "",
			      name ? name : "", c->since > 0 ? " in that time" : "");
	} else {
		fold(&v, list);
		put_rows(&v);
		view_done(&v);
	}
	json_decref(list);
	return r;
}
