/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * config_text - the texts that are made from the table of configuration keys: the
 * sample file and the manual's list, for the build; check and dump as fabd has them,
 * for the tests.
 */
#include <stdio.h>
#include <stdlib.h>

#include "config.h"
#include "config_tool.h"

static int print(char *text)
{
	int r = fputs(text, stdout) == EOF || fflush(stdout) == EOF;

	free(text);
	return r;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	if (argc == 2 && str_eq(what, "sample"))
		return print(config_sample());
	if (argc == 2 && str_eq(what, "man"))
		return print(config_man());
	if (argc == 3 && str_eq(what, "check"))
		return config_check_main(argv[2]);
	if (argc == 3 && str_eq(what, "dump"))
		return config_dump_main(argv[2]);
	fprintf(stderr, "usage: config_text sample | man | check FILE | dump FILE\n");
	return 2;
}
