/* SPDX-License-Identifier: BSD-2-Clause */
#include "resolver.h"

#include <errno.h>
#include <netdb.h>
#include <stdlib.h>
#include <utlist.h>

#define JOBS_MAX 64
#define POLL_NS (50 * NSEC_PER_MSEC)
#define TIMEOUT_NS (10 * NSEC_PER_SEC)

static const struct addrinfo hints = {.ai_socktype = SOCK_DGRAM, .ai_flags = AI_ADDRCONFIG};

struct resolver_job {
	struct gaicb cb;
	char *name; /* owned */
	struct mono deadline;
	bool started; /* glibc has it */
	resolver_fn *fn; /* NULL: cancelled or abandoned, kept until glibc is done */
	void *user;
	struct resolver_job *prev, *next;
};

struct resolver {
	struct loop *loop;
	struct loop_source *timer;
	struct resolver_job *waiting, *running; /* owned */
	int n_running;
};

static void job_free(struct resolver_job *j)
{
	if (j->cb.ar_result)
		freeaddrinfo(j->cb.ar_result);
	free(j->name);
	free(j);
}

static int by_address(const void *va, const void *vb)
{
	const struct addr *a = va, *b = vb;

	if (a->family != b->family)
		return a->family - b->family;
	return memcmp(a->ip, b->ip, sizeof(a->ip));
}

/* Servers give them in another order each time. */
static int addresses_of(const struct addrinfo *ai, struct addr ret[RESOLVER_ADDRS_MAX])
{
	struct addr all[4 * RESOLVER_ADDRS_MAX];
	int n = 0, kept = 0;

	for (; ai && n < (int)ARRAY_LEN(all); ai = ai->ai_next)
		if (addr_from_sockaddr(ai->ai_addr, ai->ai_addrlen, &all[n]) == 0)
			all[n++].port = 0;
	if (n)
		qsort(all, (size_t)n, sizeof(all[0]), by_address);
	for (int i = 0; i < n && kept < RESOLVER_ADDRS_MAX; i++)
		if (!i || by_address(&all[i - 1], &all[i]))
			ret[kept++] = all[i];
	return kept;
}

static void job_answer(struct resolver_job *j, int gai)
{
	struct addr addrs[RESOLVER_ADDRS_MAX];
	resolver_fn *fn = j->fn;
	int n;

	j->fn = NULL;
	if (!fn)
		return;
	if (gai) {
		fn(j->user, -EHOSTUNREACH, gai == EAI_CANCELED ? "no answer in 10 s" :
								 gai_strerror(gai), NULL, 0);
		return;
	}
	n = addresses_of(j->cb.ar_result, addrs);
	if (n)
		fn(j->user, 0, NULL, addrs, n);
	else
		fn(j->user, -ENOENT, "no address of this name is IPv4 or IPv6", NULL, 0);
}

static void start_waiting(struct resolver *r, struct mono now)
{
	while (r->waiting && r->n_running < JOBS_MAX) {
		struct resolver_job *j = r->waiting;
		struct gaicb *list[1] = {&j->cb};

		if (getaddrinfo_a(GAI_NOWAIT, list, 1, NULL))
			break; /* no thread, no memory: later */
		j->started = true;
		j->deadline = mono_add(now, TIMEOUT_NS);
		DL_DELETE(r->waiting, j);
		DL_APPEND(r->running, j);
		r->n_running++;
	}
}

static void end_running(struct resolver *r, struct mono now)
{
	struct resolver_job *j, *next;

	DL_FOREACH_SAFE(r->running, j, next) {
		int gai = gai_error(&j->cb);

		if (gai == EAI_INPROGRESS) {
			if (j->fn && mono_due(j->deadline, now)) {
				(void)gai_cancel(&j->cb);
				job_answer(j, EAI_CANCELED);
			}
			continue;
		}
		DL_DELETE(r->running, j);
		r->n_running--;
		job_answer(j, gai);
		job_free(j);
	}
}

static void on_timer(void *user, struct mono now)
{
	struct resolver *r = user;

	end_running(r, now);
	start_waiting(r, now);
	if (r->running || r->waiting)
		loop_timer_at(r->timer, mono_add(now, POLL_NS));
}

struct resolver *resolver_new(struct loop *l)
{
	struct resolver *r = xcalloc(1, sizeof(*r));

	r->loop = l;
	r->timer = loop_timer(l, on_timer, r);
	return r;
}

struct resolver *resolver_free(struct resolver *r)
{
	struct resolver_job *j, *next;

	if (!r)
		return NULL;
	r->timer = loop_source_free(r->timer);
	DL_FOREACH_SAFE(r->waiting, j, next)
		job_free(j);
	/* What glibc still works on must outlive us; the process is ending. */
	DL_FOREACH_SAFE(r->running, j, next)
		if (gai_cancel(&j->cb) != EAI_NOTCANCELED)
			job_free(j);
	free(r);
	return NULL;
}

struct resolver_job *resolver_start(struct resolver *r, const char *name, resolver_fn *fn,
				    void *user)
{
	struct resolver_job *j = xcalloc(1, sizeof(*j));

	j->fn = fn;
	j->user = user;
	j->name = xstrdup(name);
	j->cb.ar_name = j->name;
	j->cb.ar_request = &hints;
	DL_APPEND(r->waiting, j);
	start_waiting(r, loop_now(r->loop));
	loop_timer_at(r->timer, mono_add(loop_now(r->loop), POLL_NS));
	return j;
}

void resolver_cancel(struct resolver_job *j)
{
	if (j)
		j->fn = NULL;
}
