/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fabctl explain: the way of a connection from the peer's name to its heartbeats, a step a
 * line, the first wrong one marked, and where to act.
 */
#include <stdio.h>
#include <stdlib.h>

#include "clean.h"
#include "cli.h"
#include "fields.h"
#include "json_out.h"
#include "names.h"
#include "units.h"

static const struct {
	const char *name, *shown;
	enum tint tint;
} marks[] = {
	{"ok", "ok", TINT_GOOD},
	{"bad", "BAD", TINT_BAD},
	{"warn", "!!", TINT_WARN},
	{"skipped", "--", TINT_NONE},
};

/* "sa_path" as "sa path". */
static char *step_words(const json_t *step)
{
	char *words = xstrdup(get_shown(step, "step"));

	for (char *p = words; *p; p++)
		if (*p == '_')
			*p = ' ';
	return words;
}

static void put_step(const struct layout *l, const json_t *step)
{
	_cleanup_(freep) char *words = step_words(step);
	const char *mark = get_text(step, "mark"), *text = get_text(step, "text");
	size_t i = 0;

	while (i < ARRAY_LEN(marks) && !str_eq(marks[i].name, mark))
		i++;
	mark_line(l, i < ARRAY_LEN(marks) ? marks[i].tint : TINT_NONE,
		  i < ARRAY_LEN(marks) ? marks[i].shown : "?", words, text ? text : "");
}

/* "verdict held (peer-down), remote: WHY. Act there." */
static void put_verdict(const struct layout *l, const json_t *e)
{
	const char *verdict = get_text(e, "verdict"), *own = get_text(e, "own_verdict");
	const char *place = get_text(e, "place"), *why = get_text(e, "why");
	const char *act = get_text(e, "act");
	bool other = own && !str_eq(own, verdict);
	bool somewhere = place && !str_eq(place, "nowhere");
	size_t n = why ? strlen(why) : 0;
	_cleanup_(freep) char *text = NULL;

	while (n && strchr(". ", why[n - 1]))
		n--;
	text = xasprintf("verdict %s%s%s%s%s%s%s%.*s%s%s", unit_word(verdict),
			 other ? " (" : "", other ? unit_word(own) : "", other ? ")" : "",
			 somewhere ? ", " : "", somewhere ? unit_word(place) : "",
			 n ? ": " : "", (int)n, why ? why : "",
			 act && *act ? ". " : "", act ? act : "");
	wrapped_line(l, text, 2);
}

static void put_explanation(const struct cli *c, const json_t *e)
{
	const json_t *step;
	size_t i;

	json_array_foreach (get_array(e, "steps"), i, step)
		if (c->verbose || !get_true(step, "detail"))
			put_step(&c->layout, step);
	put_verdict(&c->layout, e);
}

static bool set_transport(json_t *parameters, const char *name)
{
	int t = enum_find(&transport_names, name);

	if (t < 0) {
		(void)cli_usage("--transport takes udp, rc or ud here, not '%s'", name);
		return false;
	}
	(void)json_object_set_new(parameters, "transport",
				  json_string(enum_name(&transport_names, t)));
	return true;
}

/* The key of a probe. false: told. */
static bool set_key(json_t *parameters, const char *key, const char *transport)
{
	if (transport)
		(void)cli_usage("a key names its transport: no --transport with %s", key);
	else if (!strstr(key, ":tx:"))
		(void)cli_usage("%s is what the peer probes: explain it there", key);
	else
		(void)json_object_set_new(parameters, "connection", json_string(key));
	return json_object_get(parameters, "connection") != NULL;
}

/* PEER, PEER/RAIL, or a connection's key. NULL: told. */
static json_t *parameters_of(const struct cli *c)
{
	_cleanup_(freep) char *name = cli_name(c->argv[0]);
	_cleanup_(freep) char *key = xstrdup(name);
	char *rail = strchr(name, '/');
	const char *transport = c->ping.transport;
	json_t *p = json_object();
	bool good;

	if (rail)
		*rail++ = '\0';
	(void)json_object_set_new(p, "peer", json_string(name));
	if (rail && strchr(rail, ':')) {
		good = set_key(p, key, transport);
	} else {
		if (rail)
			(void)json_object_set_new(p, "rail", json_string(rail));
		good = !transport || set_transport(p, transport);
	}
	if (good)
		return p;
	json_decref(p);
	return NULL;
}

int explain_peer(struct cli *c)
{
	json_t *parameters, *e;
	int r = EXIT_OK;

	if (c->argc != 1)
		return cli_usage("usage: fabctl explain PEER[/RAIL]|KEY [--transport ud]");
	parameters = parameters_of(c);
	if (!parameters)
		return EXIT_USAGE;
	e = cli_get(c, "io.fabd.Explain", parameters, "explanation");
	if (!e)
		return EXIT_ERROR;
	if (cli_is_text(c))
		put_explanation(c, e);
	else
		r = json_out(c, e);
	json_decref(e);
	return r;
}
