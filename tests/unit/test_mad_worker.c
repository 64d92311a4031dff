/* SPDX-License-Identifier: BSD-2-Clause */
/* fabd-mad's messages to main: facts, what changes, and a main that is broken. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "log.h"
#include "mad.h"

#include "../support/mad_rig.h"

/* ---- facts ---- */

static void facts_of_a_port(void **state)
{
	struct ctx *c = *state;
	union wm_any m;

	start(c, 0);
	expect(c, &m, WM_DEVICE);
	assert_string_equal(m.device.name, "mlx5_0");
	assert_int_equal(m.device.device_index, 5);
	assert_false(m.device.has_verbs);
	assert_string_equal(m.device.facts.node_type, "ca");
	assert_string_equal(m.device.facts.transport, "infiniband");
	assert_true(m.device.facts.node_guid == UINT64_C(0x0002c90300000000));
	assert_string_equal(m.device.facts.fw, "28.39.1002");
	assert_string_equal(m.device.facts.node_desc, "gpu0417 ?HCA-1");
	assert_int_equal(m.device.facts.why[DF_NUM_PORTS], WHY_NO_VERBS);
	expect(c, &m, WM_PORT);
	assert_int_equal(m.port.port, 1);
	assert_int_equal(m.port.source, SOURCE_START);
	assert_int_equal(m.port.state, 4);
	assert_int_equal(m.port.phys_state, 5);
	assert_int_equal(m.port.lid, 0x1a);
	assert_int_equal(m.port.lmc, 2);
	assert_int_equal(m.port.sm_lid, 1);
	assert_int_equal(m.port.sm_sl, 3);
	assert_int_equal(m.port.cap_mask, 0x2651e848);
	assert_int_equal(m.port.link_layer, 1);
	assert_true(m.port.has_smi && !m.port.has_verbs);
	assert_true(m.port.port_guid == UINT64_C(0x0002c90300000001));
	assert_int_equal(m.port.missing &
				 (1U << WMP_STATE | 1U << WMP_LID | 1U << WMP_SM |
				  1U << WMP_CAPS | 1U << WMP_GUID),
			 0);
	assert_int_equal(m.port.missing_why, WHY_NO_VERBS);
	expect(c, &m, WM_PKEYS);
	assert_int_equal(m.pkeys.n, 2);
	assert_int_equal(m.pkeys.pkey[1], 0x8001);
	expect(c, &m, WM_GIDS);
	assert_int_equal(m.gids.n, 2); /* the empty one is left out */
	assert_int_equal(m.gids.gid[1].index, 2);
	assert_int_equal(m.gids.gid[1].gid[15], 0xaa);
	assert_int_equal(m.gids.gid[0].type, 0);
	expect_nothing(c);
}

static void files_that_lie_cost_their_own_field(void **state)
{
	struct ctx *c = *state;
	union wm_any m;

	put_file(c, "fast\n", "infiniband/mlx5_0/ports/1/state");
	put_file(c, "0xfffff\n", "infiniband/mlx5_0/ports/1/lid");
	put_file(c, "-1\n", "infiniband/mlx5_0/ports/1/sm_sl");
	put_file(c, "", "infiniband/mlx5_0/ports/1/cap_mask");
	put_file(c, "fe80::1\n", "infiniband/mlx5_0/ports/1/gids/0");
	put_file(c, "zz\n", "infiniband/mlx5_0/ports/1/pkeys/0");
	put_file(c, "x:y\n", "infiniband/mlx5_0/node_guid");
	put_file(c, "99: toaster\n", "infiniband/mlx5_0/node_type");
	remove_tree(c, "sys/class/infiniband/mlx5_0/fw_ver");
	start(c, 0);
	expect(c, &m, WM_DEVICE);
	assert_int_equal(m.device.facts.why[DF_NODE_GUID], WHY_UNREADABLE);
	assert_int_equal(m.device.facts.why[DF_FW], WHY_UNREADABLE);
	assert_int_equal(m.device.facts.why[DF_SYS_IMAGE_GUID], WHY_NONE);
	assert_string_equal(m.device.facts.node_type, "unknown");
	expect(c, &m, WM_PORT);
	assert_int_equal(m.port.missing_why, WHY_UNREADABLE);
	for (int bit = 0; bit < WMP__MAX; bit++)
		if (bit != WMP_LINK_LAYER)
			assert_true(m.port.missing & (1U << bit));
	assert_int_equal(m.port.phys_state, 5);
	assert_int_equal(m.port.lmc, 2);
	expect(c, &m, WM_PKEYS);
	assert_int_equal(m.pkeys.n, 0);
	assert_int_equal(m.pkeys.why, WHY_UNREADABLE);
	assert_true(m.pkeys.last);
	expect(c, &m, WM_GIDS);
	assert_int_equal(m.gids.why, WHY_UNREADABLE);
	expect_nothing(c);
}

