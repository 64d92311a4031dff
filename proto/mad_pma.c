/* SPDX-License-Identifier: BSD-2-Clause */
/* Attributes of performance management (IBA 16.1.3, 16.1.4) and of all GMPs (13.4.8).
 */
#include "mad_bits.h"

#include <errno.h>

#define PMA_DATA_LEN (MAD_LEN - MAD_GMP_DATA)
#define AT_PORT	     1	/* PortSelect, bytes */
#define AT_SELECT    16 /* CounterSelect, bits */
#define SELECT_ALL   0xffff

/* Bits of CapMask that a counter needs, beside those in ib.h. */
#define CAP_QP1_DROPPED (1u << 15)

/* One counter of an attribute. */
struct counter_bits {
	uint16_t counter; /* enum counter */
	uint16_t offset, width;
	uint16_t needs; /* bit of CapMask, 0: always there */
};

/* clang-format off */
static const struct bits class_port_info_bits[] = {
	BITS(class_port_info, base_version, 0, 8),
	BITS(class_port_info, class_version, 8, 8),
	BITS(class_port_info, cap_mask, 16, 16),
	BITS(class_port_info, cap_mask2, 32, 27),
	BITS(class_port_info, resp_time, 59, 5),
	BITS(class_port_info, redirect_lid, 224, 16),
	BITS(class_port_info, redirect_qp, 264, 24),
};

static const struct counter_bits port_counters_bits[] = {
	{ CTR_SYMBOL_ERROR, 32, 16, 0 },
	{ CTR_LINK_ERROR_RECOVERY, 48, 8, 0 },
	{ CTR_LINK_DOWNED, 56, 8, 0 },
	{ CTR_PORT_RCV_ERRORS, 64, 16, 0 },
	{ CTR_PORT_RCV_REMOTE_PHYSICAL_ERRORS, 80, 16, 0 },
	{ CTR_PORT_RCV_SWITCH_RELAY_ERRORS, 96, 16, 0 },
	{ CTR_PORT_XMIT_DISCARDS, 112, 16, 0 },
	{ CTR_PORT_XMIT_CONSTRAINT_ERRORS, 128, 8, 0 },
	{ CTR_PORT_RCV_CONSTRAINT_ERRORS, 136, 8, 0 },
	{ CTR_LOCAL_LINK_INTEGRITY_ERRORS, 152, 4, 0 },
	{ CTR_EXCESSIVE_BUFFER_OVERRUN_ERRORS, 156, 4, 0 },
	{ CTR_QP1_DROPPED, 160, 16, CAP_QP1_DROPPED },
	{ CTR_VL15_DROPPED, 176, 16, 0 },
	{ CTR_PORT_XMIT_DATA, 192, 32, 0 },
	{ CTR_PORT_RCV_DATA, 224, 32, 0 },
	{ CTR_PORT_XMIT_PACKETS, 256, 32, 0 },
	{ CTR_PORT_RCV_PACKETS, 288, 32, 0 },
	{ CTR_PORT_XMIT_WAIT, 320, 32, IB_PMA_CAP_XMIT_WAIT },
};

/* Of PortCountersExtended, all 64 bits wide: always; unless the port says NoIETF; with
 * the error counters of CapMask2. */
