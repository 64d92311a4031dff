/* SPDX-License-Identifier: BSD-2-Clause */
/* Attributes of subnet management packets (IBA 14.2.5). */
#include "mad_bits.h"

#include <errno.h>

#define N(member, offset, width) BITS(node_info, member, offset, width)
#define P(member, offset, width) BITS(port_info, member, offset, width)
#define S(member, offset, width) BITS(switch_info, member, offset, width)

/* clang-format off */
static const struct bits node_info_bits[] = {
	N(base_version, 0, 8),     N(class_version, 8, 8),  N(node_type, 16, 8),
	N(num_ports, 24, 8),       N(sys_guid, 32, 64),     N(node_guid, 96, 64),
	N(port_guid, 160, 64),     N(partition_cap, 224, 16), N(device_id, 240, 16),
	N(revision, 256, 32),      N(local_port, 288, 8),   N(vendor_id, 296, 24),
};

static const struct bits port_info_bits[] = {
	P(m_key, 0, 64),           P(gid_prefix, 64, 64),   P(lid, 128, 16),
	P(sm_lid, 144, 16),        P(cap_mask, 160, 32),    P(diag_code, 192, 16),
	P(m_key_lease, 208, 16),   P(local_port, 224, 8),   P(width_enabled, 232, 8),
	P(width_supported, 240, 8), P(width_active, 248, 8), P(speed_supported, 256, 4),
	P(state, 260, 4),          P(phys_state, 264, 4),   P(down_default, 268, 4),
	P(m_key_protect, 272, 2),  P(lmc, 277, 3),          P(speed_active, 280, 4),
	P(speed_enabled, 284, 4),  P(neighbor_mtu, 288, 4), P(sm_sl, 292, 4),
	P(vl_cap, 296, 4),         P(init_type, 300, 4),    P(vl_high_limit, 304, 8),
	P(vl_arb_high_cap, 312, 8), P(vl_arb_low_cap, 320, 8), P(init_type_reply, 328, 4),
	P(mtu_cap, 332, 4),        P(vl_stall, 336, 3),     P(hoq_life, 339, 5),
	P(op_vls, 344, 4),         P(part_enf_in, 348, 1),  P(part_enf_out, 349, 1),
	P(filter_raw_in, 350, 1),  P(filter_raw_out, 351, 1), P(m_key_violations, 352, 16),
	P(p_key_violations, 368, 16), P(q_key_violations, 384, 16), P(guid_cap, 400, 8),
	P(client_reregister, 408, 1), P(mcast_pkey_trap, 409, 2), P(subnet_timeout, 411, 5),
	P(resp_time, 419, 5),      P(local_phy_errors, 424, 4), P(overrun_errors, 428, 4),
	P(max_credit_hint, 432, 16), P(ext_active2, 449, 2), P(ext_supported2, 451, 2),
	P(ext_enabled2, 453, 3),   P(link_latency, 456, 24), P(cap_mask2, 480, 16),
	P(ext_active, 496, 4),     P(ext_supported, 500, 4), P(ext_enabled, 507, 5),
};

static const struct bits switch_info_bits[] = {
	S(linear_cap, 0, 16),      S(random_cap, 16, 16),   S(mcast_cap, 32, 16),
	S(linear_top, 48, 16),     S(default_port, 64, 8),  S(default_mcast_primary, 72, 8),
	S(default_mcast_not_primary, 80, 8), S(life_time, 88, 5), S(port_state_change, 93, 1),
	S(optimized_slvl, 94, 2),  S(lids_per_port, 96, 16), S(partition_enf_cap, 112, 16),
	S(inbound_enf, 128, 1),    S(outbound_enf, 129, 1), S(filter_raw_in, 130, 1),
	S(filter_raw_out, 131, 1), S(enhanced_port0, 132, 1), S(mcast_top, 144, 16),
};

static const struct bits sm_info_bits[] = {
	BITS(sm_info, guid, 0, 64),       BITS(sm_info, sm_key, 64, 64),
	BITS(sm_info, act_count, 128, 32), BITS(sm_info, priority, 160, 4),
	BITS(sm_info, state, 164, 4),
};
/* clang-format on */

int mad_decode_node_info(const uint8_t *data, struct node_info *ret)
{
	memset(ret, 0, sizeof(*ret));
	bits_decode(node_info_bits, ARRAY_LEN(node_info_bits), data, ret);
	if (!ret->node_type || !ret->node_guid || !ret->port_guid ||
	    ret->local_port > ret->num_ports)
		return -EBADMSG;
	return 0;
}

int mad_decode_port_info(const uint8_t *data, struct port_info *ret)
{
	memset(ret, 0, sizeof(*ret));
	bits_decode(port_info_bits, ARRAY_LEN(port_info_bits), data, ret);
	if (ret->state > IB_ACTIVE_DEFER || ret->lid > IB_LID_UNICAST_MAX)
		return -EBADMSG;
	return 0;
}

void mad_decode_switch_info(const uint8_t *data, struct switch_info *ret)
{
	memset(ret, 0, sizeof(*ret));
	bits_decode(switch_info_bits, ARRAY_LEN(switch_info_bits), data, ret);
}

void mad_decode_sm_info(const uint8_t *data, struct sm_info *ret)
{
	memset(ret, 0, sizeof(*ret));
	bits_decode(sm_info_bits, ARRAY_LEN(sm_info_bits), data, ret);
}

void mad_decode_node_desc(const uint8_t *data, char ret[65])
{
	text_clean(ret, 65, data, MAD_DATA_LEN);
}

void mad_decode_pkeys(const uint8_t *data, uint16_t ret[32])
{
	for (int i = 0; i < IB_PKEYS_EACH; i++)
		ret[i] = be16_get(data + 2 * i);
}

/* SL 0 is the high half of byte 0. */
void mad_decode_slvl(const uint8_t *data, struct slvl *ret)
{
	for (int i = 0; i < IB_SLS; i++)
		ret->vl[i] = i % 2 ? data[i / 2] & 0xf : data[i / 2] >> 4;
}

void mad_decode_vlarb(const uint8_t *data, struct vlarb_block *ret)
{
	for (int i = 0; i < IB_VLARB_EACH; i++) {
		ret->e[i].vl = data[2 * i] & 0xf;
		ret->e[i].weight = data[2 * i + 1];
	}
}

void mad_encode_node_info(const struct node_info *ni, uint8_t *data)
{
	memset(data, 0, MAD_DATA_LEN);
	bits_encode(node_info_bits, ARRAY_LEN(node_info_bits), ni, data);
}

void mad_encode_port_info(const struct port_info *pi, uint8_t *data)
{
	memset(data, 0, MAD_DATA_LEN);
	bits_encode(port_info_bits, ARRAY_LEN(port_info_bits), pi, data);
}

void mad_encode_switch_info(const struct switch_info *si, uint8_t *data)
{
	memset(data, 0, MAD_DATA_LEN);
	bits_encode(switch_info_bits, ARRAY_LEN(switch_info_bits), si, data);
}

void mad_encode_slvl(const struct slvl *t, uint8_t *data)
{
	memset(data, 0, MAD_DATA_LEN);
	for (int i = 0; i < IB_SLS; i++)
		bits_put(data, 4 * (unsigned)i, 4, t->vl[i]);
}

void mad_encode_vlarb(const struct vlarb_block *b, uint8_t *data)
{
	memset(data, 0, MAD_DATA_LEN);
	for (int i = 0; i < IB_VLARB_EACH; i++) {
		data[2 * i] = b->e[i].vl & 0xf;
		data[2 * i + 1] = b->e[i].weight;
	}
}
