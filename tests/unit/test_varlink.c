/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "check.h"
#include "explain.h"
#include "idl.h"
#include "matrix.h"
#include "names.h"
#include "port_watch.h"
#include "sweep.h"
#include "varlink.h"

/* ---- framing ---- */

/* What came out: each request in brackets, then its end as 0 or n. */
static void drain(struct varlink_frame *f, char *out, size_t size)
{
	char *text, end;
	size_t len;

	while (varlink_frame_next(f, &text, &len, &end)) {
		assert_int_equal(len, strlen(text));
		str_append(out, size, "[%s]%c", text, end ? 'n' : '0');
	}
}

#define S(literal) literal, sizeof(literal) - 1

static const struct {
	const char *in;
	size_t len;
	const char *out;
} streams[] = {
	{S("{\"a\":1}\n"), "[{\"a\":1}]n"},
	{S("{\"a\":1}\0"), "[{\"a\":1}]0"},
	{S("{\"a\":1}\n{\"b\":2}\0{\"c\":3}"), "[{\"a\":1}]n[{\"b\":2}]0[{\"c\":3}]n"},
	{S("{\n  \"a\": [\n1\n]\n}\0"), "[{\n  \"a\": [\n1\n]\n}]0"},
	{S("{\"a\":\"x\ny}]\"}\n"), "[{\"a\":\"x\ny}]\"}]n"},
	{S("{\"a\":\"\\\"\\\\\"}\n{}\n"), "[{\"a\":\"\\\"\\\\\"}]n[{}]n"},
	{S("\n \r\n\t\n\0\0 {}\n \n\0"), "[{}]n"},
	{S("]]}}\n{}\n"), "[]]}}]n[{}]n"},
	{S("GET / HTTP/1.1\r\n"), "[GET / HTTP/1.1\r]n"},
	{S("{\"open\": \"\0{}\0"), "[{\"open\": \"]0[{}]0"},
	{S("{\"unfinished\": "), "[{\"unfinished\": ]n"},
	{S(""), ""},
	{S("   "), ""},
};

static void every_split_gives_the_same(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(streams); i++) {
		for (size_t a = 0; a <= streams[i].len; a++) {
			for (size_t b = a; b <= streams[i].len; b++) {
				struct varlink_frame *f = varlink_frame_new(100);
				const char *in = streams[i].in;
				char out[256] = "";

				assert_int_equal(varlink_frame_put(f, in, a), 0);
				drain(f, out, sizeof(out));
				assert_int_equal(varlink_frame_put(f, in + a, b - a),
						 0);
				if (b % 2)
					drain(f, out, sizeof(out));
				assert_int_equal(varlink_frame_put(f, in + b,
								   streams[i].len - b),
						 0);
				varlink_frame_eof(f);
				drain(f, out, sizeof(out));
				assert_string_equal(out, streams[i].out);
				varlink_frame_free(f);
			}
		}
	}
}

static void size_is_limited(void **state)
{
	struct varlink_frame *f = varlink_frame_new(10);
	char out[64] = "";

	(void)state;
	assert_int_equal(varlink_frame_put(f, "0123456789\n0123456789\n", 22), 0);
	drain(f, out, sizeof(out));
	assert_string_equal(out, "[0123456789]n[0123456789]n");
	/* What came whole before the mistake is still there; nothing comes after it. */
	assert_int_equal(varlink_frame_put(f, "{}\n01234567890", 14), -EMSGSIZE);
	assert_int_equal(varlink_frame_put(f, "{}\n", 3), -EMSGSIZE);
	out[0] = '\0';
	drain(f, out, sizeof(out));
	varlink_frame_eof(f);
	drain(f, out, sizeof(out));
	assert_string_equal(out, "[{}]n");
	varlink_frame_free(f);
}

static void depth_is_limited(void **state)
{
	struct varlink_frame *f = varlink_frame_new(1000);

	(void)state;
	for (int i = 0; i < VARLINK_DEPTH_MAX; i++)
		assert_int_equal(varlink_frame_put(f, i % 2 ? "[" : "{", 1), 0);
	assert_int_equal(varlink_frame_put(f, "\"[[[[\"", 6), 0);
	assert_int_equal(varlink_frame_put(f, "[", 1), -EBADMSG);
	varlink_frame_free(f);
}

