/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The health rule: from override, link, both ends of it, counters, flaps and notices to
 * one word and its reasons.
 */
#include "port.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

/* What is found in one judgement; the first decides. */
struct finding {
	enum health word;
	int n;
	struct port_reason r[PORT_REASONS_MAX];
	struct port_reason spare; /* takes what does not fit: the gravest come first */
	bool unsteady; /* something that comes and goes is among it */
	char why[128];
};

static struct port_reason *find(struct finding *f, enum health word, enum reason_code code,
				const char *fmt, ...) PRINTF_LIKE(4, 5);

static struct port_reason *find(struct finding *f, enum health word, enum reason_code code,
				const char *fmt, ...)
{
	bool decides = !f->n, joins = f->word == HEALTH_DEGRADED && word == HEALTH_DEGRADED;
	struct port_reason *r = f->n < PORT_REASONS_MAX ? &f->r[f->n++] : &f->spare;
	va_list ap;

	*r = (struct port_reason){.code = code};
	va_start(ap, fmt);
	(void)vsnprintf(r->text, sizeof(r->text), fmt, ap);
	va_end(ap);
	if (decides)
		f->word = word;
	if (decides || joins)
		str_append(f->why, sizeof(f->why), "%s%s", f->why[0] ? ", " : "", r->text);
	return r;
}

static void value(struct port_reason *r, double v, double limit)
{
	r->value = v;
	r->limit = limit;
}

/* ---- what is the matter ---- */

static void find_override(const struct port *p, struct finding *f)
{
	if (p->override != OVERRIDE_AUTO)
		(void)find(f, p->override == OVERRIDE_OK ? HEALTH_OK : HEALTH_BAD,
			   REASON_OVERRIDE, "set %s by %s",
			   enum_name(&override_names, (int)p->override), p->override_by);
}

static void find_down(const struct port *p, struct finding *f)
{
	struct port_reason *r;

	if (!p->ever_active && !p->expected) {
		(void)find(f, HEALTH_UNUSED, REASON_NOT_EXPECTED,
			   "never active, not expected");
		return;
	}
	r = find(f, HEALTH_BAD, REASON_LINK, "link %s%s%s", p->facts.state,
		 p->facts.why[PF_PHYSICAL_STATE] ? "" : " ",
		 p->facts.why[PF_PHYSICAL_STATE] ? "" : p->facts.physical_state);
	r->since = p->state_since;
}

static void find_far(const struct port *p, struct finding *f)
{
	const struct physp *far = p->local_physp.remote;

	if (far && !far->healthy)
		(void)find(f, HEALTH_BAD, REASON_REMOTE, "far end %s/%u is marked bad",
			   far->node->desc, far->num);
}

static void find_counters(const struct port *p, const struct port_watch_params *params,
			  struct finding *f)
{
	for (int i = 0; p->watch.counters && i < CTR__MAX; i++) {
		struct counter_over o;
		struct port_reason *r;
		char limit[24];

		counters_over(p->watch.counters, (enum counter)i, &o);
		if (!o.over)
			continue;
		(void)counter_limit_text(&params->limits, (enum counter)i, limit,
					 sizeof(limit));
		r = find(f, HEALTH_DEGRADED, REASON_COUNTER, "%s %" PRIu64 ", limit %s",
			 counter_rows[i].name, o.amount, limit);
		value(r, (double)o.amount, params->limits.limit[i]);
		r->since = o.since;
		f->unsteady = true;
	}
}

static void find_flap(const struct port *p, const struct port_watch_params *params,
		      struct finding *f)
{
	const struct flap *flap = &p->watch.flap;
	struct port_reason *r;

	if (!flap->damped)
		return;
	r = find(f, HEALTH_DEGRADED, REASON_FLAP,
		 "flapped %" PRIu32 " times, penalty %.0f, until %.0f", flap->count,
		 flap->penalty, params->flap.reuse);
	value(r, flap->penalty, params->flap.reuse);
	r->since = flap->damped_since;
	f->unsteady = true;
}

static const char *const notice_texts[] = {
	"local link integrity", "excessive buffer overrun", "flow control watchdog"};

