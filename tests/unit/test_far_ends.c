/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who is across an Ethernet wire: daemon/lldp.c with real programs in the place of
 * lldpcli, good ones and bad ones, and with label files. Time is the test's.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "manager.h"

#define SEC NSEC_PER_SEC

static struct {
	struct manager m;
	struct config config;
	struct device device;
	struct port_entry pe;
	struct lldp *lldp;
	struct mono now;
	char dir[64];
	/* the loop */
	loop_fd_fn *on_output;
	void *user;
	int fd;
	int asked, settled;
	char about[32], trouble[160]; /* what is not available, and why */
} w;

/* ---- the rest of main ---- */

struct mono loop_now(const struct loop *l)
{
	(void)l;
	return w.now;
}

struct loop_source *loop_fd(struct loop *l, int fd, unsigned events, loop_fd_fn *fn,
			    void *user)
{
	(void)l;
	assert_int_equal(events, LOOP_READ);
	w.on_output = fn;
	w.user = user;
	w.fd = fd;
	w.asked++;
	return (struct loop_source *)&w;
}

struct loop_source *loop_source_free(struct loop_source *s)
{
	if (s)
		w.fd = -1;
	return NULL;
}

void port_settle(struct manager *m, struct port_entry *pe, enum fact_source source)
{
	assert_ptr_equal(m, &w.m);
	assert_ptr_equal(pe, &w.pe);
	assert_int_equal(source, SOURCE_LLDP);
	w.settled++;
}

void manager_unavailable(struct manager *m, const char *what, const char *why)
{
	(void)m;
	if (!why && *w.about && strcmp(w.about, what))
		return;
	(void)str_copy(w.about, sizeof(w.about), why ? what : "");
	(void)str_copy(w.trouble, sizeof(w.trouble), why ? why : "");
}

/* ---- the stage ---- */

static char *in_dir(const char *name)
{
	static char path[128];

	(void)snprintf(path, sizeof(path), "%s/%s", w.dir, name);
	return path;
}

static void put(const char *name, const char *text, mode_t mode)
{
	FILE *f = fopen(in_dir(name), "we");

	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
	assert_int_equal(chmod(in_dir(name), mode), 0);
}

static void program(const char *script)
{
	put("lldpcli", script, 0755);
	(void)str_copy(w.config.lldp_command, sizeof(w.config.lldp_command),
		       in_dir("lldpcli"));
}

static int setup(void **state)
{
	(void)state;
	memset(&w, 0, sizeof(w));
	(void)str_copy(w.dir, sizeof(w.dir), "/tmp/fabd-far-XXXXXX");
	assert_non_null(mkdtemp(w.dir));
	w.now.ns = 1000 * SEC;
	w.fd = -1;
	w.m.config = &w.config;
	w.m.devices = &w.device;
	w.device.m = &w.m;
	w.device.ports = &w.pe;
	w.pe.device = &w.device;
	port_init(&w.pe.p, "mlx5_0", 3, 1, w.now);
	(void)port_set_text(&w.pe.p, PF_LINK_LAYER, "ethernet");
	(void)port_set_text(&w.pe.p, PF_NETDEV, "eth0");
	w.lldp = lldp_new(&w.m);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	w.lldp = lldp_free(w.lldp);
	port_done(&w.pe.p);
	(void)unlink(in_dir("lldpcli"));
	(void)unlink(in_dir("labels"));
	return rmdir(w.dir);
}

static void pass(int64_t ns)
{
	w.now = mono_add(w.now, ns);
	lldp_tick(w.lldp, w.now);
}

/* What the program says is read to its end, as the loop would; then it is reaped. */
static void read_all(void)
{
	while (w.fd >= 0) {
		struct pollfd p = {.fd = w.fd, .events = POLLIN};

		assert_int_equal(poll(&p, 1, 20000), 1);
		w.on_output(w.user, w.fd, LOOP_READ);
	}
}

static void until_told(const char *trouble)
{
	for (int i = 0; strcmp(w.trouble, trouble); i++) {
		struct pollfd none = {.fd = -1};

		assert_true(i < 20000);
		(void)poll(&none, 1, 1); /* the kernel has to say that it ended */
		lldp_tick(w.lldp, w.now);
	}
}

static void one_answer(void)
{
	(void)str_copy(w.trouble, sizeof(w.trouble), "not told");
	read_all();
	until_told("");
}

#define LEAF                                                                             \
	"#!/bin/sh\n"                                                                    \
	"[ \"$*\" = '-f json0 show neighbors' ] || exit 3\n"                             \
	"echo '{\"lldp\":[{\"interface\":[{\"name\":\"eth0\",\"chassis\":[{\"name\":"    \
	"[{\"value\":\"leaf07\"}]}],\"port\":[{\"id\":[{\"type\":\"ifname\",\"value\":"  \
	"\"Ethernet1/22\"}]}]}]}]}'\n"

