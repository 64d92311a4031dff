/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#include "held.h"
#include "verdict.h"

#define HOUR (3600 * NSEC_PER_SEC)

/* A host that is well and a peer of which nothing is known. */
#define BASE .host_up_ns = HOUR, .port_known = true, .others = 100, .others_down = 1
/* It was connected and went silent. */
#define LOST BASE, .ever_connected = true, .late = true
#define UP BASE, .connected = true, .ever_connected = true, .ctl_answers = true

/* The cases are the base with some fields changed. */
#pragma GCC diagnostic ignored "-Woverride-init"

/* clang-format off */
/* Each row of the table in its order, with what the operator reads. */
static const struct {
	struct verdict_facts f;
	enum verdict want;
	const char *why;
} cases[] = {
	{ { UP, .silenced = true }, VERDICT_SILENCED, "a silence is set" },
	{ { LOST, .held = true, .held_by = "local-port mlx5_3/1" }, VERDICT_HELD, "local-port mlx5_3/1" },
	{ { BASE, .host_up_ns = 12 * NSEC_PER_SEC, .ctl_silent = true },
	  VERDICT_UNKNOWN, "this host is up for 12 s only" },
	{ { LOST, .port_down = true, .port_why = "mlx5_3/1 DOWN" }, VERDICT_LOCAL_PORT, "mlx5_3/1 DOWN" },
	{ { LOST, .error = EPERR_LOCAL, .error_status = -12 }, VERDICT_LOCAL_PORT, "local: Cannot allocate memory" },
	{ { LOST, .local_stall = true, .stall_ns = 4 * NSEC_PER_SEC },
	  VERDICT_LOCAL_STALL, "fabd on this host stood still for 4000 ms" },
	{ { LOST, .device_stuck = true }, VERDICT_DEVICE_STUCK, "the device worker cannot be killed" },
	{ { LOST, .error = EPERR_WORKER_DIED }, VERDICT_LOCAL_STALL,
	  "the device worker died and is started again" },
	{ { BASE, .port_known = false }, VERDICT_NO_ROUTE, "no device owns the source address" },
	{ { LOST, .error = EPERR_NO_ROUTE }, VERDICT_NO_ROUTE, "no route to the peer" },
	{ { LOST, .is_rdma = true, .sm_mute = true, .error = EPERR_NO_PATH }, VERDICT_NO_SM,
	  "no subnet manager, or its SA does not answer" },
	{ { LOST, .is_rdma = true, .error = EPERR_NO_PATH }, VERDICT_NO_ROUTE,
	  "the subnet manager knows no path to the peer" },
	{ { LOST, .stopped = true, .stop_cause = CAUSE_RESTART, .stop_left_ns = 30500000000 },
	  VERDICT_PEER_STOPPED, "stopped on purpose (restart), back within 31 s" },
	{ { LOST, .stopped = true, .stop_cause = CAUSE_CONFIG }, VERDICT_REFUSED,
	  "the peer dropped this host from its config" },
	{ { LOST, .told_port = TOLD_PORT_DOWN, .peer_port = "mlx5_2/1" }, VERDICT_REMOTE_PORT,
	  "the peer says its port is down: mlx5_2/1" },
	{ { LOST, .is_rdma = true, .told_device = TOLD_DEVICE_STUCK, .udp_ok = true, .peer_node = "gpu0033",
	    .peer_port = "mlx5_2/1" },
	  VERDICT_RDMA_BROKEN, "remote: gpu0033 reports mlx5_2 device-stuck" },
	{ { LOST, .is_rdma = true, .told_device = TOLD_DEVICE_REPLACED, .udp_ok = true,
	    .error = EPERR_DISCONNECTED },
	  VERDICT_REMOTE_STALL, "remote: the peer reports its device: its worker is being replaced" },
	{ { LOST, .told_late_ns = 412 * NSEC_PER_MSEC }, VERDICT_REMOTE_STALL,
	  "the peer says its loop was late by 412 ms" },
	{ { BASE, .ctl_silent = true, .auth_failed = true, .neighbour_ok = true }, VERDICT_AUTH_FAILED,
	  "packets of the peer fail authentication: other key" },
	{ { BASE, .ctl_answers = true, .refusal = REFUSE_VERSION }, VERDICT_INCOMPATIBLE,
	  "no protocol version in common" },
	{ { BASE, .ctl_answers = true, .refusal = REFUSE_TRANSPORT }, VERDICT_INCOMPATIBLE,
	  "the peer refuses: transport" },
	{ { BASE, .ctl_answers = true, .refusal = REFUSE_LIMIT }, VERDICT_REFUSED, "the peer refuses: limit" },
	{ { BASE, .is_rdma = true, .error = EPERR_LIMIT, .udp_ok = true }, VERDICT_REFUSED,
	  "limit of connections per device reached on this host" },
	{ { LOST, .unknown_to_peer = true, .ctl_silent = true, .neighbour_ok = true,
	    .error = EPERR_PORT_UNREACHABLE },
	  VERDICT_REFUSED, "the host answers, nobody listens there" },
	{ { LOST, .is_rdma = true, .udp_ok = true, .error = EPERR_CM_TIMEOUT, .pkey_mismatch = true,
	    .own_pkey = 0x8001, .peer_pkey = 0x8002 },
	  VERDICT_RDMA_BROKEN, "P_Key 0x8001 here, 0x8002 there: no partition in common" },
	{ { LOST, .is_rdma = true, .udp_ok = true, .flow = 2, .flows = 4, .flows_well = 3 },
	  VERDICT_NETWORK, "flow 2 does not pass, 3 of 4 flows do: one path of several" },
	{ { LOST, .ctl_answers = true, .large_lost = 4, .large_size = 4096, .mtu_mismatch = true,
	    .own_mtu = 4096, .peer_mtu = 1500 },
	  VERDICT_NETWORK, "messages of 4096 bytes do not pass (4 lost in a row), small ones do; "
	  "MTU 4096 here, 1500 there" },
	{ { LOST, .is_rdma = true, .udp_ok = true, .error = EPERR_CM_REFUSED,
	    .error_stage = STAGE_CONNECT, .error_status = 8 },
	  VERDICT_RDMA_BROKEN, "udp works, RDMA does not: cm-refused at connect, status 8" },
	{ { UP, .ctl_answers = false, .ctl_silent = true }, VERDICT_CONTROL_BLOCKED,
	  "the fabric works, control packets (UDP) get no answer" },
	{ { LOST, .ctl_answers = true }, VERDICT_NETWORK, "the peer answers, probes do not pass" },
	{ { LOST, .ctl_silent = true, .neighbour_ok = true }, VERDICT_REMOTE_STALL,
	  "the host answers (neighbour), its fabd does not: frozen" },
	{ { LOST, .others = 127, .others_down = 15 }, VERDICT_NETWORK,
	  "nothing answers from this and 15 of 127 other hosts of the rail" },
	{ { LOST, .host_ok = true }, VERDICT_NETWORK, "the host answers on another rail, not on this one" },
	{ { BASE, .ctl_silent = true, .neighbour_ok = true, .or_not_in_config = true }, VERDICT_PEER_DOWN,
	  "the host is there, no fabd answers, or this host is not in its config" },
	{ { LOST, .others = 0, .others_down = 0 }, VERDICT_PEER_DOWN,
	  "nothing answers; sole peer of the rail: cannot tell host from network" },
	{ { LOST }, VERDICT_PEER_DOWN, "nothing answers, 99 of 100 other hosts do" },
	{ { UP, .large_lost = 3, .large_size = 9000, .loss_permille = 100 }, VERDICT_NETWORK,
	  "messages of 9000 bytes do not pass (3 lost in a row), small ones do" },
	{ { UP, .loss_permille = 125 }, VERDICT_NETWORK, "12.5 % lost in 60 s" },
	{ { UP, .damped = true, .flaps = 3, .flap_penalty = 2711.6, .damped_left_ns = 27 * 60 * NSEC_PER_SEC + 1 },
	  VERDICT_DEGRADED, "lost 3 times, penalty 2712; well again, damped for 28 min" },
	{ { UP, .loss_permille = 7 }, VERDICT_DEGRADED, "0.7 % lost in 60 s" },
	{ { UP, .rtt_p99_ns = 131 * NSEC_PER_MSEC }, VERDICT_DEGRADED, "slow: p99 131.0 ms" },
	{ { UP, .rtt_p99_ns = 231000, .usual_p99_ns = 71000, .slower = true }, VERDICT_DEGRADED,
	  "slower than usual: p99 0.231 ms, was 0.071 ms" },
	{ { UP, .mtu_mismatch = true, .own_mtu = 4096, .peer_mtu = 2048 }, VERDICT_DEGRADED,
	  "MTU 4096 here, 2048 there: large messages will be lost" },
	{ { UP, .pkey_mismatch = true, .own_pkey = 0x7fff, .peer_pkey = 0x7fff }, VERDICT_DEGRADED,
	  "P_Key 0x7fff here, 0x7fff there" },
	{ { UP, .rtt_p99_ns = 71000 }, VERDICT_OK, "connected" },
	{ { BASE, .ctl_answers = true }, VERDICT_UNKNOWN, "being connected" },
};

