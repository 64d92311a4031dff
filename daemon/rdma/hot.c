/* SPDX-License-Identifier: BSD-2-Clause */
#include "hot.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/random.h>

#include "log.h"

#define TURN_MAX  (250 * NSEC_PER_MSEC) /* how old hot may look when all is quiet */
#define STALL_MIN (5 * NSEC_PER_MSEC)	/* shorter is scheduling noise */
/* A stall that is short beside the heartbeat hides nothing: on a host that is always a
 * little late, putting off for it would mean never to notice anything. */
#define STALL_PART 4
#define ROOM_WAIT  NSEC_PER_MSEC
#define STATS_PER_SEC 1000

void hot_init(struct hot *h, struct worker *w, uint64_t seed)
{
	*h = (struct hot){
		.w = w,
		.seed = seed,
		.mtu_fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0),
	};
	for (int ud = 0; ud < 2; ud++)
		hb_shared_init(&h->shared[ud]);
}

void hot_done(struct hot *h)
{
	for (int ud = 0; ud < 2; ud++)
		hb_shared_done(&h->shared[ud]);
	heap_done(&h->timers);
	if (h->mtu_fd >= 0)
		(void)close(h->mtu_fd);
}

struct endpoint *hot_find(struct hot *h, uint64_t conn_id)
{
	struct endpoint *ep;

	HASH_FIND(hh, h->eps, &conn_id, sizeof(conn_id), ep);
	return ep;
}

/* rc: a failure and a detach of each are always possible; ud: what is asked for here is
 * answered by at most one note each. */
bool hot_may_note(const struct hot *h)
{
	const struct ring *r = &h->w->hot_to_cm;

	return ring_used(r) + 2 * (size_t)h->w->max_rc + 2 * UD_PORTS < r->count;
}

void hot_note(struct hot *h, const struct hot_note *n)
{
	bool ok = ring_push(&h->w->hot_to_cm, n);

	assert(ok);
	(void)ok;
	wake(h->w->wake_cm);
}

void hot_set_timer(struct hot *h, struct endpoint *ep)
{
	heap_set(&h->timers, &ep->hot_timer,
		 ep->failed ? MONO_NEVER
			    : mono_first(hb_deadline(&ep->hb), hot_ping_deadline(ep)));
}

static void attach(struct hot *h, struct endpoint *ep)
{
	HASH_ADD(hh, h->eps, start.conn_id, sizeof(ep->start.conn_id), ep);
	ep->polled = true;
	ep->hb.shared = &h->shared[ep->ud != NULL];
	/* Few may tell more often than many: a thousand a second of all together. */
	ep->hb.shared->stats_every =
		HASH_CNT(hh, h->eps) > STATS_PER_SEC ? HB_STATS_NS : NSEC_PER_SEC;
	if (ep->ud)
		return;
	/* Arm before the first look, or what came before would raise no event. */
	wcq_arm(&ep->recv);
	rc_poll(h, ep);
}

static void leave_backlog(struct hot *h, struct endpoint *ep)
{
	struct endpoint **p = &h->backlog;

	while (ep->in_backlog && *p != ep)
		p = &(*p)->next_backlog;
	if (ep->in_backlog)
		*p = ep->next_backlog;
	ep->in_backlog = false;
}

static void detach(struct hot *h, struct endpoint *ep)
{
	hot_ping_fail(ep, "the connection is being reset");
	if (ep->pending & 1u << EP_PONG)
		hot_flush(h, ep, clock_now());
	/* What main has not been told of it by now is of no use any more. */
	leave_backlog(h, ep);
	hot_ping_done(ep);
	ud_forget(h, ep);
	HASH_DELETE(hh, h->eps, ep);
	ep->polled = false;
	hb_stop(&ep->hb);
	heap_set(&h->timers, &ep->hot_timer, MONO_NEVER);
	hot_note(h, &(struct hot_note){.type = HOT_DETACHED, .handle = ep->handle});
}