static void umad_nodes_that_lie_are_no_ports(void **state)
{
	struct ctx *c = *state;
	union wm_any m;

	put_umad(c, 1, "../../etc", 1);
	put_umad(c, 2, "mlx5_2", 0);
	put_umad(c, 3, "mlx5_3", 255);
	put_umad(c, 4, "", 1);
	put_file(c, "mlx5_5\n", "infiniband_mad/umad5/ibdev");
	put_umad(c, 6,
		 "a_name_that_is_longer_than_any_that_a_kernel_gives_to_its_devices",
		 1);
	put_umad(c, 7, "opa", 254);
	start(c, 0);
	expect(c, &m, WM_DEVICE);
	expect_port(c, &m);
	expect(c, &m, WM_DEVICE);
	assert_string_equal(m.device.name, "opa");
	expect_port(c, &m);
	assert_int_equal(m.port.port, 254);
	expect_nothing(c);
}

static void long_tables_come_in_parts(void **state)
{
	struct ctx *c = *state;
	union wm_any m;
	char text[64];
	int n = 0;

	for (int i = 0; i < 600; i++) {
		(void)snprintf(text, sizeof(text), "0x%04x\n", i);
		put_file(c, text, "infiniband/mlx5_0/ports/1/pkeys/%d", i);
	}
	for (int i = 0; i < 130; i++) {
		(void)snprintf(text, sizeof(text),
			       "fe80:0000:0000:0000:0000:0000:0000:%04x\n", i);
		put_file(c, text, "infiniband/mlx5_0/ports/1/gids/%d", i);
	}
	start(c, 0);
	expect(c, &m, WM_DEVICE);
	expect(c, &m, WM_PORT);
	do {
		expect(c, &m, WM_PKEYS);
		assert_int_equal(m.pkeys.first, n);
		for (int i = 0; i < m.pkeys.n; i++)
			assert_int_equal(m.pkeys.pkey[i], n + i);
		n += m.pkeys.n;
	} while (!m.pkeys.last);
	assert_int_equal(n, 600);
	n = 0;
	do {
		expect(c, &m, WM_GIDS);
		assert_int_equal(m.gids.first, n);
		n += m.gids.n;
	} while (!m.gids.last);
	assert_int_equal(n, 130);
	expect_nothing(c);
}

static void an_ethernet_port_has_no_smi(void **state)
{
	struct ctx *c = *state;
	union wm_any m;

	put_file(c, "Ethernet\n", "infiniband/mlx5_0/ports/1/link_layer");
	put_file(c, "RoCE v2\n", "infiniband/mlx5_0/ports/1/gid_attrs/types/2");
	start(c, 0);
	expect(c, &m, WM_DEVICE);
	expect(c, &m, WM_PORT);
	assert_int_equal(m.port.link_layer, 2);
	assert_false(m.port.has_smi);
	expect(c, &m, WM_PKEYS);
	expect(c, &m, WM_GIDS);
	assert_int_equal(m.gids.gid[0].type, 1);
	assert_int_equal(m.gids.gid[1].type, 2);
	say_get(c, "mlx5_0", 1);
	expect_result(c, WM_MAD_NO_PORT, EPROTONOSUPPORT);
	assert_int_equal(fake_umad_opens(), 0);
	/* IsSMDisabled: SMPs go through another device. */
	put_file(c, "InfiniBand\n", "infiniband/mlx5_0/ports/1/link_layer");
	put_file(c, "0x400\n", "infiniband/mlx5_0/ports/1/cap_mask");
	say(c, WM_POLL, &(struct wm_poll){0}, sizeof(struct wm_poll));
	assert_int_equal(turn(c), 0);
	expect(c, &m, WM_DEVICE);
	expect_port(c, &m);
	assert_false(m.port.has_smi);
}

