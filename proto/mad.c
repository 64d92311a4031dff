/* SPDX-License-Identifier: BSD-2-Clause */
/* Headers of management datagrams: what may be asked, requests, checks of answers. */
#include "mad.h"

#include <errno.h>
#include <stdio.h>

/* Offsets of the common header, of a directed-route SMP and of an SA MAD, in bytes
 * (IBA 13.4.2, 14.2.1.2, 15.2.1.1). */
enum {
	OFF_BASE_VERSION = 0,
	OFF_CLASS = 1,
	OFF_CLASS_VERSION = 2,
	OFF_METHOD = 3,
	OFF_STATUS = 4,
	OFF_HOP_COUNT = 7,
	OFF_TID = 8,
	OFF_ATTR = 16,
	OFF_MOD = 20,
	OFF_RMPP = 24,
	OFF_RMPP_FLAGS = 26,
	OFF_RMPP_LENGTH = 32,
	OFF_DR_SLID = 32,
	OFF_DR_DLID = 34,
	OFF_RMPP_END = 36,
	OFF_ATTR_OFFSET = 44,
	OFF_COMP_MASK = 48,
	OFF_PATH = 128
};

#define STATUS_D_BIT	0x8000
#define LID_PERMISSIVE	0xffff
#define RESPONSE	0x80 /* bit of the method */
#define RMPP_FLAGS	0x7
#define RMPP_ONLY	0x7 /* active, first and last */
#define RMPP_CLASS_PART 20  /* bytes of the SA header that count as payload */

/* Where a class has its data, in bytes; length 0: no such class. */
struct class_layout {
	uint8_t version, data, length;
};

static struct class_layout layout_of(uint8_t class)
{
	switch (class) {
	case MAD_CLASS_SMI_LID:
	case MAD_CLASS_SMI_DR:
		return (struct class_layout){1, MAD_SMP_DATA, MAD_DATA_LEN};
	case MAD_CLASS_PMA:
		return (struct class_layout){1, MAD_GMP_DATA, MAD_LEN - MAD_GMP_DATA};
	case MAD_CLASS_SA:
		return (struct class_layout){2, MAD_SA_DATA, MAD_LEN - MAD_SA_DATA};
	default:
		return (struct class_layout){0};
	}
}

/* ---- what may be asked ---- */

bool mad_attr_allowed(uint16_t attr)
{
	switch (attr) {
	case MAD_ATTR_NODE_DESC:
	case MAD_ATTR_NODE_INFO:
	case MAD_ATTR_SWITCH_INFO:
	case MAD_ATTR_GUID_INFO:
	case MAD_ATTR_PORT_INFO:
	case MAD_ATTR_PKEY_TABLE:
	case MAD_ATTR_SLVL:
	case MAD_ATTR_VLARB:
	case MAD_ATTR_SM_INFO:
		return true;
	default:
		return false;
	}
}

static bool pma_allowed(uint16_t attr)
{
	return attr == MAD_ATTR_CLASS_PORT_INFO || attr == MAD_ATTR_PORT_COUNTERS ||
	       attr == MAD_ATTR_PORT_COUNTERS_EXT;
}

static bool record_allowed(uint16_t attr)
{
	switch (attr) {
	case MAD_ATTR_NODE_RECORD:
	case MAD_ATTR_PORT_RECORD:
	case MAD_ATTR_SM_RECORD:
	case MAD_ATTR_PATH_RECORD:
	case MAD_ATTR_MCMEMBER_RECORD:
		return true;
	default:
		return false;
	}
}

bool mad_request_allowed(uint8_t class, uint8_t method, uint16_t attr)
{
	switch (class) {
	case MAD_CLASS_SMI_LID:
	case MAD_CLASS_SMI_DR:
		return method == MAD_GET && mad_attr_allowed(attr);
	case MAD_CLASS_PMA:
		return method == MAD_GET && pma_allowed(attr);
	case MAD_CLASS_SA:
		if (method == MAD_SET)
			return attr == MAD_ATTR_INFORM_INFO;
		return (method == MAD_GET || method == MAD_GET_TABLE) &&
		       record_allowed(attr);
	default:
		return false;
	}
}

/* ---- requests ---- */

static void put_header(uint8_t buf[MAD_LEN], uint8_t class, uint8_t version,
		       uint8_t method, uint64_t tid, uint16_t attr, uint32_t mod)
{
	memset(buf, 0, MAD_LEN);
	buf[OFF_BASE_VERSION] = 1;
	buf[OFF_CLASS] = class;
	buf[OFF_CLASS_VERSION] = version;
	buf[OFF_METHOD] = method;
	be64_put(buf + OFF_TID, tid);
	be16_put(buf + OFF_ATTR, attr);
	be32_put(buf + OFF_MOD, mod);
}

int mad_build_dr_get(uint8_t buf[MAD_LEN], uint64_t tid, uint16_t attr, uint32_t mod,
		     const uint8_t *path, uint8_t hops)
{
	if (!mad_attr_allowed(attr) || hops > IB_HOPS_MAX || (hops && path[0]))
		return -EINVAL;
	put_header(buf, MAD_CLASS_SMI_DR, 1, MAD_GET, tid, attr, mod);
	buf[OFF_HOP_COUNT] = hops;
	/* Directed all the way: no LID-routed part on either side. */
	be16_put(buf + OFF_DR_SLID, LID_PERMISSIVE);
	be16_put(buf + OFF_DR_DLID, LID_PERMISSIVE);
	if (hops)
		memcpy(buf + OFF_PATH, path, (size_t)hops + 1);
	return 0;
}

