/* SPDX-License-Identifier: BSD-2-Clause */
/* A configuration: whatever the text, what comes of it is dumped, read again without a
 * mistake, and dumped as the same. */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "config.h"

static struct config *parse(const char *text, size_t len, struct config_problems *ps)
{
	struct config *c = config_parse(text, len, "fuzz", false, ps);
	int lines = 1;

	for (size_t i = 0; i < len; i++)
		lines += text[i] == '\n';
	for (int i = 0; i < ps->n; i++)
		if (ps->p[i].line < 0 || ps->p[i].line > lines || !ps->p[i].text[0] ||
		    !memchr(ps->p[i].text, '\0', sizeof(ps->p[i].text)))
			abort();
	return c;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct config_problems first, second;
	struct config *a = parse((const char *)data, size, &first), *b;
	char *dump = config_dump(a), *again;

	b = parse(dump, strlen(dump), &second);
	if (second.errors || second.unknown)
		abort();
	again = config_dump(b);
	if (strcmp(dump, again) != 0 || a->n_peers != b->n_peers)
		abort();
	for (int i = 0; i < a->n_peers; i++)
		if (!config_peer_equal(&a->peers[i], &b->peers[i]))
			abort();
	(void)config_wants_device(a, "mlx5_0");
	(void)config_port_find(a, "mlx5_0/1");
	free(dump);
	free(again);
	config_problems_done(&first);
	config_problems_done(&second);
	config_free(a);
	config_free(b);
	return 0;
}
