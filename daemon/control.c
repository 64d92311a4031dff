/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The control interface in main: which datagrams are let in, which are answered without
 * state, which make a responder, and to which connection the rest goes. Strangers get
 * nothing; an address of a configured peer gets no state before it has proved, by
 * repeating a cookie, that it can be read at.
 */
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>

#include "control.h"
#include "manager.h"

#define REFUSED_MAX 64	   /* addresses remembered for the status */
#define TOMBSTONES 1024	   /* connection ids that were replaced: not taken again */
#define ANSWERS_PER_SEC 2000 /* stateless answers, all together */

struct refused {
	struct addr addr;
	enum drop reason;
	uint64_t count;
	struct mono last;
};

/* One datagram on its way in. */
struct request {
	const uint8_t *buf;
	size_t len;
	const struct addr *from, *local;
	struct peer *peer; /* NULL: let in by Accept= */
	const struct conn_entry *leaving; /* or NULL: its peer has left the config */
	struct told_rail *unverified; /* or NULL: only the peer says that it is its own */
	struct ctl_msg msg;
	struct ctl_auth auth;
};

struct control {
	struct manager *m;
	struct ctl_socket *socket;
	uint8_t cookie_secret[32];
	struct refused refused[REFUSED_MAX];
	int n_refused;
	uint64_t dead[TOMBSTONES];
	unsigned n_dead;
	struct budget answers;
	struct log_limit log_auth;
};

/* ---- counting ---- */

static struct refused *refused_slot(struct control *c, const struct addr *a, enum drop reason)
{
	struct refused *oldest = &c->refused[0];

	for (int i = 0; i < c->n_refused; i++) {
		struct refused *r = &c->refused[i];

		if (r->reason == reason && addr_same_ip(&r->addr, a))
			return r;
		if (r->last.ns < oldest->last.ns)
			oldest = r;
	}
	if (c->n_refused < REFUSED_MAX)
		oldest = &c->refused[c->n_refused++];
	*oldest = (struct refused){.addr = *a, .reason = reason};
	return oldest;
}

void control_count(struct manager *m, enum drop reason, const struct addr *from)
{
	struct refused *r;

	m->drops[reason]++;
	if (!from || (reason != DROP_STRANGER && reason != DROP_BAD_AUTH &&
		      reason != DROP_UNAUTHENTICATED && reason != DROP_VERSION))
		return;
	r = refused_slot(m->control, from, reason);
	r->count++;
	r->last = loop_now(m->loop);
}

json_t *control_refused(const struct control *c, struct mono now)
{
	json_t *a = json_array();
	char text[ADDR_TEXT_MAX];

	for (int i = 0; i < c->n_refused; i++) {
		const struct refused *r = &c->refused[i];

		json_array_append_new(
			a, json_pack("{s:s, s:s, s:I, s:f}", "address",
				     addr_format(&r->addr, text), "reason",
				     enum_name(&drop_names, r->reason), "count",
				     (json_int_t)r->count, "age_sec",
				     (double)mono_sub(now, r->last) / 1e9));
	}
	return a;
}

/* ---- keys ---- */

static const struct config_probe *probe_for(struct manager *m, const struct peer *p)
{
	return p ? p->cfg->probe : m->config->probe;
}

const struct auth_keys *control_keys(const struct manager *m, const struct conn_entry *e)
{
	const struct config_probe *p = conn_probe(m, e);

	return p->auth != AUTH_OFF && p->keys.n ? &p->keys : NULL;
}

static void auth_failed(struct manager *m, struct peer *p, const struct addr *from,
			enum drop reason)
{
	char text[ADDR_TEXT_MAX];

	log_limited(&m->control->log_auth, LOG_WARNING, "control packet from %s: %s",
		    addr_format(from, text), enum_text(&drop_names, reason));
	if (p)
		p->auth_failed_at = loop_now(m->loop);
}

/* 0, or the drop reason. */
static int check_auth(struct manager *m, const struct request *q)
{
	const struct config_probe *probe =
		q->leaving ? conn_probe(m, q->leaving) : probe_for(m, q->peer);

	if (probe->auth == AUTH_OFF)
		return 0;
	/* Required keys that could not be read let nobody in, rather than everybody. */
	if (!probe->keys.n)
		return probe->auth == AUTH_REQUIRE ? -(1 + DROP_UNAUTHENTICATED) : 0;
	if (q->auth.present) {
		m->signed_with = ctl_verify(q->buf, &q->auth, &probe->keys);
		if (!m->signed_with)
			return -(1 + DROP_BAD_AUTH);
		if (q->peer)
			q->peer->has_signed = true;
		return 0;
	}
	if (probe->auth == AUTH_REQUIRE || (q->peer && q->peer->has_signed))
		return -(1 + DROP_UNAUTHENTICATED);
	return 0;
}

