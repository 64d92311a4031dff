/* SPDX-License-Identifier: BSD-2-Clause */
/* What each step of an explanation says, and how it is by itself. */
#include "explain.h"

#include <inttypes.h>

/* ---- pieces ---- */

static void say_age(char *buf, size_t size, int64_t ns)
{
	str_append_age(buf, size, (double)ns / 1e9);
}

/* " (WORD, 12s)" */
static void say_told(char *buf, size_t size, const char *who, int64_t age)
{
	str_append(buf, size, " (%s", who);
	if (age >= 0) {
		str_append(buf, size, ", ");
		say_age(buf, size, age);
	}
	str_append(buf, size, ")");
}

static void say_trip(char *buf, size_t size, const char *what, uint64_t ns)
{
	if (ns < 1000 * (uint64_t)NSEC_PER_USEC)
		str_append(buf, size, "%s %" PRIu64 " us", what, (ns + 500) / 1000);
	else
		str_append(buf, size, "%s %.1f ms", what, (double)ns / 1e6);
}

/* "0xffff full": the highest bit tells members that talk to all from those that do not
 * talk to each other (IBA 10.9.1.1). */
static void say_pkey(char *buf, size_t size, uint16_t pkey)
{
	str_append(buf, size, "0x%04x %s", pkey | 0x8000, pkey & 0x8000 ? "full" : "limited");
}

static bool path_has(const struct explain_facts *f, unsigned bits)
{
	return (f->path.known & bits) == bits;
}

static bool flows(const struct explain_facts *f)
{
	return f->v.connected && !f->v.late;
}

static const char *worker_word(const struct explain_facts *f)
{
	switch (f->worker) {
	case WORKER_STARTING:
		return "its worker is starting";
	case WORKER_CM_BLOCKED:
		return "a call of its worker to the connection manager blocks";
	case WORKER_BACKOFF:
		return "its worker died and is started again";
	case WORKER_STUCK:
		return "its worker cannot be killed: device-stuck";
	case WORKER_STOPPED:
		return "its worker has ended";
	default:
		return NULL;
	}
}

static const char *neighbour_word(enum neighbour_state s)
{
	static const char *const words[NEIGHBOUR__MAX] = {
		[NEIGHBOUR_UNKNOWN] = "",
		[NEIGHBOUR_REACHABLE] = "REACHABLE",
		[NEIGHBOUR_STALE] = "STALE",
		[NEIGHBOUR_DELAY] = "DELAY",
		[NEIGHBOUR_PROBE] = "PROBE",
		[NEIGHBOUR_INCOMPLETE] = "INCOMPLETE",
		[NEIGHBOUR_FAILED] = "FAILED",
		[NEIGHBOUR_PERMANENT] = "PERMANENT",
		[NEIGHBOUR_NOARP] = "NOARP",
	};

	return words[s];
}

static void say_neighbour(const struct explain_facts *f, char *buf, size_t size)
{
	str_append(buf, size, "%s", neighbour_word(f->neighbour));
	if (f->neighbour_age >= 0) {
		str_append(buf, size, " ");
		say_age(buf, size, f->neighbour_age);
	}
}

static void say_address(const struct addr *a, char *buf, size_t size)
{
	char text[ADDR_TEXT_MAX];

	str_append(buf, size, "%s", a->family ? addr_format(a, text) : "?");
}

/* ---- the steps ---- */

static enum explain_mark judge_name(const struct explain_facts *f, char *buf, size_t size)
{
	static const char *const who[] = {
		[NAME_NONE] = NULL,
		[NAME_CONFIG] = "config",
		[NAME_RESOLVER] = "resolver",
		[NAME_PEER] = "told by peer",
	};

	if (!f->remote.family) {
		str_append(buf, size, "%s", f->resolve_error[0] ? f->resolve_error : f->peer);
		return f->resolve_error[0] ? MARK_BAD : MARK_SKIPPED;
	}
	str_append(buf, size, "%s > ", f->peer);
	if (f->host[0] && !str_eq(f->host, f->peer))
		str_append(buf, size, "%s > ", f->host);
	say_address(&f->remote, buf, size);
	if (f->infiniband && path_has(f, EP_PATH_LIDS))
		str_append(buf, size, " lid %u", f->path.dlid);
	if (who[f->name_source])
		say_told(buf, size, who[f->name_source], f->name_age);
	return MARK_OK;
}

