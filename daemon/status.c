/* SPDX-License-Identifier: BSD-2-Clause */
/* The status: what is wrong in one line, counts, and what fabd itself is and costs. */
#include <unistd.h>

#include "manager.h"

#define SCHEMA 1

struct counts {
	int total, by[HEALTH__MAX], down;
	int explained; /* peers behind a port that may be counted itself */
	int held;      /* peers behind a fault that is counted itself */
};

static json_t *counts_json(const struct counts *c)
{
	return json_pack("{s:i, s:i, s:i, s:i, s:i, s:i, s:i}", "total", c->total, "ok",
			 c->by[HEALTH_OK], "degraded", c->by[HEALTH_DEGRADED], "bad",
			 c->by[HEALTH_BAD], "down", c->down, "unused", c->by[HEALTH_UNUSED],
			 "unknown", c->by[HEALTH_UNKNOWN]);
}

/* The subnet manager as a port knows it, and when that was read. */
struct sm_seen {
	uint32_t lid; /* 0 = none */
	struct mono at;
};

static void count_ports(struct manager *m, struct counts *c, const struct port_entry **worst,
			struct sm_seen *sm)
{
	for (struct device *d = m->devices; d; d = d->next)
		for (struct port_entry *pe = d->ports; pe; pe = pe->next) {
			c->total++;
			c->by[pe->p.health]++;
			if (pe->p.health == HEALTH_BAD && port_is_down(&pe->p))
				c->down++;
			if (pe->p.health == HEALTH_BAD ||
			    (pe->p.health == HEALTH_DEGRADED &&
			     (!*worst || (*worst)->p.health != HEALTH_BAD)))
				if (!*worst || (*worst)->p.health != HEALTH_BAD)
					*worst = pe;
			if (!field_why(&port_table, &pe->p.facts, PF_SM_LID) &&
			    pe->p.facts.sm_lid)
				*sm = (struct sm_seen){pe->p.facts.sm_lid, pe->p.read_at};
		}
}

static void count_peers(struct manager *m, struct counts *c, const struct peer **worst)
{
	struct peer *p, *next;

	HASH_ITER(hh, m->peers, p, next) {
		enum health h = verdict_health(p->verdict);

		c->total++;
		c->by[h]++;
		c->down += p->verdict == VERDICT_PEER_DOWN;
		c->held += p->verdict == VERDICT_HELD;
		c->explained += p->verdict == VERDICT_LOCAL_PORT;
		if (h != HEALTH_OK && (!*worst || verdict_severity(p->verdict) >
							   verdict_severity((*worst)->verdict)))
			*worst = p;
	}
}

/* What the first line of the status is about. */
struct headline {
	enum health health;
	struct mono since;
	int left; /* things wrong that are not told yet */
	char text[256];
};

/* Wrong things to look at; peers behind a bad port are one thing with it. */
static int count_wrong(const struct manager *m, const struct counts *ports,
		       const struct counts *peers)
{
	return ports->by[HEALTH_BAD] + ports->by[HEALTH_DEGRADED] + peers->by[HEALTH_BAD] +
	       peers->by[HEALTH_DEGRADED] - peers->held -
	       (ports->by[HEALTH_BAD] ? peers->explained : 0) +
	       !str_eq(m->config_source, "file") + !control_open(m->control);
}

static void tell_port(struct headline *h, const struct port_entry *pe)
{
	const struct port *p = &pe->p;
	char name[PORT_NAME_MAX];

	h->health = p->health;
	h->since = p->health_since;
	str_append(h->text, sizeof(h->text), "%s%s ",
		   p->health == HEALTH_BAD ? "local-port " : "", port_name(p, name));
	if (p->health == HEALTH_BAD && p->override == OVERRIDE_AUTO && port_is_down(p)) {
		const char *phys = p->facts.why[PF_PHYSICAL_STATE] ? ""
								   : p->facts.physical_state;

		/* POLLING is what every port without a partner does. */
		str_append(h->text, sizeof(h->text), "%s%s%s", p->facts.state,
			   *phys && !str_eq(phys, "POLLING") ? " " : "",
			   str_eq(phys, "POLLING") ? "" : phys);
		if (p->last_remote[0])
			str_append(h->text, sizeof(h->text), " (cable or %s)", p->last_remote);
	} else {
		str_append(h->text, sizeof(h->text), "%s", p->health_why);
	}
	h->left--;
}

