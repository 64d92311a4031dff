/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "counters.h"

#define SEC  NSEC_PER_SEC
#define MIN_ (60 * SEC)
#define HOUR (3600 * SEC)

static struct mono at(int64_t ns)
{
	return (struct mono){HOUR + ns};
}

/* A reading of one counter; all others are not there. */
static void read_one(struct counters *c, enum counter which, uint64_t value, uint8_t bits,
		     struct mono now)
{
	struct counter_reading r;

	counter_reading_init(&r, WHY_NOT_SUPPORTED);
	r.value[which] = value;
	r.bits[which] = bits;
	r.why[which] = WHY_NONE;
	counters_read(c, &r, now);
}

static struct counter_view view(const struct counters *c, enum counter which)
{
	struct counter_view v;

	counters_view(c, which, &v);
	return v;
}

static void the_table_is_whole(void **state)
{
	(void)state;
	for (int c = 0; c < CTR__MAX; c++) {
		const struct counter_row *r = &counter_rows[c];

		assert_non_null(r->name);
		assert_non_null(r->help);
		assert_true(r->bits == 4 || r->bits == 8 || r->bits == 16 || r->bits == 32 ||
			    r->bits == 64);
		assert_true(r->scale == 1 || r->scale == 4);
		assert_int_equal(!r->limit, !r->limit_sec);
		if (r->kind != CTR_KIND_ERROR)
			assert_int_equal(r->limit, 0);
		assert_int_equal(counter_find(r->name), c);
	}
	assert_int_equal(counter_find("SymbolErrorCounter"), CTR_SYMBOL_ERROR);
	assert_int_equal(counter_find("vl15_dropped"), CTR_VL15_DROPPED);
	assert_int_equal(counter_find("rx_pause_ctrl_phy"), CTR_RX_PAUSE);
	assert_int_equal(counter_find("sent_pkts"), CTR_PORT_XMIT_PACKETS);
	assert_int_equal(counter_find(""), -1);
	assert_int_equal(counter_find("symbol"), -1);
}

static void registers_saturate(void **state)
{
	static const uint8_t widths[] = {4, 8, 16, 32};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(widths); i++) {
		uint8_t bits = widths[i];
		uint64_t top = (UINT64_C(1) << bits) - 1;
		struct counters *c = counters_new();

		read_one(c, CTR_SYMBOL_ERROR, 2, bits, at(0));
		assert_int_equal(view(c, CTR_SYMBOL_ERROR).total, 0);
		read_one(c, CTR_SYMBOL_ERROR, top - 1, bits, at(1 * SEC));
		assert_false(view(c, CTR_SYMBOL_ERROR).saturated);
		read_one(c, CTR_SYMBOL_ERROR, top, bits, at(2 * SEC));
		assert_true(view(c, CTR_SYMBOL_ERROR).saturated);
		read_one(c, CTR_SYMBOL_ERROR, top, bits, at(3 * SEC));
		assert_int_equal(view(c, CTR_SYMBOL_ERROR).total, top - 2);
		assert_int_equal(view(c, CTR_SYMBOL_ERROR).raw, top);
		assert_true(view(c, CTR_SYMBOL_ERROR).saturated_at.ns == at(2 * SEC).ns);
		assert_true(view(c, CTR_SYMBOL_ERROR).changed_at.ns == at(2 * SEC).ns);
		/* Somebody clears it: the sum goes on. */
		read_one(c, CTR_SYMBOL_ERROR, 3, bits, at(4 * SEC));
		assert_false(view(c, CTR_SYMBOL_ERROR).saturated);
		assert_int_equal(view(c, CTR_SYMBOL_ERROR).total, top + 1);
		assert_int_equal(view(c, CTR_SYMBOL_ERROR).resets, 1);
		assert_true(view(c, CTR_SYMBOL_ERROR).reset_at.ns == at(4 * SEC).ns);
		c = counters_free(c);
		assert_null(c);
	}
}

