/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * config.h - what the operator wants. One table of rows {section, key, type, range,
 * default, unit, help} (config_table.c) is the parser, the checker, the dump, the sample
 * file and the manual's list. Reading files is config_read.c's; the parser proper works
 * on text and is pure.
 */
#pragma once

#include "addr.h"
#include "auth.h"
#include "check.h"
#include "conn.h"
#include "mesh.h"
#include "port.h"

#define CONFIG_PATH_MAX 256
#define CONFIG_ADDRS_MAX 16   /* Address= of one peer */
#define CONFIG_LABEL_MAX CTL_NAME_MAX
#define CONFIG_PEERS_MAX 65536

enum auth_mode { AUTH_OFF, AUTH_PREFER, AUTH_REQUIRE };
/* Sweep=: how far ports are looked at. */
enum sweep_mode { SWEEP_MODE_LOCAL, SWEEP_MODE_SUBNET, SWEEP_MODE_OFF };
extern const struct enum_names sweep_modes; /* "local" "subnet" "off" */
enum mad_mode { MAD_AUTO, MAD_SPAWN, MAD_SOCKET };

/* One Address= of a peer: an IP, or a name to be resolved (addr.family 0). */
struct config_addr {
	char *text;	  /* owned */
	const char *zone; /* interface of a link-local IPv6 address, part of text; or "" */
	struct addr addr;
};

/* What [Probe] sets for all and [Peer NAME] for one. Peers with the same settings share
 * one: it does not change, but for being replaced, and goes with its last user. */
struct config_probe {
	unsigned refs;
	uint32_t transports;	/* bits 1 << enum transport; 0: what the device can, see
				   peer_sync_addr() */
	struct addr source;	/* Source=; family 0 = as routed */
	int64_t heartbeat;	/* ns */
	int64_t min_receive;	/* ns; 0 = by allow_fast */
	uint32_t multiplier;
	int64_t ping;
	int64_t backoff_min, backoff_max;
	int64_t resolve_timeout, connect_timeout, attempt_timeout;
	uint32_t traffic_class; /* 0..255 */
	uint32_t service_level; /* 0 = as the path says, else 1 + the level, 0..15 */
	uint32_t flows;		/* 1..64 per address and transport */
	enum mesh_mode mesh;
	uint32_t ack_timeout;	/* rc: AckTimeout= 0..31, 0 = from the heartbeat */
	uint32_t probe_small, probe_large, probe_size;
	bool allow_fast;	/* heartbeats from 10 ms on */
	double flap_suppress;	/* penalty from which a connection is damped; 0 = never */
	int64_t usual;		/* UsualSec=, 0 = never */
	double slow_factor;
	enum auth_mode auth;
	char key_file[CONFIG_PATH_MAX];
	struct auth_keys keys;	/* contents of key_file; n = 0: none */
};

/* There may be tens of thousands: nothing in it has room that is not used. */
struct config_peer {
	char *name;		   /* owned */
	struct config_addr *addrs; /* owned; at most CONFIG_ADDRS_MAX */
	char **rails;		   /* owned: Rail= in the order of Address= */
	struct config_probe *probe; /* one reference is this peer's */
	const char *file;	    /* where it was defined; the config's */
	int n_addrs, n_rails;
	int line;
	uint16_t port; /* Port= of the peer's control interface, default ControlPort= */
};

struct config_port {
	char name[PORT_NAME_MAX]; /* DEV/PORT */
	char address[64];	  /* Address= ties an address to a port without netdev */
	struct addr addr;
	char rail[CONFIG_LABEL_MAX];
	enum health_override health; /* Health=auto|ok|bad */
	bool expected;		     /* Expected=yes: down from the first moment is bad */
};

