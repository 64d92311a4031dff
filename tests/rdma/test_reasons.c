/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <errno.h>

#include "reasons.h"

/* (event, status as some transport gives it, errno of the library) -> class, words */
static void events_have_a_class_and_a_text(void **state)
{
	static const struct {
		enum rdma_cm_event_type type;
		int status, lib_errno;
		enum cmdata_code code;
		enum ep_error error;
		const char *words;
	} rows[] = {
		{RDMA_CM_EVENT_ADDR_ERROR, -ETIMEDOUT, 0, 0, EPERR_NO_NEIGHBOUR,
		 "timed out"},
		{RDMA_CM_EVENT_ADDR_ERROR, -ENODEV, 0, 0, EPERR_NO_ADDRESS,
		 "No such device"},
		{RDMA_CM_EVENT_ADDR_ERROR, -EHOSTUNREACH, 0, 0, EPERR_NO_ROUTE,
		 "No route"},
		{RDMA_CM_EVENT_ADDR_ERROR, -1, ENOMEM, 0, EPERR_NO_NEIGHBOUR, "memory"},
		{RDMA_CM_EVENT_ROUTE_ERROR, -ETIMEDOUT, 0, 0, EPERR_NO_PATH,
		 "timed out"},
		{RDMA_CM_EVENT_ROUTE_ERROR, -EINVAL, 0, 0, EPERR_NO_PATH, "Invalid"},
		{RDMA_CM_EVENT_CONNECT_ERROR, -EINVAL, 0, 0, EPERR_LOCAL, "Invalid"},
		{RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT, 0, 0, EPERR_CM_TIMEOUT,
		 "timed out"},
		{RDMA_CM_EVENT_REJECTED, 8, 0, 0, EPERR_CM_REFUSED, "nobody listens"},
		{RDMA_CM_EVENT_REJECTED, 10, 0, 0, EPERR_STALE, "stale"},
		{RDMA_CM_EVENT_REJECTED, 28, 0, 0, EPERR_CM_REJECTED, "program there"},
		{RDMA_CM_EVENT_REJECTED, 28, 0, CMREJ_SOURCE, EPERR_CM_REJECTED,
		 "another address"},
		{RDMA_CM_EVENT_REJECTED, 3, 0, 0, EPERR_CM_REJECTED, "resources"},
		{RDMA_CM_EVENT_REJECTED, 77, 0, 0, EPERR_CM_REJECTED, "reason 77"},
		{RDMA_CM_EVENT_REJECTED, -ECONNREFUSED, 0, 0, EPERR_CM_REFUSED,
		 "refused"},
		{RDMA_CM_EVENT_REJECTED, -ECONNRESET, 0, 0, EPERR_CM_REJECTED, "reset"},
		{RDMA_CM_EVENT_REJECTED, -ECONNRESET, 0, CMREJ_UNKNOWN,
		 EPERR_CM_REJECTED, "does not wait"},
		{RDMA_CM_EVENT_DISCONNECTED, -ETIMEDOUT, 0, 0, EPERR_DISCONNECTED,
		 "closed"},
		{RDMA_CM_EVENT_DISCONNECTED, 0, 0, 0, EPERR_DISCONNECTED, "closed"},
		{RDMA_CM_EVENT_DEVICE_REMOVAL, 0, 0, 0, EPERR_DEVICE_GONE, "removed"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct reason r;

		reason_cm_event(rows[i].type, rows[i].status, rows[i].lib_errno,
				rows[i].code, &r);
		if (r.error != rows[i].error || !strstr(r.text, rows[i].words))
			fail_msg("row %zu: %s, '%s'", i,
				 enum_name(&ep_error_names, r.error), r.text);
		assert_null(strchr(r.text, '\n'));
	}
}

/* Every event with every status that any transport may give, of whatever sign, and with
 * whatever errno the library leaves: a class, one line of words, and no errno of the
 * wrong sign ("Unknown error -110"). */
static void any_status_of_any_event_has_words(void **state)
{
	static const int lib_errnos[] = {0, ENOMEM, ENODEV};

	(void)state;
	for (int type = 0; type < 24; type++)
		for (int status = -200; status <= 200; status++)
			for (size_t e = 0; e < ARRAY_LEN(lib_errnos); e++)
				for (int code = 0; code < CMREJ__MAX; code++) {
					struct reason r = {0};

					reason_cm_event((enum rdma_cm_event_type)type,
							status, lib_errnos[e],
							(enum cmdata_code)code, &r);
					assert_true(r.error != EPERR_NONE);
					assert_true(r.text[0]);
					assert_null(strchr(r.text, '\n'));
					assert_null(strstr(r.text, "error -"));
				}
	for (int err = 1; err < 200; err++) {
		struct reason r = {0};

		reason_call("rdma_connect", -err, &r);
		assert_true(r.error != EPERR_NONE);
		assert_non_null(strstr(r.text, "rdma_connect"));
		assert_null(strstr(r.text, "error -"));
	}
	for (int wc = 0; wc < 40; wc++) {
		struct reason r = {0};

		reason_completion((enum ibv_wc_status)wc, 7, wc & 1, &r);
		assert_true(r.error != EPERR_NONE);
		assert_non_null(strstr(r.text, "vendor 0x7"));
	}
}

static void calls_have_a_class_and_a_text(void **state)
{
	static const struct {
		const char *call;
		int r;
		enum ep_error error;
		const char *words;
	} rows[] = {
		{"rdma_resolve_addr", -ENETUNREACH, EPERR_NO_ROUTE, "unreachable"},
		{"rdma_resolve_addr", -EADDRNOTAVAIL, EPERR_NO_ADDRESS, "assign"},
		{"rdma_resolve_addr", -ENODEV, EPERR_NO_ADDRESS, "No such device"},
		{"rdma_connect", -ECONNREFUSED, EPERR_CM_REFUSED, "refused"},
		{"rdma_connect", -ETIMEDOUT, EPERR_CM_TIMEOUT, "timed out"},
		{"ibv_reg_mr", -ENOMEM, EPERR_LOCAL, "RLIMIT_MEMLOCK"},
		{"ibv_create_cq", -ENOMEM, EPERR_LOCAL, "RLIMIT_MEMLOCK"},
		{"rdma_create_qp", -EINVAL, EPERR_LOCAL, "Invalid"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct reason r;

		reason_call(rows[i].call, rows[i].r, &r);
		if (r.error != rows[i].error || !strstr(r.text, rows[i].words) ||
		    !strstr(r.text, rows[i].call))
			fail_msg("row %zu: %s, '%s'", i,
				 enum_name(&ep_error_names, r.error), r.text);
	}
}

static void completions_blame_the_right_side(void **state)
{
	struct reason r;

	(void)state;
	reason_completion(IBV_WC_RETRY_EXC_ERR, 0x81, true, &r);
	assert_int_equal(r.error, EPERR_SEND_FAILED);
	assert_string_equal(
		r.text, "send failed: transport retry counter exceeded (vendor 0x81)");
	reason_completion(IBV_WC_RNR_RETRY_EXC_ERR, 0, true, &r);
	assert_int_equal(r.error, EPERR_SEND_FAILED);
	reason_completion(IBV_WC_LOC_QP_OP_ERR, 0, true, &r);
	assert_int_equal(r.error, EPERR_LOCAL);
	reason_completion(IBV_WC_LOC_LEN_ERR, 0, false, &r);
	assert_int_equal(r.error, EPERR_LOCAL);
	assert_non_null(strstr(r.text, "receive failed"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(events_have_a_class_and_a_text),
		cmocka_unit_test(any_status_of_any_event_has_words),
		cmocka_unit_test(calls_have_a_class_and_a_text),
		cmocka_unit_test(completions_blame_the_right_side),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
