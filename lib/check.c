/* SPDX-License-Identifier: BSD-2-Clause */
#include "check.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

/* Problems in the one line; the rest are only counted. */
#define TOLD_MAX 6

static const char *const statuses[] = {
	[CHECK_OK] = "ok",
	[CHECK_DEGRADED] = "degraded",
	[CHECK_UNKNOWN] = "unknown",
	[CHECK_FAILED] = "failed",
};
const struct enum_names check_status_names = {statuses, (int)ARRAY_LEN(statuses)};

const char *check_word(enum check_status s)
{
	static const char *const words[] = {
		[CHECK_OK] = "OK",
		[CHECK_DEGRADED] = "DEGRADED",
		[CHECK_UNKNOWN] = "UNKNOWN",
		[CHECK_FAILED] = "CRITICAL",
	};

	return s < CHECK__MAX ? words[s] : words[CHECK_UNKNOWN];
}

/* ---- Peers= ---- */

int check_share_parse(const char *text, struct check_share *ret)
{
	uint32_t n = 0;

	if (str_eq(text, "all")) {
		*ret = (struct check_share){SHARE_ALL, 0};
		return 0;
	}
	if (!isdigit((unsigned char)*text))
		return -EINVAL;
	for (; isdigit((unsigned char)*text); text++) {
		n = n * 10 + (uint32_t)(*text - '0');
		if (n > 1000000)
			return -EINVAL;
	}
	if (!*text) {
		*ret = (struct check_share){SHARE_COUNT, n};
		return 0;
	}
	if (text[0] != '%' || text[1] || n > 100)
		return -EINVAL;
	*ret = (struct check_share){SHARE_PERCENT, n};
	return 0;
}

const char *check_share_text(const struct check_share *s, char buf[24])
{
	buf[0] = '\0';
	if (s->kind == SHARE_ALL)
		str_append(buf, 24, "all");
	else if (s->kind == SHARE_COUNT)
		str_append(buf, 24, "%u", s->n);
	else if (s->kind == SHARE_PERCENT)
		str_append(buf, 24, "%u%%", s->n);
	return buf;
}

/* So many of @n peers. */
static int share_of(const struct check_share *s, int n)
{
	switch (s->kind) {
	case SHARE_ALL:
		return n;
	case SHARE_COUNT:
		return (int)s->n;
	case SHARE_PERCENT:
		return (int)(((int64_t)n * s->n + 99) / 100);
	default:
		return MIN(n, 1);
	}
}

/* ---- problems ---- */

static void add_problem(struct check_run *c, enum check_status s, int order, const char *name,
			const char *text)
{
	struct check_problem *p;

	if (c->n_problems == c->room_problems) {
		c->room_problems = c->room_problems ? c->room_problems * 2 : 8;
		c->problems = xrealloc(c->problems, (size_t)c->room_problems,
				       sizeof(*c->problems));
	}
	p = &c->problems[c->n_problems++];
	*p = (struct check_problem){.status = s, .order = order};
	(void)str_copy(p->name, sizeof(p->name), name);
	(void)str_copy(p->text, sizeof(p->text), text);
}

enum { ORDER_HOST, ORDER_PORT, ORDER_RAIL };

void check_add(struct check_run *c, enum check_status s, const char *name, const char *text)
{
	add_problem(c, s, ORDER_HOST, name, text);
}

static int by_weight(const void *x, const void *y)
{
	const struct check_problem *a = x, *b = y;

	if (a->status != b->status)
		return a->status < b->status ? 1 : -1;
	if (a->order != b->order)
		return a->order < b->order ? -1 : 1;
	if (!str_eq(a->name, b->name))
		return str_compare_natural(a->name, b->name);
	return strcmp(a->text, b->text);
}

void check_begin(struct check_run *c, const struct check_expect *e)
{
	*c = (struct check_run){.expect = *e};
}

void check_done(struct check_run *c)
{
	free(c->problems);
	free(c->rails);
	*c = (struct check_run){0};
}

