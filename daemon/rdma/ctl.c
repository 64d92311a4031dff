/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ctl.c - the main thread of a device worker: the pair to main, pings, and the end of
 * the process. It calls nothing that can block, so that it answers whatever the device
 * does.
 */
#include <errno.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>

#include "log.h"
#include "rdma.h"
#include "removal.h"

#define EXIT_WAIT NSEC_PER_SEC /* for an orderly end; then it ends anyway */

enum source { FROM_MAIN, FROM_THREADS, FROM_TIMER, FROM_KERNEL, FROM__MAX };

struct ctl {
	int pair, epoll, timer;
	bool started; /* INIT came */
	bool paused;  /* the other threads do not keep up: main waits, too */
	struct worker w;
	struct removal removal;
	struct mono exit_at; /* EXIT came: when we end at the latest */
	uint64_t drops_told;
	uint32_t late_worst[10]; /* of hot, per second, a ring */
	unsigned second;
	size_t stuck_len; /* a message that main has no room for */
	union {
		struct wm_header h;
		uint8_t bytes[WM_MAX];
	} stuck;
};

static void watch(struct ctl *c, int fd, enum source s, uint32_t events, int op)
{
	struct epoll_event ev = {.events = events, .data.u32 = s};

	if (epoll_ctl(c->epoll, op, fd, &ev) < 0) {
		log_errno(LOG_ERR, -errno, "epoll_ctl");
		_exit(1);
	}
}

static void watch_pair(struct ctl *c)
{
	watch(c, c->pair, FROM_MAIN,
	      (c->paused ? 0 : EPOLLIN) | (c->stuck_len ? EPOLLOUT : 0), EPOLL_CTL_MOD);
}

