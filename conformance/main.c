/* SPDX-License-Identifier: Apache-2.0 */
/* conformance: proves that transformed kernels do what the originals do, on a device and for every
 * target. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/number.h"
#include "base/options.h"
#include "conformance/runner.h"

static const char usage[] =
	"usage: conformance [options]\n"
	"Runs every kernel whole, in slices, and stopped and resumed at block boundaries, and "
	"compares\n"
	"each run with the untransformed one and with a C reference; lowers it for every target "
	"and\n"
	"gives the result to the target's own tools.\n"
	"  --filter TEXT    only cases whose name contains TEXT\n"
	"  --device D       cpu (default), cuda, or none\n"
	"  --target LIST    GPU targets to lower for, comma-separated; none; default: all below\n"
	"  --junit FILE     write JUnit XML\n"
	"  --table FILE     write the table, and why kernels are refused\n"
	"  --jobs N         compilations at a time (default: 2)\n"
	"  --live N         rounds of stopping while the launch runs (default: 3)\n"
	"  --build DIR      build tree (default: the one this program is in)\n"
	"  --list           print the cases and end\n"
	"  --help, --version\n";

static const char all_targets[] =
	"sm_70,sm_75,sm_80,sm_90,sm_100,sm_120,gfx906,gfx90a,gfx942,gfx950,"
	"gfx1030,gfx1100,gfx1201";

static const char *join(const char *a, const char *b)
{
	static char paths[8][PATH_MAX]; /* live as long as the program */
	static unsigned used;

	if (used == sizeof paths / sizeof *paths)
		exit(2);
	snprintf(paths[used], sizeof paths[used], "%s/%s", a, b);
	return paths[used++];
}

/* build/bin/conformance -> build */
static const char *own_build(void)
{
	static char path[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);

	for (int up = 0; n > 0 && up < 2; up++) {
		path[n] = '\0';
		char *slash = strrchr(path, '/');
		n = slash ? slash - path : 0;
	}
	path[n > 0 ? n : 0] = '\0';
	return path;
}

static const char *const *split(const char *list)
{
	static const char *parts[64];
	char *copy = strcmp(list, "none") ? strdup(list) : NULL; /* as long as the program */
	size_t count = 0;

	if (copy)
		for (char *p = strtok(copy, ","); p && count < 63; p = strtok(NULL, ","))
			parts[count++] = p;
	parts[count] = NULL;
	return parts;
}

static bool whole(const char *option, const char *text, unsigned long least, unsigned *value,
		  struct tally_error *error)
{
	unsigned long number = 0;

	if (!tally_parse_whole(text, least, 1000, &number))
		return tally_fail(error, "%s wants a whole number from %lu to 1000, not %s", option,
				  least, text);
	*value = (unsigned)number;
	return true;
}

struct settings {
	struct options o;
	const char *build, *device, *targets;
	bool list;
};

static bool read_jobs(void *settings, const char *value, struct tally_error *error)
{
	struct settings *s = settings;

	return whole("--jobs", value, 1, &s->o.jobs, error);
}

static bool read_live(void *settings, const char *value, struct tally_error *error)
{
	struct settings *s = settings;

	return whole("--live", value, 0, &s->o.live_stops, error);
}

static const struct tally_option known[] = {
	TALLY_OPTION_TEXT("filter", 0, struct settings, o.filter),
	TALLY_OPTION_TEXT("device", 0, struct settings, device),
	TALLY_OPTION_TEXT("target", 0, struct settings, targets),
	TALLY_OPTION_TEXT("junit", 0, struct settings, o.junit),
	TALLY_OPTION_TEXT("table", 0, struct settings, o.table),
	TALLY_OPTION_READ("jobs", 0, read_jobs),
	TALLY_OPTION_READ("live", 0, read_live),
	TALLY_OPTION_TEXT("build", 0, struct settings, build),
	TALLY_OPTION_FLAG("list", 0, struct settings, list),
	{NULL},
};

static bool any_selected(const struct options *o)
{
	for (size_t g = 0; conformance_groups[g]; g++)
		for (const struct conformance_case *c = conformance_groups[g]; c->name; c++)
			if (selected(o, c))
				return true;
	return false;
}

