/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hot_ping.c - pings on demand in the hot thread: the engine (lib/ping.h) in an
 * endpoint's turn. What is told of it waits like every event when the ring to main is
 * full; the last word is kept until it is there.
 */
#include "hot.h"

/* rc: half of the slots, so that a heartbeat always has one. */
#define WINDOW_RC  (EP_SLOTS / 2)
#define WINDOW_UD  256
#define STALL_PART 4 /* of the timeout: shorter stalls give no more time */

struct hot_ping {
	struct ping *engine; /* owned; NULL: it was not begun */
	uint32_t id;
	bool over;
	const char *why;
};

void hot_ping_done(struct endpoint *ep)
{
	if (ep->ping)
		ping_free(ep->ping->engine);
	free(ep->ping);
	ep->ping = NULL;
	ep->pending &= ~(1u << EP_PONG);
}

static void end(struct endpoint *ep, const char *why)
{
	ep->ping->over = true;
	ep->ping->why = why;
	ep->pending |= 1u << EP_PONG;
}

void hot_ping_begin(struct endpoint *ep, const struct ep_ping *order, struct mono now)
{
	hot_ping_done(ep);
	if (!order->count)
		return;
	ep->ping = xcalloc(1, sizeof(*ep->ping));
	ep->ping->id = order->id;
	if (ep->start.role != ROLE_TX || ep->hb.phase == HB_OFF) {
		end(ep, "not probing");
		return;
	}
	ep->ping->engine = ping_new(order, ep->hb.large_size, (uint32_t)ep->slot_size,
				    ep->ud ? WINDOW_UD : WINDOW_RC, now);
	if (!ep->ping->engine)
		end(ep, "longer than any message of this connection");
}

static bool runs(const struct endpoint *ep)
{
	return ep->ping && !ep->ping->over;
}

void hot_ping_step(struct hot *h, struct endpoint *ep, struct mono now)
{
	uint64_t seq;

	while (runs(ep) && !ep->failed) {
		struct ping *p = ep->ping->engine;
		struct mono sent;

		switch (ping_step(p, now, &seq)) {
		case PING_NOTHING:
			return;
		case PING_SEND:
			if (hot_send(h, ep, FABRIC_PING, seq, p->size, &sent))
				ping_sent(p, seq, sent);
			else
				ping_not_sent(p, seq, now);
			break;
		case PING_TELL:
			ep->pending |= 1u << EP_PONG;
			break;
		case PING_DONE:
			end(ep, "");
			break;
		}
	}
}

struct mono hot_ping_deadline(const struct endpoint *ep)
{
	return runs(ep) ? ping_deadline(ep->ping->engine) : MONO_NEVER;
}

bool hot_ping_is_losing(const struct endpoint *ep, struct mono now)
{
	return runs(ep) && ping_is_losing(ep->ping->engine, now);
}

void hot_ping_echoed(struct hot *h, struct endpoint *ep, const struct incoming *in)
{
	const struct fabric_msg *m = &in->m;

	if (!runs(ep) ||
	    !ping_on_echo(ep->ping->engine, m->seq, m->t1, m->t2, m->t3, in->at))
		hot_drop(h, ep, DROP_REPLAY);
}

void hot_ping_stalled(struct endpoint *ep, int64_t ns, struct mono now)
{
	if (runs(ep) && ns >= (int64_t)ep->ping->engine->order.timeout_us *
					NSEC_PER_USEC / STALL_PART)
		ping_stalled(ep->ping->engine, ns, now);
}

void hot_ping_fail(struct endpoint *ep, const char *why)
{
	if (!runs(ep))
		return;
	ping_abort(ep->ping->engine);
	end(ep, why);
}

void hot_ping_event(const struct hot *h, const struct endpoint *ep,
		    struct ep_event *ret)
{
	const struct hot_ping *p = ep->ping;

	ret->status = (int32_t)p->id;
	ret->ping_done = p->over;
	(void)str_copy(ret->text, sizeof(ret->text), p->why ? p->why : "");
	memset(&ret->stats, 0, sizeof(ret->stats));
	if (p->engine)
		ping_stats(p->engine, &ret->stats);
	ret->stats.clock = hot_clock(h);
}

void hot_ping_told(struct endpoint *ep)
{
	if (ep->ping->over)
		hot_ping_done(ep);
}
