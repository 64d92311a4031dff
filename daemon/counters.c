/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Counters of own ports, every CountersSec: by MAD from the port's own PMA where there
 * is a MAD worker and an active InfiniBand link, and what the device worker reads from
 * the kernel. Of a counter that both have the PMA's counts: it is the register itself.
 * And what else makes health move: the device's PCIe link, notices of the fabric, time.
 */
#include <stdlib.h>

#include "manager.h"

#define CPI_AGAIN_NS (3600 * NSEC_PER_SEC)

enum ask { ASK_CLASS_INFO, ASK_COUNTERS, ASK_COUNTERS_EXT };

static void on_answer(void *user, const struct mad_done *done);

/* ---- what the readings say together ---- */

static void merge_counter(const struct counter_reading *from, int c,
			  struct counter_reading *to)
{
	to->value[c] = from->value[c];
	to->bits[c] = from->bits[c];
	to->why[c] = from->why[c];
	to->source[c] = from->source[c];
}

/* Why a counter is missing is said by whoever could have known it. */
static void merge(const struct counter_poll *cp, struct counter_reading *ret)
{
	*ret = cp->pma;
	for (int c = 0; c < CTR__MAX; c++) {
		bool other = cp->kernel.why[c] == WHY_NONE ||
			     (c >= CTR_OUT_OF_SEQUENCE &&
			      cp->kernel.why[c] != WHY_NOT_READ) ||
			     cp->pma.why[c] == WHY_NOT_READ;

		if (cp->pma.why[c] != WHY_NONE && other)
			merge_counter(&cp->kernel, c, ret);
	}
}

static void take_reading(struct port_entry *pe)
{
	struct manager *m = pe->device->m;
	struct counter_reading r;

	merge(&pe->counters, &r);
	if (!pe->p.watch.counters)
		pe->p.watch.counters = counters_new();
	counters_read(pe->p.watch.counters, &r, loop_now(m->loop));
	port_settle(m, pe, SOURCE_COUNTERS);
}

void port_counters_init(struct port_entry *pe)
{
	counter_reading_init(&pe->counters.pma, WHY_NOT_READ);
	counter_reading_init(&pe->counters.kernel, WHY_NOT_READ);
}

void port_counters_on_message(struct worker *w, const struct wm_counters *msg)
{
	for (struct device *d = w->m->devices; d; d = d->next) {
		struct port_entry *pe = d->rdma == w ? device_port(d, msg->port) : NULL;

		if (!pe)
			continue;
		pe->counters.kernel = msg->reading;
		/* With a PMA that answers one reading a period is enough: its. */
		if (!pe->counters.pma_works)
			take_reading(pe);
	}
}

/* ---- by MAD ---- */

/* Why the PMA cannot be asked now; WHY_NONE: it can. */
static enum unavailable not_askable(const struct port_entry *pe)
{
	const struct port_facts *f = &pe->p.facts;

	if (!field_why(&port_table, f, PF_LINK_LAYER) &&
	    strcmp(f->link_layer, "infiniband"))
		return WHY_NOT_INFINIBAND;
	if (!pe->device->mad || !pe->mad.has_smi)
		return WHY_NO_UMAD;
	if (!pe->device->mad->saw_hello || pe->device->mad->fd < 0)
		return WHY_NO_WORKER;
	if (field_why(&port_table, f, PF_STATE))
		return field_why(&port_table, f, PF_STATE);
	if (port_is_down(&pe->p))
		return WHY_LINK_DOWN;
	if (field_why(&port_table, f, PF_LID))
		return field_why(&port_table, f, PF_LID);
	return f->lid && f->lid <= IB_LID_UNICAST_MAX ? WHY_NONE : WHY_OUT_OF_RANGE;
}

static void round_over(struct port_entry *pe, enum unavailable why)
{
	struct counter_poll *cp = &pe->counters;

	cp->round = 0;
	cp->pma_works = why == WHY_NONE;
	if (why)
		counter_reading_init(&cp->pma, why);
	else
		cp->pma = cp->coming;
	take_reading(pe);
}

