/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * heartbeat.h - the engine of one endpoint's probes and heartbeats, shared by the udp
 * transport and the device worker. It says when to send what, matches echoes, counts
 * losses, and finds the edges late and alive. Pure: time and randomness are arguments,
 * sending is the caller's. Small: there are ten thousand of them.
 *
 * A message is lost when its echo has not come for interval * multiplier, or when an
 * echo of a later one came and 16 more were sent. Detection: nothing received for
 * interval * multiplier after the last sign of life (tx: an echo; rx: a message). A
 * local stall never makes late: the caller reports the time during which it could not
 * have received (hb_stalled, before hb_step), and the detection time is put off by that
 * much.
 *
 * Probes are stop-and-wait; one whose echo stays out goes again with the same number, so
 * that rx counts it once, after a wait that follows the round trip (rto.h). Between
 * HB_PROBES_DONE and hb_start_beats tx goes on with small ones at the interval, so that
 * rx, which may watch already, does not go late. The first heartbeat is at a random time
 * of its interval and each interval is shorter by up to 10 % at random: thousands that
 * were started at once spread, and stay so.
 * Only news is a sign of life: a replayed message is not.
 *
 * STATS are due a second after the start, then every 10 s (or as the provider says), and
 * no later than a second after the last ones when a message was lost since.
 */
#pragma once

#include "endpoint.h"
#include "mono.h"
#include "rto.h"
#include "rtt.h"

#define HB_SMALL  64 /* bytes of a small message, all of it */
#define HB_WINDOW 64 /* messages remembered while their echo is out, at most */
#define HB_STATS_NS (10 * NSEC_PER_SEC)
#define HB_CLOCK_KEPT_NS (30 * NSEC_PER_SEC)

enum hb_phase { HB_OFF, HB_PROBE, HB_BEAT };

/* What endpoints share that go the same way: those of a socket, or of a device's port.
 * Owned by the provider; it outlives them. All of tx but timers, which are of both. */
struct hb_shared {
	struct rtt *net;     /* owned; of a round trip, what the network took */
	struct rtt *host;    /* owned; both hosts, as far as that is known */
	struct rtt *peer;    /* owned; the responder alone */
	struct rtt *timers;  /* owned; how late own timers fired */
	int64_t stats_every; /* 0: HB_STATS_NS */
	uint8_t clock;	     /* enum ep_clock, of the split */
	struct mono split_at; /* the last one by that clock */
	/* What of these is told with STATS, worked out once a second for all. */
	struct mono told_at;
	uint64_t told_net, told_host, told_peer, told_late;
};
void hb_shared_init(struct hb_shared *s);
void hb_shared_done(struct hb_shared *s);

/* One round trip by all stamps there are. t1..t4 are of the monotonic clock of the host
 * that took them, k and d of clocks that need only be the same at both ends of the wire
 * here; 0 = none. */
struct hb_stamps {
	int64_t t1, t4; /* here: before the call that sent it; when it was read */
	int64_t k1, k4; /* here, the kernel's: left; came */
	int64_t d1, d4; /* here, the device's: left; came */
	int64_t t2, t3; /* there: came (the kernel's, if it can); before it was sent */
};
/* Count the split: of what is between the stamps nearest to the wire the network has all
 * but t3 - t2, the hosts have the rest. Stamps that cannot be true are left out. The first
 * time that a better clock is there the figures begin anew: those by another clock are
 * other figures. Returns the clock that was used, EP_CLOCK_NONE: not counted. */
enum ep_clock hb_split(struct hb_shared *s, const struct hb_stamps *t, struct mono now);

enum hb_fate {
	HB_ANSWERED,
	HB_OPEN,  /* echo not seen yet, not given up */
	HB_MISSED /* given up; an echo that comes after all is still a sign of life */
};
struct hb_pending {
	struct mono sent;
	uint32_t excused_us; /* stalls since: so much later is it lost */
	uint8_t fate;	     /* enum hb_fate */
	bool large;
};

struct hb_counts {
	uint64_t received, dropped;
	uint32_t lost, consecutive_lost;
	uint32_t resent; /* probes that went again */
	uint8_t large_lost, acked; /* tx: as in struct ep_stats */
};