static enum explain_mark judge_addresses(const struct explain_facts *f, char *buf,
					 size_t size)
{
	if (f->rail && f->rail[0])
		str_append(buf, size, "rail %s; ", f->rail);
	str_append(buf, size, "%d of %d known", f->addresses_known, f->addresses);
	if (!f->has_connection)
		return MARK_SKIPPED;
	if (f->addresses_known >= f->addresses)
		return MARK_OK;
	if (f->resolve_error[0])
		str_append(buf, size, ": %s", f->resolve_error);
	return MARK_WARN;
}

static enum explain_mark judge_route(const struct explain_facts *f, char *buf, size_t size)
{
	if (!f->has_connection || !f->route_asked)
		return MARK_SKIPPED;
	if (f->route_error) {
		str_append(buf, size, "no route to ");
		say_address(&f->remote, buf, size);
		str_append(buf, size, ": %s", strerror(-f->route_error));
		return MARK_BAD;
	}
	str_append(buf, size, "dev %s src ", f->netdev[0] ? f->netdev : "?");
	say_address(&f->local, buf, size);
	if (f->gateway.family) {
		str_append(buf, size, " via ");
		say_address(&f->gateway, buf, size);
	}
	if (f->own_host)
		str_append(buf, size, ", an address of this host");
	if (f->neighbour != NEIGHBOUR_UNKNOWN) {
		str_append(buf, size, ", neighbour ");
		say_neighbour(f, buf, size);
	}
	return MARK_OK;
}

static enum explain_mark judge_source(const struct explain_facts *f, char *buf, size_t size)
{
	if (!f->has_connection)
		return MARK_SKIPPED;
	if (f->source_missing) {
		str_append(buf, size, "%s", f->bind_why);
		return MARK_BAD;
	}
	if (!f->local.family)
		return MARK_SKIPPED;
	say_address(&f->local, buf, size);
	if (f->netdev[0])
		str_append(buf, size, " on %s", f->netdev);
	if (f->port[0])
		str_append(buf, size, ", owned by %s", f->port);
	else
		str_append(buf, size, ", no RDMA device");
	return MARK_OK;
}

static enum explain_mark judge_netdev(const struct explain_facts *f, char *buf, size_t size)
{
	if (!f->netdev[0])
		return MARK_SKIPPED;
	str_append(buf, size, "%s %s", f->netdev, f->netdev_up ? "up" : "DOWN");
	if (f->netdev_mtu)
		str_append(buf, size, " mtu %" PRIu32, f->netdev_mtu);
	str_append(buf, size, ", no RDMA device");
	return f->netdev_up ? MARK_OK : MARK_BAD;
}

/* "lid 417 pkey 0xffff full" or "gid 3 roce-v2", "mtu 4096 sl 0". */
static void say_port_facts(const struct explain_facts *f, char *buf, size_t size)
{
	if (f->infiniband && f->lid)
		str_append(buf, size, " lid %" PRIu32, f->lid);
	if (!f->infiniband && path_has(f, EP_PATH_SGID))
		str_append(buf, size, " gid %u %s", f->path.sgid_index,
			   enum_text(&ep_gid_type_names, f->path.gid_type));
	if (f->pkey_known && f->infiniband) {
		str_append(buf, size, " pkey ");
		say_pkey(buf, size, f->pkey);
	}
	if (f->port_mtu)
		str_append(buf, size, " mtu %" PRIu32, f->port_mtu);
	if (f->infiniband && path_has(f, EP_PATH_SL))
		str_append(buf, size, " sl %u", f->path.sl);
}

static enum explain_mark judge_local(const struct explain_facts *f, char *buf, size_t size)
{
	bool active = str_eq(f->port_state, "ACTIVE");
	const char *worker = f->v.is_rdma && f->has_worker ? worker_word(f) : NULL;

