/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "replay.h"

static void takes_each_number_once(void **state)
{
	struct replay r = {0};

	(void)state;
	assert_false(replay_accept(&r, 0));
	assert_true(replay_accept(&r, 1));
	assert_false(replay_accept(&r, 1));
	assert_true(replay_accept(&r, 64));
	assert_true(replay_accept(&r, 2));
	assert_false(replay_accept(&r, 2));
	assert_false(replay_accept(&r, 1)); /* seen, and still in the window */
}

static void what_is_64_behind_is_old(void **state)
{
	struct replay r = {0};

	(void)state;
	assert_true(replay_accept(&r, 100));
	assert_true(replay_accept(&r, 37));
	assert_false(replay_accept(&r, 36));
	r = (struct replay){0};
	assert_true(replay_accept(&r, UINT64_MAX));
	assert_false(replay_accept(&r, 101));
	assert_true(replay_accept(&r, UINT64_MAX - 63));
	assert_false(replay_accept(&r, UINT64_MAX));
}

/* A forged number from far ahead must not lock out the sender. */
static void no_jump_too_far(void **state)
{
	struct replay r = {0};

	(void)state;
	assert_true(replay_accept(&r, 5000000));
	assert_false(replay_accept(&r, UINT64_MAX));
	assert_false(replay_accept(&r, 5000001 + REPLAY_JUMP_MAX));
	assert_true(replay_accept(&r, 5000001));
	assert_true(replay_accept(&r, 5000001 + REPLAY_JUMP_MAX));
}

/* Against a plain set, over a random walk. */
static void equals_a_plain_set(void **state)
{
	static bool seen[100000];
	struct replay r = {0};
	uint64_t top = 0, rnd = 1;

	(void)state;
	for (int i = 0; i < 50000; i++) {
		uint64_t seq, back;
		bool want;

		rnd = mix64(rnd);
		back = (rnd >> 8) % 80;
		seq = rnd % 3 ? (top > back ? top - back : 0)
			      : top + 1 + (rnd >> 20) % 4;
		want = seq && !seen[seq] && seq + 64 > top;
		assert_int_equal(replay_accept(&r, seq), want);
		if (want)
			seen[seq] = true;
		if (want && seq > top)
			top = seq;
	}
	assert_true(top > 10000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(takes_each_number_once),
		cmocka_unit_test(what_is_64_behind_is_old),
		cmocka_unit_test(no_jump_too_far),
		cmocka_unit_test(equals_a_plain_set),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
