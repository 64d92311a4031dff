/* SPDX-License-Identifier: BSD-2-Clause */
/* What is wrong with a config, and what may have been meant. */
#include "config_int.h"

#include <stdarg.h>
#include <stdlib.h>

#define PROBLEMS_MAX 1000

static struct config_problem *problem_new(struct config_problems *ps)
{
	if ((ps->n & (ps->n - 1)) == 0)
		ps->p = xrealloc(ps->p, ps->n ? (size_t)ps->n * 2 : 1, sizeof(*ps->p));
	memset(&ps->p[ps->n], 0, sizeof(*ps->p));
	return &ps->p[ps->n++];
}

void config_problem(struct config_parser *p, enum problem_kind kind,
		    struct config_origin at, const char *fmt, ...)
{
	struct config_problems *ps = p->problems;
	struct config_problem *one;
	va_list ap;

	if (kind == PROBLEM_ERROR)
		ps->errors++;
	if (kind == PROBLEM_UNKNOWN)
		ps->unknown++;
	if (ps->n > PROBLEMS_MAX)
		return;
	one = problem_new(ps);
	if (ps->n > PROBLEMS_MAX) {
		one->error = true;
		(void)str_copy(one->text, sizeof(one->text),
			       "there are more problems, which are not listed");
		(void)str_copy(one->file, sizeof(one->file), p->c->files[at.file]);
		return;
	}
	one->error = kind == PROBLEM_ERROR;
	one->unknown = kind == PROBLEM_UNKNOWN;
	one->line = at.line;
	(void)str_copy(one->file, sizeof(one->file), p->c->files[at.file]);
	va_start(ap, fmt);
	(void)vsnprintf(one->text, sizeof(one->text), fmt, ap);
	va_end(ap);
}

static int file_place(const struct config_parser *p, const char *name)
{
	for (int i = 0; i < p->c->n_files; i++)
		if (!strncmp(p->c->files[i], name, CONFIG_PATH_MAX - 1))
			return i;
	return p->c->n_files;
}

static int by_place(const void *va, const void *vb, void *user)
{
	const struct config_problem *a = va, *b = vb;
	int fa = file_place(user, a->file), fb = file_place(user, b->file);

	return fa != fb ? fa - fb : a->line - b->line;
}

/* What only the whole shows comes late, but is read in the order of the files. */
void config_problems_sort(struct config_parser *p)
{
	int n = MIN(p->problems->n, PROBLEMS_MAX);

	if (n > 1)
		qsort_r(p->problems->p, (size_t)n, sizeof(*p->problems->p), by_place,
			p);
}

void config_problems_done(struct config_problems *p)
{
	free(p->p);
	memset(p, 0, sizeof(*p));
}

struct config_origin config_here(const struct config_parser *p)
{
	return (struct config_origin){.file = p->c->n_files - 1, .line = p->line};
}

/* ---- did you mean ---- */

static size_t near_enough(const char *word)
{
	return MAX(strlen(word) / 3, 2);
}

static const struct config_row *nearest_key(const char *key, bool own,
					    enum config_section s)
{
	const struct config_row *ret = NULL;
	size_t best = near_enough(key) + 1;

	for (size_t i = 0; i < config_n_rows; i++) {
		const struct config_row *r = &config_rows[i];
		size_t d;

		if (config_row_in(r, s) != own)
			continue;
		d = str_distance(r->key, key);
		if (d < best) {
			best = d;
			ret = r;
		}
	}
	return ret;
}

const char *config_section_title(enum config_section s)
{
	static const char *const titles[SECTION__MAX] = {
		[SECTION_FABD] = "[Fabd]",	[SECTION_PORTS] = "[Ports]",
		[SECTION_HEALTH] = "[Health]",	[SECTION_EXPECT] = "[Expect]",
		[SECTION_PORT] = "[Port NAME]",
		[SECTION_PROBE] = "[Probe]",	[SECTION_PEER] = "[Peer NAME]",
	};
	return titles[s];
}

void config_unknown_key(struct config_parser *p, const char *key)
{
	const struct config_row *own = nearest_key(key, true, p->section);
	const struct config_row *other = nearest_key(key, false, p->section);
	const char *in = config_section_title(p->section);
	char q[72];

	(void)config_quote(key, q);
	if (other && str_eq(other->key, key))
		config_problem(p, PROBLEM_UNKNOWN, config_here(p),
			       "unknown key %s= in %s, it belongs in %s", q, in,
			       config_section_title(other->section));
	else if (own)
		config_problem(p, PROBLEM_UNKNOWN, config_here(p),
			       "unknown key %s= in %s, did you mean %s=?", q, in,
			       own->key);
	else if (other)
		config_problem(p, PROBLEM_UNKNOWN, config_here(p),
			       "unknown key %s= in %s, did you mean %s= of %s?", q, in,
			       other->key, config_section_title(other->section));
	else
		config_problem(p, PROBLEM_UNKNOWN, config_here(p), "unknown key %s= in %s", q,
			       in);
}

void config_unknown_section(struct config_parser *p, const char *kind)
{
	size_t best = near_enough(kind) + 1;
	int near = -1;
	char q[72];

	for (int s = 0; s < SECTION__MAX; s++) {
		size_t d =
			str_distance(config_section_name((enum config_section)s), kind);

		if (d < best) {
			best = d;
			near = s;
		}
	}
	(void)config_quote(kind, q);
	if (near >= 0)
		config_problem(p, PROBLEM_UNKNOWN, config_here(p),
			       "unknown section [%s] is passed over, did you mean %s?",
			       q, config_section_title((enum config_section)near));
	else
		config_problem(p, PROBLEM_UNKNOWN, config_here(p),
			       "unknown section [%s] is passed over, there are [Fabd], "
			       "[Ports], [Health], [Expect], [Port NAME], [Probe], "
			       "[Peer NAME]",
			       q);
}