	if (!f->has_connection)
		return MARK_SKIPPED;
	if (!f->port[0])
		return judge_netdev(f, buf, size);
	str_append(buf, size, "%s %s", f->port, f->port_state[0] ? f->port_state : "?");
	if (!active && f->port_far[0])
		str_append(buf, size, " (%s)", f->port_far);
	if (active)
		say_port_facts(f, buf, size);
	if (f->netdev[0] && !f->netdev_up)
		str_append(buf, size, ", %s DOWN", f->netdev);
	if (f->port_health != HEALTH_OK && active && f->port_why[0])
		str_append(buf, size, "; %s: %s", enum_text(&health_names, (int)f->port_health),
			   f->port_why);
	if (worker)
		str_append(buf, size, "; %s", worker);
	if (worker && f->worker_why[0] && f->worker != WORKER_STARTING)
		str_append(buf, size, ": %.96s", f->worker_why);
	if ((!active && f->port_state[0]) || (f->netdev[0] && !f->netdev_up) || worker)
		return MARK_BAD;
	return f->port_health == HEALTH_BAD || f->port_health == HEALTH_DEGRADED ? MARK_WARN
										  : MARK_OK;
}

static enum explain_mark judge_neighbour(const struct explain_facts *f, char *buf,
					 size_t size)
{
	if (f->neighbour == NEIGHBOUR_UNKNOWN)
		return MARK__MAX;
	say_address(f->gateway.family ? &f->gateway : &f->remote, buf, size);
	str_append(buf, size, " ");
	say_neighbour(f, buf, size);
	if (f->neighbour != NEIGHBOUR_FAILED && f->neighbour != NEIGHBOUR_INCOMPLETE)
		return MARK_OK;
	str_append(buf, size, ": no answer to %s on %s", f->remote.family == 6 ? "ND" : "ARP",
		   f->netdev[0] ? f->netdev : "its interface");
	return MARK_BAD;
}

/* Interfaces of one subnet answer ARP for each other's addresses unless told not to: then
 * a rail's packets take another rail's wire. Strict reverse-path checks drop what comes
 * back that way. */
static enum explain_mark judge_arp(const struct explain_facts *f, char *buf, size_t size)
{
	const struct explain_arp *a = &f->arp;
	bool ignore = a->arp_ignore == 0, announce = a->arp_announce == 0;
	bool filter = a->rp_filter == 1;

	if (a->interfaces < 2)
		return MARK__MAX;
	str_append(buf, size, "%s and %s", a->first, a->second);
	if (a->interfaces > 2)
		str_append(buf, size, " and %d more", a->interfaces - 2);
	str_append(buf, size, " are on ");
	say_address(&a->subnet, buf, size);
	str_append(buf, size, "/%u", a->bits);
	if (!ignore && !announce && !filter)
		return MARK_OK;
	str_append(buf, size, ":");
	if (ignore)
		str_append(buf, size, " arp_ignore is 0, wanted 1%s",
			   announce || filter ? ";" : "");
	if (announce)
		str_append(buf, size, " arp_announce is 0, wanted 2%s", filter ? ";" : "");
	if (filter)
		str_append(buf, size, " rp_filter is 1, wanted 2");
	return MARK_WARN;
}

static enum explain_mark judge_mtu(const struct explain_facts *f, char *buf, size_t size)
{
	uint32_t here = f->v.own_mtu    ? f->v.own_mtu
			: f->v.is_rdma ? f->port_mtu
				       : f->netdev_mtu;
	bool lost = f->v.large_lost && f->v.large_size;
	const char *sep = "";

	if (f->path.mtu) {
		str_append(buf, size, "%" PRIu32 " bytes fit the path", f->path.mtu);
		sep = ", ";
	}
	if (here) {
		str_append(buf, size, "%s%" PRIu32 " here", sep, here);
		sep = ", ";
	}
	if (f->v.peer_mtu) {
		str_append(buf, size, "%s%" PRIu32 " there", sep, f->v.peer_mtu);
		sep = ", ";
	}
	if (lost)
		str_append(buf, size, "%s%u messages of %" PRIu32 " bytes lost in a row", sep,
			   f->v.large_lost, f->v.large_size);
	if (!buf[0])
		return MARK__MAX;
	if (f->v.mtu_mismatch)
		return MARK_BAD;
	return lost ? MARK_WARN : MARK_OK;
}

