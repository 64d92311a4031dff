/* SPDX-License-Identifier: BSD-2-Clause */
#include "udp_internal.h"

#include <net/if.h>
#include <stdlib.h>
#include <unistd.h>

#define PAYLOAD_MAX_4 65507
#define PAYLOAD_MAX_6 65487 /* no jumbograms */
#define PAYLOAD_DEFAULT 1472

/* --- events and verbs wait for the end of the turn ------------------------------- */

static struct ep_event *push_event(struct udp_transport *t, uint64_t conn_id,
				   uint64_t epoch, enum ep_event_type type)
{
	struct ep_event *ev;

	if (t->n_events == t->events_room) {
		t->events_room = MAX(16, 2 * t->events_room);
		t->events = xrealloc(t->events, t->events_room, sizeof(*t->events));
	}
	ev = &t->events[t->n_events++];
	*ev = (struct ep_event){.conn_id = conn_id, .epoch = epoch, .type = (uint8_t)type};
	loop_defer_arm(t->turn_end);
	return ev;
}

struct ep_event *udp_emit(struct udp_transport *t, const struct ep *ep,
			  enum ep_event_type type, enum ep_stage stage)
{
	struct ep_event *ev = push_event(t, ep->conn_id, ep->epoch, type);

	ev->stage = (uint8_t)stage;
	return ev;
}

static void push_verb(struct udp_transport *t, enum verb_type type,
		      const struct ep_start *s)
{
	if (t->n_verbs == t->verbs_room) {
		t->verbs_room = MAX(16, 2 * t->verbs_room);
		t->verbs = xrealloc(t->verbs, t->verbs_room, sizeof(*t->verbs));
	}
	t->verbs[t->n_verbs++] = (struct verb){.type = type, .s = *s};
	loop_defer_arm(t->turn_end);
}

void udp_ep_ping(struct udp_transport *t, const struct ep_ping *p)
{
	push_verb(t, VERB_PING,
		  &(struct ep_start){.conn_id = p->conn_id, .epoch = p->epoch});
	t->verbs[t->n_verbs - 1].ping = *p;
}

void udp_ep_start(struct udp_transport *t, const struct ep_start *s)
{
	push_verb(t, VERB_START, s);
}

void udp_ep_probe(struct udp_transport *t, uint64_t conn_id, uint64_t epoch)
{
	push_verb(t, VERB_PROBE, &(struct ep_start){.conn_id = conn_id, .epoch = epoch});
}

void udp_ep_heartbeat(struct udp_transport *t, uint64_t conn_id, uint64_t epoch)
{
	push_verb(t, VERB_HEARTBEAT, &(struct ep_start){.conn_id = conn_id, .epoch = epoch});
}

void udp_ep_reset(struct udp_transport *t, uint64_t conn_id, uint64_t epoch)
{
	push_verb(t, VERB_RESET, &(struct ep_start){.conn_id = conn_id, .epoch = epoch});
}

void udp_emit_up(struct udp_transport *t, struct ep *ep, const struct addr *local)
{
	struct ep_event *ev;

	ep->stage = STAGE_UP;
	ev = udp_emit(t, ep, EP_UP, STAGE_UP);
	ev->addr = *local;
	ev->addr.port = ep->sock->local.port;
	ev->remote = ep->remote;
	ev->path.mtu = ep->path_mtu;
	ev->path.known = EP_PATH_SPORT | EP_PATH_CLASS;
	ev->path.sport = ep->role == ROLE_TX ? ep->sock->local.port : ep->remote.port;
	ev->path.traffic_class = ep->tos;
}

void udp_fail(struct udp_transport *t, struct ep *ep, enum ep_error error, int status,
	      const char *text)
{
	struct ep_event *ev;

	if (ep->state == EPS_FAILED)
		return;
	udp_ping_fail(t, ep, text);
	ev = udp_emit(t, ep, EP_ERROR, (enum ep_stage)ep->stage);
	ev->error = (uint8_t)error;
	ev->status = status;
	(void)str_copy(ev->text, sizeof(ev->text), text);
	ep->state = EPS_FAILED;
	hb_stop(&ep->hb);
	udp_set_due(t, ep, MONO_NEVER);
}

