/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Both sides of a connection wired together through a network that loses, delays,
 * reorders and duplicates, in simulated time. Host 0 probes, host 1 responds. The
 * endpoints are fakes on top of lib/heartbeat.h, with the rules of udp or of rc.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#include "conn.h"
#include "heartbeat.h"

#define MS	  NSEC_PER_MSEC
#define SEC	  NSEC_PER_SEC
#define QUEUE_MAX 512
#define OLD_MAX	  64

static const struct conn_params params = {
	.heartbeat = 100 * MS,
	.multiplier = 3,
	.ping_interval = 1 * SEC,
	.ack_timeout = 100 * MS,
	.ack_retries = 6,
	.attempt_timeout = 3 * SEC,
	.backoff_min = 500 * MS,
	.backoff_max = 2 * SEC,
	.rx_keep = 10 * SEC,
	.probe_small = 4,
	.probe_large = 1,
	.probe_size = 2000,
};

/* REQUEST, ACCEPT and REJECT: how an rc endpoint connects. */
enum fabric_kind {
	FABRIC_MESSAGE,
	FABRIC_ECHO,
	FABRIC_REQUEST,
	FABRIC_ACCEPT,
	FABRIC_REJECT
};

struct fabric_msg {
	enum fabric_kind kind;
	uint64_t to_conn, from_conn, epoch, seq;
	bool is_probe;
	int64_t t1;
};

enum ev_kind { EV_CTL, EV_FABRIC, EV_EP, EV_GRANT };

struct ev {
	struct mono at;
	enum ev_kind kind;
	int host;
	uint64_t conn_id; /* EV_GRANT */
	union {
		struct ctl_msg ctl;
		struct fabric_msg fabric;
		struct ep_event ep;
	};
};

struct endpoint {
	bool open, up;
	struct ep_start start;
	struct hb hb;
};

struct host {
	struct conn *c;
	bool away;    /* the host is off: hears and says nothing */
	bool closing; /* the service stops: no new connections */
	uint8_t cookie;
	struct endpoint ep;
	struct mono down_at; /* connected became false */
	int ups, downs, gone;
};

/* How bad the network is, per mille; delays in ns. */
struct weather {
	unsigned loss, dup;
	int64_t delay_min, delay_max;
};

struct sim {
	struct mono now;
	uint64_t rnd;
	struct host h[2];
	struct weather ctl, fabric;
	bool ctl_cut, fabric_cut, refuse_version;
	bool rc; /* endpoints connect before they are up, and break with their peer */
	struct ev *queue[QUEUE_MAX]; /* owned */
	int n;
	struct ctl_msg old[OLD_MAX]; /* what went to host i % 2, for replays */
	unsigned n_old;
	const char *what; /* for failures */
	uint64_t seed;
};

static const struct weather calm = {0, 0, 50 * NSEC_PER_USEC, 300 * NSEC_PER_USEC};
static const struct weather storm = {250, 100, 50 * NSEC_PER_USEC, 120 * MS};

static uint64_t draw(struct sim *s)
{
	s->rnd = mix64(s->rnd);
	return s->rnd;
}

static bool chance(struct sim *s, unsigned permille)
{
	return draw(s) % 1000 < permille;
}

static int64_t between(struct sim *s, int64_t lo, int64_t hi)
{
	return lo + (int64_t)(draw(s) % (uint64_t)(hi - lo + 1));
}

static struct ev *post(struct sim *s, int host, enum ev_kind kind, int64_t after)
{
	struct ev *e;

	assert_true(s->n < QUEUE_MAX);
	e = s->queue[s->n++] = xcalloc(1, sizeof(*e));
	e->at = mono_add(s->now, after);
	e->host = host;
	e->kind = kind;
	return e;
}

static int64_t transit(struct sim *s, const struct weather *w)
{
	return between(s, w->delay_min, w->delay_max);
}

