/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>

#include "control.h"

static struct auth_keys keys;

static int setup(void **state)
{
	const char *text = "000102030405060708090a0b0c0d0e0f\nffffffffffffffffffffffffffffffff";
	char err[64];

	(void)state;
	return auth_keys_parse(text, strlen(text), &keys, err, sizeof(err));
}

static int drop(enum drop d)
{
	return -(1 + (int)d);
}

static uint64_t rnd_state = 1;
static uint64_t rnd(uint64_t below)
{
	rnd_state = mix64(rnd_state);
	return rnd_state % below;
}

static void random_text(char text[CTL_NAME_MAX])
{
	size_t n = rnd(CTL_NAME_MAX);

	memset(text, 0, CTL_NAME_MAX);
	for (size_t i = 0; i < n; i++)
		text[i] = (char)('!' + rnd('~' - '!'));
}

static struct addr random_addr(bool port)
{
	struct addr a = {.family = rnd(2) ? 4 : 6, .port = port ? (uint16_t)rnd(65536) : 0};

	for (int i = 0; i < (a.family == 4 ? 4 : 16); i++)
		a.ip[i] = (uint8_t)rnd(256);
	return a;
}

static bool introduces(enum ctl_cmd c)
{
	return c == CTL_RESET || c == CTL_PROTOCOL_VERSION || c == CTL_PROTOCOL_VERSION_ACK;
}

static void fill_offer(struct ctl_msg *m)
{
	m->version_max = (uint8_t)(1 + rnd(255));
	m->version_min = (uint8_t)(1 + rnd(m->version_max));
	m->heartbeat_us = (uint32_t)(CTL_HEARTBEAT_MIN_US +
				     rnd(CTL_HEARTBEAT_MAX_US - CTL_HEARTBEAT_MIN_US + 1));
	m->multiplier = (uint8_t)(1 + rnd(255));
	m->min_rx_us = rnd(2) ? (uint32_t)rnd(CTL_HEARTBEAT_MAX_US + 1) : 0;
	m->probe_small = (uint32_t)rnd(CTL_PROBES_MAX + 1);
	m->probe_large = (uint32_t)rnd(CTL_PROBES_MAX + 1);
	m->probe_size = rnd(2) ? (uint32_t)(64 + rnd(CTL_PROBE_SIZE_MAX - 63)) : 0;
	m->n_rails = (int)rnd(CTL_RAILS_MAX + 1);
	for (int i = 0; i < m->n_rails; i++) {
		random_text(m->rails[i].label);
		m->rails[i].addr = random_addr(false);
	}
}

static void random_facts(struct ctl_rail_facts *f)
{
	f->mtu = (uint16_t)rnd(65536);
	f->lid = (uint32_t)rnd(UINT32_MAX);
	f->n_pkeys = (uint8_t)rnd(CTL_PKEYS_MAX + 1);
	for (int i = 0; i < 16; i++)
		f->gid[i] = (uint8_t)rnd(256);
	for (int i = 0; i < f->n_pkeys; i++)
		f->pkeys[i] = (uint16_t)rnd(65536);
}

/* A message with every field that its command carries. */
static void random_msg(enum ctl_cmd c, struct ctl_msg *m)
{
	memset(m, 0, sizeof(*m));
	m->cmd = c;
	m->minor = (uint8_t)rnd(256);
	m->src_id = 1 + rnd(UINT64_MAX - 1);
	m->dst_id = rnd(UINT64_MAX);
	m->epoch = rnd(UINT64_MAX);
	m->seq = 1 + rnd(UINT64_MAX - 1);
	m->ack_seq = rnd(UINT64_MAX);
	if (c != CTL_CHALLENGE && c != CTL_UNKNOWN && c != CTL_REFUSED) {
		m->told_port = (uint8_t)rnd(3);
		m->told_device = (uint8_t)rnd(4);
		m->told_lateness_us = (uint32_t)rnd(1000000);
		if (rnd(2))
			m->path = (struct ctl_path){
				.mtu = (uint32_t)rnd(65536), .pkey = (uint16_t)rnd(65536),
				.sl = (uint8_t)rnd(16), .traffic_class = (uint8_t)rnd(256)};
	}
	if (c == CTL_CHALLENGE || c == CTL_RESET) {
		m->has_cookie = true;
		for (int i = 0; i < CTL_COOKIE_LEN; i++)
			m->cookie[i] = (uint8_t)rnd(256);
	}
	if (c == CTL_RESET && rnd(2))
		m->probe_tag = 1 + rnd(UINT64_MAX - 1);
	if (introduces(c)) {
		m->transport = (uint8_t)rnd(TRANSPORT__MAX);
		m->flow = (uint16_t)rnd(65536);
		random_text(m->node);
		random_text(m->rail);
		random_text(m->port_name);
		m->rdma_addr = random_addr(true);
	}
	if (c == CTL_PROTOCOL_VERSION || c == CTL_PROTOCOL_VERSION_ACK)
		fill_offer(m);
	for (int i = 0; i < m->n_rails && m->n_rails <= 4; i++) /* so many always fit */
		if (rnd(2))
			random_facts(&m->facts[i]);
	if (c == CTL_RESTART || c == CTL_STOP) {
		m->cause = (uint8_t)rnd(CAUSE__MAX);
		m->deadline_sec = (uint32_t)rnd(UINT32_MAX);
	}
	if (c == CTL_REFUSED)
		m->refusal = (uint8_t)rnd(REFUSE__MAX);
}