/* Other ways into the rows, and what takes precedence over what. */
static const struct {
	struct verdict_facts f;
	enum verdict want;
	const char *why;
} more[] = {
	{ { UP, .host_up_ns = NSEC_PER_SEC }, VERDICT_OK, "connected" },
	{ { LOST, .held = true }, VERDICT_HELD, "explained by another fault" },
	/* what goes over IP alone needs no RDMA device there */
	{ { LOST, .told_device = TOLD_DEVICE_STUCK, .ctl_answers = true }, VERDICT_NETWORK,
	  "the peer answers, probes do not pass" },
	{ { LOST, .told_port = TOLD_PORT_DOWN, .peer_port = "-" }, VERDICT_REMOTE_PORT,
	  "the peer says its port is down" },
	{ { LOST, .local_stall = true, .stall_ns = 700 * NSEC_PER_MSEC, .stall_who = "the worker of mlx5_3" },
	  VERDICT_LOCAL_STALL, "the worker of mlx5_3 stood still for 700 ms" },
	/* the adapter there acknowledges, whoever is to echo does not */
	{ { LOST, .is_rdma = true, .send_acked = true, .ctl_silent = true }, VERDICT_REMOTE_STALL,
	  "the host answers (its adapter acknowledges), its fabd does not: frozen" },
	/* a fabd that speaks on another rail is not frozen; all hosts of a rail are a rail's fault */
	{ { LOST, .ctl_silent = true, .neighbour_ok = true, .host_ok = true }, VERDICT_NETWORK,
	  "the host answers on another rail, not on this one" },
	{ { LOST, .host_ok = true, .others = 127, .others_down = 127 }, VERDICT_NETWORK,
	  "nothing answers from this and 127 of 127 other hosts of the rail" },
	/* all flows are dead: that is no single path */
	{ { LOST, .flows = 4, .flows_well = 0, .ctl_answers = true }, VERDICT_NETWORK,
	  "the peer answers, probes do not pass" },
	{ { LOST, .is_rdma = true, .flows = 4, .flow = 1, .flows_well = 1, .refusal = REFUSE_LIMIT },
	  VERDICT_REFUSED, "the peer refuses: limit" },
	/* two large ones may be lost by chance */
	{ { UP, .large_lost = 2, .large_size = 9000 }, VERDICT_OK, "connected" },
	{ { LOST, .large_lost = 9, .large_size = 9000 }, VERDICT_PEER_DOWN,
	  "nothing answers, 99 of 100 other hosts do" },
	{ { UP, .slower = true }, VERDICT_OK, "connected" },
	{ { LOST, .damped = true, .flaps = 9 }, VERDICT_PEER_DOWN, "nothing answers, 99 of 100 other hosts do" },
	{ { LOST, .error = EPERR_DEVICE_GONE }, VERDICT_LOCAL_PORT, "the local port is down" },
	{ { LOST, .error = EPERR_NO_ADDRESS }, VERDICT_NO_ROUTE, "the source address is not on this host" },
	{ { UP, .local_stall = true, .stall_ns = 1 }, VERDICT_OK, "connected" },
	{ { UP, .told_late_ns = NSEC_PER_SEC, .told_port = TOLD_PORT_DOWN }, VERDICT_OK, "connected" },
	/* a stop is no failure until its deadline, then it is said */
	{ { LOST, .stopped = true, .stop_cause = CAUSE_SHUTDOWN, .stop_left_ns = -1 }, VERDICT_PEER_DOWN,
	  "stopped (shutdown) and not back in time, nothing answers, 99 of 100 other hosts do" },
	{ { BASE, .ctl_silent = true, .or_not_in_config = true }, VERDICT_PEER_DOWN,
	  "nothing answers, 99 of 100 other hosts do, or this host is not in its config" },
	{ { BASE, .ctl_silent = true, .others = 0, .others_down = 0, .or_not_in_config = true },
	  VERDICT_PEER_DOWN, "nothing answers; sole peer of the rail: cannot tell host from network, "
	  "or this host is not in its config" },
	{ { BASE, .refusal = REFUSE_AUTH, .ctl_answers = true }, VERDICT_AUTH_FAILED,
	  "the peer refuses our authentication" },
	{ { BASE, .is_rdma = true, .error = EPERR_NOT_SUPPORTED, .udp_ok = true }, VERDICT_INCOMPATIBLE,
	  "not-supported" },
	/* no rdma listener: a refusal, unless IP is known to work */
	{ { BASE, .is_rdma = true, .error = EPERR_CM_REFUSED, .cm_answers = true }, VERDICT_REFUSED,
	  "the host answers, nobody listens there: cm-refused" },
	{ { LOST, .is_rdma = true, .ctl_answers = true }, VERDICT_RDMA_BROKEN,
	  "control answers, RDMA does not: heartbeats lost" },
	/* the peer noticed first, and said so: being connected anew is no news */
	{ { BASE, .ever_connected = true, .told_lost = true, .is_rdma = true, .udp_ok = true },
	  VERDICT_RDMA_BROKEN, "udp works, RDMA does not: the peer hears nothing" },
	{ { BASE, .ever_connected = true, .told_lost = true, .ctl_answers = true }, VERDICT_NETWORK,
	  "the peer answers, probes do not pass" },
	{ { BASE, .ever_connected = true, .told_lost = true, .local_stall = true,
	    .stall_ns = 2 * NSEC_PER_SEC },
	  VERDICT_LOCAL_STALL, "fabd on this host stood still for 2000 ms" },
	{ { UP, .told_lost = true }, VERDICT_OK, "connected" },
	{ { LOST, .is_rdma = true, .cm_answers = true, .error = EPERR_CM_REJECTED }, VERDICT_RDMA_BROKEN,
	  "the CM answers, RDMA does not: cm-rejected" },
	/* udp is filtered where rdma works */
	{ { BASE, .ctl_silent = true, .rdma_ok = true }, VERDICT_CONTROL_BLOCKED,
	  "the fabric works, control packets (UDP) get no answer" },
	{ { LOST, .ctl_silent = true, .rdma_ok = true, .neighbour_ok = true },
	  VERDICT_CONTROL_BLOCKED, "the fabric works, nothing else gets an answer: UDP is "
	  "filtered, or fabd there stands still" },
	{ { LOST, .ctl_silent = true, .cm_answers = true }, VERDICT_REMOTE_STALL,
	  "the host answers (CM), its fabd does not: frozen" },
	/* a fresh neighbour entry right after the loss says nothing yet */
	{ { LOST, .ctl_silent = true, .neighbour_ok = true, .others = 127, .others_down = 15 },
	  VERDICT_NETWORK, "nothing answers from this and 15 of 127 other hosts of the rail" },
	{ { LOST, .ctl_silent = true, .beside_answers = true }, VERDICT_REMOTE_STALL,
	  "the host answers (on another connection), its fabd does not: frozen" },
	{ { LOST, .neighbour_ok = true }, VERDICT_PEER_DOWN, "nothing answers, 99 of 100 other hosts do" },
	{ { LOST, .others = 1, .others_down = 1 }, VERDICT_NETWORK,
	  "nothing answers from this and 1 of 1 other hosts of the rail" },
	{ { LOST, .others = 2, .others_down = 1 }, VERDICT_PEER_DOWN, "nothing answers, 1 of 2 other hosts do" },
	{ { LOST, .others = 1000, .others_down = 9 }, VERDICT_PEER_DOWN,
	  "nothing answers, 991 of 1000 other hosts do" },
	{ { LOST, .error = EPERR_HOST_UNREACHABLE }, VERDICT_PEER_DOWN,
	  "nothing answers, 99 of 100 other hosts do" },
};
/* clang-format on */

