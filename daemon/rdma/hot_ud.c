/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hot_ud.c - messages of ud: one queue pair for all peers of a port. Whose a message is,
 * its connection id says; strangers can send here as well, so what is not known is
 * counted and forgotten, a look takes a bounded number of messages, and the receives are
 * enough for what comes meanwhile.
 *
 * A message is answered by an address handle, which cm makes: of what the connection
 * manager said (tx), or of the first message that passed all checks (rx), which waits
 * for it. Anew when the messages come from elsewhere.
 */
#include <errno.h>

#include "hot.h"

#define ASK_EVERY (200 * NSEC_PER_MSEC)
#define SEND_GEN  UINT64_C(0xffffffff)

/* ---- receives ---- */

static void repost_flush(struct ud_port *p)
{
	/* Kept: it may be repaired without a reset. */
	if (!p->live)
		return;
	/* What cannot be posted is lost until the queue pair is repaired; it says so
	 * itself when it is in error. */
	if (p->n_repost)
		(void)ud_post_recvs(p, p->repost, p->n_repost);
	p->n_repost = 0;
}

static void repost(struct ud_port *p, uint16_t slot)
{
	if (p->n_repost == UD_RECVS)
		repost_flush(p);
	if (p->n_repost < UD_RECVS)
		p->repost[p->n_repost++] = slot;
}

/* ---- sends ---- */

static void release(struct ud_port *p, struct ud_flight *s)
{
	atomic_fetch_sub_explicit(&s->ah->out, 1, memory_order_release);
	if (s->buf != UD_NO_SLOT)
		p->free_bufs[p->n_free++] = s->buf;
	if (s->recv != UD_NO_SLOT)
		repost(p, s->recv);
}

/* The queue pair is of no use until cm has repaired it. What was under way is over. */
static void broken(struct hot *h, struct ud_port *p, const struct ibv_wc *wc,
		   uint64_t whose)
{
	if (!p->live)
		return;
	while (p->tail != p->head)
		release(p, &p->sends[p->tail++ % p->n_send]);
	p->live = false;
	p->send_gen++;
	for (unsigned i = 0; i < h->n_ports; i++)
		if (h->ports[i] == p)
			h->ports[i] = h->ports[--h->n_ports];
	hot_note(h, &(struct hot_note){.type = HOT_UD_FAILED,
				       .wc_status = (int)wc->status,
				       .vendor_err = wc->vendor_err,
				       .sending = wc->wr_id & WR_SEND,
				       .handle = whose,
				       .port = p});
}

static void send_failed(struct hot *h, struct ud_port *p, const struct ibv_wc *wc,
			uint64_t conn_id)
{
	struct endpoint *ep = hot_find(h, conn_id);

	/* Where this leads to, nothing can be sent: not again before it is known anew,
	 * or one peer would stop the messages of all. */
	if (ep && ep->ud == p && wc->status != IBV_WC_WR_FLUSH_ERR) {
		ep->dest.ah = NULL;
		ep->asked_at = MONO_NEVER;
		broken(h, p, wc, ep->handle);
	} else {
		broken(h, p, wc, 0);
	}
}

static void poll_sends(struct hot *h, struct ud_port *p)
{
	struct ibv_wc wc[WC_BATCH];
	struct mono at[WC_BATCH];
	int n;

	do {
		n = wcq_poll(&p->send, wc, at, WC_BATCH);
		for (int i = 0; i < n && p->live; i++) {
			struct ud_flight *s = &p->sends[p->tail % p->n_send];

			if (wc[i].wr_id >> 32 != (p->send_gen & SEND_GEN) ||
			    p->tail == p->head)
				continue; /* flushed by an error before */
			if (wc[i].status != IBV_WC_SUCCESS) {
				send_failed(h, p, &wc[i], s->conn_id);
				return;
			}
			release(p, s);
			p->tail++;
		}
	} while (n == WC_BATCH && p->live);
}

