/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "explain.h"

#define HOUR (3600 * NSEC_PER_SEC)
#define SEC  NSEC_PER_SEC

/* A rail of an InfiniBand host that is well, as far as its own side goes. */
static struct explain_facts base(void)
{
	struct explain_facts f = {
		.v = {.host_up_ns = HOUR, .port_known = true, .others = 100, .others_down = 1,
		      .is_rdma = true},
		.peer = "gpu0033",
		.rail = "2",
		.transport = TRANSPORT_UD,
		.has_connection = true,
		.name_source = NAME_PEER,
		.name_age = 41 * 24 * HOUR,
		.addresses = 8,
		.addresses_known = 8,
		.route_asked = true,
		.netdev = "ib2",
		.netdev_up = true,
		.netdev_mtu = 2044,
		.port = "mlx5_2/1",
		.port_state = "ACTIVE",
		.port_health = HEALTH_OK,
		.infiniband = true,
		.lid = 417,
		.sm_lid = 1,
		.port_mtu = 4096,
		.pkey_known = true,
		.pkey = 0xffff,
		.has_worker = true,
		.worker = WORKER_RUNNING,
		.neighbour = NEIGHBOUR_REACHABLE,
		.neighbour_age = 12 * SEC,
		.wanted_sl = -1,
		.control_port = 18777,
		.version = 1,
		.control_age = 2 * SEC,
		.control_silence = -1,
		.state = CONN_SEND_RESET,
		.connected_age = -1,
		.error_age = -1,
		.state_age = 3 * SEC,
		.stop_left = -1,
		.heartbeat_age = -1,
		.path_age = -1,
	};

	(void)addr_parse("10.2.0.33", &f.remote, NULL);
	(void)addr_parse("10.2.4.17", &f.local, NULL);
	return f;
}

/* It is connected, and heartbeats pass. */
static struct explain_facts up(void)
{
	struct explain_facts f = base();

	f.v.connected = f.v.ever_connected = f.v.ctl_answers = true;
	f.state = CONN_CONNECTED;
	f.connected_age = f.path_age = 240 * SEC;
	f.heartbeat_age = SEC / 2;
	f.sent = 544;
	f.rtt_p50 = 38000;
	f.rtt_p99 = 71000;
	f.path = (struct ep_path){.known = EP_PATH_LIDS | EP_PATH_SL | EP_PATH_RATE,
				  .slid = 417, .dlid = 812, .rate_mbps = 400000, .mtu = 4096};
	return f;
}

/* It was connected and went silent. */
static struct explain_facts lost(void)
{
	struct explain_facts f = up();

	f.v.connected = f.v.ctl_answers = false;
	f.v.late = true;
	f.state = CONN_SEND_RESET;
	f.heartbeat_age = 544 * SEC;
	return f;
}

static void failed(struct explain_facts *f, enum ep_error error, enum ep_stage stage,
		   const char *text)
{
	f->v.error = error;
	f->v.error_stage = stage;
	f->error_age = 3 * SEC;
	(void)str_copy(f->error_text, sizeof(f->error_text), text);
}

static void bound(struct explain_facts *f, const char *why)
{
	(void)str_copy(f->bind_why, sizeof(f->bind_why), why);
}

static const char *const shown[] = {
	[MARK_OK] = "ok ", [MARK_BAD] = "BAD", [MARK_SKIPPED] = "-- ", [MARK_WARN] = "!! "};

/* As fabctl prints it, with @all details. */
static const char *text_of(struct explain_facts *f, bool all)
{
	static char text[4096];
	struct explanation e;

	verdict_decide(&f->v, &f->inner);
	f->given = f->inner;
	explain(f, &e);
	text[0] = '\0';
	for (int i = 0; i < e.n_lines; i++)
		if (all || !e.lines[i].detail)
			str_append(text, sizeof(text), "%s %s: %s\n", shown[e.lines[i].mark],
				   enum_name(&explain_step_names, (int)e.lines[i].step),
				   e.lines[i].text);
	str_append(text, sizeof(text), "%s, %s: %s. %s\n",
		   enum_text(&verdict_names, (int)f->inner.verdict),
		   enum_name(&fault_place_names, (int)e.place), f->inner.why, e.act);
	return text;
}

/* ---- what is said ---- */

