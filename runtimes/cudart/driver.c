/* SPDX-License-Identifier: Apache-2.0 */
/* Opens the driver as NVIDIA's runtime does (one dlopen, one dlsym, all else through
 * cuGetProcAddress), so that a library preloaded before the driver sees every request. */
#include "runtimes/cudart/internal.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

struct cudart_driver cudart_driver;
PFN_cuGetProcAddress_v12000 cudart_get_proc_address;

static pthread_once_t start_once = PTHREAD_ONCE_INIT;
static cudaError_t start_error;
static atomic_bool started, forked;

void cudart_say(bool *once, const char *format, ...)
{
	char line[512];
	va_list arguments;

	if (once && __atomic_exchange_n(once, true, __ATOMIC_RELAXED))
		return;
	va_start(arguments, format);
	vsnprintf(line, sizeof(line), format, arguments);
	va_end(arguments);
	fprintf(stderr, "libcudart.so.13 (Tally): %s\n", line);
}

/* What stands in for a function that the driver lacks. The caller removes its arguments itself in
 * the C calling convention of x86-64 and AArch64, so that one function without any serves all. */
#define CUDART_DRIVER(name, version)                                                               \
	static CUresult missing_##name(void)                                                       \
	{                                                                                          \
		static bool said;                                                                  \
		cudart_say(&said, "the driver has no " #name " (version %d)", version);            \
		return CUDA_ERROR_NOT_SUPPORTED;                                                   \
	}
#include "runtimes/cudart/driver_functions.h"
#undef CUDART_DRIVER

static const struct {
	const char *name;
	int version;
	void **slot;
	void *missing;
} functions[] = {
#define CUDART_DRIVER(name, version)                                                               \
	{#name, version, (void **)&cudart_driver.name, (void *)missing_##name},
#include "runtimes/cudart/driver_functions.h"
#undef CUDART_DRIVER
};

static void resolve(bool available)
{
	for (size_t i = 0; i < sizeof(functions) / sizeof(*functions); i++) {
		CUdriverProcAddressQueryResult status;
		void *address = NULL;

		if (!available ||
		    cudart_get_proc_address(functions[i].name, &address, functions[i].version,
					    CU_GET_PROC_ADDRESS_LEGACY_STREAM,
					    &status) != CUDA_SUCCESS ||
		    !address)
			address = functions[i].missing;
		*functions[i].slot = address;
	}
}

static void before_fork(void)
{
	cudart_registry_fork(true);
}

static void after_fork(void)
{
	cudart_registry_fork(false);
}

/* The driver's threads, queues and locks do not survive in the child. */
static void in_child(void)
{
	cudart_registry_fork(false);
	if (atomic_load(&started))
		atomic_store(&forked, true);
}

__attribute__((constructor)) static void watch_forks(void)
{
	pthread_atfork(before_fork, after_fork, in_child);
}

static cudaError_t open_driver(void)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOW);
	int version = 0;
	CUresult result;

	if (!library) {
		resolve(false);
		return cudaErrorInsufficientDriver;
	}
	cudart_get_proc_address =
		(PFN_cuGetProcAddress_v12000)dlsym(library, "cuGetProcAddress_v2");
	resolve(cudart_get_proc_address != NULL);
	if (!cudart_get_proc_address ||
	    cudart_driver.cuDriverGetVersion(&version) != CUDA_SUCCESS || version < CUDART_VERSION)
		return cudaErrorInsufficientDriver;
	result = cudart_driver.cuInit(0);
	return result == CUDA_SUCCESS ? cudaSuccess : cudart_error(result);
}

static void start(void)
{
	start_error = open_driver();
	/* Registered after the application's own handlers, so called before them. */
	atexit(cudart_registry_close);
	atomic_store(&started, true);
}

cudaError_t cudart_start(void)
{
	if (atomic_load_explicit(&forked, memory_order_relaxed)) {
		static bool said;

		cudart_say(&said, "CUDA was used before fork(); a child has to exec before it uses "
				  "CUDA");
		return cudaErrorInitializationError;
	}
	if (!atomic_load_explicit(&started, memory_order_acquire))
		pthread_once(&start_once, start);
	return start_error;
}

cudaError_t CUDARTAPI cudaDriverGetVersion(int *version)
{
	cudaError_t error = cudart_start();

	CUDART_REQUIRE(version);
	*version = 0;
	if (!cudart_get_proc_address)
		return error == cudaErrorInitializationError ? cudart_fail(error) : cudaSuccess;
	return cudart_result(cudart_driver.cuDriverGetVersion(version));
}

cudaError_t CUDARTAPI cudaRuntimeGetVersion(int *version)
{
	CUDART_REQUIRE(version);
	*version = CUDART_VERSION;
	return cudaSuccess;
}

static cudaError_t entry_point(const char *symbol, void **function, unsigned version,
			       unsigned long long flags,
			       enum cudaDriverEntryPointQueryResult *status, bool own_stream)
{
	CUdriverProcAddressQueryResult answer = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
	CUresult result;

	CUDART_START();
	CUDART_REQUIRE(symbol && function);
	if (flags == cudaEnableDefault && own_stream)
		flags = CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
	*function = NULL;
	result = cudart_get_proc_address(symbol, function, (int)version, flags, &answer);
	if (status) {
		*status = (enum cudaDriverEntryPointQueryResult)answer;
		/* With a status to look at, an unknown name is an answer and no error. */
		if (result == CUDA_ERROR_NOT_FOUND)
			return cudaSuccess;
	}
	return cudart_result(result);
}

cudaError_t CUDARTAPI cudaGetDriverEntryPointByVersion(const char *symbol, void **function,
						       unsigned version, unsigned long long flags,
						       enum cudaDriverEntryPointQueryResult *status)
{
	return entry_point(symbol, function, version, flags, status, false);
}

cudaError_t CUDARTAPI cudaGetDriverEntryPoint(const char *symbol, void **function,
					      unsigned long long flags,
					      enum cudaDriverEntryPointQueryResult *status)
{
	return entry_point(symbol, function, CUDART_VERSION, flags, status, false);
}

/* Callers compiled with a per-thread default stream. */
cudaError_t CUDARTAPI cudaGetDriverEntryPointByVersion_ptsz(const char *, void **, unsigned,
							    unsigned long long,
							    enum cudaDriverEntryPointQueryResult *);
cudaError_t CUDARTAPI cudaGetDriverEntryPoint_ptsz(const char *, void **, unsigned long long,
						   enum cudaDriverEntryPointQueryResult *);

cudaError_t CUDARTAPI cudaGetDriverEntryPointByVersion_ptsz(
	const char *symbol, void **function, unsigned version, unsigned long long flags,
	enum cudaDriverEntryPointQueryResult *status)
{
	return entry_point(symbol, function, version, flags, status, true);
}

cudaError_t CUDARTAPI cudaGetDriverEntryPoint_ptsz(const char *symbol, void **function,
						   unsigned long long flags,
						   enum cudaDriverEntryPointQueryResult *status)
{
	return entry_point(symbol, function, CUDART_VERSION, flags, status, true);
}
