/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Evidence for verdicts: what each connection's own state, its port, the other
 * connections of the same peer, and the other peers on the same rail say. The rule
 * itself is lib/verdict.c's.
 */
#include <linux/neighbour.h>
#include <stdio.h>
#include <stdlib.h>

#include "manager.h"

#define LATELY_NS (3 * NSEC_PER_SEC)
/* How often a verdict is looked at again that nothing has happened to: soon while things
 * move, as much of the evidence is what came in the last seconds. */
#define RECHECK_NS (500 * NSEC_PER_MSEC)
#define RECHECK_OLD_NS (2 * NSEC_PER_SEC)
#define RECHECK_OK_NS (5 * NSEC_PER_SEC)
#define MOVING_NS (30 * NSEC_PER_SEC)
#define VERDICTS_PER_TURN 512
#define LOSSES_MIN 3
#define ACKED_MIN 2 /* one may have been on its way when the host died */
#define ACKED_AGE_NS (60 * NSEC_PER_SEC)
#define BOOTING_NS (60 * NSEC_PER_SEC)

void verdict_mark(struct manager *m, struct conn_entry *e)
{
	if (e->verdict_dirty)
		return;
	e->verdict_dirty = true;
	id_queue_push(&m->dirty, e->id);
	loop_defer_arm(m->judge);
}

static void mark_peer(struct manager *m, struct peer *p)
{
	if (p->verdict_dirty)
		return;
	p->verdict_dirty = true;
	p->next_dirty = m->dirty_peers;
	p->prev_dirty = NULL;
	if (p->next_dirty)
		p->next_dirty->prev_dirty = p;
	m->dirty_peers = p;
}

void verdict_mark_peer(struct manager *m, struct peer *p)
{
	mark_peer(m, p);
	loop_defer_arm(m->judge);
}

static void unmark_peer(struct manager *m, struct peer *p)
{
	if (p->next_dirty)
		p->next_dirty->prev_dirty = p->prev_dirty;
	if (p->prev_dirty)
		p->prev_dirty->next_dirty = p->next_dirty;
	else
		m->dirty_peers = p->next_dirty;
	p->verdict_dirty = false;
}

void verdict_forget_peer(struct manager *m, struct peer *p)
{
	if (p->verdict_dirty)
		unmark_peer(m, p);
}

enum health verdict_health(enum verdict v)
{
	switch (v) {
	case VERDICT_OK:
		return HEALTH_OK;
	case VERDICT_UNKNOWN:
		return HEALTH_UNKNOWN;
	case VERDICT_DEGRADED:
	case VERDICT_CONTROL_BLOCKED:
	case VERDICT_PEER_STOPPED:
	case VERDICT_SILENCED:
	case VERDICT_HELD:
		return HEALTH_DEGRADED;
	default:
		return HEALTH_BAD;
	}
}

static bool lately(struct mono at, struct mono now)
{
	return mono_is_set(at) && mono_sub(now, at) < LATELY_NS;
}

static int64_t detect_ns(const struct conn *c)
{
	return c->heartbeat * c->multiplier;
}

static bool conn_well(const struct conn *c)
{
	return c->connected && !c->late;
}

/* When it was lost to silence, its sends were acknowledged, and nothing since says that
 * who was to echo them is gone: a closed connection, or a port that is not listened at. */
static bool still_acked(const struct manager *m, const struct conn_entry *e, struct mono now)
{
	const struct conn *c = e->c;
	const struct peer_addr *a;

	if (c->key.transport != TRANSPORT_RC || c->connected || !c->late ||
	    c->error != EPERR_NONE || conn_stats(c)->acked < ACKED_MIN ||
	    mono_sub(now, c->lost_at) >= ACKED_AGE_NS)
		return false;
	a = e->peer ? peer_addr_first(m, &c->key.remote) : NULL;
	return !(a && a->ctl_unreachable == EPERR_PORT_UNREACHABLE &&
		 a->ctl_unreachable_at.ns > c->lost_at.ns);
}

static bool cm_answers(const struct conn *c, struct mono now)
{
	return !c->connected && mono_is_set(c->error_at) &&
	       mono_sub(now, c->error_at) < MAX(detect_ns(c), LATELY_NS) &&
	       (c->error == EPERR_CM_REFUSED || c->error == EPERR_CM_REJECTED ||
		c->error == EPERR_STALE);
}