static void the_example_of_the_manual(void **state)
{
	struct explain_facts f = lost();

	(void)state;
	f.v.late = false;
	f.v.ctl_answers = f.v.udp_ok = true;
	failed(&f, EPERR_CM_REFUSED, STAGE_CONNECT, "SIDR status 1: nobody listens on 18777");
	f.n_others = 1;
	f.others[0] = (struct explain_other){.transport = TRANSPORT_UDP, .connected = true,
					     .sent = 544, .rtt_p50 = 38000, .on = "ib2"};
	assert_string_equal(
		text_of(&f, false),
		"ok  name: gpu0033 > 10.2.0.33 lid 812 (told by peer, 41d)\n"
		"ok  route: dev ib2 src 10.2.4.17, neighbour REACHABLE 12s\n"
		"ok  local: mlx5_2/1 ACTIVE lid 417 pkey 0xffff full mtu 4096 sl 0\n"
		"ok  sa_path: 417 > 812 rate 400 mtu 4096, cached 4m00s\n"
		"BAD connect: SIDR status 1: nobody listens on 18777\n"
		"--  heartbeat: last 9m04s ago; udp on ib2 0/544 lost, p50 38 us\n"
		"rdma-broken, remote: udp works, RDMA does not: cm-refused at connect. "
		"Act there.\n");
}

static void one_that_is_well(void **state)
{
	struct explain_facts f = up();

	(void)state;
	assert_string_equal(
		text_of(&f, true),
		"ok  name: gpu0033 > 10.2.0.33 lid 812 (told by peer, 41d)\n"
		"ok  addresses: rail 2; 8 of 8 known\n"
		"ok  route: dev ib2 src 10.2.4.17, neighbour REACHABLE 12s\n"
		"ok  source: 10.2.4.17 on ib2, owned by mlx5_2/1\n"
		"ok  local: mlx5_2/1 ACTIVE lid 417 pkey 0xffff full mtu 4096 sl 0\n"
		"ok  neighbour: 10.2.0.33 REACHABLE 12s\n"
		"ok  mtu: 4096 bytes fit the path, 4096 here\n"
		"ok  pkey: 0xffff full here\n"
		"ok  class: sl 0, traffic class 0\n"
		"ok  sa_path: 417 > 812 rate 400 mtu 4096, cached 4m00s\n"
		"ok  control: 10.2.0.33:18777 answered 2s ago, version 1\n"
		"ok  resolve: address and route resolved 4m00s ago\n"
		"ok  connect: connected for 4m00s\n"
		"ok  heartbeat: last 0.5s ago, 0/544 lost, p50 38 us p99 71 us\n"
		"ok, nowhere: connected. \n");
}

static void a_name_without_an_address(void **state)
{
	struct explain_facts f = {.peer = "gpu0033", .addresses = 1, .name_age = -1};

	(void)state;
	f.v.port_known = false;
	f.v.host_up_ns = HOUR;
	(void)str_copy(f.resolve_error, sizeof(f.resolve_error),
		       "gpu0033.ib: Name or service not known");
	assert_string_equal(text_of(&f, false),
			    "BAD name: gpu0033.ib: Name or service not known\n"
			    "--  route: \n--  local: \n--  connect: \n--  heartbeat: \n"
			    "no-route, local: no device owns the source address. Act here.\n");
}

static void two_rails_on_one_subnet(void **state)
{
	struct explain_facts f = up();

	(void)state;
	f.arp = (struct explain_arp){.interfaces = 3, .first = "ib2", .second = "ib3",
				     .bits = 16, .rp_filter = 1};
	(void)addr_parse("10.2.0.0", &f.arp.subnet, NULL);
	assert_non_null(strstr(text_of(&f, false),
			       "!!  arp: ib2 and ib3 and 1 more are on 10.2.0.0/16: arp_ignore "
			       "is 0, wanted 1; arp_announce is 0, wanted 2; rp_filter is 1, "
			       "wanted 2\n"));
	f.arp.rp_filter = 2;
	f.arp.arp_announce = 2;
	assert_non_null(strstr(text_of(&f, false), "/16: arp_ignore is 0, wanted 1\n"));
	f.arp.arp_ignore = 1;
	assert_null(strstr(text_of(&f, false), " arp:"));
	assert_non_null(strstr(text_of(&f, true), "ok  arp: "));
	f.arp.interfaces = 1;
	assert_null(strstr(text_of(&f, true), " arp:"));
	/* what cannot be read is not wrong */
	f.arp = (struct explain_arp){.interfaces = 2, .rp_filter = -1, .arp_ignore = -1,
				     .arp_announce = -1};
	assert_null(strstr(text_of(&f, false), " arp:"));
}

