/* SPDX-License-Identifier: BSD-2-Clause */
/* fabctl monitor: a line a change, as it happens. */
#include <inttypes.h>
#include <stdio.h>

#include "clean.h"
#include "cli.h"
#include "fields.h"
#include "json_out.h"
#include "units.h"

struct monitor_view {
	const struct cli *cli; /* borrowed */
	char day[16];	       /* of the last line */
	int name_width;	       /* columns align with the longest name so far */
	int kind_width;
	bool failed;
};

/* Values of closed sets as everywhere else: "bad" is FAILED, "reset_done" has a hyphen;
 * others are what they are. */
static const char *value_text(const json_t *e, const char *key)
{
	const char *change = get_text(e, "change"), *text = get_text(e, key);

	if (str_eq(change, "health"))
		return unit_health(text);
	if (str_eq(change, "facts"))
		return text && *text ? text : "-";
	return unit_word(text);
}

static void put_change(struct monitor_view *v, const json_t *e)
{
	const char *from = get_text(e, "from"), *to = get_text(e, "to");
	const char *why = get_text(e, "why"), *name = get_shown(e, "name");
	bool event = str_eq(get_text(e, "change"), "state") &&
		     str_eq(get_text(e, "kind"), "connection");
	const char *kind = unit_word(get_text(e, "kind"));
	const char *change = unit_word(get_text(e, "change"));
	FILE *out = v->cli->layout.out;

	v->kind_width = MAX(v->kind_width, text_width(kind));
	v->name_width = MAX(v->name_width, text_width(name));
	if (v->cli->verbose)
		(void)fprintf(out, "%" PRId64 " ", get_count(e, "seq"));
	(void)fprintf(out, "%s %s%*s %s%*s %s", unit_clock(get_text(e, "at")), kind,
		      v->kind_width - text_width(kind), "", name,
		      v->name_width - text_width(name), "", change);
	if (from || to)
		(void)fprintf(out, " %s > %s", value_text(e, "from"),
			      value_text(e, "to"));
	(void)fprintf(out, "%s%s\n", why && *why ? "  " : "",
		      !why ? "" : event ? unit_word(why) : why);
}

static void put_event(struct monitor_view *v, const json_t *e)
{
	const char *at = get_text(e, "at");
	int64_t lost = get_count(e, "lost");
	FILE *out = v->cli->layout.out;
	char day[16] = "";

	if (at && strlen(at) > 10)
		str_append(day, sizeof(day), "%.10s", at);
	if (*day && !str_eq(day, v->day)) {
		(void)fprintf(out, "-- %s\n", day);
		(void)str_copy(v->day, sizeof(v->day), day);
	}
	if (lost)
		(void)fprintf(out,
			      "-- %" PRId64 " changes before this line were lost\n",
			      lost);
	if (str_eq(get_text(e, "kind"), "start"))
		(void)fprintf(out, "-- %s after change %" PRId64 " of instance %s\n",
			      unit_clock(at), get_count(e, "seq"),
			      get_shown(e, "instance"));
	else
		put_change(v, e);
}

static bool on_event(void *user, json_t *parameters)
{
	struct monitor_view *v = user;
	json_t *e = get_object(parameters, "event");

	if (!e) {
		(void)cli_error("an event without content: is this fabd?");
		v->failed = true;
		return false;
	}
	if (cli_is_text(v->cli))
		put_event(v, e);
	else
		(void)json_out(v->cli, e);
	return fflush(v->cli->layout.out) == 0;
}

int show_monitor(struct cli *c)
{
	struct monitor_view v = {.cli = c, .kind_width = 10, .name_width = 10};
	struct client *client;
	json_t *parameters;

	if (c->argc)
		return cli_usage("monitor takes no name, and '%s' is one", c->argv[0]);
	if (c->instance && c->since < 0)
		return cli_usage("--instance says whose number --since is: give both");
	client = cli_client(c, false);
	if (!client)
		return EXIT_ERROR;
	parameters = json_object();
	if (c->since >= 0)
		(void)json_object_set_new(parameters, "since", json_integer(c->since));
	if (c->instance)
		(void)json_object_set_new(parameters, "instance",
					  json_string(c->instance));
	if (client_stream(client, "io.fabd.Monitor", parameters, on_event, &v) < 0)
		return EXIT_ERROR;
	return v.failed ? EXIT_ERROR : EXIT_OK;
}
