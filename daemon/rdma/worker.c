/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "log.h"
#include "rdma.h"

#define ENDPOINTS_DEFAULT 256
#define ENDPOINTS_MAX	  16384
#define ROUNDS_OUT	  32 /* large ones, which may wait for the next time */

static size_t power_of_two(size_t least)
{
	size_t n = 64;

	while (n < least)
		n *= 2;
	return n;
}

static int event_fd(void)
{
	int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);

	if (fd < 0) {
		log_errno(LOG_ERR, -errno, "eventfd");
		_exit(1);
	}
	return fd;
}

void worker_init(struct worker *w, const struct wm_init *init)
{
	uint32_t n = init->max_endpoints ? init->max_endpoints : ENDPOINTS_DEFAULT;

	memset(w, 0, sizeof(*w));
	n = MIN(n, (uint32_t)ENDPOINTS_MAX);
	(void)str_copy(w->device, sizeof(w->device), init->device);
	w->device_index = init->device_index;
	w->generation = init->h.generation;
	w->max_rc = n;
	w->poll_ms = init->poll_ms;
	w->counters_ms = init->counters_ms;
	atomic_store(&w->device_state, DEVICE_OPENING);
	atomic_store(&w->hot_turn, clock_now().ns);
	w->wake_ctl = event_fd();
	w->wake_facts = event_fd();
	w->wake_cm = event_fd();
	w->wake_hot = event_fd();
	/* A start and a reset of each rc endpoint; of ud there may be more, and who
	 * writes waits. */
	ring_init(&w->ctl_to_cm, sizeof(struct cm_command), power_of_two(2 * n));
	ring_init(&w->ctl_to_hot, sizeof(struct hot_command), power_of_two(2 * n));
	ring_init(&w->cm_to_hot, sizeof(struct hot_order), power_of_two(3 * n + 1));
	/* hot never waits: a failure and a detach of each rc endpoint always have room,
	 * the rest is for what ud orders ask for (hot.c). */
	ring_init(&w->hot_to_cm, sizeof(struct hot_note),
		  power_of_two(2 * n + RING_EXTRA));
	ring_init(&w->facts_out, sizeof(union facts_message), 32);
	ring_init(&w->cm_out, sizeof(union cm_message), power_of_two(4 * w->max_rc));
	ring_init(&w->hot_out, sizeof(struct wm_ep_event), power_of_two(w->max_rc));
	ring_init(&w->rounds_out, sizeof(struct wm_ep_rounds), ROUNDS_OUT);
}

void worker_goodbye(struct worker *w, struct ring *out, enum wm_goodbye_why why,
		    const char *fmt, ...)
{
	union facts_message m; /* as large as any element of a ring to ctl */
	va_list ap;

	static_assert(sizeof(m) >= sizeof(union cm_message), "serves every ring");
	memset(&m, 0, sizeof(m));
	wm_header(&m, WM_GOODBYE, sizeof(m.goodbye), w->generation);
	m.goodbye.why = (uint8_t)why;
	va_start(ap, fmt);
	(void)vsnprintf(m.goodbye.text, sizeof(m.goodbye.text), fmt, ap);
	va_end(ap);
	if (!ring_push(out, &m))
		_exit(1);
	wake(w->wake_ctl);
}
