/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sweep_int.h - what the files of the sweep share; nobody else includes it.
 *
 *   sweep.c         life, start and end of a sweep, results
 *   sweep_window.c  requests that are out: window, tries, budget, deadlines
 *   sweep_ask.c     which attribute to ask next
 *   sweep_later.c   what an incremental sweep asks
 *   sweep_learn.c   what answers mean: nodes, ports, tables
 *   sweep_link.c    what an answer across a link means: links, moves, duplicates
 *   sweep_end.c     errors, routes, what is dropped
 *
 * Work is marked where it belongs: each node of the subnet has a struct work (reached by
 * ib_node.sweep) with flags of the node and a struct slot for each port. A node with
 * something to read is in the ring of readers, a node with links to ask across in the
 * ring of its level. Nothing is allocated but for new nodes.
 *
 * Levels: a node's level is its distance in hops. NodeInfo across the links of a level
 * waits until all nearer levels are through, so that a link between two levels is only
 * ever asked from the near side; reading ports fills the window meanwhile. What is late
 * is not waited for.
 */
#pragma once

#include "sweep.h"

enum slot_flag {
	SLOT_READ = 1,	     /* PortInfo to be asked */
	SLOT_READ_OUT = 2,   /* is out */
	SLOT_ACROSS = 4,     /* NodeInfo across the link to be asked */
	SLOT_ACROSS_OUT = 8, /* is out */
	SLOT_SETTLED = 16,   /* link seen in this sweep from either side, or silent */
	SLOT_TABLES = 32,    /* tables to be asked, from .step on */
	SLOT_TWIN = 64,	     /* across it is a node with the GUID of another */
	SLOT_WISH = 128	     /* somebody wants its tables: in the next sweep */
};
struct slot {
	uint8_t flags; /* enum slot_flag */
	uint8_t silent; /* sweeps in a row in which the far side did not answer */
	uint16_t step; /* of the tables */
	bool extended; /* its PortInfo was asked with IB_PORT_INFO_EXTENDED */
	/* The far end that was lost in an incremental sweep: */
	uint8_t was_port;
	uint32_t lost_in; /* number of that sweep, 0 = none */
	uint64_t was_guid; /* of the node */
};

enum work_flag {
	WORK_SWITCH_INFO = 1,
	WORK_DESC = 2,
	WORK_FULL = 4,	    /* is being read in full in this sweep */
	WORK_NEXT_FULL = 8, /* somebody asked for it */
	WORK_REACHED = 16,  /* a route to it is known */
	WORK_GONE = 32,	    /* a request was given up and nothing answered since */
	WORK_ANSWERED = 64, /* something, in this sweep */
	WORK_PLAIN = 128    /* refused IB_PORT_INFO_EXTENDED */
};

struct flight;
struct flight_list {
	uint32_t first, last; /* 1 + index in the pool, 0 = none */
};
struct work {
	struct ib_node *node;
	struct slot *slots; /* owned, n_ports + 1 */
	uint16_t n_ports;
	uint8_t flags; /* enum work_flag */
	uint8_t level;
	uint16_t to_read, to_table, to_cross; /* slots that are marked */
	uint16_t read_open;		      /* to be read, or being read */
	uint16_t read_at, cross_at, table_at; /* slots to look at next */
	uint16_t out, cross_out;    /* of its own attributes; across its links */
	uint16_t late, cross_late;
	bool busy;		/* its level is waiting for it */
	uint64_t suspect; /* id of the one request that may still go to it, 0 = well */
	struct flight_list held; /* the others, until that one is through */
	int error;		/* 1 + index of its error in this sweep, 0 = none */
	int lost;		/* the same, of a link that led to it */
	uint32_t since;		/* number of the sweep that found it */
	struct work *read_next, *read_prev;   /* ring of readers; NULL = not in */
	struct work *cross_next, *cross_prev; /* ring of its level */
	struct work *bfs_next;
};

