/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * manager.h - main's one owner of everything: devices and ports, workers, peers and
 * connections. The files that share it, each with one reason to change:
 *   manager.c   life of the process: start, reload, stop, the periodic turn
 *   devices.c   which devices and ports there are, who owns an address
 *   ports.c     facts of ports: worker messages into port objects
 *   port_mads.c facts of ports by MAD: own port and the one across the wire
 *   mads.c      requests to MAD workers, answers to whoever asked
 *   sweeps.c    discovery of the fabric (sweeps.h, with the files beside it)
 *   counters.c  counters of ports, notices about them, what time does to their health
 *   baselines.c what ports had while they were well
 *   lldp.c      far ends of Ethernet ports
 *   workers.c   when a worker is started, killed, started again
 *   worker_proc.c one worker process: spawn, socket, queue
 *   peers.c     peers of the config into connections
 *   peer_addrs.c addresses of peers, whose an address is
 *   peer_names.c names of peers into addresses
 *   binding.c   where on this host a connection belongs
 *   mesh.c      rails of this host, and those that peers tell
 *   paths.c     the path of a connection: what is known of it, what does not fit
 *   conns.c     the table of connections, their timers, starts and actions
 *   conns_many.c what is done to many connections, a slice a turn
 *   control.c   control datagrams: who may, challenge, keys, dispatch
 *   evidence.c  verdicts of connections and peers
 *   explain.c   the way of a connection, step by step (lib/explain.h)
 *   check.c     whether this host is fit for work (lib/check.h)
 *   damping.c   what a connection's own past says: flaps, its usual round trip
 *   rails.c     how many hosts of each rail are silent, who tells of it
 *   pings.c     pings on demand over connections that there are
 *   matrix_views.c connections by rows and columns
 *   views.c     what the socket shows (struct api)
 *   cost.c      what fabd itself uses
 *   state.c     what outlives a restart
 * Nothing else includes it.
 */
#pragma once

#include <jansson.h>
/* One-at-a-time: the default hash falls through cases without saying so, which clang
 * takes for a mistake. */
#define HASH_FUNCTION(key, len, hash) HASH_OAT(key, len, hash)
#define uthash_fatal(msg)	      abort()
#include <stdlib.h>
#include <uthash.h>

#include "api.h"
#include "config.h"
#include "conn.h"
#include "ctl_socket.h"
#include "heap.h"
#include "history.h"
#include "held.h"
#include "idtable.h"
#include "log.h"
#include "loop.h"
#include "loss.h"
#include "mad.h"
#include "mads.h"
#include "mesh.h"
#include "render.h"
#include "monitor.h"
#include "netlink.h"
#include "pool.h"
#include "resolver.h"
#include "udp_transport.h"
#include "uevent.h"
#include "varlink_server.h"
#include "suspend.h"
#include "usual.h"
#include "verdict.h"
#include "verdict_log.h"
#include "worker.h"

struct manager;
struct device;
struct peer;
struct rail_count;
struct pings;

/* ---- workers ---- */

struct worker_message { /* queued, socket was full */
	struct worker_message *next;
	size_t len;
	uint8_t data[];
};

/* All ud connections of a device may be torn down and started in a moment. */
#define WORKER_QUEUE_MAX 32768

struct worker_listener {
	struct addr addr;
	enum transport transport;
};

struct worker {
	struct manager *m;
	enum worker_kind kind;
	char device[DEVICE_NAME_MAX]; /* "" = mad worker of all umad devices */
	uint32_t device_index;
	enum worker_state state;
	struct mono since;
	uint32_t generation;
	unsigned starts;
	char why[160];
	bool wanted;   /* false: device gone; is forgotten when dead */
	bool external; /* a unit of its own, reached by its socket */

	/* process */
	pid_t pid; /* 0 = none to wait for */
	pid_t cost_pid;	  /* whose CPU was read last */
	int64_t cost_cpu; /* ns, then */
	int fd;	   /* -1 = none */
	struct loop_source *io;
	struct worker_message *queue, **queue_end;
	int queued;
	bool saw_hello, killed;
	struct mono started_at, killed_at, kill_at, start_at;
	struct mono lost_at; /* nobody has spoken for the device since; unset: one does */
	int64_t backoff;

	/* life signs */
	uint64_t ping_seq, pong_seq;
	unsigned pings_open; /* sent in turns of their own, not answered */
	unsigned hot_late;   /* answers in a row that said so of the hot thread */
	struct mono pinged_at;
	struct mono last_message;
	struct wm_pong pong;
	uint64_t drops[DROP__MAX];

