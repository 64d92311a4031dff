/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Facts of ports by MAD, and when which is asked: the own port's PortInfo every
 * PollSec; node, P_Keys, SL to VL and VL arbitration of it every minute; what is across
 * the wire on change and every RemotePollSec.
 */
#include <stdlib.h>

#include "manager.h"
#include "sweeps.h"

#define SLOW_POLL_NS (60 * NSEC_PER_SEC)

static void on_answer(void *user, const struct mad_done *r);

/* The number of a request is in its tag: an answer that is waited for no more, because
 * its round was given up, is told apart. */
static void ask(struct port_entry *pe, enum mad_ask what, uint16_t attr, uint32_t mod)
{
	const struct config *c = pe->device->m->config;
	struct mad_poll *mp = &pe->mad;
	uint8_t path[IB_PATH_LEN] = {0, pe->p.num};
	uint32_t number = mp->next_number = (mp->next_number + 1) & 0xffffff;
	const struct mad_smp smp = {
		.tag = (uint64_t)number << 8 | what,
		.attr = attr,
		.mod = mod,
		.timeout_ms = (uint16_t)(c->mad_timeout / NSEC_PER_MSEC),
		.retries = (uint8_t)c->mad_retries,
		.hops = what >= ASK_REMOTE_NODE,
		.path = path,
	};

	mp->out[what] = mads_get(pe->device->m->mads, pe->device->mad, pe->device->name,
				 pe->p.num, &smp, on_answer, pe) < 0
				? 0
				: number;
}

static enum unavailable why_of(const struct mad_done *r, struct mad_poll *mp)
{
	switch (r->status) {
	case WM_MAD_TIMEOUT:
		mp->timeouts++;
		return WHY_TIMEOUT;
	case WM_MAD_BAD_STATUS:
		mp->bad_status++;
		return WHY_BAD_STATUS;
	case WM_MAD_NO_PERMISSION:
		return WHY_NO_PERMISSION;
	case WM_MAD_NO_PORT:
		return WHY_NO_UMAD;
	default:
		mp->bad_answer++;
		return WHY_BAD_ANSWER;
	}
}

/* An answer to what only IB_PORT_INFO_EXTENDED in the request can have spoilt. */
static bool is_refused(const struct mad_done *r, bool extended)
{
	return extended &&
	       (r->status == WM_MAD_BAD_STATUS || r->status == WM_MAD_BAD_ANSWER);
}

static bool has_link(const struct port_entry *pe)
{
	return str_eq(pe->p.facts.physical_state, "LINK_UP") &&
	       !field_why(&port_table, &pe->p.facts, PF_PHYSICAL_STATE);
}

/* ---- the own port ---- */

static void own_failed(struct port_entry *pe, enum unavailable why)
{
	static const enum port_field from_mad[] = {
		PF_WIDTH_ENABLED,   PF_WIDTH_SUPPORTED, PF_SPEED_ENABLED,
		PF_SPEED_SUPPORTED, PF_OPERATIONAL_VLS, PF_SUBNET_PREFIX};

	for (size_t i = 0; i < ARRAY_LEN(from_mad); i++)
		(void)port_set_missing(&pe->p, from_mad[i], why);
	if (!pe->device->has_verbs_facts) {
		(void)port_set_missing(&pe->p, PF_STATE, why);
		(void)port_set_missing(&pe->p, PF_PHYSICAL_STATE, why);
	}
	port_settle(pe->device->m, pe, SOURCE_MAD);
}

/* As its last PortInfo told. */
static void ask_own(struct port_entry *pe)
{
	const struct physp *p = &pe->p.local_physp;

	pe->mad.own_extended = !pe->mad.own_plain && p->info_full &&
			       p->info.cap_mask & IB_CAP_EXTENDED_SPEEDS;
	ask(pe, ASK_OWN, MAD_ATTR_PORT_INFO,
	    pe->mad.own_extended ? IB_PORT_INFO_EXTENDED : 0);
}

static void on_own(struct port_entry *pe, const struct mad_done *r)
{
	struct manager *m = pe->device->m;
	struct port_info pi;
	bool linked = has_link(pe);
	uint16_t lid = pe->p.local_physp.info.lid;

	if (is_refused(r, pe->mad.own_extended)) {
		pe->mad.own_plain = true;
		ask_own(pe);
		return;
	}
	if (r->status != WM_MAD_OK) {
		own_failed(pe, why_of(r, &pe->mad));
		return;
	}
	if (mad_decode_port_info(r->data, &pi) < 0) {
		pe->mad.bad_answer++;
		own_failed(pe, WHY_OUT_OF_RANGE);
		return;
	}
	(void)port_apply_info(&pe->p, &pi);
	pe->p.read_at = loop_now(m->loop);
	if (linked != has_link(pe) || pe->p.dirty || pi.lid != lid)
		pe->mad.next_remote = loop_now(m->loop);
	if (!has_link(pe))
		(void)port_apply_remote(&pe->p, NULL, NULL, NULL, WHY_LINK_DOWN);
	port_settle(m, pe, SOURCE_MAD);
}

