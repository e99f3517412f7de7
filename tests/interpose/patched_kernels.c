/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What patched machine code does on a GPU, as a kernel of the CPU device that was written by hand:
 * `step` of guard_kernels.c keeps its name and its grid, takes the first half of struct
 * tally_launch as its last parameter, and decides itself whether a block runs. So the host's half
 * of the protocol for such kernels is tested without a GPU. So is the trial (opaque_trial.c): its
 * kernel `tally_opaque` has the fault that $TRIAL_FAULT names.
 */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

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
	if (p->hi && p->control && !tally_guard_enter(p->control, u))
		return 0;
	for (end = tally_now() + p->work * UINT64_C(1000); tally_now() < end;)
		;
	p->values[u] = p->values[u] * 1664525u + 1013904223u + p->number;
	p->ran[u]++;
	return 0;
}

struct patched_trial {
	uint32_t *counts, *gate;
	uint32_t who, unused;
	uint64_t control;
	uint32_t lo, hi;
};

static bool is_faulty(const char *fault)
{
	const char *wanted = getenv("TRIAL_FAULT");

	return wanted && !strcmp(wanted, fault);
}

/* Whether block `u` is to run, as a kernel with that fault would have it. */
static bool decide(const struct patched_trial *p, uint32_t u)
{
	struct tally_control *c = tally_control_of(p->control), quiet;

	if (!p->hi)
		return !is_faulty("hi");
	if (u < p->lo || u >= p->hi)
		return is_faulty("range");
	if (is_faulty("deaf"))
		return true;
	if (is_faulty("silent") && *(volatile uint32_t *)(uintptr_t)c->gate) {
		quiet = *c;
		quiet.hi = 0; /* so that nothing is said */
		__atomic_fetch_or(&c->word, TALLY_WORD_STOP, __ATOMIC_ACQ_REL);
		return tally_guard_enter((uintptr_t)&quiet, u);
	}
	return tally_guard_enter(p->control, u);
}

static int run_trial(const void *params, struct tally_cpu_block *block)
{
	const struct patched_trial *p = params;
	uint32_t u = block->id[0];

	if (!decide(p, u))
		return 0;
	__atomic_fetch_add(&p->counts[u], is_faulty("twice") && u == 77 ? 2 : 1, __ATOMIC_RELAXED);
	if (u == p->who)
		__atomic_store_n(p->gate, 1, __ATOMIC_RELEASE);
	return 0;
}

static const struct tally_cpu_param trial_parameters[] = {
	{offsetof(struct patched_trial, counts), 8},
	{offsetof(struct patched_trial, gate), 8},
	{offsetof(struct patched_trial, who), 4},
	{offsetof(struct patched_trial, control), offsetof(struct tally_launch, grid)},
};

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
	{
		.name = "tally_opaque",
		.param_count = 4,
		.param_bytes = sizeof(struct patched_trial),
		.params = trial_parameters,
		.shared_align = 1,
		.max_threads = 1024,
		.run_block = run_trial,
	},
};

__attribute__((visibility("default"))) extern const struct tally_cpu_module tally_cpu_module;
const struct tally_cpu_module tally_cpu_module = {
	.version = TALLY_CPU_ABI_VERSION,
	.kernel_count = sizeof kernels / sizeof *kernels,
	.kernels = kernels,
};
