/* SPDX-License-Identifier: Apache-2.0 */
/* tally cache: shows or clears the cache of compiled kernels. */
#include "cache/cache.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/options.h"
#include "cli/command.h"

static const char help[] =
	"usage: tally cache [status|clear]\n"
	"\n"
	"Kernels are compiled once and kept on disk, named by what they were made from.\n"
	"\n"
	"commands:\n"
	"  status    the cache's folder, size and limit (default)\n"
	"  clear     remove every compiled kernel; programs that run keep what they use\n"
	"\n"
	"options:\n"
	"  --help, --version\n"
	"\n"
	"environment:\n"
	"  TALLY_CACHE_DIR     the folder (default: $XDG_CACHE_HOME/tally, else ~/.cache/tally)\n"
	"  TALLY_CACHE_SIZE    the limit in MiB (default 1024)\n"
	"\n"
	"exit status: 0, also when there is nothing to show or remove; 1 on errors.\n";

static bool show(struct tally_error *error)
{
	struct tally_cache_status status;
	char folder[PATH_MAX];

	if (!tally_cache_folder(folder, error) || !tally_cache_status(&status, error))
		return false;
	printf("%s: %u compiled kernels, %.1f of %.0f MiB\n", folder, status.files,
	       (double)status.bytes / (1 << 20), (double)status.limit / (1 << 20));
	return true;
}

static bool clear(struct tally_error *error)
{
	unsigned removed;

	if (!tally_cache_clear(&removed, error))
		return false;
	printf("removed %u compiled kernels\n", removed);
	return true;
}

int tally_command_cache(int argc, char **argv)
{
	static const struct {
		const char *name;
		bool (*run)(struct tally_error *error);
	} verbs[] = {{"status", show}, {"clear", clear}};
	static const struct tally_option none = {NULL};
	const struct tally_command_line line = {.program = "tally cache",
						.help = help,
						.version = TALLY_COMMAND_VERSION,
						.options = &none,
						.most_arguments = 1};
	struct tally_error error = {0};
	int first = tally_options_read(&line, argc, argv, NULL, &error);

	if (!first)
		return 0;
	if (first > 0) {
		const char *verb = first < argc ? argv[first] : verbs[0].name;
		unsigned i = 0;

		while (i < 2 && strcmp(verb, verbs[i].name))
			i++;
		if (i < 2)
			verbs[i].run(&error);
		else
			tally_fail(&error, "unknown command \"%s\"; known: status, clear", verb);
	}
	if (!tally_failed(&error))
		return 0;
	tally_error_print(&error, "tally cache");
	return 1;
}
