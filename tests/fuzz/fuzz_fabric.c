/* SPDX-License-Identifier: BSD-2-Clause */
/* A fabric message: what is accepted is written again as the same bytes. */
#include "fuzz.h"

#include <stdlib.h>

#include "fabric.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint8_t key[EP_KEY_LEN] = {1};
	uint8_t buf[FABRIC_LEN];
	struct fabric_msg m;

	if (fabric_decode(data, size, &m))
		return 0;
	(void)fabric_verify(data, key);
	fabric_encode(&m, NULL, buf);
	if (memcmp(buf, data, FABRIC_LEN - 8) != 0)
		abort();
	fabric_encode(&m, key, buf);
	if (!fabric_verify(buf, key))
		abort();
	return 0;
}
