/* SPDX-License-Identifier: BSD-2-Clause */
/* Requests of main to fabd-mad and what comes of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "log.h"
#include "mad.h"
#include "mad/smp_port.h"

#include "../support/mad_rig.h"

static void a_get_there_and_back(void **state)
{
	struct ctx *c = *state;
	union wm_any m;

	start(c, 0);
	expect(c, &m, WM_DEVICE);
	expect_port(c, &m);
	say_get(c, "mlx5_0", 1);
	expect_nothing(c);
	fake_umad_answer(0);
	wait_for_receiver(c);
	assert_int_equal(turn(c), 0);
	expect(c, &m, WM_SMP_RESULTS);
	assert_int_equal(m.results.result[0].status, WM_MAD_OK);
	for (int i = 0; i < 64; i++)
		assert_int_equal(m.results.result[0].data[i], i);
	say_get(c, "mlx5_0", 2);
	expect_result(c, WM_MAD_NO_PORT, ENODEV);
	assert_int_equal(fake_umad_opens(), 1);
}

static void say_gets(struct ctx *c, const char *device, uint16_t n)
{
	struct wm_smp_gets m = {.port = 1, .n = n};

	(void)str_copy(m.device, sizeof(m.device), device);
	for (int i = 0; i < n; i++)
		m.get[i] = (struct wm_smp_get){.id = ++c->next_id,
					       .attr = MAD_ATTR_PORT_INFO,
					       .timeout_ms = 50};
	say(c, WM_SMP_GETS, &m,
	    offsetof(struct wm_smp_gets, get) + n * sizeof(m.get[0]));
}

static void batches_there_and_back(void **state)
{
	struct ctx *c = *state;
	union wm_any m;
	int n = 0;

	start(c, 0);
	expect(c, &m, WM_DEVICE);
	expect_port(c, &m);
	say_gets(c, "mlx5_0", SMP_WINDOW);
	expect_nothing(c);
	assert_int_equal(fake_umad_sent(), SMP_WINDOW);
	for (int i = 0; i < SMP_WINDOW; i++)
		fake_umad_answer(i);
	fake_umad_drain();
	while (n < SMP_WINDOW) {
		wait_for_receiver(c);
		assert_int_equal(turn(c), 0);
		/* What was there together comes together: one message a turn. */
		expect(c, &m, WM_SMP_RESULTS);
		for (int i = 0; i < m.results.n; i++) {
			struct wm_smp_result *r = &m.results.result[i];

			assert_int_equal(r->status, WM_MAD_OK);
			assert_int_equal(r->id, ++n);
			assert_int_equal(r->data[1], (uint8_t)n);
		}
		assert_int_equal(next(c, &m), 0);
	}
	/* More than a message holds. */
	say_gets(c, "mlx5_9", 50);
	say_gets(c, "mlx5_9", 50);
	assert_int_equal(turn(c), 0);
	expect(c, &m, WM_SMP_RESULTS);
	assert_int_equal(m.results.n, WM_SMPS_EACH);
	assert_int_equal(m.results.result[79].status, WM_MAD_NO_PORT);
	assert_int_equal(m.results.result[79].error, ENODEV);
	expect(c, &m, WM_SMP_RESULTS);
	assert_int_equal(m.results.n, 20);
	assert_int_equal(m.results.result[19].id, c->next_id);
	expect_nothing(c);
}

static void say_send(struct ctx *c, struct wm_mad_send m)
{
	m.id = ++c->next_id;
	m.port = 1;
	(void)str_copy(m.device, sizeof(m.device), "mlx5_0");
	say(c, WM_MAD_SEND, &m, sizeof(m));
}

static void expect_answer(struct ctx *c, union wm_any *m, enum wm_mad_status status,
			  int error)
{
	expect(c, m, WM_MAD_ANSWER);
	assert_int_equal(m->answer.id, c->next_id);
	assert_int_equal(m->answer.status, status);
	assert_int_equal(m->answer.error, error);
}

