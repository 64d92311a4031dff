/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The matrix of connections (lib/matrix.h), a row at a time: by peer each peer's own
 * probes, by leaf or rail all of them, which is kept for a moment while its rows are
 * fetched.
 */
#include <stdio.h>
#include <stdlib.h>

#include "matrix.h"
#include "sweeps.h"

#define WINDOW_NS (60 * NSEC_PER_SEC)
#define KEPT_NS	  NSEC_PER_SEC
/* So many at once are asked for their figures of now; of more those of some seconds ago
 * must do. */
#define FRESH_MAX 2000
#define CACHES	  ((MATRIX_RAIL + 1) * (MATRIX_P99 + 1))

struct matrix_cache {
	struct matrix matrix;
	enum matrix_by by;
	enum matrix_show show;
	struct mono at; /* unset: empty */
};

/* ---- what a connection brings ---- */

/* Its own fault is not what this connection shows: another one explains it, or somebody
 * wants no word of it. */
static bool is_held(enum verdict v)
{
	return v == VERDICT_HELD || v == VERDICT_SILENCED || v == VERDICT_LOCAL_PORT ||
	       v == VERDICT_LOCAL_STALL || v == VERDICT_DEVICE_STUCK;
}

/* What is held by its peer or rail is lost on the way all the same. */
static enum verdict shown_verdict(const struct conn_entry *e)
{
	bool away = e->holder == HOLDER_PEER || e->holder == HOLDER_RAIL;

	return e->verdict == VERDICT_HELD && away ? (enum verdict)e->own_verdict : e->verdict;
}

static void sample_of(const struct manager *m, const struct conn_entry *e,
		      struct matrix_sample *s)
{
	const struct conn *c = e->c;
	enum verdict v = shown_verdict(e);
	uint64_t missed = 0;

	*s = (struct matrix_sample){
		.verdict = v,
		.severity = verdict_severity(v),
		.held = is_held(v),
	};
	verdict_loss(e, &s->sent, &s->lost);
	if (!c->connected && verdict_health(s->verdict) == HEALTH_BAD)
		missed =
			matrix_missed(mono_is_set(c->lost_at) ? c->lost_at : c->created,
				      c->heartbeat ? c->heartbeat : c->params.heartbeat,
				      WINDOW_NS, loop_now(m->loop));
	s->sent += missed;
	s->lost += missed;
}

/* "rail2" of a number, a label as it is. */
static const char *rail_name(const char *rail, char buf[MATRIX_NAME_MAX])
{
	bool number = rail[0] && !rail[strspn(rail, "0123456789")];

	(void)snprintf(buf, MATRIX_NAME_MAX, "%s%s", number ? "rail" : "", rail);
	return buf;
}

/* ---- leaves ---- */

static struct port_entry *port_of(struct manager *m, const struct conn_entry *e)
{
	struct port_entry *pe =
		e->bind->port_serial ? port_of_address(m, &e->bind->local) : NULL;

	return pe && pe->serial == e->bind->port_serial ? pe : NULL;
}

static struct ib_port *own_ib_port(struct manager *m, const struct conn_entry *e)
{
	const struct port_entry *pe = port_of(m, e);

	if (!pe || field_why(&port_table, &pe->p.facts, PF_PORT_GUID))
		return NULL;
	return subnet_port_by_guid(m->sweeps->subnet, pe->p.facts.port_guid);
}

/* By where the path leads to; rc and ud know. */
static struct ib_port *far_by_path(struct manager *m, const struct conn_entry *e)
{
	const struct ep_path *path = &conn_endpoint(e->c)->path;

	if ((path->known & EP_PATH_LIDS) && path->dlid)
		return subnet_port_by_lid(m->sweeps->subnet, path->dlid);
	if ((path->known & EP_PATH_DGID) && path->gid_type == EP_GID_IB)
		return subnet_port_by_guid(m->sweeps->subnet, be64_get(path->dgid + 8));
	return NULL;
}

/* The same of another transport to the same address will do. */
static struct ib_port *far_ib_port(struct manager *m, const struct conn_entry *e)
{
	struct ib_port *p = far_by_path(m, e);

	if (!e->peer)
		return p;
	PEER_EACH_TX(e->peer, other)
	if (!p && other->addr_index == e->addr_index)
		p = far_by_path(m, other);
	return p;
}

/* Known where both ends are in the subnet that is swept; a guess would be worse than
 * none. */
