/* SPDX-License-Identifier: BSD-2-Clause */
#include "cmdata.h"

#include <errno.h>

static_assert(CMDATA_REQUEST_LEN <= CMDATA_MAX, "fits a request on every transport");

static const char *const codes[] = {
	[CMREJ_NONE] = "none",		 [CMREJ_UNKNOWN] = "unknown_connection",
	[CMREJ_SOURCE] = "wrong_source", [CMREJ_MALFORMED] = "malformed",
	[CMREJ_VERSION] = "version",	 [CMREJ_STATE] = "wrong_state",
	[CMREJ_LOCAL] = "local_failure",
};
static_assert(ARRAY_LEN(codes) == CMREJ__MAX, "each code has a name");
const struct enum_names cmdata_code_names = {codes, (int)ARRAY_LEN(codes)};

static void head(uint8_t *buf, size_t len)
{
	memset(buf, 0, len);
	be16_put(buf, CMDATA_MAGIC);
	buf[2] = CMDATA_VERSION;
	buf[3] = (uint8_t)len;
}

/* Longer is fine: a later minor change may add to the end. */
static int check_head(const uint8_t *buf, size_t len, size_t least)
{
	if (len < 4 || be16_get(buf) != CMDATA_MAGIC)
		return -ENOMSG;
	if (buf[2] != CMDATA_VERSION)
		return -EPROTONOSUPPORT;
	return buf[3] >= least && buf[3] <= len ? 0 : -EBADMSG;
}

void cmdata_request_encode(const struct cmdata_request *r,
			   uint8_t buf[CMDATA_REQUEST_LEN])
{
	head(buf, CMDATA_REQUEST_LEN);
	be64_put(buf + 8, r->dst_conn_id);
	be64_put(buf + 16, r->src_conn_id);
	be64_put(buf + 24, r->epoch);
}

int cmdata_request_decode(const uint8_t *buf, size_t len, struct cmdata_request *ret)
{
	int r = check_head(buf, len, CMDATA_REQUEST_LEN);

	if (r < 0)
		return r;
	ret->dst_conn_id = be64_get(buf + 8);
	ret->src_conn_id = be64_get(buf + 16);
	ret->epoch = be64_get(buf + 24);
	return 0;
}

void cmdata_reject_encode(enum cmdata_code code, uint8_t buf[CMDATA_REJECT_LEN])
{
	head(buf, CMDATA_REJECT_LEN);
	buf[4] = (uint8_t)code;
}

enum cmdata_code cmdata_reject_decode(const uint8_t *buf, size_t len)
{
	if (check_head(buf, len, CMDATA_REJECT_LEN) < 0 || buf[4] >= CMREJ__MAX)
		return CMREJ_NONE;
	return (enum cmdata_code)buf[4];
}
