/* SPDX-License-Identifier: BSD-2-Clause */
#include "control.h"

#define CONTEXT "control"
#define TLV_HEAD 4
#define AUTH_VALUE_LEN (4 + AUTH_TAG_LEN)
#define ADDR_LEN_4 8
#define ADDR_LEN_6 20
/* Largest values: the longest message must fit, and so must its authenticator. */
#define NAME_LEN_MAX (CTL_NAME_MAX - 1)
#define LONGEST                                                                            \
	(CTL_HEADER_LEN + (TLV_HEAD + CTL_COOKIE_LEN) + 3 * (TLV_HEAD + NAME_LEN_MAX) +      \
	 (TLV_HEAD + ADDR_LEN_6) + CTL_RAILS_MAX * (TLV_HEAD + ADDR_LEN_6 + NAME_LEN_MAX) +  \
	 9 * (TLV_HEAD + 12) + (TLV_HEAD + AUTH_VALUE_LEN))
_Static_assert(LONGEST <= CTL_DATAGRAM_MAX, "the longest message must fit");
_Static_assert(CTL_FACTS_ROOM + TLV_HEAD + 24 + 2 * CTL_PKEYS_MAX <= CTL_DATAGRAM_MAX,
	       "facts are tried before they are found too long");
_Static_assert(CTL_STATELESS_MAX == CTL_HEADER_LEN + TLV_HEAD + CTL_COOKIE_LEN + TLV_HEAD +
					    AUTH_VALUE_LEN,
	       "a signed Challenge is the longest stateless answer");

static const uint8_t magic[4] = {'F', 'A', 'B', 'D'};

/*
 * The TLVs as a table. put() writes value number @i to @p and returns its length; 0:
 * there is none (a value has at least one byte). get() reads @n bytes, min <= n <= max,
 * and returns false for a value that cannot be.
 */
struct tlv_row {
	uint16_t type, min, max; /* max ANY_LEN: may grow, what is longer is not looked at */
	bool repeat;
	bool spare; /* told as far as there is room, see CTL_FACTS_ROOM */
	uint32_t sent_in;     /* commands that carry it; in others it is skipped */
	uint32_t demanded_in; /* malformed without it */
	size_t (*put)(const struct ctl_msg *m, int i, uint8_t *p);
	bool (*get)(struct ctl_msg *m, const uint8_t *p, size_t n);
};

#define ANY_LEN UINT16_MAX
#define BIT(cmd) (UINT32_C(1) << (cmd))
#define STATELESS (BIT(CTL_CHALLENGE) | BIT(CTL_UNKNOWN) | BIT(CTL_REFUSED))
#define ALL (BIT(CTL__MAX) - 2)
#define OFFERS (BIT(CTL_PROTOCOL_VERSION) | BIT(CTL_PROTOCOL_VERSION_ACK))
#define RAILS (OFFERS | BIT(CTL_PING_ACK))
#define INTRODUCES (BIT(CTL_RESET) | OFFERS)
#define CAUSES (BIT(CTL_RESTART) | BIT(CTL_STOP))

static size_t put_cookie(const struct ctl_msg *m, int i, uint8_t *p)
{
	(void)i;
	memcpy(p, m->cookie, CTL_COOKIE_LEN);
	return CTL_COOKIE_LEN;
}
static bool get_cookie(struct ctl_msg *m, const uint8_t *p, size_t n)
{
	(void)n;
	m->has_cookie = true;
	memcpy(m->cookie, p, CTL_COOKIE_LEN);
	return true;
}

