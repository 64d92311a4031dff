/* SPDX-License-Identifier: BSD-2-Clause */
/* Records of the subnet administration (IBA 15.2.5), InformInfo and Notices (13.4.8).
 */
#include "mad_bits.h"

#include <errno.h>

#define SA_DATA_LEN (MAD_LEN - MAD_SA_DATA)

/* Bytes of a record that hold what is decoded; the padding behind it may be missing. */
enum {
	NODE_RECORD_LEN = 108,
	PORT_RECORD_LEN = 68,
	SM_RECORD_LEN = 25,
	PATH_RECORD_LEN = 57,
	MCMEMBER_RECORD_LEN = 49
};
/* Where records hold attributes of SMPs, bytes. */
enum { AT_INFO = 4, AT_NODE_DESC = 44, AT_DGID = 8, AT_SGID = 24, AT_PORT_GID = 16 };

/* Bits of a path record's component mask. */
#define COMP_DLID    (UINT64_C(1) << 4)
#define COMP_SLID    (UINT64_C(1) << 5)
#define COMP_NUMPATH (UINT64_C(1) << 12)

#define ANY_LID	     0xffff
#define ANY_TYPE     0xffff
#define ANY_PRODUCER 0xffffff
#define GSI_QP	     1
#define RESP_TIME    19 /* 4.096 us << 19: about 2 s */

#define NOTICE_LEN  64 /* without IssuerGID */
#define AT_DETAILS  10
#define DETAILS_LEN (NOTICE_LEN - AT_DETAILS)

#define M(member, offset, width) BITS(mcmember_record, member, offset, width)

/* clang-format off */
static const struct bits path_bits[] = {
	BITS(path_record, dlid, 320, 16), BITS(path_record, slid, 336, 16),
	BITS(path_record, pkey, 400, 16), BITS(path_record, sl, 428, 4),
	BITS(path_record, mtu, 434, 6),   BITS(path_record, rate, 442, 6),
	BITS(path_record, life, 450, 6),
};
static const struct bits mcmember_bits[] = {
	M(qkey, 256, 32), M(mlid, 288, 16), M(mtu, 306, 6),   M(pkey, 320, 16),
	M(rate, 338, 6),  M(sl, 352, 4),    M(scope, 384, 4), M(join_state, 388, 4),
};
static const struct bits notice_bits[] = {
	BITS(notice, is_generic, 0, 1), BITS(notice, type, 1, 7),
	BITS(notice, producer, 8, 24),  BITS(notice, trap, 32, 16),
	BITS(notice, issuer_lid, 48, 16), BITS(notice, toggle, 64, 1),
	BITS(notice, count, 65, 15),
};
/* clang-format on */

int mad_decode_node_record(const uint8_t *rec, size_t len, struct node_record *ret)
{
	memset(ret, 0, sizeof(*ret));
	if (len < NODE_RECORD_LEN)
		return -EMSGSIZE;
	ret->lid = be16_get(rec);
	mad_decode_node_desc(rec + AT_NODE_DESC, ret->desc);
	return mad_decode_node_info(rec + AT_INFO, &ret->info);
}

int mad_decode_port_record(const uint8_t *rec, size_t len, struct port_record *ret)
{
	memset(ret, 0, sizeof(*ret));
	if (len < PORT_RECORD_LEN)
		return -EMSGSIZE;
	ret->lid = be16_get(rec);
	ret->port = rec[2];
	return mad_decode_port_info(rec + AT_INFO, &ret->info);
}

int mad_decode_sm_record(const uint8_t *rec, size_t len, struct sm_record *ret)
{
	memset(ret, 0, sizeof(*ret));
	if (len < SM_RECORD_LEN)
		return -EMSGSIZE;
	ret->lid = be16_get(rec);
	mad_decode_sm_info(rec + AT_INFO, &ret->info);
	return 0;
}

int mad_decode_path_record(const uint8_t *rec, size_t len, struct path_record *ret)
{
	memset(ret, 0, sizeof(*ret));
	if (len < PATH_RECORD_LEN)
		return -EMSGSIZE;
	memcpy(ret->dgid, rec + AT_DGID, sizeof(ret->dgid));
	memcpy(ret->sgid, rec + AT_SGID, sizeof(ret->sgid));
	bits_decode(path_bits, ARRAY_LEN(path_bits), rec, ret);
	return 0;
}

