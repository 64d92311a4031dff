/* SPDX-License-Identifier: BSD-2-Clause */
/* The hot thread's work on a scripted completion queue. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <errno.h>
#include <net/if.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "fabric.h"
#include "fake_rdma.h"
#include "hot.h"

#define OURS   UINT64_C(0x1111)
#define THEIRS UINT64_C(0x2222)
#define EPOCH  UINT64_C(77)
#define WCS    64

struct rig {
	struct worker w;
	struct hot hot;
	struct endpoint_table table;
	struct rdma_ctx ctx;
	struct endpoint *ep;
	struct rdma_cm_id *id;

	struct ibv_wc wc[WCS]; /* what the queue holds */
	int n_wc;
	bool late_wc;	      /* one more comes between the poll and the arming */
	int posted[EP_SLOTS]; /* receives, by slot: 1 posted, 0 not */
	int n_sends, arms, send_errno;
	struct {
		uint64_t wr_id;
		uint32_t len;
		struct fabric_msg msg;
	} sent;
};

static struct rig *rig; /* of the running test */

static int poll_cq(struct ibv_cq *cq, int n, struct ibv_wc *wc)
{
	int given = MIN(n, rig->n_wc);

	(void)cq;
	memcpy(wc, rig->wc, (size_t)given * sizeof(*wc));
	rig->n_wc -= given;
	memmove(rig->wc, rig->wc + given, (size_t)rig->n_wc * sizeof(*wc));
	return given;
}

static void add_wc(uint64_t wr_id, enum ibv_wc_status status, uint32_t len)
{
	assert_true(rig->n_wc < WCS);
	rig->wc[rig->n_wc++] = (struct ibv_wc){
		.wr_id = wr_id,
		.status = status,
		.byte_len = len,
		/* What is not valid in an error, and needs no look otherwise. */
		.opcode = (enum ibv_wc_opcode)0x7f,
	};
}

static int req_notify(struct ibv_cq *cq, int solicited_only)
{
	(void)cq;
	(void)solicited_only;
	rig->arms++;
	if (rig->late_wc) {
		rig->late_wc = false;
		rig->posted[0] = 0;
		add_wc(WR_RECV | 0, IBV_WC_SUCCESS, FABRIC_LEN);
	}
	return 0;
}

static int post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr,
		     struct ibv_recv_wr **bad)
{
	(void)qp;
	(void)bad;
	assert_true(wr->wr_id & WR_RECV);
	assert_int_equal(rig->posted[WR_SLOT(wr->wr_id)]++, 0);
	return 0;
}

static int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr,
		     struct ibv_send_wr **bad)
{
	const void *buf = (const void *)(uintptr_t)wr->sg_list->addr;

	(void)qp;
	(void)bad;
	if (rig->send_errno)
		return rig->send_errno;
	/* What does not tell that it has gone leaves no buffer behind. */
	assert_true(wr->send_flags & (IBV_SEND_SIGNALED | IBV_SEND_INLINE));
	assert_int_equal(fabric_decode(buf, wr->sg_list->length, &rig->sent.msg), 0);
	rig->sent.wr_id = wr->wr_id;
	rig->sent.len = wr->sg_list->length;
	rig->n_sends++;
	return 0;
}

static int interface_mtu; /* of any that is asked for; 0: there is none */

int __wrap_ioctl(int fd, unsigned long request, struct ifreq *r);
int __wrap_ioctl(int fd, unsigned long request, struct ifreq *r)
{
	assert_true(fd >= 0);
	assert_int_equal(request, SIOCGIFMTU);
	assert_string_equal(r->ifr_name, "eth9");
	r->ifr_mtu = interface_mtu;
	errno = ENODEV;
	return interface_mtu ? 0 : -1;
}

static void turn(void)
{
	wake(rig->w.wake_hot);
	hot_turn(&rig->hot);
}

