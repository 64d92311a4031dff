/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * json_out.h - objects for programs: JSON as the daemon sent it (-j), readable (-p), or
 * a line of "key value" pairs an object (-o), nested keys joined by dots.
 */
#pragma once

#include "cli.h"

/* One object, or an array of them. Returns the exit code. */
int json_out(const struct cli *c, const json_t *v);
