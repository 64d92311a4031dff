/* SPDX-License-Identifier: BSD-2-Clause */
#include "explain.h"

#define LARGE_LOST 3 /* in a row, while small ones pass: that is their size */

/* clang-format off */
static const char *const step_names[] = {
	[STEP_NAME] = "name",
	[STEP_ADDRESSES] = "addresses",
	[STEP_ROUTE] = "route",
	[STEP_SOURCE] = "source",
	[STEP_LOCAL] = "local",
	[STEP_NEIGHBOUR] = "neighbour",
	[STEP_ARP] = "arp",
	[STEP_MTU] = "mtu",
	[STEP_PKEY] = "pkey",
	[STEP_CLASS] = "class",
	[STEP_SA_PATH] = "sa_path",
	[STEP_CONTROL] = "control",
	[STEP_RESOLVE] = "resolve",
	[STEP_CONNECT] = "connect",
	[STEP_HEARTBEAT] = "heartbeat",
};
const struct enum_names explain_step_names = {step_names, (int)ARRAY_LEN(step_names)};

static const char *const mark_names[] = {
	[MARK_OK] = "ok",
	[MARK_BAD] = "bad",
	[MARK_SKIPPED] = "skipped",
	[MARK_WARN] = "warn",
};
const struct enum_names explain_mark_names = {mark_names, (int)ARRAY_LEN(mark_names)};

static const char *const place_names[] = {
	[PLACE_NOWHERE] = "nowhere",
	[PLACE_LOCAL] = "local",
	[PLACE_REMOTE] = "remote",
	[PLACE_NETWORK] = "network",
};
const struct enum_names fault_place_names = {place_names, (int)ARRAY_LEN(place_names)};
/* clang-format on */
_Static_assert(ARRAY_LEN(step_names) == STEP__MAX, "each step has a name");

/* ---- evidence by which the wrong step is told ---- */

typedef bool pred_fn(const struct explain_facts *f);

static bool unresolved(const struct explain_facts *f)
{
	return !f->has_connection && f->resolve_error[0];
}

static bool addressless(const struct explain_facts *f)
{
	return !f->has_connection;
}

static bool source_wrong(const struct explain_facts *f)
{
	return f->source_missing;
}

static bool no_owner(const struct explain_facts *f)
{
	return f->source_missing || !f->v.port_known || f->v.error == EPERR_NO_ADDRESS;
}

static bool no_path(const struct explain_facts *f)
{
	return f->v.error == EPERR_NO_PATH;
}

static bool worker_died(const struct explain_facts *f)
{
	return f->v.error == EPERR_WORKER_DIED;
}

static bool too_many(const struct explain_facts *f)
{
	return f->v.error == EPERR_LIMIT;
}

static bool cm_refused(const struct explain_facts *f)
{
	return f->v.error == EPERR_CM_REFUSED && !f->v.unknown_to_peer &&
	       f->v.refusal == REFUSE_NONE;
}

static bool impossible_here(const struct explain_facts *f)
{
	return f->v.error == EPERR_NOT_SUPPORTED && f->v.refusal == REFUSE_NONE;
}

static bool size_matters(const struct explain_facts *f)
{
	return (f->v.large_size && f->v.large_lost >= LARGE_LOST) ||
	       (f->v.mtu_mismatch && (f->v.ctl_answers || f->v.connected));
}

static bool other_partition(const struct explain_facts *f)
{
	return f->v.is_rdma && f->v.pkey_mismatch;
}

static bool no_neighbour(const struct explain_facts *f)
{
	bool silent = !f->v.connected && !f->v.ctl_answers;

	return (silent && (f->neighbour == NEIGHBOUR_FAILED ||
			   f->neighbour == NEIGHBOUR_INCOMPLETE)) ||
	       (!f->v.connected && f->v.error == EPERR_NO_NEIGHBOUR && !f->v.ctl_answers);
}

static bool all_udp_silent(const struct explain_facts *f)
{
	return !f->v.connected && !f->v.is_rdma && f->v.ever_connected;
}

static bool no_word(const struct explain_facts *f)
{
	return !f->v.connected && !f->v.ctl_answers;
}

static bool not_resolved(const struct explain_facts *f)
{
	return !f->v.connected && f->v.is_rdma && f->v.error != EPERR_NONE &&
	       (f->v.error_stage == STAGE_RESOLVE_ADDR ||
		f->v.error_stage == STAGE_RESOLVE_ROUTE);
}

