/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A topology file: what is read is written, read again and written as the same bytes;
 * it can be drawn, and differs from itself in nothing.
 */
#include "fuzz.h"

#include <stdlib.h>

#include "dot.h"
#include "ibnet.h"
#include "topo_diff.h"

/* Owned by the caller; *ret_len without the end. */
static char *write_all(const struct subnet *s, size_t *ret_len)
{
	struct ibnet_writer *w = ibnet_writer_new(s, NULL, "Mon Nov 30 05:50:02 2026");
	size_t len = 0;
	char *all = NULL;
	const char *piece;

	while ((piece = ibnet_next(w))) {
		size_t n = strlen(piece);

		all = xrealloc(all, len + n + 1, 1);
		memcpy(all + len, piece, n + 1);
		len += n;
	}
	(void)ibnet_writer_free(w);
	*ret_len = len;
	return all;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct subnet *s = subnet_new(), *again = subnet_new();
	char why[256] = "";
	struct topo_diff diff;
	size_t len, len2;
	char *text, *text2;

	if (ibnet_read((const char *)data, size, s, why, sizeof(why)) == 0) {
		text = write_all(s, &len);
		if (ibnet_read(text, len, again, why, sizeof(why)))
			abort();
		text2 = write_all(again, &len2);
		if (len != len2 || memcmp(text, text2, len) != 0)
			abort();
		topo_compare(s, again, &diff);
		if (diff.n)
			abort();
		topo_diff_done(&diff);
		free(text);
		free(text2);
		free(dot_text(s, "fuzz"));
	} else if (!*why) {
		abort();
	}
	(void)subnet_free(s);
	(void)subnet_free(again);
	return 0;
}
