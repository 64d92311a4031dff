/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Every way in which the life of a connection of the connection manager is known to
 * have gone wrong, as a whole kind: all orders, all states, all statuses. What holds
 * always: an attempt fails at most once, a reset is answered, nothing is said after it,
 * every event is acknowledged and every object destroyed. (The fakes abort on the
 * rest.)
 */
#include <errno.h>
#include <stdlib.h>

#include "script.h"

#define C 1 /* the connection under test */

static const int statuses[] = {0, -ETIMEDOUT, -1, -ENODEV, 8, 10, 28};

/* ---- acknowledge and destroy */

static void any_event_in_any_state_is_acked_once(void **state)
{
	(void)state;
	for (int at = AT_RESOLVE_ADDR; at < AT__MAX; at++)
		for (int type = 0; type <= RDMA_CM_EVENT_TIMEWAIT_EXIT + 4; type++)
			for (size_t i = 0; i < ARRAY_LEN(statuses); i++) {
				struct rig *r;

				if (type == RDMA_CM_EVENT_CONNECT_REQUEST ||
				    type == RDMA_CM_EVENT_DEVICE_REMOVAL)
					continue;
				r = rig_new(4);
				rig_bring(r, C, (enum where)at);
				rig_event(r, C, (enum rdma_cm_event_type)type,
					  statuses[i]);
				assert_int_equal(fk.got[FK_CM_EVENT],
						 fk.acked[FK_CM_EVENT]);
				assert_true(r->said[C].by_type[EP_ERROR] <= 1);
				rig_finish(r, C);
				rig_free(r);
			}
}

/* The event is queued and not fetched when the order to destroy is taken, or fetched in
 * the same turn; one, two or many of them. */
static void destroyed_with_events_queued(void **state)
{
	(void)state;
	for (int at = AT_RESOLVE_ADDR; at < AT__MAX; at++)
		for (int type = 0; type <= RDMA_CM_EVENT_TIMEWAIT_EXIT; type++)
			for (int n = 1; n <= 64; n *= 4) {
				struct ep_start s = rig_start_of(ROLE_TX, C);
				struct cm_command c = {.type = WM_EP_RESET, .start = s};
				struct rig *r;

				if (type == RDMA_CM_EVENT_CONNECT_REQUEST ||
				    type == RDMA_CM_EVENT_DEVICE_REMOVAL)
					continue;
				r = rig_new(4);
				rig_bring(r, C, (enum where)at);
				for (int i = 0; i < n && rig_id(r, C); i++)
					fk_event(rig_id(r, C),
						 (enum rdma_cm_event_type)type, -1);
				assert_true(ring_push(&r->w.ctl_to_cm, &c));
				rig_settle(r);
				rig_finish(r, C);
				rig_free(r);
			}
}

/* Nobody answers the goodbye: our own timer ends it. */
static void a_peer_that_dies_while_we_close(void **state)
{
	(void)state;
	for (int at = AT_UP_TX; at <= AT_BEATING; at++) {
		struct rig *r = rig_new(4);

		rig_bring(r, C, (enum where)at);
		rig_reset(r, C);
		assert_int_equal(fk.disconnects, 1);
		assert_int_equal(r->said[C].by_type[EP_RESET_DONE], 0);
		rig_pass(r, 250 * NSEC_PER_MSEC);
		assert_int_equal(r->said[C].by_type[EP_RESET_DONE], 1);
		rig_finish(r, C);
		rig_free(r);
	}
}