static void on_up(struct hot *h, struct endpoint *ep, uint32_t path_mtu)
{
	(void)h;
	if (!ep->start.probe_size && path_mtu)
		ep->hb.large_size = MIN(path_mtu, (uint32_t)ep->slot_size);
}

static void take_order(struct hot *h, const struct hot_order *o)
{
	switch (o->type) {
	case HOT_CHANNEL:
		h->ctx = o->ctx;
		break;
	case HOT_ATTACH:
		attach(h, o->ep);
		break;
	case HOT_UP:
		o->ep->packet = o->soft_roce ? o->path_mtu : 0;
		on_up(h, o->ep, o->path_mtu);
		break;
	case HOT_DETACH:
		detach(h, o->ep);
		break;
	case HOT_UD_LIVE:
		ud_live(h, o->port);
		break;
	case HOT_UD_STOP:
		ud_stop(h, o->port);
		break;
	case HOT_AH:
		ud_take_ah(h, o->ep, o->ah, o->qpn, o->qkey);
		hot_note(h, &(struct hot_note){.type = HOT_AH_TAKEN,
					       .handle = o->ep->handle,
					       .old = o->old});
		break;
	case HOT_AH_STALE:
		o->ep->dest_stale = true;
		o->ep->asked_at = MONO_NEVER;
		break;
	}
}

static void take_orders(struct hot *h)
{
	struct hot_order o;

	while (hot_may_note(h) && ring_pop(&h->w->cm_to_hot, &o))
		take_order(h, &o);
}

static void take_commands(struct hot *h, struct mono now)
{
	struct hot_command c;

	while (ring_pop(&h->w->ctl_to_hot, &c)) {
		struct endpoint *ep;

		/* cm gave the endpoint before main could hear of it, but maybe after
		 * the orders of this turn were taken. */
		take_orders(h);
		ep = hot_find(h, c.conn_id);
		if (!ep || ep->failed || ep->start.epoch != c.epoch) {
			free(c.ping);
			continue;
		}
		if (c.type == WM_EP_PROBE && ep->hb.phase == HB_OFF) {
			hb_start_probes(&ep->hb, now);
			ep->pending |= 1u << EP_PROBING;
		} else if (c.type == WM_EP_HEARTBEAT && ep->hb.phase == HB_PROBE) {
			hb_start_beats(&ep->hb, now, h->seed = mix64(h->seed));
		} else if (c.type == WM_EP_PING) {
			hot_ping_begin(ep, c.ping, now);
			free(c.ping);
		} else {
			continue;
		}
		hot_step(h, ep);
	}
}

static struct mono next_deadline(const struct hot *h, struct mono now)
{
	const struct heap_node *first = heap_first(&h->timers);
	struct mono d = mono_add(now, TURN_MAX);

	if (h->more)
		return now;
	/* Orders that wait for room in the other direction: cm is about to make it. */
	if (!hot_may_note(h) && ring_used(&h->w->cm_to_hot))
		d = mono_add(now, ROOM_WAIT);
	return first ? mono_first(d, first->at) : d;
}

/* Wait; returns for how long nothing could be received: this thread worked, or was kept
 * from running when it should have. */
static int64_t wait_turn(struct hot *h, bool *ret_channel)
{
	struct pollfd fds[2] = {{.fd = h->w->wake_hot, .events = POLLIN},
				{.fd = -1, .events = POLLIN}};
	struct mono before = clock_now(), deadline = next_deadline(h, before);
	int64_t worked = mono_is_set(h->woke) ? mono_sub(before, h->woke) : 0;
	int64_t ns = MAX(mono_sub(deadline, before), 0), late;
	struct timespec ts = {ns / NSEC_PER_SEC, ns % NSEC_PER_SEC};

	if (h->ctx && !h->channel_dead)
		fds[1].fd = h->ctx->channel->fd;
	if (ppoll(fds, 2, &ts, NULL) < 0)
		fds[0].revents = fds[1].revents = 0;
	h->woke = clock_now();
	late = mono_sub(h->woke, mono_add(before, ns));
	/* After the device is gone the channel is readable for ever and reads nothing.
	 */
	if (fds[1].revents & (POLLERR | POLLHUP | POLLNVAL))
		h->channel_dead = true;
	*ret_channel = fds[1].revents & POLLIN;
	if (fds[0].revents & POLLIN)
		wake_clear(h->w->wake_hot);
	return MAX(late, 0) + (worked >= STALL_MIN ? worked : 0);
}

