/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Breadth first over switches. Their ports are tried in order and they are queued in
 * the order they are found, so the first route that arrives is the one with the lowest
 * egress ports among the shortest.
 */
#include "route.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

struct arrival {		/* how the search came to a switch */
	const struct physp *in; /* NULL: not there yet */
	uint32_t hops;
};

struct search {
	const struct physp *to;
	const struct physp *const *avoid; /* ports of links that are not to be used */
	unsigned n_avoid;
	bool any_health;
	struct arrival *arrivals;     /* owned, by serial */
	const struct ib_node **queue; /* owned */
	uint32_t head, tail;
};

/* ---- links ---- */

static bool is_avoided(const struct search *w, const struct physp *p)
{
	for (unsigned i = 0; i < w->n_avoid; i++)
		if (w->avoid[i] == p)
			return true;
	return false;
}

/* The other end of the link of @p if it may be used, else NULL. */
static const struct physp *across(const struct search *w, const struct physp *p)
{
	const struct physp *far = p->remote;

	if (!far || !physp_link_exists(p, far) || is_avoided(w, p))
		return NULL;
	if (w->any_health)
		return far;
	if (p->info.state == IB_DOWN || far->info.state == IB_DOWN ||
	    !physp_link_healthy(p))
		return NULL;
	return far;
}

/* A switch is reached by any of its ports, a CA or router port by itself alone. */
static bool is_there(const struct physp *to, const struct physp *in)
{
	return in == to || (node_is_switch(to->node) && in->node == to->node);
}

/* ---- search ---- */

/* Out of @p, which is @hops away; the far end if that arrives. */
static const struct physp *cross(struct search *w, const struct physp *p, uint32_t hops)
{
	const struct physp *far = across(w, p);
	struct arrival *a;

	if (!far)
		return NULL;
	if (is_there(w->to, far))
		return far;
	if (!node_is_switch(far->node))
		return NULL;
	a = &w->arrivals[far->node->serial];
	if (a->in)
		return NULL;
	*a = (struct arrival){far, hops + 1};
	w->queue[w->tail++] = far->node;
	return NULL;
}

static const struct physp *expand(struct search *w, const struct ib_node *n)
{
	uint32_t hops = w->arrivals[n->serial].hops;
	const struct physp *found = NULL;

	for (unsigned i = 1; i <= n->info.num_ports && !found; i++) {
		const struct physp *p = node_physp(n, i);

		if (p)
			found = cross(w, p, hops);
	}
	return found;
}

/* From the end that was found back to the beginning. */
static int write_back(const struct search *w, const struct physp *found,
		      struct dr_path *ret)
{
	const struct ib_node *n = found->remote->node;
	uint32_t hops = node_is_switch(n) ? w->arrivals[n->serial].hops + 1 : 1;

	if (hops > IB_HOPS_MAX)
		return -ERANGE;
	*ret = (struct dr_path){.hops = (uint8_t)hops};
	for (const struct physp *in = found; hops; hops--) {
		ret->port[hops] = in->remote->num;
		ret->in[hops] = in->num;
		in = w->arrivals[in->remote->node->serial].in;
	}
	return 0;
}

static int search(struct search *w, const struct physp *from, struct dr_path *ret)
{
	const struct ib_node *n = from->node;
	const struct physp *found = NULL;

	if (node_is_switch(n)) {
		w->arrivals[n->serial].in = from;
		w->queue[w->tail++] = n;
	} else {
		found = cross(w, from, 0);
	}
	while (!found && w->head < w->tail)
		found = expand(w, w->queue[w->head++]);
	return found ? write_back(w, found, ret) : -ENETUNREACH;
}

/* 0 hops, or search. @w: what to avoid and whether health counts. */
static int find(const struct subnet *s, const struct physp *from,
		const struct physp *to, struct search *w, struct dr_path *ret)
{
	int r;

	if (is_there(to, from)) {
		*ret = (struct dr_path){0};
		return 0;
	}
	w->to = to;
	w->arrivals = xcalloc(subnet_serials(s), sizeof(*w->arrivals));
	w->queue = xcalloc(subnet_serials(s), sizeof(*w->queue));
	r = search(w, from, ret);
	free(w->arrivals);
	free(w->queue);
	return r;
}

int route_shortest(const struct subnet *s, const struct physp *from,
		   const struct physp *to, bool any_health, struct dr_path *ret)
{
	struct search w = {.any_health = any_health};

	return find(s, from, to, &w, ret);
}

/* ---- following ---- */

struct physp *route_follow(const struct physp *from, const struct dr_path *path)
{
	const struct physp *at = from;

	if (path->hops > IB_HOPS_MAX)
		return NULL;
	for (unsigned i = 1; i <= path->hops; i++) {
		const struct physp *out = node_physp(at->node, path->port[i]);

		/* Out of a port of its own, or through a switch. */
		if (!out || !out->num || !out->remote ||
		    !physp_link_exists(out, out->remote))
			return NULL;
		if (!node_is_switch(at->node) && (i > 1 || out != from))
			return NULL;
		at = out->remote;
	}
	return node_physp(at->node, at->num);
}

/* ---- alternates ---- */

/* Both ports of each link of @path but the first and the last where a CA has no other:
 * into @ret. Their number, or -EINVAL if it does not lead to @to. */
static int links_of(const struct physp *from, const struct physp *to,
		    const struct dr_path *path,
		    const struct physp *ret[2 * IB_HOPS_MAX])
{
	const struct physp *end = route_follow(from, path);
	unsigned first = node_is_switch(from->node) ? 1 : 2;
	unsigned last = node_is_switch(to->node) ? path->hops : path->hops - 1U;
	const struct ib_node *n = from->node;
	int n_ret = 0;

	if (!end || !is_there(to, end))
		return -EINVAL;
	for (unsigned i = 1; i <= path->hops; i++) {
		const struct physp *out = node_physp(n, path->port[i]);

		if (i >= first && i <= last) {
			ret[n_ret++] = out;
			ret[n_ret++] = out->remote;
		}
		n = out->remote->node;
	}
	return n_ret;
}

int route_avoiding(const struct subnet *s, const struct physp *from,
		   const struct physp *to, const struct dr_path *avoid,
		   struct dr_path *ret)
{
	const struct physp *links[2 * IB_HOPS_MAX];
	struct search w = {.avoid = links};
	int n = links_of(from, to, avoid, links);

	if (n < 0)
		return n;
	/* Every link is one without a choice: there is no other. */
	if (!n)
		return -ENETUNREACH;
	w.n_avoid = (unsigned)n;
	return find(s, from, to, &w, ret);
}

int route_alternate(struct subnet *s, const struct physp *from, struct physp *to,
		    struct dr_path *ret)
{
	struct dr_path was = {.hops = to->hops}, found;
	int r;

	memcpy(was.port, to->path, sizeof(was.port));
	r = route_avoiding(s, from, to, &was, &found);
	if (r < 0)
		return r;
	physp_set_path(to, found.hops, found.port);
	if (ret)
		*ret = found;
	return 0;
}

const char *route_text(const uint8_t *path, uint8_t hops, char *buf, size_t size)
{
	(void)snprintf(buf, size, "%u", (unsigned)path[0]);
	for (unsigned i = 1; i <= hops && i <= IB_HOPS_MAX; i++)
		str_append(buf, size, ",%u", (unsigned)path[i]);
	return buf;
}
