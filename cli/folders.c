/* SPDX-License-Identifier: Apache-2.0 */
/* Where this program and the libraries that belong to it are: see command.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/command.h"

bool tally_program_folder(char path[PATH_MAX], struct tally_error *error)
{
	ssize_t length = readlink("/proc/self/exe", path, PATH_MAX - 1);

	if (length <= 0)
		return tally_fail(error, "cannot find out where this program is: %s",
				  strerror(errno));
	path[length] = '\0';
	*strrchr(path, '/') = '\0';
	return true;
}

bool tally_library_folder(char path[PATH_MAX], struct tally_error *error)
{
	/* Installed, the libraries have a folder of their own: among them is a libcuda.so.1, which
	 * must not be found by programs that run without Tally. */
	static const char *const places[] = {"../lib/tally", "../lib"};
	char program[PATH_MAX], place[PATH_MAX + 64];

	if (!tally_program_folder(program, error))
		return false;
	for (unsigned i = 0; i < sizeof places / sizeof *places; i++) {
		snprintf(place, sizeof place, "%s/%s/libtally.so", program, places[i]);
		if (access(place, R_OK))
			continue;
		*strrchr(place, '/') = '\0';
		if (realpath(place, path))
			return true;
	}
	return tally_fail(error, "libtally.so is neither in %s/%s nor in %s/%s", program, places[0],
			  program, places[1]);
}
