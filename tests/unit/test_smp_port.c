/* SPDX-License-Identifier: BSD-2-Clause */
/* The umad layer of fabd-mad on a scripted libibumad: each request is answered once. */
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

#define IDS_MAX 70000

struct ctx {
	struct smp_port *port;
	int wake_fd;
	struct mono now;
	int asked, answered;
	struct {
		uint8_t times, status;
		uint16_t mad_status;
		int error;
		uint8_t first_byte;
	} id[IDS_MAX];
};

static void on_done(void *user, const struct smp_done *d)
{
	struct ctx *c = user;

	assert_true(d->id < (uint64_t)c->asked);
	c->id[d->id].times++;
	c->id[d->id].status = (uint8_t)d->status;
	c->id[d->id].mad_status = d->mad_status;
	c->id[d->id].error = d->error;
	assert_int_equal(d->data != NULL, d->status == WM_MAD_OK);
	assert_int_equal(d->len, d->data ? MAD_DATA_LEN : 0);
	assert_int_equal(d->origin, FROM_SMP_GETS);
	if (d->data)
		c->id[d->id].first_byte = d->data[0];
	c->answered++;
}

static void on_report(void *user, const struct smp_report *r)
{
	(void)user;
	fail_msg("a Report of 0x%04x that nobody sent", r->slid);
}

static void ask(struct ctx *c)
{
	struct smp_request r = {.id = (uint64_t)c->asked,
				.origin = FROM_SMP_GETS,
				.hops = 1,
				.path = {0, 1},
				.attr = MAD_ATTR_NODE_INFO,
				.timeout_ms = 1000,
				.retries = 2};

	assert_true(c->asked < IDS_MAX);
	c->asked++;
	smp_port_get(c->port, &r, c->now);
}

/* All that the script put has been received and looked at. */
static bool settle(struct ctx *c)
{
	struct pollfd p = {.fd = c->wake_fd, .events = POLLIN};
	struct smp_port_stats st;
	uint64_t n;

	fake_umad_drain();
	for (;;) {
		if (!smp_port_work(c->port, c->now))
			return false;
		smp_port_stats(c->port, &st);
		/* A receiver hands over just after it took from the queue. */
		if (st.received == fake_umad_received())
			return true;
		assert_int_equal(poll(&p, 1, 5000), 1);
		(void)!read(c->wake_fd, &n, sizeof(n));
	}
}

static struct smp_port *port_open(struct ctx *c, const char *device, uint8_t num,
				  int *error)
{
	struct smp_calls calls = {.done = on_done, .report = on_report, .user = c};

	return smp_port_open(device, num, false, c->wake_fd, &calls, error);
}

static int setup(void **state)
{
	struct ctx *c = xcalloc(1, sizeof(*c));
	int error = 0;

	fake_umad_begin();
	log_open("test", LOG_ERR);
	c->now.ns = 1;
	c->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	c->port = port_open(c, "mlx5_0", 1, &error);
	*state = c;
	return c->port ? 0 : -1;
}

static int teardown(void **state)
{
	struct ctx *c = *state;
	int wrongs;

	c->port = smp_port_close(c->port);
	wrongs = fake_umad_end();
	for (int i = 0; i < c->asked; i++)
		wrongs += c->id[i].times > 1;
	(void)close(c->wake_fd);
	free(c);
	return wrongs;
}

static void check(struct ctx *c, int id, enum wm_mad_status status, int error)
{
	assert_int_equal(c->id[id].times, 1);
	assert_int_equal(c->id[id].status, status);
	assert_int_equal(c->id[id].error, error);
}

static void a_good_answer(void **state)
{
	struct ctx *c = *state;
	const struct fake_sent *s;

	ask(c);
	s = fake_umad_request(0);
	assert_int_equal(s->timeout_ms, 1000);
	assert_int_equal(s->retries, 2);
	assert_int_equal(s->mad[1], MAD_CLASS_SMI_DR);
	assert_int_equal(s->mad[129], 1);
	fake_umad_answer(0);
	assert_true(settle(c));
	check(c, 0, WM_MAD_OK, 0);
	assert_false(mono_is_set(smp_port_deadline(c->port)));
}

