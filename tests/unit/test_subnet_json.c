/* SPDX-License-Identifier: BSD-2-Clause */
/* A subnet as JSON and back is the same subnet. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "ibnet.h"
#include "render_subnet.h"
#include "topo_diff.h"

static struct subnet *load(const char *name)
{
	_cleanup_(freep) char *path =
		xasprintf("%s/tests/golden/%s", SOURCE_ROOT, name);
	_cleanup_(freep) char *text = xcalloc(1, 1 << 20);
	struct subnet *s = subnet_new();
	FILE *f = fopen(path, "r");
	char why[256] = "";
	size_t len;

	assert_non_null(f);
	len = fread(text, 1, 1 << 20, f);
	assert_int_equal(fclose(f), 0);
	if (ibnet_read(text, len, s, why, sizeof(why)))
		fail_msg("%s", why);
	return s;
}

static char *write_all(const struct subnet *s)
{
	struct ibnet_writer *w = ibnet_writer_new(s, NULL, NULL);
	const char *piece;
	char *all = xstrdup("");

	while ((piece = ibnet_next(w))) {
		char *longer = xasprintf("%s%s", all, piece);

		free(all);
		all = longer;
	}
	(void)ibnet_writer_free(w);
	return all;
}

static json_t *nodes_of(const struct subnet *s)
{
	const struct render_time t = {0};
	json_t *all = json_array();

	for (const struct ib_node *n = subnet_next(s, NULL); n; n = subnet_next(s, n))
		(void)json_array_append_new(all, render_fabric_node(n, 255, &t));
	return all;
}

/* Takes @nodes. */
static struct subnet *again_of(json_t *nodes)
{
	struct subnet *s = subnet_new();
	char why[256] = "";
	const json_t *n;
	size_t i;

	json_array_foreach (nodes, i, n)
		if (subnet_json_node(s, n, why, sizeof(why)))
			fail_msg("%s", why);
	subnet_json_link(s, nodes);
	json_decref(nodes);
	return s;
}

static void same_port(const struct physp *a, const struct physp *b)
{
	char why_a[128], why_b[128];

	assert_int_equal(a->guid, b->guid);
	assert_int_equal(physp_state(a), physp_state(b));
	assert_int_equal(a->info.phys_state, b->info.phys_state);
	assert_int_equal(physp_base_lid(a), physp_base_lid(b));
	assert_int_equal(physp_lmc(a), physp_lmc(b));
	assert_int_equal(physp_speed(a), physp_speed(b));
	assert_int_equal(a->info.width_active, b->info.width_active);
	assert_int_equal(a->info.cap_mask, b->info.cap_mask);
	assert_int_equal(physp_link_mtu(a), physp_link_mtu(b));
	assert_int_equal(physp_link_vls(a, 0), physp_link_vls(b, 0));
	assert_int_equal(physp_is_degraded(a, why_a), physp_is_degraded(b, why_b));
	assert_string_equal(why_a, why_b);
	assert_int_equal(physp_has_link(a), physp_has_link(b));
	if (physp_has_link(a)) {
		assert_int_equal(a->remote->node->info.node_guid,
				 b->remote->node->info.node_guid);
		assert_int_equal(a->remote->num, b->remote->num);
	}
}

static void same_node(const struct ib_node *a, const struct ib_node *b)
{
	assert_int_equal(a->info.node_guid, b->info.node_guid);
	assert_int_equal(a->info.sys_guid, b->info.sys_guid);
	assert_int_equal(a->info.node_type, b->info.node_type);
	assert_int_equal(a->info.num_ports, b->info.num_ports);
	assert_int_equal(a->info.vendor_id, b->info.vendor_id);
	assert_int_equal(a->info.device_id, b->info.device_id);
	assert_string_equal(a->desc, b->desc);
	assert_int_equal(a->sw.enhanced_port0, b->sw.enhanced_port0);
	assert_int_equal(a->flags, b->flags);
	for (unsigned i = 0; i <= a->info.num_ports; i++) {
		const struct physp *p = node_physp(a, i), *q = node_physp(b, i);

		assert_int_equal(p != NULL, q != NULL);
		if (p)
			same_port(p, q);
	}
}

static void same_subnet(const struct subnet *a, const struct subnet *b)
{
	_cleanup_(freep) char *x = write_all(a), *y = write_all(b);
	const struct ib_node *n, *m = subnet_next(b, NULL);
	struct topo_diff d;

	for (n = subnet_next(a, NULL); n; n = subnet_next(a, n)) {
		assert_non_null(m);
		same_node(n, m);
		m = subnet_next(b, m);
	}
	assert_null(m);
	assert_string_equal(x, y);
	topo_compare(a, b, &d);
	assert_int_equal(d.n, 0);
	topo_diff_done(&d);
}

static const char *const files[] = {"fabctl/small.topo", "fabctl/fifty.topo",
				    "topology/mixed.topo", "topology/multiport.topo",
				    "topology/torus.topo"};

static void test_files(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		struct subnet *s = load(files[i]), *again = again_of(nodes_of(s));

		same_subnet(s, again);
		(void)subnet_free(s);
		(void)subnet_free(again);
	}
}

