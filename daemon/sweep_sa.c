/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the subnet administration (SA) knows: who is subnet manager, who is in which
 * multicast group; and the subscription to notices, which is the one Set that is ever
 * sent, and only with SweepNotices=yes.
 */
#include "sweeps.h"

#include <stdio.h>
#include <stdlib.h>

#define SA_AGAIN_NS   (600 * NSEC_PER_SEC)
#define SA_GAP_NS     (2 * NSEC_PER_SEC)
#define SA_TIMEOUT_MS 1000
#define SA_RETRIES    2
#define SA_ONE_MAD    200
#define INFORM_AGAIN_NS                                                                \
	(600 * NSEC_PER_SEC)		/* a manager that forgot it does not say so */
#define INFORM_RETRY_NS	   NSEC_PER_SEC /* doubles */
#define INFORM_RETRIES_MAX 6
#define ANY_TRAP	   0xffff

static const uint16_t tables[SA__MAX] = {
	[SA_SMS] = MAD_ATTR_SM_RECORD,
	[SA_MEMBERS] = MAD_ATTR_MCMEMBER_RECORD,
};

static void on_table(void *user, const struct mad_done *r);

/* ---- asking ---- */

static uint32_t sm_lid(const struct port_entry *pe)
{
	return field_why(&port_table, &pe->p.facts, PF_SM_LID) ? 0 : pe->p.facts.sm_lid;
}

static int sa_send(struct sweeps *s, struct wm_mad_send *msg, uint64_t tag,
		   mad_done_fn *done)
{
	const struct port_entry *pe = sweeps_port(s);

	if (!pe)
		return -ENOTCONN;
	(void)str_copy(msg->device, sizeof(msg->device), s->device);
	msg->port = s->port;
	msg->kind = WM_KIND_SA;
	msg->dlid = (uint16_t)sm_lid(pe); /* MADs tell of a change before sysfs does */
	msg->retries = SA_RETRIES;
	msg->timeout_ms = SA_TIMEOUT_MS;
	if (!field_why(&port_table, &pe->p.facts, PF_SM_SL))
		msg->sl = (uint8_t)(pe->p.facts.sm_sl & 15);
	return mads_send(s->m->mads, pe->device->mad, msg, tag, done, s);
}

void sa_read(struct sweeps *s)
{
	const struct port_entry *pe = sweeps_port(s);

	s->sa.asked_at = loop_now(s->m->loop);
	s->sa.asked_of = pe ? sm_lid(pe) : 0;
	for (int t = 0; t < SA__MAX; t++) {
		struct wm_mad_send msg = {.method = MAD_GET_TABLE,
					  .attr = tables[t],
					  .length = SA_ONE_MAD};

		if (s->sa.out[t])
			continue;
		s->sa.out[t] = sa_send(s, &msg, (uint64_t)t, on_table) == 0;
		if (!s->sa.out[t])
			(void)str_copy(s->sa.why[t], sizeof(s->sa.why[t]), "no_worker");
	}
}

/* ---- answers ---- */

static void table_failed(struct sa_facts *sa, enum sa_table t, const struct mad_done *r)
{
	char *why = sa->why[t], text[48];

	if (r->status == WM_MAD_BAD_STATUS)
		(void)snprintf(why, sizeof(sa->why[t]), "bad_status: %s",
			       mad_status_text(r->mad_status, text));
	else
		(void)str_copy(why, sizeof(sa->why[t]),
			       enum_name(&wm_mad_status_names, (int)r->status));
}

/* Records of the table: how many are whole. A table that was cut at the end of a MAD is
 * told by the part of a record at its end. */
static int whole_records(struct sa_facts *sa, enum sa_table t, const struct mad_done *r)
{
	size_t each = r->attr_offset;

	sa->why[t][0] = '\0';
	if (!r->length)
		return 0;
	if (!each) {
		(void)str_copy(sa->why[t], sizeof(sa->why[t]),
			       "bad_answer: records of no length");
		return 0;
	}
	if (r->length % each)
		(void)snprintf(
			sa->why[t], sizeof(sa->why[t]),
			"cut after %zu records: the table is longer than one MAD",
			r->length / each);
	return (int)(r->length / each);
}

static void take_sms(struct sa_facts *sa, const struct mad_done *r)
{
	int n = whole_records(sa, SA_SMS, r);

	free(sa->sms);
	sa->sms = xcalloc((size_t)n + 1, sizeof(*sa->sms));
	sa->n_sms = 0;
	for (int i = 0; i < n; i++)
		if (mad_decode_sm_record(r->data + (size_t)i * r->attr_offset,
					 r->attr_offset, &sa->sms[sa->n_sms]) == 0 &&
		    sa->sms[sa->n_sms].lid)
			sa->n_sms++;
}

static void take_members(struct sa_facts *sa, const struct mad_done *r)
{
	int n = whole_records(sa, SA_MEMBERS, r);

	free(sa->members);
	sa->members = xcalloc((size_t)n + 1, sizeof(*sa->members));
	sa->n_members = 0;
	for (int i = 0; i < n; i++)
		if (mad_decode_mcmember_record(r->data + (size_t)i * r->attr_offset,
					       r->attr_offset,
					       &sa->members[sa->n_members]) == 0)
			sa->n_members++;
}

