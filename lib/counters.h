/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * counters.h - counters of a port: one table of what there is, where it comes from, how
 * wide the hardware's register is and what amount is too much; 64-bit accumulators over
 * registers that saturate and that others may reset; amounts over windows of time. Pure.
 *
 * Names are sysfs' (symbol_error, port_xmit_wait); PMA's map to the same (IBA 16.1.3.5,
 * 16.1.4.x). Data counters are kept in bytes: the hardware counts words of 4 bytes,
 * whatever the link width (IBA 16.1.3.5: octets divided by 4, all lanes).
 */
#pragma once

#include "mono.h"
#include "names.h"

enum counter {
	/* of the link, all link layers that have them */
	CTR_SYMBOL_ERROR, CTR_LINK_ERROR_RECOVERY, CTR_LINK_DOWNED, CTR_PORT_RCV_ERRORS,
	CTR_PORT_RCV_REMOTE_PHYSICAL_ERRORS, CTR_PORT_RCV_SWITCH_RELAY_ERRORS,
	CTR_PORT_XMIT_DISCARDS, CTR_PORT_XMIT_CONSTRAINT_ERRORS,
	CTR_PORT_RCV_CONSTRAINT_ERRORS, CTR_LOCAL_LINK_INTEGRITY_ERRORS,
	CTR_EXCESSIVE_BUFFER_OVERRUN_ERRORS, CTR_QP1_DROPPED, CTR_VL15_DROPPED,
	CTR_PORT_XMIT_WAIT,
	/* traffic; bytes and packets */
	CTR_PORT_XMIT_DATA, CTR_PORT_RCV_DATA, CTR_PORT_XMIT_PACKETS, CTR_PORT_RCV_PACKETS,
	CTR_UNICAST_XMIT_PACKETS, CTR_UNICAST_RCV_PACKETS, CTR_MULTICAST_XMIT_PACKETS,
	CTR_MULTICAST_RCV_PACKETS,
	/* RoCE and iWARP: hw_counters, by their most common names */
	CTR_OUT_OF_SEQUENCE, CTR_PACKET_SEQ_ERR, CTR_LOCAL_ACK_TIMEOUT_ERR,
	CTR_RNR_NAK_RETRY_ERR, CTR_OUT_OF_BUFFER, CTR_RX_ICRC_ENCAPSULATED,
	CTR_NP_CNP_SENT, CTR_NP_ECN_MARKED_ROCE_PACKETS, CTR_RP_CNP_HANDLED,
	/* of the network device: pause frames and discards */
	CTR_RX_PAUSE, CTR_TX_PAUSE, CTR_RX_DISCARDS,
	CTR__MAX
};

enum counter_kind {
	CTR_KIND_ERROR, /* alarms over its limit */
	CTR_KIND_INFO,	/* congestion, waits: informs, never alarms */
	CTR_KIND_TRAFFIC
};
/* One row of the table. */
struct counter_row {
	const char *name;
	enum counter_kind kind;
	uint8_t bits;	   /* of PortCounters' register: 4, 8, 16, 32; 64 elsewhere */
	uint8_t scale;	   /* 4 for words, else 1 */
	uint32_t limit;	   /* more than so many in @limit_sec are too many; 0 = none */
	uint32_t limit_sec;
	const char *help;
};
extern const struct counter_row counter_rows[CTR__MAX];
int counter_find(const char *name); /* enum counter, or -1; sysfs' and PMA's spelling */

/* Where a value was read. */
enum counter_source { COUNTER_NOWHERE, COUNTER_PMA, COUNTER_PMA_EXT, COUNTER_SYSFS,
		      COUNTER_HW_COUNTERS, COUNTER_ETHTOOL, COUNTER_SOURCE__MAX };
extern const struct enum_names counter_source_names; /* "pma" "pma_ext" ... */
extern const struct enum_names counter_kind_names;   /* "error" "info" "traffic" */

/* What one reading gave. */
struct counter_reading {
	uint64_t value[CTR__MAX]; /* raw, in the register's unit */
	uint8_t bits[CTR__MAX];	  /* width of the register it came from */
	uint8_t why[CTR__MAX];	  /* enum unavailable; WHY_NONE: value is there */
	uint8_t source[CTR__MAX]; /* enum counter_source */
};
void counter_reading_init(struct counter_reading *r, enum unavailable why);

/* Limits as the config may change them: all rows' defaults, then changes. */
struct counter_limits {
	uint32_t limit[CTR__MAX], sec[CTR__MAX]; /* limit 0: never alarms */
};
void counter_limits_default(struct counter_limits *l);
/* "symbol_error 120/h", "link_downed 2/10m", "port_rcv_errors off". 0 or -EINVAL with
 * what is wrong in @why. Units s, m, h, d. */
int counter_limit_parse(const char *text, struct counter_limits *l, char *why,
			size_t why_size);
const char *counter_limit_text(const struct counter_limits *l, enum counter c, char *buf,
			       size_t size); /* "120/h", "off" */

/* ---- accumulation ---- */

#define COUNTER_SLICES	64 /* history: amounts of the last hour and day */

/* All counters of a port. About 20 KiB. */
struct counters; /* opaque */
struct counters *counters_new(void);
struct counters *counters_free(struct counters *c); /* NULL-safe, returns NULL */

/* A reading at @now. A value below the last one: somebody reset it (reset_by_other): it
 * counts from 0. At the register's top: saturated, what came after is not known (the
 * 64-bit sum goes on when it moves again). Each counter has its own availability. */
void counters_read(struct counters *c, const struct counter_reading *r, struct mono now);

struct counter_view {
	uint64_t total;	      /* since the first reading, in bytes or counts */
	uint64_t raw;	      /* register now */
	enum unavailable why;
	enum counter_source source;
	struct mono first; /* reading that gave a value; never: none yet */
	bool saturated;	      /* the register stands at its top */
	uint32_t resets;      /* by others, seen since the first reading */
	struct mono reset_at, saturated_at, changed_at;
};
void counters_view(const struct counters *c, enum counter which, struct counter_view *ret);
/* How much came in the last @ns (at most 24 h), and since when that is known (a younger
 * or coarser begin than asked for is told in *ret_from). */
uint64_t counters_since(const struct counters *c, enum counter which, struct mono now,
			int64_t ns, struct mono *ret_from);
/* When was it last read; never. */
struct mono counters_read_at(const struct counters *c);

/* Over its limit now: how much in the window, and since when it has been over. */
struct counter_over {
	bool over;
	uint64_t amount;
	struct mono since;
};
/* Also keeps track of since: call after each reading. A counter stays over until the
 * window is below the limit. */
void counters_judge(struct counters *c, const struct counter_limits *l, struct mono now);
void counters_over(const struct counters *c, enum counter which, struct counter_over *ret);
