/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mad_bits.h - bit fields of attributes as tables, shared by the codecs of mad.h: an
 * offset and a width in bits from the most significant of byte 0 (IBA 1.5.2), and the
 * member that holds the value in host order. Pure.
 */
#pragma once

#include "mad.h"

struct bits {
	uint16_t offset, width; /* bits, width 1..64 */
	uint16_t member, size;	/* bytes, in the struct; size 1, 2, 4 or 8 */
};

/* A row for member @m of struct @s. */
#define BITS(s, m, offset, width)                                                      \
	{                                                                              \
		offset, width, (uint16_t)offsetof(struct s, m),                        \
			(uint16_t)sizeof(((struct s *)0)->m)                           \
	}

uint64_t bits_get(const uint8_t *data, unsigned offset, unsigned width);
void bits_put(uint8_t *data, unsigned offset, unsigned width, uint64_t v);
/* All @n rows; what has no row is left as it is, on both sides. */
void bits_decode(const struct bits *t, size_t n, const uint8_t *data, void *ret);
void bits_encode(const struct bits *t, size_t n, const void *from, uint8_t *data);