static void rig_new(enum conn_role role, bool key)
{
	struct wm_init init = {.device = "fake0", .max_endpoints = 4};
	struct ep_start s = {
		.conn_id = OURS,
		.peer_conn_id = THEIRS,
		.epoch = EPOCH,
		.role = (uint8_t)role,
		.transport = TRANSPORT_RC,
		.has_key = key,
		.key = {1, 2, 3},
		.multiplier = 3,
		.heartbeat_us = 60000000,
		.probe_small = 1,
	};
	const char *call;

	fake_reset();
	rig = xcalloc(1, sizeof(*rig));
	fake.verbs.ops.poll_cq = poll_cq;
	fake.verbs.ops.req_notify_cq = req_notify;
	fake.verbs.ops.post_recv = post_recv;
	fake.verbs.ops.post_send = post_send;
	wm_header(&init, WM_INIT, sizeof(init), 1);
	worker_init(&rig->w, &init);
	hot_init(&rig->hot, &rig->w, 42);
	endpoint_table_init(&rig->table, 4, 4);
	assert_int_equal(rdma_create_id(NULL, &rig->id, NULL, RDMA_PS_TCP), 0);
	rig->id->verbs = &fake.verbs;
	assert_int_equal(rdma_ctx_open(&rig->ctx, &fake.verbs, &call), 0);
	rig->ep = endpoint_new(&rig->table, &s);
	rig->ep->id = rig->id;
	assert_int_equal(endpoint_open(rig->ep, &rig->ctx, &call), 0);
	assert_true(ring_push(&rig->w.cm_to_hot,
			      &(struct hot_order){.type = HOT_ATTACH, .ep = rig->ep}));
	turn();
	assert_int_equal(rig->arms, 1);
}

static void rig_free(void)
{
	struct ring *rings[] = {&rig->w.ctl_to_cm, &rig->w.ctl_to_hot,
				&rig->w.cm_to_hot, &rig->w.hot_to_cm,
				&rig->w.facts_out, &rig->w.cm_out,
				&rig->w.hot_out, &rig->w.rounds_out};
	int fds[] = {rig->w.wake_ctl, rig->w.wake_facts, rig->w.wake_cm,
		     rig->w.wake_hot};
	struct hot_note n;

	assert_true(ring_push(&rig->w.cm_to_hot,
			      &(struct hot_order){.type = HOT_DETACH, .ep = rig->ep}));
	turn();
	assert_true(ring_pop(&rig->w.hot_to_cm, &n));
	assert_int_equal(n.type, HOT_DETACHED);
	assert_true(endpoint_close(rig->ep, &rig->w.cm_busy));
	endpoint_free(&rig->table, rig->ep);
	fake_check_balance(0);
	endpoint_table_done(&rig->table);
	(void)ibv_destroy_comp_channel(rig->ctx.channel);
	(void)ibv_dealloc_pd(rig->ctx.pd);
	hot_done(&rig->hot);
	for (size_t i = 0; i < ARRAY_LEN(rings); i++)
		ring_done(rings[i]);
	for (size_t i = 0; i < ARRAY_LEN(fds); i++)
		(void)close(fds[i]);
	free(rig);
}

static void command(uint16_t type)
{
	struct hot_command c = {.type = type, .conn_id = OURS, .epoch = EPOCH};

	assert_true(ring_push(&rig->w.ctl_to_hot, &c));
	turn();
}

/* A message from the peer lands in @slot. */
static void arrives(unsigned slot, const struct fabric_msg *m, const uint8_t *key)
{
	rig->posted[slot] = 0;
	fabric_encode(m, key, endpoint_recv_buf(rig->ep, slot));
	add_wc(WR_RECV | slot, IBV_WC_SUCCESS, m->length);
	hot_poll_cq(&rig->hot, rig->ep);
	hot_step(&rig->hot, rig->ep);
}

static struct fabric_msg message(enum fabric_type type, uint64_t seq)
{
	return (struct fabric_msg){.type = (uint8_t)type,
				   .length = FABRIC_LEN,
				   .conn_id = OURS,
				   .epoch = EPOCH,
				   .seq = seq,
				   .t1 = clock_now().ns};
}

static int reported(enum ep_event_type type)
{
	struct wm_ep_event m;
	int n = 0;

	while (ring_pop(&rig->w.hot_out, &m)) {
		char why[128];

		assert_int_equal(wm_check(&m, sizeof(m), false, why, sizeof(why)), 0);
		assert_int_equal(m.event.conn_id, OURS);
		n += m.event.type == type;
	}
	return n;
}