static void what_is_odd_beside_a_fault(void **state)
{
	struct explain_facts f = up();

	(void)state;
	f.wanted_sl = 3;
	assert_non_null(strstr(text_of(&f, false),
			       "!!  class: sl 0, traffic class 0; the config wants sl 3\n"));
	f = up();
	f.port_health = HEALTH_DEGRADED;
	(void)str_copy(f.port_why, sizeof(f.port_why), "width 2x of 4x");
	assert_non_null(strstr(text_of(&f, false), "sl 0; degraded: width 2x of 4x\n"));
	/* what flows proves what is under it, though control is filtered */
	f = up();
	f.v.ctl_answers = false;
	f.v.ctl_silent = true;
	f.control_silence = 12 * SEC;
	assert_non_null(strstr(text_of(&f, false),
			       "BAD control: 10.2.0.33:18777 has not answered for 12s; "
			       "heartbeats pass\nok  connect: connected for 4m00s\nok  heartbeat"));
	f = up();
	f.infiniband = false;
	f.port[0] = '\0';
	f.v.is_rdma = false;
	f.remote.family = 6;
	f.neighbour = NEIGHBOUR_PERMANENT;
	assert_non_null(strstr(text_of(&f, true), "ok  local: ib2 up mtu 2044, no RDMA device\n"));
	assert_null(strstr(text_of(&f, true), "sa_path"));
}

/* ---- each wrong step has its case ---- */

typedef void change_fn(struct explain_facts *f);

