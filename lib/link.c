/* SPDX-License-Identifier: BSD-2-Clause */
#include "link.h"

#include <stdio.h>

/* clang-format off */
static const struct width {
	uint32_t code;
	unsigned lanes;
	const char *name;
} widths[] = { /* in the order of lanes */
	{  1,  1, "1x" },
	{ 16,  2, "2x" },
	{  2,  4, "4x" },
	{  4,  8, "8x" },
	{  8, 12, "12x" },
};

/* Index = enum link_speed. The three masks are PortInfo's: LinkSpeed, LinkSpeedExt and
 * LinkSpeedExt2; FDR10 is in none of them (it travels in a vendor attribute). */
static const struct speed {
	const char *name;
	uint32_t lane_mbps;
	uint32_t verbs;
	uint8_t bit, ext_bit, ext2_bit;
} speeds[SPEED__MAX] = {
	[SPEED_UNKNOWN] = { "unknown",  0,   0, 0, 0, 0 },
	[SPEED_SDR]   = { "SDR",     2500,   1, 1, 0, 0 },
	[SPEED_DDR]   = { "DDR",     5000,   2, 2, 0, 0 },
	[SPEED_QDR]   = { "QDR",    10000,   4, 4, 0, 0 },
	[SPEED_FDR10] = { "FDR10",  10000,   8, 0, 0, 0 },
	[SPEED_FDR]   = { "FDR",    14000,  16, 0, 1, 0 },
	[SPEED_EDR]   = { "EDR",    25000,  32, 0, 2, 0 },
	[SPEED_HDR]   = { "HDR",    50000,  64, 0, 4, 0 },
	[SPEED_NDR]   = { "NDR",   100000, 128, 0, 8, 0 },
	[SPEED_XDR]   = { "XDR",   200000, 256, 0, 0, 1 },
};

static const char *const states[] = {
	[1] = "DOWN", [2] = "INIT", [3] = "ARMED", [4] = "ACTIVE", [5] = "ACTIVE_DEFER",
};

/* iproute2 calls PortConfigurationTraining ARMED; scripts that know its words must
 * find them here. */
static const char *const phys_states[] = {
	[1] = "SLEEP", [2] = "POLLING", [3] = "DISABLED", [4] = "ARMED", [5] = "LINK_UP",
	[6] = "LINK_ERROR_RECOVER", [7] = "PHY_TEST", [9] = "OPA_OFFLINE",
	[11] = "OPA_TEST",
};

/* Spelt as iproute2 spells them, slips included. Bit 0 is reserved. */
static const char *const caps[32] = {
	NULL, "SM", "NOTICE", "TRAP", "OPT_IPD", "AUTO_MIGR", "SL_MAP", "MKEY_NVRAM",
	"PKEY_NVRAM", "LED_INFO", "SM_DISABLED", "SYS_IMAGE_GUID", "PKEY_SW_EXT_PORT_TRAP",
	"CABLE_INFO", "EXTENDED_SPEEDS", "CAP_MASK2", "CM", "SNMP_TUNNEL", "REINIT",
	"DEVICE_MGMT", "VENDOR_CLASS", "DR_NOTICE", "CAP_MASK_NOTICE", "BOOT_MGMT",
	"LINK_LATENCY", "CLIENT_REG", "OTHER_LOCAL_CHANGES", "LINK_SPPED_WIDTH",
	"VENDOR_SPECIFIC_MADS", "MULT_PKER_TRAP", "MULT_FDB", "HIERARCHY_INFO",
};
/* clang-format on */

static const struct width *width_find(uint32_t code)
{
	for (size_t i = 0; i < ARRAY_LEN(widths); i++)
		if (widths[i].code == code)
			return &widths[i];
	return NULL;
}

unsigned link_width_lanes(uint32_t code)
{
	const struct width *w = width_find(code);

	return w ? w->lanes : 0;
}

const char *link_width_text(uint32_t code, char buf[24])
{
	const struct width *w = width_find(code);

	if (w)
		(void)str_copy(buf, 24, w->name);
	else
		(void)snprintf(buf, 24, "unknown(0x%x)", code);
	return buf;
}

uint32_t link_width_widest(uint32_t mask)
{
	uint32_t best = 0;

	for (size_t i = 0; i < ARRAY_LEN(widths); i++)
		if ((mask & widths[i].code) &&
		    link_width_lanes(widths[i].code) > link_width_lanes(best))
			best = widths[i].code;
	return best;
}

uint32_t link_width_find(const char *text)
{
	for (size_t i = 0; i < ARRAY_LEN(widths); i++)
		if (str_eq(widths[i].name, text))
			return widths[i].code;
	return 0;
}

static const char *sep(const char *buf)
{
	return buf[0] ? " " : "";
}

const char *link_widths_text(uint32_t mask, char buf[96])
{
	buf[0] = '\0';
	for (size_t i = 0; i < ARRAY_LEN(widths); i++) {
		if (!(mask & widths[i].code))
			continue;
		str_append(buf, 96, "%s%s", sep(buf), widths[i].name);
		mask &= ~widths[i].code;
	}
	if (mask)
		str_append(buf, 96, "%sunknown(0x%x)", sep(buf), mask);
	if (!buf[0])
		(void)str_copy(buf, 96, "-");
	return buf;
}

