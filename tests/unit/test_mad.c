/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>

#include "mad.h"

#define TID UINT64_C(0x1122334455667788)

static void request_is_laid_out_as_the_standard_says(void **state)
{
	static const uint8_t path[] = {0, 1, 3};
	uint8_t b[MAD_LEN];

	(void)state;
	assert_int_equal(
		mad_build_dr_get(b, TID, MAD_ATTR_PORT_INFO, 0x80000002, path, 2), 0);
	assert_int_equal(b[0], 1);
	assert_int_equal(b[1], 0x81);
	assert_int_equal(b[2], 1);
	assert_int_equal(b[3], 1);
	assert_int_equal(be16_get(b + 4), 0);
	assert_int_equal(b[6], 0);
	assert_int_equal(b[7], 2);
	assert_true(be64_get(b + 8) == TID);
	assert_int_equal(be16_get(b + 16), 0x15);
	assert_int_equal(be32_get(b + 20), 0x80000002);
	assert_true(be64_get(b + 24) == 0);
	assert_int_equal(be16_get(b + 32), 0xffff);
	assert_int_equal(be16_get(b + 34), 0xffff);
	assert_memory_equal(b + 128, path, 3);
	for (int i = 131; i < MAD_LEN; i++)
		assert_int_equal(b[i], 0);
}

static void only_gets_of_known_attributes_can_be_built(void **state)
{
	uint8_t b[MAD_LEN], path[64] = {0};

	(void)state;
	for (uint32_t a = 0; a <= UINT16_MAX; a++) {
		bool known = a == 0x10 || a == 0x11 || a == 0x12 || a == 0x14 ||
			     (a >= 0x15 && a <= 0x18) || a == 0x20;

		assert_int_equal(mad_attr_allowed((uint16_t)a), known);
		assert_int_equal(mad_build_dr_get(b, 1, (uint16_t)a, 0, path, 1),
				 known ? 0 : -EINVAL);
		if (known)
			assert_int_equal(b[3], MAD_GET);
	}
	assert_int_equal(mad_build_dr_get(b, 1, MAD_ATTR_NODE_INFO, 0, path, 63), 0);
	assert_int_equal(mad_build_dr_get(b, 1, MAD_ATTR_NODE_INFO, 0, path, 64),
			 -EINVAL);
	path[0] = 1;
	assert_int_equal(mad_build_dr_get(b, 1, MAD_ATTR_NODE_INFO, 0, path, 1),
			 -EINVAL);
	assert_int_equal(mad_build_dr_get(b, 1, MAD_ATTR_NODE_INFO, 0, NULL, 0), 0);
}

/* Every class, method and attribute there is: what may leave, and what may not. */
static void only_reads_and_inform_info_may_leave(void **state)
{
	static const struct {
		uint8_t class, method;
		uint16_t attr;
	} rows[] = {
		{0x01, 0x01, 0x10}, {0x01, 0x01, 0x11}, {0x01, 0x01, 0x12},
		{0x01, 0x01, 0x14}, {0x01, 0x01, 0x15}, {0x01, 0x01, 0x16},
		{0x01, 0x01, 0x17}, {0x01, 0x01, 0x18}, {0x01, 0x01, 0x20},
		{0x03, 0x01, 0x11}, {0x03, 0x01, 0x12}, {0x03, 0x01, 0x18},
		{0x03, 0x01, 0x35}, {0x03, 0x01, 0x38}, {0x03, 0x02, 0x03},
		{0x03, 0x12, 0x11}, {0x03, 0x12, 0x12}, {0x03, 0x12, 0x18},
		{0x03, 0x12, 0x35}, {0x03, 0x12, 0x38}, {0x04, 0x01, 0x01},
		{0x04, 0x01, 0x12}, {0x04, 0x01, 0x1d}, {0x81, 0x01, 0x10},
		{0x81, 0x01, 0x11}, {0x81, 0x01, 0x12}, {0x81, 0x01, 0x14},
		{0x81, 0x01, 0x15}, {0x81, 0x01, 0x16}, {0x81, 0x01, 0x17},
		{0x81, 0x01, 0x18}, {0x81, 0x01, 0x20},
	};
	size_t next = 0;
	uint8_t b[MAD_LEN];

	(void)state;
	for (uint32_t i = 0; i < 1u << 24; i++) {
		/* Attributes of a high byte are vendors': a few stand for them. */
		uint8_t class = (uint8_t)(i >> 16), method = (uint8_t)(i >> 8);
		uint16_t attr = (uint16_t)(i & 0xff);
		struct mad_request r = {.class = class, .method = method, .attr = attr};
		bool want = next < ARRAY_LEN(rows) && rows[next].class == class &&
			    rows[next].method == method && rows[next].attr == attr;

		next += want;
		if (mad_request_allowed(class, method, attr) != want ||
		    mad_request_allowed(class, method, (uint16_t)(0xff00 | attr)))
			fail_msg("class 0x%02x method 0x%02x attribute 0x%02x", class,
				 method, attr);
		if (want)
			assert_int_equal(mad_build(b, &r), class == 0x81 ? -EINVAL : 0);
	}
	assert_int_equal(next, ARRAY_LEN(rows));
	assert_int_equal(mad_build(b, &(struct mad_request){.class = 0x01, .method = 2,
							    .attr = 0x15}),
			 -EINVAL);
}

