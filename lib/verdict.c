/* SPDX-License-Identifier: BSD-2-Clause */
#include "verdict.h"

#define BOOT_NS	       (60 * NSEC_PER_SEC)
#define REMOTE_LATE_NS (100 * NSEC_PER_MSEC)
#define LOSS_NETWORK   100 /* per mille: no longer a blemish */
#define LOSS_DEGRADED  5
#define SLOW_NS	       (100 * NSEC_PER_MSEC)
#define LARGE_LOST     3 /* in a row: not by chance */

typedef bool pred_fn(const struct verdict_facts *f);
typedef void why_fn(const struct verdict_facts *f, char *buf, size_t size);

/* ---- evidence put together ---- */

static bool well(const struct verdict_facts *f)
{
	return f->connected && !f->late;
}

/* Something went wrong, as against being connected for the first time. */
static bool failed(const struct verdict_facts *f)
{
	return !well(f) &&
	       (f->late || f->told_lost || f->ctl_silent || f->error != EPERR_NONE);
}

/* The fabd over there speaks. */
static bool daemon_answers(const struct verdict_facts *f)
{
	return f->ctl_answers || f->udp_ok || f->rdma_ok;
}

static bool nothing_answers(const struct verdict_facts *f)
{
	return failed(f) && !daemon_answers(f);
}

/* One dead host more among a thousand is no network fault; a tenth of a rail is, and so
 * are all of the few that there are. */
static bool many_others_down(const struct verdict_facts *f)
{
	if (f->others_down <= 0)
		return false;
	return f->others_down >= f->others ||
	       (f->others_down >= 2 && f->others_down * 10 >= f->others);
}

/* Something on that host does: its adapter, its kernel or its fabd. Where many are silent
 * that a neighbour's entry is confirmed says little: what lies between may answer for it. */
static bool host_answers(const struct verdict_facts *f)
{
	return f->cm_answers || f->send_acked || f->beside_answers ||
	       (f->neighbour_ok && !many_others_down(f));
}

/* ---- predicates, in the order of the table ---- */

static bool silenced(const struct verdict_facts *f)
{
	return f->silenced;
}

static bool held(const struct verdict_facts *f)
{
	return f->held;
}

static bool booting(const struct verdict_facts *f)
{
	return !f->ever_connected && f->host_up_ns < BOOT_NS;
}

static bool port_down(const struct verdict_facts *f)
{
	return f->port_down || (!well(f) && f->error == EPERR_DEVICE_GONE);
}

static bool local_failure(const struct verdict_facts *f)
{
	return !well(f) && f->error == EPERR_LOCAL;
}

static bool local_stall(const struct verdict_facts *f)
{
	return !well(f) && f->local_stall;
}

static bool device_stuck(const struct verdict_facts *f)
{
	return f->device_stuck;
}

static bool worker_died(const struct verdict_facts *f)
{
	return !well(f) && f->error == EPERR_WORKER_DIED;
}

static bool no_owner(const struct verdict_facts *f)
{
	return !well(f) && (!f->port_known || f->error == EPERR_NO_ADDRESS);
}

static bool no_route(const struct verdict_facts *f)
{
	return !well(f) && f->error == EPERR_NO_ROUTE;
}

static bool no_sm(const struct verdict_facts *f)
{
	return !well(f) && f->is_rdma && f->sm_mute;
}

static bool no_path(const struct verdict_facts *f)
{
	return !well(f) && f->error == EPERR_NO_PATH;
}

static bool peer_stopped(const struct verdict_facts *f)
{
	return !well(f) && f->stopped && f->stop_left_ns > 0;
}

/* Not one that is back in a moment with other settings: that one names a deadline. */
static bool dropped(const struct verdict_facts *f)
{
	return !well(f) && f->stopped && f->stop_cause == CAUSE_CONFIG;
}

static bool remote_port(const struct verdict_facts *f)
{
	return !well(f) && f->told_port == TOLD_PORT_DOWN;
}

