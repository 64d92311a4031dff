/* SPDX-License-Identifier: BSD-2-Clause */
/* The model, its answers, and the loop. */
#include "sim_fabric.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define GUID_BASE UINT64_C(0x0002c90300000000)

struct sim_event {
	struct heap_node at;
	struct sim_event *next;
	struct sweep_answer a;
	union sweep_data d;
	struct sim_node *target;
};

static struct sim_event *event_of(const struct heap_node *h)
{
	return container_of(h, struct sim_event, at);
}

/* ---- the model ---- */

struct sim *sim_new(uint64_t seed)
{
	struct sim *s = xcalloc(1, sizeof(*s));

	s->rnd = seed;
	s->now = (struct mono){NSEC_PER_SEC};
	s->hop_ns = 300;
	s->serve_ns = 10 * NSEC_PER_USEC;
	return s;
}

struct sim *sim_free(struct sim *s)
{
	struct heap_node *h;

	while ((h = heap_first(&s->events))) {
		heap_set(&s->events, h, MONO_NEVER);
		free(event_of(h));
	}
	for (struct sim_event *e = s->idle, *next; e; e = next) {
		next = e->next;
		free(e);
	}
	for (uint32_t i = 0; i < s->n; i++)
		free(s->nodes[i]);
	heap_done(&s->events);
	free(s->nodes);
	free(s);
	return NULL;
}

uint64_t sim_draw(struct sim *s)
{
	s->rnd = mix64(s->rnd);
	return s->rnd >> 8;
}

struct sim_node *sim_add(struct sim *s, enum node_type type, uint8_t n_ports)
{
	struct sim_node *m = xcalloc(1, sizeof(*m));

	assert(n_ports <= SIM_PORTS_MAX);
	if (s->n == s->size) {
		s->size = MAX(64, 2 * s->size);
		s->nodes = xrealloc(s->nodes, s->size, sizeof(struct sim_node *));
	}
	m->index = s->n;
	m->type = (uint8_t)type;
	m->n_ports = n_ports;
	m->guid = GUID_BASE + (uint64_t)s->n * 0x100;
	for (unsigned i = 0; i <= n_ports; i++) {
		m->ports[i].width = 2;
		m->ports[i].speed = 4;
	}
	(void)snprintf(m->desc, sizeof(m->desc), "%s%u",
		       type == NODE_SWITCH ? "sw" : "host", s->n);
	s->nodes[s->n++] = m;
	return m;
}

void sim_cable(struct sim_node *a, uint8_t i, struct sim_node *b, uint8_t j)
{
	assert(!a->ports[i].to && !b->ports[j].to);
	a->ports[i].to = b;
	a->ports[i].to_port = j;
	b->ports[j].to = a;
	b->ports[j].to_port = i;
}

void sim_uncable(struct sim_node *a, uint8_t i)
{
	struct sim_node *b = a->ports[i].to;

	if (!b)
		return;
	b->ports[a->ports[i].to_port].to = NULL;
	a->ports[i].to = NULL;
}

void sim_changed(struct sim_node *a, bool cleared)
{
	if (a->type == NODE_SWITCH)
		a->psc = !cleared;
}

void sim_lids(struct sim *s)
{
	uint16_t lid = 1;

	for (uint32_t n = 0; n < s->n; n++) {
		struct sim_node *m = s->nodes[n];

		if (m->type == NODE_SWITCH)
			m->ports[0].lid = lid++;
		for (unsigned i = 1; m->type != NODE_SWITCH && i <= m->n_ports; i++)
			m->ports[i].lid = lid++;
	}
}

void sim_forget(struct sim *s)
{
	s->asked = s->set_bit31 = s->bad_bit31 = 0;
	memset(s->by_attr, 0, sizeof(s->by_attr));
	s->hash = 0;
	s->out_worst = s->out;
	s->worst_per_target = 0;
	s->cpu_ns = 0;
}

/* ---- answers ---- */

static bool is_up(const struct sim_port *p)
{
	return p->to && !p->disabled && !p->to->ports[p->to_port].disabled;
}

