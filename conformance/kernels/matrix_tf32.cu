/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix product of a warp on tf32: mma.m16n8k8 and m16n8k4, fragments straight from memory. */
#include "common.cuh"

/* A is 16 x 12, B 12 x 8. */
extern "C" __global__ void matrix_tf32(const float *a, const float *b, float *c, unsigned *runs)
{
	count_block(runs);
	int lane = threadIdx.x, group = lane / 4, i = lane % 4;
	a += blockIdx.x * 192;
	b += blockIdx.x * 96;
	float d[4] = {0, 0, 0, 0};
	unsigned ra[6], rb[3];
	for (int k = 0; k < 3; k++) {
		ra[2 * k] = __float_as_uint(a[group * 12 + 4 * k + i]);
		ra[2 * k + 1] = __float_as_uint(a[(group + 8) * 12 + 4 * k + i]);
		rb[k] = __float_as_uint(b[(4 * k + i) * 8 + group]);
	}
	asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
		     : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
		     : "r"(ra[0]), "r"(ra[1]), "r"(ra[2]), "r"(ra[3]), "r"(rb[0]), "r"(rb[1]));
	asm volatile("mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
		     : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
		     : "r"(ra[4]), "r"(ra[5]), "r"(rb[2]));
	c += blockIdx.x * 128;
	for (int r = 0; r < 4; r++)
		c[(group + r / 2 * 8) * 8 + i * 2 + r % 2] = d[r];
}
