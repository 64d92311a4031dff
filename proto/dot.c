/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Switches of one level stand in one rank, the highest level at the top. Many hosts in
 * one line would make a picture as wide as a wall: those of one switch stand in several
 * rows, held together by edges that cannot be seen.
 */
#include "dot.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "link.h"

/* Characters of names in one row, with room around each. */
#define ROW_CHARACTERS 180
#define ROOM_AROUND    4

struct drawn { /* a node of the picture */
	const struct ib_node *node;
	uint8_t level; /* LEVEL_NONE: a host, or a switch without links */
	char name[65];
	const struct ib_node *at; /* a host's first switch; NULL: none */
};
struct edge {
	const struct ib_node *a, *b;
	int n, degraded, down;
	char why[128];
	char ports[160]; /* the first of them */
};
struct picture {
	struct drawn *nodes; /* owned */
	size_t n_nodes;
	struct edge *edges; /* owned */
	size_t n_edges, edges_size;
};

/* ---- what is drawn ---- */

static const struct ib_node *first_switch(const struct ib_node *n)
{
	for (unsigned i = 1; i <= n->info.num_ports; i++) {
		const struct physp *p = node_physp(n, i);

		if (p && physp_has_link(p) && node_is_switch(p->remote->node))
			return p->remote->node;
	}
	return NULL;
}

static int compare_drawn(const void *a, const void *b)
{
	const struct drawn *x = a, *y = b;
	int c;

	if (node_is_switch(x->node) != node_is_switch(y->node))
		return node_is_switch(x->node) ? -1 : 1;
	if (x->level != y->level)
		return x->level > y->level ? -1 : 1;
	c = str_compare_natural(x->name, y->name);
	if (c)
		return c;
	return x->node->info.node_guid < y->node->info.node_guid ? -1 : 1;
}

static void collect_nodes(struct picture *pic, const struct subnet *s)
{
	uint32_t n_levels = subnet_serials(s);
	uint8_t *levels = xcalloc(n_levels, 1);
	const struct ib_node *n;
	size_t count = 0;

	subnet_levels(s, levels, n_levels);
	for (n = subnet_next(s, NULL); n; n = subnet_next(s, n))
		count++;
	pic->nodes = xcalloc(count, sizeof(*pic->nodes));
	for (n = subnet_next(s, NULL); n; n = subnet_next(s, n)) {
		struct drawn *d = &pic->nodes[pic->n_nodes++];

		d->node = n;
		d->level = node_is_switch(n) ? levels[n->serial] : LEVEL_NONE;
		d->at = node_is_switch(n) ? NULL : first_switch(n);
		if (n->desc_known && *n->desc)
			(void)node_desc_short(n->desc, d->name, sizeof(d->name));
		else
			str_append(d->name, sizeof(d->name), "0x%" PRIx64,
				   n->info.node_guid);
	}
	free(levels);
	if (count)
		qsort(pic->nodes, count, sizeof(*pic->nodes), compare_drawn);
}

/* The edge that @p belongs to: the last one, as links are taken node by node. */
static struct edge *edge_of(struct picture *pic, size_t from, const struct physp *p)
{
	const struct ib_node *far = p->remote->node;

	for (size_t i = from; i < pic->n_edges; i++)
		if (pic->edges[i].b == far)
			return &pic->edges[i];
	if (pic->n_edges == pic->edges_size) {
		pic->edges_size = pic->edges_size ? pic->edges_size * 2 : 64;
		pic->edges = xrealloc(pic->edges, pic->edges_size, sizeof(*pic->edges));
	}
	pic->edges[pic->n_edges] = (struct edge){.a = p->node, .b = far};
	return &pic->edges[pic->n_edges++];
}

static void add_link(struct edge *e, const struct physp *p)
{
	char why[128], rate[24], width[24];

	e->n++;
	if (physp_state(p) == IB_DOWN || physp_state(p->remote) == IB_DOWN) {
		e->down++;
	} else if (physp_is_degraded(p, why) || physp_is_degraded(p->remote, why)) {
		e->degraded++;
		if (!*e->why)
			(void)str_copy(e->why, sizeof(e->why), why);
	}
	(void)link_rate_text(link_rate_mbps(p->info.width_active, physp_speed(p)),
			     rate);
	str_append(e->ports, sizeof(e->ports), "%s%u-%u %s %s", e->n > 1 ? ", " : "",
		   p->num, p->remote->num, link_width_text(p->info.width_active, width),
		   rate);
}