/* Its device carries no RDMA; what goes over IP alone does not need it. */
static bool remote_stuck(const struct verdict_facts *f)
{
	return !well(f) && f->is_rdma && f->told_device == TOLD_DEVICE_STUCK;
}

static bool remote_worker(const struct verdict_facts *f)
{
	return !well(f) && f->is_rdma && f->told_device == TOLD_DEVICE_REPLACED;
}

static bool remote_late(const struct verdict_facts *f)
{
	return !well(f) && f->told_late_ns >= REMOTE_LATE_NS;
}

static bool auth_failed(const struct verdict_facts *f)
{
	return !well(f) && (f->auth_failed || f->refusal == REFUSE_AUTH);
}

static bool other_version(const struct verdict_facts *f)
{
	return !well(f) && f->refusal == REFUSE_VERSION;
}

static bool other_transport(const struct verdict_facts *f)
{
	return !well(f) &&
	       (f->refusal == REFUSE_TRANSPORT || f->error == EPERR_NOT_SUPPORTED);
}

static bool refused(const struct verdict_facts *f)
{
	return !well(f) && f->refusal != REFUSE_NONE;
}

static bool over_limit(const struct verdict_facts *f)
{
	return !well(f) && f->error == EPERR_LIMIT;
}

/* Where udp is well, an rdma listener that is missing is broken RDMA, not a refusal. */
static bool nobody_listens(const struct verdict_facts *f)
{
	bool rdma_only = f->is_rdma && (f->udp_ok || f->ctl_answers);

	return !well(f) && (f->unknown_to_peer || f->error == EPERR_PORT_UNREACHABLE ||
			    (f->error == EPERR_CM_REFUSED && !rdma_only));
}

static bool other_partition(const struct verdict_facts *f)
{
	return failed(f) && f->is_rdma && f->pkey_mismatch;
}

/* The others take other ways through the network. */
static bool one_flow(const struct verdict_facts *f)
{
	return failed(f) && f->flows > 1 && f->flows_well > 0;
}

static bool large_lost(const struct verdict_facts *f)
{
	return f->large_lost >= LARGE_LOST && f->large_size;
}

static bool large_fails(const struct verdict_facts *f)
{
	return failed(f) && large_lost(f) &&
	       (daemon_answers(f) || f->cm_answers || f->send_acked);
}

static bool rdma_broken(const struct verdict_facts *f)
{
	return !well(f) && f->is_rdma &&
	       (f->late || f->told_lost || f->error != EPERR_NONE) &&
	       (f->udp_ok || f->ctl_answers || f->cm_answers);
}

static bool control_blocked(const struct verdict_facts *f)
{
	return f->ctl_silent && !f->ctl_answers && (well(f) || f->rdma_ok || f->udp_ok);
}

static bool probes_lost(const struct verdict_facts *f)
{
	return failed(f) && daemon_answers(f);
}

static bool other_rail_ok(const struct verdict_facts *f)
{
	return nothing_answers(f) && f->host_ok;
}

/* Only after a whole silence: right after a death the neighbour entry is still fresh.
 * A fabd that speaks on another rail is not frozen. */
static bool frozen(const struct verdict_facts *f)
{
	return nothing_answers(f) && f->ever_connected && f->ctl_silent && !f->host_ok &&
	       host_answers(f);
}

static bool rail_down(const struct verdict_facts *f)
{
	return nothing_answers(f) && many_others_down(f);
}

static bool host_without_fabd(const struct verdict_facts *f)
{
	return nothing_answers(f) && f->ctl_silent && f->neighbour_ok;
}

static bool sole_peer(const struct verdict_facts *f)
{
	return nothing_answers(f) && f->others == 0;
}

static bool heavy_loss(const struct verdict_facts *f)
{
	return well(f) && f->loss_permille >= LOSS_NETWORK;
}

static bool large_lost_well(const struct verdict_facts *f)
{
	return well(f) && large_lost(f);
}

static bool damped(const struct verdict_facts *f)
{
	return well(f) && f->damped;
}

static bool lossy(const struct verdict_facts *f)
{
	return well(f) && f->loss_permille >= LOSS_DEGRADED;
}

