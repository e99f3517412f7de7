/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix product of a warp on bytes: ldmatrix, mma.m16n8k32 s8 * u8, clamped m8n8k16 s8 * s8. */
#include "common.cuh"

/* A is 16 x 32 signed bytes, B 8 columns of 32 bytes. */
extern "C" __global__ void matrix_s8(const signed char *a, const unsigned char *b, int *c, int *e, unsigned *runs)
{
	__shared__ __align__(16) signed char sa[16][32];
	__shared__ __align__(16) unsigned char sb[8][32];
	count_block(runs);
	int lane = threadIdx.x;
	a += blockIdx.x * 512;
	b += blockIdx.x * 256;
	for (int i = lane; i < 512; i += 32)
		sa[i / 32][i % 32] = a[i];
	for (int i = lane; i < 256; i += 32)
		sb[i / 32][i % 32] = b[i];
	__syncthreads();
	int d[4] = {lane, 0, -lane, 7}, s[2] = {2147483647, -2147483647 - 1};
	unsigned ra[4], rb[2];
	unsigned from = (unsigned)__cvta_generic_to_shared(&sa[lane % 16][lane / 16 * 16]);
	asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
		     : "=r"(ra[0]), "=r"(ra[1]), "=r"(ra[2]), "=r"(ra[3])
		     : "r"(from));
	from = (unsigned)__cvta_generic_to_shared(&sb[lane % 8][lane / 8 % 2 * 16]);
	asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0,%1}, [%2];"
		     : "=r"(rb[0]), "=r"(rb[1])
		     : "r"(from));
	asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.s8.u8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
		     : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
		     : "r"(ra[0]), "r"(ra[1]), "r"(ra[2]), "r"(ra[3]), "r"(rb[0]), "r"(rb[1]));
	asm volatile("mma.sync.aligned.m8n8k16.row.col.satfinite.s32.s8.s8.s32 {%0,%1}, {%2}, {%3}, {%0,%1};"
		     : "+r"(s[0]), "+r"(s[1])
		     : "r"(ra[0]), "r"(rb[0]));
	c += blockIdx.x * 128;
	e += blockIdx.x * 64;
	for (int i = 0; i < 4; i++)
		c[(lane / 4 + i / 2 * 8) * 8 + lane % 4 * 2 + i % 2] = d[i];
	for (int i = 0; i < 2; i++)
		e[lane / 4 * 8 + lane % 4 * 2 + i] = s[i];
}
