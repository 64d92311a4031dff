/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fake_api.h - a host that does not exist, behind struct api: gpu0417 with nine ports,
 * one of them down and one at half its width, and connections in many states. Ages and
 * times are fixed, so that what is made of them can be compared with golden files.
 */
#pragma once

#include "api.h"
#include "monitor.h"

struct fake;
struct fake *fake_new(struct monitor *m); /* posts three events */
struct fake *fake_free(struct fake *f);
const struct api *fake_api(struct fake *f);
/* Add @n connections to a peer "bulk", for long lists. */
void fake_bulk(struct fake *f, int n);
/* One more event: the state of mlx5_3/1. */
void fake_flap(struct fake *f);
/* From now on tickets are kept, not answered at once. */
void fake_hold(struct fake *f);
const struct api_ticket *fake_held(const struct fake *f); /* the last; NULL: none */
uint64_t fake_dropped(const struct fake *f);		  /* the last that was dropped */
/* Who asked for the last change, "" = nobody. */
const char *fake_who(const struct fake *f);
