/* SPDX-License-Identifier: Apache-2.0 */
/* From a program's report through a real tallyd into the store, and back to the next program:
 * whoever is killed, nothing is lost and nothing counts twice. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "profiler/profiles.h"
#include "profiler/report.h"
#include "profiler/store.h"
#include "tests/sched/harness.h"

/* A program as libtally is one: a report, left with tallyd. */
struct program {
	struct tally_report *report;
	struct tally_client *client;
	struct tally_origin origin;
};

static struct tally_row_key key_of(unsigned grid)
{
	unsigned blocks[3] = {grid, 1, 1}, threads[3] = {128, 1, 1};

	return tally_report_key(NULL, 77, blocks, threads, 0);
}

static void start(struct harness *h, struct program *p, const char *driver)
{
	struct tally_report_identity identity = {
		.name = "p", .device_name = "Some GPU", .driver = driver, .transform = "7"};
	struct tally_client_options options = {.name = "p", .socket = h->socket};
	struct tally_error error = {0};
	int fd;

	p->report = tally_report_create(&identity, &fd);
	options.attachment =
		(struct tally_attachment){fd, TALLY_REPORT_KIND, sizeof(struct tally_report)};
	p->client = tally_client_connect(&options, &error);
	assert_string_equal(error.message, "");
	p->origin = tally_origin_of("Some GPU", driver, "7");
	close(fd);
}

static void end(struct program *p)
{
	tally_client_disconnect(p->client);
	tally_report_destroy(p->report);
}

static void launch(struct program *p, unsigned grid, unsigned times)
{
	struct tally_row_key key = key_of(grid);
	struct tally_report_row *row = tally_report_row(p->report, &key, "kernel");

	for (unsigned i = 0; i < times; i++) {
		tally_report_launch(row, TALLY_LEVEL_GUARD);
		tally_report_sample(row, TALLY_LEVEL_GUARD, 1000 * grid, grid);
	}
	tally_report_stop(p->report, row, TALLY_LEVEL_GUARD, 20000, 100);
}

static bool add(void *context, const struct tally_stored *stored)
{
	*(uint64_t *)context += tally_row_launches(&stored->row);
	return true;
}

/* Launches of all programs, as the store has them now. */
static uint64_t stored_launches(struct harness *h)
{
	struct tally_error error = {0};
	uint64_t launches = 0;
	bool absent;
	struct tally_store *s = tally_store_read(h->folder, &absent, &error);

	if (s)
		tally_store_each(s, NULL, add, &launches, &error);
	tally_store_close(s);
	return launches;
}

static void wait_stored(struct harness *h, uint64_t wanted)
{
	uint64_t from = tally_now(), now;

	while ((now = stored_launches(h)) != wanted) {
		if (now > wanted || !harness_patient(from))
			fail_msg("%u launches stored, wanted %u", (unsigned)now, (unsigned)wanted);
		usleep(20000);
	}
}

/* The row that the next program is given, or fails; NULL where none is wanted. */
static void expect_given(struct harness *h, const char *driver, uint64_t launches)
{
	uint64_t from = tally_now();

	for (;;) {
		struct program p;
		struct tally_error error = {0};
		struct tally_row_key key = key_of(5);
		uint64_t found = 0;

		start(h, &p, driver);
		struct tally_attachment given = tally_client_given(p.client);
		if (given.size) {
			assert_int_equal(given.kind, TALLY_PROFILES_KIND);
			const struct tally_profiles *profiles =
				tally_profiles_map(given.fd, &p.origin, &error);
			assert_string_equal(error.message, "");
			const struct tally_row *row = tally_profiles_find(profiles, &key);
			found = row ? tally_row_launches(row) : 0;
			tally_profiles_unmap(profiles);
			close(given.fd);
		}
		end(&p);
		if (found == launches)
			return;
		if (!harness_patient(from))
			fail_msg("given %u launches", (unsigned)found);
		usleep(20000);
	}
}

static void test_a_run_is_stored_and_given(void **state)
{
	struct harness *h = *state;
	struct program p;

	expect_given(h, "1", 0);
	start(h, &p, "1");
	launch(&p, 5, 30);
	wait_stored(h, 30); /* while it runs */
	launch(&p, 5, 12);
	launch(&p, 6, 1);
	end(&p);
	wait_stored(h, 43);
	expect_given(h, "1", 42);
	expect_given(h, "2", 0); /* another driver's program measures for itself */
	start(h, &p, "1");
	launch(&p, 5, 8);
	end(&p);
	wait_stored(h, 51);
	expect_given(h, "1", 50);
	/* The next daemon has it from the beginning. */
	harness_kill(h, SIGTERM);
	harness_start(h, NULL, NULL);
	expect_given(h, "1", 50);
}

static pid_t start_process(struct harness *h, unsigned launches, bool rejoin)
{
	int ready[2];
	char byte;

	assert_int_equal(pipe(ready), 0);
	pid_t pid = fork();
	if (!pid) {
		struct program p;
		struct tally_error error = {0};
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		start(h, &p, "1");
		launch(&p, 5, launches);
		if (write(ready[1], "", 1) != 1)
			_exit(1);
		for (;; usleep(5000))
			if (rejoin && !tally_client_check(p.client))
				tally_client_reconnect(p.client, &error);
	}
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	close(ready[1]);
	return pid;
}

