/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#include "idl.h"
#include "conn_turn.h"
#include "held.h"
#include "render.h"
#include "varlink.h"

#define SEC NSEC_PER_SEC

/* 2026-11-30T20:41:07.118Z is 1000 s after boot. */
static const struct render_time at_1000 = {
	.now = {1000 * SEC},
	.wall_ns = INT64_C(1796071267) * SEC + 118 * NSEC_PER_MSEC,
};

static json_t *idl;
static struct flap_params flap;

static int setup(void **state)
{
	(void)state;
	flap_params_default(&flap);
	idl = idl_parse(varlink_idl_fabd);
	return idl ? 0 : -1;
}

static int teardown(void **state)
{
	(void)state;
	json_decref(idl);
	return 0;
}

static void assert_fits(const char *type, const json_t *o)
{
	char why[256];

	if (idl_check(idl, idl_type(idl, type), o, why, sizeof(why)) < 0)
		fail_msg("%s: %s", type, why);
}

static const char *text(const json_t *o, const char *key)
{
	return json_string_value(json_object_get(o, key));
}

/* null and named in unavailable go together; but for @free_keys. */
static void assert_reasons(json_t *o, const char *const *free_keys)
{
	json_t *reasons = json_object_get(o, "unavailable"), *v;
	const char *key;

	json_object_foreach (reasons, key, v) {
		assert_true(json_is_null(json_object_get(o, key)));
		assert_true(enum_find(&unavailable_names, json_string_value(v)) >
			    WHY_NONE);
	}
	json_object_foreach (o, key, v) {
		bool is_free = false;

		for (int i = 0; free_keys[i]; i++)
			is_free |= !strcmp(free_keys[i], key);
		if (json_is_null(v) && !is_free && !json_object_get(reasons, key))
			fail_msg("%s is null without a reason", key);
	}
}

static const char *const no_keys[] = {NULL};
static const char *const port_free_keys[] = {"rail", "override_by", "override_until",
					     "far_name", "far_source", "baseline",
					     "damped_until", "counters_age_sec", NULL};

/* A value in every field of a table. */
static void fill(const struct field_table *t, void *facts)
{
	for (int i = 0; i < t->n; i++) {
		if (t->fields[i].kind == FIELD_TEXT)
			(void)field_set_text(t, facts, i, "some");
		else
			(void)field_set_u64(t, facts, i, 1);
	}
}

/* ---- time ---- */

static void instants(void **state)
{
	json_t *o = json_object();
	char buf[32];

	(void)state;
	assert_string_equal(render_wall(at_1000.wall_ns, buf),
			    "2026-11-30T20:41:07.118Z");
	assert_string_equal(render_wall(0, buf), "1970-01-01T00:00:00.000Z");
	render_since(o, (struct mono){940 * SEC}, &at_1000);
	assert_string_equal(text(o, "since"), "2026-11-30T20:40:07.118Z");
	assert_true(json_real_value(json_object_get(o, "age_sec")) == 60.0);
	/* What has no beginning yet begins now, what lies ahead has no negative age. */
	render_since(o, MONO_NEVER, &at_1000);
	assert_string_equal(text(o, "since"), "2026-11-30T20:41:07.118Z");
	assert_true(json_real_value(json_object_get(o, "age_sec")) == 0.0);
	render_age(o, "a", (struct mono){1001 * SEC}, &at_1000);
	assert_true(json_real_value(json_object_get(o, "a")) == 0.0);
	render_age(o, "a", MONO_NEVER, &at_1000);
	assert_true(json_is_null(json_object_get(o, "a")));
	render_instant(o, "i", MONO_NEVER, &at_1000);
	assert_true(json_is_null(json_object_get(o, "i")));
	render_seconds(o, "s", 1234567890);
	assert_true(json_real_value(json_object_get(o, "s")) == 1.235);
	json_decref(o);
}

static void odd_values(void **state)
{
	json_t *o = json_object();

	(void)state;
	render_text(o, "t", "caf\xc3\xa9");
	assert_string_equal(text(o, "t"), "caf\xc3\xa9");
	render_text(o, "t", "caf\xe9");
	assert_string_equal(text(o, "t"), "caf?");
	render_text(o, "t", NULL);
	assert_true(json_is_null(json_object_get(o, "t")));
	render_int(o, "i", UINT64_MAX);
	assert_true(json_integer_value(json_object_get(o, "i")) == INT64_MAX);
	json_decref(o);
}

