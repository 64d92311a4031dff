/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * smp_port.h - the requests of one open umad port: each answered exactly once.
 *
 * Requests wait in one of two lanes, SMPs (queue pair 0) and GMPs (queue pair 1). Of
 * what is out, only the young count against a lane's window: a simulator freezes when
 * too many answers are not read, kernels and switches queue; but old ones are dead
 * targets, and those must not hold up others. The library's and the kernel's timeouts
 * are used but not trusted: each request has a deadline of its own here.
 */
#pragma once

#include "mono.h"
#include "worker.h"

#define SMP_WINDOW    64 /* young ones out at a time */
#define GMP_WINDOW    32
#define SMP_YOUNG_NS  (25 * NSEC_PER_MSEC)
#define SMP_OUT_MAX   1024 /* in all, of each lane */
#define SMP_QUEUE_MAX 1024 /* waiting, of each lane */
/* Added to timeout * (retries + 1) of a request. */
#define SMP_SLACK_NS (250 * NSEC_PER_MSEC)

/* Which message asked, and so which one answers. */
enum smp_origin { FROM_SMP_GETS, FROM_MAD_SEND };

struct smp_request { /* a directed-route Get */
	uint64_t id; /* the caller's */
	enum smp_origin origin;
	uint8_t hops, path[IB_PATH_LEN];
	uint16_t attr, retries;
	uint32_t mod, timeout_ms;
};

struct smp_done {
	uint64_t id;
	enum smp_origin origin;
	enum wm_mad_status status;
	uint16_t mad_status; /* WM_MAD_BAD_STATUS */
	int error;	     /* errno of BAD_ANSWER and SEND_FAILED, positive */
	uint64_t rtt_ns;
	/* OK: the answer's, of a directed-route Get MAD_DATA_LEN bytes; TIMEOUT of a
	 * MAD_SEND: as sent. During the call; else NULL and 0. */
	const uint8_t *data;
	size_t len;
	uint16_t attr_offset; /* of an SA table, bytes */
};
struct smp_report { /* a Report that came in and was answered */
	uint16_t slid;
	uint8_t data[80]; /* the Notice, with IssuerGID */
};
struct smp_calls {
	void (*done)(void *user, const struct smp_done *done);
	void (*report)(void *user, const struct smp_report *report);
	void *user;
};

struct smp_port_stats {
	uint64_t sent, received;
	uint64_t strays; /* late, unknown or too short to tell which */
	uint64_t reports;
};

struct smp_port;

/* As wire_open(). @calls are made from within the functions below. */
struct smp_port *smp_port_open(const char *device, uint8_t port, bool reports,
			       int wake_fd, const struct smp_calls *calls,
			       int *ret_error);
/* Tell the thread to end, without waiting for it. Only smp_port_close() may follow. */
void smp_port_stop(struct smp_port *p);
/* Ends the thread (up to 200 ms) and closes. Requests still there are answered
 * SEND_FAILED. NULL-safe, returns NULL. */
struct smp_port *smp_port_close(struct smp_port *p);

/* May answer at once: SEND_FAILED with ENOBUFS when the queue is full. */
void smp_port_get(struct smp_port *p, const struct smp_request *r, struct mono now);
/* Any MAD of WM_MAD_SEND; m->dlid is the destination. Timeout 0: answered OK at once,
 * with no data; -1: only an answer or the port's end answers it. */
void smp_port_send(struct smp_port *p, const struct wm_mad_send *m, struct mono now);
/* Take in what arrived, end what is overdue, send what waits. False: the port is gone
 * (everything has been answered); close it. */
bool smp_port_work(struct smp_port *p, struct mono now);
/* When smp_port_work() must be called though nothing came in, or never. May be early.
 */
struct mono smp_port_deadline(const struct smp_port *p);
/* Whoever asked is gone: answer nothing of what was asked so far. */
void smp_port_forget(struct smp_port *p);
void smp_port_stats(const struct smp_port *p, struct smp_port_stats *ret);
