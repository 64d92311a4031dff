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
 *   conns_find.c connections by what is known of them
 *   conns_endpoint.c the endpoint of a connection, here or in a worker
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
 *   status.c    what is wrong, in one line and in counts
 *   cost.c      what fabd itself uses
 *   state.c     what outlives a restart
 * Its parts: workers.h, ports.h, conns.h. Nothing else includes them.
 */
#pragma once

#include "conns.h"
#include "history.h"
#include "idtable.h"
#include "log.h"
#include "mads.h"
#include "monitor.h"
#include "netlink.h"
#include "pool.h"
#include "ports.h"
#include "suspend.h"
#include "uevent.h"
#include "varlink_server.h"
#include "verdict_log.h"

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
	struct peer *rails_next; /* the same, over what they tell */
	struct peer *listed;	/* peer_after() gave last */
	int n_bad_binds; /* connections without a place */
	struct mono rebound_at, rebind_bad_at, rebind_some_at;
	struct share post_share, order_share, bind_share, sync_share, rails_share,
		judge_share;
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

/* status.c */
json_t *status_json(struct manager *m);

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