/* ---- requests ---- */

static int parse(const char *text, struct varlink_request *r, char why[128])
{
	why[0] = '\0';
	return varlink_request_parse(text, strlen(text), r, why, 128);
}

static void good_requests(void **state)
{
	struct varlink_request r;
	char why[128];

	(void)state;
	assert_int_equal(parse("{\"method\":\"a.b.C\"}", &r, why), 0);
	assert_string_equal(r.method, "a.b.C");
	assert_true(json_is_object(r.parameters));
	assert_false(r.more || r.oneway || r.upgrade);
	varlink_request_done(&r);
	assert_null(r.root);
	assert_int_equal(parse("{\"method\":\"a\",\"parameters\":null,\"more\":true,"
			       "\"oneway\":true,\"upgrade\":true}",
			       &r, why),
			 0);
	assert_true(r.more && r.oneway && r.upgrade);
	assert_int_equal(json_object_size(r.parameters), 0);
	varlink_request_done(&r);
	assert_int_equal(parse("{\"method\":\"a\",\"parameters\":{\"x\":1}}", &r, why),
			 0);
	assert_int_equal(json_integer_value(json_object_get(r.parameters, "x")), 1);
	varlink_request_done(&r);
}

static void bad_requests(void **state)
{
	static const struct {
		const char *text, *why;
	} cases[] = {
		{"x", "line 1"},
		{"[]", "a request is a JSON object"},
		{"{}", "no method"},
		{"{\"method\":1}", "method has the wrong type"},
		{"{\"method\":\"a\",\"more\":1}", "more has the wrong type"},
		{"{\"method\":\"a\",\"oneway\":null}", "oneway has the wrong type"},
		{"{\"method\":\"a\",\"upgrade\":\"\"}", "upgrade has the wrong type"},
		{"{\"method\":\"a\",\"parameters\":[]}",
		 "parameters has the wrong type"},
		{"{\"method\":\"a\",\"method\":\"b\"}", "duplicate object key"},
		{"{\"method\":\"a\",\"parameters\":{\"x\":1,\"x\":2}}", "duplicate"},
		{"{\"method\":\"a\",\"paramters\":{}}", "unknown member of a request"},
		{"{\"method\":\"a\"}{}", "line 1"},
		{"{\"method\":\"a\\u0000b\"}", "line 1"},
		{"{\"method\":\"\xff\"}", "line 1"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct varlink_request r;
		char why[128];

		assert_int_equal(parse(cases[i].text, &r, why), -EINVAL);
		if (!strstr(why, cases[i].why))
			fail_msg("%s: %s", cases[i].text, why);
		assert_null(r.root);
	}
}

static void messages(void **state)
{
	char *t;

	(void)state;
	t = varlink_reply_text(NULL, false);
	assert_string_equal(t, "{\"parameters\":{}}");
	free(t);
	t = varlink_reply_text(json_pack("{s:f}", "age_sec", 0.1), true);
	assert_string_equal(t, "{\"parameters\":{\"age_sec\":0.1},\"continues\":true}");
	free(t);
	t = varlink_error_text("a.b.C", json_pack("{s:s}", "x", "y"));
	assert_string_equal(t, "{\"parameters\":{\"x\":\"y\"},\"error\":\"a.b.C\"}");
	free(t);
	t = varlink_call_text("a.b.C", NULL, true);
	assert_string_equal(t,
			    "{\"parameters\":{},\"method\":\"a.b.C\",\"more\":true}");
	free(t);
}

/* ---- parameters ---- */

static const char *check(const char *method, const char *parameters)
{
	const struct varlink_method *m = varlink_method_find(method);
	json_t *p = json_loads(parameters, 0, NULL);
	static char name[64];
	const char *bad = NULL;

	assert_non_null(m);
	assert_non_null(p);
	name[0] = '\0';
	if (varlink_params_check(m, p, &bad) < 0)
		(void)str_copy(name, sizeof(name), bad);
	json_decref(p);
	return name;
}

static void parameters_are_checked(void **state)
{
	(void)state;
	assert_null(varlink_method_find("io.fabd.getPort"));
	assert_string_equal(check("io.fabd.GetPort", "{\"port\":\"a/1\"}"), "");
	assert_string_equal(check("io.fabd.GetPort", "{}"), "port");
	assert_string_equal(check("io.fabd.GetPort", "{\"port\":null}"), "port");
	assert_string_equal(check("io.fabd.GetPort", "{\"port\":1}"), "port");
	assert_string_equal(check("io.fabd.GetPort", "{\"port\":\"a\",\"q\":1}"), "q");
	assert_string_equal(check("io.fabd.GetStatus", "{\"x\":null}"), "x");
	assert_string_equal(check("io.fabd.ListPorts", "{\"device\":null}"), "");
	assert_string_equal(check("io.fabd.Monitor", "{\"since\":0}"), "");
	assert_string_equal(check("io.fabd.Monitor", "{\"since\":-1}"), "since");
	assert_string_equal(check("io.fabd.Monitor", "{\"since\":1.0}"), "since");
	assert_string_equal(check("io.fabd.Monitor", "{\"since\":\"1\"}"), "since");
	assert_string_equal(
		check("io.fabd.SetPortHealth", "{\"port\":\"a\",\"health\":\"bad\"}"),
		"");
	assert_string_equal(
		check("io.fabd.SetPortHealth", "{\"port\":\"a\",\"health\":\"Bad\"}"),
		"health");
	assert_string_equal(
		check("io.fabd.SetPortHealth", "{\"port\":\"a\",\"health\":2}"),
		"health");
	assert_string_equal(check("io.fabd.SetPortHealth",
				  "{\"port\":\"a\",\"health\":\"ok\","
				  "\"for_sec\":9999999999}"),
			    "for_sec");
}

static const char *check_ping(const char *more)
{
	_cleanup_(freep) char *text = xasprintf("{\"peer\":\"a\",%s}", more);

	return check("io.fabd.Ping", text);
}

static void numbers_and_sets_are_checked(void **state)
{
	(void)state;
	assert_string_equal(check_ping("\"interval_ms\":0.5"), "");
	assert_string_equal(check_ping("\"interval_ms\":100"), "");
	assert_string_equal(check_ping("\"interval_ms\":0"), "");
	assert_string_equal(check_ping("\"interval_ms\":null"), "");
	assert_string_equal(check_ping("\"interval_ms\":-0.5"), "interval_ms");
	assert_string_equal(check_ping("\"interval_ms\":3600001"), "interval_ms");
	assert_string_equal(check_ping("\"interval_ms\":\"1\""), "interval_ms");
	assert_string_equal(check_ping("\"transport\":[\"udp\"]"), "");
	assert_string_equal(check_ping("\"transport\":[\"udp\",\"ud\"]"), "");
	assert_string_equal(check_ping("\"transport\":[]"), "transport");
	assert_string_equal(check_ping("\"transport\":\"udp\""), "transport");
	assert_string_equal(check_ping("\"transport\":{\"udp\":1}"), "transport");
	assert_string_equal(check_ping("\"transport\":[\"UDP\"]"), "transport");
	assert_string_equal(check_ping("\"transport\":[0]"), "transport");
}

/* ---- the tables against the IDL ---- */

static void both_definitions_parse(void **state)
{
	json_t *fabd = idl_parse(varlink_idl_fabd),
	       *service = idl_parse(varlink_idl_service);

	(void)state;
	assert_non_null(fabd);
	assert_non_null(service);
	assert_string_equal(json_string_value(json_object_get(fabd, "interface")),
			    "io.fabd");
	assert_string_equal(json_string_value(json_object_get(service, "interface")),
			    "org.varlink.service");
	json_decref(fabd);
	json_decref(service);
}

static void enums_are_those_of_the_idl(void **state)
{
	static const char *const config_sources[] = {"file", "last_good", "partial"};
	static const struct enum_names config_names = {config_sources, 3};
	static const char *const states[] = {"off", "waiting", "sweeping", "idle"};
	static const struct enum_names state_names = {states, 4};
	static const struct {
		const char *type;
		const struct enum_names *names;
	} all[] = {
		{"Health", &health_names},
		{"HealthOverride", &override_names},
		{"Role", &role_names},
		{"Transport", &transport_names},
		{"ConnectionState", &conn_state_names},
		{"Verdict", &verdict_names},
		{"WorkerKind", &worker_kind_names},
		{"WorkerState", &worker_state_names},
		{"FactSource", &source_names},
		{"EndpointStage", &ep_stage_names},
		{"ConfigSource", &config_names},
		{"ReasonCode", &reason_names},
		{"CounterKind", &counter_kind_names},
		{"SweepKind", &sweep_kind_names},
		{"SweepState", &state_names},
		{"FabricProblem", &sweep_problem_names},
		{"StepName", &explain_step_names},
		{"StepMark", &explain_mark_names},
		{"FaultPlace", &fault_place_names},
		{"CheckStatus", &check_status_names},
		{"MatrixBy", &matrix_by_names},
		{"MatrixShow", &matrix_show_names},
	};
	json_t *idl = idl_parse(varlink_idl_fabd), *type;
	const char *name;
	size_t n = 0;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(all); i++) {
		json_t *names = json_object_get(idl_type(idl, all[i].type), "enum");

		assert_int_equal(json_array_size(names), all[i].names->n);
		for (int v = 0; v < all[i].names->n; v++)
			assert_string_equal(
				json_string_value(json_array_get(names, (size_t)v)),
				enum_name(all[i].names, v));
	}
	/* No enum of the IDL is left out. */
	json_object_foreach (json_object_get(idl, "types"), name, type)
		n += json_object_get(type, "enum") != NULL;
	assert_int_equal(n, ARRAY_LEN(all));
	json_decref(idl);
}

