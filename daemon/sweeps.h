/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sweeps.h - the fabric beyond the own ports: from which port it is looked at and when,
 * what the subnet administration (SA) and notices add, and questions about one port of
 * it. One subnet at a time, that of the first InfiniBand port that is up. The files that
 * share this:
 *   sweeps.c       the port, the sweeps, hints
 *   sweep_sa.c     tables of the SA, subscription to notices
 *   fabric_query.c one port of the fabric, asked now
 *   fabric_views.c what the socket shows
 */
#pragma once

#include "manager.h"
#include "route.h"
#include "subnet.h"
#include "sweep.h"

#define SWEEP_WAITERS_MAX 8
#define FABRIC_QUERIES_MAX 8

enum sa_table { SA_SMS, SA_MEMBERS, SA__MAX };

struct sa_facts {
	struct sm_record *sms;		  /* owned */
	struct mcmember_record *members;  /* owned */
	int n_sms, n_members;
	struct mono read_at, asked_at;
	uint32_t asked_of; /* LID of the subnet manager */
	bool out[SA__MAX];
	char why[SA__MAX][96]; /* "" = the table is there */
};

struct sweep_waiter {
	struct api_ticket ticket;
	bool next; /* not for the present sweep, for the one after it */
};

struct sweeps {
	struct manager *m;
	/* where from; port 0 = nowhere */
	char device[DEVICE_NAME_MAX];
	uint8_t port;
	struct mono unusable_since; /* never: it is usable */
	struct worker *worker;	    /* borrowed: who carries the present sweep out */

	struct subnet *subnet; /* owned; NULL: not swept */
	struct sweep *sweep;   /* owned, with the subnet */
	uint64_t edition;      /* moves when the subnet may have changed */
	bool aborted;	       /* the last sweep did not end: it is begun anew */
	enum sweep_kind aborted_kind;
	bool want_cold, cold_on; /* the next one, the present one */
	struct mono began_at, next_at;
	struct sweep_result last_full;
	struct loop_source *pump, *timer, *progress;

	/* views: nodes by serial, levels, sums */
	struct ib_node **by_serial; /* owned */
	struct subnet_counts counts;
	const struct ib_node *busiest; /* borrowed; most MADs were sent to it */
	uint8_t *levels;	    /* owned */
	uint32_t n_by_serial, n_levels;
	uint64_t indexed, levelled, counted; /* editions */
	struct mono levelled_at;

	struct sweep_waiter waiters[SWEEP_WAITERS_MAX];
	int n_waiters;
	struct fabric_query *queries; /* owned */
	int64_t queries_paid;	      /* ns of the loop's clock: later than now = too many */

	struct sa_facts sa;
	bool subscribed, inform_out;
	unsigned inform_failures;
	uint32_t subscribed_sm, subscribed_generation;
	struct mono inform_next;
	uint64_t notices;
};

struct sweeps *sweeps_new(struct manager *m);
struct sweeps *sweeps_free(struct sweeps *s); /* NULL-safe */
void sweeps_tick(struct sweeps *s, struct mono now);
/* The config has changed. */
void sweeps_reload(struct sweeps *s);
void sweeps_worker_lost(struct sweeps *s, const struct worker *w);
/* Hints: something changed at a port of this host, or at one of the fabric. */
void sweeps_port_changed(struct sweeps *s, const struct port_entry *pe);
void sweeps_on_notice(struct sweeps *s, const struct wm_notice *m);
/* Sweep now and tell the ticket. */
void sweeps_order(struct sweeps *s, bool cold, const char *who, const struct api_ticket *t);
void sweeps_dropped(struct sweeps *s, uint64_t ticket);
/* NULL, or why there is no fabric to show. */
const char *sweeps_why_none(const struct sweeps *s);
struct port_entry *sweeps_port(const struct sweeps *s); /* NULL: gone */

/* sweep_sa.c */
void sa_read(struct sweeps *s);
void sa_tick(struct sweeps *s, struct mono now);
void sa_forget(struct sweeps *s); /* all that is known */

/* fabric_query.c */
void fabric_query(struct sweeps *s, const char *name, const struct api_ticket *t);
void fabric_query_dropped(struct sweeps *s, uint64_t ticket);
void fabric_queries_end(struct sweeps *s, const char *why);

/* fabric_views.c */
json_t *fabric_json(struct sweeps *s);
void fabric_views_api(struct api *ret);
/* The next object of one of the fabric's lists, as struct api's next. */
json_t *fabric_next(struct sweeps *s, enum api_list list, uint64_t *cursor);
/* {node, why} of io.fabd.NoSuchNode; NULL and the node if it is there. */
json_t *fabric_find(struct sweeps *s, const char *name, struct ib_node **ret);
