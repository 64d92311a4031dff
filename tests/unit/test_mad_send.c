/* SPDX-License-Identifier: BSD-2-Clause */
/* The whole contract of umad_send() on a scripted libibumad: GMPs, LID-routed SMPs,
 * GRH, timeouts, answers of several MADs, Reports. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "log.h"
#include "mad.h"
#include "mad/smp_port.h"

#include "../support/fake_umad.h"

#define IDS_MAX 4096

struct ctx {
	struct smp_port *port;
	int wake_fd;
	struct mono now;
	int asked, answered, reports;
	struct smp_report report;
	struct smp_done last; /* its data is a copy */
	uint8_t *data;
	uint8_t times[IDS_MAX], status[IDS_MAX];
	int error[IDS_MAX];
};

static void on_done(void *user, const struct smp_done *d)
{
	struct ctx *c = user;

	assert_int_equal(d->origin, FROM_MAD_SEND);
	assert_true(d->id < (uint64_t)c->asked);
	assert_true(d->data || !d->len);
	c->times[d->id]++;
	c->status[d->id] = (uint8_t)d->status;
	c->error[d->id] = d->error;
	free(c->data);
	c->data = xcalloc(1, d->len + 1);
	if (d->len)
		memcpy(c->data, d->data, d->len);
	c->last = *d;
	c->last.data = c->data;
	c->answered++;
}

static void on_report(void *user, const struct smp_report *r)
{
	struct ctx *c = user;

	c->report = *r;
	c->reports++;
}

static void open_port(struct ctx *c, bool reports)
{
	struct smp_calls calls = {.done = on_done, .report = on_report, .user = c};
	int error = 0;

	c->port = smp_port_open("mlx5_0", 1, reports, c->wake_fd, &calls, &error);
	assert_non_null(c->port);
}

static struct wm_mad_send a_send(enum wm_mad_kind kind)
{
	static const struct {
		uint8_t method;
		uint16_t attr;
	} of[WM_KIND__MAX] = {
		[WM_KIND_DR_SMP] = {MAD_GET, MAD_ATTR_PORT_INFO},
		[WM_KIND_LID_SMP] = {MAD_GET, MAD_ATTR_SM_INFO},
		[WM_KIND_PMA] = {MAD_GET, MAD_ATTR_PORT_COUNTERS},
		[WM_KIND_SA] = {MAD_GET_TABLE, MAD_ATTR_NODE_RECORD},
	};

	return (struct wm_mad_send){.kind = (uint8_t)kind,
				    .method = of[kind].method,
				    .attr = of[kind].attr,
				    .dlid = 0x1234,
				    .timeout_ms = 500,
				    .retries = 1};
}

static void ask(struct ctx *c, struct wm_mad_send m)
{
	assert_true(c->asked < IDS_MAX);
	m.id = (uint64_t)c->asked++;
	smp_port_send(c->port, &m, c->now);
}

/* All that the script put has been received and looked at. */
static void settle(struct ctx *c)
{
	struct pollfd p = {.fd = c->wake_fd, .events = POLLIN};
	struct smp_port_stats st;
	uint64_t n;

	fake_umad_drain();
	for (;;) {
		assert_true(smp_port_work(c->port, c->now));
		smp_port_stats(c->port, &st);
		if (st.received == fake_umad_received())
			return;
		assert_int_equal(poll(&p, 1, 5000), 1);
		(void)!read(c->wake_fd, &n, sizeof(n));
	}
}

static int setup(void **state)
{
	struct ctx *c = xcalloc(1, sizeof(*c));

	fake_umad_begin();
	log_open("test", LOG_ERR);
	c->now.ns = 1;
	c->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	open_port(c, true);
	*state = c;
	return 0;
}

static int teardown(void **state)
{
	struct ctx *c = *state;
	int wrongs;

	c->port = smp_port_close(c->port);
	wrongs = fake_umad_end();
	for (int i = 0; i < c->asked; i++)
		wrongs += c->times[i] != 1;
	(void)close(c->wake_fd);
	free(c->data);
	free(c);
	return wrongs;
}

