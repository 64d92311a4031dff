/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <ctype.h>
#include <malloc.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "config_int.h"

#define MSEC INT64_C(1000000)

static struct config_problems problems;

static struct config *parse_len(const char *text, size_t len)
{
	config_problems_done(&problems);
	return config_parse(text, len, "test.conf", false, &problems);
}

static struct config *parse(const char *text)
{
	return parse_len(text, strlen(text));
}

static struct config *parse_good(const char *text)
{
	struct config *c = parse(text);

	if (problems.n)
		print_error("%s:%d: %s\n", problems.p[0].file, problems.p[0].line,
			    problems.p[0].text);
	assert_int_equal(problems.n, 0);
	return c;
}

/* Problem @i is on @line and has @part in it. */
static void assert_problem(int i, int line, const char *part)
{
	assert_true(i < problems.n);
	if (!strstr(problems.p[i].text, part))
		fail_msg("'%s' is not in '%s'", part, problems.p[i].text);
	assert_int_equal(problems.p[i].line, line);
	assert_string_equal(problems.p[i].file, "test.conf");
}

/* ---- the table ---- */

static void every_row_is_whole(void **state)
{
	(void)state;
	for (size_t i = 0; i < config_n_rows; i++) {
		const struct config_row *r = &config_rows[i];
		char text[256];

		assert_non_null(r->key);
		assert_true(isupper((unsigned char)r->key[0]));
		assert_true(strlen(r->help) > 10 && strlen(r->help) < 200);
		assert_true(r->size > 0);
		assert_true((r->type == ROW_ENUM) == (r->names != NULL));
		assert_int_equal(r->type == ROW_TIME,
				 strlen(r->key) > 3 &&
					 str_eq(r->key + strlen(r->key) - 3, "Sec") &&
					 !strstr(r->key, "PerSec"));
		config_row_range(r, text, sizeof(text));
		assert_true(strlen(text) > 4);
		/* a key is found, and found once in each section it stands in */
		for (int s = 0; s < SECTION__MAX; s++)
			if (config_row_in(r, (enum config_section)s))
				assert_ptr_equal(
					config_row_find((enum config_section)s, r->key),
					r);
	}
}

static void defaults_are_valid_and_known(void **state)
{
	struct config *c = parse_good("");

	(void)state;
	for (size_t i = 0; i < config_n_rows; i++) {
		const struct config_row *r = &config_rows[i];
		_cleanup_(freep) void *base =
			xcalloc(1, sizeof(struct config_peer) + sizeof(struct config));
		char err[CONFIG_ERR_MAX];

		if (*r->def)
			assert_int_equal(config_value_parse(r, base, r->def, true, err),
					 0);
	}
	assert_string_equal(c->listen, "/run/fabd/fabd.sock");
	assert_string_equal(c->admin_listen, "/run/fabd/fabd-admin.sock");
	assert_string_equal(c->state_dir, "/var/lib/fabd");
	assert_int_equal(c->control_port, 18777);
	assert_true(c->start_budget == 20);
	assert_int_equal(c->probe->transports, 0);
	assert_int_equal(c->probe->heartbeat, 1000 * MSEC);
	assert_int_equal(c->probe->multiplier, 3);
	assert_int_equal(c->probe->ping, 10000 * MSEC);
	assert_int_equal(c->probe->backoff_min, 1000 * MSEC);
	assert_int_equal(c->probe->backoff_max, 60000 * MSEC);
	assert_int_equal(c->poll, 1000 * MSEC);
	assert_int_equal(c->remote_poll, 60000 * MSEC);
	assert_int_equal(c->worker_silence, 2000 * MSEC);
	assert_int_equal(c->worker_remove_grace, 500 * MSEC);
	assert_int_equal(c->n_peers, 0);
	config_free(c);
}

/* A value just in and just out of the range of every row that has one. */
static void ranges_hold(void **state)
{
	char err[CONFIG_ERR_MAX], text[64], buf[32];

	(void)state;
	for (size_t i = 0; i < config_n_rows; i++) {
		const struct config_row *r = &config_rows[i];
		_cleanup_(freep) void *base =
			xcalloc(1, sizeof(struct config_peer) + sizeof(struct config));
		double out[2] = {r->min - 1, r->max + 1}, in[2] = {r->min, r->max};

		if (r->type != ROW_TIME && r->type != ROW_COUNT && r->type != ROW_SIZE)
			continue;
		for (int k = 0; k < 2; k++) {
			(void)snprintf(text, sizeof(text), "%.0f%s", in[k],
				       r->type == ROW_TIME ? "ns" : "");
			assert_int_equal(config_value_parse(r, base, text, true, err),
					 0);
			(void)snprintf(text, sizeof(text), "%.0f%s", out[k],
				       r->type == ROW_TIME ? "ns" : "");
			assert_int_equal(config_value_parse(r, base, text, true, err),
					 -EINVAL);
		}
		if (r->type == ROW_TIME)
			assert_string_not_equal(config_time_text((int64_t)r->max, buf),
						"");
	}
}

