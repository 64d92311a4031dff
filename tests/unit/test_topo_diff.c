/* SPDX-License-Identifier: BSD-2-Clause */
/* Two topologies compared: each change told once, in a stable order. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "ibnet.h"
#include "topo_diff.h"

/* A fabric in the making, by node() and cable(). */
struct plan {
	struct subnet *subnet;
};

static void plan_init(struct plan *p)
{
	p->subnet = subnet_new();
}

static struct ib_node *node(struct plan *p, uint8_t type, const char *name,
			    uint64_t guid, uint8_t ports)
{
	struct node_info ni = {.node_type = type,
			       .num_ports = ports,
			       .node_guid = guid,
			       .port_guid = guid,
			       .sys_guid = guid};
	struct ib_node *n = NULL;
	bool is_new;

	for (unsigned i = 1; i <= (type == NODE_SWITCH ? 1u : ports); i++) {
		ni.local_port = type == NODE_SWITCH ? 0 : (uint8_t)i;
		if (type != NODE_SWITCH)
			ni.port_guid = guid + i;
		n = subnet_node(p->subnet, &ni, 0, NULL, &is_new);
	}
	(void)str_copy(n->desc, sizeof(n->desc), name);
	n->desc_known = *name;
	return n;
}

static struct physp *port(const struct plan *p, uint64_t guid, unsigned num)
{
	struct physp *ret = node_physp(subnet_node_by_guid(p->subnet, guid), num);

	assert_non_null(ret);
	return ret;
}

/* @width: PortInfo's code, 0 unknown; QDR. */
static void cable(struct plan *p, uint64_t a, unsigned pa, uint64_t b, unsigned pb,
		  uint8_t width)
{
	const struct port_info pi = {.state = IB_ACTIVE,
				     .width_active = width,
				     .speed_active = width ? 4 : 0};

	physp_set_info(port(p, a, pa), &pi);
	physp_set_info(port(p, b, pb), &pi);
	physp_link(port(p, a, pa), port(p, b, pb));
}

/* Two leaves under a spine, hosts gpu1 to gpu4, two at each leaf. */
enum {
	GPU1 = 0x10,
	GPU2 = 0x20,
	GPU3 = 0x30,
	GPU4 = 0x40,
	LEAF1 = 0x100,
	LEAF2 = 0x200,
	SPINE = 0x300
};

static void small(struct plan *p)
{
	plan_init(p);
	node(p, NODE_CA, "gpu1", GPU1, 2);
	node(p, NODE_CA, "gpu2", GPU2, 2);
	node(p, NODE_CA, "gpu3", GPU3, 2);
	node(p, NODE_CA, "gpu4", GPU4, 2);
	node(p, NODE_SWITCH, "MF0;leaf1:MQM/U1", LEAF1, 8);
	node(p, NODE_SWITCH, "MF0;leaf2:MQM/U1", LEAF2, 8);
	node(p, NODE_SWITCH, "spine", SPINE, 8);
	cable(p, GPU1, 1, LEAF1, 1, 2);
	cable(p, GPU2, 1, LEAF1, 2, 2);
	cable(p, GPU3, 1, LEAF2, 1, 2);
	cable(p, GPU4, 1, LEAF2, 2, 2);
	cable(p, LEAF1, 7, SPINE, 1, 2);
	cable(p, LEAF1, 8, SPINE, 2, 2);
	cable(p, LEAF2, 7, SPINE, 3, 2);
}

/* @want: the lines, each with '\n'. */
static void differ(struct plan *old, struct plan *now, const char *want)
{
	struct topo_diff d;
	_cleanup_(freep) char *got = xstrdup("");

	topo_compare(old->subnet, now->subnet, &d);
	for (int i = 0; i < d.n; i++) {
		char *longer = xasprintf("%s%s\n", got, d.lines[i].text);

		free(got);
		got = longer;
	}
	assert_string_equal(got, want);
	topo_diff_done(&d);
	assert_int_equal(d.n, 0);
	old->subnet = subnet_free(old->subnet);
	now->subnet = subnet_free(now->subnet);
}

static void test_same(void **state)
{
	struct plan old, now;

	(void)state;
	small(&old);
	small(&now);
	differ(&old, &now, "");
	plan_init(&old);
	plan_init(&now);
	differ(&old, &now, "");
}

