/* SPDX-License-Identifier: Apache-2.0 */
/* What the subcommands' command lines have in common: see command.h. */
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "cli/command.h"

int tally_command_bad_option(const char *command, int result, char **argv)
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