static void what_binding_said_is_repeated(void **state)
{
	const struct verdict_facts no_source = {
		BASE, .port_known = false, .port_why = "source 10.2.4.17 is not on this host"};
	const struct verdict_facts no_route = {
		BASE, .error = EPERR_NO_ROUTE, .port_why = "no route to 10.2.0.33"};
	struct verdict_result r;

	(void)state;
	verdict_decide(&no_source, &r);
	assert_int_equal(r.verdict, VERDICT_NO_ROUTE);
	assert_string_equal(r.why, no_source.port_why);
	verdict_decide(&no_route, &r);
	assert_int_equal(r.verdict, VERDICT_NO_ROUTE);
	assert_string_equal(r.why, no_route.port_why);
}

static void every_row_has_its_case(void **state)
{
	struct verdict_result r;
	char row[256];
	int n = 0;

	(void)state;
	for (unsigned i = 0; i < ARRAY_LEN(cases); i++) {
		verdict_decide(&cases[i].f, &r);
		assert_string_equal(r.why, cases[i].why);
		assert_int_equal(r.verdict, cases[i].want);
		assert_int_equal(r.row, i);
	}
	while (verdict_row_text(n, row, sizeof(row)))
		n++;
	assert_int_equal(n, ARRAY_LEN(cases));
	assert_false(verdict_row_text(-1, row, sizeof(row)));
}

