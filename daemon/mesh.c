/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rails: those of this host, which it tells, and those that a peer tells, which are probed
 * as Mesh= says.
 *
 * A peer must not be able to make this host probe whom it likes. What it tells counts only
 * in the acknowledgement of an attempt that it has taken part in (the challenge; its key,
 * where there is one), 16 addresses at most, changes at most every 5 s. Of these only
 * addresses that could be its own are tried: of one host, not this one, not of another
 * peer. Each gets what every address that is probed gets while nothing answers, a Reset
 * now and then within the budget of starts; and nothing more until it has answered as the
 * same node. Nor has it rights here before: who asks from it is taken for the peer only if
 * it says that it is that node, and has come through the challenge.
 */
#include <stdio.h>
#include <stdlib.h>

#include "manager.h"

#define SYNC_EVERY_NS (5 * NSEC_PER_SEC)
#define NEWS_NS	      (60 * NSEC_PER_SEC) /* told again so long: an answer may be lost */
#define REFUSED_NS    (3600 * NSEC_PER_SEC)

/* ---- own rails ---- */

static void facts_of_port(const struct port_entry *pe, const struct addr *a,
			  struct ctl_rail_facts *ret)
{
	const struct port_facts *f = &pe->p.facts;
	uint8_t mapped[16] = {[10] = 0xff, [11] = 0xff};
	const struct port_gid *best = NULL;

	memset(ret, 0, sizeof(*ret));
	memcpy(mapped + 12, a->ip, 4);
	if (!f->why[PF_ACTIVE_MTU])
		ret->mtu = (uint16_t)MIN(f->active_mtu, UINT16_MAX);
	if (!f->why[PF_LID])
		ret->lid = f->lid;
	for (int i = 0; i < pe->p.n_gids; i++) {
		const struct port_gid *g = &pe->p.gids[i];

		/* the one of the address, the last type of it; else the first of all */
		if (!memcmp(g->gid, a->family == 4 ? mapped : a->ip, 16) || !best)
			best = g;
	}
	if (best)
		memcpy(ret->gid, best->gid, 16);
	for (int i = 0; i < pe->p.n_pkeys && ret->n_pkeys < CTL_PKEYS_MAX; i++)
		if (pe->p.pkeys[i] & 0x7fff)
			ret->pkeys[ret->n_pkeys++] = pe->p.pkeys[i];
}

static void add_own(struct own_rails *r, const struct port_entry *pe, const struct addr *a)
{
	struct ctl_rail *rail = &r->rail[r->n];
	char name[PORT_NAME_MAX];

	if (r->n == CTL_RAILS_MAX)
		return;
	memset(rail, 0, sizeof(*rail)); /* compared as bytes */
	rail->addr.family = a->family;
	memcpy(rail->addr.ip, a->ip, sizeof(a->ip));
	(void)str_copy(rail->label, sizeof(rail->label),
		       pe->p.rail[0] ? pe->p.rail : port_name(&pe->p, name));
	facts_of_port(pe, &rail->addr, &r->facts[r->n++]);
}

static void collect(struct manager *m, struct own_rails *r)
{
	int n;
	const struct nl_addr *list = netlink_addrs(m->netlink, &n);

	for (struct device *d = m->devices; d; d = d->next)
		for (struct port_entry *pe = d->ports; pe; pe = pe->next)
			if (pe->p.tied.family) {
				struct addr tied = {.family = pe->p.tied.family};

				memcpy(tied.ip, pe->p.tied.ip, sizeof(tied.ip));
				add_own(r, pe, &tied);
			}
	for (int i = 0; i < n; i++) {
		const struct port_entry *pe = port_of_address(m, &list[i].addr);

		if (pe && !addr_is_link_local(&list[i].addr) &&
		    !port_tied(pe, &list[i].addr))
			add_own(r, pe, &list[i].addr);
	}
}