const char *link_speed_name(enum link_speed s)
{
	return (unsigned)s < SPEED__MAX ? speeds[s].name : speeds[SPEED_UNKNOWN].name;
}

enum link_speed link_speed_fastest(uint32_t set)
{
	enum link_speed best = SPEED_UNKNOWN;

	for (int s = SPEED_SDR; s < SPEED__MAX; s++)
		if (set & (UINT32_C(1) << s))
			best = (enum link_speed)s;
	return best;
}

enum link_speed link_speed_find(const char *text)
{
	for (int s = SPEED_SDR; s < SPEED__MAX; s++)
		if (str_eq(text, speeds[s].name))
			return (enum link_speed)s;
	return SPEED_UNKNOWN;
}

uint32_t link_speed_lane_mbps(enum link_speed s)
{
	return (unsigned)s < SPEED__MAX ? speeds[s].lane_mbps : 0;
}

enum link_speed link_speed_from_verbs(uint32_t active_speed)
{
	for (int s = SPEED_SDR; s < SPEED__MAX; s++)
		if (speeds[s].verbs == active_speed)
			return (enum link_speed)s;
	return SPEED_UNKNOWN;
}

enum link_speed link_speed_from_portinfo(uint8_t active, uint8_t ext_active,
					 uint8_t ext_active2, bool fdr10)
{
	/* An extended speed makes LinkSpeedActive meaningless, and so on upwards. */
	for (int s = SPEED__MAX - 1; s > SPEED_UNKNOWN; s--) {
		const struct speed *v = &speeds[s];

		if (ext_active2	 ? v->ext2_bit == ext_active2
		    : ext_active ? v->ext_bit == ext_active
				 : v->bit && v->bit == active)
			return fdr10 && s == SPEED_QDR ? SPEED_FDR10
						       : (enum link_speed)s;
	}
	return SPEED_UNKNOWN;
}

uint32_t link_speeds_from_portinfo(uint8_t mask, uint8_t ext_mask, uint8_t ext_mask2)
{
	uint32_t set = 0;

	for (int s = SPEED_SDR; s < SPEED__MAX; s++) {
		const struct speed *v = &speeds[s];

		if (!((mask & v->bit) | (ext_mask & v->ext_bit) |
		      (ext_mask2 & v->ext2_bit)))
			continue;
		set |= UINT32_C(1) << s;
		mask &= (uint8_t)~v->bit;
		ext_mask &= (uint8_t)~v->ext_bit;
		ext_mask2 &= (uint8_t)~v->ext2_bit;
	}
	if (mask || ext_mask || ext_mask2)
		set |= 1 << SPEED_UNKNOWN;
	return set;
}

const char *link_speeds_text(uint32_t set, char buf[96])
{
	buf[0] = '\0';
	for (int s = SPEED_SDR; s < SPEED__MAX; s++)
		if (set & (UINT32_C(1) << s))
			str_append(buf, 96, "%s%s", sep(buf), speeds[s].name);
	if (set & (1 << SPEED_UNKNOWN))
		str_append(buf, 96, "%sunknown", sep(buf));
	if (!buf[0])
		(void)str_copy(buf, 96, "-");
	return buf;
}

uint32_t link_rate_mbps(uint32_t width_code, enum link_speed s)
{
	return link_width_lanes(width_code) * link_speed_lane_mbps(s);
}

const char *link_rate_text(uint32_t mbps, char buf[24])
{
	if (!mbps)
		(void)str_copy(buf, 24, "-");
	else if (mbps % 1000)
		(void)snprintf(buf, 24, "%gG", mbps / 1000.0);
	else
		(void)snprintf(buf, 24, "%uG", mbps / 1000);
	return buf;
}

uint32_t link_mtu_bytes(uint32_t code)
{
	return code >= 1 && code <= 5 ? UINT32_C(128) << code : 0;
}

uint32_t link_vls(uint32_t code)
{
	static const uint8_t vls[] = {0, 1, 2, 4, 8, 15};

	return code < ARRAY_LEN(vls) ? vls[code] : 0;
}

static const char *word(const char *const *t, size_t n, uint32_t i)
{
	return i < n && t[i] ? t[i] : "UNKNOWN";
}

const char *link_state_name(uint32_t state)
{
	return word(states, ARRAY_LEN(states), state);
}

const char *link_phys_state_name(uint32_t phys)
{
	return word(phys_states, ARRAY_LEN(phys_states), phys);
}

const char *link_cap_next(uint32_t mask, int *bit, char buf[16])
{
	while (*bit >= 0 && *bit < 32) {
		int b = (*bit)++;

		if (!(mask & (UINT32_C(1) << b)))
			continue;
		if (caps[b])
			return caps[b];
		(void)snprintf(buf, 16, "BIT_%d", b);
		return buf;
	}
	return NULL;
}
