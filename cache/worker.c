/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs tally-lower inside somebody else's process without that process noticing.
 *
 * A child that execs gets SIGCHLD as its exit signal whatever clone() was told (execve(2)), so the
 * worker cannot be our child: the application's waitpid(-1) would take its status and its handler
 * would run. A nanny process stands between: cloned with exit signal 0, never execing, invisible to
 * every wait but __WCLONE's. It shares our memory (no page tables to copy, whatever the size of the
 * application) and, as after vfork(), runs while the calling thread is suspended, so that the
 * thread's stack, errno and thread-local data are the nanny's to use. It starts the worker, reads
 * what it says, stops it at the time limit, and leaves the result in a structure of the caller.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/memory_file.h"
#include "base/number.h"
#include "cache/internal.h"

/* glibc's other name of clone(): sanitizers intercept `clone`, and take ours for a fork. */
int __clone(int (*function)(void *), void *stack, int flags, void *argument, ...);

extern char **environ;

#define STACK_BYTES	65536
#define DEFAULT_SECONDS 120
#define INPUT_NAME	"/proc/self/fd/0"

struct job {
	/* In; nothing here is allocated or freed by the nanny or the worker. */
	char *const *arguments;
	char *const *environment;
	int input, output, said[2];
	uint64_t limit_ns; /* how long it may take, */
	uint64_t deadline; /* and until when; CLOCK_MONOTONIC */
	void *worker_stack;
	pid_t parent;

	/* Out */
	char text[4096]; /* the beginning of its stderr */
	size_t length;
	int status;	 /* of waitpid() */
	bool late;	 /* killed at the deadline */
	int start_error; /* errno when the worker could not be started */
};

static void close_others(void)
{
#ifdef SYS_close_range
	if (syscall(SYS_close_range, 3u, ~0u, 0u) == 0)
		return;
#endif
	struct rlimit limit = {.rlim_cur = 1024};

	getrlimit(RLIMIT_NOFILE, &limit);
	for (rlim_t fd = 3; fd < limit.rlim_cur && fd < 65536; fd++)
		close((int)fd);
}

/* The worker between clone and exec. */
static int worker_main(void *argument)
{
	struct job *job = argument;
	struct sigaction action = {.sa_handler = SIG_DFL};
	sigset_t none;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	setpgid(0, 0); /* so that the time limit reaches its own children, the linker's too */
	for (int s = 1; s < NSIG; s++)
		sigaction(s, &action, NULL);
	if (dup2(job->input, STDIN_FILENO) >= 0 && dup2(job->output, STDOUT_FILENO) >= 0 &&
	    dup2(job->said[1], STDERR_FILENO) >= 0) {
		close_others();
		sigemptyset(&none);
		sigprocmask(SIG_SETMASK, &none, NULL);
		execve(job->arguments[0], job->arguments, job->environment);
	}
	job->start_error = errno;
	_exit(127);
}

/* Reads what the worker says until it ends; false at the deadline. */
static bool listen(struct job *job)
{
	char rest[512];

	for (;;) {
		int64_t left = (int64_t)(job->deadline - tally_now());
		struct pollfd poll_fd = {.fd = job->said[0], .events = POLLIN};
		if (left <= 0)
			return false;
		int ready = poll(&poll_fd, 1, (int)(left / 1000000) + 1);
		if (ready < 0 && errno != EINTR)
			return true;
		if (ready <= 0)
			continue;
		size_t space = sizeof job->text - 1 - job->length;
		ssize_t n = read(job->said[0], space ? job->text + job->length : rest,
				 space ? space : sizeof rest);
		if (n == 0 || (n < 0 && errno != EINTR))
			return true;
		if (n > 0 && space)
			job->length += (size_t)n;
	}
}