/* ---- what changes ---- */

static void polls_tell_what_changed(void **state)
{
	struct ctx *c = *state;
	union wm_any m;

	start(c, 1000);
	expect(c, &m, WM_DEVICE);
	expect_port(c, &m);
	put_file(c, "0x1b\n", "infiniband/mlx5_0/ports/1/lid");
	expect_nothing(c); /* not yet */
	c->now = mad_worker_deadline(c->worker);
	assert_int_equal(turn(c), 0);
	expect(c, &m, WM_PORT);
	assert_int_equal(m.port.lid, 0x1b);
	assert_int_equal(m.port.source, SOURCE_POLL);
	c->now = mad_worker_deadline(c->worker);
	expect_nothing(c);
	/* A key that came with a change of the port. */
	put_file(c, "0x0002\n", "infiniband/mlx5_0/ports/1/pkeys/2");
	put_file(c, "1: DOWN\n", "infiniband/mlx5_0/ports/1/state");
	c->now = mad_worker_deadline(c->worker);
	assert_int_equal(turn(c), 0);
	expect(c, &m, WM_PORT);
	assert_int_equal(m.port.state, 1);
	expect(c, &m, WM_PKEYS);
	assert_int_equal(m.pkeys.n, 3);
	put_file(c, "gpu0418\n", "infiniband/mlx5_0/node_desc");
	c->now = mad_worker_deadline(c->worker);
	assert_int_equal(turn(c), 0);
	expect(c, &m, WM_DEVICE);
	assert_string_equal(m.device.facts.node_desc, "gpu0418");
	expect_nothing(c);
}

static void devices_come_and_go(void **state)
{
	struct ctx *c = *state;
	union wm_any m;

	start(c, 200);
	expect(c, &m, WM_DEVICE);
	expect_port(c, &m);
	put_umad(c, 1, "mlx5_1", 1);
	put_umad(c, 2, "mlx5_1", 2);
	put_device(c, "mlx5_1");
	put_port(c, "mlx5_1", 1);
	put_port(c, "mlx5_1", 2);
	c->now = mad_worker_deadline(c->worker);
	assert_int_equal(turn(c), 0);
	expect(c, &m, WM_DEVICE);
	assert_string_equal(m.device.name, "mlx5_1");
	expect_port(c, &m);
	expect_port(c, &m);
	assert_int_equal(m.port.port, 2);
	say_get(c, "mlx5_0", 1);
	assert_int_equal(turn(c), 0);
	remove_tree(c, "sys/class/infiniband_mad/umad0");
	remove_tree(c, "sys/class/infiniband_mad/umad2");
	c->now = mad_worker_deadline(c->worker);
	assert_int_equal(turn(c), 0);
	expect(c, &m, WM_PORT_GONE);
	assert_string_equal(m.gone.device, "mlx5_1");
	assert_int_equal(m.gone.port, 2);
	/* The request in flight ends before its port is told to be gone. */
	expect(c, &m, WM_SMP_RESULTS);
	assert_int_equal(m.results.result[0].status, WM_MAD_SEND_FAILED);
	assert_int_equal(m.results.result[0].error, ENODEV);
	expect(c, &m, WM_PORT_GONE);
	assert_string_equal(m.gone.device, "mlx5_0");
	assert_int_equal(m.gone.port, 1);
	expect(c, &m, WM_PORT_GONE);
	assert_string_equal(m.gone.device, "mlx5_0");
	assert_int_equal(m.gone.port, 0);
	say_get(c, "mlx5_0", 1);
	expect_result(c, WM_MAD_NO_PORT, ENODEV);
}

static void no_device_at_all(void **state)
{
	struct ctx *c = *state;
	union wm_any m;

	remove_tree(c, "sys");
	start(c, 200);
	expect_nothing(c);
	say_get(c, "mlx5_0", 1);
	expect_result(c, WM_MAD_NO_PORT, ENODEV);
	for (int i = 0; i < 10; i++) {
		c->now = mad_worker_deadline(c->worker);
		expect_nothing(c);
	}
	put_umad(c, 0, "mlx5_0", 1);
	c->now = mad_worker_deadline(c->worker);
	assert_int_equal(turn(c), 0);
	expect(c, &m, WM_DEVICE);
	expect_port(c, &m);
}

