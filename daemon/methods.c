/* SPDX-License-Identifier: BSD-2-Clause */
#include "methods.h"

#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>

#include "endpoint.h"

/* clang-format off */
static const char *const rejects[] = {
	[REJECT_NONE] = "none",
	[REJECT_MALFORMED] = "malformed",
	[REJECT_OVERSIZED] = "oversized",
	[REJECT_UNKNOWN_METHOD] = "unknown_method",
	[REJECT_INVALID_PARAMETER] = "invalid_parameter",
	[REJECT_NOT_ALLOWED] = "not_allowed",
	[REJECT_EXPECTED_MORE] = "expected_more",
	[REJECT_TOO_LARGE] = "too_large",
	[REJECT_TOO_MANY_WAITING] = "too_many_waiting",
	[REJECT_FLOOD] = "flood",
	[REJECT_SLOW_READER] = "slow_reader",
	[REJECT_TOO_MANY_CLIENTS] = "too_many_clients",
	[REJECT_TOO_MANY_OF_USER] = "too_many_of_user",
	[REJECT_NO_DESCRIPTORS] = "no_descriptors",
};
const struct enum_names reject_names = {rejects, (int)ARRAY_LEN(rejects)};

static const char *const list_keys[] = {
	[API_DEVICES] = "devices",
	[API_PORTS] = "ports",
	[API_PEERS] = "peers",
	[API_CONNECTIONS] = "connections",
	[API_HISTORY] = "changes",
	[API_FABRIC_NODES] = "nodes",
	[API_FABRIC_LINKS] = "links",
	[API_FABRIC_ERRORS] = "errors",
	[API_MATRIX] = "rows",
};
/* clang-format on */

const char *method_list_key(enum api_list list)
{
	return list_keys[list];
}

/* ---- answers ---- */

void answer_error(struct answer *a, enum reject why, const char *error,
		  json_t *parameters)
{
	a->kind = ANSWER_ERROR;
	a->reject = why;
	a->error = error;
	a->parameters = parameters;
}

void answer_done(struct answer *a)
{
	json_decref(a->parameters);
	free(a->arg);
	*a = (struct answer){0};
}

static void reply(struct answer *a, json_t *parameters)
{
	a->kind = ANSWER_REPLY;
	a->parameters = parameters;
}

static json_t *one_text(const char *key, const char *value)
{
	return json_pack("{s:s}", key, value);
}

static void invalid(struct answer *a, const char *param)
{
	answer_error(a, REJECT_INVALID_PARAMETER,
		     "org.varlink.service.InvalidParameter",
		     one_text("parameter", param));
}

/* ---- parameters, checked against the table before ---- */

struct call {
	const struct method_env *env;
	const struct varlink_request *request;
	struct answer *answer;
};

static const char *text_param(const struct call *c, const char *name)
{
	return json_string_value(json_object_get(c->request->parameters, name));
}

static int64_t int_param(const struct call *c, const char *name, int64_t otherwise)
{
	const json_t *v = json_object_get(c->request->parameters, name);

	return json_is_integer(v) ? json_integer_value(v) : otherwise;
}

/* "uid 1000 (alice)". Only the local file is asked: a name service may block. */
static void who_is(uid_t uid, char *buf, size_t size)
{
	FILE *f = fopen("/etc/passwd", "re");
	struct passwd *p = NULL;

	buf[0] = '\0';
	while (f && (p = fgetpwent(f)) && p->pw_uid != uid)
		;
	str_append(buf, size, "uid %u", (unsigned)uid);
	if (p)
		str_append(buf, size, " (%s)", p->pw_name);
	if (f)
		(void)fclose(f);
}

static void not_allowed(const struct method_env *env, struct answer *a,
			const char *method, const char *what)
{
	_cleanup_(freep) char *why =
		xasprintf("%sask on the admin socket%s%s", what,
			  env->admin_path ? ", " : " (root and group fabd-admin)",
			  env->admin_path ? env->admin_path : "");

	answer_error(a, REJECT_NOT_ALLOWED, "io.fabd.NotAllowed",
		     json_pack("{s:s, s:s}", "method", method, "why", why));
}

/* ---- org.varlink.service ---- */

static void get_info(struct call *c)
{
	reply(c->answer, json_pack("{s:s, s:s, s:s, s:s, s:[s, s]}", "vendor", "fabd",
				   "product", "fabd", "version", FABD_VERSION, "url",
				   "", "interfaces", "org.varlink.service", "io.fabd"));
}

