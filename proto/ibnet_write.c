/* SPDX-License-Identifier: BSD-2-Clause */
/* The writer: what ibnetdiscover.c of infiniband-diags 44 prints without options, to
 * the blank. */
#include "ibnet.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

struct ibnet_writer {
	const struct ib_node *from; /* borrowed, NULL: there is no node */
	uint64_t from_port_guid;
	char *title;		      /* owned, NULL: none */
	const struct ib_node **nodes; /* owned, in the order of writing */
	size_t n, at;
	bool head_done;
	char *text; /* owned, the last piece */
};

/* ---- the order of discovery ---- */

struct queue {
	const struct ib_node **nodes; /* owned */
	bool *known;		      /* owned, by serial */
	size_t n;
};

static void discover(struct queue *q, const struct ib_node *n)
{
	if (!n || q->known[n->serial])
		return;
	q->known[n->serial] = true;
	q->nodes[q->n++] = n;
}

/* A switch is left through all its ports, of the rest the one that asks, by its port.
 */
static void discover_beyond(struct queue *q, const struct ib_node *n,
			    uint64_t from_port_guid)
{
	for (unsigned i = 1; i <= n->info.num_ports; i++) {
		const struct physp *p = node_physp(n, i);

		if (!p || !physp_has_link(p))
			continue;
		if (node_is_switch(n) || p->guid == from_port_guid)
			discover(q, p->remote->node);
	}
}

/* All nodes as ibnetdiscover finds them: those that are nearer first, of the same
 * switch in the order of its ports. What cannot be reached so comes last. */
static struct queue discover_all(const struct subnet *s, const struct ib_node *from,
				 uint64_t from_port_guid)
{
	const struct ib_node *n;
	struct queue q = {0};
	size_t count = 0;

	for (n = subnet_next(s, NULL); n; n = subnet_next(s, n))
		count++;
	q.nodes = xcalloc(count, sizeof(*q.nodes));
	q.known = xcalloc(subnet_serials(s), sizeof(*q.known));
	discover(&q, from);
	for (size_t i = 0; i < q.n; i++)
		discover_beyond(&q, q.nodes[i], from_port_guid);
	for (n = subnet_next(s, NULL); n; n = subnet_next(s, n))
		discover(&q, n);
	return q;
}

static void add_type(struct ibnet_writer *w, const struct queue *q, uint8_t type)
{
	for (size_t i = q->n; i-- > 0;)
		if (q->nodes[i]->info.node_type == type)
			w->nodes[w->n++] = q->nodes[i];
}

struct ibnet_writer *ibnet_writer_new(const struct subnet *s, const struct physp *from,
				      const char *title)
{
	struct ibnet_writer *w = xcalloc(1, sizeof(*w));
	struct queue q;

	w->from = from ? from->node : subnet_next(s, NULL);
	w->from_port_guid = from ? from->guid : w->from ? w->from->info.port_guid : 0;
	w->title = title ? xstrdup(title) : NULL;
	q = discover_all(s, w->from, w->from_port_guid);
	w->nodes = xcalloc(q.n, sizeof(*w->nodes));
	add_type(w, &q, NODE_SWITCH);
	add_type(w, &q, NODE_CA);
	add_type(w, &q, NODE_ROUTER);
	free(q.nodes);
	free(q.known);
	return w;
}

struct ibnet_writer *ibnet_writer_free(struct ibnet_writer *w)
{
	if (!w)
		return NULL;
	free(w->title);
	free(w->nodes);
	free(w->text);
	free(w);
	return NULL;
}

/* ---- the text ---- */

/* A description as infiniband-diags shows it: at most 63 characters, a blank for each
 * that cannot be printed. */
static const char *clean_desc(const struct ib_node *n, char buf[64])
{
	size_t i = 0;

	for (; i < 63 && n->desc[i]; i++) {
		unsigned char c = (unsigned char)n->desc[i];

		buf[i] = c < 0x80 && isprint(c) ? n->desc[i] : ' ';
	}
	buf[i] = '\0';
	return buf;
}

static char type_letter(const struct ib_node *n)
{
	switch (n->info.node_type) {
	case NODE_SWITCH:
		return 'S';
	case NODE_CA:
		return 'H';
	case NODE_ROUTER:
		return 'R';
	default:
		return '?';
	}
}

static const char *width_text(uint8_t code)
{
	switch (code) {
	case 1:
		return "1x";
	case 2:
		return "4x";
	case 4:
		return "8x";
	case 8:
		return "12x";
	case 16:
		return "2x";
	default:
		return "??";
	}
}

/* By the node's own word on extended speeds, which of a switch is that of port 0; a
 * switch whose port 0 is not known is not believed on any. FDR10 is told by an
 * attribute of Mellanox's that is not read. */
