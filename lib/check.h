/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * check.h - is this host fit for work: one status, one line, and the problems behind it,
 * worst first, from what is expected ([Expect]) and what is there. It is about this host:
 * a peer that is down is not its fault, a rail that reaches no peer is. No text has an age
 * or a count that changes by itself, so that the lines of many hosts fold. Pure: the
 * caller hands in what is there, a port, a path, a fault at a time.
 */
#pragma once

#include "port.h"

/* By weight: what is worse is larger. A known failure outweighs what is not known; what
 * is not known outweighs a blemish: it is never called well. */
enum check_status { CHECK_OK, CHECK_DEGRADED, CHECK_UNKNOWN, CHECK_FAILED, CHECK__MAX };
extern const struct enum_names check_status_names; /* "ok" "degraded" "unknown" "failed" */
const char *check_word(enum check_status s);	   /* "OK" "DEGRADED" "UNKNOWN" "CRITICAL" */

/* Peers=: how many peers a rail must reach. */
enum check_share_kind { SHARE_UNSET, SHARE_ALL, SHARE_COUNT, SHARE_PERCENT };
struct check_share {
	uint32_t kind; /* enum check_share_kind; unset: one at least */
	uint32_t n;
};
/* "all", "100", "90%". 0, -EINVAL. */
int check_share_parse(const char *text, struct check_share *ret);
const char *check_share_text(const struct check_share *s, char buf[24]); /* "" unset */

struct check_expect { /* 0 = nothing is expected */
	uint32_t ports;	    /* so many must be well */
	uint32_t rails;	    /* so many must reach peers */
	uint32_t rate_mbps; /* least rate of each */
	struct check_share peers;
};

#define CHECK_TEXT_MAX 128
#define CHECK_SUMMARY_MAX 512
#define CHECK_NAMES_MAX 3

struct check_port {
	const char *name; /* DEV/PORT */
	enum health health;
	bool set_ok;	    /* by the operator, whatever it is: always told */
	bool stale;	    /* what is known of it is too old to be believed */
	uint32_t rate_mbps; /* 0 = not known */
	char text[CHECK_TEXT_MAX]; /* what is wrong with it: "DOWN (leaf07/22)" */
};
/* Of a port object; @stale is the caller's. */
void check_port_of(const struct port *p, const char *name, bool stale,
		   struct check_port *ret);

/* How a peer is reached on one rail, over all transports and flows: the worst of them. */
struct check_reach {
	const char *peer, *rail;
	const char *port; /* DEV/PORT; "-" none */
	enum verdict verdict;
	bool connected;	  /* all of them, and none is late */
	const char *why;  /* a local fault in steady words, "eth0 DOWN"; may be NULL */
};

struct check_problem {
	enum check_status status;
	int order; /* among those of one status: as they are told */
	char name[PORT_NAME_MAX]; /* what it is about; "" = the host */
	char text[CHECK_TEXT_MAX];
};

struct check_rail {
	char label[64];
	int peers, reached, excused, unknown; /* unknown: being connected */
	int lossy, filtered; /* of those that are reached: badly; without control */
	int of[VERDICT__MAX];			     /* those that are not reached */
	int n_names;
	char names[CHECK_NAMES_MAX][64]; /* of those, sorted */
	char why[CHECK_TEXT_MAX];	 /* "" = none or not one */
	bool whys_differ;
};

struct check_run {
	struct check_expect expect;
	int n_problems, n_rails, room_problems, room_rails, rail_hint;
	struct check_problem *problems; /* owned; worst first after check_end() */
	struct check_rail *rails;	/* owned */
	int ports, ports_good, ports_told; /* in use; well; those with a problem */
	uint32_t rate_least, rate_most;	   /* of those that are well, 0 = not known */
	bool ports_judged;
	int n_set_ok; /* ports; the names of the first, as they were added */
	char set_ok[CHECK_NAMES_MAX][PORT_NAME_MAX];
	int rails_reach;
	enum check_status status; /* the answer */
	enum check_status found;  /* the same without mercy for a host that just booted */
	char summary[CHECK_SUMMARY_MAX]; /* without the word */
};

/* check_begin, then any number of the next three (ports before paths), then check_end:
 * status and summary are valid until check_done(). */
void check_begin(struct check_run *c, const struct check_expect *e);
void check_add_port(struct check_run *c, const struct check_port *p);
void check_add_reach(struct check_run *c, const struct check_reach *r);
/* Something else is wrong with @name: "mlx5_2", "device-stuck". */
void check_add(struct check_run *c, enum check_status s, const char *name, const char *text);
/* @booting: the host is up for less than a minute: what is wrong may still come. */
void check_end(struct check_run *c, bool booting);
void check_done(struct check_run *c);
