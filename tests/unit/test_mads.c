/* SPDX-License-Identifier: BSD-2-Clause */
/* Requests to a MAD worker that is played by the test, over a real socket. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "manager.h"

#define DONE_MAX 70000

static struct {
	struct manager m;
	struct worker w;
	struct loop_source *stop;
	int listener, fd; /* the worker's end */
	char path[64];
	int failed, lost;
	int n_done;
	struct mad_done done[DONE_MAX];
	uint8_t first[DONE_MAX]; /* first byte of the data */
} t;

/* ---- what mads.c and worker_proc.c want of the rest ---- */

void worker_received(struct worker *w, const uint8_t *buf, size_t len)
{
	static union {
		uint64_t align;
		uint8_t bytes[WM_MAX];
	} copy;
	const struct wm_header *h = (const void *)copy.bytes;
	char why[120];

	memcpy(copy.bytes, buf, len);
	if (wm_check(copy.bytes, len, false, why, sizeof(why)) < 0)
		fail_msg("%s", why);
	if (h->type == WM_SMP_RESULTS)
		mads_on_smp_results(w->m->mads, w, (const void *)copy.bytes);
	else if (h->type == WM_MAD_MORE)
		mads_on_more(w->m->mads, w, (const void *)copy.bytes);
	else if (h->type == WM_MAD_ANSWER)
		mads_on_answer(w->m->mads, w, (const void *)copy.bytes);
}

static void cut(struct worker *w)
{
	worker_close(w);
	mads_worker_lost(w->m->mads, w);
}

void worker_fail(struct worker *w, const char *fmt, ...)
{
	(void)fmt;
	t.failed++;
	cut(w);
}

void worker_lost(struct worker *w)
{
	t.lost++;
	cut(w);
}

/* ---- the world ---- */

static void on_stop(void *user, struct mono now)
{
	(void)user;
	(void)now;
	loop_stop(t.m.loop);
}

static void turn(void)
{
	loop_timer_at(t.stop, clock_now());
	(void)loop_run(t.m.loop);
}

static void on_done(void *user, const struct mad_done *done)
{
	assert_ptr_equal(user, &t);
	assert_true(t.n_done < DONE_MAX);
	t.first[t.n_done] = done->length ? done->data[0] : 0;
	t.done[t.n_done++] = *done;
}

static int setup(void **state)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};

	(void)state;
	memset(&t, 0, sizeof(t));
	t.m.loop = loop_new();
	t.m.mads = mads_new(&t.m);
	t.stop = loop_timer(t.m.loop, on_stop, NULL);
	t.w.m = &t.m;
	t.w.kind = WORKER_MAD;
	t.w.fd = -1;
	t.w.generation = 7;
	(void)snprintf(t.path, sizeof(t.path), "/tmp/fabd-mads-%d", (int)getpid());
	(void)str_copy(sa.sun_path, sizeof(sa.sun_path), t.path);
	t.listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	(void)unlink(t.path);
	if (bind(t.listener, (struct sockaddr *)&sa, sizeof(sa)) < 0 ||
	    listen(t.listener, 1) < 0 || worker_connect(&t.w, t.path) < 0)
		return -1;
	t.fd = accept4(t.listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	t.w.saw_hello = true;
	return t.fd < 0;
}

static int teardown(void **state)
{
	(void)state;
	worker_close(&t.w);
	mads_free(t.m.mads);
	loop_source_free(t.stop);
	loop_free(t.m.loop);
	(void)close(t.fd);
	(void)close(t.listener);
	return unlink(t.path);
}

/* ---- the worker's side ---- */

static bool take(struct wm_smp_gets *ret)
{
	char why[120];
	ssize_t n = recv(t.fd, ret, sizeof(*ret), 0);

	if (n <= 0)
		return false;
	if (wm_check(ret, (size_t)n, true, why, sizeof(why)) < 0)
		fail_msg("%s", why);
	assert_int_equal(ret->h.type, WM_SMP_GETS);
	assert_int_equal(ret->h.generation, 7);
	return true;
}

static void answer(const struct wm_smp_result *results, int n)
{
	struct wm_smp_results msg = {.n = (uint16_t)n};
	size_t size = offsetof(struct wm_smp_results, result) + (size_t)n * sizeof(*results);

	memcpy(msg.result, results, (size_t)n * sizeof(*results));
	wm_header(&msg, WM_SMP_RESULTS, size, 7);
	assert_int_equal(send(t.fd, &msg, size, 0), size);
	turn();
}

static int get(uint64_t tag, uint8_t port, uint8_t hops)
{
	const uint8_t path[IB_PATH_LEN] = {0, 1, 2, 3};
	const struct mad_smp smp = {.tag = tag, .attr = MAD_ATTR_NODE_INFO,
				    .timeout_ms = 50, .hops = hops, .path = path};

	return mads_get(t.m.mads, &t.w, "ibsim0", port, &smp, on_done, &t);
}

/* ---- tests ---- */