/* ---- devices ---- */

static json_t *device(const struct device_facts *f, uint32_t index)
{
	struct device_view v = {
		.name = "mlx5_0",
		.index = index,
		.facts = f,
		.since = {1 * SEC},
		.ports = json_pack("[s]", "mlx5_0/1"),
		.workers = json_array(),
	};

	return render_device(&v, &at_1000);
}

static void devices(void **state)
{
	struct device_facts f = {0};
	json_t *o;

	(void)state;
	fill(&device_table, &f);
	o = device(&f, 7);
	assert_fits("Device", o);
	assert_int_equal(json_object_size(json_object_get(o, "unavailable")), 0);
	assert_string_equal(text(o, "node_guid"), "0x0000000000000001");
	assert_string_equal(text(o, "vendor_id"), "0x000001");
	assert_true(json_is_true(json_object_get(o, "is_vf")));
	json_decref(o);

	field_all_missing(&device_table, &f, WHY_NO_WORKER);
	o = device(&f, DEVICE_INDEX_NONE);
	assert_fits("Device", o);
	assert_reasons(o, no_keys);
	assert_string_equal(text(json_object_get(o, "unavailable"), "fw"), "no_worker");
	assert_string_equal(text(json_object_get(o, "unavailable"), "ifindex"),
			    "no_verbs");
	json_decref(o);
}

/* ---- ports ---- */

static void port_full(void **state)
{
	static const uint16_t pkeys[] = {0xffff, 0x8001};
	static const struct port_gid gids[] = {
		{.index = 0, .type = 2, .netdev_index = 1, .gid = {0xfe, 0x80}},
		{.index = 3, .type = 0, .netdev_index = 9},
		{.index = 4, .type = 255},
	};
	struct port p;
	json_t *o, *remote, *gid;

	(void)state;
	port_init(&p, "mlx5_0", 3, 1, (struct mono){1 * SEC});
	fill(&port_table, &p.facts);
	(void)port_set_u64(&p, PF_CAP_MASK, 0x02000000);
	fill(&remote_table, &p.remote);
	(void)port_set_pkeys(&p, pkeys, 2, WHY_NONE);
	(void)port_set_gids(&p, gids, 3, WHY_NONE);
	(void)str_copy(p.rail, sizeof(p.rail), "0");
	p.override = OVERRIDE_BAD;
	p.override_until_wall = at_1000.wall_ns;
	(void)str_copy(p.override_by, sizeof(p.override_by), "uid 0 (root)");
	p.flags = FLAG_ZERO_GUID | FLAG_MISSED_EVENT;
	p.read_at = p.remote_read_at = (struct mono){999 * SEC};
	o = render_port(&p, json_pack("[s]", "10.0.0.1"), &flap, &at_1000);
	assert_fits("Port", o);
	assert_reasons(o, port_free_keys);
	assert_string_equal(text(o, "name"), "mlx5_0/1");
	assert_string_equal(text(o, "override_until"), "2026-11-30T20:41:07.118Z");
	assert_string_equal(
		json_string_value(json_array_get(json_object_get(o, "pkeys"), 1)),
		"0x8001");
	assert_string_equal(
		json_string_value(json_array_get(json_object_get(o, "caps"), 0)),
		"CLIENT_REG");
	assert_int_equal(json_array_size(json_object_get(o, "flags")), 2);
	assert_string_equal(
		json_string_value(json_array_get(json_object_get(o, "flags"), 1)),
		"missed_event");
	remote = json_object_get(o, "remote");
	assert_fits("RemotePort", remote);
	assert_reasons(remote, no_keys);
	/* Only the port's own network device has a name here. */
	gid = json_array_get(json_object_get(o, "gids"), 0);
	assert_string_equal(text(gid, "netdev"), "some");
	assert_string_equal(text(gid, "type"), "roce_v2");
	assert_string_equal(text(gid, "gid"),
			    "fe80:0000:0000:0000:0000:0000:0000:0000");
	gid = json_array_get(json_object_get(o, "gids"), 1);
	assert_true(json_is_null(json_object_get(gid, "netdev")));
	assert_int_equal(json_integer_value(json_object_get(gid, "netdev_index")), 9);
	gid = json_array_get(json_object_get(o, "gids"), 2);
	assert_true(json_is_null(json_object_get(gid, "netdev_index")));
	json_decref(o);
	port_done(&p);
}

