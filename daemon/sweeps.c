/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which port the fabric is looked at from, when a sweep begins, and carrying it out:
 * lib/sweep.c says what to ask, mads.c asks, proto/mad.h reads the answers. What a turn
 * of the loop has to do is bounded by the window of the sweep.
 */
#include "sweeps.h"

#include <stdlib.h>

#define MOVE_AFTER_NS (10 * NSEC_PER_SEC) /* another port, when one is not usable */
#define RETRY_NS      (1 * NSEC_PER_SEC)  /* after a sweep that did not end */
#define HURRY_NS      (5 * NSEC_PER_SEC)  /* between sweeps that hints ask for */
#define TURN_NS	      (4 * NSEC_PER_MSEC) /* a budget is spent in portions */
#define PROGRESS_NS   (500 * NSEC_PER_MSEC)

static void waiters_tell(struct sweeps *s, bool ended);

/* ---- from which port ---- */

struct port_entry *sweeps_port(const struct sweeps *s)
{
	struct device *d = s->port ? device_find(s->m, s->device) : NULL;

	return d ? device_port(d, s->port) : NULL;
}

static bool is_usable(const struct port_entry *pe)
{
	const struct worker *w = pe ? pe->device->mad : NULL;

	return w && w->saw_hello && w->fd >= 0 && pe->mad.has_smi &&
	       !field_why(&port_table, &pe->p.facts, PF_PHYSICAL_STATE) &&
	       str_eq(pe->p.facts.physical_state, "LINK_UP");
}

static struct port_entry *first_usable(struct manager *m)
{
	for (struct device *d = m->devices; d; d = d->next)
		for (struct port_entry *pe = d->ports; pe; pe = pe->next)
			if (is_usable(pe))
				return pe;
	return NULL;
}

static void drop(struct sweeps *s)
{
	mads_forget(s->m->mads, s);
	fabric_queries_end(s, "the fabric is not swept any more");
	sa_forget(s);
	s->sweep = sweep_free(s->sweep);
	s->subnet = subnet_free(s->subnet);
	s->worker = NULL;
	s->edition++;
	s->aborted = s->want_cold = s->cold_on = false;
	s->next_at = s->began_at = MONO_NEVER;
	s->last_full = (struct sweep_result){0};
	loop_timer_at(s->timer, MONO_NEVER);
}

static void options(const struct config *c, struct sweep_options *o)
{
	sweep_options_default(o);
	o->window_max = (uint16_t)c->sweep_window;
	o->window_min = MIN(o->window_min, o->window_max);
	o->mads_per_sec = c->sweep_mads;
}

static void subnet_begin(struct sweeps *s, struct mono now)
{
	struct sweep_options o;

	options(s->m->config, &o);
	s->subnet = subnet_new();
	s->sweep = sweep_new(s->subnet, s->port, &o);
	s->next_at = now;
	s->edition++;
}

static bool wants_port(const struct config *c)
{
	return config_may_sweep(c) || (c->sweep_notices && c->sweep != SWEEP_MODE_OFF);
}

/* A worker that is replaced costs no knowledge: only after a while another port is
 * taken, from which all routes are others. */
static void choose(struct sweeps *s, struct mono now)
{
	bool usable = is_usable(sweeps_port(s));
	struct port_entry *pe;

	if (usable || !s->port)
		s->unusable_since = MONO_NEVER;
	else if (!mono_is_set(s->unusable_since))
		s->unusable_since = now;
	if (usable || (s->port && mono_sub(now, s->unusable_since) < MOVE_AFTER_NS))
		return;
	pe = first_usable(s->m);
	if (!pe)
		return;
	drop(s);
	s->unusable_since = MONO_NEVER;
	(void)str_copy(s->device, sizeof(s->device), pe->device->name);
	s->port = pe->p.num;
	log_info("fabric: asked through %s/%u", s->device, s->port);
}

/* ---- a sweep ---- */

static void abort_sweep(struct sweeps *s, struct mono now, const char *why)
{
	static struct log_limit limit;

	s->aborted = true;
	s->aborted_kind = sweep_present(s->sweep)->kind;
	log_limited(&limit, LOG_INFO, "fabric: the sweep is broken off: %s", why);
	sweep_abort(s->sweep, now);
	s->worker = NULL;
	s->cold_on = false;
	s->next_at = mono_add(now, RETRY_NS);
	loop_timer_at(s->timer, MONO_NEVER);
}