static void tell_peer(struct headline *h, const struct peer *p)
{
	h->health = verdict_health(p->verdict);
	h->since = p->since;
	str_append(h->text, sizeof(h->text), "%s %s: %s", enum_text(&verdict_names, p->verdict),
		   p->cfg->name, peer_why(p));
	h->left--;
}

static void tell_nothing_wrong(struct headline *h, const struct counts *ports,
			       const struct counts *peers)
{
	int n_ports = ports->by[HEALTH_UNKNOWN], n_peers = peers->by[HEALTH_UNKNOWN];

	h->health = HEALTH_UNKNOWN;
	if (!ports->total && !peers->total) {
		str_append(h->text, sizeof(h->text), "no RDMA device here, no peer configured");
	} else if (n_ports || n_peers) {
		str_append(h->text, sizeof(h->text), "nothing wrong found yet; ");
		if (n_ports)
			str_append(h->text, sizeof(h->text), "%d port%s%s", n_ports,
				   n_ports == 1 ? "" : "s", n_peers ? ", " : "");
		if (n_peers)
			str_append(h->text, sizeof(h->text), "%d peer%s", n_peers,
				   n_peers == 1 ? "" : "s");
		str_append(h->text, sizeof(h->text), " unknown");
	} else {
		h->health = HEALTH_OK;
		str_append(h->text, sizeof(h->text), "all well");
	}
}

/* One line: whose fault it is, and how much more there is. */
static void summarize(struct manager *m, const struct counts *ports,
		      const struct port_entry *port, const struct counts *peers,
		      const struct peer *peer, struct headline *h)
{
	enum health peer_health = peer ? verdict_health(peer->verdict) : HEALTH_UNKNOWN;

	*h = (struct headline){.since = m->started, .left = count_wrong(m, ports, peers)};
	if (port && port->p.health == HEALTH_BAD) {
		tell_port(h, port);
	} else if (!control_open(m->control)) {
		h->health = HEALTH_BAD;
		str_append(h->text, sizeof(h->text),
			   "the control interface is not open: see the journal");
		h->left--;
	} else if (peer_health == HEALTH_BAD) {
		tell_peer(h, peer);
	} else if (port) {
		tell_port(h, port);
	} else if (peer_health == HEALTH_DEGRADED) {
		tell_peer(h, peer);
	} else if (!str_eq(m->config_source, "file")) {
		h->health = HEALTH_DEGRADED;
		h->since = m->config_since;
		str_append(h->text, sizeof(h->text), "the config has mistakes: %s runs",
			   str_eq(m->config_source, "last_good") ? "the last good copy"
								 : "what is valid of it");
		h->left--;
	} else {
		tell_nothing_wrong(h, ports, peers);
		if (peer && h->health == HEALTH_UNKNOWN)
			h->since = peer->since;
	}
	if (h->left > 0)
		str_append(h->text, sizeof(h->text), "; %d more", h->left);
}

static json_t *drop_counts(const uint64_t *count)
{
	json_t *o = json_object();

	for (int i = 0; i < DROP__MAX; i++)
		if (count[i])
			json_object_set_new(o, enum_name(&drop_names, i),
					    json_integer((json_int_t)count[i]));
	return o;
}

static json_t *verdict_counts(const struct manager *m)
{
	json_t *o = json_object();
	int n[VERDICT__MAX] = {0};

	for (int i = 0; i < m->n_conns; i++)
		if (m->conns[i]->c->key.role == ROLE_TX)
			n[m->conns[i]->verdict]++;
	for (int v = 0; v < VERDICT__MAX; v++)
		if (n[v])
			json_object_set_new(o, enum_name(&verdict_names, v), json_integer(n[v]));
	return o;
}

static json_t *config_json(const struct manager *m, const struct render_time *t)
{
	json_t *o = json_object();

	json_object_set_new(o, "file",
			    json_string(m->opt.config_path ? m->opt.config_path
							   : "/etc/fabd/fabd.conf"));
	json_object_set_new(o, "source", json_string(m->config_source));
	render_since(o, m->config_since, t);
	json_object_set_new(o, "errors", json_integer(m->config_errors));
	json_object_set_new(o, "warnings", json_integer(m->config_warnings));
	json_object_set(o, "problems", m->config_problems);
	return o;
}

