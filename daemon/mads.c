/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Requests live in slots; an id is the slot's place and a number that no request before
 * had there, so that an answer finds its request by one look and a late one finds none.
 * Nothing is allocated per request.
 */
#include "mads.h"

#include <stdlib.h>

#include "manager.h"

#define SLOT_BITS 16
#define SLOTS_MAX (1u << SLOT_BITS)
#define NO_SLOT	  UINT32_MAX
#define DEAF_NS                                                                        \
	(5 * NSEC_PER_SEC) /* without a worker: longer than replacing one takes */
#define TICK_NS (500 * NSEC_PER_MSEC)

struct request {
	uint64_t id; /* 0 = free */
	uint64_t tag;
	mad_done_fn *done; /* NULL: nobody wants the answer any more */
	void *user;
	struct worker *w; /* borrowed; NULL: lost, to be told so */
	struct mono sent;
	int64_t patience; /* ns; 0 = without end */
	uint8_t *data;	  /* owned: of an answer in pieces */
	uint32_t got, total;
	uint32_t next; /* free slots */
};

/* Directed-route Gets that leave together. */
struct batch {
	struct batch *next;
	struct worker *w;
	struct wm_smp_gets msg;
};

struct mads {
	struct manager *m;
	struct request *slots; /* owned */
	uint32_t n_slots, free_slot, n_out, n_lost;
	uint64_t next_number;
	struct batch *batches; /* owned */
	struct loop_source *turn_end, *tick;
	uint64_t sent[MADS_TO__MAX];
};

/* ---- slots ---- */

static void grow(struct mads *s)
{
	uint32_t n = s->n_slots ? s->n_slots * 2 : 256;

	s->slots = xrealloc(s->slots, n, sizeof(*s->slots));
	for (uint32_t i = s->n_slots; i < n; i++)
		s->slots[i] = (struct request){.next = i + 1 < n ? i + 1 : NO_SLOT};
	s->free_slot = s->n_slots;
	s->n_slots = n;
}

/* NULL: too many are out. */
static struct request *request_new(struct mads *s)
{
	struct request *r;
	uint32_t slot;

	if (s->free_slot == NO_SLOT) {
		if (s->n_slots >= SLOTS_MAX)
			return NULL;
		grow(s);
	}
	slot = s->free_slot;
	r = &s->slots[slot];
	s->free_slot = r->next;
	*r = (struct request){.id = ++s->next_number << SLOT_BITS | slot};
	s->n_out++;
	return r;
}

static struct request *request_find(struct mads *s, uint64_t id)
{
	uint32_t slot = (uint32_t)(id & (SLOTS_MAX - 1));

	return id && slot < s->n_slots && s->slots[slot].id == id ? &s->slots[slot]
								  : NULL;
}

static void request_free(struct mads *s, struct request *r)
{
	uint32_t slot = (uint32_t)(r - s->slots);

	free(r->data);
	*r = (struct request){.next = s->free_slot};
	s->free_slot = slot;
	s->n_out--;
}

/* The request ends here; whoever asked may ask anew at once. */
static void finish(struct mads *s, struct request *r, struct mad_done *done)
{
	struct request was = *r;

	r->data = NULL;
	request_free(s, r);
	done->tag = was.tag;
	if (was.done)
		was.done(was.user, done);
	free(was.data);
}

/* ---- ask ---- */

static bool can_ask(const struct worker *w)
{
	return w && w->fd >= 0 && w->saw_hello;
}

static struct batch *batch_of(struct mads *s, struct worker *w, const char *device,
			      uint8_t port)
{
	struct batch *b;

	for (b = s->batches; b; b = b->next)
		if (b->w == w && b->msg.port == port && !strcmp(b->msg.device, device))
			return b;
	b = xcalloc(1, sizeof(*b));
	b->w = w;
	b->msg.port = port;
	(void)str_copy(b->msg.device, sizeof(b->msg.device), device);
	b->next = s->batches;
	s->batches = b;
	return b;
}

static void batch_send(struct batch *b)
{
	size_t size =
		offsetof(struct wm_smp_gets, get) + b->msg.n * sizeof(b->msg.get[0]);

	wm_header(&b->msg, WM_SMP_GETS, size, b->w->generation);
	/* What a worker cannot be told fails with the worker, and its batches go with
	 * it. */
	if (worker_send(b->w, &b->msg, size) != -ENOBUFS)
		b->msg.n = 0;
}

