/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ib.h - what InfiniBand's management attributes say, in host order: the structs that
 * proto/mad.h decodes into and that the objects of lib/ are made of. Field names follow
 * the InfiniBand Architecture Specification, volume 1 (IBA), chapters 13 to 16. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define IB_LID_UNICAST_MAX   0xbfff
#define IB_LID_MULTICAST_MIN 0xc000
#define IB_LID_MULTICAST_MAX 0xfffe
#define IB_LID_PERMISSIVE    0xffff
#define IB_HOPS_MAX	     63 /* of a directed route, IBA 14.2.2 */
#define IB_PATH_LEN	     64 /* path[0] = 0, path[1..63] egress ports */
#define IB_PKEYS_EACH	     32 /* of a block of the P_Key table */
#define IB_SLS		     16
#define IB_VLARB_EACH	     32
#define IB_PKEY_FULL	     0x8000

enum node_type { NODE_UNKNOWN = 0, NODE_CA = 1, NODE_SWITCH = 2, NODE_ROUTER = 3 };
enum ib_port_state { IB_DOWN = 1, IB_INIT = 2, IB_ARMED = 3, IB_ACTIVE = 4,
		     IB_ACTIVE_DEFER = 5 };
enum ib_phys_state { IB_PHYS_SLEEP = 1, IB_PHYS_POLLING, IB_PHYS_DISABLED,
		     IB_PHYS_TRAINING, IB_PHYS_LINK_UP, IB_PHYS_RECOVERY, IB_PHYS_TEST };

/* CapabilityMask of PortInfo (IBA table 146). */
#define IB_CAP_IS_SM	       (1u << 1)
#define IB_CAP_SL_MAPPING      (1u << 6)
#define IB_CAP_SM_DISABLED     (1u << 10)
#define IB_CAP_EXTENDED_SPEEDS (1u << 14)
/* In the AttributeModifier of PortInfo, beside the port: who asks knows extended speeds.
 * Newer devices tell them only then (IBA 14.2.5.6). */
#define IB_PORT_INFO_EXTENDED UINT32_C(0x80000000)

struct node_info { /* IBA 14.2.5.3 */
	uint8_t base_version, class_version, node_type, num_ports;
	uint64_t sys_guid, node_guid, port_guid;
	uint16_t partition_cap, device_id;
	uint32_t revision;
	uint8_t local_port; /* the port the request came in by */
	uint32_t vendor_id;
};

struct port_info { /* IBA 14.2.5.6 */
	uint64_t m_key, gid_prefix;
	uint16_t lid, sm_lid;
	uint32_t cap_mask;
	uint16_t diag_code, m_key_lease;
	uint8_t local_port, width_enabled, width_supported, width_active;
	uint8_t speed_supported, state, phys_state, down_default;
	uint8_t m_key_protect, lmc, speed_active, speed_enabled;
	uint8_t neighbor_mtu, sm_sl, vl_cap, init_type, vl_high_limit, vl_arb_high_cap;
	uint8_t vl_arb_low_cap, init_type_reply, mtu_cap, vl_stall, hoq_life, op_vls;
	uint8_t part_enf_in, part_enf_out, filter_raw_in, filter_raw_out;
	uint16_t m_key_violations, p_key_violations, q_key_violations;
	uint8_t guid_cap, client_reregister, mcast_pkey_trap, subnet_timeout, resp_time;
	uint8_t local_phy_errors, overrun_errors;
	uint16_t max_credit_hint;
	uint32_t link_latency;
	uint16_t cap_mask2;
	uint8_t ext_active, ext_supported, ext_enabled;
	uint8_t ext_active2, ext_supported2, ext_enabled2;
};

struct switch_info { /* IBA 14.2.5.4 */
	uint16_t linear_cap, random_cap, mcast_cap, linear_top;
	uint8_t default_port, default_mcast_primary, default_mcast_not_primary;
	uint8_t life_time, port_state_change, optimized_slvl;
	uint16_t lids_per_port, partition_enf_cap;
	uint8_t inbound_enf, outbound_enf, filter_raw_in, filter_raw_out, enhanced_port0;
	uint16_t mcast_top;
};

struct pkey_block { /* IBA 14.2.5.7 */
	uint16_t pkey[IB_PKEYS_EACH]; /* bit 15: full member; base 0: empty */
};
struct slvl { /* IBA 14.2.5.8, of one (input, output) pair */
	uint8_t vl[IB_SLS]; /* 0..15; 15 = drop */
};
struct vlarb_block { /* IBA 14.2.5.9 */
	struct { uint8_t vl, weight; } e[IB_VLARB_EACH];
};

struct sm_info { /* IBA 14.2.5.13 */
	uint64_t guid, sm_key;
	uint32_t act_count;
	uint8_t priority, state; /* 0 not active 1 discovering 2 standby 3 master */
};

struct notice { /* IBA 13.4.8.2 */
	uint8_t is_generic, type;
	uint32_t producer; /* node type, or vendor id */
	uint16_t trap;	   /* trap number, or device id */
	uint16_t issuer_lid;
	uint8_t toggle;
	uint16_t count;
	uint8_t details[54];
	uint8_t issuer_gid[16]; /* Report and SA only, else 0 */
};

struct class_port_info { /* IBA 13.4.8.1 */
	uint8_t base_version, class_version;
	uint16_t cap_mask;
	uint32_t cap_mask2; /* 27 bits */
	uint8_t resp_time;
	uint16_t redirect_lid;
	uint32_t redirect_qp;
};
#define IB_PMA_CAP_ALL_PORTS	(1u << 8)
#define IB_PMA_CAP_EXT_WIDTH	(1u << 9)
#define IB_PMA_CAP_EXT_NO_IETF	(1u << 10)
#define IB_PMA_CAP_XMIT_WAIT	(1u << 12)
#define IB_PMA_CAP2_EXT_ERRORS	(1u << 1) /* error counters in PortCountersExtended */

/* Records of the subnet administration (IBA 15.2.5). */
struct sm_record {
	uint16_t lid;
	struct sm_info info;
};
struct mcmember_record {
	uint8_t mgid[16], port_gid[16];
	uint32_t qkey;
	uint16_t mlid, pkey;
	uint8_t mtu, rate, sl, scope, join_state;
};
struct path_record {
	uint8_t dgid[16], sgid[16];
	uint16_t dlid, slid, pkey;
	uint8_t sl, mtu, rate, life;
};
struct node_record {
	uint16_t lid;
	struct node_info info;
	char desc[65];
};
struct port_record {
	uint16_t lid;
	uint8_t port;
	struct port_info info;
};
