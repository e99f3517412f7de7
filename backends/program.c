/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a helper program (linker, assembler) and turns its failure into one line. */
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backends/backend.h"

extern char **environ;

/* Starts `argv` with stdout and stderr joined into a pipe; returns its reading end, -1 on error. */
static int start(const char *const *argv, pid_t *child, int *failure)
{
	posix_spawn_file_actions_t actions;
	int ends[2];

	if (pipe2(ends, O_CLOEXEC)) {
		*failure = errno;
		return -1;
	}
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
	posix_spawn_file_actions_adddup2(&actions, ends[1], 2);
	*failure = posix_spawnp(child, argv[0], &actions, NULL, (char *const *)argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	close(ends[1]);
	if (*failure) {
		close(ends[0]);
		return -1;
	}
	return ends[0];
}

/* Keeps the first bytes of what the program says; reads on to its end so that it can end. */
static void read_output(int fd, char *text, size_t size)
{
	char chunk[512];
	size_t used = 0;
	ssize_t count;

	while ((count = read(fd, chunk, sizeof chunk)) > 0 || (count < 0 && errno == EINTR)) {
		size_t keep = count < 0 ? 0 : (size_t)count;

		if (keep > size - 1 - used)
			keep = size - 1 - used;
		memcpy(text + used, chunk, keep);
		used += keep;
	}
	text[used] = '\0';
	text[strcspn(text, "\n")] = '\0';
}

bool tally_lower_run_program(const char *const *argv, struct tally_error *error)
{
	char text[512];
	int failure, status, fd;
	pid_t child;

	fd = start(argv, &child, &failure);
	if (fd < 0)
		return tally_fail(error, "cannot run %s: %s", argv[0], strerror(failure));
	read_output(fd, text, sizeof text);
	close(fd);
	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return true;
	if (WIFSIGNALED(status))
		return tally_fail(error, "%s was killed by signal %d", argv[0], WTERMSIG(status));
	return tally_fail(error, "%s failed: %s", argv[0], *text ? text : "no message");
}
