/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the runtime library share: the driver's functions, the calling thread's device
 * and last error, and the registry of kernels and variables. Functions named cudart_* are internal.
 */
#ifndef TALLY_RUNTIMES_CUDART_INTERNAL_H
#define TALLY_RUNTIMES_CUDART_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>

#include <cudaProfilerTypedefs.h>
#include <cudaTypedefs.h>
#include <cuda_runtime_api.h>

/* The driver's functions, under their own names: `cudart_driver.cuMemAlloc(...)`. Filled once by
 * cudart_start(); a function that the driver lacks answers CUDA_ERROR_NOT_SUPPORTED and names
 * itself once on stderr. */
struct cudart_driver {
#define CUDART_DRIVER(name, version) PFN_##name##_v##version name;
#include "runtimes/cudart/driver_functions.h"
#undef CUDART_DRIVER
};
extern struct cudart_driver cudart_driver;
extern PFN_cuGetProcAddress_v12000 cudart_get_proc_address;

/* Opens the driver and calls cuInit, once per process; the same answer ever after. In a child
 * forked after the start it answers cudaErrorInitializationError. Any thread. */
cudaError_t cudart_start(void);

/* The same, and sees to it that the calling thread has a current context: the one that the
 * application made current through the driver API, else the primary context of the thread's device.
 */
cudaError_t cudart_enter(void);

/* The ordinal that the calling thread uses: of its current context, else of cudaSetDevice(). */
int cudart_device(void);

/* The primary context of a device, retained. */
cudaError_t cudart_primary_context(int device, CUcontext *context);

/* Remember an error as the calling thread's last one and pass it on. */
cudaError_t cudart_fail(cudaError_t error);
cudaError_t cudart_result(CUresult result);

/* The translation alone: the numbers are the same where both sides have the error. */
cudaError_t cudart_error(CUresult result);

/* The last error of the calling thread, which stays when it came from a broken context. */
void cudart_forget_errors(void);

/* One line on stderr, `libcudart.so.13 (Tally): ...`; at most once where `once` is given. */
void cudart_say(bool *once, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* cudaErrorNotSupported as last error; names the function once. */
cudaError_t cudart_unsupported(const char *function, bool *once);

/* A stream of the `_ptsz` and `_ptds` functions: their null stream is the thread's own. */
static inline cudaStream_t cudart_own_stream(cudaStream_t stream)
{
	return stream ? stream : cudaStreamPerThread;
}

/* The kernel behind a host function's address or behind a cudaKernel_t; loads its image on first
 * use. */
cudaError_t cudart_kernel(const void *symbol, CUkernel *kernel);
/* The same as a function of the current context, for calls that want one. */
cudaError_t cudart_function(const void *symbol, CUfunction *function);
/* Makes a kernel's handle known to cudart_kernel(), until its library is forgotten. */
cudaError_t cudart_remember_kernel(CUkernel kernel, CUlibrary library);
void cudart_forget_library(CUlibrary library);
/* Address and size, on the current device, of the variable behind a host symbol. */
cudaError_t cudart_variable(const void *symbol, CUdeviceptr *address, size_t *bytes);

/* The host symbol of a kernel that the driver calls `function` or `kernel`; the handle itself when
 * there is none. */
const void *cudart_symbol(CUfunction function, CUkernel kernel);
/* The address of `bytes` bytes at `offset` in a variable. */
cudaError_t cudart_place_in_symbol(const void *symbol, size_t bytes, size_t offset, void **address);
/* A copy as the driver takes it. */
cudaError_t cudart_box_params(const struct cudaMemcpy3DParms *box, CUDA_MEMCPY3D *params);

/* After the process began to exit nothing may be unloaded: the driver may be gone. */
void cudart_registry_close(void);

/* Keeps the registry whole over fork(). */
void cudart_registry_fork(bool before);

/* In an exported function that needs a context: leave with its error when there is none. */
#define CUDART_ENTER()                                                                             \
	do {                                                                                       \
		cudaError_t enter_ = cudart_enter();                                               \
		if (enter_ != cudaSuccess)                                                         \
			return cudart_fail(enter_);                                                \
	} while (0)

/* The same where the driver alone is enough. */
#define CUDART_START()                                                                             \
	do {                                                                                       \
		cudaError_t start_ = cudart_start();                                               \
		if (start_ != cudaSuccess)                                                         \
			return cudart_fail(start_);                                                \
	} while (0)

/*
 * The variants of a function for callers compiled with a per-thread default stream. `_ptsz`: the
 * same call with the thread's own stream for null; the parameter has to be named `stream`. `_ptds`:
 * a synchronous call, made of the asynchronous one in the thread's own stream and a wait.
 */
#define CUDART_PTSZ(name, params, arguments)                                                       \
	cudaError_t CUDARTAPI name##_ptsz params;                                                  \
	cudaError_t CUDARTAPI name##_ptsz params                                                   \
	{                                                                                          \
		stream = cudart_own_stream(stream);                                                \
		return name arguments;                                                             \
	}

#define CUDART_PTDS(name, params, asynchronous)                                                    \
	cudaError_t CUDARTAPI name##_ptds params;                                                  \
	cudaError_t CUDARTAPI name##_ptds params                                                   \
	{                                                                                          \
		cudaError_t error_ = asynchronous;                                                 \
		return error_ == cudaSuccess ? cudaStreamSynchronize(cudaStreamPerThread)          \
					     : error_;                                             \
	}

/* Leave with the error of a call of ours when it has one. */
#define CUDART_TRY(call)                                                                           \
	do {                                                                                       \
		cudaError_t try_ = (call);                                                         \
		if (try_ != cudaSuccess)                                                           \
			return cudart_fail(try_);                                                  \
	} while (0)

#define CUDART_REQUIRE(condition)                                                                  \
	do {                                                                                       \
		if (!(condition))                                                                  \
			return cudart_fail(cudaErrorInvalidValue);                                 \
	} while (0)

#endif
