/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#include "check.h"

#define PORTS 9
#define PEERS 6
#define RAILS 3

/* A host: ports, and how each peer is reached on each rail. */
struct host {
	struct check_expect expect;
	int n_ports, n_peers, n_rails;
	struct check_port ports[PORTS];
	struct check_reach reach[PEERS][RAILS];
	bool stuck, booting;
};

static const char *const port_names[PORTS] = {
	"mlx5_0/1", "mlx5_1/1", "mlx5_2/1", "mlx5_3/1", "mlx5_4/1",
	"mlx5_5/1", "mlx5_6/1", "mlx5_7/1", "mlx5_10/1"};
static const char *const peer_names[PEERS] = {"gpu2", "gpu10", "gpu1", "gpu3", "gpu4", "gpu5"};
static const char *const rail_names[RAILS] = {"0", "1", "2"};

static struct host well(int ports, int peers, int rails)
{
	struct host h = {.n_ports = ports, .n_peers = peers, .n_rails = rails};

	for (int i = 0; i < PORTS; i++)
		h.ports[i] = (struct check_port){.name = port_names[i],
						 .health = HEALTH_OK, .rate_mbps = 400000};
	for (int i = 0; i < PEERS; i++)
		for (int k = 0; k < RAILS; k++)
			h.reach[i][k] = (struct check_reach){
				.peer = peer_names[i], .rail = rail_names[k],
				.port = port_names[k], .verdict = VERDICT_OK,
				.connected = true};
	return h;
}

static void lost(struct check_reach *r, enum verdict v)
{
	r->connected = false;
	r->verdict = v;
}

static void port_is(struct host *h, int i, enum health health, const char *text)
{
	h->ports[i].health = health;
	(void)str_copy(h->ports[i].text, sizeof(h->ports[i].text), text);
}

/* The last summary is kept for the caller to look at. */
static char line[CHECK_SUMMARY_MAX + 16];
static enum check_status found;

static enum check_status check_host(const struct host *h)
{
	enum check_status s;
	struct check_run c;

	check_begin(&c, &h->expect);
	if (h->stuck)
		check_add(&c, CHECK_FAILED, "mlx5_2", "device-stuck");
	for (int i = 0; i < h->n_ports; i++)
		check_add_port(&c, &h->ports[i]);
	for (int i = 0; i < h->n_peers; i++)
		for (int k = 0; k < h->n_rails; k++)
			check_add_reach(&c, &h->reach[i][k]);
	check_end(&c, h->booting);
	s = c.status;
	found = c.found;
	(void)snprintf(line, sizeof(line), "%s %s", check_word(s), c.summary);
	for (int i = 1; i < c.n_problems; i++)
		assert_true(c.problems[i - 1].status >= c.problems[i].status);
	check_done(&c);
	return s;
}

static void says(const struct host *h, const char *want)
{
	(void)check_host(h);
	assert_string_equal(line, want);
}

/* ---- what is told ---- */

static void a_host_that_is_well(void **state)
{
	struct host h = well(8, 6, 3);

	(void)state;
	says(&h, "OK 8/8 ports 400G, 3/3 rails reach peers");
	h.expect = (struct check_expect){8, 3, 400000, {SHARE_ALL, 0}};
	says(&h, "OK 8/8 ports 400G, 3/3 rails reach peers");
	h.ports[4].rate_mbps = 200000;
	h.expect.rate_mbps = 200000;
	says(&h, "OK 8/8 ports 200G-400G, 3/3 rails reach peers");
	h = well(0, 1, 1);
	says(&h, "OK no RDMA ports, 1/1 rails reach peers");
	h = well(2, 0, 0);
	says(&h, "OK 2/2 ports 400G, no peers");
	h = well(0, 0, 0);
	says(&h, "UNKNOWN no RDMA device here, no peer configured");
}