/* ---- ports ---- */

/* In steady words: no number that moves while the fault stays. */
static void reason_text(const struct port *p, const struct port_reason *r, char *buf,
			size_t size)
{
	const char *tail = strchr(r->text, ' ');

	switch (r->code) {
	case REASON_LINK:
		if (p->facts.why[PF_STATE] || !port_is_down(p)) {
			str_append(buf, size, "%s", r->text);
			break;
		}
		str_append(buf, size, "%s%s", p->facts.state,
			   !p->facts.why[PF_PHYSICAL_STATE] &&
					   str_eq(p->facts.physical_state, "DISABLED")
				   ? " DISABLED"
				   : "");
		if (p->last_remote[0])
			str_append(buf, size, " (%.64s)", p->last_remote);
		break;
	case REASON_WIDTH: /* "width 2x of 4x" */
	case REASON_SPEED:
		str_append(buf, size, "%s", tail ? tail + 1 : r->text);
		break;
	case REASON_COUNTER: /* its name comes first */
		str_append(buf, size, "%.*s over its limit",
			   (int)strcspn(r->text, " "), r->text);
		break;
	case REASON_FLAP:
		str_append(buf, size, "flapping");
		break;
	case REASON_NOTICE: /* "notice 129 (...) 4 times" */
		str_append(buf, size, "%.*s", (int)strcspn(r->text, "("), r->text);
		break;
	case REASON_SETTLING:
		str_append(buf, size, "settling");
		break;
	default:
		str_append(buf, size, "%s", r->text);
		break;
	}
}

static void trim_end(char *s)
{
	size_t n = strlen(s);

	while (n && s[n - 1] == ' ')
		s[--n] = '\0';
}

void check_port_of(const struct port *p, const char *name, bool stale,
		   struct check_port *ret)
{
	const struct port_watch *w = &p->watch;

	*ret = (struct check_port){.name = name, .health = p->health, .stale = stale,
				   .set_ok = p->override == OVERRIDE_OK};
	if (!p->facts.why[PF_RATE_MBPS])
		ret->rate_mbps = p->facts.rate_mbps;
	/* Of one that is down nothing else counts. */
	for (int i = 0; i < w->n_reasons; i++) {
		if (i && p->health != HEALTH_DEGRADED)
			break;
		if (i)
			str_append(ret->text, sizeof(ret->text), ", ");
		reason_text(p, &w->reasons[i], ret->text, sizeof(ret->text));
		trim_end(ret->text);
	}
}

/* A failure is told of the port, or of its whole device. */
static bool has_failed(const struct check_run *c, const char *port)
{
	size_t device = strcspn(port, "/");

	for (int i = 0; i < c->n_problems; i++) {
		const struct check_problem *p = &c->problems[i];

		if (p->status == CHECK_FAILED && p->order <= ORDER_PORT &&
		    (str_eq(p->name, port) ||
		     (strlen(p->name) == device && !strncmp(p->name, port, device))))
			return true;
	}
	return false;
}

static bool too_slow(const struct check_run *c, const struct check_port *p)
{
	return c->expect.rate_mbps && p->rate_mbps < c->expect.rate_mbps;
}

static void note_rate(struct check_run *c, uint32_t mbps)
{
	if (!mbps)
		return;
	c->rate_most = MAX(c->rate_most, mbps);
	if (!c->rate_least || mbps < c->rate_least)
		c->rate_least = mbps;
}

/* "2x of 4x" says more than the rate that comes of it. */
static void slow_text(const struct check_run *c, const struct check_port *p,
		      char buf[CHECK_TEXT_MAX])
{
	char is[24], wanted[24];

	buf[0] = '\0';
	if (p->text[0])
		str_append(buf, CHECK_TEXT_MAX, "%s", p->text);
	else if (p->rate_mbps)
		str_append(buf, CHECK_TEXT_MAX, "%s of %s",
			   link_rate_text(p->rate_mbps, is),
			   link_rate_text(c->expect.rate_mbps, wanted));
	else
		str_append(buf, CHECK_TEXT_MAX, "rate not known, wanted %s",
			   link_rate_text(c->expect.rate_mbps, wanted));
}