/* A destroy that fails frees nothing: said and counted as lost, the rest goes on. */
static void a_destroy_that_fails_holds_up_nothing(void **state)
{
	static const char *const calls[] = {"rdma_destroy_id", "ibv_destroy_cq",
					    "ibv_dereg_mr"};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(calls); i++) {
		struct rig *r = rig_new(4);
		struct rdma_cm_id *id;
		struct ibv_cq *cq;
		struct ibv_mr *mr;

		rig_bring(r, C, AT_UP_TX);
		id = rig_id(r, C);
		cq = rig_ep(r, C)->recv.cq;
		mr = rig_ep(r, C)->mr;
		fk_fail(calls[i], 0, 1, FK_USUAL, EIO);
		rig_reset(r, C);
		rig_pass(r, 250 * NSEC_PER_MSEC);
		assert_int_equal(r->said[C].by_type[EP_RESET_DONE], 1);
		assert_null(rig_ep(r, C));
		rig_bring(r, C, AT_UP_TX); /* goes on as before */
		assert_int_equal(r->said[C].by_type[EP_UP], 2);
		rig_reset(r, C);
		rig_pass(r, 250 * NSEC_PER_MSEC);
		/* What was lost is the one object: for the balance, end it here. */
		if (i == 0)
			assert_int_equal(rdma_destroy_id(id), 0);
		else if (i == 1)
			assert_int_equal(ibv_destroy_cq(cq), 0);
		else
			assert_int_equal(ibv_dereg_mr(mr), 0);
		rig_free(r);
	}
}

/* ---- ends in any order */

enum end {
	END_UNREACHABLE,
	END_DISCONNECTED,
	END_CQE,
	END_CONNECT_ERROR,
	END_QP_FATAL,
	END_CQ_ERR,
	END__MAX
};

static void some_end(struct rig *r, enum end e, bool settle)
{
	struct rdma_cm_id *id = rig_id(r, C);
	static const enum rdma_cm_event_type types[END__MAX] = {
		[END_UNREACHABLE] = RDMA_CM_EVENT_UNREACHABLE,
		[END_DISCONNECTED] = RDMA_CM_EVENT_DISCONNECTED,
		[END_CONNECT_ERROR] = RDMA_CM_EVENT_CONNECT_ERROR,
	};
	struct ibv_wc wc = {.wr_id = WR_RECV | 0,
			    .status = IBV_WC_RETRY_EXC_ERR,
			    .opcode = (enum ibv_wc_opcode)0x55};

	if (!id)
		return;
	switch (e) {
	case END_CQE:
		if (id->qp && fk_cq_queued(rig_ep(r, C)->recv.cq) < 16)
			fk_wc(id->qp, &wc);
		break;
	case END_QP_FATAL:
		if (id->qp)
			fk_async_qp(id->qp, IBV_EVENT_QP_FATAL);
		break;
	case END_CQ_ERR:
		if (id->qp)
			fk_async_cq(rig_ep(r, C)->recv.cq, IBV_EVENT_CQ_ERR);
		break;
	default:
		fk_event(id, types[e], -ETIMEDOUT);
		break;
	}
	if (settle)
		rig_settle(r);
}

/* What must have been told after these ends in that state. */
static bool must_be_told(enum where at, unsigned ends)
{
	bool has_qp =
		at != AT_RESOLVE_ADDR && at != AT_RESOLVE_ROUTE && at != AT_EXPECT;
	bool up = at == AT_UP_TX || at == AT_UP_RX || at == AT_PROBING ||
		  at == AT_BEATING;

	if (at == AT_EXPECT) /* has no id of its own yet */
		return false;
	if (ends & (1u << END_DISCONNECTED | 1u << END_CONNECT_ERROR))
		return true;
	if (has_qp && (ends & (1u << END_CQE | 1u << END_QP_FATAL | 1u << END_CQ_ERR)))
		return true;
	return !up && (ends & 1u << END_UNREACHABLE);
}

/* All orders of one to four of the ends, in every state, handled one by one or in one
 * turn: told exactly once. */
static void ends_in_any_order_are_told_once(void **state)
{
	int n = 0;

	(void)state;
	for (int at = AT_RESOLVE_ADDR; at <= AT_BEATING; at++)
		for (int a = 0; a < END__MAX; a++)
			for (int b = 0; b < END__MAX; b++)
				for (int c = 0; c < END__MAX; c++)
					for (int burst = 0; burst < 2; burst++) {
						struct rig *r = rig_new(4);
						unsigned ends =
							1u << a | 1u << b | 1u << c;

						rig_bring(r, C, (enum where)at);
						some_end(r, (enum end)a, !burst);
						some_end(r, (enum end)b, !burst);
						some_end(r, (enum end)c, !burst);
						rig_settle(r);
						if (r->said[C].by_type[EP_ERROR] !=
						    must_be_told((enum where)at, ends))
							fail_msg("%s, ends %d %d %d: "
								 "told %d times",
								 where_names[at], a, b,
								 c,
								 r->said[C].by_type
									 [EP_ERROR]);
						rig_finish(r, C);
						rig_free(r);
						n++;
					}
	assert_true(n > 3000);
}

