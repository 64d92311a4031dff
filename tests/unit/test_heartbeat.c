/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "heartbeat.h"

#define MS NSEC_PER_MSEC

static const struct ep_start start = {
	.role = ROLE_TX,
	.multiplier = 3,
	.heartbeat_us = 100000,
	.probe_small = 2,
	.probe_large = 1,
	.probe_size = 4000,
};

static struct mono now;
static uint64_t rnd;
static uint64_t seq;
static uint32_t size;

static enum hb_do step(struct hb *h)
{
	rnd = mix64(rnd);
	return hb_step(h, now, rnd, &seq, &size);
}

static void setup_role(struct hb *h, enum conn_role role)
{
	struct ep_start s = start;

	s.role = (uint8_t)role;
	now = (struct mono){NSEC_PER_SEC};
	hb_init(h, &s);
}

/* Send what is due and echo it after @rtt_ns; true: HB_SEND was given. */
static bool send_and_echo(struct hb *h, int64_t rtt_ns)
{
	if (step(h) != HB_SEND)
		return false;
	hb_sent(h, seq, now);
	now = mono_add(now, rtt_ns);
	assert_true(hb_on_echo(h, seq, now.ns - rtt_ns, 0, 0, now));
	return true;
}

static void to_beats(struct hb *h)
{
	setup_role(h, ROLE_TX);
	hb_start_probes(h, now);
	for (int i = 0; i < 3; i++)
		assert_true(send_and_echo(h, MS));
	assert_int_equal(step(h), HB_PROBES_DONE);
	hb_start_beats(h, now, 1);
}

/* Go to the next deadline; what is to be done there. */
static enum hb_do advance(struct hb *h)
{
	struct mono d = hb_deadline(h);

	assert_true(mono_is_set(d));
	if (d.ns > now.ns)
		now = d;
	return step(h);
}

static void probes_go_one_at_a_time(void **state)
{
	struct hb h;

	(void)state;
	setup_role(&h, ROLE_TX);
	assert_int_equal(step(&h), HB_NOTHING); /* off */
	hb_start_probes(&h, now);
	assert_int_equal(step(&h), HB_SEND);
	assert_int_equal(seq, 1);
	assert_int_equal(size, HB_SMALL);
	hb_sent(&h, 1, now);
	assert_int_equal(step(&h), HB_NOTHING); /* the first is out */
	assert_true(hb_on_echo(&h, 1, 0, 0, 0, now));
	assert_true(send_and_echo(&h, MS));
	assert_int_equal(step(&h), HB_SEND);
	assert_int_equal(size, 4000);
	hb_sent(&h, seq, now);
	assert_int_equal(step(&h), HB_NOTHING);
	assert_true(hb_on_echo(&h, 3, 0, 0, 0, now));
	assert_int_equal(step(&h), HB_PROBES_DONE);
	assert_int_equal(step(&h), HB_NOTHING); /* told once */
	/* goes on at the interval, so that rx does not go late meanwhile */
	assert_int_equal(advance(&h), HB_SEND);
	assert_int_equal(size, HB_SMALL);
	hb_done(&h);
}

static void a_lost_probe_goes_again(void **state)
{
	struct hb h;

	(void)state;
	setup_role(&h, ROLE_TX);
	hb_start_probes(&h, now);
	assert_int_equal(step(&h), HB_SEND);
	hb_sent(&h, seq, now);
	for (int i = 0; i < 5; i++) {
		enum hb_do d = advance(&h);

		assert_int_equal(d == HB_STATS ? advance(&h) : d, HB_SEND);
		assert_int_equal(seq, 1); /* the same: rx counts it once */
		hb_sent(&h, seq, now);
	}
	/* Each wait twice the one before: 100, 200, 400 ms, and then no more. */
	assert_int_equal(now.ns, NSEC_PER_SEC + (100 + 200 + 400 + 500 + 500) * MS);
	assert_int_equal(h.stats.resent, 5);
	assert_int_equal(h.stats.lost, 5);
	assert_true(hb_on_echo(&h, 1, 0, 0, 0, now));
	assert_false(hb_on_echo(&h, 1, 0, 0, 0, now));
	assert_int_equal(h.probes_done, 1);
	hb_done(&h);
}

