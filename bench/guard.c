/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What it costs a kernel that each of its blocks may be stopped: K against K$slice_guard of the
 * same module, launched in turn through the driver. On the CPU device the time is the process's CPU
 * time, since a guard costs nothing else and the machine may have other work; a launch is bound
 * when its blocks take 5 us and more. With GUARD_DEVICE=cuda the same on a GPU, larger: the time of
 * several launches between two events; $TALLY_BUILD is where tally-lower and the kernels are.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "bench/device.h"
#include "ir_passes/launch_abi.h"

enum { ROUNDS = 61, BUFFERS = 4, BUFFER_BYTES = 64 << 20, RUNS_BYTES = 1 << 20 };
enum { MOST_LAUNCHES = 8, WORDS_BYTES = 512 + 64 * MOST_LAUNCHES };
enum { SHORTEST_BOUND_US = 5 };

struct kernel_case {
	const char *title, *kernel;
	const char *parameters; /* p: the next buffer, n: `n`; the last p counts the blocks' runs */
	unsigned grid[3], block[3], shared, n;
};

static const struct kernel_case cases[] = {
	{"elementwise", "grid_stride", "ppnp", {512, 1, 1}, {256, 1, 1}, 0, 512 * 256 * 64},
	{"elementwise longer blocks", "grid_stride", "ppnp", {64, 1, 1}, {256, 1, 1}, 0, 1 << 23},
	{"elementwise tiny blocks", "vadd", "pppnp", {4096, 1, 1}, {256, 1, 1}, 0, 1 << 20},
	{"matrix product in tiles", "matmul_tiled", "pppnp", {8, 8, 1}, {16, 16, 1}, 0, 128},
	{"reduction by barriers", "reduce_tree", "ppnp", {64, 1, 1}, {256, 1, 1}, 1024, 64 * 256},
	{"reduction by barriers 1024",
	 "reduce_tree",
	 "ppnp",
	 {32, 1, 1},
	 {1024, 1, 1},
	 4096,
	 32768},
	{"scan by shuffles", "block_scan", "ppp", {256, 1, 1}, {256, 1, 1}, 0, 0},
};

static const struct kernel_case gpu_cases[] = {
	{"elementwise", "grid_stride", "ppnp", {1056, 1, 1}, {256, 1, 1}, 0, 1 << 24},
	{"elementwise tiny blocks", "vadd", "pppnp", {65536, 1, 1}, {256, 1, 1}, 0, 1 << 24},
	{"matrix product in tiles", "matmul_tiled", "pppnp", {128, 128, 1}, {16, 16, 1}, 0, 2048},
	{"reduction by barriers", "reduce_tree", "ppnp", {65536, 1, 1}, {256, 1, 1}, 1024, 1 << 24},
	{"reduction by barriers 1024",
	 "reduce_tree",
	 "ppnp",
	 {16384, 1, 1},
	 {1024, 1, 1},
	 4096,
	 1 << 24},
	{"scan by shuffles", "block_scan", "ppp", {65536, 1, 1}, {256, 1, 1}, 0, 0},
};

static bool gpu;
static int launches = 1; /* that are timed as one */
static CUdeviceptr buffers[BUFFERS], runs, words;
static CUstream stream;
static CUevent begin, end;

static double cpu_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static void name_target(char *target, size_t size)
{
	int major, minor;

	OK(cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0));
	OK(cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0));
	snprintf(target, size, "sm_%d%d", major, minor);
}

/* The conformance kernel of that name, compiled and transformed, as tally's cache would do it. */
static CUmodule load(const char *kernel)
{
	const char *build = getenv("TALLY_BUILD");
	char lower[512], input[512], target[16] = "x86-64", object[] = "/tmp/tally-bench-XXXXXX";
	char *arguments[] = {lower,	    input, "--target", target, "--transform",
			     "slice,guard", "-o",  object,     NULL};
	struct bench_run run = {.arguments = arguments};
	CUmodule module;

	build = build ? build : TALLY_BUILD_DIR;
	snprintf(lower, sizeof lower, "%s/bin/tally-lower", build);
	snprintf(input, sizeof input, "%s/conformance/kernels/%s.ptx", build, kernel);
	if (gpu)
		name_target(target, sizeof target);
	if (mkstemp(object) < 0)
		bench_fail("cannot make a file in /tmp");
	bench_process(&run);
	OK(cuModuleLoad(&module, object));
	unlink(object);
	return module;
}

/* So many launches and their end: the time of one in us. `ranges` NULL: the kernel as it was. */
static double launch_all(const struct kernel_case *c, CUfunction function,
			 struct tally_launch *ranges, double *wall)
{
	unsigned n = c->n, used = 0, blocks = c->grid[0] * c->grid[1] * c->grid[2];
	void *parameters[16];
	size_t count = 0;
	double from, start;
	float ms;

