/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "port.h"

static const struct mono t0 = {1000}, t1 = {2000}, t2 = {3000};

/* An active 4x EDR port that can do 4096 bytes and VL0-7. */
static struct port_info info_active(void)
{
	return (struct port_info){
		.gid_prefix = UINT64_C(0xfe80000000000000),
		.lid = 8,
		.sm_lid = 1,
		.lmc = 0,
		.cap_mask = 0x4000,
		.width_enabled = 3,
		.width_supported = 3,
		.width_active = 2,
		.speed_supported = 7,
		.speed_enabled = 7,
		.speed_active = 4,
		.ext_supported = 3,
		.ext_enabled = 3,
		.ext_active = 2,
		.state = 4,
		.phys_state = 5,
		.neighbor_mtu = 5,
		.mtu_cap = 5,
		.vl_cap = 4,
		.op_vls = 4,
	};
}

static struct port_watch_params params;

static struct node_info node_of(uint64_t guid, uint8_t port)
{
	return (struct node_info){.base_version = 1,
				  .class_version = 1,
				  .node_type = NODE_SWITCH,
				  .num_ports = 36,
				  .node_guid = guid,
				  .port_guid = guid,
				  .local_port = port,
				  .vendor_id = 0x2c9,
				  .device_id = 0xcf08};
}

static const char *fact(const struct port *p, enum port_field f)
{
	static char buf[4][128];
	static int next;

	return field_text(&port_table, &p->facts, f, buf[next = (next + 1) % 4], 128);
}

static const char *far_fact(const struct port *p, enum remote_field f)
{
	static char buf[128];

	return field_text(&remote_table, &p->remote, f, buf, sizeof(buf));
}

static void port_up(struct port *p)
{
	struct port_info pi = info_active();
	struct node_info ni = node_of(0x1234, 22);

	port_init(p, "mlx5_0", 3, 1, t0);
	(void)port_set_text(p, PF_LINK_LAYER, "infiniband");
	(void)port_set_u64(p, PF_PORT_GUID, 0x77);
	(void)port_apply_info(p, &pi);
	(void)port_apply_remote(p, &ni, "leaf07", &pi, WHY_NONE);
	(void)port_derive(p);
	port_changed(p, SOURCE_START, false, t0);
	(void)port_judge(p, &params, NULL, t0);
}

/* ---- tables ---- */

static void tables_are_whole(void **state)
{
	static const struct {
		const struct field_table *t;
		size_t size;
		int n;
	} all[] = {
		{&device_table, sizeof(struct device_facts), DF__MAX},
		{&port_table, sizeof(struct port_facts), PF__MAX},
		{&remote_table, sizeof(struct remote_facts), RF__MAX},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(all); i++) {
		const struct field_table *t = all[i].t;

		assert_int_equal(t->n, all[i].n);
		for (int f = 0; f < t->n; f++) {
			const struct field *r = &t->fields[f];
			size_t want = r->kind == FIELD_U64 || r->kind == FIELD_GUID  ? 8
				      : r->kind == FIELD_U32 || field_hex_digits(r->kind) ? 4
				      : r->kind == FIELD_BOOL			     ? 1
							      : r->size;

			assert_int_equal(r->size, want);
			assert_true(r->offset + r->size <= t->why_offset);
			assert_true(t->why_offset + (size_t)t->n <= all[i].size);
			for (int g = 0; g < f; g++)
				assert_string_not_equal(r->name, t->fields[g].name);
		}
	}
	assert_string_equal(port_table.fields[PF_LID_LAST].name, "lid_last");
}