static void ports_and_what_they_explain(void **state)
{
	struct host h = well(8, 6, 3);

	(void)state;
	port_is(&h, 1, HEALTH_BAD, "DOWN (leaf07/22)");
	port_is(&h, 0, HEALTH_DEGRADED, "2x of 4x");
	for (int i = 0; i < PEERS; i++)
		lost(&h.reach[i][1], i % 2 ? VERDICT_HELD : VERDICT_LOCAL_PORT);
	says(&h, "CRITICAL mlx5_1/1 DOWN (leaf07/22); mlx5_0/1 2x of 4x");
	port_is(&h, 1, HEALTH_OK, "");
	says(&h, "CRITICAL rail 1 reaches no peer (local-port); mlx5_0/1 2x of 4x");
	for (int i = 0; i < PEERS; i++)
		h.reach[i][1].why = "ib1 DOWN (no carrier)";
	says(&h, "CRITICAL rail 1 ib1 DOWN (no carrier); mlx5_0/1 2x of 4x");
	h = well(8, 6, 3);
	h.stuck = true;
	says(&h, "CRITICAL mlx5_2 device-stuck");
	h = well(3, 0, 0);
	h.ports[2].stale = true;
	says(&h, "UNKNOWN mlx5_2/1 not read for too long");
	port_is(&h, 2, HEALTH_UNKNOWN, "state no-worker");
	h.ports[2].stale = false;
	port_is(&h, 0, HEALTH_UNUSED, "never active");
	says(&h, "UNKNOWN mlx5_2/1 state no-worker");
	/* ports go by number, not by letter */
	h = well(9, 0, 0);
	port_is(&h, 8, HEALTH_BAD, "DOWN");
	port_is(&h, 2, HEALTH_BAD, "DOWN");
	says(&h, "CRITICAL mlx5_2/1 DOWN; mlx5_10/1 DOWN");
}

static void what_is_expected_of_ports(void **state)
{
	struct host h = well(7, 0, 0);

	(void)state;
	h.expect.ports = 8;
	says(&h, "CRITICAL 7 of 8 ports");
	port_is(&h, 3, HEALTH_BAD, "DOWN");
	says(&h, "CRITICAL 6 of 8 ports; mlx5_3/1 DOWN");
	h = well(8, 0, 0);
	h.expect.ports = 8;
	port_is(&h, 3, HEALTH_BAD, "DOWN");
	says(&h, "CRITICAL mlx5_3/1 DOWN");
	h = well(8, 0, 0);
	h.expect.rate_mbps = 400000;
	h.ports[4].rate_mbps = 200000;
	says(&h, "CRITICAL mlx5_4/1 200G of 400G");
	port_is(&h, 4, HEALTH_DEGRADED, "2x of 4x");
	says(&h, "CRITICAL mlx5_4/1 2x of 4x");
	h.ports[4].rate_mbps = 0;
	port_is(&h, 4, HEALTH_OK, "");
	says(&h, "CRITICAL mlx5_4/1 rate not known, wanted 400G");
	/* one more than is needed may be slow, and is told all the same */
	h = well(9, 0, 0);
	h.expect = (struct check_expect){.ports = 8, .rate_mbps = 400000};
	h.ports[8].rate_mbps = 100000;
	says(&h, "DEGRADED mlx5_10/1 100G of 400G");
}

/* The operator's word never goes unsaid. */
static void ports_that_are_set_ok(void **state)
{
	struct host h = well(8, 0, 0);

	(void)state;
	h.ports[2].set_ok = h.ports[3].set_ok = true;
	assert_int_equal(check_host(&h), CHECK_OK);
	assert_string_equal(line, "OK 8/8 ports 400G, no peers; mlx5_2/1 set ok; mlx5_3/1 set ok");
	port_is(&h, 0, HEALTH_BAD, "DOWN");
	assert_int_equal(check_host(&h), CHECK_FAILED);
	assert_string_equal(line, "CRITICAL mlx5_0/1 DOWN; mlx5_2/1 set ok; mlx5_3/1 set ok");
	for (int i = 1; i < 8; i++)
		h.ports[i].set_ok = true;
	assert_int_equal(check_host(&h), CHECK_FAILED);
	assert_non_null(strstr(line, "; mlx5_1/1 set ok; mlx5_2/1 set ok; mlx5_3/1 set ok; 4 more set ok"));
}

