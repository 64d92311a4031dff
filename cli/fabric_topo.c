/* SPDX-License-Identifier: BSD-2-Clause */
/* fabctl fabric save, diff, graph: the subnet as a file, against a file, as a picture.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "clean.h"
#include "cli.h"
#include "dot.h"
#include "fields.h"
#include "ibnet.h"
#include "json_out.h"
#include "progress.h"
#include "render_subnet.h"
#include "topo_diff.h"

#define FILE_MAX (256u * 1024 * 1024)

extern char **environ;

/* ---- what fabd knows, as a subnet ---- */

struct live {
	struct subnet *subnet;	 /* owned */
	char when[64];		 /* of the sweep, as ctime(3) has it; "" unknown */
	char port[128];		 /* swept from, "" unknown */
	const struct physp *own; /* that port, borrowed; NULL unknown */
};

/* "2026-11-30T20:41:07.118Z" as "Mon Nov 30 20:41:07 2026", in local time. */
static void set_when(struct live *v, const char *began)
{
	struct tm tm = {0}, local;
	time_t t;

	if (!began || !strptime(began, "%Y-%m-%dT%H:%M:%S", &tm))
		return;
	t = timegm(&tm);
	if (localtime_r(&t, &local))
		(void)strftime(v->when, sizeof(v->when), "%a %b %e %H:%M:%S %Y",
			       &local);
}

/* The port that was swept from: ibnetdiscover names it, and begins with it. */
static void set_own_port(struct live *v, uint64_t port_guid)
{
	struct ib_port *own = subnet_port_by_guid(v->subnet, port_guid);

	v->own = own ? own->physp : NULL;
}

static int find_own_port(struct cli *c, struct live *v)
{
	const char *guid;
	json_t *p;

	if (!*v->port)
		return EXIT_OK;
	p = cli_get(c, "io.fabd.GetPort", json_pack("{s:s}", "port", v->port), "port");
	if (!p)
		return EXIT_ERROR;
	guid = get_text(p, "port_guid");
	if (guid)
		set_own_port(v, strtoull(guid, NULL, 16));
	json_decref(p);
	return EXIT_OK;
}

static int no_fabric(const json_t *fabric)
{
	const char *why = get_text(fabric, "why");

	return cli_error("no fabric is known: %s",
			 why && *why ? why : "no sweep has ended yet");
}

static int make_subnet(struct live *v, const json_t *nodes)
{
	char why[256];
	const json_t *n;
	size_t i;

	v->subnet = subnet_new();
	json_array_foreach (nodes, i, n)
		if (subnet_json_node(v->subnet, n, why, sizeof(why)) < 0)
			return cli_error("the answer to ListFabricNodes makes no "
					 "subnet: %s",
					 why);
	subnet_json_link(v->subnet, nodes);
	return EXIT_OK;
}

static int live_load(struct cli *c, struct live *v)
{
	json_t *fabric = cli_get(c, "io.fabd.GetFabric", NULL, "fabric"), *nodes;
	const char *port = get_text(fabric, "port");
	int r;

	*v = (struct live){0};
	if (!fabric)
		return EXIT_ERROR;
	nodes = cli_list(c, "io.fabd.ListFabricNodes", NULL, "nodes");
	if (!nodes) {
		json_decref(fabric);
		return EXIT_ERROR;
	}
	set_when(v, get_text(get_object(fabric, "last_sweep"), "began"));
	(void)str_copy(v->port, sizeof(v->port), port ? port : "");
	r = json_array_size(nodes) ? make_subnet(v, nodes) : no_fabric(fabric);
	json_decref(fabric);
	json_decref(nodes);
	return r;
}

static void live_done(struct live *v)
{
	v->subnet = subnet_free(v->subnet);
}

/* ---- save ---- */

static bool write_topology(FILE *f, const struct live *v)
{
	struct ibnet_writer *w =
		ibnet_writer_new(v->subnet, v->own, *v->when ? v->when : NULL);
	const char *piece;
	bool ok = true;

	while (ok && (piece = ibnet_next(w)))
		ok = fputs(piece, f) >= 0;
	(void)ibnet_writer_free(w);
	return ok;
}

/* As a new file would be, which mkstemp() does not make. */
static mode_t file_mode(void)
{
	mode_t mask = umask(0);

	(void)umask(mask);
	return 0666 & ~mask;
}

/* To @fd, which is closed. 0 or an errno. */
static int write_and_close(const struct live *v, int fd, bool is_file)
{
	FILE *f = fdopen(fd, "w");
	int error = 0;

	if (!f) {
		error = errno;
		(void)close(fd);
		return error;
	}
	if (!write_topology(f, v) || fflush(f) ||
	    (is_file && (fchmod(fd, file_mode()) || fsync(fd))))
		error = errno;
	if (fclose(f) && !error)
		error = errno;
	return error;
}

