/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the socket shows: the manager's objects through struct api, rendered by
 * proto/render.c.
 */
#include <stdio.h>
#include <stdlib.h>

#include "render_subnet.h"
#include "sweeps.h"

/* ---- objects ---- */

static json_t *device_json(struct manager *m, const struct device *d,
			   const struct render_time *t)
{
	struct device_view v = {.name = d->name, .index = d->index, .facts = &d->facts,
				.since = d->since};
	char name[PORT_NAME_MAX];

	v.ports = json_array();
	for (const struct port_entry *pe = d->ports; pe; pe = pe->next)
		json_array_append_new(v.ports, json_string(port_name(&pe->p, name)));
	v.workers = workers_render(m, d, t);
	return render_device(&v, t);
}

static json_t *addresses_of(struct manager *m, const struct port_entry *pe)
{
	json_t *a = json_array();
	char text[ADDR_TEXT_MAX];
	const struct nl_addr *list;
	int n;

	if (pe->p.tied.family) {
		struct addr tied = {.family = pe->p.tied.family};

		memcpy(tied.ip, pe->p.tied.ip, sizeof(tied.ip));
		json_array_append_new(a, json_string(addr_format(&tied, text)));
	}
	list = netlink_addrs(m->netlink, &n);
	for (int i = 0; i < n; i++)
		if (!port_tied(pe, &list[i].addr) && port_of_address(m, &list[i].addr) == pe)
			json_array_append_new(a, json_string(addr_format(&list[i].addr, text)));
	return a;
}

static json_t *port_json(struct manager *m, const struct port_entry *pe,
			 const struct render_time *t)
{
	json_t *o = render_port(&pe->p, addresses_of(m, pe), &m->config->health.flap, t);
	json_t *gids, *g;
	size_t i;

	/* Names of interfaces are main's knowledge, not the port object's. */
	gids = json_object_get(o, "gids");
	json_array_foreach(gids, i, g) {
		json_t *index = json_object_get(g, "netdev_index");
		const struct nl_link *l =
			json_is_integer(index)
				? netlink_link(m->netlink, (uint32_t)json_integer_value(index))
				: NULL;

		json_object_set_new(g, "netdev", l ? json_string(l->name) : json_null());
	}
	return o;
}

static json_t *conn_json(struct manager *m, struct conn_entry *e,
			 const struct render_time *t)
{
	struct path_view path;
	char held_by[HELD_NAME_MAX];
	struct conn_view v = {.c = e->c, .verdict = e->verdict, .why = e->why,
			      .verdict_since = e->verdict_since,
			      .own_verdict = (enum verdict)e->own_verdict,
			      .held_by = conn_held_by(e, held_by),
			      .flap = e->flap,
			      .flap_params = damping_params(m, e),
			      .usual_p99 = damping_usual(m, e),
			      .path = &path,
			      .local = e->bind->local.family ? &e->bind->local : NULL};

	path_view(m, e, &path);
	conn_refresh(m, e);
	verdict_loss(e, &v.lately_sent, &v.lately_lost);
	return render_connection(&v, t);
}

static json_t *told_json(const struct peer *p)
{
	json_t *list = json_array();
	char text[ADDR_TEXT_MAX], gid[48], key[8];

	for (int i = 0; p->told && i < p->told->n; i++) {
		const struct told_rail *r = &p->told->rail[i];
		json_t *o = json_object(), *pkeys = json_array();
		static const uint8_t none[16];

		render_text(o, "label", r->label);
		render_text(o, "address", addr_format(&r->addr, text));
		render_set(o, "mtu", r->facts.mtu ? json_integer(r->facts.mtu) : json_null());
		render_set(o, "lid", r->facts.lid ? json_integer(r->facts.lid) : json_null());
		render_text(o, "gid", memcmp(r->facts.gid, none, 16)
					      ? gid_text(r->facts.gid, gid)
					      : NULL);
		for (int k = 0; k < r->facts.n_pkeys; k++) {
			(void)snprintf(key, sizeof(key), "0x%04x", r->facts.pkeys[k]);
			json_array_append_new(pkeys, json_string(key));
		}
		render_set(o, "pkeys", pkeys);
		json_array_append_new(list, o);
	}
	return list;
}

/* As the config has them; of a name its addresses, or itself while it has none; then
 * those that the peer told. */