static void rails(void **state)
{
	struct host h = well(3, 6, 3);

	(void)state;
	/* a peer that is down is not this host's fault */
	lost(&h.reach[0][2], VERDICT_RDMA_BROKEN);
	says(&h, "OK 3/3 ports 400G, 3/3 rails reach peers");
	h.expect.peers = (struct check_share){SHARE_ALL, 0};
	says(&h, "CRITICAL rail 2 does not reach gpu2 (rdma-broken)");
	lost(&h.reach[1][2], VERDICT_PEER_DOWN);
	lost(&h.reach[2][2], VERDICT_PEER_DOWN);
	lost(&h.reach[3][2], VERDICT_PEER_DOWN);
	says(&h, "CRITICAL rail 2 does not reach gpu1, gpu2, gpu3 and others (peer-down)");
	h.expect.peers = (struct check_share){SHARE_COUNT, 2};
	says(&h, "DEGRADED rail 2 reaches few peers");
	h.expect.peers = (struct check_share){SHARE_PERCENT, 34};
	says(&h, "CRITICAL rail 2 does not reach gpu1, gpu2, gpu3 and others (peer-down)");
	for (int i = 0; i < PEERS; i++)
		lost(&h.reach[i][2], VERDICT_NETWORK);
	h.expect.peers = (struct check_share){SHARE_UNSET, 0};
	says(&h, "CRITICAL rail 2 reaches no peer (network)");
	/* one that is on its way may still do */
	lost(&h.reach[5][2], VERDICT_UNKNOWN);
	says(&h, "UNKNOWN rail 2 being connected");
	/* gone on purpose is no failure */
	for (int i = 0; i < PEERS; i++)
		lost(&h.reach[i][2], i % 2 ? VERDICT_PEER_STOPPED : VERDICT_SILENCED);
	h.expect.peers = (struct check_share){SHARE_ALL, 0};
	says(&h, "OK 3/3 ports 400G, 2/3 rails reach peers");
	h = well(3, 6, 3);
	for (int i = 0; i < 4; i++)
		h.reach[i][1].verdict = i % 2 ? VERDICT_DEGRADED : VERDICT_NETWORK;
	says(&h, "DEGRADED rail 1 lossy or slow");
	for (int i = 0; i < PEERS; i++)
		h.reach[i][1].verdict = VERDICT_CONTROL_BLOCKED;
	says(&h, "DEGRADED rail 1 control-blocked");
	h = well(3, 6, 2);
	h.expect.rails = 3;
	says(&h, "CRITICAL 2 of 3 rails have peers");
	h = well(3, 2, 2);
	h.expect.peers = (struct check_share){SHARE_COUNT, 3};
	says(&h, "CRITICAL rail 0 has fewer than 3 peers; rail 1 has fewer than 3 peers");
}

static void just_booted(void **state)
{
	struct host h = well(2, 1, 1);

	(void)state;
	h.booting = true;
	says(&h, "OK 2/2 ports 400G, 1/1 rails reach peers");
	port_is(&h, 1, HEALTH_BAD, "DOWN");
	says(&h, "UNKNOWN just booted; mlx5_1/1 DOWN");
	assert_int_equal(found, CHECK_FAILED);
}

static void only_so_much_in_a_line(void **state)
{
	struct host h = well(9, 0, 0);

	(void)state;
	for (int i = 0; i < 9; i++)
		port_is(&h, i, HEALTH_BAD, "DOWN");
	says(&h, "CRITICAL mlx5_0/1 DOWN; mlx5_1/1 DOWN; mlx5_2/1 DOWN; mlx5_3/1 DOWN; "
		 "mlx5_4/1 DOWN; mlx5_5/1 DOWN; and more");
}

static void shares(void **state)
{
	static const char *const good[] = {"all", "0", "100", "90%", "100%", "1000000"};
	static const char *const bad[] = {"", "most", "ALL of", "-1", "101%", "5 %",
					  "1000001", "99999999999", "5%%", "%"};
	struct check_share s;
	char buf[24];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(good); i++) {
		assert_int_equal(check_share_parse(good[i], &s), 0);
		assert_string_equal(check_share_text(&s, buf), good[i]);
	}
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_true(check_share_parse(bad[i], &s) < 0);
}

/* ---- what a port says of itself ---- */

