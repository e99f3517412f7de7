// SPDX-License-Identifier: Apache-2.0
// Irregular kernels: graphs, trees, hash tables, divergent loops, tables, integer arithmetic.
#include "common.cuh"

// launch: spmv grid 4096 block 256 args i32[32769]:iota16 i32[524288]:index15 f32[524288]:unit f32[32768]:unit f32[32768]:zero i32=32768
KERNEL spmv(const int *__restrict__ rows, const int *__restrict__ columns, const float *__restrict__ values,
	    const float *__restrict__ x, float *__restrict__ y, int n)
{
	int row = (blockIdx.x * 256 + threadIdx.x) / 32, lane = threadIdx.x % 32;
	float sum = 0;

	if (row >= n)
		return;
	for (int k = rows[row] + lane; k < rows[row + 1]; k += 32)
		sum += values[k] * __ldg(x + columns[k]);
	for (int k = 16; k; k >>= 1)
		sum += __shfl_down_sync(~0u, sum, k);
	if (!lane)
		y[row] = sum;
}

// launch: mandelbrot grid 64,64 block 16,16 args i32[1048576]:zero i32=1024 i32=256
KERNEL mandelbrot(int *out, int n, int most)
{
	int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y, k;
	float cx = 3.0f * (float)x / (float)n - 2.0f, cy = 2.0f * (float)y / (float)n - 1.0f, zx = 0, zy = 0;

	for (k = 0; k < most && zx * zx + zy * zy < 4; k++) {
		float t = zx * zx - zy * zy + cx;
		zy = 2 * zx * zy + cy;
		zx = t;
	}
	out[y * n + x] = k;
}

// launch: hash_insert grid 512 block 256 args u64[524288]:loose u32[524288]:zero i32=524287
KERNEL hash_insert(unsigned long long *table, unsigned *probes, int mask)
{
	unsigned at = blockIdx.x * 256 + threadIdx.x, slot = mix(at) & (unsigned)mask, count = 1;
	unsigned long long key = (unsigned long long)at * 2654435761u + 1;

	for (unsigned long long old; (old = atomicCAS(&table[slot], 0ull, key)) != 0ull && old != key;) {
		slot = (slot + 1) & (unsigned)mask;
		count++;
	}
	atomicAdd(&probes[0], 1);
	if (count > 100000)
		probes[1] = count;
}

__constant__ unsigned rounds_of_sha[64] = {
	0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
	0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
	0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
	0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
	0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
	0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
	0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
	0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

__device__ unsigned rotate(unsigned x, unsigned by)
{
	return __funnelshift_r(x, x, by);
}

// launch: sha256 grid 512 block 128 args u32[524288]:zero
KERNEL sha256(unsigned *out)
{
	unsigned at = blockIdx.x * 128 + threadIdx.x, w[16], h[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
								      0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
	unsigned s[8];

#pragma unroll
	for (int k = 0; k < 16; k++)
		w[k] = mix(at * 16 + k);
#pragma unroll
	for (int k = 0; k < 8; k++)
		s[k] = h[k];
#pragma unroll 16
	for (int k = 0; k < 64; k++) {
		unsigned m = w[k % 16];
		if (k < 64) {
			unsigned a = w[(k + 1) % 16], b = w[(k + 14) % 16];
			w[k % 16] = m + (rotate(a, 7) ^ rotate(a, 18) ^ a >> 3) + w[(k + 9) % 16] +
				    (rotate(b, 17) ^ rotate(b, 19) ^ b >> 10);
		}
		unsigned t = s[7] + (rotate(s[4], 6) ^ rotate(s[4], 11) ^ rotate(s[4], 25)) + ((s[4] & s[5]) ^ (~s[4] & s[6])) +
			     rounds_of_sha[k] + m;
		unsigned u = (rotate(s[0], 2) ^ rotate(s[0], 13) ^ rotate(s[0], 22)) + ((s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]));
		s[7] = s[6], s[6] = s[5], s[5] = s[4], s[4] = s[3] + t, s[3] = s[2], s[2] = s[1], s[1] = s[0], s[0] = t + u;
	}
#pragma unroll
	for (int k = 0; k < 8; k++)
		out[at * 8 + k] = h[k] + s[k];
}

// launch: big_add grid 512 block 128 args u32[1048576]:random u32[1048576]:random u32[1048576]:zero
KERNEL big_add(const uint4 *a, const uint4 *b, uint4 *out)
{
	unsigned at = (blockIdx.x * 128 + threadIdx.x) * 2;
	uint4 x = a[at], y = a[at + 1], u = b[at], v = b[at + 1], r, s;

	asm("add.cc.u32 %0, %8, %16;\n\taddc.cc.u32 %1, %9, %17;\n\taddc.cc.u32 %2, %10, %18;\n\taddc.cc.u32 %3, %11, %19;\n\t"
	    "addc.cc.u32 %4, %12, %20;\n\taddc.cc.u32 %5, %13, %21;\n\taddc.cc.u32 %6, %14, %22;\n\taddc.u32 %7, %15, %23;"
	    : "=r"(r.x), "=r"(r.y), "=r"(r.z), "=r"(r.w), "=r"(s.x), "=r"(s.y), "=r"(s.z), "=r"(s.w)
	    : "r"(x.x), "r"(x.y), "r"(x.z), "r"(x.w), "r"(y.x), "r"(y.y), "r"(y.z), "r"(y.w), "r"(u.x), "r"(u.y), "r"(u.z),
	      "r"(u.w), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w));
	out[at] = r;
	out[at + 1] = s;
}

