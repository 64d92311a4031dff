/* SPDX-License-Identifier: BSD-2-Clause */
#include "port.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define STATE_DOWN   1
#define STATE_ACTIVE 4
#define STATE_ACTIVE_DEFER 5

void port_init(struct port *p, const char *device, uint32_t index, uint8_t num,
	       struct mono now)
{
	*p = (struct port){.device_index = index, .num = num};
	(void)str_copy(p->device, sizeof(p->device), device);
	field_all_missing(&port_table, &p->facts, WHY_NOT_READ);
	field_all_missing(&remote_table, &p->remote, WHY_NOT_READ);
	physp_init(&p->local_physp, 0, num, &p->local_node, 0, NULL);
	physp_init(&p->remote_physp, 0, 0, &p->remote_node, 0, NULL);
	p->pkeys_why = WHY_NOT_READ;
	p->sl2vl_why = p->vlarb_why = WHY_NOT_READ;
	p->gids_why = WHY_NOT_READ;
	p->health_since = p->state_since = p->changed = now;
	p->dirty = true;
}

void port_done(struct port *p)
{
	p->local_physp.guid |= 1; /* its tables go, whatever has become of its GUID */
	physp_destroy(&p->local_physp);
	port_watch_done(&p->watch);
	free(p->pkeys);
	free(p->gids);
	p->pkeys = NULL;
	p->gids = NULL;
	p->n_pkeys = p->n_gids = 0;
}

void port_was_well_before(struct port *p)
{
	p->ever_active = true;
	p->watch.was_down = true;
}

const char *port_name(const struct port *p, char buf[PORT_NAME_MAX])
{
	(void)snprintf(buf, PORT_NAME_MAX, "%s/%u", p->device[0] ? p->device : "-",
		       p->num);
	return buf;
}

/* ---- setters ---- */

static bool mark(struct port *p, bool changed)
{
	p->dirty |= changed;
	return changed;
}

bool port_set_u64(struct port *p, enum port_field f, uint64_t v)
{
	return mark(p, field_set_u64(&port_table, &p->facts, f, v));
}

bool port_set_text(struct port *p, enum port_field f, const char *s)
{
	bool changed = mark(p, field_set_text(&port_table, &p->facts, f, s));

	if (f == PF_STATE) {
		p->state_moved |= changed;
		p->ever_active |= str_eq(s, link_state_name(STATE_ACTIVE));
	}
	return changed;
}

bool port_set_missing(struct port *p, enum port_field f, enum unavailable why)
{
	bool changed = mark(p, field_set_missing(&port_table, &p->facts, f, why));

	if (f == PF_STATE)
		p->state_moved |= changed;
	return changed;
}

bool port_set_states(struct port *p, uint32_t state, uint32_t phys)
{
	bool changed;

	/* A code that has no meaning is no state: nothing can be concluded from it. */
	if (state < STATE_DOWN || state > STATE_ACTIVE_DEFER)
		changed = port_set_missing(p, PF_STATE, WHY_OUT_OF_RANGE);
	else
		changed = port_set_text(p, PF_STATE, link_state_name(state));
	/* Some drivers leave it 0. */
	if (!phys)
		return port_set_missing(p, PF_PHYSICAL_STATE, WHY_NOT_SUPPORTED) ||
		       changed;
	return port_set_text(p, PF_PHYSICAL_STATE, link_phys_state_name(phys)) ||
	       changed;
}

bool port_set_pkeys(struct port *p, const uint16_t *pkeys, int n, enum unavailable why)
{
	assert(n >= 0 && n <= PORT_PKEYS_MAX);
	if (p->pkeys_why == why && p->n_pkeys == n &&
	    (!n || !memcmp(p->pkeys, pkeys, (size_t)n * sizeof(*pkeys))))
		return false;
	free(p->pkeys);
	p->pkeys = xcalloc((size_t)n, sizeof(*pkeys));
	if (n)
		memcpy(p->pkeys, pkeys, (size_t)n * sizeof(*pkeys));
	p->n_pkeys = n;
	p->pkeys_why = why;
	return mark(p, true);
}

