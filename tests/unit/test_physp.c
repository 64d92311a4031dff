/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>
#include <errno.h>

#include "physp.h"

#define PORTS 4

/* A node on its own, outside of any subnet. */
struct rig {
	struct ib_node node;
	struct physp slots[PORTS + 1];
};

static void rig_init(struct rig *r, uint8_t type)
{
	*r = (struct rig){
		.node = {.info = {.node_type = type, .num_ports = PORTS,
				  .node_guid = 0x100, .port_guid = 0x101}}};
	r->node.slots = r->slots;
	for (unsigned i = 0; i <= PORTS; i++)
		physp_init(&r->slots[i], 0x101, (uint8_t)i, &r->node, 0, NULL);
}

static void rig_done(struct rig *r)
{
	for (unsigned i = 0; i <= PORTS; i++)
		physp_destroy(&r->slots[i]);
}

static struct port_info active_info(void)
{
	return (struct port_info){.state = IB_ACTIVE, .phys_state = IB_PHYS_LINK_UP,
				  .lid = 0x20, .lmc = 2, .gid_prefix = 0xfe80};
}

/* ---- life ---- */

static void constructed_is_nothing(void **state)
{
	struct physp p, zero = {0};
	uint8_t hops = 9;

	(void)state;
	memset(&p, 0xff, sizeof(p));
	physp_construct(&p);
	assert_memory_equal(&p, &zero, sizeof(p));
	assert_false(physp_is_valid(&p));
	assert_false(physp_is_healthy(&p));
	assert_null(physp_node(&p));
	assert_null(physp_remote(&p));
	assert_false(physp_has_link(&p));
	assert_int_equal(physp_path(&p, &hops)[0], 0);
	assert_int_equal(hops, 0);
	physp_destroy(&p);
	physp_unlink(&p);
}

static void init_sets_what_is_told(void **state)
{
	static const uint8_t path[IB_PATH_LEN] = {0, 1, 17, 3, 99};
	struct ib_node node = {0};
	struct physp p;
	uint8_t hops;

	(void)state;
	memset(&p, 0xff, sizeof(p));
	physp_init(&p, 0xabc, 7, &node, 3, path);
	assert_true(physp_is_valid(&p));
	assert_true(physp_is_healthy(&p));
	assert_int_equal(physp_guid(&p), 0xabc);
	assert_int_equal(physp_num(&p), 7);
	assert_ptr_equal(physp_node(&p), &node);
	assert_int_equal(p.need_update, 2);
	assert_memory_equal(physp_path(&p, &hops), path, 4);
	assert_int_equal(hops, 3);
	assert_int_equal(p.path[4], 0); /* first hops + 1 bytes alone */
	physp_init(&p, 0, 7, &node, 3, path);
	assert_false(physp_is_valid(&p));
}

static void routes_that_are_too_long_are_none(void **state)
{
	uint8_t path[IB_HOPS_MAX + 2], hops;
	struct physp p;

	(void)state;
	for (unsigned i = 0; i < sizeof(path); i++)
		path[i] = (uint8_t)i;
	physp_init(&p, 1, 1, NULL, IB_HOPS_MAX, path);
	assert_memory_equal(physp_path(&p, &hops), path, IB_HOPS_MAX + 1);
	assert_int_equal(hops, IB_HOPS_MAX);
	physp_set_path(&p, IB_HOPS_MAX + 1, path);
	assert_int_equal(physp_path(&p, &hops)[1], 0);
	assert_int_equal(hops, 0);
	physp_set_path(&p, 2, path);
	assert_int_equal(physp_path(&p, &hops)[2], 2);
	assert_int_equal(hops, 2);
	physp_set_path(&p, 5, NULL);
	(void)physp_path(&p, &hops);
	assert_int_equal(hops, 0);
}

