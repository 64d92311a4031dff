/* SPDX-License-Identifier: BSD-2-Clause */
#include "smp_port.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "flights.h"
#include "log.h"
#include "wire.h"

/* The place of the transaction in a MAD; its upper half is the kernel's. */
#define TID_AT	8
#define TID_END 16

enum { SMPS, GMPS, LANES };
#define GMP_BIT 0x80000000u

struct smp_port {
	char device[DEVICE_NAME_MAX];
	uint8_t num;
	struct wire *wire; /* owned */
	struct smp_calls calls;
	struct lane lane[LANES];
	int send_error; /* set when a send says that the port is gone */
	struct smp_port_stats stats;
};

static struct mono clock_read(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_MONOTONIC, &ts);
	return (struct mono){(int64_t)ts.tv_sec * NSEC_PER_SEC + ts.tv_nsec};
}

struct smp_port *smp_port_open(const char *device, uint8_t port, bool reports,
			       int wake_fd, const struct smp_calls *calls,
			       int *ret_error)
{
	struct wire *w = wire_open(device, port, reports, wake_fd, ret_error);
	struct smp_port *p;

	if (!w)
		return NULL;
	p = xcalloc(1, sizeof(*p));
	(void)str_copy(p->device, sizeof(p->device), device);
	p->num = port;
	p->wire = w;
	p->calls = *calls;
	lane_init(&p->lane[SMPS], 0, SMP_WINDOW);
	lane_init(&p->lane[GMPS], GMP_BIT, GMP_WINDOW);
	return p;
}

/* ---- answers ---- */

/* Say what came of it, and it is no more. */
static void finish(struct smp_port *p, struct lane *l, struct flight *f,
		   struct smp_done *d)
{
	d->id = f->r.id;
	d->origin = f->r.origin;
	if (d->status == WM_MAD_TIMEOUT && f->send) {
		d->data = f->send->data;
		d->len = f->send->length;
	}
	if (f->tid)
		lane_land(l, f);
	if (!f->forgotten)
		p->calls.done(p->calls.user, d);
	flight_give(l, f);
}

static void fail(struct smp_port *p, struct lane *l, struct flight *f, int error)
{
	finish(p, l, f,
	       &(struct smp_done){.status = WM_MAD_SEND_FAILED, .error = error});
}

static void fail_all(struct smp_port *p, int error)
{
	for (struct lane *l = p->lane; l < p->lane + LANES; l++) {
		struct flight *f;

		while ((f = lane_any(l)))
			fail(p, l, f, error);
		while ((f = lane_pop(l)))
			fail(p, l, f, error);
	}
}

static struct mad_request request_of(const struct flight *f)
{
	const struct wm_mad_send *m = f->send;

	if (!m)
		return (struct mad_request){.class = MAD_CLASS_SMI_DR,
					    .method = MAD_GET,
					    .attr = f->r.attr,
					    .mod = f->r.mod,
					    .tid = f->tid};
	return (struct mad_request){
		.class = wm_kind_class(m->kind),
		.method = m->method,
		.attr = m->attr,
		.mod = m->mod,
		.tid = f->tid,
		.comp_mask = m->comp_mask,
		.data = m->data,
		.len = m->length,
	};
}

static void judge_answer(const struct flight *f, const struct packet *k,
			 struct smp_done *d)
{
	struct mad_request r = request_of(f);
	const uint8_t *data;
	size_t len;
	int e = mad_check(packet_mad(k), k->len, &r, &d->mad_status, &data, &len,
			  &d->attr_offset);

	if (!e && len > WM_MAD_TOTAL_MAX)
		e = -EMSGSIZE;
	d->status = !e		      ? WM_MAD_OK
		    : e == -EREMOTEIO ? WM_MAD_BAD_STATUS
				      : WM_MAD_BAD_ANSWER;
	if (d->status == WM_MAD_BAD_ANSWER)
		d->error = -e;
	if (e)
		return;
	d->data = data;
	d->len = len;
}

