/* SPDX-License-Identifier: Apache-2.0 */
/* Every way to give the device work that a program has beside plain launches, each with an exact
 * check: copies of all shapes, memory pools, host functions, cooperative launches, values in
 * memory, priorities, events and time, 200 streams, children, too little memory. Runs on a GPU as
 * well. `doors PART...` runs only these parts. */
#include <cuda.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

#define N 4096

extern char **environ;
static const char *self;

static unsigned turn(unsigned value, unsigned number)
{
	return value * 1664525u + number;
}

__global__ void step(unsigned *values, unsigned number)
{
	unsigned i = blockIdx.x * blockDim.x + threadIdx.x;

	values[i] = values[i] * 1664525u + number;
}

/* Every block waits until all have come. */
__global__ void meet(unsigned *arrived, unsigned *values)
{
	if (threadIdx.x == 0) {
		atomicAdd(arrived, 1);
		while (atomicAdd(arrived, 0) < gridDim.x)
			;
	}
	__syncthreads();
	if (threadIdx.x == 0)
		values[blockIdx.x] = atomicAdd(arrived, 0);
}

static void run(unsigned *values, unsigned number, cudaStream_t stream)
{
	step<<<N / 128, 128, 0, stream>>>(values, number);
}

static unsigned *zeroed(void)
{
	unsigned *memory;

	OK(cudaMalloc((void **)&memory, N * 4));
	OK(cudaMemset(memory, 0, N * 4));
	OK(cudaDeviceSynchronize());
	return memory;
}

static void check_all(const unsigned *device, unsigned expected)
{
	static unsigned got[N];

	OK(cudaMemcpy(got, device, sizeof got, cudaMemcpyDeviceToHost));
	for (int i = 0; i < N; i++)
		CHECK(got[i] == expected);
}

static cudaStream_t new_stream(void)
{
	cudaStream_t stream;

	OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	return stream;
}

/* A launch before and one behind each copy: the copy sees the first and not the second. */
static void copies(void)
{
	unsigned *a = zeroed(), *b = zeroed(), *pinned, expected = 0;
	cudaStream_t stream = new_stream();
	cudaMemcpy3DParms box = {};

	OK(cudaMallocHost((void **)&pinned, N * 4));
	for (int way = 0; way < 6; way++) {
		run(a, way, stream);
		expected = turn(expected, way);
		switch (way) {
		case 0:
			OK(cudaMemcpyAsync(b, a, N * 4, cudaMemcpyDeviceToDevice, stream));
			break;
		case 1:
			OK(cudaMemcpyPeerAsync(b, 0, a, 0, N * 4, stream));
			break;
		case 2:
			OK(cudaMemcpy2DAsync(b, 256, a, 256, 256, N / 64, cudaMemcpyDeviceToDevice,
					     stream));
			break;
		case 3:
			box.srcPtr = make_cudaPitchedPtr(a, 256, 256, N / 256);
			box.dstPtr = make_cudaPitchedPtr(b, 256, 256, N / 256);
			box.extent = make_cudaExtent(256, N / 256, 4);
			box.kind = cudaMemcpyDeviceToDevice;
			OK(cudaMemcpy3DAsync(&box, stream));
			break;
		case 4:
			OK(cudaMemcpyAsync(pinned, a, N * 4, cudaMemcpyDeviceToHost, stream));
			OK(cudaMemcpyAsync(b, pinned, N * 4, cudaMemcpyHostToDevice, stream));
			break;
		default: {
			void *to[] = {b, b + N / 2};
			const void *from[] = {a, a + N / 2};
			size_t sizes[] = {N * 2, N * 2}, index = 0;
			cudaMemcpyAttributes how = {};

			how.srcAccessOrder = cudaMemcpySrcAccessOrderStream;
			OK(cudaMemcpyBatchAsync(to, from, sizes, 2, &how, &index, 1, stream));
		}
		}
		unsigned seen = expected;
		run(a, 100 + way, stream);
		expected = turn(expected, 100 + way);
		OK(cudaStreamSynchronize(stream));
		check_all(b, seen);
		check_all(a, expected);
	}
	OK(cudaFreeHost(pinned));
	OK(cudaFree(a));
	OK(cudaFree(b));
	OK(cudaStreamDestroy(stream));
}

