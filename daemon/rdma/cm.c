/* SPDX-License-Identifier: BSD-2-Clause */
#include "cm.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

#include "log.h"

#define CM_NODE "/dev/infiniband/rdma_cm"
/* How long a torn-down connection waits for the peer's word; then it goes without. */
#define DISCONNECT_WAIT (200 * NSEC_PER_MSEC)
#define POST_WAIT	(2 * NSEC_PER_SEC)

void cm_init(struct cm *cm, struct worker *w)
{
	*cm = (struct cm){.w = w};
	endpoint_table_init(&cm->table, w->max_rc, UD_MAX);
}

/* ctl passes on as fast as main reads: many ends at once may be more than the queue
 * holds, but main reads what it is told, or is at an end itself. */
void cm_post(struct cm *cm, const union cm_message *m)
{
	struct timespec moment = {0, NSEC_PER_MSEC};
	int64_t since = clock_now().ns;

	if (cm->gone)
		return;
	while (!ring_push(&cm->w->cm_out, m)) {
		wake(cm->w->wake_ctl);
		if (clock_now().ns - since > POST_WAIT) {
			log_err("main takes no messages: giving up");
			_exit(1);
		}
		(void)nanosleep(&moment, NULL);
	}
	wake(cm->w->wake_ctl);
}

void cm_event(struct cm *cm, const struct ep_event *ev)
{
	union cm_message m;

	memset(&m, 0, sizeof(m));
	wm_header(&m, WM_EP_EVENT, sizeof(m.event), cm->w->generation);
	m.event.event = *ev;
	cm_post(cm, &m);
}

void cm_goodbye(struct cm *cm, enum wm_goodbye_why why, const char *text)
{
	if (cm->gone)
		return;
	worker_goodbye(cm->w, &cm->w->cm_out, why, "%s", text);
	cm->gone = true;
}

void cm_stage(struct cm *cm, struct endpoint *ep, enum ep_stage stage)
{
	cm_event(cm, &(struct ep_event){.conn_id = ep->start.conn_id,
					.epoch = ep->start.epoch,
					.type = EP_STAGE,
					.stage = (uint8_t)stage});
}

static void take_note_aside(struct cm *cm)
{
	struct hot_note n;

	while (ring_pop(&cm->w->hot_to_cm, &n)) {
		if (cm->n_notes == cm->notes_size) {
			cm->notes_size = cm->notes_size ? 2 * cm->notes_size : 64;
			cm->notes = xrealloc(cm->notes, cm->notes_size,
					     sizeof(*cm->notes));
		}
		cm->notes[cm->n_notes++] = n;
	}
}

/* A full queue means that hot is about to empty it, for which it may need room for its
 * answers. */
void cm_order_hot(struct cm *cm, const struct hot_order *o)
{
	struct timespec moment = {0, 50 * NSEC_PER_USEC};

	while (!ring_push(&cm->w->cm_to_hot, o)) {
		wake(cm->w->wake_hot);
		take_note_aside(cm);
		(void)nanosleep(&moment, NULL);
	}
	wake(cm->w->wake_hot);
}

void cm_arm(struct cm *cm, struct endpoint *ep, struct mono at)
{
	heap_set(&cm->timers, &ep->timer, at);
}

uint8_t cm_port_num(const struct endpoint *ep)
{
	return ep->ud ? ep->ud->num : ep->id ? ep->id->port_num : 0;
}

static void tell_path(struct cm *cm, struct endpoint *ep)
{
	const struct ep_path *p = &ep->path;
	bool roce = (p->known & EP_PATH_SGID) && p->gid_type != EP_GID_IB;

	cm_order_hot(cm, &(struct hot_order){
				 .type = HOT_UP,
				 .ep = ep,
				 .path_mtu = p->mtu,
				 .soft_roce = roce && cm->ctx.soft_roce});
}

