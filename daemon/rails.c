/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How many hosts of each rail are silent: what tells a dead host from a dead network;
 * and which of a rail's connections tells of it while the others are held.
 */
#include <stdlib.h>

#include "manager.h"

#define RAILS_AGE_NS (100 * NSEC_PER_MSEC)

/* Its fabd has answered all that it was asked since the loss: a path that carries no
 * probes is no silent host. */
static bool answered(const struct conn *c)
{
	return !mono_is_set(c->ctl_unanswered_since) && c->last_ctl_rx.ns > c->lost_at.ns;
}

static enum rail_word conn_rail_word(const struct conn_entry *e)
{
	if (e->c->connected && !e->c->late)
		return RAIL_ANSWERS;
	switch ((enum verdict)e->own_verdict) {
	case VERDICT_UNKNOWN: /* nothing was asked yet (the start queue), or is answered */
		return mono_is_set(e->c->ctl_unanswered_since) ? RAIL_SILENT : RAIL_NO_WORD;
	case VERDICT_NETWORK:
		return answered(e->c) ? RAIL_ANSWERS : RAIL_SILENT;
	case VERDICT_LOCAL_PORT:
	case VERDICT_LOCAL_STALL:
	case VERDICT_DEVICE_STUCK:
	case VERDICT_NO_ROUTE:
	case VERDICT_NO_SM:
	case VERDICT_PEER_STOPPED:
		return RAIL_NO_WORD;
	case VERDICT_REMOTE_STALL:
		return e->by_neighbour ? RAIL_SILENT : RAIL_ANSWERS;
	case VERDICT_REMOTE_PORT:
	case VERDICT_AUTH_FAILED:
	case VERDICT_INCOMPATIBLE:
	case VERDICT_REFUSED:
	case VERDICT_RDMA_BROKEN:
	case VERDICT_CONTROL_BLOCKED:
		return RAIL_ANSWERS;
	default:
		return RAIL_SILENT;
	}
}

static enum rail_word rail_word_of(const struct peer *p, int address)
{
	enum rail_word most = RAIL_NO_WORD;

	PEER_EACH_TX(p, e)
	if (e->addr_index == address)
		most = MAX(most, conn_rail_word(e));
	return most;
}

static struct rail_count *count_get(struct rail_count **rails, const char *label)
{
	struct rail_count *r;

	HASH_FIND_STR(*rails, label, r);
	if (r)
		return r;
	r = xcalloc(1, sizeof(*r));
	(void)str_copy(r->rail, sizeof(r->rail), label);
	HASH_ADD_STR(*rails, rail, r);
	return r;
}

/* Of those that the network is blamed for, the one that is not held. */
static uint64_t teller_of(const struct peer *p, int address)
{
	PEER_EACH_TX(p, e)
	if (e->addr_index == address && e->rail_wide && e->holder == HOLDER_NONE)
		return e->serial;
	return 0;
}

static struct rail_count *count_rails(struct manager *m)
{
	struct rail_count *rails = NULL, *r;
	struct peer *p, *next;
	char label[CTL_NAME_MAX];

	HASH_ITER (hh, m->peers, p, next)
		PEER_EACH_ADDR(p, a)
		{
			enum rail_word word = rail_word_of(p, a->place);

			a->counted = (uint8_t)word;
			if (word == RAIL_NO_WORD)
				continue;
			r = count_get(&rails, peer_rail(p, a->place, label));
			r->peers++;
			r->down += word == RAIL_SILENT;
			if (!r->teller)
				r->teller = teller_of(p, a->place);
		}
	return rails;
}

void rails_free(struct manager *m)
{
	struct rail_count *r, *tmp;

	HASH_ITER (hh, m->rails, r, tmp) {
		HASH_DEL(m->rails, r);
		free(r);
	}
}

/* Counting all peers for each verdict would make a storm of them quadratic. */
struct rail_count *rail_now(struct manager *m, const char *rail, struct mono now)
{
	struct rail_count *r;

	if (!mono_is_set(m->rails_at) || mono_sub(now, m->rails_at) > RAILS_AGE_NS) {
		rails_free(m);
		m->rails = count_rails(m);
		m->rails_at = now;
	}
	HASH_FIND_STR(m->rails, rail, r);
	return r;
}
