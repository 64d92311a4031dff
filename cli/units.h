/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * units.h - numbers as people read them. Results live in a static ring of 16 buffers:
 * good for the arguments of one print, not for keeping.
 */
#pragma once

#include "util.h"

/* "0.4s" "12s" "3m12s" "2h05m" "41d"; "-" if negative or not a number. */
const char *unit_age(double sec);
/* "12s ago"; "never" if negative or not a number. */
const char *unit_ago(double sec);
/* "2.5G" "400G"; "-" for 0. */
const char *unit_rate(int64_t mbps);
/* "38us" "3.4us" "1.2ms" "2.0s"; "-" if negative. */
const char *unit_ns(int64_t ns);
/* Both in the unit of the larger: "38/71us". */
const char *unit_ns_pair(int64_t a, int64_t b);
/* An interval as configured: "1s" "100ms" "1.5s". */
const char *unit_interval(int64_t ns);
/* "0%" "<0.1%" "12.5%" "100%": neither "0%" nor "100%" comes by rounding; "-" if @whole
 * is not positive. */
const char *unit_percent(int64_t part, int64_t whole);
/* KiB as "512K" "12.3M" "1.2G". */
const char *unit_kib(int64_t kib);
/* Time of day of an RFC 3339 text, "20:41:07.118Z"; the text itself if it is none. */
const char *unit_clock(const char *rfc3339);
/* "local_port" as "local-port"; "-" for NULL. */
const char *unit_word(const char *name);
/* "FAILED" for bad, "DEGRADED", the rest as it is. */
const char *unit_health(const char *health);

/* "2h" "90m" "1h30m" "300ms" "45" (seconds) in ms. 0, -EINVAL, -ERANGE over ten years.
 */
int unit_duration_parse(const char *text, int64_t *ret_ms);
