/* SPDX-License-Identifier: Apache-2.0 */
/* The store: what is put is there, once; what is no store is put aside; a kill loses no more than
 * what was not committed. And the table that programs are given of it. */
#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "profiler/store.h"

struct fixture {
	char folder[64], path[128];
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof *f);

	strcpy(f->folder, "/tmp/tally-test-XXXXXX");
	if (!mkdtemp(f->folder))
		return -1;
	snprintf(f->path, sizeof f->path, "%s/" TALLY_STORE_FILE, f->folder);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	DIR *folder = opendir(f->folder);
	struct dirent *entry;

	while (folder && (entry = readdir(folder)))
		unlinkat(dirfd(folder), entry->d_name, 0);
	closedir(folder);
	rmdir(f->folder);
	free(f);
	return 0;
}

static struct tally_store *open_noted(struct fixture *f, const char *expected)
{
	struct tally_error error = {0};
	char note[256];
	struct tally_store *s = tally_store_open(f->folder, note, &error);

	assert_string_equal(error.message, "");
	assert_non_null(s);
	if (!*expected)
		assert_string_equal(note, "");
	else if (!strstr(note, expected))
		fail_msg("\"%s\" does not say \"%s\"", note, expected);
	return s;
}

static struct tally_row row_of(unsigned grid, uint64_t launches)
{
	struct tally_row row = {.key = {.image = {0xfedcba9876543210, 5},
					.kernel = 0xfffffffffffffff7, /* negative in SQL */
					.grid = {grid, 2, 3},
					.block = {64, 1, 1},
					.shared = 4000000000u},
				.name = "_Z4gemm",
				.choice = {TALLY_LEVEL_SLICE, TALLY_WHY_MANY_BLOCKS, 3000000000u}};

	row.level[TALLY_LEVEL_GATE] = (struct tally_stats){.launches = launches,
							   .samples = 2,
							   .ns = 900,
							   .blocks = 12,
							   .ns_min = 400 + launches};
	row.level[TALLY_LEVEL_SLICE] = (struct tally_stats){
		.launches = launches, .stops = 3, .drain_ns = 7, .stop = {[4] = 2, [35] = 1}};
	return row;
}

static void put(struct tally_store *s, uint64_t run, int pid, const struct tally_origin *origin,
		const struct tally_row *row)
{
	struct tally_error error = {0};

	tally_store_begin(s, &error);
	tally_store_put(s, run, pid, origin, row, &error);
	tally_store_commit(s, &error);
	assert_string_equal(error.message, "");
}

#define MOST 16
struct list {
	struct tally_stored stored[MOST];
	unsigned count;
};

static bool collect(void *context, const struct tally_stored *stored)
{
	struct list *l = context;

	l->stored[l->count++] = *stored;
	return l->count < MOST;
}

static const struct list *all(struct tally_store *s, const struct tally_origin *origin)
{
	static struct list l;
	struct tally_error error = {0};

	memset(&l, 0, sizeof l);
	assert_true(tally_store_each(s, origin, collect, &l, &error));
	return &l;
}

static pid_t dead_process(void)
{
	pid_t pid = fork();

	if (!pid)
		_exit(0);
	waitpid(pid, NULL, 0);
	return pid;
}