static void requests_of_each_class(void **state)
{
	static const struct {
		uint8_t class, version;
		uint16_t attr, data, len;
	} rows[] = {
		{MAD_CLASS_SMI_LID, 1, MAD_ATTR_PORT_INFO, 64, 64},
		{MAD_CLASS_PMA, 1, MAD_ATTR_PORT_COUNTERS, 64, 192},
		{MAD_CLASS_SA, 2, MAD_ATTR_PATH_RECORD, 56, 200},
	};
	uint8_t data[256], b[MAD_LEN];

	(void)state;
	memset(data, 0x77, sizeof(data));
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct mad_request r = {.class = rows[i].class, .method = MAD_GET,
					.attr = rows[i].attr, .mod = 0x01020304,
					.tid = TID, .comp_mask = 0x1030, .data = data,
					.len = rows[i].len};

		assert_int_equal(mad_build(b, &r), 0);
		assert_int_equal(b[0], 1);
		assert_int_equal(b[1], rows[i].class);
		assert_int_equal(b[2], rows[i].version);
		assert_int_equal(b[3], 1);
		assert_true(be64_get(b + 8) == TID);
		assert_int_equal(be16_get(b + 16), rows[i].attr);
		assert_int_equal(be32_get(b + 20), 0x01020304);
		for (int k = 24; k < 48; k++) /* M_Key, RMPP, SM_Key: none */
			assert_int_equal(b[k], 0);
		assert_true(be64_get(b + 48) ==
			    (rows[i].class == MAD_CLASS_SA ? 0x1030u : 0u));
		for (int k = 56; k < MAD_LEN; k++)
			assert_int_equal(b[k], k >= rows[i].data &&
							       k < rows[i].data + rows[i].len
						       ? 0x77
						       : 0);
		r.len++;
		assert_int_equal(mad_build(b, &r), -EINVAL);
	}
}

