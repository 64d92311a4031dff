/* SPDX-License-Identifier: BSD-2-Clause */
/* The bit tables of proto/mad.c against libibmad's, field by field, both directions. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <infiniband/mad.h>
#include <infiniband/umad.h>

#include "../../proto/mad.h"

struct row {
	enum MAD_FIELDS id;
	size_t member, size;
};

#define N(id, m)                                                                       \
	{                                                                              \
		IB_NODE_##id##_F, offsetof(struct node_info, m),                       \
			sizeof(((struct node_info *)0)->m)                             \
	}
#define P(id, m)                                                                       \
	{                                                                              \
		IB_PORT_##id##_F, offsetof(struct port_info, m),                       \
			sizeof(((struct port_info *)0)->m)                             \
	}

#define S(id, m)                                                                       \
	{                                                                              \
		IB_SW_##id##_F, offsetof(struct switch_info, m),                       \
			sizeof(((struct switch_info *)0)->m)                           \
	}
/* Members are 64 bits wide whatever the register is. */
#define C(id, c)                                                                       \
	{                                                                              \
		IB_PC_##id##_F,                                                        \
			offsetof(struct counter_reading, value) + CTR_##c * 8ul, 8     \
	}

static const struct row node_rows[] = {
	N(BASE_VERS, base_version), N(CLASS_VERS, class_version),
	N(TYPE, node_type),	    N(NPORTS, num_ports),
	N(SYSTEM_GUID, sys_guid),   N(GUID, node_guid),
	N(PORT_GUID, port_guid),    N(PARTITION_CAP, partition_cap),
	N(DEVID, device_id),	    N(REVISION, revision),
	N(LOCAL_PORT, local_port),  N(VENDORID, vendor_id),
};

static const struct row port_rows[] = {
	P(MKEY, m_key),
	P(GID_PREFIX, gid_prefix),
	P(LID, lid),
	P(SMLID, sm_lid),
	P(CAPMASK, cap_mask),
	P(DIAG, diag_code),
	P(MKEY_LEASE, m_key_lease),
	P(LOCAL_PORT, local_port),
	P(LINK_WIDTH_ENABLED, width_enabled),
	P(LINK_WIDTH_SUPPORTED, width_supported),
	P(LINK_WIDTH_ACTIVE, width_active),
	P(LINK_SPEED_SUPPORTED, speed_supported),
	P(STATE, state),
	P(PHYS_STATE, phys_state),
	P(LINK_DOWN_DEF, down_default),
	P(MKEY_PROT_BITS, m_key_protect),
	P(LMC, lmc),
	P(LINK_SPEED_ACTIVE, speed_active),
	P(LINK_SPEED_ENABLED, speed_enabled),
	P(NEIGHBOR_MTU, neighbor_mtu),
	P(SMSL, sm_sl),
	P(VL_CAP, vl_cap),
	P(INIT_TYPE, init_type),
	P(VL_HIGH_LIMIT, vl_high_limit),
	P(VL_ARBITRATION_HIGH_CAP, vl_arb_high_cap),
	P(VL_ARBITRATION_LOW_CAP, vl_arb_low_cap),
	P(INIT_TYPE_REPLY, init_type_reply),
	P(MTU_CAP, mtu_cap),
	P(VL_STALL_COUNT, vl_stall),
	P(HOQ_LIFE, hoq_life),
	P(OPER_VLS, op_vls),
	P(PART_EN_INB, part_enf_in),
	P(PART_EN_OUTB, part_enf_out),
	P(FILTER_RAW_INB, filter_raw_in),
	P(FILTER_RAW_OUTB, filter_raw_out),
	P(MKEY_VIOL, m_key_violations),
	P(PKEY_VIOL, p_key_violations),
	P(QKEY_VIOL, q_key_violations),
	P(GUID_CAP, guid_cap),
	P(CLIENT_REREG, client_reregister),
	P(MCAST_PKEY_SUPR_ENAB, mcast_pkey_trap),
	P(SUBN_TIMEOUT, subnet_timeout),
	P(RESP_TIME_VAL, resp_time),
	P(LOCAL_PHYS_ERR, local_phy_errors),
	P(OVERRUN_ERR, overrun_errors),
	P(MAX_CREDIT_HINT, max_credit_hint),
	P(LINK_ROUND_TRIP, link_latency),
	P(CAPMASK2, cap_mask2),
	P(LINK_SPEED_EXT_ACTIVE, ext_active),
	P(LINK_SPEED_EXT_SUPPORTED, ext_supported),
	P(LINK_SPEED_EXT_ENABLED, ext_enabled),
};