/* Many hosts do not break at once; what they share does. */
static bool port_suspect(const struct explain_facts *f)
{
	return f->port_hosts >= 2 && f->port_hosts_broken == f->port_hosts &&
	       f->v.told_device != TOLD_DEVICE_STUCK;
}

static bool not_connected(const struct explain_facts *f)
{
	return !f->v.connected;
}

/* ---- which step is the wrong one, and whose it is ---- */

#define HERE "Act here."
#define THERE "Act there."
#define BETWEEN "Act on the network between."
#define NO_STEP STEP__MAX

/* How far a connection comes whose verdict does not say where it ends. */
#define AS_FAR_AS_IT_COMES(verdict, place, act) \
	{ verdict, no_neighbour, "the neighbour does not answer", STEP_NEIGHBOUR, place, act }, \
	{ verdict, no_word, "no control packet comes", STEP_CONTROL, place, act }, \
	{ verdict, not_resolved, "rdma_cm does not resolve it", STEP_RESOLVE, place, act }, \
	{ verdict, not_connected, "not connected", STEP_CONNECT, place, act }, \
	{ verdict, NULL, "", STEP_HEARTBEAT, place, act }

/* clang-format off */
static const struct wrong {
	enum verdict verdict;
	pred_fn *when;
	const char *when_text;
	enum explain_step step;
	enum fault_place place;
	const char *act;
} wrongs[] = {
	{ VERDICT_UNKNOWN, unresolved, "the name has no address", STEP_NAME, PLACE_LOCAL, "Wait: the host has just come up." },
	{ VERDICT_UNKNOWN, NULL, "", NO_STEP, PLACE_NOWHERE, "" },
	{ VERDICT_OK, NULL, "", NO_STEP, PLACE_NOWHERE, "" },
	{ VERDICT_DEGRADED, size_matters, "large messages are lost, or the MTUs differ", STEP_MTU, PLACE_NETWORK, BETWEEN },
	{ VERDICT_DEGRADED, other_partition, "the P_Keys do not fit", STEP_PKEY, PLACE_NETWORK, "Act at the subnet manager." },
	{ VERDICT_DEGRADED, NULL, "", STEP_HEARTBEAT, PLACE_NETWORK, BETWEEN },
	/* of these two the own verdict is explained */
	{ VERDICT_SILENCED, NULL, "", NO_STEP, PLACE_NOWHERE, "" },
	{ VERDICT_HELD, NULL, "", NO_STEP, PLACE_NOWHERE, "" },
	{ VERDICT_LOCAL_PORT, source_wrong, "the source address is gone", STEP_SOURCE, PLACE_LOCAL, HERE },
	{ VERDICT_LOCAL_PORT, NULL, "", STEP_LOCAL, PLACE_LOCAL, HERE },
	{ VERDICT_LOCAL_STALL, worker_died, "the device's worker died", STEP_LOCAL, PLACE_LOCAL, HERE },
	{ VERDICT_LOCAL_STALL, NULL, "", STEP_HEARTBEAT, PLACE_LOCAL, HERE },
	{ VERDICT_DEVICE_STUCK, NULL, "", STEP_LOCAL, PLACE_LOCAL, HERE },
	{ VERDICT_NO_ROUTE, unresolved, "the name has no address", STEP_NAME, PLACE_LOCAL, HERE },
	{ VERDICT_NO_ROUTE, addressless, "no address is known", STEP_ADDRESSES, PLACE_LOCAL, HERE },
	{ VERDICT_NO_ROUTE, no_owner, "no owner of the source address", STEP_SOURCE, PLACE_LOCAL, HERE },
	{ VERDICT_NO_ROUTE, no_path, "the subnet manager knows no path", STEP_SA_PATH, PLACE_NETWORK, "Act at the subnet manager." },
	{ VERDICT_NO_ROUTE, NULL, "", STEP_ROUTE, PLACE_LOCAL, HERE },
	{ VERDICT_NO_SM, NULL, "", STEP_SA_PATH, PLACE_NETWORK, "Act at the subnet manager." },
	{ VERDICT_PEER_STOPPED, NULL, "", STEP_CONTROL, PLACE_REMOTE, "Wait for it." },
	AS_FAR_AS_IT_COMES(VERDICT_REMOTE_PORT, PLACE_REMOTE, THERE),
	AS_FAR_AS_IT_COMES(VERDICT_REMOTE_STALL, PLACE_REMOTE, THERE),
	{ VERDICT_AUTH_FAILED, NULL, "", STEP_CONTROL, PLACE_REMOTE, "Compare the keys of both." },
	{ VERDICT_INCOMPATIBLE, impossible_here, "the transport is impossible here", STEP_CONNECT, PLACE_LOCAL, HERE },
	{ VERDICT_INCOMPATIBLE, NULL, "", STEP_CONTROL, PLACE_REMOTE, "Upgrade the older of both." },
	{ VERDICT_REFUSED, too_many, "limit of connections of a device here", STEP_CONNECT, PLACE_LOCAL, HERE },
	{ VERDICT_REFUSED, cm_refused, "the CM refuses", STEP_CONNECT, PLACE_REMOTE, THERE },
	{ VERDICT_REFUSED, NULL, "", STEP_CONTROL, PLACE_REMOTE, THERE },
	{ VERDICT_RDMA_BROKEN, port_suspect, "so it is to all other hosts over this port", STEP_LOCAL, PLACE_LOCAL, HERE },
	{ VERDICT_RDMA_BROKEN, size_matters, "large messages are lost, or the MTUs differ", STEP_MTU, PLACE_NETWORK, BETWEEN },
	{ VERDICT_RDMA_BROKEN, other_partition, "no P_Key in common", STEP_PKEY, PLACE_NETWORK, "Act at the subnet manager." },
	{ VERDICT_RDMA_BROKEN, not_resolved, "rdma_cm does not resolve it", STEP_RESOLVE, PLACE_REMOTE, THERE },
	{ VERDICT_RDMA_BROKEN, not_connected, "not connected", STEP_CONNECT, PLACE_REMOTE, THERE },
	{ VERDICT_RDMA_BROKEN, NULL, "", STEP_HEARTBEAT, PLACE_REMOTE, THERE },
	{ VERDICT_CONTROL_BLOCKED, all_udp_silent, "udp is silent as well", STEP_CONTROL, PLACE_REMOTE, "Look at fabd there, then at filters of UDP." },
	{ VERDICT_CONTROL_BLOCKED, NULL, "", STEP_CONTROL, PLACE_NETWORK, "Let the control port pass." },
	{ VERDICT_PEER_DOWN, no_neighbour, "the neighbour does not answer", STEP_NEIGHBOUR, PLACE_REMOTE, THERE },
	{ VERDICT_PEER_DOWN, no_word, "no control packet comes", STEP_CONTROL, PLACE_REMOTE, THERE },
	{ VERDICT_PEER_DOWN, NULL, "", STEP_HEARTBEAT, PLACE_REMOTE, THERE },
	{ VERDICT_NETWORK, size_matters, "large messages are lost, or the MTUs differ", STEP_MTU, PLACE_NETWORK, BETWEEN },
	AS_FAR_AS_IT_COMES(VERDICT_NETWORK, PLACE_NETWORK, BETWEEN),
};
/* clang-format on */