static int post(struct hot *h, struct endpoint *ep, const uint8_t *buf, uint32_t len,
		uint16_t recv, uint16_t out_buf)
{
	struct ud_port *p = ep->ud;
	struct ibv_sge sge = {
		.addr = (uintptr_t)buf, .length = len, .lkey = p->mr->lkey};
	struct ibv_send_wr wr = {
		.wr_id = (uint64_t)p->send_gen << 32 | WR_SEND,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED | (len <= p->max_inline ? IBV_SEND_INLINE : 0),
	}, *bad;
	int r;

	if (p->head - p->tail == p->n_send)
		poll_sends(h, p);
	if (!p->live || !ep->dest.ah)
		return -ENOTCONN;
	if (p->head - p->tail == p->n_send) {
		count_drop(h->w, DROP_LIMIT);
		return -ENOBUFS;
	}
	wr.wr.ud.ah = ep->dest.ah->ah;
	wr.wr.ud.remote_qpn = ep->dest.qpn;
	wr.wr.ud.remote_qkey = ep->dest.qkey;
	r = ibv_post_send(p->qp, &wr, &bad);
	if (r)
		return -r;
	atomic_fetch_add_explicit(&ep->dest.ah->out, 1, memory_order_relaxed);
	p->sends[p->head++ % p->n_send] = (struct ud_flight){.ah = ep->dest.ah,
							   .conn_id = ep->start.conn_id,
							   .recv = recv,
							   .buf = out_buf};
	return 0;
}

bool ud_begin(struct hot *h, struct endpoint *ep, uint32_t size, struct outgoing *o)
{
	struct ud_port *p = ep->ud;
	uint16_t i;

	if (p->live && !p->n_free)
		poll_sends(h, p);
	if (!p->live || !ep->dest.ah || !p->n_free)
		return false;
	/* The first bytes are written, the padding behind them never. */
	i = p->free_bufs[p->n_free - 1];
	*o = (struct outgoing){.buf = ud_send_buf(p, i),
			       .len = (uint32_t)MIN((size_t)size, ep->slot_size),
			       .slot = i};
	return true;
}

bool ud_send(struct hot *h, struct endpoint *ep, const struct outgoing *o)
{
	struct ud_port *p = ep->ud;
	bool is_inline = o->len <= p->max_inline;

	/* Taken before: post() may give others back, on top of it. */
	if (!is_inline)
		p->n_free--;
	if (!post(h, ep, o->buf, o->len, UD_NO_SLOT, is_inline ? UD_NO_SLOT : o->slot))
		return true;
	if (!is_inline)
		p->free_bufs[p->n_free++] = o->slot;
	return false;
}

int ud_send_echo(struct hot *h, struct endpoint *ep, const struct incoming *in)
{
	bool is_inline = in->len <= ep->ud->max_inline;
	int r = post(h, ep, in->buf, in->len, is_inline ? UD_NO_SLOT : in->slot, UD_NO_SLOT);

	return r ? r : !is_inline;
}

/* ---- where to ---- */

static void ask_for_ah(struct hot *h, struct endpoint *ep, const struct ibv_wc *wc,
		       const uint8_t *grh, struct mono now)
{
	struct hot_note n = {.type = HOT_AH_WANTED,
			     .handle = ep->handle,
			     .wc_src_qp = wc->src_qp,
			     .wc_flags = wc->wc_flags,
			     .wc_slid = wc->slid,
			     .wc_sl = wc->sl,
			     .wc_path_bits = wc->dlid_path_bits};

	if (mono_is_set(ep->asked_at) && mono_sub(now, ep->asked_at) < ASK_EVERY)
		return;
	if (!hot_may_note(h))
		return; /* the next message asks again */
	memcpy(n.grh, grh, UD_GRH);
	ep->asked_at = now;
	hot_note(h, &n);
}

