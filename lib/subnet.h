/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * subnet.h - the fabric as far as it is known: nodes, logical ports (one per port GUID,
 * OpenSM's osm_port), lookups by GUID and by LID, links, levels. One writer: the sweep
 * (sweep.h), or whoever reads a saved topology. Host order. Pure.
 */
#pragma once

#include "physp.h"

/* A logical port: a CA or router port, or port 0 of a switch. */
struct ib_port {
	uint64_t guid;
	struct physp *physp; /* borrowed */
	uint32_t discovery_count;
	bool is_new; /* made since the last subnet_age() */
	uint16_t *mlids; /* owned, in the order of adding */
	int n_mlids, mlids_size;
	struct ib_port *next; /* private to ib_port.c */
};

struct subnet; /* opaque */

struct subnet *subnet_new(void);
struct subnet *subnet_free(struct subnet *s); /* NULL-safe, returns NULL */

/* ---- nodes ---- */

/* The node of this NodeInfo: the one that is known, or a new one whose slots are made
 * (a switch's all with @path to it; of a CA the slot of info.local_port). A node that is
 * known and answers through another port gets that slot; routes of slots that were there
 * stay (physp_set_path()). Never fails; a node whose type, number of ports or, of a
 * switch, port GUID changed keeps its object but is made anew: links, logical ports,
 * description and SwitchInfo go, need_update is 2. *ret_new: it was not known. @ni has
 * passed mad_decode_node_info(). */
struct ib_node *subnet_node(struct subnet *s, const struct node_info *ni, uint8_t hops,
			    const uint8_t *path, bool *ret_new);
struct ib_node *subnet_node_by_guid(const struct subnet *s, uint64_t node_guid);
/* Node GUID, port GUID ("0x2c903..."), LID ("17", "0x11"), node description, or its short
 * name (node_desc_short), the first of these that is there; NULL: none, or *ret_ambiguous
 * more than one. */
struct ib_node *subnet_find(const struct subnet *s, const char *name, bool *ret_ambiguous);
/* Unlinks and frees it, with its ports. */
void subnet_drop(struct subnet *s, struct ib_node *n);
/* In the order of discovery; NULL begins, NULL ends. The next of a dropped one is not
 * known: take it before. */
struct ib_node *subnet_next(const struct subnet *s, const struct ib_node *n);
/* Valid slot, or NULL. */
struct physp *node_physp(const struct ib_node *n, unsigned num);
/* The management port of a switch; of others the first valid port. */
struct physp *node_main_port(const struct ib_node *n);
bool node_is_switch(const struct ib_node *n);

struct subnet_counts {
	uint32_t nodes, switches, cas, routers;
	uint32_t ports;	   /* that the nodes have, known or not, but port 0 of switches */
	uint32_t links, links_degraded;
	uint32_t links_down_ends; /* ports that are down */
	uint32_t duplicates;
	size_t bytes; /* heap that the subnet owns, as asked of malloc */
};
void subnet_count(const struct subnet *s, struct subnet_counts *ret);
/* Level of each switch: 0 has a CA or router at it, else 1 + the least level next to
 * it; CAs have none. Writes ret[serial], @n = subnet_serials(). */
#define LEVEL_NONE 255
uint32_t subnet_serials(const struct subnet *s); /* more than any serial in use */
void subnet_levels(const struct subnet *s, uint8_t *ret, uint32_t n);

/* ---- logical ports ---- */

/* Of a physical port that is valid (of a switch: port 0): the one that is known under
 * that GUID, or a new one (is_new). NULL: a port of another node has the GUID (both nodes
 * are flagged as duplicates, and stay so), or the port is not valid. */
struct ib_port *subnet_port(struct subnet *s, struct physp *p);
struct ib_port *subnet_port_by_guid(const struct subnet *s, uint64_t port_guid);
void subnet_port_drop(struct subnet *s, uint64_t port_guid);
uint16_t ib_port_base_lid(const struct ib_port *p);
uint8_t ib_port_lmc(const struct ib_port *p);
/* False: none (lid_range()). */
bool ib_port_lid_range(const struct ib_port *p, uint16_t *ret_first, uint16_t *ret_last);
/* The switch that the port of a host hangs on: its leaf. NULL: it is not known, or the
 * host is cabled to another host; @p may be NULL. */
const struct ib_node *ib_port_leaf(const struct ib_port *p);
/* After a PortInfo: the table of LIDs follows. A LID that two ports claim belongs to the
 * one that had it first; -EEXIST then, as long as it lasts. When that one gives it up, it
 * goes to the next that claimed it. A range that changed is claimed anew. */
int subnet_lids_changed(struct subnet *s, struct ib_port *p);
/* By any LID of a port's range; NULL for 0, multicast and unassigned LIDs. */
struct ib_port *subnet_port_by_lid(const struct subnet *s, uint16_t lid);
/* Forget is_new of all ports. */
void subnet_age(struct subnet *s);

/* Multicast groups: bookkeeping, no MAD. Adding twice is once; 0xc000..0xfffe, else
 * -ERANGE. Removing what is not there is nothing. */
int ib_port_add_mlid(struct ib_port *p, uint16_t mlid);
void ib_port_remove_mlid(struct ib_port *p, uint16_t mlid);
void ib_port_remove_all_mlids(struct ib_port *p);