static void facts_say_when_they_change(void **state)
{
	struct port_facts f;
	char buf[64];

	(void)state;
	field_all_missing(&port_table, &f, WHY_NOT_READ);
	assert_int_equal(field_why(&port_table, &f, PF_LID), WHY_NOT_READ);
	assert_string_equal(field_text(&port_table, &f, PF_LID, buf, sizeof(buf)), "-");
	/* 0 that was read is not the 0 of "nobody read it". */
	assert_true(field_set_u64(&port_table, &f, PF_LID, 0));
	assert_false(field_set_u64(&port_table, &f, PF_LID, 0));
	assert_string_equal(field_text(&port_table, &f, PF_LID, buf, sizeof(buf)), "0");
	assert_true(field_set_u64(&port_table, &f, PF_LID, UINT32_MAX));
	assert_string_equal(field_text(&port_table, &f, PF_LID, buf, sizeof(buf)),
			    "4294967295");
	assert_true(field_set_missing(&port_table, &f, PF_LID, WHY_TIMEOUT));
	assert_false(field_set_missing(&port_table, &f, PF_LID, WHY_TIMEOUT));
	assert_true(field_set_missing(&port_table, &f, PF_LID, WHY_NO_WORKER));
	assert_true(field_set_text(&port_table, &f, PF_NETDEV, "averylongnetworkname"));
	assert_string_equal(field_text(&port_table, &f, PF_NETDEV, buf, sizeof(buf)),
			    "averylongnetwor");
	assert_false(
		field_set_text(&port_table, &f, PF_NETDEV, "averylongnetworkname"));
	assert_true(field_set_text(&port_table, &f, PF_NETDEV, "ib0"));
	assert_true(field_set_u64(&port_table, &f, PF_PORT_GUID,
				  UINT64_C(0x2c90300000001)));
	assert_string_equal(field_text(&port_table, &f, PF_PORT_GUID, buf, sizeof(buf)),
			    "0x0002c90300000001");
	assert_true(field_set_u64(&port_table, &f, PF_CAP_MASK, 0x50c048));
	assert_string_equal(field_text(&port_table, &f, PF_CAP_MASK, buf, sizeof(buf)),
			    "0x0050c048");
	assert_true(field_set_u64(&port_table, &f, PF_LINK_EXISTS, 7));
	assert_false(field_set_u64(&port_table, &f, PF_LINK_EXISTS, 1));
	assert_string_equal(
		field_text(&port_table, &f, PF_LINK_EXISTS, buf, sizeof(buf)), "true");
}

static void gids_as_text(void **state)
{
	static const uint8_t gid[16] = {0xfe, 0x80, [13] = 0x10, [15] = 5};
	char buf[48];

	(void)state;
	assert_string_equal(gid_text(gid, buf),
			    "fe80:0000:0000:0000:0000:0000:0010:0005");
	assert_string_equal(gid_type_name(0), "ib");
	assert_string_equal(gid_type_name(1), "roce_v1");
	assert_string_equal(gid_type_name(2), "roce_v2");
	assert_string_equal(gid_type_name(255), "unknown");
	assert_string_equal(node_type_name(2), "switch");
	assert_string_equal(node_type_name(77), "unknown");
}

/* ---- physical ports ---- */

static void down_copies_only_the_states(void **state)
{
	struct port_info pi = info_active();
	struct physp p;

	(void)state;
	physp_init(&p, 1, 1, NULL, 0, NULL);
	pi.state = 1;
	pi.phys_state = 2;
	physp_set_info(&p, &pi);
	assert_false(p.info_full);
	assert_int_equal(p.info.lid, 0);
	assert_int_equal(p.info.phys_state, 2);
	for (uint8_t s = 0; s < 16; s++) {
		struct port_info full = info_active();

		if (s == 1)
			continue;
		physp_init(&p, 1, 1, NULL, 0, NULL);
		full.state = s;
		physp_set_info(&p, &full);
		assert_true(p.info_full);
		assert_memory_equal(&p.info, &full, sizeof(full));
	}
	pi.lid = 99;
	pi.mtu_cap = 1;
	physp_set_info(&p, &pi);
	assert_true(p.info_full);
	assert_int_equal(p.info.state, 1);
	assert_int_equal(p.info.phys_state, 2);
	assert_int_equal(p.info.lid, 8);
	assert_int_equal(p.info.mtu_cap, 5);
}

