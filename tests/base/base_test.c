/* SPDX-License-Identifier: Apache-2.0 */
/* Shows that errors stay one line and first, buffers grow, files are replaced whole or not at all.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/memory_file.h"
#include "base/number.h"

static void first_error_wins(void **state)
{
	struct tally_error error = {0};

	assert_false(
		tally_fail_at(&error, "k\n.ptx\033", 3, 9, "unknown\ninstruction %s\n", "foo"));
	assert_false(tally_fail(&error, "later"));
	assert_string_equal(error.message, "unknown instruction foo");
	assert_string_equal(error.file, "k .ptx ");
	assert_int_equal(error.line, 3);
	assert_int_equal(error.column, 9);
}

static void error_is_never_empty(void **state)
{
	struct tally_error error = {0};

	tally_fail(&error, "%s", "\n");
	assert_true(tally_failed(&error));
}

static void buffer_grows_and_ends_in_nul(void **state)
{
	struct tally_buffer b = {0};

	for (int i = 0; i < 5000; i++)
		tally_buffer_print(&b, "%d,", i);
	assert_false(b.failed);
	assert_int_equal(strlen(b.data), b.size);
	assert_memory_equal(b.data, "0,1,2,", 6);
	tally_buffer_free(&b);
	tally_buffer_append(&b, "x", SIZE_MAX);
	assert_true(b.failed);
	tally_buffer_free(&b);
	tally_buffer_json(&b, "a\"b\\c\n");
	assert_string_equal(b.data, "a\\\"b\\\\c\\u000a");
	tally_buffer_free(&b);
	/* Valid UTF-8 stays; lone, overlong, surrogate and cut-off bytes do not. */
	tally_buffer_json(&b, "\xc3\xa9\xf0\x9f\x98\x80 \xff \xc0\x80 \xed\xa0\x80 \xe2\x82");
	assert_string_equal(b.data, "\xc3\xa9\xf0\x9f\x98\x80 \\ufffd \\ufffd\\ufffd "
				    "\\ufffd\\ufffd\\ufffd \\ufffd\\ufffd");
	tally_buffer_free(&b);
	/* What terminals obey: valid in JSON, and read on terminals all the same. */
	tally_buffer_json(&b, "a\x7f\xc2\x9b"
			      "b");
	assert_string_equal(b.data, "a\\u007f\\u009bb");
	tally_buffer_free(&b);
}

static void text_is_made_plain(void **state)
{
	char text[] = "a\tb\n\x1b[2J \x7f \xc2\x9b"
		      "5n \x9b \xc3\xa9 \xc2\xa0 \xe2\x82";

	tally_text_plain(text, "\n");
	assert_string_equal(text, "a?b\n?[2J ? ??5n ? \xc3\xa9 \xc2\xa0 \xe2?");
	(void)state;
}

static void file_is_written_whole(void **state)
{
	char folder[] = "/tmp/tally-base-XXXXXX", path[128], inner[160], link[160], target[8];
	struct tally_buffer b = {0};
	struct tally_error error = {0};

	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof path, "%s/a/b", folder);
	assert_true(tally_make_folders(path, &error));
	snprintf(inner, sizeof inner, "%s/f", path);
	assert_true(tally_file_write(inner, "one", 3, &error));
	assert_true(tally_file_write(inner, "two", 3, &error));
	assert_true(tally_file_read(inner, &b, &error));
	assert_string_equal(b.data, "two");
	tally_buffer_free(&b);
	assert_true(tally_file_write("/dev/null", "x", 1, &error));
	assert_false(tally_file_write("/dev/full", "x", 1, &error));
	assert_string_equal(error.file, "/dev/full");
	error = (struct tally_error){0};
	assert_false(tally_file_read(path, &b, &error)); /* a folder */
	error = (struct tally_error){0};
	assert_false(tally_file_write("/nowhere/at/all", "x", 1, &error));
	/* Asked before, the answer is the same, and nothing is there afterwards. */
	static const char *const no[] = {"/nowhere/at/all", "/tmp", "", "/dev/null/x"};
	for (size_t k = 0; k < sizeof no / sizeof *no; k++) {
		error = (struct tally_error){0};
		assert_false(tally_file_may_write(no[k], &error));
		assert_non_null(strstr(error.message, "cannot write"));
	}
	error = (struct tally_error){0};
	assert_true(tally_file_may_write(inner, &error));
	assert_true(tally_file_may_write("/dev/null", &error));
	assert_true(tally_file_may_write("-", &error));
	/* Through a link the file is written, and the link stays one. */
	snprintf(link, sizeof link, "%s/l", path);
	assert_int_equal(symlink("f", link), 0);
	error = (struct tally_error){0};
	assert_true(tally_file_write(link, "three", 5, &error));
	assert_true(readlink(link, target, sizeof target) == 1);
	assert_true(tally_file_read(inner, &b, &error));
	assert_string_equal(b.data, "three");
	unlink(link);
	tally_buffer_free(&b);
	unlink(inner);
	rmdir(path);
	snprintf(path, sizeof path, "%s/a", folder);
	rmdir(path);
	assert_int_equal(rmdir(folder), 0); /* fails if a temporary file was left behind */
}

