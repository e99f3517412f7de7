/* SPDX-License-Identifier: Apache-2.0 */
/* What the subcommands' command lines have in common: see command.h. */
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "cli/command.h"

static int bad_option(const char *command, int result, char **argv)
{
	const char *option = argv[optind - 1];

	if (result == ':')
		fprintf(stderr, "%s: error: %s wants a value (see %s --help)\n", command, option,
			command);
	else if (optopt && strncmp(option, "--", 2))
		fprintf(stderr, "%s: error: unknown option \"-%c\" (see %s --help)\n", command,
			optopt, command);
	else
		fprintf(stderr, "%s: error: unknown or ambiguous option \"%s\" (see %s --help)\n",
			command, option, command);
	return 1;
}

int tally_command_other_option(const char *command, const char *help, int result, char **argv)
{
	switch (result) {
	case 'h':
		fputs(help, stdout);
		return 0;
	case 'V':
		puts("tally " TALLY_VERSION);
		return 0;
	default:
		return bad_option(command, result, argv);
	}
}
