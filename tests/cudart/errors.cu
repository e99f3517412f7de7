/* SPDX-License-Identifier: Apache-2.0 */
/* What goes wrong and how it is told: launches that cannot be, bad arguments, broken kernels, a
 * reset, a fork, functions that are not there. */
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

__global__ void nothing(void)
{
}

__global__ void trap(void)
{
	if (threadIdx.x == 3)
		asm volatile("trap;");
}

static void launches(void)
{
	nothing<<<0, 32>>>();
	EXPECT(cudaErrorInvalidConfiguration, cudaPeekAtLastError());
	EXPECT(cudaErrorInvalidConfiguration, cudaGetLastError());
	OK(cudaGetLastError());
	nothing<<<1, 4096>>>();
	EXPECT(cudaErrorInvalidConfiguration, cudaGetLastError());
	/* Also where Tally would launch it in slices of one dimension. */
	nothing<<<dim3(1, 65536), 32>>>();
	EXPECT(cudaErrorInvalidConfiguration, cudaGetLastError());
	nothing<<<dim3(1, 1, 65536), 32>>>();
	EXPECT(cudaErrorInvalidConfiguration, cudaGetLastError());
	nothing<<<1, 32, 1 << 30>>>();
	CHECK(cudaGetLastError() != cudaSuccess);
	EXPECT(cudaErrorInvalidDeviceFunction,
	       cudaLaunchKernel((const void *)launches, dim3(1), dim3(1), NULL, 0, 0));
	EXPECT(cudaErrorInvalidDeviceFunction, cudaGetLastError());
	nothing<<<1, 32>>>();
	OK(cudaGetLastError());
	OK(cudaDeviceSynchronize());
}

static void arguments(void)
{
	char host[16];
	int count;

	OK(cudaGetDeviceCount(&count));
	CHECK(count >= 1);
	EXPECT(cudaErrorInvalidDevice, cudaSetDevice(count));
	EXPECT(cudaErrorInvalidDevice, cudaSetDevice(-1));
	EXPECT(cudaErrorInvalidMemcpyDirection, cudaMemcpy(host, host, 4, (enum cudaMemcpyKind)77));
	EXPECT(cudaErrorInvalidValue, cudaMalloc((void **)NULL, 4));
	CHECK(cudaFree(host) != cudaSuccess);
	CHECK(cudaFreeHost(host) != cudaSuccess);
	EXPECT(cudaErrorInvalidValue, cudaGetDevice(NULL));
	cudaGetLastError();
}

static void properties(void)
{
	cudaDeviceProp properties;
	int device, value, driver, runtime;
	char bus[32];
	size_t limit;

	OK(cudaGetDevice(&device));
	CHECK(device == 0);
	OK(cudaGetDeviceProperties(&properties, 0));
	CHECK(properties.name[0] && properties.warpSize == 32 && properties.major >= 7);
	CHECK(properties.maxThreadsPerBlock == 1024 && properties.maxGridSize[0] >= 65535);
	CHECK(properties.multiProcessorCount >= 1 && properties.totalGlobalMem > 1 << 20);
	OK(cudaDeviceGetAttribute(&value, cudaDevAttrMultiProcessorCount, 0));
	CHECK(value == properties.multiProcessorCount);
	EXPECT(cudaErrorInvalidDevice, cudaGetDeviceProperties(&properties, 99));
	OK(cudaChooseDevice(&value, &properties));
	CHECK(value == 0);
	OK(cudaDeviceGetPCIBusId(bus, sizeof(bus), 0));
	OK(cudaDeviceGetByPCIBusId(&value, bus));
	CHECK(value == 0);
	OK(cudaDriverGetVersion(&driver));
	OK(cudaRuntimeGetVersion(&runtime));
	CHECK(runtime == CUDART_VERSION && driver >= runtime);
	OK(cudaDeviceGetLimit(&limit, cudaLimitPrintfFifoSize));
	unsigned flags;
	OK(cudaGetDeviceFlags(&flags));

	void *function = NULL;
	cudaDriverEntryPointQueryResult found;
	OK(cudaGetDriverEntryPointByVersion("cuMemAlloc", &function, 3020, cudaEnableDefault,
					    &found));
	CHECK(function && found == cudaDriverEntryPointSuccess);
	OK(cudaGetDriverEntryPointByVersion("cuNoSuchThing", &function, 13000, cudaEnableDefault,
					    &found));
	CHECK(!function && found == cudaDriverEntryPointSymbolNotFound);
	cudaGetLastError();
}

static void missing(void)
{
	cudaArray_t array;
	cudaGraphConditionalHandle handle;
	cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();

	CHECK(format.x == 32 && format.f == cudaChannelFormatKindFloat);
	EXPECT(cudaErrorNotSupported, cudaGraphConditionalHandleCreate(&handle, NULL, 0, 0));
	EXPECT(cudaErrorNotSupported, cudaGraphConditionalHandleCreate(&handle, NULL, 0, 0));
	EXPECT(cudaErrorNotSupported, cudaMallocArray(&array, &format, 4, 4));
	EXPECT(cudaErrorNotSupported, cudaGetLastError());
}

/* The driver's threads do not exist in the child. */
static void child(void)
{
	int status;
	pid_t pid = fork();

	if (!pid) {
		int count, *memory;

		alarm(10);
		if (cudaGetDeviceCount(&count) != cudaErrorInitializationError ||
		    cudaMalloc(&memory, 4) != cudaErrorInitializationError ||
		    cudaGetLastError() != cudaErrorInitializationError)
			_exit(1);
		nothing<<<1, 1>>>();
		_exit(cudaGetLastError() == cudaErrorInitializationError ? 0 : 2);
	}
	CHECK(pid > 0 && waitpid(pid, &status, 0) == pid);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	OK(cudaDeviceSynchronize());
}

/* A broken context says so at every call until it is reset; then all is well again. */
static void broken(void)
{
	int *memory;
	cudaError_t error;

	/* The launch may tell of it already, if the kernel was that fast. */
	trap<<<1, 32>>>();
	error = cudaGetLastError();
	if (error == cudaSuccess)
		error = cudaDeviceSynchronize();
	CHECK(error == cudaErrorLaunchFailure || error == cudaErrorIllegalInstruction);
	CHECK(cudaMalloc(&memory, 4) == error);
	EXPECT(error, cudaGetLastError());
	EXPECT(error, cudaGetLastError());
	OK(cudaDeviceReset());
	OK(cudaGetLastError());
	OK(cudaMalloc(&memory, 4));
	nothing<<<1, 32>>>();
	OK(cudaGetLastError());
	OK(cudaDeviceSynchronize());
	OK(cudaFree(memory));
}

int main(void)
{
	launches();
	arguments();
	properties();
	missing();
	child();
	broken();
	puts("ok");
	return 0;
}
