/* SPDX-License-Identifier: Apache-2.0 */
/* Stopping an MPS that nobody needs any more: see mps_keeper.h. */
#include "cli/mps_keeper.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"

#define AGAIN_NS 2000000000ull /* programs that Tally does not know may still use it */
#define FAILURES 5	       /* so often at most */

struct job {
	struct tally_mps_keeper *keeper;
	int lock;
};

static void *stop(void *argument)
{
	struct job *job = argument;
	struct tally_mps_keeper *keeper = job->keeper;
	struct tally_error error = {0};

	if (tally_mps_stop(&keeper->mps, &error)) {
		keeper->log("stopped MPS");
	} else if (tally_failed(&error)) {
		keeper->log(error.message);
		atomic_fetch_add(&keeper->failures, 1);
	}
	close(job->lock);
	free(job);
	atomic_store(&keeper->working, false);
	return NULL;
}

bool tally_mps_keeper_cleared(void *context)
{
	struct tally_mps_keeper *keeper = context;
	uint64_t now = tally_now();
	pthread_t thread;

	if (atomic_load(&keeper->working))
		return false;
	if (!tally_mps_left(&keeper->mps) || atomic_load(&keeper->failures) >= FAILURES)
		return true;
	if (now < keeper->next_ns)
		return false;
	/* Taken: a program is about to use it, and will say so to the daemon. */
	int lock = tally_mps_lock(&keeper->mps, false, NULL);
	if (lock < 0)
		return false;
	keeper->next_ns = now + AGAIN_NS;
	struct job *job = malloc(sizeof *job);
	if (job)
		*job = (struct job){keeper, lock};
	atomic_store(&keeper->working, true);
	if (!job || pthread_create(&thread, NULL, stop, job)) {
		atomic_store(&keeper->working, false);
		close(lock);
		free(job);
		return false;
	}
	pthread_detach(thread);
	return false;
}
