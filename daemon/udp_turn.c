/* SPDX-License-Identifier: BSD-2-Clause */
#include "udp_internal.h"

#include <stdlib.h>

#define STALL_NS (5 * NSEC_PER_MSEC) /* a timer so late: the loop could not run */
#define STALL_PART 4		     /* of an interval: shorter stalls do not count */
#define STAMP_OLD_NS (10 * NSEC_PER_SEC)
#define CLOCK_STEP_NS (20 * NSEC_PER_MSEC)
#define BATCHES_MAX 64 /* of one socket in a turn */
/* What is due beyond these waits for the next turn, which reads first what has come: a host
 * that was late must not fill its own socket with more echoes than it holds. */
#define STEPS_MAX 64

/* --- deadlines: a binary heap of endpoints --------------------------------------- */

static void heap_put(struct udp_transport *t, uint32_t at, struct due d)
{
	t->heap[at] = d;
	d.ep->heap_at = at;
}

static void heap_up(struct udp_transport *t, uint32_t at, struct due d)
{
	for (; at && d.at.ns < t->heap[(at - 1) / 2].at.ns; at = (at - 1) / 2)
		heap_put(t, at, t->heap[(at - 1) / 2]);
	heap_put(t, at, d);
}

static void heap_down(struct udp_transport *t, uint32_t at, struct due d)
{
	for (;;) {
		uint32_t child = 2 * at + 1;

		if (child + 1 < t->n_heap &&
		    t->heap[child + 1].at.ns < t->heap[child].at.ns)
			child++;
		if (child >= t->n_heap || t->heap[child].at.ns >= d.at.ns)
			break;
		heap_put(t, at, t->heap[child]);
		at = child;
	}
	heap_put(t, at, d);
}

static void heap_move(struct udp_transport *t, uint32_t at, struct due d)
{
	heap_up(t, at, d);
	heap_down(t, d.ep->heap_at, d);
}

static void heap_remove(struct udp_transport *t, struct ep *ep)
{
	uint32_t at = ep->heap_at;
	struct due last;

	if (at == NOT_IN_HEAP)
		return;
	ep->heap_at = NOT_IN_HEAP;
	last = t->heap[--t->n_heap];
	if (last.ep != ep)
		heap_move(t, at, last);
}

void udp_set_due(struct udp_transport *t, struct ep *ep, struct mono due)
{
	ep->due = due;
	if (!mono_is_set(due)) {
		heap_remove(t, ep);
		return;
	}
	if (ep->heap_at == NOT_IN_HEAP) {
		if (t->n_heap == t->heap_room) {
			t->heap_room = MAX(64u, t->heap_room + t->heap_room / 2);
			t->heap = xrealloc(t->heap, t->heap_room, sizeof(*t->heap));
		}
		ep->heap_at = t->n_heap++;
	}
	heap_move(t, ep->heap_at, (struct due){due, ep});
}

/* --- sending --------------------------------------------------------------------- */

static enum ep_error send_error_kind(int error)
{
	switch (error) {
	case EMSGSIZE: /* a large one does not fit: lost, which is what it is there for */
	case EPERM:    /* a local packet filter: lost as well */
		return EPERR_NONE;
	case EHOSTUNREACH:
	case ENETUNREACH:
	case ENETDOWN:
		return EPERR_NO_ROUTE;
	case EADDRNOTAVAIL:
	case EINVAL: /* the source address is gone */
	case ENODEV:
		return EPERR_NO_ADDRESS;
	default:
		return EPERR_SEND_FAILED;
	}
}

static void on_send_failed(void *user, int i, int error)
{
	struct sock *s = user;
	enum ep_error kind = send_error_kind(error);
	char to[ADDR_TEXT_MAX], text[EP_TEXT_MAX] = "";

	if (kind == EPERR_NONE)
		return;
	str_append(text, sizeof(text), "send to %s: %s",
		   addr_format_port(&s->out[i].to, to), strerror(error));
	udp_fail(s->t, s->out[i].ep, kind, -error, text);
}

/* Of heartbeats and probes; a ping has numbers of its own. */
static bool is_request(const struct fabric_msg *m)
{
	return m->type == FABRIC_PROBE || m->type == FABRIC_HEARTBEAT;
}

