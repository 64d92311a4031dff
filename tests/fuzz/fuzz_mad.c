/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An answer to a directed-route Get. Its first byte chooses the request, the rest is
 * the packet. What the decoders make of it survives an encode and a decode, and a port
 * takes it, whatever it says, without breaking its own rules. With the same bytes: an
 * answer of any class, and all other attributes and records.
 */
#include "fuzz.h"

#include <errno.h>
#include <stdlib.h>

#include "mad.h"
#include "port.h"

static void must(bool holds)
{
	if (!holds)
		abort();
}

static void texts_end(const struct field_table *t, const void *facts)
{
	char buf[128];

	for (int i = 0; i < t->n; i++) {
		const struct field *f = &t->fields[i];

		if (f->kind == FIELD_TEXT)
			must(memchr((const char *)facts + f->offset, '\0', f->size));
		must(field_why(t, facts, i) < WHY__MAX);
		(void)field_text(t, facts, i, buf, sizeof(buf));
	}
}

static void check_port(const struct port *p)
{
	const struct port_facts *f = &p->facts;

	texts_end(&port_table, f);
	texts_end(&remote_table, &p->remote);
	if (!f->why[PF_LID_FIRST])
		must(f->lid_first > 0 && f->lid_first <= f->lid_last &&
		     f->lid_last <= 0xbfff);
	if (!f->why[PF_LINK_MTU])
		must(f->link_mtu >= 256 && f->link_mtu <= 4096);
	if (!f->why[PF_LINK_VLS])
		must(f->link_vls >= 1 && f->link_vls <= 15);
	must(!p->local_physp.remote ||
	     p->local_physp.remote->remote == &p->local_physp);
}

static const struct port_watch_params params;

static void feed_port(const struct node_info *ni, const struct port_info *a,
		      const struct port_info *b, const char *desc)
{
	struct mono now = {1};
	struct port p;

	port_init(&p, "fuzz", 1, 1, now);
	(void)port_set_u64(&p, PF_PORT_GUID, ni->sys_guid);
	for (int round = 0; round < 2; round++) {
		(void)port_apply_info(&p, a);
		(void)port_apply_remote(&p, ni, desc, b, WHY_NONE);
		(void)port_derive(&p);
		(void)port_judge(&p, &params, NULL, now);
		check_port(&p);
	}
	/* The same again is no news. */
	p.dirty = false;
	(void)port_apply_info(&p, a);
	(void)port_apply_remote(&p, ni, desc, b, WHY_NONE);
	(void)port_derive(&p);
	must(!port_judge(&p, &params, NULL, now) && !p.dirty);
	(void)port_apply_remote(&p, NULL, NULL, NULL, WHY_TIMEOUT);
	(void)port_derive(&p);
	check_port(&p);
	port_done(&p);
}

static void decode_all(const uint8_t *data)
{
	uint8_t again[MAD_DATA_LEN];
	struct node_info ni, ni2;
	struct port_info pi, pi2, down;
	uint16_t keys[32];
	char desc[65];

	(void)mad_decode_node_info(data, &ni);
	mad_encode_node_info(&ni, again);
	(void)mad_decode_node_info(again, &ni2);
	must(!memcmp(&ni, &ni2, sizeof(ni)));
	(void)mad_decode_port_info(data, &pi);
	mad_encode_port_info(&pi, again);
	(void)mad_decode_port_info(again, &pi2);
	must(!memcmp(&pi, &pi2, sizeof(pi)));
	mad_decode_node_desc(data, desc);
	for (const char *s = desc; *s; s++)
		must(*s >= 0x20 && *s < 0x7f);
	mad_decode_pkeys(data, keys);
	down = pi;
	down.state = 1;
	feed_port(&ni, &pi, &pi, desc);
	feed_port(&ni, &pi, &down, desc);
	feed_port(&ni, &down, &pi, desc);
}

/* Decoded, encoded and decoded again it is the same. */
#define TWICE(type, decode, encode, data)                                              \
	do {                                                                           \
		uint8_t out[192] = {0};                                                \
		struct type a, b;                                                      \
                                                                                       \
		decode(data, &a);                                                      \
		encode(&a, out);                                                       \
		decode(out, &b);                                                       \
		must(!memcmp(&a, &b, sizeof(a)));                                      \
	} while (0)

static void decode_smp(const uint8_t *data)
{
	struct sm_info sm;

	TWICE(switch_info, mad_decode_switch_info, mad_encode_switch_info, data);
	TWICE(slvl, mad_decode_slvl, mad_encode_slvl, data);
	TWICE(vlarb_block, mad_decode_vlarb, mad_encode_vlarb, data);
	mad_decode_sm_info(data, &sm);
	must(sm.priority < 16 && sm.state < 16);
}

