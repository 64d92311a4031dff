/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ibnet_internal.h - a topology file between its lines (ibnet_read.c) and the subnet that
 * they make (ibnet_build.c).
 */
#pragma once

#include "ibnet.h"

#define IBNET_NAME_MAX 63

struct ibnet_port {
	int line;
	uint8_t num, remote_num, lmc;
	uint16_t lid;
	uint64_t guid; /* 0: node's and number */
	char remote[IBNET_NAME_MAX + 1];
	uint8_t width; /* PortInfo's codes, 0 unknown */
	uint8_t speed, ext, ext2;
	struct physp *physp; /* when made */
};
struct ibnet_node {
	int line;
	char id[IBNET_NAME_MAX + 1], desc[IBNET_NAME_MAX + 1];
	struct node_info info;
	uint16_t lid;
	uint8_t lmc;
	bool port0_known, enhanced;
	size_t first, n; /* its ports */
};
struct ibnet_reader {
	int line;
	char *why;
	size_t why_size;
	struct ibnet_node *nodes; /* owned */
	size_t n_nodes, nodes_size;
	struct ibnet_port *ports; /* owned */
	size_t n_ports, ports_size;
	const struct ibnet_node **by_id; /* owned */
	uint64_t from_guid, from_port_guid;

	/* what the lines above a node said of it */
	bool ids_given;
	struct node_info given;
	uint64_t next_guid[4]; /* by type */
};

/* "LINE: TEXT" for the caller of ibnet_read(); returns -EINVAL. */
int ibnet_bad(struct ibnet_reader *r, int line, const char *fmt, ...) PRINTF_LIKE(3, 4);
struct ibnet_port *ibnet_find_port(const struct ibnet_reader *r,
				   const struct ibnet_node *n, uint8_t num);
/* All lines were read: nodes and links into @s. */
int ibnet_build(struct ibnet_reader *r, struct subnet *s);