static void take_report(struct smp_port *p, const struct packet *k)
{
	struct smp_report r = {.slid = packet_slid(k)};
	int error = wire_answer_report(p->wire, k);

	if (error)
		log_debug("%s/%u: cannot answer a Report: %s", p->device, p->num,
			  strerror(error));
	memcpy(r.data, packet_mad(k) + MAD_SA_DATA, sizeof(r.data));
	p->stats.reports++;
	p->calls.report(p->calls.user, &r);
}

static struct flight *flight_of(struct smp_port *p, const struct packet *k,
				struct lane **ret_lane)
{
	struct flight *f;
	uint32_t tid;

	if (k->len < TID_END)
		return NULL;
	tid = be32_get(packet_mad(k) + TID_AT + 4);
	*ret_lane = &p->lane[tid & GMP_BIT ? GMPS : SMPS];
	f = lane_find(*ret_lane, tid);
	return f && wire_is_for(p->wire, k, f->send ? f->send->kind : WM_KIND_DR_SMP)
		       ? f
		       : NULL;
}

static void take(struct smp_port *p, const struct packet *k)
{
	struct smp_done d = {0};
	struct lane *l = NULL;
	struct flight *f;

	p->stats.received++;
	if (wire_is_report(p->wire, k)) {
		take_report(p, k);
		return;
	}
	/* Of a timeout the kernel gives the header back. Late answers and those of
	 * other agents find nobody. */
	f = flight_of(p, k, &l);
	if (!f) {
		p->stats.strays++;
		return;
	}
	d.rtt_ns = (uint64_t)MAX(mono_sub(k->at, f->sent_at), INT64_C(0));
	if (k->status == ETIMEDOUT) {
		d.status = WM_MAD_TIMEOUT;
	} else if (k->status) {
		d.status = WM_MAD_SEND_FAILED;
		d.error = k->status;
	} else {
		judge_answer(f, k, &d);
	}
	finish(p, l, f, &d);
}

static int take_all(struct smp_port *p)
{
	struct packet *list;
	int error;

	list = wire_take(p->wire, &error);
	for (const struct packet *k = list; k; k = k->next)
		take(p, k);
	if (list)
		wire_give(p->wire, list);
	return error;
}

/* ---- requests ---- */

static int send_get(struct smp_port *p, const struct flight *f)
{
	static const struct wire_to to = {.kind = WM_KIND_DR_SMP};
	const struct smp_request *r = &f->r;
	int e = mad_build_dr_get(wire_mad(p->wire), f->tid, r->attr, r->mod, r->path,
				 r->hops);

	if (e)
		return -e;
	return wire_send(p->wire, &to, (int)r->timeout_ms, r->retries);
}

static int send_any(struct smp_port *p, const struct flight *f)
{
	struct mad_request r = request_of(f);
	const struct wm_mad_send *m = f->send;
	struct wire_to to = {
		.kind = m->kind,
		.sl = m->sl,
		.dlid = m->dlid,
		.pkey_index = m->pkey_index,
		.grh = m->grh.present ? &m->grh : NULL,
	};
	uint8_t *mad = wire_mad(p->wire);
	int e = 0;

	if (!mad_request_allowed(r.class, r.method, r.attr))
		return EINVAL;
	if (m->kind == WM_KIND_DR_SMP) {
		e = mad_build_dr_get(mad, f->tid, m->attr, m->mod, m->path, m->hops);
		if (!e)
			memcpy(mad + MAD_SMP_DATA, m->data,
			       MIN(m->length, MAD_DATA_LEN));
	} else if (!m->dlid || m->dlid > IB_LID_UNICAST_MAX) {
		e = -EHOSTUNREACH;
	} else {
		e = mad_build(mad, &r);
	}
	if (e)
		return -e;
	return wire_send(p->wire, &to, m->timeout_ms, m->retries);
}

