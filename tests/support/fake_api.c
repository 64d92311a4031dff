/* SPDX-License-Identifier: BSD-2-Clause */
#include "fake_api.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "fake_fabric.h"
#include "fake_health.h"
#include "util.h"

#define LISTS 5 /* those of the fabric are fake_fabric.h's */
#define SINCE "2026-11-30T20:41:07.118Z"

struct fake {
	struct monitor *monitor; /* borrowed */
	json_t *lists[LISTS];	 /* owned, by enum api_list; serial = place + 1 */
	struct fake_fabric *fabric; /* owned */
	struct api api;
	struct api_ticket held;
	uint64_t dropped;
	bool up, hold;
	char who[96];
};

/* JSON with ' for ", printf-like. */
static json_t *jsonf(const char *fmt, ...) PRINTF_LIKE(1, 2);

static json_t *jsonf(const char *fmt, ...)
{
	json_error_t error;
	char *text = NULL;
	json_t *value;
	va_list ap;

	va_start(ap, fmt);
	if (vasprintf(&text, fmt, ap) < 0)
		abort();
	va_end(ap);
	for (char *p = text; *p; p++)
		if (*p == '\'')
			*p = '"';
	value = json_loads(text, JSON_REJECT_DUPLICATES, &error);
	if (!value) {
		(void)fprintf(stderr, "fake data: %s: %s\n", error.text, text);
		abort();
	}
	free(text);
	return value;
}

/* @changes wins over @base; both are taken. */
static json_t *merged(json_t *base, json_t *changes)
{
	(void)json_object_update(base, changes);
	json_decref(changes);
	return base;
}

static void add(struct fake *f, enum api_list list, json_t *base, json_t *changes)
{
	(void)json_array_append_new(f->lists[list], merged(base, changes));
}

/* ---- devices and ports ---- */

static json_t *worker(const char *kind, int n)
{
	return jsonf("{'name': '%s:mlx5_%d', 'kind': '%s', 'device': 'mlx5_%d',"
		     "'state': 'running', 'why': '', 'pid': %d, 'since': '" SINCE "',"
		     "'age_sec': 192.0, 'starts': 1, 'generation': 1, 'silent_ms': 12,"
		     "'hot_age_ms': 3, 'endpoints': 4, 'next_start_sec': null}",
		     kind, n, kind, n, 4000 + n);
}

static json_t *device(int n)
{
	return jsonf("{'ifindex': %d, 'ifname': 'mlx5_%d', 'node_type': 'ca',"
		     "'transport': 'infiniband', 'node_guid': '0x0002c9030000%02x00',"
		     "'sys_image_guid': '0x0002c9030000%02x03',"
		     "'node_desc': 'gpu0417 mlx5_%d', 'fw': '28.39.1002',"
		     "'vendor_id': '0x0002c9', 'part_id': '0x1021',"
		     "'hw_ver': '0x00000000', 'num_ports': 1,"
		     "'pci_address': '0000:%02x:00.0', 'pcie_width': 16,"
		     "'pcie_width_max': 16, 'pcie_speed': '32.0 GT/s',"
		     "'pcie_speed_max': '32.0 GT/s', 'is_vf': false, 'numa_node': null,"
		     "'ports': ['mlx5_%d/1'], 'workers': [],"
		     "'unavailable': {'numa_node': 'not_supported'},"
		     "'since': '" SINCE "', 'age_sec': 3542400.0}",
		     n, n, n, n, n, 0x10 + n, n);
}

static json_t *remote(int n, const char *state, const char *phys)
{
	return jsonf("{'node_guid': '0x0002c9020048%02x00',"
		     "'port_guid': '0x0002c9020048%02x00', 'node_type': 'switch',"
		     "'node_desc': 'leaf%02d', 'port': 22, 'lid': %d, 'state': '%s',"
		     "'physical_state': '%s', 'max_mtu': 4096, 'vl_cap': 4,"
		     "'operational_vls': 4, 'width_active': '4x',"
		     "'width_supported': '1x 2x 4x', 'speed_active': 'NDR',"
		     "'speed_supported': 'SDR DDR QDR FDR EDR HDR NDR',"
		     "'vendor_id': '0x0002c9', 'device_id': '0xd2f2',"
		     "'unavailable': {}, 'read_age_sec': 12.5}",
		     n, n, n + 4, 100 + n, state, phys);
}