static void destroy_leaves_no_half_link(void **state)
{
	struct vlarb_block arb = {0};
	struct pkey_block keys = {0};
	struct slvl sl = {0};
	struct physp zero = {0};
	struct physp far;
	struct rig r;

	(void)state;
	rig_init(&r, NODE_SWITCH);
	r.node.sw.partition_enf_cap = 32;
	physp_init(&far, 5, 1, NULL, 0, NULL);
	physp_link(&r.slots[1], &far);
	assert_int_equal(physp_set_pkeys(&r.slots[1], 0, &keys), 0);
	assert_int_equal(physp_set_slvl(&r.slots[1], 2, &sl), 0);
	assert_int_equal(physp_set_vlarb(&r.slots[1], 3, &arb), 0);
	physp_destroy(&r.slots[1]);
	assert_memory_equal(&r.slots[1], &zero, sizeof(zero));
	assert_null(physp_remote(&far));
	/* Nothing is done to one that is not valid. */
	far.guid = 0;
	far.num = 3;
	physp_destroy(&far);
	assert_int_equal(far.num, 3);
	assert_true(far.healthy);
	rig_done(&r);
}

/* ---- facts ---- */

static void health_is_a_flag_of_its_own(void **state)
{
	struct port_info pi = active_info();
	struct physp p;

	(void)state;
	physp_init(&p, 1, 1, NULL, 0, NULL);
	pi.state = IB_DOWN;
	physp_set_info(&p, &pi);
	assert_true(physp_is_healthy(&p));
	physp_set_health(&p, false);
	pi.state = IB_ACTIVE;
	physp_set_info(&p, &pi);
	assert_false(physp_is_healthy(&p));
	physp_set_health(&p, true);
	assert_true(physp_is_healthy(&p));
}

static void need_update_follows_the_state(void **state)
{
	(void)state;
	for (uint8_t before = 0; before <= 2; before++) {
		for (uint8_t s = 0; s < 16; s++) {
			struct port_info pi = active_info();
			struct physp p;
			int want = s == IB_DOWN			  ? 0
				   : before == 2 || s == IB_INIT ? 1
								  : 0;

			physp_init(&p, 1, 1, NULL, 0, NULL);
			p.need_update = before;
			pi.state = s;
			physp_set_info(&p, &pi);
			assert_int_equal(p.need_update, want);
			assert_int_equal(physp_state(&p), s);
		}
	}
}

static void port_0_of_a_base_switch_is_copied_whole(void **state)
{
	struct port_info pi = active_info();
	struct rig r;

	(void)state;
	pi.state = IB_DOWN;
	rig_init(&r, NODE_SWITCH);
	physp_set_info(&r.slots[0], &pi);
	assert_true(r.slots[0].info_full);
	assert_int_equal(physp_base_lid(&r.slots[0]), 0x20);
	assert_int_equal(r.slots[0].need_update, 1);
	physp_set_info(&r.slots[1], &pi);
	assert_false(r.slots[1].info_full);
	assert_int_equal(r.slots[1].need_update, 0);

	rig_init(&r, NODE_SWITCH);
	r.node.sw.enhanced_port0 = 1;
	physp_set_info(&r.slots[0], &pi);
	assert_false(r.slots[0].info_full);
	assert_int_equal(physp_base_lid(&r.slots[0]), 0);
}

static void ports_of_a_switch_share_lid_and_route(void **state)
{
	static const uint8_t path[] = {0, 1, 2};
	struct port_info pi = active_info();
	struct rig sw, ca;
	uint8_t hops;

	(void)state;
	rig_init(&sw, NODE_SWITCH);
	rig_init(&ca, NODE_CA);
	physp_set_info(&sw.slots[0], &pi);
	physp_set_info(&ca.slots[1], &pi);
	for (unsigned i = 1; i <= PORTS; i++) {
		pi.lid = (uint16_t)(0x30 + i); /* what an external port says is no LID */
		physp_set_info(&sw.slots[i], &pi);
		assert_int_equal(physp_base_lid(&sw.slots[i]), 0x20);
		assert_int_equal(physp_lmc(&sw.slots[i]), 2);
		assert_int_equal(physp_subnet_prefix(&sw.slots[i]), 0xfe80);
	}
	assert_int_equal(physp_base_lid(&ca.slots[1]), 0x20);
	assert_int_equal(physp_base_lid(&ca.slots[2]), 0);
	physp_set_path(&sw.slots[3], 2, path);
	physp_set_path(&ca.slots[2], 2, path);
	for (unsigned i = 0; i <= PORTS; i++) {
		assert_int_equal(physp_path(&sw.slots[i], &hops)[2], 2);
		assert_int_equal(hops, 2);
		(void)physp_path(&ca.slots[i], &hops);
		assert_int_equal(hops, i == 2 ? 2 : 0);
	}
	/* The switch at the other end of a host's port has no slots. */
	sw.node.slots = NULL;
	assert_int_equal(physp_base_lid(&sw.slots[1]), 0x31);
}

