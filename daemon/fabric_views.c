/* SPDX-License-Identifier: BSD-2-Clause */
/* What the socket shows of the fabric. */
#include <stdio.h>
#include <stdlib.h>

#include "render_subnet.h"
#include "sweeps.h"

#define LEVELS_AGE_NS NSEC_PER_SEC

static void guid_text(uint64_t guid, char buf[24])
{
	(void)snprintf(buf, 24, "0x%016llx", (unsigned long long)guid);
}

/* ---- nodes by their serial ---- */

/* The table follows the subnet: what is in it stays as long as the edition. */
static void index_nodes(struct sweeps *s)
{
	uint32_t n = subnet_serials(s->subnet);

	if (s->indexed == s->edition && s->by_serial)
		return;
	s->by_serial = xrealloc(s->by_serial, n, sizeof(struct ib_node *));
	memset(s->by_serial, 0, n * sizeof(struct ib_node *));
	s->n_by_serial = n;
	for (struct ib_node *node = subnet_next(s->subnet, NULL); node;
	     node = subnet_next(s->subnet, node))
		s->by_serial[node->serial] = node;
	s->indexed = s->edition;
}

/* Levels are of interest for drawing: a second old while a sweep is on is good enough.
 */
static uint8_t level_of(struct sweeps *s, const struct ib_node *n, struct mono now)
{
	bool old = !s->levels || (s->levelled != s->edition &&
				  mono_sub(now, s->levelled_at) > LEVELS_AGE_NS);

	if (old) {
		s->n_levels = subnet_serials(s->subnet);
		s->levels = xrealloc(s->levels, s->n_levels, 1);
		subnet_levels(s->subnet, s->levels, s->n_levels);
		s->levelled = s->edition;
		s->levelled_at = now;
	}
	return n->serial < s->n_levels ? s->levels[n->serial] : LEVEL_NONE;
}

/* ---- lists ---- */

static json_t *next_node(struct sweeps *s, uint64_t *cursor,
			 const struct render_time *t)
{
	for (uint64_t i = *cursor + 1; i < s->n_by_serial; i++)
		if (s->by_serial[i]) {
			*cursor = i;
			return render_fabric_node(s->by_serial[i],
						  level_of(s, s->by_serial[i], t->now),
						  t);
		}
	return NULL;
}

/* The cursor is a serial and the port that was last looked at. */
static json_t *next_link(struct sweeps *s, uint64_t *cursor)
{
	unsigned port = (unsigned)(*cursor & 0xff) + 1;

	for (uint64_t i = *cursor >> 8; i < s->n_by_serial; i++, port = 0) {
		const struct ib_node *n = s->by_serial[i];

		for (; n && port <= n->info.num_ports; port++) {
			const struct physp *p = node_physp(n, port);
			json_t *link = p ? render_fabric_link(p) : NULL;

			if (link) {
				*cursor = i << 8 | port;
				return link;
			}
		}
	}
	return NULL;
}

static json_t *next_error(struct sweeps *s, uint64_t *cursor,
			  const struct render_time *t)
{
	if (*cursor >= (uint64_t)sweep_n_errors(s->sweep))
		return NULL;
	return render_sweep_error(sweep_error_at(s->sweep, (int)(*cursor)++), t);
}

json_t *fabric_next(struct sweeps *s, enum api_list list, uint64_t *cursor)
{
	struct render_time t = manager_time(s->m);

	if (!s->subnet)
		return NULL;
	index_nodes(s);
	switch (list) {
	case API_FABRIC_NODES:
		return next_node(s, cursor, &t);
	case API_FABRIC_LINKS:
		return next_link(s, cursor);
	case API_FABRIC_ERRORS:
		return next_error(s, cursor, &t);
	default:
		return NULL;
	}
}

/* ---- the summary ---- */

