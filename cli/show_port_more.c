/* SPDX-License-Identifier: BSD-2-Clause */
/* fabctl port -v: why the health is what it is, how it came to be, and tables. */
#include <inttypes.h>
#include <stdio.h>

#include "clean.h"
#include "cli.h"
#include "fields.h"
#include "units.h"

/* " (3, limit 2)", unless the text has the number already. */
static void reason_numbers(const json_t *reason, char buf[64])
{
	double value = get_sec(reason, "value"), limit = get_sec(reason, "limit");
	char number[32] = "";

	buf[0] = '\0';
	str_append(number, sizeof(number), "%.10g", value);
	if (value < 0 || strstr(get_shown(reason, "text"), number))
		return;
	if (limit >= 0)
		str_append(buf, 64, " (%s, limit %.10g)", number, limit);
	else
		str_append(buf, 64, " (%s)", number);
}

void put_port_reasons(const struct layout *l, const json_t *port)
{
	const json_t *reason;
	char numbers[64];
	size_t i;

	json_array_foreach (get_array(port, "reasons"), i, reason) {
		reason_numbers(reason, numbers);
		block_line(l, i ? "" : "reasons", "%s: %s%s, for %s",
			   unit_word(get_text(reason, "code")),
			   get_shown(reason, "text"), numbers,
			   unit_age(get_sec(reason, "age_sec")));
	}
}

/* The youngest first, as the daemon gives them or not. */
static int by_age(const json_t *a, const json_t *b)
{
	double x = get_sec(a, "age_sec"), y = get_sec(b, "age_sec");

	return x < y ? -1 : x > y;
}

void put_port_history(const struct layout *l, const json_t *port)
{
	json_t *history = get_array(port, "history"), *h;
	size_t i;

	if (history)
		json_sort(history, by_age);
	json_array_foreach (history, i, h) {
		const char *why = get_text(h, "why");

		block_line(l, i ? "" : "history", "%s (%s), %s > %s, %s%s%s",
			   get_shown(h, "at"), unit_ago(get_sec(h, "age_sec")),
			   unit_health(get_text(h, "from")),
			   unit_health(get_text(h, "to")),
			   unit_word(get_text(h, "source")), why && *why ? ": " : "",
			   why ? why : "");
	}
}

/* What the port used to have, and how often it went down and up of late. */
void put_port_baseline(const struct layout *l, const json_t *port)
{
	const json_t *b = get_object(port, "baseline");
	int64_t flaps = 0;
	double penalty = get_sec(port, "flap_penalty");
	const char *until = get_text(port, "damped_until");

	if (b)
		block_line(l, "had before", "%" PRId64 "x, %s a lane",
			   get_count(b, "lanes"), unit_rate(get_count(b, "lane_mbps")));
	if (get_int(port, "flaps", &flaps) && (flaps || penalty > 0))
		block_line(l, "flaps", "%" PRId64 ", penalty %.0f%s%s%s", flaps,
			   MAX(penalty, 0), get_true(port, "damped") ? ", damped" : "",
			   get_true(port, "damped") && until ? " until " : "",
			   get_true(port, "damped") && until ? until : "");
}

static void put_weights(const struct layout *l, const char *label, const json_t *list)
{
	char text[512] = "";
	const json_t *w;
	size_t i;

	json_array_foreach (list, i, w)
		str_append(text, sizeof(text), "%s%" PRId64 ":%" PRId64, i ? " " : "",
			   get_count(w, "vl"), get_count(w, "weight"));
	block_line(l, label, "%s", *text ? text : "-");
}

/* Lines that are alike are told once: "in 1-8: 0 1 2 ...". */
static void put_slvl_row(const struct layout *l, bool first, int64_t from, int64_t to,
			 const json_t *vls)
{
	char text[128] = "", ports[32] = "";
	const json_t *v;
	size_t i;

	json_array_foreach (vls, i, v)
		str_append(text, sizeof(text), "%s%" JSON_INTEGER_FORMAT, i ? " " : "",
			   json_integer_value(v));
	str_append(ports, sizeof(ports), "%" PRId64, from);
	if (to != from)
		str_append(ports, sizeof(ports), "-%" PRId64, to);
	block_line(l, first ? "sl to vl" : "", "in %s: %s", ports, *text ? text : "-");
}

static void put_slvl(const struct layout *l, const json_t *list)
{
	size_t n = json_array_size(list);

	for (size_t i = 0, k; i < n; i = k) {
		const json_t *row = json_array_get(list, i), *last = row;
		const json_t *vls = get_array(row, "vls");

		for (k = i + 1; k < n; k++) {
			const json_t *next = json_array_get(list, k);

			if (get_count(next, "in_port") !=
				    get_count(last, "in_port") + 1 ||
			    !json_equal(get_array(next, "vls"), vls))
				break;
			last = next;
		}
		put_slvl_row(l, i == 0, get_count(row, "in_port"),
			     get_count(last, "in_port"), vls);
	}
}

void put_qos(const struct layout *l, const json_t *o)
{
	const json_t *slvl = get_array(o, "sl2vl"), *arb = get_object(o, "vlarb");

	if (slvl)
		put_slvl(l, slvl);
	if (arb) {
		put_weights(l, "vl arb high", get_array(arb, "high"));
		put_weights(l, "vl arb low", get_array(arb, "low"));
	}
}
