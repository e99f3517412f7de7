/* SPDX-License-Identifier: Apache-2.0 */
/* Shows that memory is given, counted, copied, filled and asked about as cuda.h says. */
#include "driver_tests.h"

#include <sys/mman.h>
#include <unistd.h>

static void allocation_is_counted(void **state)
{
	size_t before, after, total, device_total, bytes;
	CUdeviceptr a, base;

	OK(cuMemGetInfo(&before, &total));
	OK(cuDeviceTotalMem(&device_total, 0));
	assert_int_equal(total, device_total);
	OK(cuMemAlloc(&a, 10 << 20));
	assert_int_equal(a % 256, 0);
	OK(cuMemGetInfo(&after, NULL));
	assert_int_equal(before - after, 10 << 20);
	OK(cuMemGetAddressRange(&base, &bytes, a + 12345));
	assert_int_equal(base, a);
	assert_int_equal(bytes, 10 << 20);
	OK(cuMemFree(a));
	OK(cuMemGetInfo(&after, NULL));
	assert_int_equal(before, after);
	assert_int_equal(cuMemGetAddressRange(&base, &bytes, a), CUDA_ERROR_NOT_FOUND);
	assert_int_equal(cuMemFree(a), CUDA_ERROR_INVALID_VALUE);
	OK(cuMemFree(0));
	assert_int_equal(cuMemAlloc(&a, 0), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuMemAlloc(&a, total + 1), CUDA_ERROR_OUT_OF_MEMORY);
	OK(cuMemGetInfo(&after, NULL));
	assert_int_equal(before, after);
}

static void many_allocations(void **state)
{
	enum { COUNT = 2000 };
	static CUdeviceptr list[COUNT];

	for (int i = 0; i < COUNT; i++) {
		OK(cuMemAlloc(&list[i], (size_t)(i % 700 + 1) * 997));
		OK(cuMemsetD8(list[i], (unsigned char)i, (size_t)(i % 700 + 1) * 997));
	}
	OK(cuCtxSynchronize());
	for (int i = 0; i < COUNT; i++) {
		int k = i * 7 % COUNT; /* in another order */
		assert_int_equal(*(unsigned char *)list[k], (unsigned char)k);
		assert_int_equal(((unsigned char *)list[k])[(k % 700 + 1) * 997 - 1],
				 (unsigned char)k);
		OK(cuMemFree(list[k]));
	}
}

/* Host memory may be anything of the process's; what the driver has freed is not. */
static void freed_memory_is_no_host_memory(void **state)
{
	static const size_t sizes[] = {1, 512, 3000, 5000, 70000, 262144, 262145, 3 << 20};
	char *plain = calloc(1, 4);

	for (size_t i = 0; i < 2 * sizeof sizes / sizeof *sizes; i++) {
		size_t bytes = sizes[i / 2];
		void *host = NULL;
		CUdeviceptr a = 0;
		if (i % 2)
			OK(cuMemAllocHost(&host, bytes));
		else
			OK(cuMemAlloc(&a, bytes));
		a = host ? (CUdeviceptr)host : a;
		OK(cuMemcpy(a, (CUdeviceptr)plain, 1));
		OK(host ? cuMemFreeHost(host) : cuMemFree(a));
		assert_int_equal(cuMemcpy(a, (CUdeviceptr)plain, 1), CUDA_ERROR_INVALID_VALUE);
		assert_int_equal(cuMemcpy((CUdeviceptr)plain, a + bytes - 1, 1),
				 CUDA_ERROR_INVALID_VALUE);
		assert_int_equal(cuMemcpyHtoDAsync(a, plain, 1, NULL), CUDA_ERROR_INVALID_VALUE);
		assert_int_equal(cuMemsetD8(a, 0, 1), CUDA_ERROR_INVALID_VALUE);
		assert_int_equal(cuStreamWriteValue32(NULL, a, 1, 0), CUDA_ERROR_INVALID_VALUE);
		assert_int_equal(cuMemHostRegister((void *)a, 1, 0), CUDA_ERROR_INVALID_VALUE);
	}
	free(plain);
}

