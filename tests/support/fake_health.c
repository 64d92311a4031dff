/* SPDX-License-Identifier: BSD-2-Clause */
#include "fake_health.h"

#include <stdbool.h>
#include <stdlib.h>

#define SINCE "2026-11-30T20:41:07.118Z"

static json_t *must(json_t *o)
{
	if (!o)
		abort();
	return o;
}

static json_t *change(const char *from, const char *to, const char *source, const char *why,
		      double age)
{
	return must(json_pack("{s:s, s:f, s:s, s:s, s:s, s:s}", "at", SINCE, "age_sec", age,
			      "from", from, "to", to, "source", source, "why", why));
}

static json_t *reason(const char *code, const char *text, json_t *value, json_t *limit,
		      double age)
{
	return must(json_pack("{s:s, s:s, s:o, s:o, s:s, s:f}", "code", code, "text", text,
			      "value", value, "limit", limit, "since", SINCE, "age_sec",
			      age));
}

json_t *fake_health_well(void)
{
	return must(json_pack(
		"{s:[], s:[o], s:{s:i, s:i}, s:i, s:f, s:b, s:n, s:s, s:s, s:f}", "reasons",
		"history", change("unknown", "ok", "start", "", 3542400.0), "baseline",
		"lanes", 4, "lane_mbps", 100000, "flaps", 0, "flap_penalty", 0.0, "damped",
		false, "damped_until", "far_name", "leaf07/22", "far_source", "mad",
		"counters_age_sec", 12.0));
}

json_t *fake_health_degraded(void)
{
	return must(json_pack(
		"{s:[o, o, o], s:[o, o], s:{s:i, s:i}, s:i, s:f, s:b, s:s}", "reasons",
		reason("counter", "link_error_recovery 3, limit 2/h", json_real(3),
		       json_real(2), 2340.0),
		reason("flap", "flapped 3 times, penalty 2610, until 750", json_real(2610.5),
		       json_real(750), 300.0),
		reason("width", "width 2x of 4x", json_real(2), json_real(4), 518400.0),
		"history", change("unknown", "ok", "start", "", 3542400.0),
		change("ok", "degraded", "mad", "width 2x of 4x", 518400.0), "baseline",
		"lanes", 4, "lane_mbps", 100000, "flaps", 3, "flap_penalty", 2610.5,
		"damped", true, "damped_until", "2026-11-30T21:08:07.118Z"));
}

json_t *fake_health_down(void)
{
	return must(json_pack(
		"{s:[o], s:[o, o], s:n, s:n, s:i, s:f, s:f}", "reasons",
		reason("link", "link DOWN POLLING", json_null(), json_null(), 192.0),
		"history", change("unknown", "ok", "start", "", 3542400.0),
		change("ok", "bad", "async", "link DOWN POLLING", 192.0), "far_name",
		"far_source", "flaps", 1, "flap_penalty", 862.4, "counters_age_sec", 204.0));
}

/* ---- counters ---- */

struct row {
	const char *name, *kind, *limit, *source, *unavailable;
	json_int_t value, raw, amount;
	int resets;
	bool over, saturated;
};

static json_t *counter(const struct row *r, json_int_t since_sec)
{
	bool known = r->source != NULL;
	json_t *o = must(json_pack("{s:s, s:s, s:s?, s:b, s:b, s:i, s:s?, s:s?}", "name",
				   r->name, "kind", r->kind, "limit", r->limit, "over",
				   (int)r->over, "saturated", (int)r->saturated, "resets",
				   r->resets, "source", r->source, "unavailable",
				   r->unavailable));

	(void)json_object_set_new(o, "value", known ? json_integer(r->value) : json_null());
	(void)json_object_set_new(o, "raw", known ? json_integer(r->raw) : json_null());
	(void)json_object_set_new(o, "amount", known ? json_integer(r->amount) : json_null());
	(void)json_object_set_new(
		o, "since_sec", known ? json_real((double)since_sec + 12.5) : json_null());
	(void)json_object_set_new(o, "over_since", r->over ? json_string(SINCE) : json_null());
	(void)json_object_set_new(o, "saturated_age_sec",
				  r->saturated ? json_real(86400.0) : json_null());
	(void)json_object_set_new(o, "reset_age_sec",
				  r->resets ? json_real(7200.0) : json_null());
	return o;
}

json_t *fake_counters(const char *port, int64_t since_sec)
{
	static const struct row rows[] = {
		{"symbol_error", "error", "120/h", "pma", NULL, 310, 310, 12, 0, false, false},
		{"link_error_recovery", "error", "2/h", "pma", NULL, 9, 9, 3, 0, true, false},
		{"link_downed", "error", "4/h", "pma", NULL, 261, 6, 0, 1, false, false},
		{"port_rcv_errors", "error", "10/h", "pma", NULL, 65535, 65535, 0, 0, false,
		 true},
		{"port_xmit_wait", "info", NULL, "pma", NULL, 91402118, 91402118, 91402118, 0,
		 false, false},
		{"port_xmit_data", "traffic", NULL, "pma_ext", NULL, 1844674407370955,
		 461168601842738, 43980465111, 0, false, false},
		{"out_of_sequence", "error", "off", NULL, "no_verbs", 0, 0, 0, 0, false,
		 false},
		{"rx_pause", "info", NULL, NULL, "no_netdev", 0, 0, 0, 0, false, false},
	};
	json_t *a = json_array();

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		(void)json_array_append_new(a, counter(&rows[i], (json_int_t)since_sec));
	return must(json_pack("{s:s, s:f, s:f, s:o}", "port", port, "window_sec",
			      (double)since_sec, "read_age_sec", 12.0, "counters", a));
}
