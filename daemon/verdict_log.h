/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * verdict_log.h - verdict changes on their way to the journal. Each waits 2 s for others
 * that are alike (from the same verdict to the same): eight or more become one line, so
 * that one dead rail with a thousand peers is one line and not a thousand. The changes of
 * one connection stay in their order.
 */
#pragma once

#include "mono.h"
#include "names.h"

#define VERDICT_FOLD_NS (2 * NSEC_PER_SEC)
#define VERDICT_FOLD_MIN 8

struct verdict_log; /* owned by the caller */
struct verdict_log *verdict_log_new(void);
/* What waits is written first. NULL-safe, returns NULL. */
struct verdict_log *verdict_log_free(struct verdict_log *l);

struct verdict_change {
	const char *key, *peer, *why; /* of the connection; copied */
	enum verdict from, to;
	bool loud; /* a warning, else a notice */
};
/* @place: where the last change of this connection stands, kept by the caller for it; 0
 * before the first. */
void verdict_log_add(struct verdict_log *l, struct mono now, const struct verdict_change *c,
		     uint32_t *place);
/* Write what has waited long enough. */
void verdict_log_tick(struct verdict_log *l, struct mono now);
