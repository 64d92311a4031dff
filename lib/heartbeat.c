/* SPDX-License-Identifier: BSD-2-Clause */
#include "heartbeat.h"

#include <stdlib.h>

#define LARGE_EVERY	 10
#define LOST_AFTER_LATER 16 /* messages sent after one whose successor was echoed */
#define RESEND_MIN	 (100 * NSEC_PER_MSEC) /* shorter: a busy host, not a loss */
#define RESEND_MAX	 (500 * NSEC_PER_MSEC)
#define STATS_NEWS_NS	 NSEC_PER_SEC
#define EARLY_PART	 512

void hb_shared_init(struct hb_shared *s)
{
	*s = (struct hb_shared){
		.net = rtt_new(),
		.host = rtt_new(),
		.peer = rtt_new(),
		.timers = rtt_new(),
	};
}

void hb_shared_done(struct hb_shared *s)
{
	s->net = rtt_free(s->net);
	s->host = rtt_free(s->host);
	s->peer = rtt_free(s->peer);
	s->timers = rtt_free(s->timers);
}

/* @from to @to is within the whole and long enough for what the peer took. */
static bool fits(int64_t from, int64_t to, int64_t whole, int64_t peer)
{
	return from > 0 && to > from && to - from <= whole && to - from >= peer;
}

enum ep_clock hb_split(struct hb_shared *s, const struct hb_stamps *t, struct mono now)
{
	int64_t whole = t->t4 - t->t1, peer = t->t3 - t->t2, wire = whole;
	enum ep_clock clock = EP_CLOCK_HOST;

	if (t->t1 <= 0 || t->t2 <= 0 || peer < 0 || peer > whole)
		return EP_CLOCK_NONE;
	if (fits(t->d1, t->d4, whole, peer)) {
		clock = EP_CLOCK_DEVICE;
		wire = t->d4 - t->d1;
	} else if (fits(t->k1, t->k4, whole, peer)) {
		clock = EP_CLOCK_KERNEL;
		wire = t->k4 - t->k1;
	}
	if (clock < s->clock && mono_sub(now, s->split_at) < HB_CLOCK_KEPT_NS)
		return EP_CLOCK_NONE;
	s->split_at = now;
	if (clock != s->clock) {
		rtt_clear(s->net);
		rtt_clear(s->host);
		rtt_clear(s->peer);
		s->clock = (uint8_t)clock;
	}
	rtt_add(s->net, wire - peer, now);
	rtt_add(s->host, whole - wire + peer, now);
	rtt_add(s->peer, peer, now);
	return clock;
}

void hb_init(struct hb *h, const struct ep_start *s)
{
	*h = (struct hb){
		.role = s->role,
		.interval = MAX((int64_t)s->heartbeat_us, 1) * NSEC_PER_USEC,
		.probes_small = s->probe_small,
		.probes_large = s->probe_large,
		.large_size = MAX(s->probe_size, (uint32_t)HB_SMALL),
	};
	h->detect = h->interval * MAX((int64_t)s->multiplier, 1);
	if (h->role == ROLE_TX) {
		h->next_seq = 1;
		h->room = ARRAY_LEN(h->few);
		h->rtt = rtt_new();
	}
}

void hb_done(struct hb *h)
{
	h->phase = HB_OFF;
	if (h->role != ROLE_TX)
		return;
	h->rtt = rtt_free(h->rtt);
	free(h->ring);
	h->ring = NULL;
	h->n_out = 0;
	h->room = ARRAY_LEN(h->few);
}

size_t hb_memory(const struct hb *h)
{
	if (h->role != ROLE_TX)
		return 0;
	return (h->rtt ? rtt_memory(h->rtt) : 0) +
	       (h->ring ? h->room * sizeof(*h->ring) : 0);
}

void hb_start_probes(struct hb *h, struct mono now)
{
	h->phase = HB_PROBE;
	h->stats_at = h->last_life = now;
	h->news = true;
	if (h->role == ROLE_TX)
		h->next_tx = now;
}

static int64_t next_interval(const struct hb *h, uint64_t rnd)
{
	return h->interval - (int64_t)(mix64(rnd) % (uint64_t)(h->interval / 10 + 1));
}

