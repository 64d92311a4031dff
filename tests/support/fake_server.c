/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fake_server - the real socket server in front of a host that does not exist
 * (fake_api.h): `fake_server SOCKET [ADMIN_SOCKET [BULK]]`. Prints "ready" when it
 * listens; a port flaps once a second; ends on SIGTERM.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "fake_api.h"
#include "log.h"
#include "varlink_server.h"

struct app {
	struct loop *loop;
	struct fake *fake;
	struct loop_source *flap;
};

static void on_flap(void *user, struct mono now)
{
	struct app *a = user;

	fake_flap(a->fake);
	loop_timer_at(a->flap, mono_add(now, NSEC_PER_SEC));
}

static void on_signal(void *user, int signo)
{
	struct app *a = user;

	(void)signo;
	loop_stop(a->loop);
}

int main(int argc, char **argv)
{
	struct app a = {.loop = loop_new()};
	struct monitor *m = monitor_new(random_u64());
	struct varlink_server *s;
	struct loop_source *signals[2];

	if (argc < 2 || argc > 4) {
		(void)fprintf(stderr,
			      "usage: fake_server SOCKET [ADMIN_SOCKET [BULK]]\n");
		return 2;
	}
	log_open("fake_server", LOG_INFO);
	a.fake = fake_new(m);
	if (argc > 3)
		fake_bulk(a.fake, atoi(argv[3]));
	s = varlink_server_new(a.loop, fake_api(a.fake), m, 64);
	for (int i = 1; i < argc && i < 3; i++) {
		const struct varlink_listen l = {
			.path = argv[i],
			.fd = -1,
			.admin = i == 2,
			.mode = i == 2 ? 0660 : 0666,
		};

		if (varlink_server_listen(s, &l) < 0)
			return 1;
	}
	a.flap = loop_timer(a.loop, on_flap, &a);
	loop_timer_at(a.flap, mono_add(clock_now(), NSEC_PER_SEC));
	signals[0] = loop_signal(a.loop, SIGTERM, on_signal, &a);
	signals[1] = loop_signal(a.loop, SIGINT, on_signal, &a);
	(void)printf("ready\n");
	(void)fflush(stdout);
	(void)loop_run(a.loop);
	varlink_server_free(s);
	loop_source_free(a.flap);
	loop_source_free(signals[0]);
	loop_source_free(signals[1]);
	fake_free(a.fake);
	monitor_free(m);
	loop_free(a.loop);
	return 0;
}
