/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * addr.h - an IP address with port and zone, and an address range. One plain struct of
 * fixed size, so that it can travel in worker messages. Pure: no name look-ups.
 */
#pragma once

#include <netinet/in.h>

#include "util.h"

#define ADDR_TEXT_MAX 72 /* "[ipv6%zone]:port" and NUL */

/* family 0 = none. ip: IPv4 in the first 4 bytes; network order. port: host order.
 * zone: interface index of a link-local IPv6 address, else 0 (RFC 4007). */
struct addr {
	uint8_t family; /* 4, 6, or 0 */
	uint8_t pad;
	uint16_t port;
	uint32_t zone;
	uint8_t ip[16];
};

/* Parse "1.2.3.4", "fe80::1", "fe80::1%ib0" (no port). A zone name is given back in
 * @zone_name ("" when there is none; may be NULL when zones are not allowed) for the
 * caller to look up; a numeric zone is taken as the index. 0, or -EINVAL. */
int addr_parse(const char *text, struct addr *ret, char zone_name[16]);
/* "1.2.3.4" / "fe80::1%3"; with_port: "1.2.3.4:5", "[fe80::1%3]:5". Returns @buf. */
const char *addr_format(const struct addr *a, char buf[ADDR_TEXT_MAX]);
const char *addr_format_port(const struct addr *a, char buf[ADDR_TEXT_MAX]);

bool addr_is_set(const struct addr *a);
/* Same IP and, for link-local, same zone (0 matches any zone). Ports do not count. */
bool addr_same_ip(const struct addr *a, const struct addr *b);
bool addr_equal(const struct addr *a, const struct addr *b); /* port too */
bool addr_is_link_local(const struct addr *a);
bool addr_is_loopback(const struct addr *a);
uint64_t addr_hash(const struct addr *a); /* IP only */

/* IPv4-mapped IPv6 becomes IPv4. -EAFNOSUPPORT for other families, -EINVAL if short. */
int addr_from_sockaddr(const struct sockaddr *sa, socklen_t len, struct addr *ret);
/* Returns the length. @ret is zeroed first. */
socklen_t addr_to_sockaddr(const struct addr *a, struct sockaddr_storage *ret);

/* "10.0.0.0/8", "fd00::/16", or a single address. */
struct addr_range {
	struct addr base;
	uint8_t bits;
};
int addr_range_parse(const char *text, struct addr_range *ret); /* 0, -EINVAL */
bool addr_range_has(const struct addr_range *r, const struct addr *a);
