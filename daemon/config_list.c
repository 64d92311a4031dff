/* SPDX-License-Identifier: BSD-2-Clause */
/* Lists of the config: those in their place, and those that grow. */
#include "config_int.h"

static int transport_add(uint32_t *set, const char *word, char err[CONFIG_ERR_MAX])
{
	int t = enum_find(&transport_names, word);
	char q[72];

	if (t < 0)
		return config_wrong(err,
				    "'%s' is not a transport, these are udp, rc and ud",
				    config_quote(word, q));
	*set |= UINT32_C(1) << t;
	return 0;
}

static int glob_add(const struct config_row *r, char *dst, const char *word,
		    char err[CONFIG_ERR_MAX])
{
	size_t n = strlen(dst);

	if (n + !!n + strlen(word) > (size_t)r->max)
		return config_wrong(
			err, "patterns are too long, at most %.0f bytes are possible",
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
	return config_wrong(err, "'%s' is not an IP address or a range, as 10.2.0.0/16",
			    config_quote(word, q));
}

static int list_add(const struct config_row *r, void *base, const char *word,
		    char err[CONFIG_ERR_MAX])
{
	int *n, i, ret;

	if (r->type == ROW_TRANSPORTS)
		return transport_add(row_field(r, base), word, err);
	if (r->type == ROW_GLOBS)
		return glob_add(r, row_field(r, base), word, err);
	n = row_count(r, base);
	i = *n;
	if (i >= (int)r->max)
		return config_wrong(err, "too many, at most %.0f are possible", r->max);
	if (r->type == ROW_ADDRESSES)
		ret = config_ip_parse(word, (struct addr *)row_field(r, base) + i, NULL,
				      err);
	else
		ret = range_parse(word, (struct addr_range *)row_field(r, base) + i,
				  err);
	if (ret == 0)
		*n = i + 1;
	return ret;
}

/* ---- grown lists ---- */

bool config_is_grown(const struct config_row *r)
{
	return r->type == ROW_PEER_ADDRESSES || r->type == ROW_LABELS;
}

void config_grown_clear(const struct config_row *r, void *base)
{
	void **list = row_field(r, base);
	int *n = row_count(r, base);

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
	void **list = row_field(r, base);
	int *n = row_count(r, base), ret;
	struct config_addr a;

	if (*n >= (int)r->max)
		return config_wrong(err, "too many, at most %.0f are possible", r->max);
	ret = labels ? config_label_parse(label, sizeof(label), word, err)
		     : config_peer_addr_parse(word, &a, err);
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
	void **list = row_field(r, base);

	for (int *have = row_count(r, base); *have > n;) {
		--*have;
		free(r->type == ROW_LABELS ? ((char **)*list)[*have]
					   : ((struct config_addr *)*list)[*have].text);
	}
}

int config_grown_parse(const struct config_row *r, void *base, const char *text,
		       bool fresh, char err[CONFIG_ERR_MAX])
{
	const char *between = r->type == ROW_LABELS ? VALUE_BLANKS : VALUE_BLANKS ",";
	_cleanup_(freep) char *copy = xstrdup(text);
	void **list = row_field(r, base), *old = *list;
	int *n = row_count(r, base), old_n = *n, ret = 0;
	char *save = NULL;

	if (fresh) { /* the old one stands until the new one is good */
		*list = NULL;
		*n = 0;
	}
	for (char *w = strtok_r(copy, between, &save); w && ret == 0;
	     w = strtok_r(NULL, between, &save))
		ret = grown_add(r, base, w, err);
	if (strspn(text, VALUE_BLANKS ",") == strlen(text))
		ret = config_wrong(err, "there is nothing between the commas");
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
		config_grown_clear(r, base);
		*list = new;
		*n = new_n;
	} else {
		config_grown_clear(r, base);
		*list = old;
		*n = old_n;
	}
	return ret;
}

/* ---- lists in their place ---- */

static void list_clear(const struct config_row *r, void *base)
{
	memset(row_field(r, base), 0, r->size);
	if (r->n_offset)
		*row_count(r, base) = 0;
}

int config_list_parse(const struct config_row *r, void *base, const char *text,
		      bool fresh, char err[CONFIG_ERR_MAX])
{
	bool commas = r->type != ROW_GLOBS;
	_cleanup_(freep) void *old = xcalloc(1, r->size);
	int old_n = r->n_offset ? row_n(r, base) : 0, ret = 0;
	_cleanup_(freep) char *copy = xstrdup(text);
	char *save = NULL;

	memcpy(old, row_field(r, base), r->size);
	if (fresh)
		list_clear(r, base);
	for (char *w = strtok_r(copy, commas ? VALUE_BLANKS "," : VALUE_BLANKS, &save);
	     w && ret == 0; w = strtok_r(NULL, commas ? VALUE_BLANKS "," : VALUE_BLANKS, &save))
		ret = list_add(r, base, w, err);
	if (strspn(text, VALUE_BLANKS ",") == strlen(text))
		ret = config_wrong(err, "there is nothing between the commas");
	if (ret < 0) {
		memcpy(row_field(r, base), old, r->size);
		if (r->n_offset)
			*row_count(r, base) = old_n;
	}
	return ret;
}

void config_addr_print(const struct addr *a, FILE *f)
{
	char buf[ADDR_TEXT_MAX];

	if (addr_is_set(a))
		fputs(addr_format(a, buf), f);
}

void config_list_print(const struct config_row *r, const void *base, FILE *f)
{
	const void *v = row_cfield(r, base);
	const struct addr_range *range = v;
	const struct addr *addr = v;

	for (int i = 0; i < row_n(r, base); i++) {
		if (i)
			fputc(' ', f);
		if (r->type == ROW_ADDRESSES) {
			config_addr_print(addr + i, f);
		} else if (r->type == ROW_PEER_ADDRESSES) {
			fputs((*(struct config_addr *const *)v)[i].text, f);
		} else if (r->type == ROW_LABELS) {
			fputs((*(char *const *const *)v)[i], f);
		} else {
			config_addr_print(&range[i].base, f);
			fprintf(f, "/%u", range[i].bits);
		}
	}
}

/* The text of an address says all of it. */
bool config_grown_equal(const struct config_row *r, const void *a, const void *b)
{
	void *const *va = row_cfield(r, a), *const *vb = row_cfield(r, b);
	int n = row_n(r, a);

	if (n != row_n(r, b))
		return false;
	for (int i = 0; i < n; i++)
		if (r->type == ROW_LABELS
			    ? !str_eq(((char **)*va)[i], ((char **)*vb)[i])
			    : !str_eq(((struct config_addr *)*va)[i].text,
				      ((struct config_addr *)*vb)[i].text))
			return false;
	return true;
}

bool config_list_equal(const struct config_row *r, const void *a, const void *b)
{
	const char *va = row_cfield(r, a), *vb = row_cfield(r, b);
	size_t one = r->size / (size_t)r->max;
	int n = row_n(r, a);

	if (n != row_n(r, b))
		return false;
	for (int i = 0; i < n; i++, va += one, vb += one)
		if (memcmp(va, vb, one) != 0)
			return false;
	return true;
}
