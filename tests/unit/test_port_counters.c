/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * When which counter is asked for, what its answers make of a port, and who may accuse
 * one: daemon/counters.c with scripted answers in the place of the MAD worker.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "manager.h"

#define SEC NSEC_PER_SEC

static struct {
	struct manager m;
	struct config config;
	struct device device;
	struct port_entry pe;
	struct worker mad, rdma;
	struct mono now;
	/* what was asked last */
	struct wm_mad_send sent;
	uint64_t tag;
	mad_done_fn *done;
	void *user;
	int n_sent, send_error;
	/* what was told */
	int settled, notices;
	enum fact_source source;
} w;

/* ---- the rest of main ---- */

struct mono loop_now(const struct loop *l)
{
	(void)l;
	return w.now;
}

int mads_send(struct mads *s, struct worker *worker, struct wm_mad_send *msg, uint64_t tag,
	      mad_done_fn *done, void *user)
{
	(void)s;
	assert_ptr_equal(worker, &w.mad);
	if (w.send_error)
		return w.send_error;
	w.sent = *msg;
	w.tag = tag;
	w.done = done;
	w.user = user;
	w.n_sent++;
	return 0;
}

int mads_get(struct mads *s, struct worker *worker, const char *device, uint8_t port,
	     const struct mad_smp *smp, mad_done_fn *done, void *user)
{
	(void)s;
	(void)worker;
	(void)device;
	(void)port;
	(void)smp;
	(void)done;
	(void)user;
	return -ENOTCONN;
}

void mads_forget(struct mads *s, void *user)
{
	(void)s;
	if (w.user == user)
		w.done = NULL;
}

int port_pkeys_used(const uint16_t *pkeys, int n)
{
	(void)pkeys;
	return n;
}

void port_settle(struct manager *m, struct port_entry *pe, enum fact_source source)
{
	(void)port_derive(&pe->p);
	(void)port_judge(&pe->p, &m->config->health, NULL, w.now);
	w.settled++;
	w.source = source;
}

void monitor_post(struct monitor *m, struct mono at, const char *kind, const char *name,
		  const char *change, const char *from, const char *to, const char *why)
{
	(void)m;
	(void)at;
	(void)from;
	(void)why;
	assert_string_equal(kind, "port");
	assert_string_equal(name, "mlx5_0/1");
	assert_string_equal(change, "notice");
	assert_string_equal(to, "129");
	w.notices++;
}

struct port_entry *device_port(struct device *d, uint8_t num)
{
	return d == &w.device && num == 1 ? &w.pe : NULL;
}

/* ---- the stage ---- */

static int setup(void **state)
{
	(void)state;
	memset(&w, 0, sizeof(w));
	w.now.ns = 1000 * SEC;
	w.config.counters = 30 * SEC;
	w.config.mad_timeout = 200 * NSEC_PER_MSEC;
	w.config.mad_retries = 3;
	port_watch_params_default(&w.config.health);
	w.m.config = &w.config;
	w.m.devices = &w.device;
	w.device.m = &w.m;
	w.device.mad = &w.mad;
	w.device.ports = &w.pe;
	(void)str_copy(w.device.name, sizeof(w.device.name), "mlx5_0");
	w.mad.m = w.rdma.m = &w.m;
	w.mad.saw_hello = true;
	w.pe.device = &w.device;
	w.pe.mad.has_smi = true;
	port_init(&w.pe.p, "mlx5_0", 3, 1, w.now);
	(void)port_set_text(&w.pe.p, PF_LINK_LAYER, "infiniband");
	(void)port_set_u64(&w.pe.p, PF_LID, 8);
	(void)port_set_u64(&w.pe.p, PF_SM_LID, 1);
	(void)port_set_states(&w.pe.p, 4, 5);
	port_counters_init(&w.pe);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	port_done(&w.pe.p);
	return 0;
}

static void answer(enum wm_mad_status status, const uint8_t *data, size_t len)
{
	const struct mad_done done = {
		.tag = w.tag, .status = status, .data = data, .length = len};

	w.done(w.user, &done);
}

/* ClassPortInfo that says which counters there are (IBA 13.4.8.1: CapabilityMask at 2). */
static void answer_class_info(uint16_t cap_mask)
{
	uint8_t data[192] = {1, 1};

	assert_int_equal(w.sent.attr, MAD_ATTR_CLASS_PORT_INFO);
	be16_put(data + 2, cap_mask);
	answer(WM_MAD_OK, data, sizeof(data));
}