static void probes_are_done_when_the_sends_are_complete(void **state)
{
	struct fabric_msg echo;

	(void)state;
	rig_new(ROLE_TX, false);
	command(WM_EP_PROBE);
	assert_int_equal(reported(EP_PROBING), 1);
	assert_int_equal(rig->n_sends, 1);
	assert_int_equal(rig->sent.msg.type, FABRIC_PROBE);
	assert_int_equal(rig->sent.msg.conn_id, THEIRS);
	echo = message(FABRIC_PROBE_ECHO, rig->sent.msg.seq);
	arrives(0, &echo, NULL); /* overtakes the completion */
	assert_int_equal(reported(EP_PROBES_DONE), 0);
	add_wc(rig->sent.wr_id, IBV_WC_SUCCESS, 0);
	hot_poll_cq(&rig->hot, rig->ep);
	hot_step(&rig->hot, rig->ep);
	assert_int_equal(reported(EP_PROBES_DONE), 1);
	assert_int_equal(rig->posted[0], 1);
	rig_free();
}

static void what_is_not_ours_is_dropped_and_its_slot_used_again(void **state)
{
	static const uint8_t right[EP_KEY_LEN] = {1, 2, 3}, wrong_key[EP_KEY_LEN] = {9};
	struct fabric_msg m;
	uint64_t n;

	(void)state;
	rig_new(ROLE_RX, true);
	command(WM_EP_PROBE);
	m = message(FABRIC_PROBE, 1);
	m.epoch++;
	arrives(1, &m, right);
	m = message(FABRIC_PROBE, 1);
	m.conn_id++;
	arrives(2, &m, right);
	assert_int_equal(atomic_load(&rig->w.drops[DROP_EPOCH]), 2);
	m = message(FABRIC_PROBE, 1);
	arrives(3, &m, wrong_key);
	arrives(3, &m, NULL);
	assert_int_equal(atomic_load(&rig->w.drops[DROP_BAD_AUTH]), 2);
	m = message(FABRIC_PROBE_ECHO, 1); /* an answer to what was never asked */
	arrives(4, &m, right);
	assert_int_equal(atomic_load(&rig->w.drops[DROP_MALFORMED]), 1);
	rig->posted[5] = 0;
	memset(endpoint_recv_buf(rig->ep, 5), 0, FABRIC_LEN);
	add_wc(WR_RECV | 5, IBV_WC_SUCCESS, 3);
	hot_poll_cq(&rig->hot, rig->ep);
	assert_int_equal(atomic_load(&rig->w.drops[DROP_SHORT]), 1);
	assert_int_equal(rig->n_sends, 0);
	for (int i = 0; i < EP_SLOTS; i++)
		assert_int_equal(rig->posted[i], 1);
	n = rig->ep->hb.stats.dropped;
	assert_int_equal(n, 6);
	m = message(FABRIC_PROBE, 1);
	arrives(6, &m, right);
	assert_int_equal(rig->n_sends, 1);
	add_wc(rig->sent.wr_id, IBV_WC_SUCCESS, 0);
	hot_poll_cq(&rig->hot, rig->ep);
	rig_free();
}

static void an_echo_keeps_its_slot_until_it_is_sent(void **state)
{
	struct fabric_msg m = message(FABRIC_PROBE, 1);

	(void)state;
	rig_new(ROLE_RX, false);
	arrives(7, &m, NULL); /* before PROBE: no answer, so it comes again */
	assert_int_equal(rig->n_sends, 0);
	assert_int_equal(rig->posted[7], 1);
	command(WM_EP_PROBE);
	m.length = 1024;
	arrives(7, &m, NULL);
	assert_int_equal(rig->n_sends, 1);
	assert_int_equal(rig->sent.msg.type, FABRIC_PROBE_ECHO);
	assert_int_equal(rig->sent.msg.conn_id, THEIRS);
	assert_int_equal(rig->sent.msg.t1, m.t1);
	assert_true(rig->sent.msg.t2 >= m.t1 && rig->sent.msg.t3 >= rig->sent.msg.t2);
	assert_int_equal(rig->sent.len, 1024);
	assert_int_equal(rig->posted[7], 0);
	assert_int_equal(reported(EP_PROBES_DONE), 1);
	add_wc(rig->sent.wr_id, IBV_WC_SUCCESS, 0);
	hot_poll_cq(&rig->hot, rig->ep);
	assert_int_equal(rig->posted[7], 1);
	rig->send_errno = ENOMEM; /* cannot answer: the slot is not lost */
	m.seq = 2;
	arrives(8, &m, NULL);
	assert_int_equal(rig->posted[8], 1);
	rig_free();
}

