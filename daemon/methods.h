/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * methods.h - what each method of the socket does, as a small function over struct api:
 * a request becomes an answer. What to do with it (send it, stream it) is the client's
 * business. No I/O.
 */
#pragma once

#include <sys/types.h>

#include "api.h"
#include "monitor.h"
#include "varlink.h"

/* Why a request is refused, a client closed, or a connection not taken; counted. */
enum reject {
	REJECT_NONE,
	REJECT_MALFORMED,
	REJECT_OVERSIZED,
	REJECT_UNKNOWN_METHOD,
	REJECT_INVALID_PARAMETER,
	REJECT_NOT_ALLOWED,
	REJECT_EXPECTED_MORE,
	REJECT_TOO_LARGE, /* an answer */
	REJECT_TOO_MANY_WAITING, /* for answers that come later */
	REJECT_FLOOD,	  /* requests behind a Monitor that nobody reads */
	REJECT_SLOW_READER,
	REJECT_TOO_MANY_CLIENTS,
	REJECT_TOO_MANY_OF_USER,
	REJECT_NO_DESCRIPTORS,
	REJECT__MAX
};
extern const struct enum_names reject_names;

struct method_env {
	const struct api *api;
	const struct monitor *monitor;
	bool admin;		/* asked on the admin socket */
	uid_t uid;		/* who asks */
	const char *admin_path; /* where admin methods are, NULL = not known */
	const struct api_ticket *ticket; /* for an answer that comes later; NULL: too many
					    wait already */
};

enum answer_kind { ANSWER_REPLY, ANSWER_ERROR, ANSWER_LIST, ANSWER_MONITOR,
		   ANSWER_LATER };

struct answer {
	enum answer_kind kind;
	enum reject reject;
	const char *error;  /* ANSWER_ERROR */
	json_t *parameters; /* owned; of the reply, error, first of a Monitor */
	enum api_list list; /* ANSWER_LIST: which, of what, how far */
	char *arg;	    /* owned, may be NULL */
	uint64_t cursor;    /* ANSWER_LIST; ANSWER_MONITOR: last seq that was sent */
};

void method_call(const struct method_env *env, const struct varlink_request *r,
		 struct answer *ret);
void answer_error(struct answer *a, enum reject why, const char *error,
		  json_t *parameters);
void answer_done(struct answer *a);
/* The name under which objects of a list travel: "ports". */
const char *method_list_key(enum api_list list);
