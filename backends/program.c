/* SPDX-License-Identifier: Apache-2.0 */
/* Helper programs (linker, assembler): run, fed from memory, their failure turned into one line. */
#include "backends/program.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

enum { INPUT_FD = 3 };

static volatile pid_t running;

pid_t tally_program_running(void)
{
	return running;
}

/* A file without a name that holds `input`; -1 with errno. */
static int memory_file(const struct tally_buffer *input)
{
	int fd = memfd_create("tally", MFD_CLOEXEC);
	size_t done = 0;

	while (fd >= 0 && done < input->size) {
		ssize_t count = write(fd, input->data + done, input->size - done);

		if (count < 0 && errno == EINTR)
			continue;
		if (count <= 0) {
			close(fd);
			return -1;
		}
		done += (size_t)count;
	}
	return fd;
}

/* The two ends that this process reads from. */
struct pipes {
	int out[2], messages[2];
};

static bool open_pipes(struct pipes *pipes)
{
	if (pipe2(pipes->out, O_CLOEXEC))
		return false;
	if (pipe2(pipes->messages, O_CLOEXEC)) {
		close(pipes->out[0]);
		close(pipes->out[1]);
		return false;
	}
	return true;
}

static int spawn(const char *const *argv, int input, const struct pipes *pipes, bool joined)
{
	posix_spawn_file_actions_t actions;
	pid_t child = 0;
	int failure;

	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_adddup2(&actions, joined ? pipes->messages[1] : pipes->out[1],
					 STDOUT_FILENO);
	posix_spawn_file_actions_adddup2(&actions, pipes->messages[1], STDERR_FILENO);
	if (input >= 0)
		posix_spawn_file_actions_adddup2(&actions, input, INPUT_FD);
	failure = posix_spawnp(&child, argv[0], &actions, NULL, (char *const *)argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	if (!failure)
		running = child;
	return failure;
}

/* Reads once; false at the end. */
static bool drain(int fd, struct tally_buffer *into)
{
	char chunk[16384];
	ssize_t count = read(fd, chunk, sizeof chunk);

	if (count > 0)
		tally_buffer_append(into, chunk, (size_t)count);
	return count > 0 || (count < 0 && errno == EINTR);
}

/* Both ends at once: a program that fills one while we wait for the other would wait for ever. */
static void read_both(const struct pipes *pipes, struct tally_buffer *out,
		      struct tally_buffer *messages)
{
	struct pollfd ends[2] = {{.fd = pipes->out[0], .events = POLLIN},
				 {.fd = pipes->messages[0], .events = POLLIN}};
	struct tally_buffer *into[2] = {out, messages};

	while (ends[0].fd >= 0 || ends[1].fd >= 0) {
		if (poll(ends, 2, -1) < 0 && errno != EINTR)
			return;
		for (int k = 0; k < 2; k++)
			if (ends[k].fd >= 0 && ends[k].revents && !drain(ends[k].fd, into[k]))
				ends[k].fd = -1;
	}
}

static bool judge(const char *program, int status, const struct tally_buffer *messages,
		  struct tally_error *error)
{
	size_t length = messages->data ? strcspn(messages->data, "\n") : 0;

	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return true;
	if (WIFSIGNALED(status))
		return tally_fail(error, "%s was killed by signal %d", program, WTERMSIG(status));
	return tally_fail(error, "%s failed: %.*s", program, (int)length,
			  length ? messages->data : "");
}

bool tally_program_run(const char *const *argv, const struct tally_buffer *input,
		       struct tally_buffer *out, struct tally_buffer *messages,
		       struct tally_error *error)
{
	struct tally_buffer own_out = {0}, own_messages = {0};
	int fd = input ? memory_file(input) : -1, failure, status = 0;
	struct pipes pipes;
	bool ok;

	if ((input && fd < 0) || !open_pipes(&pipes)) {
		tally_fail(error, "cannot run %s: %s", argv[0], strerror(errno));
		if (fd >= 0)
			close(fd);
		return false;
	}
	if (!messages)
		messages = &own_messages;
	failure = spawn(argv, fd, &pipes, !out);
	close(pipes.out[1]);
	close(pipes.messages[1]);
	if (fd >= 0)
		close(fd);
	if (!failure) {
		read_both(&pipes, out ? out : &own_out, messages);
		while (waitpid(running, &status, 0) < 0 && errno == EINTR)
			;
		running = 0;
	}
	close(pipes.out[0]);
	close(pipes.messages[0]);
	ok = failure ? tally_fail(error, "cannot run %s: %s", argv[0], strerror(failure))
		     : judge(argv[0], status, messages, error);
	if (ok && (messages->failed || (out && out->failed)))
		ok = tally_fail(error, "out of memory");
	tally_buffer_free(&own_out);
	tally_buffer_free(&own_messages);
	return ok;
}