static void the_first_error_is_told_once_and_a_flush_is_none(void **state)
{
	struct hot_note n;

	(void)state;
	rig_new(ROLE_TX, false);
	add_wc(WR_RECV | 1, IBV_WC_WR_FLUSH_ERR, 99);
	hot_poll_cq(&rig->hot, rig->ep);
	assert_false(ring_pop(&rig->w.hot_to_cm, &n));
	add_wc(WR_SEND | 0, IBV_WC_RETRY_EXC_ERR, 99);
	add_wc(WR_SEND | 1, IBV_WC_RNR_RETRY_EXC_ERR, 99);
	add_wc(WR_RECV | 2, IBV_WC_WR_FLUSH_ERR, 99);
	hot_poll_cq(&rig->hot, rig->ep);
	assert_true(ring_pop(&rig->w.hot_to_cm, &n));
	assert_int_equal(n.type, HOT_FAILED);
	assert_int_equal(n.wc_status, IBV_WC_RETRY_EXC_ERR);
	assert_int_equal(n.handle, rig->ep->handle);
	assert_true(n.sending);
	assert_false(ring_pop(&rig->w.hot_to_cm, &n));
	command(WM_EP_PROBE); /* of no use any more */
	assert_int_equal(rig->n_sends, 0);
	rig_free();
}

static void what_comes_before_the_arming_is_seen(void **state)
{
	struct fabric_msg m = message(FABRIC_HEARTBEAT, 1);

	(void)state;
	rig_new(ROLE_RX, false);
	command(WM_EP_PROBE);
	fabric_encode(&m, NULL, endpoint_recv_buf(rig->ep, 0));
	rig->hot.ctx = &rig->ctx;
	rig->late_wc = true;
	fake.cq_events = 1;
	hot_drain_channel(&rig->hot);
	assert_int_equal(rig->n_wc, 0);
	assert_int_equal(rig->n_sends, 1);
	assert_int_equal(fake.cq_unacked, 0);
	fake.cq_events = 3; /* for nothing: legal */
	hot_drain_channel(&rig->hot);
	assert_int_equal(fake.cq_unacked, 0);
	rig->hot.ctx = NULL;
	add_wc(rig->sent.wr_id, IBV_WC_SUCCESS, 0);
	hot_poll_cq(&rig->hot, rig->ep);
	rig_free();
}

static void edges_wait_while_main_does_not_read(void **state)
{
	struct wm_ep_event filler = {0};
	int n = 0;

	(void)state;
	rig_new(ROLE_TX, false);
	while (ring_push(&rig->w.hot_out, &filler))
		n++;
	command(WM_EP_PROBE);
	assert_true(rig->ep->pending & (1u << EP_PROBING));
	for (int i = 0; i < n; i++)
		assert_true(ring_pop(&rig->w.hot_out, &filler));
	turn();
	assert_int_equal(reported(EP_PROBING), 1);
	assert_int_equal(rig->ep->pending, 0);
	rig_free();
}

/* So many times was the histogram told, the last time with so many round trips. */
static int rounds_told(uint64_t *ret_samples)
{
	struct wm_ep_rounds m;
	char why[128];
	int n = 0;

	for (; ring_pop(&rig->w.rounds_out, &m); n++) {
		struct hist h;

		assert_int_equal(wm_check(&m, m.h.length, false, why, sizeof(why)), 0);
		assert_true(m.conn_id == OURS && m.epoch == EPOCH);
		assert_int_equal(hist_import(&h, m.data, m.length), m.length);
		*ret_samples = hist_samples(&h);
		hist_done(&h);
	}
	return n;
}