static void a_failed_send_waits(void **state)
{
	struct hb h;

	(void)state;
	setup_role(&h, ROLE_TX);
	hb_start_probes(&h, now);
	assert_int_equal(step(&h), HB_SEND); /* hb_sent() does not come */
	assert_int_equal(step(&h), HB_NOTHING);
	assert_int_equal(advance(&h), HB_SEND);
	assert_int_equal(seq, 1);
	hb_done(&h);
}

static void no_probes_wanted(void **state)
{
	struct ep_start s = start;
	struct hb h;

	(void)state;
	s.probe_small = s.probe_large = 0;
	hb_init(&h, &s);
	hb_start_probes(&h, now);
	assert_int_equal(step(&h), HB_PROBES_DONE);
	hb_done(&h);
}

static void beats_are_jittered_and_every_tenth_is_large(void **state)
{
	struct mono last = MONO_NEVER;
	int64_t gap, least = INT64_MAX, most = 0;
	struct hb h;
	int large = 0;

	(void)state;
	to_beats(&h);
	while (advance(&h) != HB_SEND) /* at any time of its interval */
		;
	last = now;
	hb_sent(&h, seq, now);
	hb_on_echo(&h, seq, 0, 0, 0, now);
	large += size == 4000;
	for (int n = 1; n < 200;) {
		enum hb_do d = advance(&h);

		assert_true(d == HB_SEND || d == HB_STATS);
		if (d != HB_SEND)
			continue;
		n++;
		large += size == 4000;
		gap = mono_sub(now, last);
		least = MIN(least, gap);
		most = MAX(most, gap);
		last = now;
		hb_sent(&h, seq, now);
		hb_on_echo(&h, seq, 0, 0, 0, now);
	}
	assert_int_equal(large, 20);
	assert_in_range(least, 90 * MS, 92 * MS);
	assert_in_range(most, 98 * MS, 100 * MS);
	hb_done(&h);
}

static void silence_is_late_and_an_echo_alive(void **state)
{
	struct mono life;
	struct ep_stats st;
	struct hb h;
	enum hb_do d;

	(void)state;
	to_beats(&h);
	life = h.last_life;
	while ((d = advance(&h)) != HB_LATE) {
		assert_int_equal(d, HB_SEND);
		hb_sent(&h, seq, now);
	}
	assert_int_equal(mono_sub(now, life), 300 * MS);
	hb_stats(&h, now, &st);
	assert_in_range(st.consecutive_lost, 3, 4);
	while (mono_sub(now, life) < 1500 * MS) { /* the edge comes once */
		d = advance(&h);
		assert_true(d == HB_SEND || d == HB_STATS);
		if (d == HB_SEND)
			hb_sent(&h, seq, now);
	}
	assert_true(hb_on_echo(&h, seq, 0, 0, 0, now));
	assert_int_equal(step(&h), HB_ALIVE);
	hb_stats(&h, now, &st);
	assert_int_equal(st.consecutive_lost, 0);
	assert_true(st.lost >= 10);
	hb_done(&h);
}

static void a_stall_is_not_the_peers_fault(void **state)
{
	struct hb h;

	(void)state;
	to_beats(&h);
	now = mono_add(now, 5000 * MS); /* the loop stood still */
	hb_stalled(&h, 4950 * MS, now);
	assert_int_equal(step(&h), HB_SEND); /* and not HB_LATE */
	hb_sent(&h, seq, now);
	now = mono_add(now, 200 * MS);
	assert_int_not_equal(step(&h), HB_LATE);
	now = mono_add(now, 51 * MS);
	assert_int_equal(step(&h), HB_LATE); /* put off, not switched off */
	now = mono_add(now, 500 * MS);
	hb_stalled(&h, 500 * MS, now); /* nor is it a sign of life */
	for (int i = 0; i < 4; i++)
		assert_int_not_equal(step(&h), HB_ALIVE);
	hb_done(&h);
}

