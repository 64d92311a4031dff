/* SPDX-License-Identifier: BSD-2-Clause */
#include "port_watch.h"

#include <errno.h>

static const char *const reasons[] = {
	[REASON_OVERRIDE] = "override",
	[REASON_LINK] = "link",
	[REASON_REMOTE] = "remote",
	[REASON_COUNTER] = "counter",
	[REASON_FLAP] = "flap",
	[REASON_WIDTH] = "width",
	[REASON_SPEED] = "speed",
	[REASON_BASELINE] = "baseline",
	[REASON_PCIE] = "pcie",
	[REASON_NOTICE] = "notice",
	[REASON_STATE_UNKNOWN] = "state_unknown",
	[REASON_NOT_EXPECTED] = "not_expected",
	[REASON_SETTLING] = "settling",
};
const struct enum_names reason_names = {reasons, (int)ARRAY_LEN(reasons)};

void port_watch_params_default(struct port_watch_params *p)
{
	counter_limits_default(&p->limits);
	flap_params_default(&p->flap);
	p->stable = 30 * NSEC_PER_SEC;
	p->notice_window = 10 * 60 * NSEC_PER_SEC;
}

void port_watch_done(struct port_watch *w)
{
	w->counters = counters_free(w->counters);
}

/* Data details of traps 129..131 (IBA 13.4.8.2): 16 bits reserved, LIDADDR, PORTNO. */
int port_watch_notice(struct port_watch *w, const struct notice *n, uint16_t own_lid,
		      uint8_t own_port, struct mono now)
{
	uint16_t lid = be16_get(&n->details[2]);
	uint8_t port = n->details[4];
	int i = n->trap - 129;

	if (!n->is_generic || i < 0 || i >= (int)ARRAY_LEN(w->notices))
		return -EINVAL;
	if (!own_lid || n->issuer_lid != own_lid || lid != own_lid || port != own_port)
		return -EPERM;
	if (!w->notices[i].n)
		w->notices[i].first = now;
	w->notices[i].n++;
	w->notices[i].last = now;
	return 0;
}

const struct port_transition *port_watch_transition(const struct port_watch *w, int i)
{
	if (i < 0 || i >= w->n_history || i < w->n_history - PORT_HISTORY_MAX)
		return NULL;
	return &w->history[i % PORT_HISTORY_MAX];
}
