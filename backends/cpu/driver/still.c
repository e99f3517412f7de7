/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A moment in which nothing touches memory, for memory that changes its place behind its address.
 * Other threads of the application go on submitting: their operations are kept back, but only for a
 * while at a time, as a kernel that is under way may wait for one that has not been started.
 */
#include "backends/cpu/driver/driver.h"
#include "backends/cpu/driver/engine.h"
#include "base/clock.h"

#include <time.h>

#define KEPT_BACK_NS 10000000
#define LOOK_NS	     50000

/* Whether what is under way has come to its end in time, nothing new having been started. Lock
 * held, given back meanwhile. */
static bool ended(void)
{
	uint64_t began = tally_now();

	engine.holders++;
	while (engine.working && tally_now() - began < KEPT_BACK_NS) {
		engine_unlock();
		nanosleep(&(struct timespec){.tv_nsec = LOOK_NS}, NULL);
		engine_lock();
	}
	engine.holders--;
	return !engine.working;
}

void engine_lock_still(void)
{
	for (;;) {
		contexts_quiesce();
		engine_lock();
		if (ended())
			return;
		engine_look();
		engine_unlock();
	}
}

void engine_unlock_still(void)
{
	engine_look();
	engine_unlock();
}
