/* SPDX-License-Identifier: BSD-2-Clause */
/* The nodes of a subnet: made, found, dropped. */
#include "subnet_internal.h"

struct subnet *subnet_new(void)
{
	return xcalloc(1, sizeof(struct subnet));
}

struct subnet *subnet_free(struct subnet *s)
{
	if (!s)
		return NULL;
	while (s->first)
		subnet_drop(s, &s->first->node);
	free(s->free_serials);
	free(s->lids);
	free(s);
	return NULL;
}

/* ---- looking at nodes ---- */

bool node_is_switch(const struct ib_node *n)
{
	return n->info.node_type == NODE_SWITCH;
}

struct physp *node_physp(const struct ib_node *n, unsigned num)
{
	if (!n->slots || num > n->info.num_ports || !physp_is_valid(&n->slots[num]))
		return NULL;
	return &n->slots[num];
}

struct physp *node_main_port(const struct ib_node *n)
{
	struct physp *p = NULL;

	if (node_is_switch(n))
		return node_physp(n, 0);
	for (unsigned i = 1; i <= n->info.num_ports && !p; i++)
		p = node_physp(n, i);
	return p;
}

struct ib_node *subnet_node_by_guid(const struct subnet *s, uint64_t node_guid)
{
	struct node_entry *e;

	HASH_FIND(hh, s->by_guid, &node_guid, sizeof(node_guid), e);
	return e ? &e->node : NULL;
}

struct ib_node *subnet_next(const struct subnet *s, const struct ib_node *n)
{
	if (n)
		return n->next;
	return s->first ? &s->first->node : NULL;
}

uint32_t subnet_serials(const struct subnet *s)
{
	return s->serials + 1;
}

/* ---- slots ---- */

static void slots_clear(struct subnet *s, struct ib_node *n)
{
	for (unsigned i = 0; n->slots && i <= n->info.num_ports; i++) {
		struct physp *p = &n->slots[i];

		subnet_physp_gone(s, p);
		physp_unlink(p); /* of one that is not valid destroy does nothing */
		physp_destroy(p);
	}
	free(n->slots);
	n->slots = NULL;
}

static void slots_make(struct ib_node *n, uint8_t hops, const uint8_t *path)
{
	n->slots = xcalloc((size_t)n->info.num_ports + 1, sizeof(*n->slots));
	if (!node_is_switch(n))
		return;
	for (unsigned i = 0; i <= n->info.num_ports; i++)
		physp_init(&n->slots[i], n->info.port_guid, (uint8_t)i, n, hops, path);
}

/* Of a CA or router: the port that NodeInfo came through. */
static void slot_learn(struct subnet *s, struct ib_node *n, uint8_t hops,
		       const uint8_t *path)
{
	const struct node_info *ni = &n->info;
	struct physp *p;

	if (node_is_switch(n) || !ni->local_port || ni->local_port > ni->num_ports)
		return;
	p = &n->slots[ni->local_port];
	if (p->guid == ni->port_guid)
		return;
	subnet_physp_gone(s, p);
	physp_unlink(p);
	physp_destroy(p);
	physp_init(p, ni->port_guid, ni->local_port, n, hops, path);
}

/* ---- nodes that come and go ---- */

static uint32_t serial_take(struct subnet *s)
{
	return s->n_free ? s->free_serials[--s->n_free] : ++s->serials;
}

static void serial_give_back(struct subnet *s, uint32_t serial)
{
	if (s->n_free == s->free_size) {
		s->free_size = MAX(16, 2 * s->free_size);
		s->free_serials = xrealloc(s->free_serials, s->free_size,
					   sizeof(*s->free_serials));
	}
	s->free_serials[s->n_free++] = serial;
}

static struct ib_node *node_add(struct subnet *s, const struct node_info *ni)
{
	struct node_entry *e = xcalloc(1, sizeof(*e));

	e->node.info = *ni;
	e->node.serial = serial_take(s);
	e->guid = ni->node_guid;
	HASH_ADD(hh, s->by_guid, guid, sizeof(e->guid), e);
	e->prev = s->last;
	if (s->last)
		s->last->node.next = &e->node;
	else
		s->first = e;
	s->last = e;
	return &e->node;
}

void subnet_drop(struct subnet *s, struct ib_node *n)
{
	struct node_entry *e = node_entry(n);

	slots_clear(s, n);
	HASH_DELETE(hh, s->by_guid, e);
	if (e->prev)
		e->prev->node.next = n->next;
	else
		s->first = n->next ? node_entry(n->next) : NULL;
	if (n->next)
		node_entry(n->next)->prev = e->prev;
	else
		s->last = e->prev;
	serial_give_back(s, n->serial);
	free(e);
}

static bool is_another(const struct node_info *was, const struct node_info *is)
{
	return was->node_type != is->node_type || was->num_ports != is->num_ports ||
	       (is->node_type == NODE_SWITCH && was->port_guid != is->port_guid);
}

struct ib_node *subnet_node(struct subnet *s, const struct node_info *ni, uint8_t hops,
			    const uint8_t *path, bool *ret_new)
{
	struct ib_node *n = subnet_node_by_guid(s, ni->node_guid);

	*ret_new = !n;
	if (!n)
		n = node_add(s, ni);
	else if (is_another(&n->info, ni)) {
		slots_clear(s, n);
		n->desc[0] = '\0';
		n->desc_known = n->sw_known = false;
		n->sw = (struct switch_info){0};
	}
	n->info = *ni;
	if (!n->slots)
		slots_make(n, hops, path);
	slot_learn(s, n, hops, path);
	return n;
}

/* ---- by name ---- */

/* All of @text as a number of the length of a GUID, or in decimal of a LID. */
static bool parse_number(const char *text, bool hex, uint64_t *ret)
{
	size_t len = strlen(text);
	size_t digits = strspn(text, hex ? "0123456789abcdefABCDEF" : "0123456789");

	if (!len || digits < len || len > (hex ? 16 : 5))
		return false;
	*ret = strtoull(text, NULL, hex ? 16 : 10);
	return true;
}

static struct ib_node *find_number(const struct subnet *s, const char *name)
{
	bool hex = name[0] == '0' && (name[1] == 'x' || name[1] == 'X');
	const struct ib_port *p = NULL;
	struct ib_node *n = NULL;
	uint64_t v;

	if (!parse_number(hex ? name + 2 : name, hex, &v))
		return NULL;
	if (hex) {
		n = subnet_node_by_guid(s, v);
		p = subnet_port_by_guid(s, v);
	}
	if (!n && !p && v <= UINT16_MAX)
		p = subnet_port_by_lid(s, (uint16_t)v);
	return n ? n : p ? p->physp->node : NULL;
}

static bool is_called(const struct ib_node *n, const char *name, bool in_short)
{
	char buf[sizeof(n->desc)];

	if (!n->desc_known)
		return false;
	return str_eq(name,
		      in_short ? node_desc_short(n->desc, buf, sizeof(buf)) : n->desc);
}

struct ib_node *subnet_find(const struct subnet *s, const char *name,
			    bool *ret_ambiguous)
{
	struct ib_node *found = find_number(s, name);
	int n_found = found != NULL;

	for (int in_short = 0; in_short < 2 && !n_found; in_short++) {
		for (struct ib_node *n = subnet_next(s, NULL); n; n = n->next) {
			if (!is_called(n, name, in_short))
				continue;
			found = n;
			n_found++;
		}
	}
	*ret_ambiguous = n_found > 1;
	return n_found == 1 ? found : NULL;
}