static void answers_of_each_class(void **state)
{
	struct mad_request r = {.class = MAD_CLASS_SA, .method = MAD_GET_TABLE,
				.attr = MAD_ATTR_NODE_RECORD, .tid = TID};
	static uint8_t b[4096];
	const uint8_t *data;
	uint16_t status = 0, offset;
	size_t len;

	(void)state;
	assert_int_equal(mad_build(b, &r), 0);
	b[3] = MAD_GET_TABLE_RESP;
	be16_put(b + 44, 14);
	assert_int_equal(mad_check(b, sizeof(b), &r, &status, &data, &len, &offset), 0);
	assert_ptr_equal(data, b + 56);
	assert_int_equal(len, sizeof(b) - 56);
	assert_int_equal(offset, 112);
	assert_int_equal(mad_check(b, 56, &r, NULL, NULL, &len, NULL), 0);
	assert_int_equal(len, 0);
	assert_int_equal(mad_check(b, 55, &r, NULL, NULL, NULL, NULL), -EMSGSIZE);
	/* In one packet: the RMPP header says how much of it counts. */
	b[26] = 0x07;
	be32_put(b + 32, 20 + 112);
	assert_int_equal(mad_check(b, 256, &r, NULL, NULL, &len, NULL), 0);
	assert_int_equal(len, 112);
	be32_put(b + 32, 221); /* a lie */
	assert_int_equal(mad_check(b, 256, &r, NULL, NULL, &len, NULL), 0);
	assert_int_equal(len, 200);
	be16_put(b + 44, 0xffff);
	assert_int_equal(mad_check(b, 256, &r, NULL, NULL, NULL, &offset), 0);
	assert_int_equal(offset, 65528);
	/* The high bit is a status bit where there is no D bit. */
	be16_put(b + 4, 0x8000);
	assert_int_equal(mad_check(b, 256, &r, &status, NULL, NULL, NULL), -EREMOTEIO);
	assert_int_equal(status, 0x8000);
	be16_put(b + 4, 2);
	assert_int_equal(mad_check(b, 256, &r, NULL, NULL, NULL, NULL), -EREMOTEIO);
	be16_put(b + 4, 0);
	b[2] = 1;
	assert_int_equal(mad_check(b, 256, &r, NULL, NULL, NULL, NULL), -EBADMSG);
	b[2] = 2;
	b[3] = MAD_GET_RESP;
	assert_int_equal(mad_check(b, 256, &r, NULL, NULL, NULL, NULL), -EBADMSG);
	r.method = MAD_SET;
	assert_int_equal(mad_check(b, 256, &r, NULL, NULL, &len, NULL), 0);
	assert_int_equal(len, 200);
	assert_int_equal(mad_check(b, 92, &r, NULL, NULL, &len, NULL), 0);
	assert_int_equal(len, 36);
	assert_int_equal(mad_check(b, 55, &r, NULL, NULL, &len, NULL), -EMSGSIZE);
	assert_int_equal(mad_check(b, 257, &r, NULL, NULL, &len, NULL), -EMSGSIZE);
	b[15] ^= 1;
	assert_int_equal(mad_check(b, 256, &r, NULL, NULL, &len, NULL), -ENOMSG);
}

static void reports_are_answered_with_their_own_data(void **state)
{
	uint8_t report[MAD_LEN], b[MAD_LEN];

	(void)state;
	for (int i = 0; i < MAD_LEN; i++)
		report[i] = (uint8_t)(i + 1);
	mad_build_report_resp(b, report);
	for (int i = 0; i < MAD_LEN; i++)
		assert_int_equal(b[i], i == 3		     ? 0x86
				       : i == 4 || i == 5    ? 0
				       : i >= 24 && i < 36   ? 0
							     : (uint8_t)(i + 1));
}

static void make_answer(uint8_t b[MAD_LEN])
{
	assert_int_equal(mad_build_dr_get(b, TID, MAD_ATTR_NODE_INFO, 5, NULL, 0), 0);
	b[3] = MAD_GET_RESP;
	be16_put(b + 4, 0x8000);
}

