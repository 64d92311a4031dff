/* SPDX-License-Identifier: BSD-2-Clause */
#include "config_int.h"

/* ---- limits and shares ---- */

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

		w += strspn(w, VALUE_BLANKS);
		for (n = strlen(w); n && strchr(VALUE_BLANKS, w[n - 1]); n--)
			w[n - 1] = '\0';
		if (counter_limit_parse(w, &new, why, sizeof(why)) < 0)
			return config_wrong(err, "'%s': %s", config_quote(w, q), why);
		any = true;
	}
	if (!any)
		return config_wrong(err, "there is nothing between the commas");
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
	return config_wrong(err, "'%s' is not %s%s", config_quote(text, q), range,
			    near ? "; did you mean all?" : "");
}

static bool limit_differs(const struct counter_limits *a,
			  const struct counter_limits *b, int c)
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
				counter_limit_text(l, (enum counter)c, buf,
						   sizeof(buf)));
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
		if (config_bool_parse(text, row_field(r, base)) < 0)
			return config_wrong(err, "'%s' is not yes or no",
					    config_quote(text, q));
		return 0;
	case ROW_COUNT:
	case ROW_REAL:
	case ROW_TIME:
	case ROW_SIZE:
	case ROW_RATE:
		return config_number_parse(r, base, text, err);
	case ROW_SHARE:
		return share_parse(row_field(r, base), text, r, err);
	case ROW_LABEL:
		return config_label_parse(row_field(r, base), r->size, text, err);
	case ROW_PATH:
		return config_path_parse(r, row_field(r, base), text, err);
	case ROW_PROGRAM:
		return config_program_parse(r, row_field(r, base), text, err);
	case ROW_LIMITS:
		return limits_parse(row_field(r, base), text, fresh, err);
	case ROW_ENUM:
		return config_enum_parse(r, row_field(r, base), text, err);
	case ROW_ADDRESS:
		return config_ip_parse(text, row_field(r, base), NULL, err);
	case ROW_PORT_ADDRESS:
		return config_port_addr_parse(base, text, err);
	case ROW_PEER_ADDRESSES:
	case ROW_LABELS:
		return config_grown_parse(r, base, text, fresh, err);
	case ROW_TRANSPORTS:
	case ROW_ADDRESSES:
	case ROW_RANGES:
	case ROW_GLOBS:
		break;
	}
	return config_list_parse(r, base, text, fresh, err);
}

void config_value_reset(const struct config_row *r, void *base)
{
	char err[CONFIG_ERR_MAX];
	int ret = 0;

	if (config_is_grown(r))
		config_grown_clear(r, base);
	memset(row_field(r, base), 0, r->size);
	if (r->n_offset)
		*row_count(r, base) = 0;
	if (r->type == ROW_LIMITS)
		counter_limits_default(row_field(r, base));
	if (r->type == ROW_PORT_ADDRESS)
		((struct config_port *)base)->address[0] = '\0';
	if (*r->def)
		ret = config_value_parse(r, base, r->def, true, err);
	assert(ret ==
	       0); /* the table's own defaults are valid: test_config proves it */
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

void config_value_print(const struct config_row *r, const void *base, FILE *f)
{
	const void *v = row_cfield(r, base);
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
		config_rate_print(*(const uint32_t *)v, f);
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
		config_addr_print(v, f);
		break;
	case ROW_PORT_ADDRESS:
		fputs(((const struct config_port *)base)->address, f);
		break;
	case ROW_ADDRESSES:
	case ROW_PEER_ADDRESSES:
	case ROW_RANGES:
	case ROW_LABELS:
		config_list_print(r, base, f);
		break;
	}
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
		return !memcmp(row_cfield(r, a), row_cfield(r, b), r->size);
	case ROW_LABEL:
	case ROW_PATH:
	case ROW_PROGRAM:
	case ROW_GLOBS:
		return str_eq(row_cfield(r, a), row_cfield(r, b));
	case ROW_PEER_ADDRESSES:
	case ROW_LABELS:
		return config_grown_equal(r, a, b);
	case ROW_ADDRESSES:
	case ROW_RANGES:
		break;
	}
	return config_list_equal(r, a, b);
}

void config_value_copy(const struct config_row *r, void *to, const void *from)
{
	assert(!config_is_grown(r)); /* they have one owner each */
	memcpy(row_field(r, to), row_cfield(r, from), r->size);
	if (r->n_offset)
		*row_count(r, to) = row_n(r, from);
}
