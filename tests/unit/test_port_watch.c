/* SPDX-License-Identifier: BSD-2-Clause */
/* What is remembered of a port, and how its health follows from that. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "port.h"

#define SEC NSEC_PER_SEC
#define MINUTE (60 * SEC)

static struct port_watch_params params;

static struct mono at(int64_t ns)
{
	return (struct mono){SEC + ns};
}

static struct port_info info_active(void)
{
	return (struct port_info){
		.lid = 8, .sm_lid = 1, .cap_mask = 0x4000, .width_enabled = 3,
		.width_supported = 3, .width_active = 2, .speed_supported = 7,
		.speed_enabled = 7, .speed_active = 4, .ext_supported = 3,
		.ext_enabled = 3, .ext_active = 2, .state = 4, .phys_state = 5,
		.neighbor_mtu = 5, .mtu_cap = 5, .vl_cap = 4, .op_vls = 4};
}

static struct node_info far_node(uint64_t guid, uint8_t port)
{
	return (struct node_info){.node_type = NODE_SWITCH, .num_ports = 36,
				  .node_guid = guid, .port_guid = guid,
				  .local_port = port};
}

static bool judge(struct port *p, struct mono now)
{
	(void)port_derive(p);
	return port_judge(p, &params, NULL, now);
}

/* A port that is well since @at(0), with leaf07/22 across the wire. */
static void port_up(struct port *p)
{
	struct port_info pi = info_active();
	struct node_info ni = far_node(0x1234, 22);

	port_watch_params_default(&params);
	port_init(p, "mlx5_0", 3, 1, at(0));
	(void)port_set_text(p, PF_LINK_LAYER, "infiniband");
	(void)port_set_u64(p, PF_PORT_GUID, 0x77);
	(void)port_apply_info(p, &pi);
	(void)port_apply_remote(p, &ni, "leaf07", &pi, WHY_NONE);
	(void)judge(p, at(0));
	assert_int_equal(p->health, HEALTH_OK);
}

static void errors(struct port *p, uint64_t value, struct mono now)
{
	struct counter_reading r;

	counter_reading_init(&r, WHY_NOT_SUPPORTED);
	r.why[CTR_SYMBOL_ERROR] = WHY_NONE;
	r.bits[CTR_SYMBOL_ERROR] = 16;
	r.value[CTR_SYMBOL_ERROR] = value;
	if (!p->watch.counters)
		p->watch.counters = counters_new();
	counters_read(p->watch.counters, &r, now);
}

static bool has(const struct port *p, enum reason_code code)
{
	for (int i = 0; i < p->watch.n_reasons; i++)
		if (p->watch.reasons[i].code == code)
			return true;
	return false;
}

static void flap(struct port *p, struct mono now)
{
	(void)port_set_states(p, 1, 2);
	(void)judge(p, now);
	(void)port_set_states(p, 4, 5);
	(void)judge(p, mono_add(now, 1));
}

static void reasons_have_names(void **state)
{
	(void)state;
	assert_int_equal(reason_names.n, REASON__MAX);
	for (int i = 0; i < REASON__MAX; i++)
		assert_int_equal(enum_find(&reason_names, enum_name(&reason_names, i)), i);
}

static void a_relinked_port_is_ok_at_once(void **state)
{
	struct port p;

	(void)state;
	port_up(&p);
	(void)port_set_states(&p, 1, 2);
	assert_true(judge(&p, at(SEC)));
	assert_int_equal(p.health, HEALTH_BAD);
	assert_int_equal(p.watch.reasons[0].code, REASON_LINK);
	assert_false(mono_is_set(p.watch.well_since));
	(void)port_set_states(&p, 4, 5);
	assert_true(judge(&p, at(2 * SEC)));
	assert_int_equal(p.health, HEALTH_OK);
	assert_int_equal(p.watch.n_reasons, 0);
	assert_int_equal(p.watch.flap.count, 1);
	assert_false(mono_is_set(port_judge_at(&p, &params)));
	assert_true(p.watch.well_since.ns == at(2 * SEC).ns);
	port_done(&p);
}

