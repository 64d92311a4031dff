/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "fabric.h"

static const uint8_t KEY[EP_KEY_LEN] = {0,  1,	2,  3,	4,  5,	6,  7,	8,  9,	10,
					11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21,
					22, 23, 24, 25, 26, 27, 28, 29, 30, 31};

static int drop(enum drop d)
{
	return -(1 + (int)d);
}

static struct fabric_msg sample(void)
{
	return (struct fabric_msg){.type = FABRIC_PROBE,
				   .length = FABRIC_LEN,
				   .conn_id = 0x0102030405060708,
				   .epoch = 0x1112131415161718,
				   .seq = 5,
				   .t1 = 1000,
				   .t2 = 2000,
				   .t3 = 3000};
}

static void assert_same(const struct fabric_msg *a, const struct fabric_msg *b)
{
	assert_int_equal(a->type, b->type);
	assert_int_equal(a->length, b->length);
	assert_true(a->conn_id == b->conn_id && a->epoch == b->epoch && a->seq == b->seq);
	assert_true(a->t1 == b->t1 && a->t2 == b->t2 && a->t3 == b->t3);
}

static uint64_t rnd(void)
{
	static uint64_t r = 1;

	return r = mix64(r);
}

static void random_messages_come_back(void **state)
{
	(void)state;
	for (int i = 0; i < 20000; i++) {
		static uint8_t buf[FABRIC_MESSAGE_MAX];
		const uint8_t *key = i % 2 ? KEY : NULL;
		struct fabric_msg got, m = {
			.type = (uint8_t)(1 + i % 6),
			.length = (uint32_t)(FABRIC_LEN + rnd() %
					     (FABRIC_MESSAGE_MAX - FABRIC_LEN + 1)),
			.conn_id = rnd() | 1,
			.epoch = rnd(),
			.seq = rnd() | 1,
			.t1 = (int64_t)(rnd() >> 1),
			.t2 = (int64_t)(rnd() >> 1),
			.t3 = (int64_t)(rnd() >> 1),
		};

		fabric_encode(&m, key, buf);
		assert_int_equal(fabric_decode(buf, m.length, &got), 0);
		assert_same(&m, &got);
		assert_true(fabric_verify(buf, key));
	}
}

static void lengths_are_checked(void **state)
{
	static uint8_t buf[FABRIC_MESSAGE_MAX + 1];
	struct fabric_msg m = sample(), got;

	(void)state;
	m.length = 100;
	fabric_encode(&m, NULL, buf);
	for (size_t n = 0; n < 100; n++)
		assert_int_equal(fabric_decode(buf, n, &got), drop(DROP_SHORT));
	assert_int_equal(fabric_decode(buf, 100, &got), 0);
	assert_int_equal(fabric_decode(buf, 101, &got), drop(DROP_MALFORMED));
	m.length = FABRIC_MESSAGE_MAX;
	fabric_encode(&m, NULL, buf);
	assert_int_equal(fabric_decode(buf, FABRIC_MESSAGE_MAX, &got), 0);
	assert_int_equal(fabric_decode(buf, FABRIC_MESSAGE_MAX + 1, &got),
			 drop(DROP_OVERSIZED));
	m.length = FABRIC_LEN - 1;
	fabric_encode(&m, NULL, buf);
	assert_int_equal(fabric_decode(buf, FABRIC_LEN, &got), drop(DROP_MALFORMED));
}

static int decode_changed(const struct fabric_msg *m, size_t at, uint8_t value)
{
	uint8_t buf[FABRIC_LEN];
	struct fabric_msg got;

	fabric_encode(m, NULL, buf);
	buf[at] = value;
	return fabric_decode(buf, sizeof(buf), &got);
}

