/* SPDX-License-Identifier: Apache-2.0 */
/* The report as one writer and one reader see it; reports that are none; percentiles; names. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/hash.h"
#include "profiler/report.h"

struct fixture {
	struct tally_report *report;
	const struct tally_report *seen;
	int fd;
};

static int setup(void **state)
{
	struct tally_report_identity identity = {.device = {7, 9},
						 .priority = -3,
						 .name = "train\ner",
						 .device_name = "Some GPU",
						 .driver = "580",
						 .transform = "1"};
	struct fixture *f = calloc(1, sizeof *f);
	struct tally_error error = {0};

	f->report = tally_report_create(&identity, &f->fd);
	assert_non_null(f->report);
	assert_true(f->fd >= 0);
	f->seen = tally_report_map(f->fd, &error);
	assert_string_equal(error.message, "");
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	tally_report_unmap(f->seen);
	tally_report_destroy(f->report);
	close(f->fd);
	free(f);
	return 0;
}

static struct tally_row_key key_of(const char *name, unsigned blocks)
{
	unsigned grid[3] = {blocks, 1, 1}, block[3] = {256, 1, 1};
	uint64_t image[2] = {1, 2};

	return tally_report_key(image, tally_hash_64(name, strlen(name)), grid, block, 16);
}

static void test_identity(void **state)
{
	struct fixture *f = *state;

	assert_string_equal(f->seen->name, "train?er");
	assert_string_equal(f->seen->device_name, "Some GPU");
	assert_int_equal(f->seen->pid, getpid());
	assert_int_equal(f->seen->priority, -3);
	assert_int_equal(f->seen->device[1], 9);
	assert_true(f->seen->id != 0);
	assert_true(fcntl(f->fd, F_GETFD) & FD_CLOEXEC);
}

static void test_row(void **state)
{
	struct fixture *f = *state;
	struct tally_choice sliced = {TALLY_LEVEL_SLICE, TALLY_WHY_MANY_BLOCKS, 4000000000u};
	struct tally_row_key key = key_of("gemm", 100), other = key_of("gemm", 101);
	struct tally_report_row *row = tally_report_row(f->report, &key, "gemm");
	struct tally_row read;

	assert_ptr_equal(row, tally_report_row(f->report, &key, "gemm"));
	assert_ptr_not_equal(row, tally_report_row(f->report, &other, "gemm"));
	tally_report_choose(row, &sliced);
	tally_report_launch(row, TALLY_LEVEL_GATE);
	tally_report_launch(row, TALLY_LEVEL_SLICE);
	tally_report_launch(row, TALLY_LEVEL_SLICE);
	assert_int_equal(atomic_load(&row->level[TALLY_LEVEL_GATE].launches), 1);
	assert_int_equal(atomic_load(&row->level[TALLY_LEVEL_SLICE].launches), 2);
	tally_report_sample(row, TALLY_LEVEL_SLICE, 1000, 100);
	tally_report_sample(row, TALLY_LEVEL_SLICE, 100, 20); /* as fast as 500 for all */
	tally_report_sample(row, TALLY_LEVEL_SLICE, 700, 0);  /* nothing ran */
	tally_report_stop(f->report, row, TALLY_LEVEL_SLICE, 40000, 1500);
	tally_report_stop(f->report, NULL, TALLY_LEVEL_SLICE, 40000, 0);

	assert_true(tally_report_read(f->seen, row->number, &read));
	assert_string_equal(read.name, "gemm");
	assert_true(tally_key_equal(&read.key, &key));
	assert_memory_equal(&read.choice, &sliced, sizeof sliced);
	assert_int_equal(tally_row_launches(&read), 3);
	const struct tally_stats *s = &read.level[TALLY_LEVEL_SLICE];
	assert_int_equal(s->launches, 2);
	assert_int_equal(s->samples, 2);
	assert_int_equal(s->ns, 1100);
	assert_int_equal(s->blocks, 120);
	assert_int_equal(s->ns_min, 500);
	assert_int_equal(tally_stats_mean(s, 100), 916);
	assert_int_equal(s->stops, 1);
	assert_int_equal(s->drain_ns, 1500);
	assert_in_range(tally_quantile(&tally_coarse, s->stop, 0.99), 30000, 50000);
	assert_in_range(tally_report_stop_quantile(f->seen, 0.5), 37600, 42400);
	/* One launch was never timed: it is taken to last as long as the others. */
	assert_int_equal(tally_row_time(&read), 3 * 916);
	assert_int_equal(tally_report_changes(f->seen, row->number), 3 + 2 + 1);
	assert_int_equal(tally_report_changes(f->seen, TALLY_REPORT_ROWS), 0);
	assert_false(tally_report_read(f->seen, TALLY_REPORT_ROWS, &read));
	assert_false(tally_report_read(f->seen, 3, &read));
	assert_int_equal(tally_report_rows(f->seen), 3);
}

