/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The path of a connection: what its endpoint, the kernel and the other side say of it,
 * and whether that fits together.
 */
#include <linux/neighbour.h>
#include <stdio.h>

#include "manager.h"

/* ---- what is told to the other side ---- */

void path_tell(const struct conn_entry *e, struct ctl_msg *msg)
{
	const struct ep_path *p = &conn_endpoint(e->c)->path;

	if (e->c->stage != STAGE_UP)
		return;
	msg->path.mtu = p->mtu;
	if (p->known & EP_PATH_PKEY)
		msg->path.pkey = p->pkey;
	if (p->known & EP_PATH_SL)
		msg->path.sl = p->sl & 15;
	if (p->known & EP_PATH_CLASS)
		msg->path.traffic_class = p->traffic_class;
}

/* ---- what does not fit ---- */

static struct port_entry *port_of_conn(struct manager *m, const struct conn_entry *e)
{
	return strcmp(e->bind->port_name, "-") ? port_find(m, e->bind->port_name) : NULL;
}

/* Of one partition, and not both limited members, which may not talk (IBTA 10.9.3). */
static bool pkeys_match(uint16_t a, uint16_t b)
{
	return (a & 0x7fff) == (b & 0x7fff) && ((a | b) & 0x8000);
}

/* The keys of the two ports have none in common. */
static bool none_in_common(const struct port *own, const struct ctl_rail_facts *peer)
{
	if (!own->n_pkeys || !peer->n_pkeys || peer->n_pkeys == CTL_PKEYS_MAX)
		return false; /* not known, or there may be more of them */
	for (int i = 0; i < own->n_pkeys; i++)
		for (int k = 0; k < peer->n_pkeys; k++)
			if (pkeys_match(own->pkeys[i], peer->pkeys[k]))
				return false;
	return true;
}

/* From what the ports have: known before anything is sent. */
static void ports_mismatch(const struct port_entry *pe, const struct told_rail *rail,
			   struct path_mismatch *ret)
{
	const struct port_facts *f = &pe->p.facts;

	if (!f->why[PF_ACTIVE_MTU] && rail->facts.mtu && f->active_mtu != rail->facts.mtu) {
		ret->mtu = true;
		ret->own_mtu = f->active_mtu;
		ret->peer_mtu = rail->facts.mtu;
	}
	if (none_in_common(&pe->p, &rail->facts)) {
		ret->pkey = true;
		ret->own_pkey = pe->p.pkeys[0];
		ret->peer_pkey = rail->facts.pkeys[0];
	}
}

void path_mismatch(struct manager *m, const struct conn_entry *e, struct path_mismatch *ret)
{
	const struct ctl_path *theirs = &e->told_path;
	const struct ep_path *own = &conn_endpoint(e->c)->path;
	bool up = e->c->stage == STAGE_UP;

	*ret = (struct path_mismatch){0};
	if (e->c->key.transport != TRANSPORT_UDP && e->peer) {
		const struct told_rail *rail = peer_told_rail(e->peer, &e->c->key.remote);
		const struct port_entry *pe = rail ? port_of_conn(m, e) : NULL;

		if (pe)
			ports_mismatch(pe, rail, ret);
	}
	/* Over plain IP a router cuts to size what it must. */
	if (up && own->mtu && theirs->mtu && own->mtu != theirs->mtu &&
	    !(e->c->key.transport == TRANSPORT_UDP && e->bind->gateway)) {
		ret->mtu = true;
		ret->own_mtu = own->mtu;
		ret->peer_mtu = theirs->mtu;
	}
	if (up && (own->known & EP_PATH_PKEY) && theirs->pkey &&
	    !pkeys_match(own->pkey, theirs->pkey)) {
		ret->pkey = true;
		ret->own_pkey = own->pkey;
		ret->peer_pkey = theirs->pkey;
	}
}

/* ---- what is shown ---- */

static const char *state_of_neighbour(uint16_t state)
{
	static const struct {
		uint16_t bit;
		const char *name;
	} names[] = {{NUD_PERMANENT, "permanent"}, {NUD_NOARP, "noarp"},
		     {NUD_REACHABLE, "reachable"}, {NUD_STALE, "stale"},
		     {NUD_DELAY, "delay"},	   {NUD_PROBE, "probe"},
		     {NUD_INCOMPLETE, "incomplete"}, {NUD_FAILED, "failed"}};

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (state & names[i].bit)
			return names[i].name;
	return "none";
}

static void ask_kernel(struct manager *m, const struct conn_entry *e, struct path_view *ret)
{
	const struct addr *source = e->bind->local.family ? &e->bind->local : NULL;
	const struct nl_link *l = netlink_link(m->netlink, e->bind->netdev_index);
	const struct addr *next = &e->c->key.remote;
	struct nl_route route;
	uint16_t state;

	if (l) {
		(void)str_copy(ret->netdev, sizeof(ret->netdev), l->name);
		ret->netdev_mtu = l->mtu;
	}
	if (netlink_route(m->netlink, &e->c->key.remote, source, &route) < 0)
		return;
	if (route.gateway.family) {
		ret->gateway = route.gateway;
		next = &ret->gateway;
	}
	if (netlink_neighbour(m->netlink, route.oif, next, &state,
			      &ret->neighbour_age_ns) == 0)
		ret->neighbour_state = state_of_neighbour(state);
}

void path_view(struct manager *m, const struct conn_entry *e, struct path_view *ret)
{
	struct path_mismatch wrong;

	*ret = (struct path_view){.source = e->bind->local,
				  .destination = e->c->key.remote,
				  .path = conn_endpoint(e->c)->path,
				  .up = e->c->stage == STAGE_UP,
				  .told = e->told_path};
	if (m->netlink)
		ask_kernel(m, e, ret);
	path_mismatch(m, e, &wrong);
	if (wrong.mtu)
		str_append(ret->mismatch, sizeof(ret->mismatch), "MTU %u here, %u there",
			   wrong.own_mtu, wrong.peer_mtu);
	if (wrong.pkey)
		str_append(ret->mismatch, sizeof(ret->mismatch),
			   "%sP_Key 0x%04x here, 0x%04x there", wrong.mtu ? "; " : "",
			   wrong.own_pkey, wrong.peer_pkey);
}
