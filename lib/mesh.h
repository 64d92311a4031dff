/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mesh.h - which rail of this host probes which rail of a peer, from what both have: a
 * rail is a label with one or more addresses. Pure.
 */
#pragma once

#include "addr.h"

/* Mesh= of the config. */
enum mesh_mode { MESH_RAIL, MESH_FULL, MESH_NONE };
extern const struct enum_names mesh_modes; /* "rail" "full" "none" */

struct mesh_addr {
	const char *label; /* of its rail; several addresses may have the same */
	const struct addr *addr;
	bool unfit; /* told: not to be probed, see daemon/rails.c */
};

/* A probe that there is anyway: by the config. */
struct mesh_probe {
	struct addr own; /* family 0: not known */
	struct addr remote;
};

struct mesh_pair {
	int own, told; /* of the lists */
};
#define MESH_PAIRS_MAX 64 /* of one peer */

/*
 * rail: each told rail from the own rail of the same label, or, where no label of the one
 * host is one of the other's, from the own rail of the same place (labels in natural
 * order). full: each told rail from each own one. A pair of rails is one probe: by the
 * first two addresses of one family, IPv4 before IPv6; none where there is one anyway (for
 * rail: to that told rail, from wherever). Returns how many, at most MESH_PAIRS_MAX.
 */
int mesh_pairs(enum mesh_mode mode, const struct mesh_addr *own, int n_own,
	       const struct mesh_addr *told, int n_told, const struct mesh_probe *probes,
	       int n_probes, struct mesh_pair ret[MESH_PAIRS_MAX]);
