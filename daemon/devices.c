/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which devices and ports there are. The kernel's list says it (after uevents, and every
 * few seconds as a referee); devices that only a MAD worker sees are added by it. The
 * live key of a device is its kernel index: one that comes back has another.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "manager.h"

#define PORTS_MAX 254
#define PORTS_LIKELY_MAX 64 /* more on one device is flagged as a lie */

static void tell(struct device *d, const char *change, const char *why)
{
	monitor_post(d->m->monitor, loop_now(d->m->loop), "device", d->name, change, NULL, NULL,
		     why);
	history_add(d->m->history, loop_now(d->m->loop), "device", d->name, NULL, change, NULL,
		    why);
}

struct device *device_find(struct manager *m, const char *name)
{
	for (struct device *d = m->devices; d; d = d->next)
		if (!strcmp(d->name, name))
			return d;
	return NULL;
}

static struct device *device_by_index(struct manager *m, uint32_t index)
{
	for (struct device *d = m->devices; d; d = d->next)
		if (d->index == index && d->present)
			return d;
	return NULL;
}

static struct device *device_add(struct manager *m, const char *name, uint32_t index)
{
	struct device *d = xcalloc(1, sizeof(*d)), **p = &m->devices;

	d->m = m;
	d->serial = ++m->next_serial;
	(void)str_copy(d->name, sizeof(d->name), name);
	d->index = index;
	d->present = true;
	d->since = loop_now(m->loop);
	field_all_missing(&device_table, &d->facts, WHY_NOT_READ);
	while (*p)
		p = &(*p)->next;
	*p = d;
	tell(d, "added", NULL);
	log_notice("device %s: added", name);
	return d;
}

struct device *device_get(struct manager *m, const char *name)
{
	struct device *d = device_find(m, name);

	if (!d)
		d = device_add(m, name, DEVICE_INDEX_NONE);
	if (!d->present) {
		d->present = true;
		d->since = loop_now(m->loop);
		tell(d, "added", NULL);
	}
	return d;
}

/* ---- ports ---- */

struct port_entry *device_port(struct device *d, uint8_t num)
{
	for (struct port_entry *pe = d->ports; pe; pe = pe->next)
		if (pe->p.num == num)
			return pe;
	return NULL;
}

struct port_entry *device_port_get(struct device *d, uint8_t num)
{
	struct port_entry *pe = device_port(d, num), **p = &d->ports;
	int count = 0;

	if (pe)
		return pe;
	pe = xcalloc(1, sizeof(*pe));
	pe->serial = ++d->m->next_serial;
	pe->device = d;
	port_init(&pe->p, d->name, d->index, num, loop_now(d->m->loop));
	port_mads_init(pe);
	while (*p && (*p)->p.num < num) {
		p = &(*p)->next;
		count++;
	}
	pe->next = *p;
	*p = pe;
	if (count >= PORTS_LIKELY_MAX)
		pe->p.flags |= FLAG_PORT_COUNT;
	port_counters_init(pe);
	baseline_apply(d->m, pe);
	port_apply_config(d->m, pe);
	state_apply_override(d->m, pe);
	return pe;
}

static void port_free(struct port_entry *pe)
{
	mads_forget(pe->device->m->mads, pe);
	port_done(&pe->p);
	free(pe);
}

void device_port_gone(struct device *d, uint8_t num)
{
	struct port_entry **p = &d->ports;

	while (*p) {
		struct port_entry *pe = *p;
		char name[PORT_NAME_MAX];

		if (num && pe->p.num != num) {
			p = &pe->next;
			continue;
		}
		monitor_post(d->m->monitor, loop_now(d->m->loop), "port",
			     port_name(&pe->p, name), "removed", NULL, NULL, NULL);
		*p = pe->next;
		port_free(pe);
	}
	d->m->rebind_wanted = true;
}

struct port_entry *port_find(struct manager *m, const char *name)
{
	const char *sep = strrchr(name, '/');
	char device[DEVICE_NAME_MAX];
	struct device *d;
	char *end;
	long num;

	if (!sep)
		sep = strrchr(name, ':');
	if (!sep || (size_t)(sep - name) >= sizeof(device))
		return NULL;
	memcpy(device, name, (size_t)(sep - name));
	device[sep - name] = '\0';
	num = strtol(sep + 1, &end, 10);
	if (*end || end == sep + 1 || num < 1 || num > PORTS_MAX)
		return NULL;
	d = device_find(m, device);
	return d ? device_port(d, (uint8_t)num) : NULL;
}

