/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Asynchronous events, completion queues and buffers: what comes in any number and any
 * order, what is lost, what is doubled, what stays in error for ever.
 */
#include <errno.h>
#include <stdlib.h>

#include "fabric.h"
#include "script.h"

#define C 1

/* ---- asynchronous events */

/* One wakeup stands for any number of them. */
static void any_number_of_async_events_at_once(void **state)
{
	static const int numbers[] = {1, 2, 63, 64, 65, 128, 1000};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
		struct rig *r = rig_new(4);

		rig_bring(r, C, AT_UP_TX);
		for (int n = 0; n < numbers[i] - 1; n++)
			fk_async_qp(rig_id(r, C)->qp, IBV_EVENT_COMM_EST);
		fk_async_qp(rig_id(r, C)->qp, IBV_EVENT_QP_FATAL);
		cm_turn(&r->cm);
		assert_true(fk.got[FK_ASYNC_EVENT] >= (uint64_t)MIN(numbers[i], 64));
		rig_settle(r); /* what a turn leaves, the next one takes */
		assert_int_equal(fk_async_queued(fk.verbs), 0);
		assert_int_equal(fk.got[FK_ASYNC_EVENT], numbers[i]);
		assert_int_equal(fk.acked[FK_ASYNC_EVENT], numbers[i]);
		assert_int_equal(r->said[C].by_type[EP_ERROR], 1);
		rig_finish(r, C);
		rig_free(r);
	}
}

/* All kinds there are and will be, of all objects, in every state. */
static void any_async_event_in_any_state(void **state)
{
	(void)state;
	for (int at = AT_CONNECT; at <= AT_CLOSING; at++)
		for (int type = 0; type < 40; type++) {
			struct rig *r = rig_new(4);
			struct endpoint *ep;
			bool fatal = type == IBV_EVENT_QP_FATAL ||
				     type == IBV_EVENT_QP_REQ_ERR ||
				     type == IBV_EVENT_QP_ACCESS_ERR ||
				     type == IBV_EVENT_CQ_ERR;

			rig_bring(r, C, (enum where)at);
			ep = rig_ep(r, C);
			if (!ep || !ep->qp) {
				rig_finish(r, C);
				rig_free(r);
				continue;
			}
			switch (type) {
			case IBV_EVENT_CQ_ERR:
				fk_async_cq(ep->recv.cq, IBV_EVENT_CQ_ERR);
				break;
			case IBV_EVENT_QP_FATAL:
			case IBV_EVENT_QP_REQ_ERR:
			case IBV_EVENT_QP_ACCESS_ERR:
			case IBV_EVENT_COMM_EST:
			case IBV_EVENT_SQ_DRAINED:
			case IBV_EVENT_PATH_MIG:
			case IBV_EVENT_PATH_MIG_ERR:
			case IBV_EVENT_QP_LAST_WQE_REACHED:
				fk_async_qp(ep->qp, (enum ibv_event_type)type);
				break;
			case IBV_EVENT_DEVICE_FATAL:
				break;
			default:
				fk_async_port(fk.verbs, (enum ibv_event_type)type, 1);
				break;
			}
			rig_settle(r);
			if (at != AT_FAILED && at != AT_CLOSING)
				assert_int_equal(r->said[C].by_type[EP_ERROR], fatal);
			rig_finish(r, C);
			rig_free(r);
		}
}

/* EIO (or EBADF, ENODEV) for ever after the death of the device, with the descriptor in
 * error: looked at once more at most, and never again. */
static void a_dead_descriptor_is_left_alone(void **state)
{
	static const int errnos[] = {EIO, EBADF, ENODEV, EINVAL};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(errnos); i++)
		for (int which = 0; which < 3; which++) {
			uint64_t *looks[] = {&fk.get_async, &fk.get_cm, &fk.get_cq};
			struct rig *r = rig_new(4);
			uint64_t before;

			rig_bring(r, C, AT_UP_TX);
			fk.virtual_time = true;
			if (which == 0)
				fk_kill_async(fk.verbs, errnos[i]);
			else if (which == 1)
				fk_kill_cm(r->cm.channel, errnos[i]);
			else
				fk_kill_comp(r->cm.ctx.channel, errnos[i]);
			before = *looks[which];
			for (int n = 0; n < 100; n++) {
				cm_turn(&r->cm);
				hot_turn(&r->hot);
			}
			assert_true(*looks[which] <= before + 1);
			assert_int_equal(which == 0   ? r->cm.async_dead
					 : which == 1 ? r->cm.channel_dead
						      : r->hot.channel_dead,
					 true);
			rig_finish(r, C);
			rig_free(r);
		}
}

