/* SPDX-License-Identifier: BSD-2-Clause */
#include "config_int.h"

#include <stdlib.h>
#include <syslog.h>

#define SEC  INT64_C(1000000000)
#define MSEC INT64_C(1000000)
#define HOUR (3600 * SEC)
#define DAY  (24 * HOUR)

/* Longest path of a UNIX socket, with NUL (sun_path). */
#define SOCKET_PATH_MAX 108

#define FIELD(type, f) offsetof(struct type, f), sizeof(((struct type *)0)->f), 0
#define LIST(type, f, n)                                                               \
	offsetof(struct type, f), sizeof(((struct type *)0)->f),                       \
		offsetof(struct type, n)
#define TEXT_ROOM(type, f) sizeof(((struct type *)0)->f) - 1

static const struct enum_names log_levels = {
	(const char *const[]){"err", "warning", "notice", "info", "debug"}, 5};
static const struct enum_names mad_modes = {
	(const char *const[]){"auto", "spawn", "socket"}, 3};
const struct enum_names sweep_modes = {
	(const char *const[]){"local", "subnet", "off"}, 3};
static const struct enum_names auth_modes = {
	(const char *const[]){"off", "prefer", "require"}, 3};

/* clang-format off */
const struct config_row config_rows[] = {
	/* section, key, type, flags, place, least, most, default, unit, names, help */
	{ SECTION_FABD, "NodeName", ROW_LABEL, 0, FIELD(config, node_name),
	  1, TEXT_ROOM(config, node_name), "", "name", NULL,
	  "What this host calls itself to its peers. Default: the host name up to its first dot." },
	{ SECTION_FABD, "ListenStream", ROW_PATH, 0, FIELD(config, listen),
	  1, SOCKET_PATH_MAX - 1, "/run/fabd/fabd.sock", "path", NULL,
	  "Socket for queries. Not used when systemd passes the sockets." },
	{ SECTION_FABD, "AdminListenStream", ROW_PATH, 0, FIELD(config, admin_listen),
	  1, SOCKET_PATH_MAX - 1, "/run/fabd/fabd-admin.sock", "path", NULL,
	  "Socket for everything, for root and the group fabd-admin. Not used when systemd passes the sockets." },
	{ SECTION_FABD, "StateDirectory", ROW_PATH, ROW_MAY_BE_EMPTY, FIELD(config, state_dir),
	  0, TEXT_ROOM(config, state_dir), "/var/lib/fabd", "path", NULL,
	  "Where the last good configuration and what must outlive a restart are kept. Empty: nothing is kept." },
	{ SECTION_FABD, "LogLevel", ROW_ENUM, 0, FIELD(config, log_level),
	  LOG_ERR, LOG_DEBUG, "info", "level", &log_levels,
	  "Least urgent messages to log." },
	{ SECTION_FABD, "ControlPort", ROW_COUNT, 0, FIELD(config, control_port),
	  1, 65535, "18777", "port", NULL,
	  "Port of the control interface (UDP) and of the RDMA listeners. One number for the whole cluster." },
	{ SECTION_FABD, "ControlAddress", ROW_ADDRESSES, 0, LIST(config, control_addrs, n_control_addrs),
	  0, CONFIG_ADDRS_MAX, "", "address", NULL,
	  "Addresses on which the control interface listens. Repeatable. Default: all of the host." },
	{ SECTION_FABD, "Accept", ROW_RANGES, 0, LIST(config, accept, n_accept),
	  0, ARRAY_LEN(((struct config *)0)->accept), "", "address or range", NULL,
	  "Hosts that may probe this one although no [Peer] names them, as 10.2.0.0/16. Repeatable. Default: peers only." },
	{ SECTION_FABD, "MaxClients", ROW_COUNT, 0, FIELD(config, max_clients),
	  1, 4096, "64", "count", NULL,
	  "Clients of the two sockets at a time." },
	{ SECTION_FABD, "MaxIncoming", ROW_COUNT, 0, FIELD(config, max_rx),
	  1, 1000000, "20000", "count", NULL,
	  "Connections that others probe at a time." },
	{ SECTION_FABD, "MaxRcPerDevice", ROW_COUNT, 0, FIELD(config, max_rc_per_device),
	  1, 65536, "256", "count", NULL,
	  "Connections of transport rc on one device, both directions together." },
	{ SECTION_FABD, "StartBudget", ROW_REAL, 0, FIELD(config, start_budget),
	  0.1, 10000, "20", "starts a second", NULL,
	  "Connection attempts a second of the whole host." },
	{ SECTION_FABD, "RdmaWorker", ROW_PATH, 0, FIELD(config, rdma_worker),
	  1, TEXT_ROOM(config, rdma_worker), "", "path", NULL,
	  "Program to start for each RDMA device. Default: fabd's own." },
	{ SECTION_FABD, "MadWorker", ROW_PATH, 0, FIELD(config, mad_worker),
	  1, TEXT_ROOM(config, mad_worker), "", "path", NULL,
	  "Program to start, once for all devices, to ask the InfiniBand fabric, whatever MadMode= says. Default: fabd's own for each device." },
	{ SECTION_FABD, "MadMode", ROW_ENUM, 0, FIELD(config, mad_mode),
	  MAD_AUTO, MAD_SOCKET, "auto", "mode", &mad_modes,
	  "How to reach the MAD workers. spawn: start them; socket: connect to those of the service manager; auto: socket under systemd, else spawn." },
	{ SECTION_FABD, "MadSocketDirectory", ROW_PATH, 0, FIELD(config, mad_socket_dir),
	  1, SOCKET_PATH_MAX - 1 - DEVICE_NAME_MAX, "/run/fabd-mad", "path", NULL,
	  "Where the sockets of the MAD workers appear, DEVICE.sock each." },
	{ SECTION_FABD, "WorkerSilenceSec", ROW_TIME, 0, FIELD(config, worker_silence),
	  100 * MSEC, HOUR, "2s", "time", NULL,
	  "A worker that is silent for so long is killed and started again." },
	{ SECTION_FABD, "WorkerCmStallSec", ROW_TIME, 0, FIELD(config, worker_cm_stall),
	  SEC, HOUR, "30s", "time", NULL,
	  "A worker in which one call to the connection manager takes so long is killed and started again." },
	{ SECTION_FABD, "WorkerBackoffMinSec", ROW_TIME, 0, FIELD(config, worker_backoff_min),
	  10 * MSEC, HOUR, "200ms", "time", NULL,
	  "First wait before a worker that died is started again; doubles each time." },
	{ SECTION_FABD, "WorkerBackoffMaxSec", ROW_TIME, 0, FIELD(config, worker_backoff_max),
	  10 * MSEC, HOUR, "10s", "time", NULL,
	  "Longest wait before a worker that died is started again." },
	{ SECTION_FABD, "WorkerHealthySec", ROW_TIME, 0, FIELD(config, worker_healthy),
	  SEC, DAY, "30s", "time", NULL,
	  "A worker that ran for so long counts as healthy: its wait begins at the least again." },
	{ SECTION_FABD, "WorkerRemoveGraceSec", ROW_TIME, 0, FIELD(config, worker_remove_grace),
	  10 * MSEC, 60 * SEC, "500ms", "time", NULL,
	  "How long a worker may take to leave when its device goes away; then it is killed." },

	{ SECTION_PORTS, "Devices", ROW_GLOBS, 0, FIELD(config, devices),
	  0, TEXT_ROOM(config, devices), "*", "patterns", NULL,
	  "RDMA devices to watch, by name, as mlx5_*. Repeatable." },
	{ SECTION_PORTS, "IgnoreDevices", ROW_GLOBS, 0, FIELD(config, ignore_devices),
	  0, TEXT_ROOM(config, ignore_devices), "", "patterns", NULL,
	  "RDMA devices not to touch, also when Devices= matches. Repeatable." },
	{ SECTION_PORTS, "PollSec", ROW_TIME, 0, FIELD(config, poll),
	  100 * MSEC, HOUR, "1s", "time", NULL,
	  "How often local ports are read in case an event was missed. Never leaves the host." },
	{ SECTION_PORTS, "RemotePollSec", ROW_TIME, 0, FIELD(config, remote_poll),
	  SEC, DAY, "60s", "time", NULL,
	  "How often the port across the wire is read; it is also read on every change." },
	{ SECTION_PORTS, "MadTimeoutSec", ROW_TIME, 0, FIELD(config, mad_timeout),
	  10 * MSEC, 10 * SEC, "200ms", "time", NULL,
	  "How long to wait for an answer from the fabric before asking again." },
	{ SECTION_PORTS, "MadRetries", ROW_COUNT, 0, FIELD(config, mad_retries),
	  0, 10, "3", "count", NULL,
	  "How often to ask the fabric again." },
	{ SECTION_PORTS, "Sweep", ROW_ENUM, 0, FIELD(config, sweep),
	  SWEEP_MODE_LOCAL, SWEEP_MODE_OFF, "local", "mode", &sweep_modes,
	  "How far to look. local: own ports and those across the wire; subnet: the whole fabric too, from the hosts of SweepHosts=; off: nothing is asked across the wire." },
	{ SECTION_PORTS, "SweepHosts", ROW_GLOBS, 0, FIELD(config, sweep_hosts),
	  0, TEXT_ROOM(config, sweep_hosts), "*", "patterns", NULL,
	  "Hosts that look at the whole fabric when Sweep=subnet, by NodeName. Repeatable. One or two of a cluster are enough." },
	{ SECTION_PORTS, "SweepSec", ROW_TIME, 0, FIELD(config, sweep_interval),
	  SEC, DAY, "60s", "time", NULL,
	  "How often to look at the whole fabric." },
	{ SECTION_PORTS, "SweepMadsPerSec", ROW_COUNT, 0, FIELD(config, sweep_mads),
	  0, 1000000, "1000", "MADs a second", NULL,
	  "Most requests a second of a look at the whole fabric. 0: as many as it answers." },
	{ SECTION_PORTS, "SweepWindow", ROW_COUNT, 0, FIELD(config, sweep_window),
	  4, 512, "64", "count", NULL,
	  "Most requests to the fabric that wait for an answer at a time." },
	{ SECTION_PORTS, "SweepNotices", ROW_BOOL, 0, FIELD(config, sweep_notices),
	  0, 1, "no", "boolean", NULL,
	  "Subscribe to the notices of the subnet manager (InformInfo: the one thing that is ever set in a fabric)." },
	{ SECTION_PORTS, "CountersSec", ROW_TIME, 0, FIELD(config, counters),
	  SEC, HOUR, "30s", "time", NULL,
	  "How often the counters of local ports are read." },
	{ SECTION_PORTS, "LldpCommand", ROW_PROGRAM, ROW_MAY_BE_EMPTY, FIELD(config, lldp_command),
	  0, TEXT_ROOM(config, lldp_command), "lldpcli", "program", NULL,
	  "Program of lldpd that names the far ends of Ethernet ports; it is called with -f json0 show neighbors. Empty: it is not asked." },
	{ SECTION_PORTS, "LabelFile", ROW_PATH, 0, FIELD(config, label_file),
	  1, TEXT_ROOM(config, label_file), "", "path", NULL,
	  "File with the far ends of Ethernet ports, where no lldpd tells them: a line for each of DEVICE/PORT or network device, name and port of the other side." },

	{ SECTION_HEALTH, "Limit", ROW_LIMITS, 0, FIELD(config, health.limits),
	  0, 0, "", "limits", NULL,
	  "How many errors of a counter in which time are too many, as symbol_error 120/h or link_downed 2/10m; off: any number is well. Repeatable. Default: as fabctl port counters shows." },
	{ SECTION_HEALTH, "StableSec", ROW_TIME, 0, FIELD(config, health.stable),
	  0, DAY, "30s", "time", NULL,
	  "How long counters, flaps and notices of a port must be well before it is." },
	{ SECTION_HEALTH, "FlapHalfLifeSec", ROW_TIME, 0, FIELD(config, health.flap.half_life),
	  SEC, DAY, "15min", "time", NULL,
	  "Each time a port goes down adds 1000 to a penalty, which halves in this time." },
	{ SECTION_HEALTH, "FlapSuppress", ROW_REAL, 0, FIELD(config, health.flap.suppress),
	  0, 8000, "2500", "penalty", NULL,
	  "From this penalty on a port is degraded although it is up. 0: never." },
	{ SECTION_HEALTH, "FlapReuse", ROW_REAL, 0, FIELD(config, health.flap.reuse),
	  1, 8000, "750", "penalty", NULL,
	  "Until the penalty has come down to this." },
	{ SECTION_HEALTH, "NoticeWindowSec", ROW_TIME, 0, FIELD(config, health.notice_window),
	  SEC, DAY, "10min", "time", NULL,
	  "How long a notice of the fabric about a port counts." },

	{ SECTION_EXPECT, "Ports", ROW_COUNT, 0, FIELD(config, expect.ports),
	  0, 1024, "0", "count", NULL,
	  "How many RDMA ports of this host must be well for fabctl check to be. 0: those that are in use." },
	{ SECTION_EXPECT, "Rate", ROW_RATE, 0, FIELD(config, expect.rate_mbps),
	  0, 10000000, "", "rate", NULL,
	  "Least rate of each of these ports, as 400G. Default: none is asked for." },
	{ SECTION_EXPECT, "Rails", ROW_COUNT, 0, FIELD(config, expect.rails),
	  0, 1024, "0", "count", NULL,
	  "How many rails must have peers and reach them. 0: those that have peers." },
	{ SECTION_EXPECT, "Peers", ROW_SHARE, 0, FIELD(config, expect.peers),
	  0, 0, "", "share", NULL,
	  "How many peers each rail must reach: all, a number, or a share as 90%. Peers that were stopped on purpose count as reached. Default: one." },

	{ SECTION_PORT, "Address", ROW_PORT_ADDRESS, ROW_VITAL, FIELD(config_port, addr),
	  0, 0, "", "address", NULL,
	  "An IP address of this host that belongs to the port, where no network device says so." },
	{ SECTION_PORT, "Rail", ROW_LABEL, 0, FIELD(config_port, rail),
	  1, TEXT_ROOM(config_port, rail), "", "name", NULL,
	  "Name of the rail that the port is on." },
	{ SECTION_PORT, "Health", ROW_ENUM, 0, FIELD(config_port, health),
	  OVERRIDE_AUTO, OVERRIDE_BAD, "auto", "health", &override_names,
	  "ok or bad: what the port's health is to be, whatever is measured." },
	{ SECTION_PORT, "Expected", ROW_BOOL, 0, FIELD(config_port, expected),
	  0, 1, "no", "boolean", NULL,
	  "The port must be up: down from the first moment on is a failure, not unused." },

	{ SECTION_PROBE, "Transports", ROW_TRANSPORTS, ROW_VITAL, FIELD(config_probe, transports),
	  0, 0, "", "udp, rc, ud", NULL,
	  "What to probe over: udp (plain IP), ud (RDMA, one queue pair a port), rc (RDMA, one a connection). Repeatable. Default: ud udp; rc udp on iWARP; udp alone without RDMA device." },
	{ SECTION_PROBE, "Source", ROW_ADDRESS, ROW_VITAL, FIELD(config_probe, source),
	  0, 0, "", "address", NULL,
	  "Local address to probe from. Default: as routed." },
	{ SECTION_PROBE, "HeartbeatSec", ROW_TIME, 0, FIELD(config_probe, heartbeat),
	  10 * MSEC, HOUR, "1s", "time", NULL,
	  "Interval of heartbeats. Below 100ms only with AllowFast=yes." },
	{ SECTION_PROBE, "AllowFast", ROW_BOOL, 0, FIELD(config_probe, allow_fast),
	  0, 1, "no", "boolean", NULL,
	  "Allow heartbeats from 10ms on." },
	{ SECTION_PROBE, "MinReceiveSec", ROW_TIME, 0, FIELD(config_probe, min_receive),
	  0, HOUR, "0", "time", NULL,
	  "Shortest interval of heartbeats that this host is willing to receive and answer, from 10ms on; a peer that wants shorter ones keeps to it. 0: 100ms, and 10ms with AllowFast=yes." },
	{ SECTION_PROBE, "DetectMultiplier", ROW_COUNT, 0, FIELD(config_probe, multiplier),
	  1, 100, "3", "count", NULL,
	  "A peer is down after so many heartbeat intervals of silence." },
	{ SECTION_PROBE, "FlapSuppress", ROW_REAL, 0, FIELD(config_probe, flap_suppress),
	  0, 8000, "2500", "penalty", NULL,
	  "Each loss of a connection that was not on purpose adds 1000 to a penalty; from this on it is degraded although connected, until FlapReuse= of [Health]. 0: never." },
	{ SECTION_PROBE, "UsualSec", ROW_TIME, 0, FIELD(config_probe, usual),
	  0, DAY, "10min", "time", NULL,
	  "How long a connection must be well before its round trips count as usual. Slower than that for a fifth of this time is degraded. 0: never." },
	{ SECTION_PROBE, "SlowFactor", ROW_REAL, 0, FIELD(config_probe, slow_factor),
	  1.5, 1000, "3", "factor", NULL,
	  "How many times its usual a round trip (99 of 100) must be to count as slow." },
	{ SECTION_PROBE, "PingSec", ROW_TIME, 0, FIELD(config_probe, ping),
	  SEC, HOUR, "10s", "time", NULL,
	  "Interval of pings on the control interface while connected." },
	{ SECTION_PROBE, "BackoffMinSec", ROW_TIME, 0, FIELD(config_probe, backoff_min),
	  100 * MSEC, HOUR, "1s", "time", NULL,
	  "Least wait between two attempts to connect." },
	{ SECTION_PROBE, "BackoffMaxSec", ROW_TIME, 0, FIELD(config_probe, backoff_max),
	  100 * MSEC, DAY, "60s", "time", NULL,
	  "Longest wait between two attempts to connect." },
	{ SECTION_PROBE, "ResolveTimeoutSec", ROW_TIME, 0, FIELD(config_probe, resolve_timeout),
	  100 * MSEC, 60 * SEC, "2s", "time", NULL,
	  "How long resolving the address, and then the route, of an RDMA connection may take." },
	{ SECTION_PROBE, "ConnectTimeoutSec", ROW_TIME, 0, FIELD(config_probe, connect_timeout),
	  100 * MSEC, 60 * SEC, "5s", "time", NULL,
	  "How long the connect of an RDMA connection may take." },
	{ SECTION_PROBE, "AttemptTimeoutSec", ROW_TIME, 0, FIELD(config_probe, attempt_timeout),
	  SEC, HOUR, "15s", "time", NULL,
	  "How long one step of an attempt to connect may take altogether." },
	{ SECTION_PROBE, "TrafficClass", ROW_COUNT, 0, FIELD(config_probe, traffic_class),
	  0, 255, "0", "number", NULL,
	  "Traffic class (the TOS byte) of probes: that of the traffic they shall speak for." },
	{ SECTION_PROBE, "ServiceLevel", ROW_COUNT, ROW_MAY_BE_NONE, FIELD(config_probe, service_level),
	  0, 15, "", "number", NULL,
	  "Service level of probes (InfiniBand), socket priority (udp). Default: as the path says." },
	{ SECTION_PROBE, "Flows", ROW_COUNT, 0, FIELD(config_probe, flows),
	  1, 64, "1", "count", NULL,
	  "Connections per address and transport, each by a path of its own where the network has several." },
	{ SECTION_PROBE, "Mesh", ROW_ENUM, 0, FIELD(config_probe, mesh),
	  MESH_RAIL, MESH_NONE, "rail", "mode", &mesh_modes,
	  "Rails that the peer tells. rail: each from the own rail of its name; full: each from every own rail; none: only Address= is probed." },
	{ SECTION_PROBE, "AckTimeout", ROW_COUNT, 0, FIELD(config_probe, ack_timeout),
	  0, 31, "0", "exponent", NULL,
	  "rc: the device waits 4.096us * 2^N for an acknowledgement. 0: as short as the heartbeat demands." },
	{ SECTION_PROBE, "ProbeSmall", ROW_COUNT, 0, FIELD(config_probe, probe_small),
	  1, 1000, "8", "count", NULL,
	  "Small packets that must pass before a connection counts as connected." },
	{ SECTION_PROBE, "ProbeLarge", ROW_COUNT, 0, FIELD(config_probe, probe_large),
	  0, 1000, "1", "count", NULL,
	  "Packets of ProbeSize= that must pass before a connection counts as connected." },
	{ SECTION_PROBE, "ProbeSize", ROW_SIZE, 0, FIELD(config_probe, probe_size),
	  0, 65000, "0", "bytes", NULL,
	  "Size of large packets; every tenth heartbeat is one. 0: what the path carries whole." },
	{ SECTION_PROBE, "Authentication", ROW_ENUM, ROW_VITAL, FIELD(config_probe, auth),
	  AUTH_OFF, AUTH_REQUIRE, "prefer", "mode", &auth_modes,
	  "Where there is a KeyFile=: require takes signed messages only; prefer takes unsigned ones from a peer that has not signed since the start; off signs nothing." },
	{ SECTION_PROBE, "KeyFile", ROW_PATH, ROW_VITAL, FIELD(config_probe, key_file),
	  1, TEXT_ROOM(config_probe, key_file), "", "path", NULL,
	  "File with a key per line, in hexadecimal or as base64:... The first key signs, all verify. fabd runs as _fabd: mode 0640, owner root, group _fabd." },

	{ SECTION_PEER, "Address", ROW_PEER_ADDRESSES, ROW_VITAL, LIST(config_peer, addrs, n_addrs),
	  0, CONFIG_ADDRS_MAX, "", "address or host name", NULL,
	  "Where the peer is, an address per rail. Repeatable. fe80::1%ib0 for link-local addresses. A name stands for all its addresses. Default: NAME, looked up." },
	{ SECTION_PEER, "Rail", ROW_LABELS, ROW_VITAL, LIST(config_peer, rails, n_rails),
	  0, CONFIG_ADDRS_MAX, "", "name", NULL,
	  "Names of the rails, in the order of Address=. Repeatable. Default: 0, 1, ..." },
	{ SECTION_PEER, "Port", ROW_COUNT, ROW_VITAL, FIELD(config_peer, port),
	  1, 65535, "", "port", NULL,
	  "Port of the peer's control interface. Default: ControlPort= of this host." },
};
/* clang-format on */
const size_t config_n_rows = ARRAY_LEN(config_rows);
_Static_assert(ARRAY_LEN(config_rows) <= CONFIG_ROWS_MAX, "sets of rows hold them all");
/* ROW_ENUM writes an int. */
_Static_assert(sizeof(enum mad_mode) == sizeof(int) &&
		       sizeof(enum auth_mode) == sizeof(int) &&
		       sizeof(enum sweep_mode) == sizeof(int) &&
		       sizeof(enum mesh_mode) == sizeof(int) &&
		       sizeof(enum health_override) == sizeof(int),
	       "enums are int");