/* ---- what leaves ---- */

/* The address as a kernel reads it (struct ib_user_mad_hdr): queue pair, key, LID, SL.
 */
static void each_kind_has_its_address(void **state)
{
	static const struct {
		uint32_t qpn, qkey;
		uint16_t lid;
		uint8_t sl, class, version;
	} want[WM_KIND__MAX] = {
		[WM_KIND_DR_SMP] = {0, 0, 0xffff, 0, 0x81, 1},
		[WM_KIND_LID_SMP] = {0, 0, 0x1234, 5, 0x01, 1},
		[WM_KIND_PMA] = {1, 0x80010000, 0x1234, 5, 0x04, 1},
		[WM_KIND_SA] = {1, 0x80010000, 0x1234, 5, 0x03, 2},
	};
	struct ctx *c = *state;

	for (int i = 0; i < WM_KIND__MAX; i++) {
		struct wm_mad_send m = a_send((enum wm_mad_kind)i);
		const struct fake_sent *s;
		uint16_t pkey;

		m.sl = 5;
		m.pkey_index = 0x0102;
		m.mod = 7;
		m.comp_mask = 0x30;
		m.hops = 1;
		m.path[1] = 1;
		m.length = 2;
		m.data[0] = 0xaa;
		m.data[1] = 0xbb;
		ask(c, m);
		s = fake_umad_request(i);
		assert_int_equal(be32_get(s->header + 20), want[i].qpn);
		assert_int_equal(be32_get(s->header + 24), want[i].qkey);
		assert_int_equal(be16_get(s->header + 28), want[i].lid);
		assert_int_equal(s->header[30], want[i].sl);
		for (int k = 31; k < 56; k++) /* no GRH */
			assert_int_equal(s->header[k], 0);
		memcpy(&pkey, s->header + 56, sizeof(pkey));
		assert_int_equal(pkey, 0x0102);
		assert_int_equal(s->mad[1], want[i].class);
		assert_int_equal(s->mad[2], want[i].version);
		assert_int_equal(be16_get(s->mad + 16), m.attr);
		assert_int_equal(be32_get(s->mad + 20), 7);
		assert_int_equal(be16_get(s->mad + (i == WM_KIND_SA ? 56 : 64)),
				 0xaabb);
		assert_true(be64_get(s->mad + 48) == (i == WM_KIND_SA ? 0x30u : 0u));
		assert_int_equal(s->mad[129], i == WM_KIND_DR_SMP);
		assert_int_equal(s->timeout_ms, 500);
		assert_int_equal(s->retries, 1);
		fake_umad_answer(i);
		settle(c);
		assert_int_equal(c->status[i], WM_MAD_OK);
		assert_int_equal(c->last.len, i < WM_KIND_PMA	 ? 64
					      : i == WM_KIND_PMA ? 192
								 : 200);
	}
}

static void a_grh_byte_by_byte(void **state)
{
	struct wm_mad_send m = a_send(WM_KIND_PMA);
	struct ctx *c = *state;
	const uint8_t *h;

	m.grh = (struct wm_grh){.present = 1,
				.gid_index = 3,
				.hop_limit = 64,
				.traffic_class = 0x12,
				.flow_label = 0xabcde};
	for (int i = 0; i < 16; i++)
		m.grh.gid[i] = (uint8_t)(0xf0 + i);
	ask(c, m);
	h = fake_umad_request(0)->header;
	assert_int_equal(h[32], 1); /* present */
	assert_int_equal(h[33], 3);
	assert_int_equal(h[34], 64);
	assert_int_equal(h[35], 0x12);
	assert_memory_equal(h + 36, m.grh.gid, 16);
	assert_int_equal(be32_get(h + 52), 0xabcde);
	ask(c, a_send(WM_KIND_PMA)); /* the next one has none of it */
	h = fake_umad_request(1)->header;
	for (int k = 31; k < 56; k++)
		assert_int_equal(h[k], 0);
	fake_umad_answer(0);
	fake_umad_answer(1);
	settle(c);
}

