/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ud.h - what ud endpoints share: one queue pair with its memory per port of the device
 * (and P_Key, which is the queue pair's), and address handles. Messages are told apart by
 * connection id and epoch, not by queue pair. Its key (qkey) is public: what must not be
 * forged has an authenticator.
 *
 * The cm thread makes, repairs and destroys it. The hot thread posts and polls between
 * HOT_UD_LIVE and the HOT_UD_FAILED or HOT_UD_STOPPED that it answers; so what both use
 * needs no lock.
 */
#pragma once

#include "rc.h"

#define UD_GRH	    40	/* bytes that a device puts before each message, used or not */
#define UD_RECVS    512 /* for all peers together: what comes while hot is not there */
#define UD_SENDS    512
#define UD_BUFS	    32 /* send buffers, for what does not go inline */
#define UD_PORTS    8  /* at a time: ports of the device x P_Keys in use */
#define UD_MAX	    16384 /* endpoints on a device: about 2 KiB each */
#define UD_NO_SLOT  0xffff

/* cm's; an endpoint holds a reference to its own. Those with equal attributes share one
 * as long as nothing has happened that may have made it wrong. */
struct ud_ah {
	struct ibv_ah *ah; /* owned */
	struct ibv_ah_attr attr;
	uint32_t epoch; /* of cm's at creation */
	uint32_t refs;
	_Atomic uint32_t out; /* hot: sends under way with it; it must live as long */
	struct ud_ah *next;
};

/* hot: a send under way. */
struct ud_flight {
	struct ud_ah *ah;
	uint64_t conn_id;
	uint16_t recv, buf; /* slot that it is sent from, or UD_NO_SLOT */
};

struct ud_port {
	/* constant */
	uint8_t num;
	uint16_t pkey_index;
	struct rdma_ctx *ctx; /* borrowed */
	bool ethernet;
	uint32_t mtu;	  /* bytes of payload that the port takes */
	size_t slot_size; /* of a receive: GRH and payload */
	uint16_t n_recv, n_send;
	uint32_t max_inline;
	struct ibv_qp *qp;
	struct wcq send, recv;
	struct ibv_mr *mr;
	uint8_t *buf; /* owned: receive slots, then send buffers */
	size_t buf_size;

	/* cm */
	uint32_t users; /* endpoints */
	bool with_hot;	/* between LIVE and FAILED or STOPPED */
	bool stopping;	/* hot was asked to stop */
	bool stopped;	/* it has, and knows it no more: it may be freed */
	bool fatal;	/* is to be destroyed when its users are gone */
	bool broken;	/* FAILED came: to be repaired at ... */
	struct mono repair_at, repaired_at;
	uint64_t repairs;

	/* who has it */
	uint32_t recv_gen; /* of receives: those posted before a reset do not count */

	/* hot */
	bool live, more;
	unsigned looked; /* messages in this turn */
	uint32_t gen; /* recv_gen when it came last: a repair may leave the receives posted */
	uint32_t send_gen;
	uint16_t n_held; /* receives that wait for a destination */
	struct ud_flight sends[UD_SENDS];
	uint32_t head, tail; /* counts of sends posted and complete */
	uint16_t free_bufs[UD_BUFS], n_free;
	uint16_t repost[UD_RECVS], n_repost;
};

/* ---- ud.c: cm's side ---- */

/* Queue pair ready to send, receives posted. 0 or -errno with @ret_call; what was made is
 * freed by ud_port_close(). */
int ud_port_open(struct ud_port *p, struct rdma_ctx *c, uint8_t num, uint16_t pkey_index,
		 const char **ret_call);
bool ud_port_close(struct ud_port *p, struct busy *busy);
/* After an error: back to work with the same number, so that no peer notices. 0, or
 * -errno with @ret_call: it cannot be. */
int ud_port_repair(struct ud_port *p, const char **ret_call);
/* Post receive slots @slots again, in one go. 0 or errno. */
int ud_post_recvs(struct ud_port *p, const uint16_t *slots, unsigned n);

static inline uint8_t *ud_recv_buf(const struct ud_port *p, unsigned i)
{
	return p->buf + i * p->slot_size;
}
static inline uint8_t *ud_send_buf(const struct ud_port *p, unsigned i)
{
	return p->buf + (p->n_recv + i) * p->slot_size;
}

/* Pure. Where the message with this completion came from; @grh: the 40 bytes before it,
 * the first 20 of which were zero when the receive was posted: RoCE v2 over IPv4 writes
 * the last 20 only. */
void ud_source_read(const uint8_t grh[UD_GRH], const struct ibv_wc *wc,
		    struct ud_source *ret);
bool ud_source_equal(const struct ud_source *a, const struct ud_source *b);
/* Pure. @a as a RoCE GID: IPv4-mapped or IPv6. */
void ud_gid_of_addr(const struct addr *a, uint8_t gid[16]);
/* Pure. The flow label of flow @flow between two addresses: the same in both directions
 * and after a restart, another UDP source port for each flow. Never 0. */
uint32_t ud_flow_label(const struct addr *a, const struct addr *b, uint16_t flow);