static void freeing_waits_for_work(void **state)
{
	uint32_t *count = zeroed(4), *words = zeroed(8);
	uint64_t ns = 20000000;
	uint32_t *none = NULL, id = 0;
	void *params[] = {&ns, &none, &none, &id};
	CUstream stream;

	OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	OK(launch(kernel("busy"), 1, stream, params));
	OK(cuMemFree((CUdeviceptr)count));
	OK(cuStreamQuery(stream));
	OK(cuStreamDestroy(stream));
	OK(cuMemFree((CUdeviceptr)words));
}

static void copies_in_all_directions(void **state)
{
	enum { BYTES = 3000001 }; /* several pieces, and a rest */
	unsigned char *from = malloc(BYTES), *to = calloc(BYTES, 1);
	CUdeviceptr a, b;
	void *pinned;
	CUstream stream;

	OK(cuStreamCreate(&stream, 0));
	for (int i = 0; i < BYTES; i++)
		from[i] = (unsigned char)(i * 31 + i / 4096);
	OK(cuMemAlloc(&a, BYTES));
	OK(cuMemAlloc(&b, BYTES));
	OK(cuMemAllocHost(&pinned, BYTES));
	OK(cuMemcpyHtoD(a, from, BYTES));
	OK(cuMemcpyDtoD(b, a, BYTES));
	OK(cuMemcpyDtoH(to, b, BYTES));
	assert_memory_equal(from, to, BYTES);
	memset(to, 0, BYTES);
	OK(cuMemsetD8(b, 0, BYTES));
	memcpy(pinned, from, BYTES);
	OK(cuMemcpyHtoDAsync(a, pinned, BYTES, stream));
	OK(cuMemcpyDtoDAsync(b, a, BYTES, stream));
	OK(cuMemcpyDtoHAsync(to, b, BYTES, stream)); /* pageable: there when it returns */
	assert_memory_equal(from, to, BYTES);
	OK(cuMemcpyAsync(a, (CUdeviceptr)to, BYTES - 1, stream));
	OK(cuMemcpy((CUdeviceptr)to, a, BYTES - 1));
	OK(cuStreamSynchronize(stream));
	assert_memory_equal(from, to, BYTES);
	OK(cuMemcpyHtoD(a, from, 0));
	assert_int_equal(cuMemcpyHtoD(a + 1, from, BYTES), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuMemcpyDtoH(to, 4096, 4), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuMemcpyHtoDAsync(0, from, 4, stream), CUDA_ERROR_INVALID_VALUE);
	OK(cuMemFree(a));
	OK(cuMemFree(b));
	OK(cuMemFreeHost(pinned));
	OK(cuStreamDestroy(stream));
	free(from);
	free(to);
}

/* A pageable source is the caller's again when the call returns, even if the stream is held up. */
static void pageable_source_is_read_at_once(void **state)
{
	uint32_t *words = zeroed(8), *target = zeroed(4096), source[1024];
	CUstream stream;

	OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	hold(stream, words);
	for (uint32_t i = 0; i < 1024; i++)
		source[i] = i;
	OK(cuMemcpyHtoDAsync((CUdeviceptr)target, source, sizeof source, stream));
	memset(source, 0xff, sizeof source);
	assert_int_equal(target[1023], 0); /* in its turn */
	let_go(words);
	OK(cuStreamSynchronize(stream));
	for (uint32_t i = 0; i < 1024; i++)
		assert_int_equal(target[i], i);
	OK(cuStreamDestroy(stream));
	OK(cuMemFree((CUdeviceptr)words));
	OK(cuMemFree((CUdeviceptr)target));
}

