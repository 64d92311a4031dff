/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fabd-rdma: the worker of one RDMA device. Started by fabd with one end of a pair of
 * SOCK_SEQPACKET sockets; does what comes over it (proto/worker.h) and ends with it.
 */
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include "log.h"
#include "rdma.h"

static int parse_fd(const char *text)
{
	int type = 0;
	socklen_t len = sizeof(type);
	char *end;
	long fd;

	errno = 0;
	fd = strtol(text, &end, 10);
	if (errno || *end || end == text || fd < 0 || fd > 1 << 20)
		return -EINVAL;
	if (getsockopt((int)fd, SOL_SOCKET, SO_TYPE, &type, &len) < 0)
		return -errno;
	return type == SOCK_SEQPACKET ? (int)fd : -EPROTOTYPE;
}

int main(int argc, char *argv[])
{
	static const struct option options[] = {{"fd", required_argument, NULL, 'f'},
						{"version", no_argument, NULL, 'v'},
						{NULL, 0, NULL, 0}};
	int fd = -EBADF, o;

	log_open("fabd-rdma", LOG_INFO);
	while ((o = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (o) {
		case 'f':
			fd = parse_fd(optarg);
			break;
		case 'v':
			puts("fabd-rdma " FABD_VERSION);
			return 0;
		default:
			return 2;
		}
	}
	if (fd < 0) {
		log_errno(LOG_ERR, fd,
			  "--fd must name a SOCK_SEQPACKET socket; this program is "
			  "started by fabd");
		return 2;
	}
	/* The end of the pair is our signal to go: what is sent to the whole group of
	 * processes is for main. The library's resolver socket raises SIGPIPE. */
	(void)signal(SIGPIPE, SIG_IGN);
	(void)signal(SIGINT, SIG_IGN);
	(void)signal(SIGTERM, SIG_IGN);
	(void)signal(SIGHUP, SIG_IGN);
	/* Or a page of a ring or a stack costs 2 MB where it lies well for that. */
	(void)prctl(PR_SET_THP_DISABLE, 1UL, 0UL, 0UL, 0UL);
	/* Or every destroy on a device that has died fails and leaks. Read at the first
	 * verbs call. */
	(void)setenv("RDMAV_ALLOW_DISASSOC_DESTROY", "1", 1);
	return ctl_run(fd);
}
