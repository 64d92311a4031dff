/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * names.h - the vocabulary: every enum that a user, a peer or a worker sees, with its
 * names. Values travel in control packets and worker messages, so they only grow.
 * Names are snake_case as in proto/io.fabd.varlink; text prints hyphens (enum_text).
 * Pure.
 */
#pragma once

#include "util.h"

/* Which end of the probing a connection is. Wire values. */
enum conn_role { ROLE_TX = 0, ROLE_RX = 1, ROLE__MAX };
extern const struct enum_names role_names;

/* How fabric messages travel. Wire values. Which of them a
 * release speaks is the config's to say. */
enum transport { TRANSPORT_UDP = 0, TRANSPORT_RC = 1, TRANSPORT_UD = 2, TRANSPORT__MAX };
extern const struct enum_names transport_names;

/* The thirteen states of a connection (docs/architecture.md, "Connections"). */
enum conn_state {
	CONN_IDLE,		    /* created, nothing sent */
	CONN_SEND_RESET,	    /* tx repeats Reset until it is acknowledged */
	CONN_SEND_PROTOCOL_VERSION, /* tx offers versions and parameters; rx waits for it */
	CONN_RESETTING,		    /* endpoint is being torn down */
	CONN_RESET_DONE,	    /* torn down; control interface known good */
	CONN_WAIT_FOR_START,	    /* endpoint is being brought up; rx: ready to accept */
	CONN_FABRIC_START,	    /* endpoint is up; probing is being set up */
	CONN_FABRIC_PROBE,	    /* first probe packets flow */
	CONN_FABRIC_TX_PROBE_ACKS,  /* rx has them all; tx waits for its completions */
	CONN_CONNECTED,		    /* in use */
	CONN_CONNECTED_PING,	    /* a control ping is out and not answered yet */
	CONN_FABRIC_RESET,	    /* something failed: tear down, tell the peer, again */
	CONN_DESTROY,		    /* going away */
	CONN__MAX
};
extern const struct enum_names conn_state_names;

/* Whose fault it is. proto/io.fabd.varlink type Verdict. */
enum verdict {
	VERDICT_UNKNOWN,
	VERDICT_OK,
	VERDICT_DEGRADED,
	VERDICT_SILENCED,
	VERDICT_HELD,
	VERDICT_LOCAL_PORT,
	VERDICT_LOCAL_STALL,
	VERDICT_DEVICE_STUCK,
	VERDICT_NO_ROUTE,
	VERDICT_NO_SM,
	VERDICT_PEER_STOPPED,
	VERDICT_REMOTE_PORT,
	VERDICT_REMOTE_STALL,
	VERDICT_AUTH_FAILED,
	VERDICT_INCOMPATIBLE,
	VERDICT_REFUSED,
	VERDICT_RDMA_BROKEN,
	VERDICT_CONTROL_BLOCKED,
	VERDICT_PEER_DOWN,
	VERDICT_NETWORK,
	VERDICT__MAX
};
extern const struct enum_names verdict_names;

enum health { HEALTH_UNKNOWN, HEALTH_OK, HEALTH_DEGRADED, HEALTH_BAD, HEALTH_UNUSED, HEALTH__MAX };
extern const struct enum_names health_names;

/* The operator's override of a port's health. */
enum health_override { OVERRIDE_AUTO, OVERRIDE_OK, OVERRIDE_BAD, OVERRIDE__MAX };
extern const struct enum_names override_names;

/* Life of a worker process as main sees it. */
enum worker_state {
	WORKER_STARTING,   /* started, no hello yet */
	WORKER_RUNNING,
	WORKER_CM_BLOCKED, /* one slow destroy; not killed for it */
	WORKER_BACKOFF,	   /* died or was killed; starts again at a known time */
	WORKER_STUCK,	   /* killed and cannot die: device_stuck */
	WORKER_STOPPED,	   /* device gone or daemon stopping */
	WORKER__MAX
};
extern const struct enum_names worker_state_names;

enum worker_kind { WORKER_RDMA, WORKER_MAD, WORKER_KIND__MAX };
extern const struct enum_names worker_kind_names;