/* All of it or nothing: another file that takes the place of the old one. 0 or an
 * errno. */
static int replace_file(const struct live *v, const char *path)
{
	_cleanup_(freep) char *temporary = xasprintf("%s.XXXXXX", path);
	int fd = mkstemp(temporary), error;

	if (fd < 0)
		return errno;
	error = write_and_close(v, fd, true);
	if (!error && rename(temporary, path))
		error = errno;
	if (error)
		(void)unlink(temporary);
	return error;
}

/* Nothing but a file may be replaced: not /dev/null, not a pipe that somebody reads. */
static int save_file(const struct live *v, const char *path)
{
	_cleanup_(freep) char *real = realpath(path, NULL);
	struct stat st;
	int fd, error;

	if (real && !stat(real, &st) && !S_ISREG(st.st_mode)) {
		fd = open(real, O_WRONLY | O_CLOEXEC | O_NOCTTY);
		error = fd < 0 ? errno : write_and_close(v, fd, false);
	} else {
		error = replace_file(v, real ? real : path);
	}
	if (!error)
		return EXIT_OK;
	return cli_error("cannot write %s: %s", path, strerror(error));
}

int fabric_save(struct cli *c)
{
	struct live v;
	int r;

	if (c->argc != 1)
		return cli_usage("usage: fabctl fabric save FILE (- is stdout)");
	r = live_load(c, &v);
	if (r == EXIT_OK)
		r = find_own_port(c, &v);
	if (r == EXIT_OK && str_eq(c->argv[0], "-"))
		(void)write_topology(c->layout.out, &v); /* main() looks at stdout */
	else if (r == EXIT_OK)
		r = save_file(&v, c->argv[0]);
	live_done(&v);
	return r;
}

/* ---- diff ---- */

static int read_stream(FILE *f, const char *path, char **ret, size_t *ret_len)
{
	size_t len = 0, size = 65536, n;
	char *text = xrealloc(NULL, size, 1);

	do {
		if (len == size)
			text = xrealloc(text, size *= 2, 1);
		n = fread(text + len, 1, size - len, f);
		len += n;
	} while (n && len <= FILE_MAX);
	if (ferror(f) || len > FILE_MAX) {
		free(text);
		return cli_error("cannot read %s: %s", path,
				 len > FILE_MAX ? "it is too large" : strerror(errno));
	}
	*ret = text;
	*ret_len = len;
	return EXIT_OK;
}

static int read_saved(struct subnet *s, const char *path)
{
	_cleanup_(freep) char *text = NULL;
	FILE *f = str_eq(path, "-") ? stdin : fopen(path, "re");
	char why[256];
	size_t len = 0;
	int r;

	if (!f)
		return cli_error("cannot read %s: %s", path, strerror(errno));
	r = read_stream(f, path, &text, &len);
	if (f != stdin)
		(void)fclose(f);
	if (r == EXIT_OK && ibnet_read(text, len, s, why, sizeof(why)) < 0)
		r = cli_error("%s:%s", path, why);
	return r;
}

static void put_diff(const struct cli *c, const struct topo_diff *d)
{
	/* clang-format off */
	static const enum tint tints[TOPO__MAX] = {
		[TOPO_NODE_MISSING] = TINT_BAD, [TOPO_LINK_MISSING] = TINT_BAD,
		[TOPO_CABLE_MOVED] = TINT_WARN, [TOPO_SLOWER] = TINT_WARN,
	};
	/* clang-format on */
	const struct layout *l = &c->layout;

	for (int i = 0; i < d->n; i++) {
		_cleanup_(freep) char *safe = text_safe(d->lines[i].text);
		enum tint tint = tints[d->lines[i].change];

		(void)fprintf(l->out, "%s%s%s\n", tint_on(l, tint), safe,
			      tint_off(l, tint));
	}
}

static int put_diff_json(const struct cli *c, const struct topo_diff *d)
{
	json_t *list = json_array();
	int r;

	for (int i = 0; i < d->n; i++) {
		json_t *o = json_object();

		render_text(o, "change",
			    enum_name(&topo_change_names, (int)d->lines[i].change));
		render_text(o, "text", d->lines[i].text);
		(void)json_array_append_new(list, o);
	}
	r = json_out(c, list);
	json_decref(list);
	return r;
}