/* How an answer is spoilt, and what comes of it. */
static void spoilt_answers(void **state)
{
	/* clang-format off */
	static const struct {
		int at;           /* byte to change, -1 = none */
		uint8_t xor;
		int len, status;
		bool other_agent;
		enum wm_mad_status want;
		int error;
	} rows[] = {
		{ -1, 0, 24, 110, false, WM_MAD_TIMEOUT, 0 },    /* the kernel gave up */
		{ -1, 0, 256, 110, false, WM_MAD_TIMEOUT, 0 },   /* as a simulator says it */
		{ -1, 0, 256, 5, false, WM_MAD_SEND_FAILED, 5 },
		{ 5, 0x1c, 256, 0, false, WM_MAD_BAD_STATUS, 0 },
		{ -1, 0, 24, 0, false, WM_MAD_BAD_ANSWER, EMSGSIZE },
		{ -1, 0, 100, 0, false, WM_MAD_BAD_ANSWER, EMSGSIZE },
		{ -1, 0, 255, 0, false, WM_MAD_BAD_ANSWER, EMSGSIZE },
		{ -1, 0, 300, 0, false, WM_MAD_BAD_ANSWER, EMSGSIZE },
		{ 17, 4, 256, 0, false, WM_MAD_BAD_ANSWER, EPROTO },
		{ 23, 1, 256, 0, false, WM_MAD_BAD_ANSWER, EPROTO },
		{ 1, 0x80, 256, 0, false, WM_MAD_BAD_ANSWER, EBADMSG },
		{ 3, 0x80, 256, 0, false, WM_MAD_BAD_ANSWER, EBADMSG },
		/* These find nobody: the request ends by its own deadline. */
		{ 15, 0x40, 256, 0, false, WM_MAD_TIMEOUT, 0 },
		{ -1, 0, 15, 0, false, WM_MAD_TIMEOUT, 0 },
		{ -1, 0, 256, 0, true, WM_MAD_TIMEOUT, 0 },
	};
	/* clang-format on */
	struct ctx *c = *state;
	struct smp_port_stats st;

	for (int i = 0; i < (int)ARRAY_LEN(rows); i++) {
		uint8_t mad[512] = {0};

		ask(c);
		fake_umad_make_answer(i, mad);
		if (rows[i].at >= 0)
			mad[rows[i].at] ^= rows[i].xor ;
		fake_umad_put(mad, rows[i].len, rows[i].status,
			      rows[i].other_agent ? 3 : -1);
		assert_true(settle(c));
		/* The last three wait for the deadline. */
		assert_int_equal(c->id[i].times, i < (int)ARRAY_LEN(rows) - 3);
	}
	assert_int_equal(c->id[3].mad_status, 0x1c);
	smp_port_stats(c->port, &st);
	assert_int_equal(st.strays, 3);
	c->now = mono_add(c->now, 3000 * NSEC_PER_MSEC + SMP_SLACK_NS - 1);
	assert_true(settle(c));
	assert_int_equal(c->answered, (int)ARRAY_LEN(rows) - 3);
	c->now = smp_port_deadline(c->port);
	assert_true(settle(c));
	for (int i = 0; i < (int)ARRAY_LEN(rows); i++)
		check(c, i, rows[i].want, rows[i].error);
}

static void late_answers_find_nobody(void **state)
{
	struct ctx *c = *state;
	uint8_t mad[256];

	ask(c);
	ask(c);
	/* One by the kernel's word, one by our own deadline; both answered afterwards.
	 */
	memcpy(mad, fake_umad_request(0)->mad, sizeof(mad));
	fake_umad_put(mad, 24, ETIMEDOUT, -1);
	assert_true(settle(c));
	check(c, 0, WM_MAD_TIMEOUT, 0);
	c->now = smp_port_deadline(c->port);
	assert_true(settle(c));
	check(c, 1, WM_MAD_TIMEOUT, 0);
	fake_umad_answer(0);
	fake_umad_answer(1);
	fake_umad_answer(1);
	assert_true(settle(c));
	assert_int_equal(c->answered, 2);
	ask(c);
	fake_umad_answer(2);
	assert_true(settle(c));
	check(c, 2, WM_MAD_OK, 0);
}

static void answers_in_any_order(void **state)
{
	struct ctx *c = *state;

	for (int i = 0; i < SMP_WINDOW; i++)
		ask(c);
	for (int i = SMP_WINDOW - 1; i >= 0; i--)
		fake_umad_answer(i);
	assert_true(settle(c));
	for (int i = 0; i < SMP_WINDOW; i++) {
		check(c, i, WM_MAD_OK, 0);
		assert_int_equal(c->id[i].first_byte, (uint8_t)i);
	}
}

static void window_and_queue_are_bounded(void **state)
{
	struct ctx *c = *state;
	int n = SMP_WINDOW + SMP_QUEUE_MAX, more = 10;

	for (int i = 0; i < n + more; i++)
		ask(c);
	assert_int_equal(fake_umad_sent(), SMP_WINDOW);
	assert_int_equal(c->answered, more);
	for (int i = 0; i < more; i++)
		check(c, n + i, WM_MAD_SEND_FAILED, ENOBUFS);
	for (int i = 0; i < n; i++) {
		fake_umad_answer(i);
		assert_true(settle(c));
		assert_true(fake_umad_inside() <= SMP_WINDOW);
	}
	for (int i = 0; i < n; i++)
		check(c, i, WM_MAD_OK, 0);
}

