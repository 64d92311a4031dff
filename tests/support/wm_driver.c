/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * wm-driver WORKER [ARG...]: plays main for one device worker. Starts it with one end
 * of a pair, takes commands from standard input, a line each, and prints what the
 * worker says as JSON, an object a line, each with "t" (monotonic ns). The end of
 * standard input closes the pair; then it prints how the worker ended.
 *
 *   init DEVICE INDEX|any POLL_MS MAX [COUNTERS_MS]    ping SEQ    poll    exit
 *   listen ADDR PORT [ud]                unlisten ADDR PORT [ud]
 *   start tx|rx CONN PEER EPOCH LOCAL REMOTE PORT [NAME=NUMBER...] [key=BYTE]
 *   probe CONN EPOCH    heartbeat CONN EPOCH    reset CONN EPOCH    raw BYTES
 *   ep_ping CONN EPOCH ID COUNT SIZE INTERVAL_US TIMEOUT_US
 */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "worker.h"

static int pair = -1;
#define GENERATION 7

static int64_t clock_ns(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * NSEC_PER_SEC + ts.tv_nsec;
}

static void print(json_t *o)
{
	char *s;

	json_object_set_new(o, "t", json_integer(clock_ns()));
	s = json_dumps(o, JSON_COMPACT);
	puts(s);
	(void)fflush(stdout);
	free(s);
	json_decref(o);
}

static void complain(const char *what, const char *why)
{
	print(json_pack("{ss,ss,ss}", "type", "DRIVER", "what", what, "why", why));
}

static void send_message(void *m, enum wm_type type, size_t size)
{
	wm_header(m, type, size, GENERATION);
	if (send(pair, m, size, MSG_NOSIGNAL) < 0)
		complain("send", strerror(errno));
}

static const char *word(char **rest)
{
	const char *w;

	do /* blanks in a row are one */
		w = strsep(rest, " ");
	while (w && !*w && *rest);
	return w ? w : "";
}

static uint64_t number(char **rest)
{
	return strtoull(word(rest), NULL, 0);
}

static struct addr address(const char *text, uint16_t port)
{
	struct addr a = {0};
	char zone[16];

	if (addr_parse(text, &a, zone) < 0)
		complain("address", text);
	a.port = port;
	return a;
}

static void option(struct ep_start *s, const char *name, uint64_t v)
{
	if (str_eq(name, "port"))
		s->port = (uint8_t)v;
	else if (str_eq(name, "tos"))
		s->tos = (uint8_t)v;
	else if (str_eq(name, "ack"))
		s->ack_timeout = (uint8_t)v;
	else if (str_eq(name, "retry"))
		s->retry_count = (uint8_t)v;
	else if (str_eq(name, "mult"))
		s->multiplier = (uint8_t)v;
	else if (str_eq(name, "hb_us"))
		s->heartbeat_us = (uint32_t)v;
	else if (str_eq(name, "resolve_ms"))
		s->resolve_timeout_ms = (uint32_t)v;
	else if (str_eq(name, "connect_ms"))
		s->connect_timeout_ms = (uint32_t)v;
	else if (str_eq(name, "small"))
		s->probe_small = (uint16_t)v;
	else if (str_eq(name, "large"))
		s->probe_large = (uint16_t)v;
	else if (str_eq(name, "size"))
		s->probe_size = (uint32_t)v;
	else if (str_eq(name, "transport"))
		s->transport = (uint8_t)v;
	else if (str_eq(name, "flow"))
		s->flow = (uint16_t)v;
	else if (str_eq(name, "sl"))
		s->sl = (uint8_t)v;
	else if (str_eq(name, "key")) {
		s->has_key = 1;
		memset(s->key, (int)v, sizeof(s->key));
	} else
		complain("option", name);
}

