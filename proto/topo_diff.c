/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Links are taken one by one from the old side; what explains a link of the new side
 * (unchanged, or the new place of a cable) is crossed off there, so that each change is
 * told once.
 */
#include "topo_diff.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "link.h"

static const char *const change_names[] = {
	"node_missing", "node_new",    "node_renamed", "link_missing",
	"link_new",	"cable_moved", "slower",       "faster",
};
const struct enum_names topo_change_names = {change_names, TOPO__MAX};
static_assert(ARRAY_LEN(change_names) == TOPO__MAX, "a name for each change");

struct diff {
	const struct subnet *old, *now;
	bool **told; /* by serial of @now and port: its link is explained */
	bool **done; /* by serial of @old and port: its link was told of */
	struct topo_diff *out;
	int size;
};

/* ---- names ---- */

/* Short name; two nodes with the same one have their GUID too. */
static void name_node(const struct subnet *s, const struct ib_node *n, char *buf,
		      size_t size)
{
	char shorter[65];
	bool ambiguous = false;

	buf[0] = '\0';
	if (!n->desc_known || !*n->desc) {
		str_append(buf, size, "0x%016" PRIx64, n->info.node_guid);
		return;
	}
	(void)node_desc_short(n->desc, shorter, sizeof(shorter));
	(void)subnet_find(s, shorter, &ambiguous);
	str_append(buf, size, "%s", shorter);
	if (ambiguous)
		str_append(buf, size, "(0x%" PRIx64 ")", n->info.node_guid);
}

static const char *port_name(const struct subnet *s, const struct physp *p,
			     char buf[112])
{
	name_node(s, p->node, buf, 112);
	str_append(buf, 112, "/%u", p->num);
	return buf;
}

static void add(struct diff *d, enum topo_change change, const char *fmt, ...)
	PRINTF_LIKE(3, 4);
static void add(struct diff *d, enum topo_change change, const char *fmt, ...)
{
	struct topo_diff_line *line;
	va_list ap;

	if (d->out->n == d->size) {
		d->size = d->size ? d->size * 2 : 16;
		d->out->lines = xrealloc(d->out->lines, (size_t)d->size,
					 sizeof(*d->out->lines));
	}
	line = &d->out->lines[d->out->n++];
	line->change = change;
	va_start(ap, fmt);
	(void)vsnprintf(line->text, sizeof(line->text), fmt, ap);
	va_end(ap);
}

/* ---- nodes ---- */

static int count_links(const struct ib_node *n)
{
	int links = 0;

	for (unsigned i = 1; i <= n->info.num_ports; i++) {
		const struct physp *p = node_physp(n, i);

		links += p && physp_has_link(p);
	}
	return links;
}

static void tell_node(struct diff *d, const struct subnet *s, const struct ib_node *n,
		      enum topo_change change, const char *what)
{
	int links = count_links(n);
	char name[112];

	name_node(s, n, name, sizeof(name));
	add(d, change, "node %s: %s, %s 0x%016" PRIx64 ", %d link%s", what, name,
	    node_type_name(n->info.node_type), n->info.node_guid, links,
	    links == 1 ? "" : "s");
}

/* A character as each of fabd ('?') and ibnetdiscover (' ') writes what cannot be
 * printed; blanks at the end count for nothing. */
static char plain(char c)
{
	unsigned char u = (unsigned char)c;

	return u < 0x20 || u > 0x7e || u == '?' ? ' ' : c;
}

static bool same_desc(const char *a, const char *b)
{
	while (*a && *b && plain(*a) == plain(*b)) {
		a++;
		b++;
	}
	while (plain(*a) == ' ' && *a)
		a++;
	while (plain(*b) == ' ' && *b)
		b++;
	return !*a && !*b;
}

static void compare_nodes(struct diff *d)
{
	const struct ib_node *n, *m;

	for (n = subnet_next(d->old, NULL); n; n = subnet_next(d->old, n)) {
		m = subnet_node_by_guid(d->now, n->info.node_guid);
		if (!m)
			tell_node(d, d->old, n, TOPO_NODE_MISSING, "missing");
		else if (n->desc_known && m->desc_known && !same_desc(n->desc, m->desc))
			add(d, TOPO_NODE_RENAMED,
			    "node renamed: %s, was %s (0x%016" PRIx64 ")", m->desc,
			    n->desc, n->info.node_guid);
	}
	for (m = subnet_next(d->now, NULL); m; m = subnet_next(d->now, m))
		if (!subnet_node_by_guid(d->old, m->info.node_guid))
			tell_node(d, d->now, m, TOPO_NODE_NEW, "new");
}

/* ---- links ---- */

/* The same port in the other subnet; NULL if it or its node is not there. */
static struct physp *counterpart(const struct subnet *s, const struct physp *p)
{
	const struct ib_node *n = subnet_node_by_guid(s, p->node->info.node_guid);

	return n ? node_physp(n, p->num) : NULL;
}

static bool is_marked(bool *const *marks, const struct physp *p)
{
	return marks[p->node->serial][p->num];
}

/* The link at @p, at both ends. */
static void mark(bool *const *marks, const struct physp *p)
{
	marks[p->node->serial][p->num] = true;
	marks[p->remote->node->serial][p->remote->num] = true;
}

/* A link is looked at from its first end: the lower GUID, then port. */
static bool is_first_end(const struct physp *p)
{
	uint64_t a = p->node->info.node_guid, b = p->remote->node->info.node_guid;

	return a != b ? a < b : p->num <= p->remote->num;
}

static uint32_t rate_of(const struct physp *p)
{
	return link_rate_mbps(p->info.width_active, physp_speed(p));
}

