/* SPDX-License-Identifier: BSD-2-Clause */
#include "progress.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "clean.h"

#define FIRST_MS 1000
#define AGAIN_MS 300
#define WIDTH	 79

static struct {
	int64_t due_ms; /* when a line may be shown */
	int shown;	/* columns that are to be wiped */
} state;

static int64_t now_ms(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

void progress_begin(void)
{
	state.due_ms = now_ms() + FIRST_MS;
}

int progress_wait_ms(void)
{
	if (!isatty(STDERR_FILENO))
		return -1;
	return (int)MAX(state.due_ms - now_ms(), 0);
}

void progress_clear(void)
{
	if (state.shown)
		(void)fprintf(stderr, "\r%*s\r", state.shown, "");
	(void)fflush(stderr);
	state.shown = 0;
}

void progress_line(const char *fmt, ...)
{
	char *text = NULL;
	_cleanup_(freep) char *safe = NULL, *cut = NULL;
	va_list ap;
	int width;

	if (progress_wait_ms() != 0)
		return;
	va_start(ap, fmt);
	if (vasprintf(&text, fmt, ap) < 0)
		abort();
	va_end(ap);
	safe = text_safe(text);
	free(text);
	cut = text_cut(safe, WIDTH);
	width = text_width(cut);
	(void)fprintf(stderr, "\r%s%*s", cut, MAX(state.shown - width, 0), "");
	(void)fflush(stderr);
	state.shown = MAX(state.shown, width);
	state.due_ms = now_ms() + AGAIN_MS;
}
