/* SPDX-License-Identifier: BSD-2-Clause */
/* Life of the process: start, the periodic turn, reload, stop. */
#include "manager.h"

#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include "shutdown.h"
#include "sweeps.h"

#define TICK_NS (250 * NSEC_PER_MSEC)
#define EARLY_TICK_NS (50 * NSEC_PER_MSEC)
#define REBIND_GAP_NS (100 * NSEC_PER_MSEC)
#define FIRST_FACTS_NS (2 * NSEC_PER_SEC)
#define ASK_SYSTEMD_NS (2 * NSEC_PER_SEC) /* a host that goes down is busy */
#define STOP_PEERS_NS (800 * NSEC_PER_MSEC)
#define STOP_WORKERS_NS (1500 * NSEC_PER_MSEC)
#define PROBLEMS_MAX 100 /* told on the socket */

struct render_time manager_time(const struct manager *m)
{
	(void)m;
	return (struct render_time){clock_now(), clock_wall_ns()};
}

void manager_unavailable(struct manager *m, const char *what, const char *why)
{
	const char *before = json_string_value(json_object_get(m->unavailable, what));

	if (str_eq(before, why))
		return;
	if (why) {
		log_notice("%s: not available: %s", what, why);
		json_object_set_new(m->unavailable, what, json_string(why));
	} else {
		log_info("%s: available again", what);
		(void)json_object_del(m->unavailable, what);
	}
}

/* ---- config ---- */

static void keep_problem(struct manager *m, const struct config_problem *p)
{
	_cleanup_(freep) char *place = p->line ? xasprintf("%s:%d", p->file, p->line)
					       : xstrdup(p->file);
	_cleanup_(freep) char *line = xasprintf("%s: %s%s", place, p->error ? "" : "warning: ",
						p->text);

	log_msg(p->error ? LOG_ERR : LOG_WARNING, "%s: %s", place, p->text);
	if (json_array_size(m->config_problems) < PROBLEMS_MAX)
		json_array_append_new(m->config_problems, json_string(line));
}

/* What must be mended comes first: fabctl shows the first. */
static void keep_problems(struct manager *m, const struct config_problems *p)
{
	json_decref(m->config_problems);
	m->config_problems = json_array();
	m->config_errors = p->errors;
	m->config_warnings = p->n - p->errors;
	for (int errors = 1; errors >= 0; errors--)
		for (int i = 0; i < p->n; i++)
			if (p->p[i].error == errors)
				keep_problem(m, &p->p[i]);
}

/* The text that ran last without errors: of this life, else of the state directory. */
static char *last_good_text(struct manager *m, struct config *fresh, size_t *ret_len)
{
	struct config *old = m->config;
	char *text;

	if (m->good_text) {
		*ret_len = strlen(m->good_text);
		return xstrdup(m->good_text);
	}
	m->config = fresh; /* its state directory */
	text = state_load(m, STATE_CONFIG, ret_len);
	m->config = old;
	return text;
}

static void keep_good(struct manager *m, struct config *fresh, const char *text)
{
	struct config *old = m->config;

	if (!text)
		return;
	free(m->good_text);
	m->good_text = xstrdup(text);
	m->config = fresh; /* the state directory is the new one's */
	state_save(m, STATE_CONFIG, text);
	m->config = old;
}

/* A config with errors does not run when a good copy is there. */
static struct config *choose_config(struct manager *m, struct config *fresh, int errors,
				    const char *text)
{
	struct config_problems p = {0};
	struct config *last_good;
	size_t len;
	char *copy;

	if (!errors) {
		m->config_source = "file";
		keep_good(m, fresh, text);
		return fresh;
	}
	copy = last_good_text(m, fresh, &len);
	if (!copy) {
		m->config_source = "partial";
		log_err("the config has mistakes (%d) and there is no last good copy: what is "
			"valid of it runs",
			errors);
		return fresh;
	}
	last_good = config_parse(copy, len, LAST_GOOD, true, &p);
	free(copy);
	config_problems_done(&p);
	m->config_source = "last_good";
	log_err("the config has mistakes (%d): the last good copy runs", errors);
	config_free(fresh);
	return last_good;
}

static struct config *load_config(struct manager *m)
{
	struct config_problems p = {0};
	char *text = NULL;
	struct config *c = config_load(m->opt.config_path, &p, &text);