static void check_param(const json_t *idl, const struct varlink_param *p,
			const json_t *type)
{
	static const char *const names[] = {
		[VL_STRING] = "string", [VL_INT] = "int", [VL_BOOL] = "bool",
		[VL_NUMBER] = "float"};
	const json_t *inner = json_object_get(type, "maybe");

	assert_non_null(type);
	assert_int_equal(p->optional, inner != NULL);
	inner = inner ? inner : type;
	if (p->type == VL_ENUMS)
		inner = json_object_get(inner, "array");
	if (p->type == VL_ENUM || p->type == VL_ENUMS) {
		json_t *values = json_object_get(
			idl_type(idl, json_string_value(inner)), "enum");

		assert_int_equal(json_array_size(values), p->names->n);
	} else {
		assert_string_equal(json_string_value(inner), names[p->type]);
	}
}

static void methods_are_those_of_the_idl(void **state)
{
	const char *const texts[] = {varlink_idl_fabd, varlink_idl_service};
	int n = 0;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		json_t *idl = idl_parse(texts[i]), *method;
		const char *interface =
			json_string_value(json_object_get(idl, "interface"));
		const char *name;

		json_object_foreach (json_object_get(idl, "methods"), name, method) {
			_cleanup_(freep) char *full =
				xasprintf("%s.%s", interface, name);
			const struct varlink_method *m = varlink_method_find(full);
			json_t *in = json_object_get(json_object_get(method, "in"),
						     "struct");

			assert_non_null(m);
			assert_int_equal(m->n_params, json_object_size(in));
			for (int p = 0; p < m->n_params; p++)
				check_param(idl, &m->params[p],
					    json_object_get(in, m->params[p].name));
			n++;
		}
		json_decref(idl);
	}
	assert_int_equal(n, varlink_n_methods);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_split_gives_the_same),
		cmocka_unit_test(size_is_limited),
		cmocka_unit_test(depth_is_limited),
		cmocka_unit_test(good_requests),
		cmocka_unit_test(bad_requests),
		cmocka_unit_test(messages),
		cmocka_unit_test(parameters_are_checked),
		cmocka_unit_test(numbers_and_sets_are_checked),
		cmocka_unit_test(both_definitions_parse),
		cmocka_unit_test(enums_are_those_of_the_idl),
		cmocka_unit_test(methods_are_those_of_the_idl),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
