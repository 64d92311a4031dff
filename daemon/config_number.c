/* SPDX-License-Identifier: BSD-2-Clause */
/* Numbers, times, sizes and rates of the config, with their units. */
#include "config_int.h"

#include <ctype.h>
#include <errno.h>

/* Decimal digits with an optional fraction; the locale has no say. Digits of a fraction
 * past the 15th count for nothing, so that what is printed reads back as the same.
 * Returns the first byte after it; NULL if there is no number. */
static const char *number_scan(const char *s, double *ret)
{
	double v = 0, place = 1;
	bool any = false;
	int digits = 0;

	for (; isdigit((unsigned char)*s); s++, any = true) {
		v = v * 10 + (*s - '0');
		digits += v > 0;
	}
	if (*s == '.')
		for (s++; isdigit((unsigned char)*s); s++, any = true) {
			if (digits >= 15 || place >= 1e15)
				continue;
			v = v * 10 + (*s - '0');
			digits += v > 0;
			place *= 10;
		}
	*ret = v / place;
	return any ? s : NULL;
}

static const struct unit {
	const char *name;
	int64_t ns;
} units[] = {
	/* largest first: config_time_text() takes the first that divides */
	{"d", INT64_C(86400000000000)},
	{"h", INT64_C(3600000000000)},
	{"min", INT64_C(60000000000)},
	{"s", INT64_C(1000000000)},
	{"ms", 1000000},
	{"us", 1000},
	{"ns", 1},
	{"m", INT64_C(60000000000)},
	{"sec", INT64_C(1000000000)},
	{"", INT64_C(1000000000)},
};

const char *config_time_text(int64_t ns, char buf[32])
{
	size_t u = 0;

	while (units[u].ns > 1 && (ns % units[u].ns || ns == 0))
		u++;
	if (ns == 0)
		(void)str_copy(buf, 32, "0s");
	else
		(void)snprintf(buf, 32, "%lld%s", (long long)(ns / units[u].ns),
			       units[u].name);
	return buf;
}

/* "300ms", "1min 30s", "1.5". */
static int time_parse(const char *s, double *ret)
{
	double sum = 0, v;
	bool bare = false;

	do {
		size_t n, u;

		s = number_scan(s, &v);
		if (!s || bare)
			return -EINVAL;
		s += strspn(s, VALUE_BLANKS);
		for (n = 0; isalpha((unsigned char)s[n]);)
			n++;
		for (u = 0; u < ARRAY_LEN(units); u++)
			if (strlen(units[u].name) == n && !memcmp(units[u].name, s, n))
				break;
		if (u == ARRAY_LEN(units))
			return -EINVAL;
		bare = n == 0;
		sum += v * (double)units[u].ns;
		s += n;
		s += strspn(s, VALUE_BLANKS);
	} while (*s);
	*ret = sum;
	return 0;
}

static int size_parse(const char *s, double *ret)
{
	s = number_scan(s, ret);
	if (!s)
		return -EINVAL;
	if (*s == 'K' || *s == 'k')
		*ret *= 1024;
	else if (*s == 'M')
		*ret *= 1024 * 1024;
	else
		return *s ? -EINVAL : 0;
	return s[1] ? -EINVAL : 0;
}

/* In Mb/s: "400G", "2.5G", "100M", "1.6T". */
static int rate_parse(const char *s, double *ret)
{
	static const struct {
		char letter;
		double mbps;
	} rates[] = {{'M', 1}, {'G', 1000}, {'T', 1e6}};

	s = number_scan(s, ret);
	if (!s)
		return -EINVAL;
	s += strspn(s, VALUE_BLANKS);
	for (size_t i = 0; i < ARRAY_LEN(rates); i++)
		if (toupper((unsigned char)*s) == rates[i].letter &&
		    (!s[1] || !strcasecmp(s + 1, "b/s") || !strcasecmp(s + 1, "bps"))) {
			*ret = (double)(int64_t)(*ret * rates[i].mbps + 0.5);
			return 0;
		}
	return -EINVAL;
}

void config_rate_print(uint32_t mbps, FILE *f)
{
	char buf[24];

	if (mbps)
		fputs(link_rate_text(mbps, buf), f);
}

int config_number_parse(const struct config_row *r, void *base, const char *text,
			char err[CONFIG_ERR_MAX])
{
	char q[72], range[128];
	const char *end;
	double v = 0;
	int bad;

	if (r->type == ROW_TIME) {
		bad = time_parse(text, &v);
	} else if (r->type == ROW_SIZE) {
		bad = size_parse(text, &v);
	} else if (r->type == ROW_RATE) {
		bad = rate_parse(text, &v);
	} else {
		end = number_scan(text, &v);
		bad = !end || *end;
	}
	if (r->type != ROW_REAL && r->type != ROW_TIME && !bad && v < 1e15)
		bad = (double)(int64_t)v < v; /* 1.5 of what is counted */
	config_row_range(r, range, sizeof(range));
	if (bad)
		return config_wrong(
			err, "'%s' is not %s%s", config_quote(text, q), range,
			r->type == ROW_TIME ? ", as 300ms, 1s or 2min" : "");
	if (v < r->min || v > r->max)
		return config_wrong(err, "%s is out of range, wanted is %s",
				    config_quote(text, q), range);
	if (r->type == ROW_TIME)
		*(int64_t *)row_field(r, base) = (int64_t)(v + 0.5);
	else if (r->type == ROW_REAL)
		*(double *)row_field(r, base) = v;
	else if (r->flags & ROW_MAY_BE_NONE)
		*(uint32_t *)row_field(r, base) = (uint32_t)v + 1;
	else if (r->size == sizeof(uint16_t))
		*(uint16_t *)row_field(r, base) = (uint16_t)v;
	else
		*(uint32_t *)row_field(r, base) = (uint32_t)v;
	return 0;
}
