// SPDX-License-Identifier: Apache-2.0
// What the corpus's CUDA files share: a hash for inputs made on the fly, and the entry's spelling.
#pragma once

#define KERNEL extern "C" __global__ void

__device__ __forceinline__ unsigned mix(unsigned x)
{
	x ^= x >> 16;
	x *= 0x7feb352du;
	x ^= x >> 15;
	x *= 0x846ca68bu;
	return x ^ x >> 16;
}

__device__ __forceinline__ float unit(unsigned x)
{
	return (float)(mix(x) >> 8) * (1.0f / 16777216.0f);
}
