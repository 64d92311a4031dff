/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Peers of a config, of which there may be tens of thousands: what they share, how they
 * are found by name, and when two of them are the same.
 */
#include "config_int.h"

#include <sodium.h>
#include <stdlib.h>

#define SLOTS_MIN 16

/* ---- what peers share ---- */

struct config_probe *config_probe_new(void)
{
	struct config_probe *p = xcalloc(1, sizeof(*p));

	p->refs = 1;
	return p;
}

struct config_probe *config_probe_ref(struct config_probe *p)
{
	p->refs++;
	return p;
}

struct config_probe *config_probe_unref(struct config_probe *p)
{
	if (p && !--p->refs) {
		sodium_memzero(p, sizeof(*p));
		free(p);
	}
	return NULL;
}

void config_peer_done(struct config_peer *peer)
{
	for (int i = 0; i < peer->n_addrs; i++)
		free(peer->addrs[i].text);
	for (int i = 0; i < peer->n_rails; i++)
		free(peer->rails[i]);
	free(peer->addrs);
	free(peer->rails);
	free(peer->name);
	config_probe_unref(peer->probe);
}

void config_peer_add_name(struct config_peer *peer, const char *name)
{
	struct config_addr *a;

	peer->addrs = xrealloc(peer->addrs, (size_t)peer->n_addrs + 1, sizeof(*a));
	a = &peer->addrs[peer->n_addrs++];
	*a = (struct config_addr){.text = xstrdup(name), .zone = ""};
}

/* ---- by name ---- */

static uint64_t name_hash(const char *name)
{
	uint64_t h = 0;

	for (; *name; name++)
		h = h * 31 + (uint8_t)*name;
	return mix64(h);
}

/* The slot that has the name, or the free one where it would be. */
static size_t slot_of(const struct config *c, const char *name)
{
	size_t at = (size_t)name_hash(name) & (c->n_peer_slots - 1);

	while (c->peer_slots[at] >= 0 && !str_eq(c->peers[c->peer_slots[at]].name, name))
		at = (at + 1) & (c->n_peer_slots - 1);
	return at;
}

int config_peer_index(const struct config *c, const char *name)
{
	return c->n_peer_slots ? c->peer_slots[slot_of(c, name)] : -1;
}

void config_reindex(struct config *c)
{
	size_t n = SLOTS_MIN;

	while (n < 2 * ((size_t)c->n_peers + 1))
		n *= 2;
	c->peer_slots = xrealloc(c->peer_slots, n, sizeof(*c->peer_slots));
	c->n_peer_slots = n;
	for (size_t i = 0; i < n; i++)
		c->peer_slots[i] = -1;
	for (int i = 0; i < c->n_peers; i++)
		c->peer_slots[slot_of(c, c->peers[i].name)] = i;
}

/* At most half of the slots are taken. */
void config_index_peer(struct config *c, int i)
{
	if (c->n_peer_slots < 2 * (size_t)c->n_peers)
		config_reindex(c);
	else
		c->peer_slots[slot_of(c, c->peers[i].name)] = i;
}

const struct config_peer *config_peer_find(const struct config *c, const char *name)
{
	int i = config_peer_index(c, name);

	return i >= 0 ? &c->peers[i] : NULL;
}

/* ---- the same? ---- */

bool config_peer_equal(const struct config_peer *a, const struct config_peer *b)
{
	if (!str_eq(a->name, b->name))
		return false;
	for (size_t i = 0; i < config_n_rows; i++) {
		const struct config_row *r = &config_rows[i];
		bool probe = r->section == SECTION_PROBE;

		/* what counts of a key file is what is in it, see below */
		if (!config_row_in(r, SECTION_PEER) ||
		    (probe && r->offset == offsetof(struct config_probe, key_file)))
			continue;
		if (!config_value_equal(r, probe ? (const void *)a->probe : a,
					probe ? (const void *)b->probe : b))
			return false;
	}
	if (!a->probe->keys.n && !b->probe->keys.n)
		return str_eq(a->probe->key_file, b->probe->key_file);
	return a->probe->keys.n && b->probe->keys.n;
}
