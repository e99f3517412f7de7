/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tallyd's half of the profiler: follows the reports of the programs that join, writes them to the
 * store, and gives each program what earlier runs measured. All of the writing is done by a thread
 * of its own: the daemon's loop never waits for a disk.
 */
#ifndef TALLY_PROFILER_COLLECTOR_H
#define TALLY_PROFILER_COLLECTOR_H

#include "base/error.h"
#include "sched/daemon.h"

struct tally_collector;

/*
 * Starts the thread (it handles no signal) for the store in `folder`. `log` gets one line for what
 * happened to the store, from any thread. Without a store that can be written it goes on without:
 * the programs measure for themselves. NULL with an error when there can be no thread.
 */
struct tally_collector *tally_collector_start(const char *folder, void (*log)(const char *line),
					      struct tally_error *error);

/* Writes what is left, ends the thread, frees. NULL is allowed. The daemon is not serving any more.
 */
void tally_collector_stop(struct tally_collector *collector);

/* The hooks of struct tally_daemon_options; the context is the collector (NULL: they do nothing).
 */
void tally_collector_joined(void *collector, const struct tally_daemon_member *member,
			    struct tally_attachment *answer);
void tally_collector_left(void *collector, const struct tally_daemon_member *member);

#endif