/* Down since before fabd began: a fault if it once was well, else a port without a cable. */
static void down_from_the_start(void **state)
{
	struct port p;

	(void)state;
	port_watch_params_default(&params);
	for (int before = 0; before < 2; before++) {
		port_init(&p, "mlx5_0", 3, 1, at(0));
		if (before)
			port_was_well_before(&p);
		(void)port_set_states(&p, 1, 2);
		(void)judge(&p, at(SEC));
		assert_int_equal(p.health, before ? HEALTH_BAD : HEALTH_UNUSED);
		assert_int_equal(p.watch.reasons[0].code,
				 before ? REASON_LINK : REASON_NOT_EXPECTED);
		assert_int_equal(p.watch.flap.count, 0);
		port_done(&p);
	}
}

static void a_counter_over_its_limit(void **state)
{
	struct port p;
	struct mono release;
	int64_t t;

	(void)state;
	port_up(&p);
	params.limits.limit[CTR_SYMBOL_ERROR] = 10;
	params.limits.sec[CTR_SYMBOL_ERROR] = 60;
	errors(&p, 0, at(0));
	errors(&p, 10, at(10 * SEC));
	assert_false(judge(&p, at(10 * SEC)));
	errors(&p, 30, at(20 * SEC));
	p.dirty = false;
	assert_true(judge(&p, at(20 * SEC)));
	assert_int_equal(p.health, HEALTH_DEGRADED);
	assert_string_equal(p.health_why, "symbol_error 30, limit 10/m");
	assert_int_equal(p.watch.reasons[0].code, REASON_COUNTER);
	assert_true(p.watch.reasons[0].value == 30 && p.watch.reasons[0].limit == 10);
	assert_true(p.watch.reasons[0].since.ns == at(20 * SEC).ns);
	assert_true(p.dirty);
	/* More of the same is no news, but the number is the present one. */
	p.dirty = false;
	errors(&p, 31, at(30 * SEC));
	assert_false(judge(&p, at(30 * SEC)));
	assert_false(p.dirty);
	assert_string_equal(p.health_why, "symbol_error 31, limit 10/m");
	assert_true(p.watch.reasons[0].since.ns == at(20 * SEC).ns);
	/* The window empties; then it settles; then it is well by itself. */
	for (t = 40; has(&p, REASON_COUNTER); t += 10) {
		errors(&p, 31, at(t * SEC));
		assert_false(judge(&p, at(t * SEC)));
		assert_true(t < 100);
	}
	assert_string_equal(p.health_why, "settling for 30 s");
	assert_int_equal(p.watch.reasons[0].code, REASON_SETTLING);
	release = port_judge_at(&p, &params);
	assert_true(release.ns == at((t - 10) * SEC).ns + params.stable);
	assert_false(judge(&p, mono_add(release, -1)));
	assert_int_equal(p.health, HEALTH_DEGRADED);
	assert_true(judge(&p, release));
	assert_int_equal(p.health, HEALTH_OK);
	assert_false(mono_is_set(port_judge_at(&p, &params)));
	port_done(&p);
}

static void settling_outlives_a_relink(void **state)
{
	struct port p;

	(void)state;
	port_up(&p);
	errors(&p, 0, at(0));
	errors(&p, 1000, at(SEC));
	(void)judge(&p, at(SEC));
	assert_int_equal(p.health, HEALTH_DEGRADED);
	params.limits.limit[CTR_SYMBOL_ERROR] = 0;
	flap(&p, at(2 * SEC));
	assert_int_equal(p.health, HEALTH_DEGRADED);
	assert_true(has(&p, REASON_SETTLING));
	assert_true(judge(&p, at(2 * SEC + 30 * SEC)));
	assert_int_equal(p.health, HEALTH_OK);
	port_done(&p);
}