static void gets_of_a_turn_leave_together(void **state)
{
	struct wm_smp_gets msg;

	(void)state;
	for (int i = 0; i < 100; i++)
		assert_int_equal(get((uint64_t)i, 1, 2), 0);
	assert_int_equal(get(100, 2, 0), 0);
	/* A full one does not wait for the end of the turn. */
	assert_true(take(&msg));
	assert_int_equal(msg.n, WM_SMPS_EACH);
	assert_false(take(&msg));
	turn();
	for (int n = 0; n < 2; n++) {
		assert_true(take(&msg));
		assert_string_equal(msg.device, "ibsim0");
		assert_int_equal(msg.n, msg.port == 1 ? 20 : 1);
		assert_int_equal(msg.get[0].hops, msg.port == 1 ? 2 : 0);
		assert_int_equal(msg.get[0].path[2], msg.port == 1 ? 2 : 0);
	}
	assert_false(take(&msg));
	turn();
	assert_false(take(&msg));
}

static void each_answer_finds_who_asked_once(void **state)
{
	struct wm_smp_result r[4] = {{0}};
	struct wm_smp_gets msg;

	(void)state;
	for (uint64_t i = 0; i < 4; i++)
		(void)get(1000 + i, 1, 1);
	mads_flush(t.m.mads);
	assert_true(take(&msg));
	for (int i = 0; i < 4; i++) {
		r[i].id = msg.get[3 - i].id;
		r[i].rtt_ns = 5000;
		r[i].data[0] = (uint8_t)(10 + i);
	}
	r[1].status = WM_MAD_BAD_STATUS;
	r[1].mad_status = 0x1c;
	r[2].status = WM_MAD_TIMEOUT;
	answer(r, 3);
	answer(r, 4); /* three of them again */
	assert_int_equal(t.n_done, 4);
	for (int i = 0; i < 4; i++)
		assert_int_equal(t.done[i].tag, 1003 - i);
	assert_int_equal(t.done[0].status, WM_MAD_OK);
	assert_int_equal(t.done[0].length, 64);
	assert_int_equal(t.first[0], 10);
	assert_int_equal(t.done[0].rtt_ns, 5000);
	assert_int_equal(t.done[1].mad_status, 0x1c);
	assert_int_equal(t.done[2].length, 0);
	assert_int_equal(t.first[3], 13);
	/* The place of a request that is over is used again, its id is not. */
	(void)get(2000, 1, 1);
	answer(r, 4);
	assert_int_equal(t.n_done, 4);
}

static void a_dead_worker_answers_everything(void **state)
{
	struct wm_smp_gets msg;

	(void)state;
	for (uint64_t i = 0; i < 300; i++)
		(void)get(i, 1, 2);
	cut(&t.w);
	assert_int_equal(t.n_done, 0); /* not in the middle of who asks */
	turn();
	assert_int_equal(t.n_done, 300);
	for (int i = 0; i < 300; i++) {
		assert_int_equal(t.done[i].status, WM_MAD_SEND_FAILED);
		assert_int_equal(t.done[i].error, ENOTCONN);
	}
	turn();
	assert_int_equal(t.n_done, 300);
	assert_int_equal(get(1, 1, 2), -ENOTCONN);
	assert_int_equal(mads_get(t.m.mads, NULL, "x", 1, &(struct mad_smp){0}, on_done, &t),
			 -ENOTCONN);
	while (take(&msg)) /* those that had left: three full messages, no more */
		assert_int_equal(msg.n, WM_SMPS_EACH);
}

static void end_of_file_is_a_death(void **state)
{
	(void)state;
	(void)get(1, 1, 2);
	turn();
	(void)shutdown(t.fd, SHUT_RDWR);
	turn();
	assert_int_equal(t.lost, 1);
	assert_int_equal(t.n_done, 1);
	assert_int_equal(t.done[0].status, WM_MAD_SEND_FAILED);
}

static void a_deaf_worker_is_replaced(void **state)
{
	struct mono now = loop_now(t.m.loop);
	int64_t patience = 50 * NSEC_PER_MSEC + 5 * NSEC_PER_SEC;

	(void)state;
	(void)get(1, 1, 2);
	(void)get(2, 1, 2);
	mads_tick(t.m.mads, mono_add(now, patience));
	assert_int_equal(t.n_done, 0);
	mads_tick(t.m.mads, mono_add(now, patience + 1));
	assert_int_equal(t.failed, 1);
	turn();
	assert_int_equal(t.n_done, 2);
	assert_int_equal(t.done[0].status, WM_MAD_TIMEOUT);
	assert_int_equal(t.done[1].status, WM_MAD_SEND_FAILED);
}

static void nobody_is_told_who_has_gone(void **state)
{
	struct wm_smp_result r = {0};
	struct wm_smp_gets msg;

	(void)state;
	(void)get(1, 1, 2);
	turn();
	assert_true(take(&msg));
	mads_forget(t.m.mads, &t);
	r.id = msg.get[0].id;
	answer(&r, 1);
	assert_int_equal(t.n_done, 0);
	(void)get(2, 1, 2);
	mads_forget(t.m.mads, &t);
	cut(&t.w);
	turn();
	assert_int_equal(t.n_done, 0);
}

