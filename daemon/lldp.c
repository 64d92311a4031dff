/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The far ends of Ethernet ports: what lldpd has heard from the switches, asked of its
 * own client, which is a process with an end: it may neither hang nor talk without end.
 * Where nobody speaks LLDP the label file says it.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lldp.h"
#include "manager.h"
#include "clean_spawn.h"

#define EVERY_NS       (60 * NSEC_PER_SEC)
#define SETTLE_NS      (3 * NSEC_PER_SEC) /* after a link moved: neighbours speak first */
#define PATIENCE_NS    (10 * NSEC_PER_SEC)
#define OUTPUT_MAX     (1024 * 1024)
#define LABEL_FILE_MAX (1024 * 1024)

struct lldp {
	struct manager *m;
	struct far_labels heard, labels; /* owned: of lldpd, of the file */
	struct mono next, file_next;
	struct timespec file_time; /* of the file that was read; 0 = none */
	/* the client that runs */
	pid_t pid; /* 0 = none */
	int fd;	   /* -1 = none, or all was read */
	struct loop_source *io;
	struct mono kill_at;
	char *out; /* owned */
	size_t len;
};

struct lldp *lldp_new(struct manager *m)
{
	struct lldp *l = xcalloc(1, sizeof(*l));

	l->m = m;
	l->fd = -1;
	return l;
}

/* ---- names into ports ---- */

static bool is_ethernet(const struct port *p)
{
	return !field_why(&port_table, &p->facts, PF_LINK_LAYER) &&
	       !strcmp(p->facts.link_layer, "ethernet");
}

static const char *netdev_of(const struct port *p)
{
	return field_why(&port_table, &p->facts, PF_NETDEV) ? "" : p->facts.netdev;
}

static const struct far_label *heard_on(const struct lldp *l, const struct port *p)
{
	const char *netdev = netdev_of(p);

	for (int i = 0; *netdev && i < l->heard.n; i++)
		if (!strcmp(l->heard.l[i].netdev, netdev) && l->heard.l[i].chassis[0])
			return &l->heard.l[i];
	return NULL;
}

static const struct far_label *label_of(const struct lldp *l, const struct port *p)
{
	char name[PORT_NAME_MAX];

	(void)port_name(p, name);
	for (int i = 0; i < l->labels.n; i++) {
		const char *key = l->labels.l[i].port;

		if (!strcmp(key, name) || (*key && !strcmp(key, netdev_of(p))))
			return &l->labels.l[i];
	}
	return NULL;
}

static void name_port(struct lldp *l, struct port_entry *pe)
{
	const struct far_label *heard = heard_on(l, &pe->p);
	const struct far_label *f = heard ? heard : label_of(l, &pe->p);
	char name[sizeof(pe->p.far_name)] = "";
	enum far_source source = heard ? FAR_LLDP : f ? FAR_LABEL : FAR_NONE;

	if (!is_ethernet(&pe->p))
		return;
	if (f)
		(void)snprintf(name, sizeof(name), "%s%s%s", f->chassis,
			       f->far_port[0] ? "/" : "", f->far_port);
	if (port_set_far(&pe->p, name, source))
		port_settle(l->m, pe, SOURCE_LLDP);
}

static void name_all(struct lldp *l)
{
	for (struct device *d = l->m->devices; d; d = d->next)
		for (struct port_entry *pe = d->ports; pe; pe = pe->next)
			name_port(l, pe);
}

/* ---- lldpcli ---- */

static void forget_client(struct lldp *l)
{
	l->io = loop_source_free(l->io);
	if (l->fd >= 0)
		(void)close(l->fd);
	l->fd = -1;
	free(l->out);
	l->out = NULL;
	l->len = 0;
}

/* What it said counts when it ended well; else what is known stays: lldpd may be about
 * to come back. */
static void ended(struct lldp *l, int status)
{
	struct far_labels heard = {0};

	l->pid = 0;
	if (WIFEXITED(status) && !WEXITSTATUS(status) && l->out &&
	    !lldp_parse(l->out, l->len, &heard)) {
		far_labels_done(&l->heard);
		l->heard = heard;
		manager_unavailable(l->m, "lldp", NULL);
	} else {
		manager_unavailable(l->m, "lldp",
				    WIFSIGNALED(status)
					    ? "lldpcli did not end, or said too much"
				    : WEXITSTATUS(status) ? "lldpcli failed"
							  : "lldpcli answers no JSON");
	}
	forget_client(l);
	name_all(l);
}

static void give_up(struct lldp *l)
{
	l->kill_at = MONO_NEVER;
	(void)kill(-l->pid, SIGKILL);
	forget_client(l);
}

static void on_output(void *user, int fd, unsigned events)
{
	struct lldp *l = user;
	char buf[16384];
	ssize_t n = read(fd, buf, sizeof(buf));

	(void)events;
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) { /* it ends now; who it was is reaped at the next turn */
		l->io = loop_source_free(l->io);
		(void)close(l->fd);
		l->fd = -1;
		return;
	}
	if (l->len + (size_t)n > OUTPUT_MAX) {
		give_up(l);
		return;
	}
	l->out = xrealloc(l->out, l->len + (size_t)n, 1);
	memcpy(l->out + l->len, buf, (size_t)n);
	l->len += (size_t)n;
}

