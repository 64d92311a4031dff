/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ud_rig.h - the cm and the hot thread of one worker, both run by the test in turn, on
 * scripted libraries: what ud does from an order of main to a message and back.
 */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "cm.h"
#include "fake_ud.h"
#include "hot.h"

#define OURS   UINT64_C(0x1111)
#define THEIRS UINT64_C(0x2222)
#define EPOCH  UINT64_C(77)
#define PEER_QPN 4711

struct ud_rig {
	struct worker w;
	struct cm cm;
	struct hot hot;
	/* what the worker said, counted */
	int ready, up, paths, errors, resets, listening, goodbyes, probing, probes_done, pongs;
	struct ep_event last_pong, error, last_up, last_path;
	int listen_error;
};

extern const struct addr ud_here, ud_there;

struct ud_rig *ud_rig_new(void);
void ud_rig_free(struct ud_rig *r); /* checks that nothing is left */
/* cm and hot take turns until all is quiet; what they said is counted. */
void ud_settle(struct ud_rig *r);
/* Time passes for cm. */
void ud_later(struct ud_rig *r, int64_t ns);
void ud_command(struct ud_rig *r, uint16_t type, const struct ep_start *s);
void ud_hot_command(struct ud_rig *r, uint16_t type, uint64_t conn_id);
void ud_ping(struct ud_rig *r, const struct ep_ping *order);
struct ep_start ud_start(enum conn_role role);
struct endpoint *ud_ep(struct ud_rig *r, uint64_t conn_id);
/* A connection of tx or rx with @s, as far as UP. */
void ud_up_tx(struct ud_rig *r, const struct ep_start *s);
void ud_up_rx(struct ud_rig *r, const struct ep_start *s);
struct rdma_cm_id *ud_request_comes(struct ud_rig *r, const struct ep_start *s);
void ud_reset(struct ud_rig *r, uint64_t conn_id);
struct ibv_ah_attr ud_attr(void); /* that leads to ud_there */
/* A message to @s of @type lands, from the peer's queue pair; @key NULL: unsigned. */
void ud_message(struct ud_rig *r, const struct ep_start *s, enum fabric_type type,
		uint64_t seq, const uint8_t *key);
struct fabric_msg ud_sent_message(int index); /* that waits to be completed */
