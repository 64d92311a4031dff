/* SPDX-License-Identifier: BSD-2-Clause */
/* fabd-mad: the only process that opens umad. See docs/architecture.md, "Processes". */
#include <errno.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <systemd/sd-daemon.h>
#include <time.h>
#include <unistd.h>

#include "log.h"
#include "mad_worker.h"

/* Connections are taken one after another; the newest main wins. */
#define BACKLOG 8

struct mad_main {
	struct mad_worker *worker;
	int listen_fd; /* -1: child of main on one connection */
	int signal_fd;
	int64_t watchdog_ns; /* interval, 0 = none */
	struct mono watchdog_at;
	bool stop;
	int status;
};

static const char *arg_device = "", *arg_listen;
static int arg_fd = -1;

static struct mono clock_read(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_MONOTONIC, &ts);
	return (struct mono){(int64_t)ts.tv_sec * NSEC_PER_SEC + ts.tv_nsec};
}

static void usage(FILE *f)
{
	fputs("usage: fabd-mad --fd N | --device NAME | --listen PATH [--device NAME]\n"
	      "  --fd N         connection to fabd, a SOCK_SEQPACKET socket\n"
	      "  --device NAME  serve this device alone; without --fd and --listen the\n"
	      "                 listening socket comes from systemd\n"
	      "  --listen PATH  make the listening socket\n"
	      "  --debug, --version, --help\n",
	      f);
}

static int parse_fd(const char *s)
{
	char *end;
	long v = strtol(s, &end, 10);

	return *s && !*end && v >= 0 && v <= 65535 ? (int)v : -1;
}

/* -1: go on; else the exit status. */
static int parse_options(int argc, char **argv)
{
	static const struct option options[] = {
		{"fd", required_argument, NULL, 'f'},
		{"device", required_argument, NULL, 'd'},
		{"listen", required_argument, NULL, 'l'},
		{"debug", no_argument, NULL, 'D'},
		{"version", no_argument, NULL, 'V'},
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};
	int c;

	while ((c = getopt_long(argc, argv, "h", options, NULL)) != -1) {
		switch (c) {
		case 'f':
			arg_fd = parse_fd(optarg);
			if (arg_fd < 0) {
				log_err("--fd: not a descriptor: %s", optarg);
				return 2;
			}
			break;
		case 'd':
			arg_device = optarg;
			break;
		case 'l':
			arg_listen = optarg;
			break;
		case 'D':
			log_level(LOG_DEBUG);
			break;
		case 'V':
			puts("fabd-mad " FABD_VERSION);
			return 0;
		case 'h':
			usage(stdout);
			return 0;
		default:
			usage(stderr);
			return 2;
		}
	}
	if (optind < argc || strlen(arg_device) >= DEVICE_NAME_MAX ||
	    (arg_fd >= 0 && arg_listen) ||
	    (arg_fd < 0 && !arg_listen && !arg_device[0])) {
		usage(stderr);
		return 2;
	}
	return -1;
}

/* ---- sockets ---- */

static int listen_on(const char *path)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	int fd, r;

	if (!str_copy(sa.sun_path, sizeof(sa.sun_path), path))
		return -ENAMETOOLONG;
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	(void)unlink(path);
	if (bind(fd, (struct sockaddr *)&sa, sizeof(sa)) < 0 || chmod(path, 0660) < 0 ||
	    listen(fd, BACKLOG) < 0) {
		r = -errno;
		(void)close(fd);
		return r;
	}
	return fd;
}

static int listen_from_systemd(void)
{
	int n = sd_listen_fds(1);

	if (n < 0)
		return n;
	if (n != 1 ||
	    sd_is_socket(SD_LISTEN_FDS_START, AF_UNIX, SOCK_SEQPACKET, 1) <= 0)
		return -ENOTSOCK;
	return SD_LISTEN_FDS_START;
}

static void on_connection(struct mad_main *m)
{
	struct ucred peer = {.pid = -1};
	socklen_t len = sizeof(peer);
	int fd = accept4(m->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd < 0) {
		if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
			log_errno(LOG_WARNING, -errno, "cannot accept a connection");
		return;
	}
	(void)getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len);
	log_info("connection of process %d, user %u", (int)peer.pid, peer.uid);
	mad_worker_attach(m->worker, fd);
}