static json_t *port(int n)
{
	json_t *o = jsonf(
		"{'ifindex': %d, 'ifname': 'mlx5_%d', 'port': 1, 'name': 'mlx5_%d/1',"
		"'rail': '%d', 'health': 'ok', 'health_why': '', 'since': '" SINCE "',"
		"'age_sec': 3542400.0, 'override': 'auto', 'override_by': null,"
		"'override_until': null, 'expected': true,"
		"'port_guid': '0x0002c9030000%02x01', 'link_layer': 'infiniband',"
		"'state': 'ACTIVE', 'physical_state': 'LINK_UP', 'lid': %d, 'lmc': 0,"
		"'lid_first': %d, 'lid_last': %d, 'sm_lid': 1, 'sm_sl': 0,"
		"'subnet_prefix': '0xfe80000000000000', 'active_mtu': 4096,"
		"'max_mtu': 4096, 'link_mtu': 4096, 'operational_vls': 4, 'vl_cap': 4,"
		"'link_vls': 4, 'width_active': '4x', 'width_enabled': '1x 2x 4x',"
		"'width_supported': '1x 2x 4x', 'speed_active': 'NDR',"
		"'speed_enabled': 'SDR DDR QDR FDR EDR HDR NDR',"
		"'speed_supported': 'SDR DDR QDR FDR EDR HDR NDR', 'rate_mbps': 400000,"
		"'cap_mask': '0x02010000', 'caps': ['CM', 'CLIENT_REG'],"
		"'pkeys': ['0xffff'], 'netdev': 'ib%d', 'netdev_index': %d}",
		n, n, n, n, n, 410 + n, 410 + n, 410 + n, n, 20 + n);

	return merged(
		o, jsonf("{'gids': [{'index': 0,"
			 "'gid': 'fe80:0000:0000:0000:0002:c903:0000:%02x01',"
			 "'type': 'ib', 'netdev': 'ib%d', 'netdev_index': %d}],"
			 "'sl2vl': [{'in_port': 0, 'vls': [0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3,"
			 "0, 1, 2, 15]}],"
			 "'vlarb': {'low': [{'vl': 0, 'weight': 64}], 'high': []},"
			 "'link_exists': true, 'link_healthy': true, 'remote': null,"
			 "'last_remote': 'leaf07/22',"
			 "'flags': [], 'addresses': ['10.2.%d.17'], 'source': 'poll',"
			 "'missed_events': 0, 'read_age_sec': 0.42,"
			 "'unavailable': {}}",
			 n, n, 20 + n, n));
}

/* A port across whose link nobody answers; @reason stands for all that is unknown. */
static json_t *port_dark(const char *state, const char *phys, const char *reason)
{
	return jsonf("{'state': '%s', 'physical_state': '%s', 'lid': null,"
		     "'lid_first': null, 'lid_last': null, 'active_mtu': null,"
		     "'link_mtu': null, 'operational_vls': null, 'link_vls': null,"
		     "'width_active': null, 'speed_active': null, 'rate_mbps': null,"
		     "'link_exists': false, 'link_healthy': null, 'remote': null,"
		     "'unavailable': {'lid': '%s', 'lid_first': '%s', 'lid_last': '%s',"
		     "'active_mtu': '%s', 'link_mtu': '%s', 'operational_vls': '%s',"
		     "'link_vls': '%s', 'width_active': '%s', 'speed_active': '%s',"
		     "'rate_mbps': '%s', 'link_healthy': '%s', 'remote': '%s'}}",
		     state, phys, reason, reason, reason, reason, reason, reason,
		     reason, reason, reason, reason, reason, reason);
}

static void add_devices(struct fake *f)
{
	for (int n = 0; n < 9; n++) {
		json_t *d = device(n);
		json_t *workers = json_object_get(d, "workers");

		(void)json_array_append_new(workers, worker("rdma", n));
		(void)json_array_append_new(workers, worker("mad", n));
		(void)json_array_append_new(f->lists[API_DEVICES], d);
	}
}