	struct worker_listener *listening; /* owned: where it was told to accept */
	int n_listening;

	/* tables that come in pieces */
	struct port_gid gids[PORT_GIDS_MAX];
	uint16_t pkeys[PORT_PKEYS_MAX];
	int n_gids, n_pkeys;

	struct worker *next;
};

/* worker_proc.c */
int worker_spawn(struct worker *w, const char *path); /* 0 or -errno */
int worker_connect(struct worker *w, const char *socket_path);
void worker_close(struct worker *w); /* our end; a child sees end of file */
/* Send or queue. -ENOTCONN; -ENOBUFS: the queue is full, the worker has failed. */
int worker_send(struct worker *w, const void *msg, size_t len);

/* workers.c */
struct worker *worker_want(struct manager *m, enum worker_kind kind, const char *device,
			   uint32_t index);
void worker_unwant(struct worker *w); /* the device is gone: 500 ms, then killed */
void worker_fail(struct worker *w, const char *fmt, ...) PRINTF_LIKE(2, 3);
void worker_received(struct worker *w, const uint8_t *buf, size_t len);
void worker_lost(struct worker *w); /* end of file on our end */
void workers_tick(struct manager *m, struct mono now);
void workers_reap(struct manager *m);
void workers_renamed(struct device *d);
void workers_tell_again(struct manager *m);
/* All of that kind are replaced: they are to be told something that init alone tells. */
void workers_begin_anew(struct manager *m, enum worker_kind kind, const char *why);
/* Accept on this address from now on, as long as the device owns it. */
void worker_listen(struct worker *w, const struct addr *a, enum transport t);
void workers_unlisten(struct manager *m); /* where that is no longer so */
struct worker *worker_find(struct manager *m, enum worker_kind kind, const char *device);
/* Stop all; true when none is left to wait for. */
bool workers_stopped(struct manager *m);
void workers_stop(struct manager *m);
void workers_free(struct manager *m);
json_t *worker_render(const struct worker *w, const struct render_time *t);

/* ---- devices and ports ---- */

/* MADs of one port: what is out, when next. */
enum mad_ask { ASK_OWN, ASK_NODE, ASK_DESC, ASK_PKEYS, ASK_SLVL, ASK_VLARB, ASK_REMOTE_NODE,
	       ASK_REMOTE_DESC, ASK_REMOTE_INFO, ASK__MAX };
struct mad_poll {
	uint32_t out[ASK__MAX];	  /* number of the request that is waited for, 0 = none */
	uint32_t next_number;
	struct mono next_own, next_slow, next_remote;
	uint16_t pkey_block, pkey_cap;
	uint8_t vlarb_block;
	uint16_t pkeys[PORT_PKEYS_MAX];
	struct node_info remote_ni;
	struct port_info remote_pi;
	char remote_desc[65];
	bool got_desc, got_pi;
	/* asked with IB_PORT_INFO_EXTENDED; it refused that */
	bool own_extended, own_plain, remote_extended, remote_plain;
	int remote_failures;
	bool has_smi;
	uint64_t bad_status, bad_answer, timeouts;
};

struct counter_poll { /* counters of one port: what was read, when next */
	struct counter_reading pma, kernel; /* the last ones */
	struct counter_reading coming;	    /* of the round that is out */
	struct class_port_info cpi;
	struct mono cpi_at, next;
	uint32_t round, rounds; /* 0 = none is out */
	bool pma_works;
};

struct port_entry {
	uint64_t serial;
	struct device *device;
	struct port p;
	struct mad_poll mad;
	struct counter_poll counters;
	uint64_t reported_seq;
	enum health reported_health;
	struct port_entry *next;
};

struct device {
	uint64_t serial;
	struct manager *m;
	char name[DEVICE_NAME_MAX];
	uint32_t index;	 /* kernel's, DEVICE_INDEX_NONE = umad only */
	bool present;	 /* in the kernel's list, or told by a running mad worker */
	bool has_verbs_facts;
	struct device_facts facts;
	struct mono since;
	struct worker *rdma, *mad; /* borrowed from m->workers */
	struct port_entry *ports;  /* owned */
	struct device *next;
};

/* devices.c */
void devices_scan(struct manager *m);		  /* the kernel's list, now */
void devices_uevent(void *user, const char *subsystem, const char *name, bool added);
struct device *device_find(struct manager *m, const char *name);
struct device *device_get(struct manager *m, const char *name); /* makes an umad one */
void device_gone(struct device *d, const char *why);
struct port_entry *device_port(struct device *d, uint8_t num);	   /* or NULL */
struct port_entry *device_port_get(struct device *d, uint8_t num); /* makes it */
void device_port_gone(struct device *d, uint8_t num); /* 0: all */
struct port_entry *port_find(struct manager *m, const char *name); /* DEV/PORT DEV:PORT */
/* The port that owns an address of ours; NULL: no RDMA device. */
struct port_entry *port_of_address(struct manager *m, const struct addr *a);
bool port_tied(const struct port_entry *pe, const struct addr *a); /* [Port] Address= */
void devices_free(struct manager *m);