/* ---- who owns an address ---- */

static bool owns_netdev(const struct port_entry *pe, uint32_t netdev)
{
	if (!field_why(&port_table, &pe->p.facts, PF_NETDEV_INDEX) &&
	    pe->p.facts.netdev_index == netdev)
		return true;
	for (int i = 0; i < pe->p.n_gids; i++)
		if (pe->p.gids[i].netdev_index == netdev)
			return true;
	return false;
}

/* IPoIB: bytes 4..19 of the 20-byte hardware address are the port's GID (RFC 4391). */
static bool owns_ipoib(const struct port_entry *pe, const struct nl_link *l)
{
	if (!l || l->hwaddr_len != 20)
		return false;
	for (int i = 0; i < pe->p.n_gids; i++)
		if (!memcmp(pe->p.gids[i].gid, l->hwaddr + 4, 16))
			return true;
	return false;
}

bool port_tied(const struct port_entry *pe, const struct addr *a)
{
	return pe->p.tied.family && pe->p.tied.family == a->family &&
	       !memcmp(pe->p.tied.ip, a->ip, a->family == 4 ? 4 : 16);
}

struct port_entry *port_of_address(struct manager *m, const struct addr *a)
{
	const struct nl_addr *own = netlink_own_addr(m->netlink, a);
	const struct nl_link *link = own ? netlink_link(m->netlink, own->link) : NULL;

	for (struct device *d = m->devices; d; d = d->next)
		for (struct port_entry *pe = d->ports; pe; pe = pe->next)
			if (port_tied(pe, a))
				return pe;
	if (!link)
		return NULL;
	/* Two devices on one netdev: the older owns it, the other only watches its port. */
	for (struct device *d = m->devices; d; d = d->next)
		for (struct port_entry *pe = d->ports; d->present && pe; pe = pe->next)
			if (owns_netdev(pe, link->index) || owns_ipoib(pe, link))
				return pe;
	return NULL;
}

/* ---- coming and going ---- */

void device_gone(struct device *d, const char *why)
{
	if (!d->present)
		return;
	d->present = false;
	d->since = loop_now(d->m->loop);
	log_notice("device %s: removed (%s)", d->name, why);
	tell(d, "removed", why);
	if (d->rdma)
		worker_unwant(d->rdma);
	if (d->mad && d->mad->device[0])
		worker_unwant(d->mad);
	d->rdma = d->mad = NULL;
	d->has_verbs_facts = false;
	device_port_gone(d, 0);
}

/* Nothing refers to one that is gone: its ports and workers went before. */
static void forget_gone(struct manager *m)
{
	struct device **p = &m->devices;

	while (*p) {
		struct device *d = *p;

		if (d->present) {
			p = &d->next;
			continue;
		}
		*p = d->next;
		free(d);
	}
}

static void device_came(struct manager *m, const struct nl_rdma_device *k)
{
	struct device *d = device_find(m, k->name);

	if (d) /* seen through umad before the kernel's list said so */
		d->index = k->index;
	else
		d = device_add(m, k->name, k->index);
	(void)field_set_u64(&device_table, &d->facts, DF_NODE_GUID, k->node_guid);
	(void)field_set_u64(&device_table, &d->facts, DF_SYS_IMAGE_GUID, k->sys_guid);
	(void)field_set_text(&device_table, &d->facts, DF_FW, k->fw);
	d->rdma = worker_want(m, WORKER_RDMA, d->name, d->index);
}

