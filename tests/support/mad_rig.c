/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <ftw.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "mad_rig.h"

#include "log.h"
#include "mad.h"

/* ---- a copy of sysfs ---- */

void put_file(struct ctx *c, const char *text, const char *fmt, ...)
{
	char path[512], rel[256];
	va_list ap;
	FILE *f;

	va_start(ap, fmt);
	(void)vsnprintf(rel, sizeof(rel), fmt, ap);
	va_end(ap);
	(void)snprintf(path, sizeof(path), "%s/sys/class/%s", c->root, rel);
	for (char *p = path + 1; (p = strchr(p, '/')); p++) {
		*p = '\0';
		(void)mkdir(path, 0755);
		*p = '/';
	}
	f = fopen(path, "w");
	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

void put_umad(struct ctx *c, int n, const char *device, int port)
{
	char text[128];

	(void)snprintf(text, sizeof(text), "%s\n", device);
	put_file(c, text, "infiniband_mad/umad%d/ibdev", n);
	put_file(c, text, "infiniband_mad/issm%d/ibdev", n);
	(void)snprintf(text, sizeof(text), "%d\n", port);
	put_file(c, text, "infiniband_mad/umad%d/port", n);
	put_file(c, text, "infiniband_mad/issm%d/port", n);
}

void put_port(struct ctx *c, const char *device, int port)
{
	static const char *const files[][2] = {
		{"state", "4: ACTIVE\n"},
		{"phys_state", "5: LinkUp\n"},
		{"lid", "0x1a\n"},
		{"lid_mask_count", "2\n"},
		{"sm_lid", "0x1\n"},
		{"sm_sl", "3\n"},
		{"cap_mask", "0x2651e848\n"},
		{"link_layer", "InfiniBand\n"},
		{"pkeys/0", "0xffff\n"},
		{"pkeys/1", "0x8001\n"},
		{"gids/0", "fe80:0000:0000:0000:0002:c903:0000:0001\n"},
		{"gids/1", "0000:0000:0000:0000:0000:0000:0000:0000\n"},
		{"gids/2", "fe80:0000:0000:0000:0000:0000:0000:00aa\n"},
		{"gid_attrs/types/0", "IB/RoCE v1\n"},
	};

	for (size_t i = 0; i < ARRAY_LEN(files); i++)
		put_file(c, files[i][1], "infiniband/%s/ports/%d/%s", device, port,
			 files[i][0]);
}

void put_device(struct ctx *c, const char *device)
{
	put_file(c, "1: CA\n", "infiniband/%s/node_type", device);
	put_file(c, "0002:c903:0000:0000\n", "infiniband/%s/node_guid", device);
	put_file(c, "0002:c903:0000:0003\n", "infiniband/%s/sys_image_guid", device);
	put_file(c, "28.39.1002\n", "infiniband/%s/fw_ver", device);
	put_file(c, "gpu0417 \x01HCA-1\n", "infiniband/%s/node_desc", device);
	put_file(c, "0\n", "infiniband/%s/hw_rev", device);
}

static int remove_one(const char *path, const struct stat *st, int flag,
		      struct FTW *ftw)
{
	(void)st;
	(void)flag;
	(void)ftw;
	return remove(path);
}

void remove_tree(struct ctx *c, const char *rel)
{
	char path[512];

	(void)snprintf(path, sizeof(path), "%s/%s", c->root, rel);
	(void)nftw(path, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

/* ---- main ---- */

int connect_main(struct ctx *c)
{
	int fds[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds), 0);
	mad_worker_attach(c->worker, fds[1]);
	return fds[0];
}

void say(struct ctx *c, enum wm_type type, void *msg, size_t size)
{
	wm_header(msg, type, size, GENERATION);
	assert_int_equal(send(c->main_fd, msg, size, 0), size);
}

void say_init(struct ctx *c, const char *device, uint32_t poll_ms)
{
	struct wm_init m = {.poll_ms = poll_ms, .device_index = 5};

	(void)str_copy(m.device, sizeof(m.device), device);
	say(c, WM_INIT, &m, sizeof(m));
}

void say_get(struct ctx *c, const char *device, uint8_t port)
{
	struct wm_smp_gets m = {.port = port, .n = 1};

	(void)str_copy(m.device, sizeof(m.device), device);
	m.get[0] = (struct wm_smp_get){.id = ++c->next_id,
				       .attr = MAD_ATTR_NODE_INFO,
				       .timeout_ms = 100};
	say(c, WM_SMP_GETS, &m, offsetof(struct wm_smp_gets, get) + sizeof(m.get[0]));
}

int turn(struct ctx *c)
{
	return mad_worker_turn(c->worker, c->now);
}

uint16_t next(struct ctx *c, void *buf)
{
	struct wm_header h;
	char why[128];
	ssize_t n = recv(c->main_fd, buf, WM_MAX, MSG_DONTWAIT);

	if (n <= 0)
		return 0;
	if (wm_check(buf, (size_t)n, false, why, sizeof(why)))
		fail_msg("%s", why);
	memcpy(&h, buf, sizeof(h));
	assert_int_equal(h.generation, GENERATION);
	return h.type;
}

void expect(struct ctx *c, void *buf, enum wm_type type)
{
	uint16_t got = next(c, buf);

	if (got != type)
		fail_msg("got %s, want %s", wm_type_name(got),
			 wm_type_name((uint16_t)type));
}

void expect_nothing(struct ctx *c)
{
	uint8_t buf[WM_MAX];

	assert_int_equal(turn(c), 0);
	assert_int_equal(next(c, buf), 0);
}

void expect_port(struct ctx *c, union wm_any *m)
{
	union wm_any t;

	expect(c, m, WM_PORT);
	expect(c, &t, WM_PKEYS);
	assert_true(t.pkeys.last);
	expect(c, &t, WM_GIDS);
	assert_true(t.gids.last);
}

void start(struct ctx *c, uint32_t poll_ms)
{
	union wm_any m;

	say_init(c, "", poll_ms);
	assert_int_equal(turn(c), 0);
	expect(c, &m, WM_HELLO);
	assert_int_equal(m.hello.kind, WORKER_MAD);
	assert_int_equal(m.hello.pid, getpid());
}

void expect_result(struct ctx *c, enum wm_mad_status status, int error)
{
	union wm_any m;

	assert_int_equal(turn(c), 0);
	expect(c, &m, WM_SMP_RESULTS);
	assert_int_equal(m.results.n, 1);
	assert_int_equal(m.results.result[0].id, c->next_id);
	assert_int_equal(m.results.result[0].status, status);
	assert_int_equal(m.results.result[0].error, error);
}

int setup(void **state)
{
	struct ctx *c = xcalloc(1, sizeof(*c));

	*state = c;
	fake_umad_begin();
	log_open("test", LOG_ERR);
	(void)str_copy(c->root, sizeof(c->root), "/tmp/fabd-sysfs-XXXXXX");
	if (!mkdtemp(c->root))
		return -1;
	put_umad(c, 0, "mlx5_0", 1);
	put_device(c, "mlx5_0");
	put_port(c, "mlx5_0", 1);
	c->now.ns = NSEC_PER_SEC;
	c->worker = mad_worker_new(c->root, "");
	c->main_fd = connect_main(c);
	return 0;
}

int teardown(void **state)
{
	struct ctx *c = *state;
	int wrongs;

	c->worker = mad_worker_free(c->worker);
	wrongs = fake_umad_end();
	(void)close(c->main_fd);
	remove_tree(c, "");
	free(c);
	return wrongs;
}

void wait_for_receiver(struct ctx *c)
{
	struct pollfd p = {.fd = mad_worker_wake_fd(c->worker), .events = POLLIN};

	assert_int_equal(poll(&p, 1, 5000), 1);
}
