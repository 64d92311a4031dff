/* SPDX-License-Identifier: BSD-2-Clause */
#include "wcq.h"

#include <errno.h>

#include "rc.h"

/* A stamp further back than this is not of a completion that waited to be polled. */
#define AGE_MAX (10 * NSEC_PER_SEC)

int dev_clock_open(struct dev_clock *c, struct ibv_context *verbs,
		   const struct ibv_device_attr_ex *attr)
{
	*c = (struct dev_clock){.at = MONO_NEVER};
	if (!attr->completion_timestamp_mask || !attr->hca_core_clock)
		return -EOPNOTSUPP;
	c->khz = attr->hca_core_clock;
	c->mask = attr->completion_timestamp_mask;
	dev_clock_read(c, verbs);
	c->usable = mono_is_set(c->at);
	return c->usable ? 0 : -EOPNOTSUPP;
}

void dev_clock_read(struct dev_clock *c, struct ibv_context *verbs)
{
	struct ibv_values_ex v = {.comp_mask = IBV_VALUES_MASK_RAW_CLOCK};
	struct mono before = clock_now(), after;

	if (ibv_query_rt_values_ex(verbs, &v) ||
	    !(v.comp_mask & IBV_VALUES_MASK_RAW_CLOCK))
		return;
	after = clock_now();
	/* The library shows the counter as a timespec of which only the ns part counts. */
	c->ticks = (uint64_t)v.raw_clock.tv_nsec & c->mask;
	c->at.ns = before.ns + (after.ns - before.ns) / 2;
}

struct mono dev_clock_time(const struct dev_clock *c, uint64_t ticks, struct mono now)
{
	uint64_t forward = (ticks - c->ticks) & c->mask;
	uint64_t back = (c->ticks - ticks) & c->mask;
	bool later = forward <= back;
	/* At 1 GHz and readings a second apart this stays far below 64 bits. */
	double ns = (double)(later ? forward : back) * 1e6 / (double)c->khz;
	struct mono t;

	if (ns > 60e9)
		return now;
	t.ns = c->at.ns + (later ? (int64_t)ns : -(int64_t)ns);
	return t.ns > now.ns || now.ns - t.ns > AGE_MAX ? now : t;
}

int wcq_create(struct wcq *q, struct rdma_ctx *c, int depth, enum wcq_kind kind,
	       void *owner)
{
	*q = (struct wcq){.kind = kind, .owner = owner, .clock = &c->clock};
	if (c->clock.usable) {
		struct ibv_cq_init_attr_ex attr = {
			.cqe = (uint32_t)depth,
			.cq_context = q,
			.channel = c->channel,
			.wc_flags = IBV_WC_EX_WITH_BYTE_LEN | IBV_WC_EX_WITH_SRC_QP |
				    IBV_WC_EX_WITH_SLID | IBV_WC_EX_WITH_SL |
				    IBV_WC_EX_WITH_DLID_PATH_BITS |
				    IBV_WC_EX_WITH_COMPLETION_TIMESTAMP,
		};

		q->ex = ibv_create_cq_ex(c->verbs, &attr);
		q->cq = q->ex ? ibv_cq_ex_to_cq(q->ex) : NULL;
	}
	/* Not with stamps: then without. */
	if (!q->cq)
		q->cq = ibv_create_cq(c->verbs, depth, q, c->channel, 0);
	return q->cq ? 0 : -errno;
}

int wcq_destroy(struct wcq *q)
{
	int r = q->cq ? ibv_destroy_cq(q->cq) : 0;

	if (r)
		q->cq->cq_context = NULL; /* its events find nobody */
	q->cq = NULL;
	q->ex = NULL;
	return r;
}

/* Of an error only wr_id, status and vendor_err are valid. */
static void read_one(struct ibv_cq_ex *ex, struct ibv_wc *wc)
{
	*wc = (struct ibv_wc){.wr_id = ex->wr_id, .status = ex->status};
	if (ex->status != IBV_WC_SUCCESS) {
		wc->vendor_err = ibv_wc_read_vendor_err(ex);
		return;
	}
	wc->byte_len = ibv_wc_read_byte_len(ex);
	wc->src_qp = ibv_wc_read_src_qp(ex);
	wc->slid = (uint16_t)ibv_wc_read_slid(ex);
	wc->sl = ibv_wc_read_sl(ex);
	wc->dlid_path_bits = ibv_wc_read_dlid_path_bits(ex);
	wc->wc_flags = ibv_wc_read_wc_flags(ex);
}

static int poll_stamped(struct wcq *q, struct ibv_wc *wc, struct mono *at, int n)
{
	struct ibv_poll_cq_attr attr = {0};
	struct mono now;
	int got = 0;

	if (ibv_start_poll(q->ex, &attr))
		return 0;
	now = clock_now();
	do {
		read_one(q->ex, &wc[got]);
		at[got] = now;
		if (wc[got].status == IBV_WC_SUCCESS)
			at[got] = dev_clock_time(
				q->clock, ibv_wc_read_completion_ts(q->ex), now);
		got++;
	} while (got < n && !ibv_next_poll(q->ex));
	ibv_end_poll(q->ex);
	return got;
}

int wcq_poll(struct wcq *q, struct ibv_wc *wc, struct mono *at, int n)
{
	struct mono now;
	int got;

	if (q->ex)
		return poll_stamped(q, wc, at, n);
	got = ibv_poll_cq(q->cq, n, wc);
	if (got <= 0)
		return 0;
	now = clock_now();
	for (int i = 0; i < got; i++)
		at[i] = now;
	return got;
}
