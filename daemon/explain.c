/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Explain: what is known of the way to a peer, gathered when somebody asks, for
 * lib/explain.c to put in order. A few questions to the kernel, none that waits; small
 * files of /proc only where two interfaces share a subnet.
 */
#include <linux/neighbour.h>
#include <stdio.h>
#include <stdlib.h>

#include "manager.h"

/* ---- which connection ---- */

static bool wanted(const struct conn_entry *e, const struct api_explain_what *what)
{
	char key[CONN_KEY_MAX];

	return (!what->rail || str_eq(e->c->key.rail, what->rail)) &&
	       (what->transport < 0 || (int)e->c->key.transport == what->transport) &&
	       (!what->connection ||
		str_eq(conn_key_format(&e->c->key, key), what->connection));
}

/* Worse, or as bad and a better witness: what carries a fault before what it holds, RDMA
 * before its reference. */
static bool is_worse(const struct conn_entry *a, const struct conn_entry *b)
{
	int x = verdict_severity(a->verdict), y = verdict_severity(b->verdict);

	if (x != y)
		return x > y;
	return a->c->key.transport != TRANSPORT_UDP && b->c->key.transport == TRANSPORT_UDP;
}

static struct conn_entry *worst_of(const struct peer *p, const struct api_explain_what *what)
{
	struct conn_entry *worst = NULL;

	PEER_EACH_TX(p, e)
		if (wanted(e, what) && (!worst || is_worse(e, worst)))
			worst = e;
	return worst;
}

/* ---- name and addresses ---- */

static bool rail_in_config(const struct peer *p, const char *rail)
{
	char label[CTL_NAME_MAX];

	for (int i = 0; i < p->cfg->n_addrs; i++)
		if (str_eq(peer_rail(p, i, label), rail))
			return true;
	return false;
}

static int64_t age_of(struct mono at, struct mono now)
{
	return mono_is_set(at) ? MAX(mono_sub(now, at), 0) : -1;
}

static void facts_of_name(const struct peer *p, const struct conn_entry *e, struct mono now,
			  struct explain_facts *f)
{
	const struct peer_addr *a = e ? peer_addr_at(p, e->addr_index) : NULL;
	const struct peer_name *n = p->names;
	int known = 0;

	f->name_age = -1;
	PEER_EACH_ADDR(p, x)
		known++;
	f->addresses = MAX(p->cfg->n_addrs, known);
	f->addresses_known = known;
	(void)str_copy(f->resolve_error, sizeof(f->resolve_error), peer_resolve_error(p));
	if (!e)
		return;
	f->remote = e->c->key.remote;
	f->name_source = NAME_CONFIG;
	if (a && a->told) {
		f->name_source = NAME_PEER;
		return;
	}
	while (n && a && n->from != a->from)
		n = n->next;
	if (!a || !n)
		return;
	f->name_source = NAME_RESOLVER;
	f->name_age = age_of(n->found_at, now);
	(void)str_copy(f->host, sizeof(f->host), p->cfg->addrs[n->from].text);
}

/* ---- the kernel's view ---- */

static enum neighbour_state neighbour_state(uint16_t nud)
{
	static const struct {
		uint16_t nud;
		enum neighbour_state state;
	} states[] = {
		{NUD_REACHABLE, NEIGHBOUR_REACHABLE}, {NUD_STALE, NEIGHBOUR_STALE},
		{NUD_DELAY, NEIGHBOUR_DELAY},	      {NUD_PROBE, NEIGHBOUR_PROBE},
		{NUD_FAILED, NEIGHBOUR_FAILED},	      {NUD_INCOMPLETE, NEIGHBOUR_INCOMPLETE},
		{NUD_PERMANENT, NEIGHBOUR_PERMANENT}, {NUD_NOARP, NEIGHBOUR_NOARP},
	};

	for (size_t i = 0; i < ARRAY_LEN(states); i++)
		if (nud & states[i].nud)
			return states[i].state;
	return NEIGHBOUR_UNKNOWN;
}

static void facts_of_neighbour(struct manager *m, uint32_t link, struct explain_facts *f)
{
	const struct addr *a = f->gateway.family ? &f->gateway : &f->remote;
	uint16_t state;
	int64_t age;

	f->neighbour_age = -1;
	if (f->own_host || netlink_neighbour(m->netlink, link, a, &state, &age) < 0)
		return;
	f->neighbour = neighbour_state(state);
	/* Of others it is the time since a failure, or nothing. */
	if (state & (NUD_REACHABLE | NUD_STALE | NUD_DELAY | NUD_PROBE))
		f->neighbour_age = age;
}

