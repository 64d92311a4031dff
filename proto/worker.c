/* SPDX-License-Identifier: BSD-2-Clause */
#include "worker.h"

#include <errno.h>
#include <stdio.h>

#include "mad.h"

static const char *const mad_statuses[] = {
	[WM_MAD_OK] = "ok",
	[WM_MAD_TIMEOUT] = "timeout",
	[WM_MAD_BAD_STATUS] = "bad_status",
	[WM_MAD_BAD_ANSWER] = "bad_answer",
	[WM_MAD_SEND_FAILED] = "send_failed",
	[WM_MAD_NO_PORT] = "no_port",
	[WM_MAD_NO_PERMISSION] = "no_permission",
};
const struct enum_names wm_mad_status_names = {mad_statuses, (int)ARRAY_LEN(mad_statuses)};

/* What a field may be. Numbers lie within [min, max]. ADDR: family 0, 4 or 6 within
 * [min, max] as a set: min 0 allows "none". TEXT: ends in NUL inside its size; min 1 = not
 * empty. EACH_U8: every byte of it is a U8. SMP_ATTR: a U16 that mad_attr_allowed(). */
enum wm_field_kind { WF_U8, WF_U16, WF_U32, WF_I32, WF_TEXT, WF_ADDR, WF_EACH_U8,
		     WF_TABLE_TEXTS, WF_SMP_ATTR };

struct wm_field {
	const char *name;
	enum wm_field_kind kind;
	uint32_t offset, size;
	int64_t min, max;
};

/* The end of a message that is as long as it needs to be: @count, a U16 at its offset,
 * tells how many entries there are; each passes the fields. */
struct wm_tail {
	const char *name;
	uint32_t count, offset, each;
	uint16_t min, max;
	const struct wm_field *fields;
	int n;
};

struct wm_row {
	uint16_t type;
	bool to_worker;
	const char *name;
	uint32_t size; /* at most, with a tail */
	const struct wm_field *fields;
	int n;
	const struct wm_tail *tail;
	/* What fields say together: NULL, or what is wrong. */
	const char *(*also)(const uint8_t *msg);
};

/* clang-format off */
#define F(s, m, kind, min, max) \
	{ #m, kind, (uint32_t)offsetof(struct s, m), (uint32_t)sizeof(((struct s *)0)->m), min, \
	  max }
#define FIELDS(name) static const struct wm_field name[] =

