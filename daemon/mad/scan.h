/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * scan.h - which umad devices and ports there are, and what sysfs says of them, as the
 * messages that main gets. Each file is read by itself: one that is missing or odd
 * costs its own field only (the library's umad_get_port() fails as a whole, and knows
 * no port over 9). @root is "" or a directory with a copy of /sys.
 */
#pragma once

#include "worker.h"

#define SCAN_PORTS_MAX 256

struct scan_id {
	char device[DEVICE_NAME_MAX];
	uint8_t port; /* 1..254 */
};

/* The ports that have a umad node, in the order of device and port. Their number, at
 * most SCAN_PORTS_MAX; 0 also without /sys/class/infiniband_mad. */
int scan_ports(const char *root, struct scan_id ret[SCAN_PORTS_MAX]);

/* Fill the message but its header, device_index and source. */
void scan_device(const char *root, const char *device, struct wm_device *ret);
void scan_port(const char *root, const char *device, uint8_t port, struct wm_port *ret);

/* Number of entries, or -errno. GIDs that are 0 are left out. */
int scan_pkeys(const char *root, const char *device, uint8_t port,
	       uint16_t ret[PORT_PKEYS_MAX]);
int scan_gids(const char *root, const char *device, uint8_t port, uint8_t link_layer,
	      struct port_gid ret[PORT_GIDS_MAX]);
