/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The fakes find what they are there to find: each mistake that would hang or corrupt
 * the real libraries is made here on purpose, and must be told by its name.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#include "script.h"

/* Run @mistake; what the fakes said of it, "" when they said nothing. */
static const char *caught(void (*mistake)(void))
{
	static char said[160];
	jmp_buf back;

	fk_begin();
	if (!setjmp(back)) {
		fk.on_wrong = &back;
		mistake();
		said[0] = '\0';
	} else {
		(void)str_copy(said, sizeof(said), fk.wrong);
	}
	fk.on_wrong = NULL;
	if (!said[0]) /* told from another thread */
		(void)str_copy(said, sizeof(said), fk.wrong);
	fk_abandon();
	return said;
}

static struct rdma_event_channel *channel;
static struct ibv_pd *pd;
static struct ibv_comp_channel *comp;

static struct rdma_cm_id *an_id(void)
{
	struct rdma_cm_id *id;

	if (!fk.alive[FK_CHANNEL])
		channel = rdma_create_event_channel();
	assert_int_equal(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP), 0);
	id->verbs = fk.verbs;
	return id;
}

static struct ibv_cq *a_cq(void)
{
	if (!fk.alive[FK_COMP])
		comp = ibv_create_comp_channel(fk.verbs);
	return ibv_create_cq(fk.verbs, 4, NULL, comp, 0);
}

static struct ibv_qp *a_qp(struct rdma_cm_id *id, struct ibv_cq *cq)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = cq,
		.recv_cq = cq,
		.cap = {.max_send_wr = 4, .max_recv_wr = 4},
		.qp_type = IBV_QPT_RC,
	};

	if (!fk.alive[FK_PD])
		pd = ibv_alloc_pd(fk.verbs);
	assert_int_equal(rdma_create_qp(id, pd, &attr), 0);
	return id->qp;
}

static uint8_t memory[64];

static int post(struct ibv_qp *qp, uint64_t wr_id)
{
	struct ibv_sge sge = {.addr = (uintptr_t)memory, .length = sizeof(memory)};
	struct ibv_recv_wr wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = 1}, *bad;

	return ibv_post_recv(qp, &wr, &bad);
}

/* ---- mistakes */

static void destroys_before_ack(void)
{
	struct rdma_cm_id *id = an_id();
	struct rdma_cm_event *ev;

	fk_event(id, RDMA_CM_EVENT_ADDR_ERROR, -ETIMEDOUT);
	assert_int_equal(rdma_get_cm_event(channel, &ev), 0);
	(void)rdma_destroy_id(id);
}

static void acks_twice(void)
{
	struct rdma_cm_id *id = an_id();
	struct rdma_cm_event *ev;

	fk_event(id, RDMA_CM_EVENT_ADDR_ERROR, -ETIMEDOUT);
	assert_int_equal(rdma_get_cm_event(channel, &ev), 0);
	assert_int_equal(rdma_ack_cm_event(ev), 0);
	(void)rdma_ack_cm_event(ev);
}

static void fetches_two(void)
{
	struct rdma_cm_id *id = an_id();
	struct rdma_cm_event *ev;

	fk_event(id, RDMA_CM_EVENT_ADDR_ERROR, -ETIMEDOUT);
	fk_event(id, RDMA_CM_EVENT_ADDR_ERROR, -ETIMEDOUT);
	assert_int_equal(rdma_get_cm_event(channel, &ev), 0);
	(void)rdma_get_cm_event(channel, &ev);
}

static void destroys_twice(void)
{
	struct rdma_cm_id *id = an_id();

	assert_int_equal(rdma_destroy_id(id), 0);
	(void)rdma_destroy_id(id);
}

static void uses_after_destroy(void)
{
	struct rdma_cm_id *id = an_id();

	assert_int_equal(rdma_destroy_id(id), 0);
	(void)rdma_disconnect(id);
}

static void leaves_an_id(void)
{
	(void)an_id();
	fk_end();
}

static void leaves_an_event(void)
{
	struct rdma_cm_id *id = an_id();
	struct rdma_cm_event *ev;

	fk_event(id, RDMA_CM_EVENT_ADDR_ERROR, -ETIMEDOUT);
	assert_int_equal(rdma_get_cm_event(channel, &ev), 0);
	fk_balanced(1, 0, 0);
}

static void channel_before_ids(void)
{
	(void)an_id();
	rdma_destroy_event_channel(channel);
}

static void id_before_qp(void)
{
	struct rdma_cm_id *id = an_id();

	(void)a_qp(id, a_cq());
	(void)rdma_destroy_id(id);
}

static void cq_before_qp(void)
{
	struct ibv_cq *cq = a_cq();

	(void)a_qp(an_id(), cq);
	(void)ibv_destroy_cq(cq);
}