static const struct counter_bits ext_traffic_bits[] = {
	{ CTR_PORT_XMIT_DATA, 64, 64, 0 },
	{ CTR_PORT_RCV_DATA, 128, 64, 0 },
	{ CTR_PORT_XMIT_PACKETS, 192, 64, 0 },
	{ CTR_PORT_RCV_PACKETS, 256, 64, 0 },
	{ CTR_UNICAST_XMIT_PACKETS, 320, 64, IB_PMA_CAP_EXT_WIDTH },
	{ CTR_UNICAST_RCV_PACKETS, 384, 64, IB_PMA_CAP_EXT_WIDTH },
	{ CTR_MULTICAST_XMIT_PACKETS, 448, 64, IB_PMA_CAP_EXT_WIDTH },
	{ CTR_MULTICAST_RCV_PACKETS, 512, 64, IB_PMA_CAP_EXT_WIDTH },
};
static const struct counter_bits ext_error_bits[] = {
	{ CTR_SYMBOL_ERROR, 576, 64, 0 },
	{ CTR_LINK_ERROR_RECOVERY, 640, 64, 0 },
	{ CTR_LINK_DOWNED, 704, 64, 0 },
	{ CTR_PORT_RCV_ERRORS, 768, 64, 0 },
	{ CTR_PORT_RCV_REMOTE_PHYSICAL_ERRORS, 832, 64, 0 },
	{ CTR_PORT_RCV_SWITCH_RELAY_ERRORS, 896, 64, 0 },
	{ CTR_PORT_XMIT_DISCARDS, 960, 64, 0 },
	{ CTR_PORT_XMIT_CONSTRAINT_ERRORS, 1024, 64, 0 },
	{ CTR_PORT_RCV_CONSTRAINT_ERRORS, 1088, 64, 0 },
	{ CTR_LOCAL_LINK_INTEGRITY_ERRORS, 1152, 64, 0 },
	{ CTR_EXCESSIVE_BUFFER_OVERRUN_ERRORS, 1216, 64, 0 },
	{ CTR_VL15_DROPPED, 1280, 64, 0 },
	{ CTR_PORT_XMIT_WAIT, 1344, 64, 0 },
	{ CTR_QP1_DROPPED, 1408, 64, 0 },
};
/* clang-format on */

void mad_decode_class_port_info(const uint8_t *data, struct class_port_info *ret)
{
	memset(ret, 0, sizeof(*ret));
	bits_decode(class_port_info_bits, ARRAY_LEN(class_port_info_bits), data, ret);
}

void mad_encode_counters_request(uint8_t port, uint8_t data[192])
{
	memset(data, 0, PMA_DATA_LEN);
	data[AT_PORT] = port;
	bits_put(data, AT_SELECT, 16, SELECT_ALL);
}

static void counters_decode(const struct counter_bits *t, size_t n, uint16_t cap_mask,
			    const uint8_t *data, struct counter_reading *r)
{
	for (size_t i = 0; i < n; i++) {
		enum counter c = t[i].counter;

		if (t[i].needs && !(cap_mask & t[i].needs))
			continue;
		r->value[c] = bits_get(data, t[i].offset, t[i].width);
		r->bits[c] = (uint8_t)t[i].width;
		r->why[c] = WHY_NONE;
	}
}

int mad_decode_port_counters(const uint8_t *data, uint8_t port,
			     const struct class_port_info *cpi,
			     struct counter_reading *r)
{
	if (data[AT_PORT] != port)
		return -EBADMSG;
	counters_decode(port_counters_bits, ARRAY_LEN(port_counters_bits),
			cpi->cap_mask, data, r);
	return 0;
}

int mad_decode_port_counters_ext(const uint8_t *data, uint8_t port,
				 const struct class_port_info *cpi,
				 struct counter_reading *r)
{
	if (data[AT_PORT] != port)
		return -EBADMSG;
	if (cpi->cap_mask & (IB_PMA_CAP_EXT_WIDTH | IB_PMA_CAP_EXT_NO_IETF))
		counters_decode(ext_traffic_bits, ARRAY_LEN(ext_traffic_bits),
				cpi->cap_mask, data, r);
	if (cpi->cap_mask2 & IB_PMA_CAP2_EXT_ERRORS)
		counters_decode(ext_error_bits, ARRAY_LEN(ext_error_bits),
				cpi->cap_mask, data, r);
	return 0;
}

static void counters_encode(const struct counter_bits *t, size_t n,
			    const struct counter_reading *r, uint8_t *data)
{
	for (size_t i = 0; i < n; i++)
		bits_put(data, t[i].offset, t[i].width, r->value[t[i].counter]);
}

void mad_encode_port_counters(const struct counter_reading *r, uint8_t port,
			      uint8_t data[192])
{
	mad_encode_counters_request(port, data);
	counters_encode(port_counters_bits, ARRAY_LEN(port_counters_bits), r, data);
}

void mad_encode_port_counters_ext(const struct counter_reading *r, uint8_t port,
				  uint8_t data[192])
{
	mad_encode_counters_request(port, data);
	counters_encode(ext_traffic_bits, ARRAY_LEN(ext_traffic_bits), r, data);
	counters_encode(ext_error_bits, ARRAY_LEN(ext_error_bits), r, data);
}