void cm_up(struct cm *cm, struct endpoint *ep, const struct ep_path *path)
{
	struct ep_event ev = {.conn_id = ep->start.conn_id,
			      .epoch = ep->start.epoch,
			      .type = EP_UP,
			      .stage = STAGE_UP,
			      .port = cm_port_num(ep),
			      .addr = ep->local,
			      .remote = ep->remote,
			      .path = *path};

	ep->path = *path;
	ep->state = EPS_UP;
	cm_arm(cm, ep, MONO_NEVER);
	tell_path(cm, ep);
	cm_event(cm, &ev);
}

void cm_path(struct cm *cm, struct endpoint *ep, const struct ep_path *path)
{
	if (ep->state != EPS_UP || !memcmp(&ep->path, path, sizeof(*path)))
		return;
	ep->path = *path;
	if (ep->attached && !ep->detaching)
		tell_path(cm, ep);
	cm_event(cm, &(struct ep_event){.conn_id = ep->start.conn_id,
					.epoch = ep->start.epoch,
					.type = EP_PATH,
					.stage = STAGE_UP,
					.port = cm_port_num(ep),
					.path = *path});
}

static void detach(struct cm *cm, struct endpoint *ep)
{
	if (!ep->attached || ep->detaching)
		return;
	ep->detaching = true;
	cm_order_hot(cm, &(struct hot_order){.type = HOT_DETACH, .ep = ep});
}

void cm_disconnect(struct cm *cm, struct endpoint *ep)
{
	int r;

	if (!ep->connected || !ep->id)
		return;
	ep->connected = false;
	r = CM_CALL(cm, rdma_disconnect, ep->id);
	if (r < 0)
		ep->disconnected = true;
}

void cm_destroy_id(struct cm *cm, struct rdma_cm_id *id)
{
	busy_enter(&cm->w->cm_busy, "rdma_destroy_id", true);
	if (rdma_destroy_id(id))
		log_err("rdma_destroy_id failed (%m): the id is leaked");
	busy_leave(&cm->w->cm_busy);
}

static uint8_t stage_of(const struct endpoint *ep)
{
	static const enum ep_stage stages[EPS__MAX] = {
		[EPS_RESOLVE_ADDR] = STAGE_RESOLVE_ADDR,
		[EPS_RESOLVE_ROUTE] = STAGE_RESOLVE_ROUTE,
		[EPS_CONNECT] = STAGE_CONNECT,
		[EPS_EXPECT] = STAGE_LISTEN,
		[EPS_ACCEPT] = STAGE_CONNECT,
		[EPS_UP] = STAGE_UP,
	};

	return (uint8_t)stages[ep->state];
}

void cm_fail(struct cm *cm, struct endpoint *ep, const struct reason *why, int status)
{
	struct ep_event ev = {
		.conn_id = ep->start.conn_id,
		.epoch = ep->start.epoch,
		.type = EP_ERROR,
		.stage = stage_of(ep),
		.error = (uint8_t)why->error,
		.status = status,
		.port = cm_port_num(ep),
		.addr = ep->local,
		.remote = ep->remote,
	};

	if (ep->state == EPS_FAILED || ep->state == EPS_CLOSING)
		return;
	(void)str_copy(ev.text, sizeof(ev.text), why->text);
	ep->state = EPS_FAILED;
	cm_arm(cm, ep, MONO_NEVER);
	ud_again_end(cm, ep);
	detach(cm, ep);
	cm_event(cm, &ev);
}

void cm_fail_call(struct cm *cm, struct endpoint *ep, const char *call, int r)
{
	struct reason why;

	reason_call(call, r, &why);
	cm_fail(cm, ep, &why, r);
}

static void reset_done(struct cm *cm, uint64_t conn_id, uint64_t epoch)
{
	cm_event(cm, &(struct ep_event){.conn_id = conn_id,
					.epoch = epoch,
					.type = EP_RESET_DONE});
}

void cm_close(struct cm *cm, struct endpoint *ep, uint64_t epoch, struct mono now)
{
	ep->reset_epoch = epoch;
	if (ep->state == EPS_CLOSING)
		return;
	cm_stage(cm, ep, STAGE_TEARDOWN);
	ep->parked = cm_must_park(cm, ep);
	ep->state = EPS_CLOSING;
	cm_arm(cm, ep, MONO_NEVER);
	ud_again_end(cm, ep);
	detach(cm, ep);
	if (ep->connected && !ep->parked) {
		cm_disconnect(cm, ep);
		cm_arm(cm, ep, mono_add(now, DISCONNECT_WAIT));
	} else {
		ep->disconnected = true;
	}
	cm_close_step(cm, ep, now);
}