static bool slow(const struct verdict_facts *f)
{
	return well(f) && f->rtt_p99_ns >= (uint64_t)SLOW_NS;
}

static bool slower(const struct verdict_facts *f)
{
	return well(f) && f->slower && f->usual_p99_ns;
}

static bool other_mtu(const struct verdict_facts *f)
{
	return well(f) && f->mtu_mismatch;
}

static bool other_pkey(const struct verdict_facts *f)
{
	return well(f) && f->pkey_mismatch;
}

static bool anything(const struct verdict_facts *f)
{
	(void)f;
	return true;
}

/* ---- one line for the operator ---- */

static void say_held(const struct verdict_facts *f, char *buf, size_t size)
{
	str_append(buf, size, "%s", f->held_by ? f->held_by : "explained by another fault");
}

static void say_boot(const struct verdict_facts *f, char *buf, size_t size)
{
	str_append(buf, size, "this host is up for %d s only",
		   (int)(f->host_up_ns / NSEC_PER_SEC));
}

static void say_port(const struct verdict_facts *f, char *buf, size_t size)
{
	str_append(buf, size, "%s",
		   f->port_why ? f->port_why : "the local port is down");
}

static void say_stall(const struct verdict_facts *f, char *buf, size_t size)
{
	str_append(buf, size, "%s stood still for %d ms",
		   f->stall_who ? f->stall_who : "fabd on this host",
		   (int)(f->stall_ns / NSEC_PER_MSEC));
}

static void say_error(const struct verdict_facts *f, char *buf, size_t size)
{
	str_append(buf, size, "%s", enum_text(&ep_error_names, (int)f->error));
	if (f->error_stage != STAGE_NONE)
		str_append(buf, size, " at %s",
			   enum_text(&ep_stage_names, (int)f->error_stage));
	if (f->error_status < 0)
		str_append(buf, size, ": %s", strerror(-(int)f->error_status));
	else if (f->error_status)
		str_append(buf, size, ", status %d", (int)f->error_status);
}

static void say_owner(const struct verdict_facts *f, char *buf, size_t size)
{
	str_append(buf, size, "%s",
		   f->port_why	   ? f->port_why
		   : f->port_known ? "the source address is not on this host"
				   : "no device owns the source address");
}

static void say_route(const struct verdict_facts *f, char *buf, size_t size)
{
	str_append(buf, size, "%s", f->port_why ? f->port_why : "no route to the peer");
}

static void say_stopped(const struct verdict_facts *f, char *buf, size_t size)
{
	str_append(buf, size, "stopped on purpose (%s), back within %d s",
		   enum_text(&cause_names, (int)f->stop_cause),
		   (int)((f->stop_left_ns + NSEC_PER_SEC - 1) / NSEC_PER_SEC));
}

/* "gpu0033 reports mlx5_2": the device is the port without its number. */
static void say_reporter(const struct verdict_facts *f, char *buf, size_t size)
{
	const char *slash = f->peer_port ? strrchr(f->peer_port, '/') : NULL;

	str_append(buf, size, "remote: %s reports ",
		   f->peer_node && *f->peer_node ? f->peer_node : "the peer");
	if (slash)
		str_append(buf, size, "%.*s", (int)(slash - f->peer_port), f->peer_port);
	else
		str_append(buf, size, "its device");
}

static void say_remote_port(const struct verdict_facts *f, char *buf, size_t size)
{
	bool named = f->peer_port && *f->peer_port && !str_eq(f->peer_port, "-");

	str_append(buf, size, "the peer says its port is down");
	if (named)
		str_append(buf, size, ": %s", f->peer_port);
}

static void say_remote_stuck(const struct verdict_facts *f, char *buf, size_t size)
{
	say_reporter(f, buf, size);
	str_append(buf, size, " device-stuck");
}

static void say_remote_worker(const struct verdict_facts *f, char *buf, size_t size)
{
	say_reporter(f, buf, size);
	str_append(buf, size, ": its worker is being replaced");
}

