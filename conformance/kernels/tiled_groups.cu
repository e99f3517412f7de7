/* SPDX-License-Identifier: Apache-2.0 */
/* Cooperative-groups tiles: reductions and shuffles in groups of 8 and 16 lanes. */
#include "common.cuh"

#include <cooperative_groups.h>
namespace cg = cooperative_groups;
extern "C" __global__ void tiled_groups(const int *in, int *out, unsigned *runs)
{
	count_block(runs);
	cg::thread_block block = cg::this_thread_block();
	auto eight = cg::tiled_partition<8>(block);
	auto sixteen = cg::tiled_partition<16>(block);
	unsigned i = block.group_index().x * block.size() + block.thread_rank();
	int v = in[i];
	for (int d = 4; d; d /= 2)
		v += eight.shfl_down(v, d);
	int w = sixteen.shfl_xor(in[i], 3);
	block.sync();
	out[i] = eight.shfl(v, 0) + w * 2 + (int)sixteen.thread_rank() + (eight.any(in[i] == 13) ? 1 : 0);
}
