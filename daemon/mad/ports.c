/* SPDX-License-Identifier: BSD-2-Clause */
#include "ports.h"

#include <errno.h>
#include <stdlib.h>

#include "log.h"
#include "scan.h"
#include "smp_port.h"

/* How often to look for devices that came or went when main asks for no polling. */
#define RESCAN_NS (5 * NSEC_PER_SEC)
/* After a failed open, and after a port died under us. */
#define RETRY_NS (5 * NSEC_PER_SEC)

struct known_port {
	struct known_port *next;
	struct mad_ports *ports; /* borrowed from the owner */
	struct scan_id id;
	struct smp_port *umad; /* owned, NULL: not open */
	int open_error, said_error;
	struct mono retry_at; /* of the open */
	struct mono show_at;  /* one that died under us is left alone until then */
	bool seen, told;
	struct wm_port facts; /* as told */
	uint16_t *pkeys;      /* owned, as told */
	int n_pkeys;
	struct port_gid *gids; /* owned, as told */
	int n_gids;	       /* negative: -errno, likewise n_pkeys */
};

struct known_device {
	struct known_device *next;
	bool seen;
	struct wm_device facts;
};

struct mad_ports {
	const char *root; /* borrowed */
	int wake_fd;
	bool reports;
	struct answers *answers; /* owned */
	mad_send_fn *send;
	void *user;
	char only[DEVICE_NAME_MAX];
	uint32_t device_index;
	int64_t poll_ns;
	struct mono scan_at; /* never: no main */
	enum fact_source source;
	struct known_port *first;
	struct known_device *devices;
};

/* ---- telling main ---- */

static void tell_gone(struct mad_ports *s, const char *device, uint8_t port)
{
	struct wm_port_gone m = {.port = port};

	(void)str_copy(m.device, sizeof(m.device), device);
	s->send(s->user, WM_PORT_GONE, &m, sizeof(m));
}

static uint8_t why_of(int n)
{
	if (n >= 0)
		return WHY_NONE;
	return n == -EACCES || n == -EPERM ? WHY_NO_PERMISSION : WHY_UNREADABLE;
}

static void tell_pkeys(struct known_port *p)
{
	int total = MAX(p->n_pkeys, 0), first = 0;

	do {
		struct wm_pkeys m = {.port = p->id.port, .why = why_of(p->n_pkeys)};
		int n = MIN(total - first, WM_PKEYS_EACH);

		(void)str_copy(m.device, sizeof(m.device), p->id.device);
		m.first = (uint16_t)first;
		m.n = (uint16_t)n;
		if (n)
			memcpy(m.pkey, p->pkeys + first, (size_t)n * sizeof(m.pkey[0]));
		first += n;
		m.last = first == total;
		p->ports->send(p->ports->user, WM_PKEYS, &m, sizeof(m));
	} while (first < total);
}

static void tell_gids(struct known_port *p)
{
	int total = MAX(p->n_gids, 0), first = 0;

	do {
		struct wm_gids m = {.port = p->id.port, .why = why_of(p->n_gids)};
		int n = MIN(total - first, WM_GIDS_EACH);

		(void)str_copy(m.device, sizeof(m.device), p->id.device);
		m.first = (uint16_t)first;
		m.n = (uint16_t)n;
		if (n)
			memcpy(m.gid, p->gids + first, (size_t)n * sizeof(m.gid[0]));
		first += n;
		m.last = first == total;
		p->ports->send(p->ports->user, WM_GIDS, &m, sizeof(m));
	} while (first < total);
}

/* ---- looking ---- */

static void look_at_pkeys(struct known_port *p, bool all)
{
	uint16_t *now = xcalloc(PORT_PKEYS_MAX, sizeof(*now));
	int n = scan_pkeys(p->ports->root, p->id.device, p->id.port, now);
	bool same = n == p->n_pkeys &&
		    (n <= 0 || !memcmp(now, p->pkeys, (size_t)n * sizeof(*now)));

	free(p->pkeys);
	p->pkeys = now;
	p->n_pkeys = n;
	if (all || !same)
		tell_pkeys(p);
}

static void look_at_gids(struct known_port *p, bool all)
{
	struct port_gid *now = xcalloc(PORT_GIDS_MAX, sizeof(*now));
	int n = scan_gids(p->ports->root, p->id.device, p->id.port, p->facts.link_layer,
			  now);
	bool same = n == p->n_gids &&
		    (n <= 0 || !memcmp(now, p->gids, (size_t)n * sizeof(*now)));

	free(p->gids);
	p->gids = now;
	p->n_gids = n;
	if (all || !same)
		tell_gids(p);
}

static void look_at_port(struct known_port *p, bool all)
{
	struct mad_ports *s = p->ports;
	struct wm_port m;
	bool changed;

	scan_port(s->root, p->id.device, p->id.port, &m);
	m.device_index = s->device_index;
	all |= !p->told;
	changed = all || memcmp(&m, &p->facts, sizeof(m)) != 0;
	if (!changed)
		return; /* the tables below cost a firmware command an entry */
	p->facts = m;
	p->told = true;
	m.source = (uint8_t)s->source;
	s->send(s->user, WM_PORT, &m, sizeof(m));
	look_at_pkeys(p, all);
	look_at_gids(p, all);
}

