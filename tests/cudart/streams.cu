/* SPDX-License-Identifier: Apache-2.0 */
/* Streams, events, host functions, callbacks, priorities; many threads, each with its own stream
 * and last error. Also built with a per-thread default stream. */
#include <pthread.h>
#include <unistd.h>

#include "check.h"

__global__ void step(int *value, int from)
{
	if (*value == from)
		*value = from + 1;
}

__global__ void spin(long long ticks)
{
	long long start = clock64();

	while (clock64() - start < ticks)
		;
}

static void set_flag(void *data)
{
	*(volatile int *)data = 1;
}

static void callback(cudaStream_t stream, cudaError_t status, void *data)
{
	*(volatile int *)data = status == cudaSuccess ? 2 : 3;
}

static void order(void)
{
	int *value, result = -1, least, greatest, priority;
	volatile int flag = 0, called = 0;
	cudaStream_t a, b;
	cudaEvent_t start, middle, end;
	unsigned flags;
	float milliseconds;

	OK(cudaDeviceGetStreamPriorityRange(&least, &greatest));
	CHECK(greatest <= least);
	OK(cudaStreamCreateWithPriority(&a, cudaStreamNonBlocking, greatest));
	OK(cudaStreamGetPriority(a, &priority));
	CHECK(priority == greatest);
	OK(cudaStreamGetFlags(a, &flags));
	CHECK(flags == cudaStreamNonBlocking);
	OK(cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking));
	OK(cudaEventCreate(&start));
	OK(cudaEventCreateWithFlags(&middle, cudaEventDisableTiming));
	OK(cudaEventCreate(&end));
	OK(cudaMalloc(&value, sizeof(int)));
	OK(cudaMemsetAsync(value, 0, sizeof(int), a));
	OK(cudaEventRecord(start, a));
	for (int i = 0; i < 50; i++)
		step<<<1, 1, 0, a>>>(value, i);
	OK(cudaEventRecord(middle, a));
	OK(cudaStreamWaitEvent(b, middle, 0));
	for (int i = 50; i < 100; i++)
		step<<<1, 1, 0, b>>>(value, i);
	OK(cudaMemcpyAsync(&result, value, sizeof(int), cudaMemcpyDeviceToHost, b));
	OK(cudaLaunchHostFunc(b, set_flag, (void *)&flag));
	OK(cudaStreamAddCallback(b, callback, (void *)&called, 0));
	OK(cudaEventRecord(end, b));
	OK(cudaEventSynchronize(end));
	CHECK(result == 100 && flag == 1 && called == 2);
	OK(cudaStreamSynchronize(a));
	OK(cudaStreamQuery(a));
	OK(cudaEventQuery(end));
	OK(cudaEventElapsedTime(&milliseconds, start, end));
	CHECK(milliseconds >= 0);
	EXPECT(cudaErrorInvalidResourceHandle, cudaEventElapsedTime(&milliseconds, start, middle));
	EXPECT(cudaErrorInvalidResourceHandle, cudaGetLastError());

	/* Something that runs is not ready. */
	flag = 0;
	spin<<<1, 1, 0, a>>>(200 * 1000 * 1000);
	EXPECT(cudaErrorNotReady, cudaStreamQuery(a));
	EXPECT(cudaErrorNotReady, cudaGetLastError());
	OK(cudaStreamSynchronize(a));
	OK(cudaEventDestroy(start));
	OK(cudaEventDestroy(middle));
	OK(cudaEventDestroy(end));
	OK(cudaStreamDestroy(a));
	OK(cudaStreamDestroy(b));
	OK(cudaFree(value));
}

/* Each thread makes errors of its own, sees no other's, and works in order on its null stream. */
static void *worker(void *argument)
{
	int id = (int)(size_t)argument, *value, result;

	OK(cudaPeekAtLastError());
	for (int round = 0; round < 20; round++) {
		OK(cudaMalloc(&value, sizeof(int)));
		OK(cudaMemset(value, 0, sizeof(int)));
		for (int i = 0; i < 10; i++)
			step<<<1, 1>>>(value, i);
		OK(cudaMemcpy(&result, value, sizeof(int), cudaMemcpyDeviceToHost));
		CHECK(result == 10);
		OK(cudaFree(value));
		if (id % 2) {
			EXPECT(cudaErrorInvalidDevice, cudaSetDevice(1000));
			EXPECT(cudaErrorInvalidDevice, cudaPeekAtLastError());
			EXPECT(cudaErrorInvalidDevice, cudaGetLastError());
		} else {
			OK(cudaPeekAtLastError());
		}
	}
	return NULL;
}

static void threads(void)
{
	pthread_t thread[8];

	for (size_t i = 0; i < 8; i++)
		CHECK(!pthread_create(&thread[i], NULL, worker, (void *)i));
	for (size_t i = 0; i < 8; i++)
		CHECK(!pthread_join(thread[i], NULL));
}

int main(void)
{
	order();
	threads();
	OK(cudaDeviceSynchronize());
	puts("ok");
	return 0;
}
