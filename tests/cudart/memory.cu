/* SPDX-License-Identifier: Apache-2.0 */
/* Allocation, copies and fills of one, two and three dimensions, managed and pinned memory, pools.
 */
#include "check.h"

__global__ void add_one(int *data, int count)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < count)
		data[i]++;
}

static void linear(void)
{
	enum { COUNT = 1000 };
	int host[COUNT], *device, *other;

	for (int i = 0; i < COUNT; i++)
		host[i] = i;
	OK(cudaMalloc(&device, sizeof(host)));
	OK(cudaMalloc(&other, sizeof(host)));
	OK(cudaMemcpy(device, host, sizeof(host), cudaMemcpyHostToDevice));
	add_one<<<4, 256>>>(device, COUNT);
	OK(cudaGetLastError());
	OK(cudaMemcpy(other, device, sizeof(host), cudaMemcpyDeviceToDevice));
	memset(host, 0, sizeof(host));
	OK(cudaMemcpy(host, other, sizeof(host), cudaMemcpyDeviceToHost));
	for (int i = 0; i < COUNT; i++)
		CHECK(host[i] == i + 1);
	OK(cudaMemset(device, 0x7f, sizeof(host)));
	OK(cudaMemcpy(host, device, sizeof(host), cudaMemcpyDefault));
	for (int i = 0; i < COUNT; i++)
		CHECK(host[i] == 0x7f7f7f7f);
	OK(cudaMemcpy(host, device, 0, cudaMemcpyDeviceToHost));
	OK(cudaFree(device));
	OK(cudaFree(other));
	OK(cudaFree(NULL));

	void *nothing = &host;
	OK(cudaMalloc(&nothing, 0));
	CHECK(nothing == NULL);
}

static void pitched(void)
{
	enum { WIDTH = 37, HEIGHT = 11 };
	unsigned char host[HEIGHT][WIDTH], back[HEIGHT][WIDTH + 3];
	unsigned char *device;
	size_t pitch;

	for (int y = 0; y < HEIGHT; y++)
		for (int x = 0; x < WIDTH; x++)
			host[y][x] = y * 16 + x;
	OK(cudaMallocPitch(&device, &pitch, WIDTH, HEIGHT));
	CHECK(pitch >= WIDTH);
	OK(cudaMemset2D(device, pitch, 0xee, WIDTH, HEIGHT));
	OK(cudaMemcpy2D(device, pitch, host, WIDTH, WIDTH, HEIGHT - 1, cudaMemcpyHostToDevice));
	memset(back, 0, sizeof(back));
	OK(cudaMemcpy2D(back, sizeof(back[0]), device, pitch, WIDTH, HEIGHT,
			cudaMemcpyDeviceToHost));
	for (int y = 0; y < HEIGHT; y++)
		for (int x = 0; x < WIDTH + 3; x++)
			CHECK(back[y][x] == (x >= WIDTH ? 0 : y == HEIGHT - 1 ? 0xee : host[y][x]));
	EXPECT(cudaErrorInvalidPitchValue,
	       cudaMemcpy2D(device, pitch, host, WIDTH - 1, WIDTH, HEIGHT, cudaMemcpyHostToDevice));
	OK(cudaFree(device));
}

static void boxes(void)
{
	enum { X = 20, Y = 5, Z = 4 };
	unsigned char host[Z][Y][X], back[Z][Y][X];
	cudaPitchedPtr device;
	cudaMemcpy3DParms to = {}, from = {};

	for (int i = 0; i < X * Y * Z; i++)
		(&host[0][0][0])[i] = i;
	memset(back, 0, sizeof(back));
	OK(cudaMalloc3D(&device, make_cudaExtent(X, Y, Z)));
	OK(cudaMemset3D(device, 0x11, make_cudaExtent(X, Y, Z)));
	to.srcPtr = make_cudaPitchedPtr(host, X, X, Y);
	to.dstPtr = device;
	to.srcPos = to.dstPos = make_cudaPos(1, 1, 1);
	to.extent = make_cudaExtent(X - 2, Y - 1, Z - 1);
	to.kind = cudaMemcpyHostToDevice;
	OK(cudaMemcpy3D(&to));
	from.srcPtr = device;
	from.dstPtr = make_cudaPitchedPtr(back, X, X, Y);
	from.extent = make_cudaExtent(X, Y, Z);
	from.kind = cudaMemcpyDeviceToHost;
	OK(cudaMemcpy3D(&from));
	for (int z = 0; z < Z; z++)
		for (int y = 0; y < Y; y++)
			for (int x = 0; x < X; x++)
				CHECK(back[z][y][x] ==
				      (z && y && x && x < X - 1 ? host[z][y][x] : 0x11));
	OK(cudaFree(device.ptr));
}