static void links_never_have_one_end(void **state)
{
	struct physp p[7];
	uint64_t seed = 5;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(p); i++)
		physp_init(&p[i], i + 1, 1, NULL, 0, NULL);
	for (int step = 0; step < 200000; step++) {
		struct physp *a, *b;

		seed = mix64(seed);
		a = &p[seed % ARRAY_LEN(p)];
		b = &p[(seed >> 16) % ARRAY_LEN(p)];
		if ((seed >> 32) % 4)
			physp_link(a, b);
		else
			physp_unlink(a);
		if ((seed >> 32) % 4)
			assert_true(physp_link_exists(a, b) && physp_link_exists(b, a));
		else
			assert_null(a->remote);
		for (size_t i = 0; i < ARRAY_LEN(p); i++)
			assert_true(!p[i].remote || p[i].remote->remote == &p[i]);
	}
}

static void a_link_needs_two_valid_ports(void **state)
{
	struct physp a, b, c;

	(void)state;
	physp_init(&a, 1, 1, NULL, 0, NULL);
	physp_init(&b, 0, 1, NULL, 0, NULL);
	physp_init(&c, 3, 1, NULL, 0, NULL);
	physp_link(&a, &b);
	assert_false(physp_link_exists(&a, &b));
	physp_link(&a, &c);
	assert_true(physp_link_exists(&a, &c));
	assert_null(b.remote);
	assert_false(physp_link_exists(&a, &b));
	a.remote = &b; /* half a link, as a moved cable could leave one elsewhere */
	assert_false(physp_link_exists(&a, &b));
	assert_false(physp_link_exists(&c, &a));
}

static void unknown_far_end_heals_nothing(void **state)
{
	struct physp a, b;

	(void)state;
	physp_init(&a, 1, 1, NULL, 0, NULL);
	physp_init(&b, 2, 1, NULL, 0, NULL);
	assert_true(physp_link_healthy(&a));
	a.healthy = false;
	assert_false(physp_link_healthy(&a));
	physp_link(&a, &b);
	assert_false(physp_link_healthy(&a));
	assert_false(physp_link_healthy(&b));
	a.healthy = true;
	assert_true(physp_link_healthy(&a));
	b.healthy = false;
	assert_false(physp_link_healthy(&a));
}

static uint8_t want_code(uint8_t v)
{
	return v < 1 ? 1 : v > 5 ? 5 : v;
}

static void mtu_and_vls_from_both_ends(void **state)
{
	(void)state;
	for (uint8_t own = 0; own < 16; own++) {
		for (uint8_t far = 0; far < 16; far++) {
			struct port_info pi = info_active(), qi = info_active();
			struct physp a, b;

			physp_init(&a, 1, 1, NULL, 0, NULL);
			physp_init(&b, 2, 1, NULL, 0, NULL);
			pi.mtu_cap = pi.vl_cap = own;
			pi.neighbor_mtu = pi.op_vls = far;
			qi.mtu_cap = qi.vl_cap = far;
			physp_set_info(&a, &pi);
			assert_int_equal(physp_link_mtu(&a), want_code(far));
			assert_int_equal(physp_link_vls(&a, 0), want_code(far));
			/* Known to be there, but no PortInfo of it yet. */
			physp_link(&a, &b);
			assert_int_equal(physp_link_mtu(&a), want_code(far));
			assert_int_equal(physp_link_vls(&a, 0), want_code(far));
			physp_set_info(&b, &qi);
			assert_int_equal(physp_link_mtu(&a), want_code(MIN(own, far)));
			assert_int_equal(physp_link_vls(&a, 0), want_code(MIN(own, far)));
			assert_int_equal(physp_link_mtu(&b), physp_link_mtu(&a));
		}
	}
}

static void ranges_of_lids(void **state)
{
	(void)state;
	for (uint32_t lid = 0; lid <= UINT16_MAX; lid++) {
		for (uint8_t lmc = 0; lmc < 10; lmc++) {
			uint32_t n = 1U << lmc;
			uint16_t first = 7, last = 7;
			bool want = lmc < 8 && lid && !(lid & (n - 1)) &&
				    lid + n - 1 <= 0xbfff;

			if (lid_range((uint16_t)lid, lmc, &first, &last) != want)
				fail_msg("lid %u lmc %u", lid, lmc);
			if (first != (want ? lid : 7) ||
			    last != (want ? lid + n - 1 : 7))
				fail_msg("lid %u lmc %u: %u-%u", lid, lmc, first, last);
		}
	}
}