static void find_notices(struct port *p, const struct port_watch_params *params,
			 struct mono now, struct finding *f)
{
	for (size_t i = 0; i < ARRAY_LEN(p->watch.notices); i++) {
		struct port_reason *r;
		uint32_t n = p->watch.notices[i].n;

		if (n && mono_sub(now, p->watch.notices[i].last) >= params->notice_window)
			n = p->watch.notices[i].n = 0;
		if (!n)
			continue;
		r = find(f, HEALTH_DEGRADED, REASON_NOTICE,
			 "notice %d (%s) %" PRIu32 " times", 129 + (int)i, notice_texts[i], n);
		value(r, n, 0);
		r->since = p->watch.notices[i].first;
		f->unsteady = true;
	}
}

/* ---- width and speed ---- */

static bool compare_width(const struct physp *a, const struct physp *b, struct finding *f)
{
	uint32_t best = link_width_widest(physp_widths_enabled(a) & physp_widths_enabled(b));
	unsigned active = link_width_lanes(a->info.width_active);
	char is[24], best_text[24];

	if (!active || active >= link_width_lanes(best))
		return false;
	value(find(f, HEALTH_DEGRADED, REASON_WIDTH, "width %s of %s",
		   link_width_text(a->info.width_active, is),
		   link_width_text(best, best_text)),
	      active, link_width_lanes(best));
	return true;
}

static bool compare_speed(const struct physp *a, const struct physp *b, struct finding *f)
{
	enum link_speed best =
		link_speed_fastest(physp_speeds_enabled(a) & physp_speeds_enabled(b));
	enum link_speed active = physp_speed(a);

	if (active == SPEED_UNKNOWN || active >= best)
		return false;
	value(find(f, HEALTH_DEGRADED, REASON_SPEED, "speed %s of %s",
		   link_speed_name(active), link_speed_name(best)),
	      link_speed_lane_mbps(active), link_speed_lane_mbps(best));
	return true;
}

/* Below what both ends can do: what one cannot do the other is not blamed for. */
static void find_rates(const struct port *p, struct finding *f, bool *ret_width,
		       bool *ret_speed)
{
	const struct physp *local = &p->local_physp, *far = local->remote;
	bool known = far && far->info_full && local->info_full;

	*ret_width = known && compare_width(local, far, f);
	*ret_speed = known && compare_speed(local, far, f);
}

/* ---- what the port used to have ---- */

/* Lanes and speed now, of any link layer; false: not known. */
static bool present_rate(const struct port *p, unsigned *ret_lanes, uint32_t *ret_mbps)
{
	if (p->facts.why[PF_WIDTH_ACTIVE] || p->facts.why[PF_SPEED_ACTIVE])
		return false;
	*ret_lanes = link_width_lanes(link_width_find(p->facts.width_active));
	*ret_mbps = link_speed_lane_mbps(link_speed_find(p->facts.speed_active));
	return *ret_lanes && *ret_mbps;
}

/* With which far end the baseline holds. Where none can be asked (Ethernet) it is always
 * the same one. */
static bool far_is(const struct port *p, uint64_t *ret_guid, uint8_t *ret_port)
{
	enum unavailable why = (enum unavailable)p->remote.why[RF_PORT_GUID];

	*ret_guid = 0;
	*ret_port = 0;
	if (why == WHY_NOT_INFINIBAND)
		return true;
	if (why || p->remote.why[RF_PORT])
		return false;
	*ret_guid = p->remote.port_guid;
	*ret_port = (uint8_t)p->remote.port;
	return true;
}

/* Another far end: what was had with the one before says nothing. One that was learnt
 * before the far end was known holds for the first that is. */
static void check_far_end(struct port *p)
{
	struct port_baseline *b = &p->watch.baseline;
	uint64_t guid;
	uint8_t port;

	if (!b->lanes || !far_is(p, &guid, &port) ||
	    (b->remote_guid == guid && b->remote_port == port))
		return;
	if (b->remote_guid)
		*b = (struct port_baseline){0};
	b->remote_guid = guid;
	b->remote_port = port;
	p->watch.baseline_changed = true;
}