void sim_port_info(const struct sim_node *m, unsigned port, struct port_info *ret)
{
	const struct sim_port *p = &m->ports[port];
	bool up = !port || is_up(p);

	*ret = (struct port_info){
		.gid_prefix = UINT64_C(0xfe80000000000000),
		.lid = p->lid,
		.sm_lid = 1,
		.cap_mask = m->type == NODE_SWITCH && port ? 0
			    : m->ext ? IB_CAP_SL_MAPPING | IB_CAP_EXTENDED_SPEEDS | 0x48
				     : IB_CAP_SL_MAPPING | 0x48,
		.local_port = (uint8_t)port,
		.width_enabled = 3,
		.width_supported = 3,
		.width_active = p->width,
		.speed_supported = 7,
		.speed_enabled = 7,
		.speed_active = p->speed,
		.state = up ? IB_ACTIVE : IB_DOWN,
		.phys_state = up ? IB_PHYS_LINK_UP : IB_PHYS_POLLING,
		.m_key_protect = m->protect,
		.neighbor_mtu = 5,
		.mtu_cap = 5,
		.vl_cap = 4,
		.op_vls = 4,
		.vl_arb_low_cap = 8,
		.vl_arb_high_cap = 40,
	};
}

static void node_info(const struct sim_node *m, unsigned in, struct node_info *ret)
{
	bool sw = m->type == NODE_SWITCH;

	*ret = (struct node_info){.base_version = 1,
				  .class_version = 1,
				  .node_type = m->type,
				  .num_ports = m->n_ports,
				  .sys_guid = m->guid,
				  .node_guid = m->guid,
				  .port_guid = m->guid + (sw ? 0 : in),
				  .partition_cap = sw ? 32 : 64,
				  .device_id = 0x1011,
				  .local_port = (uint8_t)in,
				  .vendor_id = 0x2c9};
}

uint16_t sim_pkey(const struct sim_node *m, unsigned port, unsigned i)
{
	return (uint16_t)(mix64(m->guid + port * 1000 + i) & 0x7fff) | 1;
}

static bool table(const struct sim_node *m, const struct sweep_request *q,
		  union sweep_data *d)
{
	bool sw = m->type == NODE_SWITCH;
	unsigned port = !sw ? 0 : q->attr == SWEEP_PKEYS ? q->mod >> 16 : q->mod & 0xff;

	if (m->no_tables || port > m->n_ports)
		return false;
	if (q->attr == SWEEP_PKEYS)
		for (unsigned i = 0; i < IB_PKEYS_EACH; i++)
			d->pkeys.pkey[i] =
				sim_pkey(m, port, (q->mod & 0xffff) * 32 + i);
	else if (q->attr == SWEEP_SLVL)
		for (unsigned i = 0; i < IB_SLS; i++)
			d->slvl.vl[i] = (uint8_t)((port + (q->mod >> 8) + i) % 8);
	else
		for (unsigned i = 0; i < IB_VLARB_EACH; i++) {
			d->vlarb.e[i].vl = (uint8_t)(q->mod >> 16);
			d->vlarb.e[i].weight = (uint8_t)(port + i);
		}
	return true;
}

/* False: an error status. */
static bool answer(const struct sim_node *m, unsigned in, const struct sweep_request *q,
		   union sweep_data *d)
{
	unsigned port = q->mod & 0xff;

	switch (q->attr) {
	case SWEEP_NODE_DESC:
		str_copy(d->desc, sizeof(d->desc), m->desc);
		return true;
	case SWEEP_NODE_INFO:
		node_info(m, in, &d->node);
		return true;
	case SWEEP_SWITCH_INFO:
		d->sw = (struct switch_info){.linear_cap = 49152,
					     .port_state_change = m->psc,
					     .partition_enf_cap = 32,
					     .enhanced_port0 = 1};
		return m->type == NODE_SWITCH;
	case SWEEP_PORT_INFO:
		if (m->type != NODE_SWITCH && !port)
			port = in;
		if (port > m->n_ports || (m->refuses && q->mod >> 31))
			return false;
		sim_port_info(m, port, &d->port);
		if (m->ext && q->mod >> 31)
			d->port.ext_active2 = SIM_EXT2;
		return true;
	default:
		return table(m, q, d);
	}
}

/* Along the route; NULL: it is lost on the way. */
static struct sim_node *follow(const struct sim *s, const struct sweep_request *q,
			       unsigned *ret_in)
{
	struct sim_node *m = s->root;
	unsigned in = s->root_port;

	for (unsigned h = 1; h <= q->hops; h++) {
		const struct sim_port *p = &m->ports[q->path[h]];

		if (m->dead || q->path[h] > m->n_ports || !q->path[h] || !is_up(p) ||
		    (m->type != NODE_SWITCH && (h > 1 || q->path[h] != s->root_port)))
			return NULL;
		in = p->to_port;
		m = p->to;
	}
	*ret_in = in;
	return m->dead || m->keyed ? NULL : m;
}