static void look_at_device(struct mad_ports *s, const char *name, bool all)
{
	struct known_device *d = s->devices;
	struct wm_device m;

	while (d && !str_eq(d->facts.name, name))
		d = d->next;
	scan_device(s->root, name, &m);
	m.device_index = s->device_index;
	if (!d) {
		d = xcalloc(1, sizeof(*d));
		d->next = s->devices;
		s->devices = d;
	}
	d->seen = true;
	if (!all && !memcmp(&m, &d->facts, sizeof(m)))
		return;
	d->facts = m;
	s->send(s->user, WM_DEVICE, &m, sizeof(m));
}

static struct known_port *port_find(struct mad_ports *s, const char *device,
				    uint8_t num)
{
	for (struct known_port *p = s->first; p; p = p->next)
		if (p->id.port == num && str_eq(p->id.device, device))
			return p;
	return NULL;
}

static struct known_port *port_add(struct mad_ports *s, const struct scan_id *id)
{
	struct known_port *p = xcalloc(1, sizeof(*p));

	p->ports = s;
	p->id = *id;
	p->next = s->first;
	s->first = p;
	return p;
}

static void port_free(struct known_port *p)
{
	p->umad = smp_port_close(p->umad);
	free(p->pkeys);
	free(p->gids);
	free(p);
}

static void free_devices(struct mad_ports *s)
{
	struct known_device *d;

	while ((d = s->devices)) {
		s->devices = d->next;
		free(d);
	}
}

static void drop_unseen(struct mad_ports *s)
{
	for (struct known_port **at = &s->first; *at;) {
		struct known_port *p = *at;

		if (p->seen) {
			at = &p->next;
			continue;
		}
		*at = p->next;
		p->umad = smp_port_close(p->umad); /* answers what it still has */
		answers_flush(s->answers);
		if (p->told)
			tell_gone(s, p->id.device, p->id.port);
		port_free(p);
	}
	for (struct known_device **at = &s->devices; *at;) {
		struct known_device *d = *at;

		if (d->seen) {
			at = &d->next;
			continue;
		}
		*at = d->next;
		tell_gone(s, d->facts.name, 0);
		free(d);
	}
}

static void port_open(struct known_port *p, struct mono now);

static void look_at(struct mad_ports *s, const struct scan_id *id, bool all,
		    struct mono now)
{
	struct known_port *p = port_find(s, id->device, id->port);

	if (!p)
		p = port_add(s, id);
	p->seen = true;
	/* sysfs still shows it for a while. */
	if (mono_is_set(p->show_at) && !mono_due(p->show_at, now))
		return;
	p->show_at = MONO_NEVER;
	look_at_port(p, all);
	/* Reports come unasked. */
	if (s->reports && p->facts.has_smi)
		port_open(p, now);
}

void mad_ports_scan(struct mad_ports *s, bool all, struct mono now)
{
	struct scan_id ids[SCAN_PORTS_MAX];
	int n = scan_ports(s->root, ids);
	const char *last = "";

	for (struct known_port *p = s->first; p; p = p->next)
		p->seen = false;
	for (struct known_device *d = s->devices; d; d = d->next)
		d->seen = false;
	for (int i = 0; i < n; i++) {
		if (s->only[0] && !str_eq(s->only, ids[i].device))
			continue;
		if (!str_eq(last, ids[i].device))
			look_at_device(s, ids[i].device, all);
		last = ids[i].device;
		look_at(s, &ids[i], all, now);
	}
	drop_unseen(s);
	s->scan_at = mono_add(now, s->poll_ns ? MIN(s->poll_ns, RESCAN_NS) : RESCAN_NS);
	s->source = SOURCE_POLL;
}

static void close_all(struct mad_ports *s)
{
	/* All of them first, so that they end at the same time. */
	for (struct known_port *p = s->first; p; p = p->next)
		if (p->umad)
			smp_port_stop(p->umad);
	for (struct known_port *p = s->first; p; p = p->next)
		p->umad = smp_port_close(p->umad);
}

void mad_ports_start(struct mad_ports *s, const char *device,
		     const struct wm_init *init, struct mono now)
{
	(void)str_copy(s->only, sizeof(s->only), device);
	s->device_index = init->device_index;
	s->poll_ns = (int64_t)init->poll_ms * NSEC_PER_MSEC;
	/* An agent is registered for Reports when it is opened, or not at all. */
	if (s->reports != init->reports)
		close_all(s);
	s->reports = init->reports;
	s->source = SOURCE_START;
	mad_ports_scan(s, true, now);
}

void mad_ports_forget(struct mad_ports *s)
{
	for (struct known_port *p = s->first; p; p = p->next) {
		if (p->umad)
			smp_port_forget(p->umad);
		p->told = false;
	}
	answers_forget(s->answers);
	free_devices(s);
	s->scan_at = MONO_NEVER;
}

/* ---- requests ---- */

static void on_done(void *user, const struct smp_done *d)
{
	struct known_port *p = user;

	answers_put(p->ports->answers, d);
}