static void peer_addresses(const struct peer *p, json_t *addrs, json_t *rails)
{
	char text[ADDR_TEXT_MAX], label[CTL_NAME_MAX];

	for (int i = 0; i < p->cfg->n_addrs; i++)
		if (!peer_addr_at(p, i)) {
			json_array_append_new(addrs, json_string(p->cfg->addrs[i].text));
			json_array_append_new(rails, json_string(peer_rail(p, i, label)));
		}
	PEER_EACH_ADDR(p, a) {
		const struct config_addr *ca = a->told ? NULL : &p->cfg->addrs[a->from];

		json_array_append_new(addrs, json_string(ca && ca->addr.family
								 ? ca->text
								 : addr_format(&a->addr, text)));
		json_array_append_new(rails, json_string(peer_rail(p, a->place, label)));
	}
}

static json_t *peer_held_by(const struct peer *p)
{
	char held_by[HELD_NAME_MAX];

	if (p->verdict == VERDICT_HELD)
		PEER_EACH_TX(p, e)
			if (e->verdict == VERDICT_HELD)
				return json_string(conn_held_by(e, held_by));
	return json_null();
}

/* Of the connection by which the peer is judged. */
static json_t *peer_worst_rail(const struct peer *p)
{
	PEER_EACH_TX(p, e)
		if (p->verdict != VERDICT_OK && e->verdict == p->verdict)
			return json_string(e->c->key.rail);
	return json_null();
}

static json_t *peer_json(const struct peer *p, const struct render_time *t)
{
	json_t *o = json_object(), *addrs = json_array(), *rails = json_array();
	json_t *conns = json_array(), *node = NULL;
	char text[CONN_KEY_MAX];

	peer_addresses(p, addrs, rails);
	PEER_EACH_TX(p, e) {
		json_array_append_new(conns, json_string(conn_key_format(&e->c->key, text)));
		if (!node && *conn_peer_node(e->c))
			node = json_string(conn_peer_node(e->c));
	}
	json_object_set_new(o, "name", json_string(p->cfg->name));
	json_object_set_new(o, "verdict", json_string(enum_name(&verdict_names, p->verdict)));
	json_object_set_new(o, "held_by", peer_held_by(p));
	json_object_set_new(o, "worst_rail", peer_worst_rail(p));
	json_object_set_new(o, "why", json_string(peer_why(p)));
	render_since(o, p->since, t);
	json_object_set_new(o, "node", node ? node : json_null());
	json_object_set_new(o, "addresses", addrs);
	json_object_set_new(o, "rails", rails);
	json_object_set_new(o, "connections", conns);
	json_object_set_new(o, "mesh",
			    json_string(enum_name(&mesh_modes, (int)p->cfg->probe->mesh)));
	json_object_set_new(o, "flows", json_integer(p->cfg->probe->flows));
	json_object_set_new(o, "told_rails", told_json(p));
	json_object_set_new(o, "resolve_error", *peer_resolve_error(p)
							? json_string(peer_resolve_error(p))
							: json_null());
	return o;
}

/* ---- lists ---- */

static json_t *next_device(struct manager *m, uint64_t *cursor, const struct render_time *t)
{
	for (struct device *d = m->devices; d; d = d->next)
		if (d->present && d->serial > *cursor) {
			*cursor = d->serial;
			return device_json(m, d, t);
		}
	return NULL;
}

/* Ports are ordered by device and number; serials are not, so the smallest above the
 * cursor is looked for in the order of the list by a serial made of both. */
static uint64_t port_order(const struct port_entry *pe)
{
	return (pe->device->serial << 8) | pe->p.num;
}

static json_t *next_port(struct manager *m, const char *device, uint64_t *cursor,
			 const struct render_time *t)
{
	for (struct device *d = m->devices; d; d = d->next)
		for (struct port_entry *pe = d->ports; pe; pe = pe->next)
			if (port_order(pe) > *cursor && (!device || !strcmp(device, d->name))) {
				*cursor = port_order(pe);
				return port_json(m, pe, t);
			}
	return NULL;
}

static json_t *next_peer(struct manager *m, uint64_t *cursor, const struct render_time *t)
{
	struct peer *p = peer_after(m, *cursor);

	if (!p)
		return NULL;
	*cursor = p->serial;
	return peer_json(p, t);
}

static json_t *next_conn(struct manager *m, const char *peer, uint64_t *cursor,
			 const struct render_time *t)
{
	for (int i = conns_after(m, *cursor); i < m->n_conns; i++)
		if (!peer || !strcmp(peer, m->conns[i]->c->key.peer)) {
			*cursor = m->conns[i]->serial;
			return conn_json(m, m->conns[i], t);
		}
	return NULL;
}

/* @arg: "SECONDS" or "SECONDS NAME". */
static json_t *next_change(struct manager *m, const char *arg, uint64_t *cursor,
			   const struct render_time *t)
{
	char *name = NULL;
	int64_t since = arg ? strtoll(arg, &name, 10) : 0;

	return history_next(m->history, since * NSEC_PER_SEC,
			    name && *name == ' ' ? name + 1 : NULL, cursor, t);
}

