/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fabctl ping: messages over the connections that fabd has to a peer, a line for each of
 * them, and whether they are as good as they must be.
 */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "clean.h"
#include "cli.h"
#include "fields.h"
#include "json_out.h"
#include "names.h"
#include "progress.h"
#include "units.h"

#define COUNT_DEFAULT	 10
#define INTERVAL_DEFAULT 100000 /* us */
#define TIMEOUT_DEFAULT	 1000	/* ms */
/* Beyond these fabd wants the admin socket. */
#define MODEST_COUNT	1000
#define MODEST_INTERVAL 10000

struct ping_view {
	const struct cli *cli; /* borrowed */
	json_t *pings;	       /* of the last reply, owned */
	int64_t max_rtt_us;    /* 0 = any */
	double max_loss;       /* percent */
};

/* ---- what is asked ---- */

/* "100ms", "1s", "500us", "0"; a bare number is seconds, as elsewhere. */
static bool parse_us(const char *text, int64_t *ret)
{
	static const struct {
		const char *name;
		double us;
	} units[] = {{"us", 1}, {"ms", 1e3}, {"s", 1e6}, {"", 1e6}};
	char *end;
	double v;

	errno = 0;
	v = isdigit((unsigned char)*text) ? strtod(text, &end) : -1;
	if (errno || !isfinite(v) || v < 0 || v > 1e7)
		return false;
	for (size_t i = 0; i < ARRAY_LEN(units); i++)
		if (str_eq(end, units[i].name)) {
			*ret = (int64_t)(v * units[i].us + 0.5);
			return true;
		}
	return false;
}

static bool parse_percent(const char *text, double *ret)
{
	char *end;

	errno = 0;
	*ret = isdigit((unsigned char)*text) ? strtod(text, &end) : -1;
	return !errno && isfinite(*ret) && *ret >= 0 && *ret <= 100 &&
	       (!*end || str_eq(end, "%"));
}

static bool parse_count(const char *text, int64_t min, int64_t max, int64_t *ret)
{
	char *end;

	errno = 0;
	*ret = isdigit((unsigned char)*text) ? strtoll(text, &end, 10) : -1;
	return !errno && *ret >= min && *ret <= max && !*end;
}

/* "udp,ud" as an array. NULL: told. */
static json_t *parse_transports(const char *text)
{
	_cleanup_(freep) char *copy = xstrdup(text);
	json_t *a = json_array();
	char *rest = copy, *name;

	while ((name = strsep(&rest, ", "))) {
		int t = *name ? enum_find(&transport_names, name) : -1;

		if (t < 0) {
			(void)cli_usage("--transport takes udp, rc and ud, with commas "
					"between them, not '%s'",
					text);
			json_decref(a);
			return NULL;
		}
		(void)json_array_append_new(a, json_string(enum_name(&transport_names, t)));
	}
	return a;
}

static bool usage(const char *option, const char *takes, const char *given)
{
	(void)cli_usage("%s takes %s, not '%s'", option, takes, given);
	return false;
}

static bool add_options(const struct cli *c, struct ping_view *v, json_t *p,
			int64_t *count, int64_t *interval_us)
{
	const struct ping_options *o = &c->ping;
	int64_t n;

	if (o->transport) {
		json_t *transports = parse_transports(o->transport);

		if (!transports)
			return false;
		(void)json_object_set_new(p, "transport", transports);
	}
	if (o->flow) {
		if (!parse_count(o->flow, 0, 65535, &n))
			return usage("--flow", "a number", o->flow);
		(void)json_object_set_new(p, "flow", json_integer(n));
	}
	n = 64;
	if (str_eq(o->size, "mtu"))
		n = 0;
	else if (o->size && !parse_count(o->size, 64, 65487, &n))
		return usage("--size", "64 to 65487 bytes or mtu", o->size);
	(void)json_object_set_new(p, "size", json_integer(n));
	if (o->count && !parse_count(o->count, 1, 1000000, count))
		return usage("--count", "1 to 1000000", o->count);
	if (o->interval && !parse_us(o->interval, interval_us))
		return usage("--interval", "a time as 100ms or 500us, or 0", o->interval);
	if (o->max_loss && !parse_percent(o->max_loss, &v->max_loss))
		return usage("--max-loss", "0% to 100%", o->max_loss);
	if (o->max_rtt && (!parse_us(o->max_rtt, &v->max_rtt_us) || !v->max_rtt_us))
		return usage("--max-rtt", "a time as 1ms or 500us", o->max_rtt);
	return true;
}