/* ---- values ---- */

static void times(void **state)
{
	static const struct {
		const char *text;
		int64_t ms; /* -1: refused */
	} all[] = {
		{"300ms", 300},	     {"1s", 1000},
		{"2min", 120000},    {"1h", 3600000},
		{"5", 5000},	     {"0.5", 500},
		{".5s", 500},	     {"1.5 s", 1500},
		{"1min 30s", 90000}, {"1min30s", 90000},
		{"2m", 120000},	     {"3sec", 3000},
		{"500000us", 500},   {"", -1},
		{"s", -1},	     {"-1s", -1},
		{"1 2", -1},	     {"1s 2", 3000},
		{"1x", -1},	     {"1e3", -1},
		{"inf", -1},	     {"99999999999999999999999h", -1},
		{"1s,", -1},	     {"1.2.3s", -1},
		{"0x10", -1},	     {"+1s", -1},
	};
	const struct config_row *r = config_row_find(SECTION_PROBE, "HeartbeatSec");

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(all); i++) {
		struct config_probe p = {0};
		char err[CONFIG_ERR_MAX];
		int ret = config_value_parse(r, &p, all[i].text, true, err);

		if (ret != (all[i].ms < 0 ? -EINVAL : 0) ||
		    (ret == 0 && p.heartbeat != all[i].ms * MSEC))
			fail_msg("'%s' gives %d, %lld ns", all[i].text, ret,
				 (long long)p.heartbeat);
	}
}

static void times_print_and_read_alike(void **state)
{
	const struct config_row *r = config_row_find(SECTION_PROBE, "BackoffMaxSec");
	uint64_t rnd = 1;

	(void)state;
	for (int i = 0; i < 20000; i++) {
		struct config_probe p = {0};
		char buf[32], err[CONFIG_ERR_MAX];
		int64_t ns;

		rnd = mix64(rnd);
		ns = (int64_t)(rnd % (uint64_t)(r->max - r->min)) + (int64_t)r->min;
		if (i & 1)
			ns -= ns % (1000 * MSEC);
		if (ns < (int64_t)r->min)
			continue;
		assert_int_equal(
			config_value_parse(r, &p, config_time_text(ns, buf), true, err),
			0);
		assert_true(p.backoff_max == ns);
	}
}

static void booleans(void **state)
{
	static const char *const yes[] = {"yes", "true", "1", "on", "YES"};
	static const char *const no[] = {"no", "false", "0", "off", "Off"};
	const struct config_row *r = config_row_find(SECTION_PROBE, "AllowFast");
	struct config_probe p = {0};
	char err[CONFIG_ERR_MAX];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(yes); i++) {
		assert_int_equal(config_value_parse(r, &p, yes[i], true, err), 0);
		assert_true(p.allow_fast);
		assert_int_equal(config_value_parse(r, &p, no[i], true, err), 0);
		assert_false(p.allow_fast);
	}
	assert_int_equal(config_value_parse(r, &p, "2", true, err), -EINVAL);
	assert_int_equal(config_value_parse(r, &p, "yess", true, err), -EINVAL);
}

static void lists_append_and_clear(void **state)
{
	struct config *c = parse_good("[Fabd]\nControlAddress=10.0.0.1\n"
				      "ControlAddress=10.0.0.2 10.0.0.3\n"
				      "Accept=10.0.0.0/8\nAccept=\nAccept=fd00::/8\n"
				      "[Ports]\nDevices=a*\nDevices=b*\n"
				      "IgnoreDevices=x\nIgnoreDevices=\n"
				      "[Probe]\nTransports=rc\nTransports=udp\n"
				      "[Peer p]\nAddress=10.0.0.9\nTransports=rc\n"
				      "[Peer q]\nAddress=10.0.0.8\nTransports=rc\n"
				      "Transports=\n");

	(void)state;
	assert_int_equal(c->n_control_addrs, 3);
	assert_int_equal(c->n_accept, 1);
	assert_int_equal(c->accept[0].bits, 8);
	assert_string_equal(c->devices, "a* b*");
	assert_string_equal(c->ignore_devices, "");
	assert_int_equal(c->probe->transports, 1 << TRANSPORT_RC | 1 << TRANSPORT_UDP);
	assert_int_equal(c->peers[0].probe->transports, 1 << TRANSPORT_RC);
	assert_int_equal(c->peers[1].probe->transports, c->probe->transports);
	config_free(c);
}