static void c_unresolved(struct explain_facts *f)
{
	*f = (struct explain_facts){.peer = "p", .addresses = 1};
	f->v.host_up_ns = HOUR;
	(void)str_copy(f->resolve_error, sizeof(f->resolve_error), "p.ib: not known");
}
static void c_addressless(struct explain_facts *f)
{
	*f = (struct explain_facts){.peer = "p", .rail = "1", .addresses = 2,
				    .addresses_known = 1};
	f->v.host_up_ns = HOUR;
}
static void c_source_gone(struct explain_facts *f)
{
	*f = lost();
	f->v.port_down = f->source_missing = true;
	bound(f, "address removed from ib2");
}
static void c_port_down(struct explain_facts *f)
{
	*f = lost();
	f->v.port_down = true;
	f->v.port_why = "mlx5_2/1 DOWN";
	(void)str_copy(f->port_state, sizeof(f->port_state), "DOWN");
	(void)str_copy(f->port_far, sizeof(f->port_far), "leaf07/22");
	bound(f, "mlx5_2/1 DOWN");
}
static void c_worker_died(struct explain_facts *f)
{
	*f = lost();
	failed(f, EPERR_WORKER_DIED, STAGE_UP, "the device's worker ended");
	f->worker = WORKER_BACKOFF;
	(void)str_copy(f->worker_why, sizeof(f->worker_why), "killed by signal 9");
}
static void c_stall(struct explain_facts *f)
{
	*f = lost();
	f->v.local_stall = true;
	f->v.stall_ns = 2 * SEC;
}
static void c_stuck(struct explain_facts *f)
{
	*f = lost();
	f->v.device_stuck = true;
	f->worker = WORKER_STUCK;
}
static void c_no_source(struct explain_facts *f)
{
	*f = base();
	f->v.port_known = false;
	f->source_missing = true;
	bound(f, "no RDMA device owns 10.2.4.17");
	f->v.port_why = f->bind_why;
}
static void c_no_path(struct explain_facts *f)
{
	*f = base();
	failed(f, EPERR_NO_PATH, STAGE_RESOLVE_ROUTE, "no path: status 3");
}
static void c_no_route(struct explain_facts *f)
{
	*f = lost();
	failed(f, EPERR_NO_ROUTE, STAGE_RESOLVE_ADDR, "no route to 10.2.0.33");
	f->route_error = -ENETUNREACH;
	bound(f, "no route to 10.2.0.33: Network is unreachable");
}
static void c_no_sm(struct explain_facts *f)
{
	*f = lost();
	f->v.sm_mute = true;
	f->sm_lid = 0;
}
static void c_stopped(struct explain_facts *f)
{
	*f = lost();
	f->v.stopped = true;
	f->v.stop_cause = CAUSE_RESTART;
	f->v.stop_left_ns = 30 * SEC;
}
static void c_auth(struct explain_facts *f)
{
	*f = base();
	f->v.auth_failed = true;
}
static void c_impossible(struct explain_facts *f)
{
	*f = base();
	f->v.ctl_answers = true;
	failed(f, EPERR_NOT_SUPPORTED, STAGE_NONE, "an address of this host: probed over udp only");
}
static void c_version(struct explain_facts *f)
{
	*f = base();
	f->v.ctl_answers = true;
	f->v.refusal = REFUSE_VERSION;
}
static void c_limit(struct explain_facts *f)
{
	*f = base();
	f->v.ctl_answers = true;
	failed(f, EPERR_LIMIT, STAGE_NONE, "256 connections on mlx5_2: MaxRcPerDevice=");
}
static void c_cm_refused(struct explain_facts *f)
{
	*f = base();
	failed(f, EPERR_CM_REFUSED, STAGE_CONNECT, "rejected, reason 8: nobody listens there");
}
static void c_nobody(struct explain_facts *f)
{
	*f = lost();
	f->v.unknown_to_peer = true;
}
static void c_partition(struct explain_facts *f)
{
	*f = lost();
	f->v.ctl_answers = f->v.udp_ok = true;
	f->v.pkey_mismatch = true;
	f->v.own_pkey = 0x8001;
	f->v.peer_pkey = 0x8002;
}
static void c_rdma_resolve(struct explain_facts *f)
{
	*f = base();
	f->v.ctl_answers = f->v.udp_ok = true;
	failed(f, EPERR_NO_NEIGHBOUR, STAGE_RESOLVE_ADDR, "address not resolved: Connection timed out");
}
static void c_rdma_connect(struct explain_facts *f)
{
	*f = base();
	f->v.ctl_answers = f->v.udp_ok = true;
	failed(f, EPERR_CM_TIMEOUT, STAGE_CONNECT, "no answer to connect");
}
static void c_rdma_beats(struct explain_facts *f)
{
	*f = up();
	f->v.late = f->v.udp_ok = true;
	f->heartbeat_age = 4 * SEC;
}
static void c_rdma_port(struct explain_facts *f)
{
	c_rdma_connect(f);
	f->port_hosts = f->port_hosts_broken = 7;
}
static void c_rdma_mtu(struct explain_facts *f)
{
	c_rdma_connect(f);
	f->v.mtu_mismatch = true;
	f->v.own_mtu = 4096;
	f->v.peer_mtu = 2048;
}
static void c_blocked(struct explain_facts *f)
{
	*f = up();
	f->v.ctl_answers = false;
	f->v.ctl_silent = true;
}
static void c_large(struct explain_facts *f)
{
	*f = up();
	f->v.large_lost = 3;
	f->v.large_size = 4096;
}
static void c_lossy(struct explain_facts *f)
{
	*f = up();
	f->v.loss_permille = 7;
}
static void c_heavy(struct explain_facts *f)
{
	*f = up();
	f->v.loss_permille = 125;
}
static void c_mtus(struct explain_facts *f)
{
	*f = up();
	f->v.mtu_mismatch = true;
	f->v.own_mtu = 4096;
	f->v.peer_mtu = 2048;
}
static void c_pkeys(struct explain_facts *f)
{
	*f = up();
	f->v.pkey_mismatch = true;
	f->v.own_pkey = 0x8001;
	f->v.peer_pkey = 0x8002;
}
static void c_down_silent(struct explain_facts *f)
{
	*f = lost();
	f->control_silence = 9 * SEC;
	f->control_age = 12 * SEC;
}
static void c_down_neighbour(struct explain_facts *f)
{
	*f = lost();
	f->neighbour = NEIGHBOUR_FAILED;
	f->neighbour_age = -1;
}
static void c_frozen(struct explain_facts *f)
{
	*f = lost();
	f->v.ctl_silent = f->v.neighbour_ok = true;
	f->control_silence = 9 * SEC;
}
static void c_remote_port(struct explain_facts *f)
{
	*f = lost();
	f->v.late = false;
	f->v.told_port = TOLD_PORT_DOWN;
	f->v.ctl_answers = true;
	failed(f, EPERR_CM_TIMEOUT, STAGE_CONNECT, "no answer to connect");
}
static void c_probes(struct explain_facts *f)
{
	*f = lost();
	f->v.late = false;
	f->v.told_lost = f->v.ctl_answers = true;
	f->v.is_rdma = false;
	f->state = CONN_FABRIC_PROBE;
	f->stage = STAGE_UP;
}
static void c_connecting(struct explain_facts *f)
{
	*f = base();
	f->v.ctl_answers = true;
}

