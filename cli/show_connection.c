/* SPDX-License-Identifier: BSD-2-Clause */
/* fabctl connection: a line a connection, both directions, or everything about one. */
#include <inttypes.h>
#include <stdlib.h>

#include "cli.h"
#include "fields.h"
#include "json_out.h"
#include "names.h"
#include "units.h"

enum tint verdict_tint(const char *verdict)
{
	switch (verdict ? enum_find(&verdict_names, verdict) : -1) {
	case VERDICT_OK:
		return TINT_GOOD;
	case -1:
	case VERDICT_UNKNOWN:
	case VERDICT_DEGRADED:
	case VERDICT_SILENCED:
	case VERDICT_HELD:
	case VERDICT_PEER_STOPPED:
		return TINT_WARN;
	default:
		return TINT_BAD;
	}
}

enum tint health_tint(const char *health)
{
	switch (health ? enum_find(&health_names, health) : -1) {
	case HEALTH_OK:
		return TINT_GOOD;
	case HEALTH_BAD:
		return TINT_BAD;
	case HEALTH_UNUSED:
		return TINT_NONE;
	default:
		return TINT_WARN;
	}
}

/* Where nothing is known to be lost there is no loss: what is held, stopped or only
 * just beginning is not "100%". */
const char *connection_loss(const json_t *conn)
{
	const json_t *percent = json_object_get(conn, "loss_percent");
	int64_t sent = get_count(conn, "sent"), lost = get_count(conn, "lost");

	if (get_true(conn, "connected") && json_is_number(percent))
		return unit_percent((int64_t)(json_number_value(percent) * 1000), 100000);
	if (get_true(conn, "connected"))
		return unit_percent(MIN(lost, sent), sent);
	if (verdict_tint(get_text(conn, "verdict")) == TINT_BAD)
		return "100%";
	return "-";
}

const char *connection_rtt(const json_t *conn)
{
	const json_t *rtt = get_object(conn, "rtt_ns");
	int64_t p50, p99;

	if (!get_true(conn, "connected") || !get_count(rtt, "samples") ||
	    !get_int(rtt, "p50", &p50) || !get_int(rtt, "p99", &p99))
		return "-";
	return unit_ns_pair(p50, p99);
}

static const char *heartbeat_text(const json_t *x, char buf[48])
{
	int64_t ns;

	if (!get_int(x, "heartbeat_ns", &ns))
		return "-";
	buf[0] = '\0';
	str_append(buf, 48, "%s*%" PRId64, unit_interval(ns),
		   get_count(x, "multiplier"));
	return buf;
}

static void put_table(const struct cli *c, const json_t *conns)
{
	/* clang-format off */
	static const struct column columns[] = {
		{"KEY", false, 0}, {"STATE", false, 0}, {"VERDICT", false, 0},
		{"FOR", false, 0}, {"HB", false, 0}, {"RTT", false, 0},
		{"LOSS", true, 0}, {"WHY", false, 0},
	};
	/* clang-format on */
	struct table *t = table_new(columns, ARRAY_LEN(columns));
	size_t i;
	json_t *x;

	json_array_foreach (conns, i, x) {
		const char *verdict = get_text(x, "verdict"), *why = get_text(x, "why");
		char hb[48];

		table_cell(t, TINT_NONE, "%s", get_shown(x, "key"));
		table_cell(t, TINT_NONE, "%s%s", unit_word(get_text(x, "state")),
			   get_true(x, "late") ? ",late" : "");
		table_cell(t, verdict_tint(verdict), "%s", unit_word(verdict));
		table_cell(t, TINT_NONE, "%s", unit_age(get_sec(x, "age_sec")));
		table_cell(t, TINT_NONE, "%s", heartbeat_text(x, hb));
		table_cell(t, TINT_NONE, "%s", connection_rtt(x));
		table_cell(t, TINT_NONE, "%s", connection_loss(x));
		table_cell(t, TINT_NONE, "%s",
			   why && !str_eq(verdict, "ok") ? why : "");
	}
	table_print(t, &c->layout);
	(void)table_free(t);
}

static void put_head(const struct cli *c, const json_t *x)
{
	const char *verdict = get_text(x, "verdict"), *why = get_text(x, "why");
	const struct layout *l = &c->layout;
	_cleanup_(freep) char *text =
		xasprintf("%s%s%s", unit_age(get_sec(x, "age_sec")),
			  why && *why ? ": " : "", why ? why : "");

	(void)fprintf(l->out, "%s\n", get_shown(x, "key"));
	head_line(l, " ", verdict_tint(verdict), unit_word(verdict), text, 4);
	block_line(l, "since", "%s", get_shown(x, "since"));
}