/* 0 sent or gone wrong for good, -EAGAIN no room. */
static int send_now(struct ctl *c, const void *msg, size_t len)
{
	if (send(c->pair, msg, len, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0)
		return 0;
	if (errno == EAGAIN || errno == EWOULDBLOCK)
		return -EAGAIN;
	if (errno == EPIPE || errno == ECONNRESET)
		_exit(0); /* main is gone */
	log_errno(LOG_WARNING, -errno, "sending %s to main",
		  wm_type_name(((const struct wm_header *)msg)->type));
	return 0;
}

static _Noreturn void leave(struct ctl *c, enum wm_goodbye_why why, const char *text)
{
	struct wm_goodbye m;

	memset(&m, 0, sizeof(m));
	wm_header(&m, WM_GOODBYE, sizeof(m), c->w.generation);
	m.why = (uint8_t)why;
	(void)str_copy(m.text, sizeof(m.text), text);
	(void)send_now(c, &m, sizeof(m));
	if (why == GOODBYE_FAILED)
		log_err("%s", text);
	/* Not exit(): other threads may be inside the libraries, and the kernel takes
	 * better care of what is open than they would. */
	_exit(why == GOODBYE_FAILED || why == GOODBYE_WRONG_DEVICE);
}

static bool send_or_keep(struct ctl *c, const void *msg, size_t len)
{
	if (send_now(c, msg, len) != -EAGAIN)
		return true;
	memcpy(c->stuck.bytes, msg, len);
	c->stuck_len = len;
	watch_pair(c);
	return false;
}

/* Up to @n messages of a ring. false: main has no room; the rest waits in the ring,
 * which is bounded, and what makes messages copes: hot sends newer statistics instead,
 * facts waits, cm gives up the process. */
static bool forward(struct ctl *c, struct ring *r, size_t n)
{
	union {
		struct wm_header h;
		union facts_message facts;
		union cm_message cm;
		struct wm_ep_event event;
		struct wm_ep_rounds rounds;
		struct wm_goodbye goodbye;
	} m;

	while (n-- && ring_pop(r, &m)) {
		if (m.h.type == WM_GOODBYE)
			leave(c, (enum wm_goodbye_why)m.goodbye.why, m.goodbye.text);
		if (!send_or_keep(c, &m, m.h.length))
			return false;
	}
	return true;
}

static void forward_all(struct ctl *c)
{
	size_t of_cm;

	if (c->stuck_len || !c->started)
		return;
	/* What cm says of an endpoint's end comes after all that hot said of it: hot
	 * said it before cm's message was counted here, so it is in hot's ring by now.
	 */
	of_cm = ring_used(&c->w.cm_out);
	if (forward(c, &c->w.facts_out, c->w.facts_out.count) &&
	    forward(c, &c->w.hot_out, c->w.hot_out.count) &&
	    forward(c, &c->w.cm_out, of_cm))
		(void)forward(c, &c->w.rounds_out, c->w.rounds_out.count);
}

static void start_thread(void *(*run)(void *), struct worker *w)
{
	pthread_t t;
	int r = pthread_create(&t, NULL, run, w);

	if (r) {
		log_errno(LOG_ERR, -r, "pthread_create");
		_exit(1);
	}
	(void)pthread_detach(t);
}

static void on_init(struct ctl *c, const struct wm_init *init)
{
	struct wm_hello hello;
	int fd;

	worker_init(&c->w, init);
	memset(&hello, 0, sizeof(hello));
	wm_header(&hello, WM_HELLO, sizeof(hello), c->w.generation);
	hello.pid = (uint32_t)getpid();
	hello.kind = WORKER_RDMA;
	(void)str_copy(hello.device, sizeof(hello.device), c->w.device);
	(void)str_copy(hello.release, sizeof(hello.release), FABD_VERSION);
	(void)send_or_keep(c, &hello, sizeof(hello));
	if (!c->w.device[0])
		leave(c, GOODBYE_FAILED, "no device was named");
	/* Before the device is opened: from then on its removal waits for us. */
	fd = removal_open(&c->removal, c->w.device);
	if (fd >= 0)
		watch(c, fd, FROM_KERNEL, EPOLLIN, EPOLL_CTL_ADD);
	else
		log_errno(LOG_WARNING, fd,
			  "no kernel events: removal is heard of late");
	watch(c, c->w.wake_ctl, FROM_THREADS, EPOLLIN, EPOLL_CTL_ADD);
	c->started = true;
	start_thread(facts_thread, &c->w);
	start_thread(cm_thread, &c->w);
	start_thread(hot_thread, &c->w);
}

/* The longest call under way; a thread may leave it while we look. */
static void show_busy(struct busy *b, struct mono now, struct wm_pong *p)
{
	const char *call = atomic_load(&b->call);
	int64_t ms =
		mono_sub(now, (struct mono){atomic_load(&b->since)}) / NSEC_PER_MSEC;

	if (!call || atomic_load(&b->call) != call || ms < (int64_t)p->cm_busy_ms)
		return;
	p->cm_busy_ms = (uint32_t)MIN(MAX(ms, 0), UINT32_MAX);
	p->cm_destroying = atomic_load(&b->destroying);
	(void)str_copy(p->cm_call, sizeof(p->cm_call), call);
}

static void on_ping(struct ctl *c, const struct wm_ping *ping)
{
	struct mono now = clock_now();
	struct wm_pong p;
	int64_t age;

	memset(&p, 0, sizeof(p));
	wm_header(&p, WM_PONG, sizeof(p), c->w.generation);
	p.seq = ping->seq;
	age = mono_sub(now, (struct mono){atomic_load(&c->w.hot_turn)}) / NSEC_PER_MSEC;
	p.hot_age_ms = (uint32_t)MIN(MAX(age, 0), UINT32_MAX);
	show_busy(&c->w.facts_busy, now, &p);
	show_busy(&c->w.cm_busy, now, &p);
	p.endpoints = atomic_load(&c->w.endpoints);
	p.listeners = atomic_load(&c->w.listeners);
	p.late_worst_us = atomic_load(&c->w.hot_late_us);
	for (size_t i = 0; i < ARRAY_LEN(c->late_worst); i++)
		p.late_worst_us = MAX(p.late_worst_us, c->late_worst[i]);
	/* Main will ask again; nothing waits for this one. */
	if (!c->stuck_len)
		(void)send_or_keep(c, &p, sizeof(p));
}

static void to_cm(struct ctl *c, const struct cm_command *cmd)
{
	if (!ring_push(&c->w.ctl_to_cm, cmd))
		leave(c, GOODBYE_FAILED, "the cm thread does not keep up");
	wake(c->w.wake_cm);
}

static void to_hot(struct ctl *c, const struct wm_ep *m)
{
	struct hot_command cmd = {.type = m->h.type, .conn_id = m->conn_id, .epoch = m->epoch};

	if (!ring_push(&c->w.ctl_to_hot, &cmd))
		leave(c, GOODBYE_FAILED, "the hot thread does not keep up");
	wake(c->w.wake_hot);
}

/* Seldom: the order is not part of every command. */
static void ping_to_hot(struct ctl *c, const struct wm_ep_ping *m)
{
	struct hot_command cmd = {.type = WM_EP_PING,
				  .conn_id = m->ping.conn_id,
				  .epoch = m->ping.epoch,
				  .ping = xcalloc(1, sizeof(*cmd.ping))};

	*cmd.ping = m->ping;
	if (!ring_push(&c->w.ctl_to_hot, &cmd))
		leave(c, GOODBYE_FAILED, "the hot thread does not keep up");
	wake(c->w.wake_hot);
}

static void dispatch(struct ctl *c, const void *msg)
{
	const struct wm_header *h = msg;
	struct cm_command cmd = {.type = h->type};

	switch (h->type) {
	case WM_PING:
		on_ping(c, msg);
		break;
	case WM_POLL:
		atomic_store(&c->w.reread, true);
		wake(c->w.wake_facts);
		break;
	case WM_LISTEN:
	case WM_UNLISTEN:
		cmd.addr = ((const struct wm_listen *)msg)->addr;
		cmd.start.transport = ((const struct wm_listen *)msg)->transport;
		to_cm(c, &cmd);
		break;
	case WM_EP_START:
		cmd.start = ((const struct wm_ep_start *)msg)->start;
		to_cm(c, &cmd);
		break;
	case WM_EP_RESET:
		cmd.start.conn_id = ((const struct wm_ep *)msg)->conn_id;
		cmd.start.epoch = ((const struct wm_ep *)msg)->epoch;
		to_cm(c, &cmd);
		break;
	case WM_EP_PROBE:
	case WM_EP_HEARTBEAT:
		to_hot(c, msg);
		break;
	case WM_EP_PING:
		ping_to_hot(c, msg);
		break;
	case WM_EXIT:
		c->exit_at = mono_add(clock_now(), EXIT_WAIT);
		to_cm(c, &cmd);
		break;
	default: /* WM_SMP_GETS is for another kind of worker */
		log_warn("%s is not for this worker", wm_type_name(h->type));
		break;
	}
}

static void on_message(struct ctl *c, const void *msg, size_t len)
{
	const struct wm_header *h = msg;
	char why[128];

	if (wm_check(msg, len, true, why, sizeof(why)) < 0)
		leave(c, GOODBYE_FAILED, why);
	if (!c->started) {
		if (h->type == WM_INIT)
			on_init(c, msg);
		else if (h->type == WM_EXIT)
			leave(c, GOODBYE_ASKED, "asked to go");
		return;
	}
	if (h->generation == c->w.generation && h->type != WM_INIT)
		dispatch(c, msg);
}

/* For a message to either thread. */
static bool has_room(const struct ctl *c)
{
	return ring_used(&c->w.ctl_to_cm) < c->w.ctl_to_cm.count &&
	       ring_used(&c->w.ctl_to_hot) < c->w.ctl_to_hot.count;
}

static void on_main(struct ctl *c, uint32_t events)
{
	static union {
		struct wm_header h;
		uint8_t bytes[WM_MAX];
	} buf;

	if ((events & EPOLLOUT) && c->stuck_len) {
		if (send_now(c, c->stuck.bytes, c->stuck_len) == -EAGAIN)
			return;
		c->stuck_len = 0;
		watch_pair(c);
		forward_all(c);
	}
	if (!(events & (EPOLLIN | EPOLLHUP | EPOLLERR)))
		return;
	if (c->paused) {
		if (events & EPOLLHUP)
			_exit(0);
		return;
	}
	for (int i = 0; i < 64; i++) {
		ssize_t n;

		if (c->started && !has_room(c)) {
			c->paused = true;
			watch_pair(c);
			return;
		}
		n = recv(c->pair, buf.bytes, sizeof(buf), MSG_DONTWAIT | MSG_TRUNC);

		if (n == 0)
			_exit(0); /* end of file: main is gone, go at once */
		if (n < 0) {
			if (errno != EAGAIN && errno != EINTR)
				_exit(0);
			return;
		}
		if ((size_t)n > sizeof(buf))
			leave(c, GOODBYE_FAILED, "a message is longer than any can be");
		on_message(c, buf.bytes, (size_t)n);
	}
}

static void resume(struct ctl *c)
{
	if (!c->paused || !has_room(c))
		return;
	c->paused = false;
	watch_pair(c);
}

static void tell_drops(struct ctl *c)
{
	struct wm_drops m;
	uint64_t sum = 0;

	memset(&m, 0, sizeof(m));
	wm_header(&m, WM_DROPS, sizeof(m), c->w.generation);
	for (int i = 0; i < DROP__MAX; i++)
		sum += m.count[i] = atomic_load(&c->w.drops[i]);
	if (sum == c->drops_told || c->stuck_len)
		return;
	c->drops_told = sum;
	(void)send_or_keep(c, &m, sizeof(m));
}

static void on_second(struct ctl *c)
{
	uint64_t n;

	(void)!read(c->timer, &n, sizeof(n));
	if (!c->started)
		return;
	c->second = (c->second + 1) % (unsigned)ARRAY_LEN(c->late_worst);
	c->late_worst[c->second] = atomic_exchange(&c->w.hot_late_us, 0);
	tell_drops(c);
}

static int next_wait(const struct ctl *c)
{
	int64_t ns;

	if (c->paused)
		return 1;
	if (!mono_is_set(c->exit_at))
		return -1;
	ns = mono_sub(c->exit_at, clock_now());
	return ns <= 0 ? 0 : (int)(ns / NSEC_PER_MSEC) + 1;
}

int ctl_run(int fd)
{
	static struct ctl ctl; /* large, and there is one */
	struct ctl *c = &ctl;
	struct itimerspec every = {{1, 0}, {1, 0}};
	struct epoll_event ev[FROM__MAX];

	c->pair = fd;
	c->epoll = epoll_create1(EPOLL_CLOEXEC);
	c->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (c->epoll < 0 || c->timer < 0 ||
	    timerfd_settime(c->timer, 0, &every, NULL) < 0) {
		log_errno(LOG_ERR, -errno, "epoll or timerfd");
		return 1;
	}
	watch(c, c->pair, FROM_MAIN, EPOLLIN, EPOLL_CTL_ADD);
	watch(c, c->timer, FROM_TIMER, EPOLLIN, EPOLL_CTL_ADD);
	for (;;) {
		int n = epoll_wait(c->epoll, ev, FROM__MAX, next_wait(c));

		for (int i = 0; i < n; i++) {
			switch ((enum source)ev[i].data.u32) {
			case FROM_MAIN:
				on_main(c, ev[i].events);
				break;
			case FROM_THREADS:
				wake_clear(c->w.wake_ctl);
				break;
			case FROM_TIMER:
				on_second(c);
				break;
			case FROM_KERNEL:
				if (removal_check(&c->removal))
					leave(c, GOODBYE_DEVICE_GONE,
					      "the device is being removed");
				break;
			case FROM__MAX:
				break;
			}
		}
		forward_all(c);
		resume(c);
		if (mono_due(c->exit_at, clock_now()))
			leave(c, GOODBYE_ASKED,
			      "asked to go; what was left is closed by force");
	}
}
