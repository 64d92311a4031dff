/* SPDX-License-Identifier: BSD-2-Clause */
#include "fields.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "physp.h"
#include "units.h"

const char *get_text(const json_t *o, const char *key)
{
	return json_string_value(json_object_get(o, key));
}

const char *get_shown(const json_t *o, const char *key)
{
	const char *s = get_text(o, key);

	return s && *s ? s : "-";
}

bool get_int(const json_t *o, const char *key, int64_t *ret)
{
	json_t *v = json_object_get(o, key);

	if (!json_is_integer(v))
		return false;
	*ret = json_integer_value(v);
	return true;
}

int64_t get_count(const json_t *o, const char *key)
{
	int64_t n = 0;

	(void)get_int(o, key, &n);
	return n;
}

double get_sec(const json_t *o, const char *key)
{
	json_t *v = json_object_get(o, key);

	return json_is_number(v) ? json_number_value(v) : -1;
}

bool get_true(const json_t *o, const char *key)
{
	return json_is_true(json_object_get(o, key));
}

json_t *get_array(const json_t *o, const char *key)
{
	json_t *v = json_object_get(o, key);

	return json_is_array(v) ? v : NULL;
}

json_t *get_object(const json_t *o, const char *key)
{
	json_t *v = json_object_get(o, key);

	return json_is_object(v) ? v : NULL;
}

const char *get_number(const json_t *o, const char *key, char buf[24])
{
	int64_t v;

	if (!get_int(o, key, &v))
		return "-";
	(void)snprintf(buf, 24, "%" PRId64, v);
	return buf;
}

const char *get_why(const json_t *o, const char *key)
{
	const char *why = get_text(get_object(o, "unavailable"), key);

	return why && *why ? unit_word(why) : NULL;
}

char *get_joined(const json_t *o, const char *key, const char *sep)
{
	size_t i, size = 0;
	char *text = NULL;
	json_t *e;
	FILE *f = open_memstream(&text, &size);

	if (!f)
		abort();
	json_array_foreach (get_array(o, key), i, e)
		(void)fprintf(f, "%s%s", i ? sep : "",
			      json_is_string(e) ? json_string_value(e) : "?");
	if (fclose(f))
		abort();
	if (size)
		return text;
	free(text);
	return xstrdup("-");
}

char *get_end(const json_t *end)
{
	const char *desc = get_text(end, "node_desc");
	char name[128], port[24];

	if (!end)
		return xstrdup("-");
	if (!desc || !*desc)
		return xasprintf("%s/%s", get_shown(end, "node_guid"),
				 get_number(end, "port", port));
	return xasprintf("%s/%s", node_desc_short(desc, name, sizeof(name)),
			 get_number(end, "port", port));
}

/* A merge sort, which keeps what is equal in its order. */
static void sort_range(json_t **v, json_t **spare, size_t n, json_compare_fn *compare)
{
	size_t half = n / 2, a = 0, b = half;

	if (n < 2)
		return;
	sort_range(v, spare, half, compare);
	sort_range(v + half, spare, n - half, compare);
	for (size_t i = 0; i < n; i++)
		spare[i] = b == n || (a < half && compare(v[a], v[b]) <= 0) ? v[a++]
									    : v[b++];
	memcpy(v, spare, n * sizeof(*v));
}

void json_sort(json_t *array, json_compare_fn *compare)
{
	size_t n = json_array_size(array), i;
	_cleanup_(freep) json_t **v = xcalloc(n, sizeof(*v));
	_cleanup_(freep) json_t **spare = xcalloc(n, sizeof(*spare));
	json_t *e;

	json_array_foreach (array, i, e)
		v[i] = json_incref(e);
	sort_range(v, spare, n, compare);
	(void)json_array_clear(array);
	for (i = 0; i < n; i++)
		(void)json_array_append_new(array, v[i]);
}
