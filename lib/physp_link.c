/* SPDX-License-Identifier: BSD-2-Clause */
/* The link of a physical port: its two ends, and what both of them make of it. */
#include "physp.h"

/* A value of LinkSpeedExtEnabled, not a set of speeds (IBA 14.2.5.6). */
#define EXT_SPEEDS_DISABLED 30

void physp_unlink(struct physp *a)
{
	struct physp *b = a->remote;

	a->remote = NULL;
	if (b && b->remote == a)
		b->remote = NULL;
}

void physp_link(struct physp *a, struct physp *b)
{
	physp_unlink(a);
	physp_unlink(b);
	a->remote = b;
	b->remote = a;
}

bool physp_link_exists(const struct physp *a, const struct physp *b)
{
	return physp_is_valid(a) && physp_is_valid(b) && a->remote == b &&
	       b->remote == a;
}

struct physp *physp_remote(const struct physp *p)
{
	return p->remote;
}

bool physp_has_link(const struct physp *p)
{
	return physp_is_valid(p) && p->remote;
}

bool physp_link_healthy(const struct physp *p)
{
	return p->healthy && (!p->remote || p->remote->healthy);
}

static uint8_t clamp_code(uint8_t code)
{
	return (uint8_t)MIN(MAX(code, 1), 5);
}

/* A far end whose PortInfo nobody has seen yet is as good as unknown: its caps would
 * read 0 and make the smallest link. */
static const struct port_info *far_info(const struct physp *p)
{
	return p->remote && p->remote->info_full ? &p->remote->info : NULL;
}

uint8_t physp_link_mtu(const struct physp *p)
{
	const struct port_info *far = far_info(p);

	return clamp_code(far ? MIN(p->info.mtu_cap, far->mtu_cap)
			      : p->info.neighbor_mtu);
}

uint8_t physp_link_vls(const struct physp *p, uint8_t max_vls)
{
	const struct port_info *far = far_info(p);
	uint8_t vls =
		clamp_code(far ? MIN(p->info.vl_cap, far->vl_cap) : p->info.op_vls);

	return max_vls ? MIN(vls, max_vls) : vls;
}

/* ---- speeds and widths ---- */

/* The CapabilityMask of a switch is in its port 0 (IBA 14.2.5.6). */
static bool has_extended_speeds(const struct physp *p)
{
	const struct ib_node *n = p->node;

	if (n && n->info.node_type == NODE_SWITCH && p->num != 0) {
		if (!n->slots || !n->slots[0].info_full)
			return true;
		p = &n->slots[0];
	}
	return p->info.cap_mask & IB_CAP_EXTENDED_SPEEDS;
}

enum link_speed physp_speed(const struct physp *p)
{
	const struct port_info *pi = &p->info;

	if (pi->state == IB_DOWN)
		return SPEED_UNKNOWN;
	if (!has_extended_speeds(p))
		return link_speed_from_portinfo(pi->speed_active, 0, 0, false);
	return link_speed_from_portinfo(pi->speed_active, pi->ext_active,
					pi->ext_active2, false);
}

uint32_t physp_speeds_supported(const struct physp *p)
{
	const struct port_info *pi = &p->info;
	bool ext = has_extended_speeds(p);

	return link_speeds_from_portinfo(pi->speed_supported,
					 ext ? pi->ext_supported : 0,
					 ext ? pi->ext_supported2 : 0);
}

uint32_t physp_speeds_enabled(const struct physp *p)
{
	const struct port_info *pi = &p->info;
	bool ext = has_extended_speeds(p);
	uint8_t ext_mask = pi->ext_enabled == EXT_SPEEDS_DISABLED ? 0 : pi->ext_enabled;

	return link_speeds_from_portinfo(pi->speed_supported & pi->speed_enabled,
					 ext ? pi->ext_supported & ext_mask : 0,
					 ext ? pi->ext_supported2 & pi->ext_enabled2
					     : 0);
}

uint32_t physp_widths_enabled(const struct physp *p)
{
	return p->info.width_supported & p->info.width_enabled;
}

static void why_join(char why[128], const char *what, const char *is, const char *best)
{
	str_append(why, 128, "%s%s %s of %s", why[0] ? ", " : "", what, is, best);
}

static void judge_width(const struct physp *p, uint32_t best, char why[128])
{
	unsigned active = link_width_lanes(p->info.width_active);
	char is[24], best_text[24];

	if (active && active < link_width_lanes(best))
		why_join(why, "width", link_width_text(p->info.width_active, is),
			 link_width_text(best, best_text));
}

static void judge_speed(const struct physp *p, enum link_speed best, char why[128])
{
	enum link_speed active = physp_speed(p);

	if (active != SPEED_UNKNOWN && active < best)
		why_join(why, "speed", link_speed_name(active), link_speed_name(best));
}

bool physp_is_degraded(const struct physp *p, char why[128])
{
	const struct physp *far = far_info(p) ? p->remote : p;

	why[0] = '\0';
	/* Port 0 is the switch's own, with no link. */
	if (!p->num || !p->info_full || p->info.state == IB_DOWN)
		return false;
	judge_width(
		p,
		link_width_widest(physp_widths_enabled(p) & physp_widths_enabled(far)),
		why);
	judge_speed(
		p,
		link_speed_fastest(physp_speeds_enabled(p) & physp_speeds_enabled(far)),
		why);
	return why[0];
}