static json_t *cost_json(const struct manager *m)
{
	struct loop_stats ls;

	loop_stats(m->loop, &ls);
	return json_pack("{s:f, s:I, s:I, s:f, s:f, s:f, s:I, s:I, s:I, s:I}", "cpu_percent",
			 m->cpu_percent, "rss_kib", (json_int_t)m->rss_kib, "rss_workers_kib",
			 (json_int_t)m->rss_workers_kib, "packets_per_sec", m->packets_per_sec,
			 "heartbeats_per_sec", m->heartbeats_per_sec, "mads_per_sec",
			 m->mads_per_sec, "turns", (json_int_t)ls.turns, "turn_cpu_worst_ns",
			 (json_int_t)ls.turn_cpu_worst_ns, "late_p99_ns",
			 (json_int_t)ls.late_p99_ns, "late_worst_ns",
			 (json_int_t)ls.late_worst_ns);
}

static void fabric_drops(const struct manager *m, uint64_t *ret)
{
	memcpy(ret, m->fabric_drops, sizeof(m->fabric_drops));
	for (const struct worker *w = m->workers; w; w = w->next)
		for (int i = 0; i < DROP__MAX; i++)
			ret[i] += w->drops[i];
}

/* {port: what the operator made of it}. */
static json_t *overridden_ports(struct manager *m)
{
	json_t *o = json_object();
	char name[PORT_NAME_MAX];

	for (struct device *d = m->devices; d; d = d->next)
		for (struct port_entry *pe = d->ports; pe; pe = pe->next)
			if (pe->p.override != OVERRIDE_AUTO)
				json_object_set_new(
					o, port_name(&pe->p, name),
					json_string(enum_name(&override_names,
							      (int)pe->p.override)));
	return o;
}

static void status_counts(struct manager *m, const struct render_time *t, json_t *o)
{
	struct counts ports = {0}, peers = {0};
	const struct port_entry *worst_port = NULL;
	const struct peer *worst_peer = NULL;
	struct sm_seen sm = {0};
	struct headline h;

	count_ports(m, &ports, &worst_port, &sm);
	count_peers(m, &peers, &worst_peer);
	summarize(m, &ports, worst_port, &peers, worst_peer, &h);
	json_object_set_new(o, "health", json_string(enum_name(&health_names, h.health)));
	json_object_set_new(o, "summary", json_string(h.text));
	json_object_set_new(o, "ports", counts_json(&ports));
	json_object_set_new(o, "peers", counts_json(&peers));
	json_object_set_new(o, "overridden", overridden_ports(m));
	json_object_set_new(o, "sm_lid", sm.lid ? json_integer(sm.lid) : json_null());
	render_age(o, "sm_age_sec", sm.lid ? sm.at : MONO_NEVER, t);
	m->status_since = h.since;
}

json_t *status_json(struct manager *m)
{
	struct render_time t = manager_time(m);
	uint64_t drops[DROP__MAX];
	json_t *o = json_object();

	json_object_set_new(o, "node", json_string(m->config->node_name));
	json_object_set_new(o, "version", json_string(FABD_VERSION));
	json_object_set_new(o, "schema", json_integer(SCHEMA));
	json_object_set_new(o, "instance", json_string(monitor_instance(m->monitor)));
	json_object_set_new(o, "pid", json_integer(getpid()));
	status_counts(m, &t, o);
	render_since(o, m->status_since, &t);
	json_object_set_new(o, "uptime_sec",
			    json_real((double)mono_sub(t.now, m->started) / 1e9));
	json_object_set_new(o, "verdicts", verdict_counts(m));
	json_object_set_new(o, "connections", json_integer(m->n_conns));
	json_object_set_new(o, "workers", workers_render(m, NULL, &t));
	json_object_set_new(o, "drops", drop_counts(m->drops));
	fabric_drops(m, drops);
	json_object_set_new(o, "fabric_drops", drop_counts(drops));
	json_object_set_new(o, "refused", control_refused(m->control, t.now));
	json_object_set_new(o, "config", config_json(m, &t));
	json_object_set_new(o, "cost", cost_json(m));
	json_object_set_new(o, "clients", json_integer(varlink_server_clients(m->server)));
	json_object_set_new(o, "seq", json_integer((json_int_t)monitor_seq(m->monitor)));
	json_object_set(o, "unavailable", m->unavailable);
	return o;
}
