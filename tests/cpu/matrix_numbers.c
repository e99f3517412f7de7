/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers in every type of matrix element, made without the code under test. */
#include <stdlib.h>
#include <string.h>

#include "tests/cpu/matrix_harness.h"

unsigned matrix_bits_of(unsigned type)
{
	static const uint8_t bits[TALLY_MATRIX_TYPES] = {
		[TALLY_MATRIX_F16] = 16, [TALLY_MATRIX_BF16] = 16,     [TALLY_MATRIX_TF32] = 32,
		[TALLY_MATRIX_F32] = 32, [TALLY_MATRIX_F64] = 64,      [TALLY_MATRIX_U8] = 8,
		[TALLY_MATRIX_S8] = 8,	 [TALLY_MATRIX_U4] = 4,	       [TALLY_MATRIX_S4] = 4,
		[TALLY_MATRIX_B1] = 1,	 [TALLY_MATRIX_S32] = 32,      [TALLY_MATRIX_E4M3] = 8,
		[TALLY_MATRIX_E5M2] = 8, [TALLY_MATRIX_E3M2] = 8,      [TALLY_MATRIX_E2M3] = 8,
		[TALLY_MATRIX_E2M1] = 4, [TALLY_MATRIX_E2M1_BYTE] = 8,
	};

	return bits[type];
}

/* A whole number of at most three bits in a small float, its sign in bit `top`. */
static uint64_t small_bits(int v, unsigned bias, unsigned mantissa, unsigned top)
{
	unsigned size = (unsigned)abs(v), e = size < 2 ? 0 : size < 4 ? 1 : 2;

	if (!v)
		return 0;
	return (v < 0 ? 1u << top : 0) | (bias + e) << mantissa |
	       ((size << mantissa >> e) & ((1u << mantissa) - 1));
}

/* The bits of small number `v` as `type`, made without the code under test. */
uint64_t matrix_bits_for(unsigned type, int v)
{
	float f = (float)v;
	double d = v;
	_Float16 h = (_Float16)v;
	uint64_t bits = 0;

	switch (type) {
	case TALLY_MATRIX_F16:
		memcpy(&bits, &h, 2);
		return bits;
	case TALLY_MATRIX_E4M3:
		return small_bits(v, 7, 3, 7);
	case TALLY_MATRIX_E5M2:
		return small_bits(v, 15, 2, 7);
	case TALLY_MATRIX_E3M2:
		return small_bits(v, 3, 2, 5);
	case TALLY_MATRIX_E2M3:
		return small_bits(v, 1, 3, 5);
	case TALLY_MATRIX_E2M1:
		return small_bits(v, 1, 1, 3);
	case TALLY_MATRIX_E2M1_BYTE:
		return small_bits(v, 1, 1, 3) << 2;
	case TALLY_MATRIX_BF16:
		memcpy(&bits, &f, 4);
		return bits >> 16;
	case TALLY_MATRIX_TF32: /* what lies below tf32's mantissa does not count */
		memcpy(&bits, &f, 4);
		return v ? bits | 0x1fff : bits;
	case TALLY_MATRIX_F32:
		memcpy(&bits, &f, 4);
		return bits;
	case TALLY_MATRIX_F64:
		memcpy(&bits, &d, 8);
		return bits;
	default:
		return (uint64_t)(int64_t)v &
		       (matrix_bits_of(type) == 32 ? 0xffffffff : (1u << matrix_bits_of(type)) - 1);
	}
}

/* Small numbers of every sign that the type has. */
int matrix_number(unsigned type, unsigned i)
{
	int v = (int)(i * 2654435761u >> 16 & 0xff);

	switch (type) {
	case TALLY_MATRIX_U8:
		return v;
	case TALLY_MATRIX_S8:
		return v - 128;
	case TALLY_MATRIX_U4:
		return v & 15;
	case TALLY_MATRIX_S4:
		return (v & 15) - 8;
	case TALLY_MATRIX_B1:
		return v & 1;
	case TALLY_MATRIX_E4M3:
	case TALLY_MATRIX_E5M2:
	case TALLY_MATRIX_E3M2:
	case TALLY_MATRIX_E2M3:
		return v % 15 - 7;
	case TALLY_MATRIX_E2M1: /* 5 and 7 are not among them */
	case TALLY_MATRIX_E2M1_BYTE:
		return v % 13 - 6 == 5 || v % 13 - 6 == -5 ? 1 : v % 13 - 6;
	case TALLY_MATRIX_S32:
		return (v - 128) * 1000;
	default:
		return (v & 15) - 8;
	}
}

void matrix_put(uint64_t *lane, unsigned first, unsigned type, unsigned i, uint64_t bits)
{
	unsigned per = matrix_bits_of(type) >= 32 ? 1 : 32 / matrix_bits_of(type);

	lane[first + i / per] |= per == 1 ? bits : bits << i % per * matrix_bits_of(type);
}

/* Distributes a matrix over the lanes; returns the registers that it takes. */
unsigned matrix_distribute(uint64_t *in, unsigned first, unsigned type, unsigned elements,
			   unsigned columns, matrix_place *where, const int *matrix)
{
	unsigned per = matrix_bits_of(type) >= 32 ? 1 : 32 / matrix_bits_of(type);

	for (unsigned lane = 0; lane < 32; lane++)
		for (unsigned i = 0; i < elements / 32; i++) {
			unsigned row, column;

			where(lane, i, &row, &column);
			matrix_put(in + lane * MATRIX_WORDS, first, type, i,
				   matrix_bits_for(type, matrix[row * columns + column]));
		}
	return first + elements / 32 / per;
}
