/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ud from an order of main to a message and back, the cm and the hot thread together on
 * scripted libraries: whatever happens to the queue pair that all share, to the path, or
 * to a look-up, each endpoint is told what concerns it once, and nothing is left.
 */
#include "ud_rig.h"

#include <errno.h>
#include <stdlib.h>

static void prober_comes_up_and_goes(void **state)
{
	struct ud_rig *r = ud_rig_new();
	struct ep_start s = ud_start(ROLE_TX);
	struct fabric_msg m;

	(void)state;
	ud_up_tx(r, &s);
	assert_int_equal(r->up, 1);
	assert_int_equal(fake.connects, 1);
	assert_int_equal(fake_ud_qp()->qkey, RDMA_UDP_QKEY);
	assert_int_equal(fake_ud_qp()->n_recvs, UD_RECVS);
	ud_hot_command(r, WM_EP_PROBE, OURS);
	assert_int_equal(r->probing, 1);
	assert_int_equal(fake_ud_qp()->n_sends, 1);
	assert_int_equal(fake_ud_qp()->sends[0].qpn, PEER_QPN);
	assert_true(fake_ud_qp()->sends[0].is_inline);
	m = ud_sent_message(0);
	assert_int_equal(m.type, FABRIC_PROBE);
	assert_int_equal(m.conn_id, THEIRS);
	fake_ud_sent(fake_ud_qp(), 1, IBV_WC_SUCCESS);
	ud_message(r, &s, FABRIC_PROBE_ECHO, m.seq, NULL);
	assert_int_equal(r->probes_done, 1);
	assert_int_equal(fake_ud_qp()->n_recvs, UD_RECVS);
	ud_reset(r, OURS);
	assert_int_equal(r->resets, 1);
	assert_int_equal(r->errors, 0);
	assert_int_equal(fake.disconnects, 0); /* there is no such thing */
	assert_int_equal(fake_ud.ahs, 0);
	ud_rig_free(r);
}

static void path_facts_are_told(void **state)
{
	struct ud_rig *r = ud_rig_new();
	struct ep_start s = ud_start(ROLE_TX);
	const struct ep_path *p = &r->last_up.path;
	uint8_t gid[16];

	(void)state;
	s.sl = 5;
	s.tos = 0x60;
	s.flow = 2;
	fake_ud.pkey_index = 1;
	ud_up_tx(r, &s);
	assert_int_equal(p->known,
			 EP_PATH_SGID | EP_PATH_DGID | EP_PATH_PKEY | EP_PATH_SL |
				 EP_PATH_HOPS | EP_PATH_CLASS | EP_PATH_FLOW_LABEL |
				 EP_PATH_QPS | EP_PATH_SPORT);
	ud_gid_of_addr(&ud_there, gid);
	assert_memory_equal(p->dgid, gid, 16);
	ud_gid_of_addr(&ud_here, gid);
	assert_memory_equal(p->sgid, gid, 16);
	assert_int_equal(p->sgid_index, 3);
	assert_int_equal(p->gid_type, EP_GID_ROCE_V2);
	assert_int_equal(p->pkey, 0xfffe);
	assert_int_equal(p->pkey_index, 1);
	assert_int_equal(fake_ud_qp()->pkey_index, 1);
	assert_int_equal(p->sl, 5);
	assert_int_equal(p->traffic_class, 0x60);
	assert_int_equal(p->hop_limit, 64);
	assert_int_equal(p->flow_label, ud_flow_label(&ud_here, &ud_there, 2));
	assert_int_equal(p->remote_qpn, PEER_QPN);
	assert_int_equal(p->qpn, fake_ud_qp()->qp.qp_num);
	assert_int_equal(p->mtu, 1024);
	assert_int_equal(p->sport, path_sport_of_label(p->flow_label, p->qpn, PEER_QPN));
	/* And they are what the address handle was made of. */
	assert_int_equal(fake_ud.last_ah.sl, 5);
	assert_int_equal(fake_ud.last_ah.grh.traffic_class, 0x60);
	assert_int_equal(fake_ud.last_ah.grh.flow_label, p->flow_label);
	ud_reset(r, OURS);
	ud_rig_free(r);
}