static void every_verdict_is_given(void **state)
{
	bool given[VERDICT__MAX] = {false};

	(void)state;
	for (unsigned i = 0; i < ARRAY_LEN(cases); i++)
		given[cases[i].want] = true;
	for (int v = 0; v < VERDICT__MAX; v++)
		if (!given[v])
			fail_msg("%s is never given", enum_name(&verdict_names, v));
}

static void precedence_and_other_ways(void **state)
{
	struct verdict_result r;

	(void)state;
	for (unsigned i = 0; i < ARRAY_LEN(more); i++) {
		verdict_decide(&more[i].f, &r);
		assert_string_equal(r.why, more[i].why);
		assert_int_equal(r.verdict, more[i].want);
	}
}

static uint64_t rnd = 4;

static bool coin(unsigned one_in)
{
	rnd = mix64(rnd);
	return rnd % one_in == 0;
}

/* Any evidence at all, but what stands above the faults of others. */
static struct verdict_facts any_facts(void)
{
	return (struct verdict_facts){
		.silenced = coin(50),
		.held = coin(50),
		.host_up_ns = coin(8) ? 1 : HOUR,
		.port_known = !coin(20),
		.port_down = coin(20),
		.local_stall = coin(20),
		.device_stuck = coin(50),
		.sm_mute = coin(20),
		.is_rdma = coin(2),
		.connected = coin(3),
		.ever_connected = coin(2),
		.late = coin(3),
		.told_lost = coin(3),
		.error = coin(2) ? (enum ep_error)(rnd / 8 % EPERR__MAX) : EPERR_NONE,
		.stopped = coin(8),
		.stop_left_ns = coin(2) ? 1 : -1,
		.told_port = (uint8_t)(coin(8) ? TOLD_PORT_DOWN : TOLD_PORT_UP),
		.told_device = (uint8_t)(coin(4) ? rnd / 8 % 4 : TOLD_DEVICE_OK),
		.refusal = coin(8) ? (enum refusal)(rnd / 8 % REFUSE__MAX) : REFUSE_NONE,
		.auth_failed = coin(20),
		.unknown_to_peer = coin(20),
		.ctl_answers = coin(2),
		.ctl_silent = coin(2),
		.neighbour_ok = coin(2),
		.cm_answers = coin(4),
		.send_acked = coin(8),
		.beside_answers = coin(8),
		.large_lost = (uint8_t)(coin(8) ? rnd / 8 % 256 : 0),
		.large_size = coin(2) ? 4096 : 0,
		.mtu_mismatch = coin(20),
		.pkey_mismatch = coin(20),
		.udp_ok = coin(3),
		.rdma_ok = coin(3),
		.host_ok = coin(3),
		.flow = (int)(rnd >> 20 & 3),
		.flows = 1 + (int)(rnd >> 30 & 3),
		.flows_well = (int)(rnd >> 35 & 3),
		.others = (int)(rnd >> 40 & 7),
		.others_down = (int)(rnd >> 50 & 7),
		.loss_permille = coin(8) ? (uint32_t)(rnd / 8 % 1001) : 0,
		.rtt_p99_ns = coin(8) ? rnd : 70000,
		.usual_p99_ns = coin(2) ? 70000 : 0,
		.slower = coin(8),
		.damped = coin(8),
		.flaps = (uint32_t)(rnd >> 55),
	};
}