static void facts_of_route(struct manager *m, const struct conn_entry *e,
			   struct explain_facts *f)
{
	const struct addr *source = &conn_probe(m, e)->source;
	const struct nl_link *l = NULL;
	struct nl_route route;
	uint32_t link;

	f->local = e->bind->local;
	f->own_host = e->bind->own_host;
	link = e->bind->netdev_index;
	if (m->netlink) {
		f->route_asked = true;
		f->route_error = netlink_route(m->netlink, &f->remote,
					       source->family ? source : NULL, &route);
		if (f->route_error == 0) {
			f->gateway = route.gateway;
			f->local = route.source.family ? route.source : f->local;
			link = route.oif;
		}
		l = netlink_link(m->netlink, link);
	}
	if (l) {
		(void)str_copy(f->netdev, sizeof(f->netdev), l->name);
		f->netdev_up = l->up && l->running;
		f->netdev_mtu = l->mtu;
		facts_of_neighbour(m, link, f);
	}
	f->local.port = 0;
	f->source_missing = e->bind->error == EPERR_NO_ADDRESS ||
			    (e->bind->port_down && l && f->netdev_up && e->bind->local.family &&
			     m->netlink && !netlink_own_addr(m->netlink, &e->bind->local));
	if (e->bind->error)
		(void)str_copy(f->bind_why, sizeof(f->bind_why), e->bind->why);
}

/* ---- two interfaces on one subnet ---- */

static int read_number(const char *interface, const char *key)
{
	char path[128];
	int value = -1;
	FILE *f;

	(void)snprintf(path, sizeof(path), "/proc/sys/net/ipv4/conf/%s/%s", interface, key);
	f = fopen(path, "re");
	if (f && fscanf(f, "%d", &value) != 1)
		value = -1;
	if (f)
		(void)fclose(f);
	return value;
}

/* The kernel takes the larger of the two. */
static int in_effect(const char *interface, const char *key)
{
	int all = read_number("all", key), own = read_number(interface, key);

	return all < 0 || own < 0 ? -1 : MAX(all, own);
}

static int less_known(int a, int b)
{
	return a < 0 ? b : b < 0 ? a : MIN(a, b);
}

static void settings_of(const char *interface, struct explain_arp *ret)
{
	int filter = in_effect(interface, "rp_filter");

	ret->arp_ignore = less_known(ret->arp_ignore, in_effect(interface, "arp_ignore"));
	ret->arp_announce = less_known(ret->arp_announce, in_effect(interface, "arp_announce"));
	/* 1, strict, is the harmful one of 0, 1, 2. */
	if (ret->rp_filter != 1 && filter >= 0)
		ret->rp_filter = filter;
}

static struct addr subnet_of(const struct addr *a, uint8_t bits)
{
	struct addr net = *a;

	for (unsigned i = 0; i < 32; i++)
		if (i >= bits)
			net.ip[i / 8] &= (uint8_t)~(0x80u >> i % 8);
	net.port = 0;
	return net;
}

static bool on_subnet(const struct nl_addr *a, const struct explain_arp *arp)
{
	struct addr net = a->addr;

	if (net.family != 4 || a->bits != arp->bits)
		return false;
	net = subnet_of(&net, a->bits);
	return addr_same_ip(&net, &arp->subnet);
}

/* An interface may have several addresses there. */
static bool seen_before(const struct nl_addr *list, int i, const struct explain_arp *arp)
{
	for (int k = 0; k < i; k++)
		if (list[k].link == list[i].link && on_subnet(&list[k], arp))
			return true;
	return false;
}

static void facts_of_arp(struct manager *m, struct explain_arp *ret, const struct addr *local)
{
	const struct nl_addr *own = m->netlink && local->family == 4
					    ? netlink_own_addr(m->netlink, local)
					    : NULL;
	const struct nl_addr *list;
	int n;

	*ret = (struct explain_arp){.rp_filter = -1, .arp_ignore = -1, .arp_announce = -1};
	if (!own || own->bits == 0 || own->bits >= 32 || addr_is_loopback(local))
		return;
	ret->subnet = subnet_of(local, own->bits);
	ret->bits = own->bits;
	list = netlink_addrs(m->netlink, &n);
	for (int i = 0; i < n; i++) {
		const struct nl_link *l = netlink_link(m->netlink, list[i].link);

		if (!l || l->loopback || !l->up || !on_subnet(&list[i], ret) ||
		    seen_before(list, i, ret))
			continue;
		if (++ret->interfaces <= 2)
			(void)str_copy(ret->interfaces == 1 ? ret->first : ret->second,
				       EP_IF_MAX, l->name);
	}
	if (ret->interfaces < 2)
		return;
	settings_of(ret->first, ret);
	settings_of(ret->second, ret);
}