/* ---- ports ---- */

static void an_active_port(void **state)
{
	struct port p;
	char buf[PORT_NAME_MAX];

	(void)state;
	port_up(&p);
	assert_string_equal(port_name(&p, buf), "mlx5_0/1");
	assert_string_equal(fact(&p, PF_STATE), "ACTIVE");
	assert_string_equal(fact(&p, PF_PHYSICAL_STATE), "LINK_UP");
	assert_string_equal(fact(&p, PF_LID_LAST), "8");
	assert_string_equal(fact(&p, PF_SUBNET_PREFIX), "0xfe80000000000000");
	assert_string_equal(fact(&p, PF_ACTIVE_MTU), "4096");
	assert_string_equal(fact(&p, PF_LINK_MTU), "4096");
	assert_string_equal(fact(&p, PF_LINK_VLS), "8");
	assert_string_equal(fact(&p, PF_WIDTH_ACTIVE), "4x");
	assert_string_equal(fact(&p, PF_WIDTH_ENABLED), "1x 4x");
	assert_string_equal(fact(&p, PF_SPEED_ACTIVE), "EDR");
	assert_string_equal(fact(&p, PF_SPEED_SUPPORTED), "SDR DDR QDR FDR EDR");
	assert_string_equal(fact(&p, PF_RATE_MBPS), "100000");
	assert_string_equal(fact(&p, PF_LINK_EXISTS), "true");
	assert_string_equal(fact(&p, PF_LINK_HEALTHY), "true");
	assert_string_equal(fact(&p, PF_NETDEV), "-");
	assert_string_equal(far_fact(&p, RF_NODE_DESC), "leaf07");
	assert_string_equal(far_fact(&p, RF_PORT), "22");
	assert_string_equal(far_fact(&p, RF_NODE_TYPE), "switch");
	assert_string_equal(far_fact(&p, RF_VENDOR_ID), "0x0002c9");
	assert_string_equal(far_fact(&p, RF_MAX_MTU), "4096");
	assert_string_equal(far_fact(&p, RF_STATE), "ACTIVE");
	assert_int_equal(p.health, HEALTH_OK);
	assert_string_equal(p.health_why, "");
	port_done(&p);
}

static void nothing_new_changes_nothing(void **state)
{
	struct port_info pi = info_active();
	struct node_info ni = node_of(0x1234, 22);
	uint16_t keys[] = {0xffff, 0x8001};
	struct port_gid gid = {.index = 3, .type = 2};
	struct port p;

	(void)state;
	port_up(&p);
	assert_true(port_set_pkeys(&p, keys, 2, WHY_NONE));
	assert_true(port_set_gids(&p, &gid, 1, WHY_NONE));
	p.dirty = false;
	assert_false(port_apply_info(&p, &pi));
	assert_false(port_apply_remote(&p, &ni, "leaf07", &pi, WHY_NONE));
	assert_false(port_derive(&p));
	assert_false(port_judge(&p, &params, NULL, t1));
	assert_false(port_set_pkeys(&p, keys, 2, WHY_NONE));
	gid.pad = 9; /* not a fact */
	assert_false(port_set_gids(&p, &gid, 1, WHY_NONE));
	assert_false(p.dirty);
	assert_true(port_set_pkeys(&p, keys, 1, WHY_NONE));
	assert_true(p.dirty);
	p.dirty = false;
	gid.gid[15] = 1;
	assert_true(port_set_gids(&p, &gid, 1, WHY_NONE));
	assert_true(port_set_gids(&p, NULL, 0, WHY_NO_WORKER));
	assert_false(port_set_gids(&p, NULL, 0, WHY_NO_WORKER));
	assert_true(p.dirty);
	p.dirty = false;
	assert_true(port_set_missing(&p, PF_NETDEV, WHY_NO_NETDEV));
	assert_true(p.dirty);
	port_done(&p);
}