// launch: montgomery grid 1024 block 128 args u64[131072]:random u64[131072]:zero i32=64
KERNEL montgomery(const unsigned long long *in, unsigned long long *out, int rounds)
{
	const unsigned long long modulus = 0xffffffff00000001ull, inverse = 0xfffffffeffffffffull;
	unsigned at = blockIdx.x * 128 + threadIdx.x;
	unsigned long long x = in[at] % modulus, y = x;

	for (int k = 0; k < rounds; k++) {
		unsigned long long high = __umul64hi(x, y), low = x * y, m = low * inverse, t = __umul64hi(m, modulus);
		unsigned long long r = high + t + (low != 0);
		x = r >= modulus || r < high ? r - modulus : r;
		y = y * 6364136223846793005ull + 1442695040888963407ull;
		y %= 0xfffffff1u;
	}
	out[at] = x / 1000003u ^ x % 1000003u << 40;
}

// launch: levels grid 256 block 256 args i32[65537]:iota16 i32[1048576]:index16 i32[65536]:small i32[65536]:zero i32[1]:zero i32=4
KERNEL levels(const int *rows, const int *edges, const int *level, int *next, int *changed, int now)
{
	int node = blockIdx.x * 256 + threadIdx.x;

	if (level[node] != now)
		return;
	for (int k = rows[node]; k < rows[node + 1]; k++) {
		int other = edges[k];
		if (level[other] > now + 1) {
			atomicMax(&next[other], now + 1);
			*changed = 1;
		}
	}
}

struct shape {
	__device__ virtual float area(float x) const = 0;
};
struct circle : shape {
	__device__ float area(float x) const override { return 3.14159265f * x * x; }
};
struct square : shape {
	float scale;
	__device__ explicit square(float s) : scale(s) {}
	__device__ float area(float x) const override { return scale * x * x; }
};

// launch: virtual_calls grid 256 block 256 args f32[65536]:unit f32[65536]:zero
KERNEL virtual_calls(const float *in, float *out)
{
	unsigned at = blockIdx.x * 256 + threadIdx.x;
	circle c;
	square s(0.5f + (float)(at % 3));
	const shape *which = at % 5 < 2 ? (const shape *)&c : &s;

	out[at] = which->area(in[at]);
}

__device__ __noinline__ int ackermann(int m, int n)
{
	return !m ? n + 1 : !n ? ackermann(m - 1, 1) : ackermann(m - 1, ackermann(m, n - 1));
}

// launch: recursive grid 64 block 64 args i32[4096]:zero
KERNEL recursive(int *out)
{
	unsigned at = blockIdx.x * 64 + threadIdx.x;

	out[at] = ackermann(2, (int)(at % 4));
}

// launch: local_sort grid 512 block 128 args u32[2097152]:random u32[2097152]:zero
KERNEL local_sort(const unsigned *in, unsigned *out)
{
	unsigned at = (blockIdx.x * 128 + threadIdx.x) * 32, v[32];

	for (int k = 0; k < 32; k++)
		v[k] = in[at + k];
	for (int i = 1; i < 32; i++) {
		unsigned x = v[i];
		int j = i;
		for (; j > 0 && v[j - 1] > x; j--)
			v[j] = v[j - 1];
		v[j] = x;
	}
	for (int k = 0; k < 32; k++)
		out[at + k] = v[k];
}

// launch: interpreter grid 1024 block 128 args u8[256]:random u32[131072]:zero i32=256
KERNEL interpreter(const unsigned char *code, unsigned *out, int length)
{
	unsigned a = blockIdx.x * 128 + threadIdx.x, b = 7;

	for (int k = 0; k < length; k++)
		switch (code[k] % 12) {
		case 0: a += b; break;
		case 1: b ^= a << 3; break;
		case 2: a *= 2654435761u; break;
		case 3: b = __brev(b) + a; break;
		case 4: a -= b >> 5; break;
		case 5: b = __popc(a) + (b << 1); break;
		case 6: a = __byte_perm(a, b, 0x2143); break;
		case 7: b = max(a, b) - min(a, 77u); break;
		case 8: a = __clz((int)b) ^ a; break;
		case 9: b = __umulhi(a, b); break;
		case 10: a = a / (b | 1); break;
		default: b = a % (b | 3); break;
		}
	out[blockIdx.x * 128 + threadIdx.x] = a ^ b;
}