/* A dead target keeps its place for seconds; it must not keep the window. */
static void dead_targets_hold_up_nobody(void **state)
{
	struct ctx *c = *state;
	int n = SMP_OUT_MAX;

	for (int i = 0; i < n; i++)
		ask(c);
	assert_int_equal(fake_umad_sent(), SMP_WINDOW);
	/* None is answered: each time the window is old, the next one leaves. */
	for (int k = 2; k <= n / SMP_WINDOW; k++) {
		c->now = mono_add(c->now, SMP_YOUNG_NS - 1);
		assert_true(settle(c));
		assert_int_equal(fake_umad_sent(), (k - 1) * SMP_WINDOW);
		assert_int_equal(smp_port_deadline(c->port).ns, c->now.ns + 1);
		c->now = mono_add(c->now, 1);
		assert_true(settle(c));
		assert_int_equal(fake_umad_sent(), k * SMP_WINDOW);
	}
	/* As many as may be out at all. */
	c->now = mono_add(c->now, SMP_YOUNG_NS);
	ask(c);
	assert_true(settle(c));
	assert_int_equal(fake_umad_sent(), n);
	fake_umad_answer(5);
	assert_true(settle(c));
	assert_int_equal(fake_umad_sent(), n + 1);
	check(c, 5, WM_MAD_OK, 0);
	/* An old one that is answered makes no room for two young ones. */
	for (int i = 0; i < SMP_WINDOW; i++)
		ask(c);
	for (int i = 10; i < 10 + 2 * SMP_WINDOW; i++)
		fake_umad_answer(i);
	assert_true(settle(c));
	assert_int_equal(fake_umad_sent(), n + SMP_WINDOW);
}

static void removal_answers_everything(void **state)
{
	struct ctx *c = *state;

	for (int i = 0; i < 200; i++)
		ask(c);
	fake_umad_answer(0);
	assert_true(settle(c));
	fake_umad_remove();
	while (smp_port_work(c->port, c->now)) {
		struct pollfd p = {.fd = c->wake_fd, .events = POLLIN};

		assert_int_equal(poll(&p, 1, 5000), 1);
	}
	check(c, 0, WM_MAD_OK, 0);
	for (int i = 1; i < 200; i++)
		check(c, i, WM_MAD_SEND_FAILED, EIO);
}

static void removal_seen_by_a_send(void **state)
{
	struct ctx *c = *state;

	ask(c);
	fake_umad_send_error(EIO);
	ask(c);
	assert_false(smp_port_work(c->port, c->now));
	check(c, 0, WM_MAD_SEND_FAILED, EIO);
	check(c, 1, WM_MAD_SEND_FAILED, EIO);
}

static void a_refused_send_costs_one_request(void **state)
{
	struct ctx *c = *state;

	fake_umad_send_error(EINVAL);
	ask(c);
	check(c, 0, WM_MAD_SEND_FAILED, EINVAL);
	fake_umad_send_error(0);
	ask(c);
	fake_umad_answer(0);
	assert_true(settle(c));
	check(c, 1, WM_MAD_OK, 0);
}

static void a_bad_request_is_not_sent(void **state)
{
	struct ctx *c = *state;
	struct smp_request r = {
		.origin = FROM_SMP_GETS, .attr = 0x13, .timeout_ms = 10};

	c->asked = 1;
	smp_port_get(c->port, &r, c->now);
	check(c, 0, WM_MAD_SEND_FAILED, EINVAL);
	assert_int_equal(fake_umad_sent(), 0);
}

static void a_receive_that_cannot_go_on(void **state)
{
	static const int errors[] = {EINVAL, ENODEV};
	struct ctx *c = *state;

	for (size_t i = 0; i < ARRAY_LEN(errors); i++) {
		struct pollfd p = {.fd = c->wake_fd, .events = POLLIN};
		int error, id = c->asked;

		ask(c);
		fake_umad_recv_error(errors[i]);
		while (smp_port_work(c->port, c->now))
			assert_int_equal(poll(&p, 1, 5000), 1);
		check(c, id, WM_MAD_SEND_FAILED, errors[i]);
		fake_umad_recv_error(0);
		smp_port_close(c->port);
		c->port = port_open(c, "mlx5_0", 1, &error);
		assert_non_null(c->port);
	}
}

