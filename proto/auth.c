/* SPDX-License-Identifier: BSD-2-Clause */
#include "auth.h"

#include <errno.h>
#include <sodium.h>
#include <stdio.h>

#define BASE64_PREFIX "base64:"

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

static uint32_t key_id(const struct auth_key *k)
{
	uint8_t hash[32];

	(void)crypto_generichash(hash, sizeof(hash), k->secret, k->len, NULL, 0);
	return be32_get(hash);
}

/* One line without blanks and comment. Returns what is wrong with it, or NULL. */
static const char *parse_secret(const char *s, size_t n, struct auth_key *ret)
{
	const size_t prefix = strlen(BASE64_PREFIX);
	int r;

	if (n > prefix && !memcmp(s, BASE64_PREFIX, prefix))
		r = sodium_base642bin(ret->secret, sizeof(ret->secret), s + prefix, n - prefix,
				      NULL, &ret->len, NULL,
				      sodium_base64_VARIANT_ORIGINAL);
	else if (n > 2 * AUTH_SECRET_MAX)
		return "a key has at most 128 hexadecimal digits";
	else
		r = sodium_hex2bin(ret->secret, sizeof(ret->secret), s, n, NULL, &ret->len,
				   NULL);
	if (r)
		return "neither hexadecimal digits nor base64:... of at most 64 bytes";
	if (ret->len < AUTH_SECRET_MIN)
		return "a key has at least 16 bytes (32 hexadecimal digits)";
	ret->id = key_id(ret);
	return NULL;
}

static bool same_secret(const struct auth_key *a, const struct auth_key *b)
{
	return a->len == b->len && !sodium_memcmp(a->secret, b->secret, a->len);
}

static const char *add_line(const char *s, size_t n, struct auth_keys *keys)
{
	struct auth_key k = {0};
	const char *wrong;

	if (keys->n == AUTH_KEYS_MAX)
		return "more than 16 keys";
	wrong = parse_secret(s, n, &k);
	for (int i = 0; !wrong && i < keys->n; i++)
		if (same_secret(&k, &keys->key[i]))
			wrong = "the same key as before";
	if (!wrong)
		keys->key[keys->n++] = k;
	sodium_memzero(&k, sizeof(k));
	return wrong;
}

int auth_keys_parse(const char *text, size_t len, struct auth_keys *ret, char *err,
		    size_t err_size)
{
	struct auth_keys keys = {0};
	const char *wrong = NULL;
	unsigned line = 0;
	int r;

	for (size_t at = 0, end; at < len && !wrong; at = end + 1) {
		const char *s = text + at;
		const char *eol = memchr(s, '\n', len - at);
		const char *hash;
		size_t n;

		line++;
		n = eol ? (size_t)(eol - s) : len - at;
		end = at + n;
		hash = memchr(s, '#', n);
		if (hash)
			n = (size_t)(hash - s);
		while (n && is_blank(s[n - 1]))
			n--;
		while (n && is_blank(*s)) {
			s++;
			n--;
		}
		if (n)
			wrong = add_line(s, n, &keys);
	}
	if (wrong)
		(void)snprintf(err, err_size, "line %u: %s", line, wrong);
	else if (!keys.n)
		(void)snprintf(err, err_size, "there is no key in it");
	else
		*ret = keys;
	r = wrong || !keys.n ? -EINVAL : 0;
	sodium_memzero(&keys, sizeof(keys));
	return r;
}

bool auth_keys_have(const struct auth_keys *keys, const struct auth_key *k)
{
	for (int i = 0; i < keys->n; i++)
		if (same_secret(&keys->key[i], k))
			return true;
	return false;
}

/* Keyed BLAKE2b over the context with its NUL, so that no context is the beginning of
 * another one with data, and the data. */
static void keyed_hash(const uint8_t *key, size_t key_len, const char *context,
		       const void *data, size_t len, uint8_t *ret, size_t ret_len)
{
	crypto_generichash_state st;

	(void)crypto_generichash_init(&st, key, key_len, ret_len);
	(void)crypto_generichash_update(&st, (const uint8_t *)context, strlen(context) + 1);
	(void)crypto_generichash_update(&st, data, len);
	(void)crypto_generichash_final(&st, ret, ret_len);
	sodium_memzero(&st, sizeof(st));
}

void auth_tag(const struct auth_key *k, const char *context, const void *data, size_t len,
	      uint8_t tag[AUTH_TAG_LEN])
{
	keyed_hash(k->secret, k->len, context, data, len, tag, AUTH_TAG_LEN);
}

const struct auth_key *auth_verify(const struct auth_keys *keys, uint32_t id,
				   const char *context, const void *data, size_t len,
				   const uint8_t tag[AUTH_TAG_LEN])
{
	uint8_t want[AUTH_TAG_LEN];

	/* Two keys may share an id by chance: all with that id are tried. */
	for (int i = 0; i < keys->n; i++) {
		if (keys->key[i].id != id)
			continue;
		auth_tag(&keys->key[i], context, data, len, want);
		if (!sodium_memcmp(want, tag, AUTH_TAG_LEN))
			return &keys->key[i];
	}
	return NULL;
}

void auth_session_key(const struct auth_key *k, uint64_t tx_id, uint64_t rx_id,
		      uint64_t epoch, uint8_t ret[EP_KEY_LEN])
{
	uint8_t data[24];

	be64_put(data, tx_id);
	be64_put(data + 8, rx_id);
	be64_put(data + 16, epoch);
	keyed_hash(k->secret, k->len, "session", data, sizeof(data), ret, EP_KEY_LEN);
}

void auth_cookie(const uint8_t secret[32], const struct addr *from, uint64_t conn_id,
		 uint64_t slot, uint8_t ret[32])
{
	uint8_t data[40] = {0};

	data[0] = from->family;
	be16_put(data + 2, from->port);
	be32_put(data + 4, from->zone);
	memcpy(data + 8, from->ip, from->family == 4 ? 4 : 16);
	be64_put(data + 24, conn_id);
	be64_put(data + 32, slot);
	keyed_hash(secret, 32, "cookie", data, sizeof(data), ret, 32);
}

bool auth_cookie_ok(const uint8_t secret[32], const struct addr *from, uint64_t conn_id,
		    uint64_t slot, const uint8_t cookie[32])
{
	uint8_t now[32], before[32];
	int differs_now, differs_before;

	auth_cookie(secret, from, conn_id, slot, now);
	auth_cookie(secret, from, conn_id, slot - 1, before);
	differs_now = sodium_memcmp(now, cookie, 32);
	differs_before = sodium_memcmp(before, cookie, 32);
	return !differs_now || !differs_before;
}
