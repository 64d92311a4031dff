/* SPDX-License-Identifier: BSD-2-Clause */
#include "shutdown.h"

#include <string.h>
#include <systemd/sd-bus.h>

#include "loop.h"

struct question {
	bool answered, goes_down;
};

static int on_answer(sd_bus_message *reply, void *user, sd_bus_error *error)
{
	struct question *q = user;
	const char *state;

	(void)error;
	q->answered = true;
	if (!sd_bus_message_is_method_error(reply, NULL) &&
	    sd_bus_message_read(reply, "v", "s", &state) >= 0)
		q->goes_down = !strcmp(state, "stopping");
	return 0;
}

/* A call that blocks would wait for the bus to say hello, for 25 s if need be. */
static void wait_for_answer(sd_bus *bus, struct question *q, int64_t patience_ns)
{
	struct mono end = mono_add(clock_now(), patience_ns);

	while (!q->answered) {
		int r = sd_bus_process(bus, NULL);
		int64_t left = mono_sub(end, clock_now());

		if (r < 0 || left <= 0)
			return;
		if (!r)
			(void)sd_bus_wait(bus, (uint64_t)left / NSEC_PER_USEC + 1);
	}
}

bool host_goes_down(int64_t patience_ns)
{
	struct question q = {0};
	sd_bus *bus = NULL;

	if (sd_bus_open_system(&bus) < 0)
		return false;
	if (sd_bus_call_method_async(bus, NULL, "org.freedesktop.systemd1",
				     "/org/freedesktop/systemd1",
				     "org.freedesktop.DBus.Properties", "Get", on_answer, &q, "ss",
				     "org.freedesktop.systemd1.Manager", "SystemState") >= 0)
		wait_for_answer(bus, &q, patience_ns);
	(void)sd_bus_close_unref(bus);
	return q.goes_down;
}