static void pinned_and_managed(void)
{
	int *pinned, *mapped, *managed, *plain = (int *)malloc(4096);
	cudaPointerAttributes attributes;
	unsigned flags;

	OK(cudaMallocHost(&pinned, 4096));
	OK(cudaPointerGetAttributes(&attributes, pinned));
	CHECK(attributes.type == cudaMemoryTypeHost && attributes.hostPointer == pinned);
	OK(cudaHostAlloc(&mapped, 4096, cudaHostAllocMapped));
	OK(cudaHostGetFlags(&flags, mapped));
	CHECK(flags & cudaHostAllocMapped);
	mapped[3] = 41;
	int *view;
	OK(cudaHostGetDevicePointer(&view, mapped, 0));
	add_one<<<1, 32>>>(view, 32);
	OK(cudaDeviceSynchronize());
	CHECK(mapped[3] == 42);

	OK(cudaMallocManaged(&managed, 4096));
	managed[5] = 1;
	add_one<<<1, 32>>>(managed, 32);
	OK(cudaDeviceSynchronize());
	CHECK(managed[5] == 2);
	OK(cudaPointerGetAttributes(&attributes, managed));
	CHECK(attributes.type == cudaMemoryTypeManaged);

	OK(cudaPointerGetAttributes(&attributes, plain));
	CHECK(attributes.type == cudaMemoryTypeUnregistered && attributes.devicePointer == NULL);
	OK(cudaHostRegister(plain, 4096, cudaHostRegisterDefault));
	OK(cudaPointerGetAttributes(&attributes, plain));
	CHECK(attributes.type == cudaMemoryTypeHost);
	OK(cudaHostUnregister(plain));
	free(plain);
	OK(cudaFreeHost(pinned));
	OK(cudaFreeHost(mapped));
	OK(cudaFreeHost(NULL));
	OK(cudaFree(managed));
}

static void pools(void)
{
	int supported, *data, value = 5;
	cudaStream_t stream;

	OK(cudaDeviceGetAttribute(&supported, cudaDevAttrMemoryPoolsSupported, 0));
	if (!supported)
		return;
	OK(cudaStreamCreate(&stream));
	OK(cudaMallocAsync(&data, sizeof(int), stream));
	OK(cudaMemcpyAsync(data, &value, sizeof(int), cudaMemcpyHostToDevice, stream));
	add_one<<<1, 1, 0, stream>>>(data, 1);
	OK(cudaMemcpyAsync(&value, data, sizeof(int), cudaMemcpyDeviceToHost, stream));
	OK(cudaFreeAsync(data, stream));
	OK(cudaStreamSynchronize(stream));
	CHECK(value == 6);
	OK(cudaStreamDestroy(stream));
}

int main(void)
{
	size_t before, total, after;
	void *block;

	linear();
	pitched();
	boxes();
	pinned_and_managed();
	pools();
	OK(cudaMemGetInfo(&before, &total));
	CHECK(before <= total && total > 0);
	OK(cudaMalloc(&block, 16 << 20));
	OK(cudaMemGetInfo(&after, &total));
	CHECK(after <= before);
	cudaPointerAttributes attributes;
	OK(cudaPointerGetAttributes(&attributes, (char *)block + 100));
	CHECK(attributes.type == cudaMemoryTypeDevice && attributes.device == 0);
	OK(cudaFree(block));
	EXPECT(cudaErrorMemoryAllocation, cudaMalloc(&block, (size_t)1 << 60));
	EXPECT(cudaErrorMemoryAllocation, cudaGetLastError());
	EXPECT(cudaSuccess, cudaGetLastError());
	puts("ok");
	return 0;
}
