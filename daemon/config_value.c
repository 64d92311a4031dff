/* SPDX-License-Identifier: BSD-2-Clause */
#include "config_int.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>

#define BLANKS " \t"
#define ADDRESS_TEXT_MAX 255

static void *field(const struct config_row *r, void *base)
{
	return (char *)base + r->offset;
}

static const void *cfield(const struct config_row *r, const void *base)
{
	return (const char *)base + r->offset;
}

static int *list_count(const struct config_row *r, void *base)
{
	return (int *)(void *)((char *)base + r->n_offset);
}

static int list_n(const struct config_row *r, const void *base)
{
	return *(const int *)(const void *)((const char *)base + r->n_offset);
}

static int wrong(char err[CONFIG_ERR_MAX], const char *fmt, ...) PRINTF_LIKE(2, 3);
static int wrong(char err[CONFIG_ERR_MAX], const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(err, CONFIG_ERR_MAX, fmt, ap);
	va_end(ap);
	return -EINVAL;
}

const char *config_quote(const char *s, char buf[72])
{
	size_t n = strlen(s);

	text_clean(buf, 64, s, n);
	if (n > 63)
		str_append(buf, 72, "...");
	return buf;
}

const char *config_label_wrong(const char *s, size_t max)
{
	if (!*s)
		return "is empty";
	if (strlen(s) > max)
		return "is too long";
	for (; *s; s++) {
		if (!isgraph((unsigned char)*s))
			return "has a blank or an odd byte in it";
		if (strchr("/:>#", *s))
			return "has one of / : > # in it";
		if (*s == '"' || *s == '\'')
			return "is quoted; write it without quotes";
	}
	return NULL;
}

/* ---- numbers and times ---- */

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
		s += strspn(s, BLANKS);
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
		s += strspn(s, BLANKS);
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
	s += strspn(s, BLANKS);
	for (size_t i = 0; i < ARRAY_LEN(rates); i++)
		if (toupper((unsigned char)*s) == rates[i].letter &&
		    (!s[1] || !strcasecmp(s + 1, "b/s") || !strcasecmp(s + 1, "bps"))) {
			*ret = (double)(int64_t)(*ret * rates[i].mbps + 0.5);
			return 0;
		}
	return -EINVAL;
}

static void rate_print(uint32_t mbps, FILE *f)
{
	char buf[24];

	if (mbps)
		fputs(link_rate_text(mbps, buf), f);
}

static int number_parse(const struct config_row *r, void *base, const char *text,
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
		return wrong(err, "'%s' is not %s%s", config_quote(text, q), range,
			     r->type == ROW_TIME ? ", as 300ms, 1s or 2min" : "");
	if (v < r->min || v > r->max)
		return wrong(err, "%s is out of range, wanted is %s",
			     config_quote(text, q), range);
	if (r->type == ROW_TIME)
		*(int64_t *)field(r, base) = (int64_t)(v + 0.5);
	else if (r->type == ROW_REAL)
		*(double *)field(r, base) = v;
	else if (r->flags & ROW_MAY_BE_NONE)
		*(uint32_t *)field(r, base) = (uint32_t)v + 1;
	else if (r->size == sizeof(uint16_t))
		*(uint16_t *)field(r, base) = (uint16_t)v;
	else
		*(uint32_t *)field(r, base) = (uint32_t)v;
	return 0;
}

/* ---- words ---- */

static int bool_parse(const char *text, bool *ret)
{
	static const char *const words[] = {"no",  "yes", "false", "true",
					    "off", "on",  "0",	   "1"};

	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (!strcasecmp(text, words[i])) {
			*ret = i & 1;
			return 0;
		}
	return -EINVAL;
}

/* The name that begins with @text or is nearest to it, if any is near at all. */
static const char *names_near(const struct enum_names *t, const char *text)
{
	size_t best = MAX(strlen(text) / 3, 1) + 1;
	const char *ret = NULL;

	for (int i = 0; i < t->n; i++) {
		const char *name = enum_text(t, i);
		size_t d = str_distance(name, text);

		if (strlen(text) > 1 && !strncasecmp(name, text, strlen(text)))
			d = 0;
		if (d < best) {
			best = d;
			ret = name;
		}
	}
	return ret;
}