/* tx: the first one within an interval, at any time of it, and no later than the schedule
 * of the messages after the last probe says: no gap for rx. */
void hb_start_beats(struct hb *h, struct mono now, uint64_t rnd)
{
	int64_t wait = 1 + (int64_t)(mix64(rnd) % (uint64_t)h->interval);

	h->phase = HB_BEAT;
	h->last_life = now;
	if (!mono_is_set(h->stats_at))
		h->stats_at = now;
	if (h->role != ROLE_TX)
		return;
	h->probe_seq = 0;
	h->probe_resend = MONO_NEVER;
	h->next_tx = mono_first(h->next_tx, mono_add(now, wait));
}

void hb_stop(struct hb *h)
{
	h->phase = HB_OFF;
	h->stats_at = MONO_NEVER;
	h->late = false;
	if (h->role != ROLE_TX)
		return;
	h->next_tx = h->probe_resend = MONO_NEVER;
	h->probe_seq = 0;
}

static uint32_t probes_total(const struct hb *h)
{
	return (uint32_t)h->probes_small + h->probes_large;
}

/* --- messages that are out ------------------------------------------------------- */

static struct hb_pending *pending(struct hb *h, uint64_t seq)
{
	return &(h->ring ? h->ring : h->few)[seq % h->room];
}

static uint64_t oldest(const struct hb *h)
{
	return h->next_seq - h->n_out;
}

static struct mono lost_at(const struct hb *h, const struct hb_pending *p)
{
	return mono_add(p->sent, h->detect + p->excused_us * NSEC_PER_USEC);
}

static void note_lost(struct hb *h, uint64_t n)
{
	h->stats.lost += (uint32_t)n;
	h->news = true;
}

static void count_up(uint8_t *n)
{
	if (*n < UINT8_MAX)
		++*n;
}

/* A large one counts as such only when something after it came through. */
static void give_up(struct hb *h, uint64_t seq)
{
	struct hb_pending *p = pending(h, seq);

	if (p->large && h->highest_echo > seq)
		count_up(&h->stats.large_lost);
	p->fate = HB_MISSED;
	note_lost(h, 1);
	h->stats.consecutive_lost++;
}

static void forget_answered(struct hb *h)
{
	while (h->n_out && pending(h, oldest(h))->fate == HB_ANSWERED)
		h->n_out--;
}

static void grow(struct hb *h)
{
	uint16_t room = (uint16_t)(2 * h->room);
	struct hb_pending *ring = xcalloc(room, sizeof(*ring));

	for (uint64_t seq = oldest(h); seq != h->next_seq; seq++)
		ring[seq % room] = *pending(h, seq);
	free(h->ring);
	h->ring = ring;
	h->room = room;
}

/* A place for the next number. One that was given up is remembered as long again as it
 * was waited for, if there is no need of its place. */
static void make_room(struct hb *h, struct mono now)
{
	struct hb_pending *p;

	forget_answered(h);
	if (h->n_out < h->room)
		return;
	p = pending(h, oldest(h));
	if (p->fate == HB_MISSED && mono_due(mono_add(lost_at(h, p), h->detect), now))
		h->n_out--;
	else if (h->room < HB_WINDOW)
		grow(h);
	else {
		if (p->fate == HB_OPEN)
			give_up(h, oldest(h));
		h->n_out--;
	}
	forget_answered(h);
}

static void find_losses(struct hb *h, struct mono now)
{
	if (h->role != ROLE_TX)
		return;
	for (uint64_t seq = oldest(h); seq != h->next_seq; seq++) {
		struct hb_pending *p = pending(h, seq);

		if (p->fate != HB_OPEN || seq == h->probe_seq)
			continue;
		if (mono_due(lost_at(h, p), now) ||
		    (h->highest_echo > seq &&
		     h->next_seq - 1 - seq >= LOST_AFTER_LATER))
			give_up(h, seq);
	}
}

/* --- what to do ------------------------------------------------------------------ */

static int64_t resend_after(const struct hb *h)
{
	return rto_wait(&h->rto, h->interval / 2, h->probe_tries, RESEND_MIN, RESEND_MAX);
}

