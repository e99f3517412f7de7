/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NVIDIA's Multi-Process Service: its control daemon, spoken to through `nvidia-cuda-mps-control`
 * alone (NVIDIA's MPS documentation, "Tools and Interface Reference"). Under it the processes of
 * one user run side by side on a GPU; without it they take turns.
 *
 * Tally starts a control daemon of its own, with folders of its own, only where none answers, and
 * stops no other. Whose it is shows in the folder alone, so that a tallyd that is killed leaves it
 * to the next one.
 */
#ifndef TALLY_BACKENDS_CUDA_MPS_MPS_H
#define TALLY_BACKENDS_CUDA_MPS_MPS_H

#include <limits.h>
#include <stdbool.h>

#include "base/error.h"

/* Where it is looked for without the variable. */
#define TALLY_MPS_DEFAULT_PIPES "/tmp/nvidia-mps"

/* Tally's own control daemon: its folders, below that of tallyd's socket. */
struct tally_mps {
	char folder[PATH_MAX - 16];	      /* with the lock */
	char pipes[PATH_MAX], logs[PATH_MAX]; /* CUDA_MPS_PIPE_DIRECTORY, CUDA_MPS_LOG_DIRECTORY */
};

/* Names the folders; false when the path is too long. Makes nothing. */
bool tally_mps_of(const char *socket, struct tally_mps *mps, struct tally_error *error);

/*
 * Who starts, stops, or has looked and is about to rely on what was seen, holds the lock: a
 * descriptor (close-on-exec; closing it gives it back), or -1 with an error. `wait`: up to half a
 * minute; otherwise -1 at once and no error when it is taken.
 */
int tally_mps_lock(const struct tally_mps *mps, bool wait, struct tally_error *error);

/* Whether a control daemon answers in `pipes`. Runs a process, but only where the folder says that
 * one might. Any thread, as the rest. */
bool tally_mps_answers(const char *pipes);

enum tally_mps_started {
	TALLY_MPS_RUNS,	  /* it was there, or is now */
	TALLY_MPS_ABSENT, /* there is no nvidia-cuda-mps-control in PATH: an error says so */
	TALLY_MPS_FAILED, /* with what it said as the error */
};

/* Makes sure that Tally's own one runs. Lock held. */
enum tally_mps_started tally_mps_start(const struct tally_mps *mps, struct tally_error *error);

/* Whether Tally's own one may be there: a look at its folder. */
bool tally_mps_left(const struct tally_mps *mps);

/* Stops Tally's own one if nobody uses it, and clears its folder when it is gone: true then. False
 * while somebody does, or when it does not go (error). Takes seconds at worst. Lock held. */
bool tally_mps_stop(const struct tally_mps *mps, struct tally_error *error);

#endif