static void a_far_end_without_guid_is_news_once(void **state)
{
	struct port_info pi = info_active();
	struct node_info ni = node_of(0, 22);
	struct port p;

	(void)state;
	port_up(&p);
	assert_true(port_apply_remote(&p, &ni, "leaf07", &pi, WHY_NONE));
	assert_true(port_derive(&p));
	assert_int_equal(p.facts.why[PF_LINK_EXISTS], WHY_OUT_OF_RANGE);
	assert_false(port_apply_remote(&p, &ni, "leaf07", &pi, WHY_NONE));
	assert_false(port_derive(&p));
	port_done(&p);
}

static void the_link_goes_down(void **state)
{
	struct port_info pi = info_active();
	struct port p;

	(void)state;
	port_up(&p);
	pi.state = 1;
	pi.phys_state = 2;
	pi.lid = 0;
	assert_true(port_apply_info(&p, &pi));
	assert_true(port_apply_remote(&p, NULL, NULL, NULL, WHY_LINK_DOWN));
	assert_true(port_derive(&p));
	port_changed(&p, SOURCE_ASYNC, true, t1);
	assert_true(port_judge(&p, &params, NULL, t1));
	assert_string_equal(fact(&p, PF_STATE), "DOWN");
	assert_string_equal(fact(&p, PF_LID), "8"); /* the port-down rule */
	assert_string_equal(fact(&p, PF_LINK_EXISTS), "false");
	assert_string_equal(fact(&p, PF_LINK_MTU), "-");
	assert_int_equal(p.facts.why[PF_RATE_MBPS], WHY_LINK_DOWN);
	assert_string_equal(far_fact(&p, RF_NODE_DESC), "-");
	assert_string_equal(p.last_remote, "leaf07/22");
	assert_int_equal(p.remote.why[RF_STATE], WHY_LINK_DOWN);
	assert_int_equal(p.health, HEALTH_BAD);
	assert_string_equal(p.health_why, "link DOWN POLLING");
	assert_true(p.health_since.ns == t1.ns && p.state_since.ns == t1.ns);
	assert_int_equal(p.source, SOURCE_ASYNC);
	assert_int_equal(p.missed_events, 0);
	assert_null(p.local_physp.remote);
	port_done(&p);
}

static void switches_have_long_names(void **state)
{
	char buf[16];

	(void)state;
	assert_string_equal(node_desc_short("leaf07", buf, sizeof(buf)), "leaf07");
	assert_string_equal(node_desc_short("MF0;leaf08:MQM8700/U1", buf, sizeof(buf)),
			    "leaf08");
	assert_string_equal(node_desc_short("a;b", buf, sizeof(buf)), "a;b");
	assert_string_equal(node_desc_short("a;", buf, sizeof(buf)), "a;");
	assert_string_equal(node_desc_short("0123456789abcdefgh", buf, sizeof(buf)),
			    "0123456789abcde");
}

static void the_cable_moves(void **state)
{
	struct port_info pi = info_active();
	struct node_info ni = node_of(0x5678, 3);
	struct port p;

	(void)state;
	port_up(&p);
	p.remote_physp.healthy = false;
	assert_true(port_judge(&p, &params, NULL, t1));
	assert_string_equal(p.health_why, "far end leaf07/22 is marked bad");
	assert_true(port_apply_remote(&p, &ni, NULL, NULL, WHY_TIMEOUT));
	(void)port_derive(&p);
	assert_true(port_judge(&p, &params, NULL, t2));
	assert_string_equal(far_fact(&p, RF_PORT), "3");
	assert_int_equal(p.remote.why[RF_NODE_DESC], WHY_TIMEOUT);
	assert_string_equal(p.last_remote, "0x0000000000005678/3");
	assert_int_equal(p.remote.why[RF_MAX_MTU], WHY_TIMEOUT);
	assert_string_equal(fact(&p, PF_LINK_EXISTS), "true");
	assert_int_equal(p.health, HEALTH_OK);
	pi.mtu_cap = 2;
	assert_true(port_apply_remote(&p, &ni, "leaf08", &pi, WHY_NONE));
	assert_true(port_derive(&p));
	assert_string_equal(fact(&p, PF_LINK_MTU), "512");
	port_done(&p);
}

