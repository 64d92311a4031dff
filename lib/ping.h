/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ping.h - the engine of one ping (struct ep_ping) of one endpoint, shared by the udp
 * transport and the device worker: what to send when, which echo is whose, what is lost,
 * and the figures. Beside the endpoint's probes and heartbeats, with numbers of its own.
 * Pure: time is an argument, sending is the caller's.
 *
 * Message n of ping id has the number id << 32 | n, so that an echo of an earlier ping
 * of the connection is never taken for one of this.
 *
 * The schedule is fixed at the start, so that an interval does not drift; what a stall
 * has delayed goes at once, but no more than one message is made up for. With interval 0
 * each goes as soon as the one before is answered or lost. At most window messages are
 * out at a time, and never two closer than PING_GAP_NS.
 *
 * A message is lost when its echo is not there after the timeout, and stays lost: an
 * echo that comes later, or twice, is counted in dropped and nowhere else. A message that
 * the caller could not send is lost at once.
 */
#pragma once

#include "endpoint.h"
#include "hist.h"
#include "mono.h"

#define PING_WINDOW 1024 /* messages out at a time, at most */
/* Two messages of a connection are so far apart at least: what rx always echoes. */
#define PING_GAP_NS  (50 * NSEC_PER_USEC)
#define PING_TELL_NS (100 * NSEC_PER_MSEC) /* between two PING_TELL */

struct ping_pending {
	struct mono sent, lost_at;
	bool open; /* neither answered nor lost */
};

struct ping {
	struct ep_ping order;
	uint32_t size;	   /* bytes of each message */
	unsigned window;   /* 1..PING_WINDOW */
	uint32_t next;	   /* number of the next message, from 1 */
	uint32_t oldest;   /* no message before this one is open */
	struct mono next_tx, sent_at; /* by schedule; when the last one went */
	struct mono tell_at;
	struct hist rtt, net, host; /* owned */
	uint64_t last; /* round trip, ns */
	struct mono begun;
	struct ep_stats stats; /* counts only */
	struct ping_pending pending[PING_WINDOW];
};

/* @mtu: bytes of a message that the path carries whole, for order->size 0; @max: longest
 * that can be sent at all. NULL: the order's messages are longer. @window: messages that
 * may be out at a time. Owned by the caller. */
struct ping *ping_new(const struct ep_ping *order, uint32_t mtu, uint32_t max,
		      unsigned window, struct mono now);
struct ping *ping_free(struct ping *p); /* NULL-safe, returns NULL */

/* What to do at @now. Call it when ping_deadline() has come and after each
 * ping_on_echo(); repeat until PING_NOTHING. PING_SEND: send message @ret_seq of p->size
 * bytes and call ping_sent() or ping_not_sent(). PING_TELL: report ping_stats().
 * PING_DONE: report them as the last ones and free it. */
enum ping_do { PING_NOTHING, PING_SEND, PING_TELL, PING_DONE };
enum ping_do ping_step(struct ping *p, struct mono now, uint64_t *ret_seq);
struct mono ping_deadline(const struct ping *p); /* never MONO_NEVER */
/* A message would be given up now: look first for what has come in time. */
bool ping_is_losing(const struct ping *p, struct mono now);

void ping_sent(struct ping *p, uint64_t seq, struct mono now);
void ping_not_sent(struct ping *p, uint64_t seq, struct mono now);
/* t1: our clock when sent, as the echo carries it; t2, t3: the peer's at receipt and send
 * (ns; 0 = not known). false: of another ping, came twice or too late. */
bool ping_on_echo(struct ping *p, uint64_t seq, int64_t t1, int64_t t2, int64_t t3,
		  struct mono now);
/* The caller could not receive for @ns until @now: what is out has so much more time. */
void ping_stalled(struct ping *p, int64_t ns, struct mono now);
/* The endpoint is going: what is out is lost, PING_DONE is next. */
void ping_abort(struct ping *p);
void ping_stats(const struct ping *p, struct ep_stats *ret);

/* rx: how many pings are echoed. Twice what a tx sends, so that none that keeps to
 * PING_GAP_NS is refused. */
#define PING_ECHO_PER_SEC 40000
#define PING_ECHO_BURST	  1024
struct ping_limit {
	int64_t paid; /* ns of the monotonic clock up to which is spent */
};
bool ping_may_echo(struct ping_limit *l, struct mono now);
