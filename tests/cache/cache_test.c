/* SPDX-License-Identifier: Apache-2.0 */
/* Shows that many processes compile one request once, that no failure of worker, disk or folder is
 * fatal, and that the application never sees a child. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "cache/cache.h"

static char folder[32], cache[64], log_path[64], gate[64];

static int set_up(void **state)
{
	strcpy(folder, "/tmp/tally-cache-XXXXXX");
	assert_non_null(mkdtemp(folder));
	snprintf(cache, sizeof cache, "%s/cache", folder);
	snprintf(log_path, sizeof log_path, "%s/log", folder);
	snprintf(gate, sizeof gate, "%s/gate", folder);
	setenv("TALLY_CACHE_DIR", cache, 1);
	setenv("TALLY_LOWER", TALLY_SOURCE_DIR "/tests/cache/fake_lower.sh", 1);
	setenv("FAKE_LOG", log_path, 1);
	unsetenv("FAKE_MODE");
	unsetenv("FAKE_GATE");
	unsetenv("TALLY_CACHE_SIZE");
	unsetenv("TALLY_LOWER_TIMEOUT");
	return 0;
}

static int tear_down(void **state)
{
	char command[128];

	snprintf(command, sizeof command, "chmod -R u+w %s; rm -rf %s", folder, folder);
	return system(command);
}

static unsigned lines_of_log(void)
{
	struct tally_buffer text = {0};
	struct tally_error error = {0};
	unsigned lines = 0;

	if (tally_file_read(log_path, &text, &error))
		for (size_t i = 0; i < text.size; i++)
			lines += text.data[i] == '\n';
	tally_buffer_free(&text);
	return lines;
}

static void pause_ms(int ms)
{
	nanosleep(&(struct timespec){.tv_nsec = ms * 1000000L}, NULL);
}

/* Waits until the compiler was started so many times. */
static void wait_started(unsigned times)
{
	while (lines_of_log() < times)
		pause_ms(10);
}

/* Lets compilers end that FAKE_GATE keeps. */
static void open_gate(void)
{
	struct tally_error error = {0};

	assert_true(tally_file_write(gate, "", 0, &error));
}

/* Asks for a request whose image is text, and returns whether the answer is the fake compiler's
 * output for it, with nothing behind it but, in a file, a line that is a comment. */
static bool get_this(const struct tally_cache_request *request, char path[PATH_MAX],
		     struct tally_error *error)
{
	struct tally_buffer file = {0};
	char expected[8192];
	size_t length;

	if (!tally_cache_get(request, path, error))
		return false;
	length = (size_t)snprintf(expected, sizeof expected, "code:%.*s", (int)request->size,
				  (const char *)request->image);
	bool same = tally_file_read(path, &file, error) && file.size >= length &&
		    !memcmp(file.data, expected, length) &&
		    (file.size == length || !strncmp(file.data + length, "\n// ", 4));
	tally_buffer_free(&file);
	return same;
}

static bool get(const char *text, char path[PATH_MAX], struct tally_error *error)
{
	return get_this(&(struct tally_cache_request){text, strlen(text), "sm_90", "none"}, path,
			error);
}

static void second_request_costs_nothing(void **state)
{
	char path[PATH_MAX], again[PATH_MAX];
	struct tally_error error = {0};

	assert_true(get("a", path, &error));
	assert_memory_equal(path, cache, strlen(cache));
	assert_true(get("a", again, &error));
	assert_string_equal(path, again);
	assert_int_equal(lines_of_log(), 1);
	assert_true(get("b", again, &error));
	assert_string_not_equal(path, again);
	assert_int_equal(lines_of_log(), 2);
}

static void target_transform_and_compiler_are_part_of_the_name(void **state)
{
	struct tally_cache_request r = {"x", 1, "sm_90", "none"};
	char a[PATH_MAX], b[PATH_MAX], command[256];
	struct tally_error error = {0};

	assert_true(tally_cache_get(&r, a, &error));
	r.transform = "slice";
	assert_true(tally_cache_get(&r, b, &error));
	assert_string_not_equal(a, b);
	r.target = "x86-64";
	assert_true(tally_cache_get(&r, a, &error));
	assert_string_equal(a + strlen(a) - 3, ".so");
	snprintf(command, sizeof command,
		 "cp \"$TALLY_LOWER\" %s/other; touch -d 2001-01-01 %s/other", folder, folder);
	assert_int_equal(system(command), 0);
	snprintf(command, sizeof command, "%s/other", folder);
	setenv("TALLY_LOWER", command, 1);
	assert_true(tally_cache_get(&r, b, &error));
	assert_string_not_equal(a, b);
}

