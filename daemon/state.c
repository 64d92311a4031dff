/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What outlives a restart, in the state directory: the last good config and the
 * operator's overrides. Written to a new file that replaces the old one; a full disk or
 * a missing directory costs that and nothing else.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "manager.h"

#define OVERRIDES_MAX 4096
#define RETRY_NS      (5 * NSEC_PER_SEC)

static const struct {
	const char *name;
	off_t max; /* JSON takes many times as much memory */
} files[STATE_FILE__MAX] = {
	[STATE_CONFIG] = {LAST_GOOD, 64 * 1024 * 1024},
	[STATE_OVERRIDES] = {"overrides.json", 4 * 1024 * 1024},
	[STATE_BASELINES] = {"baselines.json", 4 * 1024 * 1024},
};

static bool state_path(const struct manager *m, enum state_file file, const char *suffix,
		       char *buf, size_t size)
{
	if (!m->config->state_dir[0])
		return false;
	return snprintf(buf, size, "%s/%s%s", m->config->state_dir, files[file].name,
			suffix) < (int)size;
}

char *state_load(const struct manager *m, enum state_file file, size_t *ret_len)
{
	char path[CONFIG_PATH_MAX + 64];
	struct stat st;
	ssize_t n = -1;
	char *text;
	int fd;

	if (!state_path(m, file, "", path, sizeof(path)))
		return NULL;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0) {
		if (errno != ENOENT)
			log_warn("%s: %s", path, strerror(errno));
		return NULL;
	}
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size > files[file].max) {
		log_warn("%s is too large or no file, and passed over", path);
		(void)close(fd);
		return NULL;
	}
	text = xcalloc(1, (size_t)st.st_size + 1);
	n = read(fd, text, (size_t)st.st_size);
	(void)close(fd);
	if (n < 0) {
		free(text);
		return NULL;
	}
	*ret_len = (size_t)n;
	return text;
}

void folder_for_file(const char *path, mode_t mode)
{
	_cleanup_(freep) char *folder = xstrdup(path);
	char *slash = strrchr(folder, '/');

	if (!slash || slash == folder)
		return;
	*slash = '\0';
	if (!mkdir(folder, mode))
		log_info("made the directory %s", folder);
}

static int write_all(int fd, const char *text)
{
	size_t left = strlen(text);

	while (left) {
		ssize_t n = write(fd, text, left);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return -errno;
		text += n;
		left -= (size_t)n;
	}
	return fsync(fd) < 0 ? -errno : 0;
}

/* The reason of one file is told, not those of several in turn. */
static void saved(struct manager *m, enum state_file file, int r)
{
	unsigned bit = 1u << file;

	if (!r) {
		m->unsaved &= ~bit;
		if (!m->unsaved)
			manager_unavailable(m, "state_directory", NULL);
		return;
	}
	if (!(m->unsaved & ~bit))
		manager_unavailable(m, "state_directory", strerror(-r));
	m->unsaved |= bit;
	m->save_at = mono_add(clock_now(), RETRY_NS);
}