/* ports.c */
void ports_on_device(struct worker *w, const struct wm_device *msg);
void ports_on_port(struct worker *w, const struct wm_port *msg);
void ports_on_gids(struct worker *w, const struct wm_gids *msg);
void ports_on_pkeys(struct worker *w, const struct wm_pkeys *msg);
void ports_worker_lost(struct worker *w);
void ports_tick(struct manager *m, struct mono now);
struct mono ports_deadline(const struct manager *m);
void port_apply_config(struct manager *m, struct port_entry *pe);
/* After facts changed: derive, judge, tell. */
void port_settle(struct manager *m, struct port_entry *pe, enum fact_source source);
/* Trailing empty slots are capacity, not keys: how many there are without them. */
int port_pkeys_used(const uint16_t *pkeys, int n);

/* port_mads.c */
void port_mads_init(struct port_entry *pe);
void port_mads_reset(struct port_entry *pe); /* answers to come do not count */
void port_mads_poll(struct port_entry *pe, struct mono now);
struct mono port_mads_deadline(const struct port_entry *pe);

/* counters.c */
void port_counters_init(struct port_entry *pe);
void port_counters_on_message(struct worker *w, const struct wm_counters *msg);
void counters_tick(struct manager *m, struct mono now);
void device_pcie(const struct device *d, struct port_pcie *ret);
void ports_on_notice(struct worker *w, const struct wm_notice *msg);

/* baselines.c */
void baselines_load(struct manager *m);
void baselines_free(struct manager *m);
void baseline_apply(struct manager *m, struct port_entry *pe); /* a port that is new */
void baseline_forget(struct port_entry *pe); /* what it has now is right */
void baselines_renamed(struct device *d, const char *old);
void baselines_save(struct manager *m);
void baselines_tick(struct manager *m);

/* lldp.c */
struct lldp *lldp_new(struct manager *m);
struct lldp *lldp_free(struct lldp *l);
void lldp_tick(struct lldp *l, struct mono now);
void lldp_soon(struct lldp *l); /* a link has moved */
void lldp_reload(struct lldp *l);

/* ---- peers and connections ---- */

/* Where a connection's own side is, worked out from address, route and devices. What
 * connections have is shared (manager's pool): no byte of one may be left unwritten. */
struct binding {
	struct addr local;	  /* family 0 = none */
	char netdev[EP_IF_MAX];	  /* "" = do not bind to one */
	uint32_t netdev_index;
	char port_name[PORT_NAME_MAX]; /* "-" */
	uint64_t port_serial;	  /* 0 = none */
	bool own_host;		  /* the destination is an address of this host */
	bool gateway;		  /* not on the link: its MTU may well be another one */
	bool port_down;		  /* error is the port's or the interface's doing */
	enum ep_error error;	  /* EPERR_NONE = usable */
	bool unsure;		  /* the kernel did not answer: no news */
	char why[EP_TEXT_MAX];
};

/* What a connection is to be fed when its turn comes: CI_STOP or CI_OPERATOR. */
struct conn_order {
	uint8_t type, cause; /* CI_START: nothing */
	uint16_t deadline_sec;
};

/* There may be tens of thousands, as of struct conn: what few have is allocated when they
 * have it, what many have in common is shared. */
