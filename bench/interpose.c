/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What libtally.so costs a loop of 100,000 empty launches on the CPU device: the same program
 * without the preload and in each way of being preloaded, in turn, several times in one run. A
 * turn's figure is the whole loop. The program keeps to one CPU: with two, a launch costs 170 or
 * 800 ns as the submitting thread and the worker happen to meet at the queue's lock, and the ratio
 * is one of those states, not of the library. With an argument it is the program itself.
 *
 * Best effort runs such a kernel as it is, and pays for the depth limit: a mark behind every few
 * launches, and waiting when enough is queued. What each launch would cost in the stoppable form is
 * shown beside it and has no bound.
 */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "bench/device.h"

enum { LAUNCHES = 100000, PARTS = 50, TURNS = 11, BOUND_PERCENT = 5 };

static double cpu_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

/* To the last CPU that this process may use. */
static void keep_to_one_cpu(void)
{
	cpu_set_t allowed, one;

	CPU_ZERO(&one);
	if (sched_getaffinity(0, sizeof allowed, &allowed))
		return;
	for (int cpu = CPU_SETSIZE - 1; cpu >= 0; cpu--)
		if (CPU_ISSET(cpu, &allowed)) {
			CPU_SET(cpu, &one);
			sched_setaffinity(0, sizeof one, &one);
			return;
		}
}

/* The program: prints ns per launch: elapsed (all), elapsed (median part), CPU time (all threads).
 */
static int program(void)
{
	double parts[PARTS], start, cpu;
	CUfunction empty;

	keep_to_one_cpu();
	bench_device();
	empty = bench_function(BENCH_EMPTY_PTX, "empty");
	for (int i = 0; i < LAUNCHES / 10; i++)
		OK(cuLaunchKernel(empty, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
	OK(cuCtxSynchronize());
	start = bench_now_us();
	cpu = cpu_us();
	for (int part = 0; part < PARTS; part++) {
		double from = bench_now_us();

		for (int i = 0; i < LAUNCHES / PARTS; i++)
			OK(cuLaunchKernel(empty, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
		OK(cuCtxSynchronize());
		parts[part] = (bench_now_us() - from) * 1e3 * PARTS / LAUNCHES;
	}
	start = (bench_now_us() - start) * 1e3 / LAUNCHES;
	cpu = (cpu_us() - cpu) * 1e3 / LAUNCHES;
	printf("%.2f %.2f %.2f\n", start, bench_median(parts, PARTS), cpu);
	return 0;
}

int main(int argc, char **argv)
{
	enum { KINDS = 3 };
	static double figures[KINDS][BENCH_ALL_WAYS][TURNS], ratios[KINDS][BENCH_ALL_WAYS][TURNS];
	char *arguments[] = {argv[0], "program", NULL};

	if (argc > 1)
		return program();
	bench_begin("interpose", "what libtally.so adds to 100,000 empty launches, CPU device");
	for (int turn = 0; turn < TURNS; turn++)
		for (int way = 0; way < BENCH_ALL_WAYS; way++) {
			struct bench_run run = {.arguments = bench_way_arguments(way, arguments),
						.quiet = way >= BENCH_NO_DAEMON,
						.environment = bench_way_environment(way)};

			bench_process(&run);
			if (sscanf(run.output, "%lf %lf %lf", &figures[0][way][turn],
				   &figures[1][way][turn], &figures[2][way][turn]) != KINDS)
				bench_fail("the program said \"%s\"", run.output);
			for (int kind = 0; kind < KINDS; kind++)
				ratios[kind][way][turn] =
					figures[kind][way][turn] / figures[kind][0][turn];
		}
	bench_info(bench_way_names[0], "ns", figures[0][0], TURNS, "a launch");
	for (int way = 1; way < BENCH_ALL_WAYS; way++)
		bench_ratio(bench_way_names[way], ratios[0][way], TURNS,
			    way < BENCH_WAYS ? 1 + BOUND_PERCENT / 100.0 : 0,
			    "%.1f ns; median part %.3fx, CPU time %.3fx",
			    bench_median(figures[0][way], TURNS),
			    bench_median(ratios[1][way], TURNS),
			    bench_median(ratios[2][way], TURNS));
	return 0;
}
