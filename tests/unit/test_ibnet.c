/* SPDX-License-Identifier: BSD-2-Clause */
/* Topology files: read, written again, and refused with the line that is wrong. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "ibnet.h"

static char *load(const char *name, size_t *ret_len)
{
	_cleanup_(freep) char *path = xasprintf("%s/tests/%s", SOURCE_ROOT, name);
	FILE *f = fopen(path, "r");
	char *text;

	assert_non_null(f);
	text = xcalloc(1, 1 << 20);
	*ret_len = fread(text, 1, (1 << 20) - 1, f);
	assert_int_equal(fclose(f), 0);
	return text;
}

static char *write_all(const struct subnet *s, const char *title)
{
	struct ibnet_writer *w = ibnet_writer_new(s, NULL, title);
	const char *piece;
	char *all = xstrdup("");

	while ((piece = ibnet_next(w))) {
		char *longer = xasprintf("%s%s", all, piece);

		free(all);
		all = longer;
	}
	assert_null(ibnet_next(w));
	(void)ibnet_writer_free(w);
	return all;
}

static struct subnet *read_text(const char *text)
{
	struct subnet *s = subnet_new();
	char why[256] = "";
	int r = ibnet_read(text, strlen(text), s, why, sizeof(why));

	if (r)
		fail_msg("%s", why);
	return s;
}

/* What ibnetdiscover printed is printed again to the byte. */
static void written_as_read(const char *name)
{
	static const char words[] = "generated on ";
	size_t len;
	_cleanup_(freep) char *text = load(name, &len), *again = NULL, *title = NULL;
	const char *when = strstr(text, words);
	struct subnet *s = read_text(text);

	assert_non_null(when);
	when += strlen(words);
	title = xasprintf("%.*s", (int)strcspn(when, "\n"), when);
	again = write_all(s, title);
	assert_string_equal(again, text);
	(void)subnet_free(s);
}

static void test_same_bytes(void **state)
{
	(void)state;
	written_as_read("golden/fabctl/small.topo");
	written_as_read("golden/fabctl/fifty.topo");
	written_as_read("golden/topology/mixed.topo");
	written_as_read("golden/topology/multiport.topo");
	written_as_read("golden/topology/torus.topo");
}

static const char kinds[] = "#\n"
			    "# Initiated from node 0000000000000011 port 0000000000000013\n"
			    "\n"
			    "vendid=0x119f\n"
			    "devid=0x1b02\n"
			    "switchguid=0x21(22)\n"
			    "Switch\t6 \"S-0000000000000021\"\t\t# \"a \"quoted\" one\" "
			    "enhanced port 0 lid 8 lmc 3\n"
			    "[1]\t\"H-0000000000000011\"[1](12) \t\t# \"host\" lid 4 2xNDR\n"
			    "[2]\t\"H-0000000000000011\"[2](13) \t\t# \"host\" lid 5 12xFDR\n"
			    "[3]\t\"S-0000000000000021\"[3]\t\t# \"a \"quoted\" one\" lid 8 "
			    "8xSDR\n"
			    "[4]\t\"R-0000000000000031\"[1](32) \t\t# \"\" lid 0 ?\?\?\?\?\n"
			    "[5]\t\"S-0000000000000021\"[6]\t\t# \"a \"quoted\" one\" lid 8 "
			    "4xXDR\n"
			    "[6]\t\"S-0000000000000021\"[5]\t\t# \"a \"quoted\" one\" lid 8 "
			    "4xXDR\n"
			    "\n"
			    "vendid=0x0\n"
			    "devid=0x0\n"
			    "sysimgguid=0x10\n"
			    "caguid=0x11\n"
			    "Ca\t2 \"H-0000000000000011\"\t\t# \"host\"\n"
			    "[1](12) \t\"S-0000000000000021\"[1]\t\t# lid 4 lmc 1 "
			    "\"a \"quoted\" one\" lid 8 2xNDR\n"
			    "[2](13) \t\"S-0000000000000021\"[2]\t\t# lid 5 lmc 0 "
			    "\"a \"quoted\" one\" lid 8 12xFDR\n"
			    "\n"
			    "vendid=0x0\n"
			    "devid=0x0\n"
			    "rtguid=0x31\n"
			    "Rt\t1 \"R-0000000000000031\"\t\t# \"\"\n"
			    "[1](32) \t\"S-0000000000000021\"[4]\t\t# lid 0 lmc 0 "
			    "\"a \"quoted\" one\" lid 8 4xQDR\n";

/* Routers, an enhanced port 0, a loop plug, a cable from a switch to itself, extended
 * speeds, unknown codes, no system image GUID, port GUIDs of their own. */
