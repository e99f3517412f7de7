/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CUDA's mathematical functions that libm lacks, in double precision, to a few units in the last
 * place (the float forms are these, rounded). Special values as in the CUDA Math API.
 */
#include <math.h>

#include "backends/cpu/executor/internal.h"

#define SQRT1_2_HIGH 0.70710678118654752440
#define SQRT1_2_LOW  -4.8336466567264851e-17 /* 1/sqrt(2) - SQRT1_2_HIGH */
#define TWO_SQRT_PI  1.12837916709551257390  /* 2/sqrt(pi) */
#define INV_SQRT_PI  0.56418958354775628695  /* 1/sqrt(pi) */
#define PI	     3.14159265358979323846

/* One Halley step on f(y) = residual with f' = slope, f''/f' = -2y, toward f = 0. */
static double halley(double y, double residual, double slope)
{
	double step = residual / slope;

	return y - step / (1 + y * step);
}

/* y > 0 with erfc(y) = q, for 0 < q <= 0.5. */
static double erfc_inverse_tail(double q)
{
	/* Abramowitz and Stegun 26.2.23 starts within 5e-4; Halley's steps triple the digits. */
	double t = sqrt(-2 * log(q / 2));
	double y = (t - (2.515517 + t * (0.802853 + t * 0.010328)) /
				(1 + t * (1.432788 + t * (0.189269 + t * 0.001308)))) *
		   SQRT1_2_HIGH;

	/* Relative residual: exp(-y*y) may be denormal where the quotient is not. */
	for (int i = 0; i < 3; i++) {
		double value = erfc(y);

		if (value < 1e-300) { /* log form where erfc itself loses digits */
			double scaled = tally_cpu_math_erfcx(y);
			double f = log(scaled) - y * y - log(q);

			y -= f / (-TWO_SQRT_PI / scaled);
		} else {
			y = halley(y, (value - q) / value, -TWO_SQRT_PI / tally_cpu_math_erfcx(y));
		}
	}
	return y;
}

double tally_cpu_math_erfinv(double a)
{
	double magnitude = fabs(a), y;

	if (!(magnitude < 1))
		return magnitude == 1 ? copysign(INFINITY, a) : NAN;
	if (magnitude > 0.5)
		return copysign(erfc_inverse_tail(1 - magnitude), a);
	if (magnitude < 1e-8)
		return a / TWO_SQRT_PI;
	y = a / TWO_SQRT_PI * (1 + a * a * (PI / 12 + a * a * (7 * PI * PI / 480)));
	for (int i = 0; i < 3; i++)
		y = halley(y, erf(y) - a, TWO_SQRT_PI * exp(-y * y));
	return y;
}

double tally_cpu_math_erfcinv(double a)
{
	if (!(a >= 0 && a <= 2))
		return NAN;
	if (a == 0 || a == 2)
		return a == 0 ? INFINITY : -INFINITY;
	if (a <= 0.5)
		return erfc_inverse_tail(a);
	if (a >= 1.5)
		return -erfc_inverse_tail(2 - a);
	return tally_cpu_math_erfinv(1 - a);
}

double tally_cpu_math_erfcx(double a)
{
	if (a < -26.7)
		return isnan(a) ? a : INFINITY;
	if (a < 8) { /* exp(a^2) with the rounding error of a^2 put right */
		double square = a * a, rest = fma(a, a, -square);

		return exp(square) * erfc(a) * (1 + rest);
	}
	if (a > 1e8)
		return INV_SQRT_PI / a;
	/* Laplace's continued fraction, from its tail. */
	double fraction = a;

	for (int k = 60; k > 0; k--)
		fraction = a + k * 0.5 / fraction;
	return INV_SQRT_PI / fraction;
}

double tally_cpu_math_normcdf(double a)
{
	/* -a/sqrt(2) in two parts: erfc grows an argument's rounding error by 2*z*z. */
	double z = -a * SQRT1_2_HIGH, rest = fma(-a, SQRT1_2_HIGH, -z) - a * SQRT1_2_LOW, value;

	if (!(fabs(a) < 40))
		return isnan(a) ? a : a > 0 ? 1 : 0;
	value = erfc(z);
	return 0.5 * (value - TWO_SQRT_PI * exp(-z * z) * rest);
}

