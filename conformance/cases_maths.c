/* SPDX-License-Identifier: Apache-2.0 */
/* Arithmetic: exact where IEEE 754 or the PTX ISA says what the bits are, close where they do not.
 */
#include <math.h>
#include <stdlib.h>

#include "conformance/cases.h"

#define TOTAL ((size_t)case_blocks(c) * case_threads(c))

static float half(float x)
{
	return (float)(_Float16)x;
}

/* One rounding to half of a product and a sum that a double holds exactly. */
static float half_fma(float a, float b, float c)
{
	return (float)(_Float16)((double)a * (double)b + (double)c);
}

static void half_math(void *const *buffer, const struct conformance_case *c)
{
	for (size_t i = 0; i < TOTAL; i++) {
		float x = ((const float *)buffer[0])[i], a = half(x), b = half(x * 0.5f + 1.0f);
		float qa = half_fma(a, a, 0.25f), qb = half_fma(b, b, 0.25f);
		float r = half(half(a * b) + half(b - a));

		if (a > b)
			r = -r;
		r = r > -100.0f ? r : -100.0f;
		((float *)buffer[1])[i] = r + qa * 2.0f + qb + rintf(a);
	}
}

/* Round to nearest even bfloat16. */
static float bfloat(float x)
{
	uint32_t u;

	__builtin_memcpy(&u, &x, 4);
	u += 0x7fff + (u >> 16 & 1);
	u &= 0xffff0000u;
	__builtin_memcpy(&x, &u, 4);
	return x;
}

static void bfloat_math(void *const *buffer, const struct conformance_case *c)
{
	for (size_t i = 0; i < TOTAL; i++) {
		float x = ((const float *)buffer[0])[i], a = bfloat(x),
		      b = bfloat(x * 0.125f - 2.0f);
		float r = bfloat(a + b) - bfloat(a * b);

		r += bfloat(a * 1.5f) + 2.0f * bfloat(b * 1.5f);
		((float *)buffer[1])[i] = a < b ? r : -r;
	}
}

static void math_exact(void *const *buffer, const struct conformance_case *c)
{
	for (size_t i = 0; i < TOTAL; i++) {
		float x = ((const float *)buffer[0])[i], y = fmaf(x, 3.0f, 1.0f), r = x / y;

		r += sqrtf(fabsf(x));
		r = fmaf(r, x, y);
		r += floorf(x) - ceilf(y) + truncf(x * 1.5f) + rintf(y * 0.5f);
		r = fminf(fmaxf(r, -1e6f), 1e6f);
		((float *)buffer[1])[i] = copysignf(r, x);

		double a = x, b = y, s = a / b;

		s += sqrt(fabs(a));
		s = fma(s, a, b);
		((double *)buffer[2])[i] = s + (double)(int64_t)(a * 1000.0) + (double)(int32_t)x +
					   (double)(uint32_t)rint(fabs(b));
	}
}

static void math_library(void *const *buffer, const struct conformance_case *c)
{
	for (size_t i = 0; i < TOTAL; i++) {
		double x = ((const float *)buffer[0])[i], y = fabs(x);

		((float *)buffer[1])[i] =
			(float)(sin(x) + cos(x) * exp(-y) + log(y + 1) + pow(y + 0.5, 1.25) +
				tanh(x) + erf(x) + atan2(x, 2) + cbrt(x) + exp2(x * (double)0.1f) +
				log2(y + 2) + 1 / sqrt(y + 1) + fmod(x, 3));
		((double *)buffer[2])[i] = sin(x) + cos(x) + exp(-y) + log(y + 1) +
					   pow(y + 0.5, 1.25) + tanh(x) + erf(x) + lgamma(y + 1) +
					   hypot(x, 1) + log1p(y) + expm1(x * 0.01);
	}
}

static void math_fast(void *const *buffer, const struct conformance_case *c)
{
	for (size_t i = 0; i < TOTAL; i++) {
		double x = ((const float *)buffer[0])[i], y = fabs(x);

		((float *)buffer[1])[i] = (float)(exp(x * 0.1) + sin(x * 0.1) + cos(x * 0.1) +
						  log(y + 1) + x / 3 + 1 / sqrt(y + 1) +
						  (x < 0   ? 0
						   : x > 1 ? 1
							   : x) +
						  pow(y + 1, 0.3));
	}
}

static uint32_t prmt(uint32_t a, uint32_t b, uint32_t selector)
{
	uint64_t bytes = (uint64_t)b << 32 | a;
	uint32_t r = 0;

	/* The kernel's selector has no sign bits (& 0x7777). */
	for (unsigned k = 0; k < 4; k++)
		r |= (uint32_t)(bytes >> (selector >> 4 * k & 7) * 8 & 0xff) << 8 * k;
	return r;
}

static uint32_t bfe_u(uint32_t a, uint32_t position, uint32_t length)
{
	return length ? (uint32_t)((uint64_t)a >> position & (((uint64_t)1 << length) - 1)) : 0;
}

/* bfe.s32: bits beyond the word read as its sign. */
static uint32_t bfe_s(uint32_t a, uint32_t position, uint32_t length)
{
	if (!length)
		return 0;
	int64_t wide = (int64_t)(int32_t)a >> position;
	return (uint32_t)((int64_t)((uint64_t)wide << (64 - length)) >> (64 - length));
}

static uint32_t bfi(uint32_t a, uint32_t b, uint32_t position, uint32_t length)
{
	uint32_t mask = (uint32_t)(((((uint64_t)1 << length) - 1) << position));

	return (b & ~mask) | (a << position & mask);
}

static uint32_t dp4a_s(uint32_t a, uint32_t b, uint32_t c)
{
	for (unsigned k = 0; k < 32; k += 8)
		c += (uint32_t)((int8_t)(a >> k) * (int8_t)(b >> k));
	return c;
}

