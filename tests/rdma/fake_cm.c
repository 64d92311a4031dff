/* SPDX-License-Identifier: BSD-2-Clause */
/* librdmacm, played by a script. */
#include "fakes.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#define ACKED_KEPT 64

enum id_state {
	ID_IDLE,
	ID_BOUND,
	ID_RESOLVING,
	ID_ADDR,
	ID_ROUTING,
	ID_ROUTE,
	ID_CONNECTING,
	ID_REQUESTED, /* by a peer */
	ID_ACCEPTED,
	ID_UP,
	ID_OVER
};

struct fk_id {
	struct fk_object o;
	struct rdma_cm_id id;
	enum id_state state;
	int unacked; /* fetched events that its destroy would wait for */
	bool listens;
	uint16_t fixed_port; /* bound as a source: a second one is in use */
	uint8_t ack_timeout;
};

struct cm_event {
	struct rdma_cm_event ev;
	struct fk_id *account; /* whose destroy waits for the acknowledgement */
	int lib_errno;
	bool fetched;
	struct cm_event *next;
	uint8_t data[256];
};

struct channel {
	struct fk_object o;
	struct rdma_event_channel c;
	int dead; /* errno of every read */
};

static struct cm_event *first, *last;
static int n_events;
static struct cm_event *unacked; /* the one that is fetched */
static struct cm_event *acked[ACKED_KEPT];
static size_t n_acked;
static struct channel *the_channel;
static pthread_t owner;
static bool has_owner;
static struct ibv_context *cm_context;

#define ID_OF(i) ((struct fk_id *)((uint8_t *)(i)-offsetof(struct fk_id, id)))

void fk_cm_reset(void)
{
	while (first) {
		struct cm_event *e = first;

		first = e->next;
		free(e);
	}
	last = NULL;
	n_events = 0;
	for (size_t i = 0; i < ACKED_KEPT; i++) {
		free(acked[i]);
		acked[i] = NULL;
	}
	free(unacked);
	unacked = NULL;
	the_channel = NULL;
	has_owner = false;
	cm_context = NULL;
}

void fk_cm_free(struct fk_object *o)
{
	if (o->kind == FK_CHANNEL)
		(void)close(((struct channel *)o)->c.fd);
}

void fk_forget_owner(void)
{
	has_owner = false;
}

/* One thread owns all of it: an event that another thread destroys the id of is how
 * such programs die. */
static struct fk_id *enter(struct rdma_cm_id *id, const char *call)
{
	struct fk_id *f = id ? ID_OF(id) : NULL;

	fk.calls++;
	if (!has_owner) {
		owner = pthread_self();
		has_owner = true;
	}
	if (!pthread_equal(owner, pthread_self()) &&
	    !(fk.iwarp_thread && str_eq(call, "rdma_connect")))
		fk_wrong("%s from another thread", call);
	if (f)
		fk_alive(&f->o, FK_ID, call);
	return f;
}

static struct fk_id *id_new(struct rdma_event_channel *c, void *context)
{
	struct fk_id *f =
		fk_make(FK_ID, sizeof(*f), the_channel ? &the_channel->o : NULL);

	f->id.channel = c;
	f->id.context = context;
	fk.last_id = &f->id;
	return f;
}

/* ---- the script's side */

static struct cm_event *queue(struct fk_id *f, enum rdma_cm_event_type type, int status)
{
	struct cm_event *e = xcalloc(1, sizeof(*e));

	fk_alive(&f->o, FK_ID, "queueing an event");
	e->ev.id = &f->id;
	e->ev.event = type;
	e->ev.status = status;
	e->account = f;
	fk_lock();
	if (last)
		last->next = e;
	else
		first = e;
	last = e;
	n_events++;
	fk_unlock();
	if (the_channel && !the_channel->dead)
		fk_bell_ring(the_channel->c.fd);
	return e;
}

void fk_event(struct rdma_cm_id *id, enum rdma_cm_event_type type, int status)
{
	(void)queue(ID_OF(id), type, status);
}

void fk_event_errno(struct rdma_cm_id *id, enum rdma_cm_event_type type, int status,
		    int lib_errno)
{
	queue(ID_OF(id), type, status)->lib_errno = lib_errno;
}

