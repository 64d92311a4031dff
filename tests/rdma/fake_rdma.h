/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fake_rdma.h - stands in for librdmacm and libibverbs at link time. Events come from
 * the test; what is got, acknowledged, made and destroyed is counted, and what would
 * hang or corrupt the real libraries ends the test: an id or listener destroyed with an
 * event not acknowledged, an acknowledge too many, a parent destroyed before its
 * children.
 */
#pragma once

#include <rdma/rdma_cma.h>

#include "util.h"

struct fake {
	struct ibv_context verbs; /* of the device that ids get bound to */
	struct ibv_device device;
	int index; /* of that device */
	struct sockaddr_storage request_from;
	enum ibv_port_state port_state;
	bool no_path; /* what path_works() denies */

	/* alive now */
	int channels, ids, listeners, qps, cqs, mrs, pds, comp_channels;
	int unacked;		   /* events got and not acknowledged */
	int cq_events, cq_unacked; /* notifications waiting; got and not acknowledged */
	struct ibv_cq *last_cq;

	/* done so far */
	int connects, accepts, rejects, disconnects, notifies;
	uint8_t reject_data[256];
	size_t reject_len;
	struct rdma_cm_id *last_id; /* made last, by create_id or by a request */

	/* The call with this number from now on fails with @fail_errno; 0 = none. */
	int fail_in, fail_errno;
	const char *failed_call;
};
extern struct fake fake;

void fake_reset(void);
/* Does this call fail now? Then errno is set. For the other parts of the stand-ins. */
bool fake_fails(const char *call);
/* Queue an event of @id with @status. It can be added to until it is fetched. */
struct rdma_cm_event *fake_event(struct rdma_cm_id *id, enum rdma_cm_event_type type, int status);
/* Queue a REJECTED with private data. */
void fake_rejected(struct rdma_cm_id *id, int status, const void *data, size_t len);
/* Queue a request that came to @listener; the new id is given back. */
struct rdma_cm_id *fake_request(struct rdma_cm_id *listener, const void *data,
				size_t len);
/* Queue any asynchronous event. */
void fake_async(const struct ibv_async_event *ev);
/* Queue an asynchronous event of the QP of @id. */
void fake_qp_event(struct rdma_cm_id *id, enum ibv_event_type type);
/* Queue an asynchronous event of the port. */
void fake_port_event(enum ibv_event_type type);
/* Everything made was destroyed but for what endpoints share. */
void fake_check_balance(int listeners);
