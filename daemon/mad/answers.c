/* SPDX-License-Identifier: BSD-2-Clause */
#include "answers.h"

#include <stdlib.h>

struct answers {
	mad_send_fn *send;
	void *user;
	struct wm_smp_results batch;
};

struct answers *answers_new(mad_send_fn *send, void *user)
{
	struct answers *a = xcalloc(1, sizeof(*a));

	a->send = send;
	a->user = user;
	return a;
}

struct answers *answers_free(struct answers *a)
{
	free(a);
	return NULL;
}

static void put_in_batch(struct answers *a, const struct smp_done *d)
{
	struct wm_smp_result *r = &a->batch.result[a->batch.n++];

	*r = (struct wm_smp_result){
		.id = d->id,
		.status = (uint8_t)d->status,
		.mad_status = d->mad_status,
		.error = d->error,
		.rtt_ns = d->rtt_ns,
	};
	if (d->data)
		memcpy(r->data, d->data, sizeof(r->data));
	if (a->batch.n == WM_SMPS_EACH)
		answers_flush(a);
}

/* A long one goes ahead in pieces. */
static void put_pieces(struct answers *a, const struct smp_done *d)
{
	struct wm_mad_more m = {.id = d->id, .total = (uint32_t)d->len};

	for (size_t at = 0; at < d->len; at += m.length) {
		m.offset = (uint32_t)at;
		m.length = (uint16_t)MIN(d->len - at, WM_MORE_EACH);
		memcpy(m.data, d->data + at, m.length);
		a->send(a->user, WM_MAD_MORE, &m,
			offsetof(struct wm_mad_more, data) + m.length);
	}
}

static void put_answer(struct answers *a, const struct smp_done *d)
{
	struct wm_mad_answer m = {
		.id = d->id,
		.status = (uint8_t)d->status,
		.mad_status = d->mad_status,
		.error = d->error,
		.rtt_ns = d->rtt_ns,
		.total = (uint32_t)d->len,
		.attr_offset = d->attr_offset,
		.more = d->len > sizeof(m.data),
	};

	if (m.more) {
		put_pieces(a, d);
	} else if (d->len) {
		m.length = (uint16_t)d->len;
		memcpy(m.data, d->data, d->len);
	}
	a->send(a->user, WM_MAD_ANSWER, &m, sizeof(m));
}

void answers_put(struct answers *a, const struct smp_done *d)
{
	switch (d->origin) {
	case FROM_SMP_GETS:
		put_in_batch(a, d);
		break;
	case FROM_MAD_SEND:
		put_answer(a, d);
		break;
	}
}

void answers_refuse(struct answers *a, enum smp_origin origin, uint64_t id,
		    enum wm_mad_status status, int error)
{
	answers_put(a, &(struct smp_done){.id = id,
					  .origin = origin,
					  .status = status,
					  .error = error});
}

void answers_flush(struct answers *a)
{
	if (a->batch.n)
		a->send(a->user, WM_SMP_RESULTS, &a->batch,
			offsetof(struct wm_smp_results, result) +
				a->batch.n * sizeof(a->batch.result[0]));
	a->batch.n = 0;
}

void answers_forget(struct answers *a)
{
	a->batch.n = 0;
}
