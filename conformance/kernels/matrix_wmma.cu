/* SPDX-License-Identifier: Apache-2.0 */
/* wmma 16 x 16 x 16 on f16: fragments from shared and global memory, scaled between two products. */
#include <cuda_fp16.h>

#include "common.cuh"

#define REGISTERS8(c, r) c(r[0]), c(r[1]), c(r[2]), c(r[3]), c(r[4]), c(r[5]), c(r[6]), c(r[7])

/* D = 2 * (A * B) + A * B, A by rows, B by columns in `scratch`. */
extern "C" __global__ void matrix_wmma(const float *a, const float *b, __half *scratch, float *d, unsigned *runs)
{
	__shared__ __align__(32) __half sa[16 * 24];
	count_block(runs);
	int lane = threadIdx.x;
	a += blockIdx.x * 256;
	b += blockIdx.x * 256;
	scratch += blockIdx.x * 256;
	d += blockIdx.x * 256;
	for (int i = lane; i < 256; i += 32) {
		sa[i / 16 * 24 + i % 16] = __float2half(a[i]);
		scratch[i % 16 * 16 + i / 16] = __float2half(b[i]);
	}
	__syncthreads();
	unsigned ra[8], rb[8];
	float c[8] = {0, 0, 0, 0, 0, 0, 0, 0};
	asm volatile("wmma.load.a.sync.aligned.row.m16n16k16.shared.f16 {%0,%1,%2,%3,%4,%5,%6,%7}, [%8], %9;"
		     : REGISTERS8("=r", ra)
		     : "r"((unsigned)__cvta_generic_to_shared(sa)), "r"(24)
		     : "memory");
	asm volatile("wmma.load.b.sync.aligned.col.m16n16k16.global.f16 {%0,%1,%2,%3,%4,%5,%6,%7}, [%8], %9;"
		     : REGISTERS8("=r", rb)
		     : "l"(__cvta_generic_to_global(scratch)), "r"(16)
		     : "memory");
	for (int k = 0; k < 2; k++) {
		asm volatile("wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32 {%0,%1,%2,%3,%4,%5,%6,%7}, "
			     "{%8,%9,%10,%11,%12,%13,%14,%15}, {%16,%17,%18,%19,%20,%21,%22,%23}, "
			     "{%0,%1,%2,%3,%4,%5,%6,%7};"
			     : REGISTERS8("+f", c)
			     : REGISTERS8("r", ra), REGISTERS8("r", rb));
		for (int i = 0; i < 8 && k == 0; i++)
			c[i] *= 2;
	}
	asm volatile("wmma.store.d.sync.aligned.row.m16n16k16.global.f32 [%0], {%1,%2,%3,%4,%5,%6,%7,%8}, %9;"
		     :
		     : "l"(__cvta_generic_to_global(d)), REGISTERS8("f", c), "r"(16)
		     : "memory");
}