static int start(const char *program, int out, pid_t *ret)
{
	char *argv[] = {(char *)(uintptr_t)program,	 (char *)(uintptr_t) "-f",
			(char *)(uintptr_t) "json0",	 (char *)(uintptr_t) "show",
			(char *)(uintptr_t) "neighbors", NULL};
	posix_spawn_file_actions_t actions;
	struct spawn_options o = {
		.actions = &actions, .own_group = true, .search_path = true};
	int r;

	(void)posix_spawn_file_actions_init(&actions);
	(void)posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
	(void)posix_spawn_file_actions_adddup2(&actions, out, 1);
	(void)posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
	r = spawn_clean(program, argv, &o, ret);
	(void)posix_spawn_file_actions_destroy(&actions);
	return r;
}

static void ask(struct lldp *l, struct mono now)
{
	int fds[2], r;

	if (pipe2(fds, O_CLOEXEC | O_NONBLOCK) < 0)
		return;
	/* The other end blocks, as a program expects of its output. */
	(void)fcntl(fds[1], F_SETFL, 0);
	r = start(l->m->config->lldp_command, fds[1], &l->pid);
	(void)close(fds[1]);
	if (r < 0) { /* no lldpd on this host: the usual case, and no fault */
		(void)close(fds[0]);
		l->pid = 0;
		manager_unavailable(l->m, "lldp", r == -ENOENT ? NULL : strerror(-r));
		return;
	}
	l->fd = fds[0];
	l->io = loop_fd(l->m->loop, l->fd, LOOP_READ, on_output, l);
	l->kill_at = mono_add(now, PATIENCE_NS);
}

/* ---- the label file ---- */

static char *file_text(int fd, size_t *ret_len)
{
	char *text = xcalloc(1, LABEL_FILE_MAX);
	ssize_t n = read(fd, text, LABEL_FILE_MAX);

	if (n < 0) {
		free(text);
		return NULL;
	}
	*ret_len = (size_t)n;
	return text;
}

static void file_read(struct lldp *l, int fd)
{
	struct far_labels labels;
	char why[160], *text;
	size_t len;

	text = file_text(fd, &len);
	if (!text)
		return;
	if (far_labels_parse(text, len, &labels, why, sizeof(why)) < 0) {
		log_err("%s: %s", l->m->config->label_file, why);
		manager_unavailable(l->m, "label_file", why);
	} else {
		far_labels_done(&l->labels);
		l->labels = labels;
		manager_unavailable(l->m, "label_file", NULL);
	}
	free(text);
}

/* Read when it has changed; what does not parse changes nothing. */
static void check_file(struct lldp *l)
{
	const char *path = l->m->config->label_file;
	struct stat st;
	int fd;

	if (!*path) {
		far_labels_done(&l->labels);
		l->file_time = (struct timespec){0};
		manager_unavailable(l->m, "label_file", NULL);
		return;
	}
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
		manager_unavailable(l->m, "label_file",
				    fd < 0 ? strerror(errno) : "no file");
		l->file_time = (struct timespec){0}; /* it may come back as it was */
	} else if (st.st_size > LABEL_FILE_MAX) {
		manager_unavailable(l->m, "label_file", "it is larger than 1 MiB");
		l->file_time = (struct timespec){0};
	} else if (st.st_mtim.tv_sec != l->file_time.tv_sec ||
		   st.st_mtim.tv_nsec != l->file_time.tv_nsec) {
		l->file_time = st.st_mtim;
		file_read(l, fd);
	}
	if (fd >= 0)
		(void)close(fd);
}

/* ---- when ---- */

static bool any_ethernet(const struct manager *m)
{
	for (const struct device *d = m->devices; d; d = d->next)
		for (const struct port_entry *pe = d->ports; pe; pe = pe->next)
			if (is_ethernet(&pe->p))
				return true;
	return false;
}

static void reap(struct lldp *l, struct mono now)
{
	siginfo_t dead = {0};
	int status;

	if (!l->pid)
		return;
	if (mono_due(l->kill_at, now))
		give_up(l);
	if (l->fd >= 0 ||
	    waitid(P_PID, (id_t)l->pid, &dead, WEXITED | WNOHANG | WNOWAIT) < 0 ||
	    dead.si_pid != l->pid)
		return;
	/* What it left behind, while nobody else can have its number. */
	(void)kill(-l->pid, SIGKILL);
	if (waitpid(l->pid, &status, WNOHANG) == l->pid)
		ended(l, status);
}

void lldp_tick(struct lldp *l, struct mono now)
{
	reap(l, now);
	if (mono_is_set(l->next) && !mono_due(l->next, now))
		return;
	if (!any_ethernet(l->m) || l->m->stopping)
		return;
	l->next = mono_add(now, EVERY_NS);
	check_file(l);
	if (!*l->m->config->lldp_command) {
		far_labels_done(&l->heard);
		manager_unavailable(l->m, "lldp", NULL);
	} else if (!l->pid) {
		ask(l, now);
	}
	name_all(l);
}

void lldp_soon(struct lldp *l)
{
	struct mono at = mono_add(loop_now(l->m->loop), SETTLE_NS);

	if (mono_is_set(l->next))
		l->next = mono_first(l->next, at);
}

void lldp_reload(struct lldp *l)
{
	l->next = MONO_NEVER;
}

struct lldp *lldp_free(struct lldp *l)
{
	if (!l)
		return NULL;
	if (l->pid)
		(void)kill(-l->pid, SIGKILL);
	forget_client(l);
	far_labels_done(&l->heard);
	far_labels_done(&l->labels);
	free(l);
	return NULL;
}
