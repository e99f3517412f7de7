/* SPDX-License-Identifier: Apache-2.0 */
/* tally: what a person types; finds the subcommand and hands over. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cli/command.h"

static const struct tally_command commands[] = {
	{"run", "run a program that shares its device by priority", tally_command_run},
	{"status", "show who shares the devices, who waits for whom, and what it cost",
	 tally_command_status},
	{"top", "the same, live: who runs, who waits, what the kernels run as", tally_command_top},
	{"trace", "record what the programs do, for ui.perfetto.dev", tally_command_trace},
#ifdef TALLY_HAVE_CACHE
	{"profile", "show what was measured of each kernel, what it runs as and why",
	 tally_command_profile},
	{"cache", "show or clear the cache of compiled kernels", tally_command_cache},
#endif
};

#define COMMANDS (sizeof commands / sizeof *commands)

static void print_help(void)
{
	puts("usage: tally COMMAND [options]\n"
	     "\n"
	     "Lets several programs share one device: a high-priority program keeps the latency "
	     "it\n"
	     "has alone, best-effort programs get what is left.\n"
	     "\n"
	     "commands:");
	for (unsigned i = 0; i < COMMANDS; i++)
		printf("  %-8s%s\n", commands[i].name, commands[i].summary);
	puts("\n"
	     "  tally run --priority high -- ./server\n"
	     "  tally run --priority best-effort -- ./trainer\n"
	     "\n"
	     "`tally COMMAND --help` tells more; `tally --version` prints the version.");
}

static int unknown(const char *name)
{
	fprintf(stderr, "tally: error: unknown command \"%s\"; known:", name);
	for (unsigned i = 0; i < COMMANDS; i++)
		fprintf(stderr, "%s %s", i ? "," : "", commands[i].name);
	fputs("\n", stderr);
	return 1;
}

static int run(int argc, char **argv)
{
	if (argc < 2) {
		fputs("tally: error: which command? (see tally --help)\n", stderr);
		return 1;
	}
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h")) {
		print_help();
		return 0;
	}
	if (!strcmp(argv[1], "--version")) {
		puts("tally " TALLY_VERSION);
		return 0;
	}
	for (unsigned i = 0; i < COMMANDS; i++)
		if (!strcmp(argv[1], commands[i].name))
			return commands[i].run(argc - 1, argv + 1);
	return unknown(argv[1]);
}

int main(int argc, char **argv)
{
	int status = run(argc, argv);

	/* Who wrote an answer that did not arrive and did not notice has not succeeded. */
	if ((fflush(stdout) || ferror(stdout)) && !status) {
		fprintf(stderr, "tally: error: cannot write: %s\n", strerror(errno));
		status = 1;
	}
	return status;
}