/* ---- P_Keys ---- */

static void capacity_is_where_the_port_is(void **state)
{
	struct rig r;

	(void)state;
	rig_init(&r, NODE_SWITCH);
	r.node.info.partition_cap = 128;
	r.node.sw.partition_enf_cap = 8;
	assert_int_equal(physp_pkey_capacity(&r.slots[0]), 128);
	assert_int_equal(physp_pkey_capacity(&r.slots[1]), 8);
	r.node.info.node_type = NODE_CA;
	assert_int_equal(physp_pkey_capacity(&r.slots[1]), 128);
	r.node.info.node_type = NODE_ROUTER;
	assert_int_equal(physp_pkey_capacity(&r.slots[1]), 128);
	r.slots[1].node = NULL;
	assert_int_equal(physp_pkey_capacity(&r.slots[1]), 0);
}

static void blocks_beyond_the_capacity_are_refused(void **state)
{
	struct pkey_block b = {{0x8001}};

	(void)state;
	for (unsigned cap = 0; cap < 200; cap++) {
		unsigned blocks = cap / 32 + !!(cap % 32);
		struct rig r;

		rig_init(&r, NODE_CA);
		r.node.info.partition_cap = (uint16_t)cap;
		for (unsigned i = 8; i-- > 0;)
			assert_int_equal(physp_set_pkeys(&r.slots[1], i, &b),
					 i < blocks ? 0 : -ERANGE);
		if (cap)
			assert_int_equal(r.slots[1].pkeys->n_blocks, blocks);
		else
			assert_null(r.slots[1].pkeys);
		rig_done(&r);
	}
}

static void the_full_member_wins(void **state)
{
	static const uint16_t orders[][2] = {{0x7fff, 0xffff}, {0xffff, 0x7fff}};
	struct rig r;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(orders); i++) {
		struct pkey_block b = {{0x0000, 0x8000, 0x0012}};

		b.pkey[5] = orders[i][0];
		b.pkey[9] = orders[i][1];
		rig_init(&r, NODE_CA);
		r.node.info.partition_cap = 64;
		assert_int_equal(physp_find_pkey(&r.slots[1], 0xffff), 0);
		assert_int_equal(physp_set_pkeys(&r.slots[1], 1, &b), 0);
		assert_int_equal(r.slots[1].pkeys->read, 2);
		assert_int_equal(physp_find_pkey(&r.slots[1], 0xffff), 0xffff);
		assert_int_equal(physp_find_pkey(&r.slots[1], 0x7fff), 0xffff);
		assert_int_equal(physp_find_pkey(&r.slots[1], 0x8012), 0x0012);
		assert_int_equal(physp_find_pkey(&r.slots[1], 0x0013), 0);
		assert_int_equal(physp_find_pkey(&r.slots[1], 0x8000), 0);
		assert_int_equal(physp_find_pkey(&r.slots[1], 0), 0);
		/* What was there and is overwritten is gone. */
		b = (struct pkey_block){0};
		assert_int_equal(physp_set_pkeys(&r.slots[1], 1, &b), 0);
		assert_int_equal(physp_find_pkey(&r.slots[1], 0x7fff), 0);
		rig_done(&r);
	}
}

static uint16_t naive_find(const uint16_t *keys, unsigned n, uint16_t key)
{
	bool full = false, limited = false;

	for (unsigned i = 0; i < n; i++) {
		full |= keys[i] == (key | 0x8000);
		limited |= keys[i] == (key & 0x7fff);
	}
	if (!(key & 0x7fff))
		return 0;
	return full ? key | 0x8000 : limited ? key & 0x7fff : 0;
}