/* Does another connection to that address show that the host lives, after this one was
 * lost? */
static bool answers_beside(const struct manager *m, const struct conn_entry *e,
			   const struct conn_entry *o, struct mono now)
{
	if (o == e || o->addr_index != e->addr_index || e->c->key.role != ROLE_TX ||
	    conn_well(e->c))
		return false;
	return cm_answers(o->c, now) ||
	       (o->c->lost_at.ns >= e->c->lost_at.ns - detect_ns(e->c) &&
		still_acked(m, o, now));
}

static void facts_of_peer(const struct manager *m, const struct conn_entry *e,
			  struct mono now, struct verdict_facts *f)
{
	const struct peer *p = e->peer;

	f->flow = e->c->key.flow;
	if (!p)
		return;
	PEER_EACH_TX(p, o) {
		f->beside_answers |= answers_beside(m, e, o, now);
		if (o->addr_index == e->addr_index && e->c->key.role == ROLE_TX &&
		    o->c->key.transport == e->c->key.transport) {
			f->flows++;
			f->flows_well += conn_well(o->c);
		}
		if (o == e || !conn_well(o->c))
			continue;
		f->host_ok = true;
		if (o->addr_index != e->addr_index || e->c->key.role != ROLE_TX)
			continue;
		if (o->c->key.transport == TRANSPORT_UDP)
			f->udp_ok = true;
		else
			f->rdma_ok = true;
	}
}

/* The other peers explain what is wrong; where nothing is, they need not be counted. */
static void facts_of_rails(struct manager *m, const struct conn_entry *e, struct mono now,
			   struct verdict_facts *f)
{
	const struct peer_addr *a;
	const struct rail_count *r;

	if (!e->peer || conn_well(e->c) || e->c->key.role == ROLE_RX)
		return;
	r = rail_now(m, e->c->key.rail, now);
	a = peer_addr_at(e->peer, e->addr_index);
	if (!r || !a)
		return;
	f->others = r->peers - (a->counted != RAIL_NO_WORD);
	f->others_down = r->down - (a->counted == RAIL_SILENT);
}

struct port_entry *conn_port(struct manager *m, const struct conn_entry *e)
{
	const char *name = e->bind->port_name;

	if (!strcmp(name, "-"))
		name = e->c->key.port_name; /* no way leads there any more */
	return strcmp(name, "-") ? port_find(m, name) : NULL;
}

struct worker *conn_worker(struct manager *m, const struct conn_entry *e)
{
	const struct port_entry *pe = e->bind->port_serial ? conn_port(m, e) : NULL;

	return pe ? pe->device->rdma : NULL;
}

/* The time in which this side could not do its part, as far as it explains the loss. */
static void facts_of_stall(struct manager *m, const struct conn_entry *e,
			   const struct worker *w, struct mono now, struct verdict_facts *f)
{
	const struct conn *c = e->c;
	int64_t worker = w && f->is_rdma ? (int64_t)w->pong.late_worst_us * NSEC_PER_USEC : 0;

	f->local_stall = mono_is_set(m->last_stall) && mono_is_set(c->lost_at) &&
			 llabs(mono_sub(m->last_stall, c->lost_at)) < LATELY_NS &&
			 (lately(m->last_stall, now) || c->told_lost) &&
			 m->stall_total >= detect_ns(c);
	f->stall_ns = m->stall_total;
	f->stall_who = m->stall_slept ? "this host (suspended)" : NULL;
	/* Its hot thread has the heartbeats; main may have been well all the time. */
	if (!f->local_stall && worker >= detect_ns(c) && lately(c->lost_at, now)) {
		f->local_stall = true;
		f->stall_ns = worker;
		f->stall_who = "the device's worker on this host";
	}
}

static void facts_of_host(struct manager *m, const struct conn_entry *e, struct mono now,
			  struct verdict_facts *f)
{
	const struct port_entry *pe = conn_port(m, e);
	const struct worker *w = pe ? pe->device->rdma : NULL;

	f->host_up_ns = clock_boot_ns();
	f->port_known = e->bind->error != EPERR_NO_ADDRESS;
	f->port_down = e->bind->port_down;
	f->port_why = e->bind->error ? e->bind->why : NULL;
	facts_of_stall(m, e, w, now, f);
	f->device_stuck = w && w->state == WORKER_STUCK && e->c->key.transport != TRANSPORT_UDP;
	f->sm_mute = pe && str_eq(pe->p.facts.link_layer, "infiniband") &&
		     !field_why(&port_table, &pe->p.facts, PF_SM_LID) && !pe->p.facts.sm_lid;
}