/* Whatever the evidence: an answer, and no blame of others for what is well. */
static void any_evidence_gets_an_answer(void **state)
{
	struct verdict_result r;

	(void)state;
	for (int i = 0; i < 200000; i++) {
		struct verdict_facts f = any_facts();
		enum verdict v;

		verdict_decide(&f, &r);
		v = r.verdict;
		assert_true(r.why[0] && strlen(r.why) < sizeof(r.why) - 1);
		if (f.connected && !f.late && v != VERDICT_OK && v != VERDICT_DEGRADED)
			assert_true(f.silenced || f.held || f.port_down || f.device_stuck ||
				    f.host_up_ns == 1 || f.ctl_silent || f.large_lost ||
				    f.loss_permille >= 100);
		if (!f.connected || f.late)
			assert_true(v != VERDICT_OK && v != VERDICT_DEGRADED);
	}
}

static struct verdict_result decided(struct verdict_facts f)
{
	struct verdict_result r;

	verdict_decide(&f, &r);
	return r;
}

/* Whatever else is known: what stands higher in the table is said, and nothing that is
 * added to it changes that. */
static void what_stands_higher_wins(void **state)
{
	(void)state;
	for (int i = 0; i < 100000; i++) {
		struct verdict_facts f = any_facts();

		f.silenced = f.held = false;
		f.host_up_ns = HOUR;
		f.port_down = true;
		assert_int_equal(decided(f).verdict, VERDICT_LOCAL_PORT);
		f.host_up_ns = 1;
		f.ever_connected = false;
		assert_int_equal(decided(f).verdict, VERDICT_UNKNOWN);
		f.held = true;
		assert_int_equal(decided(f).verdict, VERDICT_HELD);
		f.silenced = true;
		assert_int_equal(decided(f).verdict, VERDICT_SILENCED);
	}
}

