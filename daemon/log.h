/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * log.h - messages to the journal with fields, or to standard error with <N> prefixes.
 * err: the operator must act; warning: degraded, retrying; notice: state change; info:
 * life cycle; debug: the rest. Never per packet above debug. Used by all processes;
 * workers write to standard error, which main passes on or the journal reads.
 */
#pragma once

#include <errno.h>
#include <syslog.h>

#include "util.h"

void log_open(const char *ident, int level); /* level: LOG_ERR .. LOG_DEBUG */
void log_level(int level);
bool log_enabled(int level);

/* Plain message. log_errno appends strerror(-r) and returns r. */
void log_msg(int level, const char *fmt, ...) PRINTF_LIKE(2, 3);
int log_errno(int level, int r, const char *fmt, ...) PRINTF_LIKE(3, 4);
#define log_err(...) log_msg(LOG_ERR, __VA_ARGS__)
#define log_warn(...) log_msg(LOG_WARNING, __VA_ARGS__)
#define log_notice(...) log_msg(LOG_NOTICE, __VA_ARGS__)
#define log_info(...) log_msg(LOG_INFO, __VA_ARGS__)
#define log_debug(...) log_msg(LOG_DEBUG, __VA_ARGS__)

/* With journal fields: a NULL-terminated list of "NAME=value" strings. */
void log_fields(int level, const char *const *fields, const char *fmt, ...)
	PRINTF_LIKE(3, 4);

/* For what an outsider can trigger: at most @burst messages per 10 s per call site;
 * says how many were held back. */
struct log_limit {
	int64_t window_ns;
	unsigned count, held;
};
void log_limited(struct log_limit *l, int level, const char *fmt, ...) PRINTF_LIKE(3, 4);