FIELDS(init_fields) {
	F(wm_init, device, WF_TEXT, 0, 0),
	F(wm_init, poll_ms, WF_U32, 0, 3600000),
	F(wm_init, max_endpoints, WF_U32, 0, 100000),
	F(wm_init, counters_ms, WF_U32, 0, 3600000),
	F(wm_init, reports, WF_U8, 0, 1),
};
FIELDS(listen_fields) {
	F(wm_listen, addr, WF_ADDR, 1, 0),
	F(wm_listen, transport, WF_U8, 0, TRANSPORT__MAX - 1),
};
FIELDS(ep_start_fields) {
	F(wm_ep_start, start.role, WF_U8, 0, ROLE__MAX - 1),
	F(wm_ep_start, start.transport, WF_U8, 0, TRANSPORT__MAX - 1),
	F(wm_ep_start, start.port, WF_U8, 0, 254),
	F(wm_ep_start, start.has_key, WF_U8, 0, 1),
	F(wm_ep_start, start.ack_timeout, WF_U8, 0, 31),
	F(wm_ep_start, start.retry_count, WF_U8, 0, 7),
	F(wm_ep_start, start.multiplier, WF_U8, 1, 100),
	F(wm_ep_start, start.local, WF_ADDR, 1, 0),
	F(wm_ep_start, start.remote, WF_ADDR, 1, 0),
	F(wm_ep_start, start.netdev, WF_TEXT, 0, 0),
	F(wm_ep_start, start.heartbeat_us, WF_U32, 1000, UINT32_MAX),
	F(wm_ep_start, start.resolve_timeout_ms, WF_U32, 1, 600000),
	F(wm_ep_start, start.connect_timeout_ms, WF_U32, 1, 600000),
	F(wm_ep_start, start.probe_small, WF_U16, 0, 10000),
	F(wm_ep_start, start.probe_large, WF_U16, 0, 10000),
	F(wm_ep_start, start.probe_size, WF_U32, 0, 65536),
};
FIELDS(smp_gets_fields) {
	F(wm_smp_gets, device, WF_TEXT, 1, 0),
	F(wm_smp_gets, port, WF_U8, 1, 254),
};
FIELDS(smp_get_fields) {
	F(wm_smp_get, attr, WF_SMP_ATTR, 0, 0),
	F(wm_smp_get, timeout_ms, WF_U16, 1, 10000),
	F(wm_smp_get, retries, WF_U8, 0, 15),
	F(wm_smp_get, hops, WF_U8, 0, IB_HOPS_MAX),
	F(wm_smp_get, path[0], WF_U8, 0, 0),
};
FIELDS(mad_send_fields) {
	F(wm_mad_send, device, WF_TEXT, 1, 0),
	F(wm_mad_send, port, WF_U8, 1, 254),
	F(wm_mad_send, kind, WF_U8, 0, WM_KIND__MAX - 1),
	F(wm_mad_send, hops, WF_U8, 0, IB_HOPS_MAX),
	F(wm_mad_send, path[0], WF_U8, 0, 0),
	F(wm_mad_send, sl, WF_U8, 0, IB_SLS - 1),
	F(wm_mad_send, retries, WF_U8, 0, 15),
	F(wm_mad_send, timeout_ms, WF_I32, -1, 60000),
	F(wm_mad_send, length, WF_U16, 0, 200),
	F(wm_mad_send, grh.present, WF_U8, 0, 1),
	F(wm_mad_send, grh.flow_label, WF_U32, 0, 0xfffff),
};
FIELDS(hello_fields) {
	F(wm_hello, kind, WF_U8, 0, WORKER_KIND__MAX - 1),
	F(wm_hello, device, WF_TEXT, 0, 0),
	F(wm_hello, release, WF_TEXT, 1, 0),
};
FIELDS(pong_fields) {
	F(wm_pong, cm_destroying, WF_U8, 0, 1),
	F(wm_pong, cm_call, WF_TEXT, 0, 0),
};
FIELDS(device_fields) {
	F(wm_device, has_verbs, WF_U8, 0, 1),
	F(wm_device, name, WF_TEXT, 1, 0),
	F(wm_device, facts.why, WF_EACH_U8, 0, WHY__MAX - 1),
	F(wm_device, facts, WF_TABLE_TEXTS, 0, 0),
};
FIELDS(port_fields_rows) {
	F(wm_port, device, WF_TEXT, 1, 0),
	F(wm_port, port, WF_U8, 1, 254),
	F(wm_port, has_verbs, WF_U8, 0, 1),
	F(wm_port, has_smi, WF_U8, 0, 1),
	F(wm_port, source, WF_U8, 0, SOURCE__MAX - 1),
	F(wm_port, missing_why, WF_U8, 0, WHY__MAX - 1),
	F(wm_port, link_layer, WF_U8, 0, 2),
	F(wm_port, lmc, WF_U8, 0, 7),
	F(wm_port, sm_sl, WF_U8, 0, 15),
	F(wm_port, netdev, WF_TEXT, 0, 0),
};
FIELDS(gids_fields) {
	F(wm_gids, device, WF_TEXT, 1, 0),
	F(wm_gids, port, WF_U8, 1, 254),
	F(wm_gids, last, WF_U8, 0, 1),
	F(wm_gids, why, WF_U8, 0, WHY__MAX - 1),
	F(wm_gids, first, WF_U16, 0, PORT_GIDS_MAX - 1),
	F(wm_gids, n, WF_U16, 0, WM_GIDS_EACH),
};
FIELDS(pkeys_fields) {
	F(wm_pkeys, device, WF_TEXT, 1, 0),
	F(wm_pkeys, port, WF_U8, 1, 254),
	F(wm_pkeys, last, WF_U8, 0, 1),
	F(wm_pkeys, why, WF_U8, 0, WHY__MAX - 1),
	F(wm_pkeys, first, WF_U16, 0, PORT_PKEYS_MAX - 1),
	F(wm_pkeys, n, WF_U16, 0, WM_PKEYS_EACH),
};
FIELDS(port_gone_fields) {
	F(wm_port_gone, device, WF_TEXT, 1, 0),
	F(wm_port_gone, port, WF_U8, 0, 254),
};
FIELDS(listening_fields) {
	F(wm_listening, addr, WF_ADDR, 1, 0),
	F(wm_listening, transport, WF_U8, 0, TRANSPORT__MAX - 1),
	F(wm_listening, text, WF_TEXT, 0, 0),
};
FIELDS(ep_ping_fields) {
	F(wm_ep_ping, ping.id, WF_U32, 1, UINT32_MAX),
	F(wm_ep_ping, ping.count, WF_U32, 0, EP_PING_COUNT_MAX),
	F(wm_ep_ping, ping.size, WF_U32, 0, 65536),
	F(wm_ep_ping, ping.interval_us, WF_U32, 0, 3600000000),
	F(wm_ep_ping, ping.timeout_us, WF_U32, 1000, 60000000),
};

