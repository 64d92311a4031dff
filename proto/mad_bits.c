/* SPDX-License-Identifier: BSD-2-Clause */
#include "mad_bits.h"

uint64_t bits_get(const uint8_t *data, unsigned offset, unsigned width)
{
	uint64_t v = 0;

	for (unsigned i = offset; i < offset + width;) {
		unsigned at = i % 8, n = MIN(8 - at, offset + width - i);
		unsigned part = (data[i / 8] >> (8 - at - n)) & ((1U << n) - 1);

		v = (v << n) | part;
		i += n;
	}
	return v;
}

void bits_put(uint8_t *data, unsigned offset, unsigned width, uint64_t v)
{
	for (unsigned left = width; left > 0;) {
		unsigned i = offset + left - 1, at = 7 - i % 8;
		unsigned n = MIN(8 - at, left);
		uint8_t mask = (uint8_t)(((1U << n) - 1) << at);

		data[i / 8] =
			(uint8_t)((data[i / 8] & ~mask) | (((unsigned)v << at) & mask));
		v >>= n;
		left -= n;
	}
}

static void member_put(uint8_t *p, size_t size, uint64_t v)
{
	uint8_t v8 = (uint8_t)v;
	uint16_t v16 = (uint16_t)v;
	uint32_t v32 = (uint32_t)v;

	switch (size) {
	case 1:
		memcpy(p, &v8, 1);
		break;
	case 2:
		memcpy(p, &v16, 2);
		break;
	case 4:
		memcpy(p, &v32, 4);
		break;
	default:
		memcpy(p, &v, 8);
		break;
	}
}

static uint64_t member_get(const uint8_t *p, size_t size)
{
	uint16_t v16;
	uint32_t v32;
	uint64_t v;

	switch (size) {
	case 1:
		return *p;
	case 2:
		memcpy(&v16, p, 2);
		return v16;
	case 4:
		memcpy(&v32, p, 4);
		return v32;
	default:
		memcpy(&v, p, 8);
		return v;
	}
}

void bits_decode(const struct bits *t, size_t n, const uint8_t *data, void *ret)
{
	for (size_t i = 0; i < n; i++)
		member_put((uint8_t *)ret + t[i].member, t[i].size,
			   bits_get(data, t[i].offset, t[i].width));
}

void bits_encode(const struct bits *t, size_t n, const void *from, uint8_t *data)
{
	for (size_t i = 0; i < n; i++)
		bits_put(data, t[i].offset, t[i].width,
			 member_get((const uint8_t *)from + t[i].member, t[i].size));
}
