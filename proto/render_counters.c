/* SPDX-License-Identifier: BSD-2-Clause */
/* What is remembered of a port's health, and its counters. */
#include <stdio.h>
#include <stdlib.h>

#include "render.h"

/* 0 stands for "there is none": a reason without a number. */
static json_t *number_or_null(double v)
{
	return v != 0 ? json_real(v) : json_null();
}

static json_t *render_reasons(const struct port_watch *w, const struct render_time *t)
{
	json_t *a = json_array();

	for (int i = 0; i < w->n_reasons; i++) {
		const struct port_reason *r = &w->reasons[i];
		json_t *o = json_object();

		render_text(o, "code", enum_name(&reason_names, (int)r->code));
		render_text(o, "text", r->text);
		render_set(o, "value", number_or_null(r->value));
		render_set(o, "limit", number_or_null(r->limit));
		render_since(o, r->since, t);
		(void)json_array_append_new(a, o);
	}
	return a;
}

/* Oldest first. */
static json_t *render_history(const struct port_watch *w, const struct render_time *t)
{
	json_t *a = json_array();

	for (int i = MAX(w->n_history - PORT_HISTORY_MAX, 0); i < w->n_history; i++) {
		const struct port_transition *h = port_watch_transition(w, i);
		json_t *o = json_object();

		render_instant(o, "at", h->at, t);
		render_age(o, "age_sec", h->at, t);
		render_text(o, "from", enum_name(&health_names, (int)h->from));
		render_text(o, "to", enum_name(&health_names, (int)h->to));
		render_text(o, "source", enum_name(&source_names, (int)h->source));
		render_text(o, "why", h->why);
		(void)json_array_append_new(a, o);
	}
	return a;
}

static void render_far(json_t *o, const struct port *p)
{
	bool mad = p->local_physp.remote != NULL;
	const char *name = mad ? p->last_remote : p->far_name;
	enum far_source source = mad ? FAR_MAD : p->far_source;

	render_text(o, "far_name", *name ? name : NULL);
	render_text(o, "far_source",
		    *name ? enum_name(&far_source_names, (int)source) : NULL);
}

void render_watch(json_t *o, const struct port *p, const struct flap_params *flap,
		  const struct render_time *t)
{
	const struct port_watch *w = &p->watch;
	struct mono release = flap_release(&w->flap, flap);

	render_set(o, "reasons", render_reasons(w, t));
	render_set(o, "history", render_history(w, t));
	if (w->baseline.lanes) {
		json_t *b = json_object();

		render_int(b, "lanes", w->baseline.lanes);
		render_int(b, "lane_mbps", w->baseline.speed_mbps);
		render_set(o, "baseline", b);
	} else {
		render_set(o, "baseline", json_null());
	}
	render_int(o, "flaps", w->flap.count);
	render_set(o, "flap_penalty", json_real(flap_penalty(&w->flap, flap, t->now)));
	render_set(o, "damped", json_boolean(w->flap.damped));
	render_instant(o, "damped_until", release, t);
	render_far(o, p);
	render_age(o, "counters_age_sec",
		   w->counters ? counters_read_at(w->counters) : MONO_NEVER, t);
}

/* ---- counters ---- */

struct window {
	const struct counter_limits *limits;
	int64_t ns;
	const struct render_time *t;
};

static void render_amount(json_t *o, const struct counters *c, enum counter which,
			  const struct window *w)
{
	struct mono from;
	uint64_t n = counters_since(c, which, w->t->now, w->ns, &from);

	render_age(o, "since_sec", from, w->t);
	if (mono_is_set(from))
		render_int(o, "amount", n);
	else
		render_set(o, "amount", json_null());
}

static void render_limit(json_t *o, const struct counters *c, enum counter which,
			 const struct window *w)
{
	struct counter_over over;
	char buf[32];

	counters_over(c, which, &over);
	render_text(o, "limit",
		    counter_rows[which].kind == CTR_KIND_ERROR
			    ? counter_limit_text(w->limits, which, buf, sizeof(buf))
			    : NULL);
	render_set(o, "over", json_boolean(over.over));
	render_instant(o, "over_since", over.since, w->t);
}

static json_t *render_counter(const struct counters *c, enum counter which,
			      const struct window *w)
{
	json_t *o = json_object();
	struct counter_view v;
	bool known;

	counters_view(c, which, &v);
	known = mono_is_set(v.first);
	render_text(o, "name", counter_rows[which].name);
	render_text(o, "kind",
		    enum_name(&counter_kind_names, (int)counter_rows[which].kind));
	if (known) {
		render_int(o, "value", v.total);
		render_int(o, "raw", v.raw);
	} else {
		render_set(o, "value", json_null());
		render_set(o, "raw", json_null());
	}
	render_amount(o, c, which, w);
	render_limit(o, c, which, w);
	render_set(o, "saturated", json_boolean(v.saturated));
	render_age(o, "saturated_age_sec", v.saturated ? v.saturated_at : MONO_NEVER,
		   w->t);
	render_int(o, "resets", v.resets);
	render_age(o, "reset_age_sec", v.reset_at, w->t);
	render_text(o, "source",
		    known ? enum_name(&counter_source_names, (int)v.source) : NULL);
	render_text(o, "unavailable",
		    v.why ? enum_name(&unavailable_names, (int)v.why) : NULL);
	return o;
}

json_t *render_port_counters(const struct port *p, const struct counter_limits *limits,
			     int64_t window_ns, const struct render_time *t)
{
	const struct window w = {limits, window_ns, t};
	const struct counters *c = p->watch.counters;
	struct counters *none = c ? NULL : counters_new();
	json_t *o = json_object(), *a = json_array();
	char name[PORT_NAME_MAX];

	render_text(o, "port", port_name(p, name));
	render_seconds(o, "window_sec", window_ns);
	render_age(o, "read_age_sec", c ? counters_read_at(c) : MONO_NEVER, t);
	for (int i = 0; i < CTR__MAX; i++)
		(void)json_array_append_new(
			a, render_counter(c ? c : none, (enum counter)i, &w));
	render_set(o, "counters", a);
	counters_free(none);
	return o;
}