/* A queue pair that both an event and a completion end, in both orders and at once,
 * with the reset between: ended once. */
static void an_event_and_a_completion_end_it_once(void **state)
{
	static const struct ibv_wc wc = {.wr_id = WR_SEND | 3,
					 .status = IBV_WC_RETRY_EXC_ERR,
					 .opcode = IBV_WC_RECV_RDMA_WITH_IMM};

	(void)state;
	for (int at = AT_CONNECT; at <= AT_BEATING; at++)
		for (int order = 0; order < 6; order++) {
			struct rig *r = rig_new(4);
			struct ibv_qp *qp;

			rig_bring(r, C, (enum where)at);
			if (!rig_id(r, C) || !rig_id(r, C)->qp) {
				rig_finish(r, C);
				rig_free(r);
				continue;
			}
			qp = rig_id(r, C)->qp;
			if (order & 1)
				fk_wc(qp, &wc);
			else
				fk_async_qp(qp, IBV_EVENT_QP_FATAL);
			if (order / 2 == 1)
				rig_settle(r);
			if (order / 2 == 2)
				rig_reset(r, C);
			if (rig_id(r, C)) {
				if (order & 1)
					fk_async_qp(qp, IBV_EVENT_QP_FATAL);
				else
					fk_wc(qp, &wc);
			}
			rig_settle(r);
			assert_true(r->said[C].by_type[EP_ERROR] <= 1);
			if (order / 2 != 2)
				assert_int_equal(r->said[C].by_type[EP_ERROR], 1);
			rig_finish(r, C);
			rig_free(r);
		}
}

/* ---- completion queues */

/* Many queues on one channel, their notifications interleaved, some for nothing: each
 * is acknowledged on its own queue, as often as it came. */
static void acks_go_to_the_queue_they_came_from(void **state)
{
	enum { N = 16 };
	struct rig *r = rig_new(N);

	(void)state;
	for (uint64_t c = 1; c <= N; c++)
		rig_bring(r, c, AT_UP_TX);
	for (int round = 0; round < 200; round++) {
		uint64_t rnd = mix64((uint64_t)round + 1);

		for (int i = 0; i < 20; i++) {
			rnd = mix64(rnd);
			fk_spurious(rig_ep(r, 1 + rnd % N)->recv.cq);
		}
		if (round % 3 == 0)
			rig_settle(r);
		if (round % 50 == 49) { /* one goes with notifications waiting */
			uint64_t c = 1 + (uint64_t)round / 50;

			rig_reset(r, c);
			rig_pass(r, 250 * NSEC_PER_MSEC);
			assert_null(rig_ep(r, c));
			rig_bring(r, c, AT_UP_TX);
		}
	}
	rig_settle(r);
	assert_int_equal(fk.got[FK_CQ_EVENT], fk.acked[FK_CQ_EVENT]);
	assert_true(fk.got[FK_CQ_EVENT] > 1000);
	for (uint64_t c = 1; c <= N; c++)
		rig_finish(r, c);
	rig_free(r);
}

static int to_come;
static struct rig *arming_rig;

/* A message, put into the queue between the last look at it and the arming. */
static void comes_while_arming(struct ibv_cq *cq)
{
	struct endpoint *ep = rig_ep(arming_rig, C);
	struct fabric_msg m = {.type = FABRIC_PROBE,
			       .length = FABRIC_LEN,
			       .conn_id = C,
			       .epoch = RIG_EPOCH,
			       .t1 = 1};
	uint8_t buf[FABRIC_LEN];

	(void)cq;
	if (!to_come)
		return;
	m.seq = (uint64_t)to_come--;
	fabric_encode(&m, NULL, buf);
	assert_true(fk_deliver(ep->qp, buf, sizeof(buf)));
}

static void what_comes_while_arming_is_seen(void **state)
{
	(void)state;
	for (int n = 1; n <= 12; n++) {
		struct rig *r = rig_new(4);

		rig_bring(r, C, AT_UP_RX);
		rig_hot(r, WM_EP_PROBE, C);
		arming_rig = r;
		to_come = n;
		fk.on_arm = comes_while_arming;
		for (int i = 0; i < n; i++) {
			fk_spurious(rig_ep(r, C)->recv.cq);
			rig_settle(r);
		}
		fk.on_arm = NULL;
		assert_int_equal(to_come, 0);
		/* No later event would have shown it. */
		assert_int_equal(fk_cq_queued(rig_ep(r, C)->recv.cq), 0);
		assert_int_equal(rig_ep(r, C)->hb.stats.received, n);
		assert_int_equal(fk_qp_view(rig_ep(r, C)->qp).sends_out, n);
		rig_finish(r, C);
		rig_free(r);
	}
}