static struct sim_event *event_new(struct sim *s)
{
	struct sim_event *e = s->idle;

	if (!e)
		return xcalloc(1, sizeof(*e));
	s->idle = e->next;
	return e;
}

static void count(struct sim *s, const struct sim_node *m,
		  const struct sweep_request *q)
{
	s->asked++;
	s->by_attr[q->attr & 0x1f]++;
	s->set_bit31 += q->mod >> 31;
	s->bad_bit31 += m && q->mod >> 31 && !m->ext;
	s->hash = mix64(s->hash ^ q->attr ^ ((uint64_t)q->mod << 20) ^
			((uint64_t)q->timeout_ms << 8) ^ (uint64_t)s->now.ns);
	for (unsigned h = 0; h <= q->hops; h++)
		s->hash = mix64(s->hash ^ q->path[h]);
	s->out++;
	s->out_worst = MAX(s->out_worst, s->out);
}

static void carry_out(struct sim *s, const struct sweep_request *q)
{
	struct sim_event *e = event_new(s);
	struct sim_node *m;
	unsigned in = 0;
	struct mono at;

	if (s->hook)
		s->hook(s, s->hook_arg);
	m = follow(s, q, &in);
	count(s, m, q);
	e->a = (struct sweep_answer){.id = q->id, .status = SWEEP_TIMEOUT};
	e->target = NULL;
	if (!m || sim_draw(s) % 1000 < s->loss_permille) {
		heap_set(&s->events, &e->at,
			 mono_add(s->now, q->timeout_ms * NSEC_PER_MSEC));
		return;
	}
	m->asked++;
	e->a.status = answer(m, in, q, &e->d) ? SWEEP_OK : SWEEP_BAD_STATUS;
	e->a.mad_status = e->a.status == SWEEP_OK ? 0 : 0x1c;
	e->a.data = &e->d;
	at = mono_add(s->now, q->hops * s->hop_ns);
	if (at.ns < m->busy.ns)
		at = m->busy;
	if (at.ns < s->pause.ns)
		at = s->pause;
	m->busy = mono_add(at, s->serve_ns);
	at = mono_add(m->busy, q->hops * s->hop_ns);
	e->a.rtt_ns = mono_sub(at, s->now);
	heap_set(&s->events, &e->at, at);
}

/* ---- the loop ---- */

static int64_t cpu_now(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * NSEC_PER_SEC + t.tv_nsec;
}

static void send_all(struct sim *s, struct sweep *w)
{
	struct sweep_request q;

	for (;;) {
		int64_t begin = cpu_now();
		bool any = sweep_next(w, s->now, &q);

		s->cpu_ns += cpu_now() - begin;
		if (!any)
			return;
		carry_out(s, &q);
	}
}

static void deliver(struct sim *s, struct sweep *w, struct sim_event *e)
{
	int64_t begin = cpu_now();

	sweep_answer(w, s->now, &e->a);
	s->cpu_ns += cpu_now() - begin;
	if (s->heard)
		s->heard(s, s->heard_arg);
	s->out--;
	heap_set(&s->events, &e->at, MONO_NEVER);
	e->next = s->idle;
	s->idle = e;
}

bool sim_run(struct sim *s, struct sweep *w)
{
	for (uint64_t turns = 0; turns < 10 * 1000 * 1000; turns++) {
		const struct heap_node *h;
		struct mono due;

		send_all(s, w);
		if (!sweep_running(w))
			return true;
		h = heap_first(&s->events);
		due = mono_first(h ? h->at : MONO_NEVER, sweep_deadline(w));
		if (!mono_is_set(due))
			return false;
		if (due.ns > s->now.ns)
			s->now = due;
		if (h && mono_due(h->at, s->now))
			deliver(s, w, event_of(h));
		if (mono_due(sweep_deadline(w), s->now))
			sweep_tick(w, s->now);
	}
	return false;
}

bool sim_sweep(struct sim *s, struct sweep *w, enum sweep_kind kind, bool cold)
{
	int64_t begin;
	int r;

	s->now = mono_add(s->now, 10 * NSEC_PER_SEC);
	begin = cpu_now();
	r = sweep_start(w, kind, cold, s->now);
	s->cpu_ns += cpu_now() - begin;
	return r == 0 && sim_run(s, w);
}