const char *config_section_name(enum config_section s)
{
	static const char *const names[SECTION__MAX] = {
		[SECTION_FABD] = "Fabd", [SECTION_PORTS] = "Ports",
		[SECTION_HEALTH] = "Health", [SECTION_EXPECT] = "Expect",
		[SECTION_PORT] = "Port",
		[SECTION_PROBE] = "Probe", [SECTION_PEER] = "Peer",
	};
	return names[s];
}

bool config_section_is_named(enum config_section s)
{
	return s == SECTION_PORT || s == SECTION_PEER;
}

bool config_row_in(const struct config_row *r, enum config_section s)
{
	return r->section == s || (r->section == SECTION_PROBE && s == SECTION_PEER);
}

const struct config_row *config_row_find(enum config_section s, const char *key)
{
	for (size_t i = 0; i < config_n_rows; i++)
		if (config_row_in(&config_rows[i], s) &&
		    str_eq(config_rows[i].key, key))
			return &config_rows[i];
	return NULL;
}

bool config_type_is_list(enum row_type t)
{
	switch (t) {
	case ROW_TRANSPORTS:
	case ROW_ADDRESSES:
	case ROW_PEER_ADDRESSES:
	case ROW_RANGES:
	case ROW_LABELS:
	case ROW_GLOBS:
	case ROW_LIMITS:
		return true;
	case ROW_BOOL:
	case ROW_COUNT:
	case ROW_REAL:
	case ROW_TIME:
	case ROW_SIZE:
	case ROW_RATE:
	case ROW_SHARE:
	case ROW_LABEL:
	case ROW_PATH:
	case ROW_PROGRAM:
	case ROW_ENUM:
	case ROW_ADDRESS:
	case ROW_PORT_ADDRESS:
		break;
	}
	return false;
}