/* A list that cannot take all of an assignment takes none of it. */
static void refused_lists_stay(void **state)
{
	struct config *c =
		parse("[Fabd]\nAccept=10.0.0.0/8\nAccept=10.1.0.0/16 nonsense\n");

	(void)state;
	assert_int_equal(problems.errors, 1);
	assert_int_equal(c->n_accept, 1);
	config_free(c);
}

/* ---- sections, inheritance, what is left out ---- */

static void peers_inherit_whatever_the_order(void **state)
{
	struct config *c = parse_good(
		"[Peer a]\nAddress=10.0.0.1\nHeartbeatSec=2s\nDetectMultiplier=9\n"
		"DetectMultiplier=\n"
		"[Probe]\nHeartbeatSec=3s\nDetectMultiplier=5\nTrafficClass=104\n"
		"[Fabd]\nControlPort=19000\n"
		"[Peer b]\nAddress=10.0.0.2\nPort=20000\n");

	(void)state;
	assert_int_equal(c->n_peers, 2);
	assert_int_equal(c->peers[0].probe->heartbeat, 2000 * MSEC);
	assert_int_equal(c->peers[0].probe->multiplier, 5);
	assert_int_equal(c->peers[0].probe->traffic_class, 104);
	assert_int_equal(c->peers[0].port, 19000);
	assert_int_equal(c->peers[1].probe->heartbeat, 3000 * MSEC);
	assert_int_equal(c->peers[1].port, 20000);
	assert_int_equal(c->peers[0].line, 1);
	assert_string_equal(c->peers[0].file, "test.conf");
	config_free(c);
}

static void bad_rows_take_defaults_bad_peers_go(void **state)
{
	struct config *c = parse("[Probe]\nHeartbeatSec=soon\n"
				 "[Peer a]\nAddress=10.0.0.1\nPingSec=never\n"
				 "[Peer b]\nAddress=10.0.0.300\n"
				 "[Peer c]\nAddress=10.0.0.3\nTransports=xrc\n"
				 "[Peer d]\nAddress=10.0.0.4\n");

	(void)state;
	assert_int_equal(problems.errors, 4);
	assert_problem(3, 10, "not a transport");
	assert_int_equal(c->n_peers, 2);
	assert_string_equal(c->peers[0].name, "a");
	assert_int_equal(c->peers[0].probe->ping, 10000 * MSEC);
	assert_string_equal(c->peers[1].name, "d");
	assert_int_equal(c->peers[1].probe->heartbeat, 1000 * MSEC);
	config_free(c);
}

static void heartbeat_floor(void **state)
{
	struct config *c;

	(void)state;
	c = parse_good("[Probe]\nHeartbeatSec=100ms\n");
	config_free(c);
	c = parse_good("[Probe]\nHeartbeatSec=10ms\nAllowFast=yes\n");
	assert_int_equal(c->probe->heartbeat, 10 * MSEC);
	config_free(c);
	c = parse("[Probe]\nHeartbeatSec=99ms\n");
	assert_int_equal(problems.errors, 1);
	assert_problem(0, 2, "AllowFast=yes");
	assert_int_equal(c->probe->heartbeat, 1000 * MSEC);
	config_free(c);
	c = parse_good("[Probe]\nMinReceiveSec=10ms\n[Peer a]\nAddress=10.0.0.1\n");
	config_free(c);
	c = parse("[Probe]\nMinReceiveSec=9ms\n[Peer a]\nAddress=10.0.0.1\nMinReceiveSec=1ms\n");
	assert_problem(0, 2, "neither 0 nor from 10ms on");
	assert_int_equal(c->probe->min_receive, 0);
	config_free(c);
	c = parse("[Probe]\nHeartbeatSec=9ms\nAllowFast=yes\n");
	assert_problem(0, 2, "out of range");
	config_free(c);
	/* the peer forbids what it inherits */
	c = parse(
		"[Probe]\nHeartbeatSec=20ms\nAllowFast=yes\n[Peer a]\nAddress=10.0.0.1\n"
		"AllowFast=no\n");
	assert_problem(0, 6, "peer a: HeartbeatSec=");
	assert_int_equal(c->peers[0].probe->heartbeat, 20 * MSEC);
	assert_true(c->peers[0].probe->allow_fast);
	config_free(c);
}

static void twice_names_both_places(void **state)
{
	struct config *c =
		parse("[Peer a]\nAddress=10.0.0.1\n\n[Peer a]\nAddress=10.0.0.2\n"
		      "[Port mlx5_0/1]\n[Port mlx5_0:1]\n");

	(void)state;
	assert_int_equal(problems.n, 2);
	assert_problem(0, 4, "test.conf:1");
	assert_problem(1, 7, "test.conf:6");
	assert_int_equal(c->n_peers, 1);
	assert_int_equal(c->peers[0].n_addrs, 1);
	assert_int_equal(c->n_ports, 1);
	config_free(c);
}

