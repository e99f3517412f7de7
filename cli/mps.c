/* SPDX-License-Identifier: Apache-2.0 */
/* tally run --mps: which Multi-Process Service a program finds; see command.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backends/cuda/mps/mps.h"
#include "cli/command.h"
#include "sched/board.h"

#define PIPES "CUDA_MPS_PIPE_DIRECTORY"

static bool set(const char *name, const char *value, bool replace, struct tally_error *error)
{
	return setenv(name, value, replace) ? tally_fail(error, "out of memory") : true;
}

/* A folder that is never made: the driver finds no control daemon there. */
static bool use_none(const struct tally_mps *mps, struct tally_error *error)
{
	char nowhere[PATH_MAX + 8];

	snprintf(nowhere, sizeof nowhere, "%s/none", mps->folder);
	return set(PIPES, nowhere, true, error);
}

/* Tally's own, started where needed. */
static enum tally_mps_started use_own(const struct tally_mps *mps, struct tally_error *error)
{
	int lock = tally_mps_lock(mps, true, error);
	enum tally_mps_started started;

	if (lock < 0)
		return TALLY_MPS_FAILED;
	started = tally_mps_start(mps, error);
	close(lock);
	if (started == TALLY_MPS_RUNS && (!set(PIPES, mps->pipes, true, error) ||
					  !set("CUDA_MPS_LOG_DIRECTORY", mps->logs, true, error)))
		return TALLY_MPS_FAILED;
	return started;
}

bool tally_use_mps(enum tally_mps_use use, const char *socket, int priority, bool may_start,
		   struct tally_error *error)
{
	struct tally_error failure = {0};
	const char *chosen = getenv("CUDA_MPS_PIPE_DIRECTORY");
	struct tally_mps mps;

	if (!tally_mps_of(socket, &mps, error))
		return false;
	if (use == TALLY_MPS_OFF)
		return use_none(&mps, error);
	/* Without MPS nobody reads it. 1 is "below normal". */
	if (priority < TALLY_PRIORITY_HIGH && !set("CUDA_MPS_CLIENT_PRIORITY", "1", false, error))
		return false;
	/* Of our own, set by an outer `tally run` that may have been long ago. */
	if (chosen && !strncmp(chosen, mps.folder, strlen(mps.folder))) {
		unsetenv(PIPES);
		chosen = NULL;
	}
	if (tally_mps_answers(chosen && *chosen ? chosen : TALLY_MPS_DEFAULT_PIPES))
		return true;
	if (chosen && *chosen)
		return use == TALLY_MPS_AUTO ? true
					     : tally_fail(error,
							  "--mps on: no MPS answers in %s (" PIPES
							  "): start it, or unset the variable",
							  chosen);
	if (!may_start)
		return use == TALLY_MPS_AUTO
			       ? true
			       : tally_fail(error,
					    "--mps on: none runs, and without tallyd, which would "
					    "stop it, none is started");
	switch (use_own(&mps, &failure)) {
	case TALLY_MPS_RUNS:
		return true;
	case TALLY_MPS_ABSENT:
		break; /* much of the world has no MPS: no news in auto */
	case TALLY_MPS_FAILED:
		if (use == TALLY_MPS_AUTO)
			fprintf(stderr, "tally run: warning: %s; programs take turns on the GPU\n",
				failure.message);
	}
	return use == TALLY_MPS_AUTO ? true : tally_fail(error, "--mps on: %s", failure.message);
}