	keep_problems(m, &p);
	c = choose_config(m, c, p.errors, text);
	config_problems_done(&p);
	free(text);
	m->config_since = m->loop ? loop_now(m->loop) : clock_now();
	return c;
}

static const char *config_source_text(const struct manager *m)
{
	return str_eq(m->config_source, "last_good") ? "the last good copy"
	       : str_eq(m->config_source, "partial") ? "what is valid of the file"
						     : "file";
}

static void notify_ready(const struct manager *m)
{
	(void)sd_notifyf(0, "READY=1\nSTATUS=%d peer%s, config from %s", m->config->n_peers,
			 m->config->n_peers == 1 ? "" : "s", config_source_text(m));
}

static void history_config(struct manager *m)
{
	const char *first = json_string_value(json_array_get(m->config_problems, 0));

	history_add(m->history, loop_now(m->loop), "config", "config", NULL, m->config_source,
		    NULL, first);
}

void manager_reload(struct manager *m)
{
	struct config *old = m->config;

	log_notice("reloading the config");
	(void)sd_notify(0, "RELOADING=1");
	m->config = load_config(m);
	log_level(m->opt.debug ? LOG_DEBUG : m->config->log_level);
	budget_init_strict(&m->budget, m->config->start_budget, loop_now(m->loop));
	for (struct device *d = m->devices; d; d = d->next)
		for (struct port_entry *pe = d->ports; pe; pe = pe->next) {
			port_apply_config(m, pe);
			port_settle(m, pe, SOURCE_OPERATOR);
		}
	if (old->control_port != m->config->control_port ||
	    old->n_control_addrs != m->config->n_control_addrs ||
	    memcmp(old->control_addrs, m->config->control_addrs, sizeof(old->control_addrs))) {
		control_free(m->control);
		m->control = control_new(m);
	}
	if (strcmp(old->devices, m->config->devices) ||
	    strcmp(old->ignore_devices, m->config->ignore_devices))
		workers_tell_again(m);
	if (old->sweep_notices != m->config->sweep_notices)
		workers_begin_anew(m, WORKER_MAD, "SweepNotices= has changed");
	sweeps_reload(m->sweeps);
	if (old->counters != m->config->counters)
		workers_begin_anew(m, WORKER_RDMA, "CountersSec= has changed");
	lldp_reload(m->lldp);
	peers_apply(m);
	conns_rebind(m);
	monitor_post(m->monitor, loop_now(m->loop), "config", m->config_source, "loaded", NULL,
		     NULL, NULL);
	history_config(m);
	config_free(old);
	(void)malloc_trim(0); /* two configs of many peers are large */
	m->rescan_wanted = true;
	notify_ready(m);
}

/* ---- the periodic turn ---- */

static bool first_facts_in(const struct manager *m)
{
	for (const struct worker *w = m->workers; w; w = w->next)
		if (w->kind == WORKER_MAD && !w->device[0] && w->state == WORKER_STARTING)
			return false;
	for (const struct device *d = m->devices; d; d = d->next) {
		bool starting = d->rdma && d->rdma->state <= WORKER_RUNNING;

		if (starting && (!d->has_verbs_facts || !d->ports))
			return false;
		for (const struct port_entry *pe = d->ports; pe; pe = pe->next)
			if (d->has_verbs_facts && pe->p.gids_why == WHY_NOT_READ)
				return false;
	}
	return true;
}

static void check_peers_ready(struct manager *m, struct mono now)
{
	int64_t age = mono_sub(now, m->started);

	if (m->peers_ready || (age < FIRST_FACTS_NS && (age < EARLY_TICK_NS || !first_facts_in(m))))
		return;
	m->peers_ready = true;
	peers_sync(m);
}

static void check_bindings(struct manager *m, struct mono now)
{
	if (!m->peers_ready || m->stopping)
		return;
	if (m->rebind_wanted) {
		m->rebound_at = now;
		conns_rebind(m);
	}
	conns_look_again(m, now);
}

static void stalled(struct manager *m, int64_t ns, struct mono until, bool slept)
{
	m->last_stall = until;
	m->stall_total = ns;
	m->stall_slept = slept;
	udp_stalled(m->udp, ns, until);
}

