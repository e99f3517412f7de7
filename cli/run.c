/* SPDX-License-Identifier: Apache-2.0 */
/* tally run: puts Tally under a program and becomes that program. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/options.h"
#include "cache/cache.h"
#include "cli/command.h"
#include "sched/client.h"
#include "sched/policy_slo.h"

static const char help[] =
	"usage: tally run [options] [--] PROGRAM [ARGUMENTS]\n"
	"\n"
	"Runs PROGRAM, unchanged, so that it shares its device with the other programs that run\n"
	"under Tally. Its input, output, signals and exit status are its own.\n"
	"\n"
	"options:\n"
	"  --priority LEVEL    high (100), best-effort (0), or any whole number; larger is more\n"
	"                      urgent, equals take turns (default: best-effort)\n"
	"  --slo BUDGET        for priority high: lower ones may run beside the program as long "
	"as\n"
	"                      its bursts of work take at most BUDGET times as long as alone, in\n"
	"                      the mean and at p99 (1.05: 5 % longer); default: they never may\n"
	"  --device DEVICE     cuda: the GPU; cpu: Tally's CPU device; auto: the GPU if there is\n"
	"                      one (default: auto)\n"
	"  --mps MODE          NVIDIA's Multi-Process Service, under which programs run side by\n"
	"                      side. auto: use one that runs, else start one and stop it when the\n"
	"                      last program has gone; on: the same, or fail; off: do without\n"
	"                      (default: auto)\n"
	"  --opaque WHOSE      whose kernels of machine code alone are made stoppable, if the "
	"program\n"
	"                      is one to stop. off: nobody's; open: not those of NVIDIA's closed\n"
	"                      libraries; all (default: open; see libtally(7) for why)\n"
	"  --name NAME         the name that `tally status` shows (default: the program's)\n"
	"  --help, --version\n"
	"\n"
	"exit status: the program's; 127 when it is not found, 126 when it cannot be run, 1 for\n"
	"errors of Tally's own before that.\n";

enum device { DEVICE_AUTO, DEVICE_CPU, DEVICE_CUDA };

struct settings {
	enum device device;
	enum tally_mps_use mps;
	int priority;
	const char *slo;    /* NULL: none */
	const char *opaque; /* NULL: what TALLY_OPAQUE says */
	const char *name;
	char **program;
};

static bool read_priority(void *settings, const char *value, struct tally_error *error)
{
	struct settings *s = settings;

	return tally_priority_parse(value, &s->priority) ||
	       tally_fail(error,
			  "--priority wants high, best-effort or a whole number up to %d, not "
			  "\"%s\"",
			  TALLY_PRIORITY_MOST, value);
}

static bool read_slo(void *settings, const char *value, struct tally_error *error)
{
	struct settings *s = settings;

	s->slo = value;
	return tally_slo_budget(value) ||
	       tally_fail(error, "--slo wants a number from 1.001 to 100, not \"%s\"", value);
}

static bool read_device(void *settings, const char *value, struct tally_error *error)
{
	static const char *const devices[] = {
		[DEVICE_AUTO] = "auto", [DEVICE_CPU] = "cpu", [DEVICE_CUDA] = "cuda"};
	struct settings *s = settings;
	int device = tally_option_word("--device", value, devices, 3, error);

	s->device = (enum device)device;
	return device >= 0;
}

static bool read_mps(void *settings, const char *value, struct tally_error *error)
{
	static const char *const uses[] = {
		[TALLY_MPS_AUTO] = "auto", [TALLY_MPS_ON] = "on", [TALLY_MPS_OFF] = "off"};
	struct settings *s = settings;
	int use = tally_option_word("--mps", value, uses, 3, error);

	s->mps = (enum tally_mps_use)use;
	return use >= 0;
}

static bool read_opaque(void *settings, const char *value, struct tally_error *error)
{
	static const char *const whose[] = {"off", "open", "all"};
	struct settings *s = settings;

	s->opaque = value;
	return tally_option_word("--opaque", value, whose, 3, error) >= 0;
}

static const struct tally_option options[] = {
	TALLY_OPTION_READ("priority", 0, read_priority),
	TALLY_OPTION_READ("slo", 0, read_slo),
	TALLY_OPTION_READ("device", 0, read_device),
	TALLY_OPTION_READ("mps", 0, read_mps),
	TALLY_OPTION_READ("opaque", 0, read_opaque),
	TALLY_OPTION_TEXT("name", 0, struct settings, name),
	{NULL},
};

/* -1: go on; otherwise the exit status. */
static int parse(int argc, char **argv, struct settings *settings)
{
	const struct tally_command_line line = {.program = "tally run",
						.help = help,
						.version = TALLY_COMMAND_VERSION,
						.options = options,
						.command_follows = true};
	struct tally_error error = {0};
	int first = tally_options_read(&line, argc, argv, settings, &error);

	if (first > 0 && settings->slo && settings->priority < TALLY_PRIORITY_HIGH)
		tally_fail(&error, "--slo is for programs of priority high (100) or more: others "
				   "have no latency to keep");
	else if (first >= argc)
		tally_fail(&error, "which program? (see tally run --help)");
	if (tally_failed(&error)) {
		tally_error_print(&error, "tally run");
		return 1;
	}
	settings->program = argv + first;
	return first ? -1 : 0;
}

static bool driver_present(void)
{
	/* The last is how WSL shows its GPU. */
	static const char *const signs[] = {"/proc/driver/nvidia/version", "/dev/nvidiactl",
					    "/dev/dxg"};

	for (unsigned i = 0; i < sizeof signs / sizeof *signs; i++)
		if (!access(signs[i], F_OK))
			return true;
	return false;
}