static void put_state(const struct cli *c, const json_t *x)
{
	const struct layout *l = &c->layout;
	double next = get_sec(x, "next_attempt_sec"),
	       left = get_sec(x, "stop_left_sec");
	char mtu[24];

	block_line(l, "state", "%s %s, stage %s; %s%s", unit_word(get_text(x, "state")),
		   unit_age(get_sec(x, "state_age_sec")),
		   unit_word(get_text(x, "stage")),
		   get_true(x, "connected") ? "connected" : "not connected",
		   get_true(x, "late") ? ", late" : "");
	if (next >= 0)
		block_line(l, "next attempt", "in %s", unit_age(next));
	block_line(l, "ever",
		   "attempts %" PRId64 ", connects %" PRId64 ", losses %" PRId64,
		   get_count(x, "attempts"), get_count(x, "connects"),
		   get_count(x, "losses"));
	block_line(l, "path", "%s on %s > %s, flow %" PRId64 ", path mtu %s",
		   get_shown(x, "local_address"), get_shown(x, "port"),
		   get_shown(x, "remote_address"), get_count(x, "flow"),
		   get_number(x, "path_mtu", mtu));
	block_line(l, "peer", "node %s, port %s %s, late by %s",
		   get_shown(x, "peer_node"), get_shown(x, "peer_port"),
		   get_shown(x, "peer_port_state"),
		   json_is_integer(json_object_get(x, "peer_lateness_ns"))
			   ? unit_ns(get_count(x, "peer_lateness_ns"))
			   : "-");
	if (get_text(x, "stop_cause"))
		block_line(l, "stopped", "by the peer: %s; %s%s",
			   unit_word(get_text(x, "stop_cause")),
			   left > 0 ? unit_age(left) : "its time is over",
			   left > 0 ? " left" : "");
}

static void put_split(const struct layout *l, const json_t *x, const json_t *rtt)
{
	const char *clock = get_text(x, "clock");
	int64_t net, host, peer;
	char of_peer[48] = "";

	if (!get_int(rtt, "net_p50", &net) || !get_int(rtt, "host_p50", &host))
		return;
	if (get_int(rtt, "peer_p50", &peer))
		str_append(of_peer, sizeof(of_peer), " (%s in the peer)", unit_ns(peer));
	block_line(l, "", "p50 of network %s, of hosts %s%s%s%s", unit_ns(net),
		   unit_ns(host), of_peer, clock ? "; clock: " : "",
		   clock ? unit_word(clock) : "");
}

static void put_round_trip(const struct layout *l, const json_t *x)
{
	const json_t *rtt = get_object(x, "rtt_ns"), *all = get_object(x, "rtt_all_ns");
	int64_t late;

	if (!get_count(rtt, "samples")) {
		block_line(l, "round trip", "-");
	} else {
		block_line(
			l, "round trip",
			"min %s mean %s p50 %s p99 %s max %s last %s; "
			"%" PRId64 " samples",
			unit_ns(get_count(rtt, "min")), unit_ns(get_count(rtt, "mean")),
			unit_ns(get_count(rtt, "p50")), unit_ns(get_count(rtt, "p99")),
			unit_ns(get_count(rtt, "max")), unit_ns(get_count(rtt, "last")),
			get_count(rtt, "samples"));
		put_split(l, x, rtt);
	}
	if (get_count(all, "samples"))
		block_line(l, "", "since connected p50 %s p99 %s; %" PRId64 " samples",
			   unit_ns(get_count(all, "p50")), unit_ns(get_count(all, "p99")),
			   get_count(all, "samples"));
	if (get_int(x, "late_p99_ns", &late))
		block_line(l, "own timers", "late by %s (p99)", unit_ns(late));
}

static void put_traffic(const struct cli *c, const json_t *x)
{
	const struct layout *l = &c->layout;
	char hb[48];

	block_line(l, "heartbeat",
		   "%s; %" PRId64 " sent, %" PRId64 " received, %" PRId64
		   " lost (%s), %" PRId64 " in a row; %" PRId64 " dropped",
		   heartbeat_text(x, hb), get_count(x, "sent"),
		   get_count(x, "received"), get_count(x, "lost"),
		   unit_percent(MIN(get_count(x, "lost"), get_count(x, "sent")),
				get_count(x, "sent")),
		   get_count(x, "consecutive_lost"), get_count(x, "dropped"));
	put_round_trip(l, x);
	block_line(l, "last heard", "control %s, fabric %s",
		   unit_ago(get_sec(x, "last_control_age_sec")),
		   unit_ago(get_sec(x, "last_fabric_age_sec")));
}