/* This process may have had no turn, or the whole host: of that no timer is late. */
static void check_stall(struct manager *m)
{
	struct mono before = clock_now(), after;
	int64_t boot = clock_boot_ns(), slept;
	struct loop_stats ls;

	after = clock_now();
	slept = suspend_look(&m->suspend, before, boot, after);
	if (slept) {
		log_notice("this host was suspended for %.1f s", (double)slept / 1e9);
		stalled(m, slept, after, true);
	}
	loop_stats(m->loop, &ls);
	if (!mono_is_set(ls.stalled_at) || ls.stalled_at.ns == m->loop_stalled_at.ns)
		return;
	m->loop_stalled_at = ls.stalled_at;
	stalled(m, ls.stalled_ns, ls.stalled_at, false);
}

static void on_tick(void *user, struct mono now)
{
	struct manager *m = user;

	loop_timer_at(m->tick, mono_add(now, m->peers_ready ? TICK_NS : EARLY_TICK_NS));
	check_stall(m);
	workers_reap(m);
	workers_tick(m, now);
	if (m->rescan_wanted || mono_due(m->rescan_at, now))
		devices_scan(m);
	check_peers_ready(m, now);
	check_bindings(m, now);
	sweeps_tick(m->sweeps, now);
	peers_tick(m, now);
	state_expire_overrides(m);
	baselines_tick(m);
	state_tick(m, now);
	lldp_tick(m->lldp, now);
	verdicts_tick(m, now);
	cost_measure(m, now);
}

static void on_port_timer(void *user, struct mono now)
{
	struct manager *m = user;
	struct mono next;

	ports_tick(m, now);
	counters_tick(m, now);
	next = ports_deadline(m);
	/* New ports and workers are looked for even when no port is polled. */
	loop_timer_at(m->port_timer, mono_first(next, mono_add(now, TICK_NS)));
}

static void on_judge(void *user)
{
	struct manager *m = user;

	/* A peer that stops says so before it closes its endpoints: its word lies in the
	 * socket when a worker tells that they are closed. Once in a turn: what is read asks
	 * for verdicts itself, and a flood would never let the turn end. */
	if (m->control_read_turn != loop_turn(m->loop)) {
		m->control_read_turn = loop_turn(m->loop);
		control_read(m);
	}
	verdicts_dirty(m, loop_now(m->loop));
}

/* At once when an interface or address changed, but a storm of changes must not keep
 * main busy; routes have time until the next turn. */
static void on_netlink(void *user, bool moved)
{
	struct manager *m = user;
	struct mono now = loop_now(m->loop), at = now;

	m->rebind_wanted = true;
	if (moved && m->lldp)
		lldp_soon(m->lldp);
	if (mono_is_set(m->rebound_at) && mono_sub(now, m->rebound_at) < REBIND_GAP_NS)
		at = mono_add(m->rebound_at, REBIND_GAP_NS);
	if (moved && !m->stopping)
		loop_timer_at(m->tick, at);
}

static void on_watchdog(void *user, struct mono now)
{
	struct manager *m = user;
	uint64_t usec = 0;

	if (sd_watchdog_enabled(0, &usec) <= 0)
		return;
	(void)sd_notify(0, "WATCHDOG=1");
	loop_timer_at(m->feed_dog, mono_add(now, (int64_t)usec * NSEC_PER_USEC / 3));
}

static void on_udp_event(void *user, const struct ep_event *ev)
{
	conns_ep_event(user, ev);
}

static void on_udp_dropped(void *user, enum drop reason, const struct addr *from)
{
	struct manager *m = user;

	(void)from;
	m->fabric_drops[reason]++;
}

/* ---- stop ---- */

/* A host that goes down stays away longer than a service that restarts. */
static enum cause stop_cause(void)
{
	if (access("/run/systemd/system", F_OK))
		return CAUSE_RESTART;
	return host_goes_down(ASK_SYSTEMD_NS) ? CAUSE_SHUTDOWN : CAUSE_RESTART;
}