static void send_ctl(struct sim *s, int from, const struct ctl_msg *m)
{
	if (s->h[from].away)
		return;
	s->old[s->n_old++ % OLD_MAX] = *m;
	if (s->ctl_cut || chance(s, s->ctl.loss))
		return;
	post(s, !from, EV_CTL, transit(s, &s->ctl))->ctl = *m;
	if (chance(s, s->ctl.dup))
		post(s, !from, EV_CTL, transit(s, &s->ctl))->ctl = *m;
}

static void send_fabric(struct sim *s, int from, const struct fabric_msg *m)
{
	if (s->fabric_cut || s->h[from].away || chance(s, s->fabric.loss))
		return;
	post(s, !from, EV_FABRIC, transit(s, &s->fabric))->fabric = *m;
	if (chance(s, s->fabric.dup))
		post(s, !from, EV_FABRIC, transit(s, &s->fabric))->fabric = *m;
}

/* ---- fake endpoint ---- */

static struct addr rail_addr(int host, uint16_t port)
{
	return (struct addr){
		.family = 4, .ip = {10, 0, 0, (uint8_t)(host + 1)}, .port = port};
}

static struct ep_event *ep_tell(struct sim *s, int host, enum ep_event_type type,
				int64_t after)
{
	struct endpoint *ep = &s->h[host].ep;
	struct ep_event *e = &post(s, host, EV_EP, after)->ep;

	e->conn_id = ep->start.conn_id;
	e->epoch = ep->start.epoch;
	e->type = (uint8_t)type;
	e->stage = ep->up ? STAGE_UP : STAGE_LISTEN;
	return e;
}

static void ep_close(struct endpoint *ep)
{
	if (ep->open)
		hb_done(&ep->hb);
	ep->open = ep->up = false;
}

static void ep_start(struct sim *s, int host, const struct ep_start *start)
{
	struct endpoint *ep = &s->h[host].ep;

	assert_false(ep->open); /* every start has its reset before the next */
	ep->open = true;
	ep->start = *start;
	hb_init(&ep->hb, start);
	if (start->role == ROLE_RX) {
		ep_tell(s, host, EP_READY, between(s, MS, 20 * MS))->addr =
			rail_addr(host, 5000);
		return;
	}
	assert_int_equal(start->remote.port, 5000); /* as the ack said */
	if (s->rc) {
		send_fabric(s, host,
			    &(struct fabric_msg){.kind = FABRIC_REQUEST,
						 .to_conn = start->peer_conn_id,
						 .from_conn = start->conn_id,
						 .epoch = start->epoch});
		return; /* lost: the state's deadline ends it */
	}
	ep->up = true;
	ep_tell(s, host, EP_UP, between(s, MS, 20 * MS))->addr = rail_addr(host, 6000);
}

static void ep_run(struct sim *s, int host)
{
	struct endpoint *ep = &s->h[host].ep;
	struct fabric_msg m = {.to_conn = ep->start.peer_conn_id,
			       .epoch = ep->start.epoch};
	enum hb_do d;
	uint32_t size;

	while (ep->open && (d = hb_step(&ep->hb, s->now, draw(s), &m.seq, &size))) {
		switch (d) {
		case HB_SEND:
			m.is_probe = ep->hb.phase == HB_PROBE;
			m.t1 = s->now.ns;
			send_fabric(s, host, &m);
			hb_sent(&ep->hb, m.seq, s->now);
			break;
		case HB_PROBES_DONE:
			ep_tell(s, host, EP_PROBES_DONE, between(s, 0, MS));
			break;
		case HB_LATE:
			ep_tell(s, host, EP_LATE, 0);
			break;
		case HB_ALIVE:
			ep_tell(s, host, EP_ALIVE, 0);
			break;
		case HB_STATS:
			hb_stats(&ep->hb, s->now,
				 &ep_tell(s, host, EP_STATS, 0)->stats);
			break;
		case HB_NOTHING:
			break;
		}
	}
}