/* Every address of this host that an RDMA port owns is a rail. */
static void rails_collect(struct manager *m)
{
	struct mono now = loop_now(m->loop);
	struct own_rails fresh;

	if (mono_is_set(m->rails_collected_at) &&
	    mono_sub(now, m->rails_collected_at) < NSEC_PER_SEC)
		return;
	m->rails_collected_at = now;
	memset(&fresh, 0, sizeof(fresh));
	collect(m, &fresh);
	fresh.edition = m->own_rails.edition;
	if (!memcmp(&fresh, &m->own_rails, sizeof(fresh)))
		return;
	fresh.edition++;
	m->own_rails = fresh;
	m->rails_changed_at = now;
	m->rails_sync_at = now; /* pairs may be other ones */
}

void rails_tell(const struct manager *m, struct conn_entry *e, struct ctl_msg *msg)
{
	const struct own_rails *r = &m->own_rails;

	/* A ping's ack says it only when it is news. */
	if (msg->cmd == CTL_PING_ACK && e->told_edition == r->edition &&
	    mono_sub(loop_now(m->loop), m->rails_changed_at) > NEWS_NS)
		return;
	e->told_edition = r->edition;
	msg->n_rails = r->n;
	memcpy(msg->rails, r->rail, (size_t)r->n * sizeof(r->rail[0]));
	memcpy(msg->facts, r->facts, (size_t)r->n * sizeof(r->facts[0]));
}

/* ---- what a peer tells ---- */

static bool told_equal(const struct peer_told *t, const struct ctl_msg *msg)
{
	if (!t || t->n != msg->n_rails || !str_eq(t->node, msg->node))
		return false;
	for (int i = 0; i < t->n; i++)
		if (!str_eq(t->rail[i].label, msg->rails[i].label) ||
		    !addr_same_ip(&t->rail[i].addr, &msg->rails[i].addr) ||
		    memcmp(&t->rail[i].facts, &msg->facts[i], sizeof(msg->facts[i])) != 0)
			return false;
	return true;
}

static void index_rail(struct manager *m, struct told_rail *r)
{
	struct told_rail *known;

	HASH_FIND(hh, m->told_rails, r->addr.ip, sizeof(r->addr.ip), known);
	r->indexed = !known;
	if (!known)
		HASH_ADD(hh, m->told_rails, addr.ip, sizeof(r->addr.ip), r);
}

static void free_told(struct manager *m, struct peer_told *t)
{
	for (int i = 0; t && i < t->n; i++) {
		if (t->rail[i].indexed)
			HASH_DEL(m->told_rails, &t->rail[i]);
		free(t->rail[i].label);
	}
	free(t);
}

/* What is known of an address stays while the same node tells it. */
static void take_over(const struct peer_told *old, const char *node, struct told_rail *r)
{
	for (int i = 0; old && i < old->n; i++)
		if (str_eq(old->node, node) && addr_same_ip(&old->rail[i].addr, &r->addr)) {
			r->refused_at = old->rail[i].refused_at;
			r->verified = old->rail[i].verified;
		}
}

static struct peer_told *new_told(struct manager *m, struct peer *p, const struct ctl_msg *msg)
{
	struct peer_told *t = xcalloc(1, sizeof(*t) + (size_t)msg->n_rails * sizeof(t->rail[0]));

	(void)str_copy(t->node, sizeof(t->node), msg->node);
	t->n = msg->n_rails;
	for (int i = 0; i < t->n; i++) {
		struct told_rail *r = &t->rail[i];

		r->peer = p;
		r->label = xstrdup(msg->rails[i].label);
		r->addr = msg->rails[i].addr;
		r->facts = msg->facts[i];
		take_over(p->told, t->node, r);
	}
	free_told(m, p->told);
	for (int i = 0; i < t->n; i++)
		index_rail(m, &t->rail[i]);
	return t;
}