static void note_timer(struct hb *h, struct mono due, struct mono now)
{
	if (h->shared && h->shared->timers)
		rtt_add(h->shared->timers, mono_sub(now, due), now);
}

int64_t hb_early(const struct hb *h)
{
	return h->interval / EARLY_PART;
}

/* The caller may fail to send: then hb_sent() does not come, and the same number is due
 * again one interval later, never at once. */
static enum hb_do step_send(struct hb *h, struct mono now, uint64_t rnd,
			    uint64_t *ret_seq, uint32_t *ret_size)
{
	bool probing = h->phase == HB_PROBE && h->probes_done < probes_total(h);
	bool again = probing && h->probe_seq;
	bool large;

	if (!mono_due(again ? h->probe_resend : h->next_tx,
		      probing ? now : mono_add(now, hb_early(h))))
		return HB_NOTHING;
	if (!again && h->phase == HB_BEAT)
		note_timer(h, h->next_tx, now);
	*ret_seq = again ? h->probe_seq : h->next_seq;
	if (probing)
		large = h->probes_done >= h->probes_small;
	else
		large = h->phase == HB_BEAT && *ret_seq % LARGE_EVERY == 0;
	h->large_due = large && h->large_size > HB_SMALL;
	*ret_size = large ? h->large_size : HB_SMALL;
	if (probing) {
		h->probe_resend = h->next_tx = mono_add(now, resend_after(h));
		h->probe_tries = (uint8_t)MIN(h->probe_tries + 1, UINT8_MAX);
	} else {
		h->next_tx = mono_add(now, next_interval(h, rnd));
	}
	return HB_SEND;
}

static bool watches(const struct hb *h)
{
	return h->phase == HB_BEAT;
}

static bool is_silent(const struct hb *h, struct mono now)
{
	return mono_due(mono_add(h->last_life, h->detect), now);
}

bool hb_silent(const struct hb *h, struct mono now)
{
	return watches(h) && !h->late && is_silent(h, now);
}

static struct mono next_stats(const struct hb *h)
{
	int64_t every = h->shared ? h->shared->stats_every : 0;

	every = every ? every : HB_STATS_NS;
	return mono_add(h->stats_at, h->news ? MIN(STATS_NEWS_NS, every) : every);
}

enum hb_do hb_step(struct hb *h, struct mono now, uint64_t rnd, uint64_t *ret_seq,
		   uint32_t *ret_size)
{
	bool silent = watches(h) && is_silent(h, now);

	if (h->phase == HB_OFF)
		return HB_NOTHING;
	find_losses(h, now);
	if (h->phase == HB_PROBE && !h->probes_told &&
	    h->probes_done >= probes_total(h)) {
		h->probes_told = true;
		return HB_PROBES_DONE;
	}
	if (silent != h->late) {
		h->late = silent;
		return silent ? HB_LATE : HB_ALIVE;
	}
	if (h->role == ROLE_TX && step_send(h, now, rnd, ret_seq, ret_size) == HB_SEND)
		return HB_SEND;
	if (mono_due(next_stats(h), now)) {
		h->stats_at = now;
		h->news = false;
		return HB_STATS;
	}
	return HB_NOTHING;
}

struct mono hb_deadline(const struct hb *h)
{
	struct mono d;

	if (h->phase == HB_OFF)
		return MONO_NEVER;
	d = next_stats(h);
	if (h->role == ROLE_TX)
		d = mono_first(d, h->probe_seq ? h->probe_resend : h->next_tx);
	if (watches(h) && !h->late)
		d = mono_first(d, mono_add(h->last_life, h->detect));
	return d;
}

void hb_sent(struct hb *h, uint64_t seq, struct mono now)
{
	if (seq == h->probe_seq) { /* again: the one before is taken for lost */
		h->stats.resent++;
		note_lost(h, 1);
		if (h->large_due && h->probes_small)
			count_up(&h->stats.large_lost);
		return;
	}
	make_room(h, now);
	*pending(h, seq) = (struct hb_pending){
		.sent = now, .fate = HB_OPEN, .large = h->large_due};
	if (h->phase == HB_PROBE && h->probes_done < probes_total(h))
		h->probe_seq = seq;
	h->next_seq = seq + 1;
	h->n_out++;
}