static void responder_answers_from_the_first_message(void **state)
{
	struct ud_rig *r = ud_rig_new();
	struct ep_start s = ud_start(ROLE_RX);
	struct fabric_msg m;

	(void)state;
	ud_command(r, WM_LISTEN, NULL);
	assert_int_equal(r->listening, 1);
	ud_command(r, WM_EP_START, &s);
	assert_int_equal(r->ready, 1);
	(void)ud_request_comes(r, &s);
	assert_int_equal(fake.accepts, 1);
	assert_int_equal(r->up, 1);
	assert_int_equal(fake.ids, 1); /* the listener: the request's is gone */
	assert_false(r->last_up.path.known & EP_PATH_QPS);
	ud_hot_command(r, WM_EP_PROBE, OURS);
	assert_int_equal(fake_ud.ahs, 0);
	ud_message(r, &s, FABRIC_PROBE, 1, NULL);
	/* It has waited for its address handle, and is not lost. */
	assert_int_equal(fake_ud.ahs, 1);
	assert_int_equal(fake_ud_qp()->n_sends, 1);
	assert_int_equal(fake_ud_qp()->sends[0].qpn, PEER_QPN);
	m = ud_sent_message(0);
	assert_int_equal(m.type, FABRIC_PROBE_ECHO);
	assert_int_equal(m.conn_id, THEIRS);
	assert_true(m.t2 > 0 && m.t3 >= m.t2);
	assert_int_equal(r->probes_done, 1);
	assert_int_equal(r->paths, 1);
	assert_int_equal(r->last_path.path.remote_qpn, PEER_QPN);
	assert_int_equal(fake_ud_qp()->n_recvs, UD_RECVS);
	ud_message(r, &s, FABRIC_PROBE, 2, NULL);
	assert_int_equal(fake_ud_qp()->n_sends, 2);
	assert_int_equal(fake_ud.ahs_made, 1);
	assert_int_equal(r->paths, 1);
	fake_ud_sent(fake_ud_qp(), 2, IBV_WC_SUCCESS);
	ud_reset(r, OURS);
	assert_int_equal(fake_ud.ahs, 0);
	ud_rig_free(r);
}

static void the_question_may_come_again(void **state)
{
	struct ud_rig *r = ud_rig_new();
	struct ep_start s = ud_start(ROLE_RX), other = s;

	(void)state;
	ud_up_rx(r, &s);
	for (int i = 0; i < 10; i++)
		(void)ud_request_comes(r, &s);
	assert_int_equal(fake.accepts, 11);
	assert_int_equal(fake.rejects, 0);
	assert_int_equal(r->up, 1);
	assert_int_equal(fake.ids, 1);
	/* Of another attempt it is another question. */
	other.epoch++;
	(void)ud_request_comes(r, &other);
	assert_int_equal(fake.rejects, 1);
	assert_int_equal(cmdata_reject_decode(fake.reject_data, fake.reject_len),
			 CMREJ_UNKNOWN);
	/* And of rc it is none that this endpoint waits for. */
	r->cm.listeners->id->ps = RDMA_PS_TCP;
	(void)ud_request_comes(r, &s);
	assert_int_equal(fake.rejects, 2);
	assert_int_equal(fake.ids, 1);
	ud_reset(r, OURS);
	(void)ud_request_comes(r, &s);
	assert_int_equal(fake.rejects, 3);
	ud_rig_free(r);
}