/* ---- the port ---- */

static void facts_of_port(struct manager *m, const struct conn_entry *e,
			  struct explain_facts *f)
{
	const char *name = strcmp(e->bind->port_name, "-") ? e->bind->port_name
							  : e->c->key.port_name;
	const struct port_entry *pe = strcmp(name, "-") ? port_find(m, name) : NULL;
	const struct port_facts *p;

	if (strcmp(name, "-"))
		(void)str_copy(f->port, sizeof(f->port), name);
	if (!pe)
		return;
	p = &pe->p.facts;
	f->port_health = pe->p.health;
	(void)str_copy(f->port_why, sizeof(f->port_why), pe->p.health_why);
	(void)str_copy(f->port_far, sizeof(f->port_far),
		       pe->p.last_remote[0] ? pe->p.last_remote : pe->p.far_name);
	if (!p->why[PF_STATE])
		(void)str_copy(f->port_state, sizeof(f->port_state), p->state);
	f->infiniband = !p->why[PF_LINK_LAYER] && str_eq(p->link_layer, "infiniband");
	f->lid = p->why[PF_LID] ? 0 : p->lid;
	f->sm_lid = p->why[PF_SM_LID] ? 0 : p->sm_lid;
	f->port_mtu = p->why[PF_ACTIVE_MTU] ? 0 : p->active_mtu;
	f->pkey_known = pe->p.n_pkeys > 0;
	f->pkey = f->pkey_known ? pe->p.pkeys[0] : 0;
	f->has_worker = pe->device->rdma != NULL;
	if (!f->has_worker)
		return;
	f->worker = pe->device->rdma->state;
	(void)str_copy(f->worker_why, sizeof(f->worker_why), pe->device->rdma->why);
}

/* How RDMA over the same port fares to other hosts; each counts once, by its worst. */
static void facts_of_port_hosts(struct manager *m, const struct conn_entry *e,
				struct explain_facts *f)
{
	struct peer *p, *next;

	if (e->c->key.transport == TRANSPORT_UDP || !e->bind->port_serial)
		return;
	HASH_ITER(hh, m->peers, p, next) {
		bool probed = false, broken = false;

		PEER_EACH_TX(p, o) {
			if (o->c->key.transport == TRANSPORT_UDP ||
			    o->bind->port_serial != e->bind->port_serial)
				continue;
			probed = true;
			broken |= o->own_verdict == VERDICT_RDMA_BROKEN;
		}
		f->port_hosts += probed && p != e->peer;
		f->port_hosts_broken += broken && p != e->peer;
	}
}

/* ---- the connection ---- */

static void facts_of_connection(struct manager *m, const struct conn_entry *e,
				struct mono now, struct explain_facts *f)
{
	const struct config_probe *probe = conn_probe(m, e);
	const struct conn *c = e->c;
	const struct ep_stats *stats = conn_stats(c);

	f->transport = c->key.transport;
	f->path = conn_endpoint(c)->path;
	if (f->path.known & EP_PATH_PKEY) {
		f->pkey_known = true;
		f->pkey = f->path.pkey;
	}
	f->path_age = age_of(c->connected_at, now);
	f->wanted_sl = (int)probe->service_level - 1; /* 0: as the path says */
	f->traffic_class = (uint8_t)probe->traffic_class;
	f->control_port = e->ctl_remote.port;
	f->control_age = age_of(c->last_ctl_rx, now);
	f->control_silence = age_of(c->ctl_unanswered_since, now);
	f->version = c->version;
	f->state = c->state;
	f->state_age = age_of(c->state_since, now);
	f->connected_age = age_of(c->connected_at, now);
	f->error_age = age_of(c->error_at, now);
	f->stage = c->stage;
	(void)str_copy(f->error_text, sizeof(f->error_text),
		       e->bind->error ? e->bind->why : conn_error_text(c));
	f->stop_left = mono_is_set(c->stop_until) ? mono_sub(c->stop_until, now) : -1;
	f->heartbeat_age = age_of(c->last_fabric_rx, now);
	f->sent = stats->sent;
	f->lost = stats->lost;
	f->rtt_p50 = stats->samples ? stats->rtt_p50 : 0;
	f->rtt_p99 = stats->samples ? stats->rtt_p99 : 0;
}

