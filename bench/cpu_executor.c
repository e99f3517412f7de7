/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the CPU device's executor costs: ns a barrier and thread, us a block of a tiled matrix
 * multiplication, kernels with barriers as regions against coroutines, guarded against plain
 * kernels. Medians over rounds that alternate, all in one run. Usage: bench_cpu_executor [ROUNDS]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <llvm-c/Core.h>
#include <llvm-c/IRReader.h>

#include "backends/backend.h"
#include "backends/cpu/executor.h"
#include "base/embed.h"
#include "base/file.h"
#include "bench/report.h"
#include "ir_passes/launch_abi.h"
#include "ir_passes/passes.h"

TALLY_EMBEDDED(bench_cpu_kernels);

enum { MOST_ROUNDS = 201 };

static bool compile(struct tally_cpu_image *image, bool coroutines, struct tally_error *error)
{
	LLVMContextRef context = LLVMContextCreate();
	size_t size = (size_t)(bench_cpu_kernels_end - bench_cpu_kernels);
	LLVMMemoryBufferRef text =
		LLVMCreateMemoryBufferWithMemoryRangeCopy(bench_cpu_kernels, size, "kernels");
	struct tally_pass_options passes = {.transforms = TALLY_GUARD, .required = true};
	struct tally_lower_options options = {
		.target = "x86-64", .optimise = 2, .coroutines = coroutines};
	struct tally_buffer object = {0};
	char path[] = "/tmp/tally-bench-XXXXXX", *message = NULL;
	LLVMModuleRef module = NULL;
	int file = mkstemp(path);
	bool ok;

	if (file >= 0)
		close(file);
	ok = !LLVMParseIRInContext(context, text, &module, &message) ||
	     tally_fail(error, "%s", message);
	ok = ok && tally_passes_run(module, &passes, error) &&
	     tally_lowering_cpu.lower(module, &options, &object, error) &&
	     tally_file_write(path, object.data, object.size, error) &&
	     tally_cpu_image_open(path, image, error);
	unlink(path);
	tally_buffer_free(&object);
	return ok;
}

/* ns that the launch's blocks take, each. */
static double time_blocks(struct tally_cpu_worker *worker, const struct tally_cpu_launch *launch,
			  unsigned blocks)
{
	double start = bench_now_us();

	for (unsigned b = 0; b < blocks; b++)
		if (tally_cpu_run_block(worker, launch, b) != TALLY_CPU_OK)
			bench_fail("a block failed: %s", tally_cpu_worker_message(worker));
	return (bench_now_us() - start) * 1e3 / blocks;
}

static const char *number(double value)
{
	static char text[32];

	snprintf(text, sizeof text, "%.2f", value);
	return text;
}

/* One kernel with barriers as regions and as coroutines in turn. */
static void compare_ways(const struct tally_cpu_image images[2], struct tally_cpu_worker *worker,
			 const char *name, const void *params, const uint32_t grid[3],
			 const uint32_t block[3], unsigned barriers, int rounds)
{
	static double regions[MOST_ROUNDS], coroutines[MOST_ROUNDS], ratio[MOST_ROUNDS];
	unsigned blocks = grid[0] * grid[1] * grid[2], threads = block[0] * block[1] * block[2];
	struct tally_cpu_launch launch = {.params = params,
					  .grid = {grid[0], grid[1], grid[2]},
					  .block = {block[0], block[1], block[2]}};
	char title[96];

	for (int r = 0; r < rounds; r++) {
		launch.kernel = tally_cpu_image_kernel(&images[0], name);
		if (!(launch.kernel->flags & TALLY_CPU_REGIONS))
			bench_fail("%s does not run as regions", name);
		regions[r] = time_blocks(worker, &launch, blocks);
		launch.kernel = tally_cpu_image_kernel(&images[1], name);
		coroutines[r] = time_blocks(worker, &launch, blocks);
		ratio[r] = coroutines[r] / regions[r];
	}
	snprintf(title, sizeof title, "%s of %u threads: coroutines / regions", name, threads);
	bench_ratio(title, ratio, (size_t)rounds, 0,
		    "us a block: %.2f and %.2f; ns a barrier and thread: %.2f and %.2f",
		    bench_median(coroutines, (size_t)rounds) / 1e3,
		    bench_median(regions, (size_t)rounds) / 1e3,
		    bench_median(coroutines, (size_t)rounds) / (barriers * threads),
		    bench_median(regions, (size_t)rounds) / (barriers * threads));
}