static void test_host_moved(void **state)
{
	struct plan old, now;

	(void)state;
	small(&old);
	small(&now);
	cable(&now, GPU1, 1, LEAF2, 6, 2);
	differ(&old, &now, "cable moved: gpu1/1 from leaf1/1 to leaf2/6\n");

	/* Two hosts that changed places; each is told, and nothing else. */
	small(&old);
	small(&now);
	physp_unlink(port(&now, GPU1, 1));
	cable(&now, GPU3, 1, LEAF1, 1, 2);
	cable(&now, GPU1, 1, LEAF2, 1, 2);
	differ(&old, &now,
	       "cable moved: gpu1/1 from leaf1/1 to leaf2/1\n"
	       "cable moved: gpu3/1 from leaf2/1 to leaf1/1\n");

	/* A host in the place of another, which is left without. */
	small(&old);
	small(&now);
	cable(&now, GPU1, 1, LEAF1, 2, 2);
	differ(&old, &now,
	       "link missing: gpu2/1 - leaf1/2\n"
	       "cable moved: gpu1/1 from leaf1/1 to leaf1/2\n");
}

/* The host took its other port: the switch's end stayed. */
static void test_other_port(void **state)
{
	struct plan old, now;

	(void)state;
	small(&old);
	small(&now);
	physp_unlink(port(&now, GPU1, 1));
	cable(&now, GPU1, 2, LEAF1, 1, 2);
	differ(&old, &now, "cable moved: leaf1/1 from gpu1/1 to gpu1/2\n");
}

static void test_between_switches(void **state)
{
	struct plan old, now;

	(void)state;
	small(&old);
	small(&now);
	physp_unlink(port(&now, LEAF1, 8));
	cable(&now, LEAF2, 8, SPINE, 2, 2);
	differ(&old, &now, "cable moved: spine/2 from leaf1/8 to leaf2/8\n");

	small(&old);
	small(&now);
	physp_unlink(port(&now, LEAF1, 8));
	cable(&now, LEAF1, 3, LEAF2, 3, 2);
	differ(&old, &now,
	       "link missing: leaf1/8 - spine/2\n"
	       "link new: leaf1/3 - leaf2/3, 4xQDR\n");
}

static void test_nodes(void **state)
{
	struct plan old, now;
	struct ib_node *n;

	(void)state;
	small(&old);
	small(&now);
	subnet_drop(now.subnet, subnet_node_by_guid(now.subnet, GPU4));
	subnet_drop(old.subnet, subnet_node_by_guid(old.subnet, GPU3));
	n = subnet_node_by_guid(now.subnet, SPINE);
	(void)str_copy(n->desc, sizeof(n->desc), "core");
	differ(&old, &now,
	       "node missing: gpu4, ca 0x0000000000000040, 1 link\n"
	       "node new: gpu3, ca 0x0000000000000030, 1 link\n"
	       "node renamed: core, was spine (0x0000000000000300)\n");

	/* Another host on the same port: an old one gone and a new one there. */
	small(&old);
	small(&now);
	subnet_drop(now.subnet, subnet_node_by_guid(now.subnet, GPU4));
	node(&now, NODE_CA, "gpu5", 0x50, 1);
	cable(&now, 0x50, 1, LEAF2, 2, 2);
	differ(&old, &now,
	       "node missing: gpu4, ca 0x0000000000000040, 1 link\n"
	       "node new: gpu5, ca 0x0000000000000050, 1 link\n");

	/* A host went to a switch that is new. */
	small(&old);
	small(&now);
	node(&now, NODE_SWITCH, "leaf3", 0x400, 4);
	cable(&now, GPU1, 1, 0x400, 2, 2);
	differ(&old, &now,
	       "node new: leaf3, switch 0x0000000000000400, 1 link\n"
	       "cable moved: gpu1/1 from leaf1/1 to leaf3/2\n");
}

static void test_rates(void **state)
{
	struct plan old, now;

	(void)state;
	small(&old);
	small(&now);
	cable(&now, LEAF1, 7, SPINE, 1, 1);
	cable(&old, GPU2, 1, LEAF1, 2, 1);
	/* What one side does not know is not compared. */
	cable(&old, GPU3, 1, LEAF2, 1, 0);
	cable(&now, GPU4, 1, LEAF2, 2, 0);
	differ(&old, &now,
	       "slower: leaf1/7 - spine/1, 1xQDR, was 4xQDR\n"
	       "faster: gpu2/1 - leaf1/2, 4xQDR, was 1xQDR\n");
}