/* All 24 orders of the four of them, with a reset between any two. */
static void ends_around_a_reset(void **state)
{
	(void)state;
	for (int at = AT_CONNECT; at <= AT_BEATING; at++)
		for (int order = 0; order < 256; order++)
			for (int where_reset = 0; where_reset <= 4; where_reset++) {
				int e[4] = {order & 3, order >> 2 & 3, order >> 4 & 3,
					    order >> 6};
				struct rig *r;

				if ((1 << e[0] | 1 << e[1] | 1 << e[2] | 1 << e[3]) !=
				    15)
					continue;
				r = rig_new(4);
				rig_bring(r, C, (enum where)at);
				for (int i = 0; i < 4; i++) {
					if (i == where_reset)
						rig_reset(r, C);
					some_end(r, (enum end)e[i], i & 1);
				}
				rig_settle(r);
				assert_true(r->said[C].by_type[EP_ERROR] <= 1);
				rig_finish(r, C);
				rig_free(r);
			}
}

/* The passive side may hear of anything before it hears that it is connected. */
static void before_established_anything_may_come(void **state)
{
	enum { ESTABLISHED, DISCONNECTED, COMM_EST, DATA, FATAL, N };

	(void)state;
	for (int n = 0; n < N * N * N; n++) {
		int what[3] = {n % N, n / N % N, n / N / N};
		struct rig *r = rig_new(4);

		rig_bring(r, C, AT_ACCEPT);
		for (int i = 0; i < 3; i++) {
			struct rdma_cm_id *id = rig_id(r, C);
			uint8_t nonsense[64] = {1};

			if (!id)
				break;
			if (what[i] == ESTABLISHED)
				fk_event(id, RDMA_CM_EVENT_ESTABLISHED, 0);
			else if (what[i] == DISCONNECTED)
				fk_event(id, RDMA_CM_EVENT_DISCONNECTED, 0);
			else if (what[i] == COMM_EST)
				fk_async_qp(id->qp, IBV_EVENT_COMM_EST);
			else if (what[i] == FATAL)
				fk_async_qp(id->qp, IBV_EVENT_QP_FATAL);
			else
				(void)fk_deliver(id->qp, nonsense, sizeof(nonsense));
			rig_settle(r);
		}
		assert_true(r->said[C].by_type[EP_ERROR] <= 1);
		assert_true(r->said[C].by_type[EP_UP] <= 1);
		/* UP never after the end was told. */
		if (what[0] == DISCONNECTED || what[0] == FATAL)
			assert_int_equal(r->said[C].by_type[EP_UP], 0);
		rig_finish(r, C);
		rig_free(r);
	}
}

/* ---- the same slot again */

static void a_late_event_does_not_reach_the_next_attempt(void **state)
{
	(void)state;
	for (int at = AT_RESOLVE_ADDR; at <= AT_BEATING; at++)
		for (int end = 0; end < END__MAX; end++) {
			struct rig *r = rig_new(1);
			uint64_t handle;
			int up;

			rig_bring(r, C, (enum where)at);
			handle = rig_ep(r, C)->handle;
			some_end(r, (enum end)end, false); /* on its way */
			rig_finish(r, C);
			up = r->said[C].by_type[EP_UP];
			/* The slot and the name are the same, the generation is not. */
			rig_bring(r, C, AT_BEATING);
			assert_true(rig_ep(r, C)->handle != handle);
			for (int type = HOT_DETACHED; type <= HOT_FAILED; type++)
				assert_true(ring_push(
					&r->w.hot_to_cm,
					&(struct hot_note){
						.type = (enum hot_note_type)type,
						.handle = handle,
						.wc_status = IBV_WC_RETRY_EXC_ERR}));
			rig_settle(r);
			assert_int_equal(r->said[C].by_type[EP_UP], up + 1);
			assert_true(rig_ep(r, C)->attached);
			assert_int_equal(rig_ep(r, C)->state, EPS_UP);
			rig_finish(r, C);
			rig_free(r);
		}
}