static void many_processes_compile_once(void **state)
{
	enum { PROCESSES = 20 };
	pid_t child[PROCESSES];

	setenv("FAKE_GATE", gate, 1);
	for (int i = 0; i < PROCESSES; i++) {
		child[i] = fork();
		if (!child[i]) {
			char path[PATH_MAX];
			struct tally_error error = {0};
			_exit(get("shared", path, &error) ? 0 : 1);
		}
	}
	wait_started(1);
	pause_ms(200); /* the more come meanwhile, the better */
	open_gate();
	for (int i = 0; i < PROCESSES; i++) {
		int status;
		assert_int_equal(waitpid(child[i], &status, 0), child[i]);
		assert_int_equal(status, 0);
	}
	assert_int_equal(lines_of_log(), 1);
}

static void another_takes_over_when_the_holder_is_killed(void **state)
{
	char path[PATH_MAX];
	struct tally_error error = {0};

	setenv("FAKE_MODE", "asleep", 1);
	pid_t holder = fork();
	if (!holder) {
		get("taken over", path, &error);
		_exit(0);
	}
	wait_started(1);
	kill(holder, SIGKILL);
	assert_int_equal(waitpid(holder, NULL, 0), holder);
	setenv("FAKE_MODE", "copy", 1);
	assert_true(get("taken over", path, &error));
	assert_int_equal(lines_of_log(), 2);
}

/* Gone, or dead and not yet noticed by whoever inherited it. */
static bool is_dead(pid_t process)
{
	struct tally_buffer text = {0};
	struct tally_error error = {0};
	char path[64];

	snprintf(path, sizeof path, "/proc/%d/stat", (int)process);
	bool dead = !tally_file_read(path, &text, &error) || strstr(text.data, ") Z ");
	tally_buffer_free(&text);
	return dead;
}

/* The worker of a killed application goes with it. */
static void worker_dies_with_the_application(void **state)
{
	struct tally_buffer text = {0};
	struct tally_error error = {0};
	char path[PATH_MAX];

	setenv("FAKE_MODE", "asleep", 1);
	pid_t holder = fork();
	if (!holder) {
		get("orphan", path, &error);
		_exit(0);
	}
	wait_started(1);
	assert_true(tally_file_read(log_path, &text, &error));
	pid_t worker = (pid_t)atoi(text.data);
	tally_buffer_free(&text);
	assert_false(is_dead(worker));
	kill(holder, SIGKILL);
	waitpid(holder, NULL, 0);
	for (int i = 0; i < 6000 && !is_dead(worker); i++)
		pause_ms(10);
	assert_true(is_dead(worker));
}

static void refusal_is_the_compilers_own_and_asked_once(void **state)
{
	char path[PATH_MAX];
	struct tally_error error = {0}, again = {0};

	setenv("FAKE_MODE", "refuse", 1);
	assert_false(get("bad", path, &error));
	assert_string_equal(error.message, "kernel k: unknown instruction foo");
	assert_string_equal(error.file, "<image>");
	assert_int_equal(error.line, 12);
	assert_int_equal(error.column, 3);
	assert_false(get("bad", path, &again));
	assert_string_equal(again.message, error.message);
	assert_int_equal(lines_of_log(), 1);
}

static void killed_worker_gets_one_more_attempt(void **state)
{
	char path[PATH_MAX];
	struct tally_error error = {0};
	struct tally_cache_request r = {"k", 1, "sm_90", "none"};

	setenv("FAKE_MODE", "once", 1);
	assert_true(tally_cache_get(&r, path, &error));
	setenv("FAKE_MODE", "killed", 1);
	r.image = "l";
	assert_false(tally_cache_get(&r, path, &error));
	assert_non_null(strstr(error.message, "signal 9"));
	setenv("FAKE_MODE", "copy", 1);
	assert_true(tally_cache_get(&r, path, &error)); /* not remembered */
}

static void stuck_worker_is_stopped(void **state)
{
	char path[PATH_MAX];
	struct tally_error error = {0};

	setenv("FAKE_MODE", "stuck", 1);
	setenv("TALLY_LOWER_TIMEOUT", "1", 1);
	assert_false(get("stuck", path, &error));
	assert_non_null(strstr(error.message, "TALLY_LOWER_TIMEOUT"));
	error = (struct tally_error){0};
	setenv("TALLY_LOWER_TIMEOUT", "soon", 1);
	assert_false(get("not even begun", path, &error));
	assert_non_null(strstr(error.message, "TALLY_LOWER_TIMEOUT is \"soon\""));
}