/* Why a field is null. JSON: "unavailable": {"field": "reason"}. WHY_NONE = present. */
enum unavailable {
	WHY_NONE,
	WHY_NOT_READ,	     /* nobody has read it yet */
	WHY_NO_PERMISSION,   /* the device node cannot be opened */
	WHY_NO_WORKER,	     /* the worker that reads it is down */
	WHY_NO_VERBS,	     /* seen through umad only (no kernel verbs device) */
	WHY_NO_UMAD,	     /* no umad device for this port */
	WHY_NOT_INFINIBAND,  /* the link layer has no such thing */
	WHY_NOT_SUPPORTED,   /* the driver does not report it */
	WHY_LINK_DOWN,	     /* meaningless or unreachable while the link is down */
	WHY_TIMEOUT,	     /* asked by MAD, no answer */
	WHY_BAD_STATUS,	     /* asked by MAD, answered with an error status */
	WHY_BAD_ANSWER,	     /* answer of wrong length, attribute or contents */
	WHY_UNREADABLE,	     /* the file or call failed */
	WHY_NO_NETDEV,	     /* the port has no network device */
	WHY_OUT_OF_RANGE,    /* the device says something that cannot be */
	WHY__MAX
};
extern const struct enum_names unavailable_names;

/* Which source told main of a fact. */
enum fact_source {
	SOURCE_START, /* first reading */
	SOURCE_ASYNC, /* verbs async event */
	SOURCE_NETLINK,
	SOURCE_UEVENT,
	SOURCE_POLL, /* the referee poll: an event source missed it */
	SOURCE_MAD,
	SOURCE_OPERATOR,
	SOURCE_COUNTERS, /* a reading of the counters */
	SOURCE_NOTICE,	 /* a notice of the fabric */
	SOURCE_TIME,	 /* no new fact: a window or a wait has ended */
	SOURCE_LLDP,	 /* the far end's name */
	SOURCE__MAX
};
extern const struct enum_names source_names;

/* Commands of the control interface. Wire values: proto/control.h. */
enum ctl_cmd {
	CTL_NONE = 0,
	CTL_CHALLENGE = 1,	  /* rx: prove you can read at your address */
	CTL_RESET = 2,		  /* tx: start a new attempt (epoch) */
	CTL_RESET_ACK = 3,	  /* rx: torn down, ready */
	CTL_PROTOCOL_VERSION = 4, /* tx: versions, transport, parameters */
	CTL_PROTOCOL_VERSION_ACK = 5,
	CTL_CONNECTED = 6, /* rx: has all probes */
	CTL_CONNECTED_ACK = 7,
	CTL_PING = 8, /* tx */
	CTL_PING_ACK = 9,
	CTL_RESTART = 10, /* rx: my side failed, start again (cause) */
	CTL_RESTART_ACK = 11,
	CTL_STOP = 12, /* either: stopping on purpose (cause, deadline) */
	CTL_STOP_ACK = 13,
	CTL_UNKNOWN = 14, /* stateless: I know no such connection */
	CTL_REFUSED = 15, /* stateless or rx: will not (refusal) */
	CTL__MAX
};
extern const struct enum_names ctl_cmd_names;

/* Why a peer restarts or stops. Wire values. */
enum cause {
	CAUSE_NONE,
	CAUSE_RESTART,		/* stop: the service restarts (deadline 60 s) */
	CAUSE_SHUTDOWN,		/* stop: the host goes down (deadline 15 min) */
	CAUSE_CONFIG,		/* stop: taken out of the config */
	CAUSE_ENDPOINT_ERROR,	/* restart: endpoint failed */
	CAUSE_ENDPOINT_RESTART, /* restart: the worker died or was replaced */
	CAUSE_HEARTBEAT_LOST,	/* restart: detection time passed */
	CAUSE_PORT_DOWN,	/* restart: the local port went down */
	CAUSE_OPERATOR,		/* restart: fabctl reset */
	CAUSE_TIMEOUT,		/* restart: the attempt took too long */
	CAUSE__MAX
};
extern const struct enum_names cause_names;