void udp_flush(struct sock *s)
{
	uint8_t heads[UDP_BATCH][FABRIC_LEN];
	uint8_t control[UDP_BATCH][UDP_CONTROL_LEN] __attribute__((aligned(8)));
	struct sockaddr_storage to[UDP_BATCH];
	struct iovec iov[UDP_BATCH][2];
	struct mmsghdr msg[UDP_BATCH];
	struct mono now = clock_now();
	bool followed = false;

	if (!s->n_out)
		return;
	memset(control, 0, sizeof(control));
	for (int i = 0; i < s->n_out; i++) {
		struct out *o = &s->out[i];

		*(o->m.t2 ? &o->m.t3 : &o->m.t1) = now.ns;
		fabric_encode(&o->m, o->ep->key, heads[i]);
		iov[i][0] = (struct iovec){heads[i], FABRIC_LEN};
		iov[i][1] = (struct iovec){s->t->zeros, o->m.length - FABRIC_LEN};
		msg[i].msg_hdr = (struct msghdr){.msg_name = &to[i],
						 .msg_namelen = addr_to_sockaddr(&o->to, &to[i]),
						 .msg_iov = iov[i],
						 .msg_iovlen = o->m.length > FABRIC_LEN ? 2 : 1};
		msg[i].msg_hdr.msg_control = control[i];
		if (o->ep->tos && s->key.role == ROLE_RX) /* tx: the socket's */
			udp_put_tos(&msg[i].msg_hdr, o->to.family, o->ep->tos);
		if (is_request(&o->m) && udp_sample(s, o->ep, o->m.seq, now)) {
			udp_put_stamp(&msg[i].msg_hdr, s->device_stamps);
			followed = true;
		}
	}
	s->t->sent += (uint64_t)udp_send(s->fd, msg, s->n_out, on_send_failed, s);
	s->n_out = 0;
	/* Most of the time it has left by now: read here it costs no wake-up. */
	if (followed)
		udp_read_reports(s);
}

void udp_queue(struct ep *ep, const struct fabric_msg *m)
{
	struct sock *s = ep->sock;

	if (s->n_out == UDP_BATCH)
		udp_flush(s);
	s->out[s->n_out++] = (struct out){.ep = ep, .m = *m, .to = ep->remote};
	loop_defer_arm(s->t->turn_end);
}

static void send_request(struct ep *ep, uint64_t seq, uint32_t size)
{
	struct fabric_msg m = {
		.type = ep->state == EPS_PROBING ? FABRIC_PROBE : FABRIC_HEARTBEAT,
		.length = size,
		.conn_id = ep->peer_conn_id,
		.epoch = ep->epoch,
		.seq = seq,
	};

	udp_queue(ep, &m);
}

/* The same head with the responder's stamps; t2 is never 0, which marks a request. */
void udp_send_echo(struct ep *ep, const struct fabric_msg *request, struct mono when)
{
	struct fabric_msg m = *request;

	m.type = fabric_echo_type(request->type);
	m.conn_id = ep->peer_conn_id;
	m.t2 = MAX(when.ns, 1);
	udp_queue(ep, &m);
}

/* --- what the engine wants ------------------------------------------------------- */

void udp_stats(const struct ep *ep, struct mono now, struct ep_stats *ret)
{
	hb_stats(&ep->hb, now, ret);
}

static void emit_stats(struct udp_transport *t, const struct ep *ep,
		       enum ep_event_type type, struct mono now)
{
	udp_stats(ep, now, &udp_emit(t, ep, type, STAGE_UP)->stats);
}

static void step(struct udp_transport *t, struct ep *ep, struct mono now)
{
	enum hb_do what = HB_NOTHING;
	uint64_t seq;
	uint32_t size;

	if (ep->state == EPS_READY) {
		udp_fail(t, ep, EPERR_CM_TIMEOUT, 0, "no message from the peer came");
		return;
	}
	do {
		t->rnd = mix64(t->rnd);
		what = hb_step(&ep->hb, now, t->rnd, &seq, &size);
		switch (what) {
		case HB_SEND:
			send_request(ep, seq, size);
			hb_sent(&ep->hb, seq, now);
			break;
		case HB_PROBES_DONE:
			(void)udp_emit(t, ep, EP_PROBES_DONE, STAGE_UP);
			break;
		case HB_LATE:
			emit_stats(t, ep, EP_LATE, now);
			break;
		case HB_ALIVE:
			emit_stats(t, ep, EP_ALIVE, now);
			break;
		case HB_STATS:
			emit_stats(t, ep, EP_STATS, now);
			break;
		case HB_NOTHING:
			break;
		}
	} while (what != HB_NOTHING && ep->state != EPS_FAILED);
	udp_ping_step(t, ep, now);
	if (ep->state != EPS_FAILED)
		udp_set_due(t, ep, mono_first(hb_deadline(&ep->hb), udp_ping_deadline(ep)));
}

