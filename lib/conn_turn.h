/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * conn_turn.h - what conn.c, conn_ctl.c and conn_keep.c share: one turn is one call of
 * conn_handle(). Nobody else includes it.
 */
#pragma once

#include "conn.h"

struct conn_turn {
	struct conn *c; /* borrowed */
	struct mono now;
	uint64_t rnd;
	struct conn_actions *out;  /* borrowed */
	const struct ctl_msg *msg; /* the message that is being handled, or NULL */
	enum probe_event event;
	enum cause cause; /* of a local stop */
	uint32_t deadline_sec;
	enum refusal refusal; /* for PA_REFUSE */
	bool ignored;	      /* the table took no notice of it */
};

uint64_t turn_random(struct conn_turn *t); /* never 0 */
struct conn_action *turn_emit(struct conn_turn *t, enum conn_action_type type);
/* Run one event through the table; the only caller of the state's writer. */
void conn_step(struct conn_turn *t, enum probe_event e);
void conn_forget_error(struct conn *c);

/* conn_ctl.c: a message came; 0 or -(1 + enum drop). */
int conn_ctl_handle(struct conn_turn *t, const struct ctl_msg *m);
/* The actions of the table that send. */
void conn_ctl_epoch(struct conn *c, uint64_t epoch);
void conn_ctl_command(struct conn_turn *t, enum ctl_cmd cmd);
void conn_ctl_resend(struct conn_turn *t);
/* @of: what is answered; NULL: the message at hand. */
void conn_ctl_ack(struct conn_turn *t, enum ctl_cmd cmd, const struct conn_request *of);
void conn_ctl_settled(struct conn *c);
void conn_ctl_adopt(struct conn_turn *t); /* rx: the epoch of the request that waits */
bool conn_ctl_retries_left(const struct conn *c);
/* rx: the request that waits; all zero if none does. */
const struct conn_request *conn_ctl_asked(const struct conn *c);

/* conn_keep.c */
void conn_keep_key(struct conn *c, const struct conn_key *key);
void conn_keep_peer_names(struct conn *c, const struct ctl_msg *m);
void conn_keep_error_text(struct conn *c, const char *text); /* NULL, "": none */
bool conn_ring_has(const struct conn_ring *r, uint64_t v);
void conn_ring_add(struct conn_ring *r, uint64_t v, unsigned max);
void conn_keep_stats(struct conn *c, const struct ep_stats *s);
void conn_forget_stats(struct conn *c);
void conn_keep_endpoint(struct conn *c, const struct conn_up *up);
void conn_keep_history(struct conn *c, const struct conn_history *h);
