/* SPDX-License-Identifier: BSD-2-Clause */
#include "uevent.h"

#include <errno.h>
#include <libudev.h>
#include <stdlib.h>
#include <unistd.h>

struct source {
	struct uevent *owner;
	struct udev_monitor *monitor;
	struct loop_source *fd;
	bool adds, removes;
};

struct uevent {
	struct udev *udev;
	struct source kernel, udevd;
	uevent_fn *fn;
	void *user;
};

static void deliver(struct source *s, struct udev_device *dev)
{
	const char *action = udev_device_get_action(dev);
	bool removed = action && !strcmp(action, "remove");

	if (!action || (removed ? !s->removes : !s->adds))
		return;
	s->owner->fn(s->owner->user, udev_device_get_subsystem(dev),
		     udev_device_get_sysname(dev), !removed);
}

static void on_readable(void *user, int fd, unsigned events)
{
	struct source *s = user;

	(void)fd;
	(void)events;
	/* Bounded per turn; level-triggered, so the rest comes next turn. */
	for (int i = 0; i < 64; i++) {
		struct udev_device *dev = udev_monitor_receive_device(s->monitor);

		if (!dev)
			return;
		deliver(s, dev);
		udev_device_unref(dev);
	}
}

static int source_open(struct uevent *u, struct source *s, struct loop *l, const char *name)
{
	static const char *const subsystems[] = {"infiniband", "infiniband_verbs",
						 "infiniband_mad"};

	s->owner = u;
	s->monitor = udev_monitor_new_from_netlink(u->udev, name);
	if (!s->monitor)
		return errno ? -errno : -EIO;
	for (size_t i = 0; i < ARRAY_LEN(subsystems); i++)
		(void)udev_monitor_filter_add_match_subsystem_devtype(s->monitor,
								      subsystems[i], NULL);
	if (udev_monitor_enable_receiving(s->monitor) < 0)
		return errno ? -errno : -EIO;
	s->fd = loop_fd(l, udev_monitor_get_fd(s->monitor), LOOP_READ, on_readable, s);
	return 0;
}

static void source_close(struct source *s)
{
	s->fd = loop_source_free(s->fd);
	if (s->monitor)
		udev_monitor_unref(s->monitor);
}

struct uevent *uevent_new(struct loop *l, uevent_fn *fn, void *user, int *ret_error)
{
	struct uevent *u = xcalloc(1, sizeof(*u));
	bool have_udevd = access("/run/udev/control", F_OK) == 0;
	int r;

	u->fn = fn;
	u->user = user;
	u->udev = udev_new();
	r = u->udev ? source_open(u, &u->kernel, l, "kernel") : -ENOMEM;
	if (!r && have_udevd)
		r = source_open(u, &u->udevd, l, "udev");
	if (r < 0) {
		*ret_error = r;
		return uevent_free(u);
	}
	u->kernel.removes = true;
	u->kernel.adds = !have_udevd;
	u->udevd.adds = have_udevd;
	return u;
}

struct uevent *uevent_free(struct uevent *u)
{
	if (!u)
		return NULL;
	source_close(&u->kernel);
	source_close(&u->udevd);
	if (u->udev)
		udev_unref(u->udev);
	free(u);
	return NULL;
}
