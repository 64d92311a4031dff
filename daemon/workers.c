/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Supervision: which workers there should be, when one is started, when it has failed,
 * when it is started again. A worker that is silent, broken or stuck costs its device's
 * connections and nothing else.
 */
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sweeps.h"

#define STUCK_AFTER_NS (3 * NSEC_PER_SEC)

/* A worker is silent when this many pings, each sent in a turn of its own, are open: a
 * stall of main alone cannot make one look silent. */
#define SILENT_PINGS 4
#define PING_GAP_NS (100 * NSEC_PER_MSEC)

/* The first answer after the whole process stood still is of a hot thread that has not
 * had its turn yet. */
#define HOT_LATE_PONGS 2

#define WORKER_NAME_MAX (DEVICE_NAME_MAX + 16)

/* As fabctl shows it: "rdma:mlx5_0". */
static const char *worker_name(const struct worker *w, char buf[WORKER_NAME_MAX])
{
	(void)snprintf(buf, WORKER_NAME_MAX, "%s:%s", enum_name(&worker_kind_names, w->kind),
		       w->device[0] ? w->device : "all");
	return buf;
}

static void set_state(struct worker *w, enum worker_state s, const char *why)
{
	struct manager *m = w->m;
	char name[WORKER_NAME_MAX];

	(void)str_copy(w->why, sizeof(w->why), why);
	if (w->state == s)
		return;
	monitor_post(m->monitor, loop_now(m->loop), "worker", worker_name(w, name), "state",
		     enum_name(&worker_state_names, w->state), enum_name(&worker_state_names, s),
		     why);
	history_add(m->history, loop_now(m->loop), "worker", name,
		    enum_name(&worker_state_names, w->state), enum_name(&worker_state_names, s),
		    NULL, why);
	w->state = s;
	w->since = loop_now(m->loop);
}

struct worker *worker_find(struct manager *m, enum worker_kind kind, const char *device)
{
	for (struct worker *w = m->workers; w; w = w->next)
		if (w->kind == kind && !strcmp(w->device, device))
			return w;
	return NULL;
}

/* ---- start ---- */

static const char *worker_path(const struct worker *w)
{
	const struct manager *m = w->m;
	bool rdma = w->kind == WORKER_RDMA;
	const char *option = rdma ? m->opt.rdma_worker : m->opt.mad_worker;
	const char *config = rdma ? m->config->rdma_worker : m->config->mad_worker;

	if (option)
		return option;
	return config[0] ? config : m->worker_paths[w->kind];
}

static bool mad_by_socket(const struct worker *w)
{
	const struct manager *m = w->m;

	if (w->kind != WORKER_MAD || m->opt.mad_worker || m->config->mad_worker[0])
		return false;
	if (m->config->mad_mode == MAD_AUTO) /* units run the MAD workers under systemd */
		return getenv("INVOCATION_ID") && !access(m->config->mad_socket_dir, F_OK);
	return m->config->mad_mode == MAD_SOCKET;
}

static void send_init(struct worker *w)
{
	struct wm_init init = {0};

	wm_header(&init, WM_INIT, sizeof(init), w->generation);
	(void)str_copy(init.device, sizeof(init.device), w->device);
	init.device_index = w->device_index;
	init.poll_ms = (uint32_t)(w->m->config->poll / NSEC_PER_MSEC);
	init.counters_ms = (uint32_t)(w->m->config->counters / NSEC_PER_MSEC);
	init.reports = w->kind == WORKER_MAD && w->m->config->sweep_notices;
	init.max_endpoints = w->m->config->max_rc_per_device;
	(void)worker_send(w, &init, sizeof(init));
}

