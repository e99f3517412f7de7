/* SPDX-License-Identifier: Apache-2.0 */
/* Several threads write a report while others read it, and a writer is killed in the middle of it.
 */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "profiler/report.h"

#define THREADS 4
#define KERNELS 500
#define ROUNDS	40
#define SPACING 1000003u /* value = number * SPACING: a torn event shows */

static struct tally_report *report;
static const struct tally_report *seen;
static _Atomic bool ended;
static _Atomic uint64_t recorded;

static struct tally_report *create(int *fd)
{
	struct tally_report_identity identity = {.name = "t"};
	struct tally_report *r = tally_report_create(&identity, fd);
	struct tally_error error = {0};

	assert_non_null(r);
	seen = tally_report_map(*fd, &error);
	assert_non_null(seen);
	return r;
}

static struct tally_row_key key_of(unsigned i)
{
	unsigned grid[3] = {i + 1, 1, 1}, block[3] = {32, 1, 1};

	return tally_report_key(NULL, 5, grid, block, 0);
}

static void *write_rows(void *argument)
{
	(void)argument;
	for (unsigned round = 0; round < ROUNDS; round++)
		for (unsigned i = 0; i < KERNELS; i++) {
			struct tally_row_key key = key_of(i);
			struct tally_report_row *row = tally_report_row(report, &key, "k");

			tally_report_launch(row, TALLY_LEVEL_GUARD);
			tally_report_sample(row, TALLY_LEVEL_GUARD, 100, i + 1);
			tally_report_stop(report, row, TALLY_LEVEL_GUARD, 5000, 1);
		}
	return NULL;
}

static void *read_rows(void *argument)
{
	bool last;

	(void)argument;
	do {
		last = ended;
		for (unsigned i = 1; i < tally_report_rows(seen); i++) {
			struct tally_row row;

			if (!tally_report_read(seen, i, &row))
				continue;
			const struct tally_stats *s = &row.level[TALLY_LEVEL_GUARD];
			assert_string_equal(row.name, "k");
			assert_int_equal(row.key.kernel, 5);
			/* A sample that is seen is in the sums that are read after it. */
			assert_true(s->ns >= 100 * s->samples);
			assert_true(s->blocks >= row.key.grid[0] * s->samples);
			assert_true(s->drain_ns >= s->stops);
		}
	} while (!last);
	return NULL;
}

static void *write_events(void *argument)
{
	(void)argument;
	for (unsigned i = 0; i < 100000; i++) {
		uint64_t n = atomic_fetch_add(&recorded, 1);
		tally_report_record(report, TALLY_TRACE_LAUNCH, n + 1, (uint32_t)n, NULL,
				    n * SPACING);
	}
	return NULL;
}

static void *read_events(void *argument)
{
	struct tally_trace_cursor cursor = {0};
	struct tally_trace_event event;
	uint64_t got = 0;
	bool last;

	(void)argument;
	do {
		last = ended;
		cursor.ended = last;
		while (tally_trace_next(seen, &cursor, &event)) {
			got++;
			assert_int_equal(event.value, (event.time_ns - 1) * SPACING);
			assert_int_equal(event.stream, (uint32_t)(event.time_ns - 1));
		}
	} while (!last);
	assert_int_equal(got + cursor.lost, seen->trace_head);
	assert_true(got > 0);
	return NULL;
}

/* Runs `writer` in four threads, `reader` in two beside them. */
static void together(void *(*writer)(void *), void *(*reader)(void *))
{
	pthread_t writers[THREADS], readers[2];

	ended = false;
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&readers[i], NULL, reader, NULL), 0);
	for (unsigned i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&writers[i], NULL, writer, NULL), 0);
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(writers[i], NULL);
	ended = true;
	for (unsigned i = 0; i < 2; i++)
		pthread_join(readers[i], NULL);
}

static void test_rows(void **state)
{
	struct tally_row row;
	unsigned found = 0;
	int fd;

	(void)state;
	report = create(&fd);
	together(write_rows, read_rows);
	/* Each kernel has one row, and no launch of any thread was lost. */
	for (unsigned i = 1; i < tally_report_rows(seen); i++) {
		if (!tally_report_read(seen, i, &row))
			continue;
		found++;
		const struct tally_stats *s = &row.level[TALLY_LEVEL_GUARD];
		assert_int_equal(s->launches, THREADS * ROUNDS);
		assert_int_equal(s->samples, THREADS * ROUNDS);
		assert_int_equal(s->ns, 100 * THREADS * ROUNDS);
		assert_int_equal(s->stop[tally_bucket(&tally_coarse, 5000)], THREADS * ROUNDS);
	}
	assert_int_equal(found, KERNELS);
	assert_int_equal(tally_report_rows(report) >= KERNELS + 1, true);
	tally_report_unmap(seen);
	tally_report_destroy(report);
	close(fd);
}

static void test_events(void **state)
{
	struct tally_error error = {0};
	int fd;

	(void)state;
	report = create(&fd);
	assert_true(tally_trace_request(fd, UINT64_MAX, &error));
	together(write_events, read_events);
	assert_int_equal(seen->trace_head, THREADS * 100000);
	tally_report_unmap(seen);
	tally_report_destroy(report);
	close(fd);
}

/* The reader holds the memory: what was written before the kill is there after it. */
static void test_killed_writer(void **state)
{
	struct tally_error error = {0};

	(void)state;
	for (unsigned round = 0; round < 20; round++) {
		struct tally_trace_cursor cursor = {.ended = true};
		struct tally_trace_event event;
		uint64_t launches = 0, samples = 0, events = 0;
		struct tally_row row;
		int fd, status;
		/* Made by us, written by a child that never returns: the same mapping, since the
		 * child takes a descriptor and maps it for itself. */
		report = create(&fd);
		tally_trace_request(fd, UINT64_MAX, &error);
		pid_t child = fork();
		if (!child) {
			report = mmap(NULL, sizeof *report, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
				      0);
			for (unsigned i = 0;; i++) {
				struct tally_row_key key = key_of(i % 300);
				struct tally_report_row *r = tally_report_row(report, &key, "k");
				tally_report_launch(r, TALLY_LEVEL_GATE);
				tally_report_sample(r, TALLY_LEVEL_GATE, 10, 1);
				tally_report_trace(report, TALLY_TRACE_LAUNCH, 0, r, 1);
			}
		}
		while (atomic_load(&report->trace_head) < 100 * (round + 1))
			sched_yield();
		uint64_t before = atomic_load(&report->trace_head);
		kill(child, SIGKILL);
		waitpid(child, &status, 0);
		for (unsigned i = 0; i < tally_report_rows(seen); i++) {
			if (!tally_report_read(seen, i, &row))
				continue;
			launches += row.level[TALLY_LEVEL_GATE].launches;
			samples += row.level[TALLY_LEVEL_GATE].samples;
		}
		while (tally_trace_next(seen, &cursor, &event))
			events++;
		assert_true(launches >= before && samples >= before && launches - samples <= 1);
		assert_true(events + cursor.lost >= before &&
			    cursor.lost <= seen->trace_head - events);
		if (seen->trace_head <= TALLY_REPORT_TRACE)
			assert_true(cursor.lost <= 1);
		tally_report_unmap(seen);
		tally_report_destroy(report);
		close(fd);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows),
		cmocka_unit_test(test_events),
		cmocka_unit_test(test_killed_writer),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
