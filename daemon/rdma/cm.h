/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cm.h - inside the cm thread: commands and timers (cm.c), events of the connection
 * manager (cm_events.c), bringing endpoints up (cm_start.c, cm_ud.c), address handles and
 * queue pairs of ud (cm_ah.c, cm_port.c), listeners and requests (listen.c). One thread, one event channel. An event is copied and acknowledged before
 * anything is done about it, so every destroy that follows is free to go.
 */
#pragma once

#include "reasons.h"
#include "ud.h"

struct listener {
	struct rdma_cm_id *id; /* owned */
	struct addr addr;
	bool ud;
	struct listener *next;
};

/* An id whose end waits for its link (park.c). */
struct parked {
	struct rdma_cm_id *id; /* owned, without a queue pair */
	struct addr local, remote;
	struct parked *next;
};

struct cm {
	struct worker *w;		    /* borrowed */
	struct rdma_event_channel *channel; /* NULL: not needed yet, or not to be had */
	bool channel_dead, async_dead;
	struct rdma_ctx ctx;
	struct endpoint_table table;
	struct listener *listeners; /* owned list */
	struct parked *parked;	    /* owned list */
	struct mono parked_at;	    /* when to look at them again */
	struct heap timers;	    /* of endpoints */
	struct hot_note *notes;	    /* owned: taken out of the ring while it was waited for */
	size_t n_notes, notes_size;
	bool exiting, gone;

	struct ud_port *ports[UD_PORTS]; /* owned, NULL = free */
	struct ud_ah *ahs;		 /* owned list, in use or dying */
	uint32_t ah_epoch; /* those of an earlier one may be wrong: not shared any more */
	struct mono ports_at;	/* when to repair a queue pair, to destroy a handle */
	struct mono refresh_at; /* when paths are looked up again */
	unsigned refreshing;	/* look-ups under way */
};

/* What is kept of an event; the event itself is acknowledged at once. */
struct seen {
	enum rdma_cm_event_type type;
	int status, lib_errno;
	struct rdma_cm_id *id;
	uint64_t handle;
	size_t data_len;
	uint8_t data[256];	   /* private_data_len is 8 bits wide */
	struct ibv_ah_attr ah_attr; /* of ud, with what follows */
	uint32_t qpn, qkey;
};

/* A call that may block, with its name shown to main; 0 or -errno. Old libraries return
 * -errno, or a positive errno, instead of -1. */
