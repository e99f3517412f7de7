/* SPDX-License-Identifier: Apache-2.0 */
/* Two devices: variables, streams and memory of each, copies between them, a thread for each, a
 * process that uses both at once. */
#include <pthread.h>

#include "check.h"

enum { COUNT = 4096, ROUNDS = 50 };

__device__ unsigned launches;
__constant__ unsigned factor;

__global__ void step(unsigned *data)
{
	unsigned i = blockIdx.x * blockDim.x + threadIdx.x;

	data[i] = data[i] * factor + 1;
	if (!i)
		launches++;
}

__global__ void add_from(unsigned *to, const unsigned *from)
{
	unsigned i = blockIdx.x * blockDim.x + threadIdx.x;

	to[i] += from[i];
}

static unsigned expected(unsigned times_by)
{
	unsigned value = 0;

	for (int i = 0; i < ROUNDS; i++)
		value = value * times_by + 1;
	return value;
}

/* Each device does its own chain, with its own constant. */
static void *one_device(void *argument)
{
	const int device = (int)(size_t)argument;
	const unsigned mine = 3 + 2 * (unsigned)device;
	unsigned *data, host[COUNT], count;
	cudaStream_t stream;
	int current;

	OK(cudaSetDevice(device));
	OK(cudaGetDevice(&current));
	CHECK(current == device);
	OK(cudaMemcpyToSymbol(factor, &mine, sizeof(mine)));
	OK(cudaStreamCreate(&stream));
	OK(cudaMalloc(&data, sizeof(host)));
	OK(cudaMemsetAsync(data, 0, sizeof(host), stream));
	for (int i = 0; i < ROUNDS; i++)
		step<<<COUNT / 128, 128, 0, stream>>>(data);
	OK(cudaGetLastError());
	OK(cudaMemcpyAsync(host, data, sizeof(host), cudaMemcpyDeviceToHost, stream));
	OK(cudaStreamSynchronize(stream));
	for (int i = 0; i < COUNT; i++)
		CHECK(host[i] == expected(mine));
	OK(cudaMemcpyFromSymbol(&count, launches, sizeof(count)));
	CHECK(count == ROUNDS);
	OK(cudaFree(data));
	OK(cudaStreamDestroy(stream));
	return NULL;
}

static void a_thread_for_each(void)
{
	pthread_t threads[2];

	for (size_t i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, one_device, (void *)i);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
}

/* One thread goes from one to the other; each waits for the other by events. */
static void back_and_forth(void)
{
	unsigned *data[2], host[COUNT];
	cudaStream_t streams[2];
	cudaEvent_t events[2];
	int can;

	for (int i = 0; i < 2; i++) {
		OK(cudaSetDevice(i));
		OK(cudaDeviceCanAccessPeer(&can, i, !i));
		CHECK(can == 1);
		OK(cudaDeviceEnablePeerAccess(!i, 0));
		EXPECT(cudaErrorPeerAccessAlreadyEnabled, cudaDeviceEnablePeerAccess(!i, 0));
		cudaGetLastError();
		OK(cudaMalloc(&data[i], sizeof(host)));
		OK(cudaMemset(data[i], i + 1, sizeof(host)));
		OK(cudaStreamCreate(&streams[i]));
		OK(cudaEventCreateWithFlags(&events[i], cudaEventDisableTiming));
		OK(cudaDeviceSynchronize());
	}
	unsigned a = 0x01010101, b = 0x02020202;
	for (int i = 0; i < 20; i++) {
		/* a += b on device 0, then b += a on device 1. */
		OK(cudaSetDevice(0));
		OK(cudaStreamWaitEvent(streams[0], events[1], 0));
		add_from<<<COUNT / 128, 128, 0, streams[0]>>>(data[0], data[1]);
		OK(cudaEventRecord(events[0], streams[0]));
		OK(cudaSetDevice(1));
		OK(cudaStreamWaitEvent(streams[1], events[0], 0));
		add_from<<<COUNT / 128, 128, 0, streams[1]>>>(data[1], data[0]);
		OK(cudaEventRecord(events[1], streams[1]));
		a += b;
		b += a;
	}
	OK(cudaStreamSynchronize(streams[1]));
	OK(cudaMemcpy(host, data[1], sizeof(host), cudaMemcpyDeviceToHost));
	for (int i = 0; i < COUNT; i++)
		CHECK(host[i] == b);
	OK(cudaMemcpyPeer(data[1], 1, data[0], 0, sizeof(host)));
	OK(cudaMemcpy(host, data[1], sizeof(host), cudaMemcpyDefault));
	CHECK(host[COUNT - 1] == a);

	cudaPointerAttributes attributes;
	OK(cudaPointerGetAttributes(&attributes, data[1]));
	CHECK(attributes.device == 1 && attributes.type == cudaMemoryTypeDevice);
	for (int i = 0; i < 2; i++) {
		OK(cudaSetDevice(i));
		OK(cudaDeviceDisablePeerAccess(!i));
		OK(cudaFree(data[i]));
		OK(cudaStreamDestroy(streams[i]));
		OK(cudaEventDestroy(events[i]));
	}
}

int main(void)
{
	int count;
	struct cudaDeviceProp a, b;

	setenv("TALLY_CPU_DEVICES", "2", 1); /* before the first call */
	OK(cudaGetDeviceCount(&count));
	CHECK(count == 2);
	OK(cudaGetDeviceProperties(&a, 0));
	OK(cudaGetDeviceProperties(&b, 1));
	CHECK(memcmp(&a.uuid, &b.uuid, sizeof(a.uuid)) && a.pciBusID != b.pciBusID);
	EXPECT(cudaErrorInvalidDevice, cudaSetDevice(2));
	cudaGetLastError();
	a_thread_for_each();
	back_and_forth();
	puts("ok");
	return 0;
}