static void note_lateness(struct hot *h, int64_t stall)
{
	uint32_t us = (uint32_t)MIN(stall / NSEC_PER_USEC, UINT32_MAX);
	uint32_t worst = atomic_load(&h->w->hot_late_us);

	while (us > worst &&
	       !atomic_compare_exchange_weak(&h->w->hot_late_us, &worst, us))
		;
}

static void excuse(struct hot *h, int64_t stall, struct mono now)
{
	struct endpoint *ep, *next;

	HASH_ITER(hh, h->eps, ep, next) {
		bool excused = stall >= ep->hb.interval / STALL_PART;

		if (ep->failed)
			continue;
		if (excused)
			hb_stalled(&ep->hb, stall, now);
		hot_ping_stalled(ep, stall, now);
		/* The others have their turn when they are due: a step of each of many
		 * would take so long that it is a stall itself, for ever. */
		if (excused || ep->ping)
			hot_step(h, ep);
	}
}

/* Each endpoint has at most one turn here, whatever it asks for. */
static void run_timers(struct hot *h, struct mono now)
{
	struct heap_node *first;

	while ((first = heap_first(&h->timers)) && mono_due(first->at, now)) {
		struct endpoint *ep = container_of(first, struct endpoint, hot_timer);

		hot_step(h, ep);
		if (mono_due(ep->hot_timer.at, now) && ep->hot_timer.index)
			heap_set(&h->timers, &ep->hot_timer, mono_add(now, 1));
	}
}

/* What is left in the queues after a flood, and sends whose handles may be waited for. */
static void look_at_ports(struct hot *h)
{
	h->more = false;
	for (unsigned i = h->n_ports; i-- > 0;) {
		h->ports[i]->looked = 0;
		if (h->ports[i]->more || h->ports[i]->head != h->ports[i]->tail)
			ud_poll(h, h->ports[i]);
	}
}

static void read_clock(struct hot *h, struct mono now)
{
	if (!h->ctx || !h->ctx->clock.usable ||
	    (mono_is_set(h->clock_at) && !mono_due(h->clock_at, now)))
		return;
	h->clock_at = mono_add(now, NSEC_PER_SEC);
	dev_clock_read(&h->ctx->clock, h->ctx->verbs);
}

void hot_turn(struct hot *h)
{
	bool readable;
	int64_t stall = wait_turn(h, &readable);
	struct mono now = h->woke;

	atomic_store(&h->w->hot_turn, now.ns);
	note_lateness(h, stall);
	if (readable)
		hot_drain_channel(h);
	take_orders(h);
	take_commands(h, now);
	look_at_ports(h);
	if (h->backlog)
		hot_flush_backlog(h, now);
	if (stall >= STALL_MIN)
		excuse(h, stall, now);
	run_timers(h, now);
	read_clock(h, now);
}

void *hot_thread(void *worker)
{
	struct hot h;
	uint64_t seed;

	(void)pthread_setname_np(pthread_self(), "hot");
	/* The kernel's default slack of 50 us would show in every round trip. */
	(void)prctl(PR_SET_TIMERSLACK, 1000UL, 0UL, 0UL, 0UL);
	if (getrandom(&seed, sizeof(seed), 0) != (ssize_t)sizeof(seed))
		seed = (uint64_t)clock_now().ns;
	hot_init(&h, worker, seed);
	for (;;)
		hot_turn(&h);
	return NULL;
}
