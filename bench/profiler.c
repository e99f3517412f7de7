/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the profiler costs the program that it looks at: each of its calls on the launch path in a
 * loop, less the same loop empty, turn by turn in one run. What a launch pays is finding its row,
 * one addition and a look whether somebody records.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hash.h"
#include "bench/report.h"
#include "profiler/choice.h"
#include "profiler/profiles.h"
#include "profiler/report.h"

#define ROUNDS	41
#define CALLS	20000
#define KERNELS 300 /* as many as a training step of a large model has */

static struct tally_report *report;
static const struct tally_profiles *profiles;
static struct tally_row_key keys[KERNELS];
static struct tally_report_row *rows[KERNELS];
static volatile uint64_t sink;

static void call_nothing(unsigned i)
{
	sink = i;
}

static void call_launch(unsigned i)
{
	struct tally_report_row *row = tally_report_row(report, &keys[i % KERNELS], "kernel");

	tally_report_launch(row, TALLY_LEVEL_GUARD);
	tally_report_trace(report, TALLY_TRACE_LAUNCH, 1, row, 0);
	sink = i;
}

static void call_known_row(unsigned i)
{
	tally_report_launch(rows[i % KERNELS], TALLY_LEVEL_GUARD);
	sink = i;
}

static void call_sample(unsigned i)
{
	tally_report_sample(rows[i % KERNELS], TALLY_LEVEL_GUARD, 20000 + i, 100);
	sink = i;
}

static void call_stop(unsigned i)
{
	tally_report_stop(report, rows[i % KERNELS], TALLY_LEVEL_GUARD, 20000 + i, 0);
	sink = i;
}

static void call_event(unsigned i)
{
	tally_report_record(report, TALLY_TRACE_LAUNCH, 0, 1, rows[i % KERNELS], i);
	sink = i;
}

static void call_choose(unsigned i)
{
	static const struct tally_choice_options options;
	struct tally_known known;

	tally_known_gather(&known, rows[i % KERNELS], NULL);
	known.allowed = ~0u;
	sink = tally_choose(&known, &options).duration_ns;
}

static void call_find(unsigned i)
{
	sink = (uintptr_t)tally_profiles_find(profiles, &keys[i % KERNELS]);
}

static double time_one(void (*call)(unsigned i))
{
	uint64_t start = tally_now();

	for (unsigned i = 0; i < CALLS; i++)
		call(i);
	return (double)(tally_now() - start) / CALLS;
}

/* `bound` in ns; 0: for information. */
static void figure(const char *name, void (*call)(unsigned i), double bound)
{
	double values[ROUNDS], empty[ROUNDS];
	char beside[64];

	for (unsigned round = 0; round < ROUNDS; round++) {
		empty[round] = time_one(call_nothing);
		values[round] = time_one(call) - empty[round];
	}
	snprintf(beside, sizeof beside, "less an empty loop's %.1f ns",
		 bench_median(empty, ROUNDS));
	bench_report(&(struct bench_figure){.name = name,
					    .unit = "ns",
					    .value = bench_median(values, ROUNDS),
					    .bound = bound,
					    .samples = values,
					    .count = ROUNDS,
					    .beside = beside});
}

static void prepare(int *fd)
{
	static struct tally_row known[KERNELS];
	struct tally_report_identity identity = {.name = "bench"};
	struct tally_origin origin = tally_origin_of("", "", "");
	struct tally_error error = {0};
	uint64_t size;

	report = tally_report_create(&identity, fd);
	if (!report || *fd < 0)
		bench_fail("cannot make a report");
	for (unsigned i = 0; i < KERNELS; i++) {
		unsigned grid[3] = {i % 7 * 100 + 1, i / 7 + 1, 1}, block[3] = {256, 1, 1};

		keys[i] = tally_report_key(NULL, tally_hash_64(&i, sizeof i), grid, block, 0);
		rows[i] = tally_report_row(report, &keys[i], "kernel");
		tally_report_sample(rows[i], TALLY_LEVEL_GATE, 50000, 100);
		known[i].key = keys[i];
	}
	int table = tally_profiles_make(&origin, known, KERNELS, &size, &error);
	profiles = tally_profiles_map(table, &origin, &error);
	if (!profiles)
		bench_fail("%s", error.message);
	close(table);
}

/* Pages of the mapped file that are there: what the report takes of the machine. */
static void memory(void)
{
	char line[256];
	double kib = -1;
	bool ours = false;
	FILE *maps = fopen("/proc/self/smaps", "re");

	while (maps && kib < 0 && fgets(line, sizeof line, maps)) {
		if (strchr(line, '-') && strstr(line, " rw-s "))
			ours = strstr(line, "tally-report") != NULL;
		else if (ours)
			sscanf(line, "Rss: %lf kB", &kib);
	}
	if (maps)
		fclose(maps);
	if (kib < 0)
		bench_fail("the report is not in /proc/self/smaps");
	kib /= 1024;
	bench_report(&(struct bench_figure){.name = "memory of a report of 300 kernels",
					    .unit = "MiB",
					    .value = kib,
					    .bound = 1,
					    .samples = &kib,
					    .count = 1});
}

int main(void)
{
	struct tally_error error = {0};
	int fd;

	bench_begin("profiler", "what the profiler's calls take of a launch, 300 kernels in turn");
	prepare(&fd);
	memory();
	figure("a launch: its row; counted; nobody records", call_launch, 40);
	figure("counted in a row that is known", call_known_row, 0);
	figure("a time", call_sample, 0);
	figure("a stop", call_stop, 0);
	figure("a choice", call_choose, 0);
	figure("what earlier runs measured: found", call_find, 0);
	if (!tally_trace_request(fd, UINT64_MAX, &error))
		bench_fail("%s", error.message);
	figure("an event while somebody records", call_event, 0);
	close(fd);
	tally_report_destroy(report);
	tally_profiles_unmap(profiles);
	return 0;
}