/* The tag tells of which round an answer is. */
static void ask(struct port_entry *pe, enum ask what)
{
	static const uint16_t attrs[] = {
		[ASK_CLASS_INFO] = MAD_ATTR_CLASS_PORT_INFO,
		[ASK_COUNTERS] = MAD_ATTR_PORT_COUNTERS,
		[ASK_COUNTERS_EXT] = MAD_ATTR_PORT_COUNTERS_EXT,
	};
	const struct config *c = pe->device->m->config;
	struct wm_mad_send msg = {
		.port = pe->p.num,
		.kind = WM_KIND_PMA,
		.method = MAD_GET,
		.attr = attrs[what],
		.dlid = (uint16_t)pe->p.facts.lid,
		.retries = (uint8_t)c->mad_retries,
		.timeout_ms = (int32_t)(c->mad_timeout / NSEC_PER_MSEC),
	};

	if (what != ASK_CLASS_INFO) {
		mad_encode_counters_request(pe->p.num, msg.data);
		msg.length = 192;
	}
	(void)str_copy(msg.device, sizeof(msg.device), pe->device->name);
	if (mads_send(pe->device->m->mads, pe->device->mad, &msg,
		      (uint64_t)pe->counters.round << 8 | what, on_answer, pe) < 0)
		round_over(pe, WHY_NO_WORKER);
}

static void begin_round(struct port_entry *pe, struct mono now)
{
	struct counter_poll *cp = &pe->counters;
	enum unavailable why = not_askable(pe);

	cp->next = mono_add(now, pe->device->m->config->counters);
	if (why) {
		/* The same reason again is no reading: what the kernel says goes on. */
		if (cp->pma_works || cp->pma.why[CTR_SYMBOL_ERROR] != why)
			round_over(pe, why);
		return;
	}
	cp->round = ++cp->rounds;
	counter_reading_init(&cp->coming, WHY_NOT_SUPPORTED);
	ask(pe, mono_is_set(cp->cpi_at) && mono_sub(now, cp->cpi_at) < CPI_AGAIN_NS
			? ASK_COUNTERS
			: ASK_CLASS_INFO);
}

/* What an attribute has told came from there. */
static void note_source(const struct counter_reading *before, struct counter_reading *r,
			enum counter_source source)
{
	for (int c = 0; c < CTR__MAX; c++)
		if (r->why[c] == WHY_NONE &&
		    (before->why[c] != WHY_NONE || before->bits[c] != r->bits[c]))
			r->source[c] = (uint8_t)source;
}

static enum unavailable why_failed(enum wm_mad_status s)
{
	return s == WM_MAD_TIMEOUT	   ? WHY_TIMEOUT
	       : s == WM_MAD_BAD_STATUS	   ? WHY_BAD_STATUS
	       : s == WM_MAD_NO_PERMISSION ? WHY_NO_PERMISSION
	       : s == WM_MAD_NO_PORT	   ? WHY_NO_UMAD
	       : s == WM_MAD_SEND_FAILED   ? WHY_NO_WORKER
					   : WHY_BAD_ANSWER;
}

static void on_counters(struct port_entry *pe, enum ask what, const uint8_t *data)
{
	struct counter_poll *cp = &pe->counters;
	struct counter_reading before = cp->coming;
	bool ext = what == ASK_COUNTERS_EXT;
	int r = ext ? mad_decode_port_counters_ext(data, pe->p.num, &cp->cpi,
						   &cp->coming)
		    : mad_decode_port_counters(data, pe->p.num, &cp->cpi, &cp->coming);

	if (r < 0) {
		round_over(pe, WHY_BAD_ANSWER);
		return;
	}
	note_source(&before, &cp->coming, ext ? COUNTER_PMA_EXT : COUNTER_PMA);
	if (!ext && cp->cpi.cap_mask & (IB_PMA_CAP_EXT_WIDTH | IB_PMA_CAP_EXT_NO_IETF))
		ask(pe, ASK_COUNTERS_EXT);
	else
		round_over(pe, WHY_NONE);
}