static void pkeys_are_as_in_a_plain_array(void **state)
{
	uint64_t rnd = 3;

	(void)state;
	for (int round = 0; round < 200; round++) {
		uint16_t keys[160] = {0};
		struct rig r;
		unsigned cap;

		rnd = mix64(rnd);
		cap = 1 + rnd % 160;
		rig_init(&r, NODE_CA);
		r.node.info.partition_cap = (uint16_t)cap;
		for (int step = 0; step < 20; step++) {
			struct pkey_block b;
			unsigned block = (rnd >> 20) % 5;

			for (int i = 0; i < IB_PKEYS_EACH; i++) {
				rnd = mix64(rnd);
				b.pkey[i] = (uint16_t)((rnd & 0x8000) | (rnd >> 30) % 40);
			}
			if (physp_set_pkeys(&r.slots[2], block, &b) == 0)
				memcpy(&keys[block * 32], b.pkey, sizeof(b.pkey));
			for (uint32_t k = 0; k < 41; k++)
				assert_int_equal(physp_find_pkey(&r.slots[2], (uint16_t)k),
						 naive_find(keys, cap, (uint16_t)k));
		}
		rig_done(&r);
	}
}

/* ---- quality of service ---- */

static void sl_to_vl_by_input_port(void **state)
{
	static const uint8_t types[] = {NODE_SWITCH, NODE_CA, NODE_ROUTER};

	(void)state;
	for (size_t t = 0; t < ARRAY_LEN(types); t++) {
		unsigned n = types[t] == NODE_SWITCH ? PORTS + 1 : 1;
		struct rig r;

		rig_init(&r, types[t]);
		assert_null(physp_get_slvl(&r.slots[1], 0));
		for (unsigned in = 0; in < 8; in++) {
			struct slvl sl = {{(uint8_t)in, 15}};

			assert_int_equal(physp_set_slvl(&r.slots[1], in, &sl),
					 in < n ? 0 : -ERANGE);
			if (in + 1 < n)
				assert_null(physp_get_slvl(&r.slots[1], in + 1));
		}
		for (unsigned in = 0; in < n; in++)
			assert_int_equal(physp_get_slvl(&r.slots[1], in)->vl[0], in);
		assert_null(physp_get_slvl(&r.slots[1], n));
		assert_int_equal(r.slots[1].qos->n_slvl, n);
		rig_done(&r);
	}
}

static void four_blocks_of_arbitration(void **state)
{
	struct physp *p;
	struct rig r;

	(void)state;
	rig_init(&r, NODE_CA);
	p = &r.slots[1];
	for (unsigned block = 0; block < 7; block++) {
		struct vlarb_block b = {0};

		b.e[31].weight = (uint8_t)block;
		assert_null(physp_get_vlarb(p, block));
		assert_int_equal(physp_set_vlarb(p, block, &b),
				 block >= 1 && block <= 4 ? 0 : -ERANGE);
	}
	assert_null(physp_get_vlarb(p, 0));
	for (unsigned block = 1; block <= 4; block++)
		assert_int_equal(physp_get_vlarb(p, block)->e[31].weight, block);
	assert_null(physp_get_vlarb(p, 5));
	rig_done(&r);
}

static void no_tables_of_what_is_not_valid(void **state)
{
	struct vlarb_block arb = {0};
	struct pkey_block keys = {0};
	struct slvl sl = {0};
	struct physp p;

	(void)state;
	physp_construct(&p);
	assert_int_equal(physp_set_pkeys(&p, 0, &keys), -EINVAL);
	assert_int_equal(physp_set_slvl(&p, 0, &sl), -EINVAL);
	assert_int_equal(physp_set_vlarb(&p, 1, &arb), -EINVAL);
	assert_null(p.pkeys);
	assert_null(p.qos);
}

/* ---- links ---- */

static void a_moved_cable_leaves_nothing(void **state)
{
	struct physp a, b, c;

	(void)state;
	physp_init(&a, 1, 1, NULL, 0, NULL);
	physp_init(&b, 2, 1, NULL, 0, NULL);
	physp_init(&c, 3, 1, NULL, 0, NULL);
	physp_link(&a, &b);
	assert_true(physp_has_link(&a) && physp_has_link(&b));
	assert_ptr_equal(physp_remote(&b), &a);
	physp_link(&c, &b);
	assert_false(physp_has_link(&a));
	assert_ptr_equal(physp_remote(&b), &c);
	physp_link(&c, &b);
	assert_true(physp_link_exists(&b, &c));
	physp_unlink(&b);
	assert_false(physp_has_link(&b) || physp_has_link(&c));
	physp_unlink(&b);
	a.guid = 0;
	physp_link(&a, &b);
	assert_false(physp_has_link(&a));
	assert_true(physp_has_link(&b));
}

