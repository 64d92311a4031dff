/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Facts of ports: what workers report goes into the port objects. What MADs answer is
 * port_mads.c's.
 */
#include <stdio.h>
#include <stdlib.h>

#include "sweeps.h"

#define STALE_NS (5 * NSEC_PER_SEC) /* without a worker: longer than replacing one takes */

/* ---- after a change ---- */

static void report_health(struct manager *m, struct port_entry *pe)
{
	char name[PORT_NAME_MAX], f_dev[96], f_health[48];
	const char *fields[] = {f_dev, f_health, NULL};
	struct port *p = &pe->p;

	if (pe->reported_health == p->health)
		return;
	(void)port_name(p, name);
	monitor_post(m->monitor, loop_now(m->loop), "port", name, "health",
		     enum_name(&health_names, pe->reported_health),
		     enum_name(&health_names, p->health), p->health_why);
	history_add(m->history, loop_now(m->loop), "port", name,
		    enum_name(&health_names, pe->reported_health),
		    enum_name(&health_names, p->health), NULL, p->health_why);
	(void)snprintf(f_dev, sizeof(f_dev), "RDMA_PORT=%s", name);
	(void)snprintf(f_health, sizeof(f_health), "HEALTH=%s",
		       enum_name(&health_names, p->health));
	log_fields(p->health == HEALTH_BAD ? LOG_ERR : LOG_NOTICE, fields,
		   "port %s: %s -> %s%s%s", name, enum_name(&health_names, pe->reported_health),
		   enum_name(&health_names, p->health), p->health_why[0] ? ": " : "",
		   p->health_why);
	pe->reported_health = p->health;
}

void port_settle(struct manager *m, struct port_entry *pe, enum fact_source source)
{
	struct mono now = loop_now(m->loop);
	bool has_events = pe->device->has_verbs_facts;
	struct port_pcie pcie;
	char name[PORT_NAME_MAX], state[64], buf[32];

	(void)port_derive(&pe->p);
	device_pcie(pe->device, &pcie);
	if (pe->p.dirty)
		pe->p.source = source; /* the history tells it */
	if (port_judge(&pe->p, &m->config->health, &pcie, now))
		m->rebind_wanted = true;
	if (pe->p.dirty) {
		port_changed(&pe->p, source, has_events, now);
		pe->p.dirty = false; /* told here; else it would be told at each poll */
		(void)snprintf(state, sizeof(state), "%s/%s",
			       field_text(&port_table, &pe->p.facts, PF_STATE, buf, sizeof(buf)),
			       field_text(&port_table, &pe->p.facts, PF_PHYSICAL_STATE,
					  buf + 16, sizeof(buf) - 16));
		monitor_post(m->monitor, now, "port", port_name(&pe->p, name), "facts", NULL,
			     state, enum_name(&source_names, source));
		m->rebind_wanted = true;
		sweeps_port_changed(m->sweeps, pe);
	}
	report_health(m, pe);
}

void port_apply_config(struct manager *m, struct port_entry *pe)
{
	char name[PORT_NAME_MAX];
	const struct config_port *cp = config_port_find(m->config, port_name(&pe->p, name));

	pe->p.rail[0] = '\0';
	pe->p.tied.family = 0;
	pe->p.expected = false;
	if (!cp)
		return;
	(void)str_copy(pe->p.rail, sizeof(pe->p.rail), cp->rail);
	pe->p.tied.family = cp->addr.family;
	memcpy(pe->p.tied.ip, cp->addr.ip, sizeof(pe->p.tied.ip));
	pe->p.expected = cp->expected;
	if (cp->health != OVERRIDE_AUTO && pe->p.override == OVERRIDE_AUTO) {
		pe->p.override = cp->health;
		(void)str_copy(pe->p.override_by, sizeof(pe->p.override_by), "config");
	} else if (cp->health == OVERRIDE_AUTO && !strcmp(pe->p.override_by, "config")) {
		pe->p.override = OVERRIDE_AUTO;
		pe->p.override_by[0] = '\0';
	}
}