static void a_stall_puts_off_losses_and_resends(void **state)
{
	struct hb h;

	(void)state;
	to_beats(&h);
	while (advance(&h) != HB_SEND)
		;
	hb_sent(&h, seq, now);
	now = mono_add(now, 1000 * MS); /* its echo may lie in our own queue */
	hb_stalled(&h, 990 * MS, now);
	while (step(&h) != HB_NOTHING)
		;
	assert_int_equal(h.stats.lost, 0);
	hb_done(&h);

	setup_role(&h, ROLE_TX);
	hb_stalled(&h, MS, now); /* nothing runs yet */
	hb_start_probes(&h, now);
	assert_int_equal(step(&h), HB_SEND);
	hb_sent(&h, seq, now);
	now = mono_add(now, 500 * MS);
	hb_stalled(&h, 480 * MS, now);
	assert_int_equal(step(&h), HB_NOTHING); /* not sent again yet */
	now = mono_add(now, 100 * MS);
	assert_int_equal(step(&h), HB_SEND);
	assert_int_equal(seq, 1);
	hb_done(&h);
}

static void beats_without_probes_and_a_full_window(void **state)
{
	struct hb h;

	(void)state;
	setup_role(&h, ROLE_TX);
	hb_start_beats(&h, now, 3);
	assert_in_range(mono_sub(hb_deadline(&h), now), 1, 100 * MS);
	h.detect = INT64_MAX / 4; /* nothing is old enough to be given up */
	for (uint64_t s = 1; s <= HB_WINDOW + 3; s++)
		hb_sent(&h, s, now);
	assert_int_equal(h.stats.lost, 3); /* those whose place was needed */
	assert_false(hb_on_echo(&h, 1, 0, 0, 0, now));
	assert_true(hb_on_echo(&h, 4, 0, 0, 0, now));
	hb_done(&h);
}

static void losses_by_age_and_by_overtaking(void **state)
{
	struct mono sent;
	struct hb h;
	uint64_t lost_seq;

	(void)state;
	to_beats(&h);
	while (advance(&h) != HB_SEND)
		;
	lost_seq = seq;
	hb_sent(&h, seq, now);
	sent = now;
	while (!h.stats.lost) { /* later ones are echoed */
		if (advance(&h) != HB_SEND)
			continue;
		hb_sent(&h, seq, now);
		hb_on_echo(&h, seq, 0, 0, 0, now);
	}
	assert_in_range(mono_sub(now, sent), 300 * MS, 400 * MS);
	assert_int_equal(h.stats.lost, 1);
	assert_true(hb_on_echo(&h, lost_seq, 0, 0, 0, now)); /* late: still life */
	assert_false(hb_on_echo(&h, lost_seq, 0, 0, 0, now));
	assert_int_equal(h.stats.lost, 1); /* counters only grow */
	hb_done(&h);

	to_beats(&h);
	h.detect = 100 * NSEC_PER_SEC;
	for (int n = 0; !h.stats.lost; n++) {
		while (advance(&h) != HB_SEND)
			;
		hb_sent(&h, seq, now);
		if (n)
			hb_on_echo(&h, seq, 0, 0, 0, now);
		else
			lost_seq = seq;
		assert_true(n <= 17);
	}
	assert_int_equal(seq - lost_seq, 17); /* 16 later ones, then the next step */
	hb_done(&h);
}

/* Beats for so many intervals; @small, @large: whether such ones are answered. */
static void beat(struct hb *h, int n, bool small, bool large)
{
	while (n > 0) {
		enum hb_do what = advance(h);

		if (what != HB_SEND)
			continue;
		n--;
		hb_sent(h, seq, now);
		if (size > HB_SMALL ? large : small)
			assert_true(hb_on_echo(h, seq, now.ns, 0, 0, now));
	}
}

static struct ep_stats stats_of(const struct hb *h)
{
	struct ep_stats st;

	hb_stats(h, now, &st);
	return st;
}

