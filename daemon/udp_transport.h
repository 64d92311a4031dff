/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * udp_transport.h - fabric messages over plain UDP, in main: an endpoint provider
 * (lib/endpoint.h) without any RDMA device. One socket per (source address, netdev,
 * flow) for tx and one per (local address, netdev) for rx, shared by all endpoints on
 * it and closed with the last; bound to the netdev (SO_BINDTODEVICE) where one is
 * given; apart from the control socket. Receives in batches (recvmmsg); the kernel's
 * receive timestamps (SO_TIMESTAMPNS) and drop counter (SO_RXQ_OVFL) are used; ICMP
 * errors (IP_RECVERR, IPV6_RECVERR) become EPERR_PORT_UNREACHABLE or
 * EPERR_HOST_UNREACHABLE of the endpoints that talk to that address. A rx endpoint is
 * UP when the first valid message of its tx arrives.
 */
#pragma once

#include "endpoint.h"
#include "hist.h"
#include "loop.h"

struct udp_transport;

/* Upward: every event, from the loop, never from within a verb: verbs only queue. */
struct udp_callbacks {
	void (*event)(void *user, const struct ep_event *ev);
	void (*dropped)(void *user, enum drop reason, const struct addr *from);
};

struct udp_transport *udp_transport_new(struct loop *l, const struct udp_callbacks *cb,
					void *user);
struct udp_transport *udp_transport_free(struct udp_transport *t);

void udp_ep_start(struct udp_transport *t, const struct ep_start *s);
void udp_ep_probe(struct udp_transport *t, uint64_t conn_id, uint64_t epoch);
void udp_ep_heartbeat(struct udp_transport *t, uint64_t conn_id, uint64_t epoch);
void udp_ep_ping(struct udp_transport *t, const struct ep_ping *p);
void udp_ep_reset(struct udp_transport *t, uint64_t conn_id, uint64_t epoch);
/* The loop could not run for @ns until @now: detection is put off by that much. */
void udp_stalled(struct udp_transport *t, int64_t ns, struct mono now);
/* The figures of an endpoint as they are now, between its STATS. false: there is none. */
bool udp_ep_stats(const struct udp_transport *t, uint64_t conn_id, uint64_t epoch,
		  struct ep_stats *ret);
/* Its round trips in the window, if it is a tx: @ret is the caller's to hist_done(). */
bool udp_ep_rtt(const struct udp_transport *t, uint64_t conn_id, uint64_t epoch,
		struct hist *ret);
/* What endpoints take beside sockets and buffers: bytes of one, 0 = none. */
size_t udp_ep_memory(const struct udp_transport *t, uint64_t conn_id);
/* Datagrams sent and received so far. */
void udp_counts(const struct udp_transport *t, uint64_t *ret_sent, uint64_t *ret_received);