static void empty_reads_for_ever(void **state)
{
	struct pollfd p = {.events = POLLIN};
	struct ctx *c = *state;

	p.fd = c->wake_fd;
	ask(c);
	fake_umad_recv_error(-1);
	while (smp_port_work(c->port, c->now))
		assert_int_equal(poll(&p, 1, 20000), 1);
	check(c, 0, WM_MAD_SEND_FAILED, EAGAIN);
}

static void closing_answers_what_is_left(void **state)
{
	struct ctx *c = *state;

	for (int i = 0; i < 100; i++)
		ask(c);
	c->port = smp_port_close(c->port);
	for (int i = 0; i < 100; i++)
		check(c, i, WM_MAD_SEND_FAILED, ENODEV);
}

static void forgotten_requests_keep_their_place(void **state)
{
	struct ctx *c = *state;

	for (int i = 0; i < 100; i++)
		ask(c);
	smp_port_forget(c->port);
	ask(c); /* of the next main */
	assert_int_equal(fake_umad_sent(), SMP_WINDOW);
	for (int i = 0; i < SMP_WINDOW; i++)
		fake_umad_answer(i);
	assert_true(settle(c));
	assert_int_equal(c->answered, 0);
	assert_int_equal(fake_umad_sent(), SMP_WINDOW + 1);
	fake_umad_answer(SMP_WINDOW);
	assert_true(settle(c));
	assert_int_equal(c->answered, 1);
	check(c, 100, WM_MAD_OK, 0);
}

static void opens_that_fail(void **state)
{
	static const int errors[] = {EPERM, EACCES, ENODEV, ENXIO};
	struct ctx *c = *state;
	int error = 0;

	c->port = smp_port_close(c->port);
	for (size_t i = 0; i < ARRAY_LEN(errors); i++) {
		fake_umad_open_error(errors[i]);
		assert_null(port_open(c, "mlx5_0", 1, &error));
		assert_int_equal(error, errors[i]);
	}
	fake_umad_open_error(0);
	assert_null(port_open(c, "mlx5_0", 0, &error));
	assert_int_equal(error, ENODEV);
	fake_umad_register_error(true);
	assert_null(port_open(c, "rxe0", 1, &error));
	assert_int_equal(error, EPROTONOSUPPORT);
	fake_umad_register_error(false);
}

/* A step of the random fabric: something happens to one of those that wait. */
static void random_step(struct ctx *c, uint64_t r, int *next)
{
	uint8_t mad[512] = {0};
	int i = *next;

	if (i >= fake_umad_sent())
		return;
	(*next)++;
	fake_umad_make_answer(i, mad);
	switch (r % 8) {
	case 0:
		fake_umad_put(mad, 24, ETIMEDOUT, -1);
		break;
	case 1: /* nothing ever comes */
		break;
	case 2:
		fake_umad_answer(i);
		fake_umad_answer(i);
		break;
	case 3:
		mad[r % 256] ^= 0x55;
		fake_umad_put(mad, 256, 0, -1);
		break;
	case 4:
		fake_umad_put(mad, (int)(1 + r % 500), 0, -1);
		break;
	case 5:
		c->now = mono_add(c->now, NSEC_PER_SEC);
		fake_umad_answer(i);
		break;
	default:
		fake_umad_answer(i);
		break;
	}
}

static void random_fabrics_answer_everything_once(void **state)
{
	struct ctx *c = *state;
	uint64_t seed = 7;
	int next = 0;

	for (int step = 0; step < 3000; step++) {
		seed = mix64(seed);
		for (uint64_t k = seed % 4; k > 0; k--)
			ask(c);
		random_step(c, seed >> 8, &next);
		assert_true(smp_port_work(c->port, c->now));
		if (step % 50 == 0)
			assert_true(settle(c));
	}
	/* Nothing comes any more: deadlines end the rest. */
	assert_true(settle(c));
	while (mono_is_set(smp_port_deadline(c->port))) {
		c->now = smp_port_deadline(c->port);
		assert_true(smp_port_work(c->port, c->now));
	}
	assert_int_equal(c->answered, c->asked);
	for (int i = 0; i < c->asked; i++)
		assert_int_equal(c->id[i].times, 1);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
int main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_good_answer),
		T(spoilt_answers),
		T(late_answers_find_nobody),
		T(answers_in_any_order),
		T(window_and_queue_are_bounded),
		T(dead_targets_hold_up_nobody),
		T(removal_answers_everything),
		T(removal_seen_by_a_send),
		T(a_refused_send_costs_one_request),
		T(a_bad_request_is_not_sent),
		T(a_receive_that_cannot_go_on),
		T(empty_reads_for_ever),
		T(closing_answers_what_is_left),
		T(forgotten_requests_keep_their_place),
		T(opens_that_fail),
		T(random_fabrics_answer_everything_once),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
