/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * reasons.h - what the connection manager and the completion queues say when something
 * went wrong, as an error class and one line for an operator. Statuses have no common
 * sign: negative errno from the kernel, -1 from the library with the reason in errno,
 * positive for InfiniBand reject reasons. Pure tables.
 */
#pragma once

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include "cmdata.h"
#include "rc.h"

struct reason {
	enum ep_error error;
	char text[EP_TEXT_MAX];
};

/* A CM event that ends an attempt. @lib_errno: errno right after rdma_get_cm_event(),
 * for status -1. @code: of our own reject, or CMREJ_NONE. */
void reason_cm_event(enum rdma_cm_event_type type, int status, int lib_errno,
		     enum cmdata_code code, struct reason *ret);
/* The answer to a look-up of ud (SIDR) that is a refusal, with its positive status; or no
 * answer at all (negative). @port: that was asked for. @code: as above. */
void reason_sidr(int status, uint16_t port, enum cmdata_code code, struct reason *ret);
/* A call of the library that failed at once. @r: -errno. */
void reason_call(const char *call, int r, struct reason *ret);
/* The first completion with an error. */
void reason_completion(enum ibv_wc_status status, uint32_t vendor_err, bool sending,
		       struct reason *ret);
/* "invalid service id", NULL for reasons without a name. IBA table 110. */
const char *reason_reject_name(int reason);