/* Drawn from the node that comes first, which is the higher one. */
static void collect_edges(struct picture *pic, const uint32_t *place)
{
	for (size_t i = 0; i < pic->n_nodes; i++) {
		const struct ib_node *n = pic->nodes[i].node;
		size_t from = pic->n_edges;

		for (unsigned k = 1; k <= n->info.num_ports; k++) {
			const struct physp *p = node_physp(n, k);

			if (!p || !physp_has_link(p) || !p->remote->node)
				continue;
			if (place[p->remote->node->serial] < i ||
			    (p->remote->node == n && p->remote->num < p->num))
				continue;
			add_link(edge_of(pic, from, p), p);
		}
	}
}

/* ---- how it is drawn ---- */

/* Text in quotes of the dot language. */
static void put_quoted(FILE *f, const char *text)
{
	(void)fputc('"', f);
	for (; *text; text++) {
		unsigned char c = (unsigned char)*text;

		if (c == '"' || c == '\\')
			(void)fputc('\\', f);
		(void)fputc(c < 0x20 || c == 0x7f ? '?' : c, f);
	}
	(void)fputc('"', f);
}

static void put_node(FILE *f, const struct drawn *d)
{
	const struct ib_node *n = d->node;
	const struct physp *p = node_main_port(n);
	char tip[160] = "";

	(void)fprintf(f, "\t\"%016" PRIx64 "\" [label=", n->info.node_guid);
	put_quoted(f, d->name);
	str_append(tip, sizeof(tip), "%s 0x%016" PRIx64 ", lid %d, %s",
		   node_type_name(n->info.node_type), n->info.node_guid,
		   p ? physp_base_lid(p) : 0, n->desc);
	(void)fprintf(f, ", tooltip=");
	put_quoted(f, tip);
	if (n->flags & NODE_DUPLICATE)
		(void)fprintf(f, ", color=red, penwidth=2");
	else if (n->flags & (NODE_SUSPECT | NODE_PROTECTED))
		(void)fprintf(f, ", style=\"filled,dashed\"");
	if (node_is_switch(n))
		(void)fprintf(f, ", fillcolor=\"#cfe2f3\"");
	else if (n->info.node_type == NODE_ROUTER)
		(void)fprintf(f, ", fillcolor=\"#ead1dc\", shape=ellipse");
	(void)fprintf(f, "];\n");
}

static void put_rank(FILE *f, const struct picture *pic, size_t from, size_t to)
{
	(void)fprintf(f, "\t{ rank=same;");
	for (size_t i = from; i < to; i++)
		(void)fprintf(f, " \"%016" PRIx64 "\";",
			      pic->nodes[i].node->info.node_guid);
	(void)fprintf(f, " }\n");
}

/* Levels hold together even where no link leads from one to the next. */
static void put_switch_ranks(FILE *f, const struct picture *pic)
{
	size_t from = 0, last = SIZE_MAX;

	while (from < pic->n_nodes && node_is_switch(pic->nodes[from].node)) {
		size_t to = from;

		while (to < pic->n_nodes && node_is_switch(pic->nodes[to].node) &&
		       pic->nodes[to].level == pic->nodes[from].level)
			to++;
		if (pic->nodes[from].level != LEVEL_NONE) {
			put_rank(f, pic, from, to);
			if (last != SIZE_MAX)
				(void)fprintf(f,
					      "\t\"%016" PRIx64 "\" -- \"%016" PRIx64
					      "\" [style=invis];\n",
					      pic->nodes[last].node->info.node_guid,
					      pic->nodes[from].node->info.node_guid);
			last = from;
		}
		from = to;
	}
}

/* Hosts of one switch stand under each other, as many as make the picture not too wide:
 * each is held by the one above it. */
