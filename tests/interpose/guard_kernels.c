/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A compiled kernel of the CPU device, written by hand: `step` and its guarded variant, as the
 * compiler would make them. So the launch protocol is tested (and under sanitizers, too) with the
 * real driver, and without the compiler.
 *
 * step(u32 *values, u32 *ran, u32 number, u32 work): each block moves its value one step on.
 * meet(u32 *met, u32 *missed, u32 number, u32): each block counts itself and waits until `number`
 * have; after MISSED_NS it counts as one that was left alone.
 * crowd: a step, whose variant needs more shared memory than there is.
 */
#include <stdatomic.h>
#include <stddef.h>
#include <time.h>

#include "backends/cpu/kernel_abi.h"
#include "base/clock.h"
#include "ir_passes/launch_abi.h"

/* As steps.h has them. A block of HELD work lasts until the word behind the counters is set. */
enum { BLOCKS = 24 };
#define HELD UINT32_MAX

struct step {
	uint32_t *values, *ran;
	uint32_t number, work; /* work: microseconds of one block */
};

struct guarded_step {
	struct step step;
	struct tally_launch launch;
};

static void run(const struct step *p, uint32_t u)
{
	uint64_t end = tally_now() + p->work * UINT64_C(1000);

	if (p->work == HELD)
		while (!atomic_load((_Atomic uint32_t *)&p->ran[BLOCKS]))
			nanosleep(&(struct timespec){.tv_nsec = 50000}, NULL);
	else
		while (tally_now() < end)
			;
	p->values[u] = p->values[u] * 1664525u + 1013904223u + p->number;
	p->ran[u]++;
}

static int run_step(const void *params, struct tally_cpu_block *block)
{
	run(params, block->id[0] + block->grid[0] * (block->id[1] + block->grid[1] * block->id[2]));
	return 0;
}

static int run_guarded(const void *params, struct tally_cpu_block *block)
{
	const struct guarded_step *p = params;

	run(&p->step, p->launch.lo + block->id[0]);
	return 0;
}

#define MISSED_NS UINT64_C(2000000000)

static int run_meet(const void *params, struct tally_cpu_block *block)
{
	const struct step *p = params; /* the guarded form's begin alike */
	uint64_t end = tally_now() + MISSED_NS;

	(void)block;
	__atomic_fetch_add(p->values, 1, __ATOMIC_ACQ_REL);
	while (__atomic_load_n(p->values, __ATOMIC_ACQUIRE) < p->number)
		if (tally_now() > end) {
			__atomic_fetch_add(p->ran, 1, __ATOMIC_RELAXED);
			break;
		}
	return 0;
}

static int run_empty(const void *params, struct tally_cpu_block *block)
{
	(void)params, (void)block;
	return 0;
}

static const struct tally_cpu_param parameters[] = {
	{offsetof(struct guarded_step, step.values), 8},
	{offsetof(struct guarded_step, step.ran), 8},
	{offsetof(struct guarded_step, step.number), 4},
	{offsetof(struct guarded_step, step.work), 4},
	{offsetof(struct guarded_step, launch), sizeof(struct tally_launch)},
};

#define PLAIN(name_, run)                                                                          \
	{                                                                                          \
		.name = name_,                                                                     \
		.param_count = 4,                                                                  \
		.param_bytes = sizeof(struct step),                                                \
		.params = parameters,                                                              \
		.shared_align = 1,                                                                 \
		.max_threads = 1024,                                                               \
		.run_block = run,                                                                  \
	}
#define GUARDED(name_, run, shared)                                                                \
	{                                                                                          \
		.name = name_ "$slice_guard",                                                      \
		.flags = TALLY_CPU_SLICE | TALLY_CPU_GUARD,                                        \
		.param_count = 5,                                                                  \
		.param_bytes = sizeof(struct guarded_step),                                        \
		.params = parameters,                                                              \
		.shared_align = 1,                                                                 \
		.shared_bytes = shared,                                                            \
		.max_threads = 1024,                                                               \
		.run_block = run,                                                                  \
	}

static const struct tally_cpu_kernel kernels[] = {
	{
		.name = "empty",
		.shared_align = 1,
		.max_threads = 1024,
		.run_block = run_empty,
	},
	PLAIN("step", run_step),
	GUARDED("step", run_guarded, 0),
	PLAIN("meet", run_meet),
	GUARDED("meet", run_meet, 0),
	PLAIN("crowd", run_step),
	GUARDED("crowd", run_guarded, 1 << 24),
};

__attribute__((visibility("default"))) extern const struct tally_cpu_module tally_cpu_module;
const struct tally_cpu_module tally_cpu_module = {
	.version = TALLY_CPU_ABI_VERSION,
	.kernel_count = sizeof kernels / sizeof *kernels,
	.kernels = kernels,
};