struct conn_entry {
	struct conn *c; /* owned */
	uint64_t id;	/* of c: key of by_id */
	uint64_t serial;
	struct peer *peer; /* borrowed; NULL: rx of a stranger that Accept= lets in, or
			      one that says goodbye to a peer that has left the config */
	struct config_probe *left; /* a reference: what held for that peer, its keys too */
	int addr_index;	   /* place among the peer's addresses, tx */
	struct conn_entry *next_tx; /* of the same peer */
	struct addr ctl_remote, ctl_local; /* control: where to, from which own address */
	const struct binding *bind;	   /* shared; never NULL */
	const char *worker_device; /* shared; the endpoint is there; "" = udp or none */
	uint64_t ep_epoch;
	struct auth_key *session; /* owned: what its messages' key is made of; NULL: none */
	struct heap_node timer;
	struct heap_node judge_at; /* when its verdict is looked at again */
	const char *why;	   /* of the verdict; shared, never NULL */
	struct mono verdict_since;
	struct loss loss;
	struct flap *flap; /* owned; NULL: never lost */
	struct usual usual;
	uint64_t src_key;   /* rx: key of by_src; made of tx's connection id */
	uint64_t probe_key; /* rx: key of by_probe; made of what tells probes apart */
	uint64_t probe_tag; /* rx: as tx told it */
	uint32_t beats_mhz; /* tx: heartbeats it adds to the manager's count */
	struct conn_order order;
	enum verdict verdict; /* as shown: held where another fault explains it */
	uint8_t own_verdict;  /* enum verdict it would have otherwise */
	uint8_t holder;	      /* enum holder */
	bool rail_wide; /* own_verdict is network, for the silence of several hosts */
	bool bound_before; /* bind has been worked out once */
	bool has_endpoint; /* start was given to a provider and not reset yet */
	bool in_start_queue, going;
	bool verdict_dirty; /* in the manager's list */
	bool known_src;	    /* rx: in by_src and by_probe */
	struct ctl_path told_path; /* as the other side sees it */
	uint32_t told_edition;	   /* of the own rails, to the other side */
	uint32_t log_place;	   /* of its last change in the verdict log */
};

_Static_assert(sizeof(struct conn_entry) <= 350, "tens of thousands of them");
_Static_assert(sizeof(struct conn) <= 700, "tens of thousands of them");

/* More of an address that the peer itself has told. */
struct addr_told {
	struct addr source; /* the own rail's */
	char label[CTL_NAME_MAX]; /* "" = none that can be shown: the place */
	bool stale;
};

/* An address of a peer that is known. Its place is what rails are counted by. */
struct peer_addr {
	struct peer *peer;
	struct peer_addr *next;	     /* of the same peer, by place */
	struct peer_addr *prev_same, *next_same; /* of other peers, by their age */
	struct addr addr;	     /* port 0 */
	struct mono ctl_unreachable_at;
	uint8_t ctl_unreachable;     /* enum ep_error */
	uint8_t from;		     /* of the config's addresses */
	uint16_t place;
	struct addr_told *told; /* owned; NULL: of the config */
	UT_hash_handle hh; /* by IP: the first of the same ones alone */
};

/* One Address= that is a name. */
struct peer_name {
	struct manager *m;
	struct peer *peer;
	struct peer_name *next; /* of the same peer */
	struct peer_name *prev_all, *next_all;
	int from; /* of the config's addresses */
	struct resolver_job *job;
	struct mono asked_at; /* answered last */
	struct mono found_at; /* likewise, with addresses */
	char *error; /* owned; NULL: none */
};

/* What a peer told of itself last. */
struct told_rail {
	struct peer *peer;
	char *label; /* owned */
	struct addr addr;
	struct ctl_rail_facts facts;
	struct mono refused_at; /* another node answered there */
	bool verified;		/* from there the same node has spoken */
	bool indexed;
	UT_hash_handle hh; /* by IP: the first that told it */
};
struct peer_told {
	char node[CTL_NAME_MAX];
	struct mono sync_at; /* when probes may follow it next */
	int n;
	struct told_rail rail[];
};

/* There may be tens of thousands: small, what few have is allocated when they have it. */
struct peer {
	uint64_t serial;
	const struct config_peer *cfg; /* the config's */
	struct conn_entry *first_tx;   /* borrowed, by address, transport, flow */
	struct peer_addr *addrs;       /* owned */
	struct peer_name *names;       /* owned */
	struct peer_told *told;	       /* owned; NULL: nothing */
	struct mono auth_failed_at;
	struct peer *next_dirty, *prev_dirty; /* in the manager's list */
	const char *why;	 /* shared; NULL: nothing to say */
	struct mono since;
	enum verdict verdict;
	bool verdict_dirty;
	bool has_signed; /* since start, with a good key */
	bool stale;	 /* reload: not in the new config */
	UT_hash_handle hh;
};

_Static_assert(sizeof(struct peer) + sizeof(struct peer_addr) <= 288,
	       "with the config's share a peer of one address takes at most 500 bytes");

/* All probes of a peer, in the order of addresses, transports and flows. */
#define PEER_EACH_TX(p, e) for (struct conn_entry *e = (p)->first_tx; e; e = e->next_tx)
#define PEER_EACH_ADDR(p, a) for (struct peer_addr *a = (p)->addrs; a; a = a->next)

