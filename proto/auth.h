/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * auth.h - keys and authenticators: keyed BLAKE2b (RFC 7693, libsodium's
 * crypto_generichash). Pure: reading the key file is the daemon's.
 */
#pragma once

#include "endpoint.h"

#define AUTH_KEYS_MAX 16
#define AUTH_TAG_LEN 16	    /* control and fabric messages */
#define AUTH_SECRET_MIN 16  /* bytes of a key */
#define AUTH_SECRET_MAX 64

/* Several keys: the first signs, all verify, so that keys are changed without a gap. */
struct auth_key {
	uint32_t id; /* first 4 bytes of the hash of the secret */
	uint8_t secret[AUTH_SECRET_MAX];
	size_t len;
};
struct auth_keys {
	int n;
	struct auth_key key[AUTH_KEYS_MAX];
};

/* Text of a key file: a key per line, in hexadecimal (32..128 digits) or "base64:...";
 * '#' starts a comment, blank lines count for nothing. 0; or -EINVAL with the line and
 * what was wrong in @err, never the key itself. A file without any key is an error. */
int auth_keys_parse(const char *text, size_t len, struct auth_keys *ret, char *err,
		    size_t err_size);
bool auth_keys_have(const struct auth_keys *keys, const struct auth_key *k);

/* Tag over @len bytes. @context tells uses apart ("control"). */
void auth_tag(const struct auth_key *k, const char *context, const void *data, size_t len,
	      uint8_t tag[AUTH_TAG_LEN]);
/* In constant time. The key that made the tag; NULL: no key with that id, or the tag is
 * wrong. */
const struct auth_key *auth_verify(const struct auth_keys *keys, uint32_t key_id,
				   const char *context, const void *data, size_t len,
				   const uint8_t tag[AUTH_TAG_LEN]);

/* The session key of one epoch's fabric messages: the same on both sides. */
void auth_session_key(const struct auth_key *k, uint64_t tx_id, uint64_t rx_id,
		      uint64_t epoch, uint8_t ret[EP_KEY_LEN]);

/* Stateless challenge: a cookie over the asking address, port and connection id, good
 * for the current and the previous slot of 30 s; not over the epoch, so that the next
 * attempt may use it again. @secret: 32 random bytes of this start. */
#define AUTH_COOKIE_SLOT_SEC 30
void auth_cookie(const uint8_t secret[32], const struct addr *from, uint64_t conn_id,
		 uint64_t slot, uint8_t ret[32]);
bool auth_cookie_ok(const uint8_t secret[32], const struct addr *from, uint64_t conn_id,
		    uint64_t slot, const uint8_t cookie[32]);
