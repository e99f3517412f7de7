/* SPDX-License-Identifier: Apache-2.0 */
/* One daemon per socket: the lock that decides races, and the socket itself. */
#ifndef TALLY_SCHED_LISTENER_H
#define TALLY_SCHED_LISTENER_H

#include <stdbool.h>

#include "base/error.h"

enum tally_claim {
	TALLY_CLAIM_OURS,   /* we serve this socket for as long as *lock stays open */
	TALLY_CLAIM_TAKEN,  /* another daemon does */
	TALLY_CLAIM_FAILED, /* see the error */
};

/* Makes and checks the folder of `socket_path`, and takes the lock file beside the socket. The lock
 * ends with the process, however it ends; it is inherited over fork. */
enum tally_claim tally_listener_claim(const char *socket_path, int *lock,
				      struct tally_error *error);

/* Whether `lock` is still the lock file of the socket: false when somebody removed it or its
 * folder, so that another daemon may serve the path by now. */
bool tally_listener_holds(const char *socket_path, int lock);

/* A listening socket at `socket_path`, put in place of whatever was there in one step, so that no
 * client ever meets a socket that does not answer. Only for the holder of the lock. Descriptor
 * (close-on-exec, non-blocking) or -1. */
int tally_listener_open(const char *socket_path, struct tally_error *error);

#endif