static int enum_parse(const struct config_row *r, int *ret, const char *text,
		      char err[CONFIG_ERR_MAX])
{
	const char *near = names_near(r->names, text);
	int v = enum_find(r->names, text);
	char q[72], range[128];

	if (v < 0) {
		config_row_range(r, range, sizeof(range));
		return wrong(err, "'%s' is not %s%s%s%s", config_quote(text, q), range,
			     near ? "; did you mean " : "", near ? near : "",
			     near ? "?" : "");
	}
	*ret = (int)r->min + v;
	return 0;
}

static int path_parse(const struct config_row *r, char *dst, const char *text,
		      char err[CONFIG_ERR_MAX])
{
	char q[72];

	if (*text != '/' && !(!*text && (r->flags & ROW_MAY_BE_EMPTY)))
		return wrong(err, "'%s' is not an absolute path",
			     config_quote(text, q));
	if (strlen(text) > (size_t)r->max)
		return wrong(err,
			     "path of %zu bytes is too long, at most %.0f are possible",
			     strlen(text), r->max);
	(void)str_copy(dst, r->size, text);
	return 0;
}

/* A name without blanks is found in $PATH later; what has a slash must say where. */
static int program_parse(const struct config_row *r, char *dst, const char *text,
			 char err[CONFIG_ERR_MAX])
{
	char q[72];

	if (strchr(text, '/'))
		return path_parse(r, dst, text, err);
	if (strpbrk(text, BLANKS) || strlen(text) > (size_t)r->max)
		return wrong(err, "'%s' is not the name of a program",
			     config_quote(text, q));
	(void)str_copy(dst, r->size, text);
	return 0;
}

static int label_parse(char *dst, size_t size, const char *text,
		       char err[CONFIG_ERR_MAX])
{
	const char *why = config_label_wrong(text, size - 1);
	char q[72];

	if (why)
		return wrong(err, "name '%s' %s (at most %zu bytes)",
			     config_quote(text, q), why, size - 1);
	(void)str_copy(dst, size, text);
	return 0;
}

/* ---- addresses ---- */

/* @zone NULL: no zone by name. */
static int ip_parse(const char *text, struct addr *ret, char *zone,
		    char err[CONFIG_ERR_MAX])
{
	char q[72], name[EP_IF_MAX];
	int r = addr_parse(text, ret, zone);

	(void)config_quote(text, q);
	if (r == 0)
		return 0;
	if (!zone && addr_parse(text, ret, name) == 0)
		return wrong(err, "zone of '%s' must be an interface index here", q);
	if (strchr(text, '/'))
		return wrong(err, "'%s' is a range, wanted is one address", q);
	if (strspn(text, "0123456789.:") == strlen(text) && strchr(text, '.') &&
	    strchr(text, ':'))
		return wrong(err, "'%s' has a port in it; the port goes to Port=", q);
	return wrong(err, "'%s' is not an IP address", q);
}

bool config_host_name_valid(const char *s)
{
	size_t label = 0;

	if (strlen(s) > 253 || *s == '-')
		return false;
	for (; *s; s++) {
		if (*s == '.') {
			if (!label)
				return false;
			label = 0;
			continue;
		}
		if (!isalnum((unsigned char)*s) && *s != '-' && *s != '_')
			return false;
		if (++label > 63)
			return false;
	}
	return true;
}

/* An address on which a host can be: not "any", not a group. */
static bool addr_is_host(const struct addr *a)
{
	static const uint8_t any[16];

	if (a->family == 4)
		return memcmp(a->ip, any, 4) != 0 && a->ip[0] < 224;
	return memcmp(a->ip, any, 16) != 0 && a->ip[0] != 0xff;
}

/* All but the text and the zone, which is part of it. */
static int peer_addr_check(const char *text, struct config_addr *ret,
			   char err[CONFIG_ERR_MAX])
{
	bool ip = strchr(text, ':') || strchr(text, '%') || strchr(text, '/') ||
		  strspn(text, "0123456789.") == strlen(text);
	char q[72], zone[EP_IF_MAX] = "";

	*ret = (struct config_addr){.zone = ""};
	(void)config_quote(text, q);
	if (strlen(text) > ADDRESS_TEXT_MAX)
		return wrong(err, "'%s' is too long for an address", q);
	if (!ip && !config_host_name_valid(text))
		return wrong(err, "'%s' is neither an IP address nor a host name", q);
	if (ip && ip_parse(text, &ret->addr, zone, err) < 0)
		return -EINVAL;
	if (!ip)
		return 0;
	if (!addr_is_host(&ret->addr))
		return wrong(err, "'%s' is not the address of a host", q);
	if (addr_is_link_local(&ret->addr) && !zone[0] && !ret->addr.zone)
		return wrong(err, "'%s' is link-local and needs a zone, as %s%%ib0", q,
			     q);
	return 0;
}

