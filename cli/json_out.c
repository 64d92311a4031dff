/* SPDX-License-Identifier: BSD-2-Clause */
#include "json_out.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* Without binary noise in ages; only ASCII, so that nothing in it can be a terminal's
 * command. */
#define DUMP_FLAGS (JSON_ENSURE_ASCII | JSON_REAL_PRECISION(15))

static void put_scalar(FILE *out, const json_t *v)
{
	if (json_is_string(v)) {
		const char *s = json_string_value(v);

		/* A text that would fall apart at its blanks is quoted. */
		if (!*s || strpbrk(s, " \"\\"))
			(void)json_dumpf(v, out, JSON_ENCODE_ANY);
		else
			(void)fputs(s, out);
	} else if (json_is_null(v)) {
		(void)fputc('-', out);
	} else {
		(void)json_dumpf(v, out, JSON_ENCODE_ANY | DUMP_FLAGS);
	}
}

static bool all_scalar(const json_t *array)
{
	size_t i;
	json_t *e;

	json_array_foreach (array, i, e)
		if (json_is_object(e) || json_is_array(e))
			return false;
	return true;
}

static void put_pairs(FILE *out, const char *prefix, const json_t *v, bool *first);

static void put_list(FILE *out, const char *key, const json_t *array, bool *first)
{
	size_t i;
	json_t *e;

	if (!all_scalar(array)) {
		json_array_foreach (array, i, e) {
			_cleanup_(freep) char *name = xasprintf("%s.%zu", key, i);

			put_pairs(out, name, e, first);
		}
		return;
	}
	(void)fprintf(out, "%s%s ", *first ? "" : " ", key);
	*first = false;
	json_array_foreach (array, i, e) {
		if (i)
			(void)fputc(',', out);
		put_scalar(out, e);
	}
	if (!json_array_size(array))
		(void)fputc('-', out);
}

static void put_pairs(FILE *out, const char *prefix, const json_t *v, bool *first)
{
	const char *key;
	json_t *e;

	if (json_is_array(v)) {
		put_list(out, prefix, v, first);
	} else if (json_is_object(v)) {
		json_object_foreach ((json_t *)v, key, e) {
			_cleanup_(freep) char *name =
				xasprintf("%s%s%s", prefix, *prefix ? "." : "", key);

			put_pairs(out, name, e, first);
		}
	} else {
		(void)fprintf(out, "%s%s ", *first ? "" : " ", prefix);
		*first = false;
		put_scalar(out, v);
	}
}

static void put_line(const struct cli *c, const json_t *v)
{
	bool first = true;

	if (c->json)
		(void)json_dumpf(v, c->layout.out, JSON_COMPACT | DUMP_FLAGS);
	else
		put_pairs(c->layout.out, "", v, &first);
	(void)fputc('\n', c->layout.out);
}

int json_out(const struct cli *c, const json_t *v)
{
	size_t i;
	json_t *e;

	if (c->oneline && json_is_array(v)) {
		json_array_foreach (v, i, e)
			put_line(c, e);
	} else if (c->oneline) {
		put_line(c, v);
	} else {
		(void)json_dumpf(v, c->layout.out,
				 DUMP_FLAGS |
					 (c->pretty ? JSON_INDENT(2) : JSON_COMPACT));
		(void)fputc('\n', c->layout.out);
	}
	return EXIT_OK;
}