static const struct row switch_rows[] = {
	S(LINEAR_FDB_CAP, linear_cap),
	S(RANDOM_FDB_CAP, random_cap),
	S(MCAST_FDB_CAP, mcast_cap),
	S(LINEAR_FDB_TOP, linear_top),
	S(DEF_PORT, default_port),
	S(DEF_MCAST_PRIM, default_mcast_primary),
	S(DEF_MCAST_NOT_PRIM, default_mcast_not_primary),
	S(LIFE_TIME, life_time),
	S(STATE_CHANGE, port_state_change),
	S(OPT_SLTOVL_MAPPING, optimized_slvl),
	S(LIDS_PER_PORT, lids_per_port),
	S(PARTITION_ENFORCE_CAP, partition_enf_cap),
	S(PARTITION_ENF_INB, inbound_enf),
	S(PARTITION_ENF_OUTB, outbound_enf),
	S(FILTER_RAW_INB, filter_raw_in),
	S(FILTER_RAW_OUTB, filter_raw_out),
	S(ENHANCED_PORT0, enhanced_port0),
	S(MCAST_FDB_TOP, mcast_top),
};

static const struct row counter_rows_narrow[] = {
	C(ERR_SYM, SYMBOL_ERROR),
	C(LINK_RECOVERS, LINK_ERROR_RECOVERY),
	C(LINK_DOWNED, LINK_DOWNED),
	C(ERR_RCV, PORT_RCV_ERRORS),
	C(ERR_PHYSRCV, PORT_RCV_REMOTE_PHYSICAL_ERRORS),
	C(ERR_SWITCH_REL, PORT_RCV_SWITCH_RELAY_ERRORS),
	C(XMT_DISCARDS, PORT_XMIT_DISCARDS),
	C(ERR_XMTCONSTR, PORT_XMIT_CONSTRAINT_ERRORS),
	C(ERR_RCVCONSTR, PORT_RCV_CONSTRAINT_ERRORS),
	C(ERR_LOCALINTEG, LOCAL_LINK_INTEGRITY_ERRORS),
	C(ERR_EXCESS_OVR, EXCESSIVE_BUFFER_OVERRUN_ERRORS),
	C(VL15_DROPPED, VL15_DROPPED),
	C(XMT_BYTES, PORT_XMIT_DATA),
	C(RCV_BYTES, PORT_RCV_DATA),
	C(XMT_PKTS, PORT_XMIT_PACKETS),
	C(RCV_PKTS, PORT_RCV_PACKETS),
	C(XMT_WAIT, PORT_XMIT_WAIT),
	/* Not QP1Dropped: libibmad of this age looks for it where VL15Dropped is. */
};

