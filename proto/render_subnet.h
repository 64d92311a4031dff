/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * render_subnet.h - the fabric as JSON, in the shapes of io.fabd.varlink, and back: what
 * fabctl got becomes a subnet again, so that save, diff, graph and route are the same
 * pure code on both sides. Pure.
 */
#pragma once

#include "render.h"
#include "subnet.h"
#include "sweep.h"

json_t *render_fabric_end(const struct physp *p); /* FabricEnd */
json_t *render_fabric_physp(const struct physp *p); /* FabricPort */
/* What a port of the fabric is, by itself and its link; the reason, or "", in @why. */
enum health render_fabric_health(const struct physp *p, char why[128]);
/* []SlVl by input port, VlArb; NULL if nothing was read. */
json_t *render_sl2vl(const struct physp *p);
json_t *render_vlarb(const struct physp *p);
/* FabricNode with its valid ports. @level: of subnet_levels(), LEVEL_NONE = null. */
json_t *render_fabric_node(const struct ib_node *n, uint8_t level,
			   const struct render_time *t);
/* FabricLink of the port, once for both ends; NULL for the end that is not the one that
 * lists it (higher GUID, or port), or for no link. */
json_t *render_fabric_link(const struct physp *p);
json_t *render_sweep_error(const struct sweep_error *e, const struct render_time *t);
json_t *render_sweep(const struct sweep_result *r, const struct subnet_counts *c,
		     int errors, size_t bytes, const struct render_time *t); /* FabricSweep */
/* Tables and counters of one port: FabricPortDetail. NULL parts are null. */
json_t *render_fabric_port(const struct physp *p, const struct counter_reading *r);

/* The inverse of render_fabric_node(), node by node; links when both ends are there (call
 * subnet_json_link() at the end). 0; -EBADMSG with what in @why. */
int subnet_json_node(struct subnet *s, const json_t *node, char *why, size_t why_size);
void subnet_json_link(struct subnet *s, const json_t *nodes);
