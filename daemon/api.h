/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * api.h - what the socket may ask of the manager. The server knows only this; tests put
 * a fake behind it. All JSON results are new references in the shapes of the IDL.
 */
#pragma once

#include <jansson.h>

#include "names.h"

enum api_list { API_DEVICES, API_PORTS, API_PEERS, API_CONNECTIONS, API_HISTORY, API_FABRIC_NODES,
		API_FABRIC_LINKS, API_FABRIC_ERRORS, API_MATRIX, API_LIST__MAX };

/* Who waits for an answer that comes later. To be copied by who will answer: with
 * continues any number of times (each may be left out for a later one when the client is
 * slow), then once without, unless dropped() was told of the ticket. @error: NULL, or the
 * error's full name. @parameters is taken. A ticket that waits no more changes nothing. */
struct api_ticket {
	uint64_t id; /* never 0 */
	void *server;
	void (*answer)(void *server, uint64_t id, const char *error, json_t *parameters,
		       bool continues);
};

/* What a ping is to do; of a peer's connections those that fit. */
struct api_ping {
	const char *peer, *rail; /* rail NULL: all; borrowed */
	unsigned transports;	 /* 1 << enum transport */
	int flow;		 /* -1: all */
	uint32_t size, count, interval_us, timeout_us; /* as in struct ep_ping */
	bool admin; /* asked on the admin socket: no share in the budget of all others */
};

/* The worst connection to @peer of those that are meant. */
struct api_explain_what {
	const char *peer;
	const char *rail;	/* NULL = any */
	int transport;		/* enum transport, -1 = any */
	const char *connection; /* NULL = any; the key of one */
};

struct api {
	void *user;
	json_t *(*status)(void *user);
	/* The first object with a serial above *cursor, which becomes its serial; NULL at
	 * the end. Objects may come and go between two calls. @arg: ListPorts' device,
	 * ListConnections' peer, ListHistory's "SECONDS" or "SECONDS NAME" (0: all);
	 * NULL = all. Of API_MATRIX "by show", always. */
	json_t *(*next)(void *user, enum api_list list, const char *arg, uint64_t *cursor);
	/* By name (DEV/PORT, DEV:PORT, a connection's key or PEER/RAIL). NULL: no such. */
	json_t *(*get)(void *user, enum api_list list, const char *name);
	/* Of DEV/PORT, what came in the last @since_sec; NULL: no such. */
	json_t *(*port_counters)(void *user, const char *port, int64_t since_sec);
	/* Of the connection that is asked for. NULL, or the name of an error; its
	 * parameters or the explanation in *ret. */
	const char *(*explain)(void *user, const struct api_explain_what *what, json_t **ret);
	json_t *(*check)(void *user);
	/* Returns how many connections were reset, -ENOENT. @who: "uid 1000 (alice)". */
	int (*reset_connection)(void *user, const char *name, const char *who);
	/* @for_sec 0: no end. 0, -ENOENT. */
	int (*set_port_health)(void *user, const char *port, enum health_override health,
			       int64_t for_sec, const char *who);

	json_t *(*fabric)(void *user);
	json_t *(*fabric_sa)(void *user);
	/* NULL, or the name of an error; its or the reply's parameters in *ret. */
	const char *(*fabric_route)(void *user, const char *from, const char *to, json_t **ret);
	/* These answer through the ticket, perhaps at once. */
	void (*fabric_port)(void *user, const char *name, const struct api_ticket *t);
	void (*sweep_fabric)(void *user, bool cold, const char *who, const struct api_ticket *t);
	void (*ping)(void *user, const struct api_ping *p, const struct api_ticket *t);
	void (*dropped)(void *user, uint64_t ticket); /* its client is gone */
};
