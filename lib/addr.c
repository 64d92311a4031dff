/* SPDX-License-Identifier: BSD-2-Clause */
#include "addr.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <stdio.h>

static unsigned addr_len(const struct addr *a)
{
	return a->family == 4 ? 4 : a->family == 6 ? 16 : 0;
}

bool addr_is_set(const struct addr *a)
{
	return a->family != 0;
}

bool addr_is_link_local(const struct addr *a)
{
	return a->family == 6 && a->ip[0] == 0xfe && (a->ip[1] & 0xc0) == 0x80;
}

bool addr_is_loopback(const struct addr *a)
{
	static const uint8_t one[16] = {[15] = 1};

	if (a->family == 4)
		return a->ip[0] == 127;
	return a->family == 6 && !memcmp(a->ip, one, sizeof(one));
}

static void addr_set_v4(struct addr *a, const void *ip)
{
	a->family = 4;
	memcpy(a->ip, ip, 4);
}

/* A mapped address is the IPv4 host: one host must not have two spellings. */
static void addr_set_v6(struct addr *a, const uint8_t ip[16])
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

	if (!memcmp(ip, mapped, sizeof(mapped))) {
		addr_set_v4(a, ip + 12);
		return;
	}
	a->family = 6;
	memcpy(a->ip, ip, 16);
}

/* Decimal digits only, no sign, no blanks, at most @max. */
static int number_parse(const char *s, uint32_t max, uint32_t *ret)
{
	uint64_t v = 0;

	if (!*s)
		return -EINVAL;
	for (; *s; s++) {
		if (!isdigit((unsigned char)*s))
			return -EINVAL;
		v = v * 10 + (uint64_t)(*s - '0');
		if (v > max)
			return -EINVAL;
	}
	*ret = (uint32_t)v;
	return 0;
}

/* Only link-local addresses have a zone (RFC 4007); interface names have 15 bytes. */
static int zone_parse(const char *zone, struct addr *a, char name[16])
{
	if (!name || !addr_is_link_local(a) || !*zone)
		return -EINVAL;
	if (strspn(zone, "0123456789") == strlen(zone)) {
		if (number_parse(zone, UINT32_MAX, &a->zone) < 0 || !a->zone)
			return -EINVAL;
		return 0;
	}
	for (const char *p = zone; *p; p++)
		if (!isgraph((unsigned char)*p) || *p == '/' || *p == '%')
			return -EINVAL;
	return str_copy(name, 16, zone) ? 0 : -EINVAL;
}

int addr_parse(const char *text, struct addr *ret, char zone_name[16])
{
	char ip[INET6_ADDRSTRLEN], name[16] = "";
	const char *zone = strchr(text, '%');
	size_t n = zone ? (size_t)(zone - text) : strlen(text);
	struct addr a = {0};
	uint8_t bytes[16];

	if (n >= sizeof(ip))
		return -EINVAL;
	memcpy(ip, text, n);
	ip[n] = '\0';
	if (inet_pton(AF_INET, ip, bytes) == 1)
		addr_set_v4(&a, bytes);
	else if (inet_pton(AF_INET6, ip, bytes) == 1)
		addr_set_v6(&a, bytes);
	else
		return -EINVAL;
	if (zone && zone_parse(zone + 1, &a, zone_name ? name : NULL) < 0)
		return -EINVAL;
	if (zone_name)
		memcpy(zone_name, name, sizeof(name));
	*ret = a;
	return 0;
}

const char *addr_format(const struct addr *a, char buf[ADDR_TEXT_MAX])
{
	if (!inet_ntop(a->family == 6 ? AF_INET6 : AF_INET, a->ip, buf,
		       ADDR_TEXT_MAX) ||
	    !addr_is_set(a))
		(void)str_copy(buf, ADDR_TEXT_MAX, "-");
	else if (a->zone)
		str_append(buf, ADDR_TEXT_MAX, "%%%u", (unsigned)a->zone);
	return buf;
}

const char *addr_format_port(const struct addr *a, char buf[ADDR_TEXT_MAX])
{
	char ip[ADDR_TEXT_MAX];

	buf[0] = '\0';
	str_append(buf, ADDR_TEXT_MAX, a->family == 6 ? "[%s]:%u" : "%s:%u",
		   addr_format(a, ip), (unsigned)a->port);
	return buf;
}