/* peers.c */
void peers_apply(struct manager *m);
void peer_sync(struct manager *m, struct peer *p); /* connections for its addresses */
/* Who takes the default transports expects RDMA to be looked at: say where it is not. */
void peers_tell_plain(struct manager *m);
void peers_tick(struct manager *m, struct mono now);
struct peer *peer_find(struct manager *m, const char *name);
struct conn_entry *peer_tx(const struct peer *p, int index, enum transport t, uint16_t flow);
void peer_link_tx(struct peer *p, struct conn_entry *e);
void peer_unlink_tx(struct peer *p, struct conn_entry *e); /* it need not be linked */
void peers_free(struct manager *m);
/* Connections to an address that is new or other than before. */
void peer_sync_addr(struct manager *m, struct peer_addr *a);
/* Connections of the same probe that differ in their flow alone, this one among them. */
void peer_count_flows(const struct conn_entry *e, int *ret_n, int *ret_well);
const char *peer_why(const struct peer *p); /* "" = nothing */

/* peer_addrs.c */
struct peer_addr *peer_addr_new(struct manager *m, struct peer *p, const struct addr *addr,
				int from, int place);
/* Its probes say goodbye. */
void peer_addr_drop(struct manager *m, struct peer_addr *a);
void peer_addr_free(struct manager *m, struct peer_addr *a);
/* One that the peer told, to be probed from @source. */
struct peer_addr *peer_addr_new_told(struct manager *m, struct peer *p,
				     const struct addr *addr, const char *label,
				     const struct addr *source);
/* The least place that none of its addresses has, from @from on. */
int peer_free_place(const struct peer *p, int from);
void peer_addr_find_zone(struct manager *m, struct peer_addr *a);
struct peer_addr *peer_addr_at(const struct peer *p, int place); /* or NULL */
/* Of all peers that have the address, the oldest one's. */
struct peer_addr *peer_addr_first(const struct manager *m, const struct addr *a);
/* The label of a place: Rail= or its number. */
const char *peer_rail(const struct peer *p, int place, char buf[CTL_NAME_MAX]);

/* peer_names.c */
void peer_name_new(struct manager *m, struct peer *p, int from);
void peer_name_free(struct peer_name *n);
void peer_names_again(struct peer *p); /* look them up now */
void peer_names_tick(struct manager *m, struct mono now);
const char *peer_resolve_error(const struct peer *p); /* "" = none */

/* mesh.c */
void rails_tell(const struct manager *m, struct conn_entry *e, struct ctl_msg *msg);
/* A message that a probe of the peer has taken; that probe may be gone afterwards. */
void rails_told(struct manager *m, struct peer *p, const struct ctl_msg *msg);
void rails_forget(struct manager *m, struct peer *p);
void rails_tick(struct manager *m, struct mono now);
struct told_rail *peer_told_rail(const struct peer *p, const struct addr *a);
/* Whoever told it first; not where the config says whose it is. */
struct told_rail *rails_find(const struct manager *m, const struct addr *a);
/* A Reset from an address that is not verified names the node that told it. */
bool rails_may_ask(const struct told_rail *r, const struct ctl_msg *msg);
/* false: it is none of the peer that told it; the connection is gone. */
bool rails_verify(struct manager *m, struct conn_entry *e, const struct ctl_msg *msg);

/* paths.c */
struct path_mismatch { /* 0 = not known */
	bool mtu, pkey;
	uint32_t own_mtu, peer_mtu;
	uint16_t own_pkey, peer_pkey;
};
/* What the two ends tell of the path does not fit together. */
void path_mismatch(struct manager *m, const struct conn_entry *e, struct path_mismatch *ret);
void path_view(struct manager *m, const struct conn_entry *e, struct path_view *ret);
void path_tell(const struct conn_entry *e, struct ctl_msg *msg);

/* binding.c */
/* From where a probe is to go: family 0 = as routed. */
struct addr conn_source(const struct manager *m, const struct conn_entry *e);
/* Work out the own side for a destination. */
void binding_find(struct manager *m, const struct addr *dst, const struct addr *source,
		  enum transport t, struct binding *ret);
/* For a connection, which is fed what has become of it. */
void conn_bind(struct manager *m, struct conn_entry *e);

/* conns.c */
struct conn_entry *conn_entry_new(struct manager *m, const struct conn_key *key,
				  struct peer *p, const struct config_probe *probe);
/* rx: known by its tx from now on, until conn_forget_src(). */
void conn_know_src(struct manager *m, struct conn_entry *e, uint64_t src_id, uint64_t tag);
void conn_forget_src(struct manager *m, struct conn_entry *e);
/* rx of the same probe; NULL: none. */
struct conn_entry *conn_by_probe(const struct manager *m, const struct conn_key *key,
				 const struct addr *local, uint64_t tag);
