/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the worker tells of a device that lies, changes, is of an odd kind or dies, and
 * which devices it leaves to facts alone.
 */
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "facts.h"
#include "link.h"
#include "script.h"

struct rig_facts {
	struct worker w;
	struct facts f;
	struct facts_due due;
	int devices, ports, gid_tables, goodbyes;
	struct wm_device device;
	struct wm_port port;
	struct wm_gids gids;
	struct wm_goodbye goodbye;
};

int netdev_of_port(uint32_t device_index, uint32_t port, uint32_t *ret_index,
		   char ret_name[EP_IF_MAX])
{
	(void)device_index;
	(void)port;
	*ret_index = 7;
	(void)str_copy(ret_name, EP_IF_MAX, "eth7");
	return 0;
}

static void take(struct rig_facts *r)
{
	union facts_message m;

	while (ring_pop(&r->w.facts_out, &m)) {
		char why[128];

		if (wm_check(&m, m.h.length, false, why, sizeof(why)) != 0)
			fail_msg("main would not take this: %s", why);
		switch (m.h.type) {
		case WM_DEVICE:
			r->devices++;
			r->device = m.device;
			break;
		case WM_PORT:
			r->ports++;
			r->port = m.port;
			break;
		case WM_GIDS:
			r->gid_tables++;
			r->gids = m.gids;
			break;
		case WM_GOODBYE:
			r->goodbyes++;
			r->goodbye = m.goodbye;
			break;
		default:
			break;
		}
	}
}

/* The world is to be set up after this and before facts_start(). */
static struct rig_facts *facts_new(void)
{
	struct rig_facts *r = xcalloc(1, sizeof(*r));
	struct wm_init init = {
		.device = "fake0", .device_index = 3, .max_endpoints = 4};

	fk_begin();
	wm_header(&init, WM_INIT, sizeof(init), 1);
	worker_init(&r->w, &init);
	r->f.w = &r->w;
	return r;
}

static void facts_free(struct rig_facts *r)
{
	struct ring *rings[] = {&r->w.ctl_to_cm, &r->w.ctl_to_hot, &r->w.cm_to_hot,
				&r->w.hot_to_cm, &r->w.facts_out,  &r->w.cm_out,
				&r->w.hot_out, &r->w.rounds_out};
	int fds[] = {r->w.wake_ctl, r->w.wake_facts, r->w.wake_cm, r->w.wake_hot};

	facts_done(&r->f);
	fk_end();
	for (size_t i = 0; i < ARRAY_LEN(rings); i++)
		ring_done(rings[i]);
	for (size_t i = 0; i < ARRAY_LEN(fds); i++)
		(void)close(fds[i]);
	free(r);
}

static struct rig_facts *facts_running(void)
{
	struct rig_facts *r = facts_new();

	assert_int_equal(facts_start(&r->f), 0);
	take(r);
	return r;
}

static void turn(struct rig_facts *r)
{
	facts_turn(&r->f, &r->due);
	take(r);
}

/* ---- which devices */

/* Some libraries die inside rdma_get_cm_event() on a zero GUID: nothing of the
 * connection manager is called for such a device. */
static void a_zero_guid_is_for_facts_only(void **state)
{
	(void)state;
	for (int zero = 0; zero < 2; zero++) {
		struct rig_facts *r = facts_new();

		if (zero)
			fk.node_guid = 0;
		assert_int_equal(facts_start(&r->f), 0);
		take(r);
		assert_int_equal(atomic_load(&r->w.device_state),
				 zero ? DEVICE_FACTS_ONLY : DEVICE_READY);
		assert_int_equal(!!strstr(r->w.why_facts_only, "GUID"), zero);
		facts_free(r);
	}
}

/* Its name and GUID are as before, its index is not: a device that was reset is not the
 * one that main has asked for. */
static void the_same_name_and_guid_is_not_the_same_device(void **state)
{
	struct rig_facts *r = facts_new();

	(void)state;
	fk.index = 4;
	assert_true(facts_start(&r->f) < 0);
	take(r);
	assert_int_equal(r->goodbyes, 1);
	assert_int_equal(r->goodbye.why, GOODBYE_FAILED);
	assert_int_equal(fk.made[FK_CONTEXT], 0);
	facts_free(r);
}

/* Not there yet, no right yet: said, and the next worker finds it. */
static void a_device_that_cannot_be_opened_is_said(void **state)
{
	static const struct {
		const char *call;
		int err;
	} rows[] = {{"ibv_get_device_list", ENOSYS}, {"ibv_get_device_list", 0},
		    {"ibv_open_device", EACCES},     {"ibv_open_device", ENODEV},
		    {"ibv_open_device", 0},	     {NULL, 0}};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct rig_facts *r = facts_new();

		if (rows[i].call)
			fk_fail(rows[i].call, 0, 1, FK_USUAL, rows[i].err);
		else
			fk.no_device = true;
		assert_true(facts_start(&r->f) < 0);
		take(r);
		assert_int_equal(r->goodbyes, 1);
		assert_non_null(strstr(r->goodbye.text, "cannot open fake0"));
		facts_free(r);
	}
}