static void a_loop_plug(void **state)
{
	struct physp a, b;

	(void)state;
	physp_init(&a, 1, 1, NULL, 0, NULL);
	physp_init(&b, 2, 1, NULL, 0, NULL);
	physp_link(&a, &b);
	physp_link(&a, &a);
	assert_true(physp_link_exists(&a, &a));
	assert_null(physp_remote(&b));
	assert_true(physp_link_healthy(&a));
	physp_set_health(&a, false);
	assert_false(physp_link_healthy(&a));
	physp_unlink(&a);
	assert_null(physp_remote(&a));
	physp_link(&a, &a);
	physp_destroy(&a);
	assert_null(a.remote);
}

/* Links, unlinks and ports that come and go, against a table of partners. */
static void links_are_as_in_a_plain_table(void **state)
{
	enum { N = 9 };
	struct physp p[N];
	int partner[N];
	uint64_t rnd = 11;

	(void)state;
	for (int i = 0; i < N; i++) {
		physp_init(&p[i], (uint64_t)i + 1, 1, NULL, 0, NULL);
		partner[i] = -1;
	}
	for (int step = 0; step < 50000; step++) {
		int a, b, what;

		rnd = mix64(rnd);
		a = (int)(rnd % N);
		b = (int)((rnd >> 16) % N);
		what = (int)((rnd >> 32) % 4);
		if (partner[a] >= 0)
			partner[partner[a]] = -1;
		partner[a] = -1;
		if (what < 2) {
			if (partner[b] >= 0)
				partner[partner[b]] = -1;
			partner[a] = b;
			partner[b] = a;
			physp_link(&p[a], &p[b]);
		} else if (what == 2) {
			physp_unlink(&p[a]);
		} else {
			physp_destroy(&p[a]);
			assert_false(physp_is_valid(&p[a]));
			physp_init(&p[a], (uint64_t)a + 1, 1, NULL, 0, NULL);
		}
		for (int i = 0; i < N; i++) {
			assert_ptr_equal(p[i].remote,
					 partner[i] < 0 ? NULL : &p[partner[i]]);
			assert_true(physp_has_link(&p[i]) == (partner[i] >= 0));
		}
	}
}

static void vls_are_capped_by_the_administration(void **state)
{
	struct port_info pi = active_info();
	struct physp p;

	(void)state;
	physp_init(&p, 1, 1, NULL, 0, NULL);
	pi.op_vls = 4;
	physp_set_info(&p, &pi);
	assert_int_equal(physp_link_vls(&p, 0), 4);
	for (uint8_t cap = 1; cap <= 5; cap++)
		assert_int_equal(physp_link_vls(&p, cap), MIN(cap, 4));
}

/* ---- speeds and widths ---- */

static struct port_info rates(uint8_t width, uint8_t speed, uint8_t ext)
{
	struct port_info pi = active_info();

	pi.width_supported = pi.width_enabled = 3; /* 1x 4x */
	pi.width_active = width;
	pi.speed_supported = pi.speed_enabled = 7; /* up to QDR */
	pi.speed_active = speed;
	pi.ext_supported = pi.ext_enabled = 3; /* FDR EDR */
	pi.ext_active = ext;
	pi.cap_mask = IB_CAP_EXTENDED_SPEEDS;
	return pi;
}

static void extended_speeds_need_the_capability(void **state)
{
	struct port_info pi = rates(2, 4, 2);
	struct rig r;

	(void)state;
	rig_init(&r, NODE_CA);
	physp_set_info(&r.slots[1], &pi);
	assert_int_equal(physp_speed(&r.slots[1]), SPEED_EDR);
	pi.cap_mask = 0;
	physp_set_info(&r.slots[1], &pi);
	assert_int_equal(physp_speed(&r.slots[1]), SPEED_QDR);
	pi.state = IB_DOWN;
	physp_set_info(&r.slots[1], &pi);
	assert_int_equal(physp_speed(&r.slots[1]), SPEED_UNKNOWN);

	/* Of a switch, port 0 speaks for all. */
	rig_init(&r, NODE_SWITCH);
	pi = rates(2, 4, 2);
	pi.cap_mask = 0;
	physp_set_info(&r.slots[1], &pi);
	assert_int_equal(physp_speed(&r.slots[1]), SPEED_EDR); /* nobody asked it yet */
	physp_set_info(&r.slots[0], &pi);
	assert_int_equal(physp_speed(&r.slots[1]), SPEED_QDR);
	pi.cap_mask = IB_CAP_EXTENDED_SPEEDS;
	physp_set_info(&r.slots[0], &pi);
	assert_int_equal(physp_speed(&r.slots[1]), SPEED_EDR);
	r.node.slots = NULL;
	assert_int_equal(physp_speed(&r.slots[1]), SPEED_EDR);
}

