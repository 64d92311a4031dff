/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * topo_diff.h - two subnets compared: what a saved topology has that is missing now, what
 * is new, which cables moved, what is slower. Pure.
 */
#pragma once

#include "subnet.h"

enum topo_change { TOPO_NODE_MISSING, TOPO_NODE_NEW, TOPO_NODE_RENAMED, TOPO_LINK_MISSING,
		   TOPO_LINK_NEW, TOPO_CABLE_MOVED, TOPO_SLOWER, TOPO_FASTER, TOPO__MAX };
extern const struct enum_names topo_change_names; /* "node_missing" ... "cable_moved" */
struct topo_diff_line {
	enum topo_change change;
	char text[320]; /* "cable moved: gpu1/1 from leaf1/3 to leaf2/7" */
};
struct topo_diff {
	int n;
	struct topo_diff_line *lines; /* owned */
};
/* Nodes by GUID. A node that is missing has its links counted with it, not each. Facts
 * that one side does not know (a minimal file has no speeds) are not compared. In the
 * order of names, so that the output is stable. */
void topo_compare(const struct subnet *old, const struct subnet *now, struct topo_diff *ret);
void topo_diff_done(struct topo_diff *d);