struct told_rail *peer_told_rail(const struct peer *p, const struct addr *a)
{
	for (int i = 0; p->told && i < p->told->n; i++)
		if (addr_same_ip(&p->told->rail[i].addr, a))
			return &p->told->rail[i];
	return NULL;
}

static void want_sync(struct manager *m, struct mono at)
{
	m->rails_sync_at = mono_first(m->rails_sync_at, at);
}

/* What is new waits for its turn, what is gone goes. */
static void drop_untold(struct manager *m, struct peer *p)
{
	struct peer_addr *next;

	for (struct peer_addr *a = p->addrs; a; a = next) {
		next = a->next;
		if (a->told && !peer_told_rail(p, &a->addr))
			peer_addr_drop(m, a);
	}
}

void rails_told(struct manager *m, struct peer *p, const struct ctl_msg *msg)
{
	struct mono now = loop_now(m->loop);
	struct ctl_msg known;
	struct mono at;

	/* A ping's ack has no node, and no rails when there is no news of them. */
	if (msg->cmd == CTL_PING_ACK) {
		if (!msg->n_rails || !p->told)
			return;
		known = *msg;
		(void)str_copy(known.node, sizeof(known.node), p->told->node);
		msg = &known;
	}
	if (told_equal(p->told, msg))
		return;
	at = p->told ? p->told->sync_at : now;
	p->told = new_told(m, p, msg);
	p->told->sync_at = at.ns < now.ns ? now : at;
	want_sync(m, p->told->sync_at);
	drop_untold(m, p);
}

void rails_forget(struct manager *m, struct peer *p)
{
	free_told(m, p->told);
	p->told = NULL;
}

struct told_rail *rails_find(const struct manager *m, const struct addr *a)
{
	struct told_rail *r;

	HASH_FIND(hh, m->told_rails, a->ip, sizeof(a->ip), r);
	return r && addr_same_ip(&r->addr, a) ? r : NULL;
}

/* ---- which of them are probed ---- */

/* It could be an address of that host, and of no other. */
static bool could_be_its_own(struct manager *m, const struct peer *p, const struct told_rail *r)
{
	static const uint8_t any[16];
	const struct addr *a = &r->addr;
	const struct peer_addr *other = peer_addr_first(m, a);

	if (mono_is_set(r->refused_at) &&
	    mono_sub(loop_now(m->loop), r->refused_at) < REFUSED_NS)
		return false;
	if (addr_is_link_local(a) || addr_is_loopback(a) || netlink_own_addr(m->netlink, a) ||
	    !memcmp(a->ip, any, sizeof(any)))
		return false;
	if (a->family == 4 ? a->ip[0] == 0 || a->ip[0] >= 224 : a->ip[0] == 0xff)
		return false;
	return !other || other->peer == p;
}

static int probes_of(const struct peer *p, struct mesh_probe *ret, int max)
{
	int n = 0;

	PEER_EACH_ADDR(p, a) {
		const struct conn_entry *first = NULL;

		if (a->told || n == max)
			continue;
		PEER_EACH_TX(p, e)
			if (!first && e->addr_index == a->place)
				first = e;
		ret[n++] = (struct mesh_probe){.own = first ? first->bind->local
							    : (struct addr){0},
					       .remote = a->addr};
	}
	return n;
}

static int wanted_pairs(struct manager *m, const struct peer *p,
			struct mesh_pair ret[MESH_PAIRS_MAX])
{
	const struct own_rails *r = &m->own_rails;
	struct mesh_addr own[CTL_RAILS_MAX], told[CTL_RAILS_MAX];
	struct mesh_probe probes[PEER_ADDRS_MAX];
	int n = probes_of(p, probes, PEER_ADDRS_MAX);

	for (int i = 0; i < r->n; i++)
		own[i] = (struct mesh_addr){r->rail[i].label, &r->rail[i].addr, false};
	for (int i = 0; i < p->told->n; i++)
		told[i] = (struct mesh_addr){p->told->rail[i].label, &p->told->rail[i].addr,
					     !could_be_its_own(m, p, &p->told->rail[i])};
	return mesh_pairs(p->cfg->probe->mesh, own, r->n, told, p->told->n, probes, n, ret);
}

