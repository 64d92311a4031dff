/* SPDX-License-Identifier: BSD-2-Clause */
#include "facts.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

#include "log.h"

#define PKEYS_EVERY 60 /* polls: a table is up to 128 reads of the firmware */

/* Facts may wait for a slow reader: nothing depends on this thread's speed. */
static void post(struct facts *f, const void *msg, size_t size)
{
	union facts_message m;

	memset(&m, 0, sizeof(m));
	memcpy(&m, msg, size);
	while (!ring_push(&f->w->facts_out, &m))
		(void)usleep(10000);
	wake(f->w->wake_ctl);
}

static void send_gids(struct facts *f, int num, const struct port_state *s)
{
	struct wm_gids m;
	int first = 0;

	do {
		int n = MIN(s->n_gids - first, WM_GIDS_EACH);

		memset(&m, 0, sizeof(m));
		wm_header(&m, WM_GIDS, sizeof(m), f->w->generation);
		(void)str_copy(m.device, sizeof(m.device), f->w->device);
		m.port = (uint8_t)num;
		m.why = (uint8_t)s->gids_why;
		m.first = (uint16_t)first;
		m.n = (uint16_t)n;
		for (int i = 0; i < n; i++)
			m.gid[i] = s->gids[first + i];
		first += n;
		m.last = first >= s->n_gids;
		post(f, &m, sizeof(m));
	} while (first < s->n_gids);
}

static void send_pkeys(struct facts *f, int num, const struct port_state *s)
{
	struct wm_pkeys m;
	int first = 0;

	do {
		int n = MIN(s->n_pkeys - first, WM_PKEYS_EACH);

		memset(&m, 0, sizeof(m));
		wm_header(&m, WM_PKEYS, sizeof(m), f->w->generation);
		(void)str_copy(m.device, sizeof(m.device), f->w->device);
		m.port = (uint8_t)num;
		m.why = (uint8_t)s->pkeys_why;
		m.first = (uint16_t)first;
		m.n = (uint16_t)n;
		for (int i = 0; i < n; i++)
			m.pkey[i] = s->pkeys[first + i];
		first += n;
		m.last = first >= s->n_pkeys;
		post(f, &m, sizeof(m));
	} while (first < s->n_pkeys);
}

static void update_gids(struct facts *f, int num, struct port_state *s)
{
	struct port_gid *gids;
	int n;
	enum unavailable why = facts_read_gids(f, num, &gids, &n);

	if (s->sent && why == s->gids_why && n == s->n_gids &&
	    (!n || !memcmp(gids, s->gids, (size_t)n * sizeof(*gids)))) {
		free(gids);
		return;
	}
	free(s->gids);
	s->gids = gids;
	s->n_gids = n;
	s->gids_why = why;
	send_gids(f, num, s);
}

static void update_pkeys(struct facts *f, int num, struct port_state *s)
{
	uint16_t *pkeys;
	int n;
	enum unavailable why = facts_read_pkeys(f, num, &pkeys, &n);

	if (s->sent && why == s->pkeys_why && n == s->n_pkeys &&
	    (!n || !memcmp(pkeys, s->pkeys, (size_t)n * sizeof(*pkeys)))) {
		free(pkeys);
		return;
	}
	free(s->pkeys);
	s->pkeys = pkeys;
	s->n_pkeys = n;
	s->pkeys_why = why;
	send_pkeys(f, num, s);
}

/* Read a port; report what changed since it was last reported. */
static void update_port(struct facts *f, int num, enum fact_source source, bool pkeys)
{
	struct port_state *s = &f->ports[num - 1];
	struct wm_port p;

	facts_read_port(f, num, &p);
	p.source = s->port.source; /* is no fact of the port */
	if (!s->sent || memcmp(&p, &s->port, sizeof(p)) != 0) {
		p.source = (uint8_t)source;
		s->port = p;
		post(f, &p, sizeof(p));
	}
	update_gids(f, num, s);
	if (pkeys || !s->sent)
		update_pkeys(f, num, s);
	s->sent = true;
}

