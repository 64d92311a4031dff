/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#include "probe_fsm.h"

#define DOC SOURCE_ROOT "/docs/probe-fsm.md"

static void one_plain_row_per_state_and_event(void **state)
{
	char why[160] = "";

	(void)state;
	if (probe_fsm_selftest(why, sizeof(why)) < 0)
		fail_msg("%s", why);
}

static int n_rows(void)
{
	char buf[512];
	int n = 0;

	while (probe_fsm_row_text(n, buf, sizeof(buf)))
		n++;
	return n;
}

static struct probe_facts facts_of(unsigned bits)
{
	return (struct probe_facts){
		.role = bits & 1 ? ROLE_RX : ROLE_TX,
		.probes_done = bits & 2,
		.peer_connected = bits & 4,
		.retries_left = bits & 8,
		.version_taken = bits & 16,
		.version_acked = bits & 32,
		.reset_pending = bits & 64,
		.same_epoch = bits & 128,
		.cookie_news = bits & 256,
		.tell_peer = bits & 512,
		.ep_busy = bits & 1024,
		.cmd_out = bits & 2048,
	};
}

typedef void step_fn(enum conn_state s, enum probe_event e, const struct probe_facts *f,
		     const struct probe_step *step);

static void for_all(step_fn *fn)
{
	for (int s = 0; s < CONN__MAX; s++)
		for (int e = 0; e < PE__MAX; e++)
			for (unsigned bits = 0; bits < 4096; bits++) {
				struct probe_facts f = facts_of(bits);
				struct probe_step step = probe_fsm_step(
					(enum conn_state)s, (enum probe_event)e, &f);

				fn((enum conn_state)s, (enum probe_event)e, &f, &step);
			}
}

static bool used[256];
static bool reached[CONN__MAX];
static bool acted[PA__MAX];

static void note_use(enum conn_state s, enum probe_event e, const struct probe_facts *f,
		     const struct probe_step *step)
{
	(void)e;
	(void)f;
	assert_in_range(step->row, 0, ARRAY_LEN(used) - 1);
	used[step->row] = true;
	if (step->next != s)
		reached[step->next] = true;
	for (int i = 0; i < PROBE_ACTIONS_MAX; i++)
		acted[step->actions[i]] = true;
}

static void every_row_state_and_action_is_used(void **state)
{
	(void)state;
	for_all(note_use);
	for (int i = 0; i < n_rows(); i++)
		if (!used[i])
			fail_msg("row %d never matches", i);
	for (int i = CONN_SEND_RESET; i < CONN__MAX; i++)
		if (!reached[i])
			fail_msg("%s is never entered",
				 enum_name(&conn_state_names, i));
	for (int i = 0; i < PA__MAX; i++)
		if (!acted[i])
			fail_msg("%s is never done", enum_name(&probe_action_names, i));
}

static bool has(const struct probe_step *step, enum probe_action a)
{
	for (int i = 0; i < PROBE_ACTIONS_MAX; i++)
		if (step->actions[i] == a)
			return true;
	return false;
}

static bool is_up(enum conn_state s)
{
	return s == CONN_CONNECTED || s == CONN_CONNECTED_PING;
}

static bool has_endpoint(enum conn_state s)
{
	return s >= CONN_WAIT_FOR_START && s <= CONN_CONNECTED_PING;
}

static void check_step(enum conn_state s, enum probe_event e,
		       const struct probe_facts *f, const struct probe_step *step)
{
	enum conn_state n = step->next;

	/* connected is told of on every way in and out */
	if (!is_up(s) && is_up(n))
		assert_true(has(step, PA_UP) && has(step, PA_EP_HEARTBEAT));
	else
		assert_false(has(step, PA_UP));
	if (is_up(s) && !is_up(n))
		assert_true(has(step, PA_DOWN));
	/* an endpoint is begun on the one way in, torn down on every way out */
	if (!has_endpoint(s) && has_endpoint(n))
		assert_true(n == CONN_WAIT_FOR_START && has(step, PA_EP_START));
	else
		assert_false(has(step, PA_EP_START));
	if (has_endpoint(s) && !has_endpoint(n))
		assert_true(has(step, PA_EP_RESET));
	/* nothing leads out of destroy, and nothing but the port and time hurries */
	if (s == CONN_DESTROY)
		assert_int_equal(n, CONN_DESTROY);
	else
		assert_false(has(step, PA_GONE));
	/* a command of an old or repeated kind changes nothing */
	if (e == PE_RESET && (f->role == ROLE_TX || f->same_epoch))
		assert_int_equal(n, s);
	if (has(step, PA_COUNT_IGNORED)) {
		assert_int_equal(n, s);
		assert_int_equal(step->actions[1], PA_NONE);
	}
}

static void steps_keep_the_rules(void **state)
{
	(void)state;
	for_all(check_step);
}

static char *render(void)
{
	size_t size = 65536;
	char *doc = xcalloc(1, size), row[512];

	str_append(doc, size,
		   "<!-- SPDX-License-Identifier: BSD-2-Clause -->\n"
		   "# The state machine of a connection\n\n"
		   "Made from the table in `lib/probe_fsm.c` by `test_probe_fsm`"
		   " (`FABD_UPDATE=1` writes it anew).\n"
		   "The first row that matches wins. `-` as next state: it stays.\n\n"
		   "| row | in states | event | only if | next | actions |\n"
		   "|---|---|---|---|---|---|\n");
	for (int i = 0; probe_fsm_row_text(i, row, sizeof(row)); i++)
		str_append(doc, size, "%s\n", row);
	return doc;
}

static void the_document_is_the_table(void **state)
{
	char *want = render(), *got = xcalloc(1, 65536);
	FILE *f = fopen(DOC, getenv("FABD_UPDATE") ? "w+" : "r");

	(void)state;
	assert_non_null(f);
	if (getenv("FABD_UPDATE")) {
		assert_true(fputs(want, f) >= 0);
		rewind(f);
	}
	assert_true(fread(got, 1, 65535, f) > 0);
	assert_int_equal(fclose(f), 0);
	assert_string_equal(got, want);
	assert_null(strstr(want, "| ? |")); /* a guard without a name */
	free(want);
	free(got);
}

static void names_are_complete(void **state)
{
	(void)state;
	for (int i = 0; i < PE__MAX; i++)
		assert_non_null(probe_event_names.names[i]);
	for (int i = 0; i < PA__MAX; i++)
		assert_non_null(probe_action_names.names[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_plain_row_per_state_and_event),
		cmocka_unit_test(every_row_state_and_action_is_used),
		cmocka_unit_test(steps_keep_the_rules),
		cmocka_unit_test(names_are_complete),
		cmocka_unit_test(the_document_is_the_table),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