static bool gids_equal(const struct port_gid *a, const struct port_gid *b, int n)
{
	for (int i = 0; i < n; i++)
		if (a[i].index != b[i].index || a[i].type != b[i].type ||
		    a[i].netdev_index != b[i].netdev_index ||
		    memcmp(a[i].gid, b[i].gid, sizeof(a[i].gid)))
			return false;
	return true;
}

bool port_set_gids(struct port *p, const struct port_gid *gids, int n,
		   enum unavailable why)
{
	assert(n >= 0 && n <= PORT_GIDS_MAX);
	if (p->gids_why == why && p->n_gids == n && gids_equal(p->gids, gids, n))
		return false;
	free(p->gids);
	p->gids = xcalloc((size_t)n, sizeof(*gids));
	if (n)
		memcpy(p->gids, gids, (size_t)n * sizeof(*gids));
	p->n_gids = n;
	p->gids_why = why;
	return mark(p, true);
}

static const char *const far_sources[] = {
	[FAR_NONE] = "none",
	[FAR_MAD] = "mad",
	[FAR_LLDP] = "lldp",
	[FAR_LABEL] = "label",
};
const struct enum_names far_source_names = {far_sources, (int)ARRAY_LEN(far_sources)};

bool port_set_far(struct port *p, const char *name, enum far_source source)
{
	if (str_eq(p->far_name, name) && p->far_source == source)
		return false;
	(void)str_copy(p->far_name, sizeof(p->far_name), name);
	p->far_source = source;
	/* Kept when the link goes down: the cable or this is to be looked at then. */
	if (*name)
		(void)str_copy(p->last_remote, sizeof(p->last_remote), name);
	return mark(p, true);
}

static bool state_is(const struct port *p, uint32_t state)
{
	return !p->facts.why[PF_STATE] &&
	       str_eq(p->facts.state, link_state_name(state));
}

/* ---- attributes that came by MAD ---- */

/* A code of which 0 and others mean nothing. */
static bool set_code(const struct field_table *t, void *facts, int field,
		     uint32_t value)
{
	return value ? field_set_u64(t, facts, field, value)
		     : field_set_missing(t, facts, field, WHY_OUT_OF_RANGE);
}

/* Where width and speed of an end are in its table. */
struct rate_fields {
	int width, width_supported, speed, speed_supported;
};

static bool set_rates(const struct field_table *t, void *facts,
		      const struct rate_fields *f, const struct port_info *pi)
{
	enum link_speed speed = link_speed_from_portinfo(
		pi->speed_active, pi->ext_active, pi->ext_active2, false);
	char buf[96];
	bool c = false;

	c |= field_set_text(t, facts, f->width, link_width_text(pi->width_active, buf));
	c |= field_set_text(t, facts, f->width_supported,
			    link_widths_text(pi->width_supported, buf));
	c |= field_set_text(t, facts, f->speed, link_speed_name(speed));
	c |= field_set_text(
		t, facts, f->speed_supported,
		link_speeds_text(link_speeds_from_portinfo(pi->speed_supported,
							   pi->ext_supported,
							   pi->ext_supported2),
				 buf));
	return c;
}

/* Of a port that was down since we know it only the states can be told. */
static bool unread_means_down(const struct field_table *t, void *facts,
			      const int *fields, size_t n)
{
	bool changed = false;

	for (size_t i = 0; i < n; i++)
		if (field_why(t, facts, fields[i]) == WHY_NOT_READ)
			changed |=
				field_set_missing(t, facts, fields[i], WHY_LINK_DOWN);
	return changed;
}

