/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mad_worker.h - what fabd-mad does: tells main of umad devices and ports, and carries
 * its Gets to them. One main at a time. Everything runs on the caller's thread but the
 * receivers of smp_port.h.
 */
#pragma once

#include "mono.h"
#include "worker.h"

struct mad_worker;

/* @root: as in scan.h. @device: the only device to serve, or "" for all. */
struct mad_worker *mad_worker_new(const char *root, const char *device);
struct mad_worker *mad_worker_free(struct mad_worker *w); /* NULL-safe, returns NULL */

/* A main connected on @fd (taken). It replaces one that is there. */
void mad_worker_attach(struct mad_worker *w, int fd);
/* -1: no main. */
int mad_worker_fd(const struct mad_worker *w, bool *ret_wants_write);
/* Becomes readable when a receiver has something. */
int mad_worker_wake_fd(const struct mad_worker *w);

/* Do all that can be done now. 0: go on. -ECONNRESET: main closed the connection or
 * said EXIT. Other -errno: main is broken (said in the log). In both cases it is
 * detached. */
int mad_worker_turn(struct mad_worker *w, struct mono now);
/* When to call mad_worker_turn() though no descriptor is ready. */
struct mono mad_worker_deadline(const struct mad_worker *w);
