/* SPDX-License-Identifier: BSD-2-Clause */
/* fabctl port counters: how much came in a time, and whether that is too much. */
#include <inttypes.h>
#include <stdio.h>

#include "cli.h"
#include "fields.h"
#include "json_out.h"
#include "units.h"

/* What the daemon keeps may begin later than was asked; so much is no difference. */
#define WINDOW_SLACK 0.95

/* "+91,402,118"; "-" if it is not known. */
static char *amount_text(const json_t *counter)
{
	int64_t v;
	char digits[24], text[40] = "+";
	size_t n;

	if (!get_int(counter, "amount", &v) || v < 0)
		return xstrdup("-");
	(void)snprintf(digits, sizeof(digits), "%" PRId64, v);
	n = strlen(digits);
	for (size_t i = 0; i < n; i++)
		str_append(text, sizeof(text), "%s%c", i && (n - i) % 3 == 0 ? "," : "",
			   digits[i]);
	return xstrdup(text);
}

static bool is_kind(const json_t *counter, const char *kind)
{
	return str_eq(get_text(counter, "kind"), kind);
}

static bool is_known(const json_t *counter)
{
	return get_text(counter, "unavailable") == NULL;
}

/* Errors that did not happen and what the port does not count are left out. */
static bool is_shown(const struct cli *c, const json_t *counter)
{
	int64_t amount = 0;

	if (c->not_ok)
		return get_true(counter, "over");
	if (c->verbose)
		return true;
	return is_known(counter) &&
	       (get_true(counter, "over") || get_true(counter, "saturated") ||
		get_count(counter, "resets") ||
		(get_int(counter, "amount", &amount) && amount));
}

/* The limit has a window of its own, whatever window is shown. */
static const char *limit_text(const json_t *counter)
{
	const char *limit = get_text(counter, "limit");

	if (!is_known(counter) || !is_kind(counter, "error"))
		return "-";
	return !limit || str_eq(limit, "off") ? "none" : limit;
}

/* "20:02:11Z": to the second, as counters are read. */
static const char *clock_text(const char *rfc3339, char buf[64])
{
	const char *clock = unit_clock(rfc3339), *dot = strchr(clock, '.');

	buf[0] = '\0';
	str_append(buf, 64, "%.*s%s", dot ? (int)(dot - clock) : 60, clock,
		   dot ? "Z" : "");
	return buf;
}

/* "OVER since 20:02:11Z; saturated 3m ago" */
static char *state_text(const json_t *counter, double window)
{
	const char *why = get_text(counter, "unavailable"),
		   *since = get_text(counter, "over_since");
	double known = get_sec(counter, "since_sec");
	int64_t resets = get_count(counter, "resets");
	char text[256] = "", clock[64];

	if (why)
		return xstrdup(unit_word(why));
	if (get_true(counter, "over"))
		str_append(text, sizeof(text), "OVER%s%s", since ? " since " : "",
			   since ? clock_text(since, clock) : "");
	else
		str_append(text, sizeof(text), "%s",
			   is_kind(counter, "error")
				   ? "ok"
				   : unit_word(get_text(counter, "kind")));
	if (get_true(counter, "saturated"))
		str_append(text, sizeof(text), "%ssaturated %s", *text ? "; " : "",
			   unit_ago(get_sec(counter, "saturated_age_sec")));
	if (resets)
		str_append(text, sizeof(text), "%sreset by others x%" PRId64 ", %s",
			   *text ? "; " : "", resets,
			   unit_ago(get_sec(counter, "reset_age_sec")));
	if (known >= 0 && known < window * WINDOW_SLACK)
		str_append(text, sizeof(text), "%sin %s", *text ? "; " : "",
			   unit_age(known));
	return xstrdup(text);
}

/* How far back the counters are known, at most as far as was asked. */
static double known_window(const json_t *counters)
{
	const json_t *counter;
	double most = -1;
	size_t i;

	json_array_foreach (get_array(counters, "counters"), i, counter)
		most = MAX(most, get_sec(counter, "since_sec"));
	return most < 0 ? get_sec(counters, "window_sec") : most;
}