void state_save(struct manager *m, enum state_file file, const char *text)
{
	char path[CONFIG_PATH_MAX + 64], temp[CONFIG_PATH_MAX + 64];
	int fd, r;

	if (!state_path(m, file, "", path, sizeof(path)) ||
	    !state_path(m, file, ".new", temp, sizeof(temp)))
		return;
	folder_for_file(temp, 0700);
	(void)unlink(temp);
	fd = open(temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	r = fd < 0 ? -errno : write_all(fd, text);
	if (fd >= 0)
		(void)close(fd);
	if (!r && rename(temp, path) < 0)
		r = -errno;
	if (r)
		(void)unlink(temp);
	saved(m, file, r);
}

void state_tick(struct manager *m, struct mono now)
{
	if (!m->unsaved || !mono_due(m->save_at, now))
		return;
	if (m->unsaved & 1u << STATE_CONFIG && m->good_text)
		state_save(m, STATE_CONFIG, m->good_text);
	if (m->unsaved & 1u << STATE_OVERRIDES)
		state_save_overrides(m);
	if (m->unsaved & 1u << STATE_BASELINES)
		baselines_save(m);
}

void state_save_overrides(struct manager *m)
{
	json_t *a = json_array();
	char *text;

	for (int i = 0; i < m->n_overrides; i++) {
		const struct override_entry *o = &m->overrides[i];

		if (o->health == OVERRIDE_AUTO)
			continue;
		json_array_append_new(a, json_pack("{s:s, s:s, s:I, s:s}", "port", o->port,
						   "health",
						   enum_name(&override_names, o->health), "until",
						   (json_int_t)o->until_wall, "by", o->by));
	}
	text = json_dumps(a, JSON_INDENT(1));
	json_decref(a);
	if (text)
		state_save(m, STATE_OVERRIDES, text);
	free(text);
}

static void load_one(struct manager *m, json_t *entry)
{
	const char *port, *health, *by;
	struct override_entry *o;
	json_int_t until;
	int h;

	if (json_unpack(entry, "{s:s, s:s, s:I, s:s}", "port", &port, "health", &health, "until",
			&until, "by", &by) < 0)
		return;
	h = enum_find(&override_names, health);
	if (h < 0 || m->n_overrides >= OVERRIDES_MAX)
		return;
	m->overrides = xrealloc(m->overrides, (size_t)m->n_overrides + 1,
				sizeof(*m->overrides));
	o = &m->overrides[m->n_overrides++];
	*o = (struct override_entry){.health = (enum health_override)h, .until_wall = until};
	(void)str_copy(o->port, sizeof(o->port), port);
	(void)str_copy(o->by, sizeof(o->by), by);
}

void state_load_overrides(struct manager *m)
{
	size_t len, i;
	char *text = state_load(m, STATE_OVERRIDES, &len);
	json_t *a = text ? json_loadb(text, len, 0, NULL) : NULL, *entry;

	if (text && !json_is_array(a))
		log_warn("%s/overrides.json is not readable; overrides of ports are lost",
			 m->config->state_dir);
	json_array_foreach(a, i, entry)
		load_one(m, entry);
	json_decref(a);
	free(text);
}

void state_apply_override(struct manager *m, struct port_entry *pe)
{
	char name[PORT_NAME_MAX];

	(void)port_name(&pe->p, name);
	for (int i = 0; i < m->n_overrides; i++) {
		const struct override_entry *o = &m->overrides[i];

		if (strcmp(o->port, name))
			continue;
		pe->p.override = o->health;
		pe->p.override_until_wall = o->until_wall;
		(void)str_copy(pe->p.override_by, sizeof(pe->p.override_by), o->by);
		if (o->health == OVERRIDE_AUTO) {
			pe->p.override_by[0] = '\0';
			port_apply_config(m, pe);
		}
	}
}

/* The operator spoke of the port, whatever its device is called. */
void state_rename_overrides(struct manager *m, const char *old, const char *name)
{
	size_t len = strlen(old);
	bool any = false;

	for (int i = 0; i < m->n_overrides; i++) {
		struct override_entry *o = &m->overrides[i];
		char number[8];

		if (strncmp(o->port, old, len) || o->port[len] != '/')
			continue;
		(void)str_copy(number, sizeof(number), o->port + len);
		(void)snprintf(o->port, sizeof(o->port), "%s%s", name, number);
		any = true;
	}
	if (any)
		state_save_overrides(m);
}

void state_expire_overrides(struct manager *m)
{
	int64_t wall = clock_wall_ns();
	bool any = false;

	for (int i = 0; i < m->n_overrides; i++) {
		struct override_entry *o = &m->overrides[i];
		struct port_entry *pe;

		if (o->health == OVERRIDE_AUTO || !o->until_wall || o->until_wall > wall)
			continue;
		log_notice("port %s: the override %s by %s has ended", o->port,
			   enum_name(&override_names, o->health), o->by);
		o->health = OVERRIDE_AUTO;
		o->until_wall = 0;
		any = true;
		pe = port_find(m, o->port);
		if (pe) {
			state_apply_override(m, pe);
			port_settle(m, pe, SOURCE_OPERATOR);
		}
	}
	if (any)
		state_save_overrides(m);
}
