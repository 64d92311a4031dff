/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * control.h - control messages (lib/ctlmsg.h) in bytes, one UDP datagram each.
 * Big-endian. A fixed header, then TLVs; unknown TLVs are skipped, an unknown major
 * version is refused by ctl_decode with the sender's ids, so that it can be answered.
 *
 *  0  4  magic "FABD"            8  8  source connection id
 *  4  1  major version (1)      16  8  destination connection id
 *  5  1  minor version          24  8  epoch
 *  6  1  command                32  8  sequence number
 *  7  1  reserved, 0            40  8  acknowledged sequence number
 *                               48  2  length of all TLVs
 *                               50  2  reserved, 0
 * Reserved bytes are sent as 0 and not looked at. A TLV in a command that does not carry
 * it is skipped like an unknown one; twice, or missing where the command needs it, is
 * malformed. Only TLV_OWN_RAIL and TLV_RAIL_FACTS repeat; what is more than CTL_RAILS_MAX
 * is skipped. Facts are told as far as CTL_FACTS_ROOM bytes have room for them: what a
 * datagram must say never travels in fragments for what it may say.
 * TLV: type 2, length 2, value. The authenticator, if there is one, is the last TLV:
 * key id 4 and tag 16, over everything before its value's tag (header, TLVs, its own
 * type, length and key id).
 */
#pragma once

#include "auth.h"
#include "ctlmsg.h"

#define CTL_HEADER_LEN 52
#define CTL_DATAGRAM_MAX 2048 /* longer is DROP_OVERSIZED */
#define CTL_MAJOR 1
#define CTL_FACTS_ROOM 1400
/* The longest stateless answer (a signed Challenge), and the shortest Reset, so that a
 * stranger never gets more bytes than it sent. A shorter Reset is malformed, and so is a
 * shorter datagram of another major version. */
#define CTL_STATELESS_MAX 112
/* What a peer may ask for; anything else is malformed. */
#define CTL_HEARTBEAT_MIN_US 10000
#define CTL_HEARTBEAT_MAX_US UINT32_C(3600000000)
#define CTL_PROBES_MAX 65535
#define CTL_PROBE_SIZE_MIN 64
#define CTL_PROBE_SIZE_MAX 65536

enum ctl_tlv {
	TLV_COOKIE = 1,
	TLV_NODE = 2,
	TLV_RAIL = 3,
	TLV_PORT_NAME = 4,
	TLV_TRANSPORT = 5, /* transport 1, reserved 1, flow 2 */
	TLV_RDMA_ADDR = 6, /* family 1 (4, 6), reserved 1, port 2, ip 4 or 16 */
	TLV_VERSIONS = 7,  /* min 1, max 1 */
	TLV_HEARTBEAT = 8, /* us 4, multiplier 1, reserved 3, min rx us 4 */
	TLV_PROBES = 9,	   /* small 4, large 4, size 4 */
	TLV_LOCAL = 10,	   /* told_port 1, told_device 1, reserved 2, lateness us 4 */
	TLV_OWN_RAIL = 11, /* repeatable: address as above, then the label */
	TLV_CAUSE = 12,	   /* cause 1, reserved 3, deadline sec 4 */
	TLV_REFUSAL = 13,  /* refusal 1, reserved 3 */
	TLV_PAD = 14,	   /* zeroes */
	TLV_PROBE_TAG = 15, /* 8 */
	TLV_RAIL_FACTS = 16, /* repeatable: place among the own rails 1, P_Keys 1, MTU 2,
				LID 4, GID 16, the P_Keys 2 each */
	TLV_PATH = 17, /* MTU 4, P_Key 2, SL 1, traffic class 1 */
	TLV_AUTH = 0x8000  /* key id 4, tag 16 */
};

/* Write @m to @buf (CTL_DATAGRAM_MAX bytes), signed by @key if not NULL. Returns the
 * length; never fails for a message with strings that end in NUL. A Reset carries a
 * cookie always, and padding such that no stateless answer is longer than it. */
size_t ctl_encode(const struct ctl_msg *m, const struct auth_key *key,
		  uint8_t buf[CTL_DATAGRAM_MAX]);

struct ctl_auth {
	bool present;
	uint32_t key_id;
	uint8_t tag[AUTH_TAG_LEN];
	size_t covered; /* bytes that the tag covers */
};

/* Read @len bytes. 0, or -(1 + enum drop): short, oversized, magic, malformed, version.
 * For DROP_VERSION and later the command, ids, epoch and numbers in @ret are valid. Strings are made
 * clean (text_clean). Nothing is allocated. Does not verify: see ctl_verify(). */
int ctl_decode(const uint8_t *buf, size_t len, struct ctl_msg *ret, struct ctl_auth *ret_auth);
/* The key that signed it; NULL: none of these, or it is not signed. */
const struct auth_key *ctl_verify(const uint8_t *buf, const struct ctl_auth *a,
				  const struct auth_keys *keys);

/* An answer without any state (Challenge, Unknown, Refused), from the request alone; the
 * caller adds the cookie or the refusal. It is never longer than the request, provided
 * that an Unknown is signed only when the request was; a Challenge or Refused answers
 * only a Reset or another major version. */
void ctl_stateless_answer(const struct ctl_msg *request, enum ctl_cmd cmd,
			  struct ctl_msg *ret);
