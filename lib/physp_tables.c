/* SPDX-License-Identifier: BSD-2-Clause */
/* P_Keys, SL to VL and VL arbitration of a physical port. */
#include "physp.h"

#include <errno.h>

/* ---- P_Keys ---- */

uint16_t physp_pkey_capacity(const struct physp *p)
{
	const struct ib_node *n = p->node;

	if (!n)
		return 0;
	if (n->info.node_type == NODE_SWITCH && p->num != 0)
		return n->sw.partition_enf_cap;
	return n->info.partition_cap;
}

int physp_set_pkeys(struct physp *p, unsigned block, const struct pkey_block *b)
{
	uint16_t capacity = physp_pkey_capacity(p);
	struct pkey_table *t;

	if (!physp_is_valid(p))
		return -EINVAL;
	if (block >= (capacity + IB_PKEYS_EACH - 1U) / IB_PKEYS_EACH)
		return -ERANGE;
	if (!p->pkeys)
		p->pkeys = xcalloc(1, sizeof(*p->pkeys));
	t = p->pkeys;
	t->capacity = capacity;
	if (block >= t->n_blocks) {
		t->blocks = xrealloc(t->blocks, block + 1, sizeof(*t->blocks));
		memset(&t->blocks[t->n_blocks], 0,
		       (block - t->n_blocks) * sizeof(*t->blocks));
		t->n_blocks = (uint16_t)(block + 1);
	}
	t->blocks[block] = *b;
	if (block < 64)
		t->read |= UINT64_C(1) << block;
	return 0;
}

uint16_t physp_find_pkey(const struct physp *p, uint16_t pkey)
{
	uint16_t base = pkey & (uint16_t)~IB_PKEY_FULL, found = 0;
	unsigned n;

	if (!p->pkeys || !base)
		return 0;
	n = MIN((unsigned)physp_pkey_capacity(p),
		p->pkeys->n_blocks * (unsigned)IB_PKEYS_EACH);
	for (unsigned i = 0; i < n; i++) {
		uint16_t k =
			p->pkeys->blocks[i / IB_PKEYS_EACH].pkey[i % IB_PKEYS_EACH];

		if (k == (base | IB_PKEY_FULL))
			return k;
		if (k == base)
			found = k;
	}
	return found;
}

/* ---- quality of service ---- */

static struct qos_tables *qos_of(struct physp *p)
{
	if (!p->qos)
		p->qos = xcalloc(1, sizeof(*p->qos));
	return p->qos;
}

/* A CA or router has no input ports to tell apart (IBA 14.2.5.8). */
static unsigned slvl_inputs(const struct physp *p)
{
	if (p->node && p->node->info.node_type == NODE_SWITCH)
		return p->node->info.num_ports + 1U;
	return 1;
}

int physp_set_slvl(struct physp *p, unsigned in_port, const struct slvl *t)
{
	unsigned n = slvl_inputs(p);
	struct qos_tables *q;

	if (!physp_is_valid(p))
		return -EINVAL;
	if (in_port >= n)
		return -ERANGE;
	q = qos_of(p);
	if (!q->slvl) {
		q->slvl = xcalloc(n, sizeof(*q->slvl));
		q->slvl_set = xcalloc(n, sizeof(*q->slvl_set));
		q->n_slvl = (uint16_t)n;
	}
	q->slvl[in_port] = *t;
	q->slvl_set[in_port] = true;
	return 0;
}

const struct slvl *physp_get_slvl(const struct physp *p, unsigned in_port)
{
	if (!p->qos || in_port >= p->qos->n_slvl || !p->qos->slvl_set[in_port])
		return NULL;
	return &p->qos->slvl[in_port];
}

int physp_set_vlarb(struct physp *p, unsigned block, const struct vlarb_block *b)
{
	if (!physp_is_valid(p))
		return -EINVAL;
	if (block < 1 || block > ARRAY_LEN(p->qos->vlarb))
		return -ERANGE;
	qos_of(p)->vlarb[block - 1] = *b;
	p->qos->vlarb_set |= (uint8_t)(1U << (block - 1));
	return 0;
}

const struct vlarb_block *physp_get_vlarb(const struct physp *p, unsigned block)
{
	if (!p->qos || block < 1 || block > ARRAY_LEN(p->qos->vlarb) ||
	    !(p->qos->vlarb_set & (1U << (block - 1))))
		return NULL;
	return &p->qos->vlarb[block - 1];
}