/* What only some have: a fault that explains it, losses, a device there that is unwell. */
static void put_past(const struct cli *c, const json_t *x)
{
	const char *by = get_text(x, "held_by"), *device = get_text(x, "peer_device_state");
	const char *until = get_text(x, "damped_until");
	const struct layout *l = &c->layout;
	int64_t usual;

	if (by)
		block_line(l, "held by", "%s; by itself %s", by,
			   unit_word(get_text(x, "own_verdict")));
	if (get_count(x, "flaps"))
		block_line(l, "flaps", "%" PRId64 ", penalty %.0f%s%s", get_count(x, "flaps"),
			   MAX(get_sec(x, "flap_penalty"), 0), until ? "; damped until " : "",
			   until ? until : "");
	if (device && !str_eq(device, "ok"))
		block_line(l, "peer device", "%s", unit_word(device));
	if (get_int(x, "rtt_usual_p99_ns", &usual))
		block_line(l, "usual", "p99 %s", unit_ns(usual));
}

static void put_history(const struct cli *c, const json_t *x)
{
	const json_t *history = get_array(x, "history"), *h;
	size_t i;

	if (!json_array_size(history))
		block_line(&c->layout, "history", "-");
	json_array_foreach (history, i, h)
		block_line(&c->layout, i ? "" : "history", "%s %s > %s (%s)",
			   get_shown(h, "at"), unit_word(get_text(h, "from")),
			   unit_word(get_text(h, "to")),
			   unit_word(get_text(h, "event")));
}

static void put_block(const struct cli *c, const json_t *x)
{
	const char *error = get_text(x, "error"), *text = get_text(x, "error_text");

	put_head(c, x);
	put_state(c, x);
	connection_put_path(c, x);
	put_traffic(c, x);
	put_past(c, x);
	if (error && !str_eq(error, "none"))
		block_line(&c->layout, "last error", "%s at %s, %s%s%s",
			   unit_word(error), unit_word(get_text(x, "error_stage")),
			   unit_ago(get_sec(x, "error_age_sec")),
			   text && *text ? ": " : "", text ? text : "");
	put_history(c, x);
}

static void put_blocks(const struct cli *c, const json_t *conns)
{
	size_t i;
	json_t *x;

	json_array_foreach (conns, i, x) {
		if (i)
			(void)fputc('\n', c->layout.out);
		put_block(c, x);
	}
}

static void keep(json_t *conns, const char *peer, const char *rail, bool not_ok)
{
	for (size_t i = json_array_size(conns); i-- > 0;) {
		json_t *x = json_array_get(conns, i);

		if ((peer && !str_eq(get_text(x, "peer"), peer)) ||
		    (rail && !str_eq(get_text(x, "rail"), rail)) ||
		    (not_ok && str_eq(get_text(x, "verdict"), "ok")))
			(void)json_array_remove(conns, i);
	}
}

static int show_list(struct cli *c, const char *peer, const char *rail)
{
	json_t *parameters = peer ? json_pack("{s:s}", "peer", peer) : NULL;
	json_t *conns =
		cli_list(c, "io.fabd.ListConnections", parameters, "connections");
	size_t total;
	int r = EXIT_OK;

	if (!conns)
		return EXIT_ERROR;
	keep(conns, peer, rail, false);
	total = json_array_size(conns);
	keep(conns, NULL, NULL, c->not_ok);
	if (peer && !total)
		r = cli_error("no connection of %s%s%s: fabctl connection lists them",
			      peer, rail ? "/" : "", rail ? rail : "");
	else if (!cli_is_text(c))
		r = json_out(c, conns);
	else if (!total)
		(void)fputs("no connections\n", c->layout.out);
	else if (!json_array_size(conns))
		cli_all_are(c, total, "connection", "ok");
	else if (c->verbose || (peer && json_array_size(conns) == 1))
		put_blocks(c, conns);
	else
		put_table(c, conns);
	json_decref(conns);
	return r;
}

static int show_one(struct cli *c, const char *key)
{
	int r = EXIT_OK;
	json_t *x;

	if (c->not_ok)
		return cli_usage("--not-ok is for lists, not for the one connection %s",
				 key);
	x = cli_get(c, "io.fabd.GetConnection", json_pack("{s:s}", "connection", key),
		    "connection");
	if (!x)
		return EXIT_ERROR;
	if (cli_is_text(c))
		put_block(c, x);
	else
		r = json_out(c, x);
	json_decref(x);
	return r;
}

int show_connection(struct cli *c)
{
	_cleanup_(freep) char *name = NULL;
	const char *word;
	char *slash;

	if (!cli_one_word(c, &word))
		return EXIT_USAGE;
	if (!word)
		return show_list(c, NULL, NULL);
	name = cli_name(word);
	if (strchr(name, '>'))
		return show_one(c, name);
	slash = strchr(name, '/');
	if (slash)
		*slash = '\0';
	return show_list(c, name, slash ? slash + 1 : NULL);
}