/* Confirmed a moment ago; or since all fell silent, and not given up since: the entry of a
 * host that is gone is hardly ever confirmed again. */
static bool neighbour_lives(const struct conn *c, uint16_t state, int64_t age, struct mono now)
{
	const uint16_t valid = NUD_REACHABLE | NUD_STALE | NUD_DELAY | NUD_PROBE;
	struct mono since = {MAX(c->lost_at.ns, c->ctl_unanswered_since.ns)};

	return ((state & NUD_REACHABLE) && age < LATELY_NS) ||
	       ((state & valid) && mono_is_set(since) && age < mono_sub(now, since));
}

static void neighbour(struct manager *m, const struct conn_entry *e, struct mono now,
		      struct verdict_facts *f)
{
	uint16_t state;
	int64_t age;

	/* A question to the kernel, which matters only where nobody else answers. */
	if (f->connected || !m->netlink || !e->bind->netdev_index || !f->ctl_silent ||
	    f->ctl_answers || f->udp_ok || f->rdma_ok)
		return;
	if (netlink_neighbour(m->netlink, e->bind->netdev_index, &e->c->key.remote, &state,
			      &age) == 0)
		f->neighbour_ok = neighbour_lives(e->c, state, age, now);
}

/* Losses of the last minute. A single lost message is no rate. */
static uint32_t lost_permille(struct conn_entry *e, const struct ep_stats *s,
			      struct mono now)
{
	uint64_t sent, lost;

	loss_note(&e->loss, s->sent, s->lost, now);
	loss_lately(&e->loss, s->sent, s->lost, &sent, &lost);
	return lost >= LOSSES_MIN && sent ? (uint32_t)(lost * 1000 / sent) : 0;
}

void verdict_loss(const struct conn_entry *e, uint64_t *ret_sent, uint64_t *ret_lost)
{
	const struct ep_stats *s = conn_stats(e->c);

	loss_lately(&e->loss, s->sent, s->lost, ret_sent, ret_lost);
}

/* What only the answer to a Reset brings to light: the next Reset renews it. */
static bool of_last_try(const struct conn *c, struct mono at, struct mono now)
{
	return mono_is_set(at) && mono_sub(now, at) < c->params.backoff_max + LATELY_NS;
}

/* The host said so by ICMP, and its fabd has not spoken since. */
static bool nobody_listens(const struct manager *m, const struct conn_entry *e,
			   struct mono now)
{
	const struct peer_addr *a = e->peer ? peer_addr_first(m, &e->c->key.remote) : NULL;

	return a && a->ctl_unreachable == EPERR_PORT_UNREACHABLE &&
	       of_last_try(e->c, a->ctl_unreachable_at, now) &&
	       a->ctl_unreachable_at.ns > e->c->last_ctl_rx.ns;
}

static void facts_of_conn(const struct manager *m, struct conn_entry *e, struct mono now,
			  struct verdict_facts *f)
{
	const struct conn *c = e->c;
	const struct peer *p = e->peer;
	const struct ep_stats *stats = conn_stats(c);
	int64_t patience = MAX(detect_ns(c), LATELY_NS);
	bool quiet; /* asked in vain for longer than between two tries: what it said is old */

