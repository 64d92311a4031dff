/* SPDX-License-Identifier: BSD-2-Clause */
#include "names.h"

/* clang-format off */
#define TABLE(t) { t, (int)ARRAY_LEN(t) }

static const char *const roles[] = {
	[ROLE_TX] = "tx",
	[ROLE_RX] = "rx",
};
const struct enum_names role_names = TABLE(roles);

static const char *const transports[] = {
	[TRANSPORT_UDP] = "udp",
	[TRANSPORT_RC] = "rc",
	[TRANSPORT_UD] = "ud",
};
const struct enum_names transport_names = TABLE(transports);

static const char *const conn_states[] = {
	[CONN_IDLE] = "idle",
	[CONN_SEND_RESET] = "send_reset",
	[CONN_SEND_PROTOCOL_VERSION] = "send_protocol_version",
	[CONN_RESETTING] = "resetting",
	[CONN_RESET_DONE] = "reset_done",
	[CONN_WAIT_FOR_START] = "wait_for_start",
	[CONN_FABRIC_START] = "fabric_start",
	[CONN_FABRIC_PROBE] = "fabric_probe",
	[CONN_FABRIC_TX_PROBE_ACKS] = "fabric_tx_probe_acks",
	[CONN_CONNECTED] = "connected",
	[CONN_CONNECTED_PING] = "connected_ping",
	[CONN_FABRIC_RESET] = "fabric_reset",
	[CONN_DESTROY] = "destroy",
};
const struct enum_names conn_state_names = TABLE(conn_states);

static const char *const verdicts[] = {
	[VERDICT_UNKNOWN] = "unknown",
	[VERDICT_OK] = "ok",
	[VERDICT_DEGRADED] = "degraded",
	[VERDICT_SILENCED] = "silenced",
	[VERDICT_HELD] = "held",
	[VERDICT_LOCAL_PORT] = "local_port",
	[VERDICT_LOCAL_STALL] = "local_stall",
	[VERDICT_DEVICE_STUCK] = "device_stuck",
	[VERDICT_NO_ROUTE] = "no_route",
	[VERDICT_NO_SM] = "no_sm",
	[VERDICT_PEER_STOPPED] = "peer_stopped",
	[VERDICT_REMOTE_PORT] = "remote_port",
	[VERDICT_REMOTE_STALL] = "remote_stall",
	[VERDICT_AUTH_FAILED] = "auth_failed",
	[VERDICT_INCOMPATIBLE] = "incompatible",
	[VERDICT_REFUSED] = "refused",
	[VERDICT_RDMA_BROKEN] = "rdma_broken",
	[VERDICT_CONTROL_BLOCKED] = "control_blocked",
	[VERDICT_PEER_DOWN] = "peer_down",
	[VERDICT_NETWORK] = "network",
};
const struct enum_names verdict_names = TABLE(verdicts);

static const char *const healths[] = {
	[HEALTH_UNKNOWN] = "unknown",
	[HEALTH_OK] = "ok",
	[HEALTH_DEGRADED] = "degraded",
	[HEALTH_BAD] = "bad",
	[HEALTH_UNUSED] = "unused",
};
const struct enum_names health_names = TABLE(healths);

static const char *const overrides[] = {
	[OVERRIDE_AUTO] = "auto",
	[OVERRIDE_OK] = "ok",
	[OVERRIDE_BAD] = "bad",
};
const struct enum_names override_names = TABLE(overrides);

static const char *const worker_states[] = {
	[WORKER_STARTING] = "starting",
	[WORKER_RUNNING] = "running",
	[WORKER_CM_BLOCKED] = "cm_blocked",
	[WORKER_BACKOFF] = "backoff",
	[WORKER_STUCK] = "stuck",
	[WORKER_STOPPED] = "stopped",
};
const struct enum_names worker_state_names = TABLE(worker_states);

static const char *const worker_kinds[] = {
	[WORKER_RDMA] = "rdma",
	[WORKER_MAD] = "mad",
};
const struct enum_names worker_kind_names = TABLE(worker_kinds);

static const char *const unavailables[] = {
	[WHY_NONE] = "none",
	[WHY_NOT_READ] = "not_read",
	[WHY_NO_PERMISSION] = "no_permission",
	[WHY_NO_WORKER] = "no_worker",
	[WHY_NO_VERBS] = "no_verbs",
	[WHY_NO_UMAD] = "no_umad",
	[WHY_NOT_INFINIBAND] = "not_infiniband",
	[WHY_NOT_SUPPORTED] = "not_supported",
	[WHY_LINK_DOWN] = "link_down",
	[WHY_TIMEOUT] = "timeout",
	[WHY_BAD_STATUS] = "bad_status",
	[WHY_BAD_ANSWER] = "bad_answer",
	[WHY_UNREADABLE] = "unreadable",
	[WHY_NO_NETDEV] = "no_netdev",
	[WHY_OUT_OF_RANGE] = "out_of_range",
};
const struct enum_names unavailable_names = TABLE(unavailables);

static const char *const sources[] = {
	[SOURCE_START] = "start",
	[SOURCE_ASYNC] = "async",
	[SOURCE_NETLINK] = "netlink",
	[SOURCE_UEVENT] = "uevent",
	[SOURCE_POLL] = "poll",
	[SOURCE_MAD] = "mad",
	[SOURCE_OPERATOR] = "operator",
	[SOURCE_COUNTERS] = "counters",
	[SOURCE_NOTICE] = "notice",
	[SOURCE_TIME] = "time",
	[SOURCE_LLDP] = "lldp",
};
const struct enum_names source_names = TABLE(sources);

