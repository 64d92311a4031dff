/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hot_rc.c - messages of rc: a queue pair per endpoint. Small ones go inline. A message
 * of tx tells when it has arrived (an rc send completes when the peer's device
 * acknowledged it), which is the network's part of the round trip; an echo that went
 * inline needs to tell nothing, but for one in a while that the send queue needs.
 */
#include <errno.h>

#include "hot.h"

static int post(struct endpoint *ep, uint64_t wr_id, const uint8_t *buf, uint32_t len,
		bool signalled)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)buf,
		.length = len,
		.lkey = ep->mr->lkey,
	};
	struct ibv_send_wr wr = {.wr_id = wr_id,
				 .sg_list = &sge,
				 .num_sge = 1,
				 .opcode = IBV_WR_SEND},
			   *bad;

	if (signalled)
		wr.send_flags |= IBV_SEND_SIGNALED;
	if (len <= ep->max_inline)
		wr.send_flags |= IBV_SEND_INLINE;
	return ibv_post_send(ep->qp, &wr, &bad);
}

/* All slots taken means that the peer acknowledges nothing: the schedule goes on, and
 * silence or the transport's own timeout will tell. */
bool rc_begin(struct endpoint *ep, uint32_t size, struct outgoing *o)
{
	uint16_t i = 0;

	while (i < EP_SLOTS && ep->out[i].seq)
		i++;
	if (i == EP_SLOTS)
		return false;
	/* The padding was zeroed by mmap and is never written. */
	*o = (struct outgoing){.buf = endpoint_send_buf(ep, i),
			       .len = (uint32_t)MIN((size_t)size, ep->slot_size),
			       .slot = i};
	return true;
}

bool rc_send(struct endpoint *ep, const struct outgoing *o, uint64_t seq,
	     struct mono sent)
{
	if (post(ep, WR_SEND | o->slot, o->buf, o->len, true))
		return false;
	ep->out[o->slot] = (struct send_slot){.seq = seq, .sent = sent};
	return true;
}

int rc_send_echo(struct endpoint *ep, const struct incoming *in)
{
	bool bare = in->len <= ep->max_inline;
	bool signalled = !bare || ep->unsignalled + 1 >= EP_SLOTS / 2;
	int r = post(ep, WR_SEND | (bare ? WR_BARE : 0) | in->slot, in->buf, in->len,
		     signalled);

	if (r)
		return -r;
	ep->unsignalled = signalled ? 0 : (uint8_t)(ep->unsignalled + 1);
	return !bare;
}

void rc_arm_sends(struct endpoint *ep)
{
	if (ep->sends_armed)
		return;
	ep->sends_armed = true;
	wcq_arm(&ep->send);
}

static void fail(struct hot *h, struct endpoint *ep, const struct ibv_wc *wc)
{
	if (ep->failed)
		return;
	hot_ping_fail(ep, "the connection has failed");
	ep->failed = true;
	hb_stop(&ep->hb);
	hot_set_timer(h, ep);
	if (ep->pending & 1u << EP_PONG) /* before the failure itself */
		hot_flush(h, ep, clock_now());
	hot_note(h, &(struct hot_note){.type = HOT_FAILED,
				       .wc_status = (int)wc->status,
				       .vendor_err = wc->vendor_err,
				       .sending = wc->wr_id & WR_SEND,
				       .handle = ep->handle});
}

static void sent(struct endpoint *ep, uint64_t wr_id, struct mono at)
{
	struct send_slot *s = &ep->out[WR_SLOT(wr_id)];

	if (ep->start.role == ROLE_TX) {
		ep->acked_seq = s->seq;
		ep->acked_after = mono_sub(at, s->sent);
		s->seq = 0;
		if (!ep->iwarp) /* there it says that TCP has taken it */
			hb_on_ack(&ep->hb);
	} else if (!(wr_id & WR_BARE)) {
		(void)endpoint_post_recv(ep, WR_SLOT(wr_id));
	}
}

static void received(struct hot *h, struct endpoint *ep, const struct ibv_wc *wc,
		     struct mono at)
{
	unsigned slot = WR_SLOT(wc->wr_id);
	struct incoming in = {.buf = endpoint_recv_buf(ep, slot),
			      .len = wc->byte_len,
			      .slot = (uint16_t)slot,
			      .at = at};
	int r = fabric_decode(in.buf, in.len, &in.m);
	bool busy = false;

	if (r < 0)
		hot_drop(h, ep, (enum drop)(-r - 1));
	else if (in.m.conn_id != ep->start.conn_id)
		hot_drop(h, ep, DROP_EPOCH);
	else if (hot_is_genuine(h, ep, &in))
		busy = hot_receive(h, ep, &in);
	if (!busy)
		(void)endpoint_post_recv(ep, slot);
}

/* Of an error only wr_id, status and vendor_err are valid. A flush is never the cause:
 * the error before it, or the connection manager, tells that. */
static void complete(struct hot *h, struct endpoint *ep, const struct ibv_wc *wc,
		     struct mono at)
{
	if (wc->status != IBV_WC_SUCCESS) {
		if (wc->status != IBV_WC_WR_FLUSH_ERR)
			fail(h, ep, wc);
	} else if (wc->wr_id & WR_SEND) {
		sent(ep, wc->wr_id, at);
	} else {
		received(h, ep, wc, at);
	}
}

static void poll_one(struct hot *h, struct endpoint *ep, struct wcq *q)
{
	struct ibv_wc wc[WC_BATCH];
	struct mono at[WC_BATCH];
	int n;

	do {
		n = wcq_poll(q, wc, at, WC_BATCH);
		for (int i = 0; i < n; i++)
			complete(h, ep, &wc[i], at[i]);
	} while (n == WC_BATCH);
}

/* What was acknowledged first, as it splits the round trip of the echo behind it. */
void rc_poll(struct hot *h, struct endpoint *ep)
{
	poll_one(h, ep, &ep->send);
	poll_one(h, ep, &ep->recv);
	poll_one(h, ep, &ep->send);
}
