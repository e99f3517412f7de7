/* SPDX-License-Identifier: Apache-2.0 */
/* What kernels call in the executor: the table, and its small members. */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "backends/cpu/executor/internal.h"

static struct tally_cpu_worker *worker_of(struct tally_cpu_block *block)
{
	return (struct tally_cpu_worker *)block;
}

static void fault(struct tally_cpu_block *block, int code)
{
	tally_cpu_fail(worker_of(block), (enum tally_cpu_fault)code,
		       code == TALLY_CPU_TRAP ? "trap in block (%u,%u,%u)"
					      : "fault in block (%u,%u,%u)",
		       block->id[0], block->id[1], block->id[2]);
}

/* Says what a GPU's runtime says, where it says it. */
static void assert_fail(struct tally_cpu_block *block, const char *message, const char *file,
			uint32_t line, const char *function, uint32_t x, uint32_t y, uint32_t z)
{
	fprintf(stderr, "%s:%u: %s: block: [%u,%u,%u], thread: [%u,%u,%u] Assertion `%s` failed.\n",
		file, line, function, block->id[0], block->id[1], block->id[2], x, y, z, message);
	tally_cpu_fail(worker_of(block), TALLY_CPU_ASSERT, "%.60s:%u: assertion `%.100s` failed",
		       file, line, message);
}

static void *allocate(uint64_t bytes)
{
	void *memory = NULL;

	/* CUDA's in-kernel heap aligns to 16. */
	return posix_memalign(&memory, 16, bytes ? bytes : 1) ? NULL : memory;
}

static uint64_t global_timer(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Private memory is in frames, in the low private memory, or on the worker thread's own stack. */
static bool is_local(struct tally_cpu_block *block, const void *address)
{
	static _Thread_local char *low, *high;
	const char *p = address;

	if (!low) {
		pthread_attr_t attributes;
		void *start;
		size_t size;

		if (!pthread_getattr_np(pthread_self(), &attributes)) {
			if (!pthread_attr_getstack(&attributes, &start, &size)) {
				low = start;
				high = low + size;
			}
			pthread_attr_destroy(&attributes);
		}
	}
	return (p >= low && p < high) || tally_cpu_arena_holds(worker_of(block), address);
}

/* The block that is polled for may have to run on this processor. */
static void rest(struct tally_cpu_block *block)
{
	enum { PATIENCE = 64 };

	if (++worker_of(block)->polls % PATIENCE) {
		__builtin_ia32_pause();
	} else {
		tally_cpu_check_grid(worker_of(block));
		sched_yield();
	}
}

const struct tally_cpu_services tally_cpu_services = {
	.frame = tally_cpu_arena_frame,
	.fault = fault,
	.assert_fail = assert_fail,
	.print = tally_cpu_print,
	.allocate = allocate,
	.release = free,
	.global_timer = global_timer,
	.is_local = is_local,
	.round32 = tally_cpu_round32,
	.round64 = tally_cpu_round64,
	.convert = tally_cpu_convert,
	.math =
		{
#define MATH_ENTRY(name, arguments) [TALLY_CPU_MATH_##name] = (void (*)(void))tally_cpu_math_##name,
			TALLY_CPU_MATH_LIST(MATH_ENTRY)
#undef MATH_ENTRY
		},
	.rest = rest,
};