/* Large ones that do not pass while small ones do, as against all that do not pass. */
static void large_ones_are_lost(void **state)
{
	struct hb h;

	(void)state;
	to_beats(&h);
	beat(&h, 30, true, true);
	assert_int_equal(stats_of(&h).large_lost, 0);
	beat(&h, 40, true, false);
	assert_in_range(stats_of(&h).large_lost, 3, 4);
	beat(&h, 11, true, true);
	assert_int_equal(stats_of(&h).large_lost, 0);
	beat(&h, 60, false, false);
	assert_int_equal(stats_of(&h).large_lost, 0);
	assert_true(h.late);
	hb_done(&h);
	/* while probing: small ones came, the large one is repeated in vain */
	setup_role(&h, ROLE_TX);
	hb_start_probes(&h, now);
	assert_true(send_and_echo(&h, MS) && send_and_echo(&h, MS));
	for (int i = 0; i < 5; i++) {
		while (advance(&h) != HB_SEND)
			;
		assert_int_equal(size, 4000);
		hb_sent(&h, seq, now);
	}
	assert_int_equal(stats_of(&h).large_lost, 4);
	hb_done(&h);
}

/* The far end's adapter acknowledges, nobody echoes. */
static void acknowledged_and_not_echoed(void **state)
{
	struct hb h;

	(void)state;
	to_beats(&h);
	beat(&h, 5, true, true);
	for (int i = 0; i < 3; i++)
		hb_on_ack(&h);
	assert_int_equal(stats_of(&h).acked, 3);
	beat(&h, 1, true, true);
	assert_int_equal(stats_of(&h).acked, 0);
	for (int i = 0; i < 1000; i++)
		hb_on_ack(&h);
	assert_int_equal(stats_of(&h).acked, UINT8_MAX);
	hb_stop(&h);
	hb_on_ack(&h);
	hb_done(&h);
	setup_role(&h, ROLE_RX);
	hb_start_probes(&h, now);
	hb_on_ack(&h);
	assert_int_equal(stats_of(&h).acked, 0);
	hb_done(&h);
}

static void round_trips_split(void **state)
{
	struct hb_shared shared;
	struct ep_stats st;
	struct hb h;

	(void)state;
	setup_role(&h, ROLE_TX);
	hb_shared_init(&shared);
	h.shared = &shared;
	hb_start_probes(&h, now);
	assert_int_equal(step(&h), HB_SEND);
	hb_sent(&h, seq, now);
	now = mono_add(now, 1000);
	/* the peer's clock is far away; it took 700 of the 1000 ns */
	assert_true(hb_on_echo(&h, 1, now.ns - 1000, 99000, 99700, now));
	hb_stats(&h, now, &st);
	assert_int_equal(st.rtt_last, 1000);
	assert_in_range(st.net_p50, 300 - 300 / HIST_ERROR, 300 + 300 / HIST_ERROR);
	assert_in_range(st.host_p50, 700 - 700 / HIST_ERROR, 700 + 700 / HIST_ERROR);
	/* stamps that cannot be true are not used */
	assert_int_equal(step(&h), HB_SEND);
	hb_sent(&h, seq, now);
	now = mono_add(now, 500);
	assert_true(hb_on_echo(&h, 2, now.ns + 5, 0, 99700, now));
	hb_stats(&h, now, &st);
	assert_int_equal(st.rtt_last, 500);
	assert_int_equal(st.samples, 2);
	assert_int_equal(st.samples_all, 2);
	assert_int_equal(hist_samples(rtt_all(shared.host)), 1);
	hb_done(&h);
	hb_shared_done(&shared);
}

static bool near(uint64_t got, uint64_t want)
{
	return got + want / HIST_ERROR >= want && got <= want + want / HIST_ERROR;
}

