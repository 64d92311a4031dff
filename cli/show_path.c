/* SPDX-License-Identifier: BSD-2-Clause */
/* The path of a connection, for fabctl connection KEY. */
#include "cli.h"
#include "fields.h"
#include "units.h"

/* Number or "-" of a member, in one of a few buffers. */
static const char *num(const json_t *o, const char *key)
{
	static char ring[8][24];
	static unsigned at;

	return get_number(o, key, ring[at++ % 8]);
}

/* What is known of where the packets go; lines of which nothing is known are left out. */
void connection_put_path(const struct cli *c, const json_t *x)
{
	const json_t *p = get_object(x, "path");
	const struct layout *l = &c->layout;
	const char *state = get_text(p, "neighbour_state");

	if (!p)
		return;
	if (get_text(p, "netdev"))
		block_line(l, "route", "dev %s mtu %s%s%s, neighbour %s%s%s",
			   get_shown(p, "netdev"), num(p, "netdev_mtu"),
			   get_text(p, "gateway") ? ", via " : "",
			   get_text(p, "gateway") ? get_text(p, "gateway") : "",
			   state ? state : "-", state ? " " : "",
			   state ? unit_age(get_sec(p, "neighbour_age_sec")) : "");
	if (get_text(p, "source_gid"))
		block_line(l, "gid", "%s (%s, index %s) > %s", get_shown(p, "source_gid"),
			   unit_word(get_text(p, "gid_type")), num(p, "source_gid_index"),
			   get_shown(p, "destination_gid"));
	if (json_is_integer(json_object_get(p, "source_lid")))
		block_line(l, "lid", "%s > %s", num(p, "source_lid"),
			   num(p, "destination_lid"));
	block_line(l, "class",
		   "traffic class %s, service level %s, p_key %s; flow label %s, source "
		   "port %s, hop limit %s",
		   num(p, "traffic_class"), num(p, "service_level"), get_shown(p, "pkey"),
		   num(p, "flow_label"), num(p, "source_port"), num(p, "hop_limit"));
	if (json_is_integer(json_object_get(p, "qpn")))
		block_line(l, "queue pairs", "%s > %s, rate %s Mb/s", num(p, "qpn"),
			   num(p, "remote_qpn"), num(p, "rate_mbps"));
	if (json_is_integer(json_object_get(p, "peer_mtu")))
		block_line(l, "peer's side", "path mtu %s, p_key %s, service level %s",
			   num(p, "peer_mtu"), get_shown(p, "peer_pkey"),
			   num(p, "peer_service_level"));
	if (get_text(p, "mismatch"))
		block_line(l, "mismatch", "%s", get_text(p, "mismatch"));
}
