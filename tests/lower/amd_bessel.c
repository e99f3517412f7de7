/* SPDX-License-Identifier: Apache-2.0 */
/* Shows that the AMD library's Bessel functions of integer order (bessel.ll), compiled for this
 * machine, are those of the C library, within what recurrences lose. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

double own_jn(int n, double x) __asm__("tally.math.jn.f64");
double own_yn(int n, double x) __asm__("tally.math.yn.f64");
float own_jnf(int n, float x) __asm__("tally.math.jn.f32");
float own_ynf(int n, float x) __asm__("tally.math.yn.f32");

static int failures;

/* Beside a zero of the function the error counts against its size around there, sqrt(2 / (pi x)).
 */
static void same(const char *name, int n, double x, double own, double expected, double allowed)
{
	double scale = x > n ? sqrt(2 / (M_PI * fabs(x))) : 0;
	double size = fabs(expected) > scale ? fabs(expected) : scale;

	if (isnan(expected) ? isnan(own)
			    : own == expected || fabs(own - expected) <= allowed * size ||
				      (allowed > 1e-7 && fabs(own - expected) < 1e-44))
		return;
	if (failures++ < 10)
		fprintf(stderr, "%s(%d, %g) = %.17g, expected %.17g\n", name, n, x, own, expected);
}

static void at(int n, double x)
{
	same("jn", n, x, own_jn(n, x), jn(n, x), 1e-12);
	same("yn", n, x, own_yn(n, x), yn(n, x), 1e-11);
	same("jnf", n, x, own_jnf(n, (float)x), (float)jn(n, (float)x), 1e-6);
	same("ynf", n, x, own_ynf(n, (float)x), (float)yn(n, (float)x), 1e-6);
}

int main(void)
{
	static const double special[] = {0, -0.0, INFINITY, -INFINITY, NAN, 1e-30, -1e-30, 1e-8};
	static const int orders[] = {-7, -4, -1, 0, 1, 2, 3, 5, 8, 13, 31, 64, 100};

	for (size_t o = 0; o < sizeof orders / sizeof *orders; o++) {
		for (size_t s = 0; s < sizeof special / sizeof *special; s++)
			at(orders[o], special[s]);
		for (double x = 0.001; x < 400; x *= 1.017) {
			at(orders[o], x);
			at(orders[o], -x);
		}
	}
	return failures ? 1 : 0;
}
