/* SPDX-License-Identifier: Apache-2.0 */
/* Speaking with nvidia-cuda-mps-control: see mps.h. */
#include "backends/cuda/mps/mps.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

#define CONTROL	   "nvidia-cuda-mps-control"
#define PIPES	   "CUDA_MPS_PIPE_DIRECTORY="
#define LOGS	   "CUDA_MPS_LOG_DIRECTORY="
#define COMMAND_NS 10000000000ull /* a command that takes longer is killed */
#define QUIT_NS	   5000000000ull  /* until a control daemon that was told to has gone */
#define START_NS   3000000000ull  /* until one that was started answers */
#define LOCK_NS	   30000000000ull
#define PAUSE_NS   5000000

extern char **environ;

static void rest(void)
{
	nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS}, NULL);
}

/*
 * Variables that must not reach the control daemon: what is preloaded into programs; which devices
 * one program wants to see, which it would take for every client's; what it is told itself.
 */
static const char *const dropped[] = {
	"LD_PRELOAD=", "LD_LIBRARY_PATH=",	    "CUDA_VISIBLE_DEVICES=", "TALLY_", PIPES,
	LOGS,	       "CUDA_MPS_CLIENT_PRIORITY=",
};

/* The environment of a command about the control daemon in `pipes`; free(), the first two too. */
static char **environment_for(const char *pipes, const char *logs)
{
	size_t count = 0, n = 0;

	while (environ[count])
		count++;
	char **list = calloc(count + 3, sizeof *list);
	if (!list || asprintf(&list[n++], PIPES "%s", pipes) < 0 ||
	    asprintf(&list[n++], LOGS "%s", logs ? logs : pipes) < 0) {
		free(list);
		return NULL;
	}
	for (size_t i = 0; i < count; i++) {
		bool drop = false;
		for (size_t d = 0; d < sizeof dropped / sizeof *dropped; d++)
			drop |= !strncmp(environ[i], dropped[d], strlen(dropped[d]));
		if (!drop)
			list[n++] = environ[i];
	}
	return list;
}

/* Waits for the end of `child`; its exit status, -ETIMEDOUT when it had to be killed. */
static int end_of(pid_t child)
{
	uint64_t start = tally_now();
	int status = 0;

	for (;;) {
		pid_t ended = waitpid(child, &status, WNOHANG);

		if (ended == child)
			return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
		if (ended < 0 && errno != EINTR)
			return 0; /* SIGCHLD is ignored here: what it said has to do */
		if (tally_now() - start > COMMAND_NS) {
			kill(child, SIGKILL);
			waitpid(child, &status, 0);
			return -ETIMEDOUT;
		}
		rest();
	}
}

/*
 * Runs the tool with one `option` (NULL: none) and `input`. Its exit status, or -errno (-ENOENT: it
 * is not there); what it said is in `said`, one line. Files, not pipes: the daemon that `-d` leaves
 * keeps the tool's outputs open.
 */
static int command(const char *pipes, const char *logs, const char *option, const char *input,
		   char *said, size_t size)
{
	char *const argv[] = {CONTROL, (char *)option, NULL};
	int in = memfd_create("mps-in", MFD_CLOEXEC), out = memfd_create("mps-out", MFD_CLOEXEC);
	char **environment = environment_for(pipes, logs);
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t none, all;
	int result = -ENOMEM;
	pid_t child;

	said[0] = '\0';
	if (in < 0 || out < 0 || !environment ||
	    write(in, input, strlen(input)) != (ssize_t)strlen(input))
		goto end;
	lseek(in, 0, SEEK_SET);
	sigemptyset(&none);
	sigfillset(&all);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, in, STDIN_FILENO);
	posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
	posix_spawn_file_actions_adddup2(&actions, out, STDERR_FILENO);
	posix_spawnattr_init(&attributes);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
	posix_spawnattr_setsigmask(&attributes, &none);
	posix_spawnattr_setsigdefault(&attributes, &all);
	result = -posix_spawnp(&child, CONTROL, &actions, &attributes, argv, environment);
	posix_spawnattr_destroy(&attributes);
	posix_spawn_file_actions_destroy(&actions);
	if (result)
		goto end;
	result = end_of(child);
	ssize_t length = pread(out, said, size - 1, 0);
	said[length > 0 ? length : 0] = '\0';
	for (char *end = said + strlen(said); end > said && end[-1] == '\n';)
		*--end = '\0';
end:
	if (environment) {
		free(environment[0]);
		free(environment[1]);
	}
	free(environment);
	if (in >= 0)
		close(in);
	if (out >= 0)
		close(out);
	return result;
}

bool tally_mps_of(const char *socket, struct tally_mps *mps, struct tally_error *error)
{
	const char *slash = strrchr(socket, '/');

	if (!slash || snprintf(mps->folder, sizeof mps->folder, "%.*s/mps", (int)(slash - socket),
			       socket) >= (int)sizeof mps->folder)
		return tally_fail(error, "the socket path is too long");
	snprintf(mps->pipes, sizeof mps->pipes, "%s/pipes", mps->folder);
	snprintf(mps->logs, sizeof mps->logs, "%s/logs", mps->folder);
	return true;
}