/* After a reset of the queue pair the slot is posted again already. */
static bool holds(const struct endpoint *ep)
{
	return ep->held && ep->held_gen == ep->ud->gen;
}

static void drop_held(struct endpoint *ep)
{
	if (holds(ep)) {
		ep->ud->n_held--;
		repost(ep->ud, (uint16_t)(ep->held - 1));
	}
	ep->held = 0;
}

/* All together hold a part of the receives only: who gets no place sends again. */
bool ud_hold(struct endpoint *ep, const struct incoming *in)
{
	struct ud_port *p = ep->ud;

	drop_held(ep); /* the newest waits */
	if (p->n_held >= p->n_recv / 4)
		return false;
	p->n_held++;
	ep->held = 1u + in->slot;
	ep->held_gen = p->gen;
	ep->held_msg = in->m;
	ep->held_msg.t2 = in->at.ns;
	ep->held_len = in->len;
	return true;
}

void ud_take_ah(struct hot *h, struct endpoint *ep, struct ud_ah *ah, uint32_t qpn,
		uint32_t qkey)
{
	struct incoming in;

	ep->dest = (struct ud_dest){.ah = ah, .qpn = qpn, .qkey = qkey};
	ep->dest_stale = false;
	if (!holds(ep) || !ep->ud->live) {
		drop_held(ep);
		return;
	}
	in = (struct incoming){.slot = (uint16_t)(ep->held - 1),
			       .len = ep->held_len,
			       .m = ep->held_msg};
	in.buf = ud_recv_buf(ep->ud, in.slot) + UD_GRH;
	ep->held = 0;
	ep->ud->n_held--;
	if (!hot_echo(h, ep, &in))
		repost(ep->ud, in.slot);
	repost_flush(ep->ud);
}

void ud_forget(struct hot *h, struct endpoint *ep)
{
	(void)h;
	if (!ep->ud)
		return;
	drop_held(ep);
	repost_flush(ep->ud);
	ep->dest.ah = NULL;
}

/* ---- what comes in ---- */

/* Right ids from a wrong place. A GID of RoCE is the address itself. */
static bool wrong_place(const struct endpoint *ep, const struct ud_source *from)
{
	static const uint8_t none[16];
	uint8_t want[16];

	if (!ep->ud->ethernet || !memcmp(from->gid, none, 16))
		return false;
	ud_gid_of_addr(&ep->start.remote, want);
	return memcmp(from->gid, want, 16) != 0;
}

static void learn(struct hot *h, struct endpoint *ep, const struct ibv_wc *wc,
		  const uint8_t *grh, const struct ud_source *from, struct mono now)
{
	bool moved = !ud_source_equal(from, &ep->from);

	/* tx knows its way from the connection manager, and the echo confirms it. */
	if (ep->start.role == ROLE_TX) {
		ep->from = *from;
		return;
	}
	if (ep->dest.ah && !moved && !ep->dest_stale)
		return;
	if (moved)
		ep->asked_at = MONO_NEVER;
	ep->from = *from;
	ep->dest_stale = ep->dest_stale || moved;
	ask_for_ah(h, ep, wc, grh, now);
}

/* May it say where its sender is? What was sent before and comes once more may not: it can
 * come from anywhere. A ping has numbers that tell nothing of that. */
static bool may_lead(const struct endpoint *ep, const struct fabric_msg *m)
{
	uint64_t seen = ep->start.role == ROLE_TX ? 0 : ep->hb.highest_rx;

	if (ep->start.role == ROLE_TX || !ep->dest.ah)
		return true;
	/* A probe comes again under its number when its echo did not get there. */
	return m->type == FABRIC_PROBE ? m->seq >= seen
				       : m->type == FABRIC_HEARTBEAT && m->seq > seen;
}

