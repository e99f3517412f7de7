/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a kernel compiled for the CPU device looks like: the shared object that backends/cpu/lower
 * writes exports one `const struct tally_cpu_module tally_cpu_module`, and backends/cpu/executor
 * runs it. The object has no undefined symbol but libm's and libc's memory functions.
 */
#ifndef TALLY_BACKENDS_CPU_KERNEL_ABI_H
#define TALLY_BACKENDS_CPU_KERNEL_ABI_H

#include <stdint.h>

#define TALLY_CPU_ABI_VERSION	1
#define TALLY_CPU_MODULE_SYMBOL "tally_cpu_module"

struct tally_cpu_block;
struct tally_cpu_thread;

struct tally_cpu_param {
	uint32_t offset, bytes; /* in the packed parameter buffer (C layout, in order) */
};

enum tally_cpu_kernel_flags {
	TALLY_CPU_COROUTINE =
		1, /* threads are started one by one and suspend (start), else run_block */
	TALLY_CPU_SLICE = 2, /* variant: last parameter is a struct tally_launch */
	TALLY_CPU_GUARD = 4, /* variant: the executor asks tally_guard_enter() before each block */
	TALLY_CPU_COOPERATIVE = 8,
};

struct tally_cpu_kernel {
	const char *name;
	uint32_t flags;
	uint32_t param_count, param_bytes;
	const struct tally_cpu_param *params;
	uint32_t shared_bytes, shared_align; /* static shared memory */
	uint32_t local_bytes;		     /* private memory of a thread, for attributes only */
	uint32_t max_threads;		     /* product of maxntid, or 1024 */
	uint32_t required[3];		     /* reqntid, or 0 */

	/* Loop kernels: runs all threads of one block. Returns 0 or an enum tally_cpu_fault. */
	int (*run_block)(const void *params, struct tally_cpu_block *block);

	/* Coroutine kernels: starts one thread, runs it to its first suspension, returns its
	 * handle; the frame comes from the block's arena (executor). Resume and destroy as
	 * llvm.coro says. */
	void *(*start)(const void *params, struct tally_cpu_thread *thread);
};

struct tally_cpu_variable {
	const char *name;
	void *address;
	uint64_t bytes;
	uint32_t constant;
};

struct tally_cpu_module {
	uint32_t version; /* TALLY_CPU_ABI_VERSION */
	uint32_t kernel_count, variable_count;
	const struct tally_cpu_kernel *kernels;
	const struct tally_cpu_variable *variables;
};

#endif