static void put_host_rows(FILE *f, const struct picture *pic, const uint32_t *place)
{
	size_t characters = 0, rows;
	size_t *above = xcalloc(pic->n_nodes, sizeof(*above)); /* by switch: host + 1 */
	size_t *depth = xcalloc(pic->n_nodes, sizeof(*depth));

	for (size_t i = 0; i < pic->n_nodes; i++)
		if (!node_is_switch(pic->nodes[i].node))
			characters += strlen(pic->nodes[i].name) + ROOM_AROUND;
	rows = (characters + ROW_CHARACTERS - 1) / ROW_CHARACTERS;
	for (size_t i = 0; i < pic->n_nodes && rows > 1; i++) {
		const struct drawn *d = &pic->nodes[i];
		size_t at;

		if (node_is_switch(d->node) || !d->at)
			continue;
		at = place[d->at->serial];
		if (depth[at]++ % rows)
			(void)fprintf(f,
				      "\t\"%016" PRIx64 "\" -- \"%016" PRIx64
				      "\" [style=invis, weight=20];\n",
				      pic->nodes[above[at] - 1].node->info.node_guid,
				      d->node->info.node_guid);
		above[at] = i + 1;
	}
	free(above);
	free(depth);
}

static void put_edge(FILE *f, const struct edge *e)
{
	char label[192] = "";

	if (e->n > 1)
		str_append(label, sizeof(label), "%d", e->n);
	if (e->down)
		str_append(label, sizeof(label), "%s%d down", *label ? ", " : "",
			   e->down);
	if (e->degraded && e->n > 1)
		str_append(label, sizeof(label), "%s%d degraded", *label ? ", " : "",
			   e->degraded);
	if (e->degraded)
		str_append(label, sizeof(label), "%s%s", *label ? ": " : "", e->why);
	(void)fprintf(f, "\t\"%016" PRIx64 "\" -- \"%016" PRIx64 "\" [",
		      e->a->info.node_guid, e->b->info.node_guid);
	if (*label) {
		(void)fprintf(f, "label=");
		put_quoted(f, label);
		(void)fprintf(f, ", ");
	}
	if (e->down)
		(void)fprintf(f,
			      "color=red, fontcolor=red, style=dashed, penwidth=2, ");
	else if (e->degraded)
		(void)fprintf(f,
			      "color=darkorange, fontcolor=darkorange3, penwidth=2, ");
	else if (e->n > 1)
		(void)fprintf(f, "penwidth=%.1f, ", 1 + 0.5 * MIN(e->n, 6));
	(void)fprintf(f, "tooltip=");
	put_quoted(f, e->ports);
	(void)fprintf(f, "];\n");
}

static void put_picture(FILE *f, const struct picture *pic, const uint32_t *place,
			const char *title)
{
	(void)fprintf(f, "graph fabric {\n\tgraph [label=");
	put_quoted(f, title ? title : "");
	(void)fprintf(
		f, ", labelloc=t, fontname=\"Helvetica\", fontsize=14,"
		   " nodesep=0.15, ranksep=0.7];\n"
		   "\tnode [shape=box, style=filled, fillcolor=\"#eeeeee\","
		   " fontname=\"Helvetica\", fontsize=11, height=0.3, width=0.4,"
		   " margin=\"0.08,0.04\"];\n"
		   "\tedge [color=\"#666666\", fontname=\"Helvetica\", fontsize=9];\n");
	for (size_t i = 0; i < pic->n_nodes; i++)
		put_node(f, &pic->nodes[i]);
	put_switch_ranks(f, pic);
	put_host_rows(f, pic, place);
	for (size_t i = 0; i < pic->n_edges; i++)
		put_edge(f, &pic->edges[i]);
	(void)fprintf(f, "}\n");
}

char *dot_text(const struct subnet *s, const char *title)
{
	uint32_t *place = xcalloc(subnet_serials(s), sizeof(*place));
	struct picture pic = {0};
	char *text = NULL;
	size_t size = 0;
	FILE *f = open_memstream(&text, &size);

	if (!f)
		abort();
	collect_nodes(&pic, s);
	for (size_t i = 0; i < pic.n_nodes; i++)
		place[pic.nodes[i].node->serial] = (uint32_t)i;
	collect_edges(&pic, place);
	put_picture(f, &pic, place, title);
	if (fclose(f))
		abort();
	free(pic.nodes);
	free(pic.edges);
	free(place);
	return text;
}