static void figures_are_due(struct mono now)
{
	rig->ep->pending |= 1u << EP_STATS;
	hot_flush(&rig->hot, rig->ep, now);
}

static void round_trips_are_told_with_the_figures(void **state)
{
	struct wm_ep_rounds filler = {0};
	struct fabric_msg echo;
	struct mono now;
	uint64_t samples = 0;

	(void)state;
	rig_new(ROLE_TX, false);
	command(WM_EP_PROBE);
	echo = message(FABRIC_PROBE_ECHO, rig->sent.msg.seq);
	echo.t1 = rig->sent.msg.t1;
	arrives(0, &echo, NULL);
	now = clock_now();
	figures_are_due(now);
	assert_int_equal(rounds_told(&samples), 1);
	assert_int_equal(samples, 1);
	figures_are_due(mono_add(now, NSEC_PER_SEC));
	assert_int_equal(rounds_told(&samples), 0);
	/* Main does not read: they are told the next time, and hold up nothing. */
	while (ring_push(&rig->w.rounds_out, &filler))
		;
	figures_are_due(mono_add(now, 10 * NSEC_PER_SEC));
	assert_int_equal(reported(EP_STATS), 3);
	assert_int_equal(rig->ep->pending, 0);
	while (ring_pop(&rig->w.rounds_out, &filler))
		;
	figures_are_due(mono_add(now, 11 * NSEC_PER_SEC));
	assert_int_equal(rounds_told(&samples), 1);
	add_wc(rig->sent.wr_id, IBV_WC_SUCCESS, 0);
	hot_poll_cq(&rig->hot, rig->ep);
	rig_free();
}

static void other_ids_and_wrong_order_do_nothing(void **state)
{
	struct hot_command c = {.type = WM_EP_PROBE, .conn_id = OURS, .epoch = EPOCH + 1};

	(void)state;
	rig_new(ROLE_TX, false);
	command(WM_EP_HEARTBEAT); /* before PROBE */
	assert_int_equal(rig->ep->hb.phase, HB_OFF);
	assert_true(ring_push(&rig->w.ctl_to_hot, &c));
	c = (struct hot_command){.type = WM_EP_PROBE, .conn_id = OURS + 1, .epoch = EPOCH};
	assert_true(ring_push(&rig->w.ctl_to_hot, &c));
	turn();
	assert_int_equal(rig->n_sends, 0);
	command(WM_EP_PROBE);
	command(WM_EP_PROBE); /* again: does not begin again */
	assert_int_equal(reported(EP_PROBING), 1);
	rig_free();
}

static void the_path_mtu_sizes_large_messages(void **state)
{
	struct hot_order up = {.type = HOT_UP, .path_mtu = 2048};

	(void)state;
	rig_new(ROLE_TX, false);
	up.ep = rig->ep;
	assert_true(ring_push(&rig->w.cm_to_hot, &up));
	turn();
	assert_int_equal(rig->ep->hb.large_size, 2048);
	up.path_mtu = 1u << 20; /* never more than a slot holds */
	assert_true(ring_push(&rig->w.cm_to_hot, &up));
	turn();
	assert_int_equal(rig->ep->hb.large_size, rig->ep->slot_size);
	rig_free();
}

static void goes_over(const char *netdev, bool soft_roce)
{
	struct hot_order up = {.type = HOT_UP, .ep = rig->ep, .path_mtu = 1024,
			       .soft_roce = soft_roce};

	(void)str_copy(rig->ep->start.netdev, sizeof(rig->ep->start.netdev), netdev);
	assert_true(ring_push(&rig->w.cm_to_hot, &up));
	turn();
}

/* One of 1,024 bytes lands in @slot: so many echoes went. */
static int echoed(unsigned slot, uint64_t seq)
{
	struct fabric_msg m = message(FABRIC_PROBE, seq);
	int before = rig->n_sends;

	m.length = 1024;
	arrives(slot, &m, NULL);
	return rig->n_sends - before;
}

