/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "link.h"

static void every_width_code(void **state)
{
	char buf[24];

	(void)state;
	for (uint32_t code = 0; code < 300; code++) {
		unsigned lanes = code == 1    ? 1
				 : code == 2  ? 4
				 : code == 4  ? 8
				 : code == 8  ? 12
				 : code == 16 ? 2
					      : 0;

		assert_int_equal(link_width_lanes(code), lanes);
	}
	assert_string_equal(link_width_text(1, buf), "1x");
	assert_string_equal(link_width_text(2, buf), "4x");
	assert_string_equal(link_width_text(4, buf), "8x");
	assert_string_equal(link_width_text(8, buf), "12x");
	assert_string_equal(link_width_text(16, buf), "2x");
	assert_string_equal(link_width_text(0x40, buf), "unknown(0x40)");
	assert_string_equal(link_width_text(3, buf), "unknown(0x3)");
	assert_string_equal(link_width_text(UINT32_MAX, buf), "unknown(0xffffffff)");
}

static void sets_of_widths(void **state)
{
	char buf[96];

	(void)state;
	assert_string_equal(link_widths_text(0, buf), "-");
	assert_string_equal(link_widths_text(0x1f, buf), "1x 2x 4x 8x 12x");
	assert_string_equal(link_widths_text(0x63, buf), "1x 4x unknown(0x60)");
	assert_string_equal(link_widths_text(0x80, buf), "unknown(0x80)");
}

static void every_speed(void **state)
{
	static const struct {
		enum link_speed s;
		const char *name;
		uint32_t mbps, verbs;
	} rows[] = {
		{SPEED_SDR, "SDR", 2500, 1},	 {SPEED_DDR, "DDR", 5000, 2},
		{SPEED_QDR, "QDR", 10000, 4},	 {SPEED_FDR10, "FDR10", 10000, 8},
		{SPEED_FDR, "FDR", 14000, 16},	 {SPEED_EDR, "EDR", 25000, 32},
		{SPEED_HDR, "HDR", 50000, 64},	 {SPEED_NDR, "NDR", 100000, 128},
		{SPEED_XDR, "XDR", 200000, 256},
	};
	uint32_t known = 0;

	(void)state;
	assert_int_equal(ARRAY_LEN(rows), SPEED__MAX - 1);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		assert_string_equal(link_speed_name(rows[i].s), rows[i].name);
		assert_int_equal(link_speed_lane_mbps(rows[i].s), rows[i].mbps);
		assert_int_equal(link_speed_from_verbs(rows[i].verbs), rows[i].s);
		known |= rows[i].verbs;
		if (i)
			assert_true(rows[i].mbps >= rows[i - 1].mbps);
	}
	for (uint32_t v = 0; v < 1024; v++)
		if (!(v & known) || (v & (v - 1)))
			assert_int_equal(link_speed_from_verbs(v), SPEED_UNKNOWN);
	assert_string_equal(link_speed_name(SPEED_UNKNOWN), "unknown");
	assert_string_equal(link_speed_name((enum link_speed)99), "unknown");
	assert_int_equal(link_speed_lane_mbps(SPEED_UNKNOWN), 0);
	assert_int_equal(link_speed_lane_mbps((enum link_speed)99), 0);
}

static void speed_of_portinfo(void **state)
{
	(void)state;
	assert_int_equal(link_speed_from_portinfo(1, 0, 0, false), SPEED_SDR);
	assert_int_equal(link_speed_from_portinfo(2, 0, 0, false), SPEED_DDR);
	assert_int_equal(link_speed_from_portinfo(4, 0, 0, false), SPEED_QDR);
	assert_int_equal(link_speed_from_portinfo(4, 0, 0, true), SPEED_FDR10);
	assert_int_equal(link_speed_from_portinfo(1, 0, 0, true), SPEED_SDR);
	/* The extended one counts, whatever the old field says. */
	assert_int_equal(link_speed_from_portinfo(4, 1, 0, false), SPEED_FDR);
	assert_int_equal(link_speed_from_portinfo(4, 2, 0, true), SPEED_EDR);
	assert_int_equal(link_speed_from_portinfo(4, 4, 0, false), SPEED_HDR);
	assert_int_equal(link_speed_from_portinfo(0, 8, 0, false), SPEED_NDR);
	assert_int_equal(link_speed_from_portinfo(4, 8, 1, false), SPEED_XDR);
	assert_int_equal(link_speed_from_portinfo(0, 0, 0, false), SPEED_UNKNOWN);
	assert_int_equal(link_speed_from_portinfo(8, 0, 0, false), SPEED_UNKNOWN);
	assert_int_equal(link_speed_from_portinfo(4, 3, 0, false), SPEED_UNKNOWN);
	assert_int_equal(link_speed_from_portinfo(4, 8, 2, false), SPEED_UNKNOWN);
}