/* The wire's stamps where there are any; those of different clocks are never mixed. */
static void split_by_the_best_clock(void **state)
{
	/* 100 us in all: 10 to the kernel here, 20 there, 30 in the peer, 25 back, 15 to the
	 * reader. The kernel's clock is far from ours, and the peer's too. */
	struct hb_stamps t = {.t1 = 1000000, .t4 = 1100000, .t2 = 77000000, .t3 = 77030000};
	const struct hb_stamps by_call = t;
	struct rtt_summary sum;
	struct hb_shared s;

	(void)state;
	now = (struct mono){NSEC_PER_SEC};
	hb_shared_init(&s);
	assert_int_equal(hb_split(&s, &t, now), EP_CLOCK_HOST);
	rtt_summary(s.net, now, &sum);
	assert_true(near(sum.p50, 70000));
	rtt_summary(s.host, now, &sum);
	assert_true(near(sum.p50, 30000));
	t.k1 = 5000010000;
	t.k4 = 5000085000;
	assert_int_equal(hb_split(&s, &t, now), EP_CLOCK_KERNEL);
	rtt_summary(s.net, now, &sum);
	assert_int_equal(sum.samples, 1); /* begun anew */
	assert_true(near(sum.p50, 45000));
	rtt_summary(s.host, now, &sum);
	assert_true(near(sum.p50, 55000));
	rtt_summary(s.peer, now, &sum);
	assert_true(near(sum.p50, 30000));
	t.d1 = 12000;
	t.d4 = 82000;
	assert_int_equal(hb_split(&s, &t, now), EP_CLOCK_DEVICE);
	rtt_summary(s.net, now, &sum);
	assert_true(near(sum.p50, 40000));
	/* What has less is left out, for a while. */
	assert_int_equal(hb_split(&s, &by_call, now), EP_CLOCK_NONE);
	now = mono_add(now, HB_CLOCK_KEPT_NS);
	assert_int_equal(hb_split(&s, &by_call, now), EP_CLOCK_HOST);
	rtt_summary(s.net, now, &sum);
	assert_int_equal(sum.samples, 1);
	assert_true(near(sum.p50, 70000));
	hb_shared_done(&s);
}

static void stamps_that_cannot_be_true(void **state)
{
	const struct hb_stamps good = {.t1 = 1000, .t4 = 2000, .t2 = 50, .t3 = 250,
				       .k1 = 7100, .k4 = 7900};
	struct hb_stamps t = good;
	struct hb_shared s;

	(void)state;
	now = (struct mono){NSEC_PER_SEC};
	hb_shared_init(&s);
	t.k4 = 7100 + 1001; /* longer than the whole */
	assert_int_equal(hb_split(&s, &t, now), EP_CLOCK_HOST);
	t.k4 = 7100 + 199; /* shorter than what the peer took */
	assert_int_equal(hb_split(&s, &t, now), EP_CLOCK_HOST);
	t.k4 = 7000; /* the clock was set back */
	assert_int_equal(hb_split(&s, &t, now), EP_CLOCK_HOST);
	assert_int_equal(hb_split(&s, &good, now), EP_CLOCK_KERNEL);
	t = good;
	t.t3 = 40;
	assert_int_equal(hb_split(&s, &t, now), EP_CLOCK_NONE);
	t.t3 = 1051;
	assert_int_equal(hb_split(&s, &t, now), EP_CLOCK_NONE);
	t = good;
	t.t2 = 0;
	assert_int_equal(hb_split(&s, &t, now), EP_CLOCK_NONE);
	hb_shared_done(&s);
}

static void rx_counts_distinct_ones(void **state)
{
	struct hb h;

	(void)state;
	setup_role(&h, ROLE_RX);
	assert_false(hb_on_message(&h, 1, true, now)); /* before PROBING: comes again */
	hb_start_probes(&h, now);
	assert_int_equal(step(&h), HB_NOTHING);
	assert_true(hb_on_message(&h, 1, true, now));
	assert_false(hb_on_message(&h, 1, true, now));
	assert_false(hb_on_message(&h, 0, true, now));
	assert_true(hb_on_message(&h, 3, true, now));
	assert_int_equal(step(&h), HB_NOTHING);
	assert_true(hb_on_message(&h, 2, true, now)); /* reordered */
	assert_int_equal(step(&h), HB_PROBES_DONE);
	assert_true(hb_on_message(&h, 4, true, now)); /* one more: no harm */
	assert_int_equal(step(&h), HB_NOTHING);
	assert_false(hb_on_echo(&h, 4, 0, 0, 0, now)); /* not ours to get */
	hb_done(&h);
}