static const struct row counter_rows_wide[] = {
	C(EXT_XMT_BYTES, PORT_XMIT_DATA),
	C(EXT_RCV_BYTES, PORT_RCV_DATA),
	C(EXT_XMT_PKTS, PORT_XMIT_PACKETS),
	C(EXT_RCV_PKTS, PORT_RCV_PACKETS),
	C(EXT_XMT_UPKTS, UNICAST_XMIT_PACKETS),
	C(EXT_RCV_UPKTS, UNICAST_RCV_PACKETS),
	C(EXT_XMT_MPKTS, MULTICAST_XMIT_PACKETS),
	C(EXT_RCV_MPKTS, MULTICAST_RCV_PACKETS),
	C(EXT_ERR_SYM, SYMBOL_ERROR),
	C(EXT_LINK_RECOVERS, LINK_ERROR_RECOVERY),
	C(EXT_LINK_DOWNED, LINK_DOWNED),
	C(EXT_ERR_RCV, PORT_RCV_ERRORS),
	C(EXT_ERR_PHYSRCV, PORT_RCV_REMOTE_PHYSICAL_ERRORS),
	C(EXT_ERR_SWITCH_REL, PORT_RCV_SWITCH_RELAY_ERRORS),
	C(EXT_XMT_DISCARDS, PORT_XMIT_DISCARDS),
	C(EXT_ERR_XMTCONSTR, PORT_XMIT_CONSTRAINT_ERRORS),
	C(EXT_ERR_RCVCONSTR, PORT_RCV_CONSTRAINT_ERRORS),
	C(EXT_ERR_LOCALINTEG, LOCAL_LINK_INTEGRITY_ERRORS),
	C(EXT_ERR_EXCESS_OVR, EXCESSIVE_BUFFER_OVERRUN_ERRORS),
	C(EXT_VL15_DROPPED, VL15_DROPPED),
	C(EXT_XMT_WAIT, PORT_XMIT_WAIT),
	C(EXT_QP1_DROP, QP1_DROPPED),
};

static uint64_t member(const void *s, const struct row *r)
{
	const uint8_t *p = (const uint8_t *)s + r->member;
	uint16_t v16;
	uint32_t v32;
	uint64_t v64;

	switch (r->size) {
	case 1:
		return *p;
	case 2:
		memcpy(&v16, p, 2);
		return v16;
	case 4:
		memcpy(&v32, p, 4);
		return v32;
	default:
		memcpy(&v64, p, 8);
		return v64;
	}
}

static bool is_long(enum MAD_FIELDS id)
{
	switch (id) {
	case IB_NODE_SYSTEM_GUID_F:
	case IB_NODE_GUID_F:
	case IB_NODE_PORT_GUID_F:
	case IB_PORT_MKEY_F:
	case IB_PORT_GID_PREFIX_F:
	case IB_SMINFO_GUID_F:
	case IB_SMINFO_KEY_F:
		return true;
	default:
		return (id >= IB_PC_EXT_XMT_BYTES_F && id < IB_PC_EXT_LAST_F) ||
		       (id >= IB_PC_EXT_ERR_SYM_F && id < IB_PC_EXT_ERR_LAST_F);
	}
}

static uint64_t theirs(uint8_t *data, const struct row *r)
{
	uint32_t v = 0;

	/* Of its long fields libibmad wants to be asked in 64 bits. */
	if (r->size == 8 && is_long(r->id))
		return mad_get_field64(data, 0, r->id);
	mad_decode_field(data, r->id, &v);
	assert_int_equal(v, mad_get_field(data, 0, r->id));
	return v;
}

static void compare(uint8_t *data, const void *ours, const struct row *rows, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		uint64_t a = member(ours, &rows[i]), b = theirs(data, &rows[i]);

		if (a != b)
			fail_msg("%s: ours 0x%llx, libibmad 0x%llx",
				 mad_field_name(rows[i].id), (unsigned long long)a,
				 (unsigned long long)b);
	}
}

/* Encode with libibmad what was decoded by us, into zeros. */
static void encode(uint8_t *data, const void *from, const struct row *rows, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		uint64_t v = member(from, &rows[i]);

		if (is_long(rows[i].id))
			mad_set_field64(data, 0, rows[i].id, v);
		else
			mad_set_field(data, 0, rows[i].id, (uint32_t)v);
	}
}

static void fill(uint8_t *data, size_t len, uint64_t *seed)
{
	for (size_t i = 0; i < len; i++)
		data[i] = (uint8_t)(*seed = mix64(*seed));
}

