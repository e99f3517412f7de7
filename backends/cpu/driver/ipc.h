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
};

/* A memfd of `bytes` (whole pages), or -1. The caller closes it. */
int ipc_file(size_t bytes);

/* An event's words, new or those of a handle; NULL out of memory. `fd` is what a handle names. */
struct ipc_event *ipc_event_new(int *fd);
void ipc_event_free(struct ipc_event *shared, int fd);
/* Record `number` is done; those before it too. Any thread, also with the engine's lock. */
void ipc_event_done(struct ipc_event *shared, uint64_t number);

#endif