static enum explain_mark judge_pkey(const struct explain_facts *f, char *buf, size_t size)
{
	if (!f->v.is_rdma || (!f->v.pkey_mismatch && (!f->pkey_known || !f->infiniband)))
		return MARK__MAX;
	if (f->v.pkey_mismatch) {
		say_pkey(buf, size, f->v.own_pkey);
		str_append(buf, size, " here, ");
		say_pkey(buf, size, f->v.peer_pkey);
		str_append(buf, size, " there: they cannot talk");
		return MARK_BAD;
	}
	say_pkey(buf, size, f->pkey);
	str_append(buf, size, " here");
	if (f->v.peer_pkey) {
		str_append(buf, size, ", ");
		say_pkey(buf, size, f->v.peer_pkey);
		str_append(buf, size, " there");
	}
	return MARK_OK;
}

static enum explain_mark judge_class(const struct explain_facts *f, char *buf, size_t size)
{
	bool sl = path_has(f, EP_PATH_SL) && f->infiniband;
	bool other_sl = sl && f->wanted_sl >= 0 && f->wanted_sl != f->path.sl;
	bool other_class = path_has(f, EP_PATH_CLASS) &&
			   f->path.traffic_class != f->traffic_class;

	if (!f->has_connection)
		return MARK__MAX;
	if (sl)
		str_append(buf, size, "sl %u, ", f->path.sl);
	str_append(buf, size, "traffic class %u",
		   path_has(f, EP_PATH_CLASS) ? f->path.traffic_class : f->traffic_class);
	if (path_has(f, EP_PATH_HOPS) && f->path.hop_limit)
		str_append(buf, size, ", hop limit %u", f->path.hop_limit);
	if (path_has(f, EP_PATH_FLOW_LABEL) && f->path.flow_label)
		str_append(buf, size, ", flow label 0x%05" PRIx32, f->path.flow_label);
	if (path_has(f, EP_PATH_SPORT))
		str_append(buf, size, ", source port %u", f->path.sport);
	if (other_sl)
		str_append(buf, size, "; the config wants sl %d", f->wanted_sl);
	if (other_class)
		str_append(buf, size, "; the config wants traffic class %u", f->traffic_class);
	return other_sl || other_class ? MARK_WARN : MARK_OK;
}

static enum explain_mark judge_sa_path(const struct explain_facts *f, char *buf, size_t size)
{
	if (!f->infiniband || !f->v.is_rdma)
		return MARK__MAX;
	if (f->v.sm_mute && !f->sm_lid) {
		str_append(buf, size, "no subnet manager: the port's SM LID is 0");
		return MARK_BAD;
	}
	if (!path_has(f, EP_PATH_LIDS)) {
		str_append(buf, size, "not asked for yet");
		if (f->sm_lid)
			str_append(buf, size, "; sm lid %" PRIu32, f->sm_lid);
		return MARK_SKIPPED;
	}
	str_append(buf, size, "%u > %u", f->path.slid, f->path.dlid);
	if (path_has(f, EP_PATH_RATE) && f->path.rate_mbps)
		str_append(buf, size, " rate %g", f->path.rate_mbps / 1000.0);
	if (f->path.mtu)
		str_append(buf, size, " mtu %" PRIu32, f->path.mtu);
	if (f->path_age >= 0) {
		str_append(buf, size, ", cached ");
		say_age(buf, size, f->path_age);
	}
	return MARK_OK;
}

static void say_control_port(const struct explain_facts *f, char *buf, size_t size)
{
	struct addr a = f->remote;
	char text[ADDR_TEXT_MAX];

	a.port = f->control_port;
	str_append(buf, size, "%s", addr_format_port(&a, text));
}

static enum explain_mark judge_control(const struct explain_facts *f, char *buf, size_t size)
{
	if (!f->has_connection)
		return MARK_SKIPPED;
	say_control_port(f, buf, size);
	if (f->control_age < 0) {
		str_append(buf, size, " has not answered yet");
		return flows(f) ? MARK_OK : MARK_BAD;
	}
	str_append(buf, size, " answered ");
	say_age(buf, size, f->control_age);
	str_append(buf, size, " ago");
	if (f->version)
		str_append(buf, size, ", version %u", f->version);
	return f->v.ctl_answers || (flows(f) && !f->v.ctl_silent) ? MARK_OK : MARK_BAD;
}

