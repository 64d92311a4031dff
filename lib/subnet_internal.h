/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * subnet_internal.h - what the files of a subnet share: subnet.c (nodes), ib_port.c
 * (logical ports and LIDs) and subnet_count.c (what follows from them). Nobody else
 * includes it.
 */
#pragma once

/* All keys are GUIDs. */
#define HASH_FUNCTION(key, len, hash) ((hash) = guid_hash(key))
#define uthash_fatal(msg)	      abort()
#include <stdlib.h>
#include <uthash.h>

#include "subnet.h"

static inline unsigned guid_hash(const void *key)
{
	uint64_t guid;

	memcpy(&guid, key, sizeof(guid));
	return (unsigned)mix64(guid);
}

struct node_entry {
	struct ib_node node; /* first: an ib_node of a subnet is a node_entry */
	uint64_t guid;
	struct node_entry *prev;
	UT_hash_handle hh;
};

struct port_entry {
	struct ib_port port;  /* first, likewise */
	uint16_t first, last; /* LIDs it claims, 0 = none */
	bool contested;	      /* another has one of them: it is in subnet.contested */
	UT_hash_handle hh;
};

struct subnet {
	struct node_entry *first, *last; /* in the order of discovery */
	struct node_entry *by_guid;
	struct port_entry *ports;
	uint32_t serials;	/* the last that was given out */
	uint32_t *free_serials; /* owned; of dropped nodes, given out again */
	uint32_t n_free, free_size;
	struct ib_port **lids; /* owned, lids_size entries, by LID */
	uint32_t lids_size;
	struct ib_port *contested; /* in the order of their claims */
};

static inline struct node_entry *node_entry(struct ib_node *n)
{
	return (struct node_entry *)n;
}
static inline struct port_entry *port_entry(struct ib_port *p)
{
	return (struct port_entry *)p;
}

/* The logical port of this physical one goes, if it has one. */
void subnet_physp_gone(struct subnet *s, const struct physp *p);