/* "Stale connection", or any other reason, for ever: each attempt has an id and a queue
 * pair of its own, and main hears of each (what it does then is the back-off of
 * lib/conn.c). */
static void rejected_for_ever_is_a_new_attempt_each_time(void **state)
{
	static const int reasons[] = {1,	  3, 8, 10, 24, 28, 99, -ECONNREFUSED,
				      -ECONNRESET};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(reasons); i++) {
		struct rig *r = rig_new(4);
		uint32_t qpn = 0;

		for (int n = 0; n < 50; n++) {
			rig_bring(r, C, AT_CONNECT);
			assert_true(rig_id(r, C)->qp->qp_num != qpn);
			qpn = rig_id(r, C)->qp->qp_num;
			rig_event(r, C, RDMA_CM_EVENT_REJECTED, reasons[i]);
			assert_int_equal(r->said[C].by_type[EP_ERROR], n + 1);
			if (reasons[i] == 10)
				assert_int_equal(r->said[C].error.error, EPERR_STALE);
			rig_finish(r, C);
		}
		assert_int_equal(fk.made[FK_ID], 50);
		rig_free(r);
	}
}

/* ---- requests */

static void strangers_leave_nothing_behind(void **state)
{
	uint8_t data[56];
	struct rig *r = rig_new(4);

	(void)state;
	rig_listen(r);
	for (int n = 0; n < 10000; n++) {
		uint64_t rnd = mix64((uint64_t)n + 1);

		for (size_t i = 0; i < sizeof(data); i++)
			data[i] = (uint8_t)(n % 3 ? 0 : mix64(rnd + i));
		if (n % 5 == 0) /* the requester gave up meanwhile */
			fk_fail("rdma_reject", 0, 1, n % 2 ? -EINVAL : FK_USUAL,
				EINVAL);
		(void)fk_request(r->cm.listeners->id, data, sizeof(data));
		rig_settle(r);
		fk_balanced(1, 1, 0);
	}
	assert_int_equal(fk.rejects, 10000);
	rig_free(r);
}

/* 128 at once, each for a connection that waits, in one burst, and each of them twice:
 * the first of each is accepted, the second turned away. */
static void a_burst_of_requests_is_accepted_once_each(void **state)
{
	enum { N = 128 };
	struct rig *r = rig_new(N);

	(void)state;
	rig_listen(r);
	for (uint64_t c = 1; c <= N; c++)
		rig_start(r, ROLE_RX, c);
	for (int twice = 0; twice < 2; twice++)
		for (uint64_t c = 1; c <= N; c++) {
			uint8_t data[CMDATA_REQUEST_LEN];

			cmdata_request_encode(
				&(struct cmdata_request){.dst_conn_id = c,
							 .src_conn_id = RIG_PEER + c,
							 .epoch = RIG_EPOCH},
				data);
			(void)fk_request(r->cm.listeners->id, data, sizeof(data));
		}
	rig_settle(r);
	assert_int_equal(fk.accepts, N);
	assert_int_equal(fk.rejects, N);
	for (uint64_t c = 1; c <= N; c++) {
		for (uint64_t d = c + 1; d <= N; d++)
			assert_true(rig_id(r, c) != rig_id(r, d));
		rig_event(r, c, RDMA_CM_EVENT_ESTABLISHED, 0);
		assert_int_equal(r->said[c].by_type[EP_UP], 1);
	}
	for (uint64_t c = 1; c <= N; c++)
		rig_finish(r, c);
	rig_free(r);
}

/* ---- calls */

/* EINVAL of a goodbye means that the peer was faster, in whatever way the library says
 * it. */
