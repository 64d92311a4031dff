/* SPDX-License-Identifier: BSD-2-Clause */
/* fake_verbs.h - what fake_verbs.c and fake_qp.c share: the objects behind the
 * library's. */
#pragma once

#include "fakes.h"

#define ASYNC_MAX 4096
#define EXTRA_MAX 256 /* completions that stand for no work request */

struct context {
	struct fk_object o;
	struct ibv_context c;
	struct ibv_device device;
	struct ibv_async_event queue[ASYNC_MAX];
	int n, dead;
};

struct comp {
	struct fk_object o;
	struct ibv_comp_channel c;
	struct fk_cq **notes; /* owned */
	int n, room, dead;
};

struct entry {
	struct ibv_wc wc;
	struct fk_qp *qp;
	bool extra; /* the script's own */
};

struct fk_cq {
	struct fk_object o;
	struct ibv_cq cq;
	struct entry *queue; /* owned, cqe of them, and EXTRA_MAX */
	int n, n_extra;
	bool armed;
	int reported, acked; /* notifications fetched; acknowledged */
	int async_unacked;
};

struct work {
	uint64_t wr_id;
	uint8_t *buf; /* NULL: it went inline */
	uint32_t len;
	struct ibv_ah *ah; /* ud: lives as long as the send is out */
	bool silent;	   /* its success makes no completion */
};

struct fk_qp {
	struct fk_object o;
	struct ibv_qp qp;
	struct fk_cq *send_cq, *recv_cq;
	uint32_t max_send, max_recv;
	bool all_signalled;
	struct work *recv, *send; /* owned, oldest first */
	uint32_t n_recv, n_send;
	uint64_t posted, returned;
	bool in_error;
	int async_unacked;
};

struct mr {
	struct fk_object o;
	struct ibv_mr mr;
};
struct pd {
	struct fk_object o;
	struct ibv_pd pd;
};
struct ah {
	struct fk_object o;
	struct ibv_ah ah;
};

#define OF(type, field, p)                                                             \
	((struct type *)((uint8_t *)(p)-offsetof(struct type, field)))
#define CONTEXT_OF(p) OF(context, c, p)
#define CQ_OF(p)      OF(fk_cq, cq, p)
#define QP_OF(p)      OF(fk_qp, qp, p)

extern struct fk_qp *fk_qps[1 << 15]; /* alive */
extern uint32_t fk_n_qps;

/* A completion goes into the queue; @extra: of no work request. */
void fk_cq_complete(struct fk_cq *q, struct fk_qp *qp, const struct ibv_wc *wc,
		    bool extra);
/* Forget the events of @element, which goes. */
void fk_purge_async(struct ibv_context *c, const void *element);
int fk_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
int fk_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