bool explain_wrong_at(int row, struct explain_wrong_row *ret)
{
	const struct wrong *w;

	if (row < 0 || (size_t)row >= ARRAY_LEN(wrongs))
		return false;
	w = &wrongs[row];
	*ret = (struct explain_wrong_row){w->verdict, w->when_text, w->step, w->place, w->act};
	return true;
}

int explain_wrong_row(const struct explain_facts *f)
{
	for (size_t i = 0; i < ARRAY_LEN(wrongs); i++)
		if (wrongs[i].verdict == f->inner.verdict &&
		    (!wrongs[i].when || wrongs[i].when(f)))
			return (int)i;
	return 1; /* a test proves that each verdict has a row that always matches */
}

/* ---- the steps ---- */

#define ON(step) (1u << (step))
/* An address, a way to it, and a place to come from. */
#define ON_WAY (ON(STEP_NAME) | ON(STEP_ADDRESSES) | ON(STEP_ROUTE) | ON(STEP_SOURCE))
#define ON_WIRE (ON_WAY | ON(STEP_LOCAL) | ON(STEP_NEIGHBOUR))
#define ON_PEER (ON_WIRE | ON(STEP_CONTROL))

/* What each rests on: with one of these wrong it cannot be judged. */
static const struct {
	unsigned needs;
	bool detail; /* shown if asked for, or if it is not well */
	const char *about;
} steps[STEP__MAX] = {
	[STEP_NAME] = {0, false, "the peer's name and address: from the config, a name that "
				 "the resolver knows, or told by the peer; how long ago"},
	[STEP_ADDRESSES] = {ON(STEP_NAME), true, "how many of the peer's addresses are known"},
	[STEP_ROUTE] = {ON(STEP_NAME) | ON(STEP_ADDRESSES), false,
			"interface, source address and gateway, as the kernel routes now"},
	[STEP_SOURCE] = {ON(STEP_NAME) | ON(STEP_ADDRESSES) | ON(STEP_ROUTE), true,
			 "the own address, and the device and port that own it"},
	[STEP_LOCAL] = {ON_WAY, false, "device and port: state, LID or GID, P_Key, MTU, SL; "
				       "the interface; the device's worker"},
	[STEP_NEIGHBOUR] = {ON_WAY | ON(STEP_LOCAL), true,
			    "the neighbour entry of the peer, or of the gateway"},
	[STEP_ARP] = {ON_WAY, true, "own interfaces on one subnet: arp_ignore, arp_announce "
				    "and rp_filter must keep their answers apart"},
	[STEP_MTU] = {ON_WIRE, true, "path MTU, the port's and the peer's; whether large "
				     "messages alone are lost"},
	[STEP_PKEY] = {ON_WAY | ON(STEP_LOCAL), true, "the P_Keys of both ends"},
	[STEP_CLASS] = {ON_WAY | ON(STEP_LOCAL), true, "service level and traffic class"},
	[STEP_SA_PATH] = {ON_WAY | ON(STEP_LOCAL), false,
			  "InfiniBand: LIDs, rate and MTU of the path; the subnet manager"},
	[STEP_CONTROL] = {ON_WIRE, true, "answers of the peer's fabd on its control port"},
	[STEP_RESOLVE] = {ON_PEER | ON(STEP_SA_PATH), true,
			  "rdma_resolve_addr and rdma_resolve_route"},
	[STEP_CONNECT] = {ON_PEER | ON(STEP_MTU) | ON(STEP_PKEY) | ON(STEP_SA_PATH) |
				  ON(STEP_RESOLVE),
			  false, "connection manager and first probes: the last event with "
				 "its reason in words"},
	[STEP_HEARTBEAT] = {ON_WIRE | ON(STEP_MTU) | ON(STEP_PKEY) | ON(STEP_SA_PATH) |
				    ON(STEP_RESOLVE) | ON(STEP_CONNECT),
			    false, "what was last heard, losses, round trip; other "
				   "transports and flows beside it"},
};

