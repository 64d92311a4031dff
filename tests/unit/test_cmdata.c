/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <errno.h>

#include "cmdata.h"

static const struct cmdata_request request = {
	.dst_conn_id = 0x0102030405060708,
	.src_conn_id = 0x1112131415161718,
	.epoch = 0x2122232425262728,
};

static void request_bytes_are_these(void **state)
{
	static const uint8_t want[CMDATA_REQUEST_LEN] = {
		0xfa, 0xbc, 1,	  32,	0,    0,    0,	  0,	1,    2,    3,
		4,    5,    6,	  7,	8,    0x11, 0x12, 0x13, 0x14, 0x15, 0x16,
		0x17, 0x18, 0x21, 0x22, 0x23, 0x24, 0x25, 0x26, 0x27, 0x28,
	};
	uint8_t buf[CMDATA_REQUEST_LEN];

	(void)state;
	cmdata_request_encode(&request, buf);
	assert_memory_equal(buf, want, sizeof(want));
}

/* The wire maxima of RC, UD, and iWARP: padded with zeros to them. */
static void request_survives_padding(void **state)
{
	static const size_t maxima[] = {CMDATA_REQUEST_LEN, 56, 136, 180, 196, 255};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(maxima); i++) {
		uint8_t buf[256] = {0};
		struct cmdata_request r;

		cmdata_request_encode(&request, buf);
		assert_int_equal(cmdata_request_decode(buf, maxima[i], &r), 0);
		assert_memory_equal(&r, &request, sizeof(r));
	}
}

static void bad_requests_are_told_apart(void **state)
{
	uint8_t good[56] = {0}, buf[56];
	struct cmdata_request r;

	(void)state;
	cmdata_request_encode(&request, good);
	memset(buf, 0, sizeof(buf));
	assert_int_equal(cmdata_request_decode(buf, sizeof(buf), &r), -ENOMSG);
	assert_int_equal(cmdata_request_decode(good, 0, &r), -ENOMSG);
	assert_int_equal(cmdata_request_decode(good, 3, &r), -ENOMSG);
	assert_int_equal(cmdata_request_decode(good, 31, &r), -EBADMSG);
	memcpy(buf, good, sizeof(buf));
	buf[2] = 2;
	assert_int_equal(cmdata_request_decode(buf, sizeof(buf), &r), -EPROTONOSUPPORT);
	memcpy(buf, good, sizeof(buf));
	buf[3] = 31; /* says it is shorter than it must be */
	assert_int_equal(cmdata_request_decode(buf, sizeof(buf), &r), -EBADMSG);
	buf[3] = 57; /* longer than what came */
	assert_int_equal(cmdata_request_decode(buf, sizeof(buf), &r), -EBADMSG);
	buf[3] = 40; /* a later release adds to the end */
	assert_int_equal(cmdata_request_decode(buf, sizeof(buf), &r), 0);
}

static void rejects_keep_their_code(void **state)
{
	uint8_t buf[148];

	(void)state;
	for (int c = CMREJ_NONE; c < CMREJ__MAX; c++) {
		memset(buf, 0, sizeof(buf));
		cmdata_reject_encode((enum cmdata_code)c, buf);
		assert_int_equal(cmdata_reject_decode(buf, sizeof(buf)), c);
		assert_int_equal(cmdata_reject_decode(buf, CMDATA_REJECT_LEN), c);
		assert_int_equal(cmdata_reject_decode(buf, CMDATA_REJECT_LEN - 1),
				 CMREJ_NONE);
		assert_string_not_equal(enum_name(&cmdata_code_names, c), "unknown");
	}
	buf[4] = CMREJ__MAX;
	assert_int_equal(cmdata_reject_decode(buf, sizeof(buf)), CMREJ_NONE);
	memset(buf, 0xff, sizeof(buf)); /* another program's */
	assert_int_equal(cmdata_reject_decode(buf, sizeof(buf)), CMREJ_NONE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(request_bytes_are_these),
		cmocka_unit_test(request_survives_padding),
		cmocka_unit_test(bad_requests_are_told_apart),
		cmocka_unit_test(rejects_keep_their_code),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