static void port_empty(void **state)
{
	struct port p;
	json_t *o, *remote;

	(void)state;
	port_init(&p, "umad0", 0, 1, (struct mono){1 * SEC});
	o = render_port(&p, json_array(), &flap, &at_1000);
	assert_fits("Port", o);
	assert_reasons(o, port_free_keys);
	assert_string_equal(text(o, "override"), "auto");
	assert_true(json_is_null(json_object_get(o, "remote")));
	assert_string_equal(text(json_object_get(o, "unavailable"), "remote"),
			    "not_read");
	assert_string_equal(text(json_object_get(o, "unavailable"), "caps"),
			    "not_read");
	json_decref(o);
	/* Reasons that differ are told one by one. */
	(void)field_set_missing(&remote_table, &p.remote, RF_LID, WHY_TIMEOUT);
	o = render_port(&p, json_array(), &flap, &at_1000);
	assert_fits("Port", o);
	remote = json_object_get(o, "remote");
	assert_reasons(remote, no_keys);
	assert_string_equal(text(json_object_get(remote, "unavailable"), "lid"),
			    "timeout");
	json_decref(o);
	port_done(&p);
}

/* Each field of the table alone is missing, with each reason. */
static void every_field_and_reason(void **state)
{
	struct port p;

	(void)state;
	port_init(&p, "mlx5_0", 1, 1, (struct mono){1 * SEC});
	for (int f = 0; f < PF__MAX; f++) {
		int why = 1 + f % (WHY__MAX - 1);
		json_t *o, *u;

		fill(&port_table, &p.facts);
		(void)port_set_missing(&p, (enum port_field)f, (enum unavailable)why);
		o = render_port(&p, json_array(), &flap, &at_1000);
		assert_fits("Port", o);
		assert_reasons(o, port_free_keys);
		u = json_object_get(o, "unavailable");
		assert_string_equal(text(u, port_table.fields[f].name),
				    enum_name(&unavailable_names, why));
		json_decref(o);
	}
	port_done(&p);
}

/* ---- health and counters ---- */

static struct mono sec(int64_t n)
{
	return (struct mono){n * SEC};
}

static json_t *nth(const json_t *o, const char *key, size_t i)
{
	return json_array_get(json_object_get(o, key), i);
}

static void errors_read(struct port *p, uint64_t value, int64_t at)
{
	struct counter_reading r;

	counter_reading_init(&r, WHY_NO_VERBS);
	r.why[CTR_SYMBOL_ERROR] = r.why[CTR_PORT_XMIT_DATA] = WHY_NONE;
	r.value[CTR_SYMBOL_ERROR] = value;
	r.value[CTR_PORT_XMIT_DATA] = 10 * value;
	r.bits[CTR_SYMBOL_ERROR] = 16;
	r.bits[CTR_PORT_XMIT_DATA] = 64;
	r.source[CTR_SYMBOL_ERROR] = COUNTER_PMA;
	r.source[CTR_PORT_XMIT_DATA] = COUNTER_PMA_EXT;
	counters_read(p->watch.counters, &r, sec(at));
}

/* An Ethernet port that flapped three times, with errors. */
static void port_troubled(struct port *p, struct port_watch_params *params)
{
	port_watch_params_default(params);
	port_init(p, "mlx5_0", 3, 1, sec(100));
	p->watch.counters = counters_new();
	errors_read(p, 0, 100);
	(void)port_set_text(p, PF_WIDTH_ACTIVE, "4x");
	(void)port_set_text(p, PF_SPEED_ACTIVE, "NDR");
	(void)port_apply_remote(p, NULL, NULL, NULL, WHY_NOT_INFINIBAND);
	for (int i = 0; i < 3; i++) {
		(void)port_set_states(p, 4, 5);
		(void)port_judge(p, params, NULL, sec(200 + 20 * i));
		(void)port_set_states(p, 1, 3);
		(void)port_judge(p, params, NULL, sec(210 + 20 * i));
	}
	errors_read(p, 65535, 900);
	errors_read(p, 65535, 910);
	(void)port_set_states(p, 4, 5);
	(void)port_judge(p, params, NULL, sec(940));
	(void)port_set_far(p, "leaf07/Ethernet1/22", FAR_LLDP);
}

