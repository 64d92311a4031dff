/* SPDX-License-Identifier: BSD-2-Clause */
#include "loop.h"

#include <errno.h>
#include <event2/event.h>
#include <signal.h>
#include <sodium.h>
#include <stdlib.h>
#include <time.h>

#include "rtt.h"

#define LATE_WINDOW_NS (10 * NSEC_PER_SEC)
#define STALL_NS (50 * NSEC_PER_MSEC)

struct loop {
	struct event_base *base;
	struct mono now;
	bool stop;
	struct loop_source *deferred; /* armed, in order */
	struct loop_source *dead;     /* freed during a turn */
	struct rtt *late;
	struct mono late_since;
	int64_t late_worst, late_worst_before;
	struct loop_stats stats;
};

enum source_kind { SRC_FD, SRC_TIMER, SRC_SIGNAL, SRC_DEFER };

struct loop_source {
	struct loop *loop;
	enum source_kind kind;
	struct event *ev; /* owned; NULL for SRC_DEFER */
	int fd;
	bool armed, freed;
	struct mono at;
	void *user;
	union {
		loop_fd_fn *fd_fn;
		loop_timer_fn *timer_fn;
		loop_signal_fn *signal_fn;
		loop_defer_fn *defer_fn;
	};
	struct loop_source *next; /* in deferred or dead */
};

static int64_t clock_ns(clockid_t id)
{
	struct timespec ts;

	(void)clock_gettime(id, &ts);
	return (int64_t)ts.tv_sec * NSEC_PER_SEC + ts.tv_nsec;
}

struct mono clock_now(void)
{
	return (struct mono){clock_ns(CLOCK_MONOTONIC)};
}

int64_t clock_wall_ns(void)
{
	return clock_ns(CLOCK_REALTIME);
}

int64_t clock_boot_ns(void)
{
	return clock_ns(CLOCK_BOOTTIME);
}

uint64_t random_u64(void)
{
	uint64_t v;

	randombytes_buf(&v, sizeof(v));
	return v;
}

struct loop *loop_new(void)
{
	struct loop *l = xcalloc(1, sizeof(*l));
	struct event_config *cfg = event_config_new();

	if (!cfg || sodium_init() < 0)
		abort();
	/* Detection times of 30 ms need better than epoll's milliseconds. */
	event_config_set_flag(cfg, EVENT_BASE_FLAG_PRECISE_TIMER);
	event_config_set_flag(cfg, EVENT_BASE_FLAG_NO_CACHE_TIME);
	l->base = event_base_new_with_config(cfg);
	event_config_free(cfg);
	if (!l->base)
		abort();
	l->now = clock_now();
	l->late = rtt_new();
	return l;
}

static void free_dead(struct loop *l)
{
	while (l->dead) {
		struct loop_source *s = l->dead;

		l->dead = s->next;
		free(s);
	}
}

struct loop *loop_free(struct loop *l)
{
	if (!l)
		return NULL;
	while (l->deferred) { /* freed while armed: run_deferred() would have */
		struct loop_source *s = l->deferred;

		l->deferred = s->next;
		if (s->freed)
			free(s);
	}
	free_dead(l);
	event_base_free(l->base);
	rtt_free(l->late);
	free(l);
	return NULL;
}

static void run_deferred(struct loop *l)
{
	/* What is armed meanwhile runs in the same turn, so that an event that causes an
	 * event is done before the loop sleeps. */
	while (l->deferred) {
		struct loop_source *s = l->deferred;

		l->deferred = s->next;
		s->next = NULL;
		s->armed = false;
		if (!s->freed)
			s->defer_fn(s->user);
		else
			free(s);
	}
}

static void count_turn(struct loop *l, int64_t cpu_before)
{
	int64_t cpu = clock_ns(CLOCK_THREAD_CPUTIME_ID) - cpu_before;

	l->stats.turns++;
	l->stats.turn_cpu_worst_ns = MAX(l->stats.turn_cpu_worst_ns, cpu);
}

int loop_run(struct loop *l)
{
	l->stop = false;
	while (!l->stop) {
		int64_t cpu = clock_ns(CLOCK_THREAD_CPUTIME_ID);

		l->now = clock_now();
		run_deferred(l);
		if (l->stop)
			break;
		if (event_base_loop(l->base, EVLOOP_ONCE) < 0)
			return -EIO;
		run_deferred(l);
		free_dead(l);
		count_turn(l, cpu);
	}
	return 0;
}

void loop_stop(struct loop *l)
{
	l->stop = true;
	(void)event_base_loopbreak(l->base);
}

struct mono loop_now(const struct loop *l)
{
	return l->now;
}

/* One stall makes several timers late, each by another time: the whole is from the
 * earliest of their deadlines on. Another cannot have come in less than its own length. */
static void note_stall(struct loop *l, int64_t late)
{
	struct loop_stats *s = &l->stats;
	struct mono begin = mono_add(s->stalled_at, -s->stalled_ns);

	if (mono_is_set(s->stalled_at) && mono_sub(l->now, s->stalled_at) < STALL_NS)
		late = MAX(late, mono_sub(l->now, begin));
	s->stalled_at = l->now;
	s->stalled_ns = late;
}

