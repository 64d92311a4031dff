/* SPDX-License-Identifier: BSD-2-Clause */
#include "units.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#define RING	  16
#define RING_TEXT 64

static const char *ring(const char *fmt, ...) PRINTF_LIKE(1, 2);

static const char *ring(const char *fmt, ...)
{
	static char text[RING][RING_TEXT];
	static unsigned next;
	char *s = text[next++ % RING];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(s, RING_TEXT, fmt, ap);
	va_end(ap);
	return s;
}

const char *unit_age(double sec)
{
	char buf[32] = "";

	str_append_age(buf, sizeof(buf), sec);
	return ring("%s", buf);
}

const char *unit_ago(double sec)
{
	const char *age = unit_age(sec);

	return str_eq(age, "-") ? "never" : ring("%s ago", age);
}

const char *unit_rate(int64_t mbps)
{
	if (mbps <= 0)
		return "-";
	if (mbps < 1000)
		return ring("%" PRId64 "M", mbps);
	return ring("%.4gG", (double)mbps / 1000);
}

/* Three figures are enough for a round trip. */
static const char *figures(double v)
{
	return v < 9.95 ? ring("%.1f", v) : ring("%.0f", v);
}

static const char *ns_unit(int64_t ns, double *ret_div)
{
	if (ns < 999500) {
		*ret_div = 1e3;
		return "us";
	}
	if (ns < 999500000) {
		*ret_div = 1e6;
		return "ms";
	}
	*ret_div = 1e9;
	return "s";
}

const char *unit_ns(int64_t ns)
{
	const char *unit;
	double div;

	if (ns < 0)
		return "-";
	if (ns == 0)
		return "0";
	unit = ns_unit(ns, &div);
	return ring("%s%s", figures((double)ns / div), unit);
}

const char *unit_ns_pair(int64_t a, int64_t b)
{
	const char *unit;
	double div;

	if (a < 0 || b < 0)
		return "-";
	unit = ns_unit(MAX(a, b), &div);
	/* What would read 0.0 in the other's unit has its own. */
	if (a && (double)a / div < 0.05)
		return ring("%s/%s", unit_ns(a), unit_ns(b));
	return ring("%s/%s%s", figures((double)a / div), figures((double)b / div),
		    unit);
}

const char *unit_interval(int64_t ns)
{
	if (ns <= 0)
		return "-";
	if (ns >= 1000000000)
		return ring("%.4gs", (double)ns / 1e9);
	if (ns >= 1000000)
		return ring("%.4gms", (double)ns / 1e6);
	return ring("%.4gus", (double)ns / 1e3);
}

const char *unit_percent(int64_t part, int64_t whole)
{
	double p;

	if (whole <= 0 || part < 0)
		return "-";
	if (part == 0)
		return "0%";
	if (part >= whole)
		return "100%";
	p = 100.0 * (double)part / (double)whole;
	if (p < 0.1)
		return "<0.1%";
	if (p > 99.9)
		return "99.9%";
	return ring("%.1f%%", p);
}

const char *unit_kib(int64_t kib)
{
	if (kib < 0)
		return "-";
	if (kib < 1024)
		return ring("%" PRId64 "K", kib);
	if (kib < 1024 * 1024)
		return ring("%.1fM", (double)kib / 1024);
	return ring("%.1fG", (double)kib / 1024 / 1024);
}

const char *unit_clock(const char *rfc3339)
{
	const char *t = rfc3339 ? strchr(rfc3339, 'T') : NULL;

	return t && t[1] ? t + 1 : rfc3339 ? rfc3339 : "-";
}

const char *unit_word(const char *name)
{
	char word[RING_TEXT];

	if (!name)
		return "-";
	(void)str_copy(word, sizeof(word), name);
	for (char *p = word; *p; p++)
		if (*p == '_')
			*p = '-';
	return ring("%s", word);
}

const char *unit_health(const char *health)
{
	if (str_eq(health, "bad"))
		return "FAILED";
	if (str_eq(health, "degraded"))
		return "DEGRADED";
	return unit_word(health);
}

/* clang-format off */
static const struct {
	const char *name;
	int64_t ms;
} duration_units[] = {
	{"ms", 1}, {"s", 1000}, {"m", 60000}, {"min", 60000}, {"h", 3600000}, {"d", 86400000},
};
/* clang-format on */

#define DURATION_MAX_MS (INT64_C(3650) * 86400000)

static int64_t duration_unit(const char *name, size_t len)
{
	for (size_t i = 0; i < ARRAY_LEN(duration_units); i++)
		if (strlen(duration_units[i].name) == len &&
		    !strncmp(duration_units[i].name, name, len))
			return duration_units[i].ms;
	return 0;
}

int unit_duration_parse(const char *text, int64_t *ret_ms)
{
	int64_t total = 0;
	const char *p = text;

	if (!*p)
		return -EINVAL;
	while (*p) {
		int64_t n = 0, unit = 1000;
		size_t len = 0;

		if (!isdigit((unsigned char)*p))
			return -EINVAL;
		for (; isdigit((unsigned char)*p); p++) {
			n = n * 10 + (*p - '0');
			if (n > DURATION_MAX_MS)
				return -ERANGE;
		}
		while (isalpha((unsigned char)p[len]))
			len++;
		/* A bare number is seconds, but only by itself: "1h30" may mean two
		 * things. */
		if (len)
			unit = duration_unit(p, len);
		else if (*p || total)
			unit = 0;
		if (!unit)
			return -EINVAL;
		if (n > DURATION_MAX_MS / unit)
			return -ERANGE;
		total += n * unit;
		p += len;
	}
	if (total > DURATION_MAX_MS)
		return -ERANGE;
	*ret_ms = total;
	return 0;
}
