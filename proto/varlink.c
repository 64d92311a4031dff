/* SPDX-License-Identifier: BSD-2-Clause */
#include "varlink.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "endpoint.h"
#include "matrix.h"

/* Ages come with milliseconds: 15 digits print them without binary noise. */
#define DUMP_FLAGS (JSON_COMPACT | JSON_REAL_PRECISION(15))

/* ---- framing ---- */

struct frame_end {
	size_t from, at; /* offsets in buf: its first byte, its terminator */
	char how;
};

struct varlink_frame {
	size_t max;
	char *buf; /* owned */
	size_t len, size;
	size_t start;		/* of the first request that is not taken yet */
	size_t open;		/* of the request that is not whole yet */
	struct frame_end *ends; /* owned: whole requests that are not taken yet */
	size_t n_ends, next_end, ends_size;
	unsigned depth;
	bool in_string, escaped, blank;
	int error;
};

struct varlink_frame *varlink_frame_new(size_t max)
{
	struct varlink_frame *f = xcalloc(1, sizeof(*f));

	f->max = max;
	f->blank = true;
	return f;
}

struct varlink_frame *varlink_frame_free(struct varlink_frame *f)
{
	if (!f)
		return NULL;
	free(f->buf);
	free(f->ends);
	free(f);
	return NULL;
}

/* Room for @len more bytes; what is taken already makes way first. */
static void frame_room(struct varlink_frame *f, size_t len)
{
	if (f->start > 0) {
		memmove(f->buf, f->buf + f->start, f->len - f->start);
		f->len -= f->start;
		f->open -= f->start;
		for (size_t i = f->next_end; i < f->n_ends; i++) {
			f->ends[i].from -= f->start;
			f->ends[i].at -= f->start;
		}
		f->start = 0;
	}
	if (f->size - f->len < len + 1) {
		f->size = f->len + len + 1;
		f->buf = xrealloc(f->buf, f->size, 1);
	}
}

