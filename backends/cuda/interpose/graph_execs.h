/* SPDX-License-Identifier: Apache-2.0 */
/* The program's executable graphs and what is known of each (graphs.h), by the driver's handle. */
#ifndef TALLY_BACKENDS_CUDA_INTERPOSE_GRAPH_EXECS_H
#define TALLY_BACKENDS_CUDA_INTERPOSE_GRAPH_EXECS_H

#include <pthread.h>

#include "backends/cuda/interpose/graph_nodes.h"
#include "backends/cuda/interpose/profile.h"
#include "backends/cuda/interpose/state.h"

/* An executable graph, from when it was instantiated or first launched. */
struct tally_exec {
	CUgraphExec handle;
	struct tally_exec *next;
	struct tally_cost whole; /* how long a whole launch takes */
	_Atomic bool accepted;	 /* the driver took a launch of it as it is */
	unsigned users; /* the table, launches, who holds or waits for the lock: the table's lock */
	pthread_mutex_t lock; /* what follows; held while it is launched node by node */
	bool gone;	      /* it is in the table no more */
	CUcontext context;    /* of its nodes; NULL: they could not be read, it is launched whole */
	struct tally_nodes list;
	CUevent end;   /* behind the last launch */
	uint32_t last; /* that launch's stream, by its number: handles are used again, and each
			* thread calls its default stream the same */
};

/* The record with its lock held until tally_exec_done(), or NULL: it is unknown, and made only with
 * `or_make`, or it ends. Whoever launches it may have it for as long as the program is stopped:
 * nobody waits for that with the table's lock. */
struct tally_exec *tally_exec_find(CUgraphExec handle, bool or_make);
void tally_exec_done(struct tally_exec *exec);

/* Whether the driver has taken a launch of it as it is, and in `ns` how long one takes in
 * nanoseconds (0: it is unknown). Does not wait for who has it. */
bool tally_exec_accepted(CUgraphExec handle, uint64_t *ns);

/* Whether graphs are read, so that they may be launched node by node. */
bool tally_execs_read(void);

#endif
