/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * shutdown.h - is the whole host going down, or this service alone? The service manager
 * knows. A bus that is gone or does not answer must not hold up a stop.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* At most @patience_ns later. No answer: no. */
bool host_goes_down(int64_t patience_ns);