static void pools(void)
{
	cudaStream_t stream = new_stream();
	cudaMemPool_t pool, standard;
	cudaMemPoolProps props = {};
	cuuint64_t used = 1, threshold = ~0ull;
	unsigned *memory, *copy = zeroed();

	OK(cudaDeviceGetDefaultMemPool(&standard, 0));
	OK(cudaMemPoolSetAttribute(standard, cudaMemPoolAttrReleaseThreshold, &threshold));
	props.allocType = cudaMemAllocationTypePinned;
	props.location.type = cudaMemLocationTypeDevice;
	OK(cudaMemPoolCreate(&pool, &props));
	for (unsigned i = 0; i < 50; i++) {
		OK(i % 2 ? cudaMallocAsync((void **)&memory, N * 4, stream)
			 : cudaMallocFromPoolAsync((void **)&memory, N * 4, pool, stream));
		OK(cudaMemsetAsync(memory, 0, N * 4, stream));
		run(memory, i, stream);
		OK(cudaMemcpyAsync(copy, memory, N * 4, cudaMemcpyDeviceToDevice, stream));
		OK(cudaFreeAsync(memory, stream));
	}
	OK(cudaStreamSynchronize(stream));
	check_all(copy, 49);
	OK(cudaMemPoolTrimTo(pool, 0));
	OK(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &used));
	CHECK(used == 0);
	OK(cudaMemPoolDestroy(pool));
	OK(cudaFree(copy));
	OK(cudaStreamDestroy(stream));
}

struct order {
	int next, places[2];
	cudaError_t status;
};

static void CUDART_CB first(void *data)
{
	struct order *o = (struct order *)data;

	o->places[0] = o->next++;
}

static void CUDART_CB second(cudaStream_t, cudaError_t status, void *data)
{
	struct order *o = (struct order *)data;

	o->places[1] = o->next++;
	o->status = status;
}

static void host_functions(void)
{
	unsigned *values = zeroed();
	cudaStream_t stream = new_stream();
	struct order o = {};

	run(values, 1, stream);
	OK(cudaLaunchHostFunc(stream, first, &o));
	run(values, 2, stream);
	OK(cudaStreamAddCallback(stream, second, &o, 0));
	run(values, 3, stream);
	OK(cudaStreamSynchronize(stream));
	CHECK(o.next == 2 && o.places[0] == 0 && o.places[1] == 1 && o.status == cudaSuccess);
	check_all(values, turn(turn(1, 2), 3));
	OK(cudaFree(values));
	OK(cudaStreamDestroy(stream));
}

static void cooperative(void)
{
	unsigned *arrived = zeroed(), *values = zeroed(), got[1024];
	int multiprocessors, fit;
	cudaStream_t stream = new_stream();

	OK(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, 0));
	OK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&fit, meet, 32, 0));
	unsigned blocks = multiprocessors * fit < 1024 ? multiprocessors * fit : 1024;
	void *arguments[] = {&arrived, &values};
	OK(cudaLaunchCooperativeKernel((void *)meet, dim3(blocks), dim3(32), arguments, 0, stream));
	OK(cudaStreamSynchronize(stream));
	OK(cudaMemcpy(got, values, blocks * 4, cudaMemcpyDeviceToHost));
	for (unsigned i = 0; i < blocks; i++)
		CHECK(got[i] == blocks);
	/* By attribute, and one that cannot fit. */
	OK(cudaMemset(arrived, 0, 4));
	OK(cudaDeviceSynchronize());
	cudaLaunchAttribute attribute = {};
	cudaLaunchConfig_t config = {};
	attribute.id = cudaLaunchAttributeCooperative;
	attribute.val.cooperative = 1;
	config.gridDim = dim3(blocks);
	config.blockDim = dim3(32);
	config.stream = stream;
	config.attrs = &attribute;
	config.numAttrs = 1;
	OK(cudaLaunchKernelExC(&config, (void *)meet, arguments));
	OK(cudaStreamSynchronize(stream));
	EXPECT(cudaErrorCooperativeLaunchTooLarge,
	       cudaLaunchCooperativeKernel((void *)meet, dim3(1 << 20), dim3(32), arguments, 0,
					   stream));
	EXPECT(cudaErrorCooperativeLaunchTooLarge, cudaGetLastError());
	OK(cudaFree(arrived));
	OK(cudaFree(values));
	OK(cudaStreamDestroy(stream));
}

