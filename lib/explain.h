/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * explain.h - the way of one connection from the peer's name to its heartbeats, a step a
 * line, with the first wrong step marked, and where to act. Two tables: the steps, each
 * with what it says and whether it is well by itself (explain_steps); and for each verdict
 * which step is the wrong one and whose it is, first match wins (explain_wrong). What comes
 * after the wrong step and rests on it cannot be judged. Pure: facts in, lines out.
 */
#pragma once

#include "verdict.h"

/* In the order in which a connection comes about. */
enum explain_step {
	STEP_NAME,	/* name to address, told by whom */
	STEP_ADDRESSES, /* which of the peer's rails have one */
	STEP_ROUTE,
	STEP_SOURCE,	/* own address, owned by which port */
	STEP_LOCAL,	/* device, port, GID; interface; worker */
	STEP_NEIGHBOUR, /* of the peer, or of the gateway */
	STEP_ARP,	/* two own interfaces on one subnet */
	STEP_MTU,
	STEP_PKEY,
	STEP_CLASS,	/* service level, traffic class */
	STEP_SA_PATH,	/* InfiniBand: what the subnet administration says */
	STEP_CONTROL,	/* the peer's fabd on the control port */
	STEP_RESOLVE,	/* rdma_resolve_addr, rdma_resolve_route */
	STEP_CONNECT,	/* endpoint and first probes */
	STEP_HEARTBEAT,
	STEP__MAX
};
extern const struct enum_names explain_step_names; /* "name" "sa_path" ... */

enum explain_mark { MARK_OK, MARK_BAD, MARK_SKIPPED, MARK_WARN, MARK__MAX };
extern const struct enum_names explain_mark_names;

/* Whose it is: where to act. */
enum fault_place { PLACE_NOWHERE, PLACE_LOCAL, PLACE_REMOTE, PLACE_NETWORK, PLACE__MAX };
extern const struct enum_names fault_place_names;

enum name_source { NAME_NONE, NAME_CONFIG, NAME_RESOLVER, NAME_PEER };
enum neighbour_state {
	NEIGHBOUR_UNKNOWN, /* not asked, or there is no entry */
	NEIGHBOUR_REACHABLE, NEIGHBOUR_STALE, NEIGHBOUR_DELAY, NEIGHBOUR_PROBE,
	NEIGHBOUR_INCOMPLETE, NEIGHBOUR_FAILED, NEIGHBOUR_PERMANENT, NEIGHBOUR_NOARP,
	NEIGHBOUR__MAX
};

/* Interfaces of this host with IPv4 addresses of one subnet, and the kernel's settings,
 * as they take effect on the worst of them. */
struct explain_arp {
	int interfaces; /* on the source's subnet; below 2 there is no trap */
	char first[EP_IF_MAX], second[EP_IF_MAX];
	struct addr subnet;
	uint8_t bits;
	int rp_filter, arp_ignore, arp_announce; /* -1 = not readable */
};

/* How another transport, or another flow, to the same address fares. */
struct explain_other {
	enum transport transport;
	bool connected; /* and not late */
	uint64_t sent, lost, rtt_p50; /* ns, 0 = none */
	char on[EP_IF_MAX]; /* udp: the interface; "" = none */
};
#define EXPLAIN_OTHERS_MAX 3

/* Ages in ns; negative = never, or not known. Text: "" = not known. */
struct explain_facts {
	struct verdict_facts v;	      /* without held and silenced */
	struct verdict_result given;  /* the verdict as it stands */
	struct verdict_result inner;  /* of a held or silenced one: its own; else given */
	const char *peer, *rail;
	enum transport transport;
	bool has_connection; /* else all but name and addresses is empty */

	/* name, addresses */
	char host[64];		  /* the name that was asked; "" = an address was given */
	struct addr remote;	  /* family 0 = none */
	enum name_source name_source;
	int64_t name_age;
	char resolve_error[128];
	int addresses, addresses_known;

	/* route, source */
	bool route_asked;
	int route_error; /* 0, -errno */
	char netdev[EP_IF_MAX];
	struct addr gateway, local;
	bool source_missing; /* not on this host, or nobody's */
	char bind_why[EP_TEXT_MAX]; /* why no endpoint can be made here; "" = it can */
	bool own_host;

	/* local */
	char port[64];	    /* DEV/PORT; "" = no RDMA device */
	char port_state[32]; /* "ACTIVE" */
	char port_far[136];  /* "leaf07/22" */
	enum health port_health;
	char port_why[128];
	bool infiniband;
	uint32_t lid, sm_lid, port_mtu; /* 0 = not known */
	bool pkey_known;
	uint16_t pkey;
	/* other hosts probed by RDMA over this port, and those to which it is broken */
	int port_hosts, port_hosts_broken;
	bool has_worker;
	enum worker_state worker;
	char worker_why[160];
	bool netdev_up;
	uint32_t netdev_mtu;

	enum neighbour_state neighbour;
	int64_t neighbour_age;
	struct explain_arp arp;

	/* path */
	struct ep_path path;
	int64_t path_age;
	int wanted_sl; /* -1 = as the path says */
	uint8_t traffic_class;

	/* control, resolve, connect */
	uint16_t control_port;
	int64_t control_age; /* last packet of the peer */
	int64_t control_silence; /* a command is out for so long */
	uint8_t version;     /* negotiated */
	enum conn_state state;
	int64_t state_age, connected_age, error_age;
	enum ep_stage stage;
	char error_text[EP_TEXT_MAX]; /* of the last failed attempt */
	int64_t stop_left; /* until the deadline of a peer that stopped */

	/* heartbeat */
	int64_t heartbeat_age; /* last message heard */
	uint64_t sent, lost, rtt_p50, rtt_p99; /* ns */
	int n_others;
	struct explain_other others[EXPLAIN_OTHERS_MAX];
};

struct explain_line {
	enum explain_step step;
	enum explain_mark mark;
	bool detail; /* another line says it too, as long as it is well */
	char text[256];
};

struct explanation {
	int n_lines;
	struct explain_line lines[STEP__MAX];
	enum explain_step wrong; /* STEP__MAX = none */
	enum fault_place place;
	const char *act; /* what to do, "" = nothing; static */
};
void explain(const struct explain_facts *f, struct explanation *ret);

/* ---- the tables, for the documentation and the tests ---- */

/* The first wrong step by verdict alone: every row that may match, by number; false past
 * the end. */
struct explain_wrong_row {
	enum verdict verdict;
	const char *when; /* evidence; "" = always */
	enum explain_step step; /* STEP__MAX = none */
	enum fault_place place;
	const char *act;
};
bool explain_wrong_at(int row, struct explain_wrong_row *ret);
/* The row that decides for these facts. */
int explain_wrong_row(const struct explain_facts *f);
const char *explain_step_about(enum explain_step s); /* one line for the documentation */
bool explain_step_needs(enum explain_step s, enum explain_step on);

/* explain_text.c: what a step says and how it is by itself. MARK__MAX: it has nothing to
 * say here (no InfiniBand, no gateway), and is left out. */
enum explain_mark explain_judge(enum explain_step s, const struct explain_facts *f,
				char *buf, size_t size);
/* What a step says when it is the wrong one; nothing: the verdict's words are said. */
void explain_say_wrong(enum explain_step s, const struct explain_facts *f, char *buf,
		       size_t size);
