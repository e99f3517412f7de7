/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory and events that several processes share. What is shared lies in a memfd of the process
 * that exports it; a handle says which (process, descriptor, inode), and another process of the
 * same user opens it through /proc. So nothing outlives the processes that use it.
 */
#ifndef TALLY_BACKENDS_CPU_DRIVER_IPC_H
#define TALLY_BACKENDS_CPU_DRIVER_IPC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Records of an event, counted over all processes. */
struct ipc_event {
	_Atomic uint64_t recorded;  /* asked for */
	_Atomic uint64_t completed; /* the last one that is done */
	_Atomic bool blind;	    /* the system gave no locks to somebody */
};

/* For forks: what is open (before the memory's lock), the numbers of records (behind all others).
 */
void ipc_lock(void);
void ipc_unlock(void);
void ipc_claims_lock(void);
void ipc_claims_unlock(void);

/* A memfd of `bytes` (whole pages), or -1. The caller closes it. */
int ipc_file(size_t bytes);

struct event;

/* An event's words, new or those of a handle; NULL out of memory. `fd` is what a handle names. */
struct ipc_event *ipc_event_new(int *fd);
/* Unmaps the words and closes `fd`; NULL is nothing. */
void ipc_event_free(struct ipc_event *shared, int fd);

/*
 * Records of an event of several processes, by number. Who has one under way holds a lock on the
 * byte of that number in the event's file: a process that is killed lets go of it, and nobody waits
 * for what it cannot do any more. Any thread, also with the engine's lock.
 */
uint64_t ipc_event_claim(struct event *event);
/* Record `number`, which this process claimed, is done; those before it too. */
void ipc_event_done(struct event *event, uint64_t number);
/* Whether record `number` is done, or never will be. Asks the system: not in a tight loop. */
bool ipc_event_over(struct event *event, uint64_t number);

#endif