static void a_refused_goodbye_is_no_error(void **state)
{
	static const struct {
		int ret, err;
	} ways[] = {
		{FK_USUAL, EINVAL}, {-EINVAL, 0},    {EINVAL, 0}, {FK_USUAL, ENOTCONN},
		{FK_USUAL, ENODEV}, {FK_USUAL, EIO}, {-1, 0}};

	(void)state;
	for (int at = AT_ACCEPT; at <= AT_BEATING; at++)
		for (size_t i = 0; i < ARRAY_LEN(ways); i++) {
			struct rig *r = rig_new(4);

			rig_bring(r, C, (enum where)at);
			fk_fail("rdma_disconnect", 0, 1, ways[i].ret, ways[i].err);
			rig_reset(r, C);
			assert_string_equal(fk_failed(), "rdma_disconnect");
			/* No need to wait for a word that does not come. */
			assert_int_equal(r->said[C].by_type[EP_RESET_DONE], 1);
			assert_int_equal(r->said[C].by_type[EP_ERROR], 0);
			rig_finish(r, C);
			rig_free(r);
		}
}

/* Each call of a whole life fails once, with each errno, in each way in which a library
 * has said so: told once, with words, and the next attempt works. */
static void any_call_may_fail_in_any_way(void **state)
{
	static const int errnos[] = {ENOMEM, EINVAL,	    EACCES,
				     ENODEV, EADDRNOTAVAIL, EIO};
	int failures = 0;

	(void)state;
	for (size_t e = 0; e < ARRAY_LEN(errnos); e++)
		for (int role = 0; role < 2; role++)
			for (int n = 0;; n++) {
				struct rig *r = rig_new(4);
				bool failed;

				if (role)
					rig_listen(r);
				fk_fail(NULL, n, 1, FK_USUAL, errnos[e]);
				rig_bring(r, C, role ? AT_UP_RX : AT_UP_TX);
				failed = !fk_faults_left();
				fk_no_faults();
				if (failed && !r->said[C].by_type[EP_UP] &&
				    rig_ep(r, C) && !rig_id(r, C))
					assert_int_equal(rig_ep(r, C)->state,
							 EPS_FAILED);
				assert_true(r->said[C].by_type[EP_ERROR] <= 1);
				assert_int_equal(r->said[C].by_type[EP_ERROR] +
							 r->said[C].by_type[EP_UP],
						 1);
				rig_finish(r, C);
				rig_bring(r, C, role ? AT_UP_RX : AT_UP_TX);
				assert_true(r->said[C].by_type[EP_UP] >= 1);
				rig_finish(r, C);
				rig_free(r);
				failures += failed;
				if (!failed)
					break;
			}
	assert_true(failures > 200);
}

static void old_libraries_return_what_they_like(void **state)
{
	static const char *const calls[] = {"rdma_create_id", "rdma_resolve_addr",
					    "rdma_resolve_route", "rdma_connect"};
	static const int ways[] = {-EHOSTUNREACH, EHOSTUNREACH};

	(void)state;
	for (size_t c = 0; c < ARRAY_LEN(calls); c++)
		for (size_t i = 0; i < ARRAY_LEN(ways); i++) {
			struct rig *r = rig_new(4);

			fk_fail(calls[c], 0, 1, ways[i], 0);
			rig_bring(r, C, AT_UP_TX);
			assert_int_equal(r->said[C].by_type[EP_ERROR], 1);
			assert_int_equal(r->said[C].error.error, EPERR_NO_ROUTE);
			assert_int_equal(r->said[C].error.status, -EHOSTUNREACH);
			assert_non_null(strstr(r->said[C].error.text, calls[c]));
			rig_finish(r, C);
			rig_free(r);
		}
}

/* ---- time */