static void on_answer(void *user, const struct mad_done *done)
{
	struct port_entry *pe = user;
	struct counter_poll *cp = &pe->counters;
	enum ask what = (enum ask)(done->tag & 0xff);

	if (!cp->round || done->tag >> 8 != cp->round)
		return;
	if (done->status != WM_MAD_OK) {
		cp->cpi_at = MONO_NEVER;
		round_over(pe, why_failed(done->status));
	} else if (done->length < MAD_DATA_LEN) {
		round_over(pe, WHY_BAD_ANSWER);
	} else if (what == ASK_CLASS_INFO) {
		mad_decode_class_port_info(done->data, &cp->cpi);
		cp->cpi_at = loop_now(pe->device->m->loop);
		ask(pe, ASK_COUNTERS);
	} else {
		on_counters(pe, what, done->data);
	}
}

void counters_tick(struct manager *m, struct mono now)
{
	for (struct device *d = m->devices; d; d = d->next)
		for (struct port_entry *pe = d->ports; pe; pe = pe->next) {
			struct counter_poll *cp = &pe->counters;

			/* At once when the link is there again, and when it has gone.
			 */
			if (!cp->round && cp->pma_works && not_askable(pe))
				begin_round(pe, now);
			else if (!cp->round &&
				 (!mono_is_set(cp->next) || mono_due(cp->next, now) ||
				  (cp->pma.why[CTR_SYMBOL_ERROR] == WHY_LINK_DOWN &&
				   !not_askable(pe))))
				begin_round(pe, now);
			if (mono_due(port_judge_at(&pe->p, &m->config->health), now))
				port_settle(m, pe, SOURCE_TIME);
		}
}

/* ---- PCIe ---- */

/* "16.0 GT/s PCIe" as MT/s; 0: not known. */
static uint32_t speed_mts(const struct device_facts *f, enum device_field field,
			  const char *text)
{
	double v;

	if (field_why(&device_table, f, (int)field))
		return 0;
	v = strtod(text, NULL);
	return v > 0 && v < 10000 ? (uint32_t)(v * 1000 + 0.5) : 0;
}

void device_pcie(const struct device *d, struct port_pcie *ret)
{
	const struct device_facts *f = &d->facts;

	*ret = (struct port_pcie){0};
	/* A virtual function shows what it was given, not a slot. */
	if (!field_why(&device_table, f, DF_IS_VF) && f->is_vf)
		return;
	if (!field_why(&device_table, f, DF_PCIE_WIDTH))
		ret->width = f->pcie_width;
	if (!field_why(&device_table, f, DF_PCIE_WIDTH_MAX))
		ret->width_max = f->pcie_width_max;
	ret->speed_mts = speed_mts(f, DF_PCIE_SPEED, f->pcie_speed);
	ret->speed_max_mts = speed_mts(f, DF_PCIE_SPEED_MAX, f->pcie_speed_max);
}

/* ---- notices ---- */

/* Reports come from the subnet manager of the port that they came in by. */
static bool from_the_sm(struct worker *w, const struct wm_notice *msg)
{
	for (struct device *d = w->m->devices; d; d = d->next) {
		const struct port_entry *pe =
			d->mad == w && !strcmp(d->name, msg->device)
				? device_port(d, msg->port)
				: NULL;

		if (pe && !field_why(&port_table, &pe->p.facts, PF_SM_LID))
			return pe->p.facts.sm_lid == msg->slid;
	}
	return false;
}

void ports_on_notice(struct worker *w, const struct wm_notice *msg)
{
	struct manager *m = w->m;
	struct notice n;

	mad_decode_notice(msg->data, sizeof(msg->data), &n);
	if (!from_the_sm(w, msg)) {
		log_debug("%s/%u: a notice from LID %u, which is not the SM's",
			  msg->device, msg->port, msg->slid);
		return;
	}
	for (struct device *d = m->devices; d; d = d->next)
		for (struct port_entry *pe = d->ports; pe; pe = pe->next) {
			uint16_t lid = field_why(&port_table, &pe->p.facts, PF_LID)
					       ? 0
					       : (uint16_t)pe->p.facts.lid;
			char name[PORT_NAME_MAX], text[16];

			if (port_watch_notice(&pe->p.watch, &n, lid, pe->p.num,
					      loop_now(m->loop)) < 0)
				continue;
			(void)snprintf(text, sizeof(text), "%u", n.trap);
			monitor_post(m->monitor, loop_now(m->loop), "port",
				     port_name(&pe->p, name), "notice", NULL, text,
				     "a notice of the fabric");
			port_settle(m, pe, SOURCE_NOTICE);
		}
}