/* --- receiving ------------------------------------------------------------------- */

static void drop(struct udp_transport *t, struct ep *ep, enum drop reason,
		 const struct addr *from)
{
	if (ep)
		ep->hb.stats.dropped++;
	t->cb.dropped(t->user, reason, from);
}

static bool tag_is_empty(const uint8_t *head)
{
	return !be64_get(head + FABRIC_LEN - 8);
}

/* Everything that a message must satisfy before it means anything. 0, or -(1 + reason). */
static int check(const struct sock *s, const struct ep *ep, const struct fabric_msg *m,
		 const struct udp_datagram *d)
{
	if (ep->sock != s || !addr_same_ip(&ep->remote, &d->from) ||
	    (ep->remote.port && ep->remote.port != d->from.port))
		return -(1 + DROP_SOURCE);
	if (m->epoch != ep->epoch)
		return -(1 + DROP_EPOCH);
	if (ep->key && !fabric_verify(d->buf, ep->key))
		return -(1 + (tag_is_empty(d->buf) ? DROP_UNAUTHENTICATED : DROP_BAD_AUTH));
	if (ep->state == EPS_FAILED || fabric_is_request(m->type) != (ep->role == ROLE_RX))
		return -(1 + DROP_STATE);
	return 0;
}

/* false: somebody sends again what was sent long ago. A probe is repeated under its number
 * when its echo was lost; a heartbeat never is. */
bool udp_take_request(struct ep *ep, const struct fabric_msg *m, struct mono when)
{
	bool probe = m->type == FABRIC_PROBE;

	if (!hb_on_message(&ep->hb, m->seq, probe, when) &&
	    !(probe && hb_is_recent(&ep->hb, m->seq)))
		return false;
	udp_send_echo(ep, m, when);
	return true;
}

static void on_request(struct udp_transport *t, struct ep *ep, const struct fabric_msg *m,
		       const struct addr *from, struct mono when)
{
	if (ep->state == EPS_READY) {
		ep->remote = *from;
		ep->state = EPS_UP;
		udp_set_due(t, ep, MONO_NEVER);
		udp_emit_up(t, ep, &ep->sock->key.local);
	}
	if (ep->state == EPS_UP) {
		if (!ep->held)
			ep->held = xcalloc(1, sizeof(*ep->held));
		*ep->held = (struct held){*m, when};
		return;
	}
	if (!udp_take_request(ep, m, when))
		drop(t, ep, DROP_REPLAY, from);
}

static void on_message(struct sock *s, const struct udp_datagram *d, struct mono when,
		       struct mono now)
{
	struct udp_transport *t = s->t;
	struct fabric_msg m;
	struct ep *ep = NULL;
	int r = fabric_decode(d->buf, d->len, &m);

	t->received++;
	if (!r) {
		ep = idtable_find(&t->eps, m.conn_id);
		r = ep ? check(s, ep, &m, d) : -(1 + DROP_UNKNOWN);
	}
	if (!r && (m.type == FABRIC_PING || m.type == FABRIC_PING_ECHO)) {
		r = udp_ping_take(ep, &m, when);
		if (!r && ep->role == ROLE_TX) /* the next one may go */
			udp_set_due(t, ep, mono_first(ep->due, t->turn_at));
		if (!r)
			return;
	}
	if (r) {
		drop(t, ep, (enum drop)(-r - 1), &d->from);
		return;
	}
	if (ep->role == ROLE_RX)
		on_request(t, ep, &m, &d->from, when);
	else if (hb_on_echo(&ep->hb, m.seq, m.t1, m.t2, m.t3, when))
		udp_sample_echo(s, ep, &m, d, now);
	else
		drop(t, ep, DROP_REPLAY, &d->from);
	/* The engine is asked when all that waited has been read, where there is anything
	 * to ask: most of the time a message is no more than a sign of life. */
	if (ep->state == EPS_PROBING || (ep->state == EPS_BEATING && ep->hb.late))
		udp_set_due(t, ep, mono_first(ep->due, t->turn_at));
}

/* The kernel's stamp on the monotonic clock; the time of reading where it cannot be
 * believed: none, the wall clock was set meanwhile, or too old. */