/* A hundred that are dead in every stage hold up neither the living nor each other. */
static void dead_peers_hold_up_nobody(void **state)
{
	enum { DEAD = 100 };
	struct rig *r = rig_new(DEAD + 1);

	(void)state;
	for (uint64_t c = 2; c <= DEAD + 1; c++)
		rig_bring(r, c, (enum where)(AT_RESOLVE_ADDR + c % 3));
	r->answer = true;
	rig_bring(r, C, AT_BEATING);
	for (int i = 0; i < 100; i++) {
		uint64_t late = rig_ep(r, C)->hb.stats.lost;

		rig_pass(r, 100 * NSEC_PER_MSEC);
		assert_int_equal(rig_ep(r, C)->hb.stats.lost, late);
	}
	assert_int_equal(r->said[C].by_type[EP_LATE], 0);
	assert_int_equal(r->said[C].by_type[EP_ERROR], 0);
	assert_true(r->said[C].last.stats.sent >= 90);
	for (uint64_t c = 2; c <= DEAD + 1; c++) {
		/* Ours, not the kernel's minutes. */
		assert_int_equal(r->said[c].by_type[EP_ERROR], 1);
		rig_finish(r, c);
	}
	rig_finish(r, C);
	rig_free(r);
}

/* Before the queue pair is ready to send, on both sides, or it is of no use. */
static void the_ack_timeout_is_set_in_time(void **state)
{
	(void)state;
	for (int rx = 0; rx < 2; rx++) {
		struct rig *r = rig_new(4);

		rig_bring(r, C, rx ? AT_UP_RX : AT_UP_TX);
		assert_int_equal(fk.late_options, 0);
		rig_finish(r, C);
		/* One that does not know the option connects all the same. */
		fk_fail("rdma_set_option", 0, 2, FK_USUAL, ENOSYS);
		rig_bring(r, C, rx ? AT_UP_RX : AT_UP_TX);
		assert_int_equal(r->said[C].by_type[EP_UP], 2);
		fk_no_faults();
		rig_finish(r, C);
		rig_free(r);
	}
}

/* A call that does not come back is seen by its name and its age, which is what main
 * ends the worker by; when it does come back, all goes on. */
static void *turn_cm(void *arg)
{
	struct rig *r = arg;

	cm_turn(&r->cm);
	return NULL;
}

static void a_call_that_blocks_is_seen(void **state)
{
	struct ep_start s = rig_start_of(ROLE_TX, C);
	struct cm_command c = {.type = WM_EP_START, .start = s};
	struct rig *r;
	const char *call;
	pthread_t t;

	(void)state;
	r = rig_new(4);
	r->answer = true;
	fk_block("rdma_resolve_route");
	assert_true(ring_push(&r->w.ctl_to_cm, &c));
	fk.virtual_time = false;
	assert_int_equal(pthread_create(&t, NULL, turn_cm, r), 0);
	while (!fk_is_blocking())
		(void)sched_yield();
	call = atomic_load(&r->w.cm_busy.call);
	assert_string_equal(call, "rdma_resolve_route");
	assert_false(atomic_load(&r->w.cm_busy.destroying));
	fk_unblock();
	(void)pthread_join(t, NULL);
	assert_null(atomic_load(&r->w.cm_busy.call));
	fk.virtual_time = true;
	/* The world belongs to that thread: it ends it, too. */
	r->hold_cm = true;
	assert_int_equal(r->said[C].by_type[EP_ERROR], 0);
	fk_forget_owner();
	r->hold_cm = false;
	rig_settle(r);
	assert_int_equal(r->said[C].by_type[EP_UP], 1);
	rig_finish(r, C);
	rig_free(r);
}

/* ---- iWARP: connecting blocks, in a thread of its own */

static void iwarp_connects_beside(void **state)
{
	(void)state;
	for (int break_it = 0; break_it < 2; break_it++) {
		struct rig *r = rig_new(4);

		fk.transport = IBV_TRANSPORT_IWARP;
		fk_verbs_reset();
		fk.iwarp_thread = true;
		r->answer = true;
		fk_block("rdma_connect");
		rig_start(r, ROLE_TX, C);
		while (!fk_is_blocking())
			(void)sched_yield();
		/* Others go on; this one waits and is no reason to be killed. */
		assert_null(atomic_load(&r->w.cm_busy.call));
		assert_int_equal(r->said[C].by_type[EP_ERROR], 0);
		if (break_it) {
			rig_reset(r, C);
			for (int i = 0; i < 10000 && rig_ep(r, C); i++) {
				rig_pass(r, 20 * NSEC_PER_MSEC);
				(void)usleep(100);
			}
			assert_null(rig_ep(r, C));
			assert_int_equal(r->said[C].by_type[EP_RESET_DONE], 1);
			assert_int_equal(fk.connects, 0);
			fk_block("");
		} else {
			fk_unblock();
			for (int i = 0; i < 10000 && !r->said[C].by_type[EP_UP]; i++) {
				wake(r->w.wake_cm);
				cm_turn(&r->cm);
				rig_settle(r);
				(void)usleep(100);
			}
			assert_int_equal(r->said[C].by_type[EP_UP], 1);
			rig_finish(r, C);
		}
		rig_free(r);
	}
}

