/* SPDX-License-Identifier: Apache-2.0 */
/* What kernels call in the executor, without a compiler: printf, directed rounding, CUDA's own
 * mathematical functions. */
#include <fenv.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "backends/cpu/executor/internal.h"

static void print(void **state)
{
	struct {
		int32_t i;
		uint32_t u;
		int64_t l;
		double d;
		const char *s;
		int32_t c, width, short_value;
		uint64_t big;
		double e;
	} arguments = {-5, 7, -1234567890123, 2.5, "text", 'x', 6, 65537, ~(uint64_t)0, 1e-7};
	char output[256] = {0};
	int saved, ends[2], count;

	assert_int_equal(pipe(ends), 0);
	fflush(stdout);
	saved = dup(1);
	dup2(ends[1], 1);
	count = tally_cpu_print("%d|%u|%lld|%.2f|%s|%c|%*hd|%llx|%e|%%|%y\n", &arguments);
	fflush(stdout);
	dup2(saved, 1);
	close(saved);
	close(ends[1]);
	assert_true(read(ends[0], output, sizeof output - 1) > 0);
	close(ends[0]);
	assert_string_equal(
		output,
		"-5|7|-1234567890123|2.50|text|x|     1|ffffffffffffffff|1.000000e-07|%|%y\n");
	assert_int_equal(count, 10);
	assert_int_equal(tally_cpu_print(NULL, NULL), -1);
}

static uint64_t convert(uint32_t kind, uint32_t direction, uint64_t bits)
{
	return tally_cpu_convert(kind * 4 + direction, bits);
}

static uint64_t of_float(float f)
{
	uint32_t bits;

	memcpy(&bits, &f, sizeof bits);
	return bits;
}

static uint64_t of_double(double d)
{
	uint64_t bits;

	memcpy(&bits, &d, sizeof bits);
	return bits;
}

static void rounding(void **state)
{
	float third[3];

	for (uint32_t d = 0; d < 3; d++)
		third[d] = tally_cpu_round32(TALLY_CPU_ROUND_DIV * 4 + d, 1, 3, 0);
	assert_true(third[TALLY_CPU_RZ] == third[TALLY_CPU_RM]);
	assert_true(third[TALLY_CPU_RP] == nextafterf(third[TALLY_CPU_RM], 1));
	assert_true(tally_cpu_round64(TALLY_CPU_ROUND_ADD * 4 + TALLY_CPU_RP, 1, 1e-30, 0) ==
		    nextafter(1, 2));
	assert_true(tally_cpu_round64(TALLY_CPU_ROUND_SUB * 4 + TALLY_CPU_RZ, 1, 1e-30, 0) ==
		    nextafter(1, 0));
	assert_true(tally_cpu_round64(TALLY_CPU_ROUND_FMA * 4 + TALLY_CPU_RM, 1, 1, -1e-30) ==
		    nextafter(1, 0));
	assert_true(tally_cpu_round32(TALLY_CPU_ROUND_SQRT * 4 + TALLY_CPU_RP, 4, 0, 0) == 2);
	assert_int_equal(fegetround(), FE_TONEAREST);

	assert_int_equal(convert(TALLY_CPU_F64_TO_F32, TALLY_CPU_RP, of_double(1 + 1e-12)),
			 of_float(nextafterf(1, 2)));
	assert_int_equal(convert(TALLY_CPU_I32_TO_F32, TALLY_CPU_RZ, 16777217), of_float(16777216));
	assert_int_equal(convert(TALLY_CPU_I32_TO_F32, TALLY_CPU_RM, (uint32_t)-16777217),
			 of_float(-16777218));
	assert_int_equal(convert(TALLY_CPU_U64_TO_F64, TALLY_CPU_RP, ~(uint64_t)0),
			 of_double(0x1p64));
	assert_int_equal(convert(TALLY_CPU_U64_TO_F64, TALLY_CPU_RZ, ~(uint64_t)0),
			 of_double(nextafter(0x1p64, 0)));
	assert_int_equal(convert(TALLY_CPU_I64_TO_F32, TALLY_CPU_RP, (uint64_t)-1), of_float(-1));
}

/* Directed halves and bfloats against the compiler's own, which rounds to nearest: each lies on its
 * side and within one step. */