static void copies_of_two_and_three_dimensions(void **state)
{
	enum { W = 37, H = 19, D = 5, PITCH = 64 };
	static unsigned char host[D][H][W], back[D][H][W];
	size_t pitch;
	CUdeviceptr image, volume;
	CUstream stream;

	OK(cuStreamCreate(&stream, 0));
	for (int z = 0; z < D; z++)
		for (int y = 0; y < H; y++)
			for (int x = 0; x < W; x++)
				host[z][y][x] = (unsigned char)(z * 50 + y * 7 + x);
	OK(cuMemAllocPitch(&image, &pitch, W, H, 4));
	assert_true(pitch >= W && pitch % 512 == 0);
	CUDA_MEMCPY2D up = {.srcXInBytes = 2,
			    .srcY = 3,
			    .srcMemoryType = CU_MEMORYTYPE_HOST,
			    .srcHost = host,
			    .srcPitch = W,
			    .dstXInBytes = 1,
			    .dstY = 2,
			    .dstMemoryType = CU_MEMORYTYPE_DEVICE,
			    .dstDevice = image,
			    .dstPitch = pitch,
			    .WidthInBytes = 20,
			    .Height = 10};
	OK(cuMemcpy2DAsync(&up, stream));
	OK(cuStreamSynchronize(stream));
	for (int y = 0; y < 10; y++)
		assert_memory_equal((char *)image + (y + 2) * pitch + 1, &host[0][y + 3][2], 20);
	up.srcPitch = 10; /* narrower than a row */
	assert_int_equal(cuMemcpy2D(&up), CUDA_ERROR_INVALID_VALUE);
	up.srcPitch = W;
	up.srcMemoryType = CU_MEMORYTYPE_ARRAY;
	assert_int_equal(cuMemcpy2D(&up), CUDA_ERROR_NOT_SUPPORTED);

	OK(cuMemAlloc(&volume, PITCH * (H + 1) * D));
	CUDA_MEMCPY3D in = {.srcMemoryType = CU_MEMORYTYPE_HOST,
			    .srcHost = host,
			    .srcPitch = W,
			    .srcHeight = H,
			    .dstMemoryType = CU_MEMORYTYPE_UNIFIED,
			    .dstDevice = volume,
			    .dstPitch = PITCH,
			    .dstHeight = H + 1,
			    .WidthInBytes = W,
			    .Height = H,
			    .Depth = D};
	CUDA_MEMCPY3D out = {.srcZ = 1,
			     .srcMemoryType = CU_MEMORYTYPE_DEVICE,
			     .srcDevice = volume,
			     .srcPitch = PITCH,
			     .srcHeight = H + 1,
			     .dstMemoryType = CU_MEMORYTYPE_HOST,
			     .dstHost = back,
			     .dstPitch = W,
			     .dstHeight = H,
			     .WidthInBytes = W,
			     .Height = H,
			     .Depth = D - 1};
	OK(cuMemcpy3D(&in));
	OK(cuMemcpy3DAsync(&out, stream));
	OK(cuStreamSynchronize(stream));
	assert_memory_equal(back, host[1], sizeof host[0] * (D - 1));
	OK(cuMemFree(image));
	OK(cuMemFree(volume));
	OK(cuStreamDestroy(stream));
}

