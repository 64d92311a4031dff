/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * endpoint.h - the contract between a connection and whatever carries its fabric
 * messages: the udp transport in main, or a device worker (rc). Both take the same
 * verbs and report the same events; plain structs of fixed size, so that they travel
 * in worker messages as they are (proto/worker.h). Pure: declarations only.
 *
 * One endpoint per connection (conn_id, ours) and attempt (epoch). Verbs:
 *   start      bring it up. tx: resolve, connect. rx: be ready to accept. -> STAGE...,
 *              READY (rx: peer may connect now; port says where), UP, or ERROR.
 *   probe      after UP: tx sends the first probes, one at a time; rx counts distinct
 *              ones. -> PROBING, then PROBES_DONE (tx: all echoes and, on rc, all send
 *              completions in; rx: all received), or ERROR.
 *   heartbeat  after PROBES_DONE: tx sends heartbeats at hb_interval (each interval
 *              jittered by at most 10 % downwards), rx echoes and watches. -> LATE when
 *              nothing came for hb_interval * hb_multiplier, ALIVE when it comes back,
 *              STATS of figures: a second after PROBING, then every 10 s (a worker of
 *              a thousand endpoints at most: every second), and a second after the last
 *              ones when something was lost since. Edges carry them too. Main asks udp
 *              for them whenever it shows them (udp_ep_stats).
 *   ping       while up: tx sends count more messages of its own, apart from heartbeats,
 *              and tells how they fare. -> PONG at most ten times a second and a last one.
 *              One at a time: a second ping ends the first. (lib/ping.h)
 *   reset      tear down, whatever the state; always answered by RESET_DONE, also when
 *              there is no such endpoint. Nothing of that epoch is reported after it.
 * rx echoes probes and heartbeats from PROBING on. Everything of another epoch than
 * the current one is dropped and counted by the provider.
 */
#pragma once

#include "addr.h"
#include "names.h"

#define EP_KEY_LEN 32
#define EP_TEXT_MAX 96
#define EP_IF_MAX 16

struct ep_start {
	uint64_t conn_id;      /* ours: the handle */
	uint64_t peer_conn_id; /* goes into every fabric message */
	uint64_t epoch;
	uint8_t role;	   /* enum conn_role */
	uint8_t transport; /* enum transport */
	uint8_t port;	   /* rc: port number of the device the local address belongs
			      to; 0 = any */
	uint8_t tos;	   /* traffic class */
	uint8_t sl;	   /* service level wanted; EP_SL_ANY: as the path says */
	uint8_t has_key;   /* fabric messages carry and demand an authenticator */
	uint8_t ack_timeout; /* rc: 4.096 us * 2^n, 1..31; 0 = leave the default */
	uint8_t retry_count; /* rc: 0..7 */
	uint8_t multiplier;
	uint8_t key[EP_KEY_LEN]; /* session key of this epoch, both directions */
	struct addr local;	 /* source; port 0 = any. rx: address to accept on, port:
				    rc CM port; udp 0 = any */
	struct addr remote;	 /* tx: where to connect, with port. rx: the only address
				    to accept from (port 0) */
	char netdev[EP_IF_MAX];	 /* udp: bind to this interface; "" = do not */
	uint32_t heartbeat_us;	 /* 10000..3600000000 */
	uint32_t resolve_timeout_ms;
	uint32_t connect_timeout_ms; /* tx: whole of connect; rx: how long READY holds */
	uint16_t flow;
	uint16_t probe_small; /* how many first probes of 64 bytes */
	uint16_t probe_large; /* how many of probe_size bytes; and every 10th heartbeat
				 is one if probe_size > 64 */
	uint8_t pad;
	uint32_t probe_size;  /* bytes of payload, 0 = endpoint takes the path MTU */
};
#define EP_SL_ANY 0xff

struct ep_ping {
	uint64_t conn_id, epoch;
	uint32_t id;	      /* not 0 */
	uint32_t count;	      /* 1..EP_PING_COUNT_MAX; 0: end the one that runs, and tell
				 nothing more of it */
	uint32_t size;	      /* bytes, EP_PING_SIZE_MIN..; 0 = what the path carries whole */
	uint32_t interval_us; /* 0: each when the one before it is answered or lost */
	uint32_t timeout_us;  /* of each */
	uint32_t pad;
};
#define EP_PING_COUNT_MAX 1000000
#define EP_PING_SIZE_MIN 64