static void flag_duplicates(struct manager *m, struct port_entry *pe)
{
	uint64_t guid = pe->p.facts.port_guid;
	bool known = !field_why(&port_table, &pe->p.facts, PF_PORT_GUID);

	pe->p.flags &= ~(uint32_t)(FLAG_DUPLICATE_GUID | FLAG_ZERO_GUID);
	if (!known)
		return;
	if (!guid) {
		pe->p.flags |= FLAG_ZERO_GUID;
		return;
	}
	for (struct device *d = m->devices; d; d = d->next)
		for (struct port_entry *o = d->ports; o; o = o->next)
			if (o != pe && o->p.facts.port_guid == guid &&
			    !field_why(&port_table, &o->p.facts, PF_PORT_GUID)) {
				o->p.flags |= FLAG_DUPLICATE_GUID;
				pe->p.flags |= FLAG_DUPLICATE_GUID;
			}
}

/* ---- what workers report ---- */

/* Whose facts these are. A device worker knows its device by the name that it had when
 * it was started. */
static struct device *subject(struct worker *w, const char *told)
{
	return device_find(w->m, w->kind == WORKER_RDMA ? w->device : told);
}

/* A MAD worker may name devices that are new here, or that the config leaves out. */
static struct device *subject_get(struct worker *w, const char *told)
{
	if (w->kind == WORKER_RDMA)
		return subject(w, told);
	return config_wants_device(w->m->config, told) ? device_get(w->m, told) : NULL;
}

void ports_on_device(struct worker *w, const struct wm_device *msg)
{
	struct device *d = subject_get(w, msg->name);
	const uint8_t *from = (const uint8_t *)&msg->facts;

	if (!d)
		return;
	if (w->kind == WORKER_MAD)
		d->mad = w;
	if (!msg->has_verbs && d->has_verbs_facts)
		return; /* verbs knows more */
	d->has_verbs_facts = msg->has_verbs;
	for (int f = 0; f < device_table.n; f++) {
		const struct field *row = &device_table.fields[f];

		/* Netlink and MADs may know what this source cannot tell. */
		if (msg->facts.why[f]) {
			if (d->facts.why[f])
				d->facts.why[f] = msg->facts.why[f];
			continue;
		}
		memcpy((uint8_t *)&d->facts + row->offset, from + row->offset, row->size);
		d->facts.why[f] = WHY_NONE;
	}
}

struct port_bit {
	enum wm_port_bit bit;
	enum port_field fields[4];
};

