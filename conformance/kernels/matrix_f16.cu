/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix product of a warp: ldmatrix, mma.m16n8k16 and m16n8k8 on f16, movmatrix. */
#include <cuda_fp16.h>

#include "common.cuh"

/* Each block: C (16 x 8) = A (16 x 32) * B (32 x 8), and the same sums kept in f16 by movmatrix
 * (8 x 16, columns first). */
extern "C" __global__ void matrix_f16(const float *a, const float *b, float *c, float *t, unsigned *runs)
{
	__shared__ __align__(16) __half sa[16][32], sb[32][8];
	count_block(runs);
	int lane = threadIdx.x;
	a += blockIdx.x * 512;
	b += blockIdx.x * 256;
	for (int i = lane; i < 512; i += 32)
		sa[i / 32][i % 32] = __float2half(a[i]);
	for (int i = lane; i < 256; i += 32)
		sb[i / 8][i % 8] = __float2half(b[i]);
	__syncthreads();
	float d[4] = {0, 0, 0, 0};
	unsigned h[2] = {0, 0}, ra[4], rb[2], m[2];
	for (int k = 0; k < 32; k += 16) {
		unsigned from = (unsigned)__cvta_generic_to_shared(&sa[lane % 16][k + lane / 16 * 8]);
		asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
			     : "=r"(ra[0]), "=r"(ra[1]), "=r"(ra[2]), "=r"(ra[3])
			     : "r"(from));
		from = (unsigned)__cvta_generic_to_shared(&sb[k + lane % 16][0]);
		asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0,%1}, [%2];"
			     : "=r"(rb[0]), "=r"(rb[1])
			     : "r"(from));
		asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
			     : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
			     : "r"(ra[0]), "r"(ra[1]), "r"(ra[2]), "r"(ra[3]), "r"(rb[0]), "r"(rb[1]));
		if (k == 0) /* the first 8 of k: few enough to be exact in f16 */
			asm volatile("mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16 {%0,%1}, {%2,%3}, {%4}, {%0,%1};"
				     : "+r"(h[0]), "+r"(h[1])
				     : "r"(ra[0]), "r"(ra[1]), "r"(rb[0]));
	}
	for (int i = 0; i < 2; i++)
		asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(m[i]) : "r"(h[i]));
	c += blockIdx.x * 128;
	t += blockIdx.x * 128;
	for (int i = 0; i < 4; i++)
		c[(lane / 4 + i / 2 * 8) * 8 + lane % 4 * 2 + i % 2] = d[i];
	for (int i = 0; i < 4; i++)
		t[lane / 4 * 16 + i / 2 * 8 + lane % 4 * 2 + i % 2] =
			__half2float(__ushort_as_half((unsigned short)(m[i / 2] >> i % 2 * 16)));
}