static const char *const ctl_cmds[] = {
	[CTL_NONE] = "none",
	[CTL_CHALLENGE] = "challenge",
	[CTL_RESET] = "reset",
	[CTL_RESET_ACK] = "reset_ack",
	[CTL_PROTOCOL_VERSION] = "protocol_version",
	[CTL_PROTOCOL_VERSION_ACK] = "protocol_version_ack",
	[CTL_CONNECTED] = "connected",
	[CTL_CONNECTED_ACK] = "connected_ack",
	[CTL_PING] = "ping",
	[CTL_PING_ACK] = "ping_ack",
	[CTL_RESTART] = "restart",
	[CTL_RESTART_ACK] = "restart_ack",
	[CTL_STOP] = "stop",
	[CTL_STOP_ACK] = "stop_ack",
	[CTL_UNKNOWN] = "unknown",
	[CTL_REFUSED] = "refused",
};
const struct enum_names ctl_cmd_names = TABLE(ctl_cmds);

static const char *const causes[] = {
	[CAUSE_NONE] = "none",
	[CAUSE_RESTART] = "restart",
	[CAUSE_SHUTDOWN] = "shutdown",
	[CAUSE_CONFIG] = "config",
	[CAUSE_ENDPOINT_ERROR] = "endpoint_error",
	[CAUSE_ENDPOINT_RESTART] = "endpoint_restart",
	[CAUSE_HEARTBEAT_LOST] = "heartbeat_lost",
	[CAUSE_PORT_DOWN] = "port_down",
	[CAUSE_OPERATOR] = "operator",
	[CAUSE_TIMEOUT] = "timeout",
};
const struct enum_names cause_names = TABLE(causes);

static const char *const refusals[] = {
	[REFUSE_NONE] = "none",
	[REFUSE_VERSION] = "version",
	[REFUSE_TRANSPORT] = "transport",
	[REFUSE_NOT_ALLOWED] = "not_allowed",
	[REFUSE_LIMIT] = "limit",
	[REFUSE_AUTH] = "auth",
	[REFUSE_NO_DEVICE] = "no_device",
};
const struct enum_names refusal_names = TABLE(refusals);

static const char *const ep_stages[] = {
	[STAGE_NONE] = "none",
	[STAGE_RESOLVE_ADDR] = "resolve_addr",
	[STAGE_RESOLVE_ROUTE] = "resolve_route",
	[STAGE_CONNECT] = "connect",
	[STAGE_LISTEN] = "listen",
	[STAGE_UP] = "up",
	[STAGE_TEARDOWN] = "teardown",
};
const struct enum_names ep_stage_names = TABLE(ep_stages);

static const char *const ep_errors[] = {
	[EPERR_NONE] = "none",
	[EPERR_NO_ADDRESS] = "no_address",
	[EPERR_NO_ROUTE] = "no_route",
	[EPERR_NO_NEIGHBOUR] = "no_neighbour",
	[EPERR_NO_PATH] = "no_path",
	[EPERR_CM_TIMEOUT] = "cm_timeout",
	[EPERR_CM_REFUSED] = "cm_refused",
	[EPERR_CM_REJECTED] = "cm_rejected",
	[EPERR_STALE] = "stale",
	[EPERR_DISCONNECTED] = "disconnected",
	[EPERR_SEND_FAILED] = "send_failed",
	[EPERR_LOCAL] = "local",
	[EPERR_DEVICE_GONE] = "device_gone",
	[EPERR_WORKER_DIED] = "worker_died",
	[EPERR_PORT_UNREACHABLE] = "port_unreachable",
	[EPERR_HOST_UNREACHABLE] = "host_unreachable",
	[EPERR_NOT_SUPPORTED] = "not_supported",
	[EPERR_LIMIT] = "limit",
};
const struct enum_names ep_error_names = TABLE(ep_errors);

static const char *const ep_clocks[] = {
	[EP_CLOCK_NONE] = "none",
	[EP_CLOCK_HOST] = "host",
	[EP_CLOCK_KERNEL] = "kernel",
	[EP_CLOCK_DEVICE] = "device",
};
const struct enum_names ep_clock_names = TABLE(ep_clocks);

static const char *const ep_gid_types[] = {
	[EP_GID_IB] = "ib",
	[EP_GID_ROCE_V1] = "roce_v1",
	[EP_GID_ROCE_V2] = "roce_v2",
};
const struct enum_names ep_gid_type_names = TABLE(ep_gid_types);

static const char *const drops[] = {
	[DROP_SHORT] = "short",
	[DROP_OVERSIZED] = "oversized",
	[DROP_MAGIC] = "magic",
	[DROP_MALFORMED] = "malformed",
	[DROP_VERSION] = "version",
	[DROP_STRANGER] = "stranger",
	[DROP_COOKIE] = "cookie",
	[DROP_UNAUTHENTICATED] = "unauthenticated",
	[DROP_BAD_AUTH] = "bad_auth",
	[DROP_REPLAY] = "replay",
	[DROP_EPOCH] = "epoch",
	[DROP_UNKNOWN] = "unknown",
	[DROP_SOURCE] = "source",
	[DROP_STATE] = "state",
	[DROP_LIMIT] = "limit",
	[DROP_KERNEL] = "kernel",
};
const struct enum_names drop_names = TABLE(drops);