static void back_off(struct worker *w, const char *why)
{
	const struct config *c = w->m->config;
	struct mono now = loop_now(w->m->loop);

	if (mono_is_set(w->started_at) && mono_sub(now, w->started_at) > c->worker_healthy)
		w->backoff = 0;
	w->backoff = w->backoff ? MIN(w->backoff * 2, c->worker_backoff_max)
				: c->worker_backoff_min;
	w->start_at = mono_add(now, w->backoff);
	set_state(w, WORKER_BACKOFF, why);
}

/* A worker counts from its start; the whole never goes back. */
static void keep_drops(struct worker *w)
{
	for (int i = 0; i < DROP__MAX; i++)
		w->m->fabric_drops[i] += w->drops[i];
	memset(w->drops, 0, sizeof(w->drops));
}

static void start(struct worker *w)
{
	struct manager *m = w->m;
	char path[CONFIG_PATH_MAX + DEVICE_NAME_MAX + 32], why[160], name[WORKER_NAME_MAX];
	int r;

	w->external = mad_by_socket(w);
	w->generation = ++m->next_generation;
	w->saw_hello = w->killed = false;
	w->pings_open = w->hot_late = 0;
	w->pinged_at = MONO_NEVER;
	w->kill_at = w->killed_at = w->start_at = MONO_NEVER;
	w->started_at = w->last_message = loop_now(m->loop);
	memset(&w->pong, 0, sizeof(w->pong));
	keep_drops(w);
	if (w->external) {
		(void)snprintf(path, sizeof(path), "%s/%s.sock", m->config->mad_socket_dir,
			       w->device);
		r = worker_connect(w, path);
	} else {
		r = worker_spawn(w, worker_path(w));
	}
	if (r < 0) {
		(void)snprintf(why, sizeof(why), "cannot %s %s: %s",
			       w->external ? "connect to" : "start",
			       w->external ? path : worker_path(w),
			       strerror(-r));
		if (strcmp(w->why, why)) /* say it once, not at each try */
			log_warn("worker %s: %s", worker_name(w, name), why);
		back_off(w, why);
		return;
	}
	w->starts++;
	set_state(w, WORKER_STARTING, "");
	log_info("worker %s: started, pid %d, generation %u", worker_name(w, name), (int)w->pid,
		 w->generation);
	send_init(w);
}

struct worker *worker_want(struct manager *m, enum worker_kind kind, const char *device,
			   uint32_t index)
{
	struct worker *w = worker_find(m, kind, device);

	if (w && w->device_index == index && w->wanted)
		return w;
	if (w && (w->wanted || w->fd >= 0 || w->pid)) {
		/* The device came back with another index while its old worker dies. */
		if (w->wanted)
			worker_unwant(w);
		w->device_index = index;
		w->wanted = true;
		w->backoff = 0; /* the end of the old one is no failure */
		return w;
	}
	if (!w) {
		w = xcalloc(1, sizeof(*w));
		w->m = m;
		w->kind = kind;
		w->fd = -1;
		w->queue_end = &w->queue;
		w->next = m->workers;
		m->workers = w;
	}
	(void)str_copy(w->device, sizeof(w->device), device);
	w->device_index = index;
	w->wanted = true;
	w->state = WORKER_STOPPED;
	w->backoff = 0;
	start(w);
	return w;
}

/* ---- end ---- */

static void kill_now(struct worker *w)
{
	if (w->killed || !w->pid)
		return;
	w->killed = true;
	w->killed_at = loop_now(w->m->loop);
	(void)kill(w->pid, SIGKILL);
}

static void forget_listening(struct worker *w)
{
	free(w->listening);
	w->listening = NULL;
	w->n_listening = 0;
}

/* What was on this worker is gone, whatever the process does now. */
static void cut(struct worker *w)
{
	if (w->fd < 0)
		return;
	worker_close(w);
	forget_listening(w);
	w->generation = 0;
	if (!mono_is_set(w->lost_at))
		w->lost_at = loop_now(w->m->loop);
	if (w->kind == WORKER_RDMA)
		conns_worker_lost(w->m, w->device);
	sweeps_worker_lost(w->m->sweeps, w);
	mads_worker_lost(w->m->mads, w);
	ports_worker_lost(w);
}