static size_t put_text(const char text[CTL_NAME_MAX], uint8_t *p)
{
	size_t n = strnlen(text, NAME_LEN_MAX);

	memcpy(p, text, n);
	return n;
}
/* Clean, and zero behind its end: equal messages are equal as bytes. */
static bool get_text(char text[CTL_NAME_MAX], const uint8_t *p, size_t n)
{
	size_t len;

	text_clean(text, CTL_NAME_MAX, p, n);
	len = strlen(text);
	memset(text + len, 0, CTL_NAME_MAX - len);
	return true;
}
static size_t put_node(const struct ctl_msg *m, int i, uint8_t *p)
{
	(void)i;
	return put_text(m->node, p);
}
static bool get_node(struct ctl_msg *m, const uint8_t *p, size_t n)
{
	return get_text(m->node, p, n);
}
static size_t put_rail(const struct ctl_msg *m, int i, uint8_t *p)
{
	(void)i;
	return put_text(m->rail, p);
}
static bool get_rail(struct ctl_msg *m, const uint8_t *p, size_t n)
{
	return get_text(m->rail, p, n);
}
static size_t put_port_name(const struct ctl_msg *m, int i, uint8_t *p)
{
	(void)i;
	return put_text(m->port_name, p);
}
static bool get_port_name(struct ctl_msg *m, const uint8_t *p, size_t n)
{
	return get_text(m->port_name, p, n);
}

static size_t put_transport(const struct ctl_msg *m, int i, uint8_t *p)
{
	(void)i;
	p[0] = m->transport;
	be16_put(p + 2, m->flow);
	return 4;
}
static bool get_transport(struct ctl_msg *m, const uint8_t *p, size_t n)
{
	(void)n;
	m->transport = p[0];
	m->flow = be16_get(p + 2);
	return m->transport < TRANSPORT__MAX;
}

/* An address without its zone, which means something on the sender's host only. */
static size_t put_address(const struct addr *a, uint8_t *p)
{
	size_t ip = a->family == 4 ? 4 : 16;

	if (a->family != 4 && a->family != 6)
		return 0;
	p[0] = a->family;
	be16_put(p + 2, a->port);
	memcpy(p + 4, a->ip, ip);
	return 4 + ip;
}
/* Returns how many bytes it took, 0: no address. */
static size_t get_address(struct addr *a, const uint8_t *p, size_t n)
{
	size_t len = p[0] == 4 ? ADDR_LEN_4 : ADDR_LEN_6;

	if ((p[0] != 4 && p[0] != 6) || n < len)
		return 0;
	*a = (struct addr){.family = p[0], .port = be16_get(p + 2)};
	memcpy(a->ip, p + 4, len - 4);
	return len;
}
static size_t put_rdma_addr(const struct ctl_msg *m, int i, uint8_t *p)
{
	(void)i;
	return put_address(&m->rdma_addr, p);
}
static bool get_rdma_addr(struct ctl_msg *m, const uint8_t *p, size_t n)
{
	return get_address(&m->rdma_addr, p, n) > 0;
}

static size_t put_versions(const struct ctl_msg *m, int i, uint8_t *p)
{
	(void)i;
	p[0] = m->version_min;
	p[1] = m->version_max;
	return 2;
}
static bool get_versions(struct ctl_msg *m, const uint8_t *p, size_t n)
{
	(void)n;
	m->version_min = p[0];
	m->version_max = p[1];
	return p[0] >= 1 && p[0] <= p[1];
}

static size_t put_heartbeat(const struct ctl_msg *m, int i, uint8_t *p)
{
	(void)i;
	be32_put(p, m->heartbeat_us);
	p[4] = m->multiplier;
	be32_put(p + 8, m->min_rx_us);
	return 12;
}
static bool get_heartbeat(struct ctl_msg *m, const uint8_t *p, size_t n)
{
	m->heartbeat_us = be32_get(p);
	m->multiplier = p[4];
	m->min_rx_us = n >= 12 ? be32_get(p + 8) : 0;
	return m->heartbeat_us >= CTL_HEARTBEAT_MIN_US &&
	       m->heartbeat_us <= CTL_HEARTBEAT_MAX_US && m->multiplier >= 1 &&
	       m->min_rx_us <= CTL_HEARTBEAT_MAX_US;
}

static size_t put_probes(const struct ctl_msg *m, int i, uint8_t *p)
{
	(void)i;
	be32_put(p, m->probe_small);
	be32_put(p + 4, m->probe_large);
	be32_put(p + 8, m->probe_size);
	return 12;
}
static bool get_probes(struct ctl_msg *m, const uint8_t *p, size_t n)
{
	(void)n;
	m->probe_small = be32_get(p);
	m->probe_large = be32_get(p + 4);
	m->probe_size = be32_get(p + 8);
	return m->probe_small <= CTL_PROBES_MAX && m->probe_large <= CTL_PROBES_MAX &&
	       m->probe_size <= CTL_PROBE_SIZE_MAX &&
	       (!m->probe_size || m->probe_size >= CTL_PROBE_SIZE_MIN);
}

