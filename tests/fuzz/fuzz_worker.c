/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A worker message, raw, and as the body of a message of each type with a right header.
 * One that passes may be read as its struct says: texts end, numbers are in range.
 */
#include "fuzz.h"

#include <stdlib.h>

#include "mad.h"
#include "worker.h"

static const struct {
	enum wm_type type;
	size_t size;
	bool to_worker;
	size_t each; /* of what comes behind, 0 = nothing */
	uint16_t max;
	size_t count; /* offset of their number */
} types[] = {
	{WM_INIT, sizeof(struct wm_init), true, 0, 0, 0},
	{WM_PING, sizeof(struct wm_ping), true, 0, 0, 0},
	{WM_POLL, sizeof(struct wm_poll), true, 0, 0, 0},
	{WM_LISTEN, sizeof(struct wm_listen), true, 0, 0, 0},
	{WM_UNLISTEN, sizeof(struct wm_listen), true, 0, 0, 0},
	{WM_EP_START, sizeof(struct wm_ep_start), true, 0, 0, 0},
	{WM_EP_PROBE, sizeof(struct wm_ep), true, 0, 0, 0},
	{WM_EP_HEARTBEAT, sizeof(struct wm_ep), true, 0, 0, 0},
	{WM_EP_RESET, sizeof(struct wm_ep), true, 0, 0, 0},
	{WM_EP_PING, sizeof(struct wm_ep_ping), true, 0, 0, 0},
	{WM_SMP_GETS, offsetof(struct wm_smp_gets, get), true, sizeof(struct wm_smp_get),
	 WM_SMPS_EACH, offsetof(struct wm_smp_gets, n)},
	{WM_MAD_SEND, sizeof(struct wm_mad_send), true, 0, 0, 0},
	{WM_EXIT, sizeof(struct wm_exit), true, 0, 0, 0},
	{WM_HELLO, sizeof(struct wm_hello), false, 0, 0, 0},
	{WM_PONG, sizeof(struct wm_pong), false, 0, 0, 0},
	{WM_DEVICE, sizeof(struct wm_device), false, 0, 0, 0},
	{WM_PORT, sizeof(struct wm_port), false, 0, 0, 0},
	{WM_GIDS, sizeof(struct wm_gids), false, 0, 0, 0},
	{WM_PKEYS, sizeof(struct wm_pkeys), false, 0, 0, 0},
	{WM_PORT_GONE, sizeof(struct wm_port_gone), false, 0, 0, 0},
	{WM_LISTENING, sizeof(struct wm_listening), false, 0, 0, 0},
	{WM_EP_EVENT, sizeof(struct wm_ep_event), false, 0, 0, 0},
	{WM_SMP_RESULTS, offsetof(struct wm_smp_results, result), false,
	 sizeof(struct wm_smp_result), WM_SMPS_EACH, offsetof(struct wm_smp_results, n)},
	{WM_MAD_MORE, offsetof(struct wm_mad_more, data), false, 1, WM_MORE_EACH,
	 offsetof(struct wm_mad_more, length)},
	{WM_MAD_ANSWER, sizeof(struct wm_mad_answer), false, 0, 0, 0},
	{WM_NOTICE, sizeof(struct wm_notice), false, 0, 0, 0},
	{WM_COUNTERS, sizeof(struct wm_counters), false, 0, 0, 0},
	{WM_DROPS, sizeof(struct wm_drops), false, 0, 0, 0},
	{WM_GOODBYE, sizeof(struct wm_goodbye), false, 0, 0, 0},
	{WM_EP_ROUNDS, offsetof(struct wm_ep_rounds, data), false, 1, WM_ROUNDS_MAX,
	 offsetof(struct wm_ep_rounds, length)},
};

static void must(bool holds)
{
	if (!holds)
		abort();
}

static bool ends(const char *s, size_t size)
{
	return memchr(s, '\0', size) != NULL;
}

static void read_device(const struct wm_device *m)
{
	char buf[128];

	must(ends(m->name, sizeof(m->name)) && m->name[0]);
	for (int i = 0; i < device_table.n; i++)
		must(field_text(&device_table, &m->facts, i, buf, sizeof(buf)) == buf);
}