/* The parameters of the call; NULL: told. */
static json_t *parameters(const struct cli *c, struct ping_view *v, bool *ret_admin)
{
	_cleanup_(freep) char *name = cli_name(c->argv[0]);
	char *slash = strchr(name, '/');
	int64_t count = COUNT_DEFAULT, interval_us = INTERVAL_DEFAULT;
	json_t *p = json_object();

	if (slash) {
		*slash = '\0';
		(void)json_object_set_new(p, "rail", json_string(slash + 1));
	}
	(void)json_object_set_new(p, "peer", json_string(name));
	if (!add_options(c, v, p, &count, &interval_us)) {
		json_decref(p);
		return NULL;
	}
	(void)json_object_set_new(p, "count", json_integer(count));
	(void)json_object_set_new(p, "interval_ms", json_real((double)interval_us / 1000));
	(void)json_object_set_new(
		p, "timeout_ms",
		json_integer(c->timeout_given ? MIN(c->timeout_ms, 60000) : TIMEOUT_DEFAULT));
	*ret_admin = count > MODEST_COUNT || interval_us < MODEST_INTERVAL;
	return p;
}

/* ---- how good it was ---- */

/* Of all that were wanted: what could not be sent did not arrive. */
static double loss_percent(const json_t *x)
{
	int64_t count = get_count(x, "count"), received = get_count(x, "received");

	return count > 0 ? 100.0 * (double)(count - received) / (double)count : 100;
}

static bool is_slow(const struct ping_view *v, const json_t *x)
{
	return v->max_rtt_us &&
	       get_count(get_object(x, "rtt_ns"), "max") > v->max_rtt_us * 1000;
}

static bool is_bad(const struct ping_view *v, const json_t *x)
{
	return loss_percent(x) > v->max_loss || is_slow(v, x);
}

/* ---- what is shown ---- */

/* As much as tells it from the others: "ud", "rail2 udp", "udp #3". */
static char *label(const json_t *all, const json_t *x)
{
	bool rails = false, flows = false;
	char text[128] = "";
	json_t *o;
	size_t i;

	json_array_foreach (all, i, o) {
		rails |= !str_eq(get_text(o, "rail"), get_text(x, "rail"));
		flows |= get_count(o, "flow") != 0;
	}
	if (rails)
		str_append(text, sizeof(text), "%s%s ",
			   isdigit((unsigned char)*get_shown(x, "rail")) ? "rail" : "",
			   get_shown(x, "rail"));
	str_append(text, sizeof(text), "%s", get_shown(x, "transport"));
	if (flows)
		str_append(text, sizeof(text), " #%" PRId64, get_count(x, "flow"));
	return xstrdup(text);
}

static void put_percent(char *buf, size_t size, double p)
{
	/* What was lost is never shown as nothing, nor a rest as all. */
	if (p > 0 && p < 0.05)
		(void)str_copy(buf, size, "<0.1 %");
	else if (p > 99.94 && p < 100)
		(void)str_copy(buf, size, "99.9 %");
	else if (p >= 100)
		(void)str_copy(buf, size, "100 %");
	else
		str_append(buf, size, "%.1f %%", p);
}

/* Three figures of @ns in units of @div. */
static void put_time(char *buf, size_t size, int64_t ns, double div)
{
	double v = (double)ns / div;

	/* As 9 and 38, and as 9.4 where that says more. */
	if (v >= 0.005 && v < 0.095)
		str_append(buf, size, "%.2f", v);
	else if (v < 9.95 && fabs(v - round(v)) >= 0.05)
		str_append(buf, size, "%.1f", v);
	else
		str_append(buf, size, "%.0f", v);
}

static void put_trip(char *buf, size_t size, const json_t *x, bool verbose)
{
	/* clang-format off */
	static const struct {
		const char *before, *key;
	} figures[] = {{"min ", "min"}, {" p50 ", "p50"}, {" p99 ", "p99"}, {" max ", "max"}};
	/* clang-format on */
	const json_t *rtt = get_object(x, "rtt_ns");
	bool ms = get_count(rtt, "p50") >= 9950000;
	double div = ms ? 1e6 : 1e3;
	int64_t net, host;

	if (!rtt)
		return;
	str_append(buf, size, "  rtt %s ", ms ? "ms" : "us");
	for (size_t i = 0; i < ARRAY_LEN(figures); i++) {
		str_append(buf, size, "%s", figures[i].before);
		put_time(buf, size, get_count(rtt, figures[i].key), div);
	}
	if (get_int(rtt, "net_p50", &net) && get_int(rtt, "host_p50", &host)) {
		str_append(buf, size, " (net ");
		put_time(buf, size, net, div);
		str_append(buf, size, ", host ");
		put_time(buf, size, host, div);
		str_append(buf, size, ")");
	}
	if (verbose)
		str_append(buf, size, " by the clock of the %s", get_shown(x, "clock"));
}

struct widths {
	int label, counts, percent;
};

static struct widths measure(const json_t *pings)
{
	struct widths w = {0};
	json_t *x;
	size_t i;