static void test_what_is_put_is_there(void **state)
{
	struct fixture *f = *state;
	struct tally_origin origin = tally_origin_of("GPU \"one\"", "13000 580", "0.1");
	struct tally_row row = row_of(7, 5), later = row_of(7, 9);
	struct tally_store *s = open_noted(f, "");

	put(s, 1, getpid(), &origin, &row);
	for (unsigned round = 0; round < 2; round++) {
		const struct list *l = all(s, NULL);
		assert_int_equal(l->count, 1);
		assert_memory_equal(&l->stored[0].origin, &origin, sizeof origin);
		assert_memory_equal(&l->stored[0].row, &row, sizeof row);
		assert_true(l->stored[0].seen > 1600000000);
		tally_store_close(s);
		s = open_noted(f, ""); /* also after it was closed */
	}
	/* The same run once more: replaced, not added. Another run: added. */
	put(s, 1, getpid(), &origin, &later);
	const struct list *l = all(s, &origin);
	assert_int_equal(l->count, 1);
	assert_memory_equal(&l->stored[0].row, &later, sizeof row);
	put(s, 2, getpid(), &origin, &row);
	l = all(s, NULL);
	assert_int_equal(l->count, 1);
	assert_int_equal(l->stored[0].row.level[TALLY_LEVEL_GATE].launches, 14);
	assert_int_equal(l->stored[0].row.level[TALLY_LEVEL_GATE].ns_min, 405);
	assert_int_equal(l->stored[0].row.level[TALLY_LEVEL_SLICE].stop[4], 4);
	struct stat is;
	assert_int_equal(stat(f->path, &is), 0);
	assert_int_equal(is.st_mode & 0777, 0600);
	tally_store_close(s);
}

static void test_runs_end_with_their_process(void **state)
{
	struct fixture *f = *state;
	struct tally_origin origin = tally_origin_of("d", "1", "1");
	struct tally_row row = row_of(7, 5);
	struct tally_store *s = open_noted(f, "");
	struct tally_error error = {0};
	unsigned alive;

	put(s, 1, dead_process(), &origin, &row);
	put(s, 2, dead_process(), &origin, &row);
	put(s, 3, getpid(), &origin, &row);
	for (unsigned round = 0; round < 3; round++) {
		const struct list *l = all(s, NULL);
		assert_int_equal(l->count, 1);
		assert_int_equal(l->stored[0].row.level[TALLY_LEVEL_GATE].launches, 15);
		assert_int_equal(l->stored[0].row.level[TALLY_LEVEL_SLICE].stop[35], 3);
		assert_true(tally_store_end_orphans(s, &alive, &error));
		assert_int_equal(alive, 1);
	}
	/* Who still runs goes on where it was. */
	row = row_of(7, 6);
	put(s, 3, getpid(), &origin, &row);
	assert_int_equal(all(s, NULL)->stored[0].row.level[TALLY_LEVEL_GATE].launches, 16);
	tally_store_close(s);
}

static void test_other_devices_are_others(void **state)
{
	struct fixture *f = *state;
	struct tally_origin one = tally_origin_of("GPU A", "1", "1"),
			    two = tally_origin_of("GPU A", "2", "1"),
			    three = tally_origin_of("GPU A", "1", "2"),
			    four = tally_origin_of("gpu b", "1", "1");
	struct tally_store *s = open_noted(f, "");
	struct tally_row row = row_of(1, 1);
	struct tally_error error = {0};
	unsigned removed;

	put(s, 1, getpid(), &one, &row);
	put(s, 2, getpid(), &two, &row);
	put(s, 3, getpid(), &four, &row);
	assert_int_equal(all(s, &one)->count, 1);
	assert_int_equal(all(s, &two)->count, 1);
	assert_int_equal(all(s, &three)->count, 0);
	assert_int_equal(all(s, NULL)->count, 3);
	assert_true(tally_store_reset(s, "gpu a", &removed, &error));
	assert_int_equal(removed, 2);
	assert_int_equal(all(s, NULL)->count, 1);
	assert_int_equal(all(s, &four)->count, 1);
	/* Another process forgot the device whose number we know. */
	put(s, 3, getpid(), &four, &row);
	struct tally_store *other = open_noted(f, "");
	assert_true(tally_store_reset(other, NULL, &removed, &error));
	assert_int_equal(removed, 1);
	tally_store_close(other);
	put(s, 3, getpid(), &four, &row);
	assert_int_equal(all(s, &four)->count, 1);
	assert_true(tally_store_trim(s, &error));
	assert_int_equal(all(s, &four)->count, 1);
	tally_store_close(s);
}

static bool first_origin(void *context, const struct tally_origin *origin)
{
	*(struct tally_origin *)context = *origin;
	return false;
}