/* Why a Reset or ProtocolVersion is refused. Wire values. */
enum refusal {
	REFUSE_NONE,
	REFUSE_VERSION,	    /* no common protocol version */
	REFUSE_TRANSPORT,   /* transport not offered on that address */
	REFUSE_NOT_ALLOWED, /* reserved: strangers get no answer at all */
	REFUSE_LIMIT,	    /* too many connections */
	REFUSE_AUTH,	    /* authentication required and missing, or wrong key */
	REFUSE_NO_DEVICE,   /* no device owns the address that was asked */
	REFUSE__MAX
};
extern const struct enum_names refusal_names;

/* Steps of bringing an endpoint up, in order; shown as "stage". */
enum ep_stage {
	STAGE_NONE,
	STAGE_RESOLVE_ADDR,
	STAGE_RESOLVE_ROUTE,
	STAGE_CONNECT,
	STAGE_LISTEN, /* rx: ready to accept */
	STAGE_UP,
	STAGE_TEARDOWN,
	STAGE__MAX
};
extern const struct enum_names ep_stage_names;

/* What went wrong with an endpoint, as far as a verdict must tell it apart. */
enum ep_error {
	EPERR_NONE,
	EPERR_NO_ADDRESS,  /* source not on this host or no device owns it */
	EPERR_NO_ROUTE,	   /* no route to the destination, unreachable */
	EPERR_NO_NEIGHBOUR, /* ARP or ND got no answer (resolve_addr timed out) */
	EPERR_NO_PATH,	   /* resolve_route failed: SA mute or no path */
	EPERR_CM_TIMEOUT,  /* connect got no answer */
	EPERR_CM_REFUSED,  /* answered: nobody listens */
	EPERR_CM_REJECTED, /* answered: rejected, code in status */
	EPERR_STALE,	   /* answered: stale connection (IB CM reason 10) */
	EPERR_DISCONNECTED, /* peer closed */
	EPERR_SEND_FAILED, /* a send completion with an error: retries exceeded */
	EPERR_LOCAL,	   /* local QP, memory or driver failure */
	EPERR_DEVICE_GONE, /* removal, fatal */
	EPERR_WORKER_DIED,
	EPERR_PORT_UNREACHABLE, /* udp: ICMP port unreachable: host answers */
	EPERR_HOST_UNREACHABLE, /* udp: ICMP host/net unreachable from a router */
	EPERR_NOT_SUPPORTED, /* transport impossible here (EFA rc, own address) */
	EPERR_LIMIT,	   /* capped per device */
	EPERR__MAX
};
extern const struct enum_names ep_error_names;

/* By which clock round trips are measured: the host's at the call, the kernel's at the
 * wire (SO_TIMESTAMPING), or the device's at completion. */
enum ep_clock { EP_CLOCK_NONE, EP_CLOCK_HOST, EP_CLOCK_KERNEL, EP_CLOCK_DEVICE, EP_CLOCK__MAX };
extern const struct enum_names ep_clock_names;

enum ep_gid_type { EP_GID_IB, EP_GID_ROCE_V1, EP_GID_ROCE_V2, EP_GID__MAX };
extern const struct enum_names ep_gid_type_names;

/* Reasons for which a datagram or message is dropped; counters in GetStatus. */
enum drop {
	DROP_SHORT,	/* truncated */
	DROP_OVERSIZED,
	DROP_MAGIC,
	DROP_MALFORMED, /* lengths, TLVs, values */
	DROP_VERSION,	/* unknown major version (answered where allowed) */
	DROP_STRANGER,	/* not a configured peer, not in Accept= */
	DROP_COOKIE,	/* wrong or old challenge answer */
	DROP_UNAUTHENTICATED,
	DROP_BAD_AUTH,
	DROP_REPLAY,
	DROP_EPOCH,   /* other epoch or connection id */
	DROP_UNKNOWN, /* no such connection */
	DROP_SOURCE,  /* right ids, wrong address */
	DROP_STATE,   /* not expected in this state */
	DROP_LIMIT,   /* rate or count limit */
	DROP_KERNEL,  /* lost in the socket queue (SO_RXQ_OVFL) */
	DROP__MAX
};
extern const struct enum_names drop_names;
