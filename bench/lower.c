/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tally-lower beside llc on the same bitcode files of one kernel each, whole processes run in turn,
 * in one run. Both write PTX for sm_80; tally-lower lifts, verifies and (second row) transforms
 * besides. ptxas, which has to run after either, is there to say how much the difference matters.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "bench/report.h"

enum { ROUNDS = 15, WAYS = 4, BOUND = 3 };

#define FOLDER TALLY_BUILD_DIR "/conformance/kernels/"

static const char *const kernels[] = {"vadd", "matmul_tiled", "reduce_warp", "math_library"};
static char output[] = "/tmp/tally-bench-XXXXXX", ptx[] = "/tmp/tally-bench-XXXXXX";

static void measure(const char *kernel)
{
	static double wall[WAYS][ROUNDS], cpu[WAYS][ROUNDS];
	static const char *const titles[] = {"llc", "tally-lower / llc",
					     "with slice and guard / llc",
					     "with slice and guard / ptxas"};
	char input[512], name[96];
	char *llc[] = {TALLY_LLVM_BIN "/llc", "-mcpu=sm_80", input, "-o", output, NULL};
	char *plain[] = {
		TALLY_BUILD_DIR "/bin/tally-lower", input, "--target", "sm_80", "-o", output, NULL};
	char *both[] = {TALLY_BUILD_DIR "/bin/tally-lower",
			input,
			"--target",
			"sm_80",
			"--transform",
			"slice,guard",
			"-o",
			ptx,
			NULL};
	char *ptxas[] = {TALLY_PTXAS, "-arch=sm_80", ptx, "-o", output, NULL};
	struct bench_run runs[WAYS] = {{.arguments = llc},
				       {.arguments = plain},
				       {.arguments = both},
				       {.arguments = ptxas}};
	int ways = access(TALLY_PTXAS, X_OK) ? WAYS - 1 : WAYS;

	snprintf(input, sizeof input, "%s%s.bc", FOLDER, kernel);
	for (int round = 0; round < ROUNDS; round++)
		for (int way = 0; way < ways; way++) {
			bench_process(&runs[way]);
			wall[way][round] = runs[way].wall_us;
			cpu[way][round] = runs[way].cpu_us;
		}
	for (int way = 1; way < ways; way++) {
		double ratios[ROUNDS], cpu_ratios[ROUNDS];
		int against = way < 3 ? 0 : 3, what = way < 3 ? way : 2;

		for (int round = 0; round < ROUNDS; round++) {
			ratios[round] = wall[what][round] / wall[against][round];
			cpu_ratios[round] = cpu[what][round] / cpu[against][round];
		}
		snprintf(name, sizeof name, "%s: %s", kernel, titles[way]);
		bench_ratio(name, ratios, ROUNDS, way < 3 ? BOUND : 0,
			    "CPU time %.3fx; %.1f ms against %.1f ms",
			    bench_median(cpu_ratios, ROUNDS),
			    bench_median(wall[what], ROUNDS) / 1e3,
			    bench_median(wall[against], ROUNDS) / 1e3);
	}
}

int main(void)
{
	int files[] = {mkstemp(output), mkstemp(ptx)};

	bench_begin("lower", "tally-lower beside llc, whole processes in turn, wall time");
	if (files[0] < 0 || files[1] < 0)
		bench_fail("cannot make a file in /tmp");
	for (size_t k = 0; k < sizeof kernels / sizeof *kernels; k++)
		measure(kernels[k]);
	unlink(output);
	unlink(ptx);
	return 0;
}
