/* SPDX-License-Identifier: BSD-2-Clause */
#include "idl.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util.h"

/* ---- parser; a mistake sets @bad and every later step gives up ---- */

struct parser {
	const char *at;
	const char *bad;
	json_t *idl;
};

static void skip(struct parser *p)
{
	for (;;) {
		while (isspace((unsigned char)*p->at))
			p->at++;
		if (*p->at != '#')
			return;
		p->at += strcspn(p->at, "\n");
	}
}

static bool take(struct parser *p, const char *token)
{
	skip(p);
	if (strncmp(p->at, token, strlen(token)))
		return false;
	p->at += strlen(token);
	return true;
}

static void need(struct parser *p, const char *token)
{
	if (!take(p, token) && !p->bad)
		p->bad = p->at;
}

static char *word(struct parser *p)
{
	size_t n = 0;
	char *w;

	skip(p);
	while (isalnum((unsigned char)p->at[n]) || p->at[n] == '_' || p->at[n] == '.')
		n++;
	if (!n && !p->bad)
		p->bad = p->at;
	w = xcalloc(n + 1, 1);
	memcpy(w, p->at, n);
	p->at += n;
	return w;
}

static json_t *type_parse(struct parser *p);

/* "(a: int, b: string)" is a struct, "(a, b)" an enum, "()" an empty struct. */
static json_t *list_parse(struct parser *p)
{
	json_t *fields = json_object(), *names = json_array();
	bool first = true;

	while (!p->bad && !take(p, ")")) {
		_cleanup_(freep) char *name = NULL;

		if (!first)
			need(p, ",");
		first = false;
		name = word(p);
		if (take(p, ":")) {
			json_t *type = type_parse(p);

			if (json_object_get(fields, name) && !p->bad)
				p->bad = p->at;
			(void)json_object_set_new(fields, name, type);
		} else {
			(void)json_array_append_new(names, json_string(name));
		}
	}
	if (json_array_size(names) && json_object_size(fields) && !p->bad)
		p->bad = p->at;
	if (json_array_size(names)) {
		json_decref(fields);
		return json_pack("{s:o}", "enum", names);
	}
	json_decref(names);
	return json_pack("{s:o}", "struct", fields);
}

static json_t *type_parse(struct parser *p)
{
	_cleanup_(freep) char *name = NULL;

	if (p->bad)
		return json_null();
	if (take(p, "?"))
		return json_pack("{s:o}", "maybe", type_parse(p));
	if (take(p, "[]"))
		return json_pack("{s:o}", "array", type_parse(p));
	if (take(p, "[string]"))
		return json_pack("{s:o}", "map", type_parse(p));
	if (take(p, "("))
		return list_parse(p);
	name = word(p);
	return json_string(name);
}

static void member_parse(struct parser *p)
{
	_cleanup_(freep) char *what = word(p), *name = word(p);
	_cleanup_(freep) char *group_name = xasprintf("%ss", what);
	json_t *group = json_object_get(p->idl, group_name);
	json_t *type = type_parse(p);

	if (!strcmp(what, "method")) {
		need(p, "->");
		type = json_pack("{s:o, s:o}", "in", type, "out", type_parse(p));
	}
	if ((!group || json_object_get(group, name)) && !p->bad)
		p->bad = p->at;
	if (p->bad)
		json_decref(type);
	else
		(void)json_object_set_new(group, name, type);
}

json_t *idl_parse(const char *text)
{
	struct parser p = {.at = text};
	_cleanup_(freep) char *name = NULL;

	p.idl = json_pack("{s:{}, s:{}, s:{}}", "types", "methods", "errors");
	need(&p, "interface");
	name = word(&p);
	(void)json_object_set_new(p.idl, "interface", json_string(name));
	skip(&p);
	while (!p.bad && *p.at) {
		member_parse(&p);
		skip(&p);
	}
	if (!p.bad)
		return p.idl;
	(void)fprintf(stderr, "IDL: wrong at: %.40s\n", p.bad);
	json_decref(p.idl);
	return NULL;
}

json_t *idl_type(const json_t *idl, const char *name)
{
	return json_object_get(json_object_get(idl, "types"), name);
}

json_t *idl_method(const json_t *idl, const char *name)
{
	return json_object_get(json_object_get(idl, "methods"), name);
}

/* ---- check ---- */

static int wrong(char *why, size_t size, const char *text)
{
	(void)str_copy(why, size, text);
	return -1;
}

/* Put where it is in front of what is wrong there. */
static int within(char *why, size_t size, const char *where)
{
	_cleanup_(freep) char *inner = xstrdup(why);

	(void)snprintf(why, size, "%s: %s", where, inner);
	return -1;
}

static int check_struct(const json_t *idl, json_t *fields, const json_t *value,
			char *why, size_t size)
{
	const char *key;
	json_t *v, *type;

	if (!json_is_object(value))
		return wrong(why, size, "no object");
	json_object_foreach ((json_t *)value, key, v) {
		type = json_object_get(fields, key);
		(void)str_copy(why, size, "not in the IDL");
		if (!type || idl_check(idl, type, v, why, size) < 0)
			return within(why, size, key);
	}
	json_object_foreach (fields, key, v) {
		(void)str_copy(why, size, "not there");
		if (!json_object_get(value, key))
			return within(why, size, key);
	}
	return 0;
}

static int check_elements(const json_t *idl, const json_t *type, const json_t *value,
			  char *why, size_t size)
{
	const char *key;
	json_t *v;
	size_t i;

	json_array_foreach (value, i, v)
		if (idl_check(idl, type, v, why, size) < 0)
			return -1;
	json_object_foreach ((json_t *)value, key, v)
		if (idl_check(idl, type, v, why, size) < 0)
			return within(why, size, key);
	return 0;
}

static int check_enum(json_t *names, const json_t *value, char *why, size_t size)
{
	size_t i;
	json_t *name;

	json_array_foreach (names, i, name)
		if (json_equal(name, value))
			return 0;
	return wrong(why, size, "not in the enum");
}

static int check_name(const json_t *idl, const char *name, const json_t *value,
		      char *why, size_t size)
{
	const json_t *type = idl_type(idl, name);
	bool good = false;

	if (type)
		return idl_check(idl, type, value, why, size);
	if (!strcmp(name, "int"))
		good = json_is_integer(value);
	else if (!strcmp(name, "float"))
		good = json_is_real(value);
	else if (!strcmp(name, "string"))
		good = json_is_string(value);
	else if (!strcmp(name, "bool"))
		good = json_is_boolean(value);
	else if (!strcmp(name, "object"))
		good = json_is_object(value);
	return good ? 0 : wrong(why, size, name);
}

int idl_check(const json_t *idl, const json_t *type, const json_t *value, char *why,
	      size_t size)
{
	json_t *t;

	if (json_is_string(type))
		return check_name(idl, json_string_value(type), value, why, size);
	if ((t = json_object_get(type, "maybe")))
		return json_is_null(value) ? 0 : idl_check(idl, t, value, why, size);
	if ((t = json_object_get(type, "enum")))
		return check_enum(t, value, why, size);
	if ((t = json_object_get(type, "struct")))
		return check_struct(idl, t, value, why, size);
	if ((t = json_object_get(type, "array")))
		return json_is_array(value) ? check_elements(idl, t, value, why, size)
					    : wrong(why, size, "no array");
	if ((t = json_object_get(type, "map")))
		return json_is_object(value) ? check_elements(idl, t, value, why, size)
					     : wrong(why, size, "no object");
	return wrong(why, size, "no type");
}
