// SPDX-License-Identifier: Apache-2.0
// Tensor cores: wmma, and mma with ldmatrix and cp.async from inline assembly, as hand-writers do it.
#include <cuda_fp16.h>
#include <mma.h>

#include "common.cuh"

using namespace nvcuda;

// launch: wmma_gemm grid 8,16 block 128 args f16[524288]:unit f16[524288]:unit f32[1048576]:zero i32=1024 i32=1024 i32=512
KERNEL wmma_gemm(const __half *a, const __half *b, float *c, int m, int n, int k)
{
	wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum[2][4];
	wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> fa[2];
	wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::col_major> fb[4];
	int warp = threadIdx.x / 32, row = blockIdx.y * 64 + warp / 2 * 32, column = blockIdx.x * 128 + warp % 2 * 64;

	for (int i = 0; i < 2; i++)
		for (int j = 0; j < 4; j++)
			wmma::fill_fragment(sum[i][j], 0.0f);
	for (int at = 0; at < k; at += 16) {
		for (int i = 0; i < 2; i++)
			wmma::load_matrix_sync(fa[i], a + (row + i * 16) * k + at, k);
		for (int j = 0; j < 4; j++)
			wmma::load_matrix_sync(fb[j], b + (column + j * 16) * k + at, k);
		for (int i = 0; i < 2; i++)
			for (int j = 0; j < 4; j++)
				wmma::mma_sync(sum[i][j], fa[i], fb[j], sum[i][j]);
	}
	for (int i = 0; i < 2; i++)
		for (int j = 0; j < 4; j++)
			wmma::store_matrix_sync(c + (row + i * 16) * n + column + j * 16, sum[i][j], n,
						wmma::mem_row_major);
}

__device__ __forceinline__ void copy16(unsigned to, const void *from)
{
	asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from));
}

__device__ __forceinline__ void ldmatrix4(unsigned (&r)[4], unsigned from)
{
	asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
		     : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
		     : "r"(from));
}

__device__ __forceinline__ void mma16816(float (&d)[4], const unsigned (&a)[4], unsigned b0, unsigned b1)
{
	asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
		     "{%8, %9}, {%0, %1, %2, %3};"
		     : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
		     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// 128 x 128 x 32 tiles, four stages of cp.async, 64 x 64 a warp; rows of 32 halves, swizzled in 16-byte units.
enum { TILE = 128, DEPTH = 32, STAGES = 4 };

__device__ __forceinline__ unsigned place(unsigned row, unsigned unit)
{
	return row * DEPTH * 2 + ((unit ^ row >> 1 & 3) << 4);
}

// launch: mma_gemm grid 8,8 block 128 shared 65536 args f16[1048576]:unit f16[1048576]:unit f32[1048576]:zero i32=1024 i32=1024
KERNEL __launch_bounds__(128) mma_gemm(const __half *a, const __half *b, float *c, int n, int k)
{
	extern __shared__ __align__(128) unsigned char buffer[];
	unsigned base = (unsigned)__cvta_generic_to_shared(buffer);
	unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
	unsigned warp_row = warp / 2 * 64, warp_column = warp % 2 * 64;
	const __half *from_a = a + blockIdx.y * TILE * k, *from_b = b + blockIdx.x * TILE * k;
	float sum[4][8][4] = {};

	auto fetch = [&](int stage) {
		unsigned to = base + stage % STAGES * TILE * DEPTH * 4;
		for (unsigned u = threadIdx.x; u < TILE * 4; u += 128) {
			copy16(to + place(u / 4, u % 4), from_a + u / 4 * k + stage * DEPTH + u % 4 * 8);
			copy16(to + TILE * DEPTH * 2 + place(u / 4, u % 4),
			       from_b + u / 4 * k + stage * DEPTH + u % 4 * 8);
		}
	};
	for (int stage = 0; stage < STAGES - 1; stage++) {
		fetch(stage);
		asm volatile("cp.async.commit_group;");
	}
	for (int stage = 0; stage < k / DEPTH; stage++) {
		asm volatile("cp.async.wait_group %0;" ::"n"(STAGES - 2));
		__syncthreads();
		if (stage + STAGES - 1 < k / DEPTH)
			fetch(stage + STAGES - 1);
		asm volatile("cp.async.commit_group;");
		unsigned from = base + stage % STAGES * TILE * DEPTH * 4;
#pragma unroll
		for (int step = 0; step < DEPTH / 16; step++) {
			unsigned fa[4][4], fb[4][4];
#pragma unroll
			for (int i = 0; i < 4; i++) {
				ldmatrix4(fa[i], from + place(warp_row + i * 16 + lane % 16, step * 2 + lane / 16));
				ldmatrix4(fb[i], from + TILE * DEPTH * 2 +
							 place(warp_column + i * 16 + lane % 16, step * 2 + lane / 16));
			}
#pragma unroll
			for (int i = 0; i < 4; i++)
#pragma unroll
				for (int j = 0; j < 8; j++)
					mma16816(sum[i][j], fa[i], fb[j / 2][j % 2], fb[j / 2][j % 2 + 2]);
		}
	}
	for (int i = 0; i < 4; i++)
		for (int j = 0; j < 8; j++) {
			float *to = c + (blockIdx.y * TILE + warp_row + i * 16 + lane / 4) * n +
				    blockIdx.x * TILE + warp_column + j * 8 + lane % 4 * 2;
			*(float2 *)to = make_float2(sum[i][j][0], sum[i][j][1]);
			*(float2 *)(to + 8 * n) = make_float2(sum[i][j][2], sum[i][j][3]);
		}
}

// launch: mma_int8 grid 512 block 128 args u32[524288]:random i32[262144]:zero i32=64
KERNEL mma_int8(const unsigned *in, int *out, int rounds)
{
	unsigned at = blockIdx.x * 128 + threadIdx.x;
	unsigned a[4], b[2];
	int d[4] = {0, 0, 0, 0};

	for (int i = 0; i < 4; i++)
		a[i] = in[at * 8 + i];
	b[0] = in[at * 8 + 4], b[1] = in[at * 8 + 5];
	for (int r = 0; r < rounds; r++)
		asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
			     "{%8, %9}, {%0, %1, %2, %3};"
			     : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
			     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
	*(int4 *)(out + at * 4) = make_int4(d[0], d[1], d[2], d[3]);
}