static void flapping_is_damped(void **state)
{
	struct port p;
	struct mono release;

	(void)state;
	port_up(&p);
	flap(&p, at(10 * SEC));
	flap(&p, at(20 * SEC));
	assert_int_equal(p.health, HEALTH_OK);
	flap(&p, at(30 * SEC));
	assert_int_equal(p.health, HEALTH_DEGRADED);
	assert_int_equal(p.watch.reasons[0].code, REASON_FLAP);
	assert_int_equal(p.watch.flap.count, 3);
	assert_true(p.watch.reasons[0].limit == params.flap.reuse);
	/* Down it is the link that is told, up again the flapping. */
	(void)port_set_states(&p, 1, 2);
	(void)judge(&p, at(40 * SEC));
	assert_int_equal(p.health, HEALTH_BAD);
	assert_string_equal(p.health_why, "link DOWN POLLING");
	assert_int_equal(p.watch.n_reasons, 2);
	(void)port_set_states(&p, 4, 5);
	(void)judge(&p, at(50 * SEC));
	assert_int_equal(p.health, HEALTH_DEGRADED);
	release = port_judge_at(&p, &params);
	assert_true(release.ns > at(20 * MINUTE).ns);
	assert_false(judge(&p, release));
	assert_true(has(&p, REASON_SETTLING));
	assert_true(judge(&p, port_judge_at(&p, &params)));
	assert_int_equal(p.health, HEALTH_OK);
	port_done(&p);
}

/* What was never up, what nobody knows, and a start in Down are no flaps. */
static void no_flaps(void **state)
{
	struct port p;

	(void)state;
	port_watch_params_default(&params);
	port_init(&p, "mlx5_0", 3, 1, at(0));
	(void)port_set_states(&p, 1, 2);
	(void)judge(&p, at(1));
	(void)port_set_states(&p, 2, 5);
	(void)judge(&p, at(2));
	(void)port_set_states(&p, 4, 5);
	(void)judge(&p, at(3));
	assert_int_equal(p.watch.flap.count, 0);
	(void)port_set_missing(&p, PF_STATE, WHY_NO_WORKER);
	(void)judge(&p, at(4));
	(void)port_set_states(&p, 4, 5);
	(void)judge(&p, at(5));
	assert_int_equal(p.watch.flap.count, 0);
	/* Down, unknown, down: once. */
	(void)port_set_states(&p, 1, 2);
	(void)judge(&p, at(6));
	(void)port_set_missing(&p, PF_STATE, WHY_NO_WORKER);
	(void)judge(&p, at(7));
	(void)port_set_states(&p, 1, 2);
	(void)judge(&p, at(8));
	assert_int_equal(p.watch.flap.count, 1);
	port_done(&p);
}

static void below_what_it_had(void **state)
{
	struct port_info own = info_active(), far = info_active();
	struct node_info same = far_node(0x1234, 22), other = far_node(0x1234, 23);
	struct port p;

	(void)state;
	port_up(&p);
	assert_int_equal(p.watch.baseline.lanes, 4);
	assert_int_equal(p.watch.baseline.speed_mbps, 25000);
	assert_true(p.watch.baseline.remote_guid == 0x1234);
	assert_int_equal(p.watch.baseline.remote_port, 22);
	assert_true(p.watch.baseline_changed);
	p.watch.baseline_changed = false;
	/* The far end no longer claims what it had: both ends do what they say they can. */
	own.width_active = far.width_active = 1;
	far.width_supported = far.width_enabled = 1;
	own.ext_active = far.ext_active = far.ext_supported = far.ext_enabled = 1;
	(void)port_apply_info(&p, &own);
	(void)port_apply_remote(&p, &same, "leaf07", &far, WHY_NONE);
	assert_true(judge(&p, at(SEC)));
	assert_int_equal(p.health, HEALTH_DEGRADED);
	assert_string_equal(p.health_why, "width 1x, was 4x, lane 14G, was 25G");
	assert_int_equal(p.watch.reasons[0].code, REASON_BASELINE);
	assert_true(p.watch.reasons[0].value == 1 && p.watch.reasons[0].limit == 4);
	assert_false(p.watch.baseline_changed);
	/* While the far end is not known nothing is compared, and nothing forgotten. */
	(void)port_apply_remote(&p, NULL, NULL, NULL, WHY_TIMEOUT);
	assert_true(judge(&p, at(2 * SEC)));
	assert_int_equal(p.health, HEALTH_OK);
	assert_int_equal(p.watch.baseline.lanes, 4);
	/* Another port: anew. */
	(void)port_apply_remote(&p, &other, "leaf07", &far, WHY_NONE);
	(void)judge(&p, at(3 * SEC));
	assert_int_equal(p.health, HEALTH_OK);
	assert_int_equal(p.watch.baseline.lanes, 1);
	assert_int_equal(p.watch.baseline.speed_mbps, 14000);
	assert_int_equal(p.watch.baseline.remote_port, 23);
	assert_true(p.watch.baseline_changed);
	port_done(&p);
}

