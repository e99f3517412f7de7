/* SPDX-License-Identifier: Apache-2.0 */
/* Small structs by value, of mixed alignment. */
#include "common.cuh"

struct mixed {
	char c;
	short s;
	double d;
	float3 f;
	long long l;
};
struct tiny {
	unsigned char r, g, b;
};
extern "C" __global__ void struct_parameter(tiny t, mixed m, double *out, bool on, unsigned *runs)
{
	count_block(runs);
	unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
	out[i] = on ? m.c + m.s * 2 + m.d + m.f.x + m.f.y * 10 + m.f.z * 100 + (double)m.l + t.r + t.g * 3 + t.b * 5 + i : 0;
}
