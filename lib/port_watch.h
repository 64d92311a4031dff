/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * port_watch.h - what is remembered of a port so that its health can be judged: counters,
 * flaps, what it used to have, notices, the last transitions. port_judge() (port.h) is
 * the one writer of a port's health and reads this. Pure.
 */
#pragma once

#include "counters.h"
#include "flap.h"
#include "ib.h"
#include "link.h"

#define PORT_REASONS_MAX 8
#define PORT_HISTORY_MAX 32

/* Why the health is what it is; the first is the one that is shown where there is room
 * for one. Numbers are in the text as well. */
enum reason_code { REASON_OVERRIDE, REASON_LINK, REASON_REMOTE, REASON_COUNTER, REASON_FLAP,
		   REASON_WIDTH, REASON_SPEED, REASON_BASELINE, REASON_PCIE, REASON_NOTICE,
		   REASON_STATE_UNKNOWN, REASON_NOT_EXPECTED, REASON_SETTLING, REASON__MAX };
extern const struct enum_names reason_names; /* "override" "link" ... */
struct port_reason {
	enum reason_code code;
	char text[96];	     /* "symbol_error 180 in 1 h, limit 120" */
	double value, limit; /* as in the text; 0 where there is none */
	struct mono since;
};

struct port_transition {
	struct mono at;
	enum health from, to;
	enum fact_source source;
	char why[128];
};

/* The most that the port and its link had while it was well; kept over restarts. */
struct port_baseline {
	uint8_t lanes;	       /* 0 = none yet */
	uint32_t speed_mbps;   /* of a lane */
	uint64_t remote_guid;  /* with which far end: another one starts anew */
	uint8_t remote_port;
};

struct port_watch_params {
	struct counter_limits limits;
	struct flap_params flap;
	int64_t stable;	       /* ns: how long it must be well to be called well, 30 s */
	int64_t notice_window; /* ns: notices count as long, 10 min */
};
void port_watch_params_default(struct port_watch_params *p);

struct port_watch {
	struct counters *counters; /* owned, NULL until the first reading */
	struct flap flap;
	struct port_baseline baseline;
	bool baseline_changed;	   /* to be saved; the saver clears it */
	int n_reasons;
	struct port_reason reasons[PORT_REASONS_MAX];
	int n_history;		   /* ever; the last PORT_HISTORY_MAX are kept */
	struct port_transition history[PORT_HISTORY_MAX];
	struct { uint32_t n; struct mono first, last; } notices[3]; /* 129 130 131 */
	struct mono well_since;	   /* nothing is wrong since; never: something is */
	bool unsteady;		   /* counters, flaps or notices are wrong */
	struct mono unsteady_at;   /* and were last so; never */
	bool was_down;
};
void port_watch_done(struct port_watch *w);

/* A notice of the fabric about this port (traps 129..131). Whoever is not the owner of
 * the port's LID has no say: @issuer_lid must be it (of a switch port: the switch's).
 * 0, or -EPERM, -EINVAL: changes nothing. */
int port_watch_notice(struct port_watch *w, const struct notice *n, uint16_t own_lid,
		      uint8_t own_port, struct mono now);
const struct port_transition *port_watch_transition(const struct port_watch *w, int i);
