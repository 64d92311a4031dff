/* SPDX-License-Identifier: BSD-2-Clause */
/* The one table that validates every message between main and its workers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>

#include "worker.h"

static char why[160];

static void fill_port(struct wm_port *m)
{
	*m = (struct wm_port){.port = 1, .has_verbs = 1, .link_layer = 2, .lmc = 7, .sm_sl = 15};
	wm_header(m, WM_PORT, sizeof(*m), 5);
	(void)str_copy(m->device, sizeof(m->device), "mlx5_0");
}

static int check_port(const struct wm_port *m)
{
	return wm_check(m, sizeof(*m), false, why, sizeof(why));
}

static void a_good_message_passes(void **state)
{
	struct wm_port m;

	(void)state;
	fill_port(&m);
	assert_int_equal(check_port(&m), 0);
}

static void each_length_but_its_own_is_refused(void **state)
{
	struct wm_port m;

	(void)state;
	fill_port(&m);
	for (size_t n = 0; n < sizeof(m); n++)
		assert_int_equal(wm_check(&m, n, false, why, sizeof(why)), -EPROTO);
	m.h.length--;
	assert_int_equal(check_port(&m), -EPROTO);
}

static void the_header_is_checked(void **state)
{
	struct wm_port m;

	(void)state;
	fill_port(&m);
	m.h.magic++;
	assert_int_equal(check_port(&m), -EPROTO);
	fill_port(&m);
	m.h.version++;
	assert_int_equal(check_port(&m), -EPROTONOSUPPORT);
	fill_port(&m);
	m.h.type = 999;
	assert_int_equal(check_port(&m), -EPROTO);
	fill_port(&m);
	/* a worker's message is no order */
	assert_int_equal(wm_check(&m, sizeof(m), true, why, sizeof(why)), -EPROTO);
}

static void ranges_and_texts_are_checked(void **state)
{
	struct wm_port m;

	(void)state;
	fill_port(&m);
	m.port = 0;
	assert_int_equal(check_port(&m), -EPROTO);
	assert_non_null(strstr(why, "port out of range"));
	fill_port(&m);
	m.port = 255;
	assert_int_equal(check_port(&m), -EPROTO);
	fill_port(&m);
	m.lmc = 8;
	assert_int_equal(check_port(&m), -EPROTO);
	fill_port(&m);
	m.link_layer = 3;
	assert_int_equal(check_port(&m), -EPROTO);
	fill_port(&m);
	memset(m.device, 'x', sizeof(m.device));
	assert_int_equal(check_port(&m), -EPROTO);
	assert_non_null(strstr(why, "device"));
	fill_port(&m);
	m.device[0] = '\0';
	assert_int_equal(check_port(&m), -EPROTO);
	fill_port(&m);
	memset(m.netdev, 'x', sizeof(m.netdev));
	assert_int_equal(check_port(&m), -EPROTO);
}

static void device_facts_are_checked(void **state)
{
	struct wm_device m = {.has_verbs = 1};

	(void)state;
	wm_header(&m, WM_DEVICE, sizeof(m), 1);
	(void)str_copy(m.name, sizeof(m.name), "rxe0");
	assert_int_equal(wm_check(&m, sizeof(m), false, why, sizeof(why)), 0);
	m.facts.why[DF_FW] = WHY__MAX;
	assert_int_equal(wm_check(&m, sizeof(m), false, why, sizeof(why)), -EPROTO);
	m.facts.why[DF_FW] = WHY_NONE;
	memset(m.facts.fw, 'x', sizeof(m.facts.fw));
	assert_int_equal(wm_check(&m, sizeof(m), false, why, sizeof(why)), -EPROTO);
	m.facts.fw[0] = '\0';
	m.facts.is_vf = 2;
	assert_int_equal(wm_check(&m, sizeof(m), false, why, sizeof(why)), -EPROTO);
}

static void starts_are_checked(void **state)
{
	struct wm_ep_start m = {.start = {.multiplier = 3, .heartbeat_us = 100000,
					  .resolve_timeout_ms = 2000, .connect_timeout_ms = 2000,
					  .local.family = 4, .remote.family = 6}};

	(void)state;
	wm_header(&m, WM_EP_START, sizeof(m), 1);
	assert_int_equal(wm_check(&m, sizeof(m), true, why, sizeof(why)), 0);
	m.start.local.family = 5;
	assert_int_equal(wm_check(&m, sizeof(m), true, why, sizeof(why)), -EPROTO);
	m.start.local.family = 4;
	m.start.remote.family = 0;
	assert_int_equal(wm_check(&m, sizeof(m), true, why, sizeof(why)), -EPROTO);
	m.start.remote.family = 4;
	m.start.multiplier = 0;
	assert_int_equal(wm_check(&m, sizeof(m), true, why, sizeof(why)), -EPROTO);
	m.start.multiplier = 3;
	m.start.probe_size = 65537;
	assert_int_equal(wm_check(&m, sizeof(m), true, why, sizeof(why)), -EPROTO);
}

