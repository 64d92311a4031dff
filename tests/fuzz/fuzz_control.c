/* SPDX-License-Identifier: BSD-2-Clause */
/* A control datagram: what is accepted can be said again and means the same. */
#include "fuzz.h"

#include <stdlib.h>

#include "control.h"

static const struct auth_keys keys = {.n = 1, .key = {{.id = 0x0badcafe, .len = 16}}};

static const struct ctl_rail_facts no_facts;

static void check_again(struct ctl_msg *m)
{
	static struct ctl_msg again;
	uint8_t buf[CTL_DATAGRAM_MAX];
	struct ctl_auth auth;
	size_t n = ctl_encode(m, &keys.key[0], buf);

	if (n > sizeof(buf) || ctl_decode(buf, n, &again, &auth))
		abort();
	/* facts for which there is no room are not said again */
	for (int i = CTL_RAILS_MAX - 1; i >= 0 && n + 64 > CTL_FACTS_ROOM; i--) {
		if (memcmp(&again.facts[i], &no_facts, sizeof(no_facts)) != 0)
			break;
		m->facts[i] = no_facts;
	}
	if (memcmp(m, &again, sizeof(again)) != 0 || !ctl_verify(buf, &auth, &keys))
		abort();
}

static void check_answer(const struct ctl_msg *m, enum ctl_cmd cmd, size_t size)
{
	static struct ctl_msg answer;
	uint8_t buf[CTL_DATAGRAM_MAX];

	ctl_stateless_answer(m, cmd, &answer);
	if (ctl_encode(&answer, &keys.key[0], buf) > size)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct ctl_msg m;
	struct ctl_auth auth;
	int r = ctl_decode(data, size, &m, &auth);

	/* Of another version, what is shorter than any first message gets no answer. */
	if ((r == -(1 + DROP_VERSION) && size >= CTL_STATELESS_MAX) ||
	    (!r && m.cmd == CTL_RESET)) {
		check_answer(&m, CTL_REFUSED, size);
		check_answer(&m, CTL_CHALLENGE, size);
	}
	if (r)
		return 0;
	if (auth.present) {
		if (auth.covered + AUTH_TAG_LEN != size)
			abort();
		(void)ctl_verify(data, &auth, &keys);
		check_answer(&m, CTL_UNKNOWN, size);
	}
	check_again(&m);
	return 0;
}