static void sets_of_speeds(void **state)
{
	char buf[96];

	(void)state;
	assert_string_equal(link_speeds_text(link_speeds_from_portinfo(7, 0, 0), buf),
			    "SDR DDR QDR");
	assert_string_equal(link_speeds_text(link_speeds_from_portinfo(7, 15, 1), buf),
			    "SDR DDR QDR FDR EDR HDR NDR XDR");
	assert_string_equal(link_speeds_text(link_speeds_from_portinfo(1, 2, 0), buf),
			    "SDR EDR");
	assert_string_equal(link_speeds_text(link_speeds_from_portinfo(8, 0, 0), buf),
			    "unknown");
	assert_string_equal(link_speeds_text(link_speeds_from_portinfo(1, 16, 2), buf),
			    "SDR unknown");
	assert_string_equal(link_speeds_text(0, buf), "-");
	assert_string_equal(link_speeds_text(1 << SPEED_FDR10, buf), "FDR10");
}

static void rates(void **state)
{
	char buf[24];

	(void)state;
	assert_int_equal(link_rate_mbps(2, SPEED_HDR), 200000);
	assert_int_equal(link_rate_mbps(8, SPEED_XDR), 2400000);
	assert_int_equal(link_rate_mbps(1, SPEED_SDR), 2500);
	assert_int_equal(link_rate_mbps(3, SPEED_HDR), 0);
	assert_int_equal(link_rate_mbps(2, SPEED_UNKNOWN), 0);
	assert_string_equal(link_rate_text(200000, buf), "200G");
	assert_string_equal(link_rate_text(2500, buf), "2.5G");
	assert_string_equal(link_rate_text(0, buf), "-");
	assert_string_equal(link_rate_text(2400000, buf), "2400G");
}

static void mtus_and_vls(void **state)
{
	static const uint32_t mtu[] = {0, 256, 512, 1024, 2048, 4096};
	static const uint32_t vls[] = {0, 1, 2, 4, 8, 15};

	(void)state;
	for (uint32_t c = 0; c < 20; c++) {
		assert_int_equal(link_mtu_bytes(c), c < 6 ? mtu[c] : 0);
		assert_int_equal(link_vls(c), c < 6 ? vls[c] : 0);
	}
}

static void states(void **state)
{
	static const char *const s[] = {"UNKNOWN", "DOWN",	   "INIT",   "ARMED",
					"ACTIVE",  "ACTIVE_DEFER", "UNKNOWN"};
	static const char *const p[] = {"UNKNOWN",
					"SLEEP",
					"POLLING",
					"DISABLED",
					"ARMED",
					"LINK_UP",
					"LINK_ERROR_RECOVER",
					"PHY_TEST",
					"UNKNOWN"};

	(void)state;
	for (uint32_t i = 0; i < ARRAY_LEN(s); i++)
		assert_string_equal(link_state_name(i), s[i]);
	for (uint32_t i = 0; i < ARRAY_LEN(p); i++)
		assert_string_equal(link_phys_state_name(i), p[i]);
	assert_string_equal(link_state_name(UINT32_MAX), "UNKNOWN");
	assert_string_equal(link_phys_state_name(UINT32_MAX), "UNKNOWN");
}

static void capabilities(void **state)
{
	const char *seen[33] = {NULL};
	char buf[16];
	int bit = 0, n = 0;

	(void)state;
	while ((seen[n] = link_cap_next(UINT32_MAX, &bit, buf)))
		n++;
	assert_int_equal(n, 32);
	assert_string_equal(seen[0], "BIT_0");
	assert_string_equal(seen[1], "SM");
	assert_string_equal(seen[14], "EXTENDED_SPEEDS");
	assert_string_equal(seen[31], "HIERARCHY_INFO");
	for (int i = 0; i < n; i++)
		for (int j = 0; j < i; j++)
			assert_string_not_equal(seen[i], seen[j]);
	bit = 0;
	assert_null(link_cap_next(0, &bit, buf));
	bit = 0;
	assert_string_equal(link_cap_next(0x00500008, &bit, buf), "TRAP");
	assert_string_equal(link_cap_next(0x00500008, &bit, buf), "VENDOR_CLASS");
	assert_string_equal(link_cap_next(0x00500008, &bit, buf), "CAP_MASK_NOTICE");
	assert_null(link_cap_next(0x00500008, &bit, buf));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_width_code), cmocka_unit_test(sets_of_widths),
		cmocka_unit_test(every_speed),	    cmocka_unit_test(speed_of_portinfo),
		cmocka_unit_test(sets_of_speeds),   cmocka_unit_test(rates),
		cmocka_unit_test(mtus_and_vls),	    cmocka_unit_test(states),
		cmocka_unit_test(capabilities),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