static void start(char *rest)
{
	struct wm_ep_start m = {.start = {.transport = TRANSPORT_RC,
					  .sl = EP_SL_ANY,
					  .ack_timeout = 14,
					  .retry_count = 3,
					  .multiplier = 3,
					  .heartbeat_us = 100000,
					  .resolve_timeout_ms = 2000,
					  .connect_timeout_ms = 5000,
					  .probe_small = 8,
					  .probe_large = 1}};
	const char *role = word(&rest), *local, *remote, *w;
	uint16_t port;

	m.start.role = str_eq(role, "rx") ? ROLE_RX : ROLE_TX;
	m.start.conn_id = number(&rest);
	m.start.peer_conn_id = number(&rest);
	m.start.epoch = number(&rest);
	local = word(&rest);
	remote = word(&rest);
	port = (uint16_t)number(&rest);
	m.start.local = address(local, m.start.role == ROLE_RX ? port : 0);
	m.start.remote = address(remote, m.start.role == ROLE_TX ? port : 0);
	while (*(w = word(&rest))) {
		char *copy = xstrdup(w), *eq = strchr(copy, '=');

		if (eq) {
			*eq = '\0';
			option(&m.start, copy, strtoull(eq + 1, NULL, 0));
		}
		free(copy);
	}
	send_message(&m, WM_EP_START, sizeof(m));
}

static void command(char *line)
{
	char *rest = line;
	const char *w = word(&rest);

	if (str_eq(w, "init")) {
		struct wm_init m = {0};

		(void)str_copy(m.device, sizeof(m.device), word(&rest));
		w = word(&rest);
		m.device_index = str_eq(w, "any") ? DEVICE_INDEX_NONE
						  : (uint32_t)strtoul(w, NULL, 0);
		m.poll_ms = (uint32_t)number(&rest);
		m.max_endpoints = (uint32_t)number(&rest);
		m.counters_ms = rest ? (uint32_t)number(&rest) : 0;
		send_message(&m, WM_INIT, sizeof(m));
	} else if (str_eq(w, "ping")) {
		struct wm_ping m = {.seq = number(&rest)};

		send_message(&m, WM_PING, sizeof(m));
	} else if (str_eq(w, "poll")) {
		struct wm_poll m = {0};

		send_message(&m, WM_POLL, sizeof(m));
	} else if (str_eq(w, "exit")) {
		struct wm_exit m = {0};

		send_message(&m, WM_EXIT, sizeof(m));
	} else if (str_eq(w, "listen") || str_eq(w, "unlisten")) {
		struct wm_listen m = {0};
		const char *a = word(&rest);

		m.addr = address(a, (uint16_t)number(&rest));
		m.transport = str_eq(word(&rest), "ud") ? TRANSPORT_UD : TRANSPORT_RC;
		send_message(&m, str_eq(w, "listen") ? WM_LISTEN : WM_UNLISTEN,
			     sizeof(m));
	} else if (str_eq(w, "start")) {
		start(rest);
	} else if (str_eq(w, "probe") || str_eq(w, "heartbeat") || str_eq(w, "reset")) {
		struct wm_ep m = {0};

		m.conn_id = number(&rest);
		m.epoch = number(&rest);
		send_message(&m,
			     str_eq(w, "probe")	      ? WM_EP_PROBE
			     : str_eq(w, "heartbeat") ? WM_EP_HEARTBEAT
						      : WM_EP_RESET,
			     sizeof(m));
	} else if (str_eq(w, "ep_ping")) {
		struct wm_ep_ping m = {0};

		m.ping.conn_id = number(&rest);
		m.ping.epoch = number(&rest);
		m.ping.id = (uint32_t)number(&rest);
		m.ping.count = (uint32_t)number(&rest);
		m.ping.size = (uint32_t)number(&rest);
		m.ping.interval_us = (uint32_t)number(&rest);
		m.ping.timeout_us = (uint32_t)number(&rest);
		send_message(&m, WM_EP_PING, sizeof(m));
	} else if (str_eq(w, "raw")) {
		(void)!send(pair, rest, strlen(rest), MSG_NOSIGNAL);
	} else {
		complain("command", w);
	}
}

