/* SPDX-License-Identifier: Apache-2.0 */
/* tallyd: the daemon of one user on one host; shares each device between that user's programs. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/number.h"
#include "base/options.h"
#include "cache/cache.h"
#include "cli/mps_keeper.h"
#include "profiler/collector.h"
#include "sched/client.h"
#include "sched/daemon.h"
#include "sched/listener.h"

#define LOG_LIMIT (1 << 20) /* bytes: a longer log file starts anew */

static const char help[] =
	"usage: tallyd [options]\n"
	"\n"
	"Serves the board over which the programs of one user on one host share their devices.\n"
	"`tally run` starts it when there is none; it ends by itself when nobody needs it.\n"
	"\n"
	"options:\n"
	"  --foreground          stay attached to the terminal and log there\n"
	"  --idle-timeout SEC    end after SEC seconds without programs (default 10; 0: never)\n"
	"  --quantum MS          how long one of several equal programs runs before the next\n"
	"                        (default 20)\n"
	"  --socket PATH         the socket (default: $TALLY_SOCKET, else\n"
	"                        $XDG_RUNTIME_DIR/tally/tallyd.sock, else\n"
	"                        /tmp/tally-UID/tallyd.sock); its folder has to be yours, mode "
	"0700\n"
	"  --help, --version\n"
	"\n"
	"exit status: 0 when it ended as asked or another tallyd serves the socket, 1 on errors.\n";

struct settings {
	bool foreground;
	double idle_s, quantum_ms;
	char socket[PATH_MAX];
};

static bool parse_number(const char *option, const char *text, double least, double most,
			 double *value, struct tally_error *error)
{
	return tally_parse_number(text, least, most, value) ||
	       tally_fail(error, "%s wants a number from %g to %.10g, not \"%s\"", option, least,
			  most, text);
}

static bool read_idle(void *settings, const char *value, struct tally_error *error)
{
	struct settings *s = settings;

	return parse_number("--idle-timeout", value, 0, 1e9, &s->idle_s, error);
}

static bool read_quantum(void *settings, const char *value, struct tally_error *error)
{
	struct settings *s = settings;

	return parse_number("--quantum", value, 0.1, 60000, &s->quantum_ms, error);
}

static bool read_socket(void *settings, const char *value, struct tally_error *error)
{
	struct settings *s = settings;

	if (!*value)
		return tally_fail(error, "--socket wants the path of a socket");
	return snprintf(s->socket, PATH_MAX, "%s", value) < PATH_MAX ||
	       tally_fail(error, "the socket path is too long");
}

static const struct tally_option known[] = {
	TALLY_OPTION_FLAG("foreground", 0, struct settings, foreground),
	TALLY_OPTION_READ("idle-timeout", 0, read_idle),
	TALLY_OPTION_READ("quantum", 0, read_quantum),
	TALLY_OPTION_READ("socket", 0, read_socket),
	{NULL},
};

/* Whoever started us may wait for the end of a pipe that we inherited. */
static void close_inherited(void)
{
	if (syscall(SYS_close_range, 3, ~0u, 0)) {
		long end = sysconf(_SC_OPEN_MAX);
		for (int fd = 3; fd < (end > 0 && end < 65536 ? end : 65536); fd++)
			close(fd);
	}
}

static bool log_is_ours;

static bool open_log(const char *socket, struct tally_error *error)
{
	char path[PATH_MAX];

	const char *slash = strrchr(socket, '/');
	if (snprintf(path, sizeof path, "%.*s/tallyd.log", (int)(slash - socket), socket) >=
	    (int)sizeof path)
		return tally_fail(error, "the socket path is too long");
	int log = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
	int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (log < 0 || nothing < 0)
		return tally_fail(error, "cannot open the log file %s: %s", path, strerror(errno));
	fflush(NULL);
	dup2(nothing, STDIN_FILENO);
	dup2(log, STDOUT_FILENO);
	dup2(log, STDERR_FILENO);
	close(nothing);
	close(log);
	log_is_ours = true;
	return true;
}

static void write_log(const char *line)
{
	struct timespec now;
	struct stat is;
	struct tm parts;
	char stamp[32];

	/* A program that is refused again and again must not fill the disk. In the foreground this
	 * is the user's own file, or a terminal. */
	if (log_is_ours && !fstat(STDERR_FILENO, &is) && is.st_size > LOG_LIMIT &&
	    ftruncate(STDERR_FILENO, 0))
		return;
	clock_gettime(CLOCK_REALTIME, &now);
	localtime_r(&now.tv_sec, &parts);
	strftime(stamp, sizeof stamp, "%F %T", &parts);
	fprintf(stderr, "%s.%03ld tallyd[%d]: %s\n", stamp, now.tv_nsec / 1000000, getpid(), line);
}

