/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * physp.h - nodes and their physical ports, and the links between them: OpenSM's
 * osm_node and osm_physp, with the intended semantics where theirs are defects (an
 * unhealthy port whose remote is unknown is not healthy; the full member of two equal
 * P_Keys wins; LID ranges do not wrap). Nothing is ever written to the fabric.
 *
 * A node owns its slots, num_ports + 1 of them, so a physical port does not move while
 * its node lives. Slot 0 of a switch is its management port; slot 0 of a CA or router is
 * never valid; the other slots of a CA become valid one at a time, when NodeInfo comes
 * through that port. All ports of a switch share the node's port GUID (IBA 14.2.5.3).
 * Host order throughout. Pure.
 */
#pragma once

#include "ib.h"
#include "link.h"
#include "mono.h"
#include "names.h"

const char *node_type_name(uint32_t type); /* "ca" "switch" "router" "rnic" ("unknown") */
/* What people call a node: switches often describe themselves as
 * "MF0;leaf08:MQM8700/U1", where the name is in the middle. Returns @buf. */
const char *node_desc_short(const char *desc, char *buf, size_t size);

struct physp;

struct ib_node {
	struct node_info info;
	char desc[65];
	bool desc_known;
	struct switch_info sw;
	bool sw_known;
	struct physp *slots; /* owned, info.num_ports + 1; NULL in a host's port object */

	/* bookkeeping of the sweep that owns the node's subnet */
	uint32_t serial;	  /* place in the subnet, from 1 */
	uint32_t discovery_count; /* NodeInfo answers in the present sweep */
	uint32_t seen_sweep;	  /* number of the last sweep that saw it */
	uint32_t mads;		  /* requests sent to it, since it is known */
	struct mono read_at;
	uint8_t flags; /* enum node_flag */
	struct ib_node *next; /* in the order of discovery */
	void *sweep; /* private to sweep.c */
};
enum node_flag {
	NODE_DUPLICATE = 1, /* another node claims the same GUID */
	NODE_SUSPECT = 2,   /* did not answer lately */
	NODE_PROTECTED = 4  /* M_Key protection: silent by intention, not asked again */
};

/* P_Keys of a port. */
struct pkey_table {
	uint16_t capacity; /* entries; blocks = ceil(capacity / 32) */
	uint16_t n_blocks;
	struct pkey_block *blocks; /* owned */
	uint64_t read;		   /* bit b: block b was read (blocks up to 63) */
};
/* SL to VL by input port, and VL arbitration; allocated when the first is set. */
struct qos_tables {
	uint16_t n_slvl;   /* switch: num_ports + 1, by input port; CA, router: 1 */
	struct slvl *slvl; /* owned; zero until set */
	uint8_t *slvl_set; /* owned, a byte an entry */
	struct vlarb_block vlarb[4]; /* 1,2 low priority, 3,4 high, at block - 1 */
	uint8_t vlarb_set;	     /* bits */
};

struct physp {
	struct ib_node *node; /* borrowed; NULL before physp_init() */
	uint64_t guid;	      /* 0: not valid */
	uint8_t num;
	bool healthy;
	bool info_full;	      /* a PortInfo in a state other than Down was seen */
	uint8_t need_update;  /* 2 new, 1 to be read again, 0 known */
	struct port_info info;
	struct physp *remote; /* borrowed; both ends point at each other or neither does */
	uint8_t hops, path[IB_PATH_LEN]; /* directed route to this port, path[0] = 0 */
	struct pkey_table *pkeys; /* owned, NULL until a block was set */
	struct qos_tables *qos;	  /* owned, NULL until a table was set */
	uint32_t seen_sweep;	  /* last sweep that read its PortInfo */
	struct mono read_at;
};

/* ---- life ---- */

/* All zero: not valid, not healthy, no route, no tables. */
void physp_construct(struct physp *p);
/* Construct, then: GUID, number, node, healthy, need_update 2, the first @hops + 1 bytes
 * of @path (path[0] must be 0; NULL: unknown, hops 0). @hops over IB_HOPS_MAX: cut to no
 * route. @guid 0 leaves it not valid. */
void physp_init(struct physp *p, uint64_t guid, uint8_t num, struct ib_node *node,
		uint8_t hops, const uint8_t *path);
/* Unlinks (so that no half link stays), frees the tables, constructs. Of a port that is
 * not valid nothing is done. */
void physp_destroy(struct physp *p);
bool physp_is_valid(const struct physp *p);

/* ---- facts ---- */