static void what_is_not_allowed_does_not_leave(void **state)
{
	static const struct {
		enum wm_mad_kind kind;
		uint8_t method;
		uint16_t attr, dlid;
		int error;
	} rows[] = {
		{WM_KIND_DR_SMP, MAD_SET, MAD_ATTR_PORT_INFO, 1, EINVAL},
		{WM_KIND_LID_SMP, MAD_SET, MAD_ATTR_PORT_INFO, 1, EINVAL},
		{WM_KIND_LID_SMP, 0x05, MAD_ATTR_NOTICE, 1, EINVAL},
		{WM_KIND_PMA, MAD_SET, MAD_ATTR_PORT_COUNTERS, 1, EINVAL},
		{WM_KIND_SA, MAD_SET, MAD_ATTR_MCMEMBER_RECORD, 1, EINVAL},
		{WM_KIND_SA, 0x15, MAD_ATTR_MCMEMBER_RECORD, 1, EINVAL},
		{WM_KIND_SA, MAD_GET, MAD_ATTR_INFORM_INFO, 1, EINVAL},
		{WM_KIND_PMA, MAD_GET, MAD_ATTR_PORT_COUNTERS, 0, EHOSTUNREACH},
		{WM_KIND_PMA, MAD_GET, MAD_ATTR_PORT_COUNTERS, 0xc000, EHOSTUNREACH},
		{WM_KIND_SA, MAD_GET, MAD_ATTR_PATH_RECORD, 0, EHOSTUNREACH},
	};
	struct ctx *c = *state;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct wm_mad_send m = {.kind = (uint8_t)rows[i].kind,
					.method = rows[i].method,
					.attr = rows[i].attr,
					.dlid = rows[i].dlid,
					.timeout_ms = 100};

		ask(c, m);
		assert_int_equal(c->status[i], WM_MAD_SEND_FAILED);
		assert_int_equal(c->error[i], rows[i].error);
	}
	assert_int_equal(fake_umad_sent(), 0);
}

static void inform_info_may_be_set(void **state)
{
	struct wm_mad_send m = a_send(WM_KIND_SA);
	struct ctx *c = *state;

	m.method = MAD_SET;
	m.attr = MAD_ATTR_INFORM_INFO;
	m.length = 36;
	ask(c, m);
	assert_int_equal(fake_umad_request(0)->mad[3], MAD_SET);
	fake_umad_answer(0);
	settle(c);
	assert_int_equal(c->status[0], WM_MAD_OK);
}

/* ---- timeouts ---- */

static void no_answer_expected(void **state)
{
	struct wm_mad_send m = a_send(WM_KIND_PMA);
	struct ctx *c = *state;

	m.timeout_ms = 0;
	for (int i = 0; i < 100; i++) {
		ask(c, m);
		assert_int_equal(c->answered, i + 1);
		assert_int_equal(c->last.status, WM_MAD_OK);
		assert_int_equal(c->last.len, 0);
		assert_int_equal(fake_umad_request(i)->timeout_ms, 0);
	}
	fake_umad_answer(3); /* nobody is there for it */
	settle(c);
	assert_int_equal(c->answered, 100);
	assert_false(mono_is_set(smp_port_deadline(c->port)));
}

static void for_ever_is_for_ever(void **state)
{
	struct wm_mad_send m = a_send(WM_KIND_LID_SMP);
	struct ctx *c = *state;

	m.timeout_ms = -1;
	ask(c, m);
	ask(c, m);
	assert_int_equal(fake_umad_request(0)->timeout_ms, -1);
	assert_false(mono_is_set(smp_port_deadline(c->port)));
	c->now = mono_add(c->now, 100000 * NSEC_PER_SEC);
	settle(c);
	assert_int_equal(c->answered, 0);
	fake_umad_answer(0);
	settle(c);
	assert_int_equal(c->status[0], WM_MAD_OK);
	/* The other ends with its port. */
	c->port = smp_port_close(c->port);
	assert_int_equal(c->status[1], WM_MAD_SEND_FAILED);
	assert_int_equal(c->error[1], ENODEV);
	open_port(c, false);
}