/* clang-format off */
static const struct {
	change_fn *change;
	enum verdict verdict;
	enum explain_step wrong;
	enum fault_place place;
	const char *text; /* in the line of the wrong step */
} cases[] = {
	{ c_unresolved, VERDICT_NO_ROUTE, STEP_NAME, PLACE_LOCAL, "p.ib: not known" },
	{ c_addressless, VERDICT_NO_ROUTE, STEP_ADDRESSES, PLACE_LOCAL, "rail 1; 1 of 2 known" },
	{ c_source_gone, VERDICT_LOCAL_PORT, STEP_SOURCE, PLACE_LOCAL, "address removed from ib2" },
	{ c_port_down, VERDICT_LOCAL_PORT, STEP_LOCAL, PLACE_LOCAL, "mlx5_2/1 DOWN (leaf07/22)" },
	{ c_worker_died, VERDICT_LOCAL_STALL, STEP_LOCAL, PLACE_LOCAL,
	  "its worker died and is started again: killed by signal 9" },
	{ c_stall, VERDICT_LOCAL_STALL, STEP_HEARTBEAT, PLACE_LOCAL, "last 9m04s ago" },
	{ c_stuck, VERDICT_DEVICE_STUCK, STEP_LOCAL, PLACE_LOCAL, "its worker cannot be killed: device-stuck" },
	{ c_no_source, VERDICT_NO_ROUTE, STEP_SOURCE, PLACE_LOCAL, "no RDMA device owns 10.2.4.17" },
	{ c_no_path, VERDICT_NO_ROUTE, STEP_SA_PATH, PLACE_NETWORK, "no path: status 3" },
	{ c_no_route, VERDICT_NO_ROUTE, STEP_ROUTE, PLACE_LOCAL, "no route to 10.2.0.33: Network is unreachable" },
	{ c_no_sm, VERDICT_NO_SM, STEP_SA_PATH, PLACE_NETWORK, "no subnet manager: the port's SM LID is 0" },
	{ c_stopped, VERDICT_PEER_STOPPED, STEP_CONTROL, PLACE_REMOTE, "stopped on purpose (restart), back within 30 s" },
	{ c_auth, VERDICT_AUTH_FAILED, STEP_CONTROL, PLACE_REMOTE, "other key" },
	{ c_impossible, VERDICT_INCOMPATIBLE, STEP_CONNECT, PLACE_LOCAL, "an address of this host" },
	{ c_version, VERDICT_INCOMPATIBLE, STEP_CONTROL, PLACE_REMOTE, "no protocol version in common" },
	{ c_limit, VERDICT_REFUSED, STEP_CONNECT, PLACE_LOCAL, "256 connections on mlx5_2" },
	{ c_cm_refused, VERDICT_REFUSED, STEP_CONNECT, PLACE_REMOTE, "nobody listens there" },
	{ c_nobody, VERDICT_REFUSED, STEP_CONTROL, PLACE_REMOTE, "nobody listens on 10.2.0.33:18777" },
	{ c_partition, VERDICT_RDMA_BROKEN, STEP_PKEY, PLACE_NETWORK, "P_Key" },
	{ c_rdma_resolve, VERDICT_RDMA_BROKEN, STEP_RESOLVE, PLACE_REMOTE, "address not resolved" },
	{ c_rdma_connect, VERDICT_RDMA_BROKEN, STEP_CONNECT, PLACE_REMOTE, "no answer to connect" },
	{ c_rdma_beats, VERDICT_RDMA_BROKEN, STEP_HEARTBEAT, PLACE_REMOTE, "last 4s ago" },
	{ c_rdma_port, VERDICT_RDMA_BROKEN, STEP_LOCAL, PLACE_LOCAL, "broken to all 7 other hosts" },
	{ c_rdma_mtu, VERDICT_RDMA_BROKEN, STEP_MTU, PLACE_NETWORK, "" },
	{ c_blocked, VERDICT_CONTROL_BLOCKED, STEP_CONTROL, PLACE_NETWORK, "10.2.0.33:18777 does not answer; heartbeats pass" },
	{ c_large, VERDICT_NETWORK, STEP_MTU, PLACE_NETWORK, "messages of 4096 bytes do not pass" },
	{ c_lossy, VERDICT_DEGRADED, STEP_HEARTBEAT, PLACE_NETWORK, "0/544 lost" },
	{ c_heavy, VERDICT_NETWORK, STEP_HEARTBEAT, PLACE_NETWORK, "0/544 lost" },
	{ c_mtus, VERDICT_DEGRADED, STEP_MTU, PLACE_NETWORK, "MTU 4096 here, 2048 there" },
	{ c_pkeys, VERDICT_DEGRADED, STEP_PKEY, PLACE_NETWORK, "" },
	{ c_down_silent, VERDICT_PEER_DOWN, STEP_CONTROL, PLACE_REMOTE, "10.2.0.33:18777 has not answered for 9s" },
	{ c_down_neighbour, VERDICT_PEER_DOWN, STEP_NEIGHBOUR, PLACE_REMOTE, "10.2.0.33 FAILED: no answer to ARP on ib2" },
	{ c_frozen, VERDICT_REMOTE_STALL, STEP_CONTROL, PLACE_REMOTE, "has not answered for 9s" },
	{ c_remote_port, VERDICT_REMOTE_PORT, STEP_CONNECT, PLACE_REMOTE, "no answer to connect" },
	{ c_probes, VERDICT_NETWORK, STEP_CONNECT, PLACE_NETWORK, "" },
	{ c_connecting, VERDICT_UNKNOWN, STEP__MAX, PLACE_NOWHERE, "" },
};
/* clang-format on */