static void get_interface_description(struct call *c)
{
	static const struct {
		const char *name, *text;
	} interfaces[] = {
		{"io.fabd", varlink_idl_fabd},
		{"org.varlink.service", varlink_idl_service},
	};
	const char *wanted = text_param(c, "interface");

	for (size_t i = 0; i < ARRAY_LEN(interfaces); i++) {
		if (!strcmp(interfaces[i].name, wanted)) {
			reply(c->answer, one_text("description", interfaces[i].text));
			return;
		}
	}
	answer_error(c->answer, REJECT_INVALID_PARAMETER,
		     "org.varlink.service.InterfaceNotFound",
		     one_text("interface", wanted));
}

/* ---- io.fabd ---- */

static void get_status(struct call *c)
{
	const struct api *api = c->env->api;

	reply(c->answer, json_pack("{s:o}", "status", api->status(api->user)));
}

static void list(struct call *c, enum api_list which, const char *arg)
{
	c->answer->kind = ANSWER_LIST;
	c->answer->list = which;
	c->answer->arg = arg ? xstrdup(arg) : NULL;
}

static void list_devices(struct call *c)
{
	list(c, API_DEVICES, NULL);
}

static void list_ports(struct call *c)
{
	list(c, API_PORTS, text_param(c, "device"));
}

static void list_peers(struct call *c)
{
	list(c, API_PEERS, NULL);
}

static void list_connections(struct call *c)
{
	list(c, API_CONNECTIONS, text_param(c, "peer"));
}

static void list_history(struct call *c)
{
	const char *name = text_param(c, "name");
	int64_t since = int_param(c, "since_sec", 0);
	_cleanup_(freep) char *arg = NULL;

	arg = xasprintf("%lld%s%s", (long long)since, name ? " " : "", name ? name : "");
	list(c, API_HISTORY, arg);
}

static void get_matrix(struct call *c)
{
	_cleanup_(freep) char *what =
		xasprintf("%s %s", text_param(c, "by"), text_param(c, "show"));

	list(c, API_MATRIX, what);
}

static void no_such_port(struct call *c)
{
	answer_error(c->answer, REJECT_INVALID_PARAMETER, "io.fabd.NoSuchPort",
		     one_text("port", text_param(c, "port")));
}

static void no_such_connection(struct call *c)
{
	answer_error(c->answer, REJECT_INVALID_PARAMETER, "io.fabd.NoSuchConnection",
		     one_text("connection", text_param(c, "connection")));
}

static void get_port(struct call *c)
{
	const struct api *api = c->env->api;
	json_t *port = api->get(api->user, API_PORTS, text_param(c, "port"));

	if (port)
		reply(c->answer, json_pack("{s:o}", "port", port));
	else
		no_such_port(c);
}

static void get_port_counters(struct call *c)
{
	const struct api *api = c->env->api;
	json_t *counters = api->port_counters(api->user, text_param(c, "port"),
					      int_param(c, "since_sec", 3600));

	if (counters)
		reply(c->answer, json_pack("{s:o}", "counters", counters));
	else
		no_such_port(c);
}

static void get_connection(struct call *c)
{
	const struct api *api = c->env->api;
	json_t *conn =
		api->get(api->user, API_CONNECTIONS, text_param(c, "connection"));

	if (conn)
		reply(c->answer, json_pack("{s:o}", "connection", conn));
	else
		no_such_connection(c);
}

static void explain_call(struct call *c)
{
	const struct api *api = c->env->api;
	const char *transport = text_param(c, "transport");
	struct api_explain_what what = {
		.peer = text_param(c, "peer"),
		.rail = text_param(c, "rail"),
		.transport = transport ? enum_find(&transport_names, transport) : -1,
		.connection = text_param(c, "connection"),
	};
	json_t *answer = NULL;
	const char *error = api->explain(api->user, &what, &answer);

	if (error)
		answer_error(c->answer, REJECT_INVALID_PARAMETER, error, answer);
	else
		reply(c->answer, json_pack("{s:o}", "explanation", answer));
}

static void check_call(struct call *c)
{
	const struct api *api = c->env->api;

	reply(c->answer, json_pack("{s:o}", "check", api->check(api->user)));
}

/* A client that comes back after a restart gives the old instance: all events of this
 * one are new to it. */