static void update_all(struct facts *f, enum fact_source source, bool pkeys)
{
	for (int i = 1; i <= f->n_ports; i++)
		update_port(f, i, source, pkeys);
}

/* Drain all first, then read: a burst costs one reading. */
static void drain_async(struct facts *f)
{
	bool ports[FACTS_PORTS_MAX + 1] = {false}, all = false;
	struct ibv_async_event ev;

	while (!ibv_get_async_event(f->verbs, &ev)) {
		int num = ev.element.port_num;
		enum ibv_event_type type = ev.event_type;

		ibv_ack_async_event(&ev);
		switch (type) {
		case IBV_EVENT_PORT_ACTIVE:
		case IBV_EVENT_PORT_ERR:
		case IBV_EVENT_LID_CHANGE:
		case IBV_EVENT_PKEY_CHANGE:
		case IBV_EVENT_SM_CHANGE:
		case IBV_EVENT_CLIENT_REREGISTER:
		case IBV_EVENT_GID_CHANGE:
			if (num >= 1 && num <= f->n_ports)
				ports[num] = true;
			else
				all = true;
			break;
		case IBV_EVENT_DEVICE_FATAL:
			worker_goodbye(f->w, &f->w->facts_out, GOODBYE_DEVICE_GONE,
				       "the device reports a fatal error");
			return;
		default: /* a later kind: look at everything */
			all = true;
			break;
		}
	}
	if (errno != EAGAIN && errno != EINTR)
		f->async_dead = true;
	for (int i = 1; i <= f->n_ports; i++)
		if (ports[i] || all)
			update_port(f, i, SOURCE_ASYNC, true);
}

static struct ibv_device *find_device(struct ibv_device **list, const struct worker *w)
{
	for (struct ibv_device **d = list; *d; d++) {
		if (!str_eq(ibv_get_device_name(*d), w->device))
			continue;
		if (w->device_index == DEVICE_INDEX_NONE ||
		    ibv_get_device_index(*d) == (int)w->device_index)
			return *d;
	}
	return NULL;
}

/* The name may have passed to another device meanwhile: the index decides. */
static int open_device(struct facts *f)
{
	struct worker *w = f->w;
	struct ibv_device **list, *dev;
	int n, index, flags;

	busy_enter(&w->facts_busy, "ibv_get_device_list", false);
	errno = 0;
	list = ibv_get_device_list(&n);
	busy_leave(&w->facts_busy);
	if (!list)
		return errno ? -errno : -ENODEV;
	dev = find_device(list, w);
	if (dev) {
		busy_enter(&w->facts_busy, "ibv_open_device", false);
		errno = 0;
		f->verbs = ibv_open_device(dev);
		n = errno;
		busy_leave(&w->facts_busy);
	}
	ibv_free_device_list(list);
	if (!f->verbs)
		return dev && n ? -n : -ENODEV;
	index = ibv_get_device_index(f->verbs->device);
	if (index >= 0)
		w->device_index = (uint32_t)index;
	(void)str_copy(w->uverbs, sizeof(w->uverbs), f->verbs->device->dev_name);
	f->iwarp = f->verbs->device->transport_type == IBV_TRANSPORT_IWARP;
	w->iwarp = f->iwarp;
	flags = fcntl(f->verbs->async_fd, F_GETFL);
	if (flags < 0 || fcntl(f->verbs->async_fd, F_SETFL, flags | O_NONBLOCK) < 0)
		return -errno;
	return 0;
}