static void random_messages_come_back(void **state)
{
	static struct ctl_msg m, got;
	uint8_t buf[CTL_DATAGRAM_MAX];
	struct ctl_auth auth;

	(void)state;
	for (int i = 0; i < 15000; i++) {
		const struct auth_key *key = rnd(2) ? &keys.key[rnd(2)] : NULL;
		size_t n;

		random_msg((enum ctl_cmd)(1 + i % (CTL__MAX - 1)), &m);
		n = ctl_encode(&m, key, buf);
		assert_in_range(n, CTL_HEADER_LEN, CTL_DATAGRAM_MAX);
		assert_int_equal(ctl_decode(buf, n, &got, &auth), 0);
		assert_memory_equal(&m, &got, sizeof(m));
		assert_int_equal(auth.present, key != NULL);
		assert_int_equal(ctl_verify(buf, &auth, &keys) != NULL, key != NULL);
		if (key) {
			buf[rnd(n - AUTH_TAG_LEN)] ^= (uint8_t)(1U << rnd(8));
			assert_null(ctl_verify(buf, &auth, &keys));
		}
	}
}

/* Facts of rails come after all rails, and as many as leave the datagram whole. */
static void facts_take_what_room_there_is(void **state)
{
	static struct ctl_msg m, got;
	uint8_t buf[CTL_DATAGRAM_MAX];
	struct ctl_auth auth;
	int last = 0;
	size_t n;

	(void)state;
	random_msg(CTL_PROTOCOL_VERSION_ACK, &m);
	m.n_rails = CTL_RAILS_MAX;
	for (int i = 0; i < CTL_RAILS_MAX; i++) {
		(void)snprintf(m.rails[i].label, CTL_NAME_MAX, "rail%d", i);
		m.rails[i].addr = (struct addr){.family = 4, .ip = {10, 0, 0, 1}};
		random_facts(&m.facts[i]);
		m.facts[i].mtu = 4096;
		m.facts[i].n_pkeys = CTL_PKEYS_MAX;
	}
	for (int i = 0; i < 2; i++) {
		n = ctl_encode(&m, i ? &keys.key[0] : NULL, buf);
		assert_in_range(n, CTL_FACTS_ROOM - 60, CTL_FACTS_ROOM);
		assert_int_equal(ctl_decode(buf, n, &got, &auth), 0);
		assert_int_equal(auth.present, i);
		assert_int_equal(got.n_rails, CTL_RAILS_MAX);
		for (last = 0; last < CTL_RAILS_MAX && got.facts[last].mtu; last++)
			assert_memory_equal(&got.facts[last], &m.facts[last],
					    sizeof(m.facts[last]));
		assert_in_range(last, 8, CTL_RAILS_MAX - 1);
		for (; last < CTL_RAILS_MAX; last++)
			assert_int_equal(got.facts[last].n_pkeys, 0);
	}
	/* of a rail without any there is nothing to say, of the next one there is */
	m.facts[0] = (struct ctl_rail_facts){0};
	n = ctl_encode(&m, NULL, buf);
	assert_int_equal(ctl_decode(buf, n, &got, &auth), 0);
	assert_int_equal(got.facts[0].mtu, 0);
	assert_int_equal(got.facts[1].mtu, 4096);
}

/* The longest message of all: 16 rails and names of full length, signed. */
static void the_longest_message_fits(void **state)
{
	static struct ctl_msg m, got;
	uint8_t buf[CTL_DATAGRAM_MAX];
	struct ctl_auth auth;
	size_t n;

	(void)state;
	random_msg(CTL_PROTOCOL_VERSION_ACK, &m);
	memset(m.node, 'n', CTL_NAME_MAX - 1);
	memset(m.rail, 'r', CTL_NAME_MAX - 1);
	memset(m.port_name, 'p', CTL_NAME_MAX - 1);
	m.rdma_addr.family = 6;
	m.told_port = TOLD_PORT_DOWN;
	m.n_rails = CTL_RAILS_MAX;
	memset(m.facts, 0, sizeof(m.facts)); /* there is no room for them */
	for (int i = 0; i < CTL_RAILS_MAX; i++) {
		memset(m.rails[i].label, 'l', CTL_NAME_MAX - 1);
		m.rails[i].label[CTL_NAME_MAX - 1] = '\0';
		m.rails[i].addr = (struct addr){.family = 6, .ip = {0xfd}};
	}
	n = ctl_encode(&m, &keys.key[0], buf);
	assert_int_equal(ctl_decode(buf, n, &got, &auth), 0);
	assert_memory_equal(&m, &got, sizeof(m));
	assert_non_null(ctl_verify(buf, &auth, &keys));
}