static int peer_addr_parse(const char *text, struct config_addr *ret,
			   char err[CONFIG_ERR_MAX])
{
	const char *zone;

	if (peer_addr_check(text, ret, err) < 0)
		return -EINVAL;
	ret->text = xstrdup(text);
	zone = strchr(ret->text, '%');
	if (zone && !ret->addr.zone)
		ret->zone = zone + 1;
	return 0;
}

static int port_addr_parse(struct config_port *p, const char *text,
			   char err[CONFIG_ERR_MAX])
{
	struct addr a;

	if (ip_parse(text, &a, NULL, err) < 0)
		return -EINVAL;
	if (!str_copy(p->address, sizeof(p->address), text))
		return wrong(err, "address is too long");
	p->addr = a;
	return 0;
}

/* ---- lists ---- */

static int transport_add(uint32_t *set, const char *word, char err[CONFIG_ERR_MAX])
{
	int t = enum_find(&transport_names, word);
	char q[72];

	if (t < 0)
		return wrong(err, "'%s' is not a transport, these are udp, rc and ud",
			     config_quote(word, q));
	*set |= UINT32_C(1) << t;
	return 0;
}

static int glob_add(const struct config_row *r, char *dst, const char *word,
		    char err[CONFIG_ERR_MAX])
{
	size_t n = strlen(dst);

	if (n + !!n + strlen(word) > (size_t)r->max)
		return wrong(err,
			     "patterns are too long, at most %.0f bytes are possible",
			     r->max);
	str_append(dst, r->size, "%s%s", n ? " " : "", word);
	return 0;
}

static int range_parse(const char *word, struct addr_range *ret,
		       char err[CONFIG_ERR_MAX])
{
	char q[72];

	if (addr_range_parse(word, ret) == 0)
		return 0;
	return wrong(err, "'%s' is not an IP address or a range, as 10.2.0.0/16",
		     config_quote(word, q));
}

static int list_add(const struct config_row *r, void *base, const char *word,
		    char err[CONFIG_ERR_MAX])
{
	int *n, i, ret;

	if (r->type == ROW_TRANSPORTS)
		return transport_add(field(r, base), word, err);
	if (r->type == ROW_GLOBS)
		return glob_add(r, field(r, base), word, err);
	n = list_count(r, base);
	i = *n;
	if (i >= (int)r->max)
		return wrong(err, "too many, at most %.0f are possible", r->max);
	if (r->type == ROW_ADDRESSES)
		ret = ip_parse(word, (struct addr *)field(r, base) + i, NULL, err);
	else
		ret = range_parse(word, (struct addr_range *)field(r, base) + i, err);
	if (ret == 0)
		*n = i + 1;
	return ret;
}

/* ---- grown lists ---- */

static bool is_grown(const struct config_row *r)
{
	return r->type == ROW_PEER_ADDRESSES || r->type == ROW_LABELS;
}

static void grown_clear(const struct config_row *r, void *base)
{
	void **list = field(r, base);
	int *n = list_count(r, base);

	for (int i = 0; i < *n; i++)
		free(r->type == ROW_LABELS ? ((char **)*list)[i]
					   : ((struct config_addr *)*list)[i].text);
	free(*list);
	*list = NULL;
	*n = 0;
}

static int grown_add(const struct config_row *r, void *base, const char *word,
		     char err[CONFIG_ERR_MAX])
{
	bool labels = r->type == ROW_LABELS;
	char label[CONFIG_LABEL_MAX];
	void **list = field(r, base);
	int *n = list_count(r, base), ret;
	struct config_addr a;

	if (*n >= (int)r->max)
		return wrong(err, "too many, at most %.0f are possible", r->max);
	ret = labels ? label_parse(label, sizeof(label), word, err)
		     : peer_addr_parse(word, &a, err);
	if (ret < 0)
		return ret;
	*list = xrealloc(*list, (size_t)*n + 1, labels ? sizeof(char *) : sizeof(a));
	if (labels)
		((char **)*list)[*n] = xstrdup(label);
	else
		((struct config_addr *)*list)[*n] = a;
	++*n;
	return 0;
}

