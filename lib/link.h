/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * link.h - link widths, speeds and the maths of rates, one stated table each. Codes are
 * those of PortInfo (IBA 14.2.5.6) and of ibv_query_port(3); unknown codes stay unknown
 * ("unknown(0x40)") and give no rate. Lane rates are nominal Gb/s as the InfiniBand
 * Trade Association names them: SDR 2.5, DDR 5, QDR 10, FDR10 10, FDR 14, EDR 25,
 * HDR 50, NDR 100, XDR 200. Pure.
 */
#pragma once

#include "util.h"

/* Width: one bit of 1=1x 2=4x 4=8x 8=12x 16=2x. Lanes, or 0 if unknown. */
unsigned link_width_lanes(uint32_t code);
uint32_t link_width_widest(uint32_t mask); /* code of a mask of codes; 0: none */
/* "4x" */
const char *link_width_text(uint32_t code, char buf[24]);
uint32_t link_width_find(const char *text); /* the code, or 0 */
/* Set of widths, smallest first: "1x 4x". Unknown bits as "unknown(0x..)". */
const char *link_widths_text(uint32_t mask, char buf[96]);

/* Speeds as one code each, ordered by rate. */
enum link_speed {
	SPEED_UNKNOWN, SPEED_SDR, SPEED_DDR, SPEED_QDR, SPEED_FDR10, SPEED_FDR, SPEED_EDR,
	SPEED_HDR, SPEED_NDR, SPEED_XDR, SPEED__MAX
};
/* "HDR" */
const char *link_speed_name(enum link_speed s);
enum link_speed link_speed_find(const char *name); /* or SPEED_UNKNOWN */
/* Nominal lane rate in Mb/s (2500 .. 200000), 0 if unknown. */
uint32_t link_speed_lane_mbps(enum link_speed s);
/* From ibv_port_attr.active_speed (1 SDR 2 DDR 4 QDR 8 FDR10 16 FDR 32 EDR 64 HDR
 * 128 NDR 256 XDR). */
enum link_speed link_speed_from_verbs(uint32_t active_speed);
/* From PortInfo: LinkSpeedActive and LinkSpeedExtActive (valid if the CapabilityMask has
 * ExtendedSpeeds), the two XDR bits, and FDR10 of Mellanox's ExtendedPortInfo. */
enum link_speed link_speed_from_portinfo(uint8_t active, uint8_t ext_active,
					 uint8_t ext_active2, bool fdr10);
/* Bits 1 << enum link_speed, from PortInfo's supported or enabled masks. */
uint32_t link_speeds_from_portinfo(uint8_t mask, uint8_t ext_mask, uint8_t ext_mask2);
enum link_speed link_speed_fastest(uint32_t set); /* SPEED_UNKNOWN: of none */
/* "SDR DDR QDR", slowest first. */
const char *link_speeds_text(uint32_t set, char buf[96]);
/* Lanes * lane rate, Mb/s; 0 if either is unknown. "200G 4x", "10G 4x", "-". */
uint32_t link_rate_mbps(uint32_t width_code, enum link_speed s);
const char *link_rate_text(uint32_t mbps, char buf[24]); /* "200G", "2.5G", "-" */

/* MTU codes 1..5 = 256..4096 bytes; 0 for others. */
uint32_t link_mtu_bytes(uint32_t code);
/* VL codes 1..5 = VL0, VL0-1, VL0-3, VL0-7, VL0-14: number of data VLs, 0 = unknown. */
uint32_t link_vls(uint32_t code);

/* PortState (1 DOWN .. 4 ACTIVE, 5 ACTIVE_DEFER) and PortPhysicalState (1 SLEEP ..
 * 7 PHY_TEST) as iproute2's rdma prints them; "UNKNOWN" for others. */
const char *link_state_name(uint32_t state);
const char *link_phys_state_name(uint32_t phys);

/* CapabilityMask: the names of the set bits as iproute2's rdma(8) prints them
 * ("TRAP", "SYS_IMAGE_GUID"); *bit goes on from 0; NULL at the end. Bits without a name
 * come as "BIT_n". */
const char *link_cap_next(uint32_t mask, int *bit, char buf[16]);