/* Each length is refused; the buffer ends where the message does, so that a sanitizer
 * sees a read beyond it. */
static void truncation_at_every_length(void **state)
{
	static struct ctl_msg m, got;
	uint8_t buf[CTL_DATAGRAM_MAX];
	struct ctl_auth auth;

	(void)state;
	for (int c = 1; c < CTL__MAX; c++) {
		size_t n;

		random_msg((enum ctl_cmd)c, &m);
		n = ctl_encode(&m, &keys.key[0], buf);
		for (size_t len = 0; len < n; len++) {
			_cleanup_(freep) uint8_t *cut = xcalloc(len, 1);

			memcpy(cut, buf, len);
			assert_true(ctl_decode(cut, len, &got, &auth) < 0);
			if (len < CTL_HEADER_LEN)
				continue;
			/* ... also with a header that agrees: cut TLVs. */
			be16_put(cut + 48, (uint16_t)(len - CTL_HEADER_LEN));
			(void)ctl_decode(cut, len, &got, &auth);
			assert_null(ctl_verify(cut, &auth, &keys));
		}
	}
}

/* A message of our own making: header of @c and the TLVs in @tlvs. */
struct raw {
	uint8_t buf[CTL_DATAGRAM_MAX + 8];
	size_t len;
};
static struct raw raw_begin(enum ctl_cmd c)
{
	struct raw r = {.len = CTL_HEADER_LEN};

	memcpy(r.buf, "FABD\1\0", 6);
	r.buf[6] = (uint8_t)c;
	be64_put(r.buf + 8, 11);
	be64_put(r.buf + 16, 22);
	be64_put(r.buf + 24, 33);
	be64_put(r.buf + 32, 44);
	return r;
}
static void raw_tlv(struct raw *r, uint16_t type, const void *value, size_t n)
{
	be16_put(r->buf + r->len, type);
	be16_put(r->buf + r->len + 2, (uint16_t)n);
	memcpy(r->buf + r->len + 4, value, n);
	r->len += 4 + n;
	be16_put(r->buf + 48, (uint16_t)(r->len - CTL_HEADER_LEN));
}
static int raw_decode(const struct raw *r, struct ctl_msg *ret)
{
	struct ctl_auth auth;

	return ctl_decode(r->buf, r->len, ret, &auth);
}

static const uint8_t zeros[200];

static void extensions_are_skipped(void **state)
{
	static struct ctl_msg m;
	const uint8_t local[12] = {TOLD_PORT_DOWN, TOLD_DEVICE_STUCK, 0, 0, 0, 0, 1, 0, 9, 9, 9, 9};
	struct raw r = raw_begin(CTL_PING);

	(void)state;
	r.buf[5] = 7;	 /* a later minor version */
	r.buf[7] = 0xff; /* reserved */
	r.buf[50] = 0xff;
	raw_tlv(&r, 999, zeros, 0);
	raw_tlv(&r, 1000, zeros, 100);
	raw_tlv(&r, TLV_LOCAL, local, sizeof(local)); /* has grown by 4 bytes */
	raw_tlv(&r, 0x7fff, "abc", 3);
	raw_tlv(&r, TLV_CAUSE, "\xff", 1); /* not carried by this command */
	assert_int_equal(raw_decode(&r, &m), 0);
	assert_int_equal(m.minor, 7);
	assert_int_equal(m.told_port, TOLD_PORT_DOWN);
	assert_int_equal(m.told_device, TOLD_DEVICE_STUCK);
	assert_int_equal(m.told_lateness_us, 256);
	assert_int_equal(m.cause, CAUSE_NONE);
}

static void a_new_word_of_port_or_device_is_unknown(void **state)
{
	static struct ctl_msg m;
	const uint8_t local[8] = {3, 4, 0, 0, 0, 0, 1, 0};
	struct raw r = raw_begin(CTL_PING);

	(void)state;
	raw_tlv(&r, TLV_LOCAL, local, sizeof(local));
	assert_int_equal(raw_decode(&r, &m), 0);
	assert_int_equal(m.told_port, TOLD_PORT_UNKNOWN);
	assert_int_equal(m.told_device, TOLD_DEVICE_UNKNOWN);
	assert_int_equal(m.told_lateness_us, 256);
}