/* Back to the first @n of the list. */
static void grown_cut(const struct config_row *r, void *base, int n)
{
	void **list = field(r, base);

	for (int *have = list_count(r, base); *have > n;) {
		--*have;
		free(r->type == ROW_LABELS ? ((char **)*list)[*have]
					   : ((struct config_addr *)*list)[*have].text);
	}
}

static int grown_parse(const struct config_row *r, void *base, const char *text,
		       bool fresh, char err[CONFIG_ERR_MAX])
{
	const char *between = r->type == ROW_LABELS ? BLANKS : BLANKS ",";
	_cleanup_(freep) char *copy = xstrdup(text);
	void **list = field(r, base), *old = *list;
	int *n = list_count(r, base), old_n = *n, ret = 0;
	char *save = NULL;

	if (fresh) { /* the old one stands until the new one is good */
		*list = NULL;
		*n = 0;
	}
	for (char *w = strtok_r(copy, between, &save); w && ret == 0;
	     w = strtok_r(NULL, between, &save))
		ret = grown_add(r, base, w, err);
	if (strspn(text, BLANKS ",") == strlen(text))
		ret = wrong(err, "there is nothing between the commas");
	if (!fresh) {
		if (ret < 0)
			grown_cut(r, base, old_n);
		return ret;
	}
	if (ret == 0) {
		void *new = *list;
		int new_n = *n;

		*list = old;
		*n = old_n;
		grown_clear(r, base);
		*list = new;
		*n = new_n;
	} else {
		grown_clear(r, base);
		*list = old;
		*n = old_n;
	}
	return ret;
}

/* ---- lists in their place ---- */

static void list_clear(const struct config_row *r, void *base)
{
	memset(field(r, base), 0, r->size);
	if (r->n_offset)
		*list_count(r, base) = 0;
}

static int list_parse(const struct config_row *r, void *base, const char *text,
		      bool fresh, char err[CONFIG_ERR_MAX])
{
	bool commas = r->type != ROW_GLOBS;
	_cleanup_(freep) void *old = xcalloc(1, r->size);
	int old_n = r->n_offset ? list_n(r, base) : 0, ret = 0;
	_cleanup_(freep) char *copy = xstrdup(text);
	char *save = NULL;

	memcpy(old, field(r, base), r->size);
	if (fresh)
		list_clear(r, base);
	for (char *w = strtok_r(copy, commas ? BLANKS "," : BLANKS, &save);
	     w && ret == 0; w = strtok_r(NULL, commas ? BLANKS "," : BLANKS, &save))
		ret = list_add(r, base, w, err);
	if (strspn(text, BLANKS ",") == strlen(text))
		ret = wrong(err, "there is nothing between the commas");
	if (ret < 0) {
		memcpy(field(r, base), old, r->size);
		if (r->n_offset)
			*list_count(r, base) = old_n;
	}
	return ret;
}

/* "symbol_error 120/h, link_downed off"; one limit a value is the usual way. */
static int limits_parse(struct counter_limits *l, const char *text, bool fresh,
			char err[CONFIG_ERR_MAX])
{
	_cleanup_(freep) char *copy = xstrdup(text);
	struct counter_limits new = *l;
	char *save = NULL, why[160], q[72];
	bool any = false;

	if (fresh)
		counter_limits_default(&new);
	for (char *w = strtok_r(copy, ",", &save); w; w = strtok_r(NULL, ",", &save)) {
		size_t n;

		w += strspn(w, BLANKS);
		for (n = strlen(w); n && strchr(BLANKS, w[n - 1]); n--)
			w[n - 1] = '\0';
		if (counter_limit_parse(w, &new, why, sizeof(why)) < 0)
			return wrong(err, "'%s': %s", config_quote(w, q), why);
		any = true;
	}
	if (!any)
		return wrong(err, "there is nothing between the commas");
	*l = new;
	return 0;
}

