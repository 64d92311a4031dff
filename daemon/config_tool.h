/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * config_tool.h - fabd --check-config and --dump-config: what main does with a
 * configuration when it is not to run. Both return the exit status.
 */
#pragma once

/* Every problem of the file (NULL: the installed configuration) and its drop-ins, one a
 * line, to standard error. Strict: unknown keys are errors. 0 if there is none but
 * warnings, else 1. */
int config_check_main(const char *path);
/* The configuration as it would run, to standard output, problems to standard error.
 * Keys themselves are never shown. 1 if there is an error, as what is shown then is not
 * what was written; else 0. */
int config_dump_main(const char *path);