/* --- sockets --------------------------------------------------------------------- */

static struct sock_key key_of(const struct ep_start *start)
{
	struct sock_key k;

	memset(&k, 0, sizeof(k)); /* compared as bytes */
	k.role = start->role;
	if (start->role == ROLE_TX) {
		k.flow = start->flow;
		k.tos = start->tos;
		k.priority = start->sl == EP_SL_ANY ? 0 : (uint8_t)(start->sl + 1);
	}
	k.local = start->local;
	(void)str_copy(k.netdev, sizeof(k.netdev), start->netdev);
	return k;
}

/* A flow is a path only while its source port stays: a new socket takes the port that the
 * last one of the same flow had, if it is still free. */
static uint16_t last_port(const struct udp_transport *t, const struct sock_key *k)
{
	for (int i = 0; i < UDP_PORTS_KEPT; i++)
		if (!memcmp(&t->ports[i].key, k, sizeof(*k)))
			return t->ports[i].port;
	return 0;
}

static void keep_port(struct udp_transport *t, const struct sock *s)
{
	int i = 0;

	if (s->key.role != ROLE_TX || s->key.local.port)
		return;
	while (i < UDP_PORTS_KEPT && memcmp(&t->ports[i].key, &s->key, sizeof(s->key)))
		i++;
	if (i == UDP_PORTS_KEPT)
		i = (int)(t->next_port++ % UDP_PORTS_KEPT);
	t->ports[i].key = s->key;
	t->ports[i].port = s->local.port;
}

static int open_sock(struct udp_transport *t, const struct sock_key *k, struct sock **ret,
		     const char **ret_step)
{
	struct udp_open o = {
		.local = k->local, .netdev = k->netdev, .stamps = true, .dont_fragment = true,
		.tos = k->tos, .priority = k->priority};
	struct sock *s;
	bool unbound;
	int fd;

	o.local.port = k->local.port ? k->local.port : last_port(t, k);
	fd = udp_open(&o, ret_step, &unbound);
	if (fd < 0 && !k->local.port && o.local.port) {
		o.local.port = 0;
		fd = udp_open(&o, ret_step, &unbound);
	}
	if (fd < 0)
		return fd;
	if (unbound)
		log_limited(&t->unbound_log, LOG_WARNING,
			    "udp: no right to bind to interface %s (CAP_NET_RAW): its "
			    "address alone selects the network",
			    k->netdev);
	s = xcalloc(1, sizeof(*s));
	s->t = t;
	s->key = *k;
	s->fd = fd;
	if (udp_local(fd, &s->local) < 0)
		s->local = k->local;
	hb_shared_init(&s->shared);
	s->source = loop_fd(t->loop, fd, LOOP_READ, udp_on_readable, s);
	DL_APPEND(t->socks, s);
	*ret = s;
	return 0;
}

static int get_sock(struct udp_transport *t, struct ep *ep, const struct ep_start *start,
		    const char **ret_step)
{
	struct sock_key k = key_of(start);
	struct sock *s;
	int r = 0;

	DL_FOREACH(t->socks, s)
		if (!memcmp(&s->key, &k, sizeof(k)))
			break;
	if (!s)
		r = open_sock(t, &k, &s, ret_step);
	if (r < 0)
		return r;
	ep->sock = s;
	s->n_eps++;
	return 0;
}

/* The last user closes it. */
static void put_sock(struct ep *ep)
{
	struct sock *s = ep->sock;

	if (!s)
		return;
	udp_flush(s); /* what waits there names its endpoints */
	ep->sock = NULL;
	if (--s->n_eps)
		return;
	keep_port(s->t, s);
	DL_DELETE(s->t->socks, s);
	loop_source_free(s->source);
	(void)close(s->fd);
	hb_shared_done(&s->shared);
	free(s);
}

