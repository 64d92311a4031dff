/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What ports had while they were well, kept in the state directory: a link that came up
 * narrow after a reboot is narrow all the same. Also of ports that are away.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "manager.h"

#define BASELINES_MAX 4096

struct baseline_entry {
	char port[PORT_NAME_MAX];
	struct port_baseline b;
};

struct baselines {
	struct baseline_entry *list; /* owned */
	int n;
};

static struct baseline_entry *find(struct baselines *s, const char *port)
{
	for (int i = 0; i < s->n; i++)
		if (!strcmp(s->list[i].port, port))
			return &s->list[i];
	return NULL;
}

static struct baseline_entry *get(struct baselines *s, const char *port)
{
	struct baseline_entry *e = find(s, port);

	if (e || s->n >= BASELINES_MAX)
		return e;
	s->list = xrealloc(s->list, (size_t)s->n + 1, sizeof(*s->list));
	e = &s->list[s->n++];
	*e = (struct baseline_entry){0};
	(void)str_copy(e->port, sizeof(e->port), port);
	return e;
}

void baselines_save(struct manager *m)
{
	const struct baselines *s = m->baselines;
	json_t *a = json_array();
	char *text;

	for (int i = 0; i < s->n; i++) {
		const struct baseline_entry *e = &s->list[i];
		char guid[24];

		if (!e->b.lanes)
			continue;
		(void)snprintf(guid, sizeof(guid), "0x%016" PRIx64, e->b.remote_guid);
		(void)json_array_append_new(
			a, json_pack("{s:s, s:i, s:I, s:s, s:i}", "port", e->port,
				     "lanes", (int)e->b.lanes, "lane_mbps",
				     (json_int_t)e->b.speed_mbps, "remote_guid", guid,
				     "remote_port", (int)e->b.remote_port));
	}
	text = json_dumps(a, JSON_INDENT(1));
	json_decref(a);
	if (text)
		state_save(m, STATE_BASELINES, text);
	free(text);
}

static void load_one(struct baselines *s, json_t *entry)
{
	struct baseline_entry *e;
	const char *port, *guid;
	json_int_t mbps;
	int lanes, far;

	if (json_unpack(entry, "{s:s, s:i, s:I, s:s, s:i}", "port", &port, "lanes",
			&lanes, "lane_mbps", &mbps, "remote_guid", &guid, "remote_port",
			&far) < 0)
		return;
	if (lanes < 1 || lanes > 12 || mbps < 1 || mbps > 1000000 || far < 0 ||
	    far > 255)
		return;
	e = get(s, port);
	if (e)
		e->b = (struct port_baseline){.lanes = (uint8_t)lanes,
					      .speed_mbps = (uint32_t)mbps,
					      .remote_guid = strtoull(guid, NULL, 16),
					      .remote_port = (uint8_t)far};
}

void baselines_load(struct manager *m)
{
	size_t len, i;
	char *text = state_load(m, STATE_BASELINES, &len);
	json_t *a = text ? json_loadb(text, len, 0, NULL) : NULL, *entry;

	m->baselines = xcalloc(1, sizeof(*m->baselines));
	if (text && !json_is_array(a))
		log_warn(
			"%s/baselines.json is not readable; what ports used to have is learnt anew",
			m->config->state_dir);
	json_array_foreach (a, i, entry)
		load_one(m->baselines, entry);
	json_decref(a);
	free(text);
}

void baselines_free(struct manager *m)
{
	if (m->baselines)
		free(m->baselines->list);
	free(m->baselines);
	m->baselines = NULL;
}

void baseline_apply(struct manager *m, struct port_entry *pe)
{
	char name[PORT_NAME_MAX];
	const struct baseline_entry *e = find(m->baselines, port_name(&pe->p, name));

	if (!e || !e->b.lanes)
		return;
	pe->p.watch.baseline = e->b;
	port_was_well_before(&pe->p);
}

void baseline_forget(struct port_entry *pe)
{
	pe->p.watch.baseline = (struct port_baseline){0};
	pe->p.watch.baseline_changed = true;
}

/* The port keeps its own; the name under which it is written is another. */
void baselines_renamed(struct device *d, const char *old)
{
	struct baselines *s = d->m->baselines;
	size_t len = strlen(old);

	for (int i = 0; i < s->n; i++)
		if (!strncmp(s->list[i].port, old, len) && s->list[i].port[len] == '/')
			s->list[i].b.lanes = 0;
	for (struct port_entry *pe = d->ports; pe; pe = pe->next)
		pe->p.watch.baseline_changed = true;
}

void baselines_tick(struct manager *m)
{
	bool any = false;

	for (struct device *d = m->devices; d; d = d->next)
		for (struct port_entry *pe = d->ports; pe; pe = pe->next) {
			char name[PORT_NAME_MAX];
			struct baseline_entry *e;

			if (!pe->p.watch.baseline_changed)
				continue;
			pe->p.watch.baseline_changed = false;
			e = get(m->baselines, port_name(&pe->p, name));
			if (e)
				e->b = pe->p.watch.baseline;
			any = true;
		}
	if (any)
		baselines_save(m);
}