/* A release before this one sent a reserved zero there: nothing is told. And what alone
 * is to be told travels. */
static void the_device_alone_is_told(void **state)
{
	static struct ctl_msg m, got;
	uint8_t buf[CTL_DATAGRAM_MAX];
	struct ctl_auth auth;

	(void)state;
	m = (struct ctl_msg){.cmd = CTL_PING, .src_id = 1, .dst_id = 2, .epoch = 3, .seq = 4};
	for (uint8_t d = TOLD_DEVICE_UNKNOWN; d <= TOLD_DEVICE_STUCK; d++) {
		m.told_device = d;
		assert_int_equal(ctl_decode(buf, ctl_encode(&m, NULL, buf), &got, &auth), 0);
		assert_int_equal(got.told_device, d);
	}
}

static void more_rails_than_are_kept(void **state)
{
	static struct ctl_msg m;
	uint8_t rail[10] = {4, 0, 0, 9, 10, 0, 0, 0, 'r', '\x07'};
	struct raw r = raw_begin(CTL_PROTOCOL_VERSION);

	(void)state;
	raw_tlv(&r, TLV_TRANSPORT, zeros, 4);
	raw_tlv(&r, TLV_VERSIONS, "\1\1", 2);
	raw_tlv(&r, TLV_HEARTBEAT, "\0\1\0\0\3\0\0\0", 8);
	raw_tlv(&r, TLV_PROBES, zeros, 12);
	for (int i = 0; i < CTL_RAILS_MAX + 3; i++) {
		rail[7] = (uint8_t)i;
		raw_tlv(&r, TLV_OWN_RAIL, rail, sizeof(rail));
	}
	assert_int_equal(raw_decode(&r, &m), 0);
	assert_int_equal(m.min_rx_us, 0); /* 8 bytes, as before there was one */
	assert_int_equal(m.n_rails, CTL_RAILS_MAX);
	assert_int_equal(m.rails[15].addr.ip[3], 15);
	assert_int_equal(m.rails[15].addr.port, 0);
	assert_string_equal(m.rails[0].label, "r?");
}

static struct raw raw_rail(void)
{
	const uint8_t rail[9] = {4, 0, 0, 0, 10, 0, 0, 1, 'r'};
	struct raw r = raw_begin(CTL_PING_ACK);

	raw_tlv(&r, TLV_OWN_RAIL, rail, sizeof(rail));
	return r;
}

static void facts_of_rails_are_checked(void **state)
{
	static struct ctl_msg m;
	uint8_t f[26] = {0, 1, 16, 0, 0, 0, 0, 7, [24] = 0xff, [25] = 0xff};
	uint8_t other[26] = {0, 1, 1, 1};
	struct raw r = raw_rail();

	(void)state;
	raw_tlv(&r, TLV_RAIL_FACTS, f, sizeof(f));
	raw_tlv(&r, TLV_RAIL_FACTS, other, sizeof(other)); /* again: the first counts */
	other[0] = 1;
	raw_tlv(&r, TLV_RAIL_FACTS, other, sizeof(other)); /* of no rail */
	assert_int_equal(raw_decode(&r, &m), 0);
	assert_int_equal(m.n_rails, 1);
	assert_int_equal(m.facts[0].mtu, 4096);
	assert_int_equal(m.facts[0].lid, 7);
	assert_int_equal(m.facts[0].n_pkeys, 1);
	assert_int_equal(m.facts[0].pkeys[0], 0xffff);
	assert_int_equal(m.facts[1].mtu, 0);

	r = raw_rail(); /* more P_Keys than there are bytes */
	f[1] = 2;
	raw_tlv(&r, TLV_RAIL_FACTS, f, sizeof(f));
	assert_int_equal(raw_decode(&r, &m), drop(DROP_MALFORMED));
	r = raw_rail(); /* more than are kept */
	f[1] = CTL_PKEYS_MAX + 1;
	raw_tlv(&r, TLV_RAIL_FACTS, f, sizeof(f));
	assert_int_equal(raw_decode(&r, &m), drop(DROP_MALFORMED));
	r = raw_rail();
	raw_tlv(&r, TLV_RAIL_FACTS, f, 23);
	assert_int_equal(raw_decode(&r, &m), drop(DROP_MALFORMED));
	r = raw_rail(); /* it may grow */
	raw_tlv(&r, TLV_RAIL_FACTS, zeros, 100);
	assert_int_equal(raw_decode(&r, &m), 0);
}

