/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

#include "ping.h"

#define US NSEC_PER_USEC
#define MS NSEC_PER_MSEC
#define ID 7

static struct mono now;
static uint64_t seq;

static struct ping *begin(uint32_t count, uint32_t interval_us, uint32_t timeout_us,
			  unsigned window)
{
	const struct ep_ping o = {.id = ID, .count = count, .size = 64,
				  .interval_us = interval_us, .timeout_us = timeout_us};

	now = (struct mono){NSEC_PER_SEC};
	return ping_new(&o, 4096, 65507, window, now);
}

static enum ping_do step(struct ping *p)
{
	return ping_step(p, now, &seq);
}

static uint64_t number(uint32_t n)
{
	return (uint64_t)ID << 32 | n;
}

/* The next step sends number @n. */
static void assert_sends(struct ping *p, uint32_t n)
{
	assert_int_equal(step(p), PING_SEND);
	assert_true(seq == number(n));
	ping_sent(p, seq, now);
}

static bool echo(struct ping *p, uint32_t n, int64_t sent_ns)
{
	return ping_on_echo(p, number(n), sent_ns, 0, 0, now);
}

static struct ep_stats stats(const struct ping *p)
{
	struct ep_stats s;

	ping_stats(p, &s);
	return s;
}

/* Sleep until it wants something. */
static void sleep_on(struct ping *p)
{
	struct mono d = ping_deadline(p);

	assert_true(mono_is_set(d));
	now.ns = MAX(now.ns, d.ns);
}

/* Skip what is only told, and let time pass until it sends or ends. */
static enum ping_do next_act(struct ping *p)
{
	enum ping_do what;

	while ((what = step(p)) == PING_NOTHING || what == PING_TELL)
		if (what == PING_NOTHING)
			sleep_on(p);
	return what;
}

/* ---- the schedule ---- */

static void an_interval_does_not_drift(void **state)
{
	struct ping *p = begin(10, 100000, 1000000, 64);

	(void)state;
	for (uint32_t n = 1; n <= 10; n++) {
		assert_int_equal(next_act(p), PING_SEND);
		assert_true(now.ns == NSEC_PER_SEC + (n - 1) * 100 * MS);
		now.ns += 3 * MS; /* asked late: the next is not */
		ping_sent(p, seq, now);
		assert_true(echo(p, n, now.ns));
	}
	assert_int_equal(step(p), PING_DONE);
	assert_int_equal(stats(p).sent, 10);
	assert_int_equal(stats(p).received, 10);
	assert_int_equal(stats(p).lost, 0);
	ping_free(p);
}

static void a_stall_is_made_up_by_one(void **state)
{
	struct ping *p = begin(100, 10000, 1000000, 64);
	int at_once = 0;

	(void)state;
	assert_sends(p, 1);
	now.ns += 500 * MS;
	while (step(p) != PING_NOTHING)
		if (seq == number((uint32_t)(stats(p).sent + 1))) {
			ping_sent(p, seq, now);
			at_once++;
			now.ns += PING_GAP_NS;
		}
	assert_in_range(at_once, 1, 2);
	ping_free(p);
}

static void back_to_back_waits_for_each(void **state)
{
	struct ping *p = begin(3, 0, 1000000, 64);

	(void)state;
	assert_sends(p, 1);
	now.ns += 500 * US;
	assert_int_equal(step(p), PING_NOTHING);
	assert_true(echo(p, 1, 0));
	assert_sends(p, 2); /* in the same moment */
	assert_true(mono_sub(ping_deadline(p), now) == 100 * MS - 500 * US);
	now.ns += NSEC_PER_SEC;
	assert_sends(p, 3); /* 2 is lost */
	assert_int_equal(stats(p).lost, 1);
	now.ns += 200 * US;
	assert_true(echo(p, 3, 0));
	assert_int_equal(step(p), PING_DONE);
	assert_int_equal(stats(p).received, 2);
	ping_free(p);
}

static void a_fast_path_keeps_the_gap(void **state)
{
	struct ping *p = begin(3, 0, 1000000, 64);

	(void)state;
	assert_sends(p, 1);
	now.ns += 2 * US;
	assert_true(echo(p, 1, 0));
	assert_int_equal(step(p), PING_NOTHING);
	assert_true(mono_sub(ping_deadline(p), now) == PING_GAP_NS - 2 * US);
	sleep_on(p);
	assert_sends(p, 2);
	/* The wait is in no round trip. */
	now.ns += 2 * US;
	assert_true(echo(p, 2, 0));
	assert_true(stats(p).rtt_max == 2 * (uint64_t)US);
	ping_free(p);
}

