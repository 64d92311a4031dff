/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <net/if.h>
#include <sys/ioctl.h>

#include "hot.h"

/* Histograms go with every STATS if these are told each 10 s, with each tenth if each
 * second; those for which there is no room go with the next STATS. */
#define ROUNDS_GAP_NS (HB_STATS_NS - NSEC_PER_SEC / 2)

/* IP, UDP, BTH, DETH, ICRC, as much as they may be. */
#define ROCE_OVERHEAD 80

#define EVENTS_PER_TURN 128
#define ACK_EVERY	16

void hot_drop(struct hot *h, struct endpoint *ep, enum drop reason)
{
	ep->hb.stats.dropped++;
	count_drop(h->w, reason);
}

/* ---- out ---- */

/* Does its interface carry it? The MTU may have been lowered since the path was made, and
 * soft-RoCE tries a packet that does not fit again and again, without end, at the cost of
 * the whole processor. */
static bool fits(const struct hot *h, const struct endpoint *ep, uint32_t size)
{
	struct ifreq r = {0};

	if (!ep->packet || size <= HB_SMALL || !ep->start.netdev[0] || h->mtu_fd < 0)
		return true;
	(void)str_copy(r.ifr_name, sizeof(r.ifr_name), ep->start.netdev);
	return ioctl(h->mtu_fd, SIOCGIFMTU, &r) < 0 ||
	       MIN(size, ep->packet) + ROCE_OVERHEAD <= (uint32_t)MAX(r.ifr_mtu, 0);
}

static bool begin(struct hot *h, struct endpoint *ep, uint32_t size, struct outgoing *o)
{
	return ep->ud ? ud_begin(h, ep, size, o) : rc_begin(ep, size, o);
}

bool hot_send(struct hot *h, struct endpoint *ep, uint8_t type, uint64_t seq, uint32_t size,
	      struct mono *ret_sent)
{
	struct fabric_msg m = {
		.type = type,
		.conn_id = ep->start.peer_conn_id,
		.epoch = ep->start.epoch,
		.seq = seq,
	};
	struct outgoing o;

	if (!fits(h, ep, size)) { /* as good as sent, and lost */
		*ret_sent = clock_now();
		return true;
	}
	if (!begin(h, ep, size, &o))
		return false;
	m.length = o.len;
	/* When it has arrived is wanted soon, unless the device stamps it. Of a ping one
	 * in a while will do: each costs this thread a wake-up. */
	if (!ep->ud && !ep->send.ex && (type != FABRIC_PING || seq % ACK_EVERY == 0))
		rc_arm_sends(ep);
	*ret_sent = clock_now();
	m.t1 = ret_sent->ns;
	fabric_encode(&m, key_of(ep), o.buf);
	return ep->ud ? ud_send(h, ep, &o) : rc_send(ep, &o, seq, *ret_sent);
}

static void send_message(struct hot *h, struct endpoint *ep, uint64_t seq, uint32_t size)
{
	struct mono sent;

	if (hot_send(h, ep, ep->hb.phase == HB_PROBE ? FABRIC_PROBE : FABRIC_HEARTBEAT, seq,
		     size, &sent))
		hb_sent(&ep->hb, seq, sent);
}

/* rx: answer from the slot it came in; the slot is posted again when that is sent. On ud
 * the first of all waits until it is known where to. */
bool hot_echo(struct hot *h, struct endpoint *ep, struct incoming *in)
{
	struct fabric_msg *m = &in->m;

	if (ep->ud && !ep->dest.ah)
		return ud_hold(ep, in);
	m->type = fabric_echo_type(m->type);
	m->conn_id = ep->start.peer_conn_id;
	m->t2 = in->at.ns ? in->at.ns : m->t2;
	m->t3 = MAX(clock_now().ns, m->t2);
	fabric_encode(m, key_of(ep), in->buf);
	return (ep->ud ? ud_send_echo(h, ep, in) : rc_send_echo(ep, in)) == 1;
}

/* ---- in ---- */

bool hot_is_genuine(struct hot *h, struct endpoint *ep, const struct incoming *in)
{
	if (in->m.epoch != ep->start.epoch)
		hot_drop(h, ep, DROP_EPOCH);
	else if (!fabric_verify(in->buf, key_of(ep)))
		hot_drop(h, ep, DROP_BAD_AUTH);
	else
		return true;
	return false;
}

/* rc knows when the message had arrived at the peer's device: what is left of the round
 * trip is the hosts' part. Where that is not known nothing is said, as what the peer's
 * stamps tell is another figure: the network's part with both hosts' wake-ups in it. That
 * is what ud has, and iWARP, where a send is complete when TCP has taken it. */
