/* SPDX-License-Identifier: BSD-2-Clause */
/* Two thousand connections of one host that are lost at once and come back at once, under
 * a fake clock: the budget of starts holds in every second, and all are back in time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

#include "backoff.h"
#include "conn.h"
#include "heap.h"

#define MS NSEC_PER_MSEC
#define SEC NSEC_PER_SEC
#define COUNT 2000
#define BUDGET 200
#define BACKOFF_MAX (10 * SEC)

static const struct conn_params params = {
	.heartbeat = 1 * SEC,
	.multiplier = 3,
	.ping_interval = 10 * SEC,
	.ack_timeout = 500 * MS,
	.ack_retries = 5,
	.attempt_timeout = 5 * SEC,
	.backoff_min = 1 * SEC,
	.backoff_max = BACKOFF_MAX,
	.rx_keep = 120 * SEC,
	.probe_small = 8,
};

/* What happens to a connection next: a message of its peer, or an endpoint event. */
struct coming {
	int who;
	struct ctl_msg *msg; /* owned; NULL: ep */
	struct ep_event ep;
};

struct host {
	struct mono now;
	uint64_t rnd;
	bool cut; /* nothing passes */
	struct budget budget;
	struct heap timers;
	struct tx {
		struct conn *c;
		struct heap_node timer;
		uint64_t peer_seq;
	} tx[COUNT];
	int queue[COUNT], n_queue, first; /* for starts; ring */
	struct coming *coming;
	int n_coming, room;
	struct mono *starts;
	int n_starts, starts_room;
};

static uint64_t draw(struct host *h)
{
	h->rnd = mix64(h->rnd);
	return h->rnd;
}

static struct coming *push(struct host *h, int who)
{
	if (h->n_coming == h->room) {
		h->room = MAX(64, 2 * h->room);
		h->coming = xrealloc(h->coming, (size_t)h->room, sizeof(*h->coming));
	}
	h->coming[h->n_coming] = (struct coming){.who = who};
	return &h->coming[h->n_coming++];
}

static void say(struct host *h, int who, enum ctl_cmd cmd, uint64_t ack_seq)
{
	const struct conn *c = h->tx[who].c;
	struct ctl_msg *m;

	if (h->cut)
		return;
	m = xcalloc(1, sizeof(*m));
	*m = (struct ctl_msg){.cmd = cmd,
			      .src_id = 1000 + (uint64_t)who,
			      .dst_id = c->id,
			      .epoch = c->epoch,
			      .seq = ++h->tx[who].peer_seq,
			      .ack_seq = ack_seq,
			      .version_min = 1,
			      .version_max = 1,
			      .heartbeat_us = 1000000,
			      .rdma_addr = {.family = 4, .ip = {10, 0, 0, 1}, .port = 7}};
	push(h, who)->msg = m;
}

static void happen(struct host *h, int who, enum ep_event_type type)
{
	const struct conn *c = h->tx[who].c;

	push(h, who)->ep = (struct ep_event){
		.conn_id = c->id, .epoch = c->ep_epoch, .type = (uint8_t)type};
}

/* A peer of good will, whose probes take no time. */
static void answer(struct host *h, int who, const struct ctl_msg *m)
{
	static const enum ctl_cmd acks[] = {
		[CTL_RESET] = CTL_RESET_ACK,
		[CTL_PROTOCOL_VERSION] = CTL_PROTOCOL_VERSION_ACK,
		[CTL_PING] = CTL_PING_ACK,
		[CTL_RESTART] = CTL_RESTART_ACK,
	};

	if (m->cmd < ARRAY_LEN(acks) && acks[m->cmd])
		say(h, who, acks[m->cmd], m->seq);
}

static void act(struct host *h, int who, const struct conn_action *a)
{
	switch (a->type) {
	case CA_WANT_START:
		assert_true(h->n_queue < COUNT);
		h->queue[(h->first + h->n_queue++) % COUNT] = who;
		break;
	case CA_SEND:
		answer(h, who, &a->msg);
		break;
	case CA_EP_START:
		happen(h, who, EP_UP);
		break;
	case CA_EP_PROBE:
		happen(h, who, EP_PROBING);
		if (!h->cut)
			happen(h, who, EP_PROBES_DONE);
		say(h, who, CTL_CONNECTED, 0);
		break;
	case CA_EP_RESET:
		happen(h, who, EP_RESET_DONE);
		break;
	default:
		break;
	}
}

static void feed(struct host *h, int who, const struct conn_input *in)
{
	static struct conn_actions out;
	struct tx *t = &h->tx[who];

	out.n = 0;
	(void)conn_handle(t->c, in, h->now, draw(h), &out);
	for (int i = 0; i < out.n; i++)
		act(h, who, &out.a[i]);
	heap_set(&h->timers, &t->timer, conn_deadline(t->c));
}