static void test_origins(void **state)
{
	struct fixture *f = *state;
	struct tally_origin one = tally_origin_of("A", "1", "1"), found = {0};
	struct tally_store *s = open_noted(f, "");
	struct tally_row row = row_of(1, 1);
	struct tally_error error = {0};

	assert_true(tally_store_origins(s, first_origin, &found, &error));
	assert_string_equal(found.device, "");
	put(s, 1, getpid(), &one, &row);
	assert_true(tally_store_origins(s, first_origin, &found, &error));
	assert_memory_equal(&found, &one, sizeof one);
	tally_store_close(s);
}

/* Killed before the commit: nothing; after it: all. Nobody closes anything. */
static void test_kill(void **state)
{
	struct fixture *f = *state;
	struct tally_origin origin = tally_origin_of("d", "1", "1");
	struct tally_row row = row_of(3, 4);

	for (unsigned commit = 0; commit < 2; commit++) {
		pid_t pid = fork();
		if (!pid) {
			struct tally_error error = {0};
			char note[256];
			struct tally_store *s = tally_store_open(f->folder, note, &error);
			tally_store_begin(s, &error);
			tally_store_put(s, 9, 1, &origin, &row, &error);
			if (commit)
				tally_store_commit(s, &error);
			kill(getpid(), SIGKILL);
		}
		waitpid(pid, NULL, 0);
		struct tally_store *s = open_noted(f, "");
		assert_int_equal(all(s, NULL)->count, commit);
		tally_store_close(s);
	}
}

static void test_two_processes_write(void **state)
{
	struct fixture *f = *state;
	struct tally_origin origin = tally_origin_of("d", "1", "1");
	pid_t pids[3];
	int status;

	for (uint64_t p = 0; p < 3; p++) {
		pids[p] = fork();
		if (!pids[p]) {
			struct tally_error error = {0};
			char note[256];
			struct tally_store *s = tally_store_open(f->folder, note, &error);
			for (uint64_t i = 1; s && i <= 30; i++) {
				struct tally_row row = row_of((unsigned)(i % 4), i);
				bool ok = tally_store_begin(s, &error) &&
					  tally_store_put(s, p + 1, 1, &origin, &row, &error) &&
					  tally_store_commit(s, &error);
				if (!ok)
					_exit(1);
			}
			tally_store_close(s);
			_exit(s && !*note ? 0 : 2);
		}
	}
	for (unsigned p = 0; p < 3; p++) {
		waitpid(pids[p], &status, 0);
		assert_int_equal(status, 0);
	}
	struct tally_store *s = open_noted(f, "");
	const struct list *l = all(s, NULL);
	uint64_t launches = 0;
	for (unsigned i = 0; i < l->count; i++)
		launches += l->stored[i].row.level[TALLY_LEVEL_GATE].launches;
	assert_int_equal(l->count, 4);
	assert_int_equal(launches, 3 * (27 + 28 + 29 + 30));
	tally_store_close(s);
}

/* Nobody finds a store that another process is just making to be somebody else's, or locked. */
static void test_many_open_at_once(void **state)
{
	enum { ROUNDS = 30, PROCESSES = 8 };

	for (unsigned round = 0; round < ROUNDS; round++) {
		struct fixture *f;
		pid_t pids[PROCESSES];
		int start[2], status;

		assert_int_equal(setup((void **)&f), 0);
		assert_int_equal(pipe(start), 0);
		for (unsigned p = 0; p < PROCESSES; p++) {
			pids[p] = fork();
			if (!pids[p]) {
				struct tally_error error = {0};
				char note[256], go;

				close(start[1]);
				while (read(start[0], &go, 1) < 0)
					;
				struct tally_store *s = tally_store_open(f->folder, note, &error);
				if (!s || *note)
					fprintf(stderr, "%s%s\n", error.message, note);
				tally_store_close(s);
				_exit(s && !*note ? 0 : 2);
			}
		}
		close(start[1]);
		for (unsigned p = 0; p < PROCESSES; p++) {
			waitpid(pids[p], &status, 0);
			assert_int_equal(status, 0);
		}
		close(start[0]);
		teardown((void **)&f);
	}
	(void)state;
}