static void fly(struct smp_port *p, struct lane *l, struct flight *f, struct mono now)
{
	int64_t ns = f->send ? f->send->timeout_ms : (int64_t)f->r.timeout_ms;
	bool answered = ns != 0;
	int error;

	if (ns > 0)
		f->deadline = mono_add(now, ns * (f->r.retries + 1) * NSEC_PER_MSEC +
						    SMP_SLACK_NS);
	f->sent_at = clock_read();
	lane_depart(l, f, now);
	error = f->send ? send_any(p, f) : send_get(p, f);
	if (!error)
		p->stats.sent++;
	if (error == EIO || error == ENODEV)
		p->send_error = error;
	if (error)
		fail(p, l, f, error);
	else if (!answered)
		finish(p, l, f, &(struct smp_done){.status = WM_MAD_OK});
}

static void send_waiting(struct smp_port *p, struct lane *l, struct mono now)
{
	struct flight *f;

	while (!p->send_error && (f = lane_next(l, now)))
		fly(p, l, f, now);
}

static void enqueue(struct smp_port *p, struct lane *l, struct flight *f,
		    struct mono now)
{
	if (lane_is_full(l)) {
		fail(p, l, f, ENOBUFS);
		return;
	}
	lane_queue(l, f);
	send_waiting(p, l, now);
}

void smp_port_get(struct smp_port *p, const struct smp_request *r, struct mono now)
{
	struct lane *l = &p->lane[SMPS];
	struct flight *f = flight_new(l);

	f->r = *r;
	enqueue(p, l, f, now);
}

void smp_port_send(struct smp_port *p, const struct wm_mad_send *m, struct mono now)
{
	bool smp = m->kind == WM_KIND_DR_SMP || m->kind == WM_KIND_LID_SMP;
	struct lane *l = &p->lane[smp ? SMPS : GMPS];
	struct flight *f = flight_new(l);

	f->r = (struct smp_request){
		.id = m->id, .origin = FROM_MAD_SEND, .retries = m->retries};
	f->send = xcalloc(1, sizeof(*f->send));
	*f->send = *m;
	enqueue(p, l, f, now);
}

/* ---- turns ---- */

static void expire(struct smp_port *p, struct lane *l, struct mono now)
{
	struct flight *f;

	while ((f = lane_overdue(l, now)))
		finish(p, l, f, &(struct smp_done){.status = WM_MAD_TIMEOUT});
}

bool smp_port_work(struct smp_port *p, struct mono now)
{
	int error = take_all(p);

	for (struct lane *l = p->lane; l < p->lane + LANES; l++) {
		expire(p, l, now);
		if (!error)
			send_waiting(p, l, now);
	}
	error = error ? error : p->send_error;
	if (!error)
		return true;
	log_errno(LOG_NOTICE, -error, "%s/%u: umad port is gone", p->device, p->num);
	fail_all(p, error);
	return false;
}

struct mono smp_port_deadline(const struct smp_port *p)
{
	return mono_first(lane_deadline(&p->lane[SMPS]), lane_deadline(&p->lane[GMPS]));
}

void smp_port_forget(struct smp_port *p)
{
	/* Those that are out keep their place: the fabric still works on them. */
	for (struct lane *l = p->lane; l < p->lane + LANES; l++) {
		struct flight *f;

		for (int i = 0; i < SMP_OUT_MAX; i++)
			if (l->slot[i])
				l->slot[i]->forgotten = true;
		while ((f = lane_pop(l)))
			flight_give(l, f);
	}
}

void smp_port_stats(const struct smp_port *p, struct smp_port_stats *ret)
{
	*ret = p->stats;
}

void smp_port_stop(struct smp_port *p)
{
	wire_stop(p->wire);
}

struct smp_port *smp_port_close(struct smp_port *p)
{
	if (!p)
		return NULL;
	/* The end of the thread first: what it still has is too late. */
	p->wire = wire_close(p->wire);
	fail_all(p, ENODEV);
	for (struct lane *l = p->lane; l < p->lane + LANES; l++)
		lane_done(l);
	free(p);
	return NULL;
}