void fk_event_data(struct rdma_cm_id *id, enum rdma_cm_event_type type, int status,
		   const void *data, size_t len, uint8_t padded)
{
	struct cm_event *e = queue(ID_OF(id), type, status);

	if (len)
		memcpy(e->data, data, len);
	e->ev.param.conn.private_data = padded ? e->data : NULL;
	e->ev.param.conn.private_data_len = padded;
}

void fk_event_ud(struct rdma_cm_id *id, const struct ibv_ah_attr *attr, uint32_t qpn)
{
	struct cm_event *e = queue(ID_OF(id), RDMA_CM_EVENT_ESTABLISHED, 0);

	e->ev.param.ud.ah_attr = *attr;
	e->ev.param.ud.qp_num = qpn;
	e->ev.param.ud.qkey = RDMA_UDP_QKEY;
}

struct rdma_cm_id *fk_request(struct rdma_cm_id *listener, const void *data, size_t len)
{
	struct fk_id *l = ID_OF(listener), *f;
	struct cm_event *e;

	fk_alive(&l->o, FK_ID, "a request");
	if (!l->listens)
		fk_wrong("a request to an id that does not listen");
	f = id_new(listener->channel, listener->context);
	f->state = ID_REQUESTED;
	f->id.verbs = cm_context;
	f->id.port_num = 1;
	f->id.ps = listener->ps;
	memcpy(&f->id.route.addr.dst_storage, &fk.request_from,
	       sizeof(fk.request_from));
	e = queue(f, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
	e->ev.listen_id = listener;
	e->account = l;
	memcpy(e->data, data, len);
	e->ev.param.conn.private_data = e->data;
	e->ev.param.conn.private_data_len = 56;
	return &f->id;
}

int fk_cm_queued(void)
{
	return n_events;
}

void fk_kill_cm(struct rdma_event_channel *c, int err)
{
	struct channel *ch =
		(struct channel *)((uint8_t *)c - offsetof(struct channel, c));

	ch->dead = err;
	fk_bell_kill(c->fd);
}

/* ---- the library's */

struct rdma_event_channel *rdma_create_event_channel(void)
{
	(void)enter(NULL, "rdma_create_event_channel");
	if (fk_fails_p("rdma_create_event_channel"))
		return NULL;
	the_channel = fk_make(FK_CHANNEL, sizeof(*the_channel), NULL);
	the_channel->c.fd = fk_bell_new();
	return &the_channel->c;
}

void rdma_destroy_event_channel(struct rdma_event_channel *c)
{
	(void)enter(NULL, "rdma_destroy_event_channel");
	assert(&the_channel->c == c);
	(void)close(c->fd);
	fk_destroy(&the_channel->o, FK_CHANNEL, "rdma_destroy_event_channel");
	the_channel = NULL;
}

int rdma_create_id(struct rdma_event_channel *c, struct rdma_cm_id **id, void *context,
		   enum rdma_port_space ps)
{
	int r;

