/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>

#include "auth.h"

#define HEX32 "000102030405060708090a0b0c0d0e0f"

static struct auth_keys parse_ok(const char *text)
{
	struct auth_keys k;
	char err[96] = "";

	assert_int_equal(auth_keys_parse(text, strlen(text), &k, err, sizeof(err)), 0);
	return k;
}

static void assert_hex(const uint8_t *p, size_t n, const char *want)
{
	char got[200] = "";

	for (size_t i = 0; i < n; i++)
		str_append(got, sizeof(got), "%02x", p[i]);
	assert_string_equal(got, want);
}

static void key_files_in_both_notations(void **state)
{
	struct auth_keys k = parse_ok("# keys of rack 7\n\n  " HEX32 "  # new\r\n"
				      "base64:AAECAwQFBgcICQoLDA0OEA==\n"
				      "AABBCCDDEEFF00112233445566778899AABBCCDDEEFF");

	(void)state;
	assert_int_equal(k.n, 3);
	assert_int_equal(k.key[0].len, 16);
	assert_int_equal(k.key[1].len, 16);
	assert_int_equal(k.key[2].len, 22);
	assert_hex(k.key[0].secret, 16, HEX32);
	assert_hex(k.key[1].secret, 16, "000102030405060708090a0b0c0d0e10");
	assert_true(k.key[0].id != k.key[1].id);
}