static json_t *sm_json(uint16_t lid, const struct sm_info *sm)
{
	static const char *const states[] = {"not_active", "discovering", "standby",
					     "master"};
	static const struct enum_names names = {states, (int)ARRAY_LEN(states)};
	char guid[24];

	guid_text(sm->guid, guid);
	return json_pack("{s:i, s:s, s:i, s:s}", "lid", (int)lid, "guid", guid,
			 "priority", sm->priority, "state",
			 enum_name(&names, sm->state));
}

static json_t *master_json(const struct sweeps *s)
{
	for (int i = 0; i < s->sa.n_sms; i++)
		if (s->sa.sms[i].info.state == 3)
			return sm_json(s->sa.sms[i].lid, &s->sa.sms[i].info);
	return json_null();
}

static json_t *mads_json(const struct sweeps *s)
{
	static const char *const names[] = {
		[MADS_OWN] = "own", [MADS_NEAR] = "near", [MADS_SUBNET] = "subnet",
		[MADS_PMA] = "pma", [MADS_SA] = "sa",
	};
	json_t *o = json_object();

	for (int to = 0; to < MADS_TO__MAX; to++)
		json_object_set_new(o, names[to],
				    json_integer((json_int_t)mads_sent(
					    s->m->mads, (enum mads_to)to)));
	return o;
}

/* Once an edition: whoever asks again and again pays for no walk over all nodes. */
static void count(struct sweeps *s)
{
	if (s->counted == s->edition)
		return;
	s->counts = (struct subnet_counts){0};
	s->busiest = NULL;
	s->counted = s->edition;
	if (!s->subnet)
		return;
	subnet_count(s->subnet, &s->counts);
	for (const struct ib_node *n = subnet_next(s->subnet, NULL); n;
	     n = subnet_next(s->subnet, n))
		if (!s->busiest || n->mads > s->busiest->mads)
			s->busiest = n;
}

static void set_counts(json_t *o, const struct subnet_counts *c)
{
	render_int(o, "nodes", c->nodes);
	render_int(o, "switches", c->switches);
	render_int(o, "cas", c->cas);
	render_int(o, "routers", c->routers);
	render_int(o, "ports", c->ports);
	render_int(o, "links", c->links);
	render_int(o, "links_degraded", c->links_degraded);
	render_int(o, "duplicates", c->duplicates);
}

static void set_errors(const struct sweeps *s, json_t *o)
{
	int n = s->sweep ? sweep_n_errors(s->sweep) : 0, moved = 0;

	for (int i = 0; i < n; i++)
		moved += sweep_error_at(s->sweep, i)->problem == PROBLEM_MOVED;
	render_int(o, "errors", (uint64_t)n);
	render_int(o, "moved", (uint64_t)moved);
}

static void set_worst(const struct sweeps *s, json_t *o)
{
	const struct ib_node *worst = s->busiest;

	render_text(o, "mads_worst_node",
		    worst ? worst->desc_known ? worst->desc : "" : NULL);
	render_int(o, "mads_worst", worst ? worst->mads : 0);
}

static json_t *sweep_json(const struct sweeps *s, const struct sweep_result *r,
			  const struct subnet_counts *c, const struct render_time *t)
{
	size_t bytes = c->bytes + (s->sweep ? sweep_bytes(s->sweep) : 0);

	if (!s->sweep || !r || r->kind == SWEEP_NONE)
		return json_null();
	return render_sweep(r, c, sweep_n_errors(s->sweep), bytes, t);
}

static void set_sweeps(const struct sweeps *s, json_t *o, const struct subnet_counts *c,
		       const struct render_time *t)
{
	bool on = s->worker != NULL;

	json_object_set_new(
		o, "last_sweep",
		sweep_json(s, s->sweep ? sweep_last(s->sweep) : NULL, c, t));
	json_object_set_new(o, "present_sweep",
			    sweep_json(s, on ? sweep_present(s->sweep) : NULL, c, t));
	json_object_set_new(o, "last_full", sweep_json(s, &s->last_full, c, t));
	json_object_set_new(o, "progress",
			    on ? json_real(sweep_progress(s->sweep)) : json_null());
	json_object_set_new(
		o, "next_sweep_sec",
		mono_is_set(s->next_at)
			? json_real((double)MAX(mono_sub(s->next_at, t->now), 0) / 1e9)
			: json_null());
}