/* ---- the device */

static void the_device_may_go_in_any_state(void **state)
{
	(void)state;
	for (int at = AT_RESOLVE_ADDR; at <= AT_CLOSING; at++)
		for (int by_fatal = 0; by_fatal < 2; by_fatal++) {
			struct rig *r = rig_new(4);

			rig_bring(r, C, (enum where)at);
			if (by_fatal && !r->cm.ctx.verbs) {
				rig_finish(r, C);
				rig_free(r);
				continue;
			}
			if (by_fatal)
				fk_async_port(fk.verbs, IBV_EVENT_DEVICE_FATAL, 0);
			else if (rig_id(r, C))
				fk_event(rig_id(r, C), RDMA_CM_EVENT_DEVICE_REMOVAL, 0);
			else
				fk_event(r->cm.listeners->id,
					 RDMA_CM_EVENT_DEVICE_REMOVAL, 0);
			rig_settle(r);
			assert_int_equal(r->goodbyes, 1);
			assert_int_equal(r->goodbye, GOODBYE_DEVICE_GONE);
			rig_settle(r); /* nothing is done and said any more */
			assert_int_equal(r->goodbyes, 1);
			/* The process would have ended: clean up for the balance. */
			r->cm.gone = false;
			rig_finish(r, C);
			rig_free(r);
		}
}

/* All calls fail and all descriptors are in error, as after a disassociation: the order
 * to go is obeyed all the same. */
static void after_the_death_of_the_device_all_can_be_ended(void **state)
{
	for (int at = AT_UP_TX; at <= AT_BEATING; at++) {
		struct rig *r = rig_new(4);

		(void)state;
		rig_bring(r, C, (enum where)at);
		fk_kill_async(fk.verbs, EIO);
		fk_kill_cm(r->cm.channel, EIO);
		fk_kill_comp(r->cm.ctx.channel, EIO);
		fk_fail("rdma_disconnect", 0, 1, FK_USUAL, EIO);
		rig_settle(r);
		rig_command(r, WM_EXIT, NULL);
		rig_pass(r, 300 * NSEC_PER_MSEC);
		cm_turn(&r->cm);
		rig_settle(r);
		assert_int_equal(r->said[C].by_type[EP_RESET_DONE], 1);
		rig_free(r);
	}
}