void check_add_port(struct check_run *c, const struct check_port *p)
{
	enum check_status s = CHECK_OK;
	char text[CHECK_TEXT_MAX];

	if (p->health == HEALTH_UNUSED)
		return;
	c->ports++;
	if (p->set_ok && c->n_set_ok++ < CHECK_NAMES_MAX)
		(void)str_copy(c->set_ok[c->n_set_ok - 1], PORT_NAME_MAX, p->name);
	if (has_failed(c, p->name)) { /* nobody reads the ports of a device that is stuck */
		c->ports_told++;
		return;
	}
	(void)str_copy(text, sizeof(text),
		       p->text[0] ? p->text : enum_text(&health_names, (int)p->health));
	if (p->health == HEALTH_BAD) {
		s = CHECK_FAILED;
	} else if (p->health == HEALTH_UNKNOWN) {
		s = CHECK_UNKNOWN;
	} else if (too_slow(c, p)) {
		s = CHECK_FAILED;
		slow_text(c, p, text);
	} else if (p->health == HEALTH_DEGRADED) {
		s = CHECK_DEGRADED;
	}
	if (p->stale && s < CHECK_FAILED) {
		s = CHECK_UNKNOWN;
		(void)str_copy(text, sizeof(text), "not read for too long");
	}
	if (s <= CHECK_DEGRADED) {
		c->ports_good++;
		note_rate(c, p->rate_mbps);
	} else {
		c->ports_told++;
	}
	if (s > CHECK_OK)
		add_problem(c, s, ORDER_PORT, p->name, text);
}

static void judge_ports(struct check_run *c)
{
	char text[CHECK_TEXT_MAX] = "";
	int wanted = (int)c->expect.ports;

	if (!wanted || c->ports_judged)
		return;
	c->ports_judged = true;
	/* So many are well: a spare one may be slow or down. */
	if (c->ports_good >= wanted) {
		for (int i = 0; i < c->n_problems; i++) {
			struct check_problem *p = &c->problems[i];

			if (p->order == ORDER_PORT && p->status > CHECK_DEGRADED)
				p->status = CHECK_DEGRADED;
		}
		return;
	}
	if (c->ports_good + c->ports_told >= wanted)
		return;
	str_append(text, sizeof(text), "%d of %d ports", c->ports_good, wanted);
	add_problem(c, CHECK_FAILED, ORDER_PORT, "", text);
}

/* ---- rails ---- */

static struct check_rail *rail_of(struct check_run *c, const char *label)
{
	struct check_rail *r;

	/* Paths come peer by peer, rail by rail: the next is likely the one after. */
	for (int i = 0; i < c->n_rails; i++) {
		int k = (c->rail_hint + i) % c->n_rails;

		if (str_eq(c->rails[k].label, label)) {
			c->rail_hint = k + 1;
			return &c->rails[k];
		}
	}
	if (c->n_rails == c->room_rails) {
		c->room_rails = c->room_rails ? c->room_rails * 2 : 8;
		c->rails = xrealloc(c->rails, (size_t)c->room_rails, sizeof(*c->rails));
	}
	r = &c->rails[c->n_rails++];
	*r = (struct check_rail){0};
	(void)str_copy(r->label, sizeof(r->label), label);
	return r;
}

/* The first ones by name, whatever the order in which they come. */
static void note_name(struct check_rail *r, const char *name)
{
	int i = MIN(r->n_names, CHECK_NAMES_MAX), last;

	while (i > 0 && str_compare_natural(name, r->names[i - 1]) < 0)
		i--;
	last = MIN(r->n_names, CHECK_NAMES_MAX - 1);
	r->n_names++;
	if (i >= CHECK_NAMES_MAX)
		return;
	for (int k = last; k > i; k--)
		memcpy(r->names[k], r->names[k - 1], sizeof(r->names[0]));
	(void)str_copy(r->names[i], sizeof(r->names[i]), name);
}