static void add_ports(struct fake *f)
{
	for (int n = 0; n < 9; n++) {
		json_t *p = merged(port(n), fake_health_well());

		if (n == 3) {
			p = merged(p, port_dark("DOWN", "POLLING", "link_down"));
			p = merged(p, fake_health_down());
		}
		if (n == 4)
			p = merged(p, fake_health_degraded());
		if (n == 8)
			p = merged(p, port_dark("DOWN", "DISABLED", "link_down"));
		if (n != 3 && n != 8)
			(void)json_object_set_new(p, "remote",
						  remote(n, "ACTIVE", "LINK_UP"));
		(void)json_array_append_new(f->lists[API_PORTS], p);
	}
	(void)json_object_update_new(
		json_array_get(f->lists[API_PORTS], 3),
		jsonf("{'health': 'bad', 'health_why': 'link DOWN POLLING',"
		      "'age_sec': 192.0, 'source': 'async'}"));
	(void)json_object_update_new(
		json_array_get(f->lists[API_PORTS], 4),
		jsonf("{'health': 'degraded', 'health_why': 'width 2x of 4x',"
		      "'age_sec': 518400.0, 'width_active': '2x', 'rate_mbps': 200000}"));
	(void)json_object_update_new(
		json_array_get(f->lists[API_PORTS], 8),
		jsonf("{'health': 'unused', 'health_why': 'never active',"
		      "'expected': false, 'rail': null}"));
}

/* ---- peers and connections ---- */

static json_t *connection(const char *peer, int rail, const char *role,
			  const char *transport, const char *address)
{
	json_t *o = jsonf(
		"{'key': '%s/%d:%s:%s:mlx5_%d/1>%s#0', 'peer': '%s', 'rail': '%d',"
		"'direction': '%s', 'transport': '%s', 'port': 'mlx5_%d/1',"
		"'local_address': '10.2.%d.17', 'remote_address': '%s', 'flow': 0,"
		"'verdict': 'ok', 'own_verdict': 'ok', 'held_by': null, 'why': '',"
		"'flaps': 0, 'flap_penalty': 0.0, 'damped': false, 'damped_until': null,"
		"'rtt_usual_p99_ns': 68000, 'consecutive_large_lost': 0, 'since': '" SINCE
		"', 'age_sec': 3542400.0,"
		"'state': 'connected', 'state_age_sec': 3542390.0, 'stage': 'up',"
		"'connected': true, 'late': false, 'connects': 1, 'losses': 0,"
		"'attempts': 1, 'heartbeat_ns': 1000000000, 'multiplier': 3,"
		"'sent': 3542390, 'received': 3542389, 'lost': 1, 'loss_percent': 0.0,"
		"'consecutive_lost': 0, 'dropped': 0, 'path_mtu': 4096,"
		"'last_control_age_sec': 4.2, 'last_fabric_age_sec': 0.31}",
		peer, rail, role, transport, rail, address, peer, rail, role, transport,
		rail, rail, address);

	return merged(
		o, jsonf("{'rtt_ns': {'samples': 60, 'min': 31000, 'mean': 40100,"
			 "'p50': 38000, 'p99': 71000, 'max': 160000, 'last': 37500,"
			 "'net_p50': 9000, 'host_p50': 29000, 'peer_p50': 14000},"
			 "'rtt_all_ns': {'samples': 3542390, 'p50': 37000, 'p99': 68000},"
			 "'clock': 'kernel', 'late_p99_ns': 61000,"
			 "'next_attempt_sec': null, 'error': null, 'error_stage': null,"
			 "'error_text': null, 'error_age_sec': null,"
			 "'peer_node': '%s', 'peer_port': 'mlx5_%d/1',"
			 "'peer_port_state': 'up', 'peer_device_state': 'ok',"
			 "'peer_lateness_ns': 310000,"
			 "'stop_cause': null, 'stop_left_sec': null, 'path': {"
			 "'device': 'mlx5_%d', 'port': 1, 'netdev': 'ib%d',"
			 "'netdev_mtu': 4092, 'source_address': '10.2.0.1',"
			 "'destination_address': '10.2.0.33', 'gateway': null,"
			 "'neighbour_state': 'reachable', 'neighbour_age_sec': 1.5,"
			 "'current': true, 'source_gid': null,"
			 "'source_gid_index': null, 'gid_type': null,"
			 "'destination_gid': null, 'source_lid': null,"
			 "'destination_lid': null, 'mtu': 4064, 'rate_mbps': null,"
			 "'pkey': '0xffff', 'pkey_index': 0, 'service_level': null,"
			 "'traffic_class': 0, 'hop_limit': null,"
			 "'flow_label': null, 'source_port': 40001, 'qpn': null,"
			 "'remote_qpn': null, 'peer_mtu': 4064, 'peer_pkey': null,"
			 "'peer_service_level': 0, 'peer_traffic_class': 0,"
			 "'mismatch': null}, 'history': ["
			 "{'at': '" SINCE "', 'from': 'fabric_probe',"
			 "'to': 'fabric_tx_probe_acks', 'event': 'ep_probes_done'},"
			 "{'at': '" SINCE "', 'from': 'fabric_tx_probe_acks',"
			 "'to': 'connected', 'event': 'peer_connected'}]}",
			 peer, rail, rail, rail));
}

