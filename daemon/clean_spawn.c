/* SPDX-License-Identifier: BSD-2-Clause */
#include "clean_spawn.h"

#include <signal.h>
#include <stdint.h>

int spawn_clean(const char *program, char *const argv[], const struct spawn_options *o,
		pid_t *ret_pid)
{
	char *const env[] = {
		(char *)(uintptr_t)"PATH=/usr/sbin:/usr/bin:/sbin:/bin",
		(char *)(uintptr_t)"LANG=C.UTF-8",
		(char *)(uintptr_t)o->extra_env,
		NULL,
	};
	short flags = POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF;
	posix_spawnattr_t attr;
	sigset_t none, all;
	int r;

	(void)sigemptyset(&none);
	(void)sigfillset(&all);
	(void)posix_spawnattr_init(&attr);
	(void)posix_spawnattr_setsigmask(&attr, &none);
	(void)posix_spawnattr_setsigdefault(&attr, &all);
	if (o->own_group) {
		flags |= POSIX_SPAWN_SETPGROUP;
		(void)posix_spawnattr_setpgroup(&attr, 0);
	}
	(void)posix_spawnattr_setflags(&attr, flags);
	r = (o->search_path ? posix_spawnp : posix_spawn)(ret_pid, program, o->actions, &attr,
							  argv, env);
	(void)posix_spawnattr_destroy(&attr);
	return -r;
}