static void unknown_is_not_an_error(void **state)
{
	struct config *c = parse("[Fabd]\nHartbeatSec=1s\n[Prob]\nx=1\n");

	(void)state;
	assert_int_equal(problems.errors, 0);
	assert_int_equal(problems.unknown, 2);
	assert_problem(0, 2, "did you mean HeartbeatSec= of [Probe]?");
	assert_problem(1, 3, "did you mean [Probe]?");
	config_free(c);
}

static void ports_are_found(void **state)
{
	struct config *c = parse_good("[Port mlx5_0:1]\nHealth=bad\nExpected=yes\n"
				      "Address=10.0.0.1\n[Ports]\nDevices=mlx5_* rxe?\n"
				      "IgnoreDevices=mlx5_9\n");
	const struct config_port *p = config_port_find(c, "mlx5_0/1");

	(void)state;
	assert_non_null(p);
	assert_int_equal(p->health, OVERRIDE_BAD);
	assert_true(p->expected);
	assert_int_equal(p->addr.family, 4);
	assert_ptr_equal(config_port_find(c, "mlx5_0:1"), p);
	assert_null(config_port_find(c, "mlx5_0/2"));
	assert_null(config_port_find(c, "nonsense"));
	assert_true(config_wants_device(c, "mlx5_0"));
	assert_true(config_wants_device(c, "rxe0"));
	assert_false(config_wants_device(c, "rxe10"));
	assert_false(config_wants_device(c, "mlx5_9"));
	config_free(c);
}

static void addresses_of_peers(void **state)
{
	struct config *c =
		parse_good("[Peer a]\nAddress=10.0.0.1\nAddress=fe80::1%ib0\n"
			   "Address=gpu-1.example.org\nRail=red\n");
	const struct config_peer *p = &c->peers[0];

	(void)state;
	assert_int_equal(p->n_addrs, 3);
	assert_int_equal(p->addrs[0].addr.family, 4);
	assert_int_equal(p->addrs[1].addr.family, 6);
	assert_string_equal(p->addrs[1].zone, "ib0");
	assert_int_equal(p->addrs[2].addr.family, 0);
	assert_string_equal(p->addrs[2].text, "gpu-1.example.org");
	assert_int_equal(p->n_rails, 1);
	config_free(c);
}

static void peers_compare(void **state)
{
	static const char base[] = "[Peer a]\nAddress=10.0.0.1\nRail=red\n";
	static const char *const changes[] = {
		"Address=10.0.0.2\n",	 "Transports=rc\n", "HeartbeatSec=2s\n",
		"KeyFile=/etc/fabd/k\n", "Port=1\n",	    "TrafficClass=1\n",
		"Source=10.0.0.7\n",	 "ProbeSize=100\n", "Authentication=off\n",
		"DetectMultiplier=4\n",	 "AllowFast=yes\n", "Rail=\n",
	};
	struct config *a = parse_good(base), *b = parse_good(base);

	(void)state;
	assert_true(config_peer_equal(&a->peers[0], &b->peers[0]));
	/* where it stands does not matter */
	b->peers[0].line = 7;
	assert_true(config_peer_equal(&a->peers[0], &b->peers[0]));
	/* the same keys in another file, other keys in the same file */
	a->peers[0].probe->keys.n = b->peers[0].probe->keys.n = 1;
	a->peers[0].probe->keys.key[0].len = b->peers[0].probe->keys.key[0].len = 32;
	(void)str_copy(b->peers[0].probe->key_file, CONFIG_PATH_MAX, "/other");
	assert_true(config_peer_equal(&a->peers[0], &b->peers[0]));
	b->peers[0].probe->keys.key[0].secret[3] = 1;
	assert_true(config_peer_equal(&a->peers[0], &b->peers[0]));
	b->peers[0].probe->keys.n = 0;
	assert_false(config_peer_equal(&a->peers[0], &b->peers[0]));
	config_free(a);
	a = parse_good(base);
	for (size_t i = 0; i < ARRAY_LEN(changes); i++) {
		_cleanup_(freep) char *text = xasprintf("%s%s", base, changes[i]);

		config_free(b);
		b = parse_good(text);
		if (config_peer_equal(&a->peers[0], &b->peers[0]))
			fail_msg("equal in spite of %s", changes[i]);
	}
	config_free(a);
	config_free(b);
}

/* ---- key files and drop-ins ---- */

static char dir[] = "/tmp/fabd-test-config-XXXXXX";

static char *put(const char *name, const char *text, mode_t mode)
{
	char *path = xasprintf("%s/%s", dir, name);
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
	assert_int_equal(chmod(path, mode), 0);
	return path;
}

static struct config *parse_keys(const char *key_file, const char *more)
{
	_cleanup_(freep) char *text =
		xasprintf("[Probe]\nKeyFile=%s\n%s\n[Peer a]\nAddress=10.0.0.1\n"
			  "[Peer b]\nAddress=10.0.0.2\n",
			  key_file, more);

