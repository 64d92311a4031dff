/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * port.h - devices, ports, and the far end of a port's link: facts as tables of fields.
 *
 * Every fact is a row of a field table (name as in JSON, kind, place). A fact that
 * nobody could read is "unavailable" with a reason and rendered as null; everything else
 * still works. port_set_*() alone write a fact: they notice the change, stamp it and
 * mark the port dirty. Both ends of an InfiniBand link are physical ports (physp.h). Pure.
 */
#pragma once

#include "physp.h"
#include "port_watch.h"

#define PORT_NAME_MAX 80
#define DEVICE_NAME_MAX 64
#define DEVICE_INDEX_NONE UINT32_MAX /* seen through umad only; kernel indices start at 0 */
#define PORT_PKEYS_MAX 1024
#define PORT_GIDS_MAX 1024

/* ---- fields ---- */

enum field_kind {
	FIELD_U32,  /* uint32_t */
	FIELD_U64,  /* uint64_t number */
	FIELD_GUID, /* uint64_t, printed "0x%016x" */
	FIELD_HEX,  /* uint32_t, printed "0x%08x" */
	FIELD_OUI,  /* the same, "0x%06x": who made it */
	FIELD_ID,   /* the same, "0x%04x": which product of theirs */
	FIELD_TEXT, /* char[] */
	FIELD_BOOL  /* uint8_t */
};
struct field {
	const char *name; /* JSON */
	enum field_kind kind;
	uint16_t offset, size;
};

#define DEVICE_FIELDS(X)                                                                 \
	X(NODE_TYPE, node_type, TEXT, char, [16])                                        \
	X(TRANSPORT, transport, TEXT, char, [16]) /* infiniband iwarp unspecified */     \
	X(NODE_GUID, node_guid, GUID, uint64_t, )                                        \
	X(SYS_IMAGE_GUID, sys_image_guid, GUID, uint64_t, )                              \
	X(NODE_DESC, node_desc, TEXT, char, [65])                                        \
	X(FW, fw, TEXT, char, [64])                                                      \
	X(VENDOR_ID, vendor_id, OUI, uint32_t, )                                         \
	X(PART_ID, part_id, ID, uint32_t, )                                              \
	X(HW_VER, hw_ver, HEX, uint32_t, )                                               \
	X(NUM_PORTS, num_ports, U32, uint32_t, )                                         \
	X(PCI_ADDRESS, pci_address, TEXT, char, [24])                                    \
	X(PCIE_WIDTH, pcie_width, U32, uint32_t, )                                       \
	X(PCIE_WIDTH_MAX, pcie_width_max, U32, uint32_t, )                               \
	X(PCIE_SPEED, pcie_speed, TEXT, char, [24]) /* "16.0 GT/s" */                    \
	X(PCIE_SPEED_MAX, pcie_speed_max, TEXT, char, [24])                              \
	X(IS_VF, is_vf, BOOL, uint8_t, )                                                 \
	X(NUMA_NODE, numa_node, U32, uint32_t, )

#define PORT_FIELDS(X)                                                                   \
	X(PORT_GUID, port_guid, GUID, uint64_t, )                                        \
	X(LINK_LAYER, link_layer, TEXT, char, [16]) /* infiniband ethernet unspecified */\
	X(STATE, state, TEXT, char, [16])	    /* ACTIVE */                         \
	X(PHYSICAL_STATE, physical_state, TEXT, char, [32]) /* LINK_UP */                \
	X(LID, lid, U32, uint32_t, )                                                     \
	X(LMC, lmc, U32, uint32_t, )                                                     \
	X(LID_FIRST, lid_first, U32, uint32_t, )                                         \
	X(LID_LAST, lid_last, U32, uint32_t, )                                           \
	X(SM_LID, sm_lid, U32, uint32_t, )                                               \
	X(SM_SL, sm_sl, U32, uint32_t, )                                                 \
	X(SUBNET_PREFIX, subnet_prefix, GUID, uint64_t, )                                \
	X(ACTIVE_MTU, active_mtu, U32, uint32_t, ) /* bytes */                           \
	X(MAX_MTU, max_mtu, U32, uint32_t, )                                             \
	X(LINK_MTU, link_mtu, U32, uint32_t, ) /* from both ends */                      \
	X(OPERATIONAL_VLS, operational_vls, U32, uint32_t, ) /* data VLs */              \
	X(VL_CAP, vl_cap, U32, uint32_t, )                                               \
	X(LINK_VLS, link_vls, U32, uint32_t, ) /* from both ends */                      \
	X(WIDTH_ACTIVE, width_active, TEXT, char, [24])                                  \
	X(WIDTH_ENABLED, width_enabled, TEXT, char, [96])                                \
	X(WIDTH_SUPPORTED, width_supported, TEXT, char, [96])                            \
	X(SPEED_ACTIVE, speed_active, TEXT, char, [24])                                  \
	X(SPEED_ENABLED, speed_enabled, TEXT, char, [96])                                \
	X(SPEED_SUPPORTED, speed_supported, TEXT, char, [96])                            \
	X(RATE_MBPS, rate_mbps, U32, uint32_t, )                                         \
	X(CAP_MASK, cap_mask, HEX, uint32_t, ) /* "caps" names them */                   \
	X(NETDEV, netdev, TEXT, char, [16])                                              \
	X(NETDEV_INDEX, netdev_index, U32, uint32_t, )                                   \
	X(LINK_EXISTS, link_exists, BOOL, uint8_t, )                                     \
	X(LINK_HEALTHY, link_healthy, BOOL, uint8_t, )

