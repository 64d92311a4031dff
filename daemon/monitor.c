/* SPDX-License-Identifier: BSD-2-Clause */
#include "monitor.h"

#include <stdio.h>
#include <stdlib.h>

#include "render.h"

enum text { T_KIND, T_NAME, T_CHANGE, T_FROM, T_TO, T_WHY, T__MAX };

#define TEXT_LEN_MAX 1024 /* of one; the rest is cut off */
#define TEXTS_SIZE   (MONITOR_EVENTS * 128)
#define TEXTS_LEAST  (T__MAX * (TEXT_LEN_MAX + 1)) /* one event fits in any case */

struct change {
	struct mono at;
	uint32_t start, len;   /* of its texts, one after the other */
	uint16_t text[T__MAX]; /* 1 + where each begins from @start; 0 = none */
};

/* Of a fixed size and all of it in use from the start: what fills up slowly looks like
 * a leak, and long names cost older events, not memory. */
struct monitor {
	char instance[17];
	uint64_t seq;	      /* of the last event */
	uint64_t first;	      /* of the oldest that is kept */
	uint32_t size, bytes; /* of the two rings */
	struct change *ring;  /* owned; event n is at n % size */
	char *texts;	      /* owned; a ring as well; no event's wrap around */
	uint32_t end;	      /* of the last event's texts */
	monitor_fn *fn;
	void *user;
};
static_assert(T__MAX * (TEXT_LEN_MAX + 1) < UINT16_MAX, "offsets fit");

struct monitor *monitor_new_sized(uint64_t instance, uint32_t events, uint32_t bytes)
{
	struct monitor *m = xcalloc(1, sizeof(*m));

	m->size = MAX(events, 1U);
	m->bytes = MAX(bytes, (uint32_t)TEXTS_LEAST);
	m->ring = xcalloc(m->size, sizeof(*m->ring));
	m->texts = xcalloc(m->bytes, 1);
	explicit_bzero(m->ring, m->size * sizeof(*m->ring)); /* takes the pages now */
	explicit_bzero(m->texts, m->bytes);
	m->first = 1;
	(void)snprintf(m->instance, sizeof(m->instance), "%016llx",
		       (unsigned long long)instance);
	return m;
}

struct monitor *monitor_new(uint64_t instance)
{
	return monitor_new_sized(instance, MONITOR_EVENTS, TEXTS_SIZE);
}

struct monitor *monitor_free(struct monitor *m)
{
	if (!m)
		return NULL;
	free(m->ring);
	free(m->texts);
	free(m);
	return NULL;
}

static struct change *change_at(struct monitor *m, uint64_t seq)
{
	return &m->ring[seq % m->size];
}

/* Room for @len bytes of text, at the cost of the oldest events. */
static uint32_t make_room(struct monitor *m, uint32_t len)
{
	uint32_t start = m->end;

	if (start + len > m->bytes) {
		/* Those up to the end of the ring are older than those at its start. */
		while (m->first <= m->seq && change_at(m, m->first)->start >= m->end)
			m->first++;
		start = 0;
	}
	while (m->first <= m->seq) {
		const struct change *c = change_at(m, m->first);
		bool apart = c->start >= start + len || c->start + c->len <= start;

		if (apart && m->seq - m->first + 1 < m->size)
			break;
		m->first++;
	}
	m->end = start + len;
	return start;
}

static void change_set(struct monitor *m, struct mono at,
		       const char *const texts[T__MAX])
{
	size_t len[T__MAX] = {0};
	uint32_t total = 0, start;
	struct change *c;
	char *p;

	for (int i = 0; i < T__MAX; i++) {
		len[i] = texts[i] ? strnlen(texts[i], TEXT_LEN_MAX) + 1 : 0;
		total += (uint32_t)len[i];
	}
	start = make_room(m, total);
	c = change_at(m, ++m->seq);
	*c = (struct change){.at = at, .start = start, .len = total};
	p = m->texts + start;
	for (int i = 0; i < T__MAX; i++) {
		if (!texts[i])
			continue;
		c->text[i] = (uint16_t)(p - (m->texts + start) + 1);
		p = mempcpy(p, texts[i], len[i] - 1);
		*p++ = '\0';
	}
}