static void pd_before_qp(void)
{
	(void)a_qp(an_id(), a_cq());
	(void)ibv_dealloc_pd(pd);
}

static void posts_to_the_dead(void)
{
	struct rdma_cm_id *id = an_id();
	struct ibv_qp *qp = a_qp(id, a_cq());

	rdma_destroy_qp(id);
	(void)post(qp, 1);
}

static void posts_twice(void)
{
	struct ibv_qp *qp = a_qp(an_id(), a_cq());

	assert_int_equal(post(qp, 1), 0);
	(void)post(qp, 1);
}

static void memory_before_qp(void)
{
	struct rdma_cm_id *id = an_id();
	struct ibv_qp *qp = a_qp(id, a_cq());
	struct ibv_mr *mr = ibv_reg_mr(pd, memory, sizeof(memory), 0);

	assert_int_equal(post(qp, 1), 0);
	(void)ibv_dereg_mr(mr);
}

static void polls_the_dead(void)
{
	struct ibv_cq *cq = a_cq();
	struct ibv_wc wc;

	assert_int_equal(ibv_destroy_cq(cq), 0);
	(void)ibv_poll_cq(cq, 1, &wc);
}

static void cq_event_not_acked(void)
{
	struct ibv_cq *cq = a_cq(), *got;
	void *context;

	fk_spurious(cq);
	assert_int_equal(ibv_get_cq_event(comp, &got, &context), 0);
	(void)ibv_destroy_cq(cq);
}

static void acks_another_cq(void)
{
	struct ibv_cq *cq = a_cq(), *other = a_cq(), *got;
	void *context;

	fk_spurious(cq);
	assert_int_equal(ibv_get_cq_event(comp, &got, &context), 0);
	ibv_ack_cq_events(other, 1);
}

static void acks_too_many(void)
{
	struct ibv_cq *cq = a_cq(), *got;
	void *context;

	fk_spurious(cq);
	assert_int_equal(ibv_get_cq_event(comp, &got, &context), 0);
	ibv_ack_cq_events(cq, 2);
}

static void async_not_acked(void)
{
	struct rdma_cm_id *id = an_id();
	struct ibv_qp *qp = a_qp(id, a_cq());
	struct ibv_async_event ev;

	fk_async_qp(qp, IBV_EVENT_QP_FATAL);
	assert_int_equal(ibv_get_async_event(fk.verbs, &ev), 0);
	rdma_destroy_qp(id);
}

static void async_acked_twice(void)
{
	struct ibv_qp *qp = a_qp(an_id(), a_cq());
	struct ibv_async_event ev;

	fk_async_qp(qp, IBV_EVENT_QP_FATAL);
	assert_int_equal(ibv_get_async_event(fk.verbs, &ev), 0);
	ibv_ack_async_event(&ev);
	ibv_ack_async_event(&ev);
}

static void async_of_the_dead(void)
{
	struct rdma_cm_id *id = an_id();
	struct ibv_qp *qp = a_qp(id, a_cq());
	struct ibv_async_event ev;

	fk_async_qp(qp, IBV_EVENT_QP_FATAL);
	assert_int_equal(ibv_get_async_event(fk.verbs, &ev), 0);
	ibv_ack_async_event(&ev);
	rdma_destroy_qp(id);
	ibv_ack_async_event(&ev);
}

static void another_kind(void)
{
	(void)rdma_disconnect((struct rdma_cm_id *)(void *)a_cq());
}

static void overruns(void)
{
	struct ibv_qp *qp = a_qp(an_id(), a_cq());

	for (uint64_t i = 0; i < 5; i++) { /* a queue of 4 */
		assert_int_equal(post(qp, i), 0);
		assert_true(fk_deliver(qp, "x", 1));
	}
}

static void connects_without_route(void)
{
	struct rdma_conn_param p = {0};
	struct rdma_cm_id *id = an_id();

	(void)a_qp(id, a_cq());
	(void)rdma_connect(id, &p);
}

static void says_too_much(void)
{
	struct rdma_conn_param p = {.private_data_len = 57};
	struct rdma_cm_id *id = an_id();

	(void)a_qp(id, a_cq());
	(void)rdma_connect(id, &p);
}

static struct rdma_cm_id *shared;

static void *from_elsewhere(void *arg)
{
	jmp_buf back;

	(void)arg;
	if (!setjmp(back)) {
		fk.on_wrong = &back;
		(void)rdma_disconnect(shared);
	}
	return NULL;
}

static void second_thread(void)
{
	pthread_t t;

	shared = an_id();
	assert_int_equal(pthread_create(&t, NULL, from_elsewhere, NULL), 0);
	(void)pthread_join(t, NULL);
}