static struct peer_addr *find_pair(const struct peer *p, const struct addr *own,
				   const struct addr *told)
{
	PEER_EACH_ADDR(p, a)
		if (a->told && addr_same_ip(&a->addr, told) &&
		    addr_same_ip(&a->told->source, own))
			return a;
	return NULL;
}

/* Has anything come of it? */
static bool sync_peer(struct manager *m, struct peer *p)
{
	const struct own_rails *r = &m->own_rails;
	struct mesh_pair pairs[MESH_PAIRS_MAX];
	int n = wanted_pairs(m, p, pairs);
	struct peer_addr *next;
	bool moved = false;

	PEER_EACH_ADDR(p, a)
		if (a->told)
			a->told->stale = true;
	for (int i = 0; i < n; i++) {
		const struct told_rail *told = &p->told->rail[pairs[i].told];
		const struct addr *own = &r->rail[pairs[i].own].addr;
		struct peer_addr *a = find_pair(p, own, &told->addr);

		if (!a) {
			a = peer_addr_new_told(m, p, &told->addr, told->label, own);
			peer_sync_addr(m, a);
			moved = true;
		}
		a->told->stale = false;
	}
	for (struct peer_addr *a = p->addrs; a; a = next) {
		next = a->next;
		if (!a->told || !a->told->stale)
			continue;
		peer_addr_drop(m, a);
		moved = true;
	}
	if (moved)
		verdict_mark_peer(m, p);
	return moved;
}

static void sync_in_time(struct manager *m, struct peer *p, struct mono now)
{
	int before = m->n_conns;

	if (!p->told)
		return;
	if (!mono_due(p->told->sync_at, now))
		want_sync(m, p->told->sync_at);
	else if (sync_peer(m, p))
		p->told->sync_at = mono_add(now, SYNC_EVERY_NS);
	m->rails_share.taken += (unsigned)MAX(m->n_conns - before, 0);
}

void rails_on_more(struct manager *m, struct mono now)
{
	if (m->stopping)
		m->rails_next = NULL;
	while (m->rails_next && take_share(m, &m->rails_share, CONNS_PER_TURN)) {
		struct peer *p = m->rails_next;

		m->rails_next = p->hh.next;
		sync_in_time(m, p, now);
	}
}

void rails_tick(struct manager *m, struct mono now)
{
	rails_collect(m);
	if (!mono_due(m->rails_sync_at, now) || !m->peers_ready || m->stopping ||
	    m->rails_next)
		return; /* or a pass is under way */
	m->rails_sync_at = MONO_NEVER;
	m->rails_next = m->peers;
	rails_on_more(m, now);
}

/* ---- is it the same node ---- */

bool rails_may_ask(const struct told_rail *r, const struct ctl_msg *msg)
{
	return msg->node[0] && str_eq(r->peer->told->node, msg->node);
}

bool rails_verify(struct manager *m, struct conn_entry *e, const struct ctl_msg *msg)
{
	struct peer_addr *a = e->peer ? peer_addr_at(e->peer, e->addr_index) : NULL;
	struct told_rail *r;
	char text[ADDR_TEXT_MAX];

	if (!a || !a->told || msg->cmd != CTL_PROTOCOL_VERSION_ACK)
		return true;
	r = peer_told_rail(e->peer, &a->addr);
	if (r && str_eq(e->peer->told->node, msg->node)) {
		r->verified = true;
		return true;
	}
	log_warn("peer %s told %s as its own, where %s answers: not probed",
		 e->peer->cfg->name, addr_format(&a->addr, text),
		 msg->node[0] ? msg->node : "another node");
	if (r)
		r->refused_at = loop_now(m->loop);
	peer_addr_drop(m, a);
	return false;
}
