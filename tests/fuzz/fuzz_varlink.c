/* SPDX-License-Identifier: BSD-2-Clause */
/* A client's bytes: however they are cut, the same requests come out of them, and what
 * is a request can be said again and means the same. */
#include "fuzz.h"

#include <stdlib.h>

#include "varlink.h"

#define MAX_LEN 512

struct seen {
	int error;
	uint64_t sum; /* over all requests and how they ended */
};

/* Equal but for the digits that a real number is said with. */
static bool same(const json_t *a, const json_t *b)
{
	const size_t how = JSON_SORT_KEYS | JSON_REAL_PRECISION(10);
	char *x = json_dumps(a, how), *y = json_dumps(b, how);
	bool equal = x && y && !strcmp(x, y);

	free(x);
	free(y);
	return equal;
}

static void check_request(const char *text, size_t len)
{
	struct varlink_request r, again;
	const struct varlink_method *m;
	const char *param = NULL;
	char why[128] = "", *said;

	if (varlink_request_parse(text, len, &r, why, sizeof(why)) < 0) {
		if (!why[0] || r.root)
			abort();
		return;
	}
	m = varlink_method_find(r.method);
	if (m && varlink_params_check(m, r.parameters, &param) < 0 && !param)
		abort();
	said = varlink_call_text(r.method, json_incref(r.parameters), r.more);
	if (varlink_request_parse(said, strlen(said), &again, why, sizeof(why)) < 0 ||
	    strcmp(again.method, r.method) != 0 || again.more != r.more ||
	    !same(again.parameters, r.parameters))
		abort();
	free(said);
	varlink_request_done(&again);
	varlink_request_done(&r);
}

static void take_all(struct varlink_frame *f, struct seen *seen, bool check)
{
	char *text, end;
	size_t len;

	while (varlink_frame_next(f, &text, &len, &end)) {
		if (len != strlen(text) || len > MAX_LEN || !len)
			abort();
		for (size_t i = 0; i < len; i++)
			seen->sum = mix64(seen->sum ^ (uint8_t)text[i]);
		seen->sum = mix64(seen->sum ^ (end ? 0x100 : 0x200));
		if (check)
			check_request(text, len);
	}
}

static struct seen feed(const uint8_t *data, size_t size, size_t chunk)
{
	struct varlink_frame *f = varlink_frame_new(MAX_LEN);
	struct seen seen = {0};

	for (size_t at = 0; at < size && !seen.error; at += chunk) {
		seen.error = varlink_frame_put(f, data + at, MIN(chunk, size - at));
		take_all(f, &seen, chunk == size);
	}
	varlink_frame_eof(f);
	take_all(f, &seen, chunk == size);
	varlink_frame_free(f);
	return seen;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct seen whole, cut;

	if (size < 2)
		return 0;
	whole = feed(data + 1, size - 1, size - 1);
	cut = feed(data + 1, size - 1, data[0] % 17 + 1);
	if (whole.error != cut.error || whole.sum != cut.sum)
		abort();
	return 0;
}