static void ended(struct worker *w, const char *why)
{
	if (!w->wanted || w->m->stopping)
		set_state(w, WORKER_STOPPED, why);
	else
		back_off(w, why);
}

void worker_fail(struct worker *w, const char *fmt, ...)
{
	char why[160];
	char name[WORKER_NAME_MAX];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(why, sizeof(why), fmt, ap);
	va_end(ap);
	log_warn("worker %s (pid %d): %s; it is replaced", worker_name(w, name), (int)w->pid,
		 why);
	kill_now(w);
	cut(w);
	(void)str_copy(w->why, sizeof(w->why), why);
	if (!w->pid)
		ended(w, why);
}

static void part(struct worker *w, const char *why)
{
	cut(w);
	if (w->external || !w->pid)
		ended(w, why);
	else /* it may hang after closing: give it a moment, then make sure */
		w->kill_at = mono_add(loop_now(w->m->loop), w->m->config->worker_remove_grace);
}

void worker_lost(struct worker *w)
{
	part(w, w->external ? "closed its socket" : "ended");
}

void worker_unwant(struct worker *w)
{
	if (!w->wanted)
		return;
	w->wanted = false;
	w->kill_at = mono_add(loop_now(w->m->loop), w->m->config->worker_remove_grace);
	if (w->external) {
		cut(w);
		set_state(w, WORKER_STOPPED, "device gone");
		return;
	}
	/* End of file is the order to go; its connections are told at once. */
	cut(w);
	if (!w->pid)
		set_state(w, WORKER_STOPPED, "device gone");
}

void workers_reap(struct manager *m)
{
	for (struct worker *w = m->workers; w; w = w->next) {
		char why[160], name[WORKER_NAME_MAX];
		int status;

		if (!w->pid || waitpid(w->pid, &status, WNOHANG) != w->pid)
			continue;
		if (WIFSIGNALED(status))
			(void)snprintf(why, sizeof(why), "%s%sended by signal %d",
				       w->killed ? w->why : "", w->killed && w->why[0] ? "; " : "",
				       WTERMSIG(status));
		else if (w->why[0])
			(void)snprintf(why, sizeof(why), "%.120s", w->why);
		else
			(void)snprintf(why, sizeof(why), "exited with status %d",
				       WEXITSTATUS(status));
		log_info("worker %s: pid %d %s", worker_name(w, name), (int)w->pid, why);
		w->pid = 0;
		cut(w);
		ended(w, why);
	}
}

/* ---- life signs ---- */

static void ping(struct worker *w, struct mono now)
{
	struct wm_ping p = {.seq = w->ping_seq + 1};

	/* Events may bring many turns at once; the worker needs time for an answer. */
	if (mono_is_set(w->pinged_at) && mono_sub(now, w->pinged_at) < PING_GAP_NS)
		return;
	w->pinged_at = now;
	w->ping_seq++;
	wm_header(&p, WM_PING, sizeof(p), w->generation);
	w->pings_open++;
	(void)worker_send(w, &p, sizeof(p));
}

static void check_life(struct worker *w, struct mono now)
{
	const struct config *c = w->m->config;
	int64_t silent = mono_sub(now, w->last_message);

	if (w->pings_open >= SILENT_PINGS && silent > c->worker_silence) {
		worker_fail(w, "silent for %.1f s", (double)silent / 1e9);
		return;
	}
	if (w->hot_late >= HOT_LATE_PONGS) {
		worker_fail(w, "its hot thread has not turned for %u ms", w->pong.hot_age_ms);
		return;
	}
	if (!w->pong.cm_destroying &&
	    (int64_t)w->pong.cm_busy_ms * NSEC_PER_MSEC > c->worker_cm_stall) {
		worker_fail(w, "%s takes %u ms", w->pong.cm_call, w->pong.cm_busy_ms);
		return;
	}
	if (w->saw_hello) {
		bool blocked = w->pong.cm_destroying &&
			       (int64_t)w->pong.cm_busy_ms * NSEC_PER_MSEC > c->worker_silence;

		set_state(w, blocked ? WORKER_CM_BLOCKED : WORKER_RUNNING,
			  blocked ? w->pong.cm_call : "");
	}
	ping(w, now);
}