static void wide_sums_do_not_wrap(void **state)
{
	struct counters *c = counters_new();

	(void)state;
	read_one(c, CTR_PORT_XMIT_DATA, 0, 64, at(0));
	read_one(c, CTR_PORT_XMIT_DATA, UINT64_MAX - 1, 64, at(1));
	assert_true(view(c, CTR_PORT_XMIT_DATA).total == UINT64_MAX);
	assert_false(view(c, CTR_PORT_XMIT_DATA).saturated);
	read_one(c, CTR_PORT_XMIT_DATA, UINT64_MAX, 64, at(2));
	assert_true(view(c, CTR_PORT_XMIT_DATA).total == UINT64_MAX);
	counters_free(c);
}

static void data_are_bytes(void **state)
{
	struct counters *c = counters_new();
	struct mono from;

	(void)state;
	read_one(c, CTR_PORT_RCV_DATA, 1000, 32, at(0));
	read_one(c, CTR_PORT_RCV_DATA, 1250, 32, at(SEC));
	assert_int_equal(view(c, CTR_PORT_RCV_DATA).total, 1000); /* 250 words of 4 */
	assert_int_equal(view(c, CTR_PORT_RCV_DATA).raw, 1250);
	assert_int_equal(counters_since(c, CTR_PORT_RCV_DATA, at(SEC), SEC, &from), 1000);
	counters_free(c);
}

static void each_is_unavailable_on_its_own(void **state)
{
	struct counters *c = counters_new();
	struct counter_reading r;
	struct mono from;

	(void)state;
	assert_int_equal(view(c, CTR_LINK_DOWNED).why, WHY_NOT_READ);
	assert_false(mono_is_set(counters_read_at(c)));
	read_one(c, CTR_SYMBOL_ERROR, 10, 16, at(0));
	assert_int_equal(view(c, CTR_SYMBOL_ERROR).why, WHY_NONE);
	assert_int_equal(view(c, CTR_LINK_DOWNED).why, WHY_NOT_SUPPORTED);
	/* Away for a while: what came meanwhile is not lost. */
	counter_reading_init(&r, WHY_TIMEOUT);
	counters_read(c, &r, at(SEC));
	assert_int_equal(view(c, CTR_SYMBOL_ERROR).why, WHY_TIMEOUT);
	assert_int_equal(view(c, CTR_SYMBOL_ERROR).total, 0);
	read_one(c, CTR_SYMBOL_ERROR, 15, 16, at(2 * SEC));
	assert_int_equal(view(c, CTR_SYMBOL_ERROR).total, 5);
	assert_true(counters_read_at(c).ns == at(2 * SEC).ns);
	/* One that is read later than the others is known since then. */
	read_one(c, CTR_QP1_DROPPED, 7, 16, at(3 * SEC));
	read_one(c, CTR_QP1_DROPPED, 9, 16, at(4 * SEC));
	assert_int_equal(counters_since(c, CTR_QP1_DROPPED, at(4 * SEC), HOUR, &from), 2);
	assert_true(from.ns == at(3 * SEC).ns);
	assert_int_equal(counters_since(c, CTR_RX_PAUSE, at(4 * SEC), HOUR, &from), 0);
	assert_false(mono_is_set(from));
	counters_free(c);
}

static void another_register_is_no_reset(void **state)
{
	struct counters *c = counters_new();

	(void)state;
	read_one(c, CTR_PORT_XMIT_PACKETS, 4000000000, 32, at(0));
	read_one(c, CTR_PORT_XMIT_PACKETS, 12, 64, at(SEC));
	assert_int_equal(view(c, CTR_PORT_XMIT_PACKETS).resets, 0);
	assert_int_equal(view(c, CTR_PORT_XMIT_PACKETS).total, 0);
	read_one(c, CTR_PORT_XMIT_PACKETS, 15, 64, at(2 * SEC));
	assert_int_equal(view(c, CTR_PORT_XMIT_PACKETS).total, 3);
	counters_free(c);
}

