/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the past of a connection says of it: losses add to a penalty that decays, and a
 * round trip is compared with what it usually was. One that was never lost costs a
 * pointer and sixteen bytes.
 */
#include <stdlib.h>

#include "manager.h"

#define OWN_STALL_NS (3 * NSEC_PER_SEC)

struct flap_params damping_params(const struct manager *m, const struct conn_entry *e)
{
	struct flap_params p = m->config->health.flap;

	p.suppress = conn_probe(m, e)->flap_suppress;
	/* What is damped must be able to come out of it, and to stay out. */
	if (p.suppress > 0 && p.reuse >= p.suppress)
		p.reuse = p.suppress / 2;
	return p;
}

static struct usual_params usual_of(const struct manager *m, const struct conn_entry *e)
{
	const struct config_probe *p = conn_probe(m, e);

	return (struct usual_params){.learn = p->usual, .factor = p->slow_factor};
}

/* What a port that went down counts itself, and what was this host's own standstill, is
 * no flap of the path. */
void damping_lost(struct manager *m, struct conn_entry *e, struct mono now)
{
	struct flap_params params = damping_params(m, e);

	if (!conn_loss_is_flap(e->c) || (e->bind->port_down && conn_port(m, e)))
		return;
	if (mono_is_set(m->last_stall) && mono_sub(now, m->last_stall) < OWN_STALL_NS &&
	    m->stall_total >= e->c->heartbeat * e->c->params.multiplier)
		return;
	if (!e->flap)
		e->flap = xcalloc(1, sizeof(*e->flap));
	flap_add(e->flap, &params, now);
}

void damping_facts(struct manager *m, struct conn_entry *e, struct mono now,
		   struct verdict_facts *f)
{
	const struct usual_params usual = usual_of(m, e);
	const struct ep_stats *stats = conn_stats(e->c);
	bool well = e->c->connected && !e->c->late && !stats->consecutive_lost;
	struct flap_params params;

	usual_step(&e->usual, &usual, well, (double)stats->rtt_p99, now);
	f->usual_p99_ns = (uint64_t)usual_p99(&e->usual, &usual);
	f->slower = usual_slower(&e->usual, &usual);
	if (!e->flap)
		return;
	params = damping_params(m, e);
	(void)flap_update(e->flap, &params, now);
	f->damped = e->flap->damped;
	f->flaps = e->flap->count;
	f->flap_penalty = flap_penalty(e->flap, &params, now);
	if (f->damped)
		f->damped_left_ns =
			MAX(mono_sub(flap_release(e->flap, &params), now), 0);
}

double damping_usual(const struct manager *m, const struct conn_entry *e)
{
	const struct usual_params p = usual_of(m, e);

	return usual_p99(&e->usual, &p);
}

void damping_forget(struct conn_entry *e)
{
	e->usual = (struct usual){0};
}

void damping_free(struct conn_entry *e)
{
	free(e->flap);
	e->flap = NULL;
}