static void ask_vlarb(struct port_entry *pe, unsigned block)
{
	pe->mad.vlarb_block = (uint8_t)block;
	ask(pe, ASK_VLARB, MAD_ATTR_VLARB, block << 16 | pe->p.num);
}

static void ask_tables(struct port_entry *pe)
{
	const struct node_info *ni = &pe->p.local_node.info;
	const struct port_info *pi = &pe->p.local_physp.info;

	pe->mad.pkey_block = 0;
	ask(pe, ASK_PKEYS, MAD_ATTR_PKEY_TABLE, 0);
	ask(pe, ASK_SLVL, MAD_ATTR_SLVL, ni->node_type == NODE_SWITCH ? 0 : pe->p.num);
	if (!pe->p.local_physp.info_full &&
	    physp_state(&pe->p.local_physp) != IB_DOWN) {
		/* How large the tables are is in PortInfo, which is on its way. */
		pe->mad.next_slow = mono_add(loop_now(pe->device->m->loop),
					     pe->device->m->config->poll);
		return;
	}
	/* A port with one data VL has nothing to arbitrate. */
	if (pi->vl_arb_low_cap || pi->vl_arb_high_cap)
		ask_vlarb(pe, pi->vl_arb_low_cap ? 1 : 3);
	else
		pe->p.vlarb_why = WHY_NOT_SUPPORTED;
}

static void on_node(struct port_entry *pe, const struct mad_done *r)
{
	struct device *d = pe->device;
	struct node_info ni;

	if (r->status != WM_MAD_OK || mad_decode_node_info(r->data, &ni) < 0)
		return;
	pe->p.local_node.info = ni;
	pe->mad.pkey_cap = MIN(ni.partition_cap, PORT_PKEYS_MAX);
	ask_tables(pe);
	if (d->has_verbs_facts)
		return;
	(void)port_set_u64(&pe->p, PF_PORT_GUID, ni.port_guid);
	(void)field_set_text(&device_table, &d->facts, DF_NODE_TYPE,
			     node_type_name(ni.node_type));
	(void)field_set_u64(&device_table, &d->facts, DF_NODE_GUID, ni.node_guid);
	(void)field_set_u64(&device_table, &d->facts, DF_SYS_IMAGE_GUID, ni.sys_guid);
	(void)field_set_u64(&device_table, &d->facts, DF_NUM_PORTS, ni.num_ports);
	(void)field_set_u64(&device_table, &d->facts, DF_VENDOR_ID, ni.vendor_id);
	(void)field_set_u64(&device_table, &d->facts, DF_PART_ID, ni.device_id);
	(void)field_set_u64(&device_table, &d->facts, DF_HW_VER, ni.revision);
}

static void on_desc(struct port_entry *pe, const struct mad_done *r)
{
	char desc[65];

	if (r->status != WM_MAD_OK)
		return;
	mad_decode_node_desc(r->data, desc);
	(void)field_set_text(&device_table, &pe->device->facts, DF_NODE_DESC, desc);
}

static void on_pkeys(struct port_entry *pe, const struct mad_done *r)
{
	struct mad_poll *mp = &pe->mad;
	int n = mp->pkey_cap;

	if (r->status != WM_MAD_OK) {
		if (!pe->device->has_verbs_facts)
			(void)port_set_pkeys(&pe->p, NULL, 0, why_of(r, mp));
		return;
	}
	mad_decode_pkeys(r->data, &mp->pkeys[mp->pkey_block * 32]);
	mp->pkey_block++;
	if (mp->pkey_block * 32 < n) {
		ask(pe, ASK_PKEYS, MAD_ATTR_PKEY_TABLE, mp->pkey_block);
		return;
	}
	mp->pkey_block = 0;
	n = port_pkeys_used(mp->pkeys, n);
	if (!pe->device->has_verbs_facts &&
	    port_set_pkeys(&pe->p, mp->pkeys, n, WHY_NONE))
		port_settle(pe->device->m, pe, SOURCE_MAD);
}

static void on_slvl(struct port_entry *pe, const struct mad_done *r)
{
	struct slvl t;

	pe->p.sl2vl_why = r->status == WM_MAD_OK ? WHY_NONE : why_of(r, &pe->mad);
	if (r->status != WM_MAD_OK)
		return;
	mad_decode_slvl(r->data, &t);
	if (physp_set_slvl(&pe->p.local_physp, 0, &t) < 0)
		pe->p.sl2vl_why = WHY_OUT_OF_RANGE;
}

