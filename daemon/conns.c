/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The table of connections: look-ups, timers, the queue for the start budget, and the
 * actions that a connection asks for. The connection decides (lib/conn.c); here it is
 * done.
 */
#include <stdio.h>
#include <stdlib.h>

#include "manager.h"

/* rc: 4.096 us * 2^14 = 67 ms per try. Silence is noticed by heartbeats; this only
 * bounds how long a dead QP keeps trying. */
#define RC_ACK_TIMEOUT 14
#define RC_RETRY_COUNT 7
#define STARTS_PER_TURN 64

/* ---- look-ups ---- */

struct conn_entry *conn_by_id(struct manager *m, uint64_t id)
{
	return idtable_find(&m->by_id, id);
}

struct conn_entry *conn_by_src(struct manager *m, uint64_t src_id)
{
	return idtable_find(&m->by_src, src_id ^ m->src_secret);
}

static uint64_t hash_text(uint64_t h, const char *p)
{
	while (*p)
		h = mix64(h ^ (uint8_t)*p++);
	return mix64(h);
}

/* Zones do not count: an interface may come back under another number. */
static uint64_t probe_key(const struct manager *m, const struct conn_key *k,
			  const struct addr *local, uint64_t tag)
{
	uint64_t h = mix64(m->src_secret ^ tag);

	h = mix64(h ^ (uint64_t)k->transport << 32 ^ k->flow);
	h = hash_text(hash_text(h, k->peer), k->rail);
	return mix64(mix64(h ^ addr_hash(&k->remote)) ^ addr_hash(local));
}

/* An interface that is gone may have come back with another number. */
static bool same_place(const struct manager *m, const struct addr *then, const struct addr *now)
{
	struct addr a = *then;

	if (a.zone && m->netlink && !netlink_link(m->netlink, a.zone))
		a.zone = 0;
	return addr_same_ip(&a, now);
}

struct conn_entry *conn_by_probe(const struct manager *m, const struct conn_key *key,
				 const struct addr *local, uint64_t tag)
{
	struct conn_entry *e =
		idtable_find(&m->by_probe, probe_key(m, key, local, tag));
	const struct conn_key *k = e ? &e->c->key : NULL;

	if (e && k->transport == key->transport && k->flow == key->flow &&
	    !strcmp(k->rail, key->rail) && !strcmp(k->peer, key->peer) &&
	    e->probe_tag == tag && same_place(m, &k->remote, &key->remote) &&
	    same_place(m, &e->ctl_local, local))
		return e;
	return NULL;
}

void conn_know_src(struct manager *m, struct conn_entry *e, uint64_t src_id, uint64_t tag)
{
	e->src_key = src_id ^ m->src_secret;
	e->probe_tag = tag;
	e->probe_key = probe_key(m, &e->c->key, &e->ctl_local, tag);
	e->known_src = true;
	idtable_add(&m->by_src, e);
	idtable_add(&m->by_probe, e);
}

void conn_forget_src(struct manager *m, struct conn_entry *e)
{
	if (!e->known_src)
		return;
	e->known_src = false;
	idtable_remove(&m->by_src, e);
	idtable_remove(&m->by_probe, e);
}