const char *explain_step_about(enum explain_step s)
{
	return steps[s].about;
}

bool explain_step_needs(enum explain_step s, enum explain_step on)
{
	return steps[s].needs & ON(on);
}

/* What the wrong step says, or else the verdict. */
static void wrong_line(const struct explain_facts *f, struct explain_line *line)
{
	char text[sizeof(line->text)] = "";

	line->mark = MARK_BAD;
	explain_say_wrong(line->step, f, text, sizeof(text));
	(void)str_copy(line->text, sizeof(line->text), text[0] ? text : f->inner.why);
}

/* The mark beside a wrong step: the first one wrong is one, whatever else is odd. What
 * flows now proves the steps under it. */
static enum explain_mark beside(const struct explain_facts *f, enum explain_step s,
				enum explain_step wrong, enum explain_mark own)
{
	bool flows = f->v.connected && !f->v.late;

	if (wrong != NO_STEP && s > wrong &&
	    (own == MARK_BAD || (explain_step_needs(s, wrong) && !flows)))
		return MARK_SKIPPED;
	return own == MARK_BAD ? MARK_WARN : own;
}

void explain(const struct explain_facts *f, struct explanation *ret)
{
	const struct wrong *w = &wrongs[explain_wrong_row(f)];

	*ret = (struct explanation){.wrong = w->step, .place = w->place, .act = w->act};
	for (int s = 0; s < STEP__MAX; s++) {
		struct explain_line *line = &ret->lines[ret->n_lines];
		enum explain_mark own;

		*line = (struct explain_line){.step = (enum explain_step)s,
					      .detail = steps[s].detail};
		own = explain_judge(line->step, f, line->text, sizeof(line->text));
		if (line->step == w->step)
			wrong_line(f, line);
		else if (own == MARK__MAX)
			continue;
		else
			line->mark = beside(f, line->step, w->step, own);
		if (line->mark == MARK_BAD || line->mark == MARK_WARN)
			line->detail = false;
		ret->n_lines++;
	}
}
