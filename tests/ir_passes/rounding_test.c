/* SPDX-License-Identifier: Apache-2.0 */
/* Directed rounding against the machine's own rounding modes, bit for bit: denormals, infinities,
 * signed zeros, overflow, cancellation. */
#include <fenv.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "tests/ir_passes/ir_test.h"
#include "tests/ir_passes/jit.h"

enum { ROUNDS = 60000 };

static struct ir_jit *jit;

static const struct {
	const char *name;
	int machine;
} modes[] = {{"rz", FE_TOWARDZERO}, {"rm", FE_DOWNWARD}, {"rp", FE_UPWARD}};

static double from_bits(uint64_t bits)
{
	double x;

	memcpy(&x, &bits, sizeof x);
	return x;
}

static float from_bits32(uint32_t bits)
{
	float x;

	memcpy(&x, &bits, sizeof x);
	return x;
}

static const double special[] = {0.0,
				 -0.0,
				 1.0,
				 -1.0,
				 INFINITY,
				 -INFINITY,
				 NAN,
				 0x1p-1074,
				 -0x1p-1074,
				 0x1p-1022,
				 0x1.fffffffffffffp1023,
				 -0x1.fffffffffffffp1023,
				 3.0,
				 0x1p-537,
				 0x1p512,
				 0x1.0000000000001p0,
				 0x1p-149,
				 0x1.fffffep127,
				 0x1p-126,
				 65504.0,
				 65519.9999,
				 0x1p-24};
enum { SPECIAL = sizeof special / sizeof *special };

/* Special values; any bits; values near one another, whose sums cancel; short mantissas, whose
 * results are exact or ties. */
static double pick(double near)
{
	uint64_t bits = ir_test_random();

	switch (ir_test_random() % 6) {
	case 0:
		return special[bits % SPECIAL];
	case 1:
		return from_bits((bits & 0x8000000000000000u) |
				 (bits & 0x000fffffffffffffu) >> (bits >> 58));
	case 2:
		memcpy(&bits, &near, sizeof bits);
		return from_bits((bits ^ 0x8000000000000000u) + (ir_test_random() & 7) - 3);
	case 3:
		return from_bits((bits & 0xfff0000000000000u) | (bits & 0x000f000000000000u));
	case 4:
		return ldexp((double)(int64_t)bits, (int)(ir_test_random() % 140) - 120);
	default:
		return from_bits(bits);
	}
}

static float pick32(float near)
{
	uint32_t bits = (uint32_t)ir_test_random();

	switch (ir_test_random() % 5) {
	case 0:
		return (float)special[bits % SPECIAL];
	case 1:
		return from_bits32((bits & 0x80000000u) | (bits & 0x007fffffu) >> (bits >> 28));
	case 2:
		memcpy(&bits, &near, sizeof bits);
		return from_bits32((bits ^ 0x80000000u) + (uint32_t)(ir_test_random() & 7) - 3);
	case 3:
		return ldexpf((float)(int32_t)bits, (int)(ir_test_random() % 100) - 60);
	default:
		return from_bits32(bits);
	}
}

static void assert_same(const char *what, const double *in, double got, double expected)
{
	if (isnan(got) && isnan(expected))
		return;
	if (memcmp(&got, &expected, sizeof got))
		fail_msg("%s(%a, %a, %a) = %a, expected %a", what, in[0], in[1], in[2], got,
			 expected);
}

static void assert_same32(const char *what, const float *in, float got, float expected)
{
	if (isnan(got) && isnan(expected))
		return;
	if (memcmp(&got, &expected, sizeof got))
		fail_msg("%s(%a, %a, %a) = %a, expected %a", what, in[0], in[1], in[2], got,
			 expected);
}