static void far_end_that_is_down(void **state)
{
	struct port_info pi = info_active();
	struct node_info ni = node_of(0x5678, 3);
	struct port p;

	(void)state;
	port_up(&p);
	pi.state = 1;
	assert_true(port_apply_remote(&p, &ni, "leaf08", &pi, WHY_NONE));
	assert_string_equal(far_fact(&p, RF_STATE), "DOWN");
	assert_int_equal(p.remote.why[RF_LID], WHY_LINK_DOWN);
	assert_int_equal(p.remote.why[RF_SPEED_ACTIVE], WHY_LINK_DOWN);
	port_done(&p);
}

static void a_port_that_was_never_up(void **state)
{
	struct port_info pi = {.state = 1, .phys_state = 2, .lid = 3};
	struct port p;

	(void)state;
	port_init(&p, "mlx5_1", 4, 2, t0);
	assert_false(port_judge(&p, &params, NULL, t0));
	assert_int_equal(p.health, HEALTH_UNKNOWN);
	assert_string_equal(p.health_why, "state not-read");
	(void)port_apply_info(&p, &pi);
	(void)port_derive(&p);
	assert_true(port_judge(&p, &params, NULL, t1));
	assert_int_equal(p.health, HEALTH_UNUSED);
	assert_int_equal(p.facts.why[PF_LID], WHY_LINK_DOWN);
	assert_int_equal(p.facts.why[PF_LINK_MTU], WHY_LINK_DOWN);
	p.expected = true;
	assert_true(port_judge(&p, &params, NULL, t2));
	assert_int_equal(p.health, HEALTH_BAD);
	port_done(&p);
}

static void an_ethernet_port(void **state)
{
	struct port p;

	(void)state;
	port_init(&p, "rxe0", 1, 1, t0);
	(void)port_set_text(&p, PF_LINK_LAYER, "ethernet");
	(void)port_set_states(&p, 4, 5);
	(void)port_set_text(&p, PF_WIDTH_ACTIVE, "1x");
	(void)port_set_text(&p, PF_SPEED_ACTIVE, "SDR");
	(void)port_set_u64(&p, PF_ACTIVE_MTU, 1024);
	(void)port_set_u64(&p, PF_PORT_GUID, 9);
	for (int f = PF_LID; f <= PF_LMC; f++)
		(void)port_set_missing(&p, f, WHY_NOT_INFINIBAND);
	(void)port_apply_remote(&p, NULL, NULL, NULL, WHY_NOT_INFINIBAND);
	(void)port_derive(&p);
	(void)port_judge(&p, &params, NULL, t0);
	assert_int_equal(p.health, HEALTH_OK);
	assert_string_equal(fact(&p, PF_RATE_MBPS), "2500");
	assert_string_equal(fact(&p, PF_LINK_MTU), "1024");
	assert_int_equal(p.facts.why[PF_LINK_VLS], WHY_NOT_READ);
	assert_int_equal(p.facts.why[PF_LID_FIRST], WHY_NOT_INFINIBAND);
	assert_int_equal(p.facts.why[PF_LINK_EXISTS], WHY_NOT_INFINIBAND);
	assert_string_equal(fact(&p, PF_LINK_HEALTHY), "true");
	port_done(&p);
}

