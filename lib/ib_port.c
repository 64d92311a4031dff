/* SPDX-License-Identifier: BSD-2-Clause */
/* The logical ports of a subnet: by GUID, by any LID of their range, their groups. */
#include "subnet_internal.h"

#include <errno.h>

/* ---- what a port says ---- */

uint16_t ib_port_base_lid(const struct ib_port *p)
{
	return physp_base_lid(p->physp);
}

uint8_t ib_port_lmc(const struct ib_port *p)
{
	return physp_lmc(p->physp);
}

bool ib_port_lid_range(const struct ib_port *p, uint16_t *ret_first, uint16_t *ret_last)
{
	return lid_range(ib_port_base_lid(p), ib_port_lmc(p), ret_first, ret_last);
}

const struct ib_node *ib_port_leaf(const struct ib_port *p)
{
	const struct physp *far = p && !node_is_switch(p->physp->node)
					  ? physp_remote(p->physp)
					  : NULL;

	return far && node_is_switch(far->node) ? far->node : NULL;
}

/* ---- the table of LIDs ---- */

static void lids_make_room(struct subnet *s, uint16_t last)
{
	uint32_t size = MAX(s->lids_size, 64);

	while (size <= last)
		size *= 2;
	if (size == s->lids_size)
		return;
	s->lids = xrealloc(s->lids, size, sizeof(struct ib_port *));
	memset(s->lids + s->lids_size, 0,
	       (size - s->lids_size) * sizeof(struct ib_port *));
	s->lids_size = size;
}

/* Take what is free of the range that @e claims; false if another has a part. */
static bool lids_take(struct subnet *s, struct port_entry *e)
{
	bool all = true;

	for (uint32_t lid = e->first; lid && lid <= e->last; lid++) {
		if (!s->lids[lid])
			s->lids[lid] = &e->port;
		all &= s->lids[lid] == &e->port;
	}
	return all;
}

static void contested_add(struct subnet *s, struct port_entry *e)
{
	struct ib_port **at = &s->contested;

	while (*at)
		at = &(*at)->next;
	*at = &e->port;
	e->port.next = NULL;
	e->contested = true;
}

static void contested_remove(struct subnet *s, struct port_entry *e)
{
	struct ib_port **at = &s->contested;

	if (!e->contested)
		return;
	while (*at != &e->port)
		at = &(*at)->next;
	*at = e->port.next;
	e->contested = false;
}

static void lids_give_up(struct subnet *s, struct port_entry *e)
{
	contested_remove(s, e);
	for (uint32_t lid = e->first; lid && lid <= e->last; lid++)
		if (s->lids[lid] == &e->port)
			s->lids[lid] = NULL;
	e->first = e->last = 0;
	for (struct ib_port *p = s->contested, *next; p; p = next) {
		next = p->next;
		if (lids_take(s, port_entry(p)))
			contested_remove(s, port_entry(p));
	}
}

int subnet_lids_changed(struct subnet *s, struct ib_port *p)
{
	struct port_entry *e = port_entry(p);
	uint16_t first = 0, last = 0;

	(void)ib_port_lid_range(p, &first, &last);
	if (first != e->first || last != e->last) {
		lids_give_up(s, e);
		lids_make_room(s, last);
		e->first = first;
		e->last = last;
		if (!lids_take(s, e))
			contested_add(s, e);
	}
	return e->contested ? -EEXIST : 0;
}

struct ib_port *subnet_port_by_lid(const struct subnet *s, uint16_t lid)
{
	return lid < s->lids_size ? s->lids[lid] : NULL;
}

/* ---- ports ---- */

static struct port_entry *entry_by_guid(const struct subnet *s, uint64_t guid)
{
	struct port_entry *e;

	HASH_FIND(hh, s->ports, &guid, sizeof(guid), e);
	return e;
}

struct ib_port *subnet_port_by_guid(const struct subnet *s, uint64_t port_guid)
{
	struct port_entry *e = entry_by_guid(s, port_guid);

	return e ? &e->port : NULL;
}

struct ib_port *subnet_port(struct subnet *s, struct physp *p)
{
	struct port_entry *e;

	if (!physp_is_valid(p))
		return NULL;
	if (node_is_switch(p->node))
		p = &p->node->slots[0];
	e = entry_by_guid(s, p->guid);
	if (e && e->port.physp->node != p->node) {
		e->port.physp->node->flags |= NODE_DUPLICATE;
		p->node->flags |= NODE_DUPLICATE;
		return NULL;
	}
	if (!e) {
		e = xcalloc(1, sizeof(*e));
		e->port.guid = p->guid;
		e->port.physp = p;
		e->port.is_new = true;
		HASH_ADD(hh, s->ports, port.guid, sizeof(e->port.guid), e);
	}
	return &e->port;
}

static void entry_drop(struct subnet *s, struct port_entry *e)
{
	lids_give_up(s, e);
	HASH_DELETE(hh, s->ports, e);
	free(e->port.mlids);
	free(e);
}

void subnet_port_drop(struct subnet *s, uint64_t port_guid)
{
	struct port_entry *e = entry_by_guid(s, port_guid);

	if (e)
		entry_drop(s, e);
}

void subnet_physp_gone(struct subnet *s, const struct physp *p)
{
	struct port_entry *e = physp_is_valid(p) ? entry_by_guid(s, p->guid) : NULL;

	/* The GUID may be another's. */
	if (e && e->port.physp == p)
		entry_drop(s, e);
}

void subnet_age(struct subnet *s)
{
	for (struct port_entry *e = s->ports; e; e = e->hh.next)
		e->port.is_new = false;
}

/* ---- multicast groups ---- */

static int mlid_find(const struct ib_port *p, uint16_t mlid)
{
	for (int i = 0; i < p->n_mlids; i++)
		if (p->mlids[i] == mlid)
			return i;
	return -1;
}

int ib_port_add_mlid(struct ib_port *p, uint16_t mlid)
{
	if (mlid < IB_LID_MULTICAST_MIN || mlid > IB_LID_MULTICAST_MAX)
		return -ERANGE;
	if (mlid_find(p, mlid) >= 0)
		return 0;
	if (p->n_mlids == p->mlids_size) {
		p->mlids_size = MAX(4, 2 * p->mlids_size);
		p->mlids = xrealloc(p->mlids, (size_t)p->mlids_size, sizeof(*p->mlids));
	}
	p->mlids[p->n_mlids++] = mlid;
	return 0;
}

void ib_port_remove_mlid(struct ib_port *p, uint16_t mlid)
{
	int i = mlid_find(p, mlid);

	if (i < 0)
		return;
	p->n_mlids--;
	memmove(&p->mlids[i], &p->mlids[i + 1],
		(size_t)(p->n_mlids - i) * sizeof(*p->mlids));
}

void ib_port_remove_all_mlids(struct ib_port *p)
{
	free(p->mlids);
	p->mlids = NULL;
	p->n_mlids = p->mlids_size = 0;
}
