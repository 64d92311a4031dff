/* SPDX-License-Identifier: BSD-2-Clause */
/* What ports used to have, over restarts: daemon/baselines.c with a state directory that
 * is one text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "manager.h"

static struct {
	struct manager m;
	struct config config;
	struct device device;
	struct port_entry pe;
	char *saved; /* owned */
	int saves;
} w;

char *state_load(const struct manager *m, enum state_file file, size_t *ret_len)
{
	assert_ptr_equal(m, &w.m);
	assert_int_equal(file, STATE_BASELINES);
	if (!w.saved)
		return NULL;
	*ret_len = strlen(w.saved);
	return xstrdup(w.saved);
}

void state_save(struct manager *m, enum state_file file, const char *text)
{
	assert_ptr_equal(m, &w.m);
	assert_int_equal(file, STATE_BASELINES);
	free(w.saved);
	w.saved = xstrdup(text);
	w.saves++;
}

/* ---- the stage ---- */

/* fabd begins, with the port DEVICE/1. */
static void begin(const char *device)
{
	memset(&w.pe, 0, sizeof(w.pe));
	w.m.config = &w.config;
	w.m.devices = &w.device;
	w.device.m = &w.m;
	w.device.ports = &w.pe;
	w.pe.device = &w.device;
	(void)str_copy(w.device.name, sizeof(w.device.name), device);
	baselines_load(&w.m);
	port_init(&w.pe.p, device, 1, 1, (struct mono){1});
	baseline_apply(&w.m, &w.pe);
}

static void end(void)
{
	port_done(&w.pe.p);
	baselines_free(&w.m);
}

static void learn(uint8_t lanes, uint32_t mbps)
{
	w.pe.p.watch.baseline = (struct port_baseline){.lanes = lanes,
						       .speed_mbps = mbps,
						       .remote_guid = UINT64_C(0xfedcba9876543210),
						       .remote_port = 22};
	w.pe.p.watch.baseline_changed = true;
	baselines_tick(&w.m);
	assert_false(w.pe.p.watch.baseline_changed);
}

static int forget(void **state)
{
	(void)state;
	free(w.saved);
	memset(&w, 0, sizeof(w));
	return 0;
}

/* ---- tests ---- */

static void kept_over_a_restart(void **state)
{
	const struct port_baseline *b = &w.pe.p.watch.baseline;

	(void)state;
	begin("mlx5_0");
	assert_int_equal(b->lanes, 0);
	baselines_tick(&w.m);
	assert_int_equal(w.saves, 0);
	learn(4, 100000);
	baselines_tick(&w.m);
	assert_int_equal(w.saves, 1);
	end();
	begin("mlx5_0");
	assert_int_equal(b->lanes, 4);
	assert_int_equal(b->speed_mbps, 100000);
	assert_true(b->remote_guid == UINT64_C(0xfedcba9876543210));
	assert_int_equal(b->remote_port, 22);
	assert_true(w.pe.p.ever_active);
	/* Forgotten on the operator's word, for good. */
	baseline_forget(&w.pe);
	baselines_tick(&w.m);
	end();
	begin("mlx5_0");
	assert_int_equal(b->lanes, 0);
	assert_false(w.pe.p.ever_active);
	end();
}

static void of_ports_that_are_away(void **state)
{
	(void)state;
	begin("mlx5_0");
	learn(4, 100000);
	end();
	begin("mlx5_1");
	assert_int_equal(w.pe.p.watch.baseline.lanes, 0);
	learn(2, 50000);
	end();
	begin("mlx5_0");
	assert_int_equal(w.pe.p.watch.baseline.lanes, 4);
	end();
}

static void a_renamed_device_takes_it_along(void **state)
{
	(void)state;
	begin("mlx5_1");
	learn(4, 100000);
	(void)str_copy(w.device.name, sizeof(w.device.name), "ib_left");
	(void)str_copy(w.pe.p.device, sizeof(w.pe.p.device), "ib_left");
	baselines_renamed(&w.device, "mlx5_1");
	baselines_tick(&w.m);
	end();
	begin("ib_left");
	assert_int_equal(w.pe.p.watch.baseline.lanes, 4);
	end();
	/* Whoever gets the name next begins anew. */
	begin("mlx5_1");
	assert_int_equal(w.pe.p.watch.baseline.lanes, 0);
	end();
	begin("mlx5_10");
	assert_int_equal(w.pe.p.watch.baseline.lanes, 0);
	end();
}

static void nonsense_is_left_out(void **state)
{
	static const char *const texts[] = {
		"", "{}", "[", "[7, {}, {\"port\": 1}]",
		"[{\"port\": \"mlx5_0/1\", \"lanes\": 99, \"lane_mbps\": 1,"
		" \"remote_guid\": \"0x1\", \"remote_port\": 1}]",
		"[{\"port\": \"mlx5_0/1\", \"lanes\": 4, \"lane_mbps\": -1,"
		" \"remote_guid\": \"0x1\", \"remote_port\": 1}]",
		"[{\"port\": \"mlx5_0/1\", \"lanes\": 4, \"lane_mbps\": 1,"
		" \"remote_guid\": \"0x1\", \"remote_port\": 256}]"};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		free(w.saved);
		w.saved = xstrdup(texts[i]);
		begin("mlx5_0");
		assert_int_equal(w.pe.p.watch.baseline.lanes, 0);
		end();
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(kept_over_a_restart, forget),
		cmocka_unit_test_teardown(of_ports_that_are_away, forget),
		cmocka_unit_test_teardown(a_renamed_device_takes_it_along, forget),
		cmocka_unit_test_teardown(nonsense_is_left_out, forget),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