static void a_send_there_and_back(void **state)
{
	struct wm_mad_send pma = {.kind = WM_KIND_PMA,
				  .method = MAD_GET,
				  .dlid = 7,
				  .attr = MAD_ATTR_PORT_COUNTERS,
				  .timeout_ms = 100};
	struct wm_mad_send sa = {.kind = WM_KIND_SA,
				 .method = MAD_GET_TABLE,
				 .attr = MAD_ATTR_NODE_RECORD,
				 .timeout_ms = 100,
				 .length = 4,
				 .data = {1, 2, 3, 4}};
	struct ctx *c = *state;
	uint8_t mad[256];
	union wm_any m;

	start(c, 0);
	expect(c, &m, WM_DEVICE);
	expect_port(c, &m);
	say_send(c, pma);
	expect_nothing(c);
	fake_umad_answer(0);
	wait_for_receiver(c);
	assert_int_equal(turn(c), 0);
	expect_answer(c, &m, WM_MAD_OK, 0);
	assert_int_equal(m.answer.length, 192);
	assert_int_equal(m.answer.total, 192);
	assert_false(m.answer.more);
	assert_int_equal(m.answer.data[5], 5);
	/* To the subnet manager, wherever it is. */
	say_send(c, sa);
	expect_nothing(c);
	assert_int_equal(be16_get(fake_umad_request(1)->header + 28), 1);
	memcpy(mad, fake_umad_request(1)->mad, sizeof(mad));
	fake_umad_put(mad, 24, ETIMEDOUT, -1);
	wait_for_receiver(c);
	assert_int_equal(turn(c), 0);
	expect_answer(c, &m, WM_MAD_TIMEOUT, 0);
	assert_int_equal(m.answer.length, 4);
	assert_memory_equal(m.answer.data, sa.data, 4);
	/* There is none. */
	put_file(c, "0x0\n", "infiniband/mlx5_0/ports/1/sm_lid");
	say(c, WM_POLL, &(struct wm_poll){0}, sizeof(struct wm_poll));
	assert_int_equal(turn(c), 0);
	expect(c, &m, WM_DEVICE);
	expect_port(c, &m);
	say_send(c, sa);
	assert_int_equal(turn(c), 0);
	expect_answer(c, &m, WM_MAD_SEND_FAILED, EHOSTUNREACH);
	pma.timeout_ms = 0;
	say_send(c, pma);
	assert_int_equal(turn(c), 0);
	expect_answer(c, &m, WM_MAD_OK, 0);
	assert_int_equal(m.answer.total, 0);
	expect_nothing(c);
}

static void a_table_comes_in_pieces(void **state)
{
	struct wm_mad_send sa = {.kind = WM_KIND_SA,
				 .method = MAD_GET_TABLE,
				 .attr = MAD_ATTR_NODE_RECORD,
				 .timeout_ms = 100};
	size_t total = 3 * WM_MORE_EACH + 17, at = 0;
	uint8_t *mad = xcalloc(1, 56 + total);
	struct ctx *c = *state;
	union wm_any m;

	start(c, 0);
	expect(c, &m, WM_DEVICE);
	expect_port(c, &m);
	say_send(c, sa);
	expect_nothing(c);
	fake_umad_make_answer(0, mad);
	be16_put(mad + 44, 14);
	for (size_t i = 0; i < total; i++)
		mad[56 + i] = (uint8_t)(i % 253);
	fake_umad_put(mad, (int)(56 + total), 0, -1);
	wait_for_receiver(c);
	assert_int_equal(turn(c), 0);
	while (at < total) {
		expect(c, &m, WM_MAD_MORE);
		assert_int_equal(m.more.id, c->next_id);
		assert_int_equal(m.more.offset, at);
		assert_int_equal(m.more.total, total);
		assert_memory_equal(m.more.data, mad + 56 + at, m.more.length);
		at += m.more.length;
	}
	expect_answer(c, &m, WM_MAD_OK, 0);
	assert_true(m.answer.more);
	assert_int_equal(m.answer.length, 0);
	assert_int_equal(m.answer.total, total);
	assert_int_equal(m.answer.attr_offset, 112);
	expect_nothing(c);
	free(mad);
}

static void reports_come_unasked(void **state)
{
	uint8_t mad[256] = {1, 3, 2, MAD_REPORT};
	struct wm_init init = {.reports = 1};
	struct ctx *c = *state;
	union wm_any m;

	say(c, WM_INIT, &init, sizeof(init));
	assert_int_equal(turn(c), 0);
	expect(c, &m, WM_HELLO);
	expect(c, &m, WM_DEVICE);
	expect_port(c, &m);
	assert_int_equal(fake_umad_opens(), 1);
	mad[17] = MAD_ATTR_NOTICE;
	mad[56] = 0x81;
	mad[56 + 79] = 0x5a;
	fake_umad_put(mad, sizeof(mad), 0, -1);
	wait_for_receiver(c);
	assert_int_equal(turn(c), 0);
	expect(c, &m, WM_NOTICE);
	assert_string_equal(m.notice.device, "mlx5_0");
	assert_int_equal(m.notice.port, 1);
	assert_int_equal(m.notice.slid, FAKE_SLID);
	assert_int_equal(m.notice.data[0], 0x81);
	assert_int_equal(m.notice.data[79], 0x5a);
	assert_int_equal(fake_umad_request(0)->mad[3], MAD_REPORT_RESP);
	expect_nothing(c);
	/* The next main wants none: the port is opened anew, when it asks. */
	(void)close(c->main_fd);
	assert_int_equal(turn(c), -ECONNRESET);
	c->main_fd = connect_main(c);
	start(c, 0);
	expect(c, &m, WM_DEVICE);
	expect_port(c, &m);
	assert_int_equal(fake_umad_opens(), 1);
	say_get(c, "mlx5_0", 1);
	expect_nothing(c);
	assert_int_equal(fake_umad_opens(), 2);
	/* A Set never passes the check of messages. */
	log_level(LOG_EMERG);
	say_send(c, (struct wm_mad_send){.kind = WM_KIND_LID_SMP,
					 .method = MAD_SET,
					 .attr = MAD_ATTR_PORT_INFO,
					 .dlid = 1});
	assert_int_equal(turn(c), -EPROTO);
	assert_int_equal(fake_umad_sent(), 2);
}

