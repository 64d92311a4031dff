/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * render.h - objects as JSON, in the shapes of io.fabd.varlink. Field tables are
 * rendered row by row; what is unavailable is null with its reason. Pure: time is an
 * argument. All results are new references of the caller.
 */
#pragma once

#include <jansson.h>

#include "check.h"
#include "conn.h"
#include "explain.h"
#include "flap.h"
#include "matrix.h"
#include "port.h"
#include "verdict.h"

/* One instant in both clocks. */
struct render_time {
	struct mono now;
	int64_t wall_ns;
};

/* RFC 3339 UTC with milliseconds, "2026-11-30T20:41:07.118Z", of a monotonic instant. */
void render_instant(json_t *o, const char *key, struct mono at, const struct render_time *t);
const char *render_wall(int64_t wall_ns, char buf[32]);
/* "since" and "age_sec". */
void render_since(json_t *o, struct mono at, const struct render_time *t);

/* Text; NULL is null. Bytes of what is no UTF-8 become '?'. */
/* @value is taken; one that is no JSON is a bug. */
void render_set(json_t *o, const char *key, json_t *value);
void render_text(json_t *o, const char *key, const char *text);
void render_int(json_t *o, const char *key, uint64_t value);
/* The share of @part, at most all; null: of nothing. */
void render_percent(json_t *o, const char *key, uint64_t part, uint64_t of);
/* Nanoseconds as seconds, to the millisecond. */
void render_seconds(json_t *o, const char *key, int64_t ns);
/* Seconds since @at; null if that is never. */
void render_age(json_t *o, const char *key, struct mono at, const struct render_time *t);

/* Fields of a table into @o, and the missing ones into the object @unavailable. */
void render_fields(json_t *o, json_t *unavailable, const struct field_table *table,
		   const void *facts);

struct device_view { /* what a device is made of, for rendering */
	const char *name;
	uint32_t index; /* DEVICE_INDEX_NONE: null */
	const struct device_facts *facts;
	struct mono since;
	json_t *ports;	 /* array of names; taken */
	json_t *workers; /* array of Worker; taken */
};
json_t *render_device(const struct device_view *d, const struct render_time *t);

/* @addresses: array of texts, taken. @flap: for the penalty now. */
json_t *render_port(const struct port *p, json_t *addresses, const struct flap_params *flap,
		    const struct render_time *t);
/* What is remembered of its health: reasons, history, baseline, flaps; and the far end's
 * name. */
void render_watch(json_t *o, const struct port *p, const struct flap_params *flap,
		  const struct render_time *t);
/* All counters, with what came in the last @window_ns. */
json_t *render_port_counters(const struct port *p, const struct counter_limits *limits,
			     int64_t window_ns, const struct render_time *t);

/* Where a connection goes: from its endpoint, the kernel and the other side. */
struct path_view {
	bool up;	     /* path is of the endpoint that is up; else as it was last */
	struct ep_path path;
	struct addr source, destination;
	char netdev[EP_IF_MAX]; /* "" = none */
	uint32_t netdev_mtu;
	struct addr gateway; /* family 0: on the link */
	const char *neighbour_state; /* of the gateway, if there is one; NULL: no entry */
	int64_t neighbour_age_ns;
	struct ctl_path told; /* 0 where it is not known */
	char mismatch[128];   /* "" = none */
};

struct conn_view {
	const struct conn *c;
	enum verdict verdict;
	const char *why;
	struct mono verdict_since;
	enum verdict own_verdict;
	const char *held_by;	 /* "" = by nothing */
	const struct flap *flap; /* NULL: never lost */
	struct flap_params flap_params;
	double usual_p99;	      /* ns, 0 = not known */
	uint64_t lately_sent, lately_lost; /* heartbeats, of the last minute */
	const struct addr *local;     /* may be NULL */
	const struct path_view *path; /* may be NULL: nothing is known */
};
json_t *render_connection(const struct conn_view *v, const struct render_time *t);

/* @key: of the connection, NULL if there is none. */
json_t *render_explanation(const struct explain_facts *f, const struct explanation *e,
			   const struct conn_key *key, struct mono since,
			   const struct render_time *t);
/* @oldest: when the port that was read longest ago was; never: none was. */
json_t *render_check(const struct check_run *c, struct mono oldest, const struct render_time *t);

json_t *render_round_trip(const struct ep_stats *s); /* null: no samples */

/* How the ping of one connection fares. */
struct ping_view {
	const struct conn_key *key;
	const struct addr *local; /* may be NULL */
	uint32_t size;		  /* 0 = not known */
	uint32_t count;
	bool done;
	struct ep_stats stats;
	enum verdict verdict;
	const char *why;
};
json_t *render_ping(const struct ping_view *v);

/* render_matrix.c: the cells of a row that have connections. */
json_t *render_matrix_row(const struct matrix *m, int row, enum matrix_show show);
