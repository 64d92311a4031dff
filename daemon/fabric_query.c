/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One port of the fabric, asked now: a list of questions that is worked off with a few
 * on the way, into objects of its own (the fabric's have one writer, the sweep). What
 * is not there after 5 s is said to be missing. Everybody may ask: as many MADs a
 * second as a sweep may send, and no more.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

#include "render_subnet.h"
#include "sweeps.h"

#define PATIENCE_NS	(5 * NSEC_PER_SEC)
#define ON_THE_WAY	8
#define PKEY_BLOCKS_MAX 64
#define PMA_DATA	192
#define ALLOWED_AT_ONCE 300 /* MADs: one port has at most about as many */

enum part { PART_PORT, PART_PKEYS, PART_SL2VL, PART_VLARB, PART_COUNTERS, PART__MAX };
static const char *const part_names[] = {"port", "pkeys", "sl2vl", "vlarb", "counters"};

struct question {
	enum part part;
	bool pma, answered;
	uint16_t attr;
	uint32_t mod;
};

struct fabric_query {
	struct fabric_query *next;
	struct sweeps *s;
	struct api_ticket ticket;
	char name[128];
	uint8_t num;
	struct ib_node node; /* a copy, its slots owned */
	uint8_t hops, path[IB_PATH_LEN];
	uint16_t lid;		    /* of the port's counters */
	struct question *questions; /* owned */
	int n, size, at, out;
	enum unavailable why[PART__MAX];
	struct class_port_info cpi;
	struct counter_reading counters;
	struct loop_source *deadline;
};

static void pump(struct fabric_query *q);

/* ---- life ---- */

static struct physp *port_of(struct fabric_query *q)
{
	return &q->node.slots[q->num];
}

static void query_free(struct fabric_query *q)
{
	struct fabric_query **p = &q->s->queries;

	while (*p != q)
		p = &(*p)->next;
	*p = q->next;
	mads_forget(q->s->m->mads, q);
	loop_source_free(q->deadline);
	for (unsigned i = 0; i <= q->node.info.num_ports; i++)
		physp_destroy(&q->node.slots[i]);
	free(q->node.slots);
	free(q->questions);
	free(q);
}

static void refuse(const struct api_ticket *t, const char *error, json_t *parameters)
{
	t->answer(t->server, t->id, error, parameters, false);
}

static void unavailable(const struct api_ticket *t, const char *what, const char *why)
{
	refuse(t, "io.fabd.Unavailable",
	       json_pack("{s:s, s:s}", "what", what, "why", why));
}

/* ---- the end ---- */

/* The far end is known from the sweep, if the port is still there. */
static struct physp *remote_of(const struct fabric_query *q)
{
	const struct ib_node *n =
		q->s->subnet ? subnet_node_by_guid(q->s->subnet, q->node.info.node_guid)
			     : NULL;
	const struct physp *p = n ? node_physp(n, q->num) : NULL;

	return p ? physp_remote(p) : NULL;
}

static void finish(struct fabric_query *q)
{
	struct physp *p = port_of(q);
	json_t *o, *missing;

	if (q->why[PART_PORT]) {
		unavailable(&q->ticket, q->name,
			    enum_name(&unavailable_names, (int)q->why[PART_PORT]));
		query_free(q);
		return;
	}
	p->remote = remote_of(q); /* to be looked at: it is not linked to the copy */
	o = render_fabric_port(p, q->why[PART_COUNTERS] ? NULL : &q->counters);
	p->remote = NULL;
	missing = json_object_get(o, "unavailable");
	for (int i = PART_PKEYS; i < PART__MAX; i++)
		if (q->why[i]) {
			json_object_set_new(o, part_names[i], json_null());
			json_object_set_new(missing, part_names[i],
					    json_string(enum_name(&unavailable_names,
								  (int)q->why[i])));
		}
	q->ticket.answer(q->ticket.server, q->ticket.id, NULL,
			 json_pack("{s:o}", "port", o), false);
	query_free(q);
}

static void on_deadline(void *user, struct mono now)
{
	struct fabric_query *q = user;

	(void)now;
	for (int i = 0; i < q->n; i++)
		if (!q->questions[i].answered && !q->why[q->questions[i].part])
			q->why[q->questions[i].part] = WHY_TIMEOUT;
	finish(q);
}

/* ---- questions and answers ---- */

static void add(struct fabric_query *q, enum part part, bool pma, uint16_t attr,
		uint32_t mod)
{
	if (q->n == q->size) {
		q->size = MAX(2 * q->size, 64);
		q->questions =
			xrealloc(q->questions, (size_t)q->size, sizeof(*q->questions));
	}
	q->questions[q->n++] =
		(struct question){.part = part, .pma = pma, .attr = attr, .mod = mod};
}

/* With what PortInfo and NodeInfo have said by now: how large the tables are. */
static void add_tables(struct fabric_query *q)
{
	const struct port_info *pi = &port_of(q)->info;
	bool sw = node_is_switch(&q->node);
	unsigned blocks =
		(physp_pkey_capacity(port_of(q)) + IB_PKEYS_EACH - 1) / IB_PKEYS_EACH;
	uint32_t port_mod = sw ? (uint32_t)q->num << 16 : 0;

	if (!blocks)
		q->why[PART_PKEYS] = WHY_NOT_SUPPORTED;
	for (unsigned b = 0; b < MIN(blocks, PKEY_BLOCKS_MAX); b++)
		add(q, PART_PKEYS, false, MAD_ATTR_PKEY_TABLE, port_mod | b);
	for (unsigned in = 0; in <= (sw ? q->node.info.num_ports : 0u); in++)
		add(q, PART_SL2VL, false, MAD_ATTR_SLVL,
		    sw ? in << 8 | q->num : q->num);
	if (!pi->vl_arb_low_cap && !pi->vl_arb_high_cap)
		q->why[PART_VLARB] =
			port_of(q)->info_full ? WHY_NOT_SUPPORTED : WHY_LINK_DOWN;
	for (unsigned b = 1; b <= 4; b++) {
		unsigned cap = b <= 2 ? pi->vl_arb_low_cap : pi->vl_arb_high_cap;

		if (cap > (b % 2 ? 0u : (unsigned)IB_VLARB_EACH))
			add(q, PART_VLARB, false, MAD_ATTR_VLARB, b << 16 | q->num);
	}
}

static void add_counters(struct fabric_query *q)
{
	uint16_t widths = IB_PMA_CAP_EXT_WIDTH | IB_PMA_CAP_EXT_NO_IETF;

	add(q, PART_COUNTERS, true, MAD_ATTR_PORT_COUNTERS, 0);
	if (q->cpi.cap_mask & widths)
		add(q, PART_COUNTERS, true, MAD_ATTR_PORT_COUNTERS_EXT, 0);
}

static enum unavailable why_of(const struct mad_done *r)
{
	switch (r->status) {
	case WM_MAD_OK:
		return WHY_NONE;
	case WM_MAD_TIMEOUT:
		return WHY_TIMEOUT;
	case WM_MAD_BAD_STATUS:
		return WHY_BAD_STATUS;
	case WM_MAD_NO_PERMISSION:
		return WHY_NO_PERMISSION;
	case WM_MAD_NO_PORT:
		return WHY_NO_UMAD;
	case WM_MAD_SEND_FAILED:
		return WHY_NO_WORKER;
	default:
		return WHY_BAD_ANSWER;
	}
}

static int take_smp(struct fabric_query *q, const struct question *a,
		    const uint8_t *data)
{
	struct physp *p = port_of(q);
	struct vlarb_block vlarb;
	struct pkey_block pkeys;
	struct node_info ni;
	struct port_info pi;
	struct slvl slvl;

	switch (a->attr) {
	case MAD_ATTR_NODE_INFO:
		/* Another node may have come to where this one was. */
		return mad_decode_node_info(data, &ni) < 0 ||
				       ni.node_guid != q->node.info.node_guid
			       ? -EBADMSG
			       : 0;
	case MAD_ATTR_PORT_INFO:
		if (mad_decode_port_info(data, &pi) < 0)
			return -EBADMSG;
		physp_set_info(p, &pi);
		if (a->mod == q->num || !node_is_switch(&q->node))
			add_tables(q);
		return 0;
	case MAD_ATTR_PKEY_TABLE:
		mad_decode_pkeys(data, pkeys.pkey);
		return physp_set_pkeys(p, a->mod & 0xffff, &pkeys);
	case MAD_ATTR_SLVL:
		mad_decode_slvl(data, &slvl);
		return physp_set_slvl(p, node_is_switch(&q->node) ? a->mod >> 8 : 0,
				      &slvl);
	default:
		mad_decode_vlarb(data, &vlarb);
		return physp_set_vlarb(p, a->mod >> 16, &vlarb);
	}
}

static int take_pma(struct fabric_query *q, const struct question *a,
		    const uint8_t *data)
{
	if (a->attr == MAD_ATTR_CLASS_PORT_INFO) {
		mad_decode_class_port_info(data, &q->cpi);
		add_counters(q);
		return 0;
	}
	if (a->attr == MAD_ATTR_PORT_COUNTERS)
		return mad_decode_port_counters(data, q->num, &q->cpi, &q->counters);
	return mad_decode_port_counters_ext(data, q->num, &q->cpi, &q->counters);
}

static void on_answer(void *user, const struct mad_done *r)
{
	struct fabric_query *q = user;
	struct question a = q->questions[r->tag];
	enum unavailable why = why_of(r);
	size_t least = a.pma ? PMA_DATA : MAD_DATA_LEN;

	q->out--;
	q->questions[r->tag].answered = true;
	if (!why && r->length < least)
		why = WHY_BAD_ANSWER;
	if (!why && (a.pma ? take_pma(q, &a, r->data) : take_smp(q, &a, r->data)) < 0)
		why = WHY_BAD_ANSWER;
	if (why && !q->why[a.part])
		q->why[a.part] = why;
	pump(q);
}

static int ask_smp(struct fabric_query *q, struct worker *w, uint64_t tag)
{
	const struct question *a = &q->questions[tag];
	const struct config *c = q->s->m->config;
	const struct mad_smp smp = {
		.tag = tag,
		.attr = a->attr,
		.mod = a->mod,
		.timeout_ms = (uint16_t)(c->mad_timeout / NSEC_PER_MSEC),
		.retries = (uint8_t)c->mad_retries,
		.hops = q->hops,
		.path = q->path,
	};

	return mads_get(q->s->m->mads, w, q->s->device, q->s->port, &smp, on_answer, q);
}

static int ask_pma(struct fabric_query *q, struct worker *w, uint64_t tag)
{
	const struct question *a = &q->questions[tag];
	const struct config *c = q->s->m->config;
	struct wm_mad_send msg = {
		.port = q->s->port,
		.kind = WM_KIND_PMA,
		.method = MAD_GET,
		.attr = a->attr,
		.dlid = q->lid,
		.retries = (uint8_t)c->mad_retries,
		.timeout_ms = (int32_t)(c->mad_timeout / NSEC_PER_MSEC),
		.length = PMA_DATA,
	};

	(void)str_copy(msg.device, sizeof(msg.device), q->s->device);
	if (a->attr != MAD_ATTR_CLASS_PORT_INFO)
		mad_encode_counters_request(q->num, msg.data);
	return mads_send(q->s->m->mads, w, &msg, tag, on_answer, q);
}

/* Each MAD takes its share of a second, which may have gone by before. */
static void pay(struct sweeps *s)
{
	int64_t now = loop_now(s->m->loop).ns, each;

	if (!s->m->config->sweep_mads)
		return;
	each = NSEC_PER_SEC / (int64_t)s->m->config->sweep_mads;
	s->queries_paid = MAX(s->queries_paid, now - ALLOWED_AT_ONCE * each) + each;
}

static bool is_too_much(const struct sweeps *s)
{
	int count = 0;

	for (const struct fabric_query *q = s->queries; q; q = q->next)
		count++;
	return count >= FABRIC_QUERIES_MAX ||
	       (s->m->config->sweep_mads && s->queries_paid > loop_now(s->m->loop).ns);
}

static void pump(struct fabric_query *q)
{
	const struct port_entry *pe = sweeps_port(q->s);
	struct worker *w = pe ? pe->device->mad : NULL;

	while (q->at < q->n && q->out < ON_THE_WAY) {
		uint64_t tag = (uint64_t)q->at++;
		const struct question *a = &q->questions[tag];

		pay(q->s);
		if ((a->pma ? ask_pma(q, w, tag) : ask_smp(q, w, tag)) < 0)
			q->why[a->part] = WHY_NO_WORKER;
		else
			q->out++;
	}
	if (!q->out && q->at == q->n)
		finish(q);
}

/* ---- which port ---- */

/* NODE/PORT, where NODE may hold a slash itself. */
static bool split(const char *name, char *node, size_t size, unsigned *ret_port)
{
	const char *slash = strrchr(name, '/');
	char *end;
	unsigned long port;

	if (!slash || !isdigit((unsigned char)slash[1]) ||
	    (size_t)(slash - name) >= size)
		return false;
	port = strtoul(slash + 1, &end, 10);
	if (*end || port > 254)
		return false;
	memcpy(node, name, (size_t)(slash - name));
	node[slash - name] = '\0';
	*ret_port = (unsigned)port;
	return true;
}

/* A copy of what is known of the node and the two ports that matter. */
static struct fabric_query *query_new(struct sweeps *s, const struct ib_node *n,
				      const struct physp *p)
{
	struct fabric_query *q = xcalloc(1, sizeof(*q));
	const uint8_t *path = physp_path(p, &q->hops);
	const struct physp *zero = node_is_switch(n) ? node_physp(n, 0) : NULL;

	q->s = s;
	q->num = p->num;
	q->lid = physp_base_lid(p);
	memcpy(q->path, path, (size_t)q->hops + 1);
	q->node = *n;
	q->node.sweep = NULL;
	q->node.next = NULL;
	q->node.slots = xcalloc((size_t)n->info.num_ports + 1, sizeof(struct physp));
	if (zero) {
		physp_init(&q->node.slots[0], zero->guid, 0, &q->node, q->hops,
			   q->path);
		physp_set_info(&q->node.slots[0], &zero->info);
	}
	if (!zero || p->num)
		physp_init(port_of(q), p->guid, p->num, &q->node, q->hops, q->path);
	counter_reading_init(&q->counters, WHY_NOT_SUPPORTED);
	q->next = s->queries;
	s->queries = q;
	return q;
}

static void query_begin(struct fabric_query *q)
{
	struct mono now = loop_now(q->s->m->loop);

	q->deadline = loop_timer(q->s->m->loop, on_deadline, q);
	loop_timer_at(q->deadline, mono_add(now, PATIENCE_NS));
	add(q, PART_PORT, false, MAD_ATTR_NODE_INFO, 0);
	add(q, PART_PORT, false, MAD_ATTR_PORT_INFO,
	    node_is_switch(&q->node) ? q->num : 0);
	if (q->lid)
		add(q, PART_COUNTERS, true, MAD_ATTR_CLASS_PORT_INFO, 0);
	else
		q->why[PART_COUNTERS] = WHY_LINK_DOWN;
	pump(q);
}

void fabric_query(struct sweeps *s, const char *name, const struct api_ticket *t)
{
	char node_name[96], why[64];
	struct ib_node *n;
	struct physp *p;
	struct fabric_query *q;
	unsigned port;
	json_t *problem;

	if (sweeps_why_none(s) || is_too_much(s)) {
		unavailable(t, name,
			    sweeps_why_none(s) ? sweeps_why_none(s)
					       : "too many ports are asked already");
		return;
	}
	if (!split(name, node_name, sizeof(node_name), &port)) {
		refuse(t, "io.fabd.NoSuchNode",
		       json_pack("{s:s, s:s}", "node", name, "why",
				 "NODE/PORT is wanted"));
		return;
	}
	problem = fabric_find(s, node_name, &n);
	p = problem ? NULL : node_physp(n, port);
	if (!p) {
		(void)snprintf(why, sizeof(why), "it has no port %u that is known",
			       port);
		refuse(t, "io.fabd.NoSuchNode",
		       problem ? problem
			       : json_pack("{s:s, s:s}", "node", node_name, "why",
					   why));
		return;
	}
	q = query_new(s, n, p);
	q->ticket = *t;
	(void)str_copy(q->name, sizeof(q->name), name);
	query_begin(q);
}

void fabric_query_dropped(struct sweeps *s, uint64_t ticket)
{
	for (struct fabric_query *q = s->queries; q; q = q->next)
		if (q->ticket.id == ticket) {
			query_free(q);
			return;
		}
}

void fabric_queries_end(struct sweeps *s, const char *why)
{
	while (s->queries) {
		unavailable(&s->queries->ticket, s->queries->name, why);
		query_free(s->queries);
	}
}