/* ---- what the worker says ---- */

static json_t *text_of_addr(const struct addr *a)
{
	char buf[ADDR_TEXT_MAX];

	return addr_is_set(a) ? json_string(addr_format_port(a, buf)) : json_null();
}

/* A number that is not known is null. */
static json_t *known(const struct ep_path *p, uint32_t bit, uint32_t v)
{
	return p->known & bit ? json_integer(v) : json_null();
}

static json_t *of_path(const struct ep_path *p)
{
	char s[48], d[48];

	return json_pack(
		"{so,so,so,so,so,so,so,so,so,so,so,so,si}", "sgid",
		p->known & EP_PATH_SGID ? json_string(gid_text(p->sgid, s)) : json_null(),
		"dgid",
		p->known & EP_PATH_DGID ? json_string(gid_text(p->dgid, d)) : json_null(),
		"sgid_index", known(p, EP_PATH_SGID, p->sgid_index), "gid_type",
		p->known & EP_PATH_SGID
			? json_string(enum_name(&ep_gid_type_names, p->gid_type))
			: json_null(),
		"pkey", known(p, EP_PATH_PKEY, p->pkey), "sl",
		known(p, EP_PATH_SL, p->sl), "traffic_class",
		known(p, EP_PATH_CLASS, p->traffic_class), "hop_limit",
		known(p, EP_PATH_HOPS, p->hop_limit), "flow_label",
		known(p, EP_PATH_FLOW_LABEL, p->flow_label), "qpn",
		known(p, EP_PATH_QPS, p->qpn), "remote_qpn",
		known(p, EP_PATH_QPS, p->remote_qpn), "sport",
		known(p, EP_PATH_SPORT, p->sport), "mtu", (int)p->mtu);
}

static json_t *of_event(const struct ep_event *e)
{
	static const char *const types[EP__MAX] = {
		[EP_STAGE] = "STAGE",
		[EP_READY] = "READY",
		[EP_UP] = "UP",
		[EP_PROBING] = "PROBING",
		[EP_PROBES_DONE] = "PROBES_DONE",
		[EP_LATE] = "LATE",
		[EP_ALIVE] = "ALIVE",
		[EP_ERROR] = "ERROR",
		[EP_RESET_DONE] = "RESET_DONE",
		[EP_STATS] = "STATS",
		[EP_PONG] = "PONG",
		[EP_PATH] = "PATH",
	};
	const struct ep_stats *s = &e->stats;
	json_t *o =
		json_pack("{ss,sI,sI,ss,ss,si,si,so,so,ss,si}", "event", types[e->type],
			  "conn", (json_int_t)e->conn_id, "epoch", (json_int_t)e->epoch,
			  "stage", enum_name(&ep_stage_names, e->stage), "error",
			  enum_name(&ep_error_names, e->error), "status",
			  (int)e->status, "port", (int)e->port, "addr",
			  text_of_addr(&e->addr), "remote", text_of_addr(&e->remote),
			  "text", e->text, "path_mtu",
			  e->type == EP_UP ? (int)e->path.mtu : 0);

	if (e->type == EP_UP || e->type == EP_PATH)
		json_object_set_new(o, "path", of_path(&e->path));
	if (e->type == EP_PONG)
		json_object_set_new(o, "done", json_boolean(e->ping_done));
	if (e->type == EP_STATS || e->type == EP_LATE || e->type == EP_ALIVE ||
	    e->type == EP_PONG)
		json_object_set_new(
			o, "stats",
			json_pack("{sI,sI,sI,sI,si,si,sI,sI,sI,sI,si,ss}", "sent",
				  (json_int_t)s->sent, "received",
				  (json_int_t)s->received, "lost", (json_int_t)s->lost,
				  "dropped", (json_int_t)s->dropped, "consecutive_lost",
				  (int)s->consecutive_lost, "samples", (int)s->samples,
				  "p50", (json_int_t)s->rtt_p50, "p99",
				  (json_int_t)s->rtt_p99, "net_p50",
				  (json_int_t)s->net_p50, "host_p50",
				  (json_int_t)s->host_p50, "late_p99_us",
				  (int)s->late_p99_us, "clock",
				  enum_name(&ep_clock_names, s->clock)));
	return o;
}