static void bad_key_files_say_where(void **state)
{
	static const struct {
		const char *text, *err;
	} bad[] = {
		{"", "there is no key in it"},
		{"# only a comment\n", "there is no key in it"},
		{HEX32 "\n0011", "line 2: a key has at least 16 bytes (32 hexadecimal digits)"},
		{"\n\nsecret of mine",
		 "line 3: neither hexadecimal digits nor base64:... of at most 64 bytes"},
		{HEX32 "0", "line 1: neither hexadecimal digits nor base64:... of at most 64 "
			    "bytes"},
		{"base64:====", "line 1: neither hexadecimal digits nor base64:... of at most "
				"64 bytes"},
		{HEX32 "\n" HEX32, "line 2: the same key as before"},
		{HEX32 HEX32 HEX32 HEX32 "00", "line 1: a key has at most 128 hexadecimal digits"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct auth_keys k = {.n = 77};
		char err[96] = "";

		assert_int_equal(auth_keys_parse(bad[i].text, strlen(bad[i].text), &k, err,
						 sizeof(err)),
				 -EINVAL);
		assert_string_equal(err, bad[i].err);
		assert_int_equal(k.n, 77);
	}
}

static void no_more_keys_than_there_is_room(void **state)
{
	char text[40 * (AUTH_KEYS_MAX + 1)] = "", err[64];
	struct auth_keys k;

	(void)state;
	for (int i = 0; i < AUTH_KEYS_MAX; i++)
		str_append(text, sizeof(text), "%032x\n", i);
	k = parse_ok(text);
	assert_int_equal(k.n, AUTH_KEYS_MAX);
	str_append(text, sizeof(text), "%032x\n", AUTH_KEYS_MAX);
	assert_int_equal(auth_keys_parse(text, strlen(text), &k, err, sizeof(err)), -EINVAL);
	assert_string_equal(err, "line 17: more than 16 keys");
}

/* The length given counts, not a NUL. */
static void text_need_not_end_in_nul(void **state)
{
	struct auth_keys k;
	char err[64];

	(void)state;
	assert_int_equal(auth_keys_parse(HEX32 "00zz", 34, &k, err, sizeof(err)), 0);
	assert_int_equal(k.key[0].len, 17);
	assert_int_equal(auth_keys_parse(HEX32 "\0" HEX32, 65, &k, err, sizeof(err)), -EINVAL);
}

static void keys_are_told_apart_by_their_secret(void **state)
{
	struct auth_keys a = parse_ok(HEX32), b = parse_ok("# x\n" HEX32 "\n");
	struct auth_keys c = parse_ok(HEX32 "00"), d = parse_ok(HEX32 "00\n" HEX32);

	(void)state;
	assert_true(auth_keys_have(&b, &a.key[0]));
	assert_false(auth_keys_have(&c, &a.key[0]));
	assert_true(auth_keys_have(&d, &a.key[0]));
	assert_true(auth_keys_have(&d, &c.key[0]));
}

static void every_key_verifies_and_context_counts(void **state)
{
	struct auth_keys two = parse_ok(HEX32 "\n" HEX32 "00");
	struct auth_keys one = parse_ok(HEX32);
	uint8_t tag[AUTH_TAG_LEN];

	(void)state;
	auth_tag(&two.key[1], "control", "abc", 3, tag);
	assert_ptr_equal(auth_verify(&two, two.key[1].id, "control", "abc", 3, tag),
			 &two.key[1]);
	assert_null(auth_verify(&two, two.key[0].id, "control", "abc", 3, tag));
	assert_null(auth_verify(&one, two.key[1].id, "control", "abc", 3, tag));
	assert_null(auth_verify(&two, two.key[1].id, "contro", "labc", 4, tag));
	assert_null(auth_verify(&two, two.key[1].id, "control", "abd", 3, tag));
	for (unsigned bit = 0; bit < 8 * AUTH_TAG_LEN; bit++) {
		tag[bit / 8] ^= (uint8_t)(1U << (bit % 8));
		assert_null(auth_verify(&two, two.key[1].id, "control", "abc", 3, tag));
		tag[bit / 8] ^= (uint8_t)(1U << (bit % 8));
	}
}

static void session_keys_differ(void **state)
{
	struct auth_keys k = parse_ok(HEX32);
	uint8_t a[EP_KEY_LEN], b[EP_KEY_LEN];

	(void)state;
	auth_session_key(&k.key[0], 1, 2, 3, a);
	auth_session_key(&k.key[0], 1, 2, 3, b);
	assert_memory_equal(a, b, sizeof(a));
	auth_session_key(&k.key[0], 2, 1, 3, b);
	assert_memory_not_equal(a, b, sizeof(a));
	auth_session_key(&k.key[0], 1, 2, 4, b);
	assert_memory_not_equal(a, b, sizeof(a));
}

static void cookies_bind_address_id_and_time(void **state)
{
	const uint8_t secret[32] = {1, 2, 3}, other_secret[32] = {1, 2, 4};
	struct addr from = {.family = 4, .port = 5000, .ip = {10, 0, 0, 1}}, a;
	uint8_t c[32];

	(void)state;
	auth_cookie(secret, &from, 42, 100, c);
	assert_true(auth_cookie_ok(secret, &from, 42, 100, c));
	assert_true(auth_cookie_ok(secret, &from, 42, 101, c));
	assert_false(auth_cookie_ok(secret, &from, 42, 102, c));
	assert_false(auth_cookie_ok(secret, &from, 42, 99, c));
	assert_false(auth_cookie_ok(secret, &from, 43, 100, c));
	assert_false(auth_cookie_ok(other_secret, &from, 42, 100, c));
	a = from;
	a.port = 5001;
	assert_false(auth_cookie_ok(secret, &a, 42, 100, c));
	a = from;
	a.ip[3] = 2;
	assert_false(auth_cookie_ok(secret, &a, 42, 100, c));
	a = from;
	a.family = 6;
	assert_false(auth_cookie_ok(secret, &a, 42, 100, c));
	a = from;
	a.ip[8] = 9; /* beyond an IPv4 address: does not count */
	assert_true(auth_cookie_ok(secret, &a, 42, 100, c));
}

/* Two releases must agree on these bytes: a change is a change of the wire format. */
static void known_answers(void **state)
{
	struct auth_keys k = parse_ok(HEX32);
	const uint8_t secret[32] = {7};
	struct addr from = {.family = 6, .port = 18777, .zone = 3, .ip = {0xfe, 0x80, [15] = 1}};
	uint8_t tag[AUTH_TAG_LEN], key[EP_KEY_LEN], cookie[32];

	(void)state;
	auth_tag(&k.key[0], "control", "abc", 3, tag);
	auth_session_key(&k.key[0], 0x0102030405060708, 0x1112131415161718,
			 0x2122232425262728, key);
	auth_cookie(secret, &from, 0x0102030405060708, 58000000, cookie);
	assert_hex((uint8_t[4]){(uint8_t)(k.key[0].id >> 24), (uint8_t)(k.key[0].id >> 16),
				(uint8_t)(k.key[0].id >> 8), (uint8_t)k.key[0].id},
		   4, "c7cb5d1a");
	assert_hex(tag, sizeof(tag), "3ffe45bb743b4d482fa2ad576a6371ae");
	assert_hex(key, sizeof(key), "1d74a7b505c10d50660a02c460a529c72a454b2d58bda90de1b8d42822ba5a89");
	assert_hex(cookie, sizeof(cookie), "1d874eaefa2e743c7935715d710d884622ed26ec102297ba10d0a5212bffa86f");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(key_files_in_both_notations),
		cmocka_unit_test(bad_key_files_say_where),
		cmocka_unit_test(no_more_keys_than_there_is_room),
		cmocka_unit_test(text_need_not_end_in_nul),
		cmocka_unit_test(keys_are_told_apart_by_their_secret),
		cmocka_unit_test(every_key_verifies_and_context_counts),
		cmocka_unit_test(session_keys_differ),
		cmocka_unit_test(cookies_bind_address_id_and_time),
		cmocka_unit_test(known_answers),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
