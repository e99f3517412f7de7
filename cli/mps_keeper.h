/* SPDX-License-Identifier: Apache-2.0 */
/* tallyd's care for the MPS that `tally run` started: stopped when the last program has gone. */
#ifndef TALLY_CLI_MPS_KEEPER_H
#define TALLY_CLI_MPS_KEEPER_H

#include <stdatomic.h>
#include <stdint.h>

#include "backends/cuda/mps/mps.h"

struct tally_mps_keeper {
	struct tally_mps mps;
	void (*log)(const char *line);
	_Atomic bool working; /* a thread is at it */
	_Atomic unsigned failures;
	uint64_t next_ns;
};

/* For tally_daemon_options.cleared: true when no MPS of Tally's is left, or it will not go;
 * otherwise starts to stop it, in a thread. One thread, the daemon's. */
bool tally_mps_keeper_cleared(void *keeper);

#endif
