/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rc.h - one endpoint (rc or ud), what an rc endpoint owns (memory, queue pair,
 * completion queues), and the table that hands out handles. The cm thread owns it;
 * between HOT_ATTACH and HOT_DETACHED the hot thread owns the part named so, and posts
 * and polls. What ud endpoints share is in ud.h.
 *
 * rdma_cm ids and QPs carry a handle, never a pointer: it has a generation, so a late
 * event of an object that is gone finds nothing.
 */
#pragma once

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include <stdlib.h>
/* One-at-a-time: the default hash falls through cases without saying so, which clang
 * takes for a mistake. */
#define HASH_FUNCTION(key, len, hash) HASH_OAT(key, len, hash)
#define uthash_fatal(msg)	      abort()
#include <uthash.h>

#include "fabric.h"
#include "heap.h"
#include "heartbeat.h"
#include "ping.h"
#include "rdma.h"
#include "wcq.h"

#define EP_SLOTS                                                                       \
	16 /* messages in flight each way; more than a detection time at 10 ms */
#define EP_SLOT_MIN 4096 /* the largest path MTU of InfiniBand */

enum ep_state {
	EPS_RESOLVE_ADDR,
	EPS_RESOLVE_ROUTE,
	EPS_CONNECT,
	EPS_EXPECT, /* rx: waits for the request */
	EPS_ACCEPT, /* rx: accepted, not yet established */
	EPS_UP,
	EPS_FAILED,  /* error told; waits for reset */
	EPS_CLOSING, /* reset asked; waits for hot and for the peer's answer */
	EPS__MAX
};

struct send_slot {
	uint64_t seq; /* tx: message in it; 0 = free */
	struct mono sent;
};

/* ud: by which a message is answered. */
struct ud_dest {
	struct ud_ah *ah; /* borrowed from cm, which takes it back; NULL: none yet */
	uint32_t qpn, qkey;
};

/* ud: where a message came from, in a form that can be compared. */
struct ud_source {
	uint8_t gid[16]; /* zero without a global header */
	uint32_t qpn;
	uint16_t lid;
};

/* ud tx: a new look-up of the path while the endpoint is up. */
struct ud_again {
	struct rdma_cm_id *id; /* owned; NULL: none under way */
	enum ep_state state;   /* RESOLVE_ADDR, RESOLVE_ROUTE, CONNECT */
	uint8_t tries;
	bool wanted;
};

struct endpoint {
	uint64_t handle;
	struct ep_start start;
	bool iwarp;

	/* cm */
	UT_hash_handle hh_conn; /* in the table */
	enum ep_state state;
	struct rdma_cm_id *id;		 /* owned; NULL: none yet or destroyed */
	struct connect_call *connecting; /* owned; a call under way on @id */
	bool connected;			 /* a peer may be told by disconnecting */
	bool parked;			 /* CLOSING: but its id's end must wait */
	bool disconnected;		 /* its answer came */
	bool attached;			 /* hot has it */
	bool detaching;			 /* and was asked to let go */
	uint64_t reset_epoch;		 /* CLOSING: what RESET_DONE answers */
	struct heap_node timer;		 /* cm_arm() */
	struct addr local, remote;
	struct ep_path path; /* as last told */

	/* written by cm before ATTACH, freed by it after DETACHED */
	struct ibv_qp *qp;	/* rc: = id->qp */
	struct wcq send, recv;	/* rc */
	struct ibv_mr *mr;	/* rc */
	uint8_t *buf; /* rc, owned: EP_SLOTS receive slots, tx: as many send slots after
			 them */
	size_t slot_size;	/* longest message */
	uint32_t max_inline;	/* rc: sends up to this need no buffer */
	struct ud_port *ud;	/* ud: borrowed from cm; NULL: rc, or not there yet */
	struct ud_ah *ah;	/* ud, cm: a reference; what hot has, or was told to take */
	struct ud_again again;