/* ---- sending ---- */

static const struct auth_key *signing_key(const struct config_probe *probe)
{
	return probe->auth != AUTH_OFF && probe->keys.n ? &probe->keys.key[0] : NULL;
}

static void send_bytes(struct manager *m, const struct addr *local, const struct addr *to,
		       const uint8_t *buf, size_t len)
{
	int r = ctl_socket_send(m->control->socket, local, to, buf, len);
	char text[ADDR_TEXT_MAX];

	if (r < 0)
		log_debug("control to %s: %s", addr_format(to, text), strerror(-r));
	else
		m->ctl_sent++;
}

static enum told_device told_device(const struct worker *w)
{
	if (!w)
		return TOLD_DEVICE_UNKNOWN;
	switch (w->state) {
	case WORKER_RUNNING:
	case WORKER_CM_BLOCKED:
		return TOLD_DEVICE_OK;
	case WORKER_STARTING:
	case WORKER_BACKOFF:
		return TOLD_DEVICE_REPLACED;
	case WORKER_STUCK:
		return TOLD_DEVICE_STUCK;
	case WORKER_STOPPED:
	case WORKER__MAX:
		break;
	}
	return TOLD_DEVICE_UNKNOWN;
}

/* Of the worker when it carries the connection: main is not late for it then. */
static int64_t own_lateness(struct manager *m, const struct conn_entry *e,
			    const struct worker *w)
{
	struct loop_stats ls;

	loop_stats(m->loop, &ls);
	if (!w || e->c->key.transport == TRANSPORT_UDP)
		return ls.late_worst_ns;
	return MAX(ls.late_worst_ns, (int64_t)w->pong.late_worst_us * NSEC_PER_USEC);
}

static void fill_own(struct manager *m, struct conn_entry *e, struct ctl_msg *msg)
{
	const struct worker *w = conn_worker(m, e);

	msg->told_lateness_us =
		(uint32_t)MIN(own_lateness(m, e, w) / NSEC_PER_USEC, UINT32_MAX);
	msg->told_device = (uint8_t)told_device(w);
	/* Also of a plain interface: who was told that it is down must hear of its return. */
	msg->told_port = e->bind->port_down ? TOLD_PORT_DOWN
			 : e->bind->error  ? TOLD_PORT_UNKNOWN
					  : TOLD_PORT_UP;
	path_tell(e, msg);
}

/* From the peer's name here, so that it is the same after a restart. */
static uint64_t probe_tag(const struct conn_entry *e)
{
	uint64_t tag = 0;

	for (const char *p = e->c->key.peer; *p; p++)
		tag = mix64(tag ^ (uint8_t)*p);
	return tag;
}

void control_send(struct manager *m, struct conn_entry *e, struct ctl_msg *msg)
{
	uint8_t buf[CTL_DATAGRAM_MAX];
	size_t len;

	fill_own(m, e, msg);
	if (msg->cmd == CTL_RESET || msg->cmd == CTL_PROTOCOL_VERSION ||
	    msg->cmd == CTL_PROTOCOL_VERSION_ACK) {
		(void)str_copy(msg->node, sizeof(msg->node), m->config->node_name);
		(void)str_copy(msg->rail, sizeof(msg->rail), e->c->key.rail);
		(void)str_copy(msg->port_name, sizeof(msg->port_name), e->c->key.port_name);
	}
	if (msg->cmd == CTL_RESET || msg->cmd == CTL_PROTOCOL_VERSION)
		msg->rdma_addr = e->bind->local;
	if (msg->cmd == CTL_RESET)
		msg->probe_tag = probe_tag(e);
	if (msg->cmd == CTL_PROTOCOL_VERSION_ACK || msg->cmd == CTL_PING_ACK)
		rails_tell(m, e, msg);
	/* tx asks from the rail's own address; rx answers from the one that was asked. */
	if (e->c->key.role == ROLE_TX)
		e->ctl_local = e->bind->local;
	len = ctl_encode(msg, signing_key(conn_probe(m, e)), buf);
	send_bytes(m, &e->ctl_local, &e->ctl_remote, buf, len);
}

/* A cookie is good for one attempt: an old Reset that somebody kept is not. */
static uint64_t cookie_subject(const struct ctl_msg *m)
{
	return m->src_id ^ mix64(m->epoch);
}

