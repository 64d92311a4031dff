/* SPDX-License-Identifier: BSD-2-Clause */
#include "removal.h"

#include <dirent.h>
#include <errno.h>
#include <libudev.h>
#include <limits.h>
#include <stdio.h>

#include "facts.h"

#define VERBS_CLASS "/sys/class/infiniband_verbs"

static void find_uverbs(struct removal *r, const char *device)
{
	char path[PATH_MAX], name[DEVICE_NAME_MAX];
	struct dirent *e;
	DIR *d = opendir(VERBS_CLASS);

	if (!d)
		return;
	while ((e = readdir(d))) {
		(void)snprintf(path, sizeof(path), VERBS_CLASS "/%s/ibdev", e->d_name);
		if (e->d_name[0] != '.' && !sysfs_read(path, name, sizeof(name)) &&
		    str_eq(name, device))
			(void)str_copy(r->uverbs, sizeof(r->uverbs), e->d_name);
	}
	(void)closedir(d);
}

int removal_open(struct removal *r, const char *device)
{
	*r = (struct removal){.udev = udev_new()};
	if (!r->udev)
		return -ENOMEM;
	/* "kernel": nobody has to process the event first, and there may be no udevd.
	 */
	r->monitor = udev_monitor_new_from_netlink(r->udev, "kernel");
	if (!r->monitor)
		return -EOPNOTSUPP;
	if (udev_monitor_filter_add_match_subsystem_devtype(
		    r->monitor, "infiniband_verbs", NULL) < 0 ||
	    udev_monitor_enable_receiving(r->monitor) < 0)
		return -EOPNOTSUPP;
	/* After the monitor listens, or a removal in between would go unheard. */
	find_uverbs(r, device);
	return udev_monitor_get_fd(r->monitor);
}

bool removal_check(struct removal *r)
{
	struct udev_device *d;
	bool gone = false;

	while ((d = udev_monitor_receive_device(r->monitor))) {
		const char *action = udev_device_get_action(d);

		if (str_eq(action, "remove") && r->uverbs[0] &&
		    str_eq(udev_device_get_sysname(d), r->uverbs))
			gone = true;
		(void)udev_device_unref(d);
	}
	return gone;
}
