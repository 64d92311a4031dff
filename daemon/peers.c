/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Peers of the config into connections, one per address and transport. A reload leaves
 * alone what did not change.
 */
#include <stdio.h>
#include <stdlib.h>

#include "manager.h"

#define CHANGED_BACK_SEC 30

struct peer *peer_find(struct manager *m, const char *name)
{
	struct peer *p;

	HASH_FIND_STR(m->peers, name, p);
	return p;
}

/* ---- connections of a peer ---- */

static uint16_t control_port(const struct manager *m, const struct peer *p)
{
	return p->cfg->port ? p->cfg->port : (uint16_t)m->config->control_port;
}

struct conn_entry *peer_tx(const struct peer *p, int index, enum transport t, uint16_t flow)
{
	PEER_EACH_TX(p, e)
		if (e->addr_index == index && e->c->key.transport == t && e->c->key.flow == flow)
			return e;
	return NULL;
}

static bool tx_before(const struct conn_entry *a, const struct conn_entry *b)
{
	const struct conn_key *k = &a->c->key, *l = &b->c->key;

	if (a->addr_index != b->addr_index)
		return a->addr_index < b->addr_index;
	return k->transport != l->transport ? k->transport < l->transport : k->flow < l->flow;
}

void peer_link_tx(struct peer *p, struct conn_entry *e)
{
	struct conn_entry **at = &p->first_tx;

	while (*at && tx_before(*at, e))
		at = &(*at)->next_tx;
	e->next_tx = *at;
	*at = e;
}

void peer_unlink_tx(struct peer *p, struct conn_entry *e)
{
	for (struct conn_entry **at = &p->first_tx; *at; at = &(*at)->next_tx)
		if (*at == e) {
			*at = e->next_tx;
			e->next_tx = NULL;
			return;
		}
}

static void tx_new(struct manager *m, const struct peer_addr *a, enum transport t,
		   uint16_t flow, const struct binding *b)
{
	char text[CONN_KEY_MAX], rail[CTL_NAME_MAX];
	struct peer *p = a->peer;
	struct conn_key key = {.peer = p->cfg->name,
			       .rail = peer_rail(p, a->place, rail),
			       .port_name = b->port_name,
			       .role = ROLE_TX,
			       .transport = t,
			       .remote = a->addr,
			       .flow = flow};
	struct conn_entry *e;

	e = conn_entry_new(m, &key, p, p->cfg->probe);
	e->addr_index = a->place;
	peer_link_tx(p, e);
	e->ctl_remote = a->addr;
	e->ctl_remote.port = control_port(m, p);
	e->ctl_local = b->local;
	conn_set_bind(m, e, b); /* a peer that is near is there before conns_rebind() */
	monitor_post(m->monitor, loop_now(m->loop), "connection",
		     conn_key_format(&e->c->key, text), "added", NULL, NULL, NULL);
	conn_bind(m, e); /* it knows its place before it speaks */
	heap_set(&m->timers, &e->timer, loop_now(m->loop));
	loop_timer_at(m->conn_timer, loop_now(m->loop));
}

/* Another device is another connection; a device that is only away keeps its own. */
static bool must_replace(const struct conn_entry *e, const struct peer_addr *a)
{
	const struct addr *then = &e->c->key.remote;

	if (!addr_same_ip(then, &a->addr) || then->zone != a->addr.zone)
		return true;
	return strcmp(e->bind->port_name, "-") != 0 &&
	       strcmp(e->bind->port_name, e->c->key.port_name) != 0;
}

static void sync_transport(struct manager *m, struct peer_addr *a, enum transport t)
{
	const struct config_probe *probe = a->peer->cfg->probe;
	const struct addr *source = a->told ? &a->told->source : &probe->source;
	struct binding b;
	bool bound = false;

	for (uint16_t flow = 0; flow < probe->flows; flow++) {
		struct conn_entry *e = peer_tx(a->peer, a->place, t, flow);

		if (e && !must_replace(e, a))
			continue;
		if (e)
			conn_drop(m, e);
		if (!bound)
			binding_find(m, &a->addr, source, t, &b);
		bound = true;
		tx_new(m, a, t, flow, &b);
	}
}

static void drop_transport(struct manager *m, const struct peer_addr *a, enum transport t)
{
	for (struct conn_entry *e = a->peer->first_tx, *next; e; e = next) {
		next = e->next_tx;
		if (e->addr_index == a->place && e->c->key.transport == t)
			conn_drop(m, e);
	}
}

/* ud udp, or rc udp on iWARP, which has no datagrams. Where no RDMA device owns the source
 * udp is all there can be; one that is away leaves its connections, which say so. */
static void sync_default(struct manager *m, struct peer_addr *a)
{
	const struct conn_entry *e;
	const struct port_entry *pe;
	bool iwarp;

	sync_transport(m, a, TRANSPORT_UDP);
	e = peer_tx(a->peer, a->place, TRANSPORT_UDP, 0);
	pe = e && !e->bind->own_host ? port_find(m, e->bind->port_name) : NULL;
	if (!pe || pe->device->index == DEVICE_INDEX_NONE || !pe->device->has_verbs_facts)
		return;
	iwarp = str_eq(pe->device->facts.transport, "iwarp");
	drop_transport(m, a, iwarp ? TRANSPORT_UD : TRANSPORT_RC);
	sync_transport(m, a, iwarp ? TRANSPORT_RC : TRANSPORT_UD);
}