static void check_dying(struct worker *w, struct mono now)
{
	char name[WORKER_NAME_MAX];

	if (mono_due(w->kill_at, now)) {
		w->kill_at = MONO_NEVER;
		kill_now(w);
	}
	if (w->killed && w->state != WORKER_STUCK &&
	    mono_sub(now, w->killed_at) > STUCK_AFTER_NS) {
		log_err("worker %s: pid %d was killed and does not die: the device is stuck",
			worker_name(w, name), (int)w->pid);
		set_state(w, WORKER_STUCK, "killed, but in an uninterruptible call");
	}
}

static void forget(struct manager *m, struct worker *w)
{
	struct worker **p = &m->workers;

	for (struct device *d = m->devices; d; d = d->next) {
		if (d->rdma == w)
			d->rdma = NULL;
		if (d->mad == w)
			d->mad = NULL;
	}
	while (*p != w)
		p = &(*p)->next;
	*p = w->next;
	keep_drops(w);
	worker_close(w);
	forget_listening(w);
	free(w);
}

void workers_tick(struct manager *m, struct mono now)
{
	struct worker *next;

	for (struct worker *w = m->workers; w; w = next) {
		next = w->next;
		if (w->pid)
			check_dying(w, now);
		if (w->fd >= 0)
			check_life(w, now);
		else if (!w->pid && !w->wanted)
			forget(m, w);
		else if (!w->pid && !m->stopping &&
			 (w->state == WORKER_STOPPED || mono_due(w->start_at, now)))
			start(w);
	}
}

/* ---- messages ---- */

static void on_pong(struct worker *w, const struct wm_pong *p)
{
	bool late = (int64_t)p->hot_age_ms * NSEC_PER_MSEC > w->m->config->worker_silence;

	w->pong = *p;
	w->pings_open = 0;
	w->hot_late = late ? w->hot_late + 1 : 0;
}

static void on_goodbye(struct worker *w, const struct wm_goodbye *g)
{
	char name[WORKER_NAME_MAX];

	(void)str_copy(w->why, sizeof(w->why), g->text);
	log_info("worker %s: goodbye: %s", worker_name(w, name), g->text);
}

static void on_port_gone(struct worker *w, const struct wm_port_gone *g)
{
	struct device *d = device_find(w->m, g->device);

	if (!d || w->kind != WORKER_MAD)
		return;
	if (!g->port && d->index == DEVICE_INDEX_NONE) /* nobody else knows of it */
		device_gone(d, "its umad device is gone");
	else
		device_port_gone(d, g->port);
}