/* Answer without any state. Never longer than the request: an unsigned one that is too
 * short for a signed answer gets an unsigned one. false: too many ask. */
static bool answer_stateless(struct manager *m, const struct request *q, enum ctl_cmd cmd,
			     enum refusal refusal)
{
	struct control *c = m->control;
	uint8_t buf[CTL_DATAGRAM_MAX];
	struct ctl_msg msg;
	size_t len;

	/* An answer is never answered, and a flood gets few. */
	if (q->msg.cmd == CTL_CHALLENGE || q->msg.cmd == CTL_UNKNOWN ||
	    q->msg.cmd == CTL_REFUSED)
		return true;
	if (!budget_take(&c->answers, loop_now(m->loop), NULL))
		return false;
	ctl_stateless_answer(&q->msg, cmd, &msg);
	msg.refusal = (uint8_t)refusal;
	if (cmd == CTL_CHALLENGE) {
		msg.has_cookie = true;
		auth_cookie(c->cookie_secret, q->from, cookie_subject(&q->msg),
			    (uint64_t)(loop_now(m->loop).ns /
				       (AUTH_COOKIE_SLOT_SEC * NSEC_PER_SEC)),
			    msg.cookie);
	}
	len = ctl_encode(&msg, signing_key(probe_for(m, q->peer)), buf);
	if (len > q->len)
		len = ctl_encode(&msg, NULL, buf);
	if (len <= q->len)
		send_bytes(m, q->local, q->from, buf, len);
	return true;
}

/* ---- receiving ---- */

static bool allowed(struct manager *m, const struct addr *from)
{
	for (int i = 0; i < m->config->n_accept; i++)
		if (addr_range_has(&m->config->accept[i], from))
			return true;
	return false;
}

static bool was_replaced(const struct control *c, uint64_t id)
{
	for (unsigned i = 0; i < MIN(c->n_dead, TOMBSTONES); i++)
		if (c->dead[i] == id)
			return true;
	return false;
}

static void bury(struct control *c, uint64_t id)
{
	c->dead[c->n_dead++ % TOMBSTONES] = id;
}

struct key_text { /* what a key's texts may be in */
	char addr[ADDR_TEXT_MAX], port[PORT_NAME_MAX];
};

static void rx_key(struct manager *m, const struct ctl_msg *msg, const struct addr *from,
		   const struct addr *local, const struct peer *p, struct key_text *text,
		   struct conn_key *ret)
{
	struct port_entry *pe = port_of_address(m, local);

	*ret = (struct conn_key){.role = ROLE_RX,
				 .transport = (enum transport)msg->transport,
				 .flow = msg->flow,
				 .remote = *from};
	ret->remote.port = 0;
	ret->peer = p		   ? p->cfg->name
		    : msg->node[0] ? msg->node
				   : addr_format(&ret->remote, text->addr);
	ret->rail = msg->rail[0] ? msg->rail : "0";
	ret->port_name = pe ? port_name(&pe->p, text->port) : "-";
}

/* The same probe from a tx that started anew: its old connection here goes. Two of its
 * peers that share an address here differ in their tag: both stay. */
static void replace_older(struct manager *m, const struct conn_key *key,
			  const struct addr *local, uint64_t tag)
{
	struct conn_entry *e;

	while ((e = conn_by_probe(m, key, local, tag)) != NULL) {
		bury(m->control, e->src_key ^ m->src_secret);
		conn_drop(m, e);
	}
}

static struct conn_entry *rx_new(struct manager *m, const struct ctl_msg *msg,
				 const struct addr *from, const struct addr *local,
				 struct peer *p)
{
	struct conn_key key;
	struct key_text texts;
	struct conn_entry *e;
	char text[CONN_KEY_MAX];

	rx_key(m, msg, from, local, p, &texts, &key);
	replace_older(m, &key, local, msg->probe_tag);
	e = conn_entry_new(m, &key, p, probe_for(m, p));
	e->ctl_remote = *from;
	e->ctl_local = *local;
	e->ctl_local.port = 0;
	conn_know_src(m, e, msg->src_id, msg->probe_tag);
	monitor_post(m->monitor, loop_now(m->loop), "connection",
		     conn_key_format(&e->c->key, text), "added", NULL, NULL, NULL);
	/* It has to know its place before the endpoint is asked for. */
	conn_bind(m, e);
	return e;
}

static enum refusal refuse_reset(struct manager *m, const struct ctl_msg *msg)
{
	if (msg->transport >= TRANSPORT__MAX)
		return REFUSE_TRANSPORT;
	if ((uint32_t)m->n_rx >= m->config->max_rx)
		return REFUSE_LIMIT;
	return REFUSE_NONE;
}