int mad_build(uint8_t buf[MAD_LEN], const struct mad_request *r)
{
	struct class_layout at = layout_of(r->class);

	if (r->class == MAD_CLASS_SMI_DR || r->len > at.length ||
	    !mad_request_allowed(r->class, r->method, r->attr))
		return -EINVAL;
	put_header(buf, r->class, at.version, r->method, r->tid, r->attr, r->mod);
	if (r->class == MAD_CLASS_SA)
		be64_put(buf + OFF_COMP_MASK, r->comp_mask);
	if (r->len)
		memcpy(buf + at.data, r->data, r->len);
	return 0;
}

void mad_build_report_resp(uint8_t buf[MAD_LEN], const uint8_t *report)
{
	memcpy(buf, report, MAD_LEN);
	buf[OFF_METHOD] = MAD_REPORT_RESP;
	be16_put(buf + OFF_STATUS, 0);
	memset(buf + OFF_RMPP, 0, OFF_RMPP_END - OFF_RMPP);
}

/* ---- answers ---- */

static int check_status(const uint8_t *buf, uint16_t *ret_status)
{
	uint16_t status = be16_get(buf + OFF_STATUS);

	if (buf[OFF_CLASS] == MAD_CLASS_SMI_DR)
		status &= (uint16_t)~STATUS_D_BIT;
	if (!status)
		return 0;
	if (ret_status)
		*ret_status = status;
	return -EREMOTEIO;
}

/* The end of the data: a table's length is the kernel's, but for one that came in a
 * single packet as it was on the wire. */
static size_t data_end(const uint8_t *buf, size_t len, const struct mad_request *r)
{
	uint32_t payload;

	if (r->method != MAD_GET_TABLE || len != MAD_LEN ||
	    (buf[OFF_RMPP_FLAGS] & RMPP_FLAGS) != RMPP_ONLY)
		return len;
	payload = be32_get(buf + OFF_RMPP_LENGTH);
	if (payload < RMPP_CLASS_PART || payload > MAD_LEN - OFF_RMPP_END)
		return len;
	return OFF_RMPP_END + payload;
}

int mad_check(const uint8_t *buf, size_t len, const struct mad_request *r,
	      uint16_t *ret_status, const uint8_t **ret_data, size_t *ret_len,
	      uint16_t *ret_offset)
{
	struct class_layout at = layout_of(r->class);
	int error;

	if (r->class == MAD_CLASS_SA) {
		if (len < MAD_SA_DATA || (len > MAD_LEN && r->method != MAD_GET_TABLE))
			return -EMSGSIZE;
	} else if (len != MAD_LEN) {
		return -EMSGSIZE;
	}
	if (buf[OFF_BASE_VERSION] != 1 || buf[OFF_CLASS] != r->class ||
	    buf[OFF_CLASS_VERSION] != at.version ||
	    buf[OFF_METHOD] !=
		    (r->method == MAD_SET ? MAD_GET_RESP : r->method | RESPONSE))
		return -EBADMSG;
	if (be32_get(buf + OFF_TID + 4) != (uint32_t)r->tid)
		return -ENOMSG;
	if (be16_get(buf + OFF_ATTR) != r->attr || be32_get(buf + OFF_MOD) != r->mod)
		return -EPROTO;
	error = check_status(buf, ret_status);
	if (error)
		return error;
	if (ret_data)
		*ret_data = buf + at.data;
	if (ret_len)
		*ret_len = r->class == MAD_CLASS_SMI_DR || r->class == MAD_CLASS_SMI_LID
				   ? MAD_DATA_LEN
				   : data_end(buf, len, r) - at.data;
	if (ret_offset)
		*ret_offset =
			r->class == MAD_CLASS_SA
				? (uint16_t)(8 * MIN(be16_get(buf + OFF_ATTR_OFFSET),
						     UINT16_MAX / 8))
				: 0;
	return 0;
}

int mad_check_answer(const uint8_t *buf, size_t len, uint64_t tid, uint16_t attr,
		     uint32_t mod, uint16_t *ret_status)
{
	struct mad_request r = {
		.class = MAD_CLASS_SMI_DR,
		.method = MAD_GET,
		.attr = attr,
		.mod = mod,
		.tid = tid,
	};

	return mad_check(buf, len, &r, ret_status, NULL, NULL, NULL);
}

const char *mad_status_text(uint16_t status, char buf[48])
{
	static const char *const codes[8] = {NULL,
					     "version not supported",
					     "method not supported",
					     "method and attribute do not go together",
					     NULL,
					     NULL,
					     NULL,
					     "attribute or modifier not valid"};
	/* Other classes say nothing there. */
	static const char *const sa_codes[8] = {NULL,
						"no resources (SA)",
						"request not valid (SA)",
						"no records (SA)",
						"too many records (SA)",
						"GID not valid (SA)",
						"components missing (SA)",
						"denied (SA)"};
	const char *code = codes[(status >> 2) & 7];
	uint8_t high;

	status &= (uint16_t)~STATUS_D_BIT;
	high = (uint8_t)(status >> 8);
	buf[0] = '\0';
	if (status & 1)
		str_append(buf, 48, "busy");
	if (status & 2)
		str_append(buf, 48, "%sredirect", buf[0] ? ", " : "");
	if (code)
		str_append(buf, 48, "%s%s", buf[0] ? ", " : "", code);
	if (high && high < ARRAY_LEN(sa_codes))
		str_append(buf, 48, "%s%s", buf[0] ? ", " : "", sa_codes[high]);
	if (!status)
		(void)str_copy(buf, 48, "ok");
	else if (!buf[0])
		(void)snprintf(buf, 48, "status 0x%04x", status);
	return buf;
}