/* It may also come before the first arming of a queue pair that is just attached. */
static void what_comes_before_the_first_arming_is_seen(void **state)
{
	struct rig *r = rig_new(4);
	uint8_t nonsense[64] = {1};

	(void)state;
	r->hold_hot = true;
	rig_bring(r, C, AT_ACCEPT);
	assert_true(fk_deliver(rig_ep(r, C)->qp, nonsense, sizeof(nonsense)));
	assert_false(fk_cq_armed(rig_ep(r, C)->recv.cq));
	r->hold_hot = false;
	rig_settle(r);
	assert_int_equal(fk_cq_queued(rig_ep(r, C)->recv.cq), 0);
	assert_true(fk_cq_armed(rig_ep(r, C)->recv.cq));
	assert_int_equal(fk_qp_view(rig_ep(r, C)->qp).recv_posted, EP_SLOTS);
	rig_finish(r, C);
	rig_free(r);
}

/* Of a completion with an error all but four fields are wrong on purpose; every status
 * there is, in every batch size. */
static void errors_are_read_by_what_is_valid(void **state)
{
	(void)state;
	for (int status = IBV_WC_LOC_LEN_ERR; status <= IBV_WC_GENERAL_ERR + 2;
	     status++)
		for (int n = 1; n <= 16; n += 5) {
			struct rig *r = rig_new(4);
			bool flush = status == IBV_WC_WR_FLUSH_ERR;

			r->answer = true;
			rig_bring(r, C, AT_BEATING);
			for (int i = 0; i < n; i++)
				fk_wc(rig_ep(r, C)->qp,
				      &(struct ibv_wc){
					      .wr_id = (i & 1 ? WR_SEND : WR_RECV) |
						       (uint64_t)i,
					      .status = (enum ibv_wc_status)status,
					      .opcode = (enum ibv_wc_opcode)(
						      0x80 + mix64((uint64_t)i) % 9),
					      .byte_len = 0xffffffff,
					      .wc_flags = ~0u,
					      .vendor_err = 0x42});
			rig_settle(r);
			assert_int_equal(r->said[C].by_type[EP_ERROR], flush ? 0 : 1);
			if (!flush)
				assert_non_null(
					strstr(r->said[C].error.text, "vendor 0x42"));
			rig_finish(r, C);
			rig_free(r);
		}
}

/* A receive that cannot be posted again loses its own slot and nothing else of the
 * batch. */
static void a_failed_repost_loses_no_other_completion(void **state)
{
	struct rig *r = rig_new(4);
	struct fabric_msg m = {.type = FABRIC_PROBE_ECHO, /* is dropped: posted again */
			       .length = FABRIC_LEN,
			       .conn_id = C,
			       .epoch = RIG_EPOCH};
	uint8_t buf[FABRIC_LEN];

	(void)state;
	rig_bring(r, C, AT_UP_RX);
	rig_hot(r, WM_EP_PROBE, C);
	fk_fail("ibv_post_recv", 1, 2, FK_USUAL, ENOMEM);
	for (int i = 0; i < 8; i++) {
		m.seq = (uint64_t)i + 1;
		fabric_encode(&m, NULL, buf);
		assert_true(fk_deliver(rig_ep(r, C)->qp, buf, sizeof(buf)));
	}
	rig_settle(r);
	assert_int_equal(fk_faults_left(), 0);
	assert_int_equal(rig_ep(r, C)->hb.stats.dropped, 8);
	assert_int_equal(fk_qp_view(rig_ep(r, C)->qp).recv_posted, EP_SLOTS - 2);
	rig_finish(r, C);
	rig_free(r);
}

/* ---- buffers */

/* Whatever comes, a slot is posted, in a completion that waits, or under an answer that
 * is out: never twice, never lost. A flush gives all of them back. */