/* A stream waits for a word that another one writes; the driver's functions come by name. */
static void values_in_memory(void)
{
	typedef CUresult value_function(CUstream, CUdeviceptr, cuuint32_t, unsigned);
	unsigned *word = zeroed(), *values = zeroed();
	cudaStream_t writer = new_stream(), waiter = new_stream();
	cudaDriverEntryPointQueryResult found;
	void *wait, *write;

	OK(cudaGetDriverEntryPointByVersion("cuStreamWaitValue32", &wait, 12000, cudaEnableDefault,
					    &found));
	OK(cudaGetDriverEntryPointByVersion("cuStreamWriteValue32", &write, 12000,
					    cudaEnableDefault, &found));
	CHECK(((value_function *)wait)(waiter, (CUdeviceptr)word, 1, CU_STREAM_WAIT_VALUE_GEQ) ==
	      CUDA_SUCCESS);
	run(values, 2, waiter);
	run(values, 1, writer);
	CHECK(((value_function *)write)(writer, (CUdeviceptr)word, 1, 0) == CUDA_SUCCESS);
	OK(cudaStreamSynchronize(waiter));
	OK(cudaStreamSynchronize(writer));
	check_all(values, turn(1, 2));
	OK(cudaFree(word));
	OK(cudaFree(values));
	OK(cudaStreamDestroy(writer));
	OK(cudaStreamDestroy(waiter));
}

static void events(void)
{
	unsigned *values = zeroed();
	int least, greatest, priority;
	cudaStream_t high, low, other = new_stream();
	cudaStreamAttrValue value = {};
	cudaEvent_t start, end, blocking;
	float ms = -1;

	OK(cudaDeviceGetStreamPriorityRange(&least, &greatest));
	OK(cudaStreamCreateWithPriority(&high, cudaStreamNonBlocking, greatest));
	OK(cudaStreamCreateWithPriority(&low, cudaStreamNonBlocking, least));
	OK(cudaStreamGetPriority(high, &priority));
	CHECK(priority == greatest);
	OK(cudaEventCreate(&start));
	OK(cudaEventCreate(&end));
	OK(cudaEventCreateWithFlags(&blocking, cudaEventBlockingSync | cudaEventDisableTiming));
	OK(cudaEventRecord(start, low));
	for (unsigned i = 0; i < 20; i++) {
		cudaStream_t stream = i % 3 == 0 ? high : i % 3 == 1 ? low : other;

		/* From stream to stream by an event. */
		if (i)
			OK(cudaStreamWaitEvent(stream, blocking, 0));
		run(values, i, stream);
		OK(cudaEventRecordWithFlags(blocking, stream, 0));
	}
	OK(cudaStreamWaitEvent(low, blocking, 0));
	OK(cudaEventRecord(end, low));
	OK(cudaEventSynchronize(blocking));
	OK(cudaEventSynchronize(end));
	OK(cudaEventElapsedTime(&ms, start, end));
	CHECK(ms >= 0);
	unsigned expected = 0;
	for (unsigned i = 0; i < 20; i++)
		expected = turn(expected, i);
	check_all(values, expected);
	OK(cudaStreamCopyAttributes(other, high));
	OK(cudaStreamGetAttribute(other, cudaLaunchAttributeSynchronizationPolicy, &value));
	OK(cudaEventDestroy(start));
	OK(cudaEventDestroy(end));
	OK(cudaEventDestroy(blocking));
	OK(cudaStreamDestroy(high));
	OK(cudaStreamDestroy(low));
	OK(cudaStreamDestroy(other));
	OK(cudaFree(values));
}

static void many_streams(void)
{
	enum { STREAMS = 200, ROUNDS = 5 };
	static cudaStream_t streams[STREAMS];
	static unsigned *values[STREAMS];

	for (int i = 0; i < STREAMS; i++) {
		OK(cudaStreamCreateWithFlags(&streams[i],
					     i % 2 ? cudaStreamNonBlocking : cudaStreamDefault));
		values[i] = zeroed();
	}
	for (unsigned round = 0; round < ROUNDS; round++) {
		for (int i = 0; i < STREAMS; i++)
			run(values[i], round + i, streams[i]);
		run(values[0], 7, 0); /* the null stream, between the blocking ones */
	}
	OK(cudaDeviceSynchronize());
	for (int i = 0; i < STREAMS; i++) {
		unsigned expected = 0;

		for (unsigned round = 0; round < ROUNDS; round++) {
			expected = turn(expected, round + i);
			if (!i)
				expected = turn(expected, 7);
		}
		check_all(values[i], expected);
		OK(cudaStreamDestroy(streams[i]));
		OK(cudaFree(values[i]));
	}
}