void cm_close_step(struct cm *cm, struct endpoint *ep, struct mono now)
{
	uint64_t conn_id = ep->start.conn_id, epoch = ep->reset_epoch;

	if (ep->state != EPS_CLOSING)
		return;
	if (mono_due(ep->timer.at, now)) {
		ep->disconnected = true;    /* or as good as */
		cm_arm(cm, ep, MONO_NEVER); /* what is left to wait for wakes us itself */
	}
	if (ep->attached || !ep->disconnected)
		return;
	if (!cm_connect_over(cm, ep, now))
		return;
	if (ep->parked)
		cm_park(cm, ep);
	cm_arm(cm, ep, MONO_NEVER);
	(void)endpoint_close(ep, &cm->w->cm_busy);
	ud_leave(cm, ep);
	endpoint_free(&cm->table, ep);
	atomic_store(&cm->w->endpoints, cm->table.used);
	reset_done(cm, conn_id, epoch);
}

static void reset(struct cm *cm, uint64_t conn_id, uint64_t epoch, struct mono now)
{
	struct endpoint *ep = endpoint_by_conn(&cm->table, conn_id);

	if (ep)
		cm_close(cm, ep, epoch, now);
	else
		reset_done(cm, conn_id, epoch);
}

static void begin_exit(struct cm *cm, struct mono now)
{
	cm->exiting = true;
	cm_unlisten_all(cm);
	for (uint32_t i = 0; i < cm->table.n; i++) {
		struct endpoint *ep = cm->table.slots[i];

		if (ep)
			cm_close(cm, ep, ep->start.epoch, now);
	}
}

void cm_take_commands(struct cm *cm, struct mono now)
{
	struct cm_command c;

	while (!cm->gone && ring_pop(&cm->w->ctl_to_cm, &c)) {
		switch (c.type) {
		case WM_LISTEN:
			cm_listen(cm, &c.addr, c.start.transport == TRANSPORT_UD);
			break;
		case WM_UNLISTEN:
			cm_unlisten(cm, &c.addr, c.start.transport == TRANSPORT_UD);
			break;
		case WM_EP_START:
			cm_start(cm, &c.start, now);
			break;
		case WM_EP_RESET:
			reset(cm, c.start.conn_id, c.start.epoch, now);
			break;
		case WM_EXIT:
			begin_exit(cm, now);
			break;
		default:
			break;
		}
	}
}

static void of_endpoint(struct cm *cm, struct endpoint *ep, const struct hot_note *n,
			struct mono now)
{
	struct reason why;

	switch (n->type) {
	case HOT_DETACHED:
		ep->attached = false;
		cm_close_step(cm, ep, now);
		break;
	case HOT_FAILED:
		reason_completion((enum ibv_wc_status)n->wc_status, n->vendor_err,
				  n->sending, &why);
		cm_fail(cm, ep, &why, n->wc_status);
		break;
	case HOT_AH_WANTED:
		ah_wanted(cm, ep, n);
		break;
	case HOT_AH_TAKEN:
	case HOT_UD_FAILED:
	case HOT_UD_STOPPED:
		break;
	}
}

static void take_note(struct cm *cm, const struct hot_note *n, struct mono now)
{
	struct endpoint *ep;

	if (n->type == HOT_UD_FAILED) {
		ud_port_failed(cm, n, now);
		return;
	}
	if (n->type == HOT_UD_STOPPED) {
		ud_port_stopped(cm, n->port);
		return;
	}
	if (n->type == HOT_AH_TAKEN) {
		ah_put(cm, n->old);
		return;
	}
	ep = endpoint_by_handle(&cm->table, n->handle);
	if (ep)
		of_endpoint(cm, ep, n, now);
}