static void check_stopped(void *user, struct mono now)
{
	struct manager *m = user;
	int64_t left = mono_sub(m->stop_deadline, now);

	workers_reap(m);
	if (m->n_conns && left > STOP_WORKERS_NS) {
		loop_timer_at(m->tick, mono_add(now, 10 * NSEC_PER_MSEC));
		return;
	}
	workers_stop(m);
	workers_tick(m, now);
	if (workers_stopped(m) || left <= 0) {
		loop_stop(m->loop);
		return;
	}
	loop_timer_at(m->tick, mono_add(now, 10 * NSEC_PER_MSEC));
}

static void begin_stop(struct manager *m)
{
	enum cause cause;

	if (m->stopping)
		return;
	m->stopping = true;
	cause = stop_cause();
	log_notice("stopping (%s)", enum_name(&cause_names, cause));
	(void)sd_notify(0, "STOPPING=1");
	conns_stop(m, cause, cause == CAUSE_SHUTDOWN ? 900 : 60);
	m->stop_deadline = mono_add(clock_now(), STOP_PEERS_NS + STOP_WORKERS_NS);
	m->tick = loop_source_free(m->tick);
	m->tick = loop_timer(m->loop, check_stopped, m);
	loop_timer_at(m->tick, loop_now(m->loop));
}

static void on_signal(void *user, int signo)
{
	struct manager *m = user;

	switch (signo) {
	case SIGHUP:
		if (!m->stopping)
			manager_reload(m);
		break;
	case SIGCHLD:
		workers_reap(m);
		break;
	default:
		begin_stop(m);
		break;
	}
}

/* ---- start ---- */

static int listen_on(struct manager *m)
{
	char **names = NULL;
	int n = sd_listen_fds_with_names(1, &names), r = 0;
	bool have[2] = {false, false};

	for (int i = 0; i < n; i++) {
		bool admin = strstr(names[i], "admin") != NULL;
		struct varlink_listen l = {.fd = SD_LISTEN_FDS_START + i, .admin = admin};

		r = varlink_server_listen(m->server, &l);
		have[admin] |= r == 0;
		free(names[i]);
	}
	free(names);
	if (!have[0] && m->config->listen[0]) {
		struct varlink_listen l = {.path = m->config->listen, .fd = -1, .mode = 0666};

		folder_for_file(l.path, 0755);
		r = varlink_server_listen(m->server, &l);
	}
	if (!r && !have[1] && m->config->admin_listen[0]) {
		struct varlink_listen l = {.path = m->config->admin_listen, .fd = -1,
					   .admin = true, .mode = 0660, .group = "fabd-admin"};

		folder_for_file(l.path, 0755);
		r = varlink_server_listen(m->server, &l);
	}
	return r;
}

static void watch_kernel(struct manager *m)
{
	int r = 0;

	m->netlink = netlink_new(m->loop, on_netlink, m, &r);
	if (!m->netlink)
		manager_unavailable(m, "netlink", strerror(-r));
	m->uevent = uevent_new(m->loop, devices_uevent, m, &r);
	if (!m->uevent)
		manager_unavailable(m, "uevents", strerror(-r));
}

static void timers_new(struct manager *m)
{
	m->tick = loop_timer(m->loop, on_tick, m);
	m->conn_timer = loop_timer(m->loop, conns_on_timer, m);
	m->start_timer = loop_timer(m->loop, conns_on_start_timer, m);
	m->port_timer = loop_timer(m->loop, on_port_timer, m);
	m->feed_dog = loop_timer(m->loop, on_watchdog, m);
	m->more = loop_timer(m->loop, conns_on_more, m);
	m->post = loop_defer(m->loop, conns_on_post, m);
	m->judge = loop_defer(m->loop, on_judge, m);
	m->sig_hup = loop_signal(m->loop, SIGHUP, on_signal, m);
	m->sig_term = loop_signal(m->loop, SIGTERM, on_signal, m);
	m->sig_int = loop_signal(m->loop, SIGINT, on_signal, m);
	m->sig_chld = loop_signal(m->loop, SIGCHLD, on_signal, m);
}

/* Run from a build tree, the workers lie beside main; installed, in libexec. */
static void find_workers(struct manager *m)
{
	static const char *const names[] = {"rdma", "mad"};
	char exe[CONFIG_PATH_MAX], *slash;
	ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);

	exe[MAX(n, 0)] = '\0';
	slash = strrchr(exe, '/');
	if (slash)
		*slash = '\0';
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		char *path = m->worker_paths[i];

		(void)snprintf(path, sizeof(m->worker_paths[i]), "%s/%s/fabd-%s", exe, names[i],
			       names[i]);
		if (access(path, X_OK))
			(void)snprintf(path, sizeof(m->worker_paths[i]), "%s/fabd-%s",
				       FABD_LIBEXECDIR, names[i]);
	}
}