static bool apply_full_info(struct port *p, const struct port_info *pi)
{
	static const struct rate_fields rates = {PF_WIDTH_ACTIVE, PF_WIDTH_SUPPORTED,
						 PF_SPEED_ACTIVE, PF_SPEED_SUPPORTED};
	const struct field_table *t = &port_table;
	void *facts = &p->facts;
	char buf[96];
	bool c = false;

	c |= field_set_u64(t, facts, PF_LID, pi->lid);
	c |= field_set_u64(t, facts, PF_LMC, pi->lmc);
	c |= field_set_u64(t, facts, PF_SM_LID, pi->sm_lid);
	c |= field_set_u64(t, facts, PF_SM_SL, pi->sm_sl);
	c |= field_set_u64(t, facts, PF_SUBNET_PREFIX, pi->gid_prefix);
	c |= field_set_u64(t, facts, PF_CAP_MASK, pi->cap_mask);
	c |= set_code(t, facts, PF_ACTIVE_MTU, link_mtu_bytes(pi->neighbor_mtu));
	c |= set_code(t, facts, PF_MAX_MTU, link_mtu_bytes(pi->mtu_cap));
	c |= set_code(t, facts, PF_OPERATIONAL_VLS, link_vls(pi->op_vls));
	c |= set_code(t, facts, PF_VL_CAP, link_vls(pi->vl_cap));
	c |= set_rates(t, facts, &rates, pi);
	c |= field_set_text(t, facts, PF_WIDTH_ENABLED,
			    link_widths_text(pi->width_enabled, buf));
	c |= field_set_text(t, facts, PF_SPEED_ENABLED,
			    link_speeds_text(link_speeds_from_portinfo(
						     pi->speed_enabled, pi->ext_enabled,
						     pi->ext_enabled2),
					     buf));
	return c;
}

bool port_apply_info(struct port *p, const struct port_info *pi)
{
	static const int fields[] = {
		PF_LID,		  PF_LMC,	    PF_SM_LID,
		PF_SM_SL,	  PF_SUBNET_PREFIX, PF_CAP_MASK,
		PF_ACTIVE_MTU,	  PF_MAX_MTU,	    PF_OPERATIONAL_VLS,
		PF_VL_CAP,	  PF_WIDTH_ACTIVE,  PF_WIDTH_SUPPORTED,
		PF_WIDTH_ENABLED, PF_SPEED_ACTIVE,  PF_SPEED_SUPPORTED,
		PF_SPEED_ENABLED,
	};
	bool changed = port_set_states(p, pi->state, pi->phys_state);

	physp_set_info(&p->local_physp, pi);
	if (pi->state == STATE_DOWN)
		changed |= unread_means_down(&port_table, &p->facts, fields,
					     ARRAY_LEN(fields));
	else
		changed |= apply_full_info(p, pi);
	return mark(p, changed);
}

static bool apply_remote_info(struct port *p)
{
	static const int fields[] = {
		RF_LID,		 RF_MAX_MTU,
		RF_VL_CAP,	 RF_OPERATIONAL_VLS,
		RF_WIDTH_ACTIVE, RF_WIDTH_SUPPORTED,
		RF_SPEED_ACTIVE, RF_SPEED_SUPPORTED,
	};
	static const struct rate_fields rates = {RF_WIDTH_ACTIVE, RF_WIDTH_SUPPORTED,
						 RF_SPEED_ACTIVE, RF_SPEED_SUPPORTED};
	const struct port_info *pi = &p->remote_physp.info;
	const struct field_table *t = &remote_table;
	void *r = &p->remote;
	bool c = false;

	c |= field_set_text(t, r, RF_STATE, link_state_name(pi->state));
	c |= field_set_text(t, r, RF_PHYSICAL_STATE,
			    link_phys_state_name(pi->phys_state));
	if (!p->remote_physp.info_full) {
		for (size_t i = 0; i < ARRAY_LEN(fields); i++)
			c |= field_set_missing(t, r, fields[i], WHY_LINK_DOWN);
		return c;
	}
	c |= field_set_u64(t, r, RF_LID, pi->lid);
	c |= set_code(t, r, RF_MAX_MTU, link_mtu_bytes(pi->mtu_cap));
	c |= set_code(t, r, RF_VL_CAP, link_vls(pi->vl_cap));
	c |= set_code(t, r, RF_OPERATIONAL_VLS, link_vls(pi->op_vls));
	return set_rates(t, r, &rates, pi) || c;
}

