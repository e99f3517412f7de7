/* SPDX-License-Identifier: Apache-2.0 */
/* conformance: proves that transformed kernels do what the originals do, on a device and for every
 * target. */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/number.h"
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

static const char *const *split(char *list)
{
	static const char *parts[64];
	size_t count = 0;

	if (strcmp(list, "none"))
		for (char *p = strtok(list, ","); p && count < 63; p = strtok(NULL, ","))
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

static bool any_selected(const struct options *o)
{
	for (size_t g = 0; conformance_groups[g]; g++)
		for (const struct conformance_case *c = conformance_groups[g]; c->name; c++)
			if (selected(o, c))
				return true;
	return false;
}

/* What would be found at the end of all work otherwise, or in every line of it. */
static bool check(const struct options *o, struct tally_error *error)
{
	if (!o->driver && !o->targets[0])
		return tally_fail(error, "--device none and --target none leave nothing to do");
	return (!o->junit || tally_file_may_write(o->junit, error)) &&
	       (!o->table || tally_file_may_write(o->table, error)) && check_targets(o, error);
}

static int run(int argc, char **argv)
{
	enum { FILTER = 256, DEVICE, TARGET, JUNIT, TABLE, JOBS, LIVE, BUILD, LIST, HELP, VERSION };
	static const struct option known[] = {
		{"filter", 1, NULL, FILTER},   {"device", 1, NULL, DEVICE},
		{"target", 1, NULL, TARGET},   {"junit", 1, NULL, JUNIT},
		{"table", 1, NULL, TABLE},     {"jobs", 1, NULL, JOBS},
		{"live", 1, NULL, LIVE},       {"build", 1, NULL, BUILD},
		{"list", 0, NULL, LIST},       {"help", 0, NULL, HELP},
		{"version", 0, NULL, VERSION}, {NULL, 0, NULL, 0},
	};
	static char targets[sizeof all_targets + 256];
	const char *build = own_build(), *device = "cpu";
	struct options o = {.jobs = 2, .live_stops = 3};
	struct tally_error error = {0};
	bool list = false, ok = true;
	int option;

	snprintf(targets, sizeof targets, "%s", all_targets);
	opterr = 0;
	while (ok && (option = getopt_long(argc, argv, ":h", known, NULL)) >= 0)
		switch (option) {
		case FILTER:
			o.filter = optarg;
			break;
		case DEVICE:
			device = optarg;
			break;
		case TARGET:
			snprintf(targets, sizeof targets, "%s", optarg);
			break;
		case JUNIT:
			o.junit = optarg;
			break;
		case TABLE:
			o.table = optarg;
			break;
		case JOBS:
			ok = whole("--jobs", optarg, 1, &o.jobs, &error);
			break;
		case LIVE:
			ok = whole("--live", optarg, 0, &o.live_stops, &error);
			break;
		case BUILD:
			build = optarg;
			break;
		case LIST:
			list = true;
			break;
		case VERSION:
			puts("conformance " TALLY_VERSION);
			return 0;
		case HELP:
		case 'h':
			fputs(usage, stdout);
			return 0;
		default:
			ok = tally_fail(&error, "%s %s (see --help)",
					option == ':' ? "a value is missing:"
						      : "unknown or ambiguous option",
					argv[optind - 1]);
		}
	if (ok && optind < argc)
		ok = tally_fail(&error, "unexpected argument %s (see --help)", argv[optind]);
	if (ok && !any_selected(&o))
		ok = tally_fail(&error, "no case's name contains %s (see --list)", o.filter);
	if (!ok) {
		tally_error_print(&error, "conformance");
		return 1;
	}
	if (list) {
		for (size_t g = 0; conformance_groups[g]; g++)
			for (const struct conformance_case *c = conformance_groups[g]; c->name; c++)
				if (selected(&o, c))
					printf("%-20s grid %u,%u,%u block %u,%u,%u\n", c->name,
					       c->grid[0], c->grid[1], c->grid[2], c->block[0],
					       c->block[1], c->block[2]);
		return 0;
	}
	if (!*targets) {
		tally_fail(&error, "--target wants targets, or none");
		tally_error_print(&error, "conformance");
		return 1;
	}
	o.targets = split(targets);
	o.kernels = join(build, "conformance/kernels");
	o.work = join(build, "conformance/work");
	o.tally_lower = join(build, "bin/tally-lower");
	o.ptxas = getenv("TALLY_PTXAS") ? getenv("TALLY_PTXAS") : TALLY_PTXAS;
	o.readelf = TALLY_LLVM_BIN "/llvm-readelf";
	if (access(o.tally_lower, X_OK) || access(o.kernels, R_OK | X_OK)) {
		tally_fail(&error,
			   "%s is no build tree: bin/tally-lower or conformance/kernels is missing "
			   "(--build)",
			   *build ? build : "/");
		tally_error_print(&error, "conformance");
		return 1;
	}
	o.device = device;
	if (!strcmp(device, "cpu")) {
		o.driver = join(build, "lib/libcuda.so.1");
		o.device_target = "x86-64";
	} else if (!strcmp(device, "cuda")) {
		o.driver = "libcuda.so.1";
		o.device_target =
			getenv("TALLY_CUDA_TARGET") ? getenv("TALLY_CUDA_TARGET") : "sm_90";
	} else if (strcmp(device, "none")) {
		tally_fail(&error, "unknown device %s: there are cpu, cuda and none", device);
		tally_error_print(&error, "conformance");
		return 1;
	}
	if (!check(&o, &error)) {
		tally_error_print(&error, "conformance");
		return 1;
	}
	if (!compile_all(&o, &error) || (o.driver && !execute_all(&o, &error))) {
		tally_error_print(&error, "conformance");
		report_finish(&o);
		return 1;
	}
	return report_finish(&o) ? 0 : 1;
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