/* Numbers count as such; a name that two nodes have comes with the GUID, one without a
 * description is its GUID. */
static void test_names(void **state)
{
	struct plan old, now;

	(void)state;
	small(&old);
	small(&now);
	node(&now, NODE_CA, "gpu10", 0x51, 1);
	node(&now, NODE_CA, "gpu9", 0x52, 1);
	node(&now, NODE_CA, "", 0x53, 1);
	node(&now, NODE_CA, "gpu1", 0x54, 1);
	differ(&old, &now,
	       "node new: 0x0000000000000053, ca 0x0000000000000053, 0 links\n"
	       "node new: gpu1(0x54), ca 0x0000000000000054, 0 links\n"
	       "node new: gpu9, ca 0x0000000000000052, 0 links\n"
	       "node new: gpu10, ca 0x0000000000000051, 0 links\n");
}

/* What cannot be printed is '?' here and ' ' with ibnetdiscover. */
static void test_unprintable(void **state)
{
	struct plan old, now;
	struct ib_node *a, *b;

	(void)state;
	small(&old);
	small(&now);
	a = subnet_node_by_guid(old.subnet, GPU1);
	b = subnet_node_by_guid(now.subnet, GPU1);
	(void)str_copy(a->desc, sizeof(a->desc), "g\xc3\xbc 1  ");
	(void)str_copy(b->desc, sizeof(b->desc), "g?? 1");
	differ(&old, &now, "");

	small(&old);
	small(&now);
	a = subnet_node_by_guid(old.subnet, GPU1);
	(void)str_copy(a->desc, sizeof(a->desc), "gpu1 x");
	differ(&old, &now, "node renamed: gpu1, was gpu1 x (0x0000000000000010)\n");
}

/* Random cables: from one to the other and back have as many of each kind, and no link
 * is told of twice. */
static void shuffle(struct plan *p, uint64_t seed)
{
	static const uint64_t hosts[] = {GPU1, GPU2, GPU3, GPU4};
	static const uint64_t switches[] = {LEAF1, LEAF2, SPINE};

	small(p);
	for (int i = 0; i < 12; i++) {
		uint64_t r = mix64(seed * 100 + (uint64_t)i);
		uint64_t a = r & 1 ? hosts[r >> 8 & 3] : switches[(r >> 8) % 3];
		uint64_t b = switches[(r >> 16) % 3];
		unsigned pa = (unsigned)(r & 1 ? 1 + (r >> 24) % 2 : 1 + (r >> 24) % 8);
		unsigned pb = (unsigned)(1 + (r >> 32) % 8);

		if (a == b && pa == pb)
			continue;
		if (r & 2)
			physp_unlink(port(p, a, pa));
		else
			cable(p, a, pa, b, pb, r & 4 ? 1 : 2);
	}
}

static int count(const struct topo_diff *d, enum topo_change change)
{
	int n = 0;

	for (int i = 0; i < d->n; i++)
		n += d->lines[i].change == change;
	return n;
}

static int n_links(const struct plan *p)
{
	struct subnet_counts n;

	subnet_count(p->subnet, &n);
	return (int)n.links;
}

static void test_random(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < 3000; seed++) {
		struct plan a, b;
		struct topo_diff there, back;

		shuffle(&a, 2 * seed);
		shuffle(&b, 2 * seed + 1);
		topo_compare(a.subnet, b.subnet, &there);
		topo_compare(b.subnet, a.subnet, &back);
		/* A moved cable is one link less and one more. */
		assert_int_equal(n_links(&a) - count(&there, TOPO_LINK_MISSING) +
					 count(&there, TOPO_LINK_NEW),
				 n_links(&b));
		assert_int_equal(count(&there, TOPO_SLOWER), count(&back, TOPO_FASTER));
		assert_int_equal(count(&there, TOPO_FASTER), count(&back, TOPO_SLOWER));
		for (int i = 1; i < there.n; i++)
			assert_string_not_equal(there.lines[i - 1].text,
						there.lines[i].text);
		topo_diff_done(&there);
		topo_diff_done(&back);
		(void)subnet_free(a.subnet);
		(void)subnet_free(b.subnet);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_same),
		cmocka_unit_test(test_host_moved),
		cmocka_unit_test(test_other_port),
		cmocka_unit_test(test_between_switches),
		cmocka_unit_test(test_nodes),
		cmocka_unit_test(test_rates),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_unprintable),
		cmocka_unit_test(test_random),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
