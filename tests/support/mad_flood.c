/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mad-flood WORKER COUNT WINDOW [HOP...]: how many MADs fabd-mad carries. Plays a main
 * that keeps WINDOW directed-route Gets of PortInfo at the end of that path out, in
 * batches, until COUNT are answered, and prints what it cost, as JSON. The worker opens
 * the first port that it tells of.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "mad.h"
#include "worker.h"

#define GENERATION 1

static struct {
	int fd;
	uint64_t count, asked, answered, ok, messages;
	uint64_t window;
	struct wm_smp_gets gets;
	struct wm_smp_get get; /* as each is asked */
} g;

static int64_t clock_ns(clockid_t which)
{
	struct timespec ts;

	(void)clock_gettime(which, &ts);
	return (int64_t)ts.tv_sec * NSEC_PER_SEC + ts.tv_nsec;
}

static void die(const char *what)
{
	fprintf(stderr, "mad-flood: %s\n", what);
	exit(1);
}

static void say(void *m, enum wm_type type, size_t size)
{
	wm_header(m, type, size, GENERATION);
	if (send(g.fd, m, size, MSG_NOSIGNAL) < 0)
		die(strerror(errno));
}

static pid_t spawn(const char *worker)
{
	char fd[16];
	int sv[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sv) < 0)
		die("socketpair");
	(void)fcntl(sv[0], F_SETFD, FD_CLOEXEC);
	(void)snprintf(fd, sizeof(fd), "%d", sv[1]);
	pid = fork();
	if (!pid) {
		(void)execl(worker, worker, "--fd", fd, (char *)NULL);
		_exit(127);
	}
	(void)close(sv[1]);
	g.fd = sv[0];
	return pid;
}

static void ask(void)
{
	uint64_t n = MIN(g.count - g.asked, g.window - (g.asked - g.answered));

	while (n) {
		g.gets.n = (uint16_t)MIN(n, WM_SMPS_EACH);
		for (int i = 0; i < g.gets.n; i++) {
			g.gets.get[i] = g.get;
			g.gets.get[i].id = g.asked++;
		}
		n -= g.gets.n;
		say(&g.gets, WM_SMP_GETS,
		    offsetof(struct wm_smp_gets, get) +
			    g.gets.n * sizeof(g.gets.get[0]));
	}
}

static void receive(void)
{
	static union {
		uint8_t bytes[WM_MAX];
		struct wm_header h;
		struct wm_port port;
		struct wm_smp_results results;
	} m;
	ssize_t n = recv(g.fd, &m, sizeof(m), 0);
	char why[128];

	if (n <= 0 || wm_check(&m, (size_t)n, false, why, sizeof(why)))
		die(n <= 0 ? "the worker is gone" : why);
	if (m.h.type == WM_PORT && m.port.has_smi && !g.gets.device[0]) {
		(void)str_copy(g.gets.device, sizeof(g.gets.device), m.port.device);
		g.gets.port = m.port.port;
	}
	if (m.h.type != WM_SMP_RESULTS)
		return;
	g.messages++;
	g.answered += m.results.n;
	for (int i = 0; i < m.results.n; i++)
		g.ok += m.results.result[i].status == WM_MAD_OK;
}

int main(int argc, char *argv[])
{
	struct wm_init init = {.device_index = DEVICE_INDEX_NONE};
	struct rusage child;
	int64_t began, cpu, ns;
	int status;
	pid_t pid;

	if (argc < 4)
		return 2;
	g.count = strtoull(argv[2], NULL, 0);
	g.window = strtoull(argv[3], NULL, 0);
	g.get.attr = MAD_ATTR_PORT_INFO;
	g.get.timeout_ms = 1000;
	g.get.retries = 3;
	for (int i = 4; i < argc && g.get.hops < IB_HOPS_MAX; i++)
		g.get.path[++g.get.hops] = (uint8_t)atoi(argv[i]);
	pid = spawn(argv[1]);
	say(&init, WM_INIT, sizeof(init));
	while (!g.gets.device[0])
		receive();
	began = clock_ns(CLOCK_MONOTONIC);
	cpu = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	while (g.answered < g.count) {
		ask();
		receive();
	}
	ns = clock_ns(CLOCK_MONOTONIC) - began;
	cpu = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu;
	(void)close(g.fd);
	(void)wait4(pid, &status, 0, &child);
	printf("{\"mads\":%llu,\"ok\":%llu,\"messages\":%llu,\"ms\":%.1f,\"us_per_mad\":%.2f,"
	       "\"main_cpu_us\":%.2f,\"worker_cpu_us\":%.2f,\"worker_switches\":%ld}\n",
	       (unsigned long long)g.answered, (unsigned long long)g.ok,
	       (unsigned long long)g.messages, (double)ns / 1e6,
	       (double)ns / 1e3 / (double)g.answered,
	       (double)cpu / 1e3 / (double)g.answered,
	       ((double)child.ru_utime.tv_sec + (double)child.ru_stime.tv_sec) * 1e6 /
			       (double)g.answered +
		       (double)(child.ru_utime.tv_usec + child.ru_stime.tv_usec) /
			       (double)g.answered,
	       child.ru_nvcsw + child.ru_nivcsw);
	return 0;
}
