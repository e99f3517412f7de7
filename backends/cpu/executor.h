/* SPDX-License-Identifier: Apache-2.0 */
/* Runs compiled kernels block by block on the calling thread. No queues, no threads of its own: the
 * driver's workers (backends/cpu/driver) own those. */
#ifndef TALLY_BACKENDS_CPU_EXECUTOR_H
#define TALLY_BACKENDS_CPU_EXECUTOR_H

#include <stdint.h>

#include "backends/cpu/kernel_abi.h"
#include "base/error.h"

/* One launch, read-only while its blocks run. */
struct tally_cpu_launch {
	const struct tally_cpu_kernel *kernel;
	const void *params; /* packed, kernel->param_bytes */
	uint32_t grid[3], block[3];
	uint32_t dynamic_shared; /* bytes */
	uint64_t grid_id;
	struct tally_cpu_grid *workspace; /* of a cooperative launch, or NULL */
};

/*
 * What one worker thread needs to run blocks: shared memory (below 4 GiB, so that 32-bit shared
 * addresses hold), coroutine frames, thread records; grown on demand, reused between blocks. One
 * worker is used by one thread at a time.
 */
struct tally_cpu_worker;
struct tally_cpu_worker *tally_cpu_worker_create(unsigned index); /* index: tally.sm.id */
void tally_cpu_worker_destroy(struct tally_cpu_worker *worker);

/* tally.sm.count: how many workers a device has, 1 until set. Not while blocks run. */
void tally_cpu_set_worker_count(unsigned count);

/* One line about the last fault of this worker's blocks ("" when there was none): for a log. Owned
 * by the worker, valid until its next block. */
const char *tally_cpu_worker_message(const struct tally_cpu_worker *worker);

/*
 * Runs block `linear` of the launch's own grid (x fastest). For guarded variants asks
 * tally_guard_enter() first; a block that may not run returns TALLY_CPU_OK without running.
 *
 * A fault inside the kernel (SIGSEGV, SIGBUS, SIGFPE, SIGILL) ends the block with TALLY_CPU_ILLEGAL
 * and not the process. For that the first call in a process installs handlers for these signals; in
 * a thread that is not inside a kernel they do what was installed before. An application that
 * installs its own handlers later replaces ours: faults in kernels are then its own to handle.
 */
enum tally_cpu_fault tally_cpu_run_block(struct tally_cpu_worker *worker,
					 const struct tally_cpu_launch *launch, uint64_t linear);

/*
 * A shared object written by the CPU lowering (dlopen, ABI version checked). False with an error.
 * It is closed when no block of it runs any more and nobody has one of its kernels; one that was
 * not opened may be closed too.
 */
struct tally_cpu_image {
	void *handle;
	const struct tally_cpu_module *module;
};
bool tally_cpu_image_open(const char *path, struct tally_cpu_image *image,
			  struct tally_error *error);
void tally_cpu_image_close(struct tally_cpu_image *image);
const struct tally_cpu_kernel *tally_cpu_image_kernel(const struct tally_cpu_image *image,
						      const char *name);
const struct tally_cpu_variable *tally_cpu_image_variable(const struct tally_cpu_image *image,
							  const char *name);

#endif