static void test_full_table(void **state)
{
	struct fixture *f = *state;
	struct tally_report_row *row = NULL;
	struct tally_row read;

	for (unsigned i = 1; i < TALLY_REPORT_ROWS; i++) {
		struct tally_row_key key = key_of("k", i);
		row = tally_report_row(f->report, &key, "k");
		assert_int_equal(row->number, i);
	}
	for (unsigned i = TALLY_REPORT_ROWS; i < TALLY_REPORT_ROWS + 3; i++) {
		struct tally_row_key key = key_of("k", i);
		assert_ptr_equal(tally_report_row(f->report, &key, "k"), &f->report->rows[0]);
	}
	struct tally_row_key key = key_of("k", 77);
	assert_int_equal(tally_report_row(f->report, &key, "k")->number, 77);
	assert_int_equal(tally_report_counter(f->seen, TALLY_COUNT_ROWS_LOST), 3);
	assert_true(tally_report_read(f->seen, 0, &read));
	assert_string_equal(read.name, "(other kernels)");
}

static void test_long_name(void **state)
{
	struct fixture *f = *state;
	struct tally_row_key key = key_of("long", 1);
	char name[500];
	struct tally_row read;

	memset(name, 'x', sizeof name);
	name[sizeof name - 1] = '\0';
	tally_report_row(f->report, &key, name);
	assert_true(tally_report_read(f->seen, 1, &read));
	assert_int_equal(strlen(read.name), TALLY_ROW_NAME - 1);
}

static void test_trace(void **state)
{
	struct fixture *f = *state;
	struct tally_row_key key = key_of("k", 1);
	struct tally_report_row *row = tally_report_row(f->report, &key, "k");
	struct tally_trace_cursor cursor = {0};
	struct tally_trace_event event;
	struct tally_error error = {0};

	tally_report_trace(f->report, TALLY_TRACE_LAUNCH, 5, row, 1);
	tally_report_record(f->report, TALLY_TRACE_LAUNCH, 0, 5, row, 1);
	assert_false(tally_trace_next(f->seen, &cursor, &event)); /* nobody asked */

	assert_true(tally_trace_request(f->fd, tally_now() + 60000000000u, &error));
	assert_true(tally_trace_request(f->fd, 1, &error)); /* a shorter wish takes nothing away */
	tally_report_trace(f->report, TALLY_TRACE_LAUNCH, 5, row, 1);
	tally_report_record(f->report, TALLY_TRACE_STOP, 123, 6, NULL, 99);
	assert_true(tally_trace_next(f->seen, &cursor, &event));
	assert_int_equal(event.kind, TALLY_TRACE_LAUNCH);
	assert_int_equal(event.row, row->number);
	assert_int_equal(event.stream, 5);
	assert_true(event.time_ns <= tally_now() && event.time_ns > tally_now() - 60000000000u);
	assert_true(tally_trace_next(f->seen, &cursor, &event));
	assert_int_equal(event.time_ns, 123);
	assert_int_equal(event.value, 99);
	assert_int_equal(event.row, 0);
	assert_false(tally_trace_next(f->seen, &cursor, &event));

	for (uint64_t i = 0; i < TALLY_REPORT_TRACE + 100; i++)
		tally_report_trace(f->report, TALLY_TRACE_START, 0, row, i);
	for (uint64_t i = 100; i < TALLY_REPORT_TRACE + 100; i++) {
		assert_true(tally_trace_next(f->seen, &cursor, &event));
		assert_int_equal(event.value, i);
	}
	assert_int_equal(cursor.lost, 100);
	assert_false(tally_trace_next(f->seen, &cursor, &event));
}