static void steady_words(void **state)
{
	/* clang-format off */
	static const struct {
		enum health health;
		struct port_reason r;
		const char *want;
	} cases[] = {
		{HEALTH_BAD, {.code = REASON_LINK, .text = "link DOWN POLLING"}, "DOWN (leaf07/22)"},
		{HEALTH_DEGRADED, {.code = REASON_WIDTH, .text = "width 2x of 4x"}, "2x of 4x"},
		{HEALTH_DEGRADED, {.code = REASON_SPEED, .text = "speed EDR of NDR"}, "EDR of NDR"},
		{HEALTH_DEGRADED, {.code = REASON_COUNTER, .text = "symbol_error 180, limit 120/h"},
		 "symbol_error over its limit"},
		{HEALTH_DEGRADED, {.code = REASON_FLAP, .text = "flapped 7 times, penalty 2811, until 750"},
		 "flapping"},
		{HEALTH_DEGRADED, {.code = REASON_NOTICE, .text = "notice 129 (local link integrity) 4 times"},
		 "notice 129"},
		{HEALTH_DEGRADED, {.code = REASON_SETTLING, .text = "settling for 30 s"}, "settling"},
		{HEALTH_DEGRADED, {.code = REASON_BASELINE, .text = "width 2x, was 4x"}, "width 2x, was 4x"},
		{HEALTH_BAD, {.code = REASON_OVERRIDE, .text = "set bad by root"}, "set bad by root"},
		{HEALTH_BAD, {.code = REASON_REMOTE, .text = "far end leaf07/22 is marked bad"},
		 "far end leaf07/22 is marked bad"},
		{HEALTH_DEGRADED, {.code = REASON_PCIE, .text = "PCIe x8 of x16"}, "PCIe x8 of x16"},
		{HEALTH_UNKNOWN, {.code = REASON_STATE_UNKNOWN, .text = "state no-worker"}, "state no-worker"},
		{HEALTH_UNUSED, {.code = REASON_NOT_EXPECTED, .text = "never active, not expected"},
		 "never active, not expected"},
	};
	/* clang-format on */
	bool seen[REASON__MAX] = {false};
	struct check_port got;
	struct port p;

	(void)state;
	port_init(&p, "mlx5_3", 3, 1, (struct mono){1});
	(void)port_set_states(&p, 1, 2);
	(void)str_copy(p.last_remote, sizeof(p.last_remote), "leaf07/22");
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		p.health = cases[i].health;
		p.watch.n_reasons = 1;
		p.watch.reasons[0] = cases[i].r;
		check_port_of(&p, "mlx5_3/1", false, &got);
		assert_string_equal(got.text, cases[i].want);
		seen[cases[i].r.code] = true;
	}
	for (int i = 0; i < REASON__MAX; i++)
		assert_true(seen[i]);
	p.health = HEALTH_DEGRADED;
	p.watch.n_reasons = 2;
	p.watch.reasons[0] = cases[1].r;
	p.watch.reasons[1] = cases[3].r;
	check_port_of(&p, "mlx5_3/1", false, &got);
	assert_string_equal(got.text, "2x of 4x, symbol_error over its limit");
	port_done(&p);
}

/* ---- a fault more never makes it better ---- */

static uint64_t rnd = 11;

static unsigned draw(unsigned n)
{
	rnd = mix64(rnd);
	return (unsigned)(rnd >> 20) % n;
}

static const enum verdict faults[] = {
	VERDICT_LOCAL_STALL, VERDICT_NO_ROUTE,	VERDICT_NO_SM,	    VERDICT_REMOTE_PORT,
	VERDICT_AUTH_FAILED, VERDICT_REFUSED,	VERDICT_RDMA_BROKEN, VERDICT_PEER_DOWN,
	VERDICT_NETWORK,     VERDICT_LOCAL_PORT, VERDICT_UNKNOWN};

static void break_port(struct check_port *p)
{
	switch (draw(4)) {
	case 0:
		if (p->health == HEALTH_OK)
			p->health = HEALTH_DEGRADED;
		break;
	case 1:
		if (p->health != HEALTH_UNUSED)
			p->health = HEALTH_BAD;
		break;
	case 2:
		p->stale = true;
		break;
	default:
		p->rate_mbps /= 2;
		break;
	}
}

