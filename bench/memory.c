/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What libtally.so adds to a program's resident memory: the same program on the CPU device without
 * the preload and in each way of being preloaded, in turn; each loads kernels, launches, and looks
 * at its own /proc/self/smaps_rollup. With an argument it is the program itself.
 */
#include <stdio.h>
#include <string.h>

#include "bench/device.h"

enum { TURNS = 11, LAUNCHES = 2000, KINDS = 3 };

static const char *const kinds[KINDS] = {"Rss:", "Pss:", "Private_Dirty:"};

static int program(void)
{
	double kib[KINDS] = {0}, value;
	char line[256], name[64];
	CUfunction empty;
	CUstream stream;
	CUdeviceptr memory;
	FILE *file;

	bench_device();
	empty = bench_function(BENCH_EMPTY_PTX, "empty");
	OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	OK(cuMemAlloc(&memory, 1 << 20));
	for (int i = 0; i < LAUNCHES; i++) {
		OK(cuLaunchKernel(empty, 8, 1, 1, 32, 1, 1, 0, stream, NULL, NULL));
		if (i % 100 == 0)
			OK(cuMemsetD8Async(memory, 0, 1 << 20, stream));
		/* A long queue is the driver's memory, and how long it gets is chance. */
		if (i % 4 == 3)
			OK(cuStreamSynchronize(stream));
	}
	OK(cuStreamSynchronize(stream));
	file = fopen("/proc/self/smaps_rollup", "r");
	while (file && fgets(line, sizeof line, file))
		for (int k = 0; k < KINDS; k++)
			if (sscanf(line, "%63s %lf", name, &value) == 2 && !strcmp(name, kinds[k]))
				kib[k] = value;
	printf("%.0f %.0f %.0f\n", kib[0], kib[1], kib[2]);
	return 0;
}

int main(int argc, char **argv)
{
	static double mib[KINDS][BENCH_WAYS][TURNS];
	char *arguments[] = {argv[0], "program", NULL};

	if (argc > 1)
		return program();
	bench_begin("memory", "resident memory that libtally.so adds, CPU device");
	for (int turn = 0; turn < TURNS; turn++)
		for (int way = 0; way < BENCH_WAYS; way++) {
			struct bench_run run = {.arguments = arguments,
						.quiet = way == BENCH_NO_DAEMON,
						.environment = bench_way_environment(way)};
			double kib[KINDS];

			bench_process(&run);
			if (sscanf(run.output, "%lf %lf %lf", kib, kib + 1, kib + 2) != KINDS ||
			    kib[0] <= 0)
				bench_fail("the program said \"%s\"", run.output);
			for (int k = 0; k < KINDS; k++)
				mib[k][way][turn] = kib[k] / 1024;
		}
	bench_info(bench_way_names[0], "MiB", mib[0][0], TURNS, "resident, all of the program");
	for (int way = 1; way < BENCH_WAYS; way++) {
		double added[KINDS][TURNS];
		char beside[128];

		for (int k = 0; k < KINDS; k++)
			for (int turn = 0; turn < TURNS; turn++)
				added[k][turn] = mib[k][way][turn] - mib[k][0][turn];
		snprintf(beside, sizeof beside,
			 "its share (PSS) %.2f MiB, private and dirty %.2f MiB",
			 bench_median(added[1], TURNS), bench_median(added[2], TURNS));
		bench_report(&(struct bench_figure){.name = bench_way_names[way],
						    .unit = "MiB",
						    .value = bench_median(added[0], TURNS),
						    .bound = 2,
						    .samples = added[0],
						    .count = TURNS,
						    .beside = beside});
	}
	return 0;
}
