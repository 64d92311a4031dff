/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cmdata.h - our private data in the connection manager's messages: which connection a
 * request belongs to, and why we reject one. Big-endian. The receiver gets the wire
 * maximum padded with zeros whatever was sent, so the data carries its own length;
 * other programs' data and no data at all are told apart by the magic. Pure.
 *
 * Both begin: 0 2 magic 0xfabc, 2 1 version (1), 3 1 whole length.
 * Request: 4 4 zero, 8 8 responder's conn id, 16 8 prober's conn id, 24 8 epoch.
 * Reject:  4 1 code, 5 3 zero.
 */
#pragma once

#include "util.h"

#define CMDATA_MAGIC	   0xfabc
#define CMDATA_VERSION	   1
#define CMDATA_MAX	   56 /* what RC over InfiniBand leaves to us in a request */
#define CMDATA_REQUEST_LEN 32
#define CMDATA_REJECT_LEN  8

struct cmdata_request {
	uint64_t dst_conn_id, src_conn_id, epoch;
};

/* Wire values. */
enum cmdata_code {
	CMREJ_NONE,
	CMREJ_UNKNOWN,	 /* no connection waits for this request */
	CMREJ_SOURCE,	 /* right ids, wrong address */
	CMREJ_MALFORMED, /* the private data is not ours */
	CMREJ_VERSION,	 /* ours, of a version not spoken here */
	CMREJ_STATE,	 /* the connection is not waiting, or no longer */
	CMREJ_LOCAL,	 /* no memory or QP here */
	CMREJ__MAX
};
extern const struct enum_names cmdata_code_names;

void cmdata_request_encode(const struct cmdata_request *r,
			   uint8_t buf[CMDATA_REQUEST_LEN]);
/* 0; -ENOMSG: not ours or absent; -EPROTONOSUPPORT: version; -EBADMSG: malformed. */
int cmdata_request_decode(const uint8_t *buf, size_t len, struct cmdata_request *ret);

void cmdata_reject_encode(enum cmdata_code code, uint8_t buf[CMDATA_REJECT_LEN]);
/* The code, CMREJ_NONE when the data is not ours (absent, another program's). */
enum cmdata_code cmdata_reject_decode(const uint8_t *buf, size_t len);
