/* SPDX-License-Identifier: BSD-2-Clause */
#include "reasons.h"

#include <errno.h>
#include <stdio.h>

/* clang-format off */
static const struct {
	int reason;
	enum ep_error error;
	const char *name;
} rejects[] = {
	{ 1,  EPERR_CM_REJECTED, "no QP available" },
	{ 2,  EPERR_CM_REJECTED, "no EEC available" },
	{ 3,  EPERR_CM_REJECTED, "no resources available" },
	{ 4,  EPERR_CM_REJECTED, "timeout" },
	{ 5,  EPERR_CM_REJECTED, "unsupported request" },
	{ 6,  EPERR_CM_REJECTED, "invalid communication id" },
	{ 7,  EPERR_CM_REJECTED, "invalid communication instance" },
	{ 8,  EPERR_CM_REFUSED,  "nobody listens there (invalid service id)" },
	{ 9,  EPERR_CM_REJECTED, "invalid transport service type" },
	{ 10, EPERR_STALE,       "stale connection" },
	{ 11, EPERR_CM_REJECTED, "RDC does not exist" },
	{ 12, EPERR_CM_REJECTED, "primary port GID rejected" },
	{ 13, EPERR_CM_REJECTED, "primary port LID rejected" },
	{ 14, EPERR_CM_REJECTED, "invalid primary SL" },
	{ 15, EPERR_CM_REJECTED, "invalid primary traffic class" },
	{ 16, EPERR_CM_REJECTED, "invalid primary hop limit" },
	{ 17, EPERR_CM_REJECTED, "invalid primary packet rate" },
	{ 24, EPERR_CM_REJECTED, "port and CM redirection" },
	{ 25, EPERR_CM_REJECTED, "port redirection" },
	{ 26, EPERR_CM_REJECTED, "invalid path MTU" },
	{ 27, EPERR_CM_REJECTED, "insufficient responder resources" },
	{ 28, EPERR_CM_REJECTED, "rejected by the program there" },
	{ 29, EPERR_CM_REJECTED, "RNR retry count rejected" },
	{ 30, EPERR_CM_REJECTED, "duplicate communication id" },
	{ 31, EPERR_CM_REJECTED, "invalid class version" },
	{ 32, EPERR_CM_REJECTED, "invalid flow label" },
	{ 33, EPERR_CM_REJECTED, "invalid alternate flow label" },
	{ 35, EPERR_CM_REJECTED, "vendor option not supported" },
};

/* Of ud, by the status of the answer; the port follows. */
static const struct {
	enum ep_error error;
	const char *name;
} sidr[] = {
	[1] = { EPERR_CM_REFUSED,  "nobody listens on" },
	[2] = { EPERR_CM_REJECTED, "rejected by the program on" },
	[3] = { EPERR_CM_REJECTED, "no queue pair for" },
	[4] = { EPERR_CM_REJECTED, "redirected from" },
	[5] = { EPERR_CM_REJECTED, "version not spoken on" },
};

/* What an event means when its status does not say more. */
static const struct {
	enum rdma_cm_event_type type;
	enum ep_error error;
	const char *what;
} events[] = {
	{ RDMA_CM_EVENT_ADDR_ERROR,     EPERR_NO_NEIGHBOUR, "address not resolved" },
	{ RDMA_CM_EVENT_ROUTE_ERROR,    EPERR_NO_PATH,      "no path" },
	{ RDMA_CM_EVENT_CONNECT_ERROR,  EPERR_LOCAL,        "connect failed" },
	{ RDMA_CM_EVENT_UNREACHABLE,    EPERR_CM_TIMEOUT,   "no answer to connect" },
	{ RDMA_CM_EVENT_REJECTED,       EPERR_CM_REJECTED,  "rejected" },
	{ RDMA_CM_EVENT_DISCONNECTED,   EPERR_DISCONNECTED, "the peer closed the connection" },
	{ RDMA_CM_EVENT_DEVICE_REMOVAL, EPERR_DEVICE_GONE,  "the device is being removed" },
};

static const struct {
	int err;
	enum ep_error error;
} errnos[] = {
	{ ENETUNREACH,   EPERR_NO_ROUTE },
	{ EHOSTUNREACH,  EPERR_NO_ROUTE },
	{ ENODEV,        EPERR_NO_ADDRESS },
	{ EADDRNOTAVAIL, EPERR_NO_ADDRESS },
	{ EOPNOTSUPP,    EPERR_NOT_SUPPORTED },
	{ ECONNREFUSED,  EPERR_CM_REFUSED }, /* iWARP: connecting is TCP's business */
	{ ECONNRESET,    EPERR_CM_REJECTED },
	{ ETIMEDOUT,     EPERR_CM_TIMEOUT },
};
/* clang-format on */