static void lies(void **state)
{
	struct port_info pi = info_active();
	struct port p;

	(void)state;
	port_up(&p);
	(void)port_set_u64(&p, PF_PORT_GUID, 0);
	assert_true(port_derive(&p));
	assert_int_equal(p.flags, FLAG_ZERO_GUID);
	assert_int_equal(p.facts.why[PF_LINK_EXISTS], WHY_OUT_OF_RANGE);
	(void)port_set_u64(&p, PF_PORT_GUID, 5);
	assert_true(port_derive(&p));
	assert_int_equal(p.flags, 0);
	pi.lid = 0xc000;
	pi.lmc = 7;
	pi.neighbor_mtu = pi.mtu_cap = 15;
	pi.op_vls = 0;
	pi.width_active = 0x40;
	pi.speed_active = 9;
	pi.ext_active = 0;
	(void)port_apply_info(&p, &pi);
	(void)port_derive(&p);
	(void)port_judge(&p, &params, NULL, t1);
	assert_int_equal(p.facts.why[PF_LID_FIRST], WHY_OUT_OF_RANGE);
	assert_int_equal(p.facts.why[PF_ACTIVE_MTU], WHY_OUT_OF_RANGE);
	assert_int_equal(p.facts.why[PF_OPERATIONAL_VLS], WHY_OUT_OF_RANGE);
	assert_int_equal(p.facts.why[PF_RATE_MBPS], WHY_OUT_OF_RANGE);
	assert_string_equal(fact(&p, PF_WIDTH_ACTIVE), "unknown(0x40)");
	assert_string_equal(fact(&p, PF_SPEED_ACTIVE), "unknown");
	port_set_u64(&p, PF_LID, 70000);
	(void)port_derive(&p);
	assert_int_equal(p.facts.why[PF_LID_LAST], WHY_OUT_OF_RANGE);
	(void)port_set_states(&p, 99, 99);
	assert_int_equal(p.facts.why[PF_STATE], WHY_OUT_OF_RANGE);
	(void)port_judge(&p, &params, NULL, t0);
	assert_int_equal(p.health, HEALTH_UNKNOWN);
	assert_false(port_is_down(&p));
	assert_string_equal(fact(&p, PF_PHYSICAL_STATE), "UNKNOWN");
	(void)port_set_states(&p, 4, 0);
	assert_int_equal(p.facts.why[PF_PHYSICAL_STATE], WHY_NOT_SUPPORTED);
	assert_false(port_is_down(&p));
	(void)port_set_states(&p, 5, 5);
	assert_false(port_is_down(&p));
	(void)port_set_states(&p, 2, 5);
	assert_true(port_is_down(&p));
	port_done(&p);
}

static void below_what_both_ends_can(void **state)
{
	/* clang-format off */
	static const struct {
		uint8_t own_width, own_w, far_w, own_ext, own_e, far_e;
		enum health want;
		const char *why;
	} rows[] = {
		{ 2, 3, 3, 2, 3, 3, HEALTH_OK, "" },
		{ 1, 3, 3, 2, 3, 3, HEALTH_DEGRADED, "width 1x of 4x" },
		{ 2, 3, 3, 1, 3, 3, HEALTH_DEGRADED, "speed FDR of EDR" },
		{ 1, 3, 3, 1, 3, 3, HEALTH_DEGRADED, "width 1x of 4x, speed FDR of EDR" },
		{ 1, 3, 1, 1, 3, 1, HEALTH_OK, "" },   /* the far end can do no more */
		{ 2, 11, 3, 2, 3, 3, HEALTH_OK, "" },  /* 12x of one end alone */
		{ 16, 19, 19, 2, 3, 3, HEALTH_DEGRADED, "width 2x of 4x" },
	};
	/* clang-format on */

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct port_info own = info_active(), far = info_active();
		struct node_info ni = node_of(0x1234, 22);
		struct port p;

		port_up(&p);
		p.watch.baseline.lanes = 0; /* not to be compared with what it had */
		own.width_active = far.width_active = rows[i].own_width;
		own.width_supported = own.width_enabled = rows[i].own_w;
		far.width_supported = far.width_enabled = rows[i].far_w;
		own.ext_active = far.ext_active = rows[i].own_ext;
		own.ext_supported = own.ext_enabled = rows[i].own_e;
		far.ext_supported = far.ext_enabled = rows[i].far_e;
		(void)port_apply_info(&p, &own);
		(void)port_apply_remote(&p, &ni, "leaf07", &far, WHY_NONE);
		(void)port_judge(&p, &params, NULL, t1);
		assert_int_equal(p.health, rows[i].want);
		assert_string_equal(p.health_why, rows[i].why);
		port_done(&p);
	}
}

static void what_is_switched_off_is_no_damage(void **state)
{
	struct port_info own = info_active();
	struct port p;

	(void)state;
	port_up(&p);
	own.width_active = own.width_enabled = 1;
	(void)port_apply_info(&p, &own);
	assert_false(port_judge(&p, &params, NULL, t1));
	assert_int_equal(p.health, HEALTH_OK);
	port_done(&p);
}