static void degraded_is(struct port_info a, const struct port_info *b, const char *want)
{
	struct rig r, far;
	char why[128];

	rig_init(&r, NODE_CA);
	rig_init(&far, NODE_CA);
	physp_set_info(&r.slots[1], &a);
	if (b) {
		physp_set_info(&far.slots[1], b);
		physp_link(&r.slots[1], &far.slots[1]);
	}
	assert_true(physp_is_degraded(&r.slots[1], why) == (want[0] != '\0'));
	assert_string_equal(why, want);
}

static void degraded_against_both_ends(void **state)
{
	struct port_info a = rates(2, 4, 2), b = a;

	(void)state;
	degraded_is(a, &b, "");
	degraded_is(a, NULL, "");
	degraded_is(rates(1, 4, 2), &b, "width 1x of 4x");
	degraded_is(rates(1, 1, 0), &b, "width 1x of 4x, speed SDR of EDR");
	degraded_is(rates(2, 4, 1), NULL, "speed FDR of EDR");
	/* What the far end cannot do or may not do is no damage. */
	b.width_supported = 1;
	b.ext_enabled = 1;
	degraded_is(rates(1, 4, 1), &b, "");
	b.ext_enabled = 30; /* extended speeds disabled */
	degraded_is(rates(1, 4, 0), &b, "");
	degraded_is(rates(1, 2, 0), &b, "speed DDR of QDR");
	b.ext_enabled = 3;
	b.cap_mask = 0;
	degraded_is(rates(1, 4, 0), &b, "");
	/* A far end that nobody read says nothing. */
	b.state = IB_DOWN;
	degraded_is(rates(1, 4, 2), &b, "width 1x of 4x");
	a = rates(1, 1, 0);
	a.state = IB_DOWN;
	degraded_is(a, NULL, "");
}

static void port_0_is_never_degraded(void **state)
{
	struct port_info pi = rates(1, 1, 0);
	char why[128];
	struct rig r;

	(void)state;
	rig_init(&r, NODE_SWITCH);
	assert_false(physp_is_degraded(&r.slots[1], why)); /* not read */
	physp_set_info(&r.slots[0], &pi);
	physp_set_info(&r.slots[1], &pi);
	assert_false(physp_is_degraded(&r.slots[0], why));
	assert_true(physp_is_degraded(&r.slots[1], why));
	/* It was up once: what is left over of that means nothing. */
	pi.state = IB_DOWN;
	physp_set_info(&r.slots[1], &pi);
	assert_true(r.slots[1].info_full);
	assert_false(physp_is_degraded(&r.slots[1], why));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(constructed_is_nothing),
		cmocka_unit_test(init_sets_what_is_told),
		cmocka_unit_test(routes_that_are_too_long_are_none),
		cmocka_unit_test(destroy_leaves_no_half_link),
		cmocka_unit_test(health_is_a_flag_of_its_own),
		cmocka_unit_test(need_update_follows_the_state),
		cmocka_unit_test(port_0_of_a_base_switch_is_copied_whole),
		cmocka_unit_test(ports_of_a_switch_share_lid_and_route),
		cmocka_unit_test(capacity_is_where_the_port_is),
		cmocka_unit_test(blocks_beyond_the_capacity_are_refused),
		cmocka_unit_test(the_full_member_wins),
		cmocka_unit_test(pkeys_are_as_in_a_plain_array),
		cmocka_unit_test(sl_to_vl_by_input_port),
		cmocka_unit_test(four_blocks_of_arbitration),
		cmocka_unit_test(no_tables_of_what_is_not_valid),
		cmocka_unit_test(a_moved_cable_leaves_nothing),
		cmocka_unit_test(a_loop_plug),
		cmocka_unit_test(links_are_as_in_a_plain_table),
		cmocka_unit_test(vls_are_capped_by_the_administration),
		cmocka_unit_test(extended_speeds_need_the_capability),
		cmocka_unit_test(degraded_against_both_ends),
		cmocka_unit_test(port_0_is_never_degraded),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