void conn_set_bind(struct manager *m, struct conn_entry *e, const struct binding *b);
void conn_set_worker(struct manager *m, struct conn_entry *e, const char *device);
void conn_feed(struct manager *m, struct conn_entry *e, const struct conn_input *in);
int conn_feed_ctl(struct manager *m, struct conn_entry *e, const struct ctl_msg *msg);
void conns_ep_event(struct manager *m, const struct ep_event *ev);
void conn_refresh(struct manager *m, struct conn_entry *e); /* before it is shown */
/* An event of ours about an endpoint, delivered at the end of the turn. */
void conns_post(struct manager *m, const struct ep_event *ev);
void conn_endpoint_lost(struct manager *m, struct conn_entry *e, const char *why);
/* Hand the order to the endpoint of @e; its ids are filled in. false: there is none. */
bool conn_ping(struct manager *m, const struct conn_entry *e, struct ep_ping *order);
void conns_worker_lost(struct manager *m, const char *device);
struct conn_entry *conn_by_id(struct manager *m, uint64_t id);
struct conn_entry *conn_by_src(struct manager *m, uint64_t src_id);
int conns_after(const struct manager *m, uint64_t serial); /* place of the next one */
struct conn_entry *conn_by_key(struct manager *m, const char *key);
void conn_params_from(const struct config_probe *p, struct conn_params *ret);
const struct config_probe *conn_probe(const struct manager *m, const struct conn_entry *e);
bool conn_key_matches(const struct conn_entry *e, const char *key);
bool conn_peer_rail_matches(const struct conn_entry *e, const char *name);
void conn_leave_peer(struct conn_entry *e);
void conn_drop(struct manager *m, struct conn_entry *e); /* without a word */
void conns_free(struct manager *m);
/* Callbacks of the loop, installed by manager.c. */
void conns_on_timer(void *user, struct mono now);
void conns_on_start_timer(void *user, struct mono now);
void conns_on_post(void *user);
void conns_on_more(void *user, struct mono now);

/* conns_many.c */
struct share { /* how much of one kind of work was done in a turn */
	uint64_t turn;
	unsigned taken;
};

#define CONNS_PER_TURN 256 /* of each kind of work */
/* Is there room for one more in this turn? If not, conns_on_more() comes in the next. */
bool take_share(struct manager *m, struct share *s, unsigned most);
/* Feed it CI_STOP or CI_OPERATOR, at once while this turn has room; it may be gone then.
 * Of several orders that wait the last one counts. */
void conn_order(struct manager *m, struct conn_entry *e, enum conn_input_type type,
		enum cause cause, uint32_t deadline_sec);
/* The keys have changed: connections that rest on one that is gone are made anew. */
void conns_rekey(struct manager *m);
/* Addresses, routes or ports changed: all are bound anew, then peers_sync(). */
void conns_rebind(struct manager *m);
void conns_look_again(struct manager *m, struct mono now); /* those nobody told of */
int conns_reset(struct manager *m, const char *name, enum cause cause);
void conns_stop(struct manager *m, enum cause cause, uint32_t deadline_sec);
void peers_sync(struct manager *m); /* connections for all addresses, new bindings */
void many_free(struct manager *m);

/* control.c */
struct control;
struct control *control_new(struct manager *m);
struct control *control_free(struct control *c);
void control_send(struct manager *m, struct conn_entry *e, struct ctl_msg *msg);
void control_read(struct manager *m); /* what has come by now */
bool control_open(const struct control *c); /* on one address at least */
json_t *control_refused(const struct control *c, struct mono now);
void control_count(struct manager *m, enum drop reason, const struct addr *from);
/* Keys in force for a connection. */
const struct auth_keys *control_keys(const struct manager *m, const struct conn_entry *e);

/* evidence.c */
void verdict_mark(struct manager *m, struct conn_entry *e);
void verdict_mark_peer(struct manager *m, struct peer *p);
void verdicts_dirty(struct manager *m, struct mono now); /* those that are marked */
void verdicts_tick(struct manager *m, struct mono now);  /* those whose time it is */
void verdict_forget_peer(struct manager *m, struct peer *p);
void verdicts_free(struct manager *m);
/* What is known of a connection now, without held and silenced. */
void evidence_gather(struct manager *m, struct conn_entry *e, struct mono now,
		     struct verdict_facts *ret);
enum health verdict_health(enum verdict v); /* for counts */
int verdict_severity(enum verdict v);
/* Heartbeats of its endpoint in the last minute. */
void verdict_loss(const struct conn_entry *e, uint64_t *ret_sent, uint64_t *ret_lost);