static struct mono stamp_time(const struct udp_datagram *d, struct mono now, int64_t offset,
			      bool stepped)
{
	int64_t age = now.ns + offset - d->stamp_ns;

	if (!d->stamp_ns || stepped || age < 0 || age > STAMP_OLD_NS)
		return now;
	return mono_add(now, -age);
}

static void drain(struct sock *s)
{
	struct udp_transport *t = s->t;
	bool full = true;

	s->drained = t->turn;
	for (int batch = 0; full && batch < BATCHES_MAX; batch++) {
		uint32_t lost;
		int n = udp_rx_read(t->rx, s->fd, &s->lost, &lost, &full);
		struct mono now = clock_now();
		int64_t offset = clock_wall_ns() - now.ns;
		bool stepped = llabs(offset - t->wall_offset) > CLOCK_STEP_NS;

		t->wall_offset = offset;
		for (; lost; lost--)
			drop(t, NULL, DROP_KERNEL, &s->local);
		for (int i = 0; i < n; i++) {
			const struct udp_datagram *d = udp_rx_get(t->rx, i);

			on_message(s, d, stamp_time(d, now, offset, stepped), now);
		}
	}
}

/* --- the turn -------------------------------------------------------------------- */

/* Stalls may be told by more than one who saw them: no time counts twice. One that is
 * short beside the heartbeat hides nothing: on a host that is always a little late,
 * putting off for it would mean never to notice anything. */
static void put_off(struct udp_transport *t, int64_t ns, struct mono now)
{
	struct ep *ep;
	uint32_t at = 0;

	if (mono_is_set(t->stalled_until))
		ns = MIN(ns, mono_sub(now, t->stalled_until));
	if (ns <= 0)
		return;
	t->stalled_until = now;
	if (ns < t->shortest / STALL_PART)
		return;
	while ((ep = idtable_next(&t->eps, &at))) {
		udp_ping_stalled(ep, ns, now);
		if (ns < ep->hb.interval / STALL_PART)
			continue;
		hb_stalled(&ep->hb, ns, now);
		if (ep->state == EPS_READY && mono_is_set(ep->due))
			udp_set_due(t, ep, mono_add(ep->due, ns));
		if (ep->state == EPS_PROBING || ep->state == EPS_BEATING)
			udp_set_due(t, ep, mono_first(ep->due, now));
	}
}

void udp_stalled(struct udp_transport *t, int64_t ns, struct mono now)
{
	put_off(t, ns, now);
}

void udp_arm(struct udp_transport *t)
{
	struct mono first = t->n_heap ? t->heap[0].at : MONO_NEVER;

	if (first.ns == t->armed.ns)
		return;
	t->armed = first;
	loop_timer_at(t->timer, first);
}

/* Step what is due. A deadline that was missed by long means that this process could not
 * run: first all sockets are read, as what waited there came in time, then the stall is
 * taken off. And no endpoint is called late before its socket was read in this turn. */
void udp_run_due(struct udp_transport *t)
{
	struct mono now = clock_now();
	int64_t late = t->n_heap ? mono_sub(now, t->heap[0].at) : 0;
	struct sock *s;

	if (late > STALL_NS) {
		DL_FOREACH(t->socks, s)
			drain(s);
		put_off(t, late, now);
	}
	for (int i = 0; t->n_heap && i < STEPS_MAX; i++) {
		struct ep *ep = t->heap[0].ep;

		/* A wake-up serves all that is due very soon. */
		if (mono_sub(ep->due, now) > hb_early(&ep->hb))
			break;
		if ((hb_silent(&ep->hb, now) || udp_ping_is_losing(ep, now)) &&
		    ep->sock->drained != t->turn)
			drain(ep->sock);
		else
			step(t, ep, now);
		if (t->n_heap && t->heap[0].ep == ep && !mono_due(ep->due, now))
			break;
	}
}

/* @readable NULL: the timer fired. */
static void run_turn(struct udp_transport *t, struct sock *readable)
{
	t->turn++;
	t->turn_at = clock_now();
	if (readable)
		drain(readable);
	else
		t->armed = MONO_NEVER;
	udp_run_due(t);
	udp_arm(t);
}

void udp_on_timer(void *user, struct mono now)
{
	struct udp_transport *t = user;

	(void)now;
	run_turn(t, NULL);
}

void udp_on_readable(void *user, int fd, unsigned events)
{
	struct sock *s = user;

	(void)fd;
	(void)events;
	run_turn(s->t, s);
	udp_read_reports(s);
	udp_arm(s->t);
}
