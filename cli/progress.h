/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * progress.h - what takes over a second says so: one line on stderr that is written over
 * and wiped away, only where that is a terminal.
 */
#pragma once

#include "util.h"

/* Something begins that may take long. */
void progress_begin(void);
/* How far it is; shown from its first second on, a few times a second at most. */
void progress_line(const char *fmt, ...) PRINTF_LIKE(1, 2);
/* Before anything else is printed. */
void progress_clear(void);
/* Milliseconds until the next line may be shown; -1: never, there is no terminal. */
int progress_wait_ms(void);