int conns_after(const struct manager *m, uint64_t serial)
{
	int lo = 0, hi = m->n_conns;

	while (lo < hi) {
		int mid = (lo + hi) / 2;

		if (m->conns[mid]->serial <= serial)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

bool conn_key_matches(const struct conn_entry *e, const char *key)
{
	char text[CONN_KEY_MAX];
	size_t n = strlen(e->c->key.peer);

	/* Most need not be written out. */
	return !strncmp(key, e->c->key.peer, n) && key[n] == '/' &&
	       !strcmp(conn_key_format(&e->c->key, text), key);
}

bool conn_peer_rail_matches(const struct conn_entry *e, const char *name)
{
	size_t n = strlen(e->c->key.peer);

	if (strncmp(name, e->c->key.peer, n))
		return false;
	if (!name[n])
		return true;
	return (name[n] == '/' || name[n] == ':') && !strcmp(name + n + 1, e->c->key.rail);
}

struct conn_entry *conn_by_key(struct manager *m, const char *key)
{
	struct conn_entry *found = NULL;
	bool is_key = strchr(key, '>') != NULL;

	for (int i = 0; i < m->n_conns; i++) {
		struct conn_entry *e = m->conns[i];

		if (is_key ? conn_key_matches(e, key)
			   : (e->c->key.role == ROLE_TX && conn_peer_rail_matches(e, key))) {
			if (found)
				return NULL; /* not one connection */
			found = e;
			if (is_key)
				break;
		}
	}
	return found;
}

/* ---- making ---- */

void conn_params_from(const struct config_probe *p, struct conn_params *ret)
{
	*ret = (struct conn_params){
		.heartbeat = p->heartbeat,
		.min_receive = p->min_receive ? p->min_receive
			       : p->allow_fast ? 10 * NSEC_PER_MSEC
					       : 100 * NSEC_PER_MSEC,
		.multiplier = (uint8_t)p->multiplier,
		.ping_interval = p->ping,
		.ack_timeout = 500 * NSEC_PER_MSEC,
		.ack_retries = 5,
		.attempt_timeout = p->attempt_timeout,
		.backoff_min = p->backoff_min,
		.backoff_max = p->backoff_max,
		.rx_keep = 120 * NSEC_PER_SEC,
		.probe_small = (uint16_t)p->probe_small,
		.probe_large = (uint16_t)p->probe_large,
		.probe_size = p->probe_size,
	};
}

const struct config_probe *conn_probe(const struct manager *m, const struct conn_entry *e)
{
	if (e->peer)
		return e->peer->cfg->probe;
	return e->left ? e->left : m->config->probe;
}

void conn_set_bind(struct manager *m, struct conn_entry *e, const struct binding *b)
{
	const struct binding *before = e->bind; /* @b may be it */

	m->n_bad_binds += (b->error != EPERR_NONE) - (before->error != EPERR_NONE);
	e->bind = pool_get(&m->shared, b, sizeof(*b));
	pool_put(&m->shared, before);
}

void conn_set_worker(struct manager *m, struct conn_entry *e, const char *device)
{
	const char *before = e->worker_device;

	e->worker_device = pool_text(&m->shared, device);
	pool_put(&m->shared, before);
}

struct conn_entry *conn_entry_new(struct manager *m, const struct conn_key *key,
				  struct peer *p, const struct config_probe *probe)
{
	static const struct binding nowhere = {.port_name = "-"};
	struct conn_entry *e = xcalloc(1, sizeof(*e));
	struct conn_params params;

	conn_params_from(probe, &params);
	do {
		conn_free(e->c);
		e->c = conn_new(key, &params, loop_now(m->loop), random_u64());
	} while (conn_by_id(m, e->c->id));
	e->id = e->c->id;
	e->serial = ++m->next_serial;
	e->peer = p;
	e->verdict_since = loop_now(m->loop);
	e->verdict = VERDICT_UNKNOWN;
	e->why = e->worker_device = pool_text(&m->shared, "");
	e->bind = pool_get(&m->shared, &nowhere, sizeof(nowhere));
	idtable_add(&m->by_id, e);
	m->n_rx += key->role == ROLE_RX;
	heap_set(&m->judge_at, &e->judge_at, loop_now(m->loop));
	if (m->n_conns == m->conns_size) {
		m->conns_size = m->conns_size ? m->conns_size * 2 : 16;
		m->conns = xrealloc(m->conns, (size_t)m->conns_size,
				    sizeof(struct conn_entry *));
	}
	m->conns[m->n_conns++] = e;
	return e;
}

static void forget_session(struct conn_entry *e)
{
	if (e->session)
		explicit_bzero(e->session, sizeof(*e->session));
	free(e->session);
	e->session = NULL;
}

static void keep_session(struct conn_entry *e, const struct auth_key *k)
{
	if (!k->len) {
		forget_session(e);
		return;
	}
	if (!e->session)
		e->session = xcalloc(1, sizeof(*e->session));
	*e->session = *k;
}

void conn_leave_peer(struct conn_entry *e)
{
	struct peer *p = e->peer;

	if (p)
		peer_unlink_tx(p, e);
	if (p && !e->left)
		e->left = config_probe_ref(p->cfg->probe);
	e->peer = NULL;
}

/* Heartbeats a second of all tx together, for the cost that is shown. */
static void count_beats(struct manager *m, struct conn_entry *e, bool connected)
{
	const struct conn *c = e->c;

	m->beats_mhz -= e->beats_mhz;
	e->beats_mhz = connected && c->key.role == ROLE_TX
			       ? (uint32_t)(1000 * NSEC_PER_SEC /
					    MAX(c->heartbeat, NSEC_PER_MSEC))
			       : 0;
	m->beats_mhz += e->beats_mhz;
}

static int conn_place(const struct manager *m, const struct conn_entry *e)
{
	int i = conns_after(m, e->serial) - 1;

	assert(i >= 0 && m->conns[i] == e);
	return i;
}

static void entry_free(struct manager *m, struct conn_entry *e)
{
	int i = conn_place(m, e);

	pings_conn_down(m->pings, e);
	conn_leave_peer(e);
	idtable_remove(&m->by_id, e); /* and so from the queues of ids */
	conn_forget_src(m, e);
	heap_set(&m->timers, &e->timer, MONO_NEVER);
	heap_set(&m->judge_at, &e->judge_at, MONO_NEVER);
	memmove(&m->conns[i], &m->conns[i + 1],
		(size_t)(m->n_conns - i - 1) * sizeof(struct conn_entry *));
	m->n_conns--;
	m->n_rx -= e->c->key.role == ROLE_RX;
	config_probe_unref(e->left);
	count_beats(m, e, false);
	forget_session(e);
	m->n_bad_binds -= e->bind->error != EPERR_NONE;
	pool_put(&m->shared, e->bind);
	pool_put(&m->shared, e->why);
	pool_put(&m->shared, e->worker_device);
	damping_free(e);
	conn_free(e->c);
	free(e);
}

/* ---- endpoints ---- */

static struct worker *endpoint_worker(struct manager *m, const struct conn_entry *e)
{
	const struct device *d = e->worker_device[0] ? device_find(m, e->worker_device) : NULL;

	return d && d->rdma && d->rdma->fd >= 0 ? d->rdma : NULL;
}

static void post_error(struct manager *m, const struct conn_entry *e, uint64_t epoch,
		       enum ep_error error, const char *text)
{
	struct ep_event ev = {.conn_id = e->c->id, .epoch = epoch, .type = EP_ERROR,
			      .error = (uint8_t)error};

	(void)str_copy(ev.text, sizeof(ev.text), text);
	conns_post(m, &ev);
}

static void post_reset_done(struct manager *m, const struct conn_entry *e, uint64_t epoch)
{
	struct ep_event ev = {.conn_id = e->c->id, .epoch = epoch, .type = EP_RESET_DONE};

	conns_post(m, &ev);
}

void conn_endpoint_lost(struct manager *m, struct conn_entry *e, const char *why)
{
	e->has_endpoint = false;
	post_error(m, e, e->ep_epoch, EPERR_WORKER_DIED, why);
	post_reset_done(m, e, e->ep_epoch);
}

/* The key that tx signs with, on both sides, also while the two differ in which comes
 * first. None where one side has none: then it did not sign the message at hand, the
 * one that makes the endpoint start. */
static const struct auth_key no_key;

static const struct auth_key *session_base(const struct manager *m,
					   const struct conn_entry *e,
					   const struct auth_keys *keys)
{
	if (!m->signed_with)
		return &no_key;
	return e->c->key.role == ROLE_TX ? &keys->key[0] : m->signed_with;
}

static void complete_start(struct manager *m, struct conn_entry *e, struct ep_start *s)
{
	const struct config_probe *p = conn_probe(m, e);
	const struct auth_keys *keys = control_keys(m, e);
	struct conn *c = e->c;
	bool tx = c->key.role == ROLE_TX;

	s->local = e->bind->local;
	(void)str_copy(s->netdev, sizeof(s->netdev), e->bind->netdev);
	s->tos = (uint8_t)p->traffic_class;
	s->sl = p->service_level ? (uint8_t)(p->service_level - 1) : EP_SL_ANY;
	s->resolve_timeout_ms = (uint32_t)(p->resolve_timeout / NSEC_PER_MSEC);
	s->connect_timeout_ms = (uint32_t)(p->connect_timeout / NSEC_PER_MSEC);
	s->ack_timeout = (uint8_t)(p->ack_timeout ? p->ack_timeout : RC_ACK_TIMEOUT);
	s->retry_count = RC_RETRY_COUNT;
	if (c->key.transport != TRANSPORT_UDP && !tx) {
		s->local.port = (uint16_t)m->config->control_port;
		/* Longer than tx takes for all of it, which shall see for itself what failed. */
		s->connect_timeout_ms = s->connect_timeout_ms * 3 / 2 + 2 * s->resolve_timeout_ms;
	}
	keep_session(e, keys ? session_base(m, e, keys) : &no_key);
	if (e->session) {
		s->has_key = 1;
		auth_session_key(e->session, tx ? c->id : c->peer_id,
				 tx ? c->peer_id : c->id, s->epoch, s->key);
	}
}

static void start_on_device(struct manager *m, struct conn_entry *e, const struct ep_start *s)
{
	const char *slash = strrchr(e->bind->port_name, '/');
	struct wm_ep_start msg = {.start = *s};
	char device[DEVICE_NAME_MAX];
	struct worker *w;

	if (e->bind->own_host) {
		post_error(m, e, s->epoch, EPERR_NOT_SUPPORTED,
			   "an address of this host: probed over udp only");
		return;
	}
	if (!e->bind->port_serial || !slash) {
		post_error(m, e, s->epoch, EPERR_NO_ADDRESS,
			   "no RDMA device owns the source address");
		return;
	}
	(void)snprintf(device, sizeof(device), "%.*s", (int)(slash - e->bind->port_name),
		       e->bind->port_name);
	conn_set_worker(m, e, device);
	msg.start.port = (uint8_t)atoi(slash + 1);
	w = endpoint_worker(m, e);
	if (!w || !w->saw_hello) {
		w = worker_find(m, WORKER_RDMA, e->worker_device);
		post_error(m, e, s->epoch, EPERR_WORKER_DIED,
			   w && w->why[0] ? w->why : "the device's worker is not running");
		return;
	}
	if (e->c->key.role == ROLE_RX)
		worker_listen(w, &s->local, (enum transport)s->transport);
	wm_header(&msg, WM_EP_START, sizeof(msg), w->generation);
	if (worker_send(w, &msg, sizeof(msg)) < 0)
		post_error(m, e, s->epoch, EPERR_WORKER_DIED, "the device's worker died");
	else
		e->has_endpoint = true;
}

static void do_start(struct manager *m, struct conn_entry *e, struct ep_start *s)
{
	complete_start(m, e, s);
	e->ep_epoch = s->epoch;
	conn_set_worker(m, e, "");
	e->has_endpoint = false;
	if (e->bind->error) {
		post_error(m, e, s->epoch, e->bind->error, e->bind->why);
		return;
	}
	if (e->c->key.transport != TRANSPORT_UDP) {
		start_on_device(m, e, s);
		return;
	}
	e->has_endpoint = true;
	udp_ep_start(m->udp, s);
}

static void to_worker(struct manager *m, struct conn_entry *e, enum wm_type type,
		      uint64_t epoch)
{
	struct worker *w = endpoint_worker(m, e);
	struct wm_ep msg = {.conn_id = e->c->id, .epoch = epoch};

	if (!w)
		return; /* its loss has been reported, or will be */
	wm_header(&msg, type, sizeof(msg), w->generation);
	(void)worker_send(w, &msg, sizeof(msg));
}

bool conn_ping(struct manager *m, const struct conn_entry *e, struct ep_ping *order)
{
	struct wm_ep_ping msg;
	struct worker *w;

	order->conn_id = e->c->id;
	order->epoch = e->ep_epoch;
	if (!e->has_endpoint)
		return false;
	if (!e->worker_device[0]) {
		udp_ep_ping(m->udp, order);
		return true;
	}
	w = endpoint_worker(m, e);
	if (!w)
		return false;
	memset(&msg, 0, sizeof(msg));
	wm_header(&msg, WM_EP_PING, sizeof(msg), w->generation);
	msg.ping = *order;
	return worker_send(w, &msg, sizeof(msg)) >= 0;
}

/* Its worker lives and does not end it. A slow destroy is known as such and waited for. */
static bool teardown_hangs(struct manager *m, const struct conn_entry *e)
{
	const struct worker *w = endpoint_worker(m, e);

	return w && w->state == WORKER_RUNNING && e->c->state == CONN_RESETTING &&
	       mono_sub(loop_now(m->loop), e->c->state_since) >=
		       2 * m->config->worker_cm_stall;
}

static void do_reset(struct manager *m, struct conn_entry *e, uint64_t epoch)
{
	if (!e->has_endpoint || (e->worker_device[0] && !endpoint_worker(m, e))) {
		e->has_endpoint = false;
		post_reset_done(m, e, epoch);
		return;
	}
	if (e->worker_device[0] && teardown_hangs(m, e)) /* conns_worker_lost() tells of it */
		worker_fail(endpoint_worker(m, e), "it does not tear an endpoint down");
	else if (e->worker_device[0])
		to_worker(m, e, WM_EP_RESET, epoch);
	else
		udp_ep_reset(m->udp, e->c->id, epoch);
}

/* ---- starts ---- */

/* Bounded per turn, as timers are. */
static void run_starts(struct manager *m)
{
	struct mono now = loop_now(m->loop), at = now;
	uint64_t id = 0;

	for (int i = 0; m->starts.n && i < STARTS_PER_TURN; i++) {
		struct conn_input in = {.type = CI_START};
		struct conn_entry *e = conn_by_id(m, m->starts.ids[m->starts.first]);

		/* One that is gone takes no token. */
		if (e && !budget_take(&m->budget, now, &at))
			break;
		(void)id_queue_pop(&m->starts, &id);
		if (!e)
			continue;
		e->in_start_queue = false;
		conn_feed(m, e, &in);
	}
	if (m->starts.n)
		loop_timer_at(m->start_timer, at);
	else
		(void)id_queue_pop(&m->starts, &id); /* gives its memory back */
}

void conns_on_start_timer(void *user, struct mono now)
{
	(void)now;
	run_starts(user);
}

static void want_start(struct manager *m, struct conn_entry *e)
{
	if (e->in_start_queue)
		return;
	e->in_start_queue = true;
	id_queue_push(&m->starts, e->id);
	loop_timer_at(m->start_timer, loop_now(m->loop));
}

/* ---- actions ---- */

static void tell_state(struct manager *m, struct conn_entry *e, const struct conn_history *h)
{
	char key[CONN_KEY_MAX];

	(void)conn_key_format(&e->c->key, key);
	log_debug("%s: %s -> %s on %s (row %d)", key, enum_text(&conn_state_names, h->from),
		  enum_text(&conn_state_names, h->to),
		  enum_name(&probe_event_names, h->event), h->row);
	monitor_post(m->monitor, loop_now(m->loop), "connection", key, "state",
		     enum_name(&conn_state_names, h->from), enum_name(&conn_state_names, h->to),
		     enum_name(&probe_event_names, h->event));
	verdict_mark(m, e);
}

static void run_action(struct manager *m, struct conn_entry *e, struct conn_action *a)
{
	switch (a->type) {
	case CA_WANT_START:
		want_start(m, e);
		break;
	case CA_SEND:
		control_send(m, e, &a->msg);
		break;
	case CA_EP_START:
		do_start(m, e, &a->start);
		break;
	case CA_EP_PROBE:
		if (e->worker_device[0])
			to_worker(m, e, WM_EP_PROBE, a->start.epoch);
		else
			udp_ep_probe(m->udp, e->c->id, a->start.epoch);
		break;
	case CA_EP_HEARTBEAT:
		if (e->worker_device[0])
			to_worker(m, e, WM_EP_HEARTBEAT, a->start.epoch);
		else
			udp_ep_heartbeat(m->udp, e->c->id, a->start.epoch);
		break;
	case CA_EP_RESET:
		do_reset(m, e, a->start.epoch);
		break;
	case CA_STATE:
		tell_state(m, e, &a->state);
		break;
	case CA_CONNECTED:
		count_beats(m, e, e->c->connected);
		if (!e->c->connected)
			damping_lost(m, e, loop_now(m->loop));
		verdict_mark(m, e);
		break;
	case CA_GONE:
		e->going = true;
		break;
	}
}

static int feed(struct manager *m, struct conn_entry *e, const struct conn_input *in)
{
	struct conn_actions acts;
	char key[CONN_KEY_MAX];
	int r;

	acts.n = 0;
	r = conn_handle(e->c, in, loop_now(m->loop), random_u64(), &acts);
	for (int i = 0; i < acts.n; i++)
		run_action(m, e, &acts.a[i]);
	if (e->going) {
		monitor_post(m->monitor, loop_now(m->loop), "connection",
			     conn_key_format(&e->c->key, key), "removed", NULL, NULL, NULL);
		entry_free(m, e);
		return r;
	}
	heap_set(&m->timers, &e->timer, conn_deadline(e->c));
	if (heap_first(&m->timers))
		loop_timer_at(m->conn_timer, heap_first(&m->timers)->at);
	return r;
}

void conn_feed(struct manager *m, struct conn_entry *e, const struct conn_input *in)
{
	(void)feed(m, e, in);
}

int conn_feed_ctl(struct manager *m, struct conn_entry *e, const struct ctl_msg *msg)
{
	struct conn_input in = {.type = CI_CTL, .ctl = msg};

	verdict_mark(m, e);
	return feed(m, e, &in);
}

void conns_ep_event(struct manager *m, const struct ep_event *ev)
{
	struct conn_entry *e = conn_by_id(m, ev->conn_id);
	struct conn_input in = {.type = CI_EP, .ep = ev};

	if (!e)
		return;
	if (ev->type == EP_PONG) { /* no sign of life, and no evidence */
		pings_on_pong(m->pings, ev);
		return;
	}
	if (ev->type == EP_ERROR || ev->type == EP_RESET_DONE)
		pings_conn_down(m->pings, e);
	if (ev->type == EP_RESET_DONE && ev->epoch == e->ep_epoch)
		e->has_endpoint = false;
	if (ev->type != EP_STATS)
		verdict_mark(m, e);
	conn_feed(m, e, &in);
}

/* Endpoints of udp tell their figures seldom; whoever shows them has them as of now. */
void conn_refresh(struct manager *m, struct conn_entry *e)
{
	struct ep_event ev = {
		.conn_id = e->c->id, .epoch = e->ep_epoch, .type = EP_STATS, .stage = STAGE_UP};

	if (e->has_endpoint && !e->worker_device[0] &&
	    udp_ep_stats(m->udp, ev.conn_id, ev.epoch, &ev.stats))
		conns_ep_event(m, &ev);
}

void conns_on_timer(void *user, struct mono now)
{
	struct manager *m = user;
	struct heap_node *first;

	/* Bounded per turn, so that thousands that are due at once stall nobody. */
	for (int i = 0; i < CONNS_PER_TURN; i++) {
		struct conn_input in = {.type = CI_TIMER};

		first = heap_first(&m->timers);
		if (!first || !mono_due(first->at, now))
			break;
		conn_feed(m, container_of(first, struct conn_entry, timer), &in);
	}
	first = heap_first(&m->timers);
	if (first)
		loop_timer_at(m->conn_timer, first->at);
}

/* ---- the end ---- */

void conn_drop(struct manager *m, struct conn_entry *e)
{
	struct conn_input in = {.type = CI_STOP, .cause = CAUSE_NONE};

	conn_forget_src(m, e); /* its place is free for another at once */
	conn_leave_peer(e);
	conn_feed(m, e, &in);
}

void conns_free(struct manager *m)
{
	while (m->n_conns)
		entry_free(m, m->conns[m->n_conns - 1]);
	free(m->conns);
	m->conns = NULL;
	heap_done(&m->timers);
	heap_done(&m->judge_at);
	idtable_done(&m->by_id);
	idtable_done(&m->by_src);
	idtable_done(&m->by_probe);
	many_free(m);
}
