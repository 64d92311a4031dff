/* SPDX-License-Identifier: BSD-2-Clause */
/* Words, paths, names and addresses of the config. */
#include "config_int.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>

#define ADDRESS_TEXT_MAX 255

int config_wrong(char err[CONFIG_ERR_MAX], const char *fmt, ...)
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

/* ---- words ---- */

int config_bool_parse(const char *text, bool *ret)
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

int config_enum_parse(const struct config_row *r, int *ret, const char *text,
		      char err[CONFIG_ERR_MAX])
{
	const char *near = names_near(r->names, text);
	int v = enum_find(r->names, text);
	char q[72], range[128];

	if (v < 0) {
		config_row_range(r, range, sizeof(range));
		return config_wrong(err, "'%s' is not %s%s%s%s", config_quote(text, q),
				    range, near ? "; did you mean " : "",
				    near ? near : "", near ? "?" : "");
	}
	*ret = (int)r->min + v;
	return 0;
}

int config_path_parse(const struct config_row *r, char *dst, const char *text,
		      char err[CONFIG_ERR_MAX])
{
	char q[72];

	if (*text != '/' && !(!*text && (r->flags & ROW_MAY_BE_EMPTY)))
		return config_wrong(err, "'%s' is not an absolute path",
				    config_quote(text, q));
	if (strlen(text) > (size_t)r->max)
		return config_wrong(
			err, "path of %zu bytes is too long, at most %.0f are possible",
			strlen(text), r->max);
	(void)str_copy(dst, r->size, text);
	return 0;
}

/* A name without blanks is found in $PATH later; what has a slash must say where. */
int config_program_parse(const struct config_row *r, char *dst, const char *text,
			 char err[CONFIG_ERR_MAX])
{
	char q[72];

	if (strchr(text, '/'))
		return config_path_parse(r, dst, text, err);
	if (strpbrk(text, VALUE_BLANKS) || strlen(text) > (size_t)r->max)
		return config_wrong(err, "'%s' is not the name of a program",
				    config_quote(text, q));
	(void)str_copy(dst, r->size, text);
	return 0;
}

int config_label_parse(char *dst, size_t size, const char *text,
		       char err[CONFIG_ERR_MAX])
{
	const char *why = config_label_wrong(text, size - 1);
	char q[72];

	if (why)
		return config_wrong(err, "name '%s' %s (at most %zu bytes)",
				    config_quote(text, q), why, size - 1);
	(void)str_copy(dst, size, text);
	return 0;
}

/* ---- addresses ---- */

/* @zone NULL: no zone by name. */
int config_ip_parse(const char *text, struct addr *ret, char *zone,
		    char err[CONFIG_ERR_MAX])
{
	char q[72], name[EP_IF_MAX];
	int r = addr_parse(text, ret, zone);

	(void)config_quote(text, q);
	if (r == 0)
		return 0;
	if (!zone && addr_parse(text, ret, name) == 0)
		return config_wrong(err, "zone of '%s' must be an interface index here",
				    q);
	if (strchr(text, '/'))
		return config_wrong(err, "'%s' is a range, wanted is one address", q);
	if (strspn(text, "0123456789.:") == strlen(text) && strchr(text, '.') &&
	    strchr(text, ':'))
		return config_wrong(err,
				    "'%s' has a port in it; the port goes to Port=", q);
	return config_wrong(err, "'%s' is not an IP address", q);
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
		return config_wrong(err, "'%s' is too long for an address", q);
	if (!ip && !config_host_name_valid(text))
		return config_wrong(err,
				    "'%s' is neither an IP address nor a host name", q);
	if (ip && config_ip_parse(text, &ret->addr, zone, err) < 0)
		return -EINVAL;
	if (!ip)
		return 0;
	if (!addr_is_host(&ret->addr))
		return config_wrong(err, "'%s' is not the address of a host", q);
	if (addr_is_link_local(&ret->addr) && !zone[0] && !ret->addr.zone)
		return config_wrong(
			err, "'%s' is link-local and needs a zone, as %s%%ib0", q, q);
	return 0;
}

int config_peer_addr_parse(const char *text, struct config_addr *ret,
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

int config_port_addr_parse(struct config_port *p, const char *text,
			   char err[CONFIG_ERR_MAX])
{
	struct addr a;

	if (config_ip_parse(text, &a, NULL, err) < 0)
		return -EINVAL;
	if (!str_copy(p->address, sizeof(p->address), text))
		return config_wrong(err, "address is too long");
	p->addr = a;
	return 0;
}