static void test_all_kinds(void **state)
{
	struct subnet *s = read_text(kinds);
	_cleanup_(freep) char *again = write_all(s, NULL);
	const struct ib_node *host = subnet_node_by_guid(s, 0x11);
	const struct ib_node *sw = subnet_node_by_guid(s, 0x21);
	const struct physp *plug = node_physp(sw, 3);

	(void)state;
	assert_string_equal(again, kinds);
	assert_ptr_equal(subnet_next(s, NULL), host);
	assert_int_equal(host->info.port_guid, 0x13);
	assert_string_equal(host->desc, "host");
	assert_true(sw->sw.enhanced_port0);
	assert_int_equal(sw->info.vendor_id, 0x119f);
	assert_int_equal(sw->info.device_id, 0x1b02);
	assert_int_equal(physp_base_lid(node_physp(sw, 0)), 8);
	assert_int_equal(physp_lmc(node_physp(sw, 0)), 3);
	assert_ptr_equal(physp_remote(plug), plug);
	assert_int_equal(physp_speed(node_physp(sw, 1)), SPEED_NDR);
	assert_int_equal(node_physp(sw, 1)->info.width_active, 16);
	assert_int_equal(physp_speed(node_physp(sw, 2)), SPEED_FDR);
	assert_int_equal(physp_speed(node_physp(sw, 5)), SPEED_XDR);
	assert_int_equal(physp_speed(node_physp(sw, 4)), SPEED_UNKNOWN);
	assert_int_equal(node_physp(sw, 3)->info.width_active, 4);
	assert_ptr_equal(subnet_port_by_lid(s, 4)->physp, node_physp(host, 1));
	assert_ptr_equal(subnet_port_by_lid(s, 15)->physp, node_physp(sw, 0));
	(void)subnet_free(s);
}

/* ibsim's: names for GUIDs, no facts, remarks and options. */
static void test_minimal(void **state)
{
	static const char text[] = "width=2\nspeed=4\nextspeed=2\ndo something\n"
				   "# remark\n"
				   "Switch 8 \"Switch1\" # remark\n"
				   "[1]\t\"Hca1\"\n"
				   "[8]\t\"Switch2\"[3]\tw=12 s=4\n"
				   "\n"
				   "Hca\t2 \"Hca1\"\n"
				   "[1] \"Switch1\" [1]\n"
				   "\n"
				   "switchguid=0x500\r\n"
				   "Switch\t3 \"Switch2\"\n"
				   "[3]\t\"Switch1\"[8] # remark";
	struct subnet *s = read_text(text);
	const struct ib_node *a = subnet_node_by_guid(s, 0x200000);
	const struct ib_node *b = subnet_node_by_guid(s, 0x500);
	const struct ib_node *host = subnet_node_by_guid(s, 0x100000);
	struct subnet_counts n;
	char why[128];

	(void)state;
	assert_non_null(a);
	assert_non_null(b);
	assert_non_null(host);
	assert_string_equal(a->desc, "Switch1");
	assert_string_equal(host->desc, "Hca1");
	assert_true(physp_link_exists(node_physp(a, 8), node_physp(b, 3)));
	assert_true(physp_link_exists(node_physp(a, 1), node_physp(host, 1)));
	assert_int_equal(node_physp(host, 1)->guid, 0x100001);
	assert_int_equal(physp_base_lid(node_physp(host, 1)), 0);
	assert_int_equal(physp_speed(node_physp(host, 1)), SPEED_UNKNOWN);
	assert_false(physp_is_degraded(node_physp(host, 1), why));
	assert_int_equal(physp_state(node_physp(a, 8)), IB_ACTIVE);
	assert_int_equal(physp_state(node_physp(a, 2)), IB_DOWN);
	subnet_count(s, &n);
	assert_int_equal(n.nodes, 3);
	assert_int_equal(n.links, 2);
	(void)subnet_free(s);
}

/* ibnetdiscover -g: chassis, and the numbers outside them. */
static void test_grouped(void **state)
{
	static const char text[] =
		"Chassis 1 (guid 0x8f1)\n"
		"# Spine Nodes\n"
		"vendid=0x8f1\ndevid=0x5a38\nsysimgguid=0x1\t\t# Chassis 1\n"
		"switchguid=0x20(20)\t# Spine 1\n"
		"Switch\t2 \"S-0000000000000020\"\t\t# \"s\" base port 0 lid 1 lmc 0\n"
		"[1][ext 13]\t\"S-0000000000000030\"[2][ext 20]\t\t# \"t\" lid 2 4xDDR\n"
		"\n# Chassis Switches\n"
		"vendid=0x8f1\ndevid=0x5a38\nsysimgguid=0x1\nswitchguid=0x30(30)\n"
		"Switch\t2 \"S-0000000000000030\"\t\t# \"t\" base port 0 lid 2 lmc 0\n"
		"[2][ext 20]\t\"S-0000000000000020\"[1][ext 13]\t\t# \"s\" lid 1 4xDDR\n"
		"\nNon-Chassis Nodes\n";
	struct subnet *s = read_text(text);

	(void)state;
	assert_true(physp_link_exists(node_physp(subnet_node_by_guid(s, 0x20), 1),
				      node_physp(subnet_node_by_guid(s, 0x30), 2)));
	(void)subnet_free(s);
}