static uint32_t dp4a_u(uint32_t a, uint32_t b, uint32_t c)
{
	for (unsigned k = 0; k < 32; k += 8)
		c += (a >> k & 0xff) * (b >> k & 0xff);
	return c;
}

static uint32_t brev(uint32_t x)
{
	uint32_t r = 0;

	for (unsigned k = 0; k < 32; k++)
		r |= (x >> k & 1) << (31 - k);
	return r;
}

static uint32_t clz(uint32_t x)
{
	return x ? (uint32_t)__builtin_clz(x) : 32;
}

static uint32_t integer_word(uint32_t a, uint32_t b)
{
	uint32_t r = (uint32_t)((uint64_t)a * b >> 32) ^
		     (uint32_t)((int64_t)(int32_t)a * (int32_t)b >> 32);
	uint64_t pair = (uint64_t)b << 32 | a; /* funnel shifts take {hi, lo} = {b, a} */

	r += (uint32_t)__builtin_popcount(a) + clz(a) * 3 + (uint32_t)__builtin_ffs((int)b) * 5;
	r ^= brev(a);
	r += prmt(a, b, a & 0x7777);
	uint32_t clamp_l = (a & 63) > 32 ? 32 : a & 63, clamp_r = (b & 63) > 32 ? 32 : b & 63;
	r ^= (uint32_t)(pair << (a & 31) >> 32) + (uint32_t)(pair >> (b & 31)) +
	     (uint32_t)(pair << clamp_l >> 32) + (uint32_t)(pair >> clamp_r);
	r += dp4a_s(a, b, r) + dp4a_u(a, b, r);
	int64_t difference = (int64_t)(int32_t)a - (int32_t)b;
	uint32_t distance = a > b ? a - b : b - a;
	r ^= (uint32_t)(difference < 0 ? -difference : difference) + a + (distance + r);
	int32_t sa = (int32_t)(a << 8) >> 8, sb = (int32_t)(b << 8) >> 8;
	r += (uint32_t)((int64_t)sa * sb) + (a & 0xffffff) * (b & 0xffffff) +
	     (uint32_t)(((int64_t)(int32_t)a + (int32_t)b) >> 1) +
	     (uint32_t)(((int64_t)(int32_t)a + (int32_t)b + 1) >> 1);
	r += a / (b | 1) + a % (b | 3) + (uint32_t)((int32_t)a / (int32_t)(b | 1));
	r += bfe_u(a, b & 31, a & 15);
	r ^= bfe_s(a, b & 31, b >> 28);
	r += bfi(a, b, a & 31, b & 15);
	r ^= 31 - clz(a >> (b & 31)); /* bfind of 0 is 0xffffffff, and so is 31 - 32 */
	r += (a & b) | (~a & r);
	return r;
}

static uint64_t integer_wide(uint32_t a, uint32_t b)
{
	uint64_t x = ((uint64_t)a << 32 | b) ^ 0x1234567u, y = (uint64_t)b << 7 | 5;
	uint64_t s = (uint64_t)((unsigned __int128)x * y >> 64) ^
		     (uint64_t)((__int128)(int64_t)x * (int64_t)y >> 64);
	uint64_t reversed = (uint64_t)brev((uint32_t)x) << 32 | brev((uint32_t)(x >> 32));

	s += x / y + x % y + (uint64_t)((int64_t)x / (int64_t)(y | 9)) +
	     (uint64_t)__builtin_popcountll(x) + (uint64_t)__builtin_clzll(y) + reversed +
	     (uint64_t)__builtin_ffsll((int64_t)y);
	return s + x;
}

static void integer_ops(void *const *buffer, const struct conformance_case *c)
{
	for (size_t i = 0; i < TOTAL; i++) {
		uint32_t a = ((const uint32_t *)buffer[0])[i], b = a * 2654435761u + 12345u;

		((uint32_t *)buffer[1])[i] = integer_word(a, b);
		((uint64_t *)buffer[2])[i] = integer_wide(a, b);
	}
}

#define FLOATS {CASE_F32, 512, fill_floats, 0, NULL}
#define MATHS(label, function, ...)                                                                \
	{                                                                                          \
		.name = label, .kernel = #function, .grid = {8, 1, 1}, .block = {64, 1, 1},        \
		.buffer = __VA_ARGS__, .reference = function

const struct conformance_case
	cases_maths[] = {MATHS("half_math", half_math, {FLOATS, {CASE_F32, 512, NULL, 0, NULL}}),
			 .parameters = "bbr"},
	MATHS("bfloat_math", bfloat_math, {FLOATS, {CASE_F32, 512, NULL, 0, NULL}}),
	.parameters = "bbr"
}
,
	MATHS("math_exact", math_exact,
	      {FLOATS, {CASE_F32, 512, NULL, 0, NULL}, {CASE_F64, 512, NULL, 0, NULL}}),
	.parameters = "bbbr"
}
,
	MATHS("math_library", math_library,
	      {FLOATS, {CASE_F32, 512, NULL, 2e-6, NULL}, {CASE_F64, 512, NULL, 1e-13, NULL}}),
	.parameters = "bbbr"
}
, MATHS("math_fast", math_fast, {FLOATS, {CASE_F32, 512, NULL, 2e-5, NULL}}), .parameters = "bbr"
}
,
	MATHS("integer_ops", integer_ops,
	      {{CASE_I32, 512, fill_words, 0, NULL},
	       {CASE_I32, 512, NULL, 0, NULL},
	       {CASE_I64, 512, NULL, 0, NULL}}),
	.parameters = "bbbr"
}
, {.name = NULL},
}
;