static bool row_seen[128], verdict_seen[VERDICT__MAX];

static void decide(struct explain_facts *f)
{
	verdict_decide(&f->v, &f->inner);
	f->given = f->inner;
	if (f->given.verdict == VERDICT_HELD || f->given.verdict == VERDICT_SILENCED) {
		f->v.held = f->v.silenced = false;
		verdict_decide(&f->v, &f->inner);
	}
}

static bool is_fault(enum verdict v)
{
	return v != VERDICT_OK && v != VERDICT_UNKNOWN;
}

/* What holds for every explanation. */
static void check_rules(const struct explain_facts *f, const struct explanation *e)
{
	int bad = 0, last = -1, row = explain_wrong_row(f);
	struct explain_wrong_row w;

	assert_true(explain_wrong_at(row, &w));
	assert_int_equal(w.verdict, f->inner.verdict);
	row_seen[row] = true;
	verdict_seen[f->given.verdict] = true;
	for (int i = 0; i < e->n_lines; i++) {
		const struct explain_line *l = &e->lines[i];

		assert_true((int)l->step > last);
		last = (int)l->step;
		assert_true(strlen(l->text) < sizeof(l->text) - 1);
		if (l->mark != MARK_BAD)
			continue;
		bad++;
		assert_int_equal(l->step, e->wrong);
		assert_true(l->text[0] && !l->detail);
	}
	assert_int_equal(bad, e->wrong < STEP__MAX);
	if (is_fault(f->inner.verdict)) {
		assert_int_equal(bad, 1);
		assert_true(e->place != PLACE_NOWHERE && e->act[0]);
	} else if (f->has_connection) {
		assert_int_equal(bad, 0);
	}
}

static const char *wrong_text(const struct explanation *e)
{
	for (int i = 0; i < e->n_lines; i++)
		if (e->lines[i].mark == MARK_BAD)
			return e->lines[i].text;
	return "";
}

static void each_fault_has_its_step(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct explain_facts f;
		struct explanation e;

		cases[i].change(&f);
		decide(&f);
		if (!f.has_connection) {
			f.inner.verdict = f.given.verdict = VERDICT_NO_ROUTE;
			(void)str_copy(f.inner.why, sizeof(f.inner.why), f.resolve_error);
		}
		explain(&f, &e);
		check_rules(&f, &e);
		if (f.inner.verdict != cases[i].verdict || e.wrong != cases[i].wrong ||
		    e.place != cases[i].place || !strstr(wrong_text(&e), cases[i].text))
			fail_msg("case %zu: %s, wrong %s, %s: %s", i,
				 enum_text(&verdict_names, (int)f.inner.verdict),
				 enum_name(&explain_step_names, (int)e.wrong),
				 enum_name(&fault_place_names, (int)e.place), wrong_text(&e));
	}
}

/* Just after boot a name that is not known may still come. */
static void in_the_first_minute(void **state)
{
	struct explain_facts f;
	struct explanation e;

	(void)state;
	c_unresolved(&f);
	f.inner.verdict = f.given.verdict = VERDICT_UNKNOWN;
	explain(&f, &e);
	check_rules(&f, &e);
	assert_int_equal(e.wrong, STEP_NAME);
}

