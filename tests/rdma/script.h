/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * script.h - a whole device worker (the cm and hot threads' code; facts on its own) on
 * the fakes, turned by a test in virtual time, and what it said to main, counted. Every
 * message is checked as main checks it.
 */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "cm.h"
#include "fakes.h"
#include "hot.h"

#define RIG_CONNS 256
#define RIG_PEER  UINT64_C(0x220000) /* + conn id: the far end's */
#define RIG_EPOCH UINT64_C(77)

struct said {
	int by_type[EP__MAX]; /* enum ep_event_type */
	struct ep_event error, last_up, last;
	int after_reset; /* events of an epoch after its RESET_DONE */
	uint64_t reset_epoch;
};

struct rig {
	struct worker w;
	struct cm cm;
	struct hot hot;
	struct said said[RIG_CONNS];
	int listening, listen_error, goodbyes;
	enum wm_goodbye_why goodbye;
	enum transport transport; /* of what is started and listened for; rc */
	bool hold_hot, hold_cm;	  /* does not get its turns */
	bool answer;		  /* the far end behaves: resolves, accepts, echoes */
	uint64_t max_turns;	  /* worst rig_settle() so far */
};

/* @conns: how many endpoints the device may have. */
struct rig *rig_new(uint32_t conns);
/* All must be destroyed and acknowledged; frees. */
void rig_free(struct rig *r);

/* Turns of both threads until nothing is left to do at this moment. */
void rig_settle(struct rig *r);
/* The same for a span of time, timers included. */
void rig_pass(struct rig *r, int64_t ns);

void rig_take_messages(struct rig *r);

/* conn ids are 1..RIG_CONNS-1. */
struct ep_start rig_start_of(enum conn_role role, uint64_t conn);
void rig_command(struct rig *r, uint16_t type, const struct ep_start *s);
void rig_start(struct rig *r, enum conn_role role, uint64_t conn);
void rig_listen(struct rig *r);
void rig_unlisten(struct rig *r);
void rig_reset(struct rig *r, uint64_t conn);
/* PROBE or HEARTBEAT. */
void rig_hot(struct rig *r, uint16_t type, uint64_t conn);
struct endpoint *rig_ep(struct rig *r, uint64_t conn); /* NULL: none */
struct rdma_cm_id *rig_id(struct rig *r, uint64_t conn);
/* Queue an event of that connection's id, if it has one, and settle. */
void rig_event(struct rig *r, uint64_t conn, enum rdma_cm_event_type type, int status);
/* A request for @conn as its peer would make it. */
struct rdma_cm_id *rig_request(struct rig *r, uint64_t conn);

/* ud queue pairs there are. */
int rig_ud_ports(const struct rig *r);

/* Where an endpoint can be; both roles. */
enum where {
	AT_NONE,
	AT_RESOLVE_ADDR,
	AT_RESOLVE_ROUTE,
	AT_CONNECT,
	AT_EXPECT, /* rx from here */
	AT_ACCEPT,
	AT_UP_TX,
	AT_UP_RX,
	AT_PROBING,
	AT_BEATING,
	AT_FAILED,
	AT_CLOSING,
	AT__MAX
};
extern const char *const where_names[AT__MAX];
void rig_bring(struct rig *r, uint64_t conn, enum where to);
/* Reset, the peer's word, and at last the timers: the endpoint must be gone and every
 * balance zero. */
void rig_finish(struct rig *r, uint64_t conn);
