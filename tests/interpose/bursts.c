/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that works in bursts and waits for each, as a server does: four fills of memory, two
 * sizes in turn, with pauses. Runs until its standard input ends.
 */
#include <cuda.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <unistd.h>

#define CHECK(call)                                                                                \
	do {                                                                                       \
		CUresult result = (call);                                                          \
		if (result) {                                                                      \
			fprintf(stderr, "bursts: %s: %d\n", #call, result);                        \
			return 1;                                                                  \
		}                                                                                  \
	} while (0)

#define WORDS (1 << 20)

int main(void)
{
	struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
	CUdevice device;
	CUcontext context;
	CUdeviceptr memory;
	CUstream stream;

	CHECK(cuInit(0));
	CHECK(cuDeviceGet(&device, 0));
	CHECK(cuDevicePrimaryCtxRetain(&context, device));
	CHECK(cuCtxSetCurrent(context));
	CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	CHECK(cuMemAlloc(&memory, WORDS * 4));
	for (unsigned round = 0; poll(&input, 1, 0) <= 0; round++) {
		for (unsigned i = 0; i < 4; i++)
			CHECK(cuMemsetD32Async(memory, i, WORDS >> round % 2, stream));
		CHECK(cuStreamSynchronize(stream));
		usleep(500);
	}
	CHECK(cuMemFree(memory));
	return 0;
}