static void rx_watches_and_counts_holes(void **state)
{
	struct ep_stats st;
	struct hb h;
	struct mono life;

	(void)state;
	setup_role(&h, ROLE_RX);
	hb_start_probes(&h, now);
	hb_start_beats(&h, now, 1);
	for (uint64_t s = 1; s <= 200; s++) {
		if (s == 50 || s == 60)
			continue;
		now = mono_add(now, 100 * MS);
		assert_true(hb_on_message(&h, s, false, now));
		while (step(&h) != HB_NOTHING)
			;
	}
	hb_stats(&h, now, &st);
	assert_int_equal(st.received, 198);
	assert_int_equal(st.lost, 2);
	life = now;
	assert_int_equal(mono_sub(hb_deadline(&h), life) <= 300 * MS, true);
	/* a replay is not life */
	now = mono_add(now, 250 * MS);
	assert_false(hb_on_message(&h, 200, false, now));
	assert_false(hb_on_message(&h, 50, false, now));
	assert_true(hb_is_recent(&h, 200));
	assert_false(hb_is_recent(&h, 50));
	assert_false(hb_is_recent(&h, 0));
	now = mono_add(life, 300 * MS);
	assert_int_equal(step(&h), HB_LATE);
	hb_stats(&h, now, &st);
	assert_int_equal(st.consecutive_lost, 3);
	assert_true(hb_on_message(&h, 1000, false, now));
	assert_int_equal(step(&h), HB_ALIVE);
	hb_stats(&h, now, &st);
	assert_int_equal(st.lost, 2 + 1000 - 64 - 200);
	hb_stop(&h);
	assert_false(mono_is_set(hb_deadline(&h)));
	hb_done(&h);
}

static int stats_in(struct hb *h, int seconds, unsigned lose_every)
{
	struct mono end = mono_add(now, seconds * NSEC_PER_SEC);
	int n = 0;

	while (now.ns < end.ns) {
		enum hb_do d = advance(h);

		n += d == HB_STATS;
		if (d != HB_SEND)
			continue;
		hb_sent(h, seq, now);
		if (!lose_every || seq % lose_every)
			hb_on_echo(h, seq, 0, 0, 0, now);
	}
	return n;
}

/* Ten thousand connections that are well must not cost as much as their heartbeats. */
static void stats_come_seldom_and_soon_after_a_loss(void **state)
{
	struct hb_shared shared;
	struct hb h;

	(void)state;
	to_beats(&h);
	assert_int_equal(stats_in(&h, 5, 0), 1); /* a first one soon */
	assert_in_range(stats_in(&h, 100, 0), 9, 11);
	assert_in_range(stats_in(&h, 10, 5), 8, 10);
	hb_done(&h);

	hb_shared_init(&shared);
	shared.stats_every = NSEC_PER_SEC; /* a provider may have few of them */
	to_beats(&h);
	h.shared = &shared;
	assert_in_range(stats_in(&h, 10, 0), 9, 10);
	assert_true(hist_samples(rtt_all(shared.timers)) > 90);
	hb_done(&h);
	hb_shared_done(&shared);
}

/* What a connection costs that is well, at a heartbeat a second. */
static void stays_small(void **state)
{
	struct ep_start s = start;
	struct hb h;

	(void)state;
	s.heartbeat_us = 1000000;
	now = (struct mono){NSEC_PER_SEC};
	hb_init(&h, &s);
	hb_start_beats(&h, now, 1);
	for (int n = 0; n < 36000;) {
		if (advance(&h) != HB_SEND)
			continue;
		n++;
		hb_sent(&h, seq, now);
		/* A path with a spread, and one in twenty that is far out. */
		now = mono_add(now, 30000 + (int64_t)(mix64(seq) % 40000) +
					    (seq % 20 ? 0 : 100000));
		assert_true(hb_on_echo(&h, seq, 0, 0, 0, now));
	}
	assert_in_range(sizeof(h) + hb_memory(&h), 1, 600);
	assert_null(h.ring);
	hb_done(&h);
	s.role = ROLE_RX;
	hb_init(&h, &s);
	assert_int_equal(hb_memory(&h), 0);
	assert_in_range(sizeof(h), 1, 200);
	hb_done(&h);
}