static const char *state_of(const struct sweeps *s)
{
	if (!config_may_sweep(s->m->config))
		return "off";
	if (s->worker)
		return "sweeping";
	return s->subnet && subnet_next(s->subnet, NULL) &&
			       !mono_is_set(s->unusable_since)
		       ? "idle"
		       : "waiting";
}

json_t *fabric_json(struct sweeps *s)
{
	struct render_time t = manager_time(s->m);
	json_t *o = json_object();
	char port[PORT_NAME_MAX];

	count(s);
	(void)snprintf(port, sizeof(port), "%s/%u", s->device, s->port);
	render_text(o, "mode", enum_name(&sweep_modes, (int)s->m->config->sweep));
	render_text(o, "state", state_of(s));
	render_text(o, "port", s->subnet && s->port ? port : NULL);
	render_text(o, "why", sweeps_why_none(s));
	set_counts(o, &s->counts);
	set_errors(s, o);
	set_sweeps(s, o, &s->counts, &t);
	json_object_set_new(o, "sm", master_json(s));
	json_object_set_new(o, "mads", mads_json(s));
	set_worst(s, o);
	render_int(o, "notices", s->notices);
	json_object_set_new(o, "subscribed", json_boolean(s->subscribed));
	return o;
}

static json_t *api_fabric(void *user)
{
	struct manager *m = user;

	return fabric_json(m->sweeps);
}

/* ---- the subnet administration ---- */

static json_t *member_json(const struct mcmember_record *mc)
{
	char mgid[48], gid[48], pkey[8];

	(void)snprintf(pkey, sizeof(pkey), "0x%04x", mc->pkey);
	return json_pack("{s:s, s:i, s:s, s:s, s:i}", "mgid", gid_text(mc->mgid, mgid),
			 "mlid", (int)mc->mlid, "port_gid", gid_text(mc->port_gid, gid),
			 "pkey", pkey, "join_state", (int)mc->join_state);
}

static json_t *api_fabric_sa(void *user)
{
	struct manager *m = user;
	const struct sweeps *s = m->sweeps;
	const struct sa_facts *sa = &s->sa;
	struct render_time t = manager_time(m);
	json_t *o = json_object(), *sms = json_array(), *members = json_array();
	json_t *missing = json_object();

	for (int i = 0; i < sa->n_sms; i++)
		json_array_append_new(sms, sm_json(sa->sms[i].lid, &sa->sms[i].info));
	for (int i = 0; i < sa->n_members; i++)
		json_array_append_new(members, member_json(&sa->members[i]));
	if (sa->why[SA_SMS][0])
		render_text(missing, "sms", sa->why[SA_SMS]);
	if (sa->why[SA_MEMBERS][0])
		render_text(missing, "members", sa->why[SA_MEMBERS]);
	json_object_set_new(o, "sms", sms);
	json_object_set_new(o, "members", members);
	render_age(o, "age_sec", sa->read_at, &t);
	json_object_set_new(o, "unavailable", missing);
	return o;
}

/* ---- routes ---- */

json_t *fabric_find(struct sweeps *s, const char *name, struct ib_node **ret)
{
	bool ambiguous = false;

	*ret = s->subnet ? subnet_find(s->subnet, name, &ambiguous) : NULL;
	if (*ret)
		return NULL;
	return json_pack("{s:s, s:s}", "node", name, "why",
			 ambiguous ? "more than one node has that name"
				   : "no node has that description, GUID or LID");
}