/* Some libraries crash inside rdma_get_cm_event on a device whose node GUID is zero. */
static void judge_device(struct facts *f, const struct wm_device *d)
{
	enum device_state state = DEVICE_READY;

	if (field_why(&device_table, &d->facts, DF_NODE_GUID) != WHY_NONE ||
	    !d->facts.node_guid) {
		(void)str_copy(
			f->w->why_facts_only, sizeof(f->w->why_facts_only),
			"the node GUID is zero: not safe for the connection manager");
		state = DEVICE_FACTS_ONLY;
	} else if (f->verbs->device->transport_type != IBV_TRANSPORT_IB && !f->iwarp) {
		(void)str_copy(f->w->why_facts_only, sizeof(f->w->why_facts_only),
			       "this device has no connection manager");
		state = DEVICE_FACTS_ONLY;
	}
	atomic_store(&f->w->device_state, state);
	wake(f->w->wake_cm);
}

int facts_start(struct facts *f)
{
	struct wm_device d;
	int r = open_device(f);

	if (r < 0) {
		worker_goodbye(f->w, &f->w->facts_out, GOODBYE_FAILED,
			       "cannot open %s: %s", f->w->device, strerror(-r));
		return r;
	}
	facts_read_device(f, &d);
	if (field_why(&device_table, &d.facts, DF_NUM_PORTS) == WHY_NONE)
		f->n_ports = (int)MIN(d.facts.num_ports, (uint32_t)FACTS_PORTS_MAX);
	f->ports = xcalloc((size_t)f->n_ports + 1, sizeof(*f->ports));
	post(f, &d, sizeof(d));
	update_all(f, SOURCE_START, true);
	judge_device(f, &d);
	return 0;
}

static void send_counters(struct facts *f)
{
	struct wm_counters m;

	for (int i = 1; i <= f->n_ports; i++) {
		facts_read_counters(f, i, &m);
		post(f, &m, sizeof(m));
	}
}

void facts_turn(struct facts *f, struct facts_due *due)
{
	struct mono next = mono_first(due->poll, due->counters);
	struct pollfd fds[2] = {
		{.fd = f->w->wake_facts, .events = POLLIN},
		{.fd = f->async_dead ? -1 : f->verbs->async_fd, .events = POLLIN}};
	struct mono now = clock_now();
	int64_t left = mono_is_set(next) ? MAX(mono_sub(next, now), 0) : -1;
	int ms = left < 0 ? -1 : (int)((left + NSEC_PER_MSEC - 1) / NSEC_PER_MSEC);

	if (poll(fds, 2, ms) < 0)
		return;
	if (fds[0].revents & POLLIN)
		wake_clear(f->w->wake_facts);
	if (fds[1].revents & POLLIN)
		drain_async(f);
	if (fds[1].revents & (POLLERR | POLLNVAL))
		f->async_dead = true;
	now = clock_now();
	if (atomic_exchange(&f->w->reread, false))
		update_all(f, SOURCE_POLL, true);
	if (mono_due(due->poll, now)) {
		update_all(f, SOURCE_POLL, ++f->polls % PKEYS_EVERY == 0);
		due->poll = mono_add(clock_now(), f->w->poll_ms * NSEC_PER_MSEC);
	}
	if (mono_due(due->counters, now)) {
		send_counters(f);
		due->counters = mono_add(clock_now(), f->w->counters_ms * NSEC_PER_MSEC);
	}
}

void facts_done(struct facts *f)
{
	for (int i = 0; i < f->n_ports; i++) {
		free(f->ports[i].gids);
		free(f->ports[i].pkeys);
	}
	free(f->ports);
	f->ports = NULL;
	if (f->verbs)
		(void)ibv_close_device(f->verbs);
	f->verbs = NULL;
}

void *facts_thread(void *worker)
{
	struct facts f = {.w = worker};
	struct facts_due due = {0};

	(void)pthread_setname_np(pthread_self(), "facts");
	if (facts_start(&f) < 0)
		return NULL; /* ctl ends the process */
	if (f.w->poll_ms)
		due.poll = mono_add(clock_now(), f.w->poll_ms * NSEC_PER_MSEC);
	if (f.w->counters_ms)
		due.counters = clock_now(); /* the first are what the next are compared with */
	for (;;)
		facts_turn(&f, &due);
	return NULL;
}