static void port_health(void **state)
{
	struct port_watch_params params;
	struct port p;
	json_t *o;

	(void)state;
	port_troubled(&p, &params);
	o = render_port(&p, json_array(), &params.flap, &at_1000);
	assert_fits("Port", o);
	assert_string_equal(text(o, "health"), "degraded");
	assert_int_equal(json_array_size(json_object_get(o, "reasons")), 2);
	assert_string_equal(text(nth(o, "reasons", 0), "code"), "counter");
	assert_string_equal(text(nth(o, "reasons", 0), "text"),
			    "symbol_error 65535, limit 120/h");
	assert_true(json_real_value(json_object_get(nth(o, "reasons", 0), "limit")) == 120);
	assert_true(json_real_value(json_object_get(nth(o, "reasons", 0), "age_sec")) == 60);
	assert_string_equal(text(nth(o, "reasons", 1), "code"), "flap");
	assert_int_equal(json_array_size(json_object_get(o, "history")), 7);
	assert_string_equal(text(nth(o, "history", 1), "from"), "ok");
	assert_string_equal(text(nth(o, "history", 1), "to"), "bad");
	assert_string_equal(text(nth(o, "history", 1), "why"), "link DOWN DISABLED");
	assert_int_equal(json_integer_value(
				 json_object_get(json_object_get(o, "baseline"), "lane_mbps")),
			 100000);
	assert_int_equal(json_integer_value(json_object_get(o, "flaps")), 3);
	assert_true(json_is_true(json_object_get(o, "damped")));
	assert_non_null(text(o, "damped_until"));
	/* The penalty is that of now, not that of the last judgement. */
	assert_true(json_real_value(json_object_get(o, "flap_penalty")) <
		    p.watch.flap.penalty);
	assert_string_equal(text(o, "far_name"), "leaf07/Ethernet1/22");
	assert_string_equal(text(o, "far_source"), "lldp");
	assert_string_equal(text(o, "last_remote"), "leaf07/Ethernet1/22");
	assert_true(json_real_value(json_object_get(o, "counters_age_sec")) == 90);
	json_decref(o);
	port_done(&p);
}

static const json_t *counter_of(const json_t *o, enum counter c)
{
	const json_t *r = nth(o, "counters", (size_t)c);

	assert_string_equal(text(r, "name"), counter_rows[c].name);
	return r;
}

static void port_counters(void **state)
{
	struct port_watch_params params;
	const json_t *c;
	struct port p;
	json_t *o;

	(void)state;
	port_troubled(&p, &params);
	o = render_port_counters(&p, &params.limits, 200 * SEC, &at_1000);
	assert_fits("PortCounters", o);
	assert_string_equal(text(o, "port"), "mlx5_0/1");
	assert_true(json_real_value(json_object_get(o, "window_sec")) == 200);
	assert_true(json_real_value(json_object_get(o, "read_age_sec")) == 90);
	assert_int_equal(json_array_size(json_object_get(o, "counters")), CTR__MAX);
	c = counter_of(o, CTR_SYMBOL_ERROR);
	assert_int_equal(json_integer_value(json_object_get(c, "value")), 65535);
	assert_string_equal(text(c, "limit"), "120/h");
	assert_true(json_is_true(json_object_get(c, "over")));
	assert_string_equal(text(c, "over_since"), "2026-11-30T20:40:07.118Z");
	assert_true(json_is_true(json_object_get(c, "saturated")));
	assert_true(json_real_value(json_object_get(c, "saturated_age_sec")) == 100);
	assert_string_equal(text(c, "source"), "pma");
	/* The reading that lies nearest to the begin of the window was at 900 s. */
	assert_true(json_real_value(json_object_get(c, "since_sec")) == 100);
	assert_int_equal(json_integer_value(json_object_get(c, "amount")), 0);
	assert_true(json_is_null(json_object_get(c, "unavailable")));
	c = counter_of(o, CTR_PORT_XMIT_DATA);
	assert_int_equal(json_integer_value(json_object_get(c, "raw")), 655350);
	assert_int_equal(json_integer_value(json_object_get(c, "value")), 4 * 655350);
	assert_string_equal(text(c, "source"), "pma_ext");
	assert_true(json_is_null(json_object_get(c, "limit")));
	c = counter_of(o, CTR_OUT_OF_SEQUENCE);
	assert_true(json_is_null(json_object_get(c, "value")));
	assert_true(json_is_null(json_object_get(c, "amount")));
	assert_string_equal(text(c, "unavailable"), "no_verbs");
	assert_string_equal(text(c, "limit"), "off");
	json_decref(o);
	/* Nothing was ever read. */
	p.watch.counters = counters_free(p.watch.counters);
	o = render_port_counters(&p, &params.limits, 3600 * SEC, &at_1000);
	assert_fits("PortCounters", o);
	assert_true(json_is_null(json_object_get(o, "read_age_sec")));
	assert_string_equal(text(counter_of(o, CTR_SYMBOL_ERROR), "unavailable"), "not_read");
	json_decref(o);
	port_done(&p);
}