	(void)enter(NULL, "rdma_create_id");
	if (fk_fails("rdma_create_id", -1, &r))
		return r;
	*id = &id_new(c, context)->id;
	(*id)->ps = ps;
	return 0;
}

static void purge(struct fk_id *f)
{
	struct cm_event **at = &first;

	last = NULL;
	while (*at) {
		struct cm_event *e = *at;

		if (e->account == f && e->ev.event == RDMA_CM_EVENT_CONNECT_REQUEST) {
			/* The kernel drops the requests of a listener with it, and the
			 * ids that nobody saw. */
			struct fk_id *child = ID_OF(e->ev.id);

			child->o.children = 0;
			fk_destroy(&child->o, FK_ID, "purging a request");
		} else if (ID_OF(e->ev.id) != f) {
			last = e;
			at = &e->next;
			continue;
		}
		*at = e->next;
		free(e);
		n_events--;
		if (the_channel && !the_channel->dead)
			fk_bell_take(the_channel->c.fd);
	}
}

int rdma_destroy_id(struct rdma_cm_id *id)
{
	struct fk_id *f = enter(id, "rdma_destroy_id");
	int r;

	if (!fk_wait_blocked("rdma_destroy_id"))
		return errno = EINTR, -1;
	fk_lock();
	if (f->unacked)
		fk_wrong(
			"rdma_destroy_id would wait for ever: %d events not acknowledged",
			f->unacked);
	if (id->qp)
		fk_wrong("rdma_destroy_id: its QP is alive");
	if (fk_fails("rdma_destroy_id", -1, &r)) {
		fk_unlock();
		return r;
	}
	purge(f);
	fk_destroy(&f->o, FK_ID, "rdma_destroy_id");
	fk_unlock();
	return 0;
}

static void bind_device(struct fk_id *f)
{
	if (fk.no_device)
		return;
	if (!cm_context)
		cm_context = fk.verbs;
	f->id.verbs = cm_context;
	f->id.port_num = 1;
}

int rdma_bind_addr(struct rdma_cm_id *id, struct sockaddr *addr)
{
	struct fk_id *f = enter(id, "rdma_bind_addr");
	int r;

	if (fk_fails("rdma_bind_addr", -1, &r))
		return r;
	if (((struct sockaddr_in *)addr)->sin_addr.s_addr == 0 &&
	    addr->sa_family == AF_INET)
		fk_wrong("rdma_bind_addr: a wildcard");
	f->state = ID_BOUND;
	bind_device(f);
	return 0;
}

int rdma_listen(struct rdma_cm_id *id, int backlog)
{
	struct fk_id *f = enter(id, "rdma_listen");
	int r;

	(void)backlog;
	if (fk_fails("rdma_listen", -1, &r))
		return r;
	if (f->state != ID_BOUND)
		fk_wrong("rdma_listen: not bound");
	f->listens = true;
	fk.listens++;
	return 0;
}

static void called(const char *call, struct rdma_cm_id *id)
{
	if (fk.on_call)
		fk.on_call(call, id);
}

static uint16_t port_of(const struct sockaddr *a)
{
	return a->sa_family == AF_INET6 ? ((const struct sockaddr_in6 *)a)->sin6_port
					: ((const struct sockaddr_in *)a)->sin_port;
}

int rdma_resolve_addr(struct rdma_cm_id *id, struct sockaddr *src, struct sockaddr *dst,
		      int timeout_ms)
{
	struct fk_id *f = enter(id, "rdma_resolve_addr");
	int r;

	if (!src || timeout_ms <= 0)
		fk_wrong("rdma_resolve_addr without source or timeout");
	if (port_of(src))
		fk_wrong(
			"rdma_resolve_addr: a fixed source port is in use the next time");
	if (src->sa_family != dst->sa_family)
		return errno = EINVAL, -1;
	if (fk_fails("rdma_resolve_addr", -1, &r))
		return r;
	if (f->state != ID_IDLE)
		fk_wrong("rdma_resolve_addr: a used id");
	f->state = ID_RESOLVING;
	called("rdma_resolve_addr", id);
	return 0;
}

int rdma_resolve_route(struct rdma_cm_id *id, int timeout_ms)
{
	struct fk_id *f = enter(id, "rdma_resolve_route");
	int r;

	if (timeout_ms <= 0)
		fk_wrong("rdma_resolve_route without timeout");
	if (!fk_wait_blocked("rdma_resolve_route"))
		return errno = EINTR, -1;
	if (fk_fails("rdma_resolve_route", -1, &r))
		return r;
	if (f->state != ID_ADDR)
		fk_wrong("rdma_resolve_route: the address is not resolved");
	f->state = ID_ROUTING;
	called("rdma_resolve_route", id);
	return 0;
}

int rdma_create_qp(struct rdma_cm_id *id, struct ibv_pd *pd,
		   struct ibv_qp_init_attr *attr)
{
	(void)enter(id, "rdma_create_qp");
	int r;

