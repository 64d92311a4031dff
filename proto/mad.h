/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mad.h - management datagrams: headers and attributes as tables of bit fields
 * (offset and width in bits from the first data byte, IBA 13.4.2, 14.2.5), decoded into
 * lib/ib.h's structs. Wire order is big-endian; structs are in host order. Pure.
 * Read-only by design: no Set can be built but that of InformInfo.
 */
#pragma once

#include "counters.h"
#include "ib.h"
#include "util.h"

#define MAD_LEN 256
#define MAD_SMP_DATA	64 /* offset and length of an SMP's data (IBA 14.2.1) */
#define MAD_DATA_LEN	64
#define MAD_GMP_DATA	64 /* offset of PMA data (IBA 16.1.2); 192 bytes */
#define MAD_SA_DATA	56 /* offset of an SA MAD's data; 200 bytes (IBA 15.2.1) */

#define MAD_CLASS_SMI_LID 0x01
#define MAD_CLASS_SMI_DR  0x81
#define MAD_CLASS_SA	  0x03
#define MAD_CLASS_PMA	  0x04

enum mad_method { MAD_GET = 0x01, MAD_SET = 0x02, MAD_REPORT = 0x06, MAD_GET_TABLE = 0x12,
		  MAD_GET_RESP = 0x81, MAD_REPORT_RESP = 0x86, MAD_GET_TABLE_RESP = 0x92 };

enum mad_attr { /* IBA 13.4.8, 14.2.5, 15.2.5, 16.1.3 */
	MAD_ATTR_CLASS_PORT_INFO = 0x01,
	MAD_ATTR_NOTICE = 0x02,
	MAD_ATTR_INFORM_INFO = 0x03,
	/* SMP */
	MAD_ATTR_NODE_DESC = 0x10,
	MAD_ATTR_NODE_INFO = 0x11,
	MAD_ATTR_SWITCH_INFO = 0x12,
	MAD_ATTR_GUID_INFO = 0x14,
	MAD_ATTR_PORT_INFO = 0x15,
	MAD_ATTR_PKEY_TABLE = 0x16,
	MAD_ATTR_SLVL = 0x17,
	MAD_ATTR_VLARB = 0x18,
	MAD_ATTR_SM_INFO = 0x20,
	/* PMA */
	MAD_ATTR_PORT_COUNTERS = 0x12,
	MAD_ATTR_PORT_COUNTERS_EXT = 0x1d,
	/* SA */
	MAD_ATTR_NODE_RECORD = 0x11,
	MAD_ATTR_PORT_RECORD = 0x12,
	MAD_ATTR_SM_RECORD = 0x18,
	MAD_ATTR_PATH_RECORD = 0x35,
	MAD_ATTR_MCMEMBER_RECORD = 0x38
};
/* May a MAD worker be asked for it by directed route? (Gets of the SMP attributes) */
bool mad_attr_allowed(uint16_t attr);
/* Any request: by class, method, attribute. Gets of SMP and PMA attributes above, Get and
 * GetTable of SA records, Set of SA InformInfo; nothing else, above all no other Set. */
bool mad_request_allowed(uint8_t class, uint8_t method, uint16_t attr);

/* A directed-route Get in @buf (MAD_LEN bytes): path[0] = 0, @hops 0..63 more. -EINVAL
 * for a path too long or an attribute that is not allowed. */
int mad_build_dr_get(uint8_t buf[MAD_LEN], uint64_t tid, uint16_t attr, uint32_t mod,
		     const uint8_t *path, uint8_t hops);

/* Any other request; @data of @len bytes goes where the class has its data. -EINVAL when
 * it is not allowed, of the class MAD_CLASS_SMI_DR, or too long. The RMPP header is zero:
 * each request is one MAD, and one that said Active would be a transfer of its own, to be
 * acknowledged (IBA 13.6.2.1: of GetTable only the answer is one). */
struct mad_request {
	uint8_t class, method;
	uint16_t attr;
	uint32_t mod;
	uint64_t tid, comp_mask; /* comp_mask: SA */
	const void *data;
	size_t len;
};
int mad_build(uint8_t buf[MAD_LEN], const struct mad_request *r);
/* ReportResp to the Report in @report (IBA 13.4.8.3): same TID, attribute and data. */
void mad_build_report_resp(uint8_t buf[MAD_LEN], const uint8_t *report);

/* Check an answer of @len bytes to that request. 0: data at buf + 64. Else
 * -EMSGSIZE length, -EBADMSG class, version or method, -ENOMSG transaction (low 32 bits
 * count: the kernel overwrites the others), -EPROTO attribute or modifier, -EREMOTEIO
 * error status, which is in *ret_status (without the D bit) then. */