static void write_file(const char *path, const void *bytes, size_t size)
{
	struct tally_error error = {0};

	assert_true(tally_file_write(path, bytes, size, &error));
}

static void execute(const char *path, const char *sql)
{
	sqlite3 *db;

	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(db);
}

/* A database that works, in place of what was there; what was there is beside it. */
static void expect_new(struct fixture *f, const char *why)
{
	struct tally_origin origin = tally_origin_of("d", "1", "1");
	struct tally_row row = row_of(3, 4);
	char aside[160];
	struct tally_store *s = open_noted(f, why);

	assert_int_equal(all(s, NULL)->count, 0);
	put(s, 1, getpid(), &origin, &row);
	tally_store_close(s);
	snprintf(aside, sizeof aside, "%s.aside", f->path);
	assert_int_equal(unlink(aside), 0);
	s = open_noted(f, "");
	assert_int_equal(all(s, NULL)->count, 1);
	tally_store_close(s);
}

static void test_what_is_no_store_is_put_aside(void **state)
{
	struct fixture *f = *state;
	char noise[20000];

	for (size_t i = 0; i < sizeof noise; i++)
		noise[i] = (char)(i * 7919 >> 3);
	write_file(f->path, noise, sizeof noise);
	expect_new(f, "is damaged");
	execute(f->path, "PRAGMA user_version=99");
	expect_new(f, "is no store of this version");
	unlink(f->path);
	execute(f->path, "CREATE TABLE mine(x)");
	expect_new(f, "is no store of this version");
	execute(f->path, "PRAGMA application_id=5");
	expect_new(f, "is no store of this version");
	/* An empty file is a new one. */
	write_file(f->path, "", 0);
	tally_store_close(open_noted(f, ""));
}

/* Damage in the middle of the file, at many places: put aside, or read as it is, never a crash. */
static void test_damage(void **state)
{
	struct fixture *f = *state;
	struct tally_origin origin = tally_origin_of("d", "1", "1");
	struct tally_store *s = open_noted(f, "");
	struct tally_buffer whole = {0};
	struct tally_error error = {0};
	unsigned aside = 0;
	char note[256];

	tally_store_begin(s, &error);
	for (unsigned i = 0; i < 200; i++) {
		struct tally_row row = row_of(i, i);
		tally_store_put(s, 1, 1, &origin, &row, &error);
	}
	tally_store_commit(s, &error);
	tally_store_close(s);
	assert_true(tally_file_read(f->path, &whole, &error));
	for (size_t at = 0; at < whole.size; at += 1777) {
		char *bytes = malloc(whole.size);
		unsigned removed, alive;
		memcpy(bytes, whole.data, whole.size);
		for (size_t i = at; i < at + 300 && i < whole.size; i++)
			bytes[i] = (char)(i ^ 0x5a);
		write_file(f->path, bytes, at % 3 ? whole.size : at + 1);
		free(bytes);
		error = (struct tally_error){0};
		s = tally_store_open(f->folder, note, &error);
		if (!s)
			fail_msg("at %zu: %s", at, error.message);
		aside += *note != 0;
		/* Whatever else fails now says so. */
		struct list l = {.count = 0};
		tally_store_each(s, NULL, collect, &l, &error);
		tally_store_end_orphans(s, &alive, &error);
		tally_store_reset(s, "x", &removed, &error);
		tally_store_close(s);
	}
	assert_true(aside > 10);
	tally_buffer_free(&whole);
}

static void test_folders_that_cannot_be_written(void **state)
{
	struct fixture *f = *state;
	struct tally_error error = {0};
	char note[256], path[200];
	bool absent;

	snprintf(path, sizeof path, "%s/file", f->folder);
	write_file(path, "", 0);
	assert_null(tally_store_open(path, note, &error));
	assert_true(*error.message);
	if (geteuid()) {
		error = (struct tally_error){0};
		chmod(f->folder, 0500);
		assert_null(tally_store_open(f->folder, note, &error));
		assert_true(*error.message);
		chmod(f->folder, 0700);
	}
	error = (struct tally_error){0};
	assert_null(tally_store_read(f->folder, &absent, &error));
	assert_true(absent);
	error = (struct tally_error){0};
	write_file(f->path, "no database", 11);
	assert_null(tally_store_read(f->folder, &absent, &error));
	assert_false(absent);
	assert_non_null(strstr(error.message, "no store of this version"));
	/* Whoever only reads puts nothing aside. */
	assert_int_equal(access(f->path, F_OK), 0);
}