	f->ctl_silent = mono_is_set(c->ctl_unanswered_since) &&
			mono_sub(now, c->ctl_unanswered_since) > patience;
	quiet = f->ctl_silent && !of_last_try(c, c->last_ctl_rx, now);
	f->is_rdma = c->key.transport != TRANSPORT_UDP;
	f->connected = c->connected;
	f->ever_connected = c->ever_connected;
	f->late = c->late;
	/* Not before the endpoint has answered: it may be what stood still. */
	f->told_lost = c->told_lost && !c->connected && !c->ep_reset_out;
	f->error = c->connected ? EPERR_NONE : c->error;
	if (f->error == EPERR_PORT_UNREACHABLE && !of_last_try(c, c->error_at, now) &&
	    !nobody_listens(m, e, now))
		f->error = EPERR_NONE;
	f->error_stage = c->error_stage;
	f->error_status = c->error_status;
	if (e->bind->error && !f->connected) {
		f->error = e->bind->error;
		f->error_stage = STAGE_RESOLVE_ADDR;
	}
	f->stopped = c->stop_cause != CAUSE_NONE && !c->connected;
	f->stop_cause = c->stop_cause;
	f->stop_left_ns = mono_is_set(c->stop_until) ? mono_sub(c->stop_until, now) : 0;
	f->told_port = c->told_port;
	f->told_device = quiet ? TOLD_DEVICE_UNKNOWN : c->told_device;
	f->peer_node = conn_peer_node(c);
	f->peer_port = conn_peer_port(c);
	/* A lateness shorter than the detection time explains no loss, and one that was
	 * told before the loss, or long ago, explains no silence since. */
	f->told_late_ns = (int64_t)c->told_lateness_us * NSEC_PER_USEC;
	if (f->told_late_ns < detect_ns(c) ||
	    (!c->connected && c->last_ctl_rx.ns <= c->lost_at.ns) ||
	    mono_sub(now, c->last_ctl_rx) > detect_ns(c) + LATELY_NS)
		f->told_late_ns = 0;
	f->refusal = c->connected || quiet ? REFUSE_NONE : c->refusal;
	f->auth_failed = (p && of_last_try(c, p->auth_failed_at, now) &&
			  p->auth_failed_at.ns > c->last_ctl_rx.ns) ||
			 f->refusal == REFUSE_AUTH;
	f->unknown_to_peer = lately(c->unknown_at, now) || nobody_listens(m, e, now);
	f->ctl_answers = mono_is_set(c->last_ctl_rx) &&
			 mono_sub(now, c->last_ctl_rx) < patience &&
			 (c->connected || c->told_lost || c->last_ctl_rx.ns > c->lost_at.ns);
	f->cm_answers = cm_answers(c, now);
	f->send_acked = still_acked(m, e, now);
	f->large_lost = stats->large_lost;
	f->large_size = c->params.probe_size ? c->params.probe_size
					     : conn_endpoint(c)->path.mtu;
	f->or_not_in_config = !c->ever_connected;
	f->loss_permille = lost_permille(e, stats, now);
	f->rtt_p99_ns = stats->rtt_p99;
}

/* ---- changes ---- */

static void report(struct manager *m, struct conn_entry *e, enum verdict before)
{
	char key[CONN_KEY_MAX], held_by[HELD_NAME_MAX];
	struct verdict_change change = {
		.key = key, .peer = e->c->key.peer, .why = e->why, .from = before,
		.to = e->verdict, .loud = verdict_health(e->verdict) == HEALTH_BAD};

	(void)conn_key_format(&e->c->key, key);
	monitor_post(m->monitor, loop_now(m->loop), "connection", key, "verdict",
		     enum_name(&verdict_names, (int)before),
		     enum_name(&verdict_names, (int)e->verdict), e->why);
	/* The peer's own fabd speaks of its probe; and that this one ends is said once. */
	if (e->c->key.role != ROLE_TX || m->stopping)
		return;
	history_add(m->history, loop_now(m->loop), "connection", key,
		    enum_name(&verdict_names, (int)before),
		    enum_name(&verdict_names, (int)e->verdict), conn_held_by(e, held_by), e->why);
	verdict_log_add(m->verdict_log, loop_now(m->loop), &change, &e->log_place);
}

/* A peer that answers again while the first attempt to connect goes on: that probes do
 * not pass is not known yet, so what was said of it before stands. */
static bool too_early(const struct conn_entry *e, enum verdict v, struct mono now)
{
	const struct conn *c = e->c;

	if (v != VERDICT_NETWORK ||
	    verdict_health((enum verdict)e->own_verdict) != HEALTH_BAD)
		return false;
	/* Resets are sent for as long as nothing answers; other states come to an end. */
	return c->state == CONN_SEND_RESET || mono_sub(now, c->state_since) < LATELY_NS;
}

/* ---- what another fault explains ---- */

const char *conn_held_by(const struct conn_entry *e, char buf[HELD_NAME_MAX])
{
	const char *port = strcmp(e->bind->port_name, "-") ? e->bind->port_name
							  : e->c->key.port_name;

	return held_name((enum holder)e->holder, port, e->c->key.peer, e->c->key.rail, buf);
}

/* Another connection to the peer tells of the same. */
static bool peer_told(const struct conn_entry *e)
{
	if (!e->peer)
		return false;
	PEER_EACH_TX(e->peer, o)
		if (o != e && o->own_verdict == e->own_verdict &&
		    o->verdict == (enum verdict)e->own_verdict)
			return true;
	return false;
}

