/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What patched machine code does on a GPU, as a kernel of the CPU device that was written by hand:
 * `step` of guard_kernels.c keeps its name and its grid, takes the first half of struct
 * tally_launch as its last parameter, and decides itself whether a block runs. So the host's half
 * of the protocol for such kernels is tested without a GPU.
 */
#include <stddef.h>

#include "backends/cpu/kernel_abi.h"
#include "base/clock.h"
#include "ir_passes/launch_abi.h"

struct patched_step {
	uint32_t *values, *ran;
	uint32_t number, work; /* work: microseconds of one block */
	uint64_t control;
	uint32_t lo, hi;
};

static int run_patched(const void *params, struct tally_cpu_block *block)
{
	const struct patched_step *p = params;
	uint32_t u = block->id[0] + block->grid[0] * (block->id[1] + block->grid[1] * block->id[2]);
	uint64_t end;

	if (p->hi && (u < p->lo || u >= p->hi))
		return 0;
	if (p->hi && p->control &&
	    !tally_guard_enter((struct tally_control *)(uintptr_t)p->control, u))
		return 0;
	for (end = tally_now() + p->work * UINT64_C(1000); tally_now() < end;)
		;
	p->values[u] = p->values[u] * 1664525u + 1013904223u + p->number;
	p->ran[u]++;
	return 0;
}

static const struct tally_cpu_param parameters[] = {
	{offsetof(struct patched_step, values), 8},
	{offsetof(struct patched_step, ran), 8},
	{offsetof(struct patched_step, number), 4},
	{offsetof(struct patched_step, work), 4},
	{offsetof(struct patched_step, control), offsetof(struct tally_launch, grid)},
};

static const struct tally_cpu_kernel kernels[] = {
	{
		.name = "step",
		.param_count = 5,
		.param_bytes = sizeof(struct patched_step),
		.params = parameters,
		.shared_align = 1,
		.max_threads = 1024,
		.run_block = run_patched,
	},
};

__attribute__((visibility("default"))) extern const struct tally_cpu_module tally_cpu_module;
const struct tally_cpu_module tally_cpu_module = {
	.version = TALLY_CPU_ABI_VERSION,
	.kernel_count = sizeof kernels / sizeof *kernels,
	.kernels = kernels,
};