/* The stamps come from the wire: believe them only where they can be true. */
static void note_round_trip(struct hb *h, const struct hb_pending *p, int64_t t1,
			    int64_t t2, int64_t t3, struct mono now)
{
	bool t1_ok = t1 >= p->sent.ns - h->interval && t1 > 0 && t1 <= now.ns;
	int64_t rtt = now.ns - (t1_ok ? t1 : p->sent.ns);

	rtt_add(h->rtt, rtt, now);
	/* Without its own stamp it may be the echo of an earlier copy. */
	if (t1_ok || !h->probe_tries)
		rto_sample(&h->rto, rtt);
	if (h->shared)
		(void)hb_split(h->shared,
			       &(struct hb_stamps){.t1 = now.ns - rtt, .t2 = t2, .t3 = t3,
						   .t4 = now.ns},
			       now);
}

bool hb_on_echo(struct hb *h, uint64_t seq, int64_t t1, int64_t t2, int64_t t3,
		struct mono now)
{
	struct hb_pending *p;

	if (h->phase == HB_OFF || h->role != ROLE_TX || !seq || seq < oldest(h) ||
	    seq >= h->next_seq)
		return false;
	p = pending(h, seq);
	if (p->fate == HB_ANSWERED)
		return false;
	note_round_trip(h, p, t1, t2, t3, now);
	/* One that was given up stays counted as lost: counters only grow. */
	if (p->fate == HB_OPEN)
		h->stats.received++;
	if (p->large)
		h->stats.large_lost = 0;
	h->stats.acked = 0;
	p->fate = HB_ANSWERED;
	forget_answered(h);
	h->stats.consecutive_lost = 0;
	h->last_life = now;
	h->highest_echo = MAX(h->highest_echo, seq);
	if (seq == h->probe_seq) {
		h->probe_seq = 0;
		h->probe_tries = 0;
		h->probe_resend = MONO_NEVER;
		h->probes_done++;
		h->next_tx = now; /* the next one at once */
		if (h->probes_done >= probes_total(h))
			h->next_tx = mono_add(now, h->interval - h->interval / 10);
	}
	return true;
}

void hb_on_ack(struct hb *h)
{
	if (h->role == ROLE_TX && h->phase != HB_OFF)
		count_up(&h->stats.acked);
}

/* Holes that leave the window of 64 are lost for good; until then they may be late. */
static void slide_window(struct hb *h, uint64_t seq)
{
	uint64_t ahead = seq - h->highest_rx, old, leaving;

	old = MIN(h->highest_rx, UINT64_C(64)); /* numbers that the window covers */
	leaving = ahead >= 64 ? old : old + ahead > 64 ? old + ahead - 64 : 0;
	for (uint64_t i = 0; i < leaving; i++)
		if (!((h->rx_bits >> (old - 1 - i)) & 1))
			note_lost(h, 1);
	if (ahead > 64)
		note_lost(h, ahead - 64);
	h->rx_bits = ahead < 64 ? h->rx_bits << ahead : 0;
	h->rx_bits |= 1;
	h->highest_rx = seq;
	h->stats.consecutive_lost = (uint32_t)MIN(ahead - 1, UINT32_MAX);
}

bool hb_on_message(struct hb *h, uint64_t seq, bool is_probe, struct mono now)
{
	uint64_t behind;

	/* Not counted before its time: the same number will come again. */
	if (h->phase == HB_OFF || h->role != ROLE_RX || !seq)
		return false;
	if (seq > h->highest_rx) {
		slide_window(h, seq);
	} else {
		behind = h->highest_rx - seq;
		if (behind >= 64 || (h->rx_bits >> behind) & 1)
			return false;
		h->rx_bits |= UINT64_C(1) << behind;
	}
	h->stats.received++;
	h->last_life = now;
	if (is_probe && h->probes_done < probes_total(h))
		h->probes_done++;
	return true;
}