/* What the endpoint knows of the path that its messages take. A bit of known for each
 * field that is. Host byte order but GIDs. */
enum ep_path_bit {
	EP_PATH_SGID = 1 << 0, /* sgid, sgid_index, gid_type */
	EP_PATH_DGID = 1 << 1,
	EP_PATH_PKEY = 1 << 2, /* pkey, pkey_index */
	EP_PATH_SL = 1 << 3,
	EP_PATH_RATE = 1 << 4,
	EP_PATH_HOPS = 1 << 5,
	EP_PATH_CLASS = 1 << 6,
	EP_PATH_FLOW_LABEL = 1 << 7,
	EP_PATH_LIDS = 1 << 8,
	EP_PATH_QPS = 1 << 9,
	EP_PATH_SPORT = 1 << 10
};
struct ep_path {
	uint32_t known;	     /* bits of enum ep_path_bit */
	uint32_t mtu;	     /* bytes of payload that fit, 0 = not known */
	uint32_t rate_mbps;
	uint32_t flow_label; /* 20 bits */
	uint32_t qpn, remote_qpn;
	uint16_t slid, dlid;
	uint16_t pkey, pkey_index, sgid_index;
	uint16_t sport; /* source port of the UDP packets that carry it (udp, RoCEv2) */
	uint8_t gid_type; /* enum ep_gid_type */
	uint8_t sl, hop_limit, traffic_class;
	uint8_t sgid[16], dgid[16];
};

/* Round trips and losses. Times in ns. Counts since the endpoint came up, round-trip
 * figures over the last 60 s; p50 and p99 are wrong by at most 6.25 % (lib/hist.h). The
 * split, its clock and late_p99_us are of all endpoints of the same socket or device. */
struct ep_stats {
	uint64_t sent, received, lost, dropped; /* dropped: malformed, forged, old */
	uint32_t consecutive_lost;
	uint32_t samples; /* in the window */
	uint64_t rtt_min, rtt_mean, rtt_p50, rtt_p99, rtt_max, rtt_last;
	uint64_t net_p50, host_p50; /* split, 0 = not known; host: of both hosts */
	uint64_t peer_p50;	    /* of it the responder's, 0 = not known */
	uint64_t rtt_all_p50, rtt_all_p99; /* since the endpoint came up */
	uint32_t samples_all;
	uint32_t late_p99_us;	    /* how late own timers fired in the window */
	uint8_t clock;		    /* enum ep_clock */
	uint8_t large_lost; /* tx: large messages lost in a row while small ones pass */
	uint8_t acked; /* tx, rc: sends that the far end's adapter has acknowledged since
			  the last echo */
	uint8_t pad[5];
};

enum ep_event_type {
	EP_STAGE,	/* stage changed */
	EP_READY,	/* rx: addr = where to connect */
	EP_UP,		/* addr = own, remote; facts filled as far as known */
	EP_PROBING,
	EP_PROBES_DONE,
	EP_LATE,
	EP_ALIVE,
	EP_ERROR,	/* error, status, text; the endpoint waits for reset */
	EP_RESET_DONE,
	EP_STATS,
	EP_PONG, /* how a ping fares: status its id, ping_done, stats of its messages alone;
		    text: why it ended early, or was not begun */
	EP_PATH, /* the path has become another one: path */
	EP__MAX
};

struct ep_event {
	uint64_t conn_id;
	uint64_t epoch;
	uint8_t type;  /* enum ep_event_type */
	uint8_t stage; /* enum ep_stage */
	uint8_t error; /* enum ep_error */
	uint8_t port;  /* UP: device port number */
	int32_t status; /* as the library gave it; its sign and meaning are in text */
	struct addr addr;   /* READY: own with port; UP: own */
	struct addr remote; /* UP */
	uint8_t ping_done;  /* PONG: the last one of that ping */
	uint8_t pad[7];
	char text[EP_TEXT_MAX]; /* ERROR: one line for an operator; NUL-terminated */
	union {
		struct ep_stats stats; /* STATS, PONG; also valid in LATE and ALIVE */
		struct ep_path path;   /* UP, PATH */
	};
};
