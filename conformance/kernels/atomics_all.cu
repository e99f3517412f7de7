/* SPDX-License-Identifier: Apache-2.0 */
/* min, max, and, or, xor, exchange, compare-and-swap, inc, dec on global and shared words. */
#include "common.cuh"

extern "C" __global__ void atomics_all(int *g, unsigned *u, unsigned long long *w, unsigned *runs)
{
	__shared__ int s[5];
	count_block(runs);
	int v = (int)(blockIdx.x * blockDim.x + threadIdx.x);
	if (threadIdx.x < 5)
		s[threadIdx.x] = 0;
	__syncthreads();
	atomicMin(&g[0], v - 1000);
	atomicMax(&g[1], v);
	atomicAnd(&u[0], ~(1u << (v % 31)));
	atomicOr(&u[1], 1u << (v % 29));
	atomicXor(&u[2], (unsigned)v * 2654435761u);
	atomicInc(&u[3], 1000000u);
	atomicDec(&u[4], 1000000u);
	atomicSub(&u[5], 3u);
	atomicMax(&w[0], (unsigned long long)v << 20);
	atomicMin(&w[1], (unsigned long long)v << 20);
	atomicXor(&w[2], (unsigned long long)v * 0x9e3779b97f4a7c15ull);
	int old = g[2], seen;
	do {
		seen = old;
		old = atomicCAS(&g[2], seen, seen + 5);
	} while (old != seen);
	atomicAdd(&s[threadIdx.x % 4], v);
	atomicMax(&s[4], v);
	__syncthreads();
	if (threadIdx.x == 0)
		atomicAdd(&g[3], s[0] ^ s[1] ^ s[2] ^ s[3] ^ s[4]);
	if (v == 5)
		atomicExch(&g[4], 77);
}