static int check(const void *m, size_t size, bool to_worker)
{
	return wm_check(m, size, to_worker, why, sizeof(why));
}

static size_t fill_gets(struct wm_smp_gets *m, uint16_t n)
{
	size_t size = offsetof(struct wm_smp_gets, get) + n * sizeof(m->get[0]);

	*m = (struct wm_smp_gets){.port = 1, .n = n};
	(void)str_copy(m->device, sizeof(m->device), "mlx5_0");
	for (int i = 0; i < n; i++)
		m->get[i] = (struct wm_smp_get){.id = (uint64_t)i, .attr = 0x15,
						.timeout_ms = 50, .hops = 2};
	wm_header(m, WM_SMP_GETS, size, 1);
	return size;
}

static void batches_are_as_long_as_their_entries(void **state)
{
	static struct wm_smp_gets m;
	size_t size;

	(void)state;
	for (uint16_t n = 1; n <= WM_SMPS_EACH; n++) {
		size = fill_gets(&m, n);
		assert_int_equal(check(&m, size, true), 0);
		m.n--; /* one more than it says */
		assert_int_equal(check(&m, size, true), -EPROTO);
		m.n += 2;
		assert_int_equal(check(&m, size, true), -EPROTO);
	}
	size = fill_gets(&m, WM_SMPS_EACH);
	for (size_t len = 0; len < size; len++)
		assert_int_equal(check(&m, len, true), -EPROTO);
	/* None at all, and a piece of one, each with the length in the header. */
	m.n = 0;
	m.h.length = offsetof(struct wm_smp_gets, get);
	assert_int_equal(check(&m, m.h.length, true), -EPROTO);
	m.n = 1;
	m.h.length += 8;
	assert_int_equal(check(&m, m.h.length, true), -EPROTO);
}

static void every_entry_of_a_batch_is_checked(void **state)
{
	static struct wm_smp_gets m;

	(void)state;
	for (uint16_t i = 0; i < WM_SMPS_EACH; i++) {
		size_t size = fill_gets(&m, WM_SMPS_EACH);

		m.get[i].attr = 0x13;
		assert_int_equal(check(&m, size, true), -EPROTO);
		assert_non_null(strstr(why, "attr"));
		m.get[i].attr = 0x18;
		assert_int_equal(check(&m, size, true), 0);
		m.get[i].timeout_ms = 0;
		assert_int_equal(check(&m, size, true), -EPROTO);
		m.get[i].timeout_ms = 10000;
		m.get[i].hops = 64;
		assert_int_equal(check(&m, size, true), -EPROTO);
		m.get[i].hops = 63;
		m.get[i].path[0] = 1;
		assert_int_equal(check(&m, size, true), -EPROTO);
	}
}

static void results_of_batches(void **state)
{
	static struct wm_smp_results m;
	size_t size = offsetof(struct wm_smp_results, result) + 3 * sizeof(m.result[0]);

	(void)state;
	m.n = 3;
	wm_header(&m, WM_SMP_RESULTS, size, 1);
	assert_int_equal(check(&m, size, false), 0);
	assert_int_equal(check(&m, size, true), -EPROTO);
	m.result[2].status = WM_MAD__MAX;
	assert_int_equal(check(&m, size, false), -EPROTO);
}