static void ended(struct sweeps *s, struct mono now)
{
	const struct sweep_result *r = sweep_last(s->sweep);
	struct mono due = mono_add(s->began_at, s->m->config->sweep_interval);

	s->worker = NULL;
	s->aborted = s->cold_on = false;
	s->edition++;
	s->next_at = due.ns > now.ns ? due : mono_add(now, RETRY_NS);
	loop_timer_at(s->timer, MONO_NEVER);
	log_debug("fabric: %s sweep %u took %.3f s, %llu requests, %u changes",
		  enum_name(&sweep_kind_names, (int)r->kind), r->number,
		  (double)mono_sub(r->ended, r->began) / 1e9,
		  (unsigned long long)r->mads, r->changed);
	if (r->kind == SWEEP_FULL) {
		s->last_full = *r;
		sa_read(s);
	}
	waiters_tell(s, true);
	if (s->n_waiters)
		s->next_at = now;
}

static enum sweep_status status_of(enum wm_mad_status s)
{
	switch (s) {
	case WM_MAD_OK:
		return SWEEP_OK;
	case WM_MAD_TIMEOUT:
		return SWEEP_TIMEOUT;
	case WM_MAD_BAD_STATUS:
		return SWEEP_BAD_STATUS;
	case WM_MAD_BAD_ANSWER:
		return SWEEP_BAD_ANSWER;
	default:
		return SWEEP_SEND_FAILED;
	}
}

/* 0, or -EBADMSG for what cannot be. */
static int decode(uint16_t attr, const uint8_t *data, union sweep_data *ret)
{
	switch (attr) {
	case SWEEP_NODE_INFO:
		return mad_decode_node_info(data, &ret->node);
	case SWEEP_PORT_INFO:
		return mad_decode_port_info(data, &ret->port);
	case SWEEP_NODE_DESC:
		mad_decode_node_desc(data, ret->desc);
		return 0;
	case SWEEP_SWITCH_INFO:
		mad_decode_switch_info(data, &ret->sw);
		return 0;
	case SWEEP_PKEYS:
		mad_decode_pkeys(data, ret->pkeys.pkey);
		return 0;
	case SWEEP_SLVL:
		mad_decode_slvl(data, &ret->slvl);
		return 0;
	case SWEEP_VLARB:
		mad_decode_vlarb(data, &ret->vlarb);
		return 0;
	default:
		return -EBADMSG;
	}
}

static void on_answer(void *user, const struct mad_done *done)
{
	struct sweeps *s = user;
	struct mono now = loop_now(s->m->loop);
	union sweep_data data;
	struct sweep_answer a = {.id = done->tag,
				 .status = status_of(done->status),
				 .mad_status = done->mad_status,
				 .rtt_ns = (int64_t)done->rtt_ns};
	uint16_t attr = s->sweep ? sweep_attr(s->sweep, done->tag) : 0;

	if (!attr)
		return; /* of a sweep that was broken off */
	if (a.status == SWEEP_OK) {
		a.data = &data;
		if (decode(attr, done->data, &data) < 0) {
			a.status = SWEEP_BAD_ANSWER;
			a.data = NULL;
		}
	}
	if (!sweep_answer(s->sweep, now, &a))
		return;
	s->edition++;
	loop_defer_arm(s->pump);
}

static int send_request(struct sweeps *s, const struct sweep_request *r)
{
	const struct mad_smp smp = {.tag = r->id,
				    .attr = r->attr,
				    .mod = r->mod,
				    .timeout_ms = r->timeout_ms,
				    .hops = r->hops,
				    .path = r->path};

	return mads_get(s->m->mads, s->worker, s->device, s->port, &smp, on_answer, s);
}

static void on_pump(void *user)
{
	struct sweeps *s = user;
	struct mono now = loop_now(s->m->loop), next;
	struct sweep_request r;

	if (!s->worker)
		return;
	while (sweep_running(s->sweep) && sweep_next(s->sweep, now, &r))
		if (send_request(s, &r) < 0) {
			abort_sweep(s, now, "the MAD worker takes no more requests");
			return;
		}
	if (!s->worker)
		return; /* lost in the middle of it: the sweep was broken off */
	if (!sweep_running(s->sweep)) {
		ended(s, now);
		return;
	}
	next = sweep_deadline(s->sweep);
	if (mono_is_set(next))
		loop_timer_at(s->timer, next.ns - now.ns < TURN_NS
						? mono_add(now, TURN_NS)
						: next);
}