/* A tracer that was killed leaves a program that records no longer than it was asked to. */
static void test_trace_ends_by_itself(void **state)
{
	struct fixture *f = *state;
	struct tally_error error = {0};

	assert_true(tally_trace_request(f->fd, tally_now() + 1, &error));
	assert_true(tally_report_tracing(f->report));
	usleep(10);
	tally_report_trace(f->report, TALLY_TRACE_IDLE, 0, NULL, 0);
	assert_false(tally_report_tracing(f->report));
	assert_int_equal(f->seen->trace_head, 0);
}

/* The writer died between reserving an event and finishing it. */
static void test_unfinished_event(void **state)
{
	struct fixture *f = *state;
	struct tally_trace_cursor cursor = {0};
	struct tally_trace_event event;
	struct tally_error error = {0};

	tally_trace_request(f->fd, tally_now() + 60000000000u, &error);
	atomic_fetch_add(&f->report->trace_head, 1);
	tally_report_trace(f->report, TALLY_TRACE_COPY, 0, NULL, 8);
	assert_false(tally_trace_next(f->seen, &cursor, &event)); /* it may come yet */
	cursor.ended = true;
	assert_true(tally_trace_next(f->seen, &cursor, &event));
	assert_int_equal(event.value, 8);
	assert_int_equal(cursor.lost, 1);
}

static void test_not_a_report(void **state)
{
	struct fixture *f = *state;
	struct tally_error error = {0};
	int fd = memfd_create("x", MFD_CLOEXEC | MFD_ALLOW_SEALING),
	    null = open("/dev/null", O_RDONLY);

	assert_null(tally_report_map(-1, &error));
	assert_null(tally_report_map(null, &error));
	assert_int_equal(ftruncate(fd, sizeof *f->report), 0);
	assert_null(tally_report_map(fd, &error)); /* not sealed: could shrink under the reader */
	assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW), 0);
	assert_null(tally_report_map(fd, &error)); /* no magic */
	assert_false(tally_trace_request(null, 1, &error));
	f->report->version++;
	assert_null(tally_report_map(f->fd, &error));
	f->report->version--;
	close(fd);
	close(null);
}

/* Whatever a broken program wrote, a reader gets numbers in range and text that ends. */
static void test_garbage(void **state)
{
	struct fixture *f = *state;
	struct tally_trace_cursor cursor = {.ended = true};
	struct tally_trace_event event;
	struct tally_row row;
	char text[8];
	uint32_t word = 1;

	for (size_t i = offsetof(struct tally_report, trace_until_ns) / 4;
	     i < sizeof *f->report / 4; i++) {
		word = word * 1664525 + 1013904223;
		((uint32_t *)f->report)[i] = word >> 16 & 1 ? 1 : word;
	}
	assert_true(tally_report_rows(f->seen) <= TALLY_REPORT_ROWS);
	for (unsigned i = 0; i < TALLY_REPORT_ROWS; i++) {
		if (!tally_report_read(f->seen, i, &row))
			continue;
		assert_non_null(memchr(row.name, 0, sizeof row.name));
		assert_true(row.choice.level < TALLY_LEVELS &&
			    row.choice.reason < TALLY_REASON_COUNT);
		tally_row_time(&row);
	}
	for (unsigned i = 0;
	     i < 2 * TALLY_REPORT_TRACE && tally_trace_next(f->seen, &cursor, &event); i++)
		assert_true(event.kind < TALLY_TRACE_KINDS && event.row < TALLY_REPORT_ROWS);
	memset(f->report->name, 'x', sizeof f->report->name);
	tally_report_text(text, sizeof text, f->seen->name);
	assert_string_equal(text, "xxxxxxx");
	tally_report_text(text, sizeof text, NULL);
	assert_string_equal(text, "");
}

