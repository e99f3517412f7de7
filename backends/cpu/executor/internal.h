/* SPDX-License-Identifier: Apache-2.0 */
/* What the executor's files share: the worker, and how a block ends early. */
#ifndef TALLY_BACKENDS_CPU_EXECUTOR_INTERNAL_H
#define TALLY_BACKENDS_CPU_EXECUTOR_INTERNAL_H

#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>

#include "backends/cpu/executor.h"

#define TALLY_CPU_WARP	      32
#define TALLY_CPU_MAX_THREADS 1024
#define TALLY_CPU_MAX_WARPS   (TALLY_CPU_MAX_THREADS / TALLY_CPU_WARP)
#define TALLY_CPU_BARRIERS    16

/* The lanes of one warp of a coroutine kernel, as bit masks. A lane that is live is in exactly one
 * of the other four sets. */
struct tally_cpu_warp {
	uint32_t live;	   /* has not exited */
	uint32_t run;	   /* may be resumed */
	uint32_t yielding; /* may be resumed, but after the others */
	uint32_t meeting;  /* in a warp operation */
	uint32_t waiting;  /* in a barrier */
	bool plain;	   /* all live lanes wait in barrier 0 for all threads of the block */
};

struct tally_cpu_worker {
	struct tally_cpu_block block; /* what kernels see; services find the worker by it */

	/* Where a fault of the running kernel goes, from the kernel, the executor or a signal. */
	sigjmp_buf escape;
	volatile sig_atomic_t inside; /* a kernel runs on the thread that owns this worker */
	char message[256];

	char *shared; /* mapped below 2 GiB */
	size_t shared_size;
	char *local;
	size_t local_size;

	/* Frames of coroutines. The first chunk is what blocks start with; more are added while a
	 * block needs them, and joined into one before the next block. */
	struct tally_cpu_chunk *chunks;
	size_t arena_size;

	struct tally_cpu_thread *threads; /* TALLY_CPU_MAX_THREADS, made for the first coroutine */
	uint32_t thread_shape[3];	  /* block size that their ids were filled in for */
	struct tally_cpu_warp warps[TALLY_CPU_MAX_WARPS];

	/* Lanes that arrived at a barrier without waiting, and whether any did in this block. */
	uint32_t arrived[TALLY_CPU_BARRIERS][TALLY_CPU_MAX_WARPS];
	bool any_arrived;

	unsigned polls; /* looks at memory in vain, by threads that let nobody of the block run */
};

extern const struct tally_cpu_services tally_cpu_services;

/* Ends the running block: records one line and jumps back into tally_cpu_run_block(). Only while
 * worker->inside. */
void tally_cpu_fail(struct tally_cpu_worker *worker, enum tally_cpu_fault fault, const char *format,
		    ...) __attribute__((format(printf, 3, 4), noreturn));

/* Ends the running block of a cooperative launch when another one has failed: for blocks that poll.
 */
void tally_cpu_check_grid(struct tally_cpu_worker *worker);

/* Makes sure that faults of the calling thread's kernels end in `escape` (fault.c); the thread has
 * entered or left a kernel. */
void tally_cpu_faults_install(void);
void tally_cpu_faults_enter(struct tally_cpu_worker *worker);
void tally_cpu_faults_leave(void);

/* Memory (memory.c). False when there is none. */
bool tally_cpu_shared_reserve(struct tally_cpu_worker *worker, size_t bytes);
bool tally_cpu_local_reserve(struct tally_cpu_worker *worker, size_t bytes);
bool tally_cpu_arena_reset(struct tally_cpu_worker *worker);
void *tally_cpu_arena_frame(struct tally_cpu_block *block, uint64_t bytes);
bool tally_cpu_arena_holds(const struct tally_cpu_worker *worker, const void *address);
void tally_cpu_memory_free(struct tally_cpu_worker *worker);

/* Runs all threads of worker->block (threads.c); returns when all have exited. */
void tally_cpu_run_threads(struct tally_cpu_worker *worker, const struct tally_cpu_kernel *kernel,
			   const void *params);

/* Finishes the warp operations of `warp` whose lanes are all there: moves these from `meeting` to
 * `run`. Returns whether there were any (warp.c). `threads` are the warp's records. */
bool tally_cpu_resolve_warp(struct tally_cpu_worker *worker, struct tally_cpu_warp *warp,
			    struct tally_cpu_thread *threads);

/* Carries out the matrix operation that the lanes of `set` are in (matrix.c). */
void tally_cpu_resolve_matrix(struct tally_cpu_thread *threads, uint32_t set);

/* Releases the barriers that are complete (barrier.c); returns whether there were any. With
 * `exited` a barrier with a count does not wait for warps that have exited. As nobody knows which
 * warps a count means, that is for when nothing moves otherwise. */
bool tally_cpu_release_barriers(struct tally_cpu_worker *worker, unsigned warps, bool exited);

/* "barrier 3", "a shuffle": for messages. */
const char *tally_cpu_operation_name(uint32_t operation);

/* Services: print.c, rounding.c, math.c. */
int tally_cpu_print(const char *format, const void *arguments);
float tally_cpu_round32(uint32_t what, float a, float b, float c);
double tally_cpu_round64(uint32_t what, double a, double b, double c);
uint64_t tally_cpu_convert(uint32_t what, uint64_t bits);
#define TALLY_CPU_MATH_1 (double a)
#define TALLY_CPU_MATH_2 (double a, double b)
#define TALLY_CPU_MATH_3 (double a, double b, double c)
#define TALLY_CPU_MATH_4 (double a, double b, double c, double d)
#define TALLY_CPU_MATH_DECLARE(name, arguments)                                                    \
	double tally_cpu_math_##name TALLY_CPU_MATH_##arguments;
TALLY_CPU_MATH_LIST(TALLY_CPU_MATH_DECLARE)

#endif
