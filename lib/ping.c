/* SPDX-License-Identifier: BSD-2-Clause */
#include "ping.h"

#include <stdlib.h>

struct ping *ping_new(const struct ep_ping *order, uint32_t mtu, uint32_t max,
		      unsigned window, struct mono now)
{
	uint32_t size = order->size ? order->size : MIN(mtu, max);
	struct ping *p;

	if (size > max)
		return NULL;
	p = xcalloc(1, sizeof(*p));
	p->order = *order;
	p->size = MAX(size, (uint32_t)EP_PING_SIZE_MIN);
	p->window = MAX(MIN(window, (unsigned)PING_WINDOW), 1u);
	p->next = p->oldest = 1;
	p->begun = p->next_tx = now;
	p->tell_at = mono_add(now, PING_TELL_NS);
	return p;
}

struct ping *ping_free(struct ping *p)
{
	if (!p)
		return NULL;
	hist_done(&p->rtt);
	hist_done(&p->net);
	hist_done(&p->host);
	free(p);
	return NULL;
}

static struct ping_pending *slot(struct ping *p, uint32_t n)
{
	return &p->pending[n % PING_WINDOW];
}

static int64_t timeout_ns(const struct ping *p)
{
	return (int64_t)p->order.timeout_us * NSEC_PER_USEC;
}

static void settle(struct ping *p, uint32_t n)
{
	slot(p, n)->open = false;
	while (p->oldest < p->next && !slot(p, p->oldest)->open)
		p->oldest++;
}

static void lose(struct ping *p, uint32_t n)
{
	p->stats.lost++;
	p->stats.consecutive_lost++;
	settle(p, n);
}

/* All wait equally long, so the oldest is lost first. */
static void find_losses(struct ping *p, struct mono now)
{
	while (p->oldest < p->next && mono_due(slot(p, p->oldest)->lost_at, now))
		lose(p, p->oldest);
}

/* Numbers between the oldest one that is open and the next: they hold their slots. */
static uint32_t held(const struct ping *p)
{
	return p->next - p->oldest;
}

static bool may_send(const struct ping *p)
{
	return p->next <= p->order.count && held(p) < (p->order.interval_us ? p->window : 1);
}

static struct mono send_at(const struct ping *p)
{
	struct mono gap = p->next > 1 ? mono_add(p->sent_at, PING_GAP_NS) : p->begun;

	return p->order.interval_us && p->next_tx.ns > gap.ns ? p->next_tx : gap;
}

enum ping_do ping_step(struct ping *p, struct mono now, uint64_t *ret_seq)
{
	find_losses(p, now);
	if (p->next > p->order.count && !held(p))
		return PING_DONE;
	if (may_send(p) && mono_due(send_at(p), now)) {
		*ret_seq = (uint64_t)p->order.id << 32 | p->next;
		return PING_SEND;
	}
	if (mono_due(p->tell_at, now)) {
		p->tell_at = mono_add(now, PING_TELL_NS);
		return PING_TELL;
	}
	return PING_NOTHING;
}

struct mono ping_deadline(const struct ping *p)
{
	struct mono d = p->tell_at;

	if (p->oldest < p->next)
		d = mono_first(d, p->pending[p->oldest % PING_WINDOW].lost_at);
	if (may_send(p))
		d = mono_first(d, send_at(p));
	return p->next > p->order.count && !held(p) ? p->begun : d;
}

bool ping_is_losing(const struct ping *p, struct mono now)
{
	return p->oldest < p->next && mono_due(p->pending[p->oldest % PING_WINDOW].lost_at, now);
}

static void begin(struct ping *p, struct mono now)
{
	int64_t interval = (int64_t)p->order.interval_us * NSEC_PER_USEC;

	*slot(p, p->next) = (struct ping_pending){
		.sent = now, .lost_at = mono_add(now, timeout_ns(p)), .open = true};
	p->next++;
	p->sent_at = now;
	p->stats.sent++;
	p->next_tx = mono_add(p->next_tx, interval);
	/* After a stall the schedule begins anew with one message at once. */
	if (mono_sub(now, p->next_tx) > interval)
		p->next_tx = now;
}

void ping_sent(struct ping *p, uint64_t seq, struct mono now)
{
	if ((uint32_t)seq == p->next)
		begin(p, now);
}

void ping_not_sent(struct ping *p, uint64_t seq, struct mono now)
{
	if ((uint32_t)seq != p->next)
		return;
	begin(p, now);
	lose(p, (uint32_t)seq);
}

/* The stamps come from the wire: believe them only where they can be true. */
static void note_round_trip(struct ping *p, const struct ping_pending *e, int64_t t1,
			    int64_t t2, int64_t t3, struct mono now)
{
	bool t1_ok = t1 >= e->sent.ns && t1 <= now.ns;
	int64_t rtt = now.ns - (t1_ok ? t1 : e->sent.ns);

	hist_add(&p->rtt, rtt);
	p->last = (uint64_t)MAX(rtt, 1);
	if (t2 > 0 && t3 >= t2 && t3 - t2 <= rtt) {
		hist_add(&p->host, t3 - t2);
		hist_add(&p->net, rtt - (t3 - t2));
	}
}

bool ping_on_echo(struct ping *p, uint64_t seq, int64_t t1, int64_t t2, int64_t t3,
		  struct mono now)
{
	uint32_t n = (uint32_t)seq;

	if (seq >> 32 != p->order.id || n >= p->next)
		return false;
	/* What is late by a little, in a turn that has not looked yet, is lost as well. */
	find_losses(p, now);
	if (n < p->oldest || !slot(p, n)->open) {
		p->stats.dropped++;
		return false;
	}
	note_round_trip(p, slot(p, n), t1, t2, t3, now);
	p->stats.received++;
	p->stats.consecutive_lost = 0;
	settle(p, n);
	return true;
}

void ping_stalled(struct ping *p, int64_t ns, struct mono now)
{
	if (ns <= 0)
		return;
	for (uint32_t n = p->oldest; n < p->next; n++)
		slot(p, n)->lost_at.ns =
			MIN(slot(p, n)->lost_at.ns + ns, now.ns + timeout_ns(p));
}

void ping_abort(struct ping *p)
{
	while (held(p))
		lose(p, p->oldest);
	p->order.count = p->next - 1;
}

void ping_stats(const struct ping *p, struct ep_stats *ret)
{
	*ret = p->stats;
	ret->samples = ret->samples_all = (uint32_t)hist_samples(&p->rtt);
	if (!ret->samples)
		return;
	ret->rtt_min = (uint64_t)p->rtt.min;
	ret->rtt_mean = hist_mean(&p->rtt);
	ret->rtt_p50 = ret->rtt_all_p50 = hist_quantile(&p->rtt, 500);
	ret->rtt_p99 = ret->rtt_all_p99 = hist_quantile(&p->rtt, 990);
	ret->rtt_max = (uint64_t)p->rtt.max;
	ret->rtt_last = p->last;
	ret->net_p50 = hist_quantile(&p->net, 500);
	ret->host_p50 = hist_quantile(&p->host, 500);
}

bool ping_may_echo(struct ping_limit *l, struct mono now)
{
	const int64_t each = NSEC_PER_SEC / PING_ECHO_PER_SEC;
	int64_t paid = MAX(l->paid, now.ns - PING_ECHO_BURST * each);

	if (paid > now.ns)
		return false;
	l->paid = paid + each;
	return true;
}
