/* SPDX-License-Identifier: Apache-2.0 */
/* Directed rounding: arithmetic and conversions toward zero, down and up (PTX .rz, .rm, .rp). */
#include <fenv.h>
#include <math.h>
#include <string.h>

#include "backends/cpu/executor/internal.h"

static const int direction_of[4] = {FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD, FE_TONEAREST};

/* Keeps the compiler from moving arithmetic across a change of the rounding mode, or from doing it
 * itself. */
#define PIN(x) __asm__ volatile("" : "+x"(x))

#define ROUND(bits, type, fused, root)                                                             \
	type tally_cpu_round##bits(uint32_t what, type a, type b, type c)                          \
	{                                                                                          \
		int saved = fegetround();                                                          \
		type r = 0, one = 1;                                                               \
                                                                                                   \
		fesetround(direction_of[what & 3]);                                                \
		PIN(a);                                                                            \
		PIN(b);                                                                            \
		PIN(c);                                                                            \
		PIN(one);                                                                          \
		switch (what >> 2) {                                                               \
		case TALLY_CPU_ROUND_ADD:                                                          \
			r = a + b;                                                                 \
			break;                                                                     \
		case TALLY_CPU_ROUND_SUB:                                                          \
			r = a - b;                                                                 \
			break;                                                                     \
		case TALLY_CPU_ROUND_MUL:                                                          \
			r = a * b;                                                                 \
			break;                                                                     \
		case TALLY_CPU_ROUND_DIV:                                                          \
			r = a / b;                                                                 \
			break;                                                                     \
		case TALLY_CPU_ROUND_FMA:                                                          \
			r = fused(a, b, c);                                                        \
			break;                                                                     \
		case TALLY_CPU_ROUND_SQRT:                                                         \
			r = root(a);                                                               \
			break;                                                                     \
		case TALLY_CPU_ROUND_RCP:                                                          \
			r = one / a;                                                               \
			break;                                                                     \
		}                                                                                  \
		PIN(r);                                                                            \
		fesetround(saved);                                                                 \
		return r;                                                                          \
	}
ROUND(32, float, fmaf, sqrtf)
ROUND(64, double, fma, sqrt)

static uint32_t bits_of_float(float f)
{
	uint32_t bits;

	memcpy(&bits, &f, sizeof bits);
	return bits;
}

static uint64_t bits_of_double(double d)
{
	uint64_t bits;

	memcpy(&bits, &d, sizeof bits);
	return bits;
}

/* Whether a magnitude that was cut off grows by one step in this direction. */
static bool away(uint32_t direction, bool negative)
{
	return direction == TALLY_CPU_RP ? !negative : direction == TALLY_CPU_RM && negative;
}

static uint16_t half_of(uint32_t bits, uint32_t direction)
{
	bool negative = bits >> 31, inexact;
	uint16_t sign = (uint16_t)(negative << 15);
	uint32_t magnitude = bits & 0x7fffffff, cut;

	if (magnitude > 0x7f800000)
		return 0x7fff; /* PTX: the canonical NaN */
	if (magnitude == 0x7f800000)
		return sign | 0x7c00;
	if (magnitude >= 0x47800000) { /* 65536 and more */
		cut = 0x7bff;
		inexact = true;
	} else if (magnitude >= 0x38800000) { /* normal halves */
		cut = (magnitude - 0x38000000) >> 13;
		inexact = magnitude & 0x1fff;
	} else { /* denormal halves: units of 2^-24 */
		uint32_t exponent = magnitude >> 23;
		uint32_t mantissa =
			exponent ? (magnitude & 0x7fffff) | 0x800000 : magnitude & 0x7fffff;
		uint32_t shift = 126 - (exponent ? exponent : 1);

		cut = shift > 31 ? 0 : mantissa >> shift;
		inexact = shift > 31 ? mantissa != 0 : (mantissa & ((1u << shift) - 1)) != 0;
	}
	return (uint16_t)(sign | (cut + (inexact && away(direction, negative))));
}

static uint16_t bfloat_of(uint32_t bits, uint32_t direction)
{
	if ((bits & 0x7fffffff) > 0x7f800000)
		return 0x7fff;
	return (uint16_t)((bits >> 16) + ((bits & 0xffff) != 0 && away(direction, bits >> 31)));
}

uint64_t tally_cpu_convert(uint32_t what, uint64_t bits)
{
	int saved = fegetround();
	uint64_t result = 0;
	double d;
	float f = 0;

	if (what >> 2 == TALLY_CPU_F32_TO_F16)
		return half_of((uint32_t)bits, what & 3);
	if (what >> 2 == TALLY_CPU_F32_TO_BF16)
		return bfloat_of((uint32_t)bits, what & 3);
	memcpy(&d, &bits, sizeof d);
	fesetround(direction_of[what & 3]);
	__asm__ volatile("" : "+r"(bits), "+x"(d));
	switch (what >> 2) {
	case TALLY_CPU_F64_TO_F32:
		f = (float)d;
		break;
	case TALLY_CPU_I32_TO_F32:
		f = (float)(int32_t)bits;
		break;
	case TALLY_CPU_U32_TO_F32:
		f = (float)(uint32_t)bits;
		break;
	case TALLY_CPU_I64_TO_F32:
		f = (float)(int64_t)bits;
		break;
	case TALLY_CPU_U64_TO_F32:
		f = (float)bits;
		break;
	case TALLY_CPU_I64_TO_F64:
		d = (double)(int64_t)bits;
		break;
	case TALLY_CPU_U64_TO_F64:
		d = (double)bits;
		break;
	}
	PIN(f);
	PIN(d);
	fesetround(saved);
	result = what >> 2 >= TALLY_CPU_I64_TO_F64 ? bits_of_double(d) : bits_of_float(f);
	return result;
}