static void on_timer(void *user, struct mono now)
{
	struct sweeps *s = user;

	if (!s->worker)
		return;
	sweep_tick(s->sweep, now);
	s->edition++;
	on_pump(s);
}

static void begin(struct sweeps *s, struct mono now)
{
	struct port_entry *pe = sweeps_port(s);
	enum sweep_kind kind = s->aborted ? s->aborted_kind : SWEEP_LATER;

	if (!is_usable(pe))
		return;
	if (s->want_cold)
		fabric_queries_end(s, "the fabric is looked at afresh");
	if (sweep_start(s->sweep, s->want_cold ? SWEEP_FULL : kind, s->want_cold, now) <
	    0)
		return;
	s->worker = pe->device->mad;
	s->cold_on = s->want_cold;
	s->want_cold = false;
	for (int i = 0; i < s->n_waiters; i++)
		s->waiters[i].next = false;
	s->began_at = now;
	s->next_at = MONO_NEVER;
	s->edition++;
	on_pump(s);
}

void sweeps_tick(struct sweeps *s, struct mono now)
{
	const struct config *c = s->m->config;

	if (s->m->stopping)
		return;
	if (!wants_port(c)) {
		if (s->port)
			drop(s);
		s->port = 0;
		return;
	}
	choose(s, now);
	if (!s->port)
		return;
	sa_tick(s, now);
	if (!config_may_sweep(c)) {
		if (s->subnet)
			drop(s);
		return;
	}
	if (!s->subnet)
		subnet_begin(s, now);
	if (!s->worker && mono_due(s->next_at, now))
		begin(s, now);
}

void sweeps_reload(struct sweeps *s)
{
	struct sweep_options o;
	struct mono due;

	sweeps_tick(s, loop_now(s->m->loop));
	if (!s->subnet)
		return;
	options(s->m->config, &o);
	s->queries_paid = 0;
	sweep_set_options(s->sweep, &o);
	due = mono_add(s->began_at, s->m->config->sweep_interval);
	if (mono_is_set(s->next_at) && mono_is_set(s->began_at))
		s->next_at = due;
}

void sweeps_worker_lost(struct sweeps *s, const struct worker *w)
{
	if (s->worker == w)
		abort_sweep(s, loop_now(s->m->loop), "its MAD worker is gone");
}

/* ---- hints ---- */

static void hurry(struct sweeps *s)
{
	struct mono now = loop_now(s->m->loop);
	struct mono at =
		mono_add(s->began_at, MIN(HURRY_NS, s->m->config->sweep_interval));

	if (!mono_is_set(s->next_at))
		return; /* one is on, or none has been yet */
	if (at.ns < now.ns)
		at = now;
	if (at.ns < s->next_at.ns)
		s->next_at = at;
}

void sweeps_port_changed(struct sweeps *s, const struct port_entry *pe)
{
	uint64_t far_end = pe->p.remote.node_guid;

	if (!s->subnet || !str_eq(pe->device->name, s->device) || pe->p.num != s->port)
		return;
	if (!field_why(&remote_table, &pe->p.remote, RF_NODE_GUID))
		sweep_suspect_node(s->sweep, far_end);
	hurry(s);
}

/* Whoever says so: a hint leads to a question and to nothing else. */
void sweeps_on_notice(struct sweeps *s, const struct wm_notice *m)
{
	const struct ib_port *p = NULL;
	struct notice n;
	uint16_t lid;
	uint8_t port;

	s->notices++;
	mad_decode_notice(m->data, sizeof(m->data), &n);
	if (!s->subnet)
		return;
	if (mad_notice_about(&n, &lid, &port))
		p = subnet_port_by_lid(s->subnet, lid);
	if (p)
		sweep_suspect_node(s->sweep, p->physp->node->info.node_guid);
	hurry(s);
}

/* ---- orders ---- */