static void put_row(const struct cli *c, struct table *t, const json_t *counter,
		    double window)
{
	_cleanup_(freep) char *amount = amount_text(counter);
	_cleanup_(freep) char *state = state_text(counter, window);
	char number[24];
	enum tint tint = get_true(counter, "over") ? TINT_BAD : TINT_NONE;

	table_cell(t, TINT_NONE, "%s", get_shown(counter, "name"));
	table_cell(t, tint, "%s", amount);
	if (c->verbose) {
		table_cell(t, TINT_NONE, "%s", get_number(counter, "value", number));
		table_cell(t, TINT_NONE, "%s", get_number(counter, "raw", number));
		table_cell(t, TINT_NONE, "%s", unit_word(get_text(counter, "source")));
	}
	table_cell(t, TINT_NONE, "%s", limit_text(counter));
	table_cell(t, tint, "%s", state);
}

static void put_counters(const struct cli *c, const json_t *counters, const char *port)
{
	/* clang-format off */
	static const struct column few[] = {
		{"COUNTER", false, 0}, {"AMOUNT", true, 0}, {"LIMIT", false, 0},
		{"STATE", false, 0},
	};
	static const struct column all[] = {
		{"COUNTER", false, 0}, {"AMOUNT", true, 0}, {"TOTAL", true, 0},
		{"REGISTER", true, 0}, {"SOURCE", false, 0}, {"LIMIT", false, 0},
		{"STATE", false, 0},
	};
	/* clang-format on */
	struct table *t = c->verbose ? table_new(all, ARRAY_LEN(all))
				     : table_new(few, ARRAY_LEN(few));
	double asked = get_sec(counters, "window_sec"), window = known_window(counters);
	const json_t *list = get_array(counters, "counters"), *counter;
	FILE *out = c->layout.out;
	size_t i, hidden = 0;

	(void)fprintf(out, "%s in the last %s%s, read %s\n", port, unit_age(window),
		      window >= 0 && window < asked * WINDOW_SLACK
			      ? ", which is all that is known"
			      : "",
		      unit_ago(get_sec(counters, "read_age_sec")));
	json_array_foreach (list, i, counter) {
		if (is_shown(c, counter))
			put_row(c, t, counter, window);
		else
			hidden++;
	}
	table_print(t, &c->layout);
	if (c->not_ok && !table_rows(t) && json_array_size(list))
		(void)fputs("no counter is over its limit\n", out);
	else if (!c->not_ok && hidden)
		(void)fprintf(out, "(%s%zu %scounted nothing or cannot be read; -v)\n",
			      table_rows(t) ? "" : "all ", hidden,
			      table_rows(t) ? "more " : "");
	(void)table_free(t);
}

static void keep_not_ok(json_t *counters)
{
	json_t *list = get_array(counters, "counters");

	for (size_t i = json_array_size(list); i-- > 0;)
		if (!get_true(json_array_get(list, i), "over"))
			(void)json_array_remove(list, i);
}

int show_counters(struct cli *c)
{
	_cleanup_(freep) char *name = NULL;
	json_t *parameters, *counters, *list;
	int r = EXIT_OK;

	if (c->argc != 1)
		return cli_usage("usage: fabctl port counters DEV/PORT [--since 1h]");
	name = cli_name(c->argv[0]);
	parameters = json_pack("{s:s}", "port", name);
	if (c->since > 0)
		(void)json_object_set_new(parameters, "since_sec",
					  json_integer(c->since));
	counters = cli_get(c, "io.fabd.GetPortCounters", parameters, "counters");
	if (!counters)
		return EXIT_ERROR;
	if (cli_is_text(c)) {
		put_counters(c, counters, name);
	} else {
		if (c->not_ok)
			keep_not_ok(counters);
		/* A line a counter: what one greps for. */
		list = c->oneline ? get_array(counters, "counters") : NULL;
		r = json_out(c, list ? list : counters);
	}
	json_decref(counters);
	return r;
}