static void answer_counters(uint16_t attr, uint64_t errors, uint64_t words)
{
	struct counter_reading r;
	uint8_t data[192];

	assert_int_equal(w.sent.attr, attr);
	assert_int_equal(w.sent.data[1], 1); /* PortSelect */
	counter_reading_init(&r, WHY_NONE);
	r.value[CTR_SYMBOL_ERROR] = errors;
	r.value[CTR_PORT_XMIT_DATA] = words;
	if (attr == MAD_ATTR_PORT_COUNTERS)
		mad_encode_port_counters(&r, 1, data);
	else
		mad_encode_port_counters_ext(&r, 1, data);
	answer(WM_MAD_OK, data, sizeof(data));
}

static struct counter_view view(enum counter c)
{
	struct counter_view v;

	assert_non_null(w.pe.p.watch.counters);
	counters_view(w.pe.p.watch.counters, c, &v);
	return v;
}

static void pass(int64_t ns)
{
	w.now = mono_add(w.now, ns);
	counters_tick(&w.m, w.now);
}

/* ---- tests ---- */

static void asks_what_there_is(void **state)
{
	(void)state;
	counters_tick(&w.m, w.now);
	assert_int_equal(w.n_sent, 1);
	assert_int_equal(w.sent.kind, WM_KIND_PMA);
	assert_int_equal(w.sent.method, MAD_GET);
	assert_int_equal(w.sent.dlid, 8);
	assert_string_equal(w.sent.device, "mlx5_0");
	/* One round at a time. */
	pass(60 * SEC);
	assert_int_equal(w.n_sent, 1);
	answer_class_info(IB_PMA_CAP_EXT_WIDTH);
	answer_counters(MAD_ATTR_PORT_COUNTERS, 5, 100);
	assert_int_equal(w.settled, 0);
	answer_counters(MAD_ATTR_PORT_COUNTERS_EXT, 0, UINT64_C(1) << 40);
	assert_int_equal(w.settled, 1);
	assert_int_equal(w.source, SOURCE_COUNTERS);
	assert_int_equal(view(CTR_SYMBOL_ERROR).raw, 5);
	assert_int_equal(view(CTR_SYMBOL_ERROR).source, COUNTER_PMA);
	assert_true(view(CTR_PORT_XMIT_DATA).raw == UINT64_C(1) << 40);
	assert_int_equal(view(CTR_PORT_XMIT_DATA).source, COUNTER_PMA_EXT);
	/* What there is is asked again only after an hour. */
	pass(30 * SEC);
	answer_counters(MAD_ATTR_PORT_COUNTERS, 8, 100);
	answer_counters(MAD_ATTR_PORT_COUNTERS_EXT, 0, (UINT64_C(1) << 40) + 10);
	assert_int_equal(view(CTR_SYMBOL_ERROR).total, 3);
	assert_int_equal(view(CTR_PORT_XMIT_DATA).total, 40);
	assert_int_equal(w.n_sent, 5);
	pass(3600 * SEC);
	assert_int_equal(w.sent.attr, MAD_ATTR_CLASS_PORT_INFO);
}

static void no_wide_ones_are_asked_of_who_has_none(void **state)
{
	(void)state;
	counters_tick(&w.m, w.now);
	answer_class_info(0);
	answer_counters(MAD_ATTR_PORT_COUNTERS, 1, 2);
	assert_int_equal(w.n_sent, 2);
	assert_int_equal(view(CTR_PORT_XMIT_DATA).source, COUNTER_PMA);
	assert_int_equal(view(CTR_UNICAST_XMIT_PACKETS).why, WHY_NOT_SUPPORTED);
}

static void a_port_that_does_not_answer(void **state)
{
	(void)state;
	counters_tick(&w.m, w.now);
	answer(WM_MAD_TIMEOUT, NULL, 0);
	assert_int_equal(view(CTR_SYMBOL_ERROR).why, WHY_TIMEOUT);
	/* Late, of a round that is over: nothing. */
	answer_class_info(0);
	assert_int_equal(w.n_sent, 1);
	pass(29 * SEC);
	assert_int_equal(w.n_sent, 1);
	pass(1 * SEC);
	answer_class_info(0);
	answer(WM_MAD_OK, (const uint8_t[8]){0}, 8);
	assert_int_equal(view(CTR_SYMBOL_ERROR).why, WHY_BAD_ANSWER);
	w.send_error = -ENOTCONN;
	pass(30 * SEC);
	assert_int_equal(view(CTR_SYMBOL_ERROR).why, WHY_NO_WORKER);
}

