/* SPDX-License-Identifier: BSD-2-Clause */
/* A preload library that writes down every MAD a process sends, and sends it:
 *
 *     UMAD_TAP=FILE LD_PRELOAD=libumad_tap.so:libumad2sim.so PROGRAM
 *
 * A line a MAD, appended to FILE: class, method, attribute and modifier in hexadecimal,
 * and where to: "0,1,7" by directed route, or "lid:12:1" (LID, queue pair). Each line
 * is one write, so that no process's end loses any and several may share the file. */
#include <dlfcn.h>
#include <fcntl.h>
#include <infiniband/umad.h>
#include <infiniband/umad_types.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CLASS_DIRECTED 0x81
#define HOP_COUNT      7
#define INITIAL_PATH   128
#define HOPS_MAX       63

typedef int send_fn(int fd, int agentid, void *umad, int length, int timeout_ms,
		    int retries);

static pthread_once_t once = PTHREAD_ONCE_INIT;
static send_fn *next_send;
static int tap_fd = -1;

static void die(const char *what)
{
	(void)fprintf(stderr, "umad_tap: %s\n", what);
	abort();
}

static void start(void)
{
	const char *path = getenv("UMAD_TAP");
	void *next = dlsym(RTLD_NEXT, "umad_send");

	if (!next)
		die("no umad_send after this one");
	memcpy(&next_send, &next, sizeof(next_send));
	if (!path)
		die("UMAD_TAP names no file");
	tap_fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
	if (tap_fd < 0)
		die("cannot open the file that UMAD_TAP names");
}

/* Where the MAD goes, as text. */
static int destination(char *to, size_t size, const struct ib_user_mad *umad,
		       const uint8_t *mad)
{
	int hops = mad[HOP_COUNT], n;

	if (mad[1] != CLASS_DIRECTED)
		return snprintf(to, size, "lid:%u:%u", be16toh(umad->addr.lid),
				be32toh(umad->addr.qpn));
	n = snprintf(to, size, "0");
	for (int i = 1; i <= hops && i <= HOPS_MAX; i++)
		n += snprintf(to + n, size - (size_t)n, ",%u", mad[INITIAL_PATH + i]);
	return n;
}

int umad_send(int fd, int agentid, void *umad, int length, int timeout_ms, int retries)
{
	const uint8_t *mad = umad_get_mad(umad);
	const struct umad_hdr *h = (const struct umad_hdr *)mad;
	char line[512];
	int n;

	(void)pthread_once(&once, start);
	n = snprintf(line, sizeof(line), "%02x %02x %04x %08x ", h->mgmt_class,
		     h->method, be16toh(h->attr_id), be32toh(h->attr_mod));
	n += destination(line + n, sizeof(line) - (size_t)n - 1, umad, mad);
	line[n++] = '\n';
	if (write(tap_fd, line, (size_t)n) != n)
		die("cannot write to the file that UMAD_TAP names");
	return next_send(fd, agentid, umad, length, timeout_ms, retries);
}