static void the_window_holds_it_back(void **state)
{
	struct ping *p = begin(100, 1000, 1000000, 4);

	(void)state;
	for (uint32_t n = 1; n <= 4; n++) {
		assert_int_equal(next_act(p), PING_SEND);
		ping_sent(p, seq, now);
	}
	now.ns += 50 * MS;
	assert_int_equal(step(p), PING_NOTHING);
	assert_true(echo(p, 2, 0)); /* the oldest still holds its place */
	assert_int_equal(step(p), PING_NOTHING);
	assert_true(echo(p, 1, 0));
	assert_sends(p, 5);
	ping_free(p);
}

/* ---- echoes ---- */

static void twice_and_too_late_do_not_count(void **state)
{
	struct ping *p = begin(3, 1000, 5000, 64);

	(void)state;
	assert_sends(p, 1);
	now.ns += MS;
	assert_sends(p, 2);
	assert_true(echo(p, 2, 0));
	assert_false(echo(p, 2, 0));
	now.ns += 4 * MS; /* number 1 is at its end, though nobody looked */
	assert_false(echo(p, 1, 0));
	assert_int_equal(stats(p).received, 1);
	assert_int_equal(stats(p).lost, 1);
	assert_int_equal(stats(p).dropped, 2);
	/* Of another ping, or not sent yet: not this one's at all. */
	assert_false(ping_on_echo(p, (uint64_t)(ID + 1) << 32 | 2, 0, 0, 0, now));
	assert_false(echo(p, 3, 0));
	assert_false(echo(p, 0, 0));
	assert_int_equal(stats(p).dropped, 3); /* 0 is before the oldest */
	ping_free(p);
}

static void the_round_trip_is_split(void **state)
{
	struct ping *p = begin(2, 1000, 1000000, 64);
	int64_t sent;

	(void)state;
	assert_sends(p, 1);
	now.ns += 10 * US; /* it left a little later than it was asked for */
	sent = now.ns;
	now.ns += 38 * US;
	assert_true(ping_on_echo(p, number(1), sent, 5000, 5000 + 29 * US, now));
	assert_true(stats(p).rtt_last == 38 * (uint64_t)US);
	assert_in_range(stats(p).net_p50, 9 * US - 600, 9 * US + 600);
	assert_in_range(stats(p).host_p50, 29 * US - 2000, 29 * US + 2000);
	/* Stamps that cannot be are not believed. */
	now.ns += MS;
	assert_sends(p, 2);
	now.ns += 20 * US;
	assert_true(ping_on_echo(p, number(2), now.ns + 1, 5, 5 + MS, now));
	assert_true(stats(p).rtt_last == 20 * (uint64_t)US);
	assert_int_equal(stats(p).samples, 2);
	ping_free(p);
}

static void quantiles_are_of_all(void **state)
{
	struct ping *p = begin(1000, 100000, 1000000, 64);

	(void)state;
	/* 100 s: longer than any window. */
	for (uint32_t n = 1; n <= 1000; n++) {
		int64_t sent;

		assert_int_equal(next_act(p), PING_SEND);
		ping_sent(p, seq, now);
		sent = now.ns;
		now.ns += n * US;
		assert_true(echo(p, n, sent));
	}
	assert_int_equal(next_act(p), PING_DONE);
	assert_int_equal(stats(p).samples, 1000);
	assert_true(stats(p).rtt_min == 1000);
	assert_true(stats(p).rtt_max == 1000 * 1000);
	assert_in_range(stats(p).rtt_p50, 500 * US * 93 / 100, 500 * US * 107 / 100);
	assert_in_range(stats(p).rtt_p99, 990 * US * 93 / 100, 1000 * US);
	ping_free(p);
}

/* ---- ends ---- */