static void split_by_ack(struct endpoint *ep, struct fabric_msg *m, struct mono at)
{
	int64_t rtt = mono_sub(at, (struct mono){m->t1}), peer = m->t3 - m->t2;
	bool known = ep->acked_seq == m->seq && ep->acked_after > 0 &&
		     ep->acked_after <= rtt;
	struct hb_shared *s = ep->hb.shared;
	bool peer_known = m->t2 > 0 && peer > 0 && peer <= rtt;

	m->t2 = m->t3 = 0;
	if (!known)
		return;
	if (m->type == FABRIC_PING_ECHO) { /* it has figures of its own */
		m->t2 = 1;
		m->t3 = 1 + rtt - ep->acked_after;
		return;
	}
	rtt_add(s->net, ep->acked_after, at);
	rtt_add(s->host, rtt - ep->acked_after, at);
	if (peer_known)
		rtt_add(s->peer, peer, at);
}

bool hot_receive(struct hot *h, struct endpoint *ep, struct incoming *in)
{
	struct fabric_msg *m = &in->m;
	bool reply = !fabric_is_request(m->type);

	if (reply != (ep->start.role == ROLE_TX)) {
		hot_drop(h, ep, DROP_MALFORMED);
		return false;
	}
	/* Not probing yet: no answer, so the prober repeats it. */
	if (ep->hb.phase == HB_OFF)
		return false;
	if (reply) {
		if (!ep->ud && !ep->iwarp)
			split_by_ack(ep, m, in->at);
		if (m->type == FABRIC_PING_ECHO)
			hot_ping_echoed(h, ep, in);
		else
			(void)hb_on_echo(&ep->hb, m->seq, m->t1, m->t2, m->t3, in->at);
		return false;
	}
	if (!fits(h, ep, in->len)) { /* what cannot be answered was not there */
		hot_drop(h, ep, DROP_OVERSIZED);
		return false;
	}
	/* A ping is answered and forgotten. */
	if (m->type != FABRIC_PING) {
		(void)hb_on_message(&ep->hb, m->seq, m->type == FABRIC_PROBE, in->at);
	} else if (!ping_may_echo(&ep->echoes, in->at)) {
		hot_drop(h, ep, DROP_LIMIT);
		return false;
	}
	return hot_echo(h, ep, in);
}

/* ---- completions ---- */

void hot_poll_cq(struct hot *h, struct endpoint *ep)
{
	if (ep->ud)
		ud_poll(h, ep->ud);
	else
		rc_poll(h, ep);
}

/* First what there is, so that an answer does not wait for the arming; then once more,
 * as what came in between raises no event. */
static void on_rc_event(struct hot *h, struct wcq *q)
{
	struct endpoint *ep = q->owner;

	if (!ep->polled)
		return;
	rc_poll(h, ep);
	if (q->kind == WCQ_RC_RECV) {
		wcq_arm(q);
		rc_poll(h, ep);
	} else {
		ep->sends_armed = false;
	}
	if (!ep->failed)
		hot_act(h, ep);
}

static void on_ud_event(struct hot *h, struct wcq *q)
{
	struct ud_port *p = q->owner;

	if (!p->live)
		return;
	ud_poll(h, p);
	if (!p->live)
		return;
	wcq_arm(q);
	ud_poll(h, p);
}

void hot_drain_channel(struct hot *h)
{
	for (int i = 0; i < EVENTS_PER_TURN; i++) {
		struct ibv_cq *cq;
		void *context;
		struct wcq *q;

		if (ibv_get_cq_event(h->ctx->channel, &cq, &context)) {
			if (errno != EAGAIN && errno != EINTR)
				h->channel_dead = true;
			return;
		}
		/* Until the event is acknowledged cm cannot destroy the queue, and what
		 * it belongs to lives at least as long. */
		q = context;
		if (q && (q->kind == WCQ_RC_RECV || q->kind == WCQ_RC_SEND))
			on_rc_event(h, q);
		else if (q) /* none: the queue could not be destroyed */
			on_ud_event(h, q);
		ibv_ack_cq_events(cq, 1);
	}
}

/* ---- steps ---- */

/* tx, rc: the probes are done when their sends are complete, too. */
static bool sends_complete(const struct endpoint *ep)
{
	for (unsigned i = 0; !ep->ud && i < EP_SLOTS; i++)
		if (ep->out[i].seq && ep->out[i].seq <= ep->done_seq)
			return false;
	return true;
}

static void check_sends(struct hot *h, struct endpoint *ep)
{
	if (!ep->done_seq)
		return;
	if (!sends_complete(ep)) {
		rc_arm_sends(ep);
		rc_poll(h, ep);
		if (!sends_complete(ep))
			return;
	}
	ep->done_seq = 0;
	ep->pending |= 1u << EP_PROBES_DONE;
}