static void switched_off_is_not_lost(void **state)
{
	struct port_info own = info_active(), far = info_active();
	struct node_info ni = far_node(0x1234, 22);
	struct port p;

	(void)state;
	port_up(&p);
	own.width_active = far.width_active = far.width_enabled = 1;
	(void)port_apply_info(&p, &own);
	(void)port_apply_remote(&p, &ni, "leaf07", &far, WHY_NONE);
	assert_false(judge(&p, at(SEC)));
	assert_int_equal(p.health, HEALTH_OK);
	assert_int_equal(p.watch.baseline.lanes, 4);
	port_done(&p);
}

/* 30 is no set of speeds: extended ones are disabled (IBA 14.2.5.6). */
static void extended_speeds_disabled(void **state)
{
	struct port_info own = info_active(), far = info_active();
	struct node_info ni = far_node(0x1234, 22);
	struct port p;

	(void)state;
	port_up(&p);
	own.ext_enabled = far.ext_enabled = 30;
	own.ext_active = far.ext_active = 0;
	(void)port_apply_info(&p, &own);
	(void)port_apply_remote(&p, &ni, "leaf07", &far, WHY_NONE);
	assert_false(judge(&p, at(SEC)));
	assert_int_equal(p.health, HEALTH_OK);
	port_done(&p);
}

/* Learnt before the far end is known: holds for the one that comes. A saved one that is
 * another's does not. */
static void the_far_end_comes_later(void **state)
{
	struct port_info pi = info_active();
	struct node_info ni = far_node(0x1234, 22);
	struct port p;

	(void)state;
	for (int saved = 0; saved < 2; saved++) {
		port_watch_params_default(&params);
		port_init(&p, "mlx5_0", 3, 1, at(0));
		if (saved)
			p.watch.baseline = (struct port_baseline){
				.lanes = 12, .speed_mbps = 50000, .remote_guid = 9,
				.remote_port = 1};
		(void)port_apply_info(&p, &pi);
		(void)judge(&p, at(1));
		assert_int_equal(p.health, HEALTH_OK);
		(void)port_apply_remote(&p, &ni, "leaf07", &pi, WHY_NONE);
		(void)judge(&p, at(2));
		assert_int_equal(p.health, HEALTH_OK);
		assert_int_equal(p.watch.baseline.lanes, 4);
		assert_true(p.watch.baseline.remote_guid == 0x1234);
		port_done(&p);
	}
}

static void ethernet_has_a_baseline(void **state)
{
	struct port p;

	(void)state;
	port_watch_params_default(&params);
	port_init(&p, "mlx5_0", 3, 1, at(0));
	(void)port_set_states(&p, 4, 5);
	(void)port_set_text(&p, PF_WIDTH_ACTIVE, "4x");
	(void)port_set_text(&p, PF_SPEED_ACTIVE, "EDR");
	(void)port_apply_remote(&p, NULL, NULL, NULL, WHY_NOT_INFINIBAND);
	(void)judge(&p, at(1));
	assert_int_equal(p.health, HEALTH_OK);
	(void)port_set_text(&p, PF_WIDTH_ACTIVE, "1x");
	(void)judge(&p, at(2));
	assert_int_equal(p.health, HEALTH_DEGRADED);
	assert_string_equal(p.health_why, "width 1x, was 4x");
	(void)port_set_text(&p, PF_WIDTH_ACTIVE, "4x");
	(void)judge(&p, at(3));
	assert_int_equal(p.health, HEALTH_OK);
	port_done(&p);
}