static void missing_or_silent_compiler(void **state)
{
	char path[PATH_MAX];
	struct tally_error error = {0};

	setenv("FAKE_MODE", "silent", 1);
	assert_false(get("s", path, &error));
	assert_non_null(strstr(error.message, "wrote nothing"));
	error = (struct tally_error){0};
	setenv("TALLY_LOWER", "/nowhere/tally-lower", 1);
	assert_false(get("m", path, &error));
	assert_string_equal(error.file, "/nowhere/tally-lower");
}

static void folder_that_cannot_be_written_is_no_failure(void **state)
{
	char path[PATH_MAX], again[PATH_MAX];
	struct tally_error error = {0};

	/* A file where the folder should be: fails for root too. */
	assert_true(tally_file_write(cache, "", 0, &error));
	assert_true(get("ro", path, &error));
	assert_memory_equal(path, "/proc/self/fd/", 14);
	assert_true(get("ro", again, &error));
	assert_int_equal(lines_of_log(), 1);
	/* The application closes what it does not know: made again. */
	close(atoi(path + 14));
	assert_true(get("ro", again, &error));
	assert_int_equal(lines_of_log(), 2);
}

static void folder_of_others_is_not_trusted(void **state)
{
	char path[PATH_MAX];
	struct tally_error error = {0};

	assert_int_equal(mkdir(cache, 0700), 0);
	assert_int_equal(chmod(cache, 0777), 0);
	assert_true(get("open", path, &error));
	assert_memory_equal(path, "/proc/self/fd/", 14);
}

static void folder_is_found_without_a_home(void **state)
{
	char path[PATH_MAX], expected[PATH_MAX];
	struct tally_error error = {0};
	char *home = strdup(getenv("HOME") ? getenv("HOME") : "/root");

	unsetenv("TALLY_CACHE_DIR");
	setenv("XDG_CACHE_HOME", "/x", 1);
	assert_true(tally_cache_folder(path, &error));
	assert_string_equal(path, "/x/tally");
	unsetenv("XDG_CACHE_HOME");
	setenv("HOME", "/h", 1);
	assert_true(tally_cache_folder(path, &error));
	assert_string_equal(path, "/h/.cache/tally");
	unsetenv("HOME");
	assert_true(tally_cache_folder(path, &error));
	snprintf(expected, sizeof expected, "/tmp/tally-%u/cache", (unsigned)getuid());
	assert_string_equal(path, expected);
	setenv("HOME", home, 1);
	free(home);
}

/* In a child, because the limit holds for ever. 3,000 bytes of output do not fit into 2,048; the
 * fake compiler runs without the limit, as a full disk would have it. */
static void file_size_limit_is_no_failure(void **state)
{
	pid_t child = fork();

	if (!child) {
		char path[PATH_MAX], text[3001];
		struct tally_error error = {0};
		struct rlimit limit = {2048, RLIM_INFINITY};
		memset(text, 'x', 3000);
		text[3000] = '\0';
		setrlimit(RLIMIT_FSIZE, &limit);
		/* Not even the input fits: an error, no signal. */
		_exit(!get(text, path, &error) && tally_failed(&error) ? 0 : 1);
	}
	int status;
	waitpid(child, &status, 0);
	assert_int_equal(status, 0);
}

/* What a crash of the machine or somebody's hand left under a result's name. */
static void what_is_no_result_is_made_again(void **state)
{
	char path[PATH_MAX], again[PATH_MAX];
	struct tally_error error = {0};

	assert_true(get("content", path, &error));
	assert_int_equal(truncate(path, 0), 0);
	assert_true(get("content", again, &error));
	assert_string_equal(again, path);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_true(get("content", again, &error));
	assert_string_equal(again, path);
	/* This one cannot be replaced: what is made stays in memory. */
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkdir(path, 0700), 0);
	assert_true(get("content", again, &error));
	assert_memory_equal(again, "/proc/self/fd/", 14);
	assert_int_equal(rmdir(path), 0);
}

static void damage(const char *path, size_t at, const char *bytes, size_t size)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(pwrite(fd, bytes, size, (off_t)at), size);
	close(fd);
}

/* Whatever kind of code it is: one bit anywhere, an end that is missing, more than there was, the
 * contents of another file. */
