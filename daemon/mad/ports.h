/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ports.h - the umad devices and ports that are known, what main was told of them, and
 * the open ones that carry its Gets.
 */
#pragma once

#include "answers.h"

struct mad_ports;

struct mad_ports *mad_ports_new(const char *root, int wake_fd, mad_send_fn *send,
				void *user);
struct mad_ports *mad_ports_free(struct mad_ports *s);

/* A new main: tell it everything, then what changes, looking each init->poll_ms (0:
 * only when asked, and for devices that come and go). @device "" = all. */
void mad_ports_start(struct mad_ports *s, const char *device,
		     const struct wm_init *init, struct mono now);
/* No main: answer nothing, look no more. Open ports stay open. */
void mad_ports_forget(struct mad_ports *s);

/* Look now. @all: tell everything, else what changed. */
void mad_ports_scan(struct mad_ports *s, bool all, struct mono now);
/* These lead to n entries of SMP_RESULTS, or one MAD_ANSWER, at once or later. */
void mad_ports_gets(struct mad_ports *s, const struct wm_smp_gets *m, struct mono now);
void mad_ports_send(struct mad_ports *s, const struct wm_mad_send *m, struct mono now);
/* All that can be done now; what main is to get has left when it returns. */
void mad_ports_work(struct mad_ports *s, struct mono now);
struct mono mad_ports_deadline(const struct mad_ports *s);