static void a_timeout_gives_the_original_back(void **state)
{
	struct wm_mad_send m = a_send(WM_KIND_SA);
	struct ctx *c = *state;
	uint8_t mad[256];

	m.length = 150;
	for (int i = 0; i < 150; i++)
		m.data[i] = (uint8_t)(3 * i);
	for (int by_kernel = 0; by_kernel < 2; by_kernel++) {
		ask(c, m);
		if (by_kernel) {
			/* It gives back no more than the header. */
			memcpy(mad, fake_umad_request(1)->mad, sizeof(mad));
			fake_umad_put(mad, 24, ETIMEDOUT, -1);
		} else {
			c->now = smp_port_deadline(c->port);
			assert_int_equal(c->now.ns,
					 1 + 1000 * NSEC_PER_MSEC + SMP_SLACK_NS);
		}
		settle(c);
		assert_int_equal(c->status[by_kernel], WM_MAD_TIMEOUT);
		assert_int_equal(c->last.len, 150);
		assert_memory_equal(c->data, m.data, 150);
	}
	fake_umad_answer(0);
	settle(c); /* too late */
	assert_int_equal(c->answered, 2);
}

/* ---- answers of several MADs ---- */

/* As the kernel joins them: one header, then all data. */
static uint8_t *table_of(int request, size_t total)
{
	uint8_t *mad = xcalloc(1, MAX(total + 56, (size_t)256));

	fake_umad_make_answer(request, mad);
	mad[24] = 1;
	mad[25] = 1;
	mad[26] = 3;
	be16_put(mad + 44, 14);
	for (size_t i = 0; i < total; i++)
		mad[56 + i] = (uint8_t)(i * 7 + i / 251);
	return mad;
}

static void tables_of_any_size(void **state)
{
	static const size_t sizes[] = {0,   112,  200,	 201,	     456,
				       457, 4096, 99999, 112 * 1000, 112 * 37449};
	struct ctx *c = *state;

	for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
		uint8_t *mad;

		ask(c, a_send(WM_KIND_SA));
		mad = table_of((int)i, sizes[i]);
		fake_umad_put(mad, (int)sizes[i] + 56, 0, -1);
		settle(c);
		assert_int_equal(c->status[i], WM_MAD_OK);
		assert_int_equal(c->last.len, sizes[i]);
		assert_int_equal(c->last.attr_offset, 112);
		assert_memory_equal(c->data, mad + 56, sizes[i]);
		free(mad);
	}
}

static void a_table_that_is_too_long(void **state)
{
	struct ctx *c = *state;
	size_t total = WM_MAD_TOTAL_MAX;
	uint8_t *mad;

	for (int i = 0; i < 2; i++) {
		ask(c, a_send(WM_KIND_SA));
		mad = table_of(i, total + (size_t)i);
		fake_umad_put(mad, (int)total + 56 + i, 0, -1);
		free(mad);
		settle(c);
	}
	assert_int_equal(c->status[0], WM_MAD_OK);
	assert_int_equal(c->status[1], WM_MAD_BAD_ANSWER);
	assert_int_equal(c->error[1], EMSGSIZE);
}

static void small_ones_among_big_ones(void **state)
{
	struct ctx *c = *state;

	for (int i = 0; i < 20; i++)
		ask(c, a_send(i % 3 ? WM_KIND_PMA : WM_KIND_SA));
	for (int i = 0; i < 20; i++) {
		if (i % 3) {
			fake_umad_answer(i);
		} else {
			uint8_t *mad = table_of(i, 1000 + (size_t)i);

			fake_umad_put(mad, 1056 + i, 0, -1);
			free(mad);
		}
	}
	settle(c);
	for (int i = 0; i < 20; i++)
		assert_int_equal(c->status[i], WM_MAD_OK);
}