static int open_sockets(struct mad_main *m)
{
	if (arg_fd >= 0) {
		if (sd_is_socket(arg_fd, AF_UNIX, SOCK_SEQPACKET, 0) <= 0)
			return log_errno(LOG_ERR, -ENOTSOCK, "--fd %d", arg_fd);
		mad_worker_attach(m->worker, arg_fd);
		return 0;
	}
	m->listen_fd = arg_listen ? listen_on(arg_listen) : listen_from_systemd();
	if (m->listen_fd < 0)
		return log_errno(LOG_ERR, m->listen_fd, "%s",
				 arg_listen ? arg_listen : "no listening socket");
	return 0;
}

/* ---- the loop ---- */

static void feed_watchdog(struct mad_main *m, struct mono now)
{
	if (!m->watchdog_ns ||
	    (mono_is_set(m->watchdog_at) && !mono_due(m->watchdog_at, now)))
		return;
	(void)sd_notify(0, "WATCHDOG=1");
	m->watchdog_at = mono_add(now, m->watchdog_ns);
}

static int timeout_ms(const struct mad_main *m, struct mono now)
{
	struct mono at = mono_first(mad_worker_deadline(m->worker), m->watchdog_at);
	int64_t left;

	if (!mono_is_set(at))
		return -1;
	left = mono_sub(at, now);
	/* Up, so that it is due when poll() returns. */
	return left <= 0 ? 0
			 : (int)MIN((left + NSEC_PER_MSEC - 1) / NSEC_PER_MSEC, 60000);
}

static void wait_for_work(struct mad_main *m)
{
	enum { SIGNAL, WAKE, LISTEN, MAIN };
	bool wants_write = false;
	struct pollfd p[] = {
		[SIGNAL] = {.fd = m->signal_fd, .events = POLLIN},
		[WAKE] = {.fd = mad_worker_wake_fd(m->worker), .events = POLLIN},
		[LISTEN] = {.fd = m->listen_fd, .events = POLLIN},
		[MAIN] = {.fd = mad_worker_fd(m->worker, &wants_write),
			  .events = POLLIN},
	};

	if (wants_write)
		p[MAIN].events |= POLLOUT;
	if (poll(p, ARRAY_LEN(p), timeout_ms(m, clock_read())) <= 0)
		return;
	if (p[SIGNAL].revents)
		m->stop = true;
	if (p[LISTEN].revents)
		on_connection(m);
}

static void run(struct mad_main *m)
{
	while (!m->stop) {
		struct mono now = clock_read();
		int r = mad_worker_turn(m->worker, now);

		feed_watchdog(m, now);
		if (r && !arg_listen) {
			/* Without main there is nothing to do. A child is started again
			 * by main; systemd starts us again for the next connection, the
			 * socket is its own. */
			m->status = r == -ECONNRESET ? 0 : 1;
			return;
		}
		if (r)
			continue;
		wait_for_work(m);
	}
}

static int start_signals(void)
{
	sigset_t set;

	(void)signal(SIGPIPE, SIG_IGN);
	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGTERM);
	(void)sigaddset(&set, SIGINT);
	(void)sigprocmask(SIG_BLOCK, &set, NULL);
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

int main(int argc, char **argv)
{
	struct mad_main m = {.listen_fd = -1};
	uint64_t usec = 0;
	int r;

	log_open("fabd-mad", LOG_INFO);
	r = parse_options(argc, argv);
	if (r >= 0)
		return r;
	m.signal_fd = start_signals();
	m.worker = mad_worker_new("", arg_device);
	if (m.signal_fd < 0 || open_sockets(&m) < 0) {
		mad_worker_free(m.worker);
		return 1;
	}
	if (sd_watchdog_enabled(0, &usec) > 0)
		m.watchdog_ns = (int64_t)usec * NSEC_PER_USEC / 2;
	(void)sd_notify(0, "READY=1");
	run(&m);
	(void)sd_notify(0, "STOPPING=1");
	/* By way of exit(), never by a signal: a simulator frees the place of a client
	 * only then. */
	m.worker = mad_worker_free(m.worker);
	return m.status;
}