/* ---- connections ---- */

static const struct conn_params params = {
	.heartbeat = SEC,
	.multiplier = 3,
	.ping_interval = 10 * SEC,
	.ack_timeout = SEC,
	.ack_retries = 5,
	.attempt_timeout = 5 * SEC,
	.backoff_min = SEC,
	.backoff_max = 60 * SEC,
	.rx_keep = 60 * SEC,
};

static struct conn *new_conn(const char *port)
{
	struct conn_key k = {.peer = "gpu0033",
			     .rail = "2",
			     .port_name = port,
			     .role = ROLE_TX,
			     .transport = TRANSPORT_UDP};

	assert_int_equal(addr_parse("10.2.0.33", &k.remote, NULL), 0);
	return conn_new(&k, &params, (struct mono){990 * SEC}, 1);
}

static json_t *connection(const struct conn *c, const struct addr *local)
{
	struct conn_view v = {.c = c,
			      .verdict = VERDICT_REMOTE_PORT,
			      .why = "said so",
			      .verdict_since = {980 * SEC},
			      .own_verdict = VERDICT_REMOTE_PORT,
			      .local = local};

	return render_connection(&v, &at_1000);
}

static void connection_new(void **state)
{
	struct conn *c = new_conn("-");
	json_t *o = connection(c, NULL);

	(void)state;
	assert_fits("Connection", o);
	assert_string_equal(text(o, "key"), "gpu0033/2:tx:udp:->10.2.0.33#0");
	assert_string_equal(text(o, "verdict"), "remote_port");
	assert_string_equal(text(o, "state"), "idle");
	assert_null(text(o, "port"));
	assert_null(text(o, "local_address"));
	assert_null(text(o, "error"));
	assert_true(json_is_null(json_object_get(o, "rtt_ns")));
	assert_true(json_is_null(json_object_get(o, "rtt_all_ns")));
	assert_true(json_is_null(json_object_get(o, "clock")));
	assert_true(json_is_null(json_object_get(o, "late_p99_ns")));
	assert_true(json_is_null(json_object_get(o, "peer_lateness_ns")));
	assert_string_equal(text(o, "own_verdict"), "remote_port");
	assert_null(text(o, "held_by"));
	assert_null(text(o, "peer_device_state"));
	assert_null(text(o, "damped_until"));
	assert_true(json_is_null(json_object_get(o, "rtt_usual_p99_ns")));
	assert_true(json_is_false(json_object_get(o, "damped")));
	json_decref(o);
	conn_free(c);
}