const char *sweeps_why_none(const struct sweeps *s)
{
	const struct config *c = s->m->config;

	if (c->sweep != SWEEP_MODE_SUBNET)
		return c->sweep == SWEEP_MODE_OFF
			       ? "Sweep=off; to see the subnet, set Sweep=subnet in fabd.conf"
			       : "Sweep=local; to see the subnet, set Sweep=subnet in fabd.conf";
	if (!config_may_sweep(c))
		return "this host is not in SweepHosts=";
	if (!s->port)
		return "no InfiniBand port is up that may be asked by MAD";
	if (!s->subnet || !subnet_next(s->subnet, NULL))
		return "the first sweep is not through yet";
	return NULL;
}

static void waiters_tell(struct sweeps *s, bool is_end)
{
	int kept = 0;

	for (int i = 0; i < s->n_waiters; i++) {
		const struct sweep_waiter w = s->waiters[i];
		const struct api_ticket *t = &w.ticket;
		bool goes_on = !is_end || w.next;

		t->answer(t->server, t->id, NULL,
			  json_pack("{s:o}", "fabric", fabric_json(s)), goes_on);
		if (goes_on)
			s->waiters[kept++] = w;
	}
	s->n_waiters = kept;
}

static void waiters_refuse(struct sweeps *s, const char *why)
{
	for (int i = 0; i < s->n_waiters; i++) {
		const struct api_ticket *t = &s->waiters[i].ticket;

		t->answer(t->server, t->id, "io.fabd.Unavailable",
			  json_pack("{s:s, s:s}", "what", "fabric", "why", why), false);
	}
	s->n_waiters = 0;
}

static void on_progress(void *user, struct mono now)
{
	struct sweeps *s = user;

	if (!s->n_waiters)
		return;
	if (!s->subnet || (mono_is_set(s->unusable_since) &&
			   mono_sub(now, s->unusable_since) > MOVE_AFTER_NS)) {
		waiters_refuse(s, s->subnet ? "the port it is swept from is down"
					    : sweeps_why_none(s));
		return;
	}
	waiters_tell(s, false);
	loop_timer_at(s->progress, mono_add(now, PROGRESS_NS));
}

void sweeps_order(struct sweeps *s, bool cold, const char *who,
		  const struct api_ticket *t)
{
	static struct log_limit limit;
	struct mono now = loop_now(s->m->loop);

	if (!s->subnet || s->n_waiters == SWEEP_WAITERS_MAX) {
		const char *why =
			s->subnet ? "too many wait for its end" : sweeps_why_none(s);

		t->answer(t->server, t->id, "io.fabd.Unavailable",
			  json_pack("{s:s, s:s}", "what", "fabric", "why", why), false);
		return;
	}
	log_limited(&limit, LOG_NOTICE, "fabric: %ssweep ordered by %s",
		    cold ? "cold " : "", who);
	/* A cold one that is on is not begun anew with each order, or it would never
	 * end. */
	s->waiters[s->n_waiters++] = (struct sweep_waiter){
		.ticket = *t, .next = cold && s->worker && s->cold_on};
	if (cold && s->worker && !s->cold_on)
		abort_sweep(s, now, "ordered anew");
	s->want_cold |= cold;
	if (!s->worker)
		begin(s, now);
	if (!s->worker && s->n_waiters) /* it could not, or has ended already */
		s->next_at = now;
	loop_timer_at(s->progress, mono_add(now, PROGRESS_NS));
}

void sweeps_dropped(struct sweeps *s, uint64_t ticket)
{
	if (!s)
		return;
	fabric_query_dropped(s, ticket);
	for (int i = 0; i < s->n_waiters; i++)
		if (s->waiters[i].ticket.id == ticket)
			s->waiters[i--] = s->waiters[--s->n_waiters];
}

/* ---- life ---- */

struct sweeps *sweeps_new(struct manager *m)
{
	struct sweeps *s = xcalloc(1, sizeof(*s));

	s->m = m;
	s->pump = loop_defer(m->loop, on_pump, s);
	s->timer = loop_timer(m->loop, on_timer, s);
	s->progress = loop_timer(m->loop, on_progress, s);
	sa_forget(s);
	return s;
}

struct sweeps *sweeps_free(struct sweeps *s)
{
	if (!s)
		return NULL;
	drop(s);
	free(s->sa.sms);
	free(s->sa.members);
	free(s->by_serial);
	free(s->levels);
	loop_source_free(s->pump);
	loop_source_free(s->timer);
	loop_source_free(s->progress);
	free(s);
	return NULL;
}