static void settle(struct host *h)
{
	for (int i = 0; i < h->n_coming; i++) {
		struct coming c = h->coming[i];
		struct conn_input in = {.type = c.msg ? CI_CTL : CI_EP, .ctl = c.msg, .ep = &c.ep};

		feed(h, c.who, &in);
		free(c.msg);
	}
	h->n_coming = 0;
}

static void note_start(struct host *h)
{
	if (h->n_starts == h->starts_room) {
		h->starts_room = MAX(1024, 2 * h->starts_room);
		h->starts = xrealloc(h->starts, (size_t)h->starts_room, sizeof(*h->starts));
	}
	h->starts[h->n_starts++] = h->now;
}

/* Everything up to @until, at its own time. */
static void run(struct host *h, struct mono until)
{
	struct mono at = MONO_NEVER;

	for (;;) {
		struct conn_input timer = {.type = CI_TIMER}, start = {.type = CI_START};
		struct heap_node *first = heap_first(&h->timers);

		if (first && mono_due(first->at, h->now)) {
			feed(h, (int)(container_of(first, struct tx, timer) - h->tx), &timer);
			settle(h);
			continue;
		}
		if (h->n_queue && budget_take(&h->budget, h->now, &at)) {
			int who = h->queue[h->first];

			h->first = (h->first + 1) % COUNT;
			h->n_queue--;
			note_start(h);
			feed(h, who, &start);
			settle(h);
			continue;
		}
		at = h->n_queue ? at : MONO_NEVER;
		at = mono_first(at, first ? first->at : MONO_NEVER);
		if (!mono_is_set(at) || at.ns > until.ns)
			break;
		h->now = at;
	}
	h->now = until;
}

static int connected(const struct host *h)
{
	int n = 0;

	for (int i = 0; i < COUNT; i++)
		n += h->tx[i].c->connected;
	return n;
}

static int busiest_second(const struct host *h)
{
	int worst = 0;

	for (int last = 0, first = 0; last < h->n_starts; last++) {
		while (mono_sub(h->starts[last], h->starts[first]) >= SEC - 1000)
			first++; /* to the microsecond */
		worst = MAX(worst, last - first + 1);
	}
	return worst;
}

static struct host *host_new(void)
{
	struct host *h = xcalloc(1, sizeof(*h));
	struct conn_key key = {.peer = "peer",
			       .rail = "0",
			       .port_name = "-",
			       .role = ROLE_TX,
			       .transport = TRANSPORT_UDP,
			       .remote = {.family = 4, .ip = {10, 0, 0, 1}}};

	h->now = (struct mono){SEC};
	h->rnd = 99;
	budget_init_strict(&h->budget, BUDGET, h->now);
	for (int i = 0; i < COUNT; i++) {
		h->tx[i].c = conn_new(&key, &params, h->now, draw(h));
		heap_set(&h->timers, &h->tx[i].timer, conn_deadline(h->tx[i].c));
	}
	return h;
}

static void host_free(struct host *h)
{
	for (int i = 0; i < COUNT; i++)
		conn_free(h->tx[i].c);
	heap_done(&h->timers);
	free(h->coming);
	free(h->starts);
	free(h);
}

/* The heartbeats of all stop: each is missed at its own time within a second. */
static void lose_all(struct host *h)
{
	h->cut = true;
	for (int i = 0; i < COUNT; i++) {
		struct mono at = mono_add(h->now, SEC / COUNT);

		happen(h, i, EP_LATE);
		settle(h);
		run(h, at);
	}
}

static void lost_and_back(void **state)
{
	static const int64_t away[] = {3 * SEC, 15 * SEC, 200 * SEC};
	struct host *h = host_new();

	(void)state;
	run(h, mono_add(h->now, COUNT / BUDGET * SEC * 12 / 10));
	assert_int_equal(connected(h), COUNT);
	for (size_t i = 0; i < ARRAY_LEN(away); i++) {
		int64_t most = (COUNT / BUDGET * SEC + BACKOFF_MAX) * 12 / 10;

		run(h, mono_add(h->now, 20 * SEC));
		lose_all(h);
		assert_int_equal(connected(h), 0);
		run(h, mono_add(h->now, away[i]));
		h->cut = false;
		run(h, mono_add(h->now, most));
		assert_int_equal(connected(h), COUNT);
	}
	assert_true(h->n_starts >= 4 * COUNT);
	assert_true(busiest_second(h) <= BUDGET);
	host_free(h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lost_and_back),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
