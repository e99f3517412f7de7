/* SPDX-License-Identifier: Apache-2.0 */
/* Workers, and how one block runs: the guard's decision, memory, then loop or coroutines. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "backends/cpu/executor/internal.h"
#include "ir_passes/launch_abi.h"

static unsigned worker_count = 1;

void tally_cpu_set_worker_count(unsigned count)
{
	__atomic_store_n(&worker_count, count ? count : 1, __ATOMIC_RELAXED);
}

struct tally_cpu_worker *tally_cpu_worker_create(unsigned index)
{
	struct tally_cpu_worker *worker = aligned_alloc(64, (sizeof *worker + 63) / 64 * 64);

	if (!worker)
		return NULL;
	memset(worker, 0, sizeof *worker);
	worker->block.services = &tally_cpu_services;
	worker->block.sm = index;
	return worker;
}

void tally_cpu_worker_destroy(struct tally_cpu_worker *worker)
{
	if (!worker)
		return;
	tally_cpu_memory_free(worker);
	free(worker->threads);
	free(worker);
}

const char *tally_cpu_worker_message(const struct tally_cpu_worker *worker)
{
	return worker->message;
}

void tally_cpu_fail(struct tally_cpu_worker *worker, enum tally_cpu_fault fault, const char *format,
		    ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(worker->message, sizeof worker->message, format, arguments);
	va_end(arguments);
	siglongjmp(worker->escape, fault);
}

void tally_cpu_check_grid(struct tally_cpu_worker *worker)
{
	const struct tally_cpu_grid *grid = worker->block.workspace;

	if (grid && __atomic_load_n(&grid->failed, __ATOMIC_ACQUIRE))
		tally_cpu_fail(worker, TALLY_CPU_ELSEWHERE, "another block of the launch failed");
}

/*
 * The decision for the whole block, before any of its threads starts: true when it is to run. The
 * range is checked here for every variant, so that the driver may also hand out blocks of a range
 * that was cut meanwhile.
 */
static bool may_run(const struct tally_cpu_launch *launch, uint64_t linear)
{
	const struct tally_cpu_kernel *kernel = launch->kernel;
	struct tally_launch range;
	uint64_t u;

	memcpy(&range, (const char *)launch->params + kernel->param_bytes - sizeof range,
	       sizeof range);
	u = kernel->flags & TALLY_CPU_SLICE ? range.lo + linear : linear;
	if (u < range.lo || u >= range.hi)
		return false;
	if (!(kernel->flags & TALLY_CPU_GUARD) || !range.control)
		return true;
	return tally_guard_enter(range.control, (uint32_t)u);
}

static bool prepare_memory(struct tally_cpu_worker *worker, const struct tally_cpu_launch *launch)
{
	const struct tally_cpu_kernel *kernel = launch->kernel;
	struct tally_cpu_block *block = &worker->block;
	uint32_t align = kernel->shared_align > 16 ? kernel->shared_align : 16;
	uint32_t fixed = (kernel->shared_bytes + align - 1) / align * align;
	bool apart = kernel->flags & (TALLY_CPU_COROUTINE | TALLY_CPU_REGIONS);
	size_t threads = apart ? block->threads : 1;

	if (!tally_cpu_shared_reserve(worker, (size_t)fixed + launch->dynamic_shared))
		return false;
	block->shared = worker->shared;
	block->dynamic = worker->shared + fixed;
	block->shared_bytes = fixed + launch->dynamic_shared;
	block->dynamic_bytes = launch->dynamic_shared;
	if (kernel->flags & TALLY_CPU_LOW_LOCAL) {
		block->local_stride = (kernel->local_bytes + 63) / 64 * 64;
		if (!tally_cpu_local_reserve(worker, threads * block->local_stride))
			return false;
		block->local = worker->local;
	}
	return !apart || tally_cpu_arena_reset(worker);
}

static void place_block(struct tally_cpu_block *block, const struct tally_cpu_launch *launch,
			uint64_t linear)
{
	memcpy(block->grid, launch->grid, sizeof block->grid);
	memcpy(block->size, launch->block, sizeof block->size);
	block->threads = launch->block[0] * launch->block[1] * launch->block[2];
	block->grid_id = launch->grid_id;
	block->workspace = launch->workspace;
	block->sm_count = __atomic_load_n(&worker_count, __ATOMIC_RELAXED);
	if (linear < launch->grid[0]) { /* spares one-dimensional grids the divisions */
		block->id[0] = (uint32_t)linear;
		block->id[1] = block->id[2] = 0;
		return;
	}
	block->id[0] = (uint32_t)(linear % launch->grid[0]);
	linear /= launch->grid[0];
	block->id[1] = (uint32_t)(linear % launch->grid[1]);
	block->id[2] = (uint32_t)(linear / launch->grid[1]);
}

enum tally_cpu_fault tally_cpu_run_block(struct tally_cpu_worker *worker,
					 const struct tally_cpu_launch *launch, uint64_t linear)
{
	const struct tally_cpu_kernel *kernel = launch->kernel;
	int fault;

	if (kernel->flags & (TALLY_CPU_SLICE | TALLY_CPU_GUARD) && !may_run(launch, linear))
		return TALLY_CPU_OK;
	place_block(&worker->block, launch, linear);
	worker->message[0] = '\0';
	if (!prepare_memory(worker, launch)) {
		snprintf(worker->message, sizeof worker->message,
			 "no memory for a block of kernel %.150s", kernel->name);
		return TALLY_CPU_MEMORY;
	}
	tally_cpu_faults_install();
	/* The signal mask is not saved: the handlers run with SA_NODEFER, and saving it would be a
	 * system call per block. */
	fault = sigsetjmp(worker->escape, 0);
	if (fault == 0) {
		tally_cpu_faults_enter(worker);
		if (launch->kernel->flags & TALLY_CPU_COROUTINE)
			tally_cpu_run_threads(worker, launch->kernel, launch->params);
		else
			fault = launch->kernel->run_block(launch->params, &worker->block);
	}
	tally_cpu_faults_leave();
	if (fault && launch->workspace)
		__atomic_store_n(&launch->workspace->failed, 1, __ATOMIC_RELEASE);
	return (enum tally_cpu_fault)fault;
}