static size_t put_local(const struct ctl_msg *m, int i, uint8_t *p)
{
	(void)i;
	if (m->told_port == TOLD_PORT_UNKNOWN && m->told_device == TOLD_DEVICE_UNKNOWN &&
	    !m->told_lateness_us)
		return 0;
	p[0] = m->told_port;
	p[1] = m->told_device;
	be32_put(p + 4, m->told_lateness_us);
	return 8;
}
static bool get_local(struct ctl_msg *m, const uint8_t *p, size_t n)
{
	(void)n;
	/* A word that is not known yet tells nothing; the message is good all the same. */
	m->told_port = p[0] <= TOLD_PORT_DOWN ? p[0] : TOLD_PORT_UNKNOWN;
	m->told_device = p[1] <= TOLD_DEVICE_STUCK ? p[1] : TOLD_DEVICE_UNKNOWN;
	m->told_lateness_us = be32_get(p + 4);
	return true;
}

static size_t put_own_rail(const struct ctl_msg *m, int i, uint8_t *p)
{
	size_t n;

	if (i >= MIN(m->n_rails, CTL_RAILS_MAX))
		return 0;
	n = put_address(&m->rails[i].addr, p);
	return n ? n + put_text(m->rails[i].label, p + n) : 0;
}
static bool get_own_rail(struct ctl_msg *m, const uint8_t *p, size_t n)
{
	struct ctl_rail r = {0};
	size_t used = get_address(&r.addr, p, n);

	if (!used || n - used > NAME_LEN_MAX)
		return false;
	r.addr.port = 0;
	(void)get_text(r.label, p + used, n - used);
	/* A peer of a later release may have more rails than this one keeps. */
	if (m->n_rails < CTL_RAILS_MAX) {
		m->facts[m->n_rails] = (struct ctl_rail_facts){0};
		m->rails[m->n_rails++] = r;
	}
	return true;
}

#define FACTS_LEN 24

static bool facts_known(const struct ctl_rail_facts *f)
{
	static const uint8_t none[16];

	return f->mtu || f->lid || f->n_pkeys || memcmp(f->gid, none, sizeof(none)) != 0;
}

/* Value number @i: of the i-th rail of which there are any. */
static size_t put_rail_facts(const struct ctl_msg *m, int i, uint8_t *p)
{
	const struct ctl_rail_facts *f = NULL;
	int rail, n = MIN(m->n_rails, CTL_RAILS_MAX), n_pkeys;

	for (rail = 0; rail < n; rail++)
		if (facts_known(&m->facts[rail]) && !i--)
			break;
	if (rail == n)
		return 0;
	f = &m->facts[rail];
	n_pkeys = MIN(f->n_pkeys, CTL_PKEYS_MAX);
	p[0] = (uint8_t)rail;
	p[1] = (uint8_t)n_pkeys;
	be16_put(p + 2, f->mtu);
	be32_put(p + 4, f->lid);
	memcpy(p + 8, f->gid, 16);
	for (int k = 0; k < n_pkeys; k++)
		be16_put(p + FACTS_LEN + 2 * k, f->pkeys[k]);
	return FACTS_LEN + 2 * (size_t)n_pkeys;
}
/* Of a rail that this one does not keep, or told again: passed over. */
static bool get_rail_facts(struct ctl_msg *m, const uint8_t *p, size_t n)
{
	struct ctl_rail_facts f = {.n_pkeys = p[1]};

	if (p[1] > CTL_PKEYS_MAX || n < FACTS_LEN + 2 * (size_t)p[1])
		return false;
	if (p[0] >= m->n_rails || facts_known(&m->facts[p[0]]))
		return true;
	f.mtu = be16_get(p + 2);
	f.lid = be32_get(p + 4);
	memcpy(f.gid, p + 8, 16);
	for (int k = 0; k < f.n_pkeys; k++)
		f.pkeys[k] = be16_get(p + FACTS_LEN + 2 * k);
	m->facts[p[0]] = f;
	return true;
}

