/* SPDX-License-Identifier: Apache-2.0 */
/* wmma on bf16, tf32, signed bytes and f64, as the toolkit's mma.h writes it. */
#include <cuda_bf16.h>
#include <mma.h>

#include "common.cuh"

using namespace nvcuda;

/* d: A * B on bf16 and, behind it, of the first 8 columns and rows on tf32; s: on bytes; e: 8 x 4 x 8 on f64. */
extern "C" __global__ void matrix_wmma_types(const float *a, const float *b, float *d, int *s, double *e,
					     unsigned *runs)
{
	__shared__ __align__(32) __nv_bfloat16 ha[256], hb[256];
	__shared__ __align__(32) signed char ca[256], cb[256];
	__shared__ __align__(32) float fa[256], fb[256];
	__shared__ __align__(32) double da[32], db[32];

	count_block(runs);
	a += blockIdx.x * 256;
	b += blockIdx.x * 256;
	for (int i = threadIdx.x; i < 256; i += 32) {
		ha[i] = __float2bfloat16(a[i]);
		hb[i % 16 * 16 + i / 16] = __float2bfloat16(b[i]); /* by columns */
		ca[i] = (signed char)(a[i] * 8);
		cb[i] = (signed char)(b[i] * 8);
		fa[i] = a[i];
		fb[i] = b[i];
	}
	da[threadIdx.x] = a[threadIdx.x / 4 * 16 + threadIdx.x % 4];
	db[threadIdx.x] = b[threadIdx.x / 8 * 16 + threadIdx.x % 8];
	__syncthreads();

	wmma::fragment<wmma::accumulator, 16, 16, 16, float> c;
	wmma::fragment<wmma::matrix_a, 16, 16, 16, __nv_bfloat16, wmma::row_major> c_a;
	wmma::fragment<wmma::matrix_b, 16, 16, 16, __nv_bfloat16, wmma::col_major> c_b;
	wmma::fill_fragment(c, 1.0f);
	wmma::load_matrix_sync(c_a, ha, 16);
	wmma::load_matrix_sync(c_b, hb, 16);
	wmma::mma_sync(c, c_a, c_b, c);
	wmma::store_matrix_sync(d + blockIdx.x * 512, c, 16, wmma::mem_row_major);

	wmma::fragment<wmma::accumulator, 16, 16, 8, float> t;
	wmma::fragment<wmma::matrix_a, 16, 16, 8, wmma::precision::tf32, wmma::row_major> t_a;
	wmma::fragment<wmma::matrix_b, 16, 16, 8, wmma::precision::tf32, wmma::row_major> t_b;
	wmma::fill_fragment(t, 0.0f);
	wmma::load_matrix_sync(t_a, fa, 16);
	wmma::load_matrix_sync(t_b, fb, 16);
	wmma::mma_sync(t, t_a, t_b, t);
	wmma::store_matrix_sync(d + blockIdx.x * 512 + 256, t, 16, wmma::mem_col_major);

	wmma::fragment<wmma::accumulator, 16, 16, 16, int> n;
	wmma::fragment<wmma::matrix_a, 16, 16, 16, signed char, wmma::row_major> n_a;
	wmma::fragment<wmma::matrix_b, 16, 16, 16, signed char, wmma::row_major> n_b;
	wmma::fill_fragment(n, -5);
	wmma::load_matrix_sync(n_a, ca, 16);
	wmma::load_matrix_sync(n_b, cb, 16);
	wmma::mma_sync(n, n_a, n_b, n, true);
	wmma::store_matrix_sync(s + blockIdx.x * 256, n, 16, wmma::mem_row_major);

	wmma::fragment<wmma::accumulator, 8, 8, 4, double> f;
	wmma::fragment<wmma::matrix_a, 8, 8, 4, double, wmma::row_major> f_a;
	wmma::fragment<wmma::matrix_b, 8, 8, 4, double, wmma::row_major> f_b;
	wmma::fill_fragment(f, 0.5);
	wmma::load_matrix_sync(f_a, da, 4);
	wmma::load_matrix_sync(f_b, db, 8);
	wmma::mma_sync(f, f_a, f_b, f);
	wmma::store_matrix_sync(e + blockIdx.x * 64, f, 8, wmma::mem_row_major);
}
