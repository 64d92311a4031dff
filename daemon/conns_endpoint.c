/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The endpoint of a connection, whoever has it: the udp transport here, or the worker of
 * its device. What it is told to do, and what is kept of it.
 */
#include <stdio.h>
#include <stdlib.h>

#include "manager.h"

/* rc: 4.096 us * 2^14 = 67 ms per try. Silence is noticed by heartbeats; this only
 * bounds how long a dead QP keeps trying. */
#define RC_ACK_TIMEOUT 14
#define RC_RETRY_COUNT 7

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

static void forget_rounds(struct conn_entry *e)
{
	if (e->rounds)
		hist_done(e->rounds);
	free(e->rounds);
	e->rounds = NULL;
}

void conn_endpoint_done(struct conn_entry *e)
{
	forget_session(e);
	forget_rounds(e);
}

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

void conn_endpoint_start(struct manager *m, struct conn_entry *e, struct ep_start *s)
{
	complete_start(m, e, s);
	e->ep_epoch = s->epoch;
	forget_rounds(e);
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

void conn_endpoint_tell(struct manager *m, struct conn_entry *e, enum wm_type type,
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

void conn_endpoint_reset(struct manager *m, struct conn_entry *e, uint64_t epoch)
{
	if (!e->has_endpoint || (e->worker_device[0] && !endpoint_worker(m, e))) {
		e->has_endpoint = false;
		post_reset_done(m, e, epoch);
		return;
	}
	if (e->worker_device[0] && teardown_hangs(m, e)) /* conns_worker_lost() tells of it */
		worker_fail(endpoint_worker(m, e), "it does not tear an endpoint down");
	else if (e->worker_device[0])
		conn_endpoint_tell(m, e, WM_EP_RESET, epoch);
	else
		udp_ep_reset(m->udp, e->c->id, epoch);
}

void conns_ep_rounds(struct manager *m, const struct wm_ep_rounds *r)
{
	struct conn_entry *e = conn_by_id(m, r->conn_id);

	if (!e || !e->has_endpoint || e->ep_epoch != r->epoch)
		return;
	forget_rounds(e);
	e->rounds = xcalloc(1, sizeof(*e->rounds));
	(void)hist_import(e->rounds, r->data, r->length);
}
