/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * uevent.h - RDMA devices that come and go, from the kernel's uevents (libudev's
 * monitor). Removals are taken from the kernel itself, which says so while a removal
 * still waits for us; additions from udevd, which has set names and rights by then, or
 * from the kernel where no udevd runs.
 */
#pragma once

#include "loop.h"

struct uevent;

/* @subsystem: infiniband, infiniband_verbs, infiniband_mad; @name: mlx5_0, uverbs0,
 * umad0; @added: else removed. Any other action (change, move) counts as added. */
typedef void uevent_fn(void *user, const char *subsystem, const char *name, bool added);

/* NULL with *ret_error = -errno: no monitor can be had (said by the caller, once). */
struct uevent *uevent_new(struct loop *l, uevent_fn *fn, void *user, int *ret_error);
struct uevent *uevent_free(struct uevent *u);