	config_problems_done(&problems);
	return config_parse(text, strlen(text), "test.conf", true, &problems);
}

static void key_files(void **state)
{
	static const char key[] = "00112233445566778899aabbccddeeff0011223344556677\n";
	_cleanup_(freep) char *good = put("good.key", key, 0640);
	_cleanup_(freep) char *open = put("open.key", key, 0644);
	_cleanup_(freep) char *bad = put("bad.key", "# nothing\n00112233zz\n", 0600);
	_cleanup_(freep) char *dump = NULL;
	struct config *c = parse_keys(good, "");

	(void)state;
	assert_int_equal(problems.n, 0);
	assert_int_equal(c->n_peers, 2);
	assert_int_equal(c->peers[0].probe->keys.n, 1);
	assert_int_equal(c->probe->keys.n, 1);
	/* the key itself is nowhere to be seen */
	dump = config_dump(c);
	assert_non_null(strstr(dump, good));
	assert_null(strstr(dump, "00112233"));
	config_free(c);

	c = parse_keys(open, ""); /* said once, not once per peer */
	assert_int_equal(problems.n, 1);
	assert_int_equal(problems.errors, 0);
	assert_problem(0, 2, "read by everyone");
	assert_int_equal(c->n_peers, 2);
	config_free(c);

	c = parse_keys(bad, "");
	assert_int_equal(problems.n, 1);
	assert_int_equal(problems.errors, 1);
	assert_null(strstr(problems.p[0].text, "00112233"));
	assert_int_equal(c->n_peers, 0); /* never spoken to unsigned */
	config_free(c);

	c = parse_keys("/nonexistent", "Authentication=off\n");
	assert_int_equal(problems.errors, 0);
	assert_int_equal(problems.n, 1);
	assert_int_equal(c->n_peers, 2);
	config_free(c);

	c = parse_keys("not-absolute", "");
	assert_int_equal(problems.errors, 1);
	assert_int_equal(c->n_peers, 0);
	config_free(c);
	(void)unlink(good);
	(void)unlink(open);
	(void)unlink(bad);
}

static void drop_ins(void **state)
{
	_cleanup_(freep) char *main_file =
		put("m.conf", "\xef\xbb\xbf[Fabd]\nMaxClients=5 \\", 0644);
	_cleanup_(freep) char *d = xasprintf("%s/m.conf.d", dir);
	_cleanup_(freep) char *again = NULL, *dump_a = NULL, *dump_b = NULL;
	char *b, *a, *other, *hidden;
	struct config *c, *copy;

	(void)state;
	assert_int_equal(mkdir(d, 0755), 0);
	b = put("m.conf.d/20-b.conf", "[Probe]\nTrafficClass=2\n", 0644);
	a = put("m.conf.d/10-a.conf",
		"MaxClients=9\n[Probe]\nTrafficClass=1\nPingSec=5\n[Peer a]\n"
		"Address=10.0.0.1\n",
		0644);
	other = put("m.conf.d/30-c.txt", "[Probe]\nTrafficClass=3\n", 0644);
	hidden = put("m.conf.d/.40.conf", "[Probe]\nTrafficClass=4\n", 0644);
	config_problems_done(&problems);
	c = config_load(main_file, &problems, &again);
	assert_int_equal(c->probe->traffic_class, 2);
	assert_int_equal(c->probe->ping, 5000 * MSEC);
	assert_int_equal(c->n_peers, 1);
	assert_string_equal(c->peers[0].file, a);
	assert_true(c->node_name[0] != '\0');
	/* the main file ends in a joined line; no section reaches into the next file */
	assert_int_equal(problems.errors, 1);
	assert_non_null(strstr(problems.p[1].text, "before the first [SECTION]"));
	assert_string_equal(problems.p[1].file, a);
	assert_int_equal(c->max_clients, 5);

	/* the copy for the state directory says the same, but for that mistake */
	copy = parse(again);
	(void)str_copy(copy->node_name, sizeof(copy->node_name), c->node_name);
	copy->max_clients = c->max_clients;
	dump_a = config_dump(c);
	dump_b = config_dump(copy);
	assert_string_equal(dump_a, dump_b);
	config_free(copy);
	config_free(c);

	config_problems_done(&problems);
	c = config_load("/nonexistent/fabd.conf", &problems, NULL);
	assert_int_equal(problems.errors, 1);
	assert_int_equal(c->control_port, 18777);
	config_free(c);
	config_problems_done(&problems);
	c = config_load(dir, &problems, NULL);
	assert_int_equal(problems.errors, 1);
	config_free(c);

	char *const all[] = {a, b, other, hidden, main_file};

	for (size_t i = 0; i < ARRAY_LEN(all); i++)
		(void)unlink(all[i]);
	(void)rmdir(d);
	free(a);
	free(b);
	free(other);
	free(hidden);
}

