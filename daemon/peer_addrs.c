/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Addresses of peers: each peer has a list by place; all of them are an index by IP, in
 * which one address may belong to many peers.
 */
#include <stdio.h>
#include <stdlib.h>

#include "manager.h"

const char *peer_rail(const struct peer *p, int place, char buf[CTL_NAME_MAX])
{
	const struct peer_addr *a = peer_addr_at(p, place);

	if (a && a->told && a->told->label[0])
		(void)str_copy(buf, CTL_NAME_MAX, a->told->label);
	else if (place < p->cfg->n_rails)
		(void)str_copy(buf, CTL_NAME_MAX, p->cfg->rails[place]);
	else
		(void)snprintf(buf, CTL_NAME_MAX, "%d", place);
	return buf;
}

struct peer_addr *peer_addr_at(const struct peer *p, int place)
{
	PEER_EACH_ADDR(p, a)
		if (a->place == place)
			return a;
	return NULL;
}

/* ---- whose is it ---- */

/* An address belongs to the oldest peer that the config gives it; what peers tell comes
 * after that. */
static uint64_t rank(const struct peer_addr *a)
{
	return a->peer->serial | (a->told ? UINT64_C(1) << 63 : 0);
}

/* The first of the same ones is in the hash, its prev_same is the last one. As most come
 * in the order of their peers, the place of a new one is found from the end. */
static void index_add(struct manager *m, struct peer_addr *a)
{
	struct peer_addr *first, *at;

	HASH_FIND(hh, m->peer_addrs, a->addr.ip, sizeof(a->addr.ip), first);
	if (!first || rank(first) > rank(a)) {
		a->next_same = first;
		a->prev_same = first ? first->prev_same : a;
		if (first) {
			first->prev_same = a;
			HASH_DEL(m->peer_addrs, first);
		}
		HASH_ADD(hh, m->peer_addrs, addr.ip, sizeof(a->addr.ip), a);
		return;
	}
	at = first->prev_same;
	while (rank(at) > rank(a))
		at = at->prev_same;
	a->next_same = at->next_same;
	a->prev_same = at;
	if (at->next_same)
		at->next_same->prev_same = a;
	else
		first->prev_same = a;
	at->next_same = a;
}

static void index_remove(struct manager *m, struct peer_addr *a)
{
	struct peer_addr *first, *next = a->next_same;

	HASH_FIND(hh, m->peer_addrs, a->addr.ip, sizeof(a->addr.ip), first);
	if (first == a) {
		HASH_DEL(m->peer_addrs, a);
		if (next) {
			next->prev_same = a->prev_same == a ? next : a->prev_same;
			HASH_ADD(hh, m->peer_addrs, addr.ip, sizeof(next->addr.ip), next);
		}
		return;
	}
	a->prev_same->next_same = next;
	if (next)
		next->prev_same = a->prev_same;
	else
		first->prev_same = a->prev_same;
}

struct peer_addr *peer_addr_first(const struct manager *m, const struct addr *addr)
{
	struct peer_addr *a;

	HASH_FIND(hh, m->peer_addrs, addr->ip, sizeof(addr->ip), a);
	while (a && !addr_same_ip(&a->addr, addr))
		a = a->next_same;
	return a;
}

/* ---- life ---- */

/* Interface numbers change, names are what the config holds. */
void peer_addr_find_zone(struct manager *m, struct peer_addr *a)
{
	const char *zone = a->told ? "" : a->peer->cfg->addrs[a->from].zone;
	const struct nl_link *l;

	if (!zone[0])
		return;
	l = netlink_link_by_name(m->netlink, zone);
	if (l)
		a->addr.zone = l->index;
}

static struct peer_addr *link_new(struct manager *m, struct peer *p, const struct addr *addr,
				  struct addr_told *told, int from, int place)
{
	struct peer_addr *a = xcalloc(1, sizeof(*a)), **at = &p->addrs;

	a->peer = p;
	a->addr = *addr;
	a->addr.port = 0;
	a->told = told;
	a->from = (uint8_t)from;
	a->place = (uint16_t)place;
	while (*at && (*at)->place < a->place)
		at = &(*at)->next;
	a->next = *at;
	*at = a;
	peer_addr_find_zone(m, a);
	index_add(m, a);
	return a;
}

struct peer_addr *peer_addr_new(struct manager *m, struct peer *p, const struct addr *addr,
				int from, int place)
{
	return link_new(m, p, addr, NULL, from, place);
}

struct peer_addr *peer_addr_new_told(struct manager *m, struct peer *p,
				     const struct addr *addr, const char *label,
				     const struct addr *source)
{
	struct addr_told *told = xcalloc(1, sizeof(*told));

	told->source = *source;
	if (!config_label_wrong(label, CTL_NAME_MAX - 1))
		(void)str_copy(told->label, sizeof(told->label), label);
	return link_new(m, p, addr, told, 0, peer_free_place(p, p->cfg->n_addrs));
}

int peer_free_place(const struct peer *p, int from)
{
	while (peer_addr_at(p, from))
		from++;
	return from;
}

void peer_addr_free(struct manager *m, struct peer_addr *a)
{
	struct peer_addr **at = &a->peer->addrs;

	while (*at != a)
		at = &(*at)->next;
	*at = a->next;
	index_remove(m, a);
	free(a->told);
	free(a);
}

void peer_addr_drop(struct manager *m, struct peer_addr *a)
{
	struct conn_input in = {.type = CI_STOP, .cause = CAUSE_CONFIG};
	struct peer *p = a->peer;
	int place = a->place;

	for (struct conn_entry *e = p->first_tx, *next; e; e = next) {
		next = e->next_tx;
		if (e->addr_index != place)
			continue;
		conn_leave_peer(e);
		conn_feed(m, e, &in);
	}
	peer_addr_free(m, a);
}