	for (const char *p = c->parameters; *p; p++)
		parameters[count++] = *p == 'n' ? (void *)&n : p[1] ? &buffers[used++] : &runs;
	from = bench_now_us();
	start = cpu_us();
	OK(cuEventRecord(begin, stream));
	for (int i = 0; i < launches; i++) {
		if (ranges)
			parameters[count] = &ranges[i];
		if (ranges)
			OK(cuLaunchKernel(function, blocks, 1, 1, c->block[0], c->block[1],
					  c->block[2], c->shared, stream, parameters, NULL));
		else
			OK(cuLaunchKernel(function, c->grid[0], c->grid[1], c->grid[2], c->block[0],
					  c->block[1], c->block[2], c->shared, stream, parameters,
					  NULL));
	}
	OK(cuEventRecord(end, stream));
	OK(cuStreamSynchronize(stream));
	*wall = (bench_now_us() - from) / launches;
	if (!gpu)
		return (cpu_us() - start) / launches;
	OK(cuEventElapsedTime(&ms, begin, end));
	return (double)ms * 1e3 / launches;
}

/* Control blocks that nobody stops, as libtally.so makes them. */
static void make_ranges(const struct kernel_case *c, struct tally_launch *ranges)
{
	unsigned blocks = c->grid[0] * c->grid[1] * c->grid[2];

	OK(cuMemsetD8(words, 0, WORDS_BYTES));
	for (int i = 0; i < launches; i++) {
		struct tally_control control = {.gate = words + 128,
						.broken = words + 192,
						.mailbox = words + 256,
						.sequence = (unsigned)i + 1,
						.hi = blocks};
		CUdeviceptr at = words + 512 + 64 * (unsigned)i;

		OK(cuMemcpyHtoD(at, &control, sizeof control));
		ranges[i] = (struct tally_launch){
			.control = at, .hi = blocks, .grid = {c->grid[0], c->grid[1], c->grid[2]}};
	}
}

static unsigned runs_of_block_0(void)
{
	unsigned count;

	OK(cuMemcpyDtoH(&count, runs, sizeof count));
	return count;
}

static void measure(const struct kernel_case *c)
{
	static double plain[ROUNDS], guarded[ROUNDS], ratios[ROUNDS], wall_ratios[ROUNDS];
	unsigned blocks = c->grid[0] * c->grid[1] * c->grid[2], before;
	char variant[64], name[96], beside[128];
	CUmodule module = load(c->kernel);
	CUfunction original, stoppable;
	double walls[2], block_us;

	snprintf(variant, sizeof variant, "%s$slice_guard", c->kernel);
	OK(cuModuleGetFunction(&original, module, c->kernel));
	OK(cuModuleGetFunction(&stoppable, module, variant));
	before = runs_of_block_0();
	for (int round = -2; round < ROUNDS; round++) {
		int at = round < 0 ? 0 : round;
		struct tally_launch ranges[MOST_LAUNCHES];

		make_ranges(c, ranges);
		/* Which of the two comes first changes from round to round. */
		if (round & 1)
			plain[at] = launch_all(c, original, NULL, &walls[0]);
		guarded[at] = launch_all(c, stoppable, ranges, &walls[1]);
		if (!(round & 1))
			plain[at] = launch_all(c, original, NULL, &walls[0]);
		ratios[at] = guarded[at] / plain[at];
		wall_ratios[at] = walls[1] / walls[0];
	}
	if (runs_of_block_0() - before != 2 * (ROUNDS + 2) * (unsigned)launches)
		bench_fail("%s: block 0 did not run once in each launch", c->kernel);
	block_us = bench_median(plain, ROUNDS) / blocks;
	snprintf(name, sizeof name, "%s (%s)", c->title, c->kernel);
	if (gpu)
		snprintf(beside, sizeof beside, "launch %.1f us; %u blocks of %u threads",
			 bench_median(plain, ROUNDS), blocks, c->block[0] * c->block[1]);
	else
		snprintf(beside, sizeof beside,
			 "block %.2f us; %u blocks of %u threads; elapsed %.3fx", block_us, blocks,
			 c->block[0] * c->block[1], bench_median(wall_ratios, ROUNDS));
	bench_report(
		&(struct bench_figure){.name = name,
				       .unit = "x",
				       .value = bench_median(ratios, ROUNDS),
				       .bound = !gpu && block_us >= SHORTEST_BOUND_US ? 1.05 : 0,
				       .samples = ratios,
				       .count = ROUNDS,
				       .beside = beside});
	OK(cuModuleUnload(module));
}

int main(void)
{
	const char *device = getenv("GUARD_DEVICE");
	const struct kernel_case *list = cases;
	size_t count = sizeof cases / sizeof *cases;

	gpu = device && !strcmp(device, "cuda");
	if (gpu) {
		list = gpu_cases;
		count = sizeof gpu_cases / sizeof *gpu_cases;
		launches = MOST_LAUNCHES;
	}
	bench_begin("guard", gpu ? "kernels that can be stopped against plain ones, GPU"
				 : "kernels that can be stopped against plain ones, CPU device, "
				   "CPU time");
	bench_device();
	OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	OK(cuEventCreate(&begin, CU_EVENT_DEFAULT));
	OK(cuEventCreate(&end, CU_EVENT_DEFAULT));
	for (int i = 0; i < BUFFERS; i++) {
		OK(cuMemAlloc(&buffers[i], BUFFER_BYTES));
		OK(cuMemsetD8(buffers[i], 0, BUFFER_BYTES));
	}
	OK(cuMemAlloc(&runs, RUNS_BYTES));
	OK(cuMemsetD8(runs, 0, RUNS_BYTES));
	OK(cuMemAlloc(&words, WORDS_BYTES));
	for (size_t k = 0; k < count; k++)
		measure(&list[k]);
	return 0;
}