static void note_late(struct loop *l, int64_t late)
{
	if (mono_sub(l->now, l->late_since) > LATE_WINDOW_NS) {
		l->late_worst_before = l->late_worst;
		l->late_worst = 0;
		l->late_since = l->now;
	}
	l->late_worst = MAX(l->late_worst, late);
	rtt_add(l->late, late, l->now);
	if (late > STALL_NS)
		note_stall(l, late);
}

static void on_event(evutil_socket_t fd, short what, void *arg)
{
	struct loop_source *s = arg;
	struct loop *l = s->loop;

	l->now = clock_now();
	switch (s->kind) {
	case SRC_FD:
		s->fd_fn(s->user, fd, ((what & EV_READ) ? LOOP_READ : 0) |
					      ((what & EV_WRITE) ? LOOP_WRITE : 0));
		break;
	case SRC_TIMER: {
		int64_t late = mono_sub(l->now, s->at);

		/* libevent may wake a little early; never call before the deadline. */
		if (late < 0) {
			loop_timer_at(s, s->at);
			break;
		}
		note_late(l, late);
		s->at = MONO_NEVER;
		s->timer_fn(s->user, l->now);
		break;
	}
	case SRC_SIGNAL:
		s->signal_fn(s->user, (int)fd);
		break;
	case SRC_DEFER:
		break;
	}
}

static struct loop_source *source_new(struct loop *l, enum source_kind kind, int fd,
				      short what, void *user)
{
	struct loop_source *s = xcalloc(1, sizeof(*s));

	s->loop = l;
	s->kind = kind;
	s->fd = fd;
	s->user = user;
	if (kind != SRC_DEFER) {
		s->ev = event_new(l->base, fd, what, on_event, s);
		if (!s->ev)
			abort();
	}
	return s;
}

struct loop_source *loop_fd(struct loop *l, int fd, unsigned events, loop_fd_fn *fn,
			    void *user)
{
	struct loop_source *s = source_new(l, SRC_FD, fd, EV_PERSIST | EV_READ, user);

	s->fd_fn = fn;
	loop_fd_set(s, events);
	return s;
}

void loop_fd_set(struct loop_source *s, unsigned events)
{
	short what = EV_PERSIST;

	if (events & LOOP_READ)
		what |= EV_READ;
	if (events & LOOP_WRITE)
		what |= EV_WRITE;
	(void)event_del(s->ev);
	if (events) {
		(void)event_assign(s->ev, s->loop->base, s->fd, what, on_event, s);
		(void)event_add(s->ev, NULL);
	}
}

struct loop_source *loop_timer(struct loop *l, loop_timer_fn *fn, void *user)
{
	struct loop_source *s = source_new(l, SRC_TIMER, -1, 0, user);

	s->timer_fn = fn;
	return s;
}

void loop_timer_at(struct loop_source *s, struct mono at)
{
	int64_t left;
	struct timeval tv;

	if (!mono_is_set(at)) {
		s->at = at;
		(void)event_del(s->ev);
		return;
	}
	s->at = at;
	left = mono_sub(at, clock_now());
	/* Round up to a microsecond, so that it is not called too early. */
	left = left > 0 ? left + NSEC_PER_USEC - 1 : 0;
	tv.tv_sec = left / NSEC_PER_SEC;
	tv.tv_usec = (left % NSEC_PER_SEC) / NSEC_PER_USEC;
	(void)event_add(s->ev, &tv);
}

struct loop_source *loop_signal(struct loop *l, int signo, loop_signal_fn *fn, void *user)
{
	struct loop_source *s = source_new(l, SRC_SIGNAL, signo, EV_SIGNAL | EV_PERSIST, user);

	s->signal_fn = fn;
	(void)event_add(s->ev, NULL);
	return s;
}

struct loop_source *loop_defer(struct loop *l, loop_defer_fn *fn, void *user)
{
	struct loop_source *s = source_new(l, SRC_DEFER, -1, 0, user);

	s->defer_fn = fn;
	return s;
}

void loop_defer_arm(struct loop_source *s)
{
	struct loop_source **p = &s->loop->deferred;

	if (s->armed)
		return;
	s->armed = true;
	while (*p)
		p = &(*p)->next;
	*p = s;
	s->next = NULL;
}

struct loop_source *loop_source_free(struct loop_source *s)
{
	if (!s)
		return NULL;
	if (s->ev) {
		event_free(s->ev);
		s->ev = NULL;
	}
	s->freed = true;
	if (s->kind == SRC_DEFER && s->armed)
		return NULL; /* run_deferred() frees it */
	s->next = s->loop->dead;
	s->loop->dead = s;
	return NULL;
}

uint64_t loop_turn(const struct loop *l)
{
	return l->stats.turns + 1;
}

void loop_stats(const struct loop *l, struct loop_stats *ret)
{
	struct rtt_summary late;

	*ret = l->stats;
	rtt_summary(l->late, l->now, &late);
	ret->late_p99_ns = (int64_t)late.p99;
	ret->late_worst_ns = MAX(l->late_worst, l->late_worst_before);
}
