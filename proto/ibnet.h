/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ibnet.h - a subnet as the text that ibnetdiscover(8) prints and that ibsim and
 * infiniband-diags read (ibnetdiscover(8), "Topology file format"). Pure.
 */
#pragma once

#include "subnet.h"

/* The whole file, node by node, in the order ibnetdiscover uses: switches, then CAs, then
 * routers, of each kind the one first that it would discover last from @from: a port of a
 * CA, router or switch; NULL: the first node's own. @s and @from: borrowed, and not to be
 * changed while the writer lives. @title: when it was made, as ctime(3) has it; what
 * stands behind "generated on"; NULL: no such line. XDR, for which ibnetdiscover has no
 * name, is "XDR". */
struct ibnet_writer; /* opaque */
struct ibnet_writer *ibnet_writer_new(const struct subnet *s, const struct physp *from,
				      const char *title);
struct ibnet_writer *ibnet_writer_free(struct ibnet_writer *w); /* NULL-safe */
/* The text of the next node, owned by the writer until the next call; NULL: the end. The
 * first piece is the head of the file. */
const char *ibnet_next(struct ibnet_writer *w);

/* Read such a file, ibnetdiscover's own or ibsim's minimal form (no LIDs, no widths: the
 * facts are then not known, and GUIDs are those that ibsim gives out), into an empty
 * subnet. 0; -EINVAL with "line: what" in @why, and half of it may be in @ret. The links
 * of both sides must agree. Lines over 1024 characters and more than IBNET_NODES_MAX
 * nodes are refused. What is read again is written as it was (but for blanks, comments
 * and what the minimal form leaves out), if it was in the order of discovery. The node
 * that the file says it was made from is the first of the subnet; else the last in the
 * file, which is where ibnetdiscover has it. */
#define IBNET_NODES_MAX 65536
int ibnet_read(const char *text, size_t len, struct subnet *ret, char *why, size_t why_size);
