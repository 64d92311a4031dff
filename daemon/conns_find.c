/* SPDX-License-Identifier: BSD-2-Clause */
/* Connections by what is known of them. */
#include <string.h>

#include "manager.h"

struct conn_entry *conn_by_id(struct manager *m, uint64_t id)
{
	return idtable_find(&m->by_id, id);
}

struct conn_entry *conn_by_src(struct manager *m, uint64_t src_id)
{
	return idtable_find(&m->by_src, src_id ^ m->src_secret);
}

static uint64_t hash_text(uint64_t h, const char *p)
{
	while (*p)
		h = mix64(h ^ (uint8_t)*p++);
	return mix64(h);
}

/* Zones do not count: an interface may come back under another number. */
static uint64_t probe_key(const struct manager *m, const struct conn_key *k,
			  const struct addr *local, uint64_t tag)
{
	uint64_t h = mix64(m->src_secret ^ tag);

	h = mix64(h ^ (uint64_t)k->transport << 32 ^ k->flow);
	h = hash_text(hash_text(h, k->peer), k->rail);
	return mix64(mix64(h ^ addr_hash(&k->remote)) ^ addr_hash(local));
}

/* An interface that is gone may have come back with another number. */
static bool same_place(const struct manager *m, const struct addr *then, const struct addr *now)
{
	struct addr a = *then;

	if (a.zone && m->netlink && !netlink_link(m->netlink, a.zone))
		a.zone = 0;
	return addr_same_ip(&a, now);
}

struct conn_entry *conn_by_probe(const struct manager *m, const struct conn_key *key,
				 const struct addr *local, uint64_t tag)
{
	struct conn_entry *e =
		idtable_find(&m->by_probe, probe_key(m, key, local, tag));
	const struct conn_key *k = e ? &e->c->key : NULL;

	if (e && k->transport == key->transport && k->flow == key->flow &&
	    !strcmp(k->rail, key->rail) && !strcmp(k->peer, key->peer) &&
	    e->probe_tag == tag && same_place(m, &k->remote, &key->remote) &&
	    same_place(m, &e->ctl_local, local))
		return e;
	return NULL;
}

void conn_know_src(struct manager *m, struct conn_entry *e, uint64_t src_id, uint64_t tag)
{
	e->src_key = src_id ^ m->src_secret;
	e->probe_tag = tag;
	e->probe_key = probe_key(m, &e->c->key, &e->ctl_local, tag);
	e->known_src = true;
	idtable_add(&m->by_src, e);
	idtable_add(&m->by_probe, e);
}

void conn_forget_src(struct manager *m, struct conn_entry *e)
{
	if (!e->known_src)
		return;
	e->known_src = false;
	idtable_remove(&m->by_src, e);
	idtable_remove(&m->by_probe, e);
}

int conns_after(const struct manager *m, uint64_t serial)
{
	int lo = 0, hi = m->n_conns;

	while (lo < hi) {
		int mid = (lo + hi) / 2;

		if (m->conns[mid]->serial <= serial)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

bool conn_key_matches(const struct conn_entry *e, const char *key)
{
	char text[CONN_KEY_MAX];
	size_t n = strlen(e->c->key.peer);

	/* Most need not be written out. */
	return !strncmp(key, e->c->key.peer, n) && key[n] == '/' &&
	       !strcmp(conn_key_format(&e->c->key, text), key);
}

bool conn_peer_rail_matches(const struct conn_entry *e, const char *name)
{
	size_t n = strlen(e->c->key.peer);

	if (strncmp(name, e->c->key.peer, n))
		return false;
	if (!name[n])
		return true;
	return (name[n] == '/' || name[n] == ':') && !strcmp(name + n + 1, e->c->key.rail);
}

struct conn_entry *conn_by_key(struct manager *m, const char *key)
{
	struct conn_entry *found = NULL;
	bool is_key = strchr(key, '>') != NULL;

	for (int i = 0; i < m->n_conns; i++) {
		struct conn_entry *e = m->conns[i];

		if (is_key ? conn_key_matches(e, key)
			   : (e->c->key.role == ROLE_TX && conn_peer_rail_matches(e, key))) {
			if (found)
				return NULL; /* not one connection */
			found = e;
			if (is_key)
				break;
		}
	}
	return found;
}
