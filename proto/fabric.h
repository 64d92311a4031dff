/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fabric.h - probes, heartbeats and pings as bytes: what travels over rc, ud and udp. Big-
 * endian, 64 bytes or more (padding is zero and is not looked at). The same on every
 * transport, so that an echo needs no allocation: the responder rewrites it in place.
 *
 *  0  2  magic 0xfabd             24  8  sequence number, from 1
 *  2  1  version (1)              32  8  t1: sender's clock at send, ns
 *  3  1  type                     40  8  t2: responder's clock at receive, 0 in requests
 *  4  4  whole length             48  8  t3: responder's clock at its send, 0 = unknown
 *  8  8  receiver's conn id       56  8  tag: first 8 bytes; of all 64 bytes with the
 * 16  8  epoch                           tag field zero; zero without a key
 */
#pragma once

#include "endpoint.h"

#define FABRIC_LEN 64
#define FABRIC_MAGIC 0xfabd
#define FABRIC_VERSION 1
#define FABRIC_MESSAGE_MAX 65536

enum fabric_type {
	FABRIC_PROBE = 1,
	FABRIC_PROBE_ECHO = 2,
	FABRIC_HEARTBEAT = 3,
	FABRIC_HEARTBEAT_ECHO = 4,
	FABRIC_PING = 5, /* on demand: numbers of its own, no sign of life */
	FABRIC_PING_ECHO = 6
};
/* Requests have odd values, and their echoes the next one. */
static inline bool fabric_is_request(uint8_t type)
{
	return type & 1;
}
static inline uint8_t fabric_echo_type(uint8_t request)
{
	return (uint8_t)(request + 1);
}

struct fabric_msg {
	uint8_t type;
	uint32_t length; /* whole message with padding, FABRIC_LEN..FABRIC_MESSAGE_MAX */
	uint64_t conn_id, epoch, seq;
	int64_t t1, t2, t3;
};

/* Write the 64 bytes to @buf; @key NULL: no tag. Padding is the caller's (zero it). */
void fabric_encode(const struct fabric_msg *m, const uint8_t *key, uint8_t buf[FABRIC_LEN]);
/* Read the header of a received message of @len bytes. 0 or -(1 + enum drop): short,
 * oversized, magic, version, malformed. Authentication is a step of its own, since the
 * key is found by conn_id. */
int fabric_decode(const uint8_t *buf, size_t len, struct fabric_msg *ret);
/* false: wrong tag, in constant time. @key NULL: true whatever the tag is. */
bool fabric_verify(const uint8_t buf[FABRIC_LEN], const uint8_t *key);