void peer_sync_addr(struct manager *m, struct peer_addr *a)
{
	const struct config_probe *probe = a->peer->cfg->probe;

	if (!m->peers_ready || m->stopping)
		return;
	peer_addr_find_zone(m, a);
	if (!probe->transports) {
		sync_default(m, a);
		return;
	}
	for (int t = 0; t < TRANSPORT__MAX; t++)
		if (probe->transports & (1u << t))
			sync_transport(m, a, (enum transport)t);
}

void peers_tell_plain(struct manager *m)
{
	int plain = 0, all = 0;
	struct peer *p, *next;
	char why[128];

	HASH_ITER(hh, m->peers, p, next) {
		if (p->cfg->probe->transports)
			continue;
		PEER_EACH_ADDR(p, a) {
			const struct conn_entry *e = p->first_tx;

			while (e && (e->addr_index != a->place ||
				     e->c->key.transport == TRANSPORT_UDP))
				e = e->next_tx;
			plain += !e;
			all++;
		}
	}
	(void)snprintf(why, sizeof(why),
		       "no RDMA device owns the source of %d of %d addresses of peers: these "
		       "are probed over udp alone",
		       plain, all);
	if (m->peers_ready)
		manager_unavailable(m, "rdma_probes", plain ? why : NULL);
}

void peer_sync(struct manager *m, struct peer *p)
{
	PEER_EACH_ADDR(p, a)
		peer_sync_addr(m, a);
}

void peers_tick(struct manager *m, struct mono now)
{
	peer_names_tick(m, now);
	rails_tick(m, now);
}

void peer_count_flows(const struct conn_entry *e, int *ret_n, int *ret_well)
{
	*ret_n = *ret_well = 0;
	if (!e->peer || e->c->key.role != ROLE_TX)
		return;
	PEER_EACH_TX(e->peer, o)
		if (o->addr_index == e->addr_index &&
		    o->c->key.transport == e->c->key.transport) {
			++*ret_n;
			*ret_well += o->c->connected && !o->c->late;
		}
}

const char *peer_why(const struct peer *p)
{
	return p->why ? p->why : "";
}

/* ---- config ---- */

/* They stand in the order of their serials. Lists are asked for one after the other. */
struct peer *peer_after(struct manager *m, uint64_t serial)
{
	bool ahead = m->listed && m->listed->serial <= serial;
	struct peer *p = ahead ? m->listed : m->peers;

	while (p && p->serial <= serial)
		p = p->hh.next;
	if (p)
		m->listed = p;
	return p;
}

static void peer_free(struct manager *m, struct peer *p)
{
	while (p->names)
		peer_name_free(p->names);
	while (p->addrs)
		peer_addr_free(m, p->addrs);
	rails_forget(m, p);
	verdict_forget_peer(m, p);
	if (m->sync_next == p)
		m->sync_next = p->hh.next;
	if (m->rails_next == p)
		m->rails_next = p->hh.next;
	if (m->listed == p)
		m->listed = NULL;
	HASH_DEL(m->peers, p);
	pool_put(&m->shared, p->why);
	free(p);
}

/* One that is only changed is back in a moment: it says so, lest the other side take it
 * for dropped. */
static void leave_stale(struct manager *m, struct conn_entry *e)
{
	bool comes_back = config_peer_find(m->config, e->peer->cfg->name) != NULL;

	conn_leave_peer(e);
	conn_order(m, e, CI_STOP, CAUSE_CONFIG, comes_back ? CHANGED_BACK_SEC : 0);
}

static void peer_add(struct manager *m, const struct config_peer *cp)
{
	struct peer *p = xcalloc(1, sizeof(*p));

	p->serial = ++m->next_serial;
	p->cfg = cp;
	p->since = loop_now(m->loop);
	HASH_ADD_KEYPTR(hh, m->peers, cp->name, strlen(cp->name), p);
	for (int i = 0; i < cp->n_addrs; i++)
		if (cp->addrs[i].addr.family)
			peer_addr_new(m, p, &cp->addrs[i].addr, i, i);
		else
			peer_name_new(m, p, i);
}

/* The same peer in the new config. Its key is the same text in another place. */
static void peer_keep(struct peer *p, const struct config_peer *cp)
{
	p->stale = false;
	p->cfg = cp;
	p->hh.key = cp->name;
	peer_names_again(p);
}

static void update_conn(struct manager *m, struct conn_entry *e)
{
	struct conn_params params;

	conn_params_from(e->peer->cfg->probe, &params);
	conn_set_params(e->c, &params);
	if (e->c->key.role == ROLE_TX)
		e->ctl_remote.port = control_port(m, e->peer);
}

void peers_apply(struct manager *m)
{
	struct peer *p, *next;

	HASH_ITER(hh, m->peers, p, next) {
		const struct config_peer *cp = config_peer_find(m->config, p->cfg->name);

		p->stale = !cp || !config_peer_equal(p->cfg, cp);
		if (!p->stale)
			peer_keep(p, cp);
	}
	for (int i = m->n_conns - 1; i >= 0; i--) {
		struct conn_entry *e = m->conns[i];

		if (e->peer && e->peer->stale)
			leave_stale(m, e);
		else if (e->peer)
			update_conn(m, e);
	}
	/* What is gone or different goes before what is new comes. */
	HASH_ITER(hh, m->peers, p, next)
		if (p->stale)
			peer_free(m, p);
	for (int i = 0; i < m->config->n_peers; i++)
		if (!peer_find(m, m->config->peers[i].name))
			peer_add(m, &m->config->peers[i]);
	conns_rekey(m);
	m->rails_sync_at = loop_now(m->loop); /* Mesh=, or who has an address, may differ */
	peers_sync(m);
}

void peers_free(struct manager *m)
{
	struct peer *p, *next;

	HASH_ITER(hh, m->peers, p, next)
		peer_free(m, p);
}