static size_t put_path(const struct ctl_msg *m, int i, uint8_t *p)
{
	const struct ctl_path *path = &m->path;

	(void)i;
	if (!path->mtu && !path->pkey && !path->sl && !path->traffic_class)
		return 0;
	be32_put(p, path->mtu);
	be16_put(p + 4, path->pkey);
	p[6] = path->sl;
	p[7] = path->traffic_class;
	return 8;
}
static bool get_path(struct ctl_msg *m, const uint8_t *p, size_t n)
{
	(void)n;
	m->path = (struct ctl_path){.mtu = be32_get(p), .pkey = be16_get(p + 4), .sl = p[6],
				    .traffic_class = p[7]};
	return p[6] < 16;
}

static size_t put_cause(const struct ctl_msg *m, int i, uint8_t *p)
{
	(void)i;
	p[0] = m->cause;
	be32_put(p + 4, m->deadline_sec);
	return 8;
}
static bool get_cause(struct ctl_msg *m, const uint8_t *p, size_t n)
{
	(void)n;
	m->cause = p[0];
	m->deadline_sec = be32_get(p + 4);
	return m->cause < CAUSE__MAX;
}

static size_t put_refusal(const struct ctl_msg *m, int i, uint8_t *p)
{
	(void)i;
	p[0] = m->refusal;
	return 4;
}
static bool get_refusal(struct ctl_msg *m, const uint8_t *p, size_t n)
{
	(void)n;
	m->refusal = p[0];
	return m->refusal < REFUSE__MAX;
}

static size_t put_probe_tag(const struct ctl_msg *m, int i, uint8_t *p)
{
	(void)i;
	be64_put(p, m->probe_tag);
	return m->probe_tag ? 8 : 0;
}
static bool get_probe_tag(struct ctl_msg *m, const uint8_t *p, size_t n)
{
	(void)n;
	m->probe_tag = be64_get(p);
	return true;
}

/* clang-format off */
#define COOKIES (BIT(CTL_CHALLENGE) | BIT(CTL_RESET))
#define NO_MSG 0
static const struct tlv_row rows[] = {
	/* type          min max             repeat spare  sent in          demanded in */
	{ TLV_COOKIE,    32, ANY_LEN,        false, false, COOKIES,          COOKIES,
	  put_cookie, get_cookie },
	{ TLV_TRANSPORT, 4,  ANY_LEN,        false, false, INTRODUCES,       INTRODUCES,
	  put_transport, get_transport },
	{ TLV_NODE,      1,  NAME_LEN_MAX,   false, false, INTRODUCES,       NO_MSG,
	  put_node, get_node },
	{ TLV_RAIL,      1,  NAME_LEN_MAX,   false, false, INTRODUCES,       NO_MSG,
	  put_rail, get_rail },
	{ TLV_PORT_NAME, 1,  NAME_LEN_MAX,   false, false, INTRODUCES,       NO_MSG,
	  put_port_name, get_port_name },
	{ TLV_RDMA_ADDR, ADDR_LEN_4, ANY_LEN, false, false, INTRODUCES,
	  BIT(CTL_PROTOCOL_VERSION_ACK), put_rdma_addr, get_rdma_addr },
	{ TLV_VERSIONS,  2,  ANY_LEN,        false, false, OFFERS,           OFFERS,
	  put_versions, get_versions },
	{ TLV_HEARTBEAT, 8,  ANY_LEN,        false, false, OFFERS,           OFFERS,
	  put_heartbeat, get_heartbeat },
	{ TLV_PROBES,    12, ANY_LEN,        false, false, OFFERS,           OFFERS,
	  put_probes, get_probes },
	{ TLV_LOCAL,     8,  ANY_LEN,        false, false, ALL & ~STATELESS, NO_MSG,
	  put_local, get_local },
	{ TLV_CAUSE,     8,  ANY_LEN,        false, false, CAUSES,           CAUSES,
	  put_cause, get_cause },
	{ TLV_REFUSAL,   4,  ANY_LEN,        false, false, BIT(CTL_REFUSED), BIT(CTL_REFUSED),
	  put_refusal, get_refusal },
	{ TLV_PATH,      8,  ANY_LEN,        false, false, ALL & ~STATELESS, NO_MSG,
	  put_path, get_path },
	{ TLV_OWN_RAIL,  ADDR_LEN_4, ADDR_LEN_6 + NAME_LEN_MAX, true, false,
	  RAILS, NO_MSG, put_own_rail, get_own_rail },
	{ TLV_PROBE_TAG, 8,  ANY_LEN,        false, false, BIT(CTL_RESET),   NO_MSG,
	  put_probe_tag, get_probe_tag },
	/* what may be left out comes last */
	{ TLV_RAIL_FACTS, FACTS_LEN, ANY_LEN, true, true,
	  RAILS, NO_MSG, put_rail_facts, get_rail_facts },
};
/* clang-format on */

