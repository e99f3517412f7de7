/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of the CPU device's driver share. */
#ifndef TALLY_TESTS_DRIVER_DRIVER_TESTS_H
#define TALLY_TESTS_DRIVER_DRIVER_TESTS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <cuda.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"

#define OK(call) assert_int_equal(call, CUDA_SUCCESS)

static CUcontext context __attribute__((unused));
static CUmodule module __attribute__((unused));

static void sleep_ms(int ms) __attribute__((unused));
static void sleep_ms(int ms)
{
	nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
}

/* To be called in a loop that waits: sleeps a moment; fails when it took a minute since `start`. */
static void be_patient(uint64_t start) __attribute__((unused));
static void be_patient(uint64_t start)
{
	sleep_ms(1);
	if (tally_now() - start > UINT64_C(60000000000))
		fail_msg("waited for a minute");
}

/* Group set-up: the primary context, and the hand-written kernels. */
static int start_driver(void **state) __attribute__((unused));
static int start_driver(void **state)
{
	(void)state;
	OK(cuInit(0));
	OK(cuDevicePrimaryCtxRetain(&context, 0));
	OK(cuCtxSetCurrent(context));
	OK(cuModuleLoad(&module, TALLY_BUILD_DIR "/tests/driver_kernels.so"));
	return 0;
}

static int stop_driver(void **state) __attribute__((unused));
static int stop_driver(void **state)
{
	(void)state;
	OK(cuDevicePrimaryCtxRelease(0));
	return 0;
}

static CUfunction kernel(const char *name) __attribute__((unused));
static CUfunction kernel(const char *name)
{
	CUfunction function;

	OK(cuModuleGetFunction(&function, module, name));
	return function;
}

/* Device memory, zeroed; host and device address are the same on this device. */
static void *zeroed(size_t bytes) __attribute__((unused));
static void *zeroed(size_t bytes)
{
	CUdeviceptr address;

	OK(cuMemAlloc(&address, bytes));
	OK(cuMemsetD8(address, 0, bytes));
	OK(cuCtxSynchronize());
	return (void *)address;
}

static CUresult launch(CUfunction function, unsigned blocks, CUstream stream, void **params)
	__attribute__((unused));
static CUresult launch(CUfunction function, unsigned blocks, CUstream stream, void **params)
{
	return cuLaunchKernel(function, blocks, 1, 1, 1, 1, 1, 0, stream, params, NULL);
}

/* A kernel that holds one worker until *flag is set; returns once it runs. */
static void hold(CUstream stream, uint32_t *words) __attribute__((unused));
static void hold(CUstream stream, uint32_t *words)
{
	uint32_t *flag = words, *started = words + 1;
	void *params[] = {&flag, &started};

	words[0] = words[1] = 0;
	OK(launch(kernel("wait"), 1, stream, params));
	while (!__atomic_load_n(started, __ATOMIC_ACQUIRE))
		sleep_ms(0);
}

static void let_go(uint32_t *words) __attribute__((unused));
static void let_go(uint32_t *words)
{
	__atomic_store_n(words, 1, __ATOMIC_RELEASE);
}

#endif
