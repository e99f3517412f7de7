/* SPDX-License-Identifier: Apache-2.0 */
/* Which device and context a thread works with: primary contexts, retained when first needed. */
#include "runtimes/cudart/internal.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#define MAX_DEVICES 128

/* Primary contexts that we hold, by ordinal. */
static struct {
	pthread_mutex_t lock;
	CUcontext context[MAX_DEVICES];
	int valid[MAX_DEVICES], valid_count; /* cudaSetValidDevices() */
} held = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Counts resets: a thread whose count is older has to bind anew, since a reset context keeps its
 * handle. */
static atomic_uint resets;

static __thread struct {
	bool chosen;
	int device;
	CUcontext bound; /* what we made current in this thread */
	unsigned resets;
} self;

cudaError_t cudart_primary_context(int device, CUcontext *context)
{
	CUresult result = CUDA_SUCCESS;
	CUdevice handle;

	if (device < 0 || device >= MAX_DEVICES ||
	    cudart_driver.cuDeviceGet(&handle, device) != CUDA_SUCCESS)
		return cudaErrorInvalidDevice;
	pthread_mutex_lock(&held.lock);
	if (!held.context[device])
		result = cudart_driver.cuDevicePrimaryCtxRetain(&held.context[device], handle);
	*context = held.context[device];
	pthread_mutex_unlock(&held.lock);
	return result == CUDA_SUCCESS ? cudaSuccess : cudart_error(result);
}

static int own_device(void)
{
	if (!self.chosen) {
		pthread_mutex_lock(&held.lock);
		self.device = held.valid_count ? held.valid[0] : 0;
		pthread_mutex_unlock(&held.lock);
	}
	return self.device;
}

static cudaError_t bind_primary(void)
{
	unsigned now = atomic_load(&resets);
	CUcontext context;
	cudaError_t error = cudart_primary_context(own_device(), &context);
	CUresult result;

	if (error != cudaSuccess)
		return error;
	result = cudart_driver.cuCtxSetCurrent(context);
	if (result != CUDA_SUCCESS)
		return cudart_error(result);
	self.bound = context;
	self.resets = now;
	return cudaSuccess;
}

cudaError_t cudart_enter(void)
{
	cudaError_t error = cudart_start();
	CUcontext current = NULL;

	if (error != cudaSuccess)
		return error;
	if (cudart_driver.cuCtxGetCurrent(&current) == CUDA_SUCCESS && current &&
	    (current != self.bound ||
	     self.resets == atomic_load_explicit(&resets, memory_order_relaxed)))
		return cudaSuccess;
	return bind_primary();
}

int cudart_device(void)
{
	CUcontext current = NULL;
	CUdevice device;

	/* A CUdevice is the ordinal. */
	if (cudart_driver.cuCtxGetCurrent(&current) == CUDA_SUCCESS && current &&
	    cudart_driver.cuCtxGetDevice(&device) == CUDA_SUCCESS)
		return device;
	return own_device();
}

cudaError_t CUDARTAPI cudaGetDeviceCount(int *count)
{
	CUDART_REQUIRE(count);
	*count = 0;
	CUDART_START();
	return cudart_result(cudart_driver.cuDeviceGetCount(count));
}

cudaError_t CUDARTAPI cudaSetDevice(int device)
{
	bool chosen = self.chosen;
	int before = self.device;
	cudaError_t error;

	CUDART_START();
	self.chosen = true;
	self.device = device;
	error = bind_primary();
	if (error != cudaSuccess) {
		self.chosen = chosen;
		self.device = before;
	}
	return cudart_fail(error);
}

cudaError_t CUDARTAPI cudaGetDevice(int *device)
{
	CUDART_REQUIRE(device);
	CUDART_START();
	*device = cudart_device();
	return cudaSuccess;
}

cudaError_t CUDARTAPI cudaSetValidDevices(int *devices, int count)
{
	int present = 0;

	CUDART_START();
	CUDART_REQUIRE(count >= 0 && count <= MAX_DEVICES && (devices || !count));
	if (cudart_driver.cuDeviceGetCount(&present) != CUDA_SUCCESS)
		present = 0;
	for (int i = 0; i < count; i++)
		if (devices[i] < 0 || devices[i] >= present)
			return cudart_fail(cudaErrorInvalidDevice);
	pthread_mutex_lock(&held.lock);
	held.valid_count = count;
	for (int i = 0; i < count; i++)
		held.valid[i] = devices[i];
	pthread_mutex_unlock(&held.lock);
	return cudaSuccess;
}

cudaError_t CUDARTAPI cudaSetDeviceFlags(unsigned flags)
{
	CUDART_START();
	return cudart_result(
		cudart_driver.cuDevicePrimaryCtxSetFlags((CUdevice)cudart_device(), flags));
}

cudaError_t CUDARTAPI cudaGetDeviceFlags(unsigned *flags)
{
	CUresult result;
	int active;

	CUDART_REQUIRE(flags);
	CUDART_START();
	result =
		cudart_driver.cuDevicePrimaryCtxGetState((CUdevice)cudart_device(), flags, &active);
	/* Mapping host memory can no longer be turned off, and the runtime has always said so. */
	*flags |= cudaDeviceMapHost;
	return cudart_result(result);
}

cudaError_t CUDARTAPI cudaInitDevice(int device, unsigned device_flags, unsigned flags)
{
	CUcontext context;

	CUDART_START();
	CUDART_REQUIRE(!(flags & ~cudaInitDeviceFlagsAreValid));
	if (flags & cudaInitDeviceFlagsAreValid) {
		CUresult result = cudart_driver.cuDevicePrimaryCtxSetFlags(device, device_flags);

		if (result != CUDA_SUCCESS)
			return cudart_result(result);
	}
	return cudart_fail(cudart_primary_context(device, &context));
}

cudaError_t CUDARTAPI cudaDeviceSynchronize(void)
{
	CUDART_ENTER();
	return cudart_result(cudart_driver.cuCtxSynchronize());
}

cudaError_t CUDARTAPI cudaDeviceReset(void)
{
	CUresult result;
	int device;

	CUDART_START();
	device = cudart_device();
	pthread_mutex_lock(&held.lock);
	result = cudart_driver.cuDevicePrimaryCtxReset((CUdevice)device);
	if (device < MAX_DEVICES && held.context[device]) {
		cudart_driver.cuDevicePrimaryCtxRelease((CUdevice)device);
		held.context[device] = NULL;
	}
	atomic_fetch_add(&resets, 1);
	pthread_mutex_unlock(&held.lock);
	if (self.bound) {
		CUcontext current = NULL;

		cudart_driver.cuCtxGetCurrent(&current);
		if (current == self.bound)
			cudart_driver.cuCtxSetCurrent(NULL);
		self.bound = NULL;
	}
	self.chosen = true;
	self.device = device;
	cudart_forget_errors();
	return cudart_result(result);
}

cudaError_t CUDARTAPI cudaDeviceEnablePeerAccess(int peer, unsigned flags)
{
	CUcontext context;

	CUDART_ENTER();
	CUDART_TRY(cudart_primary_context(peer, &context));
	return cudart_result(cudart_driver.cuCtxEnablePeerAccess(context, flags));
}

cudaError_t CUDARTAPI cudaDeviceDisablePeerAccess(int peer)
{
	CUcontext context;

	CUDART_ENTER();
	CUDART_TRY(cudart_primary_context(peer, &context));
	return cudart_result(cudart_driver.cuCtxDisablePeerAccess(context));
}