static const char *rate_text(const struct physp *p, char buf[48])
{
	char width[24];

	buf[0] = '\0';
	str_append(buf, 48, "%s%s", link_width_text(p->info.width_active, width),
		   link_speed_name(physp_speed(p)));
	return buf;
}

static void compare_rate(struct diff *d, const struct physp *was,
			 const struct physp *is)
{
	uint32_t a = rate_of(was), b = rate_of(is);
	char x[112], y[112], before[48], after[48];

	if (!a || !b || a == b)
		return;
	add(d, b < a ? TOPO_SLOWER : TOPO_FASTER, "%s: %s - %s, %s, was %s",
	    b < a ? "slower" : "faster", port_name(d->now, is, x),
	    port_name(d->now, is->remote, y), rate_text(is, after),
	    rate_text(was, before));
}

/* The cable of @p's old link is still in @p, its other end is elsewhere. In a switch it
 * may as well be the cable of a node that is new, and was told with that. */
static bool tell_moved(struct diff *d, const struct physp *p)
{
	const struct physp *now = counterpart(d->now, p);
	char x[112], from[112], to[112];

	if (!now || !physp_has_link(now) || is_marked(d->told, now))
		return false;
	if (node_is_switch(p->node) &&
	    !subnet_node_by_guid(d->old, now->remote->node->info.node_guid))
		return false;
	add(d, TOPO_CABLE_MOVED, "cable moved: %s from %s to %s",
	    port_name(d->now, now, x), port_name(d->old, p->remote, from),
	    port_name(d->now, now->remote, to));
	mark(d->told, now);
	mark(d->done, p);
	return true;
}

/* A cable is known by the host at its end; between switches, by the end that stayed. So
 * hosts are asked first. */
enum pass { PASS_SAME, PASS_HOSTS, PASS_SWITCHES };

static void compare_link(struct diff *d, const struct physp *p, enum pass pass)
{
	const struct physp *a = counterpart(d->now, p),
			   *b = counterpart(d->now, p->remote);
	const struct physp *ends[] = {p, p->remote};
	char x[112], y[112];

	if (pass == PASS_SAME) {
		if (a && b && physp_link_exists(a, b)) {
			mark(d->told, a);
			mark(d->done, p);
			compare_rate(d, p, a);
		}
		return;
	}
	for (size_t i = 0; i < ARRAY_LEN(ends); i++)
		if (node_is_switch(ends[i]->node) == (pass == PASS_SWITCHES) &&
		    tell_moved(d, ends[i]))
			return;
	if (pass == PASS_SWITCHES)
		add(d, TOPO_LINK_MISSING, "link missing: %s - %s",
		    port_name(d->old, p, x), port_name(d->old, p->remote, y));
}

static bool has_both_nodes(const struct subnet *s, const struct physp *p)
{
	return subnet_node_by_guid(s, p->node->info.node_guid) &&
	       subnet_node_by_guid(s, p->remote->node->info.node_guid);
}

static void compare_links(struct diff *d, enum pass pass)
{
	const struct ib_node *n;

	for (n = subnet_next(d->old, NULL); n; n = subnet_next(d->old, n))
		for (unsigned i = 1; i <= n->info.num_ports; i++) {
			const struct physp *p = node_physp(n, i);

			if (p && physp_has_link(p) && is_first_end(p) &&
			    !is_marked(d->done, p) && has_both_nodes(d->now, p))
				compare_link(d, p, pass);
		}
}

/* What is left on the new side; the links of a new node are told with it. */
static void tell_new_links(struct diff *d)
{
	const struct ib_node *n;
	char x[112], y[112], rate[48];

	for (n = subnet_next(d->now, NULL); n; n = subnet_next(d->now, n))
		for (unsigned i = 1; i <= n->info.num_ports; i++) {
			const struct physp *p = node_physp(n, i);

			if (p && physp_has_link(p) && is_first_end(p) &&
			    !is_marked(d->told, p) && has_both_nodes(d->old, p))
				add(d, TOPO_LINK_NEW, "link new: %s - %s%s%s",
				    port_name(d->now, p, x),
				    port_name(d->now, p->remote, y),
				    rate_of(p) ? ", " : "",
				    rate_of(p) ? rate_text(p, rate) : "");
		}
}

/* ---- order ---- */

static int compare_lines(const void *a, const void *b)
{
	const struct topo_diff_line *x = a, *y = b;
	if (x->change != y->change)
		return (int)x->change - (int)y->change;
	return str_compare_natural(x->text, y->text);
}

static bool **marks_new(const struct subnet *s)
{
	bool **marks = xcalloc(subnet_serials(s), sizeof(*marks));
	const struct ib_node *n;

	for (n = subnet_next(s, NULL); n; n = subnet_next(s, n))
		marks[n->serial] = xcalloc((size_t)n->info.num_ports + 1, sizeof(bool));
	return marks;
}

static void marks_free(bool **marks, const struct subnet *s)
{
	for (uint32_t i = 0; i < subnet_serials(s); i++)
		free(marks[i]);
	free(marks);
}

void topo_compare(const struct subnet *old, const struct subnet *now,
		  struct topo_diff *ret)
{
	struct diff d = {.old = old, .now = now, .out = ret};

	*ret = (struct topo_diff){0};
	d.told = marks_new(now);
	d.done = marks_new(old);
	compare_nodes(&d);
	compare_links(&d, PASS_SAME);
	compare_links(&d, PASS_HOSTS);
	compare_links(&d, PASS_SWITCHES);
	tell_new_links(&d);
	if (ret->n)
		qsort(ret->lines, (size_t)ret->n, sizeof(*ret->lines), compare_lines);
	marks_free(d.told, now);
	marks_free(d.done, old);
}

void topo_diff_done(struct topo_diff *d)
{
	free(d->lines);
	*d = (struct topo_diff){0};
}
