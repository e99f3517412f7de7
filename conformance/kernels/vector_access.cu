/* SPDX-License-Identifier: Apache-2.0 */
/* float4, int2, uchar4 and double2 loads and stores; narrow integers. */
#include "common.cuh"

extern "C" __global__ void vector_access(const float4 *a, const int2 *b, const uchar4 *c, double2 *out, short *narrow, unsigned *runs)
{
	count_block(runs);
	unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
	float4 x = a[i];
	int2 y = b[i];
	uchar4 z = c[i];
	out[i] = make_double2((double)x.x + x.y + (double)x.z * y.x, (double)x.w * y.y + z.x + z.y * 2 + z.z * 3 + z.w * 4);
	narrow[i] = (short)((signed char)z.x + (unsigned char)(z.y + 200) - (short)y.x);
}