static void test_reading_beside_a_writer(void **state)
{
	struct fixture *f = *state;
	struct tally_origin origin = tally_origin_of("d", "1", "1");
	struct tally_row row = row_of(3, 4), more = row_of(4, 4);
	struct tally_store *s = open_noted(f, "");
	struct tally_error error = {0};
	bool absent;

	put(s, 1, getpid(), &origin, &row);
	tally_store_begin(s, &error);
	tally_store_put(s, 1, getpid(), &origin, &more, &error);
	struct tally_store *reader = tally_store_read(f->folder, &absent, &error);
	assert_string_equal(error.message, "");
	assert_int_equal(all(reader, NULL)->count, 1);
	tally_store_commit(s, &error);
	assert_int_equal(all(reader, NULL)->count, 2);
	tally_store_close(reader);
	tally_store_close(s);
}

static void test_profiles(void **state)
{
	struct tally_origin origin = tally_origin_of("d", "1", "1"),
			    other = tally_origin_of("d", "2", "1");
	static struct tally_row rows[TALLY_PROFILES_MAX + 5];
	struct tally_error error = {0};
	uint64_t size;

	(void)state;
	assert_null(tally_profiles_find(NULL, &rows[0].key));
	for (unsigned i = 0; i < TALLY_PROFILES_MAX + 5; i++)
		rows[i] = row_of(i, i);
	for (unsigned count = 0; count < TALLY_PROFILES_MAX + 5; count = count * 3 + 1) {
		int fd = tally_profiles_make(&origin, rows, count, &size, &error);
		assert_true(fd >= 0);
		const struct tally_profiles *p = tally_profiles_map(fd, &origin, &error);
		assert_string_equal(error.message, "");
		assert_int_equal(p->size, size);
		for (unsigned i = 0; i < count + 5; i++) {
			const struct tally_row *found = tally_profiles_find(p, &rows[i].key);
			assert_true((found != NULL) == (i < count));
			if (found)
				assert_memory_equal(found, &rows[i], sizeof *found);
		}
		tally_profiles_unmap(p);
		/* Another driver's are not used, and nobody can change them. */
		assert_null(tally_profiles_map(fd, &other, NULL));
		assert_ptr_equal(mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0),
				 MAP_FAILED);
		assert_int_not_equal(ftruncate(fd, 0), 0);
		close(fd);
	}
	int fd = tally_profiles_make(&origin, rows, TALLY_PROFILES_MAX + 5, &size, &error);
	const struct tally_profiles *p = tally_profiles_map(fd, &origin, &error);
	assert_non_null(tally_profiles_find(p, &rows[TALLY_PROFILES_MAX - 1].key));
	assert_null(tally_profiles_find(p, &rows[TALLY_PROFILES_MAX].key));
	tally_profiles_unmap(p);
	close(fd);
	assert_null(tally_profiles_map(-1, &origin, NULL));
	fd = memfd_create("x", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	assert_int_equal(ftruncate(fd, (off_t)size), 0);
	assert_null(tally_profiles_map(fd, &origin, NULL));
	fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE);
	assert_null(tally_profiles_map(fd, &origin, NULL));
	close(fd);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_what_is_put_is_there),
		TEST(test_runs_end_with_their_process),
		TEST(test_other_devices_are_others),
		TEST(test_origins),
		TEST(test_kill),
		TEST(test_two_processes_write),
		cmocka_unit_test(test_many_open_at_once),
		TEST(test_what_is_no_store_is_put_aside),
		TEST(test_damage),
		TEST(test_folders_that_cannot_be_written),
		TEST(test_reading_beside_a_writer),
		cmocka_unit_test(test_profiles),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