static void batch_drop(struct mads *s, struct worker *w)
{
	struct batch **p = &s->batches;

	while (*p) {
		struct batch *b = *p;

		if (b->w != w) {
			p = &b->next;
			continue;
		}
		*p = b->next;
		free(b);
	}
}

static void arm_tick(struct mads *s)
{
	loop_timer_at(s->tick, mono_add(loop_now(s->m->loop), TICK_NS));
}

static struct request *ask(struct mads *s, struct worker *w, uint64_t tag,
			   mad_done_fn *done, void *user, int64_t patience)
{
	struct request *r = request_new(s);

	if (!r)
		return NULL;
	r->tag = tag;
	r->done = done;
	r->user = user;
	r->w = w;
	r->sent = loop_now(s->m->loop);
	r->patience = patience;
	if (s->n_out == 1)
		arm_tick(s);
	return r;
}

int mads_get(struct mads *s, struct worker *w, const char *device, uint8_t port,
	     const struct mad_smp *smp, mad_done_fn *done, void *user)
{
	int64_t wait = (int64_t)(smp->retries + 1) * smp->timeout_ms * NSEC_PER_MSEC;
	struct wm_smp_get *g;
	struct request *r;
	struct batch *b;

	if (!can_ask(w))
		return -ENOTCONN;
	r = ask(s, w, smp->tag, done, user, wait + DEAF_NS);
	if (!r)
		return -ENOBUFS;
	b = batch_of(s, w, device, port);
	g = &b->msg.get[b->msg.n++];
	*g = (struct wm_smp_get){.id = r->id,
				 .mod = smp->mod,
				 .attr = smp->attr,
				 .timeout_ms = smp->timeout_ms,
				 .retries = smp->retries,
				 .hops = smp->hops};
	if (smp->hops)
		memcpy(&g->path[1], &smp->path[1], smp->hops);
	s->sent[smp->hops == 0 ? MADS_OWN : smp->hops == 1 ? MADS_NEAR : MADS_SUBNET]++;
	if (b->msg.n == WM_SMPS_EACH)
		batch_send(b);
	else
		loop_defer_arm(s->turn_end);
	return 0;
}

static enum mads_to destination(const struct wm_mad_send *msg)
{
	switch (msg->kind) {
	case WM_KIND_PMA:
		return MADS_PMA;
	case WM_KIND_SA:
		return MADS_SA;
	case WM_KIND_DR_SMP:
		return msg->hops == 0	? MADS_OWN
		       : msg->hops == 1 ? MADS_NEAR
					: MADS_SUBNET;
	default:
		return MADS_SUBNET;
	}
}

int mads_send(struct mads *s, struct worker *w, struct wm_mad_send *msg, uint64_t tag,
	      mad_done_fn *done, void *user)
{
	int64_t wait = (int64_t)(msg->retries + 1) * msg->timeout_ms * NSEC_PER_MSEC;
	struct request *r;

	if (!can_ask(w))
		return -ENOTCONN;
	r = ask(s, w, tag, done, user, msg->timeout_ms < 0 ? 0 : wait + DEAF_NS);
	if (!r)
		return -ENOBUFS;
	msg->id = r->id;
	wm_header(msg, WM_MAD_SEND, sizeof(*msg), w->generation);
	s->sent[destination(msg)]++;
	(void)worker_send(w, msg, sizeof(*msg));
	return 0;
}

void mads_flush(struct mads *s)
{
	struct batch *b = s->batches;

	while (b) {
		/* A worker that fails on the way takes its batches with it. */
		bool any = b->msg.n > 0;

		if (any)
			batch_send(b);
		b = any ? s->batches : b->next;
	}
}

void mads_forget(struct mads *s, void *user)
{
	for (uint32_t i = 0; i < s->n_slots; i++)
		if (s->slots[i].user == user)
			s->slots[i].done = NULL;
}

/* ---- answers ---- */

void mads_on_smp_results(struct mads *s, struct worker *w,
			 const struct wm_smp_results *m)
{
	for (int i = 0; i < m->n; i++) {
		const struct wm_smp_result *a = &m->result[i];
		struct request *r = request_find(s, a->id);
		struct mad_done done = {.status = (enum wm_mad_status)a->status,
					.mad_status = a->mad_status,
					.error = a->error,
					.rtt_ns = a->rtt_ns};

		if (!r || r->w != w)
			continue;
		if (a->status == WM_MAD_OK) {
			done.data = a->data;
			done.length = sizeof(a->data);
		}
		finish(s, r, &done);
	}
}