static void on_report(void *user, const struct smp_report *r)
{
	struct known_port *p = user;
	struct wm_notice m = {.port = p->id.port, .slid = r->slid};

	(void)str_copy(m.device, sizeof(m.device), p->id.device);
	memcpy(m.data, r->data, sizeof(m.data));
	p->ports->send(p->ports->user, WM_NOTICE, &m, sizeof(m));
}

static void port_open(struct known_port *p, struct mono now)
{
	const struct smp_calls calls = {
		.done = on_done, .report = on_report, .user = p};

	if (p->umad || (p->open_error && !mono_due(p->retry_at, now)))
		return;
	p->open_error = 0;
	p->umad = smp_port_open(p->id.device, p->id.port, p->ports->reports,
				p->ports->wake_fd, &calls, &p->open_error);
	if (p->umad) {
		p->said_error = 0;
		return;
	}
	p->retry_at = mono_add(now, RETRY_NS);
	if (p->said_error != p->open_error)
		log_errno(LOG_WARNING, -p->open_error, "%s/%u: cannot open umad port",
			  p->id.device, p->id.port);
	p->said_error = p->open_error;
}

static enum wm_mad_status status_of_open(int error)
{
	return error == EPERM || error == EACCES ? WM_MAD_NO_PERMISSION
						 : WM_MAD_NO_PORT;
}

/* The port, open; NULL: *ret_status and *ret_error say why not. */
static struct known_port *port_ready(struct mad_ports *s, const char *device,
				     uint8_t num, struct mono now,
				     enum wm_mad_status *ret_status, int *ret_error)
{
	struct known_port *p = port_find(s, device, num);

	*ret_status = WM_MAD_NO_PORT;
	*ret_error = ENODEV;
	if (!p || !p->told)
		return NULL;
	/* An Ethernet port, or one whose SMPs go through another device. */
	*ret_error = EPROTONOSUPPORT;
	if (!p->facts.has_smi)
		return NULL;
	port_open(p, now);
	*ret_status = status_of_open(p->open_error);
	*ret_error = p->open_error;
	return p->umad ? p : NULL;
}

void mad_ports_gets(struct mad_ports *s, const struct wm_smp_gets *m, struct mono now)
{
	enum wm_mad_status status;
	struct known_port *p;
	int error;

	p = port_ready(s, m->device, m->port, now, &status, &error);
	for (int i = 0; i < m->n; i++) {
		const struct wm_smp_get *g = &m->get[i];
		struct smp_request r = {
			.id = g->id,
			.origin = FROM_SMP_GETS,
			.hops = g->hops,
			.attr = g->attr,
			.retries = g->retries,
			.mod = g->mod,
			.timeout_ms = g->timeout_ms,
		};

		if (!p) {
			answers_refuse(s->answers, r.origin, g->id, status, error);
			continue;
		}
		memcpy(r.path, g->path, sizeof(r.path));
		smp_port_get(p->umad, &r, now);
	}
}

void mad_ports_send(struct mad_ports *s, const struct wm_mad_send *m, struct mono now)
{
	struct wm_mad_send to = *m;
	enum wm_mad_status status;
	struct known_port *p;
	int error;

	p = port_ready(s, m->device, m->port, now, &status, &error);
	if (!p) {
		answers_refuse(s->answers, FROM_MAD_SEND, m->id, status, error);
		return;
	}
	if (m->kind == WM_KIND_SA && !m->dlid)
		to.dlid = (uint16_t)p->facts.sm_lid;
	smp_port_send(p->umad, &to, now);
}

void mad_ports_work(struct mad_ports *s, struct mono now)
{
	for (struct known_port *p = s->first; p; p = p->next) {
		if (!p->umad || smp_port_work(p->umad, now))
			continue;
		p->umad = smp_port_close(p->umad);
		p->told = false;
		p->show_at = mono_add(now, RETRY_NS);
		/* Its last answers before the news. */
		answers_flush(s->answers);
		tell_gone(s, p->id.device, p->id.port);
	}
	if (mono_due(s->scan_at, now))
		mad_ports_scan(s, false, now);
	answers_flush(s->answers);
}

struct mono mad_ports_deadline(const struct mad_ports *s)
{
	struct mono at = s->scan_at;

	for (struct known_port *p = s->first; p; p = p->next)
		if (p->umad)
			at = mono_first(at, smp_port_deadline(p->umad));
	return at;
}

struct mad_ports *mad_ports_new(const char *root, int wake_fd, mad_send_fn *send,
				void *user)
{
	struct mad_ports *s = xcalloc(1, sizeof(*s));

	s->root = root;
	s->wake_fd = wake_fd;
	s->send = send;
	s->user = user;
	s->answers = answers_new(send, user);
	return s;
}

struct mad_ports *mad_ports_free(struct mad_ports *s)
{
	struct known_port *p;

	if (!s)
		return NULL;
	close_all(s);
	while ((p = s->first)) {
		s->first = p->next;
		port_free(p);
	}
	free_devices(s);
	s->answers = answers_free(s->answers);
	free(s);
	return NULL;
}
