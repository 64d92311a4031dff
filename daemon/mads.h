/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mads.h - main's one way to ask the fabric: requests to MAD workers, answers to whoever
 * asked. Directed-route Gets of a turn leave in as few messages as possible. Counts by
 * destination (who asks holds to a budget). Each request is answered exactly once, also
 * when its worker dies (WM_MAD_SEND_FAILED, at the end of the turn) or stays silent
 * (WM_MAD_TIMEOUT, and the worker is replaced).
 */
#pragma once

#include "worker.h"

struct manager;
struct mads;
struct worker;

struct mad_done {
	uint64_t tag;	     /* the caller's */
	enum wm_mad_status status;
	uint16_t mad_status, attr_offset;
	int error; /* an errno, 0 = none */
	uint64_t rtt_ns;
	const uint8_t *data; /* during the call */
	size_t length;
};
typedef void mad_done_fn(void *user, const struct mad_done *done);

struct mads *mads_new(struct manager *m);
struct mads *mads_free(struct mads *s);

/* Directed-route Get through DEVICE/port. 0 or -ENOTCONN (no worker: not asked, the
 * callback is not called), -ENOBUFS. Leaves at mads_flush(), or at the end of the turn. */
struct mad_smp {
	uint64_t tag;
	uint16_t attr;
	uint32_t mod;
	uint16_t timeout_ms;
	uint8_t retries, hops;
	const uint8_t *path;
};
int mads_get(struct mads *s, struct worker *w, const char *device, uint8_t port,
	     const struct mad_smp *r, mad_done_fn *done, void *user);
/* Any other MAD; @msg's header and id are filled in here. */
int mads_send(struct mads *s, struct worker *w, struct wm_mad_send *msg, uint64_t tag,
	      mad_done_fn *done, void *user);
void mads_flush(struct mads *s);
/* The callbacks of @user are called no more. */
void mads_forget(struct mads *s, void *user);

/* From workers.c. */
void mads_on_smp_results(struct mads *s, struct worker *w, const struct wm_smp_results *m);
void mads_on_more(struct mads *s, struct worker *w, const struct wm_mad_more *m);
void mads_on_answer(struct mads *s, struct worker *w, const struct wm_mad_answer *m);
void mads_worker_lost(struct mads *s, struct worker *w);
void mads_tick(struct mads *s, struct mono now);

enum mads_to { MADS_OWN, MADS_NEAR, MADS_SUBNET, MADS_PMA, MADS_SA, MADS_TO__MAX };
uint64_t mads_sent(const struct mads *s, enum mads_to to);