static bool ep_is(const struct endpoint *ep, const struct fabric_msg *m)
{
	return ep->open && m->to_conn == ep->start.conn_id &&
	       m->epoch == ep->start.epoch;
}

/* rc: a request, or what came of it. */
static void ep_connect(struct sim *s, int host, const struct fabric_msg *m)
{
	struct endpoint *ep = &s->h[host].ep;
	struct fabric_msg answer = {.kind = FABRIC_REJECT,
				    .to_conn = m->from_conn,
				    .from_conn = m->to_conn,
				    .epoch = m->epoch};

	if (m->kind == FABRIC_REQUEST) {
		if (ep_is(ep, m) && !ep->up) {
			answer.kind = FABRIC_ACCEPT;
			ep->up = true;
			ep_tell(s, host, EP_UP, between(s, 0, 2 * MS));
		}
		send_fabric(s, host, &answer);
		return;
	}
	if (!ep_is(ep, m) || ep->up)
		return;
	ep->up = m->kind == FABRIC_ACCEPT;
	if (ep->up)
		ep_tell(s, host, EP_UP, between(s, 0, 2 * MS));
	else
		ep_tell(s, host, EP_ERROR, 0)->error = EPERR_CM_REJECTED;
}

static void ep_fabric(struct sim *s, int host, const struct fabric_msg *m)
{
	struct endpoint *ep = &s->h[host].ep;
	struct fabric_msg echo = *m;

	if (s->h[host].away)
		return;
	if (m->kind >= FABRIC_REQUEST) {
		ep_connect(s, host, m);
		return;
	}
	if (!ep_is(ep, m))
		return;
	if (m->kind == FABRIC_ECHO) {
		hb_on_echo(&ep->hb, m->seq, m->t1, 0, 0, s->now);
		return;
	}
	if (!ep->up && !s->rc) {
		ep->up = true;
		ep_tell(s, host, EP_UP, 0)->addr = rail_addr(host, 5000);
	}
	if (ep->hb.phase == HB_OFF)
		return;
	hb_on_message(&ep->hb, m->seq, m->is_probe, s->now);
	echo.to_conn = ep->start.peer_conn_id;
	echo.kind = FABRIC_ECHO;
	send_fabric(s, host, &echo);
}

/* ---- what the manager does ---- */

static void feed(struct sim *s, int host, const struct conn_input *in);

static struct conn *new_conn(struct sim *s, int host)
{
	struct conn_key k = {.peer = "peer",
			     .rail = "0",
			     .role = host ? ROLE_RX : ROLE_TX,
			     .transport = TRANSPORT_UDP,
			     .port_name = "-",
			     .remote = rail_addr(!host, 0)};

	return conn_new(&k, &params, s->now, draw(s));
}

static void drop_conn(struct sim *s, int host)
{
	struct host *h = &s->h[host];

	h->c = conn_free(h->c);
	ep_close(&h->ep);
}

static void run_action(struct sim *s, int host, struct conn_action *a)
{
	struct host *h = &s->h[host];

	switch (a->type) {
	case CA_WANT_START:
		post(s, host, EV_GRANT, between(s, 0, 50 * MS))->conn_id = h->c->id;
		break;
	case CA_SEND:
		if (a->msg.cmd == CTL_RESET || a->msg.cmd == CTL_PROTOCOL_VERSION)
			a->msg.rdma_addr = rail_addr(host, 0);
		if (a->msg.cmd == CTL_PROTOCOL_VERSION && s->refuse_version)
			a->msg.version_min = a->msg.version_max = 9;
		send_ctl(s, host, &a->msg);
		break;
	case CA_EP_START:
		ep_start(s, host, &a->start);
		break;
	case CA_EP_PROBE:
		assert_true(h->ep.open && h->ep.start.epoch == a->start.epoch);
		hb_start_probes(&h->ep.hb, s->now);
		ep_tell(s, host, EP_PROBING, between(s, 0, MS));
		break;
	case CA_EP_HEARTBEAT:
		assert_true(h->ep.open && h->ep.start.epoch == a->start.epoch);
		hb_start_beats(&h->ep.hb, s->now, draw(s));
		break;
	case CA_EP_RESET:
		ep_close(&h->ep);
		h->ep.start.conn_id = h->c->id;
		h->ep.start.epoch = a->start.epoch;
		ep_tell(s, host, EP_RESET_DONE, between(s, 0, 300 * MS));
		break;
	case CA_CONNECTED:
		if (h->c->connected) {
			assert_true(h->ep.open && h->ep.up);
			h->ups++;
		} else {
			h->downs++;
			h->down_at = s->now;
		}
		break;
	case CA_GONE:
		h->gone++;
		drop_conn(s, host);
		break;
	case CA_STATE:
		break;
	}
}