static void a_refusal_is_told_in_words(void **state)
{
	static const struct {
		int status;
		enum ep_error error;
		const char *text;
	} rows[] = {
		{1, EPERR_CM_REFUSED, "SIDR status 1: nobody listens on 18777"},
		{2, EPERR_CM_REJECTED, "SIDR status 2: rejected by the program on 18777"},
		{3, EPERR_CM_REJECTED, "SIDR status 3: no queue pair for 18777"},
		{4, EPERR_CM_REJECTED, "SIDR status 4: redirected from 18777"},
		{5, EPERR_CM_REJECTED, "SIDR status 5: version not spoken on 18777"},
		{6, EPERR_CM_REJECTED, "SIDR status 6"},
		{-ETIMEDOUT, EPERR_CM_TIMEOUT, "no answer to connect: Connection timed out"},
	};
	struct ud_rig *r = ud_rig_new();
	struct ep_start s = ud_start(ROLE_TX);
	uint8_t data[CMDATA_REJECT_LEN];

	(void)state;
	for (size_t i = 0; i <= ARRAY_LEN(rows); i++) {
		ud_command(r, WM_EP_START, &s);
		fake_event(ud_ep(r, OURS)->id, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
		ud_settle(r);
		fake_event(ud_ep(r, OURS)->id, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
		ud_settle(r);
		if (i == ARRAY_LEN(rows)) {
			cmdata_reject_encode(CMREJ_UNKNOWN, data);
			fake_ud_refused(ud_ep(r, OURS)->id, 2, data, sizeof(data));
		} else {
			fake_ud_refused(ud_ep(r, OURS)->id, rows[i].status, NULL, 0);
		}
		ud_settle(r);
		assert_int_equal(r->errors, (int)i + 1);
		if (i == ARRAY_LEN(rows)) {
			assert_non_null(strstr(r->error.text, "does not wait"));
		} else {
			assert_int_equal(r->error.error, rows[i].error);
			assert_string_equal(r->error.text, rows[i].text);
		}
		ud_reset(r, OURS);
	}
	ud_rig_free(r);
}

static void all_share_one_queue_pair_and_equal_ways_a_handle(void **state)
{
	struct ud_rig *r = ud_rig_new();
	struct ep_start s = ud_start(ROLE_TX), rx = ud_start(ROLE_RX);

	(void)state;
	for (uint64_t i = 0; i < 3; i++) {
		s.conn_id = OURS + i;
		s.flow = i == 2;
		ud_up_tx(r, &s);
	}
	assert_int_equal(r->up, 3);
	assert_int_equal(fake.qps, 1);
	assert_int_equal(fake_ud.ahs, 2); /* another flow is another way */
	rx.conn_id = OURS + 9;
	ud_up_rx(r, &rx);
	assert_int_equal(fake.qps, 1);
	ud_reset(r, OURS);
	assert_int_equal(fake_ud.ahs, 2);
	ud_reset(r, OURS + 1);
	assert_int_equal(fake_ud.ahs, 1);
	ud_reset(r, OURS + 2);
	ud_reset(r, OURS + 9);
	assert_int_equal(fake_ud.ahs, 0);
	assert_int_equal(fake.qps, 1); /* for the next one */
	ud_rig_free(r);
}

static void another_pkey_is_another_queue_pair(void **state)
{
	struct ud_rig *r = ud_rig_new();
	struct ep_start s = ud_start(ROLE_TX);

	(void)state;
	for (uint16_t i = 0; i < UD_PORTS; i++) {
		fake_ud.pkey_index = i;
		ud_up_tx(r, &s);
		assert_int_equal(r->up, i + 1);
		assert_int_equal(fake.qps, i + 1);
		ud_reset(r, OURS);
	}
	/* No place is left: those that nobody uses give theirs, at the next attempt. */
	fake_ud.pkey_index = 20;
	ud_command(r, WM_EP_START, &s);
	fake_event(ud_ep(r, OURS)->id, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	ud_settle(r);
	fake_event(ud_ep(r, OURS)->id, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
	ud_settle(r);
	assert_int_equal(r->errors, 1);
	assert_int_equal(fake.qps, 0);
	ud_reset(r, OURS);
	ud_up_tx(r, &s);
	assert_int_equal(r->errors, 1);
	assert_int_equal(r->up, UD_PORTS + 1);
	ud_reset(r, OURS);
	ud_rig_free(r);
}

static void what_is_not_ours_is_counted_and_forgotten(void **state)
{
	static const uint8_t right[EP_KEY_LEN] = {1, 2, 3}, wrong_key[EP_KEY_LEN] = {9};
	static const struct addr stranger = {.family = 4, .ip = {10, 0, 0, 3}};
	struct ud_rig *r = ud_rig_new();
	struct ep_start s = ud_start(ROLE_RX), forged;
	struct fake_ud_qp *q;
	uint8_t grh[40], junk[64] = {0};

	(void)state;
	s.has_key = 1;
	memcpy(s.key, right, sizeof(right));
	ud_up_rx(r, &s);
	ud_hot_command(r, WM_EP_PROBE, OURS);
	q = fake_ud_qp();
	forged = s;
	forged.conn_id++;
	ud_message(r, &forged, FABRIC_PROBE, 1, right);
	assert_int_equal(atomic_load(&r->w.drops[DROP_UNKNOWN]), 1);
	forged = s;
	forged.epoch++;
	ud_message(r, &forged, FABRIC_PROBE, 1, right);
	assert_int_equal(atomic_load(&r->w.drops[DROP_EPOCH]), 1);
	ud_message(r, &s, FABRIC_PROBE, 1, wrong_key);
	ud_message(r, &s, FABRIC_PROBE, 1, NULL);
	assert_int_equal(atomic_load(&r->w.drops[DROP_BAD_AUTH]), 2);
	ud_message(r, &s, FABRIC_PROBE_ECHO, 1, right);
	assert_int_equal(atomic_load(&r->w.drops[DROP_MALFORMED]), 1);
	forged = s;
	forged.remote = stranger;
	ud_message(r, &forged, FABRIC_PROBE, 1, right);
	assert_int_equal(atomic_load(&r->w.drops[DROP_SOURCE]), 1);
	fake_ud_ipv4(grh, s.remote.ip, s.local.ip);
	fake_ud_arrives(q, grh, junk, 3, PEER_QPN, 0);
	fake_ud_arrives(q, grh, junk, sizeof(junk), PEER_QPN, 0);
	ud_settle(r);
	assert_int_equal(atomic_load(&r->w.drops[DROP_SHORT]), 1);
	assert_int_equal(atomic_load(&r->w.drops[DROP_MAGIC]), 1);
	/* Nothing was answered, and no receive is lost. A forgery makes no handle. */
	assert_int_equal(q->n_sends, 0);
	assert_int_equal(q->n_recvs, UD_RECVS);
	assert_int_equal(ud_ep(r, OURS)->hb.stats.received, 0);
	ud_message(r, &s, FABRIC_PROBE, 1, right);
	assert_int_equal(q->n_sends, 1);
	fake_ud_sent(q, 1, IBV_WC_SUCCESS);
	ud_reset(r, OURS);
	ud_rig_free(r);
}

/* What was in a buffer before does not matter: an IPv4 header leaves 20 bytes alone. */
static void stale_bytes_before_a_message_are_not_read(void **state)
{
	struct ud_rig *r = ud_rig_new();
	struct ep_start s = ud_start(ROLE_RX);
	struct fake_ud_qp *q;
	uint8_t v6[40], junk[64];

	(void)state;
	fake_ud.max_wr = 4;
	ud_up_rx(r, &s);
	ud_hot_command(r, WM_EP_PROBE, OURS);
	q = fake_ud_qp();
	assert_int_equal(q->n_recvs, 4);
	memset(v6, 0x6f, sizeof(v6));
	memset(junk, 0xff, sizeof(junk));
	for (int i = 0; i < 8; i++) {
		fake_ud_arrives(q, v6, junk, sizeof(junk), 1, 0);
		ud_settle(r);
	}
	for (uint64_t i = 1; i <= 8; i++)
		ud_message(r, &s, FABRIC_PROBE, i, NULL);
	assert_int_equal(atomic_load(&r->w.drops[DROP_SOURCE]), 0);
	assert_int_equal(fake_ud.ahs_made, 1); /* all from one place */
	assert_int_equal(ud_ep(r, OURS)->hb.stats.received, 8);
	fake_ud_sent(q, q->n_sends, IBV_WC_SUCCESS);
	ud_reset(r, OURS);
	ud_rig_free(r);
}

static void a_header_that_the_library_cannot_read(void **state)
{
	struct ud_rig *r = ud_rig_new();
	struct ep_start s = ud_start(ROLE_RX);
	uint8_t gid[16];

	(void)state;
	fake_ud.grh_unclear = true;
	ud_up_rx(r, &s);
	ud_hot_command(r, WM_EP_PROBE, OURS);
	ud_message(r, &s, FABRIC_PROBE, 1, NULL);
	assert_int_equal(fake_ud_qp()->n_sends, 1);
	ud_gid_of_addr(&ud_there, gid);
	assert_memory_equal(fake_ud.last_ah.grh.dgid.raw, gid, 16);
	assert_int_equal(fake_ud.last_ah.grh.sgid_index, 3);
	fake_ud_sent(fake_ud_qp(), 1, IBV_WC_SUCCESS);
	ud_reset(r, OURS);
	ud_rig_free(r);
}

/* ---- the queue pair ---- */

static void a_failed_send_stops_nobody_else(void **state)
{
	struct ud_rig *r = ud_rig_new();
	struct ep_start s = ud_start(ROLE_TX), other = s;
	uint32_t qpn;

	(void)state;
	other.conn_id = OURS + 1;
	other.flow = 1;
	ud_up_tx(r, &s);
	ud_up_tx(r, &other);
	qpn = fake_ud_qp()->qp.qp_num;
	ud_hot_command(r, WM_EP_PROBE, OURS);
	assert_int_equal(fake_ud_qp()->n_sends, 1);
	fake_ud_sent(fake_ud_qp(), 1, IBV_WC_LOC_QP_OP_ERR);
	fake_ud_breaks(fake_ud_qp(), IBV_QPS_SQE);
	ud_settle(r);
	assert_int_equal(fake_ud_qp()->state, IBV_QPS_RTS);
	assert_int_equal(fake_ud_qp()->n_recvs, UD_RECVS);
	assert_int_equal(r->errors, 0);
	/* The other one sends; this one not before its path was looked up again. */
	ud_hot_command(r, WM_EP_PROBE, OURS + 1);
	assert_int_equal(fake_ud_qp()->n_sends, 1);
	assert_null(ud_ep(r, OURS)->dest.ah);
	ud_later(r, NSEC_PER_SEC);
	assert_non_null(ud_ep(r, OURS)->again.id);
	assert_int_equal(fake_ud_qp()->qp.qp_num, qpn);
	fake_ud_sent(fake_ud_qp(), 1, IBV_WC_SUCCESS);
	ud_reset(r, OURS);
	ud_reset(r, OURS + 1);
	ud_rig_free(r);
}

static void an_error_is_repaired_in_place(void **state)
{
	struct ud_rig *r = ud_rig_new();
	struct ep_start s = ud_start(ROLE_TX);
	struct fake_ud_qp *q;
	uint32_t qpn;

	(void)state;
	ud_up_tx(r, &s);
	q = fake_ud_qp();
	qpn = q->qp.qp_num;
	for (int i = 0; i < 5; i++) {
		fake_ud_breaks(q, IBV_QPS_ERR);
		ud_settle(r);
		ud_later(r, (i + 1) * NSEC_PER_SEC); /* not again and again at once */
		assert_int_equal(q->state, IBV_QPS_RTS);
		assert_int_equal(q->n_recvs, UD_RECVS);
		assert_int_equal(q->qp.qp_num, qpn);
		assert_int_equal(q->qkey, RDMA_UDP_QKEY);
	}
	assert_int_equal(r->errors, 0);
	ud_hot_command(r, WM_EP_PROBE, OURS);
	assert_int_equal(q->n_sends, 1);
	/* Flushed with a send under way: its handle is free, and the message goes again. */
	fake_ud_breaks(q, IBV_QPS_ERR);
	ud_settle(r);
	ud_later(r, 10 * NSEC_PER_SEC);
	assert_int_equal(atomic_load(&ud_ep(r, OURS)->ah->out), 0);
	assert_int_equal(r->errors, 0);
	ud_reset(r, OURS);
	ud_rig_free(r);
}

static void many(struct ud_rig *r, int n)
{
	struct ep_start s = ud_start(ROLE_TX);

	for (int i = 0; i < n; i++) {
		s.conn_id = OURS + (uint64_t)i;
		ud_up_tx(r, &s);
	}
}

static void resets(struct ud_rig *r, int n)
{
	for (int i = 0; i < n; i++)
		ud_reset(r, OURS + (uint64_t)i);
}

/* One that is beyond repair: all are told once, and begin anew on another. */
static void the_end_of_a_queue_pair_is_told_once(void **state)
{
	static const enum ibv_event_type ends[] = {IBV_EVENT_QP_FATAL, IBV_EVENT_QP_REQ_ERR,
						   IBV_EVENT_QP_ACCESS_ERR,
						   IBV_EVENT_CQ_ERR};

	(void)state;
	for (size_t i = 0; i <= ARRAY_LEN(ends); i++) {
		struct ud_rig *r = ud_rig_new();
		uint32_t qpn;

		many(r, 5);
		qpn = fake_ud_qp()->qp.qp_num;
		if (i < ARRAY_LEN(ends)) {
			fake_ud_async(fake_ud_qp(), ends[i]);
			fake_ud_async(fake_ud_qp(), ends[i]);
		} else { /* or it cannot be repaired */
			fake_ud_breaks(fake_ud_qp(), IBV_QPS_ERR);
			fake.fail_in = 1;
			fake.fail_errno = EIO;
		}
		ud_settle(r);
		assert_int_equal(r->errors, 5);
		assert_int_equal(r->error.error, EPERR_LOCAL);
		assert_non_null(strstr(r->error.text, "ud queue pair"));
		resets(r, 5);
		assert_int_equal(r->resets, 5);
		assert_int_equal(fake.qps, 0);
		many(r, 2);
		assert_int_equal(r->errors, 5);
		assert_int_not_equal(fake_ud_qp()->qp.qp_num, qpn);
		resets(r, 2);
		ud_rig_free(r);
	}
}

static void a_handle_lives_as_long_as_sends_with_it(void **state)
{
	struct ud_rig *r = ud_rig_new();
	struct ep_start s = ud_start(ROLE_TX);

	(void)state;
	ud_up_tx(r, &s);
	ud_hot_command(r, WM_EP_PROBE, OURS);
	ud_reset(r, OURS);
	assert_int_equal(r->resets, 1);
	assert_int_equal(fake_ud.ahs, 1);
	ud_later(r, NSEC_PER_SEC);
	assert_int_equal(fake_ud.ahs, 1);
	fake_ud_sent(fake_ud_qp(), 1, IBV_WC_SUCCESS);
	ud_settle(r);
	ud_later(r, NSEC_PER_SEC);
	assert_int_equal(fake_ud.ahs, 0);
	ud_rig_free(r);
}

static void without_inline_a_message_keeps_its_buffer(void **state)
{
	struct ud_rig *r = ud_rig_new();
	struct ep_start s = ud_start(ROLE_RX), tx = ud_start(ROLE_TX);
	struct fake_ud_qp *q;

	(void)state;
	fake_ud.no_inline = true;
	ud_up_rx(r, &s);
	ud_hot_command(r, WM_EP_PROBE, OURS);
	q = fake_ud_qp();
	ud_message(r, &s, FABRIC_PROBE, 1, NULL);
	assert_int_equal(q->n_sends, 1);
	assert_false(q->sends[0].is_inline);
	assert_int_equal(q->n_recvs, UD_RECVS - 1);
	fake_ud_sent(q, 1, IBV_WC_SUCCESS);
	ud_settle(r);
	assert_int_equal(q->n_recvs, UD_RECVS);
	tx.conn_id = OURS + 1;
	ud_up_tx(r, &tx);
	ud_hot_command(r, WM_EP_PROBE, OURS + 1);
	assert_int_equal(r->cm.ports[0]->n_free, UD_BUFS - 1);
	fake_ud_sent(q, 1, IBV_WC_SUCCESS);
	ud_settle(r);
	assert_int_equal(r->cm.ports[0]->n_free, UD_BUFS);
	ud_reset(r, OURS);
	ud_reset(r, OURS + 1);
	ud_rig_free(r);
}

static void a_flood_is_counted_and_lets_others_live(void **state)
{
	struct ud_rig *r = ud_rig_new();
	struct ep_start s = ud_start(ROLE_RX);
	struct fake_ud_qp *q;
	uint8_t junk[64] = {0};

	(void)state;
	ud_up_rx(r, &s);
	ud_hot_command(r, WM_EP_PROBE, OURS);
	q = fake_ud_qp();
	for (int i = 0; i < UD_RECVS + 100; i++) /* for the last there is no receive */
		fake_ud_arrives(q, NULL, junk, sizeof(junk), 1, 2);
	ud_settle(r);
	assert_int_equal(atomic_load(&r->w.drops[DROP_KERNEL]), 1);
	assert_int_equal(atomic_load(&r->w.drops[DROP_MAGIC]), UD_RECVS);
	assert_int_equal(q->n_recvs, UD_RECVS);
	ud_message(r, &s, FABRIC_PROBE, 1, NULL);
	assert_int_equal(q->n_sends, 1);
	fake_ud_sent(q, 1, IBV_WC_SUCCESS);
	ud_reset(r, OURS);
	ud_rig_free(r);
}

/* ---- the path ---- */

static void answer_again(struct ud_rig *r, uint64_t conn_id, const struct ibv_ah_attr *attr,
			 uint32_t qpn)
{
	struct endpoint *ep = ud_ep(r, conn_id);

	assert_non_null(ep->again.id);
	fake_event(ep->again.id, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	ud_settle(r);
	fake_event(ep->again.id, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
	ud_settle(r);
	fake_ud_established(ep->again.id, attr, qpn);
	ud_settle(r);
	assert_null(ep->again.id);
}

static void a_change_is_followed_without_a_loss(void **state)
{
	static const enum ibv_event_type changes[] = {
		IBV_EVENT_GID_CHANGE, IBV_EVENT_LID_CHANGE, IBV_EVENT_SM_CHANGE,
		IBV_EVENT_CLIENT_REREGISTER, IBV_EVENT_PKEY_CHANGE, IBV_EVENT_PORT_ACTIVE};
	struct ud_rig *r = ud_rig_new();
	struct ep_start s = ud_start(ROLE_TX);
	struct ibv_ah_attr attr = ud_attr();
	int made = 1, paths = 0;

	(void)state;
	ud_up_tx(r, &s);
	ud_hot_command(r, WM_EP_PROBE, OURS);
	fake_ud_sent(fake_ud_qp(), 1, IBV_WC_SUCCESS);
	for (size_t i = 0; i < ARRAY_LEN(changes) + 2; i++) {
		if (i < ARRAY_LEN(changes)) {
			fake_port_event(changes[i]);
			fake_port_event(changes[i]); /* they come in bursts */
		} else {
			fake_event(ud_ep(r, OURS)->id,
				   i % 2 ? RDMA_CM_EVENT_ADDR_CHANGE
					 : RDMA_CM_EVENT_UNREACHABLE,
				   i % 2 ? 0 : -ETIMEDOUT);
		}
		ud_settle(r);
		assert_null(ud_ep(r, OURS)->again.id); /* in a moment */
		ud_later(r, NSEC_PER_SEC);
		if (i == 2) { /* this one leads elsewhere */
			attr.grh.sgid_index = 4;
			paths++;
		}
		answer_again(r, OURS, &attr, PEER_QPN);
		assert_int_equal(fake_ud.ahs_made, ++made);
		assert_int_equal(fake_ud.ahs, 1);
		assert_int_equal(fake.ids, 1);
		assert_int_equal(r->paths, paths);
	}
	assert_int_equal(r->errors, 0);
	assert_int_equal(r->up, 1);
	assert_ptr_equal(ud_ep(r, OURS)->dest.ah, ud_ep(r, OURS)->ah);
	ud_reset(r, OURS);
	ud_rig_free(r);
}

static void the_responder_follows_the_messages(void **state)
{
	struct ud_rig *r = ud_rig_new();
	struct ep_start s = ud_start(ROLE_RX);
	struct fake_ud_qp *q;
	struct fabric_msg m = {.type = FABRIC_PROBE, .length = FABRIC_LEN, .conn_id = OURS,
			       .epoch = EPOCH, .seq = 3, .t1 = 1};
	uint8_t buf[FABRIC_LEN], grh[40];

	(void)state;
	ud_up_rx(r, &s);
	ud_hot_command(r, WM_EP_PROBE, OURS);
	q = fake_ud_qp();
	ud_message(r, &s, FABRIC_PROBE, 1, NULL);
	fake_port_event(IBV_EVENT_GID_CHANGE);
	ud_settle(r);
	ud_later(r, NSEC_PER_SEC);
	assert_int_equal(fake_ud.ahs_made, 1);
	ud_message(r, &s, FABRIC_PROBE, 2, NULL); /* answered the old way; then anew */
	assert_int_equal(q->n_sends, 2);
	assert_int_equal(fake_ud.ahs_made, 2);
	assert_int_equal(r->paths, 1);
	/* The peer's queue pair is another one: the answers go there. */
	fabric_encode(&m, NULL, buf);
	fake_ud_ipv4(grh, s.remote.ip, s.local.ip);
	fake_ud_arrives(q, grh, buf, sizeof(buf), PEER_QPN + 1, 0);
	ud_settle(r);
	assert_int_equal(r->paths, 2);
	assert_int_equal(r->last_path.path.remote_qpn, PEER_QPN + 1);
	assert_int_equal(ud_ep(r, OURS)->dest.qpn, PEER_QPN + 1);
	fake_ud_sent(q, q->n_sends, IBV_WC_SUCCESS);
	ud_settle(r);
	assert_int_equal(r->errors, 0);
	ud_reset(r, OURS);
	ud_later(r, NSEC_PER_SEC);
	assert_int_equal(fake_ud.ahs, 0);
	ud_rig_free(r);
}

static void a_look_up_that_fails_is_tried_again_and_given_up(void **state)
{
	struct ud_rig *r = ud_rig_new();
	struct ep_start s = ud_start(ROLE_TX);
	int64_t at = NSEC_PER_SEC;
	int tries = 0;

	(void)state;
	ud_up_tx(r, &s);
	fake_port_event(IBV_EVENT_GID_CHANGE);
	ud_settle(r);
	for (int i = 0; i < 20; i++) {
		ud_later(r, at);
		at += 200 * NSEC_PER_SEC;
		if (!ud_ep(r, OURS)->again.id)
			continue;
		tries++;
		fake_event(ud_ep(r, OURS)->again.id,
			   i % 2 ? RDMA_CM_EVENT_ADDR_ERROR : RDMA_CM_EVENT_UNREACHABLE,
			   -ETIMEDOUT);
		ud_settle(r);
		assert_int_equal(fake.ids, 1);
	}
	assert_in_range(tries, 4, 8);
	assert_int_equal(r->errors, 0);
	/* With the link down nothing is even begun. */
	fake.no_path = true;
	fake_port_event(IBV_EVENT_GID_CHANGE);
	ud_settle(r);
	ud_later(r, at);
	assert_null(ud_ep(r, OURS)->again.id);
	ud_reset(r, OURS);
	ud_rig_free(r);
}

static void a_reset_ends_a_look_up(void **state)
{
	struct ud_rig *r = ud_rig_new();

	(void)state;
	many(r, 50); /* more than are looked up at a time */
	fake_port_event(IBV_EVENT_LID_CHANGE);
	ud_settle(r);
	ud_later(r, NSEC_PER_SEC);
	assert_int_equal(r->cm.refreshing, 32);
	resets(r, 50);
	assert_int_equal(r->cm.refreshing, 0);
	assert_int_equal(fake.ids, 0);
	ud_rig_free(r);
}

/* ---- whatever happens ---- */

static void life_of_tx(struct ud_rig *r)
{
	struct ep_start s = ud_start(ROLE_TX);
	struct ibv_ah_attr attr = ud_attr();
	struct endpoint *ep;

	ud_command(r, WM_EP_START, &s);
	for (int step = 0; step < 3 && (ep = ud_ep(r, OURS)) && ep->id; step++) {
		if (step == 2)
			fake_ud_established(ep->id, &attr, PEER_QPN);
		else
			fake_event(ep->id,
				   step ? RDMA_CM_EVENT_ROUTE_RESOLVED
					: RDMA_CM_EVENT_ADDR_RESOLVED,
				   0);
		ud_settle(r);
	}
}

static void life_of_rx(struct ud_rig *r)
{
	struct ep_start s = ud_start(ROLE_RX);

	ud_command(r, WM_LISTEN, NULL);
	ud_command(r, WM_EP_START, &s);
	if (!r->cm.listeners)
		return;
	(void)ud_request_comes(r, &s);
	if (!fake_ud_qp())
		return;
	ud_hot_command(r, WM_EP_PROBE, OURS);
	ud_message(r, &s, FABRIC_PROBE, 1, NULL);
	fake_ud_sent(fake_ud_qp(), fake_ud_qp()->n_sends, IBV_WC_SUCCESS);
}

static void any_call_may_fail(void **state)
{
	(void)state;
	for (int which = 0; which < 2; which++) {
		bool all = false;
		int seen = 0;

		for (int n = 1; !all; n++) {
			struct ud_rig *r = ud_rig_new();

			fake.fail_in = n;
			fake.fail_errno = ENOMEM;
			if (which)
				life_of_rx(r);
			else
				life_of_tx(r);
			all = fake.fail_in > 0; /* no call was left to fail */
			seen += !all;
			assert_true(r->errors <= 1);
			if (!r->up && !all && !which)
				assert_int_equal(r->errors, 1);
			fake.fail_in = 0;
			ud_reset(r, OURS);
			ud_settle(r);
			assert_int_equal(r->resets, 1);
			ud_later(r, NSEC_PER_SEC);
			assert_int_equal(fake_ud.ahs, 0);
			ud_rig_free(r);
		}
		assert_true(seen > 15);
	}
}

static void what_cannot_be_is_refused(void **state)
{
	struct ud_rig *r = ud_rig_new();
	struct ep_start s = ud_start(ROLE_TX);

	(void)state;
	r->cm.table.max_ud = 2;
	many(r, 2);
	s.conn_id = OURS + 2;
	ud_command(r, WM_EP_START, &s);
	assert_int_equal(r->error.error, EPERR_LIMIT);
	assert_non_null(strstr(r->error.text, "ud"));
	resets(r, 2);
	r->w.iwarp = true;
	ud_command(r, WM_EP_START, &s);
	assert_int_equal(r->error.error, EPERR_NOT_SUPPORTED);
	assert_non_null(strstr(r->error.text, "iWARP"));
	ud_command(r, WM_LISTEN, NULL);
	assert_int_equal(r->listen_error, EOPNOTSUPP);
	ud_rig_free(r);
}

/* ---- pure ---- */

static void flows_differ_in_their_port(void **state)
{
	uint16_t seen[64];

	(void)state;
	for (uint16_t f = 0; f < 64; f++) {
		uint32_t l = ud_flow_label(&ud_here, &ud_there, f);

		assert_in_range(l, 1, 0xfffff);
		assert_int_equal(l, ud_flow_label(&ud_there, &ud_here, f));
		seen[f] = path_sport_of_label(l, 1, 1);
		assert_int_equal(seen[f], ibv_flow_label_to_udp_sport(l));
		for (uint16_t i = 0; i < f; i++)
			assert_int_not_equal(seen[i], seen[f]);
	}
	/* What real packets of a soft-RoCE device had. */
	assert_int_equal(path_sport_of_label(53496, 18, 18), 53499);
}

static void sources_are_read_from_either_header(void **state)
{
	struct ibv_wc wc = {.src_qp = 5, .slid = 9, .wc_flags = IBV_WC_GRH};
	uint8_t grh[40], want[16];
	struct ud_source a, b;

	(void)state;
	fake_ud_ipv4(grh, ud_there.ip, ud_here.ip);
	ud_source_read(grh, &wc, &a);
	ud_gid_of_addr(&ud_there, want);
	assert_memory_equal(a.gid, want, 16);
	assert_int_equal(a.qpn, 5);
	memset(grh, 0xff, sizeof(grh));
	grh[0] = 0x60;
	for (uint8_t i = 0; i < 16; i++)
		grh[8 + i] = want[i] = i;
	ud_source_read(grh, &wc, &b);
	assert_memory_equal(b.gid, want, 16);
	assert_false(ud_source_equal(&a, &b));
	wc.wc_flags = 0; /* InfiniBand within a subnet: the bytes mean nothing */
	ud_source_read(grh, &wc, &a);
	memset(grh, 0, sizeof(grh));
	ud_source_read(grh, &wc, &b);
	assert_true(ud_source_equal(&a, &b));
	wc.slid++;
	ud_source_read(grh, &wc, &b);
	assert_false(ud_source_equal(&a, &b));
}

static void stamps_of_the_device_are_believed_where_they_can_be(void **state)
{
	struct dev_clock c = {.usable = true,
			      .khz = 1000000, /* a tick a ns */
			      .mask = UINT64_C(0xffffffff),
			      .ticks = 1000,
			      .at = {NSEC_PER_SEC}};
	struct mono now = {NSEC_PER_SEC + 1000000};

	(void)state;
	assert_int_equal(dev_clock_time(&c, 1000 + 500, now).ns, NSEC_PER_SEC + 500);
	assert_int_equal(dev_clock_time(&c, 1000 - 500, now).ns, NSEC_PER_SEC - 500);
	/* Over the end of the counter. */
	c.ticks = UINT64_C(0xffffff00);
	assert_int_equal(dev_clock_time(&c, 0x100, now).ns, NSEC_PER_SEC + 0x200);
	/* Not yet, and too long ago: then it is now. */
	assert_int_equal(dev_clock_time(&c, c.ticks + 2000000, now).ns, now.ns);
	c.mask = UINT64_MAX;
	assert_int_equal(dev_clock_time(&c, c.ticks - UINT64_C(20000000000), now).ns,
			 now.ns);
	c.khz = 312500; /* 3.2 ns a tick */
	assert_int_equal(dev_clock_time(&c, c.ticks + 1000, now).ns, NSEC_PER_SEC + 3200);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(prober_comes_up_and_goes),
		cmocka_unit_test(path_facts_are_told),
		cmocka_unit_test(responder_answers_from_the_first_message),
		cmocka_unit_test(the_question_may_come_again),
		cmocka_unit_test(a_refusal_is_told_in_words),
		cmocka_unit_test(all_share_one_queue_pair_and_equal_ways_a_handle),
		cmocka_unit_test(another_pkey_is_another_queue_pair),
		cmocka_unit_test(what_is_not_ours_is_counted_and_forgotten),
		cmocka_unit_test(stale_bytes_before_a_message_are_not_read),
		cmocka_unit_test(a_header_that_the_library_cannot_read),
		cmocka_unit_test(a_failed_send_stops_nobody_else),
		cmocka_unit_test(an_error_is_repaired_in_place),
		cmocka_unit_test(the_end_of_a_queue_pair_is_told_once),
		cmocka_unit_test(a_handle_lives_as_long_as_sends_with_it),
		cmocka_unit_test(without_inline_a_message_keeps_its_buffer),
		cmocka_unit_test(a_flood_is_counted_and_lets_others_live),
		cmocka_unit_test(a_change_is_followed_without_a_loss),
		cmocka_unit_test(the_responder_follows_the_messages),
		cmocka_unit_test(a_look_up_that_fails_is_tried_again_and_given_up),
		cmocka_unit_test(a_reset_ends_a_look_up),
		cmocka_unit_test(any_call_may_fail),
		cmocka_unit_test(what_cannot_be_is_refused),
		cmocka_unit_test(flows_differ_in_their_port),
		cmocka_unit_test(sources_are_read_from_either_header),
		cmocka_unit_test(stamps_of_the_device_are_believed_where_they_can_be),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
