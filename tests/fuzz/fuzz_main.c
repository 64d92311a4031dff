/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Runs a fuzz target over the files of its corpus, so that whatever a fuzzer has found
 * stays found: an ordinary test, with any compiler and any sanitizer.
 */
#include "fuzz.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define INPUT_MAX (1 << 20)

static int run_file(const char *path)
{
	FILE *f = fopen(path, "rb");
	uint8_t *all, *exact;
	size_t n;

	if (!f) {
		fprintf(stderr, "%s: %s\n", path, strerror(errno));
		return -1;
	}
	/* A buffer that ends where the input does, so that a read beyond it is seen. */
	all = malloc(INPUT_MAX);
	n = all ? fread(all, 1, INPUT_MAX, f) : 0;
	exact = malloc(n ? n : 1);
	if (!all || !exact)
		abort();
	(void)fclose(f);
	memcpy(exact, all, n);
	free(all);
	(void)LLVMFuzzerTestOneInput(exact, n);
	free(exact);
	return 0;
}

int main(int argc, char **argv)
{
	unsigned files = 0;
	struct dirent *e;
	DIR *d = argc == 2 ? opendir(argv[1]) : NULL;

	if (!d) {
		fprintf(stderr, "usage: %s DIRECTORY\n", argv[0]);
		return 2;
	}
	while ((e = readdir(d))) {
		char path[4096];
		struct stat st;

		(void)snprintf(path, sizeof(path), "%s/%s", argv[1], e->d_name);
		if (stat(path, &st) || !S_ISREG(st.st_mode))
			continue;
		if (run_file(path) < 0)
			return 1;
		files++;
	}
	(void)closedir(d);
	printf("%u inputs\n", files);
	/* An empty corpus proves nothing. */
	return files ? 0 : 1;
}
