/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * removal.h - hear of the device's removal while it still waits for us: with only a
 * context open neither verbs nor the connection manager says anything; the sign is the
 * kernel's remove event of our uverbs node. For ctl; does not block.
 */
#pragma once

#include "util.h"

struct udev;
struct udev_monitor;

struct removal {
	struct udev *udev;	      /* owned */
	struct udev_monitor *monitor; /* owned; NULL: not to be had */
	char uverbs[32];	      /* "" = not found */
};

/* Find the uverbs node of @device and listen. The descriptor, or -errno. */
int removal_open(struct removal *r, const char *device);
/* Read what has come: true if our device is going. */
bool removal_check(struct removal *r);