/* Blocks 1 and 2 are the low priority table, 3 and 4 the high one; the second of each
 * is there only if the table has more than 32 entries. */
static unsigned vlarb_next(const struct port_info *pi, unsigned block)
{
	if (block < 2 && pi->vl_arb_low_cap > IB_VLARB_EACH)
		return 2;
	if (block < 3 && pi->vl_arb_high_cap)
		return 3;
	return block == 3 && pi->vl_arb_high_cap > IB_VLARB_EACH ? 4 : 0;
}

static void on_vlarb(struct port_entry *pe, const struct mad_done *r, unsigned block)
{
	struct vlarb_block b;
	unsigned next = vlarb_next(&pe->p.local_physp.info, block);

	if (r->status != WM_MAD_OK) {
		pe->p.vlarb_why = why_of(r, &pe->mad);
		return;
	}
	mad_decode_vlarb(r->data, &b);
	if (physp_set_vlarb(&pe->p.local_physp, block, &b) < 0)
		pe->p.vlarb_why = WHY_OUT_OF_RANGE;
	else if (next)
		ask_vlarb(pe, next);
	else
		pe->p.vlarb_why = WHY_NONE; /* the tables are whole */
}

/* ---- across the wire ---- */

static void remote_failed(struct port_entry *pe, enum unavailable why)
{
	struct manager *m = pe->device->m;
	struct mad_poll *mp = &pe->mad;

	mp->out[ASK_REMOTE_NODE] = mp->out[ASK_REMOTE_DESC] = mp->out[ASK_REMOTE_INFO] =
		0;
	mp->remote_failures++;
	/* An unreachable far end is asked again soon at first, then as seldom as
	 * others. */
	mp->next_remote = mono_add(loop_now(m->loop),
				   MIN((int64_t)mp->remote_failures * m->config->poll,
				       m->config->remote_poll));
	(void)port_apply_remote(&pe->p, NULL, NULL, NULL,
				has_link(pe) ? why : WHY_LINK_DOWN);
	port_settle(m, pe, SOURCE_MAD);
}

static void remote_complete(struct port_entry *pe)
{
	struct manager *m = pe->device->m;
	struct mad_poll *mp = &pe->mad;

	if (!mp->got_desc || !mp->got_pi)
		return;
	mp->remote_failures = 0;
	mp->next_remote = mono_add(loop_now(m->loop), m->config->remote_poll);
	pe->p.remote_read_at = loop_now(m->loop);
	(void)port_apply_remote(&pe->p, &mp->remote_ni, mp->remote_desc, &mp->remote_pi,
				WHY_NONE);
	port_settle(m, pe, SOURCE_MAD);
}

/* Of a switch CapabilityMask is in port 0, which the sweep has read. */
static bool remote_is_extended(const struct port_entry *pe)
{
	const struct sweeps *s = pe->device->m->sweeps;
	const struct mad_poll *mp = &pe->mad;
	const struct ib_node *n = s && s->subnet
		? subnet_node_by_guid(s->subnet, mp->remote_ni.node_guid)
		: NULL;
	const struct physp *main = n ? node_main_port(n) : NULL;
	uint32_t caps = mp->remote_pi.cap_mask;

	if (main && main->info_full)
		caps |= main->info.cap_mask;
	return caps & IB_CAP_EXTENDED_SPEEDS;
}

static void ask_remote_info(struct port_entry *pe)
{
	struct mad_poll *mp = &pe->mad;
	const struct node_info *ni = &mp->remote_ni;
	uint32_t port = ni->node_type == NODE_SWITCH ? ni->local_port : 0;

	mp->remote_extended = !mp->remote_plain && remote_is_extended(pe);
	ask(pe, ASK_REMOTE_INFO, MAD_ATTR_PORT_INFO,
	    port | (mp->remote_extended ? IB_PORT_INFO_EXTENDED : 0));
}

static void on_remote_node(struct port_entry *pe, const struct mad_done *r)
{
	struct mad_poll *mp = &pe->mad;
	uint64_t before = mp->remote_ni.node_guid;

	if (r->status != WM_MAD_OK) {
		remote_failed(pe, why_of(r, mp));
		return;
	}
	if (mad_decode_node_info(r->data, &mp->remote_ni) < 0) {
		mp->bad_answer++;
		remote_failed(pe, WHY_OUT_OF_RANGE);
		return;
	}
	if (mp->remote_ni.node_guid != before) {
		mp->remote_pi = (struct port_info){0};
		mp->remote_plain = false;
	}
	mp->got_desc = mp->got_pi = false;
	ask(pe, ASK_REMOTE_DESC, MAD_ATTR_NODE_DESC, 0);
	ask_remote_info(pe);
}