/* What is different in a connection that does not work. */
static json_t *broken(const char *verdict, const char *why, const char *state,
		      const char *error, const char *text)
{
	return jsonf(
		"{'verdict': '%s', 'own_verdict': '%s', 'why': '%s', 'age_sec': 544.0,"
		"'state': '%s',"
		"'state_age_sec': 3.2, 'stage': 'connect', 'connected': false,"
		"'losses': 1, 'attempts': 17, 'rtt_ns': null,"
		"'consecutive_lost': 3, 'path_mtu': null, 'next_attempt_sec': 12.5,"
		"'error': '%s', 'error_stage': 'connect', 'error_text': '%s',"
		"'error_age_sec': 3.2}",
		verdict, verdict, why, state, error, text);
}

static void add_connections(struct fake *f)
{
	const enum api_list c = API_CONNECTIONS;

	add(f, c, connection("gpu0033", 2, "tx", "udp", "10.2.2.33"), json_object());
	add(f, c, connection("gpu0033", 2, "tx", "rc", "10.2.2.33"),
	    broken("rdma_broken", "udp ok 38us; rejected, reason 28", "wait_for_start",
		   "cm_rejected", "rejected by the peer, reason 28"));
	add(f, c, connection("gpu0033", 4, "tx", "udp", "10.2.4.33"), json_object());
	add(f, c, connection("gpu0033", 4, "rx", "udp", "10.2.4.33"), json_object());
	add(f, c, connection("gpu0034", 2, "tx", "udp", "10.2.2.34"), json_object());
	add(f, c, connection("gpu0034", 3, "tx", "udp", "10.2.3.34"),
	    broken("local_port", "mlx5_3/1 DOWN", "fabric_reset", "no_address",
		   "no device owns 10.2.3.17"));
	add(f, c, connection("storage01", 5, "tx", "udp", "10.2.5.201"),
	    broken("peer_stopped", "shutdown, 11m20s left", "send_reset",
		   "disconnected", "the peer closed"));
	(void)json_object_update_new(json_array_get(f->lists[c], 6),
				     jsonf("{'stop_cause': 'shutdown',"
					   "'stop_left_sec': 680.0}"));
	add(f, c, connection("storage02", 6, "tx", "udp", "fd00:2:6::202"),
	    broken("peer_down", "no answer for 12m; or this host is not in its config",
		   "send_reset", "cm_timeout", "no answer"));
}

static json_t *peer(const char *name, const char *verdict, const char *why,
		    const char *address, int rail)
{
	return jsonf("{'name': '%s', 'verdict': '%s', 'held_by': null,"
		     "'worst_rail': null, 'why': '%s',"
		     "'since': '" SINCE
		     "',"
		     "'age_sec': 544.0, 'node': '%s', 'addresses': ['%s'],"
		     "'rails': ['%d'], 'connections': [], 'mesh': 'rail',"
		     "'flows': 1, 'told_rails': [{'label': '%d', 'address': '%s',"
		     "'mtu': 4096, 'lid': null, 'gid': null,"
		     "'pkeys': ['0xffff']}], 'resolve_error': null}",
		     name, verdict, why, name, address, rail, rail, address);
}

static void add_peers(struct fake *f)
{
	const enum api_list p = API_PEERS;

	add(f, p,
	    peer("gpu0033", "rdma_broken", "rail 2: udp ok, rc rejected", "10.2.2.33",
		 2),
	    jsonf("{'addresses': ['10.2.2.33', '10.2.4.33'], 'rails': ['2', '4']}"));
	add(f, p, peer("gpu0034", "local_port", "mlx5_3/1 DOWN", "10.2.2.34", 2),
	    jsonf("{'addresses': ['10.2.2.34', '10.2.3.34'], 'rails': ['2', '3']}"));
	add(f, p,
	    peer("storage01", "peer_stopped", "shutdown, 11m20s left", "10.2.5.201", 5),
	    json_object());
	add(f, p,
	    peer("storage02", "peer_down", "no answer for 12m", "fd00:2:6::202", 6),
	    jsonf("{'node': null}"));
	add(f, p, peer("gpu0035", "unknown", "the name has no address yet", "", 0),
	    jsonf("{'addresses': [], 'rails': [], 'node': null,"
		  "'resolve_error': 'Name or service not known'}"));
}