static void no_permission(void **state)
{
	struct ctx *c = *state;
	union wm_any m;

	start(c, 0);
	expect(c, &m, WM_DEVICE);
	expect_port(c, &m);
	log_level(LOG_EMERG);
	fake_umad_open_error(EACCES);
	for (int i = 0; i < 20; i++) {
		say_get(c, "mlx5_0", 1);
		expect_result(c, WM_MAD_NO_PERMISSION, EACCES);
	}
	assert_int_equal(fake_umad_opens(), 1); /* not tried again at once */
	c->now = mono_add(c->now, 5 * NSEC_PER_SEC);
	fake_umad_open_error(0);
	say_get(c, "mlx5_0", 1);
	assert_int_equal(turn(c), 0);
	assert_int_equal(fake_umad_opens(), 2);
	fake_umad_answer(0);
	wait_for_receiver(c);
	expect_result(c, WM_MAD_OK, 0);
}

static void a_port_that_dies_under_us(void **state)
{
	struct ctx *c = *state;
	union wm_any m;

	start(c, 1000);
	expect(c, &m, WM_DEVICE);
	expect_port(c, &m);
	say_get(c, "mlx5_0", 1);
	expect_nothing(c);
	fake_umad_remove();
	wait_for_receiver(c);
	expect_result(c, WM_MAD_SEND_FAILED, EIO);
	expect(c, &m, WM_PORT_GONE);
	assert_string_equal(m.gone.device, "mlx5_0");
	assert_int_equal(m.gone.port, 1);
	say_get(c, "mlx5_0", 1);
	expect_result(c, WM_MAD_NO_PORT, ENODEV);
	/* It is shown again, but not at once. */
	for (int s = 0; s < 4; s++) {
		c->now = mad_worker_deadline(c->worker);
		expect_nothing(c);
	}
	c->now = mono_add(c->now, NSEC_PER_SEC);
	assert_int_equal(turn(c), 0);
	expect_port(c, &m);
	say_get(c, "mlx5_0", 1);
	expect_nothing(c);
	fake_umad_answer(1);
	wait_for_receiver(c);
	expect_result(c, WM_MAD_OK, 0);
}

static void the_next_main_gets_its_own_answers(void **state)
{
	struct ctx *c = *state;
	union wm_any m;

	start(c, 0);
	for (int i = 0; i < 10; i++)
		say_get(c, "mlx5_0", 1);
	assert_int_equal(turn(c), 0);
	(void)close(c->main_fd);
	assert_int_equal(turn(c), -ECONNRESET);
	assert_false(mono_is_set(mad_worker_deadline(c->worker)) &&
		     mono_due(mad_worker_deadline(c->worker), c->now));
	c->main_fd = connect_main(c);
	start(c, 0);
	expect(c, &m, WM_DEVICE);
	expect_port(c, &m);
	say_get(c, "mlx5_0", 1);
	assert_int_equal(turn(c), 0);
	for (int i = 0; i < 11; i++)
		fake_umad_answer(i);
	fake_umad_drain();
	do
		wait_for_receiver(c);
	while (!turn(c) && !next(c, &m));
	assert_int_equal(m.results.result[0].id, c->next_id);
	expect_nothing(c);
	assert_int_equal(fake_umad_opens(), 1);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
int main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_get_there_and_back),      T(batches_there_and_back),
		T(a_send_there_and_back),     T(a_table_comes_in_pieces),
		T(reports_come_unasked),      T(no_permission),
		T(a_port_that_dies_under_us), T(the_next_main_gets_its_own_answers),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