static void do_it(struct hot *h, struct endpoint *ep, enum hb_do what, uint64_t seq,
		  uint32_t size)
{
	switch (what) {
	case HB_NOTHING:
		break;
	case HB_SEND:
		send_message(h, ep, seq, size);
		break;
	case HB_PROBES_DONE:
		if (ep->start.role == ROLE_TX)
			ep->done_seq = ep->hb.next_seq - 1;
		else
			ep->pending |= 1u << EP_PROBES_DONE;
		break;
	case HB_LATE:
		ep->pending |= 1u << EP_LATE;
		ep->pending &= ~(1u << EP_ALIVE);
		break;
	case HB_ALIVE:
		ep->pending |= 1u << EP_ALIVE;
		ep->pending &= ~(1u << EP_LATE);
		break;
	case HB_STATS:
		ep->pending |= 1u << EP_STATS;
		break;
	}
}

static void act(struct hot *h, struct endpoint *ep, struct mono now)
{
	enum hb_do what;
	uint64_t seq;
	uint32_t size;

	do {
		h->seed = mix64(h->seed);
		what = hb_step(&ep->hb, now, h->seed, &seq, &size);
		do_it(h, ep, what, seq, size);
	} while (what != HB_NOTHING && !ep->failed);
	hot_ping_step(h, ep, now);
	check_sends(h, ep);
	hot_set_timer(h, ep);
	if (ep->pending)
		hot_flush(h, ep, now);
}

void hot_act(struct hot *h, struct endpoint *ep)
{
	if (!ep->failed)
		act(h, ep, clock_now());
}

void hot_step(struct hot *h, struct endpoint *ep)
{
	struct mono now = clock_now();

	/* What lies in the queue came in time: look before judging, and judge by the time
	 * before the look, as this thread may lose the processor in between. */
	if (mono_due(hb_deadline(&ep->hb), now) || hot_ping_is_losing(ep, now))
		hot_poll_cq(h, ep);
	if (!ep->failed)
		act(h, ep, now);
}

/* ---- events ---- */

static bool rounds_due(const struct hot *h, const struct endpoint *ep, struct mono now)
{
	return ep->start.role == ROLE_TX &&
	       (!mono_is_set(ep->rounds_at) ||
		mono_sub(now, ep->rounds_at) >= ROUNDS_GAP_NS) &&
	       ring_used(&h->w->rounds_out) < h->w->rounds_out.count;
}

/* The histogram behind the figures. */
static void tell_rounds(struct hot *h, struct endpoint *ep, struct mono now)
{
	struct wm_ep_rounds m = {.conn_id = ep->start.conn_id, .epoch = ep->start.epoch};
	struct hist window;
	int len;

	ep->rounds_at = now;
	rtt_window(ep->hb.rtt, now, &window);
	len = hist_export(&window, m.data, sizeof(m.data));
	hist_done(&window);
	if (len < 0)
		return;
	m.length = (uint16_t)len;
	wm_header(&m, WM_EP_ROUNDS, offsetof(struct wm_ep_rounds, data) + (size_t)len,
		  h->w->generation);
	(void)ring_push(&h->w->rounds_out, &m);
}

static bool flush(struct hot *h, struct endpoint *ep, struct mono now)
{
	static const enum ep_event_type order[] = {EP_PROBING, EP_PROBES_DONE, EP_LATE,
						   EP_ALIVE, EP_STATS, EP_PONG};

	for (size_t i = 0; i < ARRAY_LEN(order); i++) {
		struct wm_ep_event m = {0};

		if (!(ep->pending & (1u << order[i])))
			continue;
		wm_header(&m, WM_EP_EVENT, sizeof(m), h->w->generation);
		m.event.conn_id = ep->start.conn_id;
		m.event.epoch = ep->start.epoch;
		m.event.type = (uint8_t)order[i];
		m.event.stage = STAGE_UP;
		hb_stats(&ep->hb, now, &m.event.stats);
		if (ep->start.role == ROLE_TX) /* rx measures nothing */
			m.event.stats.clock = hot_clock(h);
		if (order[i] == EP_PONG)
			hot_ping_event(h, ep, &m.event);
		if (!ring_push(&h->w->hot_out, &m))
			return false;
		ep->pending &= ~(1u << order[i]);
		if (order[i] == EP_STATS && rounds_due(h, ep, now))
			tell_rounds(h, ep, now);
		if (order[i] == EP_PONG)
			hot_ping_told(ep);
		wake(h->w->wake_ctl);
	}
	return true;
}

void hot_flush(struct hot *h, struct endpoint *ep, struct mono now)
{
	if (flush(h, ep, now) || ep->in_backlog)
		return;
	ep->in_backlog = true;
	ep->next_backlog = h->backlog;
	h->backlog = ep;
}

void hot_flush_backlog(struct hot *h, struct mono now)
{
	while (h->backlog && flush(h, h->backlog, now)) {
		struct endpoint *ep = h->backlog;

		h->backlog = ep->next_backlog;
		ep->in_backlog = false;
	}
}