static void narrow_rounding(void **state)
{
	uint32_t bits = 0x12345;

	for (int i = 0; i < 200000; i++) {
		uint16_t down, up, zero;
		_Float16 h[3];
		float f;

		bits = bits * 1664525 + 1013904223;
		memcpy(&f, &bits, sizeof f);
		if (isnan(f) || fabsf(f) > 60000)
			continue;
		down = (uint16_t)convert(TALLY_CPU_F32_TO_F16, TALLY_CPU_RM, bits);
		up = (uint16_t)convert(TALLY_CPU_F32_TO_F16, TALLY_CPU_RP, bits);
		zero = (uint16_t)convert(TALLY_CPU_F32_TO_F16, TALLY_CPU_RZ, bits);
		memcpy(&h[0], &down, 2);
		memcpy(&h[1], &up, 2);
		memcpy(&h[2], &zero, 2);
		assert_true((float)h[0] <= f && f <= (float)h[1]);
		assert_true(zero == (f < 0 ? up : down));
		assert_true((float)h[0] == f ? down == up : (down ^ up) != 0);
		if ((float)h[0] != f && (down & 0x7fff) && (up & 0x7fff))
			assert_int_equal(abs((int)down - (int)up), 1);
	}
	assert_int_equal(convert(TALLY_CPU_F32_TO_F16, TALLY_CPU_RZ, of_float(1e6f)), 0x7bff);
	assert_int_equal(convert(TALLY_CPU_F32_TO_F16, TALLY_CPU_RP, of_float(1e6f)), 0x7c00);
	assert_int_equal(convert(TALLY_CPU_F32_TO_F16, TALLY_CPU_RP, of_float(1e-30f)), 1);
	assert_int_equal(convert(TALLY_CPU_F32_TO_BF16, TALLY_CPU_RP, 0x3f800001), 0x3f81);
	assert_int_equal(convert(TALLY_CPU_F32_TO_BF16, TALLY_CPU_RZ, 0x3f80ffff), 0x3f80);
	assert_int_equal(convert(TALLY_CPU_F32_TO_BF16, TALLY_CPU_RM, 0xbf800001), 0xbf81);
}

static void near(double value, double expected, double tolerance)
{
	double error = expected == 0 ? fabs(value) : fabs(value / expected - 1);

	if (!(error <= tolerance))
		fail_msg("%.17g, not %.17g", value, expected);
}

static void own_functions(void **state)
{
	for (double x = -0.999999; x < 1; x += 0.000917) {
		near(erf(tally_cpu_math_erfinv(x)), x, 4e-16);
		near(erfc(tally_cpu_math_erfcinv(x + 1)), x + 1, 1e-15);
	}
	for (double q = 1; q > 1e-300; q *= 0.37)
		near(erfc(tally_cpu_math_erfcinv(q)), q, 2e-13);
	near(tally_cpu_math_erfinv(0.5), 0.47693627620446987338, 4e-16);
	near(tally_cpu_math_erfcinv(1e-10), 4.5728249673894852787, 4e-16);
	near(tally_cpu_math_erfcinv(1e-305), 26.428033383123586154, 1e-14);
	near(tally_cpu_math_normcdf(-1.96), 0.024997895148220436, 1e-15);
	near(tally_cpu_math_normcdf(-30), 4.906713927148187e-198, 1e-14);
	near(tally_cpu_math_normcdfinv(0.975), 1.9599639845400542355, 1e-15);
	near(tally_cpu_math_erfcx(1), 0.42758357615580700441, 1e-15);
	near(tally_cpu_math_erfcx(20), 0.028174348741051319, 1e-14);
	near(tally_cpu_math_erfcx(1e10), 5.6418958354775628e-11, 1e-15);
	near(tally_cpu_math_cyl_bessel_i0(1), 1.2660658777520083356, 1e-15);
	near(tally_cpu_math_cyl_bessel_i1(-2), -1.5906368546373290634, 1e-15);
	near(tally_cpu_math_cyl_bessel_i0(50), 2.9325537838493363e20, 1e-14);
	assert_true(tally_cpu_math_sinpi(1) == 0 && tally_cpu_math_cospi(0.5) == 0);
	assert_true(tally_cpu_math_sinpi(0.5) == 1 && tally_cpu_math_cospi(1) == -1);
	assert_true(tally_cpu_math_sinpi(-1.5) == 1 && tally_cpu_math_cospi(1e300) == 1);
	near(tally_cpu_math_sinpi(1e6 + 0.25), 0.70710678118654752440, 2e-16);
	near(tally_cpu_math_cospi(7.75), 0.70710678118654752440, 2e-16);
	near(tally_cpu_math_tanpi(0.25), 1, 2e-16);
	near(tally_cpu_math_rcbrt(27), 1.0 / 3, 4e-16);
	near(tally_cpu_math_norm3d(3e200, 4e200, 12e200), 13e200, 2e-16);
	near(tally_cpu_math_rnorm4d(1, 1, 1, 1), 0.5, 0);
	assert_true(isinf(tally_cpu_math_norm3d(NAN, INFINITY, 0)));
	assert_true(isnan(tally_cpu_math_erfinv(1.5)) && isinf(tally_cpu_math_erfcinv(0)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(print),
		cmocka_unit_test(rounding),
		cmocka_unit_test(narrow_rounding),
		cmocka_unit_test(own_functions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
