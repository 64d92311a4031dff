/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sweep.h - discovery of a subnet by directed route: which attribute to ask of whom,
 * when, and what the answers mean. Reads only. The caller carries requests out, decodes
 * the answers, and brings the time; nothing here blocks. Pure.
 *
 *  - Many requests in flight; the window grows with answers and shrinks with losses,
 *    between window_min and window_max, and per target at most per_target are out (of
 *    its own attributes: who is across a link is not known before it answers). Of
 *    what is out, only requests younger than a few round trips count against the
 *    window: dead targets wait side by side and hold up nobody.
 *  - First timeouts are short; each request is tried again by the sweep, with longer
 *    timeouts. After the first timeout of a target it is suspect: nothing else is
 *    sent to it until that request is answered or given up. What is given up is an
 *    error with its path and reason, once per target; what was known of it stays
 *    until the sweep's end.
 *  - A link that one side has confirmed is not asked from the other: links between
 *    two levels (distance in hops) are asked from the near one, which the far one
 *    waits for.
 *  - A later sweep uses what is known: SwitchInfo of each switch, or of some in turn
 *    where that would be too much of a full sweep (PortStateChange is a hint when it
 *    is newly set), and of all a rolling part (1 / rolling): PortInfo,
 *    NodeDescription, and NodeInfo across the link from one side. What differs makes
 *    the node be read in full at once, and the one across too if it is the link that
 *    differs; what was read over a route that led elsewhere is read anew. After
 *    @rolling sweeps everything was read again, of few nodes each time. Links that are up and silent are
 *    asked with one try, in each of three sweeps and then in their turn, and named in
 *    each.
 *  - At the end of a full sweep nodes that were not seen are dropped; of a later one
 *    those that were asked and are gone, and what can be reached no more; of CAs and
 *    routers, ports that no link leads to.
 *  - A target that fell silent after its PortInfo had told m_key_protect >= 2 is
 *    NODE_PROTECTED: it is named, kept, and not knocked at again by this sweep object
 *    but for one NodeInfo each @rolling sweeps (each knock may start a lease timer,
 *    IBA 14.2.4). Of a CA this is said of each port. What PortInfo told does not count
 *    if it may have been another's: its LID is that of another, or its route was wrong.
 *  - PortInfo of who tells extended speeds (CapabilityMask, of a switch that of port 0,
 *    which is asked first) is asked with IB_PORT_INFO_EXTENDED from then on; who answers
 *    that with an error is asked without it.
 *  - What an incremental sweep had no route for the next one makes up for.
 *  - Two places that answer as one port of one node: both are asked again, and the
 *    cable was moved (PROBLEM_MOVED) or there are two nodes of one GUID: then the
 *    first one stays, and across the other no link is made.
 */
#pragma once

#include "subnet.h"

enum sweep_attr { /* IBA attribute ids */
	SWEEP_NODE_DESC = 0x10,
	SWEEP_NODE_INFO = 0x11,
	SWEEP_SWITCH_INFO = 0x12,
	SWEEP_PORT_INFO = 0x15,
	SWEEP_PKEYS = 0x16,
	SWEEP_SLVL = 0x17,
	SWEEP_VLARB = 0x18
};
union sweep_data {
	struct node_info node;
	char desc[65];
	struct switch_info sw;
	struct port_info port;
	struct pkey_block pkeys;
	struct slvl slvl;
	struct vlarb_block vlarb;
};

struct sweep_request { /* a directed-route Get */
	uint64_t id; /* unique for the sweep object's life, never 0 */
	uint16_t attr;
	uint16_t timeout_ms;
	uint32_t mod;
	uint8_t hops, path[IB_PATH_LEN];
};
enum sweep_status { SWEEP_OK, SWEEP_TIMEOUT, SWEEP_BAD_STATUS, SWEEP_BAD_ANSWER,
		    SWEEP_SEND_FAILED, SWEEP_STATUS__MAX };
extern const struct enum_names sweep_status_names;
struct sweep_answer {
	uint64_t id;
	enum sweep_status status;
	uint16_t mad_status;	      /* SWEEP_BAD_STATUS */
	int64_t rtt_ns;
	const union sweep_data *data; /* SWEEP_OK: decoded by the request's attribute */
};

struct sweep_options {
	uint16_t window_min, window_max, per_target; /* 4, 64, 8 */
	uint16_t suspect_max;	      /* late requests out at a time, 1024 */
	uint16_t timeout_ms[8];	      /* of each try, ends with 0: 50 100 200 400 */
	uint32_t rolling;	      /* 20 */
	uint32_t least;		      /* a subnet of at most 10 times so many requests is
					 read in parts of so many, a smaller one whole; 300 */
	double mads_per_sec;	      /* budget, 0 = none; a second's worth may burst */
	uint32_t max_nodes;	      /* more are not taken in, and that is an error: 65536 */
	bool tables;		      /* P_Keys, SL to VL and VL arbitration of all ports */
};
void sweep_options_default(struct sweep_options *o);