/* Away on purpose, or told already under what explains it. */
static bool excused(const struct check_run *c, const struct check_reach *r)
{
	switch (r->verdict) {
	case VERDICT_PEER_STOPPED:
	case VERDICT_SILENCED:
		return true;
	case VERDICT_HELD:
	case VERDICT_LOCAL_PORT:
	case VERDICT_DEVICE_STUCK:
		return has_failed(c, r->port);
	default:
		return false;
	}
}

void check_add_reach(struct check_run *c, const struct check_reach *r)
{
	struct check_rail *rail = rail_of(c, r->rail);

	judge_ports(c); /* only one that is wanted explains anything */
	rail->peers++;
	if (r->connected) {
		rail->reached++;
		rail->lossy += r->verdict == VERDICT_DEGRADED || r->verdict == VERDICT_NETWORK;
		rail->filtered += r->verdict == VERDICT_CONTROL_BLOCKED;
		return;
	}
	if (excused(c, r)) {
		rail->excused++;
		return;
	}
	if (r->verdict == VERDICT_UNKNOWN || r->verdict == VERDICT_OK) {
		rail->unknown++;
		return;
	}
	rail->of[r->verdict]++;
	note_name(rail, r->peer);
	if (!r->why)
		rail->whys_differ = true;
	else if (!rail->why[0])
		(void)str_copy(rail->why, sizeof(rail->why), r->why);
	else if (!str_eq(rail->why, r->why))
		rail->whys_differ = true;
}

/* What most of those that are not reached suffer from. Of equals the last, as "held" says
 * the least. */
static const char *rail_verdict(const struct check_rail *r)
{
	int most = VERDICT_UNKNOWN;

	for (int v = 0; v < VERDICT__MAX; v++)
		if (r->of[v] && r->of[v] >= r->of[most])
			most = v;
	return enum_text(&verdict_names, most);
}

static void missed_text(const struct check_rail *r, char *buf, size_t size)
{
	if (r->why[0] && !r->whys_differ) {
		str_append(buf, size, "%s", r->why);
		return;
	}
	if (!r->reached && r->n_names > 1) {
		str_append(buf, size, "reaches no peer (%s)", rail_verdict(r));
		return;
	}
	str_append(buf, size, "does not reach ");
	for (int i = 0; i < MIN(r->n_names, CHECK_NAMES_MAX); i++)
		str_append(buf, size, "%s%.32s", i ? ", " : "", r->names[i]);
	str_append(buf, size, "%s (%s)", r->n_names > CHECK_NAMES_MAX ? " and others" : "",
		   rail_verdict(r));
}

/* Fewer than half of the peers that are to be reached are well: that is not the fault of
 * one of them. As long as some are still to come it is no verdict. */
static enum check_status blemish(const struct check_rail *r, const char **ret_text)
{
	int judged = r->peers - r->excused, well = r->reached - r->lossy - r->filtered;

	if (well * 2 >= judged)
		return CHECK_OK;
	if ((well + r->unknown) * 2 >= judged)
		*ret_text = "being connected";
	else if ((r->reached + r->unknown) * 2 < judged)
		*ret_text = "reaches few peers";
	else
		*ret_text = r->filtered > r->lossy ? "control-blocked" : "lossy or slow";
	return r->unknown ? CHECK_UNKNOWN : CHECK_DEGRADED;
}

