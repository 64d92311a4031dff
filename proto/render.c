/* SPDX-License-Identifier: BSD-2-Clause */
#include "render_subnet.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* ---- plain values ---- */

void render_set(json_t *o, const char *key, json_t *value)
{
	if (!value || json_object_set_new(o, key, value) < 0)
		abort(); /* memory, or a value that is no JSON: a bug */
}

static json_t *text_new(const char *text)
{
	json_t *value = json_string(text);
	char *clean;

	if (value)
		return value;
	clean = xstrdup(text);
	for (char *p = clean; *p; p++)
		if ((unsigned char)*p >= 0x80)
			*p = '?';
	value = json_string(clean);
	free(clean);
	return value;
}

void render_text(json_t *o, const char *key, const char *text)
{
	render_set(o, key, text ? text_new(text) : json_null());
}

void render_int(json_t *o, const char *key, uint64_t value)
{
	render_set(o, key, json_integer((json_int_t)MIN(value, (uint64_t)INT64_MAX)));
}

void render_percent(json_t *o, const char *key, uint64_t part, uint64_t of)
{
	render_set(o, key,
		   of ? json_real((double)MIN(part, of) * 100 / (double)of) : json_null());
}

void render_seconds(json_t *o, const char *key, int64_t ns)
{
	render_set(o, key,
	    json_real((double)((ns + NSEC_PER_MSEC / 2) / NSEC_PER_MSEC) / 1e3));
}

void render_age(json_t *o, const char *key, struct mono at, const struct render_time *t)
{
	if (mono_is_set(at))
		render_seconds(o, key, MAX(mono_sub(t->now, at), 0));
	else
		render_set(o, key, json_null());
}

const char *render_wall(int64_t wall_ns, char buf[32])
{
	time_t sec = (time_t)(wall_ns / NSEC_PER_SEC);
	struct tm tm;
	size_t n;

	if (!gmtime_r(&sec, &tm))
		tm = (struct tm){.tm_mday = 1, .tm_year = 70};
	n = strftime(buf, 32, "%Y-%m-%dT%H:%M:%S", &tm);
	(void)snprintf(buf + n, 32 - n, ".%03dZ",
		       (int)(wall_ns % NSEC_PER_SEC / NSEC_PER_MSEC));
	return buf;
}

void render_instant(json_t *o, const char *key, struct mono at,
		    const struct render_time *t)
{
	char buf[32];

	if (mono_is_set(at))
		render_text(o, key,
			    render_wall(t->wall_ns - mono_sub(t->now, at), buf));
	else
		render_set(o, key, json_null());
}

void render_since(json_t *o, struct mono at, const struct render_time *t)
{
	/* What has no beginning yet begins now. */
	if (!mono_is_set(at))
		at = t->now;
	render_instant(o, "since", at, t);
	render_age(o, "age_sec", at, t);
}

/* null, and why. */
static void missing(json_t *o, json_t *unavailable, const char *key,
		    enum unavailable why)
{
	render_set(o, key, json_null());
	render_text(unavailable, key, enum_name(&unavailable_names, (int)why));
}

/* ---- field tables ---- */

static uint8_t field_missing(const struct field_table *t, const void *facts, int i)
{
	return ((const uint8_t *)facts)[t->why_offset + (size_t)i];
}

static json_t *field_value(const struct field *f, const void *facts)
{
	const char *at = (const char *)facts + f->offset;
	uint32_t u32 = 0;
	uint64_t u64 = 0;
	char buf[24];

	switch (f->kind) {
	case FIELD_U32:
		memcpy(&u32, at, sizeof(u32));
		return json_integer(u32);
	case FIELD_U64:
		memcpy(&u64, at, sizeof(u64));
		return json_integer((json_int_t)MIN(u64, (uint64_t)INT64_MAX));
	case FIELD_GUID:
		memcpy(&u64, at, sizeof(u64));
		(void)snprintf(buf, sizeof(buf), "0x%016llx", (unsigned long long)u64);
		return json_string(buf);
	case FIELD_HEX:
	case FIELD_OUI:
	case FIELD_ID:
		memcpy(&u32, at, sizeof(u32));
		(void)snprintf(buf, sizeof(buf), "0x%0*x", field_hex_digits(f->kind), u32);
		return json_string(buf);
	case FIELD_TEXT:
		return text_new(at);
	case FIELD_BOOL:
		return json_boolean(*at);
	}
	return NULL;
}