static void break_one(struct host *h)
{
	struct check_reach *r = &h->reach[draw((unsigned)h->n_peers)][draw((unsigned)h->n_rails)];

	switch (draw(4)) {
	case 0:
		break_port(&h->ports[draw((unsigned)h->n_ports)]);
		break;
	case 1:
		h->stuck = true;
		break;
	case 2:
		if (r->connected && r->verdict == VERDICT_OK)
			r->verdict = draw(3)	? VERDICT_DEGRADED
				     : draw(2) ? VERDICT_NETWORK
						: VERDICT_CONTROL_BLOCKED;
		break;
	default:
		/* One more that is not reached, as far as it was. */
		if (r->connected)
			lost(r, faults[draw(ARRAY_LEN(faults))]);
		break;
	}
}

static struct host any_host(void)
{
	struct host h = well(1 + (int)draw(PORTS), 1 + (int)draw(PEERS), 1 + (int)draw(RAILS));

	h.expect.ports = draw(2) ? draw(PORTS + 1) : 0;
	h.expect.rails = draw(3) ? 0 : draw(RAILS + 1);
	h.expect.rate_mbps = draw(2) ? 200000 : 0;
	h.expect.peers.kind = draw(4);
	h.expect.peers.n = h.expect.peers.kind == SHARE_PERCENT ? draw(101) : draw(PEERS);
	h.booting = !draw(8);
	for (int i = 0; i < h.n_ports; i++)
		if (!draw(8))
			h.ports[i].health = HEALTH_UNUSED;
	return h;
}

static void no_fault_makes_it_better(void **state)
{
	int worse = 0;

	(void)state;
	for (int round = 0; round < 4000; round++) {
		struct host h = any_host();
		enum check_status before = check_host(&h), found_before = found, s;

		for (int n = 0; n < 12; n++) {
			char was[sizeof(line)];

			(void)str_copy(was, sizeof(was), line);
			break_one(&h);
			s = check_host(&h);
			if (s < before || found < found_before)
				fail_msg("from \"%s\" to \"%s\"", was, line);
			worse += s > before;
			before = s;
			found_before = found;
		}
	}
	assert_true(worse > 2000);
}

/* Old facts are never well, whatever else is. */
static void stale_is_never_well(void **state)
{
	(void)state;
	for (int round = 0; round < 2000; round++) {
		struct host h = any_host();
		int i = (int)draw((unsigned)h.n_ports);

		if (h.ports[i].health == HEALTH_UNUSED || (h.expect.ports))
			continue;
		h.ports[i].stale = true;
		assert_true(check_host(&h) >= CHECK_UNKNOWN);
	}
}

/* In whatever order things come, the line is the same. */
static void order_does_not_matter(void **state)
{
	(void)state;
	for (int round = 0; round < 500; round++) {
		struct host h = any_host(), turned;
		char was[sizeof(line)];

		for (int n = 0; n < 6; n++)
			break_one(&h);
		(void)check_host(&h);
		(void)str_copy(was, sizeof(was), line);
		turned = h;
		for (int i = 0; i < h.n_ports; i++)
			turned.ports[i] = h.ports[h.n_ports - 1 - i];
		for (int i = 0; i < h.n_peers; i++)
			for (int k = 0; k < h.n_rails; k++)
				turned.reach[i][k] =
					h.reach[h.n_peers - 1 - i][h.n_rails - 1 - k];
		says(&turned, was);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_host_that_is_well),
		cmocka_unit_test(ports_and_what_they_explain),
		cmocka_unit_test(what_is_expected_of_ports),
		cmocka_unit_test(ports_that_are_set_ok),
		cmocka_unit_test(rails),
		cmocka_unit_test(just_booted),
		cmocka_unit_test(only_so_much_in_a_line),
		cmocka_unit_test(shares),
		cmocka_unit_test(steady_words),
		cmocka_unit_test(no_fault_makes_it_better),
		cmocka_unit_test(stale_is_never_well),
		cmocka_unit_test(order_does_not_matter),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