static void say_partition(const struct verdict_facts *f, char *buf, size_t size)
{
	str_append(buf, size, "P_Key 0x%04x here, 0x%04x there: no partition in common",
		   f->own_pkey, f->peer_pkey);
}

static void say_flow(const struct verdict_facts *f, char *buf, size_t size)
{
	str_append(buf, size, "flow %d does not pass, %d of %d flows do: one path of several",
		   f->flow, f->flows_well, f->flows);
}

static void say_large(const struct verdict_facts *f, char *buf, size_t size)
{
	str_append(buf, size, "messages of %u bytes do not pass (%u lost in a row), small "
			      "ones do",
		   (unsigned)f->large_size, (unsigned)f->large_lost);
	if (f->mtu_mismatch)
		str_append(buf, size, "; MTU %u here, %u there", (unsigned)f->own_mtu,
			   (unsigned)f->peer_mtu);
}

static void say_remote_late(const struct verdict_facts *f, char *buf, size_t size)
{
	str_append(buf, size, "the peer says its loop was late by %d ms",
		   (int)(f->told_late_ns / NSEC_PER_MSEC));
}

static void say_refusal(const struct verdict_facts *f, char *buf, size_t size)
{
	if (f->refusal != REFUSE_NONE)
		str_append(buf, size, "the peer refuses: %s",
			   enum_text(&refusal_names, (int)f->refusal));
	else
		say_error(f, buf, size);
}

static void say_auth(const struct verdict_facts *f, char *buf, size_t size)
{
	str_append(buf, size, "%s",
		   f->auth_failed ? "packets of the peer fail authentication: other key"
				  : "the peer refuses our authentication");
}

static void say_nobody(const struct verdict_facts *f, char *buf, size_t size)
{
	str_append(buf, size, "the host answers, nobody listens there");
	if (f->error != EPERR_NONE && f->error != EPERR_PORT_UNREACHABLE) {
		str_append(buf, size, ": ");
		say_error(f, buf, size);
	}
}

static void say_rdma(const struct verdict_facts *f, char *buf, size_t size)
{
	str_append(buf, size, "%s, RDMA does not: ",
		   f->udp_ok	    ? "udp works"
		   : f->ctl_answers ? "control answers"
				    : "the CM answers");
	if (f->error != EPERR_NONE)
		say_error(f, buf, size);
	else
		str_append(buf, size, "%s",
			   f->late ? "heartbeats lost" : "the peer hears nothing");
}

static void say_config(const struct verdict_facts *f, char *buf, size_t size)
{
	if (f->or_not_in_config)
		str_append(buf, size, ", or this host is not in its config");
}

static void say_frozen(const struct verdict_facts *f, char *buf, size_t size)
{
	str_append(buf, size, "the host answers (%s), its fabd does not: frozen",
		   f->cm_answers     ? "CM"
		   : f->send_acked   ? "its adapter acknowledges"
		   : f->neighbour_ok ? "neighbour"
				     : "on another connection");
	say_config(f, buf, size);
}

static void say_rail(const struct verdict_facts *f, char *buf, size_t size)
{
	str_append(buf, size,
		   "nothing answers from this and %d of %d other hosts of the rail",
		   f->others_down, f->others);
}

static void say_no_fabd(const struct verdict_facts *f, char *buf, size_t size)
{
	str_append(buf, size, "the host is there, no fabd answers");
	say_config(f, buf, size);
}

static void say_down(const struct verdict_facts *f, char *buf, size_t size)
{
	if (f->stopped)
		str_append(buf, size, "stopped (%s) and not back in time, ",
			   enum_text(&cause_names, (int)f->stop_cause));
	if (f->others)
		str_append(buf, size, "nothing answers, %d of %d other hosts do",
			   f->others - f->others_down, f->others);
	else
		str_append(buf, size,
			   "nothing answers; sole peer of the rail: "
			   "cannot tell host from network");
	say_config(f, buf, size);
}

static void say_loss(const struct verdict_facts *f, char *buf, size_t size)
{
	str_append(buf, size, "%u.%u %% lost in 60 s", (unsigned)f->loss_permille / 10,
		   (unsigned)f->loss_permille % 10);
}

