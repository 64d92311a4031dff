/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fake_health.h - what the fake host remembers of its ports' health, and their counters.
 */
#pragma once

#include <jansson.h>

/* What every port has: nothing is wrong. */
json_t *fake_health_well(void);
/* mlx5_4/1: degraded, with numbers and a past. */
json_t *fake_health_degraded(void);
/* mlx5_3/1: down. */
json_t *fake_health_down(void);
/* PortCounters of @port. */
json_t *fake_counters(const char *port, int64_t since_sec);
