/* SPDX-License-Identifier: Apache-2.0 */
/* Elements of matrices: from the bits in a register to a number, and back. */
#include <math.h>
#include <string.h>

#include "backends/cpu/executor/matrix.h"

static const struct {
	uint8_t bits;
	bool integer, sign;
	uint8_t mantissa, bias; /* of small floats */
} types[TALLY_MATRIX_TYPES] = {
	[TALLY_MATRIX_F16] = {16, false, false},
	[TALLY_MATRIX_BF16] = {16, false, false},
	[TALLY_MATRIX_TF32] = {32, false, false},
	[TALLY_MATRIX_F32] = {32, false, false},
	[TALLY_MATRIX_F64] = {64, false, false},
	[TALLY_MATRIX_U8] = {8, true, false},
	[TALLY_MATRIX_S8] = {8, true, true},
	[TALLY_MATRIX_U4] = {4, true, false},
	[TALLY_MATRIX_S4] = {4, true, true},
	[TALLY_MATRIX_B1] = {1, true, false},
	[TALLY_MATRIX_S32] = {32, true, true},
	[TALLY_MATRIX_E4M3] = {8, false, false, 3, 7},
	[TALLY_MATRIX_E5M2] = {8, false, false},
	[TALLY_MATRIX_E3M2] = {8, false, false, 2, 3},
	[TALLY_MATRIX_E2M3] = {8, false, false, 3, 1},
	[TALLY_MATRIX_E2M1] = {4, false, false, 1, 1},
	[TALLY_MATRIX_E2M1_BYTE] = {8, false, false, 1, 1},
};

unsigned tally_cpu_element_bits(uint8_t type)
{
	return types[type].bits;
}

bool tally_cpu_element_whole(uint8_t type)
{
	return types[type].integer;
}

unsigned tally_cpu_elements(uint8_t type)
{
	return types[type].bits >= 32 ? 1 : 32 / types[type].bits;
}

static double from_half(uint16_t bits)
{
	_Float16 half;

	memcpy(&half, &bits, sizeof half);
	return (double)half;
}

static double from_single(uint32_t bits)
{
	float f;

	memcpy(&f, &bits, sizeof f);
	return f;
}

/* A sign, an exponent, a mantissa of so many bits; no infinity and no NaN. */
static double from_small(unsigned bits, unsigned width, unsigned mantissa, unsigned bias)
{
	unsigned size = bits & ((1u << (width - 1)) - 1), one = 1u << mantissa;
	int e = (int)(size >> mantissa), unit = (int)(bias + mantissa);
	double v = ldexp((e ? one : 0) + (size & (one - 1)), (e ? e : 1) - unit);

	return bits >> (width - 1) & 1 ? -v : v;
}

/* The largest size is NaN. */
static double from_e4m3(unsigned bits)
{
	return (bits & 0x7f) == 0x7f ? NAN : from_small(bits, 8, 3, 7);
}

union tally_cpu_element tally_cpu_decode(uint8_t type, uint64_t bits)
{
	union tally_cpu_element e = {0};
	unsigned width = types[type].bits;

	if (width < 64)
		bits &= (1ull << width) - 1;
	switch (type) {
	case TALLY_MATRIX_F16:
		e.real = from_half((uint16_t)bits);
		break;
	case TALLY_MATRIX_BF16:
		e.real = from_single((uint32_t)bits << 16);
		break;
	case TALLY_MATRIX_E4M3:
		e.real = from_e4m3((unsigned)bits);
		break;
	case TALLY_MATRIX_E5M2:
		e.real = from_half((uint16_t)(bits << 8));
		break;
	case TALLY_MATRIX_E3M2:
	case TALLY_MATRIX_E2M3:
		e.real = from_small((unsigned)bits, 6, types[type].mantissa, types[type].bias);
		break;
	case TALLY_MATRIX_E2M1:
	case TALLY_MATRIX_E2M1_BYTE:
		e.real = from_small((unsigned)bits >> (width - 4) / 2, 4, 1, 1);
		break;
	case TALLY_MATRIX_TF32:
		e.real = from_single((uint32_t)bits & 0xffffe000);
		break;
	case TALLY_MATRIX_F32:
		e.real = from_single((uint32_t)bits);
		break;
	case TALLY_MATRIX_F64:
		memcpy(&e.real, &bits, sizeof e.real);
		break;
	default:
		e.whole = types[type].sign ? (int64_t)(bits << (64 - width)) >> (64 - width)
					   : (int64_t)bits;
	}
	return e;
}

uint64_t tally_cpu_encode(uint8_t type, uint16_t flags, union tally_cpu_element e)
{
	uint64_t bits = 0;
	float f = (float)e.real;

	switch (type) {
	case TALLY_MATRIX_F16: {
		_Float16 half = (_Float16)e.real;

		if (isnan(e.real))
			return 0x7fff;
		memcpy(&bits, &half, sizeof half);
		return bits;
	}
	case TALLY_MATRIX_F32:
		if (isnan(e.real))
			return 0x7fffffff;
		memcpy(&bits, &f, sizeof f);
		return bits;
	case TALLY_MATRIX_F64:
		memcpy(&bits, &e.real, sizeof e.real);
		return bits;
	default:
		if (flags & TALLY_MATRIX_SATURATED)
			e.whole = e.whole > INT32_MAX	? INT32_MAX
				  : e.whole < INT32_MIN ? INT32_MIN
							: e.whole;
		return (uint32_t)e.whole;
	}
}

double tally_cpu_factor(unsigned bits, bool ue4m3)
{
	if (ue4m3)
		return from_e4m3(bits & 0x7f);
	return bits == 0xff ? NAN : ldexp(1, (int)bits - 127);
}