static void sends_that_are_not_allowed(void **state)
{
	/* clang-format off */
	static const struct {
		uint8_t kind, method;
		uint16_t attr, length;
		int32_t timeout_ms;
		int want;
	} rows[] = {
		{ WM_KIND_DR_SMP, 0x01, 0x15, 64, 100, 0 },
		{ WM_KIND_DR_SMP, 0x01, 0x15, 65, 100, -EPROTO },
		{ WM_KIND_DR_SMP, 0x02, 0x15, 64, 100, -EPROTO },  /* a Set */
		{ WM_KIND_LID_SMP, 0x02, 0x15, 64, 100, -EPROTO },
		{ WM_KIND_LID_SMP, 0x05, 0x02, 64, 100, -EPROTO }, /* a trap */
		{ WM_KIND_LID_SMP, 0x01, 0x20, 0, -1, 0 },
		{ WM_KIND_LID_SMP, 0x01, 0x20, 0, -2, -EPROTO },
		{ WM_KIND_PMA, 0x01, 0x12, 192, 60000, 0 },
		{ WM_KIND_PMA, 0x01, 0x12, 192, 60001, -EPROTO },
		{ WM_KIND_PMA, 0x01, 0x12, 193, 0, -EPROTO },
		{ WM_KIND_PMA, 0x02, 0x12, 192, 0, -EPROTO },      /* resets counters */
		{ WM_KIND_SA, 0x12, 0x11, 200, 0, 0 },
		{ WM_KIND_SA, 0x12, 0x11, 201, 0, -EPROTO },
		{ WM_KIND_SA, 0x02, 0x03, 36, 0, 0 },
		{ WM_KIND_SA, 0x02, 0x38, 36, 0, -EPROTO },        /* joins a group */
		{ WM_KIND_SA, 0x15, 0x38, 36, 0, -EPROTO },
		{ WM_KIND__MAX, 0x01, 0x15, 0, 0, -EPROTO },
	};
	/* clang-format on */
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct wm_mad_send m = {.port = 1, .device = "mlx5_0",
					.kind = rows[i].kind, .method = rows[i].method,
					.attr = rows[i].attr, .length = rows[i].length,
					.timeout_ms = rows[i].timeout_ms};

		wm_header(&m, WM_MAD_SEND, sizeof(m), 1);
		if (check(&m, sizeof(m), true) != rows[i].want)
			fail_msg("row %zu: %s", i, why);
		m.grh.flow_label = 0x100000;
		assert_int_equal(check(&m, sizeof(m), true), -EPROTO);
	}
}

static void pieces_lie_within_their_total(void **state)
{
	static struct wm_mad_more m = {.offset = 4096, .total = 5000, .length = 904};
	size_t size = offsetof(struct wm_mad_more, data) + 904;

	(void)state;
	wm_header(&m, WM_MAD_MORE, size, 1);
	assert_int_equal(check(&m, size, false), 0);
	m.offset++;
	assert_int_equal(check(&m, size, false), -EPROTO);
	m.offset = 5001;
	assert_int_equal(check(&m, size, false), -EPROTO);
	m.offset = 0;
	m.total = WM_MAD_TOTAL_MAX + 1;
	assert_int_equal(check(&m, size, false), -EPROTO);
	m.total = 5000;
	m.length = 903;
	assert_int_equal(check(&m, size, false), -EPROTO);
}

static void answers_say_how_long_they_are(void **state)
{
	struct wm_mad_answer m = {.total = 200, .length = 200};

	(void)state;
	wm_header(&m, WM_MAD_ANSWER, sizeof(m), 1);
	assert_int_equal(check(&m, sizeof(m), false), 0);
	m.total = 201;
	assert_int_equal(check(&m, sizeof(m), false), -EPROTO);
	m.more = 1;
	assert_int_equal(check(&m, sizeof(m), false), -EPROTO);
	m.length = 0;
	assert_int_equal(check(&m, sizeof(m), false), 0);
}

static void notices_counters_and_inits(void **state)
{
	static struct wm_counters c = {.port = 1, .device = "mlx5_0"};
	struct wm_notice n = {.port = 1, .device = "mlx5_0"};
	struct wm_init i = {.reports = 1, .counters_ms = 1000};

	(void)state;
	wm_header(&c, WM_COUNTERS, sizeof(c), 1);
	assert_int_equal(check(&c, sizeof(c), false), 0);
	c.reading.why[CTR__MAX - 1] = WHY__MAX;
	assert_int_equal(check(&c, sizeof(c), false), -EPROTO);
	c.reading.why[CTR__MAX - 1] = 0;
	c.reading.bits[0] = 65;
	assert_int_equal(check(&c, sizeof(c), false), -EPROTO);
	wm_header(&n, WM_NOTICE, sizeof(n), 1);
	assert_int_equal(check(&n, sizeof(n), false), 0);
	n.port = 0;
	assert_int_equal(check(&n, sizeof(n), false), -EPROTO);
	wm_header(&i, WM_INIT, sizeof(i), 1);
	assert_int_equal(check(&i, sizeof(i), true), 0);
	i.reports = 2;
	assert_int_equal(check(&i, sizeof(i), true), -EPROTO);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_good_message_passes),
		cmocka_unit_test(each_length_but_its_own_is_refused),
		cmocka_unit_test(the_header_is_checked),
		cmocka_unit_test(ranges_and_texts_are_checked),
		cmocka_unit_test(device_facts_are_checked),
		cmocka_unit_test(starts_are_checked),
		cmocka_unit_test(batches_are_as_long_as_their_entries),
		cmocka_unit_test(every_entry_of_a_batch_is_checked),
		cmocka_unit_test(results_of_batches),
		cmocka_unit_test(sends_that_are_not_allowed),
		cmocka_unit_test(pieces_lie_within_their_total),
		cmocka_unit_test(answers_say_how_long_they_are),
		cmocka_unit_test(notices_counters_and_inits),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