static void add_history(struct fake *f)
{
	const enum api_list h = API_HISTORY;

	add(f, h,
	    jsonf("{'at': '" SINCE "', 'age_sec': 192.0, 'kind': 'connection', 'name':"
		  "'gpu0034/3:tx:udp:mlx5_3/1>10.2.3.34#0', 'from': 'ok', 'to': 'held',"
		  "'held_by': 'mlx5_3/1', 'why': 'local-port mlx5_3/1', 'more': 3}"),
	    json_object());
	add(f, h,
	    jsonf("{'at': '" SINCE "', 'age_sec': 192.1, 'kind': 'port', 'name':"
		  "'mlx5_3/1', 'from': 'ok', 'to': 'bad', 'held_by': null,"
		  "'why': 'link DOWN POLLING', 'more': 0}"),
	    json_object());
}

static void link_peers(struct fake *f)
{
	size_t i;
	json_t *c;

	json_array_foreach (f->lists[API_CONNECTIONS], i, c) {
		const char *name = json_string_value(json_object_get(c, "peer"));
		size_t j;
		json_t *p;

		json_array_foreach (f->lists[API_PEERS], j, p)
			if (str_eq(json_string_value(json_object_get(p, "name")), name))
				(void)json_array_append(
					json_object_get(p, "connections"),
					json_object_get(c, "key"));
	}
}

/* ---- the matrix ---- */

static json_t *matrix_cell(int rail, int lost, bool p99)
{
	json_t *o = jsonf("{'column': 'rail%d', 'connections': 16, 'held': %d,"
			  "'sent': %d, 'lost': %d, 'loss_percent': %s, 'p99_ns': %s,"
			  "'verdict': '%s'}",
			  rail, rail == 3 ? 16 : 0, rail == 3 ? 0 : 960, lost,
			  rail == 3 || p99 ? "null" : "0.0", p99 ? "71000" : "null",
			  rail == 3 ? "held" : lost ? "rdma_broken" : "ok");

	if (lost && !p99)
		o = merged(o, json_pack("{s:f}", "loss_percent", 100.0 * lost / 960));
	return o;
}

static json_t *matrix_row(const char *what, uint64_t *cursor)
{
	static const char *const names[] = {"same-leaf", "other-leaf"};
	int row = (int)*cursor;
	json_t *cells;

	if (row == ARRAY_LEN(names))
		return NULL;
	++*cursor;
	cells = json_array();
	for (int rail = 0; rail < 8; rail++)
		(void)json_array_append_new(cells, matrix_cell(rail, row && rail == 2 ? 120 : 0,
							       strstr(what, "p99")));
	return json_pack("{s:s, s:s, s:o}", "name", names[row], "verdict",
			 row ? "rdma_broken" : "held", "cells", cells);
}

/* ---- the interface ---- */

static json_t *fake_status(void *user)
{
	struct fake *f = user;
	json_t *o = jsonf(
		"{'node': 'gpu0417', 'version': '" FABD_VERSION "', 'schema': 1,"
		"'instance': '%s', 'pid': 4711, 'health': 'bad',"
		"'summary': 'local-port mlx5_3/1 DOWN; 1 more', 'since': '" SINCE "',"
		"'age_sec': 192.0, 'uptime_sec': 3542400.0,"
		"'ports': {'total': 9, 'ok': 6, 'degraded': 1, 'bad': 1, 'down': 1,"
		"'unused': 1, 'unknown': 0},"
		"'peers': {'total': 5, 'ok': 0, 'degraded': 0, 'bad': 4, 'down': 0,"
		"'unused': 0, 'unknown': 1},"
		"'verdicts': {'ok': 4, 'rdma_broken': 1, 'local_port': 1,"
		"'peer_stopped': 1, 'peer_down': 1},"
		"'connections': %d, 'workers': [], 'drops': {'stranger': 3, 'replay': 1},"
		"'fabric_drops': {}, 'overridden': {}, 'sm_lid': 1,"
		"'sm_age_sec': 2.0, 'unavailable': {}}",
		monitor_instance(f->monitor),
		(int)json_array_size(f->lists[API_CONNECTIONS]));

	(void)json_object_update_new(
		o, jsonf("{'refused': [{'address': '10.9.9.9', 'reason': 'stranger',"
			 "'count': 3, 'age_sec': 61.5}],"
			 "'config': {'file': '/etc/fabd/fabd.conf', 'source': 'file',"
			 "'since': '" SINCE "', 'age_sec': 3542400.0, 'errors': 0,"
			 "'warnings': 0, 'problems': []},"
			 "'cost': {'cpu_percent': 0.4, 'rss_kib': 9216,"
			 "'rss_workers_kib': 27648, 'packets_per_sec': 512.0,"
			 "'heartbeats_per_sec': 256.0, 'mads_per_sec': 0.2,"
			 "'turns': 907654321, 'turn_cpu_worst_ns': 2100000,"
			 "'late_p99_ns': 300000, 'late_worst_ns': 900000},"
			 "'clients': 1, 'seq': %d}",
			 (int)monitor_seq(f->monitor)));
	for (int n = 0; n < 9; n++)
		(void)json_array_append_new(json_object_get(o, "workers"),
					    worker("rdma", n));
	return o;
}

