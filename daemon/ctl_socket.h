/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ctl_socket.h - the control interface's sockets in main: one per ControlAddress
 * (default: any IPv4 and any IPv6, port 18777). Datagrams are read in batches; answers
 * leave from the address that was asked (IP_PKTINFO, IPV6_PKTINFO). ICMP errors of
 * sends are reported. Knows bytes and addresses only.
 */
#pragma once

#include "addr.h"
#include "loop.h"
#include "names.h"

struct ctl_socket;

struct ctl_socket_callbacks {
	/* @local: address that was asked, its port the socket's; zone set on link-local.
	 * @truncated: the datagram was longer than @len. */
	void (*datagram)(void *user, const uint8_t *buf, size_t len, bool truncated,
			 const struct addr *from, const struct addr *local);
	/* A send to @to was answered by ICMP: EPERR_PORT_UNREACHABLE or
	 * EPERR_HOST_UNREACHABLE. */
	void (*unreachable)(void *user, const struct addr *to, enum ep_error error);
	void (*dropped)(void *user, enum drop reason, uint64_t count);
};

/* @addrs: n addresses to bind, port 0 = @port. A bind that fails is logged once and
 * tried again every 5 s (an address may come later). -errno only for programmer errors. */
struct ctl_socket *ctl_socket_new(struct loop *l, const struct addr *addrs, int n,
				  uint16_t port, const struct ctl_socket_callbacks *cb,
				  void *user);
struct ctl_socket *ctl_socket_free(struct ctl_socket *s);
/* Send from @from (its IP; unset = the kernel's choice). 0 or -errno (-ENOTCONN: no
 * socket fits). Never blocks: what does not fit in the socket's buffer is lost. */
int ctl_socket_send(struct ctl_socket *s, const struct addr *from, const struct addr *to,
		    const void *buf, size_t len);
/* What has come by now, though the loop has not said so; bounded. */
void ctl_socket_read(struct ctl_socket *s);
bool ctl_socket_bound(const struct ctl_socket *s); /* at least one socket is */