/* Which groups a port is in, in the port objects too. */
static void apply_members(struct sweeps *s)
{
	if (!s->subnet)
		return;
	for (struct ib_node *n = subnet_next(s->subnet, NULL); n;
	     n = subnet_next(s->subnet, n))
		for (unsigned i = 0; i <= n->info.num_ports; i++) {
			const struct physp *p = node_physp(n, i);
			struct ib_port *port =
				p ? subnet_port_by_guid(s->subnet, physp_guid(p))
				  : NULL;

			if (port && port->n_mlids)
				ib_port_remove_all_mlids(port);
			if (node_is_switch(n))
				break; /* its ports have one GUID */
		}
	for (int i = 0; i < s->sa.n_members; i++) {
		const struct mcmember_record *mc = &s->sa.members[i];
		struct ib_port *port =
			subnet_port_by_guid(s->subnet, be64_get(mc->port_gid + 8));

		if (port)
			(void)ib_port_add_mlid(port, mc->mlid);
	}
	s->edition++;
}

static void on_table(void *user, const struct mad_done *r)
{
	struct sweeps *s = user;
	enum sa_table t = (enum sa_table)r->tag;

	s->sa.out[t] = false;
	if (r->status != WM_MAD_OK) {
		table_failed(&s->sa, t, r);
		return;
	}
	s->sa.read_at = loop_now(s->m->loop);
	if (t == SA_SMS) {
		take_sms(&s->sa, r);
		return;
	}
	take_members(&s->sa, r);
	apply_members(s);
}

/* ---- the subscription ---- */

static void on_informed(void *user, const struct mad_done *r)
{
	struct sweeps *s = user;
	struct mono now = loop_now(s->m->loop);
	static struct log_limit limit;

	s->inform_out = false;
	s->subscribed = r->status == WM_MAD_OK && s->m->config->sweep_notices;
	if (r->status == WM_MAD_OK)
		s->inform_failures = 0;
	else if (s->inform_failures < INFORM_RETRIES_MAX)
		s->inform_failures++;
	s->inform_next = mono_add(
		now, s->inform_failures ? INFORM_RETRY_NS << (s->inform_failures - 1)
					: INFORM_AGAIN_NS);
	if (r->status != WM_MAD_OK)
		log_limited(&limit, LOG_WARNING,
			    "fabric: no subscription to notices: %s%s%s",
			    enum_name(&wm_mad_status_names, (int)r->status),
			    r->error ? ", " : "", r->error ? strerror(r->error) : "");
}

static void inform(struct sweeps *s, const struct port_entry *pe, bool subscribe)
{
	struct wm_mad_send msg = {
		.method = MAD_SET, .attr = MAD_ATTR_INFORM_INFO, .length = SA_ONE_MAD};

	mad_encode_inform_info(subscribe, ANY_TRAP, msg.data);
	s->inform_out = sa_send(s, &msg, subscribe, on_informed) == 0;
	s->subscribed_sm = sm_lid(pe);
	s->subscribed_generation = pe->device->mad->generation;
}

/* A subscription belongs to a manager and to who asked: another one of either, and it
 * is made anew; and now and then for a manager that started afresh under its old LID.
 */
static void check_subscription(struct sweeps *s, struct mono now)
{
	const struct port_entry *pe = sweeps_port(s);
	bool wanted = s->m->config->sweep_notices, other;

	if (!pe || !pe->device->mad || !pe->device->mad->saw_hello || !sm_lid(pe) ||
	    s->inform_out)
		return;
	if (!wanted) {
		if (s->subscribed)
			inform(s, pe, false);
		return;
	}
	other = s->subscribed_sm != sm_lid(pe) ||
		s->subscribed_generation != pe->device->mad->generation;
	if (other || !mono_is_set(s->inform_next) || mono_due(s->inform_next, now))
		inform(s, pe, true);
}

/* Another manager may not know at once what the last one did. */
static bool sa_is_old(const struct sweeps *s, struct mono now)
{
	int64_t age = mono_sub(now, s->sa.asked_at);
	const struct port_entry *pe = sweeps_port(s);

	return age > SA_AGAIN_NS ||
	       (pe && sm_lid(pe) != s->sa.asked_of && age > SA_GAP_NS);
}

void sa_tick(struct sweeps *s, struct mono now)
{
	check_subscription(s, now);
	if (s->subnet && mono_is_set(s->sa.asked_at) && sa_is_old(s, now))
		sa_read(s);
}

void sa_forget(struct sweeps *s)
{
	free(s->sa.sms);
	free(s->sa.members);
	s->sa = (struct sa_facts){0};
	for (int t = 0; t < SA__MAX; t++)
		(void)str_copy(s->sa.why[t], sizeof(s->sa.why[t]), "not_read");
	s->subscribed = s->inform_out = false;
	s->subscribed_sm = s->subscribed_generation = 0;
	s->inform_next = MONO_NEVER;
}
