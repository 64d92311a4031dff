/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fakes.h - all of librdmacm and libibverbs that the device worker uses, at link time,
 * played by a script. The script queues events of the connection manager, asynchronous
 * events and completions in any order, says which call fails and how, and may hold a
 * call. What the real libraries answer with a hang or with corrupted memory ends the
 * test here, with a line that says what was wrong:
 *
 *   an event not acknowledged, acknowledged twice, or on another queue than its own
 *   an object used after its end, destroyed twice, before its children, or never
 *   a post to a queue pair that is gone, a slot posted twice, a queue overrun
 *   a call of the connection manager from a second thread, or out of its order
 *
 * Each object remembers what it is; its memory is kept for a while after its end, so
 * that a late use is told and not guessed. Descriptors can be polled for real. Time is
 * virtual: clock_gettime(), poll() and ppoll() of the worker are wrapped.
 */
#pragma once

#include <infiniband/verbs.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <setjmp.h>

#include "mono.h"
#include "util.h"

enum fk_kind {
	FK_CONTEXT,
	FK_CHANNEL,
	FK_ID,
	FK_PD,
	FK_COMP,
	FK_CQ,
	FK_QP,
	FK_MR,
	FK_AH,
	FK__MAX
};

enum fk_event_kind { FK_CM_EVENT, FK_ASYNC_EVENT, FK_CQ_EVENT, FK_EVENT__MAX };

struct fk_qp;
struct fk_id;

/* What is alive, what was done, and what the test sets. Zeroed by fk_begin(). */
struct fk {
	int alive[FK__MAX];
	uint64_t made[FK__MAX], destroyed[FK__MAX];
	uint64_t got[FK_EVENT__MAX], acked[FK_EVENT__MAX];
	uint64_t calls;			    /* of all stubs */
	uint64_t get_cm, get_async, get_cq; /* calls that look for events */
	uint64_t connects, accepts, rejects, disconnects, notifies, listens;
	uint64_t late_options; /* an ACK timeout set when it is of no use */
	uint8_t reject_data[256];
	size_t reject_len;
	struct rdma_cm_id *last_id; /* made last, by create_id or by a request */

	/* The device, as the libraries show it. */
	struct ibv_context *verbs; /* that ids get bound to: librdmacm's own */
	int index;
	char name[IBV_SYSFS_NAME_MAX];
	enum ibv_transport_type transport;
	enum ibv_node_type node_type;
	uint64_t node_guid; /* as the library gives it, big-endian */
	struct ibv_port_attr port;
	int query_port_errno;
	uint8_t n_ports;
	struct ibv_gid_entry gids[16];
	int n_gids;
	bool no_path;	     /* what path_works() denies */
	uint32_t max_inline; /* what a queue pair gets at most */
	struct sockaddr_storage request_from;
	bool no_device; /* resolving and binding find none */

	bool two_threads;  /* of the worker, for real: a destroy waits for the other's
			      acknowledgement, as the library does; not for ever */
	bool iwarp_thread; /* rdma_connect may come from a thread of its own */

	/* The far end, if the test plays one: after a call that worked. */
	void (*on_call)(const char *call, struct rdma_cm_id *id);
	/* Posted; the message is at @buf until it is completed. */
	void (*on_send)(struct ibv_qp *qp, uint64_t wr_id, void *buf, uint32_t len);
	void (*on_arm)(struct ibv_cq *cq); /* between the last look and the arming */

	/* Who waits with nothing to wait for goes on at @until at the latest; not set:
	 * at once, without any time having passed. */
	struct mono now, until;
	bool virtual_time;

	/* A test of the fakes themselves: jump instead of dying. */
	jmp_buf *on_wrong;
	char wrong[160];
};
extern struct fk fk;

void fk_begin(void);
/* All is destroyed and acknowledged, else the test fails; frees all. */
void fk_end(void);
/* After a mistake on purpose: free all without a look. */
void fk_abandon(void);
/* As fk_end(), for what is there at the moment; @ids, @pds: allowed to live, and of
 * @ports ud queue pairs what they need. */
void fk_balanced(int ids, int pds, int ports);
/* What is said beside what is wrong: which script it was. */
void fk_note(const char *fmt, ...) PRINTF_LIKE(1, 2);
_Noreturn void fk_wrong(const char *fmt, ...) PRINTF_LIKE(1, 2);

/* ---- calls that fail, or do not come back */

#define FK_USUAL INT_MIN /* the return value that goes with the function */
/* After @skip calls of @call (NULL: any that can fail and does not destroy), fail the
 * next
 * @times with @err. @ret: FK_USUAL, or what an old library returned instead. */
void fk_fail(const char *call, int skip, int times, int ret, int err);
/* Name of the call that failed last, NULL: none. */
const char *fk_failed(void);
int fk_faults_left(void);
void fk_no_faults(void);
void fk_block(const char *call); /* one at a time; a signal breaks it with EINTR */
void fk_unblock(void);
bool fk_is_blocking(void); /* somebody is in it */