static bool selected(enum api_list list, const json_t *o, const char *arg)
{
	const char *key = list == API_PORTS ? "ifname" : "peer";

	if (list == API_HISTORY) { /* "SECONDS" or "SECONDS NAME" */
		const char *name = arg ? strchr(arg, ' ') : NULL;

		return !name || str_eq(json_string_value(json_object_get(o, "name")), name + 1);
	}
	return !arg || str_eq(json_string_value(json_object_get(o, key)), arg);
}

static json_t *fake_next(void *user, enum api_list list, const char *arg,
			 uint64_t *cursor)
{
	struct fake *f = user;

	if (list == API_MATRIX)
		return matrix_row(arg, cursor);
	if (list >= API_FABRIC_NODES)
		return fake_fabric_next(f->fabric, list, cursor);
	while (*cursor < json_array_size(f->lists[list])) {
		json_t *o = json_array_get(f->lists[list], (*cursor)++);

		if (selected(list, o, arg))
			return json_incref(o);
	}
	return NULL;
}

/* The names of an object: DEV/PORT, DEV:PORT; a key, PEER/RAIL. */
static bool has_name(enum api_list list, const json_t *o, const char *name)
{
	const char *full = json_string_value(
		json_object_get(o, list == API_CONNECTIONS ? "key" : "name"));
	size_t len = strlen(name);

	if (list == API_CONNECTIONS)
		return !strcmp(full, name) ||
		       (!strncmp(full, name, len) && full[len] == ':');
	for (; *full && *name; full++, name++)
		if (*full != *name && !(*full == '/' && *name == ':'))
			return false;
	return !*full && !*name;
}

static json_t *fake_find(struct fake *f, enum api_list list, const char *name,
			 int *ret_n)
{
	json_t *o, *found = NULL;
	size_t i;

	*ret_n = 0;
	json_array_foreach (f->lists[list], i, o) {
		if (!has_name(list, o, name))
			continue;
		found = o;
		++*ret_n;
	}
	return found;
}

static json_t *fake_get(void *user, enum api_list list, const char *name)
{
	int n;
	json_t *o = fake_find(user, list, name, &n);

	return n == 1 ? json_incref(o) : NULL;
}

static json_t *fake_port_counters(void *user, const char *name, int64_t since_sec)
{
	json_t *p = fake_get(user, API_PORTS, name), *counters = NULL;

	if (p)
		counters = fake_counters(json_string_value(json_object_get(p, "name")),
					 since_sec);
	json_decref(p);
	return counters;
}

static int fake_reset(void *user, const char *name, const char *who)
{
	struct fake *f = user;
	int n;

	if (!fake_find(f, API_CONNECTIONS, name, &n))
		return -ENOENT;
	(void)str_copy(f->who, sizeof(f->who), who);
	monitor_post(f->monitor, clock_now(), "connection", name, "state", "connected",
		     "fabric_reset", who);
	return n;
}

static int fake_set_health(void *user, const char *name, enum health_override health,
			   int64_t for_sec, const char *who)
{
	struct fake *f = user;
	int n;
	json_t *p = fake_find(f, API_PORTS, name, &n);
	bool on = health != OVERRIDE_AUTO;

	if (!p)
		return -ENOENT;
	(void)str_copy(f->who, sizeof(f->who), who);
	monitor_post(f->monitor, clock_now(), "port", name, "override",
		     json_string_value(json_object_get(p, "override")),
		     enum_name(&override_names, (int)health), who);
	(void)json_object_set_new(p, "override",
				  json_string(enum_name(&override_names, (int)health)));
	(void)json_object_set_new(p, "override_by",
				  on ? json_string(who) : json_null());
	(void)json_object_set_new(p, "override_until",
				  on && for_sec ? json_string(SINCE) : json_null());
	return 0;
}

