/* SPDX-License-Identifier: BSD-2-Clause */
#include "config_int.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define FILE_MAX     (64 << 20)
#define KEY_FILE_MAX 65536

/* All of a regular file; /dev/null, which masks a drop-in, is empty. 0 or -errno:
 * -EFBIG if it has more than @max bytes, -EINVAL if it is no regular file. */
static int file_read(const char *path, size_t max, char **ret, size_t *ret_len,
		     mode_t *ret_mode)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY), r = 0;
	size_t len = 0, room = 4096;
	char *buf = NULL;
	struct stat st;
	ssize_t n = 0;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) < 0) {
		r = -errno;
	} else if (S_ISCHR(st.st_mode) && st.st_rdev == makedev(1, 3)) {
		st.st_size = 0;
	} else if (!S_ISREG(st.st_mode)) {
		r = S_ISDIR(st.st_mode) ? -EISDIR : -EINVAL;
	}
	while (r == 0) {
		if (!buf || len == room) {
			room = buf ? room * 2 : room;
			buf = xrealloc(buf, room, 1);
		}
		n = read(fd, buf + len, room - len);
		if (n < 0 && errno != EINTR)
			r = -errno;
		if (n == 0)
			break;
		len += n > 0 ? (size_t)n : 0;
		if (len > max)
			r = -EFBIG;
	}
	close(fd);
	if (r < 0) {
		free(buf);
		return r;
	}
	*ret = buf;
	*ret_len = len;
	*ret_mode = st.st_mode;
	return 0;
}

static const char *read_error(int r)
{
	if (r == -EFBIG)
		return "file is too large";
	if (r == -EINVAL)
		return "not a regular file";
	return strerror(-r);
}

int config_key_file_read(const char *path, struct auth_keys *ret,
			 char err[CONFIG_ERR_MAX])
{
	char what[160] = "", q[72];
	char *text = NULL;
	size_t len;
	mode_t mode;
	int r = file_read(path, KEY_FILE_MAX, &text, &len, &mode);

	memset(ret, 0, sizeof(*ret));
	if (r < 0) {
		(void)snprintf(err, CONFIG_ERR_MAX, "cannot read %s: %s",
			       config_quote(path, q), read_error(r));
		return r;
	}
	r = auth_keys_parse(text, len, ret, what, sizeof(what));
	sodium_memzero(text, len);
	free(text);
	if (r < 0) {
		memset(ret, 0, sizeof(*ret));
		(void)snprintf(err, CONFIG_ERR_MAX, "%s: %s", config_quote(path, q),
			       what);
		return r;
	}
	return mode & S_IROTH ? 1 : 0;
}

/* ---- the files of a configuration, in order ---- */

struct sources {
	char **path; /* owned */
	int n;
};

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* A file of the same name in an earlier directory is replaced. */
static void sources_add(struct sources *s, const char *dir, const char *name)
{
	char *path = xasprintf("%s/%s", dir, name);

	for (int i = 0; i < s->n; i++)
		if (str_eq(base_name(s->path[i]), name)) {
			free(s->path[i]);
			s->path[i] = path;
			return;
		}
	s->path = xrealloc(s->path, (size_t)s->n + 1, sizeof(*s->path));
	s->path[s->n++] = path;
}

static void file_problem(struct config_parser *p, const char *path, int r)
{
	/* a text without lines gives the problem a file to name */
	config_parser_text(p, path, "", 0);
	config_problem(p, PROBLEM_ERROR, (struct config_origin){.file = p->c->n_files - 1},
		       "cannot read: %s", read_error(r));
}

static void sources_scan(struct config_parser *p, struct sources *s, const char *dir)
{
	DIR *d = opendir(dir);
	struct dirent *e;

	if (!d) {
		if (errno != ENOENT && errno != ENOTDIR)
			file_problem(p, dir, -errno);
		return;
	}
	while ((e = readdir(d))) {
		size_t n = strlen(e->d_name);

		if (e->d_name[0] != '.' && n > 5 && str_eq(e->d_name + n - 5, ".conf"))
			sources_add(s, dir, e->d_name);
	}
	closedir(d);
}

static int by_name(const void *a, const void *b)
{
	return strcmp(base_name(*(char *const *)a), base_name(*(char *const *)b));
}

static void text_keep(char **text, size_t *len, const char *path, const char *add,
		      size_t n)
{
	_cleanup_(freep) char *head = NULL;
	char q[72];

	/* a file must not begin in the last line of the one before */
	head = xasprintf("%s# %s\n", *len ? "\n\n" : "", config_quote(path, q));
	if (n >= 3 && !memcmp(add, "\xef\xbb\xbf", 3)) {
		add += 3;
		n -= 3;
	}
	*text = xrealloc(*text, *len + strlen(head) + n + 1, 1);
	memcpy(*text + *len, head, strlen(head));
	*len += strlen(head);
	memcpy(*text + *len, add, n);
	*len += n;
	(*text)[*len] = '\0';
}

static void source_read(struct config_parser *p, const char *path, bool may_be_missing,
			char **text, size_t *text_len)
{
	char *buf = NULL;
	size_t len;
	mode_t mode;
	int r = file_read(path, FILE_MAX, &buf, &len, &mode);

	if (r == -ENOENT && may_be_missing)
		return;
	if (r < 0) {
		file_problem(p, path, r);
		return;
	}
	config_parser_text(p, path, buf, len);
	text_keep(text, text_len, path, buf, len);
	free(buf);
}

static void host_name(struct config *c)
{
	char name[256] = "", *dot;

	if (c->node_name[0] || gethostname(name, sizeof(name) - 1) < 0)
		return;
	dot = strchr(name, '.');
	if (dot)
		*dot = '\0';
	if (config_label_wrong(name, sizeof(c->node_name) - 1))
		(void)str_copy(name, sizeof(name), "localhost");
	(void)str_copy(c->node_name, sizeof(c->node_name), name);
}

struct config *config_load_from(const char *main_file, bool may_be_missing,
				const char *const *dirs, int n_dirs,
				struct config_problems *ret_problems, char **ret_text)
{
	struct sources s = {0};
	struct config_parser p;
	char *text = xstrdup("");
	size_t len = 0;
	struct config *c;

	config_parser_init(&p, ret_problems, true);
	source_read(&p, main_file, may_be_missing, &text, &len);
	for (int i = 0; i < n_dirs; i++)
		sources_scan(&p, &s, dirs[i]);
	if (s.n)
		qsort(s.path, (size_t)s.n, sizeof(*s.path), by_name);
	for (int i = 0; i < s.n; i++) {
		source_read(&p, s.path[i], false, &text, &len);
		free(s.path[i]);
	}
	free(s.path);
	if (!p.c->n_files) /* nothing at all: problems still need a file to name */
		config_parser_text(&p, main_file, "", 0);
	c = config_parser_finish(&p);
	host_name(c);
	if (ret_text)
		*ret_text = text;
	else
		free(text);
	return c;
}

struct config *config_load(const char *path, struct config_problems *ret_problems,
			   char **ret_text)
{
	static const char *const dirs[] = {"/usr/lib/fabd/fabd.conf.d",
					   "/run/fabd/fabd.conf.d",
					   "/etc/fabd/fabd.conf.d"};
	_cleanup_(freep) char *own_dir = NULL;

	if (!path)
		return config_load_from("/etc/fabd/fabd.conf", true, dirs,
					ARRAY_LEN(dirs), ret_problems, ret_text);
	own_dir = xasprintf("%s.d", path);
	return config_load_from(path, false, (const char *const[]){own_dir}, 1,
				ret_problems, ret_text);
}
