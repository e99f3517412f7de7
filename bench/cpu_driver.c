/* SPDX-License-Identifier: Apache-2.0 */
/* What the CPU device's driver itself costs: an empty launch and its synchronize (at once, and
 * after a pause in which every thread went to sleep), launches one after another, blocks, an urgent
 * launch among long blocks, a small copy. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "bench/device.h"

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

static CUfunction empty, work;
static CUstream low, high;
static double times[ROUNDS];

static void print(const char *what, size_t count, const char *beside)
{
	bench_info(what, "us", times, count, "p99 %.2f us%s", bench_quantile(times, count, 0.99),
		   beside);
}

static void launch_and_synchronize(const char *what, int count, long pause_us)
{
	for (int i = 0; i < count; i++) {
		if (pause_us)
			nanosleep(&(struct timespec){.tv_nsec = pause_us * 1000}, NULL);
		double start = bench_now_us();
		OK(cuLaunchKernel(empty, 1, 1, 1, 1, 1, 1, 0, high, NULL, NULL));
		OK(cuStreamSynchronize(high));
		times[i] = bench_now_us() - start;
	}
	print(what, (size_t)count, "");
}

/* The thread does not help: a worker has to wake up for it. */
static void launch_and_poll(const char *what, int count, long pause_us)
{
	for (int i = 0; i < count; i++) {
		nanosleep(&(struct timespec){.tv_nsec = pause_us * 1000}, NULL);
		double start = bench_now_us();
		OK(cuLaunchKernel(empty, 1, 1, 1, 1, 1, 1, 0, high, NULL, NULL));
		while (cuStreamQuery(high) == CUDA_ERROR_NOT_READY)
			;
		times[i] = bench_now_us() - start;
	}
	print(what, (size_t)count, "");
}

static void launches(void)
{
	double each[TURNS];

	for (int turn = 0; turn < TURNS; turn++) {
		double start = bench_now_us();
		for (int i = 0; i < LAUNCHES; i++)
			OK(cuLaunchKernel(empty, 1, 1, 1, 1, 1, 1, 0, low, NULL, NULL));
		OK(cuStreamSynchronize(low));
		each[turn] = (bench_now_us() - start) * 1e3 / LAUNCHES;
	}
	bench_info("empty launches in one stream", "ns", each, TURNS, "each; %.0f a second",
		   1e9 / bench_median(each, TURNS));
}

static void blocks(void)
{
	double each[TURNS];

	for (int turn = 0; turn < TURNS; turn++) {
		double start = bench_now_us();
		OK(cuLaunchKernel(empty, BLOCKS, 1, 1, 1, 1, 1, 0, low, NULL, NULL));
		OK(cuStreamSynchronize(low));
		each[turn] = (bench_now_us() - start) * 1e3 / BLOCKS;
	}
	bench_info("empty blocks by all workers", "ns", each, TURNS, "each");
}

static void urgent_launch(void)
{
	enum { COUNT = 200 };
	CUdeviceptr word;
	unsigned n = 50000;

	OK(cuMemAlloc(&word, 4));
	void *params[] = {&word, &n};
	double start = bench_now_us();
	OK(cuLaunchKernel(work, 1, 1, 1, 1, 1, 1, 0, low, params, NULL));
	OK(cuStreamSynchronize(low));
	double block = bench_now_us() - start;
	for (int i = 0; i < COUNT; i++) {
		OK(cuLaunchKernel(work, 40, 1, 1, 1, 1, 1, 0, low, params, NULL));
		nanosleep(&(struct timespec){.tv_nsec = 500000}, NULL);
		start = bench_now_us();
		OK(cuLaunchKernel(empty, 1, 1, 1, 1, 1, 1, 0, high, NULL, NULL));
		OK(cuStreamSynchronize(high));
		times[i] = bench_now_us() - start;
		OK(cuStreamSynchronize(low));
	}
	char beside[64];
	snprintf(beside, sizeof beside, "; a block is %.0f us", block);
	print("urgent launch among long blocks", COUNT, beside);
	OK(cuMemFree(word));
}

static void small_copies(void)
{
	CUdeviceptr device;
	char host[1024] = "";

	OK(cuMemAlloc(&device, sizeof host));
	for (int i = 0; i < ROUNDS; i++) {
		double start = bench_now_us();
		OK(cuMemcpyHtoD(device, host, sizeof host));
		times[i] = bench_now_us() - start;
	}
	print("copy of 1 KiB to the device", ROUNDS, "");
	OK(cuMemFree(device));
}

int main(void)
{
	CUmodule module;

	bench_begin("cpu_driver", "what the CPU device's driver itself costs");
	bench_device();
	OK(cuModuleLoadData(&module, ptx));
	OK(cuModuleGetFunction(&empty, module, "empty"));
	OK(cuModuleGetFunction(&work, module, "work"));
	OK(cuStreamCreateWithPriority(&low, CU_STREAM_NON_BLOCKING, 0));
	OK(cuStreamCreateWithPriority(&high, CU_STREAM_NON_BLOCKING, -5));
	launch_and_synchronize("empty launch and synchronize", ROUNDS, 0);
	launch_and_synchronize("the same after 300 us of nothing", PAUSED, 300);
	launch_and_poll("the same by a worker that has to wake up", PAUSED, 300);
	launches();
	blocks();
	urgent_launch();
	small_copies();
	return 0;
}