static void fills_of_all_widths(void **state)
{
	enum { N = 500000 };
	uint32_t *words = zeroed(N * 4);
	uint16_t *halves = (uint16_t *)words;
	unsigned char *bytes = (unsigned char *)words;
	CUdeviceptr address = (CUdeviceptr)words;

	OK(cuMemsetD32(address, 0xdeadbeef, N));
	OK(cuCtxSynchronize());
	assert_true(words[0] == 0xdeadbeef && words[N / 2] == 0xdeadbeef &&
		    words[N - 1] == 0xdeadbeef);
	OK(cuMemsetD16Async(address + 2, 0x1234, 3, NULL));
	OK(cuMemsetD8Async(address + 8, 0x56, 1, NULL));
	OK(cuCtxSynchronize());
	assert_true(halves[0] == 0xbeef && halves[1] == 0x1234 && halves[3] == 0x1234);
	assert_true(bytes[8] == 0x56 && bytes[9] == 0xbe);
	OK(cuMemsetD2D32(address, 64, 7, 3, 100));
	OK(cuMemsetD2D16(address + 32, 64, 8, 2, 100));
	OK(cuMemsetD2D8(address + 48, 64, 9, 5, 100));
	OK(cuCtxSynchronize());
	for (int y = 0; y < 100; y++) {
		assert_int_equal(words[y * 16 + 2], 7);
		assert_int_equal(halves[y * 32 + 17], 8);
		assert_int_equal(bytes[y * 64 + 52], 9);
		assert_int_equal(bytes[y * 64 + 53], 0xbe);
	}
	assert_int_equal(cuMemsetD32(address + 2, 0, 1), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuMemsetD8(address, 0, N * 4 + 1), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuMemsetD2D8(address, 4, 0, 8, 2), CUDA_ERROR_INVALID_VALUE);
	OK(cuMemFree(address));
}

static void host_memory(void **state)
{
	void *memory, *plain = malloc(10000);
	CUdeviceptr device;
	unsigned flags;

	OK(cuMemHostAlloc(&memory, 5000, CU_MEMHOSTALLOC_PORTABLE));
	OK(cuMemHostGetDevicePointer(&device, memory, 0));
	OK(cuMemHostGetFlags(&flags, memory));
	assert_int_equal(flags, CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP);
	assert_int_equal(cuMemFree((CUdeviceptr)memory), CUDA_ERROR_INVALID_VALUE);
	OK(cuMemFreeHost(memory));
	assert_int_equal(cuMemFreeHost(memory), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuMemHostAlloc(&memory, 10, 0x80), CUDA_ERROR_INVALID_VALUE);

	assert_int_equal(cuMemHostGetDevicePointer(&device, plain, 0), CUDA_ERROR_INVALID_VALUE);
	OK(cuMemHostRegister(plain, 10000, CU_MEMHOSTREGISTER_DEVICEMAP));
	OK(cuMemHostGetDevicePointer(&device, plain, 0));
	assert_ptr_equal((void *)device, plain);
	assert_int_equal(cuMemHostRegister((char *)plain + 100, 10, 0),
			 CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
	OK(cuMemHostUnregister(plain));
	assert_int_equal(cuMemHostUnregister(plain), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
	free(plain);
}

static void pointers_answer_for_themselves(void **state)
{
	CUdeviceptr device, managed, found;
	void *host;
	unsigned type, is_managed;
	CUcontext owner;
	size_t size;
	int ordinal, local = 0;
	unsigned long long id, other_id;

	OK(cuMemAlloc(&device, 1000));
	OK(cuMemAllocManaged(&managed, 1000, CU_MEM_ATTACH_GLOBAL));
	OK(cuMemAllocHost(&host, 1000));
	OK(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, device + 5));
	assert_int_equal(type, CU_MEMORYTYPE_DEVICE);
	OK(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (CUdeviceptr)host));
	assert_int_equal(type, CU_MEMORYTYPE_HOST);
	OK(cuPointerGetAttribute(&is_managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, managed));
	assert_int_equal(is_managed, 1);
	OK(cuPointerGetAttribute(&is_managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, device));
	assert_int_equal(is_managed, 0);
	OK(cuPointerGetAttribute(&owner, CU_POINTER_ATTRIBUTE_CONTEXT, device));
	assert_ptr_equal(owner, context);
	OK(cuPointerGetAttribute(&found, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, device + 9));
	OK(cuPointerGetAttribute(&size, CU_POINTER_ATTRIBUTE_RANGE_SIZE, device + 9));
	assert_true(found == device && size == 1000);
	OK(cuPointerGetAttribute(&id, CU_POINTER_ATTRIBUTE_BUFFER_ID, device));
	OK(cuPointerGetAttribute(&other_id, CU_POINTER_ATTRIBUTE_BUFFER_ID, managed));
	assert_true(id != other_id);
	assert_int_equal(
		cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (CUdeviceptr)&local),
		CUDA_ERROR_INVALID_VALUE);
	CUpointer_attribute list[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
				      CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
				      CU_POINTER_ATTRIBUTE_IS_MANAGED};
	void *data[] = {&type, &ordinal, &is_managed};
	type = 77;
	OK(cuPointerGetAttributes(3, list, data, (CUdeviceptr)&local));
	assert_true(type == 0 && ordinal == -2 && is_managed == 0);
	OK(cuPointerGetAttributes(3, list, data, managed));
	assert_true(type == CU_MEMORYTYPE_DEVICE && ordinal == 0 && is_managed == 1);
	OK(cuMemPrefetchAsync(managed, 1000, (CUmemLocation){CU_MEM_LOCATION_TYPE_DEVICE, 0}, 0,
			      NULL));
	OK(cuMemAdvise(managed, 1000, CU_MEM_ADVISE_SET_READ_MOSTLY,
		       (CUmemLocation){CU_MEM_LOCATION_TYPE_DEVICE, 0}));
	OK(cuMemFree(device));
	OK(cuMemFree(managed));
	OK(cuMemFreeHost(host));
}