/* Whether `entry` is one of the entries of `list`. */
static bool listed(const char *list, const char *entry, const char *separators)
{
	size_t length = strlen(entry);

	while (*list) {
		size_t n = strcspn(list, separators);
		if (n == length && !strncmp(list, entry, n))
			return true;
		list += n + (list[n] != '\0');
	}
	return false;
}

/* Puts `entry` in front of the list in environment variable `name`, once. */
static bool prepend(const char *name, const char *entry, const char *separators,
		    struct tally_error *error)
{
	const char *old = getenv(name);
	char *value = NULL;

	if (strpbrk(entry, separators))
		return tally_fail(
			error,
			"%s cannot hold the path \"%s\" (it separates paths at one of its "
			"characters): put Tally elsewhere",
			name, entry);
	if (old && listed(old, entry, separators))
		return true;
	bool ok = asprintf(&value, "%s%s%s", entry, old && *old ? ":" : "", old ? old : "") >= 0 &&
		  !setenv(name, value, 1);
	free(value);
	return ok ? true : tally_fail(error, "out of memory");
}

static bool set_environment(const struct settings *settings, const char *socket,
			    struct tally_error *error)
{
	char libraries[PATH_MAX], path[PATH_MAX + 32], priority[16];

	if (!tally_library_folder(libraries, error))
		return false;
	if (settings->device == DEVICE_CPU) {
		snprintf(path, sizeof path, "%s/libcuda.so.1", libraries);
		if (access(path, R_OK))
			return tally_fail(error,
					  "the CPU device is not part of this installation: %s is "
					  "missing",
					  path);
		if (!prepend("LD_LIBRARY_PATH", libraries, ":;", error))
			return false;
	}
	/* Streams share as many hardware queues as this says, and behind launches of other streams
	 * in the same one waits also what is to stop them. 8 is the default but for clients of MPS,
	 * which get 2 of a pool that they share: with more there is room for fewer clients. */
	if (settings->device == DEVICE_CUDA && settings->priority < TALLY_PRIORITY_HIGH &&
	    setenv("CUDA_DEVICE_MAX_CONNECTIONS", "8", 0))
		return tally_fail(error, "out of memory");
	snprintf(path, sizeof path, "%s/libtally.so", libraries);
	if (!prepend("LD_PRELOAD", path, ": \t\n", error))
		return false;
	snprintf(priority, sizeof priority, "%d", settings->priority);
	if (setenv("TALLY_PRIORITY", priority, 1) || setenv("TALLY_NAME", settings->name, 1) ||
	    setenv("TALLY_SOCKET", socket, 1) ||
	    (settings->opaque && setenv("TALLY_OPAQUE", settings->opaque, 1)) ||
	    (settings->slo ? setenv("TALLY_SLO", settings->slo, 1) : unsetenv("TALLY_SLO")))
		return tally_fail(error, "out of memory");
	return true;
}

static void warn_about_program(const struct settings *settings)
{
	struct tally_program_look look;
	const char *program = settings->program[0];

	tally_look_at_program(program, &look);
	if (look.closed)
		fprintf(stderr,
			"tally run: warning: %s %s: Tally cannot get between it and the driver, it "
			"runs unscheduled\n",
			program, look.closed);
	else if (look.static_cudart && settings->device == DEVICE_CPU)
		fprintf(stderr,
			"tally run: warning: %s has NVIDIA's CUDA runtime linked in, which runs on "
			"NVIDIA's driver only: relink it with `nvcc -cudart shared` for the CPU "
			"device\n",
			program);
	if (settings->device == DEVICE_CUDA && !driver_present())
		fprintf(stderr, "tally run: warning: no NVIDIA driver is visible here; `--device "
				"cpu` runs without one\n");
}

int tally_command_run(int argc, char **argv)
{
	struct settings settings = {.priority = TALLY_PRIORITY_BEST_EFFORT};
	struct tally_error error = {0}, daemon_error = {0};
	char socket[PATH_MAX], cache[PATH_MAX];

	int status = parse(argc, argv, &settings);
	if (status >= 0)
		return status;
	const char *program = settings.program[0];
	const char *slash = strrchr(program, '/');
	if (!settings.name)
		settings.name = slash && slash[1] ? slash + 1 : program;
	if (settings.device == DEVICE_AUTO)
		settings.device = driver_present() ? DEVICE_CUDA : DEVICE_CPU;

	if (settings.device == DEVICE_CPU && settings.mps == TALLY_MPS_ON)
		tally_fail(&error, "--mps on: the CPU device has no MPS (use --device cuda)");
	if (tally_failed(&error) || !tally_socket_path(socket, sizeof socket, &error) ||
	    !tally_cache_folder(cache, &error) || !set_environment(&settings, socket, &error)) {
		tally_error_print(&error, "tally run");
		return 1;
	}
	warn_about_program(&settings);
	bool served = tally_start_daemon(socket, &daemon_error);
	if (!served)
		fprintf(stderr, "tally run: warning: %s; %s runs unscheduled\n",
			daemon_error.message, settings.name);
	if (settings.device == DEVICE_CUDA &&
	    !tally_use_mps(settings.mps, socket, settings.priority, served, &error)) {
		tally_error_print(&error, "tally run");
		return 1;
	}
	execvp(program, settings.program);
	int cause = errno;
	fprintf(stderr, "tally run: error: cannot run %s: %s\n", program, strerror(cause));
	return cause == ENOENT ? 127 : 126;
}