static void feed(struct sim *s, int host, const struct conn_input *in)
{
	static struct conn_actions out;
	struct conn *c = s->h[host].c;
	enum conn_state before = c->state;
	int r;

	out.n = 0;
	r = conn_handle(c, in, s->now, draw(s), &out);
	if (r < 0)
		assert_int_equal(c->state, before);
	for (int i = 0; i < out.n; i++)
		run_action(s, host, &out.a[i]);
	ep_run(s, host);
}

static void feed_type(struct sim *s, int host, enum conn_input_type type)
{
	feed(s, host, &(struct conn_input){.type = type});
}

/* Good for 10 to 20 s, for one attempt of one connection. */
static uint64_t cookie_of(const struct sim *s, int host, const struct ctl_msg *m,
			  int ago)
{
	uint64_t slot = (uint64_t)(s->now.ns / (10 * SEC) - ago);

	return mix64(m->src_id ^
		     mix64(m->epoch ^ mix64(slot ^ mix64(s->h[host].cookie))));
}

/* What the edge answers where no connection is to ask. */
static void answer_stateless(struct sim *s, int host, const struct ctl_msg *m,
			     enum ctl_cmd cmd)
{
	struct ctl_msg a = {
		.cmd = cmd, .dst_id = m->src_id, .epoch = m->epoch, .ack_seq = m->seq};

	if (cmd == CTL_CHALLENGE) {
		a.has_cookie = true;
		be64_put(a.cookie, cookie_of(s, host, m, 0));
	}
	send_ctl(s, host, &a);
}

static void receive_ctl(struct sim *s, int host, const struct ctl_msg *m)
{
	struct host *h = &s->h[host];
	bool is_ack = m->ack_seq || m->cmd == CTL_UNKNOWN || m->cmd == CTL_CHALLENGE;

	if (h->away)
		return;
	if (m->cmd == CTL_RESET && host == 1) {
		if (be64_get(m->cookie) != cookie_of(s, host, m, 0) &&
		    be64_get(m->cookie) != cookie_of(s, host, m, 1)) {
			answer_stateless(s, host, m, CTL_CHALLENGE);
			return;
		}
		if (!h->c && h->closing)
			return;
		if (!h->c)
			h->c = new_conn(s, host);
	} else if (!h->c || m->dst_id != h->c->id) {
		if (!is_ack)
			answer_stateless(s, host, m, CTL_UNKNOWN);
		return;
	}
	feed(s, host, &(struct conn_input){.type = CI_CTL, .ctl = m});
}

/* ---- the loop ---- */

static struct mono next_time(const struct sim *s)
{
	struct mono t = MONO_NEVER;

	for (int i = 0; i < s->n; i++)
		t = mono_first(t, s->queue[i]->at);
	for (int i = 0; i < 2; i++) {
		if (s->h[i].c)
			t = mono_first(t, conn_deadline(s->h[i].c));
		if (s->h[i].ep.open)
			t = mono_first(t, hb_deadline(&s->h[i].ep.hb));
	}
	return t;
}