void mads_on_more(struct mads *s, struct worker *w, const struct wm_mad_more *m)
{
	struct request *r = request_find(s, m->id);

	if (!r || r->w != w)
		return;
	if (!r->data) {
		r->total = m->total;
		r->data = xcalloc(1, MAX(m->total, 1u));
	}
	/* A gap cannot be filled: what comes after it is left out, and the whole is
	 * bad. */
	if (m->total != r->total || m->offset != r->got ||
	    m->length > r->total - r->got)
		return;
	memcpy(r->data + r->got, m->data, m->length);
	r->got += m->length;
}

void mads_on_answer(struct mads *s, struct worker *w, const struct wm_mad_answer *m)
{
	struct request *r = request_find(s, m->id);
	struct mad_done done = {.status = (enum wm_mad_status)m->status,
				.mad_status = m->mad_status,
				.attr_offset = m->attr_offset,
				.error = m->error,
				.rtt_ns = m->rtt_ns,
				.data = m->data,
				.length = m->length};

	if (!r || r->w != w)
		return;
	if (m->more) {
		done.data = r->data;
		done.length = r->got;
		if (m->status == WM_MAD_OK && (!r->data || r->got != m->total)) {
			done.status = WM_MAD_BAD_ANSWER;
			done.error = EBADMSG;
		}
	}
	finish(s, r, &done);
}

/* Told at the end of the turn: the worker may be lost in the middle of somebody's
 * asking. */
void mads_worker_lost(struct mads *s, struct worker *w)
{
	batch_drop(s, w);
	for (uint32_t i = 0; i < s->n_slots; i++)
		if (s->slots[i].id && s->slots[i].w == w) {
			s->slots[i].w = NULL;
			s->n_lost++;
		}
	if (s->n_lost)
		loop_defer_arm(s->turn_end);
}

static void tell_lost(struct mads *s)
{
	for (uint32_t i = 0; i < s->n_slots && s->n_lost; i++) {
		struct mad_done done = {.status = WM_MAD_SEND_FAILED,
					.error = ENOTCONN};

		if (!s->slots[i].id || s->slots[i].w)
			continue;
		s->n_lost--;
		finish(s, &s->slots[i], &done);
	}
}

/* Every request gets an answer, a timeout at least; what a worker keeps to itself would
 * leave the last state standing for ever. */
void mads_tick(struct mads *s, struct mono now)
{
	for (uint32_t i = 0; i < s->n_slots; i++) {
		struct request *r = &s->slots[i];
		struct mad_done done = {.status = WM_MAD_TIMEOUT, .error = ETIMEDOUT};
		struct worker *w = r->w;
		double sec = (double)mono_sub(now, r->sent) / 1e9;

		if (!r->id || !w || !r->patience ||
		    mono_sub(now, r->sent) <= r->patience)
			continue;
		finish(s, r, &done);
		worker_fail(w, "a MAD request has no answer for %.1f s", sec);
	}
}

static void on_turn_end(void *user)
{
	struct mads *s = user;

	tell_lost(s);
	mads_flush(s);
}

static void on_tick(void *user, struct mono now)
{
	struct mads *s = user;

	mads_tick(s, now);
	if (s->n_out)
		arm_tick(s);
}

uint64_t mads_sent(const struct mads *s, enum mads_to to)
{
	return s->sent[to];
}

struct mads *mads_new(struct manager *m)
{
	struct mads *s = xcalloc(1, sizeof(*s));

	s->m = m;
	s->free_slot = NO_SLOT;
	s->turn_end = loop_defer(m->loop, on_turn_end, s);
	s->tick = loop_timer(m->loop, on_tick, s);
	return s;
}

struct mads *mads_free(struct mads *s)
{
	if (!s)
		return NULL;
	for (uint32_t i = 0; i < s->n_slots; i++)
		free(s->slots[i].data);
	while (s->batches) {
		struct batch *b = s->batches;

		s->batches = b->next;
		free(b);
	}
	loop_source_free(s->turn_end);
	loop_source_free(s->tick);
	free(s->slots);
	free(s);
	return NULL;
}
