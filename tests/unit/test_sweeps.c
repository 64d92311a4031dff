/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Carrying a sweep out: daemon/sweeps.c on a port and a MAD worker that the test plays,
 * the rest of main scripted.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "sweeps.h"

static struct {
	struct manager m;
	struct config config;
	struct device device;
	struct port_entry pe;
	struct worker mad;
	struct loop_source *stop;
	int n_asked, lost_at; /* the worker is lost with that request; 0 = never */
	uint64_t tag;
	uint16_t attr;
	int sa_reads, answers, last_answers;
} w;

/* ---- the rest of main ---- */

struct device *device_find(struct manager *m, const char *name)
{
	return m == &w.m && !strcmp(name, w.device.name) ? &w.device : NULL;
}

struct port_entry *device_port(struct device *d, uint8_t num)
{
	return d == &w.device && num == 1 ? &w.pe : NULL;
}

bool config_may_sweep(const struct config *c)
{
	return c->sweep == SWEEP_MODE_SUBNET;
}

int mads_get(struct mads *s, struct worker *worker, const char *device, uint8_t port,
	     const struct mad_smp *smp, mad_done_fn *done, void *user)
{
	(void)s;
	(void)device;
	(void)port;
	(void)done;
	assert_ptr_equal(worker, &w.mad);
	w.tag = smp->tag;
	w.attr = smp->attr;
	if (++w.n_asked == w.lost_at) {
		w.mad.fd = -1;
		sweeps_worker_lost(user, worker);
	}
	return 0;
}

void mads_forget(struct mads *s, void *user)
{
	(void)s;
	(void)user;
}

void sa_read(struct sweeps *s)
{
	(void)s;
	w.sa_reads++;
}

void sa_tick(struct sweeps *s, struct mono now)
{
	(void)s;
	(void)now;
}

void sa_forget(struct sweeps *s)
{
	(void)s;
}

void fabric_queries_end(struct sweeps *s, const char *why)
{
	(void)s;
	(void)why;
}

void fabric_query_dropped(struct sweeps *s, uint64_t ticket)
{
	(void)s;
	(void)ticket;
}

json_t *fabric_json(struct sweeps *s)
{
	(void)s;
	return json_object();
}

static void on_answered(void *server, uint64_t ticket, const char *error, json_t *parameters,
			bool continues)
{
	(void)server;
	assert_int_equal(ticket, 5);
	assert_null(error);
	w.answers++;
	w.last_answers += !continues;
	json_decref(parameters);
}

/* ---- the stage ---- */

static int setup(void **state)
{
	(void)state;
	memset(&w, 0, sizeof(w));
	w.config.sweep = SWEEP_MODE_SUBNET;
	w.config.sweep_window = 64;
	w.config.sweep_interval = 60 * NSEC_PER_SEC;
	w.m.config = &w.config;
	w.m.loop = loop_new();
	w.m.devices = &w.device;
	w.device.m = &w.m;
	w.device.mad = &w.mad;
	w.device.ports = &w.pe;
	(void)str_copy(w.device.name, sizeof(w.device.name), "mlx5_0");
	w.mad.m = &w.m;
	w.mad.saw_hello = true;
	w.pe.device = &w.device;
	w.pe.mad.has_smi = true;
	port_init(&w.pe.p, "mlx5_0", 3, 1, loop_now(w.m.loop));
	(void)port_set_states(&w.pe.p, 4, 5);
	w.m.sweeps = sweeps_new(&w.m);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	sweeps_free(w.m.sweeps);
	port_done(&w.pe.p);
	loop_free(w.m.loop);
	return 0;
}

/* ---- tests ---- */

static void asks_its_own_port_first(void **state)
{
	(void)state;
	sweeps_tick(w.m.sweeps, loop_now(w.m.loop));
	assert_int_equal(w.n_asked, 1);
	assert_int_equal(w.attr, SWEEP_NODE_INFO);
	assert_ptr_equal(w.m.sweeps->worker, &w.mad);
	assert_true(sweep_running(w.m.sweeps->sweep));
}

/* A worker whose queue is full is lost while it is being asked. */
static void a_worker_lost_while_asked(void **state)
{
	const struct api_ticket ticket = {.id = 5, .answer = on_answered};
	struct sweeps *s = w.m.sweeps;

	(void)state;
	w.lost_at = 1;
	sweeps_tick(s, loop_now(w.m.loop));
	assert_int_equal(w.n_asked, 1);
	assert_null(s->worker);
	assert_false(sweep_running(s->sweep));
	/* That was no end of a sweep: it is begun anew, as the same kind. */
	assert_true(s->aborted);
	assert_int_equal(s->last_full.kind, SWEEP_NONE);
	assert_int_equal(w.sa_reads, 0);
	w.mad.fd = 0;
	w.lost_at = 2;
	sweeps_order(s, false, "test", &ticket);
	assert_int_equal(w.n_asked, 2);
	assert_int_equal(s->n_waiters, 1); /* still waits for one that ends */
	assert_int_equal(w.last_answers, 0);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(asks_its_own_port_first),
		TEST(a_worker_lost_while_asked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