/* Who is the first to blame the network for a whole rail tells of it. */
static bool rail_told(struct manager *m, const struct conn_entry *e, struct mono now)
{
	struct rail_count *r = e->peer && e->rail_wide ? rail_now(m, e->c->key.rail, now) : NULL;

	if (!r)
		return false;
	if (!r->teller && e->c->key.role == ROLE_TX)
		r->teller = e->serial;
	return r->teller && r->teller != e->serial;
}

/* @result: what it is by itself; becomes held where another fault explains it. */
static void hold(struct manager *m, struct conn_entry *e, struct mono now,
		 struct verdict_facts *f, struct verdict_result *result)
{
	const struct port_entry *pe = f->port_down ? conn_port(m, e) : NULL;
	struct held_facts h = {.own = result->verdict, .row = result->row};
	char name[HELD_NAME_MAX], why[VERDICT_WHY_MAX];

	e->own_verdict = (uint8_t)result->verdict;
	e->rail_wide = verdict_row_is_rail(result->row);
	e->by_neighbour = result->verdict == VERDICT_REMOTE_STALL && f->neighbour_ok &&
			  !f->cm_answers && !f->send_acked && !f->beside_answers;
	h.port_bad = pe && pe->p.health == HEALTH_BAD && port_is_down(&pe->p);
	h.peer_told = peer_told(e);
	/* An rx has the peer's own label for its rail, which may mean another one here. */
	h.rail_told = e->c->key.role == ROLE_TX && rail_told(m, e, now);
	e->holder = (uint8_t)held_decide(&h);
	if (e->holder == HOLDER_NONE)
		return;
	held_why(h.own, conn_held_by(e, name), why, sizeof(why));
	f->held = true;
	f->held_by = why;
	verdict_decide(f, result);
}

/* What the two ends tell of the path. */
static void facts_of_path(struct manager *m, const struct conn_entry *e,
			  struct verdict_facts *f)
{
	struct path_mismatch wrong;

	path_mismatch(m, e, &wrong);
	f->mtu_mismatch = wrong.mtu;
	f->own_mtu = wrong.own_mtu;
	f->peer_mtu = wrong.peer_mtu;
	f->pkey_mismatch = wrong.pkey;
	f->own_pkey = wrong.own_pkey;
	f->peer_pkey = wrong.peer_pkey;
}

void evidence_gather(struct manager *m, struct conn_entry *e, struct mono now,
		     struct verdict_facts *ret)
{
	*ret = (struct verdict_facts){0};
	facts_of_conn(m, e, now, ret);
	facts_of_host(m, e, now, ret);
	facts_of_peer(m, e, now, ret);
	facts_of_path(m, e, ret);
	facts_of_rails(m, e, now, ret);
	damping_facts(m, e, now, ret);
	neighbour(m, e, now, ret);
}

static void set_verdict(struct manager *m, struct conn_entry *e,
			const struct verdict_result *r)
{
	const char *before = e->why;

	e->verdict = r->verdict;
	e->why = pool_text(&m->shared, r->why);
	pool_put(&m->shared, before);
}

/* Spread, so that those that came up together are not looked at together for ever. */
static void judge_again(struct manager *m, struct conn_entry *e, struct mono now)
{
	struct mono last = e->verdict_since.ns > e->c->state_since.ns ? e->verdict_since
								       : e->c->state_since;
	int64_t wait = e->verdict == VERDICT_OK		  ? RECHECK_OK_NS
		       : mono_sub(now, last) < MOVING_NS ? RECHECK_NS
							  : RECHECK_OLD_NS;

	wait -= (int64_t)(mix64(e->id ^ (uint64_t)now.ns) % (uint64_t)(wait / 8));
	heap_set(&m->judge_at, &e->judge_at, mono_add(now, wait));
}

static void judge(struct manager *m, struct conn_entry *e, struct mono now)
{
	struct verdict_facts f;
	struct verdict_result result;
	enum verdict before = e->verdict;

	if (e->c->state == CONN_DESTROY) { /* nothing is expected of it any more */
		heap_set(&m->judge_at, &e->judge_at, MONO_NEVER);
		return;
	}
	evidence_gather(m, e, now, &f);
	verdict_decide(&f, &result);
	if (!f.ctl_answers || !too_early(e, result.verdict, now)) {
		hold(m, e, now, &f, &result);
		set_verdict(m, e, &result);
	}
	if (e->peer)
		mark_peer(m, e->peer);
	if (e->verdict != before) {
		e->verdict_since = now;
		report(m, e, before);
	}
	judge_again(m, e, now);
}