static void windows_are_kept_for_a_day(void **state)
{
	static const int64_t windows[] = {30 * SEC, 5 * MIN_, 10 * MIN_, HOUR,
					  6 * HOUR, 24 * HOUR};
	struct counters *c = counters_new();
	struct mono from, now = at(0);

	(void)state;
	/* One a second for 30 hours, read each 30 s. */
	for (int64_t t = 0; t <= 30 * HOUR; t += 30 * SEC) {
		now = at(t);
		read_one(c, CTR_SYMBOL_ERROR, (uint64_t)(t / SEC), 64, now);
	}
	for (size_t i = 0; i < ARRAY_LEN(windows); i++) {
		uint64_t n = counters_since(c, CTR_SYMBOL_ERROR, now, windows[i], &from);
		int64_t real = mono_sub(now, from);

		/* The amount is that of the window that it says. */
		assert_int_equal(n, real / SEC);
		if (real < windows[i] * 85 / 100 || real > windows[i] * 115 / 100)
			fail_msg("asked %lld s, got %lld s", (long long)(windows[i] / SEC),
				 (long long)(real / SEC));
	}
	/* No more than a day. */
	(void)counters_since(c, CTR_SYMBOL_ERROR, now, 30 * HOUR, &from);
	assert_true(mono_sub(now, from) <= 24 * HOUR * 115 / 100);
	counters_free(c);
}

static void the_last_reading_alone_tells_no_amount(void **state)
{
	struct counters *c = counters_new();
	struct mono from;

	(void)state;
	assert_int_equal(counters_since(c, CTR_SYMBOL_ERROR, at(0), SEC, &from), 0);
	assert_false(mono_is_set(from));
	read_one(c, CTR_SYMBOL_ERROR, 5, 16, at(0));
	assert_int_equal(counters_since(c, CTR_SYMBOL_ERROR, at(SEC), SEC, &from), 0);
	assert_true(from.ns == at(0).ns);
	/* A window shorter than the gap of readings is the last gap. */
	read_one(c, CTR_SYMBOL_ERROR, 8, 16, at(30 * SEC));
	assert_int_equal(counters_since(c, CTR_SYMBOL_ERROR, at(31 * SEC), SEC, &from), 3);
	assert_true(from.ns == at(0).ns);
	counters_free(c);
}

static void over_and_over_no_more(void **state)
{
	struct counters *c = counters_new();
	struct counter_limits l;
	struct counter_over o;
	uint64_t v = 0;

	(void)state;
	counter_limits_default(&l);
	read_one(c, CTR_LINK_ERROR_RECOVERY, v, 8, at(0));
	for (int64_t t = 30 * SEC; t <= 2 * HOUR; t += 30 * SEC) {
		v += t == 10 * MIN_ || t == 20 * MIN_ || t == 30 * MIN_;
		read_one(c, CTR_LINK_ERROR_RECOVERY, v, 8, at(t));
		counters_judge(c, &l, at(t));
		counters_over(c, CTR_LINK_ERROR_RECOVERY, &o);
		if (t < 30 * MIN_) {
			assert_false(o.over); /* two are allowed */
		} else if (t < 55 * MIN_) {
			assert_true(o.over);
			assert_int_equal(o.amount, 3);
			assert_true(o.since.ns == at(30 * MIN_).ns);
		} else if (t > 80 * MIN_) {
			assert_false(o.over);
			assert_false(mono_is_set(o.since));
		}
	}
	/* Switched off: never. */
	(void)counter_limit_parse("link_error_recovery off", &l, (char[160]){0}, 160);
	read_one(c, CTR_LINK_ERROR_RECOVERY, v + 100, 8, at(2 * HOUR + SEC));
	counters_judge(c, &l, at(2 * HOUR + SEC));
	counters_over(c, CTR_LINK_ERROR_RECOVERY, &o);
	assert_false(o.over);
	counters_free(c);
}