/* explain.c, check.c: as struct api wants it. */
const char *api_explain(void *user, const struct api_explain_what *what,
			json_t **ret);
json_t *api_check(void *user);

/* What holds it, "" if nothing does. */
const char *conn_held_by(const struct conn_entry *e, char buf[HELD_NAME_MAX]);
/* The port it goes over, or did before that went; NULL: none that is an object. */
struct port_entry *conn_port(struct manager *m, const struct conn_entry *e);
/* The worker of its device; NULL: none. */
struct worker *conn_worker(struct manager *m, const struct conn_entry *e);

/* rails.c */
/* What a peer's connections on a rail say of the rail. */
enum rail_word {
	RAIL_NO_WORD, /* the fault is here, or the peer is away on purpose */
	RAIL_SILENT,  /* nothing answers, or nothing is known yet */
	RAIL_ANSWERS, /* well, or its host answered in another way */
};
struct rail_count {
	char rail[CTL_NAME_MAX];
	int peers, down;
	uint64_t teller; /* serial of the connection that tells of the rail; 0 = none */
	UT_hash_handle hh;
};
enum rail_word peer_rail_word(const struct peer *p, int address);
/* Counted at most every 100 ms; NULL: nobody is on it. Valid until the next call. */
struct rail_count *rail_now(struct manager *m, const char *rail, struct mono now);
void rails_free(struct manager *m);

/* damping.c */
void damping_lost(struct manager *m, struct conn_entry *e, struct mono now);
void damping_facts(struct manager *m, struct conn_entry *e, struct mono now,
		   struct verdict_facts *f);
void damping_forget(struct conn_entry *e); /* what was usual: it begins anew */
void damping_free(struct conn_entry *e);
double damping_usual(const struct manager *m, const struct conn_entry *e);
struct flap_params damping_params(const struct manager *m, const struct conn_entry *e);

/* pings.c */
struct pings *pings_new(struct manager *m);
struct pings *pings_free(struct pings *p);
void pings_begin(struct pings *p, const struct api_ping *what, const struct api_ticket *t);
void pings_on_pong(struct pings *p, const struct ep_event *ev);
/* The endpoint of @e has failed or is gone, or @e itself goes. */
void pings_conn_down(struct pings *p, const struct conn_entry *e);
void pings_dropped(struct pings *p, uint64_t ticket);

/* matrix_views.c */
struct matrix_cache;
/* The next row of the matrix; @what: "leaf loss". As struct api's next. */
json_t *matrix_next(struct manager *m, const char *what, uint64_t *cursor);
void matrix_free(struct manager *m);

/* views.c */
void views_api(struct manager *m, struct api *ret);

/* cost.c */
void cost_measure(struct manager *m, struct mono now);

/* state.c */
#define LAST_GOOD "last-good.conf"
enum state_file { STATE_CONFIG, STATE_OVERRIDES, STATE_BASELINES, STATE_FILE__MAX };
/* NULL: it is not there, or not readable, which is told. */
char *state_load(const struct manager *m, enum state_file file, size_t *ret_len);
/* Make the directory of a file, not those above it; what fails, fails with the file. */
void folder_for_file(const char *path, mode_t mode);
/* What cannot be saved is tried again by state_tick(). */
void state_save(struct manager *m, enum state_file file, const char *text);
void state_tick(struct manager *m, struct mono now);
void state_save_overrides(struct manager *m);
void state_load_overrides(struct manager *m);
void state_apply_override(struct manager *m, struct port_entry *pe);
void state_expire_overrides(struct manager *m);
void state_rename_overrides(struct manager *m, const char *old, const char *name);

/* ---- the whole ---- */

struct manager_options {
	const char *config_path; /* NULL = /etc/fabd/fabd.conf and drop-ins */
	const char *rdma_worker, *mad_worker; /* NULL = from the config */
	bool debug; /* whatever LogLevel= says */
};

struct override_entry { /* kept over restarts, also of ports that are away */
	char port[PORT_NAME_MAX];
	enum health_override health;
	int64_t until_wall;
	char by[64];
};

#define PEER_ADDRS_MAX 64 /* of one peer */

struct own_rails {
	uint32_t edition; /* counts changes */
	int n;
	struct ctl_rail rail[CTL_RAILS_MAX];
	struct ctl_rail_facts facts[CTL_RAILS_MAX];
};

struct id_queue { /* ids of connections, which may have gone meanwhile */
	uint64_t *ids; /* owned ring */
	uint32_t n, first, size;
};
void id_queue_push(struct id_queue *q, uint64_t id);
bool id_queue_pop(struct id_queue *q, uint64_t *ret);