static void pcie_below_its_maximum(void **state)
{
	static const struct port_pcie whole = {16, 16, 16000, 16000}, unknown,
				      half = {8, 16, 8000, 16000}, narrow = {8, 16, 0, 0};
	struct port p;

	(void)state;
	port_up(&p);
	assert_false(port_judge(&p, &params, &whole, at(1)));
	assert_false(port_judge(&p, &params, &unknown, at(1)));
	assert_true(port_judge(&p, &params, &half, at(2)));
	assert_int_equal(p.health, HEALTH_DEGRADED);
	assert_string_equal(p.health_why, "PCIe x8 of x16, PCIe 8 of 16 GT/s");
	(void)port_judge(&p, &params, &narrow, at(2));
	assert_string_equal(p.health_why, "PCIe x8 of x16");
	assert_int_equal(p.watch.reasons[0].code, REASON_PCIE);
	assert_true(port_judge(&p, &params, &whole, at(3)));
	port_done(&p);
}

static struct notice notice_of(uint16_t trap, uint16_t issuer, uint16_t lid, uint8_t port)
{
	struct notice n = {.is_generic = 1, .trap = trap, .issuer_lid = issuer};

	be16_put(&n.details[2], lid);
	n.details[4] = port;
	return n;
}

static void only_the_owner_may_accuse(void **state)
{
	/* clang-format off */
	static const struct {
		uint16_t trap, issuer, lid;
		uint8_t port, generic;
		int want;
	} rows[] = {
		{ 129, 8, 8, 1, 1, 0 },
		{ 130, 8, 8, 1, 1, 0 },
		{ 131, 8, 8, 1, 1, 0 },
		{ 129, 9, 8, 1, 1, -EPERM }, /* somebody else accuses */
		{ 129, 8, 9, 1, 1, -EPERM }, /* is about another */
		{ 129, 8, 8, 2, 1, -EPERM },
		{ 129, 0, 0, 1, 1, -EPERM },
		{ 128, 8, 8, 1, 1, -EINVAL },
		{ 132, 8, 8, 1, 1, -EINVAL },
		{ 0, 8, 8, 1, 1, -EINVAL },
		{ 129, 8, 8, 1, 0, -EINVAL }, /* a vendor's own 129 */
	};
	/* clang-format on */

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct notice n = notice_of(rows[i].trap, rows[i].issuer, rows[i].lid,
					    rows[i].port);
		struct port p;

		port_up(&p);
		n.is_generic = rows[i].generic;
		assert_int_equal(port_watch_notice(&p.watch, &n, 8, 1, at(SEC)), rows[i].want);
		assert_int_equal(judge(&p, at(SEC)), rows[i].want == 0);
		assert_int_equal(p.health, rows[i].want ? HEALTH_OK : HEALTH_DEGRADED);
		port_done(&p);
	}
	/* A port without a LID has no owner. */
	assert_int_equal(port_watch_notice(&(struct port_watch){0},
					   &(struct notice){.is_generic = 1, .trap = 129}, 0,
					   0, at(0)),
			 -EPERM);
}

static void notices_age(void **state)
{
	struct notice n = notice_of(130, 8, 8, 1);
	struct port p;

	(void)state;
	port_up(&p);
	assert_int_equal(port_watch_notice(&p.watch, &n, 8, 1, at(SEC)), 0);
	assert_int_equal(port_watch_notice(&p.watch, &n, 8, 1, at(MINUTE)), 0);
	assert_true(judge(&p, at(MINUTE)));
	assert_string_equal(p.health_why, "notice 130 (excessive buffer overrun) 2 times");
	assert_true(p.watch.reasons[0].since.ns == at(SEC).ns);
	assert_true(port_judge_at(&p, &params).ns == at(11 * MINUTE).ns);
	assert_false(judge(&p, at(11 * MINUTE)));
	assert_true(has(&p, REASON_SETTLING));
	assert_true(judge(&p, port_judge_at(&p, &params)));
	assert_int_equal(p.health, HEALTH_OK);
	port_done(&p);
}

