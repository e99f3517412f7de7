// SPDX-License-Identifier: Apache-2.0
// Kernels that only one vendor can run: matrices, clusters, textures. They stay, and are locked.
#include <mma.h>
#include <cooperative_groups.h>

using namespace nvcuda;

__global__ void locked_matrices(const __half *a, const __half *b, float *c)
{
	wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> fa;
	wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::col_major> fb;
	wmma::fragment<wmma::accumulator, 16, 16, 16, float> fc;
	wmma::fill_fragment(fc, 0.0f);
	wmma::load_matrix_sync(fa, a, 16);
	wmma::load_matrix_sync(fb, b, 16);
	wmma::mma_sync(fc, fa, fb, fc);
	wmma::store_matrix_sync(c, fc, 16, wmma::mem_row_major);
}

__global__ void locked_texture(cudaTextureObject_t t, float *out)
{
	out[0] = tex2D<float>(t, out[1], out[2]) + tex1Dfetch<float>(t, 3);
}

__global__ void locked_surface(cudaSurfaceObject_t s, int *out)
{
	surf2Dwrite(out[0], s, 4, 5);
	out[1] = surf2Dread<int>(s, 8, 9);
}

#if __CUDA_ARCH__ >= 900
__global__ void __cluster_dims__(2, 1, 1) locked_cluster(int *x)
{
	__shared__ int s;
	auto cluster = cooperative_groups::this_cluster();
	s = x[threadIdx.x];
	cluster.sync();
	x[0] = *cluster.map_shared_rank(&s, 1 - cluster.block_rank());
	cluster.sync();
}
#endif