void cm_take_notes(struct cm *cm, struct mono now)
{
	struct hot_note n;

	/* Handling one may take more aside. */
	while (cm->n_notes) {
		n = cm->notes[0];
		memmove(cm->notes, cm->notes + 1, --cm->n_notes * sizeof(n));
		take_note(cm, &n, now);
	}
	while (!cm->n_notes && ring_pop(&cm->w->hot_to_cm, &n))
		take_note(cm, &n, now);
	if (cm->n_notes)
		wake(cm->w->wake_cm);
}

/* Our own timers: the kernel's go up to minutes. */
static void expired(struct cm *cm, struct endpoint *ep)
{
	static const struct {
		enum ep_error error;
		const char *text;
	} rows[EPS__MAX] = {
		[EPS_RESOLVE_ADDR] = {EPERR_NO_NEIGHBOUR,
				      "address not resolved in time"},
		[EPS_RESOLVE_ROUTE] = {EPERR_NO_PATH, "route not resolved in time"},
		[EPS_CONNECT] = {EPERR_CM_TIMEOUT, "no answer to connect in time"},
		[EPS_EXPECT] = {EPERR_CM_TIMEOUT, "the peer did not connect in time"},
		[EPS_ACCEPT] = {EPERR_CM_TIMEOUT,
				"the peer did not complete the connection"},
	};
	struct reason why = {.error = rows[ep->state].error};

	(void)str_copy(why.text, sizeof(why.text), rows[ep->state].text);
	cm_fail(cm, ep, &why, -ETIMEDOUT);
}

static void of_timer(struct cm *cm, struct endpoint *ep, struct mono now)
{
	if (ep->state == EPS_UP) {
		cm_arm(cm, ep, MONO_NEVER);
		ud_again_timer(cm, ep, now);
	} else if (ep->state == EPS_CLOSING) {
		cm_close_step(cm, ep, now);
	} else {
		expired(cm, ep);
	}
}

void cm_timers(struct cm *cm, struct mono now)
{
	struct heap_node *first;

	while ((first = heap_first(&cm->timers)) && mono_due(first->at, now))
		of_timer(cm, container_of(first, struct endpoint, timer), now);
	if (mono_due(cm->parked_at, now))
		cm_unpark(cm, now, false);
	if (mono_due(cm->ports_at, now))
		ud_ports_timer(cm, now);
	if (mono_due(cm->refresh_at, now))
		ud_refresh(cm, now);
}

struct mono cm_deadline(const struct cm *cm)
{
	const struct heap_node *first = heap_first(&cm->timers);
	struct mono d = mono_first(mono_first(cm->parked_at, cm->ports_at),
				   cm->refresh_at);

	return first ? mono_first(d, first->at) : d;
}

int cm_channel_open(struct cm *cm)
{
	int flags;

	if (cm->channel)
		return 0;
	/* The library waits 5 s for a node that is missing. */
	if (access(CM_NODE, R_OK | W_OK))
		return -errno;
	busy_enter(&cm->w->cm_busy, "rdma_create_event_channel", false);
	cm->channel = rdma_create_event_channel();
	busy_leave(&cm->w->cm_busy);
	if (!cm->channel)
		return -errno;
	flags = fcntl(cm->channel->fd, F_GETFL);
	if (flags < 0 || fcntl(cm->channel->fd, F_SETFL, flags | O_NONBLOCK) < 0)
		return -errno;
	return 0;
}

static bool is_ours(const struct worker *w, struct ibv_device *dev)
{
	int index = ibv_get_device_index(dev);

	if (index >= 0)
		return (uint32_t)index == w->device_index;
	return str_eq(ibv_get_device_name(dev), w->device);
}

static int set_nonblocking(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	return flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0 ? -errno : 0;
}

