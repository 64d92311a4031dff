/* SPDX-License-Identifier: BSD-2-Clause */
#include "render.h"

#include <stdio.h>
#include <stdlib.h>

static void render_int_or_null(json_t *o, const char *key, bool known, uint64_t value)
{
	if (known)
		render_int(o, key, value);
	else
		render_set(o, key, json_null());
}

static const char *or_null(const char *text)
{
	return text[0] ? text : NULL;
}

static void render_address(json_t *o, const char *key, const struct addr *a)
{
	char buf[ADDR_TEXT_MAX];

	render_text(o, key, a && addr_is_set(a) ? addr_format(a, buf) : NULL);
}

static void render_key(json_t *o, const struct conn_key *k, const struct addr *local)
{
	char buf[CONN_KEY_MAX];

	render_text(o, "key", conn_key_format(k, buf));
	render_text(o, "peer", k->peer);
	render_text(o, "rail", k->rail);
	render_text(o, "transport", enum_name(&transport_names, (int)k->transport));
	render_text(o, "port",
		    strcmp(k->port_name, "-") ? or_null(k->port_name) : NULL);
	render_address(o, "local_address", local);
	render_address(o, "remote_address", &k->remote);
	render_int(o, "flow", k->flow);
}

static void render_flaps(json_t *o, const struct conn_view *v, const struct render_time *t)
{
	const struct flap *f = v->flap;
	bool damped = f && f->damped;

	render_int(o, "flaps", f ? f->count : 0);
	render_set(o, "flap_penalty", json_real(f ? flap_penalty(f, &v->flap_params, t->now) : 0));
	render_set(o, "damped", json_boolean(damped));
	if (damped)
		render_instant(o, "damped_until", flap_release(f, &v->flap_params), t);
	else
		render_set(o, "damped_until", json_null());
}

static void render_state(json_t *o, const struct conn *c, const struct render_time *t)
{
	render_text(o, "state", enum_name(&conn_state_names, (int)c->state));
	render_seconds(o, "state_age_sec", MAX(mono_sub(t->now, c->state_since), 0));
	render_text(o, "stage", enum_name(&ep_stage_names, (int)c->stage));
	render_set(o, "connected", json_boolean(c->connected));
	render_set(o, "late", json_boolean(c->late));
	render_int(o, "connects", c->connects);
	render_int(o, "losses", c->losses);
	render_int(o, "attempts", c->attempts);
	render_int_or_null(o, "heartbeat_ns", c->heartbeat > 0, (uint64_t)c->heartbeat);
	render_int(o, "multiplier", c->multiplier);
}

json_t *render_round_trip(const struct ep_stats *s)
{
	json_t *o;

	if (!s->samples)
		return json_null();
	o = json_object();
	render_int(o, "samples", s->samples);
	render_int(o, "min", s->rtt_min);
	render_int(o, "mean", s->rtt_mean);
	render_int(o, "p50", s->rtt_p50);
	render_int(o, "p99", s->rtt_p99);
	render_int(o, "max", s->rtt_max);
	render_int(o, "last", s->rtt_last);
	render_int_or_null(o, "net_p50", s->net_p50, s->net_p50);
	render_int_or_null(o, "host_p50", s->host_p50, s->host_p50);
	render_int_or_null(o, "peer_p50", s->peer_p50, s->peer_p50);
	return o;
}

static json_t *round_trip_all(const struct ep_stats *s)
{
	json_t *o;

	if (!s->samples_all)
		return json_null();
	o = json_object();
	render_int(o, "samples", s->samples_all);
	render_int(o, "p50", s->rtt_all_p50);
	render_int(o, "p99", s->rtt_all_p99);
	return o;
}

static const char *clock_name(const struct ep_stats *s)
{
	bool known = s->clock > EP_CLOCK_NONE && s->clock < EP_CLOCK__MAX;

	return known ? enum_name(&ep_clock_names, s->clock) : NULL;
}