static void handle_event(struct sim *s, struct ev *e)
{
	struct conn *c = s->h[e->host].c;

	switch (e->kind) {
	case EV_CTL:
		receive_ctl(s, e->host, &e->ctl);
		break;
	case EV_FABRIC:
		ep_fabric(s, e->host, &e->fabric);
		break;
	case EV_EP:
		if (c && c->id == e->ep.conn_id)
			feed(s, e->host,
			     &(struct conn_input){.type = CI_EP, .ep = &e->ep});
		break;
	case EV_GRANT:
		if (c && c->id == e->conn_id)
			feed_type(s, e->host, CI_START);
		break;
	}
	ep_run(s, e->host);
	free(e);
}

static bool pop_due(struct sim *s, struct ev **ret)
{
	int best = -1;

	for (int i = 0; i < s->n; i++)
		if (s->queue[i]->at.ns <= s->now.ns &&
		    (best < 0 || s->queue[i]->at.ns < s->queue[best]->at.ns))
			best = i;
	if (best < 0)
		return false;
	*ret = s->queue[best];
	s->queue[best] = s->queue[--s->n];
	return true;
}

static void turn(struct sim *s)
{
	struct ev *e;

	while (pop_due(s, &e))
		handle_event(s, e);
	for (int i = 0; i < 2; i++) {
		ep_run(s, i);
		for (int n = 0; s->h[i].c && mono_due(conn_deadline(s->h[i].c), s->now);
		     n++) {
			assert_true(n < 10); /* a timer that stays due is a busy loop */
			feed_type(s, i, CI_TIMER);
		}
	}
}

static void run_for(struct sim *s, int64_t ns)
{
	struct mono end = mono_add(s->now, ns);
	struct mono t = next_time(s);

	while (mono_is_set(t) && t.ns <= end.ns) {
		s->now.ns = MAX(s->now.ns, t.ns);
		turn(s);
		t = next_time(s);
	}
	s->now = end;
}

static bool both_up(const struct sim *s)
{
	return s->h[0].c && s->h[1].c && s->h[0].c->connected && s->h[1].c->connected;
}

static bool run_until_up(struct sim *s, int64_t at_most)
{
	for (int64_t t = 0; t < at_most && !both_up(s); t += 10 * MS)
		run_for(s, 10 * MS);
	return both_up(s);
}

static void describe(const struct sim *s)
{
	for (int i = 0; i < 2; i++) {
		const struct conn *c = s->h[i].c;

		if (!c) {
			print_message("host %d: no connection\n", i);
			continue;
		}
		for (unsigned n = conn_history_count(c), k = n > 12 ? n - 12 : 0; k < n;
		     k++) {
			struct conn_history h = conn_history_get(c, k);

			print_message("host %d %10.3f %s > %s on %s (row %d)\n", i,
				      (double)h.at.ns / 1e9,
				      enum_name(&conn_state_names, (int)h.from),
				      enum_name(&conn_state_names, (int)h.to),
				      enum_name(&probe_event_names, (int)h.event),
				      h.row);
		}
		print_message(
			"host %d epoch %lx ep %lx open %d busy %d deadline %.4f\n", i,
			(long)c->epoch, (long)c->ep_epoch, c->ep_open, c->ep_reset_out,
			(double)conn_deadline(c).ns / 1e9);
	}
}

