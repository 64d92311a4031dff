/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where on this host a connection belongs: from the address of the other side, by the
 * kernel's routes and addresses, to an interface and the port of a device.
 */
#include <stdio.h>

#include "manager.h"

static void bind_port(struct manager *m, enum transport t, struct binding *b)
{
	struct port_entry *pe = port_of_address(m, &b->local);
	char local[ADDR_TEXT_MAX];

	if (!pe) {
		if (t == TRANSPORT_UDP)
			return;
		b->error = EPERR_NO_ADDRESS;
		(void)snprintf(b->why, sizeof(b->why), "no RDMA device owns %s",
			       addr_format(&b->local, local));
		return;
	}
	b->port_serial = pe->serial;
	(void)port_name(&pe->p, b->port_name);
	if (pe->p.override == OVERRIDE_BAD)
		return;
	if (port_is_down(&pe->p)) {
		b->port_down = true;
		b->error = EPERR_DEVICE_GONE;
		(void)snprintf(b->why, sizeof(b->why), "%s %s", b->port_name,
			       pe->p.facts.state);
	} else if (t == TRANSPORT_UD && !strcmp(pe->device->facts.transport, "iwarp")) {
		/* Said here, nobody begins what each side would see fail by itself. */
		b->error = EPERR_NOT_SUPPORTED;
		(void)snprintf(b->why, sizeof(b->why), "%s is iWARP, which has no ud: take rc",
			       b->port_name);
	}
}

static void bind_netdev(struct manager *m, const struct nl_route *route, struct binding *b)
{
	const struct nl_addr *own = netlink_own_addr(m->netlink, &b->local);
	const struct nl_link *l = own ? netlink_link(m->netlink, own->link) : NULL;

	if (!l)
		return;
	b->netdev_index = l->index;
	/* Bound to the rail's own interface, so that the reference path is the same wire;
	 * not where the kernel routes another way (an address of this host: over lo). */
	if (route->oif == l->index && !l->loopback)
		(void)str_copy(b->netdev, sizeof(b->netdev), l->name);
	if (!l->loopback && (!l->up || !l->running)) {
		b->port_down = true;
		b->error = EPERR_DEVICE_GONE;
		(void)snprintf(b->why, sizeof(b->why), "%s DOWN%s", l->name,
			       l->up ? " (no carrier)" : "");
	}
}

struct addr conn_source(const struct manager *m, const struct conn_entry *e)
{
	const struct peer_addr *a;
	struct addr source;

	if (e->c->key.role == ROLE_RX) { /* answers where it was asked */
		source = e->ctl_local;
		source.port = 0;
		return source;
	}
	a = e->peer ? peer_addr_at(e->peer, e->addr_index) : NULL;
	return a && a->told ? a->told->source : conn_probe(m, e)->source;
}

void binding_find(struct manager *m, const struct addr *dst, const struct addr *source,
		  enum transport t, struct binding *ret)
{
	char text[ADDR_TEXT_MAX];
	struct nl_route route;
	int r;

	memset(ret, 0, sizeof(*ret)); /* each byte: it is going to be shared */
	(void)str_copy(ret->port_name, sizeof(ret->port_name), "-");
	if (!m->netlink) { /* nothing is known of routes: let the kernel choose */
		ret->local = *source;
		return;
	}
	if (source->family && !netlink_own_addr(m->netlink, source)) {
		ret->error = EPERR_NO_ADDRESS;
		(void)snprintf(ret->why, sizeof(ret->why), "source %s is not on this host",
			       addr_format(source, text));
		return;
	}
	if (addr_is_link_local(dst) && !dst->zone) { /* else another wire would be taken */
		ret->error = EPERR_NO_ROUTE;
		(void)snprintf(ret->why, sizeof(ret->why), "the interface that leads to %s is gone",
			       addr_format(dst, text));
		return;
	}
	r = netlink_route(m->netlink, dst, source->family ? source : NULL, &route);
	if (r < 0 || !route.source.family) {
		ret->unsure = r == -ETIMEDOUT || r == -ENOBUFS || r == -ENOMEM || r == -EINTR;
		ret->error = EPERR_NO_ROUTE;
		(void)snprintf(ret->why, sizeof(ret->why), "no route to %s%s%s",
			       addr_format(dst, text), r < 0 ? ": " : "",
			       r < 0 ? strerror(-r) : "");
		return;
	}
	ret->local = route.source;
	ret->local.port = 0;
	ret->own_host = netlink_own_addr(m->netlink, dst) != NULL;
	ret->gateway = route.gateway.family != 0;
	bind_netdev(m, &route, ret);
	if (!ret->error)
		bind_port(m, t, ret);
	else { /* name the port all the same */
		struct binding named = *ret;

		named.error = EPERR_NONE;
		bind_port(m, TRANSPORT_UDP, &named);
		ret->port_serial = named.port_serial;
		(void)str_copy(ret->port_name, sizeof(ret->port_name), named.port_name);
	}
}