static void frame_end(struct varlink_frame *f, size_t at, char how)
{
	if (!f->blank) {
		if (f->next_end == f->n_ends)
			f->next_end = f->n_ends = 0;
		if (f->n_ends == f->ends_size) {
			f->ends_size = MAX(2 * f->ends_size, (size_t)4);
			f->ends = xrealloc(f->ends, f->ends_size, sizeof(f->ends[0]));
		}
		f->ends[f->n_ends++] = (struct frame_end){f->open, at, how};
	}
	f->open = at + 1;
	f->depth = 0;
	f->in_string = f->escaped = false;
	f->blank = true;
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/* One byte of a request; knows just enough JSON to tell strings and depth. */
static int frame_scan(struct varlink_frame *f, char c)
{
	if (f->in_string) {
		if (f->escaped)
			f->escaped = false;
		else if (c == '\\')
			f->escaped = true;
		else if (c == '"')
			f->in_string = false;
		return 0;
	}
	if (!is_blank(c))
		f->blank = false;
	if (c == '"')
		f->in_string = true;
	else if ((c == '}' || c == ']') && f->depth > 0)
		f->depth--;
	else if ((c == '{' || c == '[') && ++f->depth > VARLINK_DEPTH_MAX)
		return -EBADMSG;
	return 0;
}

int varlink_frame_put(struct varlink_frame *f, const void *buf, size_t len)
{
	const char *s = buf;

	if (f->error)
		return f->error;
	frame_room(f, len);
	for (size_t i = 0; i < len; i++) {
		/* Blanks before a request are not part of it, however they come. */
		if (is_blank(s[i]) && f->open == f->len)
			continue;
		f->buf[f->len++] = s[i];
		if (s[i] == '\0' || (s[i] == '\n' && !f->in_string && !f->depth))
			frame_end(f, f->len - 1, s[i]);
		else if (f->len - f->open > f->max)
			f->error = -EMSGSIZE;
		else
			f->error = frame_scan(f, s[i]);
		if (f->error)
			return f->error;
	}
	return 0;
}

bool varlink_frame_next(struct varlink_frame *f, char **ret_text, size_t *ret_len,
			char *ret_end)
{
	struct frame_end *e;
	char *text;

	if (f->next_end == f->n_ends)
		return false;
	e = &f->ends[f->next_end++];
	text = f->buf + e->from;
	f->buf[e->at] = '\0';
	*ret_text = text;
	*ret_len = (size_t)(f->buf + e->at - text);
	*ret_end = e->how;
	f->start = e->at + 1;
	return true;
}

void varlink_frame_eof(struct varlink_frame *f)
{
	if (f->error || f->blank)
		return;
	frame_room(f, 1);
	f->len++;
	frame_end(f, f->len - 1, '\n');
}

/* ---- requests ---- */

static int bad_request(struct varlink_request *r, char *why, size_t why_size,
		       const char *fmt, ...) PRINTF_LIKE(4, 5);

static int bad_request(struct varlink_request *r, char *why, size_t why_size,
		       const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(why, why_size, fmt, ap);
	va_end(ap);
	varlink_request_done(r);
	return -EINVAL;
}

static bool take_flag(json_t *value, bool *ret)
{
	if (!json_is_boolean(value))
		return false;
	*ret = json_is_true(value);
	return true;
}

int varlink_request_parse(const char *text, size_t len, struct varlink_request *ret,
			  char *why, size_t why_size)
{
	json_error_t error;
	const char *key;
	json_t *value;

	*ret = (struct varlink_request){0};
	ret->root = json_loadb(text, len, JSON_REJECT_DUPLICATES, &error);
	if (!ret->root)
		return bad_request(ret, why, why_size, "line %d column %d: %s",
				   error.line, error.column, error.text);
	if (!json_is_object(ret->root))
		return bad_request(ret, why, why_size, "a request is a JSON object");
	json_object_foreach (ret->root, key, value) {
		bool good = true;

		if (!strcmp(key, "method"))
			good = (ret->method = json_string_value(value));
		else if (!strcmp(key, "parameters"))
			good = json_is_object(value) || json_is_null(value);
		else if (!strcmp(key, "more"))
			good = take_flag(value, &ret->more);
		else if (!strcmp(key, "oneway"))
			good = take_flag(value, &ret->oneway);
		else if (!strcmp(key, "upgrade"))
			good = take_flag(value, &ret->upgrade);
		else
			return bad_request(ret, why, why_size,
					   "unknown member of a request: %.40s", key);
		if (!good)
			return bad_request(ret, why, why_size, "%s has the wrong type",
					   key);
	}
	if (!ret->method)
		return bad_request(ret, why, why_size, "no method");
	ret->parameters = json_object_get(ret->root, "parameters");
	if (!json_is_object(ret->parameters)) {
		ret->parameters = json_object();
		(void)json_object_set_new(ret->root, "parameters", ret->parameters);
	}
	return 0;
}

void varlink_request_done(struct varlink_request *r)
{
	json_decref(r->root);
	*r = (struct varlink_request){0};
}

/* ---- replies and calls ---- */

static char *dump(json_t *message)
{
	char *text = json_dumps(message, DUMP_FLAGS);

	if (!text)
		abort(); /* memory, or a message that is no JSON: a bug */
	json_decref(message);
	return text;
}

static json_t *message_new(json_t *parameters)
{
	json_t *message = json_object();

	if (json_object_set_new(message, "parameters",
				parameters ? parameters : json_object()) < 0)
		abort();
	return message;
}

char *varlink_reply_text(json_t *parameters, bool continues)
{
	json_t *message = message_new(parameters);

	if (continues)
		(void)json_object_set_new(message, "continues", json_true());
	return dump(message);
}

char *varlink_error_text(const char *error, json_t *parameters)
{
	json_t *message = message_new(parameters);

	(void)json_object_set_new(message, "error", json_string(error));
	return dump(message);
}

char *varlink_call_text(const char *method, json_t *parameters, bool more)
{
	json_t *message = message_new(parameters);

	(void)json_object_set_new(message, "method", json_string(method));
	if (more)
		(void)json_object_set_new(message, "more", json_true());
	return dump(message);
}

/* ---- methods ---- */

#define TEN_YEARS_SEC (INT64_C(10) * 366 * 86400)

/* clang-format off */
const struct varlink_method varlink_methods[] = {
	{"org.varlink.service.GetInfo", .n_params = 0},
	{"org.varlink.service.GetInterfaceDescription", .n_params = 1, .params = {
		{"interface", VL_STRING}}},
	{"io.fabd.GetStatus", .n_params = 0},
	{"io.fabd.ListDevices", .n_params = 0},
	{"io.fabd.ListPorts", .n_params = 1, .params = {
		{"device", VL_STRING, .optional = true}}},
	{"io.fabd.GetPort", .n_params = 1, .params = {
		{"port", VL_STRING}}},
	{"io.fabd.GetPortCounters", .n_params = 2, .params = {
		{"port", VL_STRING},
		{"since_sec", VL_INT, .optional = true, .min = 1, .max = 86400}}},
	{"io.fabd.ListPeers", .n_params = 0},
	{"io.fabd.ListConnections", .n_params = 1, .params = {
		{"peer", VL_STRING, .optional = true}}},
	{"io.fabd.GetConnection", .n_params = 1, .params = {
		{"connection", VL_STRING}}},
	{"io.fabd.ListHistory", .n_params = 2, .params = {
		{"since_sec", VL_INT, .optional = true, .min = 0, .max = INT32_MAX},
		{"name", VL_STRING, .optional = true}}},
	{"io.fabd.GetMatrix", .n_params = 2, .params = {
		{"by", VL_ENUM, .names = &matrix_by_names},
		{"show", VL_ENUM, .names = &matrix_show_names}}},
	{"io.fabd.Ping", .more = true, .n_params = 8, .params = {
		{"peer", VL_STRING},
		{"rail", VL_STRING, .optional = true},
		{"transport", VL_ENUMS, .optional = true, .names = &transport_names},
		{"flow", VL_INT, .optional = true, .min = 0, .max = 65535},
		{"size", VL_INT, .optional = true, .min = 0, .max = 65487},
		{"count", VL_INT, .optional = true, .min = 1, .max = EP_PING_COUNT_MAX},
		{"interval_ms", VL_NUMBER, .optional = true, .min = 0, .max = 3600000},
		{"timeout_ms", VL_INT, .optional = true, .min = 1, .max = 60000}}},
	{"io.fabd.Monitor", .more = true, .n_params = 2, .params = {
		{"since", VL_INT, .optional = true, .min = 0, .max = INT64_MAX},
		{"instance", VL_STRING, .optional = true}}},
	{"io.fabd.Explain", .n_params = 4, .params = {
		{"peer", VL_STRING},
		{"rail", VL_STRING, .optional = true},
		{"transport", VL_ENUM, .optional = true, .names = &transport_names},
		{"connection", VL_STRING, .optional = true}}},
	{"io.fabd.Check", .n_params = 0},
	{"io.fabd.GetFabric", .n_params = 0},
	{"io.fabd.ListFabricNodes", .n_params = 0},
	{"io.fabd.ListFabricLinks", .n_params = 0},
	{"io.fabd.ListFabricErrors", .n_params = 0},
	{"io.fabd.GetFabricSa", .n_params = 0},
	{"io.fabd.GetFabricPort", .n_params = 1, .params = {
		{"port", VL_STRING}}},
	{"io.fabd.GetFabricRoute", .n_params = 2, .params = {
		{"from", VL_STRING},
		{"to", VL_STRING}}},
	{"io.fabd.SweepFabric", .admin = true, .more = true, .n_params = 1, .params = {
		{"cold", VL_BOOL, .optional = true}}},
	{"io.fabd.ResetConnection", .admin = true, .n_params = 1, .params = {
		{"connection", VL_STRING}}},
	{"io.fabd.SetPortHealth", .admin = true, .n_params = 3, .params = {
		{"port", VL_STRING},
		{"health", VL_ENUM, .names = &override_names},
		{"for_sec", VL_INT, .optional = true, .min = 0, .max = TEN_YEARS_SEC}}},
};
/* clang-format on */
const int varlink_n_methods = ARRAY_LEN(varlink_methods);

const struct varlink_method *varlink_method_find(const char *name)
{
	for (int i = 0; i < varlink_n_methods; i++)
		if (!strcmp(varlink_methods[i].name, name))
			return &varlink_methods[i];
	return NULL;
}

/* enum_find() is kind to people; the socket is exact. */
static bool is_name(const struct enum_names *names, const json_t *value)
{
	int v = json_is_string(value) ? enum_find(names, json_string_value(value)) : -1;

	return v >= 0 && !strcmp(json_string_value(value), enum_name(names, v));
}

static bool are_names(const struct enum_names *names, const json_t *value)
{
	size_t i;
	json_t *v;

	json_array_foreach (value, i, v)
		if (!is_name(names, v))
			return false;
	return json_array_size(value) > 0; /* of what is no array: 0 */
}

static bool param_fits(const struct varlink_param *p, const json_t *value)
{
	if (!value || json_is_null(value))
		return p->optional;
	switch (p->type) {
	case VL_STRING:
		return json_is_string(value);
	case VL_BOOL:
		return json_is_boolean(value);
	case VL_INT:
		return json_is_integer(value) && json_integer_value(value) >= p->min &&
		       json_integer_value(value) <= p->max;
	case VL_NUMBER:
		return json_is_number(value) &&
		       json_number_value(value) >= (double)p->min &&
		       json_number_value(value) <= (double)p->max;
	case VL_ENUM:
		return is_name(p->names, value);
	case VL_ENUMS:
		return are_names(p->names, value);
	}
	return false;
}

static bool param_known(const struct varlink_method *m, const char *name)
{
	for (int i = 0; i < m->n_params; i++)
		if (!strcmp(m->params[i].name, name))
			return true;
	return false;
}

int varlink_params_check(const struct varlink_method *m, json_t *parameters,
			 const char **ret_param)
{
	const char *key;
	json_t *value;

	json_object_foreach (parameters, key, value) {
		if (!param_known(m, key)) {
			*ret_param = key;
			return -EINVAL;
		}
	}
	for (int i = 0; i < m->n_params; i++) {
		if (!param_fits(&m->params[i],
				json_object_get(parameters, m->params[i].name))) {
			*ret_param = m->params[i].name;
			return -EINVAL;
		}
	}
	return 0;
}
