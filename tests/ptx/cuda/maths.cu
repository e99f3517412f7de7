// SPDX-License-Identifier: Apache-2.0
// CUDA's maths library, in single and double precision, and every rounding and conversion.
#define EACH(F) F(sin) F(cos) F(tan) F(asin) F(acos) F(atan) F(sinh) F(cosh) F(tanh) F(asinh) F(acosh) F(atanh) \
	F(exp) F(exp2) F(exp10) F(expm1) F(log) F(log2) F(log10) F(log1p) F(logb) F(sqrt) F(rsqrt) F(cbrt) F(rcbrt) \
	F(erf) F(erfc) F(erfinv) F(erfcinv) F(normcdf) F(normcdfinv) F(tgamma) F(lgamma) F(floor) F(ceil) F(trunc) \
	F(rint) F(nearbyint) F(round) F(fabs) F(sinpi) F(cospi) F(j0) F(j1) F(y0) F(y1) F(cyl_bessel_i0)

__global__ void single(float *x)
{
	int i = 0;
#define F(name) x[i++] += name##f(x[i + 100]);
	EACH(F)
#undef F
	x[i++] = powf(x[0], x[1]) + atan2f(x[2], x[3]) + fmodf(x[4], x[5]) + remainderf(x[6], x[7]);
	x[i++] = hypotf(x[0], x[1]) + fmaf(x[2], x[3], x[4]) + fdimf(x[5], x[6]) + copysignf(x[7], x[8]);
	x[i++] = ldexpf(x[0], 3) + fmaxf(x[1], x[2]) + fminf(x[3], x[4]) + nextafterf(x[5], x[6]);
	sincosf(x[0], x + i, x + i + 1);
	x[i++] = __sinf(x[0]) + __expf(x[1]) + __logf(x[2]) + __powf(x[3], x[4]) + __fdividef(x[5], x[6]) + __tanf(x[7]);
	x[i++] = __fadd_rz(x[0], x[1]) + __fmul_ru(x[2], x[3]) + __fmaf_rd(x[4], x[5], x[6]) + __fdiv_rz(x[7], x[8]);
	x[i++] = __fsqrt_ru(x[0]) + __frcp_rd(x[1]) + __frsqrt_rn(x[2]) + __saturatef(x[3]) + __fsub_rd(x[4], x[5]);
	x[i++] = __int2float_rz((int)x[0]) + __uint2float_ru((unsigned)x[1]) + __ll2float_rd((long long)x[2]);
	x[i++] = __float2int_ru(x[0]) + __float2uint_rd(x[1]) + __float2ll_rn(x[2]) + lrintf(x[3]) + lroundf(x[4]);
	x[i++] = isnan(x[0]) + isinf(x[1]) + signbit(x[2]) + isfinite(x[3]) + ilogbf(x[4]);
}

__global__ void dbl(double *x)
{
	int i = 0;
#define F(name) x[i++] += name(x[i + 100]);
	EACH(F)
#undef F
	x[i++] = pow(x[0], x[1]) + atan2(x[2], x[3]) + fmod(x[4], x[5]) + remainder(x[6], x[7]) + hypot(x[8], x[9]);
	x[i++] = __dadd_rz(x[0], x[1]) + __dmul_ru(x[2], x[3]) + __fma_rd(x[4], x[5], x[6]) + __ddiv_rz(x[7], x[8]);
	x[i++] = __dsqrt_ru(x[0]) + __drcp_rd(x[1]) + __double2float_rz(x[2]) + __double2int_rd(x[3]) + __hiloint2double(1, 2);
	x[i++] = __ll2double_ru((long long)x[0]) + __ull2double_rz((unsigned long long)x[1]) + __double2ull_ru(x[2]);
}