/* A Reset from a tx that has no connection here yet. */
static int on_first_reset(struct manager *m, const struct request *q)
{
	const struct ctl_msg *msg = &q->msg;
	struct control *c = m->control;
	uint64_t slot = (uint64_t)(loop_now(m->loop).ns / (AUTH_COOKIE_SLOT_SEC * NSEC_PER_SEC));
	struct addr tx_addr = msg->rdma_addr;
	enum refusal refusal;

	if (!msg->src_id || was_replaced(c, msg->src_id))
		return -(1 + DROP_REPLAY);
	if (m->stopping)
		return -(1 + DROP_STATE);
	if (!msg->has_cookie || sodium_is_zero(msg->cookie, sizeof(msg->cookie)) ||
	    !auth_cookie_ok(c->cookie_secret, q->from, cookie_subject(msg), slot, msg->cookie)) {
		bool first = !msg->has_cookie || sodium_is_zero(msg->cookie, sizeof(msg->cookie));

		if (!answer_stateless(m, q, CTL_CHALLENGE, REFUSE_NONE) && first)
			return -(1 + DROP_LIMIT);
		return first ? 0 : -(1 + DROP_COOKIE);
	}
	/* Nobody may make this host probe a third one. */
	if (tx_addr.family && !addr_same_ip(&tx_addr, q->from))
		return -(1 + DROP_SOURCE);
	refusal = refuse_reset(m, msg);
	if (refusal) {
		(void)answer_stateless(m, q, CTL_REFUSED, refusal);
		return -(1 + DROP_LIMIT);
	}
	if (q->unverified)
		q->unverified->verified = true;
	return conn_feed_ctl(m, rx_new(m, msg, q->from, q->local, q->peer), msg);
}

/* The peer's port may change, but only a message that the connection takes says so. */
static int feed_rx(struct manager *m, struct conn_entry *e, const struct request *q)
{
	struct addr before = e->ctl_remote;
	int r;

	e->ctl_remote = *q->from;
	r = conn_feed_ctl(m, e, &q->msg);
	if (r < 0) /* it is still there: nothing happened */
		e->ctl_remote = before;
	return r;
}

/* What a message that was taken tells beside its command. */
static void learn(struct manager *m, struct conn_entry *e, const struct ctl_msg *msg)
{
	e->told_path = msg->path;
	if (e->peer && e->c->key.role == ROLE_TX &&
	    (msg->cmd == CTL_PROTOCOL_VERSION_ACK || msg->cmd == CTL_PING_ACK))
		rails_told(m, e->peer, msg);
}

static int dispatch(struct manager *m, const struct request *q)
{
	const struct ctl_msg *msg = &q->msg;
	struct conn_entry *e = msg->dst_id ? conn_by_id(m, msg->dst_id) : NULL;
	uint64_t id;
	int r;

	/* Our own words thrown back at us; only this host itself may say them. */
	if (msg->src_id && conn_by_id(m, msg->src_id) && !netlink_own_addr(m->netlink, q->from))
		return -(1 + DROP_SOURCE);
	if (!e && msg->cmd == CTL_RESET) {
		e = conn_by_src(m, msg->src_id);
		if (!e)
			return on_first_reset(m, q);
	}
	if (!e && msg->dst_id) {
		(void)answer_stateless(m, q, CTL_UNKNOWN, REFUSE_NONE);
		return -(1 + DROP_UNKNOWN);
	}
	if (!e)
		return -(1 + DROP_STATE);
	if (!addr_same_ip(q->from, &e->c->key.remote))
		return -(1 + DROP_SOURCE);
	/* Nor may the one that is probed send the probes to a third one. */
	if (msg->cmd == CTL_PROTOCOL_VERSION_ACK &&
	    !addr_same_ip(&msg->rdma_addr, &e->c->key.remote))
		return -(1 + DROP_SOURCE);
	if (!rails_verify(m, e, msg))
		return -(1 + DROP_SOURCE);
	id = e->c->id;
	r = e->c->key.role == ROLE_RX ? feed_rx(m, e, q) : conn_feed_ctl(m, e, msg);
	if (r >= 0 && conn_by_id(m, id) == e)
		learn(m, e, msg);
	return r;
}

/* Of a message of another major version only its head can be read. One that answers a
 * command of ours is the other side's refusal; what asks is refused by us. */