static void say_slow(const struct verdict_facts *f, char *buf, size_t size)
{
	str_append(buf, size, "slow: p99 %.1f ms", (double)f->rtt_p99_ns / 1e6);
}

static void say_damped(const struct verdict_facts *f, char *buf, size_t size)
{
	str_append(buf, size, "lost %u time%s, penalty %.0f; well again, damped for %d min",
		   (unsigned)f->flaps, f->flaps == 1 ? "" : "s", f->flap_penalty,
		   (int)((f->damped_left_ns + 60 * NSEC_PER_SEC - 1) /
			 (60 * NSEC_PER_SEC)));
}

static void say_slower(const struct verdict_facts *f, char *buf, size_t size)
{
	str_append(buf, size, "slower than usual: p99 %.3f ms, was %.3f ms",
		   (double)f->rtt_p99_ns / 1e6, (double)f->usual_p99_ns / 1e6);
}

static void say_mtu(const struct verdict_facts *f, char *buf, size_t size)
{
	str_append(buf, size, "MTU %u here, %u there: large messages will be lost",
		   (unsigned)f->own_mtu, (unsigned)f->peer_mtu);
}

static void say_pkey(const struct verdict_facts *f, char *buf, size_t size)
{
	str_append(buf, size, "P_Key 0x%04x here, 0x%04x there", f->own_pkey,
		   f->peer_pkey);
}

/* Of a main that stands still the worker may go on answering: from here that looks as if
 * all UDP were filtered. */
static void say_blocked(const struct verdict_facts *f, char *buf, size_t size)
{
	bool all_udp = !well(f) && !f->is_rdma && f->ever_connected;

	str_append(buf, size,
		   all_udp ? "the fabric works, nothing else gets an answer: UDP is "
			     "filtered, or fabd there stands still"
			   : "the fabric works, control packets (UDP) get no answer");
}

/* ---- the table ---- */

