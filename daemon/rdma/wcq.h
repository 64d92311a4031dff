/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * wcq.h - a completion queue, and when each completion came: by the device's clock where
 * it stamps completions and tells its clock, so that the time this host took to wake up
 * is not in the round trip; else by the host's clock when it was polled.
 */
#pragma once

#include <infiniband/verbs.h>

#include "endpoint.h"
#include "mono.h"

/* The device's clock against the host's. Two readings of both give a line; ticks are
 * turned into the host's monotonic ns by it. Written by cm at open, then by hot. */
struct dev_clock {
	bool usable;
	uint64_t khz, mask;
	uint64_t ticks; /* at ... */
	struct mono at; /* ... this time; unset: not read yet */
};
/* What the device can: 0, or -errno and not usable. */
int dev_clock_open(struct dev_clock *c, struct ibv_context *verbs,
		   const struct ibv_device_attr_ex *attr);
/* Read both clocks anew. Calls the library, which for such devices reads a mapped page. */
void dev_clock_read(struct dev_clock *c, struct ibv_context *verbs);
/* Pure. @ticks as a completion has them; @now: the host's, not earlier than the
 * completion. A result that cannot be true is @now. */
struct mono dev_clock_time(const struct dev_clock *c, uint64_t ticks, struct mono now);

enum wcq_kind { WCQ_RC_SEND, WCQ_RC_RECV, WCQ_UD_SEND, WCQ_UD_RECV };
struct wcq {
	enum wcq_kind kind;
	void *owner;	    /* borrowed: struct endpoint or struct ud_port */
	struct ibv_cq *cq;  /* owned, its context is this struct; NULL: none */
	struct ibv_cq_ex *ex; /* the same queue where completions are stamped */
	const struct dev_clock *clock; /* borrowed: by this */
};
struct rdma_ctx;
/* On the channel of @c. 0 or -errno. */
int wcq_create(struct wcq *q, struct rdma_ctx *c, int depth, enum wcq_kind kind,
	       void *owner);
int wcq_destroy(struct wcq *q); /* as ibv_destroy_cq(); fine without a queue */
/* Up to @n completions, with the time of each. */
int wcq_poll(struct wcq *q, struct ibv_wc *wc, struct mono *at, int n);
static inline void wcq_arm(struct wcq *q)
{
	(void)ibv_req_notify_cq(q->cq, 0);
}