static bool apply_remote_node(struct port *p, const struct node_info *ni,
			      const char *desc, enum unavailable why)
{
	const struct field_table *t = &remote_table;
	void *r = &p->remote;
	bool c = false;

	c |= field_set_u64(t, r, RF_NODE_GUID, ni->node_guid);
	c |= field_set_u64(t, r, RF_PORT_GUID, ni->port_guid);
	c |= field_set_text(t, r, RF_NODE_TYPE, node_type_name(ni->node_type));
	c |= field_set_u64(t, r, RF_PORT, ni->local_port);
	c |= field_set_u64(t, r, RF_VENDOR_ID, ni->vendor_id);
	c |= field_set_u64(t, r, RF_DEVICE_ID, ni->device_id);
	if (desc)
		c |= field_set_text(t, r, RF_NODE_DESC, desc);
	else
		c |= field_set_missing(t, r, RF_NODE_DESC, why);
	return c;
}

/* Nothing there, or nobody can say what. */
static bool remote_gone(struct port *p, enum unavailable why)
{
	bool changed = p->local_physp.remote != NULL;

	for (int i = 0; i < RF__MAX; i++)
		changed |= field_set_missing(&remote_table, &p->remote, i, why);
	physp_unlink(&p->local_physp);
	physp_init(&p->remote_physp, 0, 0, &p->remote_node, 0, NULL);
	return mark(p, changed);
}

/* Kept when the link goes down: the cable or this is to be looked at then. */
static void note_last_remote(struct port *p, const struct node_info *ni, const char *desc)
{
	char name[72];

	if (desc && *desc)
		(void)node_desc_short(desc, name, sizeof(name));
	else
		(void)snprintf(name, sizeof(name), "0x%016" PRIx64, ni->node_guid);
	(void)snprintf(p->last_remote, sizeof(p->last_remote), "%s/%u", name,
		       (unsigned)ni->local_port);
}

bool port_apply_remote(struct port *p, const struct node_info *ni, const char *desc,
		       const struct port_info *pi, enum unavailable why)
{
	struct physp *far = &p->remote_physp;
	enum unavailable reason = why ? why : WHY_NOT_READ;
	bool changed;

	if (!ni)
		return remote_gone(p, reason);
	changed = apply_remote_node(p, ni, desc, reason);
	note_last_remote(p, ni, desc);
	/* Another port than before: what was learnt of that one does not count. */
	if (far->guid != ni->port_guid || far->num != ni->local_port) {
		physp_unlink(&p->local_physp);
		physp_init(far, ni->port_guid, ni->local_port, &p->remote_node, 0, NULL);
	}
	p->remote_node.info = *ni;
	p->remote_node.desc_known = desc != NULL;
	(void)str_copy(p->remote_node.desc, sizeof(p->remote_node.desc), desc ? desc : "");
	if (pi) {
		physp_set_info(far, pi);
		changed |= apply_remote_info(p);
	} else {
		static const int fields[] = {RF_LID,
					     RF_STATE,
					     RF_PHYSICAL_STATE,
					     RF_MAX_MTU,
					     RF_VL_CAP,
					     RF_OPERATIONAL_VLS,
					     RF_WIDTH_ACTIVE,
					     RF_WIDTH_SUPPORTED,
					     RF_SPEED_ACTIVE,
					     RF_SPEED_SUPPORTED};

		far->info_full = false;
		for (size_t i = 0; i < ARRAY_LEN(fields); i++)
			changed |= field_set_missing(&remote_table, &p->remote,
						     fields[i], reason);
	}
	/* Also when either has no GUID, and the link does not count as existing. */
	if (p->local_physp.remote != far) {
		physp_link(&p->local_physp, far);
		changed = true;
	}
	return mark(p, changed);
}

/* ---- what follows from the facts ---- */

static enum unavailable first_why(const struct port *p, enum port_field a,
				  enum port_field b)
{
	return (enum unavailable)(p->facts.why[a] ? p->facts.why[a] : p->facts.why[b]);
}

static bool derive_rate(struct port *p)
{
	enum unavailable why = first_why(p, PF_WIDTH_ACTIVE, PF_SPEED_ACTIVE);
	uint32_t rate;

	/* Codes of a link that is down are leftovers. */
	if (state_is(p, STATE_DOWN))
		why = WHY_LINK_DOWN;
	if (why)
		return port_set_missing(p, PF_RATE_MBPS, why);
	rate = link_rate_mbps(link_width_find(p->facts.width_active),
			      link_speed_find(p->facts.speed_active));
	return rate ? port_set_u64(p, PF_RATE_MBPS, rate)
		    : port_set_missing(p, PF_RATE_MBPS, WHY_OUT_OF_RANGE);
}

