/* SPDX-License-Identifier: BSD-2-Clause */
#include "udp_internal.h"

#define REPORTS_MAX 64			/* of one socket in a turn */
#define SAMPLE_GAP  (5 * NSEC_PER_MSEC)	/* at most 200 a second of a socket */
#define SAMPLE_LOST (2 * NSEC_PER_SEC)	/* its echo is not waited for any longer */

/* --- when a request left --------------------------------------------------------- */

bool udp_sample(struct sock *s, const struct ep *ep, uint64_t seq, struct mono now)
{
	struct sample *x = &s->sample;
	int64_t age = mono_sub(now, x->at);

	if (age < SAMPLE_GAP || (x->out && age < SAMPLE_LOST))
		return false;
	*x = (struct sample){.out = true,
			     .conn_id = ep->conn_id,
			     .seq = seq,
			     .id = s->stamp_id++,
			     .at = now};
	return true;
}

/* Sends that failed may or may not have used up an id: with one out at a time a later id
 * than ours is ours, and from there it is counted on. */
static void note_stamp(struct sock *s, const struct udp_report *r)
{
	struct sample *x = &s->sample;

	if ((int32_t)(r->id - x->id) < 0)
		return;
	if (r->id != x->id) {
		s->stamp_id = r->id + 1;
		x->id = r->id;
	}
	x->k1 = r->stamp_ns ? r->stamp_ns : x->k1;
	x->d1 = r->device_ns ? r->device_ns : x->d1;
}

void udp_sample_echo(struct sock *s, const struct ep *ep, const struct fabric_msg *m,
		     const struct udp_datagram *d, struct mono now)
{
	struct sample *x = &s->sample;

	s->device_stamps |= d->device_ns != 0;
	if (!x->out || x->conn_id != ep->conn_id || x->seq != m->seq)
		return;
	x->out = false;
	if (!x->k1) /* it left after all that was read at its sending */
		udp_read_reports(s);
	/* Not what the echo claims, but what is known here. */
	(void)hb_split(&s->shared,
		       &(struct hb_stamps){.t1 = x->at.ns,
					   .t4 = now.ns,
					   .k1 = x->k1,
					   .k4 = d->stamp_ns,
					   .d1 = x->d1,
					   .d4 = d->device_ns,
					   .t2 = m->t2,
					   .t3 = m->t3},
		       now);
}

/* --- errors ---------------------------------------------------------------------- */

/* Is it an error of what @ep sends now? As far as the datagram is quoted, its ids tell:
 * an error of the attempt before must not end this one. */
static bool concerns(const struct sock *s, const struct ep *ep, const struct udp_report *r)
{
	if (ep->sock != s || !ep->remote.port || !addr_equal(&ep->remote, &r->to))
		return false;
	return r->quoted_len < 24 || (be64_get(r->quoted + 8) == ep->peer_conn_id &&
				      be64_get(r->quoted + 16) == ep->epoch);
}

static void fail_if(struct sock *s, struct ep *ep, const struct udp_report *r)
{
	char to[ADDR_TEXT_MAX], text[EP_TEXT_MAX] = "";

	if (!concerns(s, ep, r))
		return;
	str_append(text, sizeof(text), "%s: %s", addr_format_port(&r->to, to),
		   r->kind == EPERR_PORT_UNREACHABLE ? "port unreachable"
						     : strerror(r->error));
	udp_fail(s->t, ep, r->kind, -r->error, text);
}

static void note_error(struct sock *s, const struct udp_report *r)
{
	struct ep *ep;
	uint32_t at = 0;

	if (r->kind == EPERR_NONE)
		return;
	if (r->quoted_len >= 24) {
		ep = idtable_find(&s->t->by_peer, be64_get(r->quoted + 8));
		if (ep)
			fail_if(s, ep, r);
		return;
	}
	/* A router that quotes no more than the headers. */
	while ((ep = idtable_next(&s->t->eps, &at)))
		fail_if(s, ep, r);
}

void udp_read_reports(struct sock *s)
{
	struct udp_report r;

	for (int i = 0; i < REPORTS_MAX && udp_report_read(s->fd, &r); i++) {
		if (r.is_stamp)
			note_stamp(s, &r);
		else
			note_error(s, &r);
	}
}