static void what_cannot_be_sent_is_lost(void **state)
{
	struct ping *p = begin(2, 0, 1000000, 64);

	(void)state;
	assert_int_equal(step(p), PING_SEND);
	ping_not_sent(p, seq, now);
	now.ns += PING_GAP_NS;
	assert_int_equal(step(p), PING_SEND);
	ping_not_sent(p, seq, now);
	assert_int_equal(step(p), PING_DONE);
	assert_int_equal(stats(p).sent, 2);
	assert_int_equal(stats(p).lost, 2);
	assert_int_equal(stats(p).samples, 0);
	assert_true(stats(p).rtt_p99 == 0);
	ping_free(p);
}

static void an_abort_loses_what_is_out(void **state)
{
	struct ping *p = begin(100, 1000, 1000000, 64);

	(void)state;
	assert_sends(p, 1);
	now.ns += MS;
	assert_sends(p, 2);
	assert_true(echo(p, 2, 0));
	ping_abort(p);
	assert_true(mono_due(ping_deadline(p), now));
	assert_int_equal(step(p), PING_DONE);
	assert_int_equal(stats(p).sent, 2);
	assert_int_equal(stats(p).lost, 1);
	ping_free(p);
}

static void a_stall_gives_more_time(void **state)
{
	struct ping *p = begin(1, 0, 1000, 64);
	int64_t sent;

	(void)state;
	assert_sends(p, 1);
	sent = now.ns;
	now.ns += 50 * MS; /* nothing could be read meanwhile */
	ping_stalled(p, 50 * MS, now);
	assert_int_equal(step(p), PING_NOTHING);
	assert_true(echo(p, 1, sent));
	assert_true(stats(p).rtt_last == 50 * (uint64_t)MS); /* the time is what it was */
	ping_free(p);
}

static void told_ten_times_a_second(void **state)
{
	struct ping *p = begin(100000, 200, 100000, 64);
	int told = 0;

	(void)state;
	while (now.ns < 3 * NSEC_PER_SEC)
		switch (step(p)) {
		case PING_SEND:
			ping_sent(p, seq, now);
			(void)echo(p, (uint32_t)seq, 0);
			break;
		case PING_TELL:
			told++;
			break;
		case PING_NOTHING:
			sleep_on(p);
			break;
		case PING_DONE:
			fail();
		}
	assert_in_range(told, 18, 20);
	ping_free(p);
}

static void sizes_are_what_the_path_carries(void **state)
{
	struct ep_ping o = {.id = 1, .count = 1, .timeout_us = 1000};
	struct ping *p;

	(void)state;
	now = (struct mono){NSEC_PER_SEC};
	p = ping_new(&o, 1472, 65507, 8, now);
	assert_int_equal(p->size, 1472);
	ping_free(p);
	p = ping_new(&o, 0, 4096, 8, now); /* not known */
	assert_int_equal(p->size, EP_PING_SIZE_MIN);
	ping_free(p);
	p = ping_new(&o, 8192, 4096, 8, now);
	assert_int_equal(p->size, 4096);
	ping_free(p);
	o.size = 4096;
	p = ping_new(&o, 1472, 4096, 8, now);
	assert_int_equal(p->size, 4096);
	ping_free(p);
	o.size = 4097;
	assert_null(ping_new(&o, 1472, 4096, 8, now));
}

/* ---- the limit of the other side ---- */

static void a_flood_is_not_echoed(void **state)
{
	struct ping_limit l = {0};
	int echoed = 0;

	(void)state;
	now = (struct mono){100 * NSEC_PER_SEC};
	for (int i = 0; i < 1000000; i++) { /* a million in a second */
		echoed += ping_may_echo(&l, now);
		now.ns += US;
	}
	assert_in_range(echoed, PING_ECHO_PER_SEC, PING_ECHO_PER_SEC + PING_ECHO_BURST + 1);
	now.ns += NSEC_PER_SEC;
	for (int i = 0; i < 100000; i++) { /* who keeps the gap never meets it */
		assert_true(ping_may_echo(&l, now));
		now.ns += PING_GAP_NS;
	}
}

/* ---- beside a model that remembers everything ---- */

#define MODEL_MAX 400

struct model {
	int64_t sent[MODEL_MAX + 1], lost_at[MODEL_MAX + 1];
	bool open[MODEL_MAX + 1];
	uint64_t n_sent, received, lost, dropped;
};

static void model_losses(struct model *m)
{
	for (int n = 1; n <= MODEL_MAX; n++)
		if (m->open[n] && m->lost_at[n] <= now.ns) {
			m->open[n] = false;
			m->lost++;
		}
}