static void list(const struct options *o)
{
	for (size_t g = 0; conformance_groups[g]; g++)
		for (const struct conformance_case *c = conformance_groups[g]; c->name; c++)
			if (selected(o, c))
				printf("%-20s grid %u,%u,%u block %u,%u,%u\n", c->name, c->grid[0],
				       c->grid[1], c->grid[2], c->block[0], c->block[1],
				       c->block[2]);
}

static bool find_tools(struct options *o, const char *build, struct tally_error *error)
{
	o->kernels = join(build, "conformance/kernels");
	o->work = join(build, "conformance/work");
	o->tally_lower = join(build, "bin/tally-lower");
	o->ptxas = getenv("TALLY_PTXAS") ? getenv("TALLY_PTXAS") : TALLY_PTXAS;
	o->readelf = TALLY_LLVM_BIN "/llvm-readelf";
	return (!access(o->tally_lower, X_OK) && !access(o->kernels, R_OK | X_OK)) ||
	       tally_fail(error,
			  "%s is no build tree: bin/tally-lower or conformance/kernels is missing "
			  "(--build)",
			  *build ? build : "/");
}

static bool find_device(struct options *o, const struct settings *s, struct tally_error *error)
{
	o->device = s->device;
	if (!strcmp(s->device, "cpu")) {
		o->driver = join(s->build, "lib/libcuda.so.1");
		o->device_target = "x86-64";
	} else if (!strcmp(s->device, "cuda")) {
		o->driver = "libcuda.so.1";
		o->device_target =
			getenv("TALLY_CUDA_TARGET") ? getenv("TALLY_CUDA_TARGET") : "sm_90";
	} else if (strcmp(s->device, "none")) {
		return tally_fail(error, "unknown device %s: there are cpu, cuda and none",
				  s->device);
	}
	return true;
}

/* What would be found at the end of all work otherwise, or in every line of it. */
static bool check(const struct options *o, struct tally_error *error)
{
	if (!o->driver && !o->targets[0])
		return tally_fail(error, "--device none and --target none leave nothing to do");
	return (!o->junit || tally_file_may_write(o->junit, error)) &&
	       (!o->table || tally_file_may_write(o->table, error)) && check_targets(o, error);
}

static int refuse(const struct tally_error *error)
{
	tally_error_print(error, "conformance");
	return 1;
}

static int run(int argc, char **argv)
{
	const struct tally_command_line line = {.program = "conformance",
						.help = usage,
						.version = "conformance " TALLY_VERSION "\n",
						.options = known};
	struct settings s = {.o = {.jobs = 2, .live_stops = 3},
			     .build = own_build(),
			     .device = "cpu",
			     .targets = all_targets};
	struct tally_error error = {0};
	int first = tally_options_read(&line, argc, argv, &s, &error);

	if (!first)
		return 0;
	if (first > 0 && !any_selected(&s.o))
		tally_fail(&error, "no case's name contains %s (see --list)", s.o.filter);
	if (tally_failed(&error))
		return refuse(&error);
	if (s.list) {
		list(&s.o);
		return 0;
	}
	if (!*s.targets)
		tally_fail(&error, "--target wants targets, or none");
	s.o.targets = split(s.targets);
	if (tally_failed(&error) || !find_tools(&s.o, s.build, &error) ||
	    !find_device(&s.o, &s, &error) || !check(&s.o, &error))
		return refuse(&error);
	if (!compile_all(&s.o, &error) || (s.o.driver && !execute_all(&s.o, &error))) {
		refuse(&error);
		report_finish(&s.o);
		return 1;
	}
	return report_finish(&s.o) ? 0 : 1;
}

int main(int argc, char **argv)
{
	int status = run(argc, argv);

	/* Who wrote an answer that did not arrive has not succeeded. */
	if ((fflush(stdout) || ferror(stdout)) && !status) {
		fprintf(stderr, "conformance: error: cannot write: %s\n", strerror(errno));
		status = 1;
	}
	return status;
}
