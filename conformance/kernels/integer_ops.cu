/* SPDX-License-Identifier: Apache-2.0 */
/* Bit and integer instructions: mulhi, popc, clz, brev, ffs, prmt, funnel shifts, bfe/bfi, dp4a, sad. */
#include "common.cuh"

extern "C" __global__ void integer_ops(const unsigned *in, unsigned *out, unsigned long long *wide, unsigned *runs)
{
	count_block(runs);
	unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
	unsigned a = in[i], b = a * 2654435761u + 12345u;
	unsigned r = __umulhi(a, b) ^ (unsigned)__mulhi((int)a, (int)b);
	r += __popc(a) + __clz(a) * 3 + __ffs(b) * 5;
	r ^= __brev(a);
	r += __byte_perm(a, b, a & 0x7777u);
	r ^= __funnelshift_l(a, b, a) + __funnelshift_r(a, b, b) + __funnelshift_lc(a, b, a & 63) + __funnelshift_rc(a, b, b & 63);
	r += (unsigned)__dp4a((int)a, (int)b, (int)r) + __dp4a(a, b, r);
	r ^= (unsigned)__sad((int)a, (int)b, a) + __usad(a, b, r);
	r += (unsigned)__mul24((int)a, (int)b) + __umul24(a, b) + (unsigned)__hadd((int)a, (int)b) + __rhadd((int)a, (int)b);
	r += a / (b | 1) + a % (b | 3) + (unsigned)((int)a / (int)(b | 1));
	unsigned t;
	asm("bfe.u32 %0, %1, %2, %3;" : "=r"(t) : "r"(a), "r"(b & 31), "r"(a & 15));
	r += t;
	asm("bfe.s32 %0, %1, %2, %3;" : "=r"(t) : "r"(a), "r"(b & 31), "r"(b >> 28));
	r ^= t;
	asm("bfi.b32 %0, %1, %2, %3, %4;" : "=r"(t) : "r"(a), "r"(b), "r"(a & 31), "r"(b & 15));
	r += t;
	asm("bfind.u32 %0, %1;" : "=r"(t) : "r"(a >> (b & 31)));
	r ^= t;
	asm("lop3.b32 %0, %1, %2, %3, 0xca;" : "=r"(t) : "r"(a), "r"(b), "r"(r));
	r += t;
	out[i] = r;
	unsigned long long x = ((unsigned long long)a << 32 | b) ^ 0x1234567ull, y = (unsigned long long)b << 7 | 5;
	unsigned long long s = __umul64hi(x, y) ^ (unsigned long long)__mul64hi((long long)x, (long long)y);
	s += x / y + x % y + (unsigned long long)((long long)x / (long long)(y | 9)) + __popcll(x) + __clzll(y) + __brevll(x) + __ffsll((long long)y);
	asm("{ .reg .u32 c0, c1, c2, c3; mov.b64 {c0, c1}, %1; mov.b64 {c2, c3}, %2; add.cc.u32 c0, c0, c2; addc.u32 c1, c1, c3; mov.b64 %0, {c0, c1}; }"
	    : "=l"(s) : "l"(s), "l"(x));
	wide[i] = s;
}