static int share_parse(struct check_share *ret, const char *text,
		       const struct config_row *r, char err[CONFIG_ERR_MAX])
{
	char q[72], range[128];
	bool near = str_distance(text, "all") <= 1;

	if (check_share_parse(text, ret) == 0)
		return 0;
	config_row_range(r, range, sizeof(range));
	return wrong(err, "'%s' is not %s%s", config_quote(text, q), range,
		     near ? "; did you mean all?" : "");
}

static bool limit_differs(const struct counter_limits *a, const struct counter_limits *b,
			  int c)
{
	return a->limit[c] != b->limit[c] || a->sec[c] != b->sec[c];
}

/* What is not the default. */
static void limits_print(const struct counter_limits *l, FILE *f)
{
	struct counter_limits def;
	const char *sep = "";
	char buf[32];

	counter_limits_default(&def);
	for (int c = 0; c < CTR__MAX; c++)
		if (limit_differs(l, &def, c)) {
			fprintf(f, "%s%s %s", sep, counter_rows[c].name,
				counter_limit_text(l, (enum counter)c, buf, sizeof(buf)));
			sep = ", ";
		}
}

/* ---- one value ---- */

int config_value_parse(const struct config_row *r, void *base, const char *text,
		       bool fresh, char err[CONFIG_ERR_MAX])
{
	char q[72];

	switch (r->type) {
	case ROW_BOOL:
		if (bool_parse(text, field(r, base)) < 0)
			return wrong(err, "'%s' is not yes or no",
				     config_quote(text, q));
		return 0;
	case ROW_COUNT:
	case ROW_REAL:
	case ROW_TIME:
	case ROW_SIZE:
	case ROW_RATE:
		return number_parse(r, base, text, err);
	case ROW_SHARE:
		return share_parse(field(r, base), text, r, err);
	case ROW_LABEL:
		return label_parse(field(r, base), r->size, text, err);
	case ROW_PATH:
		return path_parse(r, field(r, base), text, err);
	case ROW_PROGRAM:
		return program_parse(r, field(r, base), text, err);
	case ROW_LIMITS:
		return limits_parse(field(r, base), text, fresh, err);
	case ROW_ENUM:
		return enum_parse(r, field(r, base), text, err);
	case ROW_ADDRESS:
		return ip_parse(text, field(r, base), NULL, err);
	case ROW_PORT_ADDRESS:
		return port_addr_parse(base, text, err);
	case ROW_PEER_ADDRESSES:
	case ROW_LABELS:
		return grown_parse(r, base, text, fresh, err);
	case ROW_TRANSPORTS:
	case ROW_ADDRESSES:
	case ROW_RANGES:
	case ROW_GLOBS:
		break;
	}
	return list_parse(r, base, text, fresh, err);
}

void config_value_reset(const struct config_row *r, void *base)
{
	char err[CONFIG_ERR_MAX];
	int ret = 0;

	if (is_grown(r))
		grown_clear(r, base);
	memset(field(r, base), 0, r->size);
	if (r->n_offset)
		*list_count(r, base) = 0;
	if (r->type == ROW_LIMITS)
		counter_limits_default(field(r, base));
	if (r->type == ROW_PORT_ADDRESS)
		((struct config_port *)base)->address[0] = '\0';
	if (*r->def)
		ret = config_value_parse(r, base, r->def, true, err);
	assert(ret ==
	       0); /* the table's own defaults are valid: test_config proves it */
}

static void addr_print(const struct addr *a, FILE *f)
{
	char buf[ADDR_TEXT_MAX];

	if (addr_is_set(a))
		fputs(addr_format(a, buf), f);
}

static void transports_print(uint32_t set, FILE *f)
{
	const char *sep = "";

	for (int t = 0; t < TRANSPORT__MAX; t++)
		if (set & (UINT32_C(1) << t)) {
			fprintf(f, "%s%s", sep, enum_name(&transport_names, t));
			sep = " ";
		}
}

static void list_print(const struct config_row *r, const void *base, FILE *f)
{
	const void *v = cfield(r, base);
	const struct addr_range *range = v;
	const struct addr *addr = v;

	for (int i = 0; i < list_n(r, base); i++) {
		if (i)
			fputc(' ', f);
		if (r->type == ROW_ADDRESSES) {
			addr_print(addr + i, f);
		} else if (r->type == ROW_PEER_ADDRESSES) {
			fputs((*(struct config_addr *const *)v)[i].text, f);
		} else if (r->type == ROW_LABELS) {
			fputs((*(char *const *const *)v)[i], f);
		} else {
			addr_print(&range[i].base, f);
			fprintf(f, "/%u", range[i].bits);
		}
	}
}

