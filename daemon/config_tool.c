/* SPDX-License-Identifier: BSD-2-Clause */
#include "config_tool.h"

#include <stdio.h>
#include <stdlib.h>

#include "config.h"

static void print_problems(const struct config_problems *ps, bool strict)
{
	for (int i = 0; i < ps->n; i++) {
		const struct config_problem *p = &ps->p[i];
		bool error = p->error || (p->unknown && strict);

		if (p->line)
			fprintf(stderr, "%s:%d: ", p->file, p->line);
		else
			fprintf(stderr, "%s: ", p->file);
		fprintf(stderr, "%s%s\n", error ? "" : "warning: ", p->text);
	}
}

int config_check_main(const char *path)
{
	struct config_problems ps;
	struct config *c = config_load(path, &ps, NULL);
	int ret = ps.errors || ps.unknown;

	print_problems(&ps, true);
	config_problems_done(&ps);
	config_free(c);
	return ret;
}

int config_dump_main(const char *path)
{
	struct config_problems ps;
	struct config *c = config_load(path, &ps, NULL);
	char *text = config_dump(c);
	int ret = ps.errors != 0;

	print_problems(&ps, false);
	if (fputs(text, stdout) == EOF || fflush(stdout) == EOF) {
		fprintf(stderr, "cannot write the configuration: %m\n");
		ret = 1;
	}
	free(text);
	config_problems_done(&ps);
	config_free(c);
	return ret;
}
