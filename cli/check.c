/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fabctl check: is this host fit for work, in one line that is the same as long as nothing
 * changes, and in the exit code. Whatever keeps it from knowing is UNKNOWN.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "check.h"
#include "clean.h"
#include "cli.h"
#include "fields.h"
#include "json_out.h"

#define AGAIN_MS 500

static int64_t now_ms(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

/* What is told is the line of the answer, not noise beside it. */
static json_t *ask(struct cli *c)
{
	json_t *answer;

	tell_hold(true);
	answer = cli_get(c, "io.fabd.Check", NULL, "check");
	tell_hold(false);
	if (!answer)
		c->client = client_free(c->client);
	return answer;
}

static json_t *not_known(void)
{
	return json_pack("{s:s, s:s, s:s, s:[], s:n, s:n, s:n, s:n, s:n}", "status",
			 "unknown", "found", "unknown", "summary", tell_held(), "problems",
			 "ports", "ports_ok", "rails", "rails_ok", "read_age_sec");
}

static enum check_status status_of(const json_t *answer, const char *key)
{
	const char *name = get_text(answer, key);
	int s = name ? enum_find(&check_status_names, name) : -1;

	return s < 0 ? CHECK_UNKNOWN : (enum check_status)s;
}

/* Until it is well or the time is over. */
static json_t *ask_until_well(struct cli *c)
{
	int64_t until = now_ms() + c->wait_ms;

	for (;;) {
		json_t *answer = ask(c);
		int64_t left = until - now_ms();
		struct timespec pause = {0, MIN(left, AGAIN_MS) * 1000000};

		if (left <= 0 || (answer && status_of(answer, "status") == CHECK_OK))
			return answer;
		json_decref(answer);
		(void)nanosleep(&pause, NULL);
	}
}

static enum tint status_tint(enum check_status s)
{
	return s == CHECK_OK ? TINT_GOOD : s == CHECK_FAILED ? TINT_BAD : TINT_WARN;
}

static void put_check(const struct cli *c, const json_t *answer, enum check_status s)
{
	const struct layout *l = &c->layout;
	const char *summary = get_text(answer, "summary");
	const json_t *p;
	size_t i;

	/* Never wrapped: one line a host is what folds. */
	(void)fprintf(l->out, "%s%s%s%s%s\n", tint_on(l, status_tint(s)), check_word(s),
		      tint_off(l, status_tint(s)), summary && *summary ? " " : "",
		      summary ? summary : "");
	if (!c->verbose)
		return;
	json_array_foreach (get_array(answer, "problems"), i, p) {
		const char *name = get_text(p, "name");

		block_line(l, check_word(status_of(p, "status")), "%s%s%s", name ? name : "",
			   name && *name ? " " : "", get_shown(p, "text"));
	}
}

static int exit_code(enum check_status s, bool fail_on_degraded)
{
	switch (s) {
	case CHECK_OK:
		return EXIT_OK;
	case CHECK_DEGRADED:
		return fail_on_degraded ? EXIT_ERROR : EXIT_OK;
	case CHECK_FAILED:
		return EXIT_BAD;
	default:
		return EXIT_UNKNOWN;
	}
}

int check(struct cli *c)
{
	bool degraded = !c->fail_on || str_eq(c->fail_on, "degraded");
	enum check_status s;
	json_t *answer;

	if (c->argc)
		(void)cli_usage("check takes no name, and '%s' is one", c->argv[0]);
	else if (!degraded && !str_eq(c->fail_on, "failed"))
		(void)cli_usage("--fail-on takes degraded or failed, not '%s'", c->fail_on);
	if (c->argc || (!degraded && !str_eq(c->fail_on, "failed")))
		return EXIT_UNKNOWN;
	answer = c->wait_ms ? ask_until_well(c) : ask(c);
	if (!answer)
		answer = not_known();
	/* Who has waited is told what there is, however young the host. */
	s = status_of(answer, c->wait_ms ? "found" : "status");
	if (cli_is_text(c))
		put_check(c, answer, s);
	else
		(void)json_out(c, answer);
	json_decref(answer);
	return exit_code(s, degraded);
}
