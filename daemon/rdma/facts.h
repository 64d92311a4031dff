/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * facts.h - inside the facts thread: what the device says of itself, read through a
 * verbs context of its own, sysfs and RDMA netlink. facts.c is the thread: when to read
 * and what changed; facts_read.c reads ports, counters.c counters; sysfs.c, netdev.c and
 * ethtool.c are its other sources.
 */
#pragma once

#include <infiniband/verbs.h>

#include "rdma.h"

#define FACTS_PORTS_MAX 254

/* Which of a network device's statistics are counters. */
struct ethtool_plan {
	char netdev[EP_IF_MAX]; /* it was made for; "" = not made */
	uint32_t n_stats;
	uint16_t place[CTR__MAX]; /* 1 + index, 0 = the driver has none */
};

struct port_state {
	struct wm_port port;   /* as last sent */
	struct port_gid *gids; /* owned */
	int n_gids;
	enum unavailable gids_why;
	uint16_t *pkeys; /* owned */
	int n_pkeys;
	enum unavailable pkeys_why;
	bool sent; /* all three were, once */
	struct ethtool_plan ethtool;
};

struct facts {
	struct worker *w;	   /* borrowed */
	struct ibv_context *verbs; /* owned */
	bool iwarp, async_dead;
	int n_ports;		  /* that are read */
	struct port_state *ports; /* owned, n_ports; index 0 = port 1 */
	unsigned polls;
};

/* facts.c: open the device, read and report all, decide what it may be used for. 0, or
 * -errno after a goodbye. */
int facts_start(struct facts *f);
/* The two clocks of the thread; never: not wanted. */
struct facts_due {
	struct mono poll, counters;
};
/* Wait for something, at most until the next clock, and report what changed. */
void facts_turn(struct facts *f, struct facts_due *due);
/* Close and free; for an orderly end. */
void facts_done(struct facts *f);

/* facts_read.c: fill what is valid now. GIDs and P_Keys are given to the caller. */
void facts_read_device(struct facts *f, struct wm_device *ret);
void facts_read_port(struct facts *f, int num, struct wm_port *ret);
enum unavailable facts_read_gids(struct facts *f, int num, struct port_gid **ret,
				 int *ret_n);
enum unavailable facts_read_pkeys(struct facts *f, int num, uint16_t **ret, int *ret_n);

/* counters.c: all counters of a port that sysfs and the network device have. */
void facts_read_counters(struct facts *f, int num, struct wm_counters *ret);

/* sysfs.c: the first line of a file without its end, cleaned; 0 or -errno. */
int sysfs_read(const char *path, char *buf, size_t size);
/* Name of the device now: the library keeps the one it had when it was opened. */
void sysfs_device_name(const struct worker *w, char buf[DEVICE_NAME_MAX]);
/* PCI address, link and NUMA node of the device @name; VF or not. */
void sysfs_read_pci(const char *name, struct device_facts *d);

/* netdev.c: network device of a port by RDMA netlink; 0, -ENODEV: none, or -errno. */
int netdev_of_port(uint32_t device_index, uint32_t port, uint32_t *ret_index,
		   char ret_name[EP_IF_MAX]);

/* ethtool.c: statistics of @netdev into @r; the plan is made anew when the device or its
 * number of statistics has changed. 0 or -errno (-EOPNOTSUPP: it has none). */
int ethtool_read(const char *netdev, struct ethtool_plan *plan, struct counter_reading *r);