/* true: the slot stays in use. */
static bool received(struct hot *h, struct ud_port *p, const struct ibv_wc *wc,
		     struct mono at)
{
	uint16_t slot = (uint16_t)WR_SLOT(wc->wr_id);
	uint8_t *grh = ud_recv_buf(p, slot);
	struct incoming in = {.buf = grh + UD_GRH, .slot = slot, .at = at};
	struct ud_source from;
	struct endpoint *ep;
	bool busy;
	int r;

	if (wc->byte_len < UD_GRH) {
		count_drop(h->w, DROP_SHORT);
		return false;
	}
	in.len = wc->byte_len - UD_GRH;
	r = fabric_decode(in.buf, in.len, &in.m);
	if (r < 0) {
		count_drop(h->w, (enum drop)(-r - 1));
		return false;
	}
	ep = hot_find(h, in.m.conn_id);
	if (!ep || ep->ud != p) {
		count_drop(h->w, DROP_UNKNOWN);
		return false;
	}
	ud_source_read(grh, wc, &from);
	if (wrong_place(ep, &from)) {
		hot_drop(h, ep, DROP_SOURCE);
		return false;
	}
	if (!hot_is_genuine(h, ep, &in))
		return false;
	if (may_lead(ep, &in.m))
		learn(h, ep, wc, grh, &from, at);
	busy = hot_receive(h, ep, &in);
	hot_act(h, ep);
	return busy;
}

static void one(struct hot *h, struct ud_port *p, const struct ibv_wc *wc, struct mono at)
{
	if (wc->wr_id >> 32 != p->gen)
		return; /* of before a reset */
	if (wc->status != IBV_WC_SUCCESS)
		broken(h, p, wc, 0);
	else if (p->live && received(h, p, wc, at))
		return;
	repost(p, (uint16_t)WR_SLOT(wc->wr_id));
}

/* Receives are posted again after the look, so that it is seen when all were used up:
 * then others may have come for which there was none. */
void ud_poll(struct hot *h, struct ud_port *p)
{
	struct ibv_wc wc[WC_BATCH];
	struct mono at[WC_BATCH];
	/* Each endpoint that is due looks; in a flood all of them would find it full. */
	unsigned total = 0, most = p->looked < 4u * p->n_recv ? p->n_recv : WC_BATCH;
	int n;

	do {
		n = p->live ? wcq_poll(&p->recv, wc, at, WC_BATCH) : 0;
		for (int i = 0; i < n; i++)
			one(h, p, &wc[i], at[i]);
		total += (unsigned)MAX(n, 0);
	} while (n == WC_BATCH && total < most);
	p->looked += total;
	if (total >= p->n_recv)
		count_drop(h->w, DROP_KERNEL);
	p->more = p->live && n == WC_BATCH;
	h->more = h->more || p->more;
	if (p->live && p->head != p->tail)
		poll_sends(h, p);
	repost_flush(p);
}

/* ---- coming and going ---- */

void ud_live(struct hot *h, struct ud_port *p)
{
	assert(!p->live && h->n_ports < UD_PORTS);
	h->ports[h->n_ports++] = p;
	p->live = true;
	if (p->gen != p->recv_gen) { /* all are posted anew */
		p->gen = p->recv_gen;
		p->n_repost = p->n_held = 0;
	}
	p->head = p->tail = 0;
	p->n_free = 0;
	for (uint16_t i = 0; i < UD_BUFS; i++)
		p->free_bufs[p->n_free++] = i;
	wcq_arm(&p->recv);
	ud_poll(h, p);
}

void ud_stop(struct hot *h, struct ud_port *p)
{
	struct hot_note n = {.type = HOT_UD_STOPPED, .port = p};

	while (p->tail != p->head)
		release(p, &p->sends[p->tail++ % p->n_send]);
	p->n_repost = 0;
	p->live = false;
	p->send_gen++;
	for (unsigned i = 0; i < h->n_ports; i++)
		if (h->ports[i] == p)
			h->ports[i] = h->ports[--h->n_ports];
	hot_note(h, &n);
}