struct hb {
	uint8_t role, phase; /* enum conn_role, hb_phase */
	bool probes_told;    /* HB_PROBES_DONE was given */
	bool large_due;	     /* tx: what HB_SEND asked for last is a large one */
	bool late;
	bool news; /* since the last STATS: at most a second until the next */
	uint8_t probe_tries;
	uint16_t probes_small, probes_large;
	uint16_t probes_done; /* tx: echoed; rx: received */
	uint32_t large_size;
	int64_t interval, detect; /* ns; detect = interval * multiplier */
	struct mono last_life, stats_at;
	struct hb_counts stats;
	struct hb_shared *shared; /* borrowed; NULL: nothing is kept there */
	union {
		struct { /* tx */
			uint64_t next_seq; /* from 1 */
			uint64_t highest_echo;
			uint64_t probe_seq; /* the probe that is out; 0 = none */
			struct mono next_tx;
			struct mono probe_resend; /* it goes again */
			struct rto rto;
			struct rtt *rtt; /* owned */
			/* The n_out numbers before next_seq; number s is in place
			 * s % room of the ring, which is @few until it must grow. */
			uint16_t n_out, room;
			struct hb_pending *ring; /* owned; NULL: @few */
			struct hb_pending few[2];
		};
		struct { /* rx */
			uint64_t highest_rx;
			uint64_t rx_bits; /* which of the last 64 came: duplicates do
					     not count */
		};
	};
};

/* Copies what it needs of @s. hb_done frees what was allocated. */
void hb_init(struct hb *h, const struct ep_start *s);
void hb_done(struct hb *h);
size_t hb_memory(const struct hb *h); /* allocated bytes beside *h */
void hb_start_probes(struct hb *h, struct mono now); /* phase PROBE */
void hb_start_beats(struct hb *h, struct mono now, uint64_t rnd); /* phase BEAT */
void hb_stop(struct hb *h);

/* What to do at @now. Call it when hb_deadline() has come and after each hb_on_*();
 * repeat until HB_NOTHING. HB_SEND: send message @ret_seq of @ret_size bytes, type
 * probe in phase PROBE, else heartbeat, and call hb_sent(). */
enum hb_do { HB_NOTHING, HB_SEND, HB_PROBES_DONE, HB_LATE, HB_ALIVE, HB_STATS };
enum hb_do hb_step(struct hb *h, struct mono now, uint64_t rnd, uint64_t *ret_seq,
		   uint32_t *ret_size);
struct mono hb_deadline(const struct hb *h); /* MONO_NEVER: none */
/* A heartbeat may go this much before its time, so that a wake-up serves many: hb_step
 * may be called so much before the deadline. ns, 1/512 of the interval. */
int64_t hb_early(const struct hb *h);
/* Would hb_step say HB_LATE? Whoever can, reads first what has come. */
bool hb_silent(const struct hb *h, struct mono now);

void hb_sent(struct hb *h, uint64_t seq, struct mono now);
/* tx: an echo came. t1: our clock when sent as the echo carries it; t2, t3: peer's
 * clock at receive and send (ns; 0 = not known): split by them, unless the provider does
 * that by better ones (hb_split). false: duplicate or unknown. */
bool hb_on_echo(struct hb *h, uint64_t seq, int64_t t1, int64_t t2, int64_t t3,
		struct mono now);
/* tx, rc: a send is complete: the far end's adapter has it. */
void hb_on_ack(struct hb *h);
/* rx: a probe or heartbeat came. false: duplicate (still echo it if it is a recent
 * probe: those are sent again), or phase OFF: not counted and not to be echoed, so that
 * tx sends it again. */
bool hb_on_message(struct hb *h, uint64_t seq, bool is_probe, struct mono now);
bool hb_is_recent(const struct hb *h, uint64_t seq); /* within the last 64 numbers */
/* The caller was unable to receive for @ns until @now. */
void hb_stalled(struct hb *h, int64_t ns, struct mono now);
void hb_stats(const struct hb *h, struct mono now, struct ep_stats *ret);