/* What main does with it relies on these. */
static void read_message(const uint8_t *buf)
{
	union {
		struct wm_header h;
		struct wm_device device;
		struct wm_port port;
		struct wm_gids gids;
		struct wm_pkeys pkeys;
		struct wm_ep_event event;
		struct wm_goodbye goodbye;
		struct wm_smp_gets gets;
		struct wm_smp_results results;
		struct wm_mad_send send;
		struct wm_mad_more more;
		struct wm_mad_answer answer;
		struct wm_counters counters;
		struct wm_ep_rounds rounds;
		uint8_t bytes[WM_MAX];
	} m;
	struct wm_header h;
	struct hist hist;

	memcpy(&h, buf, sizeof(h));
	memcpy(&m, buf, h.length);
	switch (h.type) {
	case WM_DEVICE:
		read_device(&m.device);
		break;
	case WM_PORT:
		must(ends(m.port.device, DEVICE_NAME_MAX) && m.port.port >= 1 &&
		     ends(m.port.netdev, EP_IF_MAX) && m.port.source < SOURCE__MAX &&
		     m.port.missing_why < WHY__MAX && m.port.lmc <= 7);
		break;
	case WM_GIDS:
		must(m.gids.n <= WM_GIDS_EACH && m.gids.first < PORT_GIDS_MAX);
		break;
	case WM_PKEYS:
		must(m.pkeys.n <= WM_PKEYS_EACH && m.pkeys.first < PORT_PKEYS_MAX);
		break;
	case WM_EP_EVENT:
		must(m.event.event.type < EP__MAX && m.event.event.error < EPERR__MAX &&
		     ends(m.event.event.text, EP_TEXT_MAX));
		break;
	case WM_EP_ROUNDS:
		must(m.rounds.length <= WM_ROUNDS_MAX &&
		     hist_import(&hist, m.rounds.data, m.rounds.length) ==
			     m.rounds.length);
		hist_done(&hist);
		break;
	case WM_SMP_GETS:
		must(ends(m.gets.device, DEVICE_NAME_MAX) && m.gets.n >= 1 &&
		     m.gets.n <= WM_SMPS_EACH);
		for (int i = 0; i < m.gets.n; i++)
			must(m.gets.get[i].hops < IB_PATH_LEN && m.gets.get[i].timeout_ms &&
			     mad_attr_allowed(m.gets.get[i].attr));
		break;
	case WM_SMP_RESULTS:
		must(m.results.n >= 1 && m.results.n <= WM_SMPS_EACH);
		for (int i = 0; i < m.results.n; i++)
			must(m.results.result[i].status < WM_MAD__MAX);
		break;
	case WM_MAD_SEND:
		must(ends(m.send.device, DEVICE_NAME_MAX) && m.send.length <= 200 &&
		     m.send.timeout_ms >= -1 &&
		     mad_request_allowed(wm_kind_class(m.send.kind), m.send.method,
					 m.send.attr));
		break;
	case WM_MAD_MORE:
		must(m.more.length >= 1 && m.more.length <= WM_MORE_EACH &&
		     (uint64_t)m.more.offset + m.more.length <= m.more.total &&
		     m.more.total <= WM_MAD_TOTAL_MAX);
		break;
	case WM_MAD_ANSWER:
		must(m.answer.length <= 200 && m.answer.total <= WM_MAD_TOTAL_MAX);
		break;
	case WM_COUNTERS:
		for (int i = 0; i < CTR__MAX; i++)
			must(m.counters.reading.why[i] < WHY__MAX);
		break;
	case WM_GOODBYE:
		must(m.goodbye.why < GOODBYE__MAX && ends(m.goodbye.text, EP_TEXT_MAX));
		break;
	default:
		break;
	}
}

static void try_message(const uint8_t *buf, size_t size, bool to_worker)
{
	char why[128] = "";

	if (!wm_check(buf, size, to_worker, why, sizeof(why)))
		read_message(buf);
	else
		must(why[0] && ends(why, sizeof(why)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint16_t entries;
	uint8_t *m;
	size_t n, total;

	try_message(data, size, true);
	try_message(data, size, false);
	if (!size)
		return 0;
	n = data[0] % ARRAY_LEN(types);
	entries = 0;
	if (types[n].each)
		entries = (uint16_t)(1 + ((size > 1 ? data[1] : 0) * 16u + 3) % types[n].max);
	total = types[n].size + entries * types[n].each;
	m = calloc(1, total);
	if (!m)
		abort();
	if (size - 1 > sizeof(struct wm_header))
		memcpy(m, data + 1, MIN(size - 1, total));
	wm_header(m, types[n].type, total, 1);
	if (entries)
		memcpy(m + types[n].count, &entries, sizeof(entries));
	try_message(m, total, types[n].to_worker);
	must(wm_check(m, total, !types[n].to_worker, (char[128]){0}, 128) != 0);
	free(m);
	return 0;
}