static void every_field_libibmad_knows_is_compared(void **state)
{
	bool seen[IB_FIELD_LAST_] = {false};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(node_rows); i++)
		seen[node_rows[i].id] = true;
	for (size_t i = 0; i < ARRAY_LEN(port_rows); i++)
		seen[port_rows[i].id] = true;
	for (size_t i = 0; i < ARRAY_LEN(switch_rows); i++)
		seen[switch_rows[i].id] = true;
	for (size_t i = 0; i < ARRAY_LEN(counter_rows_narrow); i++)
		seen[counter_rows_narrow[i].id] = true;
	for (size_t i = 0; i < ARRAY_LEN(counter_rows_wide); i++)
		seen[counter_rows_wide[i].id] = true;
	for (int f = IB_SW_FIRST_F; f < IB_SW_LAST_F; f++)
		assert_true(seen[f]);
	for (int f = IB_PC_ERR_SYM_F; f < IB_PC_LAST_F; f++)
		assert_true(seen[f] || f == IB_PC_COUNTER_SELECT2_F);
	for (int f = IB_PC_EXT_XMT_BYTES_F; f < IB_PC_EXT_LAST_F; f++)
		assert_true(seen[f]);
	for (int f = IB_PC_EXT_ERR_SYM_F; f < IB_PC_EXT_ERR_LAST_F; f++)
		assert_true(seen[f]);
	for (int f = IB_NODE_FIRST_F; f < IB_NODE_LAST_F; f++)
		assert_true(seen[f]);
	for (int f = IB_PORT_FIRST_F; f < IB_PORT_LAST_F; f++)
		assert_true(seen[f]);
	for (int f = IB_PORT_CAPMASK2_F; f < IB_PORT_LINK_SPEED_EXT_LAST_F; f++)
		assert_true(seen[f]);
}

static void random_attributes_decode_alike(void **state)
{
	uint64_t seed = 42;

	(void)state;
	for (int round = 0; round < 20000; round++) {
		uint8_t data[MAD_DATA_LEN];
		struct node_info ni;
		struct port_info pi;
		struct switch_info si;

		fill(data, sizeof(data), &seed);
		mad_decode_switch_info(data, &si);
		compare(data, &si, switch_rows, ARRAY_LEN(switch_rows));
		(void)mad_decode_node_info(data, &ni);
		compare(data, &ni, node_rows, ARRAY_LEN(node_rows));
		(void)mad_decode_port_info(data, &pi);
		compare(data, &pi, port_rows, ARRAY_LEN(port_rows));
	}
}

static void random_attributes_encode_alike(void **state)
{
	uint64_t seed = 43;

	(void)state;
	for (int round = 0; round < 20000; round++) {
		uint8_t data[MAD_DATA_LEN], ours[MAD_DATA_LEN];
		uint8_t lib[MAD_DATA_LEN] = {0};
		struct node_info ni;
		struct port_info pi;
		struct switch_info si;

		fill(data, sizeof(data), &seed);
		mad_decode_switch_info(data, &si);
		mad_encode_switch_info(&si, ours);
		encode(lib, &si, switch_rows, ARRAY_LEN(switch_rows));
		assert_memory_equal(ours, lib, MAD_DATA_LEN);
		memset(lib, 0, sizeof(lib));
		(void)mad_decode_node_info(data, &ni);
		mad_encode_node_info(&ni, ours);
		encode(lib, &ni, node_rows, ARRAY_LEN(node_rows));
		assert_memory_equal(ours, lib, MAD_DATA_LEN);
		memset(lib, 0, sizeof(lib));
		(void)mad_decode_port_info(data, &pi);
		/* libibmad of this age does not know the second extended speeds. */
		pi.ext_active2 = pi.ext_supported2 = pi.ext_enabled2 = 0;
		mad_encode_port_info(&pi, ours);
		encode(lib, &pi, port_rows, ARRAY_LEN(port_rows));
		assert_memory_equal(ours, lib, MAD_DATA_LEN);
	}
}

static const struct class_port_info all_there = {.cap_mask = 0xffff,
						  .cap_mask2 = 0x7ffffff};

