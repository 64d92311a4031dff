/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * udp_socket.h - what the control interface and the udp transport share about UDP
 * sockets: opening, reading in batches with the kernel's notes, sending in batches,
 * ICMP errors, the route to a peer. Knows bytes and addresses only, keeps no state.
 */
#pragma once

#include <sys/socket.h>

#include "addr.h"
#include "names.h"

#define UDP_BATCH 32

struct udp_open {
	struct addr local;  /* family says which; port 0 = any. Bound as it is */
	const char *netdev; /* SO_BINDTODEVICE; "" or NULL: not */
	bool pktinfo;	    /* want the address that was asked */
	bool stamps;	    /* want the time of receipt, and of sends that ask for it */
	bool dont_fragment; /* too large a datagram is an error instead of fragments */
	uint8_t tos;	    /* traffic class of what is sent, unless udp_put_tos() says */
	uint8_t priority;   /* SO_PRIORITY + 1; 0 = as tos implies. Best effort */
};
/* Non-blocking, close-on-exec, IPv6 only IPv6. Returns the fd, or -errno with the name
 * of the step that failed in @ret_step. When the right to bind to @netdev is missing
 * (CAP_NET_RAW before Linux 5.7) but an address is bound, which already selects the
 * network, it goes on and sets *ret_unbound. */
int udp_open(const struct udp_open *o, const char **ret_step, bool *ret_unbound);
int udp_local(int fd, struct addr *ret); /* getsockname; 0 or -errno */

/* One datagram of a batch. @buf has min(@len, size of a buffer) bytes. */
struct udp_datagram {
	uint8_t *buf;
	size_t len; /* as sent */
	struct addr from;
	struct addr local; /* with pktinfo: IP and zone; else unset */
	int64_t stamp_ns;  /* CLOCK_REALTIME of receipt, 0 = not known */
	int64_t device_ns; /* the same by the network card's own clock, 0 = not known */
	bool truncated;	   /* longer than the room for it */
};

/* Room for a batch: UDP_BATCH buffers of @head bytes each; what follows in a datagram
 * goes to one place of @tail bytes that nobody reads. */
struct udp_rx;
struct udp_rx *udp_rx_new(size_t head, size_t tail);
struct udp_rx *udp_rx_free(struct udp_rx *rx);
/* Reads up to UDP_BATCH datagrams that have come from an IP address; 0: none left.
 * *ret_full: there may be more. @lost: the socket's count of datagrams lost in its
 * queue, as far as known before; *ret_lost = how many more there are now. */
int udp_rx_read(struct udp_rx *rx, int fd, uint32_t *lost, uint32_t *ret_lost,
		bool *ret_full);
const struct udp_datagram *udp_rx_get(const struct udp_rx *rx, int i);

/* What came back for a datagram that was sent: an ICMP error, or when it left. */
struct udp_report {
	bool is_stamp;
	/* error */
	int error;	       /* errno value */
	enum ep_error kind;    /* EPERR_NONE: too large for the path, or nothing known */
	struct addr to;	       /* where the datagram went */
	uint8_t quoted[64];    /* begin of its payload, as far as it came back */
	size_t quoted_len;
	/* stamp: of one clock or the other, never both */
	uint32_t id;	   /* counts the sends of the socket that asked, from 0 */
	int64_t stamp_ns;  /* CLOCK_REALTIME, or 0 */
	int64_t device_ns; /* the network card's own clock, or 0 */
};
bool udp_report_read(int fd, struct udp_report *ret); /* false: no more */

/* Ancillary data of a send. */
#define UDP_CONTROL_LEN 64
void udp_put_tos(struct msghdr *h, uint8_t family, uint8_t tos);
void udp_put_source(struct msghdr *h, const struct addr *from);
/* Report when it leaves: by the kernel's clock, and by the device's if @device. */
void udp_put_stamp(struct msghdr *h, bool device);

/* Send @n messages. What the kernel refuses is told to @failed (an errno value) and
 * left out; a full socket buffer or queue loses the rest, without a word, as a network
 * would. An ICMP error that waits for this socket is not taken for the message's own.
 * Returns how many were sent. */
typedef void udp_failed_fn(void *user, int i, int error);
int udp_send(int fd, struct mmsghdr *msgs, int n, udp_failed_fn *failed, void *user);

/* The route from @local (may be unset) to @remote: the source address that the kernel
 * takes, and how many bytes of payload fit in one packet. 0 or -errno. */
int udp_route(const struct addr *local, const struct addr *remote, const char *netdev,
	      struct addr *ret_local, uint32_t *ret_payload);