static void dispatch(struct worker *w, const uint8_t *buf, uint16_t type)
{
	switch (type) {
	case WM_HELLO:
		w->saw_hello = true;
		w->lost_at = MONO_NEVER;
		set_state(w, WORKER_RUNNING, "");
		break;
	case WM_PONG:
		on_pong(w, (const void *)buf);
		break;
	case WM_DEVICE:
		ports_on_device(w, (const void *)buf);
		break;
	case WM_PORT:
		ports_on_port(w, (const void *)buf);
		break;
	case WM_GIDS:
		ports_on_gids(w, (const void *)buf);
		break;
	case WM_PKEYS:
		ports_on_pkeys(w, (const void *)buf);
		break;
	case WM_PORT_GONE:
		on_port_gone(w, (const void *)buf);
		break;
	case WM_EP_EVENT:
		conns_ep_event(w->m, &((const struct wm_ep_event *)(const void *)buf)->event);
		break;
	case WM_EP_ROUNDS:
		conns_ep_rounds(w->m, (const void *)buf);
		break;
	case WM_SMP_RESULTS:
		mads_on_smp_results(w->m->mads, w, (const void *)buf);
		break;
	case WM_MAD_MORE:
		mads_on_more(w->m->mads, w, (const void *)buf);
		break;
	case WM_MAD_ANSWER:
		mads_on_answer(w->m->mads, w, (const void *)buf);
		break;
	case WM_NOTICE:
		ports_on_notice(w, (const void *)buf);
		sweeps_on_notice(w->m->sweeps, (const void *)buf);
		break;
	case WM_COUNTERS:
		port_counters_on_message(w, (const void *)buf);
		break;
	case WM_DROPS:
		memcpy(w->drops, ((const struct wm_drops *)(const void *)buf)->count,
		       sizeof(w->drops));
		break;
	case WM_GOODBYE:
		on_goodbye(w, (const void *)buf);
		break;
	case WM_LISTENING: {
		static struct log_limit limit; /* each attempt of each peer asks for it */
		const struct wm_listening *l = (const void *)buf;

		if (l->error)
			log_limited(&limit, LOG_WARNING, "%s: %s", w->device, l->text);
		break;
	}
	default:
		break;
	}
}

void worker_received(struct worker *w, const uint8_t *buf, size_t len)
{
	/* Structs of messages hold 64-bit numbers: they want an aligned home. */
	static union {
		uint64_t align;
		uint8_t bytes[WM_MAX];
	} copy;
	const struct wm_header *h = (const void *)copy.bytes;
	char why[120];

	if (len > sizeof(copy.bytes)) {
		worker_fail(w, "a message of over %zu bytes", sizeof(copy.bytes));
		return;
	}
	memcpy(copy.bytes, buf, len);
	if (wm_check(copy.bytes, len, false, why, sizeof(why)) < 0) {
		worker_fail(w, "%s", why);
		return;
	}
	if (h->generation != w->generation)
		return;
	w->last_message = loop_now(w->m->loop);
	if (!w->saw_hello && h->type != WM_HELLO) {
		worker_fail(w, "%s before its hello", wm_type_name(h->type));
		return;
	}
	dispatch(w, copy.bytes, h->type);
}

/* After the config has changed which devices are wanted: only the MAD worker knows of
 * those that the kernel does not list, and it tells of changes only. */
void workers_tell_again(struct manager *m)
{
	for (struct worker *w = m->workers; w; w = w->next) {
		struct wm_poll poll;

		if (w->kind != WORKER_MAD || !w->saw_hello)
			continue;
		wm_header(&poll, WM_POLL, sizeof(poll), w->generation);
		(void)worker_send(w, &poll, sizeof(poll));
	}
}

void workers_begin_anew(struct manager *m, enum worker_kind kind, const char *why)
{
	for (struct worker *w = m->workers; w; w = w->next)
		if (w->kind == kind && w->fd >= 0)
			part(w, why);
}

/* Only the workers of this device: one of an earlier device with the same name may be
 * dying. A MAD worker serves its device under a name: it begins anew. */
void workers_renamed(struct device *d)
{
	if (d->rdma)
		(void)str_copy(d->rdma->device, sizeof(d->rdma->device), d->name);
	if (!d->mad || !d->mad->device[0])
		return;
	(void)str_copy(d->mad->device, sizeof(d->mad->device), d->name);
	part(d->mad, "the device has another name");
}

/* ---- where they accept ---- */

static void send_listen(struct worker *w, enum wm_type type,
			const struct worker_listener *l)
{
	struct wm_listen msg = {.addr = l->addr, .transport = (uint8_t)l->transport};

	wm_header(&msg, type, sizeof(msg), w->generation);
	(void)worker_send(w, &msg, sizeof(msg));
}

