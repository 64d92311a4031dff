/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * route.h - directed routes over the known links of a subnet: shortest, and alternate.
 * A directed route starts at a port of this host, passes switches only (never a CA or
 * router, IBA 14.2.2), and is at most IB_HOPS_MAX hops long. Pure.
 */
#pragma once

#include "subnet.h"

struct dr_path {
	uint8_t hops;
	uint8_t port[IB_PATH_LEN]; /* [0] = 0, then the egress ports */
	uint8_t in[IB_PATH_LEN];   /* [0] = 0, then the ingress port at the end of each hop */
};

/* Shortest route from @from (a port of a CA or router, or any port of a switch: then
 * from that switch) to the node that @to is on, arriving at @to itself if that is a CA
 * port. Links that are down or unhealthy (physp_link_healthy) are not used unless
 * @any_health. 0; -ENETUNREACH; -ERANGE longer than IB_HOPS_MAX. Of equally short ones
 * the one with the lowest egress ports. */
int route_shortest(const struct subnet *s, const struct physp *from, const struct physp *to,
		   bool any_health, struct dr_path *ret);

/* Replace the route to @to by another that uses none of the links of the present one
 * (@to->path) but those where there is no choice, the first from and the last to a port of
 * a CA or router: the intended meaning of OpenSM's
 * osm_physp_replace_dr_path_with_alternate_dr_path. Shortest of those, over links that are
 * neither down nor unhealthy. Writes it to @to (and, of a switch, to all its ports) and to
 * @ret (may be NULL). 0; -ENETUNREACH: there is none, and nothing is changed; -EINVAL:
 * @to's present route does not lead to it over the known links. */
int route_alternate(struct subnet *s, const struct physp *from, struct physp *to,
		    struct dr_path *ret);

/* The same, but asking only: from any port to any port, avoiding the links of @avoid, a
 * route that leads from @from to @to (else -EINVAL). */
int route_avoiding(const struct subnet *s, const struct physp *from, const struct physp *to,
		   const struct dr_path *avoid, struct dr_path *ret);

/* Where a route leads from @from: the physical port it arrives at (@from for 0 hops), NULL
 * if a link of it is not known or it would pass a CA or router. */
struct physp *route_follow(const struct physp *from, const struct dr_path *path);
/* "0,1,17,3"; 256 bytes are enough for any. Returns @buf. */
const char *route_text(const uint8_t *path, uint8_t hops, char *buf, size_t size);