static void a_path_is_checked(void **state)
{
	static struct ctl_msg m;
	uint8_t path[9] = {0, 0, 16, 0, 0x80, 1, 3, 104, 9};
	struct raw r = raw_begin(CTL_PING);

	(void)state;
	raw_tlv(&r, TLV_PATH, path, sizeof(path));
	assert_int_equal(raw_decode(&r, &m), 0);
	assert_int_equal(m.path.mtu, 4096);
	assert_int_equal(m.path.pkey, 0x8001);
	assert_int_equal(m.path.sl, 3);
	assert_int_equal(m.path.traffic_class, 104);
	r = raw_begin(CTL_PING);
	path[6] = 16;
	raw_tlv(&r, TLV_PATH, path, 8);
	assert_int_equal(raw_decode(&r, &m), drop(DROP_MALFORMED));
	r = raw_begin(CTL_PING);
	raw_tlv(&r, TLV_PATH, path, 7);
	assert_int_equal(raw_decode(&r, &m), drop(DROP_MALFORMED));
}

static void the_authenticator_is_last_and_whole(void **state)
{
	static struct ctl_msg m;
	struct ctl_auth auth;
	struct raw r = raw_begin(CTL_PING);

	(void)state;
	raw_tlv(&r, TLV_AUTH, zeros, 20);
	assert_int_equal(ctl_decode(r.buf, r.len, &m, &auth), 0);
	assert_true(auth.present);
	assert_int_equal(auth.covered, CTL_HEADER_LEN + 8);
	raw_tlv(&r, 999, zeros, 0);
	assert_int_equal(raw_decode(&r, &m), drop(DROP_MALFORMED));
	for (size_t n = 0; n < 40; n++) {
		r = raw_begin(CTL_PING);
		raw_tlv(&r, TLV_AUTH, zeros, n);
		assert_int_equal(raw_decode(&r, &m), n == 20 ? 0 : drop(DROP_MALFORMED));
	}
}

static void header_is_checked(void **state)
{
	static struct ctl_msg m;
	struct raw ping = raw_begin(CTL_PING), r = ping;

	(void)state;
	assert_int_equal(raw_decode(&r, &m), 0);
	r.len = 51;
	assert_int_equal(raw_decode(&r, &m), drop(DROP_SHORT));
	r = ping;
	r.len = CTL_DATAGRAM_MAX + 1;
	assert_int_equal(raw_decode(&r, &m), drop(DROP_OVERSIZED));
	r = ping;
	r.buf[3] = 'd';
	assert_int_equal(raw_decode(&r, &m), drop(DROP_MAGIC));
	r = ping;
	r.buf[6] = CTL_NONE;
	assert_int_equal(raw_decode(&r, &m), drop(DROP_MALFORMED));
	r.buf[6] = CTL__MAX;
	assert_int_equal(raw_decode(&r, &m), drop(DROP_MALFORMED));
	r = ping;
	r.len++; /* something behind the TLVs */
	assert_int_equal(raw_decode(&r, &m), drop(DROP_MALFORMED));
	r = ping;
	be16_put(r.buf + 48, 1);
	assert_int_equal(raw_decode(&r, &m), drop(DROP_SHORT));
	r = ping;
	be64_put(r.buf + 8, 0); /* only a stateless answer comes from nobody */
	assert_int_equal(raw_decode(&r, &m), drop(DROP_MALFORMED));
	r.buf[6] = CTL_UNKNOWN;
	be64_put(r.buf + 32, 0);
	assert_int_equal(raw_decode(&r, &m), 0);
	r = ping;
	be64_put(r.buf + 32, 0);
	assert_int_equal(raw_decode(&r, &m), drop(DROP_MALFORMED));
}

static void another_major_version_can_be_answered(void **state)
{
	static struct ctl_msg m, answer;
	uint8_t buf[CTL_DATAGRAM_MAX];
	struct raw r = raw_begin(CTL_RESET);

	(void)state;
	r.buf[4] = 2;
	raw_tlv(&r, 1, zeros, CTL_STATELESS_MAX - CTL_HEADER_LEN - 4);
	assert_int_equal(raw_decode(&r, &m), drop(DROP_VERSION));
	assert_true(m.src_id == 11 && m.dst_id == 22 && m.epoch == 33 && m.seq == 44);
	ctl_stateless_answer(&m, CTL_REFUSED, &answer);
	answer.refusal = REFUSE_VERSION;
	assert_true(ctl_encode(&answer, &keys.key[0], buf) <= r.len);
	/* An answer of another version is known as one, so that nobody answers it; what
	 * its command is may not be known. */
	r.len = CTL_HEADER_LEN;
	r.buf[6] = CTL_REFUSED;
	assert_int_equal(raw_decode(&r, &m), drop(DROP_VERSION));
	assert_int_equal(m.cmd, CTL_REFUSED);
	r.buf[6] = 200;
	assert_int_equal(raw_decode(&r, &m), drop(DROP_VERSION));
	assert_int_equal(m.cmd, CTL_NONE);
}

