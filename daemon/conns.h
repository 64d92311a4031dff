/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * conns.h - peers, their addresses and rails, and connections: where they go, what is done
 * to them, what is found of them. A part of manager.h.
 */
#pragma once

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
#include "held.h"
#include "loss.h"
#include "mesh.h"
#include "resolver.h"
#include "udp_transport.h"
#include "usual.h"
#include "verdict.h"
#include "workers.h"

struct peer;
struct rail_count;
struct pings;
struct port_entry;

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
	struct hist *rounds; /* owned; its round trips as a worker told them; NULL: none */
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
	bool by_neighbour; /* own_verdict is remote-stall, for its neighbour's entry alone */
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
	uint8_t counted;	     /* enum rail_word: in the present count of its rail */
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
struct peer *peer_after(struct manager *m, uint64_t serial); /* NULL: none */
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
void rails_on_more(struct manager *m, struct mono now); /* what was left of it */
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
void conn_set_bind(struct manager *m, struct conn_entry *e, const struct binding *b);
void conn_set_worker(struct manager *m, struct conn_entry *e, const char *device);
void conn_feed(struct manager *m, struct conn_entry *e, const struct conn_input *in);
int conn_feed_ctl(struct manager *m, struct conn_entry *e, const struct ctl_msg *msg);
void conns_ep_event(struct manager *m, const struct ep_event *ev);
void conn_refresh(struct manager *m, struct conn_entry *e); /* before it is shown */
/* An event of ours about an endpoint, delivered at the end of the turn. */
void conns_post(struct manager *m, const struct ep_event *ev);
void conns_worker_lost(struct manager *m, const char *device);
void conn_params_from(const struct config_probe *p, struct conn_params *ret);
const struct config_probe *conn_probe(const struct manager *m, const struct conn_entry *e);
void conn_leave_peer(struct conn_entry *e);
void conn_drop(struct manager *m, struct conn_entry *e); /* without a word */
void conns_free(struct manager *m);
/* Callbacks of the loop, installed by manager.c. */
void conns_on_timer(void *user, struct mono now);
void conns_on_start_timer(void *user, struct mono now);
void conns_on_post(void *user);
void conns_on_more(void *user, struct mono now);

/* conns_find.c */
struct conn_entry *conn_by_id(struct manager *m, uint64_t id);
struct conn_entry *conn_by_src(struct manager *m, uint64_t src_id);
struct conn_entry *conn_by_key(struct manager *m, const char *key);
int conns_after(const struct manager *m, uint64_t serial); /* place of the next one */
bool conn_key_matches(const struct conn_entry *e, const char *key);
bool conn_peer_rail_matches(const struct conn_entry *e, const char *name);
/* rx: known by its tx from now on, until conn_forget_src(). */
void conn_know_src(struct manager *m, struct conn_entry *e, uint64_t src_id, uint64_t tag);
void conn_forget_src(struct manager *m, struct conn_entry *e);
/* rx of the same probe; NULL: none. */
struct conn_entry *conn_by_probe(const struct manager *m, const struct conn_key *key,
				 const struct addr *local, uint64_t tag);

/* conns_endpoint.c */
void conn_endpoint_start(struct manager *m, struct conn_entry *e, struct ep_start *s);
void conn_endpoint_reset(struct manager *m, struct conn_entry *e, uint64_t epoch);
/* WM_EP_PROBE or WM_EP_HEARTBEAT, to the worker that has it. */
void conn_endpoint_tell(struct manager *m, struct conn_entry *e, enum wm_type type,
			uint64_t epoch);
/* Hand the order to the endpoint of @e; its ids are filled in. false: there is none. */
bool conn_ping(struct manager *m, const struct conn_entry *e, struct ep_ping *order);
void conn_endpoint_lost(struct manager *m, struct conn_entry *e, const char *why);
void conn_endpoint_done(struct conn_entry *e); /* what is kept of it goes */
void conns_ep_rounds(struct manager *m, const struct wm_ep_rounds *r);

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
/* Counted at most every 100 ms, with what each address was counted as (peer_addr.counted);
 * NULL: nobody is on it. Valid until the next call. */
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