/* The far end of the link, where it can be asked (InfiniBand). */
#define REMOTE_FIELDS(X)                                                                 \
	X(NODE_GUID, node_guid, GUID, uint64_t, )                                        \
	X(PORT_GUID, port_guid, GUID, uint64_t, )                                        \
	X(NODE_TYPE, node_type, TEXT, char, [16])                                        \
	X(NODE_DESC, node_desc, TEXT, char, [65])                                        \
	X(PORT, port, U32, uint32_t, )                                                   \
	X(LID, lid, U32, uint32_t, )                                                     \
	X(STATE, state, TEXT, char, [16])                                                \
	X(PHYSICAL_STATE, physical_state, TEXT, char, [32])                              \
	X(MAX_MTU, max_mtu, U32, uint32_t, )                                             \
	X(VL_CAP, vl_cap, U32, uint32_t, )                                               \
	X(OPERATIONAL_VLS, operational_vls, U32, uint32_t, )                             \
	X(WIDTH_ACTIVE, width_active, TEXT, char, [24])                                  \
	X(WIDTH_SUPPORTED, width_supported, TEXT, char, [96])                            \
	X(SPEED_ACTIVE, speed_active, TEXT, char, [24])                                  \
	X(SPEED_SUPPORTED, speed_supported, TEXT, char, [96])                            \
	X(VENDOR_ID, vendor_id, OUI, uint32_t, )                                         \
	X(DEVICE_ID, device_id, ID, uint32_t, )

#define FIELD_MEMBER(id, name, kind, type, dim) type name dim;
#define DF_ID(id, name, kind, type, dim) DF_##id,
#define PF_ID(id, name, kind, type, dim) PF_##id,
#define RF_ID(id, name, kind, type, dim) RF_##id,
enum device_field { DEVICE_FIELDS(DF_ID) DF__MAX };
enum port_field { PORT_FIELDS(PF_ID) PF__MAX };
enum remote_field { REMOTE_FIELDS(RF_ID) RF__MAX };

/* Values and, per field, why it is missing (enum unavailable; WHY_NONE = present). */
struct device_facts {
	DEVICE_FIELDS(FIELD_MEMBER)
	uint8_t why[DF__MAX];
};
struct port_facts {
	PORT_FIELDS(FIELD_MEMBER)
	uint8_t why[PF__MAX];
};
struct remote_facts {
	REMOTE_FIELDS(FIELD_MEMBER)
	uint8_t why[RF__MAX];
};

/* A table, and the object it describes: base pointer and why[] array. */
struct field_table {
	const struct field *fields;
	int n;
	size_t why_offset;
};
extern const struct field_table device_table, port_table, remote_table;

/* Digits of a kind that is printed in hex and is a uint32_t; 0: of another. */
int field_hex_digits(enum field_kind kind);
/* Write a fact. true if it changed (value or availability). A number that does not fit
 * the kind is a programmer's error. @facts: struct of the table. */
bool field_set_u64(const struct field_table *t, void *facts, int field, uint64_t v);
bool field_set_text(const struct field_table *t, void *facts, int field, const char *s);
bool field_set_missing(const struct field_table *t, void *facts, int field,
		       enum unavailable why);
void field_all_missing(const struct field_table *t, void *facts, enum unavailable why);
enum unavailable field_why(const struct field_table *t, const void *facts, int field);
/* "0x0002c90300000001", "4096", "ACTIVE", "true"; "-" if missing. */
const char *field_text(const struct field_table *t, const void *facts, int field, char *buf,
		       size_t size);

/* ---- GIDs, devices, ports ---- */

struct port_gid {
	uint16_t index;
	uint8_t type; /* 0 IB, 1 RoCE v1, 2 RoCE v2, 255 unknown */
	uint8_t pad;
	uint32_t netdev_index; /* 0 = none */
	uint8_t gid[16];
};
const char *gid_type_name(uint8_t type); /* "ib" "roce_v1" "roce_v2" "unknown" */
const char *gid_text(const uint8_t gid[16], char buf[48]); /* 8 groups of 4 digits */

/* What is odd about a device or port; JSON "flags". */
enum port_flag {
	FLAG_ZERO_GUID = 1,
	FLAG_DUPLICATE_GUID = 2, /* another port here has the same GUID */
	FLAG_PORT_COUNT = 4,	 /* says it has more ports than a device can have here */
	FLAG_NO_NETDEV = 8,	 /* Ethernet port without network device */
	FLAG_MISSED_EVENT = 16	 /* the referee poll found what no event told, lately */
};