bool hb_is_recent(const struct hb *h, uint64_t seq)
{
	return h->phase != HB_OFF && seq && seq + 64 > h->highest_rx;
}

static void excuse(struct hb_pending *p, int64_t ns)
{
	uint64_t us = p->excused_us + (uint64_t)(ns + NSEC_PER_USEC - 1) / NSEC_PER_USEC;

	p->excused_us = (uint32_t)MIN(us, UINT32_MAX);
}

void hb_stalled(struct hb *h, int64_t ns, struct mono now)
{
	if (h->phase == HB_OFF || ns <= 0)
		return;
	/* It excuses silence; it is no sign of life of who was silent before. */
	if (!h->late)
		h->last_life.ns = MIN(h->last_life.ns + ns, now.ns);
	if (h->role != ROLE_TX)
		return;
	for (uint64_t seq = oldest(h); seq != h->next_seq; seq++)
		if (pending(h, seq)->fate == HB_OPEN)
			excuse(pending(h, seq), ns);
	if (mono_is_set(h->probe_resend))
		h->probe_resend.ns =
			MAX(h->probe_resend.ns,
			    MIN(h->probe_resend.ns + ns, now.ns + resend_after(h)));
}

/* While late: what went unanswered so far, though not yet given up one by one. */
static uint32_t unanswered(const struct hb *h, struct mono now)
{
	const struct hb_pending *ring;
	uint32_t n = 0;

	if (!h->late)
		return 0;
	if (h->role == ROLE_RX)
		return (uint32_t)(mono_sub(now, h->last_life) / h->interval);
	ring = h->ring ? h->ring : h->few;
	for (uint64_t seq = oldest(h); seq != h->next_seq; seq++)
		n += ring[seq % h->room].fate == HB_OPEN;
	return n;
}

static void add_round_trips(const struct hb *h, struct mono now, struct ep_stats *st)
{
	struct rtt_summary s;

	rtt_summary(h->rtt, now, &s);
	st->samples = s.samples;
	st->rtt_min = s.min;
	st->rtt_mean = s.mean;
	st->rtt_p50 = s.p50;
	st->rtt_p99 = s.p99;
	st->rtt_max = s.max;
	st->rtt_last = s.last;
	rtt_all_summary(h->rtt, &s);
	st->samples_all = s.samples;
	st->rtt_all_p50 = s.p50;
	st->rtt_all_p99 = s.p99;
}

static uint64_t median(const struct rtt *r, struct mono now)
{
	struct rtt_summary s;

	rtt_summary(r, now, &s);
	return s.p50;
}

static void work_out(struct hb_shared *s, struct mono now)
{
	struct rtt_summary late;

	/* The first that is known is told at once. */
	if (s->told_net && mono_sub(now, s->told_at) < STATS_NEWS_NS)
		return;
	s->told_at = now;
	s->told_net = median(s->net, now);
	s->told_host = median(s->host, now);
	s->told_peer = median(s->peer, now);
	rtt_summary(s->timers, now, &late);
	s->told_late = late.p99;
}

static void add_shared(const struct hb *h, struct mono now, struct ep_stats *st)
{
	struct hb_shared *s = h->shared;

	if (!s)
		return;
	work_out(s, now);
	st->late_p99_us =
		(uint32_t)MIN(s->told_late / (uint64_t)NSEC_PER_USEC, UINT32_MAX);
	if (h->role != ROLE_TX)
		return;
	st->net_p50 = s->told_net;
	st->host_p50 = s->told_host;
	st->peer_p50 = s->told_peer;
	st->clock = s->clock;
}

void hb_stats(const struct hb *h, struct mono now, struct ep_stats *ret)
{
	const struct hb_counts *c = &h->stats;

	*ret = (struct ep_stats){
		.received = c->received,
		.dropped = c->dropped,
		.lost = c->lost,
		.consecutive_lost = c->consecutive_lost + unanswered(h, now),
		.large_lost = c->large_lost,
		.acked = c->acked,
	};
	if (h->role == ROLE_TX) {
		ret->sent = h->next_seq - 1 + c->resent;
		add_round_trips(h, now, ret);
	}
	add_shared(h, now, ret);
}