/* As diff(1): 0 the same, 1 different or failed. */
int fabric_diff(struct cli *c)
{
	struct subnet *saved = subnet_new();
	struct topo_diff d = {0};
	struct live v = {0};
	int r;

	if (c->argc != 1) {
		(void)subnet_free(saved);
		return cli_usage("usage: fabctl fabric diff FILE (- is stdin)");
	}
	r = read_saved(saved, c->argv[0]);
	if (r == EXIT_OK)
		r = live_load(c, &v);
	if (r == EXIT_OK) {
		topo_compare(saved, v.subnet, &d);
		if (!cli_is_text(c))
			r = put_diff_json(c, &d);
		else if (d.n)
			put_diff(c, &d);
		else
			(void)fprintf(c->layout.out, "no difference from %s\n",
				      c->argv[0]);
		if (r == EXIT_OK && d.n)
			r = EXIT_ERROR;
	}
	topo_diff_done(&d);
	live_done(&v);
	(void)subnet_free(saved);
	return r;
}

/* ---- graph ---- */

static char *graph_text(const struct live *v)
{
	struct subnet_counts n;
	char title[256] = "";

	subnet_count(v->subnet, &n);
	str_append(title, sizeof(title),
		   "%" PRIu32 " nodes, %" PRIu32 " links, %" PRIu32 " degraded",
		   n.nodes, n.links, n.links_degraded);
	if (*v->port)
		str_append(title, sizeof(title), "; from %s", v->port);
	if (*v->when)
		str_append(title, sizeof(title), "; %s", v->when);
	return dot_text(v->subnet, title);
}

/* dot -Tsvg with @in as its standard input, stdout is ours. 0 or an errno. */
static int spawn_dot(int in, pid_t *ret)
{
	char *const argv[] = {(char[]){"dot"}, (char[]){"-Tsvg"}, NULL};
	posix_spawn_file_actions_t actions;
	int e;

	if (posix_spawn_file_actions_init(&actions))
		abort();
	(void)posix_spawn_file_actions_adddup2(&actions, in, STDIN_FILENO);
	e = posix_spawnp(ret, argv[0], &actions, NULL, argv, environ);
	(void)posix_spawn_file_actions_destroy(&actions);
	return e;
}

static void feed(int fd, const char *text)
{
	size_t len = strlen(text), done = 0;

	while (done < len) {
		ssize_t n = write(fd, text + done, len - done);

		if (n < 0 && errno != EINTR)
			return; /* its status says why it went away */
		done += n > 0 ? (size_t)n : 0;
	}
}

/* Its status, as of waitpid(). A large subnet takes long to draw. */
static int wait_for_dot(pid_t pid)
{
	const struct timespec pause = {.tv_nsec = 50 * 1000 * 1000};
	bool shows = progress_wait_ms() >= 0;
	int status = 0;
	pid_t r;

	progress_begin();
	for (;;) {
		r = waitpid(pid, &status, shows ? WNOHANG : 0);
		if (r == pid || (r < 0 && errno != EINTR))
			break;
		if (r == 0) {
			progress_line("dot: drawing");
			(void)nanosleep(&pause, NULL);
		}
	}
	progress_clear();
	return status;
}

static int draw(const char *text)
{
	int ends[2], status, e;
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return cli_error("cannot make a pipe: %s", strerror(errno));
	(void)fflush(stdout);
	e = spawn_dot(ends[0], &pid);
	(void)close(ends[0]);
	if (e) {
		(void)close(ends[1]);
		if (e == ENOENT)
			return cli_error("Graphviz is not installed (no program dot): "
					 "apt install graphviz, or use --format dot");
		return cli_error("cannot run dot: %s", strerror(e));
	}
	(void)signal(SIGPIPE, SIG_IGN);
	feed(ends[1], text);
	(void)close(ends[1]);
	status = wait_for_dot(pid);
	(void)signal(SIGPIPE, SIG_DFL);
	if (WIFSIGNALED(status))
		return cli_error("dot was ended by signal %d", WTERMSIG(status));
	if (WEXITSTATUS(status))
		return cli_error("dot failed with status %d", WEXITSTATUS(status));
	return EXIT_OK;
}

int fabric_graph(struct cli *c)
{
	bool svg = str_eq(c->format, "svg");
	struct live v;
	char *text;
	int r;

	if (c->argc)
		return cli_usage("fabric graph takes no name, and '%s' is one",
				 c->argv[0]);
	if (c->format && !svg && !str_eq(c->format, "dot"))
		return cli_usage("--format is dot or svg, not '%s'", c->format);
	r = live_load(c, &v);
	if (r == EXIT_OK) {
		text = graph_text(&v);
		if (svg)
			r = draw(text);
		else
			(void)fputs(text, c->layout.out);
		free(text);
	}
	live_done(&v);
	return r;
}