#define CM_CALL(cm, fn, ...)                                                           \
	({                                                                             \
		int r_;                                                                \
		busy_enter(&(cm)->w->cm_busy, #fn, false);                             \
		errno = 0;                                                             \
		r_ = fn(__VA_ARGS__);                                                  \
		r_ = cm_result(r_, errno);                                             \
		busy_leave(&(cm)->w->cm_busy);                                         \
		r_;                                                                    \
	})
static inline int cm_result(int r, int err)
{
	if (r == -1)
		return err ? -err : -1;
	return r > 0 ? -r : r;
}

void cm_init(struct cm *cm, struct worker *w);
/* Destroy what is left; for an orderly end. */
void cm_done(struct cm *cm);
/* Wait for something, at most until the next timer, and handle it. */
void cm_turn(struct cm *cm);
/* The parts of a turn. */
void cm_take_commands(struct cm *cm, struct mono now);
void cm_take_notes(struct cm *cm, struct mono now);
void cm_timers(struct cm *cm, struct mono now);
struct mono cm_deadline(const struct cm *cm);

/* Create the event channel when it is first needed. 0 or -errno. */
int cm_channel_open(struct cm *cm);
/* The first id bound to a device shows librdmacm's context of it: check that it is our
 * device (else goodbye, -EXDEV) and open what endpoints share. @what: for the message.
 */
int cm_check_device(struct cm *cm, struct rdma_cm_id *id, const struct addr *what,
		    const char **ret_call);
/* A message for main; a full queue means that main does not read, and ends the process.
 */
void cm_post(struct cm *cm, const union cm_message *m);
void cm_order_hot(struct cm *cm, const struct hot_order *o);
/* We are leaving: tell main why, do nothing more. */
void cm_goodbye(struct cm *cm, enum wm_goodbye_why why, const char *text);

/* cm_events.c: fetch, acknowledge and handle what the channels hold. */
void cm_drain_events(struct cm *cm, struct mono now);
void cm_drain_async(struct cm *cm, struct mono now);

/* cm_start.c */
void cm_start(struct cm *cm, const struct ep_start *s, struct mono now);
void cm_addr_resolved(struct cm *cm, struct endpoint *ep, struct mono now);
void cm_route_resolved(struct cm *cm, struct endpoint *ep, struct mono now);
void cm_established(struct cm *cm, struct endpoint *ep);
/* Resources, receives, hot. 0, or -errno with @ret_call. */
int cm_prepare(struct cm *cm, struct endpoint *ep, const char **ret_call);
void cm_set_ack_timeout(struct cm *cm, struct endpoint *ep);
void cm_set_tos(struct cm *cm, const struct endpoint *ep, struct rdma_cm_id *id);

/* cm_connect.c: begin to connect; a failure, now or later, is cm_fail_call()'s. */
void cm_connect(struct cm *cm, struct endpoint *ep,
		const struct rdma_conn_param *param);
/* Take the results of calls that have ended. */
void cm_connect_poll(struct cm *cm, struct mono now);
/* Is no call of @ep under way? Else get it out; ask again when its timer is due. */
bool cm_connect_over(struct cm *cm, struct endpoint *ep, struct mono now);

/* listen.c */
void cm_listen(struct cm *cm, const struct addr *a, bool ud);
void cm_unlisten(struct cm *cm, const struct addr *a, bool ud);
void cm_unlisten_all(struct cm *cm);
const struct listener *cm_find_listener(const struct cm *cm, const struct addr *a, bool ud);
void cm_connect_request(struct cm *cm, struct rdma_cm_id *id, const uint8_t *data,
			size_t len, struct mono now);

/* Refused when the requester gave up meanwhile, which is fine. The id is ours to
 * destroy all the same. */
void cm_reject(struct cm *cm, struct rdma_cm_id *id, enum cmdata_code code);

/* cm_sl.c: rc with a service level of its own */
bool sl_wanted(const struct cm *cm, const struct endpoint *ep);
/* The queue pair is out of the library's sight, from connect to the response. */
void sl_hide_qp(struct endpoint *ep, struct rdma_conn_param *param);
void sl_show_qp(struct endpoint *ep);
void sl_response(struct cm *cm, struct endpoint *ep);
int sl_accept(struct cm *cm, struct endpoint *ep, struct rdma_conn_param *param);

/* cm_ud.c */
void ud_route_resolved(struct cm *cm, struct endpoint *ep, struct mono now);
void ud_established(struct cm *cm, struct endpoint *ep, const struct seen *s);
/* A request that matches @ep, which waits for it or has it already. Takes @id. */
void ud_request(struct cm *cm, struct endpoint *ep, struct rdma_cm_id *id);
/* The path of @ep may be another one (@ep NULL: of all, in a moment). */
void ud_suspect(struct cm *cm, struct endpoint *ep, struct mono now);
/* An event of a look-up of an endpoint that is up. */
void ud_again_event(struct cm *cm, struct endpoint *ep, const struct seen *s,
		    struct mono now);
void ud_again_end(struct cm *cm, struct endpoint *ep);
void ud_again_timer(struct cm *cm, struct endpoint *ep, struct mono now);
void ud_refresh(struct cm *cm, struct mono now); /* refresh_at has come */
/* Its address handle and its share of the queue pair go. */
void ud_leave(struct cm *cm, struct endpoint *ep);

/* cm_ah.c */
/* A reference to a handle with these attributes, made if there is none. NULL: errno. */
struct ud_ah *ah_get(struct cm *cm, struct ud_port *p, const struct ibv_ah_attr *attr);
void ah_put(struct cm *cm, struct ud_ah *ah); /* NULL-safe */
void ah_sweep(struct cm *cm, bool all);	      /* destroy those that nothing uses */
/* rx: the handle that hot asks for. */
void ah_wanted(struct cm *cm, struct endpoint *ep, const struct hot_note *n);
/* Give @ah to hot in the place of the one it has; the reference becomes @ep's. */
void ah_give(struct cm *cm, struct endpoint *ep, struct ud_ah *ah, uint32_t qpn,
	     uint32_t qkey);
/* What @ep asks for of its way: class, service level, flow. */
void ah_adjust(const struct endpoint *ep, struct ibv_ah_attr *attr);

/* cm_port.c: the queue pair for @id, made when it is the first. 0 or -errno. */
int ud_port_get(struct cm *cm, struct rdma_cm_id *id, struct ud_port **ret,
		const char **ret_call);
void ud_port_failed(struct cm *cm, const struct hot_note *n, struct mono now);
/* It cannot be used any more: all on it are told, once. */
void ud_port_fatal(struct cm *cm, struct ud_port *p, const char *why);
void ud_port_stopped(struct cm *cm, struct ud_port *p);
void ud_port_left(struct cm *cm, struct ud_port *p); /* by one of its users */
void ud_ports_timer(struct cm *cm, struct mono now);
void ud_ports_close(struct cm *cm); /* at the end */

/* path.c: what is known of the path, for EP_UP and EP_PATH. */
void path_of_rc(struct cm *cm, const struct endpoint *ep, struct ep_path *ret);
void path_of_ud(struct cm *cm, const struct endpoint *ep, const struct ibv_ah_attr *attr,
		uint32_t remote_qpn, struct ep_path *ret);
/* Pure. The UDP source port of RoCE v2. */
uint16_t path_sport_of_label(uint32_t flow_label, uint32_t qpn, uint32_t remote_qpn);
uint16_t path_sport_of_soft_roce(uint32_t qpn);

/* park.c: can a message be sent from here to there? */
bool cm_can_send(struct cm *cm, uint8_t port, const struct addr *local,
		 const struct addr *remote);
/* Must the end of @ep wait? Then take its id, without its queue pair. */
bool cm_must_park(struct cm *cm, const struct endpoint *ep);
void cm_park(struct cm *cm, struct endpoint *ep);
/* Destroy the parked ids whose links are back; or all. */
void cm_unpark(struct cm *cm, struct mono now, bool all);
/* netdev.c: does this host have @local, and a route from it to @remote? */
bool path_works(const struct addr *local, const struct addr *remote);

/* cm.c: what an endpoint reports, and its end. */
void cm_arm(struct cm *cm, struct endpoint *ep, struct mono at); /* MONO_NEVER: not */
uint8_t cm_port_num(const struct endpoint *ep); /* of the device; 0 = not known */
/* It is up: tell main, and hot how large a large message is. */
void cm_up(struct cm *cm, struct endpoint *ep, const struct ep_path *path);
/* The path is @path now: tell main if that is news. */
void cm_path(struct cm *cm, struct endpoint *ep, const struct ep_path *path);
void cm_destroy_id(struct cm *cm, struct rdma_cm_id *id);
void cm_stage(struct cm *cm, struct endpoint *ep, enum ep_stage stage);
void cm_event(struct cm *cm, const struct ep_event *ev);
/* Exactly once per attempt: later failures of it do nothing. */
void cm_fail(struct cm *cm, struct endpoint *ep, const struct reason *why, int status);
void cm_fail_call(struct cm *cm, struct endpoint *ep, const char *call, int r);
/* Tell the peer, or answer its word; refused when it was faster, which is fine. */
void cm_disconnect(struct cm *cm, struct endpoint *ep);
/* Begin to tear @ep down; RESET_DONE with @epoch follows when it is gone. */
void cm_close(struct cm *cm, struct endpoint *ep, uint64_t epoch, struct mono now);
/* Something that a closing endpoint waited for has come. */
void cm_close_step(struct cm *cm, struct endpoint *ep, struct mono now);