/* Append a TLV of @n bytes whose value is written already or is zero. */
static size_t put_head(uint8_t *p, uint16_t type, size_t n)
{
	be16_put(p, type);
	be16_put(p + 2, (uint16_t)n);
	return TLV_HEAD + n;
}

static size_t put_tlvs(const struct ctl_msg *m, uint8_t *buf, size_t room)
{
	size_t at = CTL_HEADER_LEN;

	for (size_t r = 0; r < ARRAY_LEN(rows); r++) {
		const struct tlv_row *row = &rows[r];

		if (!(row->sent_in & BIT(m->cmd)))
			continue;
		for (int i = 0; i == 0 || row->repeat; i++) {
			size_t n = row->put(m, i, buf + at + TLV_HEAD);

			if (!n)
				break;
			if (row->spare && at + TLV_HEAD + n > room) {
				memset(buf + at + TLV_HEAD, 0, n);
				break;
			}
			at += put_head(buf + at, row->type, n);
		}
	}
	return at;
}

size_t ctl_encode(const struct ctl_msg *m, const struct auth_key *key,
		  uint8_t buf[CTL_DATAGRAM_MAX])
{
	const size_t auth_len = key ? TLV_HEAD + AUTH_VALUE_LEN : 0;
	size_t at;

	memset(buf, 0, CTL_DATAGRAM_MAX);
	memcpy(buf, magic, sizeof(magic));
	buf[4] = CTL_MAJOR;
	buf[5] = m->minor;
	buf[6] = (uint8_t)m->cmd;
	be64_put(buf + 8, m->src_id);
	be64_put(buf + 16, m->dst_id);
	be64_put(buf + 24, m->epoch);
	be64_put(buf + 32, m->seq);
	be64_put(buf + 40, m->ack_seq);
	at = put_tlvs(m, buf, CTL_FACTS_ROOM - auth_len);
	if (m->cmd == CTL_RESET && at + auth_len < CTL_STATELESS_MAX) {
		size_t gap = CTL_STATELESS_MAX - at - auth_len;

		at += put_head(buf + at, TLV_PAD, gap > TLV_HEAD ? gap - TLV_HEAD : 0);
	}
	be16_put(buf + 48, (uint16_t)(at + auth_len - CTL_HEADER_LEN));
	if (key) {
		at += put_head(buf + at, TLV_AUTH, AUTH_VALUE_LEN) - AUTH_TAG_LEN;
		be32_put(buf + at - 4, key->id);
		auth_tag(key, CONTEXT, buf, at, buf + at);
		at += AUTH_TAG_LEN;
	}
	return at;
}

static int refuse(enum drop reason)
{
	return -(1 + (int)reason);
}

/* The header; what it holds up to the acknowledged number is the same in every major
 * version, so that an unknown one can be answered. */
