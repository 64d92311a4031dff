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

/* CPU of another process so far, in ns; proc(5), fields 14 and 15 of stat. */
static int64_t cpu_of(pid_t pid)
{
	unsigned long user = 0, system = 0;
	char path[64], line[512];
	const char *rest = NULL;
	FILE *f;

	(void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	f = fopen(path, "re");
	if (!f)
		return 0;
	if (fgets(line, sizeof(line), f))
		rest = strrchr(line, ')'); /* the name may hold anything */
	(void)fclose(f);
	if (!rest || sscanf(rest, ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user,
			    &system) != 2)
		return 0;
	return (int64_t)(user + system) * (NSEC_PER_SEC / sysconf(_SC_CLK_TCK));
}

/* What the workers add: their memory, and the CPU since the last time. */
static void measure_workers(struct manager *m)
{
	m->rss_workers_kib = 0;
	for (struct worker *w = m->workers; w; w = w->next) {
		int64_t cpu = w->pid ? cpu_of(w->pid) : 0;

		if (w->pid && w->pid == w->cost_pid && cpu > w->cost_cpu)
			m->cpu_workers += cpu - w->cost_cpu;
		w->cost_pid = w->pid;
		w->cost_cpu = cpu;
		if (w->pid)
			m->rss_workers_kib += rss_of(w->pid);
	}
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
	measure_workers(m);
	m->cpu_percent = rate(cpu_ns() + m->cpu_workers, &m->cpu_before, ns) / 1e7;
	m->rss_kib = rss_of(getpid());
}