/* Who named the far end. */
enum far_source { FAR_NONE, FAR_MAD, FAR_LLDP, FAR_LABEL, FAR__MAX };
extern const struct enum_names far_source_names; /* "mad" "lldp" "label" */

/* The two physps point at each other: a struct port must not move in memory. */
struct port {
	char device[DEVICE_NAME_MAX]; /* name now */
	uint32_t device_index;	      /* kernel's, 0 = umad only */
	uint8_t num;
	struct port_facts facts;
	struct remote_facts remote;
	struct ib_node local_node, remote_node; /* what is known of both nodes; no slots */
	struct physp local_physp, remote_physp;
	char far_name[136];   /* Ethernet: "leaf07/Ethernet1/22", "" = not known */
	enum far_source far_source;
	char last_remote[136]; /* NAME/PORT of the far end that was last seen, "" none */
	uint16_t *pkeys; /* owned */
	int n_pkeys;
	enum unavailable pkeys_why;
	enum unavailable sl2vl_why, vlarb_why; /* of the tables of local_physp */
	struct port_gid *gids; /* owned */
	int n_gids;
	enum unavailable gids_why;
	uint32_t flags; /* enum port_flag */

	/* from the config */
	char rail[64];
	struct { uint8_t family; uint8_t ip[16]; } tied; /* [Port] Address=, 0 = none */
	bool expected;

	/* health: one writer, port_judge() */
	enum health health;
	char health_why[128];
	struct mono health_since, state_since, changed, read_at, remote_read_at;
	enum fact_source source; /* of the last change */
	uint64_t missed_events;	 /* changes that only the poll found */
	bool ever_active;
	bool state_moved; /* since the last port_changed(), which stamps state_since */
	enum health_override override;
	int64_t override_until_wall; /* ns since the epoch, 0 = no end */
	char override_by[64];
	bool dirty;
	struct port_watch watch;
};

void port_init(struct port *p, const char *device, uint32_t index, uint8_t num,
	       struct mono now);
void port_done(struct port *p);
/* It was well in an earlier life of fabd: down is a fault from the start, not a port without
 * a cable, and no flap. For a port that no fact is known of yet. */
void port_was_well_before(struct port *p);
/* DEV/PORT. Returns @buf. */
const char *port_name(const struct port *p, char buf[PORT_NAME_MAX]);

/* Facts of a source, each with the time and the source. They mark the port dirty and
 * return whether anything changed. */
bool port_set_u64(struct port *p, enum port_field f, uint64_t v);
bool port_set_text(struct port *p, enum port_field f, const char *s);
bool port_set_missing(struct port *p, enum port_field f, enum unavailable why);
bool port_set_pkeys(struct port *p, const uint16_t *pkeys, int n, enum unavailable why);
bool port_set_gids(struct port *p, const struct port_gid *gids, int n, enum unavailable why);
/* State and physical state by code, as every source tells them. */
bool port_set_states(struct port *p, uint32_t state, uint32_t phys);
/* It is known to carry no data: the state is known and neither ACTIVE nor ACTIVE_DEFER. */
bool port_is_down(const struct port *p);

/* Name of the far end of a port that no MAD can ask; "" = not known. */
bool port_set_far(struct port *p, const char *name, enum far_source source);

/* PortInfo of the own port by MAD: all the fields it can tell. */
bool port_apply_info(struct port *p, const struct port_info *pi);
/* NodeInfo, description and PortInfo of the far end; NULL @ni: nothing there, @why. */
bool port_apply_remote(struct port *p, const struct node_info *ni, const char *desc,
		       const struct port_info *pi, enum unavailable why);
/* After any change of a port: link facts of both ends, LID range, rate. */
bool port_derive(struct port *p);
/* Note that something changed at @now, told by @source; SOURCE_POLL counts as missed by
 * events when @has_events (a source that should have told). */
void port_changed(struct port *p, enum fact_source source, bool has_events,
		  struct mono now);

/* PCIe facts of the device the port is on, for the health rule; 0 = not known. */
struct port_pcie {
	uint32_t width, width_max, speed_mts, speed_max_mts; /* lanes; MT/s */
};

/* The health rule. All that matches is a reason, in the order of enum reason_code but for
 * the first two words: the operator's override; state unknown; link down (bad, or unused
 * if it never was active, in an earlier life of fabd either, and is not expected); far end
 * marked bad; then what makes it degraded: link error recovery, counters over their limits,
 * flapping (damped), width or speed below what both ends support and have enabled, or below
 * what this port had with this far end, PCIe below its maximum, notices. The first decides
 * the word. Counters,
 * flaps and notices come and go: after the last of them the port stays degraded for
 * params->stable with the reason "settling"; what the facts say (the link is up again, the
 * width is back) counts at once. Writes health, why, since, reasons, history, baseline,
 * flap, and judges the counters. true if the health changed. @pcie may be NULL. */
bool port_judge(struct port *p, const struct port_watch_params *params,
		const struct port_pcie *pcie, struct mono now);
/* When port_judge() may come to another word without new facts; or never. */
struct mono port_judge_at(const struct port *p, const struct port_watch_params *params);
