/* SPDX-License-Identifier: BSD-2-Clause */
#include "counters.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#define HOUR_SEC 3600u
#define DAY_SEC	 86400u

/* clang-format off */
#define ROW(c, name, kind, bits, scale, limit, sec, help) \
	[CTR_##c] = { name, CTR_KIND_##kind, bits, scale, limit, sec, help }

/* Widths of PortCounters' registers: IBA 16.1.3.5. Limits are those that an operator of a
 * few thousand links would start with: what a well link does in an hour, and a margin. */
const struct counter_row counter_rows[CTR__MAX] = {
	ROW(SYMBOL_ERROR, "symbol_error", ERROR, 16, 1, 120, HOUR_SEC,
	    "errors of the physical layer on a lane"),
	ROW(LINK_ERROR_RECOVERY, "link_error_recovery", ERROR, 8, 1, 2, HOUR_SEC,
	    "times the link trained again by itself"),
	ROW(LINK_DOWNED, "link_downed", ERROR, 8, 1, 4, HOUR_SEC,
	    "times the link went down"),
	ROW(PORT_RCV_ERRORS, "port_rcv_errors", ERROR, 16, 1, 10, HOUR_SEC,
	    "broken packets received"),
	ROW(PORT_RCV_REMOTE_PHYSICAL_ERRORS, "port_rcv_remote_physical_errors", ERROR, 16, 1,
	    100, HOUR_SEC, "packets that were broken on an earlier link"),
	ROW(PORT_RCV_SWITCH_RELAY_ERRORS, "port_rcv_switch_relay_errors", ERROR, 16, 1, 0, 0,
	    "packets that a switch could not pass on; multicast makes some"),
	ROW(PORT_XMIT_DISCARDS, "port_xmit_discards", ERROR, 16, 1, 100, HOUR_SEC,
	    "packets thrown away before sending"),
	ROW(PORT_XMIT_CONSTRAINT_ERRORS, "port_xmit_constraint_errors", ERROR, 8, 1, 10,
	    HOUR_SEC, "packets not sent: wrong partition or raw"),
	ROW(PORT_RCV_CONSTRAINT_ERRORS, "port_rcv_constraint_errors", ERROR, 8, 1, 10,
	    HOUR_SEC, "packets refused: wrong partition or raw"),
	ROW(LOCAL_LINK_INTEGRITY_ERRORS, "local_link_integrity_errors", ERROR, 4, 1, 3,
	    HOUR_SEC, "times too many local physical errors came in a row"),
	ROW(EXCESSIVE_BUFFER_OVERRUN_ERRORS, "excessive_buffer_overrun_errors", ERROR, 4, 1,
	    3, HOUR_SEC, "times the receive buffer overran for long"),
	ROW(QP1_DROPPED, "qp1_dropped", ERROR, 16, 1, 0, 0,
	    "management packets dropped"),
	ROW(VL15_DROPPED, "VL15_dropped", ERROR, 16, 1, 0, 0,
	    "subnet management packets dropped; a sweep makes some"),
	ROW(PORT_XMIT_WAIT, "port_xmit_wait", INFO, 32, 1, 0, 0,
	    "ticks in which there was data to send and no credit"),
	ROW(PORT_XMIT_DATA, "port_xmit_data", TRAFFIC, 32, 4, 0, 0, "bytes sent"),
	ROW(PORT_RCV_DATA, "port_rcv_data", TRAFFIC, 32, 4, 0, 0, "bytes received"),
	ROW(PORT_XMIT_PACKETS, "port_xmit_packets", TRAFFIC, 32, 1, 0, 0, "packets sent"),
	ROW(PORT_RCV_PACKETS, "port_rcv_packets", TRAFFIC, 32, 1, 0, 0, "packets received"),
	ROW(UNICAST_XMIT_PACKETS, "unicast_xmit_packets", TRAFFIC, 64, 1, 0, 0,
	    "unicast packets sent"),
	ROW(UNICAST_RCV_PACKETS, "unicast_rcv_packets", TRAFFIC, 64, 1, 0, 0,
	    "unicast packets received"),
	ROW(MULTICAST_XMIT_PACKETS, "multicast_xmit_packets", TRAFFIC, 64, 1, 0, 0,
	    "multicast packets sent"),
	ROW(MULTICAST_RCV_PACKETS, "multicast_rcv_packets", TRAFFIC, 64, 1, 0, 0,
	    "multicast packets received"),
	ROW(OUT_OF_SEQUENCE, "out_of_sequence", ERROR, 64, 1, 0, 0,
	    "packets that came out of order: lost before, or routed apart"),
	ROW(PACKET_SEQ_ERR, "packet_seq_err", ERROR, 64, 1, 0, 0,
	    "NAKs received for a missing packet"),
	ROW(LOCAL_ACK_TIMEOUT_ERR, "local_ack_timeout_err", ERROR, 64, 1, 0, 0,
	    "times no acknowledgement came in time"),
	ROW(RNR_NAK_RETRY_ERR, "rnr_nak_retry_err", INFO, 64, 1, 0, 0,
	    "times the other side had no receive ready"),
	ROW(OUT_OF_BUFFER, "out_of_buffer", INFO, 64, 1, 0, 0,
	    "packets dropped: no receive was posted"),
	ROW(RX_ICRC_ENCAPSULATED, "rx_icrc_encapsulated", ERROR, 64, 1, 10, HOUR_SEC,
	    "RoCE packets with a wrong checksum"),
	ROW(NP_CNP_SENT, "np_cnp_sent", INFO, 64, 1, 0, 0, "congestion notices sent"),
	ROW(NP_ECN_MARKED_ROCE_PACKETS, "np_ecn_marked_roce_packets", INFO, 64, 1, 0, 0,
	    "packets that met congestion"),
	ROW(RP_CNP_HANDLED, "rp_cnp_handled", INFO, 64, 1, 0, 0,
	    "congestion notices obeyed"),
	ROW(RX_PAUSE, "rx_pause", INFO, 64, 1, 0, 0, "pause frames received"),
	ROW(TX_PAUSE, "tx_pause", INFO, 64, 1, 0, 0, "pause frames sent"),
	ROW(RX_DISCARDS, "rx_discards", ERROR, 64, 1, 0, 0,
	    "packets dropped: the port's buffer was full"),
};

/* The same under the names of perfquery and of drivers other than mlx5. */
static const struct {
	const char *name;
	enum counter counter;
} aliases[] = {
	{ "SymbolErrorCounter", CTR_SYMBOL_ERROR },
	{ "LinkErrorRecoveryCounter", CTR_LINK_ERROR_RECOVERY },
	{ "LinkDownedCounter", CTR_LINK_DOWNED },
	{ "PortRcvErrors", CTR_PORT_RCV_ERRORS },
	{ "PortRcvRemotePhysicalErrors", CTR_PORT_RCV_REMOTE_PHYSICAL_ERRORS },
	{ "PortRcvSwitchRelayErrors", CTR_PORT_RCV_SWITCH_RELAY_ERRORS },
	{ "PortXmitDiscards", CTR_PORT_XMIT_DISCARDS },
	{ "PortXmitConstraintErrors", CTR_PORT_XMIT_CONSTRAINT_ERRORS },
	{ "PortRcvConstraintErrors", CTR_PORT_RCV_CONSTRAINT_ERRORS },
	{ "LocalLinkIntegrityErrors", CTR_LOCAL_LINK_INTEGRITY_ERRORS },
	{ "ExcessiveBufferOverrunErrors", CTR_EXCESSIVE_BUFFER_OVERRUN_ERRORS },
	{ "QP1Dropped", CTR_QP1_DROPPED },
	{ "VL15Dropped", CTR_VL15_DROPPED },
	{ "PortXmitWait", CTR_PORT_XMIT_WAIT },
	{ "PortXmitData", CTR_PORT_XMIT_DATA },
	{ "PortRcvData", CTR_PORT_RCV_DATA },
	{ "PortXmitPkts", CTR_PORT_XMIT_PACKETS },
	{ "PortRcvPkts", CTR_PORT_RCV_PACKETS },
	{ "PortUnicastXmitPkts", CTR_UNICAST_XMIT_PACKETS },
	{ "PortUnicastRcvPkts", CTR_UNICAST_RCV_PACKETS },
	{ "PortMulticastXmitPkts", CTR_MULTICAST_XMIT_PACKETS },
	{ "PortMulticastRcvPkts", CTR_MULTICAST_RCV_PACKETS },
	/* rxe */
	{ "sent_pkts", CTR_PORT_XMIT_PACKETS },
	{ "rcvd_pkts", CTR_PORT_RCV_PACKETS },
	{ "out_of_seq_request", CTR_OUT_OF_SEQUENCE },
	{ "rcvd_seq_err", CTR_PACKET_SEQ_ERR },
	{ "rcvd_rnr_err", CTR_RNR_NAK_RETRY_ERR },
	/* bnxt_re, irdma, hns */
	{ "to_retransmits", CTR_LOCAL_ACK_TIMEOUT_ERR },
	{ "seq_err_naks_rcvd", CTR_PACKET_SEQ_ERR },
	{ "rnr_naks_rcvd", CTR_RNR_NAK_RETRY_ERR },
	{ "tx_cnp_pkts", CTR_NP_CNP_SENT },
	{ "rx_cnp_pkts", CTR_RP_CNP_HANDLED },
	{ "rx_ecn_marked_pkts", CTR_NP_ECN_MARKED_ROCE_PACKETS },
	{ "cnpSent", CTR_NP_CNP_SENT },
	{ "cnpHandled", CTR_RP_CNP_HANDLED },
	{ "RxECNMrkd", CTR_NP_ECN_MARKED_ROCE_PACKETS },
	/* network devices: ethtool -S */
	{ "rx_pause_ctrl_phy", CTR_RX_PAUSE },
	{ "tx_pause_ctrl_phy", CTR_TX_PAUSE },
	{ "rx_pause_frames", CTR_RX_PAUSE },
	{ "tx_pause_frames", CTR_TX_PAUSE },
	{ "rx_discards_phy", CTR_RX_DISCARDS },
	{ "rx_total_discard_pkts", CTR_RX_DISCARDS },
};
/* clang-format on */

static const char *const sources[] = {
	[COUNTER_NOWHERE] = "none",
	[COUNTER_PMA] = "pma",
	[COUNTER_PMA_EXT] = "pma_ext",
	[COUNTER_SYSFS] = "sysfs",
	[COUNTER_HW_COUNTERS] = "hw_counters",
	[COUNTER_ETHTOOL] = "ethtool",
};
const struct enum_names counter_source_names = {sources, (int)ARRAY_LEN(sources)};

static const char *const kinds[] = {
	[CTR_KIND_ERROR] = "error",
	[CTR_KIND_INFO] = "info",
	[CTR_KIND_TRAFFIC] = "traffic",
};
const struct enum_names counter_kind_names = {kinds, (int)ARRAY_LEN(kinds)};

int counter_find(const char *name)
{
	for (int c = 0; c < CTR__MAX; c++)
		if (!strcasecmp(counter_rows[c].name, name))
			return c;
	for (size_t i = 0; i < ARRAY_LEN(aliases); i++)
		if (!strcasecmp(aliases[i].name, name))
			return (int)aliases[i].counter;
	return -1;
}

void counter_reading_init(struct counter_reading *r, enum unavailable why)
{
	memset(r, 0, sizeof(*r));
	memset(r->why, (int)why, sizeof(r->why));
}

/* ---- limits ---- */

void counter_limits_default(struct counter_limits *l)
{
	for (int c = 0; c < CTR__MAX; c++) {
		l->limit[c] = counter_rows[c].limit;
		l->sec[c] = counter_rows[c].limit_sec;
	}
}

static const struct {
	char unit;
	uint32_t sec;
} units[] = {{'d', DAY_SEC}, {'h', HOUR_SEC}, {'m', 60}, {'s', 1}};

/* A number from 1 to @max at *@p, which goes on behind it; 0 if there is none. */
static uint32_t number(const char **p, uint32_t max)
{
	uint64_t v = 0;

	if (**p < '0' || **p > '9')
		return 0;
	for (; **p >= '0' && **p <= '9'; (*p)++)
		if (v <= max)
			v = v * 10 + (uint64_t)(**p - '0');
	return v <= max ? (uint32_t)v : 0;
}

/* "h", "10m": seconds, or 0. At most a day. */
static uint32_t window(const char *p)
{
	uint32_t n = 1;

	if (*p >= '0' && *p <= '9')
		n = number(&p, DAY_SEC);
	for (size_t i = 0; n && i < ARRAY_LEN(units); i++)
		if (p[0] == units[i].unit && !p[1])
			return n <= DAY_SEC / units[i].sec ? n * units[i].sec : 0;
	return 0;
}

int counter_limit_parse(const char *text, struct counter_limits *l, char *why,
			size_t why_size)
{
	size_t len = strcspn(text, " \t");
	const char *p = text + len + strspn(text + len, " \t");
	uint32_t limit, sec;
	char name[64];
	int c;

	(void)snprintf(name, sizeof(name), "%.*s", (int)MIN(len, sizeof(name) - 1), text);
	c = len < sizeof(name) ? counter_find(name) : -1;
	if (c < 0) {
		(void)snprintf(why, why_size, "there is no counter \"%s\"", name);
		return -EINVAL;
	}
	if (counter_rows[c].kind != CTR_KIND_ERROR) {
		(void)snprintf(why, why_size, "%s only informs: it takes no limit",
			       counter_rows[c].name);
		return -EINVAL;
	}
	if (!strcasecmp(p, "off")) {
		l->limit[c] = l->sec[c] = 0;
		return 0;
	}
	limit = number(&p, UINT32_MAX);
	sec = limit && *p == '/' ? window(p + 1) : 0;
	if (!sec) {
		(void)snprintf(why, why_size,
			       "a limit is off, or how many in which time up to a day: 120/h "
			       "or 2/10m");
		return -EINVAL;
	}
	l->limit[c] = limit;
	l->sec[c] = sec;
	return 0;
}

const char *counter_limit_text(const struct counter_limits *l, enum counter c, char *buf,
			       size_t size)
{
	if (!l->limit[c]) {
		(void)str_copy(buf, size, "off");
		return buf;
	}
	for (size_t i = 0; i < ARRAY_LEN(units); i++) {
		uint32_t n = l->sec[c] / units[i].sec;

		if (!n || l->sec[c] % units[i].sec)
			continue;
		(void)snprintf(buf, size, "%u/", l->limit[c]);
		if (n > 1)
			str_append(buf, size, "%u", n);
		str_append(buf, size, "%c", units[i].unit);
		break;
	}
	return buf;
}

/* ---- accumulation ---- */

/* The sums as they stood at a reading. */
struct slice {
	struct mono at;
	uint64_t total[CTR__MAX];
};

struct sum {
	uint64_t total, raw;
	struct mono first; /* reading that gave a value; never: none yet */
	struct mono reset_at, saturated_at, changed_at;
	uint32_t resets;
	uint8_t bits;
	enum counter_source source;
	enum unavailable why;
	bool saturated;
	struct counter_over over;
};

struct counters {
	struct mono read_at;
	struct sum sum[CTR__MAX];
	int n_slices;
	struct slice slice[COUNTER_SLICES]; /* oldest first; the last is the last reading */
};

struct counters *counters_new(void)
{
	struct counters *c = xcalloc(1, sizeof(*c));

	for (int i = 0; i < CTR__MAX; i++)
		c->sum[i].why = WHY_NOT_READ;
	return c;
}

struct counters *counters_free(struct counters *c)
{
	free(c);
	return NULL;
}

static uint64_t top(uint8_t bits)
{
	return bits >= 64 ? UINT64_MAX : (UINT64_C(1) << bits) - 1;
}

static uint64_t add_capped(uint64_t a, uint64_t b)
{
	return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

static void accumulate(struct sum *s, uint64_t value, uint8_t bits, unsigned scale,
		       struct mono now)
{
	/* A register of another width is another register: nothing can be said of the time
	 * between the two. */
	bool known = mono_is_set(s->first) && s->bits == bits;
	uint64_t amount = 0;

	if (known && value < s->raw) {
		s->resets++;
		s->reset_at = now;
		amount = value;
	} else if (known) {
		amount = value - s->raw;
	}
	if (amount) {
		amount = amount > UINT64_MAX / scale ? UINT64_MAX : amount * scale;
		s->total = add_capped(s->total, amount);
		s->changed_at = now;
	}
	if (!mono_is_set(s->first))
		s->first = now;
	s->raw = value;
	s->bits = bits;
	if (value >= top(bits) && !s->saturated)
		s->saturated_at = now;
	s->saturated = value >= top(bits);
}

/* Which slice to do without: where the gap that it leaves is the least in proportion to
 * its age, so that the last minutes are kept closely and the last day coarsely. The last
 * two stay: the newest is the reading itself. */
static int least_needed(const struct counters *c, struct mono now)
{
	double best = 0;
	int which = 0;

	if (mono_sub(now, c->slice[1].at) >= (int64_t)DAY_SEC * NSEC_PER_SEC)
		return 0;
	for (int i = 1; i < c->n_slices - 2; i++) {
		double gap = (double)mono_sub(c->slice[i + 1].at, c->slice[i - 1].at);
		double part = gap / (double)MAX(mono_sub(now, c->slice[i].at), 1);

		if (!which || part < best) {
			best = part;
			which = i;
		}
	}
	return which;
}

static void slice_add(struct counters *c, struct mono now)
{
	struct slice *s;

	if (c->n_slices == COUNTER_SLICES) {
		int i = least_needed(c, now);

		memmove(&c->slice[i], &c->slice[i + 1],
			(size_t)(c->n_slices - i - 1) * sizeof(c->slice[0]));
		c->n_slices--;
	}
	s = &c->slice[c->n_slices++];
	s->at = now;
	for (int i = 0; i < CTR__MAX; i++)
		s->total[i] = c->sum[i].total;
}

void counters_read(struct counters *c, const struct counter_reading *r, struct mono now)
{
	for (int i = 0; i < CTR__MAX; i++) {
		struct sum *s = &c->sum[i];

		s->why = (enum unavailable)r->why[i];
		if (s->why != WHY_NONE)
			continue;
		s->source = (enum counter_source)r->source[i];
		accumulate(s, r->value[i], r->bits[i], counter_rows[i].scale, now);
	}
	c->read_at = now;
	slice_add(c, now);
}

void counters_view(const struct counters *c, enum counter which, struct counter_view *ret)
{
	const struct sum *s = &c->sum[which];

	*ret = (struct counter_view){
		.total = s->total,
		.raw = s->raw,
		.why = s->why,
		.source = s->source,
		.first = s->first,
		.saturated = s->saturated,
		.resets = s->resets,
		.reset_at = s->reset_at,
		.saturated_at = s->saturated_at,
		.changed_at = s->changed_at,
	};
}

/* Of what was known before the last reading, what lies nearest to @begin. */
static const struct slice *slice_near(const struct counters *c, struct mono begin)
{
	const struct slice *best = NULL;
	int64_t best_off = 0;

	for (int i = 0; i < c->n_slices - 1; i++) {
		int64_t off = mono_sub(c->slice[i].at, begin);

		off = off < 0 ? -off : off;
		if (!best || off < best_off) {
			best = &c->slice[i];
			best_off = off;
		}
	}
	return best;
}

uint64_t counters_since(const struct counters *c, enum counter which, struct mono now,
			int64_t ns, struct mono *ret_from)
{
	const struct sum *s = &c->sum[which];
	int64_t most = (int64_t)DAY_SEC * NSEC_PER_SEC;
	const struct slice *from;

	*ret_from = s->first;
	from = slice_near(c, mono_add(now, -MIN(ns, most)));
	if (!from || !mono_is_set(s->first))
		return 0;
	if (from->at.ns < s->first.ns)
		return s->total;
	*ret_from = from->at;
	return s->total - from->total[which];
}

struct mono counters_read_at(const struct counters *c)
{
	return c->read_at;
}

void counters_judge(struct counters *c, const struct counter_limits *l, struct mono now)
{
	for (int i = 0; i < CTR__MAX; i++) {
		struct counter_over *o = &c->sum[i].over;
		struct mono from;
		bool was = o->over;

		o->amount = 0;
		o->over = false;
		if (!l->limit[i] || counter_rows[i].kind != CTR_KIND_ERROR)
			continue;
		o->amount = counters_since(c, (enum counter)i, now,
					   (int64_t)l->sec[i] * NSEC_PER_SEC, &from);
		o->over = o->amount > l->limit[i];
		if (o->over && !was)
			o->since = now;
	}
}

void counters_over(const struct counters *c, enum counter which, struct counter_over *ret)
{
	*ret = c->sum[which].over;
	if (!ret->over)
		ret->since = MONO_NEVER;
}