FIELDS(ep_event_fields) {
	F(wm_ep_event, event.type, WF_U8, 0, EP__MAX - 1),
	F(wm_ep_event, event.stage, WF_U8, 0, STAGE__MAX - 1),
	F(wm_ep_event, event.error, WF_U8, 0, EPERR__MAX - 1),
	F(wm_ep_event, event.port, WF_U8, 0, 254),
	F(wm_ep_event, event.addr, WF_ADDR, 0, 0),
	F(wm_ep_event, event.remote, WF_ADDR, 0, 0),
	F(wm_ep_event, event.ping_done, WF_U8, 0, 1),
	F(wm_ep_event, event.text, WF_TEXT, 0, 0),
};
FIELDS(smp_result_fields) {
	F(wm_smp_result, status, WF_U8, 0, WM_MAD__MAX - 1),
};
FIELDS(mad_answer_fields) {
	F(wm_mad_answer, status, WF_U8, 0, WM_MAD__MAX - 1),
	F(wm_mad_answer, more, WF_U8, 0, 1),
	F(wm_mad_answer, total, WF_U32, 0, WM_MAD_TOTAL_MAX),
	F(wm_mad_answer, length, WF_U16, 0, 200),
};
FIELDS(mad_more_fields) {
	F(wm_mad_more, offset, WF_U32, 0, WM_MAD_TOTAL_MAX),
	F(wm_mad_more, total, WF_U32, 1, WM_MAD_TOTAL_MAX),
};
FIELDS(notice_fields) {
	F(wm_notice, device, WF_TEXT, 1, 0),
	F(wm_notice, port, WF_U8, 1, 254),
};
FIELDS(counters_fields) {
	F(wm_counters, device, WF_TEXT, 1, 0),
	F(wm_counters, port, WF_U8, 1, 254),
	F(wm_counters, reading.bits, WF_EACH_U8, 0, 64),
	F(wm_counters, reading.why, WF_EACH_U8, 0, WHY__MAX - 1),
	F(wm_counters, reading.source, WF_EACH_U8, 0, COUNTER_SOURCE__MAX - 1),
};
FIELDS(goodbye_fields) {
	F(wm_goodbye, why, WF_U8, 0, GOODBYE__MAX - 1),
	F(wm_goodbye, text, WF_TEXT, 0, 0),
};

#define TAIL(s, count, m, min, max, f, n) \
	{ #m, (uint32_t)offsetof(struct s, count), (uint32_t)offsetof(struct s, m), \
	  (uint32_t)sizeof(((struct s *)0)->m[0]), min, max, f, n }
static const struct wm_tail smp_gets_tail = TAIL(wm_smp_gets, n, get, 1, WM_SMPS_EACH,
	smp_get_fields, (int)ARRAY_LEN(smp_get_fields));
static const struct wm_tail smp_results_tail = TAIL(wm_smp_results, n, result, 1,
	WM_SMPS_EACH, smp_result_fields, (int)ARRAY_LEN(smp_result_fields));