static void drop_ins_replace_each_other(void **state)
{
	_cleanup_(freep) char *lib = xasprintf("%s/lib", dir),
			      *run = xasprintf("%s/run", dir);
	_cleanup_(freep) char *etc = xasprintf("%s/etc", dir), *none = NULL;
	_cleanup_(freep) char *mask = xasprintf("%s/etc/30.conf", dir);
	const char *const dirs[] = {lib, run, etc, "/nonexistent"};
	char *files[5];
	struct config *c;

	(void)state;
	assert_int_equal(mkdir(lib, 0755) | mkdir(run, 0755) | mkdir(etc, 0755), 0);
	files[0] = put("lib/10.conf", "[Probe]\nTrafficClass=10\nAckTimeout=1\n", 0644);
	files[1] = put("lib/30.conf", "[Probe]\nDetectMultiplier=30\n", 0644);
	files[2] = put("lib/40.conf", "[Probe]\nProbeSmall=40\n", 0644);
	files[3] = put("run/40.conf", "[Probe]\nProbeSmall=41\n", 0644);
	files[4] = put("etc/10.conf", "[Probe]\nTrafficClass=11\n", 0644);
	assert_int_equal(symlink("/dev/null", mask), 0);
	none = xasprintf("%s/none.conf", dir);
	config_problems_done(&problems);
	c = config_load_from(none, true, dirs, ARRAY_LEN(dirs), &problems, NULL);
	assert_int_equal(problems.n, 0);
	assert_int_equal(c->probe->traffic_class, 11);
	assert_int_equal(c->probe->ack_timeout, 0); /* lib/10.conf was not read at all */
	assert_int_equal(c->probe->multiplier, 3);  /* masked */
	assert_int_equal(c->probe->probe_small, 41);
	config_free(c);
	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		(void)unlink(files[i]);
		free(files[i]);
	}
	(void)unlink(mask);
	assert_int_equal(rmdir(lib) | rmdir(run) | rmdir(etc), 0);
}

/* ---- the whole ---- */

static void add_random_value(const struct config_row *r, uint64_t *rnd, char *out,
			     size_t size)
{
	double span = r->max - r->min, v;
	uint64_t x;

	*rnd = mix64(*rnd);
	x = *rnd;
	v = r->min + span * ((double)(x % 1000) / 999);
	switch (r->type) {
	case ROW_BOOL:
		str_append(out, size, "%s", x & 1 ? "yes" : "off");
		break;
	case ROW_COUNT:
	case ROW_SIZE:
		str_append(out, size, "%.0f", v);
		break;
	case ROW_RATE:
		str_append(out, size, "%.1fG", v / 1000);
		break;
	case ROW_SHARE:
		str_append(out, size, x & 1 ? "%u%%" : "%u", (unsigned)(x >> 8) % 101);
		break;
	case ROW_REAL:
		str_append(out, size, "%.7f", v);
		break;
	case ROW_TIME:
		str_append(out, size, "%.0f%s", x & 1 ? v / 1000 + 1 : v,
			   x & 1 ? "us" : "ns");
		break;
	case ROW_LABEL:
	case ROW_LABELS:
		str_append(out, size, "r%llu", (unsigned long long)x);
		break;
	case ROW_PATH:
		str_append(out, size, "/p%llu/x y", (unsigned long long)x);
		break;
	case ROW_ENUM:
		str_append(out, size, "%s",
			   enum_name(r->names, (int)(x % (uint64_t)r->names->n)));
		break;
	case ROW_TRANSPORTS:
		str_append(out, size, "%s", x & 1 ? "rc" : "rc,udp");
		break;
	case ROW_ADDRESS:
	case ROW_PORT_ADDRESS:
	case ROW_ADDRESSES:
	case ROW_PEER_ADDRESSES:
		str_append(out, size, x & 1 ? "10.%u.%u.%u" : "fd00::%x:%x:%x",
			   (unsigned)(x >> 8 & 0xff), (unsigned)(x >> 16 & 0xff),
			   (unsigned)(x >> 24 & 0xff));
		break;
	case ROW_RANGES:
		str_append(out, size, "10.%u.0.0/%u", (unsigned)(x >> 8 & 0xff),
			   (unsigned)(x >> 16 & 31));
		break;
	case ROW_PROGRAM:
		str_append(out, size, x & 1 ? "p%llu" : "/p/%llu", (unsigned long long)x);
		break;
	case ROW_LIMITS:
		str_append(out, size, "symbol_error %u/h, link_downed %s",
			   (unsigned)(x >> 8 & 0xff) + 1, x & 1 ? "off" : "7/10m");
		break;
	case ROW_GLOBS:
		str_append(out, size, "d%u* [a-%c]x?", (unsigned)(x & 0xff),
			   (char)('b' + (x >> 8 & 15)));
		break;
	}
}