int cm_check_device(struct cm *cm, struct rdma_cm_id *id, const struct addr *what,
		    const char **ret_call)
{
	char text[EP_TEXT_MAX], a[ADDR_TEXT_MAX];
	int r;

	*ret_call = "device of the address";
	if (!id->verbs)
		return -ENODEV;
	if (!is_ours(cm->w, id->verbs->device)) {
		(void)snprintf(text, sizeof(text), "%s belongs to %s",
			       addr_format(what, a),
			       ibv_get_device_name(id->verbs->device));
		cm_goodbye(cm, GOODBYE_WRONG_DEVICE, text);
		return -EXDEV;
	}
	if (cm->ctx.verbs)
		return cm->ctx.verbs == id->verbs ? 0 : -EXDEV;
	busy_enter(&cm->w->cm_busy, "opening the device for rdma_cm", false);
	r = rdma_ctx_open(&cm->ctx, id->verbs, ret_call);
	busy_leave(&cm->w->cm_busy);
	if (r < 0)
		return r;
	/* The library opened it behind our back, but its events are ours to read. */
	*ret_call = "fcntl";
	r = set_nonblocking(cm->ctx.verbs->async_fd);
	if (!r)
		r = set_nonblocking(cm->ctx.channel->fd);
	if (r < 0)
		return r;
	cm_order_hot(cm, &(struct hot_order){.type = HOT_CHANNEL, .ctx = &cm->ctx});
	return 0;
}

static void wait_turn(struct cm *cm)
{
	struct pollfd fds[3] = {{.fd = cm->w->wake_cm, .events = POLLIN},
				{.fd = -1, .events = POLLIN},
				{.fd = -1, .events = POLLIN}};
	struct mono now = clock_now(), d = cm_deadline(cm);
	int64_t ns = mono_is_set(d) ? MAX(mono_sub(d, now), 0) : NSEC_PER_SEC;
	struct timespec ts = {ns / NSEC_PER_SEC, ns % NSEC_PER_SEC};

	if (cm->channel && !cm->channel_dead)
		fds[1].fd = cm->channel->fd;
	if (cm->ctx.verbs && !cm->async_dead)
		fds[2].fd = cm->ctx.verbs->async_fd;
	if (ppoll(fds, 3, &ts, NULL) < 0)
		return;
	if (fds[0].revents & POLLIN)
		wake_clear(cm->w->wake_cm);
	/* After the death of the device these stay ready for ever. */
	if (fds[1].revents & (POLLERR | POLLNVAL))
		cm->channel_dead = true;
	if (fds[2].revents & (POLLERR | POLLNVAL))
		cm->async_dead = true;
}

void cm_turn(struct cm *cm)
{
	struct mono now;

	wait_turn(cm);
	if (cm->gone)
		return;
	now = clock_now();
	/* Commands before events: a request may need the expectation that is queued. */
	cm_take_notes(cm, now);
	cm_connect_poll(cm, now);
	cm_take_commands(cm, now);
	if (cm->channel && !cm->channel_dead)
		cm_drain_events(cm, now);
	if (cm->ctx.verbs && !cm->async_dead)
		cm_drain_async(cm, now);
	cm_timers(cm, clock_now());
	if (cm->exiting && !cm->table.used)
		cm_goodbye(cm, GOODBYE_ASKED, "asked to go");
}

void cm_done(struct cm *cm)
{
	assert(!cm->table.used && !cm->listeners);
	cm_unpark(cm, clock_now(), true);
	ah_sweep(cm, true);
	ud_ports_close(cm);
	heap_done(&cm->timers);
	free(cm->notes);
	if (cm->ctx.channel)
		(void)ibv_destroy_comp_channel(cm->ctx.channel);
	if (cm->ctx.pd)
		(void)ibv_dealloc_pd(cm->ctx.pd);
	if (cm->channel)
		rdma_destroy_event_channel(cm->channel);
	endpoint_table_done(&cm->table);
}

void *cm_thread(void *worker)
{
	struct worker *w = worker;
	struct cm cm;

	(void)pthread_setname_np(pthread_self(), "cm");
	cm_init(&cm, w);
	/* Not before it is known which device is ours, and that it may be used. */
	while (atomic_load(&w->device_state) == DEVICE_OPENING) {
		struct pollfd fd = {.fd = w->wake_cm, .events = POLLIN};

		if (poll(&fd, 1, -1) > 0)
			wake_clear(w->wake_cm);
	}
	for (;;)
		cm_turn(&cm);
	return NULL;
}
