/* SPDX-License-Identifier: Apache-2.0 */
/* Shows that tallyCpuBackground() puts the workers, and no thread of the application, where Linux
 * runs them only when nobody else wants the CPU, and that kernels still come to their end there. */
#include "driver_tests.h"

#include <dirent.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#include "backends/cpu/driver/tally_cpu.h"

/* Counts the threads named like workers, and those of them that are SCHED_IDLE. */
static void look_at_workers(int *workers, int *idle)
{
	DIR *tasks = opendir("/proc/self/task");
	struct dirent *entry;

	*workers = *idle = 0;
	assert_non_null(tasks);
	while ((entry = readdir(tasks))) {
		char path[64], name[32] = "";
		int thread = atoi(entry->d_name);
		FILE *file;

		snprintf(path, sizeof path, "/proc/self/task/%d/comm", thread);
		file = thread ? fopen(path, "r") : NULL;
		if (!file)
			continue;
		if (fgets(name, sizeof name, file) && !strcmp(name, "tally-cpu\n")) {
			++*workers;
			*idle += sched_getscheduler(thread) == SCHED_IDLE;
		}
		fclose(file);
	}
	closedir(tasks);
}

static void run_blocks(void)
{
	enum { BLOCKS = 2000 };
	uint32_t *count = zeroed(BLOCKS * 4);
	void *params[] = {&count};

	for (int i = 0; i < 20; i++)
		OK(cuLaunchKernel(kernel("count"), BLOCKS, 1, 1, 32, 1, 1, 0, NULL, params, NULL));
	OK(cuCtxSynchronize());
	for (int i = 0; i < BLOCKS; i++)
		assert_int_equal(count[i], 20);
	OK(cuMemFree((CUdeviceptr)count));
}

static void workers_step_back(void **state)
{
	int workers, idle;

	run_blocks();
	look_at_workers(&workers, &idle);
	assert_int_equal(idle, 0);
	tallyCpuBackground();
	/* A waiting thread no longer runs blocks: all of these are the workers', which on a busy
	 * machine take their time from now on. */
	for (uint64_t start = tally_now();;) {
		run_blocks();
		look_at_workers(&workers, &idle);
		assert_true(workers > 0);
		if (idle > 0)
			break;
		be_patient(start);
	}
	assert_int_equal(sched_getscheduler(0), SCHED_OTHER);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(workers_step_back)};

	return cmocka_run_group_tests(tests, start_driver, stop_driver);
}