/* A PortInfo as a real port may have it: all that the objects make of it comes back. */
static void scramble(struct physp *p, uint64_t seed)
{
	uint64_t r = mix64(seed), q = mix64(r);
	struct port_info pi = p->info;
	bool base = p->num == 0;

	pi.state = base ? IB_ACTIVE : (uint8_t)(1 + r % 5);
	pi.phys_state = (uint8_t)(1 + (r >> 8) % 7);
	pi.width_active = (uint8_t)(1u << (r >> 16) % 5);
	pi.width_enabled = (uint8_t)((r >> 24) & 31);
	pi.width_supported = (uint8_t)((r >> 32) & 31);
	pi.speed_active = (uint8_t)(1u << (r >> 40) % 3);
	pi.speed_enabled = (uint8_t)((r >> 48) & 7);
	pi.speed_supported = (uint8_t)((r >> 56) & 7);
	pi.ext_active = (uint8_t)(q & 1 ? 1u << (q >> 1) % 4 : 0);
	pi.ext_enabled = (uint8_t)((q >> 8) & 15);
	pi.ext_supported = (uint8_t)((q >> 16) & 15);
	pi.mtu_cap = (uint8_t)(1 + (q >> 24) % 5);
	pi.neighbor_mtu = (uint8_t)(1 + (q >> 32) % 5);
	pi.vl_cap = (uint8_t)(1 + (q >> 40) % 5);
	pi.op_vls = (uint8_t)(1 + (q >> 48) % 5);
	pi.cap_mask = (uint32_t)(q >> 32) & 0x7fffffff;
	physp_set_info(p, &pi);
}

static void test_random(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 200; seed++) {
		struct subnet *s = load(files[seed % ARRAY_LEN(files)]), *again;
		struct ib_node *n;

		for (n = subnet_next(s, NULL); n; n = subnet_next(s, n)) {
			n->flags = (uint8_t)(mix64(seed + n->serial) & 7);
			for (unsigned i = 0; i <= n->info.num_ports; i++)
				if (node_physp(n, i))
					scramble(node_physp(n, i),
						 seed * 10000 + n->serial * 64 + i);
		}
		again = again_of(nodes_of(s));
		same_subnet(s, again);
		(void)subnet_free(s);
		(void)subnet_free(again);
	}
}

/* A fabd that does not send the numbers: the texts say enough for what is saved. */
static void test_texts(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		struct subnet *s = load(files[i]), *again;
		_cleanup_(freep) char *x = write_all(s), *y = NULL;
		json_t *nodes = nodes_of(s), *node, *port;
		size_t k, m;

		json_array_foreach (nodes, k, node)
			json_array_foreach (json_object_get(node, "ports"), m, port)
				(void)json_object_del(port, "info");
		again = again_of(nodes);
		y = write_all(again);
		assert_string_equal(x, y);
		(void)subnet_free(s);
		(void)subnet_free(again);
	}
}

static void refused(const char *text, const char *want)
{
	struct subnet *s = subnet_new();
	json_t *o = json_loads(text, 0, NULL);
	char why[256] = "";

	assert_non_null(o);
	assert_int_equal(subnet_json_node(s, o, why, sizeof(why)), -EBADMSG);
	assert_string_equal(why, want);
	json_decref(o);
	(void)subnet_free(s);
}

static void test_refused(void **state)
{
	static const char no_node[] = "node 0x11 has no GUID, type or number of ports";
	static const char no_port[] = "a port of node 0x11 has no number or no GUID";
#define CA "{\"node_guid\": \"0x11\", \"node_type\": \"ca\", \"num_ports\": 2, "

	(void)state;
	refused("{}", "node  has no GUID, type or number of ports");
	refused("[]", "node  has no GUID, type or number of ports");
	refused("{\"node_guid\": \"11\", \"node_type\": \"ca\", \"num_ports\": 1}",
		"node 11 has no GUID, type or number of ports");
	refused("{\"node_guid\": \"0x11\", \"node_type\": \"x\", \"num_ports\": 1}",
		no_node);
	refused("{\"node_guid\": \"0x11\", \"node_type\": \"ca\", \"num_ports\": 255}",
		no_node);
	refused("{\"node_guid\": \"0x11\", \"node_type\": \"ca\", \"num_ports\": \"1\"}",
		no_node);
	refused(CA "\"ports\": [{}]}", no_port);
	refused(CA "\"ports\": [{\"port\": 0, \"port_guid\": \"0x12\"}]}", no_port);
	refused(CA "\"ports\": [{\"port\": 3, \"port_guid\": \"0x12\"}]}", no_port);
	refused(CA "\"ports\": [{\"port\": 1}]}", no_port);
	refused(CA "\"ports\": [7]}", no_port);
}

/* The same node twice, and links to what is not there. */
static void test_twice(void **state)
{
	static const char text[] =
		"[" CA "\"path\": [0, 999], \"flags\": [7, \"suspect\"], \"ports\": "
		"[{\"port\": 2, \"port_guid\": \"0x13\", \"state\": \"ACTIVE\", "
		"\"lid\": 70000, \"remote\": {\"node_guid\": \"0x99\", \"port\": 1}}]}]";
	struct subnet *s = subnet_new();
	json_t *nodes = json_loads(text, 0, NULL);
	const json_t *node = json_array_get(nodes, 0);
	char why[256] = "";

	(void)state;
	assert_int_equal(subnet_json_node(s, node, why, sizeof(why)), 0);
	subnet_json_link(s, nodes);
	assert_false(physp_has_link(node_physp(subnet_node_by_guid(s, 0x11), 2)));
	assert_int_equal(physp_base_lid(node_physp(subnet_node_by_guid(s, 0x11), 2)),
			 0);
	assert_int_equal(subnet_node_by_guid(s, 0x11)->flags, NODE_SUSPECT);
	assert_int_equal(subnet_json_node(s, node, why, sizeof(why)), -EBADMSG);
	assert_string_equal(why, "node 0x11 is there twice");
	json_decref(nodes);
	(void)subnet_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_files), cmocka_unit_test(test_random),
		cmocka_unit_test(test_texts), cmocka_unit_test(test_refused),
		cmocka_unit_test(test_twice),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