struct config {
	/* [Fabd] */
	char node_name[CONFIG_LABEL_MAX];	     /* default: host name, short */
	char listen[CONFIG_PATH_MAX];		     /* ListenStream= */
	char admin_listen[CONFIG_PATH_MAX];	     /* AdminListenStream= */
	char state_dir[CONFIG_PATH_MAX];	     /* StateDirectory= "" = keep nothing */
	uint32_t control_port;			     /* 18777 */
	int n_control_addrs;
	struct addr control_addrs[CONFIG_ADDRS_MAX]; /* ControlAddress=; none = any */
	int n_accept;
	struct addr_range accept[64];		     /* Accept= */
	uint32_t max_clients;			     /* 64 */
	uint32_t max_rx;			     /* incoming connections, 20000 */
	uint32_t max_rc_per_device;		     /* 256 */
	double start_budget;			     /* starts per second, 20 */
	int log_level;				     /* LogLevel= */
	char rdma_worker[CONFIG_PATH_MAX], mad_worker[CONFIG_PATH_MAX];
	enum mad_mode mad_mode;
	char mad_socket_dir[CONFIG_PATH_MAX];	     /* /run/fabd-mad */
	int64_t worker_silence, worker_cm_stall, worker_backoff_min, worker_backoff_max;
	int64_t worker_healthy, worker_remove_grace;
	/* [Ports] */
	char devices[1024], ignore_devices[1024];    /* globs, blank-separated */
	int64_t poll, remote_poll, mad_timeout;
	uint32_t mad_retries;
	enum sweep_mode sweep;
	char sweep_hosts[1024]; /* globs of node names, blank-separated */
	int64_t sweep_interval;
	uint32_t sweep_mads, sweep_window;
	bool sweep_notices;
	int64_t counters;			     /* CountersSec=, ns */
	char lldp_command[CONFIG_PATH_MAX];	     /* "" = do not ask */
	char label_file[CONFIG_PATH_MAX];	     /* "" = none */
	/* [Health] */
	struct port_watch_params health;
	/* [Expect] */
	struct check_expect expect;
	/* [Port NAME], [Probe], [Peer NAME] */
	int n_ports;
	struct config_port *ports; /* owned */
	struct config_probe *probe; /* one reference is the config's */
	int n_peers;
	struct config_peer *peers; /* owned, in the order of the files */
	int *peer_slots;	   /* owned: hash of names into peers, -1 = free */
	size_t n_peer_slots;	   /* a power of two */
	char **files;		   /* owned: what was read, by name */
	int n_files;
};

/* One mistake. Error: --check-config fails, and at start the row takes its default or
 * the peer is left out. Warning: unknown keys and sections at start and on reload. */
struct config_problem {
	char file[CONFIG_PATH_MAX];
	int line;
	bool error;
	bool unknown; /* unknown key or section: only a warning unless strict */
	char text[320]; /* what, and what was meant */
};
struct config_problems {
	int n, errors, unknown;
	struct config_problem *p; /* owned; at most 1000, then one says so */
};

/* Read the file (may be missing: defaults) and the drop-in directories
 * (DIR.d of /usr/lib/fabd, /run/fabd, /etc/fabd in the order of operator-view: a file of
 * the same name in a later one replaces it; all sorted by name). @path NULL:
 * /etc/fabd/fabd.conf with all drop-in directories; given: that file and PATH.d only.
 * Always returns a usable config (valid rows run, bad ones take their defaults, bad
 * peers are left out); the caller owns it. All problems are listed. Reads key files.
 * Also returns in @ret_text (may be NULL, owned by the caller) the merged text that was
 * read, for the copy in the state directory. */
struct config *config_load(const char *path, struct config_problems *ret_problems,
			   char **ret_text);
/* The same on text, for tests and fuzzing: nothing is read from files but, if
 * @read_keys, key files. */
struct config *config_parse(const char *text, size_t len, const char *name, bool read_keys,
			    struct config_problems *ret_problems);
struct config *config_free(struct config *c);
struct config_probe *config_probe_ref(struct config_probe *p);
/* NULL-safe, returns NULL. Keys leave the memory with the last one. */
struct config_probe *config_probe_unref(struct config_probe *p);
void config_problems_done(struct config_problems *p);
/* Text of a config that parses again to the same; the caller owns it. */
char *config_dump(const struct config *c);
/* The sample file (all keys, commented out, with help) and the manual's list. */
char *config_sample(void);
char *config_man(void);

/* A name that may stand in a key: printable ASCII, no blank and none of / : > #. NULL;
 * or what is wrong with it. */
const char *config_label_wrong(const char *s, size_t max);
/* Same in all that matters to a running connection of the peer. Which keys there are does
 * not (only whether there are any): they are changed under a running connection. */
bool config_peer_equal(const struct config_peer *a, const struct config_peer *b);
/* In constant time; NULL: none. */
const struct config_peer *config_peer_find(const struct config *c, const char *name);
const struct config_port *config_port_find(const struct config *c, const char *name);
/* Sweep=subnet, and this host may. */
bool config_may_sweep(const struct config *c);
bool config_wants_device(const struct config *c, const char *device);
