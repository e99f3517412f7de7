/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What libtally.so costs a loop of 100,000 empty launches on the CPU device: the same program
 * without the preload, with it unscheduled, as high priority and as best effort, in turn, several
 * times in one run. Prints medians and ratios.
 *
 * Run by bench/interpose.sh, which starts tallyd. With an argument it is the program itself.
 */
#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { LAUNCHES = 100000, BATCHES = 50, TURNS = 9 };

static const char ptx[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
			  ".visible .entry empty()\n{\n\tret;\n}\n";

#define OK(call)                                                                                   \
	do {                                                                                       \
		CUresult result_ = (call);                                                         \
		if (result_) {                                                                     \
			fprintf(stderr, "bench: error: %s: error %d\n", #call, result_);           \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* The program: prints nanoseconds per launch, of the quickest of its batches: other programs of the
 * machine only ever add to that. */
static int program(void)
{
	CUdevice device;
	CUcontext context;
	CUmodule module;
	CUfunction empty;
	double best = 0;

	OK(cuInit(0));
	OK(cuDeviceGet(&device, 0));
	OK(cuDevicePrimaryCtxRetain(&context, device));
	OK(cuCtxSetCurrent(context));
	OK(cuModuleLoadData(&module, ptx));
	OK(cuModuleGetFunction(&empty, module, "empty"));
	for (int i = 0; i < LAUNCHES / 10; i++)
		OK(cuLaunchKernel(empty, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
	OK(cuCtxSynchronize());
	for (int batch = 0; batch < BATCHES; batch++) {
		double start = now(), each;

		for (int i = 0; i < LAUNCHES / BATCHES; i++)
			OK(cuLaunchKernel(empty, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
		OK(cuCtxSynchronize());
		each = (now() - start) / (LAUNCHES / BATCHES);
		best = batch && best < each ? best : each;
	}
	printf("%.1f\n", best);
	return 0;
}

/* Runs the program once more, as `priority` (NULL: without the preload, "": unscheduled). */
static double run(const char *self, const char *priority)
{
	char line[64] = "";
	int out[2], status;
	pid_t pid;

	if (pipe(out))
		exit(1);
	pid = fork();
	if (!pid) {
		dup2(out[1], STDOUT_FILENO);
		if (priority)
			setenv("LD_PRELOAD", getenv("BENCH_PRELOAD"), 1);
		if (priority && *priority)
			setenv("TALLY_PRIORITY", priority, 1);
		execl(self, self, "program", (char *)NULL);
		_exit(1);
	}
	close(out[1]);
	if (read(out[0], line, sizeof line - 1) <= 0 || waitpid(pid, &status, 0) != pid || status) {
		fprintf(stderr, "bench: error: the program failed\n");
		exit(1);
	}
	close(out[0]);
	return atof(line);
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name, *priority;
	} ways[] = {
		{"without libtally.so", NULL},
		{"preloaded, unscheduled", ""},
		{"preloaded, high priority", "high"},
		{"preloaded, best effort", "best-effort"},
	};
	enum { WAYS = sizeof ways / sizeof *ways };
	double figures[WAYS][TURNS], ratios[WAYS][TURNS];

	if (argc > 1)
		return program();
	if (!getenv("BENCH_PRELOAD")) {
		fprintf(stderr, "bench: error: run bench/interpose.sh\n");
		return 1;
	}
	for (int turn = 0; turn < TURNS; turn++)
		for (int way = 0; way < WAYS; way++) {
			figures[way][turn] = run(argv[0], ways[way].priority);
			ratios[way][turn] = figures[way][turn] / figures[0][turn];
		}
	printf("%d empty launches, ns per launch (quickest of %d batches; median of %d turns, "
	       "interleaved)\n",
	       LAUNCHES, BATCHES, TURNS);
	for (int way = 0; way < WAYS; way++) {
		qsort(figures[way], TURNS, sizeof(double), by_size);
		qsort(ratios[way], TURNS, sizeof(double), by_size);
		printf("%-26s %8.1f   ratio %.3f\n", ways[way].name, figures[way][TURNS / 2],
		       ratios[way][TURNS / 2]);
	}
	return 0;
}