	if (fk_fails("rdma_create_qp", -1, &r))
		return r;
	if (id->qp)
		fk_wrong("rdma_create_qp: the id has one");
	if (!id->verbs || pd->context != id->verbs ||
	    attr->send_cq->context != id->verbs)
		fk_wrong("rdma_create_qp: PD or CQ of another context");
	fk_qp_of_id(id, pd, attr);
	return 0;
}

void rdma_destroy_qp(struct rdma_cm_id *id)
{
	(void)enter(id, "rdma_destroy_qp");
	if (!id->qp)
		fk_wrong("rdma_destroy_qp: there is none");
	fk_qp_gone(id->qp, "rdma_destroy_qp");
	id->qp = NULL;
}

static void check_param(const struct rdma_cm_id *id, const struct rdma_conn_param *p,
			const char *call, uint8_t room)
{
	if (!p)
		fk_wrong("%s without parameters", call);
	if (p->private_data_len > room)
		fk_wrong("%s: %u bytes of private data where %u fit", call,
			 p->private_data_len, room);
	if (id->ps == RDMA_PS_UDP && !p->qp_num)
		fk_wrong("%s without the number of a queue pair", call);
	if (id->ps != RDMA_PS_UDP && (p->rnr_retry_count >= 7 || p->retry_count > 7))
		fk_wrong("%s: would retry for ever", call);
}

int rdma_connect(struct rdma_cm_id *id, struct rdma_conn_param *p)
{
	struct fk_id *f = enter(id, "rdma_connect");
	int r;

	check_param(id, p, "rdma_connect", id->ps == RDMA_PS_UDP ? 180 : 56);
	if (!id->qp && !p->qp_num)
		fk_wrong("rdma_connect without QP");
	if (f->state != ID_ROUTE)
		fk_wrong("rdma_connect: no route yet");
	if (!fk_wait_blocked("rdma_connect"))
		return errno = EINTR, -1;
	if (fk_fails("rdma_connect", -1, &r))
		return r;
	f->state = ID_CONNECTING;
	fk.connects++;
	called("rdma_connect", id);
	return 0;
}

int rdma_accept(struct rdma_cm_id *id, struct rdma_conn_param *p)
{
	struct fk_id *f = enter(id, "rdma_accept");
	int r;

	check_param(id, p, "rdma_accept", id->ps == RDMA_PS_UDP ? 136 : 196);
	if (!id->qp && !p->qp_num)
		fk_wrong("rdma_accept without QP");
	if (f->state != ID_REQUESTED)
		fk_wrong("rdma_accept: nothing to accept");
	if (fk_fails("rdma_accept", -1, &r))
		return r;
	f->state = ID_ACCEPTED;
	fk.accepts++;
	called("rdma_accept", id);
	return 0;
}

int rdma_reject(struct rdma_cm_id *id, const void *data, uint8_t len)
{
	struct fk_id *f = enter(id, "rdma_reject");
	int r;

	if (len > 136)
		fk_wrong("rdma_reject: %u bytes of private data", len);
	if (f->state != ID_REQUESTED)
		fk_wrong("rdma_reject: nothing to reject");
	f->state = ID_OVER;
	memcpy(fk.reject_data, data, len);
	fk.reject_len = len;
	fk.rejects++;
	if (fk_fails("rdma_reject", -1, &r))
		return r;
	called("rdma_reject", id);
	return 0;
}

int rdma_disconnect(struct rdma_cm_id *id)
{
	struct fk_id *f = enter(id, "rdma_disconnect");
	bool was = f->state == ID_UP || f->state == ID_ACCEPTED;
	int r;

	if (!fk_wait_blocked("rdma_disconnect"))
		return errno = EINTR, -1;
	fk.disconnects++;
	if (id->qp)
		fk_flush(id->qp); /* the library moves it to the error state */
	if (fk_fails("rdma_disconnect", -1, &r))
		return r;
	f->state = ID_OVER;
	if (!was) /* the peer was faster */
		return errno = EINVAL, -1;
	called("rdma_disconnect", id);
	return 0;
}

int rdma_establish(struct rdma_cm_id *id)
{
	struct fk_id *f = enter(id, "rdma_establish");
	int r;

	if (fk_fails("rdma_establish", -1, &r))
		return r;
	if (f->state != ID_CONNECTING)
		return errno = EINVAL, -1;
	f->state = ID_UP;
	return 0;
}

int rdma_init_qp_attr(struct rdma_cm_id *id, struct ibv_qp_attr *attr, int *mask)
{
	int r;

	(void)enter(id, "rdma_init_qp_attr");
	if (!id->verbs)
		fk_wrong("rdma_init_qp_attr: the id has no device");
	if (fk_fails("rdma_init_qp_attr", -1, &r))
		return r;
	if (id->ps != RDMA_PS_UDP) {
		*mask = IBV_QP_STATE;
		return 0;
	}
	*mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY;
	attr->pkey_index = 0;
	attr->port_num = id->port_num;
	attr->qkey = RDMA_UDP_QKEY;
	return 0;
}

int rdma_notify(struct rdma_cm_id *id, enum ibv_event_type event)
{
	int r;

	(void)enter(id, "rdma_notify");
	if (event != IBV_EVENT_COMM_EST)
		fk_wrong("rdma_notify of event %d", (int)event);
	fk.notifies++;
	return fk_fails("rdma_notify", -1, &r) ? r : 0;
}

int rdma_set_option(struct rdma_cm_id *id, int level, int name, void *value, size_t len)
{
	struct fk_id *f = enter(id, "rdma_set_option");
	int r;

	if (level != RDMA_OPTION_ID || len != 1)
		fk_wrong("rdma_set_option: these options are one byte");
	if (fk_fails("rdma_set_option", -1, &r))
		return r;
	if (name == RDMA_OPTION_ID_ACK_TIMEOUT) {
		if (f->state >= ID_CONNECTING && f->state != ID_REQUESTED) {
			fk.late_options++;
			return errno = EINVAL, -1;
		}
		f->ack_timeout = *(uint8_t *)value;
	}
	return 0;
}

/* What the kernel's side of the id has become by the time its event is fetched. */
static void advance(struct fk_id *f, enum rdma_cm_event_type type)
{
	static const struct {
		enum rdma_cm_event_type type;
		enum id_state from, to;
	} rows[] = {
		{RDMA_CM_EVENT_ADDR_RESOLVED, ID_RESOLVING, ID_ADDR},
		{RDMA_CM_EVENT_ADDR_ERROR, ID_RESOLVING, ID_BOUND},
		{RDMA_CM_EVENT_ROUTE_RESOLVED, ID_ROUTING, ID_ROUTE},
		{RDMA_CM_EVENT_ROUTE_ERROR, ID_ROUTING, ID_ADDR},
		{RDMA_CM_EVENT_ESTABLISHED, ID_CONNECTING, ID_UP},
		{RDMA_CM_EVENT_ESTABLISHED, ID_ACCEPTED, ID_UP},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (rows[i].type == type && rows[i].from == f->state) {
			f->state = rows[i].to;
			if (type == RDMA_CM_EVENT_ADDR_RESOLVED)
				bind_device(f);
			return;
		}
	if (type == RDMA_CM_EVENT_DISCONNECTED && f->id.qp)
		fk_flush(f->id.qp);
}

int rdma_get_cm_event(struct rdma_event_channel *c, struct rdma_cm_event **ret)
{
	struct cm_event *e;

	(void)c;
	(void)enter(NULL, "rdma_get_cm_event");
	fk.get_cm++;
	if (the_channel->dead)
		return errno = the_channel->dead, -1;
	if (fk.got[FK_CM_EVENT] != fk.acked[FK_CM_EVENT])
		fk_wrong("rdma_get_cm_event: events are fetched one at a time");
	fk_lock();
	e = first;
	if (!e) {
		fk_unlock();
		return errno = EAGAIN, -1;
	}
	first = e->next;
	if (!first)
		last = NULL;
	n_events--;
	fk_bell_take(the_channel->c.fd);
	e->account->unacked++;
	e->fetched = true;
	unacked = e;
	fk.got[FK_CM_EVENT]++;
	fk_unlock();
	advance(ID_OF(e->ev.id), e->ev.event);
	*ret = &e->ev;
	if (e->lib_errno)
		errno = e->lib_errno;
	return 0;
}

int rdma_ack_cm_event(struct rdma_cm_event *ev)
{
	struct cm_event *e = (struct cm_event *)ev;

	(void)enter(NULL, "rdma_ack_cm_event");
	if (!e->fetched || e->account->unacked <= 0)
		fk_wrong("rdma_ack_cm_event: acknowledged twice");
	e->account->unacked--;
	fk.acked[FK_CM_EVENT]++;
	/* Nobody may look at it any more; kept for a while, so that a second
	 * acknowledgement finds it. */
	memset(&e->ev, 0xa5, sizeof(e->ev));
	memset(e->data, 0xa5, sizeof(e->data));
	e->fetched = false;
	unacked = NULL;
	free(acked[n_acked % ACKED_KEPT]);
	acked[n_acked++ % ACKED_KEPT] = e;
	return 0;
}

const char *rdma_event_str(enum rdma_cm_event_type event)
{
	return event == RDMA_CM_EVENT_ESTABLISHED ? "established" : "event";
}