static void the_operator_has_the_word(void **state)
{
	struct port p;

	(void)state;
	port_up(&p);
	errors(&p, 0, at(0));
	errors(&p, 5000, at(SEC));
	p.override = OVERRIDE_OK;
	(void)str_copy(p.override_by, sizeof(p.override_by), "alice");
	(void)judge(&p, at(SEC));
	assert_int_equal(p.health, HEALTH_OK);
	assert_string_equal(p.health_why, "set ok by alice");
	/* What is the matter is told all the same. */
	assert_int_equal(p.watch.n_reasons, 2);
	assert_int_equal(p.watch.reasons[0].code, REASON_OVERRIDE);
	assert_int_equal(p.watch.reasons[1].code, REASON_COUNTER);
	p.override = OVERRIDE_AUTO;
	(void)judge(&p, at(2 * SEC));
	assert_int_equal(p.health, HEALTH_DEGRADED);
	port_done(&p);
}

static void reasons_do_not_overflow(void **state)
{
	struct counter_reading r;
	struct port p;

	(void)state;
	port_up(&p);
	p.watch.counters = counters_new();
	for (unsigned round = 0; round < 2; round++) {
		counter_reading_init(&r, WHY_NONE);
		for (int i = 0; i < CTR__MAX; i++) {
			r.bits[i] = 64;
			r.value[i] = 100000 * round;
		}
		counters_read(p.watch.counters, &r, at((int64_t)round * SEC));
	}
	(void)judge(&p, at(SEC));
	assert_int_equal(p.watch.n_reasons, PORT_REASONS_MAX);
	assert_int_equal(p.health, HEALTH_DEGRADED);
	assert_int_equal(strlen(p.health_why), sizeof(p.health_why) - 1);
	port_done(&p);
}

static void the_last_transitions_are_kept(void **state)
{
	const struct port_transition *t;
	struct port p;
	int n;

	(void)state;
	port_up(&p);
	assert_int_equal(p.watch.n_history, 1);
	t = port_watch_transition(&p.watch, 0);
	assert_int_equal(t->from, HEALTH_UNKNOWN);
	assert_int_equal(t->to, HEALTH_OK);
	p.source = SOURCE_NETLINK;
	params.flap.suppress = 0;
	for (int i = 1; i <= 30; i++)
		flap(&p, at(i * SEC));
	n = p.watch.n_history;
	assert_int_equal(n, 61);
	assert_null(port_watch_transition(&p.watch, n));
	assert_null(port_watch_transition(&p.watch, n - PORT_HISTORY_MAX - 1));
	assert_null(port_watch_transition(&p.watch, -1));
	assert_non_null(port_watch_transition(&p.watch, n - PORT_HISTORY_MAX));
	t = port_watch_transition(&p.watch, n - 2);
	assert_int_equal(t->from, HEALTH_OK);
	assert_int_equal(t->to, HEALTH_BAD);
	assert_int_equal(t->source, SOURCE_NETLINK);
	assert_string_equal(t->why, "link DOWN POLLING");
	assert_true(t->at.ns == at(30 * SEC).ns);
	port_done(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reasons_have_names),
		cmocka_unit_test(a_relinked_port_is_ok_at_once),
		cmocka_unit_test(down_from_the_start),
		cmocka_unit_test(a_counter_over_its_limit),
		cmocka_unit_test(settling_outlives_a_relink),
		cmocka_unit_test(flapping_is_damped),
		cmocka_unit_test(no_flaps),
		cmocka_unit_test(below_what_it_had),
		cmocka_unit_test(switched_off_is_not_lost),
		cmocka_unit_test(extended_speeds_disabled),
		cmocka_unit_test(the_far_end_comes_later),
		cmocka_unit_test(ethernet_has_a_baseline),
		cmocka_unit_test(pcie_below_its_maximum),
		cmocka_unit_test(only_the_owner_may_accuse),
		cmocka_unit_test(notices_age),
		cmocka_unit_test(the_operator_has_the_word),
		cmocka_unit_test(reasons_do_not_overflow),
		cmocka_unit_test(the_last_transitions_are_kept),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
