/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * flights.h - one lane of requests of a umad port: those that wait, those that are out,
 * found by transaction in one step, and how many may be. No I/O.
 */
#pragma once

#include "smp_port.h"

struct flight {
	struct flight *next;		/* of those that wait, or are free */
	struct flight *older, *younger; /* of the young, in the order of sending */
	bool young, forgotten;
	uint32_t tid;		  /* 0: not out */
	struct mono sent_at;	  /* by the clock */
	struct mono since;	  /* by the caller's time */
	struct mono deadline;	  /* never: waits for ever */
	struct smp_request r;	  /* of a MAD_SEND: id, origin, timeout and retries */
	struct wm_mad_send *send; /* owned, NULL: a directed-route Get */
};

struct lane {
	uint32_t tid_bit; /* this lane's in its transactions */
	int window;
	struct flight *slot[SMP_OUT_MAX]; /* owned, those that are out */
	uint16_t free_slot[SMP_OUT_MAX];  /* a stack */
	int n_out, n_young, n_waiting;
	struct flight *oldest, *youngest; /* of the young */
	struct flight *first, **last;	  /* waiting, owned */
	struct flight *spare;		  /* owned */
	struct mono check_at; /* no deadline is earlier; never: none there */
};

void lane_init(struct lane *l, uint32_t tid_bit, int window);
/* Frees everything; nothing must be out or waiting that still needs an answer. */
void lane_done(struct lane *l);

/* A flight to be filled in. The caller queues it or gives it back. */
struct flight *flight_new(struct lane *l);
void flight_give(struct lane *l, struct flight *f);
bool lane_is_full(const struct lane *l); /* nothing more may wait */
void lane_queue(struct lane *l, struct flight *f);

/* The next one that may leave now, out of the queue; NULL: none. */
struct flight *lane_next(struct lane *l, struct mono now);
/* Give it a transaction: it is out. */
void lane_depart(struct lane *l, struct flight *f, struct mono now);
struct flight *lane_find(const struct lane *l, uint32_t tid);
/* It is back: no longer out. */
void lane_land(struct lane *l, struct flight *f);

/* One that is overdue, still out; NULL: none. */
struct flight *lane_overdue(struct lane *l, struct mono now);
/* Any one that is out; NULL: none. */
struct flight *lane_any(const struct lane *l);
/* Any one that waits, out of the queue; NULL: none. */
struct flight *lane_pop(struct lane *l);
/* The first deadline, or when the window opens for those that wait. */
struct mono lane_deadline(const struct lane *l);
