/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * loop.h - the event loop of main. loop.c is the only file that includes libevent.
 * Single-threaded; callbacks run from loop_run(). Also the only reader of the clock:
 * loop_now() is the time at which the present turn began, clock_now() reads afresh.
 */
#pragma once

#include "mono.h"
#include "util.h"

struct loop;
struct loop_source; /* owned by the loop until loop_source_free() */

struct mono clock_now(void);	/* CLOCK_MONOTONIC */
int64_t clock_wall_ns(void);	/* CLOCK_REALTIME, only for rendering */
int64_t clock_boot_ns(void);	/* CLOCK_BOOTTIME: time since boot */
uint64_t random_u64(void);	/* libsodium */

struct loop *loop_new(void);
struct loop *loop_free(struct loop *l);
int loop_run(struct loop *l); /* until loop_stop(); 0 or -errno */
void loop_stop(struct loop *l);
struct mono loop_now(const struct loop *l);
uint64_t loop_turn(const struct loop *l); /* number of the present turn, from 1 */

/* Called with @events of what happened. The fd stays the caller's. */
#define LOOP_READ 1
#define LOOP_WRITE 2
typedef void loop_fd_fn(void *user, int fd, unsigned events);
struct loop_source *loop_fd(struct loop *l, int fd, unsigned events, loop_fd_fn *fn,
			    void *user);
void loop_fd_set(struct loop_source *s, unsigned events); /* 0 = pause */

/* A timer that is armed with a deadline and fires once per arming. */
typedef void loop_timer_fn(void *user, struct mono now);
struct loop_source *loop_timer(struct loop *l, loop_timer_fn *fn, void *user);
void loop_timer_at(struct loop_source *s, struct mono at); /* MONO_NEVER: disarm */

typedef void loop_signal_fn(void *user, int signo);
struct loop_source *loop_signal(struct loop *l, int signo, loop_signal_fn *fn, void *user);

/* Runs once at the end of the present turn, after all other callbacks of it. */
typedef void loop_defer_fn(void *user);
struct loop_source *loop_defer(struct loop *l, loop_defer_fn *fn, void *user);
void loop_defer_arm(struct loop_source *s);

struct loop_source *loop_source_free(struct loop_source *s); /* NULL-safe; also in its
							       own callback */

/* How late timers fired, and the CPU time of the thread per turn. */
struct loop_stats {
	uint64_t turns;
	int64_t late_worst_ns;	    /* of the last 10 s */
	int64_t late_p99_ns;	    /* of the last 60 s */
	int64_t turn_cpu_worst_ns;  /* since start */
	struct mono stalled_at;	    /* end of the last stall over 50 ms, or never */
	int64_t stalled_ns;	    /* its length */
};
void loop_stats(const struct loop *l, struct loop_stats *ret);