static void set_missing(struct port *p, const struct wm_port *msg)
{
	static const struct port_bit rows[] = {
		{WMP_STATE, {PF_STATE, PF_PHYSICAL_STATE, PF__MAX}},
		{WMP_MTU, {PF_ACTIVE_MTU, PF_MAX_MTU, PF__MAX}},
		{WMP_LID, {PF_LID, PF_LMC, PF__MAX}},
		{WMP_SM, {PF_SM_LID, PF_SM_SL, PF__MAX}},
		{WMP_WIDTH, {PF_WIDTH_ACTIVE, PF__MAX}},
		{WMP_SPEED, {PF_SPEED_ACTIVE, PF__MAX}},
		{WMP_CAPS, {PF_CAP_MASK, PF__MAX}},
		{WMP_GUID, {PF_PORT_GUID, PF__MAX}},
		{WMP_NETDEV, {PF_NETDEV, PF_NETDEV_INDEX, PF__MAX}},
		{WMP_VLS, {PF_VL_CAP, PF__MAX}},
		{WMP_LINK_LAYER, {PF_LINK_LAYER, PF__MAX}},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		for (int k = 0; rows[i].fields[k] != PF__MAX; k++)
			if (msg->missing & (1u << rows[i].bit))
				(void)port_set_missing(p, rows[i].fields[k], msg->missing_why);
}

static bool told(const struct wm_port *msg, enum wm_port_bit bit)
{
	return !(msg->missing & (1u << bit));
}

/* MTUs and VLs by code; a code without meaning is 0. */
static void set_code(struct port *p, enum port_field f, uint32_t value)
{
	if (value)
		(void)port_set_u64(p, f, value);
	else
		(void)port_set_missing(p, f, WHY_OUT_OF_RANGE);
}

static void set_link(struct port *p, const struct wm_port *msg)
{
	char text[24];
	enum link_speed speed = link_speed_from_verbs(msg->speed);

	if (told(msg, WMP_WIDTH))
		(void)port_set_text(p, PF_WIDTH_ACTIVE, link_width_text(msg->width, text));
	if (told(msg, WMP_SPEED))
		(void)port_set_text(p, PF_SPEED_ACTIVE, link_speed_name(speed));
	if (told(msg, WMP_WIDTH) && told(msg, WMP_SPEED))
		(void)port_set_u64(p, PF_RATE_MBPS, link_rate_mbps(msg->width, speed));
	if (told(msg, WMP_MTU)) {
		set_code(p, PF_ACTIVE_MTU, link_mtu_bytes(msg->active_mtu));
		set_code(p, PF_MAX_MTU, link_mtu_bytes(msg->max_mtu));
	}
	if (told(msg, WMP_VLS) && msg->vl_code)
		set_code(p, PF_VL_CAP, link_vls(msg->vl_code));
}

static void set_numbers(struct port *p, const struct wm_port *msg)
{
	static const char *const layers[] = {"unspecified", "infiniband", "ethernet"};

	if (told(msg, WMP_LINK_LAYER))
		(void)port_set_text(p, PF_LINK_LAYER, layers[msg->link_layer]);
	if (told(msg, WMP_STATE))
		(void)port_set_states(p, msg->state, msg->phys_state);
	if (told(msg, WMP_LID)) {
		(void)port_set_u64(p, PF_LID, msg->lid);
		(void)port_set_u64(p, PF_LMC, msg->lmc);
	}
	if (told(msg, WMP_SM)) {
		(void)port_set_u64(p, PF_SM_LID, msg->sm_lid);
		(void)port_set_u64(p, PF_SM_SL, msg->sm_sl);
	}
	if (told(msg, WMP_CAPS))
		(void)port_set_u64(p, PF_CAP_MASK, msg->cap_mask);
	if (told(msg, WMP_GUID))
		(void)port_set_u64(p, PF_PORT_GUID, msg->port_guid);
}

static void set_netdev(struct manager *m, struct port *p, const struct wm_port *msg)
{
	const struct nl_link *l = netlink_link(m->netlink, msg->netdev_index);

	p->flags &= ~(uint32_t)FLAG_NO_NETDEV;
	if (!told(msg, WMP_NETDEV))
		return;
	if (!msg->netdev_index) {
		(void)port_set_missing(p, PF_NETDEV, WHY_NO_NETDEV);
		(void)port_set_missing(p, PF_NETDEV_INDEX, WHY_NO_NETDEV);
		if (msg->link_layer == 2)
			p->flags |= FLAG_NO_NETDEV;
		return;
	}
	(void)port_set_u64(p, PF_NETDEV_INDEX, msg->netdev_index);
	(void)port_set_text(p, PF_NETDEV, l ? l->name : msg->netdev);
}

/* Only a MAD worker can ask for the far end, and only on an InfiniBand link. */
static void want_mad_worker(struct device *d, const struct wm_port *msg)
{
	if (msg->link_layer == 1 && !d->mad && !worker_find(d->m, WORKER_MAD, ""))
		d->mad = worker_want(d->m, WORKER_MAD, d->name, d->index);
}

static void not_infiniband(struct port *p)
{
	static const enum port_field ib_only[] = {
		PF_WIDTH_ENABLED, PF_WIDTH_SUPPORTED, PF_SPEED_ENABLED, PF_SPEED_SUPPORTED,
		PF_OPERATIONAL_VLS, PF_LINK_VLS, PF_LINK_MTU, PF_LINK_EXISTS, PF_LINK_HEALTHY,
		PF_SUBNET_PREFIX};

	for (size_t i = 0; i < ARRAY_LEN(ib_only); i++)
		(void)port_set_missing(p, ib_only[i], WHY_NOT_INFINIBAND);
	p->sl2vl_why = p->vlarb_why = WHY_NOT_INFINIBAND;
	(void)port_apply_remote(p, NULL, NULL, NULL, WHY_NOT_INFINIBAND);
}

void ports_on_port(struct worker *w, const struct wm_port *msg)
{
	struct manager *m = w->m;
	struct device *d = subject_get(w, msg->device);
	struct port_entry *pe;

	if (!d)
		return;
	pe = device_port_get(d, msg->port);
	if (!msg->has_verbs) {
		d->mad = w;
		if (msg->has_smi != pe->mad.has_smi)
			pe->mad.next_own = pe->mad.next_slow = loop_now(m->loop);
		pe->mad.has_smi = msg->has_smi;
		if (d->has_verbs_facts) /* verbs facts are fresher than sysfs'; only the right
					   to send MADs was news */
			return;
	}
	/* Under a simulator sysfs goes stale: what MADs have told is not overwritten. */
	if (!msg->has_verbs && mono_is_set(pe->p.read_at) && pe->mad.has_smi)
		return;
	set_missing(&pe->p, msg);
	set_numbers(&pe->p, msg);
	set_link(&pe->p, msg);
	set_netdev(m, &pe->p, msg);
	if (msg->has_verbs && msg->link_layer != 1)
		not_infiniband(&pe->p);
	pe->p.read_at = loop_now(m->loop);
	flag_duplicates(m, pe);
	if (msg->has_verbs)
		want_mad_worker(d, msg);
	if (pe->p.dirty)
		pe->mad.next_own = pe->mad.next_remote = loop_now(m->loop);
	port_settle(m, pe, msg->source);
}

void ports_on_gids(struct worker *w, const struct wm_gids *msg)
{
	struct device *d = subject(w, msg->device);
	struct port_entry *pe = d ? device_port(d, msg->port) : NULL;

	if (!msg->first)
		w->n_gids = 0;
	if (w->n_gids + msg->n > PORT_GIDS_MAX) {
		worker_fail(w, "a GID table of over %d entries", PORT_GIDS_MAX);
		return;
	}
	memcpy(&w->gids[w->n_gids], msg->gid, msg->n * sizeof(msg->gid[0]));
	w->n_gids += msg->n;
	if (!msg->last || !pe || (w->kind == WORKER_MAD && d->has_verbs_facts))
		return;
	if (port_set_gids(&pe->p, w->gids, w->n_gids, msg->why))
		port_settle(w->m, pe, SOURCE_ASYNC);
	w->m->rebind_wanted = true;
}

int port_pkeys_used(const uint16_t *pkeys, int n)
{
	while (n > 0 && !pkeys[n - 1])
		n--;
	return n;
}

void ports_on_pkeys(struct worker *w, const struct wm_pkeys *msg)
{
	struct device *d = subject(w, msg->device);
	struct port_entry *pe = d ? device_port(d, msg->port) : NULL;

	if (!msg->first)
		w->n_pkeys = 0;
	if (w->n_pkeys + msg->n > PORT_PKEYS_MAX) {
		worker_fail(w, "a P_Key table of over %d entries", PORT_PKEYS_MAX);
		return;
	}
	memcpy(&w->pkeys[w->n_pkeys], msg->pkey, msg->n * sizeof(msg->pkey[0]));
	w->n_pkeys += msg->n;
	if (!msg->last || !pe || (w->kind == WORKER_MAD && d->has_verbs_facts))
		return;
	if (port_set_pkeys(&pe->p, w->pkeys, port_pkeys_used(w->pkeys, w->n_pkeys), msg->why))
		port_settle(w->m, pe, SOURCE_ASYNC);
}

void ports_worker_lost(struct worker *w)
{
	for (struct device *d = w->m->devices; w->kind == WORKER_MAD && d; d = d->next)
		for (struct port_entry *pe = d->ports; d->mad == w && pe; pe = pe->next)
			port_mads_reset(pe);
}

static bool lost_for_long(const struct worker *w, struct mono now)
{
	return w && mono_is_set(w->lost_at) && mono_sub(now, w->lost_at) > STALE_NS;
}

/* A worker that is replaced costs no fact. When none comes back, what it told last must
 * not go on looking as if it were still so. */
static void drop_stale(struct device *d, struct mono now)
{
	bool own_mad = !d->has_verbs_facts;

	for (struct port_entry *pe = d->ports; pe; pe = pe->next) {
		if (lost_for_long(own_mad ? d->mad : d->rdma, now)) {
			(void)port_set_missing(&pe->p, PF_STATE, WHY_NO_WORKER);
			(void)port_set_missing(&pe->p, PF_PHYSICAL_STATE, WHY_NO_WORKER);
		}
		if (lost_for_long(d->mad, now))
			(void)port_apply_remote(&pe->p, NULL, NULL, NULL, WHY_NO_WORKER);
		if (pe->p.dirty)
			port_settle(d->m, pe, own_mad ? SOURCE_MAD : SOURCE_ASYNC);
	}
}

void ports_tick(struct manager *m, struct mono now)
{
	for (struct device *d = m->devices; d; d = d->next) {
		for (struct port_entry *pe = d->ports; pe; pe = pe->next)
			port_mads_poll(pe, now);
		drop_stale(d, now);
	}
}

struct mono ports_deadline(const struct manager *m)
{
	struct mono first = MONO_NEVER;

	for (const struct device *d = m->devices; d; d = d->next)
		for (const struct port_entry *pe = d->ports; pe; pe = pe->next)
			first = mono_first(first, port_mads_deadline(pe));
	return first;
}