/* A fault of this host is never a fault of the other or of the network, and a fault that
 * the other tells of itself is never the network's. */
static void nearer_faults_come_first(void **state)
{
	(void)state;
	for (int i = 0; i < 100000; i++) {
		struct verdict_facts f = any_facts();
		enum verdict v;

		f.silenced = f.held = false;
		f.connected = false;
		v = decided(f).verdict;
		if (f.local_stall)
			assert_true(v == VERDICT_LOCAL_STALL || v == VERDICT_LOCAL_PORT ||
				    v == VERDICT_UNKNOWN);
		f.host_up_ns = HOUR;
		f.port_down = f.local_stall = f.device_stuck = f.sm_mute = false;
		f.port_known = true;
		f.error = EPERR_NONE;
		f.stopped = false;
		f.told_port = TOLD_PORT_DOWN;
		assert_int_equal(decided(f).verdict, VERDICT_REMOTE_PORT);
		f.told_port = TOLD_PORT_UP;
		f.told_device = TOLD_DEVICE_STUCK;
		if (f.is_rdma)
			assert_int_equal(decided(f).verdict, VERDICT_RDMA_BROKEN);
	}
}

/* More silent hosts never turn a network's fault into one host's. */
static void more_silence_is_more_network(void **state)
{
	(void)state;
	for (int i = 0; i < 100000; i++) {
		struct verdict_facts f = any_facts();

		f.others = 200;
		f.others_down = (int)(rnd % 200);
		if (!verdict_row_is_rail(decided(f).row))
			continue;
		f.others_down++;
		assert_true(verdict_row_is_rail(decided(f).row));
		f.others_down = f.others;
		assert_true(verdict_row_is_rail(decided(f).row));
	}
	assert_false(verdict_row_is_rail(-1));
	assert_false(verdict_row_is_rail(10000));
}

