/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "facts.h"

int sysfs_read(const char *path, char *buf, size_t size)
{
	char raw[256];
	ssize_t n;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	n = read(fd, raw, sizeof(raw));
	if (n < 0) {
		int r = -errno;

		(void)close(fd);
		return r;
	}
	(void)close(fd);
	for (ssize_t i = 0; i < n; i++)
		if (raw[i] == '\n')
			n = i;
	text_clean(buf, size, raw, (size_t)n);
	return 0;
}

void sysfs_device_name(const struct worker *w, char buf[DEVICE_NAME_MAX])
{
	char path[PATH_MAX];

	(void)snprintf(path, sizeof(path), "/sys/class/infiniband_verbs/%s/ibdev",
		       w->uverbs);
	if (sysfs_read(path, buf, DEVICE_NAME_MAX) || !buf[0])
		(void)str_copy(buf, DEVICE_NAME_MAX, w->device);
}

static enum unavailable why_of(int r)
{
	return r == -ENOENT   ? WHY_NOT_SUPPORTED
	       : r == -EACCES ? WHY_NO_PERMISSION
			      : WHY_UNREADABLE;
}

static void read_number(const char *dir, const char *file, struct device_facts *d,
			int field)
{
	char path[PATH_MAX + 32], buf[32], *end;
	long v;
	int r;

	(void)snprintf(path, sizeof(path), "%s/%s", dir, file);
	r = sysfs_read(path, buf, sizeof(buf));
	if (r < 0) {
		(void)field_set_missing(&device_table, d, field, why_of(r));
		return;
	}
	v = strtol(buf, &end, 10);
	/* -1: no NUMA node; 255: a link width that is not known. */
	if (end == buf || v < 0 || v == 255)
		(void)field_set_missing(&device_table, d, field, WHY_NOT_SUPPORTED);
	else
		(void)field_set_u64(&device_table, d, field, (uint64_t)v);
}

/* "16.0 GT/s PCIe" -> "16.0 GT/s" */
static void read_speed(const char *dir, const char *file, struct device_facts *d,
		       int field)
{
	char path[PATH_MAX + 32], buf[64], *p;
	int r;

	(void)snprintf(path, sizeof(path), "%s/%s", dir, file);
	r = sysfs_read(path, buf, sizeof(buf));
	p = r < 0 ? NULL : strstr(buf, " PCIe");
	if (p)
		*p = '\0';
	if (r < 0 || !strncmp(buf, "Unknown", 7))
		(void)field_set_missing(&device_table, d, field,
					r < 0 ? why_of(r) : WHY_NOT_SUPPORTED);
	else
		(void)field_set_text(&device_table, d, field, buf);
}

static bool is_pci(const char *dir)
{
	char path[PATH_MAX + 16], target[PATH_MAX];
	ssize_t n;

	(void)snprintf(path, sizeof(path), "%s/subsystem", dir);
	n = readlink(path, target, sizeof(target) - 1);
	if (n < 0)
		return false;
	target[n] = '\0';
	return n >= 4 && str_eq(target + n - 4, "/pci");
}

void sysfs_read_pci(const char *name, struct device_facts *d)
{
	static const int fields[] = {DF_PCI_ADDRESS, DF_PCIE_WIDTH, DF_PCIE_WIDTH_MAX,
				     DF_PCIE_SPEED, DF_PCIE_SPEED_MAX};
	char link[PATH_MAX], dir[PATH_MAX], path[PATH_MAX + 16];

	(void)snprintf(link, sizeof(link), "/sys/class/infiniband/%s/device", name);
	if (!realpath(link, dir) || !is_pci(dir)) { /* software devices have no bus */
		for (size_t i = 0; i < ARRAY_LEN(fields); i++)
			(void)field_set_missing(&device_table, d, fields[i],
						WHY_NOT_SUPPORTED);
		(void)field_set_missing(&device_table, d, DF_NUMA_NODE,
					WHY_NOT_SUPPORTED);
		(void)field_set_u64(&device_table, d, DF_IS_VF, 0);
		return;
	}
	(void)field_set_text(&device_table, d, DF_PCI_ADDRESS, strrchr(dir, '/') + 1);
	read_number(dir, "current_link_width", d, DF_PCIE_WIDTH);
	read_number(dir, "max_link_width", d, DF_PCIE_WIDTH_MAX);
	read_speed(dir, "current_link_speed", d, DF_PCIE_SPEED);
	read_speed(dir, "max_link_speed", d, DF_PCIE_SPEED_MAX);
	read_number(dir, "numa_node", d, DF_NUMA_NODE);
	(void)snprintf(path, sizeof(path), "%s/physfn", dir);
	(void)field_set_u64(&device_table, d, DF_IS_VF, access(path, F_OK) == 0);
}