#define must(s, what)                                                                  \
	do {                                                                           \
		if (!(what)) {                                                         \
			describe(s);                                                   \
			fail_msg("seed %lu at %.3f s: %s", (unsigned long)(s)->seed,   \
				 (double)(s)->now.ns / 1e9, #what);                    \
		}                                                                      \
	} while (0)

static void sim_init(struct sim *s, uint64_t seed)
{
	memset(s, 0, sizeof(*s));
	s->now = (struct mono){SEC};
	s->seed = seed;
	s->rnd = mix64(seed);
	s->ctl = s->fabric = calm;
	s->h[1].cookie = 1;
	s->h[0].c = new_conn(s, 0);
}

static void sim_done(struct sim *s)
{
	for (int i = 0; i < s->n; i++)
		free(s->queue[i]);
	drop_conn(s, 0);
	drop_conn(s, 1);
}

/* The process of @host dies without a word and comes back knowing nothing. */
static void restart_host(struct sim *s, int host)
{
	drop_conn(s, host);
	s->h[host].cookie++;
	if (!host)
		s->h[host].c = new_conn(s, host);
}

static void stay_up_quietly(struct sim *s, int64_t ns)
{
	int downs = s->h[0].downs + s->h[1].downs;

	run_for(s, ns);
	must(s, s->h[0].downs + s->h[1].downs == downs && both_up(s));
}

/* ---- scenarios ---- */

static struct sim sim;

static void quiet_network_connects_at_once(void **state)
{
	struct sim *s = &sim;

	(void)state;
	for (uint64_t seed = 1; seed <= 100; seed++) {
		sim_init(s, seed);
		s->rc = seed % 2;
		must(s, run_until_up(s, SEC));
		must(s, s->h[0].c->attempts == 1);
		stay_up_quietly(s, 60 * SEC);
		must(s, conn_stats(s->h[0].c)->lost <= 1 && conn_stats(s->h[0].c)->received > 500);
		must(s, s->h[0].c->heartbeat == 100 * MS &&
				s->h[1].c->heartbeat == 100 * MS);
		must(s, s->h[0].c->ctl_rto.srtt_us > 0 && s->h[0].c->ctl_rto.srtt_us < 1000);
		sim_done(s);
	}
}

static void do_mischief(struct sim *s)
{
	int host = (int)(draw(s) % 2);
	struct conn_input in = {.type = CI_OPERATOR};

	switch (draw(s) % 12) {
	case 0:
		s->ctl_cut = !s->ctl_cut;
		break;
	case 1:
		s->fabric_cut = !s->fabric_cut;
		break;
	case 2:
		restart_host(s, host);
		return;
	case 3:
		s->h[host].away = !s->h[host].away;
		break;
	case 4:
	case 5:
		if (s->n_old)
			receive_ctl(s, host, &s->old[draw(s) % MIN(s->n_old, OLD_MAX)]);
		return;
	case 6:
		if (s->h[host].ep.open)
			ep_tell(s, host, EP_ERROR, 0)->error = EPERR_SEND_FAILED;
		return;
	case 7:
		in.type = CI_PORT_DOWN;
		in.error = EPERR_NO_ADDRESS;
		break;
	case 8:
		in.type = CI_PORT_UP;
		break;
	case 9:
		s->ctl = chance(s, 500) ? storm : calm;
		s->fabric = chance(s, 500) ? storm : calm;
		return;
	case 10:
		in.type = CI_STOP;
		in.cause = chance(s, 500) ? CAUSE_RESTART : CAUSE_NONE;
		in.deadline_sec = 60;
		break;
	default:
		break;
	}
	if (s->h[host].c && in.type != CI_OPERATOR)
		feed(s, host, &in);
	else if (s->h[host].c && chance(s, 100))
		feed(s, host, &in);
}

static void calm_down(struct sim *s)
{
	s->ctl = s->fabric = calm;
	s->ctl_cut = s->fabric_cut = false;
	for (int i = 0; i < 2; i++) {
		s->h[i].away = false;
		if (s->h[i].c)
			feed_type(s, i, CI_PORT_UP);
	}
	run_for(s, 6 * SEC); /* a stop that was under way ends */
	if (!s->h[0].c)
		s->h[0].c = new_conn(s, 0);
}

static void always_converges(void **state)
{
	struct sim *s = &sim;
	int ups = 0;

	(void)state;
	for (uint64_t seed = 1000; seed < 1300; seed++) {
		sim_init(s, seed);
		s->rc = seed % 2;
		s->ctl = s->fabric = storm;
		for (int i = 0; i < 60; i++) {
			run_for(s, between(s, MS, 800 * MS));
			do_mischief(s);
			if (!s->h[0].c && chance(s, 300))
				s->h[0].c = new_conn(s, 0);
		}
		ups += s->h[0].ups;
		calm_down(s);
		must(s, run_until_up(s, 15 * SEC));
		stay_up_quietly(s, 20 * SEC); /* the cookies of the storm expire */
		for (int i = 0; i < 20;
		     i++) { /* what was recorded changes nothing now */
			receive_ctl(s, i % 2,
				    &s->old[draw(s) % MIN(s->n_old, OLD_MAX)]);
			stay_up_quietly(s, SEC);
		}
		sim_done(s);
	}
	assert_true(ups > 100); /* it was no idle storm */
}

/* Loss alone: it must also come up while it rains. */
static void connects_through_loss(void **state)
{
	struct sim *s = &sim;

	(void)state;
	for (uint64_t seed = 1; seed <= 60; seed++) {
		sim_init(s, seed);
		s->ctl = s->fabric = (struct weather){200, 50, 0, 20 * MS};
		must(s, run_until_up(s, 60 * SEC));
		sim_done(s);
	}
}

static void partition_is_noticed_and_heals(void **state)
{
	struct sim *s = &sim;
	struct mono cut;

	(void)state;
	for (uint64_t seed = 1; seed <= 60; seed++) {
		sim_init(s, seed);
		must(s, run_until_up(s, SEC));
		stay_up_quietly(s, between(s, 3 * SEC, 6 * SEC));
		s->fabric_cut = s->ctl_cut = true;
		cut = s->now;
		run_for(s, between(s, SEC, 30 * SEC));
		must(s, mono_sub(s->h[0].down_at, cut) <= 310 * MS);
		must(s, mono_sub(s->h[1].down_at, cut) <= 310 * MS);
		must(s, s->h[1].c == NULL ||
				s->h[1].c->restart_cause == CAUSE_HEARTBEAT_LOST);
		s->fabric_cut = s->ctl_cut = false;
		must(s, run_until_up(s, 4 * SEC));
		stay_up_quietly(s, 10 * SEC);
		sim_done(s);
	}
}

static void peer_restart_is_found_and_mended(void **state)
{
	struct sim *s = &sim;

	(void)state;
	for (uint64_t seed = 1; seed <= 60; seed++) {
		sim_init(s, seed);
		must(s, run_until_up(s, SEC));
		stay_up_quietly(s, 3 * SEC);
		restart_host(s, (int)(seed % 2));
		run_for(s, 400 * MS);
		must(s, s->h[0].downs + s->h[1].downs >= 1);
		must(s, run_until_up(s, 4 * SEC));
		stay_up_quietly(s, 10 * SEC);
		sim_done(s);
	}
}

static void fabric_alone_cut_is_restarted_and_told(void **state)
{
	struct sim *s = &sim;

	(void)state;
	sim_init(s, 5);
	must(s, run_until_up(s, SEC));
	stay_up_quietly(s, 3 * SEC);
	s->fabric_cut = true;
	run_for(s, 20 * SEC);
	must(s, !both_up(s));
	must(s, s->h[0].c->error ==
			EPERR_CM_TIMEOUT); /* control answers, fabric does not */
	must(s, mono_sub(s->now, s->h[0].c->last_ctl_rx) < 4 * SEC);
	sim_done(s);
}

/* Control filtered on a live fabric: a verdict, no failure. */
static void control_blocked_stays_up(void **state)
{
	struct sim *s = &sim;

	(void)state;
	sim_init(s, 6);
	must(s, run_until_up(s, SEC));
	s->ctl_cut = true;
	stay_up_quietly(s, 120 * SEC);
	must(s, s->h[0].c->state == CONN_CONNECTED_PING);
	must(s, mono_sub(s->now, s->h[0].c->ctl_unanswered_since) > 100 * SEC);
	s->ctl_cut = false;
	run_for(s, 2 * SEC);
	must(s, both_up(s) && !mono_is_set(s->h[0].c->ctl_unanswered_since));
	sim_done(s);
}

static void stop_is_told_and_no_failure(void **state)
{
	struct conn_input in = {
		.type = CI_STOP, .cause = CAUSE_RESTART, .deadline_sec = 60};
	struct sim *s = &sim;

	(void)state;
	for (uint64_t seed = 1; seed <= 40; seed++) {
		sim_init(s, seed);
		s->ctl.loss = 200;
		must(s, run_until_up(s, 10 * SEC));
		s->h[1].gone = 0;
		s->h[1].closing = true;
		feed(s, 1, &in); /* the responder stops */
		run_for(s, SEC);
		must(s, s->h[1].gone == 1 && !s->h[1].c);
		s->h[1].away = true;
		run_for(s, 5 * SEC);
		must(s, s->h[0].c->stop_cause == CAUSE_RESTART);
		must(s, s->h[0].c->stop_until.ns > s->now.ns && !s->h[0].c->connected);
		s->h[1].away = s->h[1].closing = false;
		s->h[1].cookie++;
		s->ctl = calm;
		must(s, run_until_up(s, 6 * SEC));
		must(s, s->h[0].c->stop_cause == CAUSE_NONE);
		feed(s, 0, &in); /* the prober stops */
		run_for(s, 2 * SEC);
		must(s, !s->h[0].c && s->h[1].c->stop_cause == CAUSE_RESTART);
		run_for(s, 50 * SEC);
		must(s, s->h[1].c != NULL); /* visible until the deadline */
		run_for(s, 20 * SEC);
		must(s, !s->h[1].c);
		sim_done(s);
	}
}

static void refused_version_waits_long_and_recovers(void **state)
{
	struct sim *s = &sim;
	uint64_t attempts;

	(void)state;
	sim_init(s, 8);
	s->refuse_version = true;
	run_for(s, 60 * SEC);
	attempts = s->h[0].c->attempts;
	must(s, s->h[0].c->refusal == REFUSE_VERSION && !s->h[0].ups);
	must(s, attempts >= 25 && attempts <= 60); /* one to two seconds each */
	s->refuse_version = false;
	must(s, run_until_up(s, 4 * SEC));
	must(s, s->h[0].c->refusal == REFUSE_NONE);
	sim_done(s);
}

static void port_down_rests_until_it_is_back(void **state)
{
	struct conn_input in = {
		.type = CI_PORT_DOWN, .error = EPERR_NO_ADDRESS, .text = "gone"};
	struct sim *s = &sim;
	uint64_t attempts;

	(void)state;
	for (int host = 0; host < 2; host++) {
		sim_init(s, 9);
		must(s, run_until_up(s, SEC));
		feed(s, host, &in);
		must(s, !s->h[host].c->connected);
		must(s, s->h[host].c->error == EPERR_NO_ADDRESS);
		s->ctl_cut = s->fabric_cut = true;
		run_for(s, 5 * SEC);
		attempts = s->h[0].c->attempts;
		run_for(s, 30 * SEC);
		if (!host)
			must(s, s->h[0].c->attempts == attempts);
		s->ctl_cut = s->fabric_cut = false;
		if (s->h[host].c)
			feed_type(s, host, CI_PORT_UP);
		must(s, run_until_up(s, 4 * SEC));
		sim_done(s);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(quiet_network_connects_at_once),
		cmocka_unit_test(always_converges),
		cmocka_unit_test(connects_through_loss),
		cmocka_unit_test(partition_is_noticed_and_heals),
		cmocka_unit_test(peer_restart_is_found_and_mended),
		cmocka_unit_test(fabric_alone_cut_is_restarted_and_told),
		cmocka_unit_test(control_blocked_stays_up),
		cmocka_unit_test(stop_is_told_and_no_failure),
		cmocka_unit_test(refused_version_waits_long_and_recovers),
		cmocka_unit_test(port_down_rests_until_it_is_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
