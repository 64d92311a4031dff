/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fake_ud.h - the part of the stand-ins (fake_rdma.h) that is of ud: queue pairs that
 * belong to no id, address handles, look-ups. What is posted to a queue pair waits for
 * the test, which completes it; a handle that goes while a send with it is under way, or
 * a slot that is posted twice, ends the test.
 */
#pragma once

#include "fake_rdma.h"

#define FAKE_UD_QPS   8
#define FAKE_UD_POSTS 1024

struct fake_ud_post {
	uint64_t wr_id;
	uint64_t addr;
	uint32_t length;
	struct ibv_ah *ah; /* of sends, with what follows */
	uint32_t qpn, qkey;
	bool is_inline;
	uint8_t head[64]; /* of sends: what went */
};

struct fake_ud_qp {
	struct ibv_qp qp;
	bool used;
	enum ibv_qp_state state;
	uint32_t qkey;
	uint8_t port;
	uint16_t pkey_index;
	struct fake_ud_post recvs[FAKE_UD_POSTS], sends[FAKE_UD_POSTS];
	int n_recvs, n_sends; /* under way */
	struct ibv_wc recv_wc[FAKE_UD_POSTS], send_wc[FAKE_UD_POSTS];
	int n_recv_wc, n_send_wc;
	int arms;
};

struct fake_ud {
	struct fake_ud_qp qp[FAKE_UD_QPS];
	int ahs; /* alive */
	int ahs_made;
	struct ibv_ah_attr last_ah;
	uint16_t pkey_index; /* of ids */
	int gid_index;	     /* where the GID of 10.0.0.1 is; -1: nowhere */
	bool grh_unclear;    /* the library makes nothing of a header */
	bool no_inline;
	int max_wr; /* 0: the default */
	uint32_t last_qpn;
	uint8_t rc_sl; /* of the rc queue pair that got ready to receive last */
	int rc_steps;  /* of rc queue pairs, made by hand */
};
extern struct fake_ud fake_ud;

void fake_ud_reset(void);
struct fake_ud_qp *fake_ud_qp(void); /* the one there is; NULL: none */
/* The answer to a look-up: handle, number and key of the peer's queue pair. */
void fake_ud_established(struct rdma_cm_id *id, const struct ibv_ah_attr *attr,
			 uint32_t qpn);
/* The refusal of one. */
void fake_ud_refused(struct rdma_cm_id *id, int status, const void *data, size_t len);
/* A message lands in the oldest receive: @grh (40 bytes or NULL: as it was), then @data. */
void fake_ud_arrives(struct fake_ud_qp *q, const uint8_t *grh, const void *data,
		     size_t len, uint32_t src_qp, uint16_t slid);
/* The oldest @n sends end with @status. */
void fake_ud_sent(struct fake_ud_qp *q, int n, enum ibv_wc_status status);
/* The queue pair gets into @state by itself; ERR flushes what is posted. */
void fake_ud_breaks(struct fake_ud_qp *q, enum ibv_qp_state state);
void fake_ud_async(struct fake_ud_qp *q, enum ibv_event_type type);
/* The 40 bytes of a RoCE v2 packet over IPv4: the first 20 are left as they are. */
void fake_ud_ipv4(uint8_t grh[40], const uint8_t src[4], const uint8_t dst[4]);
void fake_ud_check_balance(void);
/* fake_rdma.c's: the state of @qp. false: it is not of ud. */
bool fake_ud_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr);