static void only_the_device_it_is_for(void **state)
{
	struct ctx *c = *state;
	union wm_any m;

	put_umad(c, 1, "mlx5_1", 1);
	say_init(c, "mlx5_1", 0);
	assert_int_equal(turn(c), 0);
	expect(c, &m, WM_HELLO);
	assert_string_equal(m.hello.device, "mlx5_1");
	expect(c, &m, WM_DEVICE);
	assert_string_equal(m.device.name, "mlx5_1");
	expect_port(c, &m);
	expect_nothing(c);
}

/* ---- a main that is broken ---- */

static void bad_messages_end_the_connection(void **state)
{
	struct ctx *c = *state;
	uint8_t noise[64] = {1};
	union wm_any m;
	struct wm_ping ping = {.seq = 3};

	log_level(LOG_EMERG);
	for (int i = 0; i < 5; i++) {
		start(c, 0);
		while (next(c, &m))
			;
		switch (i) {
		case 0:
			assert_int_equal(send(c->main_fd, noise, sizeof(noise), 0), 64);
			break;
		case 1:
			assert_int_equal(send(c->main_fd, noise, 1, 0), 1);
			break;
		case 2:
			say_init(c, "", 0);
			break;
		case 3:
			say(c, WM_EP_RESET, &(struct wm_ep){.conn_id = 1},
			    sizeof(struct wm_ep));
			break;
		default:
			say_get(c, "", 1);
			break;
		}
		assert_int_equal(turn(c), -EPROTO);
		expect(c, &m, WM_GOODBYE);
		assert_int_equal(m.goodbye.why, GOODBYE_FAILED);
		assert_int_equal(recv(c->main_fd, &m, sizeof(m), 0), 0);
		(void)close(c->main_fd);
		c->main_fd = connect_main(c);
	}
	say(c, WM_PING, &ping, sizeof(ping)); /* before INIT */
	assert_int_equal(turn(c), -EPROTO);
	assert_int_equal(recv(c->main_fd, &m, sizeof(m), 0), 0);
}

static void a_main_that_does_not_read(void **state)
{
	struct ctx *c = *state;
	int r = 0;

	log_level(LOG_EMERG);
	start(c, 0);
	for (int i = 0; i < 100000 && !r; i++) {
		say_get(c, "mlx5_9", 1);
		r = turn(c);
	}
	assert_int_equal(r, -ENOBUFS);
}

static void pings_and_exit(void **state)
{
	struct ctx *c = *state;
	struct wm_ping ping = {.seq = 99};
	struct wm_exit bye = {0};
	union wm_any m;

	start(c, 0);
	while (next(c, &m))
		;
	wm_header(&ping, WM_PING, sizeof(ping), GENERATION - 1);
	assert_int_equal(send(c->main_fd, &ping, sizeof(ping), 0), sizeof(ping));
	expect_nothing(c);
	say(c, WM_PING, &ping, sizeof(ping));
	assert_int_equal(turn(c), 0);
	expect(c, &m, WM_PONG);
	assert_int_equal(m.pong.seq, 99);
	say(c, WM_EXIT, &bye, sizeof(bye));
	assert_int_equal(turn(c), -ECONNRESET);
	expect(c, &m, WM_GOODBYE);
	assert_int_equal(m.goodbye.why, GOODBYE_ASKED);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
int main(void)
{
	const struct CMUnitTest tests[] = {
		T(facts_of_a_port),
		T(files_that_lie_cost_their_own_field),
		T(umad_nodes_that_lie_are_no_ports),
		T(long_tables_come_in_parts),
		T(an_ethernet_port_has_no_smi),
		T(polls_tell_what_changed),
		T(devices_come_and_go),
		T(no_device_at_all),
		T(only_the_device_it_is_for),
		T(bad_messages_end_the_connection),
		T(a_main_that_does_not_read),
		T(pings_and_exit),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