static void names_range(const struct enum_names *t, char *buf, size_t size)
{
	buf[0] = '\0';
	for (int i = 0; i < t->n; i++)
		str_append(buf, size, "%s%s",
			   i == 0	   ? ""
			   : i == t->n - 1 ? " or "
					   : ", ",
			   enum_text(t, i));
}

void config_row_range(const struct config_row *r, char *buf, size_t size)
{
	char lo[32], hi[32];

	buf[0] = '\0';
	switch (r->type) {
	case ROW_BOOL:
		str_append(buf, size, "yes or no");
		break;
	case ROW_TIME:
		str_append(buf, size, "a time from %s to %s",
			   config_time_text((int64_t)r->min, lo),
			   config_time_text((int64_t)r->max, hi));
		break;
	case ROW_COUNT:
		str_append(buf, size, "a number from %.0f to %.0f", r->min, r->max);
		break;
	case ROW_REAL:
		str_append(buf, size, "a number from %g to %g", r->min, r->max);
		break;
	case ROW_RATE:
		str_append(buf, size, "a rate in bits a second, as 400G or 2.5G, at most 10T");
		break;
	case ROW_SHARE:
		str_append(buf, size, "all, a number or a percentage");
		break;
	case ROW_SIZE:
		str_append(buf, size, "bytes from %.0f to %.0f", r->min, r->max);
		break;
	case ROW_ENUM:
		names_range(r->names, buf, size);
		break;
	case ROW_LABEL:
	case ROW_LABELS:
		str_append(buf, size, "a name without blanks and / : > #");
		break;
	case ROW_PATH:
		str_append(buf, size, "an absolute path");
		break;
	case ROW_PROGRAM:
		str_append(buf, size, "a program, by name or absolute path");
		break;
	case ROW_TRANSPORTS:
		str_append(buf, size, "one or more of udp, rc, ud");
		break;
	case ROW_ADDRESS:
	case ROW_PORT_ADDRESS:
		str_append(buf, size, "an IP address");
		break;
	case ROW_ADDRESSES:
		str_append(buf, size, "IP addresses");
		break;
	case ROW_PEER_ADDRESSES:
		str_append(buf, size, "IP addresses or host names");
		break;
	case ROW_RANGES:
		str_append(buf, size, "IP addresses or ranges");
		break;
	case ROW_GLOBS:
		str_append(buf, size, "patterns");
		break;
	case ROW_LIMITS:
		str_append(buf, size, "COUNTER N/TIME or COUNTER off, separated by commas");
		break;
	}
}

void config_defaults(enum config_section s, void *base)
{
	for (size_t i = 0; i < config_n_rows; i++)
		if (config_rows[i].section == s)
			config_value_reset(&config_rows[i], base);
}