static json_t *api_next(void *user, enum api_list list, const char *arg, uint64_t *cursor)
{
	struct manager *m = user;
	struct render_time t = manager_time(m);

	switch (list) {
	case API_DEVICES:
		return next_device(m, cursor, &t);
	case API_PORTS:
		return next_port(m, arg, cursor, &t);
	case API_PEERS:
		return next_peer(m, cursor, &t);
	case API_CONNECTIONS:
		return next_conn(m, arg, cursor, &t);
	case API_HISTORY:
		return next_change(m, arg, cursor, &t);
	case API_MATRIX:
		return matrix_next(m, arg, cursor);
	default:
		return fabric_next(m->sweeps, list, cursor);
	}
}

static json_t *api_get(void *user, enum api_list list, const char *name)
{
	struct manager *m = user;
	struct render_time t = manager_time(m);
	struct port_entry *pe;
	struct conn_entry *e;
	struct device *d;
	struct peer *p;

	switch (list) {
	case API_DEVICES:
		d = device_find(m, name);
		return d && d->present ? device_json(m, d, &t) : NULL;
	case API_PORTS:
		pe = port_find(m, name);
		return pe ? port_json(m, pe, &t) : NULL;
	case API_PEERS:
		p = peer_find(m, name);
		return p ? peer_json(p, &t) : NULL;
	case API_CONNECTIONS:
		e = conn_by_key(m, name);
		return e ? conn_json(m, e, &t) : NULL;
	default: /* of the fabric there are lists */
		return NULL;
	}
}

static json_t *api_status(void *user)
{
	return status_json(user);
}

static json_t *api_port_counters(void *user, const char *port, int64_t since_sec)
{
	struct manager *m = user;
	struct render_time t = manager_time(m);
	const struct port_entry *pe = port_find(m, port);

	return pe ? render_port_counters(&pe->p, &m->config->health.limits,
					 since_sec * NSEC_PER_SEC, &t)
		  : NULL;
}

/* ---- what comes later ---- */

static void api_ping(void *user, const struct api_ping *p, const struct api_ticket *t)
{
	struct manager *m = user;

	pings_begin(m->pings, p, t);
}

static void api_dropped(void *user, uint64_t ticket)
{
	struct manager *m = user;

	pings_dropped(m->pings, ticket);
	sweeps_dropped(m->sweeps, ticket);
}

/* ---- orders ---- */

static int api_reset(void *user, const char *name, const char *who)
{
	struct manager *m = user;
	int n = conns_reset(m, name, CAUSE_OPERATOR);

	if (n > 0)
		log_notice("%d connections of %s reset by %s", n, name, who);
	return n;
}

static struct override_entry *override_slot(struct manager *m, const char *port)
{
	for (int i = 0; i < m->n_overrides; i++)
		if (!strcmp(m->overrides[i].port, port))
			return &m->overrides[i];
	m->overrides = xrealloc(m->overrides, (size_t)m->n_overrides + 1,
				sizeof(*m->overrides));
	m->overrides[m->n_overrides] = (struct override_entry){0};
	return &m->overrides[m->n_overrides++];
}

static int api_set_health(void *user, const char *port, enum health_override health,
			  int64_t for_sec, const char *who)
{
	struct manager *m = user;
	struct port_entry *pe = port_find(m, port);
	struct override_entry *o;
	char name[PORT_NAME_MAX];

	if (!pe)
		return -ENOENT;
	o = override_slot(m, port_name(&pe->p, name));
	(void)str_copy(o->port, sizeof(o->port), name);
	o->health = health;
	o->until_wall = for_sec ? clock_wall_ns() + for_sec * NSEC_PER_SEC : 0;
	(void)str_copy(o->by, sizeof(o->by), who);
	log_notice("port %s: health set to %s by %s%s", name,
		   enum_name(&override_names, health), who, for_sec ? ", with an end" : "");
	state_save_overrides(m);
	state_apply_override(m, pe);
	/* Left to itself again, it is compared with what it has from now on. */
	if (health == OVERRIDE_AUTO)
		baseline_forget(pe);
	port_settle(m, pe, SOURCE_OPERATOR);
	return 0;
}

void views_api(struct manager *m, struct api *ret)
{
	*ret = (struct api){
		.user = m,
		.status = api_status,
		.next = api_next,
		.get = api_get,
		.port_counters = api_port_counters,
		.explain = api_explain,
		.check = api_check,
		.reset_connection = api_reset,
		.set_port_health = api_set_health,
		.ping = api_ping,
		.dropped = api_dropped,
	};
	fabric_views_api(ret);
}