static void answers_are_checked_in_every_part(void **state)
{
	/* clang-format off */
	static const struct {
		int at;
		uint8_t xor;
		int want;
	} rows[] = {
		{ 0, 3, -EBADMSG },  /* base version 2 */
		{ 1, 0x80, -EBADMSG }, /* class 0x01 */
		{ 2, 2, -EBADMSG },  /* class version */
		{ 3, 0x80, -EBADMSG }, /* our own request back */
		{ 3, 0x07, -EBADMSG }, /* other response */
		{ 4, 0x80, 0 },      /* without the D bit: nobody needs it */
		{ 5, 0x0c, -EREMOTEIO },
		{ 4, 0x01, -EREMOTEIO },
		{ 8, 0xff, 0 },      /* upper half of the transaction is the kernel's */
		{ 11, 0xff, 0 },
		{ 12, 1, -ENOMSG },
		{ 15, 1, -ENOMSG },
		{ 16, 1, -EPROTO },
		{ 17, 1, -EPROTO },
		{ 20, 0x80, -EPROTO },
		{ 23, 1, -EPROTO },
		{ 64, 0xff, 0 },
	};
	/* clang-format on */
	uint8_t b[MAD_LEN];
	uint16_t status = 0x5555;

	(void)state;
	make_answer(b);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		b[rows[i].at] ^= rows[i].xor ;
		assert_int_equal(mad_check_answer(b, MAD_LEN, TID, MAD_ATTR_NODE_INFO,
						  5, &status),
				 rows[i].want);
		b[rows[i].at] ^= rows[i].xor ;
	}
	assert_int_equal(status, 0x0100);
	status = 0x5555;
	assert_int_equal(
		mad_check_answer(b, MAD_LEN, TID, MAD_ATTR_NODE_INFO, 5, &status), 0);
	assert_int_equal(status, 0x5555);
	for (size_t len = 0; len < 2 * MAD_LEN; len++)
		if (len != MAD_LEN)
			assert_int_equal(mad_check_answer(b, len, TID,
							  MAD_ATTR_NODE_INFO, 5,
							  &status),
					 -EMSGSIZE);
}

static void status_words(void **state)
{
	char b[48];

	(void)state;
	assert_string_equal(mad_status_text(0, b), "ok");
	assert_string_equal(mad_status_text(0x8000, b), "ok");
	assert_string_equal(mad_status_text(1, b), "busy");
	assert_string_equal(mad_status_text(0x1c, b),
			    "attribute or modifier not valid");
	assert_string_equal(mad_status_text(0x0d, b),
			    "busy, method and attribute do not go together");
	assert_string_equal(mad_status_text(0x0300, b), "no records (SA)");
	assert_string_equal(mad_status_text(0x0701, b), "busy, denied (SA)");
	assert_string_equal(mad_status_text(0x0800, b), "status 0x0800");
	assert_string_equal(mad_status_text(0x10, b), "status 0x0010");
}

static void node_info_that_cannot_be(void **state)
{
	struct node_info ni = {.base_version = 1,
			       .class_version = 1,
			       .node_type = 1,
			       .num_ports = 2,
			       .node_guid = 1,
			       .port_guid = 2,
			       .local_port = 2},
			 got;
	uint8_t d[MAD_DATA_LEN];

	(void)state;
	mad_encode_node_info(&ni, d);
	assert_int_equal(mad_decode_node_info(d, &got), 0);
	assert_memory_equal(&ni, &got, sizeof(ni));
	d[2] = 0;
	assert_int_equal(mad_decode_node_info(d, &got), -EBADMSG);
	assert_int_equal(got.num_ports, 2);
	ni.local_port = 3;
	mad_encode_node_info(&ni, d);
	assert_int_equal(mad_decode_node_info(d, &got), -EBADMSG);
	ni.local_port = 1;
	ni.node_guid = 0;
	mad_encode_node_info(&ni, d);
	assert_int_equal(mad_decode_node_info(d, &got), -EBADMSG);
	ni.node_guid = 1;
	ni.port_guid = 0;
	mad_encode_node_info(&ni, d);
	assert_int_equal(mad_decode_node_info(d, &got), -EBADMSG);
}

static void port_info_that_cannot_be(void **state)
{
	struct port_info pi = {.lid = 0xbfff, .state = 5}, got;
	uint8_t d[MAD_DATA_LEN];

	(void)state;
	mad_encode_port_info(&pi, d);
	assert_int_equal(mad_decode_port_info(d, &got), 0);
	assert_memory_equal(&pi, &got, sizeof(pi));
	pi.lid = 0xc000;
	mad_encode_port_info(&pi, d);
	assert_int_equal(mad_decode_port_info(d, &got), -EBADMSG);
	assert_int_equal(got.lid, 0xc000);
	pi.lid = 1;
	pi.state = 6;
	mad_encode_port_info(&pi, d);
	assert_int_equal(mad_decode_port_info(d, &got), -EBADMSG);
}

