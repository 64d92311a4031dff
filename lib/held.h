/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * held.h - which connections another fault explains, so that one cause is one line and
 * not as many as there are connections. A table of rows {own verdict, condition,
 * holder}; the first that matches wins. The verdict that a connection has by itself
 * (verdict_decide() without held) goes in; who holds it comes out:
 *
 *   a port    that is down and counted bad itself. A plain interface, a device that is
 *             gone, a port that nobody expects to be up hold nothing: they are no
 * object of their own that is told, so the connection tells of them. a peer    that is
 * down, stopped or frozen as a whole: one of its connections carries the verdict, the
 * others are held. a rail    whose hosts are silent, several of them: one connection
 * carries the verdict network, the others are held.
 *
 * Who carries stays the carrier while its own verdict lasts. Pure.
 */
#pragma once

#include "conn.h"
#include "verdict.h"

enum holder { HOLDER_NONE, HOLDER_PORT, HOLDER_PEER, HOLDER_RAIL, HOLDER__MAX };

struct held_facts {
	enum verdict own;
	int row;	/* of the verdict's table */
	bool port_bad;	/* the connection's port is down, and its health is bad */
	bool peer_told; /* another connection of this host to the peer carries @own */
	bool rail_told; /* another connection of the rail carries it */
};
enum holder held_decide(const struct held_facts *f);

#define HELD_NAME_MAX (CTL_NAME_MAX + 8)
/* "mlx5_3/1", "gpu0033", "rail 3". "" for HOLDER_NONE. */
const char *held_name(enum holder h, const char *port, const char *peer,
		      const char *rail, char buf[HELD_NAME_MAX]);
/* "local-port mlx5_3/1": the verdict and whose it is. */
void held_why(enum verdict own, const char *name, char *buf, size_t size);

/* One row as Markdown for the documentation; false past the end. */
bool held_row_text(int row, char *buf, size_t size);
