/* SPDX-License-Identifier: Apache-2.0 */
/* What the benches that use the CPU device through the driver API share. */
#ifndef TALLY_BENCH_DEVICE_H
#define TALLY_BENCH_DEVICE_H

#include <cuda.h>

#include "bench/report.h"

#define OK(call)                                                                                   \
	do {                                                                                       \
		CUresult result_ = (call);                                                         \
		if (result_)                                                                       \
			bench_fail("%s: error %d", #call, result_);                                \
	} while (0)

/* A kernel that does nothing. */
#define BENCH_EMPTY_PTX                                                                            \
	".version 7.0\n.target sm_70\n.address_size 64\n"                                          \
	".visible .entry empty()\n{\n\tret;\n}\n"

/* The primary context of device 0 becomes the thread's. */
static inline void bench_device(void)
{
	CUdevice device;
	CUcontext context;

	OK(cuInit(0));
	OK(cuDeviceGet(&device, 0));
	OK(cuDevicePrimaryCtxRetain(&context, device));
	OK(cuCtxSetCurrent(context));
}

static inline CUfunction bench_function(const void *image, const char *name)
{
	CUmodule module;
	CUfunction function;

	OK(cuModuleLoadData(&module, image));
	OK(cuModuleGetFunction(&function, module, name));
	return function;
}

/* The ways in which a program can meet libtally.so: environments for struct bench_run.
 * $BENCH_PRELOAD is the library; bench/run.sh sets it, and starts the tallyd that $TALLY_SOCKET
 * names. */
enum {
	BENCH_NO_DAEMON = 4,
	BENCH_WAYS,
	/* And with a log entry for each launch; while `tally trace` records: see bench_traced(). */
	BENCH_GUARDED = BENCH_WAYS,
	BENCH_TRACED_HIGH,
	BENCH_TRACED,
	BENCH_ALL_WAYS
};
extern const char *const bench_way_names[BENCH_ALL_WAYS];
const char *const *bench_way_environment(int way);

/* The arguments of the `way`: those of the program, behind `tally trace` (which lies beside the
 * library) where the way is traced. Until the next call. */
char **bench_way_arguments(int way, char **program);

#endif