/* Two places claim the same port of a node: (a, i), and a link that is known. That one is
 * asked again, from the end that can; if it lives, (a, i) is too, since the cable may
 * have been moved in between. If both answer as before there are two nodes of one GUID. */
struct conflict {
	struct work *a, *old;
	uint8_t i, old_port;
	struct node_info ni;  /* what came across (a, i) */
	uint64_t expect_guid; /* across (old, old_port) if it lives */
	uint8_t expect_port;
	bool old_lives; /* it answered the same: ask (a, i) again */
	bool moved;	/* nothing to ask: to be named at the end of the sweep */
};

enum ask_kind { ASK_START, ASK_NODE, ASK_ACROSS, ASK_AGAIN };
struct flight {
	uint64_t id; /* low bits: place in the pool; 0 = free */
	enum ask_kind kind;
	struct work *work; /* asked itself, or the near end; NULL: ASK_START */
	uint16_t attr;
	uint8_t port;
	uint8_t tries; /* made so far */
	uint16_t step; /* of a table */
	bool late; /* not waited for any more */
	bool once; /* one try only */
	uint32_t mod;
	uint32_t way; /* of its route, to know it from another */
	uint32_t conflict; /* ASK_AGAIN: 1 + index */
	struct mono sent;
	uint32_t next, prev; /* in the list it is in; 1 + index */
};
#define TRIES_MAX 8
#define FLIGHT_BITS 20

struct ring {
	struct work *first; /* circular by next and prev */
};

struct sweep {
	struct subnet *s; /* borrowed */
	uint8_t port;
	struct sweep_options opt;
	bool running;
	bool need_full;	     /* what was known contradicts itself */
	bool seen_root;	     /* the own node answered in this sweep */
	bool links_changed;  /* routes may have got shorter or lost */
	bool lost_route;     /* a link went: find routes again now */
	bool misled;	     /* a link led elsewhere than was known, as did routes */
	struct work *root;
	struct sweep_result now, last;
	uint32_t n_nodes;
	uint32_t turns; /* incremental sweeps in which all is read, up to opt.rolling */
	/* of progress */
	uint64_t done, done_before;
	uint64_t n_marks; /* in slots and nodes: still to be asked */

	/* requests */
	struct flight *pool; /* owned */
	uint32_t pool_size, pool_free; /* 1 + index */
	uint64_t serial;
	struct flight_list out[TRIES_MAX], again;
	uint32_t fresh; /* oldest of out[0] that counts against the window; 1 + index */
	uint32_t n_flights, n_out, n_fresh, n_late; /* held, again: not out */
	int tries;
	double window, tokens;
	uint64_t shrunk_at; /* id serial at the last shrinking */
	uint64_t heard; /* the same, of the newest request that was answered */
	struct mono tokens_at;
	int64_t srtt, rttvar;

	/* work */
	bool start_wanted;
	struct ring readers, levels[IB_PATH_LEN];
	uint32_t busy[IB_PATH_LEN]; /* nodes of a level that are waited for */
	struct conflict *conflicts; /* owned */
	uint32_t n_conflicts, conflicts_size, conflict_at;

	struct sweep_error *errors; /* owned */
	int n_errors, errors_size;
	bool limit_named;
};

/* ---- sweep.c ---- */
struct work *work_of(const struct ib_node *n);
/* The node's work, made if it has none or its ports changed. */
struct work *work_make(struct sweep *w, struct ib_node *n);
void work_free(struct sweep *w, struct work *k);

/* ---- sweep_window.c ---- */
void window_reset(struct sweep *w, struct mono now);
void flights_drop_all(struct sweep *w);

