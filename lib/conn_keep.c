/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a connection remembers, in no more room than it takes: texts, old numbers,
 * transitions. The rules about them are conn.c's and conn_ctl.c's.
 */
#include "conn.h"

#include <stdlib.h>

#include "conn_turn.h"

#define RING_FIRST    3 /* what the smallest piece of memory has room for */
#define HISTORY_FIRST 8 /* from idle to connected */

/* ---- texts ---- */

/* One piece of memory for @n texts, each ending in NUL; @at: where each begins. */
static char *join(const char *const *texts, int n, const char **at)
{
	size_t len[3], total = 0;
	char *all, *p;

	assert(n <= (int)ARRAY_LEN(len));
	for (int i = 0; i < n; i++) {
		len[i] = strnlen(texts[i], CTL_NAME_MAX - 1);
		total += len[i] + 1;
	}
	p = all = xcalloc(1, total);
	for (int i = 0; i < n; i++) {
		memcpy(p, texts[i], len[i]);
		if (at)
			at[i] = p;
		p += len[i] + 1;
	}
	return all;
}

void conn_keep_key(struct conn *c, const struct conn_key *key)
{
	const char *texts[] = {key->peer ? key->peer : "", key->rail ? key->rail : "",
			       key->port_name ? key->port_name : ""};
	const char *at[ARRAY_LEN(texts)];
	char *before = c->key_text; /* @key may be c's own */

	c->key_text = join(texts, (int)ARRAY_LEN(texts), at);
	c->key = *key;
	c->key.peer = at[0];
	c->key.rail = at[1];
	c->key.port_name = at[2];
	free(before);
}

static const char *peer_text(const struct conn *c, int i)
{
	const char *p = c->peer_text ? c->peer_text : "\0\0";

	while (i--)
		p += strlen(p) + 1;
	return p;
}

const char *conn_peer_node(const struct conn *c)
{
	return peer_text(c, 0);
}

const char *conn_peer_rail(const struct conn *c)
{
	return peer_text(c, 1);
}

const char *conn_peer_port(const struct conn *c)
{
	return peer_text(c, 2);
}

void conn_keep_peer_names(struct conn *c, const struct ctl_msg *m)
{
	const char *texts[] = {m->node, m->rail, m->port_name};

	if (c->peer_text && !strcmp(m->node, conn_peer_node(c)) &&
	    !strcmp(m->rail, conn_peer_rail(c)) &&
	    !strcmp(m->port_name, conn_peer_port(c)))
		return;
	free(c->peer_text);
	c->peer_text = join(texts, (int)ARRAY_LEN(texts), NULL);
}

void conn_keep_error_text(struct conn *c, const char *text)
{
	char *before = c->error_text; /* @text may be it */

	c->error_text = text && text[0] ? xasprintf("%.*s", EP_TEXT_MAX - 1, text)
					: NULL;
	free(before);
}

const char *conn_error_text(const struct conn *c)
{
	return c->error_text ? c->error_text : "";
}

/* ---- numbers ---- */

bool conn_ring_has(const struct conn_ring *r, uint64_t v)
{
	for (unsigned i = 0; i < r->n; i++)
		if (r->v[i] == v)
			return true;
	return false;
}

void conn_ring_add(struct conn_ring *r, uint64_t v, unsigned max)
{
	if (r->n == r->room && r->room < max) {
		r->room = (uint8_t)MIN(r->room ? 2u * r->room : RING_FIRST, max);
		r->v = xrealloc(r->v, r->room, sizeof(*r->v));
	}
	r->v[r->next] = v;
	r->n = (uint8_t)MAX(r->n, r->next + 1);
	r->next = (uint8_t)((r->next + 1u) % max);
}

/* ---- the endpoint ---- */

void conn_keep_stats(struct conn *c, const struct ep_stats *s)
{
	if (!c->stats)
		c->stats = xcalloc(1, sizeof(*c->stats));
	*c->stats = *s;
}

void conn_forget_stats(struct conn *c)
{
	free(c->stats);
	c->stats = NULL;
}

const struct ep_stats *conn_stats(const struct conn *c)
{
	static const struct ep_stats none;

	return c->stats ? c->stats : &none;
}

void conn_keep_endpoint(struct conn *c, const struct conn_up *up)
{
	if (!c->up)
		c->up = xcalloc(1, sizeof(*c->up));
	*c->up = *up;
}

const struct conn_up *conn_endpoint(const struct conn *c)
{
	static const struct conn_up none;

	return c->up ? c->up : &none;
}

/* ---- transitions ---- */

/* Each in 64 bits: milliseconds 41 (seventy years from the start of the host), states 4
 * and 4, event 6, row 9. */
#define AT_SHIFT    23
#define FROM_SHIFT  19
#define TO_SHIFT    15
#define EVENT_SHIFT 9
_Static_assert(CONN__MAX <= 16, "a state takes 4 bits");
_Static_assert(PE__MAX <= 64, "an event takes 6 bits");

void conn_keep_history(struct conn *c, const struct conn_history *h)
{
	uint64_t ms = (uint64_t)MAX(h->at.ns / NSEC_PER_MSEC, INT64_C(0));

	assert(h->row >= 0 && h->row < 512);
	if (c->n_history == c->history_room && c->history_room < CONN_HISTORY) {
		c->history_room = (uint8_t)(c->history_room ? 2 * c->history_room
							    : HISTORY_FIRST);
		c->history = xrealloc(c->history, c->history_room, sizeof(*c->history));
	}
	c->history[c->n_history++ % CONN_HISTORY] =
		ms << AT_SHIFT | (uint64_t)h->from << FROM_SHIFT |
		(uint64_t)h->to << TO_SHIFT | (uint64_t)h->event << EVENT_SHIFT |
		(uint64_t)h->row;
}

unsigned conn_history_count(const struct conn *c)
{
	return MIN(c->n_history, (unsigned)CONN_HISTORY);
}

struct conn_history conn_history_get(const struct conn *c, unsigned i)
{
	unsigned first = c->n_history - conn_history_count(c);
	uint64_t v = c->history[(first + i) % CONN_HISTORY];

	assert(i < conn_history_count(c));
	return (struct conn_history){
		.at = {(int64_t)(v >> AT_SHIFT) * NSEC_PER_MSEC},
		.from = (enum conn_state)(v >> FROM_SHIFT & 15),
		.to = (enum conn_state)(v >> TO_SHIFT & 15),
		.event = (enum probe_event)(v >> EVENT_SHIFT & 63),
		.row = (int)(v & 511),
	};
}

/* ---- life ---- */

struct conn *conn_free(struct conn *c)
{
	if (!c)
		return NULL;
	free(c->key_text);
	free(c->peer_text);
	free(c->error_text);
	free(c->old_epochs.v);
	free(c->retired_ids.v);
	free(c->out);
	free(c->asked);
	free(c->stats);
	free(c->up);
	free(c->history);
	free(c);
	return NULL;
}
