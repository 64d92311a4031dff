/* SPDX-License-Identifier: BSD-2-Clause */
#include "fabric.h"

#include <sodium.h>

#define TAG_AT 56
#define TAG_LEN 8

static void make_tag(const uint8_t buf[FABRIC_LEN], const uint8_t *key,
		     uint8_t tag[TAG_LEN])
{
	uint8_t copy[FABRIC_LEN], full[crypto_generichash_BYTES_MIN];

	memcpy(copy, buf, TAG_AT);
	memset(copy + TAG_AT, 0, TAG_LEN);
	(void)crypto_generichash(full, sizeof(full), copy, sizeof(copy), key, EP_KEY_LEN);
	memcpy(tag, full, TAG_LEN);
}

void fabric_encode(const struct fabric_msg *m, const uint8_t *key, uint8_t buf[FABRIC_LEN])
{
	be16_put(buf, FABRIC_MAGIC);
	buf[2] = FABRIC_VERSION;
	buf[3] = m->type;
	be32_put(buf + 4, m->length);
	be64_put(buf + 8, m->conn_id);
	be64_put(buf + 16, m->epoch);
	be64_put(buf + 24, m->seq);
	be64_put(buf + 32, (uint64_t)m->t1);
	be64_put(buf + 40, (uint64_t)m->t2);
	be64_put(buf + 48, (uint64_t)m->t3);
	memset(buf + TAG_AT, 0, TAG_LEN);
	if (key)
		make_tag(buf, key, buf + TAG_AT);
}

static int refuse(enum drop reason)
{
	return -(1 + (int)reason);
}

int fabric_decode(const uint8_t *buf, size_t len, struct fabric_msg *ret)
{
	if (len < FABRIC_LEN)
		return refuse(DROP_SHORT);
	if (len > FABRIC_MESSAGE_MAX)
		return refuse(DROP_OVERSIZED);
	if (be16_get(buf) != FABRIC_MAGIC)
		return refuse(DROP_MAGIC);
	if (buf[2] != FABRIC_VERSION)
		return refuse(DROP_VERSION);
	*ret = (struct fabric_msg){
		.type = buf[3],
		.length = be32_get(buf + 4),
		.conn_id = be64_get(buf + 8),
		.epoch = be64_get(buf + 16),
		.seq = be64_get(buf + 24),
		.t1 = (int64_t)be64_get(buf + 32),
		.t2 = (int64_t)be64_get(buf + 40),
		.t3 = (int64_t)be64_get(buf + 48),
	};
	if (ret->length > len)
		return refuse(DROP_SHORT);
	/* Times are differences' operands: no negative ones, so that none overflows. */
	if (ret->length != len || ret->type < FABRIC_PROBE ||
	    ret->type > FABRIC_PING_ECHO || !ret->conn_id || !ret->seq || ret->t1 < 0 ||
	    ret->t2 < 0 || ret->t3 < 0)
		return refuse(DROP_MALFORMED);
	return 0;
}

bool fabric_verify(const uint8_t buf[FABRIC_LEN], const uint8_t *key)
{
	uint8_t tag[TAG_LEN];

	if (!key)
		return true;
	make_tag(buf, key, tag);
	return !sodium_memcmp(tag, buf + TAG_AT, TAG_LEN);
}
