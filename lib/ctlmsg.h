/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ctlmsg.h - a control message as plain values. proto/control.h says how it is written
 * in bytes; lib/conn.h what a connection does with it. Pure.
 */
#pragma once

#include "addr.h"
#include "names.h"

#define CTL_NAME_MAX 64	 /* node, rail and port names, with NUL */
#define CTL_COOKIE_LEN 32
#define CTL_RAILS_MAX 16

/* State of the sender's port that carries this connection, told in every message once
 * known ("peer says its port is down"). */
enum told_port { TOLD_PORT_UNKNOWN = 0, TOLD_PORT_UP = 1, TOLD_PORT_DOWN = 2 };

/* State of the RDMA device of the sender's port, told likewise. */
enum told_device {
	TOLD_DEVICE_UNKNOWN = 0,  /* there is none, or a release that does not tell */
	TOLD_DEVICE_OK = 1,
	TOLD_DEVICE_REPLACED = 2, /* its worker died and is started again */
	TOLD_DEVICE_STUCK = 3,	  /* its worker cannot be killed: the driver hangs */
};

/* What a rail's port has, as far as known (0, none): so that what does not fit together is
 * named before traffic fails. */
#define CTL_PKEYS_MAX 16
struct ctl_rail_facts {
	uint16_t mtu; /* bytes of payload */
	uint8_t n_pkeys;
	uint32_t lid;
	uint8_t gid[16];
	uint16_t pkeys[CTL_PKEYS_MAX];
};

/* The path of this connection as the sender sees it; 0 where it is not known. */
struct ctl_path {
	uint32_t mtu; /* bytes of payload that fit */
	uint16_t pkey;
	uint8_t sl, traffic_class;
};

struct ctl_rail {
	char label[CTL_NAME_MAX];
	struct addr addr; /* port 0 */
};

struct ctl_msg {
	enum ctl_cmd cmd;
	uint8_t minor;	   /* sender's minor version */
	uint64_t src_id;   /* sender's connection id; 0 only in stateless answers */
	uint64_t dst_id;   /* receiver's connection id; 0 = not known yet */
	uint64_t epoch;	   /* of the attempt */
	uint64_t seq;	   /* sender's packet number on this connection, from 1, never
			      repeated, also not over epochs */
	uint64_t ack_seq;  /* acks and stateless answers (Challenge, Unknown, Refused): seq
			      of the command that is answered, else 0. Acks and stateless
			      answers are never answered themselves */

	/* of the receiver: there is a key, and nothing could be checked by it, as of a
	 * message of another version */
	bool unproven;

	/* told in any message */
	uint8_t told_port;	  /* enum told_port */
	uint8_t told_device;	  /* enum told_device */
	uint32_t told_lateness_us; /* how late the sender was at worst in the last 10 s: its
				      loop, or its device's worker */
	struct ctl_path path; /* once the endpoint is up */

	/* Challenge, and Reset (always present there: all zero = none yet, so that the
	 * Challenge is never larger than the Reset) */
	bool has_cookie;
	uint8_t cookie[CTL_COOKIE_LEN];

	uint64_t probe_tag; /* Reset: tells two peers of the sender that share an address
			       apart, the same over its restarts; 0 = not told */

	/* Reset, ProtocolVersion */
	uint8_t transport;	     /* enum transport */
	uint16_t flow;		     /* 0.. */
	char node[CTL_NAME_MAX];     /* sender's NodeName */
	char rail[CTL_NAME_MAX];     /* sender's rail label */
	char port_name[CTL_NAME_MAX]; /* sender's DEV/PORT or "-" */
	struct addr rdma_addr;	     /* Reset, ProtocolVersion: the address the sender's
				      * endpoint will come from (port 0);
				      * ProtocolVersion ack: where to connect (udp:
				      * responder port; rc: CM port) */

	/* ProtocolVersion: range spoken; ack: min == max == chosen */
	uint8_t version_min, version_max;
	uint32_t heartbeat_us; /* wanted; ack: negotiated = the larger of both */
	uint8_t multiplier;    /* of the sender */
	uint32_t min_rx_us;    /* shortest interval that the sender is willing to receive;
				  0 = does not say */
	uint32_t probe_small, probe_large; /* counts of first probes */
	uint32_t probe_size;		   /* bytes of a large one; 0 = none */
	int n_rails; /* ack: rails of the sender, at most CTL_RAILS_MAX; a ping's ack: the
			same when they have become others, else 0 */

	/* Restart, Stop, Refused */
	uint8_t cause;	       /* enum cause */
	uint32_t deadline_sec; /* Stop: failure only after this many seconds */
	uint8_t refusal;       /* enum refusal */

	struct ctl_rail rails[CTL_RAILS_MAX]; /* n_rails count; last, as it is long and a
						 message that is made is zeroed up to it */
	struct ctl_rail_facts facts[CTL_RAILS_MAX]; /* of the rail of the same place */
};

/* The protocol version that this release speaks. Major = header, versions = 1..1. */
#define CTL_VERSION_MIN 1
#define CTL_VERSION_MAX 1