/* The plain and the guarded kernel of one name in turn. `barriers`: how many a block has. */
static void compare(const struct tally_cpu_image *image, struct tally_cpu_worker *worker,
		    const char *name, const void *params, size_t bytes, const uint32_t grid[3],
		    const uint32_t block[3], unsigned barriers, int rounds)
{
	static double plain[MOST_ROUNDS], guarded[MOST_ROUNDS], ratio[MOST_ROUNDS];
	unsigned blocks = grid[0] * grid[1] * grid[2];
	uint32_t gate = 0, broken = 0;
	uint64_t mailbox = 0;
	struct tally_control control = {.gate = (uintptr_t)&gate,
					.broken = (uintptr_t)&broken,
					.mailbox = (uintptr_t)&mailbox,
					.sequence = 1,
					.hi = blocks};
	struct tally_launch range = {
		.control = (uintptr_t)&control, .hi = blocks, .grid = {grid[0], grid[1], grid[2]}};
	char packed[256], variant[64], title[96];
	struct tally_cpu_launch launch = {.grid = {grid[0], grid[1], grid[2]},
					  .block = {block[0], block[1], block[2]}};

	bytes = (bytes + 7) / 8 * 8;
	memcpy(packed, params, bytes);
	memcpy(packed + bytes, &range, sizeof range);
	snprintf(variant, sizeof variant, "%s$guard", name);
	launch.params = packed;
	for (int r = 0; r < rounds; r++) {
		launch.kernel = tally_cpu_image_kernel(image, name);
		plain[r] = time_blocks(worker, &launch, blocks);
		launch.kernel = tally_cpu_image_kernel(image, variant);
		control.word = 0;
		guarded[r] = time_blocks(worker, &launch, blocks);
		ratio[r] = guarded[r] / plain[r];
	}
	snprintf(title, sizeof title, "%s of %u threads: guarded / plain", name,
		 block[0] * block[1] * block[2]);
	bench_ratio(title, ratio, (size_t)rounds, 0, "%.2f us a block%s%s",
		    bench_median(plain, (size_t)rounds) / 1e3,
		    barriers ? "; ns a barrier and thread: " : "",
		    barriers ? number(bench_median(plain, (size_t)rounds) /
				      (barriers * block[0] * block[1] * block[2]))
			     : "");
}

int main(int argc, char **argv)
{
	enum { N = 1024, WIDTH = 256, BARRIERS = 100 };
	int rounds = argc > 1 ? atoi(argv[1]) : 41;
	struct tally_cpu_worker *worker = tally_cpu_worker_create(0);
	float *a = calloc(N * N, sizeof *a), *b = calloc(N * N, sizeof *b);
	float *c = calloc(N * N, sizeof *c);
	struct tally_cpu_image images[2] = {0}, image;
	struct tally_error error = {0};

	bench_begin("cpu_executor", "what the CPU device's executor costs, one worker");
	if (rounds < 1 || rounds > MOST_ROUNDS)
		rounds = 41;
	if (!worker || !a || !b || !c || !compile(&images[0], false, &error) ||
	    !compile(&images[1], true, &error)) {
		tally_error_print(&error, "bench_cpu_executor");
		return 1;
	}
	struct {
		float *a, *b, *c;
		int n;
	} arrays = {a, b, c, N * N}, matrices = {a, b, c, WIDTH};
	struct {
		float *out;
		int count;
	} barriers = {c, BARRIERS};
	struct {
		float *a, *out;
		int times;
	} sums = {a, c, 1};

	image = images[0];
	compare_ways(images, worker, "barriers", &barriers, (uint32_t[]){64, 1, 1},
		     (uint32_t[]){256, 1, 1}, BARRIERS, rounds);
	compare_ways(images, worker, "matmul", &matrices, (uint32_t[]){4, 8, 1},
		     (uint32_t[]){16, 16, 1}, 2 * WIDTH / 16, rounds);
	compare_ways(images, worker, "reduce", &sums, (uint32_t[]){64, 1, 1},
		     (uint32_t[]){256, 1, 1}, 9, rounds);
	compare_ways(images, worker, "scan", &sums, (uint32_t[]){64, 1, 1}, (uint32_t[]){256, 1, 1},
		     16, rounds);
	compare(&image, worker, "barriers", &barriers, sizeof barriers, (uint32_t[]){64, 1, 1},
		(uint32_t[]){256, 1, 1}, BARRIERS, rounds);
	compare(&image, worker, "barriers", &barriers, sizeof barriers, (uint32_t[]){16, 1, 1},
		(uint32_t[]){1024, 1, 1}, BARRIERS, rounds);
	compare(&image, worker, "matmul", &matrices, sizeof matrices, (uint32_t[]){4, 8, 1},
		(uint32_t[]){16, 16, 1}, 2 * WIDTH / 16, rounds);
	compare(&image, worker, "vadd", &arrays, sizeof arrays, (uint32_t[]){4096, 1, 1},
		(uint32_t[]){256, 1, 1}, 0, rounds);
	compare(&image, worker, "stencil", &arrays, sizeof arrays, (uint32_t[]){1024, 1, 1},
		(uint32_t[]){256, 1, 1}, 0, rounds);
	for (size_t i = 0; i < 2; i++)
		tally_cpu_image_close(&images[i]);
	tally_cpu_worker_destroy(worker);
	free(a);
	free(b);
	free(c);
	return 0;
}