static const struct wm_tail mad_more_tail = TAIL(wm_mad_more, length, data, 1,
	WM_MORE_EACH, NULL, 0);
static const struct wm_tail ep_rounds_tail = TAIL(wm_ep_rounds, length, data, 1,
	WM_ROUNDS_MAX, NULL, 0);
/* clang-format on */

uint8_t wm_kind_class(uint8_t kind)
{
	static const uint8_t classes[WM_KIND__MAX] = {
		[WM_KIND_DR_SMP] = MAD_CLASS_SMI_DR,
		[WM_KIND_LID_SMP] = MAD_CLASS_SMI_LID,
		[WM_KIND_PMA] = MAD_CLASS_PMA,
		[WM_KIND_SA] = MAD_CLASS_SA,
	};

	return kind < WM_KIND__MAX ? classes[kind] : 0;
}

static const char *check_mad_send(const uint8_t *msg)
{
	static const uint16_t longest[WM_KIND__MAX] = {
		[WM_KIND_DR_SMP] = MAD_DATA_LEN,
		[WM_KIND_LID_SMP] = MAD_DATA_LEN,
		[WM_KIND_PMA] = MAD_LEN - MAD_GMP_DATA,
		[WM_KIND_SA] = MAD_LEN - MAD_SA_DATA,
	};
	struct wm_mad_send m;

	memcpy(&m, msg, sizeof(m));
	if (!mad_request_allowed(wm_kind_class(m.kind), m.method, m.attr))
		return "no such request is allowed";
	return m.length > longest[m.kind] ? "length over its kind's" : NULL;
}

static const char *check_mad_answer(const uint8_t *msg)
{
	struct wm_mad_answer m;

	memcpy(&m, msg, sizeof(m));
	return m.more ? m.length ? "length after pieces" : NULL
	       : m.total != m.length ? "total is not its length"
				     : NULL;
}

static const char *check_ep_rounds(const uint8_t *msg)
{
	struct wm_ep_rounds m;
	struct hist h;
	int len;

	memcpy(&m, msg, offsetof(struct wm_ep_rounds, data));
	len = hist_import(&h, msg + offsetof(struct wm_ep_rounds, data), m.length);
	hist_done(&h);
	return len == m.length ? NULL : "no histogram";
}

static const char *check_mad_more(const uint8_t *msg)
{
	struct wm_mad_more m;

	memcpy(&m, msg, offsetof(struct wm_mad_more, data));
	return m.offset > m.total || m.length > m.total - m.offset ? "beyond the total"
								   : NULL;
}

