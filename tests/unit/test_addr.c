/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>

#include "addr.h"

static struct addr a_of(const char *text)
{
	struct addr a;
	char zone[16];

	assert_int_equal(addr_parse(text, &a, zone), 0);
	return a;
}

static void parses_and_formats(void **state)
{
	static const struct {
		const char *in, *out, *with_port;
	} t[] = {
		{"10.0.0.1", "10.0.0.1", "10.0.0.1:5"},
		{"fd00:0::0001", "fd00::1", "[fd00::1]:5"},
		{"fe80::1%7", "fe80::1%7", "[fe80::1%7]:5"},
		{"::ffff:10.1.2.3", "10.1.2.3", "10.1.2.3:5"},
	};
	char b[ADDR_TEXT_MAX];

	(void)state;
	for (unsigned i = 0; i < ARRAY_LEN(t); i++) {
		struct addr a = a_of(t[i].in);

		assert_string_equal(addr_format(&a, b), t[i].out);
		a.port = 5;
		assert_string_equal(addr_format_port(&a, b), t[i].with_port);
	}
	assert_string_equal(addr_format(&(struct addr){0}, b), "-");
}

static void refuses_what_is_no_address(void **state)
{
	static const char *const bad[] = {
		"",
		"10.0.0",
		"10.0.0.256",
		"host",
		"fd00::1%ib0",
		"10.0.0.1%ib0",
		"fe80::1%",
		"fe80::1%0",
		"fe80::1%99999999999",
		"fe80::1%a/b",
		"fe80::1%sixteen-letters-",
		"1.2.3.4:5",
		" 1.2.3.4",
		"0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0000"};
	struct addr a = {.family = 9};
	char zone[16];

	(void)state;
	for (unsigned i = 0; i < ARRAY_LEN(bad); i++)
		assert_int_equal(addr_parse(bad[i], &a, zone), -EINVAL);
	assert_int_equal(addr_parse("fe80::1%ib0", &a, NULL), -EINVAL);
	assert_int_equal(a.family, 9); /* untouched on failure */
	assert_int_equal(addr_parse("fe80::1%ib0", &a, zone), 0);
	assert_string_equal(zone, "ib0");
}

static void sockaddrs_both_ways(void **state)
{
	static const char *const t[] = {"10.0.0.1", "fd00::2", "fe80::3%4"};
	struct sockaddr_storage ss;
	struct sockaddr_in6 mapped = {.sin6_family = AF_INET6, .sin6_port = htons(9)};
	struct addr a, b;
	socklen_t len;

	(void)state;
	for (unsigned i = 0; i < ARRAY_LEN(t); i++) {
		a = a_of(t[i]);
		a.port = 18777;
		len = addr_to_sockaddr(&a, &ss);
		assert_int_equal(addr_from_sockaddr((void *)&ss, len, &b), 0);
		assert_memory_equal(&a, &b, sizeof(a));
		assert_int_equal(addr_from_sockaddr((void *)&ss, len - 1, &b), -EINVAL);
	}
	inet_pton(AF_INET6, "::ffff:1.2.3.4", &mapped.sin6_addr);
	assert_int_equal(addr_from_sockaddr((void *)&mapped, sizeof(mapped), &b), 0);
	a = a_of("1.2.3.4");
	assert_true(addr_same_ip(&a, &b));
	assert_false(addr_equal(&a, &b)); /* port */
	ss.ss_family = AF_UNIX;
	assert_int_equal(addr_from_sockaddr((void *)&ss, sizeof(ss), &b),
			 -EAFNOSUPPORT);
	assert_int_equal(addr_from_sockaddr((void *)&ss, 1, &b), -EINVAL);
	assert_int_equal(addr_to_sockaddr(&(struct addr){0}, &ss), 0);
}

static void zones_match_loosely(void **state)
{
	struct addr a = a_of("fe80::1%3"), b = a_of("fe80::1%4"), any = a_of("fe80::1");

	(void)state;
	assert_false(addr_same_ip(&a, &b));
	assert_true(addr_same_ip(&a, &any));
	assert_true(addr_hash(&a) == addr_hash(&any));
	b = a_of("fe80::2");
	assert_true(addr_hash(&b) != addr_hash(&any));
}

static void knows_special_ones(void **state)
{
	struct addr a = a_of("127.1.2.3"), b = a_of("::1"), c = a_of("febf::1"),
		    d = a_of("fec0::1");

	(void)state;
	assert_true(addr_is_loopback(&a) && addr_is_loopback(&b));
	assert_false(addr_is_loopback(&c));
	assert_true(addr_is_link_local(&c));
	assert_false(addr_is_link_local(&d) || addr_is_link_local(&a));
}

static void ranges(void **state)
{
	static const struct {
		const char *range, *addr;
		bool in;
	} t[] = {
		{"10.0.0.0/8", "10.255.0.1", true},
		{"10.0.0.0/8", "11.0.0.1", false},
		{"10.1.2.3", "10.1.2.3", true},
		{"10.1.2.3", "10.1.2.4", false},
		{"0.0.0.0/0", "200.1.1.1", true},
		{"0.0.0.0/0", "fd00::1", false},
		{"fd00::/9", "fd7f::1", true},
		{"fd00::/9", "fd80::1", false},
		{"::ffff:10.0.0.0/104", "10.9.9.9", true},
		{"10.9.9.9/30", "10.9.9.11", true},
		{"fe80::/10", "fe80::1%3", true},
	};
	static const char *const bad[] = {
		"10.0.0.0/33", "10.0.0.0/",	    "10.0.0.0/-1", "/8",
		"fd00::/129",  "::ffff:1.2.3.4/32", "fe80::1%3/64"};
	struct addr_range r;

	(void)state;
	for (unsigned i = 0; i < ARRAY_LEN(t); i++) {
		struct addr a = a_of(t[i].addr);

		assert_int_equal(addr_range_parse(t[i].range, &r), 0);
		assert_int_equal(addr_range_has(&r, &a), t[i].in);
	}
	for (unsigned i = 0; i < ARRAY_LEN(bad); i++)
		assert_int_equal(addr_range_parse(bad[i], &r), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parses_and_formats),
		cmocka_unit_test(refuses_what_is_no_address),
		cmocka_unit_test(sockaddrs_both_ways),
		cmocka_unit_test(zones_match_loosely),
		cmocka_unit_test(knows_special_ones),
		cmocka_unit_test(ranges),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