/* One in ten is lost for hours: what is remembered stays bounded. */
static void a_bad_path_stays_bounded(void **state)
{
	struct hb h;

	(void)state;
	to_beats(&h);
	(void)stats_in(&h, 3600, 10);
	assert_in_range(h.room, 2, 16);
	assert_in_range(h.stats.lost, 3600, 4200);
	hb_done(&h);
}

/* A thousand that were started in the same instant, a minute of heartbeats of one second:
 * no burst, neither soon nor late. Wake-ups serve many at once, as a transport would. */
static void heartbeats_spread(void **state)
{
	enum { N = 1000, BIN_MS = 10, SECONDS = 60, BINS = SECONDS * 1000 / BIN_MS };
	static struct hb hbs[N];
	static uint16_t bins[BINS];
	struct ep_start s = start;
	struct mono begin;
	uint32_t total = 0, most = 0;

	(void)state;
	s.heartbeat_us = 1000000;
	begin = now = (struct mono){NSEC_PER_SEC};
	for (unsigned i = 0; i < N; i++) {
		hb_init(&hbs[i], &s);
		rnd = mix64(rnd);
		hb_start_beats(&hbs[i], now, rnd);
	}
	for (;;) {
		struct mono next = MONO_NEVER;
		uint64_t bin;

		for (unsigned i = 0; i < N; i++)
			next = mono_first(next, hbs[i].next_tx);
		now = next;
		bin = (uint64_t)mono_sub(now, begin) / (BIN_MS * MS);
		if (bin >= BINS)
			break;
		for (unsigned i = 0; i < N; i++)
			while (mono_due(hbs[i].next_tx,
					mono_add(now, hb_early(&hbs[i])))) {
				enum hb_do d = step(&hbs[i]);

				assert_int_not_equal(d, HB_NOTHING);
				if (d != HB_SEND)
					continue;
				hb_sent(&hbs[i], seq, now);
				hb_on_echo(&hbs[i], seq, 0, 0, 0, now);
				bins[bin]++;
			}
	}
	for (unsigned i = 0; i < BINS; i++) {
		total += bins[i];
		most = MAX(most, bins[i]);
	}
	assert_in_range(total, N * SECONDS, N * SECONDS * 112 / 100);
	print_message("busiest 10 ms: %u, mean %.1f\n", most, (double)total / BINS);
	assert_true(most * BINS <= 3 * total);
	for (unsigned i = 0; i < N; i++)
		hb_done(&hbs[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(probes_go_one_at_a_time),
		cmocka_unit_test(a_lost_probe_goes_again),
		cmocka_unit_test(a_failed_send_waits),
		cmocka_unit_test(no_probes_wanted),
		cmocka_unit_test(beats_are_jittered_and_every_tenth_is_large),
		cmocka_unit_test(silence_is_late_and_an_echo_alive),
		cmocka_unit_test(a_stall_is_not_the_peers_fault),
		cmocka_unit_test(a_stall_puts_off_losses_and_resends),
		cmocka_unit_test(beats_without_probes_and_a_full_window),
		cmocka_unit_test(losses_by_age_and_by_overtaking),
		cmocka_unit_test(large_ones_are_lost),
		cmocka_unit_test(acknowledged_and_not_echoed),
		cmocka_unit_test(round_trips_split),
		cmocka_unit_test(split_by_the_best_clock),
		cmocka_unit_test(stamps_that_cannot_be_true),
		cmocka_unit_test(rx_counts_distinct_ones),
		cmocka_unit_test(rx_watches_and_counts_holes),
		cmocka_unit_test(stats_come_seldom_and_soon_after_a_loss),
		cmocka_unit_test(stays_small),
		cmocka_unit_test(a_bad_path_stays_bounded),
		cmocka_unit_test(heartbeats_spread),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