static const char *text_of(const struct monitor *m, const struct change *c, enum text t)
{
	return c->text[t] ? m->texts + c->start + c->text[t] - 1 : NULL;
}

void monitor_post(struct monitor *m, struct mono now, const char *kind,
		  const char *name, const char *change, const char *from,
		  const char *to, const char *why)
{
	const char *const texts[T__MAX] = {
		[T_KIND] = kind, [T_NAME] = name, [T_CHANGE] = change,
		[T_FROM] = from, [T_TO] = to,	  [T_WHY] = why,
	};

	change_set(m, now, texts);
	if (m->fn)
		m->fn(m->user);
}

uint64_t monitor_seq(const struct monitor *m)
{
	return m->seq;
}

uint64_t monitor_first(const struct monitor *m)
{
	return m->first;
}

bool monitor_get(const struct monitor *m, uint64_t seq, struct monitor_event *ret)
{
	const struct change *c = &m->ring[seq % m->size];

	if (seq < m->first || seq > m->seq)
		return false;
	*ret = (struct monitor_event){
		.at = c->at,
		.kind = text_of(m, c, T_KIND),
		.name = text_of(m, c, T_NAME),
		.change = text_of(m, c, T_CHANGE),
		.from = text_of(m, c, T_FROM),
		.to = text_of(m, c, T_TO),
		.why = text_of(m, c, T_WHY),
	};
	return true;
}

uint64_t monitor_lost(const struct monitor *m, uint64_t seq)
{
	uint64_t gone = m->first - 1;

	return seq < gone ? gone - seq : 0;
}

const char *monitor_instance(const struct monitor *m)
{
	return m->instance;
}

json_t *monitor_start(const struct monitor *m, uint64_t seq, uint64_t lost,
		      int64_t wall_now, struct mono now)
{
	char at[32];

	return json_pack("{s:I, s:s, s:s, s:s, s:s, s:n, s:n, s:n, s:I, s:s, s:I}", "seq",
			 (json_int_t)seq, "at", render_wall(wall_now, at), "kind",
			 "start", "name", "", "change", "", "from", "to", "why", "lost",
			 (json_int_t)lost, "instance", m->instance, "monotonic_ns",
			 (json_int_t)now.ns);
}

json_t *monitor_next(const struct monitor *m, uint64_t *seq, int64_t wall_now,
		     struct mono now)
{
	const struct render_time t = {.now = now, .wall_ns = wall_now};
	uint64_t lost = monitor_lost(m, *seq);
	const struct change *c;
	json_t *o;

	if (*seq >= m->seq)
		return NULL;
	*seq += lost + 1;
	c = &m->ring[*seq % m->size];
	o = json_object();
	(void)json_object_set_new(o, "seq", json_integer((json_int_t)*seq));
	render_instant(o, "at", c->at, &t);
	render_text(o, "kind", text_of(m, c, T_KIND));
	render_text(o, "name", text_of(m, c, T_NAME));
	render_text(o, "change", text_of(m, c, T_CHANGE));
	render_text(o, "from", text_of(m, c, T_FROM));
	render_text(o, "to", text_of(m, c, T_TO));
	render_text(o, "why", text_of(m, c, T_WHY));
	(void)json_object_set_new(o, "lost", json_integer((json_int_t)lost));
	render_text(o, "instance", m->instance);
	(void)json_object_set_new(o, "monotonic_ns", json_integer((json_int_t)c->at.ns));
	return o;
}

void monitor_on_post(struct monitor *m, monitor_fn *fn, void *user)
{
	m->fn = fn;
	m->user = user;
}