static void encode_of_what_was_decoded_is_the_same(void **state)
{
	uint64_t seed = 1;

	(void)state;
	for (int round = 0; round < 2000; round++) {
		uint8_t a[MAD_DATA_LEN], b[MAD_DATA_LEN];
		struct port_info p1, p2;
		struct node_info n1, n2;

		for (size_t i = 0; i < sizeof(a); i++)
			a[i] = (uint8_t)(seed = mix64(seed));
		(void)mad_decode_port_info(a, &p1);
		mad_encode_port_info(&p1, b);
		(void)mad_decode_port_info(b, &p2);
		assert_memory_equal(&p1, &p2, sizeof(p1));
		(void)mad_decode_node_info(a, &n1);
		mad_encode_node_info(&n1, b);
		assert_memory_equal(a, b, 40);
		(void)mad_decode_node_info(b, &n2);
		assert_memory_equal(&n1, &n2, sizeof(n1));
	}
}

static void description_and_pkeys(void **state)
{
	uint8_t d[MAD_DATA_LEN];
	char text[65];
	uint16_t keys[32];

	(void)state;
	memset(d, 'x', sizeof(d));
	mad_decode_node_desc(d, text);
	assert_int_equal(strlen(text), 64);
	memcpy(d, "node\n1", 7);
	mad_decode_node_desc(d, text);
	assert_string_equal(text, "node?1");
	d[0] = 0x7f;
	d[1] = 0xff;
	d[62] = 0x80;
	d[63] = 0x01;
	mad_decode_pkeys(d, keys);
	assert_int_equal(keys[0], 0x7fff);
	assert_int_equal(keys[31], 0x8001);
}

static void sl_to_vl_and_arbitration(void **state)
{
	uint8_t d[MAD_DATA_LEN] = {0x01, 0x2f}, back[MAD_DATA_LEN];
	struct vlarb_block arb;
	struct slvl t;

	(void)state;
	d[7] = 0xe8;
	mad_decode_slvl(d, &t);
	assert_int_equal(t.vl[0], 0);
	assert_int_equal(t.vl[1], 1);
	assert_int_equal(t.vl[2], 2);
	assert_int_equal(t.vl[3], 15);
	assert_int_equal(t.vl[14], 14);
	assert_int_equal(t.vl[15], 8);
	mad_encode_slvl(&t, back);
	assert_memory_equal(d, back, sizeof(d));
	d[0] = 0xf3; /* the upper half is reserved */
	d[1] = 200;
	d[63] = 9;
	mad_decode_vlarb(d, &arb);
	assert_int_equal(arb.e[0].vl, 3);
	assert_int_equal(arb.e[0].weight, 200);
	assert_int_equal(arb.e[31].weight, 9);
	mad_encode_vlarb(&arb, back);
	d[0] = 0x03;
	d[6] &= 0x0f;
	assert_memory_equal(d, back, sizeof(d));
}

static void notices_say_whom_they_are_about(void **state)
{
	static const struct {
		uint16_t trap;
		int lid_at, port_at; /* bytes of the notice, 0 = none */
	} rows[] = {{128, 10, 0}, {129, 12, 14}, {130, 12, 14}, {131, 12, 14},
		    {144, 12, 0}, {145, 12, 0},	 {64, 0, 0},	{256, 0, 0}};
	uint8_t d[80] = {0}, back[80], port = 0xee;
	struct notice n;
	uint16_t lid = 0xeeee;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		memset(d, 0xee, sizeof(d));
		d[0] = 0x81;
		be16_put(d + 4, rows[i].trap);
		if (rows[i].lid_at)
			be16_put(d + rows[i].lid_at, 0x1234);
		if (rows[i].port_at)
			d[rows[i].port_at] = 17;
		mad_decode_notice(d, sizeof(d), &n);
		assert_int_equal(n.trap, rows[i].trap);
		assert_int_equal(n.is_generic, 1);
		assert_int_equal(n.type, 1);
		assert_int_equal(n.issuer_gid[15], 0xee);
		assert_int_equal(mad_notice_about(&n, &lid, &port), rows[i].lid_at != 0);
		if (rows[i].lid_at) {
			assert_int_equal(lid, 0x1234);
			assert_int_equal(port, rows[i].port_at ? 17 : 0);
		}
		mad_encode_notice(&n, back);
		assert_memory_equal(d, back, sizeof(d));
	}
	mad_decode_notice(d, 64, &n);
	assert_int_equal(n.issuer_gid[15], 0);
	mad_decode_notice(d, 63, &n);
	assert_int_equal(n.trap, 0);
	n = (struct notice){.trap = 128}; /* a vendor's trap of that number */
	assert_false(mad_notice_about(&n, &lid, &port));
}