static void device_renamed(struct device *d, const char *name)
{
	struct device *holder = device_find(d->m, name);
	char old[DEVICE_NAME_MAX];

	/* Names that were exchanged between two looks: what is known under each of them
	 * would be mixed up. The next look finds both anew. */
	if (holder) {
		device_gone(holder, "renamed");
		device_gone(d, "renamed");
		d->m->rescan_wanted = true;
		return;
	}
	(void)str_copy(old, sizeof(old), d->name);
	(void)str_copy(d->name, sizeof(d->name), name);
	log_notice("device %s: is now %s", old, name);
	monitor_post(d->m->monitor, loop_now(d->m->loop), "device", name, "renamed", old, name,
		     NULL);
	history_add(d->m->history, loop_now(d->m->loop), "device", name, NULL, "renamed", NULL,
		    old);
	for (struct port_entry *pe = d->ports; pe; pe = pe->next)
		(void)str_copy(pe->p.device, sizeof(pe->p.device), name);
	workers_renamed(d);
	state_rename_overrides(d->m, old, name);
	baselines_renamed(d, old);
	for (struct port_entry *pe = d->ports; pe; pe = pe->next) {
		port_apply_config(d->m, pe);
		state_apply_override(d->m, pe);
		port_settle(d->m, pe, SOURCE_OPERATOR);
	}
	for (int i = 0; i < d->m->n_conns; i++) {
		struct conn_entry *e = d->m->conns[i];

		if (!strcmp(e->worker_device, old))
			conn_set_worker(d->m, e, name);
	}
	conns_rebind(d->m);
}

/* A device that only the MAD worker of all umad devices saw is not in the list. */
static bool is_kernels(const struct device *d)
{
	return d->index != DEVICE_INDEX_NONE;
}

void devices_scan(struct manager *m)
{
	struct nl_rdma_device *list = NULL;
	int n = 0, r = netlink_rdma_devices(&list, &n);

	m->rescan_at = mono_add(loop_now(m->loop), 5 * NSEC_PER_SEC);
	m->rescan_wanted = false;
	if (r == -EPROTONOSUPPORT || r == -ENOENT)
		manager_unavailable(m, "rdma_netlink", "this kernel has no RDMA loaded");
	else if (r < 0)
		manager_unavailable(m, "rdma_netlink", strerror(-r));
	else
		manager_unavailable(m, "rdma_netlink", NULL);
	/* No answer is no news: a lack of descriptors or memory takes no device away. */
	if (r < 0 && r != -EPROTONOSUPPORT && r != -ENOENT)
		return;
	for (struct device *d = m->devices; d; d = d->next) {
		bool found = !d->present ||
			     (!is_kernels(d) && config_wants_device(m->config, d->name));

		for (int i = 0; i < n && !found; i++)
			found = list[i].index == d->index &&
				config_wants_device(m->config, d->name);
		if (!found)
			device_gone(d, config_wants_device(m->config, d->name)
					       ? "not in the kernel's list"
					       : "left out by the config");
	}
	forget_gone(m);
	for (int i = 0; i < n; i++) {
		struct device *d = device_by_index(m, list[i].index);

		if (!config_wants_device(m->config, list[i].name))
			continue;
		if (!d)
			device_came(m, &list[i]);
		else if (strcmp(d->name, list[i].name))
			device_renamed(d, list[i].name);
	}
	free(list);
}

/* uverbsN's device, as sysfs tells it; still there while the removal waits for us. */
static bool ibdev_of_uverbs(const char *uverbs, char *buf, size_t size)
{
	char path[128];
	ssize_t n;
	int fd;

	(void)snprintf(path, sizeof(path), "/sys/class/infiniband_verbs/%.32s/ibdev", uverbs);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	n = read(fd, buf, size - 1);
	(void)close(fd);
	if (n <= 0)
		return false;
	buf[n] = '\0';
	buf[strcspn(buf, "\n")] = '\0';
	return true;
}

void devices_uevent(void *user, const char *subsystem, const char *name, bool added)
{
	struct manager *m = user;
	char ibdev[DEVICE_NAME_MAX];
	struct device *d;

	log_debug("uevent: %s %s %s", added ? "add" : "remove", subsystem, name);
	/* The removal of uverbsN comes while `rdma link delete` still waits for us. */
	if (!added && !strcmp(subsystem, "infiniband_verbs") &&
	    ibdev_of_uverbs(name, ibdev, sizeof(ibdev))) {
		d = device_find(m, ibdev);
		if (d) {
			device_gone(d, "removed from the kernel");
			return;
		}
	}
	m->rescan_wanted = true;
	loop_timer_at(m->tick, loop_now(m->loop));
}

void devices_free(struct manager *m)
{
	while (m->devices) {
		struct device *d = m->devices;

		while (d->ports) {
			struct port_entry *pe = d->ports;

			d->ports = pe->next;
			port_free(pe);
		}
		m->devices = d->next;
		free(d);
	}
}
