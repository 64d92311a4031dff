/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * client.h - one connection to fabd's socket: calls, streams, time limits. Every
 * failure is told on stderr in one line that says what to do; callers only stop.
 */
#pragma once

#include <jansson.h>

#include "util.h"

#define CLIENT_SOCKET	    "/run/fabd/fabd.sock"
#define CLIENT_ADMIN_SOCKET "/run/fabd/fabd-admin.sock"

struct client;

/* @path: borrowed until client_free(). @admin: it is the admin socket (for the advice).
 * @timeout_ms: for the connection and for each reply. @safe: make all texts safe for a
 * terminal. NULL: failed, told. */
struct client *client_open(const char *path, bool admin, int timeout_ms, bool safe);
struct client *client_free(struct client *c);

/* One call, one reply. @parameters: taken, may be NULL. The reply's parameters, owned
 * by the caller; NULL: failed, told. */
json_t *client_call(struct client *c, const char *method, json_t *parameters);

/* A list: all objects of all replies in one array, @key naming the array in each reply.
 * NULL: failed, told. */
json_t *client_list(struct client *c, const char *method, json_t *parameters,
		    const char *key);

/* A stream without end: @fn gets each reply's parameters (borrowed) and returns false
 * to stop. Only the first reply must come in time. Ends early and quietly when nobody
 * reads stdout any more. 0 stopped, -1 failed and told. */
typedef bool client_stream_fn(void *user, json_t *parameters);
int client_stream(struct client *c, const char *method, json_t *parameters,
		  client_stream_fn *fn, void *user);
