/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ud, as whole kinds: any event with any status in any state, any change of the port
 * while messages run, the bytes before a datagram, requests that come as often as they
 * like. (What each of these does in detail is in test_ud.c.)
 */
#include <errno.h>

#include "fabric.h"
#include "script.h"

#define C 1

static struct rig *ud_rig(void)
{
	struct rig *r = rig_new(4);

	r->transport = TRANSPORT_UD;
	return r;
}

static const enum where states[] = {AT_RESOLVE_ADDR, AT_RESOLVE_ROUTE, AT_CONNECT,
				    AT_EXPECT,	     AT_ACCEPT,	       AT_UP_TX,
				    AT_PROBING,	     AT_BEATING,       AT_CLOSING};

/* A refusal comes as UNREACHABLE with a positive status, a lookup that nobody answers
 * with a negative one. */
static void any_event_in_any_state(void **state)
{
	static const int statuses[] = {0, -ETIMEDOUT, -1, -ENODEV, 1, 2, 3, 4, 5, 99};

	(void)state;
	for (size_t at = 0; at < ARRAY_LEN(states); at++)
		for (int type = 0; type <= RDMA_CM_EVENT_TIMEWAIT_EXIT + 4; type++)
			for (size_t i = 0; i < ARRAY_LEN(statuses); i++) {
				struct rig *r;

				if (type == RDMA_CM_EVENT_CONNECT_REQUEST ||
				    type == RDMA_CM_EVENT_DEVICE_REMOVAL)
					continue;
				r = ud_rig();
				rig_bring(r, C, states[at]);
				rig_event(r, C, (enum rdma_cm_event_type)type,
					  statuses[i]);
				assert_true(r->said[C].by_type[EP_ERROR] <= 1);
				if (states[at] == AT_CONNECT &&
				    type == RDMA_CM_EVENT_UNREACHABLE) {
					assert_int_equal(r->said[C].by_type[EP_ERROR],
							 1);
					if (statuses[i] == 1)
						assert_int_equal(r->said[C].error.error,
								 EPERR_CM_REFUSED);
				}
				rig_finish(r, C);
				rig_free(r);
			}
}

/* Each change of the port, and bursts of all of them, while heartbeats run: the way is
 * looked up again and nothing is lost. */
static void any_change_is_followed(void **state)
{
	static const enum ibv_event_type changes[] = {
		IBV_EVENT_GID_CHANGE,	     IBV_EVENT_LID_CHANGE,
		IBV_EVENT_SM_CHANGE,	     IBV_EVENT_PKEY_CHANGE,
		IBV_EVENT_CLIENT_REREGISTER, IBV_EVENT_PORT_ACTIVE};

	(void)state;
	for (unsigned set = 1; set < 1u << ARRAY_LEN(changes); set++) {
		struct rig *r = ud_rig();
		uint64_t made;

		r->answer = true;
		rig_bring(r, C, AT_BEATING);
		rig_pass(r, NSEC_PER_SEC);
		made = fk.made[FK_AH];
		for (size_t i = 0; i < ARRAY_LEN(changes); i++)
			if (set & 1u << i)
				fk_async_port(fk.verbs, changes[i], 1);
		rig_pass(r, 5 * NSEC_PER_SEC);
		assert_true(fk.made[FK_AH] > made);
		assert_int_equal(r->said[C].by_type[EP_LATE], 0);
		assert_int_equal(r->said[C].by_type[EP_ERROR], 0);
		assert_int_equal(rig_ep(r, C)->hb.stats.lost, 0);
		rig_finish(r, C);
		assert_int_equal(fk.alive[FK_AH], 0);
		rig_free(r);
	}
}

/* The payload is at 40 always, with a header or without, whatever was there before. */
static void the_payload_is_at_40(void **state)
{
	static const uint8_t v4[40] = {
		[20] = 0x45, [32] = 10, [35] = 2, [36] = 10, [39] = 1};
	/* The same addresses in a header of InfiniBand's own form. */
	static const uint8_t v6[40] = {
		0x60,	     [18] = 0xff, [19] = 0xff, [20] = 10, [23] = 2,
		[34] = 0xff, [35] = 0xff, [36] = 10,   [39] = 1};
	const uint8_t *const headers[] = {v4, v6, NULL};

	(void)state;
	for (size_t h = 0; h < ARRAY_LEN(headers); h++)
		for (int fill = 0; fill < 256; fill += 51) {
			struct rig *r = ud_rig();
			struct ibv_qp *qp;
			struct fabric_msg m = {.type = FABRIC_PROBE,
					       .length = FABRIC_LEN,
					       .conn_id = C,
					       .epoch = RIG_EPOCH,
					       .seq = 1,
					       .t1 = 1};
			uint8_t buf[FABRIC_LEN];

			rig_bring(r, C, AT_ACCEPT);
			rig_hot(r, WM_EP_PROBE, C);
			qp = fk_ud_qp();
			assert_non_null(qp);
			for (unsigned i = 0; i < rig_ep(r, C)->ud->n_recv; i++)
				memset(ud_recv_buf(rig_ep(r, C)->ud, i) +
					       (headers[h] ? 20 : 0),
				       fill, headers[h] ? 20 : UD_GRH);
			fabric_encode(&m, NULL, buf);
			assert_true(
				fk_deliver_ud(qp, headers[h], buf, sizeof(buf), 0x777));
			rig_settle(r);
			if (rig_ep(r, C)->hb.stats.received != 1)
				fail_msg("header %zu, fill 0x%x: %d", h, fill,
					 (int)rig_ep(r, C)->state);
			assert_int_equal(rig_ep(r, C)->hb.stats.dropped, 0);
			rig_finish(r, C);
			rig_free(r);
		}
}

/* SIDR is repeated when an answer is lost: each is answered, none leaves an id. */
static void a_request_may_come_as_often_as_it_likes(void **state)
{
	struct rig *r = ud_rig();

	(void)state;
	rig_bring(r, C, AT_EXPECT);
	for (int i = 1; i <= 1000; i++) {
		(void)rig_request(r, C);
		assert_int_equal(fk.accepts, i);
		rig_pass(r, NSEC_PER_MSEC);
	}
	assert_true(fk.alive[FK_ID] <= 2); /* the listener, and at most one */
	assert_true(r->said[C].by_type[EP_ERROR] == 0);
	rig_finish(r, C);
	rig_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(any_event_in_any_state),
		cmocka_unit_test(any_change_is_followed),
		cmocka_unit_test(the_payload_is_at_40),
		cmocka_unit_test(a_request_may_come_as_often_as_it_likes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