/* Killed before tallyd ever looked: the report is in tallyd's hands. */
static void test_killed_program(void **state)
{
	struct harness *h = *state;

	for (unsigned i = 1; i <= 5; i++) {
		harness_end(start_process(h, 100, false), SIGKILL);
		wait_stored(h, 100 * i);
	}
	expect_given(h, "1", 500);
}

/* tallyd is killed at any point and comes back: what programs said before is not added again. */
static void test_killed_daemons(void **state)
{
	struct harness *h = *state;
	pid_t pids[3];

	for (unsigned i = 0; i < 3; i++)
		pids[i] = start_process(h, 100 + i, true);
	wait_stored(h, 303);
	for (unsigned round = 0; round < 4; round++) {
		usleep(round * 7000);
		harness_kill(h, SIGKILL);
		harness_start(h, NULL, NULL);
	}
	wait_stored(h, 303);
	harness_end(pids[0], SIGKILL); /* one while tallyd is there */
	harness_kill(h, SIGKILL);
	harness_end(pids[1], SIGKILL); /* one while it is not */
	harness_start(h, NULL, NULL);
	pid_t one_more = start_process(h, 7, false);
	wait_stored(h, 310);
	harness_end(pids[2], SIGKILL);
	harness_end(one_more, SIGKILL);
	expect_given(h, "1", 310);
	wait_stored(h, 310);
}

static void test_damaged_store(void **state)
{
	struct harness *h = *state;
	struct tally_error error = {0};
	char path[128];

	harness_kill(h, SIGTERM);
	snprintf(path, sizeof path, "%s/" TALLY_STORE_FILE, h->folder);
	assert_true(tally_file_write(path, "this is no database", 19, &error));
	harness_start(h, NULL, NULL);
	harness_end(start_process(h, 9, false), SIGKILL);
	wait_stored(h, 9);
	snprintf(path, sizeof path, "%s/log", h->folder);
	struct tally_buffer log = {0};
	assert_true(tally_file_read(path, &log, &error));
	assert_non_null(strstr(log.data, "put aside as " TALLY_STORE_FILE ".aside"));
	tally_buffer_free(&log);
}

/* The file disappears or is destroyed under a tallyd that has it open: it goes on. */
static void test_store_destroyed_meanwhile(void **state)
{
	struct harness *h = *state;
	char path[128];

	pid_t pid = start_process(h, 9, false);
	wait_stored(h, 9);
	snprintf(path, sizeof path, "%s/" TALLY_STORE_FILE, h->folder);
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	assert_int_equal(ftruncate(fd, 100), 0);
	close(fd);
	harness_end(pid, SIGKILL);
	struct tally_client *client = harness_connect(h, 0);
	assert_true(tally_client_check(client));
	tally_client_disconnect(client);
	harness_kill(h, SIGTERM);
	harness_start(h, NULL, NULL);
	harness_end(start_process(h, 3, false), SIGKILL);
}

/* Programs that come, say something and go, while another says something; how long it takes, ns. */
static uint64_t come_and_go(struct harness *h, struct program *p)
{
	uint64_t from = tally_now();

	for (unsigned i = 0; i < 20; i++) {
		struct program other;
		launch(p, 5, 1);
		start(h, &other, "1");
		launch(&other, 6, 1);
		end(&other);
	}
	return tally_now() - from;
}

/* Another process holds the file's lock, as a slow disk would: programs join as ever, and what they
 * say is written when it can be. */
static void test_a_locked_store_holds_nobody(void **state)
{
	struct harness *h = *state;
	struct tally_error error = {0};
	struct program p;
	uint64_t as_ever;
	char note[256];

	start(h, &p, "1");
	as_ever = come_and_go(h, &p);
	wait_stored(h, 40);
	struct tally_store *lock = tally_store_open(h->folder, note, &error);
	assert_true(tally_store_begin(lock, &error));
	/* It would be a second for each that waited. */
	assert_true(come_and_go(h, &p) < 2 * as_ever + 10000000000u);
	assert_int_equal(stored_launches(h), 40);
	tally_store_rollback(lock);
	tally_store_close(lock);
	wait_stored(h, 80);
	end(&p);
}

/* What a program left is no report: it is served as any other. */
static void test_other_attachments(void **state)
{
	struct harness *h = *state;

	for (unsigned kind = 0; kind < 3; kind++) {
		struct tally_client_options options = {.name = "p", .socket = h->socket};
		int fd = memfd_create("x", MFD_CLOEXEC);
		options.attachment = (struct tally_attachment){fd, kind, 4096};
		struct tally_client *client = tally_client_connect(&options, NULL);
		assert_non_null(client);
		assert_int_equal(tally_client_given(client).size, 0);
		tally_client_disconnect(client);
		close(fd);
	}
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, harness_setup, harness_teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_a_run_is_stored_and_given),
		TEST(test_killed_program),
		TEST(test_killed_daemons),
		TEST(test_damaged_store),
		TEST(test_store_destroyed_meanwhile),
		TEST(test_a_locked_store_holds_nobody),
		TEST(test_other_attachments),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