static int get_header(const uint8_t *buf, size_t len, struct ctl_msg *m)
{
	if (len > CTL_DATAGRAM_MAX)
		return refuse(DROP_OVERSIZED);
	if (len < CTL_HEADER_LEN)
		return refuse(DROP_SHORT);
	if (memcmp(buf, magic, sizeof(magic)))
		return refuse(DROP_MAGIC);
	m->minor = buf[5];
	m->src_id = be64_get(buf + 8);
	m->dst_id = be64_get(buf + 16);
	m->epoch = be64_get(buf + 24);
	m->seq = be64_get(buf + 32);
	m->ack_seq = be64_get(buf + 40);
	m->cmd = buf[6] < CTL__MAX ? (enum ctl_cmd)buf[6] : CTL_NONE;
	if (buf[4] != CTL_MAJOR)
		return refuse(DROP_VERSION);
	if (m->cmd == CTL_NONE)
		return refuse(DROP_MALFORMED);
	if (!(BIT(m->cmd) & STATELESS) && (!m->src_id || !m->seq))
		return refuse(DROP_MALFORMED);
	if (m->cmd == CTL_RESET && len < CTL_STATELESS_MAX)
		return refuse(DROP_MALFORMED);
	if (len < CTL_HEADER_LEN + (size_t)be16_get(buf + 48))
		return refuse(DROP_SHORT);
	if (len > CTL_HEADER_LEN + (size_t)be16_get(buf + 48))
		return refuse(DROP_MALFORMED);
	return 0;
}

static bool get_auth(const uint8_t *buf, size_t at, size_t n, size_t len,
		     struct ctl_auth *ret)
{
	if (n != AUTH_VALUE_LEN || at + n != len)
		return false;
	ret->present = true;
	ret->key_id = be32_get(buf + at);
	ret->covered = at + 4;
	memcpy(ret->tag, buf + at + 4, AUTH_TAG_LEN);
	return true;
}

/* @seen: rows that were in the message. */
static bool get_value(struct ctl_msg *m, uint16_t type, const uint8_t *p, size_t n,
		      uint32_t *seen)
{
	for (size_t r = 0; r < ARRAY_LEN(rows); r++) {
		const struct tlv_row *row = &rows[r];

		if (row->type != type)
			continue;
		if (!(row->sent_in & BIT(m->cmd)))
			return true;
		if (n < row->min || n > row->max || (!row->repeat && (*seen & BIT(r))))
			return false;
		*seen |= BIT(r);
		return row->get(m, p, n);
	}
	return true;
}

static bool get_tlvs(const uint8_t *buf, size_t len, struct ctl_msg *m,
		     struct ctl_auth *auth)
{
	uint32_t seen = 0;

	for (size_t at = CTL_HEADER_LEN; at < len;) {
		uint16_t type;
		size_t n;

		if (len - at < TLV_HEAD)
			return false;
		type = be16_get(buf + at);
		n = be16_get(buf + at + 2);
		at += TLV_HEAD;
		if (len - at < n)
			return false;
		if (type == TLV_AUTH ? !get_auth(buf, at, n, len, auth)
				     : !get_value(m, type, buf + at, n, &seen))
			return false;
		at += n;
	}
	for (size_t r = 0; r < ARRAY_LEN(rows); r++)
		if ((rows[r].demanded_in & BIT(m->cmd)) && !(seen & BIT(r)))
			return false;
	return true;
}

int ctl_decode(const uint8_t *buf, size_t len, struct ctl_msg *ret, struct ctl_auth *ret_auth)
{
	int r;

	memset(ret, 0, sizeof(*ret));
	memset(ret_auth, 0, sizeof(*ret_auth));
	r = get_header(buf, len, ret);
	if (r < 0)
		return r;
	return get_tlvs(buf, len, ret, ret_auth) ? 0 : refuse(DROP_MALFORMED);
}

const struct auth_key *ctl_verify(const uint8_t *buf, const struct ctl_auth *a,
				  const struct auth_keys *keys)
{
	if (!a->present)
		return NULL;
	return auth_verify(keys, a->key_id, CONTEXT, buf, a->covered, a->tag);
}

void ctl_stateless_answer(const struct ctl_msg *request, enum ctl_cmd cmd,
			  struct ctl_msg *ret)
{
	memset(ret, 0, sizeof(*ret));
	ret->cmd = cmd;
	ret->dst_id = request->src_id;
	ret->epoch = request->epoch;
	ret->ack_seq = request->seq;
	ret->has_cookie = cmd == CTL_CHALLENGE;
}