static const char *speed_text(const struct physp *p)
{
	const struct physp *says = node_is_switch(p->node) ? node_physp(p->node, 0) : p;
	const struct port_info *pi = &p->info;
	uint8_t ext = 0;

	if (!says)
		return "???";
	if (says->info.cap_mask & IB_CAP_EXTENDED_SPEEDS)
		ext = pi->ext_active;
	if (says->info.cap_mask & IB_CAP_EXTENDED_SPEEDS && pi->ext_active2)
		return "XDR";
	switch (ext) {
	case 0:
		return pi->speed_active == 1   ? "SDR"
		       : pi->speed_active == 2 ? "DDR"
		       : pi->speed_active == 4 ? "QDR"
					       : "???";
	case 1:
		return "FDR";
	case 2:
		return "EDR";
	case 4:
		return "HDR";
	case 8:
		return "NDR";
	default:
		return "???";
	}
}

static void put_node(FILE *f, const struct ib_node *n)
{
	const struct physp *p0 = node_is_switch(n) ? node_physp(n, 0) : NULL;
	const struct node_info *ni = &n->info;
	char desc[64];

	(void)fprintf(f, "\nvendid=0x%" PRIx32 "\ndevid=0x%x\n", ni->vendor_id,
		      ni->device_id);
	if (ni->sys_guid)
		(void)fprintf(f, "sysimgguid=0x%" PRIx64 "\n", ni->sys_guid);
	if (ni->node_type == NODE_SWITCH) {
		(void)fprintf(f, "switchguid=0x%" PRIx64 "(%" PRIx64 ")\n",
			      ni->node_guid, ni->port_guid);
		(void)fprintf(f,
			      "Switch\t%d \"S-%016" PRIx64
			      "\"\t\t# \"%s\" %s port 0 lid %d lmc %d\n",
			      ni->num_ports, ni->node_guid, clean_desc(n, desc),
			      n->sw.enhanced_port0 ? "enhanced" : "base",
			      p0 ? physp_base_lid(p0) : 0, p0 ? physp_lmc(p0) : 0);
		return;
	}
	(void)fprintf(f, "%s=0x%" PRIx64 "\n",
		      ni->node_type == NODE_CA ? "caguid" : "rtguid", ni->node_guid);
	(void)fprintf(f, "%s\t%d \"%c-%016" PRIx64 "\"\t\t# \"%s\"\n",
		      ni->node_type == NODE_CA ? "Ca" : "Rt", ni->num_ports,
		      type_letter(n), ni->node_guid, clean_desc(n, desc));
}

/* A switch's line tells of the far end, that of a CA or router of both. */
static void put_port(FILE *f, const struct physp *p)
{
	const struct physp *r = p->remote;
	bool is_switch = node_is_switch(p->node), to_switch = node_is_switch(r->node);
	char desc[64];

	(void)fprintf(f, "[%d]", p->num);
	if (!is_switch)
		(void)fprintf(f, "(%" PRIx64 ") ", p->guid);
	(void)fprintf(f, "\t\"%c-%016" PRIx64 "\"[%d]", type_letter(r->node),
		      r->node->info.node_guid, r->num);
	if (!to_switch)
		(void)fprintf(f, "%s(%" PRIx64 ") ", is_switch ? "" : " ", r->guid);
	(void)fprintf(f, "\t\t# ");
	if (!is_switch)
		(void)fprintf(f, "lid %d lmc %d ", physp_base_lid(p), physp_lmc(p));
	(void)fprintf(f, "\"%s\" lid %d %s%s\n", clean_desc(r->node, desc),
		      physp_base_lid(r), width_text(p->info.width_active),
		      speed_text(p));
}

static void put_head(FILE *f, const struct ibnet_writer *w)
{
	const struct ib_node *from = w->from;

	(void)fprintf(f, "#\n");
	if (w->title)
		(void)fprintf(f, "# Topology file: generated on %s\n#\n", w->title);
	if (from)
		(void)fprintf(
			f, "# Initiated from node %016" PRIx64 " port %016" PRIx64 "\n",
			from->info.node_guid, w->from_port_guid);
}

const char *ibnet_next(struct ibnet_writer *w)
{
	size_t size = 0;
	FILE *f;

	if (w->head_done && w->at == w->n)
		return NULL;
	free(w->text);
	w->text = NULL;
	f = open_memstream(&w->text, &size);
	if (!f)
		abort();
	if (!w->head_done) {
		put_head(f, w);
		w->head_done = true;
	} else {
		const struct ib_node *n = w->nodes[w->at++];

		put_node(f, n);
		for (unsigned i = 1; i <= n->info.num_ports; i++) {
			const struct physp *p = node_physp(n, i);

			if (p && physp_has_link(p) && physp_is_valid(p->remote))
				put_port(f, p);
		}
	}
	if (fclose(f))
		abort();
	return w->text;
}
