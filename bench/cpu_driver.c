/* SPDX-License-Identifier: Apache-2.0 */
/* What the CPU device's driver itself costs: an empty launch and its synchronize (at once, and
 * after a pause in which every thread went to sleep), launches one after another, blocks, an urgent
 * launch among long blocks, a small copy. */
#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { ROUNDS = 20000, PAUSED = 1000, LAUNCHES = 100000, BLOCKS = 10000000, TURNS = 5 };

static const char ptx[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
			  ".visible .entry empty()\n{\n\tret;\n}\n"
			  /* p times n additions that nobody can leave out */
			  ".visible .entry work(.param .u64 p, .param .u32 n)\n{\n"
			  "\t.reg .pred %p<2>;\n\t.reg .b32 %r<5>;\n\t.reg .b64 %d<2>;\n"
			  "\tld.param.u64 %d1, [p];\n\tld.param.u32 %r1, [n];\n"
			  "L:\n\tld.volatile.u32 %r2, [%d1];\n\tadd.u32 %r3, %r2, 1;\n"
			  "\tst.volatile.u32 [%d1], %r3;\n\tsub.u32 %r1, %r1, 1;\n"
			  "\tsetp.ne.u32 %p1, %r1, 0;\n\t@%p1 bra L;\n\tret;\n}\n";

#define OK(call)                                                                                   \
	do {                                                                                       \
		CUresult result_ = (call);                                                         \
		if (result_) {                                                                     \
			fprintf(stderr, "bench: error: %s: error %d\n", #call, result_);           \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

static CUfunction empty, work;
static CUstream low, high;
static double times[ROUNDS];

static double now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static void print(const char *what, int count)
{
	qsort(times, (size_t)count, sizeof *times, ascending);
	printf("%-52s p50 %8.2f  p99 %8.2f us\n", what, times[count / 2], times[count * 99 / 100]);
}

static void launch_and_synchronize(const char *what, int count, long pause_us)
{
	for (int i = 0; i < count; i++) {
		if (pause_us)
			nanosleep(&(struct timespec){.tv_nsec = pause_us * 1000}, NULL);
		double start = now_us();
		OK(cuLaunchKernel(empty, 1, 1, 1, 1, 1, 1, 0, high, NULL, NULL));
		OK(cuStreamSynchronize(high));
		times[i] = now_us() - start;
	}
	print(what, count);
}

/* The thread does not help: a worker has to wake up for it. */
static void launch_and_poll(const char *what, int count, long pause_us)
{
	for (int i = 0; i < count; i++) {
		nanosleep(&(struct timespec){.tv_nsec = pause_us * 1000}, NULL);
		double start = now_us();
		OK(cuLaunchKernel(empty, 1, 1, 1, 1, 1, 1, 0, high, NULL, NULL));
		while (cuStreamQuery(high) == CUDA_ERROR_NOT_READY)
			;
		times[i] = now_us() - start;
	}
	print(what, count);
}

static void launches(void)
{
	double best = 0;

	for (int turn = 0; turn < TURNS; turn++) {
		double start = now_us();
		for (int i = 0; i < LAUNCHES; i++)
			OK(cuLaunchKernel(empty, 1, 1, 1, 1, 1, 1, 0, low, NULL, NULL));
		OK(cuStreamSynchronize(low));
		double each = (now_us() - start) / LAUNCHES;
		best = turn && best < each ? best : each;
	}
	printf("%-52s %8.0f a second\n", "empty launches, one stream", 1e6 / best);
}

static void blocks(void)
{
	double best = 0;

	for (int turn = 0; turn < TURNS; turn++) {
		double start = now_us();
		OK(cuLaunchKernel(empty, BLOCKS, 1, 1, 1, 1, 1, 0, low, NULL, NULL));
		OK(cuStreamSynchronize(low));
		double each = (now_us() - start) * 1e3 / BLOCKS;
		best = turn && best < each ? best : each;
	}
	printf("%-52s %8.1f ns each\n", "empty blocks, all workers", best);
}

static void urgent_launch(void)
{
	enum { COUNT = 200 };
	CUdeviceptr word;
	unsigned n = 50000;

	OK(cuMemAlloc(&word, 4));
	void *params[] = {&word, &n};
	double start = now_us();
	OK(cuLaunchKernel(work, 1, 1, 1, 1, 1, 1, 0, low, params, NULL));
	OK(cuStreamSynchronize(low));
	double block = now_us() - start;
	for (int i = 0; i < COUNT; i++) {
		OK(cuLaunchKernel(work, 40, 1, 1, 1, 1, 1, 0, low, params, NULL));
		nanosleep(&(struct timespec){.tv_nsec = 500000}, NULL);
		start = now_us();
		OK(cuLaunchKernel(empty, 1, 1, 1, 1, 1, 1, 0, high, NULL, NULL));
		OK(cuStreamSynchronize(high));
		times[i] = now_us() - start;
		OK(cuStreamSynchronize(low));
	}
	char text[64];
	snprintf(text, sizeof text, "urgent launch among blocks of %.0f us", block);
	print(text, COUNT);
	OK(cuMemFree(word));
}

static void small_copies(void)
{
	CUdeviceptr device;
	char host[1024] = "";

	OK(cuMemAlloc(&device, sizeof host));
	for (int i = 0; i < ROUNDS; i++) {
		double start = now_us();
		OK(cuMemcpyHtoD(device, host, sizeof host));
		times[i] = now_us() - start;
	}
	print("copy of 1 KiB to the device", ROUNDS);
	OK(cuMemFree(device));
}

int main(void)
{
	CUcontext context;
	CUmodule module;

	OK(cuInit(0));
	OK(cuDevicePrimaryCtxRetain(&context, 0));
	OK(cuCtxSetCurrent(context));
	OK(cuModuleLoadData(&module, ptx));
	OK(cuModuleGetFunction(&empty, module, "empty"));
	OK(cuModuleGetFunction(&work, module, "work"));
	OK(cuStreamCreateWithPriority(&low, CU_STREAM_NON_BLOCKING, 0));
	OK(cuStreamCreateWithPriority(&high, CU_STREAM_NON_BLOCKING, -5));
	launch_and_synchronize("empty launch and synchronize", ROUNDS, 0);
	launch_and_synchronize("the same after 300 us of nothing", PAUSED, 300);
	launch_and_poll("the same, run by a worker that has to wake up", PAUSED, 300);
	launches();
	blocks();
	urgent_launch();
	small_copies();
	return 0;
}