static void add_random_rows(enum config_section s, uint64_t *rnd, char *out,
			    size_t size)
{
	for (size_t i = 0; i < config_n_rows; i++) {
		if (!config_row_in(&config_rows[i], s))
			continue;
		*rnd = mix64(*rnd);
		if (*rnd % 3 == 0)
			continue;
		str_append(out, size, "%s=", config_rows[i].key);
		if (*rnd % 17)
			add_random_value(&config_rows[i], rnd, out, size);
		str_append(out, size, "\n");
	}
}

static bool configs_equal(const struct config *a, const struct config *b)
{
	if (a->n_peers != b->n_peers || a->n_ports != b->n_ports)
		return false;
	for (size_t i = 0; i < config_n_rows; i++) {
		const struct config_row *r = &config_rows[i];

		if (r->section == SECTION_FABD || r->section == SECTION_PORTS ||
		    r->section == SECTION_HEALTH || r->section == SECTION_EXPECT) {
			if (!config_value_equal(r, a, b))
				return false;
		} else if (r->section == SECTION_PROBE) {
			if (!config_value_equal(r, a->probe, b->probe))
				return false;
		} else if (r->section == SECTION_PORT) {
			for (int k = 0; k < a->n_ports; k++)
				if (!config_value_equal(r, &a->ports[k], &b->ports[k]))
					return false;
		}
	}
	for (int k = 0; k < a->n_peers; k++)
		if (!config_peer_equal(&a->peers[k], &b->peers[k]))
			return false;
	return true;
}

static void random_configs_dump_and_parse_alike(void **state)
{
	static char text[65536];
	uint64_t rnd = 42;
	int peers = 0, ports = 0;

	(void)state;
	for (int round = 0; round < 400; round++) {
		_cleanup_(freep) char *dump = NULL, *again = NULL;
		struct config *a, *b;

		text[0] = '\0';
		for (int s = 0; s < SECTION__MAX; s++)
			for (int n = 0; n < (s == SECTION_PEER	 ? 6
					     : s == SECTION_PORT ? 3
								 : 1);
			     n++) {
				if (s == SECTION_PEER)
					str_append(text, sizeof(text), "[Peer p%d]\n",
						   n);
				else if (s == SECTION_PORT)
					str_append(text, sizeof(text), "[Port d%d/1]\n",
						   n);
				else
					str_append(text, sizeof(text), "[%s]\n",
						   config_section_name(
							   (enum config_section)s));
				add_random_rows((enum config_section)s, &rnd, text,
						sizeof(text));
			}
		a = parse(text);
		dump = config_dump(a);
		peers += a->n_peers;
		ports += a->n_ports;
		b = parse(dump);
		for (int i = 0; i < problems.n; i++)
			if (problems.p[i].error || problems.p[i].unknown)
				fail_msg("dump line %d: %s\n%s", problems.p[i].line,
					 problems.p[i].text, dump);
		again = config_dump(b);
		assert_string_equal(dump, again);
		assert_true(configs_equal(a, b));
		config_free(a);
		config_free(b);
	}
	assert_true(peers > 400 && ports > 400); /* not all were left out */
}

static char *many_peers(int n, size_t *ret_len)
{
	size_t room = 4 << 20, len = 0;
	char *text = xcalloc(room, 1);

	for (int i = 0; i < n; i++)
		len += (size_t)snprintf(text + len, room - len,
					"[Peer gpu%05d]\nAddress=10.%d.%d.1\n"
					"Address=10.%d.%d.2\nTrafficClass=%d\n",
					i, i / 250, i % 250, i / 250, i % 250, i % 256);
	*ret_len = len;
	return text;
}

static double time_parse_of(int n)
{
	struct timespec a, b;
	struct config *c;
	size_t len;
	_cleanup_(freep) char *text = many_peers(n, &len);

	assert_int_equal(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &a), 0);
	c = parse_len(text, len);
	assert_int_equal(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &b), 0);
	assert_int_equal(problems.n, 0);
	assert_int_equal(c->n_peers, n);
	for (int i = 0; i < n; i++)
		assert_ptr_equal(config_peer_find(c, c->peers[i].name), &c->peers[i]);
	assert_null(config_peer_find(c, "gpu"));
	config_free(c);
	return (double)(b.tv_sec - a.tv_sec) + (double)(b.tv_nsec - a.tv_nsec) / 1e9;
}

/* Four times as many take four times as long, and not sixteen times. */
static void ten_thousand_peers_are_quick(void **state)
{
	double some = time_parse_of(2500), all = time_parse_of(10000);

	(void)state;
	print_message("2500 peers: %.3f s, 10000 peers: %.3f s\n", some, all);
	assert_true(all < 9 * some + 0.02);
}