/* ---- explain, check ---- */

static const char *fake_explain(void *user, const struct api_explain_what *what, json_t **ret)
{
	const struct fake *f = user;
	bool known = false;
	size_t i;
	json_t *o;

	json_array_foreach (f->lists[API_PEERS], i, o)
		known |= str_eq(json_string_value(json_object_get(o, "name")), what->peer);
	if (!known) {
		*ret = json_pack("{s:s}", "peer", what->peer);
		return "io.fabd.NoSuchPeer";
	}
	if ((what->rail && !str_eq(what->rail, "2")) || what->transport == TRANSPORT_UD) {
		*ret = json_pack("{s:s}", "connection", what->peer);
		return "io.fabd.NoSuchConnection";
	}
	*ret = jsonf("{'peer': 'gpu0033', 'rail': '2', 'transport': 'rc',"
		     "'connection': 'gpu0033/2:tx:rc:mlx5_2/1>10.2.2.33#0', 'port': 'mlx5_2/1',"
		     "'verdict': 'rdma_broken', 'own_verdict': 'rdma_broken',"
		     "'why': 'udp ok 38us; rejected, reason 28', 'since': '" SINCE "',"
		     "'age_sec': 544.0, 'place': 'remote', 'act': 'Act there.',"
		     "'wrong': 'connect', 'steps': ["
		     "{'step': 'name', 'mark': 'ok', 'text': 'gpu0033 > 10.2.2.33 (config)',"
		     "'detail': false},"
		     "{'step': 'mtu', 'mark': 'ok', 'text': '4096 here', 'detail': true},"
		     "{'step': 'connect', 'mark': 'bad', 'text': 'rejected by the peer, reason 28',"
		     "'detail': false},"
		     "{'step': 'heartbeat', 'mark': 'skipped', 'text': 'last 9m04s ago',"
		     "'detail': false}]}");
	return NULL;
}

static json_t *fake_check(void *user)
{
	(void)user;
	return jsonf("{'status': 'failed', 'found': 'failed',"
		     "'summary': 'mlx5_3/1 DOWN (leaf07/22); mlx5_4/1 2x of 4x', 'problems': ["
		     "{'status': 'failed', 'name': 'mlx5_3/1', 'text': 'DOWN (leaf07/22)'},"
		     "{'status': 'degraded', 'name': 'mlx5_4/1', 'text': '2x of 4x'}],"
		     "'ports': 8, 'ports_ok': 7, 'rails': 8, 'rails_ok': 7,"
		     "'read_age_sec': 0.42}");
}

/* ---- pings ---- */

static json_t *ping_result(const struct api_ping *p, const char *transport, int received)
{
	json_t *o = jsonf("{'key': '%s/2:tx:%s:mlx5_2/1>10.2.2.33#0', 'peer': '%s',"
			  "'rail': '2', 'transport': '%s', 'flow': 0, 'port': 'mlx5_2/1',"
			  "'local_address': '10.2.2.17', 'remote_address': '10.2.2.33',"
			  "'size': %d, 'done': true, 'count': %d, 'sent': %d,"
			  "'received': %d, 'lost': 0, 'dropped': 0, 'rtt_ns': null,"
			  "'clock': null, 'verdict': 'rdma_broken', 'why': 'SIDR status 1'}",
			  p->peer, transport, p->peer, transport, (int)p->size,
			  (int)p->count, received, received);

	if (received)
		o = merged(o, jsonf("{'rtt_ns': {'samples': %d, 'min': 31000,"
				    "'mean': 40100, 'p50': 38000, 'p99': 71000,"
				    "'max': 160000, 'last': 37500, 'net_p50': 9000,"
				    "'host_p50': 29000, 'peer_p50': 14000}, 'clock': 'kernel',"
				    "'verdict': 'ok', 'why': ''}",
				    received));
	return o;
}

static void ping(void *user, const struct api_ping *p, const struct api_ticket *t)
{
	struct fake *f = user;
	json_t *peer = NULL;
	size_t i;
	json_t *o;

	if (f->hold) {
		f->held = *t;
		return;
	}
	json_array_foreach (f->lists[API_PEERS], i, o)
		if (str_eq(json_string_value(json_object_get(o, "name")), p->peer))
			peer = o;
	if (!peer)
		t->answer(t->server, t->id, "io.fabd.NoSuchPeer",
			  json_pack("{s:s}", "peer", p->peer), false);
	else
		t->answer(t->server, t->id, NULL,
			  json_pack("{s:[o, o]}", "pings",
				    ping_result(p, "udp", (int)p->count),
				    ping_result(p, "rc", 0)),
			  false);
}