/* Every TLV of a good message in turn: too short, twice, missing. */
static void each_tlv_is_checked(void **state)
{
	static const struct {
		enum ctl_cmd cmd;
		uint16_t type;
		uint8_t len;
		bool demanded;
		const char *value;
	} t[] = {
		{CTL_CHALLENGE, TLV_COOKIE, 32, true, ""},
		{CTL_REFUSED, TLV_REFUSAL, 4, true, "\1"},
		{CTL_STOP, TLV_CAUSE, 8, true, "\1"},
		{CTL_RESTART, TLV_CAUSE, 8, true, "\4"},
		{CTL_PING, TLV_LOCAL, 8, false, "\1"},
	};
	static struct ctl_msg m;
	uint8_t value[64];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		struct raw r = raw_begin(t[i].cmd);

		memset(value, 0, sizeof(value));
		memcpy(value, t[i].value, strlen(t[i].value));
		assert_int_equal(raw_decode(&r, &m),
				 t[i].demanded ? drop(DROP_MALFORMED) : 0);
		raw_tlv(&r, t[i].type, value, t[i].len);
		assert_int_equal(raw_decode(&r, &m), 0);
		raw_tlv(&r, t[i].type, value, t[i].len);
		assert_int_equal(raw_decode(&r, &m), drop(DROP_MALFORMED));
		for (uint8_t n = 0; n < t[i].len; n++) {
			r = raw_begin(t[i].cmd);
			raw_tlv(&r, t[i].type, value, n);
			assert_int_equal(raw_decode(&r, &m), drop(DROP_MALFORMED));
		}
	}
}

/* Change one byte of one TLV of a good ProtocolVersion and expect a refusal. */
static void check_bad_value(uint16_t type, size_t at, uint8_t value, bool short_of_it)
{
	static struct ctl_msg m, got;
	struct ctl_auth auth;
	uint8_t buf[CTL_DATAGRAM_MAX];
	size_t n, p = CTL_HEADER_LEN;

	random_msg(CTL_PROTOCOL_VERSION_ACK, &m);
	m.n_rails = 1;
	m.rdma_addr = m.rails[0].addr = (struct addr){.family = 6};
	memset(m.rails[0].label, 'l', CTL_NAME_MAX - 1);
	m.version_min = m.version_max = 1;
	m.probe_size = 100;
	n = ctl_encode(&m, NULL, buf);
	while (be16_get(buf + p) != type) {
		p += 4U + be16_get(buf + p + 2);
		assert_true(p < n);
	}
	if (short_of_it)
		memset(buf + p + 4, 0, be16_get(buf + p + 2));
	buf[p + 4 + at] = value;
	assert_int_equal(ctl_decode(buf, n, &got, &auth), drop(DROP_MALFORMED));
}

static void values_are_checked(void **state)
{
	(void)state;
	check_bad_value(TLV_TRANSPORT, 0, TRANSPORT__MAX, false);
	check_bad_value(TLV_VERSIONS, 0, 0, false);
	check_bad_value(TLV_VERSIONS, 0, 2, false);	 /* min > max */
	check_bad_value(TLV_HEARTBEAT, 2, 0x27, true);	 /* 9984 us */
	check_bad_value(TLV_HEARTBEAT, 0, 0xff, false);	 /* over an hour */
	check_bad_value(TLV_HEARTBEAT, 4, 0, false);	 /* multiplier */
	check_bad_value(TLV_HEARTBEAT, 8, 0xff, false);	 /* takes no heartbeats at all */
	check_bad_value(TLV_PROBES, 1, 1, false);	 /* 65536 and more */
	check_bad_value(TLV_PROBES, 5, 1, false);
	check_bad_value(TLV_PROBES, 11, 63, false);	 /* smaller than a message */
	check_bad_value(TLV_PROBES, 8, 1, false);	 /* larger than any */
	check_bad_value(TLV_RDMA_ADDR, 0, 5, false);
	check_bad_value(TLV_OWN_RAIL, 0, 0, false);
	check_bad_value(TLV_OWN_RAIL, 0, 4, false); /* label longer than a name */
}

static void enums_are_checked(void **state)
{
	static struct ctl_msg m;

	(void)state;
	for (int v = 0; v < 256; v++) {
		uint8_t value[8] = {(uint8_t)v};
		struct raw r = raw_begin(CTL_STOP);

		raw_tlv(&r, TLV_CAUSE, value, 8);
		assert_int_equal(raw_decode(&r, &m), v < CAUSE__MAX ? 0 : drop(DROP_MALFORMED));
		r = raw_begin(CTL_REFUSED);
		raw_tlv(&r, TLV_REFUSAL, value, 4);
		assert_int_equal(raw_decode(&r, &m),
				 v < REFUSE__MAX ? 0 : drop(DROP_MALFORMED));
	}
}

