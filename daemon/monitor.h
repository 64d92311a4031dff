/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * monitor.h - a log of changes: a ring of the last events with sequence numbers, fewer
 * where their texts are long. The manager posts; each Monitor call of a client
 * reads at its own pace, and what the ring no longer has is counted as lost. Holds no
 * client's data.
 */
#pragma once

#include <jansson.h>

#include "loop.h"

#define MONITOR_EVENTS 4096

/* What one event says; texts may be NULL. Borrowed: until the next post. */
struct monitor_event {
	struct mono at;
	const char *kind, *name, *change, *from, *to, *why;
};

struct monitor;
struct monitor *monitor_new(uint64_t instance); /* random number of this start */
/* Of another size: @events with @bytes of text, all together. */
struct monitor *monitor_new_sized(uint64_t instance, uint32_t events, uint32_t bytes);
struct monitor *monitor_free(struct monitor *m);
/* @from, @to, @why may be NULL. Texts are copied. */
void monitor_post(struct monitor *m, struct mono now, const char *kind, const char *name,
		  const char *change, const char *from, const char *to, const char *why);
uint64_t monitor_seq(const struct monitor *m); /* of the last event, 0 = none */
uint64_t monitor_first(const struct monitor *m); /* of the oldest that is kept */
/* false: that is not kept, or not there yet. */
bool monitor_get(const struct monitor *m, uint64_t seq, struct monitor_event *ret);
const char *monitor_instance(const struct monitor *m); /* 16 hex digits */
/* How many of the events after @seq are gone from the ring. */
uint64_t monitor_lost(const struct monitor *m, uint64_t seq);
/* The Event of kind "start": a stream goes on after @seq, @lost before it are gone. */
json_t *monitor_start(const struct monitor *m, uint64_t seq, uint64_t lost,
		      int64_t wall_now, struct mono now);
/* The event after *seq as an Event (new reference); *seq becomes its number. If events
 * between were lost, "lost" says how many. NULL: nothing newer. */
json_t *monitor_next(const struct monitor *m, uint64_t *seq, int64_t wall_now,
		     struct mono now);
/* Called after each post. */
typedef void monitor_fn(void *user);
void monitor_on_post(struct monitor *m, monitor_fn *fn, void *user);
