/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Counters of a port as the kernel shows them: counters/ (what the port's PMA counts),
 * hw_counters/ (what the driver counts), and pause frames and discards of the network
 * device. Each is there or not on its own.
 */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "facts.h"

static enum unavailable why_of(int r)
{
	return r == -EACCES ? WHY_NO_PERMISSION
	       : r == -ENOENT || r == -EOPNOTSUPP || r == -EINVAL || r == -ENODEV
		       ? WHY_NOT_SUPPORTED
		       : WHY_UNREADABLE;
}

static int read_value(const char *path, uint64_t *ret)
{
	char buf[32], *end;
	int r = sysfs_read(path, buf, sizeof(buf));

	if (r < 0)
		return r;
	errno = 0;
	*ret = strtoull(buf, &end, 10);
	return errno || end == buf || *end || buf[0] == '-' ? -EBADMSG : 0;
}

static void take(struct counter_reading *r, int c, uint64_t value, uint8_t bits,
		 enum counter_source source)
{
	r->value[c] = value;
	r->bits[c] = bits;
	r->why[c] = WHY_NONE;
	r->source[c] = (uint8_t)source;
}

/* The kernel asks the PMA for the wide registers where it has them; it shows then files
 * that the narrow ones do not have. Errors are always the narrow ones. */
static uint8_t width(int c, uint64_t value, bool wide)
{
	const struct counter_row *row = &counter_rows[c];
	bool traffic = row->kind == CTR_KIND_TRAFFIC;

	return (wide && traffic) || row->bits >= 64 || value >> row->bits ? 64
									  : row->bits;
}

static void read_folder(const char *port, const char *folder,
			enum counter_source source, struct counter_reading *r)
{
	char path[PATH_MAX], file[PATH_MAX + NAME_MAX + 2];
	struct dirent *e;
	bool wide;
	DIR *d;

	(void)snprintf(path, sizeof(path), "%s/%s", port, folder);
	d = opendir(path);
	if (!d)
		return;
	(void)snprintf(file, sizeof(file), "%s/unicast_rcv_packets", path);
	wide = source == COUNTER_HW_COUNTERS || access(file, F_OK) == 0;
	while ((e = readdir(d))) {
		int c = e->d_name[0] == '.' ? -1 : counter_find(e->d_name), err;
		uint64_t v;

		/* The first folder that has it counts. */
		if (c < 0 || r->why[c] == WHY_NONE)
			continue;
		(void)snprintf(file, sizeof(file), "%s/%s", path, e->d_name);
		err = read_value(file, &v);
		if (err < 0)
			r->why[c] = (uint8_t)why_of(err);
		else
			take(r, c, v,
			     source == COUNTER_HW_COUNTERS ? 64 : width(c, v, wide),
			     source);
	}
	(void)closedir(d);
}

void facts_read_counters(struct facts *f, int num, struct wm_counters *ret)
{
	struct port_state *s = &f->ports[num - 1];
	char name[DEVICE_NAME_MAX], path[PATH_MAX];
	int r;

	memset(ret, 0, sizeof(*ret));
	wm_header(ret, WM_COUNTERS, sizeof(*ret), f->w->generation);
	(void)str_copy(ret->device, sizeof(ret->device), f->w->device);
	ret->port = (uint8_t)num;
	counter_reading_init(&ret->reading, WHY_NOT_SUPPORTED);
	sysfs_device_name(f->w, name);
	(void)snprintf(path, sizeof(path), "/sys/class/infiniband/%s/ports/%d", name,
		       num);
	busy_enter(&f->w->facts_busy, "counters", false);
	read_folder(path, "counters", COUNTER_SYSFS, &ret->reading);
	read_folder(path, "hw_counters", COUNTER_HW_COUNTERS, &ret->reading);
	r = s->port.netdev[0] ? ethtool_read(s->port.netdev, &s->ethtool, &ret->reading)
			      : -ENODEV;
	busy_leave(&f->w->facts_busy);
	for (int c = CTR_RX_PAUSE; r < 0 && c <= CTR_RX_DISCARDS; c++)
		if (ret->reading.why[c])
			ret->reading.why[c] =
				(uint8_t)(r == -ENODEV ? WHY_NO_NETDEV : why_of(r));
}