static json_t *route_json(const struct physp *from, const struct physp *to,
			  const struct dr_path *path)
{
	json_t *hops = json_array(), *ports = json_array();
	const struct physp *p = from;

	json_array_append_new(ports, json_integer(0));
	for (int i = 1; i <= path->hops; i++) {
		const struct physp *out = node_physp(p->node, path->port[i]);

		json_array_append_new(ports, json_integer(path->port[i]));
		json_array_append_new(hops, render_fabric_end(out));
		p = physp_remote(out);
		json_array_append_new(hops, render_fabric_end(p));
	}
	return json_pack("{s:o, s:o, s:o, s:o}", "from", render_fabric_end(from), "to",
			 render_fabric_end(path->hops ? p : to), "hops", hops, "path",
			 ports);
}

/* Ends of a route: of hosts with several ports the pair with the shortest way. */
static const struct physp *next_end(const struct ib_node *n, const struct physp *last)
{
	if (node_is_switch(n))
		return last ? NULL : node_physp(n, 0);
	for (unsigned i = last ? last->num + 1u : 1; i <= n->info.num_ports; i++)
		if (node_physp(n, i))
			return node_physp(n, i);
	return NULL;
}

static int best_route(const struct subnet *s, const struct ib_node *a,
		      const struct ib_node *b, const struct physp *ends[2],
		      struct dr_path *ret)
{
	int result = -ENETUNREACH;

	for (const struct physp *x = next_end(a, NULL); x; x = next_end(a, x))
		for (const struct physp *y = next_end(b, NULL); y; y = next_end(b, y)) {
			struct dr_path path;
			int r = route_shortest(s, x, y, false, &path);

			if (r < 0 && result < 0)
				result = r;
			if (r < 0 || (result == 0 && path.hops >= ret->hops))
				continue;
			result = 0;
			ends[0] = x;
			ends[1] = y;
			*ret = path;
		}
	return result;
}

static const char *api_route(void *user, const char *from, const char *to, json_t **ret)
{
	struct manager *m = user;
	struct sweeps *s = m->sweeps;
	const struct physp *ends[2] = {NULL, NULL};
	struct dr_path path = {0}, other;
	struct ib_node *a, *b;
	bool has_other;
	int r;

	if (sweeps_why_none(s)) {
		*ret = json_pack("{s:s, s:s}", "what", "fabric", "why",
				 sweeps_why_none(s));
		return "io.fabd.Unavailable";
	}
	*ret = fabric_find(s, from, &a);
	if (!*ret)
		*ret = fabric_find(s, to, &b);
	if (*ret)
		return "io.fabd.NoSuchNode";
	r = best_route(s->subnet, a, b, ends, &path);
	if (r < 0) {
		*ret = json_pack("{s:s}", "why",
				 r == -ERANGE
					 ? "it is longer than 63 hops"
					 : "no way over links that are known and up");
		return "io.fabd.NoRoute";
	}
	has_other = path.hops &&
		    !route_avoiding(s->subnet, ends[0], ends[1], &path, &other);
	*ret = json_pack(
		"{s:o, s:o}", "route", route_json(ends[0], ends[1], &path), "alternate",
		has_other ? route_json(ends[0], ends[1], &other) : json_null());
	return NULL;
}

/* ---- what comes later ---- */

static void api_port(void *user, const char *name, const struct api_ticket *t)
{
	struct manager *m = user;

	fabric_query(m->sweeps, name, t);
}

static void api_sweep(void *user, bool cold, const char *who,
		      const struct api_ticket *t)
{
	struct manager *m = user;

	sweeps_order(m->sweeps, cold, who, t);
}

void fabric_views_api(struct api *ret)
{
	ret->fabric = api_fabric;
	ret->fabric_sa = api_fabric_sa;
	ret->fabric_route = api_route;
	ret->fabric_port = api_port;
	ret->sweep_fabric = api_sweep;
}