/* --- endpoints ------------------------------------------------------------------- */

static void free_ep(struct udp_transport *t, struct ep *ep)
{
	hb_done(&ep->hb);
	put_sock(ep);
	udp_set_due(t, ep, MONO_NEVER);
	idtable_remove(&t->eps, ep);
	idtable_remove(&t->by_peer, ep);
	free(ep->held);
	free(ep->key);
	udp_ping_done(ep);
	free(ep);
}

static struct ep *find_ep(const struct udp_transport *t, uint64_t conn_id)
{
	return idtable_find(&t->eps, conn_id);
}

/* A link-local address without a zone is on the interface that was named, or on the
 * one of the other address. */
static void complete_zone(struct addr *a, const struct addr *other, const char *netdev)
{
	if (!addr_is_link_local(a) || a->zone)
		return;
	a->zone = other->zone ? other->zone : netdev[0] ? if_nametoindex(netdev) : 0;
}

static void complete_addresses(struct ep_start *s)
{
	s->netdev[EP_IF_MAX - 1] = '\0';
	if (!addr_is_set(&s->local))
		s->local = (struct addr){.family = s->remote.family,
					 .port = s->local.port};
	complete_zone(&s->local, &s->remote, s->netdev);
	complete_zone(&s->remote, &s->local, s->netdev);
	if (s->role == ROLE_RX)
		s->remote.port = 0;
}

/* What was asked cannot be, whatever the network does. Text or NULL. */
static const char *impossible(const struct ep_start *s, enum ep_error *ret)
{
	*ret = EPERR_NOT_SUPPORTED;
	if (s->transport != TRANSPORT_UDP)
		return "only udp is carried here";
	*ret = EPERR_NO_ADDRESS;
	if (!addr_is_set(&s->remote) || (s->role == ROLE_TX && !s->remote.port))
		return "the peer's address or port is not known";
	if (s->local.family != s->remote.family)
		return "IPv4 and IPv6 cannot talk to each other";
	if (s->role == ROLE_RX && !addr_is_set(&s->local))
		return "no local address to answer on";
	return NULL;
}

static enum ep_error open_error_kind(int r)
{
	switch (r) {
	case -EADDRNOTAVAIL:
	case -ENODEV:
		return EPERR_NO_ADDRESS;
	case -ENETUNREACH:
	case -EHOSTUNREACH:
		return EPERR_NO_ROUTE;
	default:
		return EPERR_LOCAL;
	}
}

static void fail_open(struct udp_transport *t, struct ep *ep, const struct ep_start *s,
		      int r, const char *step)
{
	char text[EP_TEXT_MAX] = "", a[ADDR_TEXT_MAX];

	str_append(text, sizeof(text), "%s %s%s%s: %s%s", step, addr_format(&s->local, a),
		   s->netdev[0] ? " on " : "", s->netdev, strerror(-r),
		   r == -EPERM ? " (CAP_NET_RAW)" : "");
	udp_fail(t, ep, open_error_kind(r), r, text);
}

/* The size of the large messages: as told, else what one packet to the peer carries. */
static int find_path(struct ep *ep, struct ep_start *s)
{
	uint32_t max = s->remote.family == 4 ? PAYLOAD_MAX_4 : PAYLOAD_MAX_6;
	struct addr source, remote = s->remote;
	int r;

	remote.port = remote.port ? remote.port : 1; /* nothing is sent there */
	r = udp_route(&s->local, &remote, s->netdev, &source, &ep->path_mtu);
	if (r < 0 && s->role == ROLE_TX)
		return r;
	if (!r && s->role == ROLE_TX)
		memcpy(s->local.ip, source.ip, sizeof(source.ip));
	ep->path_mtu = MIN(ep->path_mtu, max);
	if (!s->probe_size)
		s->probe_size = ep->path_mtu ? ep->path_mtu : PAYLOAD_DEFAULT;
	s->probe_size = MAX(MIN(s->probe_size, max), (uint32_t)FABRIC_LEN);
	return 0;
}

