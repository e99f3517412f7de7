/* SPDX-License-Identifier: Apache-2.0 */
/* The subcommands of `tally`, one file each. */
#ifndef TALLY_CLI_COMMAND_H
#define TALLY_CLI_COMMAND_H

#include <limits.h>
#include <stdbool.h>

#include "base/error.h"

/* argv[0] is the subcommand's name. Returns the exit status; prints its own errors. */
struct tally_command {
	const char *name, *summary;
	int (*run)(int argc, char **argv);
};

int tally_command_run(int argc, char **argv);
int tally_command_status(int argc, char **argv);
int tally_command_top(int argc, char **argv);
int tally_command_trace(int argc, char **argv);
int tally_command_profile(int argc, char **argv);
int tally_command_cache(int argc, char **argv);

/* What their --version prints. */
#define TALLY_COMMAND_VERSION "tally " TALLY_VERSION "\n"

/* The folder of this program's file, and the folder of Tally's libraries that belong to it:
 * ../lib/tally when installed, ../lib in a build tree. */
bool tally_program_folder(char path[PATH_MAX], struct tally_error *error);
bool tally_library_folder(char path[PATH_MAX], struct tally_error *error);

/* Makes sure that a tallyd serves `socket` and knows that this process will join: starts one when
 * there is none and waits until it answers (at most about three seconds). */
bool tally_start_daemon(const char *socket, struct tally_error *error);

/* What `tally run --mps` asks for. */
enum tally_mps_use { TALLY_MPS_AUTO, TALLY_MPS_ON, TALLY_MPS_OFF };

/*
 * Sets the environment of a program of `priority` that is about to use a GPU, so that it finds a
 * running MPS, one that is started for it if `may_start` (tallyd, which stops it, knows of this
 * process), or none. With `auto` nothing is an error; what went wrong is said on stderr.
 */
bool tally_use_mps(enum tally_mps_use use, const char *socket, int priority, bool may_start,
		   struct tally_error *error);

/* What can be known of a program before it runs. */
struct tally_program_look {
	const char *closed; /* why LD_PRELOAD does not get in, after its name: "is linked
			       statically"; NULL: it does, or it is a script and nobody knows */
	bool static_cudart; /* carries NVIDIA's CUDA runtime inside itself */
};

/* Finds `program` as execvp() would and looks inside; nothing is known of one that
 * cannot be read. */
void tally_look_at_program(const char *program, struct tally_program_look *look);

#endif