/* ---- other MADs ---- */

static uint64_t send_sa(void)
{
	struct wm_mad_send msg = {.device = "ibsim0", .port = 1, .kind = WM_KIND_SA,
				  .method = MAD_GET_TABLE, .attr = MAD_ATTR_SM_RECORD,
				  .timeout_ms = 100, .length = 200};
	char why[120];
	ssize_t n;

	assert_int_equal(mads_send(t.m.mads, &t.w, &msg, 5, on_done, &t), 0);
	n = recv(t.fd, &msg, sizeof(msg), 0);
	if (n < 0 || wm_check(&msg, (size_t)n, true, why, sizeof(why)) < 0)
		fail_msg("%s", n < 0 ? "nothing came" : why);
	return msg.id;
}

static void more(uint64_t id, uint32_t offset, uint32_t total, uint16_t length)
{
	struct wm_mad_more msg = {.id = id, .offset = offset, .total = total,
				  .length = length};
	size_t size = offsetof(struct wm_mad_more, data) + length;

	memset(msg.data, (int)(1 + offset / 4096), length);
	wm_header(&msg, WM_MAD_MORE, size, 7);
	assert_int_equal(send(t.fd, &msg, size, 0), size);
}

static void end(uint64_t id, uint32_t total, bool in_pieces)
{
	struct wm_mad_answer msg = {.id = id, .more = in_pieces, .total = total,
				    .attr_offset = 56,
				    .length = in_pieces ? 0 : (uint16_t)total};

	wm_header(&msg, WM_MAD_ANSWER, sizeof(msg), 7);
	assert_int_equal(send(t.fd, &msg, sizeof(msg), 0), sizeof(msg));
	turn();
}

static void tables_come_in_pieces(void **state)
{
	uint64_t id = send_sa();

	(void)state;
	more(id, 0, 5000, 4096);
	more(id, 4096, 5000, 904);
	end(id, 5000, true);
	assert_int_equal(t.n_done, 1);
	assert_int_equal(t.done[0].status, WM_MAD_OK);
	assert_int_equal(t.done[0].tag, 5);
	assert_int_equal(t.done[0].length, 5000);
	assert_int_equal(t.done[0].attr_offset, 56);
	assert_int_equal(t.first[0], 1);
	id = send_sa();
	end(id, 112, false);
	assert_int_equal(t.done[1].length, 112);
}

static void a_table_with_a_gap_is_none(void **state)
{
	uint64_t id = send_sa();

	(void)state;
	more(id, 0, 9000, 4096);
	more(id, 8192, 9000, 808);
	end(id, 9000, true);
	assert_int_equal(t.n_done, 1);
	assert_int_equal(t.done[0].status, WM_MAD_BAD_ANSWER);
	id = send_sa();
	more(id, 0, 5000, 4096); /* and its worker dies */
	turn();
	cut(&t.w);
	turn();
	assert_int_equal(t.done[1].status, WM_MAD_SEND_FAILED);
}

static void sent_ones_are_counted_by_destination(void **state)
{
	struct wm_mad_send pma = {.device = "ibsim0", .port = 1, .kind = WM_KIND_PMA,
				  .method = MAD_GET, .attr = MAD_ATTR_PORT_COUNTERS,
				  .dlid = 3, .timeout_ms = 100};

	(void)state;
	(void)get(1, 1, 0);
	(void)get(2, 1, 1);
	(void)get(3, 1, 2);
	(void)get(4, 1, 3);
	(void)send_sa();
	assert_int_equal(mads_send(t.m.mads, &t.w, &pma, 1, on_done, &t), 0);
	assert_int_equal(mads_sent(t.m.mads, MADS_OWN), 1);
	assert_int_equal(mads_sent(t.m.mads, MADS_NEAR), 1);
	assert_int_equal(mads_sent(t.m.mads, MADS_SUBNET), 2);
	assert_int_equal(mads_sent(t.m.mads, MADS_SA), 1);
	assert_int_equal(mads_sent(t.m.mads, MADS_PMA), 1);
}

static void too_many_are_refused(void **state)
{
	int r = 0, n = 0;

	(void)state;
	while (n < DONE_MAX && (r = get((uint64_t)n, 1, 2)) == 0)
		n++;
	assert_int_equal(r, -ENOBUFS);
	assert_int_equal(n, 65536);
	cut(&t.w);
	turn();
	assert_int_equal(t.n_done, n);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
int main(void)
{
	const struct CMUnitTest tests[] = {
		T(gets_of_a_turn_leave_together),
		T(each_answer_finds_who_asked_once),
		T(a_dead_worker_answers_everything),
		T(end_of_file_is_a_death),
		T(a_deaf_worker_is_replaced),
		T(nobody_is_told_who_has_gone),
		T(tables_come_in_pieces),
		T(a_table_with_a_gap_is_none),
		T(sent_ones_are_counted_by_destination),
		T(too_many_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