static const char *own_codes[] = {
	[CMREJ_NONE] = "",
	[CMREJ_UNKNOWN] = "fabd there does not wait for this connection",
	[CMREJ_SOURCE] = "fabd there expects it from another address",
	[CMREJ_MALFORMED] = "fabd there cannot read the request",
	[CMREJ_VERSION] = "fabd there speaks another version",
	[CMREJ_STATE] = "fabd there is not ready for it",
	[CMREJ_LOCAL] = "fabd there has no queue pair or memory for it",
};
static_assert(ARRAY_LEN(own_codes) == CMREJ__MAX, "each code has a text");

const char *reason_reject_name(int reason)
{
	for (size_t i = 0; i < ARRAY_LEN(rejects); i++)
		if (rejects[i].reason == reason)
			return rejects[i].name;
	return NULL;
}

static void set(struct reason *ret, enum ep_error error, const char *what,
		const char *detail)
{
	ret->error = error;
	(void)snprintf(ret->text, sizeof(ret->text), "%s%s%s", what,
		       *detail ? ": " : "", detail);
}

static enum ep_error error_of_errno(int err, enum ep_error otherwise)
{
	for (size_t i = 0; i < ARRAY_LEN(errnos); i++)
		if (errnos[i].err == err)
			return errnos[i].error;
	return otherwise;
}

static void rejected(int status, enum cmdata_code code, struct reason *ret)
{
	char number[40];
	const char *name;

	if (code != CMREJ_NONE) {
		set(ret, EPERR_CM_REJECTED, "rejected", own_codes[code]);
		return;
	}
	if (status <
	    0) { /* iWARP: errno. A reset during the handshake is no refusal. */
		set(ret, status == -ECONNREFUSED ? EPERR_CM_REFUSED : EPERR_CM_REJECTED,
		    status == -ECONNREFUSED ? "refused" : "rejected",
		    strerror(-status));
		return;
	}
	name = reason_reject_name(status);
	(void)snprintf(number, sizeof(number), "reason %d", status);
	set(ret, EPERR_CM_REJECTED, "rejected", name ? name : number);
	for (size_t i = 0; i < ARRAY_LEN(rejects); i++)
		if (rejects[i].reason == status)
			ret->error = rejects[i].error;
}

void reason_sidr(int status, uint16_t port, enum cmdata_code code, struct reason *ret)
{
	char what[24], detail[64];

	if (status <= 0) {
		reason_cm_event(RDMA_CM_EVENT_UNREACHABLE, status, 0, CMREJ_NONE, ret);
		return;
	}
	(void)snprintf(what, sizeof(what), "SIDR status %d", status);
	if (code != CMREJ_NONE) {
		set(ret, EPERR_CM_REJECTED, what, own_codes[code]);
	} else if ((size_t)status < ARRAY_LEN(sidr)) {
		(void)snprintf(detail, sizeof(detail), "%s %u", sidr[status].name, port);
		set(ret, sidr[status].error, what, detail);
	} else {
		set(ret, EPERR_CM_REJECTED, what, "");
	}
}

void reason_cm_event(enum rdma_cm_event_type type, int status, int lib_errno,
		     enum cmdata_code code, struct reason *ret)
{
	const char *what = rdma_event_str(type), *detail = "";
	enum ep_error error = EPERR_LOCAL;
	int err = status == -1 && lib_errno ? lib_errno : status < 0 ? -status : 0;

	if (type == RDMA_CM_EVENT_REJECTED) {
		rejected(status, code, ret);
		return;
	}
	for (size_t i = 0; i < ARRAY_LEN(events); i++) {
		if (events[i].type != type)
			continue;
		error = events[i].error;
		what = events[i].what;
	}
	if (err)
		detail = strerror(err);
	if (type == RDMA_CM_EVENT_DISCONNECTED || type == RDMA_CM_EVENT_DEVICE_REMOVAL)
		detail = "";
	else if (err != ETIMEDOUT && type != RDMA_CM_EVENT_CONNECT_ERROR)
		error = error_of_errno(err, error);
	set(ret, error, what, detail);
}

void reason_call(const char *call, int r, struct reason *ret)
{
	/* Rings of QPs and CQs count against the limit as well. */
	if (r == -ENOMEM && strncmp(call, "rdma_resolve", 12) != 0)
		set(ret, EPERR_LOCAL, call,
		    "out of locked memory (RLIMIT_MEMLOCK; LimitMEMLOCK= of the unit)");
	else
		set(ret, error_of_errno(-r, EPERR_LOCAL), call, strerror(-r));
}

void reason_completion(enum ibv_wc_status status, uint32_t vendor_err, bool sending,
		       struct reason *ret)
{
	bool local = status == IBV_WC_LOC_LEN_ERR || status == IBV_WC_LOC_QP_OP_ERR ||
		     status == IBV_WC_LOC_EEC_OP_ERR || status == IBV_WC_LOC_PROT_ERR ||
		     status == IBV_WC_LOC_ACCESS_ERR || status == IBV_WC_FATAL_ERR;

	ret->error = local ? EPERR_LOCAL : EPERR_SEND_FAILED;
	(void)snprintf(ret->text, sizeof(ret->text), "%s failed: %s (vendor 0x%x)",
		       sending ? "send" : "receive", ibv_wc_status_str(status),
		       vendor_err);
}