/* Another port's counters are nobody's. */
/* What was out is answered as failed: the port is asked again in its turn. */
static void a_worker_is_lost(void **state)
{
	(void)state;
	counters_tick(&w.m, w.now);
	assert_int_equal(w.n_sent, 1);
	w.mad.saw_hello = false;
	port_mads_reset(&w.pe);
	w.pe.mad.has_smi = true;
	assert_non_null(w.done);
	answer(WM_MAD_SEND_FAILED, NULL, 0);
	assert_int_equal(w.pe.counters.pma.why[CTR_SYMBOL_ERROR], WHY_NO_WORKER);
	w.mad.saw_hello = true;
	pass(30 * SEC);
	assert_int_equal(w.n_sent, 2);
}

static void the_wrong_port(void **state)
{
	struct counter_reading r;
	uint8_t data[192];

	(void)state;
	counters_tick(&w.m, w.now);
	answer_class_info(0);
	counter_reading_init(&r, WHY_NONE);
	mad_encode_port_counters(&r, 2, data);
	answer(WM_MAD_OK, data, sizeof(data));
	assert_int_equal(view(CTR_SYMBOL_ERROR).why, WHY_BAD_ANSWER);
}

static void a_link_that_goes_and_comes(void **state)
{
	(void)state;
	counters_tick(&w.m, w.now);
	answer_class_info(0);
	answer_counters(MAD_ATTR_PORT_COUNTERS, 1, 0);
	(void)port_set_states(&w.pe.p, 1, 2);
	pass(SEC);
	assert_int_equal(view(CTR_SYMBOL_ERROR).why, WHY_LINK_DOWN);
	assert_int_equal(w.n_sent, 2);
	pass(300 * SEC);
	assert_int_equal(w.n_sent, 2);
	(void)port_set_states(&w.pe.p, 4, 5);
	pass(SEC);
	answer_counters(MAD_ATTR_PORT_COUNTERS, 4, 0);
	assert_int_equal(view(CTR_SYMBOL_ERROR).why, WHY_NONE);
	assert_int_equal(view(CTR_SYMBOL_ERROR).total, 3);
}

static void who_cannot_be_asked(void **state)
{
	(void)state;
	w.pe.mad.has_smi = false;
	counters_tick(&w.m, w.now);
	assert_int_equal(view(CTR_SYMBOL_ERROR).why, WHY_NO_UMAD);
	w.pe.mad.has_smi = true;
	(void)port_set_u64(&w.pe.p, PF_LID, 0);
	pass(30 * SEC);
	assert_int_equal(view(CTR_SYMBOL_ERROR).why, WHY_OUT_OF_RANGE);
	(void)port_set_missing(&w.pe.p, PF_LID, WHY_TIMEOUT);
	pass(30 * SEC);
	assert_int_equal(view(CTR_SYMBOL_ERROR).why, WHY_TIMEOUT);
	(void)port_set_text(&w.pe.p, PF_LINK_LAYER, "ethernet");
	pass(30 * SEC);
	assert_int_equal(view(CTR_SYMBOL_ERROR).why, WHY_NOT_INFINIBAND);
	assert_int_equal(w.n_sent, 0);
}

static void told_by_the_kernel(struct wm_counters *msg, uint64_t errors, uint64_t cnps)
{
	*msg = (struct wm_counters){.port = 1};
	counter_reading_init(&msg->reading, WHY_NOT_SUPPORTED);
	msg->reading.why[CTR_SYMBOL_ERROR] = msg->reading.why[CTR_NP_CNP_SENT] = WHY_NONE;
	msg->reading.value[CTR_SYMBOL_ERROR] = errors;
	msg->reading.bits[CTR_SYMBOL_ERROR] = 16;
	msg->reading.source[CTR_SYMBOL_ERROR] = COUNTER_SYSFS;
	msg->reading.value[CTR_NP_CNP_SENT] = cnps;
	msg->reading.bits[CTR_NP_CNP_SENT] = 64;
	msg->reading.source[CTR_NP_CNP_SENT] = COUNTER_HW_COUNTERS;
}

static void the_kernel_tells_the_rest(void **state)
{
	struct wm_counters msg;

	(void)state;
	told_by_the_kernel(&msg, 3, 70);
	port_counters_on_message(&w.rdma, &msg); /* of no device of its own */
	assert_null(w.pe.p.watch.counters);
	w.device.rdma = &w.rdma;
	port_counters_on_message(&w.rdma, &msg);
	assert_int_equal(view(CTR_SYMBOL_ERROR).source, COUNTER_SYSFS);
	assert_int_equal(view(CTR_NP_CNP_SENT).raw, 70);
	counters_tick(&w.m, w.now);
	answer_class_info(0);
	answer_counters(MAD_ATTR_PORT_COUNTERS, 9, 0);
	assert_int_equal(view(CTR_SYMBOL_ERROR).source, COUNTER_PMA);
	assert_int_equal(view(CTR_SYMBOL_ERROR).total, 6);
	assert_int_equal(view(CTR_NP_CNP_SENT).source, COUNTER_HW_COUNTERS);
	/* It waits for the PMA's turn then. */
	told_by_the_kernel(&msg, 9, 75);
	port_counters_on_message(&w.rdma, &msg);
	assert_int_equal(view(CTR_NP_CNP_SENT).raw, 70);
	pass(30 * SEC);
	answer_counters(MAD_ATTR_PORT_COUNTERS, 9, 0);
	assert_int_equal(view(CTR_NP_CNP_SENT).raw, 75);
}

