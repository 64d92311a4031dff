/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * history.h - what became of what, with reasons: the last changes of the health of
 * ports, the verdicts of connections and peers, devices, workers and the config. A ring
 * of its own, as what monitor.h keeps of states and facts would wash it out. Many that
 * are alike in a short time (kind, from, to, holder) are counted from the 64th on, so
 * that a dead rail with ten thousand peers leaves the day before where it is.
 */
#pragma once

#include "monitor.h"

#define HISTORY_EVENTS	4096
#define HISTORY_ALIKE	64
#define HISTORY_FOLD_NS (2 * NSEC_PER_SEC)

struct render_time;
struct history;
struct history *history_new(void);
struct history *history_free(struct history *h); /* NULL-safe, returns NULL */

/* Texts are copied. @held_by, @from, @to, @why may be NULL or "". */
void history_add(struct history *h, struct mono now, const char *kind, const char *name,
		 const char *from, const char *to, const char *held_by,
		 const char *why);

/* Newest first: the first after *cursor (0: the newest), which becomes its place, as a
 * Change of the IDL (new reference); NULL at the end. @since_ns: no older, 0 = all.
 * @name: of a port, device, worker or peer, PEER/RAIL, a key, or what holds others;
 * NULL = all. */
json_t *history_next(const struct history *h, int64_t since_ns, const char *name,
		     uint64_t *cursor, const struct render_time *t);
