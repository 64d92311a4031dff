/* SPDX-License-Identifier: BSD-2-Clause */
/* The picture: who stands above whom, what is coloured, and that no name breaks out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "dot.h"
#include "ibnet.h"

static struct subnet *read_text(const char *text)
{
	struct subnet *s = subnet_new();
	char why[256] = "";
	int r = ibnet_read(text, strlen(text), s, why, sizeof(why));

	if (r)
		fail_msg("%s", why);
	return s;
}

static const char two_levels[] = "Ca 1 \"h1\"\n[1] \"leaf1\"[1]\n"
				 "Ca 2 \"h2\"\n[1] \"leaf2\"[1]\n"
				 "Switch 8 \"leaf1\"\n[1] \"h1\"[1]\n[7] \"spine\"[1]\n"
				 "[8] \"spine\"[2]\n"
				 "Switch 8 \"leaf2\"\n[1] \"h2\"[1]\n[7] \"spine\"[3]\n"
				 "Switch 8 \"spine\"\n[1] \"leaf1\"[7]\n"
				 "[2] \"leaf1\"[8]\n[3] \"leaf2\"[7]\n";
/* As ibsim gives them out: hosts 100000 and 100002, leaves 200000 and 200001. */
#define H1    "\"0000000000100000\""
#define H2    "\"0000000000100002\""
#define LEAF1 "\"0000000000200000\""
#define LEAF2 "\"0000000000200001\""
#define SPINE "\"0000000000200002\""

static bool has(const char *text, const char *part)
{
	return strstr(text, part) != NULL;
}

static int times(const char *text, const char *part)
{
	int n = 0;

	while ((text = strstr(text, part))) {
		text += strlen(part);
		n++;
	}
	return n;
}

static void test_ranks(void **state)
{
	struct subnet *s = read_text(two_levels);
	_cleanup_(freep) char *text = dot_text(s, "two levels");

	(void)state;
	assert_true(has(text, "label=\"two levels\""));
	assert_true(has(text, "{ rank=same; " LEAF1 "; " LEAF2 "; }"));
	assert_true(has(text, "{ rank=same; " SPINE "; }"));
	/* Each edge once, from the upper to the lower. */
	assert_true(has(text, SPINE " -- " LEAF1 " [label=\"2\", penwidth"));
	assert_true(has(text, SPINE " -- " LEAF2 " [tooltip"));
	assert_true(has(text, LEAF1 " -- " H1 " [tooltip"));
	assert_true(has(text, LEAF2 " -- " H2 " [tooltip"));
	assert_int_equal(times(text, " -- "), 4 + 1);
	assert_int_equal(times(text, "style=invis"), 1);
	assert_true(has(text, "tooltip=\"1-7"));
	(void)subnet_free(s);
}

static void set_port(struct subnet *s, uint64_t guid, unsigned num, uint8_t state,
		     uint8_t width)
{
	struct physp *p = node_physp(subnet_node_by_guid(s, guid), num);
	struct port_info pi = p->info;

	pi.state = state;
	pi.width_supported = pi.width_enabled = 3;
	pi.width_active = width;
	pi.speed_supported = pi.speed_enabled = pi.speed_active = 1;
	physp_set_info(p, &pi);
}

static void test_colours(void **state)
{
	struct subnet *s = read_text(two_levels);
	_cleanup_(freep) char *text = NULL;

	(void)state;
	set_port(s, 0x200000, 7, IB_ACTIVE, 1);
	set_port(s, 0x200002, 1, IB_ACTIVE, 1);
	set_port(s, 0x200000, 1, IB_DOWN, 1);
	subnet_node_by_guid(s, 0x100002)->flags = NODE_DUPLICATE;
	text = dot_text(s, NULL);
	assert_true(has(text,
			SPINE " -- " LEAF1 " [label=\"2, 1 degraded: width 1x of 4x\", "
			      "color=darkorange"));
	assert_true(has(text, LEAF1 " -- " H1 " [label=\"1 down\", color=red"));
	assert_true(has(text, H2 " [label=\"h2\", tooltip="));
	assert_int_equal(times(text, "color=red, penwidth=2];"), 1);
	(void)subnet_free(s);
}

/* Quotes, backslashes and control characters stay inside of the text. */
static void test_names(void **state)
{
	struct subnet *s = read_text(two_levels);
	struct ib_node *n = subnet_node_by_guid(s, 0x100000);
	_cleanup_(freep) char *text = NULL;

	(void)state;
	(void)str_copy(n->desc, sizeof(n->desc), "a\"]; b\\ \n\x1b");
	n = subnet_node_by_guid(s, 0x100002);
	n->desc_known = false;
	text = dot_text(s, "\"quoted\"");
	assert_true(has(text, H1 " [label=\"a\\\"]; b\\\\ ??\","));
	assert_true(has(text, H2 " [label=\"0x100002\","));
	assert_true(has(text, "label=\"\\\"quoted\\\"\""));
	assert_false(has(text, "\x1b"));
	(void)subnet_free(s);
}

/* Many hosts stand in rows, each held by the one above it at the same switch. */
static void test_rows(void **state)
{
	_cleanup_(freep) char *net = NULL, *text = NULL;
	size_t size = 0;
	FILE *f = open_memstream(&net, &size);
	struct subnet *s;

	(void)state;
	assert_non_null(f);
	for (int i = 1; i <= 60; i++)
		(void)fprintf(f, "Ca 1 \"host%02d\"\n[1] \"sw\"[%d]\n", i, i);
	(void)fprintf(f, "Switch 60 \"sw\"\n");
	for (int i = 1; i <= 60; i++)
		(void)fprintf(f, "[%d] \"host%02d\"[1]\n", i, i);
	assert_int_equal(fclose(f), 0);
	s = read_text(net);
	text = dot_text(s, NULL);
	/* 60 names of 6 characters with room of 4: 600 in rows of 180, so 4 rows. */
	assert_int_equal(times(text, "style=invis"), 45);
	assert_int_equal(times(text, " -- "), 60 + 45);
	(void)subnet_free(s);
}

/* Nothing, a node alone, a loop plug, hosts back to back. */
static void test_odd(void **state)
{
	struct subnet *s = subnet_new();
	_cleanup_(freep) char *none = dot_text(s, NULL), *odd = NULL;

	(void)state;
	assert_true(has(none, "graph fabric {"));
	assert_false(has(none, "--"));
	(void)subnet_free(s);
	s = read_text("Switch 4 \"s\"\n[1] \"s\"[1]\n[2] \"s\"[3]\n[3] \"s\"[2]\n"
		      "Ca 1 \"a\"\n[1] \"b\"[1]\nCa 1 \"b\"\n[1] \"a\"[1]\n");
	odd = dot_text(s, NULL);
	assert_int_equal(times(odd, "\"0000000000200000\" -- \"0000000000200000\" "
				    "[label=\"2\""),
			 1);
	assert_int_equal(times(odd, "\"0000000000100000\" -- \"0000000000100002\""), 1);
	assert_int_equal(times(odd, " -- "), 2);
	(void)subnet_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ranks), cmocka_unit_test(test_colours),
		cmocka_unit_test(test_names), cmocka_unit_test(test_rows),
		cmocka_unit_test(test_odd),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