static void stream_ordered_allocation(void **state)
{
	CUmemoryPool pool, own;
	CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
				.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
	CUdeviceptr a, b;
	CUstream stream;
	cuuint64_t used, threshold = 12345, high;
	uint32_t *words = zeroed(8);
	size_t before, now;

	OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	OK(cuDeviceGetDefaultMemPool(&pool, 0));
	OK(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold));
	threshold = 0;
	OK(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold));
	assert_int_equal(threshold, 12345);
	OK(cuMemGetInfo(&before, NULL));
	hold(stream, words);
	OK(cuMemAllocAsync(&a, 1 << 20, stream));
	OK(cuMemsetD8Async(a, 7, 1 << 20, stream));
	OK(cuMemFreeAsync(a, stream));
	OK(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used));
	assert_int_equal(used, 1 << 20); /* not before its turn */
	let_go(words);
	OK(cuStreamSynchronize(stream));
	OK(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used));
	assert_int_equal(used, 0);
	OK(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &high));
	assert_int_equal(high, 1 << 20);
	OK(cuMemGetInfo(&now, NULL));
	assert_int_equal(now, before);
	assert_int_equal(cuMemFreeAsync(a, stream), CUDA_ERROR_INVALID_VALUE);

	OK(cuMemPoolCreate(&own, &props));
	OK(cuMemAllocFromPoolAsync(&b, 100, own, stream));
	OK(cuMemPoolDestroy(own)); /* lives until b is freed */
	OK(cuMemFreeAsync(b, stream));
	OK(cuStreamSynchronize(stream));
	OK(cuMemPoolTrimTo(pool, 0));
	OK(cuStreamDestroy(stream));
	OK(cuMemFree((CUdeviceptr)words));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(allocation_is_counted),
		cmocka_unit_test(many_allocations),
		cmocka_unit_test(freed_memory_is_no_host_memory),
		cmocka_unit_test(freeing_waits_for_work),
		cmocka_unit_test(copies_in_all_directions),
		cmocka_unit_test(pageable_source_is_read_at_once),
		cmocka_unit_test(copies_of_two_and_three_dimensions),
		cmocka_unit_test(fills_of_all_widths),
		cmocka_unit_test(host_memory),
		cmocka_unit_test(pointers_answer_for_themselves),
		cmocka_unit_test(stream_ordered_allocation),
	};

	return cmocka_run_group_tests(tests, start_driver, stop_driver);
}
