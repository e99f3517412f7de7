/* SPDX-License-Identifier: Apache-2.0 */
/* Starting tallyd when there is none: see command.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cli/command.h"
#include "sched/client.h"

#define ATTEMPTS   150
#define ATTEMPT_NS 20000000

static void become_daemon(const char *path, const char *socket, int messages)
{
	/* The daemon is no program of the user's: nothing is put between it and its libraries. */
	unsetenv("LD_PRELOAD");
	unsetenv("LD_LIBRARY_PATH");
	dup2(messages, STDOUT_FILENO);
	dup2(messages, STDERR_FILENO);
	execl(path, "tallyd", "--socket", socket, (char *)NULL);
	dprintf(STDERR_FILENO, "cannot run %s: %s", path, strerror(errno));
	_exit(127);
}

/* Runs tallyd, which goes to the background as soon as it serves (or another one does). */
static bool start(const char *socket, struct tally_error *error)
{
	char path[PATH_MAX], program[PATH_MAX + 8], said[512];
	int messages[2], status = 0;
	size_t length = 0;
	ssize_t n;

	if (!tally_program_folder(path, error))
		return false;
	snprintf(program, sizeof program, "%s/tallyd", path);
	if (pipe(messages))
		return tally_fail(error, "cannot make a pipe: %s", strerror(errno));
	pid_t child = fork();
	if (child < 0) {
		close(messages[0]);
		close(messages[1]);
		return tally_fail(error, "cannot fork: %s", strerror(errno));
	}
	if (!child) {
		close(messages[0]);
		become_daemon(program, socket, messages[1]);
	}
	close(messages[1]);
	while ((n = read(messages[0], said + length, sizeof said - 1 - length)) > 0 ||
	       (n < 0 && errno == EINTR))
		length += n > 0 ? (size_t)n : 0;
	close(messages[0]);
	said[length] = '\0';
	while (waitpid(child, &status, 0) < 0) {
		if (errno == EINTR)
			continue;
		status = 0; /* SIGCHLD is ignored here: whether it serves will show */
		break;
	}
	if (!status)
		return true;
	/* Its own message, without its own name in front. */
	const char *message = strstr(said, "error: ");
	return tally_fail(error, "tallyd does not start: %s", message ? message + 7 : said);
}

bool tally_start_daemon(const char *socket, struct tally_error *error)
{
	const struct timespec pause = {.tv_nsec = ATTEMPT_NS};
	struct tally_error last = {0};
	bool absent, started = false;

	for (int i = 0; i < ATTEMPTS; i++) {
		last = (struct tally_error){0};
		if (tally_client_expect(socket, &absent, &last))
			return true;
		if (!absent)
			break;
		if (!started) {
			if (!start(socket, error))
				return false;
			started = true;
			continue;
		}
		/* Another one was just starting, or just ending: in the second case ours gave way
		 * to it and has to be started again. */
		nanosleep(&pause, NULL);
		started = i % 10 != 9;
	}
	return tally_fail(error, "%s", last.message);
}