/* Explained by another fault, and lost often before that. */
static void connection_held(void **state)
{
	struct conn *c = new_conn("mlx5_2/1");
	struct conn_view v = {.c = c, .own_verdict = VERDICT_LOCAL_PORT,
			      .held_by = "mlx5_2/1", .usual_p99 = 71000.5};
	char why[VERDICT_WHY_MAX];
	struct flap lost = {0};
	json_t *o;

	(void)state;
	held_why(VERDICT_LOCAL_PORT, v.held_by, why, sizeof(why));
	v.verdict = VERDICT_HELD;
	v.why = why;
	flap_params_default(&v.flap_params);
	for (int i = 0; i < 3; i++)
		flap_add(&lost, &v.flap_params, (struct mono){1000 * SEC});
	v.flap = &lost;
	c->told_device = TOLD_DEVICE_STUCK;
	conn_keep_stats(c, &(struct ep_stats){.large_lost = 4});
	o = render_connection(&v, &at_1000);
	assert_fits("Connection", o);
	assert_string_equal(text(o, "verdict"), "held");
	assert_string_equal(text(o, "own_verdict"), "local_port");
	assert_string_equal(text(o, "held_by"), "mlx5_2/1");
	assert_string_equal(text(o, "why"), "local-port mlx5_2/1");
	assert_string_equal(text(o, "peer_device_state"), "stuck");
	assert_int_equal(json_integer_value(json_object_get(o, "flaps")), 3);
	assert_true(json_real_value(json_object_get(o, "flap_penalty")) == 3000.0);
	assert_true(json_is_true(json_object_get(o, "damped")));
	/* 3000 comes down to 750 in two half-lives of 15 min. */
	assert_string_equal(text(o, "damped_until"), "2026-11-30T21:11:07.118Z");
	assert_int_equal(json_integer_value(json_object_get(o, "rtt_usual_p99_ns")), 71000);
	assert_int_equal(json_integer_value(json_object_get(o, "consecutive_large_lost")), 4);
	json_decref(o);
	conn_free(c);
}

static void connection_full(void **state)
{
	struct conn *c = new_conn("mlx5_2/1");
	struct addr local;
	struct ctl_msg told = {.node = "gpu0033", .port_name = "mlx5_2/1"};
	struct conn_history ping = {.at = {900 * SEC},
				    .from = CONN_CONNECTED,
				    .to = CONN_CONNECTED_PING,
				    .event = PE_PING_DUE};
	json_t *o, *rtt;

	(void)state;
	assert_int_equal(addr_parse("10.2.0.17", &local, NULL), 0);
	c->heartbeat = SEC;
	conn_keep_stats(c, &(struct ep_stats){.samples = 2,
					      .rtt_min = 1,
					      .rtt_p50 = 38000,
					      .net_p50 = 9000,
					      .peer_p50 = 3000,
					      .samples_all = 70,
					      .rtt_all_p50 = 37000,
					      .rtt_all_p99 = 90000,
					      .late_p99_us = 61,
					      .clock = EP_CLOCK_KERNEL,
					      .sent = UINT64_MAX});
	conn_keep_endpoint(c, &(struct conn_up){.path = {.mtu = 4096}});
	c->last_ctl_rx = c->last_fabric_rx = (struct mono){999 * SEC};
	c->start_at = (struct mono){1012 * SEC + SEC / 2};
	c->error = EPERR_CM_REFUSED;
	c->error_stage = STAGE_CONNECT;
	c->error_at = (struct mono){998 * SEC};
	conn_keep_error_text(c, "nobody listens");
	conn_keep_peer_names(c, &told);
	c->told_port = TOLD_PORT_DOWN;
	c->told_lateness_us = 7;
	c->stop_cause = CAUSE_RESTART;
	c->stop_until = (struct mono){1060 * SEC};
	for (int i = 0; i < 3; i++)
		conn_keep_history(c, &(struct conn_history){.at = {850 * SEC}});
	conn_keep_history(c, &ping);
	for (int i = 0; i < CONN_HISTORY - 1; i++)
		conn_keep_history(c, &(struct conn_history){.at = {950 * SEC}});
	o = connection(c, &local);
	assert_fits("Connection", o);
	assert_string_equal(text(o, "local_address"), "10.2.0.17");
	assert_string_equal(text(o, "error"), "cm_refused");
	assert_string_equal(text(o, "peer_port_state"), "down");
	assert_string_equal(text(o, "stop_cause"), "restart");
	assert_true(json_real_value(json_object_get(o, "stop_left_sec")) == 60.0);
	assert_true(json_real_value(json_object_get(o, "next_attempt_sec")) == 12.5);
	assert_int_equal(json_integer_value(json_object_get(o, "peer_lateness_ns")),
			 7000);
	assert_true(json_integer_value(json_object_get(o, "sent")) == INT64_MAX);
	rtt = json_object_get(o, "rtt_ns");
	assert_int_equal(json_integer_value(json_object_get(rtt, "net_p50")), 9000);
	assert_int_equal(json_integer_value(json_object_get(rtt, "peer_p50")), 3000);
	assert_true(json_is_null(json_object_get(rtt, "host_p50")));
	rtt = json_object_get(o, "rtt_all_ns");
	assert_int_equal(json_integer_value(json_object_get(rtt, "samples")), 70);
	assert_int_equal(json_integer_value(json_object_get(rtt, "p99")), 90000);
	assert_string_equal(text(o, "clock"), "kernel");
	assert_int_equal(json_integer_value(json_object_get(o, "late_p99_ns")), 61000);
	/* A ring of history: the oldest of it first. */
	assert_int_equal(json_array_size(json_object_get(o, "history")), CONN_HISTORY);
	assert_string_equal(
		text(json_array_get(json_object_get(o, "history"), 0), "to"),
		"connected_ping");
	assert_string_equal(
		text(json_array_get(json_object_get(o, "history"), 0), "at"),
		"2026-11-30T20:39:27.118Z");
	json_decref(o);
	conn_free(c);
}