/* Somebody has switched off on purpose, at either end, what the port used to have. */
static bool switched_off(const struct port *port, const struct port_baseline *b)
{
	const struct physp *ends[] = {&port->local_physp, port->local_physp.remote};

	for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
		const struct physp *p = ends[i];
		unsigned can, may;

		if (!p || !p->info_full)
			continue;
		can = link_width_lanes(link_width_widest(p->info.width_supported));
		may = link_width_lanes(link_width_widest(physp_widths_enabled(p)));
		if (can >= b->lanes && may < b->lanes)
			return true;
		can = link_speed_lane_mbps(link_speed_fastest(physp_speeds_supported(p)));
		may = link_speed_lane_mbps(link_speed_fastest(physp_speeds_enabled(p)));
		if (can >= b->speed_mbps && may < b->speed_mbps)
			return true;
	}
	return false;
}

static void find_baseline(const struct port *p, bool width_told, bool speed_told,
			  struct finding *f)
{
	const struct port_baseline *b = &p->watch.baseline;
	unsigned lanes;
	uint32_t mbps;
	uint64_t guid;
	uint8_t port;

	if (!b->lanes || !present_rate(p, &lanes, &mbps) || !far_is(p, &guid, &port) ||
	    switched_off(p, b))
		return;
	if (lanes < b->lanes && !width_told)
		value(find(f, HEALTH_DEGRADED, REASON_BASELINE, "width %ux, was %ux", lanes,
			   b->lanes),
		      lanes, b->lanes);
	if (mbps < b->speed_mbps && !speed_told)
		value(find(f, HEALTH_DEGRADED, REASON_BASELINE, "lane %gG, was %gG",
			   mbps / 1000.0, b->speed_mbps / 1000.0),
		      mbps, b->speed_mbps);
}

static void learn_baseline(struct port *p)
{
	struct port_baseline *b = &p->watch.baseline, was = *b;
	unsigned lanes;
	uint32_t mbps;

	if (!present_rate(p, &lanes, &mbps) || (lanes <= b->lanes && mbps <= b->speed_mbps))
		return;
	b->lanes = (uint8_t)MAX(b->lanes, lanes);
	b->speed_mbps = MAX(b->speed_mbps, mbps);
	if (!was.lanes)
		(void)far_is(p, &b->remote_guid, &b->remote_port);
	p->watch.baseline_changed = true;
}

static void find_pcie(const struct port_pcie *pcie, struct finding *f)
{
	if (!pcie)
		return;
	if (pcie->width && pcie->width < pcie->width_max)
		value(find(f, HEALTH_DEGRADED, REASON_PCIE, "PCIe x%u of x%u", pcie->width,
			   pcie->width_max),
		      pcie->width, pcie->width_max);
	if (pcie->speed_mts && pcie->speed_mts < pcie->speed_max_mts)
		value(find(f, HEALTH_DEGRADED, REASON_PCIE, "PCIe %g of %g GT/s",
			   pcie->speed_mts / 1000.0, pcie->speed_max_mts / 1000.0),
		      pcie->speed_mts, pcie->speed_max_mts);
}

/* ---- one judgement ---- */

static void find_up(struct port *p, const struct port_watch_params *params,
		    const struct port_pcie *pcie, struct mono now, struct finding *f)
{
	bool width, speed;

	find_far(p, f);
	if (str_eq(p->facts.state, link_state_name(IB_ACTIVE_DEFER)))
		(void)find(f, HEALTH_DEGRADED, REASON_LINK,
			   "link error recovery (ACTIVE_DEFER)");
	find_counters(p, params, f);
	find_flap(p, params, f);
	find_rates(p, f, &width, &speed);
	find_baseline(p, width, speed, f);
	find_pcie(pcie, f);
	find_notices(p, params, now, f);
}