static void model_echo(struct model *m, uint32_t n)
{
	model_losses(m);
	if (m->open[n])
		m->received++;
	else
		m->dropped++;
	m->open[n] = false;
}

static uint64_t rnd;
static uint64_t draw(uint64_t n)
{
	rnd = mix64(rnd);
	return rnd % n;
}

struct flying {
	uint32_t n;
	int64_t at;
};

/* A network that loses, delays (so reorders) and duplicates. */
static int fly(struct flying *f, int n_flying, uint32_t n, int64_t timeout)
{
	int copies = draw(10) < 3 ? 0 : draw(10) < 2 ? 2 : 1;

	for (int i = 0; i < copies && n_flying < 4 * MODEL_MAX; i++)
		f[n_flying++] = (struct flying){
			n, now.ns + (int64_t)draw((uint64_t)timeout * 3 / 2)};
	return n_flying;
}

static int land(struct ping *p, struct model *m, struct flying *f, int n_flying)
{
	for (int i = 0; i < n_flying; i++) {
		if (f[i].at > now.ns)
			continue;
		model_echo(m, f[i].n);
		(void)ping_on_echo(p, number(f[i].n), 0, 0, 0, now);
		f[i--] = f[--n_flying];
	}
	return n_flying;
}

static int64_t first_landing(const struct flying *f, int n_flying)
{
	int64_t first = INT64_MAX;

	for (int i = 0; i < n_flying; i++)
		first = MIN(first, f[i].at);
	return first;
}

static void check(const struct ping *p, const struct model *m, unsigned window)
{
	struct ep_stats s = stats(p);

	assert_true(s.sent == m->n_sent);
	assert_true(s.received == m->received);
	assert_true(s.lost == m->lost);
	assert_true(s.dropped == m->dropped);
	assert_true(s.received + s.lost <= s.sent);
	assert_true(s.sent - s.received - s.lost <= window);
}

static void run_random(uint64_t seed)
{
	static struct flying f[4 * MODEL_MAX];
	uint32_t count = 1 + (uint32_t)((rnd = seed), draw(MODEL_MAX));
	uint32_t interval = draw(3) ? (uint32_t)draw(20000) : 0;
	uint32_t timeout = 1000 + (uint32_t)draw(100000);
	unsigned window = 1 + (unsigned)draw(100);
	struct ping *p = begin(count, interval, timeout, window);
	struct model m = {0};
	enum ping_do what;
	int n_flying = 0;

	while ((what = step(p)) != PING_DONE) {
		model_losses(&m);
		if (what == PING_SEND) {
			uint32_t n = (uint32_t)seq;

			assert_true(n == m.n_sent + 1);
			m.n_sent++;
			m.sent[n] = now.ns;
			m.lost_at[n] = now.ns + timeout * US;
			m.open[n] = true;
			ping_sent(p, seq, now);
			n_flying = fly(f, n_flying, n, timeout * US);
		} else if (what == PING_NOTHING) {
			assert_true(ping_deadline(p).ns > now.ns);
			now.ns = MIN(ping_deadline(p).ns, first_landing(f, n_flying));
			n_flying = land(p, &m, f, n_flying);
		}
		check(p, &m, interval ? window : 1);
	}
	model_losses(&m);
	check(p, &m, 0);
	assert_int_equal(m.n_sent, count);
	ping_free(p);
}

static void it_agrees_with_a_model(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 500; seed++)
		run_random(seed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_interval_does_not_drift),
		cmocka_unit_test(a_stall_is_made_up_by_one),
		cmocka_unit_test(back_to_back_waits_for_each),
		cmocka_unit_test(a_fast_path_keeps_the_gap),
		cmocka_unit_test(the_window_holds_it_back),
		cmocka_unit_test(twice_and_too_late_do_not_count),
		cmocka_unit_test(the_round_trip_is_split),
		cmocka_unit_test(quantiles_are_of_all),
		cmocka_unit_test(what_cannot_be_sent_is_lost),
		cmocka_unit_test(an_abort_loses_what_is_out),
		cmocka_unit_test(a_stall_gives_more_time),
		cmocka_unit_test(told_ten_times_a_second),
		cmocka_unit_test(sizes_are_what_the_path_carries),
		cmocka_unit_test(a_flood_is_not_echoed),
		cmocka_unit_test(it_agrees_with_a_model),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
