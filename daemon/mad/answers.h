/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * answers.h - what came of requests, as messages to main: each origin has its own, and
 * results of batches that are there together leave together.
 */
#pragma once

#include "smp_port.h"

/* Send a message whose header the callee fills in. */
typedef void mad_send_fn(void *user, enum wm_type type, void *msg, size_t size);

struct answers;

struct answers *answers_new(mad_send_fn *send, void *user);
struct answers *answers_free(struct answers *a); /* NULL-safe, returns NULL */

void answers_put(struct answers *a, const struct smp_done *d);
/* A request that was not even tried. */
void answers_refuse(struct answers *a, enum smp_origin origin, uint64_t id,
		    enum wm_mad_status status, int error);
/* Let go what was gathered: at the end of each turn. */
void answers_flush(struct answers *a);
/* Nobody is there any more who wants it. */
void answers_forget(struct answers *a);