/* A forked child's stores reach nobody, and do not crash. */
static void test_fork(void **state)
{
	struct fixture *f = *state;
	struct tally_row_key key = key_of("k", 1);
	struct tally_report_row *row = tally_report_row(f->report, &key, "k");
	int status;

	tally_report_launch(row, TALLY_LEVEL_GATE);
	pid_t child = fork();
	if (!child) {
		tally_report_launch(row, TALLY_LEVEL_GATE);
		tally_report_stop(f->report, row, TALLY_LEVEL_GATE, 1, 1);
		tally_report_row(f->report, &key, "k");
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_int_equal(tally_report_changes(f->seen, row->number), 1);
}

/* What is not written takes no memory. */
static void test_memory(void **state)
{
	struct fixture *f = *state;
	static unsigned char resident[sizeof(struct tally_report) / 4096 + 2];
	size_t pages = 0;

	for (unsigned i = 0; i < 300; i++) {
		struct tally_row_key key = key_of("k", i);
		tally_report_launch(tally_report_row(f->report, &key, "k"), TALLY_LEVEL_GATE);
	}
	assert_int_equal(mincore(f->report, sizeof *f->report, resident), 0);
	for (size_t i = 0; i < sizeof resident; i++)
		pages += resident[i] & 1;
	assert_in_range(pages, 1, 150); /* 600 KB */
	assert_in_range(sizeof(struct tally_report), 1 << 20, 12 << 20);
}

static void test_quantiles(void **state)
{
	(void)state;
	static uint32_t counts[TALLY_FINE], few[TALLY_COARSE];

	assert_int_equal(tally_quantile(&tally_fine, counts, 0.5), 0);
	for (uint64_t ns = 1000; ns <= 100000; ns += 100)
		counts[tally_bucket(&tally_fine, ns)]++;
	for (unsigned q = 1; q < 100; q++) {
		double exact = 1000 + 99000 * q / 100.0;
		double got = (double)tally_quantile(&tally_fine, counts, q / 100.0);
		assert_true(got > exact * 0.9 && got < exact * 1.1);
	}
	few[tally_bucket(&tally_coarse, 5000)] = 98;
	few[tally_bucket(&tally_coarse, 1000000)] = 2;
	assert_in_range(tally_quantile(&tally_coarse, few, 0.5), 3750, 6250);
	assert_in_range(tally_quantile(&tally_coarse, few, 0.98), 3750, 6250);
	assert_in_range(tally_quantile(&tally_coarse, few, 0.99), 750000, 1250000);
	assert_int_equal(tally_bucket(&tally_coarse, 0), 0);
	assert_int_equal(tally_bucket(&tally_fine, UINT64_MAX), TALLY_FINE - 1);
	/* Every bucket's middle is in the bucket. */
	for (unsigned i = 0; i < TALLY_FINE; i++) {
		uint32_t one[TALLY_FINE] = {[0] = 0};
		one[i] = 1;
		assert_int_equal(tally_bucket(&tally_fine, tally_quantile(&tally_fine, one, 1)), i);
	}
}

static void test_words(void **state)
{
	(void)state;
	for (unsigned i = 0; i < TALLY_LEVELS; i++)
		assert_true(*tally_level_word(i) && *tally_level_word(i) != '?');
	for (unsigned i = 0; i < TALLY_REASON_COUNT; i++)
		assert_true(*tally_reason_word(i) != '?' && !strchr(tally_reason_word(i), ' ') &&
			    *tally_reason_text(i));
	for (unsigned i = 0; i < TALLY_COUNTER_COUNT; i++)
		assert_true(*tally_counter_word(i) != '?' && *tally_counter_text(i));
	for (unsigned i = 0; i < TALLY_TRACE_KINDS; i++)
		assert_true(*tally_event_word(i) != '?');
	assert_string_equal(tally_level_word(99), "?");
	assert_string_equal(tally_reason_text(99), "?");
	assert_string_equal(tally_counter_word(99), "?");
	assert_string_equal(tally_event_word(99), "?");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_identity),
		TEST(test_row),
		TEST(test_full_table),
		TEST(test_long_name),
		TEST(test_trace),
		TEST(test_trace_ends_by_itself),
		TEST(test_unfinished_event),
		TEST(test_not_a_report),
		TEST(test_garbage),
		TEST(test_fork),
		TEST(test_memory),
		cmocka_unit_test(test_quantiles),
		cmocka_unit_test(test_words),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