static void statuses_of_the_sa(void **state)
{
	struct wm_mad_send m = a_send(WM_KIND_SA);
	struct ctx *c = *state;
	uint8_t mad[256];

	m.method = MAD_GET;
	ask(c, m);
	fake_umad_make_answer(0, mad);
	be16_put(mad + 4, 0x0300);
	fake_umad_put(mad, 256, 0, -1);
	settle(c);
	assert_int_equal(c->status[0], WM_MAD_BAD_STATUS);
	assert_int_equal(c->last.mad_status, 0x0300);
	assert_int_equal(c->last.len, 0);
	/* Of another class than was asked, of another agent. */
	ask(c, a_send(WM_KIND_PMA));
	fake_umad_make_answer(1, mad);
	mad[1] = 3;
	fake_umad_put(mad, 256, 0, -1);
	settle(c);
	assert_int_equal(c->status[1], WM_MAD_BAD_ANSWER);
	assert_int_equal(c->error[1], EBADMSG);
	ask(c, a_send(WM_KIND_PMA));
	fake_umad_make_answer(2, mad);
	fake_umad_put(mad, 256, 0, fake_umad_agent(3));
	settle(c);
	assert_int_equal(c->answered, 2);
	c->now = smp_port_deadline(c->port);
	settle(c);
	assert_int_equal(c->status[2], WM_MAD_TIMEOUT);
}

static void removal_ends_even_for_ever(void **state)
{
	struct wm_mad_send m = a_send(WM_KIND_PMA);
	struct pollfd p = {.events = POLLIN};
	struct ctx *c = *state;

	m.timeout_ms = -1;
	for (int i = 0; i < 3 * GMP_WINDOW; i++) {
		m.kind = i % 2 ? WM_KIND_PMA : WM_KIND_LID_SMP;
		m.attr = i % 2 ? MAD_ATTR_PORT_COUNTERS : MAD_ATTR_SM_INFO;
		ask(c, m);
	}
	fake_umad_answer(0);
	settle(c);
	fake_umad_remove();
	p.fd = c->wake_fd;
	while (smp_port_work(c->port, c->now))
		assert_int_equal(poll(&p, 1, 5000), 1);
	assert_int_equal(c->status[0], WM_MAD_OK);
	for (int i = 1; i < c->asked; i++) {
		assert_int_equal(c->status[i], WM_MAD_SEND_FAILED);
		assert_int_equal(c->error[i], EIO);
	}
}

/* ---- windows ---- */

static void gmps_do_not_wait_for_smps(void **state)
{
	struct ctx *c = *state;
	int n = 2 * SMP_WINDOW;

	for (int i = 0; i < n; i++)
		ask(c, a_send(WM_KIND_DR_SMP));
	assert_int_equal(fake_umad_sent(), SMP_WINDOW);
	for (int i = 0; i < 2 * GMP_WINDOW; i++)
		ask(c, a_send(i % 2 ? WM_KIND_PMA : WM_KIND_SA));
	assert_int_equal(fake_umad_sent(), SMP_WINDOW + GMP_WINDOW);
	/* Old ones make room: first when the oldest is old. */
	assert_int_equal(smp_port_deadline(c->port).ns, 1 + SMP_YOUNG_NS);
	c->now = smp_port_deadline(c->port);
	settle(c);
	assert_int_equal(fake_umad_sent(), n + 2 * GMP_WINDOW);
	for (int i = 0; i < fake_umad_sent(); i++)
		fake_umad_answer(i);
	settle(c);
	assert_int_equal(c->answered, c->asked);
}

static void even_old_ones_have_a_bound(void **state)
{
	struct wm_mad_send m = a_send(WM_KIND_PMA);
	struct ctx *c = *state;

	m.timeout_ms = 60000;
	for (int i = 0; i < SMP_OUT_MAX + 100; i++) {
		ask(c, m);
		c->now = mono_add(c->now, SMP_YOUNG_NS / GMP_WINDOW + 1);
		settle(c);
	}
	assert_int_equal(fake_umad_sent(), SMP_OUT_MAX);
	assert_int_equal(c->answered, 0);
	for (int i = 0; i < SMP_OUT_MAX; i++)
		fake_umad_answer(i);
	settle(c);
	assert_int_equal(fake_umad_sent(), SMP_OUT_MAX + GMP_WINDOW);
	c->port = smp_port_close(c->port);
	assert_int_equal(c->answered, SMP_OUT_MAX + 100);
	open_port(c, true);
}