/* ---- events */

void fk_event(struct rdma_cm_id *id, enum rdma_cm_event_type type, int status);
/* @lib_errno: what errno is after fetching it. */
void fk_event_errno(struct rdma_cm_id *id, enum rdma_cm_event_type type, int status,
		    int lib_errno);
/* With private data, padded to the wire maximum of @padded bytes. */
void fk_event_data(struct rdma_cm_id *id, enum rdma_cm_event_type type, int status,
		   const void *data, size_t len, uint8_t padded);
/* ud: the answer to a look-up. */
void fk_event_ud(struct rdma_cm_id *id, const struct ibv_ah_attr *attr, uint32_t qpn);
/* A request that came to @listener; the new id. */
struct rdma_cm_id *fk_request(struct rdma_cm_id *listener, const void *data,
			      size_t len);
int fk_cm_queued(void);
void fk_async_qp(struct ibv_qp *qp, enum ibv_event_type type);
void fk_async_cq(struct ibv_cq *cq, enum ibv_event_type type);
void fk_async_port(struct ibv_context *c, enum ibv_event_type type, int port);
int fk_async_queued(const struct ibv_context *c);
/* From now on: @fd is in error and reads fail with @err. */
void fk_kill_async(struct ibv_context *c, int err);
void fk_kill_cm(struct rdma_event_channel *c, int err);
void fk_kill_comp(struct ibv_comp_channel *c, int err);

/* ---- completions */

struct fk_qp_view {
	int recv_posted, sends_out; /* in the queue pair's hands */
	uint64_t posted, returned;  /* receives, ever */
	bool in_error;
};
struct fk_qp_view fk_qp_view(const struct ibv_qp *qp);
/* The queue of receives gets a completion of nothing; it notifies if armed. */
void fk_wc(struct ibv_qp *qp, const struct ibv_wc *wc);
/* A message comes in: oldest posted receive. false: none is posted (RNR). */
bool fk_deliver(struct ibv_qp *qp, const void *buf, uint32_t len);
/* The same to a ud queue pair: 40 bytes of @grh first (NULL: they stay as they are). */
bool fk_deliver_ud(struct ibv_qp *qp, const uint8_t *grh, const void *buf, uint32_t len,
		   uint32_t src_qp);
/* The oldest send that is out ends so. false: none is out. */
bool fk_complete_send(struct ibv_qp *qp, enum ibv_wc_status status);
/* Into the error state: all that is posted comes back flushed. */
void fk_flush(struct ibv_qp *qp);
/* The oldest work request ends with @status, which flushes all others. */
void fk_break(struct ibv_qp *qp, enum ibv_wc_status status);
/* ud: a send error stops the sends alone. */
void fk_sqe(struct ibv_qp *qp);
/* The ud queue pair there is; NULL: none. */
struct ibv_qp *fk_ud_qp(void);
int fk_cq_queued(const struct ibv_cq *cq);
bool fk_cq_armed(const struct ibv_cq *cq);
/* A notification without a completion: legal. */
void fk_spurious(struct ibv_cq *cq);
int fk_notifications(const struct ibv_comp_channel *c); /* that wait */

/* ---- between the files of the fakes */

struct fk_object {
	uint64_t magic;
	enum fk_kind kind;
	bool dead;
	int children;
	struct fk_object *parent;
	struct fk_object *next; /* of the kept dead */
	struct fk_object *prev_alive, *next_alive;
};
void *fk_make(enum fk_kind kind, size_t size, struct fk_object *parent);
/* Complain unless @o lives and is of that kind. */
void fk_alive(const struct fk_object *o, enum fk_kind kind, const char *call);
void fk_destroy(struct fk_object *o, enum fk_kind kind, const char *call);
/* How @call is to fail now: false, or errno set and the value to return. */
bool fk_fails(const char *call, int usual, int *ret);
bool fk_fails_p(const char *call); /* of those that return a pointer */
/* Wait while @call is blocked. false: a signal broke it. */
bool fk_wait_blocked(const char *call);
void fk_lock(void);
void fk_unlock(void);
/* A descriptor that can be polled for how many things wait; kill: for ever in error. */
int fk_bell_new(void);
void fk_bell_ring(int fd);
void fk_bell_take(int fd);
void fk_bell_kill(int fd);
/* The next thread to call the connection manager owns it. */
void fk_forget_owner(void);
void fk_qp_of_id(struct rdma_cm_id *id, struct ibv_pd *pd,
		 struct ibv_qp_init_attr *attr);
void fk_qp_gone(struct ibv_qp *qp, const char *call);
/* What @o owns beside its own memory. */
void fk_cm_free(struct fk_object *o);
void fk_verbs_free(struct fk_object *o);
void fk_cm_reset(void);
void fk_verbs_reset(void);
