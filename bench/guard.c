/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What it costs a kernel on the CPU device that each of its blocks may be stopped: K against
 * K$slice_guard of the same module, launched in turn through the driver with all workers. The time
 * is the process's CPU time, since a guard costs nothing else and the machine may have other work.
 * A launch is bound when its blocks take 5 us and more.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "bench/device.h"
#include "ir_passes/launch_abi.h"

enum { ROUNDS = 61, BUFFERS = 4, BUFFER_BYTES = 64 << 20, RUNS_BYTES = 1 << 20 };
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

static CUdeviceptr buffers[BUFFERS], runs, words;
static CUstream stream;

static double cpu_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

/* The conformance kernel of that name, compiled and transformed, as tally's cache would do it. */
static CUmodule load(const char *kernel)
{
	char input[512], object[] = "/tmp/tally-bench-XXXXXX";
	char *arguments[] = {TALLY_BUILD_DIR "/bin/tally-lower",
			     input,
			     "--target",
			     "x86-64",
			     "--transform",
			     "slice,guard",
			     "-o",
			     object,
			     NULL};
	struct bench_run run = {.arguments = arguments};
	CUmodule module;

	snprintf(input, sizeof input, TALLY_BUILD_DIR "/conformance/kernels/%s.ptx", kernel);
	if (mkstemp(object) < 0)
		bench_fail("cannot make a file in /tmp");
	bench_process(&run);
	OK(cuModuleLoad(&module, object));
	unlink(object);
	return module;
}

/* One launch and its end: its CPU time in us. `range` NULL: the kernel as it was. */
static double launch_once(const struct kernel_case *c, CUfunction function,
			  const struct tally_launch *range, double *wall)
{
	unsigned n = c->n, used = 0;
	void *parameters[16];
	size_t count = 0;
	double from, start;

	for (const char *p = c->parameters; *p; p++)
		parameters[count++] = *p == 'n' ? (void *)&n : p[1] ? &buffers[used++] : &runs;
	if (range)
		parameters[count++] = (void *)(uintptr_t)range;
	from = bench_now_us();
	start = cpu_us();
	if (range)
		OK(cuLaunchKernel(function, range->hi, 1, 1, c->block[0], c->block[1], c->block[2],
				  c->shared, stream, parameters, NULL));
	else
		OK(cuLaunchKernel(function, c->grid[0], c->grid[1], c->grid[2], c->block[0],
				  c->block[1], c->block[2], c->shared, stream, parameters, NULL));
	OK(cuStreamSynchronize(stream));
	*wall = bench_now_us() - from;
	return cpu_us() - start;
}

/* A control block that nobody stops, as libtally.so makes it. */
static struct tally_launch guarded_range(const struct kernel_case *c)
{
	unsigned blocks = c->grid[0] * c->grid[1] * c->grid[2];
	struct tally_control control = {.gate = words + 128,
					.broken = words + 192,
					.mailbox = words + 256,
					.sequence = 1,
					.hi = blocks};

	OK(cuMemsetD8(words, 0, 512));
	OK(cuMemcpyHtoD(words, &control, sizeof control));
	return (struct tally_launch){
		.control = words, .hi = blocks, .grid = {c->grid[0], c->grid[1], c->grid[2]}};
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
		struct tally_launch range = guarded_range(c);

		/* Which of the two comes first changes from round to round. */
		if (round & 1)
			plain[at] = launch_once(c, original, NULL, &walls[0]);
		guarded[at] = launch_once(c, stoppable, &range, &walls[1]);
		if (!(round & 1))
			plain[at] = launch_once(c, original, NULL, &walls[0]);
		ratios[at] = guarded[at] / plain[at];
		wall_ratios[at] = walls[1] / walls[0];
	}
	if (runs_of_block_0() - before != 2 * (ROUNDS + 2))
		bench_fail("%s: block 0 did not run once in each launch", c->kernel);
	block_us = bench_median(plain, ROUNDS) / blocks;
	snprintf(name, sizeof name, "%s (%s)", c->title, c->kernel);
	snprintf(beside, sizeof beside, "block %.2f us; %u blocks of %u threads; elapsed %.3fx",
		 block_us, blocks, c->block[0] * c->block[1], bench_median(wall_ratios, ROUNDS));
	bench_report(&(struct bench_figure){.name = name,
					    .unit = "x",
					    .value = bench_median(ratios, ROUNDS),
					    .bound = block_us >= SHORTEST_BOUND_US ? 1.05 : 0,
					    .samples = ratios,
					    .count = ROUNDS,
					    .beside = beside});
	OK(cuModuleUnload(module));
}

int main(void)
{
	bench_begin("guard",
		    "kernels that can be stopped against plain ones, CPU device, CPU time");
	bench_device();
	OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	for (int i = 0; i < BUFFERS; i++) {
		OK(cuMemAlloc(&buffers[i], BUFFER_BYTES));
		OK(cuMemsetD8(buffers[i], 0, BUFFER_BYTES));
	}
	OK(cuMemAlloc(&runs, RUNS_BYTES));
	OK(cuMemsetD8(runs, 0, RUNS_BYTES));
	OK(cuMemAlloc(&words, 512));
	for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
		measure(&cases[k]);
	return 0;
}
