/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * varlink.h - framing and messages of Varlink (JSON over a stream socket). A request
 * ends in NUL, or in a newline outside strings at depth 0 (for people with socat and
 * jq); its reply ends as it did. Pretty-printed JSON + NUL is valid. Pure: bytes in,
 * requests out; jansson does the JSON.
 */
#pragma once

#include <jansson.h>

#include "util.h"

#define VARLINK_REQUEST_MAX (64 * 1024)
#define VARLINK_DEPTH_MAX 16

struct varlink_frame; /* opaque: bytes of one client that are not a request yet */
struct varlink_frame *varlink_frame_new(size_t max);
struct varlink_frame *varlink_frame_free(struct varlink_frame *f);
/* Add bytes. 0; -EMSGSIZE: the request is longer than max; -EBADMSG: deeper than
 * VARLINK_DEPTH_MAX. After an error the connection must be closed. */
int varlink_frame_put(struct varlink_frame *f, const void *buf, size_t len);
/* The next whole request: text (NUL-terminated, borrowed until the next call) and how
 * it ended ('\0' or '\n'). false: none yet. Blank lines are skipped. */
bool varlink_frame_next(struct varlink_frame *f, char **ret_text, size_t *ret_len, char *ret_end);
/* End of file: what is left counts as a request that ended in a newline, if it is not
 * blank. */
void varlink_frame_eof(struct varlink_frame *f);

struct varlink_request {
	json_t *root; /* owned */
	const char *method; /* borrowed from root */
	json_t *parameters; /* borrowed; an object, never NULL */
	bool more, oneway, upgrade;
};
/* 0; or -EINVAL with @why: not JSON, no object, no method, wrong types, duplicate keys. */
int varlink_request_parse(const char *text, size_t len, struct varlink_request *ret,
			  char *why, size_t why_size);
void varlink_request_done(struct varlink_request *r);

/* Text of a reply, without its end; the caller owns it. @parameters is taken (may be
 * NULL = {}). */
char *varlink_reply_text(json_t *parameters, bool continues);
char *varlink_error_text(const char *error, json_t *parameters);
char *varlink_call_text(const char *method, json_t *parameters, bool more);

/* The IDL of io.fabd and of org.varlink.service, embedded at build time. */
extern const char varlink_idl_fabd[];
extern const char varlink_idl_service[];

/* Table of methods with their parameters, one row each: the server's dispatcher, its
 * check of types and unknown parameters, and the self-test against the IDL use it. */
/* VL_NUMBER: a float, or an int that means one. VL_ENUMS: an array that is not empty. */
enum varlink_type { VL_STRING, VL_INT, VL_BOOL, VL_ENUM, VL_NUMBER, VL_ENUMS };
struct varlink_param {
	const char *name;
	enum varlink_type type;
	bool optional;
	const struct enum_names *names; /* VL_ENUM, VL_ENUMS */
	int64_t min, max;		/* VL_INT, VL_NUMBER */
};
struct varlink_method {
	const char *name; /* "io.fabd.GetPort" */
	bool admin;	  /* admin socket only */
	bool more;	  /* needs more */
	int n_params;
	struct varlink_param params[8];
};
extern const struct varlink_method varlink_methods[];
extern const int varlink_n_methods;
const struct varlink_method *varlink_method_find(const char *name);
/* 0, or -EINVAL with the name of the wrong parameter in *ret_param. */
int varlink_params_check(const struct varlink_method *m, json_t *parameters,
			 const char **ret_param);