static void names_are_clean_and_bounded(void **state)
{
	static struct ctl_msg m;
	struct raw reset = raw_begin(CTL_RESET), r;
	char name[CTL_NAME_MAX];

	(void)state;
	raw_tlv(&reset, TLV_COOKIE, zeros, 32);
	raw_tlv(&reset, TLV_TRANSPORT, zeros, 4);
	raw_tlv(&reset, TLV_PAD, zeros, 40);
	r = reset;
	raw_tlv(&r, TLV_NODE, "a\x1b[31m\xc3\xa4\0z", 10);
	assert_int_equal(raw_decode(&r, &m), 0);
	assert_string_equal(m.node, "a?[31m??");
	r = reset;
	raw_tlv(&r, TLV_NODE, "ab   ", 5);
	assert_int_equal(raw_decode(&r, &m), 0);
	assert_memory_equal(m.node, "ab\0\0\0\0", 6);
	memset(name, 'x', sizeof(name));
	r = reset;
	raw_tlv(&r, TLV_RAIL, name, CTL_NAME_MAX - 1);
	assert_int_equal(raw_decode(&r, &m), 0);
	assert_int_equal(strlen(m.rail), CTL_NAME_MAX - 1);
	r = reset;
	raw_tlv(&r, TLV_PORT_NAME, name, CTL_NAME_MAX);
	assert_int_equal(raw_decode(&r, &m), drop(DROP_MALFORMED));
}

/* Whatever a stranger sends as its first message, it gets no more bytes back. */
static void stateless_answers_are_never_longer(void **state)
{
	static struct ctl_msg m, answer;
	static const struct ctl_msg empty = {.cmd = CTL_RESET, .src_id = 1, .seq = 1};
	uint8_t buf[CTL_DATAGRAM_MAX];

	(void)state;
	for (int signs = 0; signs < 4; signs++) {
		const struct auth_key *mine = signs & 1 ? &keys.key[0] : NULL;
		const struct auth_key *theirs = signs & 2 ? &keys.key[0] : NULL;
		size_t n = ctl_encode(&empty, theirs, buf);

		assert_true(n >= CTL_STATELESS_MAX);
		ctl_stateless_answer(&empty, CTL_CHALLENGE, &answer);
		assert_true(answer.has_cookie && answer.ack_seq == 1 && answer.dst_id == 1);
		assert_true(ctl_encode(&answer, mine, buf) <= n);
		ctl_stateless_answer(&empty, CTL_REFUSED, &answer);
		assert_true(ctl_encode(&answer, mine, buf) <= n);
		for (int c = 1; c < CTL__MAX; c++) {
			random_msg((enum ctl_cmd)c, &m);
			n = ctl_encode(&m, theirs, buf);
			ctl_stateless_answer(&m, CTL_UNKNOWN, &answer);
			assert_true(ctl_encode(&answer, theirs ? mine : NULL, buf) <= n);
		}
	}
}

static void a_short_reset_is_refused(void **state)
{
	static struct ctl_msg m;
	struct raw r = raw_begin(CTL_RESET);

	(void)state;
	raw_tlv(&r, TLV_COOKIE, zeros, 32);
	raw_tlv(&r, TLV_TRANSPORT, zeros, 4);
	assert_int_equal(raw_decode(&r, &m), drop(DROP_MALFORMED));
	raw_tlv(&r, TLV_PAD, zeros, CTL_STATELESS_MAX - r.len - 4);
	assert_int_equal(raw_decode(&r, &m), 0);
}

static void random_bytes_never_do_harm(void **state)
{
	static struct ctl_msg m;
	uint8_t buf[CTL_DATAGRAM_MAX];

	(void)state;
	for (int i = 0; i < 20000; i++) {
		struct ctl_auth auth;
		size_t n;

		random_msg((enum ctl_cmd)(1 + rnd(CTL__MAX - 1)), &m);
		n = ctl_encode(&m, NULL, buf);
		for (size_t flips = 1 + rnd(4); flips; flips--)
			buf[rnd(n)] = (uint8_t)rnd(256);
		if (ctl_decode(buf, n, &m, &auth))
			continue;
		/* What was accepted can be said again and is understood the same. */
		n = ctl_encode(&m, NULL, buf);
		assert_int_equal(ctl_decode(buf, n, &m, &auth), 0);
	}
}

static struct ctl_msg golden_msg(enum ctl_cmd c)
{
	static struct ctl_msg m;