	json_array_foreach (pings, i, x) {
		_cleanup_(freep) char *name = label(pings, x);
		char counts[48] = "", percent[16] = "";

		put_percent(percent, sizeof(percent), loss_percent(x));
		w.percent = MAX(w.percent, text_width(percent));
		str_append(counts, sizeof(counts), "%" PRId64 "/%" PRId64,
			   get_count(x, "received"), get_count(x, "count"));
		w.label = MAX(w.label, text_width(name));
		w.counts = MAX(w.counts, text_width(counts));
	}
	return w;
}

/* What there is to say beside the figures. */
static void put_remarks(char *buf, size_t size, const struct ping_view *v, const json_t *x)
{
	const char *why = get_text(x, "why");

	if (get_count(x, "dropped"))
		str_append(buf, size, "%" PRId64 " twice or late", get_count(x, "dropped"));
	if (is_slow(v, x))
		str_append(buf, size, "%sover %s", *buf ? "; " : "",
			   unit_interval(v->max_rtt_us * 1000));
	if (why && *why)
		str_append(buf, size, "%s%s", *buf ? "; " : "", why);
}

static void put_line(const struct ping_view *v, const json_t *x, struct widths w)
{
	const struct layout *l = &v->cli->layout;
	enum tint tint = is_bad(v, x) ? TINT_BAD : TINT_NONE;
	_cleanup_(freep) char *name = label(v->pings, x);
	char counts[48] = "", percent[16] = "", trip[256] = "", remarks[512] = "";
	int used;

	str_append(counts, sizeof(counts), "%" PRId64 "/%" PRId64, get_count(x, "received"),
		   get_count(x, "count"));
	put_percent(percent, sizeof(percent), loss_percent(x));
	put_trip(trip, sizeof(trip), x, v->cli->verbose);
	put_remarks(remarks, sizeof(remarks), v, x);
	(void)fprintf(l->out, "%s%*s %-*s lost %s%s%s", name, w.label - text_width(name), "",
		      w.counts, counts, tint_on(l, tint), percent, tint_off(l, tint));
	used = w.label + 1 + w.counts + 6 + w.percent;
	if (*trip || *remarks)
		(void)fprintf(l->out, "%*s%s", w.percent - text_width(percent), "", trip);
	if (*remarks && used + text_width(trip) + 2 + text_width(remarks) <= l->width) {
		(void)fprintf(l->out, "  %s\n", remarks);
		return;
	}
	(void)fputc('\n', l->out);
	if (*remarks) {
		_cleanup_(freep) char *line = xasprintf("  %s", remarks);

		wrapped_line(l, line, 2);
	}
}

static void put_pings(const struct ping_view *v)
{
	struct widths w = measure(v->pings);
	json_t *x;
	size_t i;

	json_array_foreach (v->pings, i, x)
		put_line(v, x, w);
}

/* One line for all that is on its way. */
static void show_progress(const json_t *pings)
{
	int64_t count = 0, sent = 0, lost = 0;
	json_t *x;
	size_t i;

	json_array_foreach (pings, i, x) {
		count += get_count(x, "count");
		sent += get_count(x, "sent");
		lost += get_count(x, "lost");
	}
	progress_line("%" PRId64 "/%" PRId64 " sent, %" PRId64 " lost", sent, count, lost);
}

static bool on_reply(void *user, json_t *reply)
{
	struct ping_view *v = user;
	json_t *pings = get_array(reply, "pings");

	if (!pings)
		return false;
	json_decref(v->pings);
	v->pings = json_incref(pings);
	if (cli_is_text(v->cli))
		show_progress(pings);
	return true;
}

static int judge(const struct ping_view *v)
{
	json_t *x;
	size_t i;

	json_array_foreach (v->pings, i, x)
		if (is_bad(v, x))
			return EXIT_BAD;
	return EXIT_OK;
}

static int run(struct cli *c, struct ping_view *v, json_t *p, bool admin)
{
	struct client *client = cli_client(c, admin);
	int r;

	if (!client) {
		json_decref(p);
		return EXIT_ERROR;
	}
	progress_begin();
	r = client_stream(client, "io.fabd.Ping", p, on_reply, v);
	progress_clear();
	if (r < 0)
		return EXIT_ERROR;
	if (!v->pings)
		return cli_error("the answer to Ping has no list of pings: is this fabd?");
	if (cli_is_text(c))
		put_pings(v);
	else
		(void)json_out(c, v->pings);
	return judge(v);
}

int ping(struct cli *c)
{
	struct ping_view v = {.cli = c};
	bool admin;
	json_t *p;
	int r;

	if (c->argc != 1) {
		(void)cli_usage("usage: fabctl ping PEER[/RAIL] [--transport udp,ud] [--size "
				"mtu] [--count N] [--interval 100ms]");
		return EXIT_UNKNOWN;
	}
	p = parameters(c, &v, &admin);
	if (!p)
		return EXIT_UNKNOWN;
	/* --timeout is of a message here, not of fabd's answer. */
	c->timeout_ms = MAX(c->timeout_ms, 2000);
	r = run(c, &v, p, admin);
	json_decref(v.pings);
	return r;
}