static void listen_for(struct udp_transport *t, struct ep *ep, const struct ep_start *s)
{
	struct ep_event *ev;

	ep->state = EPS_READY;
	ep->stage = STAGE_LISTEN;
	(void)udp_emit(t, ep, EP_STAGE, STAGE_LISTEN);
	ev = udp_emit(t, ep, EP_READY, STAGE_LISTEN);
	ev->addr = s->local;
	ev->addr.port = ep->sock->local.port;
	if (s->connect_timeout_ms)
		udp_set_due(t, ep, mono_add(clock_now(),
					    s->connect_timeout_ms * NSEC_PER_MSEC));
}

static struct ep *new_ep(struct udp_transport *t, const struct ep_start *s)
{
	struct ep *ep = xcalloc(1, sizeof(*ep));

	ep->conn_id = s->conn_id;
	ep->peer_conn_id = s->peer_conn_id;
	ep->epoch = s->epoch;
	ep->role = s->role;
	ep->tos = s->tos;
	ep->remote = s->remote;
	ep->heap_at = NOT_IN_HEAP;
	ep->state = EPS_UP;
	ep->stage = STAGE_CONNECT;
	if (s->has_key) {
		ep->key = xcalloc(1, EP_KEY_LEN);
		memcpy(ep->key, s->key, EP_KEY_LEN);
	}
	idtable_add(&t->eps, ep);
	idtable_add(&t->by_peer, ep);
	return ep;
}

static void verb_start(struct udp_transport *t, const struct ep_start *start)
{
	struct ep *ep = find_ep(t, start->conn_id);
	struct ep_start s = *start;
	const char *text, *step = "route to the peer from";
	enum ep_error error;
	int r;

	if (ep)
		free_ep(t, ep);
	complete_addresses(&s);
	ep = new_ep(t, &s);
	text = impossible(&s, &error);
	if (text) {
		hb_init(&ep->hb, &s);
		udp_fail(t, ep, error, 0, text);
		return;
	}
	r = get_sock(t, ep, &s, &step);
	if (!r)
		r = find_path(ep, &s);
	hb_init(&ep->hb, &s);
	if (r < 0) {
		fail_open(t, ep, &s, r, step);
		return;
	}
	ep->hb.shared = &ep->sock->shared;
	if (!t->shortest || ep->hb.interval < t->shortest)
		t->shortest = ep->hb.interval;
	if (s.role == ROLE_RX) {
		listen_for(t, ep, &s);
		return;
	}
	(void)udp_emit(t, ep, EP_STAGE, STAGE_CONNECT);
	udp_emit_up(t, ep, &s.local);
}

/* rx: what came before this verb was not echoed; now it is. */
static void verb_probe(struct udp_transport *t, struct ep *ep)
{
	struct mono now = clock_now();

	if (ep->state != EPS_UP)
		return;
	ep->state = EPS_PROBING;
	hb_start_probes(&ep->hb, now);
	(void)udp_emit(t, ep, EP_PROBING, STAGE_UP);
	if (ep->held)
		(void)udp_take_request(ep, &ep->held->m, ep->held->at);
	free(ep->held);
	ep->held = NULL;
	udp_set_due(t, ep, now);
}

static void verb_heartbeat(struct udp_transport *t, struct ep *ep)
{
	struct mono now = clock_now();

	if (ep->state != EPS_PROBING)
		return;
	ep->state = EPS_BEATING;
	t->rnd = mix64(t->rnd);
	hb_start_beats(&ep->hb, now, t->rnd);
	udp_set_due(t, ep, now);
}