static void monitor_call(struct call *c)
{
	const struct monitor *m = c->env->monitor;
	const char *instance = text_param(c, "instance");
	uint64_t last = monitor_seq(m), seq, lost;
	int64_t since = int_param(c, "since", -1);
	bool same = !instance || !strcmp(instance, monitor_instance(m));

	if (since < 0)
		seq = last;
	else if (same && (uint64_t)since <= last)
		seq = (uint64_t)since;
	else if (same && instance) {
		invalid(c->answer, "since");
		return;
	} else
		seq = 0;
	lost = monitor_lost(m, seq);
	c->answer->kind = ANSWER_MONITOR;
	c->answer->cursor = seq + lost;
	c->answer->parameters = json_pack(
		"{s:o}", "event", monitor_start(m, seq + lost, lost, clock_wall_ns(),
					clock_now()));
}

static void reset_connection(struct call *c)
{
	const struct api *api = c->env->api;
	char who[96];
	int n;

	who_is(c->env->uid, who, sizeof(who));
	n = api->reset_connection(api->user, text_param(c, "connection"), who);
	if (n < 0)
		no_such_connection(c);
	else
		reply(c->answer, json_pack("{s:i}", "count", n));
}

static void set_port_health(struct call *c)
{
	const struct api *api = c->env->api;
	int health = enum_find(&override_names, text_param(c, "health"));
	char who[96];

	who_is(c->env->uid, who, sizeof(who));
	if (api->set_port_health(api->user, text_param(c, "port"),
				 (enum health_override)health,
				 int_param(c, "for_sec", 0), who) < 0)
		no_such_port(c);
	else
		get_port(c);
}

/* ---- the fabric ---- */

static void get_fabric(struct call *c)
{
	const struct api *api = c->env->api;

	reply(c->answer, json_pack("{s:o}", "fabric", api->fabric(api->user)));
}

static void get_fabric_sa(struct call *c)
{
	const struct api *api = c->env->api;

	reply(c->answer, json_pack("{s:o}", "sa", api->fabric_sa(api->user)));
}

static void list_fabric_nodes(struct call *c)
{
	list(c, API_FABRIC_NODES, NULL);
}

static void list_fabric_links(struct call *c)
{
	list(c, API_FABRIC_LINKS, NULL);
}

static void list_fabric_errors(struct call *c)
{
	list(c, API_FABRIC_ERRORS, NULL);
}

static void get_fabric_route(struct call *c)
{
	const struct api *api = c->env->api;
	json_t *parameters = NULL;
	const char *error = api->fabric_route(api->user, text_param(c, "from"),
					      text_param(c, "to"), &parameters);

	if (error)
		answer_error(c->answer, REJECT_INVALID_PARAMETER, error, parameters);
	else
		reply(c->answer, parameters);
}

/* false: too many wait already. */
static bool later(struct call *c)
{
	if (!c->env->ticket) {
		answer_error(c->answer, REJECT_TOO_MANY_WAITING, "io.fabd.Busy",
			     one_text("why", "too many wait for answers already"));
		return false;
	}
	c->answer->kind = ANSWER_LATER;
	return true;
}

static void get_fabric_port(struct call *c)
{
	const struct api *api = c->env->api;

	if (later(c))
		api->fabric_port(api->user, text_param(c, "port"), c->env->ticket);
}

static void sweep_fabric(struct call *c)
{
	const struct api *api = c->env->api;
	bool cold = json_is_true(json_object_get(c->request->parameters, "cold"));
	char who[96];

	if (!later(c))
		return;
	who_is(c->env->uid, who, sizeof(who));
	api->sweep_fabric(api->user, cold, who, c->env->ticket);
}

/* ---- pings ---- */

#define PING_MODEST_COUNT 1000
#define PING_MODEST_US	  10000

static unsigned transports_param(const struct call *c)
{
	const json_t *names = json_object_get(c->request->parameters, "transport");
	unsigned bits = 0;
	size_t i;
	json_t *v;

	json_array_foreach (names, i, v)
		bits |= 1u << enum_find(&transport_names, json_string_value(v));
	return bits ? bits : (1u << TRANSPORT__MAX) - 1;
}

