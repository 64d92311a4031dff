/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * wire.h - one open umad port: its agents, a thread that receives, and sends.
 *
 * The thread does nothing but umad_recv(): what arrived together is handed over
 * together, with one write to the caller's eventfd. A thread, because a simulated umad
 * descriptor cannot be polled together with real ones. All else is called from one
 * thread.
 */
#pragma once

#include <stdalign.h>

#include "mad.h"
#include "mono.h"
#include "worker.h"

/* What came in: the library's header, then the MAD. */
struct packet {
	struct packet *next;
	int agent, status; /* status: 0, or the errno that a send ended with */
	size_t len;	   /* of the MAD, at most room */
	size_t room;
	struct mono at;
	alignas(8) uint8_t umad[];
};

struct wire_to {
	uint8_t kind; /* enum wm_mad_kind: class, queue pair, key */
	uint8_t sl;
	uint16_t dlid; /* not of DR_SMP */
	uint16_t pkey_index;
	const struct wm_grh *grh; /* borrowed, NULL = none */
};

struct wire;

/* Open and register. NULL: *ret_error is the errno: EPERM or EACCES without the right,
 * ENODEV or ENOENT without such a port, EPROTONOSUPPORT where no SMP can be sent.
 * @wake_fd: an eventfd to write to when something came in; stays the caller's.
 * @reports: take Reports of the SM, when nobody else on this port does. */
struct wire *wire_open(const char *device, uint8_t port, bool reports, int wake_fd,
		       int *ret_error);
/* Tell the thread to end, without waiting for it. */
void wire_stop(struct wire *u);
/* Ends the thread (up to 200 ms) and closes. NULL-safe, returns NULL. */
struct wire *wire_close(struct wire *u);

/* All that arrived since the last call, in order, to be given back; NULL: nothing.
 * *ret_error: errno of a receiver that cannot go on, else 0. */
struct packet *wire_take(struct wire *u, int *ret_error);
void wire_give(struct wire *u, struct packet *list);

/* The packet's MAD: k->len bytes. */
const uint8_t *packet_mad(const struct packet *k);
uint16_t packet_slid(const struct packet *k);
/* Does the agent of that kind own it? */
bool wire_is_for(const struct wire *u, const struct packet *k, uint8_t kind);
/* A Report with a Notice that nobody asked for. */
bool wire_is_report(const struct wire *u, const struct packet *k);

/* Where the next MAD to be sent is built, MAD_LEN bytes. */
uint8_t *wire_mad(struct wire *u);
/* Send it. 0 or errno, positive; EPROTONOSUPPORT: the class could not be registered. */
int wire_send(struct wire *u, const struct wire_to *to, int timeout_ms, int retries);
/* Answer a Report. */
int wire_answer_report(struct wire *u, const struct packet *report);