/* Said each time, as it may have failed the time before. */
void worker_listen(struct worker *w, const struct addr *a, enum transport t)
{
	struct worker_listener l = {*a, t};
	bool known = false;

	for (int i = 0; i < w->n_listening; i++)
		known |= w->listening[i].transport == t &&
			 addr_equal(&w->listening[i].addr, a);
	if (!known) {
		w->listening = xrealloc(w->listening, (size_t)w->n_listening + 1, sizeof(l));
		w->listening[w->n_listening++] = l;
	}
	send_listen(w, WM_LISTEN, &l);
}

static bool still_there(const struct worker *w, const struct addr *a)
{
	const struct port_entry *pe = port_of_address(w->m, a);

	return pe && pe->device->rdma == w && a->port == w->m->config->control_port;
}

/* An address that has moved to another device cannot be bound there while it is here. */
void workers_unlisten(struct manager *m)
{
	for (struct worker *w = m->workers; w; w = w->next)
		for (int i = w->n_listening - 1; i >= 0; i--) {
			struct worker_listener gone = w->listening[i];

			if (still_there(w, &gone.addr))
				continue;
			w->listening[i] = w->listening[--w->n_listening];
			send_listen(w, WM_UNLISTEN, &gone);
			if (w->fd < 0)
				break; /* and with it all of them */
		}
}

/* ---- stop ---- */

void workers_stop(struct manager *m)
{
	for (struct worker *w = m->workers; w; w = w->next)
		worker_unwant(w);
}

bool workers_stopped(struct manager *m)
{
	for (struct worker *w = m->workers; w; w = w->next)
		if (w->pid && w->state != WORKER_STUCK)
			return false;
	return true;
}

void workers_free(struct manager *m)
{
	while (m->workers) {
		struct worker *w = m->workers;

		if (w->pid)
			(void)kill(w->pid, SIGKILL);
		m->workers = w->next;
		worker_close(w);
		forget_listening(w);
		free(w);
	}
}

static json_t *worker_render(const struct worker *w, const struct render_time *t)
{
	json_t *o = json_object();
	char name[WORKER_NAME_MAX];
	bool waits = w->state == WORKER_BACKOFF && mono_is_set(w->start_at);

	json_object_set_new(o, "name", json_string(worker_name(w, name)));
	json_object_set_new(o, "kind", json_string(enum_name(&worker_kind_names, w->kind)));
	json_object_set_new(o, "device", w->device[0] ? json_string(w->device) : json_null());
	json_object_set_new(o, "state", json_string(enum_name(&worker_state_names, w->state)));
	json_object_set_new(o, "why", json_string(w->why));
	json_object_set_new(o, "pid", w->pid ? json_integer(w->pid) : json_null());
	render_since(o, w->since, t);
	json_object_set_new(o, "starts", json_integer(w->starts));
	json_object_set_new(o, "generation", json_integer(w->generation));
	json_object_set_new(o, "silent_ms",
			    w->fd < 0 ? json_null()
				      : json_integer(mono_sub(t->now, w->last_message) /
						     NSEC_PER_MSEC));
	json_object_set_new(o, "hot_age_ms",
			    w->fd < 0 || w->kind != WORKER_RDMA
				    ? json_null()
				    : json_integer(w->pong.hot_age_ms));
	json_object_set_new(o, "endpoints", json_integer(w->pong.endpoints));
	json_object_set_new(o, "next_start_sec",
			    waits ? json_real((double)MAX(mono_sub(w->start_at, t->now), 0) / 1e9)
				  : json_null());
	return o;
}

json_t *workers_render(struct manager *m, const struct device *d,
			   const struct render_time *t)
{
	json_t *a = json_array();

	for (struct worker *w = m->workers; w; w = w->next)
		if (!d || w == d->rdma || w == d->mad || !strcmp(w->device, d->name))
			json_array_append_new(a, worker_render(w, t));
	return a;
}