void config_value_print(const struct config_row *r, const void *base, FILE *f)
{
	const void *v = cfield(r, base);
	char buf[32];

	switch (r->type) {
	case ROW_BOOL:
		fputs(*(const bool *)v ? "yes" : "no", f);
		break;
	case ROW_COUNT:
	case ROW_SIZE:
		if (r->flags & ROW_MAY_BE_NONE) {
			if (*(const uint32_t *)v)
				fprintf(f, "%u", *(const uint32_t *)v - 1);
			break;
		}
		fprintf(f, "%u",
			r->size == sizeof(uint16_t) ? *(const uint16_t *)v
						    : *(const uint32_t *)v);
		break;
	case ROW_RATE:
		rate_print(*(const uint32_t *)v, f);
		break;
	case ROW_SHARE: {
		char share[24];

		fputs(check_share_text(v, share), f);
		break;
	}
	case ROW_REAL:
		fprintf(f, "%.15g", *(const double *)v);
		break;
	case ROW_TIME:
		fputs(config_time_text(*(const int64_t *)v, buf), f);
		break;
	case ROW_LABEL:
	case ROW_PATH:
	case ROW_PROGRAM:
	case ROW_GLOBS:
		fputs(v, f);
		break;
	case ROW_LIMITS:
		limits_print(v, f);
		break;
	case ROW_ENUM:
		fputs(enum_text(r->names, *(const int *)v - (int)r->min), f);
		break;
	case ROW_TRANSPORTS:
		transports_print(*(const uint32_t *)v, f);
		break;
	case ROW_ADDRESS:
		addr_print(v, f);
		break;
	case ROW_PORT_ADDRESS:
		fputs(((const struct config_port *)base)->address, f);
		break;
	case ROW_ADDRESSES:
	case ROW_PEER_ADDRESSES:
	case ROW_RANGES:
	case ROW_LABELS:
		list_print(r, base, f);
		break;
	}
}

/* The text of an address says all of it. */
static bool grown_equal(const struct config_row *r, const void *a, const void *b)
{
	void *const *va = cfield(r, a), *const *vb = cfield(r, b);
	int n = list_n(r, a);

	if (n != list_n(r, b))
		return false;
	for (int i = 0; i < n; i++)
		if (r->type == ROW_LABELS
			    ? !str_eq(((char **)*va)[i], ((char **)*vb)[i])
			    : !str_eq(((struct config_addr *)*va)[i].text,
				      ((struct config_addr *)*vb)[i].text))
			return false;
	return true;
}

static bool list_equal(const struct config_row *r, const void *a, const void *b)
{
	const char *va = cfield(r, a), *vb = cfield(r, b);
	size_t one = r->size / (size_t)r->max;
	int n = list_n(r, a);

	if (n != list_n(r, b))
		return false;
	for (int i = 0; i < n; i++, va += one, vb += one)
		if (memcmp(va, vb, one) != 0)
			return false;
	return true;
}

bool config_value_equal(const struct config_row *r, const void *a, const void *b)
{
	switch (r->type) {
	case ROW_BOOL:
	case ROW_COUNT:
	case ROW_REAL:
	case ROW_TIME:
	case ROW_SIZE:
	case ROW_RATE:
	case ROW_SHARE:
	case ROW_ENUM:
	case ROW_TRANSPORTS:
	case ROW_ADDRESS:
	case ROW_PORT_ADDRESS:
	case ROW_LIMITS:
		return !memcmp(cfield(r, a), cfield(r, b), r->size);
	case ROW_LABEL:
	case ROW_PATH:
	case ROW_PROGRAM:
	case ROW_GLOBS:
		return str_eq(cfield(r, a), cfield(r, b));
	case ROW_PEER_ADDRESSES:
	case ROW_LABELS:
		return grown_equal(r, a, b);
	case ROW_ADDRESSES:
	case ROW_RANGES:
		break;
	}
	return list_equal(r, a, b);
}

void config_value_copy(const struct config_row *r, void *to, const void *from)
{
	assert(!is_grown(r)); /* they have one owner each */
	memcpy(field(r, to), cfield(r, from), r->size);
	if (r->n_offset)
		*list_count(r, to) = list_n(r, from);
}