static void inform_info_as_the_standard_says(void **state)
{
	uint8_t d[200];

	(void)state;
	mad_encode_inform_info(true, 0xffff, d);
	assert_int_equal(be16_get(d + 16), 0xffff); /* LIDs: all */
	assert_int_equal(be16_get(d + 18), 0);
	assert_int_equal(d[22], 1);
	assert_int_equal(d[23], 1);
	assert_int_equal(be16_get(d + 24), 0xffff);
	assert_int_equal(be16_get(d + 26), 0xffff);
	assert_int_equal(be32_get(d + 28), 19);
	assert_int_equal(be32_get(d + 32), 0xffffff);
	mad_encode_inform_info(false, 128, d);
	assert_int_equal(d[23], 0);
	assert_int_equal(be16_get(d + 26), 128);
	assert_int_equal(be32_get(d + 28), 1 << 8 | 19);
}

static void paths_between_lids(void **state)
{
	struct path_record p;
	uint8_t d[200];

	(void)state;
	assert_true(mad_encode_path_request(3, 0x4002, d) == 0x1030);
	assert_int_equal(be16_get(d + 40), 0x4002);
	assert_int_equal(be16_get(d + 42), 3);
	assert_int_equal(d[49], 1);
	memset(d, 0, sizeof(d));
	d[8] = 0xfe;
	d[24] = 0xfd;
	be16_put(d + 40, 5);
	be16_put(d + 42, 6);
	be16_put(d + 50, 0x8001);
	d[53] = 0xf3;
	d[54] = 0x85;
	d[55] = 0x90;
	d[56] = 0x92;
	assert_int_equal(mad_decode_path_record(d, 64, &p), 0);
	assert_int_equal(p.dgid[0], 0xfe);
	assert_int_equal(p.sgid[0], 0xfd);
	assert_int_equal(p.dlid, 5);
	assert_int_equal(p.slid, 6);
	assert_int_equal(p.pkey, 0x8001);
	assert_int_equal(p.sl, 3);
	assert_int_equal(p.mtu, 5); /* without its selector */
	assert_int_equal(p.rate, 16);
	assert_int_equal(p.life, 18);
	assert_int_equal(mad_decode_path_record(d, 56, &p), -EMSGSIZE);
}