static void judge_rail(struct check_run *c, const struct check_rail *r)
{
	int wanted = share_of(&c->expect.peers, r->peers);
	int have = r->reached + r->excused;
	char text[CHECK_TEXT_MAX] = "", name[CHECK_TEXT_MAX] = "";
	enum check_status s = CHECK_FAILED;
	const char *bad;

	if (c->expect.rails)
		wanted = MAX(wanted, 1);
	str_append(name, sizeof(name), "rail %s", r->label);
	c->rails_reach += r->reached > 0 && have >= wanted;
	if (have >= wanted) {
		s = blemish(r, &bad);
		if (s != CHECK_OK)
			add_problem(c, s, ORDER_RAIL, name, bad);
		return;
	}
	if (have + r->unknown >= wanted) {
		s = CHECK_UNKNOWN;
		str_append(text, sizeof(text), "being connected");
	} else if (r->n_names) {
		missed_text(r, text, sizeof(text));
	} else {
		str_append(text, sizeof(text), "has fewer than %d peers", wanted);
	}
	add_problem(c, s, ORDER_RAIL, name, text);
}

static void judge_rails(struct check_run *c)
{
	char text[CHECK_TEXT_MAX] = "";

	for (int i = 0; i < c->n_rails; i++)
		judge_rail(c, &c->rails[i]);
	/* Those that there are have been judged. */
	if (c->n_rails >= (int)c->expect.rails)
		return;
	str_append(text, sizeof(text), "%d of %u rails have peers", c->n_rails,
		   c->expect.rails);
	add_problem(c, CHECK_FAILED, ORDER_RAIL, "", text);
}

/* ---- the whole ---- */

static void say_well(struct check_run *c)
{
	int ports = c->expect.ports ? (int)c->expect.ports : c->ports;
	int rails = MAX((int)c->expect.rails, c->n_rails);
	char least[24], most[24];

	if (ports)
		str_append(c->summary, sizeof(c->summary), "%d/%d ports",
			   MIN(c->ports_good, ports), ports);
	else
		str_append(c->summary, sizeof(c->summary), "no RDMA ports");
	if (c->rate_least)
		str_append(c->summary, sizeof(c->summary), " %s",
			   link_rate_text(c->rate_least, least));
	if (c->rate_most > c->rate_least)
		str_append(c->summary, sizeof(c->summary), "-%s",
			   link_rate_text(c->rate_most, most));
	if (c->n_rails)
		str_append(c->summary, sizeof(c->summary), ", %d/%d rails reach peers",
			   c->rails_reach, rails);
	else
		str_append(c->summary, sizeof(c->summary), ", no peers");
}

static void say_problems(struct check_run *c)
{
	int told = MIN(c->n_problems, TOLD_MAX);

	for (int i = 0; i < told; i++) {
		const struct check_problem *p = &c->problems[i];

		str_append(c->summary, sizeof(c->summary), "%s%s%s%s", i ? "; " : "",
			   p->name, p->name[0] ? " " : "", p->text);
	}
	if (c->n_problems > told)
		str_append(c->summary, sizeof(c->summary), "; and more");
}

/* An override must not make anybody believe that all is well. */
static void say_set_ok(struct check_run *c)
{
	for (int i = 0; i < MIN(c->n_set_ok, CHECK_NAMES_MAX); i++)
		str_append(c->summary, sizeof(c->summary), "; %s set ok", c->set_ok[i]);
	if (c->n_set_ok > CHECK_NAMES_MAX)
		str_append(c->summary, sizeof(c->summary), "; %d more set ok",
			   c->n_set_ok - CHECK_NAMES_MAX);
}

void check_end(struct check_run *c, bool booting)
{
	if (!c->ports && !c->n_rails && !c->n_problems && !c->expect.ports)
		check_add(c, CHECK_UNKNOWN, "", "no RDMA device here, no peer configured");
	judge_ports(c);
	judge_rails(c);
	if (c->n_problems)
		qsort(c->problems, (size_t)c->n_problems, sizeof(*c->problems), by_weight);
	c->found = c->n_problems ? c->problems[0].status : CHECK_OK;
	c->status = booting && c->found != CHECK_OK ? CHECK_UNKNOWN : c->found;
	if (c->status != c->found)
		str_append(c->summary, sizeof(c->summary), "just booted; ");
	if (c->n_problems)
		say_problems(c);
	else
		say_well(c);
	say_set_ok(c);
}