/* clang-format off */
#define ROW(t, to, s, f) { t, to, #t, sizeof(struct s), f, (int)ARRAY_LEN(f), NULL, NULL }
#define MORE(t, to, s, f, tail, also) \
	{ t, to, #t, sizeof(struct s), f, (int)ARRAY_LEN(f), tail, also }
#define BARE(t, to, s, tail, also) { t, to, #t, sizeof(struct s), NULL, 0, tail, also }
static const struct wm_row rows[] = {
	ROW(WM_INIT,         true,  wm_init,       init_fields),
	BARE(WM_PING,        true,  wm_ping, NULL, NULL),
	BARE(WM_POLL,        true,  wm_poll, NULL, NULL),
	ROW(WM_LISTEN,       true,  wm_listen,     listen_fields),
	ROW(WM_UNLISTEN,     true,  wm_listen,     listen_fields),
	ROW(WM_EP_START,     true,  wm_ep_start,   ep_start_fields),
	BARE(WM_EP_PROBE,    true,  wm_ep, NULL, NULL),
	BARE(WM_EP_HEARTBEAT, true, wm_ep, NULL, NULL),
	BARE(WM_EP_RESET,    true,  wm_ep, NULL, NULL),
	ROW(WM_EP_PING,      true,  wm_ep_ping,    ep_ping_fields),
	MORE(WM_SMP_GETS,    true,  wm_smp_gets,   smp_gets_fields, &smp_gets_tail, NULL),
	MORE(WM_MAD_SEND,    true,  wm_mad_send,   mad_send_fields, NULL, check_mad_send),
	BARE(WM_EXIT,        true,  wm_exit, NULL, NULL),
	ROW(WM_HELLO,        false, wm_hello,      hello_fields),
	ROW(WM_PONG,         false, wm_pong,       pong_fields),
	ROW(WM_DEVICE,       false, wm_device,     device_fields),
	ROW(WM_PORT,         false, wm_port,       port_fields_rows),
	ROW(WM_GIDS,         false, wm_gids,       gids_fields),
	ROW(WM_PKEYS,        false, wm_pkeys,      pkeys_fields),
	ROW(WM_PORT_GONE,    false, wm_port_gone,  port_gone_fields),
	ROW(WM_LISTENING,    false, wm_listening,  listening_fields),
	ROW(WM_EP_EVENT,     false, wm_ep_event,   ep_event_fields),
	BARE(WM_EP_ROUNDS,   false, wm_ep_rounds, &ep_rounds_tail, check_ep_rounds),
	BARE(WM_SMP_RESULTS, false, wm_smp_results, &smp_results_tail, NULL),
	MORE(WM_MAD_MORE,    false, wm_mad_more,   mad_more_fields, &mad_more_tail,
	     check_mad_more),
	MORE(WM_MAD_ANSWER,  false, wm_mad_answer, mad_answer_fields, NULL, check_mad_answer),
	ROW(WM_NOTICE,       false, wm_notice,     notice_fields),
	ROW(WM_COUNTERS,     false, wm_counters,   counters_fields),
	BARE(WM_DROPS,       false, wm_drops, NULL, NULL),
	ROW(WM_GOODBYE,      false, wm_goodbye,    goodbye_fields),
};
/* clang-format on */

static_assert(sizeof(struct wm_gids) <= WM_MAX, "a message fits");
static_assert(sizeof(struct wm_device) <= WM_MAX, "a message fits");
static_assert(sizeof(struct wm_pkeys) <= WM_MAX, "a message fits");
static_assert(sizeof(struct wm_smp_gets) <= WM_MAX, "a message fits");
static_assert(sizeof(struct wm_smp_results) <= WM_MAX, "a message fits");
static_assert(sizeof(struct wm_mad_more) <= WM_MAX, "a message fits");
static_assert(sizeof(struct wm_ep_rounds) <= WM_MAX, "a message fits");

static const struct wm_row *row_find(uint16_t type)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (rows[i].type == type)
			return &rows[i];
	return NULL;
}

const char *wm_type_name(uint16_t type)
{
	const struct wm_row *r = row_find(type);

	return r ? r->name : "unknown";
}

static bool size_ok(const struct wm_row *r, size_t size)
{
	const struct wm_tail *t = r->tail;

	if (!t)
		return size == r->size;
	return size >= t->offset + (size_t)t->min * t->each &&
	       size <= t->offset + (size_t)t->max * t->each &&
	       (size - t->offset) % t->each == 0;
}

void wm_header(void *msg, enum wm_type type, size_t size, uint32_t generation)
{
	struct wm_header h = {
		.magic = WM_MAGIC,
		.version = WM_VERSION,
		.type = (uint16_t)type,
		.length = (uint32_t)size,
		.generation = generation,
	};

	assert(row_find((uint16_t)type) && size_ok(row_find((uint16_t)type), size));
	memcpy(msg, &h, sizeof(h));
}

static int64_t number_at(const struct wm_field *f, const uint8_t *p)
{
	uint16_t v16;
	uint32_t v32;
	int32_t i32;

	switch (f->kind) {
	case WF_U16:
	case WF_SMP_ATTR:
		memcpy(&v16, p, sizeof(v16));
		return v16;
	case WF_U32:
		memcpy(&v32, p, sizeof(v32));
		return v32;
	case WF_I32:
		memcpy(&i32, p, sizeof(i32));
		return i32;
	default:
		return *p;
	}
}

static bool text_ok(const uint8_t *p, size_t size, bool may_be_empty)
{
	return memchr(p, '\0', size) && (may_be_empty || p[0]);
}

static bool addr_ok(const uint8_t *p, bool may_be_none)
{
	struct addr a;

	memcpy(&a, p, sizeof(a));
	return a.family == 4 || a.family == 6 || (a.family == 0 && may_be_none);
}

