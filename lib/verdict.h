/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * verdict.h - whose fault is it: a pure function over evidence, a table of rows
 * {predicate, verdict, text}; the first row that matches wins (docs/architecture.md,
 * "Verdicts"). The caller gathers the evidence of the connection itself, of its port,
 * of the other connections to the same peer and rail, and of the other peers.
 */
#pragma once

#include "conn.h"

/* Why in words, with the numbers used. */
#define VERDICT_WHY_MAX 160

struct verdict_facts {
	/* overrides */
	bool silenced, held;
	const char *held_by; /* "local-port mlx5_3/1" (lib/held.h); NULL unless held */
	/* this host */
	int64_t host_up_ns;   /* time since boot */
	bool port_known;      /* a device owns the source, or udp needs none */
	bool port_down;	      /* local port down, address or device gone */
	const char *port_why; /* "mlx5_3/1 DOWN", "no route to 10.2.0.33"; may be NULL */
	bool local_stall;     /* loop, worker thread or host was late at the loss */
	const char *stall_who; /* "fabd on this host", "the worker of mlx5_3"; or NULL */
	int64_t stall_ns;
	bool device_stuck;
	bool sm_mute; /* InfiniBand: no SM LID, or the SA does not answer */
	/* this connection */
	bool is_rdma; /* rc, ud */
	bool connected, ever_connected, late;
	bool told_lost;	     /* the peer's side of it heard nothing from this one */
	enum ep_error error; /* of the last attempt, EPERR_NONE while well */
	enum ep_stage error_stage;
	int32_t error_status;
	bool stopped; /* peer stopped on purpose */
	enum cause stop_cause;
	int64_t stop_left_ns; /* > 0: deadline not passed */
	uint8_t told_port;    /* enum told_port, told after the loss or just before it */
	uint8_t told_device;  /* enum told_device, likewise */
	const char *peer_node, *peer_port; /* as the peer calls them; NULL: not told */
	int64_t told_late_ns; /* the peer's own loop lateness */
	enum refusal refusal; /* REFUSE_NONE: none */
	bool auth_failed;     /* control packets of this peer failed authentication */
	bool unknown_to_peer; /* peer answers but knows no such connection, or nobody
				 listens there (ICMP port unreachable) */
	bool ctl_answers;     /* control packet from the peer in the last detection time
				 (or 3 s), and not before a loss (lost_at) */
	bool ctl_silent;      /* commands out, no answer for longer than that */
	bool neighbour_ok;    /* the peer's own neighbour entry (no gateway's) was confirmed
				 in the last 3 s, or since the loss and not given up */
	bool cm_answers;      /* a CM or SIDR answer, lately */
	bool beside_answers;  /* that, or send_acked, of another connection to that address */
	bool send_acked;      /* rc: the far end's adapter acknowledged what was sent after
				 the last echo: it lives, whoever is to echo does not */
	uint8_t large_lost;   /* messages of large_size bytes lost in a row, while small
				 ones pass */
	uint32_t large_size;
	/* what the two ends tell of the path; 0 = not known */
	bool mtu_mismatch, pkey_mismatch;
	uint32_t own_mtu, peer_mtu;
	uint16_t own_pkey, peer_pkey;
	/* the other transports to the same peer and rail */
	bool udp_ok;  /* its udp connection is connected and not late */
	bool rdma_ok; /* an rc or ud connection is */
	bool host_ok; /* any connection to the same host on any rail is well */
	/* the flows of this transport to the same peer and rail, this one among them */
	int flow, flows, flows_well;
	/* the other peers on the same rail, both numbers without this peer */
	int others, others_down;
	bool or_not_in_config; /* the peer may not have this host in its config */
	/* quality */
	uint32_t loss_permille; /* last 60 s */
	uint64_t rtt_p99_ns;
	uint64_t usual_p99_ns; /* what p99 was while well; 0 = not known yet */
	bool slower; /* p99 is above that by a factor, and has been for a while */
	/* its own past */
	bool damped; /* lost so often that it is not trusted yet (lib/flap.h) */
	uint32_t flaps;
	double flap_penalty;
	int64_t damped_left_ns;
};

struct verdict_result {
	enum verdict verdict;
	int row;
	char why[VERDICT_WHY_MAX]; /* one line for the operator, with the numbers used */
};
void verdict_decide(const struct verdict_facts *f, struct verdict_result *ret);
/* One row as Markdown for the documentation; false past the end. */
bool verdict_row_text(int row, char *buf, size_t size);
/* The row blames the network for the silence of several hosts of the rail. */
bool verdict_row_is_rail(int row);