int tally_mps_lock(const struct tally_mps *mps, bool wait, struct tally_error *error)
{
	char path[PATH_MAX];
	uint64_t start = tally_now();

	snprintf(path, sizeof path, "%s/lock", mps->folder);
	if (mkdir(mps->folder, 0700) && errno != EEXIST) {
		tally_fail(error, "cannot make %s: %s", mps->folder, strerror(errno));
		return -1;
	}
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0) {
		tally_fail(error, "cannot open %s: %s", path, strerror(errno));
		return -1;
	}
	while (flock(fd, LOCK_EX | LOCK_NB)) {
		if (!wait || tally_now() - start > LOCK_NS) {
			if (wait)
				tally_fail(error, "%s is held by another process", path);
			close(fd);
			return -1;
		}
		rest();
	}
	return fd;
}

/* A control daemon makes this when it starts. */
static bool control_there(const char *pipes)
{
	char path[PATH_MAX];

	return snprintf(path, sizeof path, "%s/control", pipes) < (int)sizeof path &&
	       !access(path, F_OK);
}

/* Asks the control daemon in `pipes`: 0 with the servers' process ids; 1 when nobody answers;
 * -errno. */
static int servers_of(const char *pipes, char *servers, size_t size)
{
	int status = command(pipes, NULL, NULL, "get_server_list\n", servers, size);

	/* The words, whatever the status is. */
	return status < 0 ? status : status > 0 || !strncmp(servers, "Cannot find", 11);
}

bool tally_mps_answers(const char *pipes)
{
	char servers[1024];

	return control_there(pipes) && !servers_of(pipes, servers, sizeof servers);
}

bool tally_mps_left(const struct tally_mps *mps)
{
	return control_there(mps->pipes);
}

static void empty(const char *folder)
{
	DIR *open_folder = opendir(folder);
	struct dirent *entry;
	char path[PATH_MAX + 256];

	while (open_folder && (entry = readdir(open_folder))) {
		snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
		if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, ".."))
			unlink(path);
	}
	if (open_folder)
		closedir(open_folder);
}

enum tally_mps_started tally_mps_start(const struct tally_mps *mps, struct tally_error *error)
{
	char said[256];

	if (tally_mps_answers(mps->pipes))
		return TALLY_MPS_RUNS;
	if ((mkdir(mps->pipes, 0700) && errno != EEXIST) ||
	    (mkdir(mps->logs, 0700) && errno != EEXIST)) {
		tally_fail(error, "cannot make the folders of MPS in %s: %s", mps->folder,
			   strerror(errno));
		return TALLY_MPS_FAILED;
	}
	/* What a killed one left would be taken for it. */
	empty(mps->pipes);
	int status = command(mps->pipes, mps->logs, "-d", "", said, sizeof said);
	for (uint64_t start = tally_now(); !status; rest()) {
		if (tally_mps_answers(mps->pipes))
			return TALLY_MPS_RUNS;
		if (tally_now() - start > START_NS)
			break;
	}
	empty(mps->pipes);
	if (status == -ENOENT) {
		tally_fail(error, CONTROL " is not in PATH");
		return TALLY_MPS_ABSENT;
	}
	tally_fail(error, CONTROL " -d does not start: %s",
		   status < 0 ? strerror(-status)
		   : *said    ? said
			      : "it said nothing (see its logs)");
	return TALLY_MPS_FAILED;
}

/* Whether a server of the control daemon has clients. */
static bool used(const struct tally_mps *mps, const char *servers)
{
	char said[256], input[64];

	for (const char *s = servers; *s;) {
		long server = strtol(s, (char **)&s, 10);

		if (server <= 0)
			break;
		snprintf(input, sizeof input, "get_client_list %ld\n", server);
		if (!command(mps->pipes, mps->logs, NULL, input, said, sizeof said) &&
		    strpbrk(said, "123456789"))
			return true;
	}
	return false;
}

bool tally_mps_stop(const struct tally_mps *mps, struct tally_error *error)
{
	char servers[1024], said[256];
	uint64_t start;
	int status;

	if (!control_there(mps->pipes))
		return true;
	status = servers_of(mps->pipes, servers, sizeof servers);
	if (status < 0)
		return tally_fail(error, "cannot ask MPS in %s: %s", mps->pipes, strerror(-status));
	/* Where nobody answers only the files are left. */
	if (!status) {
		if (used(mps, servers))
			return false;
		status = command(mps->pipes, mps->logs, NULL, "quit\n", said, sizeof said);
		start = tally_now();
		while (tally_mps_answers(mps->pipes)) {
			if (tally_now() - start > QUIT_NS)
				return tally_fail(error, "MPS in %s does not quit: %s", mps->pipes,
						  status < 0 ? strerror(-status) : said);
			rest();
		}
	}
	empty(mps->pipes);
	return true;
}