int mad_decode_mcmember_record(const uint8_t *rec, size_t len,
			       struct mcmember_record *ret)
{
	memset(ret, 0, sizeof(*ret));
	if (len < MCMEMBER_RECORD_LEN)
		return -EMSGSIZE;
	memcpy(ret->mgid, rec, sizeof(ret->mgid));
	memcpy(ret->port_gid, rec + AT_PORT_GID, sizeof(ret->port_gid));
	bits_decode(mcmember_bits, ARRAY_LEN(mcmember_bits), rec, ret);
	return 0;
}

uint64_t mad_encode_path_request(uint16_t slid, uint16_t dlid, uint8_t data[200])
{
	memset(data, 0, SA_DATA_LEN);
	bits_put(data, 320, 16, dlid);
	bits_put(data, 336, 16, slid);
	bits_put(data, 393, 7, 1);
	return COMP_DLID | COMP_SLID | COMP_NUMPATH;
}

void mad_encode_inform_info(bool subscribe, uint16_t trap, uint8_t data[200])
{
	memset(data, 0, SA_DATA_LEN);
	be16_put(data + 16, ANY_LID);
	data[22] = 1; /* generic */
	data[23] = subscribe;
	be16_put(data + 24, ANY_TYPE);
	be16_put(data + 26, trap);
	/* Whose subscription ends is said by address and QP. */
	bits_put(data, 224, 24, subscribe ? 0 : GSI_QP);
	bits_put(data, 251, 5, RESP_TIME);
	bits_put(data, 264, 24, ANY_PRODUCER);
}

void mad_decode_notice(const uint8_t *data, size_t len, struct notice *ret)
{
	memset(ret, 0, sizeof(*ret));
	if (len < NOTICE_LEN)
		return;
	bits_decode(notice_bits, ARRAY_LEN(notice_bits), data, ret);
	memcpy(ret->details, data + AT_DETAILS, DETAILS_LEN);
	if (len >= NOTICE_LEN + sizeof(ret->issuer_gid))
		memcpy(ret->issuer_gid, data + NOTICE_LEN, sizeof(ret->issuer_gid));
}

bool mad_notice_about(const struct notice *n, uint16_t *ret_lid, uint8_t *ret_port)
{
	if (!n->is_generic)
		return false;
	switch (n->trap) {
	case 128:
		*ret_lid = be16_get(n->details);
		*ret_port = 0;
		return true;
	case 129:
	case 130:
	case 131:
		*ret_lid = be16_get(n->details + 2);
		*ret_port = n->details[4];
		return true;
	case 144:
	case 145:
		*ret_lid = be16_get(n->details + 2);
		*ret_port = 0;
		return true;
	default:
		return false;
	}
}

void mad_encode_notice(const struct notice *n, uint8_t data[80])
{
	memset(data, 0, NOTICE_LEN);
	memcpy(data + AT_DETAILS, n->details, DETAILS_LEN);
	memcpy(data + NOTICE_LEN, n->issuer_gid, sizeof(n->issuer_gid));
	bits_encode(notice_bits, ARRAY_LEN(notice_bits), n, data);
}

void mad_encode_node_record(const struct node_record *n, uint8_t *rec)
{
	uint8_t info[MAD_DATA_LEN];

	mad_encode_node_info(&n->info, info);
	memset(rec, 0, NODE_RECORD_LEN);
	be16_put(rec, n->lid);
	memcpy(rec + AT_INFO, info, AT_NODE_DESC - AT_INFO);
	memcpy(rec + AT_NODE_DESC, n->desc, strnlen(n->desc, MAD_DATA_LEN));
}

void mad_encode_mcmember_record(const struct mcmember_record *m, uint8_t *rec)
{
	memset(rec, 0, MCMEMBER_RECORD_LEN);
	memcpy(rec, m->mgid, sizeof(m->mgid));
	memcpy(rec + AT_PORT_GID, m->port_gid, sizeof(m->port_gid));
	bits_encode(mcmember_bits, ARRAY_LEN(mcmember_bits), m, rec);
}
