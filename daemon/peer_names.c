/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Peers that are given by name: all addresses of the name are the peer's. It is looked up
 * off the loop, and again: on a reload, soon when that fails, every minute while one of its addresses
 * is not well, now and then while all are. An address that the name no longer has is
 * dropped with a word; while the name is not known at all, those that it had stay.
 */
#include <stdlib.h>
#include <utlist.h>

#include "manager.h"

#define AGAIN_FAILED_NS (30 * NSEC_PER_SEC)
#define AGAIN_UNWELL_NS (60 * NSEC_PER_SEC) /* it may lead elsewhere by now */
#define AGAIN_WELL_NS	(300 * NSEC_PER_SEC)

static const char *text_of(const struct peer_name *n)
{
	return n->peer->cfg->addrs[n->from].text;
}

static void tell_error(struct peer_name *n, const char *why)
{
	char *text = xasprintf("%s: %s", text_of(n), why);

	if (!str_eq(text, n->error))
		log_warn("peer %s: %s", n->peer->cfg->name, text);
	free(n->error);
	n->error = text;
}

/* ---- its addresses ---- */

static bool is_of(const struct peer_addr *a, const struct peer_name *n)
{
	return !a->told && a->from == n->from;
}

static bool in_list(const struct addr *a, const struct addr *list, int n)
{
	for (int i = 0; i < n; i++)
		if (addr_same_ip(&list[i], a))
			return true;
	return false;
}

static void drop_others(struct peer_name *n, const struct addr *addrs, int n_addrs)
{
	struct peer_addr *next;
	char text[ADDR_TEXT_MAX];

	for (struct peer_addr *a = n->peer->addrs; a; a = next) {
		next = a->next;
		if (!is_of(a, n) || in_list(&a->addr, addrs, n_addrs))
			continue;
		log_notice("peer %s: %s is no longer %s", n->peer->cfg->name, text_of(n),
			   addr_format(&a->addr, text));
		peer_addr_drop(n->m, a);
	}
}

/* The first has the place of the name among Address=, the next ones those after all of
 * them: places stay as long as the address does. */
static void add_new(struct peer_name *n, const struct addr *addrs, int n_addrs)
{
	struct peer *p = n->peer;
	int count = 0;

	PEER_EACH_ADDR(p, a)
		count += !a->told;
	for (int i = 0; i < n_addrs && count < PEER_ADDRS_MAX; i++) {
		bool known = false;
		int place = n->from;

		PEER_EACH_ADDR(p, a)
			known |= !a->told && addr_same_ip(&a->addr, &addrs[i]);
		if (known)
			continue;
		if (peer_addr_at(p, place))
			place = peer_free_place(p, p->cfg->n_addrs);
		peer_sync_addr(n->m, peer_addr_new(n->m, p, &addrs[i], n->from, place));
		count++;
	}
}

/* Are all of them probed, and is every one well? */
static bool all_well(const struct peer_name *n)
{
	bool any = false;

	PEER_EACH_TX(n->peer, e) {
		const struct peer_addr *a = peer_addr_at(n->peer, e->addr_index);

		if (!a || !is_of(a, n))
			continue;
		any = true;
		if (!e->c->connected)
			return false;
	}
	return any;
}

/* ---- the look-up ---- */

static void on_resolved(void *user, int error, const char *why, const struct addr *addrs,
			int n_addrs)
{
	struct peer_name *n = user;
	struct mono now = loop_now(n->m->loop);

	n->job = NULL;
	n->asked_at = now;
	verdict_mark_peer(n->m, n->peer);
	if (error) {
		tell_error(n, why);
		return;
	}
	free(n->error);
	n->error = NULL;
	n->found_at = now;
	drop_others(n, addrs, n_addrs);
	add_new(n, addrs, n_addrs);
}

static void resolve(struct peer_name *n)
{
	n->job = resolver_start(n->m->resolver, text_of(n), on_resolved, n);
}

void peer_name_new(struct manager *m, struct peer *p, int from)
{
	struct peer_name *n = xcalloc(1, sizeof(*n));

	n->m = m;
	n->peer = p;
	n->from = from;
	LL_APPEND(p->names, n);
	DL_APPEND2(m->peer_names, n, prev_all, next_all);
	resolve(n);
}

void peer_name_free(struct peer_name *n)
{
	resolver_cancel(n->job);
	LL_DELETE(n->peer->names, n);
	DL_DELETE2(n->m->peer_names, n, prev_all, next_all);
	free(n->error);
	free(n);
}

void peer_names_again(struct peer *p)
{
	for (struct peer_name *n = p->names; n; n = n->next)
		if (!n->job)
			resolve(n);
}

void peer_names_tick(struct manager *m, struct mono now)
{
	struct peer_name *n;

	DL_FOREACH2(m->peer_names, n, next_all) {
		int64_t age = mono_sub(now, n->asked_at);

		if (n->job)
			continue;
		if (age >= (n->error ? AGAIN_FAILED_NS : AGAIN_WELL_NS) ||
		    (age >= AGAIN_UNWELL_NS && !all_well(n)))
			resolve(n);
	}
}

const char *peer_resolve_error(const struct peer *p)
{
	for (const struct peer_name *n = p->names; n; n = n->next)
		if (n->error)
			return n->error;
	return "";
}
