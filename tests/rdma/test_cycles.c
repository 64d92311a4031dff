/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Soak: connections that are lost and come back, very often, in every way; random
 * scripts; and the same with the worker's two threads for real. At the end of it, and
 * in between, every balance is zero and no memory is left over. FABD_LONG=1: 100,000
 * cycles of each transport, and more of the rest.
 */
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "script.h"

#define RANDOM_SCRIPTS 3000

static bool is_long(void)
{
	const char *v = getenv("FABD_LONG");

	return v && *v && !str_eq(v, "0");
}

static long resident_kib(void)
{
	FILE *f = fopen("/proc/self/statm", "r");
	long size, pages = 0;

	if (f) {
		if (fscanf(f, "%ld %ld", &size, &pages) != 2)
			pages = 0;
		(void)fclose(f);
	}
	return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

static int descriptors(void)
{
	int n = 0;

	for (int fd = 0; fd < 1024; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

static bool sanitized(void)
{
#if defined(__SANITIZE_ADDRESS__)
	return true;
#elif defined(__has_feature)
	return __has_feature(address_sanitizer);
#else
	return false;
#endif
}

/* ---- cycles */

enum loss {
	BY_PEER,      /* it closes */
	BY_SILENCE,   /* it says nothing any more; main resets on LATE */
	BY_RETRIES,   /* the transport gives up */
	BY_FATAL,     /* the queue pair breaks */
	BY_REJECT,    /* it does not even come up: rejected, */
	BY_NO_ROUTE,  /* or no way there, */
	BY_NO_MEMORY, /* or no memory here */
	BY_RESET,     /* main's own wish */
	BY__MAX
};

static void lose_one(struct rig *r, uint64_t c, enum loss how)
{
	struct rdma_cm_id *id;

	switch (how) {
	case BY_REJECT:
		rig_bring(r, c, AT_CONNECT);
		rig_event(r, c, RDMA_CM_EVENT_REJECTED, 10);
		return;
	case BY_NO_ROUTE:
		rig_bring(r, c, AT_RESOLVE_ADDR);
		rig_event(r, c, RDMA_CM_EVENT_ADDR_ERROR, -EHOSTUNREACH);
		return;
	case BY_NO_MEMORY:
		fk_fail("ibv_create_cq", 0, 1, FK_USUAL, ENOMEM);
		rig_bring(r, c, AT_CONNECT);
		return;
	default:
		break;
	}
	rig_bring(r, c, AT_BEATING);
	assert_int_equal(r->said[c].by_type[EP_PROBES_DONE], 1);
	id = rig_id(r, c);
	switch (how) {
	case BY_PEER:
		fk_event(id, RDMA_CM_EVENT_DISCONNECTED, 0);
		break;
	case BY_SILENCE:
		r->answer = false;
		rig_pass(r, 400 * NSEC_PER_MSEC);
		r->answer = true;
		assert_int_equal(r->said[c].by_type[EP_LATE], 1);
		return;
	case BY_RETRIES:
		r->answer = false;
		rig_pass(r, 150 * NSEC_PER_MSEC);
		r->answer = true;
		fk_break(id->qp, IBV_WC_RETRY_EXC_ERR);
		break;
	case BY_FATAL:
		fk_async_qp(rig_ep(r, c)->ud ? rig_ep(r, c)->ud->qp : id->qp,
			    IBV_EVENT_QP_FATAL);
		break;
	default:
		return;
	}
	rig_settle(r);
}

static void cycle(struct rig *r, uint64_t c, enum loss how)
{
	bool told = how != BY_SILENCE && how != BY_RESET;

	r->said[c] = (struct said){0};
	lose_one(r, c, how);
	assert_int_equal(r->said[c].by_type[EP_ERROR], told);
	rig_reset(r, c);
	if (rig_ep(r, c)) /* the peer's word does not come: our own time */
		rig_pass(r, 250 * NSEC_PER_MSEC);
	assert_null(rig_ep(r, c));
	assert_int_equal(r->said[c].by_type[EP_RESET_DONE], 1);
	assert_int_equal(r->said[c].after_reset, 0);
}

/* As prober: lost and back, a way after the other. */
static void lost_and_back_by(enum transport transport, const enum loss *ways,
			     int n_ways)
{
	int cycles = is_long() ? 100000 : sanitized() ? 5000 : 20000;
	struct rig *r = rig_new(4);
	struct mallinfo2 before = {0};
	long rss = 0;
	int fds = 0;

	r->answer = true;
	r->transport = transport;
	for (int n = 0; n < cycles; n++) {
		if (n == 1000) { /* buffers of the library and the fakes are there */
			before = mallinfo2();
			rss = resident_kib();
			fds = descriptors();
		}
		cycle(r, 1, ways[n % n_ways]);
		fk_balanced(0, 1, rig_ud_ports(r));
	}
	assert_int_equal(descriptors(), fds);
	if (!sanitized()) {
		long grown = (long)mallinfo2().uordblks - (long)before.uordblks;

		/* Which of the dead the fakes still keep differs by so much. */
		if (labs(grown) > 16384)
			fail_msg("%d cycles: %ld bytes more", cycles, grown);
		if (resident_kib() > rss + 256)
			fail_msg("%d cycles: RSS %ld KiB, then %ld", cycles, rss,
				 resident_kib());
	}
	assert_int_equal(fk.made[FK_QP],
			 fk.destroyed[FK_QP] + (uint64_t)rig_ud_ports(r));
	assert_true(fk.made[FK_ID] >= (uint64_t)cycles);
	rig_free(r);
}

static void lost_and_back(void **state)
{
	static const enum loss ways[] = {BY_PEER,      BY_SILENCE, BY_RETRIES,
					 BY_FATAL,     BY_REJECT,  BY_NO_ROUTE,
					 BY_NO_MEMORY, BY_RESET};

	static_assert(ARRAY_LEN(ways) == BY__MAX, "each way");
	(void)state;
	lost_and_back_by(TRANSPORT_RC, ways, BY__MAX);
}

/* Nothing of a ud queue pair belongs to one peer: silence is how it is lost. */
static void lost_and_back_over_ud(void **state)
{
	static const enum loss ways[] = {BY_SILENCE, BY_FATAL, BY_NO_ROUTE,
					 BY_NO_MEMORY, BY_RESET};

	(void)state;
	lost_and_back_by(TRANSPORT_UD, ways, ARRAY_LEN(ways));
}

/* As responder: asked, accepted, up, closed by the peer or by us. */
static void asked_and_left(void **state)
{
	int cycles = is_long() ? 20000 : 4000;
	struct rig *r = rig_new(4);

	(void)state;
	rig_listen(r);
	for (int n = 0; n < cycles; n++) {
		r->said[1] = (struct said){0};
		rig_bring(r, 1, n % 3 ? AT_UP_RX : AT_ACCEPT);
		if (n % 2)
			rig_event(r, 1, RDMA_CM_EVENT_DISCONNECTED, 0);
		r->answer = true;
		rig_finish(r, 1);
		r->answer = false;
	}
	assert_int_equal(fk.accepts, cycles);
	rig_free(r);
}

/* ---- random scripts */

static const int some_errnos[] = {EINVAL, ENOMEM, ENODEV, EIO, ETIMEDOUT, EHOSTUNREACH};

static void queue_anything(struct rig *r, struct endpoint *ep, uint64_t x)
{
	static const int statuses[] = {0, -ETIMEDOUT, -1, -ENODEV, 8, 10, 28, 77};
	int type = (int)(x % (RDMA_CM_EVENT_TIMEWAIT_EXIT + 2));
	struct ibv_wc wc = {
		.wr_id = (x & 256 ? WR_SEND : WR_RECV) | (x >> 9) % EP_SLOTS,
		.status = (enum ibv_wc_status)(1 + (x >> 20) % 22),
		.opcode = (enum ibv_wc_opcode)(x >> 32),
		.byte_len = (uint32_t)x,
	};

	/* The shared queue pair, with what its users have on it. */
	if ((x >> 44) % 4 == 0 && fk_ud_qp() && ep && ep->ud) {
		if (x >> 46 & 1)
			fk_break(fk_ud_qp(), IBV_WC_GENERAL_ERR);
		else if (x >> 47 & 1 && fk_ud_qp()->state == IBV_QPS_RTS)
			fk_sqe(fk_ud_qp());
		else
			fk_async_port(fk.verbs, IBV_EVENT_GID_CHANGE, 1);
		return;
	}
	if (!ep || !ep->id)
		return;
	if (x >> 40 & 1 && ep->qp && fk_cq_queued(ep->recv.cq) < EP_SLOTS)
		fk_wc(ep->qp, &wc);
	else if (x >> 41 & 1 && ep->qp)
		fk_async_qp(ep->qp,
			    x >> 42 & 1 ? IBV_EVENT_COMM_EST : IBV_EVENT_QP_ACCESS_ERR);
	else if (type != RDMA_CM_EVENT_CONNECT_REQUEST &&
		 type != RDMA_CM_EVENT_DEVICE_REMOVAL)
		fk_event_errno(ep->id, (enum rdma_cm_event_type)type,
			       statuses[(x >> 16) % ARRAY_LEN(statuses)],
			       (int)(x >> 24 & 127));
	(void)r;
}

static void request_from(struct rig *r, uint64_t c, uint64_t x)
{
	uint8_t data[56] = {0};

	if (!r->cm.listeners)
		return;
	cmdata_request_encode(&(struct cmdata_request){.dst_conn_id = c,
						       .src_conn_id = RIG_PEER + c,
						       .epoch = RIG_EPOCH + x % 5 / 4},
			      data);
	if (x >> 8 & 1)
		data[x >> 9 & 31] ^= (uint8_t)(x >> 16);
	(void)fk_request(r->cm.listeners->id, data, sizeof(data));
}

static void do_anything(struct rig *r, uint64_t x)
{
	uint64_t c = 1 + (x >> 4) % 3;
	struct endpoint *ep = rig_ep(r, c);

	switch (x % 16) {
	case 0:
	case 1:
		if (!ep)
			rig_start(r, x & 4096 ? ROLE_TX : ROLE_RX, c);
		break;
	case 2:
		rig_reset(r, c);
		break;
	case 3:
		if (r->cm.listeners && x & 2048)
			rig_unlisten(r);
		else
			rig_listen(r);
		break;
	case 4:
	case 5:
		request_from(r, c, x >> 8);
		break;
	case 6:
		rig_hot(r, x & 4096 ? WM_EP_PROBE : WM_EP_HEARTBEAT, c);
		break;
	case 7:
		r->answer = !r->answer;
		break;
	case 8:
		if (!fk_faults_left())
			fk_fail(NULL, (int)(x >> 8 & 7), 1, FK_USUAL,
				some_errnos[(x >> 12) % ARRAY_LEN(some_errnos)]);
		break;
	case 9:
		rig_pass(r, (int64_t)(x >> 8 & 0x1ff) * NSEC_PER_MSEC);
		break;
	case 10:
		r->hold_hot = x & 256 && !r->hold_hot;
		break;
	case 11:
		if (ep && ep->qp)
			(void)fk_complete_send(ep->qp, x & 256 ? IBV_WC_SUCCESS
							       : IBV_WC_RETRY_EXC_ERR);
		break;
	case 12:
		fk.no_path = x & 256;
		fk.port.state = x & 512 ? IBV_PORT_ACTIVE : IBV_PORT_DOWN;
		break;
	default:
		queue_anything(r, ep, x >> 8);
		break;
	}
	if (x >> 60 & 1)
		rig_settle(r);
}

static void one_random_script(uint64_t seed)
{
	struct rig *r = rig_new(3);
	uint64_t x = mix64(seed);

	if (seed & 1)
		r->transport = TRANSPORT_UD;
	for (int i = 0; i < 60; i++) {
		do_anything(r, x);
		x = mix64(x);
		for (uint64_t c = 1; c <= 3; c++)
			assert_int_equal(r->said[c].after_reset, 0);
	}
	fk_no_faults();
	r->hold_hot = false;
	fk.no_path = false;
	fk.port.state = IBV_PORT_ACTIVE;
	rig_settle(r);
	for (uint64_t c = 1; c <= 3; c++) {
		rig_reset(r, c);
		rig_pass(r, 300 * NSEC_PER_MSEC);
		assert_null(rig_ep(r, c));
	}
	rig_pass(r, 2 * NSEC_PER_SEC); /* what waited for its link goes */
	cm_unlisten_all(&r->cm);
	rig_settle(r);
	rig_free(r);
}

static void random_scripts(void **state)
{
	int n = is_long() ? 50 * RANDOM_SCRIPTS : RANDOM_SCRIPTS;

	(void)state;
	for (int i = 1; i <= n; i++) {
		fk_note("random script %d", i);
		one_random_script((uint64_t)i);
	}
}

/* ---- the two threads for real */

static atomic_bool stop;

static void *cm_side(void *arg)
{
	struct rig *r = arg;

	while (!atomic_load(&stop))
		cm_turn(&r->cm);
	return NULL;
}

static void *hot_side(void *arg)
{
	struct rig *r = arg;

	while (!atomic_load(&stop))
		hot_turn(&r->hot);
	return NULL;
}

static void push(struct ring *ring, int wake_fd, const void *what)
{
	assert_true(ring_push(ring, what));
	wake(wake_fd);
}

/* Take what the two said until @conn has said @type; false: not within the time. */
static bool hears(struct rig *r, uint64_t conn, enum ep_event_type type)
{
	struct pollfd fd = {.fd = r->w.wake_ctl, .events = POLLIN};

	for (int i = 0; i < 300; i++) {
		rig_take_messages(r);
		if (r->said[conn].by_type[type])
			return true;
		(void)poll(&fd, 1, 100);
		wake_clear(r->w.wake_ctl);
	}
	return false;
}

/* Events and completions come while the threads are in the middle of anything. One
 * owner of the ids and no end of what the other still has: the fakes look. */
static void with_real_threads(void **state)
{
	int cycles = is_long() ? 20000 : 400;
	struct rig *r = rig_new(4);
	pthread_t cm, hot;

	(void)state;
	r->answer = true;
	fk.virtual_time = false;
	fk.two_threads = true;
	atomic_store(&stop, false);
	assert_int_equal(pthread_create(&cm, NULL, cm_side, r), 0);
	assert_int_equal(pthread_create(&hot, NULL, hot_side, r), 0);
	for (int n = 0; n < cycles; n++) {
		struct cm_command c = {.type = WM_EP_START,
				       .start = rig_start_of(ROLE_TX, 1)};
		struct hot_command probe = {WM_EP_PROBE, 1, RIG_EPOCH};

		c.start.heartbeat_us = 10000;
		r->said[1] = (struct said){0};
		push(&r->w.ctl_to_cm, r->w.wake_cm, &c);
		if (n % 3) {
			assert_true(hears(r, 1, EP_UP));
			push(&r->w.ctl_to_hot, r->w.wake_hot, &probe);
			assert_true(hears(r, 1, EP_PROBES_DONE));
		}
		c.type = WM_EP_RESET;
		push(&r->w.ctl_to_cm, r->w.wake_cm, &c);
		assert_true(hears(r, 1, EP_RESET_DONE));
		assert_int_equal(r->said[1].by_type[EP_ERROR], 0);
	}
	atomic_store(&stop, true);
	wake(r->w.wake_cm);
	wake(r->w.wake_hot);
	(void)pthread_join(cm, NULL);
	(void)pthread_join(hot, NULL);
	fk.virtual_time = true;
	fk_forget_owner();
	rig_settle(r);
	fk_balanced(0, 1, 0);
	rig_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lost_and_back),
		cmocka_unit_test(lost_and_back_over_ud),
		cmocka_unit_test(asked_and_left),
		cmocka_unit_test(random_scripts),
		cmocka_unit_test(with_real_threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