static void buffers_balance(void **state)
{
	(void)state;
	for (int inlined = 0; inlined < 2; inlined++) {
		struct rig *r = rig_new(4);
		struct fk_qp_view v;
		uint64_t rnd = 7;

		fk.max_inline = inlined ? 128 : 0;
		rig_bring(r, C, AT_UP_RX);
		rig_hot(r, WM_EP_PROBE, C);
		for (int i = 0; i < 20000; i++) {
			struct endpoint *ep = rig_ep(r, C);
			struct fabric_msg m = {.type = (uint8_t)(1 + rnd % 5),
					       .length = FABRIC_LEN,
					       .conn_id = C + (rnd >> 8) % 2,
					       .epoch = RIG_EPOCH,
					       .seq = (uint64_t)i + 1};
			uint8_t buf[FABRIC_LEN];
			int used;

			rnd = mix64(rnd);
			fabric_encode(&m, NULL, buf);
			if ((rnd >> 16) % 7 == 0)
				memset(buf, (int)rnd, sizeof(buf) / 2);
			(void)fk_deliver(ep->qp, buf,
					 (rnd >> 20) % 9 ? sizeof(buf) : rnd % 64);
			if ((rnd >> 24) % 3)
				rig_settle(r);
			while ((rnd = mix64(rnd)) % 3 &&
			       fk_complete_send(ep->qp, IBV_WC_SUCCESS))
				;
			/* What went inline needs its slot no more. */
			v = fk_qp_view(ep->qp);
			used = inlined ? 0 : v.sends_out + fk_cq_queued(ep->send.cq);
			assert_int_equal(v.recv_posted + fk_cq_queued(ep->recv.cq) +
						 used,
					 EP_SLOTS);
		}
		fk_flush(rig_ep(r, C)->qp);
		v = fk_qp_view(rig_ep(r, C)->qp);
		assert_int_equal(v.posted, v.returned);
		assert_int_equal(v.sends_out, 0);
		rig_finish(r, C);
		rig_free(r);
	}
}

/* The memory of an endpoint outlives its queue pair in every state; the fakes look. */
static void memory_goes_last(void **state)
{
	(void)state;
	for (int at = AT_CONNECT; at <= AT_CLOSING; at++) {
		struct rig *r = rig_new(4);

		rig_bring(r, C, (enum where)at);
		rig_finish(r, C);
		assert_int_equal(fk.made[FK_MR], fk.destroyed[FK_MR]);
		rig_free(r);
	}
}

/* Locked memory is short: each object of a queue pair may be the one that finds none.
 * Said with the name of the limit, and the next attempt works. */
static void short_of_locked_memory(void **state)
{
	static const char *const calls[] = {"ibv_reg_mr", "ibv_create_cq",
					    "rdma_create_qp"};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(calls); i++)
		for (int rx = 0; rx < 2; rx++) {
			struct rig *r = rig_new(4);

			fk_fail(calls[i], 0, 3, FK_USUAL, ENOMEM);
			for (int n = 0; n < 4; n++) {
				rig_bring(r, C, rx ? AT_UP_RX : AT_UP_TX);
				if (n < 3)
					assert_non_null(strstr(r->said[C].error.text,
							       "RLIMIT_MEMLOCK"));
				rig_finish(r, C);
			}
			assert_int_equal(r->said[C].by_type[EP_ERROR], 3);
			assert_int_equal(r->said[C].by_type[EP_UP], 1);
			rig_free(r);
		}
}

/* A queue that could not be destroyed lives on without its endpoint. */
static void a_queue_that_was_lost_disturbs_nobody(void **state)
{
	struct rig *r = rig_new(4);
	struct ibv_cq *cq;

	(void)state;
	rig_bring(r, C, AT_UP_TX);
	cq = rig_ep(r, C)->recv.cq;
	fk_fail("ibv_destroy_cq", 0, 1, FK_USUAL, EIO);
	rig_reset(r, C);
	rig_pass(r, 250 * NSEC_PER_MSEC);
	assert_null(rig_ep(r, C));
	fk_spurious(cq);
	fk_async_cq(cq, IBV_EVENT_CQ_ERR);
	rig_settle(r);
	assert_int_equal(fk.got[FK_CQ_EVENT], fk.acked[FK_CQ_EVENT]);
	assert_int_equal(ibv_destroy_cq(cq), 0);
	rig_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(any_number_of_async_events_at_once),
		cmocka_unit_test(any_async_event_in_any_state),
		cmocka_unit_test(a_dead_descriptor_is_left_alone),
		cmocka_unit_test(an_event_and_a_completion_end_it_once),
		cmocka_unit_test(acks_go_to_the_queue_they_came_from),
		cmocka_unit_test(what_comes_while_arming_is_seen),
		cmocka_unit_test(what_comes_before_the_first_arming_is_seen),
		cmocka_unit_test(errors_are_read_by_what_is_valid),
		cmocka_unit_test(a_failed_repost_loses_no_other_completion),
		cmocka_unit_test(buffers_balance),
		cmocka_unit_test(memory_goes_last),
		cmocka_unit_test(short_of_locked_memory),
		cmocka_unit_test(a_queue_that_was_lost_disturbs_nobody),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
