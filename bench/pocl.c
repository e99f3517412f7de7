/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The CPU device beside PoCL: the same kernels (pocl.cl), launch sizes and processors, in turn, and
 * their results compared. A ratio is this device's time over PoCL's. Without PoCL there is one line
 * that says what to install. Usage: bench_pocl [KERNEL]
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

#include "base/embed.h"
#include "bench/device.h"

TALLY_EMBEDDED(bench_pocl_ptx);
TALLY_EMBEDDED(bench_pocl_text);

enum { ROUNDS = 25, MOST = 1 << 22, WIDTH = 256, IMAGE = 1024, TURN_US = 3000 };

#define CL(call)                                                                                   \
	do {                                                                                       \
		cl_int result_ = (call);                                                           \
		if (result_)                                                                       \
			bench_fail("%s: OpenCL error %d", #call, result_);                         \
	} while (0)

/* All kernels have the parameters a, b (both in), c (out), n. */
static const struct kernel_case {
	const char *name;
	unsigned grid[2], block[2], n;
	unsigned results; /* floats of c that are compared */
	double tolerance; /* relative; approximate functions and contraction may differ */
	bool integers;	  /* c is int, and added to */
	unsigned strays;  /* results that may differ: one rounding decides */
} cases[] = {
	{"vadd", {4096, 1}, {256, 1}, 1 << 20, 1 << 20, 0, false, 0},
	{"saxpy", {4096, 1}, {256, 1}, 1 << 20, 1 << 20, 1e-6, false, 0},
	{"matmul", {WIDTH / 16, WIDTH / 16}, {16, 16}, WIDTH, WIDTH * WIDTH, 1e-5, false, 0},
	{"matmul_tiled", {WIDTH / 16, WIDTH / 16}, {16, 16}, WIDTH, WIDTH * WIDTH, 1e-5, false, 0},
	{"reduce", {4096, 1}, {256, 1}, 1 << 20, 4096, 1e-5, false, 0},
	{"transpose", {IMAGE / 16, IMAGE / 16}, {16, 16}, IMAGE, IMAGE * IMAGE, 0, false, 0},
	{"histogram", {1024, 1}, {256, 1}, 1 << 20, 256, 0, true, 0},
	{"nbody", {8, 1}, {256, 1}, 2048, 2048, 1e-3, false, 0},
	{"stencil", {IMAGE / 32, IMAGE / 8}, {32, 8}, IMAGE, IMAGE * IMAGE, 1e-5, false, 0},
	{"black_scholes", {4096, 1}, {256, 1}, 1 << 20, 1 << 20, 1e-3, false, 0},
	{"scan", {4096, 1}, {256, 1}, 1 << 20, 1 << 20, 1e-5, false, 0},
	{"mandelbrot", {16, 32}, {16, 8}, 256, 256 * 256, 0, false, 256},
};

static CUdeviceptr device[3];
static CUstream stream;
static CUmodule module;
static cl_command_queue queue;
static cl_program program;
static cl_mem memory[3];
static float *host[2], *inputs[2];

/* The first device whose platform is PoCL; false when there is none. */
static bool find_pocl(cl_device_id *found)
{
	cl_platform_id platforms[16];
	cl_uint count = 0;
	char name[128];

	if (clGetPlatformIDs(16, platforms, &count))
		return false;
	for (cl_uint p = 0; p < count && p < 16; p++)
		if (!clGetPlatformInfo(platforms[p], CL_PLATFORM_NAME, sizeof name, name, NULL) &&
		    strstr(name, "Portable Computing Language"))
			return !clGetDeviceIDs(platforms[p], CL_DEVICE_TYPE_CPU, 1, found, NULL);
	return false;
}

static void open_pocl(cl_device_id id)
{
	const char *text = bench_pocl_text;
	size_t size = (size_t)(bench_pocl_text_end - bench_pocl_text);
	cl_int result;
	cl_context context = clCreateContext(NULL, 1, &id, NULL, NULL, &result);

	CL(result);
	queue = clCreateCommandQueue(context, id, 0, &result);
	CL(result);
	program = clCreateProgramWithSource(context, 1, &text, &size, &result);
	CL(result);
	CL(clBuildProgram(program, 1, &id, "", NULL, NULL));
	for (int i = 0; i < 3; i++) {
		memory[i] = clCreateBuffer(context, CL_MEM_READ_WRITE, MOST * sizeof(float), NULL,
					   &result);
		CL(result);
	}
}

static void fill(void)
{
	unsigned state = 1;

	for (int i = 0; i < 2; i++) {
		host[i] = calloc(MOST, sizeof(float));
		inputs[i] = calloc(MOST, sizeof(float));
		if (!host[i] || !inputs[i])
			bench_fail("out of memory");
		for (int k = 0; k < MOST; k++) {
			state = state * 1664525 + 1013904223;
			inputs[i][k] = (float)(state >> 8) / (1 << 24);
		}
		OK(cuMemcpyHtoD(device[i], inputs[i], MOST * sizeof(float)));
		CL(clEnqueueWriteBuffer(queue, memory[i], CL_TRUE, 0, MOST * sizeof(float),
					inputs[i], 0, NULL, NULL));
	}
}

/* us that a launch takes, of `times` in a row. */
static double run_ours(const struct kernel_case *c, CUfunction function, int times)
{
	unsigned n = c->n;
	void *params[] = {&device[0], &device[1], &device[2], &n};
	double start = bench_now_us();

	for (int i = 0; i < times; i++)
		OK(cuLaunchKernel(function, c->grid[0], c->grid[1], 1, c->block[0], c->block[1], 1,
				  0, stream, params, NULL));
	OK(cuStreamSynchronize(stream));
	return (bench_now_us() - start) / times;
}

static double run_pocl(const struct kernel_case *c, cl_kernel kernel, int times)
{
	size_t local[2] = {c->block[0], c->block[1]};
	size_t global[2] = {c->grid[0] * local[0], c->grid[1] * local[1]};
	double start = bench_now_us();

	for (int i = 0; i < times; i++)
		CL(clEnqueueNDRangeKernel(queue, kernel, 2, NULL, global, local, 0, NULL, NULL));
	CL(clFinish(queue));
	return (bench_now_us() - start) / times;
}

/* Both run once on cleared results, which are to be the same. */
static void compare(const struct kernel_case *c, CUfunction function, cl_kernel kernel)
{
	const float zero = 0;
	unsigned strays = 0;

	OK(cuMemsetD8(device[2], 0, MOST * sizeof(float)));
	CL(clEnqueueFillBuffer(queue, memory[2], &zero, sizeof zero, 0, MOST * sizeof(float), 0,
			       NULL, NULL));
	run_ours(c, function, 1);
	run_pocl(c, kernel, 1);
	OK(cuMemcpyDtoH(host[0], device[2], MOST * sizeof(float)));
	CL(clEnqueueReadBuffer(queue, memory[2], CL_TRUE, 0, MOST * sizeof(float), host[1], 0, NULL,
			       NULL));
	for (unsigned i = 0; i < c->results; i++) {
		double x = host[0][i], y = host[1][i];

		if (c->integers ? memcmp(&host[0][i], &host[1][i], 4) != 0
				: !(fabs(x - y) <= c->tolerance * fmax(1, fabs(y))))
			strays++;
		if (strays > c->strays)
			bench_fail("%s: result %u is %g here, %g with PoCL", c->name, i, x, y);
	}
}

/* The median of this device's time over PoCL's. */
static double measure(const struct kernel_case *c)
{
	double ours[ROUNDS], theirs[ROUNDS], ratios[ROUNDS], once;
	CUfunction function;
	cl_int result;
	cl_kernel kernel = clCreateKernel(program, c->name, &result);
	cl_int n = (cl_int)c->n;
	int times;

	CL(result);
	OK(cuModuleGetFunction(&function, module, c->name));
	for (cl_uint i = 0; i < 3; i++)
		CL(clSetKernelArg(kernel, i, sizeof(cl_mem), &memory[i]));
	CL(clSetKernelArg(kernel, 3, sizeof n, &n));
	compare(c, function, kernel);
	once = run_pocl(c, kernel, 1);
	times = once < TURN_US ? (int)(TURN_US / once) + 1 : 1;
	for (int round = 0; round < ROUNDS; round++) {
		if (round & 1)
			ours[round] = run_ours(c, function, times);
		theirs[round] = run_pocl(c, kernel, times);
		if (!(round & 1))
			ours[round] = run_ours(c, function, times);
		ratios[round] = ours[round] / theirs[round];
	}
	CL(clReleaseKernel(kernel));
	bench_ratio(c->name, ratios, ROUNDS, 0,
		    "us a launch: %.1f, PoCL %.1f; least %.1f and %.1f; %u blocks of %u threads",
		    bench_median(ours, ROUNDS), bench_median(theirs, ROUNDS),
		    bench_quantile(ours, ROUNDS, 0), bench_quantile(theirs, ROUNDS, 0),
		    c->grid[0] * c->grid[1], c->block[0] * c->block[1]);
	return bench_median(ratios, ROUNDS);
}

int main(int argc, char **argv)
{
	double logarithms = 0;
	unsigned count = 0;
	cl_device_id id;

	bench_begin("pocl", "this device's time over PoCL's, same kernels and processors");
	if (!find_pocl(&id)) {
		puts("  skipped: no PoCL here (Debian: apt-get install pocl-opencl-icd)");
		return 0;
	}
	open_pocl(id);
	bench_device();
	OK(cuStreamCreate(&stream, CU_STREAM_DEFAULT));
	OK(cuModuleLoadData(&module, bench_pocl_ptx));
	for (int i = 0; i < 3; i++)
		OK(cuMemAlloc(&device[i], MOST * sizeof(float)));
	fill();
	for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
		if (argc > 1 && strcmp(argv[1], cases[k].name))
			continue;
		logarithms += log(measure(&cases[k]));
		count++;
	}
	if (!count)
		bench_fail("no kernel named \"%s\"", argv[1]);
	bench_report(&(struct bench_figure){.name = "geometric mean",
					    .unit = "x",
					    .value = exp(logarithms / count),
					    .bound = argc > 1 ? 0 : 1,
					    .count = count});
	return 0;
}
