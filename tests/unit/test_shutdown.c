/* SPDX-License-Identifier: BSD-2-Clause */
/* A bus that cannot answer costs a stop no more than the patience that was given. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "loop.h"
#include "shutdown.h"

#define PATIENCE (100 * NSEC_PER_MSEC)
/* sd-bus itself waits 25 s. */
#define MUCH (10 * NSEC_PER_SEC)

static char path[64];

static void use_bus(void)
{
	char address[128];

	(void)snprintf(path, sizeof(path), "/tmp/fabd-bus-%d", (int)getpid());
	(void)snprintf(address, sizeof(address), "unix:path=%s", path);
	assert_int_equal(setenv("DBUS_SYSTEM_BUS_ADDRESS", address, 1), 0);
}

static int64_t time_of_no(void)
{
	struct mono start = clock_now();

	assert_false(host_goes_down(PATIENCE));
	return mono_sub(clock_now(), start);
}

static void no_bus(void **state)
{
	(void)state;
	use_bus();
	assert_true(time_of_no() < MUCH);
}

static void bus_that_is_silent(void **state)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int64_t took;

	(void)state;
	use_bus();
	(void)memcpy(sa.sun_path, path, sizeof(path));
	assert_int_equal(bind(fd, (struct sockaddr *)&sa, sizeof(sa)), 0);
	assert_int_equal(listen(fd, 1), 0);
	took = time_of_no();
	assert_true(took >= PATIENCE && took < MUCH);
	(void)close(fd);
	(void)unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_bus),
		cmocka_unit_test(bus_that_is_silent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