static bool device_texts_ok(const uint8_t *facts)
{
	for (int i = 0; i < device_table.n; i++) {
		const struct field *f = &device_table.fields[i];

		if (f->kind == FIELD_TEXT && !text_ok(facts + f->offset, f->size, true))
			return false;
		if (f->kind == FIELD_BOOL && facts[f->offset] > 1)
			return false;
	}
	return true;
}

static bool field_ok(const struct wm_field *f, const uint8_t *msg)
{
	const uint8_t *p = msg + f->offset;
	int64_t v;

	switch (f->kind) {
	case WF_TEXT:
		return text_ok(p, f->size, f->min == 0);
	case WF_ADDR:
		return addr_ok(p, f->min == 0);
	case WF_EACH_U8:
		for (uint32_t i = 0; i < f->size; i++)
			if (p[i] < f->min || p[i] > f->max)
				return false;
		return true;
	case WF_TABLE_TEXTS:
		return device_texts_ok(p);
	case WF_SMP_ATTR:
		return mad_attr_allowed((uint16_t)number_at(f, p));
	case WF_U8:
	case WF_U16:
	case WF_U32:
	case WF_I32:
		break;
	}
	v = number_at(f, p);
	return v >= f->min && v <= f->max;
}

static bool fields_ok(const struct wm_row *r, const struct wm_field *fields, int n,
		      const uint8_t *at, char *why, size_t why_size)
{
	for (int i = 0; i < n; i++) {
		if (field_ok(&fields[i], at))
			continue;
		(void)snprintf(why, why_size, "%s: %s out of range", r->name,
			       fields[i].name);
		return false;
	}
	return true;
}

static bool tail_ok(const struct wm_row *r, const uint8_t *msg, size_t len, char *why,
		    size_t why_size)
{
	const struct wm_tail *t = r->tail;
	uint16_t n;

	memcpy(&n, msg + t->count, sizeof(n));
	if (len != t->offset + (size_t)n * t->each) {
		(void)snprintf(why, why_size, "%s of %zu bytes, has %u of %s", r->name, len,
			       n, t->name);
		return false;
	}
	if (!t->n)
		return true;
	for (size_t i = 0; i < n; i++)
		if (!fields_ok(r, t->fields, t->n, msg + t->offset + i * t->each, why,
			       why_size))
			return false;
	return true;
}

static int check_body(const struct wm_row *r, const uint8_t *msg, size_t len, char *why,
		      size_t why_size)
{
	const char *wrong;

	if (!fields_ok(r, r->fields, r->n, msg, why, why_size) ||
	    (r->tail && !tail_ok(r, msg, len, why, why_size)))
		return -EPROTO;
	wrong = r->also ? r->also(msg) : NULL;
	if (!wrong)
		return 0;
	(void)snprintf(why, why_size, "%s: %s", r->name, wrong);
	return -EPROTO;
}

int wm_check(const void *buf, size_t len, bool to_worker, char *why, size_t why_size)
{
	const struct wm_row *r;
	struct wm_header h;

	if (len < sizeof(h)) {
		(void)snprintf(why, why_size, "%zu bytes are shorter than a header", len);
		return -EPROTO;
	}
	memcpy(&h, buf, sizeof(h));
	if (h.magic != WM_MAGIC) {
		(void)snprintf(why, why_size, "magic 0x%08x", h.magic);
		return -EPROTO;
	}
	if (h.version != WM_VERSION) {
		(void)snprintf(why, why_size, "message version %u, this is %u", h.version,
			       WM_VERSION);
		return -EPROTONOSUPPORT;
	}
	r = row_find(h.type);
	if (!r || r->to_worker != to_worker) {
		(void)snprintf(why, why_size, "type %u is not for this side", h.type);
		return -EPROTO;
	}
	if (!size_ok(r, len) || h.length != len) {
		(void)snprintf(why, why_size, "%s of %zu bytes, says %u, should be %u", r->name,
			       len, h.length, r->size);
		return -EPROTO;
	}
	return check_body(r, buf, len, why, why_size);
}