static void render_traffic(json_t *o, const struct conn_view *v,
			   const struct render_time *t)
{
	const struct conn *c = v->c;
	const struct ep_stats *s = conn_stats(c);

	render_set(o, "rtt_ns", render_round_trip(s));
	render_set(o, "rtt_all_ns", round_trip_all(s));
	render_text(o, "clock", clock_name(s));
	render_int_or_null(o, "late_p99_ns", s->late_p99_us,
			   (uint64_t)s->late_p99_us * 1000);
	render_int_or_null(o, "rtt_usual_p99_ns", v->usual_p99 > 0, (uint64_t)v->usual_p99);
	render_int(o, "sent", s->sent);
	render_int(o, "received", s->received);
	render_int(o, "lost", s->lost);
	render_percent(o, "loss_percent", v->lately_lost, v->lately_sent);
	render_int(o, "consecutive_lost", s->consecutive_lost);
	render_int(o, "consecutive_large_lost", s->large_lost);
	render_int(o, "dropped", s->dropped);
	render_int_or_null(o, "path_mtu", conn_endpoint(c)->path.mtu,
			   conn_endpoint(c)->path.mtu);
	render_age(o, "last_control_age_sec", c->last_ctl_rx, t);
	render_age(o, "last_fabric_age_sec", c->last_fabric_rx, t);
}

static void render_error(json_t *o, const struct conn *c, const struct render_time *t)
{
	bool failed = c->error != EPERR_NONE;

	if (mono_is_set(c->start_at))
		render_seconds(o, "next_attempt_sec",
			       MAX(mono_sub(c->start_at, t->now), 0));
	else
		render_set(o, "next_attempt_sec", json_null());
	render_text(o, "error",
		    failed ? enum_name(&ep_error_names, (int)c->error) : NULL);
	render_text(o, "error_stage",
		    failed ? enum_name(&ep_stage_names, (int)c->error_stage) : NULL);
	render_text(o, "error_text", failed ? or_null(conn_error_text(c)) : NULL);
	render_age(o, "error_age_sec", failed ? c->error_at : MONO_NEVER, t);
}

static void render_told(json_t *o, const struct conn *c, const struct render_time *t)
{
	static const char *const states[] = {
		[TOLD_PORT_UNKNOWN] = NULL,
		[TOLD_PORT_UP] = "up",
		[TOLD_PORT_DOWN] = "down",
	};
	static const char *const devices[] = {
		[TOLD_DEVICE_UNKNOWN] = NULL,
		[TOLD_DEVICE_OK] = "ok",
		[TOLD_DEVICE_REPLACED] = "replaced",
		[TOLD_DEVICE_STUCK] = "stuck",
	};
	bool told = c->told_port < ARRAY_LEN(states);
	bool device = c->told_device < ARRAY_LEN(devices);
	bool stopped = c->stop_cause != CAUSE_NONE;

	render_text(o, "peer_node", or_null(conn_peer_node(c)));
	render_text(o, "peer_port", or_null(conn_peer_port(c)));
	render_text(o, "peer_port_state", told ? states[c->told_port] : NULL);
	render_text(o, "peer_device_state", device ? devices[c->told_device] : NULL);
	render_int_or_null(o, "peer_lateness_ns", mono_is_set(c->last_ctl_rx),
			   (uint64_t)c->told_lateness_us * 1000);
	render_text(o, "stop_cause",
		    stopped ? enum_name(&cause_names, (int)c->stop_cause) : NULL);
	if (stopped)
		render_seconds(o, "stop_left_sec",
			       MAX(mono_sub(c->stop_until, t->now), 0));
	else
		render_set(o, "stop_left_sec", json_null());
}

/* Oldest first. */
static json_t *render_history(const struct conn *c, const struct render_time *t)
{
	json_t *a = json_array();

	for (unsigned i = 0; i < conn_history_count(c); i++) {
		struct conn_history h = conn_history_get(c, i);
		json_t *o = json_object();

		render_instant(o, "at", h.at, t);
		render_text(o, "from", enum_name(&conn_state_names, (int)h.from));
		render_text(o, "to", enum_name(&conn_state_names, (int)h.to));
		render_text(o, "event", enum_name(&probe_event_names, (int)h.event));
		(void)json_array_append_new(a, o);
	}
	return a;
}

static void render_gids(json_t *o, const struct ep_path *p, bool source, bool destination)
{
	char gid[48];

	render_text(o, "source_gid", source ? gid_text(p->sgid, gid) : NULL);
	render_int_or_null(o, "source_gid_index", source, p->sgid_index);
	render_text(o, "gid_type",
		    source ? enum_name(&ep_gid_type_names, p->gid_type) : NULL);
	render_text(o, "destination_gid", destination ? gid_text(p->dgid, gid) : NULL);
}

static void render_hex16(json_t *o, const char *key, bool known, uint16_t value)
{
	char buf[8];

	(void)snprintf(buf, sizeof(buf), "0x%04x", value);
	render_text(o, key, known ? buf : NULL);
}

