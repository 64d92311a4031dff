/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * varlink_server.h - both sockets: listens (or takes descriptors from socket
 * activation), reads requests, dispatches by proto/varlink.h's table, streams lists an
 * object a reply between loop turns, streams Monitor. Limits: clients (max_clients, of
 * them at most half with one uid but root's), request size and depth. A client with 64
 * KiB waiting gets no new work; one that does not read for 10 s is closed, an idle one
 * is not. At most 32 wait for answers that come later (api.h); more are told that they
 * are too many. A list without more is one reply of at most 8 MiB, all such lists together 32
 * MiB. Nothing a client does stalls the loop or another client.
 */
#pragma once

#include "api.h"
#include "loop.h"
#include "monitor.h"

struct varlink_server;

struct varlink_listen {
	const char *path; /* to bind; NULL with fd >= 0 */
	int fd;		  /* taken: a listening socket from systemd, or -1 */
	bool admin;
	unsigned mode;	  /* 0666, 0660 */
	const char *group; /* owner group of an own socket, may be NULL */
};
struct varlink_server *varlink_server_new(struct loop *l, const struct api *api,
					  struct monitor *m, unsigned max_clients);
struct varlink_server *varlink_server_free(struct varlink_server *s); /* removes paths it
									  bound */
/* 0 or -errno, logged. A path of a dead daemon is replaced, of a live one is -EADDRINUSE. */
int varlink_server_listen(struct varlink_server *s, const struct varlink_listen *what);
/* How long a client may leave output waiting without reading; 10 s unless set. */
void varlink_server_set_patience(struct varlink_server *s, int64_t ns);
int varlink_server_clients(const struct varlink_server *s);
/* Rejected requests and closed clients, by reason, since start: object of numbers. */
json_t *varlink_server_counts(const struct varlink_server *s);