/* Every node type, transport and link layer, those to come as well: the facts are told,
 * and only what has a connection manager gets connections. */
static void any_kind_of_device_has_facts(void **state)
{
	(void)state;
	for (int node = -1; node < 10; node++)
		for (int transport = -1; transport < 8; transport++)
			for (int layer = 0; layer < 6; layer++) {
				struct rig_facts *r = facts_new();
				bool cm = transport == IBV_TRANSPORT_IB ||
					  transport == IBV_TRANSPORT_IWARP;

				fk.node_type = (enum ibv_node_type)node;
				fk.transport = (enum ibv_transport_type)transport;
				fk.port.link_layer = (uint8_t)layer;
				fk_verbs_reset();
				assert_int_equal(facts_start(&r->f), 0);
				take(r);
				assert_int_equal(r->devices, 1);
				assert_int_equal(r->ports, 1);
				assert_int_equal(r->goodbyes, 0);
				assert_int_equal(r->port.state, IBV_PORT_ACTIVE);
				assert_int_equal(atomic_load(&r->w.device_state),
						 cm ? DEVICE_READY : DEVICE_FACTS_ONLY);
				if (layer == IBV_LINK_LAYER_INFINIBAND)
					assert_false(r->port.missing & 1u << WMP_LID);
				facts_free(r);
			}
}

/* ---- what is read */

/* Any width and speed code: told as it is, and unknown ones stay unknown. */
static void any_width_and_speed_is_told(void **state)
{
	struct rig_facts *r = facts_running();
	char text[24];

	(void)state;
	for (unsigned code = 0; code < 256; code++) {
		uint32_t rate;

		fk.port.active_width = (uint8_t)code;
		fk.port.active_speed = (uint8_t)(255 - code);
		atomic_store(&r->w.reread, true);
		turn(r);
		assert_int_equal(r->port.width, code);
		assert_int_equal(r->port.speed, 255 - code);
		rate = link_rate_mbps(r->port.width,
				      link_speed_from_verbs(r->port.speed));
		if (!link_width_lanes(code))
			assert_non_null(strstr(link_width_text(code, text), "unknown"));
		if (!link_width_lanes(code) ||
		    link_speed_from_verbs(255 - code) == SPEED_UNKNOWN)
			assert_int_equal(rate, 0);
		assert_true(rate <= 12 * 200000u);
	}
	facts_free(r);
}

static void any_state_and_mtu_is_told(void **state)
{
	struct rig_facts *r = facts_running();

	(void)state;
	for (unsigned v = 0; v < 256; v++) {
		fk.port.state = (enum ibv_port_state)v;
		fk.port.phys_state = (uint8_t)v;
		fk.port.active_mtu = fk.port.max_mtu = (enum ibv_mtu)v;
		fk.port.lmc = fk.port.sm_sl = (uint8_t)v;
		fk.port.max_vl_num = (uint8_t)v;
		atomic_store(&r->w.reread, true);
		turn(r);
		assert_int_equal(r->port.state, v);
		assert_int_equal(r->goodbyes, 0);
	}
	facts_free(r);
}

static void gid_at(int i, uint32_t index, uint8_t last, uint32_t type)
{
	fk.gids[i] = (struct ibv_gid_entry){
		.gid_index = index, .port_num = 1, .gid_type = type, .ndev_ifindex = 7};
	fk.gids[i].gid.raw[0] = 0xfd;
	fk.gids[i].gid.raw[15] = last;
	fk.n_gids = MAX(fk.n_gids, i + 1);
}

/* The index of a GID is not its identity: after each event, and by the poll where there
 * was none, the table is the one that is there. */
static void gids_are_read_again(void **state)
{
	struct rig_facts *r = facts_new();
	int tables;

	(void)state;
	gid_at(0, 0, 1, IBV_GID_TYPE_ROCE_V1);
	gid_at(1, 1, 1, IBV_GID_TYPE_ROCE_V2);
	gid_at(2, 5, 9, 77); /* a type to come */
	assert_int_equal(facts_start(&r->f), 0);
	take(r);
	assert_int_equal(r->gids.n, 3);
	assert_int_equal(r->gids.gid[1].type, 2);
	assert_int_equal(r->gids.gid[2].type, 255);
	tables = r->gid_tables;
	turn(r);
	assert_int_equal(r->gid_tables, tables); /* nothing new */
	for (int by_poll = 0; by_poll < 2; by_poll++)
		for (uint8_t round = 1; round < 20; round++) {
			/* It went and came back elsewhere. */
			gid_at(0, 3u + round, round, IBV_GID_TYPE_ROCE_V2);
			fk.n_gids = 1 + round % 3;
			if (by_poll)
				atomic_store(&r->w.reread, true);
			else
				fk_async_port(r->f.verbs, IBV_EVENT_GID_CHANGE, 1);
			turn(r);
			assert_int_equal(r->gids.n, 1 + round % 3);
			assert_int_equal(r->gids.gid[0].index, 3 + round);
			assert_int_equal(r->gids.gid[0].gid[15], round);
		}
	facts_free(r);
}