static void ping(struct call *c)
{
	const struct api *api = c->env->api;
	const json_t *interval = json_object_get(c->request->parameters, "interval_ms");
	const struct api_ping p = {
		.peer = text_param(c, "peer"),
		.rail = text_param(c, "rail"),
		.transports = transports_param(c),
		.flow = (int)int_param(c, "flow", -1),
		.size = (uint32_t)int_param(c, "size", EP_PING_SIZE_MIN),
		.count = (uint32_t)int_param(c, "count", 10),
		.interval_us = json_is_number(interval)
				       ? (uint32_t)(json_number_value(interval) * 1000)
				       : 100000,
		.timeout_us = (uint32_t)int_param(c, "timeout_ms", 1000) * 1000,
		.admin = c->env->admin,
	};

	if (p.size && p.size < EP_PING_SIZE_MIN) {
		invalid(c->answer, "size");
		return;
	}
	/* Who may only ask must not be able to load the network, or the peer. */
	if (!p.admin &&
	    (p.count > PING_MODEST_COUNT || p.interval_us < PING_MODEST_US)) {
		not_allowed(c->env, c->answer, c->request->method,
			    "more than 1000 messages, or more than 100 a second: ");
		return;
	}
	if (later(c))
		api->ping(api->user, &p, c->env->ticket);
}

/* ---- dispatch ---- */

/* clang-format off */
static const struct {
	const char *method;
	void (*fn)(struct call *c);
} handlers[] = {
	{"org.varlink.service.GetInfo", get_info},
	{"org.varlink.service.GetInterfaceDescription", get_interface_description},
	{"io.fabd.GetStatus", get_status},
	{"io.fabd.ListDevices", list_devices},
	{"io.fabd.ListPorts", list_ports},
	{"io.fabd.GetPort", get_port},
	{"io.fabd.GetPortCounters", get_port_counters},
	{"io.fabd.ListPeers", list_peers},
	{"io.fabd.ListConnections", list_connections},
	{"io.fabd.GetConnection", get_connection},
	{"io.fabd.ListHistory", list_history},
	{"io.fabd.Monitor", monitor_call},
	{"io.fabd.Explain", explain_call},
	{"io.fabd.Check", check_call},
	{"io.fabd.GetFabric", get_fabric},
	{"io.fabd.ListFabricNodes", list_fabric_nodes},
	{"io.fabd.ListFabricLinks", list_fabric_links},
	{"io.fabd.ListFabricErrors", list_fabric_errors},
	{"io.fabd.GetFabricSa", get_fabric_sa},
	{"io.fabd.GetFabricPort", get_fabric_port},
	{"io.fabd.GetFabricRoute", get_fabric_route},
	{"io.fabd.SweepFabric", sweep_fabric},
	{"io.fabd.GetMatrix", get_matrix},
	{"io.fabd.Ping", ping},
	{"io.fabd.ResetConnection", reset_connection},
	{"io.fabd.SetPortHealth", set_port_health},
};
/* clang-format on */

static bool interface_known(const char *name, size_t len)
{
	return (len == strlen("io.fabd") && !memcmp(name, "io.fabd", len)) ||
	       (len == strlen("org.varlink.service") &&
		!memcmp(name, "org.varlink.service", len));
}

static void not_found(struct answer *a, const char *method)
{
	const char *dot = strrchr(method, '.');
	size_t len = dot ? (size_t)(dot - method) : 0;

	if (!dot || interface_known(method, len))
		answer_error(a, REJECT_UNKNOWN_METHOD,
			     "org.varlink.service.MethodNotFound",
			     one_text("method", method));
	else
		answer_error(a, REJECT_UNKNOWN_METHOD,
			     "org.varlink.service.InterfaceNotFound",
			     json_pack("{s:s%}", "interface", method, len));
}

void method_call(const struct method_env *env, const struct varlink_request *r,
		 struct answer *ret)
{
	const struct varlink_method *m = varlink_method_find(r->method);
	struct call c = {.env = env, .request = r, .answer = ret};
	const char *param;

	*ret = (struct answer){0};
	if (!m)
		not_found(ret, r->method);
	else if (r->upgrade)
		invalid(ret, "upgrade");
	else if (m->admin && !env->admin)
		not_allowed(env, ret, r->method, "");
	else if (varlink_params_check(m, r->parameters, &param) < 0)
		invalid(ret, param);
	else if (m->more && !r->more)
		answer_error(ret, REJECT_EXPECTED_MORE, "io.fabd.ExpectedMore", NULL);
	else {
		for (size_t i = 0; i < ARRAY_LEN(handlers); i++)
			if (!strcmp(handlers[i].method, m->name))
				handlers[i].fn(&c);
	}
}
