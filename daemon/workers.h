/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * workers.h - the worker processes, as main sees them (workers.c, worker_proc.c). A part of
 * manager.h.
 */
#pragma once

#include <jansson.h>
#include <sys/types.h>

#include "loop.h"
#include "render.h"
#include "worker.h"

struct manager;
struct device;

struct worker_message { /* queued, socket was full */
	struct worker_message *next;
	size_t len;
	uint8_t data[];
};

/* All ud connections of a device may be torn down and started in a moment. */
#define WORKER_QUEUE_MAX 32768

struct worker_listener {
	struct addr addr;
	enum transport transport;
};

struct worker {
	struct manager *m;
	enum worker_kind kind;
	char device[DEVICE_NAME_MAX]; /* "" = mad worker of all umad devices */
	uint32_t device_index;
	enum worker_state state;
	struct mono since;
	uint32_t generation;
	unsigned starts;
	char why[160];
	bool wanted;   /* false: device gone; is forgotten when dead */
	bool external; /* a unit of its own, reached by its socket */

	/* process */
	pid_t pid; /* 0 = none to wait for */
	pid_t cost_pid;	  /* whose CPU was read last */
	int64_t cost_cpu; /* ns, then */
	int fd;	   /* -1 = none */
	struct loop_source *io;
	struct worker_message *queue, **queue_end;
	int queued;
	bool saw_hello, killed;
	struct mono started_at, killed_at, kill_at, start_at;
	struct mono lost_at; /* nobody has spoken for the device since; unset: one does */
	int64_t backoff;

	/* life signs */
	uint64_t ping_seq, pong_seq;
	unsigned pings_open; /* sent in turns of their own, not answered */
	unsigned hot_late;   /* answers in a row that said so of the hot thread */
	struct mono pinged_at;
	struct mono last_message;
	struct wm_pong pong;
	uint64_t drops[DROP__MAX];

	struct worker_listener *listening; /* owned: where it was told to accept */
	int n_listening;

	/* tables that come in pieces */
	struct port_gid gids[PORT_GIDS_MAX];
	uint16_t pkeys[PORT_PKEYS_MAX];
	int n_gids, n_pkeys;

	struct worker *next;
};

/* worker_proc.c */
int worker_spawn(struct worker *w, const char *path); /* 0 or -errno */
int worker_connect(struct worker *w, const char *socket_path);
void worker_close(struct worker *w); /* our end; a child sees end of file */
/* Send or queue. -ENOTCONN; -ENOBUFS: the queue is full, the worker has failed. */
int worker_send(struct worker *w, const void *msg, size_t len);

/* workers.c */
struct worker *worker_want(struct manager *m, enum worker_kind kind, const char *device,
			   uint32_t index);
void worker_unwant(struct worker *w); /* the device is gone: 500 ms, then killed */
void worker_fail(struct worker *w, const char *fmt, ...) PRINTF_LIKE(2, 3);
void worker_received(struct worker *w, const uint8_t *buf, size_t len);
void worker_lost(struct worker *w); /* end of file on our end */
void workers_tick(struct manager *m, struct mono now);
void workers_reap(struct manager *m);
void workers_renamed(struct device *d);
void workers_tell_again(struct manager *m);
/* All of that kind are replaced: they are to be told something that init alone tells. */
void workers_begin_anew(struct manager *m, enum worker_kind kind, const char *why);
/* Accept on this address from now on, as long as the device owns it. */
void worker_listen(struct worker *w, const struct addr *a, enum transport t);
void workers_unlisten(struct manager *m); /* where that is no longer so */
struct worker *worker_find(struct manager *m, enum worker_kind kind, const char *device);
/* Stop all; true when none is left to wait for. */
bool workers_stopped(struct manager *m);
void workers_stop(struct manager *m);
void workers_free(struct manager *m);
/* @d: those of that device alone; NULL: all. */
json_t *workers_render(struct manager *m, const struct device *d,
		       const struct render_time *t);