/* ---- tests ---- */

static void lldpd_tells(void **state)
{
	(void)state;
	program(LEAF);
	pass(0);
	assert_int_equal(w.asked, 1);
	one_answer();
	assert_string_equal(w.pe.p.far_name, "leaf07/Ethernet1/22");
	assert_int_equal(w.pe.p.far_source, FAR_LLDP);
	assert_string_equal(w.pe.p.last_remote, "leaf07/Ethernet1/22");
	assert_int_equal(w.settled, 1);
	/* Every minute, and soon after a link has moved. */
	pass(59 * SEC);
	assert_int_equal(w.asked, 1);
	pass(1 * SEC);
	assert_int_equal(w.asked, 2);
	one_answer();
	lldp_soon(w.lldp);
	pass(2 * SEC);
	lldp_soon(w.lldp); /* another one does not put it off */
	assert_int_equal(w.asked, 2);
	pass(1 * SEC);
	assert_int_equal(w.asked, 3);
	one_answer();
	assert_int_equal(w.settled, 1);
	/* Nobody is heard there any more: who was there is remembered for the cable. */
	program("#!/bin/sh\necho '{\"lldp\":[{}]}'\n");
	pass(60 * SEC);
	one_answer();
	assert_string_equal(w.pe.p.far_name, "");
	assert_string_equal(w.pe.p.last_remote, "leaf07/Ethernet1/22");
}

/* valgrind makes a plain fork of it, and then nobody tells that there is no such program. */
static bool spawn_tells(void)
{
	char *argv[] = {in_dir("nothing"), NULL};
	pid_t pid;

	if (posix_spawn(&pid, argv[0], NULL, NULL, argv, environ))
		return true;
	(void)waitpid(pid, NULL, 0);
	return false;
}

static void a_host_without_ethernet_or_lldpd(void **state)
{
	(void)state;
	program(LEAF);
	(void)port_set_text(&w.pe.p, PF_LINK_LAYER, "infiniband");
	pass(0);
	pass(60 * SEC);
	assert_int_equal(w.asked, 0);
	(void)port_set_text(&w.pe.p, PF_LINK_LAYER, "ethernet");
	w.config.lldp_command[0] = '\0';
	pass(60 * SEC);
	assert_int_equal(w.asked, 0);
	(void)str_copy(w.config.lldp_command, sizeof(w.config.lldp_command),
		       in_dir("nothing"));
	if (!spawn_tells())
		return;
	pass(60 * SEC);
	assert_int_equal(w.asked, 0);
	assert_string_equal(w.trouble, "");
}

static void a_bad_program_changes_nothing(void **state)
{
	static const struct {
		const char *script, *trouble;
	} rows[] = {
		{"#!/bin/sh\nexit 1\n", "lldpcli failed"},
		{"#!/bin/sh\necho nonsense\n", "lldpcli answers no JSON"},
		{"#!/bin/sh\nkill -9 $$\n", "lldpcli did not end, or said too much"},
		{"#!/bin/sh\nexec yes\n", "lldpcli did not end, or said too much"},
	};

	(void)state;
	program(LEAF);
	pass(0);
	one_answer();
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		/* Two have the same: the second is to be waited for as well. */
		(void)str_copy(w.trouble, sizeof(w.trouble), "not told");
		program(rows[i].script);
		pass(60 * SEC);
		assert_int_equal(w.asked, 2 + (int)i);
		read_all();
		until_told(rows[i].trouble);
		assert_string_equal(w.pe.p.far_name, "leaf07/Ethernet1/22");
	}
	program(LEAF);
	pass(60 * SEC);
	one_answer();
}

static void one_that_hangs_is_killed(void **state)
{
	(void)state;
	program("#!/bin/sh\nexec sleep 1000\n");
	pass(0);
	pass(9 * SEC);
	assert_true(w.fd >= 0);
	/* While it runs nobody else is asked. */
	lldp_soon(w.lldp);
	pass(SEC / 2);
	assert_int_equal(w.asked, 1);
	pass(SEC / 2);
	assert_true(w.fd < 0);
	until_told("lldpcli did not end, or said too much");
}