/* Forks twice, so that the daemon is nobody's child, has a session of its own and can never get a
 * terminal. Returns in the daemon; the first process ends here once all is set up. */
static bool detach(struct tally_error *error)
{
	for (int round = 0; round < 2; round++) {
		pid_t child = fork();
		if (child < 0)
			return tally_fail(error, "cannot fork: %s", strerror(errno));
		if (child > 0)
			_exit(0);
		if (!round)
			setsid();
	}
	if (chdir("/"))
		return tally_fail(error, "cannot leave the folder: %s", strerror(errno));
	return true;
}

static int catch_signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	sigprocmask(SIG_SETMASK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN); /* a limit of who started us: an error, not our end */
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* Measurements are kept in the folder of compiled kernels; without one the programs go on. */
static struct tally_collector *start_collector(void)
{
	struct tally_collector *collector = NULL;
	struct tally_error error = {0};
	char folder[PATH_MAX];

	if (tally_cache_folder(folder, &error))
		collector = tally_collector_start(folder, write_log, &error);
	if (!collector)
		write_log(error.message);
	return collector;
}

static bool run(const struct settings *settings, struct tally_error *error)
{
	struct tally_daemon_hooks hooks = {.joined = tally_collector_joined,
					   .left = tally_collector_left};
	struct tally_mps_keeper keeper = {.log = write_log};
	struct rlimit files;
	int lock;

	switch (tally_listener_claim(settings->socket, &lock, error)) {
	case TALLY_CLAIM_FAILED:
		return false;
	case TALLY_CLAIM_TAKEN:
		fprintf(stderr, "tallyd: another tallyd serves %s\n", settings->socket);
		return true;
	case TALLY_CLAIM_OURS:
		break;
	}
	/* Three descriptors a program: more than the usual limit of 1024 is not needed, less may be
	 * set. */
	if (!getrlimit(RLIMIT_NOFILE, &files) && files.rlim_cur < 1024) {
		files.rlim_cur = files.rlim_max < 1024 ? files.rlim_max : 1024;
		setrlimit(RLIMIT_NOFILE, &files);
	}
	struct tally_daemon_options options = {
		.socket_path = settings->socket,
		.policy = &tally_policy_strict,
		.quantum_ns = (uint64_t)(settings->quantum_ms * 1e6),
		.idle_ns = settings->idle_s > 0 ? (uint64_t)(settings->idle_s * 1e9) : UINT64_MAX,
		.log = write_log,
		.stop_fd = catch_signals(),
		.lock = lock,
		.hooks = &hooks,
		.cleared_context = &keeper,
	};
	if (tally_mps_of(settings->socket, &keeper.mps, &(struct tally_error){0}))
		options.cleared = tally_mps_keeper_cleared;
	if (options.stop_fd < 0)
		return tally_fail(error, "cannot watch signals: %s", strerror(errno));
	/* The socket listens before the first process ends: who started us can connect at once. */
	struct tally_daemon *daemon = tally_daemon_open(&options, error);
	if (!daemon)
		return false;
	bool ok = settings->foreground || (open_log(settings->socket, error) && detach(error));
	if (ok) {
		/* Here: a thread does not survive the forks. */
		struct tally_collector *collector = start_collector();
		hooks.context = collector;
		write_log("serving");
		ok = tally_daemon_serve(daemon, error);
		/* Before the connections end: those programs are not gone. */
		tally_collector_stop(collector);
		hooks.context = NULL;
	} else {
		unlink(settings->socket);
	}
	tally_daemon_close(daemon);
	close(options.stop_fd);
	close(lock);
	return ok;
}

int main(int argc, char **argv)
{
	const struct tally_command_line line = {.program = "tallyd",
						.help = help,
						.version = "tallyd " TALLY_VERSION "\n",
						.options = known};
	struct settings settings = {.idle_s = 10, .quantum_ms = 20};
	struct tally_error error = {0};
	int first = tally_options_read(&line, argc, argv, &settings, &error);

	if (!first && (fflush(stdout) || ferror(stdout)))
		tally_fail(&error, "cannot write: %s", strerror(errno));
	if (first > 0 &&
	    (settings.socket[0] || tally_socket_path(settings.socket, PATH_MAX, &error))) {
		if (!settings.foreground)
			close_inherited();
		run(&settings, &error);
	}
	if (!tally_failed(&error))
		return 0;
	tally_error_print(&error, "tallyd");
	return 1;
}