static void too_little_memory(void)
{
	size_t available, total;
	unsigned *values = zeroed();
	void *memory;

	OK(cudaMemGetInfo(&available, &total));
	EXPECT(cudaErrorMemoryAllocation, cudaMalloc(&memory, 2 * total));
	EXPECT(cudaErrorMemoryAllocation, cudaGetLastError());
	run(values, 3, 0);
	OK(cudaDeviceSynchronize());
	check_all(values, 3);
	OK(cudaFree(values));
}

/* How a child ended. */
static void expect_child(pid_t pid)
{
	int status;

	CHECK(pid > 0);
	CHECK(waitpid(pid, &status, 0) == pid);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void spawn_small(void)
{
	char *arguments[] = {(char *)self, (char *)"small", NULL};
	pid_t pid;

	CHECK(posix_spawn(&pid, self, NULL, NULL, arguments, environ) == 0);
	expect_child(pid);
}

/* Children while work is queued: one that only leaves, one that becomes another program (by fork
 * and exec, by vfork, by posix_spawn). */
static void children(void)
{
	unsigned *values = zeroed();
	cudaStream_t stream = new_stream();

	for (unsigned i = 0; i < 20; i++)
		run(values, i, stream);
	pid_t pid = fork();
	if (!pid)
		_exit(0);
	expect_child(pid);
	pid = fork();
	if (!pid) {
		execl(self, self, "small", (char *)NULL);
		_exit(1);
	}
	expect_child(pid);
	pid = vfork();
	if (!pid) {
		execl(self, self, "small", (char *)NULL);
		_exit(1);
	}
	expect_child(pid);
	spawn_small();
	for (unsigned i = 20; i < 30; i++)
		run(values, i, stream);
	OK(cudaStreamSynchronize(stream));
	unsigned expected = 0;
	for (unsigned i = 0; i < 30; i++)
		expected = turn(expected, i);
	check_all(values, expected);
	OK(cudaFree(values));
	OK(cudaStreamDestroy(stream));
}

/* A program that starts over: what it had is gone, and all works again. */
static void start_over(void)
{
	unsigned *values = zeroed();

	run(values, 1, 0);
	OK(cudaDeviceReset());
	values = zeroed();
	run(values, 4, 0);
	OK(cudaDeviceSynchronize());
	check_all(values, 4);
	OK(cudaFree(values));
}

static void small(void)
{
	unsigned *values = zeroed();

	run(values, 5, 0);
	run(values, 6, cudaStreamPerThread);
	OK(cudaDeviceSynchronize());
	check_all(values, turn(5, 6));
}

/* Leaves without ever waiting for what it launched. */
static void never_waits(void)
{
	unsigned *values = zeroed();

	for (unsigned i = 0; i < 50; i++)
		run(values, i, 0);
}

static const struct {
	const char *name;
	void (*run)(void);
} parts[] = {
	{"copies", copies},
	{"pools", pools},
	{"host_functions", host_functions},
	{"cooperative", cooperative},
	{"values", values_in_memory},
	{"events", events},
	{"many_streams", many_streams},
	{"memory", too_little_memory},
	{"children", children},
	{"start_over", start_over},
	{"small", small},
	{"never_waits", never_waits},
};

int main(int argc, char **argv)
{
	self = "/proc/self/exe";
	/* Before anything of CUDA: a child that starts from nothing. */
	pid_t pid = argc > 1 ? -1 : fork();
	if (!pid) {
		small();
		_exit(0);
	}
	if (pid > 0)
		expect_child(pid);
	for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
		bool wanted = argc < 2;

		for (int a = 1; a < argc; a++)
			wanted |= !strcmp(argv[a], parts[i].name);
		if (wanted)
			parts[i].run();
	}
	if (argc < 2 || strcmp(argv[1], "small"))
		puts("ok");
	return 0;
}