/* The operations, as the machine does them in its current mode. */
#define OPERATIONS(T, F, S)                                                                        \
	static T add##S(const volatile T *v)                                                       \
	{                                                                                          \
		return v[0] + v[1];                                                                \
	}                                                                                          \
	static T sub##S(const volatile T *v)                                                       \
	{                                                                                          \
		return v[0] - v[1];                                                                \
	}                                                                                          \
	static T mul##S(const volatile T *v)                                                       \
	{                                                                                          \
		return v[0] * v[1];                                                                \
	}                                                                                          \
	static T div##S(const volatile T *v)                                                       \
	{                                                                                          \
		return v[0] / v[1];                                                                \
	}                                                                                          \
	static T fma##S(const volatile T *v)                                                       \
	{                                                                                          \
		return (fma##F)(v[0], v[1], v[2]);                                                 \
	}                                                                                          \
	static T sqrt##S(const volatile T *v)                                                      \
	{                                                                                          \
		return (sqrt##F)(v[0]);                                                            \
	}                                                                                          \
	static T rcp##S(const volatile T *v)                                                       \
	{                                                                                          \
		return (T)1 / v[0];                                                                \
	}

OPERATIONS(double, , _64)
OPERATIONS(float, f, _32)

typedef double d_fn(double, double, double);
typedef float f_fn(float, float, float);

/* The library's functions take one to three operands; further arguments in registers do no harm. */
static const struct {
	const char *name;
	double (*machine64)(const volatile double *);
	float (*machine32)(const volatile float *);
} operations[] = {
	{"add", add_64, add_32}, {"sub", sub_64, sub_32}, {"mul", mul_64, mul_32},
	{"div", div_64, div_32}, {"fma", fma_64, fma_32}, {"sqrt", sqrt_64, sqrt_32},
	{"rcp", rcp_64, rcp_32},
};

static void arithmetic(void **unused)
{
	for (size_t m = 0; m < 3; m++)
		for (size_t o = 0; o < sizeof operations / sizeof *operations; o++) {
			char name[64];
			d_fn *f64;
			f_fn *f32;

			snprintf(name, sizeof name, "tally.round.%s.%s.f32", operations[o].name,
				 modes[m].name);
			f32 = (f_fn *)ir_jit_lookup(jit, name);
			strcpy(strstr(name, ".f32"), ".f64");
			f64 = (d_fn *)ir_jit_lookup(jit, name);
			for (unsigned n = 0; n < ROUNDS; n++) {
				double in[3], expected;
				float in32[3], expected32;

				in[0] = pick(1);
				in[1] = pick(in[0]);
				in[2] = pick(-in[0] * in[1]);
				in32[0] = pick32(1);
				in32[1] = pick32(in32[0]);
				in32[2] = pick32(-in32[0] * in32[1]);
				fesetround(modes[m].machine);
				expected = operations[o].machine64(in);
				expected32 = operations[o].machine32(in32);
				fesetround(FE_TONEAREST);
				assert_same(name, in, f64(in[0], in[1], in[2]), expected);
				assert_same32(name, in32, f32(in32[0], in32[1], in32[2]),
					      expected32);
			}
		}
}

static void narrowing_and_integers(void **unused)
{
	for (size_t m = 0; m < 3; m++) {
		char name[64];
#define GET(T, suffix)                                                                             \
	(snprintf(name, sizeof name, "tally.cvt.%s." suffix, modes[m].name),                       \
	 (T *)ir_jit_lookup(jit, name))
		float (*f32_f64)(double) = (void *)GET(void, "f32.f64");
		float (*f32_i32)(int32_t) = (void *)GET(void, "f32.i32");
		float (*f32_u32)(uint32_t) = (void *)GET(void, "f32.u32");
		float (*f32_i64)(int64_t) = (void *)GET(void, "f32.i64");
		float (*f32_u64)(uint64_t) = (void *)GET(void, "f32.u64");
		double (*f64_i64)(int64_t) = (void *)GET(void, "f64.i64");
		double (*f64_u64)(uint64_t) = (void *)GET(void, "f64.u64");

		for (unsigned n = 0; n < ROUNDS; n++) {
			volatile double x = pick(1);
			volatile uint64_t u = ir_test_random() >> (ir_test_random() & 63);
			volatile int64_t i = (int64_t)(ir_test_random() & 1 ? u : -u);
			volatile uint32_t u32 = (uint32_t)u;
			volatile int32_t i32 = (int32_t)i;
			double in[3] = {x}, none[3] = {0};
			volatile float e[5];
			volatile double d[2];

			fesetround(modes[m].machine);
			e[0] = (float)x;
			e[1] = (float)i32;
			e[2] = (float)u32;
			e[3] = (float)i;
			e[4] = (float)u;
			d[0] = (double)i;
			d[1] = (double)u;
			fesetround(FE_TONEAREST);
			assert_same("f32.f64", in, f32_f64(x), e[0]);
			assert_same("f32.i32", none, f32_i32(i32), e[1]);
			assert_same("f32.u32", none, f32_u32(u32), e[2]);
			assert_same("f32.i64", none, f32_i64(i), e[3]);
			assert_same("f32.u64", none, f32_u64(u), e[4]);
			assert_same("f64.i64", none, f64_i64(i), d[0]);
			assert_same("f64.u64", none, f64_u64(u), d[1]);
		}
	}
}

/* Value of a 16-bit float's magnitude bits. */
static double value16(uint32_t bits, int precision, int least)
{
	uint32_t field = bits >> (precision - 1), fraction = bits & ((1u << (precision - 1)) - 1);

	if (!field)
		return ldexp(fraction, least);
	return ldexp(fraction + (1u << (precision - 1)), least + (int)field - 1);
}

/* By search: the largest magnitude not above |x|, one further when the direction is away. */
static uint32_t ref16(float x, int mode, int precision, int least, uint32_t infinity)
{
	uint32_t sign = signbit(x) ? 0x8000 : 0, low = 0, high = infinity;
	bool away = mode == (signbit(x) ? 1 : 2);
	double m = fabs(x);

	if (isinf(x))
		return sign | infinity;
	while (high - low > 1) {
		uint32_t middle = (low + high) / 2;

		if (value16(middle, precision, least) <= m)
			low = middle;
		else
			high = middle;
	}
	if (away && value16(low, precision, least) < m)
		low++;
	return sign | low;
}

static void narrow_floats(void **unused)
{
	for (int m = 0; m < 3; m++) {
		char name[64];
		uint16_t (*f16)(float), (*bf16)(float);

		snprintf(name, sizeof name, "test.%s.f16", modes[m].name);
		f16 = (void *)ir_jit_lookup(jit, name);
		snprintf(name, sizeof name, "test.%s.bf16", modes[m].name);
		bf16 = (void *)ir_jit_lookup(jit, name);
		for (unsigned n = 0; n < ROUNDS; n++) {
			float x = pick32(65504.0f);

			if (isnan(x)) {
				assert_true((f16(x) & 0x7fff) > 0x7c00);
				assert_true((bf16(x) & 0x7fff) > 0x7f80);
				continue;
			}
			if (f16(x) != ref16(x, m, 11, -24, 0x7c00))
				fail_msg("f16 %s %a", modes[m].name, x);
			if (bf16(x) != ref16(x, m, 8, -133, 0x7f80))
				fail_msg("bf16 %s %a", modes[m].name, x);
		}
	}
}

/* The 16-bit formats have no C type that every compiler passes alike: look at their bits. */
static const char bits_of_narrow[] =
#define NARROW(m)                                                                                  \
	"declare half @tally.cvt." m ".f16.f32(float)\n"                                           \
	"declare bfloat @tally.cvt." m ".bf16.f32(float)\n"                                        \
	"define zeroext i16 @test." m ".f16(float %x) {\n"                                         \
	"  %h = call half @tally.cvt." m ".f16.f32(float %x)\n"                                    \
	"  %r = bitcast half %h to i16\n  ret i16 %r\n}\n"                                         \
	"define zeroext i16 @test." m ".bf16(float %x) {\n"                                        \
	"  %h = call bfloat @tally.cvt." m ".bf16.f32(float %x)\n"                                 \
	"  %r = bitcast bfloat %h to i16\n  ret i16 %r\n}\n"
	NARROW("rz") NARROW("rm") NARROW("rp");

static int setup(void **state)
{
	*state = jit = ir_jit_of_file("ir_passes/rounding.ll", bits_of_narrow);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(arithmetic),
		cmocka_unit_test(narrowing_and_integers),
		cmocka_unit_test(narrow_floats),
	};

	return cmocka_run_group_tests(tests, setup, ir_jit_teardown);
}