static void add_other(struct manager *m, struct conn_entry *o, struct explain_facts *f)
{
	struct explain_other *x = &f->others[f->n_others++];
	const struct conn *c = o->c;
	const struct ep_stats *stats;

	conn_refresh(m, o);
	stats = conn_stats(c);
	*x = (struct explain_other){.transport = c->key.transport,
				    .connected = c->connected && !c->late,
				    .sent = stats->sent,
				    .lost = stats->lost,
				    .rtt_p50 = stats->samples ? stats->rtt_p50 : 0};
	if (c->key.transport == TRANSPORT_UDP)
		(void)str_copy(x->on, sizeof(x->on), o->bind->netdev);
}

static void facts_of_others(struct manager *m, const struct conn_entry *e,
			    struct explain_facts *f)
{
	PEER_EACH_TX(e->peer, o)
		if (o != e && o->addr_index == e->addr_index &&
		    o->c->key.transport != e->c->key.transport &&
		    o->c->key.flow == e->c->key.flow && f->n_others < EXPLAIN_OTHERS_MAX)
			add_other(m, o, f);
}

static void facts_of_verdict(struct manager *m, const struct peer *p, struct conn_entry *e,
			     struct mono now, struct explain_facts *f)
{
	if (!e) {
		f->given.verdict = p->verdict;
		(void)str_copy(f->given.why, sizeof(f->given.why), peer_why(p));
		f->inner = f->given;
		return;
	}
	evidence_gather(m, e, now, &f->v);
	f->given.verdict = e->verdict;
	(void)str_copy(f->given.why, sizeof(f->given.why), e->why);
	f->inner = f->given;
	if (f->given.verdict == VERDICT_HELD || f->given.verdict == VERDICT_SILENCED)
		verdict_decide(&f->v, &f->inner);
}

/* NULL: there is something to explain. */
static const char *missing(const struct peer *p, const struct api_explain_what *what,
			   const struct conn_entry *found, json_t **ret)
{
	struct api_explain_what rail = {.rail = what->rail, .transport = -1};
	_cleanup_(freep) char *name = NULL;

	if (!p) {
		*ret = json_pack("{s:s}", "peer", what->peer);
		return "io.fabd.NoSuchPeer";
	}
	/* A rail without an address, that is what there is to explain. */
	if (found || (!what->connection && !worst_of(p, &rail) &&
		      (!what->rail || rail_in_config(p, what->rail))))
		return NULL;
	name = what->connection
		       ? xstrdup(what->connection)
		       : xasprintf("%s%s%s%s%s", what->peer, what->rail ? "/" : "",
				   what->rail ? what->rail : "",
				   what->transport >= 0 ? " over " : "",
				   what->transport >= 0
					   ? enum_name(&transport_names, what->transport)
					   : "");
	*ret = json_pack("{s:s}", "connection", name);
	return "io.fabd.NoSuchConnection";
}

const char *api_explain(void *user, const struct api_explain_what *what, json_t **ret)
{
	struct manager *m = user;
	struct render_time t = manager_time(m);
	struct peer *p = peer_find(m, what->peer);
	struct conn_entry *e = p ? worst_of(p, what) : NULL;
	struct explain_facts f = {.peer = what->peer, .rail = what->rail};
	struct explanation result;
	const char *error = missing(p, what, e, ret);

	if (error)
		return error;
	if (e)
		conn_refresh(m, e);
	facts_of_name(p, e, t.now, &f);
	facts_of_verdict(m, p, e, t.now, &f);
	if (e) {
		f.has_connection = true;
		f.rail = e->c->key.rail;
		facts_of_route(m, e, &f);
		facts_of_arp(m, &f.arp, &f.local);
		facts_of_port(m, e, &f);
		facts_of_port_hosts(m, e, &f);
		facts_of_connection(m, e, t.now, &f);
		facts_of_others(m, e, &f);
	}
	explain(&f, &result);
	*ret = render_explanation(&f, &result, e ? &e->c->key : NULL,
				  e ? e->verdict_since : p->since, &t);
	return NULL;
}
