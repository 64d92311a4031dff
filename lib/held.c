/* SPDX-License-Identifier: BSD-2-Clause */
#include "held.h"

#include <stdio.h>

static bool by_port(const struct held_facts *f)
{
	return f->port_bad;
}

static bool by_peer(const struct held_facts *f)
{
	return f->peer_told;
}

/* Only for the silence of several hosts: a path that loses packets is its own fault. */
static bool by_rail(const struct held_facts *f)
{
	return f->rail_told && verdict_row_is_rail(f->row);
}

/* clang-format off */
static const struct row {
	enum verdict own;
	bool (*when)(const struct held_facts *f);
	enum holder holder;
	const char *text;
} rows[] = {
	{ VERDICT_LOCAL_PORT, by_port, HOLDER_PORT, "its port is down and counted bad" },
	{ VERDICT_PEER_STOPPED, by_peer, HOLDER_PEER, "another connection to the peer carries it" },
	{ VERDICT_REMOTE_STALL, by_peer, HOLDER_PEER, "another connection to the peer carries it" },
	{ VERDICT_PEER_DOWN, by_peer, HOLDER_PEER, "another connection to the peer carries it" },
	{ VERDICT_NETWORK, by_rail, HOLDER_RAIL, "several hosts of the rail are silent, another connection carries it" },
};

static const char *const holders[] = {
	[HOLDER_NONE] = "none", [HOLDER_PORT] = "the port", [HOLDER_PEER] = "the peer",
	[HOLDER_RAIL] = "the rail",
};
_Static_assert(ARRAY_LEN(holders) == HOLDER__MAX, "each holder has a name");
/* clang-format on */

enum holder held_decide(const struct held_facts *f)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (rows[i].own == f->own && rows[i].when(f))
			return rows[i].holder;
	return HOLDER_NONE;
}

const char *held_name(enum holder h, const char *port, const char *peer,
		      const char *rail, char buf[HELD_NAME_MAX])
{
	buf[0] = '\0';
	switch (h) {
	case HOLDER_PORT:
		(void)str_copy(buf, HELD_NAME_MAX, port);
		break;
	case HOLDER_PEER:
		(void)str_copy(buf, HELD_NAME_MAX, peer);
		break;
	case HOLDER_RAIL:
		(void)snprintf(buf, HELD_NAME_MAX, "rail %s", rail);
		break;
	case HOLDER_NONE:
	case HOLDER__MAX:
		break;
	}
	return buf;
}

void held_why(enum verdict own, const char *name, char *buf, size_t size)
{
	buf[0] = '\0';
	str_append(buf, size, "%s %s", enum_text(&verdict_names, (int)own), name);
}

bool held_row_text(int row, char *buf, size_t size)
{
	if (row < 0 || (size_t)row >= ARRAY_LEN(rows) || !size)
		return false;
	buf[0] = '\0';
	str_append(buf, size, "| %s | %s | %s |",
		   enum_text(&verdict_names, (int)rows[row].own), rows[row].text,
		   holders[rows[row].holder]);
	return true;
}
