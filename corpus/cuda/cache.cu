// SPDX-License-Identifier: Apache-2.0
// Loads and stores that say how they want to be cached (clang's headers lack these functions).
#include "common.cuh"

// launch: cache_hints grid 4096 block 256 args f32[4194304]:unit f32[4194304]:zero
KERNEL cache_hints(const float *in, float *out)
{
	unsigned at = blockIdx.x * 1024 + threadIdx.x;
	float a = __ldcs(in + at), b = __ldcg(in + at + 256), c = __ldlu(in + at + 512), d = __ldg(in + at + 768);

	__stcs(out + at, a + b);
	__stcg(out + at + 256, b * c);
	__stwt(out + at + 512, c - d);
	__stwb(out + at + 768, d + __ldca(in + at));
}

// launch: policies grid 1024 block 256 args f32[1048576]:unit f32[1048576]:zero
KERNEL policies(const float4 *in, float4 *out)
{
	unsigned at = blockIdx.x * 256 + threadIdx.x;
	unsigned long long last, first;
	float4 v, w;

	asm("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(last));
	asm("createpolicy.fractional.L2::evict_first.b64 %0;" : "=l"(first));
	asm volatile("ld.global.L2::cache_hint.v4.f32 {%0, %1, %2, %3}, [%4], %5;"
		     : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
		     : "l"(__cvta_generic_to_global(in + at)), "l"(last));
	asm volatile("ld.global.nc.L1::no_allocate.L2::128B.v4.f32 {%0, %1, %2, %3}, [%4];"
		     : "=f"(w.x), "=f"(w.y), "=f"(w.z), "=f"(w.w)
		     : "l"(__cvta_generic_to_global(in + (at ^ 1))));
	asm volatile("prefetch.global.L2 [%0];" ::"l"(__cvta_generic_to_global(in + (at ^ 64))));
	asm volatile("st.global.L2::cache_hint.v4.f32 [%0], {%1, %2, %3, %4}, %5;" ::"l"(
			     __cvta_generic_to_global(out + at)),
		     "f"(v.x + w.x), "f"(v.y + w.y), "f"(v.z * w.z), "f"(v.w - w.w), "l"(first));
}