/* What the endpoint knows; the rest is null. */
static void render_endpoint(json_t *o, const struct ep_path *p)
{
	uint32_t k = p->known;

	render_gids(o, p, k & EP_PATH_SGID, k & EP_PATH_DGID);
	render_int_or_null(o, "source_lid", k & EP_PATH_LIDS, p->slid);
	render_int_or_null(o, "destination_lid", k & EP_PATH_LIDS, p->dlid);
	render_int_or_null(o, "mtu", p->mtu, p->mtu);
	render_int_or_null(o, "rate_mbps", k & EP_PATH_RATE, p->rate_mbps);
	render_hex16(o, "pkey", k & EP_PATH_PKEY, p->pkey);
	render_int_or_null(o, "pkey_index", k & EP_PATH_PKEY, p->pkey_index);
	render_int_or_null(o, "service_level", k & EP_PATH_SL, p->sl);
	render_int_or_null(o, "traffic_class", k & EP_PATH_CLASS, p->traffic_class);
	render_int_or_null(o, "hop_limit", k & EP_PATH_HOPS, p->hop_limit);
	render_int_or_null(o, "flow_label", k & EP_PATH_FLOW_LABEL, p->flow_label);
	render_int_or_null(o, "source_port", k & EP_PATH_SPORT, p->sport);
	render_int_or_null(o, "qpn", k & EP_PATH_QPS, p->qpn);
	render_int_or_null(o, "remote_qpn", k & EP_PATH_QPS, p->remote_qpn);
}

static json_t *render_path(const struct path_view *v, const char *port)
{
	const char *slash = port ? strrchr(port, '/') : NULL;
	json_t *o;

	if (!v)
		return json_null();
	o = json_object();
	render_set(o, "device", slash ? json_stringn(port, (size_t)(slash - port)) : json_null());
	render_int_or_null(o, "port", slash, slash ? strtoul(slash + 1, NULL, 10) : 0);
	render_text(o, "netdev", or_null(v->netdev));
	render_int_or_null(o, "netdev_mtu", v->netdev_mtu, v->netdev_mtu);
	render_address(o, "source_address", &v->source);
	render_address(o, "destination_address", &v->destination);
	render_address(o, "gateway", &v->gateway);
	render_text(o, "neighbour_state", v->neighbour_state);
	if (v->neighbour_state)
		render_seconds(o, "neighbour_age_sec", v->neighbour_age_ns);
	else
		render_set(o, "neighbour_age_sec", json_null());
	render_set(o, "current", json_boolean(v->up));
	render_endpoint(o, &v->path);
	render_int_or_null(o, "peer_mtu", v->told.mtu, v->told.mtu);
	render_hex16(o, "peer_pkey", v->told.pkey, v->told.pkey);
	render_int_or_null(o, "peer_service_level", v->told.mtu, v->told.sl);
	render_int_or_null(o, "peer_traffic_class", v->told.mtu, v->told.traffic_class);
	render_text(o, "mismatch", or_null(v->mismatch));
	return o;
}

json_t *render_connection(const struct conn_view *v, const struct render_time *t)
{
	json_t *o = json_object();

	render_key(o, &v->c->key, v->local);
	render_text(o, "direction", enum_name(&role_names, (int)v->c->key.role));
	render_text(o, "verdict", enum_name(&verdict_names, (int)v->verdict));
	render_text(o, "own_verdict", enum_name(&verdict_names, (int)v->own_verdict));
	render_text(o, "held_by", v->held_by && *v->held_by ? v->held_by : NULL);
	render_text(o, "why", v->why);
	render_since(o, v->verdict_since, t);
	render_flaps(o, v, t);
	render_state(o, v->c, t);
	render_traffic(o, v, t);
	render_error(o, v->c, t);
	render_told(o, v->c, t);
	render_set(o, "path",
		   render_path(v->path, strcmp(v->c->key.port_name, "-") ? v->c->key.port_name
									 : NULL));
	render_set(o, "history", render_history(v->c, t));
	return o;
}

json_t *render_ping(const struct ping_view *v)
{
	const struct ep_stats *s = &v->stats;
	json_t *o = json_object();

	render_key(o, v->key, v->local);
	render_int_or_null(o, "size", v->size, v->size);
	render_set(o, "done", json_boolean(v->done));
	render_int(o, "count", v->count);
	render_int(o, "sent", s->sent);
	render_int(o, "received", s->received);
	render_int(o, "lost", s->lost);
	render_int(o, "dropped", s->dropped);
	render_set(o, "rtt_ns", render_round_trip(s));
	render_text(o, "clock", clock_name(s));
	render_text(o, "verdict", enum_name(&verdict_names, (int)v->verdict));
	render_text(o, "why", v->why);
	return o;
}