static void pings(void **state)
{
	const struct conn_key key = {.peer = "gpu0033", .rail = "2", .port_name = "-",
				     .remote = {.family = 4, .ip = {10, 2, 0, 33}}};
	const struct addr local = {.family = 4, .ip = {10, 2, 0, 17}};
	struct ping_view v = {.key = &key, .count = 1000, .why = "SIDR status 1",
			      .verdict = VERDICT_RDMA_BROKEN};
	json_t *o = render_ping(&v);

	(void)state;
	assert_fits("PingResult", o);
	assert_true(json_is_null(json_object_get(o, "size")));
	assert_true(json_is_null(json_object_get(o, "rtt_ns")));
	assert_true(json_is_null(json_object_get(o, "clock")));
	assert_true(json_is_null(json_object_get(o, "port")));
	assert_string_equal(text(o, "verdict"), "rdma_broken");
	json_decref(o);
	v.local = &local;
	v.done = true;
	v.size = 1472;
	v.stats = (struct ep_stats){.sent = 5, .received = 3, .lost = 2, .dropped = 1,
				    .samples = 3, .rtt_max = 160000,
				    .clock = EP_CLOCK_KERNEL};
	o = render_ping(&v);
	assert_fits("PingResult", o);
	assert_string_equal(text(o, "clock"), "kernel");
	assert_string_equal(text(o, "local_address"), "10.2.0.17");
	assert_int_equal(json_integer_value(json_object_get(o, "lost")), 2);
	assert_int_equal(json_integer_value(json_object_get(o, "dropped")), 1);
	assert_int_equal(json_integer_value(json_object_get(o, "size")), 1472);
	assert_true(json_is_true(json_object_get(o, "done")));
	json_decref(o);
}

/* ---- explanations and checks ---- */

static void explanations(void **state)
{
	struct explain_facts f = {.peer = "gpu0033", .rail = "2", .transport = TRANSPORT_RC,
				  .has_connection = true, .port = "mlx5_2/1",
				  .given = {.verdict = VERDICT_HELD, .why = "local-port"},
				  .inner = {.verdict = VERDICT_LOCAL_PORT, .why = "DOWN"}};
	struct conn_key key = {.role = ROLE_TX, .transport = TRANSPORT_RC};
	struct explanation e;
	json_t *o, *step;

	(void)state;
	explain(&f, &e);
	o = render_explanation(&f, &e, &key, (struct mono){940 * SEC}, &at_1000);
	assert_fits("Explanation", o);
	assert_string_equal(text(o, "verdict"), "held");
	assert_string_equal(text(o, "own_verdict"), "local_port");
	assert_string_equal(text(o, "wrong"), "local");
	assert_string_equal(text(o, "place"), "local");
	assert_true(json_real_value(json_object_get(o, "age_sec")) == 60.0);
	step = json_array_get(json_object_get(o, "steps"), 0);
	assert_string_equal(text(step, "step"), "name");
	json_decref(o);
	/* a peer without an address has neither connection nor rail */
	f = (struct explain_facts){.peer = "gpu0033"};
	explain(&f, &e);
	o = render_explanation(&f, &e, NULL, MONO_NEVER, &at_1000);
	assert_fits("Explanation", o);
	assert_true(json_is_null(json_object_get(o, "connection")));
	assert_true(json_is_null(json_object_get(o, "rail")));
	assert_true(json_is_null(json_object_get(o, "wrong")));
	json_decref(o);
}