static void an_echo_that_the_interface_does_not_carry_is_not_sent(void **state)
{
	struct fabric_msg small = message(FABRIC_PROBE, 9);

	(void)state;
	rig_new(ROLE_RX, false);
	goes_over("eth9", true);
	command(WM_EP_PROBE);
	interface_mtu = 1500;
	assert_int_equal(echoed(0, 1), 1);
	interface_mtu = 900;
	assert_int_equal(echoed(1, 2), 0);
	assert_int_equal(rig->posted[1], 1);
	assert_int_equal(atomic_load(&rig->w.drops[DROP_OVERSIZED]), 1);
	arrives(2, &small, NULL);
	assert_int_equal(rig->n_sends, 2);
	/* One that cannot be asked is not judged, nor is what goes in other ways. */
	interface_mtu = 0;
	assert_int_equal(echoed(3, 3), 1);
	interface_mtu = 900;
	goes_over("", true);
	assert_int_equal(echoed(4, 4), 1);
	goes_over("eth9", false);
	assert_int_equal(echoed(5, 5), 1);
	rig_free();
}

static void what_the_interface_does_not_carry_is_lost(void **state)
{
	struct mono sent;

	(void)state;
	rig_new(ROLE_TX, false);
	goes_over("eth9", true);
	interface_mtu = 900;
	assert_true(hot_send(&rig->hot, rig->ep, FABRIC_HEARTBEAT, 1, 1024, &sent));
	assert_int_equal(rig->n_sends, 0);
	assert_true(hot_send(&rig->hot, rig->ep, FABRIC_HEARTBEAT, 2, HB_SMALL, &sent));
	assert_int_equal(rig->n_sends, 1);
	interface_mtu = 1500;
	assert_true(hot_send(&rig->hot, rig->ep, FABRIC_HEARTBEAT, 3, 1024, &sent));
	assert_int_equal(rig->n_sends, 2);
	rig_free();
}

static void ping(uint32_t id, uint32_t count, uint32_t interval_us)
{
	struct hot_command c = {.type = WM_EP_PING,
				.conn_id = OURS,
				.epoch = EPOCH,
				.ping = xcalloc(1, sizeof(*c.ping))};

	*c.ping = (struct ep_ping){.id = id, .count = count, .interval_us = interval_us,
				   .timeout_us = 60000000};
	assert_true(ring_push(&rig->w.ctl_to_hot, &c));
	turn();
}

/* The last PONG that was told. */
static struct ep_event last_pong(void)
{
	struct wm_ep_event m, last = {0};

	while (ring_pop(&rig->w.hot_out, &m))
		if (m.event.type == EP_PONG)
			last = m;
	assert_int_equal(last.event.type, EP_PONG);
	return last.event;
}

/* What sends wait to be completed hold their slots. */
static void a_ping_leaves_slots_to_heartbeats(void **state)
{
	struct mono until;
	int n;

	(void)state;
	rig_new(ROLE_TX, false);
	command(WM_EP_PROBE);
	n = rig->n_sends;
	ping(3, 1000, 50);
	for (until = mono_add(clock_now(), 20 * NSEC_PER_SEC);
	     rig->n_sends - n < EP_SLOTS / 2 && !mono_due(until, clock_now());)
		turn();
	/* And there it stays. */
	until = mono_add(clock_now(), 5 * NSEC_PER_MSEC);
	while (!mono_due(until, clock_now()))
		turn();
	assert_int_equal(rig->n_sends - n, EP_SLOTS / 2);
	assert_int_equal(rig->sent.msg.type, FABRIC_PING);
	assert_true(rig->sent.msg.seq == (UINT64_C(3) << 32 | (EP_SLOTS / 2)));
	rig_free();
	/* Its end was told before the endpoint was let go. */
}