void render_fields(json_t *o, json_t *unavailable, const struct field_table *table,
		   const void *facts)
{
	for (int i = 0; i < table->n; i++) {
		const struct field *f = &table->fields[i];
		uint8_t why = field_missing(table, facts, i);

		if (why)
			missing(o, unavailable, f->name, why);
		else
			render_set(o, f->name, field_value(f, facts));
	}
}

/* ---- devices ---- */

json_t *render_device(const struct device_view *d, const struct render_time *t)
{
	json_t *o = json_object(), *unavailable = json_object();

	if (d->index != DEVICE_INDEX_NONE)
		render_int(o, "ifindex", d->index);
	else
		missing(o, unavailable, "ifindex", WHY_NO_VERBS);
	render_text(o, "ifname", d->name);
	render_fields(o, unavailable, &device_table, d->facts);
	render_set(o, "ports", d->ports);
	render_set(o, "workers", d->workers);
	render_set(o, "unavailable", unavailable);
	render_since(o, d->since, t);
	return o;
}

/* ---- ports ---- */

static void render_caps(json_t *o, json_t *unavailable, const struct port_facts *f)
{
	json_t *caps;
	const char *name;
	char buf[16];
	int bit = 0;

	if (f->why[PF_CAP_MASK]) {
		missing(o, unavailable, "caps", f->why[PF_CAP_MASK]);
		return;
	}
	caps = json_array();
	while ((name = link_cap_next(f->cap_mask, &bit, buf)))
		(void)json_array_append_new(caps, json_string(name));
	render_set(o, "caps", caps);
}

static void render_pkeys(json_t *o, json_t *unavailable, const struct port *p)
{
	json_t *pkeys;
	char buf[8];

	if (p->pkeys_why) {
		missing(o, unavailable, "pkeys", p->pkeys_why);
		return;
	}
	pkeys = json_array();
	for (int i = 0; i < p->n_pkeys; i++) {
		(void)snprintf(buf, sizeof(buf), "0x%04x", p->pkeys[i]);
		(void)json_array_append_new(pkeys, json_string(buf));
	}
	render_set(o, "pkeys", pkeys);
}

static void render_table(json_t *o, json_t *unavailable, const char *key, json_t *table,
			 enum unavailable why)
{
	if (table && !why) {
		render_set(o, key, table);
		return;
	}
	json_decref(table); /* of a time that is over */
	missing(o, unavailable, key, why ? why : WHY_NOT_READ);
}

static json_t *render_gid(const struct port *p, const struct port_gid *g)
{
	const struct port_facts *f = &p->facts;
	json_t *o = json_object();
	char buf[48];
	bool own = g->netdev_index && !f->why[PF_NETDEV] && !f->why[PF_NETDEV_INDEX] &&
		   f->netdev_index == g->netdev_index;

	render_int(o, "index", g->index);
	render_text(o, "gid", gid_text(g->gid, buf));
	render_text(o, "type", gid_type_name(g->type));
	render_text(o, "netdev", own ? f->netdev : NULL);
	render_set(o, "netdev_index",
	    g->netdev_index ? json_integer(g->netdev_index) : json_null());
	return o;
}

static void render_gids(json_t *o, json_t *unavailable, const struct port *p)
{
	json_t *gids;

	if (p->gids_why) {
		missing(o, unavailable, "gids", p->gids_why);
		return;
	}
	gids = json_array();
	for (int i = 0; i < p->n_gids; i++)
		(void)json_array_append_new(gids, render_gid(p, &p->gids[i]));
	render_set(o, "gids", gids);
}

