/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mad_rig.h - fabd-mad's worker on a copy of sysfs and a scripted libibumad, and the end
 * of its connection that main has.
 */
#pragma once

#include "mad/mad_worker.h"

#include "fake_umad.h"

#define GENERATION 7

struct ctx {
	char root[64];
	struct mad_worker *worker;
	int main_fd;
	struct mono now;
	uint64_t next_id;
};

union wm_any {
	uint8_t bytes[WM_MAX];
	struct wm_hello hello;
	struct wm_device device;
	struct wm_port port;
	struct wm_pkeys pkeys;
	struct wm_gids gids;
	struct wm_port_gone gone;
	struct wm_smp_results results;
	struct wm_mad_more more;
	struct wm_mad_answer answer;
	struct wm_notice notice;
	struct wm_goodbye goodbye;
	struct wm_pong pong;
};

int setup(void **state);
int teardown(void **state); /* number of things that were wrong */

/* The copy of sysfs: files below /sys/class. */
void put_file(struct ctx *c, const char *text, const char *fmt, ...) PRINTF_LIKE(3, 4);
void put_umad(struct ctx *c, int n, const char *device, int port);
void put_port(struct ctx *c, const char *device, int port);
void put_device(struct ctx *c, const char *device);
void remove_tree(struct ctx *c, const char *rel);

/* What main says. */
int connect_main(struct ctx *c);
void say(struct ctx *c, enum wm_type type, void *msg, size_t size);
void say_init(struct ctx *c, const char *device, uint32_t poll_ms);
void say_get(struct ctx *c, const char *device, uint8_t port);
int turn(struct ctx *c);

/* What main gets. The next message, which must pass main's own check; 0: none. */
uint16_t next(struct ctx *c, void *buf);
void expect(struct ctx *c, void *buf, enum wm_type type);
void expect_nothing(struct ctx *c);
/* PORT, then its tables. @m: the PORT. */
void expect_port(struct ctx *c, union wm_any *m);
/* INIT and HELLO. */
void start(struct ctx *c, uint32_t poll_ms);
void expect_result(struct ctx *c, enum wm_mad_status status, int error);
void wait_for_receiver(struct ctx *c);
