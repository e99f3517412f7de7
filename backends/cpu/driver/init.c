/* SPDX-License-Identifier: Apache-2.0 */
/* The driver's start, its errors' names, its log, and finding functions by name. */
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/cpu/driver/driver.h"
#include "backends/cpu/driver/tally_cpu.h"

static atomic_bool initialized;

bool driver_initialized(void)
{
	return atomic_load_explicit(&initialized, memory_order_acquire);
}

static void start(void)
{
	devices_start();
	contexts_start();
	pools_start();
	engine_start();
	atomic_store_explicit(&initialized, true, memory_order_release);
}

CUresult cuInit(unsigned int Flags)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	if (Flags)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_once(&once, start);
	return CUDA_SUCCESS;
}

CUresult cuDriverGetVersion(int *driverVersion)
{
	if (!driverVersion)
		return CUDA_ERROR_INVALID_VALUE;
	*driverVersion = DRIVER_VERSION;
	return CUDA_SUCCESS;
}

const char *tallyCpuTarget(void)
{
	return "x86-64";
}

void tallyCpuBackground(void)
{
	atomic_store(&engine.background, true);
	engine_lock();
	engine_want_worker();
	engine_unlock();
}

/* $TALLY_LOG is set and not "0". */
static bool driver_logging(void)
{
	const char *log = getenv("TALLY_LOG");

	return log && *log && strcmp(log, "0") != 0;
}

/* One write for one line, so that lines of several threads and processes stay whole. */
static void say(const char *format, va_list arguments)
{
	char line[1600] = "tally: ";

	vsnprintf(line + 7, sizeof line - 8, format, arguments);
	fprintf(stderr, "%s\n", line);
}

void driver_complain(atomic_bool *said, const char *format, ...)
{
	va_list arguments;

	if (said && atomic_exchange(said, true))
		return;
	va_start(arguments, format);
	say(format, arguments);
	va_end(arguments);
}

CUresult driver_unsupported(const char *name, atomic_bool *said)
{
	if (driver_logging())
		driver_complain(said, "the CPU device does not do %s: CUDA_ERROR_NOT_SUPPORTED",
				name);
	return CUDA_ERROR_NOT_SUPPORTED;
}

/* Better than the words that the names are made of; those that people meet. */
static const struct {
	CUresult code;
	const char *text;
} texts[] = {
	{CUDA_SUCCESS, "no error"},
	{CUDA_ERROR_INVALID_VALUE, "invalid argument"},
	{CUDA_ERROR_NOT_INITIALIZED, "initialization error"},
	{CUDA_ERROR_DEINITIALIZED, "driver shutting down"},
	{CUDA_ERROR_NO_DEVICE, "no CUDA-capable device is detected"},
	{CUDA_ERROR_INVALID_DEVICE, "invalid device ordinal"},
	{CUDA_ERROR_INVALID_IMAGE, "device kernel image is invalid"},
	{CUDA_ERROR_INVALID_CONTEXT, "invalid device context"},
	{CUDA_ERROR_NO_BINARY_FOR_GPU, "no kernel image is available for execution on the device"},
	{CUDA_ERROR_INVALID_PTX, "a PTX JIT compilation failed"},
	{CUDA_ERROR_INVALID_HANDLE, "invalid resource handle"},
	{CUDA_ERROR_NOT_FOUND, "named symbol not found"},
	{CUDA_ERROR_NOT_READY, "device not ready"},
	{CUDA_ERROR_ILLEGAL_ADDRESS, "an illegal memory access was encountered"},
	{CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, "too many resources requested for launch"},
	{CUDA_ERROR_LAUNCH_TIMEOUT, "the launch timed out and was terminated"},
	{CUDA_ERROR_CONTEXT_IS_DESTROYED, "context is destroyed"},
	{CUDA_ERROR_ASSERT, "device-side assert triggered"},
	{CUDA_ERROR_LAUNCH_FAILED, "unspecified launch failure"},
	{CUDA_ERROR_NOT_SUPPORTED, "operation not supported"},
	{CUDA_ERROR_UNKNOWN, "unknown error"},
};

static const struct driver_error *find_error(CUresult code)
{
	for (const struct driver_error *e = driver_errors; e->name; e++)
		if (e->code == code)
			return e;
	return NULL;
}

CUresult cuGetErrorName(CUresult error, const char **pStr)
{
	const struct driver_error *e = find_error(error);

	if (!pStr)
		return CUDA_ERROR_INVALID_VALUE;
	*pStr = e ? e->name : NULL;
	return e ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGetErrorString(CUresult error, const char **pStr)
{
	const struct driver_error *e = find_error(error);

	if (!pStr)
		return CUDA_ERROR_INVALID_VALUE;
	*pStr = e ? e->text : NULL;
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
		if (texts[i].code == error)
			*pStr = texts[i].text;
	return e ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* The newest version that is not newer than asked for; a per-thread one wins when it may. */
static const struct driver_entry *find_entry(const char *name, int version, bool per_thread,
					     bool *known)
{
	const struct driver_entry *best = NULL;

	*known = false;
	for (const struct driver_entry *e = driver_entries; e->name; e++) {
		if (strcmp(e->name, name) || (e->per_thread && !per_thread))
			continue;
		*known = true;
		if (e->version > version)
			continue;
		if (!best || e->per_thread > best->per_thread ||
		    (e->per_thread == best->per_thread && e->version > best->version))
			best = e;
	}
	return best;
}

/* May come before cuInit. What the CPU device does not do is found, too: it answers by itself. */
CUresult cuGetProcAddress_v2(const char *symbol, void **pfn, int cudaVersion, cuuint64_t flags,
			     CUdriverProcAddressQueryResult *symbolStatus)
{
	const cuuint64_t all =
		CU_GET_PROC_ADDRESS_LEGACY_STREAM | CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
	bool known;

	if (!symbol || !pfn || flags & ~all || flags == all)
		return CUDA_ERROR_INVALID_VALUE;
	*pfn = NULL;
	if (cudaVersion > DRIVER_VERSION + 999)
		return CUDA_ERROR_INVALID_VALUE;
	const struct driver_entry *entry = find_entry(
		symbol, cudaVersion, flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, &known);
	if (entry)
		memcpy(pfn, &entry->function, sizeof *pfn);
	if (symbolStatus)
		*symbolStatus = entry	? CU_GET_PROC_ADDRESS_SUCCESS
				: known ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT
					: CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
	return entry || symbolStatus ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

CUresult cuGetProcAddress(const char *symbol, void **pfn, int cudaVersion, cuuint64_t flags)
{
	return cuGetProcAddress_v2(symbol, pfn, cudaVersion, flags, NULL);
}

/* Undocumented tables that NVIDIA's own runtime lives on. */
CUresult cuGetExportTable(const void **ppExportTable, const CUuuid *pExportTableId)
{
	static atomic_bool said;

	if (ppExportTable)
		*ppExportTable = NULL;
	driver_complain(&said, "NVIDIA's CUDA runtime cannot run on the CPU device: build the "
			       "program with -cudart shared, so that Tally's libcudart.so takes "
			       "its place");
	return CUDA_ERROR_NOT_SUPPORTED;
}

/* Profilers have nothing to switch on here. */
CUresult cuProfilerInitialize(const char *configFile, const char *outputFile,
			      CUoutput_mode outputMode)
{
	return CUDA_ERROR_NOT_SUPPORTED;
}

CUresult cuProfilerStart(void)
{
	return CUDA_SUCCESS;
}

CUresult cuProfilerStop(void)
{
	return CUDA_SUCCESS;
}