static bool derive_lids(struct port *p)
{
	enum unavailable why = first_why(p, PF_LID, PF_LMC);
	uint16_t first, last;
	bool changed;

	if (!why &&
	    (p->facts.lid > UINT16_MAX || p->facts.lmc > 7 ||
	     !lid_range((uint16_t)p->facts.lid, (uint8_t)p->facts.lmc, &first, &last)))
		why = WHY_OUT_OF_RANGE;
	if (why) {
		changed = port_set_missing(p, PF_LID_FIRST, why);
		return port_set_missing(p, PF_LID_LAST, why) || changed;
	}
	changed = port_set_u64(p, PF_LID_FIRST, first);
	return port_set_u64(p, PF_LID_LAST, last) || changed;
}

/* MTU or VLs of the link: from both ends by MAD, else what the port itself says. */
static bool derive_cap(struct port *p, enum port_field to, enum port_field own,
		       uint32_t both_ends)
{
	enum unavailable why = (enum unavailable)p->facts.why[own];
	uint32_t v;

	if (state_is(p, STATE_DOWN))
		return port_set_missing(p, to, WHY_LINK_DOWN);
	if (p->local_physp.info_full)
		return port_set_u64(p, to, both_ends);
	if (why)
		return port_set_missing(p, to, why);
	memcpy(&v, (const char *)&p->facts + port_table.fields[own].offset, sizeof(v));
	return port_set_u64(p, to, v);
}

static bool derive_link(struct port *p)
{
	const struct physp *local = &p->local_physp;
	enum unavailable far_why = (enum unavailable)p->remote.why[RF_NODE_GUID];
	bool changed;

	if (physp_link_exists(local, &p->remote_physp))
		changed = port_set_u64(p, PF_LINK_EXISTS, true);
	else if (state_is(p, STATE_DOWN))
		changed = port_set_u64(p, PF_LINK_EXISTS, false);
	else
		changed = port_set_missing(p, PF_LINK_EXISTS,
					   far_why ? far_why : WHY_OUT_OF_RANGE);
	/* The flag of the own port is known even where the far end cannot be asked. */
	return port_set_u64(p, PF_LINK_HEALTHY, physp_link_healthy(local)) || changed;
}

bool port_derive(struct port *p)
{
	struct physp *local = &p->local_physp;
	bool guid_known = !p->facts.why[PF_PORT_GUID];
	uint32_t flags = p->flags;
	bool changed = false;

	local->guid = guid_known ? p->facts.port_guid : 0;
	p->flags &= ~(uint32_t)FLAG_ZERO_GUID;
	if (guid_known && !local->guid)
		p->flags |= FLAG_ZERO_GUID;
	changed |= p->flags != flags;
	changed |= derive_rate(p);
	changed |= derive_lids(p);
	changed |= derive_cap(p, PF_LINK_MTU, PF_ACTIVE_MTU,
			      link_mtu_bytes(physp_link_mtu(local)));
	changed |= derive_cap(p, PF_LINK_VLS, PF_OPERATIONAL_VLS,
			      link_vls(physp_link_vls(local, 0)));
	changed |= derive_link(p);
	return mark(p, changed);
}

void port_changed(struct port *p, enum fact_source source, bool has_events,
		  struct mono now)
{
	p->changed = now;
	p->source = source;
	if (p->state_moved)
		p->state_since = now;
	p->state_moved = false;
	if (source == SOURCE_POLL && has_events) {
		p->missed_events++;
		p->flags |= FLAG_MISSED_EVENT;
	}
	p->dirty = true;
}

bool port_is_down(const struct port *p)
{
	return !p->facts.why[PF_STATE] && !state_is(p, STATE_ACTIVE) &&
	       !state_is(p, STATE_ACTIVE_DEFER);
}