/* A name that has no address is no way to the peer; while the host comes up the resolver
 * may only be late. */
static enum verdict unresolved(void)
{
	return clock_boot_ns() < BOOTING_NS ? VERDICT_UNKNOWN : VERDICT_NO_ROUTE;
}

static void set_why(struct manager *m, struct peer *p, const char *why)
{
	const char *before = p->why;

	p->why = pool_text(&m->shared, why);
	pool_put(&m->shared, before);
}

/* One bad path of several is what it is, and not a peer that is away. */
static void why_of(const struct conn_entry *worst, char *buf, size_t size)
{
	int n, well;

	buf[0] = '\0';
	if (!worst)
		return;
	peer_count_flows(worst, &n, &well);
	if (n > 1 && well < n)
		str_append(buf, size, "%d of %d flows: ", n - well, n);
	str_append(buf, size, "%s", worst->why);
}

/* A peer is as its worst connection is, or as the address that cannot be found. */
static void judge_peers(struct manager *m, struct mono now)
{
	while (m->dirty_peers) {
		struct peer *p = m->dirty_peers;
		const struct conn_entry *worst = NULL;
		char why[sizeof(((struct verdict_result *)0)->why) + 32];
		enum verdict v;
		bool by_name = false;

		unmark_peer(m, p);
		PEER_EACH_TX(p, e)
			if (!worst || verdict_severity(e->verdict) >
					      verdict_severity(worst->verdict))
				worst = e;
		v = worst ? worst->verdict : VERDICT_UNKNOWN;
		why_of(worst, why, sizeof(why));
		set_why(m, p, why);
		if (*peer_resolve_error(p) &&
		    (!worst || verdict_severity(unresolved()) > verdict_severity(v))) {
			v = unresolved();
			by_name = true;
			set_why(m, p, peer_resolve_error(p));
		}
		if (v == p->verdict)
			continue;
		monitor_post(m->monitor, now, "peer", p->cfg->name, "verdict",
			     enum_name(&verdict_names, p->verdict), enum_name(&verdict_names, v),
			     peer_why(p));
		if (by_name) /* else a connection tells of it */
			history_add(m->history, now, "peer", p->cfg->name,
				    enum_name(&verdict_names, p->verdict),
				    enum_name(&verdict_names, v), NULL, peer_why(p));
		p->verdict = v;
		p->since = now;
	}
}

/* Worst last; for the order of peers and the summary. What another fault explains stands
 * behind the fault itself. */
int verdict_severity(enum verdict v)
{
	if (v == VERDICT_HELD || v == VERDICT_SILENCED)
		return 2;
	switch (verdict_health(v)) {
	case HEALTH_OK:
		return 0;
	case HEALTH_UNKNOWN:
		return 1;
	case HEALTH_DEGRADED:
		return 3;
	default:
		/* what is wrong here explains what is wrong elsewhere */
		return v == VERDICT_LOCAL_PORT || v == VERDICT_DEVICE_STUCK ? 5 : 4;
	}
}

void verdicts_dirty(struct manager *m, struct mono now)
{
	uint64_t id = 0;

	while (m->dirty.n && take_share(m, &m->judge_share, VERDICTS_PER_TURN)) {
		struct conn_entry *e;

		(void)id_queue_pop(&m->dirty, &id);
		e = conn_by_id(m, id);
		if (!e) /* gone meanwhile */
			continue;
		e->verdict_dirty = false;
		judge(m, e, now);
	}
	judge_peers(m, now);
}

void verdicts_tick(struct manager *m, struct mono now)
{
	for (int i = 0; i < 2 * VERDICTS_PER_TURN; i++) {
		struct heap_node *first = heap_first(&m->judge_at);

		if (!first || !mono_due(first->at, now))
			break;
		judge(m, container_of(first, struct conn_entry, judge_at), now);
	}
	judge_peers(m, now);
	verdict_log_tick(m->verdict_log, now);
}

void verdicts_free(struct manager *m)
{
	m->verdict_log = verdict_log_free(m->verdict_log);
	rails_free(m);
}
