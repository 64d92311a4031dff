/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hot.h - inside the hot thread: the endpoints it has and when each has something to do
 * (hot.c), what their messages mean (hot_io.c), and how these travel: hot_rc.c, hot_ud.c.
 * Nothing here blocks; it allocates as endpoints come and as their statistics grow.
 */
#pragma once

#include "ud.h"

#define WC_BATCH 16

struct hot {
	struct worker *w;	   /* borrowed */
	struct endpoint *eps;	   /* by conn_id, borrowed */
	struct heap timers;	   /* of them */
	struct endpoint *backlog;  /* their events found the ring to main full */
	struct ud_port *ports[UD_PORTS]; /* borrowed, live */
	unsigned n_ports;
	struct rdma_ctx *ctx; /* borrowed from cm, NULL = none yet */
	struct hb_shared shared[2]; /* of all endpoints here: rc, ud */
	bool channel_dead;
	bool more; /* a flood: what is left is looked at after everybody else's turn */
	uint64_t seed;	  /* of random numbers */
	int mtu_fd;	  /* asks interfaces for their MTU; -1: none */
	struct mono woke; /* when this turn began */
	struct mono clock_at; /* when the device's clock is read again */
};

void hot_init(struct hot *h, struct worker *w, uint64_t seed);
void hot_done(struct hot *h);
/* One turn: wait for something, at most until the next deadline, and handle it. */
void hot_turn(struct hot *h);
/* Of the endpoints that hot has. NULL: none. */
struct endpoint *hot_find(struct hot *h, uint64_t conn_id);
/* There is room for what must be told, whatever else happens; else it waits. */
bool hot_may_note(const struct hot *h);
void hot_note(struct hot *h, const struct hot_note *n);
/* A failure is an event of its own; this looks at the endpoint again when it is due. */
void hot_set_timer(struct hot *h, struct endpoint *ep);

/* ---- hot_io.c ---- */

/* Take the notifications of the channel, re-arm, poll the queues they name. */
void hot_drain_channel(struct hot *h);
/* Completions of @ep, or of the queue pair it shares, until there are none. These read
 * the clock themselves: a turn may be long against a round trip. */
void hot_poll_cq(struct hot *h, struct endpoint *ep);
/* Let the engine of @ep act until it has nothing to do; hand over its events. step looks
 * first for what may have come in time; act is for who has just looked. */
void hot_step(struct hot *h, struct endpoint *ep);
void hot_act(struct hot *h, struct endpoint *ep);
/* Hand over what is pending; what finds the ring full stays pending, so that edges are
 * never lost and statistics are the newest. */
void hot_flush(struct hot *h, struct endpoint *ep, struct mono now);
void hot_flush_backlog(struct hot *h, struct mono now);
static inline uint8_t hot_clock(const struct hot *h)
{
	return h->ctx && h->ctx->clock.usable ? EP_CLOCK_DEVICE : EP_CLOCK_HOST;
}
void hot_drop(struct hot *h, struct endpoint *ep, enum drop reason);

/* A message to be sent: where it is built, and what must be known of that later. */
struct outgoing {
	uint8_t *buf;
	uint32_t len;
	uint16_t slot;
};
/* A message that came in; @ep is the one it is for. */
struct incoming {
	uint8_t *buf; /* its first byte: an echo is written over it */
	uint32_t len;
	uint16_t slot;
	struct mono at;
	struct fabric_msg m;
};
/* Is it of this attempt, and signed where it must be? Else it is counted as dropped. */
bool hot_is_genuine(struct hot *h, struct endpoint *ep, const struct incoming *in);
/* Do what it asks for. true: the slot stays in use. */
bool hot_receive(struct hot *h, struct endpoint *ep, struct incoming *in);
/* Answer it. true: the slot is in use until that is sent, or waits for a destination. */
bool hot_echo(struct hot *h, struct endpoint *ep, struct incoming *in);
/* A message of tx; false: it did not go. */
bool hot_send(struct hot *h, struct endpoint *ep, uint8_t type, uint64_t seq, uint32_t size,
	      struct mono *ret_sent);
static inline const uint8_t *key_of(const struct endpoint *ep)
{
	return ep->start.has_key ? ep->start.key : NULL;
}

/* ---- hot_ping.c ---- */

void hot_ping_begin(struct endpoint *ep, const struct ep_ping *order, struct mono now);
/* Send what is due, and note what is to be told. */
void hot_ping_step(struct hot *h, struct endpoint *ep, struct mono now);
struct mono hot_ping_deadline(const struct endpoint *ep); /* MONO_NEVER: none runs */
bool hot_ping_is_losing(const struct endpoint *ep, struct mono now);
void hot_ping_echoed(struct hot *h, struct endpoint *ep, const struct incoming *in);
void hot_ping_stalled(struct endpoint *ep, int64_t ns, struct mono now);
/* The endpoint has failed or is going; @why: a constant. */
void hot_ping_fail(struct endpoint *ep, const char *why);
/* What EP_PONG is to say; it has been said. */
void hot_ping_event(const struct hot *h, const struct endpoint *ep, struct ep_event *ret);
void hot_ping_told(struct endpoint *ep);
void hot_ping_done(struct endpoint *ep); /* without a word */

/* ---- how it travels: hot_rc.c and hot_ud.c have the same ---- */

/* A buffer for a message of at most @size bytes. false: there is none now. */
bool rc_begin(struct endpoint *ep, uint32_t size, struct outgoing *o);
bool ud_begin(struct hot *h, struct endpoint *ep, uint32_t size, struct outgoing *o);
/* Send it. false: it did not go. @seq, @sent: of a message of tx. */
bool rc_send(struct endpoint *ep, const struct outgoing *o, uint64_t seq,
	     struct mono sent);
bool ud_send(struct hot *h, struct endpoint *ep, const struct outgoing *o);
/* Send what was written over a received message. -errno; 0: the slot is free again, 1: it
 * is in use until the send completes. */
int rc_send_echo(struct endpoint *ep, const struct incoming *in);
int ud_send_echo(struct hot *h, struct endpoint *ep, const struct incoming *in);

/* Have the completion of what was sent wake this thread. */
void rc_arm_sends(struct endpoint *ep);
void rc_poll(struct hot *h, struct endpoint *ep);

void ud_live(struct hot *h, struct ud_port *p);
void ud_stop(struct hot *h, struct ud_port *p);
void ud_poll(struct hot *h, struct ud_port *p);
/* An address handle has come. */
void ud_take_ah(struct hot *h, struct endpoint *ep, struct ud_ah *ah, uint32_t qpn,
		uint32_t qkey);
/* Let a message wait for a destination, in the place of the one that does. true: its
 * slot stays in use. */
bool ud_hold(struct endpoint *ep, const struct incoming *in);
/* @ep goes: what it holds. */
void ud_forget(struct hot *h, struct endpoint *ep);
