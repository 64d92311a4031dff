/* SPDX-License-Identifier: BSD-2-Clause */
#include "history.h"

#include <stdlib.h>

#include "render.h"

#define TEXT_BYTES (HISTORY_EVENTS * 96)
#define GROUPS	   16

/* Changes that are alike, as long as they come together. */
struct group {
	struct mono first;
	unsigned count;
	uint64_t last;		      /* number of the last that was kept */
	const char *kind, *from, *to; /* names of enums: they live for ever */
	char held_by[80];
};

struct history {
	struct monitor *ring;	       /* owned */
	uint32_t more[HISTORY_EVENTS]; /* that were like event n and came after it */
	struct group groups[GROUPS];
	unsigned next_group;
};

struct history *history_new(void)
{
	struct history *h = xcalloc(1, sizeof(*h));

	explicit_bzero(h, sizeof(*h)); /* takes the pages now */
	h->ring = monitor_new_sized(0, HISTORY_EVENTS, TEXT_BYTES);
	return h;
}

struct history *history_free(struct history *h)
{
	if (!h)
		return NULL;
	monitor_free(h->ring);
	free(h);
	return NULL;
}

static struct group *group_of(struct history *h, struct mono now, const char *kind,
			      const char *from, const char *to, const char *held_by)
{
	struct group *g;

	for (g = h->groups; g < h->groups + GROUPS; g++)
		if (g->count && mono_sub(now, g->first) < HISTORY_FOLD_NS &&
		    str_eq(g->kind, kind) && str_eq(g->from, from) &&
		    str_eq(g->to, to) && str_eq(g->held_by, held_by ? held_by : ""))
			return g;
	g = &h->groups[h->next_group++ % GROUPS];
	*g = (struct group){.first = now, .kind = kind, .from = from, .to = to};
	(void)str_copy(g->held_by, sizeof(g->held_by), held_by ? held_by : "");
	return g;
}

static const char *or_null(const char *text)
{
	return text && *text ? text : NULL;
}

void history_add(struct history *h, struct mono now, const char *kind, const char *name,
		 const char *from, const char *to, const char *held_by, const char *why)
{
	struct group *g = group_of(h, now, kind, from, to, or_null(held_by));

	if (++g->count > HISTORY_ALIKE && g->last >= monitor_first(h->ring)) {
		h->more[g->last % HISTORY_EVENTS]++;
		return;
	}
	monitor_post(h->ring, now, kind, name, or_null(held_by), or_null(from),
		     or_null(to), or_null(why));
	g->last = monitor_seq(h->ring);
	h->more[g->last % HISTORY_EVENTS] = 0;
}

/* A connection is of its peer, and of the peer's rail. */
static bool is_of(const struct monitor_event *e, const char *name)
{
	size_t n = strlen(name);

	if (str_eq(e->name, name) || str_eq(e->change, name))
		return true;
	return str_eq(e->kind, "connection") && !strncmp(e->name, name, n) &&
	       (e->name[n] == '/' || (e->name[n] == ':' && memchr(name, '/', n)));
}

static json_t *change_json(const struct history *h, uint64_t seq,
			   const struct monitor_event *e, const struct render_time *t)
{
	json_t *o = json_object();

	render_instant(o, "at", e->at, t);
	render_seconds(o, "age_sec", MAX(mono_sub(t->now, e->at), 0));
	render_text(o, "kind", e->kind);
	render_text(o, "name", e->name);
	render_text(o, "from", e->from);
	render_text(o, "to", e->to);
	render_text(o, "held_by", e->change);
	render_text(o, "why", e->why);
	render_int(o, "more", h->more[seq % HISTORY_EVENTS]);
	return o;
}

json_t *history_next(const struct history *h, int64_t since_ns, const char *name,
		     uint64_t *cursor, const struct render_time *t)
{
	/* A cursor grows: it counts down from the end of all numbers. */
	uint64_t seq = *cursor ? UINT64_MAX - *cursor - 1 : monitor_seq(h->ring);
	struct monitor_event e;

	for (; monitor_get(h->ring, seq, &e); seq--) {
		if (since_ns && mono_sub(t->now, e.at) > since_ns)
			return NULL;
		if (name && !is_of(&e, name))
			continue;
		*cursor = UINT64_MAX - seq;
		return change_json(h, seq, &e, t);
	}
	return NULL;
}
