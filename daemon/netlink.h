/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * netlink.h - what the kernel says of interfaces, addresses, routes, neighbours (rtnetlink)
 * and of RDMA devices (NETLINK_RDMA), with libmnl. Links and addresses are kept as
 * tables, told of by events and read afresh after an overrun; routes, neighbours and
 * RDMA devices are asked for when needed: the kernel answers such a request within the
 * call. Opens nothing under /dev.
 */
#pragma once

#include "addr.h"
#include "loop.h"

#define LINK_HWADDR_MAX 32

struct nl_link {
	uint32_t index;
	char name[16];
	bool up, running; /* IFF_UP, IFF_RUNNING (carrier) */
	bool loopback;
	uint32_t mtu;
	uint8_t hwaddr[LINK_HWADDR_MAX];
	uint8_t hwaddr_len;
};
struct nl_addr {
	uint32_t link;
	struct addr addr;
	uint8_t bits; /* of the subnet */
	bool usable; /* not tentative, not failed duplicate detection */
};

struct netlink;
/* Called at the end of a burst that changed something; tables are up to date then.
 * @moved: links or addresses are other than before; else routes only. */
typedef void netlink_fn(void *user, bool moved);
struct netlink *netlink_new(struct loop *l, netlink_fn *changed, void *user, int *ret_error);
struct netlink *netlink_free(struct netlink *n);

const struct nl_link *netlink_link(const struct netlink *n, uint32_t index);
const struct nl_link *netlink_link_by_name(const struct netlink *n, const char *name);
const struct nl_addr *netlink_addrs(const struct netlink *n, int *ret_count);
/* The interface that has this address of ours; NULL: none. */
const struct nl_addr *netlink_own_addr(const struct netlink *n, const struct addr *a);

struct nl_route {
	uint32_t oif;
	struct addr source; /* preferred source */
	struct addr gateway; /* family 0: on the link */
};
/* As a socket would be routed; @src may be NULL. 0; -ENETUNREACH, -EHOSTUNREACH,
 * -EINVAL (no such source); -ETIMEDOUT, -ENOBUFS, -ENOMEM: the kernel did not say. */
int netlink_route(struct netlink *n, const struct addr *dst, const struct addr *src,
		  struct nl_route *ret);
/* State of the neighbour entry (NUD_*), and how long ago it was confirmed; -ENOENT. */
int netlink_neighbour(struct netlink *n, uint32_t link, const struct addr *a,
		      uint16_t *ret_state, int64_t *ret_confirmed_ns);

struct nl_rdma_device {
	uint32_t index;
	char name[64];
	uint32_t ports;
	uint64_t node_guid, sys_guid;
	char fw[64];
};
/* All RDMA devices; @ret is the caller's to free. 0; -EPROTONOSUPPORT: this kernel has
 * no RDMA (yet). */
int netlink_rdma_devices(struct nl_rdma_device **ret, int *ret_count);