/* A silenced or held one is explained by its own verdict. */
static void held_ones_are_explained(void **state)
{
	for (int silenced = 0; silenced < 2; silenced++) {
		struct explain_facts f;
		struct explanation e;

		(void)state;
		c_port_down(&f);
		f.v.silenced = silenced;
		f.v.held = !silenced;
		decide(&f);
		explain(&f, &e);
		check_rules(&f, &e);
		assert_int_equal(f.given.verdict, silenced ? VERDICT_SILENCED : VERDICT_HELD);
		assert_int_equal(e.wrong, STEP_LOCAL);
		assert_int_equal(e.place, PLACE_LOCAL);
	}
}

/* ---- whatever the facts ---- */

static uint64_t rnd = 7;

static unsigned draw(unsigned n)
{
	rnd = mix64(rnd);
	return (unsigned)(rnd >> 17) % n;
}

static bool coin(unsigned one_in)
{
	return draw(one_in) == 0;
}

static void any_evidence(struct verdict_facts *v)
{
	*v = (struct verdict_facts){
		.silenced = coin(50), .held = coin(50), .host_up_ns = coin(8) ? 1 : HOUR,
		.port_known = !coin(20), .port_down = coin(20), .local_stall = coin(20),
		.device_stuck = coin(50), .sm_mute = coin(20), .is_rdma = coin(2),
		.connected = coin(3), .ever_connected = coin(2), .late = coin(3),
		.told_lost = coin(3),
		.error = coin(2) ? (enum ep_error)draw(EPERR__MAX) : EPERR_NONE,
		.error_stage = (enum ep_stage)draw(STAGE__MAX), .stopped = coin(8),
		.stop_cause = (enum cause)draw(CAUSE__MAX), .stop_left_ns = coin(2) ? 1 : -1,
		.told_port = (uint8_t)(coin(8) ? TOLD_PORT_DOWN : TOLD_PORT_UP),
		.told_device = (uint8_t)draw(4),
		.refusal = coin(8) ? (enum refusal)draw(REFUSE__MAX) : REFUSE_NONE,
		.auth_failed = coin(20), .unknown_to_peer = coin(20), .ctl_answers = coin(2),
		.ctl_silent = coin(2), .neighbour_ok = coin(2), .cm_answers = coin(4),
		.large_lost = (uint8_t)draw(5), .large_size = coin(2) ? 4096 : 0,
		.mtu_mismatch = coin(10), .pkey_mismatch = coin(10), .udp_ok = coin(3),
		.rdma_ok = coin(3), .host_ok = coin(3), .others = (int)draw(8),
		.others_down = (int)draw(8), .loss_permille = coin(3) ? draw(200) : 0,
		.flows = 1 + (int)draw(3), .flows_well = (int)draw(2),
	};
}

static struct explain_facts any_facts(void)
{
	struct explain_facts f = coin(2) ? up() : base();

	any_evidence(&f.v);
	f.route_error = coin(6) ? -ENETUNREACH : 0;
	f.route_asked = !coin(6);
	f.source_missing = coin(6);
	f.netdev_up = !coin(6);
	f.port_health = (enum health)draw(HEALTH__MAX);
	f.neighbour = (enum neighbour_state)draw(NEIGHBOUR__MAX);
	f.worker = (enum worker_state)draw(WORKER__MAX);
	f.infiniband = coin(2);
	f.arp.interfaces = (int)draw(4);
	f.port_hosts = (int)draw(4);
	f.port_hosts_broken = (int)draw(4);
	f.n_others = (int)draw(EXPLAIN_OTHERS_MAX + 1);
	f.name_source = (enum name_source)draw(4);
	f.control_age = coin(3) ? -1 : SEC;
	if (coin(3))
		f.port[0] = '\0';
	if (coin(3))
		(void)str_copy(f.port_state, sizeof(f.port_state), "DOWN");
	if (coin(2))
		bound(&f, "no");
	if (coin(2))
		(void)str_copy(f.error_text, sizeof(f.error_text), "error");
	return f;
}

static void any_facts_have_one_wrong_step(void **state)
{
	(void)state;
	for (int i = 0; i < 100000; i++) {
		struct explain_facts f = any_facts();
		struct explanation e;

		decide(&f);
		explain(&f, &e);
		check_rules(&f, &e);
	}
}

/* ---- the tables ---- */