static json_t *of_device(const struct wm_device *m)
{
	json_t *o =
		json_pack("{ss,si}", "name", m->name, "index", (int)m->device_index);
	char buf[128];

	for (int i = 0; i < device_table.n; i++)
		json_object_set_new(o, device_table.fields[i].name,
				    json_string(field_text(&device_table, &m->facts, i,
							   buf, sizeof(buf))));
	return o;
}

static json_t *of_gids(const struct wm_gids *m)
{
	json_t *list = json_array();
	char buf[48];

	for (int i = 0; i < m->n; i++)
		json_array_append_new(
			list, json_pack("{si,ss,si,ss}", "index", (int)m->gid[i].index,
					"type", gid_type_name(m->gid[i].type),
					"netdev_index", (int)m->gid[i].netdev_index,
					"gid", gid_text(m->gid[i].gid, buf)));
	return json_pack("{si,si,so}", "port", (int)m->port, "last", (int)m->last,
			 "gids", list);
}

/* {name: {value, source, why}} */
static json_t *of_counters(const struct wm_counters *m)
{
	const struct counter_reading *r = &m->reading;
	json_t *all = json_object();

	for (int c = 0; c < CTR__MAX; c++)
		json_object_set_new(
			all, counter_rows[c].name,
			json_pack("{sI,ss,ss}", "value", (json_int_t)r->value[c], "source",
				  enum_name(&counter_source_names, r->source[c]), "why",
				  enum_name(&unavailable_names, r->why[c])));
	return json_pack("{si,so}", "port", (int)m->port, "counters", all);
}

static json_t *of_message(const void *buf, uint16_t type)
{
	const struct wm_port *p = buf;
	const struct wm_pong *pong = buf;
	const struct wm_hello *hello = buf;
	const struct wm_listening *l = buf;
	const struct wm_goodbye *g = buf;
	const struct wm_pkeys *k = buf;
	const struct wm_drops *d = buf;
	json_t *o;

	switch (type) {
	case WM_HELLO:
		return json_pack("{si,ss,ss}", "pid", (int)hello->pid, "device",
				 hello->device, "release", hello->release);
	case WM_PONG:
		return json_pack(
			"{sI,si,si,sb,ss,si,si,si}", "seq", (json_int_t)pong->seq,
			"hot_age_ms", (int)pong->hot_age_ms, "cm_busy_ms",
			(int)pong->cm_busy_ms, "cm_destroying",
			(int)pong->cm_destroying, "cm_call", pong->cm_call, "endpoints",
			(int)pong->endpoints, "listeners", (int)pong->listeners,
			"late_worst_us", (int)pong->late_worst_us);
	case WM_DEVICE:
		return of_device(buf);
	case WM_PORT:
		return json_pack(
			"{si,ss,si,si,si,si,si,si,si,si,ss,si,si}", "port",
			(int)p->port, "source", enum_name(&source_names, p->source),
			"link_layer", (int)p->link_layer, "state", (int)p->state,
			"phys_state", (int)p->phys_state, "active_mtu",
			(int)p->active_mtu, "width", (int)p->width, "speed",
			(int)p->speed, "missing", (int)p->missing, "netdev_index",
			(int)p->netdev_index, "netdev", p->netdev, "lid", (int)p->lid,
			"max_mtu", (int)p->max_mtu);
	case WM_GIDS:
		return of_gids(buf);
	case WM_PKEYS:
		return json_pack("{si,ss,si,si}", "port", (int)k->port, "why",
				 enum_name(&unavailable_names, k->why), "n", (int)k->n,
				 "first", k->n ? (int)k->pkey[0] : -1);
	case WM_LISTENING:
		return json_pack("{so,si,ss,ss}", "addr", text_of_addr(&l->addr),
				 "error", (int)l->error, "text", l->text, "transport",
				 enum_name(&transport_names, l->transport));
	case WM_COUNTERS:
		return of_counters(buf);
	case WM_EP_EVENT:
		return of_event(&((const struct wm_ep_event *)buf)->event);
	case WM_DROPS:
		o = json_object();
		for (int i = 0; i < DROP__MAX; i++)
			if (d->count[i])
				json_object_set_new(
					o, enum_name(&drop_names, i),
					json_integer((json_int_t)d->count[i]));
		return o;
	case WM_GOODBYE:
		return json_pack("{si,ss}", "why", (int)g->why, "text", g->text);
	default:
		return json_object();
	}
}

