/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * clean_spawn.h - start another program cleanly: no signal blocked or ignored, none of this
 * process's environment (NOTIFY_SOCKET, WATCHDOG_*, LISTEN_*, LD_PRELOAD), none of its
 * descriptors (all are close-on-exec) but what the file actions hand over.
 */
#pragma once

#include <spawn.h>
#include <stdbool.h>
#include <sys/types.h>

struct spawn_options {
	const posix_spawn_file_actions_t *actions; /* borrowed */
	const char *extra_env; /* NAME=VALUE added to PATH and LANG; NULL: none */
	bool own_group;	       /* to be killed with all its children */
	bool search_path;      /* the program may be a bare name */
};
/* @argv ends in NULL. 0 with @ret_pid, the caller's to wait for; or -errno. */
int spawn_clean(const char *program, char *const argv[], const struct spawn_options *o,
		pid_t *ret_pid);