static void what_is_damaged_is_made_again(void **state)
{
	static const struct tally_cache_request kinds[] = {
		{"text", 4, "sm_90", "none"},
		{"text", 4, "x86-64", "none"},
		{"text", 4, "gfx90a", "slice,guard"},
		{"text", 4, "sm_90", TALLY_CACHE_OPAQUE},
	};
	char path[PATH_MAX], other[PATH_MAX], command[2 * PATH_MAX + 8];
	struct tally_error error = {0};
	unsigned made = 0;

	assert_true(get("other", other, &error));
	made++;
	for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
		struct tally_buffer whole = {0};
		assert_true(get_this(&kinds[k], path, &error));
		made++;
		assert_true(tally_file_read(path, &whole, &error));
		for (size_t at = 0; at < whole.size; at++) {
			char bit = (char)(whole.data[at] ^ (1 << at % 8));
			damage(path, at, &bit, 1);
			assert_int_equal(tally_cache_find(&kinds[k], command, &error),
					 TALLY_CACHE_MISSING);
			if (at % 8)
				damage(path, at, &whole.data[at], 1);
			else
				made++;
			assert_true(get_this(&kinds[k], path, &error));
			assert_int_equal(lines_of_log(), made);
		}
		assert_int_equal(truncate(path, (off_t)whole.size - 1), 0);
		assert_true(get_this(&kinds[k], path, &error));
		damage(path, whole.size, "x", 1);
		assert_true(get_this(&kinds[k], path, &error));
		snprintf(command, sizeof command, "cp %s %s", other, path);
		assert_int_equal(system(command), 0);
		assert_true(get_this(&kinds[k], path, &error));
		made += 3;
		assert_int_equal(lines_of_log(), made);
		tally_buffer_free(&whole);
	}
	struct tally_cache_status status;
	assert_true(tally_cache_status(&status, &error));
	assert_int_equal(status.files, 5);
}

/* Who waits for somebody that makes it again does not take what lies there meanwhile. */
static void what_is_damaged_is_waited_for(void **state)
{
	char path[PATH_MAX];
	struct tally_error error = {0};
	pid_t child[2];

	assert_true(get("waited for", path, &error));
	damage(path, 3, "?", 1);
	setenv("FAKE_GATE", gate, 1);
	for (int i = 0; i < 2; i++) {
		child[i] = fork();
		if (!child[i])
			_exit(get("waited for", path, &error) ? 0 : 1);
		wait_started(2);
	}
	pause_ms(100);
	open_gate();
	for (int i = 0; i < 2; i++) {
		int status;
		assert_int_equal(waitpid(child[i], &status, 0), child[i]);
		assert_int_equal(status, 0);
	}
	assert_int_equal(lines_of_log(), 2);
}

static void full_disk_is_no_failure(void **state)
{
	char path[PATH_MAX], *text = malloc(6001);
	struct tally_error error = {0};

	assert_int_equal(mkdir(cache, 0700), 0);
	if (mount("tally", cache, "tmpfs", 0, "size=4k,mode=700") != 0) {
		free(text);
		print_message("no permission to mount a small disk: %s\n", strerror(errno));
		skip();
	}
	memset(text, 'y', 6000);
	text[6000] = '\0';
	bool ok = get(text, path, &error);
	struct tally_cache_status status;
	bool known = tally_cache_status(&status, &error);
	umount(cache);
	free(text);
	assert_true(ok);
	assert_memory_equal(path, "/proc/self/fd/", 14);
	assert_true(known);
	assert_int_equal(status.files, 0);
}