static enum explain_mark judge_resolve(const struct explain_facts *f, char *buf, size_t size)
{
	bool failed = f->v.error != EPERR_NONE && (f->v.error_stage == STAGE_RESOLVE_ADDR ||
						   f->v.error_stage == STAGE_RESOLVE_ROUTE);

	if (!f->v.is_rdma)
		return MARK__MAX;
	if (f->v.connected) {
		str_append(buf, size, "address and route resolved");
		if (f->connected_age >= 0) {
			str_append(buf, size, " ");
			say_age(buf, size, f->connected_age);
			str_append(buf, size, " ago");
		}
		return MARK_OK;
	}
	if (f->error_age < 0 || f->v.error == EPERR_NONE) {
		str_append(buf, size, "not tried yet");
		return MARK_SKIPPED;
	}
	str_append(buf, size, failed ? "failed at %s " : "passed, as the last attempt came to %s ",
		   enum_text(&ep_stage_names, (int)f->v.error_stage));
	say_age(buf, size, f->error_age);
	str_append(buf, size, " ago");
	if (failed)
		return MARK_BAD;
	return f->v.error_stage > STAGE_RESOLVE_ROUTE ? MARK_OK : MARK_SKIPPED;
}

static enum explain_mark judge_connect(const struct explain_facts *f, char *buf, size_t size)
{
	if (!f->has_connection)
		return MARK_SKIPPED;
	if (f->v.connected) {
		str_append(buf, size, "connected");
		if (f->connected_age >= 0) {
			str_append(buf, size, " for ");
			say_age(buf, size, f->connected_age);
		}
		if (path_has(f, EP_PATH_QPS))
			str_append(buf, size, ", qp 0x%" PRIx32 " > 0x%" PRIx32, f->path.qpn,
				   f->path.remote_qpn);
		return MARK_OK;
	}
	if (f->error_text[0] && f->v.error != EPERR_NONE)
		str_append(buf, size, "%s", f->error_text);
	else
		str_append(buf, size, "%s", enum_text(&conn_state_names, (int)f->state));
	if (f->v.error == EPERR_NONE && f->state_age >= 0) {
		str_append(buf, size, " for ");
		say_age(buf, size, f->state_age);
	}
	if (f->v.error == EPERR_NONE && f->stage != STAGE_NONE)
		str_append(buf, size, ", at %s", enum_text(&ep_stage_names, (int)f->stage));
	return f->v.error == EPERR_NONE ? MARK_SKIPPED : MARK_BAD;
}

static void say_other(const struct explain_other *o, char *buf, size_t size)
{
	str_append(buf, size, "; %s", enum_text(&transport_names, (int)o->transport));
	if (o->on[0])
		str_append(buf, size, " on %s", o->on);
	if (!o->connected) {
		str_append(buf, size, " not connected");
		return;
	}
	str_append(buf, size, " %" PRIu64 "/%" PRIu64 " lost", o->lost, o->sent);
	if (o->rtt_p50)
		say_trip(buf, size, ", p50", o->rtt_p50);
}

static enum explain_mark judge_heartbeat(const struct explain_facts *f, char *buf,
					 size_t size)
{
	if (!f->has_connection)
		return MARK_SKIPPED;
	if (f->heartbeat_age < 0)
		str_append(buf, size, "none yet");
	else {
		str_append(buf, size, "last ");
		say_age(buf, size, f->heartbeat_age);
		str_append(buf, size, " ago");
	}
	if (f->v.connected && f->sent)
		str_append(buf, size, ", %" PRIu64 "/%" PRIu64 " lost", f->lost, f->sent);
	if (f->v.connected && f->rtt_p50) {
		say_trip(buf, size, ", p50", f->rtt_p50);
		say_trip(buf, size, " p99", f->rtt_p99);
	}
	if (f->v.flows > 1)
		str_append(buf, size, "; %d of %d flows pass", f->v.flows_well, f->v.flows);
	for (int i = 0; i < f->n_others; i++)
		say_other(&f->others[i], buf, size);
	if (flows(f))
		return MARK_OK;
	return f->v.late || f->heartbeat_age >= 0 ? MARK_BAD : MARK_SKIPPED;
}