static void random_counters_decode_alike(void **state)
{
	uint64_t seed = 44;

	(void)state;
	for (int round = 0; round < 20000; round++) {
		struct counter_reading r = {0};
		uint8_t data[192];

		fill(data, sizeof(data), &seed);
		assert_int_equal(mad_decode_port_counters(data, data[1], &all_there, &r),
				 0);
		compare(data, &r, counter_rows_narrow, ARRAY_LEN(counter_rows_narrow));
		assert_int_equal(
			mad_decode_port_counters_ext(data, data[1], &all_there, &r), 0);
		compare(data, &r, counter_rows_wide, ARRAY_LEN(counter_rows_wide));
	}
}

static void random_counters_encode_alike(void **state)
{
	uint64_t seed = 45;

	(void)state;
	for (int round = 0; round < 20000; round++) {
		uint8_t data[192], ours[192], lib[192] = {0};
		struct counter_reading r = {0};

		fill(data, sizeof(data), &seed);
		(void)mad_decode_port_counters(data, data[1], &all_there, &r);
		r.value[CTR_QP1_DROPPED] = 0;
		mad_encode_port_counters(&r, data[1], ours);
		encode(lib, &r, counter_rows_narrow, ARRAY_LEN(counter_rows_narrow));
		mad_set_field(lib, 0, IB_PC_PORT_SELECT_F, data[1]);
		mad_set_field(lib, 0, IB_PC_COUNTER_SELECT_F, 0xffff);
		assert_memory_equal(ours, lib, sizeof(lib));
		memset(lib, 0, sizeof(lib));
		(void)mad_decode_port_counters_ext(data, data[1], &all_there, &r);
		mad_encode_port_counters_ext(&r, data[1], ours);
		encode(lib, &r, counter_rows_wide, ARRAY_LEN(counter_rows_wide));
		mad_set_field(lib, 0, IB_PC_EXT_PORT_SELECT_F, data[1]);
		mad_set_field(lib, 0, IB_PC_EXT_COUNTER_SELECT_F, 0xffff);
		assert_memory_equal(ours, lib, sizeof(lib));
	}
}

#define R(id, type, m)                                                                 \
	{                                                                              \
		id, offsetof(struct type, m), sizeof(((struct type *)0)->m)            \
	}
/* The offsets that libibmad has for records count from the record's begin. */
static const struct row cpi_rows[] = {
	R(IB_CPI_BASEVER_F, class_port_info, base_version),
	R(IB_CPI_CLASSVER_F, class_port_info, class_version),
	R(IB_CPI_CAPMASK_F, class_port_info, cap_mask),
	R(IB_CPI_CAPMASK2_F, class_port_info, cap_mask2),
	R(IB_CPI_RESP_TIME_VALUE_F, class_port_info, resp_time),
	R(IB_CPI_REDIRECT_LID_F, class_port_info, redirect_lid),
	R(IB_CPI_REDIRECT_QP_F, class_port_info, redirect_qp),
};
static const struct row sm_rows[] = {
	R(IB_SMINFO_GUID_F, sm_info, guid),	R(IB_SMINFO_KEY_F, sm_info, sm_key),
	R(IB_SMINFO_ACT_F, sm_info, act_count), R(IB_SMINFO_PRIO_F, sm_info, priority),
	R(IB_SMINFO_STATE_F, sm_info, state),
};
static const struct row notice_rows[] = {
	R(IB_NOTICE_IS_GENERIC_F, notice, is_generic),
	R(IB_NOTICE_TYPE_F, notice, type),
	R(IB_NOTICE_PRODUCER_F, notice, producer),
	R(IB_NOTICE_TRAP_NUMBER_F, notice, trap),
	R(IB_NOTICE_ISSUER_LID_F, notice, issuer_lid),
	R(IB_NOTICE_TOGGLE_F, notice, toggle),
	R(IB_NOTICE_COUNT_F, notice, count),
};
static const struct row path_rows[] = {
	R(IB_SA_PR_DLID_F, path_record, dlid),
	R(IB_SA_PR_SLID_F, path_record, slid),
	R(IB_SA_PR_SL_F, path_record, sl),
};
static const struct row mcm_rows[] = {
	R(IB_SA_MCM_QKEY_F, mcmember_record, qkey),
	R(IB_SA_MCM_MLID_F, mcmember_record, mlid),
	R(IB_SA_MCM_SL_F, mcmember_record, sl),
	R(IB_SA_MCM_MTU_F, mcmember_record, mtu),
	R(IB_SA_MCM_RATE_F, mcmember_record, rate),
	R(IB_SA_MCM_PKEY_F, mcmember_record, pkey),
	R(IB_SA_MCM_JOIN_STATE_F, mcmember_record, join_state),
};