bool addr_same_ip(const struct addr *a, const struct addr *b)
{
	if (a->family != b->family || memcmp(a->ip, b->ip, addr_len(a)) != 0)
		return false;
	return !addr_is_link_local(a) || !a->zone || !b->zone || a->zone == b->zone;
}

bool addr_equal(const struct addr *a, const struct addr *b)
{
	return addr_same_ip(a, b) && a->port == b->port;
}

uint64_t addr_hash(const struct addr *a)
{
	uint64_t h = mix64(a->family);

	for (unsigned i = 0; i < addr_len(a); i += 4)
		h = mix64(h ^ be32_get(a->ip + i));
	return h;
}

int addr_from_sockaddr(const struct sockaddr *sa, socklen_t len, struct addr *ret)
{
	struct addr a = {0};
	struct sockaddr_in in;
	struct sockaddr_in6 in6;

	if (len < (socklen_t)sizeof(sa->sa_family))
		return -EINVAL;
	switch (sa->sa_family) {
	case AF_INET:
		if (len < (socklen_t)sizeof(in))
			return -EINVAL;
		memcpy(&in, sa, sizeof(in));
		addr_set_v4(&a, &in.sin_addr);
		a.port = ntohs(in.sin_port);
		break;
	case AF_INET6:
		if (len < (socklen_t)sizeof(in6))
			return -EINVAL;
		memcpy(&in6, sa, sizeof(in6));
		addr_set_v6(&a, in6.sin6_addr.s6_addr);
		a.port = ntohs(in6.sin6_port);
		if (addr_is_link_local(&a))
			a.zone = in6.sin6_scope_id;
		break;
	default:
		return -EAFNOSUPPORT;
	}
	*ret = a;
	return 0;
}

socklen_t addr_to_sockaddr(const struct addr *a, struct sockaddr_storage *ret)
{
	struct sockaddr_in in = {.sin_family = AF_INET};
	struct sockaddr_in6 in6 = {.sin6_family = AF_INET6};

	memset(ret, 0, sizeof(*ret));
	if (a->family == 4) {
		in.sin_port = htons(a->port);
		memcpy(&in.sin_addr, a->ip, 4);
		memcpy(ret, &in, sizeof(in));
		return sizeof(in);
	}
	if (a->family == 6) {
		in6.sin6_port = htons(a->port);
		in6.sin6_scope_id = a->zone;
		memcpy(in6.sin6_addr.s6_addr, a->ip, 16);
		memcpy(ret, &in6, sizeof(in6));
		return sizeof(in6);
	}
	return 0;
}

static void mask_host_bits(struct addr *a, unsigned bits)
{
	for (unsigned i = 0; i < addr_len(a); i++) {
		unsigned keep = bits > i * 8 ? MIN(bits - i * 8, 8u) : 0;

		a->ip[i] &= (uint8_t)(0xff00u >> keep);
	}
}

int addr_range_parse(const char *text, struct addr_range *ret)
{
	char ip[INET6_ADDRSTRLEN];
	const char *slash = strchr(text, '/');
	size_t n = slash ? (size_t)(slash - text) : strlen(text);
	struct addr_range r = {0};
	uint32_t bits, max;

	if (n >= sizeof(ip))
		return -EINVAL;
	memcpy(ip, text, n);
	ip[n] = '\0';
	if (addr_parse(ip, &r.base, NULL) < 0)
		return -EINVAL;
	max = strchr(ip, ':') ? 128 : 32;
	bits = max;
	if (slash && number_parse(slash + 1, max, &bits) < 0)
		return -EINVAL;
	if (max == 128 && r.base.family == 4) { /* ::ffff:10.0.0.0/104 */
		if (bits < 96)
			return -EINVAL;
		bits -= 96;
	}
	mask_host_bits(&r.base, bits);
	r.bits = (uint8_t)bits;
	*ret = r;
	return 0;
}

bool addr_range_has(const struct addr_range *r, const struct addr *a)
{
	struct addr masked = *a;

	if (!addr_is_set(a) || a->family != r->base.family)
		return false;
	mask_host_bits(&masked, r->bits);
	return !memcmp(masked.ip, r->base.ip, addr_len(a));
}