static void records_of_nodes_ports_and_groups(void **state)
{
	struct node_record n = {.lid = 7, .desc = "gpu 1",
				.info = {.node_type = 1, .num_ports = 2, .node_guid = 3,
					 .port_guid = 4, .local_port = 1}},
			   n2;
	struct mcmember_record m = {.mgid = {0xff}, .port_gid = {0xfe}, .qkey = 0xb1b,
				    .mlid = 0xc001, .mtu = 4, .pkey = 0xffff, .rate = 3,
				    .sl = 2, .scope = 2, .join_state = 1},
			       m2;
	struct port_info pi = {.lid = 9, .state = 4};
	struct port_record p;
	struct sm_record s;
	uint8_t rec[112] = {0}, again[112] = {0};

	(void)state;
	mad_encode_node_record(&n, rec);
	assert_int_equal(mad_decode_node_record(rec, 112, &n2), 0);
	mad_encode_node_record(&n2, again); /* bytes: a structure has holes */
	assert_memory_equal(rec, again, sizeof(rec));
	assert_string_equal(n2.desc, n.desc);
	assert_int_equal(n2.info.port_guid, 4);
	assert_int_equal(mad_decode_node_record(rec, 107, &n2), -EMSGSIZE);
	rec[6] = 0; /* no type of node */
	assert_int_equal(mad_decode_node_record(rec, 112, &n2), -EBADMSG);
	mad_encode_mcmember_record(&m, rec);
	assert_int_equal(mad_decode_mcmember_record(rec, 56, &m2), 0);
	memset(again, 0, sizeof(again));
	mad_encode_mcmember_record(&m2, again);
	assert_memory_equal(rec, again, 56);
	assert_int_equal(m2.qkey, 0xb1b);
	assert_int_equal(be16_get(rec + 36), 0xc001);
	assert_int_equal(mad_decode_mcmember_record(rec, 48, &m2), -EMSGSIZE);
	memset(rec, 0, sizeof(rec));
	be16_put(rec, 9);
	rec[2] = 33;
	mad_encode_port_info(&pi, rec + 4);
	assert_int_equal(mad_decode_port_record(rec, 72, &p), 0);
	assert_int_equal(p.port, 33);
	assert_int_equal(p.info.lid, 9);
	assert_int_equal(mad_decode_port_record(rec, 67, &p), -EMSGSIZE);
	rec[11] = 5;  /* of the SM's GUID */
	rec[24] = 0xe3; /* priority and state */
	assert_int_equal(mad_decode_sm_record(rec, 28, &s), 0);
	assert_int_equal(s.lid, 9);
	assert_true(s.info.guid == 5);
	assert_int_equal(s.info.priority, 14);
	assert_int_equal(s.info.state, 3);
	assert_int_equal(mad_decode_sm_record(rec, 24, &s), -EMSGSIZE);
}

static void reading_init(struct counter_reading *r)
{
	memset(r, 0, sizeof(*r));
	memset(r->why, WHY_NOT_SUPPORTED, sizeof(r->why));
}

static void counters_that_are_not_there_stay(void **state)
{
	struct class_port_info none = {0}, wait = {.cap_mask = IB_PMA_CAP_XMIT_WAIT},
			       qp1 = {.cap_mask = 1u << 15},
			       no_ietf = {.cap_mask = IB_PMA_CAP_EXT_NO_IETF},
			       ext = {.cap_mask = IB_PMA_CAP_EXT_WIDTH},
			       all = {.cap_mask = IB_PMA_CAP_EXT_WIDTH,
				      .cap_mask2 = IB_PMA_CAP2_EXT_ERRORS};
	struct counter_reading r;
	uint8_t d[192];

	(void)state;
	memset(d, 0xff, sizeof(d));
	reading_init(&r);
	assert_int_equal(mad_decode_port_counters(d, 1, &none, &r), -EBADMSG);
	d[1] = 1;
	assert_int_equal(mad_decode_port_counters(d, 1, &none, &r), 0);
	assert_int_equal(r.why[CTR_SYMBOL_ERROR], WHY_NONE);
	assert_int_equal(r.value[CTR_SYMBOL_ERROR], 0xffff);
	assert_int_equal(r.bits[CTR_SYMBOL_ERROR], 16);
	assert_int_equal(r.value[CTR_LOCAL_LINK_INTEGRITY_ERRORS], 15);
	assert_int_equal(r.bits[CTR_LOCAL_LINK_INTEGRITY_ERRORS], 4);
	assert_int_equal(r.bits[CTR_LINK_DOWNED], 8);
	assert_int_equal(r.bits[CTR_PORT_XMIT_DATA], 32);
	assert_int_equal(r.why[CTR_PORT_XMIT_WAIT], WHY_NOT_SUPPORTED);
	assert_int_equal(r.why[CTR_QP1_DROPPED], WHY_NOT_SUPPORTED);
	assert_int_equal(mad_decode_port_counters(d, 1, &wait, &r), 0);
	assert_int_equal(r.why[CTR_PORT_XMIT_WAIT], WHY_NONE);
	be16_put(d + 20, 0x0102);
	assert_int_equal(mad_decode_port_counters(d, 1, &qp1, &r), 0);
	assert_int_equal(r.why[CTR_QP1_DROPPED], WHY_NONE);
	assert_int_equal(r.value[CTR_QP1_DROPPED], 0x0102);
	assert_int_equal(mad_decode_port_counters_ext(d, 2, &ext, &r), -EBADMSG);
	assert_int_equal(mad_decode_port_counters_ext(d, 1, &none, &r), 0);
	assert_int_equal(r.bits[CTR_PORT_XMIT_DATA], 32);
	assert_int_equal(mad_decode_port_counters_ext(d, 1, &no_ietf, &r), 0);
	assert_int_equal(r.bits[CTR_PORT_XMIT_DATA], 64);
	assert_true(r.value[CTR_PORT_XMIT_DATA] == UINT64_MAX);
	assert_int_equal(r.why[CTR_UNICAST_XMIT_PACKETS], WHY_NOT_SUPPORTED);
	assert_int_equal(mad_decode_port_counters_ext(d, 1, &ext, &r), 0);
	assert_int_equal(r.why[CTR_UNICAST_XMIT_PACKETS], WHY_NONE);
	assert_int_equal(r.bits[CTR_SYMBOL_ERROR], 16);
	assert_int_equal(mad_decode_port_counters_ext(d, 1, &all, &r), 0);
	assert_int_equal(r.bits[CTR_SYMBOL_ERROR], 64);
	assert_int_equal(r.why[CTR_OUT_OF_SEQUENCE], WHY_NOT_SUPPORTED);
}