/* clang-format off */
static const struct row {
	pred_fn *when;
	enum verdict verdict;
	why_fn *say;	  /* else: */
	const char *text; /* of the answer, and of the documentation */
} rows[] = {
	{ silenced, VERDICT_SILENCED, NULL, "a silence is set" },
	{ held, VERDICT_HELD, say_held, "explained by another fault" },
	{ booting, VERDICT_UNKNOWN, say_boot, "never connected, this host is up for less than 60 s" },
	{ port_down, VERDICT_LOCAL_PORT, say_port, "local port down, address or device gone" },
	{ local_failure, VERDICT_LOCAL_PORT, say_error, "local failure of the device or driver" },
	{ local_stall, VERDICT_LOCAL_STALL, say_stall, "the own loop or worker was late at the loss" },
	{ device_stuck, VERDICT_DEVICE_STUCK, NULL, "the device worker cannot be killed" },
	{ worker_died, VERDICT_LOCAL_STALL, NULL, "the device worker died and is started again" },
	{ no_owner, VERDICT_NO_ROUTE, say_owner, "no owner of the source address" },
	{ no_route, VERDICT_NO_ROUTE, say_route, "no route to the peer" },
	{ no_sm, VERDICT_NO_SM, NULL, "no subnet manager, or its SA does not answer" },
	{ no_path, VERDICT_NO_ROUTE, NULL, "the subnet manager knows no path to the peer" },
	{ peer_stopped, VERDICT_PEER_STOPPED, say_stopped, "stopped on purpose, deadline not passed" },
	{ dropped, VERDICT_REFUSED, NULL, "the peer dropped this host from its config" },
	{ remote_port, VERDICT_REMOTE_PORT, say_remote_port, "the peer says its port is down" },
	{ remote_stuck, VERDICT_RDMA_BROKEN, say_remote_stuck, "RDMA: the peer says its device is stuck" },
	{ remote_worker, VERDICT_REMOTE_STALL, say_remote_worker, "RDMA: the peer says its device's worker is being replaced" },
	{ remote_late, VERDICT_REMOTE_STALL, say_remote_late, "the peer says its loop is late" },
	{ auth_failed, VERDICT_AUTH_FAILED, say_auth, "other key, or authentication refused" },
	{ other_version, VERDICT_INCOMPATIBLE, NULL, "no protocol version in common" },
	{ other_transport, VERDICT_INCOMPATIBLE, say_refusal, "this transport is impossible here or there" },
	{ refused, VERDICT_REFUSED, say_refusal, "refused by the peer" },
	{ over_limit, VERDICT_REFUSED, NULL, "limit of connections per device reached on this host" },
	{ nobody_listens, VERDICT_REFUSED, say_nobody, "the host answers, nobody listens there" },
	{ other_partition, VERDICT_RDMA_BROKEN, say_partition, "RDMA: no P_Key in common" },
	{ one_flow, VERDICT_NETWORK, say_flow, "other flows to the same address pass, this one does not" },
	{ large_fails, VERDICT_NETWORK, say_large, "the peer answers, large messages do not pass" },
	{ rdma_broken, VERDICT_RDMA_BROKEN, say_rdma, "IP works, RDMA does not" },
	{ control_blocked, VERDICT_CONTROL_BLOCKED, say_blocked, "the fabric works, control packets (UDP) get no answer" },
	{ probes_lost, VERDICT_NETWORK, NULL, "the peer answers, probes do not pass" },
	{ frozen, VERDICT_REMOTE_STALL, say_frozen, "control and fabric silent, the host answers" },
	{ rail_down, VERDICT_NETWORK, say_rail, "nothing answers from several hosts of the rail" },
	{ other_rail_ok, VERDICT_NETWORK, NULL, "the host answers on another rail, not on this one" },
	{ host_without_fabd, VERDICT_PEER_DOWN, say_no_fabd, "never connected, the host is there, no fabd answers" },
	{ sole_peer, VERDICT_PEER_DOWN, say_down, "nothing answers, sole peer of the rail" },
	{ nothing_answers, VERDICT_PEER_DOWN, say_down, "nothing answers, other hosts do" },
	{ large_lost_well, VERDICT_NETWORK, say_large, "connected, large messages do not pass" },
	{ heavy_loss, VERDICT_NETWORK, say_loss, "connected, 10 % lost or more" },
	{ damped, VERDICT_DEGRADED, say_damped, "connected, lost so often that it is damped" },
	{ lossy, VERDICT_DEGRADED, say_loss, "connected, 0.5 % lost or more" },
	{ slow, VERDICT_DEGRADED, say_slow, "connected, p99 of 100 ms or more" },
	{ slower, VERDICT_DEGRADED, say_slower, "connected, p99 far above its own usual for a while" },
	{ other_mtu, VERDICT_DEGRADED, say_mtu, "connected, the MTUs of the two ends differ" },
	{ other_pkey, VERDICT_DEGRADED, say_pkey, "connected, the P_Keys of the two ends do not fit" },
	{ well, VERDICT_OK, NULL, "connected" },
	{ anything, VERDICT_UNKNOWN, NULL, "being connected" },
};
/* clang-format on */

void verdict_decide(const struct verdict_facts *f, struct verdict_result *ret)
{
	const struct row *r = rows;

	while (!r->when(f))
		r++;
	*ret = (struct verdict_result){.verdict = r->verdict, .row = (int)(r - rows)};
	if (r->say)
		r->say(f, ret->why, sizeof(ret->why));
	else
		(void)str_copy(ret->why, sizeof(ret->why), r->text);
}

bool verdict_row_text(int row, char *buf, size_t size)
{
	if (row < 0 || (size_t)row >= ARRAY_LEN(rows) || !size)
		return false;
	buf[0] = '\0';
	str_append(buf, size, "| %d | %s | %s |", row, rows[row].text,
		   enum_text(&verdict_names, (int)rows[row].verdict));
	return true;
}

bool verdict_row_is_rail(int row)
{
	return row >= 0 && (size_t)row < ARRAY_LEN(rows) && rows[row].when == rail_down;
}