double tally_cpu_math_normcdfinv(double a)
{
	return -M_SQRT2 * tally_cpu_math_erfcinv(2 * a);
}

double tally_cpu_math_rcbrt(double a)
{
	return 1 / cbrt(a);
}

/* x in quarter turns: the nearest multiple of a half, and what is left, exactly. */
static double reduce_turns(double a, int *quadrant)
{
	double n = rint(2 * a);

	*quadrant = (int)((long long)fmod(n, 4)) & 3;
	return (a - 0.5 * n) * PI;
}

double tally_cpu_math_sinpi(double a)
{
	int quadrant;
	double r;

	if (isinf(a) || isnan(a))
		return NAN;
	if (a == trunc(a))
		return copysign(0, a);
	r = reduce_turns(a, &quadrant);
	r = quadrant & 1 ? cos(r) : sin(r);
	return quadrant & 2 ? -r : r;
}

double tally_cpu_math_cospi(double a)
{
	int quadrant;
	double r;

	if (isinf(a) || isnan(a))
		return NAN;
	a = fabs(a);
	if (a >= 0x1p53)
		return 1;
	if (a != trunc(a) && 2 * a == trunc(2 * a))
		return 0;
	r = reduce_turns(a, &quadrant);
	r = quadrant & 1 ? sin(r) : cos(r);
	return quadrant == 1 || quadrant == 2 ? -r : r;
}

double tally_cpu_math_tanpi(double a)
{
	return tally_cpu_math_sinpi(a) / tally_cpu_math_cospi(a);
}

/* Modified Bessel functions of the first kind, order 0 and 1: all terms have one sign, so that the
 * series loses no digits; the asymptotic one takes over where it converges (DLMF 10.25.2,
 * 10.40.1). */
static double bessel_i(int order, double a)
{
	long double x = fabsl((long double)a), term, sum, mu = 4.0L * order * order;

	if (isnan(a))
		return a;
	if (x < 40) {
		long double quarter = x * x / 4;

		term = order ? x / 2 : 1;
		sum = term;
		for (int k = 1; k < 200 && term > sum * 1e-20L; k++) {
			term *= quarter / ((long double)k * (k + order));
			sum += term;
		}
	} else {
		sum = term = 1;
		for (int k = 1; k < 40; k++) {
			long double odd = 2 * k - 1;

			term *= -(mu - odd * odd) / (8 * k * x);
			sum += term;
			if (fabsl(term) < 1e-20L)
				break;
		}
		sum *= expl(x) / sqrtl(2 * 3.14159265358979323846264338L * x);
	}
	return order && signbit(a) ? (double)-sum : (double)sum;
}

double tally_cpu_math_cyl_bessel_i0(double a)
{
	return bessel_i(0, a);
}

double tally_cpu_math_cyl_bessel_i1(double a)
{
	return bessel_i(1, a);
}

double tally_cpu_math_rhypot(double a, double b)
{
	return 1 / hypot(a, b);
}

/* long double squares neither overflow nor lose the last place. */
static long double norm(long double a, long double b, long double c, long double d)
{
	if (isinf(a) || isinf(b) || isinf(c) || isinf(d))
		return INFINITY;
	return sqrtl(a * a + b * b + c * c + d * d);
}

double tally_cpu_math_norm3d(double a, double b, double c)
{
	return (double)norm(a, b, c, 0);
}

double tally_cpu_math_rnorm3d(double a, double b, double c)
{
	return (double)(1 / norm(a, b, c, 0));
}

double tally_cpu_math_norm4d(double a, double b, double c, double d)
{
	return (double)norm(a, b, c, d);
}

double tally_cpu_math_rnorm4d(double a, double b, double c, double d)
{
	return (double)(1 / norm(a, b, c, d));
}