static void values_are_checked(void **state)
{
	struct fabric_msg m = sample();

	(void)state;
	assert_int_equal(decode_changed(&m, 0, 0xfb), drop(DROP_MAGIC));
	assert_int_equal(decode_changed(&m, 1, 0), drop(DROP_MAGIC));
	assert_int_equal(decode_changed(&m, 2, 2), drop(DROP_VERSION));
	assert_int_equal(decode_changed(&m, 3, 0), drop(DROP_MALFORMED));
	assert_int_equal(decode_changed(&m, 3, 7), drop(DROP_MALFORMED));
	assert_int_equal(decode_changed(&m, 32, 0x80), drop(DROP_MALFORMED)); /* t1 < 0 */
	assert_int_equal(decode_changed(&m, 40, 0x80), drop(DROP_MALFORMED));
	assert_int_equal(decode_changed(&m, 48, 0x80), drop(DROP_MALFORMED));
	m.seq = 0;
	assert_int_equal(decode_changed(&m, 63, 0), drop(DROP_MALFORMED));
	m = sample();
	m.conn_id = 0;
	assert_int_equal(decode_changed(&m, 63, 0), drop(DROP_MALFORMED));
}

static void a_tag_covers_every_bit(void **state)
{
	struct fabric_msg m = sample();
	uint8_t buf[FABRIC_LEN], other[EP_KEY_LEN];

	(void)state;
	fabric_encode(&m, KEY, buf);
	for (unsigned bit = 0; bit < 8 * FABRIC_LEN; bit++) {
		buf[bit / 8] ^= (uint8_t)(1U << (bit % 8));
		assert_false(fabric_verify(buf, KEY));
		assert_true(fabric_verify(buf, NULL));
		buf[bit / 8] ^= (uint8_t)(1U << (bit % 8));
	}
	memcpy(other, KEY, sizeof(other));
	other[31] ^= 1;
	assert_false(fabric_verify(buf, other));
	fabric_encode(&m, NULL, buf);
	assert_false(fabric_verify(buf, KEY));
}

/* Two releases must agree on these bytes: a change is a change of the wire format. The
 * tags were computed with another implementation of BLAKE2b. */
static void known_answers(void **state)
{
	static const struct {
		uint32_t length;
		const char *hex;
	} want[] = {
		{64, "fabd010100000040010203040506070811121314151617180000000000000005"
		     "00000000000003e800000000000007d00000000000000bb8b9378a4cd26cf12b"},
		{1472, "fabd0102000005c0010203040506070811121314151617180000000000000005"
		     "00000000000003e800000000000007d00000000000000bb83d284b5baec4295f"},
		{64, "fabd010300000040010203040506070811121314151617180000000000000005"
		     "00000000000003e800000000000007d00000000000000bb8e9c02fd5e2b1a6ba"},
		{64, "fabd010400000040010203040506070811121314151617180000000000000005"
		     "00000000000003e800000000000007d00000000000000bb804063c926945dd72"},
		{64, "fabd010500000040010203040506070811121314151617180000000000000005"
		     "00000000000003e800000000000007d00000000000000bb8f0baa2858b332524"},
		{64, "fabd010600000040010203040506070811121314151617180000000000000005"
		     "00000000000003e800000000000007d00000000000000bb829f2bc0b48746968"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(want); i++) {
		struct fabric_msg m = sample();
		uint8_t buf[FABRIC_LEN];
		char got[2 * FABRIC_LEN + 1] = "";

		m.type = (uint8_t)(i + 1);
		m.length = want[i].length;
		fabric_encode(&m, KEY, buf);
		for (size_t n = 0; n < sizeof(buf); n++)
			str_append(got, sizeof(got), "%02x", buf[n]);
		assert_string_equal(got, want[i].hex);
	}
}

static void who_sends_what(void **state)
{
	static const struct {
		uint8_t request, echo;
	} pairs[] = {
		{FABRIC_PROBE, FABRIC_PROBE_ECHO},
		{FABRIC_HEARTBEAT, FABRIC_HEARTBEAT_ECHO},
		{FABRIC_PING, FABRIC_PING_ECHO},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(pairs); i++) {
		assert_true(fabric_is_request(pairs[i].request));
		assert_false(fabric_is_request(pairs[i].echo));
		assert_int_equal(fabric_echo_type(pairs[i].request), pairs[i].echo);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_messages_come_back),
		cmocka_unit_test(lengths_are_checked),
		cmocka_unit_test(values_are_checked),
		cmocka_unit_test(a_tag_covers_every_bit),
		cmocka_unit_test(known_answers),
		cmocka_unit_test(who_sends_what),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