static void the_end_of_a_ping_is_told_before_the_failure(void **state)
{
	struct ep_event pong;
	struct hot_note n;

	(void)state;
	rig_new(ROLE_TX, false);
	command(WM_EP_PROBE);
	ping(5, 10, 0);
	add_wc(WR_SEND | 0, IBV_WC_RETRY_EXC_ERR, 99);
	hot_poll_cq(&rig->hot, rig->ep);
	assert_true(ring_pop(&rig->w.hot_to_cm, &n));
	pong = last_pong();
	assert_int_equal(pong.status, 5);
	assert_true(pong.ping_done);
	assert_int_equal(pong.stats.sent, 1);
	assert_int_equal(pong.stats.lost, 1);
	assert_string_equal(pong.text, "the connection has failed");
	rig_free();
}

static void the_end_of_a_ping_waits_while_main_does_not_read(void **state)
{
	struct wm_ep_event filler = {0};
	struct ep_event pong;
	struct fabric_msg echo;

	(void)state;
	rig_new(ROLE_TX, false);
	command(WM_EP_PROBE);
	while (ring_push(&rig->w.hot_out, &filler))
		;
	ping(5, 1, 0);
	echo = message(FABRIC_PING_ECHO, rig->sent.msg.seq);
	echo.t1 = rig->sent.msg.t1;
	arrives(0, &echo, NULL);
	while (ring_pop(&rig->w.hot_out, &filler))
		;
	turn();
	pong = last_pong();
	assert_true(pong.ping_done);
	assert_int_equal(pong.stats.received, 1);
	assert_true(pong.stats.rtt_max > 0);
	assert_null(rig->ep->ping);
	/* An echo that comes again is of nobody now. */
	arrives(0, &echo, NULL);
	assert_int_equal(atomic_load(&rig->w.drops[DROP_REPLAY]), 1);
	add_wc(rig->sent.wr_id, IBV_WC_SUCCESS, 0);
	hot_poll_cq(&rig->hot, rig->ep);
	rig_free();
}

static void what_cannot_be_pinged_is_said(void **state)
{
	struct hot_command c = {.type = WM_EP_PING, .conn_id = OURS, .epoch = EPOCH};
	struct ep_event pong;

	(void)state;
	rig_new(ROLE_TX, false);
	ping(1, 10, 0); /* before PROBE */
	pong = last_pong();
	assert_true(pong.ping_done);
	assert_string_equal(pong.text, "not probing");
	command(WM_EP_PROBE);
	c.ping = xcalloc(1, sizeof(*c.ping));
	*c.ping = (struct ep_ping){.id = 2, .count = 10, .size = 65000, .timeout_us = 1000};
	assert_true(ring_push(&rig->w.ctl_to_hot, &c));
	turn();
	pong = last_pong();
	assert_int_equal(pong.status, 2);
	assert_string_equal(pong.text, "longer than any message of this connection");
	/* One that nobody has is forgotten with its order. */
	c.epoch++;
	c.ping = xcalloc(1, sizeof(*c.ping));
	assert_true(ring_push(&rig->w.ctl_to_hot, &c));
	turn();
	assert_int_equal(reported(EP_PONG), 0);
	rig_free();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(probes_are_done_when_the_sends_are_complete),
		cmocka_unit_test(what_is_not_ours_is_dropped_and_its_slot_used_again),
		cmocka_unit_test(an_echo_keeps_its_slot_until_it_is_sent),
		cmocka_unit_test(the_first_error_is_told_once_and_a_flush_is_none),
		cmocka_unit_test(what_comes_before_the_arming_is_seen),
		cmocka_unit_test(edges_wait_while_main_does_not_read),
		cmocka_unit_test(round_trips_are_told_with_the_figures),
		cmocka_unit_test(other_ids_and_wrong_order_do_nothing),
		cmocka_unit_test(the_path_mtu_sizes_large_messages),
		cmocka_unit_test(an_echo_that_the_interface_does_not_carry_is_not_sent),
		cmocka_unit_test(what_the_interface_does_not_carry_is_lost),
		cmocka_unit_test(a_ping_leaves_slots_to_heartbeats),
		cmocka_unit_test(the_end_of_a_ping_is_told_before_the_failure),
		cmocka_unit_test(the_end_of_a_ping_waits_while_main_does_not_read),
		cmocka_unit_test(what_cannot_be_pinged_is_said),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
