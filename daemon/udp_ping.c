/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Pings of the udp transport: the engine (lib/ping.h) in an endpoint's turn, its echoes,
 * and what is told of it.
 */
#include "udp_internal.h"

#define PAYLOAD_MAX	65487 /* what IPv6 carries without jumbograms */
#define STALL_PART	4     /* of the timeout: shorter stalls give no more time */

static bool runs(const struct ep *ep)
{
	return ep->role == ROLE_TX && ep->ping;
}

static void tell(struct udp_transport *t, struct ep *ep, bool done, const char *why)
{
	struct ep_event *ev = udp_emit(t, ep, EP_PONG, STAGE_UP);

	ev->status = (int32_t)ep->ping->order.id;
	ev->ping_done = done;
	(void)str_copy(ev->text, sizeof(ev->text), why);
	ping_stats(ep->ping, &ev->stats);
	ev->stats.clock = EP_CLOCK_KERNEL;
}

static void refuse(struct udp_transport *t, const struct ep *ep, uint32_t id,
		   const char *why)
{
	struct ep_event *ev = udp_emit(t, ep, EP_PONG, STAGE_UP);

	ev->status = (int32_t)id;
	ev->ping_done = true;
	(void)str_copy(ev->text, sizeof(ev->text), why);
}

void udp_ping_begin(struct udp_transport *t, struct ep *ep, const struct ep_ping *order)
{
	struct mono now = clock_now();

	udp_ping_done(ep);
	if (!order->count)
		return;
	if (ep->role != ROLE_TX || (ep->state != EPS_PROBING && ep->state != EPS_BEATING)) {
		refuse(t, ep, order->id, "not probing");
		return;
	}
	ep->ping = ping_new(order, ep->path_mtu ? ep->path_mtu : ep->hb.large_size, PAYLOAD_MAX,
			    PING_WINDOW, now);
	if (!ep->ping) {
		refuse(t, ep, order->id, "no datagram is so long");
		return;
	}
	udp_set_due(t, ep, mono_first(ep->due, now));
}

static void send_ping(struct ep *ep, uint64_t seq)
{
	struct fabric_msg m = {
		.type = FABRIC_PING,
		.length = ep->ping->size,
		.conn_id = ep->peer_conn_id,
		.epoch = ep->epoch,
		.seq = seq,
	};

	udp_queue(ep, &m);
}

void udp_ping_step(struct udp_transport *t, struct ep *ep, struct mono now)
{
	uint64_t seq;

	/* A full batch is flushed while queueing, which may fail the endpoint. */
	while (runs(ep)) {
		switch (ping_step(ep->ping, now, &seq)) {
		case PING_NOTHING:
			return;
		case PING_SEND:
			ping_sent(ep->ping, seq, now);
			send_ping(ep, seq);
			break;
		case PING_TELL:
			tell(t, ep, false, "");
			break;
		case PING_DONE:
			tell(t, ep, true, "");
			ep->ping = ping_free(ep->ping);
			break;
		}
	}
}

struct mono udp_ping_deadline(const struct ep *ep)
{
	return runs(ep) ? ping_deadline(ep->ping) : MONO_NEVER;
}

bool udp_ping_is_losing(const struct ep *ep, struct mono now)
{
	return runs(ep) && ping_is_losing(ep->ping, now);
}

void udp_ping_done(struct ep *ep)
{
	if (runs(ep))
		ep->ping = ping_free(ep->ping);
}

int udp_ping_take(struct ep *ep, const struct fabric_msg *m, struct mono when)
{
	if (ep->role == ROLE_TX)
		return ep->ping && ping_on_echo(ep->ping, m->seq, m->t1, m->t2, m->t3, when)
			       ? 0
			       : -(1 + DROP_REPLAY);
	if (ep->state != EPS_PROBING && ep->state != EPS_BEATING)
		return -(1 + DROP_STATE);
	if (!ping_may_echo(&ep->echoes, when))
		return -(1 + DROP_LIMIT);
	udp_send_echo(ep, m, when);
	return 0;
}

void udp_ping_stalled(struct ep *ep, int64_t ns, struct mono now)
{
	if (runs(ep) &&
	    ns >= (int64_t)ep->ping->order.timeout_us * NSEC_PER_USEC / STALL_PART)
		ping_stalled(ep->ping, ns, now);
}

void udp_ping_fail(struct udp_transport *t, struct ep *ep, const char *why)
{
	if (!runs(ep))
		return;
	ping_abort(ep->ping);
	tell(t, ep, true, why);
	ep->ping = ping_free(ep->ping);
}