/* Whoever holds the pipe, or has let go of it: nobody outlives the question. */
static void its_children_go_with_it(void **state)
{
	static const char *const scripts[] = {
		"#!/bin/sh\nmkfifo $(dirname $0)/fifo\n"
		"(exec 3<>$(dirname $0)/fifo; echo; exec sleep 1000) & sleep 1000\n",
		"#!/bin/sh\n(exec sleep 1000 <>$(dirname $0)/fifo >&0 2>&0) & echo '{\"lldp\":[]}'\n",
	};
	static const char *const told[] = {"lldpcli did not end, or said too much", ""};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(scripts); i++) {
		struct pollfd p = {.events = POLLIN};
		int fd;

		program(scripts[i]);
		pass(60 * SEC);
		(void)str_copy(w.trouble, sizeof(w.trouble), "not told");
		(void)poll(&(struct pollfd){.fd = w.fd, .events = POLLIN}, 1, 20000);
		if (i == 0)
			pass(10 * SEC);
		else
			read_all();
		until_told(told[i]);
		/* The last who had it open for writing has gone. */
		fd = open(in_dir("fifo"), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
		assert_true(fd >= 0);
		p.fd = fd;
		for (int k = 0; !(p.revents & POLLHUP) && k < 20000; k++) {
			char c;
			int probe = open(in_dir("fifo"), O_WRONLY | O_NONBLOCK | O_CLOEXEC);

			assert_true(probe >= 0);
			(void)close(probe);
			(void)!read(fd, &c, 1);
			(void)poll(&p, 1, 1);
		}
		assert_true(p.revents & POLLHUP);
		(void)close(fd);
	}
	(void)unlink(in_dir("fifo"));
}

static void labels_where_nobody_speaks(void **state)
{
	(void)state;
	(void)str_copy(w.config.label_file, sizeof(w.config.label_file), in_dir("labels"));
	put("labels", "# rack 4\neth0 leaf08 Ethernet7\n", 0644);
	pass(0);
	assert_string_equal(w.pe.p.far_name, "leaf08/Ethernet7");
	assert_int_equal(w.pe.p.far_source, FAR_LABEL);
	/* By the name of the port as well; and lldpd knows better. */
	put("labels", "mlx5_0/1 leaf09 Ethernet8 \n", 0644);
	w.lldp = lldp_free(w.lldp);
	w.lldp = lldp_new(&w.m);
	program(LEAF);
	pass(60 * SEC);
	assert_string_equal(w.pe.p.far_name, "leaf09/Ethernet8");
	one_answer();
	assert_string_equal(w.pe.p.far_name, "leaf07/Ethernet1/22");
	assert_int_equal(w.pe.p.far_source, FAR_LLDP);
}

static void a_bad_label_file_is_told(void **state)
{
	(void)state;
	(void)str_copy(w.config.label_file, sizeof(w.config.label_file), in_dir("labels"));
	pass(0);
	assert_string_equal(w.trouble, "No such file or directory");
	put("labels", "eth0 only-a-name\n", 0644);
	pass(60 * SEC);
	assert_non_null(strstr(w.trouble, "1"));
	assert_string_equal(w.pe.p.far_name, "");
	w.config.label_file[0] = '\0';
	pass(60 * SEC);
	assert_string_equal(w.pe.p.far_name, "");
	assert_string_equal(w.trouble, "");
}

static void a_label_file_that_went_comes_back(void **state)
{
	(void)state;
	(void)str_copy(w.config.label_file, sizeof(w.config.label_file), in_dir("labels"));
	put("kept", "eth0 leaf08 Ethernet7\n", 0644);
	assert_int_equal(link(in_dir("kept"), w.config.label_file), 0);
	pass(0);
	assert_string_equal(w.trouble, "");
	assert_int_equal(unlink(w.config.label_file), 0);
	pass(60 * SEC);
	assert_string_equal(w.trouble, "No such file or directory");
	assert_string_equal(w.pe.p.far_name, "leaf08/Ethernet7");
	assert_int_equal(link(in_dir("kept"), w.config.label_file), 0);
	pass(60 * SEC);
	assert_string_equal(w.trouble, "");
	assert_int_equal(truncate(w.config.label_file, 2 * 1024 * 1024), 0);
	pass(60 * SEC);
	assert_string_equal(w.trouble, "it is larger than 1 MiB");
	assert_string_equal(w.pe.p.far_name, "leaf08/Ethernet7");
	assert_int_equal(unlink(in_dir("kept")), 0);
}

#define TEST(t) cmocka_unit_test_setup_teardown(t, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(lldpd_tells),
		TEST(a_host_without_ethernet_or_lldpd),
		TEST(a_bad_program_changes_nothing),
		TEST(one_that_hangs_is_killed),
		TEST(its_children_go_with_it),
		TEST(labels_where_nobody_speaks),
		TEST(a_bad_label_file_is_told),
		TEST(a_label_file_that_went_comes_back),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
