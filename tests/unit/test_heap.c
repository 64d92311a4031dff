/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "heap.h"

#define N 500

/* Random puts, moves and removals against a plain array. */
static void same_as_a_search(void **state)
{
	static struct heap_node nodes[N];
	struct heap h = {0};
	uint64_t rnd = 7;

	(void)state;
	for (int step = 0; step < 20000; step++) {
		struct heap_node *node, *first;
		struct heap_node *least = NULL;

		rnd = mix64(rnd);
		node = &nodes[rnd % N];
		heap_set(&h, node, (struct mono){(rnd >> 20) % 4 ? (int64_t)(rnd >> 32) + 1 : 0});
		if (step % 16)
			continue;
		for (int i = 0; i < N; i++)
			if (nodes[i].at.ns && (!least || nodes[i].at.ns < least->at.ns))
				least = &nodes[i];
		first = heap_first(&h);
		if (!least)
			assert_null(first);
		else
			assert_int_equal(first->at.ns, least->at.ns);
	}
	heap_done(&h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(same_as_a_search),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