/* The flag alone, independent of state and link. */
bool physp_is_healthy(const struct physp *p);
void physp_set_health(struct physp *p, bool healthy);
/* Port-down rule (C14-24-2.1): PortState Down copies only the two states; any other
 * state copies all. need_update: Down 0; after 2, or in state Init: 1; else 0. Base
 * switch port 0 (not enhanced) is always copied whole: its state means nothing. */
void physp_set_info(struct physp *p, const struct port_info *pi);
uint64_t physp_guid(const struct physp *p);
uint8_t physp_num(const struct physp *p);
struct ib_node *physp_node(const struct physp *p);
uint8_t physp_state(const struct physp *p); /* enum ib_port_state */
/* Of a switch's external port: those of its port 0, as IBA demands. 0: none. */
uint16_t physp_base_lid(const struct physp *p);
uint8_t physp_lmc(const struct physp *p);
uint64_t physp_subnet_prefix(const struct physp *p);
/* Directed route; *ret_hops 0 is this host's own port. Borrowed. */
const uint8_t *physp_path(const struct physp *p, uint8_t *ret_hops);
/* Another route to it, as of physp_init(); of a switch's port: to all ports of the switch,
 * whose routes are one. */
void physp_set_path(struct physp *p, uint8_t hops, const uint8_t *path);

/* ---- tables ---- */

/* Entries of a port's P_Key table: NodeInfo.PartitionCap of a CA, router or switch port
 * 0, SwitchInfo.PartitionEnforcementCap of other switch ports (14.2.5.7). */
uint16_t physp_pkey_capacity(const struct physp *p);
/* -ERANGE for a block beyond ceil(capacity / 32): ignored. This and the other tables:
 * -EINVAL of a port that is not valid. */
int physp_set_pkeys(struct physp *p, unsigned block, const struct pkey_block *b);
/* Membership of a P_Key by its low 15 bits: 0xffff-style full value if any entry is
 * full, the limited value if only limited entries are there, 0 if none. Base 0 is never
 * found. Entries over the capacity do not count. */
uint16_t physp_find_pkey(const struct physp *p, uint16_t pkey);
/* Input port by switch sizing (0..num_ports); of a CA or router only 0. -ERANGE. */
int physp_set_slvl(struct physp *p, unsigned in_port, const struct slvl *t);
const struct slvl *physp_get_slvl(const struct physp *p, unsigned in_port); /* or NULL */
/* Block 1..4; -ERANGE. */
int physp_set_vlarb(struct physp *p, unsigned block, const struct vlarb_block *b);
const struct vlarb_block *physp_get_vlarb(const struct physp *p, unsigned block);

/* ---- links ---- */

struct physp *physp_remote(const struct physp *p);
/* Link both; old peers of either lose their back pointer, so that a moved cable leaves
 * no half link. A port can be linked to itself (a loop plug). */
void physp_link(struct physp *a, struct physp *b);
void physp_unlink(struct physp *a); /* no remote is fine */
/* Both valid and each is the other's remote. */
bool physp_link_exists(const struct physp *a, const struct physp *b);
bool physp_has_link(const struct physp *p); /* valid, and a remote is known */
/* Both ends healthy; a remote that is not known does not make an unhealthy port well. */
bool physp_link_healthy(const struct physp *p);
/* From both ends' caps; remote unknown: NeighborMTU / OperationalVLs of this port.
 * MTU 1..5, VLs 1..5 (0 and reserved codes are clamped into the range). @max_vls: cap of
 * the administration, 1..5, 0 = none. */
uint8_t physp_link_mtu(const struct physp *p);
uint8_t physp_link_vls(const struct physp *p, uint8_t max_vls);

/* Active speed, or SPEED_UNKNOWN, also of a port that is down; extended speeds only where
 * the node (a switch: its port 0) says that it has them, or was not asked yet. */
enum link_speed physp_speed(const struct physp *p);
/* Sets of enum link_speed, and PortInfo's codes of widths. Enabled: of what the port
 * supports; what somebody switched off on purpose is no damage. */
uint32_t physp_speeds_supported(const struct physp *p);
uint32_t physp_speeds_enabled(const struct physp *p);
uint32_t physp_widths_enabled(const struct physp *p);
/* Below what both ends support and have enabled (remote unknown: what this one does):
 * true, and what in @why ("width 1x of 4x, speed SDR of QDR"), else "". A port that is
 * down, a switch's port 0 or a port whose PortInfo was not read is not degraded. */
bool physp_is_degraded(const struct physp *p, char why[128]);

/* First and last LID; false ("none") for LID 0, for a range that passes 0xbfff, and for
 * a base LID that is not a multiple of 2^lmc. */
bool lid_range(uint16_t lid, uint8_t lmc, uint16_t *ret_first, uint16_t *ret_last);