/* A query that fails leaves a port with nothing known, not no port and no worker. */
static void a_port_that_cannot_be_read_stays(void **state)
{
	static const int errnos[] = {EINVAL, EIO, EACCES, ENODEV, ENOMEM};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(errnos); i++) {
		struct rig_facts *r = facts_running();

		fk.query_port_errno = errnos[i];
		atomic_store(&r->w.reread, true);
		turn(r);
		assert_int_equal(r->port.missing, (1u << WMP__MAX) - 1);
		assert_int_equal(r->port.missing_why, errnos[i] == EACCES
							      ? WHY_NO_PERMISSION
							      : WHY_UNREADABLE);
		fk.query_port_errno = 0;
		atomic_store(&r->w.reread, true);
		turn(r);
		assert_int_equal(r->port.missing & 1u << WMP_STATE, 0);
		facts_free(r);
	}
}

/* ---- events */

/* One wakeup, any number of events of any kind: all are taken and acknowledged, and a
 * burst costs one reading. The last state is told, however late its event came. */
static void any_number_of_port_events(void **state)
{
	static const int numbers[] = {1, 2, 64, 65, 1000};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(numbers); i++)
		for (int type = IBV_EVENT_SQ_DRAINED; type < 30; type++) {
			struct rig_facts *r;
			int ports;

			if (type == IBV_EVENT_DEVICE_FATAL ||
			    type == IBV_EVENT_SQ_DRAINED ||
			    type == IBV_EVENT_PATH_MIG ||
			    type == IBV_EVENT_PATH_MIG_ERR ||
			    type == IBV_EVENT_QP_LAST_WQE_REACHED)
				continue;
			r = facts_running();
			ports = r->ports;
			for (int n = 0; n < numbers[i]; n++)
				fk_async_port(r->f.verbs, (enum ibv_event_type)type,
					      n % 3 ? 1 : 200);
			fk.port.state = IBV_PORT_DOWN;
			turn(r);
			assert_int_equal(fk_async_queued(r->f.verbs), 0);
			assert_int_equal(fk.acked[FK_ASYNC_EVENT], numbers[i]);
			assert_int_equal(r->ports, ports + 1);
			assert_int_equal(r->port.state, IBV_PORT_DOWN);
			assert_int_equal(r->port.source, SOURCE_ASYNC);
			facts_free(r);
		}
}

/* In error for ever: left alone from the first time on; the poll goes on. */
static void a_dead_device_is_not_asked_for_ever(void **state)
{
	static const int errnos[] = {EIO, EBADF, ENODEV};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(errnos); i++) {
		struct rig_facts *r = facts_running();
		uint64_t looks = fk.get_async;

		fk_kill_async(r->f.verbs, errnos[i]);
		for (int n = 0; n < 100; n++)
			turn(r);
		assert_true(fk.get_async <= looks + 1);
		assert_true(r->f.async_dead);
		fk.port.state = IBV_PORT_DOWN;
		atomic_store(&r->w.reread, true);
		turn(r);
		assert_int_equal(r->port.state, IBV_PORT_DOWN);
		facts_free(r);
	}
}

static void a_fatal_event_ends_the_worker(void **state)
{
	struct rig_facts *r = facts_running();

	(void)state;
	fk_async_port(r->f.verbs, IBV_EVENT_PORT_ERR, 1);
	fk_async_port(r->f.verbs, IBV_EVENT_DEVICE_FATAL, 0);
	turn(r);
	assert_int_equal(r->goodbyes, 1);
	assert_int_equal(r->goodbye.why, GOODBYE_DEVICE_GONE);
	facts_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_zero_guid_is_for_facts_only),
		cmocka_unit_test(the_same_name_and_guid_is_not_the_same_device),
		cmocka_unit_test(a_device_that_cannot_be_opened_is_said),
		cmocka_unit_test(any_kind_of_device_has_facts),
		cmocka_unit_test(any_width_and_speed_is_told),
		cmocka_unit_test(any_state_and_mtu_is_told),
		cmocka_unit_test(gids_are_read_again),
		cmocka_unit_test(a_port_that_cannot_be_read_stays),
		cmocka_unit_test(any_number_of_port_events),
		cmocka_unit_test(a_dead_device_is_not_asked_for_ever),
		cmocka_unit_test(a_fatal_event_ends_the_worker),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