/* ---- Reports ---- */

static void put_report(struct ctx *c, uint8_t tid, int len, int agent)
{
	uint8_t mad[512] = {1, 3, 2, MAD_REPORT};

	(void)c;
	mad[8] = 0x77; /* the sender's transaction is to come back as it was */
	mad[15] = tid;
	be16_put(mad + 16, MAD_ATTR_NOTICE);
	for (int i = 0; i < 80; i++)
		mad[56 + i] = (uint8_t)(i + tid);
	fake_umad_put(mad, len, 0, agent);
}

static void reports_are_answered_and_told(void **state)
{
	struct ctx *c = *state;
	const struct fake_sent *s;
	struct smp_port_stats st;

	put_report(c, 1, 256, -1);
	settle(c);
	assert_int_equal(c->reports, 1);
	assert_int_equal(c->report.slid, FAKE_SLID);
	for (int i = 0; i < 80; i++)
		assert_int_equal(c->report.data[i], i + 1);
	assert_int_equal(fake_umad_sent(), 1);
	s = fake_umad_request(0);
	assert_int_equal(s->mad[3], MAD_REPORT_RESP);
	assert_int_equal(s->mad[8], 0x77);
	assert_int_equal(s->mad[15], 1);
	assert_memory_equal(s->mad + 56, c->report.data, 80);
	assert_int_equal(s->timeout_ms, 0);
	/* Back by the way it came: LID, queue pair, P_Key. */
	assert_int_equal(be16_get(s->header + 28), FAKE_SLID);
	assert_int_equal(be32_get(s->header + 20), 1);
	assert_int_equal(be32_get(s->header + 24), 0x80010000);
	assert_int_equal(s->header[56] | s->header[57] << 8, 3);
	/* What is no Report is none. */
	put_report(c, 2, 100, -1);
	put_report(c, 3, 256, fake_umad_agent(4));
	settle(c);
	assert_int_equal(c->reports, 1);
	assert_int_equal(fake_umad_sent(), 1);
	smp_port_stats(c->port, &st);
	assert_int_equal(st.reports, 1);
	assert_int_equal(st.strays, 2);
}

static void reports_while_much_is_out(void **state)
{
	struct ctx *c = *state;

	for (int i = 0; i < 30; i++)
		ask(c, a_send(WM_KIND_SA));
	for (int i = 0; i < 30; i++) {
		put_report(c, (uint8_t)(0x80 + i), 256, -1);
		fake_umad_answer(i);
	}
	settle(c);
	assert_int_equal(c->reports, 30);
	assert_int_equal(c->answered, 30);
	assert_int_equal(fake_umad_sent(), 60);
}

static void another_process_has_the_reports(void **state)
{
	struct ctx *c = *state;

	c->port = smp_port_close(c->port);
	log_level(LOG_EMERG);
	fake_umad_reports_taken(true);
	open_port(c, true);
	/* All else goes on. */
	ask(c, a_send(WM_KIND_SA));
	fake_umad_answer(0);
	settle(c);
	assert_int_equal(c->status[0], WM_MAD_OK);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
int main(void)
{
	const struct CMUnitTest tests[] = {
		T(each_kind_has_its_address),
		T(a_grh_byte_by_byte),
		T(what_is_not_allowed_does_not_leave),
		T(inform_info_may_be_set),
		T(no_answer_expected),
		T(for_ever_is_for_ever),
		T(a_timeout_gives_the_original_back),
		T(tables_of_any_size),
		T(a_table_that_is_too_long),
		T(small_ones_among_big_ones),
		T(statuses_of_the_sa),
		T(removal_ends_even_for_ever),
		T(gmps_do_not_wait_for_smps),
		T(even_old_ones_have_a_bound),
		T(reports_are_answered_and_told),
		T(reports_while_much_is_out),
		T(another_process_has_the_reports),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