	/* hot */
	UT_hash_handle hh;	     /* by conn_id */
	struct heap_node hot_timer;
	bool polled, failed; /* hot has it; rc: an error was told to cm */
	struct hb hb;
	struct send_slot out[EP_SLOTS]; /* rc */
	bool sends_armed;	/* rc: a send's completion raises an event */
	uint8_t unsignalled;	/* rc: sends since the last one that tells */
	uint64_t acked_seq;	/* rc tx: message whose send completed last */
	int64_t acked_after;	/* ns after it was sent */
	uint64_t done_seq; /* tx: PROBES_DONE waits for the sends up to this; 0 = not */
	uint32_t pending;  /* 1 << enum ep_event_type not handed over yet */
	struct mono rounds_at; /* tx: its histogram was told last */
	uint32_t packet; /* soft-RoCE: bytes that a packet has at most; else 0 */
	bool in_backlog;
	struct endpoint *next_backlog;
	struct hot_ping *ping;	  /* owned; tx: NULL: none was asked for */
	struct ping_limit echoes; /* rx */
	struct ud_dest dest;
	struct ud_source from; /* ud: that dest leads back to */
	bool dest_stale;       /* ud: ask for a new one at the next message */
	struct mono asked_at;  /* ud: when cm was asked for an address handle */
	uint32_t held;	       /* ud: 1 + receive slot that waits for dest; 0 = none */
	uint32_t held_gen;     /* ud: of the port's receives then: after a reset it is void */
	struct fabric_msg held_msg;
	uint32_t held_len;
};

/* What endpoints of a device share, on librdmacm's context of it. */
struct rdma_ctx {
	struct ibv_context *verbs; /* borrowed from librdmacm; NULL: none seen yet */
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	uint8_t rd_atomic; /* for connect: at least 1 unless the device has none */
	bool iwarp, soft_roce;
	uint32_t max_qp_wr;	/* most that a queue pair takes */
	struct dev_clock clock; /* of completions */
};

/* First use: allocate what is shared on @verbs. 0 or -errno with @ret_call. */
int rdma_ctx_open(struct rdma_ctx *c, struct ibv_context *verbs, const char **ret_call);

/* rc: memory, CQs and QP on ep->id, receives posted. 0 or -errno with @ret_call; what was
 * made is freed by endpoint_close(). */
int endpoint_open(struct endpoint *ep, struct rdma_ctx *c, const char **ret_call);
/* Is @r of a call that frees something fine? Else say so: the object is leaked. */
bool freed(int r, const char *call);
/* Destroy QP, id, CQs, memory in that order. Every event of the id must be acknowledged
 * and hot must have let go. false: the library could not; leaked and logged. */
bool endpoint_close(struct endpoint *ep, struct busy *busy);

/* Ready-made for ibv_post_recv: post receive slot @i again. 0 or errno. */
int endpoint_post_recv(struct endpoint *ep, unsigned i);

/* Grows as needed up to what rc and ud may have each: the one has queue pairs and memory
 * of its own per endpoint, the other next to nothing. */
struct endpoint_table {
	struct endpoint **slots; /* owned, n of them, NULL = free */
	struct endpoint *by_conn;
	uint32_t n, used, first_free; /* no free slot before this one */
	uint32_t n_rc, max_rc, n_ud, max_ud;
	uint64_t generation;
};
void endpoint_table_init(struct endpoint_table *t, uint32_t max_rc, uint32_t max_ud);
void endpoint_table_done(struct endpoint_table *t); /* must be empty */
/* NULL: full for its transport. Owned by the table until endpoint_free(). */
struct endpoint *endpoint_new(struct endpoint_table *t, const struct ep_start *s);
void endpoint_free(struct endpoint_table *t, struct endpoint *ep);
struct endpoint *endpoint_by_handle(const struct endpoint_table *t, uint64_t handle);
struct endpoint *endpoint_by_conn(const struct endpoint_table *t, uint64_t conn_id);

/* wr_id: which slot, and of which direction (opcode is not valid in an error). BARE: the
 * send took no buffer. ud puts a generation above. */
#define WR_RECV	       UINT64_C(0x10000)
#define WR_SEND	       UINT64_C(0x20000)
#define WR_BARE	       UINT64_C(0x40000)
#define WR_SLOT(wr_id) ((unsigned)((wr_id)&0xffff))
static inline uint8_t *endpoint_recv_buf(const struct endpoint *ep, unsigned i)
{
	return ep->buf + i * ep->slot_size;
}
static inline uint8_t *endpoint_send_buf(const struct endpoint *ep, unsigned i)
{
	return ep->buf + (EP_SLOTS + i) * ep->slot_size;
}