static void run_verb(struct udp_transport *t, const struct verb *v)
{
	struct ep *ep = find_ep(t, v->s.conn_id);
	bool current = ep && ep->epoch == v->s.epoch;

	switch (v->type) {
	case VERB_START:
		verb_start(t, &v->s);
		break;
	case VERB_PROBE:
		if (current)
			verb_probe(t, ep);
		break;
	case VERB_HEARTBEAT:
		if (current)
			verb_heartbeat(t, ep);
		break;
	case VERB_PING:
		if (current)
			udp_ping_begin(t, ep, &v->ping);
		break;
	case VERB_RESET:
		if (current) {
			udp_ping_fail(t, ep, "the connection is being reset");
			free_ep(t, ep);
		}
		(void)push_event(t, v->s.conn_id, v->s.epoch, EP_RESET_DONE);
		break;
	}
}

/* --- the end of the loop's turn -------------------------------------------------- */

static void on_turn_end(void *user)
{
	struct udp_transport *t = user;
	struct ep_event *events;
	struct sock *s;
	size_t n;

	t->turn++;
	t->turn_at = clock_now();
	for (size_t i = 0; i < t->n_verbs; i++)
		run_verb(t, &t->verbs[i]);
	t->n_verbs = 0;
	udp_run_due(t);
	DL_FOREACH(t->socks, s)
		udp_flush(s);
	udp_arm(t);
	/* The callbacks ask for more verbs, which run in a call of this function of their
	 * own in the same turn. */
	events = t->events;
	n = t->n_events;
	t->events = NULL;
	t->n_events = t->events_room = 0;
	for (size_t i = 0; i < n; i++)
		t->cb.event(t->user, &events[i]);
	free(events);
}

struct udp_transport *udp_transport_new(struct loop *l, const struct udp_callbacks *cb,
					void *user)
{
	struct udp_transport *t = xcalloc(1, sizeof(*t));

	t->loop = l;
	t->cb = *cb;
	t->user = user;
	t->timer = loop_timer(l, udp_on_timer, t);
	t->turn_end = loop_defer(l, on_turn_end, t);
	t->eps = (struct idtable)IDTABLE_INIT(ep, conn_id);
	t->by_peer = (struct idtable)IDTABLE_INIT(ep, peer_conn_id);
	t->rnd = random_u64();
	t->wall_offset = clock_wall_ns() - clock_now().ns;
	t->rx = udp_rx_new(FABRIC_LEN, FABRIC_MESSAGE_MAX);
	t->zeros = xcalloc(1, FABRIC_MESSAGE_MAX);
	return t;
}

struct udp_transport *udp_transport_free(struct udp_transport *t)
{
	struct ep *ep;

	if (!t)
		return NULL;
	for (uint32_t at = 0; (ep = idtable_next(&t->eps, &at)); at = 0)
		free_ep(t, ep);
	idtable_done(&t->eps);
	idtable_done(&t->by_peer);
	loop_source_free(t->timer);
	loop_source_free(t->turn_end);
	udp_rx_free(t->rx);
	free(t->zeros);
	free(t->heap);
	free(t->verbs);
	free(t->events);
	free(t);
	return NULL;
}

bool udp_ep_stats(const struct udp_transport *t, uint64_t conn_id, uint64_t epoch,
		  struct ep_stats *ret)
{
	const struct ep *ep = find_ep(t, conn_id);

	if (!ep || ep->epoch != epoch || ep->hb.phase == HB_OFF)
		return false;
	udp_stats(ep, clock_now(), ret);
	return true;
}

bool udp_ep_rtt(const struct udp_transport *t, uint64_t conn_id, uint64_t epoch,
		struct hist *ret)
{
	const struct ep *ep = find_ep(t, conn_id);

	if (!ep || ep->epoch != epoch || ep->role != ROLE_TX || !ep->hb.rtt)
		return false;
	rtt_window(ep->hb.rtt, clock_now(), ret);
	return true;
}

size_t udp_ep_memory(const struct udp_transport *t, uint64_t conn_id)
{
	const struct ep *ep = find_ep(t, conn_id);

	return ep ? sizeof(*ep) + hb_memory(&ep->hb) : 0;
}

void udp_counts(const struct udp_transport *t, uint64_t *ret_sent, uint64_t *ret_received)
{
	*ret_sent = t->sent;
	*ret_received = t->received;
}