/* A device with the same name and GUID and another index is another device. */
static void another_device_is_never_taken_for_ours(void **state)
{
	(void)state;
	for (int rx = 0; rx < 2; rx++) {
		struct rig *r = rig_new(4);

		fk.index = 4;
		if (rx) {
			rig_listen(r);
		} else {
			rig_start(r, ROLE_TX, C);
			rig_event(r, C, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
		}
		assert_int_equal(r->goodbyes, 1);
		assert_int_equal(r->goodbye, GOODBYE_WRONG_DEVICE);
		assert_int_equal(fk.alive[FK_QP], 0);
		r->cm.gone = false;
		if (!rx)
			rig_finish(r, C);
		rig_free(r);
	}
}

/* Bonding: the address moves, the neighbour changes, in any order and number. Nothing
 * is torn down by a hint; the heartbeats decide. */
static void a_failover_is_a_hint(void **state)
{
	(void)state;
	for (int n = 0; n < 16; n++) {
		struct rig *r = rig_new(4);

		r->answer = true;
		rig_bring(r, C, AT_BEATING);
		for (int i = 0; i < 4; i++) {
			rig_event(r, C,
				  n >> i & 1 ? RDMA_CM_EVENT_ADDR_CHANGE
					     : RDMA_CM_EVENT_UNREACHABLE,
				  n >> i & 1 ? 0 : -ETIMEDOUT);
			rig_pass(r, 50 * NSEC_PER_MSEC);
		}
		assert_int_equal(r->said[C].by_type[EP_ERROR], 0);
		assert_int_equal(r->said[C].by_type[EP_LATE], 0);
		r->answer = false; /* and now it is gone indeed */
		rig_pass(r, NSEC_PER_SEC);
		assert_int_equal(r->said[C].by_type[EP_LATE], 1);
		rig_finish(r, C);
		rig_free(r);
	}
}

/* No right to the device node, or none there: what is said names it. */
static void no_right_is_said_with_words(void **state)
{
	static const int errnos[] = {EACCES, EPERM, ENOENT, ENODEV};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(errnos); i++) {
		struct rig *r = rig_new(4);

		fk_fail("rdma_create_event_channel", 0, 1, FK_USUAL, errnos[i]);
		rig_start(r, ROLE_TX, C);
		assert_int_equal(r->said[C].by_type[EP_ERROR], 1);
		assert_non_null(strstr(r->said[C].error.text, "rdma_cm"));
		assert_non_null(strstr(r->said[C].error.text, strerror(errnos[i])));
		rig_finish(r, C);
		rig_bring(r, C, AT_UP_TX); /* it may be given later */
		rig_finish(r, C);
		rig_free(r);
	}
}

/* A GID of another network namespace, no device for the source: a fault here, not one
 * of the peer. */
static void no_device_for_the_source_is_a_local_fault(void **state)
{
	struct rig *r = rig_new(4);

	(void)state;
	rig_bring(r, C, AT_RESOLVE_ADDR);
	rig_event(r, C, RDMA_CM_EVENT_ADDR_ERROR, -ENODEV);
	assert_int_equal(r->said[C].error.error, EPERR_NO_ADDRESS);
	rig_finish(r, C);
	rig_bring(r, C, AT_RESOLVE_ADDR);
	fk.no_device = true; /* resolved, but to nothing */
	rig_event(r, C, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	assert_int_equal(r->said[C].error.error, EPERR_NO_ADDRESS);
	rig_finish(r, C);
	rig_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(any_event_in_any_state_is_acked_once),
		cmocka_unit_test(destroyed_with_events_queued),
		cmocka_unit_test(a_peer_that_dies_while_we_close),
		cmocka_unit_test(a_destroy_that_fails_holds_up_nothing),
		cmocka_unit_test(ends_in_any_order_are_told_once),
		cmocka_unit_test(ends_around_a_reset),
		cmocka_unit_test(before_established_anything_may_come),
		cmocka_unit_test(a_late_event_does_not_reach_the_next_attempt),
		cmocka_unit_test(rejected_for_ever_is_a_new_attempt_each_time),
		cmocka_unit_test(strangers_leave_nothing_behind),
		cmocka_unit_test(a_burst_of_requests_is_accepted_once_each),
		cmocka_unit_test(a_refused_goodbye_is_no_error),
		cmocka_unit_test(any_call_may_fail_in_any_way),
		cmocka_unit_test(old_libraries_return_what_they_like),
		cmocka_unit_test(dead_peers_hold_up_nobody),
		cmocka_unit_test(the_ack_timeout_is_set_in_time),
		cmocka_unit_test(a_call_that_blocks_is_seen),
		cmocka_unit_test(iwarp_connects_beside),
		cmocka_unit_test(the_device_may_go_in_any_state),
		cmocka_unit_test(after_the_death_of_the_device_all_can_be_ended),
		cmocka_unit_test(another_device_is_never_taken_for_ours),
		cmocka_unit_test(a_failover_is_a_hint),
		cmocka_unit_test(no_right_is_said_with_words),
		cmocka_unit_test(no_device_for_the_source_is_a_local_fault),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