static void hashes_differ_by_content_and_extension(void **state)
{
	struct tally_hash a = tally_hash_bytes("abc", 3), b = tally_hash_bytes("abd", 3);

	assert_string_not_equal(a.hex, b.hex);
	assert_string_not_equal(tally_hash_extend(a, "x").hex, tally_hash_extend(b, "x").hex);
	assert_string_not_equal(tally_hash_extend(a, "x").hex, tally_hash_extend(a, "y").hex);
	assert_int_equal(strlen(a.hex), 32);
}

static void numbers_are_whole_words(void **state)
{
	static const struct {
		const char *text;
		bool ok;
		double value;
	} rows[] = {
		{"0", true, 0},	     {"31.6", true, 31.6}, {"0.05", true, 0.05},
		{"1e3", true, 1000}, {"2.", true, 2},	   {"1000", true, 1000},
		{"1001", false, 0},  {"", false, 0},	   {".5", false, 0},
		{"-1", false, 0},    {"+1", false, 0},	   {" 1", false, 0},
		{"1 ", false, 0},    {"1,5", false, 0},	   {"0x10", false, 0},
		{"nan", false, 0},   {"inf", false, 0},	   {"1e", false, 0},
		{"1e999", false, 0}, {"ten", false, 0},	   {"1e99999999999999999", false, 0},
	};
	unsigned long whole = 7;
	double value;

	for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
		value = -1;
		assert_int_equal(tally_parse_number(rows[i].text, 0, 1000, &value), rows[i].ok);
		assert_true(value == (rows[i].ok ? rows[i].value : -1));
	}
	assert_false(tally_parse_number(NULL, 0, 1000, &value));
	assert_false(tally_parse_whole("1.5", 0, 10, &whole));
	assert_false(tally_parse_whole("0", 1, 10, &whole));
	assert_int_equal(whole, 7);
	assert_true(tally_parse_whole("10", 1, 10, &whole));
	assert_int_equal(whole, 10);
}

/* 0: as it has to be; in a child, because the limits hold for ever. */
static int memory_file_in_narrow_process(void)
{
	struct rlimit sizes = {4096, 4096}, descriptors = {5, 5};
	struct stat info;
	int fd;

	close(STDIN_FILENO);
	setrlimit(RLIMIT_FSIZE, &sizes);
	setrlimit(RLIMIT_NOFILE, &descriptors);
	for (int k = 3; k < 5; k++)
		close(k);
	/* By default the signal of a file that is too large would end us here. */
	if (tally_memory_file("large", 0, 4097) >= 0 || errno != EFBIG)
		return 1;
	fd = tally_memory_file("fits", 0, 4096);
	return fd == 3 && !fstat(fd, &info) && info.st_size == 4096 ? 0 : 2;
}

static void memory_file_keeps_to_limits(void **state)
{
	int status = -1;
	pid_t child = fork();

	if (!child)
		_exit(memory_file_in_narrow_process());
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(first_error_wins),
		cmocka_unit_test(error_is_never_empty),
		cmocka_unit_test(buffer_grows_and_ends_in_nul),
		cmocka_unit_test(text_is_made_plain),
		cmocka_unit_test(file_is_written_whole),
		cmocka_unit_test(memory_file_keeps_to_limits),
		cmocka_unit_test(numbers_are_whole_words),
		cmocka_unit_test(hashes_differ_by_content_and_extension),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