/* clang-format off */
static enum explain_mark (*const judges[STEP__MAX])(const struct explain_facts *f, char *buf,
						    size_t size) = {
	[STEP_NAME] = judge_name,
	[STEP_ADDRESSES] = judge_addresses,
	[STEP_ROUTE] = judge_route,
	[STEP_SOURCE] = judge_source,
	[STEP_LOCAL] = judge_local,
	[STEP_NEIGHBOUR] = judge_neighbour,
	[STEP_ARP] = judge_arp,
	[STEP_MTU] = judge_mtu,
	[STEP_PKEY] = judge_pkey,
	[STEP_CLASS] = judge_class,
	[STEP_SA_PATH] = judge_sa_path,
	[STEP_CONTROL] = judge_control,
	[STEP_RESOLVE] = judge_resolve,
	[STEP_CONNECT] = judge_connect,
	[STEP_HEARTBEAT] = judge_heartbeat,
};
/* clang-format on */

enum explain_mark explain_judge(enum explain_step s, const struct explain_facts *f,
				char *buf, size_t size)
{
	buf[0] = '\0';
	return judges[s](f, buf, size);
}

/* ---- the wrong step ---- */

static void wrong_control(const struct explain_facts *f, char *buf, size_t size)
{
	if (f->inner.verdict == VERDICT_REFUSED && f->v.refusal == REFUSE_NONE &&
	    !f->v.stopped) {
		str_append(buf, size, "nobody listens on ");
		say_control_port(f, buf, size);
		return;
	}
	if (f->v.ctl_answers || f->v.auth_failed || f->v.stopped ||
	    f->v.refusal != REFUSE_NONE)
		return;
	say_control_port(f, buf, size);
	if (f->control_silence >= 0) {
		str_append(buf, size, " has not answered for ");
		say_age(buf, size, f->control_silence);
	} else {
		str_append(buf, size, " does not answer");
	}
	if (flows(f))
		str_append(buf, size, "; heartbeats pass");
}

static void wrong_local(const struct explain_facts *f, char *buf, size_t size)
{
	/* What the binding says is shorter, and also true of what is gone. */
	if (f->inner.verdict == VERDICT_LOCAL_PORT && f->bind_why[0]) {
		str_append(buf, size, "%s", f->bind_why);
		if (f->port_far[0])
			str_append(buf, size, " (%s)", f->port_far);
		return;
	}
	if (explain_judge(STEP_LOCAL, f, buf, size) == MARK_BAD)
		return;
	if (f->inner.verdict == VERDICT_RDMA_BROKEN)
		str_append(buf, size, "; RDMA over it is broken to all %d other hosts",
			   f->port_hosts);
	else
		buf[0] = '\0';
}

void explain_say_wrong(enum explain_step s, const struct explain_facts *f, char *buf,
		       size_t size)
{
	bool said = false;

	buf[0] = '\0';
	switch (s) {
	case STEP_CONTROL:
		wrong_control(f, buf, size);
		return;
	case STEP_LOCAL:
		wrong_local(f, buf, size);
		return;
	case STEP_RESOLVE:
		said = f->error_text[0];
		break;
	case STEP_ROUTE:
	case STEP_SOURCE:
		str_append(buf, size, "%s", f->bind_why);
		return;
	case STEP_SA_PATH:
		if (f->v.sm_mute && !f->sm_lid)
			(void)explain_judge(s, f, buf, size);
		else
			said = f->error_text[0];
		break;
	case STEP_MTU:
	case STEP_PKEY:
		return; /* the verdict has the numbers */
	case STEP_ADDRESSES:
		(void)explain_judge(s, f, buf, size);
		return;
	case STEP_CONNECT:
	case STEP_HEARTBEAT:
	case STEP_NEIGHBOUR:
	case STEP_NAME:
		if (explain_judge(s, f, buf, size) != MARK_BAD && s != STEP_HEARTBEAT)
			buf[0] = '\0';
		return;
	default:
		break;
	}
	if (said)
		str_append(buf, size, "%s", f->error_text);
}