/* ---- sweep_ask.c ---- */
/* These mark; what is marked or out already, or was done in this sweep, is not again. */
void ask_read(struct sweep *w, struct work *k, unsigned port);
void ask_across(struct sweep *w, struct mono now, struct work *k, unsigned port);
void ask_node(struct sweep *w, struct work *k, enum work_flag what);
void ask_tables(struct sweep *w, struct work *k, unsigned port);
/* These unmark. */
void ask_nothing(struct sweep *w, struct work *k);
void ask_no_across(struct sweep *w, struct work *k, unsigned port);
void ask_no_table(struct sweep *w, struct work *k, unsigned port, uint16_t attr);
void ask_settle(struct sweep *w, struct work *k); /* after any change: rings, levels */
void ask_level(struct sweep *w, struct work *k, uint8_t level);
bool ask_next(struct sweep *w, struct flight *ret); /* takes one mark away */
void ask_done(const struct flight *f); /* it is not out any more */
void ask_same(struct sweep *w, const struct flight *f); /* of a node, marked again */
/* True: it was refused for IB_PORT_INFO_EXTENDED, and is asked without it. */
bool ask_plainly(struct sweep *w, const struct flight *f, const struct sweep_answer *a);
/* False: there is no route any more. */
bool ask_route(const struct sweep *w, const struct flight *f, uint8_t *ret_hops,
	       uint8_t *path);
/* Whether NodeInfo can be asked across that port. */
bool ask_can_cross(const struct sweep *w, const struct work *k, unsigned port);
bool port_is_up(const struct physp *p);

/* ---- sweep_later.c ---- */
void later_mark(struct sweep *w, struct mono now); /* what an incremental sweep asks */
/* Names the links that have been silent for so long that they were not asked. */
void later_name_silent(struct sweep *w, struct mono now);
/* Read it in full, and what is across its links. */
void later_in_full(struct sweep *w, struct mono now, struct work *k);
/* The same, and all that was read of it before counts for nothing. */
void later_anew(struct sweep *w, struct mono now, struct work *k);
/* NodeInfo across this link, if it is its turn, or nobody answered there lately. */
void later_link(struct sweep *w, struct mono now, struct work *k, const struct physp *p);
/* In each window of w->turns sweeps each thing has its turn once. */
bool later_turn(const struct sweep *w, const struct work *k, unsigned thing);
/* Of what is silent by intention: once in @rolling sweeps, however few nodes there are. */
bool later_knock(const struct sweep *w, const struct work *k);

/* ---- sweep_learn.c ---- */
void learn(struct sweep *w, struct mono now, const struct flight *f,
	   const union sweep_data *d);
/* It answered NodeInfo at @port of it, which came by that route. */
void learn_seen(struct sweep *w, struct mono now, struct work *k, unsigned port,
		uint8_t hops, const uint8_t *path);
/* It is not asked at that port, and stands for seen: named, and what is behind it is
 * asked. */
void learn_protected(struct sweep *w, struct mono now, struct work *k, unsigned port);

/* ---- sweep_link.c ---- */
void link_across(struct sweep *w, struct mono now, const struct flight *f,
		 const struct node_info *ni);
void link_conflict_answer(struct sweep *w, struct mono now, const struct flight *f,
			  const struct node_info *ni); /* NULL: no answer */
void link_lost(struct sweep *w, struct physp *p); /* unlinks */
void link_name_moved(struct sweep *w, struct mono now);

/* ---- sweep_end.c ---- */
/* A line of the list, with the route to @port of the node (@k NULL: none). */
struct sweep_error *error_add(struct sweep *w, struct mono now, enum sweep_problem what,
			      const struct work *k, unsigned port);
/* What is across the port, of which nothing else is known. */
struct sweep_error *error_across(struct sweep *w, struct mono now,
				 enum sweep_problem what, const struct work *k,
				 unsigned port);
/* Given up. */
void error_request(struct sweep *w, struct mono now, const struct flight *f,
		   const struct sweep_answer *a);
/* Whether its silence at that port may be meant: of a CA each port has its own M_Key. */
bool is_protected(const struct ib_node *n, unsigned port);
/* "leaf3 port 7"; port 0: the node alone. */
const char *error_place(const struct ib_node *n, unsigned port, char *buf, size_t size);
/* Finds all routes again; WORK_REACHED follows. */
void end_routes(struct sweep *w, struct mono now);
void end_sweep(struct sweep *w, struct mono now);
