/* SPDX-License-Identifier: BSD-2-Clause */
#include "verdict_log.h"

#include <stdio.h>
#include <stdlib.h>

#include "log.h"

struct line {
	char *key, *peer, *why; /* owned */
};

struct group { /* changes that are alike */
	enum verdict from, to;
	bool loud;
	uint32_t place; /* they are written in this order */
	struct mono first;
	unsigned count;
	struct line lines[VERDICT_FOLD_MIN - 1]; /* more are only counted */
	struct group *next;
};

struct verdict_log {
	struct group *groups; /* in the order of their first change */
	uint32_t last_place;
};

struct verdict_log *verdict_log_new(void)
{
	return xcalloc(1, sizeof(struct verdict_log));
}

/* Alike, and not written before what stands at @place. */
static struct group *group_of(struct verdict_log *l, const struct verdict_change *c,
			      uint32_t place)
{
	struct group **p = &l->groups;

	while (*p && ((*p)->from != c->from || (*p)->to != c->to || (*p)->place < place))
		p = &(*p)->next;
	if (!*p) {
		*p = xcalloc(1, sizeof(**p));
		(*p)->from = c->from;
		(*p)->to = c->to;
		(*p)->place = ++l->last_place;
	}
	return *p;
}

void verdict_log_add(struct verdict_log *l, struct mono now, const struct verdict_change *c,
		     uint32_t *place)
{
	struct group *g = group_of(l, c, *place);

	*place = g->place;
	if (!g->count)
		g->first = now;
	g->loud |= c->loud;
	if (g->count < ARRAY_LEN(g->lines))
		g->lines[g->count] = (struct line){xstrdup(c->key), xstrdup(c->peer),
						   xstrdup(c->why)};
	g->count++;
}

static void write_one(const struct group *g, const struct line *l)
{
	char f_key[400], f_peer[96], f_old[48], f_new[48];
	const char *fields[] = {f_key, f_peer, f_old, f_new, NULL};

	(void)snprintf(f_key, sizeof(f_key), "CONNECTION=%s", l->key);
	(void)snprintf(f_peer, sizeof(f_peer), "PEER=%s", l->peer);
	(void)snprintf(f_old, sizeof(f_old), "VERDICT_OLD=%s",
		       enum_name(&verdict_names, (int)g->from));
	(void)snprintf(f_new, sizeof(f_new), "VERDICT=%s",
		       enum_name(&verdict_names, (int)g->to));
	log_fields(g->loud ? LOG_WARNING : LOG_NOTICE, fields, "%s: %s -> %s: %s", l->key,
		   enum_text(&verdict_names, (int)g->from),
		   enum_text(&verdict_names, (int)g->to), l->why);
}

static void write_folded(const struct group *g)
{
	char f_old[48], f_new[48], f_count[32];
	const char *fields[] = {f_old, f_new, f_count, NULL};

	(void)snprintf(f_old, sizeof(f_old), "VERDICT_OLD=%s",
		       enum_name(&verdict_names, (int)g->from));
	(void)snprintf(f_new, sizeof(f_new), "VERDICT=%s",
		       enum_name(&verdict_names, (int)g->to));
	(void)snprintf(f_count, sizeof(f_count), "CONNECTIONS=%u", g->count);
	log_fields(g->loud ? LOG_WARNING : LOG_NOTICE, fields,
		   "%u connections: %s -> %s, the first of them %s: %s", g->count,
		   enum_text(&verdict_names, (int)g->from),
		   enum_text(&verdict_names, (int)g->to), g->lines[0].key, g->lines[0].why);
}

static void group_write(struct group *g)
{
	unsigned n = MIN(g->count, (unsigned)ARRAY_LEN(g->lines));

	if (g->count >= VERDICT_FOLD_MIN)
		write_folded(g);
	for (unsigned i = 0; i < n; i++) {
		if (g->count < VERDICT_FOLD_MIN)
			write_one(g, &g->lines[i]);
		free(g->lines[i].key);
		free(g->lines[i].peer);
		free(g->lines[i].why);
	}
	free(g);
}

void verdict_log_tick(struct verdict_log *l, struct mono now)
{
	while (l->groups && mono_sub(now, l->groups->first) >= VERDICT_FOLD_NS) {
		struct group *g = l->groups;

		l->groups = g->next;
		group_write(g);
	}
}

struct verdict_log *verdict_log_free(struct verdict_log *l)
{
	if (!l)
		return NULL;
	while (l->groups) {
		struct group *g = l->groups;

		l->groups = g->next;
		group_write(g);
	}
	free(l);
	return NULL;
}