static void random_records_decode_alike(void **state)
{
	uint64_t seed = 46;

	(void)state;
	for (int round = 0; round < 5000; round++) {
		struct mcmember_record mcm;
		struct class_port_info cpi;
		struct path_record path;
		uint8_t data[200], gid[16];
		struct notice notice;
		struct sm_info sm;

		fill(data, sizeof(data), &seed);
		mad_decode_class_port_info(data, &cpi);
		compare(data, &cpi, cpi_rows, ARRAY_LEN(cpi_rows));
		mad_decode_sm_info(data, &sm);
		compare(data, &sm, sm_rows, ARRAY_LEN(sm_rows));
		mad_decode_notice(data, 80, &notice);
		compare(data, &notice, notice_rows, ARRAY_LEN(notice_rows));
		assert_int_equal(mad_decode_path_record(data, 64, &path), 0);
		compare(data, &path, path_rows, ARRAY_LEN(path_rows));
		mad_get_array(data, 0, IB_SA_PR_DGID_F, gid);
		assert_memory_equal(gid, path.dgid, sizeof(gid));
		mad_get_array(data, 0, IB_SA_PR_SGID_F, gid);
		assert_memory_equal(gid, path.sgid, sizeof(gid));
		assert_int_equal(mad_decode_mcmember_record(data, 56, &mcm), 0);
		compare(data, &mcm, mcm_rows, ARRAY_LEN(mcm_rows));
		mad_get_array(data, 0, IB_SA_MCM_PORTGID_F, gid);
		assert_memory_equal(gid, mcm.port_gid, sizeof(gid));
	}
}

/* Where the real library puts an address; the scripted one of other tests must agree:
 * host order in, the kernel's struct ib_user_mad_hdr out, gid_index left alone. */
static void libibumad_lays_out_addresses(void **state)
{
	ib_mad_addr_t grh = {.gid_index = 3, .hop_limit = 64, .traffic_class = 0x12,
			     .flow_label = 0xabcde};
	uint8_t umad[64 + 256] = {0};

	(void)state;
	memset(grh.gid, 0xfe, sizeof(grh.gid));
	assert_int_equal(umad_set_addr(umad, 0x1234, 1, 5, (int)0x80010000), 0);
	assert_int_equal(umad_set_grh(umad, &grh), 0);
	assert_int_equal(be32_get(umad + 20), 1);
	assert_int_equal(be32_get(umad + 24), 0x80010000);
	assert_int_equal(be16_get(umad + 28), 0x1234);
	assert_int_equal(umad[30], 5);
	assert_int_equal(umad[32], 1);
	assert_int_equal(umad[33], 0);
	assert_int_equal(umad[34], 64);
	assert_int_equal(umad[35], 0x12);
	assert_memory_equal(umad + 36, grh.gid, 16);
	assert_int_equal(be32_get(umad + 52), 0xabcde);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_field_libibmad_knows_is_compared),
		cmocka_unit_test(random_attributes_decode_alike),
		cmocka_unit_test(random_attributes_encode_alike),
		cmocka_unit_test(random_counters_decode_alike),
		cmocka_unit_test(random_counters_encode_alike),
		cmocka_unit_test(random_records_decode_alike),
		cmocka_unit_test(libibumad_lays_out_addresses),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
