/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * resolver.h - names into addresses off the loop (getaddrinfo_a(3): glibc's own
 * threads). At most 64 look-ups at a time, the others wait for their turn; one that takes
 * over 10 s is abandoned: its answer is never waited for again.
 */
#pragma once

#include "addr.h"
#include "loop.h"

#define RESOLVER_ADDRS_MAX 16

struct resolver;
struct resolver_job;

struct resolver *resolver_new(struct loop *l);
struct resolver *resolver_free(struct resolver *r); /* abandons all */

/* @error 0: @addrs are all @n addresses of the name, each once, IPv4 first, then in the
 * order of their bytes, RESOLVER_ADDRS_MAX at most; else -errno with @why. Called from the
 * loop; the job is no more. */
typedef void resolver_fn(void *user, int error, const char *why, const struct addr *addrs,
			 int n);
struct resolver_job *resolver_start(struct resolver *r, const char *name, resolver_fn *fn,
				    void *user);
void resolver_cancel(struct resolver_job *j); /* NULL-safe; fn is not called any more */
