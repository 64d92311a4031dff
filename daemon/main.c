/* SPDX-License-Identifier: BSD-2-Clause */
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "config_tool.h"
#include "log.h"
#include "manager.h"

static const char usage[] =
	"Usage: fabd [OPTION]...\n"
	"Own this host's RDMA ports, probe its peers, answer on a socket.\n"
	"\n"
	"  -c, --config=FILE       read FILE and FILE.d/ instead of /etc/fabd/fabd.conf\n"
	"      --check-config      name every mistake of the config and exit\n"
	"      --dump-config       print the config that would run and exit\n"
	"      --rdma-worker=PATH  start PATH as the worker of each device\n"
	"      --mad-worker=PATH   start PATH as the MAD worker of all umad devices\n"
	"  -d, --debug             log everything\n"
	"  -V, --version           print the version and exit\n"
	"  -h, --help              print this and exit\n"
	"\n"
	"Runs in the foreground. See fabd(8), fabd.conf(5), fabctl(1).\n";

enum { OPT_CHECK = 256, OPT_DUMP, OPT_RDMA, OPT_MAD };

static const struct option options[] = {
	{"config", required_argument, NULL, 'c'},
	{"check-config", no_argument, NULL, OPT_CHECK},
	{"dump-config", no_argument, NULL, OPT_DUMP},
	{"rdma-worker", required_argument, NULL, OPT_RDMA},
	{"mad-worker", required_argument, NULL, OPT_MAD},
	{"debug", no_argument, NULL, 'd'},
	{"version", no_argument, NULL, 'V'},
	{"help", no_argument, NULL, 'h'},
	{NULL, 0, NULL, 0},
};

static int run(const struct manager_options *opt)
{
	struct manager *m = manager_new(opt);
	int r;

	if (!m)
		return EXIT_FAILURE;
	r = manager_run(m);
	manager_free(m);
	return r;
}

int main(int argc, char **argv)
{
	struct manager_options opt = {0};
	int c, todo = 0;

	while ((c = getopt_long(argc, argv, "c:dVh", options, NULL)) >= 0) {
		switch (c) {
		case 'c':
			opt.config_path = optarg;
			break;
		case 'd':
			opt.debug = true;
			break;
		case OPT_CHECK:
		case OPT_DUMP:
			todo = c;
			break;
		case OPT_RDMA:
			opt.rdma_worker = optarg;
			break;
		case OPT_MAD:
			opt.mad_worker = optarg;
			break;
		case 'V':
			printf("fabd %s\n", FABD_VERSION);
			return EXIT_SUCCESS;
		case 'h':
			fputs(usage, stdout);
			return EXIT_SUCCESS;
		default:
			fputs("Try 'fabd --help'.\n", stderr);
			return 2;
		}
	}
	if (optind < argc) {
		fprintf(stderr, "fabd: unexpected argument '%s'\nTry 'fabd --help'.\n",
			argv[optind]);
		return 2;
	}
	if (todo == OPT_CHECK)
		return config_check_main(opt.config_path);
	if (todo == OPT_DUMP)
		return config_dump_main(opt.config_path);
	(void)signal(SIGPIPE, SIG_IGN);
	log_open("fabd", opt.debug ? LOG_DEBUG : LOG_INFO);
	return run(&opt);
}