static void other_version(struct manager *m, struct request *q)
{
	struct conn_entry *e = q->msg.dst_id ? conn_by_id(m, q->msg.dst_id) : NULL;

	if (!e || !addr_same_ip(q->from, &e->c->key.remote)) {
		(void)answer_stateless(m, q, CTL_REFUSED, REFUSE_VERSION);
		return;
	}
	q->msg.cmd = CTL_REFUSED;
	q->msg.refusal = REFUSE_VERSION;
	q->msg.unproven = control_keys(m, e) != NULL;
	(void)conn_feed_ctl(m, e, &q->msg);
}

/* 0, or the drop reason. */
static int take(struct manager *m, struct request *q, bool truncated)
{
	int r;

	if (!q->peer && !q->leaving && !allowed(m, q->from))
		return -(1 + DROP_STRANGER);
	if (truncated)
		return -(1 + DROP_OVERSIZED);
	r = ctl_decode(q->buf, q->len, &q->msg, &q->auth);
	if (r == -(1 + DROP_VERSION))
		other_version(m, q);
	if (r < 0)
		return r;
	if (q->unverified && q->msg.cmd == CTL_RESET && !rails_may_ask(q->unverified, &q->msg)) {
		if (!allowed(m, q->from))
			return -(1 + DROP_STRANGER);
		q->peer = NULL;
		q->unverified = NULL;
	}
	r = check_auth(m, q);
	if (r < 0) {
		auth_failed(m, q->unverified ? NULL : q->peer, q->from, (enum drop)(-r - 1));
		(void)answer_stateless(m, q, CTL_REFUSED, REFUSE_AUTH);
		return r;
	}
	return dispatch(m, q);
}

/* What the config says of an address counts before what a peer tells. */
static void find_peer(struct manager *m, struct request *q)
{
	const struct peer_addr *a = peer_addr_first(m, q->from);
	const struct conn_entry *e =
		q->len >= CTL_HEADER_LEN ? conn_by_id(m, be64_get(q->buf + 16)) : NULL;
	struct told_rail *r;

	if (a && !a->told) {
		q->peer = a->peer;
		return;
	}
	/* A connection goes on with the rights that it came with, whoever tells what of its
	 * address, and also when the address is no longer anybody's. */
	if (e && addr_same_ip(q->from, &e->c->key.remote)) {
		q->peer = e->peer;
		q->leaving = e->left ? e : NULL;
		return;
	}
	r = rails_find(m, q->from);
	if (r) {
		q->peer = r->peer;
		q->unverified = r->verified ? NULL : r;
	}
}

static void on_datagram(void *user, const uint8_t *buf, size_t len, bool truncated,
			const struct addr *from, const struct addr *local)
{
	struct manager *m = user;
	struct request q = {.buf = buf, .len = len, .from = from, .local = local};
	int r;

	find_peer(m, &q);
	r = take(m, &q, truncated);

	m->signed_with = NULL;
	m->ctl_received++;
	if (r < 0)
		control_count(m, (enum drop)(-r - 1), from);
}

static void on_unreachable(void *user, const struct addr *to, enum ep_error error)
{
	struct manager *m = user;
	struct peer_addr *a = peer_addr_first(m, to);

	if (!a)
		return;
	a->ctl_unreachable_at = loop_now(m->loop);
	a->ctl_unreachable = (uint8_t)error;
}

static void on_dropped(void *user, enum drop reason, uint64_t count)
{
	struct manager *m = user;

	m->drops[reason] += count;
}

struct control *control_new(struct manager *m)
{
	static const struct ctl_socket_callbacks cb = {
		.datagram = on_datagram, .unreachable = on_unreachable, .dropped = on_dropped};
	static const struct addr any[] = {{.family = 4}, {.family = 6}};
	struct control *c = xcalloc(1, sizeof(*c));
	const struct addr *addrs = m->config->n_control_addrs ? m->config->control_addrs : any;
	int n = m->config->n_control_addrs ? m->config->n_control_addrs : (int)ARRAY_LEN(any);

	c->m = m;
	randombytes_buf(c->cookie_secret, sizeof(c->cookie_secret));
	budget_init(&c->answers, ANSWERS_PER_SEC, ANSWERS_PER_SEC, loop_now(m->loop));
	c->socket = ctl_socket_new(m->loop, addrs, n, (uint16_t)m->config->control_port, &cb, m);
	return c;
}

bool control_open(const struct control *c)
{
	return c && ctl_socket_bound(c->socket);
}

void control_read(struct manager *m)
{
	if (m->control)
		ctl_socket_read(m->control->socket);
}

struct control *control_free(struct control *c)
{
	if (!c)
		return NULL;
	ctl_socket_free(c->socket);
	sodium_memzero(c->cookie_secret, sizeof(c->cookie_secret));
	free(c);
	return NULL;
}