struct manager *manager_new(const struct manager_options *opt)
{
	struct manager *m = xcalloc(1, sizeof(*m));

	m->opt = *opt;
	m->unavailable = json_object();
	m->config_problems = json_array();
	m->loop = loop_new();
	m->started = m->cost_at = clock_now();
	m->config = load_config(m);
	log_level(m->opt.debug ? LOG_DEBUG : m->config->log_level);
	find_workers(m);
	m->instance = random_u64();
	m->src_secret = random_u64();
	m->by_id = (struct idtable)IDTABLE_INIT(conn_entry, id);
	m->by_src = (struct idtable)IDTABLE_INIT(conn_entry, src_key);
	m->by_probe = (struct idtable)IDTABLE_INIT(conn_entry, probe_key);
	budget_init_strict(&m->budget, m->config->start_budget, m->started);
	timers_new(m);
	m->mads = mads_new(m);
	m->sweeps = sweeps_new(m);
	m->pings = pings_new(m);
	m->monitor = monitor_new(m->instance);
	m->history = history_new();
	m->verdict_log = verdict_log_new();
	views_api(m, &m->api);
	m->server = varlink_server_new(m->loop, &m->api, m->monitor, m->config->max_clients);
	if (listen_on(m) < 0)
		return manager_free(m);
	m->resolver = resolver_new(m->loop);
	state_load_overrides(m);
	baselines_load(m);
	m->lldp = lldp_new(m);
	return m;
}

static void start(struct manager *m)
{
	static const struct udp_callbacks cb = {.event = on_udp_event,
						.dropped = on_udp_dropped};

	watch_kernel(m); /* subscribe first, then look */
	m->udp = udp_transport_new(m->loop, &cb, m);
	m->control = control_new(m);
	if (m->opt.mad_worker || m->config->mad_worker[0])
		(void)worker_want(m, WORKER_MAD, "", DEVICE_INDEX_NONE);
	devices_scan(m);
	peers_apply(m);
	loop_timer_at(m->tick, loop_now(m->loop));
	loop_timer_at(m->port_timer, loop_now(m->loop));
	loop_timer_at(m->feed_dog, loop_now(m->loop));
}

int manager_run(struct manager *m)
{
	int r;

	start(m);
	log_notice("fabd %s on %s: %d peer%s, config from %s", FABD_VERSION,
		   m->config->node_name, m->config->n_peers,
		   m->config->n_peers == 1 ? "" : "s", config_source_text(m));
	notify_ready(m);
	r = loop_run(m->loop);
	return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

static void timers_free(struct manager *m)
{
	struct loop_source **all[] = {&m->tick, &m->conn_timer, &m->start_timer, &m->port_timer, &m->more,
				      &m->feed_dog, &m->post, &m->judge, &m->sig_hup,
				      &m->sig_term, &m->sig_int, &m->sig_chld};

	for (size_t i = 0; i < ARRAY_LEN(all); i++)
		*all[i] = loop_source_free(*all[i]);
}

struct manager *manager_free(struct manager *m)
{
	if (!m)
		return NULL;
	varlink_server_free(m->server);
	workers_free(m);
	pings_free(m->pings);
	matrix_free(m);
	m->pings = NULL;
	conns_free(m);
	verdicts_free(m);
	peers_free(m);
	pool_done(&m->shared);
	resolver_free(m->resolver);
	control_free(m->control);
	udp_transport_free(m->udp);
	lldp_free(m->lldp);
	devices_free(m);
	baselines_free(m);
	sweeps_free(m->sweeps);
	mads_free(m->mads);
	uevent_free(m->uevent);
	netlink_free(m->netlink);
	monitor_free(m->monitor);
	history_free(m->history);
	timers_free(m);
	loop_free(m->loop);
	config_free(m->config);
	json_decref(m->config_problems);
	json_decref(m->unavailable);
	free(m->overrides);
	free(m->good_text);
	free(m);
	return NULL;
}
