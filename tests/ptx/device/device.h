/* SPDX-License-Identifier: Apache-2.0 */
/* One kernel after the other through CUDA's driver: $TALLY_TEST_DRIVER or libcuda.so.1. */
#ifndef TALLY_TESTS_PTX_DEVICE_DEVICE_H
#define TALLY_TESTS_PTX_DEVICE_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The compute capability that instructions may need (of the CPU device: any), and the target. */
unsigned device_capability(void);
const char *device_target(void);

/* A module of the PTX `text`; NULL when the driver does not take it. */
void *device_load(const char *text);
void device_unload(void *module);

/* Runs a kernel of it with `threads` threads and the parameters (in, out); `out` is zero before.
 * False when the driver fails. */
bool device_launch(void *module, const char *kernel, unsigned threads, const void *in,
		   size_t in_bytes, void *out, size_t out_bytes);

/* Runs `kernel` of the PTX `text` with `threads` threads and the parameters (in, out), buffers of
 * `bytes`; `out` is zero before. What fails is printed, and counted as wrong. */
void device_run(const char *text, const char *kernel, unsigned threads, const uint64_t *in,
		uint64_t *out, size_t bytes);

#endif