static size_t heap_used(void)
{
	struct mallinfo2 m = mallinfo2();

	return m.uordblks + m.hblkhd;
}

/* With one address each, as most have them. */
static void a_peer_costs_little(void **state)
{
	enum { N = 10000 };
	size_t room = N * 64, len = 0, before;
	_cleanup_(freep) char *text = xcalloc(room, 1);
	struct config *c;

	(void)state;
	for (int i = 0; i < N; i++)
		len += (size_t)snprintf(text + len, room - len,
					"[Peer gpu%05d]\nAddress=10.%d.%d.1\n", i, i / 250,
					i % 250);
	before = heap_used();
	c = parse_len(text, len);
	assert_int_equal(c->n_peers, N);
	print_message("%zu bytes a peer\n", (heap_used() - before) / N);
	if (before) /* another allocator (a sanitizer's) counts nothing here */
		assert_in_range((heap_used() - before) / N, 50, 200);
	config_free(c);
}

/* One copy for all who say the same, wherever they say it. */
static void settings_are_shared(void **state)
{
	struct config *c = parse_good("[Peer a]\nAddress=10.0.0.1\n"
				      "[Peer b]\nAddress=10.0.0.2\nHeartbeatSec=2s\n"
				      "[Peer c]\nAddress=10.0.0.3\nPingSec=20s\n"
				      "[Peer d]\nAddress=10.0.0.4\nHeartbeatSec=2s\n"
				      "PingSec=20s\n[Peer e]\nAddress=10.0.0.5\n"
				      "HeartbeatSec=3s\n[Peer f]\nAddress=10.0.0.6\n"
				      "HeartbeatSec=3s\nHeartbeatSec=\n"
				      "[Probe]\nPingSec=20s\n");
	const struct config_peer *p = c->peers;

	(void)state;
	assert_ptr_equal(p[0].probe, c->probe);
	assert_ptr_equal(p[2].probe, c->probe);
	assert_ptr_equal(p[5].probe, c->probe);
	assert_ptr_not_equal(p[1].probe, c->probe);
	assert_ptr_equal(p[3].probe, p[1].probe);
	assert_ptr_not_equal(p[4].probe, p[1].probe);
	assert_int_equal(c->probe->refs, 4);
	assert_int_equal(p[1].probe->refs, 2);
	assert_int_equal(p[1].probe->heartbeat, 2000 * MSEC);
	assert_int_equal(p[1].probe->ping, 20000 * MSEC);
	assert_int_equal(p[4].probe->heartbeat, 3000 * MSEC);
	config_free(c);
}

static void problems_end_somewhere(void **state)
{
	char *text = xcalloc(1 << 20, 1);
	struct config *c;

	(void)state;
	(void)str_copy(text, 1 << 20, "[Fabd]\n");
	for (size_t n = strlen(text), i = 0; i < 5000; i++, n += 4)
		memcpy(text + n, "x=1\n", 5);
	c = parse(text);
	assert_int_equal(problems.n, 1001);
	assert_int_equal(problems.unknown, 5000);
	assert_non_null(strstr(problems.p[1000].text, "more problems"));
	config_free(c);
	free(text);
}

static int make_dir(void **state)
{
	(void)state;
	return mkdtemp(dir) ? 0 : -1;
}

static int remove_dir(void **state)
{
	(void)state;
	config_problems_done(&problems);
	return rmdir(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_row_is_whole),
		cmocka_unit_test(defaults_are_valid_and_known),
		cmocka_unit_test(ranges_hold),
		cmocka_unit_test(times),
		cmocka_unit_test(times_print_and_read_alike),
		cmocka_unit_test(booleans),
		cmocka_unit_test(lists_append_and_clear),
		cmocka_unit_test(refused_lists_stay),
		cmocka_unit_test(peers_inherit_whatever_the_order),
		cmocka_unit_test(bad_rows_take_defaults_bad_peers_go),
		cmocka_unit_test(heartbeat_floor),
		cmocka_unit_test(twice_names_both_places),
		cmocka_unit_test(unknown_is_not_an_error),
		cmocka_unit_test(ports_are_found),
		cmocka_unit_test(addresses_of_peers),
		cmocka_unit_test(peers_compare),
		cmocka_unit_test(key_files),
		cmocka_unit_test(drop_ins),
		cmocka_unit_test(drop_ins_replace_each_other),
		cmocka_unit_test(random_configs_dump_and_parse_alike),
		cmocka_unit_test(ten_thousand_peers_are_quick),
		cmocka_unit_test(a_peer_costs_little),
		cmocka_unit_test(settings_are_shared),
		cmocka_unit_test(problems_end_somewhere),
	};
	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