static void decode_pma(const uint8_t *data)
{
	struct counter_reading a = {0}, b = {0};
	struct class_port_info cpi;
	uint8_t out[192];

	mad_decode_class_port_info(data, &cpi);
	memset(a.why, WHY_NOT_READ, sizeof(a.why));
	b = a;
	must(mad_decode_port_counters(data, (uint8_t)(data[1] + 1), &cpi, &a) == -EBADMSG);
	must(!memcmp(&a, &b, sizeof(a)));
	must(!mad_decode_port_counters(data, data[1], &cpi, &a));
	mad_encode_port_counters(&a, data[1], out);
	must(!mad_decode_port_counters(out, data[1], &cpi, &b));
	must(!memcmp(&a, &b, sizeof(a)));
	must(!mad_decode_port_counters_ext(data, data[1], &cpi, &a));
	mad_encode_port_counters_ext(&a, data[1], out);
	must(!mad_decode_port_counters_ext(out, data[1], &cpi, &b));
	must(!memcmp(&a, &b, sizeof(a)));
	for (int i = 0; i < CTR__MAX; i++)
		must(a.bits[i] <= 64 && (a.why[i] != WHY_NONE || a.bits[i]));
}

static void decode_records(const uint8_t *data, size_t len)
{
	struct mcmember_record m, m2;
	struct node_record n, n2;
	struct port_record port;
	struct path_record path;
	struct sm_record sm;
	struct notice notice, again;
	uint8_t rec[112] = {0}, near;
	uint16_t lid;

	if (mad_decode_node_record(data, len, &n) != -EMSGSIZE) {
		mad_encode_node_record(&n, rec);
		must(mad_decode_node_record(rec, sizeof(rec), &n2) != -EMSGSIZE);
		must(n.lid == n2.lid && str_eq(n.desc, n2.desc) &&
		     !memcmp(&n.info, &n2.info, sizeof(n.info)));
	}
	if (!mad_decode_mcmember_record(data, len, &m)) {
		mad_encode_mcmember_record(&m, rec);
		must(!mad_decode_mcmember_record(rec, sizeof(rec), &m2));
		must(!memcmp(&m, &m2, sizeof(m)));
	}
	(void)mad_decode_port_record(data, len, &port);
	(void)mad_decode_path_record(data, len, &path);
	(void)mad_decode_sm_record(data, len, &sm);
	mad_decode_notice(data, len, &notice);
	mad_encode_notice(&notice, rec);
	mad_decode_notice(rec, 80, &again);
	must(!memcmp(&notice, &again, sizeof(notice)));
	(void)mad_notice_about(&notice, &lid, &near);
}

/* The answer to one of the other requests. */
static void check_any(uint8_t which, const uint8_t *buf, size_t size)
{
	static const struct mad_request requests[] = {
		{.class = MAD_CLASS_SMI_LID, .method = MAD_GET, .attr = MAD_ATTR_PORT_INFO},
		{.class = MAD_CLASS_PMA, .method = MAD_GET, .attr = MAD_ATTR_PORT_COUNTERS},
		{.class = MAD_CLASS_SA, .method = MAD_GET, .attr = MAD_ATTR_PATH_RECORD},
		{.class = MAD_CLASS_SA, .method = MAD_GET_TABLE, .attr = MAD_ATTR_NODE_RECORD},
		{.class = MAD_CLASS_SA, .method = MAD_SET, .attr = MAD_ATTR_INFORM_INFO},
	};
	struct mad_request r = requests[which % ARRAY_LEN(requests)];
	const uint8_t *data;
	uint16_t status = 0, offset;
	size_t len;
	int e;

	r.tid = 1;
	e = mad_check(buf, size, &r, &status, &data, &len, &offset);
	must((e == -EREMOTEIO) == (status != 0));
	if (e)
		return;
	must(data >= buf && data + len <= buf + size && offset % 8 == 0);
	decode_records(data, len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint16_t attrs[] = {MAD_ATTR_NODE_DESC, MAD_ATTR_NODE_INFO,
					 MAD_ATTR_PORT_INFO, MAD_ATTR_PKEY_TABLE};
	uint16_t attr, status = 0;
	char text[48];
	int r;

	if (!size)
		return 0;
	attr = attrs[data[0] % ARRAY_LEN(attrs)];
	r = mad_check_answer(data + 1, size - 1, 1, attr, data[0] / 4, &status);
	must((size - 1 != MAD_LEN) == (r == -EMSGSIZE));
	must((r == -EREMOTEIO) == (status != 0));
	must(strlen(mad_status_text(status, text)) < sizeof(text));
	check_any(data[0], data + 1, size - 1);
	decode_records(data + 1, size - 1);
	if (size - 1 >= MAD_DATA_LEN + MAD_DATA_LEN) {
		decode_all(data + 1 + MAD_DATA_LEN);
		decode_smp(data + 1 + MAD_DATA_LEN);
	}
	if (size - 1 >= MAD_LEN) {
		uint8_t report[MAD_LEN];

		decode_pma(data + 1 + MAD_GMP_DATA);
		mad_build_report_resp(report, data + 1);
		must(report[3] == MAD_REPORT_RESP);
	}
	return 0;
}
