/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cli.h - what every command of fabctl gets: the options, the words after the command,
 * and the connection, opened when first needed. A command returns the exit code.
 */
#pragma once

#include <jansson.h>

#include "client.h"
#include "table.h"

/* Of commands that judge, 2 is "bad" and 3 says that nothing was judged. */
enum exit_code { EXIT_OK, EXIT_ERROR, EXIT_USAGE, EXIT_BAD = 2, EXIT_UNKNOWN = 3 };

struct ping_options { /* as they were given; borrowed, may be NULL */
	const char *transport, *flow, *size, *count, *interval, *max_loss, *max_rtt;
};

struct cli {
	bool json, pretty, oneline;
	bool not_ok, all, verbose;
	bool ran; /* the command was reached: what it returns is its own */
	const char *socket, *admin_socket; /* borrowed */
	int timeout_ms;
	bool timeout_given;	/* by the user */
	bool cold;		/* fabric sweep */
	const char *format;	/* fabric graph; borrowed, may be NULL */
	int64_t for_sec;	/* port set: 0 = no end */
	int64_t since;		/* monitor: -1 = from now on; others: seconds */
	const char *since_text; /* as it was given; borrowed, may be NULL */
	const char *instance;	/* monitor; borrowed, may be NULL */
	struct ping_options ping;
	const char *fail_on;	/* check; borrowed, may be NULL */
	int64_t wait_ms;	/* check: 0 = do not */
	const char *by, *show; /* matrix; borrowed, may be NULL */
	struct layout layout;
	struct client *client; /* owned; NULL until cli_client() */
	int argc;	       /* words after the command */
	char **argv;
};

/* The query or the admin socket. NULL: failed, told. */
struct client *cli_client(struct cli *c, bool admin);
/* Call on the query socket and take @key out of the reply: new reference, NULL: told.
 */
json_t *cli_get(struct cli *c, const char *method, json_t *parameters, const char *key);
/* Give fabd more time for each answer, unless the user said how much: for what it must
 * ask others first. Before the connection is opened. */
void cli_be_patient(struct cli *c);
/* cli_get() with that. */
json_t *cli_get_slow(struct cli *c, const char *method, json_t *parameters,
		     const char *key);
/* A list by the query socket: new reference, NULL: told. */
json_t *cli_list(struct cli *c, const char *method, json_t *parameters,
		 const char *key);
bool cli_is_text(const struct cli *c);
/* "all 9 ports ok", for the one that there is "the only port is ok". */
void cli_all_are(const struct cli *c, size_t n, const char *noun, const char *state);
/* An error of the user's on stderr with the way out; returns EXIT_USAGE. */
int cli_usage(const char *fmt, ...) PRINTF_LIKE(1, 2);
int cli_error(const char *fmt, ...) PRINTF_LIKE(1, 2); /* returns EXIT_ERROR */
/* "DEV:PORT" as "DEV/PORT", "PEER:RAIL" as "PEER/RAIL"; a key stays. Owned by caller.
 */
char *cli_name(const char *word);
/* The one word that may follow a command, NULL if none. false: more, told. */
bool cli_one_word(const struct cli *c, const char **ret);

/* A list of the fabric is empty: say why no fabric is known, or @otherwise if one is. */
void fabric_empty(struct cli *c, const char *otherwise);
/* Nothing goes by the name @word: the same as an error, which has its exit code. */
int fabric_no_node(struct cli *c, const char *noun, const char *word);

int show_status(struct cli *c);
int show_port(struct cli *c);
int show_peer(struct cli *c);
int show_connection(struct cli *c);
int show_device(struct cli *c);
int show_monitor(struct cli *c);
int show_history(struct cli *c);
int show_counters(struct cli *c);
int show_fabric(struct cli *c);
int fabric_links(struct cli *c);
int fabric_nodes(struct cli *c);
int fabric_errors(struct cli *c);
int fabric_sa(struct cli *c);
int fabric_port(struct cli *c);
int fabric_route(struct cli *c);
int fabric_graph(struct cli *c);
int fabric_diff(struct cli *c);
int fabric_save(struct cli *c);
int fabric_sweep(struct cli *c);
int ping(struct cli *c);
int explain_peer(struct cli *c);
int check(struct cli *c);
int matrix(struct cli *c);
int admin_reset(struct cli *c);
int admin_port_set(struct cli *c);

/* Shared by the show files. */
/* Why fields of @o are null, a line a reason, the first with @label. */
void put_unavailable(const struct layout *l, const char *label, const json_t *o);
/* Of a Port: reasons, changes of health, what it had before; nothing where fabd says
 * nothing. */
void put_port_reasons(const struct layout *l, const json_t *port);
void put_port_history(const struct layout *l, const json_t *port);
void put_port_baseline(const struct layout *l, const json_t *port);
/* Its sl2vl and vlarb. */
void put_qos(const struct layout *l, const json_t *o);
enum tint verdict_tint(const char *verdict);
enum tint health_tint(const char *health);
/* "12.5%", or "-" where nothing was sent, of a Connection. */
/* Lines of a connection's block: where its packets go. */
void connection_put_path(const struct cli *c, const json_t *conn);
const char *connection_loss(const json_t *conn);
const char *connection_rtt(const json_t *conn); /* "38/71us" or "-" */