static void time_alone_heals(void **state)
{
	struct mono at;

	(void)state;
	w.pe.counters.next = mono_add(w.now, 3600 * SEC);
	port_settle(&w.m, &w.pe, SOURCE_START);
	w.pe.p.watch.notices[0].n = 1;
	w.pe.p.watch.notices[0].last = w.now;
	port_settle(&w.m, &w.pe, SOURCE_NOTICE);
	assert_int_equal(w.pe.p.health, HEALTH_DEGRADED);
	while (w.pe.p.health == HEALTH_DEGRADED) {
		at = port_judge_at(&w.pe.p, &w.config.health);
		assert_true(mono_is_set(at));
		pass(mono_sub(at, w.now));
		assert_int_equal(w.source, SOURCE_TIME);
	}
	assert_int_equal(w.pe.p.health, HEALTH_OK);
}

static struct wm_notice notice_of(uint16_t issuer, uint16_t lid, uint8_t port, uint16_t slid)
{
	struct notice n = {.is_generic = 1, .type = 1, .producer = NODE_CA, .trap = 129,
			   .issuer_lid = issuer};
	struct wm_notice msg = {.port = 1, .slid = slid};

	be16_put(&n.details[2], lid);
	n.details[4] = port;
	(void)str_copy(msg.device, sizeof(msg.device), "mlx5_0");
	mad_encode_notice(&n, msg.data);
	return msg;
}

static void an_accusation(void **state)
{
	/* clang-format off */
	static const struct {
		uint16_t issuer, lid, slid;
		uint8_t port;
		bool counts;
	} rows[] = {
		{ 9, 8, 1, 1, false }, /* somebody else about us */
		{ 8, 9, 1, 1, false }, /* we about somebody else */
		{ 8, 8, 1, 2, false }, /* another port */
		{ 8, 8, 7, 1, false }, /* not by the subnet manager */
		{ 8, 8, 1, 1, true },
	};
	/* clang-format on */

	(void)state;
	port_settle(&w.m, &w.pe, SOURCE_START);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct wm_notice msg = notice_of(rows[i].issuer, rows[i].lid, rows[i].port,
						 rows[i].slid);

		ports_on_notice(&w.mad, &msg);
		assert_int_equal(w.notices, rows[i].counts);
		assert_int_equal(w.pe.p.health,
				 rows[i].counts ? HEALTH_DEGRADED : HEALTH_OK);
	}
	assert_int_equal(w.source, SOURCE_NOTICE);
}

static void pcie_of_a_device(void **state)
{
	struct device_facts *f = &w.device.facts;
	struct port_pcie p;

	(void)state;
	field_all_missing(&device_table, f, WHY_NOT_SUPPORTED);
	device_pcie(&w.device, &p);
	assert_true(!p.width && !p.width_max && !p.speed_mts && !p.speed_max_mts);
	(void)field_set_u64(&device_table, f, DF_PCIE_WIDTH, 8);
	(void)field_set_u64(&device_table, f, DF_PCIE_WIDTH_MAX, 16);
	(void)field_set_text(&device_table, f, DF_PCIE_SPEED, "2.5 GT/s PCIe");
	(void)field_set_text(&device_table, f, DF_PCIE_SPEED_MAX, "Unknown");
	device_pcie(&w.device, &p);
	assert_int_equal(p.width, 8);
	assert_int_equal(p.width_max, 16);
	assert_int_equal(p.speed_mts, 2500);
	assert_int_equal(p.speed_max_mts, 0);
	(void)field_set_u64(&device_table, f, DF_IS_VF, 1);
	device_pcie(&w.device, &p);
	assert_int_equal(p.width, 0);
}

#define TEST(t) cmocka_unit_test_setup_teardown(t, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(asks_what_there_is),
		TEST(no_wide_ones_are_asked_of_who_has_none),
		TEST(a_port_that_does_not_answer),
		TEST(a_worker_is_lost),
		TEST(the_wrong_port),
		TEST(a_link_that_goes_and_comes),
		TEST(who_cannot_be_asked),
		TEST(the_kernel_tells_the_rest),
		TEST(time_alone_heals),
		TEST(an_accusation),
		TEST(pcie_of_a_device),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