static void the_operator_overrides(void **state)
{
	struct port p;

	(void)state;
	port_up(&p);
	p.override = OVERRIDE_BAD;
	(void)str_copy(p.override_by, sizeof(p.override_by), "alice");
	p.dirty = false;
	assert_true(port_judge(&p, &params, NULL, t1));
	assert_true(p.dirty);
	assert_int_equal(p.health, HEALTH_BAD);
	assert_string_equal(p.health_why, "set bad by alice");
	assert_string_equal(fact(&p, PF_LINK_HEALTHY), "false");
	(void)port_derive(&p);
	assert_string_equal(fact(&p, PF_LINK_HEALTHY), "false");
	(void)port_set_states(&p, 1, 2);
	p.override = OVERRIDE_OK;
	assert_true(port_judge(&p, &params, NULL, t2));
	assert_int_equal(p.health, HEALTH_OK);
	assert_true(p.health_since.ns == t2.ns);
	p.override = OVERRIDE_AUTO;
	assert_true(port_judge(&p, &params, NULL, t2));
	assert_int_equal(p.health, HEALTH_BAD);
	port_done(&p);
}

static void other_states(void **state)
{
	struct port p;

	(void)state;
	port_up(&p);
	(void)port_set_states(&p, 2, 5);
	assert_true(port_judge(&p, &params, NULL, t1));
	assert_string_equal(p.health_why, "link INIT LINK_UP");
	assert_int_equal(p.health, HEALTH_BAD);
	(void)port_set_states(&p, 5, 6);
	assert_true(port_judge(&p, &params, NULL, t1));
	assert_int_equal(p.health, HEALTH_DEGRADED);
	(void)port_set_missing(&p, PF_STATE, WHY_NO_WORKER);
	assert_true(port_judge(&p, &params, NULL, t2));
	assert_int_equal(p.health, HEALTH_UNKNOWN);
	assert_string_equal(p.health_why, "state no-worker");
	port_done(&p);
}

static void only_a_poll_beside_events_is_a_miss(void **state)
{
	struct port p;

	(void)state;
	port_up(&p);
	(void)port_set_u64(&p, PF_LID, 9);
	port_changed(&p, SOURCE_POLL, false, t1);
	assert_int_equal(p.missed_events, 0);
	assert_true(p.state_since.ns == t0.ns && p.changed.ns == t1.ns);
	port_changed(&p, SOURCE_ASYNC, true, t1);
	assert_int_equal(p.missed_events, 0);
	port_changed(&p, SOURCE_POLL, true, t2);
	assert_int_equal(p.missed_events, 1);
	assert_true(p.flags & FLAG_MISSED_EVENT);
	(void)port_set_states(&p, 1, 2);
	port_changed(&p, SOURCE_NETLINK, true, t1);
	port_changed(&p, SOURCE_NETLINK, true, t2);
	assert_true(p.state_since.ns == t1.ns);
	port_done(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tables_are_whole),
		cmocka_unit_test(facts_say_when_they_change),
		cmocka_unit_test(gids_as_text),
		cmocka_unit_test(down_copies_only_the_states),
		cmocka_unit_test(links_never_have_one_end),
		cmocka_unit_test(a_link_needs_two_valid_ports),
		cmocka_unit_test(unknown_far_end_heals_nothing),
		cmocka_unit_test(mtu_and_vls_from_both_ends),
		cmocka_unit_test(ranges_of_lids),
		cmocka_unit_test(an_active_port),
		cmocka_unit_test(nothing_new_changes_nothing),
		cmocka_unit_test(a_far_end_without_guid_is_news_once),
		cmocka_unit_test(the_link_goes_down),
		cmocka_unit_test(switches_have_long_names),
		cmocka_unit_test(the_cable_moves),
		cmocka_unit_test(far_end_that_is_down),
		cmocka_unit_test(a_port_that_was_never_up),
		cmocka_unit_test(an_ethernet_port),
		cmocka_unit_test(lies),
		cmocka_unit_test(below_what_both_ends_can),
		cmocka_unit_test(what_is_switched_off_is_no_damage),
		cmocka_unit_test(the_operator_overrides),
		cmocka_unit_test(other_states),
		cmocka_unit_test(only_a_poll_beside_events_is_a_miss),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
