/* SPDX-License-Identifier: BSD-2-Clause */
/* cost.c - what fabd costs this host: CPU, memory, packets, once a second. */
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "manager.h"

static long rss_of(pid_t pid)
{
	char path[64];
	long size, resident = 0;
	FILE *f;

	(void)snprintf(path, sizeof(path), "/proc/%d/statm", (int)pid);
	f = fopen(path, "re");
	if (!f)
		return 0;
	if (fscanf(f, "%ld %ld", &size, &resident) != 2)
		resident = 0;
	(void)fclose(f);
	return resident * (sysconf(_SC_PAGESIZE) / 1024);
}

static int64_t cpu_ns(void)
{
	struct rusage ru;

	(void)getrusage(RUSAGE_SELF, &ru);
	return ((int64_t)ru.ru_utime.tv_sec + ru.ru_stime.tv_sec) * NSEC_PER_SEC +
	       ((int64_t)ru.ru_utime.tv_usec + ru.ru_stime.tv_usec) * NSEC_PER_USEC;
}

static double rate(int64_t now, int64_t *before, int64_t ns)
{
	double r = (double)(now - *before) * 1e9 / (double)ns;

	*before = now;
	return r < 0 ? 0 : r;
}

void cost_measure(struct manager *m, struct mono now)
{
	int64_t ns = mono_sub(now, m->cost_at);
	uint64_t sent, received, mads = 0;

	if (ns < NSEC_PER_SEC)
		return;
	m->cost_at = now;
	udp_counts(m->udp, &sent, &received);
	m->heartbeats_per_sec = (double)m->beats_mhz / 1000;
	m->packets_per_sec = rate((int64_t)(sent + received + m->ctl_sent + m->ctl_received),
				  &m->packets_before, ns);
	for (int to = 0; to < MADS_TO__MAX; to++)
		mads += mads_sent(m->mads, (enum mads_to)to);
	m->mads_per_sec = rate((int64_t)mads, &m->mads_before, ns);
	m->cpu_percent = rate(cpu_ns(), &m->cpu_before, ns) / 1e7;
	m->rss_kib = rss_of(getpid());
	m->rss_workers_kib = 0;
	for (const struct worker *w = m->workers; w; w = w->next)
		if (w->pid)
			m->rss_workers_kib += rss_of(w->pid);
}