static void refused(const char *text, size_t len, const char *want)
{
	struct subnet *s = subnet_new();
	char why[256] = "";

	assert_int_equal(ibnet_read(text, len, s, why, sizeof(why)), -EINVAL);
	assert_string_equal(why, want);
	(void)subnet_free(s);
}

static void test_refused(void **state)
{
	static const struct {
		const char *text, *why;
	} cases[] = {
		{"", "0: no node in it"},
		{"# only\n", "1: no node in it"},
		{"hello\n", "1: not a line of a topology file: hello"},
		{"[1] \"a\"[1]\n", "1: a port before any node"},
		{"Ca 0 \"a\"\n", "1: not a number of ports, 1 to 254"},
		{"Ca 255 \"a\"\n", "1: not a number of ports, 1 to 254"},
		{"Ca -1 \"a\"\n", "1: not a number of ports, 1 to 254"},
		{"Ca 1 a\n", "1: no name, or a name that is too long"},
		{"Ca 1 \"\"\n", "1: no name, or a name that is too long"},
		{"Ca 1 \"a\n", "1: no name, or a name that is too long"},
		{"Ca 1 \"a\"\n[2] \"a\"[1]\n", "2: port 2 of a node with 1"},
		{"Ca 1 \"a\"\n[0] \"a\"[1]\n", "2: port 0 of a node with 1"},
		{"Ca 1 \"a\"\n[x] \"a\"[1]\n", "2: not a port"},
		{"Ca 1 \"a\"\n[1](zz) \"a\"[1]\n", "2: not a port"},
		{"Ca 1 \"a\"\n[1]\n", "2: no far end, or its name is too long"},
		{"Ca 1 \"a\"\n[1] \"a\"[0]\n", "2: no port of the far end"},
		{"Ca 1 \"a\"\n[1] \"a\"[1]\n[1] \"a\"[1]\n", "3: port 1 is there twice"},
		{"Ca 1 \"a\"\n[1] \"b\"[1]\n", "2: no node b"},
		{"Ca 1 \"a\"\n[1] \"b\"[1]\nCa 1 \"b\"\n",
		 "2: b port 1 does not say that it is linked to a port 1"},
		{"Ca 1 \"a\"\n[1] \"b\"[1]\nCa 2 \"b\"\n[1] \"a\"[2]\n",
		 "2: b port 1 does not say that it is linked to a port 1"},
		{"Ca 1 \"a\"\nCa 1 \"a\"\n", "2: a second node a"},
		{"caguid=0x5\nCa 1 \"a\"\ncaguid=0x5\nCa 1 \"b\"\n",
		 "2: a second node with this GUID"},
		{"switchguid=0x5\nSwitch 1 \"a\"\nswitchguid=0x5\nSwitch 1 \"b\"\n",
		 "2: a second node with this GUID"},
		{"caguid=0x0\n", "1: not a GUID"},
		{"caguid=0x10000000000000000\n", "1: not a GUID"},
		{"caguid=0xffffffffffffffff\nCa 1 \"a\"\n",
		 "2: no GUIDs are left for its ports"},
		{"switchguid=0xffffffffffffff00\nSwitch 1 \"a\"\nSwitch 1 \"b\"\n",
		 "3: no GUIDs are left for its ports"},
		{"switchguid=0x1(x)\n", "1: not a port GUID"},
		{"vendid=0x1000000\n", "1: not a number, or too large"},
		{"devid=0x10000\n", "1: not a number, or too large"},
		{"include \"x\"\n", "1: include is not understood"},
		{"@1 \"x\"\n", "1: @ is not understood"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		refused(cases[i].text, strlen(cases[i].text), cases[i].why);
	refused("Ca\0 1 \"a\"\n", 10, "1: a zero byte");
}

static void test_limits(void **state)
{
	char line[1200];
	_cleanup_(freep) char *many = NULL;
	size_t size = 0;
	FILE *f = open_memstream(&many, &size);

	(void)state;
	memset(line, '#', sizeof(line));
	line[1024] = '\n';
	refused(line, 1025, "1: no node in it");
	line[1024] = '#';
	line[1025] = '\n';
	refused(line, 1026, "1: over 1024 characters");
	(void)snprintf(line, sizeof(line), "Ca 1 \"%064d\"", 0);
	refused(line, strlen(line), "1: no name, or a name that is too long");

	assert_non_null(f);
	for (int i = 0; i <= IBNET_NODES_MAX; i++)
		(void)fprintf(f, "Ca 1 \"%d\"\n", i);
	assert_int_equal(fclose(f), 0);
	refused(many, size, "65537: more than 65536 nodes");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_same_bytes), cmocka_unit_test(test_all_kinds),
		cmocka_unit_test(test_minimal),	   cmocka_unit_test(test_grouped),
		cmocka_unit_test(test_refused),	   cmocka_unit_test(test_limits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