/* ---- the fabric ---- */

static json_t *fabric(void *user)
{
	return fake_fabric_summary(((struct fake *)user)->fabric);
}

static json_t *fabric_sa(void *user)
{
	(void)user;
	return fake_fabric_sa();
}

static const char *fabric_route(void *user, const char *from, const char *to, json_t **ret)
{
	return fake_fabric_route(((struct fake *)user)->fabric, from, to, ret);
}

static bool held(struct fake *f, const struct api_ticket *t)
{
	if (f->hold)
		f->held = *t;
	return f->hold;
}

static void fabric_port(void *user, const char *name, const struct api_ticket *t)
{
	struct fake *f = user;
	json_t *parameters = NULL;
	const char *error;

	if (held(f, t))
		return;
	error = fake_fabric_port(f->fabric, name, &parameters);
	t->answer(t->server, t->id, error, parameters, false);
}

static void sweep_fabric(void *user, bool cold, const char *who, const struct api_ticket *t)
{
	struct fake *f = user;

	(void)cold;
	(void)str_copy(f->who, sizeof(f->who), who);
	if (!held(f, t))
		t->answer(t->server, t->id, NULL, json_pack("{s:o}", "fabric", fabric(f)), false);
}

static void dropped(void *user, uint64_t ticket)
{
	((struct fake *)user)->dropped = ticket;
}

void fake_hold(struct fake *f)
{
	f->hold = true;
}

const struct api_ticket *fake_held(const struct fake *f)
{
	return f->held.id ? &f->held : NULL;
}

uint64_t fake_dropped(const struct fake *f)
{
	return f->dropped;
}

void fake_flap(struct fake *f)
{
	f->up = !f->up;
	monitor_post(f->monitor, clock_now(), "port", "mlx5_3/1", "state",
		     f->up ? "DOWN" : "ACTIVE", f->up ? "ACTIVE" : "DOWN",
		     "netlink, async +4 ms");
}

void fake_bulk(struct fake *f, int n)
{
	for (int i = 0; i < n; i++) {
		char address[32];

		(void)snprintf(address, sizeof(address), "10.%d.%d.%d", 100 + i / 65536,
			       i / 256 % 256, i % 256);
		add(f, API_CONNECTIONS, connection("bulk", 7, "tx", "udp", address),
		    json_object());
	}
}

const char *fake_who(const struct fake *f)
{
	return f->who;
}

const struct api *fake_api(struct fake *f)
{
	return &f->api;
}

struct fake *fake_new(struct monitor *m)
{
	struct fake *f = xcalloc(1, sizeof(*f));

	f->monitor = m;
	f->api = (struct api){.user = f,
			      .status = fake_status,
			      .next = fake_next,
			      .get = fake_get,
			      .port_counters = fake_port_counters,
			      .reset_connection = fake_reset,
			      .set_port_health = fake_set_health,
			      .fabric = fabric,
			      .fabric_sa = fabric_sa,
			      .fabric_route = fabric_route,
			      .fabric_port = fabric_port,
			      .sweep_fabric = sweep_fabric,
			      .ping = ping,
			      .explain = fake_explain,
			      .check = fake_check,
			      .dropped = dropped};
	f->fabric = fake_fabric_new();
	for (int i = 0; i < LISTS; i++)
		f->lists[i] = json_array();
	add_devices(f);
	add_ports(f);
	add_connections(f);
	add_peers(f);
	link_peers(f);
	add_history(f);
	monitor_post(m, clock_now(), "port", "mlx5_3/1", "state", "ACTIVE", "DOWN",
		     "netlink, async +4 ms");
	monitor_post(m, clock_now(), "port", "mlx5_3/1", "health", "ok", "bad",
		     "link DOWN POLLING");
	monitor_post(m, clock_now(), "connection",
		     "gpu0033/2:tx:rc:mlx5_2/1>10.2.2.33#0", "verdict", "ok",
		     "rdma_broken", "3 hb lost, udp 0 lost");
	return f;
}

struct fake *fake_free(struct fake *f)
{
	if (!f)
		return NULL;
	for (int i = 0; i < LISTS; i++)
		json_decref(f->lists[i]);
	fake_fabric_free(f->fabric);
	free(f);
	return NULL;
}