static void checks(void **state)
{
	const struct check_expect expect = {.ports = 8};
	const struct check_reach reach = {.peer = "a", .rail = "0", .port = "-",
					  .verdict = VERDICT_OK, .connected = true};
	struct check_run c;
	json_t *o;

	(void)state;
	check_begin(&c, &expect);
	check_add_reach(&c, &reach);
	check_end(&c, true);
	o = render_check(&c, (struct mono){999 * SEC}, &at_1000);
	assert_fits("CheckResult", o);
	assert_string_equal(text(o, "status"), "unknown");
	assert_string_equal(text(o, "found"), "failed");
	assert_string_equal(text(o, "summary"), "just booted; 0 of 8 ports");
	assert_int_equal(json_integer_value(json_object_get(o, "ports")), 8);
	assert_int_equal(json_integer_value(json_object_get(o, "rails_ok")), 1);
	assert_int_equal(json_array_size(json_object_get(o, "problems")), 1);
	assert_true(json_real_value(json_object_get(o, "read_age_sec")) == 1.0);
	json_decref(o);
	check_done(&c);
	/* nothing at all */
	check_begin(&c, &(struct check_expect){0});
	check_end(&c, false);
	o = render_check(&c, MONO_NEVER, &at_1000);
	assert_fits("CheckResult", o);
	assert_true(json_is_null(json_object_get(o, "read_age_sec")));
	json_decref(o);
	check_done(&c);
}

static json_t *matrix_cell(json_t *row, size_t i)
{
	return json_array_get(json_object_get(row, "cells"), i);
}

static void matrix_rows(void **state)
{
	struct matrix m = {0};
	struct hist rtt = {0};
	json_t *o;

	(void)state;
	hist_add(&rtt, 71000);
	matrix_add(&m, &(struct matrix_sample){.row = "other-leaf", .column = "rail2",
					       .sent = 480, .lost = 60, .rtt = &rtt,
					       .verdict = VERDICT_RDMA_BROKEN});
	matrix_add(&m, &(struct matrix_sample){.row = "other-leaf", .column = "rail3",
					       .sent = 60, .held = true,
					       .verdict = VERDICT_HELD});
	matrix_add(&m, &(struct matrix_sample){.row = "same-leaf", .column = "rail4"});
	o = render_matrix_row(&m, 0, MATRIX_LOSS);
	assert_fits("MatrixRow", o);
	/* Where there is no connection there is no cell. */
	assert_int_equal(json_array_size(json_object_get(o, "cells")), 2);
	assert_true(json_real_value(json_object_get(matrix_cell(o, 0), "loss_percent")) == 12.5);
	assert_true(json_is_null(json_object_get(matrix_cell(o, 0), "p99_ns")));
	assert_true(json_is_null(json_object_get(matrix_cell(o, 1), "loss_percent")));
	assert_int_equal(json_integer_value(json_object_get(matrix_cell(o, 1), "held")), 1);
	assert_string_equal(text(o, "verdict"), "rdma_broken");
	json_decref(o);
	o = render_matrix_row(&m, 0, MATRIX_P99);
	assert_fits("MatrixRow", o);
	assert_int_equal(json_integer_value(json_object_get(matrix_cell(o, 0), "p99_ns")), 71000);
	assert_true(json_is_null(json_object_get(matrix_cell(o, 0), "loss_percent")));
	json_decref(o);
	o = render_matrix_row(&m, 1, MATRIX_P99);
	assert_fits("MatrixRow", o);
	json_decref(o);
	matrix_done(&m);
	hist_done(&rtt);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(instants),
		cmocka_unit_test(odd_values),
		cmocka_unit_test(devices),
		cmocka_unit_test(port_full),
		cmocka_unit_test(port_empty),
		cmocka_unit_test(every_field_and_reason),
		cmocka_unit_test(port_health),
		cmocka_unit_test(port_counters),
		cmocka_unit_test(connection_new),
		cmocka_unit_test(connection_full),
		cmocka_unit_test(connection_held),
		cmocka_unit_test(pings),
		cmocka_unit_test(explanations),
		cmocka_unit_test(checks),
		cmocka_unit_test(matrix_rows),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
