/* SPDX-License-Identifier: BSD-2-Clause */
/* Is this host fit for work: what there is of it, for lib/check.c to judge. */
#include "manager.h"

#define BOOTING_NS (60 * NSEC_PER_SEC)
/* A port that has not been read for so many polls, and so long, may be anything. */
#define STALE_POLLS 5
#define STALE_NS (10 * NSEC_PER_SEC)

static void add_faults(struct manager *m, struct check_run *c)
{
	if (m->stopping)
		check_add(c, CHECK_UNKNOWN, "fabd", "is stopping");
	else if (!m->peers_ready)
		check_add(c, CHECK_UNKNOWN, "fabd", "has just started");
	if (!control_open(m->control))
		check_add(c, CHECK_FAILED, "fabd", "control port not open");
	if (!str_eq(m->config_source, "file"))
		check_add(c, CHECK_DEGRADED, "fabd", "the config has mistakes");
	for (const struct worker *w = m->workers; w; w = w->next)
		if (w->kind == WORKER_RDMA && w->state == WORKER_STUCK)
			check_add(c, CHECK_FAILED, w->device, "device-stuck");
}

static bool is_stale(const struct manager *m, const struct port *p, struct mono now)
{
	return mono_is_set(p->read_at) &&
	       mono_sub(now, p->read_at) > MAX(STALE_POLLS * m->config->poll, STALE_NS);
}

static struct mono add_ports(struct manager *m, struct check_run *c, struct mono now)
{
	struct mono oldest = MONO_NEVER;

	for (struct device *d = m->devices; d; d = d->next)
		for (struct port_entry *pe = d->ports; pe; pe = pe->next) {
			char name[PORT_NAME_MAX];
			struct check_port p;

			check_port_of(&pe->p, port_name(&pe->p, name),
				      is_stale(m, &pe->p, now), &p);
			check_add_port(c, &p);
			if (p.health != HEALTH_UNUSED)
				oldest = mono_first(oldest, pe->p.read_at);
		}
	for (int i = 0; m->peers_ready && i < m->config->n_ports; i++) {
		const struct config_port *cp = &m->config->ports[i];

		if (cp->expected && !port_find(m, cp->name))
			check_add(c, CHECK_FAILED, cp->name, "is not there");
	}
	return oldest;
}

/* Of the same peer and rail the worst one speaks for all, for itself if it is held: that
 * its fault is told elsewhere makes the rail no better. */
static void add_entry(struct check_reach *r, const struct conn_entry *e)
{
	const struct conn *c = e->c;
	enum verdict v = e->verdict == VERDICT_HELD ? (enum verdict)e->own_verdict : e->verdict;
	bool worse = verdict_severity(v) > verdict_severity(r->verdict);

	r->connected &= c->connected && !c->late;
	if (!worse && r->verdict != VERDICT_OK)
		return;
	r->verdict = v;
	r->port = e->c->key.port_name;
	r->why = e->bind->port_down ? e->bind->why : NULL;
}

static void add_peer(const struct peer *p, struct check_run *c)
{
	char rail[CTL_NAME_MAX];

	for (const struct conn_entry *e = p->first_tx; e;) {
		int place = e->addr_index;
		struct check_reach r = {.peer = p->cfg->name,
					.rail = peer_rail(p, place, rail),
					.port = "-",
					.verdict = VERDICT_OK,
					.connected = true};

		for (; e && e->addr_index == place; e = e->next_tx)
			add_entry(&r, e);
		check_add_reach(c, &r);
	}
	for (const struct peer_name *n = p->names; n; n = n->next) {
		struct check_reach r = {.peer = p->cfg->name,
					.rail = peer_rail(p, n->from, rail),
					.port = "-",
					.verdict = n->error ? VERDICT_NO_ROUTE
							    : VERDICT_UNKNOWN};

		if (!peer_addr_at(p, n->from))
			check_add_reach(c, &r);
	}
}

json_t *api_check(void *user)
{
	struct manager *m = user;
	struct render_time t = manager_time(m);
	struct peer *p, *next;
	struct check_run c;
	struct mono oldest;
	json_t *o;

	check_begin(&c, &m->config->expect);
	add_faults(m, &c);
	oldest = add_ports(m, &c, t.now);
	HASH_ITER(hh, m->peers, p, next)
		add_peer(p, &c);
	check_end(&c, clock_boot_ns() < BOOTING_NS);
	o = render_check(&c, oldest, &t);
	check_done(&c);
	return o;
}