/* One reason for every field: there is nothing on the other side to show. */
static enum unavailable remote_why(const struct remote_facts *r)
{
	for (int i = 1; i < RF__MAX; i++)
		if (r->why[i] != r->why[0])
			return WHY_NONE;
	return r->why[0];
}

static void render_remote(json_t *o, json_t *unavailable, const struct port *p,
			  const struct render_time *t)
{
	enum unavailable why = remote_why(&p->remote);
	json_t *remote, *missing_there;

	if (p->last_remote[0])
		render_set(o, "last_remote", json_string(p->last_remote));
	else
		missing(o, unavailable, "last_remote", why ? why : WHY_NOT_READ);
	if (why) {
		missing(o, unavailable, "remote", why);
		return;
	}
	remote = json_object();
	missing_there = json_object();
	render_fields(remote, missing_there, &remote_table, &p->remote);
	if (mono_is_set(p->remote_read_at))
		render_age(remote, "read_age_sec", p->remote_read_at, t);
	else
		missing(remote, missing_there, "read_age_sec", WHY_NOT_READ);
	render_set(remote, "unavailable", missing_there);
	render_set(o, "remote", remote);
}

static json_t *render_flags(uint32_t flags)
{
	static const struct {
		enum port_flag flag;
		const char *name;
	} names[] = {
		{FLAG_ZERO_GUID, "zero_guid"},
		{FLAG_DUPLICATE_GUID, "duplicate_guid"},
		{FLAG_PORT_COUNT, "port_count"},
		{FLAG_NO_NETDEV, "no_netdev"},
		{FLAG_MISSED_EVENT, "missed_event"},
	};
	json_t *a = json_array();

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (flags & names[i].flag)
			(void)json_array_append_new(a, json_string(names[i].name));
	return a;
}

static void render_override(json_t *o, const struct port *p)
{
	char buf[32];
	bool on = p->override != OVERRIDE_AUTO;

	render_text(o, "override", enum_name(&override_names, (int)p->override));
	render_text(o, "override_by", on && p->override_by[0] ? p->override_by : NULL);
	render_text(o, "override_until",
		    on && p->override_until_wall
			    ? render_wall(p->override_until_wall, buf)
			    : NULL);
}

json_t *render_port(const struct port *p, json_t *addresses,
		    const struct flap_params *flap, const struct render_time *t)
{
	json_t *o = json_object(), *unavailable = json_object();
	char name[PORT_NAME_MAX];

	if (p->device_index != DEVICE_INDEX_NONE)
		render_int(o, "ifindex", p->device_index);
	else
		missing(o, unavailable, "ifindex", WHY_NO_VERBS);
	render_text(o, "ifname", p->device);
	render_int(o, "port", p->num);
	render_text(o, "name", port_name(p, name));
	render_text(o, "rail", p->rail[0] ? p->rail : NULL);
	render_text(o, "health", enum_name(&health_names, (int)p->health));
	render_text(o, "health_why", p->health_why);
	render_since(o, p->health_since, t);
	render_override(o, p);
	render_set(o, "expected", json_boolean(p->expected));
	render_fields(o, unavailable, &port_table, &p->facts);
	render_caps(o, unavailable, &p->facts);
	render_pkeys(o, unavailable, p);
	render_gids(o, unavailable, p);
	render_table(o, unavailable, "sl2vl", render_sl2vl(&p->local_physp), p->sl2vl_why);
	render_table(o, unavailable, "vlarb", render_vlarb(&p->local_physp), p->vlarb_why);
	render_remote(o, unavailable, p, t);
	render_watch(o, p, flap, t);
	render_set(o, "flags", render_flags(p->flags));
	render_set(o, "addresses", addresses);
	render_text(o, "source", enum_name(&source_names, (int)p->source));
	render_int(o, "missed_events", p->missed_events);
	if (mono_is_set(p->read_at))
		render_age(o, "read_age_sec", p->read_at, t);
	else
		missing(o, unavailable, "read_age_sec", WHY_NOT_READ);
	render_set(o, "unavailable", unavailable);
	return o;
}