static void counters_there_and_back(void **state)
{
	struct class_port_info all = {.cap_mask = 0xffff, .cap_mask2 = 0x7ffffff};
	uint64_t seed = 5;

	(void)state;
	for (int round = 0; round < 200; round++) {
		struct counter_reading r, narrow, wide;
		uint8_t d[192];

		reading_init(&r);
		reading_init(&narrow);
		reading_init(&wide);
		for (int i = 0; i < CTR__MAX; i++)
			r.value[i] = seed = mix64(seed);
		mad_encode_port_counters(&r, 3, d);
		assert_int_equal(be16_get(d + 2), 0xffff);
		assert_int_equal(mad_decode_port_counters(d, 3, &all, &narrow), 0);
		mad_encode_port_counters_ext(&r, 3, d);
		assert_int_equal(mad_decode_port_counters_ext(d, 3, &all, &wide), 0);
		for (int i = 0; i <= CTR_MULTICAST_RCV_PACKETS; i++) {
			if (narrow.why[i] == WHY_NONE)
				assert_true(narrow.value[i] ==
					    (r.value[i] &
					     ((UINT64_C(1) << narrow.bits[i]) - 1)));
			assert_int_equal(wide.why[i], WHY_NONE);
			assert_true(wide.value[i] == r.value[i]);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(request_is_laid_out_as_the_standard_says),
		cmocka_unit_test(only_gets_of_known_attributes_can_be_built),
		cmocka_unit_test(only_reads_and_inform_info_may_leave),
		cmocka_unit_test(requests_of_each_class),
		cmocka_unit_test(answers_of_each_class),
		cmocka_unit_test(reports_are_answered_with_their_own_data),
		cmocka_unit_test(answers_are_checked_in_every_part),
		cmocka_unit_test(status_words),
		cmocka_unit_test(node_info_that_cannot_be),
		cmocka_unit_test(port_info_that_cannot_be),
		cmocka_unit_test(encode_of_what_was_decoded_is_the_same),
		cmocka_unit_test(description_and_pkeys),
		cmocka_unit_test(sl_to_vl_and_arbitration),
		cmocka_unit_test(notices_say_whom_they_are_about),
		cmocka_unit_test(inform_info_as_the_standard_says),
		cmocka_unit_test(paths_between_lids),
		cmocka_unit_test(records_of_nodes_ports_and_groups),
		cmocka_unit_test(counters_that_are_not_there_stay),
		cmocka_unit_test(counters_there_and_back),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