static void set_age(const char *path, time_t seconds)
{
	struct timespec times[2] = {{.tv_sec = time(NULL) - seconds},
				    {.tv_sec = time(NULL) - seconds}};

	assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

static void least_recently_used_goes_first(void **state)
{
	enum { BYTES = 400000 };
	char path[4][PATH_MAX], *text = malloc(BYTES);
	struct tally_error error = {0};
	struct tally_cache_request r = {text, BYTES, "sm_90", "none"};

	setenv("TALLY_CACHE_SIZE", "1", 1); /* room for two */
	for (int i = 0; i < 2; i++) {
		memset(text, 'a' + i, BYTES);
		assert_true(tally_cache_get(&r, path[i], &error));
		set_age(path[i], 100 - i);
	}
	memset(text, 'a', BYTES); /* used again: now the newest */
	assert_true(tally_cache_get(&r, path[0], &error));
	memset(text, 'c', BYTES);
	assert_true(tally_cache_get(&r, path[2], &error));
	assert_int_equal(access(path[0], F_OK), 0);
	assert_int_equal(access(path[1], F_OK), -1);
	assert_int_equal(access(path[2], F_OK), 0);
	struct tally_cache_status status;
	assert_true(tally_cache_status(&status, &error));
	assert_int_equal(status.files, 2);
	assert_int_equal(status.limit, 1 << 20);
	assert_true(status.bytes <= status.limit);
	setenv("TALLY_CACHE_SIZE", "0", 1); /* what was just made is never thrown away */
	memset(text, 'd', BYTES);
	assert_true(tally_cache_get(&r, path[3], &error));
	assert_int_equal(access(path[3], F_OK), 0);
	assert_int_equal(access(path[2], F_OK), -1);
	free(text);
}

static void clear_while_in_use(void **state)
{
	char path[PATH_MAX], mine[PATH_MAX];
	struct tally_error error = {0};
	unsigned removed;
	char byte;

	assert_true(get("in use", path, &error));
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	snprintf(mine, sizeof mine, "%s/notes.txt", cache);
	assert_true(tally_file_write(mine, "n", 1, &error));
	setenv("FAKE_GATE", gate, 1);
	pid_t child = fork();
	if (!child) {
		char other[PATH_MAX];
		_exit(get("being made", other, &error) ? 0 : 1);
	}
	wait_started(2);
	assert_true(tally_cache_clear(&removed, &error));
	assert_int_equal(removed, 1);
	assert_int_equal(read(fd, &byte, 1), 1);
	close(fd);
	assert_int_equal(access(mine, F_OK), 0);
	open_gate();
	int status;
	waitpid(child, &status, 0);
	assert_int_equal(status, 0);
	assert_true(get("being made", path, &error));
	assert_int_equal(lines_of_log(), 2);
}

static volatile sig_atomic_t children_seen;

static void on_child(int number)
{
	children_seen++;
}

static void application_sees_no_child(void **state)
{
	char path[PATH_MAX];
	struct tally_error error = {0};
	struct sigaction action = {.sa_handler = on_child}, old;

	sigaction(SIGCHLD, &action, &old);
	assert_true(get("unseen", path, &error));
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	assert_int_equal(errno, ECHILD);
	assert_int_equal(children_seen, 0);
	action.sa_handler = SIG_IGN;
	sigaction(SIGCHLD, &action, NULL);
	assert_true(get("ignored", path, &error));
	sigaction(SIGCHLD, &old, NULL);
	assert_int_equal(lines_of_log(), 2);
}

static void worker_starts_clean(void **state)
{
	struct tally_cache_request r = {"e", 1, "sm_90", "none"};
	struct tally_buffer file = {0};
	struct tally_error error = {0};
	char path[PATH_MAX];
	struct sigaction ignore = {.sa_handler = SIG_IGN}, old;
	sigset_t blocked, before;
	int leaked = open("/dev/null", O_RDONLY); /* not close-on-exec */

	setenv("FAKE_MODE", "env", 1);
	setenv("LD_PRELOAD", "", 1);
	sigaction(SIGUSR1, &ignore, &old);
	sigemptyset(&blocked);
	sigaddset(&blocked, SIGUSR2);
	sigprocmask(SIG_BLOCK, &blocked, &before);
	assert_true(tally_cache_get(&r, path, &error));
	sigprocmask(SIG_SETMASK, &before, NULL);
	sigaction(SIGUSR1, &old, NULL);
	unsetenv("LD_PRELOAD");
	close(leaked);
	assert_true(tally_file_read(path, &file, &error));
	/* ls sees its three and the folder; `trap` prints what was ignored at the start: nothing.
	 */
	static const char expected[] = "4\npreload=\n";
	assert_true(file.size >= strlen(expected));
	assert_memory_equal(file.data, expected, strlen(expected));
	assert_null(strstr(file.data, "trap"));
	tally_buffer_free(&file);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(second_request_costs_nothing),
		TEST(target_transform_and_compiler_are_part_of_the_name),
		TEST(many_processes_compile_once),
		TEST(another_takes_over_when_the_holder_is_killed),
		TEST(worker_dies_with_the_application),
		TEST(refusal_is_the_compilers_own_and_asked_once),
		TEST(killed_worker_gets_one_more_attempt),
		TEST(stuck_worker_is_stopped),
		TEST(missing_or_silent_compiler),
		TEST(folder_that_cannot_be_written_is_no_failure),
		TEST(folder_of_others_is_not_trusted),
		TEST(folder_is_found_without_a_home),
		TEST(file_size_limit_is_no_failure),
		TEST(what_is_no_result_is_made_again),
		TEST(what_is_damaged_is_made_again),
		TEST(what_is_damaged_is_waited_for),
		TEST(full_disk_is_no_failure),
		TEST(least_recently_used_goes_first),
		TEST(clear_while_in_use),
		TEST(application_sees_no_child),
		TEST(worker_starts_clean),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