static void waiting_never_alarms(void **state)
{
	struct counters *c = counters_new();
	struct counter_limits l;
	struct counter_over o;

	(void)state;
	counter_limits_default(&l);
	l.limit[CTR_PORT_XMIT_WAIT] = 1;
	l.sec[CTR_PORT_XMIT_WAIT] = 3600;
	read_one(c, CTR_PORT_XMIT_WAIT, 0, 32, at(0));
	read_one(c, CTR_PORT_XMIT_WAIT, 91402118, 32, at(SEC));
	counters_judge(c, &l, at(SEC));
	counters_over(c, CTR_PORT_XMIT_WAIT, &o);
	assert_false(o.over);
	counters_free(c);
}

static void limits_as_text(void **state)
{
	/* clang-format off */
	static const struct {
		const char *text;
		enum counter counter;
		uint32_t limit, sec;
		const char *back;
	} good[] = {
		{ "symbol_error 120/h", CTR_SYMBOL_ERROR, 120, 3600, "120/h" },
		{ "link_downed 2/10m", CTR_LINK_DOWNED, 2, 600, "2/10m" },
		{ "PortRcvErrors\t 7/d", CTR_PORT_RCV_ERRORS, 7, 86400, "7/d" },
		{ "symbol_error 4294967295/90s", CTR_SYMBOL_ERROR, UINT32_MAX, 90, "4294967295/90s" },
		{ "symbol_error 1/24h", CTR_SYMBOL_ERROR, 1, 86400, "1/d" },
		{ "symbol_error 1/60s", CTR_SYMBOL_ERROR, 1, 60, "1/m" },
		{ "port_rcv_errors OFF", CTR_PORT_RCV_ERRORS, 0, 0, "off" },
	};
	/* clang-format on */
	static const char *const bad[] = {
		"", "symbol_error", "symbol_error 120", "symbol_error 0/h", "nothing 1/h",
		"symbol_error 120/w", "symbol_error 120/25h", "symbol_error 120/0s",
		"symbol_error -1/h", "symbol_error 4294967296/h", "symbol_error 1/h x",
		"port_xmit_wait 1/h", "port_xmit_data off", "symbol_error 1/2d",
		"symbol_error 18446744073709551617/h"};
	struct counter_limits l, before;
	char why[160], buf[32];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(good); i++) {
		counter_limits_default(&l);
		assert_int_equal(counter_limit_parse(good[i].text, &l, why, sizeof(why)), 0);
		assert_int_equal(l.limit[good[i].counter], good[i].limit);
		assert_int_equal(l.sec[good[i].counter], good[i].sec);
		assert_string_equal(
			counter_limit_text(&l, good[i].counter, buf, sizeof(buf)),
			good[i].back);
	}
	counter_limits_default(&before);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		counter_limits_default(&l);
		why[0] = '\0';
		if (counter_limit_parse(bad[i], &l, why, sizeof(why)) >= 0)
			fail_msg("took \"%s\"", bad[i]);
		assert_string_not_equal(why, "");
		assert_memory_equal(&l, &before, sizeof(l));
	}
	assert_string_equal(counter_limit_text(&before, CTR_PORT_XMIT_WAIT, buf, sizeof(buf)),
			    "off");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_table_is_whole),
		cmocka_unit_test(registers_saturate),
		cmocka_unit_test(wide_sums_do_not_wrap),
		cmocka_unit_test(data_are_bytes),
		cmocka_unit_test(each_is_unavailable_on_its_own),
		cmocka_unit_test(another_register_is_no_reset),
		cmocka_unit_test(windows_are_kept_for_a_day),
		cmocka_unit_test(the_last_reading_alone_tells_no_amount),
		cmocka_unit_test(over_and_over_no_more),
		cmocka_unit_test(waiting_never_alarms),
		cmocka_unit_test(limits_as_text),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