enum sweep_kind { SWEEP_NONE, SWEEP_FULL, SWEEP_LATER };
extern const struct enum_names sweep_kind_names; /* "none" "full" "incremental" */

/* One thing that did not answer, or is odd. */
enum sweep_problem { PROBLEM_TIMEOUT, PROBLEM_BAD_STATUS, PROBLEM_BAD_ANSWER,
		     PROBLEM_SEND_FAILED, PROBLEM_PROTECTED, PROBLEM_DUPLICATE_GUID,
		     PROBLEM_DUPLICATE_LID, PROBLEM_MOVED, PROBLEM_VANISHED, PROBLEM_LOOPED,
		     PROBLEM_LIMIT, PROBLEM__MAX };
extern const struct enum_names sweep_problem_names; /* "timeout" ... "moved" "vanished" */
struct sweep_error {
	enum sweep_problem problem;
	uint16_t attr;		/* enum sweep_attr, 0 = none */
	uint32_t mod;
	uint64_t node_guid;	/* 0 = not known */
	char desc[65];		/* of the node, "" = not known */
	uint8_t port;		/* 0 = none */
	uint8_t hops, path[IB_PATH_LEN];
	char why[160];		/* "no answer to 4 tries in 750 ms"; "was at ... 3" */
	struct mono at;
};

struct sweep_result {
	enum sweep_kind kind;
	uint32_t number;	/* of this sweep, from 1 */
	struct mono began, ended; /* ended: when the last answer was processed */
	uint64_t mads;		/* requests sent, tries included */
	uint64_t answers, timeouts;
	uint32_t changed;	/* links, nodes and states that differ from before */
	uint16_t window_worst;	/* most that were out at once */
};

struct sweep; /* opaque */

/* @s is borrowed and written by the sweep alone. @port: number of the host's own port
 * through which it asks (path[1]); 0 when that is a switch's port 0. */
struct sweep *sweep_new(struct subnet *s, uint8_t port, const struct sweep_options *o);
struct sweep *sweep_free(struct sweep *w); /* NULL-safe, returns NULL; leaves the subnet */
void sweep_set_options(struct sweep *w, const struct sweep_options *o);

/* Begin; -EBUSY when one is on. SWEEP_LATER without anything known, or after one in which
 * two nodes seemed to have one GUID or such a node lost a link, is SWEEP_FULL.
 * @cold: SWEEP_FULL as if nothing were known (the subnet is emptied first). */
int sweep_start(struct sweep *w, enum sweep_kind kind, bool cold, struct mono now);
/* End what is on at once: late answers are strays. Nothing is dropped; what was to be read
 * in full is so in the next sweep. */
void sweep_abort(struct sweep *w, struct mono now);
bool sweep_running(const struct sweep *w);

/* The next request that may be sent now; false: none (see sweep_deadline). Call again
 * until false. */
bool sweep_next(struct sweep *w, struct mono now, struct sweep_request *ret);
/* What a request that is out asks for (enum sweep_attr), to decode its answer by; 0: none
 * of that id is out. */
uint16_t sweep_attr(const struct sweep *w, uint64_t id);
/* An answer or failure of a request. Unknown ids (late, of an earlier sweep) change
 * nothing: false. */
bool sweep_answer(struct sweep *w, struct mono now, const struct sweep_answer *a);
/* What is overdue although nobody answered (the caller's timeouts are trusted, this is
 * the second belt: timeout + 1 s). Call at sweep_deadline(). */
void sweep_tick(struct sweep *w, struct mono now);
struct mono sweep_deadline(const struct sweep *w);

/* Ask for the tables of one port in the running or next sweep too. */
void sweep_want_tables(struct sweep *w, struct physp *p);
/* A hint from elsewhere (trap, event, operator): read this node in full next time. */
void sweep_suspect_node(struct sweep *w, uint64_t node_guid);

/* Of the last sweep that ended, or of the running one so far. */
const struct sweep_result *sweep_last(const struct sweep *w);
const struct sweep_result *sweep_present(const struct sweep *w);
/* 0..1, from what is known to be left to ask. */
double sweep_progress(const struct sweep *w);
/* Errors of the present, or else the last sweep; dead targets once each. Borrowed. */
int sweep_n_errors(const struct sweep *w);
const struct sweep_error *sweep_error_at(const struct sweep *w, int i);
size_t sweep_bytes(const struct sweep *w); /* heap of the sweep itself */
