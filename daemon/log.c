/* SPDX-License-Identifier: BSD-2-Clause */
#define SD_JOURNAL_SUPPRESS_LOCATION
#include "log.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <systemd/sd-journal.h>
#include <time.h>
#include <unistd.h>

#define LINE_MAX_LEN 1024
#define FIELDS_MAX 16
#define LIMIT_BURST 5
#define LIMIT_WINDOW_NS INT64_C(10000000000)

static const char *log_ident = "fabd";
static int max_level = LOG_INFO;
static bool to_journal;

/* JOURNAL_STREAM names our standard error when journald reads it (systemd.exec(5)). */
static bool stderr_is_journal(void)
{
	const char *e = getenv("JOURNAL_STREAM");
	unsigned long long dev, ino;
	struct stat st;

	return e && sscanf(e, "%llu:%llu", &dev, &ino) == 2 && !fstat(STDERR_FILENO, &st) &&
	       st.st_dev == dev && st.st_ino == ino;
}

void log_open(const char *ident, int level)
{
	log_ident = ident;
	max_level = level;
	to_journal = stderr_is_journal();
}

void log_level(int level)
{
	max_level = level;
}

bool log_enabled(int level)
{
	return level <= max_level;
}

static void to_stderr(int level, const char *line)
{
	struct stat st;

	/* A socket is journald's, which knows <N>: a worker has no JOURNAL_STREAM. */
	if (!fstat(STDERR_FILENO, &st) && S_ISSOCK(st.st_mode)) {
		fprintf(stderr, "<%d>%s: %s\n", level, log_ident, line);
		return;
	}
	fprintf(stderr, "%s: %s%s\n", log_ident,
		level <= LOG_ERR       ? "error: "
		: level == LOG_WARNING ? "warning: "
				       : "",
		line);
}

/* Names of devices and peers may hold anything: none ends a line or moves a cursor. */
static void without_controls(char *line)
{
	for (char *p = line; *p; p++)
		if ((unsigned char)*p < ' ' || *p == 0x7f)
			*p = '?';
}

static void emit(int level, const char *const *fields, const char *line)
{
	char priority[16], ident[64], message[LINE_MAX_LEN + 8];
	struct iovec iov[FIELDS_MAX + 3];
	int n = 0;

	if (!to_journal) {
		to_stderr(level, line);
		return;
	}
	(void)snprintf(priority, sizeof(priority), "PRIORITY=%d", level);
	(void)snprintf(ident, sizeof(ident), "SYSLOG_IDENTIFIER=%s", log_ident);
	(void)snprintf(message, sizeof(message), "MESSAGE=%s", line);
	iov[n++] = (struct iovec){message, strlen(message)};
	iov[n++] = (struct iovec){priority, strlen(priority)};
	iov[n++] = (struct iovec){ident, strlen(ident)};
	for (int i = 0; fields && fields[i] && i < FIELDS_MAX; i++)
		iov[n++] = (struct iovec){(void *)(uintptr_t)fields[i], strlen(fields[i])};
	if (sd_journal_sendv(iov, n) < 0)
		to_stderr(level, line);
}

static void vlog(int level, const char *const *fields, const char *fmt, va_list ap)
	__attribute__((format(printf, 3, 0)));
static void vlog(int level, const char *const *fields, const char *fmt, va_list ap)
{
	char line[LINE_MAX_LEN];

	if (!log_enabled(level))
		return;
	(void)vsnprintf(line, sizeof(line), fmt, ap);
	without_controls(line);
	emit(level, fields, line);
}

void log_msg(int level, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vlog(level, NULL, fmt, ap);
	va_end(ap);
}

int log_errno(int level, int r, const char *fmt, ...)
{
	char line[LINE_MAX_LEN];
	va_list ap;

	if (!log_enabled(level))
		return r;
	va_start(ap, fmt);
	(void)vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	log_msg(level, "%s: %s", line, strerror(r < 0 ? -r : r));
	return r;
}

void log_fields(int level, const char *const *fields, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vlog(level, fields, fmt, ap);
	va_end(ap);
}

void log_limited(struct log_limit *l, int level, const char *fmt, ...)
{
	struct timespec ts;
	int64_t now;
	va_list ap;

	(void)clock_gettime(CLOCK_MONOTONIC, &ts);
	now = (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
	if (now - l->window_ns > LIMIT_WINDOW_NS) {
		if (l->held)
			log_msg(level, "%u more messages like the following were held back",
				l->held);
		*l = (struct log_limit){.window_ns = now};
	}
	if (l->count++ >= LIMIT_BURST) {
		l->held++;
		return;
	}
	va_start(ap, fmt);
	vlog(level, NULL, fmt, ap);
	va_end(ap);
}