int mad_check_answer(const uint8_t *buf, size_t len, uint64_t tid, uint16_t attr,
		     uint32_t mod, uint16_t *ret_status);
/* The same for any request; @len is MAD_LEN but for the SA: less is possible, and more for
 * a GetTable, whose answer the kernel joins. *ret_data and *ret_len: the data (of a table:
 * all records), borrowed from @buf. *ret_offset: SA AttributeOffset in bytes. Each may be
 * NULL. A redirect (status 2) is -EREMOTEIO. */
int mad_check(const uint8_t *buf, size_t len, const struct mad_request *r,
	      uint16_t *ret_status, const uint8_t **ret_data, size_t *ret_len,
	      uint16_t *ret_offset);
/* "busy", "no records (SA)": the class tells what the high byte means. */
const char *mad_status_text(uint16_t status, char buf[48]);

/* Attributes; @data has MAD_DATA_LEN bytes. -EBADMSG for what cannot be: NodeInfo with
 * type 0 or GUIDs 0, LocalPortNum over NumPorts; PortInfo with state over 5 or a LID in
 * the multicast range. The struct is filled all the same. */
int mad_decode_node_info(const uint8_t *data, struct node_info *ret);
int mad_decode_port_info(const uint8_t *data, struct port_info *ret);
void mad_decode_node_desc(const uint8_t *data, char ret[65]);
/* 32 entries, host order. */
void mad_decode_pkeys(const uint8_t *data, uint16_t ret[32]);
void mad_decode_switch_info(const uint8_t *data, struct switch_info *ret);
void mad_decode_slvl(const uint8_t *data, struct slvl *ret);
void mad_decode_vlarb(const uint8_t *data, struct vlarb_block *ret);
void mad_decode_sm_info(const uint8_t *data, struct sm_info *ret);

/* PMA, from the data at offset 64 (192 bytes). */
void mad_decode_class_port_info(const uint8_t *data, struct class_port_info *ret);
/* Data of a request for the counters of @port with all CounterSelect bits. */
void mad_encode_counters_request(uint8_t port, uint8_t data[192]);
/* Into @r, raw and each with its width; what the class port info says is not there is
 * left as it is. The extended ones come second: they replace narrower registers.
 * -EBADMSG: another port's. */
int mad_decode_port_counters(const uint8_t *data, uint8_t port,
			     const struct class_port_info *cpi, struct counter_reading *r);
int mad_decode_port_counters_ext(const uint8_t *data, uint8_t port,
				 const struct class_port_info *cpi,
				 struct counter_reading *r);

/* SA records, of @len bytes each (AttributeOffset; longer than known is fine): -EMSGSIZE
 * when shorter, -EBADMSG as the attribute inside. */
int mad_decode_node_record(const uint8_t *rec, size_t len, struct node_record *ret);
int mad_decode_port_record(const uint8_t *rec, size_t len, struct port_record *ret);
int mad_decode_sm_record(const uint8_t *rec, size_t len, struct sm_record *ret);
int mad_decode_path_record(const uint8_t *rec, size_t len, struct path_record *ret);
int mad_decode_mcmember_record(const uint8_t *rec, size_t len, struct mcmember_record *ret);
/* Request data and component mask (15.2.5.16): path between two LIDs. */
uint64_t mad_encode_path_request(uint16_t slid, uint16_t dlid, uint8_t data[200]);
/* InformInfo (13.4.8.3): subscribe to, or end, all Reports of @trap (0xffff: any). */
void mad_encode_inform_info(bool subscribe, uint16_t trap, uint8_t data[200]);

/* A Notice of 64 bytes, or 80 with IssuerGID. */
void mad_decode_notice(const uint8_t *data, size_t len, struct notice *ret);
/* LID and port that a trap 128..131, 144, 145 is about; false: the trap tells none. */
bool mad_notice_about(const struct notice *n, uint16_t *ret_lid, uint8_t *ret_port);

/* For tests and fakes: the inverse, reserved bits zero. */
void mad_encode_node_info(const struct node_info *ni, uint8_t *data);
void mad_encode_port_info(const struct port_info *pi, uint8_t *data);
void mad_encode_switch_info(const struct switch_info *si, uint8_t *data);
void mad_encode_slvl(const struct slvl *t, uint8_t *data);
void mad_encode_vlarb(const struct vlarb_block *b, uint8_t *data);
void mad_encode_notice(const struct notice *n, uint8_t data[80]);
void mad_encode_port_counters(const struct counter_reading *r, uint8_t port,
			      uint8_t data[192]);
void mad_encode_port_counters_ext(const struct counter_reading *r, uint8_t port,
				  uint8_t data[192]);
void mad_encode_node_record(const struct node_record *n, uint8_t *rec);
void mad_encode_mcmember_record(const struct mcmember_record *m, uint8_t *rec);