static void on_remote_rest(struct port_entry *pe, const struct mad_done *r,
			   enum mad_ask what)
{
	struct mad_poll *mp = &pe->mad;

	if (what == ASK_REMOTE_INFO && is_refused(r, mp->remote_extended)) {
		mp->remote_plain = true;
		ask_remote_info(pe);
		return;
	}
	if (r->status != WM_MAD_OK) {
		remote_failed(pe, why_of(r, mp));
		return;
	}
	if (what == ASK_REMOTE_DESC) {
		mad_decode_node_desc(r->data, mp->remote_desc);
		mp->got_desc = true;
	} else {
		if (mad_decode_port_info(r->data, &mp->remote_pi) < 0) {
			mp->bad_answer++;
			remote_failed(pe, WHY_OUT_OF_RANGE);
			return;
		}
		mp->got_pi = true;
	}
	remote_complete(pe);
}

static void on_answer(void *user, const struct mad_done *r)
{
	struct port_entry *pe = user;
	enum mad_ask what = (enum mad_ask)(r->tag & 0xff);

	if (!pe->mad.out[what] || pe->mad.out[what] != r->tag >> 8)
		return;
	pe->mad.out[what] = 0;
	switch (what) {
	case ASK_OWN:
		on_own(pe, r);
		break;
	case ASK_NODE:
		on_node(pe, r);
		break;
	case ASK_DESC:
		on_desc(pe, r);
		break;
	case ASK_PKEYS:
		on_pkeys(pe, r);
		break;
	case ASK_SLVL:
		on_slvl(pe, r);
		break;
	case ASK_VLARB:
		on_vlarb(pe, r, pe->mad.vlarb_block);
		break;
	case ASK_REMOTE_NODE:
		on_remote_node(pe, r);
		break;
	default:
		on_remote_rest(pe, r, what);
		break;
	}
}

/* ---- when ---- */

void port_mads_init(struct port_entry *pe)
{
	memset(&pe->mad, 0, sizeof(pe->mad));
	pe->p.sl2vl_why = pe->p.vlarb_why = WHY_NOT_READ;
}

/* What is out is answered all the same, as failed: by their numbers those answers are
 * told from those that are waited for. */
void port_mads_reset(struct port_entry *pe)
{
	uint32_t number = pe->mad.next_number;

	port_mads_init(pe);
	pe->mad.next_number = number;
}

static bool can_poll(const struct port_entry *pe)
{
	const struct worker *w = pe->device->mad;

	return w && w->saw_hello && pe->mad.has_smi;
}

static bool remote_out(const struct mad_poll *mp)
{
	return mp->out[ASK_REMOTE_NODE] || mp->out[ASK_REMOTE_DESC] ||
	       mp->out[ASK_REMOTE_INFO];
}

static bool is_time(struct mono at, struct mono now)
{
	return mono_due(at, now) || !mono_is_set(at);
}

void port_mads_poll(struct port_entry *pe, struct mono now)
{
	const struct config *c = pe->device->m->config;
	struct mad_poll *mp = &pe->mad;

	if (!can_poll(pe))
		return;
	if (!mp->out[ASK_OWN] && is_time(mp->next_own, now)) {
		ask_own(pe);
		mp->next_own = mono_add(now, c->poll);
	}
	if (is_time(mp->next_slow, now)) {
		ask(pe, ASK_NODE, MAD_ATTR_NODE_INFO, 0);
		ask(pe, ASK_DESC, MAD_ATTR_NODE_DESC, 0);
		mp->next_slow = mono_add(now, SLOW_POLL_NS);
	}
	if (!remote_out(mp) && c->sweep != SWEEP_MODE_OFF && has_link(pe) &&
	    is_time(mp->next_remote, now)) {
		ask(pe, ASK_REMOTE_NODE, MAD_ATTR_NODE_INFO, 0);
		mp->next_remote = mono_add(now, c->remote_poll);
	}
}

struct mono port_mads_deadline(const struct port_entry *pe)
{
	const struct mad_poll *mp = &pe->mad;
	struct mono first = MONO_NEVER;

	if (!can_poll(pe))
		return first;
	if (!mp->out[ASK_OWN])
		first = mp->next_own;
	first = mono_first(first, mp->next_slow);
	if (has_link(pe) && !remote_out(mp) &&
	    pe->device->m->config->sweep != SWEEP_MODE_OFF)
		first = mono_first(first, mp->next_remote);
	return first;
}