static void the_tables_are_complete(void **state)
{
	bool last[VERDICT__MAX] = {false};
	struct explain_wrong_row w;
	int n;

	(void)state;
	for (n = 0; explain_wrong_at(n, &w); n++) {
		assert_false(last[w.verdict]); /* nothing comes after what always matches */
		last[w.verdict] = !w.when[0];
		assert_int_equal(w.step == STEP__MAX, w.place == PLACE_NOWHERE);
		assert_true(n < (int)ARRAY_LEN(row_seen));
		/* those two are never an own verdict */
		if (!row_seen[n] && w.verdict != VERDICT_SILENCED && w.verdict != VERDICT_HELD)
			fail_msg("row %d (%s, %s) never decides", n,
				 enum_text(&verdict_names, (int)w.verdict), w.when);
	}
	assert_false(explain_wrong_at(-1, &w));
	for (int v = 0; v < VERDICT__MAX; v++) {
		assert_true(last[v]);
		if (!verdict_seen[v])
			fail_msg("%s is never given", enum_text(&verdict_names, v));
	}
	for (int s = 0; s < STEP__MAX; s++) {
		assert_true(strlen(explain_step_about((enum explain_step)s)) > 10);
		/* a step rests on earlier ones alone */
		for (int on = s; on < STEP__MAX; on++)
			assert_false(explain_step_needs((enum explain_step)s,
							(enum explain_step)on));
	}
}

/* ---- the document ---- */

#define DOC SOURCE_ROOT "/docs/explain.md"

static const char intro[] =
	"<!-- SPDX-License-Identifier: BSD-2-Clause -->\n"
	"# Explained, step by step\n\n"
	"`fabctl explain PEER[/RAIL]` shows the way of a connection from the peer's name to\n"
	"its heartbeats: the worst one to that peer, unless `--transport` says which. The\n"
	"first wrong step is marked `BAD`. What rests on it and cannot be judged is marked\n"
	"`--`, what is odd without being the fault `!!`. Steps that are well and only repeat\n"
	"what another line says are left out but with `-v`.\n\n"
	"Made from the tables in `lib/explain.c` by `test_explain` (`FABD_UPDATE=1` writes it\n"
	"anew).\n\n"
	"## The steps\n\n"
	"| step | says | judged only if these are well |\n|---|---|---|\n";

static const char between[] =
	"\n## The first wrong step\n\n"
	"The verdict ([verdicts.md](verdicts.md)) says what is wrong; the first row that\n"
	"matches says at which step it shows, and where to act. A verdict `held` or `silenced`\n"
	"is explained by the one that the connection has by itself.\n\n"
	"| verdict | evidence | step | where | act |\n|---|---|---|---|---|\n";

static void needs_text(enum explain_step s, char *buf, size_t size)
{
	buf[0] = '\0';
	for (int on = 0; on < STEP__MAX; on++)
		if (explain_step_needs(s, (enum explain_step)on))
			str_append(buf, size, "%s%s", buf[0] ? " " : "",
				   enum_name(&explain_step_names, on));
}

static void the_document(char *buf, size_t size)
{
	struct explain_wrong_row w;
	char needs[256];

	str_append(buf, size, "%s", intro);
	for (int s = 0; s < STEP__MAX; s++) {
		needs_text((enum explain_step)s, needs, sizeof(needs));
		str_append(buf, size, "| %s | %s | %s |\n", enum_name(&explain_step_names, s),
			   explain_step_about((enum explain_step)s), needs);
	}
	str_append(buf, size, "%s", between);
	for (int i = 0; explain_wrong_at(i, &w); i++)
		str_append(buf, size, "| %s | %s | %s | %s | %s |\n",
			   enum_text(&verdict_names, (int)w.verdict), w.when,
			   w.step < STEP__MAX ? enum_name(&explain_step_names, (int)w.step)
					      : "-",
			   enum_name(&fault_place_names, (int)w.place), w.act);
}

static void the_document_is_the_table(void **state)
{
	static char want[32768], got[32768];
	FILE *f = fopen(DOC, getenv("FABD_UPDATE") ? "w+" : "r");

	(void)state;
	the_document(want, sizeof(want));
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
		cmocka_unit_test(the_example_of_the_manual),
		cmocka_unit_test(one_that_is_well),
		cmocka_unit_test(a_name_without_an_address),
		cmocka_unit_test(two_rails_on_one_subnet),
		cmocka_unit_test(what_is_odd_beside_a_fault),
		cmocka_unit_test(each_fault_has_its_step),
		cmocka_unit_test(in_the_first_minute),
		cmocka_unit_test(held_ones_are_explained),
		cmocka_unit_test(any_facts_have_one_wrong_step),
		cmocka_unit_test(the_tables_are_complete),
		cmocka_unit_test(the_document_is_the_table),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
