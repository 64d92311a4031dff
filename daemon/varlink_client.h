/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * varlink_client.h - inside of the socket server: what server and clients share. One
 * client works on one request at a time, in order. It does a little work per turn of
 * the loop, only while its output is nearly empty, and goes on when its socket can be
 * written again (for the kernel: once three quarters of what was sent have been read).
 * All clients together have a budget per turn; who had nothing of one because others were
 * faster comes first in the next.
 */
#pragma once

#include "methods.h"
#include "varlink_server.h"

#define SERVER_TURN_BYTES (128 * 1024) /* requests and replies of all, a turn */
#define CLIENT_TURN_BYTES (32 * 1024)
#define CLIENT_OUT_LOW	  (64 * 1024)	     /* no new work with so much waiting */
#define LIST_REPLY_MAX	  (8 * 1024 * 1024)  /* a list in one reply */
#define SERVER_WAITING_MAX 32		     /* for answers that come later */
#define SERVER_LISTS_MAX  (32 * 1024 * 1024) /* of all clients together */

struct listener {
	struct varlink_server *server; /* borrowed */
	int fd;			       /* owned */
	struct loop_source *source;
	bool admin;
	char *path; /* owned; NULL = not known */
	bool bound; /* the path is ours to remove */
	uint64_t dev, ino;
};

struct varlink_server {
	struct loop *loop; /* borrowed, as the next two */
	const struct api *api;
	struct monitor *monitor;
	unsigned max_clients;
	int64_t patience;	       /* ns that a client may be waited for */
	struct listener *listeners[4]; /* owned */
	int n_listeners;
	struct client *clients; /* owned, a list */
	unsigned n_clients;
	struct loop_source *tick, *turn_end, *posted;
	bool tick_armed, accept_paused;
	int64_t budget;	   /* bytes left in this turn */
	bool turn_begins;  /* nobody was served in it yet */
	uint64_t n_served;
	size_t list_bytes; /* of lists in one reply, made or not left yet */
	uint64_t last_ticket;
	unsigned n_waiting; /* clients with a ticket */
	uint64_t counts[REJECT__MAX];
};

struct buffer {
	char *data; /* owned */
	size_t off, len, size;
};
void buffer_put(struct buffer *b, const void *data, size_t len);
void buffer_done(struct buffer *b);

/* What a client is being answered. */
struct work {
	bool active, more, oneway;
	char end; /* of its request and so of its replies */
	struct answer answer;
	json_t *held; /* owned: list with more, the object before the last known one */
	struct buffer text; /* list in one reply */
	size_t counted;	    /* of it in the server's list_bytes */
	/* An answer that comes later; of several that wait for a slow client the last. */
	uint64_t ticket;     /* 0 = none */
	bool ready;	     /* answer.parameters and answer.error are one */
	bool continues;
};

struct client {
	struct client *next, **prev;
	struct varlink_server *server; /* borrowed */
	struct loop_source *source;
	int fd; /* owned */
	uid_t uid;
	bool admin;
	bool passed_over; /* there was no budget left for it */
	uint64_t served;  /* the server's n_served when it last was, or came */
	struct varlink_frame *frame; /* owned */
	struct buffer out;
	struct mono progress; /* when it last took output, or began to be waited for */
	struct work work;
	size_t list_bytes; /* of out, as far as lists in one reply are in it */
	size_t behind;	   /* bytes that came during a Monitor */
	enum reject bad;   /* the input is not Varlink: stop after what came before */
	char bad_why[128];
	unsigned events; /* waited for */
	bool eof, closing;
};

/* @fd is taken. */
struct client *client_new(struct varlink_server *s, int fd, uid_t uid, bool admin);
struct client *client_free(struct client *c); /* closes */
/* Go on; the client may be gone afterwards. */
void client_run(struct client *c);
/* Is this its ticket? Takes the answer then (api.h); client_run() sends it. */
bool client_answer(struct client *c, uint64_t ticket, const char *error, json_t *parameters,
		   bool continues);
/* Once a second while client_needs_tick(): may close it. */
void client_tick(struct client *c, struct mono now);
bool client_needs_tick(const struct client *c);

void server_spend(struct varlink_server *s, size_t bytes);
void server_want_tick(struct varlink_server *s);
/* struct api_ticket's. */
void server_answer(void *server, uint64_t ticket, const char *error, json_t *parameters,
		   bool continues);
const char *server_admin_path(const struct varlink_server *s);