static const char *leaf_row(struct manager *m, const struct conn_entry *e)
{
	const struct ib_node *own, *far;

	if (!m->sweeps->subnet)
		return "unknown-leaf";
	own = ib_port_leaf(own_ib_port(m, e));
	far = ib_port_leaf(far_ib_port(m, e));
	if (!own || !far)
		return "unknown-leaf";
	return own == far ? "same-leaf" : "other-leaf";
}

/* ---- rows ---- */

/* Main has those of udp themselves, of workers what they told last. */
static const struct hist *round_trips(struct manager *m, const struct conn_entry *e,
				      struct hist *own)
{
	if (e->worker_device[0])
		return e->rounds;
	return udp_ep_rtt(m->udp, e->c->id, e->ep_epoch, own) ? own : NULL;
}

static void add_to(struct manager *m, struct matrix *x, const struct conn_entry *e,
		   enum matrix_by by, enum matrix_show show)
{
	char row[MATRIX_NAME_MAX], column[MATRIX_NAME_MAX];
	const struct port_entry *pe;
	struct matrix_sample s;
	struct hist rtt = {0};

	sample_of(m, e, &s);
	s.row = e->c->key.peer;
	s.column = rail_name(e->c->key.rail, column);
	if (by == MATRIX_LEAF)
		s.row = leaf_row(m, e);
	if (by == MATRIX_RAIL) {
		pe = port_of(m, e);
		s.row = rail_name(pe && pe->p.rail[0] ? pe->p.rail : e->c->key.rail,
				  row);
		if (*conn_peer_rail(e->c))
			s.column = rail_name(conn_peer_rail(e->c), column);
	}
	if (show == MATRIX_P99 && e->c->connected)
		s.rtt = round_trips(m, e, &rtt);
	matrix_add(x, &s);
	hist_done(&rtt);
}

static json_t *peer_row(struct manager *m, struct peer *p, enum matrix_show show)
{
	struct matrix x = {0};
	json_t *row = NULL;

	PEER_EACH_TX(p, e)
	{
		conn_refresh(m, e);
		add_to(m, &x, e, MATRIX_PEER, show);
	}
	matrix_sort(&x);
	if (x.n_rows)
		row = render_matrix_row(&x, 0, show);
	matrix_done(&x);
	return row;
}

static json_t *next_by_peer(struct manager *m, enum matrix_show show, uint64_t *cursor)
{
	struct peer *p;

	while ((p = peer_after(m, *cursor))) {
		json_t *row = peer_row(m, p, show);

		*cursor = p->serial;
		if (row) /* of none without a connection there is one */
			return row;
	}
	return NULL;
}

static void fill(struct manager *m, struct matrix_cache *c, enum matrix_by by,
		 enum matrix_show show)
{
	matrix_done(&c->matrix);
	for (int i = 0; i < m->n_conns; i++) {
		struct conn_entry *e = m->conns[i];

		if (e->c->key.role != ROLE_TX)
			continue;
		if (m->n_conns <= FRESH_MAX)
			conn_refresh(m, e);
		add_to(m, &c->matrix, e, by, show);
	}
	matrix_sort(&c->matrix);
	c->by = by;
	c->show = show;
	c->at = loop_now(m->loop);
}

json_t *matrix_next(struct manager *m, const char *what, uint64_t *cursor)
{
	char by_name[16] = "";
	const char *blank = strchr(what, ' ');
	enum matrix_by by;
	enum matrix_show show;
	struct matrix_cache *c;

	str_append(by_name, sizeof(by_name), "%.*s", (int)(blank - what), what);
	by = (enum matrix_by)enum_find(&matrix_by_names, by_name);
	show = (enum matrix_show)enum_find(&matrix_show_names, blank + 1);
	if (by == MATRIX_PEER)
		return next_by_peer(m, show, cursor);
	if (!m->matrix)
		m->matrix = xcalloc(CACHES, sizeof(*m->matrix));
	c = &m->matrix[(int)by * (MATRIX_P99 + 1) + (int)show];
	/* Not in the middle of a list: rows would move. */
	if (!mono_is_set(c->at) ||
	    (!*cursor && mono_sub(loop_now(m->loop), c->at) > KEPT_NS))
		fill(m, c, by, show);
	if (*cursor >= (uint64_t)c->matrix.n_rows)
		return NULL;
	return render_matrix_row(&c->matrix, (int)(*cursor)++, show);
}

void matrix_free(struct manager *m)
{
	for (int i = 0; m->matrix && i < CACHES; i++)
		matrix_done(&m->matrix[i].matrix);
	free(m->matrix);
	m->matrix = NULL;
}