/* false: end of file. */
static bool from_worker(void)
{
	static union {
		struct wm_header h;
		uint8_t bytes[WM_MAX];
	} buf;
	ssize_t n = recv(pair, &buf, sizeof(buf), MSG_DONTWAIT);
	char why[128];
	json_t *o;

	if (n == 0 || (n < 0 && errno == ECONNRESET))
		return false;
	if (n < 0)
		return true;
	if (wm_check(&buf, (size_t)n, false, why, sizeof(why)) < 0) {
		complain("message", why);
		return true;
	}
	if (buf.h.generation != GENERATION)
		complain("generation", wm_type_name(buf.h.type));
	o = of_message(&buf, buf.h.type);
	json_object_set_new(o, "type", json_string(wm_type_name(buf.h.type) + 3));
	print(o);
	return true;
}

static pid_t spawn(char *argv[])
{
	char fd[16];
	char *args[16] = {NULL};
	int sv[2], n = 0;
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sv) < 0)
		return -1;
	pair = sv[0];
	(void)fcntl(pair, F_SETFD, FD_CLOEXEC);
	(void)snprintf(fd, sizeof(fd), "%d", sv[1]);
	for (; argv[n] && n < 12; n++)
		args[n] = argv[n];
	args[n++] = (char[]){"--fd"};
	args[n++] = fd;
	pid = fork();
	if (!pid) {
		(void)execv(args[0], args);
		_exit(127);
	}
	(void)close(sv[1]);
	return pid;
}

int main(int argc, char *argv[])
{
	static char line[4096];
	size_t have = 0;
	bool input = true;
	int status = 0;
	pid_t pid;

	if (argc < 2 || (pid = spawn(argv + 1)) < 0)
		return 2;
	for (;;) {
		struct pollfd fds[2] = {{.fd = pair, .events = POLLIN},
					{.fd = input ? 0 : -1, .events = POLLIN}};
		char *end;
		ssize_t n;

		(void)poll(fds, 2, -1);
		if (fds[0].revents && !from_worker())
			break;
		if (!fds[1].revents)
			continue;
		n = read(0, line + have, sizeof(line) - 1 - have);
		if (n <= 0) {
			input = false;
			(void)shutdown(pair, SHUT_RDWR);
			break;
		}
		have += (size_t)n;
		line[have] = '\0';
		while ((end = strchr(line, '\n'))) {
			*end = '\0';
			command(line);
			have -= (size_t)(end + 1 - line);
			memmove(line, end + 1, have + 1);
		}
	}
	(void)waitpid(pid, &status, 0);
	print(json_pack("{ss,si,si}", "type", "ENDED", "status",
			WIFEXITED(status) ? WEXITSTATUS(status) : -1, "signal",
			WIFSIGNALED(status) ? WTERMSIG(status) : 0));
	return 0;
}
