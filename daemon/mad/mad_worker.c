/* SPDX-License-Identifier: BSD-2-Clause */
#include "mad_worker.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "channel.h"
#include "log.h"
#include "ports.h"

/* Messages of main per turn, so that its flood cannot keep the receivers waiting. */
#define MESSAGES_PER_TURN 128

struct mad_worker {
	struct channel *main;	    /* owned, NULL: nobody connected */
	struct mad_ports *ports;    /* owned */
	char only[DEVICE_NAME_MAX]; /* by the command line */
	int wake_fd;
	bool greeted;
	uint32_t generation;
};

/* ---- to main ---- */

static void send_message(void *user, enum wm_type type, void *msg, size_t size)
{
	struct mad_worker *w = user;

	if (!w->main || !w->greeted)
		return;
	wm_header(msg, type, size, w->generation);
	channel_send(w->main, msg, size);
}

static void send_hello(struct mad_worker *w, const char *device)
{
	struct wm_hello m = {.pid = (uint32_t)getpid(), .kind = WORKER_MAD};

	(void)str_copy(m.device, sizeof(m.device), device);
	(void)str_copy(m.release, sizeof(m.release), FABD_VERSION);
	send_message(w, WM_HELLO, &m, sizeof(m));
}

static void send_goodbye(struct mad_worker *w, enum wm_goodbye_why why,
			 const char *text)
{
	struct wm_goodbye m = {.why = (uint8_t)why};

	(void)str_copy(m.text, sizeof(m.text), text);
	send_message(w, WM_GOODBYE, &m, sizeof(m));
}

static void detach(struct mad_worker *w)
{
	if (!w->main)
		return;
	w->main = channel_free(w->main);
	w->greeted = false;
	mad_ports_forget(w->ports);
}

/* ---- from main ---- */

static int on_init(struct mad_worker *w, const struct wm_init *m, struct mono now)
{
	const char *device = w->only[0] ? w->only : m->device;

	if (w->greeted) {
		log_err("main says hello twice");
		return -EPROTO;
	}
	w->greeted = true;
	w->generation = m->h.generation;
	send_hello(w, device);
	if (m->device[0] && !str_eq(m->device, device)) {
		log_warn("main asks for %s, this worker serves %s", m->device, device);
		send_goodbye(w, GOODBYE_WRONG_DEVICE, device);
		return -ENODEV;
	}
	mad_ports_start(w->ports, device, m, now);
	return 0;
}

static void on_ping(struct mad_worker *w, const struct wm_ping *m)
{
	struct wm_pong pong = {.seq = m->seq};

	send_message(w, WM_PONG, &pong, sizeof(pong));
}

union message {
	uint8_t bytes[WM_MAX];
	struct wm_header h;
	struct wm_init init;
	struct wm_ping ping;
	struct wm_smp_gets gets;
	struct wm_mad_send send;
};

static int on_message(struct mad_worker *w, const union message *m, struct mono now)
{
	if (m->h.type == WM_INIT)
		return on_init(w, &m->init, now);
	if (!w->greeted) {
		log_err("main sends %s before WM_INIT", wm_type_name(m->h.type));
		return -EPROTO;
	}
	if (m->h.generation != w->generation)
		return 0; /* meant for one that is no more */
	switch (m->h.type) {
	case WM_PING:
		on_ping(w, &m->ping);
		return 0;
	case WM_POLL:
		mad_ports_scan(w->ports, true, now);
		return 0;
	case WM_SMP_GETS:
		mad_ports_gets(w->ports, &m->gets, now);
		return 0;
	case WM_MAD_SEND:
		mad_ports_send(w->ports, &m->send, now);
		return 0;
	case WM_EXIT:
		send_goodbye(w, GOODBYE_ASKED, "");
		return -ECONNRESET;
	default:
		log_err("main sends %s to a MAD worker", wm_type_name(m->h.type));
		return -EPROTO;
	}
}

static int read_main(struct mad_worker *w, struct mono now)
{
	union message m;
	char why[128];
	int r = 0;

	for (int i = 0; i < MESSAGES_PER_TURN && !r; i++) {
		int n = channel_recv(w->main, m.bytes, why, sizeof(why));

		if (n == 0)
			break;
		if (n < 0 && n != -ECONNRESET)
			log_err("bad message of main: %s", why);
		r = n < 0 ? n : on_message(w, &m, now);
	}
	return r;
}

/* ---- turns ---- */

int mad_worker_turn(struct mad_worker *w, struct mono now)
{
	uint64_t n;
	int r = 0;

	(void)!read(w->wake_fd, &n, sizeof(n));
	if (w->main)
		r = read_main(w, now);
	mad_ports_work(w->ports, now);
	if (!w->main)
		return 0;
	if (r && r != -ECONNRESET && r != -ENODEV)
		send_goodbye(w, GOODBYE_FAILED, "bad message");
	if (!r) {
		r = channel_flush(w->main);
		if (r && r != -ECONNRESET)
			log_errno(LOG_ERR, r, "cannot send to main");
	}
	if (r)
		detach(w);
	return r;
}

struct mono mad_worker_deadline(const struct mad_worker *w)
{
	return mad_ports_deadline(w->ports);
}

void mad_worker_attach(struct mad_worker *w, int fd)
{
	if (w->main) {
		log_notice("another main connected, the one before is dropped");
		send_goodbye(w, GOODBYE_FAILED, "another main connected");
		detach(w);
	}
	w->main = channel_new(fd);
}

int mad_worker_fd(const struct mad_worker *w, bool *ret_wants_write)
{
	if (!w->main)
		return -1;
	*ret_wants_write = channel_wants_write(w->main);
	return channel_fd(w->main);
}

int mad_worker_wake_fd(const struct mad_worker *w)
{
	return w->wake_fd;
}

struct mad_worker *mad_worker_new(const char *root, const char *device)
{
	struct mad_worker *w = xcalloc(1, sizeof(*w));

	w->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (w->wake_fd < 0)
		abort();
	(void)str_copy(w->only, sizeof(w->only), device);
	w->ports = mad_ports_new(root, w->wake_fd, send_message, w);
	return w;
}

struct mad_worker *mad_worker_free(struct mad_worker *w)
{
	if (!w)
		return NULL;
	detach(w);
	w->ports = mad_ports_free(w->ports);
	(void)close(w->wake_fd);
	free(w);
	return NULL;
}