struct manager {
	struct loop *loop;
	struct manager_options opt;
	struct config *config;
	int config_errors, config_warnings;
	json_t *config_problems; /* array of text */
	char *good_text; /* of the config that ran last without errors, owned */
	const char *config_source; /* "file" "last_good" "partial" */
	struct mono config_since;
	struct mono started;
	uint64_t instance;

	struct netlink *netlink; /* NULL: could not be had */
	struct uevent *uevent;
	json_t *unavailable; /* {what: why}, for the status */

	uint64_t next_serial;
	struct device *devices;
	struct baselines *baselines;
	struct lldp *lldp;
	struct worker *workers;
	uint32_t next_generation;
	struct mads *mads;
	struct sweeps *sweeps;
	bool rescan_wanted;
	struct mono rescan_at;
	char worker_paths[2][CONFIG_PATH_MAX * 2]; /* by enum worker_kind */
	bool peers_ready; /* first facts of the devices are in, or were waited for */

	struct peer *peers; /* uthash by name, in order of serial */
	struct peer_addr *peer_addrs; /* borrowed, uthash by IP */
	struct peer_name *peer_names; /* borrowed, all of them */
	struct own_rails own_rails;
	struct mono rails_changed_at;
	struct told_rail *told_rails; /* borrowed, uthash by IP */
	struct mono rails_collected_at;
	struct mono rails_sync_at; /* never: no peer's rails wait */
	struct resolver *resolver;
	struct idtable by_id, by_src, by_probe; /* of connections */
	uint64_t src_secret; /* tx's ids are not ours: nobody shall fill one row of a table */
	struct conn_entry **conns; /* by serial, owned array */
	int n_conns, conns_size, n_rx;
	struct heap timers, judge_at;
	struct id_queue starts; /* ids of those who want one */
	struct pool shared;	/* bindings and texts of connections and peers */
	struct budget budget;
	struct ep_event *posted; /* owned array, delivered by the deferred turn */
	int n_posted, posted_at, posted_size;
	struct id_queue orders; /* ids of those that have one */
	bool rebind_wanted, rebind_again;
	/* Passes from the newest connection down: the serial that comes next is below. */
	uint64_t rebind_below, bad_below, some_below;
	struct peer *sync_next; /* pass over peers */
	int n_bad_binds; /* connections without a place */
	struct mono rebound_at, rebind_bad_at, rebind_some_at;
	struct share post_share, order_share, bind_share, sync_share, judge_share;
	struct loop_source *more; /* goes on in the next turn */

	struct control *control;
	const struct auth_key *signed_with; /* the datagram at hand; NULL: not signed */
	struct udp_transport *udp;
	struct pings *pings;
	struct matrix_cache *matrix; /* owned; NULL: not asked for yet */
	uint64_t drops[DROP__MAX], fabric_drops[DROP__MAX];
	uint64_t ctl_sent, ctl_received;

	struct monitor *monitor;
	struct history *history;
	struct varlink_server *server;
	struct api api;

	struct loop_source *tick, *conn_timer, *start_timer, *port_timer, *post, *feed_dog;
	struct loop_source *sig_hup, *sig_term, *sig_int, *sig_chld;
	struct loop_source *judge;
	struct id_queue dirty; /* ids: verdicts to be decided at the end of the turn */
	struct peer *dirty_peers;
	uint64_t control_read_turn;
	struct rail_count *rails; /* owned cache */
	struct mono rails_at;
	struct mono status_since;
	struct verdict_log *verdict_log;
	bool stopping;
	struct mono stop_deadline;
	int64_t stall_total;
	struct mono last_stall, loop_stalled_at;
	bool stall_slept; /* the whole host did */
	struct suspend suspend;

	struct override_entry *overrides; /* owned */
	int n_overrides;
	unsigned unsaved; /* bits of enum state_file */
	struct mono save_at;

	/* cost, measured once a second */
	uint64_t beats_mhz; /* heartbeats of all tx in a thousand seconds */
	struct mono cost_at;
	double cpu_percent, packets_per_sec, heartbeats_per_sec, mads_per_sec;
	int64_t cpu_before, packets_before, mads_before;
	int64_t cpu_workers; /* ns that workers have used, as far as it was seen */
	long rss_kib, rss_workers_kib;
};

struct manager *manager_new(const struct manager_options *opt);
struct manager *manager_free(struct manager *m);
int manager_run(struct manager *m); /* until a signal; exit status */
void manager_reload(struct manager *m);
void manager_unavailable(struct manager *m, const char *what, const char *why);
struct render_time manager_time(const struct manager *m);