	memset(&m, 0, sizeof(m));
	m.cmd = c;
	m.src_id = 0x0102030405060708;
	m.dst_id = 0x1112131415161718;
	m.epoch = 0x2122232425262728;
	m.seq = 7;
	m.ack_seq = 6;
	m.told_port = TOLD_PORT_UP;
	m.told_device = TOLD_DEVICE_REPLACED;
	m.told_lateness_us = 1500;
	memset(m.cookie, 0xcc, CTL_COOKIE_LEN);
	m.transport = TRANSPORT_RC;
	m.flow = 1;
	(void)str_copy(m.node, sizeof(m.node), "gpu0033");
	(void)str_copy(m.rail, sizeof(m.rail), "2");
	(void)str_copy(m.port_name, sizeof(m.port_name), "mlx5_2/1");
	m.rdma_addr = (struct addr){.family = 4, .port = 18777, .ip = {10, 2, 0, 33}};
	m.version_min = m.version_max = 1;
	m.heartbeat_us = 1000000;
	m.multiplier = 3;
	m.min_rx_us = 100000;
	m.probe_small = 8;
	m.probe_large = 1;
	m.probe_size = 4096;
	m.n_rails = c == CTL_PROTOCOL_VERSION || c == CTL_PROTOCOL_VERSION_ACK;
	m.rails[0].addr = (struct addr){.family = 6, .ip = {0xfd, [15] = 1}};
	(void)str_copy(m.rails[0].label, CTL_NAME_MAX, "3");
	m.cause = CAUSE_SHUTDOWN;
	m.deadline_sec = 900;
	m.refusal = REFUSE_LIMIT;
	return m;
}

/* Two releases must agree on these bytes: a change is a change of the wire format, and
 * docs/wire.md says when there may be one. */
static void known_bytes(void **state)
{
	static const char *const want[CTL__MAX] = {
#include "control_golden.h"
	};

	(void)state;
	for (int c = 1; c < CTL__MAX; c++) {
		struct ctl_msg m = golden_msg((enum ctl_cmd)c);
		uint8_t buf[CTL_DATAGRAM_MAX];
		char got[1024] = "";
		/* A pair is signed, the others are not. */
		size_t n = ctl_encode(&m, c <= CTL_RESET ? &keys.key[0] : NULL, buf);

		for (size_t i = 0; i < n; i++)
			str_append(got, sizeof(got), "%02x", buf[i]);
		assert_non_null(want[c]);
		assert_string_equal(got, want[c]);
	}
}

static void known_bytes_of_facts(void **state)
{
	static const char *const want =
#include "control_golden_facts.h"
		;
	struct ctl_msg m = golden_msg(CTL_PING_ACK);
	uint8_t buf[CTL_DATAGRAM_MAX];
	char got[1024] = "";
	size_t n;

	(void)state;
	m.n_rails = 1;
	m.facts[0] = (struct ctl_rail_facts){.mtu = 4096, .lid = 0x32c, .n_pkeys = 2,
					     .gid = {0xfe, 0x80, [15] = 9},
					     .pkeys = {0xffff, 0x8001}};
	m.path = (struct ctl_path){.mtu = 4096, .pkey = 0xffff, .sl = 3, .traffic_class = 104};
	n = ctl_encode(&m, NULL, buf);
	for (size_t i = 0; i < n; i++)
		str_append(got, sizeof(got), "%02x", buf[i]);
	assert_string_equal(got, want);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_messages_come_back),
		cmocka_unit_test(the_longest_message_fits),
		cmocka_unit_test(truncation_at_every_length),
		cmocka_unit_test(extensions_are_skipped),
		cmocka_unit_test(a_new_word_of_port_or_device_is_unknown),
		cmocka_unit_test(the_device_alone_is_told),
		cmocka_unit_test(more_rails_than_are_kept),
		cmocka_unit_test(facts_take_what_room_there_is),
		cmocka_unit_test(facts_of_rails_are_checked),
		cmocka_unit_test(a_path_is_checked),
		cmocka_unit_test(known_bytes_of_facts),
		cmocka_unit_test(the_authenticator_is_last_and_whole),
		cmocka_unit_test(header_is_checked),
		cmocka_unit_test(another_major_version_can_be_answered),
		cmocka_unit_test(each_tlv_is_checked),
		cmocka_unit_test(values_are_checked),
		cmocka_unit_test(enums_are_checked),
		cmocka_unit_test(names_are_clean_and_bounded),
		cmocka_unit_test(stateless_answers_are_never_longer),
		cmocka_unit_test(a_short_reset_is_refused),
		cmocka_unit_test(random_bytes_never_do_harm),
		cmocka_unit_test(known_bytes),
	};
	return cmocka_run_group_tests(tests, setup, NULL);
}