/* ---- of a connection ---- */

/* When nothing leads to the peer any more, say what became of the place it had: a port
 * or interface that is down or gone is a local fault, not a missing route. */
static void keep_place(struct manager *m, const struct conn_entry *e, struct binding *b)
{
	const struct nl_link *l;

	if (b->error == EPERR_NO_ADDRESS && strcmp(e->c->key.port_name, "-") &&
	    !port_find(m, e->c->key.port_name)) {
		b->port_down = true;
		b->error = EPERR_DEVICE_GONE;
		(void)snprintf(b->why, sizeof(b->why), "%s is gone", e->c->key.port_name);
		return;
	}
	if (b->netdev_index || !e->bind->netdev_index)
		return;
	/* The kernel's routes may outlive their address for a moment. */
	if (!b->error && (!m->netlink || netlink_own_addr(m->netlink, &b->local)))
		return;
	b->netdev_index = e->bind->netdev_index;
	b->local = b->local.family ? b->local : e->bind->local;
	l = netlink_link(m->netlink, b->netdev_index);
	if (l && l->up && l->running && netlink_own_addr(m->netlink, &b->local))
		return;
	b->port_down = true;
	b->error = EPERR_DEVICE_GONE;
	if (!l)
		(void)snprintf(b->why, sizeof(b->why), "the interface is gone");
	else if (!l->up || !l->running)
		(void)snprintf(b->why, sizeof(b->why), "%s DOWN%s", l->name,
			       l->up ? " (no carrier)" : "");
	else
		(void)snprintf(b->why, sizeof(b->why), "address removed from %s", l->name);
}

/* Another port is another connection, which its tx makes. An rx belongs to one tx of the
 * peer all the same: it may have come before the port was known, or outlived it. */
static bool rx_moves(struct manager *m, const struct conn_entry *e)
{
	return e->c->key.role == ROLE_RX && (!strcmp(e->c->key.port_name, "-") ||
					     !port_find(m, e->c->key.port_name));
}

void conn_bind(struct manager *m, struct conn_entry *e)
{
	struct binding b;
	struct addr source = conn_source(m, e);
	bool was_bad = e->bound_before && e->bind->error, same_source;

	binding_find(m, &e->c->key.remote, &source, e->c->key.transport, &b);
	if (b.unsure && e->bound_before)
		return;
	keep_place(m, e, &b);
	same_source = addr_same_ip(&b.local, &e->bind->local) || !e->bind->local.family ||
		      !b.local.family;
	if (strcmp(b.port_name, "-") && strcmp(b.port_name, e->c->key.port_name) &&
	    (b.port_serial == e->bind->port_serial || rx_moves(m, e)))
		conn_set_port_name(e->c, b.port_name);
	conn_set_bind(m, e, &b);
	if (!e->bound_before) {
		e->bound_before = true;
		was_bad = !b.error; /* tell of the first state if it is bad */
		if (!b.error)
			return;
	}
	if (b.error && (!was_bad || e->c->connected)) {
		struct conn_input in = {.type = CI_PORT_DOWN, .error = b.error, .text = b.why};

		verdict_mark(m, e);
		conn_feed(m, e, &in);
	} else if (!b.error && was_bad) {
		struct conn_input in = {.type = CI_PORT_UP};

		verdict_mark(m, e);
		conn_feed(m, e, &in);
	} else if (!same_source) {
		struct conn_input in = {.type = CI_OPERATOR, .cause = CAUSE_PORT_DOWN};

		conn_feed(m, e, &in);
	}
}