/* ---- held ---- */

static void every_holder(void **state)
{
	int rail = 0;

	(void)state;
	while (!verdict_row_is_rail(rail))
		rail++;
	for (enum verdict v = 0; v < VERDICT__MAX; v++)
		for (unsigned bits = 0; bits < 16; bits++) {
			const struct held_facts f = {.own = v,
						     .port_bad = bits & 1,
						     .peer_told = bits & 2,
						     .rail_told = bits & 4,
						     .row = bits & 8 ? rail : 0};
			enum holder want = HOLDER_NONE;

			if (v == VERDICT_LOCAL_PORT && f.port_bad)
				want = HOLDER_PORT;
			if ((v == VERDICT_PEER_DOWN || v == VERDICT_PEER_STOPPED ||
			     v == VERDICT_REMOTE_STALL) &&
			    f.peer_told)
				want = HOLDER_PEER;
			if (v == VERDICT_NETWORK && f.rail_told && (bits & 8))
				want = HOLDER_RAIL;
			assert_int_equal(held_decide(&f), want);
		}
}

static void names_of_holders(void **state)
{
	char name[HELD_NAME_MAX], why[VERDICT_WHY_MAX];

	(void)state;
	assert_string_equal(held_name(HOLDER_NONE, "p", "h", "3", name), "");
	assert_string_equal(held_name(HOLDER_PEER, "p", "gpu0033", "3", name), "gpu0033");
	assert_string_equal(held_name(HOLDER_RAIL, "p", "h", "3", name), "rail 3");
	held_why(VERDICT_NETWORK, name, why, sizeof(why));
	assert_string_equal(why, "network rail 3");
	(void)held_name(HOLDER_PORT, "mlx5_3/1", "h", "3", name);
	held_why(VERDICT_LOCAL_PORT, name, why, sizeof(why));
	assert_string_equal(why, "local-port mlx5_3/1");
}

#define DOC SOURCE_ROOT "/docs/verdicts.md"

static void the_document_is_the_table(void **state)
{
	char want[16384] = "", got[16384] = "", row[256];
	FILE *f = fopen(DOC, getenv("FABD_UPDATE") ? "w+" : "r");

	(void)state;
	str_append(want, sizeof(want),
		   "<!-- SPDX-License-Identifier: BSD-2-Clause -->\n"
		   "# Verdicts\n\n"
		   "Made from the table in `lib/verdict.c` by `test_verdict`"
		   " (`FABD_UPDATE=1` writes it anew).\n"
		   "The first row that matches wins.\n\n"
		   "| row | evidence | verdict |\n|---|---|---|\n");
	for (int i = 0; verdict_row_text(i, row, sizeof(row)); i++)
		str_append(want, sizeof(want), "%s\n", row);
	str_append(want, sizeof(want),
		   "\n## Held\n\n"
		   "What another fault explains is `held` under it (`lib/held.c`); its own"
		   " verdict\nstays in `own_verdict`.\n\n"
		   "| own verdict | when | held by |\n|---|---|---|\n");
	for (int i = 0; held_row_text(i, row, sizeof(row)); i++)
		str_append(want, sizeof(want), "%s\n", row);
	assert_non_null(f);
	if (getenv("FABD_UPDATE")) {
		assert_true(fputs(want, f) >= 0);
		rewind(f);
	}
	assert_true(fread(got, 1, sizeof(got) - 1, f) > 0);
	assert_int_equal(fclose(f), 0);
	assert_string_equal(got, want);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_row_has_its_case),
		cmocka_unit_test(what_binding_said_is_repeated),
		cmocka_unit_test(every_verdict_is_given),
		cmocka_unit_test(precedence_and_other_ways),
		cmocka_unit_test(any_evidence_gets_an_answer),
		cmocka_unit_test(what_stands_higher_wins),
		cmocka_unit_test(nearer_faults_come_first),
		cmocka_unit_test(more_silence_is_more_network),
		cmocka_unit_test(every_holder),
		cmocka_unit_test(names_of_holders),
		cmocka_unit_test(the_document_is_the_table),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
