// SPDX-License-Identifier: Apache-2.0
// Integer intrinsics, wide arithmetic with carries, bit fields, switches, divisions.
#include <cstdint>

__global__ void intrinsics(int *x, unsigned *u, long long *l, unsigned long long *ul)
{
	int i = threadIdx.x;
	u[0] = __brev(u[1]) + __popc(u[2]) + __clz(x[1]) + __ffs(x[2]) + __byte_perm(u[3], u[4], u[5]);
	u[1] = __funnelshift_l(u[2], u[3], u[4]) + __funnelshift_rc(u[2], u[3], u[4]) + __mulhi(x[1], x[2]);
	u[2] = __umul24(u[1], u[2]) + __mul24(x[1], x[2]) + __sad(x[1], x[2], u[3]) + __usad(u[1], u[2], u[3]);
	u[3] = __dp4a(u[1], u[2], u[3]) + __dp2a_lo(x[1], x[2], x[3]) + __fns(u[1], 0, 3) + __hadd(x[1], x[2]);
	ul[0] = __umul64hi(ul[1], ul[2]) + __brevll(ul[3]) + __popcll(ul[4]) + __clzll(l[1]) + __ffsll(l[2]);
	l[0] = l[1] / l[2] + l[3] % l[4] + (l[5] >> x[i]) + __mul64hi(l[1], l[2]);
	u[4] = __vadd2(u[1], u[2]) + __vmaxs4(u[1], u[2]) + __vabsdiffu4(u[3], u[4]) + __vcmpgtu2(u[1], u[2]);
	u[5] = __vimax3_s32(x[1], x[2], x[3]) + __viaddmax_s32_relu(x[1], x[2], x[3]) + __rhadd(x[1], x[2]);
}

__global__ void wide(unsigned __int128 *x, __int128 *y)
{
	x[0] = x[1] * x[2] + x[3];
	x[4] = x[5] - x[6];
	y[0] = y[1] >> 17;
	y[2] = y[3] < y[4] ? y[5] : y[6];
}

struct Fields { int a : 3; unsigned b : 11; int c : 18; short d; signed char e[3]; bool f; };

__global__ void fields(Fields *f, int n)
{
	Fields &g = f[threadIdx.x];
	g.a += n;
	g.b ^= g.c;
	g.d *= g.e[n & 1];
	g.f = g.a < g.c && !g.f;
	switch (n) {
	case 0: g.e[0] = 1; break;
	case 1: g.e[1] = g.e[0]; break;
	case 2: g.e[2]--; break;
	case 3: g.a = 0; break;
	case 4: g.b = n; break;
	case 5: g.c = n; break;
	case 6: g.d = n; break;
	case 7: g.d = -n; break;
	default: g.f = true;
	}
}

template <class T> __global__ void divide(T *x, T d, T z)
{
	x[threadIdx.x] = x[threadIdx.x] / d + x[threadIdx.x] % z;
}
template __global__ void divide(int8_t *, int8_t, int8_t);
template __global__ void divide(uint16_t *, uint16_t, uint16_t);
template __global__ void divide(int *, int, int);
template __global__ void divide(uint64_t *, uint64_t, uint64_t);