static void each_mistake_is_told(void **state)
{
	static const struct {
		const char *name;
		void (*mistake)(void);
		const char *words;
	} rows[] = {
		{"destroy before ack", destroys_before_ack, "would wait for ever"},
		{"acks twice", acks_twice, "acknowledged twice"},
		{"fetches two", fetches_two, "one at a time"},
		{"destroys twice", destroys_twice, "the id is destroyed"},
		{"uses after destroy", uses_after_destroy, "the id is destroyed"},
		{"leaves an id", leaves_an_id, "1 ids are alive"},
		{"leaves an event", leaves_an_event, "1 got, 0 acknowledged"},
		{"channel before ids", channel_before_ids, "goes before what is in it"},
		{"id before QP", id_before_qp, "its QP is alive"},
		{"CQ before QP", cq_before_qp, "goes before what is in it"},
		{"PD before QP", pd_before_qp, "goes before what is in it"},
		{"posts to the dead", posts_to_the_dead, "the QP is destroyed"},
		{"posts twice", posts_twice, "is posted already"},
		{"memory before QP", memory_before_qp, "has a buffer in it"},
		{"polls the dead", polls_the_dead, "the CQ is destroyed"},
		{"CQ event not acked", cq_event_not_acked, "would wait for ever"},
		{"acks another CQ", acks_another_cq, "of a queue that had 0"},
		{"acks too many", acks_too_many,
		 "2 acknowledged of a queue that had 1"},
		{"async not acked", async_not_acked, "would wait for ever"},
		{"async acked twice", async_acked_twice, "acknowledged twice"},
		{"async of the dead", async_of_the_dead, "the QP is destroyed"},
		{"another kind", another_kind, "a CQ where a id belongs"},
		{"overruns", overruns, "is overrun"},
		{"no route", connects_without_route, "no route yet"},
		{"says too much", says_too_much, "57 bytes"},
		{"second thread", second_thread, "from another thread"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const char *said = caught(rows[i].mistake);

		if (!strstr(said, rows[i].words))
			fail_msg("%s: '%s'", rows[i].name, said);
	}
}

static void faults_come_when_they_are_due(void **state)
{
	struct rdma_cm_id *id;

	(void)state;
	fk_begin();
	channel = rdma_create_event_channel();
	fk_fail("rdma_create_id", 1, 2, FK_USUAL, ENOMEM);
	assert_int_equal(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP), 0);
	assert_int_equal(rdma_destroy_id(id), 0);
	for (int i = 0; i < 2; i++) {
		errno = 0;
		assert_int_equal(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP), -1);
		assert_int_equal(errno, ENOMEM);
	}
	assert_int_equal(fk_faults_left(), 0);
	/* As old libraries do. */
	fk_fail("rdma_create_id", 0, 1, -EINVAL, 0);
	assert_int_equal(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP), -EINVAL);
	fk_fail("ibv_query_device", 0, 1, FK_USUAL, EIO);
	assert_int_equal(ibv_query_device(fk.verbs, &(struct ibv_device_attr){0}), EIO);
	rdma_destroy_event_channel(channel);
	fk_end();
}

static bool readable(int fd, short *ret)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	(void)poll(&p, 1, 0);
	*ret = p.revents;
	return p.revents & POLLIN;
}

static void descriptors_are_as_the_queues(void **state)
{
	struct rdma_cm_event *ev;
	struct rdma_cm_id *id;
	short events;

	(void)state;
	fk_begin();
	id = an_id();
	assert_false(readable(channel->fd, &events));
	fk_event(id, RDMA_CM_EVENT_ADDR_CHANGE, 0);
	fk_event(id, RDMA_CM_EVENT_ADDR_CHANGE, 0);
	for (int i = 0; i < 2; i++) {
		assert_true(readable(channel->fd, &events));
		assert_int_equal(rdma_get_cm_event(channel, &ev), 0);
		assert_int_equal(rdma_ack_cm_event(ev), 0);
	}
	assert_false(readable(channel->fd, &events));
	fk_event(id, RDMA_CM_EVENT_ADDR_CHANGE, 0);
	assert_int_equal(rdma_destroy_id(id), 0); /* takes what was not fetched along */
	assert_false(readable(channel->fd, &events));
	fk_kill_cm(channel, EIO);
	(void)readable(channel->fd, &events);
	assert_true(events & POLLERR);
	errno = 0;
	assert_int_equal(rdma_get_cm_event(channel, &ev), -1);
	assert_int_equal(errno, EIO);
	rdma_destroy_event_channel(channel);
	fk_end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_mistake_is_told),
		cmocka_unit_test(faults_come_when_they_are_due),
		cmocka_unit_test(descriptors_are_as_the_queues),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