/* Its stderr may end before it does. False at the deadline. */
static bool reap(struct job *job, pid_t worker)
{
	struct timespec pause = {.tv_nsec = 100000};

	for (;;) {
		pid_t got = waitpid(worker, &job->status, WNOHANG | __WALL);
		if (got == worker || (got < 0 && errno != EINTR))
			return true;
		if (tally_now() > job->deadline)
			return false;
		nanosleep(&pause, NULL);
		if (pause.tv_nsec < 10000000)
			pause.tv_nsec *= 2;
	}
}

static bool make_pipe(int ends[2])
{
	int low[2];

	if (pipe2(low, O_CLOEXEC) != 0)
		return false;
	for (int i = 0; i < 2; i++) {
		ends[i] = fcntl(low[i], F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
		close(low[i]);
	}
	return ends[0] >= 0 && ends[1] >= 0;
}

static int nanny_main(void *argument)
{
	struct job *job = argument;

	/* When the application is killed the nanny goes, and with it the worker. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != job->parent)
		_exit(0);
	/* Made here, in the nanny's own table of descriptors: the application holds no end of it,
	 * and no child that it forks meanwhile keeps it from ending. */
	pid_t worker = -1;
	if (make_pipe(job->said))
		worker = __clone(worker_main, (char *)job->worker_stack + STACK_BYTES,
				 CLONE_VM | CLONE_VFORK | SIGCHLD, job);
	if (worker < 0) {
		job->start_error = errno;
		_exit(0);
	}
	close(job->said[1]);
	if (!listen(job) || !reap(job, worker)) {
		job->late = true;
		kill(-worker, SIGKILL);
		kill(worker, SIGKILL);
		while (waitpid(worker, &job->status, __WALL) < 0 && errno == EINTR)
			;
	}
	_exit(0);
}

/* The environment without what would put a library of ours into the worker. */
static char **worker_environment(void)
{
	static const char *const dropped[] = {"LD_PRELOAD=", "LD_AUDIT="};
	size_t count = 0, kept = 0;

	while (environ && environ[count])
		count++;
	char **result = malloc((count + 1) * sizeof *result);
	if (!result)
		return NULL;
	for (size_t i = 0; i < count; i++) {
		bool drop = false;
		for (size_t k = 0; k < sizeof dropped / sizeof *dropped; k++)
			drop |= !strncmp(environ[i], dropped[k], strlen(dropped[k]));
		if (!drop)
			result[kept++] = environ[i];
	}
	result[kept] = NULL;
	return result;
}

static bool write_all(int fd, const void *data, size_t size)
{
	if (!tally_within_file_limit(size)) {
		errno = EFBIG;
		return false;
	}
	return tally_write_all(fd, data, size);
}

static void close_if_open(int fd)
{
	if (fd >= 0)
		close(fd);
}

static bool read_time_limit(uint64_t *ns, struct tally_error *error)
{
	const char *text = getenv("TALLY_LOWER_TIMEOUT");
	unsigned long seconds = DEFAULT_SECONDS;

	if (text && *text && !tally_parse_whole(text, 1, 86400, &seconds))
		return tally_fail(error,
				  "TALLY_LOWER_TIMEOUT is \"%s\", not a whole number of seconds "
				  "from 1 to 86400",
				  text);
	*ns = (uint64_t)seconds * 1000000000;
	return true;
}

/* The nanny, from the calling thread's side: everything is done when the clone call returns. */
static bool run_nanny(struct job *job)
{
	sigset_t all, old;
	int cancel;
	char *stacks = mmap(NULL, 2 * STACK_BYTES, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);

	if (stacks == MAP_FAILED)
		return false;
	job->worker_stack = stacks;
	job->parent = getpid();
	sigfillset(&all);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	sigprocmask(SIG_BLOCK, &all, &old);
	pid_t nanny = __clone(nanny_main, stacks + 2 * STACK_BYTES, CLONE_VM | CLONE_VFORK, job);
	int saved = errno;
	if (nanny > 0)
		while (waitpid(nanny, NULL, __WCLONE) < 0 && errno == EINTR)
			;
	sigprocmask(SIG_SETMASK, &old, NULL);
	pthread_setcancelstate(cancel, NULL);
	munmap(stacks, 2 * STACK_BYTES);
	errno = saved;
	return nanny > 0;
}

/* Turns "FILE:LINE:COL: error: TEXT" back into an error; the name of our memory file says nothing
 * to anybody, so it becomes <image>. */
static void parse_text(char *text, const char *lower, struct tally_error *error)
{
	char *found = strstr(text, "error: "), *line = found;
	unsigned row = 0, column = 0;

	if (!found) {
		text[strcspn(text, "\n")] = '\0';
		tally_fail(error, "%s", text[0] ? text : "tally-lower failed and said nothing");
		return;
	}
	while (line > text && line[-1] != '\n')
		line--;
	found[strcspn(found, "\n")] = '\0';
	if (!strncmp(line, INPUT_NAME ":", sizeof INPUT_NAME)) {
		sscanf(line + sizeof INPUT_NAME, "%u:%u:", &row, &column);
		tally_fail_at(error, "<image>", row, column, "%s", found + 7);
	} else {
		tally_fail(error, "%s", found + 7);
	}
}

static enum tally_worker_end judge(struct job *job, const char *lower, bool started,
				   struct tally_error *error)
{
	job->text[job->length] = '\0';
	if (!started || job->start_error) {
		tally_fail_at(error, lower, 0, 0, "cannot run: %s",
			      strerror(job->start_error ? job->start_error : errno));
		return TALLY_WORKER_FAILED;
	}
	if (job->late) {
		tally_fail(error,
			   "tally-lower was stopped: it took longer than %lld s (raise "
			   "TALLY_LOWER_TIMEOUT)",
			   (long long)(job->limit_ns / 1000000000));
		return TALLY_WORKER_LATE;
	}
	if (WIFSIGNALED(job->status)) {
		tally_fail(error, "tally-lower was killed by signal %d", WTERMSIG(job->status));
		return TALLY_WORKER_KILLED;
	}
	if (WEXITSTATUS(job->status) != 0) {
		parse_text(job->text, lower, error);
		return TALLY_WORKER_REFUSED;
	}
	if (lseek(job->output, 0, SEEK_END) <= 0) {
		tally_fail_at(error, lower, 0, 0, "wrote nothing");
		return TALLY_WORKER_REFUSED;
	}
	return TALLY_WORKER_DONE;
}

enum tally_worker_end tally_worker_run(const char *lower, const struct tally_cache_request *request,
				       int *output, struct tally_error *error)
{
	const char *arguments[] = {lower,
				   INPUT_NAME,
				   "--target",
				   request->target,
				   "--transform",
				   request->transform,
				   "--keep-going",
				   "-o",
				   "-",
				   NULL};
	uint64_t limit_ns = 0;

	*output = -1;
	if (!read_time_limit(&limit_ns, error))
		return TALLY_WORKER_FAILED;
	struct job job = {.arguments = (char *const *)(uintptr_t)arguments,
			  .input = tally_memory_file("tally-image", 0, 0),
			  .output = tally_memory_file("tally-code", 0, 0),
			  .limit_ns = limit_ns,
			  .deadline = tally_now() + limit_ns};
	char **environment = worker_environment();
	enum tally_worker_end end = TALLY_WORKER_FAILED;

	job.environment = environment;
	if (environment && job.input >= 0 && job.output >= 0 &&
	    write_all(job.input, request->image, request->size)) {
		bool started = run_nanny(&job);
		end = judge(&job, lower, started, error);
	} else {
		tally_fail(error, "cannot start tally-lower: %s", strerror(errno));
	}
	free(environment);
	close_if_open(job.input);
	if (end == TALLY_WORKER_DONE)
		*output = job.output;
	else
		close_if_open(job.output);
	return end;
}