/* The word may be the operator's; what the port itself is like is a reason all the same. */
static void find_all(struct port *p, const struct port_watch_params *params,
		     const struct port_pcie *pcie, struct mono now, struct finding *f)
{
	struct port_watch *w = &p->watch;
	int own;

	find_override(p, f);
	own = f->n;
	if (p->facts.why[PF_STATE]) {
		(void)find(f, HEALTH_UNKNOWN, REASON_STATE_UNKNOWN, "state %s",
			   enum_text(&unavailable_names, p->facts.why[PF_STATE]));
		w->well_since = MONO_NEVER;
		return;
	}
	if (port_is_down(p)) {
		find_down(p, f);
		find_far(p, f);
		find_flap(p, params, f);
		find_notices(p, params, now, f);
	} else {
		check_far_end(p);
		find_up(p, params, pcie, now, f);
	}
	if (f->unsteady || w->unsteady)
		w->unsteady_at = now;
	w->unsteady = f->unsteady;
	if (f->n > own) {
		w->well_since = MONO_NEVER;
		return;
	}
	if (!mono_is_set(w->well_since))
		w->well_since = now;
	learn_baseline(p);
	if (!mono_is_set(w->unsteady_at))
		return;
	if (mono_sub(now, w->unsteady_at) >= params->stable) {
		w->unsteady_at = MONO_NEVER;
		return;
	}
	value(find(f, HEALTH_DEGRADED, REASON_SETTLING, "settling for %.0f s",
		   (double)params->stable / (double)NSEC_PER_SEC),
	      0, (double)params->stable / (double)NSEC_PER_SEC);
}

static void count_flap(struct port *p, const struct flap_params *params, struct mono now)
{
	struct port_watch *w = &p->watch;
	bool down = port_is_down(p);

	if (down && !w->was_down && p->ever_active)
		flap_add(&w->flap, params, now);
	/* Of a state that nobody knows nothing follows. */
	if (!p->facts.why[PF_STATE])
		w->was_down = down;
	(void)flap_update(&w->flap, params, now);
}

/* Since when: as the finder said, else since it was first seen among the reasons. */
static bool take_reasons(struct port_watch *w, struct finding *f, struct mono now)
{
	bool news = f->n != w->n_reasons;

	for (int i = 0; i < f->n; i++) {
		struct port_reason *r = &f->r[i];

		news |= i >= w->n_reasons || w->reasons[i].code != r->code;
		for (int k = 0; k < w->n_reasons && !mono_is_set(r->since); k++)
			if (w->reasons[k].code == r->code)
				r->since = w->reasons[k].since;
		if (!mono_is_set(r->since))
			r->since = now;
	}
	w->n_reasons = f->n;
	memcpy(w->reasons, f->r, sizeof(w->reasons));
	return news;
}

static void remember(struct port *p, enum health to, const char *why, struct mono now)
{
	struct port_watch *w = &p->watch;
	struct port_transition *t = &w->history[w->n_history++ % PORT_HISTORY_MAX];

	*t = (struct port_transition){
		.at = now, .from = p->health, .to = to, .source = p->source};
	(void)str_copy(t->why, sizeof(t->why), why);
}

bool port_judge(struct port *p, const struct port_watch_params *params,
		const struct port_pcie *pcie, struct mono now)
{
	struct finding f = {.word = HEALTH_OK};
	bool changed, news;

	count_flap(p, &params->flap, now);
	if (p->watch.counters)
		counters_judge(p->watch.counters, &params->limits, now);
	find_all(p, params, pcie, now, &f);
	/* The same reason with other numbers is no news. */
	news = take_reasons(&p->watch, &f, now);
	changed = p->health != f.word;
	if (changed) {
		remember(p, f.word, f.why, now);
		p->health_since = now;
	}
	if (changed || news)
		p->dirty = true;
	p->health = f.word;
	(void)str_copy(p->health_why, sizeof(p->health_why), f.why);
	/* The flag that the far end would read is the operator's word, as in OpenSM;
	 * the states speak for themselves. */
	p->local_physp.healthy = p->override != OVERRIDE_BAD;
	(void)port_set_u64(p, PF_LINK_HEALTHY, physp_link_healthy(&p->local_physp));
	return changed;
}

struct mono port_judge_at(const struct port *p, const struct port_watch_params *params)
{
	const struct port_watch *w = &p->watch;
	struct mono at = flap_release(&w->flap, &params->flap);

	for (size_t i = 0; i < ARRAY_LEN(w->notices); i++)
		if (w->notices[i].n)
			at = mono_first(at, mono_add(w->notices[i].last,
						     params->notice_window));
	if (mono_is_set(w->unsteady_at) && mono_is_set(w->well_since))
		at = mono_first(at, mono_add(w->unsteady_at, params->stable));
	return at;
}
